"""The search for a planted record in what leaves the building: in text, in bytes, in packed arrays and in archives."""

from __future__ import annotations

import base64
import io
import math
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping

import numpy as np
from plotly.offline import get_plotlyjs

from dpgrams_core.model.units import scaled_by_box
from dpgrams_core.own_data.table import OwnData

Array = np.ndarray
LIBRARY = get_plotlyjs().encode()
NUMBERS = re.compile(rb"\d+\.?\d*(?:[eE][+-]?\d+)?")
GROUPED = re.compile(rb"\d{1,3}(?:,\d{3})+(?:\.\d+)?")  # 91,827.36
PACKED = re.compile(rb'"dtype":\s*"(\w+)",\s*"bdata":\s*"([^"]*)"')
LEADING = 12  # digits: a file of a million digits holds others like them once in a million files
SAME = 1e-15  # relative: the same number, but for its last bit


def forms(value: float) -> Array:
    """What may be left of a number's size: itself, with 32 bits, and rounded or cut to six digits or more."""
    size, kept = abs(value), {abs(value), float(np.float32(abs(value)))}
    for digits in range(6, 16):
        unit = 10.0 ** (digits - 1 - math.floor(math.log10(size)))
        kept |= {float(f"{size:.{digits}g}"), float(f"{math.floor(size * unit) / unit:.{digits}g}")}
    return np.array(sorted(kept))


def found_in(content: bytes, secrets: Mapping[str, float], records: Array | None = None) -> list[str]:
    """The names of the secret numbers that a file holds in some form, and "a record" for any of many others in full."""
    found = set()
    known = {name: (forms(value), _digits(value), _bytes(value)) for name, value in secrets.items()}
    for part, numbers in _parts(content):
        digits = re.sub(rb"[.,]", b"", part)
        for name, (sizes, leading, raw) in known.items():
            if leading in digits or any(form in part for form in raw) or _among(numbers, sizes):
                found.add(name)
        if records is not None and _among(numbers, np.unique(np.abs(records))):
            found.add("a record")
    return sorted(found)


def records_of(data: OwnData) -> Array:
    """All numbers of a user's records, in the file's units and as methods see them; an edge of the box is public."""
    inside = (data.points > data.box[:, 0]) & (data.points < data.box[:, 1])
    return np.concatenate([data.points[inside], scaled_by_box(data).points[inside]])


def _digits(value: float) -> bytes:
    """The first digits of a number, wherever its point stands."""
    return f"{abs(value):.17e}".replace(".", "")[:LEADING].encode()


def _bytes(value: float) -> list[bytes]:
    """A number of either sign as it stands in memory, in all its forms."""
    return [struct.pack(kind, sign * form) for kind in ("<d", ">d") for sign in (1, -1) for form in forms(value)]


def _among(numbers: Array, ordered: Array) -> bool:
    """Whether some number is one of those in order."""
    place = np.searchsorted(ordered, numbers)
    near = [ordered[np.clip(place + step, 0, len(ordered) - 1)] for step in (-1, 0)]
    return any(bool((np.abs(numbers - other) <= SAME * other).any()) for other in near)


def _parts(content: bytes) -> Iterator[tuple[bytes, Array]]:
    """A file and the sizes of all numbers in it; of an archive, each of its members."""
    if content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield from _parts(archive.read(name))
        return
    if content.startswith(b"\x93NUMPY"):
        array = np.load(io.BytesIO(content), allow_pickle=False)
        if array.dtype.kind in "fiu":
            yield content, np.abs(array.astype(float).ravel())
            return
    part = content.replace(LIBRARY, b"").replace(b"\\u002f", b"/").replace(b"\\u003d", b"=").replace(b"\\/", b"/")
    written = [float(number) for number in NUMBERS.findall(part)]
    written += [float(number.replace(b",", b"")) for number in GROUPED.findall(part)]
    packed = [np.frombuffer(base64.b64decode(data), kind.decode()).astype(float) for kind, data in PACKED.findall(part)]
    yield part, np.abs(np.concatenate([np.array(written), *packed]))
