"""A press whose answer is drawn before the last drawing was sent: what goes out can be shown, in its order."""

from __future__ import annotations

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from pages._ui.server import app as server
from pages._ui.server.unsent import send_all_before_a_part

PART = "live"


def box(*path: int, part: str = PART) -> ForwardMsg:
    message = ForwardMsg()
    message.metadata.delta_path.extend(path)
    message.delta.fragment_id = part
    message.delta.add_block.allow_empty = True
    return message


def words(*path: int, part: str = PART) -> ForwardMsg:
    message = ForwardMsg()
    message.metadata.delta_path.extend(path)
    message.delta.fragment_id = part
    message.delta.new_element.markdown.body = "words"
    return message


def named_only(*path: int) -> ForwardMsg:
    """What the browser has already, so that it is not sent again."""
    message = ForwardMsg()
    message.metadata.delta_path.extend(path)
    message.ref_hash = "of a picture"
    return message


def can_be_shown(messages: list[ForwardMsg]) -> bool:
    """As the browser asks: the box is there, and what stands before it in the box."""
    counts = {(0,): 0}  # how many stand in each box
    for message in messages:
        path = tuple(message.metadata.delta_path)
        if path[:-1] not in counts or path[-1] > counts[path[:-1]]:
            return False
        counts[path[:-1]] = max(counts[path[:-1]], path[-1] + 1)
        if message.HasField("delta") and message.delta.HasField("add_block"):
            counts[path] = 0
    return True


@pytest.fixture
def mended(monkeypatch):
    """A server was started."""
    monkeypatch.setattr(ForwardMsgQueue, "clear", ForwardMsgQueue.clear)  # so that it is put back
    monkeypatch.setattr(server, "keep_records_out_of_the_log", lambda: None)
    server.doors()


@pytest.mark.usefixtures("mended")
def test_what_waits_to_be_sent_before_a_part_is_drawn_anew_can_be_shown():
    drawn = [box(0, 0), words(0, 0, 0), box(0, 0, 1), words(0, 0, 1, 0), named_only(0, 0, 1, 1), words(0, 1, part="")]
    queue = ForwardMsgQueue()
    for message in drawn:
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[PART])
    again = [box(0, 0), words(0, 0, 0)]
    for message in again:
        queue.enqueue(message)
    assert queue.flush() == drawn + again
    assert can_be_shown(drawn + again)
    assert not can_be_shown([drawn[4]])


@pytest.mark.usefixtures("mended")
def test_a_whole_page_throws_away_what_waits():
    send_all_before_a_part()  # a second time changes nothing
    queue = ForwardMsgQueue()
    queue.enqueue(words(0, 0))
    queue.clear(retain_lifecycle_msgs=True)
    assert queue.is_empty()
