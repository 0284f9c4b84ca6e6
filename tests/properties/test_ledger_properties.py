"""Whatever happens to the files of a ledger, what is left of a budget never rises: a machine of random events."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dpgrams_core import BudgetError
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.mark import HighWater, _lines
from dpgrams_core.privacy.ledger.restore import restore_ledger, verify_ledger

ACCOUNTS = ["one", "two", "three"]
AMOUNTS = [0.1, 0.25, 0.5]
CAP = 3.0
ACCIDENTS = ["older", "lost", "damaged", "mark lost", "mark damaged"]


class CrashError(Exception):
    """The process is gone."""


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """Crashes of a process, not of a machine; tests/unit/privacy/test_ledger_crash.py kills processes."""
    connect = Ledger._connection

    def connection(self):
        made = connect(self)
        made.execute("PRAGMA synchronous = OFF")
        return made

    monkeypatch.setattr(Ledger, "_connection", connection)
    monkeypatch.setattr(os, "fsync", lambda _: None)


class Budgets(RuleBasedStateMachine):
    """A ledger in use; its file gets lost, damaged and replaced, its mark gets lost, and it is restored."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path, self.marks = self.folder / "ledger" / "ledger", self.folder / "marks"
        self.drawn = {}  # what was paid for and drawn, exactly
        self.least = {}  # the least that was ever shown to be left
        self.backups = []

    @initialize(later=st.sampled_from(ACCOUNTS))
    def begin(self, later):
        """From the first step on there is a backup and something to forget."""
        self.release("one", [0.5])
        self.back_up()
        self.release(later, [0.5])

    def teardown(self):
        shutil.rmtree(self.folder)

    def with_ledger(self, act):
        """Let a new process open the ledger and do something, where it is not refused."""
        with suppress(BudgetError, CrashError):
            act(Ledger(self.path, marks=self.marks))

    def charge(self, ledger, account, amount):
        name = ledger.account_of(account.encode())
        ledger.open_account(name, cap_epsilon=CAP, cap_delta=0.5)
        self.drawn.setdefault(account, Fraction(0))
        ledger.charge(name, (), epsilon=amount, delta=0.0, status="nominal", description="a test")
        self.drawn[account] += Fraction(repr(amount))

    @rule(account=st.sampled_from(ACCOUNTS), amounts=st.lists(st.sampled_from(AMOUNTS), min_size=1, max_size=3))
    def release(self, account, amounts):
        for amount in amounts:
            self.with_ledger(lambda ledger, amount=amount: self.charge(ledger, account, amount))

    @rule(account=st.sampled_from(ACCOUNTS), amount=st.sampled_from(AMOUNTS), part=st.floats(0, 1))
    def crash_before_or_while_the_mark_is_written(self, account, amount, part):
        def append(self, entries):
            content = _lines(entries)
            with self.path.open("ab") as file:
                file.write(content[: int(part * len(content))])
            raise CrashError

        with pytest.MonkeyPatch.context() as patch:

            def act(ledger):
                patch.setattr(HighWater, "append", append)
                self.charge(ledger, account, amount)

            self.with_ledger(act)

    @rule()
    def back_up(self):
        place = self.folder / f"backup_{len(self.backups)}"
        self.with_ledger(lambda ledger: (ledger.back_up(place), self.backups.append(place)))

    @precondition(lambda self: self.backups)
    @rule(
        accidents=st.lists(st.sampled_from(ACCIDENTS), min_size=1, max_size=2),
        where=st.floats(0.01, 0.99),
        way_out=st.sampled_from(["restore", "restore a backup", "undo"]),
        data=st.data(),
    )
    def accident(self, accidents, where, way_out, data):
        """Something happens to the files; then they are put back as they were, or the ledger is restored."""
        marks = list(self.marks.glob("*.mark"))
        before = {place: place.read_bytes() for place in (self.path, *marks) if place.exists()}
        backup = data.draw(st.sampled_from(self.backups))
        for accident in accidents:
            for place in marks if "mark" in accident else [self.path]:
                if "lost" in accident:
                    place.unlink(missing_ok=True)
                elif "older" in accident:
                    shutil.copy(backup, place)
                elif place.exists() and place.stat().st_size:
                    content = bytearray(place.read_bytes())
                    content[int(where * len(content))] ^= 0x15
                    place.write_bytes(content)
        self.nothing_is_refilled()
        drawn = dict(self.drawn)
        self.release("one", [0.1])  # whoever tries to go on
        if way_out == "undo":
            if drawn == self.drawn:
                for place, content in before.items():
                    place.write_bytes(content)
            return
        with suppress(BudgetError):
            restore_ledger(self.path, backup if way_out == "restore a backup" else None, self.marks)
            assert verify_ledger(self.path, self.marks).problems == ()  # and it can be used at once
            self.drawn_is_there(Ledger(self.path, marks=self.marks))

    @invariant()
    def nothing_is_refilled(self):
        self.with_ledger(self.drawn_is_there)

    def drawn_is_there(self, ledger):
        for account, drawn in self.drawn.items():
            name = ledger.account_of(account.encode())
            if not ledger.is_open(name):  # then it must not be opened again
                with pytest.raises(BudgetError):
                    ledger.open_account(name, cap_epsilon=CAP, cap_delta=0.5)
                continue
            left = Fraction(repr(ledger.account(name).left_epsilon))
            assert left <= Fraction(repr(CAP)) - drawn
            assert left <= self.least.get(account, left)
            self.least[account] = left


# A failure is shown as it was found: to make it shorter takes longer than a test may.
Budgets.TestCase.settings = settings(max_examples=30, stateful_step_count=20, deadline=None, phases=[Phase.generate])


@pytest.mark.slow
@pytest.mark.usefixtures("no_waiting_for_the_disk")
class TestBudgets(Budgets.TestCase):
    """The machine, as pytest finds it."""
