"""Cached calls into the core, for simulations only.

These caches are shared by all users of a server, so private data never enter them: they are
keyed on names, public settings and seeds, and bounded.  What is computed ends when its visitor
leaves or moves a control; then nothing is kept of it.
"""

from __future__ import annotations

import streamlit as st

from dpgrams_core import Dataset, Release, load_dataset, run, score
from dpgrams_core.figures.regression import Slices, conditional_slices
from dpgrams_core.figures.traces import DensityGrid, density_grid
from dpgrams_core.model.run import Run
from dpgrams_core.studies.comparison import ComparisonSettings, Row, compare
from pages._ui.server import visitors


# Results are frozen and their arrays read-only, so one object can serve every session
# (cache_data would pickle a million points on every call).
@st.cache_resource(max_entries=12, show_spinner=False)
@visitors.ends_with_the_script()
def dataset(name: str, n: int, seed: int, design: str = "") -> Dataset:
    """A synthetic data set."""
    return load_dataset(name, n=n, seed=seed, design=design)


@st.cache_resource(max_entries=400, show_spinner=False)
@visitors.ends_with_the_script()
def release(wanted: Run) -> Release:
    """A simulated run."""
    return run(wanted.method, records(wanted), seed=wanted.seed, **wanted.settings)


@st.cache_resource(max_entries=400, show_spinner=False)
@visitors.ends_with_the_script()
def scores(wanted: Run) -> dict[str, float]:
    """How good a simulated run is, against the known truth."""
    return score(release(wanted), records(wanted))


@st.cache_resource(max_entries=40, show_spinner=False)
@visitors.ends_with_the_script()
def kde(wanted: Run, kernel: str, bandwidth: float) -> DensityGrid:
    """The plain KDE of a run's records on a grid (not private; synthetic data only)."""
    return density_grid(records(wanted), kernel, bandwidth)


@st.cache_resource(max_entries=200, show_spinner=False)
@visitors.ends_with_the_script()
def comparison(settings: ComparisonSettings) -> tuple[Row, ...]:
    """Every method at one setting, without a run."""
    return compare(settings, dataset(settings.dataset, settings.n, 0))


@st.cache_resource(max_entries=40, show_spinner=False)
@visitors.ends_with_the_script()
def slices(wanted: Run) -> Slices:
    """Conditional densities beside a simulated run (the plain KDE among them is not private)."""
    return conditional_slices(records(wanted), release(wanted))


def records(wanted: Run) -> Dataset:
    """The records of a run."""
    return dataset(str(wanted.dataset), wanted.n, wanted.data_seed or 0, wanted.design)
