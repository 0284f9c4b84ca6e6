"""The ladder of error of DP-GRAMS and DP-GRAMS-C: from mean shift from every record to the noisy ascent. Simulation."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpgrams_core.methods.baselines.mean_shift import fast_mean_shift
from dpgrams_core.methods.dp_grams.clusters import modes_spec
from dpgrams_core.methods.dp_grams.plan import Plan, plan
from dpgrams_core.methods.dp_grams.run import ascend, draw_starts
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.methods.dp_grams.tight import Reading, climb_rounds, read_centres, read_modes
from dpgrams_core.methods.ladder import NO_FLOOR, Ladder, On, Rung, ascent_rungs, climbed, switched, true_count
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset
from dpgrams_core.numerics.density import density_and_gradient
from dpgrams_core.numerics.merging import group_means, merge, weighted_ward_groups

Array = np.ndarray
MOST_RECORD_STARTS = 150  # where no grid makes mean shift from every record quick
RUNGS = ascent_rungs(
    "mean shift from every record at the same bandwidth",
    Rung("merge", "Merge", "the merge as set instead of one that knows the true number"),
)


def _prepare(data: Dataset, spec: DPGramsSpec) -> Plan:
    if spec.kernel != "gaussian":
        raise SpecError(
            "kernel",
            spec.kernel,
            "where the estimate of such a kernel is zero or negative only the clip bounds a step, so there is no run "
            "without it to compare with; choose gaussian",
        )
    return plan(spec, data)


def _modes(chosen: Plan, data: Dataset, seed: int, on: On, reading: Reading = read_modes) -> Array:
    """The modes of alg:dpgrams with the ingredients that are on, merged to the true count."""
    h, count = chosen.bandwidth.value, true_count(data)
    if "few_starts" not in on:
        return _mean_shift_modes(data, h, count)
    chosen, door = switched(chosen, data, seed, on)
    anchors = draw_starts(chosen, data.points, data.box, door).points
    if "few_steps" in on and chosen.process_noise is not None:
        climbed_to = climb_rounds(chosen, data.points, data.box, anchors, door)
        return reading(climbed_to.path[-1], climbed_to.pooled, count)[0]
    if "few_steps" in on:
        ends = ascend(chosen, data.points, anchors, door)[0][-1]
    else:

        def shift(at: Array) -> Array:
            density, gradient = density_and_gradient(chosen.kernel, data.points, at, h)
            return np.asarray(h**2 * gradient / np.maximum(density, NO_FLOOR)[:, None])

        ends = climbed(anchors, shift, h)
    return merge(ends, h, count)


def _mean_shift_modes(data: Dataset, h: float, count: int) -> Array:
    """Mean shift from every record, merged by Ward with each end weighing what reaches it."""
    stride = 1 if data.dimension == 2 else -(-data.n // MOST_RECORD_STARTS)
    ends, labels = fast_mean_shift(data.points, h, data.points[::stride])
    reached = np.bincount(labels, minlength=len(ends))
    return group_means(ends, weighted_ward_groups(ends, reached, count), reached)


DP_GRAMS_LADDER = Ladder(RUNGS, _prepare, _modes)
DP_GRAMS_C_LADDER = Ladder(
    RUNGS, lambda data, spec: _prepare(data, modes_spec(data, spec)), partial(_modes, reading=read_centres)
)
