"""Parquet, strictly, and in a process of its own (parquet_child.py): a damaged file or a bomb ends that process only.

The file's own description is held against the limits before a value is unpacked: a few kilobytes can stand for billions
of rows.  A file that lies about it meets the memory limit of the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dpgrams_core.datasets.csv_reader import check_size
from dpgrams_core.datasets.table_reader import Column, Limits, Table, check_names, make_table
from dpgrams_core.errors import DataError

CHILD = Path(__file__).with_name("parquet_child.py")
WAIT_SECONDS = 120.0  # for a file within limits
_DAMAGED = "The Parquet file is damaged or not complete, or unpacks to too much. Save it again and choose it again."


def read_parquet(source: bytes | BinaryIO, limits: Limits) -> Table:
    """Read a Parquet file, from bytes or from an open file; see ``read_table``."""
    answer = _answer_of_child(source, limits)
    line, _, numbers = answer.partition(b"\n")
    facts = json.loads(line)
    rows, names = int(facts["rows"]), [name for name, _ in facts["columns"]]
    check_names(names, limits)
    kinds = [kind for _, kind in facts["columns"]]
    check_size(rows, kinds.count("numeric"), limits)
    columns, values = [], {}
    place = 0
    for name, kind in zip(names, kinds, strict=True):
        if kind == "numeric":
            array = np.frombuffer(numbers, dtype="<f8", count=rows, offset=place).astype(float)
            place += 8 * rows
            if rows and np.isnan(array).all():
                kind = "empty"
            else:
                values[name] = array
        columns.append(Column(name, kind))
    return make_table(columns, values, rows)


def _answer_of_child(source: bytes | BinaryIO, limits: Limits) -> bytes:
    """What the process says about the file; a sentence where it ends without an answer."""
    words = [str(number or 0) for number in (limits.max_rows, limits.max_numbers, limits.max_columns)]
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(CHILD), *words],
            input=source if isinstance(source, bytes) else None,
            stdin=None if isinstance(source, bytes) else source,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a library's last words may quote the file
            timeout=None if limits.max_numbers is None else WAIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataError(_DAMAGED) from None
    if done.returncode != 0:
        raise DataError(_DAMAGED)
    return done.stdout
