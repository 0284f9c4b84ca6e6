"""Public settings of DP-GRAMS (alg:dpgrams) and DP-GRAMS-C (alg:dpgrams-c)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpgrams_core.model import settings
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.specs import Spec, setting
from dpgrams_core.numerics.kernels import KERNELS

CLIP_MULTIPLIER = 1.0  # where nobody gives another one
CLIPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def candidate_rows(name: str, value: Any) -> tuple[tuple[float, ...], ...]:
    """Candidate points as rows of finite numbers."""
    try:
        table = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
        raise SpecError(name, "…", "give a table of finite numbers with one candidate point a row")
    return tuple(tuple(row) for row in table.tolist())


@dataclass(frozen=True, kw_only=True)
class DPGramsSpec(Spec):
    """Public settings of DP-GRAMS. ``None`` means the default for the data's n, d and box."""

    epsilon: float = settings.epsilon()
    delta: float = settings.delta(1e-6)
    calibration: str = settings.calibration()
    kernel: str = setting(
        "gaussian",
        label="Kernel",
        words="The shape that each record is smeared into (K).",
        symbol="K",
        choices=KERNELS,
        titles={name: kernel.title for name, kernel in KERNELS.items()},
    )
    bandwidth: float | str | None = settings.bandwidth()
    bandwidth_scale: float | None = settings.bandwidth_scale("the rule's bandwidth; a public number")
    bandwidth_from: str | None = settings.bandwidth_from()
    beta: float = settings.beta()
    clip_multiplier: float | None = setting(
        None,
        label="Clip multiplier",
        words="How far one record may pull (C* = multiplier · h^-(d+1)). In tight: the longest step, in bandwidths; "
        "below 1 the climbs fall short of the modes, above 1 their ways alone change.",
        symbol="C* h^(d+1)",
        steps=CLIPS,
        empty=f"{CLIP_MULTIPLIER:g}",
    )
    batch_size: int | None = settings.batch_size()
    n_steps: int | None = settings.n_steps()
    step_size: float | None = setting(
        None, label="Step size, η", words="Length of a step (η); empty: h², as mean shift.", symbol="η", step=0.05
    )
    n_starts: int | None = settings.count(
        "Starts, k", "Anchors drawn (k); more starts share the same ε_init.", settings.MAX_STARTS, symbol="k"
    )
    init_fraction: float | None = settings.init_fraction()
    init_bandwidth: float | None = setting(
        None, label="Grid spacing, h_DAP", words="Public grid of candidates (h_DAP).", symbol="h_DAP", step=0.1
    )
    suppression_radius: float | None = setting(
        None, label="Suppression radius, ρ", words="Anchors keep this apart (ρ_init).", symbol="ρ_init", step=0.1
    )
    gradient_clip: float | None = settings.gradient_clip()
    density_floor: float | None = settings.density_floor()
    n_modes: int | None = settings.n_modes(1_000)
    candidates: tuple[tuple[float, ...], ...] | None = setting(
        None,
        label="Candidates, Z",
        words="Public points that starts are drawn from (Z).",
        symbol="Z",
        check=candidate_rows,
    )


@dataclass(frozen=True, kw_only=True)
class DPGramsCSpec(DPGramsSpec):
    """Public settings of DP-GRAMS-C: those of DP-GRAMS, and the number of clusters.

    ``n_clusters``: ``None`` means unknown, and end points within a bandwidth are one cluster.
    """

    n_clusters: int | None = settings.n_clusters()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_modes is not None:
            raise SpecError("n_modes", self.n_modes, "for clusters the count is n_clusters")
