"""Public settings of the two regression baselines, neither of which has any privacy."""

from __future__ import annotations

from dataclasses import dataclass

from dpgrams_core.bandwidths import BANDWIDTH_RULES
from dpgrams_core.checks import finite, positive, whole
from dpgrams_core.errors import SpecError


@dataclass(frozen=True, kw_only=True)
class PMSSpec:
    """Settings of partial mean shift.

    ``bandwidth`` is a number or a rule and serves both axes, as in alg:dp-pms; ``None`` means Silverman's rule of
    thumb, 0.9 s n^(-1/5), with s the mean of the two standard deviations.  ``response_bandwidth`` replaces it in
    y.  ``n_steps`` stops after so many steps; ``None`` goes to the limit.
    """

    bandwidth: float | str | None = None
    bandwidth_scale: float | None = None
    response_bandwidth: float | None = None
    n_steps: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str):
            if self.bandwidth not in BANDWIDTH_RULES:
                allowed = "give a number above 0 or one of " + ", ".join(BANDWIDTH_RULES)
                raise SpecError("bandwidth", self.bandwidth, allowed)
        elif self.bandwidth is not None:
            positive("bandwidth", self.bandwidth)
        for name in ("bandwidth_scale", "response_bandwidth"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if self.n_steps is not None:
            object.__setattr__(self, "n_steps", whole("n_steps", self.n_steps, 1, 1_000))


@dataclass(frozen=True, kw_only=True)
class LowessSpec:
    """Settings of LOWESS: the share of the records in each local line, and how often outliers are weighed down."""

    fraction: float = 1 / 3
    robust_steps: int = 3

    def __post_init__(self) -> None:
        if not 0 < finite("fraction", self.fraction) <= 1:
            raise SpecError("fraction", self.fraction, "it must be above 0 and at most 1")
        object.__setattr__(self, "robust_steps", whole("robust_steps", self.robust_steps, 0, 100))
