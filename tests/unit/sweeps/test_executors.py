"""Executors: the same results everywhere, whatever happens to the workers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from unittest.mock import Mock

import cloudpickle
import distributed
import numpy as np
import pandas as pd
import psutil
import pytest
from threadpoolctl import threadpool_info

from dpgrams_core import SpecError, sweep
from dpgrams_core.model.progress import Stopped, stoppable
from dpgrams_core.own_data.folder import add_up_folder
from dpgrams_core.sweeps import dask as executors_dask
from dpgrams_core.sweeps import executors
from dpgrams_core.sweeps.dask import local_cluster
from dpgrams_core.sweeps.executors import DIED, WINDOW, Lost, Processes, stream_tasks, working_for
from dpgrams_core.sweeps.run import plan_cells, stream_cells, stream_partial, tidy
from tests.places import ROOT

pytestmark = pytest.mark.slow

# Everything on Dask shares one cluster, so one process of a parallel test run has to have all of it.


class ByValue:
    """A function of this file for workers that cannot import it."""

    def __init__(self, function):
        self.function = function

    def __call__(self, task):
        return self.function(task)

    def __reduce__(self):
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        return cloudpickle.loads, (cloudpickle.dumps(self.function),)


@ByValue
def work(task):
    """A task is a number, or says how it goes wrong."""
    if task == "die":
        os._exit(1)
    if task == "raise":
        raise KeyError("oops")
    if isinstance(task, str):  # a file: the first try dies, the second does not
        if not os.path.exists(task):
            Path(task).touch()
            os._exit(1)
        return "second try"
    return task * task


@ByValue
def endless(folder):
    """Comes by checkpoints for a minute, and says when it began and when it came to its end."""
    from dpgrams_core.model.progress import checkpoint

    Path(folder, "began").touch()
    for _ in range(6_000):
        checkpoint()
        time.sleep(0.01)
    Path(folder, "ended").touch()


@ByValue
def worker(task):
    time.sleep(0.05)  # so that each worker gets one
    return os.getpid(), [pool["num_threads"] for pool in threadpool_info()], os.getsid(0)


@pytest.fixture(scope="module")
def cluster():
    """Its address."""
    with pytest.MonkeyPatch.context() as patch:
        # One death is forgiven instead of three: a task that kills its workers is found out sooner.
        patch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "1")
        # Dask gives up a worker that is not back in time; ours always come back, whatever it thinks of their pace.
        patch.setenv("DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT", "1ms")
        with local_cluster(2) as address:
            yield address


def pids_of(cluster):
    """The two workers of a cluster, once both are there."""
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        return set(client.run(os.getpid).values())


@pytest.fixture(scope="module")
def pool():
    with Processes(2) as pool:
        yield pool


@pytest.fixture(params=["serial", "processes", "dask"])
def stream(request):
    """A stream of one kind; processes and cluster are started once for all tests."""

    def start(function, tasks):
        if request.param == "processes":
            return request.getfixturevalue("pool").stream(function, tasks)
        address = request.getfixturevalue("cluster") if request.param == "dask" else None
        return stream_tasks(function, tasks, request.param, address)

    start.kind = request.param
    return start


def test_every_task_comes_back_once_with_its_result(stream):
    assert sorted(stream(work, range(40))) == [(number, number**2) for number in range(40)]


def test_no_tasks_are_no_results(stream):
    assert list(stream(work, [])) == []


def test_an_error_of_one_task_does_not_stop_the_rest(stream):
    found = dict(stream(work, [1, "raise", 2, 3]))
    assert found.pop("raise") == Lost("KeyError: 'oops'")
    assert found == {1: 1, 2: 4, 3: 9}


def test_tasks_are_taken_as_they_are_needed(stream):
    taken = []
    results = stream(work, (taken.append(number) or number for number in range(10_000)))
    next(results)
    results.close()
    assert len(taken) <= 2 * 2 * WINDOW  # two workers; the first results may have made room


def test_closing_a_stream_leaves_the_workers_for_the_next(stream):
    results = stream(work, range(100))
    next(results)
    results.close()
    assert dict(stream(work, [5])) == {5: 25}


def test_workers_use_one_numerical_thread(stream):
    for pid, threads, _ in dict(stream(worker, range(4))).values():
        assert set(threads) == {1}
        assert (pid == os.getpid()) == (stream.kind == "serial")


@pytest.mark.parametrize("stream", ["processes", "dask"], indirect=True)
def test_a_worker_leaves_ctrl_c_to_the_one_who_started_it(stream):
    assert os.getsid(0) not in {found[2] for _, found in stream(worker, range(4))}  # a terminal reaches its session


@pytest.mark.parametrize("stream", ["processes", "dask"], indirect=True)
def test_a_task_whose_worker_died_is_run_again(stream, tmp_path):
    path = str(tmp_path / "tried")
    found = dict(stream(work, [1, path, 2, 3, 4, 5]))
    assert found == {1: 1, path: "second try", 2: 4, 3: 9, 4: 16, 5: 25}


@pytest.mark.parametrize("stream", ["processes", "dask"], indirect=True)
def test_a_task_that_kills_its_workers_is_lost_and_no_other(stream):
    found = dict(stream(work, ["die", *range(30)]))
    assert found.pop("die") == Lost(DIED)
    assert found == {number: number**2 for number in range(30)}


def test_a_worker_that_was_stopped_while_idle_is_replaced(pool):
    (_, (pid, *_)) = next(pool.stream(worker, [0]))
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    assert sorted(pool.stream(work, range(5))) == [(number, number**2) for number in range(5)]


def test_a_pool_serves_several_threads_at_once(pool):
    found = {}
    threads = [
        threading.Thread(target=lambda i=i: found.update({i: dict(pool.stream(work, range(i, i + 20)))}))
        for i in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: {number: number**2 for number in range(i, i + 20)} for i in range(3)}


def test_a_warm_pool_has_all_its_workers(pool):
    pool.warm()
    assert len({found[0] for _, found in pool.stream(worker, range(20))}) == 2


def test_a_closed_pool_starts_nothing():
    pool = Processes(2)
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(pool.stream(work, [1]))


def test_a_pool_that_is_closed_ends_the_streams_of_others():
    pool = Processes(1)
    stream = pool.stream(time.sleep, [0, 0.5, 0, 0])
    next(stream)
    pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        list(stream)


def test_processes_that_die_at_the_start_are_one_sentence(monkeypatch):
    monkeypatch.setattr(executors, "START", "raise SystemExit(1)")
    with pytest.raises(SpecError, match=r"executor = 'processes'.*as soon as they start"), Processes(1) as pool:
        list(pool.stream(work, range(100)))


def test_no_room_for_a_process_is_one_sentence(monkeypatch):
    monkeypatch.setattr(executors, "own_python", Mock(side_effect=BlockingIOError("Resource temporarily unavailable")))
    with pytest.raises(SpecError, match="executor = 'processes'"), Processes(1) as pool:
        list(pool.stream(work, range(5)))


@pytest.mark.parametrize("stream", ["processes", "dask"], indirect=True)
def test_what_a_task_prints_is_no_answer_however_much(stream):
    much = "a worker prints this " * 10_000  # more than a pipe holds
    assert dict(stream(print, [much] * 2)) == {much: None}


def test_an_answer_that_is_too_large_for_us_costs_its_worker(pool, monkeypatch):
    pool.warm()
    hear, too_large = executors.pickle.load, [MemoryError]

    def heard(file):
        if too_large:
            raise too_large.pop()
        return hear(file)

    monkeypatch.setattr(executors.pickle, "load", heard)
    assert sorted(pool.stream(work, range(5))) == [(number, number**2) for number in range(5)]
    assert not too_large


def test_what_cannot_be_sent_is_a_sentence(pool):
    assert "Can't pickle" in next(pool.stream(lambda task: task, [1]))[1].sentence
    assert "cannot pickle" in next(pool.stream(memoryview, [b"bytes"]))[1].sentence


@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_a_script_needs_no_guard(executor, tmp_path):
    # Processes of multiprocessing would run the script once more, each of them, and so on.
    script = tmp_path / "script.py"
    script.write_text(
        "import dpgrams_core as dg\n"
        f"table = dg.sweep('mean_shift', 'four_corners', n=[60], epsilon=[1], runs=2, executor={executor!r})\n"
        "print('runs', table.runs[0])\n"
    )
    words = [sys.executable, str(script)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "runs 2\n"
    assert done.stderr == ""


def test_an_address_without_dask_is_refused():
    with pytest.raises(SpecError, match="belongs to executor = 'dask'"):
        stream_tasks(work, [1], "serial", "tcp://127.0.0.1:8786")


def test_a_sweep_on_two_dask_workers_with_one_killed_is_the_serial_sweep(cluster, seed):
    planned = plan_cells(
        ["dp_grams", "functional", "mean_shift"], "four_corners", n=[60, 200], epsilon=[0.5, 2.0], runs=11, seed=seed
    )
    serial = tidy(list(stream_cells(planned)))
    results, killed = [], None
    before = pids_of(cluster)
    for result in stream_partial(planned, "dask", scheduler=cluster):
        if killed is None:
            killed = min(before)
            os.kill(killed, signal.SIGKILL)
        results += [result] if result.complete else []
    pd.testing.assert_frame_equal(tidy(results).drop(columns="seconds"), serial.drop(columns="seconds"))
    assert serial.failures.sum() == 0
    assert len(pids_of(cluster) - {killed}) == 2  # the blow fell, and was mended


def test_a_folder_on_two_dask_workers_with_one_killed_adds_up_as_here(cluster, tmp_path, rng):
    frame = pd.DataFrame({"age": rng.normal(40, 10, 60_000), "pay": rng.normal(30, 8, 60_000)})
    for number in range(12):
        frame[number::12].to_csv(tmp_path / f"{number:02}.csv", index=False)
    victims = []

    def stream(function, tasks):
        before = pids_of(cluster)
        for found in stream_tasks(function, tasks, "dask", cluster):
            if not victims and not isinstance(found[0], Path):  # in the pass, after its first file
                victims.append(min(before))
                os.kill(victims[0], signal.SIGKILL)
            yield found

    options = {"columns": ["age", "pay"], "box": [(0, 100), (0, 60)], "epsilon": 0.5}
    here = add_up_folder(tmp_path, "functional", **options)
    there = add_up_folder(tmp_path, "functional", **options, stream=stream)
    np.testing.assert_allclose(there.sums, here.sums, rtol=0, atol=60_000 * 2**-52)  # other order of files, no more
    assert (there.identity.content, there.identity.exact) == (here.identity.content, here.identity.exact)
    assert there.n == 60_000
    assert len(pids_of(cluster) - set(victims)) == 2


def refusal(address):
    started = time.perf_counter()
    with pytest.raises(SpecError) as caught:
        sweep("mean_shift", "four_corners", n=[60], epsilon=[1], runs=1, executor="dask", scheduler=address)
    assert caught.value.field == "scheduler"
    return str(caught.value), time.perf_counter() - started


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_a_scheduler_that_is_not_there_is_one_sentence_within_ten_seconds():
    address = f"tcp://127.0.0.1:{free_port()}"
    sentence, seconds = refusal(address)
    assert sentence.startswith(f"scheduler = '{address}' is not allowed: no Dask scheduler answers there within")
    assert seconds < 10


def test_something_that_listens_and_never_speaks_is_refused_too(monkeypatch):
    monkeypatch.setattr(executors_dask, "ANSWER_SECONDS", 1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        sentence, seconds = refusal(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
    assert "no Dask scheduler answers" in sentence
    assert seconds < 5


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://", "foo://host:1", "tcp://127.0.0.1:port"])
def test_what_is_not_an_address_is_refused_at_once(address):
    sentence, seconds = refusal(address)
    assert "give an address such as tcp://127.0.0.1:8786" in sentence
    assert seconds < 2


def test_a_silent_name_server_is_not_waited_for(monkeypatch):
    monkeypatch.setenv("DPGRAMS_DASK_PLAIN", "on")
    monkeypatch.setattr(executors_dask, "ANSWER_SECONDS", 0.5)
    silent = threading.Event()
    monkeypatch.setattr(executors_dask.socket, "getaddrinfo", lambda *_: silent.wait(60))
    try:
        sentence, seconds = refusal("tcp://nowhere.invalid:8786")
        (asking,) = [thread for thread in threading.enumerate() if thread.name == "asks-scheduler"]
        assert asking.daemon  # so the program ends without it as well
    finally:
        silent.set()
    assert "no Dask scheduler answers there within 0.5 seconds" in sentence
    assert seconds < 5


def test_workers_that_are_frozen_are_one_sentence(cluster, monkeypatch):
    monkeypatch.setattr(executors_dask, "READY_SECONDS", 2)
    frozen = min(pids_of(cluster))
    os.kill(frozen, signal.SIGSTOP)
    try:
        sentence, seconds = refusal(cluster)
    finally:
        os.kill(frozen, signal.SIGCONT)
    assert "some of its workers do not answer in time" in sentence
    assert seconds < 7


def test_a_worker_is_not_a_scheduler(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        worker_address = next(iter(client.scheduler_info()["workers"]))
    assert "is not a Dask scheduler" in refusal(worker_address)[0]


def test_workers_with_another_engine_are_refused(cluster, monkeypatch):
    monkeypatch.setattr(executors_dask, "engine_fingerprint", lambda: "another")
    assert "do not have this version" in refusal(cluster)[0]


def test_a_cluster_that_is_closed_under_way_is_one_sentence(monkeypatch):
    monkeypatch.setattr(executors_dask, "DESERTED_SECONDS", 1.0)
    with ExitStack() as stack:
        results = stream_tasks(worker, range(1000), "dask", stack.enter_context(local_cluster(1)))
        next(results)
        stack.close()
        with pytest.raises(SpecError, match="it or its workers went away"):
            list(results)


class Remade:
    """A result whose worker died before anybody fetched it; Dask makes it again."""

    def __init__(self, *statuses):
        self._statuses = iter(statuses)

    @property
    def status(self):
        return next(self._statuses)


def next_of(future, workers):
    scheduler = SimpleNamespace(ncores=None)
    client = SimpleNamespace(status="running", scheduler=scheduler, sync=lambda *_, **__: workers)
    queue = SimpleQueue()
    queue.put(future)
    return executors_dask._next_of(queue, client, "tcp://a")


def test_a_result_that_died_with_its_worker_is_waited_for(monkeypatch):
    monkeypatch.setattr(executors_dask, "LOST_SECONDS", 0.01)
    monkeypatch.setattr(executors_dask, "DESERTED_SECONDS", 0.02)
    future = Remade(*["lost"] * 8, "finished")
    assert next_of(future, {"tcp://b": 1}) is future
    with pytest.raises(SpecError, match="went away"):
        next_of(Remade(*["lost"] * 8), {})  # and nobody is there to make it


def test_a_result_that_dies_with_its_worker_again_and_again_is_lost():
    killed = distributed.KilledWorker("task", SimpleNamespace(address="tcp://b"), 1)
    future = SimpleNamespace(exception=lambda: None, result=Mock(side_effect=killed))
    assert executors_dask._outcome(future) == Lost(DIED)


def test_a_scheduler_without_workers_is_refused(monkeypatch):
    monkeypatch.setattr(executors_dask, "WORKER_SECONDS", 0.5)
    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty:
        assert "it has no workers" in refusal(empty.scheduler_address)[0]


@pytest.mark.parametrize(
    "start",
    [
        "executors import Processes\nwith Processes(1) as pool:\n    pool.warm()",
        "dask import local_cluster\nwith local_cluster(1):\n    pass",
    ],
    ids=["processes", "dask"],
)
def test_workers_end_with_a_parent_that_was_killed(start):
    script = f"import time\nfrom dpgrams_core.sweeps.{start}\n    print('there', flush=True)\n    time.sleep(60)\n"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout.readline() == "there\n"
    workers = psutil.Process(parent.pid).children(recursive=True)
    assert workers
    parent.kill()
    parent.communicate()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive


def test_an_address_elsewhere_is_refused_before_anybody_is_asked(monkeypatch):
    monkeypatch.setattr(executors_dask.socket, "getaddrinfo", lambda *_: pytest.fail("a name was asked for"))
    assert "whoever answers there could run code here" in refusal("tcp://cluster.example:8786")[0]


def openssl(folder, *words):
    """One step of making a certificate; there is no other maker of certificates among our packages."""
    program = shutil.which("openssl")
    assert program, "the test of TLS needs the program openssl"
    subprocess.run([program, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Two authorities, each in its folder with a certificate for this machine: the cluster's and a stranger's."""
    folders = {}
    for name in ("cluster", "stranger"):
        folder = folders[name] = tmp_path_factory.mktemp(name)
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        openssl(folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", f"/CN={name}")
        openssl(folder, "req", *key, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=localhost")
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        openssl(folder, "x509", "-req", "-in", "own.csr", *signed, "-out", "own.pem")
    return folders


@pytest.fixture
def tls(certificates, monkeypatch):
    """``tls(name)``: the owner's settings hold the certificates of one of the two."""

    def set_to(name):
        for setting, file in (("CA", "ca.pem"), ("CERT", "own.pem"), ("KEY", "own.key")):
            monkeypatch.setenv(f"DPGRAMS_DASK_TLS_{setting}", str(certificates[name] / file))

    return set_to


def test_a_cluster_with_certificates_serves_those_who_have_one_of_its_own(certificates, tls, seed):
    folder = certificates["cluster"]
    files = {"tls_ca_file": str(folder / "ca.pem")}
    for role in ("scheduler", "worker", "client"):
        files |= {f"tls_{role}_cert": str(folder / "own.pem"), f"tls_{role}_key": str(folder / "own.key")}
    security = distributed.Security(require_encryption=True, **files)
    how = {"n": [60], "epsilon": [1], "runs": 2, "seed": seed}
    here = {"processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(1, **here, protocol="tls://", security=security) as mine:
        address = mine.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        assert "for TLS set DPGRAMS_DASK_TLS_CA" in refusal(address)[0]
        tls("stranger")
        assert "no Dask scheduler answers there" in refusal(address)[0]
        tls("cluster")
        assert "must begin with tls://" in refusal(address.replace("tls", "tcp"))[0]
        there = sweep("mean_shift", "four_corners", executor="dask", scheduler=address, **how)
    here = sweep("mean_shift", "four_corners", **how)
    pd.testing.assert_frame_equal(there.drop(columns="seconds"), here.drop(columns="seconds"))


@pytest.mark.parametrize("how", ["closed", "stopped"])
def test_a_worker_leaves_a_task_that_nobody_waits_for(tmp_path, pool, how):
    gone = threading.Event()

    def check():
        if gone.is_set():
            raise Stopped

    def read():
        """As a job does: in a thread, until it is stopped in the middle of waiting."""
        stream = pool.stream(endless, [tmp_path] * 2)  # both workers
        with suppress(Stopped), stoppable(check):
            next(stream)
        stream.close()

    reader = threading.Thread(target=read)
    if how == "stopped":
        reader.start()
    else:
        # A stream that is closed while its tasks run: one short task came back, and the others are under way.
        stream = pool.stream(endless_or_not, [None, tmp_path, tmp_path])
        assert next(stream)[0] is None
    end = time.monotonic() + 30
    while not (tmp_path / "began").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    if how == "stopped":
        gone.set()
        reader.join(timeout=30)
        assert not reader.is_alive()
    else:
        stream.close()
    assert sorted(pool.stream(work, range(4))) == [(number, number**2) for number in range(4)]  # the workers are free
    assert not (tmp_path / "ended").exists()


@ByValue
def endless_or_not(folder):
    return None if folder is None else endless(folder)


def test_owners_share_processes_alike_however_many_streams_each_has(monkeypatch):
    pool = Processes(2)
    flying = []
    monkeypatch.setattr(pool, "_submit", lambda *_: (flying.append(1), Future())[1])

    def opened(owner):
        """How many tasks a new stream of this owner puts into the queue at once; none of them ends."""
        flying.clear()
        with working_for(owner):
            stream = pool.stream(abs, range(100))
            with stoppable(_give_up), pytest.raises(Stopped):
                next(stream)
        return len(flying)

    assert opened("a") == WINDOW * 2
    pool._streams.update({"b": 1})
    assert opened("a") == WINDOW
    pool._streams.update({"a": 1})
    assert opened("a") == WINDOW // 2
    assert opened("c") == WINDOW * 2 // 3
    assert pool._streams == {"a": 1, "b": 1}  # what has ended counts no more


def _give_up():
    raise Stopped
