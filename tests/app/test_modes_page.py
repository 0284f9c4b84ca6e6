"""The Modes page as a script, without a browser (charts are tested as units and in the browser)."""

from __future__ import annotations

from itertools import product

import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core.model.run import Run
from pages._ui.controls import COMPARISONS, NOTHING, beside
from tests.shown import (
    all_text,
    answer,
    answer_html,
    assert_controls_explain_themselves,
    html,
    metrics,
    new_page,
    opened,
    subheaders,
)


@pytest.fixture
def page() -> AppTest:
    """Without its long parts, which the tests of them switch on."""
    return new_page("modes", n="500", curve="off", runs="off")


def slider(app: AppTest, key: str):
    return next(item for item in app.sidebar.select_slider if item.key == key)


def number(app: AppTest, key: str):
    return next(item for item in app.sidebar.number_input if item.key == key)


def choice(app: AppTest, key: str):
    return next(item for item in app.sidebar.selectbox if item.key == key)


def test_it_runs_and_says_what_it_found(page):
    opened(page, curve="on", runs="on")
    assert set(metrics(page)) == {
        "Modes found",
        "Spurious modes",
        "Error per mode, private",
        "Error per mode, mean shift",
    }
    text = all_text(page)
    assert "Is the guarantee real?" in text
    assert ":green-badge[proven]" in text  # what opens first is proven


def test_every_control_explains_itself(page):
    page.run()
    assert_controls_explain_themselves(page, 17)


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


FOLDED = [("steps", 12), ("eta", 0.5), ("starts", 12), ("rho", 5.0), ("h_dap", 0.9), ("seed", 7), ("data_seed", 3)]


def test_every_folded_control_changes_the_page(page):
    opened(page, calibration="experiments")
    for key, value in [("modes", 4), ("share", 40)]:
        before = (answer(page), all_text(page))
        slider(page, key).set_value(value).run()
        assert (answer(page), all_text(page)) != before, f"moving {key} changed nothing on the page"
    for key, value in FOLDED:
        before = (answer(page), all_text(page))
        number(page, key).set_value(value).run()
        assert (answer(page), all_text(page)) != before, f"typing {key} changed nothing on the page"
    assert not page.exception


def test_choices_of_data_bandwidth_and_kernel(page):
    page.run()
    choice(page, "dataset").set_value("t_mixture").run()
    assert "of 5" in answer(page)
    choice(page, "bandwidth").set_value("silverman").run()
    assert "comes from the records" in all_text(page)
    choice(page, "bandwidth").set_value("value").run()
    slider(page, "h").set_value(0.8).run()
    assert "bandwidth h = 0.8" in all_text(page)
    choice(page, "calibration").set_value("theorem").run()
    kept = answer(page)
    # The Legendre kernel has no theorem noise: a sentence, and the last good picture stays.
    choice(page, "kernel").set_value("legendre4").run()
    assert "jumps at its edge" in all_text(page)
    assert answer(page) == kept
    choice(page, "calibration").set_value("experiments").run()
    assert "jumps at its edge" not in all_text(page)
    assert not page.exception


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


@pytest.mark.parametrize(("part", "other"), [("curve", "runs"), ("runs", "curve")])
def test_curves_wait_at_large_n(page, part, other):
    opened(page, n="50000", curve="on", runs="on", more=part)
    assert f"{part}_start" in {button.key for button in page.button}
    assert f"{other}_start" not in {button.key for button in page.button}  # only the open tab is computed


# The four private methods: what chooses each one in the URL as the first, and as the second.
FIRST = {
    "functional": {"method": "functional"},
    "experiments": {"calibration": "experiments"},
    "theorem": {"calibration": "theorem"},
    "tight": {"calibration": "tight"},
}
TITLES = {
    "functional": "Functional release",
    "experiments": "DP-GRAMS experiments",
    "theorem": "DP-GRAMS theorem",
    "tight": "DP-GRAMS tight",
}
STATUS = {"functional": "proven", "experiments": "nominal", "theorem": "as published", "tight": "proven"}


@pytest.mark.parametrize(("first", "second"), [pair for pair in product(FIRST, FIRST) if pair[0] != pair[1]])
def test_any_two_methods_stand_side_by_side_with_their_own_status(page, first, second):
    opened(page, compare=second, **FIRST[first])
    lines = answer_html(page).split("<br>")
    for line, name in zip(lines, (first, second), strict=False):
        assert TITLES[name] in line
        assert STATUS[name] in line
    assert "mean shift" in lines[2]
    assert subheaders(page)[:2] == [TITLES[first], TITLES[second]]
    assert all_text(page).count("Is the guarantee real?") == 2
    assert subheaders(page).count("The landscape (not private)") == 1
    released = [title for title in subheaders(page) if "the released surface (private)" in title]
    assert len(released) == (first == "functional") + (second == "functional")


def test_without_a_comparison_nothing_is_doubled(page):
    opened(page)
    assert choice(page, "compare").value == "nothing"
    assert all_text(page).count("Is the guarantee real?") == 1
    opened(page, compare="tight")
    choice(page, "compare").set_value("nothing").run()
    assert all_text(page).count("Is the guarantee real?") == 1
    assert "compare" not in page.query_params


def test_a_method_beside_itself_is_said_to_be_the_same(page):
    opened(page, compare="tight")
    assert all_text(page).count("Is the guarantee real?") == 1
    assert any("the method itself" in item.value for item in page.sidebar.caption)
    choice(page, "calibration").set_value("experiments").run()
    assert subheaders(page)[:2] == ["DP-GRAMS experiments", "DP-GRAMS tight"]


def test_a_comparison_the_link_mangles_is_named(page):
    opened(page, compare="frog")
    assert "values for compare cannot be used" in page.info[0].value
    assert all_text(page).count("Is the guarantee real?") == 1


def test_a_second_method_that_cannot_run_is_named_and_the_last_pair_stays(page):
    opened(page, compare="tight", calibration="experiments")
    good = answer(page)
    choice(page, "kernel").set_value("legendre4").run()
    assert not page.exception
    assert [item.value.split(":")[0] for item in page.error] == ["DP-GRAMS tight"]
    assert "kernel = 'legendre4' is not allowed: this kernel jumps at its edge" in page.error[0].value
    assert answer(page) == good
    choice(page, "compare").set_value("functional").run()
    assert not page.error
    assert subheaders(page)[:2] == ["DP-GRAMS experiments", "Functional release"]


def test_a_bad_value_that_both_share_is_told_for_both(page):
    opened(page, compare="tight", calibration="experiments")
    good = answer(page)
    slider(page, "m").set_value(5_000).run()
    assert [item.value.split(":")[0] for item in page.error] == ["DP-GRAMS experiments", "DP-GRAMS tight"]
    assert all("batch_size = 5000 is not allowed" in item.value for item in page.error)
    assert answer(page) == good


def test_a_link_whose_second_method_cannot_run_shows_the_first_alone(page):
    opened(page, compare="tight", calibration="experiments", kernel="legendre4", dataset="t_mixture")
    assert "DP-GRAMS tight: kernel" in page.error[0].value
    assert metrics(page)["Modes found"].endswith("of 5")


def test_the_budget_moves_both_and_the_runs_are_drawn_for_both(page):
    opened(page, method="functional", compare="tight", runs="on", more="runs")
    before = answer_html(page).split("<br>")
    assert subheaders(page)[-2:] == ["Functional release", "DP-GRAMS tight"]
    slider(page, "epsilon").set_value(0.5).run()
    after = answer_html(page).split("<br>")
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert before[2] == after[2]  # mean shift knows no epsilon


def test_the_live_curve_draws_both(page):
    opened(page, method="functional", compare="experiments", curve="on")
    sentence = next(item.value for item in page.caption if "Means of 20 runs" in item.value)
    for title in ("Functional release", "DP-GRAMS experiments"):
        assert f"the error of {title} goes from" in sentence
    assert "so far" not in sentence


def wanted(method: str, **options) -> Run:
    options = {"delta": 1e-5, "n_modes": 4, **options}
    place = {"dataset": "four_corners", "n": 500, "data_seed": 3, "seed": 4, "epsilon": 0.5}
    return Run(method=method, options=tuple(options.items()), **place)


@pytest.mark.parametrize("compare", list(COMPARISONS))
def test_the_second_shares_what_makes_the_comparison_fair(compare):
    first = wanted("dp_grams", calibration="theorem", clip_multiplier=2.0, bandwidth="silverman")
    second = beside(first, compare)
    if compare == "theorem":
        assert second is None
        return
    assert (second.dataset, second.n, second.data_seed, second.seed) == ("four_corners", 500, 3, 4)
    shared = {"epsilon": 0.5, "delta": 1e-5, "n_modes": 4}
    if compare == "functional":
        assert second.settings == shared  # its own public bandwidth rule, and nothing of the ascent
    else:
        assert second.settings == {
            **shared,
            "calibration": compare,
            "clip_multiplier": 2.0,
            "bandwidth": "silverman",
        }


def test_beside_the_functional_release_the_ascent_has_its_defaults():
    second = beside(wanted("functional", bandwidth_scale=2.0), "tight")
    assert second.settings == {"epsilon": 0.5, "delta": 1e-5, "n_modes": 4, "calibration": "tight"}
    assert beside(wanted("functional"), NOTHING) is None


@pytest.mark.parametrize(
    ("page", "query", "sentence"),
    [
        ("modes", {"design": "as printed"}, "design = as printed: it must be one of usual, as run."),
        ("clusters", {"clu_dataset": "iris", "design": "as run"}, "design = as run: it must be one of usual."),
        ("modes", {"calibration": "tight", "share": "0"}, "share = 0: it must be one of "),
        (
            "regression",
            {"reg_method": "dp_pms", "calibration": "as_run", "reg_share": "100"},
            "reg_share = 100: it must",
        ),
        ("modes", {"calibration": "as_run", "n": "700", "starts": "900"}, "n_starts = 900 is not allowed: it must be"),
        ("modes", {"calibration": "tight", "n": "700", "starts": "226"}, "and the number of candidates, 225"),
        ("my_data", {"own_way": "as_run"}, "own_way = as_run: it must be one of "),
    ],
)
def test_what_the_papers_runs_cannot_have_is_told_to_a_link(page, query, sentence):
    off = {} if page == "my_data" else {"curve": "off", "runs": "off"}
    assert sentence in all_text(opened(new_page(page, **query, **off)))


@pytest.mark.parametrize(
    ("page", "query", "words"),
    [
        ("modes", {"method": "dp_grams", "n": "700"}, "candidates with ε = "),
        ("regression", {"reg_method": "dp_pms", "reg_n": "500"}, "anchors, each a record as it is, then "),
        ("clusters", {"clu_method": "dp_grams_c"}, "Only DP-k-means claims a guarantee, and that is nominal"),
    ],
)
def test_the_papers_runs_are_shown_and_never_called_private(page, query, words):
    app = opened(new_page(page, **query, calibration="as_run", curve="off", runs="off"))
    assert words in all_text(app) + answer(app)
    assert "private anchors" not in all_text(app)
    assert "no guarantee" in all_text(app) + " ".join(html(app))
