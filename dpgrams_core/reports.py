"""Pages that open from disk without a network: one picture, or a report of one page for stakeholders.

plotly.js stands in the file itself, and a content policy in its head forbids the browser to fetch anything at all.
Every text is escaped.  What a chart shows is its builder's business: for private data a builder draws releases only.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.io import to_html
from plotly.offline import get_plotlyjs

from dpgrams_core.figures.style import PRIVATE, Chart, short
from dpgrams_core.fingerprint import engine_fingerprint
from dpgrams_core.guarantees import NEIGHBOURS, RESPONSE_ONLY
from dpgrams_core.privacy.ledger import BLIND_SPOT, Account, Charge
from dpgrams_core.privacy.meaning import belief, one_in, percent, tiny
from dpgrams_core.results import Guarantee

MOST_ROWS = 8  # of a table in a report; the CSV has them all
PICTURE_HEIGHT = 430
FONT = "Arial, Helvetica, sans-serif"  # one that a saved picture finds again
CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "responsive": True,
    "toImageButtonOptions": {"scale": 2},
}
# 'unsafe-eval' is for plotly's 3-D drawings; with default-src 'none' a script still cannot reach anything.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_STYLE = f"""
body {{ font: 17px/1.4 system-ui, sans-serif; color: #1B1F24; background: white; max-width: 62rem; margin: 1.2rem auto;
  padding: 0 1rem; }}
h1 {{ font-size: 1.75rem; margin: 0 0 .4rem; }} h2 {{ font-size: 1.15rem; margin: 0 0 .3rem; }}
p, ul {{ margin: .3rem 0; }} ul {{ padding-left: 1.2rem; }}
.answer {{ font-size: 1.35rem; white-space: pre-line; }}
.caption, footer {{ color: #4A515B; font-size: .9rem; }}
.pictures {{ display: flex; flex-wrap: wrap; gap: 1rem; }} .pictures > div {{ flex: 1 1 24rem; min-width: 0; }}
.card {{ border: 2px solid {PRIVATE}; border-radius: .5rem; padding: .6rem .9rem; margin: .7rem 0; }}
table {{ border-collapse: collapse; font-size: .85rem; margin: .3rem 0; }}
th, td {{ border-bottom: 1px solid #C9CED6; padding: .1rem .6rem; text-align: left; }}
@page {{ size: A4; margin: 11mm; }}
@media print {{ body {{ margin: 0; font-size: 11pt; max-width: none; }} button {{ display: none; }}
  .pictures, .card, table {{ break-inside: avoid; }} }}
"""
# A saved picture has no buttons in it.
_SAVE = """
function save(format, filename) {
  const drawn = document.getElementById("picture-0"), { width, height } = drawn.getBoundingClientRect();
  const layout = { ...drawn.layout, sliders: [], updatemenus: [] };
  Plotly.downloadImage({ data: drawn.data, layout }, { format, width, height, scale: 2, filename });
}
"""
_MEANINGS = {
    "proven": "",
    "as published": ": the paper states it, and its proof has a gap",
    "nominal": ": a claim, not a proof",
}


def figure_html(chart: Chart, title: str) -> str:
    """One picture with its sentence as a page of its own, with buttons that save it as PNG and as SVG.

    >>> import plotly.graph_objects as go
    >>> page = figure_html(Chart(go.Figure(), "Nothing is drawn.", pd.DataFrame()), "An <empty> figure")
    >>> "<h1>An &lt;empty&gt; figure</h1>" in page, "Save as SVG" in page
    (True, True)
    """
    name = file_stem(title)
    buttons = "".join(
        f"<button onclick=\"save('{kind}', '{name}')\">Save as {kind.upper()}</button> " for kind in ("png", "svg")
    )
    body = f"<h1>{html.escape(title)}</h1>{_picture(chart, 0, None)}<p>{buttons}</p><script>{_SAVE}</script>"
    return _page(title, body)


def stakeholder_report(
    *,
    question: str,
    answer: str,
    charts: Sequence[Chart],
    guarantees: Sequence[tuple[str, Guarantee]],
    origin: str,
    ledger: str | None = None,
    notes: Sequence[str] = (),
    made_at: datetime | None = None,
) -> str:
    """A report of one page: the question, the answer, the picture, the guarantee in words, the line of the ledger.

    Parameters
    ----------
    question, answer : plain text.
    charts : one or two pictures with their sentences and tables.
    guarantees : (name of the method, its guarantee), one for each private result shown.
    origin : where the numbers come from, such as ``simulation_origin`` or ``RELEASE_ORIGIN``.
    ledger : from ``ledger_line``, for a release of private data.
    notes : further sentences, such as what is treated as public.
    made_at : the date on it; now by default.

    Returns
    -------
    str
        HTML that needs no network.
    """
    when = (made_at or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    height = PICTURE_HEIGHT if len(charts) == 1 else PICTURE_HEIGHT - 90
    pictures = "".join(f"<div>{_picture(chart, number, height)}</div>" for number, chart in enumerate(charts))
    parts = [
        f"<h1>{html.escape(question)}</h1>",
        f'<p class="answer">{html.escape(answer)}</p>',
        f'<div class="pictures">{pictures}</div>',
        "".join(_table(chart.table) for chart in charts),
        *(_guarantee_card(name, guarantee) for name, guarantee in guarantees),
        "<h2>What this does not cover</h2>" + _list([*_NOT_COVERED, *([BLIND_SPOT] if ledger else []), *notes]),
        f"<p><b>Ledger:</b> {html.escape(ledger)}</p>" if ledger else "",
        f"<footer>{html.escape(origin)} Made {when} by engine {engine_fingerprint()}.</footer>",
    ]
    return _page(question, "".join(parts))


RELEASE_ORIGIN = "One release of private data, with fresh randomness and without a seed."
ONE_ROW = "One row is protected: a person with k rows has k times the ε, and a δ that grows faster still."
_NOT_COVERED = (
    ONE_ROW,
    "That nobody learns about a person from the records of others: a true pattern of the group stays a pattern.",
    "Other releases of the same data: what they cost adds up.",
    "The settings, the box and the number of records, which are treated as public.",
)


def simulation_origin(seeds: Sequence[int]) -> str:
    """Where the numbers of a simulation come from.

    >>> simulation_origin([3])
    'Simulation (one run, seed 3) on synthetic or public data: nobody’s private data are behind these numbers.'
    """
    listed = ", ".join(str(seed) for seed in dict.fromkeys(seeds))
    what = "one run, seed" if len(seeds) == 1 else f"{len(seeds)} runs, seed"
    return f"Simulation ({what} {listed}) on synthetic or public data: nobody’s private data are behind these numbers."


def ledger_line(charge: Charge, account: Account | None) -> str:
    """A charge and the state of its account in a few sentences; the account's name stays out.

    Without an account, where the ledger cannot be read now, there is nothing about what is left.
    """
    made = (
        f"charge {charge.id} at {charge.at}: {charge.description}, ε = {charge.epsilon:g}, δ = {charge.delta:g} "
        f"({charge.status})."
    )
    if account is None:
        return f"{made} The ledger could not be read when this was written, so what is left is not shown."
    return (
        f"{made} {account.totals.statement} Of the cap of ε = {account.cap_epsilon:g} and "
        f"δ = {account.cap_delta:g}, ε = {account.left_epsilon:g} and δ = {account.left_delta:g} are left."
    )


def guarantee_words(guarantee: Guarantee) -> tuple[str, ...]:
    """A guarantee in sentences for people who do not know ε; they say what is proven and no more (meaning.py).

    >>> words = guarantee_words(Guarantee(epsilon=1.0, delta=1e-6, status="proven", statement="A proof."))
    >>> print(words[1][:80])
    Someone who was 50% sure that a record is A and not B can become at most 73% sur
    """
    if guarantee.status == "none" or not math.isfinite(guarantee.epsilon):
        return ("No privacy: the result was computed from the records as they are.", *guarantee.caveats)
    status = guarantee.words.capitalize() + _MEANINGS[guarantee.status]
    head = (
        f"{status}. ε = {short(guarantee.epsilon)}, δ = {tiny(guarantee.delta)}, "
        f"neighbours: {guarantee.neighbours} ({NEIGHBOURS[guarantee.neighbours]})."
    )
    after = belief(0.5, *guarantee.of_replacement)
    subject = "Someone" if guarantee.words == "proven" else "If the claim holds, someone"
    if guarantee.status == "proven" and guarantee.condition:
        subject = f"{guarantee.condition.capitalize()}, someone"
    what, known, end = "a record is", "all other records", "."
    if guarantee.neighbours == RESPONSE_ONLY:
        what, known = "the response of a record is", "all other records and every predictor"
        end = ". Predictors are not protected."
    risk = (
        f"{subject} who was 50% sure that {what} A and not B can become at most {percent(after.most)} sure once the "
        f"result is out, even knowing {known}"
    )
    if after.chance_above > 0:
        risk += (
            f" (δ leaves room for exceptions: a chance of at most {one_in(after.chance_above)} to become more than a "
            "point surer)"
        )
    return (head, risk + end, guarantee.statement, *guarantee.caveats)


def file_stem(text: str) -> str:
    """A name for a file: letters, digits and dashes only.

    >>> file_stem("What does ε = 1 cost?")
    'what-does-1-cost'
    """
    kept = "".join(sign if sign.isascii() and sign.isalnum() else " " for sign in text.lower())
    return "-".join(kept.split())[:60].strip("-") or "export"


def _guarantee_card(name: str, guarantee: Guarantee) -> str:
    first, *rest = guarantee_words(guarantee)
    return (
        f'<section class="card"><h2>Is it safe? {html.escape(name)}</h2><p><b>{html.escape(first)}</b></p>'
        f"{_list(rest)}</section>"
    )


def _list(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in sentences) + "</ul>"


def _picture(chart: Chart, number: int, height: int | None) -> str:
    """A chart on white with its sentence; with a height of its own it stands still, as on paper."""
    figure = go.Figure(chart.figure)
    figure.update_layout(template="plotly_white", paper_bgcolor="white", font={"size": 14, "family": FONT})
    if height is not None:
        figure.frames = []
        figure.update_layout(height=height, sliders=[], updatemenus=[], margin={"b": 40})
    drawn = to_html(
        figure, include_plotlyjs=False, full_html=False, div_id=f"picture-{number}", config=CONFIG, auto_play=False
    )
    return f'{drawn}<p class="caption">{html.escape(chart.sentence)}</p>'


def _table(frame: pd.DataFrame) -> str:
    """The first rows of a table; pandas is not asked, since its escaping depends on an option."""
    if frame.empty:
        return ""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in frame.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(value))}</td>" for value in row) + "</tr>"
        for row in frame.head(MOST_ROWS).itertuples(index=False, name=None)
    )
    more = len(frame) - MOST_ROWS
    rest = f'<p class="caption">and {more:,} more rows, which the CSV has</p>' if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return short(value)
    return str(value)


def _page(title: str, body: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style>"
        f"<script>window.PlotlyConfig = {{MathJaxConfig: 'local'}};</script><script>{get_plotlyjs()}</script></head>"
        f"<body>{body}</body></html>\n"
    )
