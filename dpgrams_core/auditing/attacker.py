"""The game for a person: from a released picture, was somebody in the data?

Two worlds.  In one the person is in the data, at a place of their own; in the other somebody of the crowd is in their
place.  A fair coin chooses the world of each round, its functional release is drawn, and the player sees what is left
of the picture when everybody else's hill is taken away: an attacker may know all others.  The best attacker compares
the heights at the two places, since the worlds differ by the difference of two hills (Neyman & Pearson), and is right
as often as ``meaning.gaussian_accuracy`` says.

The broken mechanism claims the same ε and adds the noise of a mean to a sum: too little by the number of records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy

from dpgrams_core.auditing.pairs import BOX, _cluster
from dpgrams_core.methods.functional.modes import release_surface
from dpgrams_core.methods.functional.spec import FunctionalSpec
from dpgrams_core.model.checks import one_of, whole
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.results import Dataset
from dpgrams_core.numerics.statistics import clopper_pearson
from dpgrams_core.numerics.surface import ReleasedSurface, box_bases, coefficients
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.meaning import gaussian_accuracy, largest_accuracy
from dpgrams_core.privacy.noise import SimulationNoise

Array = np.ndarray
ROUNDS = 10
RECORDS = 100
BANDWIDTH = 1.0
DELTA = 1e-6
PERSON, CROWD = np.array([2.5, 2.5]), np.array([-2.5, -2.5])
MECHANISMS = {"honest": "the functional release, as it is", "broken": "one that claims the same ε and adds too little"}
CONFIDENCE = 0.95
MOST_ROUNDS = 1_000_000  # of a class


def worlds() -> tuple[Dataset, Dataset]:
    """The data without the person, and with them; all other records are the same."""
    others = _cluster(RECORDS - 1, *CROWD)
    points = [np.concatenate([others, last[None]]) for last in (CROWD, PERSON)]
    out, inside = (Dataset(name="attacker", kind="modes", points=place, box=np.array(BOX)) for place in points)
    return out, inside


@dataclass(frozen=True, eq=False)
class Round:
    """One released picture without the hills of the others, and whether the person was in the data."""

    surface: ReleasedSurface
    inside: bool

    @property
    def heights(self) -> tuple[float, float]:
        """At the place of the person, and at that in the crowd; one person's hill is 1 high."""
        here, there = self.surface.value(np.stack([PERSON, CROWD]))
        return float(here), float(there)


def play(mechanism: str, epsilon: float, seed: int) -> Round:
    """The round of a secret number: its last bit is the coin, the rest is the seed of the noise."""
    one_of("mechanism", mechanism, MECHANISMS)
    noise_seed, coin = divmod(whole("seed", seed, 0), 2)
    data = worlds()[coin]
    spec = FunctionalSpec(epsilon=epsilon, delta=DELTA, bandwidth=BANDWIDTH)
    released = release_surface(data, spec, SimulationNoise(noise_seed)).surface
    assert isinstance(released, ReleasedSurface)
    bases = box_bases(data.box, BANDWIDTH)
    exact, others = coefficients(data.points, bases), coefficients(data.points[:-1], bases)
    noise = (released.coefficients - exact) / (RECORDS if mechanism == "broken" else 1)
    return Round(replace(released, coefficients=exact - others + noise), bool(coin))


@dataclass(frozen=True, kw_only=True)
class Score:
    """What some rounds show about a player, and about the claim of the mechanism.

    ``low`` and ``high`` bound the player's chance to be right; ``allowed`` is the largest that ε and δ allow, ``best``
    that of the best attacker on this very noise, and ``by_luck`` the chance of so many hits or more at ``allowed``.
    """

    rounds: int
    hits: int
    low: float
    high: float
    allowed: float
    best: float
    by_luck: float

    @property
    def caught(self) -> bool:
        """Whether so many hits are too many for the claim."""
        return self.by_luck < 1 - CONFIDENCE


def score(rounds: int, hits: int, epsilon: float) -> Score:
    """The score of a player, or of a class.

    >>> found = score(10, 10, 0.5)
    >>> round(found.allowed, 3), round(found.by_luck, 4), found.caught
    (0.622, 0.0087, True)
    >>> score(10, 8, 0.5).caught
    False
    """
    count = whole("rounds", rounds, 1, MOST_ROUNDS)
    right = whole("hits", hits, 0)
    if right > count:
        raise SpecError("hits", hits, f"there cannot be more than the rounds, {count}")
    low, high = clopper_pearson(np.array([right]), count, (1 - CONFIDENCE) / 2)
    allowed = largest_accuracy(epsilon, DELTA)
    return Score(
        rounds=count,
        hits=right,
        low=float(low[0]),
        high=float(high[0]),
        allowed=allowed,
        best=gaussian_accuracy(gaussian_multiplier(epsilon, DELTA)),
        by_luck=float(scipy.special.bdtrc(right - 1, count, allowed)) if right else 1.0,
    )
