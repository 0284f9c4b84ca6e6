"""k-means, DP-k-means and mean-shift clustering: what they give, say, refuse and never give out."""

from __future__ import annotations

import importlib
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import DataError, PrivacyLeakWarning, load_dataset, run, score
from dpgrams_core.methods.baselines.kmeans import _library_guarantee, library_budget
from dpgrams_core.methods.baselines.mean_shift import (
    EXACT_RECORDS,
    LEAST_STARTS,
    bounded_climb,
    default_bandwidth,
)
from dpgrams_core.model.representation import FITTED_CAVEAT
from dpgrams_core.privacy.noise import ReleaseNoise, SimulationNoise

METHODS_HERE = ("kmeans", "dp_kmeans", "mean_shift_c")


@pytest.fixture(scope="module")
def three(rng_of_module):
    """Three tight clouds of fifty, far apart: every method must find them."""
    from dpgrams_core import Dataset

    centres = np.array([[-5.0, -5.0], [0.0, 5.0], [6.0, -2.0]])
    labels = np.repeat(np.arange(3), 50)
    points = centres[labels] + rng_of_module.normal(0, 0.3, (150, 2))
    return Dataset(name="three", kind="clusters", points=points, box=[(-10, 10)] * 2, labels=labels)


@pytest.fixture(scope="module")
def rng_of_module(seed):
    return np.random.default_rng([seed, 5])


def ordered(centres):
    return centres[np.argsort(centres[:, 0])]


class TestEveryMethod:
    @pytest.mark.parametrize(
        ("method", "options", "runs"),
        # DP-k-means starts from random places and may miss a cloud: the best of twenty finds all.
        [("kmeans", {}, 1), ("dp_kmeans", {"epsilon": 1000.0}, 20), ("mean_shift_c", {"n_clusters": 3}, 1)],
    )
    def test_three_clear_clouds_are_found(self, method, options, runs, three, seed):
        best = max(score(run(method, three, seed=seed + i, **options), three)["ari"] for i in range(runs))
        assert best == pytest.approx(1.0)

    @pytest.mark.parametrize("method", METHODS_HERE)
    def test_the_same_seed_gives_the_same_centres(self, method, three):
        one, same = (run(method, three, seed=7, n_clusters=3) for _ in range(2))
        assert np.array_equal(one.modes, same.modes)
        assert (one.seed, one.door, one.method) == (7, "simulation", method)
        assert one.modes.shape == (3, 2)

    @pytest.mark.parametrize("method", METHODS_HERE)
    @pytest.mark.parametrize("count", [0, 2.5, "three", 101, True])
    def test_a_wrong_number_of_clusters_is_refused(self, method, count, three, refused):
        refused(lambda: run(method, three, seed=0, n_clusters=count), "n_clusters", count, "at least 1", "at most 100")

    @pytest.mark.parametrize("method", METHODS_HERE)
    def test_more_clusters_than_records_is_refused(self, method, table, refused):
        few = table(np.arange(10.0).reshape(5, 2), kind="clusters", labels=[0, 1, 0, 1, 0])
        refused(lambda: run(method, few, seed=0, n_clusters=6), "n_clusters", 6, "only 5 records")

    @pytest.mark.parametrize("method", METHODS_HERE)
    def test_one_cluster(self, method, three):
        release = run(method, three, seed=0, n_clusters=1)
        assert release.modes.shape == (1, 2)
        assert score(release, three)["ari"] == 0.0

    @pytest.mark.parametrize("method", METHODS_HERE)
    def test_a_constant_column_does_no_harm(self, method, three):
        flat = replace(three, points=np.stack([three.points[:, 0], np.zeros(three.n)], axis=1))
        assert np.isfinite(run(method, flat, seed=0, n_clusters=3).modes).all()

    @pytest.mark.parametrize("method", METHODS_HERE)
    def test_data_of_another_kind_are_refused(self, method, corners, refused):
        refused(lambda: run(method, corners, seed=0), "method", method, "clusters data")

    @pytest.mark.parametrize("method", ["kmeans", "dp_kmeans"])
    def test_the_number_of_classes_is_the_default_and_must_be_known(self, method, three, refused):
        assert len(run(method, three, seed=0).modes) == 3
        nameless = replace(three, labels=None)
        refused(lambda: run(method, nameless, seed=0), "n_clusters", None, "give a whole number")

    @pytest.mark.parametrize("method", ["kmeans", "mean_shift_c"])
    def test_those_without_privacy_say_so_and_are_refused_for_private_data(self, method, three):
        guarantee = run(method, three, seed=0, n_clusters=3).guarantee
        assert (guarantee.status, guarantee.epsilon) == ("none", math.inf)
        with pytest.raises(DataError, match="has no privacy"):
            run(method, replace(three, labels=None, private=True), n_clusters=3)


class TestKMeans:
    def test_the_centres_are_the_means_of_their_records(self, three):
        release = run("kmeans", three, seed=0)
        labels = release.diagnostics.labels
        means = [three.points[labels == k].mean(axis=0) for k in range(3)]
        np.testing.assert_allclose(release.modes, means, atol=1e-9)

    def test_fewer_distinct_records_than_clusters(self, table):
        twice = table([[0.0, 0.0]] * 5 + [[1.0, 1.0]] * 5, kind="clusters", labels=[0] * 5 + [1] * 5)
        assert run("kmeans", twice, seed=0, n_clusters=4).modes.shape == (4, 2)

    @pytest.mark.parametrize("count", [0, 101, 1.5])
    def test_the_number_of_starts_is_checked(self, count, three, refused):
        refused(lambda: run("kmeans", three, seed=0, n_init=count), "n_init", count, "at least 1")

    def test_more_starts_are_never_worse(self, seed):
        data = load_dataset("digits", n=400, seed=seed)
        sizes = []
        for n_init in (1, 10):
            centres = run("kmeans", data, seed=seed, n_init=n_init).modes
            sizes.append(np.square(data.points[:, None] - centres[None]).sum(axis=2).min(axis=1).sum())
        assert sizes[1] <= sizes[0] * (1 + 1e-9)  # the first start is the same


class TestDPKMeans:
    def test_nothing_exact_leaves(self, three):
        release = run("dp_kmeans", three, seed=0)
        assert release.diagnostics.labels is None
        assert not hasattr(release, "inertia_")
        assert release.trajectories is None

    def test_the_guarantee_says_what_the_claim_is_worth(self, seed):
        guarantee = run("dp_kmeans", load_dataset("iris"), seed=seed, epsilon=2.0).guarantee
        assert (guarantee.epsilon, guarantee.delta, guarantee.status) == (2.0, 0.0, "nominal")
        assert guarantee.neighbours == "add-or-remove-one"
        assert "does not hold" in guarantee.statement
        assert FITTED_CAVEAT in guarantee.caveats

    def test_data_whose_columns_are_their_own_need_no_caveat_on_them(self, three):
        assert FITTED_CAVEAT not in run("dp_kmeans", three, seed=0).guarantee.caveats

    def test_centres_stay_in_the_box_and_records_outside_are_counted(self, three):
        narrow = replace(three, box=np.array([(-1.0, 2.0), (-4.0, 4.0)]))
        release = run("dp_kmeans", narrow, seed=0)
        assert ((release.modes >= narrow.box[:, 0]) & (release.modes <= narrow.box[:, 1])).all()
        inside = ((narrow.points >= narrow.box[:, 0]) & (narrow.points <= narrow.box[:, 1])).all(axis=1)
        assert release.diagnostics.outside_box == narrow.n - inside.sum() > 0

    def test_a_record_outside_counts_as_one_on_the_edge(self, three):
        box = np.array([(-1.0, 2.0), (-4.0, 4.0)])
        clipped = replace(three, points=np.clip(three.points, box[:, 0], box[:, 1]), box=box)
        one, two = (run("dp_kmeans", data, seed=3).modes for data in (replace(three, box=box), clipped))
        np.testing.assert_allclose(one, two, atol=1e-12)

    def test_where_the_box_lies_makes_no_difference(self, three):
        # The library prices a sum by the width of the bounds, so it must see them about 0.
        far = replace(three, points=three.points + 1000.0, box=three.box + 1000.0)
        one, two = (run("dp_kmeans", data, seed=3).modes for data in (three, far))
        np.testing.assert_allclose(two - 1000.0, one, atol=1e-8)

    @pytest.mark.parametrize("epsilon", [0, -1.0, 1e-4, 2000.0, math.nan, "1"])
    def test_a_wrong_epsilon_is_refused(self, epsilon, three, refused):
        refused(lambda: run("dp_kmeans", three, seed=0, epsilon=epsilon), "epsilon", epsilon)

    @pytest.mark.parametrize("epsilon", [0.001, 1000.0])
    def test_the_ends_of_the_allowed_range_work(self, epsilon, three):
        assert np.isfinite(run("dp_kmeans", three, seed=0, epsilon=epsilon).modes).all()

    def test_there_is_no_delta(self, three, refused):
        refused(lambda: run("dp_kmeans", three, seed=0, delta=1e-6), "delta", 1e-6, "no such option")

    def test_the_library_leaves_the_warning_filters_alone(self, three):
        with warnings.catch_warnings():
            before = list(warnings.filters)
            run("dp_kmeans", three, seed=0)
            assert warnings.filters == before

    def test_a_default_accountant_of_the_user_is_not_charged(self, three):
        from diffprivlib import BudgetAccountant

        with BudgetAccountant(epsilon=0.01, delta=0) as mine:
            run("dp_kmeans", three, seed=0, epsilon=1.0)
            assert mine.total() == (0, 0)

    def test_private_data_take_no_seed_keep_nothing_and_are_warned_of(self, three, refused):
        mine = replace(three, labels=None, private=True)
        refused(lambda: run("dp_kmeans", mine, seed=0, n_clusters=3), "seed", 0, "has no seed")
        with pytest.warns(PrivacyLeakWarning, match="nominal"):
            one = run("dp_kmeans", mine, n_clusters=3)
        with pytest.warns(PrivacyLeakWarning, match="nominal"):
            two = run("dp_kmeans", mine, n_clusters=3)
        assert (one.door, one.seed) == ("release", None)
        assert not np.array_equal(one.modes, two.modes)
        with pytest.raises(DataError, match="Diagnostics"):
            _ = one.diagnostics

    def test_a_global_seed_does_not_fix_a_release(self, three):
        mine = replace(three, labels=None, private=True)
        centres = []
        for _ in range(2):
            np.random.seed(0)  # the library's start uses it; its noise must not
            with pytest.warns(PrivacyLeakWarning):
                centres.append(run("dp_kmeans", mine, n_clusters=3).modes)
        assert not np.array_equal(*centres)


class TestSeedsForLibraries:
    def test_a_simulation_hands_out_the_next_number_of_its_stream(self, seed):
        noise, same = SimulationNoise(seed), SimulationNoise(seed)
        numbers = [noise.library_seed() for _ in range(50)]
        assert numbers == [same.library_seed() for _ in range(50)]
        assert len(set(numbers)) > 45
        assert all(0 <= number < 2**31 for number in numbers)

    def test_the_release_door_hands_out_none(self):
        assert ReleaseNoise().library_seed() is None


class TestLibraryBudget:
    @pytest.mark.parametrize(("d", "more"), [(1, False), (2, False), (4, False), (5, True), (6, True), (20, True)])
    def test_the_swapped_shares_overspend_from_five_columns_on(self, d, more):
        assert (library_budget(1.0, clusters=5, n=1000, d=d).add_or_remove > 1.0) is more

    def test_replacing_is_removing_and_adding(self):
        budget = library_budget(0.5, clusters=3, n=100, d=2)
        assert (
            f"at most {2 * budget.add_or_remove:.3g} when one is replaced"
            in _library_guarantee(0.5, budget, "box").caveats[0]
        )


class TestMeanShift:
    def test_an_unknown_number_merges_by_radius(self, three):
        release = run("mean_shift_c", three, seed=0)
        np.testing.assert_allclose(ordered(release.modes), [[-5, -5], [0, 5], [6, -2]], atol=0.5)
        assert release.spec.bandwidth == pytest.approx(default_bandwidth(three.points, False))

    def test_fewer_modes_than_clusters_is_said(self, three):
        release = run("mean_shift_c", three, seed=0, bandwidth=1.5, n_clusters=8)
        assert len(release.modes) == 3
        assert release.guarantee.caveats == ("8 clusters were asked for, but there are only 3 modes.",)

    def test_a_part_of_the_records_is_drawn_by_the_seed_and_said(self, three):
        release = run("mean_shift_c", three, seed=0, n_clusters=3, n_starts=20)
        assert release.guarantee.caveats[0] == "Started from 20 of the 150 records, drawn by the seed."

    def test_many_records_are_bounded_and_say_so(self, seed):
        data = load_dataset("blobs", n=EXACT_RECORDS + 1, seed=seed)
        release = run("mean_shift_c", data, seed=0, n_clusters=4, bandwidth=0.05, n_starts=300)
        assert release.guarantee.caveats == (
            "Bounded: climbed from 300 of the 5,001 records, drawn by the seed, in at most 100 steps each.",
        )
        assert release.modes.shape == (4, 2)
        assert score(release, data)["ari"] > 0.5

    @pytest.mark.parametrize(("n", "starts"), [(8_000, 500), (30_000, 133), (60_000, LEAST_STARTS)])
    def test_the_default_number_of_starts_falls_with_the_records(self, n, starts, seed, monkeypatch):
        module = importlib.import_module("dpgrams_core.methods.baselines.mean_shift")  # the function has the same name
        monkeypatch.setattr(module, "PAIRS", 4_000_000)
        data = load_dataset("blobs", n=n, seed=seed)
        assert run("mean_shift_c", data, seed=0, n_clusters=4, bandwidth=1.0).spec.n_starts == starts

    def test_the_bounded_climb_goes_where_mean_shift_goes(self, three):
        ends = bounded_climb(three.points, 1.0, three.points[::10])
        for start, end in zip(three.points[::10], ends, strict=True):
            x = start
            for _ in range(100):
                weights = np.exp(-np.square(three.points - x).sum(axis=1) / 2)
                x = weights @ three.points / weights.sum()
            np.testing.assert_allclose(end, x, atol=0.01)

    def test_a_start_far_from_all_records_stays(self, three):
        far = np.array([[500.0, 500.0]])
        np.testing.assert_allclose(bounded_climb(three.points, 0.1, far), far)

    def test_far_from_the_origin_and_narrow_keeps_its_digits(self, three):
        moved = bounded_climb(three.points + 1e6, 0.02, three.points[:5] + 1e6) - 1e6
        np.testing.assert_allclose(moved, bounded_climb(three.points, 0.02, three.points[:5]), atol=1e-5)

    def test_records_that_are_all_the_same_are_refused(self, table, refused):
        same = table(np.ones((60, 2)), kind="clusters", labels=[0] * 60)
        refused(lambda: run("mean_shift_c", same, seed=0), "bandwidth", None, "all records are the same")

    @pytest.mark.parametrize(
        ("options", "field"),
        [
            ({"bandwidth": -1.0}, "bandwidth"),
            ({"bandwidth": "scott"}, "bandwidth"),
            ({"bandwidth_scale": 0.0}, "bandwidth_scale"),
            ({"beta": 2.0}, "beta"),
            ({"n_starts": 0}, "n_starts"),
            ({"bandwidth": 1e9}, "bandwidth"),
        ],
    )
    def test_wrong_settings_are_refused(self, options, field, three, refused):
        refused(lambda: run("mean_shift_c", three, seed=0, **options), field, options[field])

    def test_a_rule_and_a_scale(self, three):
        plain, twice = (run("mean_shift_c", three, seed=0, bandwidth_scale=s).spec.bandwidth for s in (1.0, 2.0))
        assert twice == pytest.approx(2 * plain)
        assert run("mean_shift_c", three, seed=0, bandwidth="silverman").spec.bandwidth > 0
