"""The work of a page, in pieces: it goes on while the page is looked at, can be stopped and continued, and fills in.

Work whose key is public settings is shared by all visitors of a server: what somebody has run is there at once for
everybody, and two people who want the same wait for one job.  Work on private data keeps its results in the session
that it belongs to; its key holds the visitor's name, and its steps yield nothing.

A job ends a few seconds after the last who waits for it has left (visitors.py) or looks at another page or at other
settings, in the middle of a run, and frees its workers.  Nothing in here calls Streamlit from a thread.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitInvalidLayoutContextError

from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.progress import Stopped, checkpoint, here, stoppable, time_left
from dpgrams_core.model.run import Run, same_but_runs
from dpgrams_core.studies.comparison import pooled
from dpgrams_core.sweeps.cell import CellResult, failure_text, join, settled
from dpgrams_core.sweeps.executors import Processes, working_for
from dpgrams_core.sweeps.run import stream_partial
from pages._ui.server import visitors

MOST_KEPT = 200  # results of work that is no sweep, such as a search for ε or the frames of a handle
MOST_AT_REST = 8  # the same while nobody is there: a class that draws new noise leaves a hundred handles' frames behind
MOST_RUNS_KEPT = 400_000  # a run is some ten numbers; the Tradeoff page allows sweeps of half of it
PATIENCE_SECONDS = 150  # a tab in the background asks once a minute, and then its job must not stop
TURNED_SECONDS = 2.0  # that a job goes on once its page was drawn anew and has not asked for it again
FINISH_SECONDS = 3.0  # that a run has to end in once it is stopped; else it is given up
ALONE_SECONDS = 1.0  # a sweep that is done before needs no other process
WARM_SECONDS = 20.0
FIRST_SECONDS = 0.5  # how long a page waits for something to draw
# Often while the first points come; then seldom, where drawing takes time from computing.
REFRESH_SECONDS, SLOW_REFRESH_SECONDS = 0.7, 3.0
PIECE_RUNS, LARGE_N = 5, 20_000
PRIVATE_WORKERS = 2  # processes for files and releases, whatever the number of cores: each may take minutes
BUSY = "The server is busy with other large sweeps: wait until they end, or choose fewer points or runs."
WATCHED = "_watched"  # the keys of the work that this visitor waits for, with the part of the page that shows it
PART = "_part"  # the part of the page that is being drawn

Known = dict[Run, CellResult]
Steps = Callable[[], Iterator[Any]]


@dataclass(frozen=True, kw_only=True)
class Work:
    """Work in pieces."""

    key: tuple[Hashable, ...]  # all that it depends on; the same key is the same work for every visitor
    steps: Steps  # each makes a piece and yields the result to be kept under the key, or None
    found: Callable[[], Any]  # what there is of it now
    count: Callable[[Any], tuple[int, int]]  # how many pieces of how many are there
    share: Callable[[Any], float] | None = None  # that is done, where it is known better than by this count
    begun: Callable[[Any], bool] = bool  # whether there is something to draw
    often: float = float("inf")  # seconds for which it is drawn often

    def done_share(self, found: Any) -> float:
        done, total = self.count(found)
        return done / total if self.share is None else self.share(found)

    @property
    def error(self) -> str:
        """Why its job ended, in a sentence; "" where it did not end badly."""
        return "" if (last := jobs().look(self.key)) is None else last.error


def live(work: Work, draw: Callable[[Any, Job | None], None], may_run: Callable[[Any], bool] = lambda _: True) -> None:
    """Draw what there is of some work, and go on with the rest while ``may_run``; ``draw`` gets the job that runs."""

    def job_of(found: Any) -> Job | None:
        done, total = work.count(found)
        if done >= total or work.error or not may_run(found):
            return None
        st.session_state.setdefault(WATCHED, {}).setdefault(work.key, st.session_state.get(PART))
        return jobs().ask(work.key, visitor(), work.steps, found, visitors.Presence(visitors.this_session()))

    def pause(job: Job | None) -> float | None:
        often = job is not None and time.monotonic() - job.started < work.often
        return None if job is None else REFRESH_SECONDS if often else SLOW_REFRESH_SECONDS

    def area(pause_before: float | None) -> None:
        found = work.found()
        job = job_of(found)
        try:
            draw(found, job)
        except StreamlitInvalidLayoutContextError:
            # It may write above the part that repeats itself, into a place that a run of the whole page makes.  Where
            # that was cut short by the next click there is no place yet, and the page is run again.
            st.rerun()
        if pause_before != pause(job):
            st.rerun()  # so that this part comes back less often, or no longer

    # The first look starts the job, so that the part knows whether to come back, and how soon.
    job = job_of(work.found())
    if job is not None:
        wait_for_something(work, job)
        job = job_of(work.found())
    st.fragment(area, run_every=pause(job))(pause(job))


def wait_for_something(work: Work, job: Job) -> None:
    """A moment, so that new work is not first drawn empty."""
    end = time.monotonic() + FIRST_SECONDS
    while time.monotonic() < end and job.running and not work.begun(work.found()):
        time.sleep(0.02)


def stop(key: tuple[Hashable, ...]) -> None:
    """This visitor no longer waits for some work."""
    jobs().leave(key, visitor())


def waiting() -> bool:
    """Whether something that this visitor waits for is still computed."""
    return any((job := jobs().look(key)) and job.running for key in st.session_state.get(WATCHED, ()))


def page_begins() -> None:
    """A page is drawn anew: what it does not ask for again soon, nobody waits for."""
    for key in st.session_state.get(WATCHED, ()):
        jobs().hurry(key, visitor())
    st.session_state[WATCHED] = {}


@contextmanager
def part(name: str) -> Iterator[None]:
    """A part of a page is drawn anew: what it does not ask for again soon, nobody waits for."""
    for key, place in st.session_state.get(WATCHED, {}).items():
        if place == name:
            jobs().hurry(key, visitor())
    st.session_state[PART] = name
    try:
        yield
    finally:
        st.session_state[PART] = None


def visitor() -> str:
    """The name of this session, for as long as it lasts."""
    return str(st.session_state.setdefault("_visitor", f"{time.time_ns()}-{id(st.session_state)}"))


def one_by_one(
    key: tuple[Hashable, ...],
    values: Sequence[Hashable],
    make: Callable[[Any], Any],
    kept: dict[Any, Any] | None = None,
) -> Work:
    """A result for each of some values, by value; all visitors share it, unless it is ``kept`` in a session."""

    def found() -> dict[Any, Any]:
        made = jobs().kept.get(key, {}) if kept is None else kept
        return {value: made[value] for value in values if value in made}

    def steps() -> Iterator[Any]:
        made = found() if kept is None else kept
        for value in values:
            if value not in made:
                made[value] = make(value)
            yield dict(made) if kept is None else None

    return Work(key=key, steps=steps, found=found, count=lambda made: (len(made), len(values)))


def newest(key: tuple[Hashable, ...], steps: Steps, complete: Callable[[Any], bool]) -> Work:
    """Work whose newest result says it all; there is None before the first."""
    return Work(
        key=key,
        steps=steps,
        found=lambda: jobs().kept.get(key),
        count=lambda found: (int(found is not None and complete(found)), 1),
        begun=lambda found: found is not None,
    )


def sweep(
    cells: Sequence[Run], scheduler: str | None = None, often: float = float("inf"), *, interleave: bool = False
) -> Work:
    """The runs of some cells: one cell after the other, or with ``interleave`` a few runs of each in turn."""
    return Work(
        key=("sweep", tuple(cells)),
        steps=sweep_steps(cells, memory(), workers(), scheduler, interleave=interleave),
        found=lambda: {cell: memory().finished(cell) for cell in cells},
        count=lambda known: (sum(found.complete for found in known.values()), len(known)),
        share=lambda known: sum(found.ended for found in known.values()) / sum(cell.runs for cell in cells),
        begun=lambda known: any(found.ended for found in known.values()),
        often=often,
    )


def whole(known: Known) -> list[CellResult]:
    """The cells of a sweep that have all their runs."""
    return [found for found in known.values() if found.complete]


def pooled_by_seed(known: Known) -> list[CellResult]:
    """The same of a sweep whose cells come in pieces that differ in their seeds, the pieces put together."""
    pieces: dict[Run, list[CellResult]] = {}
    for found in whole(known):
        first = replace(found.cell, seed=0)
        pieces.setdefault(same_but_runs(first), []).append(replace(found, cell=first))
    return [pooled(results) for results in pieces.values()]


@dataclass
class Job:
    """One piece of work in a thread of its own, for everyone who waits for it."""

    started: float
    before: Any = None  # what was there when it started: whoever looks at it later can tell how fast it is
    finished: bool = False
    stopped: bool = False
    stopped_at: float | None = None  # when its work heard of it
    error: str = ""

    @property
    def running(self) -> bool:
        return not (self.finished or self.stopped or self.error)


class Jobs:
    """The jobs of a server. A job that nobody asks for any more stops, and continues when it is asked for again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.kept: OrderedDict[Hashable, Any] = OrderedDict()  # the newest result of jobs that have one
        self._jobs: dict[Hashable, Job] = {}
        # Who waits for a job: until when at least, and whether there still.
        self._waiting: dict[Hashable, dict[str, tuple[float, Callable[[], bool]]]] = {}
        self._lock = threading.Lock()
        self._clock = clock

    def ask(
        self, key: Hashable, visitor: str, steps: Steps, before: Any = None, present: Callable[[], bool] = lambda: True
    ) -> Job:
        """The job of this key, started where it does not run; asking again says that one still waits.

        ``present`` says whether the visitor is still there, from any thread.
        """
        with self._lock:
            now = self._clock()
            self._waiting.setdefault(key, {})[visitor] = (now + PATIENCE_SECONDS, present)
            job = self._jobs.get(key)
            if job is None or job.stopped:
                job = self._jobs[key] = Job(started=now, before=before)
                self._start(self._work(key, job, steps, visitor))
            return job

    def look(self, key: Hashable) -> Job | None:
        return self._jobs.get(key)

    def leave(self, key: Hashable, visitor: str) -> None:
        """This visitor no longer waits; the job ends at its next checkpoint if nobody else does."""
        with self._lock:
            waiting = self._waiting.get(key, {})
            waiting.pop(visitor, None)
            job = self._jobs.get(key)
            if job is not None:
                job.stopped |= not waiting and job.running

    def hurry(self, key: Hashable, visitor: str) -> None:
        """This visitor may have turned away: without another word the job need not go on for long."""
        with self._lock:
            waiting = self._waiting.get(key, {})
            if visitor in waiting:
                waiting[visitor] = (self._clock() + TURNED_SECONDS, waiting[visitor][1])

    def forget(self, key: Hashable) -> None:
        """Let a job that ended badly be tried again."""
        with self._lock:
            self._jobs.pop(key, None)
            self._waiting.pop(key, None)

    def shrink(self, most: int) -> None:
        """Forget all results but so many, those that are newest."""
        with self._lock:
            while len(self.kept) > most:
                self.kept.popitem(last=False)

    @staticmethod
    def _start(work: Iterator[None]) -> None:
        threading.Thread(target=deque, args=(work, 0), daemon=True).start()

    def _work(self, key: Hashable, job: Job, steps: Steps, visitor: str) -> Iterator[None]:
        """All of a job; it yields after each step."""
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
            with stoppable(check), working_for(visitor):
                going = steps()
                for step in going:
                    if step is not None:
                        with self._lock:
                            self.kept[key] = step
                            self.kept.move_to_end(key)
                        self.shrink(MOST_KEPT)
                    if job.stopped or not self._someone_waits(key):
                        raise Stopped
                    yield
            job.finished = True
        except Stopped:
            job.stopped = True
        except Exception as error:  # a thread has nobody to raise to: the page says it
            job.error = failure_text(error)
        finally:
            getattr(going, "close", lambda: None)()  # frees the workers
            job.before = None
            with self._lock:
                if self._jobs.get(key) is job and not job.error:
                    del self._jobs[key]
                    self._waiting.pop(key, None)

    def _someone_waits(self, key: Hashable) -> bool:
        """Whether anyone who asked not long ago is still there."""
        with self._lock:
            waiting = list(self._waiting.get(key, {}).values())
        return any(until >= self._clock() and present() for until, present in waiting)


class RunMemory:
    """Finished runs by cell; a ``RunStore``. What was not used for longest is forgotten first.

    A failure that may pass, such as a worker that died, is not kept: the next sweep makes that run again.
    """

    def __init__(self, most_runs: int = MOST_RUNS_KEPT) -> None:
        self.most_runs = most_runs
        self._known: OrderedDict[Run, CellResult] = OrderedDict()
        self._runs = 0
        self._held: Counter[Run] = Counter()  # how many jobs make a cell now
        self._held_runs = 0
        self._lock = threading.Lock()

    def finished(self, cell: Run) -> CellResult:
        """What is known of a cell."""
        key = same_but_runs(cell)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            found = [self._known[key]] if key in self._known else []
        return join(cell, found)

    def add(self, result: CellResult) -> None:
        """Keep the runs of a cell or of a piece of one."""
        key, new = same_but_runs(result.cell), settled(result)
        if not new.ended:
            return
        with self._lock:
            pieces = [self._known.pop(key), new] if key in self._known else [new]
            both = self._known[key] = join(replace(key, runs=max(piece.cell.numbers.stop for piece in pieces)), pieces)
            self._runs += both.ended - sum(piece.ended for piece in pieces[:-1])
            while self._runs > self.most_runs and len(self._known) > 1:
                oldest = next((key for key in self._known if not self._held[key]), None)
                if oldest is None:  # a job makes all of them now
                    return
                self._runs -= self._known.pop(oldest).ended

    @contextmanager
    def held(self, cells: Sequence[Run]) -> Iterator[None]:
        """While a job makes these cells none of them is forgotten; refused where jobs hold too many already."""
        keys, runs = Counter(map(same_but_runs, cells)), sum(cell.runs for cell in cells)
        with self._lock:
            if self._held_runs + runs > self.most_runs:
                raise DataError(BUSY)
            self._held_runs += runs
            self._held += keys
        try:
            yield
        finally:
            with self._lock:
                self._held_runs -= runs
                self._held -= keys


class WarmPool:
    """Worker processes of the server, started in the background when there is work for them."""

    def __init__(self, processes: int) -> None:
        self.pool = Processes(processes)
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
    made = Jobs()
    visitors.WHEN_EMPTY.append(lambda: made.shrink(MOST_AT_REST))
    return made


@st.cache_resource(show_spinner=False)
def workers() -> WarmPool:
    """The worker processes of this server; all visitors share them."""
    sharers = int(os.environ.get("DPGRAMS_SHARERS", "1"))  # of the cores: set by `dpgrams app --workers`
    return WarmPool(max(1, (os.cpu_count() or 1) // sharers))


@st.cache_resource(show_spinner=False)
def private_workers() -> WarmPool:
    """Those for files and releases: a sweep of somebody else neither holds them up nor takes them down with it."""
    return WarmPool(PRIVATE_WORKERS)


def in_private_worker(function: Callable[..., Any], *arguments: Any) -> Any:
    """A call on private data in a worker process, in its visitor's turn; here where no workers come.

    It asks nothing of Streamlit that could end the script between a charge and its release.
    """
    pool, patience = private_workers(), time.monotonic() + WARM_SECONDS
    while not pool.ready and time.monotonic() < patience:
        checkpoint()
        time.sleep(0.05)
    with working_for(visitors.this_session()):
        return (pool.pool.call if pool.ready else here)(function, *arguments)


def sweep_steps(
    cells: Sequence[Run], kept: RunMemory, pool: WarmPool, scheduler: str | None, *, interleave: bool = True
) -> Steps:
    """A sweep as the steps of a job: here until the workers are warm, then on all cores, or all of it on a cluster."""
    size = PIECE_RUNS if max((cell.n for cell in cells), default=0) <= LARGE_N else 1
    how: dict[str, Any] = {"store": kept, "piece_runs": size, "interleave": interleave}

    def steps() -> Iterator[None]:
        with kept.held(cells):
            if scheduler:
                try:
                    yield from _each(stream_partial(cells, "dask", scheduler=scheduler, **how))
                except SpecError as error:
                    if error.field != "scheduler":
                        raise
                    # What is wrong with it is said without its address.
                    raise DataError(f"The Dask cluster of this server cannot be used: {error.allowed}.") from None
                return
            alone_until = time.monotonic() + ALONE_SECONDS
            here = _each(stream_partial(cells, "serial", **how))
            for _ in here:
                yield None
                if time.monotonic() > alone_until and pool.ready:
                    here.close()
                    yield from _each(stream_partial(cells, pool.pool, **how))
                    return

    return steps


def _each(results: Iterator[CellResult]) -> Generator[None, None, None]:
    """A step for each result.

    A failure that may pass, such as a worker that died, is not kept.  So that a job does not try the same run for
    ever, it ends with a sentence, and the next try is somebody's click.
    """
    lost: dict[Run, CellResult] = {}
    with closing(results):  # type: ignore[type-var]
        for result in results:
            lost.pop(result.cell, None)
            if result.passing:
                lost[result.cell] = result
            yield None
    if lost:
        count = sum(len(result.passing) for result in lost.values())
        first = next(iter(lost.values()))
        reason = first.outcomes[first.passing[0]].failure or ""
        raise DataError(f"{count:,} {'run' if count == 1 else 'runs'} could not be made; try again. {reason}")


def streamed(make: Callable[[Processes | str], Iterator[Any]], pool: WarmPool) -> Steps:
    """The steps of a job that streams its results from the workers, or makes them here where these do not come."""

    def steps() -> Iterator[Any]:
        patience = time.monotonic() + WARM_SECONDS
        while not pool.ready and time.monotonic() < patience:
            time.sleep(0.1)
            yield None
        with closing(make(pool.pool if pool.ready else "serial")) as results:  # type: ignore[type-var]
            yield from results

    return steps


def seconds_left(
    cells: Sequence[Run], known: Mapping[Run, CellResult], before: Mapping[Run, int], elapsed: float
) -> float | None:
    """How long the rest takes, if it goes as fast as what was done in ``elapsed`` seconds; None while unknown.

    A run counts by the time that runs of its method take at its n: large n is slow, and comes last.
    ``before`` are the numbers of runs that were there at the start.
    """
    if not cells:
        return None
    mean = {(cell.method, cell.n): fmean(found.seconds) for cell, found in known.items() if found.seconds}
    usual = fmean(mean.values()) if mean else 1.0

    def weight(runs: Mapping[Run, int]) -> float:
        return sum(runs.get(cell, 0) * mean.get((cell.method, cell.n), usual) for cell in cells)

    total = weight({cell: cell.runs for cell in cells})
    done = weight({cell: found.ended for cell, found in known.items()})
    return time_left(done / total, elapsed, weight(before) / total)
