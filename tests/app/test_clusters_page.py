"""The Clusters page as a script, without a browser."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core import load_dataset, run, score
from dpgrams_core.paper import PAPER_TABLES
from pages._ui.cluster_controls import CURVES, SIZES, ClusterSettings

ROOT = Path(__file__).parents[2]
mean_shift_c = import_module("dpgrams_core.methods.mean_shift_c")  # the name also stands for its function
STATUS = {
    "experiments": "nominal: not a proof",
    "theorem": "as published, given the representation: proof has a gap",
    "tight": "proven, given the representation",
}


def new_page(script: str = "clusters") -> AppTest:
    return AppTest.from_file(str(ROOT / "pages" / f"{script}.py"), default_timeout=120)


@pytest.fixture
def page() -> AppTest:
    app = new_page()
    app.query_params["clu_n_blobs"] = "300"
    app.query_params["curve"] = "off"
    return app


def opened(page: AppTest, **query: str) -> AppTest:
    for key, value in query.items():
        page.query_params[key] = value
    page.run()
    assert not page.exception
    return page


def widget(app: AppTest, kind: str, key: str):
    return next(item for item in app.get(kind) if item.key == key)


def all_text(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.error, *app.warning, *app.info, *app.subheader]
    return "\n".join(item.value for item in parts)


def answer(app: AppTest) -> str:
    body = next(item.proto.body for item in app.get("html") if 'data-testid="answer"' in item.proto.body)
    return re.sub("<[^>]*>", "", body)


def metrics(app: AppTest) -> dict[str, str]:
    return {item.label: item.value for item in app.metric}


def table_with(app: AppTest, column: str):
    return next(item.value for item in app.dataframe if column in item.value)


def test_it_runs_and_says_who_wins(page):
    opened(page)
    assert page.title[0].value == "What does privacy cost when you look for clusters?"
    assert set(metrics(page)) == {"ARI, private", "NMI, private", "Centroid MSE, private", "ARI, k-means"}
    text = all_text(page)
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
    badges = [words for words in ("no privacy", "proven", "nominal: not a proof") if words in text]
    assert len(badges) == 3


def test_the_answer_is_that_of_the_engine(page):
    opened(page, epsilon="0.5")
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
        assert words in answer(page)
    gap = ari["functional_c"] - ari["dp_kmeans"]
    winner = "the functional release" if gap > 0 else "DP-k-means"
    assert (f"{winner} wins" in answer(page)) == (abs(gap) >= 0.005)
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
    opened(page, clu_method="dp_grams_c", calibration=calibration)
    assert f"**DP-GRAMS-C {calibration}**" in all_text(page)
    card = [item.value for item in page.markdown if item.value.startswith(":")]
    assert any(STATUS[calibration] in text for text in card)
    assert f"DP-GRAMS-C {calibration}" in answer(page)


@pytest.mark.parametrize(("dataset", "n"), [("iris", "100"), ("digits", "200"), ("mnist", "500")])
def test_other_data_sets(page, dataset, n):
    opened(page, clu_dataset=dataset, **{f"clu_n_{dataset}": n})
    assert not page.error
    assert f"n = {n} in" in all_text(page)
    images = page.get("image")
    if dataset == "iris":
        assert not images
    else:
        assert "The private “average digit”" in all_text(page)
        assert len(images) == 10
        assert "Drawn through" in all_text(page)
    assert widget(page, "select_slider", "clu_delta").value == 1e-5  # the paper's δ for real data


def test_every_control_explains_itself(page):
    opened(page, clu_method="dp_grams_c")
    kinds = [*page.sidebar.select_slider, *page.sidebar.number_input, *page.sidebar.selectbox]
    assert len(kinds) >= 17
    for control in kinds:
        assert control.help, f"{control.key} has no help"
        assert "\n" not in control.help


def test_a_bad_value_gives_its_sentence_and_keeps_the_last_numbers(page):
    opened(page, clu_method="dp_grams_c")
    good = metrics(page), answer(page)
    widget(page, "select_slider", "m").set_value(5_000).run()
    assert not page.exception
    assert "batch_size = 5000 is not allowed: it must be between 1 and n = 300." in page.error[0].value
    assert "Below is the last picture that worked." in all_text(page)
    assert (metrics(page), answer(page)) == good
    widget(page, "select_slider", "m").set_value("auto").run()
    assert not page.error


def test_more_clusters_than_records_or_than_there_are_is_said(page):
    opened(page, clu_n_blobs="50", clu_count="100")
    assert "n_clusters = 100 is not allowed: there are only 50 records." in page.error[0].value
    assert metrics(page)  # a link may open on it: the default picture stands
    more = new_page()
    opened(more, clu_n_blobs="300", clu_count="100", clu_method="dp_grams_c", starts="5", curve="off")
    text = all_text(more)
    assert "5 centres for 4 true classes; 100 were asked for, and no more were found" in text
    assert "100 clusters were asked for, but there are only" in text  # mean shift


def test_one_cluster_and_an_unknown_number(page):
    opened(page, clu_count="1")
    assert metrics(page)["ARI, private"] == "0.00"
    assert "1 centre for 4 true classes" in all_text(page)
    widget(page, "select_slider", "clu_count").set_value("unknown").run()
    assert not page.exception
    assert "they are told the 4 of the true classes" in all_text(page)


def test_nothing_above_the_noise_is_said(page):
    opened(page, clu_count="unknown", epsilon="0.01")
    assert "no centre: nothing stands above its noise" in answer(page)
    assert "No centre: nothing stands above the noise" in all_text(page)


def test_a_missing_data_folder_is_a_sentence(page, monkeypatch):
    monkeypatch.delenv("DPGRAMS_DATA", raising=False)
    opened(page)
    good = answer(page)
    widget(page, "selectbox", "clu_dataset").set_value("rnaseq").run()
    assert not page.exception
    assert "set the environment variable DPGRAMS_DATA" in page.error[0].value
    assert answer(page) == good


def test_a_mangled_link_is_named_and_the_defaults_stand(page):
    opened(page, epsilon="frog", clu_count="7", clu_measure="x", clu_method="%00", clu_dataset="four_corners")
    note = page.info[0].value
    for key in ("epsilon", "clu_count", "clu_measure", "clu_method", "clu_dataset"):
        assert key in note
    assert "At ε = 1 on Four blobs" in answer(page)


def test_mean_shift_waits_for_a_click_where_there_are_many_records(page, monkeypatch):
    monkeypatch.setattr(mean_shift_c, "EXACT_RECORDS", 250)  # as if 300 records were many
    monkeypatch.setattr(mean_shift_c, "PAIRS", 45_000)
    opened(page, data_seed="77")
    assert "It would climb from 150 of the 300 records, drawn by a seed, in at most 100 steps" in all_text(page)
    assert "mean shift" not in answer(page)
    assert len(table_with(page, "guarantee")) == 3
    widget(page, "button", "mean_shift_start").click().run()
    assert not page.exception
    assert "mean shift" in answer(page)
    assert len(table_with(page, "guarantee")) == 4
    assert "Bounded: climbed from 150 of the 300 records" in all_text(page)


def test_the_live_curve_has_every_method_and_ends(page, monkeypatch):
    monkeypatch.setitem(CURVES, "blobs", ((0.5, 1.0), 2, 2))  # two pieces of two runs: quick
    opened(page, curve="on", clu_n_blobs="50")
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
    monkeypatch.setitem(CURVES, "iris", ((1.0,), 2, 1))
    opened(page, clu_dataset="iris", curve="on")
    table = table_with(page, "epsilon").set_index("method")["runs"].to_dict()
    assert table == {"Functional release": 2, "DP-k-means": 2, "k-means": 1, "Mean shift": 1}
    assert any("Means over 2 runs of the noise on the same records" in item.value for item in page.caption)


def test_the_curves_have_the_epsilons_of_the_paper():
    printed = json.loads(PAPER_TABLES.read_text())
    for name in ("blobs", "digits", "mnist", "rnaseq"):
        assert set(CURVES[name][0]) == {row["epsilon"] for row in printed[f"clustering_{name}"]["rows"]}


def test_the_curve_of_slow_data_waits_for_a_click(page):
    opened(page, clu_dataset="digits", clu_n_digits="100", curve="on")
    assert widget(page, "button", "curve_start")
    assert not any("so far" in item.value for item in page.caption)


def test_new_noise_keeps_what_has_none(page):
    opened(page)
    before = answer(page)
    widget(page, "button", "new_noise").click().run()
    assert page.session_state["seed"] == 1
    assert answer(page) != before
    plain = [text.split("Without privacy")[1].split("In this run")[0] for text in (answer(page), before)]
    assert plain[0] == plain[1]


def test_every_method_gets_the_same_number_of_clusters():
    base = {"method": "functional_c", "dataset": "blobs", "n": 99, "data_seed": 0, "seed": 0}
    options = (("bandwidth_scale", 2.0), ("delta", 1e-6), ("epsilon", 0.5))
    known = ClusterSettings(**base, count="known", options=options)
    assert dict(known.options_of("functional_c", 4)) == {**dict(options), "n_clusters": 4}
    assert dict(known.options_of("dp_kmeans", 4)) == {"epsilon": 0.5, "n_clusters": 4}
    assert dict(known.options_of("mean_shift_c", 4)) == {"n_clusters": 4}
    unknown = ClusterSettings(**base, count="unknown", options=options)
    assert "n_clusters" not in dict(unknown.options_of("functional_c", 4))
    assert unknown.options_of("mean_shift_c", 4) == ()
    assert dict(unknown.options_of("kmeans", 4)) == {"n_clusters": 4}
    other = ClusterSettings(**base, count=7, options=options)
    for method in ("functional_c", "kmeans", "dp_kmeans", "mean_shift_c"):
        assert dict(other.options_of(method, 4))["n_clusters"] == 7


def test_every_size_can_be_loaded():
    for name in ("blobs", "iris", "digits", "mnist"):
        for n in (SIZES[name][0], SIZES[name][-1]):
            assert load_dataset(name, n=n, seed=1).n == n


def test_keys_shared_with_other_pages_hold_the_same_values(page):
    # app.py hands values over between pages: a shared key with other values or another default would break there.
    opened(page, clu_method="dp_grams_c")
    here = {item.key: item for item in [*page.sidebar.select_slider, *page.sidebar.selectbox]}
    opened(page_two := new_page(), clu_n_blobs="300", curve="off")
    here |= {item.key: item for item in [*page_two.sidebar.select_slider, *page_two.sidebar.selectbox]}
    for script, query in (
        ("modes", {"n": "200", "runs": "off", "curve": "off"}),
        ("regression", {"reg_n": "200", "curve": "off", "reg_method": "dp_pms"}),
    ):
        other = opened(new_page(script), **query)
        there = {item.key: item for item in [*other.sidebar.select_slider, *other.sidebar.selectbox]}
        shared = there.keys() & here.keys()
        assert {"epsilon", "h_scale", "m", "share", "calibration"} <= shared
        for key in shared:
            # Here a status has its condition, and its value in the session is the same.
            options = [[text.partition(" (")[0] for text in item[key].options] for item in (there, here)]
            assert options[0] == options[1], (script, key)
            assert there[key].value == here[key].value, (script, key)
