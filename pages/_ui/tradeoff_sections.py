"""More parts of the Tradeoff page: sensitivity, kernels and the sources of error."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from dpgrams_core.cells import Cell
from dpgrams_core.checks import whole
from dpgrams_core.costs import ladder_seconds
from dpgrams_core.error_sources import ErrorSources, stream_error_sources
from dpgrams_core.errors import SpecError
from dpgrams_core.figures import (
    LAB_MEASURES,
    Chart,
    error_sources_chart,
    in_a_text,
    kernel_chart,
    sensitivity_chart,
)
from dpgrams_core.ladder_runs import LadderMemory
from dpgrams_core.sweeps import MAX_RUNS, plan_cells
from pages._ui import frame, show
from pages._ui.tradeoff_choices import (
    RULES,
    VARIED,
    chosen,
    error_measures,
    line,
    number,
    one_arm,
    source_arms,
)
from pages._ui.tradeoff_curve import command_box
from pages._ui.tradeoff_exports import result_files, sweep_files
from pages._ui.tradeoff_grids import (
    ARMS,
    Arm,
    LabSettings,
    numbers_as_typed,
    numbers_of,
    refuse_what_no_page_can_draw,
    sweep_command,
)
from pages._ui.tradeoff_live import Known, live_result, live_sweep, scheduler_address
from pages._ui.tradeoff_runs import streamed, workers

ORDERS = ("gaussian", "gaussian4", "legendre4")


@st.cache_resource(show_spinner=False)
def ladder_memory() -> LadderMemory:
    """The runs of ladders of errors that this server has made; all visitors share them."""
    return LadderMemory()


def sensitivity(settings: LabSettings) -> None:
    """A score against one control, as in the paper's appendix."""
    top = st.container()
    with st.container(horizontal=True, gap="medium"):
        control = chosen("lab_vary", {name: words for name, (words, _, _) in VARIED.items()}, "What is varied")
        measure = chosen(f"lab_score_{settings.kind}", LAB_MEASURES[settings.kind], "Score")
    with st.container(horizontal=True, gap="medium"):
        arm = one_arm(f"lab_s_arm_{settings.kind}_{control}", [arm for arm in ARMS[settings.kind] if arm.has(control)])
        values = line("Values", f"lab_values_{control}", "Numbers with blanks between them; the first ones are ours.")
        epsilon = number("at ε", "lab_one_eps")

    options = {name: value for name, value in settings.options_of(arm).items() if name != control}

    def plan() -> list[Cell]:
        vary = (control, numbers_of(control, values, VARIED[control][2]))
        return varied_cells(settings, arm, [epsilon], vary, options)

    question = f"How much does it matter? {VARIED[control][0]} of {in_a_text(arm.title)}, at ε = {epsilon:g}"
    charted(
        plan,
        top,
        question,
        lambda known, cells: sensitivity_chart(_results(known), cells, measure),
        "sensitivity",
        begins=arm.title,
    )
    vary = f" --vary {control} {' '.join(numbers_as_typed(values))}"
    command_box(sweep_command(settings, arm, f"{epsilon:g}", options, vary))


def kernel(settings: LabSettings) -> None:
    """Gaussian against order 4 on the same bandwidth, as in fig:kernel_order_validation."""
    arms = [arm for arm in ARMS[settings.kind] if arm.has("kernel")]  # the first has the paper's noise
    if not arms:
        frame.answer("DP-PMS has one kernel only: choose modes or clusters to compare kernels.")
        return
    top = st.container()
    with st.container(horizontal=True, gap="medium"):
        epsilons = line("Privacy budgets, ε", "lab_kernel_eps")
        rule = chosen("lab_rule", RULES, "Bandwidth rule, shared by all kernels")
        measure = chosen(f"lab_score_{settings.kind}", LAB_MEASURES[settings.kind], "Score")

    options = settings.options_of(arms[0]) | ({} if rule == "default" else {"bandwidth": rule})

    def plan() -> list[Cell]:
        return varied_cells(settings, arms[0], numbers_of("epsilon", epsilons, float), ("kernel", ORDERS), options)

    question = "Does a kernel of higher order pay?"
    charted(plan, top, question, lambda known, cells: kernel_chart(_results(known), cells, measure), "kernel")
    command_box(sweep_command(settings, arms[0], epsilons, options, f" --vary kernel {' '.join(ORDERS)}"))


def sources(settings: LabSettings) -> None:
    """The error of one method, told apart by switching its ingredients on one at a time."""
    top = st.container()
    with st.container(horizontal=True, gap="medium"):
        arm = one_arm(f"lab_e_arm_{settings.kind}", source_arms(settings.kind))
        n = number("Records, n", f"lab_one_n_{settings.dataset}")
        epsilon = number("at ε", "lab_one_eps")
        measure = chosen(f"lab_e_score_{settings.kind}", error_measures(settings.kind), "Error")
    how: dict[str, Any] = {
        "n": n,
        "epsilon": epsilon,
        "measure": measure,
        "runs": settings.runs,
        "seed": settings.seed,
        **settings.options_of(arm),
    }

    def draw(found: ErrorSources | None) -> None:
        with top:
            unclear = first_sentence(found.sentence, "Within") if found and "Within two" in found.sentence else ""
            words = "Where the error comes from is told apart run by run."
            text = frame.answer(f"{first_sentence(found.sentence)} {unclear}" if found else words)
        if found is not None:
            chart = error_sources_chart(found)
            show.chart(chart, "lab_sources")
            result_files("error_sources", one_cell(settings, arm, n, epsilon), how, text, chart)

    kept = ladder_memory()
    checked(
        lambda executor: stream_error_sources(arm.method, settings.dataset, executor=executor, store=kept, **how),
        ("sources", arm.method, settings.dataset, *sorted(how.items())),
        draw,
        lambda found: found.complete,
        lambda found: f"{found.runs} of {found.wanted} runs",
        lambda: settings.runs * ladder_seconds(one_cell(settings, arm, n, epsilon)),
    )


def varied_cells(
    settings: LabSettings, arm: Arm, epsilons: Sequence[float], vary: tuple[str, Sequence[Any]], options: dict[str, Any]
) -> list[Cell]:
    """A sweep of one method over a control, refused where it is more than the page holds."""
    sizes = numbers_of("n", settings.sizes, int)
    runs = whole("runs", settings.runs, 1, MAX_RUNS)
    refuse_what_no_page_can_draw(len(sizes) * len(epsilons) * len(vary[1]), runs, settings.dataset)
    return plan_cells(
        arm.method,
        settings.dataset,
        n=sizes,
        epsilon=epsilons,
        runs=runs,
        seed=settings.seed,
        vary=vary,
        confirm=True,  # what it costs is priced and waits for a press (tradeoff_live)
        **options,
    )


def one_cell(settings: LabSettings, arm: Arm, n: int, epsilon: float) -> Cell:
    """A single point of the page's settings."""
    options = settings.options_of(arm)
    (cell,) = plan_cells(arm.method, settings.dataset, n=[n], epsilon=[epsilon], runs=1, seed=settings.seed, **options)
    return cell


def charted(
    plan: Callable[[], list[Cell]],
    top: Any,
    question: str,
    picture: Callable[[Known, Sequence[Cell]], Chart],
    key: str,
    begins: str = "",
) -> None:
    """A sweep of its own with one chart; the answer is that sentence of the chart's which ``begins`` so."""
    try:
        cells = plan()
    except SpecError as error:
        with top:
            frame.answer("There is no curve to draw yet.")
        frame.problem(error)
        return

    def draw(known: Known) -> None:
        chart = picture(known, cells)
        with top:
            text = frame.answer(first_sentence(chart.sentence, begins))
        show.chart(chart, f"lab_{key}", question)
        sweep_files(cells, text, lambda: [chart])

    live_sweep(cells, draw)


def checked(
    make: Callable[[Any], Any],
    key: tuple[object, ...],
    draw: Callable[[Any], None],
    finished: Callable[[Any], bool],
    words: Callable[[Any], str],
    price: Callable[[], float],
    by_itself: bool = True,
) -> None:
    """A streamed result; settings that cannot be used are refused with their sentence before anything starts."""
    try:
        make("serial").close()  # it checks at the call and runs nothing until it is read
        seconds = price()
    except SpecError as error:
        draw(None)
        frame.problem(error)
        return
    if scheduler_address():
        st.caption("The Dask cluster is for the curves: this part runs on the server itself.")
    live_result(key, streamed(make, workers()), draw, finished, words=words, seconds=seconds, by_itself=by_itself)


def _results(known: Known) -> list[Any]:
    return [found for found in known.values() if found.ended]


def first_sentence(text: str, begins: str = "") -> str:
    """The last sentence that begins so (of the largest n), or the first one; the rest stands under the chart."""
    sentences = [part.rstrip(".") + "." for part in text.split(". ")]
    wanted = [sentence for sentence in sentences if begins and sentence.startswith(begins)]
    return html.escape((wanted or sentences[:1])[-1])
