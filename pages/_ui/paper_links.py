"""Links from the Paper page to the pages that show the same picture, with the settings that show it.

A link opens a tab of its own: the settings of a page that is open already are its visitor's, and stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from dpgrams_core.datasets import PICKED_CLIPS
from dpgrams_core.experiments import EXPERIMENTS
from dpgrams_core.paper import ONE_RUN
from pages._ui.paper_words import PARTS, PRINTED, WORDS, experiment_of, part_of

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
    # Both data sets are shown at this n and epsilon; of the first the paper says that h is Silverman's.
    shown = (("dataset", dataset), ("method", "dp_grams"), ("n", "1200"), ("epsilon", "1"), ("bandwidth", "silverman"))
    return Link(f"Modes: {words}", "", shown)


def _regression(dataset: str) -> Link:
    shown = (("reg_dataset", dataset), ("reg_method", "dp_pms"), ("reg_n", "500"), ("epsilon", "1"))
    return Link("Regression: branches and LOWESS", "regression", shown)


def _clusters(dataset: str) -> Link:
    shown = [("clu_dataset", dataset), ("clu_method", "dp_grams_c"), ("epsilon", "1")]
    if dataset in PICKED_CLIPS:
        shown.append(("clip", f"{PICKED_CLIPS[dataset]:g}"))
    else:
        shown.append((f"clu_n_{dataset}", "1000"))
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
    rows = [(words.labels, [_here(name), curve_link(name)]) for name, words in WORDS.items()]
    rows += [(labels, [link]) for labels, link in ELSEWHERE]
    lines = [f"| {labels} | {', '.join(link.markdown for link in links if link)} |" for labels, links in rows]
    return "\n".join(["| in the paper | where |", "|---|---|", *lines])
