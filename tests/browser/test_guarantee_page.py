"""The Guarantee page in a real browser: the answer, deep links, tables, measuring that can be stopped."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

import pytest

QUIET = "measure=off&accountants=off"  # most tests need not wait for the long work
TABLES = ("beliefs", "power", "errors", "accountants", "budget", "records")


def in_url(dashboard) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlparse(dashboard.page.url).query).items()}


def test_it_answers_in_words_and_controls_move_the_page(dashboard):
    dashboard.open(f"guarantee?{QUIET}")
    assert "was 50% sure" in dashboard.answer()
    assert "at most 73% sure" in dashboard.answer()
    dashboard.slide("epsilon", 2)
    assert "At ε = 2 " in dashboard.answer()
    assert "88%" in dashboard.answer()
    dashboard.slide("prior", -10)
    assert "was 40% sure" in dashboard.answer()
    for key, presses, expected in (("n", -2, "1200"), ("clip", -2, "0.5")):  # the app tests move every one
        before = dashboard.text()
        dashboard.slide(key, presses)
        assert in_url(dashboard)[key] == expected
        assert dashboard.text() != before, f"moving {key} changed nothing on the page"
    before = dashboard.text()
    dashboard.type_number("steps", "12")
    assert "T = 12" in dashboard.text()
    assert dashboard.text() != before
    dashboard.shoot("guarantee_after_controls")


def test_every_chart_has_a_sentence_and_a_readable_table(dashboard):
    dashboard.open("guarantee?n=200&steps=3")
    page = dashboard.page
    text = dashboard.text()
    for words in (
        "A test that accuses wrongly in 5%",
        "means of 20 runs on fresh data",
        "The same noise, priced five ways",
        "the functional release pays once",
        "Useful means: noise at most a third",
        "Can we catch it?",
        "Why is it private?",
    ):
        assert words in text
    assert page.locator(".js-plotly-plot").count() >= 5
    for key in TABLES:
        dashboard.unfold(f"{key}_table")
        page.locator(f".st-key-{key}_table [data-testid=stDataFrame]").wait_for(timeout=20_000)
    rows = page.locator("table.methods tbody tr")
    assert rows.count() == 5
    assert "nominal: not a proof" in rows.first.inner_text()
    assert "20 runs" in rows.last.inner_text()
    dashboard.shoot("guarantee_tables")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark")])
def test_other_widths_and_dark_mode(make_dashboard, width, scheme):
    dashboard = make_dashboard(width, scheme).open(f"guarantee?n=1000&{QUIET}")
    assert dashboard.page.evaluate("document.documentElement.scrollWidth") <= width
    dashboard.shoot(f"guarantee_{width}_{scheme}")
