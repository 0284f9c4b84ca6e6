"""The Guarantee page as a script, without a browser (charts are tested as units and in the browser)."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core.model.guarantee import status_words
from tests.shown import answer_html, html, new_page, widget

SECTIONS = {
    "meaning": ["How sure can someone become?", "The best test anyone can build"],
    "methods": ["Every method at these settings, side by side", "How many records do you need?"],
    "accounting": ["Where does the budget go?", "Does it matter who counts? For researchers"],
    "audit": ["Can we catch it? The audit"],
    "proof": ["Why is it private? The proof"],
}


@pytest.fixture
def page(request) -> AppTest:
    """The page at the tab that a test is marked with."""
    return new_page("guarantee", n="500", measure="off", accountants="off", tab=getattr(request, "param", "meaning"))


def at(tab: str):
    return pytest.mark.parametrize("page", [tab], indirect=True)


def methods(app: AppTest) -> str:
    return next(text for text in html(app) if 'class="methods"' in text)


def captions(app: AppTest) -> str:
    return "\n".join(item.value for item in app.caption)


@pytest.mark.parametrize(("page", "sections"), SECTIONS.items(), indirect=["page"])
def test_it_answers_first_and_each_tab_has_its_link_and_nothing_of_the_others(page, sections):
    page.run()
    assert [item.value for item in page.subheader] == sections
    assert not page.exception
    assert page.title[0].value == "Is the guarantee real, and what does it mean?"
    assert "someone who was <b>50%</b> sure" in answer_html(page)
    assert 'at most <b class="private">73%</b> sure' in answer_html(page)
    assert "1 in 74,000" in answer_html(page)
    text = captions(page)
    assert "Proven for: DP-GRAMS tight; Functional release." in text
    assert "Not proven for: DP-GRAMS experiments." in text


def test_epsilon_delta_and_the_prior_change_the_answer(page):
    page.run()
    widget(page, "select_slider", "epsilon").set_value(2.0).run()
    assert "At ε = 2 " in answer_html(page)
    assert "88%" in answer_html(page)
    widget(page, "select_slider", "prior").set_value(10).run()
    assert "was <b>10%</b> sure" in answer_html(page)
    assert "45%" in answer_html(page)
    before = answer_html(page)
    widget(page, "select_slider", "delta").set_value(1e-9).run()
    assert answer_html(page) != before
    assert not page.exception


@at("methods")
def test_every_method_stands_with_its_status_and_statement(page):
    page.run()
    table = methods(page)
    for words in (
        "DP-GRAMS experiments",
        status_words("nominal"),
        status_words("as published"),
        "claims ε = 1",
        "Proven: replacing one record",
        status_words("none"),
        "drowned",
        "not yet",
    ):
        assert words in table
    widget(page, "select_slider", "m").set_value(100).run()
    assert "DP-GRAMS tight (minibatch)" in methods(page)
    assert "DP-GRAMS tight (all records)" in methods(page)


@at("methods")
def test_measuring_fills_the_table(page):
    page.query_params.update({"n": "100", "measure": "on"})
    page.run()
    assert not page.exception
    assert "not yet" not in methods(page)
    assert methods(page).count("20 runs") == 5
    assert "means of 20 runs on fresh data" in captions(page)


@at("accounting")
def test_accountants_that_cannot_price_are_named(page):
    page.query_params.update({"m": "100", "accountants": "on", "steps": "3"})
    page.run()
    assert not page.exception
    assert "3 tight rounds on 100 of 500 records" in captions(page)
    assert "exact cannot price: no closed form" in captions(page)


@at("methods")
def test_a_bad_value_gives_its_sentence_and_keeps_the_last_rows(page):
    page.run()
    good = methods(page)
    widget(page, "select_slider", "m").set_value(5_000).run()
    assert not page.exception
    assert page.error[0].value == "batch_size = 5000 is not allowed: it must be between 1 and n = 500."
    assert methods(page) == good
    assert "last settings that worked" in captions(page)
    widget(page, "select_slider", "m").set_value("auto").run()
    assert not page.error
    steps = next(item for item in page.number_input if item.key == "steps")
    steps.set_value(0).run()
    assert "n_steps = 0 is not allowed" in page.error[0].value


def test_a_bad_link_still_opens(page):
    page.query_params.update({"m": "5000", "epsilon": "frog", "prior": "100"})
    page.run()
    assert not page.exception
    assert "batch_size = 5000 is not allowed" in page.error[0].value
    assert any("epsilon, prior cannot be used" in item.value for item in page.info)
    assert "At ε = 1 " in answer_html(page)


def test_every_control_explains_itself(page):
    page.run()
    for control in [*page.sidebar.select_slider, *page.sidebar.number_input, *page.sidebar.selectbox]:
        assert control.help, f"{control.key} has no help"
        assert "\n" not in control.help


@at("methods")
def test_large_n_waits_for_a_click(page):
    page.query_params.update({"n": "50000", "measure": "on"})
    page.run()
    assert not page.exception
    assert "measure_start" in {button.key for button in page.button}
    assert "not yet" in methods(page)


def test_only_its_own_settings_are_in_the_address(page):
    page.session_state["seed"] = 7  # as the Modes page leaves it
    page.run()
    widget(page, "select_slider", "clip").set_value(2.0).run()
    assert dict(page.query_params) == {
        "n": "500",
        "clip": "2",
        "measure": "off",
        "accountants": "off",
    }
