"""A link is followed while a part of the page fills in: what that part still asks for does not bring the page back."""

from __future__ import annotations

import asyncio

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages._ui.server.app import doors
from pages._ui.server.late_looks import LateLooks, Turning

OLD, NEW, OTHER = "tradeoff", "paper", "modes"


def press(page: str) -> BackMsg:
    message = BackMsg()
    message.rerun_script.page_script_hash = page
    return message


def look(page: str) -> BackMsg:
    message = press(page)
    message.rerun_script.is_auto_rerun = True
    message.rerun_script.fragment_id = "a part"
    return message


def shown(page: str, *parts: str) -> ForwardMsg:
    message = ForwardMsg()
    message.new_session.page_script_hash = page
    message.metadata.run.fragment_ids.extend(parts)
    return message


def on(*happened: BackMsg | ForwardMsg) -> Turning:
    """A visitor to whom this happened, on the old page at first."""
    turning = Turning()
    for message in (shown(OLD), *happened):
        if isinstance(message, ForwardMsg):
            turning.hear(message)
        else:
            assert not turning.is_late(message)
    return turning


def test_a_part_of_the_page_that_is_open_is_drawn_again_and_again():
    assert not on(look(OLD), shown(OLD, "a part"), press(OLD), shown(OLD)).is_late(look(OLD))


def test_a_look_after_the_press_on_a_link_is_late():
    assert on(press(NEW)).is_late(look(OLD))


def test_a_look_that_crosses_the_new_page_is_late():
    assert on(press(NEW), shown(NEW)).is_late(look(OLD))


def test_a_drawing_of_the_old_page_that_was_under_way_changes_nothing():
    assert on(press(NEW), shown(OLD), shown(OLD, "a part")).is_late(look(OLD))


@pytest.mark.parametrize(
    "back",
    [
        (shown(NEW), press(OLD), shown(OLD)),  # by a link
        (press(OLD),),  # before the other page was there
        (shown(NEW), shown(OLD)),  # the other page sent the visitor back
        (shown(NEW), press(OTHER), shown(OTHER), press(OLD), shown(OLD)),
    ],
)
def test_back_on_the_page_its_parts_are_drawn_again(back):
    assert not on(press(NEW), *back).is_late(look(OLD))


def test_a_page_that_the_server_chose_has_its_looks():
    assert not on(shown(OTHER)).is_late(look(OTHER))
    first = Turning()
    assert not first.is_late(press(""))
    first.hear(shown(NEW))
    assert not first.is_late(look(NEW))


def test_the_door_lets_a_press_through_and_no_late_look():
    passed, went_out = [], []

    async def app(_scope, receive, send):
        await send({"type": "websocket.send", "bytes": shown(OLD).SerializeToString()})
        while (message := await receive())["type"] == "websocket.receive":
            passed.append(BackMsg.FromString(message["bytes"]))

    arriving = iter([look(OLD), press(NEW), look(OLD), press(NEW)])

    async def receive():
        message = next(arriving, None)
        if message is None:
            return {"type": "websocket.disconnect"}
        return {"type": "websocket.receive", "bytes": message.SerializeToString()}

    async def send(message):
        went_out.append(ForwardMsg.FromString(message["bytes"]))

    asyncio.run(LateLooks(app)({"type": "websocket"}, receive, send))
    assert passed == [look(OLD), press(NEW), press(NEW)]
    assert went_out == [shown(OLD)]


def test_a_server_has_the_door(monkeypatch):
    monkeypatch.setattr("pages._ui.server.app.keep_records_out_of_the_log", lambda: None)
    monkeypatch.setattr("streamlit.runtime.forward_msg_queue.ForwardMsgQueue.clear", lambda *_: None)  # put back after
    names = [door.cls.__name__ for door in doors()]
    assert names.index("LateLooks") > names.index("WantedMessages")
