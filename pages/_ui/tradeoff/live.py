"""Sweeps and searches of the Tradeoff page while they run: progress, time left, their price, stop and continue."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st

from dpgrams_core.datasets.registry import dataset_info, same_records
from dpgrams_core.model.environment import read_dask
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.format import time_words
from dpgrams_core.model.run import Run, same_but_runs
from dpgrams_core.studies.costs import cells_seconds
from dpgrams_core.studies.paper.experiments import EXPERIMENTS
from dpgrams_core.sweeps.cell import CellResult
from pages._ui import jobs, layout
from pages._ui.jobs import Job, Known, Work, seconds_left

GOING = "_lab_going"  # whether this visitor lets sweeps run; Stop and Continue change it
AGREED = "_lab_agreed"  # the long sweep that this visitor has started
PRICE = "_lab_price"  # of the sweep on the page: its key, and the seconds of computing that all of it takes
FAST_SECONDS, MANY_CELLS = 3.0, 300  # how long a sweep is drawn often; one of more cells never is
# What a sweep costs on one core: up to a minute it starts by itself, and more than 45 minutes are for the command line.
UNASKED_SECONDS, MOST_SECONDS = 60.0, 2_700.0
QUICK_RUNS, QUICK_N = 3_000, 20_000  # a sweep of at most these starts by itself


def scheduler_address() -> str | None:
    """The address of the cluster that the owner of this server gave it; no visitor, link or session has a say."""
    return read_dask().address


def live_sweep(cells: Sequence[Run], draw: Callable[[Known], None]) -> None:
    """Draw what is known of the cells, and go on with the rest while the visitor wants it."""
    work = jobs.sweep(cells, scheduler_address(), FAST_SECONDS if len(cells) <= MANY_CELLS else 0.0, interleave=True)
    if st.session_state.get(PRICE, (None, 0.0))[0] != work.key:  # once for each sweep, not at every look
        for result in shipped_results_of([cell for cell in cells if not jobs.memory().finished(cell).complete]):
            jobs.memory().add(result)  # what comes with the project nobody need run again
        st.session_state[PRICE] = (work.key, cells_seconds(cells))
    _ = jobs.workers().ready  # starts them, so that they are there when a sweep is wanted

    total = sum(cell.runs for cell in cells)

    def to_go(known: Known) -> tuple[int, float]:
        """How many runs are missing, and what they cost: their share of the price of all."""
        todo = total - sum(found.ended for found in known.values())
        return todo, float(st.session_state[PRICE][1]) * todo / total

    def show(known: Known, job: Job | None) -> None:
        todo, seconds = to_go(known)
        ended, done = total - todo, work.count(known)[0]
        words = f"{done:,} of {len(cells):,} points, {ended:,} of {total:,} runs"
        if job is not None:
            before = {cell: found.ended for cell, found in (job.before or {}).items()}
            left = seconds_left(cells, known, before, time.monotonic() - job.started)
            words += "" if left is None else f", about {time_words(left)} left"
        waiting = f"Stopped at {ended:,} of {total:,} runs. What is there is kept."
        if not ended:
            waiting = f"{total:,} runs to make."
        elif st.session_state.get(GOING, True):  # nobody stopped it: it is long, or something went wrong
            waiting = f"{ended:,} of {total:,} runs are there. The rest waits for a click."
        _control(
            work,
            running=words if job is not None else "",
            waiting="" if done == len(cells) else waiting,
            complete=f"Complete: {len(cells):,} points, {total:,} runs. Repeating it takes no time.",
            seconds=seconds,
            smaller="fewer methods, runs, budgets or sizes, or a smaller n",
            begun=bool(ended),
            share=work.done_share(known),
        )
        draw(known)

    def may_run(known: Known) -> bool:
        todo, seconds = to_go(known)
        small = todo <= QUICK_RUNS and max(cell.n for cell in cells) <= QUICK_N
        return _agreed(work, seconds, small and not dataset_info(cells[0].dataset).slow)

    jobs.live(work, show, may_run)


def live_result(
    work: Work, draw: Callable[[Any], None], *, words: Callable[[Any], str], seconds: float, by_itself: bool = True
) -> None:
    """As ``live_sweep`` for work whose newest result says it all; ``draw`` gets None before there is one.

    ``seconds`` is what it costs on one core, at most.
    """

    def show(found: Any, job: Job | None) -> None:
        so_far = "Nothing computed yet." if found is None else f"Stopped. {words(found)}"
        _control(
            work,
            running="" if job is None else "Starting…" if found is None else words(found),
            waiting="" if work.count(found)[0] else so_far,
            complete="" if found is None else f"Complete. {words(found)}",
            seconds=seconds,
            smaller="fewer runs, a smaller n or share of runs, or another method",
            begun=found is not None,
        )
        draw(found)

    jobs.live(work, show, lambda _: _agreed(work, seconds, by_itself))


def _agreed(work: Work, seconds: float, by_itself: bool) -> bool:
    """Whether this visitor lets some work run: what is quick starts by itself, unless everything was stopped."""
    if not st.session_state.get(GOING, True) or seconds > MOST_SECONDS:
        return False
    return (by_itself and seconds <= UNASKED_SECONDS) or st.session_state.get(AGREED) == work.key


def _control(
    work: Work,
    *,
    running: str,
    waiting: str,
    complete: str,
    seconds: float,
    smaller: str,
    begun: bool,
    share: float | None = None,
) -> None:
    """The line above a picture: how far it is, and the button that stops or starts it; a bar where there is a share."""

    def line(text: str) -> None:
        if share is None:
            st.caption(text, width="stretch")
        else:
            st.progress(share, text=text)

    with st.container(horizontal=True, vertical_alignment="center", key="lab_progress"):
        if running:
            line(running)
            st.button("Stop", key="lab_stop", icon=":material/stop:", on_click=_stop, args=(work.key,))
        elif waiting and seconds > MOST_SECONDS:
            st.warning(
                f"This asks for about {time_words(seconds)} of computing on one core, and the page gives at most "
                f"{time_words(MOST_SECONDS)}: choose {smaller}. The command line has no such limit.",
                icon=":material/timer_off:",
            )
        elif waiting:
            price = "At most" if share is None else "That is"
            line(f"{waiting} {price} about {time_words(seconds)} of computing on one core.")
            label, icon = "Continue" if begun else "Start", ":material/play_arrow:"
            st.button(label, key="lab_start", icon=icon, on_click=_start, args=(work.key,), type="primary")
        else:
            st.caption(complete, width="stretch")
    if work.error and waiting:
        layout.problem(work.error)


def _stop(key: tuple[Any, ...]) -> None:
    st.session_state[GOING] = False
    jobs.stop(key)


def _start(key: tuple[Any, ...]) -> None:
    st.session_state[GOING] = True
    st.session_state[AGREED] = key
    last = jobs.jobs().look(key)
    if last is not None and last.error:
        jobs.jobs().forget(key)


def shipped_results_of(cells: Sequence[Run]) -> list[CellResult]:
    """What the finished tables that come with the project know of some cells; only files that can know are read.

    All records of a real data set are the same whatever the seed of the draw, so there a draw makes no difference.
    """
    found = []
    for seed in dict.fromkeys(cell.seed for cell in cells):
        wanted = {_whatever_draw(cell) for cell in cells if cell.seed == seed}
        for name in EXPERIMENTS:
            if wanted & _planned(name, seed):
                found += [
                    replace(result, cell=replace(result.cell, data_seed=key.data_seed))
                    for result in _finished(name, seed)
                    if (key := _whatever_draw(result.cell)) in wanted
                ]
    return found


def _whatever_draw(cell: Run) -> Run:
    key = same_but_runs(cell)
    return replace(key, data_seed=None) if same_records(cell.dataset, cell.n) else key


@lru_cache(maxsize=32)
def _planned(name: str, seed: int) -> frozenset[Run]:
    """The cells of an experiment; nothing is read for it."""
    experiment = EXPERIMENTS[name]
    return frozenset(_whatever_draw(cell) for _, cell in experiment.cells(1, experiment.names, seed))


def _finished(name: str, seed: int) -> list[CellResult]:
    """The finished table of an experiment; nothing of another seed, or of a table that cannot be used."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # late: it is slow to load

    from dpgrams_core.studies.paper.shipped import shipped, shipped_file
    from dpgrams_core.sweeps.store import FACTS

    try:
        facts = json.loads((pq.read_schema(shipped_file(name)).metadata or {})[FACTS])
        return [result for _, result in shipped(name).results] if facts["seed"] == seed else []
    except (OSError, KeyError, ValueError, DataError):
        return []  # the runs are made here
