"""Clusters: what does privacy cost when you look for clusters?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from dpgrams_core import DATASETS, METHODS, Dataset, Release, SpecError
from dpgrams_core.comparison import pooled
from dpgrams_core.costs import cells_seconds, run_seconds
from dpgrams_core.errors import DataError
from dpgrams_core.figures import (
    Chart,
    Entry,
    cluster_curve_chart,
    confusion_chart,
    has_pictures,
    in_class_order,
    same_records,
    scores_table,
    short,
    who_wins,
)
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, TRUTH
from dpgrams_core.methods.mean_shift_c import EXACT_RECORDS, LEAST_STARTS, MOST_STEPS, PAIRS
from dpgrams_core.sweeps import Cell, CellResult, plan_cells
from pages._ui import cache, exports, frame, show, state
from pages._ui.cluster_controls import CURVES, LIVE_LIMIT, ClusterSettings, chosen_measure, cluster_controls
from pages._ui.cluster_show import files, gallery, other_guarantee, panel, tables

QUESTION = "What does privacy cost when you look for clusters?"
SMALLER = "n, m, number of steps T, of starts k or of clusters, or a larger bandwidth or h_DAP"
PANELS = ("mean_shift_c", "private", "kmeans", "dp_kmeans")
DEFAULT = ClusterSettings(
    method="functional_c",
    dataset="blobs",
    n=1_000,
    data_seed=0,
    seed=0,
    count="known",
    options=(("delta", 1e-6), ("epsilon", 1.0)),
)
LEGEND = (
    f'<p class="marks"><span><b style="color:{TRUTH}">★</b> centre of a true class</span>'
    f'<span><b style="color:{PRIVATE}">●</b> private centre</span>'
    f'<span><b style="color:{NON_PRIVATE}">✕</b> centre without privacy</span></p>'
)


def first_seconds(settings: ClusterSettings) -> float:
    """About how long everything takes that the page computes at once; a count that is not given is priced as ten."""
    place = {"n": settings.n, "box": np.array(DATASETS[settings.dataset].box)}
    names = (settings.method, "dp_kmeans", "kmeans")
    return sum(run_seconds(name, **place, **dict(settings.options_of(name, 10))) for name in names)


def dataset_of(settings: ClusterSettings) -> Dataset:
    """The records."""
    return cache.dataset(settings.dataset, settings.n, settings.data_seed)


def entry_of(method: str, settings: ClusterSettings) -> Entry:
    """One simulated run of a method with its name and scores, its centres numbered by the classes they are matched to.

    What is not private has no noise, so its seed stays.
    """
    data = dataset_of(settings)
    assert data.n_clusters is not None
    seed = settings.seed if METHODS[method].private else 0
    wanted = (settings.dataset, settings.n, settings.data_seed, seed, settings.options_of(method, data.n_clusters))
    title = settings.title if method == settings.method else METHODS[method].title
    release = in_class_order(data, cache.release(method, *wanted))
    return Entry(title, release, cache.scores(method, *wanted))


def usable(wished: ClusterSettings) -> ClusterSettings:
    """The settings to show: the wished ones, or else a sentence for what cannot run and the last good ones."""
    try:
        for method in (wished.method, "dp_kmeans", "kmeans"):
            with st.spinner(f"{METHODS[method].title} on {wished.n:,} records…"):
                entry_of(method, wished)
    except (SpecError, DataError) as error:
        frame.problem(error)
        st.caption("Below is the last picture that worked.")
        return state.last_good("clusters", DEFAULT)
    state.remember_good("clusters", wished)
    return wished


def mean_shift(settings: ClusterSettings) -> Entry | None:
    """Mean shift, or None while many records wait for a click."""
    st.markdown(f"**{METHODS['mean_shift_c'].title}**")
    if settings.n > EXACT_RECORDS:
        starts = min(settings.n, max(LEAST_STARTS, PAIRS // settings.n))
        agreed = f"_mean_shift_agreed_{settings.dataset}_{settings.n}"
        if not st.session_state.get(agreed):
            st.caption(
                f"It would climb from {starts:,} of the {settings.n:,} records, drawn by a seed, in at most "
                f"{MOST_STEPS} steps each. That takes a while, so it waits."
            )
            if not st.button("Run mean shift too", key="mean_shift_start", icon=":material/play_arrow:"):
                return None
            st.session_state[agreed] = True
    with st.spinner("Mean shift, without privacy…"):
        return entry_of("mean_shift_c", settings)


def answer(settings: ClusterSettings, entries: Sequence[Entry]) -> str:
    """Who has which ARI, and which of the private ones wins; computed from the runs on the screen."""
    table = scores_table(entries)
    table["method"] = [in_a_text(entry) for entry in entries]
    private = [verdict(entry, "private") for entry in entries if entry.private]
    plain = [verdict(entry, "plain") for entry in entries if not entry.private]
    text = (
        f"At ε = {short(settings.epsilon)} on {DATASETS[settings.dataset].title}, ARI of the private clusters: "
        f"{' and '.join(private)}. Without privacy: {' and '.join(plain)}. <b>{who_wins(table)}</b>"
    )
    return frame.answer(text)


def verdict(entry: Entry, colour: str) -> str:
    """A method and its ARI."""
    text = f'{in_a_text(entry)} <b class="{colour}">{entry.scores["ari"]:.2f}</b>'
    return text if len(entry.release.modes) else f"{text} (no centre: nothing stands above its noise)"


def in_a_text(entry: Entry) -> str:
    """A method within a sentence."""
    known = {"functional_c": "the functional release", "mean_shift_c": "mean shift"}
    return known.get(entry.release.method, entry.title)


def numbers(data: Dataset, mine: Entry, plain: Entry) -> None:
    """The scores of the private method, and the ARI that there is without privacy."""
    space = data.representation.space if data.representation is not None else "the columns of the data"
    with st.container(key="numbers"):
        columns = st.columns(4)
        columns[0].metric(
            "ARI, private",
            f"{mine.scores['ari']:.2f}",
            help="1: clusters are the true classes; 0: as good as chance.",
        )
        columns[1].metric(
            "NMI, private", f"{mine.scores['nmi']:.2f}", help="Information shared with the true classes, 0 to 1."
        )
        columns[2].metric(
            "Centroid MSE, private",
            short(mine.scores["centroid_mse"]),
            help=f"Squared distance to the matched class means, in {space}.",
        )
        columns[3].metric("ARI, k-means", f"{plain.scores['ari']:.2f}", help="No privacy, same records.")


def what_is_shown(settings: ClusterSettings, data: Dataset, release: Release) -> str:
    """The facts behind the numbers, in small print."""
    text = (
        f"{DATASETS[settings.dataset].title}, n = {data.n:,} in {data.dimension} columns, bandwidth h = "
        f"{short(release.spec.bandwidth)}. One run of each method on the same records; ARI is 1 when the clusters are "
        "the true classes and 0 when they are no better than chance."
    )
    if settings.count == "unknown":
        text += (
            " The number of clusters is unknown, but k-means and DP-k-means cannot do without one: they are told the "
            f"{data.n_clusters} of the true classes."
        )
    return text


def curve_cells(settings: ClusterSettings, data: Dataset) -> list[Cell]:
    """The points of the curve: both private methods at every ε, and what there is without privacy."""
    epsilons, _, runs = CURVES[settings.dataset]
    assert data.n_clusters is not None
    cells: list[Cell] = []
    # Mean shift on many records takes as long as all the rest together.
    plain = ["kmeans"] if settings.n > EXACT_RECORDS else ["kmeans", "mean_shift_c"]
    for method in (settings.method, "dp_kmeans", *plain):
        options = dict(settings.options_of(method, data.n_clusters))
        options.pop("epsilon", None)
        few = runs if METHODS[method].private else 1
        cells += plan_cells(method, settings.dataset, n=[settings.n], epsilon=epsilons, runs=few, **options)
    return cells


def curve(settings: ClusterSettings, data: Dataset) -> None:
    """A score against epsilon, filling in live."""
    st.subheader("What does each ε cost?")
    cells, pieces = curve_cells(settings, data), CURVES[settings.dataset][1]
    # Without noise and on the same records a second run would say nothing new.
    once = same_records(settings.dataset, settings.n)
    work = [
        replace(cell, seed=piece)
        for piece in range(pieces)
        for cell in cells
        if piece == 0 or METHODS[cell.method].private or not once
    ]
    unasked = show.UNASKED_SECONDS if settings.n <= LIVE_LIMIT.get(settings.dataset, 0) else 0.0
    if not show.wanted("curve", "Draw the curve", tuple(work), cells_seconds(work), SMALLER, unasked):
        return
    measure = chosen_measure()
    found: dict[Cell, list[CellResult]] = {}

    def steps() -> Iterator[int]:
        for number, cell in enumerate(work, start=1):
            found.setdefault(replace(cell, seed=0), []).append(cache.cell(cell))
            yield number

    def draw():
        return cluster_curve_chart([pooled(results) for results in found.values()], cells, measure, settings.epsilon)

    show.live(steps(), len(work), draw, "curve")


frame.open_page(QUESTION, "pages/clusters.py")
st.html(frame.ASSETS / "clusters.css")
wished = cluster_controls()
if refused := state.refused_keys():
    st.info(f"The link's values for {', '.join(refused)} cannot be used; the defaults stand instead.")
if not show.may_run("first", wished, first_seconds(wished), SMALLER):
    frame.answer("Nothing has been computed for these settings yet.")
    st.stop()
settings = usable(wished)
data = dataset_of(settings)
private = entry_of(settings.method, settings)
others = {name: entry_of(name, settings) for name in ("kmeans", "dp_kmeans")}
shown = [private, others["dp_kmeans"], others["kmeans"]]
first = st.empty()  # the answer comes first, also while mean shift climbs or waits for a click
with first:
    text = answer(settings, shown)
numbers(data, private, others["kmeans"])
caption = what_is_shown(settings, data, private.release)
files_place = exports.caption_beside(caption)
st.html(LEGEND)
with st.container(key="panels"):
    places = dict(zip(PANELS, st.columns(4, gap="small"), strict=True))
scores_place = st.container()
if has_pictures(data):
    gallery(data, private)
left, right = st.columns([3, 2], gap="medium")
panels: dict[str, tuple[str, Chart]] = {}
for place, entry in {"private": private, **others}.items():
    with places[place]:
        st.markdown(f"**{entry.title}**")
        panels[place] = (entry.title, panel(data, entry, place))
with right:
    frame.guarantee_card(private.release)
    other_guarantee(others["dp_kmeans"].release)
with left:
    show.chart(confusion_chart(data, private), "confusion", f"Which classes does {in_a_text(private)} tell apart?")
with places["mean_shift_c"]:
    climbed = mean_shift(settings)
    if climbed is not None:
        shown.append(climbed)
        panels["mean_shift_c"] = (climbed.title, panel(data, climbed, "mean_shift_c"))
if climbed is not None:
    with first:
        text = answer(settings, shown)
with scores_place:
    st.caption(
        "Records are coloured by their nearest centre. These labels of records are evaluation, never a release; the "
        "private methods release their centres only."
    )
    tables(shown, panels)
with files_place:
    files(settings, data, shown, panels, QUESTION, text, caption)
curve(settings, data)
