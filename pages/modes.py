"""Modes: what does privacy cost when you look for the peaks of a density?"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from dpgrams_core import DATASETS, Dataset, Release, score
from dpgrams_core.figures.curve import tradeoff_chart
from dpgrams_core.figures.frames import modes_scene
from dpgrams_core.figures.modes import anchors_chart, contour_chart, released_chart, runs_chart, surface_chart, verdict
from dpgrams_core.figures.style import Chart
from dpgrams_core.figures.traces import DensityGrid
from dpgrams_core.model.format import short
from dpgrams_core.model.run import Run
from dpgrams_core.model.settings import CALIBRATIONS
from dpgrams_core.studies.costs import cell_seconds, cells_seconds, density_seconds
from dpgrams_core.sweeps.run import plan_cells
from pages._ui import cache, charts, controls, exports, handle, jobs, layout, state
from pages._ui.controls import Group, title_of, without_privacy

QUESTION = "What does privacy cost when you look for modes?"
RUNS = charts.RUNS
LIVE_LIMIT = 20_000  # above this n, curves always wait for a press
NODES = 70  # of the plain density, a side
SMALLER = "n, m, number of steps T or of starts k, or a larger bandwidth or h_DAP"
DEFAULT = Run(
    method="dp_grams",
    dataset="four_corners",
    n=5_000,
    epsilon=1.0,
    options=(("calibration", next(iter(CALIBRATIONS))),),
)
MARKS = ("", "_2")  # of the keys of the first method, and of the one beside it
FACTS: dict[str, Callable[[Any], str]] = {
    "bandwidth": lambda value: f"bandwidth h = {short(value)}",
    "batch_size": "minibatch m = {:,}".format,
    "n_steps": "T = {} steps".format,
    "n_starts": "k = {} starts".format,
}


def mean_shift(run: Run) -> Run:
    """Mean shift on the same data with the same bandwidth."""
    shared = ("n_modes",) if run.method == "functional" else ("bandwidth", "bandwidth_scale", "n_modes")
    return without_privacy(run, "mean_shift", *shared)


def answer(data: Dataset, release: Release, baseline: Release) -> str:
    """One sentence, which comes back."""
    private, plain = score(release, data), score(baseline, data)
    found = f"{int(private['found'])} of {int(private['found'] + private['missed'])}"
    if len(release.modes) == 0:
        return layout.answer(
            f"At ε = {short(release.spec.epsilon)} nothing stands above the noise, so the "
            f'<b class="private">private</b> search reports <b>no mode</b> rather than a wrong one.'
        )
    ratio = private["mse_per_true_mode"] / plain["mse_per_true_mode"]
    return layout.answer(
        f'At ε = {short(release.spec.epsilon)} the <b class="private">private</b> search found <b>{found}</b> modes'
        + (f" and <b>{int(private['spurious'])}</b> that are not there" if private["spurious"] else "")
        + f'. Its squared error per mode is <b class="private">{short(private["mse_per_true_mode"])}</b> against '
        f'<b class="plain">{short(plain["mse_per_true_mode"])}</b> without privacy: '
        f"<b>{short(ratio)} times</b> as large."
    )


def numbers(data: Dataset, release: Release, baseline: Release) -> None:
    """The numbers of the answer, under the picture, where there are any."""
    if len(release.modes) == 0:
        return
    private, plain = score(release, data), score(baseline, data)
    paper = "Squared, for each true mode. The paper's MSE, which extra modes dilute: "
    layout.numbers(
        ("Modes found", f"{int(private['found'])} of {int(private['found'] + private['missed'])}", None),
        ("Spurious modes", int(private["spurious"]), "Reported, and nowhere near a true mode."),
        ("Error per mode, private", short(private["mse_per_true_mode"]), f"{paper}{short(private['mse'])}."),
        ("Error per mode, mean shift", short(plain["mse_per_true_mode"]), f"{paper}{short(plain['mse'])}."),
    )


def facts(release: Release) -> list[str]:
    """The numbers a method ended up with, of those that its settings have."""
    known = {name: getattr(release.spec, name, None) for name in FACTS}
    return [FACTS[name](value) for name, value in known.items() if value is not None]


def show_origin(run: Run, mark: str = "", whose: str = "") -> None:
    """What a method's modes come from: its released surface, or its anchors, if it has either.

    It waits until it is looked at: what draws it takes a browser half a second, which the first picture would wait for.
    Then it stays when ε is moved.
    """
    if cache.release(run).surface is not None or cache.release(run).anchors is not None:
        charts.once_seen(f"origin{mark}", run.method, partial(draw_origin, run, mark, whose))


def draw_origin(run: Run, mark: str, whose: str) -> None:
    """The picture of it."""
    data, release = cache.records(run), cache.release(run)
    if release.surface is not None:
        title = f"{whose}: the released surface (private)" if whose else "What is released: a private surface"
        charts.chart(cache.picture(run, released_chart, data, release), f"released{mark}", title)
    else:
        what = "private" if release.events else "unpriced"  # as run, no accountant can price them
        title = f"{whose}: where it starts ({what})" if whose else f"Where it starts: {what} anchors"
        charts.chart(cache.picture(run, anchors_chart, data, release), f"anchors{mark}", title)
    if release.mode_covariances is not None and len(release.modes) and not layout.presenting():
        charts.regions_kept(mark)


def landscape(key: Hashable, data: Dataset, grid: DensityGrid, bandwidth: float) -> None:
    """The plain density in 3-D; a switch, since machines without a graphics card draw it slowly."""
    st.subheader("The landscape (not private)")
    if st.toggle("Draw it in 3-D", key="landscape", persist_state="session"):
        charts.once_seen(
            "landscape", key, lambda: charts.chart(cache.picture(key, surface_chart, data, grid, bandwidth), "surface")
        )


def curve(runs: list[Run]) -> None:
    """MSE against ε, filling in live: mean shift and the method, then the method beside it."""
    info, n, epsilon = DATASETS[str(runs[0].dataset)], runs[0].n, runs[0].epsilon
    sizes = charts.curve_sizes(n, {*info.sizes, n}, [n], f"curve_n_{n}")
    cells: list[Run] = []
    for arm in runs:
        methods = [arm.method] if cells else ["mean_shift", arm.method]
        grid: dict[str, Any] = {"n": sizes, "epsilon": info.epsilons, "design": arm.design}
        cells += plan_cells(methods, info.name, runs=RUNS, **grid, **dict(arm.options))
    live = max(sizes) <= LIVE_LIMIT
    if charts.wanted("curve", "Draw the curve", tuple(cells), cells_seconds(cells), SMALLER, live):

        def draw(known: jobs.Known) -> Chart:
            return cache.curve(known, tradeoff_chart, jobs.whole(known), cells, epsilon)

        charts.filling(jobs.sweep(cells), draw, "curve")


def again(arm: Run, data: Dataset, grid: DensityGrid, baseline: Release, **look: int) -> Chart:
    """The picture of twenty private runs of one method."""
    runs = [cache.release(replace(arm, seed=arm.seed + number)) for number in range(RUNS)]
    return runs_chart(data, grid, runs, baseline, **look)


def repeated_runs(runs: list[Run], data: Dataset, grid: DensityGrid, baseline: Release) -> None:
    """Twenty private runs on one data set, for each method."""
    if not charts.repeated(tuple(runs), sum(map(cell_seconds, runs)), SMALLER, runs[0].n <= LIVE_LIMIT):
        return
    look: dict[str, int] = {} if len(runs) == 1 else {"columns": 4, "row_height": 115}
    for column, arm, mark in zip(st.columns(len(runs), gap="medium"), runs, MARKS, strict=False):
        with column:
            picture = cache.picture((arm, runs[0]), again, arm, data, grid, baseline, **look)
            charts.chart(picture, f"runs{mark}", title_of(arm) if len(runs) > 1 else "")


def show_main(run: Run, release: Release, key: str, head: Callable[[], Any] | None = None) -> None:
    """The main picture with its ε handle; grey lines of the plain density only where no private surface is."""
    without_surface = release.surface is None and release.pooled is None
    grid, sure = cache.kde(*of_grid) if without_surface else None, release.mode_covariances is not None
    scene = modes_scene(data, baseline, grid, sure)
    handle.show(run, data, release, scene, f"{key}_chart", SMALLER, head=head)


layout.open_page(QUESTION, "pages/modes.py")
group = Group()
with layout.sidebar():
    epsilon_first = st.container()  # what one moves most stands on top, though it belongs to the method below
    dataset = group.dataset("modes", "dataset", "A synthetic mixture of the paper, drawn afresh.")
    method = group.method("modes", "method", "How the modes are found privately.")
    words = "A second method beside it: same data, ε, δ and seeds. What only it has stays at its defaults."
    compare = group.choice(
        "Compare with", "compare", list(controls.COMPARISON_WORDS), words, controls.COMPARISON_WORDS.__getitem__
    )
    remark = st.empty()
    n = group.records("n", dataset)
    with epsilon_first:
        options = group.budget(method)
    rule = partial(controls.bandwidth_rule, group) if method == "dp_grams" else dict
    options |= group.rest(method, bandwidth=rule)
group.switch("curve", "runs", "landscape")
group.start("more", next(iter(charts.MORE)), state.one_of_these(list(charts.MORE)))
wished = group.run(method, dataset, n, options)
if controls.compares_with_itself(wished, compare):
    remark.caption("That is the method itself: choose another one to see two side by side.")
asked = [arm for arm in (wished, controls.beside(wished, compare)) if arm is not None]
first_seconds = sum(map(cell_seconds, [*asked, mean_shift(wished)])) + density_seconds(wished.n, NODES)
charts.begin(tuple(asked), first_seconds, SMALLER)
whose = [title_of(arm) if len(asked) > 1 else "" for arm in asked]
works = [
    layout.works(partial(cache.release, arm), title) and layout.works(partial(cache.release, mean_shift(wished)), title)
    for arm, title in zip(asked, whose, strict=True)
]
# A link may open on a pair of which only the second cannot run: then the first stands alone.
runs = layout.good_or_last("modes", asked, all(works), [wished if works[0] else DEFAULT])
data = cache.records(runs[0])
releases = [cache.release(arm) for arm in runs]
baseline = cache.release(mean_shift(runs[0]))
first = releases[0]
# Of the grey lines: the method's own, or that of mean shift where the method has none.
bandwidth = getattr(first.spec, "bandwidth", baseline.spec.bandwidth)
of_grid = (without_privacy(runs[0], "mean_shift"), getattr(first.spec, "kernel", "gaussian"), bandwidth)
about = f"{DATASETS[str(runs[0].dataset)].title}, n = {runs[0].n:,}"
titles = [title_of(arm) for arm in runs]
if layout.presenting():  # the line is the picture's own, and moves with its handle
    for column, run, release, mark in zip(st.columns(len(runs)), runs, releases, MARKS, strict=False):
        with column:
            show_main(run, release, f"contours{mark}")
layout.presented()
if len(runs) == 1:
    text = answer(data, first, baseline)
    caption = ", ".join([about, *facts(first)]) + "."
    picture, card = st.columns([3, 2], gap="medium")
    with picture:
        show_main(runs[0], first, "contours", partial(st.subheader, "Where the private search ends up"))
        grid = cache.kde(*of_grid)  # this and what needs it come after the picture is on its way
        pictures = [cache.picture(runs[0], contour_chart, data, grid, first, baseline)]
        charts.table(pictures[0], "contours", canvas=True)
    with card:
        layout.guarantee_card(first)
    numbers(data, first, baseline)
    place = exports.caption_beside(caption)
    surface, origin = st.columns(2, gap="medium")
    with surface:
        charts.part("landscape", group.keys, partial(landscape, of_grid, data, grid, bandwidth))
    with origin:
        charts.part("origin", group.keys, partial(show_origin, runs[0]))
else:
    lines = [verdict(data, release, title) for release, title in zip(releases, titles, strict=True)]
    plain = short(score(baseline, data)["mse_per_true_mode"])
    lines.append(f'Without privacy, mean shift: error <b class="plain">{plain}</b>.')
    text = layout.answer(f"At ε = {short(runs[0].epsilon)} " + "<br>".join(lines))
    caption = (
        f"{about}: the same records, ε, δ and seed of the noise for both. Error: squared, for each true mode. Grey "
        f"lines, where no private surface is, are the plain density with h = {short(bandwidth)} (not private)."
    )
    place, grid = exports.caption_beside(caption), cache.kde(*of_grid)
    pictures = [
        cache.picture((arm, runs[0]), contour_chart, data, grid, release, baseline, height=590)
        for arm, release in zip(runs, releases, strict=True)
    ]
    for column, title, run, release, chart, mark in zip(
        st.columns(2, gap="medium"), titles, runs, releases, pictures, MARKS, strict=True
    ):
        with column:
            show_main(run, release, f"contours{mark}", partial(layout.method_heading, title, release))
            settings = f"With {', '.join(known)}. " if (known := facts(release)) else ""
            paper = short(score(release, data)["mse"])
            st.caption(f"{settings}MSE as in the paper, which extra modes dilute: {paper}.")
            charts.table(chart, f"contours{mark}", canvas=True)
            layout.guarantee_card(release, f"guarantee_card{mark}")
    for column, title, arm, mark in zip(st.columns(2, gap="medium"), titles, runs, MARKS, strict=True):
        with column:
            charts.part(f"origin{mark}", group.keys, partial(show_origin, arm, mark, title))
    charts.part("landscape", group.keys, partial(landscape, of_grid, data, grid, bandwidth))
with place:
    exports.simulation_files(
        [*runs, mean_shift(runs[0])],
        question=QUESTION,
        answer=text,
        charts=[replace(chart, title=title) for chart, title in zip(pictures, titles, strict=True)],
        guarantees=[(title, release.guarantee) for title, release in zip(titles, releases, strict=True)],
        page="modes",
        notes=[f"{caption} Mean shift (blue) and the grey lines are not private."],
    )
drawn = {"curve": partial(curve, runs), "runs": partial(repeated_runs, runs, data, grid, baseline)}
charts.more(group.keys, drawn)
