"""What was released, kept beside its charge: a reload, a crash or another day must not make anyone pay twice.

Everything here was drawn and paid for, so it is public: the noisy coefficients, what was read off them, and the public
facts of the data (columns, box, number of rows).  Arrays are named one by one and the rest is the record of the release
(record.py), so there is no place for a record of the data, a diagnostic or a seed.  It is a NumPy archive without
pickles, which would run code when they are read.  A later format must read the earlier ones: people have paid for them.

A surface is kept the moment it is drawn, before anything is read off it.  That is done when the archive is opened, by
the same steps as the first time, so the modes are the same.  Format 1 had surfaces with what was read off them; it and
format 2 had places in the box that the method saw, which are taken to the user's units when they are read.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpgrams_core.methods.registry import METHODS, read_off
from dpgrams_core.model.checks import box_of, finite, positive, whole
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.guarantee import RESPONSE_ONLY
from dpgrams_core.model.results import Release
from dpgrams_core.model.run import plain
from dpgrams_core.model.specs import make_spec
from dpgrams_core.model.units import in_units
from dpgrams_core.numerics.pooled import PooledRounds, linear_covariance
from dpgrams_core.numerics.scaling import SurfaceInUnits
from dpgrams_core.numerics.sketch import ReleasedSketch
from dpgrams_core.numerics.surface import ReleasedSurface
from dpgrams_core.own_data.record import RecordedRelease, read_record, record_fields
from dpgrams_core.privacy.ledger.book import Charge, Ledger
from dpgrams_core.privacy.ledger.digest import Identity

Array = np.ndarray
FORMAT = 3
IN_UNITS = 3  # the first format with places in the units of the columns
_DIMENSIONS = {
    "modes": 2,
    "anchors": 2,
    "trajectories": 3,
    "curve": 2,
    "curve_band": 2,
    "significance": 1,
    "branches": 1,
}
_ROUNDS = ("h", "length", "prior", "noise")
_SURFACES: dict[str, type[ReleasedSurface] | type[ReleasedSketch]] = {
    kind.kind: kind for kind in (ReleasedSurface, ReleasedSketch)
}


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

    releases: tuple[tuple[Charge, RecordedRelease], ...]
    bounds: tuple[tuple[Charge, KeptBounds], ...]
    problems: tuple[str, ...]
    older: frozenset[int] = frozenset()


def pack_release(made: RecordedRelease, seen: Array) -> bytes:
    """A release of private data as one archive that needs nothing else to be shown again.

    ``seen`` (d, 2) is the box that its method saw, ``data.method_box``.

    Examples
    --------
    >>> from dpgrams_core import Dataset, run
    >>> from dpgrams_core.own_data.record import recorded
    >>> data = Dataset(name="mine", kind="modes", points=np.zeros((500, 2)), box=[(-4, 4)] * 2, private=True)
    >>> release = run("functional", data, epsilon=1.0)
    >>> again = unpack(pack_release(recorded(release, data), data.method_box))
    >>> np.array_equal(again.release.surface.coefficients, release.surface.coefficients), again.record.n
    (True, 500)
    """
    release, surface = made.release, made.release.bare_surface
    arrays = {name: getattr(release, name) for name in _DIMENSIONS if getattr(release, name) is not None}
    facts: dict[str, Any] = {"what": "release", "record": record_fields(made.record), "statements": made.statements}
    facts["surface"] = None
    if surface is not None:
        facts["surface"] = {
            "kind": surface.kind,
            "bandwidth": float(surface.bandwidth),
            "noise_scale": float(surface.noise_scale),
            "n": int(surface.n),
        }
        arrays |= {"coefficients": surface.coefficients, "surface_box": surface.box}
    if release.pooled is not None:
        places, numbers, _ = zip(*release.pooled.rounds, strict=True)  # the covariance follows from the places
        facts["rounds"] = {name: float(getattr(release.pooled, name)) for name in _ROUNDS}
        arrays |= {"round_places": np.stack(places), "round_numbers": np.stack(numbers)}
    return _packed(facts, arrays | {"box": seen})


def pack_bounds(column: str, low: float, high: float) -> bytes:
    """The bounds of a column that were bought, as an archive of the same kind."""
    return _packed({"what": "bounds", "column": column, "low": float(low), "high": float(high)}, {})


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
    releases: list[tuple[Charge, RecordedRelease]] = []
    bounds: list[tuple[Charge, KeptBounds]] = []
    problems = []
    for charge, content in sorted(found, key=lambda pair: pair[0].id):
        try:
            item = unpack(content)
        except DataError as error:
            problems.append(
                f"What was paid for on {charge.at[:10]} ({charge.description}, ε = {charge.epsilon:g}) was kept and "
                f"cannot be shown again. {error}"
            )
            continue
        if isinstance(item, KeptBounds):
            bounds.append((charge, item))
        else:
            releases.append((charge, item))
    problems += [OLDER] * bool(unmarked and not older) + [OTHERS] * ledger.is_shared(account, identity)
    older_ones = frozenset(charge.id for charge, _ in unmarked if older)
    return Kept(releases=tuple(releases), bounds=tuple(bounds), problems=tuple(problems), older=older_ones)


def _packed(facts: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    text = json.dumps({"format": FORMAT, **facts}, allow_nan=False, ensure_ascii=False)
    buffer = io.BytesIO()
    # Not compressed: noise has no pattern to save on, and what is kept can be searched for what must not be there.
    np.savez(buffer, facts=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)
    return buffer.getvalue()


def unpack(content: bytes) -> RecordedRelease | KeptBounds:
    """What ``pack_release`` or ``pack_bounds`` packed; anything else is a ``DataError`` with a sentence.

    >>> unpack(pack_bounds("age", 0.0, 128.0))
    KeptBounds(column='age', low=0.0, high=128.0)
    """
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
            if facts["what"] != "bounds":
                return _release(facts, arrays)
            low, high = box_of([[facts["low"], facts["high"]]])[0].tolist()
            return KeptBounds(column=str(facts["column"]), low=low, high=high)
    except Exception:  # a damaged archive fails in a hundred ways, and whoever reads this can mend none of them
        raise DataError("It is damaged.") from None
    raise DataError("It was kept by a newer version of this program; use that one.")


def _release(facts: dict[str, Any], arrays: dict[str, Array]) -> RecordedRelease:
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
    if any(len(rows[name]) != len(shown) for name in ("curve_band", "significance", "branches") if name in rows):
        raise ValueError("rows that do not fit together")
    seen, box = _box(arrays["box"], columns), np.array(record.box)
    bare, told = None, facts["surface"]
    if told is not None:
        numbers = arrays["coefficients"]
        bare = _SURFACES[told["kind"]](
            _checked(numbers, numbers.ndim, numbers.shape[-1]),
            _box(arrays["surface_box"], columns),
            positive("bandwidth", told["bandwidth"]),
            finite("noise_scale", told["noise_scale"]),
            whole("n", told["n"], 1),
        )
    release = Release(
        method=record.method,
        spec=make_spec(METHODS[record.method].spec, dict(record.settings)),
        events=record.events,
        guarantee=record.guarantee,
        noise_scale=record.noise_scale,
        surface=bare,
        pooled=_rounds(facts["rounds"], arrays, seen) if "rounds" in facts else None,
        door="release",
        **rows,
    )
    said = tuple(str(sentence) for sentence in facts["statements"])
    if release.unread:
        made = RecordedRelease(release=release, record=record, statements=said)
        return made.with_reading(in_units(read_off(release, seen), seen, box))
    if facts["format"] < IN_UNITS:
        release = in_units(release, seen, box)
        moved = tuple((name, plain(getattr(release.spec, name))) for name, _ in record.settings)
        record = replace(record, settings=moved)  # what is exported of it is run by this version again
    elif bare is not None:
        release = replace(release, surface=SurfaceInUnits(bare, box))
    elif release.pooled is not None:
        release = replace(release, pooled=release.pooled.shown_in(box))
    return RecordedRelease(release=release, record=record, statements=said)


def _rounds(told: dict[str, Any], arrays: dict[str, Array], box: Array) -> PooledRounds:
    """The rounds of the tight calibration; those of DP-PMS are not kept, since they stand at predictors of records."""
    columns = len(box)
    places = _checked(arrays["round_places"], 3, columns)
    numbers = _checked(arrays["round_numbers"], 2, places.shape[1] * (1 + columns))
    known = {name: positive(name, told[name]) for name in _ROUNDS}
    pooled = PooledRounds(**known, axes=tuple(range(columns)), box=box)
    for at, released in zip(places, numbers, strict=True):
        pooled.add(at, released, linear_covariance(at, at, pooled.h, pooled.h))
    return pooled


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
