"""The commands ``release``, one paid release of a file of one's own, and ``kept``, which shows such releases again."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpgrams_core.datasets.table_reader import Limits, Table, read_table
from dpgrams_core.datasets.upload import OwnData, load_table, picked_names
from dpgrams_core.errors import BudgetError, SpecError
from dpgrams_core.guarantees import guarantee_fields
from dpgrams_core.kept_releases import MAY_BE_OF_ANOTHER, Kept, read_kept
from dpgrams_core.methods import METHODS
from dpgrams_core.privacy.composition import exact_amount
from dpgrams_core.privacy.ledger import BLIND_SPOT, Account, Charge, Ledger
from dpgrams_core.private_box import plan_range
from dpgrams_core.recipes import ReleaseRecord, release_record
from dpgrams_core.releasing import open_budget, overlap_words, quote, refuse_unproven, release, release_range
from dpgrams_core.settings import Settings, read_settings

_UNREAD = "The charge was made, and the ledger could not be read, so what is left is not shown."
_LOST = "these numbers are all that there is of it, and another release costs again"


@dataclass(frozen=True)
class Shown:
    """A release as it is printed."""

    charge: Charge
    record: ReleaseRecord
    statements: tuple[str, ...]
    note: str  # whether it is kept


def add_release(commands: Any, options: Sequence[str], number: Callable[[str], Any]) -> None:
    """Add both commands and their arguments to the command line; ``options`` are the settings of the methods."""
    again = commands.add_parser("kept", help="show again, for free, what was released from a private file and kept")
    again.add_argument("file", help="exactly the same file, in any order of rows and columns")
    again.add_argument(
        "--older",
        action="store_true",
        help="also what was kept before the exact file was noted: it may be of another file that agrees with this one "
        "to seven digits, so only its owner should look",
    )
    again.add_argument("--ledger", help="the ledger's file (otherwise DPGRAMS_LEDGER)")
    again.add_argument("--json", action="store_true", help="machine-readable output")
    command = commands.add_parser("release", help="release a result from a private file, paid for in the budget ledger")
    command.add_argument("file", help="a CSV (UTF-8) or Parquet file")
    command.add_argument("--columns", required=True, help="one to six numeric columns, separated by commas")
    command.add_argument("--response", help="the response of modal regression; then there is one column")
    command.add_argument(
        "--box",
        action="append",
        default=[],
        metavar="NAME=LOW:HIGH",
        help="public bounds of a column, or NAME=estimate to pay for an estimate; once for each column",
    )
    command.add_argument("--box-epsilon", type=number, default=0.1, help="price of each estimated pair of bounds")
    command.add_argument("--box-delta", type=number, default=1e-7)
    command.add_argument("--method", choices=[name for name, item in METHODS.items() if item.private], required=True)
    command.add_argument("--drop-missing", action="store_true", help="without effect: no row is dropped")
    command.add_argument("--accept-unproven", action="store_true", help="take a guarantee that is not proven")
    command.add_argument("--ledger", help="the ledger's file (otherwise DPGRAMS_LEDGER)")
    command.add_argument(
        "--cap-epsilon",
        type=number,
        help="instead of DPGRAMS_CAP_EPSILON; a data set keeps the cap of its first release, later only a lower counts",
    )
    command.add_argument("--cap-delta", type=number)
    command.add_argument("--json", action="store_true", help="machine-readable output")
    for name in options:
        command.add_argument("--" + name.replace("_", "-"), type=number, default=None)


def release_command(arguments: argparse.Namespace, options: dict[str, Any]) -> str:
    """``release``: read, price, charge, draw, and print what may be published."""
    settings = read_settings()
    if arguments.drop_missing:
        print(
            "note: --drop-missing has no effect. Which rows miss a value is not public, so every row counts; the "
            "statements say where a missing value stands.",
            file=sys.stderr,
        )
    columns = [name.strip() for name in arguments.columns.split(",")]
    table = read_table(arguments.file, limits=Limits.of_owner())
    names = picked_names(table, columns, arguments.response)
    bounds = parsed_bounds(names, arguments.box)
    caps = {
        "cap_epsilon": settings.cap_epsilon if arguments.cap_epsilon is None else arguments.cap_epsilon,
        "cap_delta": settings.cap_delta if arguments.cap_delta is None else arguments.cap_delta,
    }
    ledger = Ledger(arguments.ledger or settings.ledger, cap_epsilon=caps["cap_epsilon"], cap_delta=caps["cap_delta"])
    # Bounds still to be bought do not change the price: every box is scaled to the same one. So all that can be
    # refused is refused before the first of them is paid for.
    trial = loaded(table, arguments, columns, {name: pair or (0.0, 1.0) for name, pair in bounds.items()})
    offer = quote(arguments.method, trial, **options)
    bought = [name for name, pair in bounds.items() if pair is None]
    if not arguments.accept_unproven:
        refuse_unproven(offer)
    if bought:
        plan_range(trial.n, arguments.box_epsilon, arguments.box_delta)
    prices = [(offer.epsilon, offer.delta)] + [(arguments.box_epsilon, arguments.box_delta)] * len(bought)
    together = [float(sum(map(exact_amount, part))) for part in zip(*prices, strict=True)]
    account = ledger.account_of(table.content)
    if ledger.is_open(account):
        say_caps_in_force(arguments, ledger.account(account))
    ledger.check_room(account, epsilon=together[0], delta=together[1], identity=table.identity)
    open_budget(table, ledger, **caps)  # last of all: a cap that comes with a refused release is not kept
    if words := overlap_words(table, ledger):
        print(f"note: {words}", file=sys.stderr)
    box = {
        name: bought_bounds(table, name, ledger, arguments, settings) if pair is None else pair
        for name, pair in bounds.items()
    }
    data = loaded(table, arguments, columns, box)
    paid = release(
        arguments.method, data, ledger, accept_unproven=arguments.accept_unproven, keep=settings.keep, **options
    )
    note = "It is kept beside its charge: the command kept shows it again for free."
    if not paid.kept:
        why = "It could not be kept, the ledger could not be written" if settings.keep else "DPGRAMS_KEEP is off"
        note = f"{why}: {_LOST}."
    shown = Shown(paid.charge, release_record(paid.release, data), data.statements, note)
    return json_text(_fields(shown, ledger) | {"kept": paid.kept}) if arguments.json else _text(shown, ledger)


def say_caps_in_force(arguments: argparse.Namespace, account: Account) -> None:
    """Say on standard error which given caps are not in force: a data set keeps the lower one that it was opened with.

    It is said before anything is refused for want of room, so that nobody wonders about the cap in that sentence.
    """
    for name, given, cap in (
        ("--cap-epsilon", arguments.cap_epsilon, account.cap_epsilon),
        ("--cap-delta", arguments.cap_delta, account.cap_delta),
    ):
        if given is not None and given != cap:
            print(
                f"note: the data set was opened with a cap of {cap:g} and keeps it; {name} {given:g} has no effect.",
                file=sys.stderr,
            )


def kept_command(arguments: argparse.Namespace) -> str:
    """``kept``: what was released from a file earlier; nothing is drawn and nothing is charged."""
    table = read_table(arguments.file, limits=Limits.of_owner())
    settings = read_settings()
    place = arguments.ledger or settings.ledger
    ledger = Ledger(place, cap_epsilon=settings.cap_epsilon, cap_delta=settings.cap_delta)
    kept = read_kept(ledger, table.identity, older=arguments.older)
    releases = [
        Shown(
            charge,
            found.record,
            found.statements,
            f"Paid for on {charge.at[:10]}; showing it again costs nothing. {_doubt(kept, charge)}".strip(),
        )
        for charge, found in kept.releases
    ]
    bounds = [
        {"charge": charge.id, **dataclasses.asdict(found), "note": _doubt(kept, charge)}
        for charge, found in kept.bounds
    ]
    if arguments.json:
        content = [_fields(shown, ledger) | {"kept": True} for shown in releases]
        return json_text({"releases": content, "bounds": bounds, "problems": kept.problems})
    parts = [_text(shown, ledger) for shown in releases]
    parts += [
        f"bounds of {item['column']}: {item['low']:g} to {item['high']:g} (charge {item['charge']}). {item['note']}"
        for item in bounds
    ]
    return "\n\n".join([*parts, *kept.problems]) or "Nothing is kept in this ledger for exactly this file."


def _doubt(kept: Kept, charge: Charge) -> str:
    return MAY_BE_OF_ANOTHER if charge.id in kept.older else ""


def loaded(
    table: Table, arguments: argparse.Namespace, columns: list[str], box: dict[str, tuple[float, float]]
) -> OwnData:
    """The picked columns of the table in a box, as the kind of data that the method takes."""
    kind = METHODS[arguments.method].kind
    return load_table(
        table,
        columns=columns,
        response=arguments.response,
        box=box,
        kind="modes" if kind == "regression" else kind,
    )


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


def bought_bounds(
    table: Table, name: str, ledger: Ledger, arguments: argparse.Namespace, settings: Settings
) -> tuple[float, float]:
    """Bounds of one column by a private estimate, charged."""
    paid = release_range(
        table,
        name,
        ledger,
        epsilon=arguments.box_epsilon,
        delta=arguments.box_delta,
        keep=settings.keep,
    )
    return paid.found.low, paid.found.high


def _account(shown: Shown, ledger: Ledger) -> Account | None:
    """The state of the budget, or None: what was paid for is printed also where the ledger cannot be read by now."""
    try:
        return ledger.account(shown.charge.account)
    except BudgetError:
        return None


def _text(shown: Shown, ledger: Ledger) -> str:
    record, charge = shown.record, shown.charge
    guarantee, account = record.guarantee, _account(shown, ledger)
    what = "curve" if record.what == "curve" else "modes"
    lines = [f"{METHODS[record.method].title} (release, no seed)", "", f"{what}: {', '.join(record.columns)}"]
    lines += ["  " + "  ".join(f"{value:12.6g}" for value in row) for row in record.rows] or ["  none"]
    box = zip(record.columns, record.box, strict=True)
    lines += ["", "box: " + ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in box)]
    lines += ["", f"guarantee: {guarantee.words}"]
    lines.append(f"  epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}, neighbours: {guarantee.neighbours}")
    lines += ["  " + text for text in (guarantee.statement, *guarantee.caveats, *shown.statements)]
    lines += ["", f"ledger: charge {charge.id} of epsilon {charge.epsilon:g}, delta {charge.delta:g}"]
    lines.append("  " + shown.note)
    if account is None:
        return "\n".join([*lines, "  " + _UNREAD, "  " + BLIND_SPOT])
    lines.append("  " + account.totals.statement)
    lines.append(
        f"  Left of the cap (epsilon {account.cap_epsilon:g}, delta {account.cap_delta:g}): "
        f"epsilon {account.left_epsilon:g}, delta {account.left_delta:g}."
    )
    return "\n".join([*lines, "  " + BLIND_SPOT])


def _fields(shown: Shown, ledger: Ledger) -> dict[str, Any]:
    record, account = shown.record, _account(shown, ledger)
    charge = {
        "charge": shown.charge.id,
        "at": shown.charge.at,
        "epsilon": shown.charge.epsilon,
        "delta": shown.charge.delta,
    }
    return {
        "method": record.method,
        "door": "release",
        "columns": record.columns,
        "box": dict(zip(record.columns, record.box, strict=True)),
        "curve" if record.what == "curve" else "modes": record.rows,
        "guarantee": guarantee_fields(record.guarantee),
        "statements": shown.statements,
        "ledger": charge | ({"problem": _UNREAD} if account is None else _account_fields(account)),
    }


def _account_fields(account: Account) -> dict[str, float]:
    return {
        "basic_epsilon": account.totals.basic_epsilon,
        "tight_epsilon": account.totals.tight_epsilon,
        "total_delta": account.totals.delta,
        "cap_epsilon": account.cap_epsilon,
        "cap_delta": account.cap_delta,
        "left_epsilon": account.left_epsilon,
        "left_delta": account.left_delta,
    }


def json_text(content: dict[str, Any]) -> str:
    """JSON for people and machines, without infinities."""
    return json.dumps(content, indent=2, allow_nan=False)
