"""The curve: error against budget and size, drawn while it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpgrams_core import DATASETS
from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.figures import (
    LAB_MEASURES,
    Cost,
    LabLayout,
    columns_of,
    costs,
    in_a_text,
    lab_panel,
    lab_sentence,
    lab_table,
    middle,
    of_panel,
    panel_title,
    panels_of,
    plus_minus,
    rate_note,
    short,
)
from dpgrams_core.sweeps import tidy
from pages._ui import exports, frame, show
from pages._ui.tradeoff_choices import VIEWS, chosen
from pages._ui.tradeoff_files import file_box, opened, parquet_of
from pages._ui.tradeoff_grids import LabSettings, command_lines, lab_cells
from pages._ui.tradeoff_live import Known, leave_all_but, live_sweep

LAYOUTS = {
    "method": LabLayout("epsilon", "method"),
    "n": LabLayout("epsilon", "n"),
    "epsilon": LabLayout("n", "epsilon"),
}


def curve(settings: LabSettings) -> None:
    """The part of the page with the main curve."""
    with st.sidebar:
        file = file_box()
    found = None if file is None else from_file(file, settings)
    cells = planned(settings) if found is None else list(found)
    if cells is None:
        return
    measures = LAB_MEASURES[settings.kind]
    top = st.container()
    with st.container(horizontal=True, gap="medium"):
        measure = chosen(f"lab_score_{settings.kind}", measures, "Score")
        view = chosen("lab_view", VIEWS, "On the axis, and panels")
        theory = has_theory(settings, measure) and st.toggle(
            "Theory's slopes",
            key="lab_theory",
            help="The rates of the paper's upper and lower bound, slopes only: their height means nothing.",
            persist_state="session",
        )

    def draw(known: Known) -> None:
        with top:
            answer(known, cells, measure)
        panels(known, cells, measure, LAYOUTS[view], theory=theory)

    if found is not None:
        leave_all_but(None)
        st.caption(f"From {file.name}: {len(cells):,} points, {sum(item.ended for item in found.values()):,} runs.")
        draw(found)
        return
    live_sweep(cells, draw)
    command_box(command_lines(settings))


def command_box(lines: str) -> None:
    """What repeats the picture's sweep elsewhere."""
    with st.expander("Repeat it on the command line", key="lab_command"):
        st.caption("The same seed gives the same numbers. The file keeps every run and can be continued.")
        st.code(lines, language="bash", wrap_lines=True)


def from_file(file: Any, settings: LabSettings) -> Known | None:
    """The results of a file that was dropped on the page, or None after a sentence on why not."""
    try:
        return opened(file.getvalue(), file.name, settings.dataset)
    except DataError as error:
        frame.problem(error)
        return None


def has_theory(settings: LabSettings, measure: str) -> bool:
    """The paper's rates are those of the squared error of modes."""
    return settings.kind == "modes" and measure == "mse"


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
    words = LAB_MEASURES[DATASETS[cells[0].dataset].kind][measure][0]
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
        parts = [f"by {number(cost.ratio, cost.ratio_se)} with {named(cost)}" for cost in found]
        plain = found[0]
        text = (
            f"{where}, privacy multiplies the {words} {listed(parts)}. Without privacy it is "
            f'<b class="plain">{short(plain.plain)}</b> ({in_a_text(plain.plain_title)}).'
        )
    else:
        parts = [f"{number(cost.value, cost.value_se)} with {named(cost)}" for cost in found]
        text = f"{where} the mean {words} is {listed(parts)}"
        plain = found[0]
        if plain.plain == plain.plain:
            text += (
                f', against <b class="plain">{short(plain.plain)}</b> without privacy ({in_a_text(plain.plain_title)})'
            )
        text += "."
    runs = sorted({cost.runs for cost in found})
    frame.answer(f"{text} <small>({' to '.join(map(str, dict.fromkeys((runs[0], runs[-1]))))} runs)</small>")


def listed(parts: Sequence[str]) -> str:
    """Several as people say them: a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def number(value: float, spread: float) -> str:
    """A number of a private method, in its colour."""
    return f'<b class="private">{plus_minus(value, spread)}</b>'


def named(cost: Cost) -> str:
    """A method and the status of its guarantee."""
    article = "the " if cost.title == "Functional release" else ""
    return f"{article}{in_a_text(cost.title)} ({frame.STATUS_WORDS[cost.status]})"


def panels(known: Known, cells: Sequence[Cell], measure: str, layout: LabLayout, *, theory: bool = False) -> None:
    """The panels side by side (one under the other on a phone), the sentence, the table and the files."""
    key, values = "lab_curve", panels_of(cells, layout)
    across = min(2, len(values))
    columns: list[Any] = []
    for place, value in enumerate(values):
        if place % across == 0:  # row by row, so that on a phone they stand in order
            columns = st.columns(across, gap="medium")
        with columns[place % across]:
            st.markdown(f"**{panel_title(value, layout)}**")
            figure = lab_panel(known, cells, measure, layout, value, theory=theory)
            st.plotly_chart(
                figure,
                key=f"{key}_{place}_chart",
                config=show.CONFIG,
                alt=f"{panel_title(value, layout)}: {lab_sentence(known, cells, measure)}",
            )
            if theory:
                st.caption(rate_note(of_panel(known, layout, value), variable=layout.x, d=columns_of(cells)))
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
