"""The ladder of error of DP-PMS: from partial mean shift from every record to the noisy ascent. Simulation.

Every step gives rows (x, y): its end points as they are, until the method itself merges them to a curve.
"""

from __future__ import annotations

import numpy as np

from dpgrams_core.methods.baselines.regression import LEAST_OF_RANGE, MAX_RECORDS, PMSSpec, pms
from dpgrams_core.methods.dp_pms.plan import Plan, plan
from dpgrams_core.methods.dp_pms.run import (
    ascend,
    cleaned,
    climb_rounds,
    clipped_shift,
    refuse_a_grid_beside_the_data,
    starts_of,
)
from dpgrams_core.methods.dp_pms.spec import DPPMSSpec
from dpgrams_core.methods.functional.regression import from_unit, on_unit_square, to_unit
from dpgrams_core.methods.ladder import NO_CLIP, Ladder, On, Rung, ascent_rungs, climbed, switched
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset, refuse_private
from dpgrams_core.privacy.noise import SimulationNoise

Array = np.ndarray


def check_baseline(data: Dataset, h: float) -> None:
    """Refuse what partial mean shift, the first step, cannot be run on, before anything runs."""
    refuse_private(data)
    if data.truth is None:
        raise SpecError("dataset", data.name, "its true branches are not known, so there is no error to part")
    if data.n > MAX_RECORDS:
        raise SpecError("n", data.n, f"partial mean shift, the first step, takes at most {MAX_RECORDS} records")
    least = LEAST_OF_RANGE * float(np.ptp(to_unit(data.points, data.box)[:, 1]))
    if h < least:
        raise SpecError(
            "bandwidth", h, f"partial mean shift, the first step, needs at least {least:.2g} of the side of the box"
        )


def all_records(data: Dataset, h: float | None = None) -> Array:
    """Partial mean shift from every record with a bandwidth of ``h`` sides of the box, by default its own."""
    refuse_private(data)
    wanted, spec = (data, PMSSpec()) if h is None else (on_unit_square(data), PMSSpec(bandwidth=h))
    found = pms(wanted, spec, SimulationNoise(0)).curve  # it draws nothing
    assert found is not None
    return found if h is None else from_unit(found, data.box)


def _prepare(data: Dataset, spec: DPPMSSpec) -> Plan:
    chosen = plan(spec, data)
    refuse_a_grid_beside_the_data(chosen, data)
    check_baseline(data, chosen.h)
    return chosen


def _rows(chosen: Plan, data: Dataset, seed: int, on: On) -> Array:
    """End points of alg:dp-pms with the ingredients that are on."""
    if "few_starts" not in on:
        return all_records(data, chosen.h)
    chosen, door = switched(chosen, data, seed, on)
    starts = starts_of(chosen, door).points
    if "few_steps" in on and chosen.process_noise is not None:
        path, _, pooled = climb_rounds(chosen, starts, door)
        ends = path[-1]
        if "cleanup" in on:  # what stands above the noise; the curve is then read off the rounds
            heights = pooled.at(ends)[0] / pooled.unit
            least = chosen.filled_spec().significance
            assert least is not None
            ends = ends[heights >= min(least, float(heights.max()))]
        return from_unit(ends, data.box)
    if "few_steps" in on:
        ends = ascend(chosen, starts, door)[0][-1]
    else:

        def shift(at: Array) -> Array:
            return np.stack([np.zeros(len(at)), clipped_shift(chosen.points, at, chosen.h, NO_CLIP)[0]], axis=1)

        ends = climbed(starts, shift, chosen.h)
    return from_unit(cleaned(chosen, ends) if "cleanup" in on else ends, data.box)


DP_PMS_LADDER = Ladder(
    ascent_rungs(
        "partial mean shift from every record at the same bandwidth",
        Rung("cleanup", "Cleanup", "the cleanup of end points (weak ones in tight, lonely ones with bins)"),
        Rung(
            "merge", "Merge", "merging the end points near each place into the curve instead of taking each where it is"
        ),
    ),
    _prepare,
    _rows,
)
