"""What axe, the checker of the web's accessibility rules, says of every page and its states, light and dark."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.heard import serious

SMALL = "n=200&method=functional&landscape=off"
LAB = "lab_n_four_corners=60 90&lab_eps_four_corners=1 5&lab_runs=2&lab_kernels=gaussian"
# The states of each page that a link reaches, with cheap settings; others are looked at where another test goes there.
STATES = {
    "modes": [
        f"{SMALL}&curve=off",
        f"{SMALL}&more=runs",
        f"{SMALL}&curve=off&compare=tight",
        f"{SMALL}&presenter=on",
    ],
    "regression": ["reg_n=200&curve=off", "reg_n=200&curve=off&presenter=on"],
    "clusters": ["clu_n_blobs=200&curve=off"],
    "guarantee": [
        f"n=200&measure=off&accountants=off&tab={tab}" for tab in ("meaning", "methods", "accounting", "audit", "proof")
    ],
    "tradeoff": [f"{LAB}&lab_part={part}" for part in ("curve", "sensitivity", "kernel", "sources", "needed")],
    "paper": ["", "paper_part=kernels", "presenter=on"],
    "lessons": ["", "lesson=what_a_mode_is&guess=1"],
}
# Labels of a paper's source, which say nothing to a reader.
LABELS = re.compile(r"\\(?:label|ref|eqref|cite)\b|\b(?:eq|thm|lem|prop|cor|alg|def|sec|fig|tab|app|ass):[\w-]+")


@pytest.mark.parametrize("which", ["first", "second"])
def test_axe_finds_nothing_serious_on_any_page(make_dashboard, which):
    dashboard = make_dashboard().open(f"modes?{STATES['modes'][0]}")
    page, background = dashboard.page, "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    links = [link.get_attribute("href") for link in page.locator("[data-testid=stSidebarNavLink]").all()]
    names = [str(link).rsplit("/", 1)[-1] for link in links]
    assert len(names) > 6
    faults: dict[str, list[str]] = {}

    light = page.evaluate(background)

    def look(state: str) -> None:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            if scheme == "dark":
                dashboard.until(lambda: page.evaluate(background) != light, "the page did not turn dark")
                page.wait_for_timeout(400)  # colours fade over
            found = serious(page) + LABELS.findall(page.locator("body").inner_text())
            if found:
                faults[f"{state}, {scheme}"] = found
        page.emulate_media(color_scheme="light")

    states = [f"{name}?{query}" for name in names for query in STATES.get(name, [""])]
    for state in states[which == "second" :: 2]:
        page.goto(f"{dashboard.address}/{state}")
        page.wait_for_selector("[data-testid=answer], section[data-step], figure")
        look(dashboard.settle() and state)
    if which == "first":
        dashboard.open(f"modes?{STATES['modes'][0]}")
        page.locator(".st-key-share_page button").click()
        dialog = page.get_by_role("dialog")
        for tab in ("This page as a link", "Scenes of a talk"):
            dialog.get_by_role("tab", name=tab).click()
            dashboard.settle()
            look(tab)
    else:
        dashboard.open("attacker")
        for number in range(10):
            expect(page.get_by_text(f"Round {number + 1} of 10")).to_be_visible()
            page.locator(".st-key-attack_yes button").click()
        expect(page.get_by_text("You were right in")).to_be_visible()
        look(dashboard.settle() and "the attacker's score")
    assert faults == {}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<p style="color:#999">pale</p>', "color-contrast"),
        ("<h3>B</h3>", "headings jump"),
        (
            '<canvas role="img" aria-label="x"></canvas><canvas role="img" aria-label="x"></canvas>',
            "pictures have no names",
        ),
    ],
)
def test_what_is_wrong_is_caught(new_context, body, fault):
    page = new_context().new_page()
    page.set_content(f'<html lang="en"><title>x</title><main><h1>A</h1>{body}</main>')
    assert any(found.startswith(fault) for found in serious(page))


@pytest.mark.parametrize("text", ["by thm:privacy", "see eq:mode-update", "\\label{x}", "(lem:clip)"])
def test_a_label_is_caught(text):
    assert LABELS.search(text)
    assert not LABELS.search("ε = 1: at most 73%. Default: none; app: Streamlit")
