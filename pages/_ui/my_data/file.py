"""Steps 1 and 2 of My data: a file with the only things that are said about it, and its columns in a public box."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from dpgrams_core.methods.registry import fresh_seed
from dpgrams_core.model.environment import Settings, local_file
from dpgrams_core.model.errors import BudgetError, DataError, SpecError
from dpgrams_core.model.format import short, written
from dpgrams_core.model.settings import DELTAS, EPSILONS
from dpgrams_core.own_data.bounds import plan_range
from dpgrams_core.own_data.examples import EXAMPLE_BOX, example_csv
from dpgrams_core.own_data.reading.table import REASONS, Limits, Table, read_table
from dpgrams_core.own_data.table import MOST_COLUMNS, named_box, picked_names, picked_rows, read_upload
from dpgrams_core.privacy.ledger.book import Account, Ledger
from pages._ui.controls import one_of_few
from pages._ui.jobs import in_private_worker
from pages._ui.layout import plain
from pages._ui.my_data.state import GOALS, Own, Request, number_slider
from pages._ui.server.uploads import MEGABYTE, OFF, largest_upload, read_and_let_go, upload_box

ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".pq")
BOX_EPSILONS = tuple(value for value in EPSILONS if value <= 1)


def file_step(own: Own, settings: Settings) -> None:
    """Choose a file, or say what is known of the one that was chosen."""
    if own.table is None:
        _choose(own, settings)
    else:
        _facts(own, own.table)


def file_title(own: Own) -> str:
    """The step in a line."""
    if own.table is None:
        return "**1 · File**"
    return f"**1 · File** — {_counted(own.table.n_rows, 'row')}, {_counted(len(own.table.numeric), 'numeric column')}"


def _choose(own: Own, settings: Settings) -> None:
    if settings.uploads:
        file = upload_box(
            f"A CSV or Parquet file, at most {short(settings.max_upload_bytes / MEGABYTE)} MB",
            settings,
            f"own_upload_{own.uploads}",
            largest_upload(settings),
            "One row for each person, column names in the first row. It is kept in this session's memory only.",
        )
        if file is not None:
            read = partial(read_and_let_go, file, settings)

            def unpacked(content: bytes, room: Callable[[], int], waiting: Callable[[], None]) -> Table:
                return read_upload(content, file.name, settings, room, waiting, in_private_worker)

            _read(own, "upload", lambda: read(unpacked))
    else:
        st.info(f"{OFF} Or try it with the example file.", icon=":material/public:")
    _choose_local(own, settings)
    with st.container(horizontal=True, vertical_alignment="center", key="own_example"):
        if st.button("Try it with an example file", icon=":material/science:", key="own_try"):
            _read(own, "example", lambda: read_table(example_csv(fresh_seed()), "example.csv"))
        st.caption("3,000 people who do not exist, made afresh at every press.", width="content")


def _choose_local(own: Own, settings: Settings) -> None:
    """A file of the owner's folder, of any size."""
    if settings.data_folder is None:
        return
    try:
        found = [path for path in settings.data_folder.iterdir() if path.suffix.lower() in ENDINGS and path.is_file()]
        names = sorted(path.name for path in found)
    except OSError:
        names = []
    if not names:
        st.caption("The folder of local files (DPGRAMS_DATA) has no CSV or Parquet file in it.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="own_local_row"):
        name = st.selectbox(
            "Or a file in this machine's folder, of any size",
            names,
            key="own_local",
            width=360,
            help="It is read in pieces. Only the columns that you pick must fit into memory.",
        )
        if st.button("Open it", icon=":material/folder_open:", key="own_open_local"):
            _read(own, "local", partial(_local, local_file(settings, name)))


def _local(path: Path) -> Table:
    return in_private_worker(partial(read_table, limits=Limits.of_owner()), path)


def _read(own: Own, source: str, read: Callable[[], Table]) -> None:
    """Read a file, or say in a sentence why it cannot be used; the way to choose another stays where it is."""
    try:
        with st.spinner("Reading the file…"):
            table = read()
    except DataError as error:
        own.take(None, "", str(error))
    else:
        own.take(table, source)
    st.rerun()


def _facts(own: Own, table: Table) -> None:
    """Names and the number of rows: treated as public, and said so."""
    names = ", ".join(f"`{name.replace('`', ' ')}`" for name in table.numeric[:12])
    more = f" and {len(table.numeric) - 12} more" if len(table.numeric) > 12 else ""
    st.markdown(f"**{table.n_rows:,} rows.** Numeric columns: {names}{more}.")
    st.caption(
        "Treated as public: how the file is written (that it can be read, the column names, which columns are numeric) "
        "and the number of rows. Nothing else about the file is shown, not even which rows miss a value."
    )
    for note in table.notes:
        st.caption(plain(note))
    if own.source == "example":
        st.caption("These people do not exist; the page treats them as if they did.")
    if st.button("Use another file", icon=":material/swap_horiz:", key="own_leave"):
        own.leave()
        st.rerun()
    words = "Another file clears this page. What was spent stays in the ledger."
    if own.source != "example":
        words += " The same file finds its budget again, and what was kept of its releases."
    st.caption(words)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def columns_step(own: Own, table: Table, ledger: Ledger, account: Account) -> Request | None:
    """The request that the controls stand for, or None while something is open, which is then said."""
    kind = one_of_few("What do you look for?", f"own_goal_{own.uploads}", GOALS, default="modes", wrap=None)
    picked = _picked(own, table, kind)
    _not_offered(table)
    if not picked or None in picked:
        return None
    columns, response = (picked[:1], picked[1]) if kind == "regression" else (picked, None)
    try:
        names = picked_names(table, columns, response)
        with st.spinner("Reading these columns…"):  # of a file in the owner's folder only those are read
            # Refused where there are too few, or they cannot be read; no record decides it.
            picked_rows(table, names, in_private_worker)
    except (SpecError, DataError) as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
    box = _box(own, table, names, ledger, account)
    return None if box is None else Request(names=names, box=box, kind=kind)


def columns_title(own: Own) -> str:
    """The step in a line; what was released is what it says, since the controls inside may have moved on."""
    if not own.sales:
        return "**2 · Columns and box**"
    record = own.sales[-1].record
    sides = zip(record.columns, record.box, strict=True)
    bounds = [f"{plain(name)} {written(low)} to {written(high)}" for name, (low, high) in sides]
    return f"**2 · Columns and box** — last release: {', '.join(bounds)}"


def _picked(own: Own, table: Table, kind: str) -> list[Any]:
    """The picked columns; of a regression the predictor and the response, None where one is open."""
    names = list(table.numeric)
    if kind != "regression":
        return st.multiselect(
            f"Columns, one to {MOST_COLUMNS}",
            names,
            max_selections=MOST_COLUMNS,
            placeholder="Pick one or more numeric columns",
            key=f"own_columns_{own.uploads}",
            persist_state="session",
        )
    picked: list[str | None] = []
    for slot, label in zip(st.columns(2), ("Predictor", "Response"), strict=True):
        key, rest = f"own_{label.lower()}_{own.uploads}", [name for name in names if name not in picked]
        with slot:
            words = "Pick a column"
            picked.append(st.selectbox(label, rest, index=None, placeholder=words, key=key, persist_state="session"))
    return picked


def _not_offered(table: Table) -> None:
    """Why a column is not among those that can be picked: in sight for a few, one click away for many."""
    others = [
        f"`{column.name.replace('`', ' ')}` {REASONS[column.kind]}"
        for column in table.columns
        if column.kind != "numeric"
    ]
    if len(others) > 3:
        with st.expander(f"{len(others)} columns cannot be picked: why?", key="own_unusable"):
            st.markdown("\n\n".join(others[:30]))
    elif others:
        st.caption("Cannot be picked: " + " ".join(others))


def _box(
    own: Own, table: Table, names: tuple[str, ...], ledger: Ledger, account: Account
) -> tuple[tuple[float, float], ...] | None:
    """The stated bounds of every column, or None while some are open."""
    st.markdown("**The public box**: what could anyone say about these columns without seeing the records?")
    st.caption(
        "For an age, 0 to 100. Values outside are moved to the edge. Every column is scaled by its box, so a box that "
        "is far too wide wastes the budget on empty space. Do not read the bounds off the file: that is not paid for. "
        "A row with a missing value counts as a row, and the release says where the value stands."
    )
    bounds: dict[str, tuple[float | None, float | None]] = {}
    for name in names:
        number = table.numeric.index(name)
        keys = [f"own_{end}_{own.uploads}_{number}" for end in ("low", "high")]
        if name in own.bought:  # bought bounds go into the boxes once; afterwards they are the user's to change
            for key, value in zip(keys, own.bought[name], strict=True):
                st.session_state[key] = value
            del own.bought[name]  # last: a rerun may end this one at either write
        with st.container(horizontal=True, vertical_alignment="bottom", key=f"own_bounds_{number}"):
            bounds[name] = _bound(f"{name}, from", keys[0]), _bound(f"{name}, to", keys[1])
    open_ones = [name for name, pair in bounds.items() if None in pair]
    known = own.source == "example" and open_ones
    if known and st.button("Fill in what anyone would say", icon=":material/edit:", key="own_fill"):
        own.bought.update({name: EXAMPLE_BOX[name] for name in open_ones})
        st.rerun()
    if open_ones:
        _buy(own, table, open_ones, ledger, account)
        return None
    try:
        box = named_box(names, bounds)
    except SpecError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
    return tuple((float(low), float(high)) for low, high in box)


def _bound(label: str, key: str) -> float | None:
    """A bound; the label for the eye is escaped Markdown above it, the one for a screen reader has the plain name."""
    with st.container(width=220, gap=None):
        st.markdown(f":small[{plain(label)}]")
        return st.number_input(
            label,
            label_visibility="collapsed",
            value=None,
            step=None,
            format="%.10g",
            placeholder="a number",
            key=key,
            persist_state="session",
        )


def _buy(own: Own, table: Table, open_ones: list[str], ledger: Ledger, account: Account) -> None:
    """Bounds for those that nobody can state: a private estimate, charged."""
    with st.expander("You do not know the bounds? Pay for an estimate", key="own_estimate"):
        epsilon = number_slider("ε for each column's bounds", BOX_EPSILONS, "own_box_epsilon", value=0.2)
        delta = number_slider("δ", DELTAS, "own_box_delta", value=1e-7)
        try:
            plan_range(table.n_rows, epsilon, delta)
            ledger.check_room(account.account, epsilon=epsilon, delta=delta)
        except (DataError, SpecError, BudgetError) as error:
            st.info(plain(str(error)))
            return
        st.caption(
            "Noisy counts in public bins whose ends are powers of two: proven, and roomy rather than exact. It is "
            "charged once for each press."
        )
        ticket = own.ticket
        for name in open_ones:
            label = f"Estimate {plain(name)} (spends ε = {written(epsilon)}, δ = {written(delta)})"
            if st.button(label, key=f"{ticket}_{table.numeric.index(name)}", icon=":material/payments:"):
                own.once(ticket, partial(own.buy_bounds, name, ledger, epsilon, delta))
                st.rerun()
