"""One file for one release: its coefficients, its box and its public facts (a NumPy archive, no pickles)."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from dpgrams_core.errors import DataError, SpecError

Array = np.ndarray
VERSION = 1


@dataclass(frozen=True, eq=False)
class SavedRelease:
    """What a file of a release holds."""

    coefficients: Array
    box: Array
    bandwidth: float
    noise_scale: float
    n: int


def save_release(path: str | Path, kind: str, saved: SavedRelease) -> None:
    """Write a release of a kind ("surface" or "sketch") to one file."""
    facts = {
        "kind": kind,
        "version": VERSION,
        "bandwidth": float(saved.bandwidth),
        "noise_scale": float(saved.noise_scale),
        "n": int(saved.n),
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, coefficients=saved.coefficients, box=saved.box, facts=np.array(json.dumps(facts)))
    Path(path).write_bytes(buffer.getvalue())


def load_release(path: str | Path, kind: str) -> SavedRelease:
    """Read what ``save_release`` wrote; any other file is a DataError."""
    try:
        content = io.BytesIO(Path(path).read_bytes())
        if not zipfile.is_zipfile(content):  # NumPy leaves a half-open archive behind on such a file
            raise ValueError("not an archive")
        content.seek(0)
        with np.load(content, allow_pickle=False) as archive:
            facts = json.loads(str(archive["facts"]))
            arrays = (archive["coefficients"], archive["box"])
        if facts["version"] != VERSION:
            raise DataError(f"This release was saved by another version ({facts['version']}).")
        if facts["kind"] != kind:
            raise ValueError("another kind of release")
        return SavedRelease(*arrays, float(facts["bandwidth"]), float(facts["noise_scale"]), int(facts["n"]))
    except (OSError, EOFError, KeyError, TypeError, ValueError, OverflowError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"This file does not hold a released {kind}.") from None


class ReleaseFile:
    """Gives a released surface or sketch its ``save`` and ``load``."""

    kind: ClassVar[str]
    coefficients: Array
    box: Array
    bandwidth: float
    noise_scale: float
    n: int

    def save(self, path: str | Path) -> None:
        """Write the release to one file (NumPy archive, no pickles)."""
        facts = (self.bandwidth, self.noise_scale, self.n)
        save_release(path, self.kind, SavedRelease(self.coefficients, self.box, *facts))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a release that ``save`` wrote."""
        saved = load_release(path, cls.kind)
        try:
            return cls(saved.coefficients, saved.box, saved.bandwidth, saved.noise_scale, saved.n)  # type: ignore[call-arg]
        except SpecError:  # numbers that no release can have; the sentence would name a setting nobody gave
            raise DataError(f"This file does not hold a released {cls.kind}.") from None
