"""What may be said of a release of private data, built once when it is drawn: for ledger, screen and every file.

It has no seed, since a release has none, and no place for a record of the data or for diagnostics: it is built field by
field, never by dumping an object.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, replace
from typing import Any, Self

from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.checks import box_of, finite, one_of, whole
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.guarantee import guarantee_fields, read_guarantee
from dpgrams_core.model.results import Dataset, Guarantee, Release
from dpgrams_core.model.run import Options, plain
from dpgrams_core.model.specs import make_spec
from dpgrams_core.own_data.table import OwnData
from dpgrams_core.privacy.composition import events_from_json, events_to_json
from dpgrams_core.privacy.events import Event

_ROWS = {"modes": "modes", "clusters": "centres", "regression": "curve"}  # what each kind of method releases


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord:
    """One release of private data: what ran, what it cost, and what came out, in the units of the columns.

    ``rows`` are the released modes or centres, or the rows (x, y) of the released curve; ``settings`` are those of
    the method as it ran, with the defaults filled in.  All of it is public.
    """

    method: str
    n: int
    columns: tuple[str, ...]
    box: tuple[tuple[float, float], ...]
    settings: Options
    events: tuple[Event, ...]
    guarantee: Guarantee
    noise_scale: float | None
    rows: tuple[tuple[float, ...], ...]

    @property
    def what(self) -> str:
        """What the rows are."""
        return _ROWS[METHODS[self.method].kind]


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedRelease:
    """A release with its record and what was said about its data, all in the units of the columns and public."""

    release: Release
    record: ReleaseRecord
    statements: tuple[str, ...]

    def with_reading(self, release: Release) -> Self:
        """The same once more was read off what was drawn."""
        return replace(self, release=release, record=replace(self.record, rows=_listed(release)))


def recorded(release: Release, data: Dataset) -> RecordedRelease:
    """A release with its record, from the data that it was made of."""
    said = data.statements if isinstance(data, OwnData) else ()
    return RecordedRelease(release=release, record=release_record(release, data), statements=said)


def release_record(release: Release, data: Dataset) -> ReleaseRecord:
    """The record of a release: its public fields, one by one, and of the data only n, columns and box.

    Raises
    ------
    DataError
        Where the result is a simulation, whose export is its runs.
    """
    if release.door != "release":
        raise DataError("This is a simulation, not a release of private data: export its settings instead.")
    columns = tuple(f"column {number + 1}" for number in range(data.dimension))
    given = {item.name: getattr(release.spec, item.name) for item in dataclasses.fields(release.spec)}
    return ReleaseRecord(
        method=release.method,
        n=data.n,
        columns=data.columns if isinstance(data, OwnData) else columns,
        box=tuple((float(low), float(high)) for low, high in data.box),
        settings=tuple((name, plain(value)) for name, value in given.items() if value is not None),
        events=release.events,
        guarantee=release.guarantee,
        noise_scale=None if release.noise_scale is None else float(release.noise_scale),
        rows=_listed(release),
    )


def _listed(release: Release) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in release.rows.tolist())


def record_fields(record: ReleaseRecord) -> dict[str, Any]:
    """The fields of a record, named one by one, as plain values."""
    return {
        "method": record.method,
        "n": record.n,
        "columns": record.columns,
        "box": record.box,
        "settings": dict(record.settings),
        "noise_scale": record.noise_scale,
        "events": json.loads(events_to_json(record.events)),
        "guarantee": guarantee_fields(record.guarantee),
        record.what: record.rows,
    }


def read_record(content: dict[str, Any]) -> ReleaseRecord:
    """The inverse of ``record_fields``; every value is checked."""
    method = one_of("method", content["method"], METHODS)
    what = _ROWS[METHODS[method].kind]
    settings = tuple((name, plain(value)) for name, value in content["settings"].items())
    make_spec(METHODS[method].spec, dict(settings))
    scale = content["noise_scale"]
    if {len(content["columns"]), *map(len, content[what])} != {len(content["box"])}:
        raise DataError("The columns, the box and the rows in this file do not fit together; it has been changed.")
    return ReleaseRecord(
        method=method,
        n=whole("n", content["n"], 1),
        columns=tuple(str(name) for name in content["columns"]),
        box=tuple((float(low), float(high)) for low, high in box_of(content["box"]).tolist()),
        settings=settings,
        events=events_from_json(json.dumps(content["events"])),
        guarantee=read_guarantee(content["guarantee"]),
        noise_scale=None if scale is None else finite("noise_scale", scale),
        rows=tuple(tuple(finite(what, value) for value in row) for row in content[what]),
    )
