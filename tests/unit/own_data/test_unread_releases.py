"""What was drawn is kept before anything is read off it: no failure in post-processing loses what was paid for."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from dpgrams_core import METHODS, Dataset, PrivacyLeakWarning, SpecError, load_table, run
from dpgrams_core.methods.registry import as_asked, draw, read_off
from dpgrams_core.model.units import scaled_by_box
from dpgrams_core.own_data.kept import pack_release, read_kept, unpack
from dpgrams_core.own_data.pricing import quote
from dpgrams_core.own_data.record import recorded, release_record
from dpgrams_core.own_data.release import data_identity, release
from dpgrams_core.privacy.ledger.book import Ledger

READ = [
    ("functional", 1, {}),
    ("functional", 2, {"n_modes": 3}),
    ("functional", 4, {}),
    ("functional_c", 2, {}),
    ("functional_c", 2, {"n_clusters": 2}),
    ("functional_regression", 2, {}),
]
ARRAYS = ("modes", "significance", "trajectories", "curve", "branches")


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite3")


@pytest.fixture
def make(rng):
    """``make(method, columns)``: records of two groups as a user's own data, in columns of different units."""

    def made(method, columns=2, n=200):
        import pandas as pd

        values = rng.normal(30 + 40 * rng.integers(0, 2, n)[:, None], 4, (n, columns)) * 10.0 ** np.arange(columns)
        frame = pd.DataFrame(values, columns=[f"c{number}" for number in range(columns)])
        box = [(0.0, 100.0 * 10.0**number) for number in range(columns)]
        if METHODS[method].kind == "regression":
            return load_table(frame, columns=["c0"], response="c1", box=box)
        return load_table(frame, columns=list(frame.columns), box=box, kind=METHODS[method].kind)

    return made


def packed(result, data):
    return pack_release(recorded(result, data), data.method_box)


def same(one, other):
    for name in ARRAYS:
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs)


def break_reading(patch, method, error):
    def reading(*_):
        raise error

    patch.setitem(METHODS, method, replace(METHODS[method], reading=reading))


def test_every_method_with_a_bare_part_is_tried():
    assert {name for name, _, _ in READ} == {name for name, item in METHODS.items() if item.bare is not None}
    assert all((item.bare is None) == (item.reading is None) for item in METHODS.values())


@pytest.mark.parametrize(("method", "columns", "options"), READ)
class TestEveryMethod:
    def test_reading_what_was_drawn_is_the_whole_method(self, method, columns, options, make, noise):
        data, spec = scaled_by_box(replace(make(method, columns), private=False)), METHODS[method].spec(**options)
        copies = [type(noise)(7), type(noise)(7)]
        whole = METHODS[method].function(data, spec, copies[0])
        bare = METHODS[method].bare(data, spec, copies[1])
        assert bare.unread
        assert not whole.unread
        again = read_off(bare, data.box)
        same(again, whole)
        for name in ("method", "spec", "events", "guarantee", "noise_scale"):
            assert getattr(again, name) == getattr(whole, name)

    def test_it_is_kept_with_its_reading_and_shown_as_the_first_time(
        self, method, columns, options, make, ledger, monkeypatch
    ):
        data = make(method, columns)
        paid = release(method, data, ledger, epsilon=1.0, **options)
        assert paid.kept
        assert not paid.release.unread
        break_reading(monkeypatch, method, AssertionError("it was read anew"))
        ((_, kept),) = read_kept(ledger, data_identity(data)).releases
        same(kept.release, paid.release)
        assert kept.record == release_record(paid.release, data)
        assert kept.record.rows

    def test_a_failure_while_it_is_read_loses_nothing(self, method, columns, options, make, ledger, monkeypatch):
        data = make(method, columns)
        with monkeypatch.context() as patch:
            break_reading(patch, method, IndexError("no such peak"))
            paid = release(method, data, ledger, epsilon=1.0, **options)
            assert paid.kept
            assert paid.release.unread
            assert (paid.release.door, paid.release.guarantee.status) == ("release", "proven")
            ((_, kept),) = read_kept(ledger, data_identity(data)).releases
            assert kept.release.unread
            assert kept.record.rows == ()
            np.testing.assert_array_equal(kept.release.surface.coefficients, paid.release.surface.coefficients)
            assert release(method, data, ledger, epsilon=1.0, keep=False, **options).release.unread
        ((_, mended),) = read_kept(ledger, data_identity(data)).releases  # a later version reads what this one cannot
        drawn = replace(paid.release, surface=paid.release.bare_surface)
        same(mended.release, as_asked(read_off(drawn, data.method_box), data))
        assert mended.record.rows


def test_a_process_that_ends_while_it_reads_has_kept_the_draw(make, ledger, monkeypatch):
    data = make("functional")
    with monkeypatch.context() as patch:
        break_reading(patch, "functional", KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            release("functional", data, ledger, epsilon=1.0)
    (charge,) = ledger.charges()
    assert charge.drawn
    ((_, kept),) = read_kept(ledger, data_identity(data)).releases
    assert len(kept.release.modes)
    assert kept.record.columns == ("c0", "c1")


@pytest.mark.parametrize("method", ["functional", "functional_c"])
def test_nothing_above_the_noise_is_not_the_same_as_unread(method, rng, ledger):
    kind = METHODS[method].kind
    data = Dataset(name="mine", kind=kind, points=rng.uniform(-4, 4, (20, 2)), box=[(-4, 4)] * 2, private=True)
    # One in twenty shows a mode that is only noise: as often as is promised.
    many = (release(method, data, ledger, epsilon=0.01) for _ in range(10))
    paid = next(one for one in many if not len(one.release.modes))
    assert not paid.release.unread
    *_, (_, kept) = read_kept(ledger, data_identity(data)).releases
    assert not kept.release.unread
    same(kept.release, paid.release)


def test_what_was_kept_with_its_reading_is_shown_as_it_was(make, monkeypatch):
    # As archives of format 1 are: with another way of reading they still show what they showed.
    data = make("functional")
    whole = run("functional", data, epsilon=1.0)
    content = packed(whole, data)
    break_reading(monkeypatch, "functional", AssertionError("it was read anew"))
    kept = unpack(content)
    same(kept.release, whole)
    assert kept.record == release_record(whole, data)


def test_a_simulation_with_a_bug_fails_aloud(corners, monkeypatch):
    right = METHODS["functional"]

    def function(*_):
        raise IndexError("no such peak")

    monkeypatch.setitem(METHODS, "functional", replace(right, function=function))
    with pytest.raises(IndexError):
        run("functional", corners, seed=0)


@pytest.mark.parametrize("method", [name for name, item in METHODS.items() if item.private and item.bare is None])
def test_the_other_methods_are_drawn_whole(method, make):
    options = {"n_clusters": 2} if METHODS[method].kind == "clusters" else {"n_steps": 1}
    options = {} if method == "noisy_histogram" else options  # it has no steps
    data = make(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        drawn = draw(method, data, **options)
    assert read_off(drawn, data.box) is drawn
    assert not drawn.unread


@pytest.mark.parametrize("options", [{"bandwidth_scale": 100.0}, {"bandwidth": 9.0}])
@pytest.mark.parametrize("method", ["functional", "functional_c", "functional_regression"])
def test_a_bandwidth_wider_than_the_box_costs_nothing(method, options, make, ledger, refused):
    data, ((name, value),) = make(method), options.items()
    words = ("wider than the box", "at most 1" if method == "functional_regression" else "at most 8")
    refused(lambda: quote(method, data, **options), name, value, *words)
    with pytest.raises(SpecError):
        release(method, data, ledger, epsilon=0.5, **options)
    assert ledger.charges() == []


def test_a_bandwidth_that_was_read_off_the_records_is_not_repeated(rng, table):
    data = table(rng.normal(0, 1e3, (50, 2)), [(-4, 4)] * 2)
    with pytest.raises(SpecError, match="wider than the box") as caught:
        run("functional", data, seed=0, bandwidth="silverman")
    assert not any(sign.isdigit() for sign in str(caught.value).split("at most")[0])
