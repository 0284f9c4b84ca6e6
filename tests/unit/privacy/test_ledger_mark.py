"""The high-water mark: a ledger that is put back from a copy is refused, and nothing that is lost refills a budget."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from dpgrams_core import BudgetError, Dataset
from dpgrams_core.own_data.release import release
from dpgrams_core.privacy.ledger import mark as ledger_mark
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.chain import Entry, entries
from dpgrams_core.privacy.ledger.file import key_place
from dpgrams_core.privacy.ledger.mark import HighWater, LedgerBusyError, Reached, marks_folder
from dpgrams_core.privacy.ledger.restore import agrees, verify_ledger
from dpgrams_core.privacy.noise import ReleaseNoise


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger" / "ledger.sqlite3")
    made.open_account(made.account_of(b"one"), cap_epsilon=3.0, cap_delta=1e-3)
    return made


def pay(ledger, epsilon=0.5, account=b"one"):
    return ledger.charge(
        ledger.account_of(account), (), epsilon=epsilon, delta=1e-6, status="nominal", description="a test"
    )


def left(ledger):
    return ledger.account(ledger.account_of(b"one")).left_epsilon


def chain(ledger):
    with ledger._reading() as connection:
        return list(entries(connection))


class TestBackupsThatArePutBack:
    @pytest.mark.parametrize("charges", [1, 3])
    def test_an_older_copy_is_refused(self, charges, ledger):
        pay(ledger)
        older = ledger.path.read_bytes()
        for _ in range(charges):
            pay(ledger)
        newer = ledger.path.read_bytes()
        ledger.path.write_bytes(older)
        for call in (lambda: Ledger(ledger.path), lambda: left(ledger), lambda: pay(ledger)):
            with pytest.raises(
                BudgetError, match=r"behind its high-water mark: .* ledger restore adds what is missing"
            ):
                call()
        assert "older copy" in verify_ledger(ledger.path).problems[0]
        ledger.path.write_bytes(newer)
        assert left(Ledger(ledger.path)) == 2.5 - 0.5 * charges

    def test_so_is_the_whole_folder(self, ledger, tmp_path):
        pay(ledger)
        shutil.copytree(ledger.path.parent, tmp_path / "backup")
        pay(ledger)
        shutil.rmtree(ledger.path.parent)
        shutil.copytree(tmp_path / "backup", ledger.path.parent)
        with pytest.raises(BudgetError, match="behind its high-water mark"):
            Ledger(ledger.path)

    def test_and_a_copy_in_another_place(self, ledger, tmp_path):
        """One mark for both, so that a copy is no second budget: the first to go on leaves the other behind."""
        shutil.copytree(ledger.path.parent, tmp_path / "copy")
        copy = Ledger(tmp_path / "copy" / ledger.path.name)
        pay(copy)
        with pytest.raises(BudgetError, match="behind"):
            pay(ledger)
        shutil.copy(copy.path, ledger.path)
        assert left(Ledger(ledger.path)) == 2.5

    def test_a_copy_that_went_on_for_itself(self, ledger, tmp_path):
        shutil.copytree(ledger.path.parent, tmp_path / "copy")
        (tmp_path / "marks").mkdir()  # on another machine, say
        shutil.copy(ledger.mark.path, tmp_path / "marks")
        copy = Ledger(tmp_path / "copy" / ledger.path.name, marks=tmp_path / "marks")
        pay(ledger, 0.5)
        pay(copy, 0.25)
        pay(copy, 0.25)
        shutil.copy(copy.path, ledger.path)
        with pytest.raises(BudgetError, match="not the one that its high-water mark was made for"):
            Ledger(ledger.path)


class TestTheFile:
    def test_it_holds_the_chain_and_belongs_to_its_owner(self, ledger):
        pay(ledger)
        lines, torn = ledger.mark.lines()
        assert lines == chain(ledger)
        assert [line.kind for line in lines] == ["ledger", "account", "charge"]
        assert not torn
        assert ledger.mark.path.parent != ledger.path.parent
        assert stat.S_IMODE(ledger.mark.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(ledger.mark.path.with_suffix(".lock").stat().st_mode) == 0o600

    def test_its_folder_belongs_to_its_owner(self, tmp_path):
        made = Ledger(tmp_path / "ledger" / "ledger", marks=tmp_path / "marks" / "here")
        for folder in (made.mark.path.parent, made.path.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    def test_where_it_is(self, monkeypatch, tmp_path):
        monkeypatch.setenv("DPGRAMS_LEDGER_MARK", str(tmp_path / "a"))
        assert marks_folder() == tmp_path / "a"
        monkeypatch.delenv("DPGRAMS_LEDGER_MARK")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "b"))
        assert marks_folder() == tmp_path / "b" / "dpgrams"
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.setenv("HOME", str(tmp_path / "c"))
        assert marks_folder() == tmp_path / "c" / ".local" / "state" / "dpgrams"

    def test_it_is_on_the_disk_before_a_charge_is_given(self, ledger, monkeypatch):
        synced = []
        sync = os.fsync
        monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(os.fstat(handle).st_ino), sync(handle)))
        pay(ledger)
        assert synced == [ledger.mark.path.stat().st_ino]

    def test_lines_longer_than_what_is_read_at_once(self, tmp_path, monkeypatch):
        monkeypatch.setattr(ledger_mark, "_CHUNK", 16)
        mark = HighWater(tmp_path, b"key")
        rows = [Entry(number, "kind", "x" * 7**number, "m" * number) for number in range(1, 5)]
        mark.write(rows[:1])
        for number, row in enumerate(rows[1:], start=2):
            mark.append([row])
            assert mark.reached() == Reached(number, "m" * number, torn=False)
        with mark.path.open("ab") as file:
            file.write(b"[5, " + b"y" * 100)
        assert mark.reached() == Reached(4, "mmmm", torn=True)
        mark.append([Entry(5, "kind", "", "mmmmm")])
        assert mark.reached() == Reached(5, "mmmmm", torn=False)
        assert mark.lines() == ([*rows, Entry(5, "kind", "", "mmmmm")], False)


class TestLost:
    @pytest.mark.parametrize("how", ["gone", "empty", "nonsense"])
    def test_a_lost_mark_is_not_made_again(self, how, ledger):
        pay(ledger)
        kept = ledger.mark.path.read_bytes()
        ledger.mark.path.unlink() if how == "gone" else ledger.mark.path.write_bytes(b"no mark\n" * (how != "empty"))
        for _ in range(2):
            with pytest.raises(BudgetError, match=r"high-water mark is (not where it was|damaged).* ledger restore"):
                Ledger(ledger.path)
            with pytest.raises(BudgetError, match="high-water mark"):
                pay(ledger)
        assert verify_ledger(ledger.path).problems
        ledger.mark.path.write_bytes(kept)  # what the sentence says to do
        assert left(Ledger(ledger.path)) == 2.5

    def test_a_mark_that_is_behind_is_brought_up(self, ledger):
        older = ledger.mark.path.read_bytes()
        pay(ledger)
        newer = ledger.mark.path.read_bytes()
        for rest in (b"", newer[len(older) : -7], newer[len(older) : -1]):  # a crash before, or while, it was written
            ledger.mark.path.write_bytes(older + rest)
            assert left(Ledger(ledger.path)) == 2.5
            assert ledger.mark.path.read_bytes() == newer

    def test_half_a_line_says_that_an_entry_was_there(self, ledger):
        """Every line is written after the database, so a ledger without its entry is an older copy."""
        older, mark = ledger.path.read_bytes(), ledger.mark.path.read_bytes()
        pay(ledger)
        ledger.mark.path.write_bytes(ledger.mark.path.read_bytes()[: len(mark) + 5])
        ledger.path.write_bytes(older)
        with pytest.raises(BudgetError, match="behind its high-water mark"):
            Ledger(ledger.path)

    def test_a_changed_line_in_the_middle_is_found_by_verify(self, ledger):
        pay(ledger)
        first, *rest = ledger.mark.path.read_bytes().split(b"\n")
        ledger.mark.path.write_bytes(b"\n".join([first.replace(b"ledger", b"LEDGER"), *rest]))
        assert "ledger restore makes it again" in verify_ledger(ledger.path).problems[0]

    def test_a_mark_that_cannot_be_written_stops_a_release(self, ledger, monkeypatch):
        def full_disk(*_):
            raise OSError("no space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(ledger_mark, "_write", full_disk)
            with pytest.raises(
                BudgetError, match=r"mark cannot be written.*Nothing was drawn; what was charged counts"
            ):
                pay(ledger)
        assert left(Ledger(ledger.path)) == 2.5
        assert ledger.mark.lines()[0] == chain(ledger)

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(BudgetError, match="DPGRAMS_LEDGER_MARK"):
            Ledger(tmp_path / "ledger", marks=tmp_path / "file" / "marks")


class TestDamagedMarks:
    """Whether a chain holds all that the lines of a damaged mark may have held."""

    @pytest.fixture
    def held(self, ledger):
        for _ in range(3):
            pay(ledger)
        return ledger._chain_key, chain(ledger)

    def test_all_lines_and_one_that_is_broken(self, held):
        key, found = held
        for number in range(len(found)):
            lines = [*found[:number], None, *found[number + 1 :]]
            assert agrees(key, lines, False, found)
            assert not agrees(key, lines, False, found[:-1])
            assert not agrees(key, lines, True, found)
        assert agrees(key, found[:-1], True, found)

    def test_lines_of_another_chain(self, held, tmp_path):
        key, found = held
        other = Ledger(tmp_path / "other" / "ledger", marks=tmp_path / "marks")
        pay_key = other._chain_key
        assert not agrees(pay_key, chain(other), False, found)
        assert agrees(key, chain(other), False, found)  # lines that no key of ours has sealed say nothing


class TestTheLock:
    @contextmanager
    def other(self, ledger):
        with HighWater(ledger.mark.path.parent, ledger._key).held(1.0):
            yield

    def test_a_ledger_that_is_held_answers_within_five_seconds(self, ledger):
        begin = time.monotonic()
        with self.other(ledger), pytest.raises(LedgerBusyError, match="nothing was charged; try again"):
            pay(ledger)
        assert time.monotonic() - begin < 5
        assert ledger.charges() == []
        pay(ledger)

    def test_so_does_one_whose_database_is_locked_at_every_door(self, ledger):
        charge, one = pay(ledger), ledger.account_of(b"one")
        doors = [
            lambda: Ledger(ledger.path),
            lambda: ledger.open_account("another", cap_epsilon=1.0, cap_delta=1e-5),
            lambda: pay(ledger),
            lambda: ledger.confirm(charge),
            lambda: ledger.keep(charge, b"x"),
            lambda: ledger.account(one),
            lambda: ledger.kept(one),
            lambda: ledger.check_room(one, epsilon=0.1, delta=0.0),
        ]

        def answer(door):
            begin = time.monotonic()
            with pytest.raises(LedgerBusyError, match="The ledger is busy"):
                door()
            return time.monotonic() - begin

        other = sqlite3.connect(ledger.path, isolation_level=None)
        try:
            other.execute("BEGIN EXCLUSIVE")
            with ThreadPoolExecutor(len(doors)) as pool:
                assert max(pool.map(answer, doors)) < 5
        finally:
            other.close()
        assert len(ledger.charges()) == 1
        assert ledger.kept(one) == []

    def test_a_release_that_is_drawn_is_not_lost(self, ledger, monkeypatch):
        draw, begin, other = ReleaseNoise.independent_gaussian, [], sqlite3.connect(ledger.path, isolation_level=None)

        def drawn(self, exact, scale):
            other.execute("BEGIN EXCLUSIVE")
            begin.append(time.monotonic())
            return draw(self, exact, scale)

        monkeypatch.setattr(ReleaseNoise, "independent_gaussian", drawn)
        data = Dataset(name="mine", kind="modes", points=np.linspace(-3, 3, 60)[:, None], box=[(-4, 4)], private=True)
        try:
            paid = release("functional", data, ledger, epsilon=0.5)
            assert time.monotonic() - begin[0] < 5
        finally:
            other.close()
        assert paid.release.surface is not None
        assert not paid.kept
        assert [charge.epsilon for charge in ledger.charges()] == [0.5]

    def test_it_can_be_read_meanwhile(self, ledger):
        with self.other(ledger):
            assert left(Ledger(ledger.path)) == 3.0

    def test_a_holder_that_ends_lets_the_next_in(self, ledger):
        with pytest.raises(KeyError), self.other(ledger):
            raise KeyError
        pay(ledger)


def test_files_that_others_could_read_are_closed_to_them(ledger):
    os.chmod(ledger.path, 0o644)
    Ledger(ledger.path)
    for path in (ledger.path, key_place(ledger.path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
