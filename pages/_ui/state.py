"""What a page remembers: its settings in the session and in the URL, and the last ones that worked.

The URL holds plain values under the keys of the controls, and only those that differ from the
default; each is checked against its control before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

Settings = TypeVar("Settings")
PRESENTER = "presenter"  # on every page


def start(key: str, default: Any, parse: Callable[[str], Any]) -> None:
    """Give a control its first value in this session: from the URL if that is valid, else the default.

    ``parse`` returns the value or raises ValueError.
    """
    st.session_state.setdefault("_url_defaults", {})[key] = default
    if key in st.session_state:
        return
    value = default
    if key in st.query_params:
        try:
            value = parse(st.query_params[key])
        except (ValueError, OverflowError):
            st.session_state.setdefault("_url_refused", []).append(key)
    st.session_state[key] = value


def one_of_these(values: tuple[Any, ...] | list[Any]) -> Callable[[str], Any]:
    """A parser that accepts exactly the written forms of some values."""
    known = {text_of(value): value for value in values}

    def parse(text: str) -> Any:
        if text not in known:
            raise ValueError(text)
        return known[text]

    return parse


def number_within(kind: type, low: float, high: float, empty: bool = True) -> Callable[[str], Any]:
    """A parser for a number in a range; an empty text means no value, where there may be none."""

    def parse(text: str) -> Any:
        if text == "" and empty:
            return None
        value = kind(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return parse


def text_of(value: Any) -> str:
    """How a value is written in the URL."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)  # a link must give the same number back
    return str(value)


def write_url(keys: list[str]) -> None:
    """Put the current values of these controls into the URL, leaving out defaults and unknown names."""
    defaults = st.session_state.get("_url_defaults", {})
    wanted = {
        key: text_of(st.session_state[key])
        for key in [*keys, PRESENTER]
        if key in st.session_state and st.session_state[key] != defaults.get(key)
    }
    if dict(st.query_params) != wanted:
        st.query_params.from_dict(wanted)


def refused_keys() -> list[str]:
    """Names in the URL whose values could not be used; told once."""
    return st.session_state.pop("_url_refused", [])


def remember_good(page: str, settings: Any) -> None:
    """Keep settings that worked, so that a bad value never empties the page."""
    st.session_state[f"_{page}_last_good"] = settings


def last_good(page: str, default: Settings) -> Settings:
    """The last settings that worked, or a default."""
    return st.session_state.get(f"_{page}_last_good", default)
