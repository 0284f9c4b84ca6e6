"""The curator's view: records and results without privacy, under a banner, on top of what is public."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dpgrams_core import Dataset, run
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.figures.own_records import records_picture
from pages._ui.my_data_state import Own, Sale, plain

MOST_RECORDS = 4_000  # that mean shift climbs from
BASELINES = {"modes": "mean_shift", "clusters": "kmeans", "regression": "lowess"}
NAMES = {"mean_shift": "mean shift", "kmeans": "k-means", "lowess": "LOWESS"}


def banner() -> None:
    """What everyone in front of this screen should know."""
    st.error(
        "**Curator view: not private.** This screen shows your records and results computed from them without noise. "
        "None of it may leave the building, not as a picture of the screen either.",
        icon=":material/visibility_lock:",
    )


def curator_view(own: Own, sale: Sale) -> None:
    """What only the person who holds the records may see."""
    with st.container(border=True, key="own_curator"):
        st.markdown("**Your records, and a result without privacy** :blue-badge[curator only]")
        data = own.data(sale.request)
        method = BASELINES[data.kind]
        try:
            with st.spinner(f"{NAMES[method]}, without privacy…"):
                places = own.remember(("curator", sale.number), lambda: _baseline(data, method, sale))
        except (SpecError, DataError) as error:
            st.info(plain(str(error)))
            places = np.empty((0, data.dimension))
        picture = records_picture(
            sale.units, data.to_user_units(data.usable_points), places, NAMES[method], line=method == "lowess"
        )
        st.plotly_chart(
            picture.figure, key="own_records_chart", config={"displayModeBar": False}, alt="Records; not private."
        )
        st.caption(picture.sentence)
        with st.expander("Table", key="own_records_table"):
            st.table(picture.table)  # st.dataframe would offer a download of what is not private


def _baseline(data: Dataset, method: str, sale: Sale) -> np.ndarray:
    """What a method without privacy finds, in the user's units. The records are taken as public for it, on purpose."""
    whole = data.usable_points
    some = whole[:: max(1, -(-len(whole) // MOST_RECORDS))]
    bare = Dataset(name="curator", kind=data.kind, points=some, box=data.box)
    if method == "mean_shift":
        options = {"bandwidth": float(sale.release.spec.bandwidth)}
    else:
        options = {"n_clusters": max(1, len(sale.release.modes))} if method == "kmeans" else {}
    found = run(method, bare, seed=0, **options)
    return sale.units.to_user(found.modes if found.curve is None else found.curve, sale.inner)
