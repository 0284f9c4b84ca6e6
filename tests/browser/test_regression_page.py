"""The Regression page in a real browser: the pointer."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

QUIET = "curve=off"


def test_first_screen_and_the_density_at_the_x_under_the_pointer(dashboard):
    dashboard.open(f"regression?{QUIET}")
    assert "At ε = 1" in dashboard.answer()
    assert "LOWESS draws the mean" in dashboard.answer()
    card = dashboard.page.locator(".st-key-guarantee_card").inner_text()
    for words in ("proven", "ε = 1", "δ = 1e-5", "replace-one", "the release 1"):
        assert words in card
    page = dashboard.page
    area = page.locator(".st-key-branches_chart .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    label = page.locator(".st-key-slice_chart .annotation-text")
    expect(label.first).to_have_text("x = 0.46")
    star = page.locator(".st-key-slice_chart .scatterlayer path.point").first  # the lower true mode
    rest = star.bounding_box()["y"]
    for share, words in ((0.1, "x = 0.10"), (0.7, "x = 0.70")):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.4 * box["height"])
        expect(label.first).to_have_text(words)
    assert abs(star.bounding_box()["y"] - rest) > 10, "the label followed the pointer, the modes did not"
    dashboard.shoot("regression_pointer")
    page.mouse.move(box["x"] + 5, 5)
    expect(label.first).to_have_text("x = 0.46")
    assert star.bounding_box()["y"] == pytest.approx(rest, abs=1)
