"""A dashboard started as a user would start it, and a visitor who speaks to it without a browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from pages._ui.server.app import FAILURE
from tests.places import ROOT


@contextmanager
def running_server(folder, *flags, app="app.py", may_fail=False, **environment):
    """Address of a dashboard, its log and its budget ledger in ``folder``; the log must tell of no failure.

    Where failures are provoked, and ``may_fail`` says so, each is one line of the log and never a traceback.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log_path = folder / "log.txt"
    command = [sys.executable, "-m", "streamlit", "run", str(app), "--server.port", str(port), *flags]
    command += ["--server.fileWatcherType", "none"]  # a file saved during the tests must not reload half the code
    own = {"DPGRAMS_LEDGER": str(folder / "ledger.sqlite3"), "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
    environment = {**os.environ, **own, **environment}
    with log_path.open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, env=environment)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(process, address + "/_stcore/health")
            yield address
        finally:
            process.terminate()
            process.wait(timeout=20)
    written = log_path.read_text()
    assert "Traceback" not in written, written[-4000:]
    assert may_fail or FAILURE not in written, written[-4000:]


def wait_for(process, route):
    """Until a server answers; it must not end before."""
    for _ in range(300):
        with suppress(OSError):
            urllib.request.urlopen(route, timeout=1).close()
            return
        assert process.poll() is None, "the server ended before it answered"
        time.sleep(0.2)


class Visitor:
    """A websocket to a dashboard: sends what it likes, and reads what a page would be told."""

    def __init__(self, address: str, host: str | None = None) -> None:
        self.place = address.removeprefix("http://")
        self.host = host or self.place

    def __enter__(self) -> Visitor:
        name, _, port = self.place.partition(":")
        way = socket.create_connection((name, int(port)), timeout=30)
        self._connection = connect(f"ws://{self.host}/_stcore/stream", sock=way, max_size=None)
        self.socket = self._connection.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._connection.__exit__(*error)

    def send(self, message: BackMsg | bytes | str) -> None:
        self.socket.send(message.SerializeToString() if isinstance(message, BackMsg) else message)

    def closing_code(self) -> int:
        """Why the server ends the connection, which it must."""
        while True:
            try:
                self.socket.recv(timeout=30)
            except ConnectionClosed as closed:
                return closed.rcvd.code

    def told_until_silence(self, seconds: float = 1.0) -> list[ForwardMsg]:
        """What comes by itself, until nothing comes for some time."""
        told: list[ForwardMsg] = []
        with suppress(TimeoutError):
            while True:
                told.append(ForwardMsg.FromString(self.socket.recv(timeout=seconds)))
        return told

    def run(self, message: BackMsg | None = None) -> list[ForwardMsg]:
        """All messages of one run of the page, which is asked for by ``message`` or by a plain rerun.

        The first visit of a page by its own address goes through app.py, so its first run ends early for another.
        """
        if message is None:
            message = BackMsg()
            message.rerun_script.SetInParent()
        self.send(message)
        told: list[ForwardMsg] = []
        ends = {ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_WITH_COMPILE_ERROR}
        while not told or told[-1].WhichOneof("type") != "script_finished" or told[-1].script_finished not in ends:
            told.append(ForwardMsg.FromString(self.socket.recv(timeout=60)))
        return told

    def text(self, message: BackMsg | None = None) -> str:
        """The same as one text."""
        return "\n".join(map(str, self.run(message)))
