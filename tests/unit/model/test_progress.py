"""The progress bar, honest about what it knows and quiet in a log; and checkpoints, where long work ends."""

from __future__ import annotations

import io
import os
import pickle
import pty
import sys
import threading

import numpy as np
import pytest

from dpgrams_core import METHODS, Dataset, load_dataset, run
from dpgrams_core.auditing import stream_audit
from dpgrams_core.cli.sweep import LINE_SECONDS, Progress
from dpgrams_core.methods.baselines.mean_shift import fast_mean_shift
from dpgrams_core.methods.dp_grams.rounds import kernel_sums
from dpgrams_core.model.format import time_words
from dpgrams_core.model.progress import Stopped, checkpoint, stoppable, time_left, uninterrupted
from dpgrams_core.numerics.density import clipped_score, density_and_gradient
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.numerics.sketch import feature_sums
from dpgrams_core.numerics.surface import box_bases, coefficients
from dpgrams_core.own_data.postprocess import released_modes
from dpgrams_core.own_data.release import release
from dpgrams_core.privacy.accountants import quotes, rounds_multiplier
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.studies.ablation import ladder_runs, run_ladder
from dpgrams_core.studies.comparison import ComparisonSettings, noise_ratios, tight_rounds
from dpgrams_core.sweeps.cell import run_cell
from dpgrams_core.sweeps.run import plan_cells, stream_partial


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_log_gets_few_lines_and_always_the_last(clock):
    log = io.StringIO()
    bar = Progress(1000, stream=log, clock=clock)
    for done in range(1, 1001):
        clock.now += 0.025  # 25 seconds in all
        bar.update(done)
    bar.finish(1000)
    lines = log.getvalue().splitlines()
    assert len(lines) == 1 + int(25 / LINE_SECONDS) + 1
    assert lines[-1] == "1000 of 1000 cells in 25 seconds"
    assert "\r" not in log.getvalue()


def test_a_terminal_gets_one_line_that_is_drawn_again(clock):
    terminal = Terminal()
    bar = Progress(10, "runs", stream=terminal, clock=clock)
    for done in (1, 5, 9):
        clock.now += 20
        bar.update(done)
    bar.finish(10, "; stopped")
    drawn = terminal.getvalue()
    assert drawn.count("\n") == 1
    assert [line.split(", ")[-1].strip() for line in drawn.split("\r")[1:4]] == [
        "about 3 minutes left",
        "about 40 seconds left",
        "about 7 seconds left",
    ]
    assert drawn.split("\r")[2].startswith("[############............] 5 of 10 runs")
    lengths = [len(line.rstrip("\n")) for line in drawn.split("\r")[1:]]
    assert all(
        later >= len(earlier.rstrip()) for later, earlier in zip(lengths[1:], drawn.split("\r")[1:], strict=False)
    )
    assert drawn.endswith("10 of 10 runs in 60 seconds; stopped\n")


def test_a_terminal_of_unknown_width_gets_all_words(clock, monkeypatch):
    ours, its = pty.openpty()  # zero columns, as in some containers; tqdm asks only standard error for its width
    with os.fdopen(its, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        bar = Progress(10, "runs", clock=clock)
        bar.update(5)
        bar.finish(5, "; stopped, what is finished follows")
        drawn = ""
        while not drawn.endswith("\n"):  # a terminal hands on what it has, which may be a part
            drawn += os.read(ours, 10_000).decode()
    os.close(ours)
    assert "[############............] 5 of 10 runs" in drawn
    assert drawn.endswith("] 5 of 10 runs in 1 second; stopped, what is finished follows\r\n")


def test_what_was_there_before_took_no_time(clock):
    assert time_left(0.8, 30, before=0.8) is None  # nothing new, nothing to go by
    assert time_left(0.9, 30, before=0.8) == pytest.approx(30)  # half of what was left
    assert time_left(1.0, 30, before=0.8) is None
    log = io.StringIO()
    bar = Progress(10, stream=log, clock=clock, share=0.8)
    clock.now += 30
    bar.update(9)
    assert log.getvalue() == "9 of 10 cells, about 30 seconds left\n"


def test_a_line_that_was_never_drawn_leaves_a_terminal_alone(clock):
    terminal = Terminal()  # an error of the first run is said on a line of its own
    Progress(10, stream=terminal, clock=clock)
    assert terminal.getvalue() == ""


def test_the_share_of_the_work_counts_and_not_that_of_the_cells(clock):
    log = io.StringIO()
    bar = Progress(10, stream=log, clock=clock)
    clock.now += 60
    bar.update(0, share=0.5)
    assert log.getvalue() == "0 of 10 cells, about 60 seconds left\n"


def test_nothing_to_do_is_no_division_by_zero(clock):
    log = io.StringIO()
    Progress(0, stream=log, clock=clock).finish(0)
    assert log.getvalue() == "0 of 0 cells in 1 second\n"


@pytest.mark.parametrize(("seconds", "words"), [(89, "89 seconds"), (90, "2 minutes"), (3599, "60 minutes")])
def test_times_are_in_words(seconds, words):
    assert time_words(seconds) == words


DATA = {"modes": "four_corners", "regression": "sinusoid", "clusters": "blobs"}
# These are one call into a library, which knows no checkpoint.
CLOSED = ("kmeans", "dp_kmeans", "lowess")


class After:
    """A check that ends the work when it is asked for the so-and-so-manieth time."""

    def __init__(self, count=None):
        self.asked, self.count = 0, count

    def __call__(self):
        self.asked += 1
        if self.count is not None and self.asked >= self.count:
            raise Stopped


@pytest.mark.parametrize("method", [name for name in METHODS if name not in CLOSED])
def test_every_method_passes_checkpoints_which_change_nothing_and_can_end_it(method):
    data = load_dataset(DATA[METHODS[method].kind], n=400, seed=0)
    plain = run(method, data, seed=3)
    check = After()
    with stoppable(check):
        watched = run(method, data, seed=3)
    assert check.asked >= 1
    for name in ("modes", "curve", "trajectories", "anchors"):
        before, after = getattr(plain, name), getattr(watched, name)
        assert (before is None) == (after is None)
        assert before is None or np.array_equal(before, after)
    for number in {1, check.asked}:
        with pytest.raises(Stopped), stoppable(After(number)):
            run(method, data, seed=3)


@pytest.mark.parametrize("calibration", ["experiments", "theorem", "tight"])
def test_every_round_is_a_checkpoint(calibration):
    data = load_dataset("four_corners", n=400, seed=0)
    counts = []
    for steps in (10, 60):
        check = After()
        with stoppable(check):
            run("dp_grams", data, seed=0, calibration=calibration, n_steps=steps, n_starts=5)
        counts.append(check.asked)
    assert counts[1] - counts[0] >= 50


def test_large_data_are_read_in_pieces_with_checkpoints_between():
    data = load_dataset("four_corners", n=100_000, seed=0)
    some = data.points[:200]
    works = [
        lambda: density_and_gradient(KERNELS["gaussian"], data.points, some, 0.5),
        lambda: clipped_score(KERNELS["gaussian"], data.points, some, 0.5, 1.0),
        lambda: kernel_sums(data.points, some, 0.5),
        lambda: coefficients(np.tile(data.points, (4, 1)), box_bases(data.box, 1.5)),
        lambda: feature_sums(data.points[:30_000], data.box, 1.5, 8),
        lambda: fast_mean_shift(data.points, 1.5, data.points[:10]),
    ]
    for work in works:
        with pytest.raises(Stopped), stoppable(After(3)):
            work()


def test_runs_trials_ladders_accountants_and_curves_pass_checkpoints():
    (cell,) = plan_cells("dp_grams", "four_corners", n=[100], epsilon=[1.0], runs=2)
    settings = ComparisonSettings(n=1_000, batch_size=100)
    rounds_multiplier.cache_clear()
    works = [
        lambda: run_cell(cell),
        lambda: next(stream_audit("functional", trials=40, n=20)),
        lambda: list(stream_partial([cell])),
        lambda: run_ladder(ladder_runs(cell, "mse")[0]),
        lambda: tight_rounds(settings, 0.7),
        lambda: quotes(tight_rounds(ComparisonSettings(), 1.0), 1e-6),
        lambda: noise_ratios(settings, 500),
        lambda: released_modes(run("functional", load_dataset("four_corners", n=300, seed=0), seed=0), 1.2),
    ]
    for work in works:
        with pytest.raises(Stopped), stoppable(After(1)):
            work()


def test_an_end_is_no_failure_of_a_run():
    (cell,) = plan_cells("dp_grams", "four_corners", n=[100], epsilon=[1.0], runs=3)
    results = []
    with pytest.raises(Stopped), stoppable(After(40)):
        list(map(results.append, stream_partial([cell], piece_runs=1)))
    assert results
    assert all(not result.failures for result in results)


def test_a_check_is_for_its_own_thread_and_block():
    with stoppable(After(1)):
        other = threading.Thread(target=checkpoint)
        other.start()
        other.join()
        with stoppable(After(5)):
            checkpoint()
        with pytest.raises(Stopped):
            checkpoint()
    checkpoint()
    assert isinstance(pickle.loads(pickle.dumps(Stopped())), Stopped)
    assert not isinstance(Stopped(), Exception)


def test_nothing_ends_what_must_not_end():
    with stoppable(After(1)), uninterrupted(), stoppable(After(1)):
        checkpoint()


@pytest.mark.parametrize("method", ["functional", "dp_grams"])
def test_a_paid_release_is_drawn_and_kept_whoever_has_left(tmp_path, rng, method):
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    mine = Dataset(name="mine", kind="modes", points=rng.normal(size=(300, 2)), box=[(-5, 5)] * 2, private=True)
    options = {"calibration": "tight"} if method == "dp_grams" else {}
    with stoppable(After(1)):
        paid = release(method, mine, ledger, epsilon=0.5, **options)
    assert paid.kept
    assert not paid.release.unread
    assert len(ledger.charges(paid.charge.account)) == 1
