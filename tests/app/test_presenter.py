"""The presenter mode: a switch on every page, kept in the link (and from page to page: see the browser tests)."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.places import ROOT

APP = ROOT / "app.py"


def larger_letters(app: AppTest) -> bool:
    return any("read from the back of the room" in item.value for item in app.get("html"))


def test_a_link_switches_it_on_and_it_goes_off_again():
    app = AppTest.from_file(APP, default_timeout=120)
    app.query_params["presenter"] = "on"
    app.switch_page("pages/paper.py").run()
    assert not app.exception
    assert app.toggle(key="presenter").value
    assert larger_letters(app)
    assert app.query_params["presenter"] == "on"
    app.toggle(key="presenter").set_value(False).run()
    assert not larger_letters(app)
    assert "presenter" not in app.query_params


def test_a_mangled_link_leaves_it_off_and_says_so():
    app = AppTest.from_file(APP, default_timeout=120)
    app.query_params["presenter"] = "loud"
    app.switch_page("pages/paper.py").run()
    assert not app.toggle(key="presenter").value
    assert any("presenter" in item.value for item in app.info)
