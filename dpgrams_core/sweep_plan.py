"""What a sweep will run: the grid, checked before anything runs, and refused where it is surely a slip."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dpgrams_core.cells import Cell, run_cell
from dpgrams_core.checks import asked_epsilon, one_of, whole
from dpgrams_core.datasets import DATASETS, MAX_N, MIN_N, load_dataset
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.methods import METHODS
from dpgrams_core.progress import time_words
from dpgrams_core.specs import make_spec

MAX_RUNS = 10_000
# Beyond these a sweep has to be confirmed: the paper's largest table has 40 cells of 50 runs for a method.
MAX_CELLS_UNASKED = 5_000
MAX_RUNS_UNASKED = 500_000
QUICK_N = 200  # for an estimate: of slow data a run with all their records takes minutes

Vary = tuple[str, Sequence[Any]]
Options = dict[str, Any]


@dataclass(frozen=True)
class Grid:
    """A checked grid, before it is written out as cells."""

    arms: tuple[tuple[str, tuple[Options, ...]], ...]  # a method with its options, once for each varied value
    dataset: str
    sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    runs: int
    seed: int
    varied: str

    def budgets(self, method: str) -> tuple[float, ...]:
        """The epsilons of a method; one without privacy has a single cell for all of them."""
        return self.epsilons if METHODS[method].private else (math.inf,)

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self.sizes) * sum(len(own) * len(self.budgets(method)) for method, own in self.arms)

    def cells(self) -> Iterator[Cell]:
        """The cells in the order in which they are run: small n first, since these are quick."""
        for size in self.sizes:
            for method, own in self.arms:
                for epsilon in self.budgets(method):
                    for options in own:
                        yield Cell(
                            method=method,
                            dataset=self.dataset,
                            n=size,
                            epsilon=epsilon,
                            runs=self.runs,
                            seed=self.seed,
                            options=tuple(sorted(options.items())),
                            varied=self.varied if self.varied in options else "",
                        )


def plan_cells(
    methods: Sequence[str] | str,
    dataset: str,
    *,
    n: Sequence[int],
    epsilon: Sequence[float],
    runs: int = 20,
    seed: int = 0,
    vary: Vary | Mapping[str, Sequence[Any]] | None = None,
    confirm: bool = False,
    **options: Any,
) -> list[Cell]:
    """The cells of a sweep, checked, in the order in which they are run.

    ``vary`` is one option and its values; a method that does not have the option has one cell for all of them.
    A grid of more than 5,000 cells or 500,000 runs is refused unless ``confirm`` says that it is meant.

    Examples
    --------
    >>> cells = plan_cells(
    ...     ["dp_grams", "mean_shift"], "four_corners", n=[500], epsilon=[1.0], vary=("clip_multiplier", [0.5, 1, 2])
    ... )
    >>> [(cell.method, cell.varied, cell.value) for cell in cells][1:]
    [('dp_grams', 'clip_multiplier', 1), ('dp_grams', 'clip_multiplier', 2), ('mean_shift', '', nan)]
    """
    for field, values in (("methods", methods), ("n", n), ("epsilon", epsilon)):
        _filled(field, values)
    names = [methods] if isinstance(methods, str) else list(methods)
    one_of("dataset", dataset, DATASETS)
    for name in names:
        one_of("methods", name, METHODS)
        if METHODS[name].kind != DATASETS[dataset].kind:
            raise SpecError("dataset", dataset, f"{name} works on {METHODS[name].kind} data")
    sizes = tuple(dict.fromkeys(whole("n", value, MIN_N, MAX_N) for value in n))
    epsilons = tuple(dict.fromkeys(asked_epsilon("epsilon", value) for value in epsilon))
    runs, seed = whole("runs", runs, 1, MAX_RUNS), whole("seed", seed, 0)
    known = {name: {item.name for item in fields(METHODS[name].spec)} for name in names}
    varied, values = _varied(vary, options)
    for option, value in (*options.items(), *((varied, value) for value in values[:1])):
        if not any(option in fields_ for fields_ in known.values()):
            raise SpecError(option, value, "no method of this sweep has this option")
    arms = []
    for name, own in known.items():
        mine = {key: frozen(value) for key, value in options.items() if key in own}
        wishes = tuple({**mine, varied: value} for value in values) if varied in own else (mine,)
        for wish in wishes:
            make_spec(METHODS[name].spec, wish)  # a wrong option is refused before anything runs
        arms.append((name, wishes))
    grid = Grid(tuple(arms), dataset, sizes, epsilons, runs, seed, varied)
    if not confirm:
        _refuse_a_slip(grid)
    return list(grid.cells())


def _filled(field: str, values: object) -> None:
    if not isinstance(values, Sized) or len(values) == 0:
        raise SpecError(field, values, "give a list with at least one value")


def _varied(vary: object, options: Options) -> tuple[str, list[Any]]:
    """The varied option and its values, each once; "" for none."""
    if vary is None:
        return "", []
    pair = list(vary.items()) if isinstance(vary, Mapping) else [vary]
    if len(pair) != 1 or not isinstance(pair[0], (tuple, list)) or len(pair[0]) != 2:
        raise SpecError("vary", vary, "give one option and its values, as in ('clip_multiplier', [0.5, 1, 2])")
    name, values = pair[0]
    if not isinstance(name, str) or name == "epsilon":
        raise SpecError("vary", name, "give the name of an option; epsilon has a list of its own")
    if name in options:
        raise SpecError("vary", name, f"it has a fixed value as well, {options[name]!r}; leave that out")
    if isinstance(values, str):
        raise SpecError(name, values, "give a list with at least one value")
    _filled(name, values)
    return name, list(dict.fromkeys(frozen(value) for value in values))


def frozen(value: Any) -> Any:
    """A value that can be compared and written as JSON: lists become tuples, NumPy's numbers plain ones."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    return tuple(frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


def _refuse_a_slip(grid: Grid) -> None:
    """A sweep that would take days is refused with its size and the least time it would take."""
    total = grid.count * grid.runs
    if grid.count <= MAX_CELLS_UNASKED and total <= MAX_RUNS_UNASKED:
        return
    raise SpecError(
        "cells",
        grid.count,
        f"the sweep would make {total:,} runs{_least_time(grid)}, and one of more than {MAX_CELLS_UNASKED:,} cells or "
        f"{MAX_RUNS_UNASKED:,} runs has to be confirmed (confirm=True, or --yes on the command line)",
    )


def _least_time(grid: Grid) -> str:
    """At least how long the grid takes: each method is timed, at an n that is quick for any data where it can be."""
    seconds = 0.0
    for arm in grid.arms:
        took = _quickest(replace(grid, arms=((arm[0], arm[1][:1]),), runs=2))
        seconds += replace(grid, arms=(arm,)).count * grid.runs * took
    return f", at least {time_words(seconds)} on one core" if seconds else ""


def _quickest(grid: Grid) -> float:
    """The time of one run of a small cell; 0 where none can be made. The first run of a method takes longer."""
    smallest = min(grid.sizes)
    for size in dict.fromkeys((min(smallest, QUICK_N), smallest)):  # some settings need their own n
        took = run_cell(next(replace(grid, sizes=(size,)).cells())).seconds
        if took:
            return min(took)
    return 0.0


def check_data(cells: Iterable[Cell]) -> None:
    """Load each data set of a sweep once: one that is not on this machine is one sentence, and no failure of runs.

    Raises
    ------
    DataError
        With what is missing.
    """
    sizes: dict[str, int] = {}
    for cell in cells:
        sizes[cell.dataset] = min(cell.n, sizes.get(cell.dataset, cell.n))
    for name, size in sizes.items():
        try:
            load_dataset(name, n=size, seed=0)
        except SpecError:
            continue  # an n that these data do not have: the runs say so
        except OSError as error:
            raise DataError(f"The data set {name} cannot be loaded: {error.strerror or error}.") from None
