"""The proof for readers: every number in it is recomputed, every path exists, every citation has its reference."""

from __future__ import annotations

import importlib
import math
import re
from pathlib import Path

import numpy as np
import pytest

from dpgrams_core.__main__ import parser
from dpgrams_core.density import clipped_score
from dpgrams_core.kernels import KERNELS
from dpgrams_core.methods.dp_grams import stabilised_score
from dpgrams_core.privacy.accountants import rounds_epsilon
from dpgrams_core.privacy.calibration import (
    exact_epsilon,
    gaussian_delta,
    gaussian_multiplier,
    nominal_sensitivity,
    published_sensitivity,
)
from dpgrams_core.privacy.events import GaussianRounds
from dpgrams_core.privacy.noise import SMALLEST_EIGENVALUE
from dpgrams_core.sketches import SKETCH_SENSITIVITY
from dpgrams_core.surfaces import EIGENVALUE_FLOOR, axis_basis, box_bases, coefficients

ROOT = Path(__file__).parents[2]
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "assets" / "proof").glob("*.md"))}
PROOF = "\n".join(TEXTS.values())
GAUSSIAN = KERNELS["gaussian"]
# By name: the package holds a function called functional too.
functional, linear_rounds = (
    importlib.import_module(f"dpgrams_core.methods.{name}") for name in ("functional", "linear_rounds")
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


NUMBER = r"(\d+(?:\.\d+)?)"
SCALED = r"(\d+\.\d+)\\times10\^{-(\d+)}"

# A pattern of the text whose groups are numbers, and what the last of them must be, from the others.
CHECKS = {
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
    allowance = 10.0 ** -int(found(r"a length of \$\\sqrt2\\,\(1 \+ 10\^{-(\d+)}\)").group(1))
    assert math.sqrt(2) * (1 + allowance) == functional.SENSITIVITY
    assert math.sqrt(2) == linear_rounds.SENSITIVITY
    for words in ("below $10^{-10}$ of the largest are left out", "below $10^{-10}$ of the largest eigenvalue"):
        assert words in flat(PROOF)
    assert EIGENVALUE_FLOOR == SMALLEST_EIGENVALUE == 1e-10


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


def test_rounding_is_as_small_as_the_text_says(rng):
    limit, order = (
        10.0 ** -int(power) for power in found(r"longer than \$1 \+ 10\^{-(\d+)}.*less than \$10\^{-(\d+)}").groups()
    )
    for h in (0.3, 1.0, 3.0):
        values = axis_basis(-5, 5, h).values(rng.uniform(-12, 12, 50_000))
        assert math.sqrt(float((values**2).sum(axis=0).max())) <= 1 + limit
    n = int(found(r"the result of ([\d,]+) records").group(1).replace(",", ""))
    points, bases = rng.normal(0, 1, (n, 2)), box_bases(np.array([[-5.0, 5.0]] * 2), 1.0)
    change = coefficients(points, bases) - coefficients(points[rng.permutation(n)], bases)
    noise = functional.SENSITIVITY * gaussian_multiplier(1.0, 1e-6)
    assert 0 < np.linalg.norm(change) < order * noise


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
    assert len(commands) == 3
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
    assert [name[0] for name in TEXTS] == list("1234567")
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
    ],
)
def test_the_argument_also_stands_beside_the_code(module, words):
    for word in words:
        assert word in flat(module.__doc__)
