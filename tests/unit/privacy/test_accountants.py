"""Accountants: what each must satisfy, how they relate, and what dp-accounting's multiplier means."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism, pld, rdp
from dp_accounting.pld import privacy_loss_distribution
from scipy import stats

from dpgrams_core import SpecError
from dpgrams_core.figures.guarantee import accountants_chart
from dpgrams_core.privacy.accountants import (
    ACCOUNTANTS,
    Accountant,
    Quote,
    as_rounds,
    draw_of_shift,
    draw_shift,
    epsilon_of_renyi,
    log_central_moments,
    quotes,
    rounds_epsilon,
    rounds_multiplier,
    subsampled_gaussian_epsilon,
)
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.calibration import exact_epsilon, gaussian_delta, gaussian_multiplier
from dpgrams_core.privacy.events import ExponentialDraws, GaussianRelease, GaussianRounds

REPLACE_ONE = dp_accounting.NeighboringRelation.REPLACE_ONE
FULL, PART = 1_000, 145
DELTA = 1e-6


def rounds(multiplier=4.0, batch_size=FULL, count=7, sensitivity=1.0):
    return GaussianRounds(
        rounds=count, n=1_000, batch_size=batch_size, sensitivity=sensitivity, noise_scale=multiplier * sensitivity
    )


class TestEvent:
    def test_the_multiplier_is_noise_over_sensitivity(self):
        event = rounds(3.0, PART, sensitivity=math.sqrt(2))
        assert event.multiplier == pytest.approx(3.0)
        assert event.share == 0.145
        assert (event.full_batch, rounds().full_batch) == (False, True)

    @pytest.mark.parametrize(
        "wrong", [{"rounds": -1}, {"batch_size": 0}, {"batch_size": 1_001}, {"sensitivity": 0.0}, {"noise_scale": 0.0}]
    )
    def test_an_impossible_one_is_refused(self, wrong):
        with pytest.raises(ValueError, match="must be"):
            dataclasses.replace(rounds(), **wrong)

    def test_it_is_frozen(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            rounds().rounds = 3


def our_price(event, delta):
    return Quote(rounds_epsilon(event, delta))


@functools.cache
def asked(name, multiplier, batch_size, count, delta):
    """The figure of an accountant: several tests ask for the same one."""
    return ACCOUNTANTS.get(name, our_price)(rounds(multiplier, batch_size, count), delta)


@pytest.mark.parametrize("batch_size", [FULL, PART])
@pytest.mark.parametrize("name", [*ACCOUNTANTS, "price"])
class TestEveryAccountant:
    """What each accountant must satisfy wherever it has a figure."""

    @pytest.fixture
    def epsilon(self, name, batch_size):
        def ask(multiplier=4.0, delta=DELTA, count=7):
            quote = asked(name, multiplier, batch_size, count, delta)
            if quote.epsilon is None:
                assert quote.reason
                pytest.skip(quote.reason)
            return quote.epsilon

        return ask

    def test_more_noise_never_costs_more(self, epsilon):
        found = [epsilon(multiplier=z) for z in (1.0, 2.0, 2.1, 4.0, 8.0)]
        assert found == sorted(found, reverse=True)
        assert found[0] > 3 * found[-1]

    def test_a_larger_delta_never_costs_more(self, epsilon):
        found = [epsilon(delta=delta) for delta in (1e-9, 1e-6, 1e-4, 1e-2)]
        assert found == sorted(found, reverse=True)
        assert found[0] > 1.3 * found[-1]

    def test_more_rounds_never_cost_less(self, epsilon):
        found = [epsilon(count=count) for count in (1, 2, 7, 20)]
        assert found == sorted(found)
        assert found[-1] > 1.3 * found[0]

    @pytest.mark.slow
    def test_it_is_never_below_what_an_attack_reaches(self, epsilon, batch_size):
        # One record that contributes the whole sensitivity against one that contributes nothing: the pair
        # N(0) and its mixture with N(1/z), composed; both sides are attained, so no accountant may go below.
        for z, count in ((2.0, 1), (2.0, 7), (5.0, 9)):
            attained = privacy_loss_distribution.from_gaussian_mechanism(
                z,
                pessimistic_estimate=False,
                sampling_prob=batch_size / 1_000,
                use_connect_dots=False,
                neighboring_relation=dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
            ).self_compose(count)
            lower = attained.get_epsilon_for_delta(DELTA)
            assert lower > 0.1
            assert epsilon(z, count=count) >= lower * (1 - 1e-3)

    @pytest.mark.slow
    def test_it_is_a_number_from_almost_no_noise_to_very_much(self, epsilon):
        for z in (0.2, 1e3):
            assert epsilon(multiplier=z) >= 0


def test_nothing_released_costs_nothing():
    found = quotes(rounds(count=0), DELTA)
    assert list(found) == list(ACCOUNTANTS)
    assert {quote.epsilon for quote in found.values()} == {0.0}
    assert rounds_epsilon(rounds(count=0), DELTA) == 0.0


@pytest.mark.parametrize(("z", "count"), [(8.0, 7), (2.0, 1), (20.0, 40)])
def test_full_batch_rounds_are_one_release_with_less_noise(z, count):
    event = rounds(z, count=count)
    one = GaussianRelease(sensitivity=3.0, noise_scale=3.0 * z / math.sqrt(count))
    exact = exact_epsilon(z / math.sqrt(count), DELTA)
    assert gaussian_delta(exact, z / math.sqrt(count)) == pytest.approx(DELTA, rel=1e-6)
    assert rounds_epsilon(event, DELTA) == quotes(event, DELTA)["exact"].epsilon == exact
    assert quotes(one, DELTA)["exact"].epsilon == pytest.approx(exact, rel=1e-12)
    assert quotes(event, DELTA)["loss distribution"].epsilon == pytest.approx(exact, rel=1e-4)
    assert exact < quotes(event, DELTA)["renyi"].epsilon < 1.1 * exact


def test_the_order_of_the_accountants():
    full = {name: quote.epsilon for name, quote in quotes(rounds(8.0, count=40), DELTA).items()}
    assert full["exact"] < full["renyi"] < full["basic"]
    part = {name: quote.epsilon for name, quote in quotes(rounds(8.0, PART, 200), DELTA).items()}
    assert part["exact"] is None
    assert part["loss distribution"] < part["renyi"] < part["advanced"] < part["basic"]
    one = quotes(rounds(4.0, PART, 1), DELTA)  # amplification of one round is exact, so these two agree
    assert one["loss distribution"].epsilon == pytest.approx(one["basic"].epsilon, abs=2e-4)


def test_the_accountants_by_hand():
    # Three rounds at z = 5 on a fifth of the records.
    event = rounds(5.0, 200, 3)
    once = lambda delta: math.log1p(0.2 * math.expm1(exact_epsilon(5.0, 5 * delta)))  # noqa: E731
    assert quotes(event, 1e-5)["basic"].epsilon == pytest.approx(3 * once(1e-5 / 3))
    e = once(1e-5 / 6)
    by_hand = math.sqrt(6 * math.log(2e5)) * e + 3 * e * math.expm1(e)
    assert quotes(event, 1e-5)["advanced"].epsilon == pytest.approx(by_hand)


def test_fewer_records_a_round_cost_less():
    for name in ("basic", "advanced", "loss distribution", "price"):
        found = [ACCOUNTANTS.get(name, our_price)(rounds(4.0, m), DELTA).epsilon for m in (10, 145, 500, 999, 1000)]
        assert found == sorted(found)
        assert found[0] < 0.1 * found[-1]
    # The Rényi bound loses a factor near m = n, and the price falls back on the exact figure there.
    near = rounds(8.0, 999)
    assert ACCOUNTANTS["renyi"](near, DELTA).epsilon > 1.3 * rounds_epsilon(near, DELTA)
    assert rounds_epsilon(near, DELTA) == rounds_epsilon(rounds(8.0), DELTA)


class TestDpAccounting:
    """The finding at the top of accountants.py: noise over which sensitivity?"""

    def rdp(self, event, count):
        accountant = rdp.RdpAccountant(neighboring_relation=REPLACE_ONE)
        return accountant.compose(event, count).get_epsilon(DELTA)

    def test_the_figures_of_both_accountants(self):
        event = dp_accounting.GaussianDpEvent(8.0)
        by_loss = pld.PLDAccountant(REPLACE_ONE).compose(event, 7).get_epsilon(DELTA)
        assert self.rdp(event, 7) == pytest.approx(1.5447, abs=1e-4)
        assert by_loss == pytest.approx(3.0706, abs=1e-4)
        assert exact_epsilon(8 / math.sqrt(7), DELTA) == pytest.approx(1.4357, abs=1e-4)
        # RDP means our multiplier, the loss distribution half of it.
        assert by_loss == pytest.approx(exact_epsilon(4 / math.sqrt(7), DELTA), rel=1e-4)
        doubled = pld.PLDAccountant(REPLACE_ONE).compose(dp_accounting.GaussianDpEvent(16.0), 7)
        assert doubled.get_epsilon(DELTA) == pytest.approx(exact_epsilon(8 / math.sqrt(7), DELTA), rel=1e-4)

    def test_sampling_without_replacement_means_our_multiplier(self):
        event = dp_accounting.SampledWithoutReplacementDpEvent(1_000, 1_000, dp_accounting.GaussianDpEvent(8.0))
        assert self.rdp(event, 7) == pytest.approx(1.5447, abs=1e-4)
        assert not pld.PLDAccountant(REPLACE_ONE).supports(event)

    @pytest.mark.parametrize(("z", "m", "count"), [(4.0, 145, 7), (2.0, 588, 9), (1.0, 145, 7), (6.0, 500, 20)])
    def test_our_vectorised_bound_is_theirs(self, z, m, count):
        ours = subsampled_gaussian_epsilon(z, m / 1_000, count, DELTA)
        theirs = ACCOUNTANTS["renyi"](rounds(z, m, count), DELTA).epsilon
        assert ours == pytest.approx(theirs, rel=5e-3)  # other broken orders
        assert ours <= theirs * (1 + 1e-9)

    @pytest.mark.parametrize("z", [0.5, 2.0, 30.0, 300.0])
    def test_our_moments_against_sums_in_many_digits(self, z):
        ours = log_central_moments(z, 40)
        with mpmath.workdps(400):
            cumulant = lambda i: mpmath.mpf(i * (i - 1)) / 2 / mpmath.mpf(z) ** 2  # noqa: E731
            for place, order in ((0, 2), (4, 10), (19, 40)):
                terms = [
                    (-1) ** (order - i) * mpmath.binomial(order, i) * mpmath.exp(cumulant(i)) for i in range(order + 1)
                ]
                assert ours[place] == pytest.approx(float(mpmath.log(mpmath.fsum(terms))), rel=1e-11, abs=1e-11)

    def test_their_alternating_sums_cancel_at_large_multipliers(self):
        # Why the price does not rest on them: eight times too much here (never too little in our searches).
        event = rounds(300.0, PART)
        assert ACCOUNTANTS["renyi"](event, DELTA).epsilon > 5 * rounds_epsilon(event, DELTA)


class TestCalibration:
    @pytest.mark.parametrize(
        ("epsilon", "delta", "m", "count"),
        list(itertools.product([0.05, 0.7, 6.0], [1e-9, 1e-4], [20, 145, 900, 1000], [7])),
    )
    def test_the_price_of_the_multiplier_is_the_budget(self, epsilon, delta, m, count):
        z = rounds_multiplier(epsilon, delta, 1_000, m, count)
        assert epsilon * (1 - 1e-8) <= rounds_epsilon(rounds(z, m, count), delta) <= epsilon * (1 + 1e-10)
        assert rounds_epsilon(rounds(z / 1.01, m, count), delta) > epsilon

    def test_a_full_batch_needs_what_one_release_needs(self):
        for epsilon in (0.1, 1.0):
            single = gaussian_multiplier(epsilon, DELTA)
            assert rounds_multiplier(epsilon, DELTA, 50, 50, 9) == pytest.approx(3 * single, rel=1e-12)

    def test_a_minibatch_never_needs_more_than_the_full_batch(self):
        found = [rounds_multiplier(0.7, DELTA, 1_000, m, 7) for m in (10, 145, 500, 990, 1000)]
        assert found == sorted(found)

    def test_a_budget_that_is_none_is_refused(self):
        for wrong in ({"epsilon": 0.0}, {"delta": 1.0}, {"batch_size": 11}):
            with pytest.raises(SpecError):
                rounds_multiplier(**{"epsilon": 1.0, "delta": DELTA, "n": 10, "batch_size": 5, "rounds": 3, **wrong})

    def test_the_second_question_is_answered_at_once(self):
        rounds_multiplier(0.77, DELTA, 1_000, 145, 7)
        before = rounds_multiplier.cache_info().hits
        rounds_multiplier(0.77, DELTA, 1_000, 145, 7)
        assert rounds_multiplier.cache_info().hits == before + 1


def drawn(count=4, each=0.05):
    return ExponentialDraws(count=count, epsilon_each=each, sensitivity=1.0)


def coins(epsilon, t):
    """The law with losses t and t - epsilon: its two chances in each world."""
    rest = math.expm1(t) / math.expm1(epsilon)
    p = -math.expm1(t - epsilon) / -math.expm1(-epsilon)
    return np.array([p, rest]), np.array([p * math.exp(-t), rest * math.exp(epsilon - t)])


class TestStartAndRounds:
    """Draws of the exponential mechanism and Gaussian rounds under one price."""

    def test_the_price_of_a_whole_run_is_below_the_sum_and_above_the_rounds(self):
        cost = price((drawn(), rounds()), DELTA)
        assert rounds_epsilon(rounds(), DELTA) < cost.epsilon < 0.2 + rounds_epsilon(rounds(), DELTA)
        assert cost.delta == DELTA
        assert [name for name, _ in cost.stages] == ["start (DAP)", "ascent"]
        assert sum(value for _, value in cost.stages) == pytest.approx(cost.epsilon)

    @pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.0, 4.0, 20.0])
    def test_a_draw_is_no_worse_than_its_gaussian_at_any_epsilon(self, epsilon):
        # All laws of that range are mixtures of these; the worst of them touches the Gaussian's curve.
        shift, nearest = draw_shift(epsilon), 0.0
        for t in np.linspace(0, epsilon, 401)[1:-1]:
            first, second = coins(epsilon, t)
            np.testing.assert_allclose([first.sum(), second.sum()], 1, rtol=1e-9)
            for at in np.linspace(-epsilon, epsilon, 81):
                exact = float(np.maximum(first - math.exp(at) * second, 0).sum())
                if at >= 0:
                    most = gaussian_delta(at, 1 / shift)
                else:
                    most = 1 - math.exp(at) + math.exp(at) * gaussian_delta(-at, 1 / shift)
                assert exact <= most + 1e-12
                if 0 < at < epsilon / 10 and exact > 1e-12:
                    nearest = max(nearest, exact / most)
        assert nearest > 0.95

    def test_the_gaussian_of_a_draw_cannot_be_smaller(self):
        first, second = coins(1.0, 0.5)
        assert first[0] - second[0] == pytest.approx(gaussian_delta(0.0, 1 / draw_shift(1.0)), rel=1e-9)
        assert first[0] - second[0] > gaussian_delta(0.0, 1 / (0.99 * draw_shift(1.0)))

    @pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 9.99e-4, 1.001e-3, 0.3, 5.0, 400.0])
    def test_the_draw_of_a_shift_is_its_inverse_and_never_above(self, epsilon):
        shift = draw_shift(epsilon)
        assert draw_of_shift(shift) == pytest.approx(epsilon, rel=1e-6)
        assert draw_shift(draw_of_shift(shift)) == pytest.approx(shift, rel=1e-6)
        assert epsilon / 2 * (1 - 1e-9) <= shift <= 0.62666 * epsilon or epsilon > 5

    @pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 64.0])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0])
    def test_a_draw_is_zcdp_with_an_eighth_of_the_square(self, order, epsilon):
        worst = 0.0
        for t in np.linspace(0, epsilon, 301)[1:-1]:
            first, second = coins(epsilon, t)
            worst = max(worst, float(np.log((first**order * second ** (1 - order)).sum())) / (order - 1))
        assert worst <= order * epsilon**2 / 8 * (1 + 1e-9)
        assert worst > 0.3 * order * epsilon**2 / 8 or order * epsilon > 10  # a divergence is at most epsilon too

    @pytest.mark.parametrize(("count", "each"), [(1, 0.3), (20, 0.05), (50, 0.004), (8, 2.0)])
    def test_no_price_is_below_the_truth_of_one_pair_of_worlds(self, count, each):
        # The coins with losses +-each/2, count times, and then full-batch rounds: their exact delta is a sum over the
        # number of heads of the Gaussian's curve.
        event = rounds()
        claimed = rounds_epsilon(event, DELTA, drawn(count, each))
        chance = 1 / (1 + math.exp(-each / 2))
        heads = np.arange(count + 1)
        law = stats.binom(count, chance).pmf(heads)
        losses = each / 2 * (2 * heads - count)
        z = event.multiplier / math.sqrt(event.rounds)
        left = claimed - losses
        curve = [
            gaussian_delta(x, z) if x >= 0 else 1 - math.exp(x) + math.exp(x) * gaussian_delta(-x, z) for x in left
        ]
        truth = float(law @ np.array(curve))
        assert truth <= DELTA * (1 + 1e-9)
        assert truth > 0.05 * DELTA or each > 1  # near the price, but for draws so large that others are worse

    def test_no_draws_cost_nothing_and_the_conversion_is_never_below_the_exact_gaussian(self):
        for z in (0.5, 2.0, 8.0, 40.0):
            exact = exact_epsilon(z / math.sqrt(7), DELTA)
            assert rounds_epsilon(rounds(z), DELTA, drawn(1, 1e-12)) == pytest.approx(exact, rel=1e-9)
            for each in (1e-3, 0.1, 1.0):
                assert rounds_epsilon(rounds(z), DELTA, drawn(3, each)) > exact

    def test_draws_priced_as_gaussian_rounds_agree_with_dp_accounting(self):
        # The Rényi side: e^2/8-zCDP is a Gaussian event of multiplier 2 / e.
        start, event = drawn(30, 0.2), rounds()
        accountant = rdp.RdpAccountant(None, REPLACE_ONE)
        accountant.compose(dp_accounting.GaussianDpEvent(event.multiplier), event.rounds)
        accountant.compose(dp_accounting.GaussianDpEvent(2 / start.epsilon_each), start.count)
        theirs = float(accountant.get_epsilon(DELTA))
        assert rounds_epsilon(event, DELTA, start) <= theirs * (1 + 1e-3)
        orders = 1 + np.geomspace(1e-3, 1e5, 4_000)
        rho = start.count * start.epsilon_each**2 / 8 + event.rounds / (2 * event.multiplier**2)
        assert epsilon_of_renyi(orders, orders * rho, DELTA) == pytest.approx(theirs, rel=5e-3)

    @pytest.mark.parametrize("m", [1_000, 145])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
    def test_noise_and_price_are_inverse(self, m, epsilon):
        shift = 0.3 / gaussian_multiplier(epsilon, DELTA)
        start = drawn(20, draw_of_shift(shift / math.sqrt(20)))
        z = rounds_multiplier(epsilon, DELTA, 1_000, m, 7, start)
        assert epsilon * (1 - 1e-8) <= rounds_epsilon(rounds(z, m), DELTA, start) <= epsilon * (1 + 1e-9)
        assert rounds_epsilon(rounds(z / 1.01, m), DELTA, start) > epsilon
        assert z > rounds_multiplier(epsilon, DELTA, 1_000, m, 7)

    def test_draws_that_cost_more_than_the_budget_are_refused(self, refused):
        refused(
            lambda: rounds_multiplier(0.1, DELTA, 1_000, 1_000, 7, drawn(50, 1.0)), "epsilon_each", 1.0, "cost more"
        )


def test_one_release_is_one_round():
    event = as_rounds(GaussianRelease(sensitivity=2.0, noise_scale=8.0))
    assert (event.rounds, event.multiplier, event.full_batch) == (1, 4.0, True)
    assert np.isfinite(quotes(event, DELTA)["renyi"].epsilon)


def test_a_new_accountant_is_one_entry(monkeypatch):
    monkeypatch.setitem(
        ACCOUNTANTS, "double", Accountant("twice the truth", lambda e, d: Quote(2 * rounds_epsilon(e, d)))
    )
    found = quotes(rounds(), DELTA)
    assert found["double"].epsilon == 2 * rounds_epsilon(rounds(), DELTA)
    chart = accountants_chart([0.5, 1.0], {0.5: found, 1.0: found}, 1.0, "seven rounds")
    assert "twice the truth" in [trace.name for trace in chart.figure.data]
    assert "priced six ways" in chart.sentence
    assert "twice the truth, ε" in chart.table.columns


class TestTheGaussianPriceOfDpAccounting:
    """Balle & Wang's formula twice, by two authors: dp-accounting's multiplier is that of one release."""

    @pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
    @pytest.mark.parametrize("multiplier", [0.5, 1.0, 4.2247, 30.0])
    def test_epsilon(self, multiplier, delta):
        theirs = gaussian_mechanism.get_epsilon_gaussian(multiplier, delta)
        assert exact_epsilon(multiplier, delta) == pytest.approx(theirs, rel=1e-6, abs=1e-9)

    @pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
    @pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 8.0])
    def test_noise(self, epsilon, delta):
        theirs = gaussian_mechanism.get_sigma_gaussian(epsilon, delta)
        assert gaussian_multiplier(epsilon, delta) == pytest.approx(theirs, rel=1e-6)
