"""The Modes page as a script, without a browser (charts are tested as units and in the browser)."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page() -> AppTest:
    app = AppTest.from_file(str(ROOT / "pages" / "modes.py"), default_timeout=60)
    app.query_params["n"] = "500"
    return app


def slider(app: AppTest, key: str):
    return next(item for item in app.sidebar.select_slider if item.key == key)


def number(app: AppTest, key: str):
    return next(item for item in app.sidebar.number_input if item.key == key)


def choice(app: AppTest, key: str):
    return next(item for item in app.sidebar.selectbox if item.key == key)


def all_text(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.error, *app.warning, *app.info]
    return "\n".join(item.value for item in parts)


def metrics(app: AppTest) -> dict[str, str]:
    return {item.label: item.value for item in app.metric}


def test_the_app_opens_on_the_modes_page():
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params["n"] = "500"
    app.run()
    assert not app.exception
    assert app.title[0].value == "What does privacy cost when you look for modes?"


def test_it_runs_and_says_what_it_found(page):
    page.run()
    assert not page.exception
    assert set(metrics(page)) == {"Modes found", "Spurious modes", "MSE, private", "MSE, mean shift"}
    text = all_text(page)
    assert "Is the guarantee real?" in text
    assert "not a proof" in text


def test_every_control_explains_itself(page):
    page.run()
    controls = [*page.sidebar.select_slider, *page.sidebar.number_input, *page.sidebar.selectbox]
    assert len(controls) >= 17
    for control in controls:
        assert control.help, f"{control.key} has no help"
        assert "\n" not in control.help


def test_theorem_noise_is_said_to_swamp_the_signal(page):
    page.run()
    choice(page, "calibration").set_value("theorem").run()
    assert not page.exception
    text = all_text(page)
    assert "as published" in text
    assert "Noise swamps the signal" in text


def test_tight_noise_is_said_to_be_proven(page):
    page.run()
    choice(page, "calibration").set_value("tight").run()
    assert not page.exception
    assert "proven" in all_text(page)
    assert "not a proof" not in all_text(page)


def test_the_functional_release_says_that_it_is_proven(page):
    page.run()
    choice(page, "method").set_value("functional").run()
    assert not page.exception
    assert "Proven: replacing one record" in all_text(page)
    assert {item.key for item in page.sidebar.select_slider} == {"n", "epsilon", "delta", "h_scale", "modes"}


def test_a_bad_value_gives_its_sentence_and_keeps_the_last_numbers(page):
    page.run()
    good = metrics(page)
    slider(page, "m").set_value(5_000).run()
    assert not page.exception
    assert page.error[0].value == "batch_size = 5000 is not allowed: it must be between 1 and n = 500."
    assert metrics(page) == good
    slider(page, "m").set_value("auto").run()
    assert not page.error
    number(page, "steps").set_value(0).run()
    assert "n_steps = 0 is not allowed" in page.error[0].value
    assert metrics(page) == good


def test_a_known_count_merges_to_it(page):
    page.run()
    slider(page, "modes").set_value(4).run()
    found, total = metrics(page)["Modes found"].split(" of ")
    assert int(found) + int(metrics(page)["Spurious modes"]) == 4
    assert total == "4"


def test_curves_wait_at_large_n(page):
    page.query_params["n"] = "50000"
    page.run()
    assert not page.exception
    assert {button.key for button in page.button} >= {"curve_start", "runs_start"}
