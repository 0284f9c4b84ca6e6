"""Public settings of DP-PMS, checked at construction.

Every length is a *share of the box's side*: the method works on the unit square, predictor and response each
divided by its side of the public box, since alg:dp-pms has one h for both and these have different units.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpgrams_core.model import settings
from dpgrams_core.model.checks import finite
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.specs import Spec, setting

STARTS = {"sparse": "sparse: evenly spread ranks of x", "binned": "binned: one in each bin of x"}
MAX_GRID = 2_001
INIT_FRACTION = 0.2  # where nobody gives another one
CLIPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
SPARSE: dict[str, Any] = {"only_if": lambda spec: spec.starts == "sparse", "place": "starts = 'sparse'"}
BINNED: dict[str, Any] = {"only_if": lambda spec: spec.starts == "binned", "place": "starts = 'binned'"}


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


def _grid_size(label: str, words: str, symbol: str, grid: str) -> Any:
    """The size of a public grid, which is made here unless the setting ``grid`` gives it."""
    return settings.count(
        label,
        words,
        MAX_GRID,
        low=2,
        symbol=symbol,
        only_if=lambda spec: getattr(spec, grid) is None,
        place=f"a grid made here, and {grid} is given",
    )


@dataclass(frozen=True, kw_only=True)
class DPPMSSpec(Spec):
    """Public settings of DP-PMS (alg:dp-pms). ``None`` means the default for n, the box and the predictors.

    ``starts`` is "sparse" (alg:dp-pms: quantiles of the predictors, start_multiplier times log n of them) or
    "binned" (app:dp-pms-more: one start in each of n_bins bins, and a cleanup of fixed radius afterwards).
    ``reach`` says how near an anchor's predictor has to be for its end point to count at an evaluation point,
    ``merge_radius`` how close two responses there are one branch, and ``cleanup_radius`` (binned only) how
    close another end point has to be for one to be kept.  ``significance`` (tight only) is how many standard
    deviations of the noise the released kernel sum has to reach.  ``step_size`` 1 is that of mean shift.
    """

    epsilon: float = settings.epsilon()
    delta: float = settings.delta(1e-5)
    calibration: str = settings.calibration()
    bandwidth: float | str | None = settings.bandwidth()
    bandwidth_scale: float | None = settings.bandwidth_scale("the method's public bandwidth rule (h)")
    bandwidth_from: str | None = settings.bandwidth_from()
    clip_multiplier: float | None = setting(
        None,
        label="Clip multiplier",
        words="How far one record may pull (C = multiplier / h). In tight: the longest step, in bandwidths; below 1 "
        "the climbs fall short of the branches.",
        symbol="c_clip",
        steps=CLIPS,
        empty="auto",
    )
    batch_size: int | None = settings.batch_size()
    n_steps: int | None = settings.n_steps()
    step_size: float = setting(
        1.0, label="Step size, η", words="Part of a mean-shift step (η); empty: all of it.", symbol="η", step=0.1
    )
    init_fraction: float | None = settings.init_fraction()
    starts: str = setting("sparse", label="Starts", words="Where the ascent begins.", choices=STARTS, titles=STARTS)
    init_bandwidth: float | None = setting(
        None, label="Window of a start, h_score", words="Share of the box (h_score).", symbol="h_score", step=0.01
    )
    start_multiplier: float | None = setting(
        None, label="Starts, κ", words="κ · log n starts, spread over x (κ_init).", symbol="κ_init", step=0.5, **SPARSE
    )
    n_bins: int | None = settings.count(
        "Bins of x", "One start in the middle of each bin.", settings.MAX_STARTS, **BINNED
    )
    n_candidates: int | None = _grid_size(
        "Candidates in y", "Size of the public grid of responses (Y_pub).", "Y_pub", "response_grid"
    )
    response_grid: tuple[float, ...] | None = setting(
        None, label="Grid of y", words="The public grid of responses itself (Y_pub).", symbol="Y_pub", check=ascending
    )
    gradient_clip: float | None = settings.gradient_clip()
    density_floor: float | None = settings.density_floor()
    significance: float | None = setting(
        None,
        label="Significance",
        words="Standard deviations of the noise that the released kernel sum has to reach.",
        only_if=lambda spec: spec.calibration == "tight",
        place="the tight calibration",
    )
    grid_size: int | None = _grid_size("Places x", "How many places x the curve has (X, G).", "G", "evaluation_points")
    evaluation_points: tuple[float, ...] | None = setting(
        None, label="Places of x", words="The places x of the curve themselves (X, G).", symbol="X", check=ascending
    )
    reach: float | None = setting(
        None, label="Reach", words="How near an anchor's x has to be for its end point to count; share of the box."
    )
    merge_radius: float | None = setting(
        None, label="Merge radius", words="Ends this close in y are one; share of the box.", step=0.01
    )
    cleanup_radius: float | None = setting(
        None, label="Cleanup radius", words="How close another end point has to be for one to be kept.", **BINNED
    )
