"""What holds for every budget."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpgrams_core.privacy.accounting import batch_epsilon, gaussian_rounds_epsilon
from dpgrams_core.privacy.calibration import published_sigma, round_epsilon
from dpgrams_core.privacy.events import SubsampledGaussianRounds

budgets = st.fixed_dictionaries(
    {
        "epsilon": st.floats(1e-3, 50),
        "delta": st.floats(1e-12, 1e-2),
        "n": st.integers(50, 100_000),
        "share": st.floats(0.02, 1.0),
        "rounds": st.integers(1, 100),
    }
)
factors = st.floats(1.0, 20.0)


def sigma(budget, sensitivity=1.0, **changes):
    budget = {**budget, **changes}
    size = budget.get("batch_size", math.ceil(budget["share"] * budget["n"]))
    assume(2.5 * size * budget["rounds"] / (budget["n"] * budget["delta"]) > 1.3)
    return published_sigma(
        sensitivity,
        epsilon=budget["epsilon"],
        delta=budget["delta"],
        n=budget["n"],
        batch_size=size,
        rounds=budget["rounds"],
    )


def not_above(small, large):
    return small <= large * (1 + 1e-12)


@given(budget=budgets, factor=factors)
def test_more_epsilon_never_needs_more_noise(budget, factor):
    assert not_above(sigma(budget, epsilon=budget["epsilon"] * factor), sigma(budget))


@given(budget=budgets, factor=factors)
def test_more_delta_never_needs_more_noise(budget, factor):
    assert not_above(sigma(budget, delta=min(0.5, budget["delta"] * factor)), sigma(budget))


@given(budget=budgets, more=st.integers(0, 100))
def test_more_rounds_never_need_less_noise(budget, more):
    assert not_above(sigma(budget), sigma(budget, rounds=budget["rounds"] + more))


@given(budget=budgets, factor=factors)
def test_noise_is_proportional_to_the_sensitivity(budget, factor):
    assert sigma(budget, sensitivity=factor) == pytest.approx(factor * sigma(budget))


@given(budget=budgets, factor=st.floats(1.0, 5.0))
def test_a_larger_batch_needs_less_noise_where_the_first_term_binds(budget, factor):
    # Only there: epsilon_0 is 1 for any batch and the sensitivity falls like 1/m.  Elsewhere the gain of
    # a larger batch and the loss of amplification nearly cancel.
    small = math.ceil(budget["share"] * budget["n"])
    large = min(budget["n"], math.ceil(small * factor))
    for size in (small, large):
        first = math.log1p((math.e - 1) * size / budget["n"])
        assume(round_epsilon(1e6, budget["delta"], budget["n"], size, budget["rounds"]) == pytest.approx(first))
    assert not_above(sigma(budget, epsilon=1e6, batch_size=large), sigma(budget, epsilon=1e6, batch_size=small))


@given(budget=budgets)
def test_the_calibrated_noise_never_costs_more_than_the_budget(budget):
    size = math.ceil(budget["share"] * budget["n"])
    event = SubsampledGaussianRounds(
        rounds=budget["rounds"],
        n=budget["n"],
        batch_size=size,
        sensitivity=1.0,
        noise_scale=sigma(budget, sensitivity=size),
        sensitivity_proven=False,
    )
    paid = gaussian_rounds_epsilon(event, budget["delta"])
    assert paid <= budget["epsilon"] * (1 + 1e-9)
    # It is all spent, unless epsilon_0 has reached the 1 where the classical Gaussian mechanism ends.
    assert paid >= budget["epsilon"] * (1 - 1e-9) or batch_epsilon(event, budget["delta"]) == pytest.approx(1)
