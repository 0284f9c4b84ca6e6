"""Charts and live curves on the screen, each with its sentence and its table."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dpgrams_core.figures import Chart
from dpgrams_core.progress import time_words
from pages._ui import exports, frame

CONFIG = {"displaylogo": False, "toImageButtonOptions": {"scale": 2}}
UNASKED_SECONDS = 10.0  # of computing that a page does by itself; above that it waits for a press
MOST_SECONDS = 600.0  # above this not even a press starts it: one visitor must not keep the server for hours
MOST_PRESSED = 50
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


def wanted(
    key: str, label: str, settings: Hashable, seconds: float, smaller: str, unasked: float = UNASKED_SECONDS
) -> bool:
    """Whether to draw something long: a switch, and a press where it costs much (``may_run``)."""
    if not st.toggle(label, key=key, persist_state="session"):
        st.caption("Off. Switching it off stops it; what is already computed is kept.")
        return False
    return may_run(key, settings, seconds, smaller, unasked)


def may_run(key: str, settings: Hashable, seconds: float, smaller: str, unasked: float = UNASKED_SECONDS) -> bool:
    """Whether something may be computed: at once where it is cheap, else after a press, and never beyond a limit.

    A press is for these settings and this session; no link holds it.

    Parameters
    ----------
    key : of the work, told apart on its page.
    settings : all that the work depends on.
    seconds : of computing that it takes (dpgrams_core/costs.py).
    smaller : the controls that make it cheaper, in words.
    unasked : seconds up to which it starts by itself; 0 for what always waits.
    """
    if seconds <= unasked:
        return True
    asks = f"This asks for about {time_words(seconds)} of computing"
    if seconds > MOST_SECONDS:
        st.warning(
            f"{asks}, and a page gives at most {time_words(MOST_SECONDS)}: choose a smaller {smaller}. A script "
            "or the command line has no such limit.",
            icon=":material/timer_off:",
        )
        return False
    pressed: list[Hashable] = st.session_state.setdefault("_pressed", [])
    if (key, settings) in pressed:
        return True
    limit = f" Up to {time_words(unasked)} it would start by itself." if unasked else ""
    st.caption(f"{asks}, so it waits for a press.{limit} Moving any control ends it, and so does leaving.")
    if not st.button("Run it", key=f"{key}_start", icon=":material/play_arrow:"):
        return False
    pressed[:] = [*pressed[-MOST_PRESSED:], (key, settings)]
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
