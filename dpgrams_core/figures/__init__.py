"""Figures from arrays and releases: pure functions, each with its sentence and its table."""

from dpgrams_core.figures.accountants import accountants_chart
from dpgrams_core.figures.ascent import ascent_chart
from dpgrams_core.figures.audits import audits_chart, worlds_chart
from dpgrams_core.figures.cluster_curve import MEASURES, cluster_curve_chart, same_records
from dpgrams_core.figures.cluster_pictures import Gallery, centre_pictures, has_pictures
from dpgrams_core.figures.clusters import Entry, in_class_order, panel_chart, scores_table, who_wins
from dpgrams_core.figures.confusion import confusion_chart
from dpgrams_core.figures.error_sources import error_sources_chart
from dpgrams_core.figures.guarantee import budget_chart, errors_chart, power_chart, records_chart
from dpgrams_core.figures.kernel_panels import kernel_chart
from dpgrams_core.figures.modes import (
    anchors_chart,
    contour_chart,
    released_chart,
    runs_chart,
    surface_chart,
)
from dpgrams_core.figures.needed_budget import needed_chart
from dpgrams_core.figures.paper import ratio_chart
from dpgrams_core.figures.paper_standing import Standing, column_title, judged, measure_words, standings, statuses_of
from dpgrams_core.figures.rates import rate_note, rate_traces
from dpgrams_core.figures.regression import branches_chart, ridges_chart, share_near
from dpgrams_core.figures.sensitivity import sensitivity_chart
from dpgrams_core.figures.slices import Slices, conditional_slices, place_names, slice_chart, slice_frames
from dpgrams_core.figures.style import Chart, short
from dpgrams_core.figures.traces import DensityGrid, density_grid
from dpgrams_core.figures.tradeoff import tradeoff_chart
from dpgrams_core.figures.tradeoff_lab import LabLayout, columns_of, lab_panel, of_panel, panel_title, panels_of
from dpgrams_core.figures.tradeoff_scores import LAB_MEASURES, cell_title, in_a_text, lab_table
from dpgrams_core.figures.tradeoff_words import Cost, costs, lab_sentence, middle, plus_minus

__all__ = [
    "LAB_MEASURES",
    "MEASURES",
    "Chart",
    "Cost",
    "DensityGrid",
    "Entry",
    "Gallery",
    "LabLayout",
    "Slices",
    "Standing",
    "accountants_chart",
    "anchors_chart",
    "ascent_chart",
    "audits_chart",
    "branches_chart",
    "budget_chart",
    "cell_title",
    "centre_pictures",
    "cluster_curve_chart",
    "column_title",
    "columns_of",
    "conditional_slices",
    "confusion_chart",
    "contour_chart",
    "costs",
    "density_grid",
    "error_sources_chart",
    "errors_chart",
    "has_pictures",
    "in_a_text",
    "in_class_order",
    "judged",
    "kernel_chart",
    "lab_panel",
    "lab_sentence",
    "lab_table",
    "measure_words",
    "middle",
    "needed_chart",
    "of_panel",
    "panel_chart",
    "panel_title",
    "panels_of",
    "place_names",
    "plus_minus",
    "power_chart",
    "rate_note",
    "rate_traces",
    "ratio_chart",
    "records_chart",
    "released_chart",
    "ridges_chart",
    "runs_chart",
    "same_records",
    "scores_table",
    "sensitivity_chart",
    "share_near",
    "short",
    "slice_chart",
    "slice_frames",
    "standings",
    "statuses_of",
    "surface_chart",
    "tradeoff_chart",
    "who_wins",
    "worlds_chart",
]
