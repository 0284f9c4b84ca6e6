"""The frame of every page: question, answer, problems and the guarantee card."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.format import short, tiny, whole_percent
from dpgrams_core.model.guarantee import NEIGHBOURS, Guarantee, status_colour, status_words
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.results import Release
from dpgrams_core.model.words import meanings_in
from dpgrams_core.privacy.accounting import price
from pages._ui import jobs, state
from pages._ui.server import visitors

Settings = TypeVar("Settings")


def open_page(question: str, script: str) -> None:
    """The question; every page calls it first, with its own path as app.py names it.

    On a server that nobody has visited yet, Streamlit serves a deep link from the pages folder without app.py and
    its navigation.  The page then sends the visitor there, and app.py sends them back with the link's settings.
    """
    jobs.page_begins()
    if st.runtime.exists() and "_page" not in st.session_state:
        st.session_state["_wanted"] = (script, dict(st.query_params))
        with suppress(StreamlitAPIException):  # a page run on its own, as in a test, has no app.py beside it
            st.switch_page("app.py")
    if presenting():
        st.html(f"<style>{(ASSETS / 'presenter.css').read_text(encoding='utf-8')}</style>")
    st.title(question, help=meanings_in(question))  # the first place of a word on a page explains it


def part(page: str, **settings: str) -> Callable[[], None]:
    """What the navigation runs for a part of a page: it opens that page with these settings, whose last is its name."""

    def opened() -> None:
        st.session_state.update(settings)
        st.switch_page(f"pages/{page}.py")

    opened.__name__ = [*settings.values()][-1]
    return opened


def place_controls() -> None:
    """The place of a page's controls in the sidebar: what every page has there (exports/share.py) stands below it."""
    st.session_state["_controls"] = st.sidebar.container()


def sidebar() -> DeltaGenerator:
    """Where a page has its controls; a page that runs on its own, as in a test, has no app.py that made a place."""
    return st.session_state.get("_controls", st.sidebar)


def presenter_switch() -> None:
    """The switch for a projector, at the foot of the sidebar of every page; a link can hold it."""
    state.start(state.PRESENTER, False, state.one_of_these([False, True]))
    words = (
        "For a projector: one line and one picture with its ε handle, and never the curator's view of your own data."
    )
    st.sidebar.toggle("Presenter mode", key=state.PRESENTER, help=words)


def presented() -> None:
    """While presenting the page ends here: its line and its picture are on the screen, and nothing else is drawn."""
    if presenting():
        visitors.end_page()


def under_the_picture() -> DeltaGenerator | None:
    """Where a projector has the handle of its picture (assets/presenter.css); None while the page is not presented."""
    return st.container(key="presented_handle") if presenting() else None


def presenting() -> bool:
    """Whether the presenter mode is on."""
    return bool(st.session_state.get(state.PRESENTER))


def problem(error: Exception | str) -> None:
    """A setting that cannot be used, in a sentence."""
    st.error(str(error), icon=":material/error:")


def works(attempt: Callable[[], object], title: str = "") -> bool:
    """Whether something can run; else a sentence says why not, after the title of what it is about."""
    try:
        attempt()
    except (SpecError, DataError) as error:
        problem(f"{title}: {error}" if title else error)
        return False
    return True


def good_or_last(
    page: str, wished: Settings, works: bool, default: Settings, words: str = "Below is the last picture that worked."
) -> Settings:
    """The settings to show: the wished ones, or else the last that worked, so that a bad value never empties a page."""
    key = f"_{page}_last_good"
    if works:
        st.session_state[key] = wished
        return wished
    st.caption(words)
    return st.session_state.get(key, default)


def plain(text: str) -> str:
    """Text that may hold a name or a value of somebody's file, so that Markdown shows it as it is.

    >>> plain("a_b [x] :red")
    'a\\\\_b \\\\[x\\\\] \\\\:red'
    """
    return re.sub(r"([\\`*_\[\]$<>~|]|:(?=\w))", r"\\\1", text)


def answer(text: str, line: str = "") -> str:
    """The answer to the page's question, in one large sentence (HTML made by us, values escaped); it comes back.

    On a projector there is room for one line: ``line``, or else the first sentence.
    """
    shown = (line or first_sentence(text)) if presenting() else text
    state.on_stage(state.LINE, shown)
    # A heading between that of the page and those of its parts, for those who hear the page.
    st.html(f'<h2 class="heard">In short</h2><p class="answer" data-testid="answer">{shown}</p>')
    return text


def first_sentence(text: str) -> str:
    """The first sentence of some HTML; a point within a number ends none.

    >>> first_sentence("It is <b>0.5</b>. That is less.")
    'It is <b>0.5</b>.'
    """
    return re.split(r"(?<=[.!?])\s+(?=\S)|<br>", text, maxsplit=1)[0]


def numbers(*found: tuple[str, Any, str | None]) -> None:
    """Numbers side by side, each with its label and its help."""
    with st.container(key="numbers"):
        for column, (label, value, words) in zip(st.columns(len(found)), found, strict=True):
            column.metric(label, value, help=words)


def badge(guarantee: Guarantee) -> None:
    """The status of a guarantee with its condition, in words and colour."""
    st.badge(status_words(guarantee.words), color=status_colour(guarantee.words))


def method_heading(title: str, release: Release) -> None:
    """The name of a method with the status of its guarantee beside it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(title, width="content", help=meanings_in(title))
        badge(release.guarantee)


def bars(*found: tuple[str, str, float, str]) -> None:
    """Bars, each with its label, its value in words, its length from 0 to 1 and its kind."""
    st.html(
        "".join(
            f'<div class="bar-label">{label}: <b>{html.escape(words)}</b></div>'
            f'<div class="bar {kind}" style="width:{100 * length:.1f}%"></div>'
            for label, words, length, kind in found
        )
    )


def guarantee_card(release: Release, key: str = "guarantee_card") -> None:
    """epsilon, delta, its split, neighbours, status, why, and the noise beside what it hides."""
    guarantee = release.guarantee
    with st.container(border=True, key=key):
        st.markdown("**Is the guarantee real?**")
        badge(release.guarantee)
        st.markdown(
            f"ε = **{short(guarantee.epsilon)}**, δ = **{tiny(guarantee.delta)}**, neighbours: {guarantee.neighbours} "
            f"({NEIGHBOURS[guarantee.neighbours]})"
        )
        if stages := price(release.events, guarantee.delta).stages:
            st.markdown("ε is spent on " + " + ".join(f"{name} {short(value)}" for name, value in stages) + ".")
        st.markdown(guarantee.statement)
        for caveat in guarantee.caveats:
            st.caption(caveat)
        _noise_beside_score(release)
        st.caption(f"Simulation with seed {release.seed}: a real release has no seed.")


def _noise_beside_score(release: Release) -> None:
    size, noise = release.diagnostics.score_size, release.noise_scale
    if size is None or noise is None:
        return
    largest = max(size, noise, 1e-300)
    on, hidden = ("each score coordinate", "score") if release.surface is None else ("the surface", "height")
    if release.curve is not None and release.surface is None:
        on, hidden = "each step in y", "step"
    bars(
        (f"noise on {on}", short(noise), noise / largest, "noise"),
        (f"size of the {hidden} it hides", short(size), size / largest, "score"),
    )
    ratio = short(noise / size) if size > 0 else "∞"
    if noise > size and release.curve is not None and getattr(release.spec, "calibration", "") == "tight":
        # This figure is the noise where the density is at its floor; it falls in proportion where there are records.
        st.info(f"At the density floor the noise is {ratio} times the {hidden}; among records it is smaller.")
    elif noise > size:
        st.warning(f"Noise swamps the signal: it is {ratio} times the {hidden}. What you see is mostly noise.")
    elif noise > size / 3:
        st.info(f"The noise is {whole_percent(noise / size)} of the {hidden}: rough, but usable.")
    if outside := release.diagnostics.outside_box:
        st.caption(f"{outside:,} records lie outside the public box; they count less, and the guarantee still holds.")
    if (share := release.diagnostics.clipped_share) is not None:
        where = ", a bandwidth away from each" if hidden == "step" else ""
        st.caption(
            f"{hidden.capitalize()} size: the median over records{where}. Clipped: {whole_percent(share)} of the "
            "contributions. Both are read off the simulated records and are not private."
        )
