"""A sweep on the screen while it runs: progress, time left, stop and continue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitInvalidLayoutContextError

from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.costs import cells_seconds
from dpgrams_core.progress import time_words
from dpgrams_core.settings import read_dask
from pages._ui import frame, visitors
from pages._ui.tradeoff_grids import is_slow
from pages._ui.tradeoff_runs import Job, jobs, load_shipped, memory, seconds_left, sweep_steps, visitor, workers

GOING = "_lab_going"  # whether this visitor lets sweeps run; Stop and Continue change it
AGREED = "_lab_agreed"  # the long sweep that this visitor has started
WATCHED = "_lab_watched"  # the job that this visitor waits for
PRICE = "_lab_price"  # of the sweep on the page: its key, and the seconds of computing that all of it takes
# Often while the first points come; then seldom, since drawing takes time from computing.
REFRESH_SECONDS, SLOW_REFRESH_SECONDS, MANY_CELLS = 0.7, 3.0, 300
FAST_SECONDS = 3.0
# What a sweep costs on one core: up to a minute it starts by itself, and more than 45 minutes are for the command line.
UNASKED_SECONDS, MOST_SECONDS = 60.0, 2_700.0
FIRST_POINTS_SECONDS = 0.5  # how long a page waits for something to draw
QUICK_RUNS, QUICK_N = 3_000, 20_000  # a sweep of at most these starts by itself

Known = dict[Cell, CellResult]


def known_results(cells: Sequence[Cell]) -> Known:
    """What is there of some cells: from the tables that come with the project, and from the runs of this server."""
    kept = memory()
    return {cell: kept.finished(cell) for cell in cells}


def scheduler_address() -> str | None:
    """The address of the cluster that the owner of this server gave it; no visitor, link or session has a say."""
    return read_dask().address


def executor_words() -> str:
    """Where the curves are computed; the address itself is nobody's business."""
    return "Curves run on this server's Dask cluster." if scheduler_address() else "Curves run on this server."


def live_sweep(cells: Sequence[Cell], draw: Callable[[Known], None]) -> None:
    """Draw what is known of the cells, and go on with the rest while the visitor wants it."""
    if "_lab_shipped" not in st.session_state or st.session_state["_lab_shipped"] != hash(tuple(cells)):
        load_shipped(cells)
        st.session_state["_lab_shipped"] = hash(tuple(cells))
    key = ("sweep", tuple(cells))
    leave_all_but(key)
    if st.session_state.get(PRICE, (None, 0.0))[0] != key:  # once for each sweep, not at every look
        st.session_state[PRICE] = (key, cells_seconds(cells))
    _ = workers().ready  # starts them, so that they are there when a sweep is wanted
    # The first look starts the job, so that the fragment knows whether to come back, and how soon.
    job = _wanted(cells, known_results(cells), key)
    if job is not None:
        _wait_for_points(cells)
    st.fragment(_area, run_every=_pause(cells, job))(cells, key, draw, _pause(cells, job))


def _wait_for_points(cells: Sequence[Cell]) -> None:
    """A moment, so that a new sweep is not first drawn empty."""
    end = time.monotonic() + FIRST_POINTS_SECONDS
    while time.monotonic() < end and not any(found.ended for found in known_results(cells).values()):
        time.sleep(0.02)


def _pause(cells: Sequence[Cell], job: Job | None) -> float | None:
    """After how many seconds to look again; None where nothing runs."""
    if job is None:
        return None
    young = time.monotonic() - job.started < FAST_SECONDS
    return REFRESH_SECONDS if young and len(cells) <= MANY_CELLS else SLOW_REFRESH_SECONDS


def leave_all_but(key: object) -> None:
    """A visitor waits for one job at a time: another sweep, or another part of the page, ends the last one."""
    before = st.session_state.get(WATCHED)
    if before is not None and before != key:
        jobs().leave(before, visitor())
        st.session_state[WATCHED] = None


def _wanted(cells: Sequence[Cell], known: Known, key: tuple[object, ...]) -> Job | None:
    """The job that makes what is missing, started or continued; None where nothing is to be done."""
    if all(found.complete for found in known.values()) or not _may_run(cells, known, key):
        return None
    shared = jobs()
    old = shared.look(key)
    if old is not None and old.error:
        return None
    st.session_state[WATCHED] = key
    steps = sweep_steps(cells, memory(), workers(), scheduler_address())
    before = {cell: found.ended for cell, found in known.items()}
    return shared.ask(key, visitor(), steps, before, visitors.Presence(visitors.this_session()))


def _may_run(cells: Sequence[Cell], known: Known, key: tuple[object, ...]) -> bool:
    if not st.session_state.get(GOING, True):
        return False
    todo, seconds = _todo(known), _seconds_to_go(known)
    if seconds > MOST_SECONDS:
        return False
    quick = todo <= QUICK_RUNS and max(cell.n for cell in cells) <= QUICK_N and not is_slow(cells[0].dataset)
    return (quick and seconds <= UNASKED_SECONDS) or st.session_state.get(AGREED) == key


def _todo(known: Known) -> int:
    """How many runs are to be made."""
    return sum(cell.runs - found.ended for cell, found in known.items())


def _seconds_to_go(known: Known) -> float:
    """What they cost: their share of the price of all."""
    return st.session_state[PRICE][1] * _todo(known) / sum(cell.runs for cell in known)


def _refuse(seconds: float, smaller: str) -> None:
    st.warning(
        f"This asks for about {time_words(seconds)} of computing on one core, and the page gives at most "
        f"{time_words(MOST_SECONDS)}: choose {smaller}. The command line has no such limit.",
        icon=":material/timer_off:",
    )


def _area(
    cells: Sequence[Cell], key: tuple[object, ...], draw: Callable[[Known], None], pause_before: float | None
) -> None:
    known = known_results(cells)
    job = _wanted(cells, known, key)
    _progress(cells, known, key, job)
    _drawn(lambda: draw(known))
    if pause_before != _pause(cells, job):
        st.rerun()  # so that the fragment comes back less often, or no longer


def _drawn(draw: Callable[[], None]) -> None:
    """Draw in a fragment, which writes the answer above the controls that stand outside of it.

    The place of the answer is made by a run of the whole page.  Where that was cut short by the next click, the
    fragment finds no place, and the page is run again.
    """
    try:
        draw()
    except StreamlitInvalidLayoutContextError:
        st.rerun()


def _progress(cells: Sequence[Cell], known: Known, key: tuple[object, ...], job: Job | None) -> None:
    ended, total = sum(found.ended for found in known.values()), sum(cell.runs for cell in cells)
    done = sum(found.complete for found in known.values())
    last = jobs().look(key)
    with st.container(horizontal=True, vertical_alignment="center", key="lab_progress"):
        if job is not None:
            left = seconds_left(cells, known, job.before, time.monotonic() - job.started)
            words = "" if left is None else f", about {time_words(left)} left"
            st.progress(ended / total, text=f"{done:,} of {len(cells):,} points, {ended:,} of {total:,} runs{words}")
            st.button("Stop", key="lab_stop", icon=":material/stop:", on_click=_stop, args=(key,))
        elif done < len(cells) and (seconds := _seconds_to_go(known)) > MOST_SECONDS:
            _refuse(seconds, "fewer methods, runs, budgets or sizes, or a smaller n")
        elif done < len(cells):
            st.progress(ended / total, text=f"{_rest_words(ended, total)} {_price_words(seconds)}")
            _start_button("Continue" if ended else "Start", key)
        else:
            st.caption(f"Complete: {len(cells):,} points, {total:,} runs. Repeating it takes no time.")
    if last is not None and last.error and done < len(cells):
        frame.problem(last.error)


def _rest_words(ended: int, total: int) -> str:
    if not ended:
        return f"{total:,} runs to make."
    if st.session_state.get(GOING, True):  # nobody stopped it: it is long, or something went wrong
        return f"{ended:,} of {total:,} runs are there. The rest waits for a click."
    return f"Stopped at {ended:,} of {total:,} runs. What is there is kept."


def _price_words(seconds: float) -> str:
    """What a press will cost."""
    return f"That is about {time_words(seconds)} of computing on one core."


def _start_button(label: str, key: tuple[object, ...]) -> None:
    st.button(label, key="lab_start", icon=":material/play_arrow:", on_click=_start, args=(key,), type="primary")


def _stop(key: tuple[object, ...]) -> None:
    st.session_state[GOING] = False
    jobs().leave(key, visitor())


def _start(key: tuple[object, ...]) -> None:
    st.session_state[GOING] = True
    st.session_state[AGREED] = key
    last = jobs().look(key)
    if last is not None and last.error:
        jobs().forget(key)


def live_result(
    key: tuple[object, ...],
    steps: Callable[[], Iterator[Any]],
    draw: Callable[[Any], None],
    finished: Callable[[Any], bool],
    *,
    words: Callable[[Any], str],
    seconds: float,
    by_itself: bool = True,
) -> None:
    """As ``live_sweep`` for work whose newest result says it all; ``draw`` gets None before there is one.

    ``seconds`` is what it costs on one core, at most.
    """
    leave_all_but(key)
    by_itself = by_itself and seconds <= UNASKED_SECONDS

    def wanted() -> Job | None:
        kept, old = jobs().kept.get(key), jobs().look(key)
        if (kept is not None and finished(kept)) or (old is not None and old.error):
            return None
        if not st.session_state.get(GOING, True) or not (by_itself or st.session_state.get(AGREED) == key):
            return None
        if seconds > MOST_SECONDS:
            return None
        st.session_state[WATCHED] = key
        return shared.ask(key, visitor(), steps, present=visitors.Presence(visitors.this_session()))

    def area(was_running: bool) -> None:
        job, kept, last = wanted(), shared.kept.get(key), shared.look(key)
        with st.container(horizontal=True, vertical_alignment="center", key="lab_progress"):
            if job is not None:
                st.caption("Starting…" if kept is None else words(kept), width="stretch")
                st.button("Stop", key="lab_stop", icon=":material/stop:", on_click=_stop, args=(key,))
            elif seconds > MOST_SECONDS and (kept is None or not finished(kept)):
                _refuse(seconds, "fewer runs, a smaller n or share of runs, or another method")
            elif kept is None or not finished(kept):
                so_far = "Nothing computed yet." if kept is None else f"Stopped. {words(kept)}"
                st.caption(f"{so_far} At most about {time_words(seconds)} of computing on one core.", width="stretch")
                _start_button("Start" if kept is None else "Continue", key)
            else:
                st.caption(f"Complete. {words(kept)}", width="stretch")
        if last is not None and last.error:
            frame.problem(last.error)
        _drawn(lambda: draw(kept))
        if was_running != (job is not None):
            st.rerun()

    shared = jobs()
    running = wanted() is not None
    st.fragment(area, run_every=REFRESH_SECONDS if running else None)(running)
