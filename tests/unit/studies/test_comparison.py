"""Rows of the comparison against real runs, predictions against measurement, and the n each method needs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import SpecError, load_dataset, run
from dpgrams_core.methods.ascent import ascent_epsilon
from dpgrams_core.methods.dp_grams.plan import TIGHT
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.numerics.bandwidths import predicted_release_error
from dpgrams_core.privacy.accountants import rounds_epsilon
from dpgrams_core.privacy.calibration import exact_epsilon, round_epsilon
from dpgrams_core.studies.comparison import (
    CURVE_SIZES,
    USEFUL_RATIO,
    Candidate,
    ComparisonSettings,
    NoiseCurve,
    Prediction,
    blind_error,
    candidates,
    compare,
    comparison_cell,
    curves_from,
    noise_ratios,
    pooled,
    round_epsilon_alone,
    tight_rounds,
)
from dpgrams_core.sweeps.run import run_cell

SMALL = ComparisonSettings(n=1_000)


@pytest.fixture(scope="module")
def data():
    return load_dataset("four_corners", n=1_000, seed=0)


def by_key(rows):
    return {row.candidate.key: row for row in rows}


@pytest.mark.parametrize("settings", [SMALL, replace(SMALL, batch_size=200, n_steps=5, epsilon=3.0)])
def test_every_row_says_what_a_run_says(settings, data):
    for row in compare(settings, data):
        release = run(row.candidate.method, data, seed=1, **dict(row.candidate.options))
        assert row.guarantee == release.guarantee
        assert row.bandwidth == release.spec.bandwidth
        assert row.events == release.events
        assert row.noise == release.noise_scale
        if row.candidate.method == "dp_grams":
            assert row.signal == release.diagnostics.score_size
        if row.candidate.method == "functional":  # the run reads it off the noisy surface, at other records
            assert row.signal == pytest.approx(release.diagnostics.score_size, rel=0.35)


def test_statuses_are_those_of_the_calibrations(data):
    rows = by_key(compare(SMALL, data))
    statuses = {key: row.guarantee.status for key, row in rows.items()}
    assert statuses == {
        "experiments": "nominal",
        "theorem": "as published",
        "tight": "proven",
        "functional": "proven",
        "mean_shift": "none",
    }
    assert sum(value for _, value in rows["tight"].stages) == pytest.approx(1.0, rel=1e-6)
    assert rows["mean_shift"].ratio is None


def test_tight_stands_twice_only_when_the_batch_is_smaller():
    assert "tight_full" not in {item.key for item in candidates(SMALL)}
    assert "tight_full" not in {item.key for item in candidates(replace(SMALL, batch_size=1_000))}
    full = next(item for item in candidates(replace(SMALL, batch_size=10)) if item.key == "tight_full")
    assert dict(full.options)["batch_size"] == 1_000


def test_what_a_run_refuses_is_refused(data, refused):
    refused(lambda: compare(replace(SMALL, batch_size=2_000), data), "batch_size", 2_000, "n = 1000")
    refused(lambda: compare(replace(SMALL, n_steps=0), data), "n_steps", 0)
    with pytest.raises(SpecError, match="the released grid would have"):
        compare(replace(SMALL, bandwidth_scale=1e-3), data)


# Settings with moderate noise: n, epsilon, clip multiplier, candidate.
MODERATE = [
    (5_000, 1.0, 1.0, "experiments"),
    (5_000, 5.0, 1.0, "experiments"),
    (20_000, 5.0, 1.0, "theorem"),
    (5_000, 1.0, 5.0, "tight"),
    (5_000, 1.0, 1.0, "tight"),
    (2_000, 1.0, 1.0, "functional"),
    (2_000, 1.0, 1.0, "mean_shift"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon", "clip", "key"), MODERATE)
def test_predictions_are_right_within_a_factor_of_three(n, epsilon, clip, key, seed):
    # The prediction is for a start that belongs to a bump, so public candidates stand near the true modes.
    settings = ComparisonSettings(n=n, epsilon=epsilon, clip_multiplier=clip)
    row = by_key(compare(settings, load_dataset("four_corners", n=n, seed=seed)))[key]
    cell = comparison_cell(row.candidate, settings, 10, seed)
    if key == "tight":  # as many starts as its rule has: some are near every mode
        cell = replace(cell, options=tuple(sorted({**dict(cell.options), "n_modes": 4}.items())))
    elif row.candidate.method == "dp_grams":
        near = tuple((3.0 * i + 0.6, 3.0 * j - 0.6) for i in (-1, 1) for j in (-1, 1))
        more = {"candidates": near, "n_starts": 4, "suppression_radius": 0.1}
        cell = replace(cell, options=tuple(sorted({**dict(cell.options), **more}.items())))
    result = run_cell(cell).row()
    assert result["failures"] == 0
    assert 1 / 3 < row.prediction.total / result["mse_per_true_mode"] < 3


def test_a_prediction_is_never_worse_than_a_guess(data):
    rows = by_key(compare(replace(SMALL, epsilon=0.05), data))
    assert rows["theorem"].prediction.lost
    assert rows["theorem"].prediction.total == blind_error(data.box)
    rng = np.random.default_rng(0)
    low, high = data.box[:, 0], data.box[:, 1]
    pairs = rng.uniform(low, high, (2, 200_000, 2))
    assert blind_error(data.box) == pytest.approx(((pairs[0] - pairs[1]) ** 2).sum(axis=1).mean(), rel=0.01)
    assert not Prediction(0.1, 0.1, 0.1, 1.0).lost


def test_the_functional_prediction_is_the_one_its_rule_minimises(data):
    row = by_key(compare(SMALL, data))["functional"]
    parts = predicted_release_error(row.bandwidth, n=1_000, d=2, box=data.box, sigma=row.noise)
    assert (row.prediction.privacy, row.prediction.sampling, row.prediction.bias) == parts


@pytest.mark.parametrize("batch", [None, 300])
def test_tight_rounds_are_those_of_the_plan(batch, data):
    settings = replace(SMALL, batch_size=batch)
    spec = DPGramsSpec(epsilon=settings.epsilon, delta=settings.delta, calibration="tight")
    alone = ascent_epsilon(spec, TIGHT.init_fraction)
    event = tight_rounds(settings, alone)
    assert rounds_epsilon(event, settings.delta) == pytest.approx(alone, rel=1e-6)
    planned = by_key(compare(settings, data))["tight"].events[1]
    assert (event.rounds, event.n, event.batch_size) == (planned.rounds, planned.n, planned.batch_size)
    # With minibatches the start is added to another bound than that of one Gaussian release.
    assert event.multiplier == pytest.approx(planned.multiplier, rel=1e-6 if batch is None else 0.03)


def test_one_round_alone(data):
    rows = by_key(compare(SMALL, data))
    tight, theorem = rows["tight"].events[1], rows["theorem"].events[1]
    assert round_epsilon_alone(tight, 1e-6) == pytest.approx(exact_epsilon(tight.multiplier, 1e-6))
    expected = round_epsilon(0.7, 1e-6, 1_000, theorem.batch_size, theorem.rounds)
    assert round_epsilon_alone(theorem, 1e-6) == pytest.approx(expected, rel=1e-9)
    assert round_epsilon_alone(rows["tight"].events[0], 1e-6) is None


def noise_curves(settings, sizes=CURVE_SIZES):
    return curves_from(settings, {size: noise_ratios(settings, size) for size in sizes})


@pytest.fixture(scope="module")
def curves():
    return {curve.title: curve for curve in noise_curves(ComparisonSettings())}


def test_each_method_needs_more_records_than_the_last(curves):
    order = ["Functional release", "DP-GRAMS tight", "DP-GRAMS experiments", "DP-GRAMS theorem"]
    needed = [curves[title].stays_below(USEFUL_RATIO) for title in order]
    assert needed == sorted(needed)
    # The theorem's noise is as large as the score up to about a hundred thousand records.
    assert 50_000 < curves["DP-GRAMS theorem"].stays_below(1.0) < 250_000
    for curve in curves.values():
        assert curve.sizes == CURVE_SIZES
        assert (np.diff(curve.ratios) < 0).all()


def test_the_curve_agrees_with_the_row_at_the_same_n(curves):
    data = load_dataset("four_corners", n=1_000, seed=3)
    for row in compare(SMALL, data):
        if row.ratio is not None:
            at = curves[row.candidate.title]
            assert row.ratio == pytest.approx(at.ratios[at.sizes.index(1_000)], rel=0.35)


def test_a_batch_keeps_its_share_as_n_changes():
    wide = noise_curves(ComparisonSettings(n=1_000, batch_size=500), (1_000, 10_000))
    same = noise_curves(ComparisonSettings(n=10_000, batch_size=5_000), (1_000, 10_000))
    assert [curve.ratios for curve in wide] == [curve.ratios for curve in same]
    titles = [curve.title for curve in wide]
    assert (titles[0], titles[3]) == ("DP-GRAMS tight (minibatch)", "DP-GRAMS tight (all records)")


def test_a_share_that_rounds_to_all_records_leaves_no_gap():
    curves = noise_curves(ComparisonSettings(n=1_000_000, batch_size=999_000), (100, 10_000))
    assert [len(curve.ratios) for curve in curves] == [2] * 5
    partly, full = curves[0], curves[3]
    assert partly.ratios[0] == full.ratios[0]
    assert partly.ratios[1] > full.ratios[1]


def test_where_a_curve_falls_below():
    curve = NoiseCurve("x", (100, 1_000, 10_000), (10.0, 1.0, 0.1))
    assert curve.stays_below(1.0) == pytest.approx(1_000)
    assert curve.stays_below(math.sqrt(0.1)) == pytest.approx(1_000 * math.sqrt(10))
    assert curve.stays_below(20.0) == 100
    assert curve.stays_below(0.01) is None
    gap = NoiseCurve("x", (100, 1_000, 10_000), (math.nan, 1.0, 0.1))
    assert gap.stays_below(2.0) == 1_000
    back = NoiseCurve("x", (100, 1_000, 10_000), (0.1, 1.0, 0.1))
    assert back.stays_below(0.5) > 1_000  # it must stay below


def test_pooled_pieces_are_all_runs():
    candidate = Candidate(key="functional", title="x", method="functional", options=(("delta", 1e-5), ("epsilon", 2.0)))
    settings = ComparisonSettings(n=200, epsilon=2.0)
    pieces = [run_cell(comparison_cell(candidate, settings, 2, seed)) for seed in (0, 1)]
    whole = pooled(pieces)
    assert whole.cell.runs == 4
    assert whole.row()["runs"] == 4
    assert whole.scores["mse"] == pieces[0].scores["mse"] + pieces[1].scores["mse"]
    assert dict(whole.cell.options) == {"delta": 1e-5}
    assert whole.cell.epsilon == 2.0
