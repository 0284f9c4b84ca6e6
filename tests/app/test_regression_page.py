"""The Regression page as a script, without a browser."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core.methods.dp_pms.spec import INIT_FRACTION
from dpgrams_core.model.guarantee import status_words
from dpgrams_core.model.run import Run
from pages._ui.controls import methods_of, other_regression
from tests.shown import (
    all_text,
    answer,
    assert_a_bad_batch_size_keeps_the_last_numbers,
    assert_controls_explain_themselves,
    assert_shared_keys_agree,
    metrics,
    new_page,
    opened,
    subheaders,
    widget,
)

STATUS = {"experiments": status_words("nominal"), "theorem": status_words("as published"), "tight": "proven"}


@pytest.fixture
def page() -> AppTest:
    return new_page("regression", reg_n="200", curve="off")


def test_it_runs_and_says_what_it_found(page):
    opened(page)
    assert page.title[0].value == "What does privacy cost when a curve has several branches?"
    assert set(metrics(page)) == {"Branches found", "On no branch", "Squared error, private", "Squared error, PMS"}
    for words in ("At ε = 1", "PMS finds", "LOWESS draws the mean"):
        assert words in answer(page)
    text = all_text(page)
    assert "The predictor x is public, the response y is private" in text
    assert "Is the guarantee real?" in text
    assert "Proven: replacing one record" in text
    assert subheaders(page)[0] == "Functional release"
    assert "The released surface over (x, y)" in text


@pytest.mark.parametrize("dataset", ["sinusoid", "three_component"])
@pytest.mark.parametrize("calibration", list(STATUS))
def test_each_calibration_of_dp_pms_on_each_data_set(page, dataset, calibration):
    opened(page, reg_method="dp_pms", reg_dataset=dataset, calibration=calibration)
    assert subheaders(page)[0] == f"DP-PMS {calibration}"
    assert "noisy steps in y; x never moves" in all_text(page)
    assert STATUS[calibration] in all_text(page)
    assert "The predictors are public: neighbours differ in one response" in all_text(page)
    assert metrics(page)["Branches found"].endswith("%")


def test_the_functional_release_on_the_other_data_set(page):
    opened(page, reg_dataset="three_component")
    assert widget(page, "selectbox", "reg_method").value == "functional_regression"
    assert "Three steps, n = 200" in all_text(page)


def test_every_control_explains_itself(page):
    opened(page, reg_method="dp_pms")
    assert_controls_explain_themselves(page, 17)
    assert widget(page, "select_slider", "reg_x").help


def test_a_bad_value_gives_its_sentence_and_keeps_the_last_numbers(page):
    opened(page, reg_method="dp_pms")
    good = assert_a_bad_batch_size_keeps_the_last_numbers(page, 200)
    for key, value, words in (
        ("steps", 0, "n_steps = 0"),
        ("reg_eta", -1.0, "step_size = -1"),
        ("reg_kappa", -2.0, "start_multiplier = -2"),
        ("reg_window", 0.0, "init_bandwidth = 0"),
        ("reg_merge", -0.1, "merge_radius = -0.1"),
    ):
        box = widget(page, "number_input", key)
        box.set_value(value).run()
        assert words in page.error[0].value
        assert answer(page) == good
        widget(page, "number_input", key).set_value(None).run()
        assert not page.error


def test_bins_that_would_be_empty_are_refused_in_words(page):
    opened(page, reg_method="dp_pms", reg_n="50", reg_starts="binned", reg_bins="40")
    assert "would hold no record" in page.error[0].value
    assert metrics(page)  # a link may open on it: the default picture stands


def test_a_mangled_link_is_named_and_the_defaults_stand(page):
    opened(
        page, epsilon="frog", reg_x="7", reg_show="pms,frog", reg_method="%00", reg_dataset="four_corners", seed="-1"
    )
    note = page.info[0].value
    for key in ("epsilon", "reg_x", "reg_show", "reg_method", "reg_dataset", "seed"):
        assert key in note
    assert "At ε = 1" in answer(page)


def test_curves_are_shown_together_or_one_by_one(page):
    opened(page, reg_show="pms")
    pills = page.get("button_group")[0]
    assert pills.value == ["pms"]
    sentence = next(item.value for item in page.caption if "Share of the true branches" in item.value)
    assert "PMS" in sentence
    assert "Functional" not in sentence
    assert "LOWESS" not in sentence
    pills.set_value(["private", "other", "lowess"]).run()
    sentence = next(item.value for item in page.caption if "Share of the true branches" in item.value)
    for words in ("Functional release", "DP-PMS tight", "LOWESS"):
        assert words in sentence
    assert page.query_params["reg_show"] == "private,other,lowess"


def test_another_x_changes_the_slice_and_nothing_else(page):
    opened(page)
    before = answer(page)
    assert "At x = 0.46 the truth has 2 modes" in all_text(page)
    widget(page, "select_slider", "reg_x").set_value("0.10").run()
    assert "At x = 0.10 the truth has 2 modes" in all_text(page)
    assert answer(page) == before
    assert page.query_params["reg_x"] == "0.10"


def test_the_live_curve_has_several_n_and_ends(page):
    opened(page, curve="on", reg_n="50")
    box = next(item for item in page.multiselect if item.key.startswith("reg_curve_n"))
    assert len(box.value) == 4
    sentence = next(item.value for item in page.caption if "Means of 20" in item.value)
    assert "partial mean shift 5" in sentence
    assert "share of branches found" in sentence
    assert "so far" not in sentence
    table = next(item.value for item in page.dataframe if "branch_recall" in item.value)
    assert {"branch_recall", "spurious", "mse_se", "status"} <= set(table.columns)
    assert set(table["n"]) == {50, 200, 600, 1200}
    assert set(table["epsilon"]) == {0.1, 0.2, 0.5, 1.0, float("inf")}
    assert set(table["failures"]) == {0}


def test_twenty_runs_are_computed_when_their_tab_is_opened(page):
    opened(page, reg_n="50")
    assert "20 private runs" not in all_text(page)
    again = opened(new_page("regression", reg_n="50", curve="off", more="runs"))
    assert re.search(r"20 private runs: \d+%( to \d+%)? of the branches found; squared error from", all_text(again))
    table = again.dataframe[-1].value
    assert list(table["run"]) == list(range(1, 21))
    assert table["oracle MSE"].nunique() == 20
    assert f"{table['oracle MSE'][0]:.3g}" == metrics(again)["Squared error, private"]  # the first is that of the page


def test_pms_waits_for_a_click_at_large_n_and_so_does_the_curve(page):
    opened(page, reg_n="20000", curve="on")
    assert {button.key for button in page.button} >= {"pms_start", "curve_start"}
    assert metrics(page)["Squared error, PMS"] == "–"
    assert "PMS" not in answer(page)


def test_new_noise_keeps_the_data(page):
    opened(page)
    before = answer(page)
    widget(page, "button", "new_noise").click().run()
    assert page.session_state["seed"] == 1
    assert answer(page) != before
    assert answer(page).split("without privacy")[1] == before.split("without privacy")[1]


def test_the_other_method_shares_what_makes_the_comparison_fair():
    options = (("bandwidth_scale", 2.0), ("calibration", "tight"), ("delta", 1e-6))
    first = Run(method="dp_pms", dataset="sinusoid", n=99, data_seed=3, seed=4, epsilon=0.5, options=options)
    other = other_regression(first)
    assert other.method == "functional_regression"
    assert other.settings == {"delta": 1e-6, "epsilon": 0.5}
    assert (other.n, other.data_seed, other.seed) == (99, 3, 4)
    assert {other.method, other_regression(other).method} == set(methods_of("regression"))


def test_keys_shared_with_the_modes_page_hold_the_same_values(page):
    modes = opened(new_page("modes", n="200", runs="off", curve="off"))
    opened(page, reg_method="dp_pms")
    assert_shared_keys_agree(page, modes, "epsilon", "h_scale", "m", "calibration")
    assert widget(page, "select_slider", "reg_share").value == "auto"
    assert INIT_FRACTION == 0.2
