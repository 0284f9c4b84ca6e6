"""The one curve chart: a measure against ε, n or a varied control, from the cells of a sweep that are there so far.

``curve`` draws a line with its band; axes, whiskers and upright marks are made here for all pages.  ``tradeoff_chart``
(modes and branches) and ``cluster_curve_chart`` are the two that stand on the pages of their kind of data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.datasets.registry import dataset_info, same_records
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, QUIET, Chart, plain_layout, score_scale, tint
from dpgrams_core.figures.traces import band, points
from dpgrams_core.methods.registry import METHODS
from dpgrams_core.model.format import give_or_take, short, whole_percent
from dpgrams_core.model.measures import Measure, measure_of, scores_of
from dpgrams_core.model.run import AnyDataset, Run
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.studies.paper.tables import paper_table
from dpgrams_core.sweeps.cell import CellResult

DASHES = ("solid", "dot", "dash", "longdash", "dashdot")
MARKS = ("circle", "square", "diamond", "triangle-up", "pentagon")
PLAIN_DASHES = ("dash", "dot", "dashdot")
EPSILON_TITLE = "ε (stronger privacy on the left)"
CONTROLS = {
    "clip_multiplier": "clip multiplier",
    "batch_size": "minibatch size m",
    "step_size": "step size η",
    "bandwidth": "bandwidth h",
    "bandwidth_scale": "bandwidth, as a multiple of its rule",
    "n_steps": "number of steps T",
    "n_starts": "number of starts k",
    "init_fraction": "share of ε for the start",
}

Known = Mapping[Run, CellResult]


def curve(
    name: str,
    x: Sequence[Any],
    y: Sequence[float],
    colour: str,
    hover: str,
    *,
    mode: str = "lines+markers",
    dash: str = "solid",
    symbol: str | None = "circle",
    size: float = 9,
    width: float | None = None,
    rim: Mapping[str, Any] | None = None,
    errors: Sequence[float] | None = None,
    edges: tuple[Sequence[float], Sequence[float]] | None = None,
    edges_name: str | None = None,
    opacity: float = 0.13,
    **more: Any,
) -> list[go.Scatter]:
    """A line, on top of a band in its colour where that has (lower, upper) ``edges``; an infinite y is a gap.

    ``hover`` is what is read under the pointer, ``errors`` are whiskers, and ``more`` is whatever else plotly is told.
    """
    mark = {"symbol": symbol, "size": size, "color": colour, "line": rim}
    drawn = go.Scatter(
        x=x,
        y=[value if math.isfinite(value) else math.nan for value in y],
        mode=mode,
        name=name,
        error_y=None if errors is None else whiskers(errors),
        line={"color": colour, "dash": dash, "width": width},
        marker=mark if "markers" in mode else None,
        hovertemplate=f"{hover}<extra></extra>",
    ).update(more)
    if edges is None:
        return [drawn]
    known = [place for place in zip(x, *edges, strict=True) if math.isfinite(place[2])]
    along, low, high = ([place[part] for place in known] for part in range(3))
    group = more.get("legendgroup")
    return [band(along, low, high, tint(colour, opacity), edges_name, legendgroup=group, showlegend=False), drawn]


def measured(rows: pd.DataFrame, x: str, measure: str, **look: Any) -> list[go.Scatter]:
    """A measure with its standard errors over a column of the rows of cells."""
    return curve(x=rows[x].tolist(), y=rows[measure].tolist(), errors=rows[f"{measure}_se"].tolist(), **look)


def level(name: str, ends: Sequence[Any], height: float, hover: str, **look: Any) -> list[go.Scatter]:
    """A method that is the same over the whole axis; by default one without privacy."""
    look = {"mode": "lines", "dash": "dash", "colour": NON_PRIVATE, **look}
    return curve(name, list(ends), [height] * 2, hover=hover, width=2, **look)


def whiskers(array: Sequence[float], **more: Any) -> dict[str, Any]:
    """Bars of one standard error."""
    return {"type": "data", "array": array, "thickness": 1.5, "width": 4, **more}


def log_axis(title: str, ticks: Sequence[float], room: float, words: Callable[[Any], str] = short) -> dict:
    """A log axis over some values with room about them, all of which are named."""
    ends = [math.log10(ticks[0] / room), math.log10(ticks[-1] * room)]
    named = {"tickvals": ticks, "ticktext": [words(tick) for tick in ticks]}
    return {"type": "log", "title": title, "range": ends, **named}


def upright(figure: go.Figure, x: float, text: str, *, line: dict, top: bool, right: bool, log: bool = True) -> None:
    """A thin upright line with a word beside it."""
    figure.add_vline(x=x, line=line)
    figure.add_annotation(
        text=text,
        x=math.log10(x) if log else x,  # plotly wants the logarithm here, and not for the line
        y=int(top),
        yref="paper",
        yanchor="top" if top else "bottom",
        xanchor="right" if right else "left",
        showarrow=False,
    )


def so_far(done: int, total: int) -> str:
    """A last sentence while a picture fills in, and nothing once it is whole."""
    return f" {done} of {total} points so far." if done < total else ""


def counted_runs(count: int) -> str:
    """A number of runs, in words."""
    return f"{count:,} {'run' if count == 1 else 'runs'}"


def measure_here(cells: Sequence[Run], measure: str) -> Measure:
    """The facts of a measure of these cells; another name is refused."""
    return measure_of(METHODS[cells[0].method].kind, measure)


def is_private(cell: Run) -> bool:
    """Whether a cell has a budget at all."""
    return math.isfinite(cell.epsilon)


# Methods and settings in words.


def default_settings(method: str) -> dict[str, Any]:
    """What each setting of a method is when nobody sets it."""
    return {item.name: item.default for item in fields(METHODS[method].spec)}


def method_title(method: str, options: Iterable[tuple[str, Any]] = ()) -> str:
    """A method as people call it, with its calibration where one was chosen: "DP-GRAMS tight"."""
    calibration = [value.replace("_", " ") for name, value in options if name == "calibration"]
    return " ".join([METHODS[method].title, *calibration])


def cell_title(cell: Run) -> str:
    """The method of a cell as people call it, with the calibration and the kernel that make its noise."""
    options = dict(cell.options)
    own = default_settings(cell.method)
    if "calibration" in own:
        options.setdefault("calibration", own["calibration"])
    title = method_title(cell.method, options.items())
    if cell.note:
        return f"{title}, {cell.note}"
    return f"{title}, {KERNELS[options['kernel']].title}" if cell.varied == "kernel" else title


def told_apart(cells: Sequence[Run]) -> dict[Run, Run]:
    """Each cell, named by what differs where a method has several settings: options, seed or draw.

    Without a name of their own such cells would share a line, with several points at the same place.
    """
    named: dict[Run, Run] = {}
    for title in dict.fromkeys(map(cell_title, cells)):
        same = [cell for cell in cells if cell_title(cell) == title]
        mine = {cell: {**dict(cell.options), "seed": cell.seed, "draw": cell.data_seed} for cell in same}
        names = dict.fromkeys(name for settings in mine.values() for name in settings)
        apart = [name for name in names if len({repr(settings.get(name)) for settings in mine.values()}) > 1]
        for cell, settings in mine.items():
            named[cell] = replace(cell, note=", ".join(_setting_words(name, settings.get(name)) for name in apart))
    return {cell: named[cell] for cell in cells}


def _setting_words(name: str, value: Any) -> str:
    if name == "draw":
        return "fresh data" if value is None else f"draw {value} of the data"
    return f"default {control_title(name)}" if value is None else f"{control_title(name)} {value_words(value)}"


def control_title(name: str) -> str:
    """A control as people call it."""
    return CONTROLS.get(name, name.replace("_", " "))


def value_words(value: Any) -> str:
    """A value of a control as people write it."""
    return short(value) if isinstance(value, (int, float)) else str(value)


def in_a_text(title: str) -> str:
    """A title within a sentence: "mean shift" but "LOWESS"."""
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


# The curves on the pages of modes, of regression and of clusters.


def _rows(results: Sequence[CellResult]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The table of the cells so far, its private rows in the order of epsilon, and the others."""
    rows = [{**item.row(), "method": method_title(item.cell.method, item.cell.options)} for item in results]
    table = pd.DataFrame(rows) if rows else pd.DataFrame(columns=["method", "n", "epsilon"], dtype=float)
    private = table["epsilon"] < math.inf
    return table, table[private].sort_values("epsilon", kind="stable"), table[~private]


def _names(cells: Sequence[Run], *, private: bool) -> list[str]:
    """In the order of the cells, so that a method keeps its look while the curve fills in."""
    mine = [cell for cell in cells if is_private(cell) == private]
    return list(dict.fromkeys(method_title(cell.method, cell.options) for cell in mine))


def _against_epsilon(mine: pd.DataFrame, measure: str, **look: Any) -> list[go.Scatter]:
    """A private method over epsilon; open marks have a rim."""
    rim = {"width": 2 if look["symbol"].endswith("-open") else 0}
    return measured(mine, "epsilon", measure, colour=PRIVATE, rim=rim, **look)


def your_epsilon(figure: go.Figure, epsilon: float, ends: Sequence[float], middle: float, *, top: bool) -> go.Figure:
    """Where the page's own epsilon stands, if it is in the picture."""
    if ends[0] <= epsilon <= ends[1]:
        line = {"color": PRIVATE, "width": 1, "dash": "dot"}
        upright(figure, epsilon, f"your ε = {short(epsilon)}", line=line, top=top, right=epsilon > middle)
    return figure


def _shown(table: pd.DataFrame, *scores: str) -> pd.DataFrame:
    columns = ["method", "n", "epsilon", *scores, "runs", "failures", "status"]
    return table[[name for name in columns if name in table]] if len(table) else pd.DataFrame()


def _axis(cells: Sequence[Run], room: float) -> tuple[dict, tuple[float, float]]:
    """The axis of all epsilons of the cells, and where it ends."""
    epsilons = sorted({cell.epsilon for cell in cells if is_private(cell)})
    return log_axis(EPSILON_TITLE, epsilons, room), (epsilons[0] / room, epsilons[-1] * room)


def tradeoff_chart(results: Sequence[CellResult], cells: Sequence[Run], current_epsilon: float) -> Chart:
    """MSE against epsilon on log axes with standard errors; methods without privacy as dashed lines.

    ``cells`` are all that will come, so that the axes stand still while the curve fills in.  Every private method is
    orange; the mark says n, and the dash says n or, with several methods, the method, the second with open marks.
    """
    names, (table, private, plain), (x_axis, ends) = _names(cells, private=True), _rows(results), _axis(cells, 1.15)
    traces = []
    for size, n in enumerate(sorted(set(table["n"]))):
        mark = MARKS[size % 5]
        for place, name in enumerate(names):
            mine = private[(private["n"] == n) & (private["method"] == name)]
            if len(mine):
                title = f"{name}, n = {n:,}"
                look = {"name": title, "hover": title + ", ε = %{x:g}: MSE %{y:,.3~r}"}
                dash = DASHES[(2 * place if len(names) > 1 else size) % 5]
                traces += _against_epsilon(mine, "mse", dash=dash, symbol=mark + ("-open" if place % 2 else ""), **look)
        for _, row in plain[plain["n"] == n].iterrows():
            title = f"{in_a_text(row['method'])}, n = {n:,}"
            hover = title + ": MSE %{y:,.3~r}"  # the same n, the same mark
            shown = {"mode": "lines+markers", "symbol": mark, "cliponaxis": False}
            traces += level(f"{title} (not private)", ends, row["mse"], hover, **shown)
    scored = measure_here(cells, "mse")
    y_axis = {"title": scored.full_title, **score_scale(scored, table.get("mse", ()))}
    figure = your_epsilon(plain_layout(go.Figure(traces), 420, x_axis, y_axis), current_epsilon, ends, 1, top=True)
    sentence = _tradeoff_sentence(table, names, len(results), len(cells))
    return Chart(figure, sentence, _shown(table, "mse", "mse_se", *list(scores_of(scored.kind))[1:]))


def _tradeoff_sentence(table: pd.DataFrame, names: Sequence[str], done: int, total: int) -> str:
    if not (table["epsilon"] < math.inf).any():
        return f"{done} of {total} points so far."
    largest = table[table["n"] == table["n"].max()]
    private = largest[largest["epsilon"] < math.inf].sort_values("epsilon")
    plain = largest[largest["epsilon"] == math.inf]
    runs = str(int(table["runs"].max()))
    if len(plain) and plain["runs"].iloc[0] < private["runs"].max():
        runs += f" ({in_a_text(plain['method'].iloc[0])} {int(plain['runs'].iloc[0])})"
    parts = []
    for name in names:
        mine = private[private["method"] == name]
        if len(mine):
            whose = "the error" if len(names) == 1 else f"the error of {name}"
            first, last = (
                f"{short(row['mse'])} at ε = {short(row['epsilon'])}" for _, row in mine.iloc[[0, -1]].iterrows()
            )
            parts.append(f"{whose} goes from {first} to {last}")
    if len(plain):
        parts.append(f"without privacy it is {short(float(plain['mse'].iloc[0]))}")
    text = f"At n = {int(largest['n'].iloc[0]):,} " + "; ".join(parts)
    if (private["mse"] == math.inf).any():
        text += " (∞: at least one run released no mode, because nothing stood above its noise)"
    if "branch_recall" in private and len(names) == 1:
        found = [whole_percent(float(value)) for value in private["branch_recall"].iloc[[0, -1]]]
        text += f", and the share of branches found goes from {found[0]} to {found[1]}"
    return f"{text}. Means of {runs} runs on fresh data, with standard errors.{so_far(done, total)}"


def cluster_curve_chart(
    results: Sequence[CellResult], cells: Sequence[Run], measure: str, current_epsilon: float
) -> Chart:
    """One score against epsilon, with standard errors; methods without privacy as dashed lines.

    ``cells`` are all that will come, so that the axis stands still while the curve fills in.  The first private
    method has full marks, the second open ones and a dashed line.  Grey marks are what the paper prints.
    """
    scored, (table, private, plain), (x_axis, ends) = measure_of("clusters", measure), _rows(results), _axis(cells, 1.2)
    plain_names = _names(cells, private=False)
    traces = []
    for _, row in plain.iterrows():
        dash, hover = PLAIN_DASHES[plain_names.index(row["method"]) % 2], row["method"] + ": %{y:,.3~r}"
        traces += level(f"{row['method']} (not private)", ends, row[measure], hover, dash=dash)
    for number, name in enumerate(_names(cells, private=True)):
        mine = private[private["method"] == name]
        if len(mine):
            look = {"dash": "dash", "symbol": "square-open"} if number else {"symbol": "circle"}
            title, hover = f"{name} ({mine['status'].iloc[0]})", name + ", ε = %{x:g}: %{y:,.3~r}"
            traces += _against_epsilon(mine, measure, name=title, hover=hover, **look)
    if printed := printed_scores(cells[0].dataset, cells[0].n, measure):
        mark = {"symbol": "triangle-down", "size": 9, "color": QUIET}
        hover = "printed in the paper, ε = %{x:g}: %{y:,.3~r}"
        x, y = ([pair[part] for pair in printed] for part in (0, 1))
        traces.append(points((x, y), "DP-GRAMS-C as the paper prints it", mark, hover))
    y_axis = {"title": scored.axis, **score_scale(scored, table.get(measure, ()))}
    figure = plain_layout(go.Figure(traces), 440, x_axis, y_axis)
    your_epsilon(figure, current_epsilon, ends, math.sqrt(ends[0] * ends[1]), top=False)
    sentence = _cluster_sentence(table, private, plain, cells, scored, current_epsilon)
    scores = [name for measure in scores_of("clusters") for name in (measure, f"{measure}_se")]
    return Chart(figure, sentence, _shown(table, *scores))


def _cluster_sentence(
    table: pd.DataFrame,
    private: pd.DataFrame,
    plain: pd.DataFrame,
    cells: Sequence[Run],
    scored: Measure,
    current_epsilon: float,
) -> str:
    """Which private method is better at the epsilon on the curve that is nearest to the chosen one."""
    measure = scored.name
    if not len(private):
        return f"{len(table)} of {len(cells)} points so far."
    at = min(private["epsilon"], key=lambda value: abs(math.log(value / current_epsilon)))
    here = private[private["epsilon"] == at].sort_values(measure, ascending=not scored.more_is_better, kind="stable")
    parts = []
    for _, row in here.iterrows():
        error = row[f"{measure}_se"]
        parts.append(f"{row['method']} {short(row[measure])}" + (f" {give_or_take(error)}" if error == error else ""))
    parts += [f"{row['method']} {short(row[measure])} without privacy" for _, row in plain.iterrows()]
    text = f"Mean {scored.title} at ε = {short(at)}: {', '.join(parts)}."
    if len(here) > 1:
        first, second = here.iloc[0], here.iloc[1]
        spread = math.hypot(first[f"{measure}_se"], second[f"{measure}_se"])  # nan with one run: then no verdict
        gap = abs(first[measure] - second[measure])
        if gap > 2 * spread:
            text += f" {first['method']} wins there."
        elif gap <= 2 * spread:
            text += " Within two standard errors, neither wins there."
    text += f" Means over {counted_runs(int(private['runs'].max()))}"
    same = same_records(cells[0].dataset, cells[0].n)
    text += " of the noise on the same records." if same else " on fresh draws of the records."
    if failed := int(table["failures"].sum()):
        text += f" {counted_runs(failed)} could not be made and are left out."
    return text + so_far(len(table), len(cells))


def printed_scores(dataset: AnyDataset, n: int, measure: str) -> list[tuple[float, float]]:
    """What the paper prints for its DP-GRAMS-C at this n: (epsilon, mean); real data are printed whole only."""
    try:
        rows = paper_table(f"clustering_{dataset}")["rows"]
    except KeyError:
        return []
    here = [row for row in rows if row.get("n", dataset_info(dataset).default_n) == n]
    return [(row["epsilon"], row["dp_grams_c"][measure]["mean"]) for row in here if measure in row["dp_grams_c"]]
