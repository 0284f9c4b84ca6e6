"""Twins of this session's paid releases, as data sets of the Tradeoff page. No session sees the twin of another."""

from __future__ import annotations

from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from dpgrams_core.datasets.released_twins import TwinName, released_twin
from dpgrams_core.errors import DataError
from pages._ui.my_data_budget import truth_of
from pages._ui.my_data_state import Own, Sale


def kind_of(sale: Sale) -> str:
    """The problem that a release belongs to."""
    return "regression" if sale.request.response else sale.request.kind


def twin_name(own: Own, sale: Sale) -> TwinName | None:
    """The twin of a release, or None where there is none: no surface, or nothing above the noise.

    The title holds no column's name: it stands in results that every session shares.
    """
    surface = sale.release.surface
    if surface is None:
        return None

    def make() -> TwinName | None:
        how: dict[str, Any] = {"branches": sale.release.branches, "title": f"the twin of release {sale.number}"}
        try:
            return released_twin(surface, kind_of(sale), sale.inner, truth_of(sale), **how)
        except DataError:
            return None

    return own.remember(("lab_twin", sale.number), make)


def lab_twins(kind: str) -> dict[str, tuple[TwinName, str]]:
    """The twins for one problem by their letters, each with its label; none where nothing was released here."""
    own: Own | None = st.session_state.get("_own")
    found = {}
    for sale in [] if own is None else own.sales:
        if kind_of(sale) == kind and (name := twin_name(own, sale)) is not None:
            found[str(name)] = (name, f"Twin of release {sale.number} ({', '.join(sale.units.columns)})")
    return found


def open_in_lab(own: Own, sale: Sale) -> None:
    """A button to the Tradeoff page with this twin chosen there; nothing where there is no twin."""
    name, kind = twin_name(own, sale), kind_of(sale)
    if name is None or not st.button(
        "Open it in the Tradeoff lab",
        key=f"own_lab_{sale.number}",
        icon=":material/query_stats:",
        help="Every method, ε and n on records drawn from this release: free.",
    ):
        return
    st.session_state["lab_kind"] = kind
    st.session_state[f"lab_{kind}"] = str(name)
    try:
        st.switch_page("pages/tradeoff.py")
    except StreamlitAPIException:  # a page run on its own, as in a test, has no other page beside it
        st.caption("It is chosen on the Tradeoff page.")
