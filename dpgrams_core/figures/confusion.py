"""True classes against clusters, in counts of records: evaluation, and never part of a release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dpgrams_core.figures.clusters import Entry, class_names, class_numbers, counted
from dpgrams_core.figures.style import NON_PRIVATE, Chart, plain_layout
from dpgrams_core.metrics_clusters import nearest_centres
from dpgrams_core.results import Dataset, refuse_private

Array = np.ndarray
# The non-private colour without gaps to the page behind it: plotly picks dark or light digits by the cell alone.
SCALE = [[0.0, "#DCE8F1"], [1.0, NON_PRIVATE]]
MOST_WRITTEN = 12  # with more columns the counts no longer fit their cells


def confusion_chart(data: Dataset, entry: Entry) -> Chart:
    """True classes against the clusters of one method, in counts of records (evaluation, not private)."""
    refuse_private(data)
    names, centres = class_names(data), entry.release.modes
    clusters = nearest_centres(data.points, centres)
    counts = np.zeros((len(names), max(len(centres), 1)), dtype=int)
    np.add.at(counts, (class_numbers(data), clusters), 1)
    columns = [str(number + 1) for number in range(counts.shape[1])]
    size = counts.sum(axis=1, keepdims=True)
    figure = go.Figure(
        go.Heatmap(
            x=columns,
            y=names,
            z=100 * counts / np.maximum(size, 1),
            text=counts,
            texttemplate="%{text:,}" if counts.shape[1] <= MOST_WRITTEN else None,
            colorscale=SCALE,
            zmin=0,
            zmax=100,
            xgap=2,
            ygap=2,
            showscale=False,
            hovertemplate="true class %{y}, cluster %{x}: %{text:,} records, %{z:.0f} % of the class<extra></extra>",
        )
    )
    figure.update_xaxes(title="cluster of its nearest released centre", type="category", side="bottom", showgrid=False)
    figure.update_yaxes(title="true class", type="category", autorange="reversed", showgrid=False)
    plain_layout(figure, 120 + 30 * len(names))
    figure.update_layout(margin={"t": 10})
    main = int(counts.max(axis=0).sum())
    empty = int((counts.sum(axis=0) == 0).sum())
    sentence = (
        f"{100 * main / data.n:.0f} % of the records are in a cluster whose commonest class is their own"
        + (f"; {counted(empty, 'cluster')} without any record" if empty else "")
        + ". Read off the records and their true classes: evaluation, not private, never part of a release."
    )
    table = pd.DataFrame(counts, columns=[f"cluster {name}" for name in columns])
    table.insert(0, "true class", names)
    return Chart(figure, sentence, table)
