"""Whatever comes out for a user's table is in the units of its columns; the scaling by the box happens inside."""

from __future__ import annotations

import io
import json
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpgrams_core as dg
from dpgrams_core import METHODS
from dpgrams_core.cli.main import main
from dpgrams_core.exports.report import RELEASE_ORIGIN, stakeholder_report
from dpgrams_core.exports.script import release_script
from dpgrams_core.exports.settings import spec_json
from dpgrams_core.figures.own_data import Units, branches_map, surface_map
from dpgrams_core.model.results import Dataset
from dpgrams_core.model.units import in_units
from dpgrams_core.numerics.scaling import SurfaceInUnits
from dpgrams_core.own_data.kept import pack_release, read_kept, unpack
from dpgrams_core.own_data.postprocess import climbs, released_branches, released_clusters, released_modes
from dpgrams_core.own_data.record import recorded, release_record
from dpgrams_core.own_data.release import data_identity, release
from dpgrams_core.own_data.twin import released_twin, twin
from dpgrams_core.privacy.ledger.book import Ledger

SCALE, SHIFT = np.array([1000.0, 0.02]), np.array([-7e5, 300.0])
BOX = np.array([[0.0, 10.0], [-1.0, 1.0]])
CENTRES = np.array([[2.5, -0.5], [7.5, 0.5]])
QUICK = {
    "noisy_kmeans": {"n_clusters": 2},
    "hash_tree": {"n_clusters": 2},
    "dp_grams": {"calibration": "tight", "n_steps": 4},
    "dp_grams_c": {"calibration": "tight", "n_steps": 4},
    "dp_pms": {"calibration": "tight", "n_steps": 2},
    "kmeans": {"n_clusters": 2},
    "dp_kmeans": {"n_clusters": 2},
}
OLD = Path(__file__).parent / "kept"


def frame_of(seed=0, n=300):
    rng = np.random.default_rng(seed)
    points = CENTRES[rng.integers(0, 2, n)] + rng.normal(0, [0.5, 0.1], (n, 2))
    return pd.DataFrame(points, columns=["a", "b"])


def own(frame, box, kind):
    if kind == "regression":
        return dg.load_table(frame, columns=["a"], response="b", box=box)
    return dg.load_table(frame, columns=["a", "b"], box=box, kind=kind)


def moved(places):
    return np.asarray(places) * SCALE + SHIFT


def other_units(frame):
    return pd.DataFrame(moved(frame.to_numpy()), columns=list(frame)), moved(BOX.T).T


@pytest.mark.filterwarnings("ignore::dpgrams_core.PrivacyLeakWarning")
@pytest.mark.parametrize("method", METHODS)
def test_other_units_of_the_columns_give_the_same_in_these_units(method):
    kind, frame = METHODS[method].kind, frame_of()
    there, box = other_units(frame)
    # Not private, so that both runs have the same noise.
    one, two = (replace(own(f, b, kind), private=False) for f, b in ((frame, BOX), (there, box)))
    first, second = (dg.run(method, data, seed=3, **QUICK.get(method, {})) for data in (one, two))
    assert len(first.modes) or first.curve is not None
    for name in ("modes", "curve", "anchors", "trajectories"):
        mine, theirs = getattr(first, name), getattr(second, name)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            # In an empty place a step of tight is a ratio of two heights that are nearly 0, and rounding shows.
            near = 5e-3 if name == "trajectories" and first.heights is not None else 1e-6
            np.testing.assert_allclose((theirs - SHIFT) / SCALE, mine, atol=near, err_msg=name)
    if first.significance is not None:
        np.testing.assert_allclose(first.significance, second.significance, rtol=1e-6)
    if first.mode_covariances is not None:  # what was found in other draws differs by rounding alone
        squared = np.outer(SCALE, SCALE)
        np.testing.assert_allclose(second.mode_covariances / squared, first.mode_covariances, rtol=1e-3, atol=1e-9)
        np.testing.assert_allclose(second.half_widths / SCALE, first.half_widths, rtol=1e-3)
    assert first.guarantee == second.guarantee
    assert first.events == second.events
    if first.surface is not None:
        same_surface(first, second)
    if first.pooled is not None and kind != "regression":  # those of regression stand in the unit square
        axes = list(np.linspace(*BOX.T, 9).T)
        there = list(moved(np.stack(axes, axis=1)).T)
        seen = [first.pooled.grid_in_noise(axes, BOX), second.pooled.grid_in_noise(there, box)]
        np.testing.assert_allclose(*seen, atol=1e-4)


def same_surface(first, second):
    x = np.random.default_rng(1).uniform(*BOX.T, (40, 2))
    one, two = first.surface, second.surface
    assert isinstance(one, SurfaceInUnits)
    np.testing.assert_allclose(two.box, moved(BOX.T).T)
    np.testing.assert_allclose(two.bandwidths, one.bandwidths * SCALE)
    np.testing.assert_allclose(two.value(moved(x)), one.value(x), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(two.noise_at(moved(x)), one.noise_at(x), rtol=1e-6)
    np.testing.assert_allclose(two.density(moved(x)) * SCALE.prod(), one.density(x), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(two.gradient(moved(x)) * SCALE, one.gradient(x), rtol=1e-5, atol=1e-5)
    step = 1e-5 * (BOX[:, 1] - BOX[:, 0])
    slope = [(one.value(x + e) - one.value(x - e)) / (2 * e.sum()) for e in np.diag(step)]
    np.testing.assert_allclose(one.gradient(x), np.stack(slope, axis=1), rtol=1e-3, atol=1e-2)
    samples = [twin(surface, n=200, seed=1) for surface in (one, two)]
    np.testing.assert_allclose((samples[1].points - SHIFT) / SCALE, samples[0].points, atol=1e-6)
    np.testing.assert_allclose(samples[1].box, two.box)
    assert samples[1].scaled
    if first.curve is not None:
        readings = [released_branches(item, 1.5).places for item in (first, second)]
    else:
        readings = [released_modes(item, 1.35).places for item in (first, second)]
        centres = [released_clusters(item, 2).places for item in (first, second)]
        np.testing.assert_allclose((centres[1] - SHIFT) / SCALE, centres[0], atol=1e-6)
        paths = [climbs(item, 1.0, 3) for item in (first, second)]
        np.testing.assert_allclose((paths[1] - SHIFT) / SCALE, paths[0], atol=1e-6)
    np.testing.assert_allclose((readings[1] - SHIFT) / SCALE, readings[0], atol=1e-6)


def near(places):
    """Whether places lie at the two groups of the table in other units."""
    share = (np.asarray(places, dtype=float) - SHIFT) / SCALE
    distance = np.linalg.norm((share[:, None] - CENTRES) / [10, 2], axis=-1)
    return len(places) >= 2 and distance.min(axis=1).max() < 0.1 and len(set(distance.argmin(axis=1))) == 2


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("functional", {}),
        ("functional_c", {"n_clusters": 2}),
        ("functional_regression", {}),
        ("dp_grams", QUICK["dp_grams"]),
    ],
)
def test_a_paid_release_its_record_its_exports_and_what_is_kept_are_in_these_units(method, options, tmp_path):
    data = own(*other_units(frame_of(n=3_000)), METHODS[method].kind)
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    paid = release(method, data, ledger, epsilon=2.5, **options)
    places = paid.release.modes if paid.release.curve is None else paid.release.curve
    assert len(places)
    inside = (places - SHIFT) / SCALE
    assert ((inside >= BOX[:, 0] - 1e-6) & (inside <= BOX[:, 1] + 1e-6)).all()
    if method in ("functional", "functional_c"):
        assert near(places)
    ((_, kept),) = read_kept(ledger, data_identity(data)).releases
    record = release_record(paid.release, data)
    assert kept.record == record
    np.testing.assert_array_equal(kept.release.modes, paid.release.modes)
    np.testing.assert_array_equal(record.rows, places)
    np.testing.assert_array_equal(record.box, data.box)
    assert json.loads(spec_json(record))[record.what] == places.tolist()
    assert repr(places[0].tolist())[1:-1] in release_script(record)


@pytest.mark.parametrize("kind", ["modes", "regression"])
def test_pictures_and_their_report_are_in_these_units(kind):
    data = replace(own(*other_units(frame_of(n=3_000)), kind), private=False)
    units = Units(data.columns, data.box)
    if kind == "modes":
        found = dg.run("functional", data, epsilon=2.5, seed=0)
        chart = surface_map(units, found.surface, found.surface.bandwidth, released_modes(found))
        places = released_modes(found).places
    else:
        found = dg.run("functional_regression", data, epsilon=2.5, seed=0)
        chart, places = branches_map(units, found), found.curve
    np.testing.assert_array_equal(chart.table[["a", "b"]], places)
    heat = chart.figure.data[0]
    np.testing.assert_allclose([[heat.x[0], heat.x[-1]], [heat.y[0], heat.y[-1]]], data.box)
    report = stakeholder_report(
        question="?", answer="!", charts=[chart], guarantees=[("x", found.guarantee)], origin=RELEASE_ORIGIN
    )
    report = re.sub(r"<script>/\*\*.*?</script>", "", report, flags=re.DOTALL)  # plotly.js itself has all numbers
    numbers = [float(text.replace(",", "").replace("−", "-")) for text in re.findall(r"-?[\d,]*\d\.?\d*", report)]
    assert any(number == pytest.approx(places[0, 0], rel=1e-3) for number in numbers)


def test_the_command_line_releases_and_shows_again_in_these_units(tmp_path, capsys, monkeypatch):
    frame, box = other_units(frame_of(n=3_000))
    path = tmp_path / "own.csv"
    frame.to_csv(path, index=False)
    monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "ledger.sqlite3"))
    bounds = [f"--box={name}={low!r}:{high!r}" for name, (low, high) in zip("ab", box.tolist(), strict=True)]
    asked = ["release", str(path), "--columns", "a,b", *bounds, "--method", "functional", "--epsilon", "2.5"]
    assert main([*asked, "--json"]) == 0
    released = json.loads(capsys.readouterr().out)
    assert near(released["modes"])
    assert main(["kept", str(path), "--json"]) == 0
    (again,) = json.loads(capsys.readouterr().out)["releases"]
    for name in ("modes", "mode_covariances", "half_widths", "box"):
        assert again[name] == released[name]
    assert np.isfinite(np.array(released["half_widths"], dtype=float)).any()
    assert main(["kept", str(path)]) == 0
    assert " ± " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["functional", "functional_regression", "dp_grams"])
def test_what_an_earlier_version_kept_comes_back_in_these_units(name):
    """Archives that the version before wrote (format 2): places in the box that methods see."""
    kept = unpack((OLD / f"{name}.npz").read_bytes())
    found, box = kept.release, np.array(kept.record.box)
    places = found.modes if found.curve is None else found.curve
    np.testing.assert_allclose(places, kept.record.rows, rtol=1e-12)
    assert box[0].tolist() == [1900, 2020]
    assert (places[:, 0] >= 1900).all()
    if name == "functional":
        assert np.sort(places[:, 0]) == pytest.approx([1950, 1990], abs=4)
    if found.trajectories is not None:
        assert found.trajectories[..., 0].min() > 1800
    if found.surface is not None:
        np.testing.assert_array_equal(found.surface.box, box)
        here, far = found.surface.value(places[:1]), found.surface.value(box[:, 0][None])
        assert here > far
        assert twin(found.surface, n=100).points[:, 0].min() >= 1900


def test_the_twin_for_a_sweep_is_scaled_by_the_box_whatever_the_units():
    names = []
    for frame, box in ((frame_of(), BOX), other_units(frame_of())):
        data = replace(own(frame, box, "modes"), private=False)
        found = dg.run("functional", data, epsilon=5.0, seed=3)
        made = dg.load_dataset(released_twin(found.surface, "modes", data.box, found.modes), n=200, seed=1)
        assert made.box.tolist() == [[-4, 4]] * 2
        names.append(made)
    np.testing.assert_allclose(names[0].points, names[1].points, atol=1e-6)
    np.testing.assert_allclose(names[0].true_modes, names[1].true_modes, atol=1e-6)


def test_places_among_the_settings_are_in_these_units_too(tmp_path):
    data = own(*other_units(frame_of(n=2_000)), "modes")
    candidates = tuple(map(tuple, moved(CENTRES).tolist()))
    options = {"epsilon": 2.5, "candidates": candidates, **QUICK["dp_grams"]}
    found = release("dp_grams", data, Ledger(tmp_path / "ledger"), **options).release
    np.testing.assert_allclose(found.spec.candidates, candidates)
    starts = np.linalg.norm((found.anchors[:, None] - np.array(candidates)) / (SCALE * [10, 2]), axis=-1)
    assert starts.min(axis=1).max() < 1e-9
    pairs = own(*other_units(frame_of(n=2_000)), "regression")
    where = moved(np.array([[2.0, 0.0], [5.0, 0.0], [8.0, 0.0]]))[:, 0]
    curve = dg.run("dp_pms", pairs, epsilon=2.5, evaluation_points=where.tolist(), **QUICK["dp_pms"]).curve
    assert len(curve)
    assert set(np.round(curve[:, 0], 3)) <= set(np.round(where, 3))


def test_a_data_set_that_is_not_to_be_scaled_is_as_before():
    data = dg.load_dataset("four_corners", n=500, seed=0)
    assert data.method_box is data.box
    mine = Dataset(name="mine", kind="modes", points=data.points, box=data.box, private=True)
    assert not isinstance(dg.run("functional", mine, epsilon=1.0).surface, SurfaceInUnits)


def test_records_far_outside_or_missing_go_through_the_door_as_before():
    points = [[np.inf, 0.5], [-1e308, np.nan], [1e308, 0.5]] + [[50.0, 0.5]] * 200
    data = Dataset(name="x", kind="modes", points=points, box=[(0, 100), (0, 1)], private=True, scaled=True)
    found = dg.run("functional", data, epsilon=50.0, n_modes=1)
    assert found.modes[0] == pytest.approx([50, 0.5], abs=3)


@pytest.mark.parametrize("method", ["dp_grams", "functional", "functional_regression", "dp_pms", "functional_c"])
@pytest.mark.parametrize("box", [(0.0, 1e-3), (-1e12, 1e12), (1e12 - 2000, 1e12)], ids=str)
def test_no_warning_tells_of_a_record_far_outside_a_box_that_is_scaled(method, box):
    points = np.tile([[1e308, -1e308], [np.inf, -np.inf], [np.nan, 0.0], [0.0, 0.0]], (10, 1))
    data = Dataset(name="mine", kind=METHODS[method].kind, points=points, box=[box] * 2, private=True, scaled=True)
    with warnings.catch_warnings(), np.errstate(over="raise", divide="raise", invalid="raise"):
        warnings.simplefilter("error")
        rows = dg.run(method, data, epsilon=1.0, **QUICK.get(method, {})).rows
    assert np.isfinite(rows).all()


def test_the_settings_of_an_archive_of_an_earlier_format_are_in_the_units_of_the_columns_as_well():
    data = own(*other_units(frame_of()), "regression")
    asked = {"evaluation_points": tuple(moved([[2.0, 0.0], [8.0, 0.0]])[:, 0].tolist())}
    made = recorded(dg.run("dp_pms", data, epsilon=1.0, **QUICK["dp_pms"], **asked), data)
    inside = in_units(made.release, data.box, data.method_box)  # as the version before had it
    older = replace(made, release=inside, record=replace(made.record, settings=release_record(inside, data).settings))
    with np.load(io.BytesIO(pack_release(older, data.method_box))) as archive:
        arrays = dict(archive)
    facts = json.loads(arrays["facts"].tobytes()) | {"format": 2}
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    kept = unpack(file.getvalue())
    np.testing.assert_allclose(kept.release.curve, made.release.curve)
    for found in (dict(kept.record.settings)["evaluation_points"], kept.release.spec.evaluation_points):
        np.testing.assert_allclose(found, asked["evaluation_points"])
