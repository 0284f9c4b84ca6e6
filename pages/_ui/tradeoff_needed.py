"""The part of the Tradeoff page that goes from a wished score to the ε, or the n, that it needs."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dpgrams_core import METHODS
from dpgrams_core.cells import Cell
from dpgrams_core.costs import cell_seconds
from dpgrams_core.figures import needed_chart
from dpgrams_core.needed_budget import MEASURES, MOST_VALUES, USUAL_RUNS, NeededBudget, least_runs, stream_needed
from dpgrams_core.sweeps import MAX_RUNS
from pages._ui import frame, show
from pages._ui.tradeoff_choices import SOUGHT, chosen, number, one_arm, one_of_some, target_measures
from pages._ui.tradeoff_exports import result_files
from pages._ui.tradeoff_grids import ARMS, LabSettings
from pages._ui.tradeoff_runs import memory
from pages._ui.tradeoff_sections import checked, first_sentence, one_cell


def needed(settings: LabSettings) -> None:
    """The ε, or the n, that a wished score needs, as a bracket with its confidence."""
    top = st.container()
    with st.container(horizontal=True, gap="small"):
        words = target_measures(settings.kind)
        measure = one_of_some("I need", f"lab_t_score_{settings.kind}", words)
        side = "at least" if MEASURES[settings.kind][measure] else "at most"
        target = number(side, f"lab_target_{measure}")
        percent = number("in % of runs", "lab_percent")
        sought = chosen("lab_sought", SOUGHT, "What is sought")
    with st.container(horizontal=True, gap="small"):
        arm = one_arm(f"lab_t_arm_{settings.kind}", [arm for arm in ARMS[settings.kind] if METHODS[arm.method].private])
        if sought == "epsilon":
            held: dict[str, Any] = {"n": number("Records, n", f"lab_one_n_{settings.dataset}")}
        else:
            held = {"epsilon": number("at ε", "lab_one_eps")}
        low = number("Search from", f"lab_low_{sought}")
        high = number("to", f"lab_high_{sought}")
    runs_caption(percent)
    how: dict[str, Any] = {
        "low": low,
        "high": high,
        "target": target,
        "measure": measure,
        "probability": percent / 100,
        "seed": settings.seed,
        **held,
        **settings.options_of(arm),
    }

    def draw(found: NeededBudget | None) -> None:
        with top:
            words = f"Press Start: simulations will bracket the {'ε' if sought == 'epsilon' else 'n'} that this needs."
            text = frame.answer(first_sentence(found.sentence) if found else words)
        if found is not None:
            chart = needed_chart(found)
            show.chart(chart, "lab_needed")
            cell = one_cell(settings, arm, held.get("n", low), held.get("epsilon", high))
            result_files(f"needed_{sought}", cell, how, text, chart)

    kept = memory()
    checked(
        lambda executor: stream_needed(sought, arm.method, settings.dataset, executor=executor, store=kept, **how),
        ("needed", sought, arm.method, settings.dataset, *sorted(how.items())),
        draw,
        lambda found: found.finished,
        lambda found: (
            f"{counted(len(found.tried), 'value')} tried, at most {found.question.most_values}; "
            f"{found.question.runs:,} runs each."
        ),
        lambda: most_seconds(one_cell(settings, arm, held.get("n", high), held.get("epsilon", high)), percent / 100),
        by_itself=False,
    )


def most_seconds(cell: Cell, probability: float) -> float:
    """What a search costs at most: every value that it may try, at the largest n."""
    return MOST_VALUES * max(USUAL_RUNS, least_runs(probability)) * cell_seconds(cell)


def runs_caption(percent: float) -> None:
    """How many runs each tried value has; nothing for a share that is refused anyway."""
    least = least_runs(percent / 100) if 0 < percent < 100 else MAX_RUNS + 1
    if least <= MAX_RUNS:
        why = f": {percent:g} % cannot be shown with fewer" if least > USUAL_RUNS else ""
        st.caption(f"Every value that is tried has {max(USUAL_RUNS, least):,} runs{why}.")


def counted(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
