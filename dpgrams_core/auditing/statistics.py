"""From a Release to numbers: test statistics that use only what was released.

Whoever attacks knows both neighbouring data sets and all but the noise; so a statistic may use the
two places of the record, and for a released surface, or the rounds of ``tight``, the exact sums of both.
Whether there is a release at all, and how many of its numbers are none, can be seen too: both are
statistics of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpgrams_core.auditing.pairs import NeighbourPair
from dpgrams_core.methods.dp_grams.rounds import kernel_sums
from dpgrams_core.methods.functional.paid import ColumnSums
from dpgrams_core.model.representation import PaidColumns
from dpgrams_core.model.results import Release
from dpgrams_core.numerics.pooled import PooledRounds
from dpgrams_core.numerics.rounding import whitened_axes
from dpgrams_core.numerics.scaling import BareSurface, rescaled

Array = np.ndarray
NEAR = 0.08  # of the box's diagonal: what counts as "near" a place
TRAINED = "trained combination"
LIKELIHOOD = "likelihood ratio"  # in the name of a statistic that is one, and normal in both worlds
FAILED = "the run failed"
NOT_FINITE = "released numbers that are not finite"
LARGEST = 1e150  # what is farther out counts as this, so that sums and squares stay finite


class Statistics:
    """The statistics of one pair; holds what need not be computed again for each trial."""

    def __init__(self, pair: NeighbourPair, records: Sequence[Array]) -> None:
        """Of a pair, with the records of both worlds as the method sees them: a door may have changed them."""
        self.pair, self.records = pair, records
        box = pair.first.box
        self.far = float(np.linalg.norm(box[:, 1] - box[:, 0]))
        along = pair.new - pair.old
        self.direction = along / max(float(np.linalg.norm(along)), 1e-300)
        self._projection: Array | None = None

    def of(self, release: Release) -> dict[str, float]:
        """Every statistic of one release, by name; the names depend on the method only."""
        found = {NOT_FINITE: float(sum(int((~np.isfinite(part)).sum()) for part in _released(release)))}
        found |= self._of_points("modes", release.modes)
        if self.pair.only_modes:
            return found
        if release.curve is not None:
            found |= self._of_points("curve", release.curve)
            found |= self._of_curve(release.curve)
        if release.anchors is not None:
            found |= self._of_points("anchors", release.anchors)
            first = release.anchors[:1]
            nearer = self._nearest(first, self.pair.old) - self._nearest(first, self.pair.new)
            found["first anchor: nearer to the new place"] = nearer
        if release.trajectories is not None and len(release.trajectories) > 1:
            found |= self._of_points("ends", release.trajectories[-1])
            found |= self._of_steps(release.trajectories)
        if release.paid is not None:
            found |= self._of_paid(release, release.paid)
        elif release.bare_surface is not None:
            found |= self._of_surface(release.bare_surface)
        if release.pooled is not None:
            found |= self._of_rounds(release.pooled, release.spec.batch_size)
        return found

    def _nearest(self, points: Array, place: Array) -> float:
        """Distance of the nearest point, never beyond the box's diagonal, also where there is no point."""
        distances = np.linalg.norm(points - place, axis=1)
        return float(min(distances.min(initial=self.far), self.far))

    def _of_points(self, part: str, points: Array) -> dict[str, float]:
        old, new = self._nearest(points, self.pair.old), self._nearest(points, self.pair.new)
        found = {
            f"{part}: how many": float(len(points)),
            f"{part}: distance to the old place": old,
            f"{part}: distance to the new place": new,
            f"{part}: old distance minus new": old - new,
        }
        for name, place in (("old", self.pair.old), ("new", self.pair.new)):
            near = np.linalg.norm(points - place, axis=1) < NEAR * self.far
            found[f"{part}: number near the {name} place"] = float(near.sum())
        return found

    def _of_curve(self, curve: Array) -> dict[str, float]:
        """The responses that the curve gives where the record's predictor is nearest."""
        nearest = np.abs(curve[:, 0] - self.pair.new[0])
        responses = curve[nearest == nearest.min(initial=math.inf), 1]
        ends = {"lowest": responses.min(initial=self.far), "highest": responses.max(initial=-self.far)}
        found = {f"curve at the record: {name} response": float(value) for name, value in ends.items()}
        away = np.abs(responses - self.pair.old[1]).min(initial=self.far)
        return found | {"curve at the record: distance to the old response": float(away)}

    def _of_steps(self, path: Array) -> dict[str, float]:
        """How the first step, and the whole way, move the start nearest to each place."""
        found = {"first step: mean along the move": float(((path[1] - path[0]) @ self.direction).mean())}
        for name, place in (("old", self.pair.old), ("new", self.pair.new)):
            start = int(np.argmin(np.linalg.norm(path[0] - place, axis=1)))
            step, way = path[1, start] - path[0, start], path[-1, start] - path[0, start]
            found[f"first step near the {name} place: along the move"] = float(step @ self.direction)
            found[f"first step near the {name} place: length"] = float(np.linalg.norm(step))
            # Where one record owns a place, an ascent that divides by the density hardly moves, half way to the other.
            near = np.linalg.norm(path[:-1] - place, axis=-1) < np.linalg.norm(self.pair.new - self.pair.old) / 2
            lengths = np.linalg.norm(np.diff(path, axis=0), axis=-1)[near]
            found[f"shortest step around the {name} place"] = float(lengths.min(initial=self.far))
            if len(path) > 2:
                found[f"whole way from the {name} place: along the move"] = float(way @ self.direction)
        return found

    def _of_surface(self, surface: BareSurface) -> dict[str, float]:
        box = self.pair.first.box
        places = rescaled(np.stack([self.pair.old, self.pair.new]), box, surface.box)
        old, new = (float(value) for value in surface.value(places))
        if self._projection is None:
            # The noise is the same in every coefficient, so the likelihood ratio of the two worlds is
            # an increasing function of this projection: no test can do better (Neyman and Pearson).
            exact = [surface.exact(rescaled(points, box, surface.box)) for points in self.records]
            self._projection = exact[1] - exact[0]
        return {
            "surface: height at the old place": old,
            "surface: height at the new place": new,
            "surface: new height minus old": new - old,
            f"surface: {LIKELIHOOD}": float((surface.coefficients * self._projection).sum()),
        }

    def _of_paid(self, release: Release, paid: PaidColumns) -> dict[str, float]:
        """The logarithm of the likelihood ratio, given what was released before each part: the three add up."""
        ranges, surface = tuple(map(tuple, paid.ranges.tolist())), release.bare_surface
        assert surface is not None
        parts: list[tuple[Callable[[Array], Array], Array]] = [
            (ColumnSums(ranges), paid.sums[0]),
            (ColumnSums(ranges, tuple(paid.middle.tolist())), paid.sums[1]),
            (lambda points: surface.exact(paid.project(points)), surface.coefficients),
        ]
        ratio = 0.0
        for (sums, numbers), event in zip(parts, release.events, strict=True):
            first, second = (sums(points) for points in self.records)
            ratio += float(((second - first) * (numbers - (first + second) / 2)).sum()) / event.noise_scale**2
        return {f"paid columns and surface: {LIKELIHOOD}": ratio}

    def _of_rounds(self, pooled: PooledRounds, batch_size: int) -> dict[str, float]:
        """The logarithm of the likelihood ratio of the two worlds, given where each round looked.

        A round's numbers are Gaussian with the exact sums there as means and one known covariance.  Where it looks is
        decided by what came before, so the logarithms add up.  That of the start's draws is not in it: they are not
        Gaussian, and have statistics of their own.
        """
        worlds = [rescaled(points, self.pair.first.box, pooled.box) for points in self.records]
        share, ratio = batch_size / len(worlds[0]), 0.0
        for at, numbers, covariance in pooled.rounds:
            axes, root = whitened_axes(covariance)
            wanted = pooled.wanted(*at.shape)
            first, second = (share * kernel_sums(points, at, pooled.h)[wanted] for points in worlds)
            apart, rest = (part @ axes / root for part in (second - first, numbers - (first + second) / 2))
            ratio += float(apart @ rest) / pooled.noise**2
        # With a part of the records in each round nobody knows whether the record is among them: a projection.
        return {f"rounds: {LIKELIHOOD if share == 1 else 'along the difference of the worlds'}": ratio}


def _released(release: Release) -> list[Array]:
    """All numbers of a release."""
    parts = [release.modes, release.curve, release.curve_band, release.anchors, release.trajectories]
    parts.append(release.significance)
    if release.surface is not None:
        parts.append(release.surface.coefficients)
    if release.pooled is not None:
        parts += [numbers for _, numbers, _ in release.pooled.rounds]
    return [part for part in parts if part is not None]


def train(first: Array, second: Array) -> tuple[Array, Array, Array]:
    """Centre, scale and weights of a linear rule that tells the two worlds' statistics apart.

    Ridge regression of the world's sign on standardised statistics; rows are trials.  Trained on the
    trials that choose the test, never on those that measure it.
    """
    rows = np.concatenate([first, second])
    sign = np.concatenate([-np.ones(len(first)), np.ones(len(second))])
    centre, scale = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(scale > 1e-12 * (1 + np.abs(centre)), scale, np.inf)  # a constant column says nothing
    table = squash(rows, centre, scale)
    gram = table.T @ table / len(table) + 0.01 * np.eye(table.shape[1])
    return centre, scale, np.linalg.solve(gram, table.T @ sign / len(table))


def squash(rows: Array, centre: Array, scale: Array) -> Array:
    """Standardised columns with rare huge values drawn in, or those would decide everything."""
    return np.tanh((rows - centre) / scale / 3)


def with_trained(rows: Array, rule: tuple[Array, Array, Array]) -> Array:
    """The statistics with the trained combination as one more column."""
    centre, scale, weights = rule
    return np.column_stack([rows, squash(rows, centre, scale) @ weights])
