"""DP-GRAMS, DP-GRAMS-C and DP-PMS as the paper's tables were run: to the printed digit where that is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgrams_core import METHODS, DataError, Dataset, SpecError, load_dataset, run, score
from dpgrams_core.methods.as_run import Rounds
from dpgrams_core.methods.dp_grams.as_run import (
    greedy_merge,
    plan_as_run,
    silverman,
    summed_contributions,
)
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.own_data.pricing import quote
from dpgrams_core.privacy.accountants import poisson_gaussian_epsilon, subsampled_gaussian_epsilon
from dpgrams_core.privacy.noise import ReleaseNoise, RepeatedDraws, SimulationNoise
from tests.places import ROOT

AS_RUN = {"calibration": "as_run"}
PRIVATE = {
    "dp_grams": ("modes", 2),
    "dp_grams_c": ("clusters", 2),
    "dp_pms": ("regression", 2),
}


def refused(act, *words):
    with pytest.raises(SpecError) as caught:
        act()
    for word in words:
        assert str(word) in str(caught.value)


def mine(kind, **facts):
    points = np.random.default_rng(0).uniform(0, 1, (60, 2))
    return Dataset(name="mine", kind=kind, points=points, box=[(0, 1)] * 2, **facts)


def test_the_promised_cell_comes_out_to_the_digit():
    data = load_dataset("four_corners", n=700, seed=42, design="as run")
    runs = [run("dp_grams", data, epsilon=0.1, delta=1e-6, seed=42 + r, **AS_RUN) for r in range(20)]
    errors = [score(release, data)["mse"] for release in runs]
    assert (round(np.mean(errors), 4), round(np.std(errors, ddof=1) / math.sqrt(20), 4)) == (0.7375, 0.0978)


@pytest.mark.parametrize(
    ("dataset", "place", "n", "h", "half", "candidates", "k", "steps", "batch", "clip"),
    [
        ("four_corners", 0, 700, 1.450, 4.61, 361, 12, 7, 106, 0.069),
        ("four_corners", 3, 5000, 1.041, 4.63, 529, 15, 9, 587, 0.096),
        ("t_mixture", 1, 1000, 1.681, 7.07, 841, 28, 7, 144, 0.298),
    ],
)
def test_its_settings_are_those_of_the_tables(
    dataset, place, n, h, half, candidates, k, steps, batch, clip
):  # as they were measured apart from this code
    data = load_dataset(dataset, n=n, seed=42 + place, design="as run")
    chosen = plan_as_run(DPGramsSpec(**AS_RUN), data)
    assert (round(chosen.h, 3), len(chosen.candidates), chosen.n_starts) == (h, candidates, k)
    assert (chosen.rounds.n_steps, chosen.rounds.batch_size) == (steps, batch)
    assert chosen.clip == pytest.approx(clip, abs=0.001)
    assert float(np.quantile(np.abs(data.points).max(axis=1), 0.9)) == pytest.approx(half, abs=0.01)
    spacing = (math.log(n) / n) ** (1 / 8)
    assert chosen.candidates.max() == pytest.approx(math.ceil(half / spacing) * spacing)


def test_what_is_given_takes_the_place_of_the_tables_settings(seed):
    data = load_dataset("four_corners", n=200, seed=seed, design="as run")
    usual = run("dp_grams", data, seed=seed, **AS_RUN)
    assert (usual.spec.clip_multiplier, usual.spec.init_fraction) == (0.1, 0.5)
    given = {"clip_multiplier": 1.0, "init_fraction": 0.3, "n_starts": 5, "bandwidth": 0.9, "batch_size": 40}
    other = run("dp_grams", data, seed=seed, **AS_RUN, **given)
    assert {name: getattr(other.spec, name) for name in given} == given
    again = run("dp_grams", data, seed=seed, **AS_RUN, **{**given, "init_fraction": None, "clip_multiplier": None})
    assert (again.spec.clip_multiplier, again.spec.init_fraction) == (0.1, 0.5)
    assert len(run("dp_grams", data, seed=seed, n_modes=4, **AS_RUN).modes) == 4
    # What a release says of itself makes it again.
    said = {name: getattr(usual.spec, name) for name in METHODS["dp_grams"].settings}
    np.testing.assert_array_equal(run("dp_grams", data, seed=seed, **said).modes, usual.modes)


def test_a_data_set_of_ones_own_has_the_usual_settings(seed):
    release = run("dp_grams", mine("modes"), seed=seed, **AS_RUN)
    assert (release.spec.clip_multiplier, release.spec.n_starts) == (0.1, math.ceil(5 * math.log(60)))
    assert release.spec.init_fraction == 0.1


def test_contributions_are_clipped_and_summed(seed):
    rng = np.random.default_rng(seed)
    batch, at, h, clip = rng.normal(size=(40, 2)), rng.normal(size=(5, 2)), 0.7, 0.03
    found, share = summed_contributions(batch, at, h, clip)
    cut = 0
    for place, x in enumerate(at):
        weights = [math.exp(-((a - x) ** 2).sum() / (2 * h**2)) for a in batch]
        pulls = [w * (a - x) / sum(weights) for w, a in zip(weights, batch, strict=True)]
        cut += sum(np.linalg.norm(q) > clip for q in pulls)
        wanted = sum(q * min(1, clip / np.linalg.norm(q)) for q in pulls)
        np.testing.assert_allclose(found[place], wanted, atol=1e-9)
    assert share == cut / 200
    far, _ = summed_contributions(batch, np.full((1, 2), 100.0), h, clip)
    assert (far == 0).all()  # a start without any record stands still


def test_ends_are_merged_in_the_order_of_the_starts():
    ends = np.array([[0.0, 0.0], [0.9, 0.0], [1.8, 0.0], [5.0, 5.0]])
    assert greedy_merge(ends, 1.0).tolist() == [[0.45, 0.0], [1.8, 0.0], [5.0, 5.0]]
    assert len(greedy_merge(ends, silverman(ends))) == 2


# The price in the kindest case, as it was computed apart from this code: n, ε, share of the start, δ, and both figures.
@pytest.mark.parametrize(
    ("n", "epsilon", "share", "delta", "ratio", "replaced", "added"),
    [
        (700, 0.1, 0.5, 1e-6, 4.43, 0.71, 0.18),
        (700, 1.0, 0.5, 1e-6, 0.443, 27, 5.3),
        (1000, 0.5, 0.5, 1e-6, 0.619, 16, 2.7),
        (1000, 1.0, 0.5, 1e-6, 0.310, 63, 10),
        (5000, 5.0, 0.5, 1e-6, 0.0178, 28_500, 2_860),
        (1000, 1.0, 0.1, 1e-6, 0.172, 227, 32),
        (1797, 1.0, 0.3, 1e-5, 0.111, 630, 67),
        (69_000, 0.05, 0.1, 1e-5, 0.0551, 3_900, 284),
    ],
)
def test_the_kindest_price_is_that_of_the_sheet(n, epsilon, share, delta, ratio, replaced, added):
    rounds = Rounds(
        n=n,
        batch_size=int(n / math.log(n)),
        n_steps=math.ceil(math.log(n)),
        epsilon=(1 - share) * epsilon,
        delta=delta,
    )
    z, part = rounds.noise_of_clip, rounds.batch_size / n
    assert z / 2 == pytest.approx(ratio, rel=0.01)
    assert subsampled_gaussian_epsilon(z / 2, part, rounds.n_steps, delta) == pytest.approx(replaced, rel=0.04)
    assert poisson_gaussian_epsilon(z, part, rounds.n_steps, delta) == pytest.approx(added, rel=0.04)
    ours = rounds.kindest_prices
    assert ours[1] < ours[0] <= subsampled_gaussian_epsilon(z / 2, part, rounds.n_steps, delta)


@pytest.mark.parametrize("method", PRIVATE)
def test_it_claims_nothing_and_says_what_is_known(method, seed):
    kind, _ = PRIVATE[method]
    name = {"modes": "four_corners", "clusters": "blobs", "regression": "sinusoid"}[kind]
    data = load_dataset(name, n=200, seed=seed, design="as run")
    release = run(method, data, seed=seed, epsilon=0.5, **AS_RUN)
    guarantee = release.guarantee
    assert (guarantee.status, guarantee.words, guarantee.epsilon, release.events) == ("none", "none", math.inf, ())
    assert METHODS[method].status_with(AS_RUN) == "none"
    assert "No guarantee: ε = 0.5" in guarantee.statement
    assert "Silverman" in guarantee.caveats[0]
    assert "kindest case" in guarantee.caveats[1]
    assert "attack" in guarantee.caveats[2]
    if method == "dp_grams":
        for found in (
            "4.3 at nominal 0.1",
            "3.1 at nominal 1",
            "6.0 at nominal 1",
            "5.0 at nominal 5",
            "0.65 at nominal 0.1",
        ):
            assert found in guarantee.caveats[2]
        replaced, added = plan_as_run(DPGramsSpec(epsilon=0.5, **AS_RUN), data).rounds.kindest_prices
        assert f"an ε of {added:.3g} when a record is added" in guarantee.caveats[1]
        assert f"{replaced:.3g} when one is replaced" in guarantee.caveats[1]
    assert release.trajectories.shape[0] == release.spec.n_steps + 1
    assert 0 <= release.diagnostics.clipped_share <= 1


class TestPrivateDataAreRefused:
    WORDS = ("calibration", "as_run", "simulated and public data only", "experiments, theorem, tight")

    @pytest.mark.parametrize("method", PRIVATE)
    def test_by_run_and_by_the_price_before_any_charge(self, method):
        data = mine(PRIVATE[method][0], private=True)
        refused(lambda: run(method, data, **AS_RUN), *self.WORDS)
        refused(lambda: quote(method, data, **AS_RUN), *self.WORDS)

    @pytest.mark.parametrize("method", PRIVATE)
    def test_by_the_method_itself_at_either_door(self, method):
        chosen = METHODS[method]
        private, public = mine(PRIVATE[method][0], private=True), mine(PRIVATE[method][0])
        with pytest.raises(DataError, match="Nothing was read"):
            chosen.function(private, chosen.spec(**AS_RUN), ReleaseNoise())
        refused(lambda: chosen.function(public, chosen.spec(**AS_RUN), ReleaseNoise()), *self.WORDS)

    def test_a_release_has_no_draws_to_repeat(self):
        with pytest.raises(RuntimeError, match="for simulations"):
            RepeatedDraws(ReleaseNoise())
        assert RepeatedDraws(SimulationNoise(3)).normals((2,)).tolist() == (
            np.random.default_rng(3).standard_normal(2).tolist()
        )
        source = (ROOT / "dpgrams_core/privacy/noise.py").read_text(encoding="utf-8")
        assert "RepeatedDraws" not in source.partition("class ReleaseNoise")[2]


class TestBadInput:
    @pytest.mark.parametrize("method", PRIVATE)
    @pytest.mark.parametrize("share", [0, 1, -0.1, 1.5])
    def test_a_share_of_nothing_or_all(self, method, share):
        data = mine(PRIVATE[method][0])
        words = ("init_fraction", share, "strictly between 0 and 1")
        refused(lambda: run(method, data, seed=0, init_fraction=share, **AS_RUN), *words)

    def test_more_starts_than_candidates(self):
        data = load_dataset("four_corners", n=200, seed=0, design="as run")
        few = [(0.0, 0.0), (1.0, 1.0)]
        words = ("n_starts = 3", "between 1 and the number of candidates, 2")
        refused(lambda: run("dp_grams", data, seed=0, candidates=few, n_starts=3, **AS_RUN), *words)
        assert len(run("dp_grams", data, seed=0, candidates=few, n_starts=2, **AS_RUN).anchors) == 2

    def test_more_starts_than_candidates_in_the_other_calibrations(self):
        """The printed algorithm opens its grid again; where starts at one place share their noise, none is drawn."""
        data, few = load_dataset("four_corners", n=200, seed=0), [(0.0, 0.0), (1.0, 1.0)]
        for printed in ("experiments", "theorem"):
            release = run("dp_grams", data, seed=0, calibration=printed, candidates=few, n_starts=3)
            assert len(release.anchors) == 3
        tight: dict = {"seed": 0, "calibration": "tight"}
        words = ("n_starts = 3", "between 1 and the number of candidates, 2, in the tight calibration")
        refused(lambda: run("dp_grams", data, candidates=few, n_starts=3, **tight), *words)
        refused(lambda: run("dp_grams", data, n_starts=226, **tight), "n_starts = 226", "candidates, 225")
        left_out = run("dp_grams", data, candidates=few, **tight)
        assert left_out.spec.n_starts == len(left_out.anchors) == 2  # so that the spec that ran can run again

    def test_more_starts_than_records(self):
        data = load_dataset("sinusoid", n=50, seed=0, design="as run")
        refused(
            lambda: run("dp_pms", data, seed=0, start_multiplier=20, **AS_RUN), "start_multiplier", 20, "at most 12.78"
        )
        refused(lambda: run("dp_pms", data, seed=0, **AS_RUN), "start_multiplier", 20, "50 records")

    @pytest.mark.parametrize(
        ("method", "options", "words"),
        [
            ("dp_grams", {"kernel": "gaussian4"}, ("kernel", "gaussian4", "gaussian")),
            ("dp_grams", {"batch_size": 61}, ("batch_size", 61, "between 1 and n = 60")),
            ("dp_grams", {"init_bandwidth": 1e-4}, ("init_bandwidth", "may have 1,000,000")),
            ("dp_grams", {"density_floor": 0.1}, ("density_floor", 0.1, "theorem and tight")),
            ("dp_grams", {"delta": 0.9, "n_steps": 1, "batch_size": 1}, ("delta", 0.9, "below 0.0417")),
            ("dp_pms", {"merge_radius": 0.1}, ("merge_radius", 0.1, "leave it out")),
            ("dp_pms", {"starts": "binned"}, ("starts", "binned", "leave it out")),
        ],
    )
    def test_what_it_does_not_have(self, method, options, words):
        data = mine(PRIVATE[method][0])
        more = {"start_multiplier": 2} if method == "dp_pms" and "starts" not in options else {}
        refused(lambda: run(method, data, seed=0, **AS_RUN, **more, **options), *words)

    def test_records_that_all_coincide(self):
        data = Dataset(name="mine", kind="modes", points=np.zeros((60, 2)), box=[(-1, 1)] * 2)
        refused(lambda: run("dp_grams", data, seed=0, **AS_RUN), "bandwidth", "gives 0 on these data")


def test_clusters_are_merged_to_the_true_count(seed):
    data = load_dataset("blobs", n=200, seed=seed, design="as run")
    assert len(run("dp_grams_c", data, seed=seed, **AS_RUN).modes) == 4
    told = run("dp_grams_c", data, seed=seed, n_clusters=3, **AS_RUN)
    assert (len(told.modes), told.spec.n_clusters, told.spec.n_modes) == (3, 3, None)


def test_public_candidates_are_started_from(seed):
    data = load_dataset("blobs", n=200, seed=seed, design="as run")
    places = data.points[::4]
    held = Dataset(
        name="held", kind="clusters", points=data.points, box=data.box, candidates=places, labels=data.labels
    )
    anchors = run("dp_grams_c", held, seed=seed, **AS_RUN).anchors
    assert {tuple(row) for row in anchors} <= {tuple(row) for row in places}


def test_dp_pms_starts_at_records_and_gives_every_end(seed):
    data = load_dataset("sinusoid", n=200, seed=seed, design="as run")
    release = run("dp_pms", data, seed=seed, **AS_RUN)
    assert len(release.curve) == math.ceil(20 * math.log(200)) == 106
    assert {tuple(row) for row in release.anchors} <= {tuple(row) for row in data.points}
    assert len({tuple(row) for row in release.anchors}) == 106  # those never chosen are open again
    assert (release.trajectories[-1][:, 0] == release.anchors[:, 0]).all()


@pytest.mark.parametrize(  # mean and standard error of the authors' code, each of 20 runs
    ("n", "epsilon", "mean", "error"), [(200, 0.5, 0.069, 0.004), (600, 1.0, 0.028, 0.001)]
)
def test_dp_pms_agrees_with_the_public_code(n, epsilon, mean, error):
    first = 100_000 * n + 1_000 * int(10 * epsilon)
    found = []
    for r in range(20):
        data = load_dataset("sinusoid", n=n, seed=50_000_000 + first + r, design="as run")
        release = run("dp_pms", data, seed=70_000_000 + first + r, epsilon=epsilon, delta=1e-5, **AS_RUN)
        found.append(score(release, data)["mse"])
    own = np.std(found, ddof=1) / math.sqrt(20)
    assert abs(np.mean(found) - mean) < 3 * math.hypot(own, error)


class TestDPKMeansAsRun:
    def test_its_bounds_are_read_off_public_records_only(self, seed):
        data = load_dataset("blobs", n=200, seed=seed, design="as run")
        one, two = (run("dp_kmeans", data, seed=seed, bounds=bounds).modes for bounds in ("box", "records"))
        assert not np.allclose(one, two)
        low, high = data.points.min(axis=0), data.points.max(axis=0)
        assert ((two >= low - 1e-9) & (two <= high + 1e-9)).all()
        private = Dataset(name="mine", kind="clusters", points=data.points, box=data.box, private=True)
        words = ("bounds", "records", "choose box")
        refused(lambda: run("dp_kmeans", private, bounds="records", n_clusters=4), *words)
        refused(lambda: quote("dp_kmeans", private, bounds="records", n_clusters=4), *words)
        refused(lambda: run("dp_kmeans", data, seed=0, bounds="mine"), "bounds", "mine", "box")

    def test_a_printed_cell_comes_out_to_the_digit(self):
        data = load_dataset("blobs", n=700, seed=1041, design="as run")
        runs = [run("dp_kmeans", data, seed=50_041 + r, epsilon=5.0, bounds="records") for r in range(20)]
        assert "not paid for" in runs[0].guarantee.caveats[-1]
        for measure, mean, error in (
            ("ari", 0.7217, 0.0084),
            ("nmi", 0.6932, 0.0053),
            ("centroid_mse", 0.1255, 0.0180),
        ):
            found = [score(release, data)[measure] for release in runs]
            assert (round(np.mean(found), 4), round(np.std(found, ddof=1) / math.sqrt(20), 4)) == (mean, error)


@pytest.mark.parametrize("epsilon", [1e2, 1e4, 1e6])
def test_next_to_no_noise_still_has_its_prices(epsilon):
    """Formulas and accountants would overflow, or take all memory: the price without sampling is an upper bound."""
    rounds = Rounds(n=1_000_000, batch_size=72_382, n_steps=14, epsilon=epsilon, delta=1e-6)
    replaced, added = rounds.kindest_prices
    assert 0 < rounds.noise_of_clip < 1e-3
    assert 1e6 < added < replaced < math.inf


def test_an_epsilon_without_any_noise_is_refused():
    data = load_dataset("four_corners", n=700, seed=42, design="as run")
    with pytest.raises(SpecError, match=r"^epsilon = .* at most as run"):
        run("dp_grams", data, seed=1, epsilon=1e9, **AS_RUN)
