"""The pictures of the Clusters page as units: what is drawn, what is said, and what stands in the table."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from dpgrams_core import DATASETS, Dataset, load_dataset, run, score
from dpgrams_core.figures.clusters import (
    MOST_PICTURES,
    PANEL_POINTS,
    Entry,
    centre_pictures,
    class_names,
    class_numbers,
    confusion_chart,
    has_pictures,
    in_class_order,
    inked,
    matched_classes,
    panel_chart,
    plane_of,
    record_colours,
    scores_table,
    sure_chart,
    true_centres,
    who_wins,
)
from dpgrams_core.figures.curve import cluster_curve_chart, printed_scores
from dpgrams_core.figures.style import NON_PRIVATE, PRIVATE, PRIVATE_INK, RECORD_TINTS, TRUTH, TRUTH_INK, channels
from dpgrams_core.figures.traces import CENTRE_WORDS, MOST_POINTS, drawn_rows
from dpgrams_core.model.format import short
from dpgrams_core.model.measures import nearest_centres, offered_measures
from dpgrams_core.studies.comparison import pooled
from dpgrams_core.studies.paper.tables import PAPER_TABLES
from dpgrams_core.sweeps.run import plan_cells, run_cell
from tests.drawn import trace
from tests.made import changed


def entry_of(title, data, release):
    return Entry(title, in_class_order(data, release), score(release, data))


def with_centres(data, centres, like):
    """A release with given centres, otherwise as a real one."""
    return entry_of("Given", data, replace(like, modes=np.asarray(centres, dtype=float), significance=None))


@pytest.fixture(scope="module")
def scene():
    data = load_dataset("blobs", n=400, seed=3)
    made = {name: run(name, data, seed=0, n_clusters=4) for name in ("functional_c", "dp_kmeans", "kmeans")}
    return {"data": data, **{name: entry_of(name, data, release) for name, release in made.items()}}


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("digits")
    return {"data": data, "kmeans": entry_of("k-means", data, run("kmeans", data, seed=0))}


def test_centres_in_one_bought_column_have_flat_regions_in_the_units_of_the_columns():
    data = load_dataset("blobs", n=500, seed=0)
    entry = entry_of("Ours", data, run("functional_c", data, epsilon=2.0, seed=0, n_clusters=3, components=1))
    shown = sure_chart(data, entry)
    ring = next(item for item in shown.figure.data if item.name == CENTRE_WORDS)
    x, y = (np.array(at)[:60] for at in (ring.x, ring.y))  # of the first centre
    assert np.linalg.matrix_rank(np.stack([x - x.mean(), y - y.mean()]), tol=1e-6) == 1
    reach = shown.table[[f"± column {j} (95%)" for j in (1, 2)]].to_numpy() / 1.96
    off = np.sqrt((reach**2).mean(axis=1)).mean()
    assert f"off by about {short(off)} " in shown.sentence
    assert "paid components are taken as they are" in shown.sentence


@pytest.mark.parametrize(("noise", "words"), [(0.5, "by 0.707 if only the noise"), (1.1, "nearly all of it by")])
def test_the_noise_alone_is_never_said_to_move_a_centre_more_than_everything_does(scene, noise, words):
    entry = replace(scene["functional_c"], release=replace(scene["functional_c"].release))
    every = np.tile(np.eye(2), (len(entry.release.modes), 1, 1))
    entry.release.__dict__["_covariances"] = (noise * every, every)
    assert f"off by about 1 along each column; {words}" in sure_chart(scene["data"], entry).sentence


def colours_of(rows):
    """Colours as numbers, to be measured."""
    return np.array([[int(row[i : i + 2], 16) for i in (1, 3, 5)] for row in rows], dtype=float)


def test_every_centre_has_the_colour_of_its_kind(scene):
    private = panel_chart(scene["data"], scene["functional_c"]).figure
    assert trace(private, "functional_c: centre").marker.color == PRIVATE
    assert trace(private, "true class centre").marker.color == TRUTH
    other = panel_chart(scene["data"], scene["dp_kmeans"]).figure
    assert trace(other, "dp_kmeans: centre").marker.color == PRIVATE
    plain = panel_chart(scene["data"], scene["kmeans"]).figure
    assert trace(plain, "kmeans: centre").marker.line.color == NON_PRIVATE


def test_no_record_looks_like_a_centre():
    gaps = np.linalg.norm(colours_of(RECORD_TINTS)[:, None] - colours_of([PRIVATE, NON_PRIVATE, TRUTH]), axis=2)
    assert gaps.min() > 60
    among = np.linalg.norm(colours_of(RECORD_TINTS)[:, None] - colours_of(RECORD_TINTS), axis=2)
    assert among[np.triu_indices(len(RECORD_TINTS), 1)].min() > 25


def test_records_of_one_nearest_centre_share_a_colour_and_panels_agree(scene):
    data = scene["data"]
    mixed = Entry("Mixed", replace(scene["kmeans"].release, modes=true_centres(data)[[2, 0, 3, 1]]), {})
    seen = []
    for entry in (scene["kmeans"], mixed):
        drawn = trace(panel_chart(data, entry).figure, "records, by nearest centre (not private)")
        near = nearest_centres(data.points[drawn_rows(data.n, PANEL_POINTS)], entry.release.modes)
        seen.append(np.array(drawn.marker.color))
        for number in range(4):
            assert len(set(seen[-1][near == number])) == 1
        assert len(set(seen[-1])) == 4
    assert np.mean(seen[0] == seen[1]) > 0.9, "the same cluster has other colours elsewhere"


def test_centres_that_match_no_class_get_colours_of_their_own():
    colours = record_colours(np.array([0, 1, 2, 3]), np.array([1, -1, 0, -1]))
    assert len(set(colours)) == 4
    assert colours[0] == RECORD_TINTS[1]
    assert record_colours(np.zeros(3, dtype=int), np.empty(0, dtype=int)) == [RECORD_TINTS[0]] * 3


def test_the_panels_of_one_data_set_share_their_axes(scene):
    ranges = {
        (panel.layout.xaxis.range, panel.layout.yaxis.range)
        for panel in (panel_chart(scene["data"], scene[name]).figure for name in ("functional_c", "kmeans"))
    }
    assert len(ranges) == 1


def test_few_records_are_drawn_and_always_the_same(scene):
    assert len(drawn_rows(400)) == 400
    rows = drawn_rows(69_000)
    assert len(rows) == MOST_POINTS
    assert (rows[0], rows[-1]) == (0, 68_999)


def test_a_panel_is_a_quarter_of_the_page_and_is_sent_few_records(digits):
    data = digits["data"]
    drawn = trace(panel_chart(data, digits["kmeans"]).figure, "records, by nearest centre (not private)")
    assert len(drawn.x) == len(drawn.marker.color) == PANEL_POINTS < data.n


def test_two_columns_are_shown_as_they_are_and_components_by_their_first_two(scene, digits):
    for data in (scene["data"], digits["data"]):
        np.testing.assert_array_equal(plane_of(data).show(data.points), data.points[:, :2])
    iris = load_dataset("iris")
    mine, theirs = plane_of(iris).show(iris.points), PCA(2).fit_transform(iris.points)
    np.testing.assert_allclose(np.abs(mine), np.abs(theirs), atol=1e-9)


def test_the_true_centres_are_the_class_means(scene):
    data = scene["data"]
    truth = true_centres(data)
    for number, centre in enumerate(truth):
        np.testing.assert_allclose(centre, data.points[data.labels == number].mean(axis=0))
    bare = Dataset(name="bare", kind="clusters", points=data.points, box=data.box, labels=10 + 5 * data.labels)
    np.testing.assert_allclose(true_centres(bare), truth)
    assert class_names(bare) == ["1", "2", "3", "4"]
    np.testing.assert_array_equal(class_numbers(bare), data.labels)


def test_centres_are_numbered_by_the_class_they_are_matched_to(scene):
    data, like = scene["data"], scene["kmeans"].release
    truth = true_centres(data)
    release = replace(like, modes=[[9.0, 9.0], *truth[[2, 0, 3, 1]]], significance=[5.0, 2.0, 0.0, 3.0, 1.0])
    ordered = in_class_order(data, release)
    np.testing.assert_allclose(ordered.modes, [*truth, [9.0, 9.0]])
    np.testing.assert_array_equal(ordered.significance, [0, 1, 2, 3, 5])
    assert matched_classes(data, ordered.modes).tolist() == [0, 1, 2, 3, -1]


def test_a_panel_says_what_it_cannot_show(scene):
    data, like = scene["data"], scene["functional_c"].release
    assert panel_chart(data, scene["functional_c"]).sentence.startswith("4 centres for 4 true classes")
    away = with_centres(data, [[50.0, 0.0], [0.0, 60.0], *true_centres(data)[:2]], like)
    assert "2 outside this picture" in panel_chart(data, away).sentence
    few = with_centres(data, true_centres(data)[:1], like)
    words = "1 centre for 4 true classes; 4 were asked for, and no more were found"
    assert words in panel_chart(data, few).sentence
    none = panel_chart(data, with_centres(data, np.empty((0, 2)), like))
    assert "nothing stands above the noise" in none.sentence
    assert len(none.table) == 0


def test_the_table_of_a_panel_has_every_centre(scene):
    table = panel_chart(scene["data"], scene["kmeans"]).table
    np.testing.assert_array_equal(table[["column 1", "column 2"]], scene["kmeans"].release.modes)
    assert sorted(table["matched true class"]) == class_names(scene["data"])
    gaps = np.linalg.norm(true_centres(scene["data"]) - scene["kmeans"].release.modes, axis=1)
    np.testing.assert_allclose(table["distance to it"], gaps)


def test_the_scores_are_those_of_the_core(scene):
    entries = [scene[name] for name in ("functional_c", "dp_kmeans", "kmeans")]
    table = scores_table(entries)
    assert list(table["guarantee"]) == ["proven, given the representation", "nominal", "none"]
    for row, entry in zip(table.to_dict("records"), entries, strict=True):
        wanted = score(entry.release, scene["data"])
        assert (row["ARI"], row["NMI"]) == pytest.approx((wanted["ari"], wanted["nmi"]))
        assert row["centroid MSE"] == pytest.approx(wanted["centroid_mse"])


GIVEN = "proven, given the representation"


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (("Ours", "proven", 0.7), ("Theirs", "nominal", 0.6), "Ours wins among the private ones, by 0.10 in ARI, and"),
        (("Ours", "proven", 0.5), ("Theirs", "nominal", 0.6), "only nominal, while that of Ours is proven."),
        (("Ours", "nominal", 0.7), ("Theirs", "nominal", 0.6), "Ours wins among the private ones, by 0.10 in ARI, but"),
        (("Ours", "proven", 0.601), ("Theirs", "nominal", 0.6), "are level; only Ours has a guarantee that is proven."),
        (("Ours", "nominal", 0.601), ("Theirs", "nominal", 0.6), "the private ones are level."),
        (("Ours", "proven", 0.6), ("Theirs", "nominal", 0.593), "by 0.01 in ARI"),
        (("Ours", GIVEN, 0.7), ("Theirs", "nominal", 0.6), "and its guarantee is proven, given the representation."),
        (("Ours", GIVEN, 0.5), ("Theirs", "nominal", 0.6), "that of Ours is proven, given the representation."),
        (
            ("Ours", GIVEN, 0.601),
            ("Theirs", "nominal", 0.6),
            "only Ours has a guarantee that is proven, given",
        ),
    ],
)
def test_the_winner_is_read_off_the_scores(first, second, words):
    rows = [first, second, ("k-means", "none", 0.99)]
    sentence = who_wins(pd.DataFrame(rows, columns=["method", "guarantee", "ARI"]))
    assert words in sentence
    assert sentence.startswith("In this run")
    assert "k-means" not in sentence


def test_the_confusion_table_counts_every_record_once(scene):
    data, entry = scene["data"], scene["kmeans"]
    chart = confusion_chart(data, entry)
    counts = chart.table.drop(columns="true class").to_numpy()
    assert list(chart.table["true class"]) == class_names(data)
    assert counts.sum() == data.n
    np.testing.assert_array_equal(counts.sum(axis=1), np.bincount(data.labels))
    near = nearest_centres(data.points, entry.release.modes)
    for i, j in np.ndindex(*counts.shape):
        assert counts[i, j] == np.sum((data.labels == i) & (near == j))
    np.testing.assert_array_equal(chart.figure.data[0].text, counts)
    share = 100 * counts.max(axis=0).sum() / data.n
    assert chart.sentence.startswith(f"{share:.0f}% of the records")
    assert "never part of a release" in chart.sentence


def test_the_confusion_table_stands_any_number_of_centres(scene):
    data, like = scene["data"], scene["functional_c"].release
    empty = confusion_chart(data, with_centres(data, np.empty((0, 2)), like))
    assert empty.table.drop(columns="true class").to_numpy().sum() == data.n
    away = confusion_chart(data, with_centres(data, [[0.0, 0.0], [99.0, 99.0]], like))
    assert "1 cluster without any record" in away.sentence


def test_only_images_have_pictures(scene, digits):
    assert has_pictures(digits["data"])
    assert not has_pictures(scene["data"])
    with pytest.raises(ValueError, match="no images"):
        centre_pictures(scene["data"], scene["kmeans"])


def test_a_centre_is_drawn_through_the_inverse_map_above_its_class(digits):
    data, entry = digits["data"], digits["kmeans"]
    found = centre_pictures(data, entry)
    assert len(found.pictures) == len(found.table) == 10
    truth = np.stack([load_digits_mean(number) for number in range(10)])
    top = truth.max()
    for number, picture in enumerate(found.pictures):
        released = inked(data.representation.pictures(entry.release.modes)[number] / top, PRIVATE_INK)
        np.testing.assert_array_equal(picture.image[: len(released)], released)
        partner = class_names(data).index(found.table["matched true class"][number])
        below = inked(truth[partner] / top, TRUTH_INK)
        np.testing.assert_allclose(picture.image[-len(below) :].astype(int), below.astype(int), atol=1)
        assert picture.image.dtype == np.uint8
        assert found.table["matched true class"][number] in picture.caption
        assert picture.caption in picture.alt
    assert "not private" in found.sentence


def load_digits_mean(number):
    from sklearn.datasets import load_digits

    source = load_digits()
    return source.images[source.target == number].mean(axis=0)


def test_the_words_under_a_picture_are_the_commonest_class(digits):
    data, entry = digits["data"], digits["kmeans"]
    near = nearest_centres(data.points, entry.release.modes)
    table = centre_pictures(data, entry).table
    assert table["records near it (not private)"].sum() == data.n
    for number, row in enumerate(table.to_dict("records")):
        counts = np.bincount(data.labels[near == number], minlength=10)
        assert row["most records near it are"] == str(counts.argmax())
        assert row["share of them, %"] == pytest.approx(100 * counts.max() / counts.sum())


def test_pictures_of_too_many_of_no_and_of_far_centres(digits):
    data, like = digits["data"], digits["kmeans"].release
    many = centre_pictures(data, with_centres(data, np.repeat(data.points[:25], 1, axis=0), like))
    assert len(many.pictures) == MOST_PICTURES
    assert len(many.table) == 25
    assert "The first 20 of 25 centres are drawn" in many.sentence
    assert "matched to none" in many.pictures[-1].caption
    far = centre_pictures(data, with_centres(data, [np.full(6, 50.0), np.zeros(6)], like))
    assert sum("no record near" in picture.caption for picture in far.pictures) == 1
    none = centre_pictures(data, with_centres(data, np.empty((0, 6)), like))
    assert none.pictures == ()
    assert "no centre to draw" in none.sentence


def test_ink_runs_from_white_paper_to_full_dark():
    strip = inked(np.array([[-1.0, 0.0, 0.5, 1.0, 9.0]]), PRIVATE_INK)[0]
    step = len(strip) // 5
    assert strip[0].tolist() == strip[step].tolist() == [255, 255, 255]
    assert ",".join(map(str, strip[2 * step])) == channels(PRIVATE_INK[1])
    assert ",".join(map(str, strip[3 * step])) == ",".join(map(str, strip[4 * step])) == channels(PRIVATE_INK[2])


@pytest.fixture(scope="module")
def cells():
    found = []
    for method, runs in (("functional_c", 2), ("dp_kmeans", 2), ("kmeans", 1), ("mean_shift_c", 1)):
        found += plan_cells(method, "blobs", n=[300], epsilon=[0.5, 5.0], runs=runs, n_clusters=4)
    return found


@pytest.fixture(scope="module")
def results(cells):
    return [pooled([run_cell(cell)]) for cell in cells]


@pytest.mark.parametrize("measure", list(offered_measures("clusters")))
def test_the_curve_shows_the_means_of_each_method(cells, results, measure):
    chart = cluster_curve_chart(results, cells, measure, 0.5)
    rows = {(row["method"], row["epsilon"]): row for row in (result.row() for result in results)}
    private = trace(chart.figure, "Functional release (proven, given the representation)")
    assert list(private.y) == [rows["functional_c", value][measure] for value in (0.5, 5.0)]
    assert list(private.error_y.array) == [rows["functional_c", value][f"{measure}_se"] for value in (0.5, 5.0)]
    assert (private.line.color, private.line.dash) == (PRIVATE, "solid")
    second = trace(chart.figure, "DP-k-means (nominal)")
    assert (second.line.color, second.line.dash, second.marker.symbol) == (PRIVATE, "dash", "square-open")
    plain = [trace(chart.figure, f"{name} (not private)") for name in ("k-means", "Mean shift")]
    assert {line.line.color for line in plain} == {NON_PRIVATE}
    assert len({line.line.dash for line in plain}) == 2
    assert plain[0].y[0] == rows["kmeans", math.inf][measure]
    assert f"Mean {offered_measures('clusters')[measure].title} at ε = 0.5" in chart.sentence
    assert "Means over 2 runs on fresh draws of the records." in chart.sentence
    assert len(chart.table) == len(cells)


def test_the_sentence_of_the_curve_names_a_winner_only_where_the_errors_allow_it(cells, results):
    def pretend(ours, theirs):
        values = {"functional_c": ours, "dp_kmeans": theirs}
        others = []
        for result in results:
            scores = {**result.scores, "ari": values.get(result.cell.method, result.scores["ari"])}
            others.append(changed(result, scores=scores))
        return cluster_curve_chart(others, cells, "ari", 1.0).sentence

    assert "Functional release wins there." in pretend((0.80, 0.82), (0.40, 0.42))
    assert "DP-k-means wins there." in pretend((0.40, 0.42), (0.80, 0.82))
    assert "neither wins there" in pretend((0.4, 0.8), (0.3, 0.8))
    lost = cluster_curve_chart(results, cells, "centroid_mse", 1.0)
    assert lost.figure.layout.yaxis.type == "log"


def test_the_curve_fills_in_and_says_how_far_it_is(cells, results):
    assert cluster_curve_chart([], cells, "ari", 1.0).sentence == "0 of 6 points so far."
    part = cluster_curve_chart(results[:1], cells, "ari", 1.0)
    assert part.sentence.endswith("1 of 6 points so far.")
    whole = cluster_curve_chart(results, cells, "ari", 1.0)
    assert "so far" not in whole.sentence
    assert part.figure.layout.xaxis.range == whole.figure.layout.xaxis.range


def test_a_run_without_a_centre_leaves_a_gap(cells, results):
    scores = {**results[0].scores, "centroid_mse": (math.inf, 1.0)}
    chart = cluster_curve_chart([changed(results[0], scores=scores), *results[1:]], cells, "centroid_mse", 1.0)
    assert math.isnan(trace(chart.figure, "Functional release (proven, given the representation)").y[0])


def test_printed_values_are_those_of_the_paper_and_only_where_they_belong(cells, results):
    printed = json.loads(PAPER_TABLES.read_text())["clustering_mnist"]["rows"]
    whole = DATASETS["mnist"].default_n
    wanted = [(row["epsilon"], row["dp_grams_c"]["nmi"]["mean"]) for row in printed]
    assert printed_scores("mnist", whole, "nmi") == wanted
    assert printed_scores("mnist", 1_000, "nmi") == []
    assert len(printed_scores("blobs", 700, "ari")) == 5
    assert printed_scores("blobs", 300, "ari") == []
    names = [item.name for item in cluster_curve_chart(results, cells, "ari", 1.0).figure.data]
    assert "DP-GRAMS-C as the paper prints it" not in names  # the paper has no n = 300
