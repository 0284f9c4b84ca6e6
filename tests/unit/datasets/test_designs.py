"""Other designs of data sets: "as run", as the paper's tables had them, and "public columns", fitted on no record."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpgrams_core import DATASETS, SpecError, load_dataset, run, score, sweep
from dpgrams_core.cli.main import main
from dpgrams_core.exports.script import simulation_script
from dpgrams_core.exports.settings import open_settings, spec_json, sweep_calls
from dpgrams_core.model.guarantee import GIVEN_REPRESENTATION
from dpgrams_core.model.run import Run
from dpgrams_core.sweeps.cell import data_seed, noise_seed
from dpgrams_core.sweeps.plan import plan_run
from dpgrams_core.sweeps.run import plan_cells
from dpgrams_core.sweeps.store import ResultsFile

AS_RUN, PUBLIC = "as run", "public columns"


def test_which_data_sets_have_it():
    having = {
        design: [name for name, info in DATASETS.items() if design in _names(info)] for design in (AS_RUN, PUBLIC)
    }
    assert having == {
        AS_RUN: [name for name in DATASETS if name not in ("iris", "uneven", "tumours")],
        PUBLIC: ["blobs", "iris", "digits", "mnist"],
    }
    for name, info in DATASETS.items():
        assert all(item.words for item in info.designs)
        assert bool(info.as_run) == (name in having[AS_RUN])


def _names(info):
    return [item.name for item in info.designs]


@pytest.mark.parametrize("name", ["blobs", "iris", "digits", "mnist"])
def test_public_columns_are_a_map_of_each_record_by_itself(name):
    """No other record has a part in a column: a part of the records has the columns that the whole has."""
    n = 700 if DATASETS[name].synthetic else None
    whole = load_dataset(name, n=n, design=PUBLIC)
    assert (whole.representation.fitted, whole.representation.caveats) == (False, ())
    assert DATASETS[name].condition(PUBLIC) is None
    assert DATASETS[name].condition() == GIVEN_REPRESENTATION
    usual = load_dataset(name, n=n)
    np.testing.assert_array_equal(whole.labels, usual.labels)
    if name != "mnist":  # every value is in its range: none had to be looked at to find it
        assert (np.abs(whole.points) <= 4).all()
    # The way back leads to the same standardised columns as usual, or for MNIST to those of the public pictures.
    means = np.stack([whole.points[whole.labels == k].mean(axis=0) for k in range(whole.n_clusters)])
    if name == "mnist":
        np.testing.assert_allclose(whole.representation.from_standard(whole.representation.centroids), means, atol=2e-3)
        assert abs(whole.candidates.mean()) < 1e-3
        assert abs(whole.candidates.std() - 1) < 1e-3
        assert abs(whole.points.std() - 1) > 1e-3  # the private ones were not fitted
    else:
        np.testing.assert_allclose(whole.representation.to_standard(means), whole.representation.centroids, atol=1e-9)
        np.testing.assert_allclose(whole.representation.centroids, usual.representation.centroids, atol=1e-9)


@pytest.mark.parametrize("name", ["blobs", "iris"])
def test_a_release_in_public_columns_is_proven_without_a_condition(name, seed):
    data = load_dataset(name, n=150, design=PUBLIC)
    assert run("functional_c", data, epsilon=1.0, n_clusters=3, seed=seed).guarantee.words == "proven"
    table = sweep("functional_c", name, n=[150], epsilon=[1.0], runs=1, seed=seed, design=PUBLIC)
    assert table["status"].tolist() == ["proven"]


@pytest.mark.parametrize(
    ("name", "design", "words"),
    [
        ("four_corners", "as printed", ("as printed", "'as run'", "four_corners")),
        ("iris", AS_RUN, (AS_RUN, "it must be 'public columns' for iris, or left out")),
        ("rnaseq", PUBLIC, (PUBLIC, "'as run' for rnaseq")),
        ("sinusoid", PUBLIC, (PUBLIC, "'as run' for sinusoid")),
        ("blobs", "As run", ("As run", "'as run'")),
        ("blobs", 1, ("design = 1", "'as run'")),
        ("blobs", ["as run"], ("design = ['as run']", "'as run' or 'public columns' for blobs, or left out")),
    ],
)
def test_one_that_a_data_set_does_not_have_is_refused_everywhere(name, design, words):
    method = {"modes": "dp_grams", "clusters": "kmeans", "regression": "pms"}[DATASETS[name].kind]
    for act in (
        lambda: load_dataset(name, n=100, design=design),
        lambda: plan_cells(method, name, n=[100], epsilon=[1.0], design=design),
        lambda: plan_run(method, name, n=100, design=design),
    ):
        with pytest.raises(SpecError, match="design") as caught:
            act()
        assert all(word in str(caught.value) for word in words)


def test_groups_are_of_equal_size_about_the_centres():
    for name, count in (("four_corners", 4), ("t_mixture", 5)):
        data = load_dataset(name, n=1000, seed=43, design=AS_RUN)
        assert (data.design, data.n) == (AS_RUN, 1000)
        assert np.bincount(data.labels).tolist() == [1000 // count] * count
        assert (np.abs(data.true_modes) % 3 == 0).all()  # the centres, and not the modes near them
        with pytest.raises(SpecError, match=f"n = 701 .* a multiple of {count}"):
            load_dataset(name, n=701, design=AS_RUN)
    # Two independent t variates: one is not large because the other is, as in a bivariate t with one chi-square.
    points = load_dataset("t_mixture", n=200_000, seed=0, design=AS_RUN)
    part = np.abs(points.points[points.labels == 1] - [6, 0])
    both = np.corrcoef(part.T)[0, 1]
    usual = load_dataset("t_mixture", n=200_000, seed=0)
    other = np.abs(usual.points[usual.labels == 1] - [6, 0])
    assert abs(both) < 0.02 < 0.1 < np.corrcoef(other.T)[0, 1]


def test_the_first_draws_are_those_of_a_plain_generator():
    rng = np.random.default_rng(42)
    wanted = rng.multivariate_normal([3, 3], np.eye(2), size=175)
    np.testing.assert_array_equal(load_dataset("four_corners", n=700, seed=42, design=AS_RUN).points[:175], wanted)
    rng = np.random.default_rng(42)
    wanted = 0.1 * rng.standard_t(15, size=(140, 2))
    np.testing.assert_array_equal(load_dataset("t_mixture", n=700, seed=42, design=AS_RUN).points[:140], wanted)


def test_blobs_stand_about_fixed_centres_and_digits_are_not_whitened():
    one, two = (load_dataset("blobs", n=5000, seed=seed, design=AS_RUN) for seed in (1041, 2041))
    corners = one.representation.centroids
    np.testing.assert_allclose(corners, two.representation.centroids, atol=0.05)
    np.testing.assert_allclose(np.abs(corners), np.abs(corners).mean(), atol=0.05)  # of a square
    digits = load_dataset("digits", design=AS_RUN)
    spread = digits.points.std(axis=0)
    assert (np.diff(spread) < 0).all()
    assert spread[0] > 2.5
    np.testing.assert_allclose(load_dataset("digits").points.std(axis=0), 1, atol=0.01)
    assert (np.abs(digits.points) <= digits.box[:, 1]).mean() > 0.99
    assert digits.picked == ()  # what was picked on other columns says nothing of these


@pytest.mark.parametrize(
    ("name", "n", "epsilon", "run_number", "seeds"),
    [
        ("four_corners", 700, 0.1, 0, (42, 42)),
        ("t_mixture", 5000, 5.0, 19, (45, 42 + 300 + 4000 + 19)),
        ("sinusoid", 600, 0.2, 3, (50_000_000 + 60_000_000 + 2_000 + 3, 70_000_000 + 60_000_000 + 2_000 + 3)),
        ("blobs", 2000, 0.2, 5, (3041, 41 + 20_000 + 2_000 + 5)),
        ("digits", 1797, 2.5, 7, (0, 48)),
        ("rnaseq", 801, 2.0, 1, (0, 13)),
    ],
)
def test_a_sweep_with_the_seed_0_has_the_seeds_of_the_tables(name, n, epsilon, run_number, seeds):
    method = {"modes": "dp_grams", "regression": "dp_pms", "clusters": "dp_grams_c"}[DATASETS[name].kind]
    plan = {"n": [n], "epsilon": [epsilon], "calibration": "as_run", "design": AS_RUN}
    (cell,), (other,) = (plan_cells(method, name, seed=seed, **plan) for seed in (0, 1))
    assert (data_seed(cell, run_number), noise_seed(cell, run_number)) == seeds
    assert (data_seed(other, run_number), noise_seed(other, run_number)) != seeds


def test_a_size_or_budget_that_no_table_has_is_drawn_by_derived_seeds():
    for n, epsilon in ((800, 0.1), (700, 0.3)):
        plan = {"n": [n], "epsilon": [epsilon], "calibration": "as_run", "design": AS_RUN}
        (cell,) = plan_cells("dp_grams", "four_corners", **plan)
        assert noise_seed(cell, 0) > 10_000


def test_it_goes_through_sweeps_files_scripts_settings_and_the_command_line(tmp_path, capsys):
    plan = {"n": [100], "epsilon": [1.0], "runs": 2, "design": AS_RUN, "calibration": "as_run"}
    path = tmp_path / "results.parquet"
    table = sweep("dp_grams", "four_corners", out=path, **plan)
    usual = sweep("dp_grams", "four_corners", out=path, **{**plan, "design": ""})
    assert table.mse[0] != usual.mse[0]
    (cell,) = plan_cells("dp_grams", "four_corners", **plan)
    with ResultsFile(path) as store:  # each is found again by its own design
        assert store.finished(cell).row()["mse"] == table.mse[0]
        (other,) = plan_cells("dp_grams", "four_corners", **{**plan, "design": ""})
        assert store.finished(other).row()["mse"] == usual.mse[0]
    (call,) = sweep_calls([cell])
    assert call[1]["design"] == AS_RUN
    assert open_settings(spec_json([call])).runs == (cell,)
    once = plan_run("dp_grams", "four_corners", n=100, seed=3, data_seed=5, design=AS_RUN, calibration="as_run")
    assert open_settings(spec_json([once])).runs == (once,)
    assert "design" not in spec_json([Run(method="dp_grams", dataset="four_corners", n=100)])
    script = simulation_script([once])
    assert "dg.load_dataset('four_corners', n=100, seed=5, design='as run')" in script
    data = load_dataset("four_corners", n=100, seed=5, design=AS_RUN)
    found = run("dp_grams", data, seed=3, calibration="as_run")
    words = ["run", "four_corners", "dp_grams", "--n", "100", "--data-seed", "5", "--seed", "3", "--json"]
    words += ["--design", AS_RUN, "--calibration", "as_run"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["score"]["mse"] == pytest.approx(score(found, data)["mse"])
    assert main([*words[:-4], "--design", "other"]) == 2
    assert "design = 'other'" in capsys.readouterr().err
