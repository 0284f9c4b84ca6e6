"""What several accountants charge for the same rounds, over the epsilon that the noise was set for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.style import PRIVATE, QUIET, Chart, plain_layout, short
from dpgrams_core.privacy.accountants import ACCOUNTANTS, Quote

STYLES = {
    "basic": ("dot", "square-open"),
    "advanced": ("dashdot", "triangle-up-open"),
    "renyi": ("dash", "diamond-open"),
    "loss distribution": ("longdash", "circle-open"),
    "exact": ("solid", "circle"),
}
WORDS = {"renyi": "Rényi"}


def accountants_chart(
    targets: Sequence[float], quoted: Mapping[float, Mapping[str, Quote]], current: float, what: str
) -> Chart:
    """Charged against intended epsilon, one line an accountant; one that cannot price is named with its reason.

    ``targets`` are all that will come, so that the axes stand still; ``current`` is the ascent's share now.
    """
    done = [target for target in targets if target in quoted]
    figure = go.Figure(
        [
            go.Scatter(
                x=[targets[0], targets[-1]],
                y=[targets[0], targets[-1]],
                mode="lines",
                name="what the noise was set for",
                line={"color": QUIET, "width": 6},
                hoverinfo="skip",
            )
        ]
    )
    for name, (dash, mark) in STYLES.items():
        values = [_finite(quoted[target][name].epsilon) for target in done]
        title = WORDS.get(name, name)
        if done and all(value is None for value in values):
            title += " (cannot price)"
        figure.add_trace(
            go.Scatter(
                x=done,
                y=values,
                mode="lines+markers",
                name=title,
                line={"color": PRIVATE, "dash": dash},
                marker={"symbol": mark, "size": 9, "color": PRIVATE},
                hovertemplate="set for ε = %{x:g}: " + title + " charges %{y:.3g}<extra></extra>",
            )
        )
    figure.add_vline(x=current, line={"color": QUIET, "dash": "dot"})
    ticks = list(targets)
    edge = (math.log10(targets[0] / 1.2), math.log10(targets[-1] * 1.2))
    figure.update_xaxes(
        type="log", title="ε that the noise was set for", range=edge, tickvals=ticks, ticktext=[f"{t:g}" for t in ticks]
    )
    figure.update_yaxes(type="log", title="ε charged", exponentformat="power", dtick=1)
    table = pd.DataFrame([_row(target, quoted[target]) for target in done])
    return Chart(plain_layout(figure, 440), _sentence(targets, done, quoted, current, what), table)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _row(target: float, quotes: Mapping[str, Quote]) -> dict[str, object]:
    reasons = [f"{WORDS.get(name, name)}: {quotes[name].reason}" for name in ACCOUNTANTS if quotes[name].reason]
    charged = {
        f"{WORDS.get(name, name)}, ε": math.nan if quotes[name].epsilon is None else quotes[name].epsilon
        for name in ACCOUNTANTS
    }
    return {"set for ε": target, **charged, "cannot price": "; ".join(reasons)}


def _sentence(
    targets: Sequence[float],
    done: Sequence[float],
    quoted: Mapping[float, Mapping[str, Quote]],
    current: float,
    what: str,
) -> str:
    text = f"The same noise, priced five ways ({what}; dotted: your ascent's share, ε = {short(current)}). "
    if done:
        middle = min(done, key=lambda target: abs(math.log(target)))
        charges = [
            f"{WORDS.get(name, name)} {short(quote.epsilon)}"
            for name, quote in quoted[middle].items()
            if quote.epsilon is not None
        ]
        text += f"Noise set for ε = {middle:g} is charged: " + ", ".join(charges) + ". "
        reasons: dict[str, list[str]] = {}
        for target in done:
            for name, quote in quoted[target].items():
                if _finite(quote.epsilon) is None:
                    reasons.setdefault(f"{WORDS.get(name, name)} cannot price: {quote.reason}", []).append(
                        f"{target:g}"
                    )
        for reason, where in reasons.items():
            text += reason + ("" if len(where) == len(done) else f" (at ε = {', '.join(where)})") + ". "
        text += "All are upper bounds on the same loss; the lowest line is the truest."
    if len(done) < len(targets):
        text += f" {len(done)} of {len(targets)} points so far."
    return text
