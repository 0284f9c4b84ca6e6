"""Figures from arrays and releases: pure functions, each with its sentence and its table."""

from dpgrams_core.figures.accountants import accountants_chart
from dpgrams_core.figures.ascent import ascent_chart
from dpgrams_core.figures.audits import audits_chart, worlds_chart
from dpgrams_core.figures.guarantee import budget_chart, errors_chart, power_chart, records_chart
from dpgrams_core.figures.modes import (
    anchors_chart,
    contour_chart,
    released_chart,
    runs_chart,
    surface_chart,
)
from dpgrams_core.figures.regression import branches_chart, ridges_chart, share_near
from dpgrams_core.figures.slices import Slices, conditional_slices, place_names, slice_chart, slice_frames
from dpgrams_core.figures.style import Chart, short
from dpgrams_core.figures.traces import DensityGrid, density_grid
from dpgrams_core.figures.tradeoff import tradeoff_chart

__all__ = [
    "Chart",
    "DensityGrid",
    "Slices",
    "accountants_chart",
    "anchors_chart",
    "ascent_chart",
    "audits_chart",
    "branches_chart",
    "budget_chart",
    "conditional_slices",
    "contour_chart",
    "density_grid",
    "errors_chart",
    "place_names",
    "power_chart",
    "records_chart",
    "released_chart",
    "ridges_chart",
    "runs_chart",
    "share_near",
    "short",
    "slice_chart",
    "slice_frames",
    "surface_chart",
    "tradeoff_chart",
    "worlds_chart",
]
