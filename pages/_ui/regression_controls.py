"""The controls of the Regression page.

Where the values or the default differ from the Modes page a control has a key of its own (``reg_…``); the others share
theirs, so that ε and the seeds carry over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from dpgrams_core import DATASETS, METHODS
from dpgrams_core.datasets import datasets_of
from dpgrams_core.figures import place_names
from dpgrams_core.figures.tradeoff import method_title
from dpgrams_core.specs import CALIBRATIONS
from dpgrams_core.specs_regression import STARTS
from pages._ui import state
from pages._ui.controls import BATCHES, FACTORS, SHARES, _Group, budget, calibration_words, new_noise_button, seeds

SIZES = (50, 100, 200, 500, 600, 1_000, 1_200, 2_000, 2_400, 5_000, 10_000, 20_000, 50_000)
CLIPS = ("auto", 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
METHODS_HERE = ["functional_regression", "dp_pms"]  # the proven one first
START_WORDS = {"sparse": "sparse: evenly spread ranks of x", "binned": "binned: one in each bin of x"}
# What the chart of the branches may show, and what it shows at first.
SHOWN = ("private", "other", "pms", "lowess", "truth", "records")
SHOWN_FIRST = "private,pms,lowess,truth,records"
FIRST_PLACE = "0.46"  # both data sets have two branches there


@dataclass(frozen=True, kw_only=True)
class RegressionSettings:
    """Everything the Regression page computes depends on; frozen, so it can key a cache."""

    method: str
    dataset: str
    n: int
    data_seed: int
    seed: int
    options: tuple[tuple[str, Any], ...]

    @property
    def title(self) -> str:
        """The method and its calibration, as people call them."""
        return method_title(self.method, self.options)

    @property
    def epsilon(self) -> float:
        """The chosen epsilon."""
        return float(dict(self.options)["epsilon"])

    @property
    def other(self) -> RegressionSettings:
        """The other private method on the same data with the same budget and seeds, and else its defaults."""
        method = next(name for name in METHODS_HERE if name != self.method)
        options = {name: value for name, value in self.options if name in ("epsilon", "delta")}
        if method == "dp_pms":
            options["calibration"] = CALIBRATIONS[0]
        return RegressionSettings(
            method=method,
            dataset=self.dataset,
            n=self.n,
            data_seed=self.data_seed,
            seed=self.seed,
            options=tuple(sorted(options.items())),
        )


def regression_controls() -> RegressionSettings:
    """The settings, in the sidebar; also starts the controls that stand on the page itself."""
    group = _Group()
    with st.sidebar:
        dataset = group.choice(
            "Data set",
            "reg_dataset",
            datasets_of("regression"),
            "A synthetic design of the paper, drawn afresh.",
            lambda name: DATASETS[name].title,
        )
        st.caption(DATASETS[dataset].description + " The predictor x is public; the response y is private.")
        method = group.choice(
            "Method",
            "reg_method",
            METHODS_HERE,
            "How the branches are found privately.",
            lambda name: METHODS[name].title,
        )
        n = group.steps("Records, n", "reg_n", SIZES, 1_200, "How many people are in the data (n). Public.")
        epsilon, delta = budget(group, "reg_delta", 1e-5)
        options: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
        factor = group.steps(
            "× bandwidth", "h_scale", FACTORS, 1.0, "Multiplies the method's public bandwidth rule (h)."
        )
        options["bandwidth_scale"] = factor
        if method == "dp_pms":
            options |= _ascent(group)
        new_noise_button()
        with st.expander("More settings", key="more_settings"):
            if method == "dp_pms":
                options |= _more(group)
            seed, data_seed = seeds(group)
    group.switch("curve")
    group._start("reg_show", SHOWN_FIRST, _known_curves)
    group._start("reg_x", FIRST_PLACE, state.one_of_these(places()))
    state.write_url(group.keys)
    return RegressionSettings(
        method=method,
        dataset=dataset,
        n=n,
        data_seed=data_seed,
        seed=seed,
        options=tuple(sorted(options.items())),
    )


def places() -> list[str]:
    """The places x that can be looked at; both data sets have the same range of x."""
    return place_names(np.array(_box()))


def chosen_curves(settings: RegressionSettings) -> list[str]:
    """Pills that choose what the chart of the branches shows, together or one by one."""
    words = {
        "private": settings.title,
        "other": settings.other.title,
        "pms": "PMS",
        "lowess": "LOWESS",
        "truth": "true branches",
        "records": "records",
    }
    # A list cannot stand in the URL, so the session holds it twice: as the pills have it and as text.
    if "reg_show_pills" not in st.session_state:
        st.session_state["reg_show_pills"] = _listed(st.session_state["reg_show"])
    chosen = st.pills(
        "Show",
        SHOWN,
        selection_mode="multi",
        format_func=words.__getitem__,
        key="reg_show_pills",
        help="What the chart shows: curves together or one by one.",
        on_change=_keep_choice,
        persist_state="session",
    )
    return list(chosen)


def chosen_place() -> str:
    """A slider for the x of the conditional density; the pointer over the branches moves the picture too."""
    return st.select_slider("x", places(), key="reg_x", help="The predictor to look at (x).", persist_state="session")


def _keep_choice() -> None:
    chosen = st.session_state["reg_show_pills"]
    st.session_state["reg_show"] = ",".join(name for name in SHOWN if name in chosen)


def _listed(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _known_curves(text: str) -> str:
    if not set(_listed(text)) <= set(SHOWN):
        raise ValueError(text)
    return ",".join(name for name in SHOWN if name in _listed(text))


def _box() -> Any:
    return DATASETS[datasets_of("regression")[0]].box


def _ascent(group: _Group) -> dict[str, Any]:
    """The main knobs of DP-PMS; "auto" leaves one at its default."""
    calibration = group.choice(
        "Calibration",
        "calibration",
        list(CALIBRATIONS),
        "Which noise is added, and so which guarantee the result has.",
        calibration_words,
    )
    options: dict[str, Any] = {"calibration": calibration}
    for name, value in (
        (
            "clip_multiplier",
            group.steps(
                "Clip multiplier", "reg_clip", CLIPS, "auto", "How far one record may pull (C = multiplier / h)."
            ),
        ),
        (
            "batch_size",
            group.steps(
                "Minibatch size, m", "m", BATCHES, "auto", "Records looked at in each step (m); auto chooses for you."
            ),
        ),
    ):
        if value != "auto":
            options[name] = value
    return options


def _more(group: _Group) -> dict[str, Any]:
    """The folded settings of DP-PMS; an empty box means the default. Lengths are shares of the box's side."""
    share = group.steps("Share of ε for the start, %", "share", SHARES, 30, "ε_init / ε; the ascent gets the rest.")
    starts = group.choice("Starts", "reg_starts", list(STARTS), "Where the ascent begins.", START_WORDS.__getitem__)
    more: dict[str, Any] = {"init_fraction": share / 100, "starts": starts}
    count = (
        ("start_multiplier", "Starts, κ", "reg_kappa", float, "κ · log n starts, spread over x (κ_init).", 0.5)
        if starts == "sparse"
        else ("n_bins", "Bins of x", "reg_bins", int, "One start in the middle of each bin.", 1)
    )
    for name, label, key, kind, help_text, step in (
        count,
        ("n_steps", "Steps, T", "steps", int, "Noisy ascent steps (T); empty: log n.", 1),
        ("step_size", "Step size, η", "reg_eta", float, "Part of a mean-shift step (η); empty: all of it.", 0.1),
        ("init_bandwidth", "Window of a start, h_score", "reg_window", float, "Share of the box (h_score).", 0.01),
        ("merge_radius", "Merge radius", "reg_merge", float, "Ends this close in y are one; share of the box.", 0.01),
    ):
        value = group.number(label, key, None, kind, help_text, step)
        if value is not None:
            more[name] = value
    return more
