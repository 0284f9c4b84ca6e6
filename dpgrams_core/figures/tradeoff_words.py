"""What privacy costs, in numbers and sentences, from the runs that are there so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.datasets import DATASETS
from dpgrams_core.figures.cluster_curve import same_records
from dpgrams_core.figures.style import short
from dpgrams_core.figures.tradeoff_scores import Known, cell_title, in_a_text, measure_words


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A private method at one n and epsilon beside the best method without privacy.

    ``ratio`` is that of the means, NaN where there is no baseline or one of them is zero or infinite.
    """

    title: str
    status: str
    value: float
    value_se: float
    plain_title: str
    plain: float
    ratio: float
    ratio_se: float
    runs: int


def middle(values: Sequence[float], near: float | None = None) -> float:
    """The value of a grid that a sentence speaks of: the one nearest to ``near``, or the middle one.

    >>> middle([0.1, 0.5, 1.0, 5.0], 0.9), middle([500, 1000, 2000, 5000])
    (1.0, 2000)
    """
    ordered = sorted(set(values))
    if near is None:
        return ordered[len(ordered) // 2]
    return min(ordered, key=lambda value: abs(math.log(value / near)))


def costs(known: Known, cells: Sequence[Cell], measure: str, n: int, epsilon: float) -> list[Cost]:
    """Every private method at this n and epsilon, in the order of the cells.

    The runs of a method and of the baseline with the same seed and number saw the same data, so that the standard
    error of their ratio r is that of the mean of (private - r plain) / mean(plain).

    Examples
    --------
    >>> from dpgrams_core.sweeps import plan_cells, run_cell
    >>> cells = plan_cells(["functional", "mean_shift"], "four_corners", n=[500], epsilon=[1.0], runs=3)
    >>> (cost,) = costs({cell: run_cell(cell) for cell in cells}, cells, "mse", 500, 1.0)
    >>> cost.title, cost.plain_title, cost.ratio > 0
    ('Functional release', 'Mean shift', True)
    """
    _, better, _ = measure_words(cells, measure)
    here = [cell for cell in cells if cell.n == n and cell in known and _scores(known[cell], measure)]
    best = max if better else min

    def baseline(cell: Cell) -> CellResult | None:
        """The best method without privacy on the same draws."""
        plain = [other for other in here if math.isinf(other.epsilon) and _draws(other) == _draws(cell)]
        if not plain:
            return None
        return known[best(plain, key=lambda other: fmean(_scores(known[other], measure)))]

    return [_cost(known[cell], baseline(cell), measure) for cell in here if cell.epsilon == epsilon]


def _draws(cell: Cell) -> tuple[int, int | None]:
    return cell.seed, cell.draw


def _scores(found: CellResult, measure: str) -> tuple[float, ...]:
    return found.scores.get(measure, ())


def _cost(found: CellResult, baseline: CellResult | None, measure: str) -> Cost:
    values = _scores(found, measure)
    plain = () if baseline is None else _scores(baseline, measure)
    ratio, ratio_se = math.nan, math.nan
    if baseline is not None and math.isfinite(fmean(values)) and fmean(plain) > 0:
        both = sorted(set(found.numbers) & set(baseline.numbers))
        mine = [values[found.numbers.index(number)] for number in both]
        theirs = [plain[baseline.numbers.index(number)] for number in both]
        if len(plain) == 1 and same_data(baseline.cell):  # one run speaks for all
            mine, theirs = list(values), [plain[0]] * len(values)
        if mine and fmean(theirs) > 0:
            ratio = fmean(mine) / fmean(theirs)
            rest = [(a - ratio * b) / fmean(theirs) for a, b in zip(mine, theirs, strict=True)]
            ratio_se = _standard_error(rest)
    return Cost(
        title=cell_title(found.cell),
        status=found.words,
        value=fmean(values),
        value_se=_standard_error(values),
        plain_title="" if baseline is None else cell_title(baseline.cell),
        plain=fmean(plain) if plain else math.nan,
        ratio=ratio,
        ratio_se=ratio_se,
        runs=len(values),
    )


def _standard_error(values: Sequence[float]) -> float:
    finite = len(values) > 1 and all(math.isfinite(value) for value in values)
    return stdev(values) / math.sqrt(len(values)) if finite else math.nan


def plus_minus(value: float, spread: float) -> str:
    """A number with its standard error, where it has one.

    >>> plus_minus(1.834, 0.21), plus_minus(0.5, float("nan"))
    ('1.83 ± 0.21', '0.5')
    """
    if not math.isfinite(spread) or not math.isfinite(value):
        return short(value)
    return f"{short(value)} ± {float(f'{spread:.2g}'):g}"


def lab_sentence(known: Known, cells: Sequence[Cell], measure: str) -> str:
    """What the curves show: each private method at both ends of epsilon for the largest n, and what is missing."""
    words, _, _ = measure_words(cells, measure)
    with_runs = {cell: found for cell, found in known.items() if _scores(found, measure)}
    private = [cell for cell in with_runs if math.isfinite(cell.epsilon)]
    done = sum(cell in known and known[cell].complete for cell in cells)
    so_far = f" {done} of {len(cells)} points are complete." if done < len(cells) else ""
    if not private:
        return f"Nothing to show yet.{so_far}"
    n = max(cell.n for cell in private)
    parts = []
    for title in dict.fromkeys(cell_title(cell) for cell in cells if math.isfinite(cell.epsilon)):
        mine = sorted((c for c in private if c.n == n and cell_title(c) == title), key=lambda cell: cell.epsilon)
        if mine:
            ends = [
                f"{short(fmean(_scores(known[cell], measure)))} at ε = {cell.epsilon:g}" for cell in (mine[0], mine[-1])
            ]
            parts.append(f"{in_a_text(title)} " + " and ".join(dict.fromkeys(ends)))
    for cell in with_runs:
        if cell.n == n and not math.isfinite(cell.epsilon):
            parts.append(f"{in_a_text(cell_title(cell))} {short(fmean(_scores(known[cell], measure)))} without privacy")
    text = f"Mean {words} at n = {n:,}: " + "; ".join(parts) + "."
    if any(not math.isfinite(fmean(_scores(known[cell], measure))) for cell in private):
        text += " Where the mean is ∞ (a gap in the curve) at least one run released nothing."
    failed = sum(len(found.failures) for found in known.values())
    if failed:
        text += f" {failed:,} runs could not be made; the table says why."
    runs = [len(_scores(found, measure)) for found in with_runs.values()]
    count = f"{min(runs):,}" if min(runs) == max(runs) else f"{min(runs):,} to {max(runs):,}"
    data = "on the same records" if all(map(same_data, cells)) else "each on fresh data"
    return f"{text} Means of {count} runs, {data}, with bands of one standard error.{so_far}"


def same_data(cell: Cell) -> bool:
    """Whether all runs of a cell see the same records: one draw, or all records of a real data set.

    >>> from dpgrams_core.sweeps import plan_cells
    >>> [same_data(plan_cells("kmeans", name, n=[150], epsilon=[1.0])[0]) for name in ("iris", "blobs")]
    [True, False]
    """
    return cell.draw is not None or (DATASETS[cell.dataset].kind == "clusters" and same_records(cell.dataset, cell.n))
