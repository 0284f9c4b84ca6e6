"""Links into the middle of the dashboard, also on a server that nobody has visited yet."""

from __future__ import annotations

# One server for the whole file's process group: these start their own.


def test_the_first_visitor_may_come_by_a_deep_link(cold_server, browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(f"{cold_server}/guarantee?epsilon=2&n=1000")
    page.wait_for_selector("[data-testid=answer]", timeout=60_000)
    page.wait_for_function("document.querySelector('[data-testid=answer]').innerText.includes('ε = 2')")
    names = page.locator("[data-testid=stSidebarNavLink]").all_inner_texts()
    assert any("Guarantee" in name for name in names)
    assert not any(name.strip() == "app" for name in names)
    assert "/guarantee" in page.url
    assert "epsilon=2" in page.url
    assert "n=1000" in page.url
    context.close()
