"""The high-water mark of a ledger: how far its chain has come, in a file that stands apart from the ledger.

A ledger that was put back from a backup has a chain that fits (ledger_chain.py), and would give back what was spent
since.  So each entry of the chain is written once more, to a file in another folder: one line each, only ever added.  A
ledger must hold at least the entries that its mark holds; one that holds fewer, or others, is refused.

The order: the entry is committed to the database, then the mark is written and synced, and only then does a charge
count as made and is anything drawn.  A crash between the two leaves a mark that is behind, which is harmless: nothing
was drawn, the charge counts, and the next transaction brings the mark up.  All of it happens under one lock (flock) in
the mark's folder, which copies of a ledger share, for the name of the file comes from the ledger's key.

Since the lines are the entries themselves, ``ledger restore`` builds a ledger again from them, with nothing forgotten
(ledger_restore.py).  They hold what the ledger's tables hold, except for what was released, and no record.

The folder is DPGRAMS_LEDGER_MARK, by default the user's folder for states of programs ($XDG_STATE_HOME/dpgrams, that
is ~/.local/state/dpgrams).  It must not be put back together with the ledger: who restores an older state of both, or
removes the ledger, its key and its mark, begins anew, and no program on the same machine can notice it.
"""

from __future__ import annotations

import hmac
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from dpgrams_core.errors import BudgetError
from dpgrams_core.privacy.ledger_chain import START, Entry, mark_of

if sys.platform != "win32":
    import fcntl

PLACE = "DPGRAMS_LEDGER_MARK"
_POLL_SECONDS = 0.005
_CHUNK = 1 << 16


class LedgerBusyError(BudgetError):
    """Somebody else holds the ledger for longer than anyone should wait."""


@dataclass(frozen=True)
class Reached:
    """Where a mark stands: the number and the mark of its last whole line, and whether a broken line follows it."""

    number: int
    mark: str
    torn: bool


def marks_folder() -> Path:
    """The folder of the high-water marks, from the environment."""
    given = os.environ.get(PLACE, "").strip()
    if given:
        return Path(given).expanduser()
    state = os.environ.get("XDG_STATE_HOME", "").strip() or "~/.local/state"
    return Path(state).expanduser() / "dpgrams"


class HighWater:
    """The high-water mark of the ledger with a key, in a folder."""

    def __init__(self, folder: Path, key: bytes) -> None:
        name = hmac.digest(key, b"the name of the high-water mark", "sha256").hex()[:32]
        self.path = folder / f"{name}.mark"

    @contextmanager
    def held(self, seconds: float) -> Iterator[None]:
        """The lock of the ledger and its mark, for the length of a block; nobody waits longer than ``seconds``."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = time.monotonic() + seconds
            while not _locked(handle):
                if time.monotonic() > end:
                    raise LedgerBusyError(BUSY)
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(handle)

    def reached(self) -> Reached | None:
        """Where the mark stands, from the end of its file; None where there is no file."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            size = os.fstat(handle).st_size
            lines, start = [b""], size
            while start and len(lines) < 3:  # the end of the last whole line, and the end of the one before it
                start = max(0, start - max(_CHUNK, size - start))
                lines = os.pread(handle, size - start, start).split(b"\n")
        finally:
            os.close(handle)
        last = _parsed(lines[-2]) if len(lines) > 1 else None
        if last is None:
            raise BudgetError(
                "The ledger's high-water mark is damaged, so nothing is released. The command ledger restore makes it "
                "again; what that may cost is in the README."
            )
        return Reached(last.number, last.mark, torn=bool(lines[-1]))

    def append(self, entries: Sequence[Entry]) -> None:
        """Add lines behind the last whole one; on return they are on the disk."""
        if not entries:
            return
        handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            end = _end_of_lines(handle)
            os.ftruncate(handle, end)  # what a crash left of a line
            try:
                _write(handle, _lines(entries), end)
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, end)
                raise
        finally:
            os.close(handle)

    def write(self, entries: Iterable[Entry]) -> None:
        """Make the file, or put another in its place, as a whole or not at all; on return it is on the disk."""
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=self.path.name, delete=False) as file:  # mode 0600
            file.write(_lines(entries))
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, self.path)
        sync_folder(folder)

    def lines(self) -> tuple[list[Entry | None], bool]:
        """All whole lines, None for each that is not one of a mark, and whether a broken one follows."""
        *whole, rest = self.path.read_bytes().split(b"\n")
        return [_parsed(line) for line in whole], bool(rest)


def agrees(key: bytes, found: Sequence[Entry | None], torn: bool, chain: Sequence[Entry]) -> bool:
    """Whether a chain holds all that the lines of a damaged mark may have held.

    Every line was in the database before it was written.  So a chain with at least as many entries as there are lines
    lacks none of them, unless the lines are those of another chain: then some of them fit each other and not this one.
    """
    if len(chain) < len(found) + torn:
        return False
    known, before = set(chain), START
    for line in found:
        if line is not None and line not in known and line.mark == mark_of(key, before, line.kind, line.row):
            return False
        before = "" if line is None else line.mark
    return True


# Said of reading, too, and of noting what was drawn: whether anything was charged only the charge itself may say.
BUSY = "The ledger is busy: another program holds it. Try again in a moment."


def _locked(handle: int) -> bool:
    """Whether the lock is ours now; where there are no such locks SQLite's own still keep the database whole."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lines(entries: Iterable[Entry]) -> bytes:
    rows = (json.dumps(astuple(entry), ensure_ascii=False, separators=(",", ":")) for entry in entries)
    return "".join(row + "\n" for row in rows).encode()


def _parsed(line: bytes) -> Entry | None:
    try:
        number, kind, row, mark = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return None
    whole = isinstance(number, int) and all(isinstance(item, str) for item in (kind, row, mark))
    return Entry(number, kind, row, mark) if whole else None


def _end_of_lines(handle: int) -> int:
    """Where the last whole line ends."""
    size = start = os.fstat(handle).st_size
    while start:
        start = max(0, start - _CHUNK)
        found = os.pread(handle, _CHUNK, start).rfind(b"\n", 0, size - start)
        if found >= 0:
            return start + found + 1
    return 0


def _write(handle: int, content: bytes, place: int) -> None:
    while content:
        done = os.pwrite(handle, content, place)
        content, place = content[done:], place + done


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
