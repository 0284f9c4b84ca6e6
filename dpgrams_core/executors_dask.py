"""Tasks on a Dask cluster: any scheduler by its address, or a cluster on this machine.

The only file that imports Dask.  Dask itself runs the tasks of a dead worker again, on another one.  After four
deaths (its ``allowed-failures``) it gives up all that waited on the dead worker; these tasks run once more at the
end, one at a time, so that only one that kills its workers is lost.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import Any

import distributed as _distributed

from dpgrams_core import fingerprint
from dpgrams_core.errors import SpecError
from dpgrams_core.executors import DIED, WINDOW, Lost, Result, Task, hidden_main, in_one_thread
from dpgrams_core.fingerprint import engine_fingerprint

distributed: Any = _distributed  # half of its functions have types, which is worse than none
ANSWER_SECONDS = 6  # for the scheduler's answer; a user hears within ten seconds
DESERTED_SECONDS = 60.0  # without any worker, which may be on its way
LOOK_SECONDS = 1.0
WORKER_SECONDS = 3  # for the first worker of a scheduler that has none


def stream_dask(
    function: Callable[[Task], Result], tasks: Iterable[Task], scheduler: str | None
) -> Iterator[tuple[Task, Result | Lost]]:
    """As ``executors.stream_tasks``; a scheduler that cannot be used is refused with a sentence."""
    waiting = iter(tasks)
    first = list(islice(waiting, 1))
    if not first:
        return
    with ExitStack() as stack:
        client = stack.enter_context(_client(scheduler))
        where = "a local cluster" if scheduler is None else scheduler
        window = WINDOW * max(1, sum(client.nthreads().values()))
        waiting = chain(first, waiting)
        suspects: deque[Task] = deque()
        flying: dict[Any, Task] = {}

        ended: SimpleQueue[Any] = SimpleQueue()

        def submit(some: Iterable[Task]) -> None:
            for task in some:
                future = client.submit(in_one_thread, function, task, pure=False)
                flying[future] = task
                future.add_done_callback(ended.put)

        stack.callback(lambda: client.cancel(list(flying), force=True))
        alone = False
        submit(islice(waiting, window))
        while flying:
            future = _next_of(ended, client, where)
            task, outcome = flying.pop(future), _outcome(future)
            future.release()
            blamed = isinstance(outcome, Lost) and outcome.sentence == DIED and not alone
            if blamed:
                suspects.append(task)
            submit(islice(waiting, window - len(flying)))
            if not flying and suspects:
                alone = True
                submit([suspects.popleft()])
            if not blamed:
                yield task, outcome


def _next_of(ended: SimpleQueue[Any], client: Any, where: str) -> Any:
    """The next future that ended; a cluster that nothing can come from any more is an error and no endless wait."""
    idle = 0.0
    while idle < DESERTED_SECONDS:
        try:
            future = ended.get(timeout=LOOK_SECONDS)
        except Empty:
            deserted = client.status != "running" or not client.nthreads()
            idle = idle + LOOK_SECONDS if deserted else 0.0
            continue
        if future.status in ("finished", "error"):
            return future
        break  # cancelled or lost: the scheduler went away
    raise SpecError("scheduler", where, "it or its workers went away; what is finished is kept")


def _outcome(future: Any) -> Any:
    error = future.exception()
    if error is None:
        return future.result()
    return Lost(DIED if isinstance(error, distributed.KilledWorker) else f"{type(error).__name__}: {error}")


@contextmanager
def _client(scheduler: str | None) -> Iterator[Any]:
    """A client of a checked cluster; a cluster of our own ends with it."""
    with ExitStack() as stack:
        if scheduler is None:
            cluster = stack.enter_context(local_cluster())
            yield stack.enter_context(distributed.Client(cluster, set_as_default=False))
            return
        client = stack.enter_context(_connected(scheduler))
        _check_workers(client, scheduler)
        yield client


class QuietNanny(_distributed.Nanny):
    """Starts its worker, also again after a death, without running the caller's script once more."""

    async def instantiate(self) -> Any:
        """Start the worker process."""
        with hidden_main():
            return await super().instantiate()

    async def _on_worker_exit(self, exitcode: int) -> None:
        # Dask's own does not restart a worker that dies in the moment between its first task and "running".
        for _ in range(300):
            if self.status.name != "starting":
                break
            await asyncio.sleep(0.1)
        await super()._on_worker_exit(exitcode)


def local_cluster(workers: int | None = None) -> Any:
    """One process a core with one thread each, and no dashboard."""
    return distributed.LocalCluster(
        n_workers=workers or os.cpu_count() or 1,
        threads_per_worker=1,
        worker_class=QuietNanny,
        dashboard_address="127.0.0.1:0",  # any free port: Dask warns when its usual one is taken
        silence_logs=logging.ERROR,
    )


def _connected(address: str) -> Any:
    """A client of the scheduler at an address, or a sentence in time."""
    allowed = f"no Dask scheduler answers there within {ANSWER_SECONDS} seconds"
    try:
        with ThreadPoolExecutor(1) as thread:  # a loop of its own, also where this thread runs one
            kind = thread.submit(asyncio.run, asyncio.wait_for(_kind_of(address), ANSWER_SECONDS)).result()
    except ValueError:
        allowed = "give an address such as tcp://host:8786"
    except (OSError, TimeoutError):
        pass
    else:
        if kind == "Scheduler":
            return distributed.Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
        allowed = "what answers there is not a Dask scheduler"
    raise SpecError("scheduler", address, allowed)


async def _kind_of(address: str) -> str:
    """Whether a scheduler is there: Dask's own client would wait for ever on something that never speaks."""
    security = distributed.Security().get_connection_args("client")
    comm = await distributed.core.connect(address, timeout=ANSWER_SECONDS, **security)
    try:
        await comm.write({"op": "identity", "reply": True})
        return str((await comm.read()).get("type"))
    finally:
        comm.abort()


def _check_workers(client: Any, address: str) -> None:
    """Workers there are, and they have this very engine: another would give other numbers."""
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        raise SpecError("scheduler", address, "it has no workers; start some with “dask worker ADDRESS”") from None
    wanted = engine_fingerprint()
    answers = client.run(partial(fingerprint.engine_fingerprint), on_error="return")
    # A worker that is gone before it answers says nothing about its engine.
    if any(answer != wanted for answer in answers.values() if not isinstance(answer, OSError)):
        raise SpecError("scheduler", address, "its workers do not have this version of dpgrams_core")
