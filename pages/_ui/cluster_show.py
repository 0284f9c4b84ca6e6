"""What the Clusters page shows: panels, the pictures of centres, tables, and the page's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from dpgrams_core import METHODS, Dataset, Release
from dpgrams_core.figures import Chart, Entry, centre_pictures, panel_chart, scores_table
from dpgrams_core.figures.style import PRIVATE, TRUTH
from dpgrams_core.recipes import Recipe
from pages._ui import exports, frame, show
from pages._ui.cluster_controls import ClusterSettings


def panel(data: Dataset, entry: Entry, place: str) -> Chart:
    """One method under its name: its ARI, the status of its guarantee, and the picture; returns the picture."""
    with st.container(gap="xxsmall"):  # one under the other: a status with its condition fills the width of a panel
        st.markdown(f"ARI **{entry.scores['ari']:.2f}**", width="content")
        frame.status_badge(entry.release)
    picture = panel_chart(data, entry)
    show.plot(picture.figure, f"panel_{place}_chart", picture.sentence)
    st.caption(picture.sentence)
    if entry.release.method == "mean_shift_c":
        for caveat in entry.release.guarantee.caveats:
            st.caption(caveat)
    return picture


def other_guarantee(release: Release) -> None:
    """What DP-k-means claims, folded under the card of the method."""
    with st.expander("And the guarantee of DP-k-means?", key="dp_kmeans_guarantee"):
        frame.status_badge(release)
        st.markdown(release.guarantee.statement)
        for caveat in release.guarantee.caveats:
            st.caption(caveat)


def gallery(data: Dataset, entry: Entry) -> None:
    """The released centres as pictures, in a row that wraps."""
    found = centre_pictures(data, entry)
    st.subheader("The private “average digit”")
    st.html(
        f'<p class="marks"><span><b style="color:{PRIVATE}">■</b> above: a released centre (private)</span>'
        f'<span><b style="color:{TRUTH}">■</b> below: the mean of the true class it is matched to</span></p>'
    )
    with st.container(horizontal=True, key="gallery"):
        for picture in found.pictures:
            st.image(picture.image, caption=picture.caption, width=88, alt=picture.alt)
    st.caption(found.sentence)
    with st.expander("Table", key="gallery_table"):
        st.dataframe(found.table, hide_index=True, width="stretch")
        exports.download(exports.table_file(found.table, "centres"), "gallery_csv")


def tables(shown: Sequence[Entry], panels: Mapping[str, tuple[str, Chart]]) -> None:
    """The numbers of the panels, and their files."""
    with st.expander("Table and downloads", key="panels_table"):
        scores = scores_table(shown)
        st.dataframe(scores, hide_index=True, width="stretch")
        centres = [picture.table for _, picture in panels.values()]
        st.dataframe(pd.concat([table for table in centres if len(table)]), hide_index=True, width="stretch")
        exports.download(exports.table_file(scores, "scores", "Scores, CSV"), "scores_csv")
        for place, (title, picture) in panels.items():
            st.caption(title)
            exports.chart_files(picture, f"panel_{place}", title)


def files(
    settings: ClusterSettings,
    data: Dataset,
    shown: Sequence[Entry],
    panels: Mapping[str, tuple[str, Chart]],
    question: str,
    answer: str,
    caption: str,
) -> None:
    """The page's exports: every run on it."""
    assert data.n_clusters is not None
    place = {"dataset": settings.dataset, "n": settings.n, "data_seed": settings.data_seed}
    recipes = [
        Recipe(
            method=entry.release.method,
            seed=settings.seed if METHODS[entry.release.method].private else 0,
            options=settings.options_of(entry.release.method, data.n_clusters),
            **place,
        )
        for entry in shown
    ]
    exports.simulation_files(
        recipes,
        question=question,
        answer=answer,
        charts=[panels["private"][1], panels["kmeans"][1]],
        guarantees=[(entry.title, entry.release.guarantee) for entry in shown if entry.private],
        notes=[f"{caption} Records, their colours and k-means are shown without privacy."],
    )
