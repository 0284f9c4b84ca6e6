"""Do 95 % regions hold what they promise, and how often is a peak reported that is not there?

Every run draws its records anew, releases them, and asks two things of each mode that was read off with the true count:
does its region by the noise alone hold the place that the same reading gives without noise (the *smoothed density*),
and does its region by noise, sampling and lopsidedness hold the true mode (the *population*)?  Besides, the modes are
read with an unknown count: one is false where it is nearer to no true mode than half the distance between two of them,
and *off the mark* where the scores would call it spurious, which asks for a nearer match (``default_match_radius``).
Of clusters the centres are asked for, with the number known: those of the population are where the same reading would
put them for very many records.  Of regression the bands are asked for: at each row of a curve, do they hold the nearest
branch that is there without noise?
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from dpgrams_core.datasets.mixtures import FOUR_CORNERS, T_MIXTURE, Mixture, seeded_points
from dpgrams_core.datasets.registry import load_dataset
from dpgrams_core.methods.functional.clusters import functional_c, read_centres
from dpgrams_core.methods.functional.modes import read_together, release_surface
from dpgrams_core.methods.functional.regression import from_unit, functional_regression, to_unit
from dpgrams_core.methods.functional.spec import FunctionalCSpec, FunctionalRegressionSpec, FunctionalSpec
from dpgrams_core.methods.registry import run
from dpgrams_core.model.measures import match_modes, score, score_modes
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import Dataset, Release, refuse_private
from dpgrams_core.numerics.bandwidths import reference_spread
from dpgrams_core.numerics.centres import K_MEANS_STARTS, fitted_kmeans, towards_peaks
from dpgrams_core.numerics.merging import climb
from dpgrams_core.numerics.ridges import NORMAL_95
from dpgrams_core.numerics.statistics import clopper_pearson, standard_error
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients
from dpgrams_core.privacy.noise import SimulationNoise

if TYPE_CHECKING:
    import pandas as pd

Array = np.ndarray
LEVEL, DELTA, RUNS = 0.95, 1e-6, 240
ROUNDS_RUNS, CENTRE_RUNS = 120, 60  # fewer of what takes longer: centres draw their release anew in every run
SIZES, EPSILONS = (500, 2_000, 5_000, 20_000), (0.1, 0.25, 0.5, 1.0, 5.0)
FOUND = 0.95  # of the runs must find all modes, or regions are not to be trusted
PROMISED = {"smoothed": (0.93, 0.97), "population": (0.90, 0.99)}
COLUMNS = ["shape", "n", "epsilon", "runs", "false_peaks", "off_mark", "all_found"]
COLUMNS += [f"{kind}{end}" for kind in PROMISED for end in ("", "_low", "_high")]
FILE = ASSETS / "coverage.csv"
GAUSSIAN = math.inf
# Peaks with a long side, five peaks joined to a ring, peaks of other sizes and weights; chosen before any run.
SHAPES: dict[str, Mixture | None] = {
    "four_corners": FOUR_CORNERS,
    "t_mixture": T_MIXTURE,
    "skewed": Mixture(
        means=((-3, -3), (-1.8, -2.4), (3, -2), (4.0, -1.2), (0, 3.5), (1.2, 4.1)),
        weights=(0.24, 0.1, 0.24, 0.1, 0.22, 0.1),
        scales=(0.7, 1.3, 0.7, 1.3, 0.7, 1.3),
        dofs=(GAUSSIAN,) * 6,
    ),
    "ring": Mixture(
        means=tuple((4 * math.cos(0.4 * math.pi * j), 4 * math.sin(0.4 * math.pi * j)) for j in range(5)),
        weights=(0.2,) * 5,
        scales=(1.1,) * 5,
        dofs=(GAUSSIAN,) * 5,
    ),
    "unequal": Mixture(
        means=((-3, -3), (3.2, -0.5), (-1.5, 3.5)),
        weights=(0.5, 0.3, 0.2),
        scales=(0.8, 1.2, 0.6),
        dofs=(GAUSSIAN,) * 3,
    ),
    "uniform": None,
}
ROUNDS = ("four_corners_rounds", "t_mixture_rounds")  # modes of the tight DP-GRAMS
CLUSTERS = ("blobs", "unequal_clusters")
CLIMBS = 100  # steps to the peak of a kernel sum
POPULATION = 200_000  # records that stand for all
DESIGNS = ("sinusoid", "three_component")
FINE = 4_001  # places along y at which a branch without noise is sought
BOX = np.array([(-7.0, 7.0)] * 2)
BOXES = {"t_mixture": np.array([(-10.0, 10.0)] * 2)}


def drawn(shape: str, n: int, seed: int) -> Dataset:
    """Records of a shape with its true modes; evenly spread ones have none."""
    law, box = SHAPES[shape], BOXES.get(shape, BOX)
    truth = None if law is None else law.modes()
    return Dataset(name=shape, kind="modes", points=seeded_points(law, box, n, seed), box=box, true_modes=truth)


def held(modes: Array, covariances: Array, targets: Array) -> Array:
    """Whether each mode's region holds its own target (k,), matched one to one."""
    matching = match_modes(targets, modes)
    pairs = [(target, number) for target, number in enumerate(matching.estimate_of) if number >= 0]
    gaps = np.array([modes[number] - targets[target] for target, number in pairs])
    squares = [gap @ np.linalg.solve(covariances[number], gap) for gap, (_, number) in zip(gaps, pairs, strict=True)]
    return np.array(squares) <= scipy.special.chdtri(modes.shape[1], 1 - LEVEL)


def runs_of(shape: str) -> int:
    """How many runs each cell of a shape has in the finished table."""
    return CENTRE_RUNS if shape in CLUSTERS else ROUNDS_RUNS if shape in ROUNDS else RUNS


def coverage_cell(shape: str, n: int, epsilon: float, runs: int | None = None) -> dict[str, Any]:
    """One row: true coverage of both kinds with intervals, runs that found all, and runs with a false peak."""
    runs = runs or runs_of(shape)
    if shape in DESIGNS:
        return band_cell(shape, n, epsilon, runs)
    if shape in CLUSTERS:
        return centre_cell(shape, n, epsilon, runs)
    if shape in ROUNDS:
        return rounds_cell(shape, n, epsilon, runs)
    spec = FunctionalSpec(epsilon=epsilon, delta=DELTA)
    data = [drawn(shape, n, seed) for seed in range(runs)]
    bare = [release_surface(one, spec, SimulationNoise(seed)) for seed, one in enumerate(data)]
    truth = data[0].true_modes
    near = 0.0 if truth is None else _half_way(truth)
    row: dict[str, Any] = {"shape": shape, "n": n, "epsilon": epsilon, "runs": runs}
    unknown = read_together(bare)
    row["false_peaks"] = float(np.mean([_any_false(one.modes, truth, near) for one in unknown]))
    if truth is None:
        return row
    row["off_mark"] = float(np.mean([score_modes(truth, one.modes)["spurious"] > 0 for one in unknown]))
    known = read_together([replace(one, spec=replace(one.spec, n_modes=len(truth))) for one in bare])
    without = read_together([without_noise(one, of) for one, of in zip(known, data, strict=True)])
    row["all_found"] = float(np.mean([bool((match_modes(truth, one.modes).distance <= near).all()) for one in known]))
    hits: dict[str, list[Array]] = {kind: [] for kind in PROMISED}
    for one, clean in zip(known, without, strict=True):
        checkpoint()
        assert one.noise_covariances is not None
        assert one.mode_covariances is not None
        hits["smoothed"].append(held(one.modes, one.noise_covariances, clean.modes))
        hits["population"].append(held(one.modes, one.mode_covariances, truth))
    return row | _shares(hits)


def _shares(hits: dict[str, list[Array]]) -> dict[str, float]:
    """How many regions of each kind held their targets, with intervals."""
    shares = {}
    for kind, found in hits.items():
        every = np.concatenate(found or [np.empty(0, dtype=bool)])
        if not len(every):
            continue
        shares[kind] = float(every.mean())
        low, high = map(float, clopper_pearson(every.sum(), len(every), (1 - LEVEL) / 2))
        shares |= {f"{kind}_low": low, f"{kind}_high": high}
    return shares


def rounds_cell(shape: str, n: int, epsilon: float, runs: int) -> dict[str, Any]:
    """One row of the tight DP-GRAMS: whether regions of modes hold the next peak of the kernel sum, and the true mode.

    Modes that stand too little above the noise for a region, or are no peak, have none and are not counted.
    """
    hits: dict[str, list[Array]] = {kind: [] for kind in PROMISED}
    near = []
    for seed in range(runs):
        checkpoint()
        data = drawn(shape.removesuffix("_rounds"), n, seed)
        truth = data.true_modes
        assert truth is not None
        release = run(
            "dp_grams", data, seed=seed, epsilon=epsilon, delta=DELTA, n_modes=len(truth), calibration="tight"
        )
        near.append(bool((match_modes(truth, release.modes).distance <= _half_way(truth)).all()))
        assert release.pooled is not None
        assert release.half_widths is not None
        sure, h = np.isfinite(release.half_widths).all(axis=1), release.pooled.h
        if not sure.any():
            continue
        modes = release.modes[sure]
        exact = ReleasedSurface(coefficients(data.points, box_bases(data.box, h)), data.box, h, 1.0, n)
        peaks = climb(exact, modes, CLIMBS, h, exact.noise_at(modes))[-1]
        assert release.noise_covariances is not None
        assert release.mode_covariances is not None
        hits["smoothed"].append(held(modes, release.noise_covariances[sure], peaks))
        hits["population"].append(held(modes, release.mode_covariances[sure], truth))
    row = {"shape": shape, "n": n, "epsilon": epsilon, "runs": runs, "all_found": float(np.mean(near))}
    return row | _shares(hits)


def clusters_drawn(shape: str, n: int, seed: int) -> Dataset:
    """Records of clusters; those of a shape with peaks have one for each."""
    if shape == "blobs":
        return load_dataset(shape, n=n, seed=seed)
    return replace(drawn(shape.removesuffix("_clusters"), n, seed), kind="clusters")


@lru_cache(maxsize=len(CLUSTERS))
def population_centres(shape: str) -> Array:
    """Where the same reading would put the centres of very many records without noise or smoothing."""
    many = clusters_drawn(shape, POPULATION, POPULATION)
    count, shares = _count_of(many), np.full(many.n, 1 / many.n)
    means = fitted_kmeans(many.points, count, K_MEANS_STARTS, 0).cluster_centers_
    return towards_peaks(means, many.points, shares, reference_spread(many.box))


def _count_of(data: Dataset) -> int:
    return data.n_clusters or len(data.true_modes)  # type: ignore[arg-type]  # one of the two is known


def centre_cell(shape: str, n: int, epsilon: float, runs: int) -> dict[str, Any]:
    """One row of clusters: true coverage of both kinds of regions of centres."""
    truth, near = population_centres(shape), []
    hits: dict[str, list[Array]] = {kind: [] for kind in PROMISED}
    half = _half_way(truth)
    for seed in range(runs):
        checkpoint()
        data = clusters_drawn(shape, n, seed)
        spec = FunctionalCSpec(epsilon=epsilon, delta=DELTA, n_clusters=_count_of(data))
        release = functional_c(data, spec, SimulationNoise(seed))
        clean = read_centres(without_noise(release, data), data.box)
        assert release.noise_covariances is not None
        assert release.mode_covariances is not None
        hits["smoothed"].append(held(release.modes, release.noise_covariances, clean.modes))
        hits["population"].append(held(release.modes, release.mode_covariances, truth))
        near.append(bool((match_modes(truth, release.modes).distance <= half).all()))
    return {
        "shape": shape,
        "n": n,
        "epsilon": epsilon,
        "runs": runs,
        "all_found": float(np.mean(near)),
        **_shares(hits),
    }


def band_cell(design: str, n: int, epsilon: float, runs: int) -> dict[str, Any]:
    """One row of a regression design: how often bands hold the branch without noise, row by row of the curves.

    Rows of one run share its noise, so the interval is that of a mean over runs.
    """
    spec, shares, recalls = FunctionalRegressionSpec(epsilon=epsilon, delta=DELTA), [], []
    for seed in range(runs):
        checkpoint()
        data = load_dataset(design, n=n, seed=seed)
        release = functional_regression(data, spec, SimulationNoise(seed))
        recalls.append(score(release, data)["branch_recall"])
        shares.append(float(band_holds(release, data).mean()))
    mean, reach = float(np.mean(shares)), NORMAL_95 * standard_error(shares)
    row = {"shape": design, "n": n, "epsilon": epsilon, "runs": runs, "all_found": np.mean(np.array(recalls) >= FOUND)}
    return row | {"smoothed": mean, "smoothed_low": mean - reach, "smoothed_high": min(mean + reach, 1.0)}


def band_holds(release: Release, data: Dataset) -> Array:
    """Whether the band holds, at each row of a curve (rows,), the nearest branch of the surface without noise."""
    refuse_private(data)
    surface = release.surface
    assert isinstance(surface, ReleasedSurface)
    assert release.curve is not None
    assert release.curve_band is not None
    clean = replace(surface, coefficients=surface.exact(to_unit(data.points, data.box)))
    x, back = np.unique(to_unit(release.curve, data.box)[:, 0], return_inverse=True)
    y = np.linspace(0, 1, FINE)
    heights, held = clean.grid([x, y]), []
    for column, found, (low, high) in zip(heights[back], release.curve[:, 1], release.curve_band, strict=True):
        top = 1 + np.flatnonzero((column[1:-1] > column[:-2]) & (column[1:-1] >= column[2:]))
        left, middle, right = (column[top + step] for step in (-1, 0, 1))
        exact = y[top] + 0.5 * (left - right) / (left - 2 * middle + right) * y[1]  # a parabola's top
        places = from_unit(np.column_stack([exact, exact]), data.box)[:, 1]
        nearest = places[np.argmin(np.abs(places - found))] if len(places) else np.nan
        held.append(low <= nearest <= high)
    return np.array(held)


def _half_way(truth: Array) -> float:
    gaps = np.linalg.norm(truth[:, None] - truth[None], axis=-1)
    return float(gaps[~np.eye(len(truth), dtype=bool)].min()) / 2


def _any_false(modes: Array, truth: Array | None, near: float) -> bool:
    if truth is None or not len(modes):
        return len(modes) > 0
    to_truth = np.linalg.norm(modes[:, None] - truth[None], axis=-1).min(axis=1)
    return len(modes) > len(truth) or bool((to_truth > near).any())


def without_noise(release: Release, data: Dataset) -> Release:
    """A release as it would be without its noise, to be read in the same way."""
    refuse_private(data)
    surface = release.surface
    assert isinstance(surface, ReleasedSurface)
    return replace(release, surface=replace(surface, coefficients=surface.exact(data.points)))


def cells() -> Iterator[tuple[str, int, float]]:
    """All cells of the study."""
    return (
        (shape, n, epsilon) for shape in (*SHAPES, *ROUNDS, *CLUSTERS, *DESIGNS) for n in SIZES for epsilon in EPSILONS
    )


def table(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """The study as a table; ``trusted`` where all modes are found in 95 % of the runs."""
    import pandas as pd  # here, since it takes its time to load

    found = pd.DataFrame(list(rows), columns=COLUMNS)
    return found.assign(trusted=found["all_found"] >= FOUND)


@lru_cache(maxsize=1)
def shipped_coverage() -> pd.DataFrame:
    """The study as it was run for this version."""
    import pandas as pd

    return pd.read_csv(FILE)


def summary(found: pd.DataFrame) -> str:
    """What the table says, in sentences that count."""
    lines, trusted = [], found[found["trusted"]]
    words = {"smoothed": "of the smoothed density", "population": "of the population"}
    whose_rows = dict.fromkeys(ROUNDS, "Modes of DP-GRAMS tight") | dict.fromkeys(CLUSTERS, "Centres")
    whose_of = trusted["shape"].map(whose_rows).fillna("Modes and branches of functional releases")
    for whose, rows in trusted.groupby(whose_of, sort=False):
        for kind, (low, high) in PROMISED.items():
            some = rows[rows[kind].notna()]
            if not len(some):
                continue
            inside, below = int(some[kind].between(low, high).sum()), int((some[kind] < low).sum())
            possible = int(((some[f"{kind}_high"] >= low) & (some[f"{kind}_low"] <= high)).sum())
            lines.append(
                f"{whose}, 95% regions {words[kind]}: true coverage between {low:g} and {high:g} in {inside} of "
                f"{len(some)} cells where all is found in 95% of the runs; its interval reaches there in {possible}, "
                f"and it is below {low:g} in {below}; the least is {some[kind].min():.2f}."
            )
    false = found["false_peaks"].dropna()
    lines.append(
        f"At most 5% of the runs report a false mode, farther than half-way to the next true one from each, in "
        f"{int((false <= 0.05).sum())} of {len(false)} cells."
    )
    off = found["off_mark"].dropna()
    if len(off):
        worst = found.nlargest(1, "off_mark").iloc[0]
        lines.append(
            f"At most 5% report one that the scores call spurious, since it is off its mark, in "
            f"{int((off <= 0.05).sum())} of {len(off)} cells; the worst is {worst['shape']} at n = {worst['n']:,} and "
            f"ε = {worst['epsilon']:g} with {worst['off_mark']:.0%}."
        )
    return "\n".join(lines)
