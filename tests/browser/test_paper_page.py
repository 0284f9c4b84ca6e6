"""The Paper page in a real browser: tables, the way to the evidence, a deep link, a phone."""

from __future__ import annotations

from dpgrams_core.model.guarantee import STATUSES, status_words
from tests.places import ROOT

RESULTS = ROOT / "assets" / "results"


def test_a_deep_link_opens_a_table_and_the_evidence_is_one_click_away(make_dashboard):
    for width, scheme in ((390, "dark"), (1280, "light")):
        dashboard = make_dashboard(width, scheme)
        page = dashboard.open("paper?paper_modes=modes_t_mixture").page
        assert "Five t-bumps · the paper says" in dashboard.text()
        if (RESULTS / "modes.parquet").exists():
            assert "is at least as good as the printed value in" in dashboard.answer()
            rows = page.locator("table.printed:not(.totals) tbody tr")
            assert rows.count() == 20
            head = page.locator("table.printed:not(.totals) thead").inner_text()
            for words in (*map(status_words, STATUSES), "runs"):
                assert words in head
            assert page.locator(".st-key-paper_ratio_chart .js-plotly-plot").count() == 1
        assert "python -m dpgrams_core reproduce modes" in dashboard.text()
        # A wide table scrolls inside its own frame; the page does not.
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
        dashboard.shoot(f"paper_{width}_{scheme}")
    page.locator(".st-key-paper_part button", has_text="Kernels").click()
    dashboard.settle()
    assert "paper_part=kernels" in page.url
    dashboard.follow("See the evidence on the Guarantee page", "guarantee")
    page.get_by_text("Is the guarantee real, and what does it mean?").first.wait_for()
