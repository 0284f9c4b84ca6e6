"""Pages that open from disk without a network: one picture, or a report of a page or two for stakeholders.

plotly.js stands in the file itself, and a content policy in its head forbids the browser to fetch anything at all.
Jinja2 escapes every text.  What a chart shows is its builder's business: for private data it draws releases only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from plotly.io import to_html
from plotly.offline import get_plotlyjs

from dpgrams_core.figures.style import INK, PRIVATE, RULE, SOFT_INK, WHITE, Chart
from dpgrams_core.model.format import one_in, percent, short, tiny
from dpgrams_core.model.guarantee import NEIGHBOURS, RESPONSE_ONLY, STATUSES
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.results import Guarantee
from dpgrams_core.privacy.ledger.book import BLIND_SPOT, Account, Charge
from dpgrams_core.privacy.meaning import belief
from dpgrams_core.sweeps.fingerprint import engine_fingerprint

MOST_ROWS = 8  # of a table in a report; the CSV has them all
PICTURE_HEIGHT = 430
FONT = "Arial, Helvetica, sans-serif"  # one that a saved picture finds again
CONFIG: dict[str, Any] = {"displaylogo": False, "responsive": True, "toImageButtonOptions": {"scale": 2}}
# 'unsafe-eval' is for plotly's 3-D drawings; with default-src 'none' a script still cannot reach anything.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def figure_html(chart: Chart, title: str) -> str:
    """One picture with its sentence as a page of its own, with buttons that save it as PNG and as SVG."""
    return TEMPLATES.get_template("figure.html").render(
        title=title, name=file_stem(title), picture=_picture(chart, 0, None)
    )


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
    """A report of a page or two, as HTML that needs no network: question, answer, pictures, guarantees, the ledger.

    Each chart stands under its title with its numbers, so that of two methods one sees which is which.
    ``guarantees`` are (name of the method, its guarantee), one for each private result shown; ``origin`` is where the
    numbers come from, such as ``simulation_origin``; ``ledger`` is from ``ledger_line``, for a release of private data;
    ``notes`` are further sentences, such as what is treated as public; ``made_at`` is now by default.
    """
    when = day_and_time(made_at or datetime.now(UTC))
    height = PICTURE_HEIGHT if len(charts) == 1 else PICTURE_HEIGHT - 90
    return TEMPLATES.get_template("report.html").render(
        title=question,
        answer=answer,
        pictures=[(chart, _picture(chart, number, height)) for number, chart in enumerate(charts)],
        guarantees=[(name, words[0], words[1:]) for name, item in guarantees if (words := guarantee_words(item))],
        not_covered=[*_NOT_COVERED, *([BLIND_SPOT] if ledger else [])],
        notes=notes,
        ledger=ledger,
        origin=f"{origin} Made on {when} by engine {engine_fingerprint()}.",
    )


RELEASE_ORIGIN = "One release of private data, with fresh randomness and without a seed."
ONE_ROW = "One row is protected: a person with k rows has k times the ε, and a δ that grows faster still."
_NOT_COVERED = (
    ONE_ROW,
    "That nobody learns about a person from the records of others: a true pattern of the group stays a pattern.",
    "Other releases of the same data: what they cost adds up.",
    "The settings, the box and the number of records, which are treated as public.",
)


def simulation_origin(seeds: Sequence[int]) -> str:
    """Where the numbers of a simulation come from."""
    listed = ", ".join(str(seed) for seed in dict.fromkeys(seeds))
    what = "one run, seed" if len(seeds) == 1 else f"{len(seeds)} runs, seed"
    return f"Simulation ({what} {listed}) on synthetic or public data: nobody’s private data are behind these numbers."


def day_and_time(when: datetime) -> str:
    """A moment as people write it; the same in every language of the machine.

    >>> day_and_time(datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
    '2 January 2026, 03:04 UTC'
    """
    there = when.astimezone(UTC)
    return f"{there.day} {_MONTHS[there.month - 1]} {there.year}, {there:%H:%M} UTC"


_MONTHS = (  # strftime would ask the machine for its language
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def ledger_line(charge: Charge, account: Account | None) -> str:
    """A charge and the state of its account in a few sentences; the account's name stays out.

    Without an account, where the ledger cannot be read now, there is nothing about what is left.
    """
    when = day_and_time(datetime.fromisoformat(charge.at))
    made = (
        f"charge {charge.id} on {when}: {charge.description}, ε = {short(charge.epsilon)}, δ = {tiny(charge.delta)} "
        f"({charge.status})."
    )
    if account is None:
        return f"{made} The ledger could not be read when this was written, so what is left is not shown."
    return (
        f"{made} {account.totals.statement} Of the cap of ε = {short(account.cap_epsilon)} and "
        f"δ = {tiny(account.cap_delta)}, ε = {short(account.left_epsilon)} and δ = {tiny(account.left_delta)} are left."
    )


def guarantee_words(guarantee: Guarantee) -> tuple[str, ...]:
    """A guarantee in sentences for people who do not know ε; they say what is proven and no more (meaning.py)."""
    if guarantee.status == "none" or not math.isfinite(guarantee.epsilon):
        return ("No privacy: the result was computed from the records as they are.", *guarantee.caveats)
    status = guarantee.words.capitalize() + STATUSES[guarantee.status].report
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
    """A name for a file: letters, digits and dashes only."""
    return "-".join(re.findall("[a-z0-9]+", text.lower()))[:60].strip("-") or "export"


def _picture(chart: Chart, number: int, height: int | None) -> Markup:
    """A chart on white with its sentence; with a height of its own it stands still, as on paper."""
    figure = go.Figure(chart.figure.to_dict())
    figure.update_layout(template="plotly_white", paper_bgcolor=WHITE, font={"size": 14, "family": FONT})
    if height is not None:
        figure.update_layout(height=height, margin={"b": 40})
    drawn = to_html(figure, include_plotlyjs=False, full_html=False, div_id=f"picture-{number}", config=CONFIG)
    return Markup('{}<p class="caption">{}</p>').format(Markup(drawn), chart.sentence)


# Every text is escaped by Jinja2; what is Markup here is ours or plotly's.
TEMPLATES = Environment(
    loader=FileSystemLoader(ASSETS / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_COLOURS = {"ink": INK, "soft_ink": SOFT_INK, "ground": WHITE, "rule": RULE, "private": PRIVATE}
_STYLE = Markup(TEMPLATES.get_template("report.css").render(_COLOURS))
TEMPLATES.globals |= {"policy": Markup(POLICY), "style": _STYLE, "most_rows": MOST_ROWS}
TEMPLATES.globals["plotly"] = lambda: Markup(get_plotlyjs())
TEMPLATES.filters["cell"] = lambda value: short(value) if isinstance(value, float) else str(value)
