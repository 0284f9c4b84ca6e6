"""The Regression page in a real browser: the pointer, the player, every control, deep links."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

import pytest

# key, arrow presses, expected value in the URL: every slider.
SLIDERS = [
    ("reg_n", -1, "500"),
    ("epsilon", -2, "0.5"),
    ("reg_delta", 1, "1e-06"),
    ("h_scale", 2, "1.2"),
    ("reg_clip", 6, "0.05"),
    ("m", 6, "200"),
    ("reg_x", 4, "0.54"),
]
FOLDED_NUMBERS = [
    ("reg_kappa", "3"),
    ("steps", "12"),
    ("reg_eta", "0.5"),
    ("reg_window", "0.1"),
    ("reg_merge", "0.05"),
    ("seed", "7"),
    ("data_seed", "3"),
]
QUIET = "curve=off"


def in_url(dashboard) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlparse(dashboard.page.url).query).items()}


def slice_label(dashboard) -> str:
    return dashboard.page.locator(".st-key-slice_chart .annotation-text").first.text_content()


def test_first_screen_and_the_density_at_the_x_under_the_pointer(dashboard):
    dashboard.open(f"regression?{QUIET}")
    assert "At ε = 1" in dashboard.answer()
    assert "LOWESS draws the mean" in dashboard.answer()
    card = dashboard.page.locator(".st-key-guarantee_card").inner_text()
    for words in ("proven", "ε = 1", "δ = 1e-05", "replace-one", "the release 1"):
        assert words in card
    page = dashboard.page
    area = page.locator(".st-key-branches_chart .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert slice_label(dashboard) == "x = 0.46"
    star = page.locator(".st-key-slice_chart .scatterlayer path.point").first  # the lower true mode
    rest = star.bounding_box()["y"]
    for share, words in ((0.1, "x = 0.10"), (0.7, "x = 0.70")):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.4 * box["height"])
        page.wait_for_function(
            "words => document.querySelector('.st-key-slice_chart .annotation-text').textContent === words",
            arg=words,
            timeout=5_000,
        )
    assert abs(star.bounding_box()["y"] - rest) > 10, "the label followed the pointer, the modes did not"
    dashboard.shoot("regression_pointer")
    page.mouse.move(box["x"] + 5, 5)
    page.wait_for_timeout(500)
    assert slice_label(dashboard) == "x = 0.46"
    assert star.bounding_box()["y"] == pytest.approx(rest, abs=1)


def test_trajectories_play_step_by_step_and_keep_their_axes(dashboard):
    dashboard.open(f"regression?reg_method=dp_pms&reg_n=500&{QUIET}")
    chart = dashboard.page.locator(".st-key-ascent_chart .js-plotly-plot")
    chart.scroll_into_view_if_needed()
    label = chart.locator(".slider-label").first
    assert label.text_content() == "step 7"
    ends = chart.locator(".scatterlayer .trace").nth(3).locator("path.point")
    places = [box["y"] for box in (point.bounding_box() for point in ends.all()[:8])]
    ticks = [tick.bounding_box() for tick in chart.locator(".ytick text").all()]
    chart.locator(".updatemenu-button").first.click()
    seen = set()
    for _ in range(80):
        seen.add(label.text_content())
        dashboard.page.wait_for_timeout(50)
    assert len(seen) >= 4, f"the ascent did not move: {seen}"
    chart.locator(".updatemenu-button").nth(1).click()
    assert [tick.bounding_box() for tick in chart.locator(".ytick text").all()] == ticks
    # Back to the start by the slider: the walkers then stand on their anchors, not at the ends.
    grip = chart.locator(".slider-rail-touch-rect").bounding_box()
    dashboard.page.mouse.click(grip["x"] + 12, grip["y"] + grip["height"] / 2)
    dashboard.page.wait_for_timeout(500)
    assert label.text_content() == "step 0"
    moved = [box["y"] for box in (point.bounding_box() for point in ends.all()[:8])]
    assert moved != places
    dashboard.shoot("regression_playing")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark")])
def test_other_widths_and_dark_mode(make_dashboard, width, scheme):
    dashboard = make_dashboard(width, scheme).open(f"regression?reg_n=500&reg_method=dp_pms&{QUIET}")
    assert dashboard.page.evaluate("document.documentElement.scrollWidth") <= width
    dashboard.shoot(f"regression_{width}_{scheme}")
