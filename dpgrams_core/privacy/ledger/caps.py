"""The cap of an account: the one that it was opened with, and never more than what its installation allows now.

The cap is on the *sum* of ε and the sum of δ (basic composition): always valid, also when the next release is chosen
after seeing the last.  The tight total is shown beside it (composition.py).

Accounts whose tables overlap are linked (overlap.py), directly or through others: the charges of all of them count
against each, and the lowest of their caps is in force.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpgrams_core.model.checks import between, positive
from dpgrams_core.model.errors import BudgetError
from dpgrams_core.privacy.composition import exact_amount

Amounts = tuple[Fraction, Fraction]  # ε and δ, exactly as they are written


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """The most that is spent on any data set here, whatever it was opened with; None is no such limit."""

    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            positive("cap_epsilon", self.epsilon)
        if self.delta is not None:
            between("cap_delta", self.delta, 0, 1)

    def over(self, stored: Amounts) -> Amounts:
        """The cap in force: the lower one of each."""
        most = (self.epsilon, self.delta)
        epsilon, delta = (
            cap if limit is None else min(cap, exact_amount(limit)) for cap, limit in zip(stored, most, strict=True)
        )
        return epsilon, delta


CLOSED = (
    "This ledger was restored without its high-water mark, so what was spent since its backup is not known, and it has "
    "no budget left for any data set. What was released before can still be shown."
)
# The columns that hold amounts, and whether each may be 0; a δ is below 1, an ε only finite.
_AMOUNT_COLUMNS = {"epsilon": False, "delta": True, "cap_epsilon": False, "cap_delta": False}


def amount(text: str, column: str) -> Fraction:
    """An amount as it stands in a ledger, exactly; a text that no ledger writes there is a ``BudgetError``.

    >>> amount("0.1", "epsilon")
    Fraction(1, 10)
    """
    check_amounts({column: text})
    return Fraction(text)


def check_amounts(row: Mapping[str, object]) -> None:
    """Refuse a row of a ledger with an amount that is none: not finite, below 0, or not written as a ledger writes."""
    for column, zero in _AMOUNT_COLUMNS.items():
        if column not in row:
            continue
        text = row[column]
        try:
            value = float(text) if isinstance(text, str) else math.nan
        except ValueError:
            value = math.nan
        most = 1.0 if column.endswith("delta") else math.inf
        if not ((value > 0 or (zero and value == 0)) and value < most and repr(value) == text):
            raise BudgetError(
                "The ledger holds an amount that is none, so what was spent is not certain, and nothing is released. "
                "The command ledger restore builds it again."
            )


def is_closed(connection: sqlite3.Connection) -> bool:
    """Whether the ledger was closed for good: it shows what it holds, and nothing is spent any more."""
    return connection.execute("SELECT 1 FROM closings LIMIT 1").fetchone() is not None


def group_of(connection: sqlite3.Connection, accounts: Iterable[str]) -> list[str]:
    """Some accounts and all that are linked to them, directly or through others, each once."""
    links = connection.execute("SELECT account, other FROM links").fetchall()
    group = dict.fromkeys(accounts)
    waiting = list(group)
    while waiting:
        here = waiting.pop()
        for pair in links:
            if here in pair:
                waiting += [name for name in pair if name not in group]
                group |= dict.fromkeys(pair)
    return list(group)


def cap_and_spent(
    connection: sqlite3.Connection,
    account: str,
    ceiling: Ceiling,
    *,
    opening: bool = False,
    joined: Iterable[str] = (),
) -> tuple[Amounts, Amounts]:
    """(cap in force, spent) of an account and all that are linked to it.

    ``opening`` takes an account that is not open as opened with the ceiling and linked to those that are ``joined``.

    In a closed ledger (restore.py) what was spent is not known: all of the cap, or more.
    """
    closed = is_closed(connection)
    group = group_of(connection, (account, *joined))
    query = "SELECT cap_epsilon, cap_delta FROM accounts WHERE account = ?"
    caps = {name: row for name in group for row in connection.execute(query, (name,))}
    stored = [(amount(row[0], "cap_epsilon"), amount(row[1], "cap_delta")) for row in caps.values()]
    if account not in caps:
        if closed:
            raise BudgetError(CLOSED)
        if not opening or ceiling.epsilon is None or ceiling.delta is None:
            raise BudgetError("This data set has no account in the ledger yet. Open one with a cap first.")
        stored.append((exact_amount(ceiling.epsilon), exact_amount(ceiling.delta)))
    query = "SELECT epsilon, delta FROM charges WHERE account = ?"
    rows = [row for name in group for row in connection.execute(query, (name,))]
    epsilon = sum((amount(row[0], "epsilon") for row in rows), Fraction(0))
    delta = sum((amount(row[1], "delta") for row in rows), Fraction(0))
    lowest = min(cap for cap, _ in stored), min(cap for _, cap in stored)
    spent = (max(epsilon, lowest[0]), max(delta, lowest[1])) if closed else (epsilon, delta)
    return ceiling.over(lowest), spent


def left_of(caps: Amounts, spent: Amounts) -> Amounts:
    """What may still be spent; a cap that was lowered below what is spent leaves nothing, not less."""
    epsilon, delta = (max(Fraction(0), cap - used) for cap, used in zip(caps, spent, strict=True))
    return epsilon, delta


def refuse_beyond(caps: Amounts, spent: Amounts, epsilon: float, delta: float, why: str = "") -> None:
    """Refuse an amount that does not fit under the cap; ``why`` is what else there is to say about it."""
    left = left_of(caps, spent)
    if exact_amount(epsilon) > left[0] or exact_amount(delta) > left[1]:
        raise BudgetError(
            f"This would spend ε = {epsilon:g} and δ = {delta:g}, and of the cap of ε = {float(caps[0]):g} and "
            f"δ = {float(caps[1]):g} there are ε = {float(left[0]):g} and δ = {float(left[1]):g} left. Nothing was "
            f"charged and nothing was drawn.{' ' * bool(why)}{why}"
        )
