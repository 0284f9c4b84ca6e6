"""The settings that several specs have in common, each declared here once: its range, words, symbol and control.
A spec takes one by ``epsilon: float = settings.epsilon()``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dpgrams_core.model.checks import SMALLEST_EPSILON, between
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.specs import setting
from dpgrams_core.numerics.bandwidths import BANDWIDTH_RULES


@dataclass(frozen=True)
class Calibration:
    """A way to set a method's noise: the status that its results have, and in words where that noise comes from."""

    status: str
    words: str


# The first is the one that pages begin with.
CALIBRATIONS = {
    "tight": Calibration("proven", "Noisy kernel sums at every step. Its claim has a proof."),
    "theorem": Calibration("as published", "The noise of the paper's theorem. Its proof has a gap."),
    "experiments": Calibration("nominal", "The noise that the paper's text describes. Its ε is a name, not a proof."),
    "as_run": Calibration("none", "The paper's own runs, again. No guarantee; public data only."),
}
SMALLEST_DELTA = 1e-100  # below about 1e-300 the noise formula divides by zero
MAX_STARTS = 1_000
MAX_STEPS = 1_000
MAX_CLUSTERS = 100

# The places where a slider stops, so that a log scale is exact.
EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
DELTAS = tuple(float(f"1e-{power}") for power in range(3, 13))
FACTORS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0)
WIDTHS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0)
BATCHES = (1, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
SHARES = tuple(percent / 100 for percent in range(5, 100, 5))

UNCLIPPED: dict[str, Any] = {
    "only_if": lambda spec: spec.calibration in ("theorem", "tight"),
    "place": "the theorem and tight calibrations",
}


def asked_delta(name: str, value: Any) -> float:
    """A slack that somebody asks for: one rule for every method."""
    number = between(name, value, 0, 1)
    if number < SMALLEST_DELTA:
        raise SpecError(name, value, f"it must be at least {SMALLEST_DELTA:g} and below 1")
    return number


def epsilon(**facts: Any) -> Any:
    """The privacy budget."""
    words = "Smaller ε: more noise, less risk (ε)."
    own = {"low": SMALLEST_EPSILON, "steps": EPSILONS}
    return setting(1.0, label="Privacy budget, ε", words=words, symbol="ε", **(own | facts))


def delta(default: float) -> Any:
    """The slack of the guarantee."""
    words = "Room for rare exceptions to ε (δ); keep it far below 1/n. A smaller δ: a little more noise."
    facts = {"symbol": "δ", "low": SMALLEST_DELTA, "high": 1.0, "check": asked_delta, "steps": DELTAS}
    return setting(default, label="Slack, δ", words=words, **facts)


def bandwidth(words: str = "", *, rules: bool = True, more: Mapping[str, str] = MappingProxyType({})) -> Any:
    """The bandwidth: a number, or with ``rules`` also the name of a rule, of ``more`` those that one method has."""
    own_words = "How wide each record is smeared out (h); wider: less noise, less detail. "
    own_words += "Rules that read the data are not public."
    titles = {name: rule.title for name, rule in BANDWIDTH_RULES.items()} | dict(more)
    facts: dict[str, Any] = {"choices": tuple(titles), "titles": titles, "or_number": True} if rules else {}
    facts |= {"label": "Bandwidth, h", "words": words or own_words, "symbol": "h", "steps": WIDTHS, "empty": "auto"}
    return setting(None, **facts)


def bandwidth_scale(whose: str) -> Any:
    """The public factor of a bandwidth rule; None counts as 1."""
    return setting(None, label="× bandwidth", words=f"Multiplies {whose}.", steps=FACTORS, empty="1")


def bandwidth_from() -> Any:
    """The rule that read a bandwidth off the records: no proof covers such a number, whoever gives it."""
    return setting(
        None,
        label="Bandwidth from",
        words="The rule that read this bandwidth off the records; a release's own settings have it.",
        choices=tuple(name for name, rule in BANDWIDTH_RULES.items() if not rule.public),
        only_if=lambda spec: not isinstance(spec.bandwidth, str | None),
        place="a bandwidth given as a number",
    )


def beta() -> Any:
    """The smoothness that the two-regime rule of the bandwidth assumes."""
    words = "Smoothness of the density that the two-regime bandwidth rule assumes (β)."
    range_ = {"low": 2, "high": None, "excluded": (2,), "refusal": "the paper's rates need a smoothness above 2"}
    return setting(3.0, label="Smoothness, β", words=words, symbol="β", **range_)


def calibration() -> Any:
    """Which noise is added."""
    words = "Which noise is added, and so which guarantee the result has."
    return setting("experiments", label="Calibration", words=words, choices=CALIBRATIONS)


def init_fraction() -> Any:
    """The start's share of ε."""
    words = "ε_init / ε; the ascent gets the rest. In tight squares add up: 30% leaves 95% for the ascent."
    facts = {"symbol": "ε_init / ε", "low": 0, "high": 1, "excluded": (0, 1), "steps": SHARES, "percent": True}
    return setting(None, label="Share of ε for the start, %", words=words, empty="auto", **facts)


def count(label: str, words: str, high: int | None, *, low: int = 1, default: int | None = None, **f: Any) -> Any:
    """A whole number."""
    return setting(default, label=label, words=words, whole=True, low=low, high=high, **({"step": 1} | f))


def batch_size() -> Any:
    """The minibatch."""
    words = "Records looked at in each step (m); auto chooses for you. In tight all of them: fewer mean more noise."
    return count("Minibatch size, m", words, None, symbol="m", steps=BATCHES, empty="auto")


def n_steps() -> Any:
    """The rounds of an ascent."""
    words = "Noisy ascent steps (T); empty: log n, in tight 3 rounds, all read together."
    return count("Steps, T", words, MAX_STEPS, symbol="T")


def n_modes(high: int | None) -> Any:
    """The known number of modes."""
    words, steps = "Merge to this count (M), if known.", (1, 2, 3, 4, 5, 6, 8, 10)
    return count("Known number of modes", words, high, symbol="M", steps=steps, empty="unknown")


def n_clusters() -> Any:
    """The number of clusters."""
    words = "How many centres to find; without it the method's own count."
    steps = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100)
    return count("Number of clusters", words, MAX_CLUSTERS, steps=steps, empty="unknown")


def density_floor() -> Any:
    """The density floor, which two calibrations divide by."""
    words = "No score is divided by less (p_floor)."
    return setting(None, label="Density floor", words=words, symbol="p_floor", **UNCLIPPED)


def gradient_clip() -> Any:
    """The clip of the gradient, which two calibrations have."""
    return setting(None, label="Gradient clip, A", words="No gradient is longer (A).", symbol="A", **UNCLIPPED)
