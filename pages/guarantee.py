"""Guarantee: is it real, and what does it mean for one person?"""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from dpgrams_core import DATASETS, SpecError
from dpgrams_core.comparison import ComparisonSettings, Row, candidates, comparison_cell, pooled, tight_rounds
from dpgrams_core.costs import accountants_seconds, cells_seconds, noise_curves_seconds
from dpgrams_core.figures import Chart, accountants_chart, budget_chart, errors_chart, power_chart, records_chart, short
from dpgrams_core.metrics import default_match_radius
from dpgrams_core.noise_curves import CURVE_SIZES, curves_from
from dpgrams_core.privacy.accountants import Quote
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.meaning import Belief, belief, tiny
from dpgrams_core.recipes import Recipe
from dpgrams_core.specs import DPGramsSpec
from dpgrams_core.sweeps import CellResult
from pages._ui import audit_panel, cache, exports, frame, proof, show, state
from pages._ui.controls import _Group
from pages._ui.guarantee_controls import chosen_prior, guarantee_controls, prior_control
from pages._ui.guarantee_show import LateChart, answer_sentence, beliefs, holds_for, methods_table

QUESTION = "Is the guarantee real, and what does it mean?"
RUNS, PIECES = 20, 5  # runs a method, computed in this many pieces
LIVE_LIMIT = 20_000  # above this n, measuring always waits for a press
SMALLER = "n, m or number of steps T, or a larger bandwidth"
TARGETS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # epsilon on the accountants' axis


def meaning(settings: ComparisonSettings, after: Belief, group: _Group) -> Chart:
    """ε in words and odds, and as the best test that anyone can build; returns the picture of that."""
    words, test = st.columns([2, 3], gap="medium")
    with words:
        st.subheader("How sure can someone become?")
        prior_control(group)
        beliefs(after, settings.epsilon, settings.delta)
    with test:
        multiplier = gaussian_multiplier(settings.epsilon, settings.delta)
        picture = power_chart(settings.epsilon, settings.delta, multiplier)
        show.chart(picture, "power", "The best test anyone can build")
    return picture


def files(settings: ComparisonSettings, rows: tuple[Row, ...], text: str, power: Chart, statuses: str) -> None:
    """The page's exports: a run of every method at these settings, and the guarantee of the proven release."""
    place = {"dataset": settings.dataset, "n": settings.n}
    exports.simulation_files(
        [Recipe(method=item.method, options=item.options, **place) for item in candidates(settings)],
        question=QUESTION,
        answer=text,
        charts=[power],
        guarantees=[(row.candidate.title, row.guarantee) for row in rows if row.candidate.method == "functional"],
        notes=[statuses],
    )


def measure(settings: ComparisonSettings, rows: tuple[Row, ...], late: LateChart, table_slot) -> None:
    """Measured errors of every method, filling in live."""
    pieces: dict[str, list[CellResult]] = {}
    chosen = candidates(settings)

    def measured() -> dict[str, CellResult]:
        return {key: pooled(results) for key, results in pieces.items()}

    def steps() -> Iterator[int]:
        for piece in range(PIECES):
            for number, candidate in enumerate(chosen):
                cell = comparison_cell(candidate, settings, RUNS // PIECES, piece)
                pieces.setdefault(candidate.key, []).append(cache.cell(cell))
                yield piece * len(chosen) + number + 1

    late.fill(
        steps(),
        PIECES * len(chosen),
        lambda: errors(settings, rows, measured()),
        lambda: table_slot.html(methods_table(rows, measured())),
    )


def errors(settings: ComparisonSettings, rows: tuple[Row, ...], measured: dict[str, CellResult]) -> Chart:
    """The chart of predicted and measured errors."""
    truth = cache.dataset(settings.dataset, settings.n, 0).true_modes
    assert truth is not None  # the page offers data sets of modes only
    return errors_chart(rows, measured, RUNS, default_match_radius(truth))


def accountants(settings: ComparisonSettings, quoted: dict[float, dict[str, Quote]]) -> Chart:
    """The chart of what each accountant charges."""
    event = tight_rounds(settings, TARGETS[0])
    what = f"{event.rounds} tight rounds on {event.batch_size:,} of {event.n:,} records, δ = {tiny(settings.delta)}"
    return accountants_chart(TARGETS, quoted, settings.epsilon * (1 - DPGramsSpec().init_fraction), what)


def records(settings: ComparisonSettings, found: dict[int, dict[str, float]]) -> Chart:
    """The chart of noise over what it hides against n."""
    return records_chart(curves_from(settings, found), settings.n, len(CURVE_SIZES))


def look_at_sizes(settings: ComparisonSettings, late: LateChart) -> None:
    """Noise over what it hides at every n, filling in live (quick but for small batches)."""
    found: dict[int, dict[str, float]] = {}

    def steps() -> Iterator[int]:
        for size in CURVE_SIZES:
            found[size] = cache.noise_at(settings, size)
            yield len(found)

    late.fill(steps(), len(CURVE_SIZES), lambda: records(settings, found), lambda: None)


def quote_all(settings: ComparisonSettings, late: LateChart) -> None:
    """What each accountant charges, filling in live."""
    quoted: dict[float, dict[str, Quote]] = {}

    def steps() -> Iterator[int]:
        for target in TARGETS:
            quoted[target] = cache.quotes_of(tight_rounds(settings, target), settings.delta)
            yield len(quoted)

    late.fill(steps(), len(TARGETS), lambda: accountants(settings, quoted), lambda: None)


frame.open_page(QUESTION, "pages/guarantee.py")
group = _Group()
wished = guarantee_controls(group)
# ε, δ and the belief before are valid whatever the rest is, so the answer never waits.
after = belief(chosen_prior(), wished.epsilon, wished.delta)
text = frame.answer(answer_sentence(after, wished.epsilon, wished.delta))
try:
    rows = cache.comparison(wished)
    settings = wished
    state.remember_good("guarantee", wished)
except SpecError as error:
    frame.problem(error)
    st.caption("Below, the methods are compared at the last settings that worked.")
    settings = state.last_good("guarantee", ComparisonSettings())
    rows = cache.comparison(settings)
place = exports.caption_beside(holds_for(rows))
power = meaning(wished, after, group)
if settings == wished:  # otherwise the answer and the methods are not of the same settings
    with place:
        files(settings, rows, text, power, holds_for(rows))
audit_panel.start()
state.write_url([*group.keys, *audit_panel.KEYS])
if refused := state.refused_keys():
    st.info(f"The link's values for {', '.join(refused)} cannot be used; the defaults stand instead.")

st.subheader("Every method at these settings, side by side")
st.caption(
    f"{DATASETS[settings.dataset].title}, n = {settings.n:,}, ε = {short(settings.epsilon)}, "
    f"δ = {tiny(settings.delta)}. Bandwidths come from public rules. Noise is a standard deviation; beside it stands "
    "how many times it is what it hides (a score, or a height; read off the simulated records, not private)."
)
table_slot = st.empty()
table_slot.html(methods_table(rows, {}))
measuring = show.wanted(
    "measure",
    f"Measure the errors ({RUNS} runs each)",
    settings,
    cells_seconds(comparison_cell(item, settings, RUNS, 0) for item in candidates(settings)),
    SMALLER,
    show.UNASKED_SECONDS if settings.n <= LIVE_LIMIT else 0.0,
)
late_errors = LateChart("errors")
late_errors.show(errors(settings, rows, {}))

st.subheader("Does it matter who counts?")
quoting = show.wanted("accountants", "Ask all accountants", settings, accountants_seconds(len(TARGETS)), SMALLER)
late_quotes = LateChart("accountants")
late_quotes.show(accountants(settings, {}))

show.chart(budget_chart(rows, settings.delta), "budget", "Where does the budget go?")
st.subheader("How many records do you need?")
late_records = LateChart("records")
looking = show.may_run("records", settings, noise_curves_seconds(settings), SMALLER)
late_records.show(records(settings, {}))

audit_panel.audit_panel()
proof.proof()

# The long work comes last, so that the whole page stands before it; a running audit goes first.
finished = st.session_state.setdefault("_guarantee_finished", set())
busy = audit_panel.desk().busy
for name, wanted, work in (
    ("records", looking, lambda: look_at_sizes(settings, late_records)),
    ("quote", quoting, lambda: quote_all(settings, late_quotes)),
    ("measure", measuring, lambda: measure(settings, rows, late_errors, table_slot)),
):
    if wanted and (not busy or (name, settings) in finished):  # what is finished comes from the cache at once
        work()
        finished.add((name, settings))
if not measuring:
    late_errors.finish(errors(settings, rows, {}))
