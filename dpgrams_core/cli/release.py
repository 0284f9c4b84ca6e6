"""The commands ``release``, one paid release of a file of one's own, and ``kept``, which shows such releases again."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dpgrams_core.cli import add_shared, guarantee_lines, read_off, rows_text, uncertainty
from dpgrams_core.cli import number_or_name as number
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.environment import read_settings
from dpgrams_core.model.errors import BudgetError, SpecError
from dpgrams_core.model.guarantee import guarantee_fields
from dpgrams_core.own_data.bounds import plan_range
from dpgrams_core.own_data.folder import Folder, Stream, add_up_folder, folder_identity, read_folder
from dpgrams_core.own_data.kept import MAY_BE_OF_ANOTHER, read_kept
from dpgrams_core.own_data.pricing import quote, refuse_unproven
from dpgrams_core.own_data.reading.table import Limits, Table, read_table
from dpgrams_core.own_data.record import RecordedRelease
from dpgrams_core.own_data.release import open_budget, overlap_words, release, release_range
from dpgrams_core.own_data.table import OwnData, load_table, picked_names
from dpgrams_core.privacy.composition import exact_amount
from dpgrams_core.privacy.ledger.book import BLIND_SPOT, Account, Charge, Ledger
from dpgrams_core.sweeps.executors import SWEEP_EXECUTORS, stream_tasks

_UNREAD = "The charge was made, and the ledger could not be read, so what is left is not shown."
_LOST = "these numbers are all that there is of it, and another release costs again"


def add_release(commands: Any) -> argparse.ArgumentParser:
    """Add both commands to the command line and return ``release``, which also takes the settings of the methods."""
    again = commands.add_parser("kept", help="show again, for free, what was released from a private file and kept")
    again.add_argument("file", help="exactly the same file or folder of files, in any order of rows and columns")
    again.add_argument(
        "--older",
        action="store_true",
        help="also what was kept before the exact file was noted: it may be of another file that agrees with this one "
        "to seven digits, so only its owner should look",
    )
    add_shared(again, "--ledger", "--json")
    _add_executor(again)
    command: argparse.ArgumentParser = commands.add_parser(
        "release", help="release a result from a private file, paid for in the budget ledger"
    )
    command.add_argument("file", help="a CSV (UTF-8) or Parquet file, or a folder of such files of any size together")
    command.add_argument("--columns", required=True, help="one to six numeric columns, separated by commas")
    command.add_argument("--response", help="the response of modal regression; then there is one column")
    words = "public bounds of a column, or NAME=estimate to pay for an estimate; once for each column"
    command.add_argument("--box", action="append", default=[], metavar="NAME=LOW:HIGH", help=words)
    command.add_argument("--box-epsilon", type=number, default=0.1, help="price of each estimated pair of bounds")
    command.add_argument("--box-delta", type=number, default=1e-7)
    command.add_argument("--method", choices=[name for name, item in METHODS.items() if item.private], required=True)
    command.add_argument("--drop-missing", action="store_true", help="without effect: no row is dropped")
    command.add_argument("--accept-unproven", action="store_true", help="take a guarantee that is not proven")
    add_shared(command, "--ledger")
    words = "instead of DPGRAMS_CAP_EPSILON; a data set keeps the cap of its first release, later only a lower counts"
    command.add_argument("--cap-epsilon", type=number, help=words)
    command.add_argument("--cap-delta", type=number)
    add_shared(command, "--json")
    _add_executor(command)
    return command


def _add_executor(command: argparse.ArgumentParser) -> None:
    """Where the files of a folder are read."""
    words = "where the files of a folder are read, each by one worker (default serial: here, one after the other)"
    command.add_argument("--executor", choices=SWEEP_EXECUTORS, help=words)
    words = "address of a Dask scheduler (otherwise DPGRAMS_DASK); without one, a cluster on this machine"
    command.add_argument("--scheduler", help=words)


def _opened(arguments: argparse.Namespace) -> tuple[Table | Folder, Stream]:
    """The table of a file, or the facts of a folder; and what reads the files of a folder."""
    executor, scheduler = arguments.executor or "serial", arguments.scheduler
    if executor == "dask" and scheduler is None:
        scheduler = read_settings().dask.address
    stream: Stream = partial(stream_tasks, executor=executor, scheduler=scheduler)
    if Path(arguments.file).is_dir():
        return read_folder(arguments.file, stream), stream
    for name in ("executor", "scheduler"):
        if getattr(arguments, name) is not None:
            raise SpecError(name, getattr(arguments, name), "it is for a folder of files; leave it out for one file")
    return read_table(arguments.file, limits=Limits.of_owner()), stream


def release_command(arguments: argparse.Namespace, options: dict[str, Any]) -> str:
    """``release``: read, price, charge, draw, and print what may be published."""
    settings = read_settings()
    if arguments.drop_missing:
        _note(
            "--drop-missing has no effect. Which rows miss a value is not public, so every row counts; the statements "
            "say where a missing value stands."
        )
    columns = [name.strip() for name in arguments.columns.split(",")]
    table, stream = _opened(arguments)
    bounds = parsed_bounds(picked_names(table, columns, arguments.response), arguments.box)
    kind = METHODS[arguments.method].kind
    bought = [name for name, pair in bounds.items() if pair is None]
    if bought and isinstance(table, Folder):
        allowed = "over a folder the bounds are stated; an estimate would take a pass of its own over all files"
        raise SpecError("box", f"{bought[0]}=estimate", allowed)

    def loaded(box: dict[str, tuple[float, float]]) -> OwnData:
        """The picked columns of the table in a box, as the kind of data that the method takes."""
        own: dict[str, Any] = {"columns": columns, "response": arguments.response, "box": box}
        own["kind"] = "modes" if kind == "regression" else kind
        if isinstance(table, Folder):  # one pass over its files, before anything is charged
            return add_up_folder(table, arguments.method, **own, stream=stream, **options)
        return load_table(table, **own)

    caps: dict[str, Any] = {
        "cap_epsilon": settings.cap_epsilon if arguments.cap_epsilon is None else arguments.cap_epsilon,
        "cap_delta": settings.cap_delta if arguments.cap_delta is None else arguments.cap_delta,
    }
    ledger = Ledger(arguments.ledger or settings.ledger, **caps)
    # Bounds still to be bought do not change the price: every box is scaled to the same one. So all that can be
    # refused is refused before the first of them is paid for.
    box = {name: pair or (0.0, 1.0) for name, pair in bounds.items()}
    trial = loaded(box)
    offer = quote(arguments.method, trial, **options)
    if not arguments.accept_unproven:
        refuse_unproven(offer)
    price = {"epsilon": arguments.box_epsilon, "delta": arguments.box_delta}
    if bought:
        plan_range(trial.n, **price)
    prices = [(offer.epsilon, offer.delta)] + [tuple(price.values())] * len(bought)
    together = [float(sum(map(exact_amount, part))) for part in zip(*prices, strict=True)]
    account = ledger.account_of(trial.content)
    if ledger.is_open(account):
        say_caps_in_force(arguments, ledger.account(account))
    ledger.check_room(account, epsilon=together[0], delta=together[1], identity=trial.identity)
    open_budget(trial, ledger, **caps)  # last of all: a cap that comes with a refused release is not kept
    if words := overlap_words(trial, ledger):
        _note(words)
    for name in bought:  # private estimates, charged
        assert isinstance(table, Table)
        range_of = release_range(table, name, ledger, **price, keep=settings.keep).found
        box[name] = range_of.low, range_of.high
    data = loaded(box) if bought else trial
    paid = release(
        arguments.method, data, ledger, accept_unproven=arguments.accept_unproven, keep=settings.keep, **options
    )
    if arguments.json:
        return _json(_fields(paid.charge, paid, ledger) | {"kept": paid.kept})
    note = "It is kept beside its charge: the command kept shows it again for free."
    if not paid.kept:
        why = "It could not be kept, the ledger could not be written" if settings.keep else "DPGRAMS_KEEP is off"
        note = f"{why}: {_LOST}."
    return _text(paid.charge, paid, ledger, note)


def _note(words: str) -> None:
    print(f"note: {words}", file=sys.stderr)


def say_caps_in_force(arguments: argparse.Namespace, account: Account) -> None:
    """Say on standard error which given caps are not in force: a data set keeps the lower one that it was opened with.

    It is said before anything is refused for want of room, so that nobody wonders about the cap in that sentence.
    """
    for name, given, cap in (
        ("--cap-epsilon", arguments.cap_epsilon, account.cap_epsilon),
        ("--cap-delta", arguments.cap_delta, account.cap_delta),
    ):
        if given is not None and given != cap:
            _note(f"the data set was opened with a cap of {cap:g} and keeps it; {name} {given:g} has no effect.")


def kept_command(arguments: argparse.Namespace) -> str:
    """``kept``: what was released from a file earlier; nothing is drawn and nothing is charged."""
    table, stream = _opened(arguments)
    identity = folder_identity(table, stream) if isinstance(table, Folder) else table.identity
    settings = read_settings()
    place = arguments.ledger or settings.ledger
    ledger = Ledger(place, cap_epsilon=settings.cap_epsilon, cap_delta=settings.cap_delta)
    kept = read_kept(ledger, identity, older=arguments.older)
    doubts = dict.fromkeys(kept.older, MAY_BE_OF_ANOTHER)
    bounds = [
        {"charge": charge.id, **dataclasses.asdict(found), "note": doubts.get(charge.id, "")}
        for charge, found in kept.bounds
    ]
    if arguments.json:
        releases = [_fields(charge, found, ledger) for charge, found in kept.releases]
        content = [fields | {"kept": True} for fields in releases]
        return _json({"releases": content, "bounds": bounds, "problems": kept.problems})
    parts = []
    for charge, found in kept.releases:
        note = f"Paid for on {charge.at[:10]}; showing it again costs nothing. {doubts.get(charge.id, '')}".strip()
        parts.append(_text(charge, found, ledger, note))
    parts += [
        f"bounds of {item['column']}: {item['low']:g} to {item['high']:g} (charge {item['charge']}). {item['note']}"
        for item in bounds
    ]
    return "\n\n".join([*parts, *kept.problems]) or "Nothing is kept in this ledger for exactly this file."


def parsed_bounds(names: Sequence[str], given: Sequence[str]) -> dict[str, tuple[float, float] | None]:
    """``NAME=LOW:HIGH`` as numbers and ``NAME=estimate`` as None, one for each name.

    >>> parsed_bounds(["age", "pay"], ["age=0:100", "pay=estimate"])
    {'age': (0.0, 100.0), 'pay': None}
    """
    found: dict[str, tuple[float, float] | None] = {}
    for text in given:
        name, _, pair = text.rpartition("=")
        if name not in names:
            raise SpecError("box", text, "write NAME=LOW:HIGH with one of " + ", ".join(names))
        if name in found:
            raise SpecError("box", text, "give the bounds of every column once")
        if pair == "estimate":
            found[name] = None
            continue
        try:
            low, high = (float(part) for part in pair.split(":"))
        except ValueError:
            raise SpecError("box", text, "write NAME=LOW:HIGH, or NAME=estimate to pay for an estimate") from None
        found[name] = (low, high)
    lacking = [name for name in names if name not in found]
    if lacking:
        raise SpecError("box", list(given), "it lacks public bounds for " + ", ".join(lacking))
    return {name: found[name] for name in names}


def _account(charge: Charge, ledger: Ledger) -> Account | None:
    """The state of the budget, or None: what was paid for is printed also where the ledger cannot be read by now."""
    try:
        return ledger.account(charge.account)
    except BudgetError:
        return None


def _text(charge: Charge, found: RecordedRelease, ledger: Ledger, note: str) -> str:
    record, what = found.record, read_off(METHODS[found.record.method].kind)
    lines = [f"{METHODS[record.method].title} (release, no seed)", ""]
    lines += rows_text(f"{what}: {', '.join(record.columns)}", record.rows, found.release, "12.6g")
    box = zip(record.columns, record.box, strict=True)
    lines += ["", "box: " + ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in box)]
    lines += guarantee_lines(record.guarantee, *found.statements)
    lines += ["", f"ledger: charge {charge.id} of epsilon {charge.epsilon:g}, delta {charge.delta:g}"]
    left, account = [_UNREAD], _account(charge, ledger)
    if account is not None:
        caps = f"Left of the cap (epsilon {account.cap_epsilon:g}, delta {account.cap_delta:g})"
        rest = f"{caps}: epsilon {account.left_epsilon:g}, delta {account.left_delta:g}."
        left = [account.totals.statement, rest]
    return "\n".join([*lines, *(f"  {words}" for words in (note, *left, BLIND_SPOT))])


def _fields(charge: Charge, found: RecordedRelease, ledger: Ledger) -> dict[str, Any]:
    record = found.record
    said: dict[str, Any] = {"charge": charge.id, "at": charge.at, "epsilon": charge.epsilon, "delta": charge.delta}
    account = _account(charge, ledger)
    if account is None:
        said["problem"] = _UNREAD
    else:
        totals = account.totals
        said |= {"basic_epsilon": totals.basic_epsilon, "tight_epsilon": totals.tight_epsilon}
        said["total_delta"] = totals.delta
        said |= {name: getattr(account, name) for name in ("cap_epsilon", "cap_delta", "left_epsilon", "left_delta")}
    return {
        "method": record.method,
        "door": "release",
        "columns": record.columns,
        "box": dict(zip(record.columns, record.box, strict=True)),
        "curve" if record.what == "curve" else "modes": record.rows,
        **uncertainty(found.release),
        "guarantee": guarantee_fields(record.guarantee),
        "statements": found.statements,
        "ledger": said,
    }


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, allow_nan=False)
