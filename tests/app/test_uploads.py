"""Uploads stay in memory, and the page allows no larger ones than the server takes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.formparsers import MultiPartParser
from streamlit import config
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.testing.v1 import AppTest
from streamlit.web.server.starlette.starlette_routes import create_upload_routes

from dpgrams_core import SpecError
from dpgrams_core.model.environment import Settings
from pages._ui.my_data import file as my_data_file
from pages._ui.server import uploads
from tests.racing import run_apart

CONTENT = b"a,b\n" + b"1,2\n" * 700_000
ONE_MEGABYTE = 1024 * 1024


def uploaded(content: bytes) -> bytes:
    """What Streamlit holds of a file that was sent to its own route for uploads."""
    held = MemoryUploadedFileManager("/_stcore/upload_file")
    everyone = SimpleNamespace(is_active_session=lambda _: True)
    app = Starlette(routes=create_upload_routes(everyone, held, ""))
    head = b'--mark\r\nContent-Disposition: form-data; name="file"; filename="people.csv"\r\n\r\n'
    body = head + content + b"\r\n--mark--\r\n"
    pieces = [body[begin : begin + 65_536] for begin in range(0, len(body), 65_536)]
    sent = []

    async def receive():
        return {"type": "http.request", "body": pieces.pop(0), "more_body": len(pieces) > 0}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "PUT",
        "path": "/_stcore/upload_file/session/file",
        "raw_path": b"/_stcore/upload_file/session/file",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(b"content-type", b"multipart/form-data; boundary=mark")],
    }
    run_apart(app(scope, receive, send))
    assert sent[0]["status"] == 204
    return held.get_files("session", ["file"])[0].data


@pytest.fixture
def written(monkeypatch):
    """The files that went to the disk, one entry for each."""
    found = []
    to_disk = tempfile.SpooledTemporaryFile.rollover
    monkeypatch.setattr(
        tempfile.SpooledTemporaryFile, "rollover", lambda file: (found.append(file._rolled), to_disk(file))
    )
    before = config.get_option("server.enableXsrfProtection")
    config.set_option("server.enableXsrfProtection", False)
    yield found
    config.set_option("server.enableXsrfProtection", before)


def test_an_upload_is_never_on_the_disk(written, monkeypatch):
    monkeypatch.setattr(MultiPartParser, "spool_max_size", ONE_MEGABYTE)  # as Starlette has it
    assert uploaded(CONTENT) == CONTENT
    assert written == [False]  # so this test sees it
    written.clear()
    uploads.keep_uploads_in_memory()
    assert uploaded(CONTENT) == CONTENT
    assert written == []


def test_the_page_with_the_uploader_keeps_files_in_memory():
    assert my_data_file.largest_upload.__module__ == uploads.__name__  # so it is imported before there is an uploader
    assert MultiPartParser.spool_max_size == sys.maxsize


@pytest.mark.parametrize(("allowed", "widget"), [(200_000_000, 200), (1_500_000, 2), (20, 1)])
def test_the_widget_allows_what_the_owner_does(allowed, widget):
    assert uploads.largest_upload(Settings(ledger=Path("unused"), max_upload_bytes=allowed)) == widget


def test_more_than_the_server_takes_is_refused_with_a_way_forward():
    taken = st.get_option("server.maxUploadSize")
    allowed = Settings(ledger=Path("unused"), max_upload_bytes=(taken + 1) * uploads.MEGABYTE)
    with pytest.raises(SpecError) as caught:
        uploads.largest_upload(allowed)
    assert caught.value.field == "DPGRAMS_MAX_UPLOAD_MB"
    assert f"at most {taken} MB" in str(caught.value)
    assert f"--server.maxUploadSize={taken + 1}" in str(caught.value)


def opened_file():
    from pathlib import Path

    from dpgrams_core.model.environment import Settings
    from dpgrams_core.own_data.reading.table import read_table
    from pages._ui.my_data.file import file_step
    from pages._ui.my_data.state import Own

    own = Own(table=read_table(b"age,pay\n" + b"1,2\n\n" * 20), source="upload")
    file_step(own, Settings(ledger=Path("unused")))


def test_all_that_is_said_of_a_file_is_named():
    page = AppTest.from_function(opened_file, default_timeout=120).run()
    assert not page.exception
    said = [item.value for item in page.caption]
    assert "and the number of rows. Nothing else about the file is shown" in said[0]
    assert "19 blank lines were skipped." in said[1]
