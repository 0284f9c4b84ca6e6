"""The route for uploads of a real server, by its raw protocol: the switch, the quotas, and that all is freed."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager, suppress

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from tests.places import ROOT

AWAY = 1.0
QUOTAS = {"DPGRAMS_MAX_UPLOAD_MB": "2", "DPGRAMS_UPLOADS_MB_PER_VISITOR": "3", "DPGRAMS_UPLOADS_MB_IN_ALL": "5"}
PROGRAM = f"""
import sys
from pages._ui.server import visitors
visitors.SECONDS_AWAY = {AWAY}
from streamlit.web.cli import main
main(["run", "app.py", "--server.fileWatcherType", "none", "--server.port", sys.argv[1]])
"""


@contextmanager
def running_server(folder, **settings: str):
    """The port of a server, and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "DPGRAMS_LEDGER": str(folder / "ledger.sqlite3"), **settings}
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(port)], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, env=environment
        )
        try:
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1).close()
                    break
                except OSError:
                    assert process.poll() is None, "the server ended before it answered"
                    time.sleep(0.2)
            yield port, process
        finally:
            process.terminate()
            process.wait(timeout=20)
    written = (folder / "log.txt").read_text()
    assert "Traceback" not in written, written[-4000:]


class Visitor:
    """A session, as a browser has it, without the browser."""

    def __init__(self, port: int, page: str = "my_data") -> None:
        self.port, self.page, self.files = port, page, 0
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=10) as answer:
            cookie = answer.headers.get("Set-Cookie", "")
        self.token = cookie.split("_streamlit_xsrf=")[1].split(";")[0]
        self._ways_out = ExitStack()
        address = f"ws://127.0.0.1:{port}/_stcore/stream"
        self.socket = self._ways_out.enter_context(connect(address, subprotocols=["streamlit"], max_size=None))
        self.session = self.uploader = ""
        self.text = b""
        self.run()

    def run(self, file: tuple[str, str, int] | None = None) -> None:
        """Run the page, with a file in its uploader if there is one."""
        message = BackMsg()
        message.rerun_script.page_name = self.page
        if file is not None:
            widget = message.rerun_script.widget_states.widgets.add(id=self.uploader)
            name, file_id, size = file
            widget.file_uploader_state_value.uploaded_file_info.add(name=name, file_id=file_id, size=size)
        self.socket.send(message.SerializeToString())
        self.text, ends = b"", 0
        self.uploader = "" if file is None else self.uploader
        while not ends:
            payload = self.socket.recv(timeout=60)
            self.text += payload
            answer = ForwardMsg.FromString(payload)
            self.session = answer.new_session.initialize.session_id or self.session
            self.uploader = answer.delta.new_element.file_uploader.id or self.uploader
            # A file that was read starts the page again at once.
            ends = (
                answer.WhichOneof("type") == "script_finished"
                and answer.script_finished != answer.FINISHED_EARLY_FOR_RERUN
            )

    def put(self, content: bytes, session: str = "", chunked: bool = False) -> int:
        """Send a file to the route; the status of the answer."""
        self.files += 1
        head = b'--mark\r\nContent-Disposition: form-data; name="file"; filename="people.csv"\r\n\r\n'
        body = head + content + b"\r\n--mark--\r\n"
        headers = {
            "Content-Type": "multipart/form-data; boundary=mark",
            "X-Xsrftoken": self.token,
            "Cookie": f"_streamlit_xsrf={self.token}",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        pieces = (body[begin : begin + 65_536] for begin in range(0, len(body), 65_536))
        path = f"/_stcore/upload_file/{session or self.session}/{self.files}"
        with suppress(BrokenPipeError, ConnectionResetError):  # it is refused before all of it was sent
            connection.request("PUT", path, pieces if chunked else body, headers, encode_chunked=chunked)
        try:
            return connection.getresponse().status
        except ConnectionResetError:  # refused, and what is left of the file came after the answer
            return 413
        finally:
            connection.close()

    def hand_in(self, content: bytes) -> int:
        """Send a file and let the page read it."""
        status = self.put(content)
        if status == 204:
            self.run(("people.csv", str(self.files), len(content)))
        return status

    def leave(self) -> None:
        self._ways_out.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_server(tmp_path_factory.mktemp("server"), **QUOTAS) as (port, _):
        yield port


@pytest.fixture
def visitor(server):
    """``visitor()``: another one; all leave at the end, and are forgotten."""
    found = []

    def make(page: str = "my_data") -> Visitor:
        found.append(Visitor(server, page))
        return found[-1]

    yield make
    for one in found:
        one.leave()
    time.sleep(2 * AWAY)


def csv_of(size: int) -> bytes:
    """A CSV file of about so many bytes, whose numbers take little."""
    row = b"1,2," + b"x" * 992 + b"\n3,4," + b"y" * 992 + b"\n"
    return b"a,b,words\n" + row * (size // len(row))


def test_with_uploads_off_the_route_refuses(tmp_path):
    with running_server(tmp_path, DPGRAMS_UPLOADS="off") as (port, _):
        one = Visitor(port)
        assert one.uploader == ""
        assert b"Uploads are switched off" in one.text
        assert one.put(b"a,b\n1,2\n") == 403
        two = Visitor(port, "tradeoff")
        assert two.uploader == ""
        assert two.put(b"PAR1") == 403
        one.leave()
        two.leave()


def test_the_route_takes_a_visitors_share_and_no_more(visitor):
    one = visitor()
    assert b"take at most 3 MB here at a time, and those of all 5 MB" in one.text
    assert one.put(csv_of(1_800_000)) == 204
    assert one.put(csv_of(1_800_000)) == 413
    assert one.put(csv_of(1_800_000), chunked=True) == 413  # nothing is said of its length
    two = visitor()
    assert two.put(csv_of(3_500_000), chunked=True) == 413  # larger than the largest file
    assert two.put(csv_of(1_800_000), chunked=True) == 204
    three = visitor()
    assert three.put(csv_of(1_800_000), chunked=True) == 413  # all together
    assert three.put(csv_of(900_000)) == 204


def test_the_route_knows_its_visitors(visitor):
    one = visitor()
    assert one.put(b"a,b\n1,2\n", session="nobody") == 403
    assert one.put(b"a,b\n1,2\n", session="../x") in (403, 404)
    assert [one.put(b"") for _ in range(9)] == [204] * 8 + [413]  # many files that weigh nothing


def test_a_file_is_let_go_once_it_is_read_and_so_is_what_was_read_when_its_visitor_leaves(visitor):
    """Seen by the quotas, which count what is there."""
    one = visitor()
    for _ in range(3):
        assert one.hand_in(b"a,b\nno,numbers\n" * 100_000) == 204
        assert b"No column holds numbers" in one.text
    assert one.hand_in(csv_of(1_800_000)) == 204
    assert b"rows are read" in one.text
    assert one.put(csv_of(1_800_000)) == 204  # the first one is a table of some kilobytes now
    assert one.put(csv_of(1_800_000)) == 413
    numbers = b"a,b\n" + b"1,2\n" * 120_000  # 0.5 MB that are read to 2 MB
    two, three = visitor(), visitor()
    assert two.hand_in(numbers) == 204
    assert three.put(csv_of(1_800_000)) == 413  # of 5 MB the first has 1.8 and the second 1.9
    two.leave()
    deadline = time.monotonic() + 20
    while three.put(csv_of(1_800_000)) == 413:
        assert time.monotonic() < deadline
        time.sleep(0.2)
