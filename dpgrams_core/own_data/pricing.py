"""The price of a release before a record is read: the same n, box and settings, and public points for the records.

What a private method costs depends on n, the box and its settings only.  So its price is found by running the part of
it that reads records on public points.  That also meets every refusal that the draw itself would meet, before anything
is charged.  What is read off the draw afterwards is left out: a failure there loses nothing (release.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dpgrams_core.methods.dp_grams.starts import MAX_CANDIDATES
from dpgrams_core.methods.functional.modes import KernelSums
from dpgrams_core.methods.registry import METHODS, Method, asked, refuse_read_bandwidth
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.guarantee import ADD_OR_REMOVE, Guarantee
from dpgrams_core.model.results import Dataset
from dpgrams_core.model.specs import make_spec
from dpgrams_core.model.units import scaled_by_box
from dpgrams_core.numerics.sketch import public_points
from dpgrams_core.privacy.events import Event
from dpgrams_core.privacy.noise import ReleaseNoise, SimulationNoise

FEW = 64  # public points that stand for any number of records, where a method only adds them up
Box = tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True)
class Quote:
    """What a release will cost and the guarantee that it will have; no record was read for it."""

    method: str
    epsilon: float
    delta: float
    events: tuple[Event, ...]
    guarantee: Guarantee


@dataclass(frozen=True, kw_only=True)
class StandIn(Dataset):
    """Few public points that count as ``counted`` records."""

    counted: int

    @property
    def n(self) -> int:
        return self.counted


@dataclass(frozen=True, kw_only=True)
class _Noting(StandIn):
    """The same, which notes what a method asks to be added up."""

    noted: list[Any]

    def add_up(self, sums: Any) -> np.ndarray:
        self.noted.append(sums)
        return super().add_up(sums)


class _PricingNoise(SimulationNoise):
    """Seeded noise for public points that stand where private records will: nothing that is drawn here leaves."""

    door = ReleaseNoise.door


def quote(method: str, data: Dataset, **options: Any) -> Quote:
    """The price of a release, by running the part of it that reads records on a public stand-in.

    The stand-in has the same n and box.  The predictors of regression data are kept for DP-PMS, which takes them as
    public and plans by them, as they are at the release door (methods/door.py).

    Notes
    -----
    The functional releases are priced in milliseconds whatever n is; the others take as long as their release does.

    Examples
    --------
    >>> data = Dataset(name="mine", kind="modes", points=np.zeros((500, 2)), box=[(-4, 4)] * 2, private=True)
    >>> offer = quote("functional", data, epsilon=0.5)
    >>> offer.epsilon, offer.delta, offer.guarantee.status
    (0.5, 1e-06, 'proven')
    """
    if method in METHODS and not METHODS[method].private:
        raise DataError(f"{METHODS[method].title} has no privacy and the data are private; nothing was run.")
    refuse_read_bandwidth(options)
    _refuse_paid(options)
    chosen, spec = asked(method, data, options)
    if data.candidates is not None and len(data.candidates) > MAX_CANDIDATES:  # the stand-in has none of its own
        raise SpecError("candidates", f"{len(data.candidates):,} points", f"at most {MAX_CANDIDATES:,} candidates")
    if data.kind == "regression" and chosen.bare is None:
        seen = chosen.admitted(scaled_by_box(data))
        points = public_points(seen.box, data.n)
        points[:, 0] = seen.points[:, 0]
        stand_in = Dataset(name="stand-in", kind=data.kind, points=points, box=seen.box, private=True)
        events, guarantee = _priced(chosen, spec, stand_in)
    else:
        events, guarantee = _priced_by_size(method, spec, data.n, tuple(map(tuple, data.method_box.tolist())))
    guarantee = data.qualified(guarantee, spec)  # by public facts: how its columns and settings were made
    epsilon, delta = guarantee.of_replacement
    # Events describe what a replacement costs; a claim about adding or removing a record has none of that kind.
    described = events if guarantee.neighbours != ADD_OR_REMOVE else ()
    return Quote(method=method, epsilon=epsilon, delta=delta, events=described, guarantee=guarantee)


def _refuse_paid(options: Mapping[str, Any]) -> None:
    """Refuse what has no price in digits before it is drawn: how many components stand above the noise is seen then."""
    if options.get("components") is not None:
        raise SpecError("components", options["components"], "the columns of a table are public; leave it out")


def _priced(chosen: Method, spec: Any, stand_in: Dataset) -> tuple[tuple[Event, ...], Guarantee]:
    """Events and guarantee of a method on public points."""
    done = (chosen.bare or chosen.function)(stand_in, spec, _PricingNoise(0))
    return done.events, done.guarantee


@lru_cache(maxsize=64)
def _priced_by_size(method: str, spec: Any, n: int, box: Box) -> tuple[tuple[Event, ...], Guarantee]:
    """The same by public facts alone, remembered: a page asks for a price before it asks for the release.

    A method with a ``bare`` part is a functional release: it adds up a function of each record, and n enters by its
    bandwidth, its number of coefficients and its slack for rounding.  For it few points that count as n are enough.
    The others draw batches of their n records, so they get them all.
    """
    chosen, sides = METHODS[method], np.array(box)
    if chosen.bare is None:
        points = public_points(sides, n)
        return _priced(chosen, spec, Dataset(name="stand-in", kind=chosen.kind, points=points, box=sides))
    few = public_points(sides, min(n, FEW))
    return _priced(chosen, spec, StandIn(name="stand-in", kind=chosen.kind, points=few, box=sides, counted=n))


def sums_asked_for(method: str, data: Dataset, **options: Any) -> tuple[Any, KernelSums]:
    """The settings of a functional release, and what it will add up over the records: by public facts alone."""
    refuse_read_bandwidth(options)
    _refuse_paid(options)
    chosen, spec = asked(method, data, options)
    if chosen.bare is None:
        able = ", ".join(name for name, item in METHODS.items() if item.bare is not None)
        raise SpecError("method", method, f"over a folder of files only sums of the records are taken: choose {able}")
    few, sides = public_points(data.method_box, FEW), data.method_box
    noting = _Noting(name="stand-in", kind=chosen.kind, points=few, box=sides, counted=data.n, noted=[])
    _priced(chosen, spec, noting)
    return make_spec(chosen.spec, options), noting.noted[0]


def refuse_unproven(offer: Quote) -> None:
    """Refuse a price whose guarantee has no proof."""
    words = offer.guarantee.words
    if words == "proven":
        return
    if offer.guarantee.status == "proven":
        why = (
            f"The columns of these data were fitted on their records, so the guarantee is only “{words}”. Give the "
            "columns as they are, in a public box"
        )
    else:
        why = (
            f"{METHODS[offer.method].title} with these settings has a guarantee that is “{words}”, not proven. Choose "
            "the functional release or the tight calibration with public settings"
        )
    raise DataError(f"{why}, or accept an unproven guarantee. Nothing was charged and nothing was drawn.")
