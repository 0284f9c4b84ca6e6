"""The pictures of audits: marks on the right side of the claim, honest intervals, and heaps that add up."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core.auditing import audit
from dpgrams_core.auditing.bounds import both_tests
from dpgrams_core.figures.audits import BINS, LEAST, audits_chart, upper_end, worlds_chart
from dpgrams_core.figures.style import CAUGHT, PRIVATE
from dpgrams_core.numerics.statistics import clopper_pearson

CAUGHT_NAME, PASSED_NAME = "caught: the claim is false", "not caught: proves nothing"


@pytest.fixture(scope="module")
def caught():
    return audit("broken_sum", epsilon=1.0, trials=100, n=30)


@pytest.fixture(scope="module")
def passed(caught):
    return replace(caught, epsilon_claimed=9.0)


def with_counts(result, hits, alarms, trials=1000, tail=0.0125):
    """The result whose better test saw these counts."""
    bounds = [tuple(float(end) for end in clopper_pearson(np.array(count), trials, tail)) for count in (hits, alarms)]
    lower = max(0.0, math.log(max(bounds[0][0] - result.delta, 1e-300) / bounds[1][1]))
    test = replace(
        result.tests[0],
        trials=trials,
        true_positives=hits,
        false_positives=alarms,
        true_positive_interval=bounds[0],
        false_positive_interval=bounds[1],
        epsilon_lower=lower,
    )
    blind = {"true_positive_interval": (0.98, 1.0), "false_positive_interval": (0.98, 1.0), "epsilon_lower": 0.0}
    return replace(result, tests=(test, replace(test, swapped=True, **blind)))


def traces(chart):
    return {trace.name: trace for trace in chart.figure.data}


class TestClaims:
    def test_caught_and_passed_differ_in_colour_and_shape_and_side(self, caught, passed):
        drawn = traces(audits_chart([caught, passed], ["one", "two"]))
        alarm, quiet = drawn[CAUGHT_NAME], drawn[PASSED_NAME]
        assert (alarm.marker.color, quiet.marker.color) == (CAUGHT, PRIVATE)
        assert alarm.marker.symbol != quiet.marker.symbol
        assert alarm.y[0] == pytest.approx(caught.epsilon_lower)
        assert alarm.y[0] > alarm.x[0] == caught.epsilon_claimed
        assert quiet.y[0] < quiet.x[0] == passed.epsilon_claimed
        assert (alarm.text[0], quiet.text[0]) == ("1", "2")

    def test_the_line_is_the_claim(self, caught):
        line = traces(audits_chart([caught], ["one"]))["the claim"]
        assert list(line.x) == list(line.y)
        assert line.x[0] <= LEAST
        assert line.x[1] >= 10

    @pytest.mark.parametrize(("hits", "alarms"), [(600, 100), (1000, 3), (30, 25)])
    def test_the_bar_goes_from_the_lower_bound_to_the_upper_end(self, caught, hits, alarms):
        result = with_counts(caught, hits, alarms)
        (_, high), (low, _) = result.best.true_positive_interval, result.best.false_positive_interval
        end = math.log((high - result.delta) / low)
        assert upper_end(result) == pytest.approx(end)
        assert end > math.log(hits / alarms) > result.epsilon_lower
        chart = audits_chart([result], ["one"])
        points = traces(chart)[CAUGHT_NAME if result.caught else PASSED_NAME]
        assert points.y[0] + points.error_y.array[0] == pytest.approx(end)
        assert points.error_y.arrayminus[0] == 0
        assert chart.table["upper end (these tests)"].iloc[0] == pytest.approx(end)

    def test_the_upper_end_is_that_of_the_test_that_may_show_more(self, caught):
        result = with_counts(caught, 600, 100)
        wide = replace(result.tests[1], true_positive_interval=(0.0, 0.9), false_positive_interval=(0.001, 0.9))
        assert upper_end(replace(result, tests=(result.tests[0], wide))) == pytest.approx(math.log(900), rel=1e-4)
        hopeless = replace(wide, true_positive_interval=(0.0, 1e-9))
        assert upper_end(replace(result, tests=(hopeless, hopeless))) == 0.0

    def test_no_false_alarm_has_no_upper_end_and_says_so(self, caught):
        chart = audits_chart([with_counts(caught, 900, 0)], ["one"])
        assert chart.table["upper end (these tests)"].iloc[0] == math.inf
        arrow = traces(chart)["no upper end"]
        assert arrow.marker.symbol == "arrow-up"
        assert math.log10(arrow.y[0]) < chart.figure.layout.yaxis.range[1]
        assert "no upper end" in chart.sentence
        with_end = audits_chart([with_counts(caught, 900, 5)], ["one"])
        assert "no upper end" not in traces(with_end)
        assert "no upper end" not in with_end.sentence

    def test_a_bound_of_zero_is_drawn_at_the_bottom_and_called_zero(self, caught):
        chart = audits_chart([with_counts(caught, 10, 500)], ["one"])
        assert traces(chart)[PASSED_NAME].y[0] == LEAST
        axis = chart.figure.layout.yaxis
        assert dict(zip(axis.tickvals, axis.ticktext, strict=True))[LEAST] == "0"
        assert axis.range[0] < math.log10(LEAST)
        assert chart.table["lower bound"].iloc[0] == 0

    def test_equal_claims_stand_side_by_side_around_the_claim(self, caught):
        places = list(traces(audits_chart([caught] * 3, list("abc")))[CAUGHT_NAME].x)
        assert len(set(places)) == 3
        assert places[1] == pytest.approx(1.0)
        assert math.log(places[0]) == pytest.approx(-math.log(places[2]))
        many = traces(audits_chart([caught] * 30, ["a"] * 30))[CAUGHT_NAME].x
        assert max(many) / min(many) < 2.1  # a crowd does not wander to the next claim

    def test_every_mark_is_inside_the_picture(self, caught):
        results = [replace(caught, epsilon_claimed=claim) for claim in (0.001, 0.05, 50.0)]
        chart = audits_chart(results, list("abc"))
        for trace in (traces(chart)[CAUGHT_NAME], traces(chart)[PASSED_NAME]):
            for value, (low, high) in (
                *((x, chart.figure.layout.xaxis.range) for x in trace.x),
                *((y, chart.figure.layout.yaxis.range) for y in trace.y),
            ):
                assert low < math.log10(value) < high

    def test_the_table_says_which_audits_were_stopped(self, caught):
        table = audits_chart([caught, replace(caught, trials_done=40)], ["one", "two"]).table
        assert list(table["runs"]) == ["100", "40 of 100"]
        assert list(table["method"]) == ["one", "two"]
        assert list(table["outcome"]) == ["caught", "caught"]
        assert list(table["status"]) == ["none", "none"]

    def test_the_sentence_counts_and_does_not_promise(self, caught, passed):
        sentence = audits_chart([caught, passed], ["one", "two"]).sentence
        assert sentence.startswith("1 of 2 audits caught.")
        assert "of these tests, not of the mechanism" in sentence
        assert audits_chart([caught], ["one"]).sentence.startswith("1 of 1 audit caught.")


class TestWorlds:
    def result_of(self, caught, first, second):
        tests = both_tests(first[:, None], second[:, None], ["length"], delta=1e-6, error=0.05)
        return replace(caught, tests=tests)

    def test_the_heaps_hold_every_counted_run(self, caught, rng):
        result = self.result_of(caught, rng.standard_t(1, 400), 3 + rng.standard_t(1, 400))  # rare huge values too
        heaps = [trace for trace in worlds_chart(result).figure.data if trace.type == "bar"]
        assert [trace.name for trace in heaps] == ["record at its old place", "record at its new place"]
        assert [int(np.sum(trace.y)) for trace in heaps] == [200, 200]
        assert all(len(trace.x) == BINS for trace in heaps)

    def test_the_old_place_is_the_first_world_also_when_the_test_is_mirrored(self, caught):
        low, high = np.zeros(400), np.zeros(400)
        low[::5] = low[1::5] = 1  # only the first world has the event, so the mirrored test is better
        result = self.result_of(caught, low, high)
        assert result.best.swapped
        chart = worlds_chart(result)
        old, new = (trace for trace in chart.figure.data if trace.type == "bar")
        assert sum(old.y) == sum(new.y) == 200
        assert [int(y) for y in new.y if y] == [200]
        assert sorted(int(y) for y in old.y if y) == [80, 120]
        assert list(chart.table["event seen"]) == [80, 0]
        assert "in 80 of 200 runs with the record at its old place and in 0 of 200" in chart.sentence

    def test_the_threshold_is_a_line_inside_the_picture(self, caught, rng):
        result = self.result_of(caught, rng.normal(0, 1, 400), rng.normal(20, 1, 400))
        chart = worlds_chart(result)
        line = chart.figure.layout.shapes[0]
        assert line.x0 == line.x1 == result.best.threshold
        drawn = np.concatenate([trace.x for trace in chart.figure.data])
        widest = max(chart.figure.data[0].width)
        assert drawn.min() - widest <= line.x0 <= drawn.max() + widest
        assert list(chart.table["runs counted"]) == [200, 200]

    def test_runs_that_are_all_alike_draw_one_bar_and_no_line(self, caught):
        chart = worlds_chart(self.result_of(caught, np.zeros(80), np.zeros(80)))
        assert not chart.figure.layout.shapes
        assert [list(trace.y) for trace in chart.figure.data] == [[40], [40]]

    def test_a_real_audit_can_be_drawn(self, caught):
        chart = worlds_chart(caught)
        assert caught.statistic in chart.sentence
        assert sum(chart.figure.data[0].y) == sum(chart.figure.data[1].y) == 50
