"""The table of goals says of each whether it is met, and of nothing else."""

from __future__ import annotations

import pytest

from benchmarks.immediate import Row, timed
from benchmarks.redraw import settled


@pytest.mark.parametrize(
    ("row", "met", "words"),
    [
        (Row("a", 60.0, most=60.0), True, "at most 60 ms, met"),
        (Row("a", 60.1, 900.0, "kB", most=60.0), False, "at most 60 kB, missed"),
        (Row("a", 2.0, 10.0, times=5.0), True, "5 times, met"),
        (Row("a", 2.1, 10.0, times=5.0), False, "5 times, missed"),
        (Row("a", 2.0, times=5.0), None, "5 times"),  # nothing to be compared with: no verdict
        (Row("a", 2.0, 100.0, note="before any sum"), None, "before any sum"),
        (Row("a", 8.0, most=10.0, speed=0.5), True, "at most 10 ms, met here, missed there"),
        (Row("a", 12.0, most=10.0, speed=2.0), False, "at most 10 ms, missed here, met there"),
        (Row("a", 12.0, most=10.0, speed=1.0), False, "at most 10 ms, missed"),
    ],
)
def test_a_goal_is_met_missed_or_not_told(row, met, words):
    assert row.met is met
    assert row.fields()["met"] is met
    assert str(row).endswith(f"   {words}")


def test_seconds_are_told_in_milliseconds_beside_those_of_before():
    row = timed("a run", 0.002, 0.03, times=10.0)
    assert (row.new, row.old, row.ratio, row.met) == (2.0, 30.0, pytest.approx(15.0), True)


def test_a_page_that_still_fills_in_is_not_measured(monkeypatch):
    """Its own computing would be counted with the redraw, which flatters whatever is compared with it."""

    class Busy:
        fills_in = True

        def redraw(self):
            return None

        def look(self, seconds):
            pass

    monkeypatch.setattr("benchmarks.redraw.SETTLE_SECONDS", 0.01)
    with pytest.raises(TimeoutError, match="still fills in"):
        settled(Busy())
