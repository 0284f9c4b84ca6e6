"""What goes in (Dataset) and what comes out (Release, Guarantee, Diagnostics)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from dpgrams_core.model.checks import box_of, freeze, frozen_array, release_box
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.format import percent
from dpgrams_core.model.guarantee import GIVEN_REPRESENTATION
from dpgrams_core.model.guarantee import Guarantee as Guarantee
from dpgrams_core.model.representation import PaidColumns, Representation
from dpgrams_core.numerics.pooled import PooledRounds
from dpgrams_core.numerics.scaling import BareSurface, SurfaceInUnits, rescaled


def scaled_box(columns: int) -> np.ndarray:
    """The box of columns that are scaled by their own, (columns, 2)."""
    return np.array([(-4.0, 4.0)] * columns)


def _numbers(points: Any) -> np.ndarray:
    """A table of doubles, read-only; what is no number is refused without repeating it: it may be private."""
    try:
        try:
            with np.errstate(over="ignore"):  # what is too large for a double is infinite
                return frozen_array(points)
        except (OverflowError, TypeError):  # a whole number of any length, or pandas' word for a missing one
            return frozen_array(np.vectorize(_double, otypes=[float])(np.array(points, dtype=object)))
    except (TypeError, ValueError):
        raise DataError("The points must be a table of numbers with the same columns in every row.") from None


def _double(number: Any) -> float:
    """One number as NumPy reads it, but of any length, or missing in any of the ways that pandas knows."""
    try:
        missing = number is None or type(number).__name__ in ("NAType", "NaTType")
        return math.nan if missing else float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


class ConditionalTruth(Protocol):
    """The known law of regression data: conditional modes as tables (len(x), most), padded with NaN."""

    def mode_table(self, x: np.ndarray) -> np.ndarray:
        """The modes of the conditional density."""

    def paper_table(self, x: np.ndarray) -> np.ndarray:
        """The set that the paper's metric takes."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Points with their public box, and the truth where it is known.

    ``points`` has shape (n, d), ``box`` (d, 2), ``true_modes`` (k, d).  Regression data have the predictor in
    the first column, which is public, and the response in the second; ``truth`` is their conditional law.
    Clustering data have their true classes in ``labels``, the way back to their original columns in
    ``representation``, and where there are any, public points of the same columns in ``candidates`` (m, d).
    ``private=True`` marks data whose records must be protected.  No value of theirs is refused: a missing or an
    infinite one finds its place at the release door (methods/door.py).  ``picked`` are settings with the value that
    somebody picked by looking at these very records, as in ``(("clip_multiplier", 0.1),)``: a result with it is
    nominal.  ``scaled=True`` is for columns in different units: methods see each scaled by its side of the box to
    -4 to 4, so that they share one bandwidth, and what comes back is in the units of the columns again (units.py).
    ``design`` says how a listed data set was drawn where that is not the usual way, and ``as_run`` are the settings
    that the paper's tables were run with on it, for the calibration of that name.
    """

    name: str
    kind: str
    points: np.ndarray = field(repr=False)
    box: np.ndarray
    true_modes: np.ndarray | None = None
    labels: np.ndarray | None = field(default=None, repr=False)
    private: bool = False
    truth: ConditionalTruth | None = field(default=None, repr=False)
    representation: Representation | None = field(default=None, repr=False)
    candidates: np.ndarray | None = field(default=None, repr=False)
    picked: tuple[tuple[str, Any], ...] = ()
    scaled: bool = False
    design: str = ""
    as_run: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        points = _numbers(self.points)
        if points.ndim != 2 or points.shape[0] < 1 or points.shape[1] < 1:
            raise DataError("The points must be a table with at least one row and one column.")
        if not self.private and not np.isfinite(points).all():
            raise DataError("The points hold missing or infinite values; drop those rows first.")
        object.__setattr__(self, "points", points)
        box = frozen_array(release_box(self.box) if self.private else box_of(self.box))
        if box.shape[0] != points.shape[1]:
            raise DataError(f"The box has {box.shape[0]} rows, but the points have {points.shape[1]} columns.")
        object.__setattr__(self, "box", box)
        freeze(self, "true_modes", "candidates")
        freeze(self, "labels", dtype=None)
        if self.candidates is not None:
            if self.candidates.ndim != 2 or self.candidates.shape[1] != points.shape[1]:
                raise DataError(f"The candidates must be a table with {points.shape[1]} columns, as the points are.")
            if not np.isfinite(self.candidates).all():
                raise DataError("The candidates hold missing or infinite values; drop those rows first.")

    @property
    def n(self) -> int:
        """Number of records (public)."""
        return int(self.points.shape[0])

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return int(self.points.shape[1])

    @property
    def method_box(self) -> np.ndarray:
        """The box that methods see, (d, 2)."""
        return scaled_box(self.dimension) if self.scaled else self.box

    @property
    def usable_points(self) -> np.ndarray:
        """The records that miss no value; those that do still count in ``n``. Only private data have any."""
        missing = np.isnan(self.points).any(axis=1)
        return self.points[~missing] if missing.any() else self.points

    def add_up(self, sums: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """What ``sums`` adds up over all records: the one question that data too large to be held can answer."""
        return sums(self.points)

    def for_many_runs(self) -> Dataset:
        """The same data for many simulated runs, frames or trials: sums over the records are computed once.

        They are kept with what is returned and go with it, known by the records that they were computed of, so that
        data made from these with other records have their own.  Private data are drawn from once, and stay as they are.
        """
        return self if self.private else _Reused(**{item.name: getattr(self, item.name) for item in fields(self)})

    def refuse_other(self, method: str, spec: Any) -> None:
        """Refuse a method or settings that these data were not prepared for; with all their records they serve any."""

    @property
    def n_clusters(self) -> int | None:
        """The number of true classes where it is known; private labels are not counted."""
        if self.representation is not None:
            return len(self.representation.class_names)
        return len(np.unique(self.labels)) if self.labels is not None and not self.private else None

    def qualified(self, guarantee: Guarantee, spec: Any) -> Guarantee:
        """A guarantee on these data with what they say of their columns and settings; public facts only.

        Columns that were fitted on the records are its condition, and a setting that was picked on them makes it
        nominal.  A result without privacy stays as it is.
        """
        if guarantee.status == "none":
            return guarantee
        for name, value in self.picked:
            used = getattr(spec, name, None)
            # A value beside the one that was picked is picked as well.
            numbers = [number for number in (used, value) if isinstance(number, (int, float))]
            if used == value or (len(numbers) == 2 and math.isclose(*numbers, rel_tol=0.1)):
                guarantee = guarantee.with_picked(name.replace("_", " "))
        for reason in () if self.representation is None else self.representation.caveats:
            guarantee = guarantee.given(GIVEN_REPRESENTATION, reason)
        return guarantee

    @property
    def x(self) -> np.ndarray:
        """The predictors of regression data (public)."""
        return self._columns[:, 0]

    @property
    def y(self) -> np.ndarray:
        """The responses of regression data."""
        return self._columns[:, 1]

    def conditional_modes(self, x: float | np.ndarray) -> np.ndarray | list[np.ndarray]:
        """The modes of the true p(y | x): an array for a number x, a list of arrays for an array."""
        if self.truth is None:
            raise DataError(f"The data set {self.name} has no known conditional modes.")
        table = self.truth.mode_table(np.atleast_1d(np.asarray(x, dtype=float)))
        rows = [row[np.isfinite(row)] for row in table]
        return rows[0] if np.ndim(x) == 0 else rows

    @property
    def _columns(self) -> np.ndarray:
        if self.kind != "regression":
            raise DataError(f"The data set {self.name} holds {self.kind} data, which have no predictor and response.")
        return self.points


@dataclass(frozen=True, kw_only=True, eq=False)
class _Reused(Dataset):
    _sums: dict[Any, np.ndarray] = field(default_factory=dict, repr=False)

    def add_up(self, sums: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        if self.private:
            return super().add_up(sums)
        key = (sums, hashlib.blake2b(np.ascontiguousarray(self.points).data).digest())
        if key not in self._sums:
            self._sums[key] = frozen_array(super().add_up(sums))
        return self._sums[key]

    def for_many_runs(self) -> Dataset:
        return self


def refuse_private(data: Dataset, door: str = "") -> None:
    """The first line of whatever reads records: scores, comparisons, pictures, baselines, runs with known noise.

    Private records leave through ``run`` and ``release`` alone, whose noise has the ``door`` "release"; a method says
    the door of its noise here.  Nothing of the data is looked at but the mark.
    """
    if data.private and door != "release":
        raise DataError(
            "The data are private, and this reads their records without protecting them: it is for synthetic or public "
            "data. Nothing was read."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnostics:
    """What is *not* private: for simulations and public data only, never part of a download."""

    candidates: np.ndarray | None = None
    utilities: np.ndarray | None = None
    score_size: float | None = None
    clipped_share: float | None = None
    outside_box: int | None = None
    labels: np.ndarray | None = None

    def __post_init__(self) -> None:
        freeze(self, "candidates", "utilities", "labels", dtype=None)


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """What a method gives out. Every field here may be published; diagnostics may not.

    ``modes`` (k, d), or for regression no modes but ``curve`` with rows (x, y) and, where known, the number of the
    branch of each row in ``branches`` and its 95 % band in ``curve_band``, rows (lower, upper) of y: where noise alone
    may have moved it, so of the *smoothed density*; ``anchors`` (starts, d); ``trajectories`` (steps + 1, starts, d).
    ``noise_scale`` is the standard deviation of the noise on each score coordinate (or, with a
    ``surface``, on its coefficients); ``significance`` (k,) says how far each mode stands above the noise, and
    ``heights`` (k,) how many records, by the kernel's weight, stand around it.  ``pooled`` are the rounds of the tight
    calibration: every number that they released, and the estimate from all of them, in the box that the method saw.
    With ``paid`` columns the surface is over their box, and modes, anchors and trajectories are in those of the data.
    """

    method: str
    modes: np.ndarray
    spec: Any
    events: tuple[Any, ...]
    guarantee: Guarantee
    anchors: np.ndarray | None = None
    trajectories: np.ndarray | None = None
    curve: np.ndarray | None = None
    branches: np.ndarray | None = None
    curve_band: np.ndarray | None = None
    noise_scale: float | None = None
    surface: BareSurface | SurfaceInUnits | None = None
    significance: np.ndarray | None = None
    heights: np.ndarray | None = None
    pooled: PooledRounds | None = field(default=None, repr=False)
    paid: PaidColumns | None = field(default=None, repr=False)
    door: str = "simulation"
    seed: int | None = None
    _diagnostics: Diagnostics | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        freeze(self, "modes", "anchors", "trajectories", "curve", "curve_band", "significance", "heights")
        freeze(self, "branches", dtype=int)

    @property
    def bare_surface(self) -> BareSurface | None:
        """The surface as its method made it, in the box that the method saw: what post-processing works on."""
        return self.surface.bare if isinstance(self.surface, SurfaceInUnits) else self.surface

    @cached_property
    def _covariances(self) -> tuple[np.ndarray, np.ndarray] | None:
        surface, units, modes = self.bare_surface, self.surface, self.modes
        if self.pooled is not None and self.method == "dp_grams":  # modes of regression and centres are no peaks
            return self._of_rounds(self.pooled)
        if surface is None or self.curve is not None or self.unread:
            return None
        if isinstance(units, SurfaceInUnits):
            modes = units.to_bare(modes)
        elif self.paid is not None:
            modes = self.paid.place_of(modes)
        if self.significance is None:
            from dpgrams_core.numerics.centres import centre_covariances  # here, since few ask

            noise, both = centre_covariances(surface, modes)
        else:
            from dpgrams_core.numerics.regions import mode_covariances

            noise, both = mode_covariances(surface, modes)
        if not isinstance(units, SurfaceInUnits):
            return noise, both
        sides = units.bandwidths / surface.bandwidth
        return noise * np.outer(sides, sides), both * np.outer(sides, sides)

    def _of_rounds(self, rounds: PooledRounds) -> tuple[np.ndarray, np.ndarray]:
        from dpgrams_core.numerics.regions import round_covariances

        sides = np.divide(*(box[:, 1] - box[:, 0] for box in (rounds.shown, rounds.box)))
        noise, both = round_covariances(rounds, rescaled(self.modes, rounds.shown, rounds.box))
        return noise * np.outer(sides, sides), both * np.outer(sides, sides)

    @property
    def noise_covariances(self) -> np.ndarray | None:
        """Covariances (k, d, d) of modes or centres by the noise alone, from the release: where the same reading would
        put them without it, those of the *smoothed density*.  None for what was read neither off a surface nor, as the
        modes of the tight DP-GRAMS, off rounds that say more than their ends; in the bought columns where columns were
        ``paid`` for.  Centres take seconds, since their release is drawn again and again."""
        return None if self._covariances is None else self._covariances[0]

    @property
    def mode_covariances(self) -> np.ndarray | None:
        """The same by noise, sampling and how lopsided the release shows a mode: how far the *population's* may be."""
        return None if self._covariances is None else self._covariances[1]

    @cached_property
    def half_widths(self) -> np.ndarray | None:
        """± of 95 % of that along each column of the data, (k, d); NaN for a mode that stands too little above the
        noise for a region.  None where there are no covariances."""
        if self.mode_covariances is None:
            return None
        from dpgrams_core.numerics.bumps import WEAK
        from dpgrams_core.numerics.ridges import NORMAL_95

        ways = np.eye(self.mode_covariances.shape[-1]) if self.paid is None else self.paid.ways
        spreads = np.sqrt(np.einsum("aj,kab,bj->kj", ways, self.mode_covariances, ways))
        sure = True if self.significance is None else self.significance[:, None] >= WEAK
        return np.where(sure, NORMAL_95 * spreads, np.nan)

    @property
    def noise_chances(self) -> np.ndarray | None:
        """The chance (k,) that the noise alone would show a bump as high as each mode somewhere in the box.

        What is tested is a bump of these records' smoothed density.  With an unknown number of modes those are kept
        where it is at most 5 % (0.1 % in a sketch) with sampling counted as noise.  None without a surface."""
        surface = self.bare_surface
        if surface is None or self.curve is not None or self.significance is None:
            return None
        from dpgrams_core.numerics.sketch import noise_chances  # here, as above

        return noise_chances(surface.box, surface.bandwidth, self.significance)

    @property
    def rows(self) -> np.ndarray:
        """What is shown: the modes or centres (k, d), or the rows (x, y) of the curve."""
        return self.modes if self.curve is None else self.curve

    @property
    def unread(self) -> bool:
        """Whether a surface was drawn and nothing is read off it: not even that nothing stands above the noise."""
        nothing = self.curve is None and self.significance is None and len(self.modes) == 0
        return self.surface is not None and nothing

    @property
    def diagnostics(self) -> Diagnostics:
        """The non-private by-products; refused where the data are private."""
        if self._diagnostics is None:
            raise DataError(
                "Diagnostics are not private and are kept for simulations and public data only; this result has none."
            )
        return self._diagnostics


@dataclass(frozen=True, kw_only=True)
class AuditTest:
    """One test of an audit: an event, and how often it came in each of two neighbouring worlds.

    The event is "statistic above threshold" (``above``) or "at most threshold".  A true positive is the
    event in the second world, a false positive in the first; ``swapped`` exchanges the two.  Each end of
    each interval is a one-sided Clopper-Pearson bound at the share of the error that this test was given.
    """

    statistic: str
    above: bool
    threshold: float
    swapped: bool
    trials: int
    true_positives: int
    false_positives: int
    true_positive_interval: tuple[float, float]
    false_positive_interval: tuple[float, float]
    epsilon_lower: float
    null_values: tuple[float, ...] = field(default=(), repr=False)
    other_values: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True)
class GaussianFit:
    """What the likelihood ratio of the two worlds shows, if it is normal in both with one spread.

    ``shift`` is the estimated distance of the two means in units of the spread, ``shift_lower`` its lower confidence
    bound.  A mechanism with that shift is Gaussian-DP with it (Dong, Roth and Su 2022), and its epsilon at any delta is
    at least that of one Gaussian release.  Nothing is counted, so a thousand trials come near the true epsilon; but the
    bound rests on the normal law, which the distribution-free tests do not.
    """

    statistic: str
    trials: int
    shift: float
    shift_lower: float
    epsilon_lower: float


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What a distinguishing game found: a lower bound on the epsilon that a mechanism really has.

    ``trials`` runs were planned in each world and ``trials_done`` have been made; half of them chose the
    tests and half were counted.  ``confidence`` holds for the tests of all interim results of one audit together,
    so stopping early is safe; the fit has the same confidence for itself.  An audit through the release ``door`` has no
    seed and cannot be repeated.
    """

    method: str
    pair: str
    n: int
    epsilon_claimed: float
    delta: float
    claimed_status: str
    confidence: float
    trials: int
    trials_done: int
    seed: int | None
    tests: tuple[AuditTest, AuditTest]
    door: str = "simulation"
    gaussian: GaussianFit | None = None  # where the released numbers have a likelihood ratio, and it looks normal

    @property
    def best(self) -> AuditTest:
        """The test with the larger bound."""
        return max(self.tests, key=lambda test: test.epsilon_lower)

    @property
    def epsilon_lower(self) -> float:
        """With the stated confidence, the mechanism's epsilon at this delta is at least this; never below 0."""
        return self.best.epsilon_lower

    @property
    def statistic(self) -> str:
        """The statistic of the better test."""
        return self.best.statistic

    @property
    def caught(self) -> bool:
        """Whether the lower bound exceeds the claim."""
        return self.epsilon_lower > self.epsilon_claimed

    @property
    def complete(self) -> bool:
        """Whether all planned trials were made."""
        return self.trials_done >= self.trials

    @property
    def fit_words(self) -> str:
        """What the fit of the likelihood ratio adds, and what it rests on; empty where there is none."""
        if self.gaussian is None:
            return ""
        return (
            f"If the likelihood ratio of the two worlds is normal, as it is under Gaussian noise, ε is at least "
            f"{self.gaussian.epsilon_lower:.3g}: {100 * self.gaussian.epsilon_lower / self.epsilon_claimed:.0f}% of "
            f"the claim ({percent(self.confidence)} confidence)."
        )

    @property
    def verdict(self) -> str:
        """One sentence, with the names that commands and links have."""
        return self.verdict_on(self.method, self.pair)

    def verdict_on(self, method: str, pair: str) -> str:
        """The same sentence with other names of the method and the pair, such as people read."""
        sure = f"{percent(self.confidence)} confidence"
        if self.caught:
            return (
                f"Caught: {method} claims ε = {self.epsilon_claimed:g}, but on {pair} its ε at "
                f"δ = {self.delta:g} is at least {self.epsilon_lower:.3g} ({sure})."
            )
        return (
            f"Not caught: on {pair} the audit shows only ε ≥ {self.epsilon_lower:.3g} ({sure}) against the "
            f"claimed {self.epsilon_claimed:g}. This proves nothing: another pair or a better test may show more."
        )
