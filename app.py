"""DP-GRAMS dashboard: page settings and navigation. Start it with ``make run``.

Streamlit imports this file once to find ``app``, the server with its doors, and runs it as a script at every visit.
"""

import streamlit as st

from dpgrams_core.model.places import ASSETS
from pages._ui.exports import share
from pages._ui.layout import part
from pages._ui.server import app as server


def main() -> None:
    """One run of the page that is open."""
    st.set_page_config(page_title="DP-GRAMS", page_icon=str(ASSETS / "icon.svg"), layout="wide")
    pages = [
        st.Page("pages/start.py", title="Start", icon=":material/home:", default=True),
        st.Page("pages/modes.py", title="Modes", icon=":material/landscape:"),
        st.Page("pages/lessons.py", title="Lessons", icon=":material/school:"),
        st.Page("pages/attacker.py", title="Be the attacker", icon=":material/person_search:"),
        st.Page("pages/regression.py", title="Regression", icon=":material/show_chart:"),
        st.Page("pages/clusters.py", title="Clusters", icon=":material/bubble_chart:"),
        st.Page("pages/tradeoff.py", title="Tradeoff", icon=":material/query_stats:"),
        st.Page("pages/guarantee.py", title="Guarantee", icon=":material/verified_user:"),
        st.Page("pages/my_data.py", title="My data", icon=":material/upload_file:"),
        # For researchers; the first two are parts of pages above.
        st.Page(part("tradeoff", lab_part="kernel"), title="Kernel, sensitivity", icon=":material/tune:"),
        st.Page(part("guarantee", tab="accounting"), title="Accountants", icon=":material/receipt:"),
        st.Page("pages/paper.py", title="Paper", icon=":material/article:"),
    ]
    navigation = st.navigation(pages, expanded=True)
    if st.session_state.get("_page") != navigation.title or "_wanted" in st.session_state:
        # A widget belongs to its page, so another page would start the same control afresh: hand its value over.
        known = [key for key in st.session_state.get("_url_defaults", {}) if key in st.session_state]
        st.session_state.update({key: st.session_state[key] for key in known})
        st.session_state["_page"] = navigation.title
    if wanted := st.session_state.pop("_wanted", None):
        st.switch_page(wanted[0], query_params=wanted[1])
    share.bar(navigation.url_path)
    navigation.run()


if __name__ == "__main__":
    main()
elif __name__ == "app":  # imported by the server
    app = st.App(__file__, middleware=server.doors(), on_script_error=server.say_it_failed)
