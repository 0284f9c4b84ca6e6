"""The pictures of the Tradeoff page: curves in panels, what privacy costs, theory's slopes, budgets, error sources.

A cell has a method, an n and an epsilon.  One of these is the axis, one tells the panels apart and the third the
lines of a panel.  Private lines are orange and methods without privacy blue and dashed; an n or an epsilon is a shade
and a mark, a method a dash and a mark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.datasets.registry import dataset_info, same_records
from dpgrams_core.figures import curve as curves
from dpgrams_core.figures import style
from dpgrams_core.figures.curve import Known, cell_title, in_a_text, is_private, measure_here
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, QUIET, Chart, plain_layout
from dpgrams_core.figures.traces import line, points
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.format import give_or_take, percent, short, tiny
from dpgrams_core.model.run import Run
from dpgrams_core.numerics.statistics import standard_error
from dpgrams_core.studies.ablation import ErrorSources
from dpgrams_core.studies.needed_budget import NeededBudget
from dpgrams_core.studies.rates import UP_TO_LOGARITHMS, UPPER_BOUND_OF, measured_slope, rate_line, rates
from dpgrams_core.sweeps.cell import CellResult

AXES = ("epsilon", "n", "method")
BAND = 0.16  # opacity of a band of one standard error


@dataclass(frozen=True)
class LabLayout:
    """Which of epsilon, n and method is on the axis, and which tells the panels apart."""

    x: str
    panel: str

    @property
    def line(self) -> str:
        """What tells the lines of a panel apart."""
        return next(name for name in AXES if name not in (self.x, self.panel))


def panels_of(cells: Sequence[Run], layout: LabLayout) -> list[Any]:
    """The values that have a panel, in order; a method without privacy is a line in every panel, never one of them."""
    private = [cell for cell in cells if is_private(cell)] or list(cells)
    found = dict.fromkeys(_place(cell, layout.panel) for cell in private)
    return list(found) if layout.panel == "method" else sorted(found)


def panel_title(value: Any, layout: LabLayout) -> str:
    """What a panel is about."""
    return _words(layout.panel, value)


def lab_panel(
    known: Known,
    cells: Sequence[Run],
    measure: str,
    layout: LabLayout,
    panel: Any,
    *,
    theory: bool = False,
    epsilon: float | None = None,
) -> go.Figure:
    """One panel (of ``panels_of``) of curves with bands of one standard error; ``theory`` lays slopes over the MSE.

    Where ε is the axis, ``epsilon`` is marked on it.

    ``known`` is what there is so far; ``cells`` are all that will come, so that the axes stand still meanwhile.
    """
    scored = measure_here(cells, measure)
    ticks = sorted({_place(cell, layout.x) for cell in cells if math.isfinite(_place(cell, layout.x))})
    if not ticks:  # no ε to mark
        x_axis = {**curves.log_axis(curves.EPSILON_TITLE, (0.12, 10 / 1.2), 1.2), "tickvals": [], "ticktext": []}
    elif layout.x == "epsilon":
        x_axis = curves.log_axis(curves.EPSILON_TITLE, ticks, 1.2)
    else:
        x_axis = curves.log_axis("records, n", ticks, 1.2, "{:,}".format)
    ends = [10**end for end in x_axis["range"]]
    traces: list[go.Scatter] = []
    for name, mine, look in _lines(cells, layout, panel):
        found = {cell: known[cell] for cell in mine if cell in known and known[cell].scores.get(measure)}
        if found:
            traces += _curve(name, found, measure, layout.x, ends, look)
    if theory:
        traces += rate_traces(of_panel(known, layout, panel), variable=layout.x, d=columns_of(cells))
    y_axis = {"title": scored.axis, **_scale(known, measure, scored.log_axis)}
    figure = plain_layout(go.Figure(traces), 380, x_axis, y_axis)
    if epsilon and layout.x == "epsilon":
        curves.your_epsilon(figure, epsilon, ends, math.sqrt(ends[0] * ends[1]), top=True)
    return figure.update_layout(legend={"font": {"size": 12}, "entrywidth": 0})


def of_panel(known: Known, layout: LabLayout, panel: Any) -> list[CellResult]:
    """The results of the private cells of a panel."""
    mine = [cell for cell in known if is_private(cell) and _place(cell, layout.panel) == panel]
    return [known[cell] for cell in mine if known[cell].seconds]


def columns_of(cells: Sequence[Run]) -> int:
    """How many columns the data have."""
    return len(dataset_info(cells[0].dataset).box)


def _lines(cells: Sequence[Run], layout: LabLayout, panel: Any) -> Iterator[tuple[str, Sequence[Run], dict[str, Any]]]:
    """Name, cells and look of each line; in the legend one line speaks for its sisters."""
    private = [cell for cell in cells if is_private(cell)]
    plain = [cell for cell in cells if not is_private(cell)]
    names = list(dict.fromkeys(_place(cell, layout.line) for cell in private or plain))
    if layout.line != "method":
        names.sort()
    for place, name in enumerate(names):
        mine = [c for c in private if _place(c, layout.line) == name and _place(c, layout.panel) == panel]
        mark = curves.MARKS[place % 5]
        if mine and layout.line == "method":
            mark += "-open" if place % 2 else ""
            yield name, mine, {"colour": PRIVATE, "dash": curves.DASHES[(2 * place) % 5], "symbol": mark}
        elif mine:
            shade = style.PRIVATE_SHADES[place % 5]
            yield _words(layout.line, name), mine, {"colour": shade, "symbol": mark}
    for number, baseline in enumerate(dict.fromkeys(map(cell_title, plain))):
        # A method without privacy: one line, or one for each n where n tells the lines apart.
        mine = [c for c in plain if cell_title(c) == baseline and (layout.panel != "n" or c.n == panel)]
        dash, text = curves.PLAIN_DASHES[number % 3], in_a_text(baseline)
        if layout.line == "n":
            text += ", the same marks" if len(mine) > 1 else ""
            for cell in mine:
                place = names.index(cell.n) % 5
                look = {"colour": style.NON_PRIVATE_SHADES[place], "dash": dash, "symbol": curves.MARKS[place]}
                yield text, [cell], look | {"showlegend": cell is mine[0]}
        elif mine:
            yield text, mine, {"colour": NON_PRIVATE, "dash": dash, "symbol": curves.MARKS[number % 5]}


def _curve(
    name: str, found: Known, measure: str, axis: str, ends: Sequence[float], look: dict[str, Any]
) -> list[go.Scatter]:
    """The line with its band; on a log axis the lower edge of the band stays above zero."""
    cells = sorted(found, key=lambda cell: _place(cell, axis))
    scored = measure_here(cells, measure)
    x = [_place(cell, axis) for cell in cells]
    places = [mean_and_error(found[cell], measure) for cell in cells]
    hover = []
    for cell, (_, error) in zip(cells, places, strict=True):
        where = _words("n", cell.n) + (f", {_words('epsilon', cell.epsilon)}" if is_private(cell) else "")
        hover.append([where, f"{len(found[cell].seconds)} runs, standard error {short(error)}"])
    if not math.isfinite(x[0]):  # without privacy: the same at every ε
        x, places, hover = list(ends), places * 2, hover * 2
    both = [(mean, error if math.isfinite(error) else 0.0) for mean, error in places]
    low = [max(mean - error, mean / 10) if scored.log_axis else mean - error for mean, error in both]
    return curves.curve(
        name,
        x,
        [mean for mean, _ in both],
        hover=name + f", %{{customdata[0]}}: %{{y:{scored.format}}} (%{{customdata[1]}})",
        size=8,
        width=2,
        rim={"width": 2, "color": look["colour"]},
        errors=[error for _, error in both] if len(x) == 1 else None,
        edges=(low, [mean + error for mean, error in both]),
        opacity=BAND,
        **{"legendgroup": name, "showlegend": True, "cliponaxis": False, "customdata": hover, **look},
    )


def _scale(known: Known, measure: str, log: bool) -> dict[str, Any]:
    """One scale for all panels, at whole decades or halves of them, so that it seldom moves while points come."""
    means = [mean_and_error(found, measure)[0] for found in known.values()]
    values = [mean for mean in means if math.isfinite(mean)]
    if not log:
        return {"range": [min([0.0, *values]), max([1.0, *values]) * 1.05]}
    positive = [value for value in values if value > 0]
    if not positive:
        return style.LOG
    low, high = math.floor(2 * math.log10(min(positive)) - 0.2) / 2, math.ceil(2 * math.log10(max(positive)) + 0.2) / 2
    return {**style.LOG, "range": [low, high], "dtick": "D2" if high - low < 2 else 1}


def _place(cell: Run, axis: str) -> Any:
    return cell_title(cell) if axis == "method" else getattr(cell, axis)


def _words(axis: str, value: Any) -> str:
    return f"n = {value:,}" if axis == "n" else f"ε = {short(value)}" if axis == "epsilon" else str(value)


def lab_table(known: Known) -> pd.DataFrame:
    """One row for each cell that has runs: scores with standard errors, runs, failures and status.

    It is drawn again with every point that comes, so it does without the quantiles of ``CellResult.row``.
    """
    rows = []
    for cell, found in known.items():
        if found.ended:
            row: dict[str, Any] = {"method": cell_title(cell), "n": cell.n, "epsilon": cell.epsilon}
            for measure in found.scores:
                row[measure], row[f"{measure}_se"] = mean_and_error(found, measure)
            more = {"runs": len(found.seconds), "failures": len(found.failures), "status": found.words}
            rows.append(row | more | {"error": found.failures[0] if found.failures else ""})
    return pd.DataFrame(rows)


def mean_and_error(found: CellResult, measure: str) -> tuple[float, float]:
    """Mean and standard error of a score; NaN where there is none."""
    values = found.scores.get(measure, ())
    return (sum(values) / len(values), standard_error(values)) if values else (math.nan, math.nan)


# What privacy costs, in numbers and sentences.


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A private method at one n and epsilon beside the best method without privacy.

    ``ratio`` is that of the means, NaN where there is no baseline or one of them is zero or infinite.
    """

    title: str
    status: str
    value: float
    value_se: float
    plain_title: str
    plain: float
    ratio: float
    ratio_se: float
    runs: int


def middle(values: Sequence[float], near: float | None = None) -> float:
    """The value of a grid that a sentence speaks of: the one nearest to ``near``, or the middle one."""
    ordered = sorted(set(values))
    if near is None:
        return ordered[len(ordered) // 2]
    return min(ordered, key=lambda value: abs(math.log(value / near)))


def costs(known: Known, cells: Sequence[Run], measure: str, n: int, epsilon: float) -> list[Cost]:
    """Every private method at this n and epsilon, in the order of the cells.

    The runs of a method and of the baseline with the same seed and number saw the same data, so that the standard
    error of their ratio r is that of the mean of (private - r plain) / mean(plain).
    """
    here = [cell for cell in cells if cell.n == n and cell in known and known[cell].scores.get(measure)]
    best = max if measure_here(cells, measure).more_is_better else min

    def cost(cell: Run) -> Cost:
        found, values = known[cell], known[cell].scores[measure]
        draws = (cell.seed, cell.data_seed)
        rivals = [other for other in here if not is_private(other) and (other.seed, other.data_seed) == draws]
        told: dict[str, Any] = {"plain_title": "", "plain": math.nan, "ratio": math.nan, "ratio_se": math.nan}
        if rivals:  # the best method without privacy on the same draws
            rival = known[best(rivals, key=lambda other: fmean(known[other].scores[measure]))]
            told |= {"plain_title": cell_title(rival.cell), "plain": fmean(rival.scores[measure])}
            told |= _ratio(found, rival, measure)
        return Cost(
            title=cell_title(cell),
            status=found.words,
            value=fmean(values),
            value_se=standard_error(values),
            runs=len(values),
            **told,
        )

    return [cost(cell) for cell in here if cell.epsilon == epsilon]


def _ratio(found: CellResult, baseline: CellResult, measure: str) -> dict[str, float]:
    """The ratio of the means with its standard error, where there is one."""
    values, plain = found.scores[measure], baseline.scores[measure]
    if not (math.isfinite(fmean(values)) and fmean(plain) > 0):
        return {}
    both = sorted(set(found.numbers) & set(baseline.numbers))
    mine = [values[found.numbers.index(number)] for number in both]
    theirs = [plain[baseline.numbers.index(number)] for number in both]
    if len(plain) == 1 and same_data(baseline.cell):  # one run speaks for all
        mine, theirs = list(values), [plain[0]] * len(values)
    if not mine or fmean(theirs) <= 0:
        return {}
    ratio, scale = fmean(mine) / fmean(theirs), fmean(theirs)
    return {
        "ratio": ratio,
        "ratio_se": standard_error([(a - ratio * b) / scale for a, b in zip(mine, theirs, strict=True)]),
    }


def plus_minus(value: float, luck: float) -> str:
    """A number with its standard error, where it has one: "1.83 ± 0.21"."""
    if not math.isfinite(luck) or not math.isfinite(value):
        return short(value)
    return f"{short(value)} {give_or_take(luck)}"


def lab_sentence(known: Known, cells: Sequence[Run], measure: str) -> str:
    """What the curves show: each private method at both ends of epsilon for the largest n, and what is missing."""
    means = {cell: fmean(values) for cell, found in known.items() if (values := found.scores.get(measure))}
    private = [cell for cell in means if is_private(cell)]
    done = sum(cell in known and known[cell].complete for cell in cells)
    missing = f" {done} of {len(cells)} points are complete." if done < len(cells) else ""
    if not private:
        return f"Nothing to show yet.{missing}"
    n = max(cell.n for cell in private)
    parts = []
    for title in dict.fromkeys(cell_title(cell) for cell in cells if is_private(cell)):
        mine = sorted((c for c in private if c.n == n and cell_title(c) == title), key=lambda cell: cell.epsilon)
        if mine:
            ends = [f"{short(means[cell])} at ε = {short(cell.epsilon)}" for cell in (mine[0], mine[-1])]
            parts.append(f"{in_a_text(title)} " + " and ".join(dict.fromkeys(ends)))
    for cell, mean in means.items():
        if cell.n == n and not is_private(cell):
            parts.append(f"{in_a_text(cell_title(cell))} {short(mean)} without privacy")
    text = f"Mean {measure_here(cells, measure).title} at n = {n:,}: " + "; ".join(parts) + "."
    if any(not math.isfinite(means[cell]) for cell in private):
        text += " Where the mean is ∞ (a gap in the curve) at least one run released nothing."
    failed = sum(len(found.failures) for found in known.values())
    if failed:
        text += f" {failed:,} runs could not be made; the table says why."
    runs = [len(known[cell].scores[measure]) for cell in means]
    count = f"{min(runs):,}" if min(runs) == max(runs) else f"{min(runs):,} to {max(runs):,}"
    data = "on the same records" if all(map(same_data, cells)) else "each on fresh data"
    return f"{text} Means of {count} runs, {data}, with bands of one standard error.{missing}"


def same_data(cell: Run) -> bool:
    """Whether all runs of a cell see the same records: one draw, or all records of a real data set."""
    return cell.data_seed is not None or same_records(cell.dataset, cell.n)


# Theory's slopes, to be laid over measured curves on log axes.

OTHERS = (
    "Theory’s lines are left out here: its upper bound (thm:global-holder) is one of DP-GRAMS only. Its lower bound "
    "(thm:lower-bound) holds for every private method, and has the same slopes."
)
RATE_DASHES = {"privacy": "longdashdot", "sampling": "dashdot"}
BETA = 3.0  # the smoothness that the theory is read for
Point = tuple[float, float]


def rate_traces(results: Sequence[CellResult], *, variable: str = "epsilon", d: int = 2) -> list[go.Scatter]:
    """Theory's slopes through measured points of MSE, as grey lines for a chart with the same variable on its axis.

    The upper bound is one of DP-GRAMS, so that is the curve they are laid over; without one there are none.
    The privacy term goes through the point at the smallest value of the curve where privacy costs most: against
    epsilon that of the largest n, against n that of the smallest epsilon.  The sampling term goes through the
    largest epsilon of the curve, and against n through the smallest n of the largest epsilon (or of no privacy).
    """
    _, noisy, quiet = _slopes(results, variable)
    if len(noisy) < 2:
        return []
    ends = [noisy[0][0], noisy[-1][0]]
    anchors = (noisy[0], noisy[-1] if variable == "epsilon" else quiet[0])
    return [
        line((ends, rate_line(ends, anchor, rate.exponent)), rate.title, QUIET, dash=RATE_DASHES[rate.term], width=2)
        for rate, anchor in zip(rates(variable, d, BETA), anchors, strict=True)
    ]


def rate_note(results: Sequence[CellResult], *, variable: str = "epsilon", d: int = 2) -> str:
    """The measured slope beside theory's, in words, and whose they are; "" where there is no curve yet."""
    private = [result for result in results if is_private(result.cell)]
    if private and not any(result.cell.method == UPPER_BOUND_OF for result in private):
        return OTHERS
    cell, noisy, _ = _slopes(results, variable)
    if cell is None or len(noisy) < 2:
        return ""
    symbol, held = ("ε", "n") if variable == "epsilon" else ("n", "epsilon")
    slopes = (measured_slope(*zip(*noisy, strict=True)), *(rate.exponent for rate in rates(variable, d, BETA)))
    found, privacy, sampling = (tiny(value).replace("-", "−") for value in slopes)
    return (
        f"Between {symbol} = {short(noisy[0][0])} and {short(noisy[-1][0])} the MSE of {cell_title(cell)} at "
        f"{_words(held, getattr(cell, held))} goes "
        f"with a measured slope of {found} on log axes; theory has, for DP-GRAMS, {privacy} where privacy leads and "
        f"{sampling} where sampling does, for smoothness β = {short(BETA)} in {d} {'column' if d == 1 else 'columns'}. "
        f"{UP_TO_LOGARITHMS}"
    )


def _slopes(results: Sequence[CellResult], variable: str) -> tuple[Run | None, list[Point], list[Point]]:
    """A cell of the measured curve on which privacy leads, that curve, and the one on which sampling does.

    Of several kinds of DP-GRAMS, such as calibrations, it is the first.  Against n, sampling leads without privacy,
    or else at the largest epsilon.
    """
    known = [(result.cell, mean_and_error(result, "mse")[0]) for result in results if not result.cell.varied]
    measured = [(cell, mse) for cell, mse in known if 0 < mse < math.inf]
    first = next((cell for cell, _ in measured if cell.method == UPPER_BOUND_OF), None)
    if first is None:
        return None, [], []
    mine = [item for item in measured if cell_title(item[0]) == cell_title(first)]
    if variable == "epsilon":
        largest = max((cell for cell, _ in mine), key=lambda cell: cell.n)
        curve = sorted((cell.epsilon, mse) for cell, mse in mine if cell.n == largest.n)
        return largest, curve, curve
    plain = [item for item in measured if not is_private(item[0])] or mine
    lowest = min((cell for cell, _ in mine), key=lambda cell: cell.epsilon)
    highest = max(cell.epsilon for cell, _ in plain)
    noisy = sorted((float(cell.n), mse) for cell, mse in mine if cell.epsilon == lowest.epsilon)
    quiet = sorted((float(cell.n), mse) for cell, mse in plain if cell.epsilon == highest)
    return lowest, noisy, quiet


# The search for the epsilon or n that a target needs: tried values, their intervals, and the bracket.

VERDICTS = {
    "reaches": ("shown to reach", "circle"),
    "misses": ("shown to miss", "x"),
    "open": ("not shown either way", "circle-open"),
    "running": ("still running", "circle-dot"),
}


def needed_chart(found: NeededBudget) -> Chart:
    """Share of runs that reach the target against the tried values, with the wished share and the bracket."""
    asked = found.question
    colour = PRIVATE if METHODS[asked.method].private else NON_PRIVATE
    figure = go.Figure()
    if found.misses_at is not None and found.reaches_at is not None:
        bracket = {"fillcolor": style.tint(style.GREY, 0.18), "line_width": 0, "layer": "below"}
        figure.add_vrect(x0=found.misses_at, x1=found.reaches_at, **bracket)
    for verdict, (name, symbol) in VERDICTS.items():
        mine = [item for item in found.tried if item.verdict == verdict]
        if mine:
            up = [item.interval[1] - item.share for item in mine]
            down = [item.share - item.interval[0] for item in mine]
            trace = points(
                ([item.value for item in mine], [item.share for item in mine]),
                name,
                {"symbol": symbol, "size": 11, "color": colour, "line": {"width": 2, "color": colour}},
                name + ", %{x:,.4~r}: %{customdata[0]} of %{customdata[1]} runs",
                error_y=curves.whiskers(up, symmetric=False, arrayminus=down, width=5),
                customdata=[[item.successes, item.runs] for item in mine],
            )
            figure.add_trace(trace)
    ends = [asked.low / 1.15, asked.high * 1.15]
    wish = f"wished: {percent(asked.probability)}"
    figure.add_trace(line((ends, [asked.probability] * 2), wish, QUIET, dash="dash", width=2))
    symbol, title = ("ε", curves.EPSILON_TITLE) if asked.sought == "epsilon" else ("n", "n, number of records")
    x_axis = {**style.LOG, "title": title, "range": [math.log10(end) for end in ends], "dtick": "D2"}
    y_axis = {"title": "share of runs that reach the target", "range": [-0.03, 1.03], "tickformat": ".0%"}
    columns = [symbol, "reached", "runs", "share", "low", "high", "verdict", "failures"]
    rows = [
        (item.value, item.successes, item.runs, item.share, *item.interval, VERDICTS[item.verdict][0], item.failures)
        for item in found.tried
    ]
    return Chart(plain_layout(figure, 400, x_axis, y_axis), found.sentence, pd.DataFrame(rows, columns=columns))


# Where the error comes from, as bars that build up to the whole.

WHOLE = "Whole error"


def error_sources_chart(sources: ErrorSources) -> Chart:
    """Bars from the error without privacy, in blue, to that of the method; what takes error off is hatched.

    Each bar begins where the one above ends, with the standard error of the difference.  The numbers stand beside
    the names, where no error bar crosses them.
    """
    finite = math.isfinite(sources.total) and all(math.isfinite(step.change) for step in sources.steps)
    names = [*(step.title for step in sources.steps), WHOLE]
    values = [*(_signed(step.change, sources.total) for step in sources.steps), short(sources.total)]
    title = sources.scored.full_title or sources.scored.error_title
    figure = plain_layout(
        go.Figure(_bars(sources) if finite else []),
        90 + 36 * len(names),
        {"title": title, "rangemode": "tozero", "zeroline": True, "zerolinecolor": QUIET},
        {
            "type": "category",
            "categoryarray": names,
            "autorange": "reversed",
            "tickvals": names,
            "ticktext": [f"{name}  <b>{value}</b>" for name, value in zip(names, values, strict=True)],
        },
        showlegend=False,
        bargap=0.25,
        barmode="overlay",
    )
    sentence = sources.sentence + ("" if sources.complete else f" {sources.runs} of {sources.wanted} runs so far.")
    whole = sources.total if math.isfinite(sources.total) and sources.total > 0 else math.nan
    numbers = ("error", "error_se", "change", "change_se")
    rows = [
        {"step": step.title, "switched on": step.words}
        | {name: getattr(step, name) for name in numbers}
        | {"share": step.change / whole, "runs": step.runs}
        for step in sources.steps
    ]
    return Chart(figure, sentence, pd.DataFrame(rows))


def _bars(sources: ErrorSources) -> list[go.Bar]:
    steps = sources.steps
    parts = go.Bar(
        orientation="h",
        y=[step.title for step in steps],
        x=[step.change for step in steps],
        base=[0.0, *(step.error for step in steps[:-1])],
        marker={
            "color": [NON_PRIVATE, *[PRIVATE] * (len(steps) - 1)],
            "pattern": {"shape": ["/" if step.change < 0 else "" for step in steps]},
        },
        error_x=curves.whiskers([step.change_se for step in steps]),
        customdata=[[step.words, short(step.change), short(step.error)] for step in steps],
        hovertemplate="%{customdata[0]}: %{customdata[1]}, together %{customdata[2]}<extra></extra>",
        name="part",
    )
    whole = go.Bar(
        orientation="h",
        y=[WHOLE],
        x=[sources.total],
        marker={"color": PRIVATE, "line": {"color": QUIET, "width": 2}},
        error_x=curves.whiskers([steps[-1].error_se]),
        hovertemplate="the method as it is: %{x:,.3~r}<extra></extra>",
        name="whole",
    )
    return [parts, whole]


def _signed(value: float, total: float) -> str:
    """A part with its sign; less than a thousandth of the whole is not worth its digits."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) < 0.001 * total:
        return "≈ 0"
    return ("+" if value > 0 else "−") + short(abs(value))
