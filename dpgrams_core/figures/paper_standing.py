"""Who is ahead, ours or the printed value: judged cell by cell and counted column by column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpgrams_core.cells import CellResult
from dpgrams_core.experiments import Column, Experiment
from dpgrams_core.figures.sensitivity import SCORES
from dpgrams_core.figures.tradeoff import method_title
from dpgrams_core.paper import ONE_RUN
from dpgrams_core.reproduce import comparison

CLEAR = 2.0  # standard errors between two means that are told apart
# Ours is measured in 50 principal components of the genes, the printed error in all genes: ours would look too good.
OTHER_SCALE = (("rnaseq", "centroid_mse"),)
# All printed runs share one draw of synthetic data (the printed mean shift of the modes has standard error 0 at every
# n), so the printed standard errors hold the noise and not the draw: they cannot say who is clearly ahead.
ONE_DRAW = ("modes_four_corners", "modes_t_mixture", "clustering_blobs")


@dataclass(frozen=True)
class Standing:
    """In how many printed cells a column of ours is at least as good, and in how many of them clearly so."""

    column: Column
    statuses: tuple[str, ...]  # with their conditions; on several data sets there may be several
    ahead: int
    clear: int
    judged: int  # cells in which the printed standard error can say "clearly"
    cells: int
    missing: int  # printed cells of which no run of ours succeeded

    @property
    def title(self) -> str:
        """The column as people call it."""
        return column_title(self.column)


def measure_words(measure: str) -> tuple[str, bool]:
    """A measure in words, and whether more is better.

    Examples
    --------
    >>> measure_words("ari"), measure_words("seconds")
    (('ARI', True), ('seconds', False))
    """
    return ("seconds", False) if measure == "seconds" else SCORES[measure]


def column_title(column: Column) -> str:
    """A column of ours as people call it.

    Examples
    --------
    >>> from dpgrams_core.experiments import MODES
    >>> [column_title(column) for column in MODES.columns][:2]
    ['Functional release', 'DP-GRAMS tight']
    """
    return method_title(column.method, column.options.items())


def judged(experiment: Experiment, results: Sequence[tuple[str, CellResult]]) -> pd.DataFrame:
    """The comparison with the printed values, and for every measure: ratio, ahead and clear.

    ``ratio`` is ours over printed.  ``ahead`` says whether ours is at least as good; the margin of an experiment
    counts for its first measure only.  ``clear`` says whether the means are more than two standard errors of their
    difference apart; without both standard errors nobody can say so, and where the printed one leaves out the draw
    of the data it is None.  Where nothing is printed, or no run of ours succeeded, ``ahead`` and ``clear`` are None;
    where the two are not on one scale, there is no ratio either.

    Examples
    --------
    >>> from dpgrams_core.experiments import MODES
    >>> from dpgrams_core.sweeps import run_cell
    >>> pair = MODES.cells(1, ["mean_shift"])[0]
    >>> table = judged(MODES, [(pair[0], run_cell(pair[1]))])
    >>> len(table), "ratio" in table
    (25, True)
    """
    table = comparison(experiment, results)
    if table.empty:
        return table
    table["ratio"] = table["ours"] / table["printed"].where(table["printed"] != 0)
    other = [place in OTHER_SCALE for place in zip(table["dataset"], table["measure"], strict=True)]
    table.loc[other, "ratio"] = math.nan
    marks = [_mark(experiment, row) for row in table.to_dict("records")]
    table["ahead"], table["clear"] = ([pair[place] for pair in marks] for place in (0, 1))
    return table.astype({"ahead": object, "clear": object})


def _mark(experiment: Experiment, row: dict[Any, Any]) -> tuple[bool | None, bool | None]:
    ours, printed, measure = row["ours"], row["printed"], row["measure"]
    if math.isnan(ours) or math.isnan(printed) or (row["dataset"], measure) in OTHER_SCALE:
        return None, None
    first = measure == experiment.measures[0]
    more = measure_words(measure)[1]
    ahead = experiment.as_good(ours, printed) if first else (ours >= printed if more else ours <= printed)
    if math.isinf(ours):
        return bool(ahead), True
    if row["table"] in ONE_DRAW and measure != "seconds":
        return bool(ahead), None
    # A value within the margin counts as ahead, and never clearly so if it is the worse one.
    lead = (ours - printed) * (1 if more else -1) * (1 if ahead else -1)
    return bool(ahead), bool(lead > CLEAR * math.hypot(row["se"], row["printed_se"]))


def statuses_of(table: pd.DataFrame, column: str) -> tuple[str, ...]:
    """Each status that the guarantee of a column has; of runs that succeeded, since a failed one has none."""
    mine = table[(table["column"] == column) & (table["runs"] > 0)]
    return tuple(map(str, dict.fromkeys(mine["status"])))


def standings(experiment: Experiment, table: pd.DataFrame, measure: str = "") -> list[Standing]:
    """Every column that stands in for the paper's private method, counted; without the table of single runs
    unless it is the only one."""
    if table.empty:
        return []
    wanted = measure or experiment.measures[0]
    here = table[(table["measure"] == wanted) & table["printed"].notna()]
    if here["table"].nunique() > 1:
        here = here[here["table"] != ONE_RUN]
    found = []
    for column in experiment.rivals:
        mine = here[here["column"] == column.name]
        if mine.empty:
            continue
        known = mine[mine["ahead"].notna()]
        ahead = known["ahead"].astype(bool)
        found.append(
            Standing(
                column=column,
                statuses=statuses_of(table, column.name),
                ahead=int(ahead.sum()),
                clear=int((ahead & known["clear"].eq(True)).sum()),
                judged=int(known["clear"].notna().sum()),
                cells=len(known),
                missing=len(mine) - len(known),
            )
        )
    return found
