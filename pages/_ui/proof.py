"""The proof for readers: the texts of assets/proof, one fold each."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

TEXTS = Path(__file__).parents[2] / "assets" / "proof"


def chapters() -> list[tuple[str, str, str]]:
    """(key, title, text) of every chapter; a file begins with its title as "# title".

    >>> [key for key, _, _ in chapters()][:2]
    ['setting', 'functional']
    """
    found = []
    for path in sorted(TEXTS.glob("*.md")):
        title, _, text = path.read_text(encoding="utf-8").partition("\n")
        found.append((path.stem.partition("_")[2], title.removeprefix("# "), text.strip()))
    return found


def proof() -> None:
    """Every chapter of the proof, folded."""
    st.subheader("Why is it private? The proof", anchor="proof")
    st.markdown(
        "In one sentence: each record adds one bump of fixed height to a sum, so replacing one record moves that sum "
        "by a length of at most √2, and noise of the right size in the same geometry hides any move of that length. "
        "The chapters below prove it step by step, and say where proofs of other noises fail."
    )
    for key, title, text in chapters():
        with st.expander(title, key=f"proof_{key}"):
            st.markdown(text)
