"""Tradeoff: what does privacy cost me?"""

from __future__ import annotations

import streamlit as st

from pages._ui import frame, state
from pages._ui.tradeoff_controls import PARTS, chosen, lab_controls
from pages._ui.tradeoff_curve import curve

frame.open_page("What does privacy cost me?", "pages/tradeoff.py")
settings = lab_controls()
if refused := state.refused_keys():
    st.info(f"The link's values for {', '.join(refused)} cannot be used; the defaults stand instead.")
part = chosen("lab_part", PARTS, "Part of the page")
curve(settings)
