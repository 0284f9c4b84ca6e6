"""What is kept beside a charge: once, for its account only, in older ledgers too; and a failure loses no release."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpgrams_core import BudgetError, Dataset
from dpgrams_core.own_data import release as releasing_module
from dpgrams_core.own_data.release import data_identity, release, release_range
from dpgrams_core.own_data.table import table_of_frame
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.file import KEY_BYTES
from dpgrams_core.privacy.ledger.mark import HighWater
from dpgrams_core.privacy.ledger.restore import verify_ledger
from dpgrams_core.privacy.noise import ReleaseNoise


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite3")


@pytest.fixture
def data():
    return Dataset(name="mine", kind="modes", points=np.linspace(-3, 3, 60)[:, None], box=[(-4, 4)], private=True)


def opened(ledger, content):
    name = ledger.account_of(content)
    ledger.open_account(name, cap_epsilon=10.0, cap_delta=1e-3)
    return name


def pay(ledger, account):
    return ledger.charge(account, (), epsilon=0.5, delta=1e-6, status="nominal", description="a test")


OLD_TABLES = """
CREATE TABLE seal (mark TEXT NOT NULL);
CREATE TABLE accounts (
    account TEXT PRIMARY KEY, cap_epsilon TEXT NOT NULL, cap_delta TEXT NOT NULL, opened TEXT NOT NULL);
CREATE TABLE charges (
    id INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT NOT NULL REFERENCES accounts, at TEXT NOT NULL,
    description TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, status TEXT NOT NULL, events TEXT NOT NULL);
CREATE TABLE draws (charge INTEGER PRIMARY KEY REFERENCES charges, at TEXT NOT NULL);
CREATE TABLE kept (charge INTEGER PRIMARY KEY REFERENCES charges, at TEXT NOT NULL, content BLOB NOT NULL);
CREATE TRIGGER charges_stay BEFORE DELETE ON charges BEGIN SELECT RAISE(ABORT, 'a charge is never deleted'); END;
CREATE TRIGGER charges_hold BEFORE UPDATE ON charges BEGIN SELECT RAISE(ABORT, 'a charge is never changed'); END;
CREATE TRIGGER accounts_stay BEFORE DELETE ON accounts BEGIN SELECT RAISE(ABORT, 'an account is never deleted'); END;
CREATE TRIGGER accounts_hold BEFORE UPDATE ON accounts BEGIN SELECT RAISE(ABORT, 'a cap is never changed'); END;
CREATE TRIGGER kept_hold BEFORE UPDATE ON kept BEGIN SELECT RAISE(ABORT, 'what is kept is never changed'); END;
"""


def as_version(number, ledger):
    """A ledger as an older version left it: 1 kept nothing, 2 did; neither had a chain or a high-water mark."""
    path = ledger.path
    ledger.mark.path.unlink()
    os.truncate(path.with_name(path.name + ".key"), KEY_BYTES + number - 1)
    old = path.with_name("old")
    connection = sqlite3.connect(old, isolation_level=None)
    connection.executescript(OLD_TABLES)
    connection.execute("ATTACH ? AS new", (str(path),))
    connection.execute("INSERT INTO seal SELECT mark FROM new.seal")
    for table in ("accounts", "charges", "draws", "kept"):
        connection.execute(f"INSERT INTO {table} SELECT * FROM new.{table}")
    if number == 1:
        connection.execute("DROP TABLE kept")
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    old.replace(path)


def version(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA user_version").fetchone()[0]
    finally:
        connection.close()


def test_it_comes_back_in_the_order_of_the_charges_and_to_its_account_only(ledger):
    one, two = opened(ledger, b"one"), opened(ledger, b"two")
    charges = [pay(ledger, account) for account in (one, two, one, one)]
    for number in (2, 1, 0):
        ledger.keep(charges[number], bytes([number]) * 3)
    again = Ledger(ledger.path)
    assert [(charge.id, content) for charge, content in again.kept(one)] == [
        (charges[0].id, bytes(3)),
        (charges[2].id, b"\2\2\2"),
    ]
    assert [content for _, content in again.kept(two)] == [b"\1\1\1"]
    assert again.kept("nobody") == []
    assert [charge.drawn for charge in again.charges()] == [True, True, True, False]


def test_it_is_kept_once_and_not_changed(ledger):
    charge = pay(ledger, opened(ledger, b"one"))
    ledger.confirm(charge)
    ledger.keep(charge, b"first")
    ledger.keep(charge, b"second")
    assert [content for _, content in ledger.kept(charge.account)] == [b"first"]
    ledger.keep(charge, b"first, and what was read off it", instead=True)
    assert [content for _, content in ledger.kept(charge.account)] == [b"first, and what was read off it"]
    connection = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError, match="never changed"):
        connection.execute("UPDATE kept SET content = 'other'")
    connection.close()


def test_nothing_is_kept_without_a_charge(ledger, tmp_path):
    elsewhere = Ledger(tmp_path / "other" / "ledger")
    charge = pay(elsewhere, opened(elsewhere, b"one"))
    with pytest.raises(BudgetError):
        ledger.keep(charge, b"x")


class TestOlderFiles:
    @pytest.mark.parametrize("number", [1, 2])
    def test_one_is_upgraded_in_place(self, number, ledger):
        charge = pay(ledger, opened(ledger, b"one"))
        ledger.keep(charge, b"before")
        charge = replace(charge, drawn=True)
        as_version(number, ledger)
        again = Ledger(ledger.path)
        assert version(ledger.path) == 3
        assert again.charges() == [charge]
        assert [content for _, content in again.kept(charge.account)] == [b"before"] * (number - 1)
        again.keep(charge, b"x")
        assert len(Ledger(ledger.path).kept(charge.account)) == 1
        assert again.account(charge.account).left_epsilon == 9.5
        report = verify_ledger(ledger.path)
        assert report.problems == ()
        assert any(f"upgraded from version {number}" in line for line in report.sound)
        assert again.mark.lines()[0][0].kind == "ledger"

    def test_a_crash_before_its_high_water_mark_is_made_is_no_loss(self, ledger, monkeypatch):
        charge = pay(ledger, opened(ledger, b"one"))
        as_version(2, ledger)
        (problem,) = verify_ledger(ledger.path).problems
        assert problem.endswith("which has no chain to verify: it is upgraded when it is next used.")
        with monkeypatch.context() as patch:
            patch.setattr(HighWater, "write", None)
            with pytest.raises(TypeError):
                Ledger(ledger.path)
        assert version(ledger.path) == 3
        assert Ledger(ledger.path).charges() == [charge]
        assert verify_ledger(ledger.path).problems == ()

    def test_one_with_another_key_is_left_as_it_was(self, ledger):
        as_version(1, ledger)
        ledger.path.with_name(ledger.path.name + ".key").write_bytes(bytes(32))
        with pytest.raises(BudgetError, match="do not belong together"):
            Ledger(ledger.path)
        assert version(ledger.path) == 1

    @pytest.mark.parametrize("change", ["epsilon = '-2'", "delta = '-0.1'", "epsilon = '0.5 '", "epsilon = 'nan'"])
    def test_one_with_an_amount_that_is_none_is_left_as_it_was(self, change, ledger):
        pay(ledger, opened(ledger, b"one"))
        as_version(2, ledger)
        connection = sqlite3.connect(ledger.path, isolation_level=None)
        connection.execute("DROP TRIGGER charges_hold")
        connection.execute(f"UPDATE charges SET {change}")
        connection.close()
        before = ledger.path.read_bytes()
        with pytest.raises(BudgetError, match="a row that was never written by it"):
            Ledger(ledger.path)
        assert ledger.path.read_bytes() == before

    def test_a_newer_one_is_refused(self, ledger):
        connection = sqlite3.connect(ledger.path, isolation_level=None)
        connection.execute("PRAGMA user_version = 4")
        connection.close()
        with pytest.raises(BudgetError, match="not one that this version knows"):
            Ledger(ledger.path)


class TestAPaidReleaseIsNotLost:
    @pytest.fixture
    def full_disk(self, ledger, monkeypatch):
        """From the end of the first draw on the file cannot grow."""
        connect, draw, state = Ledger._connection, ReleaseNoise.independent_gaussian, {"full": False}

        def connection(self):
            made = connect(self)
            if state["full"]:
                pages = made.execute("PRAGMA page_count").fetchone()[0]
                made.execute(f"PRAGMA max_page_count = {pages}")
            return made

        def drawn(self, exact, scale):
            state["full"] = True
            return draw(self, exact, scale)

        monkeypatch.setattr(Ledger, "_connection", connection)
        monkeypatch.setattr(ReleaseNoise, "independent_gaussian", drawn)
        return state

    def test_by_a_full_disk(self, ledger, rng, full_disk):
        points = rng.uniform(-3, 3, (60, 2))  # in two columns there is more to keep than a page of the file has room
        data = Dataset(name="mine", kind="modes", points=points, box=[(-4, 4)] * 2, private=True)
        paid = release("functional", data, ledger, epsilon=0.5)
        assert full_disk["full"]
        assert not paid.kept
        assert paid.release.surface is not None
        assert ledger.kept(paid.charge.account, data_identity(data)) == []
        assert [charge.epsilon for charge in ledger.charges()] == [0.5]
        full_disk["full"] = False  # somebody makes room
        assert ledger.charges()[0].drawn

    def test_by_a_ledger_that_is_gone(self, ledger, data, monkeypatch):
        draw = ReleaseNoise.independent_gaussian

        def drawn(self, exact, scale):
            ledger.path.unlink()
            return draw(self, exact, scale)

        monkeypatch.setattr(ReleaseNoise, "independent_gaussian", drawn)
        assert not release("functional", data, ledger, epsilon=0.5).kept

    def test_by_a_bug_in_packing(self, ledger, data, monkeypatch):
        monkeypatch.setattr(releasing_module, "pack_release", None)
        paid = release("functional", data, ledger, epsilon=0.5)
        assert not paid.kept
        assert [charge.drawn for charge in ledger.charges()] == [True]

    def test_bounds_neither(self, ledger, rng, monkeypatch):
        table = table_of_frame(pd.DataFrame({"age": rng.uniform(20, 60, 5000)}))
        assert release_range(table, "age", ledger, epsilon=1.0).kept
        monkeypatch.setattr(releasing_module, "pack_bounds", None)
        paid = release_range(table, "age", ledger, epsilon=1.0)
        assert not paid.kept
        assert paid.found.low <= 32 < paid.found.high  # where most of them lie


def test_keeping_can_be_left_out(ledger, data):
    paid = release("functional", data, ledger, epsilon=0.5, keep=False)
    assert not paid.kept
    assert ledger.kept(paid.charge.account, data_identity(data)) == []
    assert [charge.drawn for charge in ledger.charges()] == [True]


def test_a_crash_between_charge_and_draw_leaves_the_charge_and_nothing_kept(ledger, data, monkeypatch):
    def draw(*_):
        raise RuntimeError("a broken sampler")

    with monkeypatch.context() as patch:
        patch.setattr(ReleaseNoise, "independent_gaussian", draw)
        with pytest.raises(RuntimeError):
            release("functional", data, ledger, epsilon=0.5)
    (charge,) = ledger.charges()
    assert not charge.drawn
    assert ledger.kept(charge.account, data_identity(data)) == []
    paid = release("functional", data, ledger, epsilon=0.25)  # the next one is not hindered by it
    assert [item.id for item, _ in ledger.kept(charge.account, data_identity(data))] == [paid.charge.id]
