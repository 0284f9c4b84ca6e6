"""The Clusters page in a real browser: blobs with every control, digits on a phone, MNIST at full size."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

import pytest

pytestmark = pytest.mark.xdist_group("browser")

# key, arrow presses, expected value in the URL: every slider of DP-GRAMS-C.
SLIDERS = [
    ("clu_n_blobs", -1, "200"),
    ("epsilon", -2, "0.5"),
    ("delta", 1, "1e-07"),
    ("clu_count", 4, "3"),
    ("h_scale", 2, "1.2"),
    ("clip", 2, "2"),
    ("m", 4, "50"),
]
PANELS = ("mean_shift_c", "private", "kmeans", "dp_kmeans")
QUIET = "curve=off"


def in_url(dashboard) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlparse(dashboard.page.url).query).items()}


def panel_boxes(dashboard) -> list[dict[str, float]]:
    return [dashboard.page.locator(f".st-key-panel_{name}_chart").bounding_box() for name in PANELS]


def test_blobs_first_screen_tables_and_every_slider(dashboard):
    dashboard.open(f"clusters?{QUIET}")
    assert "At ε = 1 on Four blobs" in dashboard.answer()
    assert "In this run" in dashboard.answer()
    boxes = panel_boxes(dashboard)
    assert max(box["y"] for box in boxes) - min(box["y"] for box in boxes) < 5, "the panels are not side by side"
    assert [box["x"] for box in boxes] == sorted(box["x"] for box in boxes)
    for name in PANELS:
        points = dashboard.page.locator(f".st-key-panel_{name}_chart .scatterlayer .trace")
        assert points.nth(0).locator("path.point").count() == 1_000
        assert points.nth(2).locator("path.point").count() == 4  # the true centres
    card = dashboard.page.locator(".st-key-guarantee_card").inner_text()
    for words in ("proven", "ε = 1", "δ = 1e-06", "replace-one", "takes it as public"):
        assert words in card
    dashboard.shoot("clusters_blobs")
    page = dashboard.page
    for key, words in (("panels", "DP-k-means"), ("confusion", "blob 1")):
        dashboard.unfold(f"{key}_table")
        cells = page.locator(f".st-key-{key}_table [role=gridcell]")
        cells.first.wait_for(state="attached", timeout=20_000)
        assert words in cells.all_inner_texts()
    dashboard.open(f"clusters?clu_method=dp_grams_c&clu_n_blobs=300&{QUIET}")
    for key, presses, expected in SLIDERS:
        before = dashboard.text()
        dashboard.slide(key, presses)
        assert in_url(dashboard)[key] == expected
        assert dashboard.text() != before, f"moving {key} changed nothing on the page"
    link, last = page.url, dashboard.answer()
    assert "At ε = 0.5" in last
    page.goto(link)
    page.wait_for_selector("[data-testid=answer]", timeout=60_000)
    assert dashboard.settle().answer() == last


def test_digits_on_a_dark_phone_have_pictures(make_dashboard):
    dashboard = make_dashboard(390, "dark").open(f"clusters?clu_dataset=digits&clu_n_digits=500&{QUIET}")
    page = dashboard.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    boxes = panel_boxes(dashboard)
    assert len({round(box["x"] / 50) for box in boxes}) == 2, "the panels are not two by two"
    pictures = page.locator(".st-key-gallery img")
    assert pictures.count() == 10
    pictures.last.scroll_into_view_if_needed()
    page.wait_for_function(
        "[...document.querySelectorAll('.st-key-gallery img')].every(item => item.naturalWidth > 50)"
    )
    assert "true mean of its class" in pictures.first.get_attribute("alt")
    rows = {round(pictures.nth(number).bounding_box()["y"]) for number in range(10)}
    assert len(rows) > 1, "the row of pictures does not wrap"
    dashboard.shoot("clusters_digits_390_dark")


def test_mnist_at_full_size_and_mean_shift_waits(dashboard):
    page = dashboard.page
    page.goto(f"{dashboard.address}/clusters?clu_dataset=mnist&{QUIET}")
    page.wait_for_selector("text=on 69,000 records…", timeout=60_000)  # it says what it does meanwhile
    page.wait_for_selector("[data-testid=answer]", timeout=240_000)
    dashboard.settle()
    assert "on MNIST" in dashboard.answer()
    assert "mean shift" not in dashboard.answer()
    assert "It would climb from 579 of the 69,000 records" in dashboard.text()
    assert page.locator(".st-key-mean_shift_start").count() == 1
    assert page.locator(".st-key-gallery img").count() == 10
    assert "average digit" in dashboard.text()
    dashboard.shoot("clusters_mnist")
