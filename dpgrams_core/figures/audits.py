"""Audits: the claim against what a game has shown, and the two heaps of numbers that were told apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.curve import whiskers
from dpgrams_core.figures.style import CAUGHT, PRIVATE, QUIET, WHITE, Chart, plain_layout
from dpgrams_core.figures.traces import line, points
from dpgrams_core.model.format import short
from dpgrams_core.model.results import AuditResult

LEAST = 0.02  # the bottom of the picture, where "no information at all" (0) is drawn
TICKS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
BINS = 40
UPPER = "upper end (these tests)"


def upper_end(result: AuditResult) -> float:
    """The other end of the interval: what the two tests of an audit could show at most, at the same confidence.

    The larger of log((TPR_high - delta) / FPR_low); infinite where no false alarm was seen.  It bounds these
    *tests*, never the mechanism: another test or pair may show more.
    """
    ends = [0.0]
    for test in result.tests:
        gain, least = test.true_positive_interval[1] - result.delta, test.false_positive_interval[0]
        if gain > 0:
            ends.append(math.log(gain / least) if least > 0 else math.inf)
    return max(ends)


def audits_chart(results: Sequence[AuditResult], titles: Sequence[str]) -> Chart:
    """Claimed epsilon against the lower bound with its interval; above the line a claim is refuted.

    ``titles`` name the methods, one for each result; the numbers beside the marks are those of the table, which has a
    row for each audit in the order they were made.
    """
    table = pd.DataFrame(
        [
            {
                "no.": number,
                "outcome": "caught" if result.caught else "not caught",
                "method": title,
                "pair": result.pair,
                "claimed ε": result.epsilon_claimed,
                "lower bound": result.epsilon_lower,
                UPPER: upper_end(result),
                "lower bound, if normal": math.nan if result.gaussian is None else result.gaussian.epsilon_lower,
                "status": result.claimed_status,
                "runs": f"{result.trials_done:,}" + ("" if result.complete else f" of {result.trials:,}"),
                "n": result.n,
                "door": result.door,
                "seed": "none" if result.seed is None else str(result.seed),
            }
            for number, (result, title) in enumerate(zip(results, titles, strict=True), 1)
        ]
    )
    claims = table["claimed ε"]
    finite = [value for value in [*table[UPPER], *table["lower bound"], *claims] if math.isfinite(value)]
    top = max(12.0, 1.6 * max(finite, default=1.0))
    left, right = min([LEAST, *(claims / 1.5)]), max([12.0, *(claims * 1.5)])
    ends = [left, max(right, top)]
    figure = go.Figure(line((ends, ends), "the claim", QUIET, width=2, dash="dash"))
    corner = {"x": math.log10(0.025), "y": math.log10(6.0), "xanchor": "left", "font": {"size": 12, "color": CAUGHT}}
    figure.add_annotation(text="above the line: caught", showarrow=False, **corner)
    places = np.array(_side_by_side(list(claims)))
    for caught, name, mark in (
        (True, "caught: the claim is false", {"symbol": "x", "size": 12, "color": CAUGHT}),
        (False, "not caught: proves nothing", {"symbol": "circle", "size": 11, "color": PRIVATE}),
    ):
        mine = np.array([result.caught == caught for result in results], dtype=bool)
        if mine.any():
            _points(figure, table[mine], places[mine].tolist(), top, name, mark)
    axes = (
        {
            "type": "log",
            "title": title,
            "range": [math.log10(value) for value in span],
            "zeroline": False,
            "tickvals": [*nothing, *TICKS],
            "ticktext": ["0" for _ in nothing] + [short(value) for value in TICKS],
        }
        for title, span, nothing in (
            ("claimed ε (stronger privacy on the left)", (left, right), ()),
            ("ε that the audit shows", (LEAST * 0.85, top), (LEAST,)),
        )
    )
    return Chart(plain_layout(figure, 430, *axes), _audits_sentence(table), table)


def _side_by_side(claims: list[float]) -> list[float]:
    """Where to draw each claim, so that equal ones do not cover each other."""
    total, seen = Counter(claims), Counter[float]()
    places = []
    for claim in claims:
        others = total[claim] - 1
        gap = min(0.22, 0.7 / max(others, 1))  # in log ε: a crowd stays nearer to its own claim than to the next
        places.append(claim * math.exp(gap * (seen[claim] - others / 2)))
        seen[claim] += 1
    return places


def _points(
    figure: go.Figure, rows: pd.DataFrame, places: list[float], top: float, name: str, mark: dict[str, object]
) -> None:
    """Marks at the lower bounds, bars up to the upper ends, an arrow where a bar has no end."""
    drawn = [max(float(value), LEAST) for value in rows["lower bound"]]
    ends = [float(value) for value in rows[UPPER]]
    up = [max(0.0, min(end, top) - low) for end, low in zip(ends, drawn, strict=True)]
    bars = {"symmetric": False, "arrayminus": [0.0] * len(drawn), "thickness": 2, "width": 5, "color": mark["color"]}
    figure.add_trace(
        points(
            (places, drawn),
            name,
            {**mark, "line": {"width": 1, "color": WHITE}},
            "%{hovertext}: claims %{customdata[1]}, shown at least %{customdata[0]}",
            mode="markers+text",
            text=[str(number) for number in rows["no."]],
            textposition="middle right",
            error_y=whiskers(up, **bars),
            customdata=[[short(row) for row in pair] for pair in rows[["lower bound", "claimed ε"]].to_numpy()],
            hovertext=list(rows["method"]),
        )
    )
    endless = [place for place, end in zip(places, ends, strict=True) if end > top]
    if endless:
        arrow = {"symbol": "arrow-up", "size": 12, "color": mark["color"]}
        hover = "a test saw no false alarm: the interval has no upper end"
        height = [top * 0.93] * len(endless)
        figure.add_trace(points((endless, height), "no upper end", arrow, hover, showlegend=False))


def _audits_sentence(table: pd.DataFrame) -> str:
    caught = int((table["outcome"] == "caught").sum())
    audits = "1 audit" if len(table) == 1 else f"{len(table)} audits"
    text = (
        f"{caught} of {audits} caught. Each mark is the ε that an audit has shown at least; above the dashed line the "
        "claim is false. The bar reaches up to what the same tests may still show (each end with the stated confidence)"
    )
    if (table[UPPER] == math.inf).any():
        text += "; an arrow means that it has no upper end, since no false alarm was seen"
    return text + ". That upper end speaks of these tests, not of the mechanism."


def worlds_chart(result: AuditResult) -> Chart:
    """The statistic of the better test in the two worlds, and the threshold that told them apart."""
    best = result.best
    worlds = [("record at its old place", QUIET), ("record at its new place", PRIVATE)]
    values = [np.array(best.null_values), np.array(best.other_values)]
    counts = [best.false_positives, best.true_positives]
    intervals = [best.false_positive_interval, best.true_positive_interval]
    if best.swapped:  # then the event stands for the old place
        values, counts, intervals = values[::-1], counts[::-1], intervals[::-1]
    edges = _edges(np.concatenate(values), best.threshold)
    figure = go.Figure()
    for (name, colour), numbers in zip(worlds, values, strict=True):
        heights, _ = np.histogram(np.clip(numbers, edges[0], edges[-1]), edges)
        figure.add_trace(
            go.Bar(
                x=(edges[1:] + edges[:-1]) / 2,
                y=heights,
                width=np.diff(edges),
                name=name,
                marker={"color": colour, "line": {"width": 0}},
                opacity=0.75,
                hovertemplate=name + ": %{y} runs near %{x:,.3~r}<extra></extra>",
            )
        )
    if math.isfinite(best.threshold):  # infinite when every run gave the same number
        figure.add_vline(x=best.threshold, line={"color": CAUGHT, "width": 2, "dash": "dash"})
    x_axis = {"title": best.statistic, "zeroline": False}
    plain_layout(figure, 330, x_axis, {"title": "runs"}, barmode="overlay", bargap=0)
    table = pd.DataFrame(
        [
            {"world": name, "runs counted": best.trials, "event seen": count, "rate, low": low, "rate, high": high}
            for (name, _), count, (low, high) in zip(worlds, counts, intervals, strict=True)
        ]
    )
    side = "above" if best.above else "at most"
    sentence = (
        f"“{best.statistic}” was {side} {short(best.threshold)} (the dashed line) in {counts[0]:,} of {best.trials:,} "
        f"runs with the record at its old place and in {counts[1]:,} of {best.trials:,} with it at its new place. "
        "The two heaps are what an attacker sees: the further they separate, the larger ε must really be."
    )
    return Chart(figure, sentence, table)


def _edges(values: np.ndarray, threshold: float) -> np.ndarray:
    """Bins over all but the rarest values (those are counted in the outermost bins), the threshold inside."""
    distinct = np.unique(values)
    gap = float(np.diff(distinct).min()) if len(distinct) > 1 else 1.0
    if len(distinct) <= BINS // 2 and np.ptp(distinct) <= 2 * BINS * gap:  # counts, not measurements: a bar for each
        return float(distinct[0]) - gap / 2 + gap * np.arange(round(float(np.ptp(distinct)) / gap) + 2)
    low, high = (float(value) for value in np.quantile(values, [0.005, 0.995]))
    if math.isfinite(threshold):
        low, high = min(low, threshold), max(high, threshold)
    return np.linspace(low, high, BINS + 1)
