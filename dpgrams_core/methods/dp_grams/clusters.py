"""DP-GRAMS-C: cluster centres by DP-GRAMS (alg:dpgrams-c).

The centres are the merged modes of DP-GRAMS, so the guarantee is that of DP-GRAMS with the same calibration.  Labels
of records are evaluation and never part of the release.  In ``tight`` centres of a known number are those of k-means
over places that its rounds looked at, which is post-processing too.  Starts are drawn from the data set's public
candidates where it has some, from the grid of alg:dap-init where that fits, and otherwise from a public low-discrepancy
set.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from dpgrams_core.methods.as_run import AS_RUN
from dpgrams_core.methods.dp_grams.as_run import dp_grams_c_as_run
from dpgrams_core.methods.dp_grams.run import dp_grams
from dpgrams_core.methods.dp_grams.spec import DPGramsCSpec, DPGramsSpec
from dpgrams_core.methods.dp_grams.tight import read_centres
from dpgrams_core.model.results import Dataset, Release, refuse_private
from dpgrams_core.numerics.sketch import public_points
from dpgrams_core.privacy.noise import Noise

Array = np.ndarray
Candidates = tuple[tuple[float, ...], ...] | None
GRID_DIMENSIONS = 3
SPREAD_CANDIDATES = 4_096  # DAP's draws get lost among more: the weight of a few good places must be seen


def public_candidates(data: Dataset, wish: Candidates) -> Candidates:
    """The candidates of DAP: those given, the data set's own, a public spread set, or ``None`` for the grid."""
    if wish is not None:
        return wish
    # A public record beyond the public box stands at its edge, as a private one does.
    table = None if data.candidates is None else np.clip(data.candidates, data.box[:, 0], data.box[:, 1])
    if table is None and data.dimension > GRID_DIMENSIONS:
        table = public_points(data.box, SPREAD_CANDIDATES)
    return None if table is None else tuple(tuple(row) for row in np.asarray(table).tolist())


def modes_spec(data: Dataset, spec: DPGramsCSpec) -> DPGramsSpec:
    """The settings of the DP-GRAMS that finds the centres."""
    shared = {item.name: getattr(spec, item.name) for item in fields(DPGramsSpec) if item.name != "n_modes"}
    shared["candidates"] = public_candidates(data, spec.candidates)
    return DPGramsSpec(**shared, n_modes=spec.n_clusters)


def dp_grams_c(data: Dataset, spec: DPGramsCSpec, noise: Noise) -> Release:
    """Run DP-GRAMS from public candidates and merge its end points to cluster centres."""
    refuse_private(data, noise.door)
    if spec.calibration == AS_RUN:
        return dp_grams_c_as_run(data, spec, noise)
    release = dp_grams(data, modes_spec(data, spec), noise, read_centres)
    filled = {item.name: getattr(release.spec, item.name) for item in fields(DPGramsSpec) if item.name != "n_modes"}
    return replace(
        release,
        method="dp_grams_c",
        spec=replace(spec, **{**filled, "candidates": spec.candidates}),
    )
