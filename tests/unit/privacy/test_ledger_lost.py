"""A ledger that loses one of its files: no budget is refilled, and a crash while both are made is no loss."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sqlite3

import pytest

from dpgrams_core import BudgetError
from dpgrams_core.privacy.ledger import file as ledger_file
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.file import KEY_BYTES, read_or_make_key, seal_key
from dpgrams_core.privacy.ledger.mark import HighWater
from dpgrams_core.privacy.ledger.restore import restore_ledger
from tests.unit.privacy.test_ledger_kept import as_version


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite3")


def key_of(path):
    return path.with_name(path.name + ".key")


def spent(ledger):
    """Open an account and spend on it."""
    account = ledger.account_of(b"content")
    ledger.open_account(account, cap_epsilon=1.0, cap_delta=1e-5)
    ledger.charge(account, (), epsilon=0.75, delta=1e-6, status="nominal", description="a test")
    return account


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_lost_database_refills_no_budget(how, ledger):
    spent(ledger)
    kept = ledger.path.read_bytes()
    ledger.path.unlink()
    if how == "empty":
        ledger.path.touch()
    for _ in range(2):  # the refusal itself must leave nothing that would be taken for a new ledger
        with pytest.raises(BudgetError, match=r"what was spent is not known\. Put back a copy of the ledger's file"):
            Ledger(ledger.path)
    ledger.path.write_bytes(kept)  # what the sentence says to do
    again = Ledger(ledger.path)
    assert again.account(again.account_of(b"content")).left_epsilon == 0.25


def test_who_removes_both_begins_anew(ledger):
    spent(ledger)
    for path in (ledger.path, key_of(ledger.path)):
        path.unlink()
    assert Ledger(ledger.path).charges() == []


@pytest.mark.parametrize("size", [KEY_BYTES, KEY_BYTES + 1])
def test_a_ledger_of_before_the_seal_gets_it(size, ledger):
    account = spent(ledger)
    place = key_of(ledger.path)
    os.truncate(place, size)
    assert Ledger(ledger.path).account(account).left_epsilon == 0.25
    assert len(place.read_bytes()) == KEY_BYTES + 2
    ledger.path.unlink()
    with pytest.raises(BudgetError, match="Put back a copy"):
        Ledger(ledger.path)


@pytest.mark.parametrize("size", [KEY_BYTES, KEY_BYTES + 1])
def test_no_new_mark_is_made_for_a_ledger_that_was_charged(size, ledger, tmp_path):
    """A backup that is put back, no mark, and a key without the bytes that say that there was one."""
    account = spent(ledger)
    ledger.back_up(tmp_path / "backup")
    ledger.charge(account, (), epsilon=0.25, delta=1e-6, status="nominal", description="a test")
    shutil.copy(tmp_path / "backup", ledger.path)
    ledger.mark.path.unlink()
    os.truncate(key_of(ledger.path), size)
    for _ in range(2):
        with pytest.raises(BudgetError, match="high-water mark is not where it was"):
            Ledger(ledger.path)
    assert not ledger.mark.path.exists()
    assert restore_ledger(ledger.path).closed
    assert Ledger(ledger.path).account(account).left_epsilon == 0


@pytest.mark.parametrize("number", [1, 2])
def test_nor_for_an_upgraded_one_unless_it_is_as_it_was_made(number, ledger):
    account = spent(ledger)
    as_version(number, ledger)
    upgraded = Ledger(ledger.path)
    upgraded.mark.path.unlink()
    os.truncate(key_of(ledger.path), KEY_BYTES)  # a crash between the upgrade and its mark
    again = Ledger(ledger.path)
    assert again.account(account).left_epsilon == 0.25
    again.charge(account, (), epsilon=0.125, delta=1e-6, status="nominal", description="a test")
    again.mark.path.unlink()
    os.truncate(key_of(ledger.path), KEY_BYTES)
    with pytest.raises(BudgetError, match="high-water mark is not where it was"):
        Ledger(ledger.path)


def test_the_seal_leaves_the_key_as_it_is(tmp_path):
    path = tmp_path / "ledger"
    key = read_or_make_key(path)
    for _ in range(2):
        seal_key(path)
        assert read_or_make_key(path) == key
        assert key_of(path).read_bytes()[:KEY_BYTES] == key
        assert len(key_of(path).read_bytes()) == KEY_BYTES + 2
    assert key_of(path).stat().st_mode & 0o777 == 0o600


def make_and_die(path, step):
    """A process that is killed at a step of making a ledger."""

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    real = Ledger._connection

    def connection(self):
        made = real(self)
        made.set_trace_callback(lambda words: die() if step in words else None)
        return made

    if step in ("set_up", "seal_key"):
        setattr(ledger_file, step, die)
    if step == "mark":
        HighWater.write = die
    if step == "half a mark":
        os.replace = die
    Ledger._connection = connection
    Ledger(path)


@pytest.mark.parametrize(
    "step",
    [
        "set_up",
        "CREATE TABLE draws",
        "INSERT INTO seal",
        "INSERT INTO chain",
        "COMMIT",
        "mark",
        "half a mark",
        "seal_key",
    ],
)
def test_a_crash_while_it_is_made_is_no_loss(step, tmp_path):
    path = tmp_path / "ledger"
    process = multiprocessing.get_context("fork").Process(target=make_and_die, args=(path, step))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(key_of(path).read_bytes()) == KEY_BYTES
    ledger = Ledger(path)
    assert ledger.account(spent(ledger)).left_epsilon == 0.25
    assert len(key_of(path).read_bytes()) == KEY_BYTES + 2


def test_nothing_is_charged_before_the_seal(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "pwrite", full_disk)
    with pytest.raises(BudgetError, match="nothing can be released"):
        Ledger(tmp_path / "ledger")
    connection = sqlite3.connect(tmp_path / "ledger")
    assert connection.execute("SELECT count(*) FROM charges").fetchone() == (0,)
    connection.close()


def opened_name(path):
    return Ledger(path).account_of(b"x")


def test_processes_that_make_a_ledger_at_once_do_not_take_it_for_a_lost_one(tmp_path):
    paths = [tmp_path / str(number) / "ledger" for number in range(5) for _ in range(12)]
    with multiprocessing.get_context("fork").Pool(6) as pool:
        names = pool.map(opened_name, paths, chunksize=1)
    assert len(set(names)) == 5
    assert all(len(set(names[start : start + 12])) == 1 for start in range(0, 60, 12))
