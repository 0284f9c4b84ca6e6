"""The presenter mode: a switch on every page, kept in the link (and from page to page: see the browser tests)."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from dpgrams_core.exports.deck import Scene, deck_text
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


def presented(page: str, **query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=120)
    for name, value in {"presenter": "on", **query}.items():
        app.query_params[name] = value
    app.switch_page(f"pages/{page}.py").run()
    assert not app.exception
    return app


def test_a_page_shows_its_line_and_its_picture_and_ends():
    app = presented("guarantee", measure="off", accountants="off")
    assert len(app.get("plotly_chart")) == 1
    assert not app.get("download_button")
    (line,) = [item.value for item in app.get("html") if 'data-testid="answer"' in item.value]
    assert line.count(". ") == 0


def test_a_deck_in_the_link_stays_there_and_a_bad_one_is_named():
    deck = deck_text((Scene("paper", "", "First"), Scene("guarantee", "epsilon=2", "Second")))
    app = presented("paper", deck=deck, scene="2")
    assert app.session_state["deck"] == deck
    assert app.query_params["deck"] == deck
    assert app.query_params["scene"] == "2"
    app = presented("paper", deck=deck[:-9], scene="many")
    assert "deck" not in app.query_params
    assert any("deck" in item.value and "scene" in item.value for item in app.info)
