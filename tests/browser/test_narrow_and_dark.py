"""Every page of results on a narrow screen in dark mode."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

PAGES = {
    "modes": "modes?n=1000&calibration=theorem",
    "regression": "regression?reg_n=500&reg_method=dp_pms&curve=off",
    "clusters": "clusters?clu_n_blobs=500&curve=off",
    "guarantee": "guarantee?n=1000&measure=off&accountants=off",
}

# Everything in the page's main part that the keyboard stops at, in that order, with its words and its upper edge.
STOPS = """main => {
  const found = [];
  const walk = node => {
    for (const child of node.children) {
      const seen = child.checkVisibility({ visibilityProperty: true, opacityProperty: true });
      if (seen && child.tabIndex >= 0 && !child.disabled && child.matches("button, input, summary, [tabindex]")) {
        const words = child.getAttribute("aria-label") || child.innerText || child.tagName;
        found.push([words, child.getBoundingClientRect().top]);
      }
      if (child.shadowRoot) walk(child.shadowRoot);
      walk(child);
    }
  };
  walk(main);
  return found;
}"""


# How far what is seen moved by itself while a page came, as browsers measure it (layout shift).
MOVED = """window.moved = [];
new PerformanceObserver(list => window.moved.push(...list.getEntries().map(one => one.value)))
  .observe({ type: "layout-shift", buffered: true });"""


def moved(dashboard):
    """All of it so far, also what came within half a second of a press, which browsers do not count."""
    return sum(dashboard.page.evaluate("window.moved"))


@pytest.mark.parametrize("name", PAGES)
def test_what_is_seen_stays_where_it_is_while_a_page_comes(make_dashboard, name):
    dashboard = make_dashboard()
    dashboard.page.set_viewport_size({"width": 1280, "height": 720})
    dashboard.page.add_init_script(MOVED)
    dashboard.open(PAGES[name])
    assert moved(dashboard) < 0.1
    stops = dashboard.page.get_by_test_id("stSidebarUserContent").evaluate(STOPS)
    assert stops[-1][0].endswith("Share and present")
    for (_, above), (stop, below) in pairwise(stops):
        assert below > above - 60, stop  # a row may be as high
    dashboard.page.evaluate("document.querySelector('.stMainBlockContainer').style.paddingTop = '400px'")
    dashboard.until(lambda: moved(dashboard) > 0.1, "a shift was not seen")


# How much room a picture with its handle keeps below its last line.
BLANK = """pictures => Math.max(...pictures.map(room => {
  const last = [...room.querySelectorAll("*")].map(one => one.shadowRoot?.querySelector("details")).find(Boolean);
  return room.getBoundingClientRect().bottom - last.getBoundingClientRect().bottom;
}))"""


@pytest.mark.parametrize("query", ["modes?n=1000&compare=functional", "regression?reg_n=500&curve=off"])
def test_no_blank_band_is_left_below_a_picture_when_the_window_grows(make_dashboard, query):
    dashboard = make_dashboard().open(query)
    pictures = dashboard.page.locator("[class*=_chart_square], [class*=_chart_wide]")
    for width, height in ((1280, 720), (1280, 1300), (1600, 1300)):
        dashboard.page.set_viewport_size({"width": width, "height": height})
        dashboard.until(lambda: pictures.evaluate_all(BLANK) < 30, f"a blank band at {width} x {height}")


@pytest.mark.parametrize("name", PAGES)
def test_it_fits(make_dashboard, name):
    dashboard = make_dashboard(390, "dark")
    dashboard.page.add_init_script(MOVED)
    dashboard.open(PAGES[name])
    assert moved(dashboard) < 0.1, "while the page came"
    dashboard.assert_fits(390)
    head = dashboard.page.get_by_test_id("stHeader").bounding_box()
    assert dashboard.page.locator("h1").bounding_box()["y"] >= head["y"] + head["height"], "the head covers the title"
    dashboard.shoot(f"{name}_390_dark")
    if name == "guarantee":  # its ε is a control of the page
        assert dashboard.page.locator(".st-key-epsilon").bounding_box()["y"] < 600
        assert dashboard.page.locator(".stSidebar .st-key-epsilon").count() == 0
        return
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
    assert dashboard.page.locator("[data-testid=stMetricLabel] .stMarkdownEllipsis").evaluate_all(cut) == []
    # ε stands under the picture and not in a drawer, before all other controls; tab stops have the order that is seen.
    stops = dashboard.page.locator("[data-testid=stMain]").evaluate(STOPS)
    handle = next(place for place, (words, _) in enumerate(stops) if words.startswith("Privacy budget, ε"))
    before = [words for words, _ in stops[:handle] if words != "Help"]  # which explains the title and sets nothing
    assert before == ["Save the picture as PNG", "▶ ε"]  # neither sets anything: the second plays the handle
    picture = dashboard.page.locator("canvas[role=img]").first.bounding_box()
    assert picture["y"] + picture["height"] <= stops[handle][1] < 844
    for (_, above), (stop, below) in pairwise(stops):
        assert below > above - 60, stop  # a row may be as high
    handle = dashboard.page.get_by_role("slider", name=re.compile("drag to see")).bounding_box()
    before, y = moved(dashboard), handle["y"] + handle["height"] / 2
    dashboard.page.mouse.move(handle["x"] + handle["width"] / 2, y)
    dashboard.page.mouse.down()
    for share in (0.3, 0.1, 0.5, 0.9):
        dashboard.page.mouse.move(handle["x"] + share * handle["width"], y, steps=5)
    dashboard.page.mouse.up()
    dashboard.until(lambda: "epsilon" in dashboard.page.url, "letting go did not set ε")
    dashboard.settle()
    assert moved(dashboard) - before < 0.1, "while ε moved, and after it"
