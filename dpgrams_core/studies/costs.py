"""What a run will cost, in seconds, before anything runs: from n, the box and the settings, all of them public.

What one run takes is a fact of its method (``Method.seconds``, methods/work.py).  Settings that a method refuses cost
nothing, since it refuses them before it begins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from dpgrams_core.datasets.registry import dataset_info
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.methods.work import A_ROOT, ALONG_A_SIDE, PRODUCT, UNIT_SECONDS
from dpgrams_core.model.checks import one_of
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.run import Run
from dpgrams_core.model.specs import make_spec
from dpgrams_core.studies.ablation import ladders
from dpgrams_core.studies.comparison import CURVE_SIZES, ComparisonSettings, candidates

Array = np.ndarray
AN_ACCOUNT = 4e7  # one event priced by every accountant; rounds make little difference, since they compose at once


def run_seconds(method: str, *, n: int, box: Array, **options: Any) -> float:
    """About how long one run takes on one core; 0 for settings that the method refuses.

    Parameters
    ----------
    method : a key of ``METHODS``.
    n, box : public facts of the data.
    **options : fields of the method's spec; what is left out has the method's default.

    >>> from dpgrams_core import load_dataset
    >>> box = load_dataset("four_corners", n=100, seed=0).box
    >>> cheap = run_seconds("dp_grams", n=5_000, box=box)
    >>> large = run_seconds("dp_grams", n=1_000_000, box=box, batch_size=1_000_000, n_steps=1_000)
    >>> cheap < 0.1, 100 < large < 1_000
    (True, True)
    """
    chosen = METHODS[one_of("method", method, METHODS)]
    try:
        spec: Any = make_spec(chosen.spec, options)
        return chosen.seconds(spec, n, np.asarray(box, dtype=float)) if chosen.seconds is not None else 0.0
    except SpecError:
        return 0.0


def cell_seconds(cell: Run) -> float:
    """About how long one run of a cell takes on one core."""
    options = dict(cell.options)
    if math.isfinite(cell.epsilon):
        options["epsilon"] = cell.epsilon
    return run_seconds(cell.method, n=cell.n, box=np.array(dataset_info(cell.dataset).box), **options)


def cells_seconds(cells: Iterable[Run]) -> float:
    """About how long all runs of some cells take on one core.

    Cells that differ in ε and the seed only are priced at the largest ε, where a release has its finest grid.
    """
    alike: dict[tuple[Any, ...], list[Run]] = {}
    for cell in cells:
        alike.setdefault((cell.method, cell.dataset, cell.n, cell.options), []).append(cell)
    return sum(
        sum(cell.runs for cell in same) * cell_seconds(max(same, key=lambda cell: cell.epsilon))
        for same in alike.values()
    )


def ladder_seconds(cell: Run) -> float:
    """About how long a ladder of errors takes on one core: its runs with every ingredient, and those without privacy.

    What is switched off costs as much as what is on, and without minibatches every step looks at all records.
    """
    box, method = np.array(dataset_info(cell.dataset).box), METHODS[cell.method]
    options = {**dict(cell.options), "epsilon": cell.epsilon}
    if "batch_size" in {item.name for item in fields(method.spec)}:
        options["batch_size"] = cell.n
    each = run_seconds(cell.method, n=cell.n, box=box, **options)
    plain = {"modes": "mean_shift", "regression": "pms", "clusters": "mean_shift_c"}[method.kind]
    return cell.runs * (len(ladders()[cell.method].rungs) * each + 2 * run_seconds(plain, n=cell.n, box=box))


def audit_seconds(method: str, *, n: int, box: Array, trials: int, **options: Any) -> float:
    """About how long an audit takes on one core: so many runs in each of two worlds."""
    return 2 * trials * run_seconds(method, n=n, box=box, **options)


def accountants_seconds(events: int) -> float:
    """About how long it takes to price so many events by every accountant."""
    return events * UNIT_SECONDS * (A_ROOT + AN_ACCOUNT)


def noise_curves_seconds(settings: ComparisonSettings) -> float:
    """About how long the noise of every method at every n of its curve takes, without a run."""
    roots = 0.0 if settings.batch_size is None else A_ROOT
    return len(CURVE_SIZES) * UNIT_SECONDS * (roots + len(candidates(settings)) * 2e5)


def density_seconds(n: int, nodes: int) -> float:
    """About how long the plain density on ``nodes`` x ``nodes`` places takes, which pages draw."""
    return UNIT_SECONDS * n * (2 * ALONG_A_SIDE * nodes + PRODUCT * nodes**2)
