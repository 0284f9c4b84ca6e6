"""No seeded number changes by accident, whatever moves from one file to another.

Where a number is meant to change, ``PYTHONPATH=. .venv/bin/python tests/parity/test_golden_outputs.py`` writes anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpgrams_core import METHODS, load_dataset, run, score

FILE = Path(__file__).with_name("golden_outputs.json")
GOLDEN = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
# Small, and in one, two, four and six columns: a grid and a sketch release, a start in bins and a sparse one.
DATA = {
    "modes": ("four_corners", "t_mixture"),
    "regression": ("sinusoid", "three_component"),
    "clusters": ("blobs", "iris", "digits"),
}
CALIBRATIONS = ("experiments", "theorem", "tight", "as_run")
N = {"iris": None, "digits": 300}


def cases():
    """(name, method, data set, options) of every golden run."""
    for name, method in METHODS.items():
        calibrated = "calibration" in method.spec.__dataclass_fields__
        for dataset in DATA[method.kind]:
            for calibration in CALIBRATIONS if calibrated else (None,):
                options = {} if calibration is None else {"calibration": calibration}
                if method.private:
                    options |= {"epsilon": 1.0}
                words = "/".join(filter(None, (name, dataset, calibration)))
                yield words, name, dataset, options


def summary(method, dataset, options):
    """What a run gives, as numbers by name."""
    data = load_dataset(dataset, n=N.get(dataset, 400), seed=5)
    release = run(method, data, seed=7, **options)
    found = {"score/" + key: value for key, value in score(release, data).items()}
    for name in ("modes", "anchors", "trajectories", "curve", "significance"):
        value = getattr(release, name)
        if value is not None and np.size(value):
            flat = np.ravel(value)
            found[name] = [
                float(len(value)),
                float(flat.sum()),
                float(np.abs(flat).max()),
                float(flat[0]),
                float(flat[-1]),
            ]
    if release.surface is not None:
        numbers = np.ravel(release.surface.coefficients)
        found["coefficients"] = [
            float(numbers.size),
            float(numbers.sum()),
            float(np.abs(numbers).max()),
            float(numbers[0]),
        ]
    if release.noise_scale is not None:
        found["noise_scale"] = float(release.noise_scale)
    guarantee = release.guarantee
    found["guarantee"] = [guarantee.epsilon, guarantee.delta]
    return {"status": guarantee.status, **found}


CASES = {words: case for words, *case in cases()}


def test_every_method_and_calibration_has_its_golden_runs():
    assert set(GOLDEN) == set(CASES)
    assert {words.split("/")[0] for words in GOLDEN} == set(METHODS)


def agrees(words, found):
    wanted = GOLDEN[words]
    assert found.pop("status") == wanted["status"]
    assert set(found) == set(wanted) - {"status"}
    for name, value in found.items():
        # A slack for rounding may move the noise in its ninth digit, and another processor the last ones.
        np.testing.assert_allclose(value, wanted[name], rtol=1e-6, atol=1e-9, err_msg=f"{words}: {name}")


@pytest.mark.parametrize("words", sorted(CASES))
def test_a_seeded_run_gives_what_it_gave(words):
    agrees(words, summary(*CASES[words]))


@pytest.mark.parametrize(("processor", "threads", "of"), [("Nehalem", 1, ""), ("Haswell", 1, ""), ("", 2, "t_mixture")])
def test_a_seed_means_the_same_on_another_processor_and_with_more_threads(processor, threads, of):
    """OpenBLAS has other code for other processors, which may find other eigenvectors and adds up in another order."""
    code = (
        "import json, runpy, sys; here = runpy.run_path(sys.argv[1]); "
        "cases = {words: case for words, case in here['CASES'].items() if sys.argv[2] in words}; "
        "print(json.dumps({words: here['summary'](*case) for words, case in cases.items()}))"
    )
    command = [sys.executable, "-c", code, __file__, of]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "PYTHONPATH": str(Path(__file__).parents[2])}
    if processor:
        environment["OPENBLAS_CORETYPE"] = processor
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    for words, found in json.loads(done.stdout).items():
        agrees(words, found)


if __name__ == "__main__":
    made = {words: summary(*case) for words, *case in cases()}
    FILE.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(made)} runs")
