"""Whether the ledger can be written, asked without making a ledger where there is none."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from dpgrams_core.privacy.ledger_file import key_place

PATIENCE_SECONDS = 1.0  # a charge holds the write lock for a few milliseconds


def ledger_problem(path: Path) -> str | None:
    """Why nothing could be charged now, in one sentence without any path; None where it could.

    The write lock is taken, a page is written to the journal, and all of it is undone.
    """
    if not path.exists():
        return None if _can_be_made(path) else "The ledger is not there and cannot be made: its folder is not writable."
    if not key_place(path).is_file():
        return "The ledger's key file is missing, so nothing can be charged."
    try:
        place = f"{path.absolute().as_uri()}?mode=rw"  # never makes a file
        with closing(sqlite3.connect(place, timeout=PATIENCE_SECONDS, isolation_level=None, uri=True)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute(f"PRAGMA user_version = {int(version)}")
            connection.execute("ROLLBACK")
    except sqlite3.DatabaseError as error:
        busy = "locked" in str(error) or "busy" in str(error)
        return "The ledger is busy, so nothing can be charged now." if busy else "The ledger cannot be written."
    return None


def _can_be_made(path: Path) -> bool:
    """Whether the folder of a ledger could take its files, or be made."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
