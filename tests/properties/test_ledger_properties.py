"""Whatever happens to the files of a ledger, what is left of a budget never rises: a machine of random events."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dpgrams_core import BudgetError
from dpgrams_core.privacy.ledger import Ledger
from dpgrams_core.privacy.ledger_mark import HighWater, _lines
from dpgrams_core.privacy.ledger_restore import restore_ledger, verify_ledger

ACCOUNTS = ["one", "two", "three"]
AMOUNTS = [0.1, 0.25, 0.5]
CAP = 1.0


class CrashError(Exception):
    """The process is gone."""


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """These crashes are those of a process, not of a machine; tests/unit/test_ledger_crash.py kills processes."""
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
        self.backups, self.copies = [], []
        self.with_ledger(lambda ledger: None)

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

    @rule(account=st.sampled_from(ACCOUNTS), amount=st.sampled_from(AMOUNTS))
    def release(self, account, amount):
        self.with_ledger(lambda ledger: self.charge(ledger, account, amount))

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

    @rule()
    def copy(self):
        if self.path.exists():
            self.copies.append(self.path.read_bytes())

    @precondition(lambda self: self.copies)
    @rule(data=st.data())
    def put_back_a_copy(self, data):
        self.path.write_bytes(data.draw(st.sampled_from(self.copies)))

    @rule()
    def lose(self):
        self.path.unlink(missing_ok=True)

    @rule(part=st.floats(0.01, 0.99))
    def damage(self, part):
        if self.path.exists():
            content = bytearray(self.path.read_bytes())
            if content:
                content[int(part * len(content))] ^= 0x55
                self.path.write_bytes(content)

    @rule(part=st.floats(0.01, 0.99))
    def damage_the_mark(self, part):
        for place in self.marks.glob("*.mark"):
            content = bytearray(place.read_bytes())
            content[int(part * len(content))] ^= 0x15
            place.write_bytes(content)

    @rule()
    def lose_the_mark(self):
        for place in self.marks.glob("*.mark"):
            place.unlink()

    @rule(data=st.data())
    def restore(self, data):
        backup = data.draw(st.sampled_from([None, *self.backups]))
        with suppress(BudgetError):
            restore_ledger(self.path, backup, self.marks)
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


Budgets.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


@pytest.mark.usefixtures("no_waiting_for_the_disk")
class TestBudgets(Budgets.TestCase):
    """The machine, as pytest finds it."""
