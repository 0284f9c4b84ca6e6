"""Small examples of model, one of each function."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpgrams_core.model.checks import release_box
from dpgrams_core.model.environment import read_dask, read_settings
from dpgrams_core.model.format import time_words
from dpgrams_core.model.guarantee import (
    GIVEN_REPRESENTATION,
    STATUSES,
    Guarantee,
    bare_status,
    full_status,
    guarantee_fields,
    read_guarantee,
    status_words,
)
from dpgrams_core.model.measures import (
    centroid_mse,
    measure_of,
    measures_with_parts,
    nearest_centres,
    offered_measures,
    score_branches,
)
from dpgrams_core.model.places import ENGINE, place_of
from dpgrams_core.model.progress import time_left
from dpgrams_core.model.representation import standardise
from dpgrams_core.model.results import Release
from dpgrams_core.model.run import Run, plain
from dpgrams_core.model.units import in_units


def test_release_box():
    assert release_box([(0, 100)]).tolist() == [[0.0, 100.0]]


def test_read_settings():
    assert not (read_settings({"DPGRAMS_UPLOADS": "off", "DPGRAMS_LEDGER": "/tmp/ledger"}).uploads)


def test_read_dask():
    assert read_dask({"DPGRAMS_DASK": "tcp://127.0.0.1:8786"}).address == "tcp://127.0.0.1:8786"


def test_full_status():
    assert (
        full_status("proven"),
        full_status("proven", GIVEN_REPRESENTATION),
        full_status("nominal", GIVEN_REPRESENTATION),
    ) == ("proven", "proven, given the representation", "nominal")


def test_bare_status():
    assert (bare_status("proven, given the representation"), bare_status("as published")) == ("proven", "as published")


def test_status_words():
    """All other tests take the words from here."""
    words = {
        "proven": "proven",
        "proven, given the representation": "proven, given the representation",
        "as published": "as published: proof has a gap",
        "nominal": "nominal: not a proof",
        "none": "no guarantee",
    }
    assert {status: status_words(status) for status in words} == words
    assert set(STATUSES) < set(words)


def test_read_guarantee():
    claim = Guarantee(epsilon=1.0, delta=0.0, status="proven", statement="Proven.", caveats=("But.",))
    assert read_guarantee(guarantee_fields(claim)) == claim


def test_measure_of():
    assert measure_of("clusters", "ari").axis == "ARI (more is better)"


def test_offered_measures():
    assert list(offered_measures("regression")) == ["mse", "branch_recall", "coverage"]


def test_measures_with_parts():
    assert (measures_with_parts("clusters")) == ("centroid_mse", "inertia", "ari", "nmi")


def test_score_branches():
    from dpgrams_core.datasets.regression import SINUSOID, lower_wave

    x = np.linspace(0, 1, 200)
    one_branch = np.stack([x, lower_wave(x)], axis=1)
    assert score_branches(SINUSOID, one_branch, np.array([[0.0, 1.0], [-1.0, 2.5]])) == {
        "mse": 0.0,
        "branch_recall": 0.5,
        "spurious": 0.0,
        "coverage": 1.0,
    }


def test_nearest_centres():
    assert nearest_centres(np.array([[0.0], [0.9], [5.0]]), np.array([[0.0], [4.0]])).tolist() == [0, 0, 1]


def test_centroid_mse():
    assert centroid_mse(np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([[4.0, 1.0], [0.0, 1.0]])) == 1.0


def test_place_of():
    assert (place_of(ENGINE / "cli" / "main.py"), place_of(Path("/usr/lib/python3/json.py"))) == (
        "dpgrams_core/cli/main.py",
        None,
    )


def test_time_words():
    assert [time_words(seconds) for seconds in (0.2, 41, 100, 4000, 10_000, 200_000)] == [
        "1 second",
        "41 seconds",
        "2 minutes",
        "1.1 hours",
        "2.8 hours",
        "2.3 days",
    ]


def test_time_left():
    assert (time_left(0.25, 20.0), time_left(0.75, 30.0, before=0.5)) == (60.0, 30.0)


def test_standardise():
    assert standardise(np.array([[1.0, 5.0], [3.0, 5.0]]))[0].tolist() == [[-1.0, 0.0], [1.0, 0.0]]


def test_run():
    once = Run(method="functional", dataset="four_corners", n=500, epsilon=0.5, options=(("n_modes", 4),))
    assert once.settings == {"epsilon": 0.5, "n_modes": 4}


def test_plain():
    assert (plain(np.array([1.5, 2.0])), plain([1, [2]]), plain("x")) == ((1.5, 2.0), (1, (2,)), "x")


def test_in_units():
    bare = Release(method="mean_shift", modes=[[0.0]], spec=None, events=(), guarantee=None)
    assert in_units(bare, np.array([[-4.0, 4.0]]), np.array([[1900.0, 2000.0]])).modes.tolist() == [[1950.0]]
