"""Rounding: the slack of every sensitivity, held against sums in high precision over neighbours made to be bad."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpgrams_core.methods.dp_grams import starts
from dpgrams_core.methods.dp_grams.rounds import block_sums, joint_covariance, kernel_sums, round_sensitivity
from dpgrams_core.methods.dp_grams.starts import ball_counts, naive_counts
from dpgrams_core.numerics.rounding import (
    SMALLEST_EIGENVALUE,
    SOLVER,
    UNIT,
    draw_epsilon,
    lift,
    running_sum,
    whitened_axes,
    with_rounding,
)
from dpgrams_core.numerics.sketch import (
    PAIRS,
    SKETCH_SENSITIVITY,
    STEP,
    feature_sums,
    on_circle,
    sketch_sensitivity,
    vertices,
)
from dpgrams_core.numerics.surface import box_bases, coefficients, functionals, node_counts, surface_sensitivity
from dpgrams_core.privacy.noise import SimulationNoise

SIZES = (10, 1_000, 30_000)
BOX = np.array([[0.0, 10.0], [0.0, 10.0]])


def exact(values) -> np.ndarray:
    """Numbers as mpmath's, which hold 50 digits."""
    return np.vectorize(mpmath.mpf, otypes=[object])(np.asarray(values, dtype=float))


def size_of(values) -> float:
    return float(mpmath.sqrt(sum(value * value for value in np.ravel(values))))


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


class TestSums:
    def test_it_is_rounded_once_in_any_order(self, rng):
        parts = [rng.normal(0, 1, 3) * 10.0 ** rng.integers(-12, 12) for _ in range(2_000)]
        true = np.array([math.fsum(part[j] for part in parts) for j in range(3)])
        for _ in range(4):
            rng.shuffle(parts)
            np.testing.assert_allclose(running_sum(parts), true, rtol=2 * UNIT, atol=0)

    def test_plain_addition_would_not_be(self):
        parts = [np.array([0.1])] * 100_000
        true = math.fsum(float(part[0]) for part in parts)
        assert abs(float(running_sum(parts)[0]) - true) <= 2 * UNIT * true < abs(float(sum(parts)[0]) - true)

    def test_complex_parts_and_a_single_one(self):
        one = np.array([1 + 2j, 3.0])
        assert np.array_equal(running_sum([one]), one)
        assert running_sum([one, 1e20j * one, -1e20j * one]).tolist() == one.tolist()

    def test_the_slack_grows_with_n_and_stays_tiny(self):
        box = {"box": BOX, "bandwidth": 1.0, "multiplier": 4.2}
        for of, real in (
            (lambda n: surface_sensitivity(n, **box), math.sqrt(2)),
            (lambda n: sketch_sensitivity(n, 32, 4.2), SKETCH_SENSITIVITY),
            (lambda n: round_sensitivity(n, 2, 60, 11.0), math.sqrt(2)),
        ):
            found = [of(n) / real - 1 for n in (10, 1_000, 10**6, 10**9)]
            assert all(low < high for low, high in itertools.pairwise(found))
            assert found[0] > 0
            assert found[2] < 1e-6

    def test_a_small_budget_pays_for_the_lattice(self):
        sums = {"n": 10, "chunk": 10, "each": 0.0, "numbers": 2_000_000}
        plain, large = (with_rounding(1.0, **sums, multiplier=z) for z in (4.2, 2e7))
        assert large - plain == pytest.approx(math.sqrt(2_000_000) * 2.0**-52 * 2e7, rel=1e-3)


def close_starts(rng):
    """Starts whose covariance has eigenvalues down to the smallest that are kept, and below."""
    for gap in (1e-1, 1e-2, 1e-3, 1e-4, 3e-5, 1e-5):
        close = gap * rng.normal(0, 1, (4, 2))
        yield np.concatenate([close, rng.normal(0, 1, (2, 2))])


def exact_covariance(at, h=1.0):
    """``joint_covariance`` in fifty digits."""
    (k, d), u = at.shape, (exact(at)[:, None, :] - exact(at)[None, :, :]) / mpmath.mpf(h)
    values = np.vectorize(mpmath.exp, otypes=[object])(-(u * u).sum(axis=2) / 2)
    mixed = (u * values[:, :, None]).reshape(k, k * d)
    same = np.eye(d)[None, :, None, :] - u.transpose(0, 2, 1)[..., None] * u[:, None, :, :]
    return np.block([[values, mixed], [mixed.T, (same * values[:, None, :, None]).reshape(k * d, k * d)]])


def exact_vector(record, at, h=1.0):
    """What one record adds to ``kernel_sums``, in fifty digits."""
    u = (exact(record)[None, :] - exact(at)) / mpmath.mpf(h)
    weights = np.vectorize(mpmath.exp, otypes=[object])(-(u * u).sum(axis=1) / 2)
    return np.concatenate([weights, (weights[:, None] * u).ravel()])


class TestWhitening:
    def test_the_solver_is_far_better_than_its_allowance(self, rng, record_property):
        # |E| of the computed decomposition against the true covariance, in units of size * u * largest eigenvalue.
        worst = 0.0
        matrices = [(joint_covariance(at, 1.0), exact_covariance(at)) for at in close_starts(rng)]
        for nodes in (np.arange(8) * 0.4, np.arange(32) * 0.4):
            gap = exact(nodes)[:, None] - exact(nodes)[None, :]
            true = np.vectorize(mpmath.exp, otypes=[object])(-(gap * gap) / 2)
            matrices.append((np.exp(-0.5 * (nodes[:, None] - nodes[None, :]) ** 2), true))
        for computed, true in matrices:
            values, vectors = np.linalg.eigh(computed)
            error = exact(vectors) @ (exact(values)[:, None] * exact(vectors).T) - true
            worst = max(worst, size_of(error) / (len(values) * UNIT * values[-1]))
        record_property("backward error over size * u", float(worst))
        assert 0 < worst < SOLVER / 2

    def test_a_lifted_eigenvalue_never_lets_a_change_be_longer_than_in_exact_arithmetic(self, rng):
        lifted = bare = 0.0
        for at in close_starts(rng):
            axes, root = whitened_axes(joint_covariance(at, 1.0))
            true = mpmath.matrix(exact_covariance(at).tolist())
            for _ in range(3):
                change = exact_vector(rng.normal(0, 0.1, 2), at) - exact_vector(rng.normal(0, 1, 2), at)
                solved = mpmath.lu_solve(true, mpmath.matrix(change.tolist()))
                most = float(sum(x * y for x, y in zip(change, solved, strict=True)))  # at most 2, by the proof
                assert most <= 2
                found = (change @ exact(axes)) / exact(root)
                lifted = max(lifted, size_of(found) ** 2 / most)
                without = exact(np.sqrt(root**2 - lift(len(axes)) * np.linalg.eigvalsh(joint_covariance(at, 1.0))[-1]))
                bare = max(bare, size_of((change @ exact(axes)) / without) ** 2 / most)
        assert lifted <= 1 + 1e-9
        assert bare > lifted

    def test_what_no_noise_covers_is_dropped(self):
        axes, root = whitened_axes(np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12]]))
        assert axes.shape == (2, 1)
        assert root[0] ** 2 >= SMALLEST_EIGENVALUE


class Seen(SimulationNoise):
    """Keeps the whitened vector that noise would be added to."""

    def rotated_gaussian(self, exact, basis, scale):
        self.vector = exact
        return exact


def whitened(points, at):
    noise = Seen(0)
    noise.covered_gaussian(block_sums(points, at, 1.0), joint_covariance(at, 1.0), 1.0)
    return noise.vector


class TestRounds:
    @pytest.mark.parametrize("n", [*SIZES, 200_000])
    def test_the_slack_covers_what_rounding_does_to_neighbours(self, n, rng, record_property):
        worst = first_summed = 0.0
        slack = round_sensitivity(n, 2, 18, 11.0) - math.sqrt(2)
        for at in close_starts(rng):
            points = rng.normal(0, 0.1, (n, 2))
            other = points.copy()
            other[n // 2] = rng.normal(0, 1, 2)
            change = exact_vector(points[n // 2], at) - exact_vector(other[n // 2], at)
            axes, root = whitened_axes(joint_covariance(at, 1.0))
            true = ((change @ exact(axes)) / exact(root)).astype(float)
            worst = max(worst, float(np.linalg.norm(whitened(points, at) - whitened(other, at) - true)))
            sums = kernel_sums(points, at, 1.0) - kernel_sums(other, at, 1.0)
            first_summed = max(first_summed, float(np.linalg.norm(sums @ axes / root - true)))
        record_property("slack", float(slack))
        record_property("seen", float(worst))
        assert worst < slack / 2
        if n == 200_000:  # the way it was: add up first, and divide by small roots then
            assert first_summed > 100 * worst

    def test_no_neighbours_go_beyond_the_sensitivity(self, rng):
        # A record that goes from one start to another one far away: in real numbers the change is sqrt(2).
        worst = 0.0
        for close in close_starts(rng):
            at = np.concatenate([close, [[9.0, 9.0]]])
            for row, record in itertools.product((0, 63), (at[1], at[-1], np.full(2, 30.0))):
                points = rng.normal(0, 0.1, (64, 2))
                other = points.copy()
                points[row], other[row] = at[0], record
                worst = max(worst, float(np.linalg.norm(whitened(points, at) - whitened(other, at))))
        assert math.sqrt(2) * (1 - 1e-9) < worst <= round_sensitivity(64, 2, 21, 11.0)


def gridded(points, at, box):
    """The whitened vector of a round that adds its records on a grid."""
    noise, bases = Seen(0), box_bases(box, 1.0)
    noise.projected_gaussian(coefficients(points, bases), functionals(at, bases), joint_covariance(at, 1.0), 1.0)
    return noise.vector


class TestRoundsOnAGrid:
    BOX = np.array([[-4.0, 4.0], [-4.0, 4.0]])

    @pytest.mark.parametrize("n", [30_000, 200_000])
    @pytest.mark.parametrize("spread", [0.0, 0.1, 2.0])
    def test_the_slack_covers_what_rounding_does_to_neighbours(self, n, spread, rng, record_property):
        # In real numbers one record moves the sums whatever the others are: so the record alone shows how far.
        slack, worst = round_sensitivity(n, 2, 18, 11.0, node_counts(self.BOX, 1.0).astype(int)) - math.sqrt(2), 0.0
        points = np.clip(spread * rng.normal(0, 1, (n, 2)), -4, 4)
        other = points.copy()
        other[n // 2] = rng.normal(0, 1, 2)
        for at in close_starts(rng):
            true = gridded(points[[n // 2]], at, self.BOX) - gridded(other[[n // 2]], at, self.BOX)
            seen = gridded(points, at, self.BOX) - gridded(other, at, self.BOX)
            worst = max(worst, float(np.linalg.norm(seen - true)))
        record_property("slack", float(slack))
        record_property("seen", float(worst))
        assert worst < slack / 2

    def test_no_neighbours_go_beyond_the_sensitivity_and_far_ones_reach_it(self, rng):
        worst = 0.0
        for close in close_starts(rng):
            at = np.clip(np.concatenate([close, [[4.0, 4.0], [-4.0, -4.0]]]), -4, 4)
            for record in (at[1], at[-1], at[-2], np.full(2, 30.0)):
                change = gridded(at[:1], at, self.BOX) - gridded(record[None], at, self.BOX)
                worst = max(worst, float(np.linalg.norm(change)))
        nodes = node_counts(self.BOX, 1.0).astype(int)
        assert math.sqrt(2) * (1 - 1e-3) < worst <= round_sensitivity(30_000, 2, 24, 11.0, nodes)

    def test_functionals_that_are_too_long_are_shortened(self, rng):
        # Whatever the matrix is, nothing leaves that moves farther than the coefficients.
        bases, at = box_bases(self.BOX, 1.0), rng.uniform(-4, 4, (5, 2))
        sums, rows = rng.normal(0, 1, [len(basis.whitening) for basis in bases]), functionals(at, bases)
        for factor in (1.0, 1 + 1e-9, 7.0):
            noise = Seen(0)
            noise.projected_gaussian(sums, factor * rows, joint_covariance(at, 1.0), 1.0)
            table = np.linalg.qr(rng.normal(0, 1, (sums.size, 3)))[0].T.reshape(3, *sums.shape)
            for direction in (sums / np.linalg.norm(sums), *table):
                noise.projected_gaussian(direction, factor * rows, joint_covariance(at, 1.0), 1.0)
                assert np.linalg.norm(noise.vector) <= 1
        axes, root = whitened_axes(joint_covariance(at, 1.0))
        highest = np.linalg.svd((axes / root).T @ rows.reshape(len(rows), -1))[2][0].reshape(sums.shape)
        noise.projected_gaussian(highest, 7.0 * rows, joint_covariance(at, 1.0), 1.0)
        assert 1 - 1e-6 < np.linalg.norm(noise.vector) <= 1

    def test_the_slack_stays_tiny(self):
        found = [round_sensitivity(n, 2, 150, 11.0, (116, 116)) / math.sqrt(2) - 1 for n in (30_000, 10**6, 10**8)]
        assert 0 < found[0] < found[1] < 1e-6
        assert found[1] < found[2] < 1e-4


class TestGrid:
    @pytest.mark.parametrize("n", SIZES)
    @pytest.mark.parametrize("columns", [1, 2])
    def test_the_slack_covers_what_rounding_does_to_neighbours(self, n, columns, rng, record_property):
        box = BOX[:columns]
        bases = box_bases(box, 1.0)
        slack, worst = surface_sensitivity(n, box, 1.0, 4.2) - math.sqrt(2), 0.0
        for spread in (0.0, 0.01, 3.0):  # a pile makes the largest sums
            points = np.clip(5 + spread * rng.normal(0, 1, (n, columns)), 0, 10)
            other = points.copy()
            other[n - 1] = rng.uniform(0, 10, columns)
            true = exact_features(points[-1], bases) - exact_features(other[-1], bases)
            seen = coefficients(points, bases) - coefficients(other, bases)
            worst = max(worst, float(np.linalg.norm((seen - true.astype(float)).ravel())))
        record_property("slack", float(slack))
        record_property("seen", float(worst))
        assert worst < slack / 2

    @pytest.mark.parametrize("width", [1.0, 4.0, 40.0])
    def test_no_record_is_longer_than_one_and_no_pair_farther_apart_than_sqrt_two(self, width, rng):
        bases = box_bases(np.array([[0.0, width]]), 1.0)
        places = np.linspace(0, width, 9)
        vectors = [exact_features([x], bases) for x in places]
        assert max(map(size_of, vectors)) <= 1
        assert max(size_of(a - b) for a, b in itertools.combinations(vectors, 2)) <= math.sqrt(2)

    def test_the_order_of_the_chunks_and_their_number_stay_within_the_slack(self, rng):
        points, bases = rng.uniform(0, 10, (9_000, 2)), box_bases(BOX, 1.0)
        whole = coefficients(points, bases)
        slack = surface_sensitivity(9_000, BOX, 1.0, 4.2) - math.sqrt(2)
        for chunk in (500, 3_000):
            parts = [coefficients(points[start : start + chunk], bases) for start in range(0, 9_000, chunk)]
            for order in (parts, parts[::-1]):
                assert np.linalg.norm(running_sum(order) - whole) < slack


def exact_features(record, bases):
    """Outer product of the axes' whitened vectors, of the whitening matrices as they are and in fifty digits."""
    result = None
    for x, basis in zip(record, bases, strict=True):
        gap = (mpmath.mpf(float(x)) - exact(basis.nodes)) / mpmath.mpf(basis.bandwidth)
        vector = exact(basis.whitening) @ np.vectorize(mpmath.exp, otypes=[object])(-(gap * gap) / 2)
        result = vector if result is None else np.multiply.outer(result, vector)
    return result


class TestSketch:
    @pytest.mark.parametrize("n", SIZES)
    def test_the_slack_covers_what_rounding_does_to_neighbours(self, n, rng, record_property):
        box, blocks = np.array([[0.0, 10.0]] * 4), 8
        slack, worst = sketch_sensitivity(n, blocks, 4.2) - SKETCH_SENSITIVITY, 0.0
        for spread in (0.0, 2.0):
            points = 5 + spread * rng.normal(0, 1, (n, 4))
            other = points.copy()
            other[0] = rng.uniform(0, 10, 4)
            seen = feature_sums(points, box, 1.0, blocks) - feature_sums(other, box, 1.0, blocks)
            alone = feature_sums(points[:1], box, 1.0, blocks) - feature_sums(other[:1], box, 1.0, blocks)
            worst = max(worst, float(np.linalg.norm(seen - alone)))
        record_property("slack", float(slack))
        record_property("seen", float(worst))
        assert worst < slack / 2

    def test_one_record_is_off_by_less_than_is_paid_for(self, rng):
        # Against cosines in fifty digits of the phases as they were rounded: those may be any numbers.
        box, blocks = np.array([[0.0, 10.0]] * 4), 8
        point = rng.uniform(0, 10, (1, 4))
        phases = vertices(4, blocks).reshape(-1, 4) @ (point - 5.0).T
        waves = np.vectorize(lambda x: mpmath.expj(mpmath.mpf(x)), otypes=[object])(phases).reshape(blocks, -1)
        first, second = np.triu_indices(waves.shape[1], 1)
        factor = mpmath.mpf(1 - 1e-6) / mpmath.sqrt(blocks * PAIRS)
        pairs = (factor * waves[:, first] * np.conj(waves[:, second])).ravel()
        true = np.array([pair.real for pair in pairs] + [pair.imag for pair in pairs])
        assert size_of(exact(feature_sums(point, box, 1.0, blocks)) - true) < 8 * UNIT


class TestWaves:
    def test_they_lie_on_the_circle_for_any_phase(self, rng, record_property):
        # Privacy rests on this alone: how far a wave is off the circle, in units of u, and not where on it it is.
        edges = (np.arange(-64, 64) + 0.5) * STEP
        phases = np.concatenate([*(scale * rng.normal(0, 1, 300) for scale in (1e-3, 1, 30, 1e4, 1e9, 1e11)), edges])
        parts = exact(on_circle(phases.reshape(1, 1, -1))[0])
        off = max(abs(mpmath.sqrt(c * c + s * s) - 1) for c, s in parts.T)
        record_property("units of u", float(off / UNIT))
        assert 0 < off < 6 * UNIT

    def test_they_are_the_cosines_and_sines(self, rng):
        phases = rng.normal(0, 30, (3, 4, 500))
        parts = on_circle(phases)
        np.testing.assert_allclose(parts[:, :4], np.cos(phases), rtol=0, atol=8 * UNIT)
        np.testing.assert_allclose(parts[:, 4:], np.sin(phases), rtol=0, atol=8 * UNIT)

    def test_sums_are_those_of_the_complex_products(self, rng):
        box = np.array([[0.0, 10.0]] * 4)
        points = rng.uniform(0, 10, (1_500, 4))
        points[7, 2] = np.nan
        phases = vertices(4, 8).reshape(-1, 4) @ (np.delete(points, 7, axis=0) - 5.0).T
        wave = np.exp(1j * phases).reshape(8, -1, 1_499)
        first, second = np.triu_indices(wave.shape[1], 1)
        pairs = (wave @ wave.conj().transpose(0, 2, 1))[:, first, second].ravel() * (1 - 1e-6) / math.sqrt(8 * PAIRS)
        np.testing.assert_allclose(
            feature_sums(points, box, 1.0, 8), np.concatenate([pairs.real, pairs.imag]), rtol=0, atol=1e-11
        )


class TestDraws:
    def test_neighbouring_counts_are_never_farther_apart_than_half_of_epsilon(self, rng):
        beyond = 0
        for epsilon in (1e-6, 0.1, 1.0, math.pi, 20.0):
            for n in (100, 10**6, 10**9):
                counts = rng.integers(0, n, 300)
                weights = [draw_epsilon(epsilon, n) * np.array([count, count + 1]) / 2 for count in counts]
                gaps = [Fraction(float(high)) - Fraction(float(low)) for low, high in weights]
                assert max(gaps) <= Fraction(epsilon) / 2
                bare = [epsilon * np.array([count, count + 1]) / 2 for count in counts]
                beyond += sum(Fraction(float(y)) - Fraction(float(x)) > Fraction(epsilon) / 2 for x, y in bare)
        assert beyond > 0  # without the hair they are

    @pytest.mark.slow
    @pytest.mark.parametrize("many", [starts.MANY, 0], ids=["tree", "cells"])
    def test_one_replaced_record_moves_a_count_by_one_also_where_all_others_lie_on_an_edge(
        self, many, rng, monkeypatch
    ):
        monkeypatch.setattr(starts, "MANY", many)
        # A tree of the records answers for whole boxes of them: in 30 of 10,000 such piles it moved all at once.
        for _ in range(4_000):
            d = int(rng.integers(2, 9)) if many else 2
            candidate, radius = rng.normal(0, 1, (1, d)), float(rng.uniform(0.1, 2))
            along = rng.normal(0, 1, d)
            edge = candidate[0] + radius * along / np.linalg.norm(along)
            pile = np.tile(edge * (1 + rng.integers(-2, 3, d) * 2 * UNIT), (40, 1))
            worlds = [pile, pile.copy(), pile.copy()]
            worlds[1][0], worlds[2][0] = rng.normal(0, 3, (2, d))
            counts = [int(ball_counts(points, candidate, radius)[0]) for points in worlds]
            assert max(counts) - min(counts) <= 1
            assert counts == [int(naive_counts(points, candidate, radius)[0]) for points in worlds]


class TestMissing:
    """A record that misses a value adds nothing and moves no other record into another chunk."""

    @pytest.mark.parametrize("module", ["surface", "sketch"])
    def test_all_other_chunks_hold_the_same_doubles(self, module, rng, monkeypatch):
        seen = []

        def watched(parts, shape=()):
            seen.append(list(parts))
            return running_sum(seen[-1], shape)

        monkeypatch.setattr(f"dpgrams_core.numerics.{module}.running_sum", watched)
        points = rng.uniform(0, 10, (95, 2))
        other = points.copy()
        other[3, 1] = np.nan
        for rows in (points, other):
            if module == "surface":
                coefficients(rows, box_bases(BOX, 1.0), chunk=10)
            else:
                feature_sums(rows, BOX, 1.0, 8, chunk=10)
        assert len(seen[0]) == len(seen[1]) == 10
        assert [np.array_equal(one, two) for one, two in zip(*seen, strict=True)] == [False] + [True] * 9

    def test_it_adds_nothing(self, rng):
        points = rng.uniform(0, 10, (30, 2))
        missing = points.copy()
        missing[[0, 7], [1, 0]] = np.nan
        rest = np.delete(points, [0, 7], axis=0)
        bases = box_bases(BOX, 1.0)
        np.testing.assert_allclose(coefficients(missing, bases), coefficients(rest, bases), atol=1e-9)
        sums = (feature_sums(rows, BOX, 1.0, 8) for rows in (missing, rest))
        np.testing.assert_allclose(*sums, atol=1e-9)
        assert not coefficients(np.full((3, 2), np.nan), bases).any()
