"""The cap of an account: the one that it was opened with, and never more than what its installation allows now.

The cap is on the *sum* of ε and the sum of δ (basic composition): always valid, also when the next release is chosen
after seeing the last.  The tight total is shown beside it (composition.py).
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from fractions import Fraction

from dpgrams_core.checks import between, positive
from dpgrams_core.errors import BudgetError
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


def cap_and_spent(
    connection: sqlite3.Connection, account: str, ceiling: Ceiling, *, opening: bool = False
) -> tuple[Amounts, Amounts]:
    """(cap in force, spent) of an account; ``opening`` takes one that is not open as opened with the ceiling."""
    caps = connection.execute("SELECT cap_epsilon, cap_delta FROM accounts WHERE account = ?", (account,)).fetchone()
    if caps is None:
        if not opening or ceiling.epsilon is None or ceiling.delta is None:
            raise BudgetError("This data set has no account in the ledger yet. Open one with a cap first.")
        return (exact_amount(ceiling.epsilon), exact_amount(ceiling.delta)), (Fraction(0), Fraction(0))
    rows = connection.execute("SELECT epsilon, delta FROM charges WHERE account = ?", (account,)).fetchall()
    epsilon, delta = (sum((Fraction(row[part]) for row in rows), Fraction(0)) for part in (0, 1))
    return ceiling.over((Fraction(caps[0]), Fraction(caps[1]))), (epsilon, delta)


def left_of(caps: Amounts, spent: Amounts) -> Amounts:
    """What may still be spent; a cap that was lowered below what is spent leaves nothing, not less."""
    epsilon, delta = (max(Fraction(0), cap - used) for cap, used in zip(caps, spent, strict=True))
    return epsilon, delta


def refuse_beyond(caps: Amounts, spent: Amounts, epsilon: float, delta: float) -> None:
    """Refuse an amount that does not fit under the cap."""
    left = left_of(caps, spent)
    if exact_amount(epsilon) > left[0] or exact_amount(delta) > left[1]:
        raise BudgetError(
            f"This would spend ε = {epsilon:g} and δ = {delta:g}, and of the cap of ε = {float(caps[0]):g} and "
            f"δ = {float(caps[1]):g} there are ε = {float(left[0]):g} and δ = {float(left[1]):g} left. Nothing was "
            "charged and nothing was drawn."
        )
