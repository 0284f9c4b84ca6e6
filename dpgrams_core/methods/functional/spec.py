"""Public settings of the functional release of modes, of a regression and of clusters."""

from __future__ import annotations

from dataclasses import dataclass

from dpgrams_core.model import settings
from dpgrams_core.model.specs import Spec, setting

OWN_RULE = "Auto: the release's public rule (h)."
RELEASE_RULE = "the release's public bandwidth rule (h)"
MOST_COMPONENTS = 8


@dataclass(frozen=True, kw_only=True)
class FunctionalSpec(Spec):
    """Public settings of the functional release. ``None`` for the bandwidth means its own public rule."""

    epsilon: float = settings.epsilon()
    delta: float = settings.delta(1e-6)
    bandwidth: float | str | None = settings.bandwidth(OWN_RULE)
    bandwidth_scale: float | None = settings.bandwidth_scale(RELEASE_RULE)
    bandwidth_from: str | None = settings.bandwidth_from()
    beta: float = settings.beta()
    n_modes: int | None = settings.n_modes(40)


@dataclass(frozen=True, kw_only=True)
class FunctionalRegressionSpec(Spec):
    """Public settings of the functional release for regression.

    ``bandwidth`` is a share of the box's side, the same along x and y; ``None`` means the public rule of the
    functional release on the unit square. ``grid_size`` is the number of places x at which branches are read off.
    """

    epsilon: float = settings.epsilon()
    delta: float = settings.delta(1e-5)
    bandwidth: float | None = settings.bandwidth(OWN_RULE, rules=False)
    bandwidth_scale: float | None = settings.bandwidth_scale("the method's public bandwidth rule (h)")
    grid_size: int = settings.count("Places x", "Places x at which branches are read off.", 2_001, low=2, default=51)


@dataclass(frozen=True, kw_only=True)
class FunctionalCSpec(Spec):
    """Public settings of clustering by the functional release.

    ``n_clusters``: ``None`` means unknown, and the release itself says how many part its records best.
    """

    epsilon: float = settings.epsilon()
    delta: float = settings.delta(1e-5)
    bandwidth: float | str | None = settings.bandwidth(OWN_RULE)
    bandwidth_scale: float | None = settings.bandwidth_scale(RELEASE_RULE)
    bandwidth_from: str | None = settings.bandwidth_from()
    n_clusters: int | None = settings.n_clusters()
    components: int | None = settings.count(
        "Paid components",
        "Principal components of the columns, bought with a share of ε; without them the columns as they are.",
        MOST_COMPONENTS,
        steps=tuple(range(1, MOST_COMPONENTS + 1)),
        empty="none",
        only_if=lambda spec: spec.bandwidth is None and spec.bandwidth_scale is None,
        place="the method's own bandwidth rule",
    )
    component_share: float | None = setting(
        None,
        label="Share of the budget for the components, %",
        words="What the components cost, as a share of 1/z² (z: noise over sensitivity); the centres get the rest.",
        low=0.01,
        high=0.99,
        steps=settings.SHARES,
        percent=True,
        empty="auto",
        only_if=lambda spec: spec.components is not None,
        place="paid components",
    )
