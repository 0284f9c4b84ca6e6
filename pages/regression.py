"""Regression: what does privacy cost when a curve has several branches?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import streamlit as st

from dpgrams_core import DATASETS, Dataset, Release, SpecError, score
from dpgrams_core.comparison import pooled
from dpgrams_core.costs import cells_seconds, density_seconds, run_seconds
from dpgrams_core.errors import DataError
from dpgrams_core.figures import (
    Chart,
    ascent_chart,
    branches_chart,
    ridges_chart,
    share_near,
    short,
    slice_chart,
    slice_frames,
    tradeoff_chart,
)
from dpgrams_core.recipes import Recipe
from dpgrams_core.sweeps import Cell, CellResult, plan_cells
from pages._ui import cache, exports, frame, show, state
from pages._ui.pointer import follow_pointer
from pages._ui.regression_controls import (
    RegressionSettings,
    chosen_curves,
    chosen_place,
    regression_controls,
)

QUESTION = "What does privacy cost when a curve has several branches?"
CURVE_EPSILONS = (0.1, 0.2, 0.5, 1.0)  # those of the paper's two tables
CURVE_SIZES = {"sinusoid": (200, 600, 1_200, 2_400), "three_component": (200, 500, 1_000, 2_000)}
PIECES, RUNS = 5, 20  # each point of the curve comes in pieces, so that a stop takes effect soon
PMS_LIMIT = 2_400  # PMS looks at all pairs of records: above this n it waits for a click
LIVE_LIMIT = 5_000  # above this n the curve always waits for a press
SMALLER = "n, m, number of steps T or of starts, or a larger bandwidth"
DEFAULT = RegressionSettings(
    method="functional_regression",
    dataset="sinusoid",
    n=1_200,
    data_seed=0,
    seed=0,
    options=(("delta", 1e-5), ("epsilon", 1.0)),
)


def first_seconds(settings: RegressionSettings) -> float:
    """About how long everything takes that the page computes at once."""
    place = {"n": settings.n, "box": np.array(DATASETS[settings.dataset].box)}
    runs = [(settings.method, settings.options), (settings.other.method, settings.other.options), ("lowess", ())]
    return sum(run_seconds(name, **place, **dict(options)) for name, options in runs) + density_seconds(settings.n, 120)


def private_run(settings: RegressionSettings) -> Release:
    """One simulated private run."""
    return cache.release(
        settings.method, settings.dataset, settings.n, settings.data_seed, settings.seed, settings.options
    )


def plain_run(method: str, settings: RegressionSettings) -> Release:
    """A method without privacy on the same data, with its own rule for smoothing."""
    return cache.release(method, settings.dataset, settings.n, settings.data_seed, 0, ())


def usable(wished: RegressionSettings) -> RegressionSettings:
    """The settings to show: the wished ones, or else a sentence for what cannot run and the last good ones."""
    try:
        private_run(wished)
    except (SpecError, DataError) as error:
        frame.problem(error)
        st.caption("Below is the last picture that worked.")
        return state.last_good("regression", DEFAULT)
    state.remember_good("regression", wished)
    return wished


def pms_run(settings: RegressionSettings) -> Release | None:
    """PMS, or None while a large n waits for a click."""
    if settings.n > PMS_LIMIT:
        agreed = f"_pms_agreed_{settings.n}"
        if not st.session_state.get(agreed):
            st.caption(f"PMS compares all pairs of records; at n = {settings.n:,} that takes a while, so it waits.")
            if not st.button("Run PMS too", key="pms_start", icon=":material/play_arrow:"):
                return None
            st.session_state[agreed] = True
    with st.spinner("PMS, without privacy: all pairs of records…"):
        return plain_run("pms", settings)


def answer(data: Dataset, release: Release, pms: Release | None, lowess: Release) -> str:
    """A sentence or two, which come back, and four numbers."""
    private = score(release, data)
    plain = None if pms is None else score(pms, data)
    text = (
        f'At ε = {short(release.spec.epsilon)} the <b class="private">private</b> curve finds '
        f"<b>{percent(private['branch_recall'])}</b> of the branches with a squared error of "
        f'<b class="private">{short(private["mse"])}</b>'
    )
    if plain is not None:
        text += (
            f'; without privacy, PMS finds <b>{percent(plain["branch_recall"])}</b> with <b class="plain">'
            f"{short(plain['mse'])}</b>"
        )
    said = frame.answer(
        f"{text}. LOWESS draws the mean: <b>{percent(score(lowess, data)['spurious'])}</b> of its curve lies on no "
        f"branch, and {percent(share_near(data, lowess.curve))} of the records are near it."
    )
    with st.container(key="numbers"):
        columns = st.columns(4)
        columns[0].metric(
            "Branches found", percent(private["branch_recall"]), help="Share of the true branches, over all x."
        )
        columns[1].metric(
            "On no branch", percent(private["spurious"]), help="Share of the private curve that is near no true branch."
        )
        paper = "The paper's oracle loss: squared distance to the nearest true branch. A missed branch costs nothing."
        columns[2].metric("Oracle MSE, private", short(private["mse"]), help=paper)
        columns[3].metric(
            "Oracle MSE, PMS", "–" if plain is None else short(plain["mse"]), help="No privacy, same data."
        )
    return said


def percent(share: float) -> str:
    """A share as people say it."""
    return f"{100 * share:.0f} %"


def show_origin(data: Dataset, release: Release) -> None:
    """What the private curve comes from: the released surface, or anchors that climb."""
    if release.surface is not None:
        show.chart(ridges_chart(data, release), "ridges", "What is released: a private surface")
    else:
        show.chart(ascent_chart(data, release), "ascent", "How it climbs: private anchors and noisy steps in y")


def fits(
    settings: RegressionSettings, chosen: list[str], release: Release, pms: Release | None, lowess: Release
) -> list[tuple[str, Release]]:
    """The curves that the chart of the branches shows, with their names."""
    found = [(settings.title, release)] if "private" in chosen else []
    if "other" in chosen:
        found.append((settings.other.title, private_run(settings.other)))
    if "pms" in chosen and pms is not None:
        found.append(("PMS", pms))
    if "lowess" in chosen:
        found.append(("LOWESS", lowess))
    return found


def pictures(
    settings: RegressionSettings, data: Dataset, release: Release, pms: Release | None, lowess: Release
) -> tuple[Chart, list[str]]:
    """The branches and where they come from, the density at one x, the guarantee; returns the branches and whose."""
    frame.method_heading(settings.title, release)
    chosen = chosen_curves(settings)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        curves = fits(settings, chosen, release, pms, lowess)
        branches = branches_chart(data, curves, records="records" in chosen, truth="truth" in chosen)
        show.chart(branches, "branches")
        show_origin(data, release)
    with right:
        slices = cache.slices(
            settings.method, settings.dataset, settings.n, settings.data_seed, settings.seed, settings.options
        )
        place = st.session_state["reg_x"]
        show.chart(slice_chart(data, release, slices, place), "slice")
        chosen_place()
        frame.guarantee_card(release)
    follow_pointer("branches_chart", "slice_chart", slice_frames(data, release, slices), place)
    return branches, chosen


def files(settings: RegressionSettings, others: list[str], text: str, picture: Chart, caption: str) -> None:
    """The page's exports: every run on it."""
    private = [settings, settings.other] if "other" in others else [settings]
    place = {"dataset": settings.dataset, "n": settings.n, "data_seed": settings.data_seed}
    recipes = [Recipe(method=arm.method, seed=arm.seed, options=arm.options, **place) for arm in private]
    recipes += [Recipe(method=name, **place) for name in others if name != "other"]
    exports.simulation_files(
        recipes,
        question=QUESTION,
        answer=text,
        charts=[picture],
        guarantees=[(arm.title, private_run(arm).guarantee) for arm in private],
        notes=[f"{caption} The records, PMS and LOWESS are shown without privacy."],
    )


def curve_cells(settings: RegressionSettings, sizes: list[int]) -> list[Cell]:
    """The points of the curve: PMS where n allows it, and the private method at every ε."""
    options = {name: value for name, value in settings.options if name != "epsilon"}
    plan = {"dataset": settings.dataset, "epsilon": CURVE_EPSILONS}
    cells: list[Cell] = []
    for n in sizes:
        cells += plan_cells(settings.method, n=[n], runs=RUNS // PIECES, **plan, **options)
        if n <= PMS_LIMIT:
            cells += plan_cells("pms", n=[n], runs=1, **plan)
    return cells


def curve(settings: RegressionSettings) -> None:
    """Oracle MSE against epsilon for several n, filling in live."""
    st.subheader("What does each ε cost?")
    sizes = CURVE_SIZES[settings.dataset]
    chosen = st.multiselect(
        "Sample sizes on the curve",
        sorted({*sizes, settings.n}),
        default=sorted({*sizes[:3], settings.n} if settings.n <= PMS_LIMIT else {settings.n}),
        key=f"reg_curve_n_{settings.dataset}_{settings.n}",
        format_func="{:,}".format,
    )
    wanted_sizes = chosen or [settings.n]
    cells = curve_cells(settings, wanted_sizes)
    unasked = show.UNASKED_SECONDS if max(wanted_sizes) <= LIVE_LIMIT else 0.0
    seconds = PIECES * cells_seconds(cells)
    if not show.wanted("curve", "Draw the curve", tuple(cells), seconds, SMALLER, unasked):
        return
    found: dict[Cell, list[CellResult]] = {}

    def steps() -> Iterator[int]:
        for piece in range(PIECES):
            for number, cell in enumerate(cells):
                found.setdefault(cell, []).append(cache.cell(replace(cell, seed=piece)))
                yield piece * len(cells) + number + 1

    def draw():
        return tradeoff_chart([pooled(results) for results in found.values()], cells, settings.epsilon)

    show.live(steps(), PIECES * len(cells), draw, "curve")


frame.open_page(QUESTION, "pages/regression.py")
wished = regression_controls()
if refused := state.refused_keys():
    st.info(f"The link's values for {', '.join(refused)} cannot be used; the defaults stand instead.")
if not show.may_run("first", wished, first_seconds(wished), SMALLER):
    frame.answer("Nothing has been computed for these settings yet.")
    st.stop()
settings = usable(wished)
data = cache.dataset(settings.dataset, settings.n, settings.data_seed)
release, lowess = private_run(settings), plain_run("lowess", settings)
first = st.container()  # the answer comes first, also where PMS waits for a click
pms = pms_run(settings)
with first:
    text = answer(data, release, pms, lowess)
caption = (
    f"{DATASETS[settings.dataset].title}, n = {settings.n:,}, bandwidth {short(release.spec.bandwidth)} of each side "
    "of the box. The predictor x is public, the response y is private. PMS, partial mean shift, finds branches without "
    "privacy and with its own bandwidth."
)
place = exports.caption_beside(caption)
branches, chosen = pictures(settings, data, release, pms, lowess)
with place:
    others = [*(["other"] if "other" in chosen else []), *(["pms"] if pms is not None else []), "lowess"]
    files(settings, others, text, branches, caption)
curve(settings)
