"""Audits through the release door: the path that private data take, values that no ordinary data hold, failures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from dpgrams_core import METHODS, DataError
from dpgrams_core.auditing import PAIRS, audit, audit_text, game, pairs_for
from dpgrams_core.auditing.statistics import FAILED, NOT_FINITE
from dpgrams_core.cli.main import main
from dpgrams_core.methods.dp_grams.broken import BROKEN_METHODS
from dpgrams_core.methods.registry import Method
from dpgrams_core.model.results import Guarantee, Release
from dpgrams_core.privacy import noise as noise_module
from dpgrams_core.privacy.noise import ReleaseNoise, SimulationNoise

TRIALS, N = 200, 60
PMS = {"calibration": "tight", "gradient_clip": 1e3}
TIGHT = {"dp_grams": {"calibration": "tight"}, "dp_grams_c": {"calibration": "tight"}, "dp_pms": PMS}
PRIVATE = [name for name, method in METHODS.items() if method.private]


@pytest.fixture
def open_door(monkeypatch):
    """The release door as it was: records come in as they are, and what is no number reaches OpenDP, which takes 0."""
    monkeypatch.setattr(Method, "admitted", lambda self, data: data)
    monkeypatch.setattr(noise_module, "refuse_not_finite", lambda numbers: None)


def played(method, pair, **options):
    return audit(
        method, **{"pair": pair, "door": "release", "trials": TRIALS, "n": N} | TIGHT.get(method, {}) | options
    )


class TestTheFaultsThatWere:
    """What two reviews found by hand, the audit finds by itself; with the door it finds nothing."""

    @pytest.mark.parametrize("pair", ["largest_response", "infinite_response", "missing_response"])
    @pytest.mark.usefixtures("open_door")
    def test_one_response_that_overflows_gives_dp_pms_away(self, pair):
        result = played("dp_pms", pair, trials=150)  # 100 show ε ≥ 1.6, give or take 0.2: one in 300 missed
        assert result.claimed_status == "proven"
        assert result.caught, result.verdict

    @pytest.mark.parametrize("pair", ["largest_record", "overflowing_record", "missing_record"])
    @pytest.mark.parametrize("method", ["dp_grams", "dp_grams_c"])
    @pytest.mark.usefixtures("open_door")
    def test_a_run_that_fails_because_of_one_record_gives_it_away(self, method, pair):
        result = played(method, pair, trials=40)
        assert result.caught
        assert (result.statistic, result.best.false_positives) == (FAILED, 0)
        assert result.best.true_positives == result.best.trials

    def test_with_the_door_the_same_audit_catches_nothing(self, flake_rate):
        assert not played("dp_pms", "largest_response", confidence=1 - flake_rate).caught


@pytest.mark.parametrize("method", PRIVATE)
def test_no_record_whatsoever_makes_a_run_fail_or_its_numbers_none(method):
    for pair in (name for name in pairs_for(METHODS[method].kind, "release") if PAIRS[name].extreme):
        planned = game.plan_game(method, pair=pair, n=30, door="release", **TIGHT.get(method, {}))
        chunk = game.run_chunk(game.Chunk(planned, "second", 0, 10))
        assert not chunk.failed.any(), chunk.reason
        assert not chunk.rows[:, chunk.names.index(NOT_FINITE)].any()


class TestOutcomes:
    """A failure and a number that is none can be seen, at either door."""

    @dataclass(frozen=True, kw_only=True)
    class Spec:
        epsilon: float = 1.0
        delta: float = 1e-6

    def method(self, mean):
        def function(data, spec, noise):
            found = noise.independent_gaussian(np.zeros((1, 2)), 1.0) + mean(data.points.mean())
            guarantee = Guarantee(epsilon=spec.epsilon, delta=spec.delta, status="proven", statement="")
            return Release(method="own", modes=found, spec=spec, events=(), guarantee=guarantee)

        return Method("own", "modes", "Own", self.Spec, function)

    @pytest.mark.parametrize("door", ["simulation", "release"])
    def test_a_method_that_fails_in_one_world_only_is_caught(self, door):
        def mean(value):
            if value > -2.9:
                raise KeyError("oops")
            return 0.0

        result = audit(self.method(mean), door=door, trials=100, n=N)
        assert result.caught
        assert result.statistic == FAILED

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("door", ["simulation", "release"])
    def test_numbers_that_are_none_are_no_zeros(self, door, bad):
        result = audit(self.method(lambda value: bad if value > -2.9 else 0.0), door=door, trials=100, n=N)
        assert result.caught
        assert result.statistic == NOT_FINITE

    def test_failures_as_often_in_both_worlds_tell_nothing(self, flake_rate):
        result = audit(self.failing_sometimes(), trials=200, n=N, confidence=1 - flake_rate)
        assert not result.caught
        assert np.isfinite(result.tests[0].null_values).all()

    def failing_sometimes(self):
        def function(data, spec, noise):
            if noise.independent_gaussian(np.zeros(1), 1.0)[0] > 0:
                raise KeyError("oops")
            return self.method(lambda value: 0.0).function(data, spec, noise)

        return Method("own", "modes", "Own", self.Spec, function)

    def test_where_every_run_fails_the_reason_is_raised(self):
        def mean(value):
            raise KeyError("oops")

        with pytest.raises(DataError, match=r"could not be run.*KeyError: 'oops'"):
            audit(self.method(mean), trials=40, n=N)


class TestTheDoor:
    def test_it_is_the_path_that_private_data_take(self, monkeypatch):
        seen = []

        class Watched(ReleaseNoise):
            def independent_gaussian(self, exact, scale):
                seen.append(exact.size)
                return super().independent_gaussian(exact, scale)

        monkeypatch.setattr("dpgrams_core.methods.registry.ReleaseNoise", Watched)
        monkeypatch.setattr(SimulationNoise, "independent_gaussian", None)  # an error if anything calls it
        result = audit("functional", door="release", trials=40, n=30)
        assert len(seen) == 80
        assert (result.door, result.seed) == ("release", None)
        assert "through the release door, without a seed" in audit_text(result)

    def test_no_audit_there_can_be_repeated(self):
        one, two = (audit("dp_grams", door="release", trials=40, n=30, calibration="tight") for _ in range(2))
        assert one.tests[0].null_values != two.tests[0].null_values

    @pytest.mark.usefixtures("nothing_drawn")
    def test_a_seed_a_broken_method_and_another_door_are_refused(self, refused):
        refused(lambda: audit("functional", door="release", seed=0), "seed", 0, "takes no seed")
        refused(lambda: audit("functional", door="window"), "door", "window", "release, simulation")
        for name in BROKEN_METHODS:
            refused(lambda name=name: audit(name, door="release"), "method", name, "with privacy only")

    def test_a_pair_of_ones_own_takes_it_as_private_data_would(self, table, flake_rate):
        points = np.zeros((30, 2))
        moved = points.copy()
        moved[7] = (30.0, 4.0)  # beyond the box
        pair = (table(points), table(moved))
        result = audit("functional", pair=pair, door="release", trials=40, bandwidth=5.0, confidence=1 - flake_rate)
        assert not result.caught

    def test_the_command_line_has_both_doors(self, capsys):
        command = ["audit", "dp_grams", "--calibration", "tight", "--trials", "40", "--executor", "serial"]
        assert main([*command, "--door", "release", "--pair", "missing_record"]) == 0
        assert "on missing_record (n = 200)" in capsys.readouterr().out
        assert main([*command, "--door", "release", "--seed", "3"]) == 2
        assert "seed = 3" in capsys.readouterr().err
        assert main([*command, "--pair", "missing_record"]) == 2
        assert "release door" in capsys.readouterr().err


def test_a_claim_about_adding_or_removing_counts_twice_for_a_replaced_record():
    result = audit("dp_kmeans", epsilon=1.0, trials=40, n=30)
    assert (result.epsilon_claimed, result.claimed_status) == (2.0, "nominal")


@pytest.mark.parametrize("method", ["functional_regression", "dp_pms", "functional_c", "dp_grams_c"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_proven_methods_of_every_kind_are_not_caught_in_simulations(method, epsilon, seed, flake_rate):
    fixed = {"trials": TRIALS, "seed": seed, "n": N, "confidence": 1 - flake_rate}
    result = audit(method, epsilon=epsilon, **fixed, **TIGHT.get(method, {}))
    assert result.claimed_status == "proven"
    assert not result.caught


def test_too_little_noise_in_a_regression_is_caught(seed, monkeypatch):
    module = pytest.importorskip("dpgrams_core.methods.functional.modes")
    right = module.surface_sensitivity
    monkeypatch.setattr(module, "surface_sensitivity", lambda *facts: right(*facts) / 10)
    assert audit("functional_regression", epsilon=2.0, trials=TRIALS, seed=seed, n=N).caught
