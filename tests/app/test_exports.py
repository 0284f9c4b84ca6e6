"""The exports of every page, built as a click would build them."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from urllib.parse import parse_qsl

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core import load_dataset, run, score
from dpgrams_core.exports import registry
from dpgrams_core.exports.script import calls_script, simulation_script
from dpgrams_core.exports.settings import open_settings, sweep_calls
from dpgrams_core.model.format import short
from dpgrams_core.model.guarantee import status_words
from dpgrams_core.model.run import Run
from dpgrams_core.sweeps.run import plan_cells
from pages._ui import exports
from tests.shown import answer_html

PAGES = {
    "modes": {"n": "200", "seed": "3", "epsilon": "2", "curve": "off", "runs": "off", "landscape": "off"},
    "regression": {"reg_n": "100", "seed": "3", "curve": "off"},
    "clusters": {"clu_n_blobs": "200", "seed": "3", "curve": "off"},
    "guarantee": {"n": "200", "epsilon": "2", "measure": "off", "accountants": "off", "tab": "methods"},
}

SMALL = {"lab_n_four_corners": "60 90", "lab_eps_four_corners": "1 5", "lab_runs": "2", "lab_seed": "4"}
OTHERS = {"tradeoff": SMALL, "paper": {"paper_part": "kernels"}}


@pytest.fixture
def opened(opened_with_files):
    """``opened(page, **query)``: the page, and its files by the key of their button."""
    return lambda page, **query: opened_with_files(page, {**(PAGES | OTHERS)[page], **query})


def answer(app: AppTest) -> str:
    return exports.plain_text(answer_html(app))


def built(file: exports.File) -> str:
    content = file.build()
    return content if isinstance(content, str) else content.decode("utf-8-sig")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_a_report_a_script_and_its_settings_and_every_chart_its_files(opened, page):
    app, files = opened(page)
    shown = {item.key for item in app.get("download_button")}
    assert shown == set(files)
    assert {"export_report_html", "export_simulation_py", "export_settings_json"} <= shown
    # An expander under a chart has its table, its page, and the buttons that the browser serves.
    charts = [key.removesuffix("_html") for key in shown if key.endswith("_html") and not key.startswith("export_")]
    assert len(charts) >= 2
    assert {f"{key}_csv" for key in charts} <= shown
    for key in charts:
        table = pd.read_csv(io.StringIO(built(files[f"{key}_csv"])))
        assert len(table.columns) >= 1
    recipes = open_settings(built(files["export_settings_json"])).runs
    assert built(files["export_simulation_py"]) == simulation_script(recipes)
    report = built(files["export_report_html"])
    assert answer(app).split("\n")[0][:60] in exports.plain_text(report.split("</head>")[1])
    assert "Is the guarantee real?" in report
    assert "Simulation" in report


def test_the_settings_of_the_modes_page_give_the_numbers_of_its_answer(opened):
    app, files = opened("modes", method="functional")
    first, baseline = open_settings(built(files["export_settings_json"])).runs
    assert (first.method, first.n, first.seed, first.epsilon) == ("functional", 200, 3, 2.0)
    for recipe in (first, baseline):
        assert short(score_of(recipe)["mse_per_true_mode"]) in answer(app)


def test_the_tradeoff_page_gives_a_report_and_the_script_of_its_sweep(opened):
    app, files = opened("tradeoff")
    while not any(item.value.startswith("Complete") for item in app.caption):
        app.run()
    assert not app.exception
    sources = [arguments for _, arguments in sweep_calls(lab_grid(seed=4, runs=2))]
    assert built(files["export_simulation_py"]) == calls_script(sweep_calls(lab_grid(seed=4, runs=2)))
    listed = json.loads(built(files["export_settings_json"]))["calls"]
    assert [call["methods"] for call in listed] == [dict(arguments)["methods"] for arguments in sources]
    report = built(files["export_report_html"])
    assert report.count("Is the guarantee real?") == report.count('<div id="picture-') == 2
    assert answer(app)[:60] in exports.plain_text(report.split("</head>")[1])
    assert "2 runs a point, seed 4" in report
    assert {"lab_curve_0_html", "lab_curve_1_html", "lab_curve_csv"} <= set(files)


def lab_grid(seed: int, runs: int) -> list[Run]:
    grid = {"n": [60, 90], "epsilon": [1.0, 5.0], "runs": runs, "seed": seed}
    known = {"n_modes": 4}
    return [  # in the order of the sidebar
        *plan_cells("functional", "four_corners", **grid, **known, delta=1e-6),
        *plan_cells("dp_grams", "four_corners", **grid, **known, delta=1e-6, calibration="experiments"),
        *plan_cells("mean_shift", "four_corners", **grid, **known),
    ]


def test_the_paper_page_gives_a_report_and_the_script_that_makes_its_tables_again(opened):
    _, files = opened("paper")
    script = built(files["export_simulation_py"])
    assert "main(['reproduce', 'kernels', '--runs', '20'])" in script
    facts = json.loads(built(files["export_settings_json"]))
    assert facts["command"] == "python -m dpgrams_core reproduce kernels --runs 20"
    report = built(files["export_report_html"])
    assert "its ε is a name" in report
    assert status_words("nominal") in report


def test_two_methods_are_both_in_the_script_and_both_have_their_guarantee(opened):
    _, files = opened("modes", compare="experiments")
    recipes = open_settings(built(files["export_settings_json"])).runs
    assert [dict(recipe.options).get("calibration") for recipe in recipes] == ["tight", "experiments", None]
    report = built(files["export_report_html"])
    assert report.count("Is the guarantee real?") == report.count('<div id="picture-') == 2
    assert "If the claim holds" in report
    for name in ("DP-GRAMS tight", "DP-GRAMS experiments"):  # over the picture, its numbers and its guarantee
        assert report.count(f"<h2>{name}</h2>") == report.count(f"The numbers of {name}<") == 1


def test_a_private_curve_that_is_added_brings_its_guarantee(opened):
    _, files = opened("regression", reg_show="private,other")
    assert built(files["export_report_html"]).count("Is the guarantee real?") == 2
    methods = [recipe.method for recipe in open_settings(built(files["export_settings_json"])).runs]
    assert methods == ["functional_regression", "dp_pms", "pms", "lowess"]


def test_building_waits_for_the_click(opened, monkeypatch):
    def never(*_, **__):
        raise AssertionError("built while the page was drawn")

    for name in ("figure_html", "table_csv"):
        monkeypatch.setattr(exports, name, never)
    monkeypatch.setattr(registry, "EXPORTS", [replace(export, build=never) for export in registry.EXPORTS])
    opened("modes")


def score_of(made: Run) -> dict[str, float]:
    data = load_dataset(made.dataset, n=made.n, seed=made.data_seed)
    return score(run(made.method, data, seed=made.seed, **made.settings), data)


@pytest.mark.parametrize("name", [*PAGES, "tradeoff"])
def test_a_settings_file_brings_back_the_page_that_made_it(opened, opened_with_files, name):
    _, files = opened(name)
    text = built(files["export_settings_json"])
    found = open_settings(text)
    assert found.page == name
    assert found.runs
    _, again = opened_with_files(name, dict(parse_qsl(found.link)))
    assert built(again["export_settings_json"]) == text


def test_an_export_is_one_entry(opened, monkeypatch):
    toy = registry.Export("Toy", "toy.txt", "text/plain", lambda shown: shown.question, lambda shown: shown)
    monkeypatch.setattr(registry, "EXPORTS", [*registry.EXPORTS, toy])
    _, files = opened("modes")
    assert built(files["export_toy_txt"]).endswith("?")


def test_an_answer_made_of_html_becomes_text():
    assert exports.plain_text('a <b class="x">b</b><br>c &lt; d &amp; e') == "a b\nc < d & e"
    assert re.search("<", exports.plain_text("<p>x</p>")) is None
