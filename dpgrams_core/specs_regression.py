"""Public settings of DP-PMS, checked at construction.

Every length is a *share of the box's side*: the method works on the unit square, predictor and response each
divided by its side of the public box, since alg:dp-pms has one h for both and these have different units.

The paper's letters (alg:dp-pms) and our words:

    ε, δ        epsilon, delta          p_0         init_fraction
    h           bandwidth               h_score     init_bandwidth
    c_clip      clip_multiplier         κ_init      start_multiplier
    m           batch_size              Y_pub       n_candidates or response_grid
    T           n_steps                 X, G        evaluation_points or grid_size
    η           step_size
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpgrams_core.checks import asked_epsilon, between, finite, one_of, positive, whole
from dpgrams_core.errors import SpecError
from dpgrams_core.specs import CALIBRATIONS, MAX_STARTS, SMALLEST_DELTA, _check_bandwidth, _optional_positive

STARTS = ("sparse", "binned")
MAX_GRID = 2_001
_COUNTS = (
    ("batch_size", 1, None),
    ("n_steps", 1, 1_000),
    ("n_bins", 1, MAX_STARTS),
    ("n_candidates", 2, MAX_GRID),
    ("grid_size", 2, MAX_GRID),
)


@dataclass(frozen=True, kw_only=True)
class DPPMSSpec:
    """Public settings of DP-PMS (alg:dp-pms). ``None`` means the default for n, the box and the predictors.

    ``starts`` is "sparse" (alg:dp-pms: quantiles of the predictors, start_multiplier times log n of them) or
    "binned" (app:dp-pms-more: one start in each of n_bins bins, and a cleanup of fixed radius afterwards).
    ``reach`` says how near an anchor's predictor has to be for its end point to count at an evaluation point,
    ``merge_radius`` how close two responses there are one branch, and ``cleanup_radius`` (binned only) how
    close another end point has to be for one to be kept.  ``significance`` (tight only) is how many standard
    deviations of the noise the released kernel sum has to reach.  ``step_size`` 1 is that of mean shift.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    calibration: str = "experiments"
    bandwidth: float | str | None = None
    bandwidth_scale: float | None = None
    clip_multiplier: float | None = None
    batch_size: int | None = None
    n_steps: int | None = None
    step_size: float = 1.0
    init_fraction: float = 0.2
    starts: str = "sparse"
    init_bandwidth: float | None = None
    start_multiplier: float | None = None
    n_bins: int | None = None
    n_candidates: int | None = None
    response_grid: tuple[float, ...] | None = None
    gradient_clip: float | None = None
    density_floor: float | None = None
    significance: float | None = None
    grid_size: int | None = None
    evaluation_points: tuple[float, ...] | None = None
    reach: float | None = None
    merge_radius: float | None = None
    cleanup_radius: float | None = None

    def __post_init__(self) -> None:
        asked_epsilon("epsilon", self.epsilon)
        if between("delta", self.delta, 0, 1) < SMALLEST_DELTA:
            raise SpecError("delta", self.delta, f"it must be at least {SMALLEST_DELTA:g} and below 1")
        one_of("calibration", self.calibration, CALIBRATIONS)
        one_of("starts", self.starts, STARTS)
        _check_bandwidth(self)
        positive("step_size", self.step_size)
        between("init_fraction", self.init_fraction, 0, 1)
        _optional_positive(
            self, "clip_multiplier", "init_bandwidth", "start_multiplier", "gradient_clip", "density_floor"
        )
        _optional_positive(self, "significance", "reach", "merge_radius", "cleanup_radius")
        for name, low, high in _COUNTS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(name, getattr(self, name), low, high))
        for name in ("response_grid", "evaluation_points"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, ascending(name, getattr(self, name)))
        self._refuse_what_does_not_apply()

    def _refuse_what_does_not_apply(self) -> None:
        """A setting that nothing would read is refused: it would only seem to have an effect."""
        unread = [("start_multiplier", self.starts == "binned", "starts = 'sparse'")]
        unread += [(name, self.starts == "sparse", "starts = 'binned'") for name in ("n_bins", "cleanup_radius")]
        unread += [
            (name, self.calibration == "experiments", "the theorem and tight calibrations")
            for name in ("gradient_clip", "density_floor")
        ]
        unread += [
            ("significance", self.calibration != "tight", "the tight calibration"),
            ("n_candidates", self.response_grid is not None, "a grid made here, and response_grid is given"),
            ("grid_size", self.evaluation_points is not None, "a grid made here, and evaluation_points is given"),
        ]
        for name, wrong, place in unread:
            if wrong and getattr(self, name) is not None:
                raise SpecError(name, getattr(self, name), f"it belongs to {place}; leave it out here")


def ascending(field: str, value: Any) -> tuple[float, ...]:
    """A list of finite numbers, each above the one before.

    >>> ascending("evaluation_points", [0, 0.5, 1])
    (0.0, 0.5, 1.0)
    """
    allowed = f"give a list of 1 to {MAX_GRID} numbers in ascending order, none twice"
    try:
        numbers = tuple(finite(field, item) for item in (value.tolist() if isinstance(value, np.ndarray) else value))
    except (TypeError, SpecError):
        raise SpecError(field, value, allowed) from None
    if not 1 <= len(numbers) <= MAX_GRID or any(b <= a for a, b in itertools.pairwise(numbers)):
        raise SpecError(field, value, allowed)
    return numbers
