"""What was paid for comes back as it was: every method, every reading of it, and nothing that may not be published."""

from __future__ import annotations

import io
import json
import sqlite3
import warnings
import zipfile
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

from dpgrams_core import METHODS, DataError, Dataset, Diagnostics, PrivacyLeakWarning, load_table, run
from dpgrams_core.cli.main import main
from dpgrams_core.exports.script import release_script
from dpgrams_core.exports.settings import spec_json
from dpgrams_core.own_data.kept import FORMAT, KeptBounds, pack_bounds, pack_release, read_kept, unpack
from dpgrams_core.own_data.postprocess import released_clusters, released_modes
from dpgrams_core.own_data.record import RecordedRelease, recorded, release_record
from dpgrams_core.own_data.release import release, release_range
from dpgrams_core.own_data.table import table_of_frame
from dpgrams_core.own_data.twin import twin
from dpgrams_core.privacy.ledger.book import Ledger

MARK = 4827.91846205372  # planted where it must not be kept
CASES = [
    ("noisy_histogram", 2, {}),
    ("noisy_kmeans", 2, {"n_clusters": 2}),
    ("hash_tree", 2, {"n_clusters": 2}),
    ("functional", 1, {}),
    ("functional", 2, {"bandwidth_scale": 1.2}),
    ("functional", 3, {"n_modes": 2}),
    ("functional", 5, {}),
    ("functional_regression", 2, {}),
    ("functional_c", 2, {}),
    ("functional_c", 2, {"n_clusters": 2}),
    ("dp_grams", 2, {"calibration": "tight"}),
    ("dp_grams_c", 2, {"calibration": "tight", "n_clusters": 2}),
    ("dp_pms", 2, {"calibration": "tight", "n_steps": 2}),
    ("dp_kmeans", 2, {"n_clusters": 2}),
]
ARRAYS = ("modes", "anchors", "trajectories", "curve", "curve_band", "branches", "significance")
MEMBERS = {*ARRAYS, "facts", "box", "coefficients", "surface_box", "round_places", "round_numbers"}


def people(rng, columns=2, n=300):
    group = rng.integers(0, 2, n)[:, None]
    scale = 10.0 ** np.arange(columns)
    values = scale * (rng.normal(size=(n, columns)) * 4 + 30 + 40 * group)
    frame = pd.DataFrame(values, columns=[f"c{number}" for number in range(columns)])
    frame.loc[[3, 5], "c0"] = np.nan
    return frame


def own(frame, kind="modes"):
    names = list(frame.columns)
    box = {name: (0.0, 100.0 * 10.0**number) for number, name in enumerate(names)}
    picked = {"columns": names[:1], "response": names[1]} if kind == "regression" else {"columns": names, "kind": kind}
    return load_table(frame, box=box, **picked)


def drawn(rng, method, columns, options):
    data = own(people(rng, columns), METHODS[method].kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # DP-k-means has no proof
        return data, run(method, data, epsilon=2.0, **options)


@pytest.fixture(scope="module", params=CASES, ids=[f"{method}-{columns}" for method, columns, _ in CASES])
def case(request, seed):
    """Data and their release, drawn once for all tests of it."""
    return drawn(np.random.default_rng([seed, request.param_index]), *request.param)


@pytest.fixture
def paid(rng):
    return drawn(rng, "functional", 2, {})


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite3")


def packed(result, data):
    return pack_release(recorded(result, data), data.method_box)


def same(one, other):
    if one is None or other is None:
        assert one is other
    else:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def test_every_private_method_is_tried():
    assert {method for method, _, _ in CASES} == {name for name, item in METHODS.items() if item.private}


@pytest.mark.slow
def test_a_release_comes_back_as_it_was(case):
    data, result = case
    kept = unpack(packed(result, data))
    again, record = kept.release, release_record(result, data)
    for name in ("method", "spec", "events", "guarantee", "noise_scale", "door", "seed"):
        assert getattr(again, name) == getattr(result, name)
    assert type(again.spec) is type(result.spec)
    for name in ARRAYS:
        same(getattr(again, name), getattr(result, name))
    assert kept.record == record
    assert (spec_json(kept.record), release_script(kept.record)) == (spec_json(record), release_script(record))
    assert (kept.record.n, kept.statements) == (300, data.statements)
    with pytest.raises(DataError, match="not private"):
        _ = again.diagnostics
    assert (again.surface is None) == (result.surface is None)
    if result.surface is not None:
        readings_are_the_same(result, again)
    assert (again.pooled is None) == (result.pooled is None)
    assert (result.pooled is None) == (result.method not in ("dp_grams", "dp_grams_c"))
    if result.pooled is not None:
        at = np.random.default_rng(0).uniform(*data.method_box.T, (50, 2))
        before, after = (item.pooled.at(at) for item in (result, again))
        for one, other in zip(before, after, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * result.pooled.noise)
        assert again.pooled.unit == result.pooled.unit


def readings_are_the_same(result, again):
    """Whatever the page offers for free."""
    before, after = result.surface, again.surface
    assert type(before) is type(after)
    assert (before.bandwidth, before.noise_scale, before.n) == (after.bandwidth, after.noise_scale, after.n)
    for name in ("coefficients", "box"):
        same(getattr(before, name), getattr(after, name))
    few = before.dimension <= 2  # more columns take more time, and are read by the same functions
    for factor, count in ((1.5, None), (1.0, None), (1.0, 2))[: 0 if result.curve is not None else 3 if few else 1]:
        one, other = (released_modes(item, factor, count) for item in (result, again))
        same(one.places, other.places)
        same(one.significance, other.significance)
    if few or result.method == "functional_c":
        one, other = (released_clusters(item, 2) for item in (result, again))
        same(one.places, other.places)
        same(one.shares, other.shares)
    same(twin(before, n=200, seed=1).points, twin(after, n=200, seed=1).points)


def test_a_data_set_made_by_hand(rng):
    data = Dataset(name="mine", kind="modes", points=rng.normal(size=(200, 2)), box=[(-4, 4)] * 2, private=True)
    result = run("functional", data, epsilon=1.0)
    kept = unpack(packed(result, data))
    assert kept.record == release_record(result, data)
    assert kept.statements == ()


def test_it_is_little_more_than_the_released_numbers(case):
    data, result = case
    numbers = [getattr(result, name) for name in ARRAYS] + [getattr(result.surface, "coefficients", None)]
    numbers += [] if result.pooled is None else [part for at, own, _ in result.pooled.rounds for part in (at, own)]
    size = sum(array.nbytes for array in numbers if array is not None)
    assert len(packed(result, data)) < size + 16_000


def keys(value):
    """Every name in nested JSON."""
    if isinstance(value, dict):
        return set(value).union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list) else set()


class TestWhatIsNotKept:
    def test_a_simulation(self, corners):
        with pytest.raises(DataError, match="simulation"):
            packed(run("functional", corners, seed=0), corners)

    def test_a_seed_or_a_diagnostic_even_where_a_release_had_one(self, paid):
        data, result = paid
        marked = Diagnostics(
            candidates=np.full((3, 2), MARK), utilities=np.full(3, MARK), labels=np.full(3, MARK), score_size=MARK
        )
        content = packed(replace(result, seed=482791846, _diagnostics=marked), data)
        for trace in (np.float64(MARK).tobytes(), repr(MARK).encode(), b"482791846"):
            assert trace not in content
        assert content == packed(result, data)
        assert unpack(content).release.seed is None

    def test_anything_but_what_is_named(self, case):
        data, result = case
        content = packed(result, data)
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            facts = json.loads(archive["facts"].tobytes())
            sizes = {name: archive[name].size for name in archive.files}
        assert set(sizes) <= MEMBERS
        private = {item.name for item in fields(Diagnostics)} | {"seed", "points", "diagnostics", "content", "labels"}
        allowed = {"candidates"}  # a setting of DP-GRAMS with the same name
        assert not keys(facts) & (private - allowed)
        assert data.content not in content
        assert data.content.hex().encode() not in content
        if result.method == "dp_pms":  # its starts are predictors of records
            assert not {"anchors", "trajectories", "round_places"} & set(sizes)


class TestWhatCannotBeRead:
    def changed(self, content, change):
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        facts = json.loads(arrays.pop("facts").tobytes())
        change(facts, arrays)
        file = io.BytesIO()
        np.savez(file, facts=np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8), **arrays)
        return file.getvalue()

    def test_dp_pms_of_format_1_promised_too_much(self, rng):
        data, result = drawn(rng, "dp_pms", 2, {"calibration": "tight", "n_steps": 2})

        def as_it_was(facts, _):
            facts.update(format=1)
            facts["record"]["guarantee"].update(neighbours="replace-one")

        again = unpack(self.changed(packed(result, data), as_it_was))
        assert again.record == release_record(result, data)
        assert again.release.guarantee.neighbours == "replace-one-response"

    def test_what_was_kept_when_rows_could_be_dropped_is_read(self, paid):
        data, result = paid
        said = ["2 rows with a missing or infinite value were dropped."]
        content = self.changed(
            packed(result, data), lambda facts, arrays: facts.update(dropped_rows=2, statements=said)
        )
        assert unpack(content).statements == tuple(said)

    def test_a_newer_format(self, paid):
        newer = self.changed(packed(paid[1], paid[0]), lambda facts, _: facts.update(format=FORMAT + 1, what=3))
        with pytest.raises(DataError, match="newer version"):
            unpack(newer)

    @pytest.mark.parametrize(
        "change",
        [
            lambda facts, arrays: facts.pop("record"),
            lambda facts, arrays: facts.pop("format"),
            lambda facts, arrays: facts.update(format="1"),
            lambda facts, arrays: facts.update(what="wish"),
            lambda facts, arrays: facts["record"].update(method="mean"),
            lambda facts, arrays: facts["record"]["settings"].update(epsilon=-1),
            lambda facts, arrays: facts["record"].update(n=0),
            lambda facts, arrays: facts["surface"].update(kind="cube"),
            lambda facts, arrays: facts["surface"].update(bandwidth=0.0),
            lambda facts, arrays: facts["surface"].update(bandwidth=1e-9),
            lambda facts, arrays: facts["surface"].update(n=0),
            lambda facts, arrays: facts.update(statements=3),
            lambda facts, arrays: arrays.pop("modes"),
            lambda facts, arrays: arrays.pop("box"),
            lambda facts, arrays: arrays.update(box=np.zeros((2, 2))),
            lambda facts, arrays: arrays.update(box=np.array([[0.0, 1.0]])),
            lambda facts, arrays: arrays.update(modes=np.zeros((2, 3))),
            lambda facts, arrays: arrays.update(modes=np.array([["a", "b"]])),
            lambda facts, arrays: arrays.update(significance=np.zeros(77)),
            lambda facts, arrays: arrays.update(coefficients=arrays["coefficients"][1:]),
            lambda facts, arrays: arrays.update(coefficients=np.full_like(arrays["coefficients"], np.nan)),
            lambda facts, arrays: arrays.update(surface_box=arrays["surface_box"] * 2),
        ],
    )
    def test_what_does_not_fit_together(self, change, paid):
        data, result = paid
        content = packed(result, data)
        unpack(self.changed(content, lambda facts, arrays: None))
        with pytest.raises(DataError, match="damaged"):
            unpack(self.changed(content, change))

    @pytest.mark.parametrize(
        "change",
        [
            lambda facts, arrays: facts["rounds"].pop("noise"),
            lambda facts, arrays: facts["rounds"].update(h=0.0),
            lambda facts, arrays: arrays.pop("round_numbers"),
            lambda facts, arrays: arrays.update(round_places=arrays["round_places"][1:]),
            lambda facts, arrays: arrays.update(round_numbers=arrays["round_numbers"][:, 1:]),
            lambda facts, arrays: arrays.update(round_numbers=np.full_like(arrays["round_numbers"], np.nan)),
        ],
    )
    def test_rounds_that_do_not_fit_together(self, change, rng):
        data, result = drawn(rng, "dp_grams", 2, {"calibration": "tight", "n_starts": 3, "n_steps": 2})
        with pytest.raises(DataError, match="damaged"):
            unpack(self.changed(packed(result, data), change))

    def test_bytes_that_are_cut_or_flipped(self, paid, rng):
        data, result = paid
        content = packed(result, data)
        broken = [b"", b"PK", b"nothing of the kind" * 9, content[1:]]
        broken += [content[:end] for end in rng.integers(0, len(content) - 30, 20)]
        for bad in broken:
            with pytest.raises(DataError):
                unpack(bad)
        for place in rng.integers(0, len(content), 60):  # anywhere, also where it does not matter
            bad = bytearray(content)
            bad[place] ^= 1 << int(rng.integers(0, 8))
            try:
                found = unpack(bytes(bad))
            except DataError:
                continue
            same(found.release.surface.coefficients, result.surface.coefficients)
            assert found.record == release_record(result, data)

    def test_a_pickle_is_not_opened(self, paid):
        class Trap:
            def __reduce__(self):
                return pytest.fail, ("code ran when a kept release was read",)

        file = io.BytesIO(packed(paid[1], paid[0]))
        with zipfile.ZipFile(file, "a") as archive, archive.open("anchors.npy", "w") as member:
            np.lib.format.write_array(member, np.array([Trap()], dtype=object), allow_pickle=True)
        with pytest.raises(DataError, match="damaged"):
            unpack(file.getvalue())

    def test_one_for_the_other(self, paid):
        assert isinstance(unpack(pack_bounds("age", 0, 1)), KeptBounds)
        assert isinstance(unpack(packed(paid[1], paid[0])), RecordedRelease)
        with pytest.raises(DataError, match="damaged"):
            unpack(pack_bounds("age", 1, 0))


def damage(ledger, charge, content):
    """What is kept is never changed, so a wrong one is put in its place."""
    connection = sqlite3.connect(ledger.path, isolation_level=None)
    connection.execute("DELETE FROM kept WHERE charge = ?", (charge.id,))
    connection.execute("INSERT INTO kept VALUES (?, ?, ?)", (charge.id, "now", content))
    connection.close()


class TestInTheLedger:
    def test_releases_and_bounds_come_back_in_order_and_a_damaged_one_is_a_sentence(self, rng, ledger):
        frame = people(rng, n=2000).fillna(0.0)
        data = own(frame)
        first = release("functional", data, ledger, epsilon=0.5)
        bounds = release_range(table_of_frame(frame), "c1", ledger, epsilon=0.5)
        broken = release("functional", data, ledger, epsilon=0.25)
        last = release("functional_c", own(frame, "clusters"), ledger, epsilon=0.5, n_clusters=2)
        assert all(item.kept for item in (first, bounds, broken, last))
        damage(ledger, broken.charge, b"nonsense")
        kept = read_kept(Ledger(ledger.path), data.identity)
        assert [charge.id for charge, _ in kept.releases] == [first.charge.id, last.charge.id]
        assert all(charge.drawn for charge, _ in kept.releases)
        for (_, found), item in zip(kept.releases, (first, last), strict=True):
            same(found.release.surface.coefficients, item.release.surface.coefficients)
        ((_, found),) = kept.bounds
        assert (found.column, found.low, found.high) == ("c1", bounds.found.low, bounds.found.high)
        (sentence,) = kept.problems
        assert sentence.startswith("What was paid for on 20")
        assert sentence.endswith("(Functional release of c0, c1, ε = 0.25) was kept and cannot be shown again. "
                                 "It is damaged.")  # fmt: skip
        assert len(ledger.charges()) == 4

    def test_no_other_account_sees_it(self, rng, ledger):
        frame = people(rng)
        release("functional", own(frame), ledger, epsilon=0.5)
        other = own(people(rng))
        assert read_kept(ledger, other.identity).releases == ()
        release("functional", other, ledger, epsilon=0.25)
        ((charge, _),) = read_kept(ledger, own(frame).identity).releases
        assert charge.epsilon == 0.5
        shuffled = own(frame.sample(frac=1, random_state=1))
        assert len(read_kept(ledger, shuffled.identity).releases) == 1


class TestCommand:
    @pytest.fixture
    def words(self, rng, tmp_path, monkeypatch):
        monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "ledger.sqlite3"))
        people(rng, n=2000).fillna(0.0).to_csv(tmp_path / "people.csv", index=False)
        box = ["--box", "c0=0:100", "--box", "c1=estimate", "--box-epsilon", "0.5"]
        start = ["release", str(tmp_path / "people.csv"), "--columns", "c0,c1", *box, "--method", "functional"]
        return [*start, "--epsilon", "0.5", "--json"]

    def test_it_shows_again_what_was_paid_for(self, words, tmp_path, capsys, rng):
        again = ["kept", words[1]]
        assert main(again) == 0
        assert "Nothing is kept" in capsys.readouterr().out
        assert main(words) == 0
        paid = json.loads(capsys.readouterr().out)
        assert paid["kept"]
        assert main([*again, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["releases"] == [paid]
        (bounds,) = shown["bounds"]
        assert [bounds["low"], bounds["high"]] == paid["box"]["c1"]
        assert shown["problems"] == []
        assert main(again) == 0
        out = capsys.readouterr().out
        for part in ("showing it again costs nothing", "modes: c0, c1", "bounds of c1: ", "epsilon 2, delta"):
            assert part in out
        assert len(Ledger(tmp_path / "ledger.sqlite3").charges()) == 2
        people(rng).to_csv(tmp_path / "other.csv", index=False)
        assert main(["kept", str(tmp_path / "other.csv")]) == 0
        assert "Nothing is kept" in capsys.readouterr().out

    def test_the_switch(self, words, tmp_path, monkeypatch, capsys):
        monkeypatch.setenv("DPGRAMS_KEEP", "off")
        assert main(words[:-1]) == 0
        assert "DPGRAMS_KEEP is off: these numbers are all that there is" in capsys.readouterr().out
        assert main(["kept", words[1]]) == 0
        assert "Nothing is kept" in capsys.readouterr().out
        assert [row.drawn for row in Ledger(tmp_path / "ledger.sqlite3").charges()] == [True, True]

    def test_a_damaged_one_is_a_sentence(self, words, tmp_path, capsys):
        assert main(words) == 0
        ledger = Ledger(tmp_path / "ledger.sqlite3")
        for charge in ledger.charges():
            damage(ledger, charge, b"nonsense")
        capsys.readouterr()
        assert main(["kept", words[1]]) == 0
        assert capsys.readouterr().out.count("cannot be shown again. It is damaged.") == 2
