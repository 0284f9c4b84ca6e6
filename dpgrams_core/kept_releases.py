"""What was released, kept beside its charge: a reload, a crash or another day must not make anyone pay twice.

Everything here was drawn and paid for, so it is public: the noisy coefficients, what was read off them, and the public
facts of the data (columns, box, number of rows).  Arrays are named one by one and the rest is the record of the release
(recipes.py), so there is no place for a record of the data, a diagnostic or a seed.  It is a NumPy archive without
pickles, which would run code when they are read.  A later format must read the earlier ones: people have paid for them.

A surface is kept the moment it is drawn, before anything is read off it.  That is done when the archive is opened, by
the same steps as the first time, so the modes are the same.  Format 1 had surfaces with what was read off them.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgrams_core.checks import box_of, finite, positive, whole
from dpgrams_core.content import Identity
from dpgrams_core.datasets.upload import OwnData
from dpgrams_core.errors import DataError
from dpgrams_core.guarantees import RESPONSE_ONLY
from dpgrams_core.methods import METHODS, read_off
from dpgrams_core.privacy.ledger import Charge, Ledger
from dpgrams_core.recipes import ReleaseRecord, read_record, record_fields, release_record
from dpgrams_core.results import Dataset, Release
from dpgrams_core.sketches import ReleasedSketch
from dpgrams_core.specs import make_spec
from dpgrams_core.surfaces import ReleasedSurface

Array = np.ndarray
FORMAT = 2
_DIMENSIONS = {"modes": 2, "anchors": 2, "trajectories": 3, "curve": 2, "significance": 1, "branches": 1}
_SURFACES: dict[str, type[ReleasedSurface] | type[ReleasedSketch]] = {
    kind.kind: kind for kind in (ReleasedSurface, ReleasedSketch)
}


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptRelease:
    """A release as it was kept, with the public facts of its data.

    ``record`` has the columns and the box in the user's units, ``box`` (d, 2) is the one that the method saw.
    """

    release: Release
    record: ReleaseRecord
    box: Array
    statements: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class KeptBounds:
    """The bounds of a column that were bought."""

    column: str
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """All that was kept for one table, in the order of the charges, and sentences about what cannot be shown.

    ``older`` are the charges of which it is not known which exact table they are of.
    """

    releases: tuple[tuple[Charge, KeptRelease], ...]
    bounds: tuple[tuple[Charge, KeptBounds], ...]
    problems: tuple[str, ...]
    older: frozenset[int] = frozenset()


def pack_release(release: Release, data: Dataset) -> bytes:
    """A release of private data as one archive that needs nothing else to be shown again.

    Of the data it takes n, the columns and both boxes, all of which are public.

    Raises
    ------
    DataError
        Where the result is a simulation.

    Examples
    --------
    >>> from dpgrams_core import run
    >>> data = Dataset(name="mine", kind="modes", points=np.zeros((500, 2)), box=[(-4, 4)] * 2, private=True)
    >>> release = run("functional", data, epsilon=1.0)
    >>> again = unpack_release(pack_release(release, data))
    >>> np.array_equal(again.release.surface.coefficients, release.surface.coefficients), again.record.n
    (True, 500)
    """
    surface = release.surface
    arrays = {name: getattr(release, name) for name in _DIMENSIONS if getattr(release, name) is not None}
    facts: dict[str, Any] = {
        "what": "release",
        "record": record_fields(release_record(release, data)),
        "statements": data.statements if isinstance(data, OwnData) else (),
        "surface": None,
    }
    if surface is not None:
        facts["surface"] = {
            "kind": surface.kind,
            "bandwidth": float(surface.bandwidth),
            "noise_scale": float(surface.noise_scale),
            "n": int(surface.n),
        }
        arrays |= {"coefficients": surface.coefficients, "surface_box": surface.box}
    return _packed(facts, arrays | {"box": data.box})


def pack_bounds(column: str, low: float, high: float) -> bytes:
    """The bounds of a column that were bought, as an archive of the same kind."""
    return _packed({"what": "bounds", "column": column, "low": float(low), "high": float(high)}, {})


def unpack_release(content: bytes) -> KeptRelease:
    """What ``pack_release`` packed; anything else is a ``DataError`` with a sentence."""
    found = _unpacked(content)
    if not isinstance(found, KeptRelease):
        raise DataError("It is not a release.")
    return found


def unpack_bounds(content: bytes) -> KeptBounds:
    """What ``pack_bounds`` packed.

    >>> unpack_bounds(pack_bounds("age", 0.0, 128.0))
    KeptBounds(column='age', low=0.0, high=128.0)
    """
    found = _unpacked(content)
    if not isinstance(found, KeptBounds):
        raise DataError("These are no bounds.")
    return found


OTHERS = (
    "There are charges of a file that agrees with this one to about seven digits and is not the same: other digits "
    "behind those, or other names of columns, also of those with text or without a value. They share one budget; what "
    "was released is shown only for exactly the file that it is of. The words in a column of text are not compared, "
    "nor the digits of a number beyond the sixteenth."
)
OLDER = (
    "There are releases from before it was noted which exact file each is of, so they are not shown. If you know that "
    "they are of this file, the command kept shows them with --older."
)

MAY_BE_OF_ANOTHER = "It is from before this was noted and may be of another file that agrees to seven digits."


def read_kept(ledger: Ledger, identity: Identity, *, older: bool = False) -> Kept:
    """All that was kept for exactly this table; what cannot be read is a sentence, and its charge stays.

    ``older`` adds what was kept before exact tables were noted. It may be of any table that agrees with this one to
    seven digits, so it is for the owner of the ledger, who knows.
    """
    account = ledger.account_of(identity.content)
    unmarked = ledger.kept(account, None)
    found = ledger.kept(account, identity) + (unmarked if older else [])
    kept = _read(sorted(found, key=lambda pair: pair[0].id))
    said = [OLDER] * bool(unmarked and not older) + [OTHERS] * ledger.is_shared(account, identity)
    return replace(
        kept, problems=kept.problems + tuple(said), older=frozenset(charge.id for charge, _ in unmarked if older)
    )


def _read(kept: list[tuple[Charge, bytes]]) -> Kept:
    releases: list[tuple[Charge, KeptRelease]] = []
    bounds: list[tuple[Charge, KeptBounds]] = []
    problems = []
    for charge, content in kept:
        try:
            found = _unpacked(content)
        except DataError as error:
            problems.append(
                f"What was paid for on {charge.at[:10]} ({charge.description}, ε = {charge.epsilon:g}) was kept and "
                f"cannot be shown again. {error}"
            )
            continue
        if isinstance(found, KeptBounds):
            bounds.append((charge, found))
        else:
            releases.append((charge, found))
    return Kept(releases=tuple(releases), bounds=tuple(bounds), problems=tuple(problems))


def _packed(facts: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    text = json.dumps({"format": FORMAT, **facts}, allow_nan=False, ensure_ascii=False)
    buffer = io.BytesIO()
    # Not compressed: noise has no pattern to save on, and what is kept can be searched for what must not be there.
    np.savez(buffer, facts=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)
    return buffer.getvalue()


def _unpacked(content: bytes) -> KeptRelease | KeptBounds:
    try:
        file = io.BytesIO(content)
        if not zipfile.is_zipfile(file):  # NumPy leaves a half-open archive behind on such a file
            raise ValueError("not an archive")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            facts = json.loads(archive["facts"].tobytes())
            newer = whole("format", facts["format"], 1) > FORMAT
            arrays = {} if newer else {name: archive[name] for name in archive.files if name != "facts"}
        if not newer:
            return _bounds(facts) if facts["what"] == "bounds" else _release(facts, arrays)
    except Exception:  # a damaged archive fails in a hundred ways, and whoever reads this can mend none of them
        raise DataError("It is damaged.") from None
    raise DataError("It was kept by a newer version of this program; use that one.")


def _bounds(facts: dict[str, Any]) -> KeptBounds:
    low, high = box_of([[facts["low"], facts["high"]]])[0].tolist()
    return KeptBounds(column=str(facts["column"]), low=low, high=high)


def _release(facts: dict[str, Any], arrays: dict[str, Array]) -> KeptRelease:
    if facts["what"] != "release":
        raise ValueError("not a release")
    record = read_record(facts["record"])
    if record.method == "dp_pms":  # format 1 called its neighbours replace-one, which promises too much
        record = replace(record, guarantee=replace(record.guarantee, neighbours=RESPONSE_ONLY))
    columns = len(record.columns)
    rows: dict[str, Any] = {
        name: _checked(arrays[name], number, columns) for name, number in _DIMENSIONS.items() if name in arrays
    }
    shown = rows["modes" if "curve" not in rows else "curve"]
    if any(len(rows[name]) != len(shown) for name in ("significance", "branches") if name in rows):
        raise ValueError("rows that do not fit together")
    box = _box(arrays["box"], columns)
    release = Release(
        method=record.method,
        spec=make_spec(METHODS[record.method].spec, dict(record.settings)),
        events=record.events,
        guarantee=record.guarantee,
        noise_scale=record.noise_scale,
        surface=_surface(facts["surface"], arrays, columns),
        door="release",
        **rows,
    )
    if release.unread:
        release = read_off(release, box)
        record = replace(record, rows=_user_rows(release, box, np.array(record.box)))
    return KeptRelease(
        release=release,
        record=record,
        box=box,
        statements=tuple(str(sentence) for sentence in facts["statements"]),
    )


def _user_rows(release: Release, box: Array, user_box: Array) -> tuple[tuple[float, ...], ...]:
    """What is read off a release in the user's units, as ``OwnData`` makes them of those that the method saw."""
    rows = release.modes if release.curve is None else release.curve
    if not np.array_equal(box, user_box):  # a data set made by hand has one box
        share = (rows - box[:, 0]) / (box[:, 1] - box[:, 0])
        rows = user_box[:, 0] + share * (user_box[:, 1] - user_box[:, 0])
    return tuple(tuple(row) for row in rows.tolist())


def _surface(
    facts: dict[str, Any] | None, arrays: dict[str, Array], columns: int
) -> ReleasedSurface | ReleasedSketch | None:
    if facts is None:
        return None
    numbers = arrays["coefficients"]
    return _SURFACES[facts["kind"]](
        _checked(numbers, numbers.ndim, numbers.shape[-1]),
        _box(arrays["surface_box"], columns),
        positive("bandwidth", facts["bandwidth"]),
        finite("noise_scale", facts["noise_scale"]),
        whole("n", facts["n"], 1),
    )


def _checked(array: Array, dimensions: int, last: int) -> Array:
    """Finite numbers of the right form; a list has no columns to check."""
    if array.dtype.kind not in "fi" or array.ndim != dimensions or (dimensions > 1 and array.shape[-1] != last):
        raise ValueError("an array of another form")
    if not np.isfinite(array).all():
        raise ValueError("numbers that are not finite")
    return array


def _box(array: Array, columns: int) -> Array:
    box = box_of(array)
    if len(box) != columns:
        raise ValueError("a box of other columns")
    return box
