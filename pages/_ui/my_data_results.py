"""Step 4 of My data: what can be said now. Everything here is computed from a release and costs nothing more."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpgrams_core import METHODS
from dpgrams_core.branch_readings import released_branches
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.figures import Chart, short
from dpgrams_core.figures.own_curves import ascent_map, branches_map, twin_curve
from dpgrams_core.figures.own_data import density_curve, surface_map
from dpgrams_core.figures.own_panels import pair_panels
from dpgrams_core.guarantees import NEIGHBOURS
from dpgrams_core.methods.functional import public_starts
from dpgrams_core.privacy.ledger import Account
from dpgrams_core.readings import Reading, climb_smoothed, released_clusters, released_modes
from dpgrams_core.reports import ONE_ROW, guarantee_words, ledger_line
from dpgrams_core.surfaces import ReleasedSurface
from dpgrams_core.tables import table_csv
from pages._ui import exports, frame, show
from pages._ui.controls import FACTORS, written
from pages._ui.my_data_budget import Plan, made_up, tried, truth_of, twin_of
from pages._ui.my_data_state import Own, Sale, plain
from pages._ui.tradeoff_twins import kind_of, open_in_lab, twin_name

QUESTION = "What can you say about your own data?"
MANY = "as many as stand out"
COUNTS = (MANY, *range(1, 11))
CURVE_EPSILONS = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
CURVE_RUNS = 3
PATH_STEPS = 12
SMOOTHINGS = [value for value in FACTORS if value >= 1]
UNREAD = "Something failed while it was read, so there is nothing to say yet."
READINGS = {"modes": "Peaks (modes)", "clusters": "Clusters"}


def answer_of(sale: Sale) -> str:
    """What one release lets its owner say, in a sentence (HTML, names escaped)."""
    release, price = sale.release, f"ε = {short(sale.charge.epsilon)}"
    names = html.escape(" and ".join(filter(None, [", ".join(sale.units.columns[:-1]), sale.units.columns[-1]])))
    if release.unread:
        return f"For {price} a release of {names} is drawn and paid for. <b>{UNREAD}</b>"
    if release.curve is not None:
        assert release.branches is not None
        count = len(np.unique(release.branches))
        return (
            f'For {price} you can say: <b class="private">{count} branch{"" if count == 1 else "es"}</b> of '
            f"{html.escape(sale.units.columns[1])} over {html.escape(sale.units.columns[0])}. What follows is free."
        )
    if not len(release.modes):
        return (
            f"For {price} <b>nothing stands above the noise</b> in {names}. That, too, may be said; the rest is free."
        )
    count = len(release.modes)
    text = f'For {price} you can say: <b class="private">{count} peak{"" if count == 1 else "s"}</b> in {names}'
    if release.significance is not None:
        text += f", the weakest <b>{release.significance.min():.1f} σ</b> above the noise"
    return text + ". What follows is free."


def results(own: Own, sale: Sale, account: Account | None) -> None:
    """The public view of a release: all of it may leave the building."""
    free = st.container(key="own_free")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        charts = [_picture(own, sale, free)]
        show.chart(charts[0], "own")
    with right:
        guarantee_card(sale)
        exports.release_files(
            sale.record,
            question=QUESTION,
            answer=answer_of(sale),
            charts=charts,
            title=METHODS[sale.release.method].title,
            ledger=ledger_line(sale.charge, account),
            notes=sale.statements,
        )
        st.caption(sale.after_reload)


def _picture(own: Own, sale: Sale, free) -> Chart:
    """The chart of a release, by what it is and how many columns there are."""
    release, d = sale.release, len(sale.units.columns)
    if release.unread:
        return replace(_surface_alone(own, sale), sentence=f"What was drawn. {UNREAD}")
    if release.curve is not None:
        with free:
            return _branches(own, sale)
    if release.surface is None:
        return (
            ascent_map(sale.units, release, sale.inner)
            if d <= 2
            else pair_panels(sale.units, sale.inner, Reading(release.modes, release.significance), None)
        )
    with free:
        kind, factor, count, paths = _free_controls(sale)
    reading = _reading(own, sale, kind, factor, count)
    regions = kind == "clusters"
    surface = release.surface
    if isinstance(surface, ReleasedSurface) and d <= 2:
        width = factor * surface.bandwidth
        if d == 1:
            return density_curve(sale.units, surface, width, reading, regions)
        climbs = climb_smoothed(surface, public_starts(surface.box), width, PATH_STEPS) if paths else None
        return surface_map(sale.units, surface, width, reading, paths=climbs, regions=regions)
    return pair_panels(sale.units, sale.inner, reading, _few_twins(own, sale), regions)


def _surface_alone(own: Own, sale: Sale) -> Chart:
    """What was drawn, with nothing read off it."""
    surface, nothing = sale.release.surface, Reading(np.empty((0, len(sale.units.columns))), np.empty(0))
    if isinstance(surface, ReleasedSurface) and surface.dimension == 1:
        return density_curve(sale.units, surface, surface.bandwidth, nothing, False)
    if isinstance(surface, ReleasedSurface) and surface.dimension == 2:
        return surface_map(sale.units, surface, surface.bandwidth, nothing)
    return pair_panels(sale.units, sale.inner, nothing, _few_twins(own, sale))


def _branches(own: Own, sale: Sale) -> Chart:
    """The branches of a regression at any larger bandwidth, with the controls for it."""
    release = sale.release
    found = own.remember(
        ("branches", sale.number), lambda: {factor: released_branches(release, factor) for factor in SMOOTHINGS}
    )
    # Over all bandwidths: a range that moved with the other slider would reset this one.
    top = float(np.ceil(max(branches.heights.max() for branches in found.values())))
    with _free_row():
        factor = _smoothing()
        least = st.slider(
            "Hide branches below, σ", 0.0, max(0.5, top), 0.0, 0.5, format="%g", key="own_least", width=240
        )
    return branches_map(sale.units, release, sale.inner, least, None if factor == 1 else found[factor])


def _free_row() -> DeltaGenerator:
    """The row of what is post-processing."""
    st.caption("Move these as often as you like: they work on the release and spend nothing.")
    return st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="own_free_row")


def _smoothing() -> float:
    """The bandwidth upward."""
    return st.select_slider(
        "Smooth further, × h",
        SMOOTHINGS,
        format_func=written,
        key="own_smooth",
        width=220,
        help="A larger bandwidth on the same release: less noise, less detail.",
    )


def _free_controls(sale: Sale) -> tuple[str, float, int | None, bool]:
    """Post-processing: these move as often as anyone likes."""
    with _free_row():
        first = "clusters" if sale.request.kind == "clusters" else "modes"
        kind = st.segmented_control(
            "Read it as",
            list(READINGS),
            default=first,
            required=True,
            format_func=READINGS.get,
            key=f"own_read_{sale.number}",
        )
        if kind == "clusters":
            count = st.select_slider("Clusters", range(1, 11), value=3, key="own_clusters", width=220)
            return "clusters", 1.0, count, False
        factor = _smoothing()
        count = st.select_slider("Number of peaks", COUNTS, format_func=str, key="own_count", width=240)
        paths = len(sale.units.columns) == 2 and st.toggle("Climbs", key="own_paths")
    return "modes", factor, None if count == MANY else int(count), bool(paths)


def _reading(own: Own, sale: Sale, kind: str, factor: float, count: int | None) -> Reading:
    """Modes or centres, remembered in this session."""

    def make() -> Reading:
        if kind == "clusters":
            return released_clusters(sale.release, count or 1)
        return released_modes(sale.release, factor, count)

    try:
        with st.spinner("Reading the release…"):
            return own.remember(("reading", sale.number, kind, factor, count), make)
    except (SpecError, DataError) as error:
        st.info(plain(str(error)))
        return Reading(np.empty((0, len(sale.units.columns))))


def _few_twins(own: Own, sale: Sale) -> np.ndarray | None:
    """Some synthetic records for the background of the panels; none where nothing stands above the noise."""
    try:
        return own.remember(("few", sale.number), lambda: _twin_points(own, sale, 700))
    except DataError:
        return None


def _twin_points(own: Own, sale: Sale, n: int) -> np.ndarray:
    """Records of the twin; a twin that the Tradeoff page can use knows already where they may lie."""
    name = twin_name(own, sale)
    return (twin_of(sale, n, kind_of(sale)) if name is None else name.info.draw(n, 0)).points


def guarantee_card(sale: Sale) -> None:
    """The guarantee of a release, in sentences, and what is taken as public."""
    guarantee = sale.release.guarantee
    with st.container(border=True, key="guarantee_card"):
        st.markdown("**Is the guarantee real?**")
        frame.status_badge(sale.release)
        st.markdown(
            f"ε = **{short(guarantee.epsilon)}**, δ = **{written(guarantee.delta)}**, neighbours: "
            f"{guarantee.neighbours} ({NEIGHBOURS[guarantee.neighbours]})"
        )
        for sentence in (*guarantee_words(guarantee)[1:], ONE_ROW):
            st.markdown(plain(sentence))
        for sentence in sale.statements:
            st.caption(plain(sentence))
        st.caption("Drawn with OpenDP's noise from the operating system's entropy: there is no seed.")


def twin_section(own: Own, sale: Sale) -> None:
    """Synthetic records to take away, and what each ε would give on them."""
    st.subheader("A synthetic twin to experiment on")
    st.caption(
        "Records drawn from the release, not from the people: as many as you like, for free. It shows what the release "
        "shows and nothing finer; thin tails and small groups are missing."
    )
    n = sale.record.n
    try:
        points = own.remember(("twin", sale.number), lambda: _twin_points(own, sale, min(n, 20_000)))
    except DataError as error:
        st.info(plain(str(error)))
        return
    rows = pd.DataFrame(sale.units.to_user(points, sale.inner), columns=list(sale.units.columns))
    with st.container(horizontal=True, key="own_twin_buttons"):
        st.download_button(
            f"Download the twin ({len(rows):,} rows, CSV)",
            lambda: table_csv(rows),
            file_name="twin.csv",
            mime="text/csv",
            on_click="ignore",
            icon=":material/download:",
            key="own_twin_csv",
        )
        open_in_lab(own, sale)
        wanted = st.toggle("Draw what each ε would give on the twin", key=f"own_curve_{sale.number}")
    if wanted and len(truth_of(sale)):
        _twin_curve(own, sale, min(n, 20_000))
    elif wanted:
        st.info("The release shows nothing above its noise, so there is nothing to find again.")


def _twin_curve(own: Own, sale: Sale, n: int) -> None:
    """Simulated releases of the twin at several ε, filling in."""
    found: list[list[float]] = []
    extra: list[list[float]] = []
    made_up(sale.request, n, sale)  # a twin that cannot be drawn was told above

    def steps() -> Iterator[int]:
        for number, epsilon in enumerate(CURVE_EPSILONS, start=1):
            spec = {"epsilon": epsilon, "delta": sale.charge.delta}
            if sale.release.method == "dp_grams":
                spec["calibration"] = "tight"
            plan = Plan(method=sale.release.method, options=tuple(sorted(spec.items())))
            runs = own.remember(
                ("curve", sale.number, epsilon), lambda plan=plan: tried(plan, sale.request, n, sale, range(CURVE_RUNS))
            )
            found.append([share for share, _, _ in runs])
            extra.append([count for _, count, _ in runs])
            yield number

    def draw() -> Chart:
        return twin_curve(CURVE_EPSILONS, found, extra, sale.charge.epsilon)

    show.live(steps(), len(CURVE_EPSILONS), draw, "own_twin_curve")
