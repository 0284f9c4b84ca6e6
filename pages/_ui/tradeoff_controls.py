"""The controls of the Tradeoff page; their keys begin with ``lab_``."""

from __future__ import annotations

import streamlit as st

from dpgrams_core import DATASETS
from dpgrams_core.datasets import datasets_of
from dpgrams_core.datasets.released_twins import TwinName
from pages._ui import state
from pages._ui.controls import DELTAS, _Group
from pages._ui.tradeoff_choices import line, short_text, start_choices
from pages._ui.tradeoff_grids import ARMS, Arm, LabSettings, grid_of
from pages._ui.tradeoff_live import executor_words
from pages._ui.tradeoff_twins import lab_twins

KINDS = {"modes": "Modes", "regression": "Regression", "clusters": "Clusters"}
AUTO = "as in the paper"
DATA_HELP = (
    "Synthetic or public data only: a sweep over private data would itself be a release. The twin of a release that "
    "you paid for on My data is synthetic too, so it stands here as well."
)
TWIN_WORDS = (
    "Records drawn anew from your release for every run, not from the people: sweeping it costs nothing more. What "
    "the release shows counts as the truth."
)


def lab_controls() -> LabSettings:
    """The settings, in the sidebar; also starts the controls that stand on the page itself."""
    group = _Group()
    with st.sidebar:
        kind = group.choice("Problem", "lab_kind", list(KINDS), "What is looked for privately.", KINDS.__getitem__)
        dataset = _data(group, kind)
        st.markdown(":small[Methods]", help="Orange: private. Blue and dashed: without privacy.")
        arms = tuple(arm for arm in ARMS[kind] if _arm(group, arm))
        group._start(f"lab_n_{dataset}", grid_of(dataset)[0], short_text)
        sizes = line("Records, n", f"lab_n_{dataset}")
        group._start(f"lab_eps_{dataset}", grid_of(dataset)[1], short_text)
        epsilons = line("Privacy budgets, ε", f"lab_eps_{dataset}")
        runs = group.number("Runs for each point", "lab_runs", 20, int, "More runs, narrower bands.", 5)
        with st.expander("More settings", key="more_settings"):
            known = kind == "regression" or _switch(
                group, "lab_known", "Number known", "Whether the methods are told the true number, as in the paper."
            )
            slack = group.steps(
                "Slack, δ", "lab_delta", (AUTO, *DELTAS), AUTO, "Room for rare exceptions to ε (δ); far below 1/n."
            )
            seed = group.number("Seed", "lab_seed", 0, int, "Same seed, same data and noise, on any machine.", 1)
            st.caption(executor_words())
    start_choices(group, kind, dataset)
    paper_delta = 1e-6 if kind == "modes" or dataset == "blobs" else 1e-5
    settings = LabSettings(
        kind=kind,
        dataset=dataset,
        arms=arms,
        sizes=sizes,
        epsilons=epsilons,
        runs=runs,
        seed=seed,
        known=known,
        delta=paper_delta if slack == AUTO else slack,
    )
    state.write_url(group.keys)
    return settings


def _data(group: _Group, kind: str) -> str | TwinName:
    """The data set: a listed one, or the twin of a release of this session."""
    key, twins = f"lab_{kind}", lab_twins(kind)
    names = [*datasets_of(kind), *twins]
    if st.session_state.get(key, names[0]) not in names:  # its file is no longer open here
        del st.session_state[key]
    words = {name: DATASETS[name].title for name in datasets_of(kind)} | {name: twins[name][1] for name in twins}
    name = group.choice("Data set", key, names, DATA_HELP, words.__getitem__)
    if name not in twins:
        return name
    st.caption(TWIN_WORDS)
    return twins[name][0]


def _arm(group: _Group, arm: Arm) -> bool:
    group._start(arm.key, arm.first, state.one_of_these([True, False]))
    return st.checkbox(arm.title, key=arm.key, persist_state="session")


def _switch(group: _Group, key: str, label: str, help_text: str) -> bool:
    group.switch(key)
    return st.toggle(label, key=key, help=help_text, persist_state="session")
