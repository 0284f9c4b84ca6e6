"""The Tradeoff page as a script, without a browser."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core import load_dataset, run
from dpgrams_core.cli.main import chosen_options, parser
from dpgrams_core.model.guarantee import status_words
from dpgrams_core.own_data.twin import released_twin
from dpgrams_core.sweeps.run import plan_cells, run_cell, sweep
from pages._ui import jobs as page_jobs
from pages._ui.tradeoff.settings import ARMS, LabSettings, command_lines, grid_of, lab_cells
from tests.places import ROOT
from tests.shown import all_text, answer, button, checked, new_page, until, widget

SMALL = {"lab_n_four_corners": "60 90", "lab_eps_four_corners": "1 5", "lab_runs": "3"}


def lab(**query: str) -> AppTest:
    return checked(new_page("tradeoff", **{**SMALL, **query}))


@pytest.fixture
def made(monkeypatch):
    """Every cell that is run, in order."""
    seen = []
    monkeypatch.setattr("dpgrams_core.sweeps.run.run_cell", lambda cell: seen.append(cell) or run_cell(cell))
    return seen


def test_it_draws_a_curve_and_says_what_privacy_costs(made):
    app = until(lab(lab_seed="101"), "Complete: 10 points, 30 runs")
    assert app.title[0].value == "What does privacy cost me?"
    table = sweep(
        ["functional", "mean_shift"], "four_corners", n=[90], epsilon=[1.0], runs=3, seed=101, n_modes=4, delta=1e-6
    ).set_index("method")
    ratio = table.loc["functional", "mse"] / table.loc["mean_shift", "mse"]
    words = answer(app)
    assert words.index("functional release") < words.index("DP-GRAMS")  # as listed, whichever is quicker
    assert "On Four corners with n = 90, at ε = 1, privacy multiplies the MSE by" in words
    assert f"by {ratio:.3g} ±" in words
    assert "with the functional release (proven)" in words
    assert f"DP-GRAMS experiments ({status_words('nominal')})" in words
    assert "Means of 3 runs, each on fresh data" in all_text(app)
    shown = next(item.value for item in app.dataframe if "mse_se" in item.value)
    assert len(shown) == 10
    assert shown["mse"].min() > 0
    assert "python -m dpgrams_core sweep four_corners functional --n 60 90 --epsilon 1 5" in app.code[0].value
    made.clear()
    again = lab(lab_seed="101")  # another visitor
    assert "Complete: 10 points, 30 runs" in all_text(again)
    more = until(lab(lab_seed="101", lab_runs="5"), "Complete: 10 points, 50 runs")
    assert sum(cell.runs for cell in made) == 20  # only the new ones
    assert "(5 runs)" in answer(more)


def test_the_answer_follows_your_epsilon_and_a_projector_has_it_under_the_picture():
    app = until(lab(), "Complete: 10 points, 30 runs")
    slider = widget(app, "select_slider", "lab_at_four_corners")
    assert (slider.value, slider.options) == (1.0, ["1", "5"])
    slider.set_value(5.0).run()
    assert "at ε = 5, privacy multiplies the MSE by" in answer(app)
    assert app.query_params["lab_at_four_corners"] == "5"
    app = lab(presenter="on", lab_at_four_corners="5")
    app.session_state["presenter"] = True  # app.py reads it from the link
    app.run()
    assert answer(app).startswith("At ε = 5 privacy multiplies the MSE by ")
    assert "(functional release, proven) and by " in answer(app)
    assert "runs" not in answer(app)  # one short line
    assert [one.key for one in app.main.select_slider] == ["lab_at_four_corners"]
    app = lab(lab_eps_four_corners="2 5", lab_at_four_corners="1")  # none of them
    assert "at ε = 2" in answer(app)
    for part in ("sensitivity", "sources"):
        app = lab(lab_part=part)
        app.session_state["presenter"] = True
        app.run()
        assert [one.key for one in app.main.select_slider] == ["lab_one_eps"]


def test_stop_keeps_what_is_there_and_continue_makes_the_rest(made, monkeypatch):
    gate = threading.Semaphore(2)  # two pieces of three runs; the next is under way until it is let through
    gated = lambda cell: gate.acquire(timeout=60) and (made.append(cell) or run_cell(cell))  # noqa: E731
    monkeypatch.setattr("dpgrams_core.sweeps.run.run_cell", gated)
    monkeypatch.setattr(page_jobs, "FINISH_SECONDS", 60.0)
    app = until(lab(lab_seed="102", lab_m_functional="off"), "6 of 18 runs")
    assert "of 6 points" in all_text(app)
    button(app, "lab_stop").click()
    app.run()
    until(app, "Stopped at 6 of 18 runs. What is there is kept")
    gate.release(20)
    until(app, "Stopped at 9 of 18 runs")  # the piece that was under way ends, and counts
    time.sleep(0.5)
    assert sum(cell.runs for cell in made) == 9  # and it was the last
    app.number_input(key="lab_runs").set_value(2)  # another control does not start it
    app.run()
    assert button(app, "lab_start") is not None or "Complete" in all_text(app)
    app.number_input(key="lab_runs").set_value(3)
    app.run()
    assert button(app, "lab_start").label == "Continue"
    button(app, "lab_start").click()
    app.run()
    until(app, "Complete: 6 points, 18 runs")
    assert sum(cell.runs for cell in made) == 18  # nothing was made twice


def test_the_time_left_is_that_of_the_job_for_whoever_looks_at_it(monkeypatch):
    gate, timed = threading.Semaphore(2), []
    monkeypatch.setattr("dpgrams_core.sweeps.run.run_cell", lambda cell: gate.acquire(timeout=20) and run_cell(cell))
    until(lab(lab_seed="108", lab_m_functional="off"), "6 of 18 runs")
    monkeypatch.setattr("pages._ui.tradeoff.live.seconds_left", lambda *wish: timed.append(wish))
    lab(lab_seed="108", lab_m_functional="off")  # another visitor, or the same one after a reload
    cells, known, before, _ = timed[-1]
    assert sum(known[cell].ended for cell in cells) == 6
    assert set(before.values()) == {0}  # none of the six was there when the job's clock began
    gate.release(20)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"lab_n_four_corners": " "}, "the grid is empty; give at least one number"),
        ({"lab_n_four_corners": "few"}, "give numbers with blanks between them"),
        ({"lab_n_four_corners": "10"}, "n = 10 is not allowed"),
        ({"lab_eps_four_corners": "0"}, "epsilon = 0.0 is not allowed"),
        ({"lab_runs": "0"}, "runs = 0 is not allowed"),
        ({arm.key: "off" for arm in ARMS["modes"]}, "the grid is empty; choose at least one method"),
    ],
)
def test_a_bad_grid_is_a_sentence(query, words):
    app = lab(**query)
    assert any(words in item.value for item in app.error)
    assert answer(app) == "There is no curve to draw yet."


def test_a_huge_grid_has_an_estimate_and_waits_for_a_confirmation(made, monkeypatch):
    monkeypatch.setattr("pages._ui.tradeoff.settings.ASK_RUNS", 40)
    app = lab(lab_seed="103", lab_runs="5")
    said = app.error[0].value
    assert "runs" in said
    assert "on one core" in said
    assert "has to be confirmed" in said
    assert "--yes" in app.code[0].value
    assert made == []
    button(app, "lab_confirm").click()
    app.run()
    until(app, "Complete: 10 points, 50 runs")
    assert len(made) > 0
    huge = {"lab_n_four_corners": " ".join(map(str, range(60, 460))), "lab_runs": "1000"}
    app = lab(**huge, lab_seed="104")
    button(app, "lab_confirm").click()
    app.run()
    assert any("more than the page holds" in item.value for item in app.error)
    assert not app.exception


def test_a_long_sweep_waits_for_a_click(made, monkeypatch):
    monkeypatch.setattr("pages._ui.tradeoff.live.QUICK_RUNS", 10)
    app = lab(lab_seed="105")
    assert "30 runs to make." in all_text(app)
    assert made == []
    assert button(app, "lab_start").label == "Start"
    button(app, "lab_start").click()
    app.run()
    until(app, "Complete: 10 points, 30 runs")


def test_an_address_of_a_visitors_is_never_asked(monkeypatch):
    """Whoever is at that address could run code on this server: what they send is unpickled."""
    monkeypatch.setattr("streamlit.runtime.context.ContextProxy.ip_address", None)  # as from this machine itself
    with socket.socket() as trap:
        trap.bind(("127.0.0.1", 0))
        trap.listen()
        trap.settimeout(0.5)
        address = f"tcp://127.0.0.1:{trap.getsockname()[1]}"
        app = AppTest.from_file(str(ROOT / "pages" / "tradeoff.py"), default_timeout=120)
        for key, value in {**SMALL, "lab_seed": "106", "lab_scheduler": address}.items():
            app.query_params[key] = value
        app.session_state["lab_scheduler"] = address
        until(app.run(), "Complete: 10 points, 30 runs")  # here, and not there
        with pytest.raises(TimeoutError):
            trap.accept()
    assert "lab_scheduler" not in [item.key for item in app.text_input]
    assert "Curves run on this server." in all_text(app)


def test_the_owners_cluster_is_used_and_never_named(monkeypatch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        place = f"127.0.0.1:{probe.getsockname()[1]}"
        monkeypatch.setenv("DPGRAMS_DASK", f"tcp://{place}")
        assert "The Dask cluster is for the curves" in all_text(lab(lab_part="needed", lab_seed="107"))
        app = lab(lab_seed="107")
        started = time.monotonic()
        while not app.error:
            assert time.monotonic() - started < 20  # ten for the engine, and room for a busy machine
            time.sleep(0.1)
            app.run()
    assert "The Dask cluster of this server cannot be used: no Dask scheduler answers" in app.error[0].value
    assert "Curves run on this server's Dask cluster." in all_text(app)
    assert place not in all_text(app)
    assert button(app, "lab_start").label == "Start"


def test_methods_without_privacy_alone_are_drawn(made):
    off = {arm.key: "off" for arm in ARMS["modes"] if arm.key != "lab_m_mean_shift"}
    app = lab(lab_seed="108", lab_m_mean_shift="on", **off)
    until(app, "Complete: ")
    assert not app.exception
    assert answer(app) == "Choose a private method to see what privacy costs."


@pytest.mark.parametrize(
    ("query", "words", "said"),
    [
        ({"lab_part": "sensitivity"}, "Complete: 10 points", "DP-GRAMS experiments, n = 90: mean MSE is best"),
        ({"lab_part": "kernel", "lab_kernel_eps": "1"}, "Complete: 6 points", "The best MSE in 2 settings of n and ε"),
        ({"lab_part": "sources", "lab_one_n_four_corners": "90"}, "Complete. 3 of 3 runs", "Of the mean MSE of"),
        ({"lab_kind": "regression", "lab_part": "kernel"}, "", "DP-PMS has one kernel only"),
        (
            {"lab_kind": "regression", "lab_part": "sources", "lab_one_n_sinusoid": "90"},
            "Complete. 3 of 3 runs",
            "Of the mean MSE of",
        ),
    ],
)
def test_the_other_parts_answer_too(query, words, said):
    app = until(lab(lab_seed="107", **query), words)
    assert said in answer(app)
    if words.startswith("Complete: "):
        points = int(words.split()[1])
        got = parser().parse_args(app.code[0].value.split()[3:])
        vary = (got.vary[0], got.vary[1:])
        given = {"n": got.n, "epsilon": got.epsilon, "runs": got.runs, "seed": got.seed, "vary": vary}
        cells = plan_cells(got.methods, got.dataset, **given, **chosen_options(got, ("epsilon",)))
        assert len(cells) == points
        assert all(page_jobs.memory().finished(cell).complete for cell in cells)  # the very same runs


def test_the_needed_budget_is_a_bracket_with_its_confidence():
    app = lab(
        lab_part="needed", lab_t_arm_modes="DP-GRAMS experiments", lab_target_mse="1e9", lab_one_n_four_corners="60"
    )
    assert "Press Start" in answer(app)
    assert "Every value that is tried has 60 runs." in all_text(app)
    button(app, "lab_start").click()
    app.run()
    until(app, "Complete. 2 values tried")
    assert "needs no more than ε = 0.05, the lowest value tried, which is shown to reach it" in answer(app)
    assert "95% confidence" in all_text(app)
    app.number_input(key="lab_percent").set_value(95.0)  # needs more runs, and gets them
    app.run()
    assert "Every value that is tried has 104 runs: 95% cannot be shown with fewer." in all_text(app)
    assert not app.error
    assert button(app, "lab_start").label == "Start"
    app.number_input(key="lab_percent").set_value(100.0)
    app.run()
    assert "probability = 1.0 is not allowed" in app.error[0].value


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"lab_kind": "regression", "lab_n_sinusoid": "100", "lab_eps_sinusoid": "1"}, "On Two waves with n = 100"),
        ({"lab_kind": "clusters", "lab_n_blobs": "100", "lab_eps_blobs": "1"}, "the mean ARI is"),
    ],
)
def test_other_problems(query, said):
    app = until(lab(**query), "Complete:")
    assert said in answer(app)
    assert "without privacy" in answer(app).lower()


def test_links_hold_the_settings_and_a_bad_value_is_told():
    app = lab(lab_seed="101", lab_view="n", lab_score_modes="found", lab_kind="nonsense")
    assert any("lab_kind" in item.value for item in app.info)
    assert app.segmented_control(key="lab_view").value == "n"
    assert "the mean modes found is" in answer(until(app, "Complete:"))
    app.segmented_control(key="lab_view").set_value("epsilon")
    app.run()
    assert app.query_params["lab_view"] in ("epsilon", ["epsilon"])


def lab_of(name: str, kind: str, **change) -> LabSettings:
    first = {"arms": ARMS[kind], "sizes": "60", "epsilons": "5", "runs": 1, "seed": 0, "known": True, "delta": 1e-5}
    return LabSettings(kind=kind, dataset=name, **first | change)


def test_a_twin_has_a_grid_of_its_own_and_no_command():
    data = load_dataset("sinusoid", n=3_000, seed=0)
    release = run("functional_regression", data, epsilon=5.0, seed=0)
    name = released_twin(release.surface, "regression", data.box, release.curve, branches=release.branches)
    assert grid_of(name) == ("750 1500 3000", "0.1 0.25 0.5 1 5")
    assert not name.slow
    settings = lab_of(name, "regression")
    assert command_lines(settings.sweeps()) == ""
    assert command_lines(lab_of("sinusoid", "regression").sweeps())
    # Both waves reach over the whole box; of a curve that is cut short DP-PMS is told so, as of the paper's steps.
    starts = [dict(cell.options).get("starts", "") for cell in lab_cells(settings) if cell.method == "dp_pms"]
    assert set(starts) == {""}
    half = release.curve[:, 0] < 0.5
    cut = released_twin(release.surface, "regression", data.box, release.curve[half], branches=release.branches[half])
    starts = [dict(cell.options).get("starts", "") for cell in lab_cells(lab_of(cut, "regression"))]
    assert "binned" in starts
    with pytest.raises(ValueError, match="choose fewer"):
        lab_cells(lab_of(name, "regression", runs=10_000, epsilons=" ".join(map(str, range(1, 40)))), confirm=True)
