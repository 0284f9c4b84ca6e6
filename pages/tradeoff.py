"""Tradeoff: what does privacy cost me?"""

from __future__ import annotations

from pages._ui import layout, state
from pages._ui.controls import one_of_few
from pages._ui.tradeoff.parts import QUESTION, curve, kernel, needed, sensitivity, sources
from pages._ui.tradeoff.settings import PARTS, lab_controls

SHOW = {"curve": curve, "sensitivity": sensitivity, "kernel": kernel, "sources": sources, "needed": needed}

layout.open_page(QUESTION, "pages/tradeoff.py")
settings = lab_controls()
state.tell_refused()
SHOW[one_of_few("Part of the page", "lab_part", PARTS, label_visibility="collapsed")](settings)
