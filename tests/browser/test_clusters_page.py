"""The Clusters page in a real browser: blobs with sliders, and digits on a phone."""

from __future__ import annotations

from dpgrams_core.figures.clusters import PANEL_POINTS

# key, arrow presses, expected value in the URL; the app tests move every one.
SLIDERS = [("clu_n_blobs", -1, "200"), ("epsilon", -2, "0.5"), ("clu_count", 4, "3"), ("clip", 2, "2")]
PANELS = ("mean_shift_c", "private", "kmeans", "dp_kmeans")
QUIET = "curve=off"


def panel_boxes(dashboard) -> list[dict[str, float]]:
    return [dashboard.page.locator(f".st-key-panel_{name}_chart").bounding_box() for name in PANELS]


def test_blobs_first_screen_tables_and_sliders(dashboard):
    dashboard.open(f"clusters?{QUIET}")
    assert "At ε = 1 on Four blobs" in dashboard.answer()
    assert "In this run" in dashboard.answer()
    boxes = panel_boxes(dashboard)
    assert max(box["y"] for box in boxes) - min(box["y"] for box in boxes) < 5, "the panels are not side by side"
    assert [box["x"] for box in boxes] == sorted(box["x"] for box in boxes)
    for name in PANELS:
        points = dashboard.page.locator(f".st-key-panel_{name}_chart .scatterlayer .trace")
        assert points.nth(0).locator("path.point").count() == PANEL_POINTS
        assert points.nth(2).locator("path.point").count() == 4  # the true centres
    card = dashboard.page.locator(".st-key-guarantee_card").inner_text()
    for words in ("proven, given the representation", "ε = 1", "δ = 1e-6", "replace-one", "takes it as public"):
        assert words in card
    dashboard.shoot("clusters_blobs")
    page = dashboard.page
    for key, words in (("panels", "DP-k-means"), ("confusion", "blob 1")):
        dashboard.unfold(f"{key}_table")
        cells = page.locator(f".st-key-{key}_table [role=gridcell]")
        cells.first.wait_for(state="attached")
        assert words in cells.all_inner_texts()
    # A calibration whose run takes 3 ms: each move makes nineteen, and those of the default take 500.
    quick = "clu_method=dp_grams_c&calibration=theorem&clu_n_blobs=300"
    dashboard.open(f"clusters?{quick}&{QUIET}").unfold("method_settings")
    dashboard.slide_each(SLIDERS)
    link, last = page.url, dashboard.answer()
    assert "At ε = 0.5" in last
    page.goto(link)
    page.wait_for_selector("[data-testid=answer]")
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
