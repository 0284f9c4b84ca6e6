"""Files that a reader takes home: a chart's picture and table, a page's settings, script and report.

Everything is built when its button is pressed, not when the page is drawn: a picture with plotly.js in it has
five megabytes.  Streamlit calls the builder on a thread of its own, so builders use the core and no Streamlit.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from dpgrams_core import Guarantee
from dpgrams_core.exports.csv import table_csv
from dpgrams_core.exports.registry import File, Shown, files_of
from dpgrams_core.exports.report import RELEASE_ORIGIN, figure_html, simulation_origin
from dpgrams_core.exports.settings import open_settings
from dpgrams_core.figures.style import Chart
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.run import Run
from dpgrams_core.own_data.record import ReleaseRecord
from pages._ui import state
from pages._ui.layout import plain
from pages._ui.server import uploads

_BUTTONS = (
    '<div><button data-format="png" aria-label="Save the picture as PNG">PNG</button>'
    '<button data-format="svg" hidden aria-label="Save the picture as SVG">SVG</button></div>'
)
_css, _js = ((ASSETS / f"components/save_picture.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
_saver = st.components.v2.component("dpgrams_save_picture", html=_BUTTONS, css=_css, js=_js)

Named = tuple[str, Guarantee]  # a method and its guarantee
# The pages whose settings files can be opened.
OPENED_BY = ("modes", "regression", "clusters", "tradeoff", "guarantee")
LARGEST_FILE = uploads.MEGABYTE  # one, as the box says


def download(file: File, key: str, width: Literal["content", "stretch"] = "content") -> None:
    """The button of a file; pressing it reruns nothing."""
    how: dict[str, Any] = {"key": key, "on_click": "ignore", "width": width}
    st.download_button(file.label, file.build, file_name=file.name, mime=file.mime, **how)


def table_file(frame: pd.DataFrame, name: str, label: str = "CSV") -> File:
    """A table as CSV that no spreadsheet computes."""
    return File(label, f"{name}.csv", "text/csv", lambda: table_csv(frame))


def canvas_file(chart: str, name: str) -> None:
    """What saves a picture of our own, which is drawn on a canvas, as PNG; its HTML has an SVG (``chart_files``).

    The browser adds the ε that it shows to the name.
    """
    _saver(data={"chart": chart, "name": name, "canvas": True}, key=f"{chart}_image", width="content", height="content")


def chart_files(picture: Chart, key: str, title: str = "", *, canvas: bool = False) -> None:
    """A row of buttons under the chart whose key is ``<key>_chart``: the table, and the picture in three forms.

    One that is on a ``canvas`` is saved beside its title (``canvas_file``).
    """
    with st.container(horizontal=True, key=f"{key}_files", vertical_alignment="center", gap="small"):
        if len(picture.table.columns):
            download(table_file(picture.table, key), f"{key}_csv")
        page = File("HTML", f"{key}.html", "text/html", lambda: figure_html(picture, title or key))
        download(page, f"{key}_html")
        if not canvas:
            data = {"chart": f"{key}_chart", "name": key, "canvas": False}
            _saver(data=data, key=f"{key}_images", width="content", height="content")


def simulation_files(
    runs: Sequence[Run], *, answer: str, charts: Sequence[Chart], guarantees: Sequence[Named], **more: Any
) -> None:
    """What a page of simulations gives away: its settings, the script that repeats it, and a report.

    ``more`` are the question, the page and the notes of ``Shown``.
    """
    shown = Shown(
        answer=plain_text(answer),
        charts=lambda: charts,
        guarantees=lambda: guarantees,
        origin=simulation_origin([run.seed for run in runs]),
        runs=runs,
        link=link_here(),
        **more,
    )
    page_files(shown, "The script and the settings repeat these numbers exactly, seeds included.")


def release_files(record: ReleaseRecord, *, answer: str, charts: Sequence[Chart], title: str, **more: Any) -> None:
    """What a release of private data gives away: released numbers, their price, and no record, seed or diagnostic.

    The charts must show released numbers only.  ``more`` are the question, the ledger and the notes of ``Shown``.
    """
    shown = Shown(
        answer=plain_text(answer),
        charts=lambda: charts,
        guarantees=lambda: [(title, record.guarantee)],
        origin=RELEASE_ORIGIN,
        record=record,
        **more,
    )
    words = (
        "Released numbers and their price. There is no seed to share, and no record of your data is in any of these."
    )
    page_files(shown, words)


def link_here() -> str:
    """What stands after the ? in the address of the page: its settings that are not the usual ones."""
    return urlencode(st.query_params.to_dict())


def caption_beside(words: str) -> DeltaGenerator:
    """A caption, and to its right the place of the page's exports, which need pictures that come later."""
    with st.container(horizontal=True, vertical_alignment="center", key="caption_beside"):
        st.caption(words, width="stretch")
        return st.container(width="content")


def page_files(shown: Shown, words: str) -> None:
    """The page's own exports behind one button."""
    with st.popover("Export", icon=":material/download:", key="page_export"):
        st.caption(words)
        for file in files_of(shown):
            download(file, f"export_{file.name.replace('.', '_')}", "stretch")
        st.caption("Each chart’s picture and table are under the chart.")
        if shown.page:
            open_box(shown.page)


def open_box(here: str) -> None:
    """Where a settings file is opened again: its page takes the values of its link, checked one by one."""
    if problem := st.session_state.pop("_settings_problem", ""):
        st.error(plain(problem), icon=":material/error:")
    words = "A settings file (JSON) that was saved here; its page opens with these settings."
    try:
        found = opened_here("settings", "Open settings", "Settings", words, read_link)
    except DataError as error:
        st.session_state["_settings_problem"] = str(error)
        st.rerun()
    if found is None:
        return
    page, st.session_state[state.OPENED] = found
    if page != here:
        with suppress(StreamlitAPIException):  # a page run on its own, as in a test, has no other page beside it
            st.switch_page(f"pages/{page}.py")
    st.rerun()


def opened_here(name: str, label: str, what: str, words: str, read: Callable[[bytes], Any]) -> Any:
    """What is read from a small file (JSON) of ours that is dropped here, or None; DataError where it is none."""
    settings = uploads.settings_or_off()
    if not settings.uploads:
        st.caption(f"{what} cannot be opened. {uploads.OFF}")
        return None
    count = st.session_state.setdefault(f"_{name}_files", 0)  # gives the box for every file a name of its own
    dropped = uploads.upload_box(label, settings, f"{name}_file_{count}", 1, words, type=["json"])
    if dropped is None:
        return None
    st.session_state[f"_{name}_files"] += 1
    return uploads.read_and_let_go(dropped, settings, lambda content, *_: read(content))


def read_link(content: bytes) -> tuple[str, dict[str, str]]:
    """The page of a settings file and the values of its link; DataError where it is none of a page with settings."""
    if len(content) > LARGEST_FILE:  # the browser holds an honest visitor to it; the route takes as much as a table has
        raise DataError("This file is too large for settings that were saved here.")
    try:
        opened = open_settings(content)
    except SpecError as error:
        raise DataError(str(error)) from None
    if opened.page not in OPENED_BY:
        raise DataError("This file holds no settings of a page; open one that was saved under Export.")
    return opened.page, dict(parse_qsl(opened.link, keep_blank_values=True))


def plain_text(markup: str) -> str:
    """The text of a sentence that a page made as HTML.

    >>> plain_text("At ε = 1 <b>two</b>.<br>And &lt;three&gt;.")
    'At ε = 1 two.\\nAnd <three>.'
    """
    return html.unescape(re.sub(r"<[^>]+>", "", markup.replace("<br>", "\n")))
