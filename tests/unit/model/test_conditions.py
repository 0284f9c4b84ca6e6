"""A guarantee says what it rests on: columns that were fitted on the records, and settings that were picked on them."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from benchmarks.refit import refit_times
from dpgrams_core import DATASETS, DataError, Dataset, PrivacyLeakWarning, audit, load_dataset, load_table, run, sweep
from dpgrams_core.cli.main import main
from dpgrams_core.datasets.registry import datasets_of
from dpgrams_core.exports.csv import table_csv
from dpgrams_core.exports.report import guarantee_words
from dpgrams_core.exports.script import release_script
from dpgrams_core.exports.settings import open_settings, spec_json
from dpgrams_core.figures.tradeoff import costs, lab_table
from dpgrams_core.model.guarantee import GIVEN_REPRESENTATION, STATUSES, Guarantee, guarantee_fields, read_guarantee
from dpgrams_core.model.representation import FITTED_CAVEAT, REFIT_TIMES
from dpgrams_core.own_data.kept import read_kept
from dpgrams_core.own_data.pricing import quote
from dpgrams_core.own_data.record import release_record
from dpgrams_core.own_data.release import data_identity, release
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.studies.paper.shipped import shipped
from dpgrams_core.sweeps.cell import run_cell
from dpgrams_core.sweeps.run import plan_cells
from dpgrams_core.sweeps.store import ResultsFile, result_of, rows_of
from tests.made import made_result

PICKED_CLIPS = {name: dict(info.picked)["clip_multiplier"] for name, info in DATASETS.items() if info.picked}

GIVEN = f"proven, {GIVEN_REPRESENTATION}"
ALONE = re.compile(r"(?<!not )\bproven\b(?!, given the representation)", re.IGNORECASE)
SMALL = {"blobs": 100, "iris": 100, "digits": 200, "mnist": 500}
CALIBRATIONS = [("functional_c", {}), *(("dp_grams_c", {"calibration": name}) for name in ("tight", "theorem"))]
NOMINAL = [("dp_grams_c", {"calibration": "experiments"}), ("dp_kmeans", {})]


@pytest.fixture
def fitted():
    """Private records in a representation that was fitted on them."""
    return replace(load_dataset("blobs", n=200, seed=1), private=True)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite3")


class TestHowMuchItMatters:
    def test_the_number_that_is_shown_is_the_one_that_is_measured(self):
        assert refit_times() == pytest.approx(REFIT_TIMES, abs=0.5)
        assert f"{REFIT_TIMES} times the stated bound" in FITTED_CAVEAT

    def test_the_row_does_not_matter_and_the_image_does(self, rng):
        assert refit_times(row=int(rng.integers(1797))) == pytest.approx(REFIT_TIMES, rel=0.02)
        assert refit_times(image="black") < 2


@pytest.mark.parametrize(("method", "options"), [*CALIBRATIONS, *NOMINAL])
@pytest.mark.parametrize("name", SMALL)
def test_proven_never_stands_alone_on_fitted_columns(name, method, options, seed):
    guarantee = run(method, load_dataset(name, n=SMALL[name]), seed=seed, **options).guarantee
    assert guarantee.condition == GIVEN_REPRESENTATION
    assert guarantee.status in STATUSES  # what programs compare stays what it was
    assert guarantee.status == {"functional_c": "proven", "dp_kmeans": "nominal"}.get(
        method, {"tight": "proven", "theorem": "as published"}.get(options.get("calibration"), "nominal")
    )
    assert guarantee.words == {"proven": GIVEN, "as published": f"as published, {GIVEN_REPRESENTATION}"}.get(
        guarantee.status, "nominal"
    )
    for sentence in (*guarantee_words(guarantee), guarantee.ledger_status):
        assert not ALONE.search(sentence), sentence
    assert FITTED_CAVEAT in guarantee.caveats


def test_the_registry_says_which_columns_were_fitted():
    for name in SMALL:
        assert DATASETS[name].fitted == load_dataset(name, n=SMALL[name]).representation.fitted
    assert {name for name, info in DATASETS.items() if info.fitted} == set(datasets_of("clusters"))
    assert PICKED_CLIPS == {"digits": 0.1, "mnist": 0.01, "rnaseq": 0.02}


def test_columns_that_nothing_was_fitted_to_have_no_condition(seed, table):
    for method, options in (("functional", {}), ("dp_grams", {"calibration": "tight"})):
        guarantee = run(method, load_dataset("four_corners", n=200), seed=seed, **options).guarantee
        assert (guarantee.words, guarantee.condition) == ("proven", None)
        assert guarantee.statement.startswith("Proven:")
    plain = run("functional_c", table(np.zeros((60, 2)), kind="clusters"), seed=seed, n_clusters=2).guarantee
    assert (plain.words, plain.condition) == ("proven", None)
    frame = pd.DataFrame(np.random.default_rng(seed).uniform(0, 1, (60, 2)), columns=["a", "b"])
    own = load_table(frame, columns=["a", "b"], box=[(0, 1)] * 2, kind="clusters")  # scaled by its public box
    assert quote("functional_c", own, epsilon=1.0, n_clusters=2).guarantee.words == "proven"
    without = run("kmeans", load_dataset("blobs", n=100), seed=0).guarantee
    assert (without.words, without.condition, without.caveats) == ("none", None, ())


def test_an_audit_of_fitted_columns_says_what_the_claim_rests_on():
    one = load_dataset("blobs", n=60)
    other = replace(one, points=np.concatenate([-one.points[:1], one.points[1:]]))
    result = audit("functional_c", pair=(one, other), trials=40, n_clusters=4)
    assert result.claimed_status == GIVEN
    assert audit("functional", trials=40, n=50).claimed_status == "proven"


def test_fitted_columns_of_another_kind_of_data_are_no_way_around(seed):
    flat = replace(load_dataset("blobs", n=200), kind="modes")
    assert run("functional", flat, seed=seed).guarantee.words == GIVEN


class TestExports:
    def test_the_command_line(self, capsys):
        words = ["run", "iris", "dp_grams_c", "--calibration", "tight", "--n", "100", "--n-clusters", "3"]
        main(words)
        text = capsys.readouterr().out
        assert f"guarantee: {GIVEN}\n" in text
        assert not ALONE.search(text)
        main([*words, "--json"])
        got = json.loads(capsys.readouterr().out)["guarantee"]
        assert (got["status"], got["condition"], got["shown"]) == ("proven", GIVEN_REPRESENTATION, GIVEN)
        main(["run", "four_corners", "functional", "--n", "200"])
        assert "guarantee: proven\n" in capsys.readouterr().out

    def test_a_sweep_its_csv_and_its_file(self, tmp_path):
        path = tmp_path / "results.parquet"
        table = sweep("functional_c", "iris", n=[100], epsilon=[1.0], runs=1, n_clusters=3, out=path)
        assert list(table["status"]) == [GIVEN]
        assert list(pd.read_csv(io.BytesIO(table_csv(table)))["status"]) == [GIVEN]
        assert pq.read_table(path)["status"].to_pylist() == [GIVEN]
        (cell,) = plan_cells("functional_c", "iris", n=[100], epsilon=[1.0], runs=1, n_clusters=3)
        with ResultsFile(path) as store:
            found = store.finished(cell)
        assert (found.status, found.words, found.complete) == ("proven", GIVEN, True)
        assert list(lab_table({cell: found})["status"]) == [GIVEN]
        assert [cost.status for cost in costs({cell: found}, [cell], "ari", 100, 1.0)] == [GIVEN]

    def test_a_file_from_before_there_were_conditions_is_read(self):
        for clip, words in ((0.5, GIVEN), (PICKED_CLIPS["digits"], "nominal")):
            options = {"calibration": "tight", "n_clusters": 10, "clip_multiplier": clip}
            (cell,) = plan_cells("dp_grams_c", "digits", n=[200], epsilon=[1.0], runs=1, **options)
            made = made_result(
                cell=cell, scores={"ari": (0.5,)}, seconds=(1.0,), status="proven", failures=(), numbers=(0,)
            )
            (row,) = rows_of(made)
            assert result_of(cell, [{**row, "status": "proven"}]).words == words

    def test_a_release_of_fitted_private_data_says_so_everywhere(self, fitted, ledger):
        with pytest.raises(DataError, match=f"only “{GIVEN}”.*Nothing was charged"):
            release("functional_c", fitted, ledger, epsilon=1.0, n_clusters=4)
        with pytest.warns(PrivacyLeakWarning, match=GIVEN):
            run("functional_c", fitted, epsilon=1.0, n_clusters=4)
        assert quote("functional_c", fitted, epsilon=1.0, n_clusters=4).guarantee.words == GIVEN
        paid = release("functional_c", fitted, ledger, epsilon=1.0, n_clusters=4, accept_unproven=True)
        assert paid.charge.status == GIVEN
        assert ledger.totals(paid.charge.account).unproven == 1
        assert not ALONE.search(str(ledger.charges()))
        record = release_record(paid.release, fitted)
        assert not ALONE.search(release_script(record))
        ((_, kept),) = read_kept(ledger, data_identity(fitted)).releases
        assert open_settings(spec_json(record)).record.guarantee == kept.record.guarantee == record.guarantee
        assert kept.release.guarantee.words == GIVEN

    def test_a_record_from_before_there_were_conditions_is_read(self):
        claim = Guarantee(epsilon=1.0, delta=1e-6, status="proven", statement="Proven.", caveats=("But.",))
        old = {name: value for name, value in guarantee_fields(claim).items() if name not in ("condition", "shown")}
        assert read_guarantee(json.loads(json.dumps(old))) == claim
        with pytest.raises(ValueError, match="no sureness"):
            read_guarantee({**old, "sureness": 1})


class TestPickedOnTheRecords:
    @pytest.mark.parametrize(("calibration", "usual"), [("tight", GIVEN), ("theorem", None), ("experiments", None)])
    def test_a_clip_multiplier_that_was_picked_makes_it_nominal(self, calibration, usual, seed):
        data, options = load_dataset("digits", n=300), {"calibration": calibration, "n_clusters": 10}
        picked = run("dp_grams_c", data, seed=seed, clip_multiplier=PICKED_CLIPS["digits"], **options)
        assert (picked.guarantee.status, picked.guarantee.words) == ("nominal", "nominal")
        assert any("clip multiplier was picked on these records" in text for text in picked.guarantee.caveats)
        assert not any(ALONE.search(text) for text in guarantee_words(picked.guarantee))
        other = run("dp_grams_c", data, seed=seed, clip_multiplier=1.0, **options)
        assert usual is None or other.guarantee.words == usual
        assert not any("picked" in text for text in other.guarantee.caveats)
        # The number is the same release; only what is said of it differs.
        bare = run("dp_grams_c", replace(data, picked=()), seed=seed, clip_multiplier=PICKED_CLIPS["digits"], **options)
        assert np.array_equal(bare.modes, picked.modes)

    def test_the_functional_release_has_no_such_setting(self, seed):
        assert run("functional_c", load_dataset("digits", n=300), seed=seed, n_clusters=10).guarantee.words == GIVEN

    def test_whoever_picked_a_setting_on_private_records_can_say_so(self, table, ledger):
        points = np.random.default_rng(0).normal(size=(200, 2))
        data = table(points, private=True, picked=(("clip_multiplier", 0.5),))
        tight = {"epsilon": 1.0, "calibration": "tight"}
        with pytest.raises(DataError, match="“nominal”, not proven"):
            release("dp_grams", data, ledger, clip_multiplier=0.5, **tight)
        assert ledger.charges() == []
        paid = release("dp_grams", data, ledger, clip_multiplier=0.5, accept_unproven=True, **tight)
        assert (paid.charge.status, paid.release.guarantee.status) == ("nominal", "nominal")
        assert release("dp_grams", data, ledger, clip_multiplier=1.0, **tight).charge.status == "proven"
        with pytest.warns(PrivacyLeakWarning, match="nominal"):
            run("dp_grams", data, clip_multiplier=0.5, **tight)

    def test_the_finished_tables_of_the_paper_say_so(self):
        found = {}
        for column, result in shipped("clustering").results:
            found.setdefault((column, result.cell.dataset), set()).add(result.words)
        for dataset in ("blobs", *PICKED_CLIPS):
            picked = dataset in PICKED_CLIPS
            assert found["functional", dataset] == {GIVEN}
            assert found["tight", dataset] == {GIVEN}  # it takes no clip that was picked on the records
            assert found["theorem", dataset] == {"nominal" if picked else f"as published, {GIVEN_REPRESENTATION}"}
            assert found["experiments", dataset] == found["dp_kmeans", dataset] == {"nominal"}
            assert found["kmeans", dataset] == {"none"}

    def test_a_fresh_run_and_the_file_agree(self):
        for clip in (PICKED_CLIPS["digits"], 0.5):
            options = {"calibration": "tight", "n_clusters": 10, "clip_multiplier": clip}
            (cell,) = plan_cells("dp_grams_c", "digits", n=[200], epsilon=[1.0], runs=1, **options)
            fresh = run_cell(cell)
            (row,) = rows_of(fresh)
            assert (
                result_of(cell, [row]).words == fresh.words == ("nominal" if clip == PICKED_CLIPS["digits"] else GIVEN)
            )


def test_a_value_beside_the_picked_one_is_picked_as_well():
    box, points = [(-4, 4)] * 2, np.zeros((60, 2))
    data = Dataset(name="mine", kind="modes", points=points, box=box, picked=(("clip_multiplier", 0.5),))
    found = [
        run("dp_grams", data, seed=0, calibration="tight", clip_multiplier=clip).guarantee.status
        for clip in (0.5, 0.5000001, 0.52, 1.0)
    ]
    assert found == ["nominal", "nominal", "nominal", "proven"]
