"""Step 3 of My data: the price, what is left, what the same ε gives on made-up data, and the release itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from dpgrams_core import METHODS, Dataset, run
from dpgrams_core.costs import run_seconds
from dpgrams_core.datasets.examples import STAND_IN_GROUPS, stand_in, wave
from dpgrams_core.datasets.twins import MAX_N, twin
from dpgrams_core.errors import BudgetError, DataError, SpecError
from dpgrams_core.figures import short
from dpgrams_core.privacy.composition import exact_amount
from dpgrams_core.privacy.ledger import Account, Ledger
from dpgrams_core.progress import time_words
from dpgrams_core.readings import agreement, released_clusters
from dpgrams_core.releasing import Quote, quote, refuse_unproven
from pages._ui import show, state
from pages._ui.controls import DELTAS, EPSILONS, FACTORS, written
from pages._ui.frame import badge
from pages._ui.my_data_state import Own, Request, Sale, plain

TRIALS = 3
QUOTE_ROWS = 20_000
LIVE_ROWS, LIVE_COLUMNS = 20_000, 2  # beyond these a trial waits for a click
WAYS = {"functional": "Functional release", "dp_grams": "DP-GRAMS, tight"}
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
    options: tuple[tuple[str, Any], ...]

    @property
    def epsilon(self) -> float:
        """The ε that is asked for."""
        return dict(self.options)["epsilon"]


def start_controls() -> None:
    """Give the controls of a release their first values, from the link or the default, also before they are shown."""
    for key, (default, values) in CONTROLS.items():
        state.start(key, default, state.one_of_these(values))


def plan_controls(request: Request) -> Plan:
    """The controls of a release; nothing runs when they move."""
    left, right = st.columns(2, gap="medium")
    with left:
        epsilon = st.select_slider(
            "Privacy budget of this release, ε",
            EPSILONS,
            format_func=written,
            key="own_epsilon",
            help="Smaller ε: more noise, less risk.",
            persist_state="session",
        )
        st.html('<div class="ends"><span>← stronger privacy</span><span>weaker privacy →</span></div>')
    with right:
        delta = st.select_slider(
            "Slack, δ",
            DELTAS,
            format_func=written,
            key="own_delta",
            help="Room for rare exceptions to ε; keep it far below one over the number of rows.",
            persist_state="session",
        )
    options: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    method = {"clusters": "functional_c", "modes": "functional"}[request.kind]
    with st.expander("More settings", key="own_more"):
        scale = st.select_slider(
            "× bandwidth",
            FACTORS,
            format_func=written,
            key="own_scale",
            help="Multiplies the public bandwidth rule. Later a release can be smoothed for free, but not sharpened.",
            persist_state="session",
        )
        if request.response is None and request.kind == "modes":
            method = st.selectbox("Method", list(WAYS), format_func=WAYS.get, key="own_way", persist_state="session")
            if method == "dp_grams":
                st.caption("DP-GRAMS releases its modes and paths only: no surface, no clusters, no twin.")
    if request.response is not None:
        method = "functional_regression"
    if scale != 1:
        options["bandwidth_scale"] = scale
    if method == "dp_grams":
        options["calibration"] = "tight"
    state.write_url(list(CONTROLS))
    return Plan(method=method, options=tuple(sorted(options.items())))


def offered(own: Own, request: Request, plan: Plan) -> Quote | None:
    """The price, worked out on public points; a sentence where these settings cannot be released."""
    data: Dataset = own.data(request)
    # A functional release is priced for all rows in no time. The others run on as many public points; their ε and δ are
    # what the noise is made for, whatever n, and the release prices all rows again.
    if METHODS[plan.method].bare is None and data.n > QUOTE_ROWS:
        data = Dataset(name="few", kind=data.kind, points=data.points[:QUOTE_ROWS], box=data.box, private=True)
    try:
        offer = quote(plan.method, data, **dict(plan.options))
        refuse_unproven(offer)
    except (SpecError, DataError) as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
    return offer


def price_and_release(own: Own, request: Request, plan: Plan, offer: Quote, ledger: Ledger, account: Account) -> None:
    """What will be spent and what remains, then the one button that reads the records."""
    after = [float(exact_amount(left) - exact_amount(cost)) for left, cost in _pairs(account, offer)]
    with st.container(key="numbers"):
        columns = st.columns(4)
        columns[0].metric("This release spends", f"ε = {short(offer.epsilon)}")
        columns[1].metric(
            "Left now", f"ε = {short(account.left_epsilon)}", help=f"Of a cap of {account.cap_epsilon:g}."
        )
        columns[2].metric("Left afterwards", f"ε = {short(max(0.0, after[0]))}")
        columns[3].metric(
            "δ left afterwards",
            f"{max(0.0, after[1]):.2g}".replace("e-0", "e-"),
            help=f"It spends δ = {written(offer.delta)}.",
        )
    room = True
    try:
        ledger.check_room(account.account, epsilon=offer.epsilon, delta=offer.delta)
    except BudgetError as error:
        st.warning(plain(str(error)), icon=":material/account_balance_wallet:")
        room = False
    data = own.data(request)
    seconds = run_seconds(plan.method, n=data.n, box=data.box, **dict(plan.options))
    if seconds > show.MOST_SECONDS:
        other = plan.method == "dp_grams"
        st.warning(
            f"This release would take about {time_words(seconds)} of computing, and a page gives at most "
            f"{time_words(show.MOST_SECONDS)}: choose a larger bandwidth{', the functional release' * other} or fewer "
            "columns. A script or the command line has no such limit.",
            icon=":material/timer_off:",
        )
        room = False
    ticket = own.ticket
    label = f"Release (spends ε = {short(offer.epsilon)}, δ = {written(offer.delta)})"
    with st.container(horizontal=True, vertical_alignment="center", key="own_release"):
        pressed = st.button(label, key=ticket, type="primary", icon=":material/lock_open_right:", disabled=not room)
        badge(offer.guarantee)
        if show.UNASKED_SECONDS < seconds <= show.MOST_SECONDS:
            st.caption(f"It takes about {time_words(seconds)} of computing, and once it is paid for nothing ends it.")
    st.caption(
        f"{METHODS[plan.method].title}. The charge is written to the ledger first; then the noise is drawn, once."
    )
    if pressed:
        with st.spinner("Charged, now drawing…"):
            own.once(ticket, lambda: own.sell(plan.method, request, ledger, dict(plan.options)))
        st.rerun()


def _pairs(account: Account, offer: Quote) -> list[tuple[float, float]]:
    return [(account.left_epsilon, offer.epsilon), (account.left_delta, offer.delta)]


def trial(own: Own, request: Request, plan: Plan, n: int) -> None:
    """What the same ε gives on data that nobody pays for: a twin of an earlier release, or a stand-in."""
    sale = usable_sale(own, request)
    base = "a synthetic twin of your release" if sale else "a stand-in, not your data"
    st.markdown(f"**What does ε = {short(plan.epsilon)} give?** Tried on {base}:")
    key = ("trial", plan, request.names, n, None if sale is None else sale.number)
    seconds = TRIALS * run_seconds(plan.method, n=n, box=own.data(request).box, **dict(plan.options))
    slow = n > LIVE_ROWS or len(request.names) > LIVE_COLUMNS or seconds > show.UNASKED_SECONDS
    if seconds > show.MOST_SECONDS:
        st.caption(
            f"That would take about {time_words(seconds)} of computing, and a page gives at most "
            f"{time_words(show.MOST_SECONDS)}: choose a larger bandwidth or fewer columns to try it."
        )
        return
    if (
        slow
        and not own.remembers(key)
        and not st.button(
            "Try it (free)",
            key="own_trial",
            icon=":material/play_arrow:",
            help=f"Simulated releases of made-up records: about {time_words(seconds)} of computing.",
        )
    ):
        return
    try:
        with st.spinner(f"{TRIALS} simulated releases…"):
            found = own.remember(key, lambda: tried(plan, request, n, sale, range(TRIALS)))
    except (SpecError, DataError) as error:
        st.caption(plain(str(error)))
        return
    shares, extra, errors = (np.array(part, dtype=float) for part in zip(*found, strict=True))
    what = "of the branch" if request.response else "of the groups"
    known = errors[np.isfinite(errors)]
    with st.container(key="own_trial_numbers"):
        columns = st.columns(3)
        columns[0].metric(f"Found {what}", f"{100 * shares.mean():.0f} %")
        columns[1].metric("Reported, not there", short(float(extra.mean())) if not request.response else "–")
        columns[2].metric("Typical error", f"{100 * known.mean():.1f} % of the box" if len(known) else "–")
    if sale is None:
        shape = "one wave" if request.response else f"{STAND_IN_GROUPS} round groups"
        st.caption(
            f"Stand-in: {shape} made by a formula, with your number of rows and columns, in your box; nothing is known "
            f"of your data yet. Your data may be easier or harder. Mean of {TRIALS} simulated releases."
        )
    else:
        st.caption(
            f"The twin was drawn from release {sale.number}, which costs nothing more. What that release shows counts "
            f"as the truth here. Mean of {TRIALS} simulated releases."
        )


def usable_sale(own: Own, request: Request) -> Sale | None:
    """The last release of the same columns and kind that a twin can be drawn from."""
    same = [s for s in own.sales if s.request == request and s.release.surface is not None and len(truth_of(s))]
    return same[-1] if same else None


def truth_of(sale: Sale) -> np.ndarray:
    """What a release shows, in the box that methods see: its modes or its curve."""
    return sale.release.modes if sale.release.curve is None else sale.release.curve


def tried(plan: Plan, request: Request, n: int, sale: Sale | None, seeds: range) -> list[tuple[float, float, float]]:
    """Simulated releases of made-up records, each compared with what is known of them."""
    data, truth = made_up(request, n, sale)
    options = dict(plan.options)
    results = []
    for seed in seeds:
        release = run(plan.method, data, seed=seed, **options)
        found = release.modes if release.curve is None else release.curve
        if plan.method == "functional_c":
            found = released_clusters(release, len(truth)).places
        results.append(agreement(truth, found, data.box))
    return results


def made_up(request: Request, n: int, sale: Sale | None) -> tuple[Dataset, np.ndarray]:
    """Records that nobody pays for, and the truth about them."""
    kind = "regression" if request.response else request.kind
    if sale is None:
        data = stand_in(n, len(request.names), kind)
        if kind == "regression":
            x = np.linspace(*data.box[0], 51)
            return data, np.column_stack([x, wave(x)])
        assert data.true_modes is not None
        return data, data.true_modes
    return twin_of(sale, n, kind), truth_of(sale)


def twin_of(sale: Sale, n: int, kind: str, seed: int = 0) -> Dataset:
    """A synthetic twin in the box that methods see."""
    assert sale.release.surface is not None
    drawn = twin(sale.release.surface, n=min(n, MAX_N), seed=seed)
    low, high = sale.inner.T
    share = (drawn.points - drawn.box[:, 0]) / (drawn.box[:, 1] - drawn.box[:, 0])
    return Dataset(name="twin", kind=kind, points=low + share * (high - low), box=sale.inner)
