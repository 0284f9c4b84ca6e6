"""What a link asks for is priced before it runs: above a stated cost every page waits for a press."""

from __future__ import annotations

import time

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core import SpecError
from dpgrams_core.datasets.registry import DATASETS
from dpgrams_core.studies.costs import run_seconds
from dpgrams_core.sweeps.cell import failed_result
from pages._ui import cache, charts
from pages._ui import jobs as page_jobs
from pages._ui.server import visitors
from pages._ui.tradeoff import live as tradeoff_live
from tests.shown import all_text, button, checked, new_page

QUIET = {"curve": "off", "runs": "off"}
# Hundreds of steps are for the noise of the text: tight reads all its rounds together, and refuses more than thirty.
TEXT = {"calibration": "experiments"}
# The worst that a link can ask of each page, by what the page computes first.
LINKS = {
    "modes": ("modes", {"n": "1000000", "m": "1000000"}),
    "modes, many steps and starts": ("modes", {**TEXT, "n": "100000", "m": "100000", "steps": "300", "starts": "40"}),
    "modes, two methods": ("modes", {"n": "200000", "method": "functional", "h_scale": "0.2", "compare": "tight"}),
    "modes, a fine grid of places": ("modes", {**TEXT, "h_dap": "0.04", "starts": "1000", "rho": "50", "steps": "60"}),
    "modes, mean shift at a small bandwidth": ("modes", {"n": "200000", "bandwidth": "value", "h": "0.05"}),
    "regression": (
        "regression",
        {"reg_method": "dp_pms", "reg_n": "50000", "m": "50000", "steps": "100", "reg_kappa": "30"},
    ),
    "clusters": (
        "clusters",
        {**TEXT, "clu_method": "dp_grams_c", "clu_n_blobs": "100000", "m": "100000", "steps": "200", "starts": "100"},
    ),
}
REFUSED = {
    "modes": ("modes", {"n": "1000000", "m": "1000000", "steps": "1000", "starts": "1000"}, ("n, m", "steps T")),
    "regression": (
        "regression",
        {"reg_method": "dp_pms", "reg_n": "50000", "m": "50000", "steps": "1000", "reg_kappa": "90"},
        ("n, m", "steps T"),
    ),
    "clusters": (
        "clusters",
        {"clu_method": "dp_grams_c", "clu_n_blobs": "100000", "m": "100000", "steps": "1000", "starts": "1000"},
        ("n, m", "steps T", "clusters"),
    ),
}


def linked(page: str, query: dict[str, str]) -> AppTest:
    return checked(new_page(page, **query))


@pytest.fixture
def asked(monkeypatch):
    """Every run that a page asks the engine for; none is made."""
    seen = []

    def refuse(method, data, **options):
        seen.append((method, data.n))
        raise SpecError("method", method, "the engine was asked")

    monkeypatch.setattr(cache, "run", refuse)
    monkeypatch.setattr(cache, "load_dataset", lambda name, n, seed, design="": _Blank(n))
    cache.dataset.clear()
    yield seen
    cache.dataset.clear()


class _Blank:
    """Data that no run reads."""

    n_clusters = 3

    def __init__(self, n):
        self.n = n


@pytest.mark.parametrize("name", LINKS)
def test_a_costly_link_shows_its_price_and_runs_after_a_press_only(asked, name):
    page, query = LINKS[name]
    app = linked(page, {**query, **QUIET})
    assert asked == []
    assert button(app, "first_start").label == "Run it"
    assert "This asks for about" in all_text(app)
    assert "of computing, so it waits for a press. Up to 10 seconds it would start by itself." in all_text(app)
    assert app.sidebar.select_slider  # the controls are there
    app.run()
    assert asked == []
    button(app, "first_start").click()
    app.run()
    assert app.exception  # the engine, which refuses everything here, was asked, for the default too
    assert asked


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_take_hours_is_refused_with_the_controls_that_make_it_cheaper(asked, name):
    page, query, words = REFUSED[name]
    app = linked(page, {**query, **QUIET})
    assert asked == []
    assert button(app, "first_start") is None
    (said,) = (item.value for item in app.warning)
    assert "at most 10 minutes: choose a smaller" in said
    for word in words:
        assert word in said


def test_a_press_is_for_one_setting_and_no_link_holds_it(monkeypatch):
    monkeypatch.setattr("pages._ui.charts.UNASKED_SECONDS", 0.0)
    monkeypatch.setattr("pages._ui.charts.may_run.__defaults__", (0.0,))
    app = linked("modes", {"n": "500", **QUIET, "first_start": "on", "_pressed": "on"})
    assert not app.metric
    button(app, "first_start").click()
    app.run()
    assert app.metric
    app.run()  # the same settings do not ask again
    assert app.metric
    assert "first_start" not in app.query_params
    slider = next(item for item in app.sidebar.select_slider if item.key == "epsilon")
    slider.set_value(2.0).run()
    assert button(app, "first_start") is not None
    assert not app.metric
    slider.set_value(1.0).run()  # and these were pressed before
    assert app.metric


def test_many_steps_on_the_guarantee_page_wait_for_a_press(monkeypatch):
    made = []
    monkeypatch.setattr(
        "dpgrams_core.sweeps.run.run_cell", lambda cell: made.append(cell) or failed_result(cell, "not made")
    )
    try:
        app = linked(
            "guarantee",
            {"steps": "25", "n": "20000", "m": "20000", "accountants": "off", "measure": "on", "tab": "methods"},
        )
        assert made == []
        assert button(app, "measure_start").label == "Run it"
        assert "of computing, so it waits for a press" in all_text(app)
        button(app, "measure_start").click()
        app.run()
        assert not app.exception
        assert {cell.method for cell in made} == {"dp_grams", "functional", "mean_shift"}
        assert {dict(cell.options).get("n_steps") for cell in made if cell.method == "dp_grams"} == {25}
        heavy = {"steps": "25", "n": "1000000", "m": "1000000", "accountants": "off", "tab": "methods"}
        app, count = linked("guarantee", heavy), len(made)
        assert button(app, "measure_start") is None
        assert any("at most 10 minutes: choose a smaller n, m or number of steps T" in w.value for w in app.warning)
        assert len(made) == count
    finally:
        page_jobs.memory.clear()


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("modes", {**TEXT, "n": "300", "runs": "off"}),
        ("regression", {"reg_n": "300", "reg_method": "dp_pms"}),
        ("clusters", {"clu_n_blobs": "300", "clu_method": "dp_grams_c"}),
    ],
)
def test_costly_curves_wait_where_the_first_picture_does_not(monkeypatch, page, query):
    """The limit is moved, and not the price: pictures just below the real one would take many seconds."""
    made = []
    monkeypatch.setattr(
        "dpgrams_core.sweeps.run.run_cell", lambda cell: made.append(cell) or failed_result(cell, "not made")
    )
    with monkeypatch.context() as stingy:
        stingy.setattr(charts, "UNASKED_SECONDS", 0.2)
        app = linked(page, query)
        assert app.metric
        assert button(app, "curve_start").label == "Run it"
        assert made == []
    assert button(linked(page, query), "curve_start") is None
    assert made


def test_sweeps_ladders_and_searches_have_a_price_too(monkeypatch):
    made = []
    monkeypatch.setattr("dpgrams_core.sweeps.run.run_cell", lambda cell: made.append(cell) or failed_result(cell, "no"))
    monkeypatch.setattr("dpgrams_core.studies.ablation.ladder_errors", lambda *wish: made.append(wish) or (0.0,) * 8)
    small = {"lab_seed": "4711", "lab_eps_four_corners": "1"}
    # Few runs at a small n: only the price tells that these are long.
    app = linked(
        "tradeoff",
        {
            **small,
            "lab_part": "sensitivity",
            "lab_vary": "bandwidth_scale",
            "lab_runs": "200",
            "lab_s_arm_modes_bandwidth_scale": "Functional release",
            "lab_values_bandwidth_scale": "0.2 0.3",
            "lab_n_four_corners": "2000",
        },
    )
    assert button(app, "lab_start") is not None
    assert "of computing on one core" in "".join(item.proto.text for item in app.get("progress"))
    app = linked("tradeoff", {**small, "lab_n_four_corners": "1000000", "lab_runs": "1000"})
    assert button(app, "lab_start") is None
    assert any("at most 45 minutes: choose fewer methods, runs" in item.value for item in app.warning)
    app = linked("tradeoff", {**small, "lab_part": "sources", "lab_runs": "20", "lab_one_n_four_corners": "100000"})
    assert "At most about" in all_text(app)
    assert button(app, "lab_start") is not None
    app = linked("tradeoff", {**small, "lab_part": "sources", "lab_runs": "500", "lab_one_n_four_corners": "1000000"})
    assert button(app, "lab_start") is None
    assert any("at most 45 minutes" in item.value for item in app.warning)
    app = linked("tradeoff", {**small, "lab_part": "needed", "lab_one_n_four_corners": "1000000", "lab_percent": "99"})
    assert button(app, "lab_start") is None
    assert any("at most 45 minutes" in item.value for item in app.warning)
    time.sleep(0.2)
    assert made == []


def test_the_limits_of_a_sweep_leave_every_first_grid_as_it_was():
    from dpgrams_core.studies.costs import cells_seconds
    from pages._ui.tradeoff.settings import ARMS, LabSettings, grid_of, lab_cells

    for dataset in DATASETS:
        sizes, epsilons = grid_of(dataset)
        kind = DATASETS[dataset].kind
        if DATASETS[dataset].slow:
            continue
        settings = LabSettings(
            kind=kind,
            dataset=dataset,
            arms=tuple(arm for arm in ARMS[kind] if arm.first),
            sizes=sizes,
            epsilons=epsilons,
            runs=20,
            seed=0,
            known=True,
            delta=1e-6,
        )
        assert cells_seconds(lab_cells(settings)) < tradeoff_live.UNASKED_SECONDS, dataset


def test_a_presence_lasts_a_moment_longer_than_the_connection(monkeypatch):
    now, there = [0.0], [True]
    monkeypatch.setattr(visitors, "connected", lambda session: there[0])
    present = visitors.Presence("someone", clock=lambda: now[0])
    assert present()
    there[0] = False
    assert present()
    now[0] = visitors.GRACE_SECONDS - 0.1
    assert present()
    there[0] = True  # back again
    assert present()
    there[0] = False
    now[0] += 1
    assert present()
    now[0] += visitors.GRACE_SECONDS + 0.1
    assert not present()


def test_the_link_of_the_issue_is_dearer_than_the_first_page():
    box = np.array(DATASETS["four_corners"].box)
    assert run_seconds("dp_grams", n=1_000_000, box=box, batch_size=1_000_000) > 3.0
    assert run_seconds("dp_grams", n=5_000, box=box) < 0.1
