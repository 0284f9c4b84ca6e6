"""What those meet who hear a page or see it poorly: axe's findings, the order of headings, the names of pictures."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# Levels of the headings that are shown, and names of the pictures, those within components included.
HEARD = """() => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((one) => [one, ...within(one)]);
  const within = (one) => (one.shadowRoot ? all(one.shadowRoot) : []);
  const shown = all(document).filter((one) => one.checkVisibility());
  const pictures = shown.filter((one) => one.matches("canvas[role=img], .stPlotlyChart, .js-plotly-plot[role]"));
  return {
    levels: shown.filter((one) => /^H[1-6]$/.test(one.tagName)).map((one) => Number(one.tagName[1])),
    pictures: pictures.map((one) => one.getAttribute("aria-label") || ""),
  };
}"""


def serious(page: Page) -> list[str]:
    """What keeps people from using a page: by axe, headings that jump, pictures without a name of their own."""
    found = [
        f"{item['id']}: {node['html'][:200]} {[check['message'] for check in node['any']]}"
        for item in Axe().run(page).response["violations"]
        if item["impact"] in ("serious", "critical") or item["id"] == "heading-order"
        for node in item["nodes"]
    ]
    heard = page.evaluate(HEARD)
    levels, pictures = heard["levels"], heard["pictures"]
    if any(after > before + 1 for before, after in zip([0, *levels], levels, strict=False)):
        found.append(f"headings jump: {levels}")
    if len({*pictures} - {""}) < len(pictures):
        found.append(f"pictures have no names of their own: {pictures}")
    return found
