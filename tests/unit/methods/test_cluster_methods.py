"""DP-GRAMS-C and clustering by the functional release: centres, guarantees, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core import Dataset, SpecError, load_dataset, run, score
from dpgrams_core.methods.dp_grams.clusters import SPREAD_CANDIDATES, public_candidates
from dpgrams_core.numerics.centres import best_parted, released_centres, towards_peaks
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients

CENTRES = np.array([[-2.0, -2.0], [2.0, 2.0], [2.0, -2.0]])


@pytest.fixture
def blobs(rng):
    points = np.concatenate([rng.normal(centre, 0.4, (600, 2)) for centre in CENTRES])
    labels = np.repeat(np.arange(3), 600)
    return Dataset(name="blobs", kind="clusters", points=points, box=[(-4, 4), (-4, 4)], labels=labels)


def matched(found, truth=CENTRES):
    return np.array([np.linalg.norm(found - centre, axis=1).min() for centre in truth])


def test_the_functional_release_finds_the_centres(blobs, seed):
    release = run("functional_c", blobs, epsilon=1.0, n_clusters=3, seed=seed)
    assert release.guarantee.status == "proven"
    assert release.modes.shape == (3, 2)
    assert matched(release.modes).max() < 0.5
    assert score(release, blobs)["ari"] > 0.9


def test_an_unknown_number_of_clusters_is_found(blobs, seed):
    release = run("functional_c", blobs, epsilon=2.0, seed=seed)
    assert len(release.modes) == 3
    assert release.spec.n_clusters is None
    known = run("functional_c", blobs, epsilon=2.0, seed=seed, n_clusters=3)
    np.testing.assert_array_equal(release.modes, known.modes)  # chosen from the same release, which costs the same
    assert release.events == known.events


@pytest.mark.parametrize(
    ("dataset", "n", "least", "most"),
    [("blobs", 2_000, 3, 4), pytest.param("digits", None, 7, 15, marks=pytest.mark.slow)],
)
def test_an_unknown_number_costs_at_most_a_tenth_of_the_score(dataset, n, least, most):
    data, runs = load_dataset(dataset, n=n), range(3)
    ari = {}
    for count in (None, data.n_clusters):
        found = [run("functional_c", data, epsilon=2.0, delta=1e-5, seed=number, n_clusters=count) for number in runs]
        assert count is not None or all(least <= len(release.modes) <= most for release in found)
        ari[count] = np.mean([score(release, data)["ari"] for release in found])
    assert ari[None] >= 0.9 * ari[data.n_clusters]


def test_no_cluster_is_counted_where_nothing_stands_above_the_noise(blobs):
    assert len(run("functional_c", blobs, epsilon=0.001, seed=0).modes) == 0


def test_the_largest_count_that_parts_as_well_is_taken():
    places = np.array([[0.0], [1.0], [10.0], [11.0]])
    shares = np.full(4, 0.25)
    two, four = np.array([[0.5], [10.5]]), places + 0.01
    one = np.array([[5.5]])
    np.testing.assert_array_equal(best_parted([one, two], places, shares), two)
    np.testing.assert_array_equal(best_parted([one, two, four], places, shares), four)  # each record has its centre
    torn = np.array([[0.0], [1.0], [10.5]])  # a third centre that tears a pair apart, where shares are even
    middle = np.array([[0.5], [0.5], [10.0], [11.0]])
    np.testing.assert_array_equal(best_parted([one, two, torn], middle, shares), two)


@pytest.mark.slow
def test_a_sketch_gives_centres_in_many_columns(rng, seed):
    truth = 2.5 * np.array([[1, 1, 1, 1, 1], [-1, -1, 1, 1, -1], [1, -1, -1, -1, 1]])
    points = np.concatenate([rng.normal(centre, 0.5, (1500, 5)) for centre in truth])
    data = Dataset(name="wide", kind="clusters", points=points, box=[(-4, 4)] * 5, labels=np.repeat(np.arange(3), 1500))
    release = run("functional_c", data, epsilon=1.0, n_clusters=3, seed=seed)
    assert matched(release.modes, truth).max() < 1.0


@pytest.mark.parametrize(
    ("calibration", "status"), [("experiments", "nominal"), ("theorem", "as published"), ("tight", "proven")]
)
def test_dp_grams_c_has_the_guarantee_of_its_calibration(blobs, calibration, status):
    release = run("dp_grams_c", blobs, epsilon=5.0, calibration=calibration, n_clusters=3, seed=0)
    assert release.method == "dp_grams_c"
    assert release.guarantee.status == status
    assert len(release.modes) <= 3
    assert release.spec.n_clusters == 3


def test_dp_grams_c_is_dp_grams_with_another_name(blobs):
    modes = Dataset(name="same", kind="modes", points=blobs.points, box=blobs.box)
    one = run("dp_grams_c", blobs, epsilon=2.0, n_clusters=3, seed=4)
    two = run("dp_grams", modes, epsilon=2.0, n_modes=3, seed=4)
    np.testing.assert_array_equal(one.modes, two.modes)


def test_candidates_are_the_data_sets_own_or_a_public_spread_set(blobs):
    assert public_candidates(blobs, None) is None  # the grid of alg:dap-init fits two columns
    assert public_candidates(blobs, ((0.0, 0.0),)) == ((0.0, 0.0),)
    own = Dataset(name="own", kind="clusters", points=blobs.points, box=blobs.box, candidates=CENTRES)
    assert public_candidates(own, None) == tuple(map(tuple, CENTRES.tolist()))
    wide = Dataset(name="wide", kind="clusters", points=np.zeros((60, 6)), box=[(-4, 4)] * 6)
    spread = np.array(public_candidates(wide, None))
    assert spread.shape == (SPREAD_CANDIDATES, 6)
    assert (np.abs(spread) <= 4).all()


def test_a_fitted_representation_is_said(seed):
    data = load_dataset("digits", n=300)
    for method in ("functional_c", "dp_grams_c"):
        release = run(method, data, epsilon=1.0, n_clusters=10, seed=seed)
        assert set(data.representation.caveats) <= set(release.guarantee.caveats)
        assert data.representation.caveats


def test_centres_are_read_off_the_release_alone(rng):
    points = np.concatenate([rng.normal(centre, 0.4, (300, 2)) for centre in CENTRES])
    box = np.array([[-4.0, 4.0], [-4.0, 4.0]])
    exact = coefficients(points, box_bases(box, 0.6))
    surface = ReleasedSurface(exact + 5.0 * rng.standard_normal(exact.shape), box, 0.6, 5.0, len(points))
    found = released_centres(surface, 3)
    assert matched(found).max() < 0.4
    np.testing.assert_array_equal(found, released_centres(surface, 3))


def test_more_clusters_than_the_release_shows_are_not_made_up(rng):
    box = np.array([[-4.0, 4.0], [-4.0, 4.0]])
    wide = 3.0  # some places of its coarse grid only
    exact = coefficients(rng.normal(0.0, 0.1, (500, 2)), box_bases(box, wide))
    surface = ReleasedSurface(exact, box, wide, 1e-3, 500)
    found = released_centres(surface, 100)
    assert 1 <= len(found) < 100
    assert np.linalg.norm(found, axis=1).min() < wide


def test_centres_move_to_the_peak_of_a_lopsided_cluster(rng):
    places = np.concatenate([rng.normal(0.0, 0.2, (900, 2)), rng.normal([2.0, 0.0], 0.2, (100, 2))])
    moved = towards_peaks(places.mean(axis=0, keepdims=True), places, np.ones(1_000), 0.5)
    assert abs(moved[0, 0]) < abs(places[:, 0].mean())
    far = towards_peaks(np.array([[60.0, 0.0]]), places, np.ones(1_000), 0.5)
    assert np.isfinite(far).all()


def test_public_candidates_beyond_the_box_stand_at_its_edge(blobs):
    own = Dataset(name="own", kind="clusters", points=blobs.points, box=blobs.box, candidates=[(9.0, 0.0), (0.0, -9.0)])
    assert public_candidates(own, None) == ((4.0, 0.0), (0.0, -4.0))


@pytest.mark.parametrize("method", ["functional_c", "dp_grams_c"])
@pytest.mark.parametrize(("field", "value"), [("n_clusters", 0), ("n_clusters", 101), ("epsilon", 0.0), ("delta", 0.0)])
def test_bad_values_are_refused_before_anything_is_drawn(method, field, value, blobs, nothing_drawn):
    with pytest.raises(SpecError, match=field):
        run(method, blobs, seed=0, **{field: value})


def test_the_count_of_clusters_has_one_name(blobs, nothing_drawn):
    with pytest.raises(SpecError, match="the count is n_clusters"):
        run("dp_grams_c", blobs, seed=0, n_modes=3)


def test_candidates_of_the_wrong_width_are_refused(blobs, nothing_drawn):
    with pytest.raises(SpecError, match="candidates"):
        run("dp_grams_c", blobs, seed=0, candidates=((0.0, 0.0, 0.0),))
