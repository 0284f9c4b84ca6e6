"""Presenting: the scenes of a deck one after the other, by button or key."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from dpgrams_core.exports.deck import LARGEST_FILE, MOST_SCENES, PAGES, TOUR, Deck, deck_text, read_deck_text
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.places import ASSETS
from pages._ui import layout, state

_html, _css, _js = (
    (ASSETS / f"components/presenter.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
)
_bar = st.components.v2.component("dpgrams_presenter", html=_html, css=_css, js=_js)


def _known_deck(text: str) -> str:
    """A parser of the URL for a deck, which stays the word that it is."""
    try:
        return text if len(text) <= LARGEST_FILE and read_deck_text(text) else ""
    except DataError as error:
        raise ValueError(str(error).rstrip(".")) from None


def deck() -> Deck:
    """The deck of this session; () where nobody made or opened one."""
    return read_deck_text(text) if (text := st.session_state.get(state.DECK)) else ()


def keep(scenes: Deck) -> None:
    """Make these the deck of this session; no scenes are none."""
    st.session_state[state.DECK] = deck_text(scenes) if scenes else ""
    st.session_state[state.SCENE] = 0


def page_here() -> str:
    """The page that is open, as a deck names it; nothing for one that no deck may show."""
    return next((name for name, title in PAGES.items() if title == st.session_state.get("_page")), "")


def bar() -> None:
    """The presenter's switch and, while it is on, next and previous; without a deck they go through the pages."""
    layout.presenter_switch()
    state.start(state.DECK, "", _known_deck)
    state.start(state.SCENE, 0, state.number_within(int, 1, MOST_SCENES, empty=False))
    if not layout.presenting():
        return
    if deck() and not 1 <= st.session_state[state.SCENE] <= len(deck()):  # as in a link to a deck alone
        show_scene(deck(), 0)
        st.rerun()
    if not deck() and st.context.is_embedded:  # inside another page a picture stands alone
        return
    in_tour = list(PAGES).index(page_here()) if page_here() else -1
    scenes, here = (deck(), int(st.session_state[state.SCENE]) - 1) if deck() else (TOUR, in_tour)
    scene = scenes[here] if 0 <= here < len(scenes) else None
    words: dict[str, Any] = {"scene": here + 1, "scenes": len(scenes)}
    words |= {"title": scene.heading if scene else "", "notes": scene.notes if scene else ""}

    def go() -> None:
        step = st.session_state["presenter_bar"].get("go")
        if step in (-1, 1):  # a visitor's browser may send anything
            show_scene(scenes, here + step)

    _bar(data=words, key="presenter_bar", on_go_change=go, on_leave_change=leave)


def show_scene(scenes: Deck, number: int) -> None:
    """Go to a scene of these, from a callback: its page takes the values of its link, checked one by one."""
    if not 0 <= number < len(scenes):
        return
    scene = scenes[number]
    st.session_state[state.SCENE] = number + 1 if deck() else 0
    if deck():  # the tour leaves the settings as they are
        st.session_state[state.OPENED] = dict(parse_qsl(scene.query, keep_blank_values=True))
    st.session_state["_wanted"] = (f"pages/{scene.page}.py", {})


def begin() -> None:
    """Present the deck from its first scene, from a callback."""
    st.session_state[state.PRESENTER] = True
    show_scene(deck(), 0)


def leave() -> None:
    """End the presentation; the page stays."""
    st.session_state[state.PRESENTER] = False
