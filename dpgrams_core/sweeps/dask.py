"""Tasks on a Dask cluster: a scheduler by its address, or a cluster on this machine.

What a scheduler sends is unpickled here, so it can run any code: an address is taken from this machine, or where both
sides prove who they are (``dpgrams_core.model.environment``), and from the owner only, never from a page.

The only file that imports Dask.  Dask itself runs the tasks of a dead worker again, on another one.  After four
deaths (its ``allowed-failures``) it gives up all that waited on the dead worker; these tasks run once more at the
end, one at a time, so that only one that kills its workers is lost.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import Any

import dask
import distributed as _distributed

from dpgrams_core.model.environment import check_scheduler, read_dask
from dpgrams_core.model.errors import SpecError
from dpgrams_core.sweeps import fingerprint
from dpgrams_core.sweeps.executors import (
    DEAD_AT_ONCE,
    DIED,
    WINDOW,
    Lost,
    Result,
    Task,
    answers_alone,
    end_python,
    in_one_thread,
    own_python,
)
from dpgrams_core.sweeps.fingerprint import engine_fingerprint

distributed: Any = _distributed  # half of its functions have types, which is worse than none
ANSWER_SECONDS = 6  # for the scheduler's answer
READY_SECONDS = 9  # for all that is asked before the first task; a user hears within ten seconds
CLOSE_SECONDS = 0.5  # for a goodbye, which nobody needs to hear
DESERTED_SECONDS = 60.0  # without any worker, which may be on its way
IMPORT_SECONDS = 60  # for workers that answer, and have to load the engine first
LOOK_SECONDS = 1.0
LOST_SECONDS = 0.1
WORKER_SECONDS = 7  # for the first worker of a scheduler that has none


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
        try:
            window = WINDOW * max(1, _threads(client, READY_SECONDS))
        except (OSError, TimeoutError):
            raise SpecError("scheduler", where, "it went away") from None
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
        pause = LOOK_SECONDS
        with suppress(Empty):
            future = ended.get(timeout=LOOK_SECONDS)
            status = future.status
            if status in ("finished", "error"):
                return future
            if status == "cancelled":
                break  # the scheduler went away
            # Its worker died with the result, so it is made again, and Dask does not say when it is there.
            pause = LOST_SECONDS
            time.sleep(pause)
            ended.put(future)
        idle = idle + pause if _is_deserted(client) else 0.0
    raise SpecError("scheduler", where, "it or its workers went away")


def _is_deserted(client: Any) -> bool:
    try:
        return client.status != "running" or not _threads(client, LOOK_SECONDS)
    except (OSError, TimeoutError):
        return True


def _threads(client: Any, seconds: float) -> int:
    """How many tasks the cluster runs at once; its own function would wait for ever."""
    return sum(client.sync(client.scheduler.ncores, workers=None, callback_timeout=seconds).values())


def _outcome(future: Any) -> Any:
    try:
        error = future.exception()
        if error is None:
            return future.result()
    except distributed.KilledWorker as killed:  # its worker died with the result, and others making it again
        error = killed
    return Lost(DIED if isinstance(error, distributed.KilledWorker) else f"{type(error).__name__}: {error}")


@contextmanager
def _client(scheduler: str | None) -> Iterator[Any]:
    with ExitStack() as stack:
        if scheduler is None:
            address = stack.enter_context(local_cluster())
            # What becomes of a worker that dies we say ourselves.
            stack.enter_context(distributed.utils.silence_logging_cmgr(logging.CRITICAL))
            yield stack.enter_context(distributed.Client(address, set_as_default=False))
            return
        started = time.monotonic()
        ends = started + READY_SECONDS
        client = _connected(scheduler, min(ends, started + ANSWER_SECONDS))
        stack.callback(_close, client)
        _check_workers(client, scheduler, ends)
        yield client


def _close(client: Any) -> None:
    with suppress(OSError, TimeoutError):
        client.close(CLOSE_SECONDS)


@contextmanager
def local_cluster(workers: int | None = None) -> Iterator[str]:
    """The address of a cluster on this machine, in a process of its own, which ends with us."""
    program = f"from dpgrams_core.sweeps.dask import serve_cluster; serve_cluster({workers or os.cpu_count() or 1})"
    process = own_python(program)
    try:
        address = process.stdout.readline().decode().strip()  # type: ignore[union-attr]
        if not address:
            raise SpecError("executor", "dask", DEAD_AT_ONCE)
        yield address
    finally:
        end_python(process)


def serve_cluster(workers: int) -> None:
    """One process a core with one thread each, and no dashboard, until nobody holds the other end."""
    answers = answers_alone()
    # Some seconds after a death Dask gives up whoever is not there, also one that died again or starts slowly.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        worker_class=_Nanny,
        dashboard_address="127.0.0.1:0",  # any free port: Dask warns when its usual one is taken
        silence_logs=logging.CRITICAL,  # workers report the end of their scheduler as an error, with a traceback
    ) as cluster:
        answers.write(f"{cluster.scheduler_address}\n".encode())
        answers.flush()
        sys.stdin.read()


class _Nanny(_distributed.Nanny):
    """Starts its worker again after a death, whenever that was."""

    async def _on_worker_exit(self, exitcode: int) -> None:
        # Dask's own does not restart a worker that dies in the moment between its first task and "running".
        while self.status.name == "starting":
            await asyncio.sleep(0.1)
        await super()._on_worker_exit(exitcode)


def _in_time(call: Callable[[], Any], ends: float) -> Any:
    """The result of a call in a thread of its own, which is left alone when the time is over.

    A name server that is silent cannot be interrupted, and whoever waits for such a thread, as asyncio and the end of
    the program do for theirs, waits as long.
    """
    answer: Future[Any] = Future()

    def work() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, name="asks-scheduler", daemon=True).start()
    return answer.result(_left(ends))


def _left(ends: float) -> float:
    return max(0.01, ends - time.monotonic())


def _connected(address: str, ends: float) -> Any:
    """A client of the scheduler at an address, or a sentence in time."""
    security = _security(address)
    allowed = f"no Dask scheduler answers there within {ANSWER_SECONDS} seconds"
    try:
        host, port = distributed.comm.get_address_host_port(address)
        _in_time(partial(socket.getaddrinfo, host, port), ends)
        # In a thread it has a loop of its own, also where this thread runs one.
        kind = _in_time(lambda: asyncio.run(_kind_of(address, _left(ends), security)), ends)
        if kind == "Scheduler":
            return distributed.Client(address, timeout=_left(ends), set_as_default=False, security=security)
        allowed = "what answers there is not a Dask scheduler"
    except ValueError:
        allowed = "give an address such as tcp://127.0.0.1:8786 or tls://host:8786"
    except (OSError, TimeoutError):
        pass
    raise SpecError("scheduler", address, allowed)


def _security(address: str) -> Any:
    """Who we are and whom we believe, by the owner's settings; an address that these do not allow is refused."""
    settings = read_dask()
    check_scheduler(settings, address)
    if settings.tls_ca is None:
        return distributed.Security()
    return distributed.Security(
        require_encryption=True,
        tls_ca_file=str(settings.tls_ca),
        tls_client_cert=str(settings.tls_cert),
        tls_client_key=str(settings.tls_key),
    )


async def _kind_of(address: str, seconds: float, security: Any) -> str:
    """Whether a scheduler is there: Dask's own client would wait for ever on something that never speaks."""
    async with asyncio.timeout(seconds):
        connection = security.get_connection_args("client")
        comm = await distributed.core.connect(address, timeout=seconds, **connection)
        try:
            await comm.write({"op": "identity", "reply": True})
            return str((await comm.read()).get("type"))
        finally:
            comm.abort()


def _check_workers(client: Any, address: str, ends: float) -> None:
    """Workers there are, and they have this very engine: another would give other numbers."""
    try:
        client.wait_for_workers(1, timeout=min(WORKER_SECONDS, _left(ends)))
    except TimeoutError:
        raise SpecError("scheduler", address, "it has no workers; start some with “dask worker ADDRESS”") from None
    _asked(client, address, os.getpid, _left(ends))  # a worker that is frozen is there and answers nothing
    wanted = engine_fingerprint()
    answers = _asked(client, address, partial(fingerprint.engine_fingerprint), IMPORT_SECONDS)
    # A worker that is gone before it answers says nothing about its engine.
    if any(answer != wanted for answer in answers.values() if not isinstance(answer, OSError)):
        raise SpecError("scheduler", address, "its workers do not have this version of dpgrams_core")


def _asked(client: Any, address: str, question: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """What every worker answers; Dask's own ``client.run`` would wait for ever."""
    try:
        return dict(client.sync(client._run, question, on_error="return", callback_timeout=seconds))
    except TimeoutError:
        late = "some of its workers do not answer in time; try again, or stop them"
        raise SpecError("scheduler", address, late) from None
