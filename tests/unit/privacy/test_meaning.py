"""What (epsilon, delta) means: every sentence on the page is checked against mechanisms whose laws are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from dpgrams_core.model.format import one_in, percent, tiny
from dpgrams_core.privacy.calibration import gaussian_delta, gaussian_multiplier
from dpgrams_core.privacy.meaning import (
    MARGIN,
    PRIORS,
    belief,
    gaussian_power,
    largest_power,
    meeting_point,
    odds_factor,
)

BUDGETS = [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-3), (5.0, 1e-9), (10.0, 1e-3)]


def random_laws(rng, outcomes=6):
    """The laws of a result in two neighbouring worlds."""
    return rng.dirichlet(np.full(outcomes, 0.7)), rng.dirichlet(np.full(outcomes, 0.7))


def least_delta(first, second, epsilon):
    """The least delta of a pair of laws, both ways round."""
    factor = math.exp(epsilon)
    return max(np.maximum(first - factor * second, 0).sum(), np.maximum(second - factor * first, 0).sum())


def gaussian_beliefs(prior, multiplier):
    """P_m(R > level) and E_m(R - level)_+ for one Gaussian release, from its log-likelihood ratio."""
    s = 1 / multiplier

    def passes(level):
        loss = math.log(level / (1 - level)) - math.log(prior / (1 - prior))
        under_a = ndtr(s / 2 - loss / s)
        under_b = ndtr(-s / 2 - loss / s)
        return prior * under_a + (1 - prior) * under_b

    def excess(level):
        return quad(passes, level, 1 - 1e-12, epsabs=1e-18, limit=500)[0]

    return passes, excess


def test_the_sentence_of_the_issue():
    after = belief(0.5, 1.0, 1e-6)
    assert percent(after.before) == "50%"
    assert percent(after.most) == "73%"
    assert percent(after.least) == "27%"
    assert one_in(after.chance_above) == "1 in 74,000"


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 5.0, 10.0])
def test_without_delta_randomized_response_reaches_the_bound_and_no_more(prior, epsilon):
    honest = math.exp(epsilon) / (1 + math.exp(epsilon))
    says_a = prior * honest / (prior * honest + (1 - prior) * (1 - honest))
    says_b = prior * (1 - honest) / (prior * (1 - honest) + (1 - prior) * honest)
    after = belief(prior, epsilon)
    assert after.most == pytest.approx(says_a, rel=1e-12)
    assert after.least == pytest.approx(says_b, rel=1e-9)
    assert after.excess == after.chance_above == 0
    odds_before, odds_after = prior / (1 - prior), says_a / (1 - says_a)
    assert odds_after / odds_before == pytest.approx(odds_factor(epsilon), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
def test_the_excess_is_bounded_for_any_mechanism_and_exactly_so(epsilon, rng):
    for _ in range(200):
        first, second = random_laws(rng)
        prior = float(rng.uniform(0.02, 0.98))
        marginal = prior * first + (1 - prior) * second
        after = prior * first / marginal
        one_way = np.maximum(first - math.exp(epsilon) * second, 0).sum()
        delta = min(least_delta(first, second, epsilon), 1 - 1e-12)
        bound = belief(prior, epsilon, delta)
        excess = (marginal * np.maximum(after - bound.most, 0)).sum()
        assert excess <= bound.excess + 1e-12
        assert excess == pytest.approx(prior * (1 - bound.most) * one_way, abs=1e-12)  # the identity of the proof
        assert marginal[after > bound.most + MARGIN].sum() <= bound.chance_above + 1e-12


@pytest.mark.parametrize("prior", [0.05, 0.5, 0.9])
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_a_calibrated_gaussian_release_keeps_what_is_said_of_delta(prior, epsilon, delta):
    passes, excess = gaussian_beliefs(prior, gaussian_multiplier(epsilon, delta))
    after = belief(prior, epsilon, delta)
    if after.most + MARGIN < 1:
        assert passes(after.most + MARGIN) <= after.chance_above
    if 1 - after.most > 1e-6:
        assert excess(after.most) == pytest.approx(after.excess, rel=1e-3)  # the bound is reached: noise is exact


def test_the_common_reading_of_delta_would_be_wrong():
    # "Except with chance delta the belief stays below 73%": not so, by a factor of twenty under A.
    multiplier = gaussian_multiplier(1.0, 1e-6)
    above = float(ndtr(0.5 / multiplier - multiplier))
    assert above > 15e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_event_beats_the_largest_power(epsilon, rng):
    for _ in range(100):
        first, second = random_laws(rng)
        delta = min(least_delta(first, second, epsilon), 1 - 1e-12)
        events = rng.integers(0, 2, size=(64, len(first))).astype(bool)
        true = np.array([first[event].sum() for event in events])
        false = np.array([second[event].sum() for event in events])
        assert (true <= largest_power(false, epsilon, delta) + 1e-12).all()


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_exact_gaussian_curve_stays_inside_the_bound_and_meets_it(epsilon, delta):
    multiplier = gaussian_multiplier(epsilon, delta)
    x = np.unique(np.concatenate([np.geomspace(1e-12, 0.5, 400), 1 - np.geomspace(1e-12, 0.5, 400)]))
    slack = largest_power(x, epsilon, delta) - gaussian_power(x, multiplier)
    assert (slack >= -1e-12).all()
    at = meeting_point(epsilon, multiplier)
    power = float(gaussian_power(np.array([at]), multiplier)[0])
    assert power == pytest.approx(math.exp(epsilon) * at + gaussian_delta(epsilon, multiplier), rel=1e-6)
    wrong = gaussian_power(np.array([at]), multiplier / 1.1)  # ten percent too little noise is seen
    assert wrong > largest_power(np.array([at]), epsilon, delta)


def test_the_ends_of_the_curves():
    assert largest_power(np.array([0.0, 1.0]), 1.0, 1e-3).tolist() == [pytest.approx(1e-3), 1.0]
    np.testing.assert_allclose(gaussian_power(np.array([0.0, 1.0]), 2.0), [0.0, 1.0])
    np.testing.assert_allclose(largest_power(np.array([0.3]), 0.0, 0.0), [0.3])
    assert largest_power(np.array([1e-9]), 1000.0, 0.0).tolist() == [1.0]


def test_certainty_is_never_rounded_into_existence():
    assert percent(belief(0.5, 10.0).most) == "99.9955%"
    assert percent(1 - 1e-9) != "100%"
    assert percent(1e-9) != "0%"
    assert belief(0.99, 10.0, 1e-3).chance_above == 0  # there is no room for a point more


@pytest.mark.parametrize("chance", [0.04, 0.0123, 1.3447e-5, 7e-13])
def test_chances_in_words_are_never_smaller_than_the_bound(chance):
    number = float(one_in(chance).removeprefix("1 in ").replace(",", ""))
    assert 1 / number >= chance * (1 - 1e-9)
    assert 1 / number <= 1.12 * chance


def test_small_numbers_are_written_shortly():
    assert (tiny(1e-12), tiny(5e-4)) == ("1e-12", "5e-4")


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        ((0.0, 1.0), "prior", 0.0),
        ((1.0, 1.0), "prior", 1.0),
        ((0.5, -1.0), "epsilon", -1.0),
        ((0.5, math.inf), "epsilon", math.inf),
        ((0.5, 1.0, -0.1), "delta", -0.1),
        ((0.5, 1.0, 1.0), "delta", 1.0),
    ],
)
def test_impossible_values_are_refused(refused, arguments, field, value):
    refused(lambda: belief(*arguments), field, value)
