"""Start: where people gather, what one of them changes, and what noise hides. The page that people send around."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from dpgrams_core.figures import start
from dpgrams_core.model.places import ASSETS
from pages._ui import cache, jobs, layout, state
from pages._ui.exports import share

QUESTION = "Find where people gather, and give nobody away"
NAME = "start"
DOORS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("pages/modes.py", "Explore it yourself", ":material/landscape:", {}),
    ("pages/tradeoff.py", "What ε do I need?", ":material/query_stats:", {"lab_part": "needed"}),
    ("pages/my_data.py", "Use my data", ":material/upload_file:", {}),
)

MORE = (
    ("pages/lessons.py", "Lessons", ":material/school:"),
    ("pages/attacker.py", "Be the attacker", ":material/person_search:"),
)

_html, _css, _js = ((ASSETS / f"components/start.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
_view = st.components.v2.component("dpgrams_start", html=_html, css=_css, js=_js)
_arrays = st.components.v2.component("dpgrams_start_arrays", js=_js)


@st.cache_resource(show_spinner=False)
def first() -> tuple[dict[str, Any], dict[str, Any]]:
    """The picture with its first draw of the noise: the same for all visitors, since nothing of it is anybody's."""
    data = cache.records(start.PICTURE).for_many_runs()
    return start.scene(data), start.draw(data, 0)


def show() -> None:
    """The picture; the other draws of the noise come while it is looked at."""
    still, draw = first()
    _view(data={"name": NAME}, key=NAME)
    make = partial(start.draw, cache.records(start.PICTURE).for_many_runs())
    work = jobs.one_by_one(("start draws",), range(1, start.DRAWS), make)

    def message(found: dict[int, dict[str, Any]]) -> bytes:
        return start.message(NAME, still, [draw, *found.values()], start.kept_audits())

    def send(found: dict[int, dict[str, Any]], _job: jobs.Job | None) -> None:
        _arrays(data=message(found), key=f"{NAME}_arrays", height=1)

    state.on_stage(NAME, lambda: ({"name": NAME, "start": True}, message(work.found())))
    jobs.live(replace(work, begun=lambda _found: True), send)


if set(st.query_params) - set(state.SHOWING):
    # Modes was the first page once, and its links had no name of a page.
    st.switch_page("pages/modes.py", query_params=dict(st.query_params))
layout.open_page(QUESTION, "pages/start.py")
with nullcontext() if layout.presenting() else st.container(key="first_page", gap=None):  # by which its style knows it
    show()
state.write_url([])
layout.presented()
with st.container(horizontal=True, key="doors", gap="small"):
    for script, words, icon, query in DOORS:
        st.page_link(script, label=words, icon=icon, query_params=query)
    with st.container(horizontal=True, key="more_doors", gap="small", width="content"):
        for script, words, icon in MORE:
            st.page_link(script, label=words, icon=icon)
        st.button("Share, present", key="share_start", icon=":material/share:", type="tertiary", on_click=share.wish)
