"""Mechanisms that are broken on purpose: what an audit must catch. For teaching only, never for data.

Both make a mistake that is easy to make in an ascent like this, as large as it can be seen.  Neither is anybody's
published algorithm.  They are kept out of ``METHODS``, so that nobody runs one by mistake.
"""

from __future__ import annotations

import math

import numpy as np

from dpgrams_core.methods.dp_grams.plan import Plan, plan
from dpgrams_core.methods.dp_grams.run import ascend, draw_starts, exact_score
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.methods.registry import Method
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset, Guarantee, Release, refuse_private
from dpgrams_core.numerics.merging import merge
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
STARTS_PER_RECORD = 0.1
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
    anchors = draw_starts(chosen, data.points, data.box, noise)
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
    spec = chosen.spec

    def score(chosen: Plan, batch: Array, at: Array) -> tuple[Array, float]:
        mean, clipped = exact_score(chosen, batch, at)
        return gain * mean, clipped

    path, _ = ascend(chosen, data.points, starts, noise, score)
    statement = f"Broken on purpose. It claims ε = {spec.epsilon:g}, δ = {spec.delta:g}. {why}"
    return Release(
        method=method,
        modes=merge(path[-1], chosen.bandwidth.value, spec.n_modes),
        anchors=starts,
        trajectories=path,
        noise_scale=chosen.sigma,
        spec=chosen.filled_spec(),
        events=(),  # nothing here has a price
        guarantee=Guarantee(epsilon=math.inf, delta=1.0, status="none", statement=statement),
    )


BROKEN_METHODS: dict[str, Method] = {
    function.__name__: Method(
        name=function.__name__,
        kind="modes",
        title=f"Broken on purpose: {title}",
        spec=DPGramsSpec,
        function=function,
        private=False,
        status="none",
    )
    for function, title in ((broken_data_starts, "starts at records"), (broken_sum, "a sum, with the noise of a mean"))
}
