"""The controls that stand on the Tradeoff page itself, beside what they change; they live in the URL as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpgrams_core import METHODS
from dpgrams_core.error_sources import LADDERS
from dpgrams_core.figures import LAB_MEASURES
from dpgrams_core.needed_budget import MEASURES
from pages._ui import state
from pages._ui.controls import _Group
from pages._ui.tradeoff_grids import ARMS, Arm, grid_of, numbers_of

PARTS = {
    "curve": "Curve",
    "sensitivity": "Sensitivity",
    "kernel": "Kernel",
    "sources": "Where the error comes from",
    "needed": "What ε do I need?",
}
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
TARGETS = {"mse": 0.05, "mse_per_true_mode": 0.05, "missed": 0.0, "spurious": 0.0, "found": 4.0}
TARGETS |= {"branch_recall": 0.9, "coverage": 0.9, "ari": 0.8, "nmi": 0.8, "centroid_mse": 0.5}
LONGEST_TEXT = 4_000


def start_choices(group: _Group, kind: str, dataset: str) -> None:
    """Give every control its first value, from the URL or the default."""
    arms = ARMS[kind]
    for key, values in (
        ("lab_part", PARTS),
        ("lab_view", VIEWS),
        ("lab_theory", (False, True)),
        (f"lab_score_{kind}", LAB_MEASURES[kind]),
        ("lab_vary", VARIED),
        ("lab_rule", RULES),
        ("lab_sought", SOUGHT),
        (f"lab_e_score_{kind}", error_measures(kind)),
        (f"lab_t_score_{kind}", target_measures(kind)),
        (f"lab_t_arm_{kind}", [arm.title for arm in arms if METHODS[arm.method].private]),
        *((f"lab_s_arm_{kind}_{name}", [arm.title for arm in arms if arm.has(name)]) for name in VARIED),
        (f"lab_e_arm_{kind}", [arm.title for arm in source_arms(kind)]),
    ):
        options = list(values)
        if options:
            group._start(key, options[0], state.one_of_these(options))
    for name, (_, text, _) in VARIED.items():
        group._start(f"lab_values_{name}", text, short_text)
    group._start("lab_kernel_eps", KERNEL_EPSILONS, short_text)
    sizes = numbers_of("n", grid_of(dataset)[0], int)
    group._start(f"lab_one_n_{dataset}", sizes[len(sizes) // 2], state.number_within(int, 0, 1e9))
    group._start("lab_one_eps", 1.0, state.number_within(float, 0, 1e9))
    group._start("lab_percent", 90.0, state.number_within(float, 0, 100))
    for measure in MEASURES[kind]:
        group._start(f"lab_target_{measure}", TARGETS[measure], state.number_within(float, -1e9, 1e9))
    for name, (low, high) in SEARCH.items():
        group._start(f"lab_low_{name}", low, state.number_within(type(low), 0, 1e9))
        group._start(f"lab_high_{name}", high, state.number_within(type(high), 0, 1e9))


def source_arms(kind: str) -> list[Arm]:
    """The methods whose error can be told apart; the one with the most ingredients first."""
    return sorted((arm for arm in ARMS[kind] if arm.method in LADDERS), key=lambda arm: not arm.has("clip_multiplier"))


def error_measures(kind: str) -> dict[str, str]:
    """The errors that can be told apart, in words."""
    names = LADDERS[source_arms(kind)[0].method].measures  # the ladders of one kind share them
    return {name: LAB_MEASURES[kind][name][0] for name in names}


def target_measures(kind: str) -> dict[str, str]:
    """The scores that can be wished for, in words."""
    return {name: words[0] for name, words in LAB_MEASURES[kind].items() if name in MEASURES[kind]}


def chosen(key: str, words: dict[str, Any], label: str, *, label_shown: bool = True) -> str:
    """One of a few."""
    picked = st.segmented_control(
        label,
        list(words),
        key=key,
        label_visibility="visible" if label_shown else "collapsed",
        format_func=lambda name: words[name] if isinstance(words[name], str) else words[name][0],
        required=True,
        wrap=True,
        persist_state="session",
    )
    return picked or next(iter(words))  # no browser sends nothing here, and a visitor may


def one_arm(key: str, arms: Sequence[Arm]) -> Arm:
    """One method of several."""
    known = {arm.title: arm for arm in arms}
    return known[st.selectbox("Method", list(known), key=key, persist_state="session", width=200)]


def one_of_some(label: str, key: str, words: dict[str, str]) -> str:
    """One of several, where the words would be too wide side by side."""
    return st.selectbox(label, list(words), key=key, format_func=words.__getitem__, persist_state="session", width=200)


def line(label: str, key: str, help_text: str = "Numbers with blanks between them.") -> str:
    """A line of numbers."""
    return st.text_input(label, key=key, help=help_text, max_chars=LONGEST_TEXT, persist_state="session")


def short_text(words: str) -> str:
    """A parser of the URL for a line of text."""
    if len(words) > LONGEST_TEXT:
        raise ValueError(words)
    return words


def number(label: str, key: str) -> Any:
    """A number typed in; what is not allowed is refused where it is used."""
    whole = isinstance(st.session_state[key], int)
    kind: dict[str, Any] = {"step": 1} if whole else {"step": 0.05, "format": "%g"}
    return st.number_input(label, key=key, persist_state="session", width=140, **kind)
