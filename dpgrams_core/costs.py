"""What a run will cost, in seconds, before anything runs: from n, the box and the settings, all of them public.

The unit of work is one kernel value: the weight of one record at one place, as a step of the ascent needs it.  Other
work is counted in the same unit: a multiplication within a matrix product is a three hundredth of one.  One number of
the machine, ``UNIT_SECONDS``, turns work into time.  ``benchmarks/costs.py`` measures it and prints predicted beside
measured times; most agree within a factor of three, which is enough to tell seconds from minutes from hours.

Where the work depends on the records (how many modes a small bandwidth leaves, how many steps a climb takes) a usual
number stands for it.  Settings that a method refuses cost nothing, since it refuses them before it begins; what lies
above a limit of a method is priced at that limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from dpgrams_core.bandwidths import BandwidthFacts, choose_bandwidth, mean_side, release_bandwidth
from dpgrams_core.cells import Cell
from dpgrams_core.checks import one_of
from dpgrams_core.comparison import ComparisonSettings, candidates
from dpgrams_core.datasets import DATASETS
from dpgrams_core.error_ladders import LADDERS
from dpgrams_core.errors import SpecError
from dpgrams_core.methods import METHODS
from dpgrams_core.methods.baselines import MAX_NODES
from dpgrams_core.methods.baselines import MAX_STARTS as MEAN_SHIFT_STARTS
from dpgrams_core.methods.dap import MAX_CANDIDATES
from dpgrams_core.methods.dp_grams_c import SPREAD_CANDIDATES
from dpgrams_core.methods.dp_grams_plan import INIT_BANDWIDTH_OF_BOX, default_batch, default_starts
from dpgrams_core.methods.dp_pms_plan import MOST_BINS, START_MULTIPLIER
from dpgrams_core.methods.functional import GRID_DIMENSIONS, SENSITIVITY
from dpgrams_core.methods.functional_c import BANDWIDTH_SCALE
from dpgrams_core.methods.kmeans import MAX_ROUNDS
from dpgrams_core.methods.mean_shift_c import EXACT_RECORDS, LEAST_STARTS, MOST_STEPS, PAIRS, SPACINGS
from dpgrams_core.methods.pms import MAX_PAIRS
from dpgrams_core.noise_curves import CURVE_SIZES
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.specs import make_spec
from dpgrams_core.surfaces import MAX_COEFFICIENTS, PADDING, SPACING

Array = np.ndarray
UNIT_SECONDS = 2e-8  # of one kernel value on one core; benchmarks/costs.py
PRODUCT = 1 / 300  # a multiplication in a matrix product
EIGENVECTORS = 1 / 150  # of a matrix, times the cube of its size
ALONG_A_SIDE = 0.5  # a kernel value in one column
A_RUN = 5e4  # what every run does besides
A_RECORD = 15.0  # a record that is drawn, and counted when a run is scored
IN_A_TREE = 25.0  # a record that DAP counts
OTHER_KERNEL = 8.0  # a kernel that is no Gaussian, and its gradient
USUAL_CLIMB = 20  # steps of mean shift by exact sums
MOST_BUMPS, MANY_NODES = 40, 200_000  # bumps that are found in a surface of so many nodes
A_ROOT = 1e7  # the noise of rounds on batches, sought by an accountant
A_FIT = 1.5e6  # bumps fitted together to a surface
AN_ACCOUNT = 4e7  # one event priced by every accountant; rounds make little difference, since they compose at once


def run_seconds(method: str, *, n: int, box: Array, **options: Any) -> float:
    """About how long one run takes on one core; 0 for settings that the method refuses.

    Parameters
    ----------
    method : a key of ``METHODS``.
    n, box : public facts of the data.
    **options : fields of the method's spec; what is left out has the method's default.

    Examples
    --------
    >>> from dpgrams_core import load_dataset
    >>> box = load_dataset("four_corners", n=100, seed=0).box
    >>> cheap = run_seconds("dp_grams", n=5_000, box=box)
    >>> large = run_seconds("dp_grams", n=1_000_000, box=box, batch_size=1_000_000, n_steps=1_000)
    >>> cheap < 0.1, 100 < large < 1_000
    (True, True)
    """
    chosen = METHODS[one_of("method", method, METHODS)]
    try:
        work = _WORK[method](make_spec(chosen.spec, options), n, np.asarray(box, dtype=float))
    except SpecError:
        return 0.0
    return UNIT_SECONDS * (A_RUN + A_RECORD * n + work)


def cell_seconds(cell: Cell) -> float:
    """About how long one run of a cell takes on one core."""
    options = dict(cell.options)
    if math.isfinite(cell.epsilon):
        options["epsilon"] = cell.epsilon
    return run_seconds(cell.method, n=cell.n, box=np.array(DATASETS[cell.dataset].box), **options)


def cells_seconds(cells: Iterable[Cell]) -> float:
    """About how long all runs of some cells take on one core.

    Cells that differ in ε and the seed only are priced at the largest ε, where a release has its finest grid.
    """
    alike: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        alike.setdefault((cell.method, cell.dataset, cell.n, cell.options), []).append(cell)
    return sum(
        sum(cell.runs for cell in same) * cell_seconds(max(same, key=lambda cell: cell.epsilon))
        for same in alike.values()
    )


def ladder_seconds(cell: Cell) -> float:
    """About how long a ladder of errors takes on one core: its runs with every ingredient, and those without privacy.

    What is switched off costs as much as what is on, and without minibatches every step looks at all records.
    """
    box, method = np.array(DATASETS[cell.dataset].box), METHODS[cell.method]
    options = {**dict(cell.options), "epsilon": cell.epsilon}
    if "batch_size" in {item.name for item in fields(method.spec)}:
        options["batch_size"] = cell.n
    each = run_seconds(cell.method, n=cell.n, box=box, **options)
    plain = {"modes": "mean_shift", "regression": "pms", "clusters": "mean_shift_c"}[method.kind]
    return cell.runs * (len(LADDERS[cell.method].rungs) * each + 2 * run_seconds(plain, n=cell.n, box=box))


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


def _ascent(spec: Any, n: int, box: Array) -> float:
    """DP-GRAMS and DP-GRAMS-C: the starts, then T rounds of m records at k places with noise that is correlated."""
    d, tight = len(box), spec.calibration == "tight"
    known = spec.n_modes or getattr(spec, "n_clusters", None)
    starts = default_starts(max(n, 3), known) if spec.n_starts is None else spec.n_starts
    steps = math.ceil(math.log(n)) if spec.n_steps is None else spec.n_steps
    batch = min(n, default_batch(n, spec.calibration) if spec.batch_size is None else spec.batch_size)
    value = (1 + d) / 3 * (1.0 if spec.kernel == "gaussian" else OTHER_KERNEL)
    matrix = starts * (1 + d) if tight else starts
    places = _candidates(spec, box)
    root = A_ROOT if tight and batch < n else 0.0
    rounds = steps * (batch * starts * value + EIGENVECTORS * matrix**3 + 0.3 * n + 500)
    return rounds + IN_A_TREE * n + 2 * places * (starts + 10) + root


def _candidates(spec: Any, box: Array) -> float:
    """How many places DAP draws from, at most."""
    if spec.candidates is not None:
        return min(MAX_CANDIDATES, len(spec.candidates))
    if len(box) > GRID_DIMENSIONS:
        return SPREAD_CANDIDATES
    spacing = INIT_BANDWIDTH_OF_BOX * mean_side(box) if spec.init_bandwidth is None else spec.init_bandwidth
    return min(MAX_CANDIDATES, float(np.prod((box[:, 1] - box[:, 0]) / spacing + 1)))


def _public_bandwidth(spec: Any, n: int, box: Array, epsilon: float) -> float:
    """The bandwidth asked for; a rule that reads the records gets some that spread over an eighth of the box."""
    middle, away = box.mean(axis=1), (box[:, 1] - box[:, 0]) / 8 / math.sqrt(2)
    facts = BandwidthFacts(
        n=n,
        d=len(box),
        box=box,
        epsilon=epsilon,
        beta=getattr(spec, "beta", 3.0),
        points=np.stack([middle - away, middle + away]),
    )
    return choose_bandwidth(spec.bandwidth, spec.bandwidth_scale, facts).value


def _release_bandwidth(spec: Any, n: int, box: Array, scale: float = 1.0) -> float:
    """The bandwidth of a functional release, by its own public rule unless one is asked for."""
    if spec.bandwidth is not None:
        return _public_bandwidth(spec, n, box, spec.epsilon)
    sigma = SENSITIVITY * gaussian_multiplier(spec.epsilon, spec.delta)
    return scale * (spec.bandwidth_scale or 1.0) * release_bandwidth(n=n, d=len(box), box=box, sigma=sigma)


def _surface(n: int, box: Array, h: float) -> float:
    """The coefficients of a kernel sum: on a grid in few columns, as a sketch in more."""
    if len(box) > GRID_DIMENSIONS:
        return n * (2_000 + 260_000 * PRODUCT)  # 1,024 waves a record, and the products of each block
    nodes = _grid(box, h)
    products = n * float((nodes**2).sum() + nodes.prod())
    return n * ALONG_A_SIDE * float(nodes.sum()) + PRODUCT * products + EIGENVECTORS * float((nodes**3).sum())


def _grid(box: Array, h: float) -> Array:
    """Nodes along each side, of a grid that is not refused."""
    nodes = np.ceil(((box[:, 1] - box[:, 0]) / h + 2 * PADDING) / SPACING) + 1
    return np.asarray(nodes * min(1.0, (MAX_COEFFICIENTS / nodes.prod()) ** (1 / len(box))))


def _bumps(box: Array, h: float, count: int | None) -> float:
    """Modes read off a surface: a search on a grid, bump after bump, and where the count is known a posterior."""
    if len(box) > GRID_DIMENSIONS:
        return 1e7 + 4e5 * (count or 0)
    nodes = float(_grid(box, h).prod()) * 1.5
    found = MOST_BUMPS * min(1.0, nodes / MANY_NODES) if count is None else count
    search = 2 * nodes * found * (found + 1) + 120 * PRODUCT * nodes * found
    search += A_FIT
    return search if count is None else search + 40 * count * nodes * (count + 4)


def _functional(spec: Any, n: int, box: Array) -> float:
    h = _release_bandwidth(spec, n, box)
    return _surface(n, box, h) + _bumps(box, h, spec.n_modes)


def _functional_c(spec: Any, n: int, box: Array) -> float:
    h = _release_bandwidth(spec, n, box, BANDWIDTH_SCALE)
    if spec.n_clusters is None:
        return _surface(n, box, h) + _bumps(box, h, None)
    # The likeliest places of the records, and k-means over them: a sketch has a kernel between all places.
    return _surface(n, box, h) + (5e5 if len(box) <= GRID_DIMENSIONS else 2.5e7) + 1e4 * spec.n_clusters


def _functional_regression(spec: Any, n: int, _: Array) -> float:
    square = np.tile([0.0, 1.0], (2, 1))
    h = _release_bandwidth(spec, n, square)
    return _surface(n, square, h) + PRODUCT * spec.grid_size * 40 * float(_grid(square, h).prod())


def _mean_shift(spec: Any, n: int, box: Array) -> float:
    return _climb(n, box, _public_bandwidth(spec, n, box, math.inf), min(n, MEAN_SHIFT_STARTS))


def _climb(n: int, box: Array, h: float, starts: int) -> float:
    """Mean shift to its end: on splines of exact sums over a grid in two columns, by exact sums in others."""
    nodes = 4 * (1.15 * (box[:, 1] - box[:, 0]) / h + 4)
    if len(box) != 2 or nodes.prod() > MAX_NODES:
        return USUAL_CLIMB * float(n) * starts
    modes = float(np.prod((box[:, 1] - box[:, 0]) / h)) / 200
    sums = n * ALONG_A_SIDE * float(nodes.sum()) + 3 * PRODUCT * n * float(nodes.prod()) + 30 * float(nodes.prod())
    return sums + 500 * starts + 10 * n * modes


def _mean_shift_c(spec: Any, n: int, box: Array) -> float:
    wished = n if spec.n_starts is None else min(n, spec.n_starts)
    if n > EXACT_RECORDS:
        pairs = max(LEAST_STARTS * n, PAIRS) if spec.n_starts is None else n * wished
        return 0.2 * pairs * MOST_STEPS
    if spec.bandwidth is not None:
        h = _public_bandwidth(spec, n, box, math.inf)
    elif spec.n_clusters is None:
        h = mean_side(box) / 8 * n ** (-1 / (len(box) + 4))
    else:
        h = SPACINGS * mean_side(box) / 8 * n ** (-1 / len(box))
    return _climb(n, box, h, wished)


def _kmeans(spec: Any, n: int, box: Array) -> float:
    return 1.5 * len(box) * n * (spec.n_clusters or 10) * spec.n_init


def _dp_kmeans(spec: Any, n: int, _: Array) -> float:
    return float(n) * (spec.n_clusters or 10) * MAX_ROUNDS


def _dp_pms(spec: Any, n: int, _: Array) -> float:
    """The starts, each drawn from the records of its window, then rounds as in DP-GRAMS."""
    if spec.starts == "binned":
        starts = MOST_BINS if spec.n_bins is None else spec.n_bins
    else:
        starts = math.ceil((spec.start_multiplier or START_MULTIPLIER) * math.log(n))
    starts = min(starts, 1_000)
    tight = spec.calibration == "tight"
    steps = math.ceil(math.log(n)) if spec.n_steps is None else spec.n_steps
    batch = min(n, default_batch(n, spec.calibration) if spec.batch_size is None else spec.batch_size)
    rounds = steps * (0.5 * batch * starts + EIGENVECTORS * (2 * starts if tight else starts) ** 3 + 0.3 * n + 500)
    return rounds + starts * n + (A_ROOT if tight and batch < n else 0.0)


def _pms(spec: Any, n: int, _: Array) -> float:
    return 8.0 * min(n**2, MAX_PAIRS) * max(1.0, (spec.n_steps or 0) / 8)


def _lowess(_spec: Any, n: int, _: Array) -> float:
    return 0.5 * n * min(n, 2_000)


_WORK: dict[str, Callable[[Any, int, Array], float]] = {
    "dp_grams": _ascent,
    "dp_grams_c": _ascent,
    "functional": _functional,
    "functional_c": _functional_c,
    "functional_regression": _functional_regression,
    "mean_shift": _mean_shift,
    "mean_shift_c": _mean_shift_c,
    "kmeans": _kmeans,
    "dp_kmeans": _dp_kmeans,
    "dp_pms": _dp_pms,
    "pms": _pms,
    "lowess": _lowess,
}
