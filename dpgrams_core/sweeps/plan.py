"""What a sweep will run: the grid, checked before anything runs, and refused where it is surely a slip."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, fields, replace
from typing import Any

from dpgrams_core.datasets.registry import MAX_N, MIN_N, dataset_info, load_dataset
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.checks import asked_epsilon, one_of, whole
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.format import time_words
from dpgrams_core.model.run import AnyDataset, Run, plain
from dpgrams_core.model.specs import make_spec
from dpgrams_core.sweeps.cell import run_cell

MAX_RUNS = 10_000
# Beyond these a sweep has to be confirmed: the paper's largest table has 40 cells of 50 runs for a method.
MAX_CELLS_UNASKED = 5_000
MAX_RUNS_UNASKED = 500_000
QUICK_N = 200  # for an estimate: of slow data a run with all their records takes minutes

Options = dict[str, Any]


@dataclass(frozen=True)
class Grid:
    """A checked grid, before it is written out as cells."""

    arms: tuple[tuple[str, tuple[Options, ...]], ...]  # a method with its options, once for each varied value
    dataset: AnyDataset
    sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    runs: int
    seed: int
    varied: str
    design: str = ""

    def budgets(self, method: str) -> tuple[float, ...]:
        """The epsilons of a method; one without privacy has a single cell for all of them."""
        return self.epsilons if METHODS[method].private else (math.inf,)

    @property
    def count(self) -> int:
        return len(self.sizes) * sum(len(own) * len(self.budgets(method)) for method, own in self.arms)

    def cells(self) -> Iterator[Run]:
        """The cells in the order in which they are run: small n first, since these are quick."""
        for size in self.sizes:
            for method, own in self.arms:
                for epsilon in self.budgets(method):
                    for options in own:
                        yield Run(
                            method=method,
                            dataset=self.dataset,
                            n=size,
                            epsilon=epsilon,
                            runs=self.runs,
                            seed=self.seed,
                            options=tuple(options.items()),
                            data_seed=None,
                            derived=True,
                            varied=self.varied if self.varied in options else "",
                            design=self.design,
                        )


def plan_run(
    method: str,
    dataset: AnyDataset,
    *,
    n: int,
    data_seed: int = 0,
    seed: int = 0,
    design: str = "",
    **options: Any,
) -> Run:
    """One run with these very seeds, checked; ``options`` are fields of the method's spec, epsilon among them.

    >>> plan_run("functional", "four_corners", n=500, epsilon=0.5).settings
    {'epsilon': 0.5}
    """
    check_kinds("method", [method], dataset)
    dataset_info(dataset).design(design)
    given = {name: plain(value) for name, value in options.items()}
    spec: Any = make_spec(METHODS[method].spec, given)
    return Run(
        method=method,
        dataset=dataset,
        n=whole("n", n, 1),
        epsilon=float(getattr(spec, "epsilon", math.inf)),
        options=tuple((name, value) for name, value in given.items() if name != "epsilon"),
        seed=whole("seed", seed, 0),
        data_seed=whole("data_seed", data_seed, 0),
        design=design,
    )


def plan_cells(
    methods: Sequence[str] | str, dataset: AnyDataset, *, confirm: bool = False, **grid_and_options: Any
) -> list[Run]:
    """The cells of a sweep (see ``plan_grid``), checked, in the order in which they are run.

    A grid of more than 5,000 cells or 500,000 runs is refused unless ``confirm`` says that it is meant.

    >>> cells = plan_cells(
    ...     ["dp_grams", "mean_shift"], "four_corners", n=[500], epsilon=[1.0], vary=("clip_multiplier", [0.5, 1, 2])
    ... )
    >>> [(cell.method, cell.varied, cell.value) for cell in cells][1:]
    [('dp_grams', 'clip_multiplier', 1), ('dp_grams', 'clip_multiplier', 2), ('mean_shift', '', nan)]
    """
    grid = plan_grid(methods, dataset, **grid_and_options)
    if not confirm:
        _refuse_a_slip(grid)
    return list(grid.cells())


def plan_grid(
    methods: Sequence[str] | str,
    dataset: AnyDataset,
    *,
    n: Sequence[int],
    epsilon: Sequence[float],
    runs: int = 20,
    seed: int = 0,
    vary: tuple[str, Sequence[Any]] | Mapping[str, Sequence[Any]] | None = None,
    design: str = "",
    **options: Any,
) -> Grid:
    """The grid of a sweep, checked, however large; nothing is written out or run yet.

    ``vary`` is one option and its values; a method that does not have the option has one cell for all of them.
    """
    for field, values in (("methods", methods), ("n", n), ("epsilon", epsilon)):
        _filled(field, values)
    names = [methods] if isinstance(methods, str) else list(methods)
    check_kinds("methods", names, dataset)
    dataset_info(dataset).design(design)
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
        mine = {key: plain(value) for key, value in options.items() if key in own}
        wishes = tuple({**mine, varied: value} for value in values) if varied in own else (mine,)
        for wish in wishes:
            make_spec(METHODS[name].spec, wish)  # a wrong option is refused before anything runs
        arms.append((name, wishes))
    return Grid(tuple(arms), dataset, sizes, epsilons, runs, seed, varied, design)


def check_kinds(field: str, methods: Sequence[str], dataset: AnyDataset) -> None:
    """Known names, and methods that work on such data."""
    kind = dataset_info(dataset).kind
    for name in methods:
        if METHODS[one_of(field, name, METHODS)].kind != kind:
            raise SpecError("dataset", str(dataset), f"{name} works on {METHODS[name].kind} data")


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
    return name, list(dict.fromkeys(plain(value) for value in values))


def _refuse_a_slip(grid: Grid) -> None:
    """A sweep that would take days is refused with its size and the least time it would take.

    For that each method is timed, at an n that is quick for any data where it can be.
    """
    total = grid.count * grid.runs
    if grid.count <= MAX_CELLS_UNASKED and total <= MAX_RUNS_UNASKED:
        return
    seconds = 0.0
    for arm in grid.arms:
        took = _quickest(replace(grid, arms=((arm[0], arm[1][:1]),), runs=2))
        seconds += replace(grid, arms=(arm,)).count * grid.runs * took
    least = f", at least {time_words(seconds)} on one core" if seconds else ""
    raise SpecError(
        "cells",
        grid.count,
        f"the sweep would make {total:,} runs{least}, and one of more than {MAX_CELLS_UNASKED:,} cells or "
        f"{MAX_RUNS_UNASKED:,} runs has to be confirmed (confirm=True, or --yes on the command line)",
    )


def _quickest(grid: Grid) -> float:
    """The time of one run of a small cell; 0 where none can be made. The first run of a method takes longer."""
    smallest = min(grid.sizes)
    for size in dict.fromkeys((min(smallest, QUICK_N), smallest)):  # some settings need their own n
        took = run_cell(next(replace(grid, sizes=(size,)).cells())).seconds
        if took:
            return min(took)
    return 0.0


def check_data(cells: Iterable[Run]) -> None:
    """Load each data set of a sweep once: one that is not on this machine is one ``DataError``, no failure of runs."""
    sizes: dict[tuple[AnyDataset, str], int] = {}
    for cell in cells:
        key = (cell.dataset, cell.design)
        sizes[key] = min(cell.n, sizes.get(key, cell.n))
    for (name, design), size in sizes.items():
        try:
            load_dataset(name, n=size, seed=0, design=design)
        except SpecError:
            continue  # an n that these data do not have: the runs say so
        except OSError as error:
            raise DataError(f"The data set {name} cannot be loaded: {error.strerror or error}.") from None
