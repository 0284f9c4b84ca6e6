"""About how long a run takes, from n, the box and the settings, all of them public: ``Method.seconds``.

The unit of work is one kernel value: the weight of one record at one place, as a step of the ascent needs it.  Other
work is counted in the same unit: a multiplication within a matrix product is a three hundredth of one.  One number of
the machine, ``UNIT_SECONDS``, turns work into time.  ``benchmarks/costs.py`` measures it and prints predicted beside
measured times; most agree within a factor of three, which is enough to tell seconds from minutes from hours.

Where the work depends on the records (how many modes a small bandwidth leaves, how many steps a climb takes) a usual
number stands for it.  What lies above a limit of a method is priced at that limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpgrams_core.methods.ascent import default_batch
from dpgrams_core.methods.baselines import mean_shift as climbing
from dpgrams_core.methods.baselines.kmeans import MAX_ROUNDS
from dpgrams_core.methods.baselines.mean_shift import MAX_STARTS as MEAN_SHIFT_STARTS
from dpgrams_core.methods.baselines.regression import MAX_PAIRS
from dpgrams_core.methods.dp_grams.clusters import SPREAD_CANDIDATES
from dpgrams_core.methods.dp_grams.plan import TIGHT, default_rounds, default_spacing, default_starts
from dpgrams_core.methods.dp_grams.rounds import round_grid
from dpgrams_core.methods.dp_grams.starts import MAX_CANDIDATES
from dpgrams_core.methods.dp_pms.plan import MOST_BINS, START_MULTIPLIER
from dpgrams_core.methods.functional.clusters import BANDWIDTH_SCALE
from dpgrams_core.methods.functional.modes import GRID_DIMENSIONS, SENSITIVITY
from dpgrams_core.numerics.bandwidths import BandwidthFacts, choose_bandwidth, mean_side, release_bandwidth
from dpgrams_core.numerics.cell_sums import ROWS
from dpgrams_core.numerics.surface import MAX_COEFFICIENTS, node_counts
from dpgrams_core.privacy.calibration import gaussian_multiplier

Array = np.ndarray
UNIT_SECONDS = 2e-8  # of one kernel value on one core; benchmarks/costs.py
PRODUCT = 1 / 300  # a multiplication in a matrix product
EIGENVECTORS = 1 / 150  # of a matrix, times the cube of its size
ALONG_A_SIDE = 0.5  # a kernel value in one column
A_RUN = 5e4  # what every run does besides
A_RECORD = 15.0  # a record that is drawn, and counted when a run is scored
IN_A_TREE = 25.0  # a record that DAP counts
ON_A_GRID = 10.0  # a record that is added by cells
OTHER_KERNEL = 8.0  # a kernel that is no Gaussian, and its gradient
USUAL_CLIMB = 20  # steps of mean shift by exact sums
MOST_BUMPS, MANY_NODES = 40, 200_000  # bumps that are found in a surface of so many nodes
A_ROOT = 1e7  # the noise of rounds on batches, sought by an accountant
A_FIT = 1.5e6  # bumps fitted together to a surface
Work = Callable[[Any, int, Array], float]  # of a spec, n and the box


def in_seconds(work: Work) -> Work:
    """The seconds of a run that does this work, and what every run does besides."""
    return lambda spec, n, box: UNIT_SECONDS * (A_RUN + A_RECORD * n + work(spec, n, box))


@in_seconds
def ascent(spec: Any, n: int, box: Array) -> float:
    """DP-GRAMS and DP-GRAMS-C: the starts, then T rounds of m records at k places with noise that is correlated."""
    d, tight = len(box), spec.calibration == "tight"
    known = spec.n_modes or getattr(spec, "n_clusters", None)
    starts = default_starts(max(n, 3), known, spec.calibration) if spec.n_starts is None else spec.n_starts
    steps = default_rounds(n, spec.calibration) if spec.n_steps is None else spec.n_steps
    batch = min(n, default_batch(n, spec.calibration) if spec.batch_size is None else spec.batch_size)
    value = (1 + d) / 3 * (1.0 if spec.kernel == "gaussian" else OTHER_KERNEL)
    matrix = starts * (1 + d) if tight else starts
    places = _candidates(spec, box)
    root = A_ROOT if tight and batch < n else 0.0
    sums = steps * batch * starts * value
    if tight and len(box) <= GRID_DIMENSIONS and batch > ROWS:
        h = _public_bandwidth(spec, n, box, spec.epsilon)
        if round_grid(batch, matrix, box, h) is not None:  # all records are added up once, a batch in each round
            sums = ON_A_GRID * batch * (1 if batch == n else steps)
    rounds = sums + steps * (EIGENVECTORS * matrix**3 + 0.3 * n + 500)
    if tight:  # all rounds so far read together after each, and climbs on what they give
        rounds += PRODUCT * (steps * matrix) ** 3 * steps / 4
        rounds += steps * starts**2 * (TIGHT.climb_a_round * steps + TIGHT.last_climb)
    return rounds + IN_A_TREE * n + 2 * places * (starts + 10) + root


def _candidates(spec: Any, box: Array) -> float:
    if spec.candidates is not None:
        return min(MAX_CANDIDATES, len(spec.candidates))
    if len(box) > GRID_DIMENSIONS:
        return SPREAD_CANDIDATES
    wish, usual = spec.init_bandwidth, default_spacing(spec.calibration) * mean_side(box)
    spacing = usual if wish is None else wish
    return min(MAX_CANDIDATES, float(np.prod((box[:, 1] - box[:, 0]) / spacing + 1)))


def _public_bandwidth(spec: Any, n: int, box: Array, epsilon: float) -> float:
    """The bandwidth asked for; a rule that reads the records gets some that spread over an eighth of the box."""
    middle, away = box.mean(axis=1), (box[:, 1] - box[:, 0]) / 8 / math.sqrt(2)
    points, beta = np.stack([middle - away, middle + away]), getattr(spec, "beta", 3.0)
    facts = BandwidthFacts(n=n, d=len(box), box=box, epsilon=epsilon, beta=beta, points=points)
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
    nodes = node_counts(box, h)
    return np.asarray(nodes * min(1.0, (MAX_COEFFICIENTS / nodes.prod()) ** (1 / len(box))))


def _bumps(box: Array, h: float, count: int | None) -> float:
    """Modes read off a surface: a search on a grid, bump after bump, and where the count is known a posterior."""
    if len(box) > GRID_DIMENSIONS:
        return 1e7 + 4e5 * (count or 0)
    nodes = float(_grid(box, h).prod()) * 1.5
    found = MOST_BUMPS * min(1.0, nodes / MANY_NODES) if count is None else count
    search = 2 * nodes * found * (found + 1) + 120 * PRODUCT * nodes * found + A_FIT
    return search if count is None else search + 40 * count * nodes * (count + 4)


@in_seconds
def functional(spec: Any, n: int, box: Array) -> float:
    """The surface, and the modes read off it."""
    h = _release_bandwidth(spec, n, box)
    return _surface(n, box, h) + _bumps(box, h, spec.n_modes)


@in_seconds
def functional_c(spec: Any, n: int, box: Array) -> float:
    """The surface, and k-means over the likeliest places: of an unknown number for each of twenty."""
    box = box[: spec.components]  # paid columns are few
    h = _release_bandwidth(spec, n, box, BANDWIDTH_SCALE)
    # The likeliest places of the records, and k-means over them: a sketch has a kernel between all places.
    return _surface(n, box, h) + (5e5 if len(box) <= GRID_DIMENSIONS else 2.5e7) + 1e4 * (spec.n_clusters or 500)


@in_seconds
def functional_regression(spec: Any, n: int, _: Array) -> float:
    """The joint surface, and its branches."""
    square = np.tile([0.0, 1.0], (2, 1))
    h = _release_bandwidth(spec, n, square)
    return _surface(n, square, h) + PRODUCT * spec.grid_size * 40 * float(_grid(square, h).prod())


@in_seconds
def mean_shift(spec: Any, n: int, box: Array) -> float:
    """A climb from every record."""
    return _climb(n, box, _public_bandwidth(spec, n, box, math.inf), min(n, MEAN_SHIFT_STARTS))


def _climb(n: int, box: Array, h: float, starts: int) -> float:
    """Mean shift to its end: on splines of exact sums over a grid in two columns, by exact sums in others."""
    nodes = 4 * (1.15 * (box[:, 1] - box[:, 0]) / h + 4)
    if len(box) != 2 or nodes.prod() > climbing.MAX_NODES:
        return USUAL_CLIMB * float(n) * starts
    modes = float(np.prod((box[:, 1] - box[:, 0]) / h)) / 200
    sums = n * ALONG_A_SIDE * float(nodes.sum()) + 3 * PRODUCT * n * float(nodes.prod()) + 30 * float(nodes.prod())
    return sums + 500 * starts + 10 * n * modes


@in_seconds
def mean_shift_c(spec: Any, n: int, box: Array) -> float:
    """A climb from every record, by exact sums of some where there are many."""
    wished = n if spec.n_starts is None else min(n, spec.n_starts)
    if n > climbing.EXACT_RECORDS:
        pairs = max(climbing.LEAST_STARTS * n, climbing.PAIRS) if spec.n_starts is None else n * wished
        return 0.2 * pairs * climbing.MOST_STEPS
    if spec.bandwidth is not None:
        h = _public_bandwidth(spec, n, box, math.inf)
    elif spec.n_clusters is None:
        h = mean_side(box) / 8 * n ** (-1 / (len(box) + 4))
    else:
        h = climbing.SPACINGS * mean_side(box) / 8 * n ** (-1 / len(box))
    return _climb(n, box, h, wished)


@in_seconds
def kmeans(spec: Any, n: int, box: Array) -> float:
    """Some rounds from every start."""
    return 1.5 * len(box) * n * (spec.n_clusters or 10) * spec.n_init


@in_seconds
def dp_kmeans(spec: Any, n: int, _: Array) -> float:
    """A fixed number of rounds."""
    return float(n) * (spec.n_clusters or 10) * MAX_ROUNDS


@in_seconds
def noisy_histogram(_spec: Any, n: int, box: Array) -> float:
    """Records put into cells, and the peaks of a smooth grid, place by place."""
    return 10.0 * n + 5e3 * 40 ** min(len(box), 3)


@in_seconds
def noisy_kmeans(spec: Any, n: int, box: Array) -> float:
    """A fixed number of rounds."""
    return spec.n_rounds * n * (5.0 + 0.5 * len(box) * (spec.n_clusters or 10))


@in_seconds
def hash_tree(_spec: Any, n: int, _: Array) -> float:
    """The hash of every record, sums of the leaves, and k-means over them."""
    return 30.0 * n + 1e6


@in_seconds
def dp_pms(spec: Any, n: int, _: Array) -> float:
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


@in_seconds
def pms(spec: Any, n: int, _: Array) -> float:
    """All pairs of records, again and again."""
    return 8.0 * min(n**2, MAX_PAIRS) * max(1.0, (spec.n_steps or 0) / 8)


@in_seconds
def lowess(_spec: Any, n: int, _: Array) -> float:
    """A line at every record, or at places of a fixed number."""
    return 0.5 * n * min(n, 2_000)
