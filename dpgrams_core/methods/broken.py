"""Mechanisms that are broken on purpose: what an audit must catch. For teaching only, never for data.

Both are simplified from the authors' research code, which differs from the printed algorithm in
these two places among others.  They are kept out of ``METHODS``, so that nobody runs one by mistake.
"""

from __future__ import annotations

import math

import numpy as np

from dpgrams_core.density import clipped_score
from dpgrams_core.errors import SpecError
from dpgrams_core.merging import merge
from dpgrams_core.methods import Method
from dpgrams_core.methods.dap import candidate_set, draw_anchors, public_grid
from dpgrams_core.methods.dp_grams import Plan, ascend, plan
from dpgrams_core.privacy.noise import Noise
from dpgrams_core.results import Dataset, Guarantee, Release, refuse_private
from dpgrams_core.specs import DPGramsSpec

Array = np.ndarray
STARTS_PER_RECORD = 0.1  # as in the research code
JITTER = 0.1  # of the bandwidth


def broken_data_starts(data: Dataset, spec: DPGramsSpec, noise: Noise) -> Release:
    """DP-GRAMS that starts at records plus a little jitter, where the algorithm has DAP.

    A start tells where a record is: a record in an empty place is seen whenever it is drawn.
    """
    refuse_private(data)
    chosen = _experiments_plan(data, spec)
    count = math.ceil(STARTS_PER_RECORD * data.n) if spec.n_starts is None else min(spec.n_starts, data.n)
    rows = data.points[noise.batch(data.n, count)]
    jitter = noise.correlated_gaussian(np.eye(count), JITTER * chosen.bandwidth.value, data.dimension)
    claim = (
        "False: it starts at records of the data plus a little jitter and pays nothing for them. "
        "A record in an otherwise empty place can be read off the starts."
    )
    return _climb(data, chosen, rows + jitter, noise, gain=1.0, method="broken_data_starts", why=claim)


def broken_sum(data: Dataset, spec: DPGramsSpec, noise: Noise) -> Release:
    """DP-GRAMS that adds the clipped contributions up, with the noise of their mean.

    The noise is calibrated to 2 C / m, but one record moves a sum of m contributions m times as far
    as it moves their mean.
    """
    refuse_private(data)
    chosen = _experiments_plan(data, spec)
    if spec.candidates is None:
        candidates = public_grid(data.box, chosen.init_bandwidth)
    else:
        candidates = candidate_set(spec.candidates, data.box)
    anchors = draw_anchors(
        data.points,
        candidates,
        epsilon=chosen.epsilon_init,
        draws=chosen.n_starts,
        radius=chosen.init_bandwidth,
        suppression=chosen.suppression_radius,
        noise=noise,
    )
    claim = (
        "False: it sums the clipped contributions of the minibatch, and its noise is set for their mean, "
        "which is smaller by the size of the minibatch."
    )
    gain = float(chosen.batch_size)
    return _climb(data, chosen, anchors.points, noise, gain=gain, method="broken_sum", why=claim)


def _experiments_plan(data: Dataset, spec: DPGramsSpec) -> Plan:
    if spec.calibration != "experiments":
        raise SpecError("calibration", spec.calibration, "the broken mechanisms have the noise of experiments only")
    return plan(spec, data)


def _climb(data: Dataset, chosen: Plan, starts: Array, noise: Noise, *, gain: float, method: str, why: str) -> Release:
    """The ascent of DP-GRAMS with its score multiplied by ``gain``; the noise stays as it was."""
    h, spec = chosen.bandwidth.value, chosen.spec
    clip = spec.clip_multiplier * h ** -(data.dimension + 1)

    def score(batch: Array, at: Array) -> tuple[Array, float]:
        mean, clipped = clipped_score(chosen.kernel, batch, at, h, clip)
        return gain * mean, clipped

    path, _ = ascend(
        data.points,
        starts,
        score,
        sigma=chosen.sigma,
        h=h,
        batch_size=chosen.batch_size,
        n_steps=chosen.n_steps,
        step_size=chosen.step_size,
        noise=noise,
    )
    statement = f"Broken on purpose. It claims ε = {spec.epsilon:g}, δ = {spec.delta:g}. {why}"
    return Release(
        method=method,
        modes=merge(path[-1], h, spec.n_modes),
        anchors=starts,
        trajectories=path,
        noise_scale=chosen.sigma,
        spec=chosen.filled_spec(),
        events=(),  # nothing here has a price
        guarantee=Guarantee(epsilon=math.inf, delta=1.0, status="none", statement=statement),
    )


BROKEN_METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "broken_data_starts",
            "modes",
            "Broken on purpose: starts at records",
            False,
            DPGramsSpec,
            broken_data_starts,
        ),
        Method(
            "broken_sum", "modes", "Broken on purpose: a sum with the noise of a mean", False, DPGramsSpec, broken_sum
        ),
    )
}
