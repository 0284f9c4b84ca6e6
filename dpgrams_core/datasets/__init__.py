"""The data sets, as a registry of named loaders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgrams_core.checks import one_of, whole
from dpgrams_core.datasets.mixtures import FOUR_CORNERS, T_MIXTURE, Mixture
from dpgrams_core.datasets.regression import SINUSOID, THREE_COMPONENT, BranchMixture
from dpgrams_core.results import Dataset

MIN_N, MAX_N = 50, 1_000_000


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a data set before it is drawn."""

    name: str
    kind: str
    title: str
    description: str
    mixture: Mixture | BranchMixture
    box: tuple[tuple[float, float], ...]
    default_n: int

    @property
    def true_modes(self) -> np.ndarray | None:
        """The modes of the density, where these are what is looked for."""
        return self.mixture.modes() if isinstance(self.mixture, Mixture) else None


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo(
            "four_corners",
            "modes",
            "Four corners",
            "Four equal Gaussian bumps at the corners of a square: the paper's clean example.",
            FOUR_CORNERS,
            ((-7.0, 7.0), (-7.0, 7.0)),
            5000,
        ),
        DatasetInfo(
            "t_mixture",
            "modes",
            "Five t-bumps",
            "Five heavy-tailed bumps of very different widths: the paper's harder example.",
            T_MIXTURE,
            ((-10.0, 10.0), (-10.0, 10.0)),
            5000,
        ),
        DatasetInfo(
            "sinusoid",
            "regression",
            "Two waves",
            "Two parallel waves: the mean runs between them, where hardly any record is.",
            SINUSOID,
            ((0.0, 1.0), (-1.0, 2.5)),
            1200,
        ),
        DatasetInfo(
            "three_component",
            "regression",
            "Three steps",
            "Three flat branches, each over its own stretch of x, overlapping at two places.",
            THREE_COMPONENT,
            ((0.0, 1.0), (0.0, 4.0)),
            1000,
        ),
    )
}


def datasets_of(kind: str) -> list[str]:
    """The names of the data sets of one kind.

    >>> datasets_of("modes")
    ['four_corners', 't_mixture']
    """
    return [name for name, info in DATASETS.items() if info.kind == kind]


def load_dataset(name: str, *, n: int | None = None, seed: int = 0) -> Dataset:
    """Draw a named data set.

    Parameters
    ----------
    name : a key of ``DATASETS``.
    n : number of independent draws, 50 to 1,000,000; each data set has a default.
    seed : of the draw. These data are synthetic, so a seed is safe.

    Examples
    --------
    >>> load_dataset("four_corners", n=1000, seed=0).points.shape
    (1000, 2)
    """
    info = DATASETS[one_of("dataset", name, DATASETS)]
    size = whole("n", info.default_n if n is None else n, MIN_N, MAX_N)
    rng = np.random.default_rng(whole("seed", seed, 0))
    points, labels = info.mixture.sample(size, rng)
    return Dataset(
        name=name,
        kind=info.kind,
        points=points,
        box=np.array(info.box),
        true_modes=info.true_modes,
        labels=labels,
        truth=info.mixture if isinstance(info.mixture, BranchMixture) else None,
    )
