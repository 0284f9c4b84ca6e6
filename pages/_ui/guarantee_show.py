"""What the Guarantee page shows: beliefs as bars, methods as a table, charts that fill in later."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd
import streamlit as st

from dpgrams_core.comparison import Row
from dpgrams_core.figures import Chart, short
from dpgrams_core.guarantees import GIVEN_REPRESENTATION, full_status
from dpgrams_core.privacy.meaning import MARGIN, PRIORS, Belief, belief, odds_factor, one_in, percent, tiny
from dpgrams_core.sweeps import CellResult
from pages._ui import exports, frame, show

PAUSE = 0.4  # seconds between two drawings of a chart that fills in
CLAIMS = {"proven": "", "as published": "claims ", "nominal": "claims ", "none": ""}


def answer_sentence(after: Belief, epsilon: float, delta: float) -> str:
    """The page's answer; the part about delta says only what is proven (privacy/meaning.py)."""
    text = (
        f"At ε = {short(epsilon)} someone who was <b>{percent(after.before)}</b> sure that your record is A and not B "
        f'could become at most <b class="private">{percent(after.most)}</b> sure once the result is out'
    )
    if after.chance_above > 0:
        text += (
            f" (δ = {tiny(delta)} leaves room for exceptions: a chance of at most "
            f"<b>{one_in(after.chance_above)}</b> to become more than a point surer)"
        )
    return text + "."


def beliefs(after: Belief, epsilon: float, delta: float) -> None:
    """Before and after, as bars and words."""
    st.html(
        f'<div class="bar-label">before: <b>{percent(after.before)}</b></div>'
        f'<div class="bar score" style="width:{100 * after.before:.1f}%"></div>'
        f'<div class="bar-label">after, at most: <b>{percent(after.most)}</b></div>'
        f'<div class="bar noise" style="width:{100 * after.most:.1f}%"></div>'
        f'<div class="bar-label">after, at least: <b>{percent(after.least)}</b></div>'
        f'<div class="bar noise" style="width:{100 * after.least:.1f}%"></div>'
    )
    st.caption(
        f"The odds of A against B grow or shrink at most {short(odds_factor(epsilon))}-fold (e^ε), even for someone "
        "who knows all other records. "
        f"δ allows rare results that say more; averaged over all results, the part above {percent(after.most)} is at "
        f"most {tiny(after.excess)}. Not promised: that nobody learns about you from the records of others."
    )
    with st.expander("Table", key="beliefs_table"):
        table = _belief_table(epsilon, delta)
        st.dataframe(table, hide_index=True, width="stretch")
        exports.download(exports.table_file(table, "beliefs"), "beliefs_csv")


def _belief_table(epsilon: float, delta: float) -> pd.DataFrame:
    found = [belief(prior, epsilon, delta) for prior in PRIORS]
    return pd.DataFrame(
        {
            "sure before": [percent(item.before) for item in found],
            "after, at least": [f"{100 * item.least:.4g}%" for item in found],
            "after, at most": [f"{100 * item.most:.6g}%" for item in found],
            f"chance of more than {100 * MARGIN:g} point above": [one_in(item.chance_above) for item in found],
            "average above": [tiny(item.excess) for item in found],
        }
    )


def holds_for(rows: Sequence[Row]) -> str:
    """For which of the methods the answer is more than a claim."""
    parts = [
        ("proven", "Proven for: {}."),
        (full_status("proven", GIVEN_REPRESENTATION), f"Proven, {GIVEN_REPRESENTATION}, for: {{}}."),
        ("as published", "Stated, but with a gap in the proof: {}."),
        (full_status("as published", GIVEN_REPRESENTATION), f"Stated, {GIVEN_REPRESENTATION}, with a gap: {{}}."),
        ("nominal", "Not proven for: {}."),
        ("none", "Without any limit: {}."),
    ]
    found = [(text, [row.candidate.title for row in rows if row.guarantee.words == words]) for words, text in parts]
    return " ".join(text.format("; ".join(titles)) for text, titles in found if titles)


def methods_table(rows: Sequence[Row], measured: Mapping[str, CellResult]) -> str:
    """Every method side by side as an HTML table (made by us, values escaped); a list of cards on a phone."""
    heads = ("method", "ε and δ", "noise", "noise / hides", "predicted error", "measured error", "modes found")
    body = "".join(_method_row(row, measured.get(row.candidate.key), heads) for row in rows)
    return (
        '<table class="methods"><thead><tr>'
        + "".join(f"<th>{html.escape(name)}</th>" for name in heads)
        + f"</tr></thead><tbody>{body}</tbody></table>"
    )


def _method_row(row: Row, result: CellResult | None, heads: Sequence[str]) -> str:
    guarantee, ratio = row.guarantee, row.ratio
    words, colour = frame.status_words(guarantee.words), frame.status_colour(guarantee.words)
    cells = (
        (f"{CLAIMS[guarantee.status]}ε = {short(guarantee.epsilon)}", _delta_words(row)),
        ("none" if row.noise is None else short(row.noise), ""),
        (
            "–" if ratio is None else f"{short(ratio)} × {row.hides}",
            "drowned" if ratio is not None and ratio > 1 else "",
        ),
        _predicted_words(row),
        *_measured_words(result),
    )
    about = " · ".join(part for part in (row.facts, f"h = {short(row.bandwidth)}") if part)
    texts = (about, guarantee.statement, *guarantee.caveats)
    return (
        f'<tr><td><b>{html.escape(row.candidate.title)}</b> <span class="status {colour}">{html.escape(words)}</span>'
        + "".join(f"<small>{html.escape(text)}</small>" for text in texts)
        + "</td>"
        + "".join(
            f'<td data-label="{html.escape(name)}"><span>{html.escape(value)}</span>'
            f"{f'<small>{html.escape(note)}</small>' if note else ''}</td>"
            for name, (value, note) in zip(heads[1:], cells, strict=True)
        )
        + "</tr>"
    )


def _predicted_words(row: Row) -> tuple[str, str]:
    if row.prediction.lost:
        return "a guess", "noise wins"
    # A start of DP-GRAMS may reach no mode at all, which the prediction leaves out.
    return short(row.prediction.total), "if reached" if row.candidate.method == "dp_grams" else ""


def _delta_words(row: Row) -> str:
    return "" if row.guarantee.status == "none" else f"δ = {tiny(row.guarantee.delta)}"


def _measured_words(result: CellResult | None) -> tuple[tuple[str, str], tuple[str, str]]:
    """The measured error and the modes found, each with its small print."""
    if result is None:
        return ("not yet", ""), ("not yet", "")
    row = result.row()
    if not row["runs"]:
        return ("failed", row["error"]), ("–", "")
    error, spread = short(row["mse_per_true_mode"]), row["mse_per_true_mode_se"]
    if spread == spread:
        error += f" ± {spread:.2g}"
    failed = f", {row['failures']} failed" if row["failures"] else ""
    found = f"{row['found']:.1f} of {row['found'] + row['missed']:g}"
    return (error, f"{row['runs']} runs{failed}"), (
        found,
        f"{row['missed']:.1f} missed, {row['spurious']:.1f} spurious",
    )


class LateChart:
    """A chart that has its place now and is filled in after the rest of the page stands.

    Streamlit ends a running script at its next screen call, so each step must be short; what the steps have
    computed is cached and kept.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.picture, self.text, self.bar, self.table = st.empty(), st.empty(), st.empty(), st.empty()
        self.drawn = 0

    def show(self, chart: Chart) -> None:
        """Draw or redraw."""
        self.drawn += 1
        key = f"{self.key}_chart_{self.drawn}"
        self.picture.plotly_chart(chart.figure, key=key, config=show.CONFIG, alt=chart.sentence)
        self.text.caption(chart.sentence)

    def fill(self, steps: Iterable[int], total: int, draw: Callable[[], Chart], after: Callable[[], None]) -> None:
        """Run the steps, redrawing now and then; ``after`` follows each drawing; the table comes last."""
        shown = 0.0
        for done in steps:
            if done < total and time.monotonic() - shown < PAUSE:
                continue
            self.show(draw())
            after()
            if done < total:
                self.bar.progress(done / total, text=f"{done} of {total} steps; moving any control stops them")
            shown = time.monotonic()
        self.bar.empty()
        self.finish(draw())

    def finish(self, chart: Chart) -> None:
        """The table under the chart."""
        with self.table.container():
            show.table(chart, self.key)
