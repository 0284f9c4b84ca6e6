"""The pictures of the Guarantee page: the best test, errors and budgets side by side, records needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.curve import curve, log_axis, so_far, whiskers
from dpgrams_core.figures.style import GREY, LIGHT_PRIVATE, LOG, NON_PRIVATE, PRIVATE, QUIET, Chart, plain_layout, tint
from dpgrams_core.figures.traces import line, points
from dpgrams_core.model.format import percent, short, tiny
from dpgrams_core.privacy.accountants import ACCOUNTANTS, Quote
from dpgrams_core.privacy.meaning import gaussian_power, largest_power, meeting_point
from dpgrams_core.studies.comparison import USEFUL_RATIO, NoiseCurve, Row, round_epsilon_alone
from dpgrams_core.sweeps.run import CellResult

DASHES = ("dot", "dash", "dashdot", "longdash", "solid")
MARKS = ("circle-open", "square", "diamond", "triangle-up", "circle")
DOTTED = {"color": QUIET, "dash": "dot"}
NAMES = {"autorange": "reversed", "automargin": True}
PERCENT = {"tickformat": ".0%"}
DECADES = {**LOG, "dtick": 1}
STAGE_COLOURS = {"start (DAP)": LIGHT_PRIVATE, "ascent": PRIVATE, "the release": PRIVATE}


def power_chart(epsilon: float, delta: float, multiplier: float) -> Chart:
    """True against false alarms: a coin, what (epsilon, delta) allows, and the exact curve of one Gaussian release."""
    x = np.concatenate([[0.0], np.geomspace(1e-6, 0.05, 60), np.linspace(0.05, 0.95, 91)[1:-1]])
    x = np.unique(np.concatenate([x, 1 - x]))
    bound, exact = largest_power(x, epsilon, delta), gaussian_power(x, multiplier)
    hover, most = "false alarms %{x:.3f}: at most %{y:.3f} true ones", f"ε = {short(epsilon)}, δ = {tiny(delta)}"
    filled = {"fill": "tozeroy", "fillcolor": tint(PRIVATE, 0.1)}
    figure = go.Figure(
        [
            line((x, bound), f"the most that {most} allows", PRIVATE, hover, dash="dash"),
            line((x, exact), "the functional release, exactly", PRIVATE, hover, width=3, **filled),
            line(([0, 1], [0, 1]), "perfect privacy: a coin", QUIET, dash="dot"),
        ]
    )
    x_axis = {"title": "false alarms: says A, but it is B", "range": [0, 1], "constrain": "domain", **PERCENT}
    y_axis = {"title": "true alarms: says A, and it is", "range": [0, 1.01], **PERCENT}
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
    return Chart(plain_layout(figure, 420, x_axis, y_axis), sentence, table)


def errors_chart(rows: Sequence[Row], measured: Mapping[str, CellResult], runs: int, radius: float) -> Chart:
    """Predicted and measured squared error of every method, with everything else in the table."""
    titles = [row.candidate.title for row in rows]
    found = {key: result.row() for key, result in measured.items()}
    colours = [NON_PRIVATE if row.guarantee.status == "none" else PRIVATE for row in rows]
    errors = [_error_of(found.get(row.candidate.key)) for row in rows]
    predicted = [row.prediction.total for row in rows]
    measures = [value if value < math.inf else None for value, _ in errors]
    opened = {"symbol": "diamond-open", "size": 12, "color": colours, "line": {"width": 2}}
    full = {"symbol": "circle", "size": 11, "color": colours}
    bars = whiskers([spread for _, spread in errors], color=tint(GREY, 0.9))  # seen in light and in dark
    figure = go.Figure(
        [
            points((predicted, titles), "predicted", opened, "%{y}: predicted %{x:,.3~r}"),
            points((measures, titles), "measured", full, "%{y}: measured %{x:,.3~r}", error_x=bars),
        ]
    )
    figure.add_vline(x=radius**2, line=DOTTED)
    plain_layout(figure, 90 + 48 * len(rows), {"title": "squared error per true mode", **DECADES}, NAMES)
    table = pd.DataFrame([_table_row(row, found.get(row.candidate.key)) for row in rows])
    return Chart(figure, _error_sentence(rows, found, runs, radius), table)


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
        **{name: found.get(name, math.nan) for name in ("found", "missed", "spurious")},
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
                hovertemplate="%{y}: " + stage + " ε = %{x:,.3~r}<extra></extra>",
            )
            for stage in stages
        ]
    )
    x_axis = {"title": "ε, as each method counts it", "rangemode": "tozero"}
    plain_layout(figure, 90 + 44 * len(private), x_axis, NAMES, barmode="stack", legend_traceorder="normal")
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
    return Chart(figure, sentence, table)


def _alone(event: Any, delta: float) -> float:
    each = round_epsilon_alone(event, delta)
    return float(getattr(event, "epsilon_each", math.nan)) if each is None else each


def records_chart(curves: Sequence[NoiseCurve], n: int, total: int) -> Chart:
    """Noise over what it hides against n, with the line below which a method is useful.

    ``total`` is the number of sizes that will come; what is said waits for all of them.
    """
    figure = go.Figure()
    for i, drawn in enumerate(curves):
        dash, symbol = (DASHES[i % 5], MARKS[i % 5]) if i < len(curves) - 1 else ("solid", "circle")
        hover = "n = %{x:,}: noise is %{y:,.3~r} times the signal<extra>" + drawn.title + "</extra>"
        look: dict[str, Any] = {"dash": dash, "symbol": symbol, "size": 7, "hovertemplate": hover}
        figure.add_traces(curve(drawn.title, drawn.sizes, drawn.ratios, PRIVATE, "", **look))
    for level, dash in ((1.0, "dot"), (USEFUL_RATIO, "solid")):
        figure.add_hline(y=level, line={"color": QUIET, "dash": dash})
    # The curves fall from the upper left to the lower right, so the other corners are free for words.
    for text, x, y in (("drowned: noise above the signal", 1, 1), ("useful: below a third", 0, 0)):
        side = {"xanchor": "right" if x else "left", "yanchor": "top" if y else "bottom"}
        figure.add_annotation(text=text, x=x, y=y, xref="paper", yref="paper", showarrow=False, **side)
    figure.add_vline(x=n, line=DOTTED)
    x_axis = {"title": "records, n", "range": [1.8, 6.2], **DECADES}
    plain_layout(figure, 440, x_axis, {"title": "noise / what it hides", **DECADES})
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
    return Chart(figure, sentence, table)


def _rounded(curve: NoiseCurve, limit: float) -> str:
    """Where a curve falls below a limit: a number, or "below" or "beyond" the sizes looked at."""
    if not curve.sizes:
        return ""
    size = curve.stays_below(limit)
    if size is None:
        return f"beyond n = {curve.sizes[-1]:,}"
    if size <= curve.sizes[0]:
        return f"below n = {curve.sizes[0]:,}"
    return short(float(tiny(size)))


# What several accountants charge for the same rounds, over the epsilon that the noise was set for.

# Line and mark of each accountant in its turn; the last, which is exact, has a whole line.
STYLES = (
    *(("dot", "square-open"), ("dashdot", "triangle-up-open"), ("dash", "diamond-open")),
    *(("longdash", "circle-open"), ("solid", "circle")),
)
WAYS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def accountants_chart(
    targets: Sequence[float], quoted: Mapping[float, Mapping[str, Quote]], current: float, what: str
) -> Chart:
    """Charged against intended epsilon, one line an accountant; one that cannot price is named with its reason.

    ``targets`` are all that will come, so that the axes stand still; ``current`` is the ascent's share now.
    """
    done = [target for target in targets if target in quoted]
    ends = [targets[0], targets[-1]]
    figure = go.Figure(line((ends, ends), "what the noise was set for", QUIET, width=6))
    for (name, accountant), (dash, mark) in zip(ACCOUNTANTS.items(), cycle(STYLES), strict=False):
        values = [_or_gap(quoted[target][name].epsilon) for target in done]
        title = accountant.title
        if done and not any(map(math.isfinite, values)):
            title += " (cannot price)"
        hover = "set for ε = %{x:g}: " + title + " charges %{y:,.3~r}"
        figure.add_traces(curve(title, done, values, PRIVATE, hover, dash=dash, symbol=mark))
    figure.add_vline(x=current, line=DOTTED)
    x_axis = log_axis("ε that the noise was set for", list(targets), 1.2)
    plain_layout(figure, 440, x_axis, {"title": "ε charged", **DECADES})
    table = pd.DataFrame([_row(target, quoted[target]) for target in done])
    return Chart(figure, _sentence(targets, done, quoted, current, what), table)


def _or_gap(value: float | None) -> float:
    return math.nan if value is None else value


def _row(target: float, quotes: Mapping[str, Quote]) -> dict[str, object]:
    titles = {name: accountant.title for name, accountant in ACCOUNTANTS.items()}
    reasons = [f"{title}: {quotes[name].reason}" for name, title in titles.items() if quotes[name].reason]
    charged = {f"{title}, ε": _or_gap(quotes[name].epsilon) for name, title in titles.items()}
    return {"set for ε": target, **charged, "cannot price": "; ".join(reasons)}


def _sentence(
    targets: Sequence[float],
    done: Sequence[float],
    quoted: Mapping[float, Mapping[str, Quote]],
    current: float,
    what: str,
) -> str:
    text = f"The same noise, priced {WAYS[len(ACCOUNTANTS)]} ways "
    text += f"({what}; dotted: your ascent's share, ε = {short(current)}). "
    if done:
        middle = min(done, key=lambda target: abs(math.log(target)))
        prices = {ACCOUNTANTS[name].title: quote.epsilon for name, quote in quoted[middle].items()}
        charges = [f"{title} {short(price)}" for title, price in prices.items() if price is not None]
        text += f"Noise set for ε = {short(middle)} is charged: " + ", ".join(charges) + ". "
        reasons: dict[str, list[str]] = {}
        for target in done:
            for name, quote in quoted[target].items():
                if not math.isfinite(_or_gap(quote.epsilon)):
                    reason = f"{ACCOUNTANTS[name].title} cannot price: {quote.reason}"
                    reasons.setdefault(reason, []).append(short(target))
        for reason, where in reasons.items():
            text += reason + ("" if len(where) == len(done) else f" (at ε = {', '.join(where)})") + ". "
        text += "All are upper bounds on the same loss; the lowest line is the truest."
    return text + so_far(len(done), len(targets))
