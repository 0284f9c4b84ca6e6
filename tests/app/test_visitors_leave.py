"""What runs for a visitor ends when the visitor has left: a real server on loopback, and visitors that are sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request

import psutil
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from tests.places import ROOT

PATIENCE = 60.0  # for what has to happen; the work below would take minutes
QUIET_SHARE = 0.08  # of one core: a server that computes uses all of one, or its part of a busy machine


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server's process and port."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    command += ["--server.fileWatcherType", "none"]
    environment = {**os.environ, "DPGRAMS_LEDGER": str(folder / "ledger.sqlite3")}
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, env=environment)
        try:
            until(lambda: _answers(port))
            yield psutil.Process(process.pid), port
        finally:
            process.terminate()
            process.wait(timeout=20)
    assert "Traceback" not in (folder / "log.txt").read_text()


def _answers(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
    except OSError:
        return False
    return True


def until(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.1)


class Visitor:
    """A browser tab as the server sees it: links that are opened, buttons that are pressed, and a socket."""

    def __init__(self, socket):
        self.socket = socket
        self.buttons: dict[str, str] = {}

    def open(self, page, query):
        message = BackMsg()
        message.rerun_script.page_name = page
        message.rerun_script.query_string = query
        self.socket.send(message.SerializeToString())

    def press(self, label, page, query):
        message = BackMsg()
        message.rerun_script.page_name = page
        message.rerun_script.query_string = query
        state = message.rerun_script.widget_states.widgets.add()
        state.id, state.trigger_value = self.buttons[label], True
        self.socket.send(message.SerializeToString())

    def wait_for(self, label):
        """Read what the server shows until there is a button with this label."""
        end = time.monotonic() + PATIENCE
        while label not in self.buttons:
            message = ForwardMsg()
            message.ParseFromString(self.socket.recv(timeout=max(0.1, end - time.monotonic())))
            if message.delta.new_element.WhichOneof("type") == "button":
                button = message.delta.new_element.button
                self.buttons[button.label] = button.id


def used(process):
    """Seconds that a server and its workers have computed."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def is_quiet(process):
    before, started = used(process), time.monotonic()
    time.sleep(1.5)
    return used(process) - before < QUIET_SHARE * (time.monotonic() - started)


SOCKET = {"subprotocols": ["streamlit"], "max_size": None, "ping_interval": None}
MODES = ("modes", "calibration=experiments&n=1000000&m=1000000&steps=400&curve=off&runs=off")
SWEEP = ("tradeoff", "lab_n_four_corners=200000&lab_runs=20&lab_seed=77")


@pytest.mark.parametrize(("page", "query", "label"), [(*MODES, "Run it"), (*SWEEP, "Start")], ids=["page", "job"])
def test_what_a_visitor_started_ends_when_the_visitor_leaves(server, page, query, label):
    process, port = server
    with connect(f"ws://127.0.0.1:{port}/_stcore/stream", **SOCKET) as opened:
        visitor = Visitor(opened)
        visitor.open(page, query)
        visitor.wait_for(label)
        until(lambda: is_quiet(process))  # the link alone starts nothing
        before = used(process)
        visitor.press(label, page, query)
        until(lambda: used(process) - before > 1.5)
        assert not is_quiet(process)  # the press did, and it would go on for minutes
    until(lambda: is_quiet(process), 25.0)
    assert is_quiet(process)
