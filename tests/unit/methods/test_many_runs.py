"""Many runs on the same data: sums over the records are computed once, and every result is that of a single run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import Dataset, audit, load_dataset, run
from dpgrams_core.methods.functional import modes
from dpgrams_core.sweeps.cell import run_cell
from dpgrams_core.sweeps.plan import plan_run

CASES = {
    "functional": ("t_mixture", {"n_modes": 3}),
    "functional_regression": ("sinusoid", {}),
    "functional_c": ("blobs", {"n_clusters": 3}),
}


@pytest.fixture
def counted(monkeypatch):
    """How often sums over records are computed, as a list that grows."""
    calls, usual = [], modes.KernelSums.__call__

    def counting(self, points):
        calls.append(self)
        return usual(self, points)

    monkeypatch.setattr(modes.KernelSums, "__call__", counting)
    return calls


@pytest.mark.parametrize("method", CASES)
@pytest.mark.parametrize("scaled", [False, True])
def test_every_run_is_the_single_one_and_sums_are_computed_once(method, scaled, counted):
    name, options = CASES[method]
    data = replace(load_dataset(name, n=400, seed=1), scaled=scaled)
    alone = [run(method, data, seed=seed, epsilon=1.0, **options) for seed in range(3)]
    assert len(counted) == 3
    shared = data.for_many_runs()
    together = [run(method, shared, seed=seed, epsilon=1.0, **options) for seed in range(3)]
    assert len(counted) == 4
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one.surface.coefficients, other.surface.coefficients)
        for field in ("modes", "curve", "significance", "trajectories"):
            assert np.array_equal(getattr(one, field), getattr(other, field)), field
        assert one.guarantee == other.guarantee
    # A budget with another bandwidth has sums of its own; with the same one it shares them.
    run(method, shared, seed=0, epsilon=0.2, bandwidth=alone[0].spec.bandwidth, **options)
    assert len(counted) == 4
    run(method, shared, seed=0, epsilon=0.2, bandwidth=1.5 * alone[0].spec.bandwidth, **options)
    assert len(counted) == 5


def test_other_records_have_other_sums():
    shared = load_dataset("four_corners", n=300, seed=1).for_many_runs()
    moved = replace(shared, points=shared.points + 1.0)
    first, second = (run("functional", data, seed=0, bandwidth=1.0).surface for data in (shared, moved))
    assert not np.array_equal(first.coefficients, second.coefficients)
    alone = Dataset(name="moved", kind="modes", points=moved.points, box=moved.box)
    assert np.array_equal(run("functional", alone, seed=0, bandwidth=1.0).surface.coefficients, second.coefficients)


def test_private_records_are_kept_nowhere(counted):
    data = load_dataset("four_corners", n=300, seed=1)
    private = replace(data, private=True)
    assert private.for_many_runs() is private
    made_private = replace(data.for_many_runs(), private=True)
    for _ in range(2):
        run("functional", made_private, bandwidth=1.0)
    assert len(counted) == 2
    assert made_private._sums == {}


def test_trials_of_an_audit_and_repeated_runs_of_a_cell_share_them(counted):
    audit("functional", trials=40, seed=0, n=100)
    assert len(counted) == 2  # one for each world
    counted.clear()
    cell = replace(plan_run("functional", "four_corners", n=200, epsilon=1.0), derived=True, runs=4, data_seed=3)
    assert len({outcome.scores["mse"] for outcome in run_cell(cell).outcomes.values()}) == 4
    assert len(counted) == 1
