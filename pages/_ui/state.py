"""What a page remembers between reruns."""

from __future__ import annotations

from typing import TypeVar

import streamlit as st

Settings = TypeVar("Settings")


def remember_good(page: str, settings: Settings) -> None:
    """Keep settings that worked, so that a bad value never empties the page."""
    st.session_state[f"_{page}_last_good"] = settings


def last_good(page: str, default: Settings) -> Settings:
    """The last settings that worked, or a default."""
    return st.session_state.get(f"_{page}_last_good", default)
