"""What holds for every matching."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgrams_core.model.measures import match_modes, recovery_rates, score_modes

# Whole coordinates: moving all of them keeps every distance exact, so nothing sits on the edge of a radius.
whole = st.integers(-20, 20).map(float)
truths = arrays(float, st.tuples(st.integers(1, 5), st.just(2)), elements=whole)
estimates = arrays(float, st.tuples(st.integers(1, 7), st.just(2)), elements=whole)
radii = st.sampled_from([0.5, 2.5, 7.5])


@given(truth=truths, found=estimates, radius=radii, data=st.data())
def test_the_order_of_either_set_does_not_matter(truth, found, radius, data):
    # Several matchings may cost the same and find different numbers of modes, so only the costs are compared.
    one = score_modes(truth, found, radius)
    mixed = truth[data.draw(st.permutations(range(len(truth))))], found[data.draw(st.permutations(range(len(found))))]
    assert score_modes(*mixed, radius)["mse"] == pytest.approx(one["mse"])


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 5), k_hat=st.integers(1, 7))
def test_without_ties_no_score_depends_on_the_order(seed, k, k_hat):
    rng = np.random.default_rng(seed)
    truth, found = rng.normal(0, 3, (k, 2)), rng.normal(0, 3, (k_hat, 2))
    one = score_modes(truth, found, 1.0)
    assert score_modes(rng.permutation(truth), rng.permutation(found), 1.0) == pytest.approx(one)


@given(truth=truths, radius=radii)
def test_the_truth_scores_zero(truth, radius):
    got = score_modes(truth, truth, radius)
    assert (got["mse"], got["mse_per_true_mode"], got["found"], got["missed"]) == (0, 0, len(truth), 0)


@given(truth=truths, found=estimates, radius=radii)
def test_the_counts_add_up(truth, found, radius):
    got = score_modes(truth, found, radius)
    assert got["found"] + got["missed"] == len(truth)
    assert got["found"] + got["spurious"] == len(found)
    assert 0 <= got["found"] <= min(len(truth), len(found))
    assert got["mse"] >= 0
    rates = recovery_rates(truth, [found], radius)
    assert rates.sum() == got["found"]


@given(truth=truths, found=estimates, radius=radii, shift=arrays(float, 2, elements=whole))
def test_moving_everything_changes_nothing(truth, found, radius, shift):
    assert score_modes(truth + shift, found + shift, radius) == pytest.approx(score_modes(truth, found, radius))


@given(truth=truths, found=estimates, scale=st.sampled_from([0.25, 2.0, 8.0]))
def test_squared_errors_scale_with_the_square_of_the_units(truth, found, scale):
    one, other = score_modes(truth, found, 2.5), score_modes(scale * truth, scale * found, scale * 2.5)
    for name in ("mse", "mse_per_true_mode"):
        assert other[name] == pytest.approx(scale**2 * one[name])
    assert other["found"] == one["found"]


@given(truth=truths, found=estimates)
def test_a_matching_is_one_to_one_and_as_large_as_it_can_be(truth, found):
    matching = match_modes(truth, found)
    used = matching.estimate_of[matching.estimate_of >= 0].tolist()
    assert len(used) == len(set(used)) == min(len(truth), len(found))


@given(truth=truths, found=estimates)
def test_a_larger_radius_never_finds_less(truth, found):
    counts = [score_modes(truth, found, radius)["found"] for radius in (0.5, 2.5, 7.5, 100.0)]
    assert counts == sorted(counts)
    assert counts[-1] == min(len(truth), len(found))
