"""What the Paper page says about each printed table and figure: its label, what the paper claims, and what differs."""

from __future__ import annotations

from dataclasses import dataclass

from dpgrams_core.experiments import EXPERIMENTS
from dpgrams_core.methods.dp_pms_plan import CLIP_MULTIPLIER
from dpgrams_core.paper import ONE_RUN


@dataclass(frozen=True)
class Words:
    """One printed table or figure."""

    title: str
    labels: str  # the paper's own labels: the table, and figures that draw the same numbers
    claim: str  # what the paper says about it
    notes: tuple[str, ...] = ()  # where ours differs


# The parts of the page: its name on the control, and the experiments of ours behind it.
PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "modes": ("Modes", ("modes",)),
    "regression": ("Regression", ("regression",)),
    "clustering": ("Clusters", ("clustering",)),
    "kernels": ("Kernels", ("kernels",)),
    "sensitivity": ("Sensitivity", ("sensitivity", "sensitivity_regression", "sensitivity_clustering")),
}
PRINTED = ("modes", "regression", "clustering")  # the others are figures: nothing is printed
# The printed methods, and whether the paper claims privacy for them; none of these claims has a proof of its noise.
PRINTED_METHODS = {
    "dp_grams": ("DP-GRAMS", "nominal"),
    "dp_pms": ("DP-PMS", "nominal"),
    "dp_grams_c": ("DP-GRAMS-C", "nominal"),
    "dp_kmeans": ("DP-k-means", "nominal"),
    "mean_shift": ("Mean shift", "none"),
    "pms": ("PMS", "none"),
    "kmeans": ("k-means", "none"),
}
UNPROVEN = (
    "The printed DP-GRAMS, DP-PMS and DP-GRAMS-C numbers come from research code that differs from the printed "
    "algorithm and whose noise no proof covers: they say how accurate that code was, not how private, and the printed "
    "algorithm, run by us with the noise of subsec:exp-impl, falls short of it for modes and clusters."
)
EVIDENCE = "See the evidence on the Guarantee page"
SECONDS = "Seconds were taken on different machines; their ratio compares those as well."
ONE_DRAW = "All runs are on one draw of the data, as in the paper; only the noise changes."
OTHER_DRAW = (
    "Ours is another draw than the paper’s, and no standard error here holds that, so nobody is called clearly ahead."
)
FRESH_DRAWS = (
    "The printed mean shift has a standard error of 0 at every n, so the printed runs seem to share one draw of the "
    "data; ours draw anew for each run. The printed standard errors leave out the draw, so nobody is called clearly "
    "ahead here."
)
SPACE = (
    "The centroid MSE of ours was measured in the space of 50 principal components (our measuring copy), the printed "
    "one in the space of all genes, so the two are not compared; ARI and NMI are."
)
SMOOTH = "No sharp degradation near the default settings."
PICKED_CLIP = (
    "The paper picks one clip multiplier for each data set and does not print it. Our three runs of its algorithm take "
    "the best of our sensitivity figures at ε = 1, picked on the records, so their ε is nominal whatever their noise."
)
OUR_VALUES = (
    "The paper prints none of the clip multipliers, minibatch sizes and step sizes on its axes: the values are ours, "
    "with its default minibatch size, n / log n, among them."
)
OUR_CLIPS = (
    "The paper prints neither the clip multipliers nor the minibatch sizes on its axes: the values are ours, with its "
    f"default minibatch size, n / log n, among them; our default clip multiplier is {CLIP_MULTIPLIER['experiments']:g}."
)
SHARES = "Minibatch sizes are shares of n, as in the paper."

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
        (FRESH_DRAWS,),
    ),
    "regression_sinusoid": Words(
        "Two waves",
        "tab:pmr-2mix; fig:modal_reg_sin_threepanel draws the same numbers",
        "The error falls most between the smallest ε and a moderate one, and then nears that of PMS.",
        ("Our PMS takes Silverman’s rule and ten steps, which fit the printed baseline best; the paper says neither.",),
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
            "shift and k-means have one run, since nothing changes from run to run.",
            SPACE.replace("The centroid", "On RNA-Seq the centroid"),
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
}


def experiment_of(table: str) -> str:
    """The experiment of ours behind a printed table or figure."""
    if table == ONE_RUN:
        return "clustering"
    return next(name for name, item in EXPERIMENTS.items() if table in [one.name for one in item.tables])


def part_of(table: str) -> str:
    """The part of the page on which a printed table or figure stands."""
    return next(part for part, (_, names) in PARTS.items() if experiment_of(table) in names)
