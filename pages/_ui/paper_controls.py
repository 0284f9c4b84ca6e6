"""The controls of the Paper page; their keys begin with ``paper_``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from dpgrams_core.experiments import EXPERIMENTS, Experiment
from dpgrams_core.figures import measure_words
from dpgrams_core.paper import ONE_RUN
from pages._ui import state
from pages._ui.controls import _Group
from pages._ui.paper_words import PARTS, PRINTED, WORDS, experiment_of, part_of


@dataclass(frozen=True)
class Place:
    """What the page shows: one printed table or figure, and one measure of it."""

    experiment: Experiment
    table: str
    measure: str

    @property
    def printed(self) -> bool:
        """Whether it is a table with printed numbers."""
        return self.experiment.name in PRINTED


def paper_controls() -> Place:
    """Part, table and measure, side by side."""
    group = _Group()
    with st.container(horizontal=True, gap="medium", key="paper_choices"):
        part = _pick(group, "Part of the paper", "paper_part", {name: title for name, (title, _) in PARTS.items()})
        tables = {name: words.title for name, words in WORDS.items() if part_of(name) == part}
        table = _pick(group, "Table or figure", f"paper_{part}", tables)
        experiment = EXPERIMENTS[experiment_of(table)]
        # The figures and the table of single runs have no seconds.
        timed = experiment.name in PRINTED and table != ONE_RUN
        measures = [name for name in experiment.measures if name != "seconds" or timed]
        words = {name: measure_words(name)[0] for name in measures}
        measure = _pick(group, "Score", f"paper_score_{'one_run' if table == ONE_RUN else experiment.name}", words)
    state.write_url(group.keys)
    return Place(experiment, table, measure)


def _pick(group: _Group, label: str, key: str, words: dict[str, Any]) -> str:
    """One of a few; the first is the default."""
    group._start(key, next(iter(words)), state.one_of_these(list(words)))
    picked = st.segmented_control(
        label, list(words), key=key, format_func=words.__getitem__, required=True, wrap=True, persist_state="session"
    )
    return picked or next(iter(words))  # no browser sends nothing here, and a visitor may
