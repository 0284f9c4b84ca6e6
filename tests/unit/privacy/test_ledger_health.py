"""What the health route says of the ledger, and that asking makes and changes nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from dpgrams_core import BudgetError
from dpgrams_core.privacy.ledger import health as ledger_health
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.file import KEY_BYTES, key_place, read_key
from dpgrams_core.privacy.ledger.health import ledger_problem
from dpgrams_core.privacy.ledger.mark import HighWater
from tests.unit.privacy.test_ledger_kept import as_version


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A ledger of the settings with one charge, and its mark in a folder of its own."""
    monkeypatch.setenv("DPGRAMS_LEDGER_MARK", str(tmp_path / "marks"))
    ledger = Ledger(tmp_path / "ledger" / "ledger.sqlite3")
    pay(ledger)
    return ledger.path


def pay(ledger):
    account = ledger.account_of(b"one")
    ledger.open_account(account, cap_epsilon=3.0, cap_delta=1e-3)
    ledger.charge(account, (), epsilon=0.5, delta=1e-6, status="nominal", description="a test")


def test_a_ledger_that_can_be_written_is_left_as_it_was(path):
    top = path.parents[1]
    before = {file: file.is_file() and file.read_bytes() for file in top.rglob("*")}
    assert ledger_problem(path) is None
    assert {file: file.is_file() and file.read_bytes() for file in top.rglob("*")} == before


def test_where_there_is_none_none_is_made(tmp_path):
    assert ledger_problem(tmp_path / "deep" / "er" / "ledger.sqlite3") is None
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_somebody_holds_is_busy(path, monkeypatch):
    monkeypatch.setattr(ledger_health, "PATIENCE_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert ledger_problem(path) == "The ledger is busy, so nothing can be charged now."
    assert ledger_problem(path) is None


def test_what_is_no_ledger_cannot_be_written(path):
    path.write_bytes(b"not a database at all, and long enough to be read as one" * 100)
    assert ledger_problem(path) == "The ledger cannot be written."


def test_a_journal_that_cannot_be_made_is_noticed(path):
    """As in a folder, or on a disk, that takes no more files."""
    path.with_name(path.name + "-journal").mkdir()
    assert ledger_problem(path) == "The ledger cannot be written."


def test_a_missing_key_and_a_place_that_is_no_folder(path):
    path.with_name(path.name + ".key").unlink()
    assert "key file is missing" in (ledger_problem(path) or "")
    assert "cannot be made" in (ledger_problem(path / "ledger.sqlite3") or "")


def mark_of(path):
    (mark,) = (path.parents[1] / "marks").glob("*.mark")
    return mark


def folder_instead(file):
    file.unlink()
    file.mkdir()


def older_copy(path):
    older = path.read_bytes()
    pay(Ledger(path))
    path.write_bytes(older)


def another_ledger(path):
    path.write_bytes(Ledger(path.with_name("another")).path.read_bytes())


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda path: mark_of(path).unlink(), "high-water mark is not where it was"),
        (lambda path: shutil.rmtree(mark_of(path).parent), "high-water mark is not where it was"),
        (lambda path: folder_instead(mark_of(path)), "mark"),
        (lambda path: mark_of(path).write_bytes(b"no line of a mark\n"), "high-water mark is damaged"),
        (lambda path: (shutil.rmtree(mark_of(path).parent), (path.parents[1] / "marks").touch()), "cannot be read"),
        (lambda path: key_place(path).write_bytes(b"x"), "key file is damaged"),
        (lambda path: folder_instead(key_place(path)), "key file is missing"),
        (lambda path: path.unlink(), "tables are gone"),
        (lambda path: path.write_bytes(b""), "ledger restore"),
        (lambda path: path.write_bytes(path.read_bytes()[:4096] + b"x" * 8192), "cannot be written"),
        (older_copy, "behind its high-water mark"),
        (another_ledger, "do not belong together"),
    ],
)
def test_what_a_charge_would_be_refused_for_is_said_without_a_path(harm, words, path):
    assert ledger_problem(path) is None
    harm(path)
    there = sorted(path.parents[1].rglob("*"))
    said = ledger_problem(path) or ""
    assert words in said
    assert str(path.parents[1]) not in said
    assert sorted(path.parents[1].rglob("*")) == there
    with pytest.raises(BudgetError):
        pay(Ledger(path))


def test_a_mark_that_somebody_holds_is_busy(path, monkeypatch):
    monkeypatch.setattr(ledger_health, "PATIENCE_SECONDS", 0.1)
    with HighWater(mark_of(path).parent, read_key(path)).held(1.0):
        assert ledger_problem(path) == "The ledger is busy, so nothing can be charged now."
    assert ledger_problem(path) is None


def test_a_mark_that_cannot_be_made_is_noticed_before_the_ledger_is(tmp_path, monkeypatch):
    (tmp_path / "marks").touch()
    monkeypatch.setenv("DPGRAMS_LEDGER_MARK", str(tmp_path / "marks"))
    assert "mark cannot be made" in (ledger_problem(tmp_path / "ledger") or "")


def test_a_ledger_that_is_half_made_or_of_an_older_version_is_no_problem(path):
    as_version(2, Ledger(path))
    assert ledger_problem(path) is None
    Ledger(path)
    assert ledger_problem(path) is None
    for file in (path, mark_of(path)):
        file.unlink()
    os.truncate(key_place(path), KEY_BYTES)
    assert ledger_problem(path) is None
