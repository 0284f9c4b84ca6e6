"""Surfaces that are read together: the same numbers as one by one, to the last digit, and as the slow way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks import slow_reading
from benchmarks.immediate import read_slowly
from dpgrams_core import Dataset, load_dataset, run
from dpgrams_core.methods.functional.modes import FunctionalSpec, read_modes, read_together, release_surface
from dpgrams_core.methods.registry import run_together
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.numerics.merging import climb, radius_groups
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases
from dpgrams_core.numerics.together import Surfaces, minimised
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.sweeps import cell as cells
from dpgrams_core.sweeps.cell import run_cell
from dpgrams_core.sweeps.plan import plan_run

BOX = np.array([[-8.0, 8.0], [-3.0, 9.0]])
FIELDS = ("modes", "significance", "trajectories")


def random_surfaces(count, rng):
    shape = [len(basis.whitening) for basis in box_bases(BOX, 1.2)]
    return [ReleasedSurface(30 * rng.normal(size=shape), BOX, 1.2, 6.0 + i, 1_000) for i in range(count)]


class TestHeat:
    @pytest.mark.parametrize("counts", [[1], [5], [1, 1], [3, 1, 12]])
    def test_it_is_that_of_each_surface(self, counts, rng):
        surfaces, ends = random_surfaces(len(counts), rng), [0, *np.cumsum(counts).tolist()]
        x, width = rng.uniform(-2, 4, (ends[-1], 2)), 1.2 + rng.random(ends[-1])
        who = list(range(len(counts)))
        together = Surfaces(surfaces)
        for wish in (1.5, width):
            found = together.heat(x, wish, who, ends)
            bare = together.slope(x, wish, who, ends)
            for number in who:
                own = slice(ends[number], ends[number + 1])
                each = wish if np.isscalar(wish) else wish[own]
                slow = slow_reading.slow(surfaces[number]).heat(x[own], each)
                for fast, other in zip(found, slow, strict=True):
                    np.testing.assert_allclose(fast[own], other, rtol=1e-9, atol=1e-8)
                alone = Surfaces([surfaces[number]]).heat(x[own], each, [0], [0, counts[number]])
                for fast, other in zip(found, alone, strict=True):
                    assert np.array_equal(fast[own], other)
                for fast, other in zip(bare, slow[:2], strict=True):
                    np.testing.assert_allclose(fast[own], other, rtol=1e-9, atol=1e-8)

    def test_climbs_and_their_ends(self, rng):
        surfaces = random_surfaces(4, rng)
        starts = [rng.uniform(BOX[:, 0], BOX[:, 1], (k, 2)) for k in (70, 0, 90, 3)]
        floors = [surface.noise_scale for surface in surfaces]
        paths = Surfaces(surfaces).climbs(starts, 12, 1.4, floors)
        ends = Surfaces(surfaces).ends(starts, 200, 1.4, floors)
        for surface, start, path, end in zip(surfaces, starts, paths, ends, strict=True):
            assert path.shape == (13, len(start), 2)
            if len(start) == 0:
                assert end.shape == (0, 2)
                continue
            np.testing.assert_allclose(path, climb(surface, start, 12, 1.4, surface.noise_scale), atol=1e-8)
            far = climb(surface, start, 200, 1.4, surface.noise_scale)[-1]
            rested = np.abs(climb(surface, far, 1, 1.4, surface.noise_scale)[-1] - far).max(axis=1, initial=0) < 1e-9
            np.testing.assert_allclose(end[rested], far[rested], atol=1e-6)

    def test_other_boxes_and_bandwidths_are_refused(self, rng):
        one = random_surfaces(1, rng)[0]
        shape = [len(basis.whitening) for basis in box_bases(BOX, 1.3)]
        with pytest.raises(ValueError, match="one box and one bandwidth"):
            Surfaces([one, ReleasedSurface(np.zeros(shape), BOX, 1.3, 6.0, 10)])


class TestMinimised:
    """SciPy's steps, asked for one by one, against SciPy itself: a change of its private function shows here."""

    @staticmethod
    def valley(scale):
        def loss(x):
            bend = x[1:] - x[:-1] ** 2
            slope = np.zeros_like(x)
            slope[:-1] += -4 * scale * x[:-1] * bend - 2 * (1 - x[:-1])
            slope[1:] += 2 * scale * bend
            return float(scale * (bend**2).sum() + ((1 - x[:-1]) ** 2).sum()), slope

        return loss

    @pytest.mark.parametrize("most", [3, 60, 1_000])
    def test_each_ends_where_minimize_ends(self, most, rng):
        losses = [self.valley(scale) for scale in (1.0, 10.0, 100.0, 100.0)]
        starts = [rng.uniform(-2, 2, size) for size in (2, 5, 12, 12)]
        low, high = ([np.full(len(start), edge) for start in starts] for edge in (-1.5, 0.9))
        calls = []

        def together(who, x):
            calls.append(len(who))
            found = [losses[number](each) for number, each in zip(who, x, strict=True)]
            return [value for value, _ in found], [slope for _, slope in found]

        ends = minimised(together, starts, low, high, most, 1e-7)
        counted = 0
        for loss, start, end in zip(losses, starts, ends, strict=True):
            options = {"maxiter": most, "ftol": 1e-7}
            usual = minimize(
                loss, start, jac=True, method="L-BFGS-B", bounds=[(-1.5, 0.9)] * len(start), options=options
            )
            assert np.array_equal(end, usual.x)
            counted += usual.nfev
        assert sum(calls) == counted
        assert len(calls) < counted


@pytest.mark.parametrize("count", [None, 4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_modes_are_those_of_each_release_by_itself(count, epsilon, seed):
    spec, bare = FunctionalSpec(epsilon=epsilon, n_modes=count, bandwidth=1.1), []
    for number in range(5):
        data = load_dataset("four_corners", n=1_500 + 100 * number, seed=seed + number)
        bare.append(release_surface(data, spec, SimulationNoise(seed + number)))
    for one, together in zip(bare, read_together(bare), strict=True):
        alone = read_modes(one, one.surface.box)
        for field in FIELDS:
            assert np.array_equal(getattr(together, field), getattr(alone, field)), field
    slow = read_slowly(bare[0])
    assert len(slow.modes) == len(read_modes(bare[0], BOX).modes)
    np.testing.assert_allclose(read_modes(bare[0], BOX).modes, slow.modes, atol=1e-3)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    ("method", "name", "options"),
    [
        ("functional", "four_corners", {}),
        pytest.param("functional", "iris", {"n_modes": 3}, marks=pytest.mark.slow),
        ("functional", "four_corners", {"bandwidth": "silverman"}),
        ("dp_grams", "four_corners", {"calibration": "tight"}),
    ],
    ids=str,
)
def test_runs_together_are_the_runs(method, name, options, scaled):
    kinds = {"kind": "modes"} if name == "iris" else {}
    data = [replace(load_dataset(name, n=150, seed=seed), scaled=scaled, **kinds) for seed in range(3)]
    many = run_together(method, data, [5, 6, 7], epsilon=1.0, **options)
    for one, seed, release in zip(data, (5, 6, 7), many, strict=True):
        alone = run(method, one, seed=seed, epsilon=1.0, **options)
        for field in FIELDS:
            assert np.array_equal(getattr(alone, field), getattr(release, field)), field
        assert (alone.guarantee, alone.seed, alone.spec) == (release.guarantee, release.seed, release.spec)
        assert alone.diagnostics.score_size == release.diagnostics.score_size
    assert run_together(method, [], [], **options) == []


def test_private_data_are_drawn_by_themselves(nothing_drawn):
    data = load_dataset("four_corners", n=60, seed=0)
    mine = Dataset(name="mine", kind="modes", points=data.points, box=data.box, private=True)
    with pytest.raises((DataError, SpecError)):
        run_together("functional", [data, mine], [0, 1])


class TestCells:
    CELL = replace(plan_run("functional", "four_corners", n=200, epsilon=1.0), derived=True, runs=5, data_seed=None)

    def test_a_cell_is_the_sum_of_its_runs(self, monkeypatch):
        whole = run_cell(self.CELL).outcomes
        monkeypatch.setattr(cells, "RUNS_TOGETHER", 1)
        assert {number: one.scores for number, one in whole.items()} == {
            number: one.scores for number, one in run_cell(self.CELL).outcomes.items()
        }
        assert list(whole) == list(range(5))

    def test_a_run_that_fails_does_not_take_the_others_with_it(self, monkeypatch):
        right, seed = SimulationNoise.independent_gaussian, cells.noise_seed(self.CELL, 2)

        def failing(self, exact, scale):
            if self.seed == seed:
                raise ArithmeticError("this one fails")
            return right(self, exact, scale)

        good = run_cell(self.CELL).outcomes
        monkeypatch.setattr(SimulationNoise, "independent_gaussian", failing)
        found = run_cell(self.CELL).outcomes
        assert [number for number, one in found.items() if one.failure] == [2]
        assert all(found[number].scores == good[number].scores for number in (0, 1, 3, 4))


def test_few_points_are_grouped_as_many_are(rng, monkeypatch):
    for size in (0, 1, 2, 9, 40, 64):
        points = np.round(rng.uniform(0, 6, (size, 2)), 1)
        few = radius_groups(points, 0.6)
        if size:
            monkeypatch.setattr("dpgrams_core.numerics.merging.FEW", -1)
            assert few.tolist() == radius_groups(points, 0.6).tolist()
            monkeypatch.undo()
