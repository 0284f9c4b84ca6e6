"""Clusters: what does privacy cost when you look for clusters?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dpgrams_core import DATASETS, METHODS, Dataset
from dpgrams_core.figures import clusters as pictures
from dpgrams_core.figures.curve import cluster_curve_chart
from dpgrams_core.figures.frames import clusters_scene
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, TRUTH, Chart
from dpgrams_core.methods.baselines.mean_shift import EXACT_RECORDS, LEAST_STARTS, MOST_STEPS, PAIRS
from dpgrams_core.methods.functional.spec import FunctionalCSpec
from dpgrams_core.model.format import fixed, short
from dpgrams_core.model.measures import MEASURES, measure_titles
from dpgrams_core.model.run import Run
from dpgrams_core.studies.costs import cell_seconds, cells_seconds
from dpgrams_core.sweeps.run import plan_cells
from pages._ui import cache, charts, exports, handle, jobs, layout, state
from pages._ui.controls import COUNTS, Group, bandwidth_rule, cluster_run, one_of_few, title_of

QUESTION = "What does privacy cost when you look for clusters?"
SMALLER = "n, m, number of steps T, of starts k or of clusters, or a larger bandwidth or h_DAP"
PANELS = ("mean_shift_c", "private", "kmeans", "dp_kmeans")
TABS = {**charts.MORE, "sure": "How sure is it?"}
DEFAULT = Run(method="functional_c", dataset="blobs", n=1_000, epsilon=1.0, options=(("delta", 1e-6),)), "known"
LEGEND = (
    f'<p class="marks"><span><b style="color:{TRUTH}">★</b> centre of a true class</span>'
    f'<span><b style="color:{PRIVATE}">●</b> private centre</span>'
    f'<span><b style="color:{NON_PRIVATE}">✕</b> centre without privacy</span></p>'
)


def beside(run: Run, count: int | str, method: str) -> Run:
    """A method on the same records and with the same number of clusters."""
    classes = cache.records(run).n_clusters
    assert classes is not None
    return cluster_run(run, method, count, classes)


def entry_of(method: str, run: Run, count: int | str) -> pictures.Entry:
    """One simulated run of a method with its name and scores, its centres numbered by the classes they are matched to.

    What is not private has no noise, so its seed stays.
    """
    wanted = beside(run, count, method)
    title = title_of(run) if method == run.method else METHODS[method].title
    release = pictures.in_class_order(cache.records(run), cache.release(wanted))
    return pictures.Entry(title, release, cache.scores(wanted))


def run_all(run: Run, count: int | str) -> None:
    """All that the page shows at once, so that it is there, or an error says why not."""
    for method in (run.method, "dp_kmeans", "kmeans"):
        with st.spinner(f"{METHODS[method].title} on {run.n:,} records…"):
            entry_of(method, run, count)


def mean_shift(run: Run, count: int | str) -> pictures.Entry | None:
    """Mean shift, or None while many records wait for a click."""
    st.markdown(f"**{METHODS['mean_shift_c'].title}**")
    starts = min(run.n, max(LEAST_STARTS, PAIRS // run.n))
    if run.n > EXACT_RECORDS and not charts.agreed(
        f"_mean_shift_agreed_{run.dataset}_{run.n}",
        f"It would climb from {starts:,} of the {run.n:,} records, drawn by a seed, in at most {MOST_STEPS} steps "
        "each. That takes a while, so it waits.",
        "Run mean shift too",
        "mean_shift_start",
    ):
        return None
    with st.spinner("Mean shift, without privacy…"):
        return entry_of("mean_shift_c", run, count)


def answer(run: Run, entries: Sequence[pictures.Entry]) -> str:
    """Who has which ARI, and which of the private ones wins; computed from the runs on the screen."""
    table = pictures.scores_table(entries)
    table["method"] = [in_a_text(entry) for entry in entries]
    verdicts: dict[bool, list[str]] = {True: [], False: []}
    for entry in entries:
        colour = "private" if entry.private else "plain"
        text = f'{in_a_text(entry)} <b class="{colour}">{fixed(entry.scores["ari"])}</b>'
        none = "" if len(entry.release.modes) else " (no centre: nothing stands above its noise)"
        verdicts[entry.private].append(text + none)
    private, plain = (" and ".join(verdicts[claims]) for claims in (True, False))
    return layout.answer(
        f"At ε = {short(run.epsilon)} on {DATASETS[str(run.dataset)].title}, ARI of the private clusters: {private}. "
        f"Without privacy: {plain}. <b>{pictures.who_wins(table)}</b>"
    )


def in_a_text(entry: pictures.Entry) -> str:
    """A method within a sentence."""
    known = {"functional_c": "the functional release", "mean_shift_c": "mean shift"}
    return known.get(entry.release.method, entry.title)


def panel(run: Run, data: Dataset, entry: pictures.Entry, place: str) -> Chart:
    """One method under its name: its ARI, the status of its guarantee, and the picture; returns the picture.

    It is drawn once it is looked at, as what is below it: a browser loads what draws it for half a second, which the
    picture on top would wait for.
    """
    with st.container(gap="xxsmall"):  # one under the other: a status with its condition fills the width of a panel
        st.markdown(f"ARI **{fixed(entry.scores['ari'])}**", width="content")
        layout.badge(entry.release.guarantee)
    picture = cache.picture(run, pictures.panel_chart, data, entry)
    words = f"{entry.title}: {picture.sentence}"
    draw = partial(charts.plot, picture.figure, f"panel_{place}_chart", words)
    # It stays when ε is moved.
    charts.part(f"panel_{place}", group.keys, partial(charts.once_seen, f"panel_{place}", run.dataset, draw))
    st.caption(picture.sentence)
    if entry.release.method == "mean_shift_c":
        for caveat in entry.release.guarantee.caveats:
            st.caption(caveat)
    return picture


def confusion(run: Run, count: int | str, data: Dataset, entry: pictures.Entry) -> None:
    """Which classes the private clusters tell apart."""
    picture = cache.picture((run, count), pictures.confusion_chart, data, entry)
    charts.chart(picture, "confusion", f"Which classes does {in_a_text(entry)} tell apart?")


def gallery(data: Dataset, entry: pictures.Entry) -> None:
    """The released centres as pictures, in a row that wraps."""
    found = pictures.centre_pictures(data, entry)
    st.subheader("The private “average digit”")
    st.html(
        f'<p class="marks"><span><b style="color:{PRIVATE}">■</b> above: a released centre (private)</span>'
        f'<span><b style="color:{TRUTH}">■</b> below: the mean of the true class it is matched to</span></p>'
    )
    with st.container(horizontal=True, key="gallery"):
        for picture in found.pictures:
            st.image(picture.image, caption=picture.caption, width=88, alt=picture.alt)
    st.caption(found.sentence)
    with st.expander("Table", key="gallery_table"):
        st.dataframe(found.table, hide_index=True, width="stretch")
        exports.download(exports.table_file(found.table, "centres"), "gallery_csv")


def bandwidth(method: str, group: Group) -> dict[str, Any]:
    """The controls of a method's bandwidth."""
    if method == "dp_grams_c":
        return bandwidth_rule(group)
    if method != "functional_c":
        return {}
    return group.setting(FunctionalCSpec, "bandwidth", "clu_h") or group.setting(
        FunctionalCSpec, "bandwidth_scale", "h_scale"
    )


def curve(run: Run, count: int | str) -> None:
    """A score against ε, filling in live: both private methods at every ε, and what there is without privacy."""
    st.subheader("What does each ε cost?")
    info = DATASETS[str(run.dataset)]  # a curve over slow data waits for a click
    pieces, runs = info.curve_pieces
    cells: list[Run] = []
    # Mean shift on many records takes as long as all the rest together.
    plain = ["kmeans"] if run.n > EXACT_RECORDS else ["kmeans", "mean_shift_c"]
    for method in (run.method, "dp_kmeans", *plain):
        options = dict(beside(run, count, method).options)
        few = runs if METHODS[method].private else 1
        cells += plan_cells(method, info.name, n=[run.n], epsilon=info.epsilons, runs=few, design=run.design, **options)
    # Without noise and on the same records a second run would say nothing new.
    again = [cell for cell in cells if METHODS[cell.method].private or not info.same_records(run.n)]
    work = [*cells, *(replace(cell, seed=piece) for piece in range(1, pieces) for cell in again)]
    live = run.n <= max(info.sizes) and not info.slow
    if not charts.wanted("curve", "Draw the curve", tuple(work), cells_seconds(work), SMALLER, live):
        return
    words = "ARI and NMI compare clusters with true classes (1: the same); centroid MSE compares centres."
    measure = one_of_few("Score on the curve", "clu_measure", measure_titles("clusters"), help=words, wrap=False)

    def draw(known: jobs.Known) -> Chart:
        return cache.curve(known, cluster_curve_chart, jobs.pooled_by_seed(known), cells, measure, run.epsilon)

    charts.filling(jobs.sweep(work), draw, "curve")


def repeated_runs(wanted: Run, data: Dataset) -> None:
    """Twenty private runs on one data set."""
    info = DATASETS[str(wanted.dataset)]
    if charts.repeated(wanted, cell_seconds(wanted), SMALLER, wanted.n <= max(info.sizes) and not info.slow):
        charts.chart(cache.picture(wanted, again, wanted, data), "runs")


def again(wanted: Run, data: Dataset) -> Chart:
    """Their picture."""
    runs = [replace(wanted, seed=wanted.seed + number) for number in range(charts.RUNS)]
    return pictures.runs_chart(data, [cache.release(run) for run in runs], [cache.scores(run) for run in runs])


def how_sure(wanted: Run, data: Dataset, entry: pictures.Entry) -> None:
    """The region of each centre that was read off a released surface; its release is drawn again and again."""
    st.subheader("How sure is each centre?")
    if entry.release.surface is None:
        st.caption(f"{entry.title} releases no surface, which could be drawn again: its centres have no regions.")
    elif not len(entry.release.modes):
        st.caption("There is no centre: nothing stands above the noise.")
    else:
        with st.spinner("Drawing the release again…"):
            charts.chart(cache.picture(wanted, pictures.sure_chart, data, entry), "sure")
        charts.regions_kept()


layout.open_page(QUESTION, "pages/clusters.py")
group = Group()
with layout.sidebar():
    epsilon_first = st.container()  # what one moves most stands on top, though it belongs to the method below
    dataset = group.dataset("clusters", "clu_dataset", "The paper's simulated blobs, or real data in few columns.")
    info = DATASETS[dataset]
    method = group.method("clusters", "clu_method", "How the centres are found privately.")
    words = "How many people are in the data (n); real data: so many drawn from all. Public."
    n = group.records(f"clu_n_{dataset}", dataset, words)
    # The paper's δ: 1e-6 for the blobs, as for the modes, and 1e-5 for real data.
    with epsilon_first:
        options = group.budget(method, "delta" if info.delta == 1e-6 else "clu_delta", info.delta)
    words = "How many centres to find: the number of true classes (known), unknown, or another number."
    wished_count = group.steps("Number of clusters", "clu_count", COUNTS, "known", words)
    options |= group.rest(method, info.condition(), partial(bandwidth, method, group))
group.switch("curve", "runs")
group.start("more", next(iter(TABS)), state.one_of_these(list(TABS)))
group.start("clu_measure", "ari", state.one_of_these(list(measure_titles("clusters"))))
wished = group.run(method, dataset, n, options)
# A count that is not given is priced as ten.
at_once = [cluster_run(wished, name, wished_count, 10) for name in (wished.method, "dp_kmeans", "kmeans")]
charts.begin((wished, wished_count), sum(map(cell_seconds, at_once)), SMALLER)
works = layout.works(lambda: run_all(wished, wished_count))
run, count = layout.good_or_last("clusters", (wished, wished_count), works, DEFAULT)
data = cache.records(run)
private = entry_of(run.method, run, count)
others = {name: entry_of(name, run, count) for name in ("kmeans", "dp_kmeans")}
wanted, scene = beside(run, count, run.method), clusters_scene(data, others["kmeans"].release)
if layout.presenting():  # the line is the picture's own, and moves with its handle
    handle.show(wanted, data, cache.release(wanted), scene, "centres_chart", SMALLER)
layout.presented()
shown = [private, others["dp_kmeans"], others["kmeans"]]
first = st.empty()  # the answer comes first, also while mean shift climbs or waits for a click
with first:
    text = answer(run, shown)
caption = (
    f"{DATASETS[str(run.dataset)].title}, n = {data.n:,} in {data.dimension} columns, bandwidth h = "
    f"{short(private.release.spec.bandwidth)}. One run of each method on the same records; ARI is 1 when the clusters "
    "are the true classes and 0 when they are no better than chance."
)
if count == "unknown":
    caption += (
        " The number of clusters is unknown, but k-means and DP-k-means cannot do without one: they are told the "
        f"{data.n_clusters} of the true classes."
    )
left, right = st.columns([3, 2], gap="medium")
with left:
    head = partial(st.subheader, "Where the private centres are")
    handle.show(wanted, data, cache.release(wanted), scene, "centres_chart", SMALLER, head=head)
with right:
    layout.guarantee_card(private.release)
scores, space = private.scores, "the columns of the data" if data.representation is None else data.representation.space
words = f"Squared distance to the matched class means, in {space}."
layout.numbers(
    ("ARI, private", fixed(scores["ari"]), "1: clusters are the true classes; 0: as good as chance."),
    ("NMI, private", fixed(scores["nmi"]), "Information shared with the true classes, 0 to 1."),
    ("Centroid MSE, private", short(scores["centroid_mse"]), words),
    ("Inertia, private", short(scores["inertia"]), MEASURES["clusters"]["inertia"].words),
    ("ARI, k-means", fixed(others["kmeans"].scores["ari"]), "No privacy, same records."),
)
files_place = exports.caption_beside(caption)
st.subheader("Beside other methods")
st.html(LEGEND)
with st.container(key="panels"):
    places = dict(zip(PANELS, st.columns(4, gap="small"), strict=True))
scores_place = st.container()
if pictures.has_pictures(data):
    gallery(data, private)
left, right = st.columns([3, 2], gap="medium")
panels: dict[str, tuple[str, Chart]] = {}
for place, entry in {"private": private, **others}.items():
    with places[place]:
        st.markdown(f"**{entry.title}**")
        panels[place] = (entry.title, panel(beside(run, count, entry.release.method), data, entry, place))
with right, st.expander("And the guarantee of DP-k-means?", key="dp_kmeans_guarantee"):
    guarantee = others["dp_kmeans"].release.guarantee
    layout.badge(guarantee)
    st.markdown(guarantee.statement)
    for caveat in guarantee.caveats:
        st.caption(caveat)
with left:
    classes = partial(confusion, run, count, data, private)
    charts.part("confusion", group.keys, partial(charts.once_seen, "confusion", run.dataset, classes))
with places["mean_shift_c"]:
    climbed = mean_shift(run, count)
    if climbed is not None:
        shown.append(climbed)
        alone = beside(run, count, "mean_shift_c")  # without ε: its picture is the same at all of them
        panels["mean_shift_c"] = (climbed.title, panel(alone, data, climbed, "mean_shift_c"))
        with first:
            text = answer(run, shown)
with scores_place:
    st.caption(
        "Records are coloured by their nearest centre. These labels of records are evaluation, never a release; the "
        "private methods release their centres only."
    )
    with st.expander("Table and downloads", key="panels_table"):
        table = pictures.scores_table(shown)
        st.dataframe(table, hide_index=True, width="stretch")
        centres = [picture.table for _, picture in panels.values() if len(picture.table)]
        st.dataframe(pd.concat(centres), hide_index=True, width="stretch")
        exports.download(exports.table_file(table, "scores", "Scores, CSV"), "scores_csv")
        for place, (title, picture) in panels.items():
            st.caption(title)
            exports.chart_files(picture, f"panel_{place}", title)
with files_place:
    exports.simulation_files(
        [beside(run, count, entry.release.method) for entry in shown],
        question=QUESTION,
        answer=text,
        charts=[replace(picture, title=title) for title, picture in (panels["private"], panels["kmeans"])],
        guarantees=[(entry.title, entry.release.guarantee) for entry in shown if entry.private],
        page="clusters",
        notes=[f"{caption} Records, their colours and k-means are shown without privacy."],
    )
under = {"curve": partial(curve, run, count), "runs": partial(repeated_runs, wanted, data)}
charts.more(group.keys, under | {"sure": partial(how_sure, wanted, data, private)}, TABS)
