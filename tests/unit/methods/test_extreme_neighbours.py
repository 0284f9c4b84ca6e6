"""A search for records that break a release: whatever one record is, nothing fails and no price is passed.

Every private method and calibration runs through the release door with one record replaced by each of the extremes.
The noise is recorded and not drawn: in every world it answers what it answered in the first, so that the exact vectors
of a round belong to the same earlier rounds and can be compared, as the proofs do.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from dpgrams_core import METHODS, Dataset, PrivacyLeakWarning, SpecError, run
from dpgrams_core.methods import registry as methods
from dpgrams_core.methods.registry import draw
from dpgrams_core.model.settings import CALIBRATIONS
from dpgrams_core.own_data.bounds import SENSITIVITY, coarse_edges, plan_range, private_range
from dpgrams_core.own_data.pricing import quote
from dpgrams_core.own_data.release import release
from dpgrams_core.privacy.events import ExponentialDraws
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.noise import Noise, ReleaseNoise, SimulationNoise, refuse_not_finite

N = 24
SIDE = 4.0
BEYOND = float(np.nextafter(SIDE, math.inf))
HUGE = float(np.finfo(float).max)
EXTREMES = (
    *(math.nan, math.inf, -math.inf, HUGE, -HUGE, 1e308, -1.7e308, 2e154, -2e154, 1e30),
    *(5e-324, -5e-324, 2.3e-308, -0.0, SIDE, -SIDE, BEYOND, -BEYOND, 1.2345),
)
ROUNDING = 1e-6  # of a sensitivity: what sums of this few records lose at most

# As run has no guarantee, and private data are refused by it before anything is read.
FOR_PRIVATE_DATA = [name for name, item in CALIBRATIONS.items() if item.status != "none"]
# Method, columns and settings: grids, sketches, all calibrations, kernels, starts and merges.
CASES = [
    *(("functional", columns, {"bandwidth": 1.0}) for columns in (1, 2, 3, 4, 6)),
    ("functional", 2, {"n_modes": 3}),
    ("functional_c", 2, {"n_clusters": 3}),
    ("functional_c", 5, {}),
    ("functional_regression", 2, {}),
    *(("dp_grams", columns, {"calibration": name}) for columns in (1, 2, 4) for name in FOR_PRIVATE_DATA),
    ("dp_grams", 2, {"calibration": "tight", "batch_size": N // 2, "n_modes": 2}),
    ("dp_grams", 2, {"calibration": "experiments", "kernel": "legendre4"}),
    ("dp_grams", 2, {"calibration": "theorem", "kernel": "gaussian4"}),
    *(
        ("dp_grams_c", columns, {"calibration": name, "n_clusters": 2})
        for columns in (2, 5)
        for name in FOR_PRIVATE_DATA
    ),
    *(
        ("dp_pms", 2, {"calibration": name, "starts": starts, "n_steps": 2})
        for name in FOR_PRIVATE_DATA
        for starts in ("sparse", "binned")
    ),
    ("dp_kmeans", 2, {"n_clusters": 3}),
    *(("noisy_histogram", columns, {"cells": 6}) for columns in (1, 2, 3)),
    *(("noisy_kmeans", columns, {"n_clusters": 3, "clip_radius": 0.2}) for columns in (1, 4)),
    ("hash_tree", 3, {"n_clusters": 3, "depth": 2}),
]
NAMES = [f"{name}-{columns}-{'-'.join(map(str, options.values()))}" for name, columns, options in CASES]
ALL_CASES = pytest.mark.parametrize(("method", "columns", "options"), CASES, ids=NAMES)


class Replay(Noise):
    """A release door that writes down what it is asked to cover and answers as it did in the first world."""

    door = "release"

    def __init__(self, answers=None):
        self.first = answers is None
        self.answers = [] if self.first else list(answers)
        self.asked, self._rng = [], SimulationNoise(0)

    def _answer(self, kind, exact, scale, make):
        self.asked.append((kind, np.array(exact, dtype=float), scale))
        place = len(self.asked) - 1
        if self.first:
            self.answers.append(make())
        return self.answers[place]

    def gumbel_argmax(self, log_weights):
        return self._answer("choice", log_weights, 1.0, lambda: self._rng.gumbel_argmax(log_weights))

    def independent_gaussian(self, exact, scale):
        refuse_not_finite(exact)
        return self._answer("gaussian", exact, scale, lambda: self._rng.independent_gaussian(exact, scale))

    def rotated_gaussian(self, exact, basis, scale):
        return self.independent_gaussian(exact, scale)

    def batch(self, n, size):
        return np.arange(size)  # the first record, which is the replaced one, is in every batch

    def library_seed(self):
        return 0


@pytest.fixture(autouse=True)
def quiet():
    """No warning but that a guarantee is not proven, which is no news of a record; others are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        yield


def private(points, kind, side=SIDE):
    points = np.asarray(points, dtype=float)
    return Dataset(name="mine", kind=kind, points=points, box=[(-side, side)] * points.shape[1], private=True)


def worlds(rng, method, columns):
    """Data sets that differ from the first in their first record; of DP-PMS in its response."""
    kind = METHODS[method].kind
    base = rng.uniform(-SIDE, SIDE, (N, columns))
    records = [base[0]]
    for value in EXTREMES:
        for last in (False, True):
            record = base[0].copy() if last or method == "dp_pms" else np.full(columns, value)
            record[-1] = value
            records.append(record)
    return [private(np.concatenate([record[None], base[1:]]), kind) for record in records]


def played(monkeypatch, method, options, data, answers=None):
    """What the noise was asked in one world, and the release."""
    noise = Replay(answers)
    monkeypatch.setattr(methods, "ReleaseNoise", lambda: noise)
    return noise, draw(method, data, epsilon=1.0, **options)


def check_price(events, worlds):
    """The vectors of any two worlds, one call after the other, lie within what the events charge for."""
    draws = [event for event in events if isinstance(event, ExponentialDraws)]
    (gaussian,) = (event for event in events if not isinstance(event, ExponentialDraws))
    moved = 0.0  # of each pair of worlds
    for calls in zip(*worlds, strict=True):
        kinds, vectors, scales = zip(*calls, strict=True)
        assert len({*kinds}) == len({*scales}) == 1
        exact = np.stack([vector.ravel() for vector in vectors])
        if kinds[0] == "gaussian":
            assert scales[0] == pytest.approx(gaussian.noise_scale, rel=1e-12)
            assert pdist(exact).max() <= gaussian.sensitivity * (1 + ROUNDING)
        else:
            open_ = np.isfinite(exact)
            assert (open_ == open_[0]).all()
            step = 2 * pdist(exact[:, open_[0]], "chebyshev")
            assert step.max() <= draws[0].epsilon_each * (1 + 1e-12)
            moved = moved + step
    assert np.max(moved) <= sum(event.count * event.epsilon_each for event in draws) * (1 + 1e-12)


def test_every_private_method_and_calibration_is_tried():
    tried = {(name, options.get("calibration")) for name, _, options in CASES}
    assert {name for name, _ in tried} == {name for name, item in METHODS.items() if item.private}
    for name in ("dp_grams", "dp_grams_c", "dp_pms"):
        assert {calibration for method, calibration in tried if method == name} == set(FOR_PRIVATE_DATA)


@pytest.mark.slow
@ALL_CASES
def test_no_extreme_record_fails_or_passes_the_price(method, columns, options, rng, monkeypatch):
    first, *others = worlds(rng, method, columns)
    noise, expected = played(monkeypatch, method, options, first)
    asked = [noise.asked]
    for data in others:
        again, result = played(monkeypatch, method, options, data, noise.answers)
        asked.append(again.asked)
        assert (result.events, result.guarantee, result.spec) == (expected.events, expected.guarantee, expected.spec)
        for name in ("modes", "curve", "trajectories"):
            value = getattr(result, name)
            assert value is None or np.isfinite(value).all()
    if expected.guarantee.status == "proven":
        assert any(kind == "gaussian" for kind, _, _ in asked[0])
        check_price(expected.events, asked)


def test_the_search_sees_a_door_left_open(rng, monkeypatch):
    monkeypatch.setattr(methods.Method, "admitted", lambda self, data: data)
    points = rng.uniform(-SIDE, SIDE, (N, 2))
    options = {"calibration": "tight", "n_steps": 1}
    noise, _ = played(monkeypatch, "dp_pms", options, private(points, "regression"))
    points[0, 1] = HUGE
    with np.errstate(all="ignore"), pytest.raises(RuntimeError, match="nothing was drawn"):
        played(monkeypatch, "dp_pms", options, private(points, "regression"), noise.answers)


ODD_DATA = {
    "all missing": lambda columns: np.full((N, columns), math.nan),
    "one missing value a row": lambda columns: np.where(np.eye(columns)[np.arange(N) % columns] > 0, math.nan, 1.0),
    "all equal": lambda columns: np.full((N, columns), 0.7),
    "all above the box": lambda columns: np.full((N, columns), HUGE),
    "half on either side": lambda columns: np.where(np.arange(N) % 2, math.inf, -math.inf)[:, None].repeat(columns, 1),
    "one record apart": lambda columns: np.concatenate([np.zeros((N - 1, columns)), np.full((1, columns), 5e-324)]),
    "tiny": lambda columns: 5e-324 * np.arange(N)[:, None].repeat(columns, 1),
}


@pytest.mark.slow
@ALL_CASES
def test_no_data_set_fails(method, columns, options, monkeypatch):
    monkeypatch.setattr(methods, "ReleaseNoise", Replay)
    for what, points in ODD_DATA.items():
        data = private(points(columns), METHODS[method].kind)
        result = draw(method, data, epsilon=1.0, **options)
        for name in ("modes", "curve"):
            value = getattr(result, name)
            assert value is None or np.isfinite(value).all(), what
        offer = quote(method, data, epsilon=1.0, **options)
        assert offer.guarantee == result.guarantee, what
        assert offer.events in ((), result.events), what


REPORTED = [
    ("dp_grams", {"calibration": "tight"}, 2e154, SIDE),
    ("dp_grams_c", {"calibration": "tight", "n_clusters": 2}, 2e154, SIDE),
    ("functional_regression", {}, 1.7e308, 0.25),
    ("dp_pms", {"calibration": "tight", "n_steps": 1}, 1.79e308, SIDE),
]


@pytest.mark.parametrize(("method", "options", "value", "side"), REPORTED, ids=[case[0] for case in REPORTED])
def test_what_failed_after_its_charge_is_released_and_kept(method, options, value, side, rng, tmp_path):
    points = rng.uniform(-side, side, (N, 2))
    points[-1, -1] = value
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    paid = release(method, private(points, METHODS[method].kind, side), ledger, epsilon=1.0, **options)
    assert paid.kept
    assert paid.release.guarantee.status == "proven"
    assert [charge.drawn for charge in ledger.charges()] == [True]


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_a_row_that_misses_a_value_adds_nothing_and_counts(columns, rng, monkeypatch):
    points = rng.uniform(-SIDE, SIDE, (N, columns))
    points[: N // 2, -1] = math.nan
    options = {"bandwidth": 1.0}
    noise, result = played(monkeypatch, "functional", options, private(points, "modes"))
    fewer, _ = played(monkeypatch, "functional", options, private(points[N // 2 :], "modes"))
    # The same number of coefficients: that of a sketch follows n, and here both have the least.
    np.testing.assert_allclose(noise.asked[0][1], fewer.asked[0][1], atol=1e-10)
    assert result.surface.n == N


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "columns", "options"),
    [case for case in CASES if METHODS[case[0]].bare is None and case[0] != "dp_kmeans"],  # whose noise is its own
)
def test_a_missing_value_elsewhere_stands_in_the_middle(method, columns, options, rng, monkeypatch):
    points = rng.uniform(-SIDE, SIDE, (N, columns))
    there, kind = points.copy(), METHODS[method].kind
    points[3, 0], there[3, 0] = math.nan, 0.0
    one, _ = played(monkeypatch, method, options, private(points, kind))
    other, _ = played(monkeypatch, method, options, private(there, kind), one.answers)
    for (_, first, _), (_, second, _) in zip(one.asked, other.asked, strict=True):
        np.testing.assert_array_equal(first, second)


def test_the_price_is_that_of_all_rows(rng, tmp_path):
    points = rng.uniform(-SIDE, SIDE, (N, 2))
    points[::2, 0] = math.nan
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    for method, options in (("functional_regression", {}), ("dp_pms", {"calibration": "tight", "n_steps": 1})):
        data = private(points, "regression")
        offer = quote(method, data, epsilon=0.5, **options)
        paid = release(method, data, ledger, epsilon=0.5, **options)
        assert paid.release.events == offer.events
        assert (paid.charge.epsilon, paid.charge.delta) == (offer.epsilon, offer.delta)
    assert offer.events[-1].n == N


@pytest.mark.parametrize("value", EXTREMES)
def test_private_bounds_take_any_value(value, rng):
    values = rng.uniform(0, 100, 5_000)
    plan = plan_range(len(values), 1.0, 1e-6)
    other = values.copy()
    other[0] = value
    asked = []
    for world in (values, other):
        noise = Replay(asked[0].answers if asked else None)
        found = private_range(world, plan, noise)
        assert (found.low, found.high) == (0.0, 128.0) or plan.rounds == 2
        asked.append(noise)
    for (_, one, scale), (_, two, _) in zip(asked[0].asked, asked[1].asked, strict=True):
        assert np.linalg.norm(one - two) <= SENSITIVITY
        assert scale == plan.sigma
    assert asked[0].asked[0][1].size == len(coarse_edges()) - 1


@pytest.mark.parametrize(
    "box",
    [
        [(-1e300, 1e300)],
        [(0, HUGE)],
        [(-1.0001e12, 0)],
        [(0, 1e-13)],
        [(5e-324, 1e-320)],
        [(1e9, 1e9 + 0.5)],
        [(0.0, 1.0), (1e300, 1.1e300)],
    ],
)
def test_a_box_beyond_reach_is_refused_by_its_bounds_alone(box):
    for points in (np.zeros((20, len(box))), np.full((20, len(box)), math.nan)):
        with pytest.raises(SpecError) as caught:
            Dataset(name="mine", kind="modes", points=points, box=box, private=True)
        assert caught.value.field == "box"


@pytest.mark.parametrize("box", [[(-1e12, 1e12)] * 2, [(0, 1e-12)] * 2, [(0, 1e-8)] * 2, [(1e12 - 2e3, 1e12)] * 2])
@pytest.mark.parametrize("method", ["functional", "dp_grams"])
def test_in_boxes_at_the_limit_no_record_decides_what_happens(box, method, rng, monkeypatch):
    monkeypatch.setattr(methods, "ReleaseNoise", Replay)
    low, high = np.array(box).T
    points = rng.uniform(low, high, (N, 2))

    def outcome():
        data = Dataset(name="mine", kind="modes", points=points, box=box, private=True)
        try:
            result = run(method, data, epsilon=1.0, **({} if method == "functional" else {"calibration": "tight"}))
        except SpecError as error:  # a default that the box makes too large or too small
            return str(error)
        return np.isfinite(result.modes).all()

    ordinary = outcome()
    points[: len(EXTREMES)] = np.array(EXTREMES)[:, None]
    assert outcome() == ordinary


class TestNoise:
    @pytest.mark.parametrize("noise", [SimulationNoise(0), ReleaseNoise()], ids=["simulation", "release"])
    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_nothing_is_drawn_for_what_is_not_finite(self, noise, value):
        bad = np.array([0.0, value, 1.0])
        calls = [
            lambda: noise.independent_gaussian(bad, 1.0),
            lambda: noise.covered_gaussian([bad], np.eye(3), 1.0),
            lambda: noise.covered_gaussian([np.zeros(3)], np.diag(bad), 1.0),
            lambda: noise.correlated_gaussian(np.diag(bad), 1.0, 2),
        ]
        if value != -math.inf:  # which closes a place
            calls.append(lambda: noise.gumbel_argmax(bad))
        for call in calls:
            with pytest.raises(RuntimeError, match=r"not finite reached the noise.*nothing was drawn"):
                call()

    @pytest.mark.parametrize("noise", [SimulationNoise(0), ReleaseNoise()], ids=["simulation", "release"])
    def test_nothing_to_choose_from(self, noise):
        with pytest.raises(RuntimeError, match="nothing to choose from"):
            noise.gumbel_argmax(np.full(3, -math.inf))
