"""One writer for a results file: two sweeps that write one file would each undo the runs of the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dpgrams_core.errors import DataError

if sys.platform != "win32":
    import fcntl


def lock_file(path: Path) -> Path:
    """The file beside a results file that is there while somebody writes it; it holds the number of the process."""
    return path.with_name(path.name + ".lock")


def become_writer(path: Path) -> Callable[[], None]:
    """Become the only writer of a file, or raise a DataError at once where there is another; returns what ends it.

    Notes
    -----
    The lock is the operating system's (flock) and ends with the process however that ends: what a killed process
    leaves behind is a file that nobody holds, and the next writer takes it over.  On Windows, and on a file system
    that knows no locks, there is none, and two sweeps must not be given the same file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "results.parquet"
    >>> stop_writing = become_writer(path)
    >>> try:
    ...     become_writer(path)
    ... except DataError as error:
    ...     print("being written by another sweep" in str(error))
    True
    >>> stop_writing()
    """
    if sys.platform == "win32":
        return _nothing
    beside = lock_file(path)
    while True:
        handle = _opened(beside)
        if handle is None:
            return _nothing
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 20, 0).decode(errors="replace").strip()
            os.close(handle)
            who = f" (process {holder})" if holder else ""
            raise DataError(
                f"{path} is being written by another sweep{who}; wait, or give another --out and merge the files later."
            ) from None
        except OSError:  # no locks here: then the file must not stand there as if there were one
            os.close(handle)
            beside.unlink(missing_ok=True)
            return _nothing
        if _is_at(handle, beside):
            break
        os.close(handle)  # its last holder has removed it since we opened it, so it would keep nobody out
    os.ftruncate(handle, 0)
    os.pwrite(handle, str(os.getpid()).encode(), 0)

    def stop_writing() -> None:
        with suppress(OSError):
            if _is_at(handle, beside):
                beside.unlink()  # before the lock ends, or it might be the next writer's
        os.close(handle)

    return stop_writing


def _opened(beside: Path) -> int | None:
    """The open file, which no child process inherits; None where no file can be made, for then none can be written."""
    try:
        return os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        if not os.path.exists(beside):
            return None
        raise DataError(f"{beside} cannot be opened ({error.strerror}), so another sweep may be writing.") from None


def _is_at(handle: int, place: Path) -> bool:
    """Whether an open file is the one that has this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(place))
    except FileNotFoundError:
        return False


def _nothing() -> None:
    """There is no lock to end."""
