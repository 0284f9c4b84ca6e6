"""The Paper page: its controls, the answer, a printed table with ours beside it, and figures recomputed."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.errors import StreamlitAPIException

from dpgrams_core.exports.registry import Shown
from dpgrams_core.figures.curve import control_title
from dpgrams_core.figures.paper import Repetition, Standing, column_title, judged, ratio_chart, repetitions, standings
from dpgrams_core.figures.sensitivity import kernel_chart, sensitivity_chart
from dpgrams_core.figures.style import Chart
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.format import listed, short
from dpgrams_core.model.guarantee import status_words
from dpgrams_core.studies.paper.experiments import EXPERIMENTS, Experiment
from dpgrams_core.studies.paper.reproduce import wide
from dpgrams_core.studies.paper.rivals import advice
from dpgrams_core.studies.paper.shipped import Shipped, shipped
from dpgrams_core.studies.paper.tables import ONE_RUN
from pages._ui import cache, charts, exports, layout, state
from pages._ui.controls import Group, one_of_few
from pages._ui.paper import words as said
from pages._ui.paper.table import key_line, table_html, totals_html


@dataclass(frozen=True)
class Place:
    """What the page shows: one printed table or figure, and one measure of it."""

    experiment: Experiment
    table: str
    measure: str

    @property
    def printed(self) -> bool:
        """Whether it is a table with printed numbers."""
        return self.experiment.name in said.PRINTED

    @property
    def rival(self) -> bool:
        """Whether it stands beside the paper: methods that a user would pick instead."""
        return self.experiment.name in said.RIVALS


def paper_controls() -> Place:
    """Part, table and measure, side by side."""
    group = Group()
    with st.container(horizontal=True, gap="medium", key="paper_choices"):
        part = _pick(group, "Part of the paper", "paper_part", {name: title for name, (title, _) in said.PARTS.items()})
        tables = {name: words.title for name, words in said.WORDS.items() if said.part_of(name) == part}
        table = _pick(group, "Table or figure", f"paper_{part}", tables)
        experiment = EXPERIMENTS[said.experiment_of(table)]
        # The figures and the table of single runs have no seconds.
        timed = experiment.name in (*said.PRINTED, *said.RIVALS) and table != ONE_RUN
        measures = [name for name in experiment.measures if name != "seconds" or timed]
        words = {name: experiment.measure(name).title for name in measures}
        measure = _pick(group, "Score", f"paper_score_{'one_run' if table == ONE_RUN else experiment.name}", words)
    state.write_url(group.keys)
    return Place(experiment, table, measure)


def _pick(group: Group, label: str, key: str, words: dict[str, Any]) -> str:
    """One of a few; the first is the default."""
    group.start(key, next(iter(words)), state.one_of_these(list(words)))
    return one_of_few(label, key, words)


COUNTED = {"modes": "mode tables", "regression": "regression tables", "clustering": "clustering tables"}


def finished(name: str) -> tuple[Shipped | None, str]:
    """The shipped runs of an experiment, or a sentence on why there are none."""
    try:
        return shipped(name), ""
    except DataError as error:
        return None, str(error)


@cache.kept(16)
def compared(name: str, checksum: str) -> pd.DataFrame:  # noqa: ARG001 (what tells one file of runs from another)
    """Ours beside the printed values."""
    return judged(EXPERIMENTS[name], shipped(name).results)


@cache.kept(16)
def tally(name: str, checksum: str) -> tuple[dict[str, Standing], dict[str, Repetition]]:
    """How many printed cells each private column reaches, and how often those run again are the printed ones."""
    table, experiment = compared(name, checksum), EXPERIMENTS[name]
    again = {item.column.name: item for item in repetitions(experiment, table)}
    return {item.column.name: item for item in standings(experiment, table) if item.cells}, again


@cache.kept(64)
def shown_table(name: str, checksum: str, table: str, measure: str) -> tuple[str, str]:
    """A printed table with ours as HTML, and what its runs again say."""
    here, experiment = compared(name, checksum), EXPERIMENTS[name]
    here = here[here["table"] == table]
    again = "; ".join(f"{column_title(item.column)}: {item.words}" for item in repetitions(experiment, here))
    return table_html(experiment, here, measure), again


def _drawn(name: str, table: str, column: str, measure: str, shipped: Shipped) -> Chart:
    """A figure of the paper, from our runs."""
    dataset = next(item.dataset for item in EXPERIMENTS[name].tables if item.name == table)
    results = [found for place, found in shipped.results if place == column and found.cell.dataset == dataset]
    draw = kernel_chart if name == "kernels" else sensitivity_chart
    return draw(results, [found.cell for found in results], measure)


Known = Mapping[str, Mapping[str, Standing]]  # experiment, column
Again = Mapping[str, Repetition]  # experiment: its private column as run, again by us


def counted() -> tuple[Known, Again]:
    """How many printed cells each private column reaches, and the one that is run again, of the experiments here."""
    here = {name: found.facts["checksum"] for name in said.PRINTED if (found := finished(name)[0]) is not None}
    tallies = {name: tally(name, checksum) for name, checksum in here.items()}
    again = {name: repeated["as_run"] for name, (_, repeated) in tallies.items() if "as_run" in repeated}
    return {name: standing for name, (standing, _) in tallies.items()}, again


def answer(known: Known, again: Again) -> None:
    """Whether the printed numbers repeat, and how many printed cells are reached with a proof."""
    if not _counts(known, "functional"):
        layout.answer("The finished tables are not here yet, so this page cannot say; the commands below make them.")
        return
    text = ""
    if modes := again.get("modes"):
        text = f"Run again as the authors ran it, <b>{modes.equal} of {modes.cells}</b> cells of the mode tables come "
        text += "out to the digit. That computation has no guarantee. "
    functional, tight = (f" ({status})" if (status := _status(known, name)) else "" for name in ("functional", "tight"))
    if functional == tight:  # then it is said once
        text += f"With one{functional}, the functional release"
        tight = ""
    else:
        text += f"With one, the functional release{functional}"
    text += f" is at least as good as the printed value in {_counts(known, 'functional')}"
    if _counts(known, "tight"):
        text += f"; the paper’s own algorithm{tight} in {_counts(known, 'tight')}"
    layout.answer(f"{text}.")


def _counts(known: Known, column: str) -> str:
    here = {name: found[column] for name, found in known.items() if column in found}
    words = '<b class="private">{0.ahead} of {0.cells}</b> cells of the {1}'
    return listed([words.format(found, COUNTED[name]) for name, found in here.items()])


def _status(known: Known, column: str) -> str:
    """The status of a column; where it is not the same in all tables, that of each."""
    found: dict[str, list[str]] = {}
    for name, each in known.items():
        if column in each:
            words = " or ".join(map(status_words, each[column].statuses))
            found.setdefault(words, []).append(COUNTED[name])
    if len(found) < 2:
        return html.escape("".join(found))
    return html.escape("; ".join(f"{' and '.join(names)}: {words}" for words, names in found.items()))


def totals(known: Known, again: Again) -> None:
    """The same counts for every private column, as a small table."""
    if any(known.values()):
        st.html(totals_html(known, again, COUNTED))
        margin = EXPERIMENTS["clustering"].margin
        st.caption(
            "As run: cells that are the printed ones to the digit, and (≈) within two standard errors. Others: printed "
            f"cells where ours is at least as good; of clusters, an ARI within {short(margin)} of the printed one "
            "counts. “Clearly”: by more than two standard errors, of the cells where the printed ones can say so; in "
            "the mode tables and on the blobs they leave out the draw of the data."
        )


def rests_on() -> None:
    """What the printed numbers rest on, and the way to the evidence."""
    st.caption(said.RESTS_ON)
    try:
        st.page_link("pages/guarantee.py", label=said.EVIDENCE, icon=":material/verified_user:")
    except StreamlitAPIException:  # a page run on its own, as in a test, has no other page beside it
        st.caption(f"{said.EVIDENCE}.")


def _introduced(experiment: Experiment, name: str, measure: str) -> Shipped | None:
    """What a table or figure is about, and its finished runs; where there are none, that is said."""
    found, why = finished(experiment.name)
    _about(name, measure)
    if found is None:
        st.info(f"{why.split(': run')[0].rstrip('.')}. This command makes it:")
        st.code(f"{command(experiment)} --ship", language="bash", wrap_lines=True)
    return found


def printed_table(experiment: Experiment, name: str, measure: str) -> None:
    """One printed table: the picture of the ratios, and the numbers."""
    found = _introduced(experiment, name, measure)
    if found is None:
        return
    table = compared(experiment.name, found.facts["checksum"])
    here = table[table["table"] == name] if len(table) else table
    if here.empty or here[here["measure"] == measure].empty:
        st.info("The finished runs hold no cell of this table.")
        return
    words = experiment.measure(measure).title
    title = f"{words[:1].upper()}{words[1:]}, ours against the paper"
    wanted = (experiment.name, found.facts["checksum"], name, measure)
    picture = cache.picture(wanted, ratio_chart, experiment, here, measure)
    charts.chart(picture, "paper_ratio", title)
    st.subheader("The numbers")
    if here[here["measure"] == measure]["ahead"].notna().any():
        told = bool(here[here["measure"] == measure]["clear"].notna().any())
        st.html(key_line(experiment.margin if measure == experiment.measures[0] else 0.0, told))
    text, again = shown_table(*wanted)
    st.html(text)
    st.caption(" ".join([*([f"Run again, {again}."] if again else []), said.NEAR[experiment.name]]))
    _differences(experiment)
    if (here["failures"] > 0).any():
        st.caption("Runs that failed are counted in the table and left out of the means.")
    _recompute(experiment, found, name, [picture])


def on_stage(place: Place) -> None:
    """The first picture of a table or figure alone, for a projector."""
    found, why = finished(place.experiment.name)
    if found is None:
        st.info(why)
        return
    table, key = place.table, found.facts["checksum"]
    if place.printed or place.rival:
        here = compared(place.experiment.name, key)
        here = here[here["table"] == table] if len(here) else here
        wanted: tuple[Any, ...] = (place.experiment.name, key, table, place.measure)
        picture = None if here.empty else cache.picture(wanted, ratio_chart, place.experiment, here, place.measure)
    else:
        dataset = next(item.dataset for item in place.experiment.tables if item.name == table)
        columns = list(_statuses(found, [dataset]))[:1]
        wanted = (place.experiment.name, table, *columns, place.measure)
        picture = cache.picture((key, wanted), _drawn, *wanted, found) if columns else None
    if picture is None:
        st.info("The finished runs hold no cell of this table or figure.")
    else:
        charts.plot(picture.figure, "paper_stage_chart", picture.sentence)


def _differences(experiment: Experiment) -> None:
    with st.expander(said.DIFFERS_TITLE, key="paper_differs"):
        head = ["", "in the text", said.WHAT_RAN[experiment.name], "what follows"]
        st.table(pd.DataFrame(said.DIFFERS[experiment.name], columns=head).set_index(""))
        st.caption(said.SURE[experiment.name])
        if experiment.name == "clustering":
            st.table(said.settings_table())


def figure(experiment: Experiment, name: str, measure: str) -> None:
    """One figure of the paper, drawn from our runs; nothing is printed, so nothing is compared."""
    found = _introduced(experiment, name, measure)
    if found is None:
        return
    dataset = next(item.dataset for item in experiment.tables if item.name == name)
    here = _statuses(found, [dataset])
    if not here:
        st.info("The finished runs hold no cell of this figure.")
        return
    words = " and ".join(dict.fromkeys(here.values()))
    st.caption(f"The paper draws this figure and prints no numbers of it. All lines are {experiment.title}, {words}.")
    places = st.columns(min(2, len(here)), gap="medium")
    pictures = []
    for number, column in enumerate(here):
        with places[number % len(places)]:
            wanted = (experiment.name, name, column, measure)
            picture = cache.picture((found.facts["checksum"], wanted), _drawn, *wanted, found)
            title = "Kernels" if experiment.name == "kernels" else control_title(column).capitalize()
            charts.chart(picture, f"paper_{column}", title)
            pictures.append(picture)
    _recompute(experiment, found, name, pictures)


def _rival_picture(experiment: Experiment, here: pd.DataFrame, whole: pd.DataFrame, measure: str) -> Chart:
    """Every method at every ε, and in its sentence who is first and what to take instead."""
    return replace(ratio_chart(experiment, here, measure), sentence=advice(experiment, whole, measure))


def rivals(experiment: Experiment, name: str, measure: str) -> None:
    """Methods side by side on one data set: nothing of it is in the paper."""
    found = _introduced(experiment, name, measure)
    if found is None:
        return
    whole = compared(experiment.name, found.facts["checksum"])
    here = whole[whole["table"] == name]
    if measure != "seconds":
        st.markdown(advice(experiment, whole, measure))
    words = experiment.measure(measure).title
    wanted = (experiment.name, found.facts["checksum"], name, measure)
    picture = cache.picture(wanted, _rival_picture, experiment, here, whole, measure)
    charts.chart(picture, "paper_rivals", f"{words[:1].upper()}{words[1:]} of every method")
    st.subheader("The numbers")
    titles = {column.name: column_title(column) for column in experiment.columns}
    st.dataframe(wide(experiment, here, measure).drop(columns="dataset").rename(columns=titles), hide_index=True)
    dataset = next(item.dataset for item in experiment.tables if item.name == name)
    statuses = _statuses(found, [dataset]).items()
    st.caption("Guarantees: " + "; ".join(f"{titles[column]}: {status}" for column, status in statuses) + ".")
    _recompute(experiment, found, name, [picture])


def _statuses(found: Shipped, datasets: Sequence[str]) -> dict[str, str]:
    """The status of each column on some data sets, with its condition, in words; of runs that succeeded."""
    by_column: dict[str, dict[str, None]] = {}
    for column, result in found.results:
        if result.cell.dataset in datasets:
            by_column.setdefault(column, {})
            if result.seconds:
                by_column[column][status_words(result.words)] = None
    return {column: " or ".join(words) or "no run" for column, words in by_column.items()}


def _about(name: str, measure: str) -> None:
    words = said.WORDS[name]
    claim = f"the paper says: {words.claim[:1].lower()}{words.claim[1:]}" if words.labels else words.claim
    st.markdown(f"**{words.title}** · {claim}")
    notes = [*words.notes, *([said.SECONDS] if measure == "seconds" else [])]
    if measure != "centroid_mse":
        notes = [note for note in notes if "centroid MSE" not in note]
    link = said.curve_link(name)
    curve = [] if link is None else [f"{link.markdown}."]
    there = [f"In the paper: {said.readable(words.labels)}."] if words.labels else []
    st.caption(" ".join([*there, *notes, *curve]))


def command(experiment: Experiment) -> str:
    """What recomputes the tables of an experiment."""
    return f"python -m dpgrams_core reproduce {said.part_of(experiment.tables[0].name)} --runs {experiment.runs}"


def _recompute(experiment: Experiment, found: Shipped, name: str, pictures: Sequence[Chart]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="paper_again"):
        st.subheader("Compute it again", width="stretch")
        _files(experiment, found, name, pictures)
    st.code(command(experiment), language="bash", wrap_lines=True)
    needs = (
        " The RNA-Seq cells need your copy of UCI’s files (DPGRAMS_DATA)."
        if any(table.dataset == "rnaseq" for table in experiment.tables)
        else ""
    )
    st.caption(f"These numbers were made by {found.made}. Add --ship to put new ones in their place.{needs}")


def _files(experiment: Experiment, found: Shipped, name: str, pictures: Sequence[Chart]) -> None:
    """A report of this table or figure, the script that makes it again, and what its numbers were made from."""
    statuses = _statuses(found, [table.dataset for table in experiment.tables if name in (table.name, ONE_RUN)])
    words, again = said.WORDS[name], command(experiment)
    there = f"In the paper: {said.readable(words.labels)}."
    shown = Shown(
        question=f"{'Do the paper’s numbers hold?' if words.labels else 'Which method to take?'} {words.title}",
        answer=" ".join(picture.sentence for picture in pictures[:1]),
        charts=lambda: pictures,
        guarantees=list,
        origin=f"Simulations on synthetic or public data: {found.made.replace('`', '')}.",
        notes=[
            *([f"{there} Its source has {words.labels}.", said.RESTS_ON] if words.labels else words.notes),
            *(f"{a}: {b}." for a, b in statuses.items()),
        ],
        command=again,
        facts=found.facts,
    )
    exports.page_files(shown, "The script makes every cell of this part again, seeds included.")


def everything() -> None:
    """Every table and figure of the paper's experiments, and where to see it."""
    with st.expander("Every table and figure of the paper’s experiments", key="paper_index"):
        st.markdown(said.index())
