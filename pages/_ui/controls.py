"""Widget groups that become settings. Every key is also the name in the URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpgrams_core import DATASETS
from dpgrams_core.bandwidths import BANDWIDTH_RULES
from dpgrams_core.kernels import KERNELS
from dpgrams_core.specs import CALIBRATIONS

SIZES = (50, 100, 200, 500, 700, 1_000, 1_200, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
SIZES += (1_000_000,)
EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
DELTAS = tuple(10.0**-power for power in range(3, 13))
FACTORS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0)
WIDTHS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0)
CLIPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
BATCHES = ("auto", "10", "20", "50", "100", "200", "500", "1000", "2000", "5000", "10000", "50000", "100000", "1000000")
KNOWN = ("unknown", "1", "2", "3", "4", "5", "6", "8", "10")
CALIBRATION_WORDS = {
    "experiments": "experiments (nominal)",
    "theorem": "theorem (as published)",
}


@dataclass(frozen=True, kw_only=True)
class ModesSettings:
    """Everything the Modes page shows depends on; frozen, so it can key a cache."""

    dataset: str
    n: int
    data_seed: int
    seed: int
    options: tuple[tuple[str, Any], ...]

    @property
    def baseline_options(self) -> tuple[tuple[str, Any], ...]:
        """The settings that mean shift shares."""
        shared = ("bandwidth", "bandwidth_scale", "n_modes")
        return tuple((name, value) for name, value in self.options if name in shared)

    @property
    def epsilon(self) -> float:
        """The chosen epsilon."""
        return float(dict(self.options)["epsilon"])


def modes_controls() -> ModesSettings:
    """The controls of the Modes page, in the sidebar."""
    with st.sidebar:
        dataset = st.selectbox(
            "Data set",
            list(DATASETS),
            format_func=lambda name: DATASETS[name].title,
            key="dataset",
            bind="query-params",
            help="A synthetic mixture of the paper, drawn afresh.",
        )
        st.caption(DATASETS[dataset].description)
        n = _steps("Records, n", SIZES, 5_000, "n", "How many people are in the data (n). Public.", "{:,}".format)
        st.divider()
        epsilon = _steps("Privacy budget, ε", EPSILONS, 1.0, "epsilon", "Smaller ε: more noise, less risk (ε).")
        st.html('<div class="ends"><span>← stronger privacy</span><span>weaker privacy →</span></div>')
        delta = _steps(
            "Slack, δ",
            DELTAS,
            1e-6,
            "delta",
            "Chance that ε fails to hold (δ); keep it far below 1/n.",
            "{:.0e}".format,
        )
        options: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
        options |= _bandwidth()
        options["clip_multiplier"] = _steps(
            "Clip multiplier", CLIPS, 1.0, "clip", "How far one record may pull (C* = multiplier · h^-(d+1))."
        )
        batch = _steps(
            "Minibatch size, m", BATCHES, "auto", "m", "Records looked at in each step (m); auto is n / log n.", str
        )
        if batch != "auto":
            options["batch_size"] = int(batch)
        if st.button("New noise, same data", icon=":material/casino:", width="stretch", help="Draws the next seed."):
            st.session_state["seed"] = int(st.session_state.get("seed") or 0) + 1
        with st.expander("More settings"):
            more, data_seed, seed = _more()
        options |= more
    return ModesSettings(
        dataset=dataset, n=int(n), data_seed=data_seed, seed=seed, options=tuple(sorted(options.items()))
    )


def _steps(label: str, values: Any, default: Any, key: str, help_text: str, words: Any = "{:g}".format) -> Any:
    """A slider over fixed values (so a log scale is exact), bound to the URL."""
    return st.select_slider(
        label, options=values, value=default, format_func=words, key=key, help=help_text, bind="query-params"
    )


def _bandwidth() -> dict[str, Any]:
    titles = {**{name: rule.title for name, rule in BANDWIDTH_RULES.items()}, "value": "a value"}
    rule = st.selectbox(
        "Bandwidth, h",
        list(titles),
        format_func=titles.__getitem__,
        key="bandwidth",
        bind="query-params",
        help="How wide each record is smeared out (h). Rules that read the data are not public.",
    )
    if rule == "value":
        return {"bandwidth": _steps("h", WIDTHS, 1.0, "h", "The bandwidth itself (h), a public number.")}
    factor = _steps("× bandwidth", FACTORS, 1.0, "h_scale", "Multiplies the rule's bandwidth; a public number.")
    return {"bandwidth": rule, "bandwidth_scale": factor}


def _more() -> tuple[dict[str, Any], int, int]:
    """The folded settings; an empty box means the default."""
    calibration = st.selectbox(
        "Calibration",
        CALIBRATIONS,
        format_func=CALIBRATION_WORDS.__getitem__,
        key="calibration",
        bind="query-params",
        help="Which noise is added, and so which guarantee the result has.",
    )
    kernel = st.selectbox(
        "Kernel",
        list(KERNELS),
        format_func=lambda name: KERNELS[name].title,
        key="kernel",
        bind="query-params",
        help="The shape that each record is smeared into (K).",
    )
    known = _steps("Known number of modes", KNOWN, "unknown", "modes", "Ward merge to this count (M), if known.", str)
    share = st.slider(
        "Share of ε for the start, %",
        min_value=5,
        max_value=95,
        value=30,
        step=5,
        key="share",
        bind="query-params",
        help="ε_init / ε: what the anchors may cost; the ascent gets the rest.",
    )
    steps = _blank("Steps, T", "steps", "Noisy ascent steps (T); empty: log n.", 1)
    step_size = _blank("Step size, η", "eta", "Length of a step (η); empty: h², as mean shift.", 0.05)
    starts = _blank("Starts, k", "starts", "Anchors drawn (k); more starts share the same ε_init.", 1)
    radius = _blank("Suppression radius, ρ", "rho", "No two anchors closer than this (ρ_init); empty: box / 10.", 0.1)
    seed = st.number_input(
        "Seed of the noise", value=0, step=1, key="seed", bind="query-params", help="Same seed, same noise."
    )
    data_seed = st.number_input(
        "Seed of the data", value=0, step=1, key="data_seed", bind="query-params", help="Same seed, same records."
    )
    more: dict[str, Any] = {"calibration": calibration, "kernel": kernel, "init_fraction": share / 100}
    if known != "unknown":
        more["n_modes"] = int(known)
    for name, value in (("n_steps", steps), ("step_size", step_size), ("n_starts", starts)):
        if value is not None:
            more[name] = value
    if radius is not None:
        more["suppression_radius"] = radius
    return more, int(data_seed), int(seed)


def _blank(label: str, key: str, help_text: str, step: Any) -> Any:
    """A number that may be left empty."""
    return st.number_input(
        label, value=None, step=step, key=key, help=help_text, placeholder="default", bind="query-params"
    )
