"""What of a page waits to be sent when a part of it is drawn anew: it is sent first, all of it and in its order.

Before a part (a fragment) is drawn anew, Streamlit throws away what it drew of this part before and has not sent yet.
It knows a part's messages by the name of the part that they carry.  A message that only names what the browser has
already (``global.minCachedMessageSize``) carries none, so it is kept although the box that it belongs into, or what
stands before it in this box, was thrown away.  A browser that is told to fill a box it never heard of ends the page: it
turns white, and the press that was on its way is lost.  That happens where the server is too busy to send between two
drawings.  Thrown away is only what would be drawn over soon, so nothing is lost by sending it, as a quick server does.
"""

from __future__ import annotations

from streamlit.runtime.forward_msg_queue import ForwardMsgQueue


def send_all_before_a_part() -> None:
    """The one change to Streamlit's own code: from now on its queue throws nothing away before a part is drawn."""
    clear = ForwardMsgQueue.clear
    if clear.__module__ == __name__:
        return  # it is done

    def keep_for_a_part(
        self: ForwardMsgQueue, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: list[str] | None = None
    ) -> None:
        if fragment_ids_this_run is None:
            clear(self, retain_lifecycle_msgs)
        else:
            self._delta_index_map = {}  # what comes now takes the place of nothing that waits

    ForwardMsgQueue.clear = keep_for_a_part  # type: ignore[method-assign]
