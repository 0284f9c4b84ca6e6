"""The proof for readers: every number in it is recomputed, every path exists, every citation has its reference."""

from __future__ import annotations

import importlib
import math
import re

import numpy as np
import pytest
from scipy.special import ndtr

from dpgrams_core.cli.main import parser
from dpgrams_core.methods.as_run import Rounds
from dpgrams_core.methods.dp_grams.run import stabilised_score
from dpgrams_core.methods.dp_pms.starts import sparse_windows, window_counts
from dpgrams_core.model.checks import SMALLEST_EPSILON
from dpgrams_core.numerics.cell_sums import REMAINDER
from dpgrams_core.numerics.density import clipped_score
from dpgrams_core.numerics.kernels import KERNELS
from dpgrams_core.numerics.rounding import (
    LATTICE,
    SMALLEST_EIGENVALUE,
    UNIT,
    draw_epsilon,
    lift,
    summing_error,
    whitening_error,
)
from dpgrams_core.numerics.sketch import SKETCH_SENSITIVITY
from dpgrams_core.numerics.surface import MAX_COEFFICIENTS, surface_sensitivity
from dpgrams_core.own_data.bounds import LEAST_ROWS, bin_counts, coarse_edges, plan_range
from dpgrams_core.privacy.accountants import rounds_epsilon
from dpgrams_core.privacy.calibration import (
    exact_epsilon,
    gaussian_delta,
    gaussian_multiplier,
    nominal_sensitivity,
    published_sensitivity,
)
from dpgrams_core.privacy.events import ExponentialDraws, GaussianRounds
from dpgrams_core.privacy.noise import LATTICE_BITS
from tests.places import ROOT

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "assets" / "proof").glob("*.md"))}
PROOF = "\n".join(TEXTS.values())
GAUSSIAN = KERNELS["gaussian"]
# By name: the package holds a function called functional too.
functional, linear_rounds, dp_pms_starts, private_box, rounding = (
    importlib.import_module(f"dpgrams_core.{name}")
    for name in (
        "methods.functional.modes",
        "methods.dp_grams.rounds",
        "methods.dp_pms.starts",
        "own_data.bounds",
        "numerics.rounding",
    )
)


def flat(text: str) -> str:
    """The text without line breaks, so that a sentence can be searched."""
    return re.sub(r"\s+", " ", text)


def published_excess(d, clip, gap, m):
    """Change of the joint score over the sensitivity that ``theorem`` is calibrated to (section 4)."""
    floor = (2 * math.pi) ** (-d / 2)
    axis = np.eye(d)[0]
    starts = np.stack([0 * axis, gap * axis])
    worlds = []
    for record in (-axis, axis):
        points = np.zeros((m, d))
        points[-1] = record
        worlds.append(stabilised_score(GAUSSIAN, points, starts, 1.0, clip, floor)[0])
    change = worlds[0] - worlds[1]
    correlation = np.exp(-np.abs(np.subtract.outer([0.0, gap], [0.0, gap])))
    norm = math.sqrt(float(np.trace(change.T @ np.linalg.solve(correlation, change))))
    return norm / (published_sensitivity(GAUSSIAN.constants(d), 1.0, d, clip, floor) / m)


def shared_denominator_excess(n, bandwidths, multiplier=1.0):
    """Change of one score of ``experiments`` over 2 C_* / m, when one of n far records moves onto the start."""
    points = np.full((n, 1), float(bandwidths))
    moved = points.copy()
    moved[0] = 0.0
    scores = [clipped_score(GAUSSIAN, x, np.zeros((1, 1)), 1.0, multiplier)[0] for x in (points, moved)]
    return float(np.linalg.norm(scores[0] - scores[1])) / (nominal_sensitivity(multiplier, 1.0, 1) / n)


def rounds(count, multiplier, share):
    event = GaussianRounds(
        rounds=count, n=1000, batch_size=round(1000 * share), sensitivity=1.0, noise_scale=multiplier
    )
    return rounds_epsilon(event, 1e-6)


def started(draws, each, count, multiplier):
    event = GaussianRounds(rounds=count, n=1000, batch_size=1000, sensitivity=1.0, noise_scale=multiplier)
    return rounds_epsilon(event, 1e-6, ExponentialDraws(count=draws, epsilon_each=each, sensitivity=1.0))


def kindest(part):
    """What accountants give the ascent of the four corners, as run, at n = 1000 (section 4)."""
    return Rounds(n=1000, batch_size=144, n_steps=7, epsilon=part, delta=1e-6).kindest_prices


def slack(n):
    """Of the noise of a surface over ten by ten bandwidths at ε = 1, as a share of sqrt(2)."""
    multiplier = gaussian_multiplier(1.0, 1e-6)
    return surface_sensitivity(n, np.array([[0.0, 10.0]] * 2), 1.0, multiplier) / math.sqrt(2) - 1


NUMBER = r"(\d+(?:\.\d+)?)"
SCALED = r"(\d+\.\d+)\\times10\^{-(\d+)}"

# A pattern of the text whose groups are numbers, and what the last of them must be, from the others.
CHECKS = {
    "as run, one added": (
        rf"whose part is \${NUMBER}\$, an \$\\varepsilon\$ of \${NUMBER}\$ when a record is added",
        lambda part: kindest(part)[1],
    ),
    "as run, one replaced": (
        rf"whose part is \${NUMBER}\$.* removed and \${NUMBER}\$ when one is replaced",
        lambda part: kindest(part)[0],
    ),
    "multiplier at 1, 1e-6": (rf"z\((1), 10\^{{-(6)}}\) = {NUMBER}", lambda e, p: gaussian_multiplier(e, 10**-p)),
    "multiplier at 1, 1e-5": (rf"z\((1), 10\^{{-(5)}}\) = {NUMBER}", lambda e, p: gaussian_multiplier(e, 10**-p)),
    "multiplier at 0.1": (rf"z\((0\.1), 10\^{{-(6)}}\) = {NUMBER}", lambda e, p: gaussian_multiplier(e, 10**-p)),
    "the older formula": (
        rf"\\ln\(({NUMBER[1:-1]})/\\delta\)}}/\\varepsilon\$ would ask for \${NUMBER}\$ at "
        rf"\$\\varepsilon = 1\$, \$\\delta = 10\^{{-6}}",
        lambda factor: math.sqrt(2 * math.log(factor / 1e-6)),
    ),
    "full-batch rounds": (
        rf"{NUMBER} rounds at \$z = {NUMBER}\$ cost \$\\varepsilon = {NUMBER}\$ at \$\\delta = 10\^{{-6}}",
        lambda count, z: exact_epsilon(z / math.sqrt(count), 1e-6),
    ),
    "draws and rounds": (
        rf"{NUMBER} draws of range \${NUMBER}\$ before {NUMBER} rounds at \$z = {NUMBER}\$ cost "
        rf"\$\\varepsilon = {NUMBER}\$ together",
        lambda draws, each, count, z: started(int(draws), each, int(count), z),
    ),
    "sampled rounds": (
        rf"{NUMBER} rounds at \$z = {NUMBER}\$ on a share of \${NUMBER}\$ of the records cost \${NUMBER}\$ by \(b\)",
        lambda count, z, share: rounds(int(count), z, share),
    ),
    "the same as if batches were known": (
        rf"{NUMBER} rounds at \$z = {NUMBER}\$ on a share [^.]*\.145\$ of the records cost [^(]*\(b\) and \${NUMBER}\$",
        lambda count, z: exact_epsilon(z / math.sqrt(count), 1e-6),
    ),
    "the sketch": (
        rf"With \$N = {NUMBER}\$ one record moves the sum by at most \${NUMBER}\$",
        lambda points: math.sqrt(2 + 2 / (points - 1)),
    ),
    "the noise of the sketch": (rf"The noise is \$N\(0, \({NUMBER}\\,z\)\^2\)", lambda: SKETCH_SENSITIVITY),
    "slack at a thousand": (rf"\(1 \+ {NUMBER}\\times10\^{{-8}}\)\$ with a thousand", lambda: slack(1_000) * 1e8),
    "slack at a million": (rf"\(1 \+ {NUMBER}\\times10\^{{-7}}\)\$ with a million", lambda: slack(10**6) * 1e7),
    "remainder of a series": (rf"12! \\approx {NUMBER}\\times10\^{{-10}}\$ in the norm", lambda: REMAINDER * 1e10),
    "windows": (
        rf"{NUMBER} predictors spread evenly over the unit interval and {NUMBER} windows that reach {NUMBER} "
        rf"hundredths to either side overlap {NUMBER} times",
        lambda n, count, reach: sparse_windows(np.linspace(0, 1, int(n)), int(count), reach / 100).overlap,
    ),
    "bins of round 1": (rf"Round 1 has {NUMBER} bins", lambda: len(coarse_edges()) - 1),
    "noise of the bounds": (
        rf"\$\\varepsilon = {NUMBER}\$ and \$\\delta = 10\^{{-6}}\$ for a column of 100,000 rows buy two rounds with "
        rf"noise of standard deviation \${NUMBER}\$",
        lambda epsilon: plan_range(100_000, epsilon, 1e-6).sigma,
    ),
    "rows for bounds": (
        rf"Below {NUMBER} rows the estimate is refused",
        lambda: math.ceil(LEAST_ROWS * math.sqrt(2) * gaussian_multiplier(0.5, 1e-6)),
    ),
    "the floor": (rf"floor \$p\(0\) = {NUMBER}\$", lambda: 1 / math.sqrt(2 * math.pi)),
    "counterexample in one column": (
        rf"m = {NUMBER}\$: 999 records .* clip \$A = {SCALED}\$, two starts at \$0\$ and \${NUMBER}\$"
        rf".*? is \${NUMBER}\$ times the sensitivity",
        lambda m, clip, power, gap: published_excess(1, clip * 10**-power, gap, int(m)),
    ),
    "counterexample in two columns": (
        rf"with \$A = {SCALED}\$ and starts \${NUMBER}\$ apart, it is \${NUMBER}\$ times",
        lambda clip, power, gap: published_excess(2, clip * 10**-power, gap, 1000),
    ),
    "shared denominator": (
        rf"clip multiplier 1, {NUMBER} records five .* moves \${NUMBER}\$ times as far",
        lambda n: shared_denominator_excess(int(n), 5),
    ),
}


def found(pattern):
    match = re.search(pattern, flat(PROOF))
    assert match, f"the text no longer says {pattern}"
    return match


@pytest.mark.parametrize("name", CHECKS)
def test_every_number_is_what_the_code_computes(name):
    pattern, compute = CHECKS[name]
    *given, claimed = found(pattern).groups()
    # As many digits as are printed, and no fewer.
    places = len(claimed.partition(".")[2])
    value = compute(*(float(number) for number in given))
    assert f"{value:.{places}f}" == claimed


def test_no_decimal_number_is_left_unchecked():
    text, covered = flat(PROOF), set()
    for pattern, _ in CHECKS.values():
        match = re.search(pattern, text)
        for group in range(1, match.re.groups + 1):
            covered.update(range(*match.span(group)))
    loose = [match.group() for match in re.finditer(r"\d+\.\d+", text) if match.start() not in covered]
    assert loose == []


def test_the_excess_doubles_when_the_batch_is_four_times_as_large():
    found("a batch four times as large makes the excess about twice as large")
    small, large = (published_excess(1, 0.2612 / m, 1.304 / m, m) for m in (1_000, 4_000))
    assert large / small == pytest.approx(2, rel=0.05)


def test_the_half_line_of_step_three_gives_the_formula_and_grows_with_the_shift():
    found(r"exactly for \$t/\\sigma > s/2 \+ \\varepsilon/s")
    density = lambda t: math.exp(-t * t / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    for epsilon in (0.1, 1.0, 4.0):
        for s in (0.05, 0.3, 2.0):
            t = np.linspace(s / 2 + epsilon / s, s / 2 + epsilon / s + 40, 400_001)
            excess = np.exp(-((t - s) ** 2) / 2) - math.exp(epsilon) * np.exp(-(t**2) / 2)
            assert (excess >= -1e-15).all()  # the half-line collects what is positive
            area = float(np.trapezoid(excess, t)) / math.sqrt(2 * math.pi)
            assert gaussian_delta(epsilon, 1 / s) == pytest.approx(area, rel=1e-5, abs=1e-12)
            slope = (gaussian_delta(epsilon, 1 / (s + 1e-5)) - gaussian_delta(epsilon, 1 / (s - 1e-5))) / 2e-5
            assert slope == pytest.approx(density(s / 2 - epsilon / s), rel=1e-4, abs=1e-9)


def test_the_sensitivities_of_the_text_are_those_of_the_code():
    found(r"\\sigma = \\sqrt2\\,z\(\\varepsilon,\\delta\)")
    assert functional.SENSITIVITY == linear_rounds.SENSITIVITY == private_box.SENSITIVITY == math.sqrt(2)
    for words in ("below $10^{-10}$ of the largest are left out", "below $10^{-10}$ of the largest eigenvalue"):
        assert words in flat(PROOF)
    assert SMALLEST_EIGENVALUE == 1e-10


def test_the_slack_of_the_text_is_that_of_the_code():
    found(r"of \$b\$ records, is off by at most \$b\^2u\$")
    found(r"at most \$3un\$ in all")
    n, b = 50_000, 20_000
    assert summing_error(n, b) == pytest.approx(UNIT * (b**2 + 3 * n), rel=1e-3)
    found(r"10\^5u\\,\(\\sqrt m\\,\(m\+9\) \+ 10m\)")
    assert whitening_error(40) == pytest.approx(1e5 * UNIT * (math.sqrt(40) * 49 + 400))
    found(r"\$10mu\$ times the largest is added to each")
    assert lift(40) == 400 * UNIT
    found(r"a share \$4un\$ less than it is charged")
    assert 1 - draw_epsilon(1.0, 10**9) == pytest.approx(4 * UNIT * 10**9, rel=1e-6)


def test_differences_of_points_have_the_kernel_that_the_text_gives(rng):
    found(r"the differences \$p_i-p_j\$, \$i<j\$, of \$N\$ public points")
    for count, d in ((2, 1), (5, 3), (32, 6)):
        points = rng.normal(0, 1, (count, d))
        first, second = np.triu_indices(count, 1)
        for u in rng.normal(0, 3, (50, d)):
            direct = float(np.cos((points[first] - points[second]) @ u).mean())
            short = (abs(np.exp(1j * points @ u).sum()) ** 2 - count) / (count * (count - 1))
            assert direct == pytest.approx(short, abs=1e-12)
            assert direct >= -1 / (count - 1) - 1e-12


def discrete(spacing, reach=30.0):
    """The lattice within ``reach`` standard deviations, and the laws D and Q on it, sigma = 1."""
    y = spacing * np.arange(-round(reach / spacing), round(reach / spacing) + 1)
    weights = np.exp(-y * y / 2)
    edge = np.abs(y) - spacing / 2
    rounded = np.where(y == 0, 1 - 2 * ndtr(-spacing / 2), ndtr(-edge) - ndtr(-edge - spacing))
    return y, weights / weights.sum(), rounded


@pytest.mark.parametrize("spacing", [1.0, 0.5, 0.125])
def test_discrete_noise_is_rounded_continuous_noise_within_the_factors_of_the_text(spacing):
    y, law, rounded = discrete(spacing)
    density = spacing * np.exp(-y * y / 2) / math.sqrt(2 * math.pi)
    seen = np.log(rounded / density)
    assert (seen >= -(spacing**2) / 8 - 1e-9).all()
    assert (seen <= spacing**2 * y**2 / 8 + 1e-9).all()
    total = 1 + 2 * sum(math.exp(-2 * (math.pi * j / spacing) ** 2) for j in (1, 2, 3))
    np.testing.assert_allclose(law, density / total, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_exact_curve_of_discrete_noise_is_the_price_as_the_lattice_gets_finer(epsilon):
    # The curve of a shift by one sigma, from its sum over the lattice, against the formula of step 3.
    gaps = []
    for spacing in (0.25, 0.0625, 0.015625):
        _, law, _ = discrete(spacing)
        steps = round(1 / spacing)
        excess = law[:-steps] - math.exp(epsilon) * law[steps:]  # the same noise, shifted by one
        exact = float(excess[excess > 0].sum())
        xi = 10**2 * spacing**2 / 8  # within ten standard deviations, beyond which there is nothing to see
        assert exact <= math.exp(xi) * gaussian_delta(max(epsilon - 2 * xi, 0.0), 1.0) + 1e-15
        gaps.append(abs(exact - gaussian_delta(epsilon, 1.0)))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-3 * gaussian_delta(epsilon, 1.0)


def test_the_numbers_of_the_lattice_are_those_of_the_code():
    reach = int(found(r"up to \$(\d+)\\sigma\$ the two laws agree").group(1))
    assert int(found(r"e\^{\\pm(\d+)\\,s\^2/\\sigma\^2}").group(1)) == reach**2 / 8
    most = int(found(r"N = ([\d{},]+)\$ numbers").group(1).replace("{,}", ""))
    assert most == MAX_COEFFICIENTS
    power = int(found(r"< 10\^{-(\d+)}\$. Farther out").group(1))
    assert most * reach**2 / 8 * LATTICE**2 < 10.0**-power
    found(r"spacing \$s\\le2\^{-52}\\sigma")
    assert LATTICE == 2.0**-52 == 2.0 ** (1 - LATTICE_BITS)
    beyond = -int(found(r"chance below \$10\^{-(\d+)}").group(1))
    assert math.log10(most) + (math.log(2) - reach**2 / 2) / math.log(10) < beyond
    largest, both = (int(number) for number in found(r"up to (\d+) the release is.*?\+10\^{-(\d+)}").groups())
    assert beyond + largest / math.log(10) + 1 < -both
    margin = 10.0 ** -int(found(r"by a factor \$1\+10\^{-(\d+)}").group(1))
    for epsilon in (SMALLEST_EPSILON, 1.0):
        multiplier = gaussian_multiplier(epsilon, 1e-6)
        assert gaussian_delta(epsilon - 2 * 10.0**-power, multiplier) < 1e-6
        assert gaussian_delta(epsilon, multiplier / (1 + 2 * margin)) > 1e-6


def test_one_record_moves_the_counts_of_a_round_as_the_text_says(rng):
    found(r"takes 1 from at most one count and adds 1 to at most one other")
    edges, worst = coarse_edges(), 0.0
    for _ in range(200):
        values = rng.normal(0, 1, 30) * 2.0 ** rng.integers(-10, 10)
        other = values.copy()
        other[0] = rng.choice([0.0, -1e300, 1e300, 2.0**-20, np.nan, *values[:3]])
        limit = edges[-1] * (1 - 2**-20)
        change = [bin_counts(np.clip(rows, -limit, limit), edges) for rows in (values, other)]
        worst = max(worst, float(np.linalg.norm(change[0] - change[1])))
    assert worst == math.sqrt(2)


def test_the_joint_law_of_the_starts_changes_by_the_windows_that_hold_the_record(rng):
    # All probabilities of three windows on a small grid, exactly, for responses of one record replaced.
    found(r"e\^{\\varepsilon_{\\text{draw}}\\,r_i}")
    x = np.sort(rng.uniform(0, 1, 12))
    windows, grid, epsilon = sparse_windows(x, 3, 0.3), np.linspace(0, 1, 4), 0.7
    held = np.array([sum(i in rows for rows in windows.members) for i in range(12)])

    def log_law(responses):
        weights = epsilon * window_counts(responses, windows, grid, 0.2) / 2
        each = weights - np.log(np.exp(weights).sum(axis=1, keepdims=True))
        return each[0][:, None, None] + each[1][None, :, None] + each[2][None, None, :]

    for _ in range(300):
        responses = rng.uniform(0, 1, 12)
        row = int(rng.integers(12))
        other = responses.copy()
        other[row] = rng.uniform(0, 1)
        assert np.abs(log_law(responses) - log_law(other)).max() <= epsilon * held[row] + 1e-12
    assert windows.overlap == held.max()


def test_every_path_that_the_text_names_exists():
    names = re.findall(r"[`\s]((?:tests|dpgrams_core|assets)/[\w/.]*)", PROOF)
    assert len(names) >= 12
    for name in names:
        assert (ROOT / name).exists(), name
    for row in (line for line in TEXTS["6_check"].splitlines() if line.startswith("|")):
        folder = ""
        for name in re.findall(r"`([\w/.]+\.py)`", row):
            folder = name.rpartition("/")[0] or folder
            options = [ROOT / name, ROOT / folder / name, ROOT / "dpgrams_core" / name]
            assert any(path.exists() for path in options), name


def test_every_command_of_the_text_can_be_given():
    commands = re.findall(r"-m dpgrams_core (.+)", PROOF)
    assert len(commands) == 6
    for command in commands:
        parser().parse_args(command.split())


def test_every_citation_has_its_reference_and_every_reference_its_year():
    references = TEXTS["7_references"]
    entries = [line for line in references.splitlines() if line.startswith("- ")]
    assert all(re.search(r"\b(1934|20\d\d|Manuscript)\b", entry) for entry in entries)
    assert all(entry.count("*") == 2 for entry in entries)
    text = flat("\n".join(value for name, value in TEXTS.items() if name != "7_references"))
    cited = re.findall(r"((?:[A-ZÉ][\w-]+, )*[A-Z][\w-]+(?: and [A-Z][\w-]+)?) (?:\()?(1934|20\d\d)\b", text)
    assert len(cited) >= 8
    for names, year in cited:
        last = [name for name in re.split(r", | and ", names) if name]
        assert any(all(name in entry for name in last) and year in entry for entry in entries), (names, year)


def test_every_chapter_has_a_title_and_math_that_is_closed():
    assert [name.partition("_")[0] for name in TEXTS] == ["1", "2", "3", "3a", "3b", "4", "5", "6", "7"]
    for name, text in TEXTS.items():
        assert re.match(r"# \S.+\n", text), name
        assert text.count("$$") % 2 == 0, name
        # A single dollar opens or closes; code blocks hold none.
        for paragraph in text.replace("$$", "").split("\n\n"):
            assert paragraph.count("$") % 2 == 0, (name, paragraph[:60])


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (functional, ("Theorem", "Proof", "Balle & Wang", "Hall, Rinaldo")),
        (linear_rounds, ("Why sqrt(2) covers a round", "RKHS")),
        (private_box, ("Theorem", "Proof", "post-processing")),
        (dp_pms_starts, ("What a start costs", "largest overlap")),
        (rounding, ("The sum.", "Whitening.", "The lattice.", "Draws.")),
    ],
)
def test_the_argument_also_stands_beside_the_code(module, words):
    for word in words:
        assert word in flat(module.__doc__)
