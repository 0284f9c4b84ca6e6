"""Parts of a page: what is long waits until it is looked at, and a part that is drawn anew asks for its work again."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from pages._ui import charts, jobs


def long_part():
    import streamlit as st

    from pages._ui import charts

    settings = st.text_input("Settings", "a", key="settings")
    if charts.scrolled_to("long", settings):
        st.markdown(f"Drawn for {settings}.")


def words(app):
    assert not app.exception
    return [item.value for item in (*app.markdown, *app.caption)]


def test_what_is_long_waits_until_it_is_scrolled_to_and_stays_until_its_settings_change():
    app = AppTest.from_function(long_part).run()
    assert words(app) == [charts.WAITS]
    app.session_state["_scrolled_to"] = {"long": "a"}  # as it was left by a run while the place was in sight
    assert words(app.run()) == ["Drawn for a."]
    app.text_input(key="settings").set_value("b")
    assert words(app.run()) == [charts.WAITS]


def test_a_part_hurries_its_own_work_only(monkeypatch):
    hurried = []
    monkeypatch.setattr(jobs.Jobs, "hurry", lambda _, key, visitor: hurried.append(key))

    def page():
        import streamlit as st

        from pages._ui import jobs

        st.session_state[jobs.WATCHED] = {"mine": "curve", "yours": "runs", "ours": None}
        with jobs.part("curve"):
            st.markdown(str(st.session_state[jobs.PART]))
        st.markdown(str(st.session_state[jobs.PART]))

    assert words(AppTest.from_function(page).run()) == ["curve", "None"]
    assert hurried == ["mine"]


def test_a_table_is_sent_once_it_is_unfolded():
    def page():
        import pandas as pd
        import plotly.graph_objects as go

        from dpgrams_core.figures.style import Chart
        from pages._ui import charts

        charts.table(Chart(go.Figure(), "It rises.", pd.DataFrame({"x": [1, 2]})), "some", canvas=True)

    app = AppTest.from_function(page).run()
    assert (words(app), len(app.dataframe)) == ([], 0)
    app.session_state["some_table"] = True  # as a press on it leaves it
    assert words(app.run()) == ["It rises."]
    assert app.dataframe[0].value["x"].tolist() == [1, 2]
