"""The ε handle: a picture that shows, while it is dragged, what the engine found at every ε."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import streamlit as st

from dpgrams_core import Dataset, Release
from dpgrams_core.figures.frames import Frame, coarse_first, epsilon_stops, frame, frame_of, message, pack
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.run import Run
from dpgrams_core.studies.costs import cell_seconds
from pages._ui import charts, exports, jobs, state
from pages._ui.controls import title_of
from pages._ui.server import visitors

MOST_KEPT = 64  # messages as they are sent, of at most 400 kB each
DRAWS = 12  # of the noise, when they are asked for
ALONE_SECONDS = 0.03  # that a new picture is ahead of the page: a browser draws all that has come before it shows any
HEAD_START_SECONDS = 0.25  # for what is drawn already: a thread that computes holds up the one that sends
ASKED = "_draws_asked"  # the run that this visitor wants to see with other noise

_html, _css, _js, _letter_js = (
    (ASSETS / f"components/{name}").read_text(encoding="utf-8")
    for name in ("handle.html", "handle.css", "handle.js", "letter.js")
)
_handle = st.components.v2.component("dpgrams_handle", html=_html, css=_css, js=_js)
_letter = st.components.v2.component("dpgrams_letter", js=_letter_js)


def show(
    run: Run,
    data: Dataset,
    release: Release,
    scene: dict[str, Any],
    key: str,
    smaller: str,
    *,
    head: Callable[[], Any] | None = None,
    sets: str = "epsilon",
    held: bool = False,
) -> None:
    """The picture of a run with its handle; letting go sets ε for the page and its link, under the key ``sets``.

    ``head`` draws its title, beside which it can be saved.

    A picture that is ``held`` has no handle: there is nothing to try before a prediction is made.

    The frame of the release that is there comes first, the others while the page is looked at: shared by all visitors,
    since they depend on public settings only.
    """
    if head is not None:
        with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_head"):
            head()
            exports.canvas_file(key, f"dp-grams-{run.dataset}-{run.method}")
    stops = (run.epsilon,) if held else epsilon_stops(run.method)
    title, data = title_of(run), data.for_many_runs()

    def set_epsilon() -> None:
        # A visitor's browser may send anything.
        if (epsilon := st.session_state[key].get("epsilon")) in stops:
            st.session_state[sets] = epsilon

    def ask_draws() -> None:
        st.session_state[ASKED] = run

    base = replace(run, epsilon=0.0)
    told = {"name": key, "epsilon": run.epsilon, "stops": stops, "run": _mark(run), "frames": _mark(base)}
    # The picture is the same for all settings, so that it is sent once; letters tell it what to show.
    with st.container(key=f"{key}_{'square' if scene['equal'] else 'wide'}"):  # has its height before it is drawn
        _handle(data={"name": key}, key=key, on_epsilon_change=set_epsilon, on_draws_change=ask_draws)
    scene = scene | {"run": _mark(base)}

    def at(epsilon: float) -> Frame:
        return frame(data, replace(run, epsilon=epsilon), title)

    with st.container(key=f"{key}_letters", gap=None):
        _letter(data=told, key=f"{key}_state", height=1)
        work = jobs.one_by_one(("frames", base), coarse_first(stops, run.epsilon), at)
        # That of the release that is there needs no other run.
        known = work.found().get(run.epsilon)
        here = known or frame_of(data, release, run, title)
        state.on_stage(key, lambda found=work.found: (told, message(key, scene, _with([here], found()))))
        if charts.may_run(key, base, len(stops) * cell_seconds(run), smaller):
            _filling(work, [here], scene, key, base)
        else:
            _send([here], scene, key, base)
        if known is None:
            time.sleep(ALONE_SECONDS)
        if st.session_state.get(ASKED) == run:
            seeds = range(run.seed + 1, run.seed + 1 + DRAWS)
            work = jobs.one_by_one(("draws", run), seeds, lambda seed: frame(data, replace(run, seed=seed), title))
            _filling(work, [], scene | {"run": _mark(run), "expected": DRAWS}, f"{key}_draws", run)


def _mark(run: Run) -> str:
    """What tells the frames of one run from those of another."""
    return f"{zlib.crc32(repr(run).encode()):08x}"


def _filling(work: jobs.Work, first: list[Frame], scene: dict[str, Any], key: str, run: Run) -> None:
    def draw(found: dict[Any, Frame], _job: jobs.Job | None) -> None:
        _send(_with(first, found), scene, key, run)
        if work.error:
            st.caption(f"Not all results could be made. {work.error}")

    def steps() -> Iterator[Any]:
        time.sleep(HEAD_START_SECONDS)
        yield from work.steps()

    # What is there is drawn at once: nobody waits for the other frames.
    jobs.live(replace(work, steps=steps, begun=lambda _found: True), draw)


def _with(first: list[Frame], found: dict[Any, Frame]) -> list[Frame]:
    """Some frames, and the others that were found."""
    known = {one.epsilon for one in first}
    return [*first, *(one for one in found.values() if one.epsilon not in known)]


def _send(frames: list[Frame], scene: dict[str, Any], key: str, run: Run) -> None:
    known = tuple((one.epsilon, one.seed) for one in frames)
    _letter(data=_as_sent(key, run, zlib.crc32(pack(scene)), known, scene, frames), key=f"{key}_frames", height=1)


@st.cache_resource(max_entries=MOST_KEPT, show_spinner=False)
def _as_sent(
    key: str,
    run: Run,  # noqa: ARG001  with the next two all that scene and frames depend on
    look: int,  # noqa: ARG001
    known: tuple[tuple[float, int], ...],  # noqa: ARG001
    _scene: dict[str, Any],
    _frames: list[Frame],
) -> bytes:
    """The message of some frames, made once for all visitors: public settings and simulated records only."""
    return message(key, _scene, _frames)


visitors.WHEN_EMPTY.append(_as_sent.clear)
