"""The Guarantee page in a real browser: the answer, deep links, tables, measuring that can be stopped."""

from __future__ import annotations

from dpgrams_core.model.guarantee import status_words

QUIET = "measure=off&accountants=off"  # most tests need not wait for the long work
# Each tab, what it says, and its tables.
TABS = (
    ("What it means", ("A test that accuses wrongly in 5%",), ("beliefs", "power")),
    ("The methods", ("means of 20 runs on fresh data", "Useful means: noise at most a third"), ("errors", "records")),
    (
        "Accounting",
        ("The same noise, priced five ways", "the functional release pays once"),
        ("accountants", "budget"),
    ),
    ("The audit", ("Can we catch it?",), ()),
    ("The proof", ("Why is it private?",), ()),
)


def test_it_answers_in_words_and_controls_move_the_page(dashboard):
    dashboard.open(f"guarantee?{QUIET}")
    assert "was 50% sure" in dashboard.answer()
    assert "at most 73% sure" in dashboard.answer()
    dashboard.slide("epsilon", 2)
    assert "At ε = 2 " in dashboard.answer()
    assert "88%" in dashboard.answer()
    dashboard.slide("prior", -10)
    assert "was 40% sure" in dashboard.answer()
    dashboard.open_tab("The methods")
    dashboard.unfold("method_settings")
    dashboard.slide_each((("n", -2, "1200"), ("clip", -2, "0.5")))  # the app tests move every one
    before = dashboard.text()
    dashboard.type_number("steps", "12")
    assert "T = 12" in dashboard.text()
    assert dashboard.text() != before
    dashboard.shoot("guarantee_after_controls")


def test_every_chart_has_a_sentence_and_a_readable_table(dashboard):
    page = dashboard.open("guarantee?n=200&steps=3").page
    for tab, sentences, tables in TABS:
        dashboard.open_tab(tab)
        text = dashboard.text()
        for words in sentences:
            assert words in text
        for key in tables:
            dashboard.unfold(f"{key}_table")
            page.locator(f".st-key-{key}_table [data-testid=stDataFrame]").wait_for()
        if tab == "The methods":
            rows = page.locator("table.methods tbody tr")
            assert rows.count() == 5
            assert "proven" in rows.first.inner_text()
            assert status_words("nominal") in rows.nth(2).inner_text()
            assert "20 runs" in rows.last.inner_text()
            dashboard.shoot("guarantee_tables")
