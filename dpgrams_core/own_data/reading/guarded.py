"""The one door for files that a visitor hands in: they are unpacked in a process of its own (guarded_child.py).

A file may be damaged so that a parser crashes, or unpack to a thousand times its size, or keep a parser busy for
hours.  The process has bounds on memory and time, and ends alone.  What it answers is numbers and short texts in a
plain form, which this side holds against the same limits again: a process that was taken over can say no more.
This side waits for it by checkpoints, so that it ends with the visit of whoever handed the file in.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from dpgrams_core.model.errors import DataError
from dpgrams_core.model.progress import checkpoint

if TYPE_CHECKING:
    from dpgrams_core.own_data.reading.table import Limits

CHILD = Path(__file__).with_name("guarded_child.py")
WAIT_SECONDS = 60.0  # for a file within limits
# Its memory is bounded by addresses, and every thread and arena takes some: how many there are must not be chance.
ONE_OF_EACH = {"MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
POLL_SECONDS = 0.2  # between two checkpoints
PIPE_BYTES = 2**20  # that are read or written at once
LONGEST_LINE = 20_000_000
LONGEST_SENTENCE = 400


class Answer:
    """What the process writes, read as it comes."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._handle, self._held = pipe.fileno(), b""

    def exactly(self, size: int) -> bytes:
        """So many bytes; fewer are the end of a process that failed."""
        parts, lacking = [self._held[:size]], size - len(self._held)
        self._held = self._held[size:]
        while lacking > 0 and (part := self._next(lacking)):
            parts.append(part)
            lacking -= len(part)
        if lacking > 0:
            raise EOFError
        return b"".join(parts)

    def line(self, longest: int) -> bytes:
        """All up to the end of a line, or so many bytes."""
        parts, size = [], 0
        while size < longest and (part := self._held or self._next(PIPE_BYTES)):
            line, end, self._held = part.partition(b"\n")
            parts.append(line)
            size += len(line)
            if end:
                break
        return b"".join(parts)

    def _next(self, most: int) -> bytes:
        _until_ready(self._handle, select.POLLIN)
        return os.read(self._handle, min(most, PIPE_BYTES))


def _until_ready(handle: int, event: int) -> None:
    """Wait for a pipe; whoever nobody waits for any more ends here."""
    poll = select.poll()
    poll.register(handle, event)
    checkpoint()
    while not poll.poll(1000 * POLL_SECONDS):
        checkpoint()


def _hand_over(content: bytes, pipe: IO[bytes]) -> None:
    """Write all of a file, as fast as the process takes it; where it has ended, its answer says so."""
    rest, handle = memoryview(content), pipe.fileno()
    os.set_blocking(handle, False)
    try:
        while rest:
            _until_ready(handle, select.POLLOUT)
            rest = rest[os.write(handle, rest[:PIPE_BYTES]) :]
    except BrokenPipeError:
        pass
    finally:
        pipe.close()


def _wait_for(process: subprocess.Popen[bytes]) -> int:
    """The word with which the process ends."""
    while True:
        checkpoint()
        try:
            return process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue


@contextmanager
def child(
    form: str, source: bytes | BinaryIO, limits: Limits, damaged: str, **more: object
) -> Iterator[tuple[dict[str, Any], Answer]]:
    """What the process says of a file: its first line, and the stream that follows, to be read to its end.

    ``form`` is what the file should be: "parquet" or "csv" for a table, "runs" for a results file; ``more`` goes along.
    ``damaged`` is the sentence for whoever handed in a file that ends the process.  Without a limit on numbers, which
    only the owner of the machine goes without, there is no bound on memory and time either.
    """
    words = json.dumps({"form": form, "limits": asdict(limits), **more})
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", str(CHILD), words],
        stdin=subprocess.PIPE if isinstance(source, bytes) else source,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a library's last words may quote the file
        bufsize=0,
        env={**os.environ, **ONE_OF_EACH},
    )
    alarm = threading.Timer(WAIT_SECONDS, process.kill)
    alarm.daemon = True
    if limits.max_numbers is not None:
        alarm.start()
    with process:
        assert process.stdout is not None
        try:
            if isinstance(source, bytes) and process.stdin is not None:
                _hand_over(source, process.stdin)
            answer = Answer(process.stdout)
            facts = json.loads(answer.line(LONGEST_LINE))
            if not isinstance(facts, Mapping):
                raise DataError(damaged)
            if "refused" in facts:
                raise DataError(str(facts["refused"])[:LONGEST_SENTENCE])
            yield dict(facts), answer
            if _wait_for(process) != 0:
                raise DataError(damaged)
        except DataError:
            raise
        except Exception:  # it said too little, or what it should not
            raise DataError(damaged) from None
        finally:
            alarm.cancel()
            process.kill()
