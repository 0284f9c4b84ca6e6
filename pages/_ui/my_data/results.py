"""Step 4 of My data, all of it computed from a release and free: what can be said now; and the ledger of the file."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException

from dpgrams_core import METHODS, Dataset, load_dataset, run
from dpgrams_core.exports.csv import table_csv
from dpgrams_core.exports.report import ONE_ROW, guarantee_words, ledger_line
from dpgrams_core.figures.curve import in_a_text
from dpgrams_core.figures.own_data import (
    Units,
    ascent_map,
    branches_map,
    density_curve,
    pair_panels,
    surface_map,
    twin_curve,
)
from dpgrams_core.figures.own_records import records_picture
from dpgrams_core.figures.style import CHANCE, Chart
from dpgrams_core.figures.traces import BAND_SENTENCE, REGION_SENTENCE
from dpgrams_core.methods.registry import PLAIN_METHODS
from dpgrams_core.model.environment import read_settings
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.format import chance_words, fixed, short, sigmas, written
from dpgrams_core.model.guarantee import NEIGHBOURS
from dpgrams_core.model.settings import FACTORS
from dpgrams_core.numerics.scaling import SurfaceInUnits, rescaled
from dpgrams_core.own_data.postprocess import Reading, climbs, released_branches, released_clusters, released_modes
from dpgrams_core.privacy.ledger.book import BLIND_SPOT, GUESSES, Account, Ledger
from dpgrams_core.privacy.ledger.digest import Identity
from pages._ui import charts, exports, jobs, layout
from pages._ui.layout import plain
from pages._ui.my_data.budget import Plan, tried, twin_of
from pages._ui.my_data.state import GOALS, Own, Sale, proven_settings

QUESTION = "What can you say about your own data?"
MANY = "as many as stand out"
COUNTS = (MANY, *range(1, 11))
CURVE_EPSILONS = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
CURVE_RUNS = 3
PATH_STEPS = 12
SMOOTHINGS = [value for value in FACTORS if value >= 1]
MOST_RECORDS = 4_000  # that mean shift climbs from
MOST_SAID = 6  # numbers of places in the answer
UNREAD = "Something failed while it was read, so there is nothing to say yet."


def answer_of(sale: Sale, found: str) -> str:
    """What one release lets its owner say, in a sentence (HTML); ``found`` is what is read off it just now."""
    price = f"For ε = {short(sale.charge.epsilon)}"
    if sale.release.unread:
        return f"{price} a release of {listed(sale.units.columns)} is drawn and paid for. <b>{UNREAD}</b>"
    if not found:
        nothing = "<b>nothing stands above the noise</b>"
        return f"{price} {nothing} in {listed(sale.units.columns)}. That, too, may be said; the rest is free."
    return f"{price} you can say: {found}. What follows is free."


def listed(names: Sequence[str]) -> str:
    """Names of somebody's columns in a sentence (HTML).

    >>> listed(["age", "pay", "a<b"])
    'age, pay and a&lt;b'
    """
    return html.escape(" and ".join(filter(None, [", ".join(names[:-1]), names[-1]])))


def _counted(count: int, what: str, plural: str = "s") -> str:
    return f'<b class="private">{count} {what}{"" if count == 1 else plural}</b>'


def read_words(sale: Sale, reading: Reading, regions: bool = False, factor: float = 1.0) -> str:
    """Modes or clusters, how many and where (HTML); nothing where there are none.

    All places are said if these are few numbers, else the strongest or largest one.
    """
    count, significance = len(reading.places), reading.significance  # in the same order, or not known
    if not count:
        return ""
    order = range(count) if significance is None else np.argsort(-significance)
    near = ["near " + listed(_at(sale.units, reading.places[number])) for number in order]
    few = count * len(sale.units.columns) <= MOST_SAID
    which = "the largest " if regions else "one of them " if significance is None else "the strongest "
    where = ", and ".join(filter(None, [", ".join(near[:-1]), near[-1]])) if few else which + near[0]
    text = f"{_counted(count, 'cluster' if regions else 'mode')} in {listed(sale.units.columns)}, {where}"
    if significance is not None:
        which = "it stands" if count == 1 else "the weakest stands"
        text += f"; {which} <b>{sigmas(significance.min())}</b> above the noise"
    if reading.chances is not None:
        text += f" ({CHANCE}: <b>{chance_words(float(reading.chances.max()))}</b>)"
    return text + _smoothed(factor)


def branches_words(sale: Sale, table: pd.DataFrame, factor: float) -> str:
    """Branches, how many, and from where to where the strongest goes (HTML); nothing where there are none."""
    if not len(table):
        return ""
    numbers = table.iloc[:, 0]
    count, first = numbers.nunique(), table[numbers == numbers.iloc[0]].iloc[:, 1:3].to_numpy(float)
    ends = [listed(_at(sale.units, first[end(first[:, 0])])) for end in (np.argmin, np.argmax)]
    over = f"{html.escape(sale.units.columns[1])} over {html.escape(sale.units.columns[0])}"
    which = "" if count == 1 else "the strongest "
    return f"{_counted(count, 'branch', 'es')} of {over}, {which}from {ends[0]} to {ends[1]}{_smoothed(factor)}"


def _smoothed(factor: float) -> str:
    return f" (smoothed to {written(factor)} times its bandwidth)" if factor > 1 else ""


def _at(units: Units, place: np.ndarray) -> list[str]:
    """A place in words, each number as exact as a twentieth of its side of the box asks for.

    >>> _at(Units(("age", "pay"), np.array([[0, 100], [0, 90_000]])), np.array([41.27, 23_456.0]))
    ['age 41', 'pay 23,000']
    """
    said = []
    for name, value, (low, high) in zip(units.columns, place, units.box, strict=True):
        digits = -int(np.floor(np.log10((high - low) / 20)))
        rounded = fixed(round(float(value), digits) + 0.0, max(0, digits)) if abs(digits) < 7 else short(value)
        said.append(f"{name} {rounded}")
    return said


def chosen_sale(mine: Own) -> Sale:
    """The release that is shown: the last, or another that is picked."""
    if len(mine.sales) == 1:
        return mine.sales[0]
    words = {s.number: f"Release {s.number}: {s.charge.description}, ε = {short(s.charge.epsilon)}" for s in mine.sales}
    last, key = len(words) - 1, f"own_which_{len(words)}"
    number = st.selectbox("Which release?", list(words), index=last, format_func=words.__getitem__, key=key)
    return mine.sales[number - 1]


def view_switch(source: str) -> bool:
    """Whether the curator's view is on; it is off at first and may be switched off for good.

    It does not exist while presenting, nor where DPGRAMS_CURATOR is off.  A file of the server's folder can be opened
    by every visitor, so its owner has to allow it by name.
    """
    settings, local = read_settings(), source == "local"
    allowed = settings.curator_of_folder if local else settings.curator
    if not allowed or layout.presenting():
        words = "Public view: only what may leave the building."
        if local and not layout.presenting() and settings.curator:
            words += (
                " Everyone who reaches this page can open this file, so its records are shown only where the owner of "
                "the server sets DPGRAMS_CURATOR=on."
            )
        st.caption(words)
        return False
    views = {"public": "Public: may leave the building", "curator": "Curator: adds your records"}
    look: dict[str, Any] = {"default": "public", "required": True, "format_func": views.__getitem__}
    return st.segmented_control("View", list(views), key="own_view", **look) == "curator"


def say(mine: Own, account: Account | None, first: DeltaGenerator) -> None:
    """Step 4: the release that is shown, publicly and, if wished, for the curator; ``first`` is for its answer."""
    charts.to_top(f"own_top_{mine.uploads}_{len(mine.sales)}")  # the button of a release stands further down
    banner = st.empty()
    sale = chosen_sale(mine)
    results(mine, sale, account, first)
    if view_switch(mine.source):
        banner.error(  # what everyone in front of this screen should know
            "**Curator view: not private.** This screen shows your records and results computed from them without "
            "noise. None of it may leave the building, not as a picture of the screen either.",
            icon=":material/visibility_lock:",
        )
        try:
            curator_view(mine, sale)
        except (SpecError, DataError) as error:  # a file of the server's folder that changed, say
            st.info(plain(str(error)))
    if sale.release.surface is not None and not layout.presenting():
        twin_section(mine, sale)


def results(own: Own, sale: Sale, account: Account | None, first: DeltaGenerator) -> None:
    """The public view of a release: all of it may leave the building.  What moves it stands under its picture."""
    left, right = (st.container(), None) if layout.presenting() else st.columns([3, 2], gap="medium")
    with left:
        place, free = st.container(), st.container(key="own_free")
        picture, found = _picture(own, sale, free)
        with place:
            charts.plot(picture.figure, "own_chart", picture.sentence)
    answer = answer_of(sale, found)
    with first:
        layout.answer(answer)
    if right is None:
        return
    with left:
        st.caption(picture.sentence)
        charts.table(picture, "own")
        if REGION_SENTENCE in picture.sentence or BAND_SENTENCE in picture.sentence:
            charts.regions_kept("_own")
    with right:
        if sale.earlier:
            st.info(
                f"Release {sale.number} of {sale.charge.at[:10]} was paid for earlier and is shown again; it costs "
                "nothing. For another one open step 2.",
                icon=":material/history:",
            )
        guarantee_card(sale)
        exports.release_files(
            sale.record,
            question=QUESTION,
            answer=answer,
            charts=[picture],
            title=METHODS[sale.release.method].title,
            ledger=ledger_line(sale.charge, account),
            notes=sale.statements,
        )
        st.caption(sale.after_reload)


def _picture(own: Own, sale: Sale, free: Any) -> tuple[Chart, str]:
    """The chart of a release, by what it is and how many columns there are, and what is read off it (HTML)."""
    release, d = sale.release, len(sale.units.columns)
    if release.unread:  # the surface alone, with nothing read off it
        nothing = Reading(np.empty((0, d)), np.empty(0))
        return replace(_drawn(own, sale, nothing), sentence=f"What was drawn. {UNREAD}"), ""
    if release.curve is not None:
        with free:
            return _branches(own, sale)
    if release.surface is None:
        reading = Reading(release.modes, release.significance)
        chart = ascent_map(sale.units, release) if d <= 2 else pair_panels(sale.units, reading, None)
        return chart, read_words(sale, reading)
    with free:
        kind, factor, count, more = _free_controls(sale)
    reading, regions = _reading(own, sale, kind, factor, count, more), kind == "clusters"
    return _drawn(own, sale, reading, factor, more and not regions, regions), read_words(sale, reading, regions, factor)


def _drawn(
    own: Own, sale: Sale, reading: Reading, factor: float = 1, paths: bool = False, regions: bool = False
) -> Chart:
    """The surface of a release, smoothed by a factor, with what was read off it."""
    surface = sale.release.surface
    if not isinstance(surface, SurfaceInUnits) or surface.dimension > 2:
        return pair_panels(sale.units, reading, _few_twins(own, sale), regions)
    width = factor * surface.bandwidth
    if surface.dimension == 1:
        return density_curve(sale.units, surface, width, reading, regions)
    drawn = climbs(sale.release, factor, PATH_STEPS) if paths else None
    return surface_map(sale.units, surface, width, reading, paths=drawn, regions=regions)


def _branches(own: Own, sale: Sale) -> tuple[Chart, str]:
    """The branches of a regression at any larger bandwidth, in a picture and in words, with the controls for it."""
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
    picture = branches_map(sale.units, release, least, None if factor == 1 else found[factor])
    return picture, branches_words(sale, picture.table, factor)


def _free_row() -> DeltaGenerator:
    st.caption("Move these as often as you like: they work on the release and spend nothing.")
    return st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="own_free_row")


def _smoothing() -> float:
    words = "A larger bandwidth on the same release: less noise, less detail."
    look: dict[str, Any] = {"format_func": written, "width": 220, "help": words}
    return st.select_slider("Smooth further, × h", SMOOTHINGS, key="own_smooth", **look)


def _free_controls(sale: Sale) -> tuple[str, float, int | None, bool]:
    """Post-processing: these move as often as anyone likes. At last: climbs of modes, regions of centres."""
    with _free_row():
        look: dict[str, Any] = {"default": sale.kind, "required": True, "format_func": GOALS.__getitem__}
        kind = st.segmented_control("Read it as", ["modes", "clusters"], key=f"own_read_{sale.number}", **look)
        if kind == "clusters":
            count = st.select_slider("Clusters", range(1, 11), value=3, key="own_clusters", width=220)
            words, slow = "Its release is drawn again and again, which takes some seconds.", len(sale.units.columns) > 3
            return "clusters", 1.0, count, not slow or st.toggle("How sure is each centre?", key="own_sure", help=words)
        factor = _smoothing()
        count = st.select_slider("Number of modes", COUNTS, format_func=str, key="own_count", width=240)
        paths = len(sale.units.columns) == 2 and st.toggle("Climbs", key="own_paths")
    return "modes", factor, None if count == MANY else int(count), bool(paths)


def _reading(own: Own, sale: Sale, kind: str, factor: float, count: int | None, sure: bool) -> Reading:
    """Modes or centres, remembered in this session."""

    def make() -> Reading:
        if kind == "clusters":
            return released_clusters(sale.release, count or 1, sure)
        return released_modes(sale.release, factor, count)

    try:
        with st.spinner("Reading the release…"):
            return own.remember(("reading", sale.number, kind, factor, count, sure and kind == "clusters"), make)
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
    name = own.twin(sale)
    if name is None:
        return twin_of(sale, n).points
    drawn = load_dataset(name, n=n)
    return rescaled(drawn.points, drawn.box, sale.units.box)


def guarantee_card(sale: Sale) -> None:
    """The guarantee of a release, in sentences, and what is taken as public."""
    guarantee = sale.release.guarantee
    with st.container(border=True, key="guarantee_card"):
        st.markdown("**Is the guarantee real?**")
        layout.badge(sale.release.guarantee)
        st.markdown(
            f"ε = **{short(guarantee.epsilon)}**, δ = **{written(guarantee.delta)}**, neighbours: "
            f"{guarantee.neighbours} ({NEIGHBOURS[guarantee.neighbours]})"
        )
        for sentence in (*guarantee_words(guarantee)[1:], ONE_ROW):
            st.markdown(plain(sentence))
        for sentence in sale.statements:
            st.caption(plain(sentence))
        st.caption("Drawn with OpenDP's noise from the operating system's entropy: there is no seed.")


def curator_view(own: Own, sale: Sale) -> None:
    """What only the person who holds the records may see."""
    with st.container(border=True, key="own_curator"):
        st.markdown("**Your records, and a result without privacy** :blue-badge[curator only]")
        data = own.data(sale.request)
        method = PLAIN_METHODS[data.kind]
        name = in_a_text(METHODS[method].title)
        try:
            with st.spinner(f"{name}, without privacy…"):
                places = own.remember(("curator", sale.number), lambda: _baseline(data, method, sale))
        except (SpecError, DataError) as error:
            st.info(plain(str(error)))
            places = np.empty((0, data.dimension))
        picture = records_picture(sale.units, data.usable_points, places, name, line=method == "lowess")
        st.plotly_chart(
            picture.figure, key="own_records_chart", config={"displayModeBar": False}, alt="Records; not private."
        )
        st.caption(picture.sentence)
        with st.expander("Table", key="own_records_table"):
            st.table(picture.table)  # st.dataframe would offer a download of what is not private


def _baseline(data: Dataset, method: str, sale: Sale) -> np.ndarray:
    """What a method without privacy finds. The records are taken as public for it, on purpose."""
    whole = data.usable_points
    some = whole[:: max(1, -(-len(whole) // MOST_RECORDS))]
    bare = Dataset(name="curator", kind=data.kind, points=some, box=data.box, scaled=True)
    options: dict[str, Any] = {"n_clusters": max(1, len(sale.release.modes))} if method == "kmeans" else {}
    if method == "mean_shift":
        options = {"bandwidth": float(sale.release.spec.bandwidth)}
    return run(method, bare, seed=0, **options).rows


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
    rows = pd.DataFrame(points, columns=list(sale.units.columns))
    with st.container(horizontal=True, key="own_twin_buttons"):
        _csv_button(f"Download the twin ({len(rows):,} rows, CSV)", rows, "twin.csv", "own_twin_csv")
        _open_in_lab(own, sale)
        wanted = st.toggle("Draw what each ε would give on the twin", key=f"own_curve_{sale.number}")
    if wanted and len(sale.release.rows):
        _twin_curve(own, sale, min(n, 20_000))
    elif wanted:
        st.info("The release shows nothing above its noise, so there is nothing to find again.")


def _csv_button(label: str, frame: pd.DataFrame, name: str, key: str) -> None:
    """A table to take away, written when it is asked for."""
    look: dict[str, Any] = {"mime": "text/csv", "on_click": "ignore", "icon": ":material/download:"}
    st.download_button(label, lambda: table_csv(frame), file_name=name, key=key, **look)


def _open_in_lab(own: Own, sale: Sale) -> None:
    """A button to the Tradeoff page with this twin chosen there; nothing where there is no twin."""
    name = own.twin(sale)
    words, icon = "Every method, ε and n on records drawn from this release: free.", ":material/query_stats:"
    if name is None or not st.button("Open it in the Tradeoff lab", f"own_lab_{sale.number}", words, icon=icon):
        return
    st.session_state["lab_kind"], st.session_state[f"lab_{sale.kind}"] = sale.kind, str(name)
    try:
        st.switch_page("pages/tradeoff.py")
    except StreamlitAPIException:  # a page run on its own, as in a test, has no other page beside it
        st.caption("It is chosen on the Tradeoff page.")


def _twin_curve(own: Own, sale: Sale, n: int) -> None:
    """Simulated releases of the twin at several ε, filling in; kept in this session, since the twin is its own."""
    kept: dict[float, list[tuple[float, float, float]]] = own.remember(("curve", sale.number), dict)

    def runs_at(epsilon: float) -> list[tuple[float, float, float]]:
        spec = {"epsilon": epsilon, "delta": sale.charge.delta, **proven_settings(sale.release.method)}
        plan = Plan(method=sale.release.method, options=tuple(sorted(spec.items())))
        return tried(plan, sale.request, n, sale, range(CURVE_RUNS))

    def picture(found: dict[float, list[tuple[float, float, float]]]) -> Chart:
        shares = [[share for share, _, _ in runs] for runs in found.values()]
        extra = [[count for _, count, _ in runs] for runs in found.values()]
        return twin_curve(CURVE_EPSILONS, shares, extra, sale.charge.epsilon)

    work = jobs.one_by_one(("twin", jobs.visitor(), id(kept)), CURVE_EPSILONS, runs_at, kept)
    charts.filling(work, picture, "own_twin_curve")


def ledger_view(ledger: Ledger, account: Account, identity: Identity, overlap: str, not_shown: Sequence[str]) -> None:
    """All charges that count against the file, with both totals and a download.

    ``overlap`` says why those of other files count, if they do; ``not_shown`` is about what was kept, in sentences.
    """
    st.subheader("The ledger of this file")
    if overlap:
        st.warning(plain(overlap), icon=":material/join_inner:")
    for sentence in not_shown:
        st.info(plain(sentence), icon=":material/broken_image:")
    totals = account.totals
    words = f"ε = {short(totals.basic_epsilon)} of {short(account.cap_epsilon)} spent"
    share = min(1.0, totals.basic_epsilon / account.cap_epsilon)
    st.progress(share, text=f"{words}, ε = {short(account.left_epsilon)} left")
    if account.cap_epsilon < (ledger.ceiling.epsilon or 0) or account.cap_delta < (ledger.ceiling.delta or 0):
        st.caption(
            f"This file keeps the cap that it was opened with, ε = {short(account.cap_epsilon)} and δ = "
            f"{written(account.cap_delta)}. A cap that was raised since is for files that are opened from then on."
        )
    if rows := ledger.statement(account.account, identity):
        _charges(rows, account)
    with st.expander("What the ledger notices, and what it does not", key="own_blind_spot"):
        st.markdown(f"{BLIND_SPOT} {GUESSES}")


def _charges(rows: list[dict[str, Any]], account: Account) -> None:
    """What was spent on a file, together and one by one."""
    totals = account.totals
    with st.container(key="own_totals"):
        basic, tight, delta = st.columns(3)
        words = "The same releases at the same δ, composed exactly."
        basic.metric("ε together, added up", short(totals.basic_epsilon), help="Basic composition; the cap is on it.")
        tight.metric("ε together, tight", short(totals.tight_epsilon), help=words)
        delta.metric("δ together", written(totals.delta) if totals.delta else "0")
    frame = pd.DataFrame(rows)
    shown = frame[["time", "release", "epsilon", "delta", "status", "finished"]]
    shown = shown.rename(columns={"epsilon": "ε", "delta": "δ"})
    shown["δ"] = shown["δ"].map(written)
    shown["time"] = shown["time"].str.replace("T", " ").str.replace("+00:00", " UTC")
    st.dataframe(shown, hide_index=True, width="stretch", key="own_ledger")
    _csv_button("Download the ledger (CSV)", frame, "ledger.csv", "own_ledger_csv")
