"""The audit's parts: pairs, statistics, bounds, and a stream that is the same however it is run."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields, replace

import numpy as np
import psutil
import pytest
from scipy import stats

from dpgrams_core import DataError, SpecError
from dpgrams_core.auditing import PAIRS, audit, audit_text, game, neighbour_pair, pairs_for, stream_audit
from dpgrams_core.auditing.bounds import both_tests, choose_test, log_ratio
from dpgrams_core.auditing.statistics import Statistics, train, with_trained
from dpgrams_core.methods.dp_grams.broken import BROKEN_METHODS, broken_data_starts, broken_sum
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.results import Guarantee, Release
from dpgrams_core.numerics.statistics import clopper_pearson
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients
from dpgrams_core.privacy.noise import SimulationNoise

SMALL = {"trials": 60, "n": 30}
METHOD_OF = {"modes": "dp_grams", "regression": "dp_pms", "clusters": "dp_grams_c"}  # those that fill a missing value


class TestPairs:
    @pytest.mark.parametrize("n", [10, 51, 200])
    @pytest.mark.parametrize("name", PAIRS)
    def test_built_in_pairs_differ_in_one_record_inside_the_box_unless_that_is_the_point(self, name, n):
        for kind in PAIRS[name].kinds:
            pair = neighbour_pair(name, n, kind=kind, door="release")
            rows = np.flatnonzero((pair.first.points != pair.second.points).any(axis=1))
            assert len(rows) == 1
            assert pair.first.n == pair.second.n == n
            inside = [
                ((data.points >= data.box[:, 0]) & (data.points <= data.box[:, 1])).all(axis=1)
                for data in (pair.first, pair.second)
            ]
            assert inside[0].all()
            assert inside[1].sum() == n - PAIRS[name].extreme
            worlds = [METHODS[METHOD_OF[kind]].admitted(data).points[rows[0]] for data in (pair.first, pair.second)]
            np.testing.assert_array_equal(worlds, [pair.old, pair.new])

    def test_a_pair_that_only_private_data_can_hold_needs_the_release_door(self):
        for name, built_in in PAIRS.items():
            if built_in.extreme:
                with pytest.raises(SpecError, match=f"{name}.*release door"):
                    neighbour_pair(name)
            else:
                assert not neighbour_pair(name).first.private
        assert [name for name in PAIRS if PAIRS[name].extreme and "modes" in PAIRS[name].kinds]
        assert pairs_for("clusters", "release") == pairs_for("modes", "release")

    def test_a_pair_of_another_kind_is_refused_with_those_that_fit(self):
        with pytest.raises(SpecError, match=r"far_record.*regression data choose one of far_response"):
            audit("dp_pms", pair="far_record", trials=40)

    def test_a_pair_of_ones_own_is_taken(self, table):
        points = np.zeros((20, 2))
        moved = points.copy()
        moved[7] = (3, 4)
        pair = neighbour_pair((table(points), table(moved)))
        assert pair.new.tolist() == [3, 4]
        assert pair.old.tolist() == [0, 0]

    def test_a_pair_in_many_columns_is_audited_by_the_likelihood_ratio_of_its_sketch(self, table):
        points = np.zeros((40, 5))
        moved = points.copy()
        moved[7] = 3.0
        result = audit("functional", pair=(table(points), table(moved)), trials=60, epsilon=20.0, n_modes=1)
        # At epsilon 20 the two worlds are easy to tell apart, and the claim still holds.
        assert 0 < result.epsilon_lower < 20

    @pytest.mark.parametrize("changed", [0, 2, 20])
    def test_a_pair_that_differs_in_another_number_of_records_is_refused(self, changed, table):
        moved = np.zeros((20, 2))
        moved[:changed] = 1
        with pytest.raises(SpecError, match=rf"pair = .* exactly one record.* differ in {changed} rows"):
            audit("dp_grams", pair=(table(np.zeros((20, 2))), table(moved)))

    def test_other_things_that_are_no_pair_are_refused(self, table):
        one, longer = table(np.zeros((20, 2))), table(np.zeros((21, 2)))
        other = table(np.eye(20, 2), box=[(-9, 9)] * 2)
        for pair, words in (
            ((one, longer), "same number"),
            ((one, other), "same box"),
            ((one,), "two Datasets"),
            (3, "two Datasets"),
            ("nowhere", "far_record"),
        ):
            with pytest.raises(SpecError, match=words) as caught:
                neighbour_pair(pair)
            assert caught.value.field == "pair"

    def test_private_data_are_refused(self, table):
        moved = np.zeros((20, 2))
        moved[0] = 1
        with pytest.raises(DataError, match="The data are private"):
            neighbour_pair((table(np.zeros((20, 2)), private=True), table(moved, private=True)))


def release_of(**parts):
    guarantee = Guarantee(epsilon=1.0, delta=0.0, status="none", statement="")
    return Release(
        **{"method": "m", "modes": np.empty((0, 2)), "spec": None, "events": (), "guarantee": guarantee, **parts}
    )


def statistics_of(pair):
    return Statistics(pair, (pair.first.points, pair.second.points))


class TestStatistics:
    def test_no_modes_at_all_still_give_numbers(self):
        found = statistics_of(neighbour_pair("far_record")).of(release_of())
        assert all(math.isfinite(value) for value in found.values())
        assert found["modes: number near the new place"] == 0

    def test_distances_and_counts(self):
        pair = neighbour_pair("far_record")
        modes = np.stack([pair.new, pair.new + 0.5, pair.old - [3, 4]])
        found = statistics_of(pair).of(release_of(modes=modes))
        assert found["modes: old distance minus new"] == pytest.approx(5)
        assert found["modes: number near the new place"] == 2
        assert found["modes: number near the old place"] == 0

    def test_the_first_step_is_that_of_the_start_near_the_place(self):
        pair = neighbour_pair("counted_worst_case")
        path = np.array([[[-1.0, 0], [1, 0]], [[-1.0, 0], [1.5, 0]], [[0, 0], [4, 0]]])
        found = statistics_of(pair).of(release_of(trajectories=path, anchors=path[0]))
        assert found["first step near the new place: along the move"] == pytest.approx(0.5)
        assert found["first step near the old place: length"] == 0
        assert found["whole way from the new place: along the move"] == pytest.approx(3)

    def test_the_likelihood_ratio_of_a_surface_is_the_exact_one(self):
        pair = neighbour_pair("moved_record", 50)
        bases = box_bases(pair.first.box, 1.0)
        exact = [coefficients(data.points, bases) for data in (pair.first, pair.second)]
        found = []
        for array in exact:
            surface = ReleasedSurface(array, pair.first.box, 1.0, 2.0, 50)
            release = release_of()
            object.__setattr__(release, "surface", surface)
            found.append(statistics_of(pair).of(release)["surface: likelihood ratio"])
        # The record moves far, so its two kernels are orthogonal: squared distance 2 (less the projection).
        assert found[1] - found[0] == pytest.approx(((exact[1] - exact[0]) ** 2).sum())
        assert found[1] - found[0] == pytest.approx(2, rel=0.01)

    def test_the_trained_combination_finds_what_no_column_shows(self, rng):
        # Two columns share a large noise; only their difference tells the worlds apart.
        def world(shift):
            shared = 100 * rng.standard_normal(400)
            return np.stack([shared, shared + shift + rng.standard_normal(400), np.ones(400)], axis=1)

        first, second = world(0), world(20)
        both = [with_trained(rows, train(first, second))[:, -1] for rows in (first, second)]
        assert stats.mannwhitneyu(both[1], both[0], alternative="greater").pvalue < 1e-12
        assert stats.mannwhitneyu(second[:, 1], first[:, 1], alternative="greater").pvalue > 1e-12


class TestBounds:
    @pytest.mark.parametrize(("count", "trials"), [(0, 7), (7, 7), (1, 50), (24, 50), (990, 1000)])
    def test_clopper_pearson_is_scipys(self, count, trials):
        low, high = clopper_pearson(np.array([count]), trials, 0.005)
        known = stats.binomtest(count, trials).proportion_ci(0.99, method="exact")
        assert (low[0], high[0]) == pytest.approx((known.low, known.high))

    def test_a_tiny_tail_keeps_its_meaning(self):
        low, high = clopper_pearson(np.array([3]), 100, 1e-12)
        assert stats.binom.sf(2, 100, low[0]) == pytest.approx(1e-12, rel=1e-6)
        assert stats.binom.cdf(3, 100, high[0]) == pytest.approx(1e-12, rel=1e-6)

    def test_the_ratio_takes_delta_off_first(self):
        assert float(log_ratio(np.array(0.5), np.array(0.1), 0.1)) == pytest.approx(math.log(4))
        assert float(log_ratio(np.array(0.05), np.array(0.1), 0.1)) == -math.inf

    def test_the_best_cut_is_found_in_either_direction(self):
        zeros, ones = np.zeros((200, 1)), np.ones((200, 1))
        assert choose_test(zeros, ones, 0.0, 0.01) == (0, True, 0.5)
        assert choose_test(ones, zeros, 0.0, 0.01) == (0, False, 0.5)

    @pytest.mark.parametrize("worlds", [(np.zeros((80, 3)), np.zeros((80, 3))), (np.zeros((80, 1)), np.zeros((80, 1)))])
    def test_no_information_is_zero_not_negative_and_a_number(self, worlds):
        for test in both_tests(*worlds, ["a", "b", "c"][: worlds[0].shape[1]], delta=1e-6, error=0.05):
            assert test.epsilon_lower == 0.0

    def test_full_information_is_the_log_of_the_trials(self):
        tests = both_tests(np.zeros((2000, 1)), np.ones((2000, 1)), ["a"], delta=1e-6, error=0.05)
        tail = 0.05 / 4
        low, high = tail ** (1 / 1000), 1 - tail ** (1 / 1000)
        for test in tests:
            assert (test.true_positives, test.false_positives, test.trials) == (1000, 0, 1000)
            assert test.epsilon_lower == pytest.approx(math.log((low - 1e-6) / high))

    def test_the_mirrored_test_sees_what_the_other_cannot(self):
        # An event that only the first world has: its complement is almost as likely in both.
        first, second = np.zeros((2000, 1)), np.zeros((2000, 1))
        first[::5] = first[1::5] = 1
        plain, mirrored = both_tests(first, second, ["a"], delta=1e-6, error=0.05)
        assert mirrored.swapped
        assert not plain.swapped
        assert mirrored.epsilon_lower > 3 > 1 > plain.epsilon_lower

    def test_the_choice_never_sees_the_trials_that_are_counted(self, rng):
        first, second = rng.standard_normal((2, 400, 3))
        plain = both_tests(first, second, ["a", "b", "c"], delta=0.0, error=0.05)
        changed = [rows.copy() for rows in (first, second)]
        for rows in changed:
            rows[1::2] += 50
        other = both_tests(*changed, ["a", "b", "c"], delta=0.0, error=0.05)
        for one, two in zip(plain, other, strict=True):
            assert (one.statistic, one.above, one.threshold) == (two.statistic, two.above, two.threshold)

    def test_only_the_other_half_is_counted(self):
        first = np.arange(80.0)[:, None]
        plain, _ = both_tests(first, first + 1000, ["a"], delta=0.0, error=0.05)
        assert plain.statistic == "a"
        assert plain.null_values == tuple(first[1::2, 0])
        assert plain.other_values == tuple(first[1::2, 0] + 1000)


class TestStream:
    @pytest.mark.slow
    def test_processes_give_what_the_serial_audit_gives(self, seed):
        one, two = (
            list(stream_audit("broken_data_starts", executor=executor, seed=seed, **SMALL))
            for executor in ("serial", "processes")
        )
        assert one == two
        assert [result.trials_done for result in one] == [6 * look for look in range(1, 11)]
        assert [result.complete for result in one] == [False] * 9 + [True]

    def test_the_audit_is_the_last_of_the_stream(self, seed):
        *_, last = stream_audit("dp_grams", seed=seed, **SMALL)
        assert audit("dp_grams", seed=seed, **SMALL) == last

    def test_another_seed_is_another_game_and_each_trial_has_its_own(self):
        results = [audit("dp_grams", seed=seed, **SMALL) for seed in (0, 1)]
        assert results[0].tests[0].null_values != results[1].tests[0].null_values
        rows = game.run_chunk(game.Chunk(game.plan_game("dp_grams", **SMALL), "first", 0, 20)).rows
        assert len(np.unique(rows, axis=0)) == 20

    def test_closing_a_serial_stream_runs_nothing_more(self, monkeypatch):
        started, right = [], game.run_chunk
        monkeypatch.setattr(game, "run_chunk", lambda chunk: started.append(chunk) or right(chunk))
        stream = stream_audit("dp_grams", **SMALL)
        first = next(stream)
        stream.close()
        assert len(started) == 2
        assert first.trials_done == 6

    @pytest.mark.slow
    def test_closing_a_stream_of_processes_leaves_no_process(self):
        others = set(psutil.Process().children())  # left running by other tests
        stream = stream_audit("dp_grams", executor="processes", trials=2000, n=30)
        assert next(stream).trials_done == 200
        stream.close()
        assert set(psutil.Process().children()) <= others

    def test_the_error_is_shared_by_all_results_of_a_stream(self, monkeypatch):
        spent, right = [], game.both_tests
        monkeypatch.setattr(
            game, "both_tests", lambda *rows, error, **more: spent.append(error) or right(*rows, error=error, **more)
        )
        list(stream_audit("dp_grams", confidence=0.9, **SMALL))
        assert sum(spent) == pytest.approx(0.1)
        assert spent[-1] == pytest.approx(0.05)

    @pytest.mark.parametrize(
        ("field", "value", "words"),
        [
            ("method", "magic", "broken_sum"),
            ("method", "mean_shift", "claims no privacy"),
            ("epsilon", 0, "above 0"),
            ("delta", 1.0, "between"),
            ("trials", 3, "at least 40"),
            ("seed", -1, "at least 0"),
            ("n", 2, "at least 10"),
            ("confidence", 1.0, "between"),
            ("executor", "threads", "serial"),
            ("speed", 3, "no such option"),
            ("clip_multiplier", -1, "above 0"),
        ],
    )
    def test_a_wrong_setting_is_refused_before_any_run(self, field, value, words, nothing_drawn):
        options = {"method": "dp_grams", **SMALL, field: value}
        with pytest.raises(SpecError, match=words) as caught:
            stream_audit(**options)
        assert caught.value.field == field

    def test_options_replace_the_settings_of_the_pair(self):
        spec = game.plan_game("dp_grams", n_steps=3, candidates=None, **SMALL).spec
        assert (spec.n_steps, spec.candidates, spec.batch_size) == (3, None, 30)


class TestWords:
    @pytest.fixture(scope="class")
    @classmethod
    def result(cls):
        return audit("broken_sum", epsilon=1.0, trials=200, n=30)

    def test_a_catch_is_said(self, result):
        assert result.caught
        assert result.claimed_status == "none"
        assert result.verdict.startswith("Caught: broken_sum claims ε = 1,")
        assert "95% confidence" in result.verdict

    def test_a_pass_proves_nothing_and_says_so(self, result):
        passed = replace(result, epsilon_claimed=100.0)
        assert not passed.caught
        assert "This proves nothing" in passed.verdict

    def test_the_text_holds_counts_intervals_and_verdict(self, result):
        text = audit_text(result)
        best = result.best
        for words in (
            "n = 30",
            "200 runs",
            best.statistic,
            f"true positives {best.true_positives} of 100",
            f"{best.false_positive_interval[1]:.4f}",
            "mirrored",
            result.verdict,
        ):
            assert words in text
        assert "100 of 200 runs" in audit_text(replace(result, trials_done=100))

    def test_the_result_speaks_of_its_better_test(self, result):
        assert result.epsilon_lower == max(test.epsilon_lower for test in result.tests)
        assert result.statistic == result.best.statistic


class TestBroken:
    @pytest.fixture
    def data(self):
        return neighbour_pair("far_record", 40).first

    def test_they_are_kept_out_of_the_registry_and_say_what_they_are(self, data):
        assert not set(BROKEN_METHODS) & set(METHODS)
        for name, method in BROKEN_METHODS.items():
            release = method.function(data, DPGramsSpec(epsilon=0.7), SimulationNoise(0))
            assert (release.method, release.guarantee.status) == (name, "none")
            assert release.guarantee.epsilon == math.inf
            assert not method.private
            for words in ("Broken on purpose", "claims ε = 0.7", "False"):
                assert words in release.guarantee.statement

    def test_starts_are_records_plus_jitter(self, data):
        release = broken_data_starts(data, DPGramsSpec(bandwidth=1.0), SimulationNoise(0))
        distances = np.linalg.norm(release.anchors[:, None] - data.points[None], axis=-1).min(axis=1)
        assert len(distances) == 4
        assert 0 < distances.max() < 0.5

    def test_the_sum_is_the_mean_times_the_batch_with_the_same_noise(self, data):
        spec = DPGramsSpec(bandwidth=1.0, batch_size=40, n_steps=1, candidates=((-2.0, -2.0), (3.0, 3.0)))
        broken = broken_sum(data, spec, SimulationNoise(3))
        right = METHODS["dp_grams"].function(data, spec, SimulationNoise(3))
        np.testing.assert_array_equal(broken.anchors, right.anchors)
        assert broken.noise_scale == right.noise_scale
        larger, smaller = (release.trajectories[1] - release.trajectories[0] for release in (broken, right))
        exact = (larger - smaller) / 39  # the noise cancels
        assert np.linalg.norm(exact[0]) > 0
        again = broken_sum(data, replace(spec, epsilon=1e6), SimulationNoise(3))
        assert again.noise_scale < broken.noise_scale

    def test_another_calibration_is_refused(self, data):
        for name, method in itertools.product(("theorem",), BROKEN_METHODS.values()):
            with pytest.raises(SpecError, match="noise of experiments only"):
                method.function(data, DPGramsSpec(calibration=name), SimulationNoise(0))

    def test_every_broken_method_can_be_audited(self):
        for method in BROKEN_METHODS.values():
            assert {"epsilon", "delta"} <= {item.name for item in fields(method.spec)}
