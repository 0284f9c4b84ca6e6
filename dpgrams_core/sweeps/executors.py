"""Where tasks run: here, on all cores, or on a Dask cluster. The same tasks give the same results in each.

Every executor streams (task, outcome) pairs as they finish and holds only a small window of tasks at a time,
so that a million tasks need no more memory than a hundred.  A worker that dies is replaced and its tasks are
run again; a task that keeps killing its worker comes back as ``Lost``.  Closing the stream stops the rest: what has
not begun is given up, and a process that is in the middle of a task leaves it at its next checkpoint (progress.py).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import Any, BinaryIO, TypeVar

from dpgrams_core.model.checks import one_of
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.progress import Stopped, checkpoint, stoppable
from dpgrams_core.numerics.threads import one_thread

SWEEP_EXECUTORS = ("serial", "processes", "dask")
DEATHS_ALLOWED = 2  # of a task that ran alone, before it is given up
STARTS_ALLOWED = 2  # of workers that die without any task
START = "from dpgrams_core.sweeps.executors import serve; serve()"  # what a worker runs
END_SECONDS = 10  # for a process to end itself
WINDOW = 4  # tasks in flight for each worker: the next one is there when one ends
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


def own_python(program: str) -> subprocess.Popen[bytes]:
    """A new Python that runs a line of code, with what we can import, and out of reach of the terminal's Ctrl-C.

    The processes of multiprocessing would run the caller's main script once more, which may start a sweep without a
    guard or be a page of Streamlit.  This one knows nothing of it, and hears from us by its standard input alone.
    """
    words = [sys.executable, "-c", f"import sys; sys.path[:] = sys.argv[1:]; {program}", *sys.path]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def end_python(process: subprocess.Popen[bytes]) -> None:
    """It ends itself once nobody holds the other end; one that cannot is killed."""
    with suppress(OSError):
        process.stdin.close()  # type: ignore[union-attr]
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()  # type: ignore[union-attr]


def answers_alone() -> BinaryIO:
    """In such a Python: where its answers go.  What a task prints is none, and goes where errors go."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


class _Worker:
    """A process that does one task after another; one thread at a time asks it.  Its death is an ``EOFError``."""

    def __init__(self) -> None:
        self.process = own_python(START)
        self._lock = threading.Lock()  # of what is written to it
        self._asked = 0
        self._stream: threading.Event | None = None  # whose task it does
        with suppress(EOFError):  # else it is not alive
            self._heard()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def do(self, work: bytes, ended: threading.Event) -> Any:
        """What comes of a pickled function and its task, unless their stream has ended."""
        with self._lock:
            if ended.is_set():
                raise CancelledError
            self._stream = ended
            self._asked += 1
            self._tell(work)
        return _outcome(partial(pickle.loads, self._heard()))

    def leave(self, ended: threading.Event) -> None:
        """Leave a task of this stream at its next checkpoint."""
        with self._lock:
            if self._stream is ended:
                self._tell(None)

    def _tell(self, work: bytes | None) -> None:
        with suppress(OSError, ValueError):  # ValueError: it has ended; whoever listens to it will know
            pickle.dump((self._asked, work), self.process.stdin)  # type: ignore[arg-type]
            self.process.stdin.flush()  # type: ignore[union-attr]

    def _heard(self) -> bytes:
        try:
            return bytes(pickle.load(self.process.stdout))  # type: ignore[arg-type]
        except Exception:  # it is gone, or what it says is cut off or too large, and the next would be misheard
            end_python(self.process)
            raise EOFError from None


class _Asked:
    """In a worker: the number of the task that nobody waits for any more."""

    left = 0


def serve() -> None:
    """What a worker does: the tasks that come in, one after another, until nobody holds the other end."""
    answers = answers_alone()
    one_thread()
    tasks: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    answer = b"ready"
    while True:
        with suppress(OSError):  # whoever asked is gone, and so are we in a moment
            pickle.dump(answer, answers)
            answers.flush()
        answer = _answer_to(*tasks.get())


def _listen(tasks: SimpleQueue[tuple[int, bytes]]) -> None:
    """In a worker: also in the middle of a task it hears that nobody waits, or that nobody is there any more."""
    while True:
        try:
            number, work = pickle.load(sys.stdin.buffer)
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(0)
        if work is None:
            _Asked.left = number
        else:
            tasks.put((number, work))


def _answer_to(number: int, work: bytes) -> bytes:
    def check() -> None:
        if _Asked.left == number:
            raise Stopped

    try:
        function, task = pickle.loads(work)
        with stoppable(check):
            return pickle.dumps(function(task))
    except BaseException as error:
        return pickle.dumps(Lost(f"{type(error).__name__}: {error}"))


class Processes:
    """Worker processes, one numerical thread each, which may serve many streams (also of several threads).

    >>> with Processes(1) as pool:
    ...     sorted(result for _, result in pool.stream(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(self.workers)  # each waits for one worker
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._lock = threading.Lock()
        self._closed = False
        self._streams: Counter[str] = Counter()  # that are open, by owner

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers; what has not begun is given up."""
        with self._lock:
            self._closed = True
        self._threads.shutdown(wait=True, cancel_futures=True)
        while self._idle:
            end_python(self._idle.pop().process)

    def warm(self) -> None:
        """Start all workers and let them import the engine, so that a first stream need not wait; takes seconds."""
        seen: set[int] = set()
        while len(seen) < self.workers:
            seen |= {pid for _, pid in self.stream(_pid_after, [0.02] * self.workers) if isinstance(pid, int)}

    def stream(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result | Lost]]:
        """As ``stream_tasks``.

        A worker may have died of what others did at the same time, for want of memory.  So whatever killed one is
        tried again alone, and only what kills its worker then is given up.
        """
        waiting, owner, over = iter(tasks), _owner.get(), threading.Event()
        with self._lock:
            self._streams[owner] += 1
        suspects: deque[tuple[Task, int]] = deque()
        flying: dict[Future[Any], tuple[Task, int]] = {}
        try:
            while True:
                alone = bool(suspects) and not flying
                more = islice(waiting, 0 if suspects else max(0, self._window(owner) - len(flying)))
                for task, deaths in [suspects.popleft()] if alone else [(task, 0) for task in more]:
                    flying[self._submit(function, task, over)] = (task, deaths)
                if not flying:
                    return
                while not (ended := [future for future in flying if future.done()]):
                    wait(flying, LOOK_SECONDS, return_when=FIRST_COMPLETED)
                    checkpoint()
                for future in ended:
                    task, deaths = flying.pop(future)
                    try:
                        outcome = future.result()
                    except (EOFError, CancelledError):
                        if not alone or deaths + 1 < DEATHS_ALLOWED:
                            suspects.append((task, deaths + alone))
                            continue
                        outcome = Lost(DIED)
                    yield task, outcome
        finally:
            over.set()
            with self._lock:
                self._streams -= Counter({owner: 1})
                busy = list(self._busy)
            for future in flying:
                future.cancel()
            for worker in busy:
                worker.leave(over)

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

    def _submit(self, function: Callable[[Any], Any], task: Any, over: threading.Event) -> Future[Any]:
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool of processes is closed")
            return self._threads.submit(self._done, function, task, over)

    def _done(self, function: Callable[[Any], Any], task: Any, over: threading.Event) -> Any:
        """In a thread: the task by a worker, which is there for the next one afterwards."""
        try:
            work = pickle.dumps((function, task))
        except Exception as error:
            return Lost(f"{type(error).__name__}: {error}")
        worker = self._free_worker()
        try:
            return worker.do(work, over)
        finally:
            with self._lock:
                self._busy.remove(worker)
                self._idle.append(worker)

    def _free_worker(self) -> _Worker:
        """One that waits, or a new one; those that somebody stopped while they waited are forgotten."""
        starts = 0
        while starts < STARTS_ALLOWED:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                starts += 1
                try:
                    worker = _Worker()
                except OSError:  # no room for another process
                    continue
            if worker.alive:
                with self._lock:
                    self._busy.append(worker)
                return worker
            end_python(worker.process)
        raise SpecError("executor", "processes", DEAD_AT_ONCE)


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


def _outcome(call: Callable[[], Result]) -> Result | Lost:
    """The result of a call, or the error that nobody expected, as a sentence: one task must not stop the rest."""
    try:
        return call()
    except Exception as error:
        return Lost(f"{type(error).__name__}: {error}")
