"""Prices of runs: they grow with everything that makes more work, and order runs as their work does."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgrams_core import METHODS, load_dataset, run
from dpgrams_core.datasets.registry import DATASETS
from dpgrams_core.studies.comparison import ComparisonSettings
from dpgrams_core.studies.costs import (
    accountants_seconds,
    audit_seconds,
    cell_seconds,
    cells_seconds,
    density_seconds,
    ladder_seconds,
    noise_curves_seconds,
    run_seconds,
)
from dpgrams_core.sweeps.run import plan_cells

dp_grams_module = import_module("dpgrams_core.methods.dp_grams.run")  # the name also stands for its function
tight_module = import_module("dpgrams_core.methods.dp_grams.tight")
BOXES = {
    kind: np.array(DATASETS[name].box)
    for kind, name in (("modes", "four_corners"), ("regression", "sinusoid"), ("clusters", "blobs"))
}
# The settings of each method that make more work, from little to much.
GROWING = [
    ("dp_grams", "batch_size", st.integers(1, 900)),
    ("dp_grams", "n_steps", st.integers(1, 1_000)),
    ("dp_grams", "n_starts", st.integers(1, 1_000)),
    ("dp_grams_c", "n_steps", st.integers(1, 1_000)),
    ("dp_grams_c", "n_clusters", st.integers(1, 100)),
    ("dp_pms", "batch_size", st.integers(1, 900)),
    ("dp_pms", "n_steps", st.integers(1, 1_000)),
    ("dp_pms", "start_multiplier", st.floats(0.5, 100.0)),
    ("functional", "n_modes", st.integers(1, 40)),
    ("functional_c", "n_clusters", st.integers(1, 100)),
    ("functional_regression", "grid_size", st.integers(2, 2_001)),
    ("kmeans", "n_clusters", st.integers(1, 100)),
    ("kmeans", "n_init", st.integers(1, 100)),
    ("dp_kmeans", "n_clusters", st.integers(1, 100)),
    ("mean_shift_c", "n_starts", st.integers(1, 900)),
    ("pms", "n_steps", st.integers(8, 1_000)),
]
SHRINKING = [
    ("functional", "bandwidth_scale"),
    ("functional_c", "bandwidth_scale"),
    ("functional_regression", "bandwidth_scale"),
    ("mean_shift", "bandwidth_scale"),
    ("dp_grams", "init_bandwidth"),
]


@pytest.mark.parametrize("method", METHODS)
@given(pair=st.tuples(st.integers(50, 1_000_000), st.integers(50, 1_000_000)).map(sorted))
def test_the_price_grows_with_n(method, pair):
    low, high = (run_seconds(method, n=n, box=BOXES[METHODS[method].kind]) for n in pair)
    assert 0 < low <= high < math.inf


@pytest.mark.parametrize(("method", "option", "values"), GROWING)
@given(data=st.data())
def test_the_price_grows_with_every_setting_that_makes_work(method, option, values, data):
    pair = sorted([data.draw(values), data.draw(values)])
    calibration = {}
    if method in ("dp_grams", "dp_grams_c", "dp_pms"):
        calibration["calibration"] = data.draw(st.sampled_from(["experiments", "theorem", "tight"]))
    box = BOXES[METHODS[method].kind]
    low, high = (run_seconds(method, n=1_000, box=box, **{option: value}, **calibration) for value in pair)
    assert 0 < low <= high
    assert low < high or pair[0] == pair[1] or option in ("start_multiplier", "n_clusters")  # these are rounded


@pytest.mark.parametrize(("method", "option"), SHRINKING)
@given(pair=st.tuples(st.floats(0.2, 2.0), st.floats(0.2, 2.0)).map(sorted))
def test_the_price_grows_as_a_bandwidth_shrinks(method, option, pair):
    box = BOXES[METHODS[method].kind]
    fine, coarse = (run_seconds(method, n=20_000, box=box, **{option: value}) for value in pair)
    assert fine >= coarse > 0


@given(counts=st.tuples(st.integers(1, 500), st.integers(1, 500)).map(sorted))
def test_the_prices_of_many_runs_grow_with_their_number(counts):
    few, many = counts
    box = BOXES["modes"]
    cells = [plan_cells("dp_grams", "four_corners", n=[300], epsilon=[1.0], runs=runs)[0] for runs in counts]
    assert cells_seconds(cells[:1]) <= cells_seconds(cells[1:])
    assert cells_seconds(cells) == pytest.approx((few + many) * cell_seconds(cells[0]))
    assert ladder_seconds(cells[0]) <= ladder_seconds(cells[1])
    assert audit_seconds("dp_grams", n=200, box=box, trials=few) <= audit_seconds(
        "dp_grams", n=200, box=box, trials=many
    )
    assert accountants_seconds(few) <= accountants_seconds(many)
    assert density_seconds(few, 70) <= density_seconds(many, 70)
    assert noise_curves_seconds(ComparisonSettings()) < noise_curves_seconds(ComparisonSettings(batch_size=few))


def test_settings_that_a_method_refuses_cost_nothing():
    box = BOXES["modes"]
    for wrong in ({"n_steps": 0}, {"n_steps": 10**9}, {"bandwidth": "nonsense"}, {"no_such_option": 3}):
        assert run_seconds("dp_grams", n=1_000_000, box=box, **wrong) == 0.0
    # A refusal that needs the data comes before any draw, and is priced at what is allowed.
    assert run_seconds("dp_grams", n=100, box=box, batch_size=10**6) == run_seconds(
        "dp_grams", n=100, box=box, batch_size=100
    )


CASES = (
    {"n_steps": 3},
    {"n_steps": 24},
    {"n_steps": 24, "n_starts": 60},
    {"n_steps": 24, "n_starts": 60, "batch_size": 1_500},
    {"n_steps": 120, "n_starts": 60, "batch_size": 1_500},
)
# All rounds of tight are read together, and their noise is drawn at once: that takes longest, so there are fewer.
TIGHT_CASES = (
    {"n_steps": 3, "n_starts": 5},
    {"n_steps": 24, "n_starts": 5},
    {"n_steps": 24, "n_starts": 20},
    {"n_steps": 24, "n_starts": 36},
)


@pytest.mark.parametrize("calibration", ["experiments", pytest.param("tight", marks=pytest.mark.slow)])
def test_prices_order_runs_as_the_kernel_values_that_they_take(monkeypatch, calibration):
    """Counted, not timed: how often a record is weighed at a place."""
    counted = [0]

    def counting(function, records, places):
        def count(*args):
            counted[0] += len(args[records]) * len(args[places])
            return function(*args)

        return count

    monkeypatch.setattr(dp_grams_module, "clipped_score", counting(dp_grams_module.clipped_score, 1, 2))
    monkeypatch.setattr(tight_module, "block_sums", counting(tight_module.block_sums, 0, 1))
    data = load_dataset("four_corners", n=1_500, seed=0)
    work, prices = [], []
    for options in CASES if calibration == "experiments" else TIGHT_CASES:
        counted[0] = 0
        run("dp_grams", data, seed=0, calibration=calibration, **options)
        work.append(counted[0])
        prices.append(run_seconds("dp_grams", n=1_500, box=data.box, calibration=calibration, **options))
    assert sorted(work) == work
    assert sorted(prices) == prices
    assert work[-1] > 50 * work[0]
    assert prices[-1] > 10 * prices[0]
