"""The audit on the Guarantee page: try to catch a method that promises too much."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import streamlit as st

from dpgrams_core import SpecError
from dpgrams_core.auditing import DOORS, PAIRS
from dpgrams_core.errors import DataError
from dpgrams_core.figures import audits_chart, short, worlds_chart
from dpgrams_core.figures.audits import CAUGHT
from dpgrams_core.figures.style import PRIVATE
from dpgrams_core.progress import time_words
from dpgrams_core.results import AuditResult
from pages._ui import exports, frame, show, state, visitors
from pages._ui.audit_runs import CHOICES, LESSON, OWN, Desk, Record, Wish

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
TRIALS = (200, 400, 1_000, 2_000, 3_000, 5_000)
MOST_TRIALS = {"simulation": 5_000, "release": 1_000}  # the noise of private data takes its time
DOOR_WORDS = {
    "simulation": ("A simulation", "Seeded noise: the same seed, the same audit."),
    "release": (
        "Through the release door",
        "The noise that private data get, slower, and without a seed: no such audit can be repeated.",
    ),
}
LARGEST_SEED = 2**31 - 1
TICK = 0.1  # seconds between two looks
PLACES = {"audit_old_x": -1.0, "audit_old_y": 0.0, "audit_new_x": 1.0, "audit_new_y": 0.0}
KEYS = ["audit_method", "audit_pair", "audit_door", "audit_eps", "audit_trials", "audit_seed", *PLACES]

METHOD_WORDS = {
    "functional": "The whole surface is released at once. Its claim has a proof, so a catch would be a bug.",
    "tight": "Noisy kernel sums at every step. Its claim has a proof, so a catch would be a bug.",
    "theorem": "The noise of the paper's theorem. Its proof has a gap, which these pairs need not show.",
    "experiments": "The noise of the paper's tables. Its ε is a name, not a proof.",
    "functional_regression": "The whole surface over predictor and response is released at once, with a proof.",
    "pms_tight": "Noisy kernel sums at every step, for a curve. Its claim has a proof, so a catch would be a bug.",
    "broken_data_starts": "Starts at records of the data and pays nothing for it. The audit must catch it.",
    "broken_sum": "Adds contributions up under the noise of their mean. The audit must catch it.",
}
PAIR_WORDS = {
    "far_record": ("A record leaves the crowd", "One of 200 records leaves a tight cluster for an empty place."),
    "moved_record": ("A loner moves", "A record far from the cluster moves from one corner to the opposite one."),
    "cluster_boundary": ("The deciding vote", "Two clusters of equal size; the last record makes one the larger."),
    "counted_worst_case": ("Left or right of a pile", "199 records in one point; the last stands left or right of it."),
    "largest_record": ("A record near the largest number", "One record of 200 stands at 1.79e308, far beyond the box."),
    "overflowing_record": (
        "A record whose square overflows",
        "One record of 200 stands at 2e154: its square is no number.",
    ),
    "infinite_record": ("An infinite record", "The values of one record of 200 are infinite."),
    "missing_record": ("A record that misses a value", "One record of 200 misses a value."),
    "far_response": (
        "A response leaves the others",
        "One of 200 equal responses moves from 0.5 to 0.9.",
    ),
    "largest_response": ("A response near the largest number", "One of 200 responses is 1.79e308."),
    "infinite_response": ("An infinite response", "One of 200 responses is minus infinity."),
    "missing_response": ("A missing response", "One of 200 responses is missing."),
    OWN: ("A pair of your own", "A cluster of 199 records at (0, 0) in the box from −5 to 5; you place the last."),
}
PASS = "A pass proves nothing: another pair or a better test may show more. Only a catch is a finding."


def start() -> None:
    """First values of the controls, from the URL; call it before a page writes its URL (with ``KEYS`` in it)."""
    state.start("audit_method", "functional", state.one_of_these(list(CHOICES)))
    state.start("audit_pair", "far_record", state.one_of_these([*PAIRS, OWN]))
    state.start("audit_door", "simulation", state.one_of_these(DOORS))
    state.start("audit_eps", 1.0, state.one_of_these(EPSILONS))
    state.start("audit_trials", 1_000, state.one_of_these(TRIALS))
    state.start("audit_seed", 0, state.number_within(int, 0, LARGEST_SEED, empty=False))
    for key, default in PLACES.items():
        state.start(key, default, state.number_within(float, -5, 5, empty=False))


def desk() -> Desk:
    """The audits of this session; nobody else's."""
    if "_audits" not in st.session_state:
        st.session_state["_audits"] = Desk()
    return st.session_state["_audits"]


def audit_panel() -> None:
    """Intro, controls, buttons, and the results with their pictures."""
    st.subheader("Can we catch it? The audit", anchor="audit")
    st.markdown(
        "Two worlds differ in one record. We run the mechanism thousands of times in each and try to tell from what "
        "it releases which world we are in. The better that works, the larger its ε must really be: if it works "
        f"better than the claimed ε allows, the claim is false. {PASS}"
    )
    start()
    mine = desk()
    wish = _controls()
    _write_url()
    if mine.busy and mine.controls != wish:
        mine.stop()
        st.info("A setting changed, so the audit was stopped. What it had found is kept below.")
    _buttons(mine, wish)
    # The whole page is never kept waiting: looks are taken when this part runs again by itself.
    mine.drawn = False
    st.fragment(_results, run_every=TICK if mine.busy else None)(mine.busy)


def _write_url() -> None:
    """Put this panel's controls into the URL and leave the rest of it alone."""
    defaults = st.session_state["_url_defaults"]
    for key in KEYS:
        if key not in st.session_state:
            continue
        value = st.session_state[key]
        if value == defaults[key]:
            st.query_params.pop(key, None)
        elif st.query_params.get(key) != state.text_of(value):
            st.query_params[key] = state.text_of(value)


def _controls() -> Wish:
    stored: dict[str, Any] = {"persist_state": "session"}
    left, right = st.columns(2, gap="medium")
    with left:
        choice = st.selectbox(
            "Method to audit",
            list(CHOICES),
            format_func=lambda name: CHOICES[name].title,
            key="audit_method",
            help="Whose claim is tested; two are broken on purpose.",
            **stored,
        )
        st.caption(METHOD_WORDS[choice])
    with right:
        # The door comes further down; what it was left at decides which pairs there are.
        _keep_to("audit_door", CHOICES[choice].doors)
        pairs = CHOICES[choice].pairs(st.session_state["audit_door"])
        _keep_to("audit_pair", pairs)
        pair = st.selectbox(
            "Two worlds",
            pairs,
            format_func=lambda name: PAIR_WORDS[name][0],
            key="audit_pair",
            help="Two data sets that differ in one record (neighbours). Extreme values need the release door.",
            **stored,
        )
        st.caption(PAIR_WORDS[pair][1])
    places = _own_places(stored) if pair == OWN else None
    columns = st.columns([2, 2, 2, 1], gap="medium")
    door = columns[0].selectbox(
        "Noise",
        CHOICES[choice].doors,
        format_func=lambda name: DOOR_WORDS[name][0],
        key="audit_door",
        help="The noise of a simulation, or the path that private data take.",
        **stored,
    )
    columns[0].caption(DOOR_WORDS[door][1])
    epsilon = columns[1].select_slider(
        "Claimed ε",
        EPSILONS,
        format_func="{:g}".format,
        key="audit_eps",
        help="The claim that is tested (ε), at δ = 1e-6.",
        **stored,
    )
    offered = [count for count in TRIALS if count <= MOST_TRIALS[door]]
    _keep_to("audit_trials", offered)
    trials = columns[2].select_slider(
        "Runs in each world",
        offered,
        format_func="{:,}".format,
        key="audit_trials",
        help="More runs can show a larger ε: 200 cannot show more than about 3.",
        **stored,
    )
    seed = 0
    if door == "simulation":
        seed = columns[3].number_input(
            "Seed",
            0,
            LARGEST_SEED,
            step=1,
            key="audit_seed",
            help="Same seed, same runs: an audit is a simulation.",
            **stored,
        )
    old, new = places or (None, None)
    return Wish(choice=choice, pair=pair, epsilon=epsilon, trials=trials, seed=seed, old=old, new=new, door=door)


def _keep_to(key: str, offered: Sequence[Any]) -> None:
    """Move a control whose choice another control has taken away: to the largest number, or to the first name."""
    if st.session_state[key] not in offered:
        st.session_state[key] = offered[-1] if isinstance(offered[0], int) else offered[0]


def _own_places(stored: dict[str, Any]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the record stands in the two worlds."""
    columns = st.columns(4)
    words = ("Old place, x", "Old place, y", "New place, x", "New place, y")
    values = [
        column.number_input(
            label, -5.0, 5.0, step=0.5, key=key, help="A coordinate of the one record that differs.", **stored
        )
        for column, label, key in zip(columns, words, PLACES, strict=True)
    ]
    return (values[0], values[1]), (values[2], values[3])


def _buttons(mine: Desk, wish: Wish) -> None:
    run, teach, _ = st.columns([1, 2, 2], gap="small")
    wanted: tuple[Wish, ...] = ()
    if run.button(
        "Run the audit",
        type="primary",
        key="audit_run",
        icon=":material/search:",
        width="stretch",
        help=f"About {time_words(wish.seconds)} of computing. Leaving the page ends it.",
    ):
        wanted = (wish,)
    if teach.button(
        "Show a class two false claims being caught",
        key="audit_teach",
        icon=":material/school:",
        width="stretch",
        help="Audits both broken methods at ε = 1 with 400 runs each: some seconds.",
    ):
        wanted = LESSON
    if wanted:
        try:
            mine.begin(wanted, wish)
        except (SpecError, DataError) as error:
            frame.problem(error)


def _results(repeating: bool) -> None:
    """What was found so far; while an audit is under way this part runs again by itself, a look each time."""
    mine = desk()
    if mine.problem is not None:
        frame.problem(mine.problem)
    current = mine.current
    if current is not None:
        _progress(mine, current)
    if mine.found:
        _verdict(mine.found[-1])
        _pictures(mine.found)
        if current is None and st.button("Clear the audits", key="audit_clear", icon=":material/delete:"):
            mine.clear()
            st.rerun()
    elif current is None:
        st.caption("No audit yet. A thousand runs in each world take some seconds.")
    # Last, with the screen already complete: the next screen shows what this look finds.
    if mine.drawn:
        with visitors.ends_without_a_visitor():
            mine.look()
    mine.drawn = True
    if repeating and not mine.busy:
        st.rerun()  # the whole page, so that this part stops repeating itself


def _progress(mine: Desk, current: Record) -> None:
    done = current.result.trials_done if current.result else 0
    total = current.wish.trials
    bar, button = st.columns([4, 1], vertical_alignment="center")
    waiting = f"; {len(mine.waiting)} more to come" if mine.waiting else ""
    bar.progress(
        done / total, text=f"{CHOICES[current.wish.choice].title}: {done:,} of {total:,} runs in each world{waiting}"
    )
    button.button("Stop", key="audit_stop", icon=":material/stop:", width="stretch", on_click=mine.stop)


def _verdict(record: Record) -> None:
    result = record.result
    assert result is not None
    colour = CAUGHT if result.caught else PRIVATE
    st.html(
        f'<p class="answer" data-testid="audit-verdict" style="border-left:0.4rem solid {colour};padding-left:0.8rem">'
        f"{html.escape(result.verdict)}</p>"
    )
    if not result.complete:
        st.caption(
            f"This rests on {result.trials_done:,} of {result.trials:,} runs in each world. It may be stopped at any "
            "time: all interim results hold at once with 95% confidence."
        )
    st.markdown("**A pass proves nothing.** Only a catch is a finding.")


def _pictures(found: list[Record]) -> None:
    results: list[AuditResult] = [record.result for record in found if record.result is not None]
    titles = [CHOICES[record.wish.choice].title for record in found]
    claims, worlds = st.columns(2, gap="medium")
    with claims:
        picture = audits_chart(results, titles)
        st.markdown("**Claimed ε against what was shown**")
        show.plot(picture.figure, "audits_chart", picture.sentence)
        st.caption(picture.sentence)
    with worlds:
        st.markdown("**How the two worlds were told apart**")
        show.chart(worlds_chart(results[-1]), "audit_worlds")
    shown = picture.table.assign(
        **{name: picture.table[name].map(short) for name in ("lower bound", "upper end (these tests)")},
        status=picture.table["status"].map(frame.status_words),
    )
    st.dataframe(shown, hide_index=True, width="stretch")
    exports.chart_files(picture, "audits", "Claimed ε against what was shown")
