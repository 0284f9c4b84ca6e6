"""The Clusters page as a script, without a browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import import_module

import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core import DATASETS, load_dataset, run, score
from dpgrams_core.model.guarantee import status_words
from dpgrams_core.model.run import Run
from dpgrams_core.studies.paper.tables import PAPER_TABLES
from pages._ui.controls import cluster_run
from tests import shown

mean_shift_c = import_module("dpgrams_core.methods.baselines.mean_shift")  # the name also stands for its function
STATUS = {
    "experiments": status_words("nominal"),
    "theorem": status_words("as published, given the representation"),
    "tight": "proven, given the representation",
}


@pytest.fixture
def page() -> AppTest:
    return shown.new_page("clusters", clu_n_blobs="300", curve="off")


def table_with(app: AppTest, column: str):
    return next(item.value for item in app.dataframe if column in item.value)


def test_it_runs_and_says_who_wins(page):
    shown.opened(page)
    assert page.title[0].value == "What does privacy cost when you look for clusters?"
    scores = {f"{name}, private" for name in ("ARI", "NMI", "Centroid MSE", "Inertia")}
    assert set(shown.metrics(page)) == {*scores, "ARI, k-means"}
    text = shown.all_text(page)
    for words in ("**Mean shift**", "**Functional release**", "**k-means**", "**DP-k-means**"):
        assert words in text
    for words in (
        "Is the guarantee real?",
        "Proven, given the representation: replacing one record",
        "the guarantee takes it as public",  # scaling and components are not paid for
        "These labels of records are evaluation, never a release",
        "One run of each method on the same records",
        "evaluation, not private, never part of a release",
        "Which classes does the functional release tell apart?",
        "what diffprivlib's k-means claims, and the claim does not hold",
    ):
        assert words in text
    badges = [words for words in (status_words("none"), "proven", status_words("nominal")) if words in text]
    assert len(badges) == 3


def test_the_answer_is_that_of_the_engine(page):
    shown.opened(page, epsilon="0.5")
    data = load_dataset("blobs", n=300, seed=0)
    asked = {
        "functional_c": {"epsilon": 0.5, "delta": 1e-6, "bandwidth_scale": 1.0},
        "dp_kmeans": {"epsilon": 0.5},
        "kmeans": {},
        "mean_shift_c": {},
    }
    ari = {
        name: score(run(name, data, seed=0, n_clusters=4, **options), data)["ari"] for name, options in asked.items()
    }
    for words in (
        "At ε = 0.5 on Four blobs",
        f"the functional release {ari['functional_c']:.2f} and DP-k-means {ari['dp_kmeans']:.2f}",
        f"Without privacy: k-means {ari['kmeans']:.2f} and mean shift {ari['mean_shift_c']:.2f}",
        "In this run",
    ):
        assert words in shown.answer(page)
    gap = ari["functional_c"] - ari["dp_kmeans"]
    winner = "the functional release" if gap > 0 else "DP-k-means"
    assert (f"{winner} wins" in shown.answer(page)) == (abs(gap) >= 0.005)
    table = table_with(page, "guarantee")
    assert dict(zip(table["method"], table["ARI"], strict=True)) == pytest.approx(
        {
            "Functional release": ari["functional_c"],
            "DP-k-means": ari["dp_kmeans"],
            "k-means": ari["kmeans"],
            "Mean shift": ari["mean_shift_c"],
        }
    )
    assert len(table_with(page, "matched true class")) == 16  # four centres of each


@pytest.mark.parametrize("calibration", list(STATUS))
def test_each_calibration_of_dp_grams_c(page, calibration):
    shown.opened(page, clu_method="dp_grams_c", calibration=calibration)
    assert f"**DP-GRAMS-C {calibration}**" in shown.all_text(page)
    card = [item.value for item in page.markdown if item.value.startswith(":")]
    assert any(STATUS[calibration] in text for text in card)
    assert f"DP-GRAMS-C {calibration}" in shown.answer(page)


@pytest.mark.parametrize(("dataset", "n"), [("iris", "100"), ("digits", "200"), ("mnist", "500")])
def test_other_data_sets(page, dataset, n):
    shown.opened(page, clu_dataset=dataset, **{f"clu_n_{dataset}": n})
    assert not page.error
    assert f"n = {n} in" in shown.all_text(page)
    images = page.get("image")
    if dataset == "iris":
        assert not images
    else:
        assert "The private “average digit”" in shown.all_text(page)
        assert len(images) == 10
        assert "Drawn through" in shown.all_text(page)
    assert shown.widget(page, "select_slider", "clu_delta").value == 1e-5  # the paper's δ for real data


def test_every_control_explains_itself(page):
    shown.opened(page, clu_method="dp_grams_c")
    shown.assert_controls_explain_themselves(page, 17)


def test_a_bad_value_gives_its_sentence_and_keeps_the_last_numbers(page):
    shown.opened(page, clu_method="dp_grams_c")
    shown.assert_a_bad_batch_size_keeps_the_last_numbers(page, 300)


def test_more_clusters_than_records_or_than_there_are_is_said(page):
    shown.opened(page, clu_n_blobs="50", clu_count="100")
    assert "n_clusters = 100 is not allowed: there are only 50 records." in page.error[0].value
    assert shown.metrics(page)  # a link may open on it: the default picture stands
    more = shown.new_page("clusters")
    shown.opened(
        more,
        clu_n_blobs="300",
        clu_count="100",
        clu_method="dp_grams_c",
        starts="5",
        curve="off",
        calibration="theorem",
    )
    text = shown.all_text(more)
    assert "5 centres for 4 true classes; 100 were asked for, and no more were found" in text
    assert "100 clusters were asked for, but there are only" in text  # mean shift


def test_one_cluster_and_an_unknown_number(page):
    shown.opened(page, clu_count="1")
    assert shown.metrics(page)["ARI, private"] == "0.00"
    assert "1 centre for 4 true classes" in shown.all_text(page)
    shown.widget(page, "select_slider", "clu_count").set_value("unknown").run()
    assert not page.exception
    assert "they are told the 4 of the true classes" in shown.all_text(page)


def test_nothing_above_the_noise_is_said(page):
    shown.opened(page, clu_count="unknown", epsilon="0.01")
    assert "no centre: nothing stands above its noise" in shown.answer(page)
    assert "No centre: nothing stands above the noise" in shown.all_text(page)


def test_a_missing_data_folder_is_a_sentence(page, monkeypatch):
    monkeypatch.delenv("DPGRAMS_DATA", raising=False)
    shown.opened(page)
    good = shown.answer(page)
    shown.widget(page, "selectbox", "clu_dataset").set_value("rnaseq").run()
    assert not page.exception
    assert "set the environment variable DPGRAMS_DATA" in page.error[0].value
    assert shown.answer(page) == good


def test_a_mangled_link_is_named_and_the_defaults_stand(page):
    shown.opened(page, epsilon="frog", clu_count="7", clu_measure="x", clu_method="%00", clu_dataset="four_corners")
    note = page.info[0].value
    for key in ("epsilon", "clu_count", "clu_measure", "clu_method", "clu_dataset"):
        assert key in note
    assert "At ε = 1 on Four blobs" in shown.answer(page)


def test_mean_shift_waits_for_a_click_where_there_are_many_records(page, monkeypatch):
    monkeypatch.setattr(mean_shift_c, "EXACT_RECORDS", 250)  # as if 300 records were many
    monkeypatch.setattr(mean_shift_c, "PAIRS", 45_000)
    shown.opened(page, data_seed="77")
    assert "It would climb from 150 of the 300 records, drawn by a seed, in at most 100 steps" in shown.all_text(page)
    assert "mean shift" not in shown.answer(page)
    assert len(table_with(page, "guarantee")) == 3
    shown.widget(page, "button", "mean_shift_start").click().run()
    assert not page.exception
    assert "mean shift" in shown.answer(page)
    assert len(table_with(page, "guarantee")) == 4
    assert "Bounded: climbed from 150 of the 300 records" in shown.all_text(page)


def test_the_live_curve_has_every_method_and_ends(page, monkeypatch):
    quick = replace(DATASETS["blobs"], epsilons=(0.5, 1.0), curve_pieces=(2, 2))
    monkeypatch.setitem(DATASETS, "blobs", quick)
    shown.opened(page, curve="on", clu_n_blobs="50")
    sentence = next(item.value for item in page.caption if "Means over" in item.value)
    assert "Mean ARI at ε = 1" in sentence
    assert "Means over 4 runs on fresh draws" in sentence
    assert "so far" not in sentence
    table = table_with(page, "epsilon")
    assert set(table["method"]) == {"Functional release", "DP-k-means", "k-means", "Mean shift"}
    assert set(table["epsilon"]) == {0.5, 1.0, float("inf")}
    assert set(table["failures"]) == {0}
    page.get("button_group")[0].set_value("centroid_mse").run()
    assert not page.exception
    assert any("Mean centroid MSE at ε = 1" in item.value for item in page.caption)
    assert page.query_params["clu_measure"] == "centroid_mse"


def test_what_has_no_noise_runs_once_on_the_same_records(page, monkeypatch):
    monkeypatch.setitem(DATASETS, "iris", replace(DATASETS["iris"], epsilons=(1.0,), curve_pieces=(2, 1)))
    shown.opened(page, clu_dataset="iris", curve="on")
    table = table_with(page, "epsilon").set_index("method")["runs"].to_dict()
    assert table == {"Functional release": 2, "DP-k-means": 2, "k-means": 1, "Mean shift": 1}
    assert any("Means over 2 runs of the noise on the same records" in item.value for item in page.caption)


def test_twenty_runs_are_computed_when_their_tab_is_opened(page):
    assert "20 private runs" not in shown.all_text(shown.opened(page))
    again = shown.opened(shown.new_page("clusters", clu_n_blobs="50", more="runs"))
    assert re.search(r"20 private runs: ARI from -?\d\.\d\d to \d\.\d\d", shown.all_text(again))
    table = next(item.value for item in again.dataframe if "run" in item.value)
    assert list(table["run"]) == list(range(1, 21))
    assert f"{table['ari'][0]:.2f}" == shown.metrics(again)["ARI, private"]  # the first is that of the page


def test_how_sure_each_centre_is_is_computed_when_its_tab_is_opened(page):
    assert "A centre is off by about" not in shown.all_text(shown.opened(page))
    again = shown.opened(shown.new_page("clusters", clu_n_blobs="500", more="sure"))
    assert "A centre is off by about" in shown.all_text(again)
    table = next(item.value for item in again.dataframe if "± column 1 (95%)" in item.value)
    assert (table[["± column 1 (95%)", "± column 2 (95%)"]] > 0).all(axis=None)
    assert len(table) == 4
    none = shown.opened(shown.new_page("clusters", clu_n_blobs="500", clu_method="dp_grams_c", more="sure"))
    assert "centres have no regions" in shown.all_text(none)


def test_the_curves_have_the_epsilons_of_the_paper():
    printed = json.loads(PAPER_TABLES.read_text())
    for name in ("blobs", "digits", "mnist", "rnaseq"):
        assert set(DATASETS[name].epsilons) == {row["epsilon"] for row in printed[f"clustering_{name}"]["rows"]}


def test_the_curve_of_slow_data_waits_for_a_click(page):
    shown.opened(page, clu_dataset="digits", clu_n_digits="100", curve="on")
    assert shown.widget(page, "button", "curve_start")
    assert not any("so far" in item.value for item in page.caption)


def test_new_noise_keeps_what_has_none(page):
    shown.opened(page)
    before = shown.answer(page)
    shown.widget(page, "button", "new_noise").click().run()
    assert page.session_state["seed"] == 1
    assert shown.answer(page) != before
    plain = [text.split("Without privacy")[1].split("In this run")[0] for text in (shown.answer(page), before)]
    assert plain[0] == plain[1]


def test_every_method_gets_the_same_number_of_clusters():
    options = {"bandwidth_scale": 2.0, "delta": 1e-6}
    mine = Run(method="functional_c", dataset="blobs", n=99, epsilon=0.5, options=tuple(options.items()))

    def given(method, count):
        return cluster_run(mine, method, count, 4).settings

    assert given("functional_c", "known") == {"epsilon": 0.5, **options, "n_clusters": 4}
    assert given("dp_kmeans", "known") == {"epsilon": 0.5, "n_clusters": 4}
    assert given("mean_shift_c", "known") == {"n_clusters": 4}
    assert "n_clusters" not in given("functional_c", "unknown")
    assert given("mean_shift_c", "unknown") == {}
    assert given("kmeans", "unknown") == {"n_clusters": 4}
    for method in ("functional_c", "kmeans", "dp_kmeans", "mean_shift_c"):
        assert given(method, 7)["n_clusters"] == 7


def test_every_size_can_be_loaded():
    for name in ("blobs", "iris", "digits", "mnist"):
        for n in (DATASETS[name].offered[0], DATASETS[name].offered[-1]):
            assert load_dataset(name, n=n, seed=1).n == n


def test_keys_shared_with_other_pages_hold_the_same_values(page):
    shown.opened(page, clu_method="dp_grams_c")
    plain = shown.opened(shown.new_page("clusters", clu_n_blobs="300", curve="off"))
    for script, query in (
        ("modes", {"n": "200", "runs": "off", "curve": "off"}),
        ("regression", {"reg_n": "200", "curve": "off", "reg_method": "dp_pms"}),
    ):
        other = shown.opened(shown.new_page(script, **query))
        shown.assert_shared_keys_agree(page, other, "epsilon", "h_scale", "m", "calibration")
        shown.assert_shared_keys_agree(plain, other, "epsilon")
