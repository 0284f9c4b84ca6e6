"""Charts and live curves on the screen, each with its sentence and its table."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import plotly.graph_objects as go
import streamlit as st
from plotly.basedatatypes import BaseFigure

from dpgrams_core.figures.style import Chart
from dpgrams_core.model.format import time_words
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.words import meanings_in
from dpgrams_core.studies.coverage import shipped_coverage, summary
from pages._ui import exports, jobs, layout, state
from pages._ui.jobs import Job, Work
from pages._ui.server import visitors

UNASKED_SECONDS = 10.0  # of computing that a page does by itself; above that it waits for a press
MOST_SECONDS = 600.0  # above this not even a press starts it: one visitor must not keep the server for hours
MOST_PRESSED = 50
WAITS = "It is drawn when you scroll here."
PRESENTER_FONT = 16  # pixels: the charts are not scaled with the page's text


def plot(figure: BaseFigure, key: str, words: str, place: Any = st) -> None:
    """The picture of a chart, with words for those who cannot see it; larger letters while presenting."""
    name = f"dp-grams-{key.removesuffix('_chart')}"
    config = {"displaylogo": False, "toImageButtonOptions": {"scale": 2, "filename": name}}
    if not layout.presenting():
        place.plotly_chart(figure, key=key, config=config, alt=words)
        return
    figure = go.Figure(figure.to_dict()).update_layout(font_size=PRESENTER_FONT, legend_font_size=PRESENTER_FONT)
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(tickfont_size=PRESENTER_FONT, title_font_size=PRESENTER_FONT)
    state.on_stage(key, figure)
    # Its place has the height (assets/presenter.css), whatever that of the window is.
    place.plotly_chart(figure.update_layout(height=None), key=key, config=config, alt=words, height="stretch")


def chart(picture: Chart, key: str, title: str = "") -> None:
    """A chart, its sentence, and its table and files folded under it."""
    if title:
        st.subheader(title, help=meanings_in(title))
    plot(picture.figure, f"{key}_chart", picture.sentence)
    st.caption(picture.sentence)
    table(picture, key, title)


def table(picture: Chart, key: str, title: str = "", *, canvas: bool = False) -> None:
    """The numbers of a chart, and its files; one that is on a ``canvas`` has its sentence here too.

    They are sent once they are unfolded, by a part of the page of their own: a third of a redraw, which few look at.
    """

    def alone() -> None:
        folded = st.expander("Table and downloads", key=f"{key}_table", on_change="rerun")
        if not unfolded(folded):
            return
        with folded:
            if canvas:
                st.caption(picture.sentence)
            st.dataframe(picture.table, hide_index=True, width="stretch")
            exports.chart_files(picture, key, title, canvas=canvas)

    st.fragment(alone)()


def unfolded(folded: Any) -> bool:
    """Whether what can be folded away is open now."""
    return bool(folded.open)


def begin(settings: Hashable, seconds: float, smaller: str) -> None:
    """What stands before a page's first picture: values of the link that cannot be used, and a press if it is long."""
    state.tell_refused()
    if not may_run("first", settings, seconds, smaller):
        layout.answer("Nothing has been computed for these settings yet.")
        visitors.end_page()


def agreed(key: str, why: str, label: str, button: str) -> bool:
    """Whether something slow beside the rest was started in this session."""
    if not st.session_state.get(key):
        st.caption(why)
        if not st.button(label, key=button, icon=":material/play_arrow:"):
            return False
        st.session_state[key] = True
    return True


def curve_sizes(n: int, offered: set[int], first: list[int], key: str) -> list[int]:
    """The heading of a page's curve, and the sizes that it is drawn for, at least n."""
    st.subheader("What does each ε cost?")
    how: dict[str, Any] = {"default": first, "key": key, "format_func": "{:,}".format}
    return st.multiselect("Sample sizes on the curve", sorted(offered), **how) or [n]


MORE = {"curve": "Every ε", "runs": "Twenty runs"}  # the tabs under the picture of a page
RUNS = 20


def more(keys: list[str], draw: Mapping[str, Callable[[], Any]], titles: dict[str, str] = MORE) -> None:
    """The curve of a page and its repeated runs under tabs, as a part of the page."""
    part("more", keys, lambda: tabs("more", titles, draw))


def repeated(settings: Hashable, seconds: float, smaller: str, by_itself: bool) -> bool:
    """The heading of a page's repeated runs of private methods, and whether to draw them."""
    st.subheader("Was that luck? Twenty private runs on the same data")
    return wanted("runs", "Draw the runs", settings, RUNS * seconds, smaller, by_itself)


def wanted(key: str, label: str, settings: Hashable, seconds: float, smaller: str, by_itself: bool = True) -> bool:
    """Whether to draw something long: a switch, a look at it, and a press where it costs much (``may_run``)."""
    if not st.toggle(label, key=key, persist_state="session"):
        st.caption("Off. Switching it off stops it; what is already computed is kept.")
        return False
    return scrolled_to(key, settings) and may_run(key, settings, seconds, smaller, by_itself)


def scrolled_to(key: str, settings: Hashable) -> bool:
    """Whether this place of the page was scrolled to since its settings are these; until then it says that it waits."""
    place = f"{key}_seen"
    visible = bool(st.session_state.get(place, {}).get("visible"))
    _watcher(data={"visible": visible}, key=place, on_visible_change=lambda: None, height=1)
    seen: dict[str, Hashable] = st.session_state.setdefault("_scrolled_to", {})
    if visible:
        seen[key] = settings
    if seen.get(key) == settings:
        return True
    st.caption(WAITS)
    return False


def once_seen(key: str, settings: Hashable, draw: Callable[[], Any]) -> None:
    """Charts that are drawn once this place of the page is scrolled to; it keeps a screen's room until the first is
    there (assets/style.css), or what stands below would come up and go down again."""
    with st.container(key=f"{key}_later"):
        if scrolled_to(key, settings):
            draw()


def part(name: str, keys: list[str], draw: Callable[[], None]) -> None:
    """A part of the page with its controls: when one of these is moved, it is drawn anew and nothing else.

    ``keys`` are those of all controls of the page that stand in its link.
    """

    def alone() -> None:
        with jobs.part(name):
            state.write_url(keys)
            draw()

    st.fragment(alone)()


def tabs(key: str, titles: dict[str, str], draw: Mapping[str, Callable[[], Any]]) -> None:
    """Parts under tabs, of which only the open one is computed; a link holds which one that is."""
    names = {title: name for name, title in titles.items()}
    st.session_state[f"{key}_tabs"] = titles[st.session_state[key]]

    def opened() -> None:
        st.session_state[key] = names[st.session_state[f"{key}_tabs"]]

    for tab, name in zip(st.tabs(list(names), key=f"{key}_tabs", on_change=opened), titles, strict=True):
        if tab.open:
            with tab:
                draw[name]()


def may_run(key: str, settings: Hashable, seconds: float, smaller: str, by_itself: bool = True) -> bool:
    """Whether something may be computed: where it is cheap ``by_itself``, else after a press, and never beyond a limit.

    A press is for these settings, all that the work depends on, and this session; no link holds it.  ``smaller`` names
    the controls that make it cheaper.
    """
    unasked = UNASKED_SECONDS if by_itself else 0.0
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


def filling(work: Work, picture: Callable[[Any], Chart], key: str, words: str = "{} of {} points") -> None:
    """A chart that fills in while its work goes on; its table comes with the last piece."""

    def show(found: Any, job: Job | None) -> None:
        drawn = picture(found)
        plot(drawn.figure, f"{key}_chart", drawn.sentence)
        st.caption(drawn.sentence)
        done, total = work.count(found)
        if job is not None:
            st.progress(work.done_share(found), text=words.format(done, total))
            return
        if work.error:
            layout.problem(work.error)
            st.button("Try again", key=f"{key}_again", on_click=jobs.jobs().forget, args=(work.key,))
        if len(drawn.table):
            table(drawn, key)

    jobs.live(work, show)


_watcher, _follower, _riser = (
    st.components.v2.component(f"dpgrams_{name}", js=(ASSETS / f"components/{name}.js").read_text(encoding="utf-8"))
    for name in ("when_seen", "follow_pointer", "to_top")
)


def to_top(key: str) -> None:
    """Show the top of the page when this key is on it for the first time."""
    _riser(key=key, height=1)


def follow_pointer(source: str, settings: Hashable, squeezed: Callable[[], bytes]) -> None:
    """While the pointer is over one chart, show in another the frame at its x (cache.py, ``slices_as_sent``).

    The frames are sent once the pointer is there.
    """
    wanted = f"{zlib.crc32(repr(settings).encode()):08x}"

    def alone() -> None:
        asked = str(st.session_state.get("follow_pointer", {}).get("wanted", "")).startswith(wanted)
        data = squeezed() if asked else {"source": source, "wanted": wanted}
        _follower(data=data, key="follow_pointer", on_wanted_change=lambda: None, height=1)

    st.fragment(alone)()


def regions_kept(mark: str = "") -> None:
    """How often regions of modes and bands of branches held what they promise, over shapes, n and ε."""
    with st.popover("Do regions and bands keep their promise?", key=f"coverage{mark}"):
        table = shipped_coverage()
        st.markdown(summary(table).replace("\n", "\n\n"))
        st.caption(
            f"{table['runs'].min():,} to {table['runs'].max():,} runs a cell (column runs) with the number of modes "
            "known, 95% intervals. "
            "Do not rely on regions where not all modes are found in 95% of the runs (not trusted). For lopsided modes "
            "(skewed) regions of the population are wider than they need to be where that is plain to see in the "
            "release, and may be too small where it only begins to show: how far smoothing moved a mode depends on "
            "what it took away, and no release shows that. Rows with rounds are of DP-GRAMS tight, whose smoothing "
            "nothing takes back: its regions of the population are wider than they need to be. False modes: share of "
            "runs with an unknown number of modes that report one. Made by: dpgrams reproduce coverage."
        )
        st.dataframe(table, hide_index=True)
