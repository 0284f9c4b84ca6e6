"""Exported scripts, run as a user would run them."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd
import pytest

from dpgrams_core import METHODS, load_dataset, load_table, run, score
from dpgrams_core.exports.script import release_script, simulation_script
from dpgrams_core.own_data.record import release_record
from dpgrams_core.sweeps.plan import plan_run
from tests.printed import printed_by

KINDS = {"modes": ("four_corners", 200), "regression": ("sinusoid", 200), "clusters": ("iris", 150)}
OPTIONS = {
    "dp_grams": (("calibration", "tight"), ("epsilon", 2.0), ("n_modes", 4)),
    "mean_shift": (("bandwidth", "silverman"), ("bandwidth_scale", 1.1)),
    "functional": (("delta", 1e-7), ("epsilon", 0.7)),
}
# As many numerical threads as the tests have: sums of other lengths differ in the last digit.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_the_script_of_every_method_gives_the_same_numbers_to_the_last_digit(seed, tmp_path):
    planneds = []
    for name, method in METHODS.items():
        dataset, n = KINDS[method.kind]
        planneds.append(plan_run(name, dataset, n=n, data_seed=seed, seed=seed + 1, **dict(OPTIONS.get(name, ()))))
    lines = printed_by(simulation_script(planneds), tmp_path, **ONE_THREAD).splitlines()
    for planned in planneds:
        data = load_dataset(planned.dataset, n=planned.n, seed=planned.data_seed)
        release = run(planned.method, data, seed=planned.seed, **planned.settings)
        rows = release.modes if release.curve is None else release.curve
        assert lines.pop(0).startswith(METHODS[planned.method].title)
        assert [ast.literal_eval(lines.pop(0)) for _ in rows] == rows.tolist()
        guarantee = release.guarantee
        assert lines.pop(0) == f"guarantee: {guarantee.words} {guarantee.epsilon} {guarantee.delta}"
        assert lines.pop(0) == f"scores: {score(release, data)}"
    assert lines == []


def test_the_script_uses_public_names_only():
    script = simulation_script([plan_run("functional", "four_corners", n=500)])
    nodes = list(ast.walk(ast.parse(script)))
    assert not any(isinstance(node, ast.ImportFrom) for node in nodes)
    imported = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    assert imported == ["dpgrams_core"]


NASTY = 'pay""" \'; import os; os.abort() #{x}'


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpgrams_core.PrivacyLeakWarning")
@pytest.mark.parametrize(("method", "options"), [("functional", {}), ("dp_grams", {"calibration": "tight"})])
def test_the_script_of_a_release_prints_it_and_prices_it_again(rng, tmp_path, method, options):
    frame = pd.DataFrame({"age": rng.normal(50, 9, 400), NASTY: rng.normal(0, 1, 400)})
    data = load_table(frame, columns=["age", NASTY], box=[(0, 100), (-5, 5)])
    release = run(method, data, epsilon=1.5, **options)
    lines = printed_by(release_script(release_record(release, data)), tmp_path, **ONE_THREAD).splitlines()
    expected = release.modes.tolist()
    text = "\n".join(lines)
    assert "os.abort() #{x}" in text  # the name is shown, and was not run
    assert [ast.literal_eval(line) for line in lines if line.startswith("[")] == expected
    assert f"guarantee: proven epsilon 1.5 delta {release.guarantee.delta}" in text
    again = float(lines[-1].removeprefix("priced again: epsilon "))
    assert again == pytest.approx(release.guarantee.epsilon, rel=1e-6)
    assert np.isfinite(again)
