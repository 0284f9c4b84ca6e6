"""The controls of the Tradeoff page; their keys begin with ``lab_``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpgrams_core import DATASETS
from dpgrams_core.cells import Cell
from dpgrams_core.checks import whole
from dpgrams_core.datasets import datasets_of
from dpgrams_core.errors import SpecError
from dpgrams_core.figures import LAB_MEASURES
from dpgrams_core.figures.tradeoff import method_title
from dpgrams_core.sweeps import plan_cells
from pages._ui import cache, state
from pages._ui.controls import DELTAS, _Group

PARTS = {
    "curve": "Curve",
    "sensitivity": "Sensitivity",
    "kernel": "Kernel",
    "sources": "Where the error comes from",
    "needed": "What ε do I need?",
}
KINDS = {"modes": "Modes", "regression": "Regression", "clusters": "Clusters"}
VIEWS = {"method": "ε, by method", "n": "ε, by n", "epsilon": "n, by ε"}
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
SLOW_DATA = ("digits", "mnist", "rnaseq")
MOST_CELLS, MOST_RUNS = 20_000, 200_000  # beyond these the command line does it; the page could not draw it
AUTO = "as in the paper"


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
        if arm.method in ("pms", "lowess", "mean_shift", "mean_shift_c", "kmeans"):
            pass  # no privacy, so no δ
        elif arm.method != "dp_kmeans":
            options["delta"] = self.delta
        if arm.method == "dp_pms" and self.dataset == "three_component":
            options["starts"] = "binned"  # app:dp-pms-more, for branches that do not reach everywhere
        if self.known and self.kind == "modes":
            options["n_modes"] = len(DATASETS[self.dataset].true_modes)  # type: ignore[arg-type]
        elif self.kind == "clusters" and (self.known or arm.method in ("kmeans", "dp_kmeans")):
            options["n_clusters"] = class_count(self.dataset)
        return options


def class_count(dataset: str) -> int:
    """The number of true classes of a data set."""
    count = cache.dataset(dataset, min(DATASETS[dataset].default_n, 1_000), 0).n_clusters
    assert count is not None
    return count


def numbers_of(field: str, text: str, kind: type) -> list[Any]:
    """The numbers of a text, with blanks or commas between them.

    >>> numbers_of("n", "500, 1000 2000", int)
    [500, 1000, 2000]
    """
    words = [word for word in re.split(r"[\s,;]+", text) if word]
    if not words:
        raise SpecError(field, text, "the grid is empty; give at least one number, as in 500 1000")
    try:
        return [kind(word) for word in words]
    except ValueError:
        raise SpecError(field, text, "give numbers with blanks between them, as in 500 1000") from None


def lab_cells(settings: LabSettings, confirm: bool = False) -> list[Cell]:
    """The sweep of the page, checked; the quick small n of every method first."""
    if not settings.arms:
        raise SpecError("methods", "none", "the grid is empty; choose at least one method")
    sizes = numbers_of("n", settings.sizes, int)
    epsilons = numbers_of("epsilon", settings.epsilons, float)
    runs = whole("runs", settings.runs, 1, 10_000)
    _refuse_what_no_page_can_draw(len(settings.arms) * len(sizes) * len(epsilons), runs, confirm)
    cells = [
        cell
        for arm in settings.arms
        for cell in plan_cells(
            arm.method,
            settings.dataset,
            n=sizes,
            epsilon=epsilons,
            runs=runs,
            seed=settings.seed,
            confirm=confirm,
            **settings.options_of(arm),
        )
    ]
    return sorted(cells, key=lambda cell: cell.n)


def _refuse_what_no_page_can_draw(count: int, runs: int, confirmed: bool) -> None:
    if confirmed and (count > MOST_CELLS or count * runs > MOST_RUNS):
        raise SpecError(
            "cells",
            count,
            f"with {runs:,} runs each this is more than the page holds ({MOST_CELLS:,} cells, {MOST_RUNS:,} runs); "
            "the command below runs it on the command line, where it can take its days",
        )


def command_lines(settings: LabSettings, more: str = "") -> str:
    """What repeats the sweep on the command line: one line for each method, all into one file."""
    sizes, epsilons = (" ".join(re.split(r"[\s,;]+", text.strip())) for text in (settings.sizes, settings.epsilons))
    lines = []
    for arm in settings.arms:
        options = "".join(
            f" --{name.replace('_', '-')} {value}" for name, value in sorted(settings.options_of(arm).items())
        )
        lines.append(
            f"python -m dpgrams_core sweep {settings.dataset} {arm.method} --n {sizes} --epsilon {epsilons} "
            f"--runs {settings.runs} --seed {settings.seed}{options}{more} --out results.parquet"
        )
    return "\n".join(lines)


def lab_controls() -> LabSettings:
    """The settings, in the sidebar; also starts the controls that stand on the page itself."""
    group = _Group()
    with st.sidebar:
        kind = group.choice("Problem", "lab_kind", list(KINDS), "What is looked for privately.", KINDS.__getitem__)
        dataset = group.choice(
            "Data set",
            f"lab_{kind}",
            datasets_of(kind),
            "Synthetic or public data only: a sweep over private data would itself be a release.",
            lambda name: DATASETS[name].title,
        )
        st.markdown("Methods", help="Orange: private. Blue and dashed: without privacy.")
        arms = tuple(arm for arm in ARMS[kind] if _arm(group, arm))
        sizes = text(group, "Records, n", f"lab_n_{dataset}", GRIDS[dataset][0], "Numbers with blanks between them.")
        epsilons = text(
            group, "Privacy budgets, ε", f"lab_eps_{dataset}", GRIDS[dataset][1], "Numbers with blanks between them."
        )
        runs = group.number("Runs for each point", "lab_runs", 20, int, "More runs, narrower bands.", 5)
        with st.expander("More settings", key="more_settings"):
            known = kind == "regression" or _switch(
                group, "lab_known", "Number known", "Whether the methods are told the true number, as in the paper."
            )
            slack = group.steps(
                "Slack, δ", "lab_delta", (AUTO, *DELTAS), AUTO, "Room for rare exceptions to ε (δ); far below 1/n."
            )
            seed = group.number("Seed", "lab_seed", 0, int, "Same seed, same data and noise, on any machine.", 1)
    group._start("lab_part", "curve", state.one_of_these(list(PARTS)))
    group._start("lab_view", "method", state.one_of_these(list(VIEWS)))
    group._start(f"lab_score_{kind}", next(iter(LAB_MEASURES[kind])), state.one_of_these(list(LAB_MEASURES[kind])))
    paper_delta = 1e-6 if kind == "modes" or dataset == "blobs" else 1e-5
    settings = LabSettings(
        kind=kind,
        dataset=dataset,
        arms=arms,
        sizes=sizes,
        epsilons=epsilons,
        runs=runs,
        seed=seed,
        known=known,
        delta=paper_delta if slack == AUTO else slack,
    )
    state.write_url(group.keys)
    return settings


def text(group: _Group, label: str, key: str, default: str, help_text: str) -> str:
    """A line of text whose value lives in the session and the URL."""
    group._start(key, default, _short_text)
    return st.text_input(label, key=key, help=help_text, max_chars=4_000, persist_state="session")


def _short_text(words: str) -> str:
    if len(words) > 4_000:
        raise ValueError(words)
    return words


def _arm(group: _Group, arm: Arm) -> bool:
    group._start(arm.key, arm.first, state.one_of_these([True, False]))
    return st.checkbox(arm.title, key=arm.key, persist_state="session")


def _switch(group: _Group, key: str, label: str, help_text: str) -> bool:
    group.switch(key)
    return st.toggle(label, key=key, help=help_text, persist_state="session")


def chosen(key: str, words: dict[str, Any], label: str, help_text: str = "") -> str:
    """One of a few, on the page itself."""
    return st.segmented_control(
        label,
        list(words),
        key=key,
        format_func=lambda name: words[name] if isinstance(words[name], str) else words[name][0],
        required=True,
        help=help_text or None,
        persist_state="session",
    )
