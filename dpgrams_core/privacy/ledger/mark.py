"""The high-water mark of a ledger: how far its chain has come, in a file that stands apart from the ledger.

A ledger that was put back from a backup has a chain that fits (chain.py), and would give back what was spent
since.  So each entry of the chain is written once more, to a file in another folder: one line each, only ever added.  A
ledger must hold at least the entries that its mark holds; one that holds fewer, or others, is refused.

The order: the entry is committed to the database, then the mark is written and synced, and only then does a charge
count as made and is anything drawn.  A crash between the two leaves a mark that is behind, which is harmless: nothing
was drawn, the charge counts, and the next transaction brings the mark up.  All of it happens under one lock (flock) in
the mark's folder, which copies of a ledger share, for the name of the file comes from the ledger's key.

Since the lines are the entries themselves, ``ledger restore`` builds a ledger again from them, with nothing forgotten
(restore.py).  They hold what the ledger's tables hold, except for what was released, and no record.

The folder is DPGRAMS_LEDGER_MARK, by default the user's folder for states of programs ($XDG_STATE_HOME/dpgrams, that
is ~/.local/state/dpgrams).  It must not be put back together with the ledger: who restores an older state of both, or
removes the ledger, its key and its mark, begins anew, and no program on the same machine can notice it.
"""

from __future__ import annotations

import hmac
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from dpgrams_core.model.errors import BudgetError
from dpgrams_core.privacy.ledger.chain import Entry

PLACE = "DPGRAMS_LEDGER_MARK"
# For each of three locks in turn (the mark's, the database's, and that of its readers): an answer within five seconds.
WAIT_SECONDS = 1.5
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
    """The high-water mark of the ledger with a key, in a folder, by default that of the settings."""

    def __init__(self, folder: Path | None, key: bytes) -> None:
        name = hmac.digest(key, b"the name of the high-water mark", "sha256").hex()[:32]
        self.path = (folder or marks_folder()) / f"{name}.mark"

    @contextmanager
    def held(self, seconds: float) -> Iterator[None]:
        """The lock of the ledger and its mark, for the length of a block; nobody waits longer than ``seconds``."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = self.path.with_suffix(".lock")
        # A lock of its own for each block: threads wait for each other as processes do.  Never a soft lock, which is a
        # file that a crash would leave behind.
        lock = FileLock(place, seconds, 0o600, poll_interval=_POLL_SECONDS, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            raise LedgerBusyError(BUSY) from None
        try:
            yield
        finally:
            lock.release()

    def reached(self) -> Reached | None:
        """Where the mark stands, from the end of its file; None where there is no file."""
        try:
            with self.path.open("rb", buffering=0) as file:
                lines, _ = _last_lines(file.fileno())
        except FileNotFoundError:
            return None
        last = _parsed(lines[-2]) if len(lines) > 1 else None
        if last is None:
            raise BudgetError(
                "The ledger's high-water mark is damaged, so nothing is released. The command ledger restore makes it "
                "again; what that may cost is in the handbook, under “Keep the budget's ledger”."
            )
        return Reached(last.number, last.mark, torn=bool(lines[-1]))

    def append(self, entries: Sequence[Entry]) -> None:
        """Add lines behind the last whole one; on return they are on the disk."""
        if not entries:
            return
        with self.path.open("r+b", buffering=0) as file:
            handle = file.fileno()
            lines, size = _last_lines(handle)
            end = size - len(lines[-1])
            os.ftruncate(handle, end)  # what a crash left of a line
            try:
                _write(handle, _lines(entries), end)
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, end)
                raise

    def write(self, entries: Iterable[Entry]) -> None:
        """Make the file, or put another in its place, as a whole or not at all; on return it is on the disk."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.replace(synced_file(self.path, _lines(entries)), self.path)
        sync(self.path.parent)

    def lines(self) -> tuple[list[Entry | None], bool]:
        """All whole lines, None for each that is not one of a mark, and whether a broken one follows."""
        *whole, rest = self.path.read_bytes().split(b"\n")
        return [_parsed(line) for line in whole], bool(rest)


# Said of reading, too, and of noting what was drawn: whether anything was charged only the charge itself may say.
BUSY = "The ledger is busy: another program holds it. Try again in a moment."


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


def _last_lines(handle: int) -> tuple[list[bytes], int]:
    """The end of a file in lines, the last whole one and what follows it among them; and how long the file is."""
    size = os.fstat(handle).st_size
    lines, start = [b""], size
    while start and len(lines) < 3:  # the end of the last whole line, and the end of the one before it
        start = max(0, start - max(_CHUNK, size - start))
        lines = os.pread(handle, size - start, start).split(b"\n")
    return lines, size


def _write(handle: int, content: bytes, place: int) -> None:
    while content:
        done = os.pwrite(handle, content, place)
        content, place = content[done:], place + done


def sync(place: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def synced_file(beside: Path, content: bytes) -> str:
    """A new file beside a place, on the disk and readable by its owner only, to be moved or linked to that place."""
    with tempfile.NamedTemporaryFile(dir=beside.parent, prefix=beside.name, delete=False) as file:  # mode 0600
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return file.name


def put_new(place: Path, content: bytes) -> None:
    """A file as a whole at a place where nothing is, or a ``FileExistsError``; on return it is on the disk."""
    name = synced_file(place, content)
    try:
        os.link(name, place)
    finally:
        os.unlink(name)
    sync(place.parent)


def is_busy(error: Exception) -> bool:
    """Whether SQLite says that somebody else holds the database."""
    return not isinstance(error, OSError) and ("locked" in str(error) or "busy" in str(error))


def unusable(error: Exception, sentence: str) -> BudgetError:
    """What an error of SQLite or the disk is for people: somebody else holds the ledger, or else this sentence."""
    return LedgerBusyError(BUSY) if is_busy(error) else BudgetError(sentence)
