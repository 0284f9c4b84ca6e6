"""How a user's file is opened: few at once, with plain errors, and again where its columns were not held."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dpgrams_core.errors import DataError

FILES_AT_ONCE = 2
LONGEST_WAIT = 180.0  # seconds
_at_once = threading.BoundedSemaphore(FILES_AT_ONCE)


def do_nothing() -> None:
    """What is done while waiting where nobody is told."""


@contextmanager
def reading(waiting: Callable[[], None] = do_nothing) -> Iterator[None]:
    """While a file is read: the next ones wait, since reading takes memory, and every error becomes a sentence.

    ``waiting`` is called from time to time until the file's turn has come; what it raises ends the wait.
    """
    latest = time.monotonic() + LONGEST_WAIT
    while not _at_once.acquire(timeout=0.3):
        if time.monotonic() > latest:
            raise DataError("Too many files are being read here at the moment. Try again in a few minutes.")
        waiting()
    try:
        try:
            yield
        except DataError:
            raise
        except OSError:
            raise DataError("The file could not be opened. Check that it is a file and may be read.") from None
        except MemoryError:
            raise DataError("The file does not fit into memory. Save fewer rows or columns and try again.") from None
        except Exception:  # a parser's own error may quote the file; it must not travel on
            raise DataError("The file could not be read. Save it again as CSV (UTF-8) or Parquet.") from None
    finally:
        _at_once.release()


class LocalFile:
    """A file on this machine, whose columns are read when they are picked; those that were picked last are held.

    The budget belongs to the content as it was when the file was opened, so a file that changed since is refused.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._stamp = path, _stamp(file)
        self._held: dict[str, np.ndarray] = {}

    def columns(
        self, names: Sequence[str], read: Callable[[BinaryIO, Sequence[str]], list[np.ndarray]]
    ) -> list[np.ndarray]:
        """The columns of these names, read-only; ``read`` gets those that are not held from the open file."""
        held = self._held
        lacking = [name for name in names if name not in held]
        if lacking:
            held = {name: held[name] for name in names if name in held}
            self._held = held  # the others go before these come
            held = held | dict(zip(lacking, self._read(lacking, read), strict=True))
            self._held = held
        return [held[name] for name in names]

    def _read(self, names: list[str], read: Callable[[BinaryIO, Sequence[str]], list[np.ndarray]]) -> list[np.ndarray]:
        with reading(), self._path.open("rb") as file:
            self._refuse_changed(file)
            arrays = read(file, names)
            self._refuse_changed(file)
        for array in arrays:
            array.setflags(write=False)
        return arrays

    def _refuse_changed(self, file: BinaryIO) -> None:
        if _stamp(file) != self._stamp:
            raise DataError("The file was changed after it was opened. Open it again.")


def _stamp(file: BinaryIO) -> tuple[int, ...]:
    """What differs once a file was written to or replaced."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
