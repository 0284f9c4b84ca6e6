"""The pictures of the Guarantee page: the best test, errors and budgets side by side, records needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.comparison import Row, round_epsilon_alone
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, QUIET, Chart, plain_layout, short
from dpgrams_core.noise_curves import USEFUL_RATIO, NoiseCurve
from dpgrams_core.privacy.meaning import gaussian_power, largest_power, meeting_point, percent, tiny
from dpgrams_core.sweeps import CellResult

DASHES = ("dot", "dash", "dashdot", "longdash", "solid")
MARKS = ("circle-open", "square", "diamond", "triangle-up", "circle")
STAGE_COLOURS = {"start (DAP)": "#F7C59F", "ascent": PRIVATE, "the release": PRIVATE}


def power_chart(epsilon: float, delta: float, multiplier: float) -> Chart:
    """True against false alarms: a coin, what (epsilon, delta) allows, and the exact curve of one Gaussian release."""
    x = np.concatenate([[0.0], np.geomspace(1e-6, 0.05, 60), np.linspace(0.05, 0.95, 91)[1:-1]])
    x = np.unique(np.concatenate([x, 1 - x]))
    bound, exact = largest_power(x, epsilon, delta), gaussian_power(x, multiplier)
    hover = "false alarms %{x:.3f}: at most %{y:.3f} true ones<extra></extra>"
    figure = go.Figure(
        [
            go.Scatter(
                x=x, y=bound, mode="lines", name=f"the most that ε = {short(epsilon)}, δ = {tiny(delta)} allows"
            ),
            go.Scatter(x=x, y=exact, mode="lines", name="the functional release, exactly"),
            go.Scatter(x=[0, 1], y=[0, 1], mode="lines", name="perfect privacy: a coin"),
        ]
    )
    figure.data[0].update(line={"color": PRIVATE, "dash": "dash"}, hovertemplate=hover)
    figure.data[1].update(
        line={"color": PRIVATE, "width": 3}, fill="tozeroy", fillcolor="rgba(227,108,10,0.10)", hovertemplate=hover
    )
    figure.data[2].update(line={"color": QUIET, "dash": "dot"}, hoverinfo="skip")
    figure.update_xaxes(title="false alarms: says A, but it is B", range=[0, 1], tickformat=".0%", constrain="domain")
    figure.update_yaxes(title="true alarms: says A, and it is", range=[0, 1.01], tickformat=".0%")
    at = np.array([0.001, 0.01, 0.05, 0.1, 0.25, 0.5])
    allowed, best = largest_power(at, epsilon, delta), gaussian_power(at, multiplier)
    table = pd.DataFrame(
        {
            "false alarms": at,
            "true alarms, perfect privacy": at,
            "functional release, exactly": best,
            "allowed by (ε, δ)": allowed,
            "misses at least (1 − allowed)": 1 - allowed,
        }
    )
    sentence = (
        f"A test that accuses wrongly in 5% of the cases can accuse rightly in at most {percent(float(allowed[2]))}; "
        f"against the functional release the best one reaches {percent(float(best[2]))}, and a coin 5%. "
        "The exact curve never passes the bound and meets it only at the rarest results (false alarms near "
        f"{tiny(meeting_point(epsilon, multiplier))})."
    )
    return Chart(plain_layout(figure, 420), sentence, table)


def errors_chart(rows: Sequence[Row], measured: Mapping[str, CellResult], runs: int, radius: float) -> Chart:
    """Predicted and measured squared error of every method, with everything else in the table."""
    titles = [row.candidate.title for row in rows]
    found = {key: result.row() for key, result in measured.items()}
    colours = [NON_PRIVATE if row.guarantee.status == "none" else PRIVATE for row in rows]
    errors = [_error_of(found.get(row.candidate.key)) for row in rows]
    figure = go.Figure(
        [
            go.Scatter(
                x=[row.prediction.total for row in rows],
                y=titles,
                mode="markers",
                name="predicted",
                marker={"symbol": "diamond-open", "size": 12, "color": colours, "line": {"width": 2}},
                hovertemplate="%{y}: predicted %{x:.3g}<extra></extra>",
            ),
            go.Scatter(
                x=[value if value < math.inf else None for value, _ in errors],
                y=titles,
                error_x={
                    "type": "data",
                    "array": [spread for _, spread in errors],
                    "color": "rgba(128,134,145,0.9)",  # seen in light and in dark
                    "thickness": 1.5,
                    "width": 4,
                },
                mode="markers",
                name="measured",
                marker={"symbol": "circle", "size": 11, "color": colours},
                hovertemplate="%{y}: measured %{x:.3g}<extra></extra>",
            ),
        ]
    )
    figure.add_vline(x=radius**2, line={"color": QUIET, "dash": "dot"})
    figure.update_xaxes(type="log", title="squared error per true mode", exponentformat="power", dtick=1)
    figure.update_yaxes(autorange="reversed", automargin=True)
    table = pd.DataFrame([_table_row(row, found.get(row.candidate.key)) for row in rows])
    return Chart(plain_layout(figure, 90 + 48 * len(rows)), _error_sentence(rows, found, runs, radius), table)


def _error_of(row: dict[str, Any] | None) -> tuple[float, float]:
    if row is None or "mse_per_true_mode" not in row:
        return math.nan, math.nan
    return float(row["mse_per_true_mode"]), float(row["mse_per_true_mode_se"])


def _table_row(row: Row, found: dict[str, Any] | None) -> dict[str, Any]:
    error, spread = _error_of(found)
    found = found or {}
    return {
        "method": row.candidate.title,
        "status": row.guarantee.words,
        "ε": row.guarantee.epsilon,
        "δ": row.guarantee.delta,
        "bandwidth h": row.bandwidth,
        "noise (standard deviation)": row.noise,
        "noise hides": row.hides if row.noise is not None else "",
        "its size (not private)": row.signal,
        "noise / size": row.ratio,
        "predicted error": row.prediction.total,
        "of it privacy": row.prediction.privacy,
        "of it sampling": row.prediction.sampling,
        "of it bias and unfinished climb": row.prediction.bias,
        "measured error": error,
        "standard error": spread,
        "runs": found.get("runs", 0),
        "found": found.get("found", math.nan),
        "missed": found.get("missed", math.nan),
        "spurious": found.get("spurious", math.nan),
        "paper's MSE": found.get("mse", math.nan),
        "failures": found.get("error", ""),
        "statement": row.guarantee.statement,
    }


def _error_sentence(rows: Sequence[Row], found: Mapping[str, dict[str, Any]], runs: int, radius: float) -> str:
    done = int(sum(row["runs"] + row["failures"] for row in found.values()))
    text = (
        "Open: predicted for a reference bump, a rough guide that leaves out starts which reach no mode. "
        f"Dotted: squared error {short(radius**2)}; nearer modes count as found."
    )
    proven = [row for row in rows if row.guarantee.words == "proven" and row.candidate.key in found]
    errors = [(_error_of(found[row.candidate.key])[0], row.candidate.title) for row in proven]
    if errors and done >= runs * len(rows):
        value, title = min(errors)
        text = f"Of the proven methods {title} has the least measured error, {short(value)}. " + text
        text += f" Filled: means of {runs} runs on fresh data, with standard errors."
        if any(_error_of(row)[0] == math.inf for row in found.values()):
            text += " No point: some run released no mode, because nothing stood above its noise."
    else:
        text += f" Filled: measured, {done} of {runs * len(rows)} runs so far."
    return text


def budget_chart(rows: Sequence[Row], delta: float) -> Chart:
    """How each private method spends its epsilon."""
    private = [row for row in rows if row.stages]
    stages = list(dict.fromkeys(name for row in private for name, _ in row.stages))
    figure = go.Figure(
        [
            go.Bar(
                x=[dict(row.stages).get(stage) for row in private],
                y=[row.candidate.title for row in private],
                orientation="h",
                name=stage if stage != "the release" else "the one release",
                marker={
                    "color": STAGE_COLOURS.get(stage, QUIET),
                    "pattern": {"shape": "/" if stage == "ascent" else ""},
                    "line": {"color": PRIVATE, "width": 1},
                },
                hovertemplate="%{y}: " + stage + " ε = %{x:.3g}<extra></extra>",
            )
            for stage in stages
        ]
    )
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    figure.update_xaxes(title="ε, as each method counts it", rangemode="tozero")
    figure.update_yaxes(autorange="reversed", automargin=True)
    table = pd.DataFrame(
        [
            {
                "method": row.candidate.title,
                "status": row.guarantee.words,
                "stage": stage,
                "ε": value,
                "share": value / sum(spent for _, spent in row.stages),
                "rounds or draws": getattr(event, "rounds", getattr(event, "count", 1)),
                "one round or draw alone, ε": _alone(event, delta),
            }
            for row in private
            for (stage, value), event in zip(row.stages, row.events, strict=True)
        ]
    )
    ascent = table[table["stage"] == "ascent"].iloc[-1]
    sentence = (
        f"DP-GRAMS pays for its starts and for its climb; the functional release pays once. "
        f"One round of {ascent['method']} alone would cost ε = {short(ascent['one round or draw alone, ε'])}, "
        f"all {int(ascent['rounds or draws'])} together {short(ascent['ε'])}: noise of many rounds adds up slowly."
    )
    return Chart(plain_layout(figure, 90 + 44 * len(private)), sentence, table)


def _alone(event: Any, delta: float) -> float:
    each = round_epsilon_alone(event, delta)
    return float(getattr(event, "epsilon_each", math.nan)) if each is None else each


def records_chart(curves: Sequence[NoiseCurve], n: int, total: int) -> Chart:
    """Noise over what it hides against n, with the line below which a method is useful.

    ``total`` is the number of sizes that will come; what is said waits for all of them.
    """
    figure = go.Figure()
    for i, curve in enumerate(curves):
        figure.add_trace(
            go.Scatter(
                x=curve.sizes,
                y=curve.ratios,
                mode="lines+markers",
                name=curve.title,
                line={"color": PRIVATE, "dash": DASHES[i % 5] if i < len(curves) - 1 else "solid"},
                marker={"symbol": MARKS[i % 5] if i < len(curves) - 1 else "circle", "size": 7, "color": PRIVATE},
                hovertemplate="n = %{x:,}: noise is %{y:.3g} times the signal<extra>" + curve.title + "</extra>",
            )
        )
    for level, dash in ((1.0, "dot"), (USEFUL_RATIO, "solid")):
        figure.add_hline(y=level, line={"color": QUIET, "dash": dash})
    # The curves fall from the upper left to the lower right, so the other corners are free for words.
    for text, x, y in (("drowned: noise above the signal", 1, 1), ("useful: below a third", 0, 0)):
        side = {"xanchor": "right" if x else "left", "yanchor": "top" if y else "bottom"}
        figure.add_annotation(text=text, x=x, y=y, xref="paper", yref="paper", showarrow=False, **side)
    figure.add_vline(x=n, line={"color": QUIET, "dash": "dot"})
    figure.update_xaxes(type="log", title="records, n", exponentformat="power", dtick=1, range=[1.8, 6.2])
    figure.update_yaxes(type="log", title="noise / what it hides", exponentformat="power", dtick=1)
    done = len(curves[0].sizes)
    table = pd.DataFrame(
        {
            "method": [curve.title for curve in curves],
            "noise equals the signal near n": [_rounded(curve, 1.0) for curve in curves],
            "useful from about n": [_rounded(curve, USEFUL_RATIO) for curve in curves],
            **{
                f"noise / signal at n = {size:,}": [curve.ratios[j] for curve in curves]
                for j, size in enumerate(curves[0].sizes)
                if j % 4 == 0
            },
        }
    )
    sentence = "Useful means: noise at most a third of what it hides. "
    if done < total:
        sentence += f"{done} of {total} sizes so far."
    else:
        order = sorted(curves, key=lambda curve: curve.stays_below(USEFUL_RATIO) or math.inf)
        words = [(curve.title, _rounded(curve, USEFUL_RATIO)) for curve in order]
        parts = [f"{title} {'' if where[0] == 'b' else 'near n = '}{where}" for title, where in words]
        sentence += (
            "At this ε that is " + "; ".join(parts) + ". "
            "DP-GRAMS hides a score, the functional release a height; dotted: your n, and noise as large as the signal."
        )
    return Chart(plain_layout(figure, 440), sentence, table)


def _rounded(curve: NoiseCurve, limit: float) -> str:
    """Where a curve falls below a limit: a number, or "below" or "beyond" the sizes looked at."""
    if not curve.sizes:
        return ""
    size = curve.stays_below(limit)
    if size is None:
        return f"beyond n = {curve.sizes[-1]:,}"
    if size <= curve.sizes[0]:
        return f"below n = {curve.sizes[0]:,}"
    return f"{int(float(f'{size:.2g}')):,}"
