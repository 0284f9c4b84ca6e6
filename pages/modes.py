"""Modes: what does privacy cost when you look for the peaks of a density?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from dpgrams_core import DATASETS, Dataset, Release, SpecError, score
from dpgrams_core.costs import cells_seconds, density_seconds, run_seconds
from dpgrams_core.figures import (
    Chart,
    DensityGrid,
    anchors_chart,
    contour_chart,
    released_chart,
    runs_chart,
    short,
    surface_chart,
    tradeoff_chart,
)
from dpgrams_core.recipes import Recipe
from dpgrams_core.sweeps import Cell, CellResult, plan_cells
from pages._ui import cache, exports, frame, show, state
from pages._ui.controls import NOTHING, ModesSettings, modes_controls

QUESTION = "What does privacy cost when you look for modes?"
CURVE_EPSILONS = (0.1, 0.25, 0.5, 1.0, 5.0)  # those of the paper's panel (d)
CURVE_SIZES = (700, 1_000, 2_000, 5_000)
RUNS = 20
LIVE_LIMIT = 20_000  # above this n, curves always wait for a press
NODES = 70  # of the plain density, a side
SMALLER = "n, m, number of steps T or of starts k, or a larger bandwidth or h_DAP"
DEFAULT = ModesSettings(
    method="dp_grams", dataset="four_corners", n=5_000, data_seed=0, seed=0, options=(("epsilon", 1.0),)
)


def private_seconds(settings: ModesSettings) -> float:
    """About how long one run of every private method takes."""
    return sum(seconds_of(settings, arm.method, arm.options) for arm in arms(settings))


def first_seconds(settings: ModesSettings) -> float:
    """About how long everything takes that the page computes at once."""
    plain = seconds_of(settings, "mean_shift", settings.baseline_options)
    return private_seconds(settings) + plain + density_seconds(settings.n, NODES)


def seconds_of(settings: ModesSettings, method: str, options: tuple[tuple[str, Any], ...]) -> float:
    """About how long a method takes on these data."""
    return run_seconds(method, n=settings.n, box=np.array(DATASETS[settings.dataset].box), **dict(options))


def arms(settings: ModesSettings) -> list[ModesSettings]:
    """The method, and the one beside it if there is one."""
    return [settings] if settings.second is None else [settings, settings.second]


def private_run(settings: ModesSettings, seed: int) -> Release:
    """One simulated private run."""
    return cache.release(settings.method, settings.dataset, settings.n, settings.data_seed, seed, settings.options)


def plain_run(settings: ModesSettings) -> Release:
    """Mean shift on the same data with the same bandwidth."""
    return cache.release("mean_shift", settings.dataset, settings.n, settings.data_seed, 0, settings.baseline_options)


def usable(wished: ModesSettings) -> ModesSettings:
    """The settings to show: the wished ones, or else a sentence for what cannot run and the last good ones."""
    failed: list[ModesSettings] = []
    for arm in arms(wished):
        try:
            private_run(arm, arm.seed)
            plain_run(wished)
        except SpecError as error:
            failed.append(arm)
            frame.problem(error if wished.second is None else f"{arm.title}: {error}")
    if not failed:
        state.remember_good("modes", wished)
        return wished
    st.caption("Below is the last picture that worked.")
    # A link may open on a pair of which only the second cannot run: then the first stands alone.
    return state.last_good("modes", DEFAULT if wished in failed else replace(wished, compare=NOTHING))


def answer(data: Dataset, release: Release, baseline: Release) -> str:
    """One sentence, which comes back, and four numbers."""
    private, plain = score(release, data), score(baseline, data)
    k = int(private["found"] + private["missed"])
    if len(release.modes) == 0:
        return frame.answer(
            f"At ε = {short(release.spec.epsilon)} nothing stands above the noise, so the "
            f'<b class="private">private</b> search reports <b>no mode</b> rather than a wrong one.'
        )
    ratio = private["mse_per_true_mode"] / plain["mse_per_true_mode"]
    text = frame.answer(
        f'At ε = {short(release.spec.epsilon)} the <b class="private">private</b> search found '
        f"<b>{int(private['found'])} of {k}</b> modes"
        + (f" and <b>{int(private['spurious'])}</b> that are not there" if private["spurious"] else "")
        + f'. Its squared error per mode is <b class="private">{short(private["mse_per_true_mode"])}</b> against '
        f'<b class="plain">{short(plain["mse_per_true_mode"])}</b> without privacy: '
        f"<b>{short(ratio)} times</b> as large."
    )
    with st.container(key="numbers"):
        columns = st.columns(4)
        columns[0].metric("Modes found", f"{int(private['found'])} of {k}")
        columns[1].metric("Spurious modes", int(private["spurious"]))
        paper = "The paper's metric (MMMSE): it divides by the larger number of modes, so extra modes dilute it."
        columns[2].metric("Paper's MSE, private", short(private["mse"]), help=paper)
        columns[3].metric("Paper's MSE, mean shift", short(plain["mse"]), help="No privacy, same data, same bandwidth.")
    return text


def verdict(data: Dataset, release: Release, title: str) -> str:
    """What one of two methods found, how well, and with which guarantee."""
    status, name = release.guarantee.words, f'<b class="private">{title}</b>'
    if len(release.modes) == 0:
        return f"{name} reports <b>no mode</b>: nothing stands above its noise; <b>{status}</b>."
    scores = score(release, data)
    text = f"{name} found <b>{int(scores['found'])} of {int(scores['found'] + scores['missed'])}</b> modes"
    if scores["spurious"]:
        text += f" and <b>{int(scores['spurious'])}</b> not there"
    return f'{text}, error <b class="private">{short(scores["mse_per_true_mode"])}</b>, <b>{status}</b>.'


def answer_for_two(settings: ModesSettings, data: Dataset, releases: list[Release], baseline: Release) -> str:
    """A line for each method."""
    pairs = zip(arms(settings), releases, strict=True)
    lines = [verdict(data, release, arm.title) for arm, release in pairs]
    plain = short(score(baseline, data)["mse_per_true_mode"])
    lines.append(f'Without privacy, mean shift: error <b class="plain">{plain}</b>.')
    return frame.answer(f"At ε = {short(settings.epsilon)} " + "<br>".join(lines))


def what_both_share(settings: ModesSettings, release: Release) -> str:
    """What the numbers of two methods mean."""
    return (
        f"{DATASETS[settings.dataset].title}, n = {settings.n:,}: the same records, ε, δ and seed of the noise for "
        "both. Error: squared, for each true mode. The grey lines are the same in both pictures: the plain KDE with "
        f"h = {short(release.spec.bandwidth)} (not private)."
    )


def files(settings: ModesSettings, text: str, charts: list[Chart], releases: list[Release], caption: str) -> None:
    """The page's exports: every run on it, mean shift too."""
    recipes = [recipe(arm, arm.method, arm.seed, arm.options) for arm in arms(settings)]
    recipes.append(recipe(settings, "mean_shift", 0, settings.baseline_options))
    pairs = zip(arms(settings), releases, strict=True)
    exports.simulation_files(
        recipes,
        question=QUESTION,
        answer=text,
        charts=charts,
        guarantees=[(arm.title, release.guarantee) for arm, release in pairs],
        notes=[f"{caption} Mean shift (blue) and the grey lines are not private."],
    )


def recipe(settings: ModesSettings, method: str, seed: int, options: tuple[tuple[str, Any], ...]) -> Recipe:
    """How to repeat one run of this page."""
    place = {"dataset": settings.dataset, "n": settings.n, "data_seed": settings.data_seed}
    return Recipe(method=method, seed=seed, options=options, **place)


def facts(release: Release) -> str:
    """The numbers a method ended up with."""
    spec = release.spec
    text = f"bandwidth h = {short(spec.bandwidth)}"
    if release.surface is None:
        text += f", minibatch m = {spec.batch_size:,}, T = {spec.n_steps} steps, k = {spec.n_starts} starts"
    return text


def show_origin(data: Dataset, release: Release, mark: str = "", whose: str = "") -> None:
    """What a method's modes come from: its released surface, or its anchors."""
    if release.surface is not None:
        title = f"{whose}: the released surface (private)" if whose else "What is released: a private surface"
        show.chart(released_chart(data, release), f"released{mark}", title)
    else:
        title = f"{whose}: where it starts (private)" if whose else "Where it starts: private anchors"
        show.chart(anchors_chart(data, release), f"anchors{mark}", title)


def show_one(settings: ModesSettings, data: Dataset, grid: DensityGrid, release: Release, baseline: Release) -> None:
    """The picture and its guarantee, then what is not private beside what is released."""
    text = answer(data, release, baseline)
    caption = f"{DATASETS[settings.dataset].title}, n = {settings.n:,}, {facts(release)}."
    place = exports.caption_beside(caption)
    picture, card = st.columns([3, 2], gap="medium")
    contours = contour_chart(data, grid, release, baseline)
    with picture:
        show.chart(contours, "contours", "Where the private search ends up")
    with place:
        files(settings, text, [contours], [release], caption)
    with card:
        frame.guarantee_card(release)
    surface, origin = st.columns(2, gap="medium")
    with surface:
        landscape(data, grid, release)
    with origin:
        show_origin(data, release)


def show_two(
    settings: ModesSettings, data: Dataset, grid: DensityGrid, releases: list[Release], baseline: Release
) -> None:
    """Two methods on the same data, one a column."""
    text = answer_for_two(settings, data, releases, baseline)
    caption = what_both_share(settings, releases[0])
    place = exports.caption_beside(caption)
    charts = [contour_chart(data, grid, release, baseline, height=590) for release in releases]
    for column, arm, release, chart, mark in zip(
        st.columns(2, gap="medium"), arms(settings), releases, charts, ("", "_2"), strict=True
    ):
        with column:
            frame.method_heading(arm.title, release)
            paper = short(score(release, data)["mse"])
            st.caption(f"With {facts(release)}. MSE as in the paper, which extra modes dilute: {paper}.")
            show.chart(chart, f"contours{mark}")
            frame.guarantee_card(release, f"guarantee_card{mark}")
    with place:
        files(settings, text, charts, releases, caption)
    for column, arm, release, mark in zip(
        st.columns(2, gap="medium"), arms(settings), releases, ("", "_2"), strict=True
    ):
        with column:
            show_origin(data, release, mark, arm.title)
    landscape(data, grid, releases[0])


def landscape(data: Dataset, grid: DensityGrid, release: Release) -> None:
    """The plain density in 3-D; a switch, since machines without a graphics card draw it slowly."""
    st.subheader("The landscape (not private)")
    if st.toggle("Draw it in 3-D", key="landscape", persist_state="session"):
        show.chart(surface_chart(data, grid, release.spec.bandwidth), "surface")


def curve_cells(settings: ModesSettings, sizes: list[int]) -> list[Cell]:
    """The points of the curve: mean shift and the method, then the method beside it."""
    cells: list[Cell] = []
    for arm in arms(settings):
        methods = [arm.method] if cells else ["mean_shift", arm.method]
        options = {name: value for name, value in arm.options if name != "epsilon"}
        cells += plan_cells(methods, arm.dataset, n=sizes, epsilon=CURVE_EPSILONS, runs=RUNS, **options)
    return cells


def curve(settings: ModesSettings) -> None:
    """(d) MSE against epsilon, filling in live."""
    st.subheader("What does each ε cost?")
    chosen = st.multiselect(
        "Sample sizes on the curve",
        sorted({*CURVE_SIZES, settings.n}),
        default=[settings.n],
        key=f"curve_n_{settings.n}",
        format_func="{:,}".format,
    )
    sizes = chosen or [settings.n]
    cells = curve_cells(settings, sizes)
    unasked = show.UNASKED_SECONDS if max(sizes) <= LIVE_LIMIT else 0.0
    if not show.wanted("curve", "Draw the curve", tuple(cells), cells_seconds(cells), SMALLER, unasked):
        return
    results: list[CellResult] = []

    def steps() -> Iterator[int]:
        for cell in cells:
            results.append(cache.cell(cell))
            yield len(results)

    show.live(steps(), len(cells), lambda: tradeoff_chart(results, cells, settings.epsilon), "curve")


def repeated_runs(settings: ModesSettings, data: Dataset, grid: DensityGrid, baseline: Release) -> None:
    """(e) Twenty private runs on one data set, for each method."""
    st.subheader("Was that luck? Twenty private runs on the same data")
    unasked = show.UNASKED_SECONDS if settings.n <= LIVE_LIMIT else 0.0
    if not show.wanted("runs", "Draw the runs", settings, RUNS * private_seconds(settings), SMALLER, unasked):
        return
    if settings.second is None:
        runs = [private_run(settings, settings.seed + i) for i in range(RUNS)]
        show.chart(runs_chart(data, grid, runs, baseline), "runs")
        return
    for column, arm, mark in zip(st.columns(2, gap="medium"), arms(settings), ("", "_2"), strict=True):
        with column:
            runs = [private_run(arm, arm.seed + i) for i in range(RUNS)]
            show.chart(runs_chart(data, grid, runs, baseline, columns=4, row_height=115), f"runs{mark}", arm.title)


frame.open_page(QUESTION, "pages/modes.py")
wished = modes_controls()
if refused := state.refused_keys():
    st.info(f"The link's values for {', '.join(refused)} cannot be used; the defaults stand instead.")
if not show.may_run("first", wished, first_seconds(wished), SMALLER):
    frame.answer("Nothing has been computed for these settings yet.")
    st.stop()
settings = usable(wished)
data = cache.dataset(settings.dataset, settings.n, settings.data_seed)
releases = [private_run(arm, arm.seed) for arm in arms(settings)]
baseline = plain_run(settings)
first = releases[0]
kernel = getattr(first.spec, "kernel", "gaussian")
grid = cache.kde(settings.dataset, settings.n, settings.data_seed, kernel, first.spec.bandwidth)
if len(releases) == 1:
    show_one(settings, data, grid, first, baseline)
else:
    show_two(settings, data, grid, releases, baseline)
curve(settings)
repeated_runs(settings, data, grid, baseline)
