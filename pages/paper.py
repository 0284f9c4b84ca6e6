"""Paper: do its numbers hold, and with which guarantee?"""

from __future__ import annotations

import streamlit as st

from pages._ui import layout, state
from pages._ui.paper import show as paper_show

layout.open_page("Do the paper's numbers hold, and with which guarantee?", "pages/paper.py")
known, again = paper_show.counted()
paper_show.answer(known, again)
if layout.presenting():
    chosen = paper_show.paper_controls()
    state.tell_refused()
    paper_show.on_stage(chosen)
layout.presented()
counts, remark = st.columns([5, 3], gap="medium", vertical_alignment="center")
with counts:
    paper_show.totals(known, again)
with remark:
    paper_show.rests_on()
place = paper_show.paper_controls()
state.tell_refused()
show_one = paper_show.rivals if place.rival else paper_show.printed_table if place.printed else paper_show.figure
show_one(place.experiment, place.table, place.measure)
paper_show.everything()
