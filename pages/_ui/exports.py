"""Files that a reader takes home: a chart's picture and table, a page's settings, script and report.

Everything is built when its button is pressed, not when the page is drawn: a picture with plotly.js in it has
five megabytes.  Streamlit calls the builder on a thread of its own, so builders use the core and no Streamlit.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpgrams_core import Guarantee
from dpgrams_core.figures import Chart
from dpgrams_core.recipes import Recipe, ReleaseRecord, spec_json
from dpgrams_core.reports import RELEASE_ORIGIN, figure_html, simulation_origin, stakeholder_report
from dpgrams_core.scripts import release_script, simulation_script
from dpgrams_core.tables import table_csv

# The browser has drawn the picture already, so it saves it too, as it stands on the screen (colours, zoom, camera): on
# the page's own background, without the buttons of an animation, and in a font that a lone picture finds again.
_SCRIPT = """
export default function ({ data, parentElement }) {
  const save = (format) => {
    const drawn = document.querySelector(`[class*="st-key-${data.chart}"] .js-plotly-plot`);
    if (!drawn || !window.Plotly) return;
    const paper = getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor;
    const font = { ...drawn.layout.font, family: "Arial, Helvetica, sans-serif" };
    const legend = { ...drawn.layout.legend, font: { ...drawn.layout.legend?.font, family: font.family } };
    const layout = { ...drawn.layout, paper_bgcolor: paper, plot_bgcolor: paper, font, legend };
    Object.assign(layout, { sliders: [], updatemenus: [] });
    const { width, height } = drawn.getBoundingClientRect();
    window.Plotly.downloadImage({ data: drawn.data, layout }, { format, width, height, scale: 2, filename: data.name });
  };
  for (const button of parentElement.querySelectorAll("button")) button.onclick = () => save(button.dataset.format);
}
"""
_STYLE = """
div { display: flex; gap: 0.5rem; }
button { font: inherit; font-size: 0.9rem; color: var(--st-text-color); background: transparent; cursor: pointer;
  min-height: 2.5rem; padding: 0.25rem 0.75rem; border: 1px solid var(--st-border-color);
  border-radius: var(--st-button-radius, 0.5rem); }
button:hover, button:focus-visible { color: var(--st-primary-color); border-color: var(--st-primary-color); }
"""
_BUTTONS = (
    '<div><button data-format="png" aria-label="Save the picture as PNG">PNG</button>'
    '<button data-format="svg" aria-label="Save the picture as SVG">SVG</button></div>'
)
_saver = st.components.v2.component("dpgrams_save_picture", html=_BUTTONS, css=_STYLE, js=_SCRIPT)


@dataclass(frozen=True)
class File:
    """A file to be made when someone asks for it."""

    label: str
    name: str
    mime: str
    build: Callable[[], str | bytes]


def download(file: File, key: str, width: str = "content") -> None:
    """The button of a file; pressing it reruns nothing."""
    st.download_button(
        file.label, file.build, file_name=file.name, mime=file.mime, key=key, on_click="ignore", width=width
    )


def table_file(frame: pd.DataFrame, name: str, label: str = "CSV") -> File:
    """A table as CSV that no spreadsheet computes."""
    return File(label, f"{name}.csv", "text/csv", lambda: table_csv(frame))


def chart_files(picture: Chart, key: str, title: str = "") -> None:
    """A row of buttons under the chart whose key is ``<key>_chart``: the table, and the picture in three forms."""
    with st.container(horizontal=True, key=f"{key}_files", vertical_alignment="center", gap="small"):
        if len(picture.table.columns):
            download(table_file(picture.table, key), f"{key}_csv")
        download(
            File("HTML", f"{key}.html", "text/html", lambda: figure_html(picture, title or key)),
            f"{key}_html",
        )
        _saver(data={"chart": f"{key}_chart", "name": key}, key=f"{key}_images", width="content", height="content")


def simulation_files(
    recipes: Sequence[Recipe],
    *,
    question: str,
    answer: str,
    charts: Sequence[Chart],
    guarantees: Sequence[tuple[str, Guarantee]],
    notes: Sequence[str] = (),
) -> None:
    """What a page of simulations gives away: its settings, the script that repeats it, and a report."""

    def report() -> str:
        return stakeholder_report(
            question=question,
            answer=plain_text(answer),
            charts=charts,
            guarantees=guarantees,
            origin=simulation_origin([recipe.seed for recipe in recipes]),
            notes=notes,
        )

    page_files(
        [
            File("Report, one page (HTML)", "report.html", "text/html", report),
            File("Python script", "simulation.py", "text/x-python", lambda: simulation_script(recipes)),
            File("Settings (JSON)", "settings.json", "application/json", lambda: spec_json(recipes)),
        ],
        "The script and the settings repeat these numbers exactly, seeds included.",
    )


def release_files(
    record: ReleaseRecord,
    *,
    question: str,
    answer: str,
    charts: Sequence[Chart],
    title: str,
    ledger: str,
    notes: Sequence[str] = (),
) -> None:
    """What a release of private data gives away: released numbers, their price, and no record, seed or diagnostic.

    The charts must show released numbers only.  ``ledger`` is from ``dpgrams_core.reports.ledger_line``.
    """

    def report() -> str:
        return stakeholder_report(
            question=question,
            answer=plain_text(answer),
            charts=charts,
            guarantees=[(title, record.guarantee)],
            origin=RELEASE_ORIGIN,
            ledger=ledger,
            notes=notes,
        )

    released = pd.DataFrame(record.rows, columns=list(record.columns))
    page_files(
        [
            File("Report, one page (HTML)", "report.html", "text/html", report),
            File("Python script", "release.py", "text/x-python", lambda: release_script(record)),
            File("Settings and result (JSON)", "release.json", "application/json", lambda: spec_json(record)),
            table_file(released, "released", f"Released {record.what} (CSV)"),
        ],
        "Released numbers and their price. There is no seed to share, and no record of your data is in any of these.",
    )


def caption_beside(words: str) -> DeltaGenerator:
    """A caption, and to its right the place of the page's exports, which need pictures that come later."""
    with st.container(horizontal=True, vertical_alignment="center", key="caption_beside"):
        st.caption(words, width="stretch")
        return st.container(width="content")


def page_files(files: Sequence[File], words: str) -> None:
    """The page's own exports behind one button."""
    with st.popover("Export", icon=":material/download:", key="page_export"):
        st.caption(words)
        for file in files:
            download(file, f"export_{file.name.replace('.', '_')}", "stretch")
        st.caption("Each chart’s picture and table are under the chart.")


def plain_text(markup: str) -> str:
    """The text of a sentence that a page made as HTML.

    >>> plain_text("At ε = 1 <b>two</b>.<br>And &lt;three&gt;.")
    'At ε = 1 two.\\nAnd <three>.'
    """
    return html.unescape(re.sub(r"<[^>]+>", "", markup.replace("<br>", "\n")))
