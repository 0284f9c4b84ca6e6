"""A printed table with ours beside it, as HTML: guarantee status in each header, a mark and a tint for who is ahead."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

import pandas as pd

from dpgrams_core import DATASETS, METHODS
from dpgrams_core.figures.paper import Repetition, Standing, column_title, same_within_errors, statuses_of
from dpgrams_core.model.format import give_or_take, short
from dpgrams_core.model.guarantee import status_colour, status_words
from dpgrams_core.studies.paper.experiments import Column, Experiment
from dpgrams_core.studies.paper.tables import ONE_RUN, paper_table
from pages._ui.paper.words import AGAIN_TOTALS, AGAIN_WORDS, COLUMN_WORDS, PRINTED_NAMES, TITLES

# Direction: who is ahead; full: by more than two standard errors.
MARKS = {(True, True): "▲", (True, False): "△", (False, True): "▼", (False, False): "▽"}
MARK_WORDS = {
    (True, True): "ours is ahead by more than two standard errors",
    (True, False): "ours is ahead, within two standard errors",
    (False, True): "the printed value is ahead by more than two standard errors",
    (False, False): "the printed value is ahead, within two standard errors",
    (True, None): "ours is ahead; whether clearly is not judged",
    (False, None): "the printed value is ahead; whether clearly is not judged",
}
# Of runs that repeat the paper's own: the class of the cell and what the mark means.
AGAIN = {
    "=": ("equal", "equal to the printed value, mean and standard error, in every printed digit"),
    "≈": ("near", "within two standard errors of the printed value"),
    "≠": ("other", "more than two standard errors from the printed value"),
}


def key_line(margin: float, judged: bool) -> str:
    """What marks and tints mean; ``judged``: whether the table says who is clearly ahead."""
    room = f" (equal within {short(margin)} counts as ahead)" if margin else ""
    ahead, behind = ("▲ △", "▼ ▽") if judged else ("△", "▽")
    full = "Full marks: by more than two standard errors. " if judged else ""
    return (
        f'<p class="keys"><span class="key ahead">{ahead} ours is at least as good</span> '
        f'<span class="key behind">{behind} the printed value is better</span> '
        f"{room} {full}Runs again: = the printed value in every digit, ≈ within two standard errors, ≠ beyond. "
        "Small print: ± standard error · ours over printed ×.</p>"
    )


def table_html(experiment: Experiment, table: pd.DataFrame, measure: str) -> str:
    """One printed table; ``table`` holds its judged rows."""
    here = table[table["measure"] == measure]
    groups = _groups(experiment, here)
    several = here["dataset"].nunique() > 1
    body, last = [], None
    for place_of, rows in here.groupby(["dataset", "n", "epsilon"], sort=False):
        dataset, n, epsilon = cast(tuple[str, int, float], place_of)
        place = dataset if several else n
        head = _place(DATASETS[dataset].title if several else f"{n:,}") if place != last else "<td></td>"
        cells = (
            head
            + _place(short(epsilon))
            + "".join(_group_cells(columns, _has_print(here, columns), rows) for columns in groups.values())
        )
        first = ' class="first"' if place != last else ""
        body.append(f"<tr{first}>{cells}</tr>")
        last = place
    name = experiment.measure(measure).title
    return (
        f'<div class="printed-scroll"><table class="printed" aria-label="{html.escape(name)}"><thead>'
        + _heads(experiment, groups, here, "data" if several else "n")
        + f"</thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def totals_html(
    known: Mapping[str, Mapping[str, Standing]], again: Mapping[str, Repetition], titles: Mapping[str, str]
) -> str:
    """A row for what was run, again, and one for each kind of noise; a column for each kind of table.

    ``again``: the private column of the paper's own runs, of each kind of table.
    """
    names = list(dict.fromkeys(column for found in known.values() for column in found))
    head = '<th class="place">ours</th>' + "".join(f"<th>{html.escape(titles[name])}</th>" for name in known)
    body = f'<tr class="line"><td class="place"><span>{TITLES["as_run"]}</span> {_badges(["none"])}</td>'
    body += "".join(_again_total(name, again.get(name)) for name in known) + "</tr>"
    for column in names:
        statuses = {found[column].statuses for found in known.values() if column in found}
        same = next(iter(statuses)) if len(statuses) == 1 else ()
        body += f'<tr class="line"><td class="place"><span>{html.escape(TITLES[column])}</span> {_badges(same)}</td>'
        body += "".join(_total(found.get(column), badges=not same) for found in known.values()) + "</tr>"
    return (
        '<div class="printed-scroll"><table class="printed totals" aria-label="printed cells reached"><thead><tr>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _again_total(name: str, item: Repetition | None) -> str:
    if item is None:
        return "<td>–</td>"
    more = "" if item.equal == item.cells else f"<small>≈: {item.near} of {item.cells}</small>"
    what = f"<small>{AGAIN_TOTALS[name]}</small>"
    return f"<td><span>{item.equal} of {item.cells}</span><small>to the digit</small>{more}{what}</td>"


def _total(item: Standing | None, *, badges: bool) -> str:
    """The counts of one kind of table; with its status where the row has no single one."""
    if item is None:
        return "<td>–</td>"
    missing = f", {item.missing} without a run" if item.missing else ""
    clear = f"{item.clear} of {item.judged}" if item.judged else "–"
    status = f" {_badges(item.statuses)}" if badges else ""
    return f"<td><span>{item.ahead} of {item.cells}</span>{status}<small>clearly: {clear}{missing}</small></td>"


def _groups(experiment: Experiment, here: pd.DataFrame) -> dict[str, list[Column]]:
    """Our columns by the printed method that they stand beside."""
    found: dict[str, list[Column]] = {}
    for column in experiment.columns:
        if (here["column"] == column.name).any():
            found.setdefault(column.printed, []).append(column)
    return found


def _has_print(here: pd.DataFrame, columns: list[Column]) -> bool:
    return bool(here[here["column"].isin([column.name for column in columns])]["printed"].notna().any())


def _heads(experiment: Experiment, groups: dict[str, list[Column]], here: pd.DataFrame, first: str) -> str:
    top = f'<th class="place" rowspan="2">{first}</th><th class="place" rowspan="2">ε</th>'
    second = ""
    name = here["table"].iloc[0]
    runs = 1 if name == ONE_RUN else paper_table(name)["runs"]
    for printed, columns in groups.items():
        shown = _has_print(here, columns)
        # No badge: it is as the authors printed it, and what made it stands beside.
        method = html.escape(PRINTED_NAMES.get(printed, METHODS[printed].title))
        top += f'<th class="paper" colspan="{len(columns) + shown}">{method}</th>'
        if shown:
            second += f'<th class="paper">printed<small>by the authors, {_runs(runs, runs)}</small></th>'
        for column in columns:
            mine = here[here["column"] == column.name]["runs"]
            words = f"{html.escape(column_title(column))} {_badges(statuses_of(here, column.name))}"
            what = AGAIN_WORDS[experiment.name] if column.name == "as_run" else COLUMN_WORDS.get(column.name, "")
            small = ", ".join([*filter(None, [what]), _runs(mine.min(), mine.max())])
            second += f"<th>{words}<small>{small}</small></th>"
    return f"<tr>{top}</tr><tr>{second}</tr>"


def _runs(least: int, most: int) -> str:
    return f"{most} run{'s' if most != 1 else ''}" if least == most else f"{least} to {most} runs"


def _badges(statuses: Iterable[str]) -> str:
    """One badge for each status that occurs."""
    return " ".join(
        f'<span class="status {status_colour(words)}">{html.escape(status_words(words))}</span>'
        for words in dict.fromkeys(statuses)
    )


def _group_cells(columns: list[Column], shown: bool, rows: pd.DataFrame) -> str:
    """The printed value, where the table has one, and ours beside it."""
    mine = rows[rows["column"].isin([column.name for column in columns])]
    by_column: dict[Any, Any] = {row["column"]: row for row in mine.to_dict("records")}
    known = mine[mine["printed"].notna()]
    text = ""
    if shown:
        value = _number(known["printed"].iloc[0], known["printed_se"].iloc[0]) if len(known) else "–"
        text = f'<td class="paper">{value}</td>'
    for place, column in enumerate(columns):
        text += _ours(by_column.get(column.name), "paper" if place == 0 and not shown else "")
    return text


def _ours(row: dict[str, Any] | None, side: str) -> str:
    if row is None or math.isnan(row["ours"]):
        note = "no run succeeded" if row is not None and row["failures"] else ""
        return f'<td class="{side}">–<small>{note}</small></td>'
    failed = [f"{row['failures']} failed"] if row["failures"] else []
    if row["ahead"] is None:
        return f'<td class="{side}">{_number(row["ours"], row["se"], *failed)}</td>'
    number = _number(row["ours"], row["se"], f"{short(row['ratio'])} ×", *failed)
    if row["equal"] is not None:  # a repetition is no rival: it is the same number or it is not
        mark = "=" if row["equal"] else "≈" if same_within_errors(row) else "≠"
        if mark == "=":
            number = _number(row["ours"], row["se"], *failed)
        return f'<td class="{side} {AGAIN[mark][0]}" title="{AGAIN[mark][1]}">{mark} {number}</td>'
    lead = (row["ahead"], row["clear"])
    kind = "ahead" if row["ahead"] else "behind"
    return f'<td class="{side} {kind}" title="{MARK_WORDS[lead]}">{MARKS[lead[0], bool(lead[1])]} {number}</td>'


def _place(text: str) -> str:
    return f'<td class="place">{html.escape(text)}</td>'


def _number(value: float, spread: float, *more: str) -> str:
    """A value, and under it in small print its standard error and what else there is to say."""
    error = [] if math.isnan(spread) else [give_or_take(spread)]
    return f"<span>{short(value)}</span><small>{' · '.join([*error, *more])}</small>"
