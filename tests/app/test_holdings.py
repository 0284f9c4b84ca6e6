"""What visitors hold of their files: counted, let go once it is not used, and gone when they are."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.delta_generator import DeltaGenerator
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.testing.v1 import AppTest

from dpgrams_core.model.environment import Settings
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.progress import Stopped
from dpgrams_core.own_data.reading import table as table_reader
from dpgrams_core.own_data.reading.table import read_table
from dpgrams_core.own_data.table import read_upload
from dpgrams_core.sweeps.run import plan_cells, run_cell
from pages._ui.my_data.state import Own, Request
from pages._ui.server import visitors
from pages._ui.server.uploads import read_and_let_go
from pages._ui.server.visitors import Holdings, VisitDoor
from pages._ui.tradeoff.files import OpenedFile, parquet_of, read_results
from tests.places import ROOT
from tests.racing import run_apart

ROWS = b"age,pay\n" + b"".join(b"%d,%d\n" % (k, 10 * k) for k in range(20, 80))
SETTINGS = Settings(ledger=Path("unused"), upload_bytes_per_visitor=3_000, upload_bytes_in_all=5_000)


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "ledger.sqlite3"))


class Store:
    """The files that were put into Streamlit's store in a test, and those that are still there."""

    def __init__(self) -> None:
        self.added: list[str] = []
        self._managers: list[MemoryUploadedFileManager] = []

    def add(self, manager: MemoryUploadedFileManager, name: str) -> None:
        self.added.append(name)
        self._managers.append(manager)

    @property
    def left(self) -> list[str]:
        held = [files for manager in self._managers for files in manager.file_storage.values()]
        return [file.name for files in held for file in files.values()]


@pytest.fixture
def stored(monkeypatch):
    store, add = Store(), MemoryUploadedFileManager.add_file

    def noted(manager, session_id, file):
        store.add(manager, file.name)
        add(manager, session_id, file)

    monkeypatch.setattr(MemoryUploadedFileManager, "add_file", noted)
    return store


def page(name: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=120).run()
    assert not app.exception
    return app


def dropped(app: AppTest, content: bytes, name: str) -> AppTest:
    app.file_uploader[0].set_value((name, content, "text/csv"))
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize("content", [ROWS, b"no numbers"], ids=["read", "refused"])
def test_an_upload_is_let_go_once_it_was_read(content, stored):
    app = dropped(page("my_data"), content, "people.csv")
    assert stored.added == ["people.csv"]
    assert stored.left == []
    assert (app.session_state["_own"].table is None) == (content != ROWS)
    app.run()
    assert len(app.error) == (content != ROWS)  # it says so as long as there is no other file


def arrays_of(own: Own) -> list:
    """Weak references to all numbers of a file."""
    request = Request(names=("age",), box=((0, 100),), kind="modes")
    found = [own.table, *own.table.values.values(), own.data(request), own.data(request).points]
    assert own.held_bytes == 60 * 8 * 3
    return [weakref.ref(item) for item in found]


def test_another_file_frees_the_one_before():
    app = dropped(page("my_data"), ROWS, "people.csv")
    app.multiselect[0].set_value(["age"])
    app.run()
    gone = arrays_of(app.session_state["_own"])
    next(item for item in app.button if item.label == "Use another file").click()
    app.run()
    assert not app.exception
    assert len(app.file_uploader) == 1
    gc.collect()
    assert [item() for item in gone] == [None] * len(gone)
    assert app.session_state["_own"].held_bytes == 0


def test_a_results_file_is_let_go_once_it_was_read_and_once_it_is_closed(stored):
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=2)
    app = AppTest.from_function(box, default_timeout=120).run()
    dropped(app, parquet_of([run_cell(cell)]), "mine.parquet")
    assert (stored.added, stored.left) == (["mine.parquet"], [])
    file = app.session_state["_lab_file"]
    assert (file.name, len(file.results), len(app.file_uploader)) == ("mine.parquet", 1, 0)
    assert file.held_bytes > 0
    gone = weakref.ref(file.results[0])
    app.button[0].click()
    app.run()
    gc.collect()
    assert (gone(), file.held_bytes, len(app.file_uploader)) == (None, 0, 1)
    dropped(app, b"PAR1 and nothing else", "other.parquet")
    assert stored.left == []
    assert "other.parquet does not hold the results" in file.problem


def box():
    from pages._ui.tradeoff.files import file_box

    file_box()


class Held:
    def __init__(self, size: int) -> None:
        self.held_bytes = size

    def leave(self) -> None:
        self.held_bytes = 0


def test_room_is_what_neither_the_visitor_nor_all_together_have_taken(monkeypatch):
    file = SimpleNamespace(data=bytes(480), name="n" * 10, type="t" * 10)
    monkeypatch.setattr(visitors, "stored_files", lambda: {"one": [file, file], "two": [file]})
    known, held = Holdings(), Held(1_000)
    assert known.room("one", SETTINGS) == 2_000
    known.keep("one", held)
    known.keep("one", held)  # as every run of the page does
    assert known.room("one", SETTINGS) == 1_000
    known.expect("two", 2_000)
    assert [known.room(name, SETTINGS) for name in ("one", "two", "three")] == [500, 500, 500]
    assert known.reserve("three", SETTINGS) == 500
    assert known.room("one", SETTINGS) == 0
    known.expect("three", -500)
    known.expect("two", -2_000)
    known.forget("one")
    assert known.room("three", SETTINGS) == 3_000
    known.keep("three", other := Held(2_500))
    assert known.room("three", SETTINGS) == 500
    del other
    gc.collect()
    assert known.room("three", SETTINGS) == 3_000  # what nobody has any more is not counted


def test_all_that_is_read_from_a_file_can_be_counted_and_left():
    own = Own(table=read_table(ROWS), source="upload")
    assert own.held_bytes == 60 * 8 * 2
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=2)
    file = OpenedFile("a", read_results(parquet_of([run_cell(cell)]), "a"))
    for holder in (own, file):
        assert holder.held_bytes > 0
        holder.leave()
        assert holder.held_bytes == 0
    assert Own(table=read_table(ROWS), source="local").held_bytes == 0


def first_message(session: str) -> dict:
    message = ForwardMsg()
    message.new_session.initialize.session_id = session
    return {"type": "websocket.send", "bytes": message.SerializeToString()}


def test_a_visitor_who_comes_back_in_time_keeps_the_file_and_one_who_does_not_loses_it(monkeypatch):
    monkeypatch.setattr(visitors, "SECONDS_AWAY", 0.2)
    known, closed = Holdings(), []
    monkeypatch.setattr(visitors, "HOLDINGS", known)
    here: set[str] = set()
    server = SimpleNamespace(is_active_session=here.__contains__, close_session=closed.append)
    monkeypatch.setattr(visitors.runtime, "exists", lambda: True)
    monkeypatch.setattr(visitors.runtime, "get_instance", lambda: server)
    stays, goes = Held(1), Held(1)
    known.keep("stays", stays)
    known.keep("goes", goes)

    async def connection(scope, receive, send):
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "bytes": b"\xff no message"})
        await send(first_message(scope["session"]))
        here.add(scope["session"])
        await receive()
        here.discard(scope["session"])

    async def story() -> None:
        door = VisitDoor(connection)

        async def visit(session: str, seconds: float) -> None:
            async def send(_):
                pass

            scope = {"type": "websocket", "session": session, "headers": []}
            await door(scope, lambda: asyncio.sleep(seconds), send)

        await asyncio.gather(visit("stays", 0), visit("goes", 0))
        await asyncio.sleep(0.1)
        back = asyncio.create_task(visit("stays", 0.4))
        await asyncio.sleep(0.3)
        assert closed == ["goes"]
        await back

    run_apart(story())
    for thread in threading.enumerate():
        if thread.name == "forget-a-visitor":
            thread.join(10)
    assert (goes.held_bytes, stays.held_bytes, closed) == (0, 1, ["goes"])


@pytest.fixture
def server(monkeypatch):
    """A server that knows who is here, and notes which sessions are closed."""
    monkeypatch.setattr(visitors, "SECONDS_AWAY", 0.1)
    monkeypatch.setattr(visitors, "HOLDINGS", Holdings())
    here, closed = set(), []
    found = SimpleNamespace(here=here, closed=closed, is_active_session=here.__contains__, close_session=closed.append)
    monkeypatch.setattr(visitors.runtime, "exists", lambda: True)
    monkeypatch.setattr(visitors.runtime, "get_instance", lambda: found)
    return found


async def visited(door: VisitDoor, asked: str, seconds: float) -> None:
    """A connection of a browser that asks for a session to come back to."""

    async def send(_):
        pass

    protocols = [(b"sec-websocket-protocol", f"streamlit, a-token, {asked}".encode())]
    scope = {"type": "websocket", "headers": protocols}
    await door(scope, lambda: asyncio.sleep(seconds), send)


async def until(true) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.01)


def test_a_visitor_who_came_back_without_a_rerun_is_seen_to_come_and_to_go(server):
    async def connection(_, receive, send):
        await send({"type": "websocket.accept"})
        server.here.add("mine")
        await receive()
        server.here.discard("mine")

    async def story() -> None:
        door = VisitDoor(connection)
        door._came("mine")
        door._went("mine")
        await visited(door, "mine", 0.3)
        assert server.closed == []
        await until(lambda: server.closed)

    run_apart(story())
    assert server.closed == ["mine"]


def test_a_visitor_who_is_given_another_session_leaves_that_one(server):
    async def connection(_, receive, send):
        await send({"type": "websocket.accept"})
        await send(first_message("new"))
        server.here.add("new")
        await receive()
        assert server.closed == ["old"]
        server.here.discard("new")

    async def story() -> None:
        await visited(VisitDoor(connection), "old", 0.4)
        await until(lambda: len(server.closed) == 2)

    run_apart(story())
    assert server.closed == ["old", "new"]


def test_a_connection_that_is_refused_is_nobodys_visit(server):
    async def connection(_, receive, send):
        await receive()
        await send({"type": "websocket.close"})

    door = VisitDoor(connection)
    run_apart(visited(door, "another", 0))
    assert not door._leaving


def test_a_visitor_who_is_here_by_a_connection_that_nobody_saw_is_looked_for_again(server):
    async def story() -> None:
        door = VisitDoor(visited)
        server.here.add("mine")
        door._came("mine")
        door._went("mine")
        await asyncio.sleep(0.25)
        assert server.closed == []
        server.here.discard("mine")
        await until(lambda: server.closed)

    run_apart(story())
    assert server.closed == ["mine"]


def test_whoever_waits_for_other_files_is_told_and_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(table_reader, "LONGEST_WAIT", 0.5)
    told: list[int] = []
    with table_reader.reading(), table_reader.reading():
        with pytest.raises(DataError, match="Too many files are being read here"):
            read_upload(ROWS, "", SETTINGS, waiting=lambda: told.append(1))

        def gone() -> None:
            raise KeyboardInterrupt  # as Streamlit ends the run of a visitor who left

        with pytest.raises(KeyboardInterrupt):
            read_upload(ROWS, "", SETTINGS, waiting=gone)
    assert told
    assert read_upload(ROWS, "", SETTINGS).n_rows == 60


def test_a_file_is_read_only_as_long_as_its_visitor_is_here(monkeypatch):
    def stop() -> None:
        raise Stopped

    monkeypatch.setattr(visitors, "get_run_yield_check", lambda: stop)
    file = SimpleNamespace(getvalue=lambda: ROWS, file_id="1", close=lambda: None)

    def read(content, *_):
        return read_upload(content, "a.csv", SETTINGS).n_rows

    assert read_and_let_go(file, SETTINGS, read) == 60
    monkeypatch.setattr(visitors, "connected", lambda _: False)
    with pytest.raises(Stopped):
        read_and_let_go(file, SETTINGS, read)


def test_the_page_tells_a_visitor_to_wait(monkeypatch):
    monkeypatch.setattr(table_reader, "LONGEST_WAIT", 0.5)
    said = []
    monkeypatch.setattr(DeltaGenerator, "info", lambda _, text, **__: said.append(text))
    app = page("my_data")
    with table_reader.reading(), table_reader.reading():
        dropped(app, ROWS, "people.csv")
    assert "Files of other visitors are being read; yours is next." in said
    assert "Too many files are being read here" in app.error[0].value
    assert dropped(app, ROWS, "people.csv").session_state["_own"].table.n_rows == 60


def test_whoever_waits_takes_no_room_from_the_others(monkeypatch):
    """Twenty visitors at once would otherwise be refused for want of room that nobody has taken."""
    monkeypatch.setattr(table_reader, "LONGEST_WAIT", 0.5)
    known, app, seen = Holdings(), page("my_data"), []
    monkeypatch.setattr("pages._ui.server.uploads.HOLDINGS", known)
    monkeypatch.setattr(DeltaGenerator, "info", lambda *_, **__: seen.append(known.room("another", SETTINGS)))
    with table_reader.reading(), table_reader.reading():
        dropped(app, ROWS, "people.csv")
    assert set(seen) == {3_000}


def test_where_there_is_no_room_the_page_says_so(monkeypatch):
    monkeypatch.setattr(Holdings, "room", lambda *_: 0)
    app = page("my_data")
    assert "no room for another file" in app.warning[0].value
    assert "no room for another file" in dropped(app, ROWS, "people.csv").error[0].value
