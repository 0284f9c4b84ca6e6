"""What the Tradeoff page keeps and runs in the background, without a page."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from dpgrams_core import sweep_store
from dpgrams_core.__main__ import chosen_options, parser
from dpgrams_core.cells import same_but_runs
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.sweeps import plan_cells, run_cell, split
from pages._ui import tradeoff_runs
from pages._ui.tradeoff_files import opened, parquet_of
from pages._ui.tradeoff_grids import ARMS, GRIDS, LabSettings, command_lines, lab_cells, numbers_of
from pages._ui.tradeoff_runs import Jobs, RunMemory, seconds_left, streamed, sweep_steps


class NoPool:
    """Workers that never come."""

    ready = False
    pool = None


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def settings(kind="modes", dataset="four_corners", **changes) -> LabSettings:
    wanted = {
        "kind": kind,
        "dataset": dataset,
        "arms": tuple(arm for arm in ARMS[kind] if arm.first),
        "sizes": GRIDS[dataset][0],
        "epsilons": GRIDS[dataset][1],
        "runs": 3,
        "seed": 0,
        "known": True,
        "delta": 1e-6,
    }
    return LabSettings(**{**wanted, **changes})


def test_memory_joins_pieces_and_answers_for_any_number_of_runs():
    (cell,) = plan_cells("mean_shift", "four_corners", n=[60], epsilon=[1.0], runs=6)
    whole, kept = run_cell(cell), RunMemory()
    for piece in reversed(list(split(cell, 2))):
        kept.add(run_cell(piece))
    assert kept.finished(cell).scores == whole.scores
    assert kept.finished(replace(cell, runs=4)).scores["mse"] == whole.scores["mse"][:4]
    more = kept.finished(replace(cell, runs=9))
    assert (more.ended, more.complete) == (6, False)
    assert kept.finished(replace(cell, seed=1)).ended == 0


def test_memory_forgets_what_was_not_used_for_longest():
    cells = plan_cells("mean_shift", "four_corners", n=[60, 70, 80], epsilon=[1.0], runs=2)
    kept = RunMemory(most_runs=4)
    for cell in cells[:2]:
        kept.add(run_cell(cell))
    kept.finished(cells[0])  # somebody looks at the first one
    kept.add(run_cell(cells[2]))
    assert [kept.finished(cell).ended for cell in cells] == [2, 0, 2]


def test_two_visitors_share_a_job_and_it_stops_when_both_have_left():
    shared, step, made = Jobs(), threading.Semaphore(0), []

    def steps():
        for number in range(100):
            step.acquire(timeout=10)
            made.append(number)
            yield number

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
    shared, step = Jobs(clock=lambda: now[0]), threading.Semaphore(0)

    def steps():
        for number in range(100):
            step.acquire(timeout=10)
            yield number

    shared.ask("k", "ann", steps)
    now[0] = tradeoff_runs.PATIENCE_SECONDS - 1
    step.release()
    until(lambda: shared.kept.get("k") == 0)
    assert shared.look("k").running
    now[0] = tradeoff_runs.PATIENCE_SECONDS + 1
    step.release()
    until(lambda: shared.look("k") is None)
    again = shared.ask("k", "ann", steps)
    assert again.running
    shared.leave("k", "ann")
    step.release()


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
    monkeypatch.setattr(tradeoff_runs, "PIECE_RUNS", 2)
    cells = plan_cells(["mean_shift", "dp_grams"], "four_corners", n=[60], epsilon=[1.0], runs=4)
    kept, seen = RunMemory(), []
    going = sweep_steps(cells, kept, NoPool(), None)()
    next(going)
    going.close()
    done = sum(kept.finished(cell).ended for cell in cells)
    assert 0 < done < 8
    monkeypatch.setattr("dpgrams_core.sweeps.run_cell", lambda cell: seen.append(cell) or run_cell(cell))
    list(sweep_steps(cells, kept, NoPool(), None)())
    assert sum(cell.runs for cell in seen) == 8 - done
    assert [kept.finished(cell).scores for cell in cells] == [run_cell(cell).scores for cell in cells]


def test_streams_run_here_where_no_workers_come(monkeypatch):
    monkeypatch.setattr(tradeoff_runs, "WARM_SECONDS", 0.0)
    assert list(streamed(lambda executor: iter_of(executor), NoPool())()) == ["serial", "end"]


def iter_of(executor):
    yield executor
    yield "end"


def test_time_left_weighs_a_run_by_its_method_and_size():
    quick, slow = plan_cells("mean_shift", "four_corners", n=[60, 5000], epsilon=[1.0], runs=10)
    some = {
        cell: replace(run_cell(replace(quick, runs=2)), cell=cell, seconds=(time_each,) * 2)
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
    for line in command_lines(mine).splitlines():
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
    assert numbers_of("n", "500, 1000;2000\n3000", int) == [500, 1000, 2000, 3000]


def test_a_results_file_comes_back_as_it_was_and_another_version_is_refused(monkeypatch):
    cells = plan_cells(["mean_shift", "dp_grams"], "four_corners", n=[60], epsilon=[1.0], runs=2)
    content = parquet_of([run_cell(cell) for cell in cells])
    found = opened(content, "mine.parquet", "four_corners")
    assert {cell.method: result.scores for cell, result in found.items()} == {
        cell.method: run_cell(cell).scores for cell in cells
    }
    with pytest.raises(DataError, match=r"mine\.parquet is about Four corners: choose that data set"):
        opened(content, "mine.parquet", "t_mixture")
    for wrong in (b"", b"PAR1 nothing PAR1", content[: len(content) // 2]):
        with pytest.raises(DataError, match=r"x\.parquet does not hold the results of a sweep"):
            opened(wrong, "x.parquet", "four_corners")
    varied = plan_cells("dp_grams", "four_corners", n=[60], epsilon=[1.0], runs=1, vary=("clip_multiplier", [1, 2]))
    with pytest.raises(DataError, match="holds no sweep over n and ε"):
        opened(parquet_of([run_cell(cell) for cell in varied]), "x.parquet", "four_corners")
    monkeypatch.setattr("pages._ui.tradeoff_files.MOST_ROWS", 3)
    with pytest.raises(DataError, match="holds 4 runs, and the page shows at most 3"):
        opened(content, "x.parquet", "four_corners")
    monkeypatch.undo()
    monkeypatch.setattr(sweep_store, "engine_fingerprint", lambda: "another!!!")
    with pytest.raises(DataError, match=r"old\.parquet holds results of another version of the engine"):
        opened(content, "old.parquet", "four_corners")
