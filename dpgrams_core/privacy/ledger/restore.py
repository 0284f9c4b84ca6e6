"""To verify a ledger, to back it up, and to put it back: none of them can raise what is left of a budget.

A restored ledger is built from entries of the chain, not from a copy of a file: those of the high-water mark
(mark.py), and of the backup where that has come further.  Nothing that was drawn is missing from the mark, so
what was spent since the backup is there again, to the last charge.  Of what was released the mark holds nothing; that
comes from the backup and from the file that is replaced, each piece where it is the one that was kept.

Where the mark is lost, or holds what no other file has, nobody knows what was spent since.  The ledger is then *closed*
for good: it shows what it holds, no data set has anything left, and none is opened.  (A data set that was opened after
the backup would otherwise begin anew.)
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dpgrams_core.model.errors import BudgetError
from dpgrams_core.privacy.ledger import chain
from dpgrams_core.privacy.ledger.chain import FIRST, KINDS, START, Entry, chain_key, entries
from dpgrams_core.privacy.ledger.file import (
    check_file,
    is_sealed,
    key_place,
    make_tables,
    read_key,
    seal_key,
    version_of,
)
from dpgrams_core.privacy.ledger.mark import WAIT_SECONDS, HighWater, LedgerBusyError, is_busy, put_new, sync, unusable

_WITHOUT_CHAIN = (1, 2)  # the versions before it
_NOT_YET = "which has no chain to verify: it is upgraded when it is next used."
_CLOSING = "Restored without a high-water mark that holds all entries."


@dataclass(frozen=True)
class Report:
    """What a ledger was found to be, in sentences; it is sound where there are no problems."""

    sound: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Restored:
    """What a restored ledger holds.

    ``added`` entries were in the mark and not in the backup, ``lost`` releases are no longer kept anywhere, and
    ``aside`` is the file that was there before.
    """

    entries: int
    added: int
    lost: int
    closed: bool
    aside: Path | None


def verify_ledger(path: Path, marks: Path | None = None) -> Report:
    """Read all of a ledger and its high-water mark and say what is right and what is wrong; nothing is changed."""
    key = read_key(path)
    mark = HighWater(marks, key)
    sound, problems = [f"Its high-water mark is {mark.path}."], []
    # The mark before the ledger, which is written first: so a ledger that is in use never seems to be behind.
    lines, torn = mark.lines() if mark.path.exists() else (None, False)
    try:
        with _readable(), closing(_connect(path)) as connection:
            connection.execute("BEGIN")  # all of it at one moment
            if (version := version_of(connection)) in _WITHOUT_CHAIN:
                if lines is None and not is_sealed(path):
                    return Report((), (f"The ledger is one of version {version}, {_NOT_YET}",))
                raise BudgetError(
                    f"The ledger is one of version {version}, and was upgraded before: it is an older copy. The "
                    "command ledger restore adds what is missing."
                )
            check_file(connection, key, contents=True)
            held = list(entries(connection))
            sound += _told(held)
    except BudgetError as error:
        problems.append(str(error))
        held = None
    if lines is None:
        problems.append("The high-water mark is not there: put it back, or let ledger restore close the ledger.")
    elif any(line is None for line in lines) or not _fits(chain_key(key), [line for line in lines if line]):
        problems.append("The high-water mark is damaged: ledger restore makes it again.")
    elif held is not None and (lines != held[: len(lines)] or len(held) < len(lines) + torn):
        problems.append(
            f"The ledger does not hold the {len(lines)} entries of its high-water mark: it is an older copy or another "
            "ledger. The command ledger restore adds what is missing."
        )
    else:
        sound.append(f"The high-water mark holds {len(lines)} entries, each as it was written.")
    if mark.path.parent.absolute().is_relative_to(path.parent.absolute()):
        sound.append("Note that the mark lies in the ledger's folder: restoring that folder would restore both.")
    return Report(tuple(sound), tuple(problems))


def back_up(connection: sqlite3.Connection, path: Path, target: Path) -> int:
    """Copy a ledger at one moment, and its key, to a place where nothing is yet; how many entries the copy holds.

    ``connection`` is a verified one of the ledger at ``path``.  The copy belongs to the same high-water mark, so it is
    no second budget: it is refused as soon as the ledger has gone on.
    """
    key = read_key(path)
    if target.exists() or key_place(target).exists():
        raise BudgetError("There is a file at the place of the backup already. Give another name.")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _new_file(target.parent) as temporary:
        with closing(sqlite3.connect(temporary)) as copy:
            connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            number, _ = check_file(copy, key, contents=True)
        sync(temporary)
        put_new(key_place(target), key)
        seal_key(target)
        os.link(temporary, target)
    sync(target.parent)
    return number


def restore_ledger(path: Path, backup: Path | None = None, marks: Path | None = None) -> Restored:
    """Build a ledger again from its high-water mark and a backup, or from the mark alone.

    A ``BudgetError`` means that nothing was changed: the backup is damaged or of another ledger, there is nothing to
    build it from, or another program holds the ledger (``LedgerBusyError``).
    """
    key = read_key(path) if backup is None or key_place(path).exists() else read_key(backup)
    if backup is not None and not backup.is_file():
        raise BudgetError("There is no file at the place of the backup. Nothing was changed.")
    chains = chain_key(key)
    mark = HighWater(marks, key)
    with mark.held(WAIT_SECONDS), ExitStack() as files:
        # Each file is opened once and stays as it is until the new one is built: nobody else writes to it meanwhile.
        places = [path] if path.is_file() else []
        if backup is not None and not (places and backup.samefile(path)):
            places.append(backup)
        sources = [_source(place, files) for place in places]
        saved = _chain_of_backup(sources[-1], key) if backup is not None else []
        current: list[Entry] = []
        if path.is_file():
            try:
                current = _chain_of(sources[0], key)
            except LedgerBusyError:
                raise
            except BudgetError:  # that is why it is restored
                pass
        found, torn = mark.lines() if mark.path.exists() else (None, False)
        lines = [line for line in found or [] if line is not None]
        whole = found is not None and len(lines) == len(found) and _fits(chains, lines)
        if whole:
            base = max((lines, *(held for held in (current, saved) if held[: len(lines)] == lines)), key=len)
            if base[: len(saved)] != saved:
                raise BudgetError(
                    "The backup is not one of this ledger, or one of a copy that went on for itself. Nothing was "
                    "changed. Without a backup the ledger is built again from its high-water mark alone."
                )
            closed = False  # of a broken last line nothing was drawn: it was not on the disk yet
        else:
            base = max(current, saved, key=len)
            if not base:
                raise BudgetError(
                    "The ledger cannot be built again: its high-water mark is lost or damaged, and there is no sound "
                    "backup. Give one: ledger restore FILE."
                )
            closed = found is None or not agrees(chains, found, torn, base)
        closed = closed and all(entry.kind != "closing" for entry in base)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _new_file(path.parent) as temporary:
            built, lost = _build(temporary, key, base, sources, closed)
            files.close()
            sync(temporary)
            if not key_place(path).exists():
                put_new(key_place(path), key)
            aside = _put_in_place(temporary, path)
        if whole:
            mark.append(built[len(lines) :])
        else:
            mark.write(built)
        seal_key(path)
    is_closed = any(entry.kind == "closing" for entry in built)
    return Restored(len(built), len(base) - len(saved) if saved else 0, lost, is_closed, aside)


def _build(
    place: Path, key: bytes, base: Sequence[Entry], sources: Sequence[sqlite3.Connection], closed: bool
) -> tuple[list[Entry], int]:
    """A ledger in a new file with these entries; all entries that it has, and how many contents were found nowhere."""
    lost = 0
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("BEGIN IMMEDIATE")
        make_tables(connection)
        for entry in base:
            known = KINDS[entry.kind]
            if not known.replaced:
                chain.put_row(connection, entry.kind, json.loads(entry.row))
            values = (entry.number, entry.kind, entry.row, entry.mark)
            connection.execute("INSERT INTO chain VALUES (?, ?, ?, ?)", values)
        for kind in (kind for kind, known in KINDS.items() if known.replaced):
            for name, text in chain.last_rows(connection, kind).items():
                row = _content(chain_key(key), kind, name, text, sources)
                if row is None:
                    lost += 1
                else:
                    chain.put_row(connection, kind, row)
        if closed:
            chain.insert_row(connection, chain_key(key), "closing", {"id": 1, "at": chain.now(), "reason": _CLOSING})
        check_file(connection, key, contents=True)
        built = list(entries(connection))
        connection.execute("COMMIT")
    return built, lost


def _content(
    key: bytes, kind: str, name: tuple[object, ...], text: str, sources: Sequence[sqlite3.Connection]
) -> dict[str, object] | None:
    """The row that was sealed as a text: from the text where it is all there, otherwise from a file that has it."""
    known = KINDS[kind]
    sealed: dict[str, object] = json.loads(text)
    if not any(isinstance(item, dict) for item in sealed.values()):
        return sealed
    which = " AND ".join(f"{column} = ?" for column in known.name)
    for connection in sources:
        query = f"SELECT {', '.join(known.columns)} FROM {known.table} WHERE {which}"
        try:
            with _readable():
                for values in connection.execute(query, name):
                    row = dict(zip(known.columns, values, strict=True))
                    if chain.is_row(key, row, text):
                        return row
        except LedgerBusyError:  # what is there must not count as lost
            raise
        except BudgetError:  # damaged in this place
            pass
    return None


def _source(place: Path, files: ExitStack) -> sqlite3.Connection:
    """A file that a ledger is built from, held so that nobody else writes to it."""
    with _readable():
        connection = files.enter_context(closing(_connect(place)))
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                raise
            with suppress(sqlite3.DatabaseError):  # it may only be read, or is damaged, which is seen when it is read
                connection.execute("BEGIN")
        return connection


def _chain_of(connection: sqlite3.Connection, key: bytes) -> list[Entry]:
    """The chain of a ledger's file that is whole; a ``BudgetError`` where it is not."""
    with _readable():
        check_file(connection, key, contents=False)
        return list(entries(connection))


def _chain_of_backup(connection: sqlite3.Connection, key: bytes) -> list[Entry]:
    """The same of a backup, with what is wrong with it in words of its own."""
    try:
        with _readable():
            version = version_of(connection)
        if version in _WITHOUT_CHAIN:
            raise BudgetError(
                f"It is one of version {version}, which had no chain that a ledger could be built from. Nothing was "
                "changed. Without a backup the ledger is built again from its high-water mark alone."
            )
        return _chain_of(connection, key)
    except LedgerBusyError:
        raise
    except BudgetError as error:
        raise BudgetError(f"The backup cannot be used. {error}") from None


def _fits(key: bytes, lines: Sequence[Entry]) -> bool:
    try:
        return bool(list(chain.checked_entries(key, lines)))
    except BudgetError:
        return False


def agrees(key: bytes, found: Sequence[Entry | None], torn: bool, held: Sequence[Entry]) -> bool:
    """Whether a chain holds all that the lines of a damaged mark may have held.

    Every line was in the database before it was written.  So a chain with at least as many entries as there are lines
    lacks none of them, unless the lines are those of another chain: then some of them fit each other and not this one.
    """
    if len(held) < len(found) + torn:
        return False
    known, before = set(held), START
    for line in found:
        if line is not None and line not in known and line.mark == chain.mark_of(key, before, line.kind, line.row):
            return False
        before = "" if line is None else line.mark
    return True


def _told(held: Sequence[Entry]) -> list[str]:
    kinds = [entry.kind for entry in held]
    told = [
        f"All {len(held)} entries of its chain fit, and its tables hold the same rows: {kinds.count('charge')} "
        f"charges on {kinds.count('account')} data sets."
    ]
    first = json.loads(held[0].row)
    if kinds[0] == FIRST and first["upgraded"]:
        told.append(
            f"It was upgraded from version {first['upgraded']} on {first['made'][:10]}. Its rows of before came into "
            "the chain as they were then; what was changed before that cannot be noticed."
        )
    if "closing" in kinds:
        told.append("It is closed: it was restored without its high-water mark, and no data set has any budget left.")
    return told


def _connect(place: Path) -> sqlite3.Connection:
    mode = "rw" if os.access(place, os.W_OK) else "ro"  # rw: what a crash left half written is undone first
    uri = f"{place.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS, isolation_level=None)


@contextmanager
def _readable() -> Iterator[None]:
    """What SQLite cannot read is a ``BudgetError``, and what another program holds a ``LedgerBusyError``."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the names in a damaged file may be no text
        broken = "The file is missing or damaged: the command ledger restore builds a ledger again."
        raise unusable(error, broken) from None


@contextmanager
def _new_file(folder: Path) -> Iterator[Path]:
    """An empty file that only its owner may read, gone at the end of the block unless it was moved."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix="ledger", delete=False) as file:
        place = Path(file.name)
    try:
        yield place
    finally:
        place.unlink(missing_ok=True)


def _put_in_place(temporary: Path, path: Path) -> Path | None:
    """Put a finished file in the ledger's place; where the one that was there went."""
    aside = None
    if path.exists():
        names = (path.with_name(f"{path.name}.replaced-{number}") for number in range(1, 1_000_000))
        aside = next(name for name in names if not name.exists())
        os.link(path, aside)
    for ending in ("-journal", "-wal", "-shm"):  # they belong to the old file and would be played into the new one
        path.with_name(path.name + ending).unlink(missing_ok=True)
    os.replace(temporary, path)
    sync(path.parent)
    return aside
