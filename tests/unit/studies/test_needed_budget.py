"""From utility to budget: the bracket holds for known curves, and it says how sure it is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpgrams_core import DataError, SpecError
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE
from dpgrams_core.figures.tradeoff import needed_chart
from dpgrams_core.studies import needed_budget
from dpgrams_core.studies.needed_budget import (
    Counts,
    NeededBudget,
    Question,
    judged,
    least_runs,
    needed_epsilon,
    needed_n,
    next_value,
    search,
    stream_needed,
)
from dpgrams_core.sweeps.cell import failed_result, run_cell
from dpgrams_core.sweeps.executors import DIED
from dpgrams_core.sweeps.store import ResultsFile

ASKED = Question(
    sought="epsilon",
    method="dp_grams",
    dataset="four_corners",
    fixed=1000.0,
    measure="mse",
    target=0.05,
    probability=0.9,
    low=0.05,
    high=20.0,
    runs=60,
    confidence=0.95,
    most_values=10,
    precision=1.2,
)


def rising(value, middle=0.8, steepness=4.0):
    """A success curve that is one half at the middle."""
    return 1 / (1 + (middle / value) ** steepness)


CROSSING = 0.8 * 9 ** (1 / 4)  # where the curve above is 0.9


def simulated(question, curve, rng):
    """Binomial runs of a known curve, in two pieces."""

    def tries(value):
        outcomes = rng.random(question.runs) < curve(value)
        for runs in (question.runs // 2, question.runs):
            yield Counts(int(outcomes[:runs].sum()), runs)

    return tries


def fixed_counts(question, curve):
    return lambda value: iter([Counts(round(question.runs * curve(value)), question.runs)])


def last_of(stream):
    *_, last = stream
    return last


def test_the_bracket_holds_the_crossing_of_a_known_curve(rng, flake_rate):
    asked = replace(ASKED, confidence=1 - flake_rate, runs=4000, most_values=30, precision=1.05)
    found = last_of(search(asked, simulated(asked, rising, rng)))
    assert found.status == "bracketed"
    assert found.misses_at < CROSSING < found.reaches_at < 1.6 * found.misses_at
    assert found.misses_at <= found.estimate <= found.reaches_at
    assert found.estimate == pytest.approx(CROSSING, rel=0.15)


def test_all_statements_of_a_search_hold_together_as_often_as_promised(rng, flake_rate):
    # The worst case: known ends, and between them a flat curve on the edge, where each value tried is one more
    # chance to say something wrong.  Bounds that were not shared among the values would be wrong almost always.
    asked = replace(ASKED, confidence=0.5, most_values=12, runs=200, precision=1.01)
    searches = 150

    def wrong(truth, verdict):
        def curve(value):
            return 0.0 if value == asked.low else 1.0 if value == asked.high else truth

        found = (last_of(search(asked, simulated(asked, curve, rng))).tried[1:-1] for _ in range(searches))
        return sum(any(item.verdict == verdict for item in inner) for inner in found)

    most = stats.binom.isf(flake_rate, searches, 0.5)
    assert 0 < wrong(0.9, "misses") <= most
    assert 0 < wrong(math.nextafter(0.9, 0), "reaches") <= most


def test_an_interval_is_that_of_the_exact_binomial_test():
    for successes in (0, 13, 54, 60):
        found = judged(ASKED, 1.0, Counts(successes, 60)).interval
        exact = stats.binomtest(successes, 60).proportion_ci(1 - 2 * 0.05 / 10, method="exact")
        assert found == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_verdicts_are_given_only_when_all_runs_are_in():
    assert judged(ASKED, 1.0, Counts(59, 59)).verdict == "running"
    assert [judged(ASKED, 1.0, Counts(k, 60)).verdict for k in (60, 59, 54, 44, 0)] == [
        "reaches",
        "open",
        "open",
        "misses",
        "misses",
    ]


@pytest.mark.parametrize(("probability", "confidence"), [(0.9, 0.95), (0.5, 0.99), (0.2, 0.9), (0.95, 0.95)])
def test_the_least_number_of_runs_is_the_least_that_can_show_both(probability, confidence):
    asked = replace(ASKED, probability=probability, confidence=confidence)

    def shows(runs):
        asked_so = replace(asked, runs=runs)
        best, worst = (judged(asked_so, 1.0, Counts(k, runs)).verdict for k in (runs, 0))
        return best == "reaches" and worst == "misses"

    least = least_runs(probability, confidence, asked.most_values)
    assert shows(least)
    assert not shows(least - 1)


def test_the_power_is_the_share_of_searches_that_recognise_a_good_value(rng, flake_rate):
    for asked, share in ((ASKED, 0.97), (replace(ASKED, runs=200), 0.95), (replace(ASKED, probability=0.5), 0.8)):
        tries = rng.binomial(asked.runs, share, size=2000)
        shown = sum(judged(asked, 1.0, Counts(int(count), asked.runs)).verdict == "reaches" for count in tries)
        assert stats.binomtest(shown, len(tries), asked.power(share)).pvalue > flake_rate
    assert replace(ASKED, runs=10).power(1.0) == 0.0  # too few to show anything
    assert (
        "With 60 runs, a true share of 97% is recognised in 16% of tries."
        in last_of(search(ASKED, fixed_counts(ASKED, rising))).sentence
    )


@pytest.mark.parametrize(("percent", "runs"), [(50, 60), (90, 60), (95, 104), (99, 528)])
def test_a_question_has_the_runs_that_it_needs(percent, runs, monkeypatch):
    asked = []
    monkeypatch.setattr(needed_budget, "search", lambda question, _: asked.append(question) or iter(()))
    how = {"n": 200, "low": 0.1, "high": 10.0, "probability": percent / 100}
    assert list(stream_needed("epsilon", "dp_grams", "four_corners", **how)) == []
    assert [question.runs for question in asked] == [runs]
    with pytest.raises(SpecError, match=r"probability = 0\.9999.*52,981 runs.*10,000 are the most"):
        stream_needed("epsilon", "dp_grams", "four_corners", **{**how, "probability": 0.9999})


def test_runs_whose_worker_died_are_no_evidence_and_are_made_when_the_search_goes_on(monkeypatch, tmp_path):
    def dying(piece):
        return failed_result(piece[1], DIED) if piece[1].epsilon > 10 else run_cell(piece[1])

    store = ResultsFile(tmp_path / "results.parquet")
    seen = []
    monkeypatch.setattr("dpgrams_core.sweeps.run._run_piece", dying)
    with pytest.raises(DataError, match="8 of 8 runs at ε = 50 did not come back: The worker died on every try"):
        seen += stream_needed("epsilon", "dp_grams", "four_corners", n=60, store=store, **EASY)
    for found in seen:
        assert [(item.verdict, item.runs) for item in found.tried] == [("running", 0)]
        assert found.status == "searching"
    monkeypatch.undo()
    whole = last_of(stream_needed("epsilon", "dp_grams", "four_corners", n=60, store=store, **EASY))
    assert whole.finished
    assert [item.runs for item in whole.tried] == [8] * len(whole.tried)


def test_an_unreachable_target_stops_after_one_value_and_says_so():
    found = last_of(search(ASKED, fixed_counts(ASKED, lambda _: 0.2)))
    assert (found.status, len(found.tried), found.finished) == ("not reachable", 1, True)
    assert "not reachable up to ε = 20" in found.sentence
    assert "12 of 60" in found.sentence


def test_a_target_that_the_low_end_reaches_is_there_already():
    found = last_of(search(ASKED, fixed_counts(ASKED, lambda _: 1.0)))
    assert (found.status, len(found.tried), found.reaches_at) == ("already", 2, 0.05)
    assert "no more than ε = 0.05" in found.sentence


def test_a_curve_that_stays_near_the_wish_is_left_open():
    found = last_of(search(ASKED, fixed_counts(ASKED, lambda _: 0.9)))
    assert (found.status, found.misses_at, found.reaches_at) == ("open", None, None)
    assert "nothing is shown" in found.sentence
    high_open = last_of(search(ASKED, fixed_counts(ASKED, lambda value: min(0.92, value / 3))))
    assert high_open.status == "open"
    assert high_open.misses_at is not None
    assert "no value is shown to reach it" in high_open.sentence


def test_the_bracket_closes_in_from_both_sides_and_keeps_to_its_number_of_values():
    found = last_of(search(ASKED, fixed_counts(ASKED, rising)))
    assert found.status == "bracketed"
    assert len(found.tried) <= ASKED.most_values
    open_values = [item.value for item in found.tried if item.verdict == "open"]
    assert min(open_values) / found.misses_at <= ASKED.precision
    assert found.reaches_at / max(open_values) <= ASKED.precision
    assert next_value(ASKED, found.tried) is None


def test_whole_numbers_are_tried_for_n():
    asked = replace(ASKED, sought="n", fixed=1.0, low=50.0, high=80.0, precision=1.0001, most_values=50, runs=200)
    found = last_of(search(asked, fixed_counts(asked, lambda n: float(n >= 63))))
    assert (found.misses_at, found.reaches_at) == (62.0, 63.0)
    assert "n = 62" in found.sentence


def test_a_curve_that_turns_gives_the_cautious_bracket_and_a_warning():
    verdicts = {0.05: 0, 0.4: 60, 2.0: 10, 20.0: 60}
    tried = tuple(judged(ASKED, value, Counts(count, 60)) for value, count in verdicts.items())
    found = NeededBudget(question=ASKED, tried=tried, finished=True)
    assert found.turns
    assert (found.misses_at, found.reaches_at) == (2.0, 20.0)
    assert "not always better" in found.sentence
    assert not replace(found, tried=tried[1:2]).turns


def test_a_search_shows_itself_while_it_runs(rng):
    seen = list(search(ASKED, simulated(ASKED, rising, rng)))
    assert [item.finished for item in seen] == [False] * (len(seen) - 1) + [True]
    assert seen[0].status == "searching"
    assert [item.verdict for item in seen[0].tried] == ["running"]
    assert "so far" in seen[0].sentence
    assert seen[0].estimate is None


def test_a_score_that_is_not_a_number_reaches_nothing():
    more = replace(ASKED, measure="found", target=0.4)
    assert [ASKED.reached(x) for x in (0.05, 0.051, math.nan, math.inf)] == [True, False, False, False]
    assert [more.reached(x) for x in (0.4, 0.39, math.nan)] == [True, False, False]


EASY = {"target": 500.0, "probability": 0.5, "low": 0.5, "high": 50.0, "runs": 8, "most_values": 3}


def test_real_runs_are_counted_and_repeat_with_the_seed(seed):
    found = needed_epsilon("dp_grams", "four_corners", n=100, seed=seed, **{**EASY, "target": 3.0})
    assert found == needed_epsilon("dp_grams", "four_corners", n=100, seed=seed, **{**EASY, "target": 3.0})
    assert {item.runs for item in found.tried} == {8}
    assert "nominal, not proven" in found.sentence
    tight = needed_epsilon("dp_grams", "four_corners", n=100, seed=seed, calibration="tight", **EASY)
    assert tight.status == "already"
    assert "not proven" not in tight.sentence


def test_every_value_has_draws_of_its_own(monkeypatch):
    # The next value is chosen by what came before, so its runs must not share the draws of what came before.
    from dpgrams_core.sweeps.cell import data_seed

    cells = []
    stream = needed_budget.stream_partial
    monkeypatch.setattr(
        needed_budget, "stream_partial", lambda mine, *how, **more: cells.extend(mine) or stream(mine, *how, **more)
    )
    needed_epsilon("dp_grams", "four_corners", n=100, **EASY)
    assert len({data_seed(cell, number) for cell in cells for number in cell.numbers}) == 8 * len(cells) > 8


def test_runs_that_cannot_be_made_count_as_misses_with_their_reason():
    found = needed_n("dp_grams", "four_corners", epsilon=1.0, batch_size=120, **{**EASY, "low": 60, "high": 150})
    lowest = found.tried[0]
    assert (lowest.value, lowest.successes, lowest.failures, lowest.verdict) == (60.0, 0, 8, "misses")
    assert "could not be made" in found.sentence
    assert "batch_size" in found.sentence


def test_a_method_without_privacy_has_a_needed_n_only(refused):
    found = needed_n("mean_shift", "four_corners", **{**EASY, "low": 60, "high": 80})
    assert found.status == "already"
    assert "ε" not in found.sentence
    assert needed_chart(found).figure.data[0].marker.color == NON_PRIVATE
    refused(lambda: needed_epsilon("mean_shift", "four_corners", n=100), "method", "mean_shift", "ask for n")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"runs": 20}, "runs"),
        ({"sought": "delta"}, "sought"),
        ({"n": None}, "n"),
        ({"epsilon": 1.0}, "epsilon"),
        ({"low": 2.0, "high": 1.0}, "low"),
        ({"measure": "ari"}, "measure"),
        ({"dataset": "sinusoid"}, "dataset"),
        ({"probability": 1.0}, "probability"),
        ({"precision": 1.0}, "precision"),
        ({"target": math.nan}, "target"),
        ({"clip": 3.0}, "clip"),
        ({"low": "a"}, "low"),
        ({"executor": "dask"}, "executor"),
    ],
)
def test_wrong_questions_are_refused_at_the_call(nothing_drawn, change, field):
    good = {"sought": "epsilon", "method": "dp_grams", "dataset": "four_corners", "n": 200, "low": 0.1, "high": 10.0}
    stream_needed(**good)
    with pytest.raises(SpecError) as caught:
        stream_needed(**{**good, **change})
    assert caught.value.field == field


def test_the_chart_marks_every_value_with_its_interval_and_the_bracket():
    found = last_of(search(ASKED, fixed_counts(ASKED, rising)))
    chart = needed_chart(found)
    marks = {trace.name: trace for trace in chart.figure.data}
    for name, verdict in (("shown to reach", "reaches"), ("shown to miss", "misses"), ("not shown either way", "open")):
        mine = [item for item in found.tried if item.verdict == verdict]
        assert list(marks[name].x) == [item.value for item in mine]
        high = np.add(marks[name].y, marks[name].error_y.array)
        assert high == pytest.approx([item.interval[1] for item in mine])
        assert marks[name].marker.color == PRIVATE
    assert list(marks["wished: 90%"].y) == [0.9, 0.9]
    (band,) = chart.figure.layout.shapes
    assert (band.x0, band.x1) == (found.misses_at, found.reaches_at)
    assert list(chart.table["ε"]) == [item.value for item in found.tried]
    assert chart.sentence == found.sentence
    unreachable = needed_chart(last_of(search(ASKED, fixed_counts(ASKED, lambda _: 0.1))))
    assert len(unreachable.figure.layout.shapes) == 0
