"""Work that goes on while a page is looked at: runs that are kept, and jobs that can be stopped and continued.

All of it is shared by the visitors of a server, since it holds nothing but simulations on synthetic or public data:
a sweep that somebody has run is there at once for everybody, and two people who want the same one wait for one job.
A job ends a few seconds after the last of them has left (visitors.py), in the middle of a run, and frees its workers.
Nothing in here calls Streamlit from a thread.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import streamlit as st

from dpgrams_core.cells import Cell, CellResult, failure_text
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.executors import Processes
from dpgrams_core.progress import Progress, Stopped, stoppable
from dpgrams_core.sweeps import stream_partial
from pages._ui.tradeoff_memory import RunMemory, shipped_results_of

MOST_KEPT = 200  # other results, such as a search for ε
PATIENCE_SECONDS = 150  # a tab in the background asks once a minute, and then its job must not stop
FINISH_SECONDS = 3.0  # that a run has to end in once it is stopped; else it is given up
ALONE_SECONDS = 1.0  # a sweep that is done before needs no other process
WARM_SECONDS = 20.0
PIECE_RUNS, LARGE_N = 5, 20_000


@dataclass(frozen=True)
class Waiting:
    """A visitor who waits for a job: until when at least, and whether there still."""

    until: float
    present: Callable[[], bool]


@dataclass
class Job:
    """One piece of work in a thread of its own, for everyone who waits for it."""

    started: float
    before: Mapping[Cell, int] = field(default_factory=dict)  # the runs of each cell that were there when it started
    finished: bool = False
    stopped: bool = False
    stopped_at: float | None = None  # when its work heard of it
    error: str = ""

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return not (self.finished or self.stopped or self.error)


class Jobs:
    """The jobs of a server. A job that nobody asks for any more stops, and continues when it is asked for again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.kept: OrderedDict[Hashable, Any] = OrderedDict()  # the newest result of jobs that have one
        self._jobs: dict[Hashable, Job] = {}
        self._waiting: dict[Hashable, dict[str, Waiting]] = {}
        self._lock = threading.Lock()
        self._clock = clock

    def ask(
        self,
        key: Hashable,
        visitor: str,
        steps: Callable[[], Iterator[Any]],
        before: Mapping[Cell, int] | None = None,
        present: Callable[[], bool] = lambda: True,
    ) -> Job:
        """The job of this key, started where it does not run; asking again says that one still waits.

        ``before`` is kept with a job that starts now: whoever looks at it later can tell how fast it is.
        ``present`` says whether the visitor is still there, from any thread.
        """
        with self._lock:
            now = self._clock()
            self._waiting.setdefault(key, {})[visitor] = Waiting(until=now + PATIENCE_SECONDS, present=present)
            job = self._jobs.get(key)
            if job is None or job.stopped:
                job = self._jobs[key] = Job(started=now, before=dict(before or {}))
                threading.Thread(target=self._work, args=(key, job, steps), daemon=True).start()
            return job

    def look(self, key: Hashable) -> Job | None:
        """The job of this key, if there was one."""
        return self._jobs.get(key)

    def leave(self, key: Hashable, visitor: str) -> None:
        """This visitor no longer waits; the job ends at its next checkpoint if nobody else does."""
        with self._lock:
            waiting = self._waiting.get(key, {})
            waiting.pop(visitor, None)
            job = self._jobs.get(key)
            if job is not None:
                job.stopped |= not waiting and job.running

    def forget(self, key: Hashable) -> None:
        """Let a job that ended badly be tried again."""
        with self._lock:
            self._jobs.pop(key, None)
            self._waiting.pop(key, None)

    def _work(self, key: Hashable, job: Job, steps: Callable[[], Iterator[Any]]) -> None:
        going: Iterator[Any] = iter(())

        def check() -> None:
            """In the middle of a run: one that was told to stop may still end, if it does so soon, and is kept then."""
            if job.stopped:
                job.stopped_at = self._clock() if job.stopped_at is None else job.stopped_at
                if self._clock() - job.stopped_at > FINISH_SECONDS:
                    raise Stopped
            elif not self._someone_waits(key):
                raise Stopped

        try:
            with stoppable(check):
                going = steps()
                for step in going:
                    if step is not None:
                        self._keep(key, step)
                    if job.stopped or not self._someone_waits(key):
                        raise Stopped
            job.finished = True
        except Stopped:
            job.stopped = True
        except Exception as error:  # a thread has nobody to raise to: the page says it
            job.error = failure_text(error)
        finally:
            getattr(going, "close", lambda: None)()  # frees the workers
            with self._lock:
                if self._jobs.get(key) is job and not job.error:
                    del self._jobs[key]
                    self._waiting.pop(key, None)

    def _someone_waits(self, key: Hashable) -> bool:
        """Whether anyone who asked not long ago is still there."""
        with self._lock:
            waiting = list(self._waiting.get(key, {}).values())
        return any(one.until >= self._clock() and one.present() for one in waiting)

    def _keep(self, key: Hashable, step: Any) -> None:
        with self._lock:
            self.kept[key] = step
            self.kept.move_to_end(key)
            while len(self.kept) > MOST_KEPT:
                self.kept.popitem(last=False)


class WarmPool:
    """The worker processes of the server, started in the background when there is work for them."""

    def __init__(self) -> None:
        self.pool = Processes()
        self._ready = threading.Event()
        self._begun = threading.Lock()

    @property
    def ready(self) -> bool:
        """Whether all workers have imported the engine; the first to ask starts them."""
        if not self._ready.is_set() and self._begun.acquire(blocking=False):
            threading.Thread(target=self._warm, daemon=True).start()
        return self._ready.is_set()

    def _warm(self) -> None:
        with suppress(Exception):  # then the page goes on in its own process
            self.pool.warm()
            self._ready.set()


@st.cache_resource(show_spinner=False)
def memory() -> RunMemory:
    """The runs that this server has made."""
    return RunMemory()


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """The jobs of this server."""
    return Jobs()


@st.cache_resource(show_spinner=False)
def workers() -> WarmPool:
    """The worker processes of this server; all visitors share them."""
    return WarmPool()


def visitor() -> str:
    """The name of this session, for as long as it lasts."""
    return str(st.session_state.setdefault("_visitor", f"{time.time_ns()}-{id(st.session_state)}"))


def load_shipped(cells: Sequence[Cell]) -> None:
    """Put what comes with the project into the memory: nobody need run it again."""
    kept = memory()
    missing = [cell for cell in cells if not kept.finished(cell).complete]
    for result in shipped_results_of(missing):
        kept.add(result)


def sweep_steps(
    cells: Sequence[Cell], kept: RunMemory, pool: WarmPool, scheduler: str | None
) -> Callable[[], Iterator[None]]:
    """A sweep as the steps of a job: here until the workers are warm, then on all cores, or all of it on a cluster."""
    size = PIECE_RUNS if max(cell.n for cell in cells) <= LARGE_N else 1

    def steps() -> Iterator[None]:
        with kept.held(cells):
            if scheduler:
                yield from _on_cluster(stream_partial(cells, "dask", scheduler=scheduler, store=kept, piece_runs=size))
                return
            alone_until = time.monotonic() + ALONE_SECONDS
            here = _each(stream_partial(cells, "serial", store=kept, piece_runs=size))
            for _ in here:
                yield None
                if time.monotonic() > alone_until and pool.ready:
                    here.close()  # type: ignore[attr-defined]
                    yield from _each(stream_partial(cells, pool.pool, store=kept, piece_runs=size))
                    return

    return steps


def _on_cluster(results: Iterator[CellResult]) -> Iterator[None]:
    """A step for each result; what is wrong with the cluster is said without its address."""
    try:
        yield from _each(results)
    except SpecError as error:
        if error.field != "scheduler":
            raise
        raise DataError(f"The Dask cluster of this server cannot be used: {error.allowed}.") from None


def _each(results: Iterator[CellResult]) -> Iterator[None]:
    """A step for each result.

    A failure that may pass, such as a worker that died, is not kept.  So that a job does not try the same run for
    ever, it ends with a sentence, and the next try is somebody's click.
    """
    lost: dict[Cell, CellResult] = {}
    try:
        for result in results:
            lost.pop(result.cell, None)
            if result.passing:
                lost[result.cell] = result
            yield None
    finally:
        results.close()  # type: ignore[attr-defined]
    if lost:
        count = sum(len(result.passing) for result in lost.values())
        first = next(iter(lost.values()))
        reason = first.failures[first.failed.index(first.passing[0])]
        raise DataError(f"{count:,} {'run' if count == 1 else 'runs'} could not be made; try again. {reason}")


def warm_executor(pool: WarmPool) -> Iterator[Processes | str | None]:
    """None while the workers start, and then what to run on: them, or this process where they do not come."""
    patience = time.monotonic() + WARM_SECONDS
    while not pool.ready and time.monotonic() < patience:
        time.sleep(0.1)
        yield None
    yield pool.pool if pool.ready else "serial"


def streamed(make: Callable[[Processes | str], Iterator[Any]], pool: WarmPool) -> Callable[[], Iterator[Any]]:
    """The steps of a job that streams its results from the workers."""

    def steps() -> Iterator[Any]:
        for executor in warm_executor(pool):
            if executor is None:
                yield None
                continue
            results = make(executor)
            try:
                yield from results
            finally:
                results.close()  # type: ignore[attr-defined]

    return steps


def seconds_left(
    cells: Sequence[Cell], known: Mapping[Cell, CellResult], before: Mapping[Cell, int], elapsed: float
) -> float | None:
    """How long the rest takes, if it goes as fast as what was done in ``elapsed`` seconds; None while unknown.

    A run counts by the time that runs of its method take at its n: large n is slow, and comes last.
    ``before`` are the numbers of runs that were there at the start.
    """
    if not cells:
        return None
    mean = {(cell.method, cell.n): fmean(found.seconds) for cell, found in known.items() if found.seconds}
    usual = fmean(mean.values()) if mean else 1.0
    weight = {cell: mean.get((cell.method, cell.n), usual) for cell in cells}
    total = sum(cell.runs * weight[cell] for cell in cells)
    share = sum(known[cell].ended * weight[cell] for cell in cells if cell in known) / total
    first = sum(before.get(cell, 0) * weight[cell] for cell in cells) / total
    return Progress(len(cells), share=first, clock=lambda: 0.0).time_left(share, elapsed)
