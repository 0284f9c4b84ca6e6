"""What the Tradeoff page keeps and runs in the background, without a page."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from dpgrams_core.cli.main import chosen_options, parser
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.run import same_but_runs
from dpgrams_core.studies.paper import shipped
from dpgrams_core.studies.paper.experiments import EXPERIMENTS
from dpgrams_core.sweeps.cell import failed_result
from dpgrams_core.sweeps.executors import DIED
from dpgrams_core.sweeps.run import plan_cells, run_cell
from pages._ui import jobs as page_jobs
from pages._ui.jobs import Jobs, RunMemory, seconds_left, streamed, sweep_steps
from pages._ui.tradeoff import live as tradeoff_live
from pages._ui.tradeoff.settings import ARMS, LabSettings, command_lines, grid_of, lab_cells, numbers_of
from tests.made import changed, made_result


class NoPool:
    """Workers that never come."""

    ready = False
    pool = None


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def gated(told=lambda number: None):
    """A gate, and a job whose every step waits until the gate lets one through; ``told`` hears of each."""
    gate = threading.Semaphore(0)

    def steps():
        for number in range(100):
            gate.acquire(timeout=10)
            told(number)
            yield number

    return gate, steps


def settings(kind="modes", dataset="four_corners", **changes) -> LabSettings:
    wanted = {
        "kind": kind,
        "dataset": dataset,
        "arms": tuple(arm for arm in ARMS[kind] if arm.first),
        "sizes": grid_of(dataset)[0],
        "epsilons": grid_of(dataset)[1],
        "runs": 3,
        "seed": 0,
        "known": True,
        "delta": 1e-6,
    }
    return LabSettings(**{**wanted, **changes})


def test_what_a_died_worker_did_not_make_is_made_again_but_not_for_ever(monkeypatch):
    good, bad = plan_cells("mean_shift", "four_corners", n=[60, 70], epsilon=[1.0], runs=3)
    kept, tries = RunMemory(), []
    dying = lambda cell: tries.append(cell) or (failed_result(cell, DIED) if cell.n == bad.n else run_cell(cell))  # noqa: E731
    monkeypatch.setattr("dpgrams_core.sweeps.run.run_cell", dying)
    shared = Jobs()
    job = shared.ask("k", "ann", sweep_steps([good, bad], kept, NoPool(), None))
    until(lambda: not job.running)
    assert job.error == f"3 runs could not be made; try again. {DIED}"
    assert [kept.finished(cell).ended for cell in (good, bad)] == [3, 0]
    assert sum(cell.n == bad.n for cell in tries) == 1  # the job did not go round and round
    monkeypatch.setattr("dpgrams_core.sweeps.run.run_cell", run_cell)
    shared.forget("k")
    job = shared.ask("k", "bob", sweep_steps([good, bad], kept, NoPool(), None))
    until(lambda: not job.running)
    assert job.finished
    assert kept.finished(bad).scores == run_cell(bad).scores


def test_a_job_knows_what_was_there_when_it_started():
    shared, step = Jobs(), threading.Semaphore(0)
    steps = lambda: iter(lambda: step.acquire(timeout=10), None)  # noqa: E731
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=9)
    first = shared.ask("k", "ann", steps, before={cell: 2})
    second = shared.ask("k", "bob", steps, before={cell: 7})  # somebody else, or the same one after a reload
    assert first is second
    assert second.before == {cell: 2}
    for visitor in ("ann", "bob"):
        shared.leave("k", visitor)
    step.release()


def test_two_visitors_share_a_job_and_it_stops_when_both_have_left():
    made = []
    shared, (step, steps) = Jobs(), gated(made.append)
    first = shared.ask("k", "ann", steps)
    assert shared.ask("k", "bob", steps) is first
    step.release()
    until(lambda: shared.kept.get("k") == 0)
    shared.leave("k", "ann")
    step.release()
    until(lambda: shared.kept.get("k") == 1)
    assert first.running
    shared.leave("k", "bob")
    step.release()
    until(lambda: shared.look("k") is None)
    assert made == [0, 1, 2]
    assert not first.running


def test_a_job_that_nobody_asks_for_any_more_stops_and_continues_when_asked():
    now = [0.0]
    shared, (step, steps) = Jobs(clock=lambda: now[0]), gated()
    shared.ask("k", "ann", steps)
    now[0] = page_jobs.PATIENCE_SECONDS - 1
    step.release()
    until(lambda: shared.kept.get("k") == 0)
    assert shared.look("k").running
    now[0] = page_jobs.PATIENCE_SECONDS + 1
    step.release()
    until(lambda: shared.look("k") is None)
    again = shared.ask("k", "ann", steps)
    assert again.running
    shared.leave("k", "ann")
    step.release()


@pytest.mark.parametrize("how", ["left", "stopped"])
def test_a_job_ends_in_the_middle_of_a_run_when_its_visitors_have_left(monkeypatch, how):
    monkeypatch.setattr(page_jobs, "FINISH_SECONDS", 0.2)
    there = {"ann": True, "bob": True}
    shared, freed, began = Jobs(), threading.Event(), threading.Event()

    def steps():
        try:
            yield "first"
            began.set()
            end = time.monotonic() + 60  # a run that nobody would wait for
            while time.monotonic() < end:
                checkpoint()
                time.sleep(0.01)
            yield "never"
        finally:
            freed.set()

    job = shared.ask("k", "ann", steps, present=lambda: there["ann"])
    assert shared.ask("k", "bob", steps, present=lambda: there["bob"]) is job
    assert began.wait(20)
    there["ann"] = False
    time.sleep(0.3)
    assert job.running  # bob still waits
    if how == "left":
        there["bob"] = False
    else:
        shared.leave("k", "ann")
        shared.leave("k", "bob")
    assert freed.wait(20)
    until(lambda: shared.look("k") is None)
    assert job.stopped
    assert not job.error
    assert shared.kept["k"] == "first"


def test_work_of_one_session_leaves_nothing_behind_on_the_server():
    shared, mine = page_jobs.jobs(), {}
    work = page_jobs.one_by_one(("twin", "ann", 1), [1, 2], lambda value: value * 10, mine)
    job = shared.ask(work.key, "ann", work.steps, before=work.found())
    until(lambda: not job.running)
    assert mine == {1: 10, 2: 20}
    assert work.count(work.found()) == (2, 2)
    assert work.key not in shared.kept
    assert shared.look(work.key) is None
    assert job.before is None


def test_what_a_page_does_not_ask_for_again_ends_soon():
    now = [0.0]
    shared, (step, steps) = Jobs(clock=lambda: now[0]), gated()
    job = shared.ask("k", "ann", steps)
    shared.hurry("k", "ann")
    shared.ask("k", "ann", steps)  # asked again: it goes on
    now[0] = page_jobs.TURNED_SECONDS + 1
    step.release()
    until(lambda: shared.kept.get("k") == 0)
    assert job.running
    shared.hurry("k", "ann")  # and now not
    now[0] += page_jobs.TURNED_SECONDS + 1
    step.release()
    until(lambda: shared.look("k") is None)
    assert job.stopped


def test_an_error_is_kept_as_a_sentence_until_it_is_tried_again():
    shared = Jobs()

    def steps():
        yield None
        raise SpecError("scheduler", "x", "it does not answer")

    job = shared.ask("k", "ann", steps)
    until(lambda: job.error)
    assert job.error == "scheduler = 'x' is not allowed: it does not answer."
    assert shared.ask("k", "ann", steps) is job  # asking alone does not try again
    shared.forget("k")
    assert shared.look("k") is None


def test_a_sweep_in_steps_gives_what_a_sweep_gives_and_continues_where_it_stopped(monkeypatch):
    monkeypatch.setattr(page_jobs, "PIECE_RUNS", 2)
    cells = plan_cells(["mean_shift", "dp_grams"], "four_corners", n=[60], epsilon=[1.0], runs=4)
    kept, seen = RunMemory(), []
    going = sweep_steps(cells, kept, NoPool(), None)()
    next(going)
    going.close()
    done = sum(kept.finished(cell).ended for cell in cells)
    assert 0 < done < 8
    monkeypatch.setattr("dpgrams_core.sweeps.run.run_cell", lambda cell: seen.append(cell) or run_cell(cell))
    list(sweep_steps(cells, kept, NoPool(), None)())
    assert sum(cell.runs for cell in seen) == 8 - done
    assert [kept.finished(cell).scores for cell in cells] == [run_cell(cell).scores for cell in cells]


def test_streams_run_here_where_no_workers_come(monkeypatch):
    monkeypatch.setattr(page_jobs, "WARM_SECONDS", 0.0)
    assert list(streamed(lambda executor: iter_of(executor), NoPool())()) == ["serial", "end"]


def iter_of(executor):
    yield executor
    yield "end"


def test_time_left_weighs_a_run_by_its_method_and_size():
    quick, slow = plan_cells("mean_shift", "four_corners", n=[60, 5000], epsilon=[1.0], runs=10)
    some = {
        cell: changed(run_cell(replace(quick, runs=2)), cell=cell, seconds=(time_each,) * 2)
        for cell, time_each in ((quick, 0.1), (slow, 0.9))
    }
    # Two runs of each took 2 seconds of work, eight of each are left: 8.
    assert seconds_left([quick, slow], some, {}, elapsed=2.0) == pytest.approx(8.0)
    # What was there before does not count as speed.
    assert seconds_left([quick, slow], some, {quick: 2, slow: 1}, elapsed=2.0) > 15
    assert seconds_left([quick, slow], {}, {}, elapsed=2.0) is None


@pytest.mark.parametrize(
    ("kind", "dataset"),
    [("modes", "four_corners"), ("regression", "three_component"), ("regression", "sinusoid"), ("clusters", "blobs")],
)
def test_the_printed_commands_plan_the_same_cells(kind, dataset):
    mine = settings(kind, dataset, arms=ARMS[kind], delta=1e-5)
    cells = []
    for line in command_lines(mine.sweeps()).splitlines():
        words = line.split()
        assert words[:3] == ["python", "-m", "dpgrams_core"]
        got = parser().parse_args(words[3:])
        given = {"n": got.n, "epsilon": got.epsilon, "runs": got.runs, "seed": got.seed}
        cells += plan_cells(got.methods, got.dataset, **given, **chosen_options(got, ("epsilon",)))
    assert {same_but_runs(cell) for cell in cells} == {same_but_runs(cell) for cell in lab_cells(mine)}
    assert {cell.runs for cell in cells} == {3}


def test_grids_that_cannot_be_used_are_refused_in_a_sentence():
    for changes, words in (
        ({"arms": ()}, "the grid is empty; choose at least one method"),
        ({"sizes": " , "}, "the grid is empty; give at least one number"),
        ({"sizes": "many"}, "give numbers with blanks between them"),
        ({"sizes": "10"}, "n = 10 is not allowed"),
        ({"epsilons": "0"}, "epsilon = 0.0 is not allowed"),
        ({"epsilons": "1,5 2,5"}, "use a point in decimals and blanks between numbers"),
        ({"epsilons": "nan"}, "epsilon = nan is not allowed"),
        ({"runs": 0}, "runs = 0 is not allowed"),
        ({"epsilons": " ".join(f"{k / 1000:g}" for k in range(1, 2000)), "sizes": "60 70 80"}, "has to be confirmed"),
    ):
        with pytest.raises(SpecError) as caught:
            lab_cells(settings(**changes))
        assert words in str(caught.value)
    large = settings(epsilons=" ".join(f"{k / 1000:g}" for k in range(1, 2000)), sizes="60 70 80", runs=10_000)
    with pytest.raises(SpecError, match="more than the page holds"):
        lab_cells(large, confirm=True)
    many, vary = settings(runs=10_000), ("batch_size", list(range(1, 7)))
    part = many.sweep_of(ARMS["modes"][1], n=[500, 1000, 2000, 5000], epsilon=[1.0], vary=vary)
    with pytest.raises(SpecError, match="more than the page holds"):  # nor a part with a sweep of its own
        many.cells([part])
    assert numbers_of("n", "500, 1000;2000\n3000", int) == [500, 1000, 2000, 3000]


@pytest.mark.parametrize("dataset", ["digits", "mnist"])
def test_curves_of_real_data_are_those_that_come_with_the_project(dataset):
    # What was run for the paper has records of its own, so its curve is computed here.
    # So are those of the rivals, which are not in the paper.
    rivals = ("noisy_kmeans", "hash_tree")
    arms = tuple(
        arm for arm in ARMS["clusters"] if ("calibration", "as_run") not in arm.options and arm.method not in rivals
    )
    mine = settings("clusters", dataset, arms=arms, delta=1e-5, runs=20)
    cells = lab_cells(mine)
    assert len(cells) == 27
    assert all(tradeoff_live._whatever_draw(cell) in tradeoff_live._planned("clustering", 0) for cell in cells)
    # As in the tables, what has no noise runs once on the same records; of a part of them it would not.
    assert {cell.runs for cell in cells if cell.method in ("kmeans", "mean_shift_c")} == {1}
    assert {cell.runs for cell in cells if cell.method == "functional_c"} == {20}
    part = replace(
        mine, sizes=f"200 {mine.sizes}", arms=tuple(arm for arm in ARMS["clusters"] if arm.method == "kmeans")
    )
    assert {cell.n: cell.runs for cell in lab_cells(part)} == {200: 20, int(mine.sizes): 1}
    assert [line.split(" --")[1:4:2] for line in command_lines(part.sweeps()).splitlines()] == [
        ["n 200", "runs 20"],
        [f"n {mine.sizes}", "runs 1"],
    ]


def test_only_finished_tables_that_can_match_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "results")
    shipped.shipped.cache_clear()
    for name, dataset in (("clustering", "digits"), ("modes", "four_corners"), ("regression", "sinusoid")):
        experiment = EXPERIMENTS[name]
        wanted = {cell for column, cell in experiment.cells(2, ["functional"]) if cell.dataset == dataset}
        made = [
            made_result(
                cell=cell, scores={"mse": (0.1, 0.2)}, seconds=(1.0, 1.0), status="proven", failures=(), numbers=(0, 1)
            )
            for cell in wanted
        ]
        shipped.ship(name, made, command="a test", seed=0, date="2026-01-02")
    read, right = [], shipped.shipped
    monkeypatch.setattr(shipped, "shipped", lambda name: read.append(name) or right(name))
    one = tuple(arm for arm in ARMS["clusters"] if arm.method == "functional_c")
    digits = lab_cells(settings("clusters", "digits", arms=one, delta=1e-5, runs=2))
    found = tradeoff_live.shipped_results_of(digits)
    assert {result.cell for result in found} == set(digits)  # although those were made on draw 0, and these on any
    assert read == ["clustering"]
    assert tradeoff_live.shipped_results_of([replace(cell, seed=5) for cell in digits]) == []
    assert tradeoff_live.shipped_results_of([replace(cell, n=500) for cell in digits]) == []
    assert read == ["clustering"]
    right.cache_clear()
