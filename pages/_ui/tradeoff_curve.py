"""The curve: error against budget and size, drawn while it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from dpgrams_core import DATASETS
from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.datasets import PICKED_CLIPS
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.figures import (
    LAB_MEASURES,
    Chart,
    Cost,
    LabLayout,
    cell_title,
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
from pages._ui.tradeoff_exports import sweep_files
from pages._ui.tradeoff_files import OpenedFile, file_box, of_dataset, parquet_of
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
    if file.problem:
        frame.problem(file.problem)
    found = from_file(file, settings) if file.results else None
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

    shown = cells if found is not None else as_listed(cells, settings)

    def draw(known: Known) -> None:
        with top:
            text = answer(known, shown, measure)
        charts = panels(known, shown, measure, LAYOUTS[view], theory=theory)
        with exports.caption_beside(lab_sentence(known, shown, measure) + picked_clip(shown)):
            sweep_files(shown, text, lambda: _for_a_report(charts, known, shown, measure), repeatable=found is None)
        tables(known, charts)

    if found is not None:
        leave_all_but(None)
        st.caption(f"From {file.name}: {len(cells):,} points, {sum(item.ended for item in found.values()):,} runs.")
        draw(found)
        return
    live_sweep(cells, draw)
    command_box(command_lines(settings))


def as_listed(cells: Sequence[Cell], settings: LabSettings) -> list[Cell]:
    """The cells in the order of the methods in the sidebar; they are run in another, the quick ones first."""
    places = {arm.title: place for place, arm in enumerate(settings.arms)}
    return sorted(cells, key=lambda cell: places[cell_title(cell)])


def picked_clip(cells: Sequence[Cell]) -> str:
    """What is said of DP-GRAMS-C on real data; "" where it is not among the cells."""
    clips = {dict(cell.options).get("clip_multiplier") for cell in cells if cell.method == "dp_grams_c"}
    picked = PICKED_CLIPS.get(cells[0].dataset)
    if picked is None or picked not in clips:
        return ""
    return (
        f" DP-GRAMS-C has the clip multiplier {picked:g}, as in the tables of the Paper page: the best at ε = 1, "
        "picked on the records, so its ε is nominal whatever its noise."
    )


def command_box(lines: str) -> None:
    """What repeats the picture's sweep elsewhere; a twin has no such lines."""
    if not lines:
        st.caption(
            "The twin is known to this session only, so no command repeats this sweep. Records of it can be downloaded "
            "on My data."
        )
        return
    with st.expander("Repeat it on the command line", key="lab_command"):
        st.caption("The same seed gives the same numbers. The file keeps every run and can be continued.")
        st.code(lines, language="bash", wrap_lines=True)


def from_file(file: OpenedFile, settings: LabSettings) -> Known | None:
    """The results of the file that is open, or None after a sentence on why not."""
    try:
        found = of_dataset(file.results, file.name, settings.dataset)
    except DataError as error:
        frame.problem(error)
        return None
    # A file holds the letters of a twin only; the name that carries it takes their place.
    named = {cell: replace(cell, dataset=settings.dataset) for cell in found}
    return {named[cell]: replace(result, cell=named[cell]) for cell, result in found.items()}


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
            large_command(settings)
            return None
        st.session_state["_lab_large"] = agreed
    try:
        return lab_cells(settings, confirm=True)
    except SpecError as error:
        frame.problem(error)
        large_command(settings)
        return None


def large_command(settings: LabSettings) -> None:
    """The command for a grid that the page does not run, where there is one."""
    if lines := command_lines(settings, " --yes"):
        st.code(lines, language="bash", wrap_lines=True)


def answer(known: Known, cells: Sequence[Cell], measure: str) -> str:
    """What privacy costs in the middle of the grid."""
    words = LAB_MEASURES[DATASETS[cells[0].dataset].kind][measure][0]
    budgets = [cell.epsilon for cell in cells if cell.epsilon < float("inf")]
    if not budgets:
        return frame.answer("Choose a private method to see what privacy costs.")
    n, epsilon = int(middle([cell.n for cell in cells])), middle(budgets, 1.0)
    found = costs(known, cells, measure, n, epsilon)
    where = f"On {DATASETS[cells[0].dataset].title} with n = {n:,}, at ε = {epsilon:g}"
    if not found:
        return frame.answer(f"{where} there is no run yet: the curve is drawn while you watch.")
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
    return frame.answer(f"{text} <small>({' to '.join(map(str, dict.fromkeys((runs[0], runs[-1]))))} runs)</small>")


def listed(parts: Sequence[str]) -> str:
    """Several as people say them: a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def number(value: float, spread: float) -> str:
    """A number of a private method, in its colour."""
    return f'<b class="private">{plus_minus(value, spread)}</b>'


def named(cost: Cost) -> str:
    """A method and the status of its guarantee."""
    article = "the " if cost.title == "Functional release" else ""
    return f"{article}{in_a_text(cost.title)} ({frame.status_words(cost.status)})"


def panels(
    known: Known, cells: Sequence[Cell], measure: str, layout: LabLayout, *, theory: bool = False
) -> list[Chart]:
    """The panels side by side (one under the other on a phone), each with its title for a sentence."""
    charts = []
    values = panels_of(cells, layout)
    across = min(2, len(values))
    columns: list[Any] = []
    for place, value in enumerate(values):
        if place % across == 0:  # row by row, so that on a phone they stand in order
            columns = st.columns(across, gap="medium")
        with columns[place % across]:
            title = panel_title(value, layout)
            st.markdown(f"**{title}**")
            figure = lab_panel(known, cells, measure, layout, value, theory=theory)
            show.plot(figure, f"lab_curve_{place}_chart", f"{title}: {lab_sentence(known, cells, measure)}")
            if theory:
                st.caption(rate_note(of_panel(known, layout, value), variable=layout.x, d=columns_of(cells)))
        charts.append(Chart(figure, f"{title}.", pd.DataFrame()))
    return charts


def tables(known: Known, charts: Sequence[Chart]) -> None:
    """The table of all panels, and the files of each."""
    with st.expander("Table and downloads", key="lab_curve_table"):
        st.dataframe(lab_table(known), hide_index=True, width="stretch")
        results = [found for found in known.values() if found.ended]
        with st.container(horizontal=True, key="lab_curve_files"):
            exports.download(
                exports.File("CSV, all scores and quantiles", "sweep.csv", "text/csv", lambda: csv_of(results)),
                "lab_curve_csv",
            )
            exports.download(
                exports.File(
                    "Every run (Parquet)", "results.parquet", "application/octet-stream", lambda: parquet_of(results)
                ),
                "lab_curve_parquet",
            )
        for place, picture in enumerate(charts):
            st.caption(picture.sentence)
            exports.chart_files(picture, f"lab_curve_{place}", picture.sentence.rstrip("."))


def _for_a_report(charts: Sequence[Chart], known: Known, cells: Sequence[Cell], measure: str) -> list[Chart]:
    """The panels; what they say together stands under the first, with the table."""
    first, *others = charts
    words = f"{first.sentence} {lab_sentence(known, cells, measure)}"
    return [replace(first, sentence=words, table=lab_table(known)), *others]


def csv_of(results: Sequence[CellResult]) -> str | bytes:
    """The tidy table."""
    return exports.table_csv(tidy(results))
