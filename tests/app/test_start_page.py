"""The first page: it opens, has its doors, and old links of Modes still find it."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.places import ROOT

MODES = "What does privacy cost when you look for modes?"


def app_at(**query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    app.query_params.update(query)
    app.run()
    assert not app.exception
    return app


def test_the_app_opens_on_it_with_three_doors_and_two_quiet_ones():
    app = app_at()
    assert app.title[0].value == "Find where people gather, and give nobody away"
    doors = [item.proto for item in app.get("page_link")]
    assert [door.label for door in doors[:3]] == ["Explore it yourself", "What ε do I need?", "Use my data"]
    assert [door.label for door in doors[3:]] == ["Lessons", "Be the attacker"]
    assert doors[1].query_string == "lab_part=needed"


def test_a_link_from_before_opens_modes_with_its_settings():
    app = app_at(n="500", curve="off", runs="off", landscape="off")
    assert app.title[0].value == MODES
    assert app.session_state["n"] == 500


def test_presenter_mode_is_no_setting_of_modes():
    assert app_at(presenter="on").title[0].value != MODES
