"""The way out: a ledger that is restored has what was spent since, or nothing left; and the command says which."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from contextlib import closing

import pytest

from dpgrams_core import BudgetError
from dpgrams_core.cli.main import main
from dpgrams_core.privacy.ledger import chain as ledger_chain
from dpgrams_core.privacy.ledger import restore as ledger_restore
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.file import key_place
from dpgrams_core.privacy.ledger.mark import LedgerBusyError
from dpgrams_core.privacy.ledger.restore import restore_ledger, verify_ledger
from tests.unit.privacy.test_ledger_kept import as_version


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """One charge of 0.5 of 3, which is kept; it is the ledger of the settings, and its mark is alone in a folder."""
    monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "ledger" / "ledger.sqlite3"))
    monkeypatch.setenv("DPGRAMS_LEDGER_MARK", str(tmp_path / "marks"))
    made = Ledger(tmp_path / "ledger" / "ledger.sqlite3")
    made.open_account(made.account_of(b"one"), cap_epsilon=3.0, cap_delta=1e-3)
    made.keep(pay(made), b"the first release")
    return made


@pytest.fixture
def backup(ledger, tmp_path):
    place = tmp_path / "backups" / "first"
    assert ledger.back_up(place) == 5
    return place


def pay(ledger, epsilon=0.5, account=b"one"):
    return ledger.charge(
        ledger.account_of(account), (), epsilon=epsilon, delta=1e-6, status="nominal", description="a test"
    )


def left(path, account=b"one"):
    ledger = Ledger(path)
    return ledger.account(ledger.account_of(account)).left_epsilon


def kept(path):
    ledger = Ledger(path)
    return [content for _, content in ledger.kept(ledger.account_of(b"one"))]


class TestBackup:
    def test_it_is_the_ledger_and_its_key(self, ledger, backup):
        assert sorted(path.name for path in backup.parent.iterdir()) == ["first", "first.key"]
        assert key_place(backup).read_bytes() == key_place(ledger.path).read_bytes()
        for path in (backup, key_place(backup)):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert verify_ledger(backup).problems == ()

    def test_it_is_no_second_budget(self, ledger, backup):
        assert left(backup) == 2.5
        pay(ledger)
        with pytest.raises(BudgetError, match="behind its high-water mark"):
            Ledger(backup)

    def test_nor_is_it_on_another_machine(self, backup, tmp_path):
        with pytest.raises(BudgetError, match="high-water mark is not where it was"):
            Ledger(backup, marks=tmp_path / "elsewhere")

    def test_nothing_is_overwritten(self, ledger, backup):
        before = backup.read_bytes()
        with pytest.raises(BudgetError, match="Give another name"):
            ledger.back_up(backup)
        assert backup.read_bytes() == before


class TestRestore:
    def test_what_was_spent_since_is_added(self, ledger, backup):
        pay(ledger, 1.0)
        two = ledger.account_of(b"two")
        ledger.open_account(two, cap_epsilon=1.0, cap_delta=1e-5)
        pay(ledger, 0.75, b"two")
        rows = Ledger(ledger.path).charges()
        shutil.copy(backup, ledger.path)
        with pytest.raises(BudgetError, match="ledger restore"):
            Ledger(ledger.path)
        done = restore_ledger(ledger.path, backup)
        assert (done.entries, done.added, done.lost, done.closed) == (8, 3, 0, False)
        assert Ledger(ledger.path).charges() == rows
        assert (left(ledger.path), left(ledger.path, b"two")) == (1.5, 0.25)
        assert kept(ledger.path) == [b"the first release"]
        assert verify_ledger(ledger.path).problems == ()
        pay(Ledger(ledger.path), 1.5)
        assert left(ledger.path) == 0

    @pytest.mark.parametrize("state", ["gone", "empty", "nonsense", "cut", "changed"])
    def test_it_needs_no_file_but_the_mark(self, state, ledger):
        """What was released comes back from the file that is replaced where that can still be read."""
        pay(ledger, 1.0)
        whole = ledger.path.read_bytes()
        ledger.path.unlink()
        if state == "changed":
            ledger.path.write_bytes(whole)
            with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
                connection.execute("DROP TRIGGER charges_hold")
                connection.execute("UPDATE charges SET epsilon = '0.1'")
        elif state != "gone":
            ledger.path.write_bytes({"empty": b"", "nonsense": b"x" * 9000, "cut": whole[: len(whole) // 2]}[state])
        done = restore_ledger(ledger.path)
        assert not done.closed
        assert left(ledger.path) == 1.5
        assert done.lost == (state != "changed")
        assert (done.aside is not None) == (state != "gone")
        assert kept(ledger.path) == [b"the first release"] * (state == "changed")
        assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600

    def test_a_content_that_was_kept_instead_comes_back(self, ledger, backup):
        ledger.keep(ledger.charges()[0], b"the first release, read again", instead=True)
        current = ledger.path.read_bytes()
        assert restore_ledger(ledger.path, backup).lost == 0
        assert kept(ledger.path) == [b"the first release, read again"]
        ledger.path.write_bytes(current[:5000])
        assert restore_ledger(ledger.path, backup).lost == 1  # the backup has the older content, which is not it
        assert kept(ledger.path) == []

    def test_a_charge_that_only_the_ledger_has_stays(self, ledger, backup):
        """A crash came before the mark was written; nothing was drawn, and yet it is not given back."""
        mark = ledger.mark.path.read_bytes()
        pay(ledger, 1.0)
        ledger.mark.path.write_bytes(mark)
        restore_ledger(ledger.path, backup)
        assert left(ledger.path) == 1.5

    def test_a_sound_ledger_is_the_same_afterwards(self, ledger, backup):
        rows = ledger.charges()
        done = restore_ledger(ledger.path, backup)
        assert (done.added, done.lost, done.closed) == (0, 0, False)
        assert ledger.charges() == rows

    def test_the_key_may_come_from_the_backup(self, ledger, backup):
        pay(ledger)
        shutil.rmtree(ledger.path.parent)
        restore_ledger(ledger.path, backup)
        assert left(ledger.path) == 2.0
        assert key_place(ledger.path).read_bytes() == key_place(backup).read_bytes()

    def test_what_a_crash_left_beside_the_old_file_is_not_played_into_the_new_one(self, ledger, backup):
        beside = ledger.path.with_name(ledger.path.name + "-journal")
        beside.write_bytes(b"x" * 1000)
        restore_ledger(ledger.path, backup)
        assert not beside.exists()
        assert left(ledger.path) == 2.5


class TestWithoutTheMark:
    @pytest.fixture
    def closed(self, ledger, backup):
        """The mark is lost, and the ledger is put back from a backup."""
        ledger.open_account(ledger.account_of(b"two"), cap_epsilon=3.0, cap_delta=1e-3)
        pay(ledger, 3.0, b"two")
        ledger.mark.path.unlink()
        shutil.copy(backup, ledger.path)
        assert restore_ledger(ledger.path, backup).closed
        return Ledger(ledger.path)

    def test_nothing_is_left(self, closed):
        one = closed.account_of(b"one")
        assert (closed.account(one).left_epsilon, closed.account(one).left_delta) == (0, 0)
        with pytest.raises(BudgetError, match="ε = 0 and"):
            pay(closed, 0.01)
        with pytest.raises(BudgetError):
            closed.check_room(one, epsilon=0.01, delta=0.0)
        assert verify_ledger(closed.path).problems == ()
        assert any("It is closed" in line for line in verify_ledger(closed.path).sound)

    def test_not_for_a_data_set_that_it_does_not_know(self, closed):
        """It may be one that was opened, and spent, after the backup."""
        two = closed.account_of(b"two")
        assert not closed.is_open(two)
        with pytest.raises(BudgetError, match="no budget left for any data set"):
            closed.open_account(two, cap_epsilon=3.0, cap_delta=1e-3)
        ceiling = Ledger(closed.path, cap_epsilon=3.0, cap_delta=1e-3)
        with pytest.raises(BudgetError, match="no budget left for any data set"):
            ceiling.check_room(two, epsilon=0.1, delta=0.0)

    def test_what_was_kept_is_still_shown(self, closed):
        assert kept(closed.path) == [b"the first release"]

    def test_it_stays_closed(self, closed, backup, tmp_path):
        closed.back_up(tmp_path / "second")
        for place in (None, backup, tmp_path / "second"):
            assert restore_ledger(closed.path, place).closed
            assert left(closed.path) == 0

    def test_a_sound_ledger_is_closed_too(self, ledger):
        """Nobody can tell whether it is an older copy."""
        ledger.mark.path.unlink()
        assert restore_ledger(ledger.path).closed
        assert left(ledger.path) == 0

    def test_a_damaged_mark_is_made_again_from_a_ledger_that_holds_all_its_lines(self, ledger, backup):
        lines = ledger.mark.path.read_bytes().split(b"\n")
        for number in range(len(lines) - 1):
            broken = [b"x" + line if place == number else line for place, line in enumerate(lines)]
            ledger.mark.path.write_bytes(b"\n".join(broken))
            assert not restore_ledger(ledger.path, backup).closed
            assert left(ledger.path) == 2.5
            assert ledger.mark.path.read_bytes() == b"\n".join(lines)

    def test_and_otherwise_the_ledger_is_closed(self, ledger, backup):
        pay(ledger)
        lines = ledger.mark.path.read_bytes().split(b"\n")
        ledger.mark.path.write_bytes(b"\n".join([*lines[:-2], b"x" + lines[-2], b""]))
        ledger.path.unlink()
        assert restore_ledger(ledger.path, backup).closed
        assert left(ledger.path) == 0


class TestRefusals:
    def test_a_damaged_backup(self, ledger, backup):
        before = ledger.path.read_bytes(), ledger.mark.path.read_bytes()
        whole = backup.read_bytes()
        backup.write_bytes(whole.replace(b"a test", b"A test"))
        with pytest.raises(BudgetError, match="The backup cannot be used"):
            restore_ledger(ledger.path, backup)
        assert (ledger.path.read_bytes(), ledger.mark.path.read_bytes()) == before
        assert left(ledger.path) == 2.5

    def test_the_backup_of_another_ledger(self, ledger, tmp_path):
        other = Ledger(tmp_path / "other" / "ledger")
        other.back_up(tmp_path / "foreign")
        with pytest.raises(BudgetError, match="do not belong together"):
            restore_ledger(ledger.path, tmp_path / "foreign")
        assert left(ledger.path) == 2.5

    def test_the_backup_of_a_copy_that_went_on_for_itself(self, ledger, backup, tmp_path):
        shutil.copytree(ledger.mark.path.parent, tmp_path / "elsewhere")
        copy = Ledger(backup, marks=tmp_path / "elsewhere")
        pay(copy, 0.25)
        pay(copy, 0.25)
        pay(ledger)
        with pytest.raises(BudgetError, match="went on for itself"):
            restore_ledger(ledger.path, backup)
        assert left(ledger.path) == 2.0

    def test_nothing_to_build_it_from(self, ledger):
        ledger.mark.path.unlink()
        ledger.path.unlink()
        with pytest.raises(BudgetError, match="no sound backup"):
            restore_ledger(ledger.path)

    def test_no_ledger(self, tmp_path):
        for call in (restore_ledger, verify_ledger):
            with pytest.raises(BudgetError, match="no ledger at this place"):
                call(tmp_path / "nothing")


class TestCommand:
    def test_verify(self, ledger, capsys):
        assert main(["ledger", "verify"]) == 0
        out = capsys.readouterr().out
        assert "The ledger is sound." in out
        assert "1 charges on 1 data sets" in out
        assert str(ledger.mark.path) in out

    def test_verify_says_what_is_wrong(self, ledger, backup, capsys):
        pay(ledger)
        shutil.copy(backup, ledger.path)
        assert main(["ledger", "verify", "--ledger", str(ledger.path)]) == 2
        assert "older copy" in capsys.readouterr().err

    def test_backup_and_restore(self, ledger, tmp_path, capsys):
        assert main(["ledger", "backup", str(tmp_path / "copy")]) == 0
        assert "holds 5 entries" in capsys.readouterr().out
        pay(ledger)
        shutil.copy(tmp_path / "copy", ledger.path)
        assert main(["ledger", "restore", str(tmp_path / "copy")]) == 0
        assert "1 of them were made after the backup" in capsys.readouterr().out
        assert main(["ledger", "verify"]) == 0
        assert left(ledger.path) == 2.0

    def test_restore_without_its_mark_says_that_it_is_closed(self, ledger, capsys):
        ledger.mark.path.unlink()
        assert main(["ledger", "verify"]) == 2
        assert main(["ledger", "restore"]) == 0
        assert "No data set has any budget left" in capsys.readouterr().out

    @pytest.mark.parametrize("words", [["verify"], ["backup", "copy"], ["restore"], ["restore", "copy"]])
    def test_where_no_ledger_is_none_is_made(self, words, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["ledger", *words, "--ledger", str(tmp_path / "nothing" / "here")]) == 2
        assert "error: There is no ledger" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_a_place_that_cannot_be_written(self, ledger, tmp_path, capsys):
        (tmp_path / "file").write_text("x")
        assert main(["ledger", "backup", str(tmp_path / "file" / "copy")]) == 2
        assert "could not be read or written" in capsys.readouterr().err


class TestWhatIsHeld:
    """Nothing is restored over a ledger that another program holds: it could be read no more, and releases be lost."""

    @pytest.mark.parametrize("how", ["BEGIN EXCLUSIVE", "BEGIN IMMEDIATE"])
    @pytest.mark.parametrize(("which", "with_backup"), [("ledger", True), ("ledger", False), ("backup", True)])
    def test_it_is_left_as_it_is(self, how, which, with_backup, ledger, backup, monkeypatch):
        monkeypatch.setattr(ledger_restore, "WAIT_SECONDS", 0.05)
        ledger.keep(pay(ledger), b"the second release")
        before, mark = ledger.path.read_bytes(), ledger.mark.path.read_bytes()
        held = ledger.path if which == "ledger" else backup
        with closing(sqlite3.connect(held, isolation_level=None)) as other:
            other.execute(how)
            with pytest.raises(LedgerBusyError, match="The ledger is busy"):
                restore_ledger(ledger.path, backup if with_backup else None)
        assert (ledger.path.read_bytes(), ledger.mark.path.read_bytes()) == (before, mark)
        assert sorted(file.name for file in ledger.path.parent.iterdir()) == ["ledger.sqlite3", "ledger.sqlite3.key"]
        assert restore_ledger(ledger.path, backup if with_backup else None).lost == 0
        assert kept(ledger.path) == [b"the first release", b"the second release"]

    def test_nor_while_a_piece_of_it_is_read(self, ledger, monkeypatch):
        """Whatever is held when the contents are read is not taken for lost."""

        def held(*_):
            raise sqlite3.OperationalError("database is locked")

        monkeypatch.setattr(ledger_chain, "is_row", held)
        with pytest.raises(LedgerBusyError):
            restore_ledger(ledger.path)

    def test_a_ledger_is_its_own_backup(self, ledger):
        assert restore_ledger(ledger.path, ledger.path).lost == 0
        assert kept(ledger.path) == [b"the first release"]


class TestWords:
    @pytest.mark.parametrize(
        "words",
        [
            ["verify", "--ledger", "~no such user/x"],
            ["verify", "--ledger", ""],
            ["verify", "--ledger", "a\0b"],
            ["restore", ""],
            ["restore", " ", "--ledger", ""],
            ["restore", "a\0b"],
            ["restore", "~no such user/x"],
            ["backup", ""],
            ["backup", "a\0b"],
        ],
    )
    def test_a_place_that_is_none_is_a_sentence(self, words, ledger, capsys):
        before = ledger.path.read_bytes()
        assert main(["ledger", *words]) == 2
        assert capsys.readouterr().err.startswith("error: ")
        assert ledger.path.read_bytes() == before
        assert sorted(file.name for file in ledger.path.parent.iterdir()) == ["ledger.sqlite3", "ledger.sqlite3.key"]

    def test_so_it_is_for_the_ledger_itself(self):
        with pytest.raises(BudgetError, match="could not be opened"):
            Ledger("~no such user/x")

    def test_a_backup_that_is_not_there(self, ledger, tmp_path, capsys):
        for place in (tmp_path / "nothing", tmp_path):
            assert main(["ledger", "restore", str(place)]) == 2
            assert "There is no file at the place of the backup" in capsys.readouterr().err

    @pytest.mark.parametrize("number", [1, 2])
    def test_older_versions(self, number, ledger, tmp_path, capsys):
        as_version(number, ledger)
        shutil.copytree(ledger.path.parent, tmp_path / "older")
        assert main(["ledger", "verify"]) == 2
        said = capsys.readouterr().err
        assert "it is upgraded when it is next used" in said
        assert "restore" not in said
        assert left(ledger.path) == 2.5
        assert main(["ledger", "restore", str(tmp_path / "older" / ledger.path.name)]) == 2
        assert f"It is one of version {number}, which had no chain" in capsys.readouterr().err
        shutil.copy(tmp_path / "older" / ledger.path.name, ledger.path)
        assert "it is an older copy. The command ledger restore" in verify_ledger(ledger.path).problems[0]
