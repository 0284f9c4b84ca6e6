"""The paper's tables, recomputed: ours beside the printed value, with the guarantee of each column."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dpgrams_core.numerics.statistics import standard_error
from dpgrams_core.studies.paper.experiments import Experiment
from dpgrams_core.studies.paper.tables import ONE_RUN, printed_numbers
from dpgrams_core.sweeps.run import CellResult

if TYPE_CHECKING:
    import pandas as pd

LARGE_EPSILON = 0.5  # cells from here on are counted apart
NOTHING = (math.nan, math.nan)

Results = Iterable[tuple[str, CellResult]]  # each with the name of its column


@lru_cache(maxsize=1)
def _printed() -> dict[tuple[str, str, int], dict[tuple[float, str, str], tuple[float, float]]]:
    """(table, dataset, n) -> (epsilon, method, measure) -> mean and standard error."""
    found: dict[tuple[str, str, int], dict[tuple[float, str, str], tuple[float, float]]] = {}
    for row in printed_numbers().itertuples(index=False):
        place = found.setdefault((str(row.table), str(row.dataset), int(row.n)), {})  # type: ignore[arg-type]
        place[float(row.epsilon), str(row.method), str(row.measure)] = (float(row.mean), float(row.se))  # type: ignore[arg-type]
    return found


@lru_cache(maxsize=64)
def _decimals(table: str, method: str, measure: str) -> int:
    """The digits behind the point that a column of a printed table has: a 0 at the end is not in the data."""
    numbers = printed_numbers()
    here = numbers[(numbers.table == table) & (numbers.method == method) & (numbers.measure == measure)]
    texts = [f"{number:.10f}".rstrip("0") for number in (*here["mean"], *here["se"]) if not math.isnan(number)]
    return max(len(text.partition(".")[2]) for text in texts)


def same_digits(table: str, method: str, measure: str, ours: float, printed: float) -> bool:
    """Whether a number of ours is the printed one, to the digits that its column has.

    >>> same_digits("modes_four_corners", "dp_grams", "mse", 0.73752, 0.7375)
    True
    >>> same_digits("modes_four_corners", "dp_grams", "mse", 0.73758, 0.7375)
    False
    """
    return abs(ours - printed) <= 0.5000001 * 10 ** -_decimals(table, method, measure)


def comparison(experiment: Experiment, results: Results) -> pd.DataFrame:
    """One row for each printed cell, column of ours and measure; for a figure, one for each cell of ours.

    Columns: table, dataset, n, epsilon, column, method, status, varied, value, measure, printed, printed_se, ours, se,
    runs, failures, ahead, equal.  ``printed`` is NaN where the paper prints nothing, and ``ahead`` then is None; it is
    about the first measure of the experiment.  ``equal`` says of a column with a design of the data whether mean and
    standard error are the printed ones to every digit.  A method without privacy has one cell, which stands beside
    every epsilon.
    """
    rows = []
    for name, result in results:
        means = result.row()
        for table, epsilon in _places(experiment, result):
            printed = _printed().get((table, str(result.cell.dataset), result.cell.n), {})
            for measure in experiment.measures:
                found = printed.get((epsilon, experiment.column(name).printed, measure), NOTHING)
                if table != ONE_RUN or not math.isnan(found[0]):
                    rows.append(_row(experiment, name, result, means, table, epsilon, measure, found))
    order = ["table", "n", "epsilon"]
    import pandas as pd  # here, since it takes its time to load

    return pd.DataFrame(rows).sort_values(order, kind="stable", ignore_index=True) if rows else pd.DataFrame()


def _places(experiment: Experiment, result: CellResult) -> list[tuple[str, float]]:
    """The tables and epsilons beside which a cell stands."""
    cell = result.cell
    found: list[tuple[str, float]] = []
    figures = {table.name: table.epsilons for table in experiment.tables if table.dataset == cell.dataset}
    for table in [*figures, ONE_RUN] if experiment.name == "clustering" else figures:
        printed = _printed().get((table, str(cell.dataset), cell.n))
        epsilons = {key[0] for key in printed or ()}
        if printed is None and table != ONE_RUN:
            epsilons = {cell.epsilon} if math.isfinite(cell.epsilon) else set(figures[table])
        found += [(table, epsilon) for epsilon in sorted(epsilons) if cell.epsilon in (epsilon, math.inf)]
    return found


def _row(
    experiment: Experiment,
    name: str,
    result: CellResult,
    row: dict[str, Any],
    table: str,
    epsilon: float,
    measure: str,
    printed: tuple[float, float],
) -> dict[str, Any]:
    cell = result.cell
    ours = row.get(measure, math.nan)
    spread = standard_error(result.seconds) if measure == "seconds" else row.get(f"{measure}_se", math.nan)
    compared = measure == experiment.measures[0] and not math.isnan(printed[0])
    column, equal = experiment.column(name), None
    if column.design and not math.isnan(printed[0]) and table != ONE_RUN and measure != "seconds":
        pairs = zip((ours, spread), printed, strict=True)
        equal = all(same_digits(table, column.printed, measure, *pair) for pair in pairs)
    return {
        "table": table,
        "dataset": str(cell.dataset),
        "n": cell.n,
        "epsilon": epsilon,
        "column": name,
        "method": cell.method,
        "status": result.words,
        "varied": cell.varied,
        "value": cell.value,
        "measure": measure,
        "printed": printed[0],
        "printed_se": printed[1],
        "ours": ours,
        "se": spread,
        "runs": len(result.seconds),
        "failures": len(result.failures),
        "ahead": bool(experiment.as_good(ours, printed[0])) if compared else None,
        "equal": equal,
    }


def wide(experiment: Experiment, table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One printed table or figure as people read it: a row for each cell, ours in columns with standard errors."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table[table["measure"] == measure].to_dict("records"):
        place = {name: row[name] for name in ("dataset", "n", "epsilon")}
        if row["varied"]:
            place |= {"varied": row["varied"], "value": row["value"]}
        target = rows.setdefault(tuple(place.values()), place)
        column = experiment.column(row["column"])
        if not math.isnan(row["printed"]):
            target[f"printed {column.printed}"] = row["printed"]
        spread = f" ± {row['se']:.1g}" if row["se"] == row["se"] else ""
        target[measure if row["varied"] else row["column"]] = f"{row['ours']:.4g}{spread}"
    import pandas as pd  # here, since it takes its time to load

    return pd.DataFrame(list(rows.values()))


def summary(experiment: Experiment, table: pd.DataFrame) -> str:
    """How many printed cells each private column equals or beats: by data set, in all, and for a larger epsilon."""
    counted = table[table["ahead"].notna() & (table["table"] != ONE_RUN)]
    words = "at or above" if experiment.measure(experiment.measures[0]).more_is_better else "at or below"
    margin = f" minus {experiment.margin:g}" if experiment.margin else ""
    lines = []
    for column in (item for item in experiment.columns if item.design):
        mine = counted[counted["column"] == column.name]
        if not mine.empty:
            same = f"{int(mine['equal'].astype(bool).sum())} of {len(mine)} cells"
            lines.append(f"{column.name}: mean and standard error equal to the printed digits in {same}")
    for column in experiment.rivals:
        mine = counted[counted["column"] == column.name]
        if mine.empty:
            continue
        ahead = mine["ahead"].astype(bool)
        large = mine["epsilon"] >= LARGE_EPSILON
        parts = ", ".join(
            f"{dataset} {int(ahead[here].sum())} of {int(here.sum())}"
            for dataset in dict.fromkeys(mine["dataset"])
            for here in [mine["dataset"] == dataset]
        )
        lines.append(
            f"{column.name}: {words} the printed {experiment.title} value{margin} in {int(ahead.sum())} of {len(mine)} "
            f"cells ({parts}), {int((ahead & large).sum())} of {int(large.sum())} with epsilon >= {LARGE_EPSILON:g}"
        )
    return "\n".join(lines)
