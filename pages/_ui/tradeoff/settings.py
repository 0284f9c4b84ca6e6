"""What the Tradeoff page can run: methods, grids, the sweep that they make together, and the controls.

The keys of the controls begin with ``lab_``; all live in the URL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import streamlit as st

from dpgrams_core import DATASETS, METHODS
from dpgrams_core.datasets.registry import dataset_info, datasets_of, same_records
from dpgrams_core.figures.curve import method_title
from dpgrams_core.figures.tradeoff import middle
from dpgrams_core.model.checks import whole
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.format import time_words
from dpgrams_core.model.measures import MEASURES, measure_titles, measures_with_parts, offered_measures
from dpgrams_core.model.run import AnyDataset, DatasetInfo, Run
from dpgrams_core.model.settings import DELTAS
from dpgrams_core.studies.ablation import ladders
from dpgrams_core.studies.costs import cells_seconds
from dpgrams_core.sweeps.run import MAX_RUNS, plan_cells
from pages._ui import layout, state
from pages._ui.controls import Group
from pages._ui.my_data.state import Own
from pages._ui.tradeoff.live import scheduler_address

FITTED = ("functional", "functional_regression", "functional_c")  # the slower ones: they fit what they released
ASK_CELLS, ASK_RUNS = 5_000, 100_000  # beyond these a sweep has to be confirmed
MOST_CELLS, MOST_RUNS = 20_000, 200_000  # beyond these the command line does it; the page could not draw it
Sweep = dict[str, Any]  # of one method: what ``plan_cells`` and the command line are given


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
        return method_title(self.method, self.options)

    def has(self, option: str) -> bool:
        """Whether it is private and has this option."""
        return METHODS[self.method].private and option in {item.name for item in fields(METHODS[self.method].spec)}


def _calibrated(method: str) -> tuple[Arm, ...]:
    names = dict.fromkeys(("experiments", "tight", "theorem", *METHODS[method].calibrations))
    return tuple(Arm(method, (("calibration", name),), name == "experiments") for name in names)


# The baseline of the paper's regression tables fits Silverman's rule and ten steps best (studies/paper/experiments.py).
PRINTED_PMS = (("bandwidth", "silverman"), ("n_steps", 10))
ARMS: dict[str, tuple[Arm, ...]] = {  # in the order of the page
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
for _name, _method in METHODS.items():  # whatever else is registered, without being drawn at first
    if all(arm.method != _name for arm in ARMS[_method.kind]):
        ARMS[_method.kind] += _calibrated(_name) if _method.calibrations else (Arm(_name),)


@dataclass(frozen=True, kw_only=True)
class LabSettings:
    """Everything that the sweep of the page depends on."""

    kind: str
    dataset: AnyDataset
    arms: tuple[Arm, ...]
    sizes: str
    epsilons: str
    runs: int
    seed: int
    known: bool
    delta: float

    def options_of(self, arm: Arm) -> dict[str, Any]:
        """What the arm is run with, without ε."""
        options, info = dict(arm.options), dataset_info(self.dataset)
        if arm.has("delta"):
            options["delta"] = self.delta
        if arm.method == "dp_pms" and info.branches_end:
            options["starts"] = "binned"  # app:dp-pms-more, for branches that do not reach everywhere
        if self.known and self.kind == "modes":
            options["n_modes"] = info.count
        elif self.kind == "clusters" and (self.known or arm.method in ("kmeans", "dp_kmeans")):
            options["n_clusters"] = info.count
        if arm.method == "dp_grams_c" and ("calibration", "tight") not in arm.options:
            options |= dict(info.picked)  # those of the paper's tables as we recompute them; tight needs none
        return options

    def sweep_of(self, arm: Arm, **grid: Any) -> Sweep:
        """The sweep of one method; what is varied is no option."""
        options = self.options_of(arm)
        options.pop(grid.get("vary", ("",))[0], None)
        given = {"methods": arm.method, "dataset": self.dataset, "runs": self.runs, "seed": self.seed}
        return {**given, **options, **grid}

    def sweeps(self) -> list[Sweep]:
        """Those of the curve; without noise, on the same records, one run is as good as many."""
        if not self.arms:
            raise SpecError("methods", "none", "the grid is empty; choose at least one method")
        sizes, epsilons = numbers_of("n", self.sizes, int), numbers_of("epsilon", self.epsilons, float)
        found = []
        for arm in self.arms:
            once = {n for n in sizes if not METHODS[arm.method].private and same_records(self.dataset, n)}
            runs = [1 if n in once else self.runs for n in sizes]
            for count in dict.fromkeys(runs):
                mine = [n for n, wanted in zip(sizes, runs, strict=True) if wanted == count]
                found.append(self.sweep_of(arm, n=mine, epsilon=epsilons, runs=count))
        return found

    def cells(self, sweeps: Sequence[Sweep]) -> list[Run]:
        """The cells of sweeps, refused where they are more than the server keeps (jobs.py)."""
        count, runs = count_of(sweeps), whole("runs", self.runs, 1, MAX_RUNS)
        if count > MOST_CELLS or count * runs > MOST_RUNS:
            elsewhere = "the command below runs it on the command line, where it can take its days"
            raise SpecError(
                "cells",
                count,
                f"with {runs:,} runs each this is more than the page holds ({MOST_CELLS:,} cells, {MOST_RUNS:,} runs); "
                + ("choose fewer" if isinstance(self.dataset, DatasetInfo) else elsewhere),
            )
        # What it costs is priced and waits for a press (live.py).
        return [cell for sweep in sweeps for cell in plan_cells(**sweep, confirm=True)]


def count_of(sweeps: Sequence[Sweep]) -> int:
    """How many cells sweeps have, before they are written out."""
    grids = [(sweep["n"], sweep["epsilon"], sweep.get("vary", ("", [None]))[1]) for sweep in sweeps]
    return sum(math.prod(map(len, grid)) for grid in grids)


def grid_of(dataset: AnyDataset) -> tuple[str, str]:
    """The first sizes and budgets of a data set, as they are typed."""
    info = dataset_info(dataset)
    return " ".join(map(str, info.sizes)), " ".join(f"{value:g}" for value in info.epsilons)


def budgets_of(dataset: AnyDataset) -> list[float]:
    """The first budgets of a data set."""
    return numbers_of("epsilon", grid_of(dataset)[1], float)


def numbers_of(field: str, text: str, kind: type) -> list[Any]:
    """The numbers of a text, with blanks or commas between them.

    >>> numbers_of("n", "500, 1000 2000", int)
    [500, 1000, 2000]
    """
    if re.search(r"\d,\d", text):  # 1,5 is one number to some people and two to others
        raise SpecError(field, text, "use a point in decimals and blanks between numbers, as in 0.5 1.5")
    words = [word for word in re.split(r"[\s,;]+", text) if word]
    if not words:
        raise SpecError(field, text, "the grid is empty; give at least one number, as in 500 1000")
    try:
        return [kind(word) for word in words]
    except ValueError:
        raise SpecError(field, text, "give numbers with blanks between them, as in 500 1000") from None


def lab_cells(settings: LabSettings, confirm: bool = False) -> list[Run]:
    """The sweep of the page, checked; what is quick comes first: small n, methods without a fit, a large ε."""
    sweeps = settings.sweeps()
    count, runs = count_of(sweeps), whole("runs", settings.runs, 1, MAX_RUNS)
    if not confirm and (count > ASK_CELLS or count * runs > ASK_RUNS):
        seconds = 0.0
        for sweep in sweeps:
            one_each = {**sweep, "epsilon": [max(sweep["epsilon"])], "runs": 1}
            seconds += cells_seconds(plan_cells(**one_each, confirm=True)) * len(sweep["epsilon"]) * runs
        why = f"the sweep would make {count * runs:,} runs, about {time_words(seconds)} on one core"
        raise SpecError("cells", count, f"{why}, so it has to be confirmed")
    return sorted(settings.cells(sweeps), key=lambda cell: (cell.n, cell.method in FITTED, -cell.epsilon))


def command_lines(sweeps: Sequence[Sweep], more: str = "") -> str:
    """What repeats sweeps on the command line, all into one file; not for a twin, which this session alone has."""
    lines = []
    for sweep in sweeps:
        rest = dict(sweep)
        dataset, method, (varied, values) = rest.pop("dataset"), rest.pop("methods"), rest.pop("vary", ("", ()))
        grid = {name: rest.pop(name) for name in ("n", "epsilon")} | {
            name: [rest.pop(name)] for name in ("runs", "seed")
        }
        given = grid | {name.replace("_", "-"): [value] for name, value in sorted(rest.items())}
        words = [f"--{name} {_typed(values)}" for name, values in given.items()]
        words += [f"--vary {varied} {_typed(values)}"] * bool(varied)
        if not isinstance(dataset, DatasetInfo):
            head = f"python -m dpgrams_core sweep {dataset} {method}"
            lines.append(f"{head} {' '.join(words)}{more} --out results.parquet")
    return "\n".join(lines)


def _typed(values: Sequence[Any]) -> str:
    return " ".join(str(value).removesuffix(".0") for value in values)


PARTS = {
    "curve": "Curve",
    "needed": "What ε do I need?",
    "sources": "Where the error comes from",
    "sensitivity": "Sensitivity",
    "kernel": "Kernel",
}
RESEARCH = ("sensitivity", "kernel")
VIEWS = {"method": "ε, by method", "n": "ε, by n", "epsilon": "n, by ε"}
# The controls of the paper's appendix figures, and the bandwidth. The paper prints the clip multipliers of its blobs
# only; the other values are ours.
VARIED = {
    "clip_multiplier": ("Clip multiplier", "0.01 0.1 0.5 1 2", float),
    "batch_size": ("Minibatch size, m", "10 35 70 140 200", int),
    "step_size": ("Step size, η", "0.05 0.1 0.25 0.5 1", float),
    "bandwidth_scale": ("× bandwidth, h", "0.5 0.7 1 1.4 2", float),
}
KERNEL_EPSILONS = "0.2 0.5 1 2"
RULES = {"h_opt": "the paper's h-opt", "default": "the default"}  # that of fig:kernel_order_validation first
SOUGHT = {"epsilon": "ε", "n": "n"}
SEARCH: dict[str, tuple[Any, Any]] = {"epsilon": (0.05, 20.0), "n": (200, 20_000)}
LONGEST_TEXT = 4_000


def start_choices(group: Group, kind: str, dataset: AnyDataset) -> None:
    """Give every control its first value, from the URL or the default."""
    arms = ARMS[kind]
    for key, values in (
        ("lab_part", PARTS),
        ("lab_view", VIEWS),
        ("lab_theory", (False, True)),
        (f"lab_score_{kind}", measure_titles(kind)),
        ("lab_vary", VARIED),
        ("lab_rule", RULES),
        ("lab_sought", SOUGHT),
        (f"lab_e_score_{kind}", error_measures(kind)),
        (f"lab_t_score_{kind}", measure_titles(kind)),
        (f"lab_t_arm_{kind}", [arm.title for arm in arms if METHODS[arm.method].private]),
        *((f"lab_s_arm_{kind}_{name}", [arm.title for arm in arms if arm.has(name)]) for name in VARIED),
        (f"lab_e_arm_{kind}", [arm.title for arm in source_arms(kind)]),
    ):
        options = list(values)
        if options:
            group.start(key, options[0], state.one_of_these(options))
    for name, (_, text, _) in VARIED.items():
        group.start(f"lab_values_{name}", text, short_text)
    group.start("lab_kernel_eps", KERNEL_EPSILONS, short_text)
    sizes, positive = numbers_of("n", grid_of(dataset)[0], int), state.number_within(float, 0, 1e9)
    group.start(f"lab_one_n_{dataset}", sizes[len(sizes) // 2], state.number_within(int, 0, 1e9))
    group.start(f"lab_at_{dataset}", middle(budgets_of(dataset), 1.0), positive)
    group.start("lab_one_eps", 1.0, positive)
    group.start("lab_percent", 90.0, state.number_within(float, 0, 100))
    for name, measure in offered_measures(kind).items():
        group.start(f"lab_target_{name}", measure.wish, state.number_within(float, -1e9, 1e9))
    for name, (low, high) in SEARCH.items():
        group.start(f"lab_low_{name}", low, state.number_within(type(low), 0, 1e9))
        group.start(f"lab_high_{name}", high, state.number_within(type(high), 0, 1e9))


def source_arms(kind: str) -> list[Arm]:
    """The methods whose error can be told apart; the one with the most ingredients first."""
    arms = [arm for arm in ARMS[kind] if arm.method in ladders()]
    return sorted(arms, key=lambda arm: not arm.has("clip_multiplier"))


def error_measures(kind: str) -> dict[str, str]:
    """The errors that can be told apart, in words."""
    return {name: MEASURES[kind][name].title for name in measures_with_parts(kind)}


def line(label: str, key: str, help_text: str = "Numbers with blanks between them.") -> str:
    """A line of numbers."""
    return st.text_input(label, key=key, help=help_text, max_chars=LONGEST_TEXT, persist_state="session")


def short_text(words: str) -> str:
    """A parser of the URL for a line of text."""
    if len(words) > LONGEST_TEXT:
        raise ValueError(f"it must have at most {LONGEST_TEXT} characters")
    return words


KINDS = {"modes": "Modes", "regression": "Regression", "clusters": "Clusters"}
AUTO = "as in the paper"
DATA_HELP = (
    "Synthetic or public data only: a sweep over private data would itself be a release. The twin of a release that "
    "you paid for on My data is synthetic too, so it stands here as well."
)
TWIN_WORDS = (
    "Records drawn anew from your release for every run, not from the people: sweeping it costs nothing more. What "
    "the release shows counts as the truth."
)


def lab_controls() -> LabSettings:
    """The settings, in the sidebar; also starts the controls that stand on the page itself."""
    group = Group()
    with layout.sidebar():
        kind = group.choice("Problem", "lab_kind", list(KINDS), "What is looked for privately.", KINDS.__getitem__)
        dataset = _data(group, kind)
        st.markdown(":small[Methods]", help="Orange: private. Blue and dashed: without privacy.")
        for arm in ARMS[kind]:
            group.start(arm.key, arm.first, state.one_of_these([True, False]))
        arms = tuple(arm for arm in ARMS[kind] if st.checkbox(arm.title, key=arm.key, persist_state="session"))
        texts = []
        for label, key, text in zip(("Records, n", "Privacy budgets, ε"), ("n", "eps"), grid_of(dataset), strict=True):
            group.start(f"lab_{key}_{dataset}", text, short_text)
            texts.append(line(label, f"lab_{key}_{dataset}"))
        runs = group.number("Runs for each point", "lab_runs", 20, int, "More runs, narrower bands.", 5)
        with st.expander("More settings", key="more_settings"):
            known = kind == "regression"
            if not known:
                group.switch("lab_known")
                words = "Whether the methods are told the true number, as in the paper."
                known = st.toggle("Number known", key="lab_known", help=words, persist_state="session")
            words = "Room for rare exceptions to ε (δ); far below 1/n."
            slack = group.steps("Slack, δ", "lab_delta", (AUTO, *DELTAS), AUTO, words)
            seed = group.number("Seed", "lab_seed", 0, int, "Same seed, same data and noise, on any machine.", 1)
            where = "this server's Dask cluster" if scheduler_address() else "this server"
            st.caption(f"Curves run on {where}.")
    start_choices(group, kind, dataset)
    state.write_url(group.keys)
    return LabSettings(
        kind=kind,
        dataset=dataset,
        arms=arms,
        sizes=texts[0],
        epsilons=texts[1],
        runs=runs,
        seed=seed,
        known=known,
        delta=dataset_info(dataset).delta if slack == AUTO else slack,
    )


def _data(group: Group, kind: str) -> AnyDataset:
    """The data set: a listed one, or the twin of a release of this session; no session sees the twin of another."""
    own: Own | None = st.session_state.get("_own")
    twins, words = {}, {name: DATASETS[name].title for name in datasets_of(kind)}
    for sale in [] if own is None else own.sales:
        if own is not None and sale.kind == kind and (twin := own.twin(sale)) is not None:
            twins[str(twin)] = twin
            words[str(twin)] = f"Twin of release {sale.number} ({', '.join(sale.units.columns)})"
    key = f"lab_{kind}"
    if st.session_state.get(key, next(iter(words))) not in words:  # its file is no longer open here
        del st.session_state[key]
    name = group.choice("Data set", key, list(words), DATA_HELP, words.__getitem__)
    if name in twins:
        st.caption(TWIN_WORDS)
    return twins.get(name, name)
