"""The curve: error against budget and size, drawn while it is computed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from dpgrams_core import DATASETS
from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.errors import SpecError
from dpgrams_core.figures import (
    LAB_MEASURES,
    Cost,
    LabLayout,
    costs,
    in_a_text,
    lab_panel,
    lab_sentence,
    lab_table,
    middle,
    panel_title,
    panels_of,
    plus_minus,
    short,
)
from dpgrams_core.sweeps import tidy
from pages._ui import exports, frame, show
from pages._ui.tradeoff_controls import VIEWS, LabSettings, chosen, command_lines, lab_cells
from pages._ui.tradeoff_live import Known, live_sweep

LAYOUTS = {
    "method": LabLayout("epsilon", "method"),
    "n": LabLayout("epsilon", "n"),
    "epsilon": LabLayout("n", "epsilon"),
}


def curve(settings: LabSettings) -> None:
    """The part of the page with the main curve."""
    cells = planned(settings)
    if cells is None:
        return
    measures = LAB_MEASURES[settings.kind]
    top = st.container()
    with st.container(horizontal=True, gap="medium"):
        measure = chosen(f"lab_score_{settings.kind}", measures, "Score")
        view = chosen("lab_view", VIEWS, "On the axis, and panels")

    def draw(known: Known) -> None:
        with top:
            answer(known, cells, measure)
        panels(known, cells, measure, LAYOUTS[view])

    live_sweep(cells, draw)
    with st.expander("Repeat it on the command line", key="lab_command"):
        st.caption("The same seed gives the same numbers. The file can be opened here or continued there.")
        st.code(command_lines(settings), language="bash", wrap_lines=True)


def planned(settings: LabSettings) -> list[Cell] | None:
    """The cells, or None after a sentence on why there are none; a very large grid has to be confirmed."""
    try:
        return lab_cells(settings)
    except SpecError as error:
        frame.answer("There is no curve to draw yet.")
        frame.problem(error)
        if error.field != "cells":
            return None
    agreed = ("_lab_large", settings)
    if st.session_state.get("_lab_large") != agreed:
        if not st.button("I mean it: run all of them", key="lab_confirm"):
            st.code(command_lines(settings, " --yes"), language="bash", wrap_lines=True)
            return None
        st.session_state["_lab_large"] = agreed
    try:
        return lab_cells(settings, confirm=True)
    except SpecError as error:
        frame.problem(error)
        st.code(command_lines(settings, " --yes"), language="bash", wrap_lines=True)
        return None


def answer(known: Known, cells: Sequence[Cell], measure: str) -> None:
    """What privacy costs in the middle of the grid."""
    words, better, _ = LAB_MEASURES[DATASETS[cells[0].dataset].kind][measure]
    budgets = [cell.epsilon for cell in cells if cell.epsilon < float("inf")]
    if not budgets:
        frame.answer("Choose a private method to see what privacy costs.")
        return
    n, epsilon = int(middle([cell.n for cell in cells])), middle(budgets, 1.0)
    found = costs(known, cells, measure, n, epsilon)
    where = f"On {DATASETS[cells[0].dataset].title} with n = {n:,}, at ε = {epsilon:g}"
    if not found:
        frame.answer(f"{where} there is no run yet: the curve is drawn while you watch.")
        return
    ratios = measure.endswith("mse") and all(cost.ratio == cost.ratio for cost in found)
    if ratios:
        parts = [f"by {number(cost, cost.ratio, cost.ratio_se)} with {named(cost)}" for cost in found]
        plain = found[0]
        text = (
            f"{where}, privacy multiplies the {words} {' and '.join(parts)}. Without privacy it is "
            f'<b class="plain">{short(plain.plain)}</b> ({in_a_text(plain.plain_title)}).'
        )
    else:
        parts = [f"{number(cost, cost.value, cost.value_se)} with {named(cost)}" for cost in found]
        text = f"{where} the mean {words} is {' and '.join(parts)}"
        plain = found[0]
        if plain.plain == plain.plain:
            text += f', against <b class="plain">{short(plain.plain)}</b> with {in_a_text(plain.plain_title)}, without privacy'
        text += "."
    runs = sorted({cost.runs for cost in found})
    frame.answer(f"{text} <small>({' to '.join(map(str, dict.fromkeys((runs[0], runs[-1]))))} runs)</small>")


def number(cost: Cost, value: float, spread: float) -> str:
    """A number of a private method, in its colour."""
    return f'<b class="private">{plus_minus(value, spread)}</b>'


def named(cost: Cost) -> str:
    """A method and the status of its guarantee."""
    article = "the " if cost.title == "Functional release" else ""
    return f"{article}{in_a_text(cost.title)} ({frame.STATUS_WORDS[cost.status]})"


def panels(known: Known, cells: Sequence[Cell], measure: str, layout: LabLayout, key: str = "lab_curve") -> None:
    """The panels side by side (one under the other on a phone), the sentence, the table and the files."""
    values = panels_of(cells, layout)
    columns = st.columns(min(2, len(values)), gap="medium")
    for place, value in enumerate(values):
        with columns[place % len(columns)]:
            st.markdown(f"**{panel_title(value, layout)}**")
            figure = lab_panel(known, cells, measure, layout, value)
            st.plotly_chart(
                figure,
                key=f"{key}_{place}_chart",
                config=show.CONFIG,
                alt=f"{panel_title(value, layout)}: {lab_sentence(known, cells, measure)}",
            )
    st.caption(lab_sentence(known, cells, measure))
    with st.expander("Table and downloads", key=f"{key}_table"):
        st.dataframe(lab_table(known), hide_index=True, width="stretch")
        results = [found for found in known.values() if found.ended]
        with st.container(horizontal=True, key=f"{key}_files"):
            exports.download(
                exports.File("CSV, all scores and quantiles", "sweep.csv", "text/csv", lambda: csv_of(results)),
                f"{key}_csv",
            )
            exports.download(
                exports.File(
                    "Every run (Parquet)", "results.parquet", "application/octet-stream", lambda: parquet_of(results)
                ),
                f"{key}_parquet",
            )


def csv_of(results: Sequence[CellResult]) -> str | bytes:
    """The tidy table."""
    return exports.table_csv(tidy(results))


def parquet_of(results: Sequence[CellResult]) -> bytes:
    """A results file, as the command line writes and continues it."""
    from dpgrams_core.sweep_store import ResultsFile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.parquet"
        with ResultsFile(path, command="the Tradeoff page") as store:
            for result in results:
                store.add(result)
        return path.read_bytes()
