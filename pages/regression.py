"""Regression: what does privacy cost when a curve has several branches?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from dpgrams_core import DATASETS, Dataset, Release, score
from dpgrams_core.datasets.registry import datasets_of
from dpgrams_core.figures import regression as pictures
from dpgrams_core.figures.curve import tradeoff_chart
from dpgrams_core.figures.frames import regression_scene
from dpgrams_core.figures.style import Chart
from dpgrams_core.model.format import short, whole_percent
from dpgrams_core.model.run import Run
from dpgrams_core.studies.costs import cell_seconds, cells_seconds, density_seconds
from dpgrams_core.sweeps.run import plan_cells
from pages._ui import cache, charts, exports, handle, jobs, layout, state
from pages._ui.controls import Group, other_regression, title_of, without_privacy

QUESTION = "What does privacy cost when a curve has several branches?"
PIECES, RUNS = 5, charts.RUNS  # each point of the curve comes in pieces, so that a stop takes effect soon
PMS_LIMIT = 2_400  # PMS looks at all pairs of records: above this n it waits for a click
LIVE_LIMIT = 5_000  # above this n the curve always waits for a press
SMALLER = "n, m, number of steps T or of starts, or a larger bandwidth"
DEFAULT = Run(method="functional_regression", dataset="sinusoid", n=1_200, epsilon=1.0, options=(("delta", 1e-5),))
# What the chart of the branches may show, and what it shows at first.
SHOWN = ("private", "other", "pms", "lowess", "truth", "records")
SHOWN_FIRST = "private,pms,lowess,truth,records"
PLACES = pictures.place_names(
    np.array(DATASETS[datasets_of("regression")[0]].box)
)  # x; both data sets have the same range
FIRST_PLACE = "0.46"  # both data sets have two branches there


def known_curves(text: str) -> str:
    """A parser of the URL for names of curves."""
    names = {name for name in text.split(",") if name}
    if not names <= set(SHOWN):
        raise ValueError(f"it must be some of {', '.join(SHOWN)}")
    return ",".join(name for name in SHOWN if name in names)


def keep_choice() -> None:
    """Put the pills into the URL's text."""
    st.session_state["reg_show"] = known_curves(",".join(st.session_state["reg_show_pills"]))


def pms_run(run: Run) -> Release | None:
    """PMS, or None while a large n waits for a click."""
    if run.n > PMS_LIMIT and not charts.agreed(
        f"_pms_agreed_{run.n}",
        f"PMS compares all pairs of records; at n = {run.n:,} that takes a while, so it waits.",
        "Run PMS too",
        "pms_start",
    ):
        return None
    with st.spinner("PMS, without privacy: all pairs of records…"):
        return cache.release(without_privacy(run, "pms"))


def answer(data: Dataset, release: Release, pms: Release | None, lowess: Release) -> str:
    """A sentence or two, which come back."""
    assert lowess.curve is not None
    private, plain = score(release, data), None if pms is None else score(pms, data)
    recall, error = whole_percent(private["branch_recall"]), short(private["mse"])
    text = (
        f'At ε = {short(release.spec.epsilon)} the <b class="private">private</b> curve finds <b>{recall}</b> of the '
        f'branches with a squared error of <b class="private">{error}</b>'
    )
    if plain is not None:
        text += (
            f'; without privacy, PMS finds <b>{whole_percent(plain["branch_recall"])}</b> with <b class="plain">'
            f"{short(plain['mse'])}</b>"
        )
    return layout.answer(
        f"{text}. LOWESS draws the mean: <b>{whole_percent(score(lowess, data)['spurious'])}</b> of its curve lies on "
        f"no branch, and {whole_percent(pictures.share_near(data, lowess.curve))} of the records are near it."
    )


def numbers(data: Dataset, release: Release, pms: Release | None) -> None:
    """The numbers of the answer, under the picture."""
    private = score(release, data)
    paper = "The paper's oracle MSE: squared distance to the nearest true branch. A missed branch costs nothing."
    layout.numbers(
        ("Branches found", whole_percent(private["branch_recall"]), "Share of the true branches, over all x."),
        ("On no branch", whole_percent(private["spurious"]), "Share of the private curve that is near no true branch."),
        ("Squared error, private", short(private["mse"]), paper),
        ("Squared error, PMS", "–" if pms is None else short(score(pms, data)["mse"]), "No privacy, same data."),
    )


def curve(run: Run) -> None:
    """Oracle MSE against ε for several n, filling in live: the private method, and PMS where n allows it."""
    info = DATASETS[str(run.dataset)]
    first = sorted({*info.sizes[:3], run.n} if run.n <= PMS_LIMIT else {run.n})
    sizes = charts.curve_sizes(run.n, {*info.sizes, run.n}, first, f"reg_curve_n_{run.dataset}_{run.n}")
    plan: dict[str, Any] = {"dataset": run.dataset, "epsilon": info.epsilons, "design": run.design}
    cells: list[Run] = []
    for n in sizes:
        cells += plan_cells(run.method, n=[n], runs=RUNS // PIECES, **plan, **dict(run.options))
        if n <= PMS_LIMIT:
            cells += plan_cells("pms", n=[n], runs=1, **plan)
    live = max(sizes) <= LIVE_LIMIT
    if charts.wanted("curve", "Draw the curve", tuple(cells), PIECES * cells_seconds(cells), SMALLER, live):
        work = jobs.sweep([replace(cell, seed=piece) for piece in range(PIECES) for cell in cells])

        def draw(known: jobs.Known) -> Chart:
            return cache.curve(known, tradeoff_chart, jobs.pooled_by_seed(known), cells, run.epsilon)

        charts.filling(work, draw, "curve")


def repeated_runs(run: Run, data: Dataset) -> None:
    """Twenty private runs on one data set."""
    if charts.repeated(run, cell_seconds(run), SMALLER, run.n <= LIVE_LIMIT):
        charts.chart(cache.picture(run, again, run, data), "runs")


def again(run: Run, data: Dataset) -> Chart:
    """Their picture."""
    return pictures.runs_chart(data, [cache.release(replace(run, seed=run.seed + number)) for number in range(RUNS)])


def beside_and_at_one_x(run: Run, data: Dataset, release: Release, branches: Chart) -> None:
    """The curves over x and, for one x, the density of y."""
    left, right = st.columns([3, 2], gap="medium")
    with left:
        charts.chart(branches, "branches")
    with right:
        slices, place = cache.slices(run), st.session_state["reg_x"]
        charts.chart(cache.picture((run, place), pictures.slice_chart, data, release, slices, place), "slice")
        st.select_slider("x", PLACES, key="reg_x", help="The predictor to look at (x).", persist_state="session")
    of_slices = (run, "branches_chart", "slice_chart", place)
    charts.follow_pointer("branches_chart", of_slices, partial(cache.slices_as_sent, *of_slices))


layout.open_page(QUESTION, "pages/regression.py")
group = Group()
with layout.sidebar():
    epsilon_first = st.container()  # what one moves most stands on top, though it belongs to the method below
    more = " The predictor x is public; the response y is private."
    dataset = group.dataset("regression", "reg_dataset", "A synthetic design of the paper, drawn afresh.", more)
    method = group.method("regression", "reg_method", "How the branches are found privately.")
    n = group.records("reg_n", dataset)
    with epsilon_first:
        options = group.budget(method, "reg_delta")
    options |= group.rest(method)
group.switch("curve", "runs")
group.start("more", next(iter(charts.MORE)), state.one_of_these(list(charts.MORE)))
group.start("reg_show", SHOWN_FIRST, known_curves)
group.start("reg_x", FIRST_PLACE, state.one_of_these(PLACES))
wished = group.run(method, dataset, n, options)
at_once = [wished, other_regression(wished), without_privacy(wished, "lowess")]
charts.begin(wished, sum(map(cell_seconds, at_once)) + density_seconds(wished.n, 120), SMALLER)
run = layout.good_or_last("regression", wished, layout.works(lambda: cache.release(wished)), DEFAULT)
data = cache.records(run)
release, lowess = cache.release(run), cache.release(without_privacy(run, "lowess"))
scene = regression_scene(data, lowess, release.curve_band is not None)
if layout.presenting():  # the line is the picture's own, and moves with its handle
    handle.show(run, data, release, scene, "released_chart", SMALLER)
layout.presented()
answered = st.container()  # the answer comes first, also where PMS waits for a click
pms = pms_run(run)
with answered:
    text = answer(data, release, pms, lowess)
caption = (
    f"{DATASETS[str(run.dataset)].title}, n = {run.n:,}, bandwidth {short(release.spec.bandwidth)} of each side "
    "of the box. The predictor x is public, the response y is private. PMS, partial mean shift, finds branches without "
    "privacy and with its own bandwidth."
)
left, right = st.columns([3, 2], gap="medium")
with left:
    head = partial(layout.method_heading, title_of(run), release)
    handle.show(run, data, release, scene, "released_chart", SMALLER, head=head)
    of_release = pictures.ascent_chart if release.surface is None else pictures.ridges_chart
    charts.table(cache.picture(run, of_release, data, release), "released", canvas=True)
with right:
    layout.guarantee_card(release)
    if release.curve_band is not None and not layout.presenting():
        charts.regions_kept()
numbers(data, release, pms)
files_place = exports.caption_beside(caption)
st.subheader("Beside other curves, and at one x")
other = other_regression(run)
titles = {"private": title_of(run), "other": title_of(other), "pms": "PMS", "lowess": "LOWESS"}
# A list cannot stand in the URL, so the session holds it twice: as the pills have it and as text.
if "reg_show_pills" not in st.session_state:
    st.session_state["reg_show_pills"] = [name for name in st.session_state["reg_show"].split(",") if name]
chosen = st.pills(
    "Show",
    SHOWN,
    selection_mode="multi",
    format_func={**titles, "truth": "true branches", "records": "records"}.__getitem__,
    key="reg_show_pills",
    help="What the chart shows: curves together or one by one.",
    on_change=keep_choice,
    persist_state="session",
)
beside = {"other": cache.release(other)} if "other" in chosen else {}
fits = {"private": release, **beside, "pms": pms, "lowess": lowess}
curves = [(titles[name], fit) for name, fit in fits.items() if name in chosen and fit is not None]
shown = (run, tuple(sorted(chosen)), tuple(title for title, _ in curves))
also = {"records": "records" in chosen, "truth": "truth" in chosen}
branches = cache.picture(shown, pictures.branches_chart, data, curves, **also)
draw = partial(beside_and_at_one_x, run, data, release, branches)
charts.part("beside", group.keys, partial(charts.once_seen, "beside", shown, draw))
private = [run, *([other] if beside else [])]
with files_place:
    exports.simulation_files(
        [*private, *(without_privacy(run, name) for name in ("pms", "lowess") if fits[name] is not None)],
        question=QUESTION,
        answer=text,
        charts=[branches],
        guarantees=[(title_of(arm), cache.release(arm).guarantee) for arm in private],
        page="regression",
        notes=[f"{caption} The records, PMS and LOWESS are shown without privacy."],
    )
charts.more(group.keys, {"curve": partial(curve, run), "runs": partial(repeated_runs, run, data)})
