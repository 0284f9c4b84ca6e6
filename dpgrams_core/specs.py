"""Frozen descriptions of what to run. Every field is a PUBLIC value, checked at construction.

The paper's letters and our words:

    epsilon, delta        ε, δ          epsilon, delta
    ε_init / ε            share         init_fraction
    h, h_mode             bandwidth     bandwidth (a number or a rule), bandwidth_scale
    h_DAP                 bandwidth     init_bandwidth
    ρ_init                radius        suppression_radius
    k                     draws         n_starts
    T                     rounds        n_steps
    m                     minibatch     batch_size
    η                     step          step_size
    clip_multiplier       C_* h^(d+1)   clip_multiplier
    A                     clipping      gradient_clip
    p_floor               floor         density_floor
    β                     smoothness    beta
    Z                     candidates    candidates
    M                     modes         n_modes
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from dpgrams_core.bandwidths import BANDWIDTH_RULES
from dpgrams_core.checks import asked_epsilon, between, finite, one_of, positive, whole
from dpgrams_core.errors import SpecError
from dpgrams_core.kernels import KERNELS

CALIBRATIONS = ("experiments", "theorem", "tight")
SMALLEST_DELTA = 1e-100  # below about 1e-300 the noise formula divides by zero
MAX_STARTS = 1_000
Spec = TypeVar("Spec")


def _optional_positive(spec: Any, *names: str) -> None:
    for name in names:
        if getattr(spec, name) is not None:
            positive(name, getattr(spec, name))


def _check_bandwidth(spec: Any) -> None:
    wish = spec.bandwidth
    if isinstance(wish, str):
        if wish not in BANDWIDTH_RULES:
            raise SpecError("bandwidth", wish, "give a number above 0 or one of " + ", ".join(BANDWIDTH_RULES))
    elif wish is not None:
        positive("bandwidth", wish)
    _optional_positive(spec, "bandwidth_scale")


def _check_beta(beta: object) -> None:
    if finite("beta", beta) <= 2:
        raise SpecError("beta", beta, "the paper's rates need a smoothness above 2")


@dataclass(frozen=True, kw_only=True)
class DPGramsSpec:
    """Public settings of DP-GRAMS (alg:dpgrams). ``None`` means the default for the data's n, d and box."""

    epsilon: float = 1.0
    delta: float = 1e-6
    calibration: str = "experiments"
    kernel: str = "gaussian"
    bandwidth: float | str | None = None
    bandwidth_scale: float | None = None
    beta: float = 3.0
    clip_multiplier: float = 1.0
    batch_size: int | None = None
    n_steps: int | None = None
    step_size: float | None = None
    n_starts: int | None = None
    init_fraction: float = 0.3
    init_bandwidth: float | None = None
    suppression_radius: float | None = None
    gradient_clip: float | None = None
    density_floor: float | None = None
    n_modes: int | None = None
    candidates: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        asked_epsilon("epsilon", self.epsilon)
        if between("delta", self.delta, 0, 1) < SMALLEST_DELTA:
            raise SpecError("delta", self.delta, f"it must be at least {SMALLEST_DELTA:g} and below 1")
        one_of("calibration", self.calibration, CALIBRATIONS)
        one_of("kernel", self.kernel, KERNELS)
        _check_bandwidth(self)
        _check_beta(self.beta)
        positive("clip_multiplier", self.clip_multiplier)
        between("init_fraction", self.init_fraction, 0, 1)
        _optional_positive(self, "step_size", "init_bandwidth", "suppression_radius", "gradient_clip", "density_floor")
        for name, high in (("batch_size", None), ("n_steps", 1_000), ("n_starts", MAX_STARTS), ("n_modes", 1_000)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, whole(name, value, 1, high))
        for name in ("gradient_clip", "density_floor"):
            if getattr(self, name) is not None and self.calibration == "experiments":
                raise SpecError(
                    name, getattr(self, name), "it belongs to the theorem and tight calibrations; leave it out here"
                )
        if self.candidates is not None:
            object.__setattr__(self, "candidates", _candidate_rows(self.candidates))


@dataclass(frozen=True, kw_only=True)
class FunctionalSpec:
    """Public settings of the functional release. ``None`` for the bandwidth means its own public rule."""

    epsilon: float = 1.0
    delta: float = 1e-6
    bandwidth: float | str | None = None
    bandwidth_scale: float | None = None
    beta: float = 3.0
    n_modes: int | None = None

    def __post_init__(self) -> None:
        asked_epsilon("epsilon", self.epsilon)
        between("delta", self.delta, SMALLEST_DELTA, 1)
        _check_bandwidth(self)
        if self.n_modes is not None:
            object.__setattr__(self, "n_modes", whole("n_modes", self.n_modes, 1, 40))


@dataclass(frozen=True, kw_only=True)
class FunctionalRegressionSpec:
    """Public settings of the functional release for regression.

    ``bandwidth`` is a share of the box's side, the same along x and y; ``None`` means the public rule of the
    functional release on the unit square. ``grid_size`` is the number of places x at which branches are read off.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    bandwidth: float | None = None
    bandwidth_scale: float | None = None
    grid_size: int = 51

    def __post_init__(self) -> None:
        asked_epsilon("epsilon", self.epsilon)
        between("delta", self.delta, SMALLEST_DELTA, 1)
        if self.bandwidth is not None:
            positive("bandwidth", self.bandwidth)
        _optional_positive(self, "bandwidth_scale")
        object.__setattr__(self, "grid_size", whole("grid_size", self.grid_size, 2, 2_001))


@dataclass(frozen=True, kw_only=True)
class MeanShiftSpec:
    """Settings of mean shift from every data point. It has no privacy."""

    bandwidth: float | str | None = None
    bandwidth_scale: float | None = None
    beta: float = 3.0
    n_modes: int | None = None

    def __post_init__(self) -> None:
        _check_bandwidth(self)
        _check_beta(self.beta)
        if self.n_modes is not None:
            object.__setattr__(self, "n_modes", whole("n_modes", self.n_modes, 1))


def _candidate_rows(value: Any) -> tuple[tuple[float, ...], ...]:
    try:
        table = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
        raise SpecError("candidates", "…", "give a table of finite numbers with one candidate point a row")
    return tuple(tuple(row) for row in table.tolist())


def make_spec(kind: type[Spec], options: dict[str, Any]) -> Spec:
    """Build a spec from keyword options; an unknown option is a SpecError that lists the known ones."""
    known = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    for name, value in options.items():
        if name not in known:
            raise SpecError(name, value, "no such option; the options are " + ", ".join(known))
    return kind(**options)
