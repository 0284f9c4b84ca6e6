"""What a page remembers: its settings in the session and in the URL.

The URL holds plain values under the keys of the controls, and only those that differ from the
default; each is checked against its control before it is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

PRESENTER = "presenter"  # on every page
DECK, SCENE = "deck", "scene"  # what is presented, and where in it the speaker is
SHOWING = (PRESENTER, DECK, SCENE)  # how a page is shown, and no setting of it
LONGEST_TEXT = 6_000  # of one value in the address; a longer deck is kept as a file
TURN = "_turn"  # what goes a step on or back on a page that has steps of its own; it says whether there was one
STAGE = "_stage"  # while a deck is saved: the line of the scene that is shown, and its pictures by their keys
LINE = "line"  # its name there
OPENED = "_opened_link"  # the values of a settings file, until the controls of its page have taken them


def start(key: str, default: Any, parse: Callable[[str], Any]) -> None:
    """Give a control its first value in this session: from the URL if that is valid, else the default.

    ``parse`` returns the value or raises ValueError with what is allowed.
    """
    st.session_state.setdefault("_url_defaults", {})[key] = default
    opened = None if key in SHOWING else st.session_state.get(OPENED)
    if key in st.session_state and opened is None:
        return
    value, given = default, st.query_params if opened is None else opened
    if key in given:
        try:
            value = parse(given[key])
        except (ValueError, OverflowError) as error:
            st.session_state.setdefault("_url_refused", {})[key] = f"{key} = {_plain(given[key])}: {error}."
    st.session_state[key] = value


def _plain(text: str) -> str:
    """A value of a link as it may be shown: the link may come from anybody, so only a short plain word or number."""
    return text if re.fullmatch(r"[\w .+-]{1,20}", text, re.ASCII) else "what it says"


def one_of_these(values: Sequence[Any]) -> Callable[[str], Any]:
    """A parser that accepts exactly the written forms of some values."""
    known = {text_of(value): value for value in values}

    def parse(text: str) -> Any:
        if text not in known:
            words = [name or "nothing" for name in known]
            raise ValueError(
                f"it must be one of {', '.join(words if len(words) < 9 else [*words[:3], '…', words[-1]])}"
            )
        return known[text]

    return parse


def number_within(kind: type, low: float, high: float, empty: bool = True) -> Callable[[str], Any]:
    """A parser for a number in a range; an empty text means no value, where there may be none."""

    def parse(text: str) -> Any:
        if text == "" and empty:
            return None
        try:
            value = kind(text)
        except (ValueError, OverflowError):
            value = math.nan
        if not low <= value <= high:
            what = "whole number" if kind is int else "number"
            raise ValueError(f"it must be a {what} between {low:,.0f} and {high:,.0f}")
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


def write_url(keys: list[str], leave_others: bool = False) -> None:
    """Put the values of these controls into the URL, without defaults and, unless others are left, unknown names."""
    st.session_state.pop(OPENED, None)
    defaults = st.session_state.get("_url_defaults", {})
    wanted = {
        key: text_of(st.session_state[key])
        for key in [*keys, *SHOWING]
        if key in st.session_state and st.session_state[key] != defaults.get(key)
    }
    wanted = {key: text for key, text in wanted.items() if len(text) <= LONGEST_TEXT}
    if leave_others:
        wanted = {name: text for name, text in st.query_params.items() if name not in [*keys, *SHOWING]} | wanted
    if dict(st.query_params) != wanted:
        st.query_params.from_dict(wanted)


def on_stage(name: str, content: Any) -> None:
    """Keep what the projector shows, where a deck is being saved (exports/present.py)."""
    if STAGE in st.session_state:
        st.session_state[STAGE][name] = content


def tell_refused() -> None:
    """Say, once, which names in the URL had values that could not be used, and what is allowed."""
    if refused := st.session_state.pop("_url_refused", {}):
        why = " ".join(refused.values())
        st.info(f"The link's values for {', '.join(refused)} cannot be used; the defaults stand instead. {why}")
