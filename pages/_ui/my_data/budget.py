"""Step 3 of My data: the price, what is left, what the same ε gives on made-up data, and the release itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from dpgrams_core import METHODS, Dataset, run
from dpgrams_core.datasets.registry import MAX_N
from dpgrams_core.model.errors import BudgetError, DataError, SpecError
from dpgrams_core.model.format import percent, short, time_words, tiny, whole_percent
from dpgrams_core.model.run import Options
from dpgrams_core.model.settings import DELTAS, EPSILONS, FACTORS
from dpgrams_core.own_data.examples import STAND_IN_GROUPS, stand_in, wave
from dpgrams_core.own_data.postprocess import agreement, released_clusters
from dpgrams_core.own_data.pricing import Quote, quote, refuse_unproven
from dpgrams_core.own_data.twin import twin
from dpgrams_core.privacy.composition import exact_amount
from dpgrams_core.privacy.ledger.book import Account, Ledger
from dpgrams_core.studies.costs import run_seconds
from pages._ui import charts, state
from pages._ui.layout import badge, plain
from pages._ui.my_data.state import WAYS, Own, Request, Sale, number_slider, proven_settings

TRIALS = 3
QUOTE_ROWS = 20_000
LIVE_ROWS, LIVE_COLUMNS = 20_000, 2  # beyond these a trial waits for a click
FIRST_METHODS = {"modes": "functional", "clusters": "functional_c", "regression": "functional_regression"}
CONTROLS: dict[str, tuple[Any, tuple[Any, ...]]] = {  # the first value and all that there are
    "own_epsilon": (0.5, EPSILONS),
    "own_delta": (1e-6, DELTAS),
    "own_scale": (1.0, FACTORS),
    "own_way": ("functional", tuple(WAYS)),
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What would be released: a method and its public settings."""

    method: str
    options: Options


def start_controls() -> None:
    """Give the controls of a release their first values, from the link or the default, also before they are shown."""
    for key, (default, values) in CONTROLS.items():
        state.start(key, default, state.one_of_these(values))


def release_title(mine: Own, account: Account) -> str:
    """Step 3 in a line."""
    again = f" — ε = {short(account.left_epsilon)} left; release again" if mine.sales else ""
    return f"**3 · Budget and release**{again}"


def plan_controls(request: Request) -> Plan:
    """The controls of a release; nothing runs when they move."""
    left, right = st.columns(2, gap="medium")
    with left:
        words = "Smaller ε: more noise, less risk."
        epsilon = number_slider("Privacy budget of this release, ε", EPSILONS, "own_epsilon", help=words)
        st.html('<div class="ends"><span>← stronger privacy</span><span>weaker privacy →</span></div>')
    with right:
        words = "Room for rare exceptions to ε; keep it far below one over the number of rows."
        delta = number_slider("Slack, δ", DELTAS, "own_delta", help=words)
    options: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    method = FIRST_METHODS[request.kind]
    with st.expander("More settings", key="own_more"):
        words = "Multiplies the public bandwidth rule. Later a release can be smoothed for free, but not sharpened."
        scale = number_slider("× bandwidth", FACTORS, "own_scale", help=words)
        if request.kind == "modes":
            method = st.selectbox(
                "Method", list(WAYS), format_func=WAYS.__getitem__, key="own_way", persist_state="session"
            )
            if method == "dp_grams":
                st.caption("DP-GRAMS releases its modes and paths only: no surface, no clusters, no twin.")
    if scale != 1:
        options["bandwidth_scale"] = scale
    options |= proven_settings(method)
    state.write_url(list(CONTROLS))
    return Plan(method=method, options=tuple(sorted(options.items())))


def offered(own: Own, request: Request, plan: Plan) -> Quote | None:
    """The price, worked out on public points; a sentence where these settings cannot be released."""
    data: Dataset = own.data(request)
    # A functional release is priced for all rows in no time. The others run on as many public points; their ε and δ are
    # what the noise is made for, whatever n, and the release prices all rows again.
    if METHODS[plan.method].bare is None and data.n > QUOTE_ROWS:
        data = replace(data, points=data.points[:QUOTE_ROWS])
    try:
        offer = quote(plan.method, data, **dict(plan.options))
        refuse_unproven(offer)
    except (SpecError, DataError) as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
    return offer


def price_and_release(own: Own, request: Request, plan: Plan, offer: Quote, ledger: Ledger, account: Account) -> None:
    """What will be spent and what remains, then the one button that reads the records."""
    pairs = (account.left_epsilon, offer.epsilon), (account.left_delta, offer.delta)
    epsilon, delta = (max(0.0, float(exact_amount(left) - exact_amount(cost))) for left, cost in pairs)
    numbers = {
        "This release spends": (f"ε = {short(offer.epsilon)}", None),
        "Left now": (f"ε = {short(account.left_epsilon)}", f"Of a cap of {short(account.cap_epsilon)}."),
        "Left afterwards": (f"ε = {short(epsilon)}", None),
        "δ left afterwards": (tiny(delta), f"It spends δ = {tiny(offer.delta)}."),
    }
    with st.container(key="numbers"):
        for column, (label, (value, words)) in zip(st.columns(4), numbers.items(), strict=True):
            column.metric(label, value, help=words)
    room = True
    try:
        ledger.check_room(account.account, epsilon=offer.epsilon, delta=offer.delta)
    except BudgetError as error:
        st.warning(plain(str(error)), icon=":material/account_balance_wallet:")
        room = False
    data = own.data(request)
    seconds = run_seconds(plan.method, n=data.n, box=data.method_box, **dict(plan.options))
    if seconds > charts.MOST_SECONDS:
        other = METHODS[plan.method].bare is None
        st.warning(
            f"This release would take about {time_words(seconds)} of computing, and a page gives at most "
            f"{time_words(charts.MOST_SECONDS)}: choose a larger bandwidth{', the functional release' * other} or "
            "fewer columns. A script or the command line has no such limit.",
            icon=":material/timer_off:",
        )
        room = False
    ticket = own.ticket
    label = f"Release (spends ε = {short(offer.epsilon)}, δ = {tiny(offer.delta)})"
    with st.container(horizontal=True, vertical_alignment="center", key="own_release"):
        pressed = st.button(label, key=ticket, type="primary", icon=":material/lock_open_right:", disabled=not room)
        badge(offer.guarantee)
        if charts.UNASKED_SECONDS < seconds <= charts.MOST_SECONDS:
            st.caption(f"It takes about {time_words(seconds)} of computing, and once it is paid for nothing ends it.")
    st.caption(
        f"{METHODS[plan.method].title}. The charge is written to the ledger first; then the noise is drawn, once."
    )
    if pressed:
        with st.spinner("It is charged, then drawn…"):
            own.once(ticket, lambda: own.sell(plan.method, request, ledger, dict(plan.options)))
        st.rerun()


def trial(own: Own, request: Request, plan: Plan, n: int) -> None:
    """What the same ε gives on data that nobody pays for: a twin of an earlier release, or a stand-in."""
    sale = usable_sale(own, request)
    base = "a synthetic twin of your release" if sale else "a stand-in, not your data"
    st.markdown(f"**What does ε = {short(dict(plan.options)['epsilon'])} give?** Tried on {base}:")
    key = ("trial", plan, request.names, n, None if sale is None else sale.number)
    seconds = TRIALS * run_seconds(plan.method, n=n, box=own.data(request).method_box, **dict(plan.options))
    slow = n > LIVE_ROWS or len(request.names) > LIVE_COLUMNS or seconds > charts.UNASKED_SECONDS
    if seconds > charts.MOST_SECONDS:
        asks = f"That would take about {time_words(seconds)} of computing, and a page gives at most"
        st.caption(f"{asks} {time_words(charts.MOST_SECONDS)}: choose a larger bandwidth or fewer columns to try it.")
        return
    words = f"Simulated releases of made-up records: about {time_words(seconds)} of computing."
    ask = slow and key not in own.remembered
    if ask and not st.button("Try it (free)", key="own_trial", icon=":material/play_arrow:", help=words):
        return
    try:
        with st.spinner(f"{TRIALS} simulated releases…"):
            found = own.remember(key, lambda: tried(plan, request, n, sale, range(TRIALS)))
    except (SpecError, DataError) as error:
        st.caption(plain(str(error)))
        return
    shares, extra, errors = (np.array(part, dtype=float) for part in zip(*found, strict=True))
    curve = request.kind == "regression"
    what = "of the branch" if curve else "of the groups"
    known = errors[np.isfinite(errors)]
    with st.container(key="own_trial_numbers"):
        columns = st.columns(3)
        columns[0].metric(f"Found {what}", whole_percent(float(shares.mean())))
        columns[1].metric("Reported, not there", "–" if curve else short(float(extra.mean())))
        columns[2].metric("Typical error", f"{percent(float(known.mean()))} of the box" if len(known) else "–")
    if sale is None:
        shape = "one wave" if curve else f"{STAND_IN_GROUPS} round groups"
        words = (
            f"Stand-in: {shape} made by a formula, with your number of rows and columns, in your box; nothing is known "
            "of your data yet. Your data may be easier or harder."
        )
    else:
        words = f"The twin was drawn from release {sale.number}, which costs nothing more."
        words += " What that release shows counts as the truth here."
    st.caption(f"{words} Mean of {TRIALS} simulated releases.")


def usable_sale(own: Own, request: Request) -> Sale | None:
    """The last release of the same columns and kind that a twin can be drawn from."""
    same = [s for s in own.sales if s.request == request and s.release.surface is not None and len(s.release.rows)]
    return same[-1] if same else None


def tried(plan: Plan, request: Request, n: int, sale: Sale | None, seeds: range) -> list[tuple[float, float, float]]:
    """Simulated releases of made-up records, each compared with what is known of them."""
    data, truth = made_up(request, n, sale)
    results = []
    for seed in seeds:
        release = run(plan.method, data, seed=seed, **dict(plan.options))
        found = release.rows
        if plan.method == "functional_c":
            found = released_clusters(release, len(truth)).places
        results.append(agreement(truth, found, data.box))
    return results


def made_up(request: Request, n: int, sale: Sale | None) -> tuple[Dataset, np.ndarray]:
    """Records that nobody pays for, and the truth about them."""
    if sale is not None:
        return twin_of(sale, n), sale.release.rows
    data = stand_in(n, len(request.names), request.kind)
    if data.true_modes is not None:
        return data, data.true_modes
    x = np.linspace(data.box[0, 0], data.box[0, 1], 51)
    return data, np.column_stack([x, wave(x)])


def twin_of(sale: Sale, n: int) -> Dataset:
    """A synthetic twin in the units of the columns."""
    assert sale.release.surface is not None
    return replace(twin(sale.release.surface, n=min(n, MAX_N)), kind=sale.kind)
