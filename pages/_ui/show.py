"""Charts and live curves on the screen, each with its sentence and its table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dpgrams_core.figures import Chart
from pages._ui import exports, frame

CONFIG = {"displaylogo": False, "toImageButtonOptions": {"scale": 2}}
PRESENTER_FONT = 16  # pixels: the charts are not scaled with the page's text


def plot(figure: go.Figure, key: str, words: str, place: Any = st) -> None:
    """The picture of a chart, with words for those who cannot see it; larger letters while presenting."""
    if frame.presenting():
        figure = go.Figure(figure).update_layout(font_size=PRESENTER_FONT, legend_font_size=PRESENTER_FONT)
        figure.update_xaxes(tickfont_size=PRESENTER_FONT, title_font_size=PRESENTER_FONT)
        figure.update_yaxes(tickfont_size=PRESENTER_FONT, title_font_size=PRESENTER_FONT)
    place.plotly_chart(figure, key=key, config=CONFIG, alt=words)


def chart(picture: Chart, key: str, title: str = "") -> None:
    """A chart, its sentence, and its table and files folded under it."""
    if title:
        st.subheader(title)
    plot(picture.figure, f"{key}_chart", picture.sentence)
    st.caption(picture.sentence)
    table(picture, key, title)


def table(picture: Chart, key: str, title: str = "") -> None:
    """The numbers of a chart, and its files."""
    with st.expander("Table and downloads", key=f"{key}_table"):
        st.dataframe(picture.table, hide_index=True, width="stretch")
        exports.chart_files(picture, key, title)


def wanted(key: str, label: str, n: int, limit: int) -> bool:
    """Whether to draw something long: a switch, and one more click above ``limit`` records."""
    if not st.toggle(label, key=key, persist_state="session"):
        st.caption("Off. Switching it off stops it; what is already computed is kept.")
        return False
    agreed = f"_{key}_agreed_{n}"
    if n > limit and not st.session_state.get(agreed):
        st.caption(f"Many runs at n = {n:,} take a while; moving any control stops them.")
        if not st.button("Start", key=f"{key}_start", icon=":material/play_arrow:"):
            return False
        st.session_state[agreed] = True
    return True


def live(steps: Iterable[int], total: int, draw: Callable[[], Chart], key: str, pause: float = 0.4) -> None:
    """A chart that fills in while ``steps`` runs; moving a control stops it and keeps what it has.

    Streamlit ends a running script at its next screen call, so each step must be short.
    """
    picture_slot, text_slot, bar_slot = st.empty(), st.empty(), st.empty()
    drawn, count = 0.0, 0
    for done in steps:
        count += 1
        if done < total and time.monotonic() - drawn < pause:
            continue
        picture = draw()
        plot(picture.figure, f"{key}_chart_{count}", picture.sentence, picture_slot)
        text_slot.caption(picture.sentence)
        if done < total:
            bar_slot.progress(done / total, text=f"{done} of {total} points")
        else:
            bar_slot.empty()
        drawn = time.monotonic()
    table(draw(), key)
