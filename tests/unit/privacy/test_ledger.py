"""The ledger: what it charges and refuses, what it adds up, what it keeps, and what it never lets go."""

from __future__ import annotations

import multiprocessing
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from dpgrams_core import BudgetError, SpecError
from dpgrams_core.privacy.accountants import draw_shift
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.calibration import exact_epsilon, gaussian_multiplier
from dpgrams_core.privacy.composition import Spent, compose, events_from_json, events_to_json
from dpgrams_core.privacy.events import ExponentialDraws, GaussianRelease, GaussianRounds, SubsampledGaussianRounds
from dpgrams_core.privacy.ledger import book as ledger_module
from dpgrams_core.privacy.ledger.book import BLIND_SPOT, Ledger
from dpgrams_core.privacy.ledger.file import read_or_make_key
from tests.racing import how_many_could

EVENTS = (
    GaussianRelease(sensitivity=2**0.5, noise_scale=5.97),
    ExponentialDraws(count=4, epsilon_each=0.025, sensitivity=0.001),
    GaussianRounds(rounds=7, n=100, batch_size=100, sensitivity=1.0, noise_scale=8.0),
    GaussianRounds(rounds=7, n=100, batch_size=10, sensitivity=1.0, noise_scale=8.0),
    SubsampledGaussianRounds(
        rounds=3, n=100, batch_size=10, sensitivity=0.1, noise_scale=3.0, sensitivity_proven=False
    ),
)


def gaussian(epsilon, delta=1e-6):
    return (GaussianRelease(sensitivity=1.0, noise_scale=gaussian_multiplier(epsilon, delta)),)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite3")


@pytest.fixture
def account(ledger):
    name = ledger.account_of(b"content")
    ledger.open_account(name, cap_epsilon=1.0, cap_delta=1e-5)
    return name


def pay(ledger, account, epsilon=0.25, delta=1e-6, events=(), status="nominal"):
    return ledger.charge(account, events, epsilon=epsilon, delta=delta, status=status, description="a test")


class TestCap:
    def test_it_is_met_and_not_passed(self, ledger, account):
        for _ in range(4):
            pay(ledger, account)
        with pytest.raises(BudgetError, match=r"ε = 0\.25 .* cap of ε = 1 .* ε = 0 .*Nothing was charged"):
            pay(ledger, account)
        with pytest.raises(BudgetError):
            pay(ledger, account, epsilon=1e-6)
        assert len(ledger.charges(account)) == 4

    @pytest.mark.parametrize(("cap", "each", "times"), [(0.3, 0.1, 3), (1.0, 0.1, 10), (0.7, 0.07, 10), (2.2, 1.1, 2)])
    def test_numbers_count_as_they_are_written(self, cap, each, times, ledger):
        name = ledger.account_of(b"other")
        ledger.open_account(name, cap_epsilon=cap, cap_delta=0.5)
        for _ in range(times):
            pay(ledger, name, epsilon=each)
        assert ledger.account(name).left_epsilon == 0
        with pytest.raises(BudgetError):
            pay(ledger, name, epsilon=1e-6)

    def test_delta_has_a_cap_too(self, ledger, account):
        pay(ledger, account, epsilon=0.1, delta=9e-6)
        with pytest.raises(BudgetError, match=r"δ = 1e-06 left"):
            pay(ledger, account, epsilon=0.1, delta=2e-6)
        pay(ledger, account, epsilon=0.1, delta=1e-6)

    def test_a_refusal_leaves_room_for_what_fits(self, ledger, account):
        pay(ledger, account, epsilon=0.8)
        with pytest.raises(BudgetError):
            pay(ledger, account, epsilon=0.3)
        pay(ledger, account, epsilon=0.2)

    def test_a_cap_stays_what_it_was(self, ledger, account):
        pay(ledger, account, epsilon=0.8)
        ledger.open_account(account, cap_epsilon=100.0, cap_delta=0.1)
        again = ledger.account(account)
        assert (again.cap_epsilon, again.cap_delta) == (1.0, 1e-5)
        with pytest.raises(BudgetError):
            pay(ledger, account, epsilon=0.3)

    def test_accounts_are_apart(self, ledger, account):
        other = ledger.account_of(b"other content")
        with pytest.raises(BudgetError, match="no account"):
            pay(ledger, other)
        ledger.open_account(other, cap_epsilon=0.5, cap_delta=1e-5)
        pay(ledger, account, epsilon=1.0)
        assert ledger.account(other).left_epsilon == 0.5

    def test_room_is_looked_at_without_a_charge(self, ledger, account):
        ledger.check_room(account, epsilon=1.0, delta=1e-5)
        with pytest.raises(BudgetError, match="Nothing was charged"):
            ledger.check_room(account, epsilon=1.01, delta=0)
        assert ledger.charges() == []

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (-1.0, 0.0), (float("inf"), 0.0), (float("nan"), 0.0)])
    def test_what_is_no_amount_is_not_charged(self, epsilon, delta, ledger, account):
        with pytest.raises(SpecError):
            pay(ledger, account, epsilon=epsilon, delta=delta)
        assert ledger.charges() == []

    @pytest.mark.parametrize("delta", [-1e-9, 1.0])
    def test_what_is_no_delta(self, delta, ledger, account):
        with pytest.raises(ValueError, match="nothing was charged"):
            pay(ledger, account, delta=delta)

    def test_events_that_cost_more_than_the_charge(self, ledger, account):
        pay(ledger, account, 0.5, 1e-6, gaussian(0.5), "proven")
        with pytest.raises(ValueError, match="cost more"):
            pay(ledger, account, 0.49, 1e-6, gaussian(0.5), "proven")
        with pytest.raises(ValueError, match="cost more"):
            pay(ledger, account, 0.5, 1e-7, gaussian(0.5), "proven")
        with pytest.raises(ValueError, match="cost more"):
            pay(ledger, account, 0.5, 0.0, gaussian(0.5), "proven")
        assert len(ledger.charges()) == 1

    @pytest.mark.parametrize("caps", [(0.0, 1e-5), (1.0, 0.0), (1.0, 1.0), (float("inf"), 1e-5)])
    def test_what_is_no_cap(self, caps, ledger):
        with pytest.raises(SpecError):
            ledger.open_account("x", cap_epsilon=caps[0], cap_delta=caps[1])


class TestWhatItKeeps:
    def test_a_charge_is_read_back_as_it_was(self, ledger, account):
        made = pay(ledger, account, 0.1 + 0.2, 1e-7, gaussian(0.3, 1e-7), "proven")
        assert ledger.charges(account) == [made]
        assert Ledger(ledger.path).charges(account) == [made]
        assert not made.drawn
        ledger.confirm(made)
        ledger.confirm(made)
        assert [row.drawn for row in ledger.charges()] == [True]

    def test_an_unfinished_release_still_counts(self, ledger, account):
        pay(ledger, account, 0.75)
        assert ledger.account(account).left_epsilon == 0.25

    @pytest.mark.parametrize("table", ["charges", "accounts"])
    def test_nothing_is_deleted_or_changed(self, table, ledger, account):
        pay(ledger, account)
        connection = sqlite3.connect(ledger.path)
        try:
            with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
                connection.execute(f"DELETE FROM {table}")
            with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                connection.execute(f"UPDATE {table} SET {'epsilon' if table == 'charges' else 'cap_epsilon'} = '0'")
        finally:
            connection.close()

    def test_every_commit_is_synced(self, ledger):
        connection = ledger._connection()
        try:
            assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        finally:
            connection.close()

    def test_files_belong_to_their_owner(self, ledger):
        key = ledger.path.with_name(ledger.path.name + ".key")
        for path in (ledger.path, key):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert sorted(path.name for path in ledger.path.parent.iterdir()) == [ledger.path.name, key.name]

    def test_the_key_makes_the_names(self, ledger, tmp_path):
        other = Ledger(tmp_path / "other" / "ledger.sqlite3")
        assert ledger.account_of(b"x") != other.account_of(b"x")
        assert ledger.account_of(b"x") == Ledger(ledger.path).account_of(b"x")
        assert ledger.account_of(b"x") != ledger.account_of(b"y")

    def test_charges_hold_all_that_was_written_and_no_secret(self, ledger, account):
        pay(ledger, account, 0.25, 1e-6, gaussian(0.25), "proven")
        ledger.confirm(pay(ledger, account, 0.5))
        rows = ledger.charges(account)
        assert [row.epsilon for row in rows] == [0.25, 0.5]
        assert [row.drawn for row in rows] == [False, True]
        assert rows[0].events == gaussian(0.25)
        key = ledger.path.with_name(ledger.path.name + ".key").read_bytes()
        assert key.hex() not in str(ledger.charges())
        assert b"content".hex() not in str(ledger.charges())
        assert ledger.charges("nobody") == []


class TestFilesThatDoNotFit:
    def test_no_key(self, ledger):
        ledger.path.with_name(ledger.path.name + ".key").unlink()
        with pytest.raises(BudgetError, match="Put back the key"):
            Ledger(ledger.path)

    def test_another_key(self, ledger):
        ledger.path.with_name(ledger.path.name + ".key").write_bytes(bytes(32))
        with pytest.raises(BudgetError, match="do not belong together"):
            Ledger(ledger.path)

    def test_a_damaged_key(self, ledger):
        ledger.path.with_name(ledger.path.name + ".key").write_bytes(b"short")
        with pytest.raises(BudgetError, match="damaged"):
            Ledger(ledger.path)

    def test_no_database(self, tmp_path):
        (tmp_path / "ledger").write_bytes(b"no database, but long enough to be looked at" * 50)
        (tmp_path / "ledger.key").write_bytes(bytes(32))
        with pytest.raises(BudgetError, match=r"could not be opened|cannot be written or read"):
            Ledger(tmp_path / "ledger")

    def test_a_database_of_somebody_else(self, tmp_path):
        connection = sqlite3.connect(tmp_path / "ledger")
        connection.execute("CREATE TABLE mine (x)")
        connection.close()
        (tmp_path / "ledger.key").write_bytes(bytes(32))
        with pytest.raises(BudgetError, match="not one that this version knows"):
            Ledger(tmp_path / "ledger")

    def test_a_place_that_cannot_be(self, tmp_path):
        (tmp_path / "file").write_text("x")
        (tmp_path / "folder").mkdir()
        with pytest.raises(BudgetError, match="could not be opened"):
            Ledger(tmp_path / "file" / "ledger")
        with pytest.raises(BudgetError, match=r"could not be opened|cannot be written"):
            Ledger(tmp_path / "folder")

    def test_a_ledger_that_is_held_by_another(self, ledger, account, monkeypatch):
        monkeypatch.setattr(ledger_module, "WAIT_SECONDS", 0.05)
        other = sqlite3.connect(ledger.path, isolation_level=None)
        try:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(BudgetError, match=r"busy: .* Nothing was drawn and nothing was charged"):
                pay(ledger, account)
        finally:
            other.close()
        assert ledger.charges() == []

    def test_a_ledger_that_was_deleted(self, ledger, account):
        ledger.path.unlink()
        with pytest.raises(BudgetError, match="cannot be written or read"):
            pay(ledger, account)


class TestTotals:
    @pytest.mark.parametrize("event", EVENTS)
    def test_events_come_back(self, event):
        assert events_from_json(events_to_json([event, event])) == (event, event)

    def test_gaussian_releases_compose_exactly(self):
        totals = compose([Spent(0.5, 1e-6, "proven", gaussian(0.5))] * 9)
        assert totals.basic_epsilon == 4.5
        assert totals.delta == 9e-6
        assert totals.tight_epsilon == pytest.approx(exact_epsilon(gaussian_multiplier(0.5, 1e-6) / 3, 9e-6), rel=1e-9)
        assert totals.tight_epsilon < 2

    def test_one_release_costs_what_it_says(self):
        assert compose([Spent(0.5, 1e-6, "proven", gaussian(0.5))]).tight_epsilon == pytest.approx(0.5, rel=1e-9)
        rounds = EVENTS[2]
        epsilon = price([rounds], 1e-6).epsilon
        assert compose([Spent(epsilon, 1e-6, "proven", (rounds,))]).tight_epsilon == pytest.approx(epsilon, rel=1e-9)

    def test_pure_draws_add_up(self):
        draws = Spent(0.1, 0.0, "proven", (EVENTS[1],))
        assert compose([draws] * 3).tight_epsilon == pytest.approx(0.3)
        mixed = compose([draws, Spent(0.5, 1e-6, "proven", gaussian(0.5))])
        together = gaussian_multiplier(0.5, 1e-6) ** -2 + 4 * draw_shift(0.025) ** 2
        assert mixed.tight_epsilon == pytest.approx(exact_epsilon(together**-0.5, 1e-6), rel=1e-9)
        assert mixed.tight_epsilon < mixed.basic_epsilon == 0.6

    def test_what_cannot_be_composed_adds_as_charged(self):
        for item in (
            Spent(0.5, 1e-6, "nominal", ()),
            Spent(0.5, 1e-6, "nominal", gaussian(0.5)),
            Spent(0.5, 1e-6, "proven", ()),
            Spent(0.5, 1e-6, "proven", (EVENTS[3],)),
            Spent(0.5, 1e-6, "as published", (EVENTS[4],)),
        ):
            totals = compose([item] * 4)
            assert totals.tight_epsilon == totals.basic_epsilon == 2.0
            assert totals.unproven == (0 if item.status == "proven" else 4)
            assert ("nominal" in totals.statement) == (item.status != "proven")

    def test_tight_is_never_above_the_sum(self, rng):
        for _ in range(30):
            items = []
            for epsilon in rng.uniform(0.01, 3, rng.integers(1, 8)).tolist():
                delta = float(10 ** rng.uniform(-9, -5))
                items.append(Spent(epsilon, delta, "proven", gaussian(epsilon, delta)))
            totals = compose(items)
            assert totals.tight_epsilon <= totals.basic_epsilon
            # And never below what is certain: the dearest release alone, at the whole delta.
            dearest = max(exact_epsilon(item.events[0].noise_scale, totals.delta) for item in items)
            assert totals.tight_epsilon >= dearest * (1 - 1e-9)

    def test_nothing_spent(self, ledger, account):
        totals = ledger.totals(account)
        assert (totals.basic_epsilon, totals.tight_epsilon, totals.delta, totals.releases) == (0, 0, 0, 0)

    def test_both_stand_in_the_account(self, ledger, account):
        for _ in range(2):
            pay(ledger, account, 0.5, 1e-6, gaussian(0.5), "proven")
        totals = ledger.account(account).totals
        assert totals.basic_epsilon == 1.0
        assert 0.6 < totals.tight_epsilon < 0.8
        assert "added up" in totals.statement


def test_what_it_cannot_see_is_said():
    assert "same people" in BLIND_SPOT


def spend(arguments):
    """One process with several threads that all try to pay; how many could."""
    path, account, tries = arguments
    cost = {"epsilon": 0.1, "delta": 1e-7, "status": "nominal", "description": "a race"}
    return how_many_could(lambda: Ledger(path).charge(account, (), **cost), tries)


@pytest.mark.slow
def test_two_hundred_concurrent_charges_spend_at_most_the_cap(ledger):
    account = ledger.account_of(b"race")
    ledger.open_account(account, cap_epsilon=3.0, cap_delta=1e-3)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        done = sum(pool.map(spend, [(ledger.path, account, 50)] * 4, chunksize=1))
    rows = ledger.charges(account)
    assert len(rows) == done
    assert sum(Fraction(repr(row.epsilon)) for row in rows) == 3  # all that fits, and no more
    assert len({row.id for row in rows}) == done == 30


def test_ledgers_that_are_made_at_once_share_one_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(lambda _: Ledger(tmp_path / "new" / "ledger").account_of(b"x"), range(24)))
    assert len(names) == 1
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["ledger", "ledger.key"]


def test_a_ledger_that_another_process_makes_meanwhile_is_no_lost_key(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "ledger")
    looks = iter([False])  # the first look came before the other process made the key and the ledger

    def exists(path: Path) -> bool:
        return next(looks, None) is None and path.is_file()

    monkeypatch.setattr(Path, "exists", exists)
    assert read_or_make_key(ledger.path) == ledger._key
