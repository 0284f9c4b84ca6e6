"""Who is first among the rivals, and what to take instead."""

from __future__ import annotations

import math

import pandas as pd

from dpgrams_core.studies.paper.experiments import RIVALS
from dpgrams_core.studies.paper.reproduce import comparison
from dpgrams_core.studies.paper.rivals import advice, verdicts
from tests.made import made_result


def table(**means):
    """A comparison on iris at ε = 1, each column with a mean and a standard error of ARI."""
    rows = [
        {"dataset": "iris", "n": 150, "epsilon": 1.0, "column": name, "measure": "ari", "ours": mean, "se": spread}
        for name, (mean, spread) in means.items()
    ]
    return pd.DataFrame(rows)


def test_the_best_private_mean_is_first_and_a_standard_error_is_close():
    (found,) = verdicts(RIVALS, table(functional=(0.5, 0.03), noisy_kmeans=(0.54, 0.03), kmeans=(0.9, 0.0)))
    assert (found.first, found.close) == ("noisy_kmeans", True)  # 0.04 is less than 0.03 times the root of two
    (found,) = verdicts(RIVALS, table(functional=(0.5, 0.03), noisy_kmeans=(0.55, 0.03)))
    assert (found.first, found.close) == ("noisy_kmeans", False)
    (found,) = verdicts(RIVALS, table(functional=(0.5, 0.0), hash_tree=(0.4, 0.0), dp_kmeans=(math.nan, 0.0)))
    assert (found.first, found.close) == ("functional", True)


def test_less_inertia_is_better():
    here = table(functional=(10.0, 0.1), noisy_kmeans=(5.0, 0.1)).assign(measure="inertia")
    assert verdicts(RIVALS, here, "inertia")[0].first == "noisy_kmeans"


def test_the_advice_names_the_method_to_take():
    text = advice(RIVALS, table(functional=(0.5, 0.0), hash_tree=(0.6, 0.0)))
    assert "in 0 of 1 cells" in text
    assert text.endswith("Take another method on Iris at ε = 1: Hash tree.")
    assert advice(RIVALS, table(functional=(0.5, 0.0), hash_tree=(0.4, 0.0))).endswith("in 1 of 1 cells.")
    assert advice(RIVALS, table(hash_tree=(0.4, 0.0))) == "No run is finished."


def test_a_method_without_privacy_stands_beside_every_epsilon():
    (cell,) = (cell for column, cell in RIVALS.cells(1, ["kmeans"]) if cell.dataset == "iris")
    result = made_result(cell=cell, scores={"ari": (0.6,)}, seconds=(0.1,), status="none", failures=(), numbers=(0,))
    here = comparison(RIVALS, [("kmeans", result)])
    assert sorted(set(here["epsilon"])) == [0.25, 0.5, 1.0, 2.0, 4.0]
