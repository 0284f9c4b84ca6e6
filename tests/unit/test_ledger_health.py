"""What the health route says of the ledger, and that asking makes and changes nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from dpgrams_core.privacy import ledger_health
from dpgrams_core.privacy.ledger import Ledger
from dpgrams_core.privacy.ledger_health import ledger_problem


@pytest.fixture
def path(tmp_path):
    Ledger(tmp_path / "ledger.sqlite3")
    return tmp_path / "ledger.sqlite3"


def test_a_ledger_that_can_be_written_is_left_as_it_was(path):
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert ledger_problem(path) is None
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


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
