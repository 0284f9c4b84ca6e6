"""What the ledger knows a data set by: a digest of its numbers, the same in any order and any file format."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

Array = np.ndarray


def content_digest(columns: Sequence[Array]) -> bytes:
    """32 bytes that stand for a table of numbers, whatever the order of its rows and columns.

    Every number is mixed to 64 bits, a row is the mixed sum of its numbers, and the sorted rows are hashed
    (SHA-256).  So sorting, renaming columns, another delimiter or CSV instead of Parquet give the same digest.
    Two different tables share one only by an accident of 64-bit sums, and would then share a budget, which is safe.
    A changed, added or removed number gives another: the digest knows a file, not the people in it.

    The digest could be guessed by trying tables, so it is never written down: the ledger keys it first.

    Examples
    --------
    >>> one = content_digest([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    >>> one == content_digest([np.array([4.0, 3.0]), np.array([2.0, 1.0])])
    True
    >>> one == content_digest([np.array([1.0, 2.0]), np.array([4.0, 3.0])])
    False
    """
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    total = np.zeros(len(arrays[0]) if arrays else 0, dtype=np.uint64)
    for array in arrays:
        total += _mixed(_bits(array))
    rows = np.sort(_mixed(total))
    head = f"{len(rows)}x{len(arrays)};".encode()
    return hashlib.sha256(head + rows.astype("<u8").tobytes()).digest()


def _bits(numbers: Array) -> Array:
    """The bits of each number, one pattern for every zero and one for every missing value."""
    plain = numbers + 0.0  # -0.0 becomes 0.0
    plain[np.isnan(plain)] = np.nan
    return plain.view(np.uint64)


def _mixed(bits: Array) -> Array:
    """The finaliser of splitmix64: every bit of the input moves every bit of the output."""
    mixed = bits + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
