"""Whether a charge could be made now, asked without making or changing anything.

All that a charge needs is looked at, but not verified as a whole, which takes long: the key, the high-water mark and
its lock, the write lock of the database, and whether the chain still holds the entry that the mark is at.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

from dpgrams_core.model.errors import BudgetError
from dpgrams_core.privacy.ledger.book import refuse_behind
from dpgrams_core.privacy.ledger.file import VERSION, is_sealed, key_place, read_key, refuse_other, version_of
from dpgrams_core.privacy.ledger.mark import HighWater, LedgerBusyError, Reached, is_busy, marks_folder

PATIENCE_SECONDS = 1.0  # a charge holds each of the two locks for a few milliseconds
BUSY = "The ledger is busy, so nothing can be charged now."


def ledger_problem(path: Path) -> str | None:
    """Why nothing could be charged now, in one or two sentences without any path; None where it could."""
    try:
        return _problem(path)
    except LedgerBusyError:
        return BUSY
    except BudgetError as error:
        return str(error)
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        return "The ledger, its key file or its high-water mark cannot be read, so nothing can be charged."


def _problem(path: Path) -> str | None:
    if not path.exists() and not key_place(path).exists():
        if not _can_be_made(path):
            return "The ledger is not there and cannot be made: its folder is not writable."
        if not _can_be_made(marks_folder() / "a mark"):
            return "The ledger's high-water mark cannot be made: its folder is not writable."
        return None
    if not key_place(path).is_file():
        return "The ledger's key file is missing, so nothing can be charged."
    key = read_key(path)
    if not is_sealed(path):  # it is made, or upgraded, when it is next used
        return _database_problem(path, key, None) if path.exists() else None
    if not path.exists():
        return "The ledger's tables are gone, so nothing can be charged. The command ledger restore builds it again."
    mark = HighWater(None, key)
    lock = mark.path.with_suffix(".lock")
    with mark.held(PATIENCE_SECONDS) if lock.exists() else nullcontext():  # holding it would make it
        reached = mark.reached()
        if reached is not None and not os.access(mark.path, os.W_OK):
            return "The ledger's high-water mark cannot be written, so nothing can be charged."
        return _database_problem(path, key, (reached,))


def _database_problem(path: Path, key: bytes, at: tuple[Reached | None] | None) -> str | None:
    """What is wrong with the tables, and with where the mark stands, unless the ledger is still to be made.

    The write lock is taken, a page is written to the journal, and all of it is undone.
    """
    try:
        place = f"{path.absolute().as_uri()}?mode=rw"  # never makes a file
        with closing(sqlite3.connect(place, timeout=PATIENCE_SECONDS, isolation_level=None, uri=True)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            version = version_of(connection)
            connection.execute(f"PRAGMA user_version = {int(version)}")
            connection.execute("ROLLBACK")
            if at is not None:
                refuse_other(connection, key)
                refuse_behind(connection, at[0])
            elif version:
                refuse_other(connection, key, (1, 2, VERSION))
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the names in a damaged file may be no text
        return BUSY if is_busy(error) else "The ledger cannot be written."
    return None


def _can_be_made(path: Path) -> bool:
    """Whether the folder of a file could take it, or be made."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
