"""The cap in force: the one that a data set was opened with, and never more than its installation allows now."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgrams_core import BudgetError, SpecError
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.caps import Ceiling, left_of, refuse_beyond

AMOUNTS = st.integers(1, 10**6 - 1).map(lambda number: Fraction(number, 10**6))


@pytest.fixture
def opened(tmp_path):
    """``opened(epsilon, delta)``: the ledger with that ceiling, and the account, which was opened with 1 and 1e-5."""
    first = Ledger(tmp_path / "ledger")
    account = first.account_of(b"content")
    first.open_account(account, cap_epsilon=1.0, cap_delta=1e-5)
    return lambda epsilon=None, delta=None: (Ledger(first.path, cap_epsilon=epsilon, cap_delta=delta), account)


def pay(ledger, account, epsilon, delta=1e-6):
    return ledger.charge(account, (), epsilon=epsilon, delta=delta, status="nominal", description="a test")


def test_a_lowered_cap_holds_for_what_is_open(opened):
    ledger, account = opened(0.6, 5e-6)
    assert (ledger.account(account).cap_epsilon, ledger.account(account).cap_delta) == (0.6, 5e-6)
    pay(ledger, account, 0.5)
    for epsilon, delta in ((0.2, 1e-6), (0.1, 5e-6)):
        for ask in (ledger.check_room, lambda name, **amount: pay(ledger, name, **amount)):
            with pytest.raises(BudgetError, match=r"cap of ε = 0\.6 and δ = 5e-06 there are ε = 0\.1"):
                ask(account, epsilon=epsilon, delta=delta)
    pay(ledger, account, 0.1)
    assert ledger.account(account).left_epsilon == 0


def test_a_cap_below_what_is_spent_leaves_nothing_and_not_less(opened):
    wide, account = opened()
    pay(wide, account, 0.9, 9e-6)
    ledger, _ = opened(0.5, 1e-6)
    state = ledger.account(account)
    assert (state.left_epsilon, state.left_delta, state.totals.basic_epsilon) == (0, 0, 0.9)
    with pytest.raises(BudgetError, match=r"there are ε = 0 and δ = 0 left"):
        ledger.check_room(account, epsilon=0.01, delta=0.0)
    assert wide.account(account).left_epsilon == 0.1


def test_a_raised_cap_does_not(opened):
    ledger, account = opened(100.0, 0.1)
    ledger.open_account(account, cap_epsilon=100.0, cap_delta=0.1)
    assert (ledger.account(account).cap_epsilon, ledger.account(account).cap_delta) == (1.0, 1e-5)
    with pytest.raises(BudgetError):
        pay(ledger, account, 1.1)


def test_room_is_looked_at_before_an_account_is_opened(opened):
    ledger, _ = opened(0.3, 1e-5)
    new = ledger.account_of(b"other")
    ledger.check_room(new, epsilon=0.3, delta=1e-6)
    with pytest.raises(BudgetError, match=r"cap of ε = 0\.3"):
        ledger.check_room(new, epsilon=0.31, delta=1e-6)
    with pytest.raises(BudgetError, match="no account"):  # and it still is none
        ledger.account(new)
    with pytest.raises(BudgetError, match="no account"):
        pay(ledger, new, 0.1)
    with pytest.raises(BudgetError, match="no account"):  # nothing says what its cap would be
        opened()[0].check_room(new, epsilon=0.1, delta=0.0)


@pytest.mark.parametrize("caps", [(0.0, 1e-5), (-1.0, None), (None, 1.0), (float("nan"), None), (None, 0.0)])
def test_what_is_no_cap(caps, tmp_path):
    with pytest.raises(SpecError):
        Ledger(tmp_path / "ledger", cap_epsilon=caps[0], cap_delta=caps[1])
    assert list(tmp_path.iterdir()) == []


@given(st.tuples(AMOUNTS, AMOUNTS), st.tuples(AMOUNTS, AMOUNTS), st.lists(AMOUNTS, max_size=8))
def test_whatever_is_asked_for_the_lower_cap_is_never_passed(stored, most, wishes):
    caps = Ceiling(epsilon=float(most[0]), delta=float(most[1])).over(stored)
    assert caps == (min(stored[0], most[0]), min(stored[1], most[1]))
    spent = (Fraction(0), Fraction(0))
    for wish in wishes:
        try:
            refuse_beyond(caps, spent, float(wish), float(wish / 2))
        except BudgetError:
            assert wish > caps[0] - spent[0] or wish / 2 > caps[1] - spent[1]
        else:
            spent = (spent[0] + wish, spent[1] + wish / 2)
    assert all(used <= cap for used, cap in zip(spent, caps, strict=True))
    assert left_of(caps, spent) == (caps[0] - spent[0], caps[1] - spent[1])
