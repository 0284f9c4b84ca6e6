"""Mean shift from every data point: its release, its labels, and what happens at large n."""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core import load_dataset, run
from dpgrams_core.methods.baselines.mean_shift import MAX_STARTS, fast_mean_shift


def test_every_end_point_is_a_fixed_point_of_the_mean_shift_step(corners):
    h = 0.8
    ends, _ = fast_mean_shift(corners.points, h, corners.points)
    for x in ends:
        weights = np.exp(-((corners.points - x) ** 2).sum(axis=1) / (2 * h**2))
        assert np.linalg.norm(weights @ corners.points / weights.sum() - x) < 1e-9 * h


def test_labels_send_records_to_the_modes_they_climb_to(corners):
    release = run("mean_shift", corners, seed=0, bandwidth=1.0)
    labels = release.diagnostics.labels
    assert len(labels) == corners.n
    ends, _ = fast_mean_shift(corners.points, 1.0, corners.points)
    # Far from the axes a record climbs to the corner it was drawn from.
    clear = np.abs(corners.points).min(axis=1) > 1.5
    corner_of_record, corner_of_end = np.sign(corners.points[clear]), np.sign(ends[labels[clear]])
    assert np.array_equal(corner_of_record, corner_of_end)


def test_the_seed_changes_nothing(corners):
    one, two = (run("mean_shift", corners, seed=seed) for seed in (0, 1))
    assert np.array_equal(one.modes, two.modes)


def test_a_known_number_of_modes_is_weighed_by_records(table):
    # One record at 0 and twenty at 3 and at 5.5: without weights Ward would join 3 and 5.5, the closer
    # pair; with them the lone record is the cheap one to join.
    points = np.concatenate([np.zeros((1, 2)), np.full((20, 2), 3.0), np.full((20, 2), 5.5)])
    release = run("mean_shift", table(points), seed=0, bandwidth=0.3, n_modes=2)
    np.testing.assert_allclose(sorted(release.modes[:, 0]), [3 * 20 / 21, 5.5], atol=1e-6)


def test_more_modes_asked_for_than_there_are_gives_those_there_are(table):
    points = np.concatenate([np.zeros((5, 2)), np.full((5, 2), 4.0)])
    assert len(run("mean_shift", table(points), seed=0, bandwidth=0.3, n_modes=9).modes) == 2


def test_many_records_start_from_a_part_of_them_and_say_so(seed):
    data = load_dataset("four_corners", n=MAX_STARTS + 1, seed=seed)
    release = run("mean_shift", data, seed=0, n_modes=4)
    assert release.guarantee.caveats == ("Started from one record in 2 only.",)
    assert len(release.diagnostics.labels) == 10_001
    np.testing.assert_allclose(sorted(np.abs(release.modes).ravel()), 3.0, atol=0.5)


@pytest.mark.parametrize("d", [1, 3])
def test_other_dimensions_take_the_exact_path(d, table, rng):
    points = np.concatenate([rng.normal(-3, 0.3, (40, d)), rng.normal(3, 0.3, (40, d))])
    modes = run("mean_shift", table(points), seed=0, bandwidth=1.0).modes
    assert modes.shape == (2, d)
    np.testing.assert_allclose(np.sort(modes, axis=0), [[-3.0] * d, [3.0] * d], atol=0.4)
