"""LOWESS: the local mean as the paper draws it beside the branches (subsec:private-modal-regression); no privacy."""

from __future__ import annotations

import math

import numpy as np

from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.methods.pms import usable_records
from dpgrams_core.privacy.noise import Noise
from dpgrams_core.results import Dataset, Guarantee, Release, refuse_private
from dpgrams_core.specs_baselines import LowessSpec

EXACT_UP_TO = 2_000  # beyond it, lines are fitted at places a thousandth of the range apart and joined between


def lowess(data: Dataset, spec: LowessSpec, noise: Noise) -> Release:
    """LOWESS by statsmodels: curve rows (X_i, smoothed response), sorted by x."""
    refuse_private(data)
    # Imported here since it takes a second to load, which nobody else should wait for.
    from statsmodels.nonparametric.smoothers_lowess import lowess as smooth  # type: ignore[import-untyped]

    x, y = usable_records(data)
    if spec.fraction * data.n < 3:
        raise SpecError("fraction", spec.fraction, f"with {data.n} records it must be at least {3 / data.n:.3g}")
    skip = 0.0 if data.n <= EXACT_UP_TO else 0.001 * float(x[-1] - x[0])
    with np.errstate(all="ignore"):  # a window without spread in x gives NaN, which is looked for below
        fitted = smooth(y, x, frac=spec.fraction, it=spec.robust_steps, delta=skip, is_sorted=True, return_sorted=False)
    if not np.isfinite(fitted).all():
        raise DataError("Too many predictors are equal for a local line; take a larger fraction.")
    return Release(
        method="lowess",
        modes=np.empty((0, 2)),
        curve=np.stack([x, fitted], axis=1),
        spec=spec,
        events=(),
        guarantee=Guarantee(
            epsilon=math.inf,
            delta=1.0,
            status="none",
            statement="LOWESS reads the records directly and has no privacy.",
        ),
    )
