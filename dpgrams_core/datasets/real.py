"""Real clustering data: Iris and Digits from scikit-learn, MNIST from our assets, RNA-Seq from the user's own copy.

Each is standardised and projected as in the paper; the maps are fitted on all records (see ``Representation``).  Those
with ``public`` in their name have columns that no record was looked at for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dpgrams_core.datasets.as_run import plain_pca
from dpgrams_core.datasets.clusters import ClusterTable, in_public_ranges, standardised
from dpgrams_core.model.errors import DataError
from dpgrams_core.model.places import ASSETS
from dpgrams_core.model.representation import FittedPCA, Representation, class_means, standardise, whitened_pca

Array = np.ndarray

MNIST_FILE = ASSETS / "mnist_pca5.npz"
DATA_VARIABLE = "DPGRAMS_DATA"
DIGITS_COLUMNS, RNASEQ_COLUMNS, TUMOURS_COLUMNS = 6, 6, 5
RNASEQ_COPY, RNASEQ_GENES, RNASEQ_LABELS = "rnaseq_pca6.npz", "data.csv", "labels.csv"
HOW_TO_GET_RNASEQ = (
    "The RNA-Seq data do not come with this project. Download “Gene expression cancer RNA-Seq” from the UCI Machine "
    f"Learning Repository (data set 401), unpack it, and set the environment variable {DATA_VARIABLE} to the folder "
    f"that holds {RNASEQ_GENES} and {RNASEQ_LABELS}"
)


@lru_cache(maxsize=1)
def iris() -> ClusterTable:
    """150 flowers of three species: four standardised lengths (R. A. Fisher, 1936)."""
    from sklearn.datasets import load_iris  # here, since it takes a second to load

    source = load_iris()
    names = tuple(str(name) for name in source.target_names)
    return standardised(source.data, source.target, "four standardised lengths", names)


@lru_cache(maxsize=1)
def public_iris() -> ClusterTable:
    """The same by the lengths themselves: 0 to 10 cm for those of leaves, 0 to 5 cm for their widths."""
    from sklearn.datasets import load_iris  # here, since it takes a second to load

    return in_public_ranges(iris(), load_iris().data, np.array([(0.0, 10.0), (0.0, 5.0)] * 2))


@lru_cache(maxsize=1)
def public_digits() -> ClusterTable:
    """The same by the 64 pixels themselves, 0 to 16: a private method pays for what it makes of them."""
    from sklearn.datasets import load_digits  # here, since it takes a second to load

    return in_public_ranges(digits(), load_digits().data, np.tile([0.0, 16.0], (64, 1)))


@lru_cache(maxsize=1)
def digits() -> ClusterTable:
    """1,797 handwritten digits of 8 x 8 pixels: standardised, whitened PCA to six (E. Alpaydin and C. Kaynak, UCI)."""
    return _digits(whitened_pca)


@lru_cache(maxsize=1)
def digits_as_run() -> ClusterTable:
    """The same in principal components that are not whitened, as the paper's table has them."""
    return _digits(plain_pca)


def _digits(components: Callable[[Array, int], FittedPCA]) -> ClusterTable:
    from sklearn.datasets import load_digits  # here, since it takes a second to load

    source = load_digits()
    standard, mean, scale = standardise(source.data)
    fitted = components(standard, DIGITS_COLUMNS)
    picture = {"picture_shape": (8, 8), "picture_mean": mean, "picture_scale": scale}
    return _by_components("64 standardised pixels", fitted, standard, source.target, "0123456789", **picture)


def _by_components(
    space: str, fitted: FittedPCA, standard: Array, labels: Array, class_names: Iterable[object], **picture: Any
) -> ClusterTable:
    """Standardised records (n, p) in the components that were fitted on them."""
    names = tuple(map(str, class_names))
    representation = Representation(
        space=space,
        fitted=True,
        scale=fitted.scale,
        components=fitted.components,
        offset=fitted.offset,
        centroids=class_means(standard, labels, len(names)),
        class_names=names,
        **picture,
    )
    return ClusterTable(points=fitted.scores, labels=labels, representation=representation)


@lru_cache(maxsize=1)
def tumours() -> ClusterTable:
    """569 breast tumours, benign or not, by 30 measures: standardised, whitened PCA to five (W. Wolberg and others)."""
    from sklearn.datasets import load_breast_cancer  # here, since it takes a second to load

    source = load_breast_cancer()
    standard, _, _ = standardise(source.data)
    fitted = whitened_pca(standard, TUMOURS_COLUMNS)
    return _by_components("30 standardised measures", fitted, standard, source.target, source.target_names)


@lru_cache(maxsize=1)
def mnist() -> ClusterTable:
    """69,000 handwritten digits in whitened PCA to five, fitted on all of them, and 1,000 public ones as candidates.

    MNIST: Y. LeCun, C. Cortes and C. Burges.  The asset is made by assets/build_mnist.py, which also draws the
    public images: 100 of every digit, by a fixed seed, as subsec:private-clustering-mnist asks for (stratified).
    """
    return _mnist("", "784 standardised pixels")


@lru_cache(maxsize=1)
def public_mnist() -> ClusterTable:
    """The same, with scaling and components fitted on the public pictures alone: no private one has a part in them."""
    return _mnist("public_", "784 pixels, standardised by the public pictures")


def _mnist(prefix: str, space: str) -> ClusterTable:
    with np.load(MNIST_FILE, allow_pickle=False) as file:
        stored = {name: file[name] for name in file.files}
    public = np.zeros(len(stored["labels"]), dtype=bool)
    public[stored["public_rows"]] = True
    scores = stored[f"{prefix}scores"].astype(float)
    return ClusterTable(
        points=scores[~public],
        labels=stored["labels"][~public].astype(int),
        candidates=scores[public],
        representation=Representation(
            space=space,
            fitted=not prefix,
            scale=stored[f"{prefix}scale"],
            components=stored[f"{prefix}components"],
            offset=stored[f"{prefix}offset"],
            centroids=stored[f"{prefix}class_means"],
            class_names=tuple("0123456789"),
            picture_shape=(28, 28),
            picture_mean=stored[f"{prefix}pixel_mean"],
            picture_scale=stored[f"{prefix}pixel_scale"],
        ),
    )


def rnaseq() -> ClusterTable:
    """801 tumours of five kinds: standardised genes, whitened PCA to six, from the folder named by DPGRAMS_DATA.

    The folder holds UCI's data.csv and labels.csv, or else the measuring copy rnaseq_pca6.npz.  The first gives
    centroid errors in the space of all genes, as in the paper; the second in that of 50 principal components.
    """
    wish = os.environ.get(DATA_VARIABLE, "")
    if not wish:
        raise DataError(f"{HOW_TO_GET_RNASEQ}; it is not set.")
    folder = Path(wish)
    tables = (folder / RNASEQ_GENES, folder / RNASEQ_LABELS)
    if all(path.is_file() for path in tables):
        return _genes(*tables, tuple(path.stat().st_mtime_ns for path in tables))
    copy = folder / RNASEQ_COPY
    if copy.is_file():
        return _measuring_copy(copy, copy.stat().st_mtime_ns)
    raise DataError(f"{HOW_TO_GET_RNASEQ}; the folder that it names now does not hold them.")


@lru_cache(maxsize=1)
def _genes(genes: Path, classes: Path, _times: tuple[int, ...]) -> ClusterTable:
    """UCI's two tables, matched by the sample names in their first columns. (Their times are part of the key.)"""
    import pandas as pd  # here, since it takes its time to load

    try:
        values = pd.read_csv(genes, index_col=0, dtype={0: str}, low_memory=False)
        names = pd.read_csv(classes, index_col=0, dtype=str).iloc[:, 0]
        ordered = names.reindex(values.index)
        table = values.to_numpy(dtype=float)
    except (ValueError, TypeError, IndexError, KeyError, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise _unreadable(f"{RNASEQ_GENES} and {RNASEQ_LABELS}") from error
    if ordered.isna().any() or not np.isfinite(table).all() or min(table.shape) <= RNASEQ_COLUMNS:
        raise _unreadable(f"{RNASEQ_GENES} and {RNASEQ_LABELS}")
    class_names, labels = np.unique(ordered.to_numpy(dtype=str), return_inverse=True)
    standard, _, _ = standardise(table)
    fitted = whitened_pca(standard, RNASEQ_COLUMNS)
    return _by_components(f"{table.shape[1]:,} standardised genes", fitted, standard, labels, class_names)


@lru_cache(maxsize=1)
def _measuring_copy(path: Path, _time: int) -> ClusterTable:
    """Scores computed before, with their inverse map into 50 components. (The time of the file is part of the key.)"""
    try:
        with np.load(path, allow_pickle=False) as file:
            names = ("scores", "labels", "label_names", "components", "explained_variance", "mean", "class_means")
            scores, labels, label_names, components, variance, mean, centroids = (file[name] for name in names)
        return ClusterTable(
            points=_finite_table(scores),
            labels=labels.astype(int),
            representation=Representation(
                space=f"{components.shape[1]} leading principal components of the standardised genes",
                fitted=True,
                scale=np.sqrt(variance.astype(float)),
                components=components,
                offset=mean,
                centroids=centroids,
                class_names=tuple(str(name) for name in label_names),
            ),
        )
    except Exception as error:  # a damaged archive fails in many ways, none of them for the user's eyes
        raise _unreadable(RNASEQ_COPY) from error


def _finite_table(scores: Array) -> Array:
    if scores.ndim != 2 or len(scores) == 0 or not np.isfinite(scores).all():
        raise ValueError("no table of finite numbers")
    return scores.astype(float)


def _unreadable(what: str) -> DataError:
    # The message never repeats what stands in the file.
    return DataError(
        f"The RNA-Seq data in {what} cannot be used: every sample needs a name, a class and a number for every gene, "
        f"and there must be more than {RNASEQ_COLUMNS} of both. Download them again."
    )
