"""How many records each method needs: noise over what it hides as n grows, from plans alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpgrams_core.checks import whole
from dpgrams_core.comparison import ComparisonSettings, candidates, row_of
from dpgrams_core.datasets import MAX_N, MIN_N, load_dataset
from dpgrams_core.errors import SpecError
from dpgrams_core.progress import checkpoint
from dpgrams_core.results import Dataset

USEFUL_RATIO = 1 / 3  # noise over what it hides; above it the guarantee card says "rough", above 1 "swamps"
CURVE_SIZES = tuple(round(10 ** (2 + i / 4)) for i in range(17))  # 100 to 1,000,000
_REFERENCE_N = 2_000


@dataclass(frozen=True)
class NoiseCurve:
    """Noise over what it hides as n grows, one method; nan where the settings cannot run."""

    title: str
    sizes: tuple[int, ...]
    ratios: tuple[float, ...]

    def stays_below(self, limit: float) -> float | None:
        """The n from which on the ratio stays at most ``limit``; None if that is beyond the curve."""
        above = [i for i, ratio in enumerate(self.ratios) if not ratio <= limit]
        if not above:
            return float(self.sizes[0])
        last = above[-1]
        if last == len(self.sizes) - 1:
            return None
        if math.isnan(self.ratios[last]):
            return float(self.sizes[last + 1])
        # A straight line between the two points on log scales.
        (x0, x1), (y0, y1) = np.log(self.sizes[last : last + 2]), np.log(self.ratios[last : last + 2])
        return float(math.exp(x0 + (x1 - x0) * (math.log(limit) - y0) / (y1 - y0)))


def noise_ratios(settings: ComparisonSettings, size: int) -> dict[str, float]:
    """Noise over signal at one n for every private candidate, by its key, without a run; nan where it cannot run.

    The plan sets the noise; what it hides is measured on one reference sample of the data set's law (synthetic)
    at this n's bandwidth.  A chosen batch keeps its share of the records.

    >>> sorted(noise_ratios(ComparisonSettings(), 1000))
    ['experiments', 'functional', 'theorem', 'tight']
    """
    n = whole("n", size, MIN_N, MAX_N)
    law = load_dataset(settings.dataset, n=_REFERENCE_N, seed=0)
    blank = Dataset(name=law.name, kind=law.kind, points=np.zeros((n, law.dimension)), box=law.box)
    batch = None
    if settings.batch_size is not None:
        batch = min(n, max(1, round(settings.batch_size / settings.n * n)))
    found = {}
    for item in candidates(replace(settings, n=n, batch_size=batch)):
        if item.method == "mean_shift":
            continue
        checkpoint()
        try:
            ratio = row_of(item, blank, law.points).ratio
        except SpecError:  # a gap: this n cannot be run with these settings
            ratio = None
        found[item.key] = math.nan if ratio is None else ratio
    return found


def curves_from(settings: ComparisonSettings, found: Mapping[int, Mapping[str, float]]) -> tuple[NoiseCurve, ...]:
    """One curve a candidate from the ratios of some n."""
    sizes = tuple(sorted(found))
    return tuple(
        # Where the share rounds to all records, tight stands once and serves for both.
        NoiseCurve(item.title, sizes, tuple(found[n].get(item.key, found[n]["tight"]) for n in sizes))
        for item in candidates(settings)
        if item.method != "mean_shift"
    )


def noise_curves(settings: ComparisonSettings, sizes: Sequence[int] = CURVE_SIZES) -> tuple[NoiseCurve, ...]:
    """Noise over signal against n for every private candidate; see :func:`noise_ratios`."""
    return curves_from(settings, {size: noise_ratios(settings, size) for size in sizes})
