"""Presenting: the scenes of a deck one after the other, by button or key."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from dpgrams_core.exports.deck import LARGEST_FILE, MOST_SCENES, PAGES, TOUR, Deck, deck_text, read_deck_text
from dpgrams_core.exports.player import Slide
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.places import ASSETS
from pages._ui import jobs, layout, state

LOOK_SECONDS, LOOKS = 0.5, 3  # how often a deck that is saved looks whether a scene is drawn, and how often at least
_SLIDES = "_slides"  # of the deck that is being saved
_SAVED = "_saved"  # the presentation that saved it ends
LINK, SCENES = "This page as a link", "Scenes of a talk"  # the tabs of the dialog that shares
SHARE = "_share"  # that of them with which the dialog opens by itself
FILE = "_deck_file"  # the deck that was saved, and its slides

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
    if st.session_state.pop(_SAVED, False):
        leave()  # its switch is drawn after this
    layout.presenter_switch()
    state.start(state.DECK, "", _known_deck)
    state.start(state.SCENE, 0, state.number_within(int, 1, MOST_SCENES, empty=False))
    if not layout.presenting():
        stop_saving()
        return
    if deck() and not 1 <= st.session_state[state.SCENE] <= len(deck()):  # as in a link to a deck alone
        show_scene(deck(), 0)
        st.rerun()
    if not deck() and st.context.is_embedded:  # inside another page a picture stands alone
        return
    in_tour = next((number for number, scene in enumerate(TOUR) if scene.page == page_here()), -1)
    scenes, here = (deck(), int(st.session_state[state.SCENE]) - 1) if deck() else (TOUR, in_tour)
    scene = scenes[here] if 0 <= here < len(scenes) else None
    words: dict[str, Any] = {"scene": here + 1, "scenes": len(scenes)}
    words["title"] = scene.heading if scene else st.session_state.get("_page", "")
    words["notes"] = scene.notes if scene else ""
    saving = _SLIDES in st.session_state
    if saving:
        st.session_state[state.STAGE] = {}
        words["title"] = f"Saving the deck: {words['title']}"

    def go() -> None:
        step = st.session_state["presenter_bar"].get("go")
        if saving and step == 1:  # what takes too long is left as it is
            next_slide()
        elif step in (-1, 1) and not saving:  # a visitor's browser may send anything
            turn = None if deck() else st.session_state.get(state.TURN)
            if turn is None or not turn(step):
                show_scene(scenes, here + step)

    st.session_state.pop(state.TURN, None)  # the page that is drawn now has its own
    _bar(data=words, key="presenter_bar", on_go_change=go, on_leave_change=leave)
    if saving:
        looks = iter(range(LOOKS))

        def look() -> None:
            """A part that repeats itself runs when the page has been drawn; it waits for what fills in."""
            if next(looks, None) is None and not jobs.waiting():
                next_slide()
                st.rerun()

        st.fragment(look, run_every=LOOK_SECONDS)()


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


def save() -> None:
    """Show every scene once and keep what is shown, for a file that plays without a server; from a callback."""
    st.session_state[_SLIDES] = []
    begin()


def stop_saving() -> None:
    """Whoever leaves the presentation while a deck is saved has no file."""
    for key in (_SLIDES, state.STAGE):
        st.session_state.pop(key, None)


def next_slide() -> None:
    """Keep what the projector shows now and go on; after the last scene the file can be had."""
    scenes, slides, shown = deck(), st.session_state[_SLIDES], st.session_state.get(state.STAGE, {})
    line = shown.pop(state.LINE, "")
    pictures = [picture() if callable(picture) else picture for picture in shown.values()]
    slides.append(Slide(scenes[len(slides)], line, pictures))
    if len(slides) < len(scenes):
        show_scene(scenes, len(slides))
        return
    st.session_state[FILE] = (st.session_state[state.DECK], tuple(slides))
    st.session_state[_SAVED], st.session_state[SHARE] = True, SCENES
    stop_saving()


def saved() -> tuple[Slide, ...]:
    """What was kept of the deck as it is now; () before that."""
    known, slides = st.session_state.get(FILE, ("", ()))
    return slides if known and known == st.session_state.get(state.DECK) else ()


def leave() -> None:
    """End the presentation; the page stays."""
    st.session_state[state.PRESENTER] = False
