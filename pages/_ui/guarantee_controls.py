"""The controls of the Guarantee page: the same keys as on the Modes page, so settings carry over."""

from __future__ import annotations

import streamlit as st

from dpgrams_core import DATASETS
from dpgrams_core.comparison import ComparisonSettings
from dpgrams_core.datasets import datasets_of
from pages._ui import state
from pages._ui.controls import BATCHES, CLIPS, FACTORS, SIZES, _Group, budget

PRIORS = tuple(range(1, 100))
DEFAULT_PRIOR = 50
SWITCHES = ("measure", "accountants")


def guarantee_controls(group: _Group) -> ComparisonSettings:
    """The settings, in the sidebar."""
    with st.sidebar:
        dataset = group.choice(
            "Data set",
            "dataset",
            datasets_of("modes"),
            "A synthetic mixture of the paper, drawn afresh.",
            lambda name: DATASETS[name].title,
        )
        n = group.steps("Records, n", "n", SIZES, 5_000, "How many people are in the data (n). Public.")
        epsilon, delta = budget(group, "delta", 1e-6)
        factor = group.steps("× bandwidth", "h_scale", FACTORS, 1.0, "Multiplies each method's public bandwidth rule.")
        clip = group.steps(
            "Clip multiplier",
            "clip",
            CLIPS,
            1.0,
            "How far a record may pull in DP-GRAMS (C* = multiplier · h^-(d+1)).",
        )
        batch = group.steps(
            "Minibatch size, m",
            "m",
            BATCHES,
            "auto",
            "Records per DP-GRAMS step (m); auto: n/log n, or all for tight.",
        )
        steps = group.number("Steps, T", "steps", None, int, "Noisy ascent steps of DP-GRAMS (T); empty: log n.", 1)
    for key in SWITCHES:
        group.switch(key)
    state.start("prior", DEFAULT_PRIOR, state.one_of_these(PRIORS))  # its slider stands on the page, under the answer
    return ComparisonSettings(
        dataset=dataset,
        n=n,
        epsilon=epsilon,
        delta=delta,
        batch_size=None if batch == "auto" else batch,
        n_steps=steps,
        clip_multiplier=clip,
        bandwidth_scale=factor,
    )


def chosen_prior() -> float:
    """How sure someone was before, as a probability."""
    return int(st.session_state["prior"]) / 100


def prior_control(group: _Group) -> None:
    """The slider of it."""
    group.steps("How sure they were before, %", "prior", PRIORS, DEFAULT_PRIOR, "Their belief in A before the result.")
