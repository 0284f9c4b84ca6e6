"""Widget groups that become settings. The key of a control is also its name in the URL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dpgrams_core import DATASETS, METHODS
from dpgrams_core.bandwidths import BANDWIDTH_RULES
from dpgrams_core.datasets import datasets_of
from dpgrams_core.figures.tradeoff import method_title
from dpgrams_core.guarantees import full_status
from dpgrams_core.kernels import KERNELS
from dpgrams_core.methods import UNPROVEN_CALIBRATIONS
from dpgrams_core.specs import CALIBRATIONS
from pages._ui import state

SIZES = (50, 100, 200, 500, 700, 1_000, 1_200, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
SIZES += (1_000_000,)
EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
DELTAS = tuple(float(f"1e-{power}") for power in range(3, 13))
FACTORS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0)
WIDTHS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0)
CLIPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
BATCHES = ("auto", 1, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
KNOWN = ("unknown", 1, 2, 3, 4, 5, 6, 8, 10)
SHARES = tuple(range(5, 100, 5))
CALIBRATION_STATUS = {**UNPROVEN_CALIBRATIONS, "tight": "proven"}
LARGEST_SEED = 2**31 - 1
PRIVATE_METHODS = [name for name, method in METHODS.items() if method.kind == "modes" and method.private]
NOTHING = "nothing"
# What may stand beside the method: its name in the URL, and the method and calibration it means.
COMPARISONS = {"functional": ("functional", None), **{name: ("dp_grams", name) for name in CALIBRATIONS}}
SHARED_BY_ALL = ("epsilon", "delta", "n_modes")


@dataclass(frozen=True, kw_only=True)
class ModesSettings:
    """Everything the Modes page shows depends on; frozen, so it can key a cache."""

    method: str
    dataset: str
    n: int
    data_seed: int
    seed: int
    options: tuple[tuple[str, Any], ...]
    compare: str = NOTHING

    @property
    def title(self) -> str:
        """The method and its calibration, as people call them."""
        return method_title(self.method, self.options)

    @property
    def compares_with_itself(self) -> bool:
        """Whether the second method chosen is the first one."""
        return self.compare == dict(self.options).get("calibration", self.method)

    @property
    def second(self) -> ModesSettings | None:
        """The method beside this one: same data, budget, seeds and known count.

        Another calibration of the same method shares its other settings too; another method has its defaults.
        """
        if self.compare == NOTHING or self.compares_with_itself:
            return None
        method, calibration = COMPARISONS[self.compare]
        options = {name: value for name, value in self.options if method == self.method or name in SHARED_BY_ALL}
        if calibration:
            options["calibration"] = calibration
        return replace(self, method=method, options=tuple(sorted(options.items())), compare=NOTHING)

    @property
    def baseline_options(self) -> tuple[tuple[str, Any], ...]:
        """The settings that mean shift shares."""
        shared = ("n_modes",) if self.method == "functional" else ("bandwidth", "bandwidth_scale", "n_modes")
        return tuple((name, value) for name, value in self.options if name in shared)

    @property
    def epsilon(self) -> float:
        """The chosen epsilon."""
        return float(dict(self.options)["epsilon"])


def modes_controls() -> ModesSettings:
    """The controls of the Modes page, in the sidebar."""
    group = _Group()
    with st.sidebar:
        dataset = group.choice(
            "Data set",
            "dataset",
            datasets_of("modes"),
            "A synthetic mixture of the paper, drawn afresh.",
            lambda name: DATASETS[name].title,
        )
        st.caption(DATASETS[dataset].description)
        method = group.choice(
            "Method", "method", PRIVATE_METHODS, "How the modes are found privately.", lambda name: METHODS[name].title
        )
        compare = group.choice(
            "Compare with",
            "compare",
            [NOTHING, *COMPARISONS],
            "A second method beside it: same data, ε, δ and seeds. What only it has stays at its defaults.",
            _comparison_words,
        )
        remark = st.empty()
        n = group.steps("Records, n", "n", SIZES, 5_000, "How many people are in the data (n). Public.")
        epsilon, delta = budget(group, "delta", 1e-6)
        options: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
        options |= _functional(group) if method == "functional" else _ascent(group)
        new_noise_button()
        with st.expander("More settings", key="more_settings"):
            options |= _known_count(group)
            if method == "dp_grams":
                options |= _more(group)
            seed, data_seed = seeds(group)
    group.switch("curve")
    group.switch("runs")
    group.switch("landscape")
    state.write_url(group.keys)
    settings = ModesSettings(
        method=method,
        dataset=dataset,
        n=n,
        data_seed=data_seed,
        seed=seed,
        options=tuple(sorted(options.items())),
        compare=compare,
    )
    if settings.compares_with_itself:
        remark.caption("That is the method itself: choose another one to see two side by side.")
    return settings


def _comparison_words(name: str) -> str:
    if name == NOTHING:
        return "nothing"
    method, calibration = COMPARISONS[name]
    return method_title(method, (("calibration", calibration),) if calibration else ())


def _functional(group: _Group) -> dict[str, Any]:
    """The one knob of the functional release: its bandwidth has a public rule of its own."""
    factor = group.steps("× bandwidth", "h_scale", FACTORS, 1.0, "Multiplies the release's public bandwidth rule (h).")
    return {"bandwidth_scale": factor}


def _ascent(group: _Group) -> dict[str, Any]:
    """The main knobs of DP-GRAMS."""
    options = _bandwidth(group)
    options["clip_multiplier"] = group.steps(
        "Clip multiplier", "clip", CLIPS, 1.0, "How far one record may pull (C* = multiplier · h^-(d+1))."
    )
    batch = group.steps(
        "Minibatch size, m", "m", BATCHES, "auto", "Records looked at in each step (m); auto chooses for you."
    )
    if batch != "auto":
        options["batch_size"] = batch
    return options


def _known_count(group: _Group) -> dict[str, Any]:
    known = group.steps("Known number of modes", "modes", KNOWN, "unknown", "Merge to this count (M), if known.")
    return {} if known == "unknown" else {"n_modes": known}


def budget(group: _Group, delta_key: str, first_delta: float) -> tuple[float, float]:
    """ε on a log scale with both ends labelled, and δ; pages with another first δ keep it under a name of their own."""
    epsilon = group.steps("Privacy budget, ε", "epsilon", EPSILONS, 1.0, "Smaller ε: more noise, less risk (ε).")
    st.html('<div class="ends"><span>← stronger privacy</span><span>weaker privacy →</span></div>')
    words = "Room for rare exceptions to ε (δ); keep it far below 1/n."
    return epsilon, group.steps("Slack, δ", delta_key, DELTAS, first_delta, words)


def new_noise_button() -> None:
    """The next seed of the noise on the same records."""
    st.button(
        "New noise, same data",
        icon=":material/casino:",
        width="stretch",
        help="Draws the next seed.",
        key="new_noise",
        on_click=_next_seed,
    )


def seeds(group: _Group) -> tuple[int, int]:
    """The seeds of the noise and of the data."""
    seed = group.number("Seed of the noise", "seed", 0, int, "Same seed, same noise.", 1)
    return seed, group.number("Seed of the data", "data_seed", 0, int, "Same seed, same records.", 1)


def _next_seed() -> None:
    st.session_state["seed"] = (int(st.session_state.get("seed") or 0) + 1) % LARGEST_SEED


class _Group:
    """Builds controls whose values live in the session and the URL, and remembers their keys."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def steps(self, label: str, key: str, values: tuple[Any, ...], default: Any, help_text: str) -> Any:
        """A slider over fixed values, so that a log scale is exact."""
        self._start(key, default, state.one_of_these(values))
        return st.select_slider(label, values, format_func=written, key=key, help=help_text, persist_state="session")

    def choice(self, label: str, key: str, values: list[str], help_text: str, words: Callable[[str], str]) -> str:
        """A list to choose from; the first is the default."""
        self._start(key, values[0], state.one_of_these(values))
        return st.selectbox(label, values, format_func=words, key=key, help=help_text, persist_state="session")

    def number(self, label: str, key: str, default: Any, kind: type, help_text: str, step: Any) -> Any:
        """A number typed in; with the default None it may be left empty."""
        if default is None:
            self._start(key, None, state.number_within(kind, -1e9, 1e9))
            # value=None is what lets the box be emptied again.
            bounds: dict[str, Any] = {"value": None, "placeholder": "default"}
        else:
            self._start(key, default, state.number_within(kind, 0, LARGEST_SEED, empty=False))
            bounds = {"min_value": 0, "max_value": LARGEST_SEED}
        return st.number_input(label, step=step, key=key, help=help_text, persist_state="session", **bounds)

    def switch(self, key: str) -> None:
        """The state of a switch that stands elsewhere on the page; on at first."""
        self._start(key, True, state.one_of_these([True, False]))

    def _start(self, key: str, default: Any, parse: Callable[[str], Any]) -> None:
        self.keys.append(key)
        state.start(key, default, parse)


def written(value: Any) -> str:
    """A value of a slider as people write it."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.0e}".replace("e-0", "e-") if value < 0.005 else f"{value:g}"


def _bandwidth(group: _Group) -> dict[str, Any]:
    titles = {**{name: rule.title for name, rule in BANDWIDTH_RULES.items()}, "value": "a value"}
    help_text = "How wide each record is smeared out (h). Rules that read the data are not public."
    rule = group.choice("Bandwidth, h", "bandwidth", list(titles), help_text, titles.__getitem__)
    if rule == "value":
        return {"bandwidth": group.steps("h", "h", WIDTHS, 1.0, "The bandwidth itself (h), a public number.")}
    factor = group.steps("× bandwidth", "h_scale", FACTORS, 1.0, "Multiplies the rule's bandwidth; a public number.")
    return {"bandwidth": rule, "bandwidth_scale": factor}


def calibration_words(name: str, condition: str | None = None) -> str:
    """A calibration with the status that it has, on data whose guarantees rest on a condition with that.

    >>> calibration_words("tight"), calibration_words("tight", "given the representation")
    ('tight (proven)', 'tight (proven, given the representation)')
    """
    return f"{name} ({full_status(CALIBRATION_STATUS[name], condition)})"


def _more(group: _Group, condition: str | None = None) -> dict[str, Any]:
    """The folded settings of DP-GRAMS; an empty box means the default."""
    calibration = group.choice(
        "Calibration",
        "calibration",
        list(CALIBRATIONS),
        "Which noise is added, and so which guarantee the result has.",
        lambda name: calibration_words(name, condition),
    )
    kernel = group.choice(
        "Kernel",
        "kernel",
        list(KERNELS),
        "The shape that each record is smeared into (K).",
        lambda name: KERNELS[name].title,
    )
    share = group.steps("Share of ε for the start, %", "share", SHARES, 30, "ε_init / ε; the ascent gets the rest.")
    more: dict[str, Any] = {"calibration": calibration, "kernel": kernel, "init_fraction": share / 100}
    for name, label, key, kind, help_text, step in (
        ("n_steps", "Steps, T", "steps", int, "Noisy ascent steps (T); empty: log n.", 1),
        ("step_size", "Step size, η", "eta", float, "Length of a step (η); empty: h², as mean shift.", 0.05),
        ("n_starts", "Starts, k", "starts", int, "Anchors drawn (k); more starts share the same ε_init.", 1),
        ("suppression_radius", "Suppression radius, ρ", "rho", float, "Anchors keep this apart (ρ_init).", 0.1),
        ("init_bandwidth", "Grid spacing, h_DAP", "h_dap", float, "Public grid of candidates (h_DAP).", 0.1),
    ):
        value = group.number(label, key, None, kind, help_text, step)
        if value is not None:
            more[name] = value
    return more
