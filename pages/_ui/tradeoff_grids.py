"""What the Tradeoff page can run: methods, grids, and the sweep that they make together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dpgrams_core import DATASETS, METHODS
from dpgrams_core.cells import Cell
from dpgrams_core.checks import whole
from dpgrams_core.costs import cells_seconds
from dpgrams_core.datasets import MIN_N, PICKED_CLIPS
from dpgrams_core.datasets.released_twins import TwinName
from dpgrams_core.errors import SpecError
from dpgrams_core.figures import same_records
from dpgrams_core.figures.tradeoff import method_title
from dpgrams_core.metrics_regression import evaluation_grid
from dpgrams_core.progress import time_words
from dpgrams_core.sweeps import plan_cells
from pages._ui import cache

# The sizes and budgets of the paper's tables.
GRIDS = {
    "four_corners": ("700 1000 2000 5000", "0.1 0.25 0.5 1 5"),
    "t_mixture": ("700 1000 2000 5000", "0.1 0.25 0.5 1 5"),
    "sinusoid": ("200 600 1200 2400", "0.1 0.2 0.5 1"),
    "three_component": ("200 500 1000 2000", "0.1 0.2 0.5 1"),
    "blobs": ("700 1000 2000 5000", "0.1 0.2 0.5 1 5"),
    "iris": ("150", "0.25 0.5 1 2.5 5"),
    "digits": ("1797", "0.25 0.5 1 2.5 5"),
    "mnist": ("69000", "0.05 0.1 0.2 0.5 1"),
    "rnaseq": ("801", "0.5 1 2 5 10"),
}
TWIN_EPSILONS, TWIN_MOST = "0.1 0.25 0.5 1 5", 20_000
SLOW_DATA, TWIN_COLUMNS = ("digits", "mnist", "rnaseq"), 2  # in more columns a twin is slow too
FITTED = ("functional", "functional_regression", "functional_c")  # the slower ones: they fit what they released
ASK_CELLS, ASK_RUNS = 5_000, 100_000  # beyond these a sweep has to be confirmed
MOST_CELLS, MOST_RUNS = 20_000, 200_000  # beyond these the command line does it; the page could not draw it


@dataclass(frozen=True)
class Arm:
    """A method that can be drawn, with the options that make it what it is."""

    method: str
    options: tuple[tuple[str, Any], ...] = ()
    first: bool = False  # drawn unless somebody says otherwise

    @property
    def key(self) -> str:
        """Its control and its name in the URL."""
        return "_".join(["lab_m", self.method, *(str(value) for _, value in self.options if _ == "calibration")])

    @property
    def title(self) -> str:
        """As people call it."""
        return method_title(self.method, self.options)

    def has(self, option: str) -> bool:
        """Whether it is private and has this option."""
        return METHODS[self.method].private and option in {item.name for item in fields(METHODS[self.method].spec)}


def _calibrated(method: str) -> tuple[Arm, ...]:
    return tuple(
        Arm(method, (("calibration", name),), name == "experiments") for name in ("experiments", "tight", "theorem")
    )


# The baseline of the paper's regression tables fits Silverman's rule and ten steps best (dpgrams_core.experiments).
PRINTED_PMS = (("bandwidth", "silverman"), ("n_steps", 10))
ARMS: dict[str, tuple[Arm, ...]] = {
    "modes": (Arm("functional", first=True), *_calibrated("dp_grams"), Arm("mean_shift", first=True)),
    "regression": (
        Arm("functional_regression", first=True),
        *_calibrated("dp_pms"),
        Arm("pms", PRINTED_PMS, True),
        Arm("lowess"),
    ),
    "clusters": (
        Arm("functional_c", first=True),
        *_calibrated("dp_grams_c"),
        Arm("dp_kmeans", first=True),
        Arm("kmeans", first=True),
        Arm("mean_shift_c"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class LabSettings:
    """Everything that the sweep of the page depends on."""

    kind: str
    dataset: str
    arms: tuple[Arm, ...]
    sizes: str
    epsilons: str
    runs: int
    seed: int
    known: bool
    delta: float

    def options_of(self, arm: Arm) -> dict[str, Any]:
        """What the arm is run with, without ε."""
        options = dict(arm.options)
        if arm.has("delta"):
            options["delta"] = self.delta
        if arm.method == "dp_pms" and branches_end(self.dataset):
            options["starts"] = "binned"  # app:dp-pms-more, for branches that do not reach everywhere
        if self.known and self.kind == "modes":
            options["n_modes"] = len(DATASETS[self.dataset].true_modes)  # type: ignore[arg-type]
        elif self.kind == "clusters" and (self.known or arm.method in ("kmeans", "dp_kmeans")):
            options["n_clusters"] = class_count(self.dataset)
        if arm.method == "dp_grams_c" and self.dataset in PICKED_CLIPS:
            options["clip_multiplier"] = PICKED_CLIPS[self.dataset]  # that of the paper's tables as we recompute them
        return options

    def sizes_by_runs(self, arm: Arm, sizes: Sequence[int]) -> dict[int, list[int]]:
        """The sizes for each number of runs: without noise, on the same records, one run is as good as many."""
        found: dict[int, list[int]] = {}
        for size in sizes:
            once = self.kind == "clusters" and not METHODS[arm.method].private and same_records(self.dataset, size)
            found.setdefault(1 if once else self.runs, []).append(size)
        return found


def grid_of(dataset: str) -> tuple[str, str]:
    """The first sizes and budgets of a data set; of a twin about a quarter, half and all of the release's n."""
    if dataset in GRIDS:
        return GRIDS[dataset]
    most = min(DATASETS[dataset].default_n, TWIN_MOST)
    sizes = {max(MIN_N, int(float(f"{most / part:.2g}"))) for part in (4, 2)} | {most}
    return " ".join(map(str, sorted(sizes))), TWIN_EPSILONS


def is_slow(dataset: str) -> bool:
    """Whether a sweep over these data waits for a click."""
    return dataset in SLOW_DATA or (isinstance(dataset, TwinName) and len(DATASETS[dataset].box) > TWIN_COLUMNS)


def branches_end(dataset: str) -> bool:
    """Whether some branch of regression data does not reach over the whole box: of a twin, what its release shows."""
    if not isinstance(dataset, TwinName):
        return dataset == "three_component"
    law = cache.dataset(dataset, MIN_N, 0)
    assert law.truth is not None
    return bool(np.isnan(law.truth.mode_table(evaluation_grid(law.box))).any())


def class_count(dataset: str) -> int:
    """The number of true classes of a data set."""
    count = cache.dataset(dataset, min(DATASETS[dataset].default_n, 1_000), 0).n_clusters
    assert count is not None
    return count


def numbers_as_typed(text: str) -> list[str]:
    """The words of a text, with blanks or commas between them."""
    return [word for word in re.split(r"[\s,;]+", text) if word]


def numbers_of(field: str, text: str, kind: type) -> list[Any]:
    """The numbers of a text, with blanks or commas between them.

    >>> numbers_of("n", "500, 1000 2000", int)
    [500, 1000, 2000]
    """
    if re.search(r"\d,\d", text):  # 1,5 is one number to some people and two to others
        raise SpecError(field, text, "use a point in decimals and blanks between numbers, as in 0.5 1.5")
    words = numbers_as_typed(text)
    if not words:
        raise SpecError(field, text, "the grid is empty; give at least one number, as in 500 1000")
    try:
        return [kind(word) for word in words]
    except ValueError:
        raise SpecError(field, text, "give numbers with blanks between them, as in 500 1000") from None


def lab_cells(settings: LabSettings, confirm: bool = False) -> list[Cell]:
    """The sweep of the page, checked; what is quick comes first: small n, methods without a fit, a large ε."""
    if not settings.arms:
        raise SpecError("methods", "none", "the grid is empty; choose at least one method")
    sizes = numbers_of("n", settings.sizes, int)
    epsilons = numbers_of("epsilon", settings.epsilons, float)
    runs = whole("runs", settings.runs, 1, 10_000)
    plan: dict[str, Any] = {"epsilon": epsilons, "seed": settings.seed, "confirm": True}
    count = len(settings.arms) * len(sizes) * len(epsilons)
    if count > ASK_CELLS or count * runs > ASK_RUNS:
        if not confirm:
            _refuse_a_slip(settings, sizes, epsilons, count * runs)
        refuse_what_no_page_can_draw(count, runs, settings.dataset)
    cells = [
        cell
        for arm in settings.arms
        for count, mine in settings.sizes_by_runs(arm, sizes).items()
        for cell in plan_cells(arm.method, settings.dataset, n=mine, runs=count, **plan, **settings.options_of(arm))
    ]
    return sorted(cells, key=lambda cell: (cell.n, cell.method in FITTED, -cell.epsilon))


def _refuse_a_slip(settings: LabSettings, sizes: list[int], epsilons: list[float], total: int) -> None:
    """A sweep that would take very long is refused with the time that it would take, until it is confirmed."""
    seconds = 0.0
    plan: dict[str, Any] = {"n": sizes, "epsilon": [max(epsilons)], "runs": 1, "confirm": True}
    for arm in settings.arms:
        one_each = plan_cells(arm.method, settings.dataset, **plan, **settings.options_of(arm))
        seconds += cells_seconds(one_each) * len(epsilons) * settings.runs
    raise SpecError(
        "cells",
        len(settings.arms) * len(sizes) * len(epsilons),
        f"the sweep would make {total:,} runs, about {time_words(seconds)} on one core, so it has to be confirmed",
    )


def refuse_what_no_page_can_draw(count: int, runs: int, dataset: str) -> None:
    """Refuse so many cells with so many runs each: they are more than the server keeps (tradeoff_memory)."""
    if count > MOST_CELLS or count * runs > MOST_RUNS:
        elsewhere = "the command below runs it on the command line, where it can take its days"
        raise SpecError(
            "cells",
            count,
            f"with {runs:,} runs each this is more than the page holds ({MOST_CELLS:,} cells, {MOST_RUNS:,} runs); "
            + ("choose fewer" if isinstance(dataset, TwinName) else elsewhere),
        )


def command_lines(settings: LabSettings, more: str = "") -> str:
    """What repeats the sweep on the command line: a line or two for each method, all into one file; not for a twin."""
    sizes = numbers_of("n", settings.sizes, int)
    lines = []
    for arm in settings.arms:
        for runs, mine in settings.sizes_by_runs(arm, sizes).items():
            part = replace(settings, sizes=" ".join(map(str, mine)), runs=runs)
            lines.append(sweep_command(part, arm, settings.epsilons, settings.options_of(arm), more))
    return "\n".join(lines).strip()


def sweep_command(settings: LabSettings, arm: Arm, epsilons: str, options: dict[str, Any], more: str = "") -> str:
    """The sweep of one method as a command; none for a twin, which this session alone has."""
    if isinstance(settings.dataset, TwinName):
        return ""
    sizes, budgets = (" ".join(numbers_as_typed(text)) for text in (settings.sizes, epsilons))
    given = "".join(f" --{name.replace('_', '-')} {value}" for name, value in sorted(options.items()))
    return (
        f"python -m dpgrams_core sweep {settings.dataset} {arm.method} --n {sizes} --epsilon {budgets} "
        f"--runs {settings.runs} --seed {settings.seed}{given}{more} --out results.parquet"
    )
