"""A server to measure, and a visitor without a browser who does what a browser does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from dpgrams_core.model.places import APP

FAILURE = "did not foresee"  # what a page says in the place of an error
KEPT_FOR = 2  # runs that a browser keeps a message for to which nothing refers (global.maxCachedMessageAge)


@contextmanager
def running_app(*flags: str, root: Path = APP.parent) -> Iterator[tuple[str, psutil.Process]]:
    """The address of a dashboard of its own, and its process; it leaves nothing behind.

    ``root`` may be a folder with another state of this project, which has Streamlit's command only.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start = ["dpgrams_core", "app"] if root == APP.parent else ["streamlit", "run", "app.py"]
    command = [sys.executable, "-m", *start, "--server.port", str(port), *flags]
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log.txt").open("w") as log:
        environment = {**os.environ, "DPGRAMS_LEDGER": str(Path(folder, "ledger.sqlite3"))}
        where = {"cwd": root, "env": environment, "stdout": log, "stderr": log}
        process = psutil.Popen([*command, "--server.fileWatcherType", "none"], **where)
        try:
            address = f"http://127.0.0.1:{port}"
            while True:
                with suppress(OSError):
                    urllib.request.urlopen(f"{address}/_stcore/health", timeout=1).close()
                    break
                if process.poll() is not None:
                    raise SystemExit(f"The server ended: {Path(log.name).read_text()[-2000:]}")
                time.sleep(0.1)
            yield address, process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)


def family(process: psutil.Process) -> list[psutil.Process]:
    """A process and all that it started."""
    return [process, *process.children(recursive=True)]


def processor_seconds(process: psutil.Process) -> float:
    """Time of the processor that a server took so far, all its processes together.

    By Linux' clock of a process, whose number is made of the process's: /proc counts in hundredths of a second.
    """
    spent = 0.0
    for one in family(process):
        with suppress(OSError):  # it has ended
            spent += time.clock_gettime(~one.pid << 3 | 2)
    return spent


@dataclass(frozen=True)
class Answer:
    """One run of a page, as its visitor saw it."""

    seconds: float
    size: int  # in bytes
    kinds: dict[str, int]  # bytes by the kind of the element
    parts: int  # boxes, elements and controls that were drawn
    failed: bool


class Visitor:
    """A visit to one page.

    As a browser does it keeps messages and sends their hashes, so that it gets them once, and asks again and again for
    what fills in.
    """

    def __init__(self, address: str, page: str = "") -> None:
        self._place, self._page = address.removeprefix("http://"), page
        self.widgets: dict[str, Any] = {}  # the newest element of each control, by its key
        self._fragments: dict[str, str] = {}  # the fragment that a control is in, "" for none
        self._kept: dict[str, int] = {}  # a message's hash, and how many runs ago it was used
        self._repeated: dict[str, float] = {}  # fragments that are asked for again, and how soon

    def __enter__(self) -> Visitor:
        self._socket = connect(f"ws://{self._place}/_stcore/stream", max_size=None, open_timeout=60)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def redraw(self, key: str = "", **value: Any) -> Answer:
        """Run the page, or the fragment of a control: the one with this key gets a value, as ``bool_value=True``."""
        message = self._message(self._fragments.get(key, ""))
        if key:
            widget = message.rerun_script.widget_states.widgets.add(id=self.widgets[key].id)
            for name, one in value.items():
                if isinstance(one, list):
                    getattr(widget, name).data.extend(one)
                else:
                    setattr(widget, name, one)
        return self._run(message)

    def look(self, seconds: float) -> None:
        """Look at the page for a while."""
        end = time.monotonic() + seconds
        due = {fragment: time.monotonic() + pause for fragment, pause in self._repeated.items()}
        while (now := time.monotonic()) < end:
            for fragment in [one for one, when in due.items() if when <= now and one in self._repeated]:
                due[fragment] = now + self._repeated[fragment]
                message = self._message(fragment)
                message.rerun_script.is_auto_rerun = True
                try:
                    self._run(message, patience=20)
                except TimeoutError:  # it is no longer there, so nothing is run
                    self._repeated.pop(fragment, None)
            time.sleep(max(0.0, min([end, *due.values()]) - time.monotonic()))

    @property
    def fills_in(self) -> bool:
        """Whether something of the page still comes by itself."""
        return bool(self._repeated)

    def _message(self, fragment: str) -> BackMsg:
        message = BackMsg()
        message.rerun_script.page_name, message.rerun_script.fragment_id = self._page, fragment
        message.rerun_script.cached_message_hashes.extend(self._kept)
        return message

    def _run(self, message: BackMsg, patience: float = 180) -> Answer:
        """Ask for a run, and read until it is drawn."""
        kinds: dict[str, int] = {}
        used: set[str] = set()
        failed, parts, started = False, 0, time.perf_counter()
        self._socket.send(message.SerializeToString())
        while True:
            data = self._socket.recv(timeout=patience)
            told = ForwardMsg.FromString(data)
            kind = self._noted(told)
            kinds[kind] = kinds.get(kind, 0) + len(data)
            parts += told.WhichOneof("type") in ("delta", "ref_hash")
            used |= {told.hash} if told.metadata.cacheable else {told.ref_hash} - {""}
            failed |= kind == "exception" or FAILURE in told.delta.new_element.alert.body
            if kind == "script_finished" and told.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                break
        self._kept = {one: age + 1 for one, age in self._kept.items() if age < KEPT_FOR} | dict.fromkeys(used, 0)
        return Answer(time.perf_counter() - started, sum(kinds.values()), kinds, parts, failed)

    def _noted(self, message: ForwardMsg) -> str:
        """The kind of a message; a control in it, and what is to be asked for again, is remembered."""
        kind = message.WhichOneof("type") or ""
        if kind == "new_session" and not message.metadata.run.fragment_ids:
            self._repeated.clear()  # all of the page is drawn anew, also where a part asked for that itself
        elif kind == "auto_rerun":
            self._repeated[message.auto_rerun.fragment_id] = message.auto_rerun.interval
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                self._repeated.pop(fragment, None)
        if kind != "delta" or not message.delta.HasField("new_element"):
            return kind
        kind = message.delta.new_element.WhichOneof("type") or ""
        element = getattr(message.delta.new_element, kind)
        if key := getattr(element, "id", "").rpartition("-")[2]:
            self.widgets[key], self._fragments[key] = element, message.delta.fragment_id
        return kind
