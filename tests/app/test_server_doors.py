"""The doors of a running server, tried from outside: hosts, headers, messages, forged values, and its health."""

from __future__ import annotations

import http.client
import math
import re
import sqlite3
import time
import urllib.request
from collections.abc import Iterable
from contextlib import closing, contextmanager
from urllib.error import HTTPError
from urllib.parse import urlencode

import numpy as np
import pytest
from streamlit import config, net_util
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from threadpoolctl import threadpool_info, threadpool_limits
from websockets.exceptions import InvalidStatus

from dpgrams_core.privacy.ledger.book import Ledger
from pages._ui.server import app as doors
from pages._ui.tradeoff.settings import ARMS
from tests.racing import run_apart
from tests.served import ROOT, Visitor, running_server

ROUTES = ("/", "/modes", "/_stcore/health", "/_stcore/host-config", "/media/x.png", "/favicon.png", "/static/x.js")
STRANGERS = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "0.0.0.0", "127.0.0.2")
NO_HOSTS = ("a@localhost", "localhost/x", "localhost:port", "")
# Each page with its quickest settings.
QUICK = {
    "modes": {"n": "50", "curve": "off", "runs": "off", "landscape": "off"},
    "regression": {"reg_n": "50", "curve": "off"},
    "clusters": {"clu_n_blobs": "50", "curve": "off"},
    "tradeoff": {arm.key: "off" for arm in ARMS["modes"]},
    "guarantee": {"n": "50", "measure": "off", "accountants": "off"},
    "paper": {},
    "my_data": {},
}
OTHER_HOSTS = ("--server.address", "0.0.0.0", "--server.allowedHosts", "127.0.0.1", "--server.allowedHosts")
OTHER_HOSTS += ("*.school.example",)
OTHER_FRAME = {"DPGRAMS_FRAME_ANCESTORS": "https://school.example"}
TINY_APP = """
import secrets
import streamlit as st
from pages._ui.server import app as server

@st.cache_data
def born_data(): return secrets.token_hex(8)

@st.cache_resource
def born_resource(): return secrets.token_hex(8)

def main():
    st.write("born " + born_data() + " " + born_resource())
    if st.query_params.get("fail"):
        record = "a secret record"
        raise ValueError(record)

if __name__ == "__main__":
    main()
else:
    app = st.App(__file__, middleware=server.doors(), on_script_error=server.say_it_failed)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("doors")


@pytest.fixture(scope="module")
def address(folder):
    """The dashboard itself."""
    with running_server(folder, may_fail=True) as address:
        yield address


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A page of two caches and a failure behind the same doors, and the folder of its log."""
    folder = tmp_path_factory.mktemp("tiny")
    script = folder / "tiny_app.py"
    script.write_text(TINY_APP)
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "config.toml").write_text((ROOT / ".streamlit" / "config.toml").read_text())
    with running_server(folder, *OTHER_HOSTS, app=script, may_fail=True, **OTHER_FRAME) as address:
        yield address, folder


def answered(address, route="/", host=None, **headers):
    """Status, headers and body of an answer; ``host`` is sent as it stands."""
    place = address.removeprefix("http://")
    with closing(http.client.HTTPConnection(place, timeout=30)) as connection:
        connection.putrequest("GET", route, skip_host=True)
        connection.putheader("Host", place if host is None else host)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode(errors="replace")


@pytest.mark.parametrize("host", [*STRANGERS, *NO_HOSTS])
def test_a_rebound_name_gets_nothing(address, host):
    for route in ROUTES:
        status, _, text = answered(address, route, host)
        assert (status, text) == (421, doors.STRANGE_HOST), route


@pytest.mark.parametrize("host", STRANGERS)
def test_a_rebound_name_gets_no_websocket(address, host):
    with pytest.raises(InvalidStatus) as refused, Visitor(address, host=host):
        pass
    assert refused.value.response.status_code == 403


def test_hosts_that_the_server_was_told_of_are_served(address):
    port = address.rpartition(":")[2]
    for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", "LOCALHOST.", "[::1]"):
        assert answered(address, host=host)[0] == 200
    with Visitor(address) as visitor:
        assert "DP-GRAMS" in visitor.text(opened("modes"))


def test_every_answer_tells_the_browser_what_it_may_do_with_it(address):
    for route, host in (("/", None), ("/_stcore/health", None), ("/static/x", None), ("/", "evil.example")):
        headers = answered(address, route, host)[1]
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy["frame-ancestors"] == policy["default-src"] == "'self'"
        assert policy["object-src"] == "'none'"
        assert "unsafe" not in policy["script-src"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "camera=()" in headers["Permissions-Policy"]


def test_a_page_names_the_files_of_its_first_paint_and_they_are_there(address):
    with urllib.request.urlopen(f"{address}/modes") as page:
        named = re.findall(r"<\./(static/js/[\w.-]+)>; rel=modulepreload", page.headers["Link"])
        body = page.read().decode()
    assert {name.split("/")[-1].split(".")[0] for name in named} >= {"Html", "BidiComponent"}
    assert not [name for name in named if name in body]  # what the page names itself is asked for anyway
    for name in named:
        with urllib.request.urlopen(f"{address}/{name}") as file:
            assert "javascript" in file.headers["Content-Type"]
            assert "Link" not in file.headers


def test_a_page_comes_with_its_style_and_nothing_else_does(address):
    status, headers, body = answered(address, "/modes")
    assert status == 200
    assert body.count("stSliderTickBar") == 1
    assert body.index("<body>") < body.index("<style>") < body.index('id="root"')
    assert len(body.encode()) == int(headers["Content-Length"])
    assert not {"etag", "last-modified"} & {
        name.lower() for name in headers
    }  # those of the file, which is another text
    assert answered(address, "/favicon.png")[1]["ETag"]
    assert "stSliderTickBar" not in answered(address, "/_stcore/health")[2]


def test_another_host_and_another_frame_are_the_owners_to_add(tiny):
    address, _ = tiny
    assert answered(address, host="modes.school.example")[0] == 200
    assert answered(address, host="school.example.evil")[0] == 421
    assert "frame-ancestors https://school.example" in answered(address)[1]["Content-Security-Policy"]


def message(**fields) -> BackMsg:
    """A message of a browser; an operation of the server is given by its name."""
    operation = fields.pop("operation", None)
    found = BackMsg(**fields)
    if operation:
        getattr(found.backend_operation_request, operation).SetInParent()
    return found


@pytest.mark.parametrize(
    "sent",
    [
        message(clear_cache=True),
        message(set_run_on_save=True),
        message(debug_shutdown_runtime=True),
        message(operation="install_skills"),
        message(),
    ],
    ids=lambda sent: str(sent).strip() or "nothing",
)
def test_what_no_page_of_ours_sends_is_dropped(tiny, sent):
    address, folder = tiny
    born = re.compile(r"born \w+ \w+")
    with Visitor(address) as honest, Visitor(address) as other:
        before, written = born.findall(honest.text()), (folder / "log.txt").read_text()
        other.run()
        other.told_until_silence()
        other.send(sent)
        assert other.told_until_silence() == []
        assert born.findall(other.text()) == born.findall(honest.text()) == before  # the connection stands, too
    with Visitor(address) as later:
        assert born.findall(later.text()) == before
    assert (folder / "log.txt").read_text() == written


@pytest.mark.parametrize("sent", [b"\xff\xff\xff", b"\x5a\xff\x01", "a text", b"\x5a\x05" + b"\x12" * 3], ids=repr)
def test_what_is_no_message_ends_the_connection_without_a_word_in_the_log(address, folder, sent):
    written = (folder / "log.txt").read_text()
    with Visitor(address) as visitor:
        visitor.send(sent)
        assert visitor.closing_code() == doors.PROTOCOL_ERROR
    assert (folder / "log.txt").read_text() == written


def test_a_message_of_more_than_a_megabyte_ends_the_connection(address):
    large = BackMsg()
    large.rerun_script.query_string = "x" * 1_100_000
    with Visitor(address) as visitor:
        visitor.send(large)
        assert visitor.closing_code() == 1009


def test_what_nobody_foresaw_is_a_sentence_and_one_line_of_the_log_without_its_words(tiny):
    address, folder = tiny
    failing = BackMsg()
    failing.rerun_script.query_string = "fail=1"
    with Visitor(address) as visitor:
        told = visitor.text(failing)
        assert doors.UNFORESEEN.replace("'", "\\'") in told
        assert "born" in visitor.text()  # and the page goes on
    written = (folder / "log.txt").read_text()
    (line,) = [line for line in written.splitlines() if doors.FAILURE in line]
    assert "ValueError at" in line
    assert "tiny_app.py:" in line
    assert "secret" not in told + written
    assert "Traceback" not in told + written


def opened(name: str, forged: Iterable[WidgetState] = ()) -> BackMsg:
    """A visit of a page with its quickest settings, and with values that its controls may not have."""
    visit = BackMsg()
    visit.rerun_script.page_name = name
    visit.rerun_script.query_string = urlencode(QUICK[name])
    visit.rerun_script.widget_states.widgets.extend(forged)
    return visit


def controls_of(told: list[ForwardMsg]) -> list[str]:
    """The names of all controls that a page was told of."""
    elements = [message.delta.new_element for message in told if message.delta.HasField("new_element")]
    inner = [getattr(element, element.WhichOneof("type")) for element in elements if element.WhichOneof("type")]
    return sorted({item.id for item in inner if "id" in item.DESCRIPTOR.fields_by_name and item.id})


def forge(name: str, rng: np.random.Generator) -> WidgetState:
    """A value that the control surely does not send, of any type."""
    state = WidgetState(id=name)
    kind = rng.choice([field.name for field in WidgetState.DESCRIPTOR.fields if field.name != "id"])
    plain = {"string_value": "9" * 1000, "int_value": -(2**62), "double_value": 1e308, "bytes_value": b"\xff"}
    plain |= {"bool_value": True, "trigger_value": True, "json_value": "{", "json_trigger_value": "[7]"}
    if kind in plain:
        setattr(state, kind, plain[kind])
    else:
        getattr(state, kind).SetInParent()
    if kind.endswith("array_value"):
        getattr(state, kind).data.append("no such" if kind.startswith("string") else 10**9)
    return state


def answer_in(text: str) -> list[str]:
    return re.findall(r"data-testid=..answer.*", text)


@pytest.mark.parametrize("name", QUICK)
def test_forged_values_change_nothing_for_others_and_show_no_traceback(address, folder, name, rng):
    with Visitor(address) as honest, Visitor(address) as other:
        before = answer_in(honest.text(opened(name)))
        names = controls_of(other.run(opened(name)))
        assert len(names) >= 2
        for share in (0.1, 1.0):
            forged = [forge(each, rng) for each in names if rng.random() <= share] or [forge(names[0], rng)]
            told = other.run(opened(name, forged))
            assert not any(message.delta.new_element.HasField("exception") for message in told), forged
            assert "Traceback" not in "".join(map(str, told)), forged
        assert answer_in(honest.text(opened(name))) == before != []
    assert "Traceback" not in (folder / "log.txt").read_text()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_reaches_no_page(address, folder, number):
    written = (folder / "log.txt").read_text()
    with Visitor(address) as visitor:
        told = visitor.run(opened("modes"))
        seed = next(each for each in controls_of(told) if each.endswith("-seed"))
        visitor.told_until_silence()
        visitor.send(opened("modes", [WidgetState(id=seed, double_value=number)]))
        assert visitor.told_until_silence() == []
        assert answer_in(visitor.text(opened("modes"))) == answer_in("\n".join(map(str, told)))
    assert (folder / "log.txt").read_text() == written


@contextmanager
def locked(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_the_health_route_says_when_the_ledger_cannot_be_written(address, folder):
    Ledger(folder / "ledger.sqlite3")
    time.sleep(doors.HEALTH_SECONDS)
    assert answered(address, "/_stcore/health")[::2] == (200, "ok")
    with locked(folder / "ledger.sqlite3"):
        time.sleep(doors.HEALTH_SECONDS)
        status, _, sentence = answered(address, "/_stcore/health")
        assert (status, sentence) == (503, "The ledger is busy, so nothing can be charged now.")
        # A page of ours asks whether the server is there, before it connects.
        assert answered(address, "/_stcore/health", Sec_Fetch_Site="same-origin")[0] == 200
        assert answered(address, "/_stcore/health", Sec_Fetch_Site="cross-site")[0] == 503
    time.sleep(doors.HEALTH_SECONDS)
    assert answered(address, "/_stcore/health")[0] == 200


def test_how_much_others_use_the_server_is_not_told(address):
    with pytest.raises(HTTPError, match="404"):
        urllib.request.urlopen(address + "/_stcore/metrics")


def test_a_setting_that_cannot_be_used_ends_the_start_with_its_sentence(monkeypatch):
    monkeypatch.setenv("DPGRAMS_FRAME_ANCESTORS", "*")
    with pytest.raises(
        SystemExit, match=r"was not started\. DPGRAMS_FRAME_ANCESTORS = '\*' is not allowed: give 'self'"
    ):
        doors.doors()


def reaches(kind, *headers):
    """Whether a request with these headers gets past the door of the hosts."""
    reached, told = [], []

    async def app(*_):
        reached.append(True)

    async def send(message):
        told.append(message)

    scope = {"type": kind, "headers": [(name.encode(), value.encode()) for name, value in headers]}
    run_apart(doors.KnownHosts(app)(scope, None, send))
    assert bool(reached) != bool(told)  # a refusal is an answer
    return bool(reached)


HOST = ("host", "localhost:8501")


@pytest.mark.parametrize(
    ("kind", "headers", "enters"),
    [
        ("websocket", [HOST], True),  # not a browser
        ("websocket", [HOST, ("origin", "http://localhost:8501")], True),
        ("websocket", [HOST, ("origin", "https://localhost:8501")], True),  # behind a proxy with TLS
        ("websocket", [HOST, ("origin", "http://evil.example")], False),
        ("websocket", [HOST, ("origin", "http://localhost:9999")], False),
        ("websocket", [HOST, ("origin", "null")], False),
        ("websocket", [HOST, ("origin", "http://localhost:8501"), ("origin", "http://evil.example")], False),
        ("http", [HOST, ("origin", "http://evil.example")], True),  # reads of others are Streamlit's to refuse (CORS)
        ("http", [("host", "evil.example")], False),
    ],
)
def test_a_page_of_another_origin_is_not_connected(kind, headers, enters, monkeypatch):
    # Streamlit would look up this machine's address on the internet to decide it, and everybody would wait.
    monkeypatch.setattr(net_util, "get_external_ip", lambda: pytest.fail("it asked the internet"))
    monkeypatch.setattr(config, "get_option", {"server.allowedHosts": doors.LOCAL_NAMES}.get)
    monkeypatch.setattr(doors, "get_option", {"server.corsAllowedOrigins": []}.get)
    assert reaches(kind, *headers) is enters


def test_an_origin_of_the_owners_list_is(monkeypatch):
    monkeypatch.setattr(config, "get_option", {"server.allowedHosts": doors.LOCAL_NAMES}.get)
    monkeypatch.setattr(doors, "get_option", {"server.corsAllowedOrigins": ["https://dash.example"]}.get)
    assert reaches("websocket", HOST, ("origin", "https://dash.example"))
    assert not reaches("websocket", HOST, ("origin", "https://dash.example.evil"))


def test_a_server_without_its_settings_answers_to_this_machine_only(monkeypatch):
    given = {"server.allowedHosts": []}
    monkeypatch.setattr(doors, "get_option", given.get)
    monkeypatch.setattr(doors, "set_option", given.__setitem__)
    monkeypatch.setattr(doors, "keep_records_out_of_the_log", lambda: None)
    doors.doors()
    assert given["server.allowedHosts"] == ["localhost", "127.0.0.1", "::1"]


def test_a_server_takes_one_numerical_thread_for_each_run(monkeypatch):
    monkeypatch.setattr(doors, "keep_records_out_of_the_log", lambda: None)
    with threadpool_limits(2):  # as on a machine with two cores; the tests themselves have one
        assert {pool["num_threads"] for pool in threadpool_info()} == {2}
        doors.doors()
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
