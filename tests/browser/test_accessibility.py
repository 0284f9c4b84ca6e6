"""What axe, the checker of the web's accessibility rules, says of every page, light and dark."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe

# Cheap settings of a page, and its other states.
STATES = {
    "modes": ["modes?n=1000&calibration=theorem&curve=off"],
    "regression": ["regression?reg_n=500&curve=off"],
    "clusters": ["clusters?clu_n_blobs=500&curve=off"],
    "guarantee": [f"guarantee?n=1000&measure=off&accountants=off&tab={tab}" for tab in ("meaning", "methods", "audit")],
}


def serious(page) -> list[str]:
    """What axe finds that keeps people from using a page, and headings out of order."""
    found = Axe().run(page).response["violations"]
    return [
        f"{item['id']}: {node['html'][:200]} {[check['message'] for check in node['any']]}"
        for item in found
        if item["impact"] in ("serious", "critical") or item["id"] == "heading-order"
        for node in item["nodes"]
    ]


def test_axe_finds_nothing_serious_on_any_page(make_dashboard):
    dashboard = make_dashboard().open(STATES["modes"][0])
    page, background = dashboard.page, "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    links = [link.get_attribute("href") for link in page.locator("[data-testid=stSidebarNavLink]").all()]
    names = [str(link).rsplit("/", 1)[-1] for link in links]
    assert len(names) > 6
    faults: dict[str, list[str]] = {}
    for state in [state for name in names for state in STATES.get(name, [name])]:
        page.emulate_media(color_scheme="light")
        page.goto(f"{dashboard.address}/{state}")
        page.wait_for_selector("[data-testid=answer], section[data-step]")
        dashboard.settle()
        for scheme in ("light", "dark"):
            if scheme == "dark":
                light = page.evaluate(background)
                page.emulate_media(color_scheme=scheme)
                dashboard.until(lambda light=light: page.evaluate(background) != light, "the page did not turn dark")
                page.wait_for_timeout(400)  # colours fade over
            if found := serious(page):
                faults[f"{state}, {scheme}"] = found
    assert faults == {}


def test_axe_catches_pale_letters(new_context):
    page = new_context().new_page()
    page.set_content('<html lang="en"><title>x</title><main><h1>A</h1><p style="color:#999">pale</p></main>')
    assert any(fault.startswith("color-contrast") for fault in serious(page))
