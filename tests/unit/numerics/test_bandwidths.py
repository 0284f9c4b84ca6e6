"""Bandwidth rules against numbers worked out by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dpgrams_core import SpecError, load_dataset, run
from dpgrams_core.numerics.bandwidths import BANDWIDTH_RULES, BandwidthFacts, choose_bandwidth, mean_side

SQUARE = np.array([[-7.0, 7.0], [-7.0, 7.0]])


@pytest.fixture
def facts():
    def make(n=1000, d=2, epsilon=1.0, beta=3.0, points=None, box=SQUARE):
        points = np.zeros((n, d)) if points is None else points
        return BandwidthFacts(n=n, d=d, box=box, epsilon=epsilon, beta=beta, points=points)

    return make


@pytest.mark.parametrize(
    ("n", "d", "value"),
    # (ln n / n)^(1/(d+6)): ln 1000 / 1000 = 0.00690776, its eighth root 0.536929, and so on.
    [(1000, 2, 0.536929), (5000, 2, 0.450729), (1000, 1, 0.491285), (10_000, 6, 0.558500)],
)
def test_the_rate_rule(n, d, value, facts):
    assert BANDWIDTH_RULES["rate"].rule(facts(n=n, d=d)) == pytest.approx(value, rel=5e-6)


def test_the_default_is_the_rate_rule_times_a_share_of_the_box(facts):
    chosen = choose_bandwidth(None, None, facts(n=1000))
    assert chosen.value == pytest.approx(0.15 * 14 * 0.536929, rel=5e-6)
    assert (chosen.rule, chosen.public) == ("box_rate", True)
    wide = facts(n=1000, box=np.array([[0.0, 2.0], [0.0, 8.0]]))
    assert mean_side(wide.box) == pytest.approx(4)  # geometric mean
    assert choose_bandwidth(None, None, wide).value == pytest.approx(0.15 * 4 * 0.536929, rel=5e-6)


def test_silverman_with_a_known_spread(facts):
    # Columns with sample standard deviations 1 and 3, n = 4, d = 2: 2 * (4/4)^(1/6) * 4^(-1/6).
    unit = np.array([-1.0, -1.0, 1.0, 1.0]) * math.sqrt(3) / 2
    points = np.stack([unit, 3 * unit], axis=1)
    assert BANDWIDTH_RULES["silverman"].rule(facts(n=4, points=points)) == pytest.approx(2 * 4 ** (-1 / 6))
    # d = 1: (4/3)^(1/5) n^(-1/5) s
    assert BANDWIDTH_RULES["silverman"].rule(facts(n=4, d=1, points=unit[:, None])) == pytest.approx((1 / 3) ** 0.2)


def test_both_regimes_of_h_opt(facts):
    # n = 1000, d = 2, beta = 3: threshold = 0.00690776^(-1/8) / sqrt(1000 * 6.90776) = 0.0224086.
    rule = BANDWIDTH_RULES["h_opt"].rule
    rich = 0.536929  # (log n / n)^(1/(d + 2 beta)), here the same as the rate rule
    assert rule(facts(epsilon=0.02241)) == pytest.approx(rich, rel=5e-6)
    assert rule(facts(epsilon=5.0)) == pytest.approx(rich, rel=5e-6)
    assert rule(facts(epsilon=math.inf)) == pytest.approx(rich, rel=5e-6)
    assert rule(facts(epsilon=0.0224)) == pytest.approx(22.4 ** (-2 / 10), rel=1e-9)
    assert rule(facts(epsilon=0.001)) == pytest.approx(1.0, rel=1e-9)  # (1000 * 0.001)^(-1/5)
    assert rule(facts(beta=5.0)) == pytest.approx(0.00690776 ** (1 / 12), rel=5e-6)


def test_h_opt_gets_the_share_of_epsilon_that_the_ascent_has(corners):
    release = run("dp_grams", corners, epsilon=0.01, init_fraction=0.5, bandwidth="h_opt", seed=0)
    assert release.spec.bandwidth == pytest.approx((300 * 0.005) ** (-2 / 10))


def test_only_silverman_reads_the_records(facts, rng):
    one, two = facts(points=rng.normal(0, 1, (1000, 2))), facts(points=rng.normal(0, 5, (1000, 2)))
    for name, rule in BANDWIDTH_RULES.items():
        assert rule.public == (name != "silverman")
        assert (rule.rule(one) == rule.rule(two)) == rule.public


def test_a_fixed_value_is_taken_as_it_is_and_a_scale_multiplies_a_rule(facts):
    assert choose_bandwidth(0.7, None, facts()).value == 0.7
    assert choose_bandwidth(0.7, 3.0, facts()).value == 0.7
    assert choose_bandwidth("rate", 2.0, facts()).value == pytest.approx(2 * 0.536929, rel=5e-6)
    assert choose_bandwidth(0.7, None, facts()).rule == "fixed"


def test_a_rule_that_gives_zero_is_refused(facts):
    with pytest.raises(SpecError, match=r"silverman.*gives 0"):
        choose_bandwidth("silverman", None, facts())


@pytest.mark.parametrize("calibration", ["experiments", "theorem"])
def test_a_bandwidth_from_the_records_is_a_caveat_of_the_guarantee(calibration, corners):
    told = run("dp_grams", corners, seed=0, bandwidth="silverman", calibration=calibration).guarantee.caveats
    assert any("silverman" in text and "not paid for" in text for text in told)
    for rule in ("rate", "h_opt", "box_rate", 0.8):
        silent = run("dp_grams", corners, seed=0, bandwidth=rule, calibration=calibration).guarantee.caveats
        assert not any("not paid for" in text for text in silent)


def test_the_release_says_which_bandwidth_ran(corners):
    release = run("dp_grams", corners, seed=0, bandwidth="rate", bandwidth_scale=2.0)
    assert release.spec.bandwidth == pytest.approx(2 * (math.log(300) / 300) ** (1 / 8))
    assert release.spec.bandwidth_scale is None  # or running it again would scale twice


class TestABandwidthReadOffTheRecordsStaysThat:
    CASES = (
        ("dp_grams", "four_corners", {"calibration": "tight"}),
        ("functional", "four_corners", {}),
        ("functional_c", "digits", {}),
        ("dp_grams_c", "blobs", {"calibration": "tight"}),
        ("dp_pms", "sinusoid", {"calibration": "tight"}),
    )

    @pytest.mark.parametrize(("method", "dataset", "options"), CASES, ids=[case[0] for case in CASES])
    def test_when_the_settings_of_a_release_are_run_again(self, method, dataset, options, refused):
        data = load_dataset(dataset, n=300, seed=0)
        first = run(method, data, seed=0, bandwidth="silverman", **options)
        given = dataclasses.asdict(first.spec)
        again = run(method, data, seed=0, **given)
        assert again.guarantee == first.guarantee
        assert again.guarantee.status == "nominal"
        np.testing.assert_array_equal(again.modes, first.modes)
        private = dataclasses.replace(data, private=True)
        refused(lambda: run(method, private, **given), "bandwidth_from", "silverman", "read off the private records")

    def test_and_a_public_number_needs_no_such_word(self, corners, refused):
        assert run("functional", corners, seed=0).spec.bandwidth_from is None
        wrong = {"bandwidth": "rate", "bandwidth_from": "silverman"}
        refused(lambda: run("functional", corners, seed=0, **wrong), "bandwidth_from", "silverman", "as a number")
