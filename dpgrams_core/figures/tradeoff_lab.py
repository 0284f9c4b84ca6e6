"""Error against budget or size for several methods and sizes: panels of curves from the runs that are there so far.

A cell has a method, an n and an epsilon.  One of these is the axis, one tells the panels apart and the third the
lines of a panel.  Private lines are orange and methods without privacy blue and dashed; an n or an epsilon is a shade
and a mark, a method a dash and a mark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from dpgrams_core.cells import Cell, CellResult
from dpgrams_core.datasets import DATASETS
from dpgrams_core.figures.rates import rate_traces
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, plain_layout, short
from dpgrams_core.figures.tradeoff import DASHES, MARKS
from dpgrams_core.figures.tradeoff_scores import Known, cell_title, in_a_text, mean_and_error, measure_words

AXES = ("epsilon", "n", "method")
# From light to dark; on a white and on a black page all of them can be seen.
PRIVATE_SHADES = ("#F0A25A", "#E36C0A", "#BD5600", "#8F4100", "#F5BE8B")
NON_PRIVATE_SHADES = ("#6BB1DD", "#2F8FCB", "#0072B2", "#00568A", "#9CCBEA")
PLAIN_DASHES = ("dash", "dot", "dashdot")
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


def panels_of(cells: Sequence[Cell], layout: LabLayout) -> list[Any]:
    """The values that have a panel, in order; a method without privacy is a line in every panel, never one of them."""
    private = [cell for cell in cells if math.isfinite(cell.epsilon)] or list(cells)
    found = dict.fromkeys(_place(cell, layout.panel) for cell in private)
    return list(found) if layout.panel == "method" else sorted(found)


def panel_title(value: Any, layout: LabLayout) -> str:
    """What a panel is about."""
    return str(value) if layout.panel == "method" else _words(layout.panel, value)


def lab_panel(
    known: Known,
    cells: Sequence[Cell],
    measure: str,
    layout: LabLayout,
    panel: Any,
    *,
    theory: bool = False,
    height: int = 380,
) -> go.Figure:
    """One panel of curves with bands of one standard error.

    Parameters
    ----------
    known : what there is so far; ``cells`` are all that will come, so that the axes stand still meanwhile.
    panel : one of ``panels_of``.
    theory : lay the paper's slopes over the MSE (rates.py).

    Examples
    --------
    >>> from dpgrams_core.sweeps import plan_cells, run_cell
    >>> cells = plan_cells(["functional", "mean_shift"], "four_corners", n=[200], epsilon=[1.0, 5.0], runs=2)
    >>> layout = LabLayout("epsilon", "method")
    >>> panels_of(cells, layout)
    ['Functional release']
    >>> figure = lab_panel({cell: run_cell(cell) for cell in cells}, cells, "mse", layout, "Functional release")
    >>> [trace.name for trace in figure.data if trace.showlegend]
    ['n = 200', 'mean shift']
    """
    words, better, log = measure_words(cells, measure)
    ticks = sorted({_place(cell, layout.x) for cell in cells if math.isfinite(_place(cell, layout.x))})
    ends = (ticks[0] / 1.2, ticks[-1] * 1.2) if ticks else (0.1, 10.0)  # without privacy alone there is no ε to mark
    figure = go.Figure()
    for line in _lines(cells, layout, panel):
        for trace in _traces(line, known, measure, layout, ends, log):
            figure.add_trace(trace)
    figure.update_xaxes(
        type="log",
        title="ε (stronger privacy on the left)" if layout.x == "epsilon" else "records, n",
        range=[math.log10(value) for value in ends],
        tickvals=ticks,
        ticktext=[f"{value:g}" if layout.x == "epsilon" else f"{value:,}" for value in ticks],
    )
    if theory:
        figure.add_traces(rate_traces(of_panel(known, layout, panel), variable=layout.x, d=columns_of(cells)))
    figure.update_yaxes(title=f"{words} ({'more' if better else 'less'} is better)", **_scale(known, measure, log))
    plain_layout(figure, height)
    figure.update_layout(legend={"font": {"size": 12}, "entrywidth": 0})
    return figure


def of_panel(known: Known, layout: LabLayout, panel: Any) -> list[CellResult]:
    """The results of the private cells of a panel."""
    return [
        found
        for cell, found in known.items()
        if found.seconds and math.isfinite(cell.epsilon) and _place(cell, layout.panel) == panel
    ]


def columns_of(cells: Sequence[Cell]) -> int:
    """How many columns the data have."""
    return len(DATASETS[cells[0].dataset].box)


@dataclass(frozen=True)
class _Line:
    name: str
    cells: tuple[Cell, ...]
    private: bool
    colour: str
    dash: str
    symbol: str
    listed: bool = True  # in the legend, where one line speaks for its sisters


def _lines(cells: Sequence[Cell], layout: LabLayout, panel: Any) -> list[_Line]:
    private = [cell for cell in cells if math.isfinite(cell.epsilon)]
    plain = [cell for cell in cells if not math.isfinite(cell.epsilon)]
    names = list(dict.fromkeys(_place(cell, layout.line) for cell in private or plain))
    if layout.line != "method":
        names.sort()
    baselines = list(dict.fromkeys(map(cell_title, plain)))
    lines = []
    for place, name in enumerate(names):
        mine = tuple(c for c in private if _place(c, layout.line) == name and _place(c, layout.panel) == panel)
        if mine:
            lines.append(_private_line(place, name, mine, layout))
    for baseline in baselines:
        mine = tuple(c for c in plain if cell_title(c) == baseline and (layout.panel != "n" or c.n == panel))
        lines += _plain_lines(baseline, mine, layout, names, baselines.index(baseline))
    return lines


def _private_line(place: int, name: Any, cells: tuple[Cell, ...], layout: LabLayout) -> _Line:
    if layout.line == "method":
        opened = "-open" if place % 2 else ""
        return _Line(str(name), cells, True, PRIVATE, DASHES[(2 * place) % 5], MARKS[place % 5] + opened)
    return _Line(_words(layout.line, name), cells, True, PRIVATE_SHADES[place % 5], "solid", MARKS[place % 5])


def _plain_lines(
    title: str, cells: tuple[Cell, ...], layout: LabLayout, names: Sequence[Any], number: int
) -> list[_Line]:
    """A method without privacy: one line, or one for each n where n tells the lines apart."""
    dash, text = PLAIN_DASHES[number % 3], in_a_text(title)
    if layout.line == "n":
        return [
            _Line(
                f"{text}, the same marks" if len(cells) > 1 else text,
                (cell,),
                False,
                NON_PRIVATE_SHADES[names.index(cell.n) % 5],
                dash,
                MARKS[names.index(cell.n) % 5],
                listed=cell is cells[0],
            )
            for cell in cells
        ]
    return [_Line(text, cells, False, NON_PRIVATE, dash, MARKS[number % 5])] if cells else []


def _traces(
    line: _Line, known: Known, measure: str, layout: LabLayout, ends: tuple[float, float], log: bool
) -> Iterable[go.Scatter]:
    found = [(cell, known[cell]) for cell in line.cells if cell in known and known[cell].scores.get(measure)]
    if not found:
        return
    found.sort(key=lambda pair: _place(pair[0], layout.x))
    x = [_place(cell, layout.x) for cell, _ in found]
    points = [mean_and_error(result, measure) for _, result in found]
    y = [mean if math.isfinite(mean) else None for mean, _ in points]  # nothing released: a gap
    spread = [error if math.isfinite(error) else 0.0 for _, error in points]
    hover = [
        [_where(cell), f"{len(result.seconds)} runs, standard error {short(error)}"]
        for (cell, result), (_, error) in zip(found, points, strict=True)
    ]
    if not math.isfinite(x[0]):  # without privacy: the same at every ε
        x, y, spread, hover = list(ends), y * 2, spread * 2, hover * 2
    yield _band(line, x, y, spread, log)
    yield go.Scatter(
        x=x,
        y=y,
        mode="lines+markers",
        name=line.name,
        legendgroup=line.name,
        showlegend=line.listed,
        cliponaxis=False,
        line={"color": line.colour, "dash": line.dash, "width": 2},
        marker={"symbol": line.symbol, "size": 8, "color": line.colour, "line": {"width": 2, "color": line.colour}},
        error_y={"type": "data", "array": spread, "thickness": 1.5, "width": 4} if len(x) == 1 else None,
        customdata=hover,
        hovertemplate=f"{line.name}, %{{customdata[0]}}: %{{y:.3g}} (%{{customdata[1]}})<extra></extra>",
    )


def _band(line: _Line, x: Sequence[float], y: Sequence[float | None], spread: Sequence[float], log: bool) -> go.Scatter:
    """Mean plus and minus one standard error; on a log axis the lower edge stays above zero."""
    places = [(a, b, c) for a, b, c in zip(x, y, spread, strict=True) if b is not None]
    upper = [b + c for _, b, c in places]
    lower = [max(b - c, b / 10) if log else b - c for _, b, c in places]
    red, green, blue = (int(line.colour[k : k + 2], 16) for k in (1, 3, 5))
    return go.Scatter(
        x=[a for a, _, _ in places] + [a for a, _, _ in reversed(places)],
        y=upper + lower[::-1],
        fill="toself",
        fillcolor=f"rgba({red},{green},{blue},{BAND})",
        line={"width": 0},
        mode="lines",
        legendgroup=line.name,
        showlegend=False,
        hoverinfo="skip",
    )


def _scale(known: Known, measure: str, log: bool) -> dict[str, Any]:
    """One scale for all panels, at whole decades or halves of them, so that it seldom moves while points come."""
    means = [mean_and_error(found, measure)[0] for found in known.values()]
    values = [mean for mean in means if math.isfinite(mean)]
    if not log:
        return {"range": [min([0.0, *values]), max([1.0, *values]) * 1.05]}
    positive = [value for value in values if value > 0]
    if not positive:
        return {"type": "log", "tickformat": ".4~g"}
    low, high = math.floor(2 * math.log10(min(positive)) - 0.2) / 2, math.ceil(2 * math.log10(max(positive)) + 0.2) / 2
    return {"type": "log", "tickformat": ".4~g", "range": [low, high], "dtick": "D2" if high - low < 2 else 1}


def _place(cell: Cell, axis: str) -> Any:
    return cell_title(cell) if axis == "method" else getattr(cell, axis)


def _words(axis: str, value: Any) -> str:
    return f"n = {value:,}" if axis == "n" else f"ε = {value:g}" if axis == "epsilon" else str(value)


def _where(cell: Cell) -> str:
    size = _words("n", cell.n)
    return f"{size}, {_words('epsilon', cell.epsilon)}" if math.isfinite(cell.epsilon) else size
