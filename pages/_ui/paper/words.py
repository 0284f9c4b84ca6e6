"""What the Paper page says about each printed table and figure: its label, what the paper claims and what differs, and
links to the pages that show the same picture, with the settings that show it.

A link opens a tab of its own: the settings of a page that is open already are its visitor's, and stay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlencode

import pandas as pd

from dpgrams_core.datasets.registry import DATASETS
from dpgrams_core.methods.dp_pms.plan import CLIP_MULTIPLIER
from dpgrams_core.model.format import short
from dpgrams_core.studies.paper.experiments import EXPERIMENTS, GROUPS
from dpgrams_core.studies.paper.tables import ONE_RUN


def readable(labels: str) -> str:
    """Labels of the paper's source as a reader takes them.

    >>> readable("tab:four-new; fig:gauss_panel (d) draws it")
    'table “four new”; figure “gauss panel” (d) draws it'
    """
    kinds = {"tab": "table", "fig": "figure"}
    return re.sub(
        r"\b(tab|fig):([\w-]+)", lambda m: f"{kinds[m[1]]} “{m[2].replace('_', ' ').replace('-', ' ')}”", labels
    )


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
RESTS_ON = (
    "Rests on the manuscript's text and tables, and on the authors' public code of May 2026. The tables of modes come "
    "from a state of that code with two other settings (four corners) and four (t-bumps), and repeat to the digit. The "
    "DP-PMS that was printed is not public, and of the clusters not all settings are known. The code of the modes "
    "follows the printed algorithm, and differs from the text in a few places (below). One of them matters for "
    "privacy: clipped contributions are summed under noise that is set for their mean. So the printed numbers say how "
    "accurate that computation is; its ε is a name."
)
# What the columns of ours are, in a few words; never a status, which depends on the table and stands in the badge.
COLUMN_WORDS = {
    "pms_as_run": "again by us",
    "dp_kmeans_as_run": "again by us",
    "experiments": "the text, literally",
    "theorem": "the theorem’s noise",
    "tight": "noisy kernel sums",
}
AGAIN_WORDS = {
    "modes": "again by us",
    "regression": "of May 2026, run by us",
    "clustering": "by us, plausible settings",
}
AGAIN_TOTALS = {"modes": "", "regression": "the public code", "clustering": "plausible settings"}
TITLES = {
    "as_run": "As run, again by us",
    "experiments": "The text taken literally (“experiments”)",
    "theorem": "With the theorem’s noise (“theorem”)",
    "tight": "The paper’s algorithm itself (“tight”)",
    "functional": "Functional release",
}
DIFFERS_TITLE = "What differs between the text and what was run"
# Of each kind of table: what, in the text, as run (``WHAT_RAN``; how sure it is: ``SURE``), and what follows.
_ASCENT = (
    (
        "a record’s contribution",
        "clipped, then averaged over the minibatch",
        "divided by the minibatch’s kernel total, clipped at the same C, then summed",
        "the clip hardly ever acts, and the noise, set for a mean, is about m times smaller than C asks for",
    ),
    (
        "gradient clip and density floor",
        "in the algorithm; “not separately tuned or reported” in the experiments",
        "neither",
        "one record can move a step through the shared denominator without a bound",
    ),
    (
        "the noise’s formula",
        "has Δ_corr and the least of three terms",
        "2C for Δ_corr and one of the terms; where the ascent’s ε is at most 1, a limit for small ε, not in the text",
        "the limit is some per cent less noise than the formula",
    ),
    (
        "where the lattice ends",
        "public; for RNA-Seq a “robust R90 rule”",
        "R90: the 0.90 quantile of the records’ largest absolute coordinate",
        "not paid for; a tenth of the records lies outside",
    ),
    (
        "when every candidate is suppressed",
        "all are open again",
        "all that were never chosen",
        "nothing to speak of",
    ),
    ("minibatch size", "n / log n rounded up", "rounded down", "nothing to speak of"),
    (
        "settings of each data set",
        "the clip multiplier, by a pilot grid search",
        "number of starts, their part of ε, DAP’s radius as well",
        "picked on the records, not paid for",
    ),
)
_SILVERMAN = ("bandwidth h", "a rate rule, or Silverman’s", "Silverman’s rule on the records", "not paid for")
DIFFERS = {
    "modes": (
        *_ASCENT,
        _SILVERMAN,
        ("DAP counts records within", "h_DAP", "3 h_DAP", "a better start"),
        ("merge radius", "the bandwidth", "Silverman’s rule on the end points", "fewer modes that are not there"),
        (
            "the records",
            "drawn from the mixture; of the t-bumps a bivariate t",
            "groups of exactly equal size; of the t-bumps two independent t’s",
            "other records than the text’s; the column “as run” has them",
        ),
        (
            "“independent runs”",
            "–",
            "of the mechanism, on one draw of the records",
            "standard errors leave out the draw",
        ),
    ),
    "regression": (
        (
            "starts",
            "drawn from a public grid of responses",
            "drawn among the records themselves",
            "a start shows a record’s response",
        ),
        (
            "weight of a start’s draw",
            "the number of records near its x",
            "n, the number of all records",
            "a draw spends more than its part of ε",
        ),
        ("minibatch", "one for all starts of a round", "one for each start and round", "noise is set for fewer draws"),
        (
            "scale of the noise",
            "for T steps; no formula is printed",
            "for 2C/m, as if clipped contributions were averaged; they are summed, as printed",
            "it is about m times smaller than C asks for",
        ),
        ("correlation of the noise", "over x and y", "over y only", "–"),
        ("end points", "merged to a curve on a grid of x", "returned as they are", "errors are over the starts"),
        ("bandwidth h", "a rate rule, or Silverman’s", "Silverman’s rule on the responses", "not paid for"),
    ),
    "clustering": (
        *_ASCENT,
        _SILVERMAN,
        ("DAP counts records within", "h_DAP", "a multiple of it (below)", "another start"),
        ("columns", "standardised, principal components", "both fitted on the private records", "not paid for"),
        (
            "candidates of the digits",
            "the public lattice in six components: 47 million points with R90",
            "unknown; the printed time of a run allows about 15 thousand, and ours has 5⁶",
            "the start decides on the digits, so they do not come out",
        ),
        ("DP-k-means", "pure ε", "no bounds are given, so the library reads them off the records", "not paid for"),
        (
            "“independent runs”",
            "–",
            "of the mechanism, on one draw of the records (of blobs, for each n)",
            "standard errors leave out the draw",
        ),
    ),
}
WHAT_RAN = {"modes": "as run", "regression": "in the public code", "clustering": "in the public code, with R90"}
SURE = {
    "modes": "What was run is certain: with it every cell comes out, mean and standard error, to the last digit.",
    "regression": (
        "This is the public code of May 2026, run by us. The printed DP-PMS comes from code that is not public, "
        "probably nearer to the text: which of this holds for it is not known. Certain are the records and PMS, since "
        "PMS comes out to the digit."
    ),
    "clustering": (
        "Certain are the records of blobs, digits and RNA-Seq, and DP-k-means, which comes out to the digit there; of "
        "MNIST the paper’s draw of public pictures is not known. The rest is plausible and not certain: no cell of "
        "DP-GRAMS-C comes out to the digit with it, and other settings may fit as well. What was run here:"
    ),
}
# Where the settings of the clusters come from; the settings themselves are the data sets' (``DatasetInfo.as_run``).
PLAUSIBLE = {
    "blobs": "the public script; at n = 5,000 the print has worse starts, so fewer of them or a wider radius is likely",
    "digits": "the public script, which ran three components; not reproduced",
    "mnist": "the defaults of the public clustering function, and the radius that fits the print",
    "rnaseq": "the public script, which ran three components",
}


def settings_table() -> pd.DataFrame:
    """The settings with which the clusters were run again, and where they come from."""
    used = {name: dict(DATASETS[name].as_run) for name in PLAUSIBLE}
    shown = {
        "clip multiplier": "clip_multiplier",
        "starts / log n": "starts_per_log_n",
        "starts’ part of ε": "init_fraction",
        "DAP radius / h_DAP": "utility_steps",
    }
    rows = {
        DATASETS[name].title: {**{words: short(used[name][key]) for words, key in shown.items()}, "from": source}
        for name, source in PLAUSIBLE.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


# How near the columns “as run” come is counted; this is why.
NEAR = {
    "modes": "With the authors’ settings and seeds.",
    "regression": (
        "The code that made the printed DP-PMS is not public. The public code of May 2026, run by us on the same "
        "records, is better than the print in nearly every cell; it starts at records, which the text does not."
    ),
    "clustering": (
        "The settings of DP-GRAMS-C are plausible ones: blobs are near the print, MNIST and RNA-Seq within noise, and "
        "digits are not reproduced."
    ),
}
EVIDENCE = "See the evidence on the Guarantee page"
SECONDS = (
    "Seconds were taken on different machines, those of the clusters as run on a busy one; their ratio compares that, "
    "too."
)
ONE_DRAW = "All runs are on one draw of the data, as in the paper; only the noise changes."
OTHER_DRAW = (
    "The columns “as run” have the paper’s records. Our others have another draw, and no standard error here holds "
    "that, so nobody is called clearly ahead."
)
FRESH_DRAWS = (
    "The printed runs share one draw of the records for each n, and so does the column “as run”; our other columns "
    "draw anew for each run. The printed standard errors leave out the draw, so nobody is called clearly ahead here."
)
SURPLUS = (
    "The printed error is divided by the number of returned modes where these are too many, so at ε = 0.1 look at the "
    "error per true mode and at the modes that are not there, too."
)
SPACE = (
    "The centroid MSE of ours was measured in the space of 50 principal components (our measuring copy), the printed "
    "one in the space of all genes, so the two are not compared; ARI and NMI are."
)
SMOOTH = "No sharp degradation near the default settings."
PICKED_CLIP = (
    "The paper picks one clip multiplier for each data set and does not print it. Our runs of its text take the best "
    "of our sensitivity figures at ε = 1, picked on the records, so their ε is nominal whatever their noise."
)
OUR_VALUES = (
    "The paper prints none of the clip multipliers, minibatch sizes and step sizes on its axes: the values are ours, "
    "with its default minibatch size, n / log n, among them."
)
OUR_CLIPS = (
    "The paper prints neither the clip multipliers nor the minibatch sizes on its axes: the values are ours, with its "
    f"default minibatch size, n / log n, among them; our default clip multiplier "
    f"is {short(CLIP_MULTIPLIER['experiments'])}."
)
SHARES = "Minibatch sizes are shares of n, as in the paper."

RIVAL_CLAIMS = {
    "rivals": "Methods that a user would pick instead, told the same number of clusters, in the same public box.",
    "rivals_modes": "What most practitioners would do, a smoothed noisy histogram, and the paper’s algorithm.",
}
_NEIGHBOURS = "All claims are for one replaced record, but that of DP-k-means, which is for one added or removed."
RIVAL_NOTES = {
    "rivals": (
        "The hash tree is a variant of ours after the paper of Chang, Ghazi, Kumar and Manurangsi (2021), not the "
        "authors’ code: Gaussian noise on all levels, and a price for one replaced record. " + _NEIGHBOURS,
        "No method was tuned on the uneven clouds and the breast tumours; constants of the functional release were "
        "chosen on clusters made for it, after the blobs, the digits and RNA-Seq had been seen.",
    ),
    "rivals_modes": ("The cells of the histogram were chosen on other mixtures (benchmarks/pilot_histogram.py).",),
}

WORDS: dict[str, Words] = {
    "modes_four_corners": Words(
        "Four corners",
        "tab:bivariate4mix-new; fig:bivariate_gauss_fourpanel (d) draws the same numbers",
        "Most of the error goes away between the smallest ε and a moderate one, and more records help further.",
        (FRESH_DRAWS,),
    ),
    "modes_t_mixture": Words(
        "Five t-bumps",
        "tab:bivariate5mix-t; fig:bivariate_t_threepanel draws the same numbers",
        "A harder test: bumps with heavy tails and very different widths.",
        (FRESH_DRAWS, SURPLUS),
    ),
    "regression_sinusoid": Words(
        "Two waves",
        "tab:pmr-2mix; fig:modal_reg_sin_threepanel draws the same numbers",
        "The error falls most between the smallest ε and a moderate one, and then nears that of PMS.",
        (
            "PMS as run takes Silverman’s rule on the responses and log n steps, and is the printed one. Our other "
            "PMS, on fresh records, takes Silverman’s rule for the plane and ten steps, which come nearest to it.",
        ),
    ),
    "regression_three_component": Words(
        "Three steps",
        "tab:pmr-3mix; fig:modal_reg_threepanel_appendix draws the same numbers",
        "A steep change: at n = 2,000 the printed error falls from 0.638 at ε = 0.1 to 0.00017 at ε = 1.",
        ("DP-PMS starts from bins here, as in the paper’s appendix, since a branch has records over part of x only.",),
    ),
    "clustering_blobs": Words(
        "Four blobs",
        "tab:blobs_privacy_utility_table; fig:blobs_privacy_utility_all draws the same numbers",
        "Competitive with DP-k-means, and often stronger at moderate budgets.",
        (ONE_DRAW, OTHER_DRAW),
    ),
    "clustering_digits": Words(
        "Digits",
        "tab:digits_privacy_utility_table; fig:privacy_utility_digits_all draws the same numbers",
        "A clear separation from DP-k-means at every ε.",
        (ONE_DRAW, PICKED_CLIP),
    ),
    "clustering_mnist": Words(
        "MNIST",
        "tab:mnist_privacy_utility_table; fig:privacy_utility_mnist_all draws the same numbers",
        "Close to mean shift without privacy at ε = 1, and stronger than DP-k-means.",
        (ONE_DRAW, PICKED_CLIP),
    ),
    "clustering_rnaseq": Words(
        "Cancer RNA-Seq",
        "tab:gene50_privacy_utility_table; fig:gene50_privacy_utility_all draws the same numbers",
        "A sharp improvement from ε = 0.5 to ε = 1, then near the range without privacy.",
        (ONE_DRAW, PICKED_CLIP, SPACE),
    ),
    ONE_RUN: Words(
        "One run at ε = 1",
        "tab:real_world_clustering_updated",
        "Close to mean shift without privacy in ARI and NMI, and much stronger than DP-k-means on RNA-Seq.",
        (
            "The printed values are of a single run and have no standard error; ours are means of all our runs. Mean "
            "shift and k-means have one run, since nothing changes from run to run. The columns “as run” have the "
            "records and seeds of the large tables, which the single run of blobs does not have.",
            SPACE.replace("The centroid MSE", "On RNA-Seq the centroid MSE"),
        ),
    ),
    "fig:kernel_order_validation": Words(
        "Four corners, three kernels",
        "fig:kernel_order_validation",
        "The order-4 kernel has no systematic advantage, so the Gaussian one is the default.",
        (
            "All kernels share the bandwidth of the paper’s rule h-opt; the paper does not say its smoothness β, and "
            "ours is 3. Its order-4 kernel is the Legendre one, which jumps at its edge and so breaks its own "
            "assumption on kernels; the smooth order-4 Gaussian kernel stands beside it.",
        ),
    ),
    "fig:bivariate_4mix_hparam": Words(
        "Four corners", "fig:bivariate_4mix_hparam and fig:bivariate_4mix_eta", SMOOTH, (OUR_VALUES,)
    ),
    "fig:bivariate_5mix_hparam": Words(
        "Five t-bumps", "fig:bivariate_5mix_hparam and fig:bivariate_5mix_eta", SMOOTH, (OUR_VALUES,)
    ),
    "fig:sin_modal_hparam": Words("Two waves", "fig:sin_modal_hparam", SMOOTH, (OUR_CLIPS,)),
    "fig:modal_hparam_threecomp": Words("Three steps", "fig:modal_hparam_threecomp", SMOOTH, (OUR_CLIPS,)),
    "fig:blobs_subsample_clip": Words(
        "Four blobs",
        "fig:blobs_subsample_clip and fig:blobs_subsample_m",
        "The scores vary smoothly, and a broad range of clip multipliers, 1 among them, is near the best.",
        (SHARES, ONE_DRAW),
    ),
    "fig:digits_hparam_clip": Words(
        "Digits", "fig:digits_hparam_clip and fig:digits_hparam_minibatch", SMOOTH, (SHARES, ONE_DRAW)
    ),
    "fig:mnist_subsample_clip_grid": Words(
        "MNIST",
        "fig:mnist_subsample_clip_grid and fig:mnist_subsample_m_grid",
        "Nothing about it: the scores are drawn and left to the reader.",
        ("The paper does not print the values it tried; these are ours.", ONE_DRAW),
    ),
    "fig:gene50_hparam_clip": Words(
        "Cancer RNA-Seq",
        "fig:gene50_hparam_clip and fig:gene50_hparam_minibatch",
        SMOOTH,
        (SHARES, ONE_DRAW, SPACE),
    ),
    **{
        table.name: Words(DATASETS[table.dataset].title, "", RIVAL_CLAIMS[name], RIVAL_NOTES[name])
        for name in RIVALS
        for table in EXPERIMENTS[name].tables
    },
}


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
    return Link(f"Modes: {words}", "", shown)


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
