"""The controls of the Clusters page.

Where the values or the default differ from another page a control has a key of its own (``clu_…``); the others share
theirs, so that ε, the settings of the ascent and the seeds carry over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpgrams_core import DATASETS, METHODS
from dpgrams_core.datasets import datasets_of
from dpgrams_core.figures import MEASURES
from dpgrams_core.figures.tradeoff import method_title
from pages._ui import state
from pages._ui.controls import FACTORS, WIDTHS, _ascent, _Group, _more, budget, new_noise_button, seeds

METHODS_HERE = ["functional_c", "dp_grams_c"]  # the proven one first
# The last size of a real data set is all of it, and the default; the blobs can be drawn at any size.
SIZES = {
    "blobs": (50, 100, 200, 300, 500, 700, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000),
    "iris": (50, 75, 100, 125, 150),
    "digits": (100, 200, 500, 1_000, 1_797),
    "mnist": (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 69_000),
    "rnaseq": (100, 200, 400, 600, 801),
}
COUNTS = ("known", "unknown", 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100)
AUTO_WIDTHS = ("auto", *WIDTHS)
# The epsilons of the paper's tables, and how many pieces of how many runs a point of the curve has.
CURVES = {
    "blobs": ((0.1, 0.2, 0.5, 1.0, 5.0), 5, 4),
    "iris": ((0.25, 0.5, 1.0, 2.5, 5.0), 5, 1),
    "digits": ((0.25, 0.5, 1.0, 2.5, 5.0), 3, 1),
    "mnist": ((0.05, 0.1, 0.2, 0.5, 1.0), 1, 1),
    "rnaseq": ((0.5, 1.0, 2.0, 5.0, 10.0), 3, 1),
}
LIVE_LIMIT = {"blobs": 5_000, "iris": 150}  # n up to which a curve may start by itself; in more columns it waits


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """Everything the Clusters page computes depends on; frozen, so it can key a cache.

    ``count`` is the number of clusters to find: a number, "known" (that of the true classes) or "unknown".
    ``options`` are those of the private method, without the count.
    """

    method: str
    dataset: str
    n: int
    data_seed: int
    seed: int
    count: int | str
    options: tuple[tuple[str, Any], ...]

    @property
    def title(self) -> str:
        """The method and its calibration, as people call them."""
        return method_title(self.method, self.options)

    @property
    def epsilon(self) -> float:
        """The chosen epsilon."""
        return float(dict(self.options)["epsilon"])

    def options_of(self, method: str, classes: int) -> tuple[tuple[str, Any], ...]:
        """What a method is run with: the same ε and the same number of clusters, where it has them.

        k-means and DP-k-means cannot do without a number, so where it is unknown they are told that of the classes.
        """
        options: dict[str, Any] = {}
        if method == self.method:
            options = dict(self.options)
        elif METHODS[method].private:
            options = {"epsilon": self.epsilon}
        needs_one = method in ("kmeans", "dp_kmeans")
        if self.count == "known" or (self.count == "unknown" and needs_one):
            options["n_clusters"] = classes
        elif self.count != "unknown":
            options["n_clusters"] = self.count
        return tuple(sorted(options.items()))


def cluster_controls() -> ClusterSettings:
    """The settings, in the sidebar; also starts the controls that stand on the page itself."""
    group = _Group()
    with st.sidebar:
        dataset = group.choice(
            "Data set",
            "clu_dataset",
            datasets_of("clusters"),
            "The paper's simulated blobs, or real data in few columns.",
            lambda name: DATASETS[name].title,
        )
        st.caption(DATASETS[dataset].description)
        method = group.choice(
            "Method",
            "clu_method",
            METHODS_HERE,
            "How the centres are found privately.",
            lambda name: METHODS[name].title,
        )
        n = group.steps(
            "Records, n",
            f"clu_n_{dataset}",
            SIZES[dataset],
            DATASETS[dataset].default_n,
            "How many people are in the data (n); real data: so many drawn from all. Public.",
        )
        # The paper's δ: 1e-6 for the blobs, as for the modes, and 1e-5 for real data.
        epsilon, delta = budget(group, *(("delta", 1e-6) if dataset == "blobs" else ("clu_delta", 1e-5)))
        options: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
        count = group.steps(
            "Number of clusters",
            "clu_count",
            COUNTS,
            "known",
            "How many centres to find: the number of true classes (known), unknown, or another number.",
        )
        options |= _ascent(group) if method == "dp_grams_c" else _release(group)
        new_noise_button()
        with st.expander("More settings", key="more_settings"):
            if method == "dp_grams_c":
                options |= _more(group, DATASETS[dataset].condition)
            seed, data_seed = seeds(group)
    group.switch("curve")
    group._start("clu_measure", "ari", state.one_of_these(list(MEASURES)))
    state.write_url(group.keys)
    return ClusterSettings(
        method=method,
        dataset=dataset,
        n=n,
        data_seed=data_seed,
        seed=seed,
        count=count,
        options=tuple(sorted(options.items())),
    )


def chosen_measure() -> str:
    """Which score the curve shows."""
    picked = st.segmented_control(
        "Score on the curve",
        list(MEASURES),
        key="clu_measure",
        format_func=lambda name: MEASURES[name][0],
        required=True,
        help="ARI and NMI compare clusters with true classes (1: the same); centroid MSE compares centres.",
        persist_state="session",
    )
    return picked or next(iter(MEASURES))  # no browser sends nothing here, and a visitor may


def _release(group: _Group) -> dict[str, Any]:
    """The bandwidth of the functional release: its own public rule times a factor, or a number."""
    width = group.steps("Bandwidth, h", "clu_h", AUTO_WIDTHS, "auto", "Auto: the release's public rule (h).")
    if width != "auto":
        return {"bandwidth": width}
    factor = group.steps("× bandwidth", "h_scale", FACTORS, 1.0, "Multiplies the release's public bandwidth rule (h).")
    return {"bandwidth_scale": factor}
