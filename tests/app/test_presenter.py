"""The presenter mode: a switch on every page, kept in the link (and from page to page: see the browser tests)."""

from __future__ import annotations

from urllib.parse import parse_qs

from streamlit.testing.v1 import AppTest

from dpgrams_core.exports.deck import NO_DECK, OWN_DATA, Scene, deck_json, deck_text, read_deck_text
from pages._ui.server import uploads
from tests.places import ROOT
from tests.shown import Dropped

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
    # What δ leaves is a chance to end a point above the bound, and not one to pass it (privacy/meaning.py).
    assert "more than a point above with a chance of 1 in 74,000" in line
    assert [slider.key for slider in app.main.select_slider] == ["epsilon"]


def test_a_step_of_a_lesson_asks_or_answers():
    asked = presented("lessons", lesson="the_budget_runs_out")
    assert asked.radio
    assert not [slider for slider in asked.select_slider if slider.key == "value"]
    told = presented("lessons", lesson="the_budget_runs_out", guess="2")
    assert not told.radio
    assert [slider for slider in told.select_slider if slider.key == "value"]
    assert not [button for button in told.button if button.key == "open_page"]


def test_my_data_says_why_there_is_nothing_to_show(tmp_path, monkeypatch):
    monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "ledger.sqlite3"))
    assert any("Leave it to open a file" in item.value for item in presented("my_data").info)


def test_a_deck_in_the_link_stays_there_and_a_bad_one_is_named():
    deck = deck_text((Scene("paper", "", "First"), Scene("guarantee", "epsilon=2", "Second")))
    app = presented("paper", deck=deck, scene="2")
    assert app.session_state["deck"] == deck
    assert app.query_params["deck"] == deck
    assert app.query_params["scene"] == "2"
    app = presented("paper", deck=deck[:-9], scene="many")
    assert "deck" not in app.query_params
    assert any("deck" in item.value and "scene" in item.value for item in app.info)


DIALOG = """
import streamlit as st
from pages._ui.exports import present, share
st.session_state["_page"] = {page!r}
present.bar()
share.share_link()
share.talk("somewhere")
"""


def shared(page: str, **query: str) -> AppTest:
    """What the share dialog of a page holds; AppTest does not show a dialog beside a page."""
    app = AppTest.from_string(DIALOG.format(page=page))
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def told(app: AppTest) -> str:
    return " ".join(str(item.value) for kind in ("caption", "error", "markdown") for item in app.get(kind))


def test_a_page_becomes_a_scene_with_its_settings_and_without_how_it_is_shown():
    app = shared("Guarantee", epsilon="2", measure="off", accountants="off")
    app.text_input(key="scene_title").set_value("What [ε] means")
    app.text_area(key="scene_notes").set_value("Speak slowly.")
    app.button(key="scene_add").click().run()
    app.button(key="scene_add").click().run()
    first, second = read_deck_text(app.session_state["deck"])
    assert (first.page, first.title, first.notes) == ("guarantee", "What [ε] means", "Speak slowly.")
    assert parse_qs(first.query) == {"epsilon": ["2"], "measure": ["off"], "accountants": ["off"]}
    assert second == Scene("guarantee", first.query)  # what was typed is used up
    assert "1. **What \\[ε\\] means**" in told(app)
    app.button(key="scene_up_1").click().run()
    assert read_deck_text(app.session_state["deck"]) == (second, first)
    app.button(key="scene_out_0").click().run()
    assert read_deck_text(app.session_state["deck"]) == (first,)


def test_my_data_are_no_scene():
    app = shared("My data")
    assert OWN_DATA in told(app)
    assert "nothing of your file" in told(app)
    assert "scene_add" not in {button.key for button in app.button}


def test_a_deck_is_opened_from_its_file_and_a_bad_file_gets_a_sentence(monkeypatch):
    waiting: list[Dropped] = []
    monkeypatch.setattr(uploads, "upload_box", lambda *_, **__: waiting.pop() if waiting else None)
    scenes = (Scene("modes", "epsilon=2", "One"), Scene("paper", "", "Two", "A note"))
    for content, kept in ((deck_json(scenes).encode(), True), (b'{"format": "else"}', False), (b"\xff", False)):
        waiting.append(Dropped(content))
        app = shared("Paper")
        assert (app.session_state["deck"] == deck_text(scenes)) == kept
        assert (NO_DECK in told(app)) != kept


def test_a_link_to_a_deck_begins_with_its_first_scene():
    app = presented("paper", deck=deck_text((Scene("guarantee", "epsilon=2&prior=20", "First"), Scene("paper"))))
    assert app.session_state["scene"] == 1
    assert app.query_params["prior"] == "20"  # of the page Guarantee


def test_what_stands_on_every_page_leaves_the_names_of_the_pages_controls_alone():
    for page in ("modes", "regression", "clusters", "tradeoff", "guarantee"):
        app = AppTest.from_file(APP, default_timeout=120)
        for name, value in {"n": "200", "reg_n": "200", "clu_n_blobs": "200", "curve": "off", "runs": "off"}.items():
            app.query_params[name] = value
        app.switch_page(f"pages/{page}.py").run()
        assert not app.exception, page
        assert app.button(key="share_page").label == "Share and present"
