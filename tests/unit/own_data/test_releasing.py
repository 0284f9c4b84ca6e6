"""Releases through the ledger: priced, charged and synced, drawn, in this order, and nothing of the records beside."""

from __future__ import annotations

import json
import logging
import multiprocessing
import pickle
import struct
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpgrams_core import METHODS, BudgetError, DataError, Dataset, SpecError, load_table, run
from dpgrams_core.cli.main import main
from dpgrams_core.methods.registry import draw
from dpgrams_core.model.environment import local_file, read_settings
from dpgrams_core.model.units import scaled_by_box
from dpgrams_core.numerics.surface import MAX_COEFFICIENTS, SPACING
from dpgrams_core.own_data import pricing as quoting
from dpgrams_core.own_data import release as releasing_module
from dpgrams_core.own_data.pricing import quote
from dpgrams_core.own_data.release import data_identity, open_budget, release, release_range
from dpgrams_core.own_data.table import table_of_frame
from dpgrams_core.privacy.ledger import book as ledger_module
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.noise import ReleaseNoise, SimulationNoise
from tests.places import ROOT
from tests.racing import how_many_could

SECRET = (73.164829137, 91827.36455463)  # one record's two values, planted


def people(rng, n=400):
    group = rng.integers(0, 2, n)
    frame = pd.DataFrame({"age": rng.normal(30 + 30 * group, 4), "pay": rng.normal(3e4 + 4e4 * group, 5e3)})
    frame.iloc[n // 2] = SECRET
    return frame


@pytest.fixture
def frame(rng):
    return people(rng)


@pytest.fixture
def data(frame):
    return load_table(frame, columns=["age", "pay"], box={"age": (0, 100), "pay": (0, 1e5)})


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger" / "ledger.sqlite3")


def of_kind(frame, kind):
    box = {"age": (0, 100), "pay": (0, 1e5)}
    if kind == "regression":
        return load_table(frame, columns=["age"], response="pay", box=box)
    return load_table(frame, columns=["age", "pay"], box=box, kind=kind)


PAID = [
    ("functional", {}),
    ("functional", {"n_modes": 2}),
    ("dp_grams", {"calibration": "tight"}),
    ("dp_grams", {"calibration": "experiments", "batch_size": 40}),
    ("dp_grams", {"calibration": "theorem"}),
    ("functional_regression", {}),
    ("dp_pms", {"calibration": "tight", "n_steps": 2}),
    ("dp_pms", {"calibration": "experiments", "n_steps": 2}),
    ("dp_grams_c", {"calibration": "tight", "n_clusters": 2}),
    ("functional_c", {"n_clusters": 2}),
    ("dp_kmeans", {"n_clusters": 2}),
    ("noisy_histogram", {}),
    ("noisy_kmeans", {"n_clusters": 2}),
    ("hash_tree", {"n_clusters": 2}),
]


# What only adds up its records, and in how many columns.
ADDED_UP = [("functional", 1), ("functional", 3), ("functional", 5), ("functional_c", 2), ("functional_regression", 2)]


def square(kind, points):
    return Dataset(name="mine", kind=kind, points=points, box=[(-4, 4)] * points.shape[1], private=True)


class TestPrice:
    def test_every_private_method_is_tried(self):
        assert {name for name, _ in PAID} == {name for name, method in METHODS.items() if method.private}

    @pytest.mark.parametrize(("method", "options"), PAID)
    def test_what_is_charged_is_what_runs(self, method, options, frame, ledger):
        data = of_kind(frame, METHODS[method].kind)
        offer = quote(method, data, epsilon=0.5, **options)
        paid = release(method, data, ledger, accept_unproven=True, epsilon=0.5, **options)
        assert (paid.charge.epsilon, paid.charge.delta) == (offer.epsilon, offer.delta)
        assert paid.release.guarantee.epsilon <= paid.charge.epsilon
        assert paid.release.guarantee.delta <= paid.charge.delta
        assert paid.charge.status == paid.release.guarantee.ledger_status
        assert offer.events in (paid.release.events, ())
        assert (paid.release.door, paid.release.seed) == ("release", None)
        assert [row.drawn for row in ledger.charges()] == [True]
        if method == "dp_kmeans":  # its claim is for adding or removing one record
            assert paid.charge.epsilon == 1.0

    @pytest.mark.parametrize(("method", "options"), PAID)
    def test_the_price_does_not_know_the_records(self, method, options, frame, rng):
        one = of_kind(frame, METHODS[method].kind)
        points = rng.uniform(-4, 4, one.points.shape)
        if one.kind == "regression":
            points[:, 0] = one.points[:, 0]
        other = replace(one, points=points)
        assert quote(method, one, epsilon=0.5, **options) == quote(method, other, epsilon=0.5, **options)

    @pytest.mark.parametrize("options", [{}, {"bandwidth_scale": 0.5}, {"bandwidth": 0.3}])
    @pytest.mark.parametrize(("method", "columns"), ADDED_UP)
    def test_few_points_give_the_price_of_all(self, method, columns, options, rng, monkeypatch):
        data = square(METHODS[method].kind, rng.uniform(-4, 4, (900, columns)))
        few = quote(method, data, epsilon=0.5, **options)
        quoting._priced_by_size.cache_clear()
        monkeypatch.setattr(quoting, "FEW", data.n)
        assert quote(method, data, epsilon=0.5, **options) == few
        assert run(method, replace(data, private=False), seed=0, epsilon=0.5, **options).events == few.events

    @pytest.mark.parametrize("method", ["functional", "functional_regression", "functional_c"])
    def test_what_only_so_many_records_are_refused_is_refused_before_it_is_charged(self, method, rng, ledger):
        many = square(METHODS[method].kind, rng.uniform(-4, 4, (20_000, 2)))
        few = replace(many, points=many.points[: quoting.FEW])
        bare = METHODS[method].bare
        spec = METHODS[method].spec(epsilon=0.5)
        surfaces = [bare(replace(data, private=False), spec, SimulationNoise(0)).surface for data in (many, few)]
        narrow, wide = (surface.bandwidth for surface in surfaces)
        assert narrow < 0.8 * wide
        most = (surfaces[0].box[0, 1] - surfaces[0].box[0, 0]) / (SPACING * MAX_COEFFICIENTS**0.5)
        scale = most / (narrow * wide) ** 0.5  # too fine for the bandwidth of many records, not for that of few
        with pytest.raises(SpecError, match="released grid"):
            release(method, many, ledger, epsilon=0.5, bandwidth_scale=scale)
        assert ledger.charges() == []

    def test_a_price_draws_nothing_private_and_charges_nothing(self, data, ledger, monkeypatch):
        monkeypatch.setattr(releasing_module, "draw", None)
        monkeypatch.setattr(ReleaseNoise, "independent_gaussian", None)
        quote("functional", data, epsilon=0.5)
        assert ledger.charges() == []


class TestOrder:
    def test_the_charge_is_on_the_disk_before_the_noise_is_drawn(self, data, ledger, monkeypatch):
        seen = []
        right = ReleaseNoise.independent_gaussian

        def draw(self, exact, scale):
            rows = Ledger(ledger.path).charges()  # another connection sees committed rows only
            seen.append([(row.epsilon, row.drawn) for row in rows])
            return right(self, exact, scale)

        monkeypatch.setattr(ReleaseNoise, "independent_gaussian", draw)
        release("functional", data, ledger, epsilon=0.5)
        release("functional", data, ledger, epsilon=0.25)
        assert seen == [[(0.5, False)], [(0.5, True), (0.25, False)]]

    def test_an_error_after_the_charge_leaves_it(self, data, ledger, monkeypatch):
        def draw(*_):
            raise RuntimeError("a broken sampler")

        monkeypatch.setattr(ReleaseNoise, "independent_gaussian", draw)
        with pytest.raises(RuntimeError):
            release("functional", data, ledger, epsilon=0.5)
        assert [(row.epsilon, row.drawn) for row in ledger.charges()] == [(0.5, False)]

    def test_a_result_that_was_not_priced_is_withheld(self, data, ledger, monkeypatch):
        def dearer(*arguments, **options):
            result = draw(*arguments, **options)
            return replace(result, guarantee=replace(result.guarantee, epsilon=0.6))

        monkeypatch.setattr(releasing_module, "draw", dearer)
        with pytest.raises(RuntimeError, match="withheld"):
            release("functional", data, ledger, epsilon=0.5)
        assert [row.drawn for row in ledger.charges()] == [False]


class TestRefusals:
    """Each costs nothing."""

    @pytest.fixture(autouse=True)
    def free(self, ledger, nothing_at_the_door):
        yield
        assert ledger.charges() == []

    @pytest.fixture
    def nothing_at_the_door(self, monkeypatch):
        def drawn(*_):
            raise AssertionError("something was drawn")

        for name in ("independent_gaussian", "gumbel_argmax", "batch", "library_seed"):
            monkeypatch.setattr(ReleaseNoise, name, drawn)

    @pytest.mark.parametrize(
        ("method", "options"),
        [
            ("functional", {"epsilon": -1.0}),
            ("functional", {"bandwidth": 1e9}),
            ("functional", {"bandwidth": "silverman"}),
            ("functional", {"colour": "red"}),
            ("functional", {"seed": 3}),
            ("dp_grams", {"calibration": "tight", "kernel": "legendre4"}),
            ("dp_grams", {"calibration": "tight", "batch_size": 10**6}),
            ("functional_regression", {}),
            ("no_such_method", {}),
        ],
    )
    def test_settings(self, method, options, data, ledger):
        with pytest.raises(SpecError):
            release(method, data, ledger, **options)

    def test_no_privacy(self, data, ledger):
        with pytest.raises(DataError, match="no privacy"):
            release("mean_shift", data, ledger)

    def test_no_proof(self, data, ledger):
        with pytest.raises(DataError, match=r"“nominal”, not proven.*Nothing was charged"):
            release("dp_grams", data, ledger)

    def test_public_data(self, corners, ledger):
        with pytest.raises(DataError, match="not private"):
            release("functional", corners, ledger)

    def test_beyond_the_cap(self, data, ledger):
        open_budget(data, ledger, cap_epsilon=0.4, cap_delta=1e-5)
        with pytest.raises(BudgetError, match="Nothing was charged and nothing was drawn"):
            release("functional", data, ledger, epsilon=0.5)

    def test_a_machine_without_opendp(self, data, ledger, monkeypatch):
        monkeypatch.setitem(sys.modules, "opendp", None)
        with pytest.raises(DataError, match="opendp could not be loaded"):
            release("functional", data, ledger, epsilon=0.5)

    def test_a_range_that_is_too_dear_or_too_small(self, frame, ledger):
        table = table_of_frame(frame)
        with pytest.raises(DataError, match="needs at least"):
            release_range(table, "age", ledger, epsilon=0.01)
        with pytest.raises(BudgetError):
            release_range(table, "age", ledger, epsilon=50.0)


class TestOneBudget:
    @pytest.mark.slow
    def test_the_same_table_in_another_file_has_the_same_budget(self, frame, data, ledger, tmp_path):
        release("functional", data, ledger, epsilon=0.5)
        frame.sample(frac=1, random_state=1)[["pay", "age"]].rename(columns={"pay": "income"}).to_parquet(
            tmp_path / "again.parquet"
        )
        again = load_table(tmp_path / "again.parquet", columns=["income"], box=[(0, 2e5)])
        assert open_budget(again, ledger).totals.basic_epsilon == 0.5
        others = pd.DataFrame(np.random.default_rng(1).uniform(0, 100, frame.shape), columns=frame.columns)
        other = load_table(others, columns=["age"], box=[(0, 100)])
        assert open_budget(other, ledger).totals.basic_epsilon == 0

    def test_it_is_opened_with_the_cap_of_the_settings(self, frame, data, ledger, monkeypatch):
        monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "0.4")
        monkeypatch.setenv("DPGRAMS_CAP_DELTA", "2e-5")
        with pytest.raises(BudgetError, match=r"cap of ε = 0\.4 and δ = 2e-05"):
            release("functional", data, ledger, epsilon=0.5)
        other = table_of_frame(frame.iloc[1:])
        with pytest.raises(BudgetError, match=r"cap of ε = 0\.4"):
            release_range(other, "age", ledger, epsilon=2.5)
        for opened in (open_budget(data, ledger), open_budget(other, ledger)):
            assert (opened.cap_epsilon, opened.cap_delta) == (0.4, 2e-5)
        assert ledger.charges() == []

    def test_a_data_set_made_by_hand(self, corners, ledger):
        mine = replace(corners, private=True)
        assert open_budget(mine, ledger).account != open_budget(replace(mine, points=mine.points + 1), ledger).account
        shuffled = replace(mine, points=mine.points[::-1], labels=None)
        assert open_budget(mine, ledger).account == open_budget(shuffled, ledger).account

    def test_bounds_are_paid_from_it_too(self, rng, ledger):
        frame = people(rng, 4000)
        paid = release_range(table_of_frame(frame), "pay", ledger, epsilon=0.5)
        assert paid.found.low <= 3e4 < 7e4 <= paid.found.high
        assert paid.found.high - paid.found.low < 2e5
        data = load_table(frame, columns=["pay"], box={"pay": (paid.found.low, paid.found.high)})
        account = open_budget(data, ledger)
        assert (account.totals.basic_epsilon, account.totals.releases) == (0.5, 1)


def race(arguments):
    """One process with ten threads that all try to release; how many could."""
    path, tries = arguments
    data = Dataset(name="mine", kind="modes", points=np.linspace(-3, 3, 60)[:, None], box=[(-4, 4)], private=True)
    return how_many_could(lambda: release("functional", data, Ledger(path), epsilon=0.125, n_modes=1), tries)


@pytest.mark.slow
def test_two_hundred_concurrent_releases_spend_at_most_the_cap(ledger, monkeypatch):
    monkeypatch.setattr(ledger_module, "WAIT_SECONDS", 60.0)  # the cap is tried here, and not the patience
    data = Dataset(name="mine", kind="modes", points=np.linspace(-3, 3, 60)[:, None], box=[(-4, 4)], private=True)
    account = open_budget(data, ledger, cap_epsilon=2.0, cap_delta=1e-3).account
    quote("functional", data, epsilon=0.125, n_modes=1)  # remembered, so that the race is about the ledger
    # What is drawn is the same; what is read off it afterwards is left out, since it takes most of the time.
    monkeypatch.setitem(METHODS, "functional", replace(METHODS["functional"], reading=None))
    with multiprocessing.get_context("fork").Pool(4) as pool:
        done = sum(pool.map(race, [(ledger.path, 50)] * 4, chunksize=1))
    rows = ledger.charges(account)
    assert len(rows) == done == 16
    assert sum(Fraction(repr(row.epsilon)) for row in rows) == 2
    assert all(row.drawn for row in rows)
    assert [charge.id for charge, _ in ledger.kept(account, data_identity(data))] == [row.id for row in rows]


def traces(values, digits=6):
    """How a number could stand in a text or a file: its leading digits, and its bytes."""
    texts = [text.encode() for value in values for text in (repr(value), f"{value:.{digits}g}", f"{value:.8f}")]
    return texts + [struct.pack(kind, value) for value in values for kind in ("<d", ">d")]


class TestNoTrace:
    """Of a planted record, wherever a release writes something."""

    def test_in_what_is_printed_kept_and_saved(self, frame, data, ledger, caplog, capsys, tmp_path):
        caplog.set_level(logging.DEBUG)
        np.testing.assert_array_equal(data.points[len(frame) // 2], SECRET)
        standard = scaled_by_box(data).points[len(frame) // 2]
        paid = release("functional", data, ledger, epsilon=0.5)
        pieces = [repr(item) for item in (data, paid, paid.release, paid.charge, ledger.account(paid.charge.account))]
        pieces += [str(data.statements), str(ledger.charges()), caplog.text, *capsys.readouterr()]
        kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        assert len(kept) == 2
        everything = b"\n".join([*(piece.encode() for piece in pieces), *kept, pickle.dumps(paid)])
        for trace in [*traces(SECRET), *traces(standard.tolist(), digits=9)]:
            assert trace not in everything
        assert data.content not in everything
        assert any(trace in pickle.dumps(data) for trace in traces(SECRET))  # the search would find it

    def words(self, rng, folder, bounds="pay=0:100000"):
        people(rng, 3000).assign(name="Zaphod").to_csv(folder / "people.csv", index=False, float_format="%.12g")
        start = ["release", str(folder / "people.csv"), "--columns", "age,pay", "--box", "age=0:100", "--box", bounds]
        return [*start, "--method", "functional", "--epsilon", "0.5", "--ledger", str(folder / "led")]

    def check(self, said, folder):
        kept = b"".join(path.read_bytes() for path in folder.iterdir() if path.name.startswith("led"))
        for trace in [*traces(SECRET), b"Zaphod", b"73.164", b"91827.3"]:
            assert trace not in said + kept
            assert trace not in said.replace(b",", b"") + kept

    @pytest.mark.parametrize(
        ("more", "code"),
        [
            ((), 0),
            (("--json",), 0),
            (("--cap-epsilon", "0.1"), 2),
            (("--bandwidth", "1e9"), 2),
            (("--method", "dp_grams"), 2),
            (("--columns", "age,name"), 2),
        ],
    )
    def test_in_the_logs_of_a_command(self, more, code, rng, tmp_path, capsys, caplog):
        caplog.set_level(logging.DEBUG)
        assert main([*self.words(rng, tmp_path), *more]) == code
        out, err = capsys.readouterr()
        self.check((out + err + caplog.text).encode(), tmp_path)
        if code == 2:
            assert out == ""
            assert err.startswith("error: ")
            assert err.count("\n") == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("broken", [False, True])
    def test_in_the_logs_of_a_process(self, broken, rng, tmp_path):
        program = "import logging, sys; logging.basicConfig(level=0)\nfrom dpgrams_core.__main__ import main\n"
        if broken:  # even the traceback of a bug holds code, not records
            program += (
                "from dpgrams_core.privacy.noise import ReleaseNoise\n"
                "def draw(self, exact, scale): raise RuntimeError('a broken sampler')\n"
                "ReleaseNoise.independent_gaussian = draw\n"
            )
        words = self.words(rng, tmp_path, "pay=estimate" if not broken else "pay=0:100000")
        program += f"sys.exit(main({[*words, '--box-epsilon', '0.4']!r}))"
        done = subprocess.run(
            [sys.executable, "-W", "always", "-c", program], cwd=ROOT, capture_output=True, check=False, timeout=120
        )
        assert done.returncode == (1 if broken else 0), done.stderr.decode()
        assert (b"broken sampler" in done.stderr) == broken
        self.check(done.stdout + done.stderr, tmp_path)


class TestCommand:
    def words(self, tmp_path, frame, *more):
        path = tmp_path / "people.csv"
        frame.to_csv(path, index=False)
        start = ["release", str(path), "--columns", "age,pay", "--box", "age=0:100", "--box", "pay=0:1e5"]
        return [*start, "--method", "functional", "--ledger", str(tmp_path / "ledger"), *more]

    def test_modes_in_the_users_units(self, tmp_path, rng, capsys):
        words = self.words(tmp_path, people(rng, 5000), "--epsilon", "2", "--n-modes", "2", "--json")
        assert main(words) == 0
        got = json.loads(capsys.readouterr().out)
        modes = sorted(got["modes"])
        np.testing.assert_allclose(modes, [[30, 3e4], [60, 7e4]], rtol=0.1)
        assert got["columns"] == ["age", "pay"]
        assert got["guarantee"]["status"] == "proven"
        assert got["ledger"]["basic_epsilon"] == 2
        assert main(words) == 2  # the cap of the settings
        assert "Nothing was charged" in capsys.readouterr().err

    @pytest.mark.parametrize("kind", ["missing", "constant", "infinite"])
    def test_no_record_decides_whether_a_file_is_released(self, kind, tmp_path, frame, capsys):
        odd = frame.copy()
        odd["pay"] = {"missing": np.nan, "constant": 5.0, "infinite": np.inf}[kind]
        odd.loc[0, "pay"] = 1.0 if kind == "missing" else odd.loc[0, "pay"]
        assert main(self.words(tmp_path, odd, "--epsilon", "0.5", "--drop-missing")) == 0
        out, err = capsys.readouterr()
        assert "--drop-missing has no effect" in err
        assert f"there are {len(frame):,} rows" in out
        assert "counts as a row" in out

    def test_bounds_of_a_column_with_missing_values(self, tmp_path, rng, capsys):
        frame = people(rng, 3000)
        frame.loc[::3, "pay"] = np.nan
        words = [
            word.replace("pay=0:1e5", "pay=estimate") for word in self.words(tmp_path, frame, "--box-epsilon", "0.5")
        ]
        assert main([*words, "--epsilon", "1", "--json"]) == 0
        low, high = json.loads(capsys.readouterr().out)["box"]["pay"]
        assert low < 3e4 < 7e4 < high
        bounds, result = Ledger(tmp_path / "ledger").charges()
        assert bounds.events[0].n == 3000  # the number of rows, whatever they hold
        assert result.drawn

    def test_text_says_what_it_cost_and_what_is_left(self, tmp_path, frame, capsys):
        assert main(self.words(tmp_path, frame, "--epsilon", "0.5", "--cap-epsilon", "2", "--cap-delta", "1e-5")) == 0
        out = capsys.readouterr().out
        for part in ("modes: age, pay", "guarantee: proven", "charge 1 of epsilon 0.5", "epsilon 1.5", "same people"):
            assert part in out

    def test_nothing_is_bought_where_the_release_would_be_refused(self, tmp_path, rng, capsys):
        frame = people(rng, 3000)
        words = [
            word.replace("pay=0:1e5", "pay=estimate") for word in self.words(tmp_path, frame, "--box-epsilon", "0.5")
        ]
        for more in (("--epsilon", "2.6"), ("--epsilon", "1", "--bandwidth", "1e9"), ("--epsilon", "-1")):
            assert main([*words, *more]) == 2
        assert Ledger(tmp_path / "ledger").charges() == []
        assert main([*words, "--epsilon", "2.5"]) == 0  # 0.5 and 2.5 meet the cap of 3
        assert [row.epsilon for row in Ledger(tmp_path / "ledger").charges()] == [0.5, 2.5]

    @pytest.mark.parametrize(
        ("box", "part"),
        [
            ((), "lacks public bounds for age, pay"),
            (("age=0:100",), "lacks public bounds for pay"),
            (("age=0:100", "pay=0-5"), "NAME=LOW:HIGH"),
            (("age=0:100", "pay=0:1", "pay=0:2"), "once"),
            (("age=0:100", "town=0:1"), "one of age, pay"),
            (("age=0:100", "pay=5:1"), "box is empty"),
        ],
    )
    def test_bounds_that_are_wrong(self, box, part, tmp_path, frame, capsys):
        words = self.words(tmp_path, frame, "--epsilon", "1")
        words = [*words[:4], *words[8:], *(word for pair in box for word in ("--box", pair))]
        assert main(words) == 2
        assert part in capsys.readouterr().err

    def test_the_ledger_of_the_settings(self, tmp_path, frame, monkeypatch, capsys):
        monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "mine" / "ledger"))
        monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "0.75")
        words = self.words(tmp_path, frame, "--epsilon", "0.5")
        at = words.index("--ledger")
        words = words[:at] + words[at + 2 :]
        assert main(words) == 0
        assert main(words) == 2
        assert "cap of ε = 0.75" in capsys.readouterr().err
        assert len(Ledger(tmp_path / "mine" / "ledger").charges()) == 1


class TestSettings:
    def test_defaults(self):
        settings = read_settings({})
        assert settings.uploads
        assert settings.keep
        assert settings.max_upload_bytes == 200_000_000
        assert settings.data_folder is None
        assert (settings.cap_epsilon, settings.cap_delta) == (3.0, 1e-4)
        assert settings.ledger.is_absolute()

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("DPGRAMS_UPLOADS", "maybe"),
            ("DPGRAMS_KEEP", "maybe"),
            ("DPGRAMS_MAX_UPLOAD_MB", "many"),
            ("DPGRAMS_MAX_UPLOAD_MB", "-1"),
            ("DPGRAMS_DATA", "/no/such/folder"),
            ("DPGRAMS_CAP_EPSILON", "0"),
            ("DPGRAMS_CAP_DELTA", "1"),
        ],
    )
    def test_a_wrong_one_is_named(self, name, value):
        with pytest.raises(SpecError) as caught:
            read_settings({name: value})
        assert caught.value.field == name

    def test_the_folder_of_local_files(self, tmp_path):
        inside, outside = tmp_path / "data", tmp_path / "secret.csv"
        inside.mkdir()
        (inside / "a.csv").write_text("a\n1\n")
        outside.write_text("b\n2\n")
        (inside / "link.csv").symlink_to(outside)
        settings = read_settings({"DPGRAMS_DATA": str(inside)})
        assert local_file(settings, "a.csv") == inside.resolve() / "a.csv"
        for name in ("../secret.csv", str(outside), "link.csv", "none.csv", "", "."):
            with pytest.raises(DataError, match="no such file"):
                local_file(settings, name)
        with pytest.raises(DataError, match="No folder"):
            local_file(read_settings({}), "a.csv")


def test_too_many_public_candidates_are_refused_before_the_charge(tmp_path, rng, refused):
    points, many = rng.uniform(-4, 4, (60, 2)), np.zeros((200_001, 2))
    box = [(-4, 4)] * 2
    data = Dataset(name="mine", kind="clusters", points=points, box=box, candidates=many, private=True)
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    options = {"calibration": "tight", "n_clusters": 2, "epsilon": 1.0}
    refused(lambda: release("dp_grams_c", data, ledger, **options), "candidates", "200,001 points", "at most 200,000")
    assert ledger.charges() == []
