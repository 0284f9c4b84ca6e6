"""Who is first where methods that a user would pick stand side by side, and what to take where it is not ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpgrams_core.datasets.registry import DATASETS
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.studies.paper.experiments import Experiment

if TYPE_CHECKING:
    import pandas as pd

OURS = "functional"


@dataclass(frozen=True)
class Verdict:
    """One cell: the private column with the best mean, and whether ours is within a standard error of it."""

    dataset: str
    n: int
    epsilon: float
    first: str
    close: bool  # ours is first, or at most one standard error of the difference behind


def verdicts(experiment: Experiment, table: pd.DataFrame, measure: str = "") -> list[Verdict]:
    """Of every cell of a comparison, by a measure (the first of the experiment unless another is given)."""
    name = measure or experiment.measures[0]
    better = experiment.measure(name).at_least_as_good
    private = [column.name for column in experiment.columns if METHODS[column.method].private]
    here = table[(table["measure"] == name) & table["column"].isin(private) & table["ours"].notna()]
    found = []
    cells: Any = here.groupby(["dataset", "n", "epsilon"], sort=False)
    for (dataset, n, epsilon), rows in cells:
        by_column = {row["column"]: row for row in rows.to_dict("records")}
        if OURS not in by_column:
            continue
        mine, first = by_column[OURS], by_column[OURS]
        for row in by_column.values():
            if better(row["ours"], first["ours"]) and row["ours"] != first["ours"]:
                first = row
        behind = abs(first["ours"] - mine["ours"])
        close = first is mine or behind <= math.hypot(first["se"], mine["se"])
        found.append(Verdict(dataset, int(n), float(epsilon), str(first["column"]), close))
    return found


def advice(experiment: Experiment, table: pd.DataFrame, measure: str = "") -> str:
    """How often ours is first or as good, and for the other cells which method to take, in sentences."""
    found = verdicts(experiment, table, measure)
    if not found:
        return "No run is finished."
    title = experiment.measure(measure or experiment.measures[0]).title
    close = [item for item in found if item.close]
    text = (
        f"By {title}, the {experiment.title} is first, or within a standard error of the first, in {len(close)} of "
        f"{len(found)} cells."
    )
    instead: dict[tuple[str, int, str], list[float]] = {}
    for item in found:
        if not item.close:
            instead.setdefault((item.dataset, item.n, item.first), []).append(item.epsilon)
    sizes = {(item.dataset, item.n) for item in found}
    parts = []
    for (dataset, n, column), epsilons in instead.items():
        several = sum(name == dataset for name, _ in sizes) > 1
        place = DATASETS[dataset].title + (f", n = {n:,}" if several else "")
        budgets = ", ".join(f"{epsilon:g}" for epsilon in epsilons)
        parts.append(f"{place} at ε = {budgets}: {METHODS[experiment.column(column).method].title}")
    return f"{text} Take another method on {'; '.join(parts)}." if parts else text
