"""What the paper prints, as data: one row for each printed number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dpgrams_core.datasets.registry import DATASETS
from dpgrams_core.model.places import ASSETS

if TYPE_CHECKING:
    import pandas as pd

PAPER_TABLES = ASSETS / "paper_tables.json"
ONE_RUN, ONE_RUN_EPSILON = "clustering_one_run_epsilon_1", 1.0


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    return dict(json.loads(PAPER_TABLES.read_text(encoding="utf-8")))


def paper_table(name: str) -> dict[str, Any]:
    """One printed table as it stands in the asset."""
    table: dict[str, Any] = _tables()[name]
    return table


def printed_numbers() -> pd.DataFrame:
    """All printed numbers: table, dataset, n, epsilon, method as the paper names it, measure, mean, se, runs.

    >>> numbers = printed_numbers()
    >>> sorted(numbers["method"].unique())[:3]
    ['dp_grams', 'dp_grams_c', 'dp_kmeans']
    """
    rows: list[dict[str, Any]] = []
    for name, table in _tables().items():
        if name == ONE_RUN:
            rows += _one_run(table)
        elif name != "origin":
            rows += _printed_rows(name, table)
    import pandas as pd  # here, since it takes its time to load

    return pd.DataFrame(rows)


def _printed_rows(name: str, table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    dataset = name.split("_", 1)[1]
    for row in table["rows"]:
        place = {
            "table": name,
            "dataset": dataset,
            # A real data set has no n in its table: it is taken whole.
            "n": int(row.get("n", DATASETS[dataset].default_n)),
            "epsilon": float(row["epsilon"]),
            "runs": table["runs"],
        }
        for key, value in row.items():
            if not isinstance(value, dict):
                continue
            if "mean" in value:  # one number: method_measure
                method, measure = key.rsplit("_", 1)
                yield {**place, "method": method, "measure": measure, **value}
            else:  # several measures of one method
                for measure, number in value.items():
                    yield {**place, "method": key, "measure": measure, **number}


def _one_run(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """tab:real_world_clustering_updated: a single run each, so no standard error."""
    for method, by_dataset in table.items():
        for dataset, numbers in by_dataset.items():
            for measure, number in numbers.items():
                yield {
                    "table": ONE_RUN,
                    "dataset": dataset,
                    "n": DATASETS[dataset].default_n,
                    "epsilon": ONE_RUN_EPSILON,
                    "runs": 1,
                    "method": method,
                    "measure": measure,
                    "mean": number,
                    "se": float("nan"),
                }
