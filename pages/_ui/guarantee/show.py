"""What the Guarantee page shows: beliefs as bars, methods as a table, and the proof."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from dpgrams_core.model.format import fixed, give_or_take, one_in, percent, short, tiny
from dpgrams_core.model.guarantee import GIVEN_REPRESENTATION, STATUSES, full_status, status_colour, status_words
from dpgrams_core.model.places import ASSETS
from dpgrams_core.privacy.meaning import MARGIN, PRIORS, Belief, belief, odds_factor
from dpgrams_core.studies.comparison import Row
from dpgrams_core.sweeps.run import CellResult
from pages._ui import exports, layout


def beliefs(after: Belief, epsilon: float, delta: float) -> None:
    """Before and after, as bars and words."""
    layout.bars(
        ("before", percent(after.before), after.before, "score"),
        ("after, at most", percent(after.most), after.most, "noise"),
        ("after, at least", percent(after.least), after.least, "noise"),
    )
    st.caption(
        f"The odds of A against B grow or shrink at most {short(odds_factor(epsilon))}-fold (e^ε), even for someone "
        "who knows all other records. "
        f"δ allows rare results that say more; averaged over all results, the part above {percent(after.most)} is at "
        f"most {tiny(after.excess)}. Not promised: that nobody learns about you from the records of others."
    )
    found = [belief(prior, epsilon, delta) for prior in PRIORS]
    table = pd.DataFrame(
        {
            "sure before": [percent(item.before) for item in found],
            "after, at least": [percent(item.least) for item in found],
            "after, at most": [percent(item.most) for item in found],
            f"chance of more than {short(100 * MARGIN)} point above": [one_in(item.chance_above) for item in found],
            "average above": [tiny(item.excess) for item in found],
        }
    )
    with st.expander("Table", key="beliefs_table"):
        st.dataframe(table, hide_index=True, width="stretch")
        exports.download(exports.table_file(table, "beliefs"), "beliefs_csv")


def holds_for(rows: Sequence[Row]) -> str:
    """For which of the methods the answer is more than a claim."""
    said: list[str] = []
    for name, status in STATUSES.items():
        for words, text in ((name, status.holds), (full_status(name, GIVEN_REPRESENTATION), status.holds_given)):
            titles = [row.candidate.title for row in rows if row.guarantee.words == words]
            said += [text.format("; ".join(titles), GIVEN_REPRESENTATION)] if text and titles else []
    return " ".join(said)


def methods_table(rows: Sequence[Row], measured: Mapping[str, CellResult]) -> str:
    """Every method side by side as an HTML table (made by us, values escaped); a list of cards on a phone."""
    heads = ("method", "ε and δ", "noise", "noise / hides", "predicted error", "measured error", "modes found")
    body = "".join(_method_row(row, measured.get(row.candidate.key), heads) for row in rows)
    titles = "".join(f"<th>{name}</th>" for name in heads)
    return f'<table class="methods"><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>'


def _method_row(row: Row, result: CellResult | None, heads: Sequence[str]) -> str:
    guarantee, ratio = row.guarantee, row.ratio
    claims = "claims " if STATUSES[guarantee.status].badge else ""
    # A start of DP-GRAMS may reach no mode at all, which the prediction leaves out.
    reached = "if reached" if row.candidate.method == "dp_grams" else ""
    cells = (
        (
            f"{claims}ε = {short(guarantee.epsilon)}",
            "" if guarantee.status == "none" else f"δ = {tiny(guarantee.delta)}",
        ),
        ("none" if row.noise is None else short(row.noise), ""),
        ("–", "") if ratio is None else (f"{short(ratio)} × {row.hides}", "drowned" if ratio > 1 else ""),
        ("a guess", "noise wins") if row.prediction.lost else (short(row.prediction.total), reached),
        *_measured_words(result),
    )
    about = " · ".join(part for part in (row.facts, f"h = {short(row.bandwidth)}") if part)
    words, colour = html.escape(status_words(guarantee.words)), status_colour(guarantee.words)
    notes = "".join(f"<small>{html.escape(text)}</small>" for text in (about, guarantee.statement, *guarantee.caveats))
    return (
        f'<tr><td><b>{html.escape(row.candidate.title)}</b> <span class="status {colour}">{words}</span>{notes}</td>'
        + "".join(
            f'<td data-label="{name}"><span>{html.escape(value)}</span>'
            f"{f'<small>{html.escape(note)}</small>' if note else ''}</td>"
            for name, (value, note) in zip(heads[1:], cells, strict=True)
        )
        + "</tr>"
    )


def _measured_words(result: CellResult | None) -> tuple[tuple[str, str], tuple[str, str]]:
    """The measured error and the modes found, each with its small print."""
    if result is None:
        return ("not yet", ""), ("not yet", "")
    row = result.row()
    if not row["runs"]:
        return ("failed", row["error"]), ("–", "")
    error, luck = short(row["mse_per_true_mode"]), row["mse_per_true_mode_se"]
    error += f" {give_or_take(luck)}" if luck == luck else ""
    failed = f", {row['failures']} failed" if row["failures"] else ""
    found = f"{fixed(row['found'], 1)} of {short(row['found'] + row['missed'])}"
    missed = f"{fixed(row['missed'], 1)} missed, {fixed(row['spurious'], 1)} spurious"
    return (error, f"{row['runs']} runs{failed}"), (found, missed)


def proof() -> None:
    """Every chapter of the proof, folded; a file begins with its title as "# title"."""
    st.subheader("Why is it private? The proof", anchor="proof")
    st.markdown(
        "In one sentence: each record adds one bump of fixed height to a sum, so replacing one record moves that sum "
        "by a length of at most √2, and noise of the right size in the same geometry hides any move of that length. "
        "The chapters below prove it step by step, and say where proofs of other noises fail."
    )
    for path in sorted((ASSETS / "proof").glob("*.md")):
        title, _, text = path.read_text(encoding="utf-8").partition("\n")
        with st.expander(title.removeprefix("# "), key=f"proof_{path.stem.partition('_')[2]}"):
            st.markdown(text.strip())
