"""Audits both ways: broken mechanisms are caught, honest ones are not, and the bound keeps its confidence."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from dpgrams_core.auditing import audit, pairs_for
from dpgrams_core.auditing.bounds import both_tests, gaussian_fit
from dpgrams_core.auditing.statistics import LIKELIHOOD
from dpgrams_core.methods import ascent
from dpgrams_core.methods.dp_grams.broken import BROKEN_METHODS
from dpgrams_core.methods.registry import Method
from dpgrams_core.model.results import Guarantee, Release
from dpgrams_core.model.settings import CALIBRATIONS
from dpgrams_core.numerics.bumps import Bumps
from dpgrams_core.privacy.calibration import gaussian_delta

DELTA = 1e-6
# DPGRAMS_AUDIT_TRIALS=2000 plays the long games; the short ones have the power that the tests need.
TRIALS = int(os.environ.get("DPGRAMS_AUDIT_TRIALS", "300"))
HONEST = [calibration for calibration in ("theorem", "tight") if calibration in CALIBRATIONS]


def exact_epsilon(multiplier, delta):
    return brentq(lambda epsilon: gaussian_delta(epsilon, multiplier) - delta, 0.0, 100.0)


@dataclass(frozen=True, kw_only=True)
class PlainSpec:
    epsilon: float = 1.0
    delta: float = 0.05
    scale: float = 1.0


def plain_gaussian(data, spec, noise):
    """The number of records on the right, plus Gaussian noise: its epsilon is known exactly."""
    count = float((data.points[:, 0] > 0).sum())
    value = count + float(noise.correlated_gaussian(np.eye(1), spec.scale, 1)[0, 0])
    guarantee = Guarantee(epsilon=spec.epsilon, delta=spec.delta, status="proven", statement="")
    return Release(method="plain", modes=[[value / 10, 0.0]], spec=spec, events=(), guarantee=guarantee)


PLAIN = Method("plain", "modes", "Plain", PlainSpec, plain_gaussian)


@pytest.mark.parametrize("multiplier", [0.4, 0.7, 1.0])
def test_on_average_the_bound_shows_more_than_half_of_the_exact_epsilon(multiplier, rng):
    # Over 300 games the ratio had mean 0.57 to 0.67 and standard deviation 0.04 to 0.08: the mean of 40 games
    # lies ten standard errors above a half, while a single game falls below it in several of a hundred.
    exact, ratios = exact_epsilon(multiplier, 0.05), []
    for _ in range(40):
        worlds = rng.standard_normal((2, 2000, 1)) * multiplier + np.array([0.0, 1.0])[:, None, None]
        ratios.append(max(test.epsilon_lower for test in both_tests(*worlds, ["x"], delta=0.05, error=0.05)) / exact)
    assert np.mean(ratios) > 0.5


@pytest.mark.parametrize("multiplier", [0.4, 0.7, 1.0])
def test_a_whole_audit_shows_something_and_stays_below_the_exact_epsilon(multiplier, seed, flake_rate):
    # n is 10, so that value / 10 stays in the box and a distance to a place is the value itself.
    exact = exact_epsilon(multiplier, 0.05)
    options = {"epsilon": exact, "delta": 0.05, "trials": 2000, "seed": seed, "n": 10, "scale": multiplier}
    result = audit(PLAIN, **options)
    assert result.epsilon_lower > exact / 5  # five standard deviations below the mean of a single game
    assert not audit(PLAIN, confidence=1 - flake_rate, **options).caught


def test_the_stated_confidence_is_kept(rng, flake_rate):
    # Two hundred audits of a Gaussian with known epsilon: at a level of 80 % at most a fifth may be wrong.
    multiplier, delta, runs = 1.0, 0.05, 200
    exact, wrong = exact_epsilon(multiplier, delta), 0
    for _ in range(runs):
        worlds = rng.standard_normal((2, 400, 1)) * multiplier + np.array([0.0, 1.0])[:, None, None]
        wrong += max(test.epsilon_lower for test in both_tests(*worlds, ["x"], delta=delta, error=0.2)) > exact
    assert stats.binom.sf(wrong - 1, runs, 0.2) > flake_rate


def test_counting_the_trials_that_chose_would_break_the_confidence(rng, certain):
    # The same game with the choosing half counted as well: two equal worlds and many useless statistics.
    wrong, runs = 0, 25
    for _ in range(runs):
        worlds = [np.repeat(rng.standard_normal((40, 30)), 2, axis=0) for _ in range(2)]  # odd rows copy even ones
        tests = both_tests(*worlds, [str(i) for i in range(30)], delta=0.0, error=0.05)
        wrong += max(test.epsilon_lower for test in tests) > 0
    assert stats.binom.sf(wrong - 1, runs, 0.05) < certain


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", BROKEN_METHODS)
def test_a_broken_mechanism_is_caught(name, epsilon, seed):
    # Many starts, so that short games are enough; with its own number of starts it takes 2,000 trials.
    options = {"n_starts": 40} if name == "broken_data_starts" else {}
    result = audit(name, epsilon=epsilon, delta=DELTA, trials=TRIALS, seed=seed, pair="moved_record", n=50, **options)
    assert result.caught
    assert result.epsilon_lower > epsilon


@pytest.mark.parametrize(
    ("pair", "options"),
    [
        *((name, {"epsilon": 0.5}) for name in pairs_for("modes")),
        ("far_record", {"epsilon": 2.0}),
        ("far_record", {"epsilon": 0.5, "n_steps": 4}),
        ("moved_record", {"epsilon": 0.5, "n_steps": 3, "batch_size": 20, "trials": 120}),
    ],
    ids=str,
)
@pytest.mark.parametrize("calibration", HONEST)
def test_an_honest_calibration_is_not_caught(calibration, pair, options, seed, flake_rate, short_climbs):
    fixed = {"delta": DELTA, "trials": TRIALS, "seed": seed, "n": 50, "confidence": 1 - flake_rate}
    if pair in ("lonely_record", "small_cluster"):  # fewer starts than far_record has, each with more of ε: short games
        fixed["n_starts"] = 6
    whole = (pair, options) == ("far_record", {"epsilon": 0.5})  # one game sees the last climb of tight as well
    with nullcontext() if whole else short_climbs():
        result = audit("dp_grams", pair=pair, calibration=calibration, **(fixed | options))
    assert not result.caught
    assert "This proves nothing" in result.verdict


@pytest.fixture
def surface_only(monkeypatch):
    """Leave out what ``functional`` computes from its surface: no test on that beats the likelihood ratio."""
    module = pytest.importorskip("dpgrams_core.methods.functional.modes")
    nothing = Bumps(np.empty((0, 2)), np.empty(0), np.empty(0), np.empty(0))
    monkeypatch.setattr(module, "find_bumps", lambda *_: nothing)
    monkeypatch.setattr(module, "climb", lambda surface, starts, *_: np.stack([starts, starts]))
    return module


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_functional_release_is_not_caught(epsilon, seed, flake_rate, surface_only):
    # A wide bandwidth has a small grid, and the record still moves by more than three of them.
    fixed = {"delta": DELTA, "trials": TRIALS, "seed": seed, "n": 50, "bandwidth": 2.5, "confidence": 1 - flake_rate}
    assert not audit("functional", epsilon=epsilon, **fixed).caught


def test_the_functional_release_with_too_little_noise_is_caught(seed, surface_only, monkeypatch):
    # A sensitivity that is wrong by a factor of ten, as a slip between records and densities would make it.
    right = surface_only.surface_sensitivity
    monkeypatch.setattr(surface_only, "surface_sensitivity", lambda *facts: right(*facts) / 10)
    result = audit("functional", epsilon=2.0, delta=DELTA, trials=TRIALS, seed=seed, n=50, bandwidth=2.5)
    assert result.caught


def test_the_anchors_alone_keep_their_epsilon_and_show_part_of_it(seed, flake_rate):
    # Nearly all of the budget goes to one DAP draw between two candidates.  Each count moves by one, so the
    # odds move by epsilon in all and the chance of each candidate by about half of it.
    options = {"init_fraction": 0.999, "n_starts": 1, "epsilon": 4.0, "trials": 600, "seed": seed, "n": 50}
    options |= {"pair": "moved_record", "calibration": "theorem"}
    assert audit("dp_grams", **options).epsilon_lower > 1.0
    assert not audit("dp_grams", confidence=1 - flake_rate, **options).caught


def test_the_experiments_calibration_is_caught_too(seed):
    # Not broken on purpose: its contributions share one denominator, which a lone record decides.
    result = audit("dp_grams", epsilon=2.0, trials=TRIALS, seed=seed, n=500, calibration="experiments")
    assert result.caught
    assert result.claimed_status == "nominal"


class TestTheFitOfTheLikelihoodRatio:
    """The bound that rests on the normal law: near the true epsilon, and above it no more often than it says."""

    def fits(self, rng, multiplier, runs, coupled, trials=200, error=0.2):
        for _ in range(runs):
            noise = rng.standard_normal((2, trials, 1)) * multiplier
            worlds = noise[[0, 0]] if coupled else noise
            worlds = worlds + np.array([0.0, 1.0])[:, None, None]
            yield gaussian_fit(*worlds, [LIKELIHOOD], delta=DELTA, error=error, coupled=coupled)

    @pytest.mark.parametrize("coupled", [True, False])
    @pytest.mark.parametrize("multiplier", [0.5, 4.0])
    def test_the_stated_confidence_is_kept(self, multiplier, coupled, rng, flake_rate):
        runs, exact = 300, exact_epsilon(multiplier, DELTA)
        wrong = sum(fit is not None and fit.epsilon_lower > exact for fit in self.fits(rng, multiplier, runs, coupled))
        assert stats.binom.sf(wrong - 1, runs, 0.2) > flake_rate

    def test_a_spread_below_the_claimed_one_is_seen(self, rng):
        # Two thirds of the noise that the claim needs: 1.5 times the shift, and more than that in epsilon.
        exact = exact_epsilon(4.0, DELTA)
        fits = list(self.fits(rng, 4.0 * 2 / 3, 5, coupled=True, trials=2000, error=0.05))
        assert min(fit.epsilon_lower for fit in fits) > 1.3 * exact

    def test_what_is_not_normal_and_what_has_no_ratio_get_no_bound(self, rng):
        rows = rng.standard_exponential((2, 500, 1))
        assert gaussian_fit(*rows, [LIKELIHOOD], delta=DELTA, error=0.05, coupled=False) is None
        normal = rng.standard_normal((2, 500, 1))
        assert gaussian_fit(*normal, ["modes: how many"], delta=DELTA, error=0.05, coupled=False) is None
        assert gaussian_fit(*(0 * normal), [LIKELIHOOD], delta=DELTA, error=0.05, coupled=False) is None

    @pytest.mark.parametrize("epsilon", [1.0, 3.0])
    def test_for_the_functional_release_it_shows_at_least_seven_tenths_of_the_claim(
        self, epsilon, seed, surface_only, flake_rate
    ):
        fixed = {"delta": DELTA, "trials": 2000, "seed": seed, "n": 50, "bandwidth": 2.5, "confidence": 1 - flake_rate}
        assert 0.7 * epsilon < audit("functional", epsilon=epsilon, **fixed).gaussian.epsilon_lower < epsilon

    def test_at_the_release_door_it_needs_no_common_noise(self, surface_only):
        # No seed there, so the two worlds cannot share their noise, and 150 runs leave the bound a wide
        # spread (five audits gave 4.4 to 5.9): five of its standard deviations below the mean it still shows something.
        fit = audit("functional", epsilon=8.0, delta=DELTA, trials=150, n=50, bandwidth=2.5, door="release").gaussian
        assert fit.epsilon_lower > 0.2 * 8.0

    def test_too_little_noise_puts_it_above_the_claim(self, seed, surface_only, monkeypatch):
        right = surface_only.surface_sensitivity
        monkeypatch.setattr(surface_only, "surface_sensitivity", lambda *facts: right(*facts) * 2 / 3)
        result = audit("functional", epsilon=1.0, delta=DELTA, trials=2000, seed=seed, n=50, bandwidth=2.5)
        assert result.gaussian.epsilon_lower > 1.3
        assert "% of the claim" in result.fit_words
        assert not result.caught  # counting alone does not see it


TWO = {"n_starts": 2}
HALF_WAY = {"response_grid": (0.7,)}  # where the slope sees the response move


class TestTheRoundsOfTight:
    """The likelihood ratio of all that the rounds released: near the claim, never above it, and it sees less noise."""

    @pytest.fixture(autouse=True)
    def short_climb(self, short_climbs):
        """The last climb is post-processing of the rounds: no test on it beats their likelihood ratio."""
        with short_climbs():
            yield

    def game(self, method, options, epsilon, seed, confidence):
        fixed = {"delta": DELTA, "trials": 600, "seed": seed, "n": 50, "calibration": "tight"}
        return audit(method, epsilon=epsilon, confidence=confidence, **fixed, **options)

    @pytest.mark.parametrize(
        ("method", "options", "epsilon"),
        [
            ("dp_grams", TWO | {"n_steps": 3}, 1.0),
            ("dp_grams", TWO, 3.0),
            ("dp_grams_c", TWO, 1.0),
            ("dp_pms", HALF_WAY, 1.0),
        ],
        ids=str,
    )
    def test_it_shows_most_of_the_claim_and_no_more(self, method, options, epsilon, seed, flake_rate):
        result = self.game(method, options, epsilon, seed, 1 - flake_rate)
        assert result.claimed_status == "proven"
        assert not result.caught
        assert LIKELIHOOD in result.gaussian.statistic
        assert 0.6 * epsilon < result.gaussian.epsilon_lower < epsilon

    @pytest.mark.parametrize(("method", "options"), [("dp_grams", TWO), ("dp_pms", HALF_WAY)], ids=str)
    def test_two_thirds_of_the_noise_put_it_above_the_claim(self, method, options, seed, monkeypatch):
        right = ascent.round_sensitivity
        monkeypatch.setattr(ascent, "round_sensitivity", lambda *facts: right(*facts) * 2 / 3)
        result = self.game(method, options, 1.0, seed, 0.95)
        assert result.gaussian.epsilon_lower > 1.0
        assert not result.caught  # counting alone does not see it

    def test_where_a_round_sees_a_part_of_the_records_there_is_a_projection_and_no_ratio(self, seed, flake_rate):
        options = {"n_starts": 2, "batch_size": 20, "trials": 120}
        result = audit("dp_grams", n=50, seed=seed, calibration="tight", confidence=1 - flake_rate, **options)
        assert result.gaussian is None
        assert not result.caught


@pytest.mark.slow
def test_what_was_run_is_caught_by_the_whole_ascent_and_not_by_the_final_modes():
    # Seeded, so that it repeats: with the lonely record a step that hardly moves comes in about one run of ten.
    fixed = {"epsilon": 1.0, "delta": DELTA, "seed": 3, "calibration": "as_run", "n": 200}
    assert audit("dp_grams", pair="lonely_record", trials=600, **fixed).caught
    assert not audit("dp_grams", pair="small_cluster", trials=200, **fixed).caught
