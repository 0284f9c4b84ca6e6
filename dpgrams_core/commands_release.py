"""The command ``release``: one paid release of a file of one's own, in the units of its columns."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpgrams_core.datasets.table_reader import Limits, Table, read_table
from dpgrams_core.datasets.upload import OwnData, load_table, picked_names
from dpgrams_core.errors import SpecError
from dpgrams_core.methods import METHODS
from dpgrams_core.privacy.composition import exact_amount
from dpgrams_core.privacy.ledger import BLIND_SPOT, Ledger
from dpgrams_core.private_box import plan_range
from dpgrams_core.releasing import PaidRelease, open_budget, quote, refuse_unproven, release, release_range
from dpgrams_core.settings import read_settings


def add_release(commands: Any, options: Sequence[str], number: Callable[[str], Any]) -> None:
    """Add the command and its arguments to the command line; ``options`` are the settings of the methods."""
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
    command.add_argument("--drop-missing", action="store_true", help="drop rows with a missing or infinite value")
    command.add_argument("--accept-unproven", action="store_true", help="take a guarantee that is not proven")
    command.add_argument("--ledger", help="the ledger's file (otherwise DPGRAMS_LEDGER)")
    command.add_argument("--cap-epsilon", type=number, help="the cap of this data set, where it has none yet")
    command.add_argument("--cap-delta", type=number)
    command.add_argument("--json", action="store_true", help="machine-readable output")
    for name in options:
        command.add_argument("--" + name.replace("_", "-"), type=number, default=None)


def release_command(arguments: argparse.Namespace, options: dict[str, Any]) -> str:
    """``release``: read, price, charge, draw, and print what may be published."""
    settings = read_settings()
    columns = [name.strip() for name in arguments.columns.split(",")]
    table = read_table(arguments.file, limits=Limits.of_owner())
    names = picked_names(table, columns, arguments.response)
    bounds = parsed_bounds(names, arguments.box)
    ledger = Ledger(arguments.ledger or settings.ledger)
    account = open_budget(
        table,
        ledger,
        cap_epsilon=settings.cap_epsilon if arguments.cap_epsilon is None else arguments.cap_epsilon,
        cap_delta=settings.cap_delta if arguments.cap_delta is None else arguments.cap_delta,
    )
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
    ledger.check_room(account.account, epsilon=together[0], delta=together[1])
    box = {
        name: bought_bounds(table, name, ledger, arguments) if pair is None else pair for name, pair in bounds.items()
    }
    data = loaded(table, arguments, columns, box)
    paid = release(arguments.method, data, ledger, accept_unproven=arguments.accept_unproven, **options)
    rows = paid.release.modes if paid.release.curve is None else paid.release.curve
    show = _as_json if arguments.json else _as_text
    return show(paid, data.columns, data.to_user_units(rows), box, ledger, data.statements)


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
        drop_rows_with_missing=arguments.drop_missing,
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


def bought_bounds(table: Table, name: str, ledger: Ledger, arguments: argparse.Namespace) -> tuple[float, float]:
    """Bounds of one column by a private estimate, charged."""
    paid = release_range(
        table,
        name,
        ledger,
        epsilon=arguments.box_epsilon,
        delta=arguments.box_delta,
        drop_rows_with_missing=arguments.drop_missing,
    )
    return paid.found.low, paid.found.high


def _as_text(
    paid: PaidRelease,
    columns: tuple[str, ...],
    rows: np.ndarray,
    box: dict[str, tuple[float, float]],
    ledger: Ledger,
    statements: tuple[str, ...],
) -> str:
    guarantee, account = paid.release.guarantee, ledger.account(paid.charge.account)
    what = "modes" if paid.release.curve is None else "curve"
    lines = [f"{METHODS[paid.release.method].title} (release, no seed)", "", f"{what}: {', '.join(columns)}"]
    lines += ["  " + "  ".join(f"{value:12.6g}" for value in row) for row in rows]
    lines += ["", "box: " + ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in box.items())]
    lines += ["", f"guarantee: {guarantee.status}"]
    lines.append(f"  epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}, neighbours: {guarantee.neighbours}")
    lines += ["  " + text for text in (guarantee.statement, *guarantee.caveats, *statements)]
    lines += ["", f"ledger: charge {paid.charge.id} of epsilon {paid.charge.epsilon:g}, delta {paid.charge.delta:g}"]
    lines += ["  " + account.totals.statement]
    lines.append(
        f"  Left of the cap (epsilon {account.cap_epsilon:g}, delta {account.cap_delta:g}): "
        f"epsilon {account.left_epsilon:g}, delta {account.left_delta:g}."
    )
    return "\n".join([*lines, "  " + BLIND_SPOT])


def _as_json(
    paid: PaidRelease,
    columns: tuple[str, ...],
    rows: np.ndarray,
    box: dict[str, tuple[float, float]],
    ledger: Ledger,
    statements: tuple[str, ...],
) -> str:
    account = ledger.account(paid.charge.account)
    return json.dumps(
        {
            "method": paid.release.method,
            "door": paid.release.door,
            "columns": columns,
            "box": box,
            "modes" if paid.release.curve is None else "curve": rows.tolist(),
            "guarantee": dataclasses.asdict(paid.release.guarantee),
            "statements": statements,
            "ledger": {
                "charge": paid.charge.id,
                "epsilon": paid.charge.epsilon,
                "delta": paid.charge.delta,
                "basic_epsilon": account.totals.basic_epsilon,
                "tight_epsilon": account.totals.tight_epsilon,
                "total_delta": account.totals.delta,
                "left_epsilon": account.left_epsilon,
                "left_delta": account.left_delta,
            },
        },
        indent=2,
        allow_nan=False,
    )
