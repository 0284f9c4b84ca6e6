"""My data: what can you say about your own data, and what does it cost?"""

from __future__ import annotations

import streamlit as st

from dpgrams_core.model.environment import Settings, read_settings
from dpgrams_core.model.errors import BudgetError, SpecError
from dpgrams_core.model.format import short
from dpgrams_core.own_data.release import open_budget, overlap_words
from dpgrams_core.privacy.ledger.book import Account, Ledger
from pages._ui import layout, state
from pages._ui.jobs import private_workers
from pages._ui.layout import plain
from pages._ui.my_data.budget import offered, plan_controls, price_and_release, release_title, start_controls, trial
from pages._ui.my_data.file import columns_step, columns_title, file_step, file_title
from pages._ui.my_data.results import QUESTION, ledger_view, say
from pages._ui.my_data.state import Own, Request, open_ledger, own

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


def before(mine: Own, account: Account | None = None, request: Request | None = None) -> None:
    """The line while nothing is released; a projector shows a release and no step to one."""
    with st.container():
        layout.answer(before_release(mine, account, request))
        if layout.presenting():
            words = "Presenter mode shows a release. Leave it to open a file and to release."
            st.info(words, icon=":material/slideshow:")


def page(mine: Own, settings: Settings, ledger: Ledger) -> None:
    """The four steps, in order; each is open until it is done."""
    steps, first, result = st.empty(), st.empty(), st.container()  # what was released stands above the steps to it
    _ = private_workers().ready  # starts them, so that they are there when a file comes
    if mine.problem:
        st.error(plain(mine.problem), icon=":material/error:")
    opened = mine.table is not None
    with st.expander(file_title(mine), expanded=not opened, key=f"own_step_1_{opened}"):
        file_step(mine, settings)
    if mine.table is None:
        with steps:
            progress(1)
        with first:
            before(mine)
        return
    try:
        table, caps = mine.table, {"cap_epsilon": settings.cap_epsilon, "cap_delta": settings.cap_delta}
        # Opened once a session: every opening is a write to the disk.
        name = mine.remember(("account", ledger.path), lambda: open_budget(table, ledger, **caps).account)
        account = ledger.account(name)
        mine.restore(table, ledger)
    except BudgetError as error:
        if not mine.sales:
            raise
        layout.problem(plain(str(error)))
        with result:  # they are paid for, and the ledger is not needed to show them
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
        with result:
            say(mine, account, first)
    else:
        with first:
            before(mine, account, request)
    layout.presented()
    overlap = mine.remember(("overlap", account.others), lambda: overlap_words(table, ledger))
    ledger_view(ledger, account, table.identity, overlap, mine.not_shown)
    if trial_slot is not None and request is not None:
        with trial_slot:
            trial(mine, request, plan, mine.data(request).n)


layout.open_page(QUESTION, "pages/my_data.py")
start_controls()
state.tell_refused()
try:
    settings = read_settings()
    ledger = open_ledger(settings)
    page(own(), settings, ledger)
except (SpecError, BudgetError) as error:
    layout.answer("Nothing can be released here now.")
    layout.problem(plain(str(error)))
