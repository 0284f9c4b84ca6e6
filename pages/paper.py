"""Paper: do its numbers hold, and with which guarantee?"""

from __future__ import annotations

import streamlit as st

from pages._ui import frame, paper_show, state
from pages._ui.paper_controls import paper_controls

frame.open_page("Do the paper's numbers hold, and with which guarantee?", "pages/paper.py")
st.html(frame.ASSETS / "paper.css")
known = paper_show.counted()
paper_show.answer(known)
counts, remark = st.columns([5, 3], gap="medium", vertical_alignment="center")
with counts:
    paper_show.totals(known)
with remark:
    paper_show.unproven()
place = paper_controls()
if refused := state.refused_keys():
    st.info(f"The link's values for {', '.join(refused)} cannot be used; the defaults stand instead.")
show_one = paper_show.printed_table if place.printed else paper_show.figure
show_one(place.experiment, place.table, place.measure)
paper_show.everything()
