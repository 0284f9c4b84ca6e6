"""Columns that are paid for: their price, their sensitivity against a search for bad neighbours, and the way back."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from dpgrams_core import Dataset, SpecError, audit, load_dataset, run, score
from dpgrams_core.methods import registry as methods
from dpgrams_core.methods.functional import paid
from dpgrams_core.methods.functional.clusters import _inner
from dpgrams_core.methods.functional.modes import choose_release_bandwidth
from dpgrams_core.methods.functional.paid import ColumnSums, column_events, leading, paid_multipliers
from dpgrams_core.methods.functional.spec import MOST_COMPONENTS, FunctionalCSpec
from dpgrams_core.numerics.sketch import check_resolution
from dpgrams_core.numerics.surface import box_bases
from dpgrams_core.own_data.pricing import quote
from dpgrams_core.privacy.accounting import price
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.composition import Spent, compose
from dpgrams_core.privacy.events import ExponentialDraws, GaussianRelease
from dpgrams_core.privacy.noise import Noise, SimulationNoise, refuse_not_finite

N, SIDE = 40, 4.0
HUGE = float(np.finfo(float).max)
EXTREMES = (math.nan, math.inf, -math.inf, HUGE, -HUGE, 2e154, 5e-324, -0.0, SIDE, -SIDE, 1.2345)


def clusters(points, private=False, box=None, **more):
    box = [(-SIDE, SIDE)] * np.shape(points)[1] if box is None else box
    return Dataset(name="mine", kind="clusters", points=points, box=box, private=private, **more)


class Replay(Noise):
    """A release door that writes down what it covers, and answers in every world as it did in the first."""

    door = "release"

    def __init__(self, answers=()):
        self.answers, self.asked, self._rng = list(answers), [], SimulationNoise(0)

    def independent_gaussian(self, exact, scale):
        refuse_not_finite(exact)
        self.asked.append((np.array(exact), scale))
        if len(self.asked) > len(self.answers):
            self.answers.append(self._rng.independent_gaussian(exact, scale))
        return self.answers[len(self.asked) - 1]

    rotated_gaussian = gumbel_argmax = batch = library_seed = None


Replay.__abstractmethods__ = frozenset()


@pytest.mark.parametrize(("epsilon", "delta", "share"), [(1.0, 1e-5, 0.3), (0.05, 1e-8, 0.01), (8.0, 1e-6, 0.9)])
def test_the_parts_are_the_whole_budget(epsilon, delta, share, rng):
    data = clusters(rng.uniform(-2, 2, (200, 5)))
    release = run(
        "functional_c", data, epsilon=epsilon, delta=delta, components=2, component_share=share, n_clusters=2, seed=0
    )
    assert [type(event) for event in release.events] == [GaussianRelease] * 3
    multipliers = [event.noise_scale / event.sensitivity for event in release.events]
    assert sum(z**-2 for z in multipliers) == pytest.approx(gaussian_multiplier(epsilon, delta) ** -2, rel=1e-9)
    assert sum(z**-2 for z in multipliers[:2]) == pytest.approx(share * gaussian_multiplier(epsilon, delta) ** -2)
    cost = price(release.events, delta)
    assert cost.epsilon == pytest.approx(epsilon, rel=1e-8)
    assert cost.epsilon <= epsilon  # never above what is said
    assert sum(value for _, value in cost.stages) == pytest.approx(cost.epsilon)
    assert (release.guarantee.epsilon, release.guarantee.delta) == (epsilon, delta)
    # The ledger composes the same way.
    spent = compose([Spent(epsilon, delta, "proven", release.events)])
    assert spent.tight_epsilon == pytest.approx(epsilon, rel=1e-8)


def test_gaussian_releases_compose_exactly_and_draws_still_add():
    one = GaussianRelease(sensitivity=2.0, noise_scale=2.0 * gaussian_multiplier(1.0, 1e-6))
    assert price([one], 1e-6).stages[0][0] == "the release"
    many = price([GaussianRelease(sensitivity=1.0, noise_scale=one.noise_scale * 1.5)] * 9, 1e-6)
    assert many.epsilon == pytest.approx(1.0, rel=1e-9)  # nine at three times the multiplier
    assert (
        many.epsilon
        < 0.5 * 9 * price([GaussianRelease(sensitivity=1.0, noise_scale=one.noise_scale * 1.5)], 1e-6).epsilon
    )
    draws = ExponentialDraws(count=2, epsilon_each=0.25, sensitivity=1.0)
    assert price([one, draws, one], 1e-6).epsilon == pytest.approx(0.5 + price([one, one], 1e-6).epsilon)


def worst(rng, sums, ranges, n=6):
    """The largest change that replacing a record was seen to make: corners, edges, extremes, and steps uphill."""
    p = len(ranges)
    rest = rng.uniform(-SIDE, SIDE, (n - 1, p))
    candidates = [np.full(p, value) for value in EXTREMES] + list(SIDE * np.eye(p)) + list(-SIDE * np.eye(p))
    candidates += list(rng.choice([-SIDE, SIDE], (12, p)))

    def moved(first, second):
        pair = [sums(np.vstack([record, rest])) for record in (first, second)]
        return float(np.linalg.norm(pair[0] - pair[1]))

    best, pair = max(((moved(a, b), (a, b)) for a, b in itertools.combinations(candidates, 2)), key=lambda one: one[0])
    for _ in range(200):
        tried = [np.clip(np.nan_to_num(one) + rng.normal(0, 0.5, p), -SIDE, SIDE) for one in pair]
        if (value := moved(*tried)) > best:
            best, pair = value, tried
    return best


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_no_neighbour_passes_the_sensitivities(p, rng):
    ranges = ((-SIDE, SIDE),) * p
    mean, moments = column_events(6, p, (5.0, 5.0))
    assert (mean.sensitivity, moments.sensitivity) == pytest.approx((2.0, math.sqrt(2)), rel=1e-9)
    found = worst(rng, ColumnSums(ranges), ranges)
    assert 1.99 < found <= mean.sensitivity  # and the bound is reached: opposite corners
    for middle in (np.zeros(p), rng.uniform(-1, 1, p), np.ones(p)):
        found = worst(rng, ColumnSums(ranges, tuple(middle)), ranges)
        assert found <= moments.sensitivity
        if p > 1 and not middle.any():
            assert found > 1.40  # reached too: two orthogonal records beyond the radius


def test_the_search_finds_a_missing_clip(rng, monkeypatch):
    ranges = ((-SIDE, SIDE),) * 3
    monkeypatch.setattr(paid, "in_ranges", lambda points, _: np.clip(points / SIDE, -3, 3))
    assert worst(rng, ColumnSums(ranges), ranges) > 2.1
    monkeypatch.undo()
    monkeypatch.setattr(np, "maximum", lambda radius, away: np.full(len(away), radius))  # nothing is shortened
    assert worst(rng, ColumnSums(ranges, (0.0,) * 3), ranges) > 1.5


@pytest.mark.parametrize(("columns", "components"), [(2, 1), (6, 3), (6, 6)])
def test_no_extreme_record_fails_or_passes_the_price(columns, components, rng, monkeypatch):
    base, asked, answers = rng.uniform(-SIDE, SIDE, (N, columns)), [], ()
    for value in (None, *EXTREMES):
        points = base.copy()
        if value is not None:
            points[0] = value
        noise = Replay(answers)
        monkeypatch.setattr(methods, "ReleaseNoise", lambda noise=noise: noise)
        options = {"n_clusters": 2, "components": components}
        release = methods.draw("functional_c", clusters(points, private=True), epsilon=1.0, **options)
        answers = noise.answers
        asked.append(noise.asked)
        assert release.guarantee.words == "proven"
    for one, other in itertools.combinations(asked, 2):
        for (first, scale), (second, same), event in zip(one, other, release.events, strict=True):
            assert scale == same == event.noise_scale
            assert np.linalg.norm(first - second) <= event.sensitivity


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused_in_a_simulation(value):
    with pytest.raises(Exception, match="missing or infinite"):
        clusters([[0.0, value]] * 60)


@pytest.mark.parametrize("points", [np.full((60, 3), math.nan), np.full((60, 3), HUGE), np.zeros((60, 3))])
def test_odd_private_data_are_released(points):
    release = run("functional_c", clusters(points, private=True), epsilon=1.0, n_clusters=2, components=2)
    assert (release.door, release.seed, release.guarantee.words) == ("release", None, "proven")
    assert np.isfinite(release.modes).all()


def test_a_record_that_misses_a_value_adds_nothing(rng):
    points, ranges = rng.uniform(-SIDE, SIDE, (3_000, 3)), ((-SIDE, SIDE),) * 3
    holes = points.copy()
    holes[::3, 1] = math.nan
    kept = np.delete(points, np.s_[::3], axis=0)
    for sums in (ColumnSums(ranges), ColumnSums(ranges, (0.1, 0.0, -0.2))):
        np.testing.assert_allclose(sums(holes), sums(kept), atol=1e-11)


def test_the_sums_are_those_of_a_slow_loop(rng):
    points, box = rng.uniform(-1, 5, (50, 3)), ((0.0, 4.0), (1.0, 2.0), (-3.0, 5.0))
    middle = (0.2, -0.1, 0.4)
    mean, moment = np.zeros(3), np.zeros((3, 3))
    for record in points:
        u = np.array(
            [min(1.0, max(-1.0, 2 * (x - low) / (high - low) - 1)) for x, (low, high) in zip(record, box, strict=True)]
        )
        mean += u / math.sqrt(3)
        way = u - middle
        way = way / max(0.5 * math.sqrt(3), math.sqrt(way @ way))
        moment += np.outer(way, way)
    np.testing.assert_allclose(ColumnSums(box)(points), mean)
    found = ColumnSums(box, middle)(points)
    np.testing.assert_allclose(np.linalg.norm(found), np.linalg.norm(moment))  # the norm is Frobenius'
    directions, spreads = leading(found, 3, 50, 3, 1e-9)
    values = np.linalg.eigvalsh(moment)[::-1]
    np.testing.assert_allclose(spreads, np.sqrt(values / 50) * 0.5 * math.sqrt(3), rtol=1e-6)
    np.testing.assert_allclose(directions @ moment @ directions.T, np.diag(values), atol=1e-8)


def test_noise_alone_is_one_direction_and_a_signal_is_found(rng):
    p, noise = 40, 3.0
    found = [len(leading(rng.normal(0, noise, p * (p + 1) // 2), p, 1_000, 6, noise)[1]) for _ in range(20)]
    assert np.mean(found) < 1.5
    direction = np.ones(p) / math.sqrt(p)
    first, second = np.triu_indices(p)
    signal = 400 * np.where(first == second, 1.0, math.sqrt(2)) / p
    directions, spreads = leading(signal + rng.normal(0, noise, len(first)), p, 1_000, 6, noise)
    assert abs(directions[0] @ direction) > 0.98
    assert spreads[0] == pytest.approx(math.sqrt(0.4) * 0.5 * math.sqrt(p), rel=0.05)


def test_centres_come_back_in_the_units_of_the_columns(rng):
    labels = rng.integers(3, size=6_000)
    places = np.array([[10.0, 300.0, -1.0, 0.0], [40.0, 100.0, 1.0, 0.5], [20.0, 700.0, 0.0, -0.5]])
    points = places[labels] + rng.normal(0, [2, 20, 0.1, 0.1], (6_000, 4))
    box = [(0.0, 50.0), (0.0, 1000.0), (-2.0, 2.0), (-1.0, 1.0)]
    options = {"epsilon": 8.0, "n_clusters": 3, "components": 3}
    for more in ({"scaled": True}, {}):
        release = run("functional_c", clusters(points, box=box, labels=labels, **more), seed=1, **options)
        sides = np.array([50.0, 1000.0, 4.0, 2.0])
        away = np.abs((release.modes[:, None] - places[None]) / sides).max(axis=-1)
        assert (away.min(axis=0) < 0.05).all()
        columns = release.paid
        np.testing.assert_array_equal(columns.ranges, box)
        # A new record is placed from the release alone, also after it was sent somewhere, and the way back undoes it.
        again = pickle.loads(pickle.dumps(columns))
        new = again.project(release.modes)
        np.testing.assert_allclose(again.back(new), release.modes, rtol=1e-9)
        np.testing.assert_array_equal(new, columns.project(release.modes))
        np.testing.assert_allclose(columns.place_of(release.modes), new, rtol=1e-9)  # nothing was clipped
        assert release.mode_covariances.shape == (3, 3, 3)  # in the bought columns
        assert ((release.half_widths / sides > 1e-4) & (release.half_widths / sides < 0.2)).all()
        far = again.project(np.array([[HUGE, -HUGE, math.inf, 0.0]]))
        assert ((far >= again.box[:, 0]) & (far <= again.box[:, 1])).all()
        np.testing.assert_allclose(release.bare_surface.box, again.box)


def test_the_box_is_of_the_release_alone(rng):
    points = rng.uniform(-SIDE, SIDE, (500, 4))
    points[0] = 1e9
    release = run("functional_c", clusters(points), epsilon=4.0, components=3, n_clusters=2, seed=0)
    event = release.events[1]
    _, spreads = leading(release.paid.sums[1], 4, 500, 3, event.noise_scale)
    half = np.minimum(paid.BOX_SPREADS * spreads, 4.0)
    np.testing.assert_allclose(release.paid.box[:, 1], np.maximum(half, half[0] / paid.MOST_ASPECT))


def test_the_public_rule_fits_every_box_that_can_come_out():
    """After the columns are drawn nothing may be refused: the budget would be spent for nothing."""
    for d in range(1, MOST_COMPONENTS + 1):
        for n, epsilon in ((1, 1e-6), (50, 0.01), (1_000_000, 1.0), (10**9, 1e4)):
            spec = FunctionalCSpec(epsilon=epsilon, components=d)
            for long in range(1, d + 1):  # so many long sides, the others as short as can be
                half = np.where(np.arange(d) < long, 1.0, 1 / paid.MOST_ASPECT)
                data = clusters(np.zeros((1, d)), box=np.stack([-half, half], axis=1))
                object.__setattr__(data, "points", np.broadcast_to(0.0, (n, d)))
                last = paid_multipliers(gaussian_multiplier(epsilon, spec.delta), paid.SHARE)[2]
                h = choose_release_bandwidth(_inner(spec), data, last).value
                if d > 3:
                    check_resolution(data.box, h)
                else:
                    box_bases(data.box, h)


def test_refusals_come_before_a_draw(rng):
    data = clusters(rng.uniform(-1, 1, (60, 2)))
    for options, field in (
        ({"components": 3}, "components"),
        ({"components": 0}, "components"),
        ({"components": 9}, "components"),
        ({"components": 1, "bandwidth": 1.0}, "components"),
        ({"component_share": 0.2}, "component_share"),
        ({"components": 1, "component_share": 1.0}, "component_share"),
    ):
        with pytest.raises(SpecError) as caught:
            run("functional_c", data, seed=0, **options)
        assert caught.value.field == field
    wide = clusters(np.zeros((1, 1_001)))
    with pytest.raises(SpecError, match="at most 1,000 columns"):
        run("functional_c", wide, components=2, seed=0)
    with pytest.raises(SpecError, match="columns of a table are public"):
        quote("functional_c", clusters(data.points, private=True), components=2)


def test_the_digits_need_no_condition():
    data = load_dataset("digits", design="public columns")
    release = run("functional_c", data, epsilon=4.0, n_clusters=10, components=6, seed=0)
    assert release.guarantee.words == "proven"
    assert release.modes.shape == (10, 64)
    assert score(release, data)["ari"] > 0.35


def test_the_audit_reaches_and_does_not_pass_the_claim(rng):
    points = np.zeros((20, 3))
    other = points.copy()
    points[0], other[0] = (4.0, 0.0, 0.0), (-4.0, 4.0, 0.0)
    pair = (clusters(points), clusters(other))
    result = audit("functional_c", pair=pair, trials=200, epsilon=1.0, components=2, n_clusters=2, seed=0)
    assert result.gaussian is not None
    assert 0.3 < result.gaussian.epsilon_lower <= 1.0
    assert not result.caught
