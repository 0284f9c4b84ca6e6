"""The small pilot behind the defaults of DP-PMS, on designs other than the paper's.

Run: .venv/bin/python -m benchmarks.pilot_regression tight sparse   (a calibration and a kind of starts; minutes)

Settings are drawn at random and each is measured on the same data and seeds.  The loss, in squared shares of the
box, is the mean over the curve of the squared distance to the nearest true branch (the paper's oracle loss) plus
the mean over the true branches of that to the nearest point of the curve, each distance cut at a fifth of the box.

One set of defaults serves all calibrations, but for the clip multiplier, whose meaning differs.  We took what is
among the best for both: the bandwidth rule of DP-GRAMS (0.15), a fifth of epsilon for the starts, 8 log n of them or
40 bins, a reach of one bandwidth, ceil(log n) steps, and two standard deviations of significance.  The last
matters most: with it the loss of ``tight`` with sparse starts falls from about 0.011 to 0.005, that of
``experiments`` without a proof.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from threadpoolctl import threadpool_limits

from dpgrams_core.datasets.regression import BranchMixture, Level
from dpgrams_core.methods.dp_pms import dp_pms
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.results import Dataset, Release
from dpgrams_core.specs_regression import DPPMSSpec

Array = np.ndarray
SETTINGS, SEEDS, CUT = 120, 2, 0.2
SIZES = ((600, 1.0), (2000, 0.5))


def rising(x: Array) -> Array:
    """The first of two crossing lines."""
    return 1 + 3 * x


def falling(x: Array) -> Array:
    """The second of two crossing lines."""
    return 4 - 3 * x


def bowl(x: Array) -> Array:
    """The upper branch of a parabola that lies on its side."""
    return 2.5 + 1.8 * np.sqrt(x)


def mirrored(x: Array) -> Array:
    """Its lower branch."""
    return 2.5 - 1.8 * np.sqrt(x)


def slow_wave(x: Array) -> Array:
    """One wave over the whole range, alone."""
    return 2.5 + 1.2 * np.cos(2 * np.pi * x)


WHOLE = (0.0, 1.0)
BOX = np.array([WHOLE, (0.0, 5.0)])
DESIGNS = {
    "crossing": BranchMixture((rising, falling), (WHOLE, WHOLE), 0.25),
    "parabola": BranchMixture((bowl, mirrored), (WHOLE, WHOLE), 0.25),
    "one wave": BranchMixture((slow_wave,), (WHOLE,), 0.3),
    "two steps": BranchMixture((Level(1.2), Level(3.6)), ((0.0, 0.65), (0.35, 1.0)), 0.3),
}
CHOICES = {
    "bandwidth_scale": (0.08, 0.11, 0.15, 0.2),
    "init_fraction": (0.1, 0.2, 0.35, 0.5),
    "init_bandwidth": (0.05, 0.08, 0.12),
    "n_steps": (2, 4, 8, 12),
    "merge_radius": (0.05, 0.1),
    "reach": (0.03, 0.06),
}
MORE: dict[str, dict[str, tuple[float, ...]]] = {
    "sparse": {"start_multiplier": (4.0, 8.0, 12.0)},
    "binned": {"n_bins": (10, 20, 40), "cleanup_radius": (0.1, 0.15, 0.2)},
    "experiments": {"clip_multiplier": (0.0005, 0.001, 0.002, 0.004)},
    "tight": {"clip_multiplier": (0.01, 0.03, 0.1), "significance": (0.001, 1.0, 2.0, 3.0)},
}


def loss(release: Release, data: Dataset) -> float:
    """Both ways between the curve and the true branches; see the top."""
    assert release.curve is not None
    assert data.truth is not None
    curve, side = release.curve, float(BOX[1, 1] - BOX[1, 0])
    if not len(curve):
        return 2 * CUT**2
    places = np.linspace(0.01, 0.99, 50)
    off_branch = np.nanmin(np.abs(curve[:, 1:] - data.truth.mode_table(curve[:, 0])), axis=1) / side
    branches = data.truth.mode_table(places)
    nearest = np.abs(places[:, None] - curve[None, :, 0])
    close = nearest <= nearest.min(axis=1, keepdims=True) + 1e-9
    gaps = np.abs(branches[:, :, None] - curve[None, None, :, 1]) / side
    missed = np.where(close[:, None, :], gaps, math.inf).min(axis=2)[np.isfinite(branches)]
    return float(np.mean(np.minimum(off_branch, CUT) ** 2) + np.mean(np.minimum(missed, CUT) ** 2))


def measure(spec_options: dict[str, object]) -> dict[str, float]:
    """Mean loss of one setting on each design."""
    found: dict[str, float] = {}
    for name, design in DESIGNS.items():
        values = []
        for n, epsilon in SIZES:
            for seed in range(SEEDS):
                points, _ = design.sample(n, np.random.default_rng(seed))
                data = Dataset(name=name, kind="regression", points=points, box=BOX, truth=design)
                spec = DPPMSSpec(epsilon=epsilon, bandwidth="rate", **spec_options)  # type: ignore[arg-type]
                values.append(loss(dp_pms(data, spec, SimulationNoise(seed)), data))
        found[name] = float(np.mean(values))
    return found


def main() -> None:
    """Measure random settings and print the ten best, then the mean loss of each choice over all others."""
    threadpool_limits(1)
    calibration, starts = sys.argv[1:3]
    rng = np.random.default_rng(0)
    choices = {**CHOICES, **MORE[starts], **MORE[calibration]}
    settings = [{name: values[rng.integers(len(values))] for name, values in choices.items()} for _ in range(SETTINGS)]
    results = []
    for setting in settings:
        if starts == "sparse":
            setting["reach"] = max(setting["reach"], 0.6 / (setting["start_multiplier"] * math.log(SIZES[0][0])))
        else:
            setting["reach"] = max(setting["reach"], 0.6 / setting["n_bins"])
        found = measure({"calibration": calibration, "starts": starts, **setting})
        results.append((float(np.mean(list(found.values()))), found, setting))
    print(f"{calibration}, {starts}: {SETTINGS} settings, n and epsilon {SIZES}, {SEEDS} runs each")
    for mean, found, setting in sorted(results, key=lambda item: item[0])[:10]:
        parts = " ".join(f"{value:.4f}" for value in found.values())
        print(f"{mean:.4f} ({parts})  " + " ".join(f"{name}={value:.4g}" for name, value in setting.items()))
    for name, values in choices.items():
        if name != "reach":
            means = [np.sort([mean for mean, _, s in results if s[name] == value])[:12].mean() for value in values]
            print(f"{name}: " + "  ".join(f"{v:g} {m:.4f}" for v, m in zip(values, means, strict=True)))


if __name__ == "__main__":
    main()
