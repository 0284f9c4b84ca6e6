"""Links into the middle of the dashboard, also on a server that nobody has visited yet."""

from __future__ import annotations

import sqlite3
import time
import urllib.request
from contextlib import closing
from urllib.error import HTTPError

import pytest

from dpgrams_core.privacy.ledger.book import Ledger
from pages._ui.server.app import HEALTH, HEALTH_SECONDS

# One server for the whole file's process group: these start their own.


def test_the_first_visitor_may_come_by_a_deep_link(cold_server, new_context):
    page = new_context().new_page()
    page.goto(f"{cold_server}/guarantee?epsilon=2&n=1000")
    page.wait_for_selector("[data-testid=answer]")
    page.wait_for_function("document.querySelector('[data-testid=answer]').innerText.includes('ε = 2')")
    names = page.locator("[data-testid=stSidebarNavLink]").all_inner_texts()
    assert any("Guarantee" in name for name in names)
    assert not any(name.strip() == "app" for name in names)
    assert "/guarantee" in page.url
    assert "epsilon=2" in page.url
    assert "n=1000" in page.url
    # What is for researchers stands together, and leads to the parts of pages that it always was; so do links of old.
    items = page.locator("[data-testid=stSidebarNavItems] > li")
    above = [item.evaluate("item => getComputedStyle(item, '::before').content") for item in items.all()]
    assert [number for number, words in enumerate(above) if words == '"For researchers"'] == [len(names) - 3]
    assert [name.split("\n")[-1] for name in names[-3:]] == ["Kernel, sensitivity", "Accountants", "Paper"]
    page.get_by_role("link", name="Accountants").click()
    page.wait_for_url("**/guarantee?*tab=accounting*")
    parts = page.locator(".st-key-lab_part button")
    for old in ("lab_part=kernel", "lab_part=needed"):
        page.goto(f"{cold_server}/tradeoff?{old}&lab_n_four_corners=60&lab_eps_four_corners=1&lab_runs=2")
        parts.first.wait_for()
        assert old in page.url
        assert ("Kernel" in parts.all_inner_texts()) == (old == "lab_part=kernel")


def test_pages_open_while_somebody_holds_the_ledger(cold_server, tmp_path, new_context):
    """The health route tells a load balancer of it; a page that asks whether the server is there goes on."""
    Ledger(tmp_path / "ledger.sqlite3")
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(HEALTH_SECONDS)
        with pytest.raises(HTTPError, match="503"):
            urllib.request.urlopen(cold_server + HEALTH)
        page = new_context().new_page()
        page.goto(f"{cold_server}/modes?n=50&curve=off&runs=off&landscape=off")
        page.wait_for_selector("[data-testid=answer]")
