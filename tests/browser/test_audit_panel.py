"""The audit and the proof in a real browser: the panel repeats itself, can be stopped, and leaves nothing running."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlparse

import pytest

QUIET = "guarantee?measure=off&accountants=off"  # the page's other long work
VERDICT = "[data-testid=audit-verdict]"
PATIENCE = 120_000


def in_url(dashboard) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlparse(dashboard.page.url).query).items()}


def press(dashboard, key):
    button = dashboard.page.locator(f".st-key-{key} button:visible").first
    button.scroll_into_view_if_needed()
    button.click()
    return dashboard


def stop_button(dashboard):
    return dashboard.page.locator(".st-key-audit_stop button")


def finished(dashboard):
    """Wait until an audit has begun and ended."""
    stop_button(dashboard).wait_for(timeout=PATIENCE)
    stop_button(dashboard).wait_for(state="detached", timeout=PATIENCE)
    return dashboard.settle()


def shoot(dashboard, name):
    dashboard.page.locator(VERDICT).evaluate("element => element.scrollIntoView()")
    dashboard.page.wait_for_timeout(500)
    dashboard.shoot(name)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light")])
def test_an_audit_runs_by_itself_and_draws_both_pictures(make_dashboard, width, scheme):
    dashboard = make_dashboard(width, scheme).open(f"{QUIET}&audit_method=broken_sum&audit_trials=200")
    assert "No audit yet" in dashboard.text()
    finished(press(dashboard, "audit_run"))
    assert dashboard.page.locator(VERDICT).inner_text().startswith("Caught: broken_sum claims ε = 1")
    text = dashboard.text()
    assert "A pass proves nothing." in text
    assert "1 of 1 audit caught." in text
    for key in ("audits_chart", "audit_worlds_chart"):
        assert dashboard.page.locator(f".st-key-{key} .js-plotly-plot").count() == 1
    dashboard.unfold("audit_worlds_table")
    dashboard.page.locator(".st-key-audit_worlds_table [data-testid=stDataFrame]").wait_for(timeout=20_000)
    dashboard.unfold("proof_functional")
    assert dashboard.page.evaluate("document.documentElement.scrollWidth") <= width
    shoot(dashboard, f"audit_{width}_{scheme}")


def go_to(dashboard, name):
    dashboard.page.get_by_role("link", name=re.compile(name, re.IGNORECASE)).first.click()


def test_the_proof_unfolds_with_its_mathematics_drawn(dashboard):
    dashboard.open(QUIET)
    for key in ("setting", "functional", "tight", "others", "not_covered", "check", "references"):
        dashboard.unfold(f"proof_{key}")
    page = dashboard.page
    page.locator(".st-key-proof_functional .katex").first.wait_for(timeout=20_000)
    assert page.locator(".st-key-proof_functional .katex").count() > 40
    assert page.locator("[class*=st-key-proof_] .katex-error").count() == 0
    text = " ".join(page.locator(f".st-key-proof_{key}").inner_text() for key in ("functional", "others"))
    assert "$" not in text, "a formula was left as it is written"
    for words in ("Theorem", "Bessel", "A counterexample with numbers"):
        assert words in text
    page.locator(".st-key-proof_functional").scroll_into_view_if_needed()
    dashboard.shoot("proof")
