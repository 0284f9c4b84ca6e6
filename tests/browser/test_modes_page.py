"""The Modes page in a real browser: every control, the live curve, deep links."""

from __future__ import annotations

from dpgrams_core.model.guarantee import status_words
from pages._ui.charts import WAITS

# key, arrow presses, expected value in the URL: every slider of the sidebar.
SLIDERS = [
    ("n", -2, "1200"),
    ("epsilon", -2, "0.5"),
    ("delta", 1, "1e-07"),
    ("h_scale", 2, "1.2"),
    ("clip", -2, "0.5"),
    ("m", 6, "200"),
]
QUIET = "curve=off&runs=off&landscape=off"  # the tests of single controls need not draw the long charts


def test_first_screen_answers_before_it_asks(dashboard):
    dashboard.open("modes")
    answer = dashboard.answer()
    assert "At ε = 1" in answer
    assert "found" in answer
    assert "without privacy" in answer
    card = dashboard.page.locator(".st-key-guarantee_card").inner_text()
    for words in ("proven", "ε = 1", "δ = 1e-6", "replace-one", "start (DAP)", "ascent", "noise"):
        assert words in card
    dashboard.shoot("modes_first_screen")


def test_every_slider_changes_the_answer_and_the_url(dashboard):
    dashboard.open(f"modes?{QUIET}").unfold("method_settings")
    dashboard.slide_each(SLIDERS)
    dashboard.shoot("modes_after_sliders")


def test_two_methods_stand_side_by_side(dashboard):
    dashboard.open(f"modes?method=functional&compare=experiments&n=1000&{QUIET}")
    page = dashboard.page
    assert dashboard.in_url()["compare"] == "experiments"
    cards = [page.locator(f".st-key-guarantee_card{mark}") for mark in ("", "_2")]
    assert "Proven: replacing one record" in cards[0].inner_text()
    assert status_words("nominal") in cards[1].inner_text()
    left, right = (card.bounding_box() for card in cards)
    assert left["x"] + left["width"] < right["x"]
    text = dashboard.text()
    for words in ("the released surface (private)", "where it starts (private)", "The landscape (not private)"):
        assert text.count(words) == 1
    before = [dashboard.answer(), *(card.inner_text() for card in cards)]
    dashboard.slide("epsilon", -2)
    after = [dashboard.answer(), *(card.inner_text() for card in cards)]
    for old, new in zip(before[0].splitlines()[:2], after[0].splitlines()[:2], strict=True):
        assert old != new
    for card in after[1:]:
        assert "ε = 0.5" in card
    dashboard.shoot("modes_two_methods")
    # tight refuses this kernel: a sentence that names the method, and the page stays.
    dashboard.open(f"modes?calibration=experiments&compare=tight&n=1000&{QUIET}")
    good = dashboard.answer()
    assert "DP-GRAMS tight" in good
    dashboard.unfold("method_settings").choose("kernel", "Legendre")
    assert "DP-GRAMS tight: kernel = 'legendre4' is not allowed" in dashboard.text()
    assert dashboard.answer() == good
    dashboard.choose("compare", "nothing")
    assert "compare" not in dashboard.in_url()
    assert "not allowed" not in dashboard.text()
    assert cards[1].count() == 0


def test_deep_link_restores_everything_and_a_mangled_one_falls_back(dashboard):
    query = (
        "modes?dataset=t_mixture&n=2000&epsilon=5&delta=1e-05&clip=2&m=500&modes=5&share=40&seed=3&starts=12&" + QUIET
    )
    dashboard.open(query)
    first = dashboard.answer()
    assert "of 5" in first
    assert "At ε = 5" in first
    assert "minibatch m = 500" in dashboard.text()
    assert "k = 12 starts" in dashboard.text()
    dashboard.open(query)
    assert dashboard.answer() == first
    dashboard.open("modes?epsilon=frog&n=77&seed=-1&kernel=%00&unknown=1&" + QUIET)
    assert "At ε = 1" in dashboard.answer()
    note = dashboard.text()
    assert "cannot be used" in note
    for key in ("epsilon", "n", "seed", "kernel"):
        assert key in note


def test_live_curve_fills_in_and_can_be_stopped(dashboard):
    page = dashboard.page
    page.goto(dashboard.address + "/modes?n=5000&seed=11&clip=1.5&landscape=off&runs=off")
    page.get_by_text(WAITS).last.scroll_into_view_if_needed()
    page.wait_for_selector("text=points so far")
    toggle = page.locator(".st-key-curve label")
    toggle.scroll_into_view_if_needed()
    toggle.click()
    assert "what is already computed is kept" in dashboard.settle().text()
    assert dashboard.in_url()["curve"] == "off"
    toggle.click()
    assert "Means of 20 runs on fresh data" in dashboard.settle().text()
    assert "points so far" not in dashboard.text()
    dashboard.shoot("modes_curve")


def test_every_chart_has_a_sentence_and_a_table(dashboard):
    dashboard.open("modes?n=1000")
    page = dashboard.page
    for key in ("contours", "surface", "anchors", "curve", "runs"):
        if key == "runs":
            assert "Means of 20 runs" in dashboard.text()
            assert dashboard.open_tab("Twenty runs").in_url()["more"] == "runs"
        dashboard.unfold(f"{key}_table")
        table = page.locator(f".st-key-{key}_table [data-testid=stDataFrame]")
        table.wait_for()
    assert page.locator(".js-plotly-plot").count() == 3  # of the tabs the open one
    assert "DP-GRAMS tight found" in page.locator(".st-key-contours_chart .said").inner_text()
    text = dashboard.text()
    for words in (
        "plain density",
        "anchors drawn from",
        "private runs",
    ):
        assert words in text
