"""The frame of every page: question, answer, problems and the guarantee card."""

from __future__ import annotations

import html
from contextlib import suppress
from pathlib import Path

import streamlit as st
from streamlit.errors import StreamlitAPIException

from dpgrams_core.figures import short
from dpgrams_core.guarantees import NEIGHBOURS, Guarantee, bare_status
from dpgrams_core.privacy.accounting import price
from dpgrams_core.results import Release
from pages._ui import state

ASSETS = Path(__file__).parents[2] / "assets"
STATUS_COLOURS = {"proven": "green", "as published": "blue", "nominal": "orange", "none": "red"}
CONDITIONAL = "blue"  # green is for a proof without an if
_MEANINGS = {"proven": "", "as published": ": proof has a gap", "nominal": ": not a proof"}


def open_page(question: str, script: str) -> None:
    """Style and the question; every page calls it first, with its own path as app.py names it.

    On a server that nobody has visited yet, Streamlit serves a deep link from the pages folder without app.py and
    its navigation.  The page then sends the visitor there, and app.py sends them back with the link's settings.
    """
    if st.runtime.exists() and "_page" not in st.session_state:
        st.session_state["_wanted"] = (script, dict(st.query_params))
        with suppress(StreamlitAPIException):  # a page run on its own, as in a test, has no app.py beside it
            st.switch_page("app.py")
    st.html(ASSETS / "style.css")
    if presenting():
        st.html(ASSETS / "presenter.css")
    st.title(question)


def presenter_switch() -> None:
    """The switch for a projector, at the foot of the sidebar of every page; a link can hold it."""
    state.start(state.PRESENTER, False, state.one_of_these([False, True]))
    st.sidebar.toggle(
        "Presenter mode",
        key=state.PRESENTER,
        help="For a projector: larger letters, no files and tables, and never the curator's view of your own data.",
    )


def presenting() -> bool:
    """Whether the presenter mode is on."""
    return bool(st.session_state.get(state.PRESENTER))


def problem(error: Exception | str) -> None:
    """A setting that cannot be used, in a sentence."""
    st.error(str(error), icon=":material/error:")


def answer(text: str) -> str:
    """The answer to the page's question, in one large sentence (HTML made by us, values escaped); it comes back."""
    st.html(f'<p class="answer" data-testid="answer">{text}</p>')
    return text


def status_words(words: str) -> str:
    """A status with its condition (``Guarantee.words``) and what it means.

    >>> status_words("proven, given the representation"), status_words("nominal"), status_words("none")
    ('proven, given the representation', 'nominal: not a proof', 'no privacy')
    """
    return "no privacy" if words == "none" else words + _MEANINGS[bare_status(words)]


def status_colour(words: str) -> str:
    """The colour of a status with its condition."""
    status = bare_status(words)
    return STATUS_COLOURS[status] if status in (words, "as published") else CONDITIONAL


def badge(guarantee: Guarantee) -> None:
    """The status of a guarantee with its condition, in words and colour."""
    st.badge(status_words(guarantee.words), color=status_colour(guarantee.words))


def status_badge(release: Release) -> None:
    """The same of a result."""
    badge(release.guarantee)


def method_heading(title: str, release: Release) -> None:
    """The name of a method with the status of its guarantee beside it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(title, width="content")
        status_badge(release)


def guarantee_card(release: Release, key: str = "guarantee_card") -> None:
    """epsilon, delta, its split, neighbours, status, why, and the noise beside what it hides.

    Two cards on one page need two keys.
    """
    guarantee = release.guarantee
    delta = f"{guarantee.delta:.0e}" if guarantee.delta else "0"
    with st.container(border=True, key=key):
        st.markdown("**Is the guarantee real?**")
        status_badge(release)
        st.markdown(
            f"ε = **{short(guarantee.epsilon)}**, δ = **{delta}**, neighbours: {guarantee.neighbours} "
            f"({NEIGHBOURS[guarantee.neighbours]})"
        )
        stages = price(release.events, guarantee.delta).stages
        if stages:
            st.markdown("ε is spent on " + " + ".join(f"{name} {short(value)}" for name, value in stages) + ".")
        st.markdown(guarantee.statement)
        for caveat in guarantee.caveats:
            st.caption(caveat)
        _noise_beside_score(release)
        st.caption(f"Simulation with seed {release.seed}: a real release has no seed.")


def _noise_beside_score(release: Release) -> None:
    size = release.diagnostics.score_size
    noise = release.noise_scale
    if size is None or noise is None:
        return
    largest = max(size, noise, 1e-300)
    on, hidden = ("each score coordinate", "score") if release.surface is None else ("the surface", "height")
    if release.curve is not None and release.surface is None:
        on, hidden = "each step in y", "step"
    st.html(
        f'<div class="bar-label">noise on {on}: <b>{html.escape(short(noise))}</b></div>'
        f'<div class="bar noise" style="width:{100 * noise / largest:.1f}%"></div>'
        f'<div class="bar-label">size of the {hidden} it hides: <b>{html.escape(short(size))}</b></div>'
        f'<div class="bar score" style="width:{100 * size / largest:.1f}%"></div>'
    )
    ratio = short(noise / size) if size > 0 else "∞"
    if noise > size and release.curve is not None and getattr(release.spec, "calibration", "") == "tight":
        # This figure is the noise where the density is at its floor; it falls in proportion where there are records.
        st.info(f"At the density floor the noise is {ratio} times the {hidden}; among records it is smaller.")
    elif noise > size:
        st.warning(f"Noise swamps the signal: it is {ratio} times the {hidden}. What you see is mostly noise.")
    elif noise > size / 3:
        st.info(f"The noise is {short(100 * noise / size)}% of the {hidden}: rough, but usable.")
    outside = release.diagnostics.outside_box
    if outside:
        st.caption(f"{outside:,} records lie outside the public box; they count less, and the guarantee still holds.")
    share = release.diagnostics.clipped_share
    if share is not None:
        where = ", a bandwidth away from each" if hidden == "step" else ""
        st.caption(
            f"{hidden.capitalize()} size: the median over records{where}. Clipped: {100 * share:.0f}% of the "
            "contributions. Both are read off the simulated records and are not private."
        )
