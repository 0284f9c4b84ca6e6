"""Where the error comes from, as bars that build up to the whole."""

from __future__ import annotations

import math

import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.error_sources import ErrorSources, ErrorStep
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, QUIET, Chart, plain_layout, short

NAMES = {
    "mse": "mean squared error (MSE)",
    "mse_per_true_mode": "MSE per true mode",
    "centroid_mse": "centroid MSE",
    "ari": "1 − ARI",
    "nmi": "1 − NMI",
}
WHOLE = "Whole error"


def error_sources_chart(sources: ErrorSources) -> Chart:
    """Bars from the error without privacy, in blue, to that of the method; what takes error off is hatched.

    Each bar begins where the one above ends, with the standard error of the difference.  The numbers stand beside
    the names, where no error bar crosses them.
    """
    figure = go.Figure()
    names = [*(step.title for step in sources.steps), WHOLE]
    figures = [*(_signed(step.change, sources.total) for step in sources.steps), short(sources.total)]
    if math.isfinite(sources.total) and all(math.isfinite(step.change) for step in sources.steps):
        _add_bars(figure, sources)
    figure.update_yaxes(
        type="category",
        categoryarray=names,
        autorange="reversed",
        tickvals=names,
        ticktext=[f"{name}  <b>{value}</b>" for name, value in zip(names, figures, strict=True)],
    )
    figure.update_xaxes(title=NAMES[sources.measure], rangemode="tozero", zeroline=True, zerolinecolor=QUIET)
    plain_layout(figure, 90 + 36 * len(names))
    figure.update_layout(showlegend=False, bargap=0.25, barmode="overlay")
    sentence = sources.sentence
    if not sources.complete:
        sentence += f" {sources.runs} of {sources.wanted} runs so far."
    return Chart(figure, sentence, _table(sources))


def _add_bars(figure: go.Figure, sources: ErrorSources) -> None:
    figure.add_trace(
        go.Bar(
            orientation="h",
            y=[step.title for step in sources.steps],
            x=[step.change for step in sources.steps],
            base=[0.0, *(step.error for step in sources.steps[:-1])],
            marker={
                "color": [NON_PRIVATE, *[PRIVATE] * (len(sources.steps) - 1)],
                "pattern": {"shape": ["/" if step.change < 0 else "" for step in sources.steps]},
            },
            error_x={"type": "data", "array": [step.change_se for step in sources.steps], "thickness": 1.5, "width": 4},
            customdata=[[step.words, short(step.change), short(step.error)] for step in sources.steps],
            hovertemplate="%{customdata[0]}: %{customdata[1]}, together %{customdata[2]}<extra></extra>",
            name="part",
        )
    )
    figure.add_trace(
        go.Bar(
            orientation="h",
            y=[WHOLE],
            x=[sources.total],
            marker={"color": PRIVATE, "line": {"color": QUIET, "width": 2}},
            error_x={"type": "data", "array": [sources.steps[-1].error_se], "thickness": 1.5, "width": 4},
            hovertemplate="the method as it is: %{x:.3g}<extra></extra>",
            name="whole",
        )
    )


def _signed(value: float, total: float) -> str:
    """A part with its sign; less than a thousandth of the whole is not worth its digits."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) < 0.001 * total:
        return "≈ 0"
    return ("+" if value > 0 else "−") + short(abs(value))


def _table(sources: ErrorSources) -> pd.DataFrame:
    return pd.DataFrame([_row(step, sources.total) for step in sources.steps])


def _row(step: ErrorStep, total: float) -> dict[str, object]:
    return {
        "step": step.title,
        "switched on": step.words,
        "error": step.error,
        "error_se": step.error_se,
        "change": step.change,
        "change_se": step.change_se,
        "share": step.change / total if math.isfinite(total) and total > 0 else math.nan,
        "runs": step.runs,
    }
