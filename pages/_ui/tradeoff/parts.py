"""The parts of the Tradeoff page: the main curve, and those with a question of their own; and the page's files."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpgrams_core import METHODS, Guarantee, load_dataset, run
from dpgrams_core.datasets.registry import dataset_info
from dpgrams_core.exports.csv import table_csv
from dpgrams_core.exports.registry import File, Shown
from dpgrams_core.exports.settings import EngineCall, sweep_calls
from dpgrams_core.figures import tradeoff as figures
from dpgrams_core.figures.curve import cell_title, in_a_text
from dpgrams_core.figures.sensitivity import kernel_chart, sensitivity_chart
from dpgrams_core.figures.style import Chart
from dpgrams_core.figures.tradeoff import Cost, LabLayout, lab_sentence, lab_table, middle
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.format import listed, short
from dpgrams_core.model.guarantee import status_in_a_line, status_words
from dpgrams_core.model.measures import MEASURES, measure_of, measure_titles
from dpgrams_core.model.run import DatasetInfo, Run
from dpgrams_core.studies.ablation import LadderMemory, stream_error_sources
from dpgrams_core.studies.costs import cell_seconds, ladder_seconds
from dpgrams_core.studies.needed_budget import MOST_VALUES, USUAL_RUNS, least_runs, stream_needed
from dpgrams_core.sweeps.run import MAX_RUNS, plan_cells, tidy
from pages._ui import cache, charts, exports, jobs, layout
from pages._ui.controls import one_of_few
from pages._ui.jobs import Known
from pages._ui.tradeoff import settings as lab
from pages._ui.tradeoff.files import OpenedFile, file_box, of_dataset, parquet_of
from pages._ui.tradeoff.live import live_result, live_sweep, scheduler_address
from pages._ui.tradeoff.settings import Arm, LabSettings, Sweep, command_lines, numbers_of

QUESTION = "What does privacy cost me?"
ORDERS = ("gaussian", "gaussian4", "legendre4")
LAYOUTS = {
    "method": LabLayout("epsilon", "method"),
    "n": LabLayout("epsilon", "n"),
    "epsilon": LabLayout("n", "epsilon"),
}


@st.cache_resource(show_spinner=False)
def ladder_memory() -> LadderMemory:
    """The runs of ladders of errors that this server has made; all visitors share them."""
    return LadderMemory()


def asides(row: int, gap: Literal["small", "medium"]) -> DeltaGenerator:
    """A row of controls; a projector does not show it (assets/presenter.css)."""
    return st.container(horizontal=True, gap=gap, key=f"aside_{row}")


def page_files(
    cells: Sequence[Run], calls: Sequence[EngineCall], answer: str, pictures: Callable[[], Sequence[Chart]], words: str
) -> None:
    """The files of some cells, or of one that stands for its method; ``calls`` repeat them, but for a twin."""
    data = "synthetic or public data: nobody’s private data are behind these numbers"
    if isinstance(cells[0].dataset, DatasetInfo):
        data, calls = "the synthetic twin of a paid release: no record is behind these numbers", ()
    shown = Shown(
        question=QUESTION,
        answer=exports.plain_text(answer),
        charts=pictures,
        guarantees=lambda: _guarantees(cells),
        origin=f"Simulations ({words}seed {cells[0].seed}) on {data}.",
        calls=calls,
        page="tradeoff",
        link=exports.link_here(),
    )
    repeats = "The script and the settings repeat these numbers, seeds included."
    exports.page_files(shown, repeats if calls else "No script repeats these numbers: the data are yours alone.")


def sweep_files(
    cells: Sequence[Run], answer: str, pictures: Callable[[], Sequence[Chart]], repeatable: bool = True
) -> None:
    """The files of a sweep; a results file of someone's has a report only, since it may hold any cells."""
    words = f"{_span(cell.runs for cell in cells)} runs a point, "
    page_files(cells, sweep_calls(cells) if repeatable else (), answer, pictures, words)


def _span(counts: Iterable[int]) -> str:
    known = sorted(counts)
    return " to ".join(map(str, dict.fromkeys((known[0], known[-1]))))


def _guarantees(cells: Sequence[Run]) -> list[tuple[str, Guarantee]]:
    """The guarantee of every private method at the middle ε, from a run at the smallest n: it is the same at all n."""
    private = [cell for cell in cells if math.isfinite(cell.epsilon)]
    found: dict[str, Guarantee] = {}
    for title in dict.fromkeys(map(cell_title, private)):
        mine = [cell for cell in private if cell_title(cell) == title]
        epsilon = middle([cell.epsilon for cell in mine], 1.0)
        cell = min((cell for cell in mine if cell.epsilon == epsilon), key=lambda cell: cell.n)
        data = load_dataset(cell.dataset, n=cell.n, seed=cell.seed)
        release = run(cell.method, data, seed=cell.seed, **{**dict(cell.options), "epsilon": epsilon})
        found[f"{title}, at ε = {short(epsilon)}"] = release.guarantee
    return list(found.items())


def command_box(sweeps: Sequence[Sweep]) -> None:
    """What repeats the picture's sweep elsewhere; a twin has no such lines."""
    if not (lines := command_lines(sweeps)):
        st.caption(
            "The twin is known to this session only, so no command repeats this sweep. Records of it can be downloaded "
            "on My data."
        )
        return
    with st.expander("Repeat it on the command line", key="lab_command"):
        st.caption("The same seed gives the same numbers. The file keeps every run and can be continued.")
        st.code(lines, language="bash", wrap_lines=True)


def curve(settings: LabSettings) -> None:
    """The part of the page with the main curve."""
    with layout.sidebar():
        file = file_box()
    if file.problem:
        layout.problem(file.problem)
    found = from_file(file, settings) if file.results else None
    cells = planned(settings) if found is None else list(found)
    if cells is None:
        return
    top = st.container()
    with asides(1, "medium"):
        measure = _score(settings)
        view = one_of_few("On the axis, and panels", "lab_view", lab.VIEWS)
        # The paper's rates are those of the squared error of modes.
        theory = (settings.kind, measure) == ("modes", "mse") and st.toggle(
            "Theory's slopes",
            key="lab_theory",
            help="The rates of the paper's upper and lower bound, slopes only: their height means nothing.",
            persist_state="session",
        )
        epsilon = epsilon_of(cells, f"lab_at_{settings.dataset}")
    if found is None:  # in the order of the methods in the sidebar; they are run in another, the quick ones first
        places = {arm.title: place for place, arm in enumerate(settings.arms)}
        shown = sorted(cells, key=lambda cell: places[cell_title(cell)])
    else:
        shown = cells

    def draw(known: Known) -> None:
        with top:
            text = answer(known, shown, measure, epsilon)
        pictures = panels(known, shown, measure, LAYOUTS[view], epsilon, theory=theory, shared=found is None)
        sentence = lab_sentence(known, shown, measure)

        def for_a_report() -> list[Chart]:
            """The panels; what they say together stands under the first, with the table."""
            first, *others = pictures
            return [replace(first, sentence=f"{first.sentence} {sentence}", table=lab_table(known)), *others]

        with exports.caption_beside(sentence + picked_clip(shown)):
            sweep_files(shown, text, for_a_report, repeatable=found is None)
        tables(known, pictures)

    if found is not None:
        st.caption(f"From {file.name}: {len(cells):,} points, {sum(item.ended for item in found.values()):,} runs.")
        draw(found)
        return
    live_sweep(cells, draw)
    command_box(settings.sweeps())


def epsilon_of(cells: Sequence[Run], key: str) -> float:
    """The ε of the cells that the answer speaks of and the curves mark: a control; 1 where there is none to choose."""
    budgets = sorted({cell.epsilon for cell in cells if math.isfinite(cell.epsilon)})
    if len(budgets) < 2:
        return next(iter(budgets), 1.0)
    if st.session_state[key] not in budgets:  # they are typed by the user, or those of a file
        st.session_state[key] = middle(budgets, 1.0)
    words = "What privacy costs there stands on top of the page, and a line marks it on the curves."
    look: dict[str, Any] = {"format_func": short, "help": words, "persist_state": "session"}
    with layout.under_the_picture() or st.container(width=220):
        return float(st.select_slider("Your ε", budgets, key=key, **look))


def one_epsilon(settings: LabSettings) -> float:
    """The ε of a picture that has one: typed in, and on a projector moved under the picture."""
    if (place := layout.under_the_picture()) is None:
        return float(number("at ε", "lab_one_eps"))
    known = sorted({*lab.budgets_of(settings.dataset), st.session_state["lab_one_eps"]})
    with place:
        return float(st.select_slider("at ε", known, key="lab_one_eps", format_func=short, persist_state="session"))


def _score(settings: LabSettings) -> str:
    return one_of_few("Score", f"lab_score_{settings.kind}", measure_titles(settings.kind))


def picked_clip(cells: Sequence[Run]) -> str:
    """What is said of DP-GRAMS-C on real data; "" where it is not among the cells."""
    clips = {dict(cell.options).get("clip_multiplier") for cell in cells if cell.method == "dp_grams_c"}
    picked = dict(dataset_info(cells[0].dataset).picked).get("clip_multiplier")
    if picked is None or picked not in clips:
        return ""
    return (
        f" DP-GRAMS-C has the clip multiplier {short(picked)}, as in the tables of the Paper page: the best at ε = 1, "
        "picked on the records, so its ε is nominal whatever its noise."
    )


def from_file(file: OpenedFile, settings: LabSettings) -> Known | None:
    """The results of the file that is open, or None after a sentence on why not."""
    try:
        found = of_dataset(file.results, file.name, settings.dataset)
    except DataError as error:
        layout.problem(error)
        return None
    # A file holds the letters of a twin only; the twin itself takes their place.
    named = {cell: replace(cell, dataset=settings.dataset) for cell in found}
    return {named[cell]: replace(result, cell=named[cell]) for cell, result in found.items()}


def planned(settings: LabSettings) -> list[Run] | None:
    """The cells, or None after a sentence on why there are none; a very large grid has to be confirmed."""
    agreed = ("_lab_large", settings)
    for confirm in (False, True):
        try:
            return lab.lab_cells(settings, confirm)
        except SpecError as error:
            if not confirm:
                layout.answer("There is no curve to draw yet.")
            layout.problem(error)
            if error.field != "cells":
                return None
        known = confirm or st.session_state.get("_lab_large") == agreed
        if not known and not st.button("I mean it: run all of them", key="lab_confirm"):
            break
        st.session_state["_lab_large"] = agreed
    if lines := command_lines(settings.sweeps(), " --yes"):
        st.code(lines, language="bash", wrap_lines=True)
    return None


def answer(known: Known, cells: Sequence[Run], measure: str, epsilon: float) -> str:
    """What privacy costs at an ε, in the middle of the sizes."""
    info = dataset_info(cells[0].dataset)
    words = measure_of(info.kind, measure).title
    if not any(math.isfinite(cell.epsilon) for cell in cells):
        return layout.answer("Choose a private method to see what privacy costs.")
    n = int(middle([cell.n for cell in cells]))
    found = figures.costs(known, cells, measure, n, epsilon)
    where = f"On {info.title} with n = {n:,}, at ε = {short(epsilon)}"
    if not found:
        return layout.answer(f"{where} there is no run yet: the curve is drawn while you watch.")
    plain = f'<b class="plain">{short(found[0].plain)}</b>'
    title = in_a_text(found[0].plain_title)
    if measure.endswith("mse") and all(cost.ratio == cost.ratio for cost in found):
        costs = listed([f"by {_with(cost, cost.ratio, cost.ratio_se)}" for cost in found])
        text = f"{where}, privacy multiplies the {words} {costs}. Without privacy it is {plain} ({title})."
        line = f"At ε = {short(epsilon)} privacy multiplies the {words} {_briefly(found, 'by ', 'ratio')}."
    else:
        against = f", against {plain} without privacy ({title})" if found[0].plain == found[0].plain else ""
        values = listed([_with(cost, cost.value, cost.value_se) for cost in found])
        text = f"{where} the mean {words} is {values}{against}."
        line = f"At ε = {short(epsilon)} the mean {words} is {_briefly(found, '', 'value')}."
    return layout.answer(f"{text} <small>({_span(cost.runs for cost in found)} runs)</small>", line)


def _briefly(found: Sequence[Cost], word: str, number: str) -> str:
    """A number of each private method without its spread, for a projector."""
    told = [
        f'{word}<b class="private">{short(getattr(cost, number))}</b> '
        f"({in_a_text(cost.title)}, {status_in_a_line(cost.status)})"
        for cost in found
    ]
    return listed(told)


def _with(cost: Cost, value: float, spread: float) -> str:
    """A number of a private method, in its colour, and the method with the status of its guarantee."""
    article = "the " if cost.title == "Functional release" else ""
    method = f"{article}{in_a_text(cost.title)} ({status_words(cost.status)})"
    return f'<b class="private">{figures.plus_minus(value, spread)}</b> with {method}'


def kept_curve(
    known: Known, draw: Callable[..., Chart], found: Any, cells: Sequence[Run], *how: Any, shared: bool = True
) -> Chart:
    """A chart of runs that visitors share, kept once they are complete; not that of somebody's file or twin."""
    if shared and isinstance(cells[0].dataset, str):
        return cache.curve(known, draw, found, cells, *how)
    return draw(found, cells, *how)


def panel(
    known: Known, cells: Sequence[Run], measure: str, view: LabLayout, value: Any, theory: bool, epsilon: float
) -> Chart:
    """One panel, with its title for a sentence."""
    figure = figures.lab_panel(known, cells, measure, view, value, theory=theory, epsilon=epsilon)
    return Chart(figure, f"{figures.panel_title(value, view)}.", pd.DataFrame())


def panels(
    known: Known,
    cells: Sequence[Run],
    measure: str,
    view: LabLayout,
    epsilon: float,
    *,
    theory: bool = False,
    shared: bool = False,
) -> list[Chart]:
    """The panels side by side (one under the other on a phone); ``shared``: the runs are no file of somebody's."""
    pictures, sentence = [], lab_sentence(known, cells, measure)
    values = figures.panels_of(cells, view)
    if layout.presenting():  # one row is what a projector has room for
        values = [epsilon] if view.panel == "epsilon" else values[:2]
    across = min(2, len(values))
    columns: list[Any] = []
    for place, value in enumerate(values):
        if place % across == 0:  # row by row, so that on a phone they stand in order
            columns = st.columns(across, gap="medium")
        with columns[place % across]:
            title = figures.panel_title(value, view)
            st.markdown(f"**{title}**")
            picture = kept_curve(known, panel, known, cells, measure, view, value, theory, epsilon, shared=shared)
            charts.plot(picture.figure, f"lab_curve_{place}_chart", f"{title}: {sentence}")
            if theory:
                mine = figures.of_panel(known, view, value)
                st.caption(figures.rate_note(mine, variable=view.x, d=figures.columns_of(cells)))
        pictures.append(picture)
    return pictures


def tables(known: Known, pictures: Sequence[Chart]) -> None:
    """The table of all panels, and the files of each."""
    results = _results(known)
    csv = File("CSV, all scores and quantiles", "sweep.csv", "text/csv", lambda: table_csv(tidy(results)))
    runs = File("Every run (Parquet)", "results.parquet", "application/octet-stream", lambda: parquet_of(results))
    with st.expander("Table and downloads", key="lab_curve_table"):
        st.dataframe(lab_table(known), hide_index=True, width="stretch")
        with st.container(horizontal=True, key="lab_curve_files"):
            exports.download(csv, "lab_curve_csv")
            exports.download(runs, "lab_curve_parquet")
        for place, picture in enumerate(pictures):
            st.caption(picture.sentence)
            exports.chart_files(picture, f"lab_curve_{place}", picture.sentence.rstrip("."))


def _results(known: Known) -> list[Any]:
    return [found for found in known.values() if found.ended]


def sensitivity(settings: LabSettings) -> None:
    """A score against one control, as in the paper's appendix."""
    top = st.container()
    with asides(1, "medium"):
        control = one_of_few("What is varied", "lab_vary", {name: words for name, (words, _, _) in lab.VARIED.items()})
        measure = _score(settings)
    with asides(2, "medium"):
        arm = one_arm(
            f"lab_s_arm_{settings.kind}_{control}", [arm for arm in lab.ARMS[settings.kind] if arm.has(control)]
        )
        values = lab.line(
            "Values", f"lab_values_{control}", "Numbers with blanks between them; the first ones are ours."
        )
        epsilon = one_epsilon(settings)
    title, _, kind = lab.VARIED[control]

    def plan() -> Sweep:
        sizes, wanted = numbers_of("n", settings.sizes, int), numbers_of(control, values, kind)
        return settings.sweep_of(arm, n=sizes, epsilon=[epsilon], vary=(control, wanted))

    question = f"How much does it matter? {title} of {in_a_text(arm.title)}, at ε = {short(epsilon)}"
    charted(settings, plan, top, question, sensitivity_chart, measure, "sensitivity", begins=arm.title)


def kernel(settings: LabSettings) -> None:
    """Gaussian against order 4 on the same bandwidth, as in fig:kernel_order_validation."""
    arms = [arm for arm in lab.ARMS[settings.kind] if arm.has("kernel")]  # the first has the paper's noise
    if not arms:
        layout.answer("DP-PMS has one kernel only: choose modes or clusters to compare kernels.")
        return
    top = st.container()
    with asides(1, "medium"):
        epsilons = lab.line("Privacy budgets, ε", "lab_kernel_eps")
        rule = one_of_few("Bandwidth rule, shared by all kernels", "lab_rule", lab.RULES)
        measure = _score(settings)

    def plan() -> Sweep:
        grid: dict[str, Any] = {} if rule == "default" else {"bandwidth": rule}
        grid |= {"n": numbers_of("n", settings.sizes, int), "epsilon": numbers_of("epsilon", epsilons, float)}
        return settings.sweep_of(arms[0], vary=("kernel", ORDERS), **grid)

    charted(settings, plan, top, "Does a kernel of higher order pay?", kernel_chart, measure, "kernel")


def charted(
    settings: LabSettings,
    plan: Callable[[], Sweep],
    top: Any,
    question: str,
    picture: Callable[..., Chart],
    measure: str,
    key: str,
    begins: str = "",
) -> None:
    """A sweep of its own with one chart; the answer is that sentence of the chart's which ``begins`` so."""
    sweeps: list[Sweep] = []
    try:
        sweeps.append(plan())
        cells = settings.cells(sweeps)
    except SpecError as error:
        with top:
            layout.answer("There is no curve to draw yet.")
        layout.problem(error)
    else:

        def draw(known: Known) -> None:
            chart = kept_curve(known, picture, _results(known), cells, measure)
            with top:
                text = layout.answer(first_sentence(chart.sentence, begins))
            charts.chart(chart, f"lab_{key}", question)
            sweep_files(cells, text, lambda: [chart])

        live_sweep(cells, draw)
    if sweeps:
        command_box(sweeps)


def sources(settings: LabSettings) -> None:
    """The error of one method, told apart by switching its ingredients on one at a time."""
    top = st.container()
    with asides(1, "medium"):
        arm = one_arm(f"lab_e_arm_{settings.kind}", lab.source_arms(settings.kind))
        n = number("Records, n", f"lab_one_n_{settings.dataset}")
        epsilon = one_epsilon(settings)
        measure = one_of_few("Error", f"lab_e_score_{settings.kind}", lab.error_measures(settings.kind))

    def say(found: Any) -> str:
        unclear = first_sentence(found.sentence, "Within") if "Within two" in found.sentence else ""
        return f"{first_sentence(found.sentence)} {unclear}"

    searched(
        settings,
        arm,
        top,
        (
            "error_sources",
            {"n": n, "epsilon": epsilon, "measure": measure, "runs": settings.runs, "seed": settings.seed},
        ),
        lambda **asked: stream_error_sources(store=ladder_memory(), **asked),
        lambda found: "Where the error comes from is told apart run by run." if found is None else say(found),
        ("sources", figures.error_sources_chart),
        (n, epsilon),
        finished=lambda found: found.complete,
        words=lambda found: f"{found.runs} of {found.wanted} runs",
        price=lambda: settings.runs * ladder_seconds(one_cell(settings, arm, n, epsilon)),
    )


def needed(settings: LabSettings) -> None:
    """The ε, or the n, that a wished score needs, as a bracket with its confidence."""
    top = st.container()
    with asides(1, "small"):
        measure = one_of_some("I need", f"lab_t_score_{settings.kind}", measure_titles(settings.kind))
        side = "at least" if MEASURES[settings.kind][measure].more_is_better else "at most"
        target = number(side, f"lab_target_{measure}")
        percent = number("in % of runs", "lab_percent")
        sought = one_of_few("What is sought", "lab_sought", lab.SOUGHT)
    with asides(2, "small"):
        arm = one_arm(
            f"lab_t_arm_{settings.kind}", [arm for arm in lab.ARMS[settings.kind] if METHODS[arm.method].private]
        )
        if sought == "epsilon":
            held: dict[str, Any] = {"n": number("Records, n", f"lab_one_n_{settings.dataset}")}
        else:
            held = {"epsilon": one_epsilon(settings)}
        low = number("Search from", f"lab_low_{sought}")
        high = number("to", f"lab_high_{sought}")
    share = percent / 100
    least = least_runs(share) if 0 < share < 1 else MAX_RUNS + 1
    if least <= MAX_RUNS:  # a share that needs more is refused anyway
        why = f": {short(percent)}% cannot be shown with fewer" if least > USUAL_RUNS else ""
        st.caption(f"Every value that is tried has {max(USUAL_RUNS, least):,} runs{why}.")

    def words(found: Any) -> str:
        tried = f"{len(found.tried):,} value{'' if len(found.tried) == 1 else 's'} tried"
        return f"{tried}, at most {found.question.most_values}; {found.question.runs:,} runs each."

    def price() -> float:
        """At most: every value that it may try, at the largest n."""
        largest = one_cell(settings, arm, held.get("n", high), held.get("epsilon", high))
        return MOST_VALUES * max(USUAL_RUNS, least_runs(share)) * cell_seconds(largest)

    start = f"Press Start: simulations will bracket the {lab.SOUGHT[sought]} that this needs."
    how = {"low": low, "high": high, "target": target, "measure": measure, "probability": share, "seed": settings.seed}
    searched(
        settings,
        arm,
        top,
        (f"needed_{sought}", how | held),
        lambda **asked: stream_needed(sought, store=jobs.memory(), **asked),
        lambda found: start if found is None else first_sentence(found.sentence),
        ("needed", figures.needed_chart),
        (held.get("n", low), held.get("epsilon", high)),
        finished=lambda found: found.finished,
        words=words,
        price=price,
        by_itself=False,
    )


def searched(
    settings: LabSettings,
    arm: Arm,
    top: Any,
    call: EngineCall,
    stream: Callable[..., Any],
    say: Callable[[Any], str],
    chart: tuple[str, Callable[[Any], Chart]],
    shown_at: tuple[int, float],
    *,
    finished: Callable[[Any], bool],
    words: Callable[[Any], str],
    price: Callable[[], float],
    by_itself: bool = True,
) -> None:
    """A streamed result; settings that cannot be used are refused with their sentence before anything starts.

    ``call`` repeats it, once method, data and options are added.  ``chart`` is its key and what draws it,
    ``shown_at`` the n and ε whose guarantee is told.
    """
    function, how = call
    asked = {"method": arm.method, "dataset": settings.dataset, **how, **settings.options_of(arm)}

    def draw(found: Any) -> None:
        with top:
            text = layout.answer(say(found))
        if found is not None:
            key, make = chart
            picture = make(found)
            charts.chart(picture, f"lab_{key}")
            page_files([one_cell(settings, arm, *shown_at)], [(function, asked)], text, lambda: [picture], "")

    try:
        stream(executor="serial", **asked).close()  # it checks at the call and runs nothing until it is read
        seconds = price()
    except SpecError as error:
        draw(None)
        layout.problem(error)
        return
    if scheduler_address():
        st.caption("The Dask cluster is for the curves: this part runs on the server itself.")
    steps = jobs.streamed(lambda executor: stream(executor=executor, **asked), jobs.workers())
    work = jobs.newest((function, *sorted(asked.items())), steps, finished)
    live_result(work, draw, words=words, seconds=seconds, by_itself=by_itself)


def one_cell(settings: LabSettings, arm: Arm, n: int, epsilon: float) -> Run:
    """A single point of the page's settings."""
    (cell,) = plan_cells(**settings.sweep_of(arm, n=[n], epsilon=[epsilon], runs=1))
    return cell


def first_sentence(text: str, begins: str = "") -> str:
    """The last sentence that begins so (of the largest n), or the first one; the rest stands under the chart."""
    sentences = [part.rstrip(".") + "." for part in text.split(". ")]
    wanted = [sentence for sentence in sentences if begins and sentence.startswith(begins)]
    return html.escape((wanted or sentences[:1])[-1])


def one_of_some(label: str, key: str, words: dict[str, str]) -> str:
    """One of several, where the words would be too wide side by side."""
    return st.selectbox(label, list(words), key=key, format_func=words.__getitem__, persist_state="session", width=200)


def one_arm(key: str, arms: Sequence[Arm]) -> Arm:
    """One method of several."""
    known = {arm.title: arm for arm in arms}
    return known[one_of_some("Method", key, dict(zip(known, known, strict=True)))]


def number(label: str, key: str) -> Any:
    """A number typed in; what is not allowed is refused where it is used."""
    whole = isinstance(st.session_state[key], int)
    kind: dict[str, Any] = {"step": 1} if whole else {"step": 0.05, "format": "%g"}
    return st.number_input(label, key=key, persist_state="session", width=140, **kind)
