"""Tradeoff: what does privacy cost me?"""

from __future__ import annotations

import streamlit as st

from pages._ui import frame, state
from pages._ui.tradeoff_choices import PARTS, chosen
from pages._ui.tradeoff_controls import lab_controls
from pages._ui.tradeoff_curve import curve
from pages._ui.tradeoff_needed import needed
from pages._ui.tradeoff_sections import kernel, sensitivity, sources

SHOW = {"curve": curve, "sensitivity": sensitivity, "kernel": kernel, "sources": sources, "needed": needed}

frame.open_page("What does privacy cost me?", "pages/tradeoff.py")
settings = lab_controls()
if refused := state.refused_keys():
    st.info(f"The link's values for {', '.join(refused)} cannot be used; the defaults stand instead.")
SHOW[chosen("lab_part", PARTS, "Part of the page", label_shown=False)](settings)
