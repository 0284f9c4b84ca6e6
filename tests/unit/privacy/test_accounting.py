"""Accounting: what calibration bought is what the price says."""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys

import pytest

from dpgrams_core import SpecError, load_dataset, run
from dpgrams_core.privacy.accountants import quotes
from dpgrams_core.privacy.accounting import batch_epsilon, gaussian_rounds_epsilon, price
from dpgrams_core.privacy.calibration import published_sigma
from dpgrams_core.privacy.events import ExponentialDraws, GaussianRelease, GaussianRounds, SubsampledGaussianRounds


def rounds_for(epsilon, delta, n, batch_size, rounds, sensitivity=3.0):
    bought = published_sigma(sensitivity, epsilon=epsilon, delta=delta, n=n, batch_size=batch_size, rounds=rounds)
    return SubsampledGaussianRounds(
        rounds=rounds,
        n=n,
        batch_size=batch_size,
        sensitivity=sensitivity / batch_size,
        noise_scale=bought,
        sensitivity_proven=False,
    )


SIZES = [(1000, 145), (1000, 1000), (50, 13)]  # n and batch_size
SETTINGS = list(itertools.product([0.01, 0.3, 1.0, 4.0, 20.0], [1e-9, 1e-6, 1e-3], SIZES, [1, 7, 40]))


@pytest.mark.parametrize(("epsilon", "delta", "sizes", "rounds"), SETTINGS)
def test_the_price_of_the_calibrated_noise_is_the_budget(epsilon, delta, sizes, rounds):
    n, batch_size = sizes
    event = rounds_for(epsilon, delta, n, batch_size, rounds)
    binds = math.isclose(batch_epsilon(event, delta), 1.0, rel_tol=1e-9)
    paid = gaussian_rounds_epsilon(event, delta)
    if binds:  # more budget buys nothing: the classical Gaussian mechanism ends at epsilon_0 = 1
        assert paid <= epsilon * (1 + 1e-9)
    else:
        assert paid == pytest.approx(epsilon, rel=1e-9)


def test_the_settings_above_meet_both_cases():
    binding = [
        math.isclose(batch_epsilon(rounds_for(e, delta, *sizes, rounds), delta), 1.0, rel_tol=1e-9)
        for e, delta, sizes, rounds in SETTINGS
    ]
    assert 10 < sum(binding) < len(binding) - 10


def test_a_budget_that_cannot_be_spent_is_priced_below_itself():
    event = rounds_for(50.0, 1e-6, 1000, 145, 7)
    assert batch_epsilon(event, 1e-6) == pytest.approx(1.0)
    paid = gaussian_rounds_epsilon(event, 1e-6)
    share = 145 / 1000
    once = math.log1p(share * (math.e - 1))
    assert paid == pytest.approx(2 * math.sqrt(14 * math.log(2e6)) * once)
    assert paid < 10


def test_less_noise_costs_more_and_too_little_has_no_price():
    event = rounds_for(1.0, 1e-6, 1000, 145, 7)
    less = dataclasses.replace(event, noise_scale=event.noise_scale / 1.1)
    assert gaussian_rounds_epsilon(less, 1e-6) > 1.05
    none = dataclasses.replace(event, noise_scale=event.noise_scale / 100)
    assert gaussian_rounds_epsilon(none, 1e-6) == math.inf


def test_advanced_composition_is_covered_by_the_price():
    # sqrt(2 T ln(2/delta)) e + T e (exp(e) - 1), the bound of the paper's proof, never exceeds the price.
    for epsilon, delta, sizes, rounds in SETTINGS:
        event = rounds_for(epsilon, delta, *sizes, rounds)
        once = math.log1p(sizes[1] / sizes[0] * math.expm1(batch_epsilon(event, delta)))
        composed = math.sqrt(2 * rounds * math.log(2 / delta)) * once + rounds * once * math.expm1(once)
        assert composed <= gaussian_rounds_epsilon(event, delta) * (1 + 1e-9)


def test_stages_add_up():
    draws = ExponentialDraws(count=6, epsilon_each=0.05, sensitivity=0.001)
    event = rounds_for(0.7, 1e-6, 1000, 145, 7)
    both = price([draws, event], 1e-6)
    assert both.epsilon == pytest.approx(1.0)
    assert both.delta == 1e-6
    assert [name for name, _ in both.stages] == ["start (DAP)", "ascent"]
    assert price([draws], 1e-6).delta == 0  # exponential draws are pure
    assert price([], 1e-6).epsilon == 0


@pytest.mark.parametrize("calibration", ["experiments", "theorem"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_release_carries_events_that_price_to_its_guarantee(calibration, epsilon, corners):
    release = run("dp_grams", corners, calibration=calibration, epsilon=epsilon, seed=0)
    assert price(release.events, release.spec.delta).epsilon == pytest.approx(release.guarantee.epsilon)
    assert release.guarantee.epsilon == epsilon
    assert release.guarantee.delta == 1e-6
    draws, rounds = release.events
    assert draws.count == release.spec.n_starts
    assert draws.count * draws.epsilon_each == pytest.approx(epsilon * release.spec.init_fraction)
    assert (rounds.rounds, rounds.batch_size, rounds.n) == (release.spec.n_steps, release.spec.batch_size, corners.n)
    assert rounds.noise_scale == release.noise_scale
    assert not rounds.sensitivity_proven


def test_a_budget_that_is_not_spent_is_said(seed):
    data = load_dataset("four_corners", n=1000, seed=seed)
    guarantee = run("dp_grams", data, epsilon=100.0, seed=0).guarantee
    # 30 for the start, and all that seven rounds of log(1 + (e - 1) m / n) can spend.
    once = math.log1p((math.e - 1) * 145 / 1000)
    assert guarantee.epsilon == pytest.approx(30 + 2 * math.sqrt(14 * math.log(2e6)) * once)
    assert any("no smaller noise" in text for text in guarantee.caveats)


ONE = GaussianRelease(sensitivity=1.0, noise_scale=5.0)
FULL = GaussianRounds(rounds=3, n=100, batch_size=100, sensitivity=1.0, noise_scale=9.0)
DRAWS = ExponentialDraws(count=4, epsilon_each=0.1, sensitivity=0.01)


@pytest.mark.parametrize("events", [(ONE, ONE, FULL), (ONE, FULL), (FULL, FULL), (DRAWS, ONE, FULL)])
def test_what_would_spend_delta_twice_is_refused(events):
    """Each price is at the whole δ: to add them and count δ once would promise more than holds."""
    with pytest.raises(SpecError, match="one kind that spends δ"):
        price(events, 1e-6)
    assert price(events[:1] * 2 if events[0] is ONE else events[:1], 1e-6).epsilon > 0


def test_an_event_that_no_accountant_knows_is_refused_in_words():
    with pytest.raises(SpecError, match="event = 'a coin toss' is not allowed: no accountant here can price it"):
        price(["a coin toss"], 1e-6)
    draws = ExponentialDraws(count=4, epsilon_each=0.1, sensitivity=0.01)
    with pytest.raises(SpecError, match="Gaussian releases with a proven sensitivity only"):
        quotes(draws, 1e-6)


def test_a_price_that_fails_stops_the_release_before_it_is_drawn(corners, nothing_drawn, monkeypatch):
    def refuse(events, delta):
        raise SpecError("event", "a release", "no accountant here can price it")

    # By the module: the package has a function of the same name.
    monkeypatch.setattr(sys.modules["dpgrams_core.methods.functional.modes"], "price", refuse)
    with pytest.raises(SpecError, match="no accountant"):
        run("functional", corners, seed=0)
