"""Whoever changes a ledger's file is noticed: rows, amounts, caps, orders, triggers, single bits."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import closing, suppress

import pytest

from dpgrams_core import BudgetError
from dpgrams_core.privacy.ledger import book as ledger_module
from dpgrams_core.privacy.ledger import file as ledger_file
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.chain import KINDS, append_to_chain, canonical, insert_row
from dpgrams_core.privacy.ledger.file import key_place
from dpgrams_core.privacy.ledger.restore import verify_ledger

CHANGES = {
    "an inserted charge of -2": (
        "INSERT INTO charges SELECT 9, account, at, description, '-2.0', delta, status, events FROM charges WHERE id=1"
    ),
    "an inserted charge": (
        "INSERT INTO charges SELECT 9, account, at, description, epsilon, delta, status, events FROM charges WHERE id=1"
    ),
    "a charge of an infinite amount": "UPDATE charges SET epsilon = 9e999 WHERE id = 1",
    "a deleted charge": "DELETE FROM charges WHERE id = 2",
    "the last charge deleted": "DELETE FROM charges WHERE id = 3",
    "a lower amount": "UPDATE charges SET epsilon = '0.1' WHERE id = 1",
    "the same amount in other words": "UPDATE charges SET epsilon = '0.50' WHERE id = 1",
    "a raised cap": "UPDATE accounts SET cap_epsilon = '100.0'",
    "a charge on another account": (
        "UPDATE charges SET account = (SELECT max(account) FROM accounts) WHERE id IN (1, 2, 3)"
    ),
    "swapped accounts": "UPDATE charges SET account = (SELECT account FROM accounts WHERE account != charges.account)",
    "other numbers": "UPDATE charges SET id = 10 - id",
    "other events": "UPDATE charges SET events = '[]', status = 'proven' WHERE id = 1",
    "a deleted account": "DELETE FROM accounts WHERE account = (SELECT account FROM charges WHERE id = 3)",
    "a deleted note of a draw": "DELETE FROM draws",
    "a draw that was not": "INSERT INTO draws VALUES (2, 'now')",
    "something kept that was not": "INSERT INTO kept VALUES (2, 'now', x'00')",
    "the end of the chain cut off": "DELETE FROM chain WHERE number = (SELECT max(number) FROM chain)",
    "the charge and its entry": (
        "DELETE FROM charges WHERE id = 3; DELETE FROM chain WHERE kind = 'charge' AND row LIKE '%\"id\":3,%'"
    ),
    "an entry of no kind": "INSERT INTO chain SELECT max(number) + 1, 'gift', '{}', mark FROM chain",
    "entries in another order": "UPDATE chain SET number = 1000 - number",
    "an empty chain": "DELETE FROM chain",
    "another seal": "UPDATE seal SET id = 'x'",
    "a closing": "INSERT INTO closings VALUES (1, 'now', 'why not')",
}


def pay(ledger, account, epsilon=0.5):
    return ledger.charge(account, (), epsilon=epsilon, delta=1e-6, status="nominal", description="a test")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with a ledger of two accounts and three charges, of which one is drawn and kept, and with its mark."""
    folder = tmp_path_factory.mktemp("template")
    made = Ledger(folder / "ledger" / "ledger.sqlite3", marks=folder / "marks")
    one, two = made.account_of(b"one"), made.account_of(b"two")
    for account in (one, two):
        made.open_account(account, cap_epsilon=3.0, cap_delta=1e-3)
    made.keep(pay(made, one), b"what was released" * 10)
    pay(made, two, 0.75)
    pay(made, one, 1.0)
    return folder


@pytest.fixture
def ledger(template, tmp_path, monkeypatch):
    """A copy of it for one test."""
    shutil.copytree(template, tmp_path / "copy")
    monkeypatch.setenv("DPGRAMS_LEDGER_MARK", str(tmp_path / "copy" / "marks"))
    return Ledger(tmp_path / "copy" / "ledger" / "ledger.sqlite3")


def without_triggers(path, script):
    """Change a ledger as somebody would who knows SQL."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
            script += f";{sql}"
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.executescript(script)


def refused(ledger):
    """Everything that would spend, and everything that would show what is left, is refused; verify says why."""
    one = ledger.account_of(b"one")
    calls = [
        lambda: Ledger(ledger.path),
        lambda: ledger.account(one),
        lambda: ledger.check_room(one, epsilon=0.1, delta=0.0),
        lambda: pay(ledger, one, 0.1),
        lambda: ledger.open_account(ledger.account_of(b"three"), cap_epsilon=1.0, cap_delta=1e-5),
    ]
    for call in calls:
        with pytest.raises(BudgetError):
            call()
    report = verify_ledger(ledger.path)
    assert report.problems
    return " ".join(report.problems)


class TestChanges:
    @pytest.mark.parametrize("change", CHANGES)
    def test_each_is_noticed(self, change, ledger):
        without_triggers(ledger.path, CHANGES[change])
        message = refused(ledger)
        assert message.count(". ") >= 1
        assert "ledger restore" in message

    def test_no_change_is_none(self, ledger):
        without_triggers(ledger.path, "SELECT 1")  # the triggers are made again, as they were
        assert verify_ledger(ledger.path).problems == ()
        assert Ledger(ledger.path).account(ledger.account_of(b"one")).left_epsilon == 1.5

    def test_a_trigger_that_is_gone(self, ledger):
        with closing(sqlite3.connect(ledger.path)) as connection:
            connection.execute("DROP TRIGGER charges_stay")
        assert "tables or triggers" in refused(ledger)

    def test_a_content_that_was_changed_is_not_shown(self, ledger):
        one = ledger.account_of(b"one")
        without_triggers(ledger.path, "UPDATE kept SET content = x'00'")
        assert [content for _, content in Ledger(ledger.path).kept(one)] == [b""]
        assert verify_ledger(ledger.path).problems

    def test_what_was_kept_may_be_deleted_by_its_owner(self, ledger):
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
            connection.execute("DELETE FROM kept")
        assert verify_ledger(ledger.path).problems == ()
        assert Ledger(ledger.path).kept(ledger.account_of(b"one")) == []

    def test_a_process_that_has_it_open_notices_too(self, ledger):
        one = ledger.account_of(b"one")
        time.sleep(0.05)
        assert ledger.account(one).left_epsilon == ledger.account(one).left_epsilon == 1.5
        assert ledger_module._VERIFIED  # it is not read as a whole each time
        without_triggers(ledger.path, CHANGES["a lower amount"])
        with pytest.raises(BudgetError, match="changed or damaged"):
            ledger.account(one)

    def test_without_a_change_it_is_read_as_a_whole_once(self, ledger, monkeypatch):
        time.sleep(0.05)  # now the file's time says whether it was changed
        Ledger(ledger.path)
        monkeypatch.setattr(ledger_file, "check_file", None)
        again = Ledger(ledger.path)
        assert len(again.charges()) == 3


class TestAmounts:
    @pytest.mark.parametrize("value", ["'-2.0'", "'0.0'", "'nan'", "'inf'", "'x'", "-2", "'1e999'", "NULL"])
    @pytest.mark.parametrize(("table", "column"), [("charges", "epsilon"), ("accounts", "cap_epsilon")])
    def test_sqlite_itself_refuses_what_is_none(self, value, table, column, ledger):
        names = KINDS["charge" if table == "charges" else "account"].columns
        values = ", ".join(
            value if name == column else {"id": "9", "account": "'new' || account"}.get(name, name) for name in names
        )
        with closing(sqlite3.connect(ledger.path)) as connection, pytest.raises(sqlite3.IntegrityError):
            connection.execute(f"INSERT INTO {table} SELECT {values} FROM {table} LIMIT 1")

    @pytest.mark.parametrize(("column", "text"), [("epsilon", "-2.0"), ("epsilon", "0.50"), ("delta", "1.0")])
    def test_not_even_the_holder_of_the_key_writes_one(self, column, text, ledger):
        row = dict(zip(KINDS["charge"].columns, (9, "x", "now", "", "0.5", "0.0", "nominal", "[]"), strict=True))
        without_triggers(ledger.path, "SELECT 1")
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            insert_row(connection, ledger._chain_key, "charge", {**row, column: text})
        refused(ledger)


class TestEntries:
    def test_the_row_is_one_text(self):
        key = bytes(32)
        assert canonical(key, {"b": "ε", "a": None, "c": 3}) == '{"a":null,"b":"ε","c":3}'
        sealed = json.loads(canonical(key, {"content": b"x"}))
        assert sealed != json.loads(canonical(key, {"content": b"y"}))
        assert sealed != json.loads(canonical(bytes(31) + b"1", {"content": b"x"}))
        assert len(sealed["content"]["hash"]) == 64

    def test_a_row_has_all_its_columns(self, ledger):
        with ledger._transaction() as connection, pytest.raises(ValueError, match="has the columns"):
            append_to_chain(connection, ledger._chain_key, "draw", {"charge": 1})

    def test_every_protected_table_is_held(self, ledger):
        with closing(sqlite3.connect(ledger.path)) as connection:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            assert tables == {"chain", *(kind.table for kind in KINDS.values())}
            connection.execute("INSERT INTO closings VALUES (1, 'now', 'a row to try it on')")
            connection.execute("INSERT INTO identities SELECT account, 'exact', 'traces' FROM accounts LIMIT 1")
            connection.execute("INSERT INTO links SELECT account, account FROM accounts LIMIT 1")
            connection.execute("INSERT INTO owners SELECT id, 'exact' FROM charges LIMIT 1")
            for table in tables:
                with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                    connection.execute(f"UPDATE {table} SET rowid = rowid")
                if table != "kept":
                    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
                        connection.execute(f"DELETE FROM {table}")


def content_of(path):
    """All rows of all tables."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f"SELECT * FROM {name} NOT INDEXED").fetchall() for name in names}


@pytest.mark.slow
def test_a_flipped_bit_is_noticed_or_changes_nothing(ledger, rng):
    """Over the bytes of the file: each flip is reported, or lies where no row, index or definition is."""
    ledger_module._VERIFIED.clear()
    path, one = ledger.path, ledger.account_of(b"one")
    whole, rows = path.read_bytes(), content_of(path)
    used = [place for place in range(len(whole)) if whole[place]]
    noticed = 0
    for place in rng.choice(used, 150, replace=False).tolist() + rng.choice(len(whole), 50).tolist():
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        if verify_ledger(path).problems:
            noticed += 1
        else:
            assert content_of(path) == rows, place
        with suppress(BudgetError):  # noticed in use or not: never is there more left than before
            assert Ledger(path).account(one).left_epsilon <= 1.5, place
    assert noticed >= 100
    path.write_bytes(whole)
    assert verify_ledger(path).problems == ()
    assert ledger.account(one).left_epsilon == 1.5


@pytest.mark.parametrize("place", ["charges", "accounts", "chain", "kept", "seal", "draws"])
def test_a_flipped_bit_in_any_table_is_noticed(place, ledger):
    """One bit of a value of each table, found by its text in the file."""
    values = {
        "charges": b"a test",
        "accounts": ledger.account_of(b"two").encode(),
        "chain": b'"description":"a test"',
        "kept": b"what was released",
        "seal": ledger_file.seal_of(ledger._key).encode(),
        "draws": b"2025",
    }
    whole = ledger.path.read_bytes()
    text = values[place] if place != "draws" else ledger.charges()[0].at[:4].encode()
    start = whole.find(text)
    while start >= 0:
        changed = bytearray(whole)
        changed[start + 1] ^= 4
        ledger.path.write_bytes(changed)
        assert verify_ledger(ledger.path).problems
        start = whole.find(text, start + 1)
    assert whole.find(text) > 0


class TestOtherFiles:
    def test_a_file_that_was_cut(self, ledger):
        whole = ledger.path.read_bytes()
        for size in (len(whole) - 4096, len(whole) // 2, 4096, 100):
            ledger.path.write_bytes(whole[:size])
            refused(ledger)

    def test_another_ledger_with_the_same_key(self, ledger, tmp_path):
        place = tmp_path / "other" / "ledger.sqlite3"
        place.parent.mkdir()
        key_place(place).write_bytes(key_place(ledger.path).read_bytes()[:32])
        other = Ledger(place, marks=tmp_path / "marks")
        for number in range(9):  # more entries than the ledger has
            other.open_account(str(number), cap_epsilon=1.0, cap_delta=1e-5)
        shutil.copy(place, ledger.path)
        with pytest.raises(BudgetError, match="not the one that its high-water mark was made for"):
            Ledger(ledger.path)
        assert "another ledger" in refused(ledger)

    def test_an_older_version_of_the_same_ledger(self, ledger):
        """Somebody takes the chain out and says that the file is one of before there was any."""
        with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
            connection.executescript("DROP TABLE chain; DROP TABLE closings; PRAGMA user_version = 2")
        with pytest.raises(BudgetError):
            Ledger(ledger.path)
        refused(ledger)


def test_statistics_of_sqlite_are_no_damage(tmp_path):
    """Somebody's tool may ask for them; they hold nothing that a budget depends on."""
    ledger = Ledger(tmp_path / "ledger")
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
        connection.execute("ANALYZE")
    assert Ledger(ledger.path).charges() == []


def test_a_ledger_of_another_version_is_not_sent_to_another_place(tmp_path):
    """That would be a fresh budget."""
    ledger = Ledger(tmp_path / "ledger")
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 9")
    with pytest.raises(BudgetError, match=r"not one that this version knows.*ledger restore") as refused:
        Ledger(ledger.path)
    assert "another place" not in str(refused.value)
