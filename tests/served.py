"""A dashboard started as a user would start it, and a visitor who speaks to it without a browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from pages._ui.server import FAILURE

ROOT = Path(__file__).parents[1]


@contextmanager
def running_server(folder, *flags, app="app.py", **environment):
    """Address of a dashboard, its log and its budget ledger in ``folder``; its log must tell of no failure at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log_path = folder / "log.txt"
    log = log_path.open("w")
    command = [sys.executable, "-m", "streamlit", "run", str(app), "--server.port", str(port), *flags]
    command += ["--server.fileWatcherType", "none"]  # a file saved during the tests must not reload half the code
    own = {"DPGRAMS_LEDGER": str(folder / "ledger.sqlite3"), "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **own, **environment}
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(300):
        try:
            urllib.request.urlopen(address + "/_stcore/health", timeout=1).close()
            break
        except urllib.error.HTTPError:
            break  # an answer, too
        except OSError:
            assert process.poll() is None, "the server ended before it answered: " + log_path.read_text()[-2000:]
            time.sleep(0.2)
    yield address
    process.terminate()
    process.wait(timeout=20)
    log.close()
    written = log_path.read_text()
    assert "Traceback" not in written, written[-4000:]
    assert FAILURE not in written, written[-4000:]


class Visitor:
    """A websocket to a dashboard: sends what it likes, and reads what a page would be told."""

    def __init__(self, address: str, **more) -> None:
        self.socket = connect(address.replace("http", "ws") + "/_stcore/stream", max_size=None, **more)

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, message: BackMsg | bytes | str) -> None:
        self.socket.send(message.SerializeToString() if isinstance(message, BackMsg) else message)

    def run(self, message: BackMsg | None = None) -> list[ForwardMsg]:
        """All messages of one run of the page, which is asked for by ``message`` or by a plain rerun."""
        if message is None:
            message = BackMsg()
            message.rerun_script.SetInParent()
        self.send(message)
        told: list[ForwardMsg] = []
        while not told or told[-1].WhichOneof("type") != "script_finished":
            told.append(ForwardMsg.FromString(self.socket.recv(timeout=60)))
        return told

    def text(self, message: BackMsg | None = None) -> str:
        """The same as one text."""
        return "\n".join(map(str, self.run(message)))
