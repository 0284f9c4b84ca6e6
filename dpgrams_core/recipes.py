"""What a result was made from, as a small file: the recipe of a simulation, or the record of a private release.

A recipe holds every public value and the seeds, so that anyone gets the same numbers again.  A record holds what was
released and what it cost.  It has no seed, since a release has none, and neither type has a place for a record of the
data or for diagnostics: both are built field by field, never by dumping an object.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpgrams_core.checks import box_of, finite, one_of, whole
from dpgrams_core.datasets import DATASETS
from dpgrams_core.datasets.upload import OwnData
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.fingerprint import engine_fingerprint
from dpgrams_core.guarantees import guarantee_fields, read_guarantee
from dpgrams_core.methods import METHODS
from dpgrams_core.privacy.composition import events_from_json, events_to_json
from dpgrams_core.privacy.events import Event
from dpgrams_core.results import Dataset, Guarantee, Release
from dpgrams_core.specs import make_spec

FORMAT = 1
Options = tuple[tuple[str, Any], ...]
_ROWS = {"modes": "modes", "clusters": "centres", "regression": "curve"}  # what each kind of method releases


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One simulated run: ``run(method, load_dataset(dataset, n=n, seed=data_seed), seed=seed, **options)``.

    Examples
    --------
    >>> recipe = Recipe(method="functional", dataset="four_corners", n=500, options=(("epsilon", 0.5),))
    >>> spec_from_json(spec_json([recipe])) == (recipe,)
    True
    """

    method: str
    dataset: str
    n: int
    data_seed: int = 0
    seed: int = 0
    options: Options = ()

    def __post_init__(self) -> None:
        one_of("method", self.method, METHODS)
        one_of("dataset", self.dataset, DATASETS)
        for name, low in (("n", 1), ("data_seed", 0), ("seed", 0)):
            object.__setattr__(self, name, whole(name, getattr(self, name), low))
        options = tuple((name, plain(value)) for name, value in self.options)
        make_spec(METHODS[self.method].spec, dict(options))
        object.__setattr__(self, "options", options)


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


def release_record(release: Release, data: Dataset) -> ReleaseRecord:
    """The record of a release: its public fields, one by one, and of the data only n, columns and box.

    Raises
    ------
    DataError
        Where the result is a simulation, whose export is its recipe.
    """
    if release.door != "release":
        raise DataError("This is a simulation, not a release of private data: export its recipe instead.")
    rows = release.modes if release.curve is None else release.curve
    if isinstance(data, OwnData):
        columns, box, rows = data.columns, data.user_box, data.to_user_units(rows)
    else:
        columns, box = tuple(f"column {number + 1}" for number in range(data.dimension)), data.box
    given = {item.name: getattr(release.spec, item.name) for item in dataclasses.fields(release.spec)}
    return ReleaseRecord(
        method=release.method,
        n=data.n,
        columns=columns,
        box=tuple((float(low), float(high)) for low, high in box),
        settings=tuple((name, plain(value)) for name, value in given.items() if value is not None),
        events=release.events,
        guarantee=release.guarantee,
        noise_scale=None if release.noise_scale is None else float(release.noise_scale),
        rows=tuple(tuple(row) for row in rows.tolist()),
    )


def plain(value: Any) -> Any:
    """A public setting as numbers, text and tuples, whatever array library it came from.

    >>> plain(np.array([1.5, 2.0])), plain([1, [2]]), plain("x")
    ((1.5, 2.0), (1, (2,)), 'x')
    """
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise SpecError("options", type(value).__name__, "settings are numbers, texts, or lists of them")


def spec_json(made: ReleaseRecord | Sequence[Recipe]) -> str:
    """A recipe for each simulated run, or the record of a release, as JSON text."""
    content: dict[str, Any] = {"format": FORMAT, "engine": engine_fingerprint()}
    if isinstance(made, ReleaseRecord):
        content |= {"kind": "release", "note": "A release of private data. It has no seed.", **record_fields(made)}
    else:
        runs = [{**dataclasses.asdict(recipe), "options": dict(recipe.options)} for recipe in made]
        content |= {"kind": "simulation", "runs": runs}
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)


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


def spec_from_json(text: str) -> tuple[Recipe, ...] | ReleaseRecord:
    """The inverse of ``spec_json``; every value is checked as if it had been typed.

    Raises
    ------
    DataError, SpecError
        With a sentence, where the text is not such a file or a value in it is not allowed.
    """
    try:
        content = json.loads(text)
        if content["format"] != FORMAT or content["kind"] not in ("simulation", "release"):
            raise DataError(f"This is not a file of format {FORMAT} that this version reads.")
        return _runs(content) if content["kind"] == "simulation" else read_record(content)
    except (SpecError, DataError):
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
        raise DataError("This is not a file that was exported here, or it has been changed.") from None


def _runs(content: dict[str, Any]) -> tuple[Recipe, ...]:
    return tuple(Recipe(**{**item, "options": tuple(item["options"].items())}) for item in content["runs"])


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
