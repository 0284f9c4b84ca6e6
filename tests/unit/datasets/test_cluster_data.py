"""Clustering data: their shapes, their maps back, smaller samples, and files that a user may or may not have."""

from __future__ import annotations

import importlib.util
import struct
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris, make_blobs

from dpgrams_core import DATASETS, DataError, Dataset, SpecError, load_dataset
from dpgrams_core.datasets import real
from dpgrams_core.datasets.registry import datasets_of
from dpgrams_core.model.representation import FITTED_CAVEAT, Representation, standardise, whitened_pca
from tests.places import ROOT

BUNDLED = {"blobs": (1000, 2, 4), "iris": (150, 4, 3), "digits": (1797, 6, 10), "mnist": (69_000, 5, 10)}
BUNDLED |= {"uneven": (5_000, 3, 6), "tumours": (569, 5, 2)}
CLASSES = ("BRCA", "KIRC", "LUAD")


@pytest.fixture(params=BUNDLED)
def bundled(request):
    return load_dataset(request.param)


class TestEveryBundledDataSet:
    def test_its_shape(self, bundled):
        n, d, classes = BUNDLED[bundled.name]
        assert bundled.kind == "clusters"
        assert bundled.points.shape == (n, d)
        assert bundled.n_clusters == len(bundled.representation.class_names) == classes
        assert sorted(set(bundled.labels.tolist())) == list(range(classes))
        assert (n, bundled.true_modes, bundled.private) == (DATASETS[bundled.name].default_n, None, False)

    def test_the_box_is_the_stated_constant_and_holds_nearly_all_records(self, bundled):
        assert np.array_equal(bundled.box, [(-4.0, 4.0)] * bundled.dimension)
        outside = (np.abs(bundled.points) > 4).any(axis=1).mean()
        assert outside < 0.012

    def test_columns_are_standardised(self, bundled):
        # MNIST is short of the 1,000 public images and in half precision.
        loose = 0.02 if bundled.name == "mnist" else 1e-9
        np.testing.assert_allclose(bundled.points.mean(axis=0), 0, atol=loose)
        np.testing.assert_allclose(bundled.points.std(axis=0), 1, atol=max(loose, 1e-3))

    def test_the_map_back_undoes_the_map_there(self, bundled):
        representation = bundled.representation
        centres = bundled.points[:7]
        again = representation.from_standard(representation.to_standard(centres))
        np.testing.assert_allclose(again, centres, atol=1e-6)

    def test_the_reference_centroids_are_the_class_means(self, bundled):
        # Seen in the few columns, where both can be computed.
        seen = bundled.representation.from_standard(bundled.representation.centroids)
        means = [bundled.points[bundled.labels == k].mean(axis=0) for k in range(bundled.n_clusters)]
        np.testing.assert_allclose(seen, means, atol=2e-3 if bundled.name == "mnist" else 1e-9)

    def test_the_representation_says_that_it_is_not_private(self, bundled):
        assert bundled.representation.caveats == (FITTED_CAVEAT,)
        assert "not paid for" in FITTED_CAVEAT

    def test_a_smaller_sample_is_drawn_by_the_seed(self, bundled, seed):
        one, same, other = (load_dataset(bundled.name, n=60, seed=s) for s in (seed, seed, seed + 1))
        assert one.points.shape == (60, bundled.dimension)
        assert np.array_equal(one.points, same.points)
        assert not np.array_equal(one.points, other.points)
        assert np.array_equal(one.labels, same.labels)

    def test_too_few_records_are_refused(self, bundled, refused):
        refused(lambda: load_dataset(bundled.name, n=49), "n", 49, "at least 50")

    def test_it_cannot_be_changed(self, bundled):
        with pytest.raises(ValueError, match="read-only"):
            bundled.representation.centroids[0] = 0
        with pytest.raises(FrozenInstanceError):
            bundled.representation.fitted = False


@pytest.mark.parametrize("name", ["iris", "digits", "mnist"])
class TestRealData:
    def test_rows_of_a_sample_are_rows_of_the_whole_with_their_classes(self, name, seed):
        whole, part = load_dataset(name), load_dataset(name, n=80, seed=seed)
        rows = {(*point, label) for point, label in zip(whole.points.tolist(), whole.labels.tolist(), strict=True)}
        assert all(
            (*point, label) in rows for point, label in zip(part.points.tolist(), part.labels.tolist(), strict=True)
        )
        assert part.representation is whole.representation

    def test_all_records_are_the_same_for_every_seed(self, name, seed):
        assert np.array_equal(load_dataset(name, seed=seed).points, load_dataset(name, seed=seed + 1).points)

    def test_more_records_than_there_are_is_refused(self, name, refused):
        n = DATASETS[name].default_n
        refused(lambda: load_dataset(name, n=n + 1), "n", n + 1, f"at most {n}", f"{n:,} records")


class TestBlobs:
    @pytest.mark.parametrize("n", [700, 1001, 5000])
    def test_seed_0_is_the_draw_of_the_paper(self, n):
        points, labels = make_blobs(n, centers=4, cluster_std=1.2, random_state=41)
        data = load_dataset("blobs", n=n, seed=0)
        np.testing.assert_allclose(data.points, (points - points.mean(axis=0)) / points.std(axis=0), atol=1e-12)
        assert np.array_equal(data.labels, labels)

    def test_another_seed_draws_about_the_same_centres(self, seed):
        paper, other = (load_dataset("blobs", n=20_000, seed=s).representation.centroids for s in (0, seed + 1))
        # Five thousand records a blob: a mean is off by less than 0.05 unless something is wrong (over 10 sigma).
        np.testing.assert_allclose(other, paper, atol=0.05)

    def test_blobs_are_of_one_size(self, seed):
        assert np.ptp(np.bincount(load_dataset("blobs", n=1002, seed=seed + 1).labels)) == 1


def test_iris_and_digits_are_those_of_scikit_learn():
    for name, source in (("iris", load_iris()), ("digits", load_digits())):
        data = load_dataset(name)
        assert np.array_equal(data.labels, source.target)
    flowers = load_iris().data
    np.testing.assert_allclose(load_dataset("iris").points, (flowers - flowers.mean(axis=0)) / flowers.std(axis=0))


class TestPictures:
    @pytest.mark.parametrize(("name", "side", "white"), [("digits", 8, 16), ("mnist", 28, 255)])
    def test_class_means_look_like_the_mean_pictures(self, name, side, white):
        representation = load_dataset(name).representation
        pictures = representation.pictures(representation.from_standard(representation.centroids))
        assert pictures.shape == (10, side, side)
        # Six components keep only part of a picture, but a mean picture has dark edges and a bright middle.
        corners, middle = pictures[:, 0, 0], pictures[:, side // 4 : -side // 4, side // 4 : -side // 4]
        assert np.abs(corners).max() < 0.05 * white
        assert 0.2 * white < middle.mean() < white

    def test_digits_are_drawn_in_their_own_grey_values(self):
        source = load_digits()
        representation = load_dataset("digits").representation
        exact = np.stack([source.images[source.target == k].mean(axis=0) for k in range(10)])
        # The reference centroids themselves, standardised backwards, are the mean images.
        grey = representation.centroids * representation.picture_scale + representation.picture_mean
        np.testing.assert_allclose(grey.reshape(10, 8, 8), exact, atol=1e-9)

    def test_data_that_are_no_images_have_no_pictures(self):
        data = load_dataset("iris")
        with pytest.raises(ValueError, match="no images"):
            data.representation.pictures(data.points[:2])


class TestMNISTAsset:
    def test_the_public_candidates_are_a_hundred_of_each_and_not_in_the_sample(self):
        data = load_dataset("mnist")
        assert data.candidates.shape == (1000, 5)
        stored = np.load(ROOT / "assets" / "mnist_pca5.npz")
        assert np.array_equal(np.bincount(stored["labels"][stored["public_rows"]]), [100] * 10)
        public = np.zeros(70_000, dtype=bool)
        public[stored["public_rows"]] = True
        assert np.array_equal(data.candidates, stored["scores"][public].astype(float))
        assert np.array_equal(data.points, stored["scores"][~public].astype(float))

    def test_it_is_small_and_says_where_it_comes_from(self):
        path = ROOT / "assets" / "mnist_pca5.npz"
        assert path.stat().st_size < 1_500_000
        origin = str(np.load(path)["origin"])
        assert all(name in origin for name in ("LeCun", "Cortes", "Burges", "build_mnist.py"))

    def test_the_script_builds_such_a_file_from_idx_files(self, tmp_path, rng):
        spec = importlib.util.spec_from_file_location("build_mnist", ROOT / "assets" / "build_mnist.py")
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        with pytest.raises(SystemExit, match="does not hold train-images"):
            script.build(tmp_path)
        images = rng.integers(0, 256, (1500, 28, 28), dtype=np.uint8)
        images[:, 0] = 0  # a row of constant pixels, as MNIST has
        labels = np.arange(1500, dtype=np.uint8) % 10
        for rows, (image_name, label_name) in zip(
            (slice(0, 1100), slice(1100, 1500)), zip(script.IMAGES, script.LABELS, strict=True), strict=True
        ):
            write_idx(tmp_path / image_name, images[rows])
            write_idx(tmp_path / label_name, labels[rows])
        built, stored = script.build(tmp_path), np.load(ROOT / "assets" / "mnist_pca5.npz")
        assert set(built) == set(stored.files)
        assert all(built[name].dtype == stored[name].dtype for name in stored.files if name != "origin")
        assert built["scores"].shape == (1500, 5)
        assert np.array_equal(built["labels"], labels)
        flat = images.reshape(1500, -1).astype(float)
        np.testing.assert_allclose(built["pixel_mean"], flat.mean(axis=0), rtol=1e-5)
        private = np.setdiff1d(np.arange(1500), built["public_rows"])
        first = flat[private][labels[private] == 0].mean(axis=0)
        scale = np.where(flat.std(axis=0) > 0, flat.std(axis=0), 1)
        np.testing.assert_allclose(built["class_means"][0], (first - flat.mean(axis=0)) / scale, atol=1e-5)
        images[private] = 255  # no private image has a part in the public columns
        for rows, name in zip((slice(0, 1100), slice(1100, 1500)), script.IMAGES, strict=True):
            write_idx(tmp_path / name, images[rows])
        again = script.build(tmp_path)
        for name in ("public_scale", "public_components", "public_offset", "public_pixel_mean", "public_pixel_scale"):
            assert np.array_equal(again[name], built[name])
        rows = built["public_rows"]
        np.testing.assert_array_equal(again["public_scores"][rows], built["public_scores"][rows])

    def test_a_file_that_is_not_idx_is_refused_by_the_script(self, tmp_path):
        spec = importlib.util.spec_from_file_location("build_mnist", ROOT / "assets" / "build_mnist.py")
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        (tmp_path / "file").write_bytes(b"no")
        with pytest.raises(SystemExit, match="not an idx file"):
            script.read_idx(tmp_path / "file")


def write_idx(path, array):
    path.write_bytes(
        b"\x00\x00\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
    )


@pytest.fixture
def tumours(rng):
    """Sixty tumours of three kinds by a hundred genes, one of them constant."""
    labels = np.arange(60) % 3
    genes = rng.normal(0, 1, (60, 100)) + 3 * rng.normal(0, 1, (3, 100))[labels]
    genes[:, 5] = 7.0
    return genes, labels


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(real.DATA_VARIABLE, str(tmp_path))
    return tmp_path


def write_tables(folder, genes, labels, order=None):
    names = [f"sample_{i}" for i in range(len(genes))]
    frame = pd.DataFrame(genes, index=names, columns=[f"gene_{j}" for j in range(genes.shape[1])])
    frame.to_csv(folder / "data.csv")
    classes = pd.DataFrame({"Class": [CLASSES[k] for k in labels]}, index=names)
    classes.iloc[np.arange(len(names)) if order is None else order].to_csv(folder / "labels.csv")


def write_copy(folder, genes, labels):
    standard, _, _ = standardise(genes)
    fifty = whitened_pca(standard, 50)
    pc50 = fifty.scores * fifty.scale
    six = whitened_pca(pc50, 6)
    np.savez(
        folder / "rnaseq_pca6.npz",
        scores=six.scores.astype(np.float32),
        labels=labels.astype(np.uint8),
        label_names=np.array(CLASSES),
        components=six.components.astype(np.float32),
        explained_variance=(six.scale**2).astype(np.float32),
        mean=six.offset.astype(np.float32),
        class_means=np.stack([pc50[labels == k].mean(axis=0) for k in range(3)]).astype(np.float32),
        pc50=pc50.astype(np.float32),
    )


class TestRNASeq:
    def test_without_the_variable_a_sentence_says_how_to_get_them(self, monkeypatch):
        monkeypatch.delenv(real.DATA_VARIABLE, raising=False)
        with pytest.raises(DataError, match=r"UCI.*DPGRAMS_DATA.*data\.csv and labels\.csv; it is not set"):
            load_dataset("rnaseq")

    def test_a_folder_without_the_files_says_the_same(self, folder):
        with pytest.raises(DataError, match=r"UCI.*does not hold them"):
            load_dataset("rnaseq")
        (folder / "data.csv").write_text("")  # one of two is not enough
        with pytest.raises(DataError, match=r"does not hold them"):
            load_dataset("rnaseq")

    def test_from_the_two_tables(self, folder, tumours, rng):
        genes, labels = tumours
        write_tables(folder, genes, labels, order=rng.permutation(60))  # labels in another order
        data = load_dataset("rnaseq")
        assert data.representation.fitted == DATASETS["rnaseq"].fitted
        assert (data.kind, data.points.shape, data.n_clusters) == ("clusters", (60, 6), 3)
        assert data.representation.class_names == CLASSES
        assert np.array_equal(data.labels, labels)
        assert data.representation.space == "100 standardised genes"
        standard, _, _ = standardise(genes)
        means = np.stack([standard[labels == k].mean(axis=0) for k in range(3)])
        np.testing.assert_allclose(data.representation.centroids, means, atol=1e-12)
        # Six of a hundred columns: the way back is the nearest that six components give.
        error = np.square(data.representation.to_standard(data.points) - standard).sum()
        values = np.linalg.svd(standard - standard.mean(axis=0), compute_uv=False)
        np.testing.assert_allclose(error, np.square(values[6:]).sum(), rtol=1e-9)

    def test_the_measuring_copy_gives_the_same_points(self, folder, tumours, tmp_path_factory, monkeypatch):
        write_tables(folder, *tumours)
        from_tables = load_dataset("rnaseq")
        other = tmp_path_factory.mktemp("copy")
        write_copy(other, *tumours)
        monkeypatch.setenv(real.DATA_VARIABLE, str(other))
        from_copy = load_dataset("rnaseq")
        signs = np.sign((from_tables.points * from_copy.points).sum(axis=0))  # of a component: free
        np.testing.assert_allclose(from_copy.points * signs, from_tables.points, atol=1e-5)
        assert from_copy.representation.space == "50 leading principal components of the standardised genes"
        assert np.array_equal(from_copy.labels, from_tables.labels)

    def test_the_tables_come_before_the_copy(self, folder, tumours):
        write_tables(folder, *tumours)
        write_copy(folder, *tumours)
        assert load_dataset("rnaseq").representation.space == "100 standardised genes"

    def test_a_changed_file_is_read_again(self, folder, tumours):
        genes, labels = tumours
        write_tables(folder, genes, labels)
        before = load_dataset("rnaseq").points
        write_tables(folder, genes[::-1], labels[::-1])
        assert not np.array_equal(load_dataset("rnaseq").points, before)

    @pytest.mark.parametrize(
        "damage",
        [
            lambda f: (f / "data.csv").write_text(",a,b\nsample_0,1,secret\nsample_1,2,3\n"),
            lambda f: (f / "data.csv").write_text(",a,b\nsample_0,1,\nsample_1,2,3\n"),
            lambda f: (f / "data.csv").write_text(""),
            lambda f: (f / "data.csv").write_bytes(b"\xff\xfe\x00secret"),
            lambda f: (f / "labels.csv").write_text(",Class\nsomebody,BRCA\n"),
            lambda f: (f / "labels.csv").write_text("Class\n"),
            lambda f: (f / "data.csv").write_text(",a\n" + "".join(f"sample_{i},{i}\n" for i in range(60))),
        ],
    )
    def test_damaged_tables_end_in_a_sentence_without_their_content(self, damage, folder, tumours):
        write_tables(folder, *tumours)
        damage(folder)
        with pytest.raises(DataError, match=r"data\.csv and labels\.csv cannot be used") as caught:
            load_dataset("rnaseq")
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize("content", [b"no archive", b""])
    def test_a_damaged_copy_ends_in_a_sentence(self, content, folder):
        (folder / "rnaseq_pca6.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"rnaseq_pca6\.npz cannot be used"):
            load_dataset("rnaseq")

    def test_a_copy_that_does_not_fit_together_ends_in_a_sentence(self, folder, tumours):
        write_copy(folder, *tumours)
        stored = dict(np.load(folder / "rnaseq_pca6.npz"))
        for change in ({"components": stored["components"][:5]}, {"scores": stored["scores"] * np.nan}):
            np.savez(folder / "rnaseq_pca6.npz", **{**stored, **change})
            with pytest.raises(DataError, match=r"cannot be used"):
                load_dataset("rnaseq")


class TestPCA:
    @pytest.mark.parametrize("shape", [(80, 12), (12, 80), (30, 30)])
    def test_scores_are_white_and_the_sign_is_fixed(self, shape, rng):
        table = rng.normal(0, 1, shape) @ np.diag(np.linspace(5, 1, shape[1]))
        fitted = whitened_pca(table, 4)
        np.testing.assert_allclose(np.cov(fitted.scores.T), np.eye(4), atol=1e-9)
        np.testing.assert_allclose(fitted.components @ fitted.components.T, np.eye(4), atol=1e-9)
        sizes = np.abs(fitted.components)
        assert (fitted.components[np.arange(4), sizes.argmax(axis=1)] > 0).all()

    def test_constant_columns_become_zero(self):
        table, mean, scale = standardise(np.array([[1e6, 1.0], [1e6, 3.0]]))
        assert table[:, 0].tolist() == [0.0, 0.0]
        assert (mean[0], scale[0]) == (1e6, 1.0)


def representation(**change):
    """Two columns as they are, and one class."""
    parts = {"space": "two columns", "fitted": True, "scale": np.ones(2), "components": np.eye(2)}
    parts |= {"offset": np.zeros(2), "centroids": np.zeros((1, 2)), "class_names": ("all",)}
    return Representation(**(parts | change))


class TestDataset:
    def test_candidates_of_the_wrong_width_are_refused(self, rng):
        with pytest.raises(DataError, match="2 columns"):
            Dataset(
                name="mine", kind="clusters", points=rng.normal(size=(9, 2)), box=[(-4, 4)] * 2, candidates=[[1.0]] * 5
            )

    def test_the_number_of_classes(self, table, rng):
        points = rng.normal(size=(9, 2))
        assert table(points, kind="clusters").n_clusters is None
        assert table(points, kind="clusters", labels=[0, 1, 2] * 3).n_clusters == 3
        # Private labels are records too: their number is not read off.
        assert table(points, kind="clusters", labels=[0, 1, 2] * 3, private=True).n_clusters is None

    def test_a_representation_that_was_not_fitted_needs_no_caveat(self, table, rng):
        public = representation(fitted=False)
        points = rng.normal(size=(9, 2))
        assert table(points, kind="clusters", representation=public).representation.caveats == ()

    def test_parts_that_do_not_fit_are_refused(self):
        with pytest.raises(ValueError, match="do not fit"):
            representation(scale=np.ones(3))


def test_the_registry_knows_them_all():
    assert datasets_of("clusters") == [*BUNDLED, "rnaseq"]
    with pytest.raises(SpecError, match="choose one of"):
        load_dataset("mnist5")
