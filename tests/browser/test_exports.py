"""Downloads from a page, and what was downloaded opened from disk without a network."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from dpgrams_core import METHODS, load_dataset, load_table, run
from dpgrams_core.exports.report import RELEASE_ORIGIN, ledger_line, simulation_origin, stakeholder_report
from dpgrams_core.figures.modes import contour_chart
from dpgrams_core.figures.own_data import Units, pair_panels
from dpgrams_core.figures.traces import density_grid
from dpgrams_core.own_data.postprocess import released_modes
from dpgrams_core.own_data.release import release
from dpgrams_core.privacy.ledger.book import Ledger
from tests.heard import serious


def downloaded(page, button) -> Path:
    """The file that a click gives, under its own name."""
    with page.expect_download() as waiting:
        button.click()
    return waiting.value


def pages_of(pdf: bytes) -> int:
    """How many pages a PDF of the browser has: by the pages themselves, and by what their list says."""
    assert pdf.startswith(b"%PDF")
    pages = re.findall(rb"/Type\s*/Page(?![A-Za-z])", pdf)
    (counted,) = re.findall(rb"/Count\s+(\d+)", re.search(rb"<<[^<>]*/Type\s*/Pages\b[^<>]*>>", pdf)[0])
    assert len(pages) == int(counted)
    return len(pages)


def test_a_chart_and_a_page_can_be_taken_home_and_open_without_a_network(dashboard, new_context, tmp_path):
    dashboard.open("modes?n=200&method=functional&epsilon=5&curve=off&runs=off&landscape=off")
    page = dashboard.page
    saved = {}

    def take(button) -> None:
        found = downloaded(page, button)
        saved[found.suggested_filename] = tmp_path / found.suggested_filename
        found.save_as(saved[found.suggested_filename])

    answer = dashboard.answer()
    dashboard.unfold("contours_table")
    for key in ("contours_csv", "contours_html"):
        take(page.locator(f".st-key-{key} button"))
    png = "dp-grams-four_corners-functional-epsilon-5.png"
    beside = page.locator(".st-key-contours_chart_image")
    assert beside.get_by_role("button", name="SVG").count() == 0  # in its HTML
    title = page.get_by_role("heading", name="Where the private search ends up").bounding_box()
    button = beside.get_by_role("button", name="PNG").bounding_box()
    assert title["y"] < button["y"] + button["height"] / 2 < title["y"] + title["height"]
    take(beside.get_by_role("button", name="PNG"))
    dashboard.shoot("exports_chart")
    page.locator(".st-key-page_export button").first.click()
    for name in ("report_html", "simulation_py", "settings_json"):
        take(page.locator(f".st-key-export_{name} button"))
    dashboard.shoot("exports_page")
    assert dashboard.settle().answer() == answer  # a download changes nothing

    assert set(saved) == {
        "contours.csv",
        "contours.html",
        png,
        "report.html",
        "simulation.py",
        "settings.json",
    }
    rows = list(csv.reader(io.StringIO(saved["contours.csv"].read_text(encoding="utf-8-sig"))))
    assert len(rows) > 4
    assert saved[png].read_bytes().startswith(b"\x89PNG")
    assert saved[png].stat().st_size > 10_000

    context = new_context(offline=True)
    asked: list[str] = []
    for name in ("report.html", "contours.html"):
        tab = context.new_page()
        errors: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
        tab.on("console", lambda said, errors=errors: errors.append(said.text) if said.type == "error" else None)
        tab.goto(saved[name].as_uri())
        tab.wait_for_selector("#picture-0 .scatterlayer .trace path.point", state="attached")
        assert tab.locator("#picture-0 svg.main-svg").first.bounding_box()["width"] > 300
        assert errors == []
        assert serious(tab) == []
        tab.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        if name == "report.html":
            text = tab.locator("body").inner_text()
            assert answer in text
            assert "can become at most" in text
            tab.emulate_media(media="print")
            assert pages_of(tab.pdf(prefer_css_page_size=True)) == 1
            tab.evaluate("document.body.append(document.body.cloneNode(true))")
            assert pages_of(tab.pdf(prefer_css_page_size=True)) > 1  # two reports are no one page
        else:
            with tab.expect_download() as waiting:
                tab.get_by_role("button", name="Save as SVG").click()
            assert waiting.value.suggested_filename.endswith(".svg")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_a_comparison_shows_both_pictures_whole_and_prints_to_two_pages(new_context, tmp_path):
    data = load_dataset("four_corners", n=300, seed=0)
    plain, made = run("mean_shift", data, seed=0), {}
    for calibration in ("tight", "experiments"):
        found = run("dp_grams", data, seed=0, calibration=calibration)
        grid = density_grid(data, "gaussian", found.spec.bandwidth)
        made[calibration] = (replace(contour_chart(data, grid, found, plain), title=calibration), found.guarantee)
    report = stakeholder_report(
        question="What does privacy cost?",
        answer="Two methods, side by side.",
        charts=[chart for chart, _ in made.values()],
        guarantees=[(title, guarantee) for title, (_, guarantee) in made.items()],
        origin=simulation_origin([0, 0]),
        notes=["A note."],
    )
    (tmp_path / "report.html").write_text(report, encoding="utf-8")
    for width in (390, 1100, 1440):
        tab = new_context(width, offline=True).new_page()
        tab.goto((tmp_path / "report.html").as_uri())
        tab.wait_for_selector("#picture-1 svg.main-svg", state="attached")
        for number in (0, 1):  # nothing of a picture lies outside its own place
            drawn, place = (
                tab.locator(f"#picture-{number}{inner}").first.bounding_box() for inner in (" svg.main-svg", "")
            )
            assert drawn["width"] > 300
            assert drawn["x"] + drawn["width"] <= place["x"] + place["width"] + 1
        boxes = [tab.locator(f"#picture-{number}").bounding_box() for number in (0, 1)]
        assert (boxes[0]["y"] == boxes[1]["y"]) == (width > 390)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert serious(tab) == []
        assert tab.locator(".pictures h2").all_inner_texts() == ["tight", "experiments"]
        assert tab.locator("caption").all_inner_texts() == ["The numbers of tight", "The numbers of experiments"]
    tab.emulate_media(media="print")
    assert pages_of(tab.pdf(prefer_css_page_size=True)) <= 2


def test_the_report_of_a_release_is_one_page_too(new_context, tmp_path):
    people = pd.DataFrame(np.random.default_rng(0).normal(50, 9, (400, 3)), columns=["age", "pay", "height"])
    data = load_table(people, columns=list(people), box=[(0, 100)] * 3)
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    paid = release("functional", data, ledger, epsilon=2.0)
    panels = pair_panels(Units(data.columns, data.box), released_modes(paid.release), None)
    report = stakeholder_report(
        question="What can you say about your own data?",
        answer="For ε = 2 you can say: one peak in age, pay and height. What follows is free.",
        charts=[panels],
        guarantees=[(METHODS["functional"].title, paid.release.guarantee)],
        origin=RELEASE_ORIGIN,
        ledger=ledger_line(paid.charge, ledger.account(paid.charge.account)),
        notes=data.statements,
    )
    (tmp_path / "report.html").write_text(report, encoding="utf-8")
    tab = new_context().new_page()
    tab.goto((tmp_path / "report.html").as_uri())
    tab.wait_for_selector("#picture-0 svg.main-svg", state="attached")
    tab.emulate_media(media="print")
    assert pages_of(tab.pdf(prefer_css_page_size=True)) == 1
