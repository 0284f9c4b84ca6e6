"""Against which change of the data a guarantee holds, from the claim to the charge, the total and its words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dpgrams_core import Guarantee, load_dataset
from dpgrams_core.exports.report import guarantee_words
from dpgrams_core.own_data.pricing import quote
from dpgrams_core.own_data.release import release
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.composition import Spent, compose
from dpgrams_core.privacy.events import GaussianRelease
from dpgrams_core.privacy.ledger.book import Ledger

GAUSSIAN = (GaussianRelease(sensitivity=1.0, noise_scale=gaussian_multiplier(0.5, 1e-6)),)


def claim(neighbours, epsilon=0.5, delta=1e-6):
    return Guarantee(epsilon=epsilon, delta=delta, status="proven", statement="", neighbours=neighbours)


@pytest.fixture
def waves():
    return replace(load_dataset("sinusoid", n=60, seed=0), private=True, truth=None)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite3")


class TestReplacement:
    @pytest.mark.parametrize("neighbours", ["replace-one", "replace-one-response"])
    def test_a_claim_about_replacing_is_taken_as_it_is(self, neighbours):
        assert claim(neighbours).of_replacement == (0.5, 1e-6)

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
    def test_adding_and_removing_are_two_steps(self, epsilon):
        got = claim("add-or-remove-one", epsilon).of_replacement
        assert got == pytest.approx((2 * epsilon, (1 + math.exp(epsilon)) * 1e-6))

    def test_delta_stays_a_probability(self):
        for epsilon in (20.0, 1e6):
            assert 0.99 < claim("add-or-remove-one", epsilon).of_replacement[1] < 1

    def test_the_price_counts_two_steps(self, corners, restate):
        restate("dp_grams", "function", neighbours="add-or-remove-one")
        data = replace(corners, private=True)
        offer = quote("dp_grams", data, epsilon=1.5, delta=2e-6, calibration="tight", n_steps=3, n_starts=2)
        assert (offer.epsilon, offer.delta) == offer.guarantee.of_replacement
        assert offer.delta == pytest.approx((1 + math.exp(1.5)) * 2e-6)
        assert offer.events == ()


class TestResponses:
    """DP-PMS takes the predictors as public, and only that is promised."""

    def test_it_is_not_counted_twice_and_its_charge_says_what_it_protects(self, waves, ledger):
        paid = release("dp_pms", waves, ledger, epsilon=0.5, calibration="tight", n_steps=2)
        assert (paid.charge.epsilon, paid.charge.delta) == (0.5, paid.release.guarantee.delta)
        assert paid.charge.events == paid.release.events
        assert paid.charge.status == "proven, for responses only"
        assert "for responses only" in str(ledger.charges())
        totals = ledger.totals(paid.charge.account)
        assert (totals.unproven, totals.for_responses) == (0, 1)
        assert "a changed response" in totals.statement

    def test_its_words(self, waves):
        said = guarantee_words(quote("dp_pms", waves, calibration="tight", n_steps=2).guarantee)
        assert "the response of a record is A and not B" in said[1]
        assert not any("that a record is A" in sentence for sentence in said)

    def test_no_other_method_says_so(self, waves, corners):
        for method, data in (("functional_regression", waves), ("functional", corners)):
            assert quote(method, data).guarantee.neighbours == "replace-one"

    def test_totals_with_one_are_about_responses(self):
        records, responses = (Spent(0.5, 1e-6, f"proven{end}", GAUSSIAN) for end in ("", ", for responses only"))
        mixed, plain = compose([records, responses, records]), compose([records] * 3)
        assert (mixed.basic_epsilon, mixed.tight_epsilon) == (plain.basic_epsilon, plain.tight_epsilon)
        assert mixed.tight_epsilon < 1.5
        assert mixed.statement.startswith(plain.statement)
        assert "1 of them take the predictors as public" in mixed.statement
        assert plain.for_responses == 0
        assert "predictor" not in plain.statement

    def test_without_a_proof_they_add_as_charged(self):
        totals = compose([Spent(0.5, 1e-6, "nominal, for responses only", GAUSSIAN)] * 2)
        assert (totals.tight_epsilon, totals.unproven, totals.for_responses) == (1.0, 2, 2)
