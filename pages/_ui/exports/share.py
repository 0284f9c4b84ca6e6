"""Share: a page as a link, a QR code or inside another page; scenes of a talk as a link or a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import segno
import streamlit as st

from dpgrams_core.exports.deck import (
    LONGEST,
    LONGEST_LINK,
    OWN_DATA,
    Deck,
    Scene,
    deck_json,
    deck_of,
    deck_text,
    read_deck_json,
)
from dpgrams_core.exports.player import deck_html
from dpgrams_core.exports.registry import File
from dpgrams_core.figures.style import INK, WHITE
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.places import ASSETS
from pages._ui import exports, layout, state
from pages._ui.controls import one_of_few
from pages._ui.exports import present
from pages._ui.exports.present import LINK, SCENES
from pages._ui.server.app import LOCAL_NAMES

WAYS = {"page": "As a page", "presenter": "In presenter mode", "embed": "Inside another page"}
PRESENTS = {state.PRESENTER: "on"}
# What each adds to the address.
ADDED: dict[str, dict[str, str]] = {"page": {}, "presenter": PRESENTS, "embed": PRESENTS | {"embed": "true"}}
LONGEST_QR = 800  # characters: more are points too small for a phone's camera
TOO_LONG = "The address is too long for a QR code that a phone can read; send the link itself."
MAKES = "One file that plays without a server, handles included. Every scene is shown once while it is made."
PROBLEM = "_deck_problem"

_html, _css, _js = ((ASSETS / f"components/copy.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
_copy = st.components.v2.component("dpgrams_copy", html=_html, css=_css, js=_js)


def bar(path: str) -> None:
    """What stands on every page: the presenter's switch and bar, and the button that shares the page at this path."""
    layout.place_controls()
    present.bar()
    look: Any = {"icon": ":material/share:", "width": "stretch"}
    st.sidebar.button("Share and present", key="share_page", on_click=wish, **look)
    if tab := st.session_state.pop(present.SHARE, ""):
        dialog(path, tab)


def wish() -> None:
    """Open the dialog in the run that comes, from a callback."""
    st.session_state[present.SHARE] = LINK


@st.dialog("Share and present", width="medium", on_dismiss="rerun")
def dialog(path: str, first: str) -> None:
    """The page as a link, and scenes of a talk; it is drawn anew alone, without the page."""
    this, those = st.tabs([LINK, SCENES], default=first)
    with this:
        share_link()
    with those:
        talk(path)


def settings_here() -> dict[str, str]:
    """The settings in the address of the page, without how it is shown."""
    return {key: text for key, text in st.query_params.to_dict().items() if key not in state.SHOWING}


def address(query: Mapping[str, str], without: str = "") -> str:
    """The whole address of this page as this visitor reaches it, or ``without`` its path that of the dashboard."""
    here = (st.context.url or "").rstrip("/")
    return (here.removesuffix(f"/{without}") if without else here) + (f"?{urlencode(query)}" if query else "")


def share_link() -> None:
    """A link to this page with its settings, to copy or to point a phone at."""
    st.session_state.setdefault("share_how", "page")
    how = one_of_few("How it opens", "share_how", WAYS)
    link = address(settings_here() | ADDED[how])
    if how == "embed":
        code = f'<iframe src="{link.replace("&", "&amp;")}" width="100%" height="720" title="DP-GRAMS"></iframe>'
        copied(code, "HTML that shows this page inside another", "Copy HTML", "share_link")
        st.caption("Whoever runs this server says which other pages may show it (DPGRAMS_FRAME_ANCESTORS).")
    else:
        copied(link, "Link to this page", "Copy link", "share_link")
    if st.session_state.get("_page") == "My data":
        st.caption("The link holds settings and nothing of your file: whoever opens it needs a file of their own.")
    qr_code(link)


def copied(text: str, label: str, button: str, key: str) -> None:
    """A text with the button that copies it."""
    _copy(data={"text": text, "label": label, "button": button}, key=key, width="stretch", height="content")


def qr_code(link: str) -> None:
    """A link for a phone's camera, dark on white in both themes; a sentence where there can be none."""
    if urlsplit(link).hostname in LOCAL_NAMES:
        st.caption("This address is that of your own machine: others cannot open it. Host the dashboard to share it.")
    if len(link) > LONGEST_QR:
        st.caption(TOO_LONG)
        return
    drawn = segno.make(link, micro=False).svg_data_uri(dark=INK, light=WHITE, border=4)
    st.html(f'<img class="qr" alt="QR code of the link" src="{drawn}">')


def talk(path: str) -> None:
    """The scenes of this session's deck: add this page, put them in order, present, save, open."""
    above = st.container()
    open_deck()  # what it holds is listed above
    with above:
        scenes(path)


def scenes(path: str) -> None:
    """This page as a further scene, and those that there are."""
    if problem := st.session_state.pop(PROBLEM, ""):
        layout.problem(layout.plain(problem))
    if page := present.page_here():
        st.text_input("Title of the scene", key="scene_title", max_chars=LONGEST["title"])
        words = "Only you see them, with the key N while you present."
        st.text_area("Notes for the speaker", key="scene_notes", height=80, max_chars=LONGEST["notes"], help=words)
        st.button("Add this page as a scene", key="scene_add", icon=":material/add:", on_click=add, args=(page,))
    else:
        st.caption(OWN_DATA if st.session_state.get("_page") == "My data" else "This page is no scene of a talk.")
    if known := present.deck():
        listed(known)
        save(known, path)


def add(page: str) -> None:
    """This page as it is now becomes the last scene."""
    said = {name: st.session_state.get(f"scene_{name}", "").strip() for name in ("title", "notes")}
    try:
        present.keep(deck_of([*present.deck(), Scene(page, urlencode(settings_here()), **said)]))
    except DataError as error:
        st.session_state[PROBLEM] = str(error)
        return
    for name in said:
        st.session_state[f"scene_{name}"] = ""


def listed(known: Deck) -> None:
    """The scenes in their order, each with what moves it up and what takes it out."""

    def without(number: int) -> None:
        present.keep(known[:number] + known[number + 1 :])

    def up(number: int) -> None:
        present.keep((*known[: number - 1], known[number], known[number - 1], *known[number + 1 :]))

    for number, scene in enumerate(known):
        with st.container(horizontal=True, vertical_alignment="center", key=f"scene_{number}"):
            st.markdown(f"{number + 1}. **{layout.plain(scene.heading)}**", width="stretch")
            which: Any = {"args": (number,), "type": "tertiary"}
            words = f"Move scene {number + 1} up"
            st.button(words, key=f"scene_up_{number}", on_click=up, disabled=not number, **which)
            st.button(f"Remove scene {number + 1}", key=f"scene_out_{number}", on_click=without, **which)


def save(known: Deck, path: str) -> None:
    """Present the deck, or take it along."""
    with st.container(horizontal=True):
        look: Any = {"icon": ":material/slideshow:", "type": "primary"}
        if st.button("Present", key="deck_present", on_click=present.begin, **look):
            st.rerun()
        exports.download(File("Save as a file", "deck.json", "application/json", lambda: deck_json(known)), "deck_json")
        if slides := present.saved():
            file = File("Save as a page (HTML)", "deck.html", "text/html", lambda: deck_html(slides))
            exports.download(file, "deck_html")
        elif st.button("Make a page (HTML)", key="deck_make", on_click=present.save, help=MAKES):
            st.rerun()
    if len(text := deck_text(known)) > LONGEST_LINK:
        st.caption("This deck is too long for a link: save it as a file.")
        return
    link = address(PRESENTS | {state.DECK: text}, without=path)
    copied(link, "Link to this deck", "Copy link", "deck_link")
    qr_code(link)


def open_deck() -> None:
    """Where a deck that was saved is opened again; a file that is none gets a sentence."""
    words = "A deck (JSON) that was saved here. It replaces the scenes above."
    try:
        if found := exports.opened_here("deck", "Open a deck", "A saved deck", words, read_deck_json):
            present.keep(found)
    except DataError as error:
        st.session_state[PROBLEM] = str(error)
