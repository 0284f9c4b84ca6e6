"""DP-GRAMS dashboard: page settings and navigation. Start it with ``make run``."""

import streamlit as st

st.set_page_config(page_title="DP-GRAMS", page_icon="assets/icon.svg", layout="wide")

navigation = st.navigation(
    [
        st.Page("pages/modes.py", title="Modes", icon=":material/landscape:", default=True),
    ]
)
navigation.run()
