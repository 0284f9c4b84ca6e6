"""Cached calls into the core, for simulations only.

These caches are shared by all users of a server, so private data never enter them: they are
keyed on names, public settings and seeds, and bounded.  What is computed ends when its visitor
leaves or moves a control; then nothing is kept of it.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from dpgrams_core import Dataset, Release, load_dataset, run, score
from dpgrams_core.figures.regression import Slices, conditional_slices, slice_frames, squeezed
from dpgrams_core.figures.sent import sent
from dpgrams_core.figures.style import Chart
from dpgrams_core.figures.traces import DensityGrid, density_grid
from dpgrams_core.model.run import Run
from dpgrams_core.studies.comparison import ComparisonSettings, Row, compare
from dpgrams_core.studies.lessons import State, quantity_of
from dpgrams_core.sweeps.cell import CellResult
from pages._ui.server import visitors

MOST_BYTES = 64_000_000  # of pictures as they are sent, some hundreds
MOST_AT_REST, BYTES_AT_REST = 8, 2_000_000  # the same while nobody is there: the first to come finds the usual ones
Made = TypeVar("Made")


class Kept(Generic[Made]):
    """A function whose results are kept for all visitors, by its arguments; two who ask for the same wait for one.

    Streamlit's own caches pickle and hash every argument at every call: a quarter of a page's redraw.
    """

    def __init__(self, make: Callable[..., Made], most: int) -> None:
        self._make, self._most = make, most
        self._known: OrderedDict[Hashable, Made] = OrderedDict()
        self._making: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._lock = threading.Lock()
        functools.update_wrapper(self, make)
        visitors.WHEN_EMPTY.append(lambda: self.shrink(MOST_AT_REST))

    def __call__(self, *what: Hashable) -> Made:
        with self._lock:
            if what in self._known:
                self._known.move_to_end(what)
                return self._known[what]
            alone = self._making.setdefault(what, threading.Lock())
        with alone:
            if what not in self._known:  # another visitor may have been faster
                made = self._make(*what)
                with self._lock:
                    self._known[what] = made
                self.shrink(self._most)
                return made
        return self(*what)

    def shrink(self, most: int) -> None:
        """Forget all but so many."""
        with self._lock:
            while len(self._known) > most:
                self._known.popitem(last=False)

    def clear(self) -> None:
        self.shrink(0)


def kept(most: int) -> Callable[[Callable[..., Made]], Kept[Made]]:
    """Keep so many results of a function, those that were asked for last."""
    return lambda make: Kept(make, most)


# Results are frozen and their arrays read-only, so one object can serve every session
# (cache_data would pickle a million points on every call).
@kept(12)
@visitors.ends_with_the_script()
def dataset(name: str, n: int, seed: int, design: str = "") -> Dataset:
    """A synthetic data set."""
    return load_dataset(name, n=n, seed=seed, design=design)


@kept(400)
@visitors.ends_with_the_script()
def release(wanted: Run) -> Release:
    """A simulated run."""
    return run(wanted.method, records(wanted), seed=wanted.seed, **wanted.settings)


@kept(400)
@visitors.ends_with_the_script()
def scores(wanted: Run) -> dict[str, float]:
    """How good a simulated run is, against the known truth."""
    return score(release(wanted), records(wanted))


@kept(40)
@visitors.ends_with_the_script()
def kde(wanted: Run, kernel: str, bandwidth: float) -> DensityGrid:
    """The plain KDE of a run's records on a grid (not private; synthetic data only)."""
    return density_grid(records(wanted), kernel, bandwidth)


@kept(200)
@visitors.ends_with_the_script()
def comparison(settings: ComparisonSettings) -> tuple[Row, ...]:
    """Every method at one setting, without a run."""
    return compare(settings, dataset(settings.dataset, settings.n, 0))


@kept(40)
@visitors.ends_with_the_script()
def slices(wanted: Run) -> Slices:
    """Conditional densities beside a simulated run (the plain KDE among them is not private)."""
    return conditional_slices(records(wanted), release(wanted))


@kept(400)
@visitors.ends_with_the_script()
def lesson_value(quantity: str, asked: State, runs: int) -> float:
    """What the engine computes for a state of a lesson."""
    return quantity_of(quantity, asked.run)(asked, runs)


@kept(100)
@visitors.ends_with_the_script()
def slices_as_sent(wanted: Run, source: str, target: str, rest: str) -> bytes:
    """The slices at every place, for the chart ``target`` that follows the pointer over ``source``."""
    frames = slice_frames(records(wanted), release(wanted), slices(wanted))
    return squeezed(frames, source=source, target=target, rest=rest)


def records(wanted: Run) -> Dataset:
    """The records of a run."""
    return dataset(str(wanted.dataset), wanted.n, wanted.data_seed or 0, wanted.design)


class Pictures:
    """Charts as they are sent, by what they show. What was not looked at for longest is forgotten first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._known: OrderedDict[Hashable, Chart] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Chart | None:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def add(self, key: Hashable, chart: Chart) -> None:
        with self._lock:
            if key not in self._known:  # another visitor may have been faster
                self._bytes += chart.figure.size
                self._known[key] = chart
        self.shrink(self._most_bytes)

    def shrink(self, most_bytes: int) -> None:
        with self._lock:
            while self._bytes > most_bytes:
                self._bytes -= self._known.popitem(last=False)[1].figure.size


@functools.cache
def pictures() -> Pictures:
    """The pictures that this server has drawn."""
    drawn = Pictures()
    visitors.WHEN_EMPTY.append(lambda: drawn.shrink(BYTES_AT_REST))
    return drawn


def picture(key: Hashable, draw: Callable[..., Chart], *what: Any, **how: Any) -> Chart:
    """A chart that ``draw`` makes of ``what``; drawn once for a key, which has to hold all that it depends on."""
    key = (draw.__module__, draw.__name__, key, *how.items())
    found = pictures().find(key)
    if found is None:
        found = sent(draw(*what, **how))
        pictures().add(key, found)
    return found


def curve(
    known: Mapping[Run, CellResult], draw: Callable[..., Chart], found: Any, cells: Sequence[Run], *how: Hashable
) -> Chart:
    """The chart of a sweep, drawn anew while it fills in and kept once all of it is known."""
    if all(one.complete for one in known.values()):
        return picture((tuple(known), tuple(cells), how), draw, found, cells, *how)
    return draw(found, cells, *how)
