"""Guarantee: is it real, and what does it mean for one person?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from dpgrams_core import DATASETS
from dpgrams_core.figures.guarantee import accountants_chart, budget_chart, errors_chart, power_chart, records_chart
from dpgrams_core.figures.style import Chart
from dpgrams_core.methods.ascent import ascent_epsilon
from dpgrams_core.methods.dp_grams.plan import TIGHT
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec
from dpgrams_core.model.format import one_in, percent, short, tiny
from dpgrams_core.model.measures import default_match_radius
from dpgrams_core.model.words import meanings_in
from dpgrams_core.privacy.accountants import quotes
from dpgrams_core.privacy.calibration import gaussian_multiplier
from dpgrams_core.privacy.meaning import Belief, belief
from dpgrams_core.studies import comparison
from dpgrams_core.studies.costs import accountants_seconds, cells_seconds, noise_curves_seconds
from dpgrams_core.sweeps.plan import plan_run
from pages._ui import cache, charts, exports, jobs, layout, state
from pages._ui.controls import Group
from pages._ui.guarantee import audit as audit_panel
from pages._ui.guarantee.show import beliefs, holds_for, methods_table, proof

QUESTION = "Is the guarantee real, and what does it mean?"
RUNS, PIECES = 20, 5  # runs a method, computed in this many pieces
LIVE_LIMIT = 20_000  # above this n, measuring always waits for a press
SMALLER = "n, m or number of steps T, or a larger bandwidth"
PERCENTS, FIRST_PERCENT = tuple(range(1, 100)), 50  # how sure someone was before
TABS = {  # each has its link
    "meaning": "What it means",
    "methods": "The methods",
    "accounting": "Accounting",
    "audit": "The audit",
    "proof": "The proof",
}
STEPS = "{} of {} steps; moving any control stops them"
TARGETS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # epsilon on the accountants' axis


def measure(settings: comparison.ComparisonSettings, rows: tuple[comparison.Row, ...]) -> None:
    """All methods in a table, their predicted errors, and where they are wanted the measured ones, filling in live."""
    table_slot = st.empty()
    table_slot.html(methods_table(rows, {}))
    keys = {comparison.comparison_cell(item, settings, RUNS, 0): item.key for item in comparison.candidates(settings)}
    label, live = f"Measure the errors ({RUNS} runs each)", settings.n <= LIVE_LIMIT
    wanted = charts.wanted("measure", label, settings, cells_seconds(keys), SMALLER, live)
    truth = cache.dataset(settings.dataset, settings.n, 0).true_modes
    assert truth is not None  # the page offers data sets of modes only
    radius = default_match_radius(truth)

    def picture(known: jobs.Known) -> Chart:
        measured = {keys[replace(found.cell, runs=RUNS)]: found for found in jobs.pooled_by_seed(known)}
        table_slot.html(methods_table(rows, measured))
        return errors_chart(rows, measured, RUNS, radius)

    work = [replace(cell, runs=RUNS // PIECES, seed=piece) for piece in range(PIECES) for cell in keys]
    charts.filling(jobs.sweep(work if wanted else []), picture, "errors", STEPS)


def accountants(settings: comparison.ComparisonSettings) -> None:
    """What each accountant charges, filling in live."""
    wanted = charts.wanted("accountants", "Ask all accountants", settings, accountants_seconds(len(TARGETS)), SMALLER)
    event = comparison.tight_rounds(settings, TARGETS[0])
    what = f"{event.rounds} tight rounds on {event.batch_size:,} of {event.n:,} records, δ = {tiny(settings.delta)}"
    work = jobs.one_by_one(
        ("accountants", settings),
        TARGETS if wanted else (),
        lambda target: quotes(comparison.tight_rounds(settings, target), settings.delta),
    )
    tight = DPGramsSpec(epsilon=settings.epsilon, delta=settings.delta, calibration="tight")
    share = ascent_epsilon(tight, TIGHT.init_fraction)
    charts.filling(work, lambda quoted: accountants_chart(TARGETS, quoted, share, what), "accountants", STEPS)


def records(settings: comparison.ComparisonSettings) -> None:
    """Noise over what it hides at every n, filling in live (quick but for small batches)."""
    sizes = (
        comparison.CURVE_SIZES if charts.may_run("records", settings, noise_curves_seconds(settings), SMALLER) else ()
    )
    work = jobs.one_by_one(("records", settings), sizes, lambda size: comparison.noise_ratios(settings, size))

    def picture(found: dict[int, Any]) -> Chart:
        return records_chart(comparison.curves_from(settings, found), settings.n, len(comparison.CURVE_SIZES))

    charts.filling(work, picture, "records", STEPS)


def meaning(settings: comparison.ComparisonSettings, after: Belief, power: Chart, group: Group) -> None:
    """How sure someone can become, and the best test of all."""
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.subheader("How sure can someone become?")
        words = "Their belief in A before the result."
        group.steps("How sure they were before, %", "prior", PERCENTS, FIRST_PERCENT, words)
        beliefs(after, settings.epsilon, settings.delta)
    with right:
        charts.chart(power, "power", "The best test anyone can build")


def methods(settings: comparison.ComparisonSettings, rows: tuple[comparison.Row, ...]) -> None:
    """All methods side by side, and how many records each needs."""
    st.subheader("Every method at these settings, side by side")
    st.caption(
        f"{DATASETS[settings.dataset].title}, n = {settings.n:,}, ε = {short(settings.epsilon)}, "
        f"δ = {tiny(settings.delta)}. Bandwidths come from public rules. Noise is a standard deviation; beside it "
        "stands how many times it is what it hides (a score, or a height; read off the simulated records, not private)."
    )
    measure(settings, rows)
    st.subheader(many := "How many records do you need?", help=meanings_in(many))
    records(settings)


def accounting(settings: comparison.ComparisonSettings, rows: tuple[comparison.Row, ...]) -> None:
    """What accountants charge, and what the budget is spent on."""
    spent = cache.picture(settings, budget_chart, rows, settings.delta)
    charts.chart(spent, "budget", "Where does the budget go?")
    st.subheader("Does it matter who counts? For researchers")
    accountants(settings)


layout.open_page(QUESTION, "pages/guarantee.py")
group = Group()
top = st.container()
with st.container(key="presented_handle"):  # on the page, since a phone has the sidebar in a drawer
    given = group.setting(DPGramsSpec, "epsilon", "epsilon")
with layout.sidebar():
    given |= group.setting(DPGramsSpec, "delta", "delta")
    dataset = group.dataset("modes", "dataset", "A synthetic mixture of the paper, drawn afresh.", None)
    n = group.records("n", dataset)
    with st.expander("Method settings", key="method_settings"):
        for name, key, words in (
            ("bandwidth_scale", "h_scale", "Multiplies each method's public bandwidth rule."),
            ("clip_multiplier", "clip", "How far a record may pull in DP-GRAMS (C* = multiplier · h^-(d+1))."),
            ("batch_size", "m", "Records per DP-GRAMS step (m); auto: n/log n, or all for tight."),
            ("n_steps", "steps", "Noisy ascent steps of DP-GRAMS (T); empty: log n."),
        ):
            given |= group.setting(DPGramsSpec, name, key, help_text=words)
group.switch("measure", "accountants")
group.start("tab", next(iter(TABS)), state.one_of_these(list(TABS)))
group.start("prior", FIRST_PERCENT, state.one_of_these(PERCENTS))  # its slider stands on the page, under the answer
wished = comparison.ComparisonSettings(dataset=dataset, n=n, **given)
# ε, δ and the belief before are valid whatever the rest is, so the answer never waits.  What it says about δ is no more
# than what is proven (privacy/meaning.py).
after = belief(int(st.session_state["prior"]) / 100, wished.epsilon, wished.delta)
exceptions = (
    f" (δ = {tiny(wished.delta)} leaves room for exceptions: a chance of at most "
    f"<b>{one_in(after.chance_above)}</b> to become more than a point surer)"
)
told = (
    f"At ε = {short(wished.epsilon)} someone who was <b>{percent(after.before)}</b> sure that your record is A and not "
    f'B could become at most <b class="private">{percent(after.most)}</b> sure once the result is out'
    f"{exceptions if after.chance_above > 0 else ''}.",
    f"At ε = {short(wished.epsilon)}, δ = {tiny(wished.delta)}: from <b>{percent(after.before)}</b> sure to at most "
    f'<b class="private">{percent(after.most)}</b>'
    + (f", and more than a point above with a chance of {one_in(after.chance_above)}." if after.chance_above else "."),
)
with top:
    text = layout.answer(*told)
works = layout.works(lambda: cache.comparison(wished))
words = "Below, the methods are compared at the last settings that worked."
settings = layout.good_or_last("guarantee", wished, works, comparison.ComparisonSettings(), words)
rows = cache.comparison(settings)
statuses = holds_for(rows)
place = exports.caption_beside(statuses)
budget = (wished.epsilon, wished.delta)
power = cache.picture(budget, power_chart, *budget, gaussian_multiplier(*budget))
if layout.presenting():
    with top:
        charts.plot(power.figure, "power_chart", power.sentence)
    state.write_url(group.keys)
    state.tell_refused()
layout.presented()
if settings == wished:  # otherwise the answer and the methods are not of the same settings
    compared = [(item.method, dict(item.options)) for item in comparison.candidates(settings)]
    with place:
        exports.simulation_files(
            [plan_run(method, settings.dataset, n=settings.n, **options) for method, options in compared],
            question=QUESTION,
            answer=text,
            charts=[power],
            guarantees=[(row.candidate.title, row.guarantee) for row in rows if row.candidate.method == "functional"],
            page="guarantee",
            notes=[statuses],
        )
audit_panel.start()
state.write_url([*group.keys, *audit_panel.KEYS])
state.tell_refused()
draw: dict[str, Callable[[], Any]] = {
    "meaning": partial(meaning, wished, after, power, group),
    "methods": partial(methods, settings, rows),
    "accounting": partial(accounting, settings, rows),
    "audit": audit_panel.audit_panel,
    "proof": proof,
}
charts.tabs("tab", TABS, draw)
