"""The one door for files that a visitor hands in: they are unpacked in a process of its own (guarded_child.py).

A file may be damaged so that a parser crashes, or unpack to a thousand times its size, or keep a parser busy for
hours.  The process has bounds on memory and time, and ends alone.  What it answers is numbers and short texts in a
plain form, which this side holds against the same limits again: a process that was taken over can say no more.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from dpgrams_core.errors import DataError

if TYPE_CHECKING:
    from dpgrams_core.datasets.table_reader import Limits

CHILD = Path(__file__).with_name("guarded_child.py")
WAIT_SECONDS = 60.0  # for a file within limits
LONGEST_LINE = 20_000_000
LONGEST_SENTENCE = 400


@contextmanager
def child(
    form: str, source: bytes | BinaryIO, limits: Limits, damaged: str, **more: object
) -> Iterator[tuple[dict[str, Any], IO[bytes]]]:
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
    )
    alarm = threading.Timer(WAIT_SECONDS, process.kill)
    alarm.daemon = True
    if limits.max_numbers is not None:
        alarm.start()
    with process:
        assert process.stdout is not None
        try:
            if isinstance(source, bytes) and process.stdin is not None:
                with suppress(BrokenPipeError), process.stdin as to_child:  # where it has ended, its answer says so
                    to_child.write(source)
            yield _first_line(process.stdout, damaged), process.stdout
            if process.wait() != 0:
                raise DataError(damaged)
        except DataError:
            raise
        except Exception:  # it said too little, or what it should not
            raise DataError(damaged) from None
        finally:
            alarm.cancel()
            process.kill()


def _first_line(answer: IO[bytes], damaged: str) -> dict[str, Any]:
    facts = json.loads(answer.readline(LONGEST_LINE))
    if not isinstance(facts, Mapping):
        raise DataError(damaged)
    if "refused" in facts:
        raise DataError(str(facts["refused"])[:LONGEST_SENTENCE])
    return dict(facts)


def exactly(answer: IO[bytes], size: int) -> bytes:
    """So many bytes; fewer are the end of a process that failed."""
    content = answer.read(size)
    if len(content) < size:
        raise EOFError
    return content
