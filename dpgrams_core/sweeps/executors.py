"""Where tasks run: here, on all cores, or on a Dask cluster. The same tasks give the same results in each.

Every executor streams (task, outcome) pairs as they finish and holds only a small window of tasks at a time,
so that a million tasks need no more memory than a hundred.  A worker that dies is replaced and its tasks are
run again; a task that keeps killing its worker comes back as ``Lost``.  Closing the stream stops the rest: what has
not begun is given up, and a process that is in the middle of a task leaves it at its next checkpoint (progress.py).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, TypeVar

from dpgrams_core.model.checks import one_of
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.progress import Stopped, checkpoint, stoppable
from dpgrams_core.numerics.threads import one_thread

SWEEP_EXECUTORS = ("serial", "processes", "dask")
DEATHS_ALLOWED = 2  # of a task that ran alone, before it is given up
STARTS_ALLOWED = 2  # of a pool whose workers die without any task
WINDOW = 4  # tasks in flight for each worker: the next one is there when one ends
STREAMS = 1_024  # of which the end is remembered: a task passes many checkpoints before so many more have ended
LOOK_SECONDS = 0.2  # between two looks at whether anybody still waits

_owner: ContextVar[str] = ContextVar("dpgrams_owner", default="")

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Lost:
    """What comes back for a task that no worker survived, or whose result could not be brought home."""

    sentence: str


DEAD_AT_ONCE = "its processes die as soon as they start; use 'serial' here"
DIED = "The worker died on every try (out of memory, or stopped from outside)."


def stream_tasks(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    executor: str | Processes = "serial",
    scheduler: str | None = None,
) -> Iterator[tuple[Task, Result | Lost]]:
    """Finished tasks with their results, one by one, in any order; wrong settings are refused at once.

    Parameters
    ----------
    function : of one task; importable by its name, and expected to record its own failures.
    executor : "serial", "processes" (all cores, one numerical thread each) or "dask"; or a ``Processes`` that is
        kept warm between streams.
    scheduler : address of a Dask scheduler; without one, ``dask`` starts a cluster on this machine.

    >>> [result for _, result in stream_tasks(abs, [-1, 2, -3])]
    [1, 2, 3]
    """
    if isinstance(executor, Processes):
        return executor.stream(function, tasks)
    one_of("executor", executor, SWEEP_EXECUTORS)
    if scheduler is not None and executor != "dask":
        raise SpecError("scheduler", scheduler, "it belongs to executor = 'dask'; leave it out here")
    if executor == "serial":
        return ((task, _outcome(partial(in_one_thread, function, task))) for task in tasks)
    if executor == "processes":
        return _own_processes(function, tasks)
    from dpgrams_core.sweeps.dask import stream_dask  # late: Dask takes a second to import

    return stream_dask(function, tasks, scheduler)


def in_one_thread(function: Callable[[Task], Result], task: Task) -> Result:
    """A task with one numerical thread, whoever runs it."""
    with one_thread():
        return function(task)


def _own_processes(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result | Lost]]:
    with Processes() as pool:
        yield from pool.stream(function, tasks)


@contextmanager
def working_for(owner: str) -> Iterator[None]:
    """Streams that begin within are this owner's: processes are shared alike by owners, not by streams."""
    token = _owner.set(owner)
    try:
        yield
    finally:
        _owner.reset(token)


class _Ended:
    """In a worker: the numbers of streams that have ended, each at its place, in memory shared with the parent."""

    numbers: Any


def _start_worker(ended: Any) -> None:
    _Ended.numbers = ended
    one_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who keeps what is finished
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would go on with what is queued, for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Main:
    """The real ``__main__`` while it is hidden, and by how many."""

    lock = threading.Lock()
    hiding = 0
    real = sys.modules["__main__"]
    blank = types.ModuleType("__main__")


@contextmanager
def hidden_main() -> Iterator[None]:
    """While workers start: they get no ``__main__``, and our tasks, functions of modules, need none.

    multiprocessing, by spawn and forkserver alike, lets each new process run the caller's main script once more, and
    has no setting against it.  That script may start a sweep without a guard, and would do so again in every worker;
    or be a page, since Streamlit makes the page that runs ``__main__``.  Those who hide it are counted: Dask's nannies
    wait within, several at a time.
    """
    with _Main.lock:
        if sys.modules["__main__"] is not _Main.blank:
            _Main.real = sys.modules["__main__"]
            sys.modules["__main__"] = _Main.blank
        _Main.hiding += 1
    try:
        yield
    finally:
        with _Main.lock:
            _Main.hiding -= 1
            if not _Main.hiding and sys.modules["__main__"] is _Main.blank:  # a server may have set its own
                sys.modules["__main__"] = _Main.real


@contextmanager
def interrupts_held() -> Iterator[None]:
    """A process that starts meanwhile never sees Ctrl-C, not even while it still imports."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # multiprocessing starts it with the first process, and then lets Ctrl-C in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _WorkerProcess(SpawnProcess):
    def start(self) -> None:
        with hidden_main(), interrupts_held():
            super().start()


class _WorkerContext(SpawnContext):  # spawn: forking a threaded server is unsafe
    Process = _WorkerProcess


class Processes:
    """Worker processes, one numerical thread each, which may serve many streams (also of several threads).

    >>> with Processes(1) as pool:
    ...     sorted(result for _, result in pool.stream(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.RLock()
        self._closed = False
        self._numbers = count(1)
        self._streams: Counter[str] = Counter()  # that are open, by owner
        self._ended = _WorkerContext().RawArray("Q", STREAMS)

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers; what has not begun is given up."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def warm(self) -> None:
        """Start all workers and let them import the engine, so that a first stream need not wait; takes seconds."""
        seen: set[int] = set()
        while len(seen) < self.workers:
            seen |= {pid for _, pid in self.stream(_pid_after, [0.02] * self.workers) if isinstance(pid, int)}

    def stream(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result | Lost]]:
        """As ``stream_tasks``.

        Whoever was in flight when a worker died is a suspect, and suspects run one at a time: so the task that
        kills its worker is known for sure, and no other is given up because of it.
        """
        waiting, owner = iter(tasks), _owner.get()
        with self._lock:
            self._streams[owner] += 1
        number = next(self._numbers)
        function = partial(_run_wanted, function, number)
        suspects: deque[tuple[Task, int]] = deque()
        flying: dict[Future[Result], tuple[Task, int, ProcessPoolExecutor]] = {}
        try:
            while True:
                alone = bool(suspects)
                more = islice(waiting, 0 if alone else max(0, self._window(owner) - len(flying)))
                for task, deaths in [suspects.popleft()] if alone else [(task, 0) for task in more]:
                    pool, future = self._submit(function, task)
                    flying[future] = (task, deaths, pool)
                if not flying:
                    return
                while not (ended := wait(flying, LOOK_SECONDS, return_when=FIRST_COMPLETED).done):
                    checkpoint()
                broken = {flying[future][2] for future in ended if _died(future)}
                if broken:  # then all that was in flight there has ended as well
                    ended = wait(flying).done
                    self._replace(broken)
                for future in ended:
                    task, deaths, _ = flying.pop(future)
                    if not _died(future):
                        yield task, _outcome(future.result)
                    elif alone and deaths + 1 >= DEATHS_ALLOWED:
                        yield task, Lost(DIED)
                    else:
                        suspects.append((task, deaths + alone))
        finally:
            with self._lock:
                self._streams -= Counter({owner: 1})
            self._ended[number % STREAMS] = number  # a worker in the middle of a task looks there
            for future in flying:
                future.cancel()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function gives in a worker, in its owner's turn; another does it again where the worker dies.

        It is a ``Worker`` (progress.py).  A refusal is raised here as it was there; of any other error only the name
        comes back, since its words may quote what it was given.

        >>> with Processes(1) as pool:
        ...     pool.call(max, 1, 2)
        2
        """
        ((_, answer),) = self.stream(_answered, [(function, arguments)])
        if isinstance(answer, Lost):
            raise RuntimeError(answer.sentence)
        given, refusal = answer
        if refusal is not None:
            raise refusal
        return given

    def _window(self, owner: str) -> int:
        """How many tasks of a stream may be in flight.  The first in the queue is the next, so these are its share."""
        with self._lock:
            return max(1, WINDOW * self.workers // max(1, len(self._streams)) // max(1, self._streams[owner]))

    def _submit(self, function: Callable[[Any], Any], task: Any) -> tuple[ProcessPoolExecutor, Future[Any]]:
        for _ in range(STARTS_ALLOWED):
            with self._lock:
                if self._closed:
                    raise RuntimeError("the pool of processes is closed")
                if self._pool is None:
                    self._pool = ProcessPoolExecutor(self.workers, _WorkerContext(), _start_worker, (self._ended,))
                pool = self._pool
                with suppress(BrokenProcessPool):  # a worker was stopped while it had nothing to do
                    return pool, pool.submit(function, task)
            self._replace({pool})
        raise SpecError("executor", "processes", DEAD_AT_ONCE)

    def _replace(self, broken: Iterable[ProcessPoolExecutor]) -> None:
        """A new pool for a broken one, tried with an empty task: if that dies too, the tasks are not to blame."""
        for pool in broken:
            with self._lock:
                mine = self._pool is pool  # else another stream was faster
                if mine:
                    self._pool = None
            pool.shutdown(wait=True, cancel_futures=True)
            if mine and all(_died(self._tried()) for _ in range(STARTS_ALLOWED)):
                raise SpecError("executor", "processes", DEAD_AT_ONCE)

    def _tried(self) -> Future[Any]:
        pool, future = self._submit(time.sleep, 0)
        wait([future])
        if _died(future):
            with self._lock:
                self._pool = None if self._pool is pool else self._pool
            pool.shutdown(wait=True, cancel_futures=True)
        return future


def _run_wanted(function: Callable[[Task], Result], number: int, task: Task) -> Result:
    """In a worker: a task of the stream of this number, which is left at its next checkpoint once that has ended."""

    def check() -> None:
        if _Ended.numbers[number % STREAMS] == number:
            raise Stopped

    with stoppable(check):
        return function(task)


def _answered(task: tuple[Callable[..., Any], tuple[Any, ...]]) -> tuple[Any, Exception | None]:
    """In a worker: what a call gives, and the refusal where it is refused instead."""
    function, arguments = task
    try:
        return function(*arguments), None
    except (SpecError, DataError) as error:
        return None, error
    except Exception as error:
        return None, RuntimeError(type(error).__name__)


def _pid_after(seconds: float) -> int:
    time.sleep(seconds)  # so that no worker takes the task of another
    return os.getpid()


def _died(future: Future[Any]) -> bool:
    return future.cancelled() or isinstance(future.exception(), BrokenProcessPool)


def _outcome(call: Callable[[], Result]) -> Result | Lost:
    """The result of a call, or the error that nobody expected, as a sentence: one task must not stop the rest."""
    try:
        return call()
    except Exception as error:
        return Lost(f"{type(error).__name__}: {error}")
