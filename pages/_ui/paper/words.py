"""What the Paper page says about each printed table and figure: its label, what the paper claims and what differs, and
links to the pages that show the same picture, with the settings that show it.

A link opens a tab of its own: the settings of a page that is open already are its visitor's, and stay.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pandas as pd

from dpgrams_core.datasets.registry import DATASETS
from dpgrams_core.methods.dp_pms.plan import CLIP_MULTIPLIER
from dpgrams_core.model.format import short
from dpgrams_core.model.places import ASSETS
from dpgrams_core.studies.paper.experiments import EXPERIMENTS, GROUPS
from dpgrams_core.studies.paper.tables import ONE_RUN


def readable(labels: str) -> str:
    """Labels of the paper's source as a reader takes them.

    >>> readable("tab:bivariate4mix-new; fig:bivariate_gauss_fourpanel (d) draws the same numbers")
    'table of four corners; four-panel figure of four corners (d) draws the same numbers'
    """
    return re.sub(r"\b(?:tab|fig):[\w-]+", lambda found: IN_THE_PAPER[found[0]], labels)


@dataclass(frozen=True)
class Words:
    """One printed table or figure."""

    title: str
    labels: str  # the paper's own labels: the table, and figures that draw the same numbers; none of a rival's table
    claim: str  # what the paper says about it; of a rival's table, what it is
    notes: tuple[str, ...] = ()  # where ours differs


RIVALS = GROUPS["rivals"]  # not of the paper
# The parts of the page: its name on the control, and the experiments of ours behind it.
PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "modes": ("Modes", ("modes",)),
    "regression": ("Regression", ("regression",)),
    "clustering": ("Clusters", ("clustering",)),
    "kernels": ("Kernels", ("kernels",)),
    "sensitivity": ("Sensitivity", ("sensitivity", "sensitivity_regression", "sensitivity_clustering")),
    "rivals": ("Rivals", RIVALS),
}
PRINTED = ("modes", "regression", "clustering")  # the others are figures: nothing is printed
PRINTED_NAMES = {"pms": "PMS"}  # of printed methods, where the paper has a name that is not our title
_SAID: dict[str, Any] = tomllib.loads((ASSETS / "paper_words.toml").read_text(encoding="utf-8"))
RESTS_ON, DIFFERS_TITLE, EVIDENCE, SECONDS = (
    str(_SAID[name]) for name in ("rests_on", "differs_title", "evidence", "seconds")
)
COLUMN_WORDS, AGAIN_WORDS, AGAIN_TOTALS, TITLES, WHAT_RAN, SURE, NEAR, IN_THE_PAPER = (
    dict[str, str](_SAID[name])
    for name in ("column_words", "again_words", "again_totals", "titles", "what_ran", "sure", "near", "in_the_paper")
)
DIFFERS: dict[str, list[list[str]]] = _SAID["differs"]
_SENTENCES: dict[str, str] = _SAID["sentences"]
FRESH_DRAWS, SPACE = _SENTENCES["fresh_draws"], _SENTENCES["space"]


def _words(said: dict[str, Any], title: str) -> Words:
    """The words of a table; a note may be the name of a sentence that several tables have."""
    notes = (_SENTENCES.get(note, note) for note in said.get("notes", ()))
    clip = short(CLIP_MULTIPLIER["experiments"])
    claim = said.get("claim", _SAID["no_claim"])
    return Words(title, said.get("labels", ""), claim, tuple(note.replace("{clip}", clip) for note in notes))


WORDS = {name: _words(said, said["title"]) for name, said in _SAID["tables"].items()} | {
    table.name: _words(_SAID["rivals"][name], DATASETS[table.dataset].title)
    for name in RIVALS
    for table in EXPERIMENTS[name].tables
}


def settings_table() -> pd.DataFrame:
    """The settings with which the clusters were run again, and where they come from."""
    used = {name: dict(DATASETS[name].as_run) for name in _SAID["plausible"]}
    shown = {
        "clip multiplier": "clip_multiplier",
        "starts / log n": "starts_per_log_n",
        "starts’ part of ε": "init_fraction",
        "DAP radius / h_DAP": "utility_steps",
    }
    rows = {
        DATASETS[name].title: {**{words: short(used[name][key]) for words, key in shown.items()}, "from": source}
        for name, source in _SAID["plausible"].items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def experiment_of(table: str) -> str:
    """The experiment of ours behind a printed table or figure."""
    if table == ONE_RUN:
        return "clustering"
    return next(name for name, item in EXPERIMENTS.items() if table in [one.name for one in item.tables])


def part_of(table: str) -> str:
    """The part of the page on which a printed table or figure stands."""
    return next(part for part, (_, names) in PARTS.items() if experiment_of(table) in names)


KINDS = {"modes": "modes", "regression": "regression", "clustering": "clusters"}  # experiment: the lab's problem


@dataclass(frozen=True)
class Link:
    """A page, by its place in the address, and settings for it."""

    words: str
    page: str
    settings: tuple[tuple[str, str], ...]

    @property
    def address(self) -> str:
        """Relative to the Paper page, so that it holds wherever the dashboard stands."""
        return f"./{self.page}?{urlencode(self.settings)}"

    @property
    def markdown(self) -> str:
        """The link as a page shows it."""
        return f"[{self.words}]({self.address})"


def _modes(dataset: str, words: str) -> Link:
    # Both data sets are shown at this n and epsilon.
    shown = (("dataset", dataset), ("method", "dp_grams"), ("calibration", "as_run"), ("n", "1200"), ("epsilon", "1"))
    return Link(f"Modes: {words}", "modes", shown)


def _regression(dataset: str) -> Link:
    shown = (("reg_dataset", dataset), ("reg_method", "dp_pms"), ("calibration", "experiments"), ("reg_n", "500"))
    return Link("Regression: branches and LOWESS", "regression", shown)


def _clusters(dataset: str) -> Link:
    shown = [("clu_dataset", dataset), ("clu_method", "dp_grams_c"), ("calibration", "experiments"), ("epsilon", "1")]
    picked = dict(DATASETS[dataset].picked)
    shown.append(("clip", f"{picked['clip_multiplier']:g}") if picked else (f"clu_n_{dataset}", "1000"))
    return Link("Clusters: the methods side by side", "clusters", tuple(shown))


# Every figure of the paper's experiments that is a picture of one run, and where it can be seen.
ELSEWHERE: tuple[tuple[str, Link], ...] = (
    ("fig:bivariate_gauss_fourpanel (a–c)", _modes("four_corners", "surface, starts and contours")),
    ("fig:bivariate_t_threepanel (a, b)", _modes("t_mixture", "surface and contours")),
    ("fig:bivariate_4mix_grid", _modes("four_corners", "the grid of twenty runs")),
    ("fig:bivariate_5mix_grid", _modes("t_mixture", "the grid of twenty runs")),
    ("fig:modal_reg_sin_threepanel (a, b)", _regression("sinusoid")),
    ("fig:modal_reg_threepanel_appendix (a, b)", _regression("three_component")),
    ("fig:blobs_cluster_comparison", _clusters("blobs")),
    ("fig:realworld_digits", _clusters("digits")),
    ("fig:realworld_mnist", _clusters("mnist")),
    ("fig:gene50_cluster_comparison", _clusters("rnaseq")),
)


def curve_link(table: str) -> Link | None:
    """The curve of a printed table on the Tradeoff page; None for what is not a curve over ε."""
    experiment = EXPERIMENTS[experiment_of(table)]
    if experiment.name not in PRINTED or table == ONE_RUN:
        return None
    kind = KINDS[experiment.name]
    dataset = next(item.dataset for item in experiment.tables if item.name == table)
    settings = (("lab_kind", kind), (f"lab_{kind}", dataset))
    return Link("Draw this curve on the Tradeoff page", "tradeoff", settings)


def _here(table: str) -> Link:
    part = part_of(table)
    words = f"Paper: {PARTS[part][0]}, {WORDS[table].title}"
    return Link(words, "paper", (("paper_part", part), (f"paper_{part}", table)))


def index() -> str:
    """Every table and figure of the paper's experiments with the links to where it can be seen, as a table."""
    rows = [(words.labels, [_here(name), curve_link(name)]) for name, words in WORDS.items() if words.labels]
    rows += [(labels, [link]) for labels, link in ELSEWHERE]
    lines = [f"| {readable(labels)} | {', '.join(link.markdown for link in links if link)} |" for labels, links in rows]
    return "\n".join(["| in the paper | where |", "|---|---|", *lines])
