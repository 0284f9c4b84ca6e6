"""The study of coverage: a cell, what it counts, and the table that is shipped."""

from __future__ import annotations

import numpy as np
import pytest

from dpgrams_core.cli.main import main
from dpgrams_core.studies import coverage


def test_a_region_holds_its_own_target_and_no_other() -> None:
    modes, unit = np.array([[0.0, 0.0], [9.0, 9.0]]), np.stack([np.eye(2)] * 2)
    assert coverage.held(modes, unit, np.array([[2.0, 0.0], [9.0, 12.0]])).tolist() == [True, False]
    assert coverage.held(modes, unit / 9, np.array([[2.0, 0.0], [9.0, 9.1]])).tolist() == [False, True]


def test_a_cell_counts_regions_and_false_peaks() -> None:
    row = coverage.coverage_cell("four_corners", 2000, 1.0, runs=4)
    assert row["all_found"] == 1
    assert row["false_peaks"] == row["off_mark"] == 0
    assert coverage.coverage_cell("t_mixture", 500, 0.25, runs=6)["off_mark"] > 0.1
    assert row["smoothed_low"] <= row["smoothed"] <= row["smoothed_high"]
    assert row["population"] > 0.5
    assert coverage.coverage_cell("uniform", 500, 1.0, runs=2).keys() == {
        "shape",
        "n",
        "epsilon",
        "runs",
        "false_peaks",
    }


def test_one_run_tells_nothing_of_how_far_a_mean_of_bands_may_be_off() -> None:
    row = coverage.coverage_cell("sinusoid", 500, 1.0, runs=1)
    assert np.isnan([row["smoothed_low"], row["smoothed_high"]]).all()


def test_the_shipped_table_has_every_cell() -> None:
    table = coverage.shipped_coverage()
    assert list(table[["shape", "n", "epsilon"]].itertuples(index=False, name=None)) == list(coverage.cells())
    assert (table["runs"] >= table["shape"].map(coverage.runs_of)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "n", "near"), [("unequal", 2000, 0.006), ("unequal_clusters", 500, 0.02)])
def test_a_cell_of_the_shipped_table_recomputes(shape: str, n: int, near: float) -> None:
    table = coverage.shipped_coverage()
    (kept,) = table[(table["shape"] == shape) & (table["n"] == n) & (table["epsilon"] == 1.0)].to_dict("records")
    for name, value in coverage.coverage_cell(shape, n, 1.0).items():
        assert kept[name] == (value if isinstance(value, str) else pytest.approx(value, abs=near)), name


def test_the_command_refuses_to_ship_a_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "coverage", "--runs", "2", "--ship"]) != 0
    assert "at least" in capsys.readouterr().err
