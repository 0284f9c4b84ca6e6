"""Cached calls into the core, for simulations only.

These caches are shared by all users of a server, so private data never enter them: they are
keyed on names, public settings and seeds, and bounded.  What is computed ends when its visitor
leaves or moves a control; then nothing is kept of it.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpgrams_core import Dataset, Release, load_dataset, run, score
from dpgrams_core.comparison import ComparisonSettings, Row, compare
from dpgrams_core.figures import DensityGrid, Slices, conditional_slices, density_grid
from dpgrams_core.noise_curves import noise_ratios
from dpgrams_core.privacy.accountants import Quote, quotes
from dpgrams_core.privacy.events import GaussianRounds
from dpgrams_core.sweeps import Cell, CellResult, run_cell
from pages._ui import visitors

Options = tuple[tuple[str, Any], ...]


# Results are frozen and their arrays read-only, so one object can serve every session
# (cache_data would pickle a million points on every call).
@st.cache_resource(max_entries=12, show_spinner=False)
@visitors.ends_with_the_script()
def dataset(name: str, n: int, seed: int) -> Dataset:
    """A synthetic data set."""
    return load_dataset(name, n=n, seed=seed)


@st.cache_resource(max_entries=400, show_spinner=False)
@visitors.ends_with_the_script()
def release(method: str, name: str, n: int, data_seed: int, seed: int, options: Options) -> Release:
    """A simulated run."""
    return run(method, dataset(name, n, data_seed), seed=seed, **dict(options))


@st.cache_resource(max_entries=400, show_spinner=False)
@visitors.ends_with_the_script()
def scores(method: str, name: str, n: int, data_seed: int, seed: int, options: Options) -> dict[str, float]:
    """How good a simulated run is, against the known truth."""
    return score(release(method, name, n, data_seed, seed, options), dataset(name, n, data_seed))


@st.cache_resource(max_entries=40, show_spinner=False)
@visitors.ends_with_the_script()
def kde(name: str, n: int, data_seed: int, kernel: str, bandwidth: float) -> DensityGrid:
    """The plain KDE on a grid (not private; synthetic data only)."""
    return density_grid(dataset(name, n, data_seed), kernel, bandwidth)


@st.cache_resource(max_entries=2_000, show_spinner=False)
@visitors.ends_with_the_script()
def cell(wanted: Cell) -> CellResult:
    """One point of a curve, with all its runs."""
    return run_cell(wanted)


@st.cache_resource(max_entries=200, show_spinner=False)
@visitors.ends_with_the_script()
def comparison(settings: ComparisonSettings) -> tuple[Row, ...]:
    """Every method at one setting, without a run."""
    return compare(settings, dataset(settings.dataset, settings.n, 0))


@st.cache_resource(max_entries=2_000, show_spinner=False)
@visitors.ends_with_the_script()
def noise_at(settings: ComparisonSettings, n: int) -> dict[str, float]:
    """Noise over what it hides at one n, for every method."""
    return noise_ratios(settings, n)


@st.cache_resource(max_entries=1_000, show_spinner=False)
@visitors.ends_with_the_script()
def quotes_of(event: GaussianRounds, delta: float) -> dict[str, Quote]:
    """What every accountant charges for some rounds."""
    return quotes(event, delta)


@st.cache_resource(max_entries=40, show_spinner=False)
@visitors.ends_with_the_script()
def slices(method: str, name: str, n: int, data_seed: int, seed: int, options: Options) -> Slices:
    """Conditional densities beside a simulated run (the plain KDE among them is not private)."""
    return conditional_slices(dataset(name, n, data_seed), release(method, name, n, data_seed, seed, options))
