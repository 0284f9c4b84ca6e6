"""My data: what can you say about your own data, and what does it cost?"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpgrams_core.datasets.table_reader import Table
from dpgrams_core.errors import BudgetError, DataError, SpecError
from dpgrams_core.figures import short
from dpgrams_core.privacy.ledger import Account, Ledger
from dpgrams_core.releasing import open_budget, overlap_words
from dpgrams_core.settings import Settings, read_settings
from pages._ui import frame, state
from pages._ui.my_data_budget import offered, plan_controls, price_and_release, start_controls, trial
from pages._ui.my_data_columns import columns_step, columns_title
from pages._ui.my_data_curator import banner, curator_view
from pages._ui.my_data_file import file_step, file_title
from pages._ui.my_data_ledger import ledger_view
from pages._ui.my_data_results import QUESTION, answer_of, results, twin_section
from pages._ui.my_data_state import Own, Request, Sale, curator_allowed, open_ledger, own, plain

STEPS = ("File", "Columns and box", "Budget and release", "What you can say now")


def progress(current: int) -> None:
    """The four steps, with the one that is open."""
    items = []
    for number, words in enumerate(STEPS, start=1):
        kind = "done" if number < current else "now" if number == current else "later"
        mark = "✓" if kind == "done" else str(number)
        here = ' aria-current="step"' if kind == "now" else ""
        items.append(f'<li class="{kind}"{here}><span>{mark}</span>{words}</li>')
    st.html(f'<ol class="steps" aria-label="Steps">{"".join(items)}</ol>')


def before_release(mine: Own, account: Account | None, request: Request | None) -> str:
    """The state of things in one large sentence, while nothing is released."""
    if mine.table is None or account is None:
        return "Your file stays on this server, in memory. <b>Nothing about it is shown until you release.</b>"
    if request is None:
        return (
            f"{mine.table.n_rows:,} rows are read. <b>Nothing about them is shown until you release</b>; pick columns "
            "and say what their bounds are."
        )
    return (
        f"Ready: of this file’s budget <b>ε = {short(account.left_epsilon)}</b> is left. "
        "<b>Nothing is drawn from your records until you press Release.</b>"
    )


def release_title(mine: Own, account: Account) -> str:
    """Step 3 in a line."""
    if not mine.sales:
        return "**3 · Budget and release**"
    return f"**3 · Budget and release** — ε = {short(account.left_epsilon)} left; release again"


def chosen_sale(mine: Own) -> Sale:
    """The release that is shown: the last, or another that is picked."""
    if len(mine.sales) == 1:
        return mine.sales[0]
    words = {s.number: f"Release {s.number}: {s.charge.description}, ε = {short(s.charge.epsilon)}" for s in mine.sales}
    number = st.selectbox(
        "Which release?", list(words), index=len(words) - 1, format_func=words.get, key=f"own_which_{len(words)}"
    )
    return mine.sales[number - 1]


def view_switch(mine: Own) -> bool:
    """Whether the curator's view is on; it is off at first and may be switched off for good."""
    if not curator_allowed(mine.source):
        words = "Public view: only what may leave the building."
        if mine.source == "local" and not frame.presenting() and read_settings().curator:
            words += (
                " Everyone who reaches this page can open this file, so its records are shown only where the owner of "
                "the server sets DPGRAMS_CURATOR=on."
            )
        st.caption(words)
        return False
    view = st.segmented_control(
        "View",
        ["public", "curator"],
        default="public",
        required=True,
        format_func={"public": "Public: may leave the building", "curator": "Curator: adds your records"}.get,
        key="own_view",
    )
    return view == "curator"


def say(mine: Own, account: Account | None, first: DeltaGenerator) -> None:
    """Step 4: the release that is shown, publicly and, if wished, for the curator; ``first`` is for its answer."""
    st.subheader("4 · What you can say now")
    curator = view_switch(mine)
    if curator:
        banner()
    sale = chosen_sale(mine)
    with first:
        frame.answer(answer_of(sale))
    if sale.earlier:
        st.info(
            f"Release {sale.number} of {sale.date} was paid for earlier and is shown again; it costs nothing. For "
            "another one open step 2.",
            icon=":material/history:",
        )
    results(mine, sale, account)
    if curator:
        try:
            curator_view(mine, sale)
        except (SpecError, DataError) as error:  # a file of the server's folder that changed, say
            st.info(plain(str(error)))
    if sale.release.surface is not None:
        twin_section(mine, sale)


def account_name(mine: Own, table: Table, settings: Settings, ledger: Ledger) -> str:
    """The account of the file, opened once a session: every opening is a write to the disk."""
    caps = {"cap_epsilon": settings.cap_epsilon, "cap_delta": settings.cap_delta}
    return mine.remember(("account", ledger.path), lambda: open_budget(table, ledger, **caps).account)


def page(mine: Own, settings: Settings, ledger: Ledger) -> None:
    """The four steps, in order; each is open until it is done."""
    steps, first = st.empty(), st.empty()
    if mine.problem:
        st.error(plain(mine.problem), icon=":material/error:")
    opened = mine.table is not None
    with st.expander(file_title(mine), expanded=not opened, key=f"own_step_1_{opened}"):
        file_step(mine, settings)
    if mine.table is None:
        with steps:
            progress(1)
        with first:
            frame.answer(before_release(mine, None, None))
        return
    try:
        account = ledger.account(account_name(mine, mine.table, settings, ledger))
        mine.restore(mine.table, ledger)
    except BudgetError as error:
        frame.problem(plain(str(error)))
        if mine.sales:  # they are paid for, and the ledger is not needed to show them
            say(mine, None, first)
        return
    sold = bool(mine.sales)
    slot = st.expander(columns_title(mine), expanded=not sold, key=f"own_step_2_{mine.uploads}_{sold}")
    with slot:
        if mine.bought_earlier:
            names = ", ".join(plain(name) for name in mine.bought_earlier)
            st.caption(f"Bounds that were paid for earlier are filled in when you pick the column: {names}.")
        request = columns_step(mine, mine.table, ledger, account)
    trial_slot = None
    if request is not None:
        with st.expander(release_title(mine, account), expanded=not sold, key=f"own_step_3_{mine.uploads}_{sold}"):
            plan = plan_controls(request)
            offer = offered(mine, request, plan)
            if offer is not None:
                price_and_release(mine, request, plan, offer, ledger, account)
                trial_slot = st.container(border=True, key="own_trial_box")
    with steps:
        progress(4 if sold else 2 if request is None else 3)
    if sold:
        say(mine, account, first)
    else:
        with first:
            frame.answer(before_release(mine, account, request))
    table = mine.table
    overlap = mine.remember(("overlap", account.others), lambda: overlap_words(table, ledger))
    ledger_view(ledger, account, table.identity, overlap, mine.not_shown)
    if trial_slot is not None:
        with trial_slot:
            trial(mine, request, plan, mine.data(request).n)


frame.open_page(QUESTION, "pages/my_data.py")
st.html(frame.ASSETS / "my_data.css")
start_controls()
if refused := state.refused_keys():
    st.info(f"The link's values for {', '.join(refused)} cannot be used; the defaults stand instead.")
try:
    settings = read_settings()
    ledger = open_ledger(settings)
    page(own(), settings, ledger)
except (SpecError, BudgetError) as error:
    frame.problem(plain(str(error)))
