"""Modes: what does privacy cost when you look for the peaks of a density?"""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from dpgrams_core import DATASETS, Dataset, Release, SpecError, score
from dpgrams_core.figures import (
    DensityGrid,
    anchors_chart,
    contour_chart,
    released_chart,
    runs_chart,
    short,
    surface_chart,
    tradeoff_chart,
)
from dpgrams_core.sweeps import CellResult, plan_cells
from pages._ui import cache, frame, show, state
from pages._ui.controls import ModesSettings, modes_controls

CURVE_EPSILONS = (0.1, 0.25, 0.5, 1.0, 5.0)  # those of the paper's panel (d)
CURVE_SIZES = (700, 1_000, 2_000, 5_000)
RUNS = 20
LIVE_LIMIT = 20_000  # above this n, curves wait for a click


def private_run(settings: ModesSettings, seed: int) -> Release:
    """One simulated private run."""
    return cache.release(settings.method, settings.dataset, settings.n, settings.data_seed, seed, settings.options)


def plain_run(settings: ModesSettings) -> Release:
    """Mean shift on the same data with the same bandwidth."""
    return cache.release("mean_shift", settings.dataset, settings.n, settings.data_seed, 0, settings.baseline_options)


def answer(data: Dataset, release: Release, baseline: Release) -> None:
    """One sentence and four numbers."""
    private, plain = score(release, data), score(baseline, data)
    k = int(private["found"] + private["missed"])
    if len(release.modes) == 0:
        frame.answer(
            f"At ε = {short(release.spec.epsilon)} nothing stands above the noise, so the "
            f'<b class="private">private</b> search reports <b>no mode</b> rather than a wrong one.'
        )
        return
    ratio = private["mse_per_true_mode"] / plain["mse_per_true_mode"]
    frame.answer(
        f'At ε = {short(release.spec.epsilon)} the <b class="private">private</b> search found '
        f"<b>{int(private['found'])} of {k}</b> modes"
        + (f" and <b>{int(private['spurious'])}</b> that are not there" if private["spurious"] else "")
        + f'. Its squared error per mode is <b class="private">{short(private["mse_per_true_mode"])}</b> against '
        f'<b class="plain">{short(plain["mse_per_true_mode"])}</b> without privacy: <b>{short(ratio)} times</b>.'
    )
    columns = st.columns(4)
    columns[0].metric("Modes found", f"{int(private['found'])} of {k}")
    columns[1].metric("Spurious modes", int(private["spurious"]))
    columns[2].metric("MSE, private", short(private["mse"]), help="The paper's metric (MMMSE): extra modes dilute it.")
    columns[3].metric("MSE, mean shift", short(plain["mse"]), help="No privacy, same data, same bandwidth.")


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
    if not show.wanted("curve", "Draw the curve", max(sizes), LIVE_LIMIT):
        return
    options = {name: value for name, value in settings.options if name != "epsilon"}
    cells = plan_cells(
        ["mean_shift", settings.method], settings.dataset, n=sizes, epsilon=CURVE_EPSILONS, runs=RUNS, **options
    )
    results: list[CellResult] = []

    def steps() -> Iterator[int]:
        for cell in cells:
            results.append(cache.cell(cell))
            yield len(results)

    show.live(steps(), len(cells), lambda: tradeoff_chart(results, cells, settings.epsilon), "curve")


def repeated_runs(settings: ModesSettings, data: Dataset, grid: DensityGrid, baseline: Release) -> None:
    """(e) Twenty private runs on one data set."""
    st.subheader("Was that luck? Twenty private runs on the same data")
    if show.wanted("runs", "Draw the runs", settings.n, LIVE_LIMIT):
        runs = [private_run(settings, settings.seed + i) for i in range(RUNS)]
        show.chart(runs_chart(data, grid, runs, baseline), "runs")


frame.open_page("What does privacy cost when you look for modes?")
wished = modes_controls()
if refused := state.refused_keys():
    st.info(f"The link's values for {', '.join(refused)} cannot be used; the defaults stand instead.")
default = ModesSettings(
    method="dp_grams", dataset="four_corners", n=5_000, data_seed=0, seed=0, options=(("epsilon", 1.0),)
)
try:
    private_run(wished, wished.seed)
    plain_run(wished)
    settings = wished
    state.remember_good("modes", wished)
except SpecError as error:
    frame.problem(error)
    settings = state.last_good("modes", default)
    st.caption("Below is the last picture that worked.")

data = cache.dataset(settings.dataset, settings.n, settings.data_seed)
release, baseline = private_run(settings, settings.seed), plain_run(settings)
h = release.spec.bandwidth
kernel = getattr(release.spec, "kernel", "gaussian")
grid = cache.kde(settings.dataset, settings.n, settings.data_seed, kernel, h)

answer(data, release, baseline)
facts = f"{DATASETS[settings.dataset].title}, n = {settings.n:,}, bandwidth h = {short(h)}"
if settings.method == "dp_grams":
    facts += f", minibatch m = {release.spec.batch_size:,}, T = {release.spec.n_steps} steps"
    facts += f", k = {release.spec.n_starts} starts"
st.caption(facts + ".")
picture, card = st.columns([3, 2], gap="medium")
with picture:
    show.chart(contour_chart(data, grid, release, baseline), "contours", "Where the private search ends up")
with card:
    frame.guarantee_card(release)
surface, anchors = st.columns(2, gap="medium")
with surface:
    show.chart(surface_chart(data, grid, h), "surface", "The landscape (not private)")
with anchors:
    if release.surface is not None:
        show.chart(released_chart(data, release), "released", "What is released: a private surface")
    else:
        show.chart(anchors_chart(data, release), "anchors", "Where it starts: private anchors")
curve(settings)
repeated_runs(settings, data, grid, baseline)
