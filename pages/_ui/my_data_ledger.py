"""The ledger of one file on the screen: what was spent, what is left, two ways of adding up, and what it cannot see."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dpgrams_core.content import Identity
from dpgrams_core.figures import short
from dpgrams_core.privacy.ledger import BLIND_SPOT, GUESSES, Account, Ledger
from dpgrams_core.tables import table_csv
from pages._ui.controls import written
from pages._ui.my_data_state import plain


def ledger_view(ledger: Ledger, account: Account, identity: Identity, overlap: str, not_shown: Sequence[str]) -> None:
    """All charges that count against the file, with both totals and a download.

    ``overlap`` says why those of other files count, if they do; ``not_shown`` is about what was kept, in sentences.
    """
    st.subheader("The ledger of this file")
    if overlap:
        st.warning(plain(overlap), icon=":material/join_inner:")
    for sentence in not_shown:
        st.info(plain(sentence), icon=":material/broken_image:")
    totals = account.totals
    spent = min(1.0, totals.basic_epsilon / account.cap_epsilon)
    st.progress(
        spent,
        text=f"ε = {short(totals.basic_epsilon)} of {short(account.cap_epsilon)} spent, "
        f"ε = {short(account.left_epsilon)} left",
    )
    if account.cap_epsilon < (ledger.ceiling.epsilon or 0) or account.cap_delta < (ledger.ceiling.delta or 0):
        st.caption(
            f"This file keeps the cap that it was opened with, ε = {short(account.cap_epsilon)} and δ = "
            f"{written(account.cap_delta)}. A cap that was raised since is for files that are opened from then on."
        )
    rows = ledger.statement(account.account, identity)
    if not rows:
        st.caption(f"Nothing was spent on this file yet. {BLIND_SPOT} {GUESSES}")
        return
    with st.container(key="own_totals"):
        columns = st.columns(3)
        columns[0].metric(
            "ε together, added up", short(totals.basic_epsilon), help="Basic composition; the cap is on it."
        )
        columns[1].metric(
            "ε together, tight", short(totals.tight_epsilon), help="The same releases at the same δ, composed exactly."
        )
        columns[2].metric("δ together", written(totals.delta) if totals.delta else "0")
    frame = pd.DataFrame(rows)
    shown = frame[["time", "release", "epsilon", "delta", "status", "finished"]].rename(
        columns={"epsilon": "ε", "delta": "δ"}
    )
    shown["δ"] = shown["δ"].map(written)
    shown["time"] = shown["time"].str.replace("T", " ").str.replace("+00:00", " UTC")
    st.dataframe(shown, hide_index=True, width="stretch", key="own_ledger")
    st.download_button(
        "Download the ledger (CSV)",
        lambda: table_csv(frame),
        file_name="ledger.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
        key="own_ledger_csv",
    )
    st.caption(f"{BLIND_SPOT} {GUESSES}")
