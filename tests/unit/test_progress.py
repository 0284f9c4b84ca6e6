"""The progress bar: honest about what it knows, quiet in a log."""

from __future__ import annotations

import io

import pytest

from dpgrams_core.progress import LINE_SECONDS, Progress, time_words


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


def test_what_was_there_before_took_no_time(clock):
    bar = Progress(10, stream=io.StringIO(), clock=clock, share=0.8)
    clock.now += 30
    assert bar.time_left(0.8, clock.now) is None  # nothing new, nothing to go by
    assert bar.time_left(0.9, clock.now) == pytest.approx(30)  # half of what was left
    assert bar.time_left(1.0, clock.now) is None


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
