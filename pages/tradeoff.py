"""Tradeoff: what does privacy cost me?"""

from __future__ import annotations

import streamlit as st

from pages._ui import layout, state
from pages._ui.controls import one_of_few
from pages._ui.tradeoff.parts import QUESTION, curve, kernel, needed, sensitivity, sources
from pages._ui.tradeoff.settings import PARTS, RESEARCH, lab_controls

SHOW = {"curve": curve, "sensitivity": sensitivity, "kernel": kernel, "sources": sources, "needed": needed}

layout.open_page(QUESTION, "pages/tradeoff.py")
settings = lab_controls()
state.tell_refused()
open_now = st.session_state["lab_part"]  # what is for researchers is offered by the navigation and by links
offered = PARTS if open_now in RESEARCH else {name: PARTS[name] for name in PARTS if name not in RESEARCH}
SHOW[one_of_few("Part of the page", "lab_part", offered, label_visibility="collapsed")](settings)
