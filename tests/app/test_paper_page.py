"""The Paper page as a script, without a browser."""

from __future__ import annotations

import json
import re
import shutil
from urllib.parse import parse_qsl

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core import DATASETS
from dpgrams_core.datasets.registry import datasets_of
from dpgrams_core.figures.paper import judged, standings
from dpgrams_core.methods.dp_grams.spec import CLIPS
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.settings import CALIBRATIONS, EPSILONS
from dpgrams_core.numerics.bandwidths import BANDWIDTH_RULES
from dpgrams_core.studies.paper import shipped as module
from dpgrams_core.studies.paper.experiments import EXPERIMENTS
from dpgrams_core.studies.paper.shipped import ship, shipped, shipped_file
from dpgrams_core.studies.paper.tables import ONE_RUN, PAPER_TABLES
from dpgrams_core.sweeps.cell import CellResult
from pages._ui.controls import methods_of
from pages._ui.layout import status_words
from pages._ui.paper.words import (
    DIFFERS,
    DIFFERS_TITLE,
    ELSEWHERE,
    FRESH_DRAWS,
    IN_THE_PAPER,
    NEAR,
    PARTS,
    PRINTED,
    RESTS_ON,
    RIVALS,
    SPACE,
    SURE,
    WORDS,
    curve_link,
    experiment_of,
    index,
    part_of,
    readable,
)
from pages._ui.state import text_of
from tests.made import made_result
from tests.places import ROOT
from tests.shown import all_text, answer, html, new_page, opened

STATUS = {"functional": "proven", "tight": "proven", "theorem": "as published"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty place for finished tables."""
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    shipped.cache_clear()
    yield tmp_path
    shipped.cache_clear()


def made_up(experiment) -> list[CellResult]:
    """Every cell of an experiment with two invented runs, on both sides of the printed values."""
    found = []
    for place, (column, cell) in enumerate(experiment.cells(2, experiment.names, seed=7)):
        level = 0.003 * 3 ** (place % 7)
        scores = {name: (level, 1.2 * level) for name in experiment.measures if name != "seconds"}
        status = STATUS.get(column, "nominal") if METHODS[cell.method].private else "none"
        found.append(
            made_result(cell=cell, scores=scores, seconds=(0.01, 0.02), status=status, failures=(), numbers=(0, 1))
        )
    return found


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Finished tables of everything."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FOLDER", folder)
        for experiment in EXPERIMENTS.values():
            ship(experiment.name, made_up(experiment), command="a made-up command", seed=7, date="2026-01-02")
    return folder


@pytest.fixture
def filled(tables, monkeypatch):
    """The page with all of them."""
    monkeypatch.setattr(module, "FOLDER", tables)
    shipped.cache_clear()
    yield
    shipped.cache_clear()


def paper(**query: str) -> AppTest:
    return opened(new_page("paper", **query))


def printed_table(app: AppTest) -> str:
    return next(body for body in html(app) if '<table class="printed" ' in body)


def test_every_printed_table_and_every_figure_of_ours_has_its_place():
    tables = set(json.loads(PAPER_TABLES.read_text(encoding="utf-8"))) - {"origin"}
    figures = {table.name for experiment in EXPERIMENTS.values() for table in experiment.tables}
    assert set(WORDS) == tables | figures
    assert {part_of(name) for name in WORDS} == set(PARTS)


def test_without_finished_tables_the_page_says_how_to_make_them(folder):
    for part, (_, names) in PARTS.items():
        app = paper(paper_part=part)
        assert "not here yet" in answer(app)
        assert f"No finished table of {names[0]} comes with this version. This command makes it:" in all_text(app)
        runs = EXPERIMENTS[names[0]].runs
        assert app.code[0].value == f"python -m dpgrams_core reproduce {part} --runs {runs} --ship"
        assert RESTS_ON in all_text(app)
    assert "authors' public code of May 2026" in RESTS_ON  # whoever speaks of the paper names the version


@pytest.fixture(scope="module")
def repeated():
    """The cells of the columns as run, of all finished tables, by the first measure of each."""
    found = []
    for name in PRINTED:
        experiment = EXPERIMENTS[name]
        table = judged(experiment, shipped(name).results)
        own = table["column"].isin([column.name for column in experiment.columns if column.design])
        here = table[own & (table["measure"] == experiment.measures[0]) & (table["table"] != ONE_RUN)]
        found.append(here.assign(experiment=name))
    return pd.concat(found).astype({"equal": bool, "ahead": bool})


def test_what_is_called_certain_comes_out_to_the_digit_and_nothing_else_does(repeated):
    exact = repeated[repeated["equal"]].groupby(["dataset", "column"]).size().to_dict()
    whole = repeated.groupby(["dataset", "column"]).size().to_dict()
    certain = {("four_corners", "as_run"), ("t_mixture", "as_run"), ("sinusoid", "pms_as_run")}
    certain |= {("three_component", "pms_as_run")}
    certain |= {(name, "dp_kmeans_as_run") for name in ("blobs", "digits", "rnaseq")}
    assert exact == {place: whole[place] for place in certain}
    assert "What was run is certain" in SURE["modes"]
    assert "plausible and not certain" in SURE["clustering"]
    assert "which of this holds for it is not known" in SURE["regression"]


def test_the_public_code_of_regression_is_called_so_and_is_mostly_below_the_print(repeated):
    mine = repeated[(repeated["experiment"] == "regression") & (repeated["column"] == "as_run")]
    assert len(mine) == 32
    assert mine["ahead"].sum() >= 30
    assert "better than the print in nearly every cell" in NEAR["regression"]
    app = paper(paper_part="regression")
    head = printed_table(app).split("</thead>")[0]
    assert "DP-PMS, public code" in head
    assert "of May 2026, run by us" in head
    assert "as_run" not in head


@pytest.mark.parametrize("part", PRINTED)
def test_a_printed_column_has_no_status_of_its_own(part):
    head = printed_table(paper(paper_part=part)).split("</thead>")[0]
    printed = re.findall('<th class="paper">(printed.*?)</th>', head)
    assert set(printed) == {"printed<small>by the authors, 20 runs</small>"}


def test_the_settings_of_the_clusters_are_those_that_ran(repeated):
    app = paper(paper_part="clustering")
    shown = next(table.value for table in app.table if "clip multiplier" in table.value)
    for name in ("blobs", "digits", "mnist", "rnaseq"):
        used = dict(DATASETS[name].as_run)
        row = shown.loc[DATASETS[name].title]
        assert float(row["clip multiplier"]) == used["clip_multiplier"]
        assert float(row["DAP radius / h_DAP"]) == used["utility_steps"]
    counted = repeated[(repeated["dataset"] == "blobs") & (repeated["column"] == "as_run")]
    assert f"DP-GRAMS-C as run: 0 of {len(counted)} to the digit" in all_text(app)


def test_the_text_is_quoted_rightly():
    """Where the text says itself what was run, the table of differences says so."""
    for name in PRINTED:
        assert all(len(row) == 4 for row in DIFFERS[name])
    assert any("bivariate t" in text and "independent t" in run for _, text, run, _ in DIFFERS["modes"])
    assert any("not separately tuned or reported" in text for _, text, _, _ in DIFFERS["modes"])


def test_the_answer_counts_the_cells_of_every_kind_of_table(filled):
    app = paper()
    assert app.title[0].value == "Do the paper's numbers hold, and with which guarantee?"
    again, none, proven = answer(app).split(". ")
    assert "0 of 40 cells of the mode tables come out to the digit" in again  # those here are made up
    assert none == "That computation has no guarantee"
    functional, tight = proven.split("; the paper’s own algorithm in ")
    for name in PRINTED:
        table = judged(EXPERIMENTS[name], shipped(name).results)
        found = {item.column.name: item for item in standings(EXPERIMENTS[name], table)}
        for column, sentence in (("functional", functional), ("tight", tight)):
            assert f"{found[column].ahead} of {found[column].cells} cells of the" in sentence
    kinds = "mode tables and regression tables: proven; clustering tables: proven, given the representation"
    assert functional.startswith(f"With one ({kinds}), the functional release is at least as good")
    totals = next(body for body in html(app) if "totals" in body and "<table" in body)
    assert totals.count("<tr class=") == 5  # what was run, again, and one row for each kind of noise


def test_what_repeats_to_the_digit_is_counted_and_marked():
    app = paper()
    assert "40 of 40 cells of the mode tables come out to the digit" in answer(app)
    assert printed_table(app).count('equal"') == 20
    assert any(expander.label == DIFFERS_TITLE for expander in app.expander)


def test_a_table_has_the_printed_value_ours_the_status_runs_and_command(filled):
    app = paper()
    body = printed_table(app)
    head, rows = body.split("</thead>")
    assert rows.count("<tr") == 20
    for words in ("proven", "nominal", "as published", "none"):
        assert status_words(words) in head
    assert "20 runs" in head  # printed
    assert "2 runs" in head  # ours
    assert "<span>0.738</span><small>± 0.098</small>" in rows  # 0.7375 with 0.0978
    table = judged(EXPERIMENTS["modes"], shipped("modes").results)
    here = table[(table["table"] == "modes_four_corners") & (table["measure"] == "mse")]
    rivals = here[here["equal"].isna()]  # a repetition is no rival
    assert rows.count(' ahead"') == rivals["ahead"].astype(bool).sum()
    assert rows.count(' behind"') == (~rivals["ahead"].astype(bool)).sum()
    assert len(re.findall('class=" (?:near|other)"', rows)) == len(here) - len(rivals) == 20
    assert not re.search("[▲▼]", rows)  # the printed standard errors leave out the draw, and that is said
    assert FRESH_DRAWS in all_text(app)
    assert app.code[0].value == "python -m dpgrams_core reproduce modes --runs 50"
    assert "These numbers were made by `a made-up command`, seed 7, 2026-01-02, numpy" in all_text(app)


def test_full_marks_are_clear_leads_where_these_can_be_judged(filled):
    app = paper(paper_part="regression")
    table = judged(EXPERIMENTS["regression"], shipped("regression").results)
    here = table[(table["table"] == "regression_sinusoid") & (table["measure"] == "mse") & table["equal"].isna()]
    assert len(re.findall("[▲▼]", printed_table(app).split("</thead>")[1])) == here["clear"].astype(bool).sum() > 0
    totals = next(body for body in html(app) if "totals" in body and "<table" in body)
    assert totals.count("clearly: –") == 4  # of the modes, for each kind of noise
    assert len(re.findall(r"clearly: \d+ of 15<", totals)) == 4  # of the clusters: all but the blobs
    assert "an ARI within 0.01 of the printed one counts" in all_text(app)


def test_every_picture_of_a_run_has_a_link_with_settings_that_its_page_takes():
    known = {
        "dataset": datasets_of("modes"),
        "method": methods_of("modes"),
        "n": DATASETS["four_corners"].offered,
        "calibration": CALIBRATIONS,
        "epsilon": EPSILONS,
        "bandwidth": BANDWIDTH_RULES,
        "clip": CLIPS,
        "reg_dataset": datasets_of("regression"),
        "reg_method": methods_of("regression"),
        "reg_n": DATASETS["sinusoid"].offered,
        "clu_dataset": datasets_of("clusters"),
        "clu_method": methods_of("clusters"),
        "clu_n_blobs": DATASETS["blobs"].offered,
        "lab_kind": ("modes", "regression", "clusters"),
        **{f"lab_{kind}": datasets_of(kind) for kind in ("modes", "regression", "clusters")},
    }
    links = [link for _, link in ELSEWHERE] + [link for name in WORDS if (link := curve_link(name))]
    assert len(links) == 10 + 8
    for link in links:
        page, query = link.address.removeprefix("./").split("?")
        assert (ROOT / "pages" / f"{page}.py").exists()
        for key, value in parse_qsl(query):
            assert value in [text_of(one) for one in known[key]], (key, value)
    assert "[Paper: Kernels, Four corners, three kernels](./paper?paper_part=kernels&" in index()


def test_every_label_of_the_papers_experiments_is_in_the_index():
    assert len(set(IN_THE_PAPER.values())) == len(IN_THE_PAPER) == 38
    assert [words for words in IN_THE_PAPER.values() if words not in index()] == []
    assert not re.search("fig:|tab:", index().replace("%3A", ""))  # nobody reads the labels of its source


def test_every_table_and_figure_opens(filled):
    app = paper()
    for name, words in WORDS.items():
        experiment = experiment_of(name)
        app.session_state["paper_part"] = part_of(name)
        app.session_state[f"paper_{part_of(name)}"] = name
        app.run()
        assert not app.exception
        text, charts = all_text(app), app.get("plotly_chart")
        if experiment in RIVALS:
            assert f"**{words.title}** · {words.claim}" in text
            assert "the paper says" not in text
            assert "is first, or within a standard error of the first, in " in text
            asked = next(table for table in EXPERIMENTS[experiment].tables if table.name == name)
            sizes, epsilons, _ = asked.grid()
            numbers = next(frame.value for frame in app.dataframe if "Functional release" in frame.value)
            assert len(numbers) == len(sizes) * len(epsilons)
            assert len(charts) == 1
            continue
        assert f"**{words.title}** · the paper says: " in text
        assert readable(words.labels) in text
        if experiment in PRINTED:
            assert '<table class="printed" ' in printed_table(app)
        else:
            assert "prints no numbers of it" in text
            assert status_words("nominal") in text
        assert len(charts) == (1 if experiment in PRINTED else len(EXPERIMENTS[experiment].columns))


def test_a_measure_that_is_not_printed_has_no_ratio(filled):
    app = paper(paper_score_modes="found")
    assert " ×" not in printed_table(app)
    assert "The paper prints no modes found" in all_text(app)


def test_what_is_not_on_one_scale_is_said(filled):
    app = paper(paper_part="clustering", paper_clustering="clustering_rnaseq", paper_score_clustering="centroid_mse")
    assert SPACE in all_text(app)
    assert not re.search("[▲△▼▽]", printed_table(app))  # shown side by side, and nobody is ahead
    app.session_state["paper_score_clustering"] = "ari"
    app.run()
    assert SPACE not in all_text(app)
    assert re.search("[▲△▼▽]", printed_table(app))
    app.session_state["paper_clustering"] = ONE_RUN
    app.run()
    assert "The printed values are of a single run and have no standard error; ours are means" in all_text(app)
    assert "1 run<" in printed_table(app)


def test_a_broken_file_is_left_out_with_a_sentence(folder, tables):
    for name in ("modes", "regression"):
        shutil.copy(tables / f"{name}.parquet", folder)
    shutil.copy(tables.with_name(f"{tables.name}.json"), folder.with_name(f"{folder.name}.json"))  # the list of them
    path = shipped_file("modes")
    path.write_bytes(path.read_bytes()[:2_000])
    app = paper()
    assert "cells of the mode tables" not in answer(app)
    assert "cells of the regression tables" in answer(app)
    assert app.info[0].value.endswith("This command makes it:")


def test_a_file_without_a_cell_of_its_experiment_is_an_empty_table(folder):
    for name in ("modes", "kernels"):
        ship(name, made_up(EXPERIMENTS["regression"])[:3], command="another", seed=7, date="2026-01-02")
        app = paper(paper_part=name)
        assert "not here yet" in answer(app)
        assert "The finished runs hold no cell of this" in all_text(app)


def test_a_mangled_link_falls_back(filled):
    app = paper(paper_part="frog", paper_modes="\x00")
    assert "The link's values for paper_part, paper_modes cannot be used" in all_text(app)
    assert "**Four corners**" in all_text(app)


def test_the_real_tables_that_come_with_the_project():
    here = [name for name in EXPERIMENTS if shipped_file(name).exists()]
    if not here:
        pytest.skip("no finished table is here yet")
    app = paper(paper_part=part_of(EXPERIMENTS[here[0]].tables[0].name))
    for name in here:
        if name in PRINTED:
            table = judged(EXPERIMENTS[name], shipped(name).results)
            (found,) = (item for item in standings(EXPERIMENTS[name], table) if item.column.name == "functional")
            assert f"{found.ahead} of {found.cells} cells of the" in answer(app)
            assert found.statuses == ("proven, given the representation" if name == "clustering" else "proven",)
