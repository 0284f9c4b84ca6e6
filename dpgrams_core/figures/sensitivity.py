"""A score against one varied control (fig:bivariate_4mix_hparam and its kin), and kernels against each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpgrams_core.figures import curve as curves
from dpgrams_core.figures.curve import DASHES, MARKS, control_title, counted_runs, is_private, so_far, value_words
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, QUIET, Chart, plain_layout, score_scale
from dpgrams_core.methods.dp_grams import plan as dp_grams_plan
from dpgrams_core.methods.dp_grams import spec as dp_grams_spec
from dpgrams_core.methods.dp_pms import plan as dp_pms_plan
from dpgrams_core.model.errors import SpecError
from dpgrams_core.model.format import short
from dpgrams_core.model.measures import Measure
from dpgrams_core.model.run import Run
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.sweeps.cell import CellResult
from dpgrams_core.sweeps.run import tidy

LOG_RATIO = 8.0  # values that span more than this are read on a log axis
MOST_TICKS = 8  # more values, such as shares of several n, get the axis's own ticks
MOST_BANDS = 3  # more bands over each other hide the curves

Line = tuple[str, int, float]  # method in words, n, epsilon


def varied_control(cells: Sequence[Run]) -> str:
    """The one option that the cells vary."""
    names = sorted({cell.varied for cell in cells if cell.varied})
    if len(names) != 1:
        raise SpecError("vary", names, "this picture needs a sweep that varies one option")
    return names[0]


def default_value(cells: Sequence[Run]) -> float | None:
    """The value that the varied control has when nobody sets it; None where it is not one number for all cells."""
    control = varied_control(cells)
    found = {_default_of(cell, control) for cell in cells if cell.varied}
    return found.pop() if len(found) == 1 else None


def _default_of(cell: Run, control: str) -> float | None:
    own = curves.default_settings(cell.method)
    calibration = str(dict(cell.options).get("calibration", own.get("calibration")))
    regression = cell.method == "dp_pms"
    value: Any = own[control]
    if value is None and control == "bandwidth_scale":
        value = 1.0
    elif value is None and control == "batch_size":
        value = (dp_pms_plan if regression else dp_grams_plan).default_batch(cell.n, calibration)
    elif value is None and control == "clip_multiplier":
        value = dp_pms_plan.CLIP_MULTIPLIER[calibration] if regression else dp_grams_spec.CLIP_MULTIPLIER
    return float(value) if isinstance(value, (int, float)) else None


def sensitivity_chart(results: Sequence[CellResult], cells: Sequence[Run], measure: str = "mse") -> Chart:
    """A score against the varied control, one line for each method, n and epsilon of the sweep.

    ``cells`` are all that will come, so that the axis stands still.  Lines are means with standard errors; with up
    to three of them a band holds the middle 80 % of the runs.  A method that does not have the control is a level
    line.  A thin upright line marks the default of the control, where it is one number for the whole picture.  The
    axis is logarithmic where the values span a factor of eight.
    """
    scored, control = curves.measure_here(cells, measure), varied_control(cells)
    label = _labels([_line(cell) for cell in cells])
    values = list(dict.fromkeys(cell.value for cell in cells if cell.varied))
    numeric = all(isinstance(value, (int, float)) for value in values)
    logarithmic = numeric and min(values) > 0 and max(values) >= LOG_RATIO * min(values)
    lines = dict.fromkeys(_line(cell) for cell in cells if cell.varied)
    rows = {line: _line_rows(results, line, measure) for line in lines}
    traces = []
    for number, (drawn, mine) in enumerate(rows.items()):
        if len(mine):
            mine = mine.sort_values("value") if numeric else mine.astype({"value": str})
            low, high = (mine[f"{measure}_{name}"].tolist() for name in ("q10", "q90"))
            traces += curves.measured(
                mine,
                "value",
                measure,
                name=label(drawn),
                colour=PRIVATE if math.isfinite(drawn[2]) else NON_PRIVATE,
                dash=DASHES[number % 5],
                symbol=MARKS[number % 5],
                edges_name="middle 80% of runs",
                edges=(low, high) if len(rows) <= MOST_BANDS else None,
                hover=label(drawn) + ", %{x}: %{y:,.3~r}",
            )
    ends = [min(values), max(values)] if numeric else [str(values[0]), str(values[-1])]
    for result in results:
        if not result.cell.varied:  # a method that does not have the control: one mean for all values
            name, mean = label(_line(result.cell)), result.row().get(measure, math.nan)
            colour = PRIVATE if is_private(result.cell) else NON_PRIVATE
            traces += curves.level(name, ends, mean, name + ": %{y:,.3~r}", colour=colour)
    kind = "log" if logarithmic else "linear" if numeric else "category"
    x_axis: dict[str, Any] = {"title": control_title(control), "type": kind}
    if numeric and len(values) <= MOST_TICKS:
        x_axis |= {"tickvals": values, "ticktext": [value_words(value) for value in values]}
    figure = plain_layout(go.Figure(traces), 420, x_axis, {"title": scored.axis, **_scale(results, scored)})
    usual = default_value(cells)
    if usual is not None and numeric and min(values) <= usual <= max(values):
        thin = {"color": QUIET, "width": 1}
        curves.upright(figure, usual, "default", line=thin, top=True, right=False, log=logarithmic)
    return Chart(figure, _sentence(results, cells, rows, label, scored), sensitivity_table(results, measure))


def _scale(results: Sequence[CellResult], scored: Measure) -> dict[str, Any]:
    return score_scale(scored, (result.row().get(scored.name, math.nan) for result in results), span=30)


def sensitivity_table(results: Sequence[CellResult], measure: str) -> pd.DataFrame:
    """The columns that the picture shows, in the order of the sweep's own table."""
    table = tidy(results)
    shown = ["method", "n", "epsilon", "varied", "value", measure, f"{measure}_se", f"{measure}_q10", f"{measure}_q90"]
    return table[[name for name in (*shown, "runs", "failures", "status", "error") if name in table]]


def _line(cell: Run) -> Line:
    """The line that a cell lies on; what is varied is not in its name, even where it is the calibration."""
    options = [item for item in cell.options if item[0] != cell.varied]
    return curves.method_title(cell.method, options), cell.n, cell.epsilon


def _labels(lines: Sequence[Line]) -> Callable[[Line], str]:
    """Names that say only what differs between the lines, and the method always."""
    several_n = len({n for _, n, _ in lines}) > 1
    several_epsilon = len({epsilon for _, _, epsilon in lines if math.isfinite(epsilon)}) > 1

    def label(line: Line) -> str:
        name, n, epsilon = line
        parts = [name, f"n = {n:,}" if several_n else ""]
        if several_epsilon and math.isfinite(epsilon):
            parts.append(f"ε = {short(epsilon)}")
        return ", ".join(filter(None, parts)) + ("" if math.isfinite(epsilon) else " (not private)")

    return label


def _line_rows(results: Sequence[CellResult], line: Line, measure: str) -> pd.DataFrame:
    """The cells of one line so far."""
    mine = [item for item in results if item.cell.varied and _line(item.cell) == line and measure in item.scores]
    return pd.DataFrame([{"value": item.cell.value, **item.row()} for item in mine])


def _sentence(
    results: Sequence[CellResult],
    cells: Sequence[Run],
    rows: Mapping[Line, pd.DataFrame],
    label: Callable[[Line], str],
    scored: Measure,
) -> str:
    """Best value of each line, and which others cannot be told from it."""
    measure, control = scored.name, control_title(varied_control(cells))
    parts = []
    for line, mine in rows.items():
        finite = mine[mine[measure] < math.inf] if len(mine) else mine
        if len(finite) < 2:
            continue
        ordered = finite.sort_values(measure, ascending=not scored.more_is_better, kind="stable")
        best, worst = ordered.iloc[0], ordered.iloc[-1]
        spread = 2 * (finite[f"{measure}_se"] ** 2 + best[f"{measure}_se"] ** 2) ** 0.5
        near = finite[((finite[measure] - best[measure]).abs() <= spread) & (finite["value"] != best["value"])]
        text = f"{label(line)}: mean {scored.title} is best, {short(best[measure])}, at {value_words(best['value'])}, "
        text += f"and worst, {short(worst[measure])}, at {value_words(worst['value'])}"
        if len(near):
            text += f" (not told apart from the best: {', '.join(map(value_words, near['value']))})"
        if len(finite) < len(mine):
            text += "; ∞ at some values, where a run released nothing"
        parts.append(text)
    if not parts:
        return none_is_best(results, cells)
    runs = max(len(result.seconds) for result in results)
    head = f"{control[:1].upper()}{control[1:]} varied, all else held. "
    end = f". Means of {runs} runs on the same draws; values within two standard errors are not told apart."
    return head + ". ".join(parts) + end + not_made(results) + so_far(len(results), len(cells))


def not_made(results: Sequence[CellResult]) -> str:
    """How many runs could not be made, and what the first one says; "" where all could."""
    failures = [sentence for result in results for sentence in result.failures]
    if not failures:
        return ""
    made = any(result.seconds for result in results)
    count = counted_runs(len(failures)) if made else "All runs so far"
    return f" {count} could not be made; the first: {failures[0]}"


def none_is_best(results: Sequence[CellResult], cells: Sequence[Run]) -> str:
    """What is said where no two means can be compared: what failed, and what is still to come."""
    text = not_made(results) + so_far(len(results), len(cells))
    if len(results) >= len(cells) and any(result.seconds for result in results):
        text = f"Fewer than two points have a finite mean, so none is best.{text}"
    return text.strip()


# Kernels against each other on the same bandwidth, a panel for each epsilon (fig:kernel_order_validation).


def kernel_chart(results: Sequence[CellResult], cells: Sequence[Run], measure: str = "mse") -> Chart:
    """A score against n, one line a kernel and one panel an epsilon, with standard errors.

    The cells are those of a sweep with ``vary=("kernel", [...])`` of one method.  Every bandwidth rule reads n,
    epsilon and beta and no kernel, so the kernels of a panel share their bandwidth; the paper's rule is ``h_opt``.
    """
    scored = curves.measure_here(cells, measure)
    if varied_control(cells) != "kernel":
        raise SpecError("vary", varied_control(cells), "this picture compares kernels; vary kernel")
    kernels = list(dict.fromkeys(cell.value for cell in cells if cell.varied))
    epsilons = sorted({cell.epsilon for cell in cells if cell.varied})
    sizes = sorted({cell.n for cell in cells})
    columns = min(2, len(epsilons))
    rows = -(-len(epsilons) // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[f"ε = {short(epsilon)}" for epsilon in epsilons],
        shared_xaxes=True,
        shared_yaxes="all",
        horizontal_spacing=0.06,
        vertical_spacing=0.28 / rows,
    )
    for place, epsilon in enumerate(epsilons):
        traces = _kernel_traces(results, measure, kernels, epsilon, shown=place == 0)
        figure.add_traces(traces, rows=place // columns + 1, cols=place % columns + 1)
    ticks = {"type": "log", "tickvals": sizes, "ticktext": [f"{n:,}" for n in sizes]}
    plain_layout(figure, 260 * rows + 120, ticks, _scale(results, scored))
    figure.update_xaxes(title="n", row=rows).update_yaxes(title=scored.axis, col=1)
    figure.update_layout(legend={"y": 1.12 if rows == 1 else 1.06}, margin={"t": 70})
    return Chart(figure, _kernel_sentence(results, cells, scored, epsilons), sensitivity_table(results, measure))


def _kernel_traces(
    results: Sequence[CellResult], measure: str, kernels: Sequence[str], epsilon: float, *, shown: bool
) -> list[go.Scatter]:
    """A panel's lines in order of n, and the method without privacy."""
    known = sorted((item for item in results if measure in item.scores), key=lambda item: item.cell.n)

    def against_n(mine: Sequence[CellResult], name: str, group: str, **look: Any) -> list[go.Scatter]:
        if not mine:
            return []
        told = {"name": name, "hover": name + ", n = %{x:,}: %{y:,.3~r}", "legendgroup": group, "showlegend": shown}
        return curves.measured(pd.DataFrame([item.row() for item in mine]), "n", measure, **told, **look)

    traces = []
    for number, kernel in enumerate(kernels):
        mine = [
            item for item in known if item.cell.varied and (item.cell.epsilon, item.cell.value) == (epsilon, kernel)
        ]
        look = {"dash": DASHES[2 * number % 5], "symbol": MARKS[number % 5] + ("-open" if number else "")}
        traces += against_n(mine, KERNELS[kernel].title, kernel, colour=PRIVATE, **look)
    plain = [item for item in known if not item.cell.varied and not is_private(item.cell)]
    cross = {"symbol": "x-thin", "rim": {"width": 2, "color": NON_PRIVATE}, "error_y": None}
    name = "not private"
    return traces + against_n(plain, name, name, colour=NON_PRIVATE, dash="dash", width=2, **cross)


def _kernel_sentence(
    results: Sequence[CellResult], cells: Sequence[Run], scored: Measure, epsilons: Sequence[float]
) -> str:
    """In how many settings which kernel is better by more than two standard errors."""
    measure = scored.name
    wins: dict[str, int] = {}
    settings = 0
    for epsilon in epsilons:
        mine = [item for item in results if item.cell.epsilon == epsilon and item.cell.varied and item.complete]
        for n in sorted({item.cell.n for item in mine}):
            here = [(item.row(), item.cell.value) for item in mine if item.cell.n == n and measure in item.scores]
            here.sort(key=lambda item: item[0][measure], reverse=scored.more_is_better)
            if len(here) < 2:
                continue
            settings += 1
            (first, kernel), (second, _) = here[0], here[1]
            spread = math.hypot(first[f"{measure}_se"], second[f"{measure}_se"])
            if abs(first[measure] - second[measure]) > 2 * spread:
                wins[kernel] = wins.get(kernel, 0) + 1
    names = dict.fromkeys(cell.value for cell in cells if cell.varied)
    if not settings:
        one = "There is one kernel only, so nothing is compared."
        return one if len(names) == 1 and results else none_is_best(results, cells)
    lead = "better" if len(names) == 2 else "best"
    parts = [f"{KERNELS[name].title.partition(' (')[0]} {wins.get(name, 0)}" for name in names]
    runs = max(len(item.seconds) for item in results)
    return (
        f"The {lead} {scored.title} in {settings} {'setting' if settings == 1 else 'settings'} of n and ε: "
        f"{', '.join(parts)}, too close to tell {settings - sum(wins.values())}. Too close: the best two are within "
        "two standard errors. Same draws and same bandwidth for all kernels; means of "
        f"{runs} runs with standard errors.{not_made(results)}{so_far(len(results), len(cells))}"
    )
