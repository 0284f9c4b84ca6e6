"""Charts and live curves on the screen, each with its sentence and its table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import streamlit as st

from dpgrams_core.figures import Chart

CONFIG = {"displaylogo": False, "toImageButtonOptions": {"scale": 2}}


def chart(picture: Chart, key: str, title: str = "") -> None:
    """A chart, its sentence, and its table folded under it."""
    if title:
        st.subheader(title)
    st.plotly_chart(picture.figure, key=key, config=CONFIG, alt=picture.sentence)
    st.caption(picture.sentence)
    table(picture, key)


def table(picture: Chart, key: str) -> None:
    """The numbers of a chart."""
    with st.expander("Table", key=f"{key}_table"):
        st.dataframe(picture.table, hide_index=True, width="stretch")


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
        picture_slot.plotly_chart(picture.figure, key=f"{key}_{count}", config=CONFIG, alt=picture.sentence)
        text_slot.caption(picture.sentence)
        if done < total:
            bar_slot.progress(done / total, text=f"{done} of {total} points")
        else:
            bar_slot.empty()
        drawn = time.monotonic()
    table(draw(), key)
