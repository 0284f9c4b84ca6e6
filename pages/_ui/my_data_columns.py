"""Step 2 of My data: columns, what is looked for in them, and the public box."""

from __future__ import annotations

import streamlit as st

from dpgrams_core.datasets.examples import EXAMPLE_BOX
from dpgrams_core.datasets.table_reader import Table
from dpgrams_core.datasets.upload import MOST_COLUMNS, named_box, picked_names, picked_rows
from dpgrams_core.errors import BudgetError, DataError, SpecError
from dpgrams_core.privacy.ledger import Account, Ledger
from dpgrams_core.private_box import plan_range
from pages._ui.controls import DELTAS, EPSILONS, written
from pages._ui.my_data_state import Own, Request, plain

GOALS = {"modes": "Peaks (modes)", "clusters": "Clusters", "regression": "A response over a predictor"}
BOX_EPSILONS = tuple(value for value in EPSILONS if value <= 1)


def columns_step(own: Own, table: Table, ledger: Ledger, account: Account) -> Request | None:
    """The request that the controls stand for, or None while something is open, which is then said."""
    kind = st.segmented_control(
        "What do you look for?",
        list(GOALS),
        default="modes",
        required=True,
        format_func=GOALS.__getitem__,
        key=f"own_goal_{own.uploads}",
        persist_state="session",
    )
    kind = kind or "modes"  # no browser sends nothing here, and a visitor may
    columns, response = _picked(own, table, kind)
    if not columns or (kind == "regression" and response is None):
        return None
    try:
        names = picked_names(table, columns, response)
    except (SpecError, DataError) as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
    if not _rows_usable(table, names):
        return None
    box = _box(own, table, names, ledger, account)
    if box is None:
        return None
    return Request(columns=columns, response=response, box=box, kind=_kind(str(kind)))


def columns_title(own: Own) -> str:
    """The step in a line; what was released is what it says, since the controls inside may have moved on."""
    if not own.sales:
        return "**2 · Columns and box**"
    request = own.sales[-1].request
    bounds = [
        f"{plain(name)} {low:g} to {high:g}" for name, (low, high) in zip(request.names, request.box, strict=True)
    ]
    return f"**2 · Columns and box** — last release: {', '.join(bounds)}"


def _kind(goal: str) -> str:
    return "modes" if goal == "regression" else goal  # a response makes it regression


def _picked(own: Own, table: Table, kind: str) -> tuple[tuple[str, ...], str | None]:
    """The picked columns, and the response where there is one."""
    names = list(table.numeric)
    if kind != "regression":
        chosen = st.multiselect(
            f"Columns, one to {MOST_COLUMNS}",
            names,
            max_selections=MOST_COLUMNS,
            placeholder="Pick one or more numeric columns",
            key=f"own_columns_{own.uploads}",
            persist_state="session",
        )
        return tuple(chosen), None
    left, right = st.columns(2)
    with left:
        predictor = _one("Predictor", names, f"own_predictor_{own.uploads}")
    with right:
        response = _one("Response", [name for name in names if name != predictor], f"own_response_{own.uploads}")
    return (predictor,) if predictor else (), response


def _one(label: str, names: list[str], key: str) -> str | None:
    return st.selectbox(label, names, index=None, placeholder="Pick a column", key=key, persist_state="session")


def _rows_usable(table: Table, names: tuple[str, ...]) -> bool:
    """Whether there are rows enough and their columns can be read; otherwise the sentence. No record decides it."""
    try:
        with st.spinner("Reading these columns…"):  # of a file in the owner's folder only those are read
            picked_rows(table, names)
    except DataError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return False
    return True


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
        keys = _bound_keys(own, table, name)
        if name in own.bought:  # bought bounds go into the boxes once; afterwards they are the user's to change
            for key, value in zip(keys, own.bought[name], strict=True):
                st.session_state[key] = value
            del own.bought[name]  # last: a rerun may end this one at either write
        with st.container(horizontal=True, vertical_alignment="bottom", key=f"own_bounds_{table.numeric.index(name)}"):
            low = _bound(f"{plain(name)}, from", keys[0])
            high = _bound(f"{plain(name)}, to", keys[1])
        bounds[name] = (low, high)
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


def _bound_keys(own: Own, table: Table, name: str) -> tuple[str, str]:
    number = table.numeric.index(name)
    return f"own_low_{own.uploads}_{number}", f"own_high_{own.uploads}_{number}"


def _bound(label: str, key: str) -> float | None:
    return st.number_input(
        label,
        value=None,
        step=None,
        format="%.10g",
        placeholder="a number",
        key=key,
        persist_state="session",
        width=220,
    )


def _buy(own: Own, table: Table, open_ones: list[str], ledger: Ledger, account: Account) -> None:
    """Bounds for those that nobody can state: a private estimate, charged."""
    with st.expander("You do not know the bounds? Pay for an estimate", key="own_estimate"):
        epsilon = st.select_slider(
            "ε for each column's bounds",
            BOX_EPSILONS,
            value=0.2,
            format_func=written,
            key="own_box_epsilon",
            persist_state="session",
        )
        delta = st.select_slider(
            "δ", DELTAS, value=1e-7, format_func=written, key="own_box_delta", persist_state="session"
        )
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
                own.once(ticket, lambda name=name: own.buy_bounds(name, ledger, epsilon, delta))
                st.rerun()
