"""A budget is shared by what agrees to seven digits; what was released is shown to exactly its own file."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgrams_core.cli.main import main
from dpgrams_core.own_data.kept import MAY_BE_OF_ANOTHER, OLDER, OTHERS, pack_bounds, read_kept
from dpgrams_core.own_data.reading.table import read_table
from dpgrams_core.own_data.release import open_budget, release, release_range
from dpgrams_core.own_data.table import load_table, table_of_frame
from dpgrams_core.privacy.ledger.book import OF_ANOTHER, Ledger
from dpgrams_core.privacy.ledger.digest import identity_of

BOX = {"secret_age": (0, 100), "secret_pay": (0, 1e5)}


@pytest.fixture
def frame(rng):
    return pd.DataFrame({"secret_age": rng.normal(40, 5, 2_000), "secret_pay": rng.normal(4e4, 5e3, 2_000)})


OTHER_FILES = {
    "other digits behind the seventh": lambda frame: frame.astype(np.float32).astype(float),
    "one last bit": lambda frame: frame.assign(secret_pay=np.nextafter(frame.secret_pay, np.inf)),
    "other names": lambda frame: frame.rename(columns={"secret_age": "years", "secret_pay": "wages"}),
    "one other name": lambda frame: frame.rename(columns={"secret_age": "years"}),
    "names exchanged": lambda frame: frame.rename(columns={"secret_age": "secret_pay", "secret_pay": "secret_age"}),
}  # fmt: skip


@pytest.fixture
def ledger(tmp_path, frame):
    """A ledger with a release and bounds of the first file."""
    ledger = Ledger(tmp_path / "ledger.sqlite3")
    release("functional", load_table(frame, columns=list(BOX), box=BOX), ledger, epsilon=0.5)
    release_range(table_of_frame(frame), "secret_pay", ledger, epsilon=0.5)
    return ledger


@pytest.mark.parametrize("change", OTHER_FILES.values(), ids=list(OTHER_FILES))
def test_another_file_shares_the_budget_and_sees_nothing(change, frame, ledger):
    other = table_of_frame(change(frame))
    account = open_budget(other, ledger)
    assert account.totals.basic_epsilon == 1.0
    assert account.others == 0
    kept = read_kept(ledger, other.identity)
    assert (kept.releases, kept.bounds, kept.problems) == ((), (), (OTHERS,))
    rows = ledger.statement(account.account, other.identity)
    assert [(row["epsilon"], row["release"]) for row in rows] == [(0.5, OF_ANOTHER)] * 2
    assert {row[name] for row in rows for name in ("charge", "time", "status", "finished", "events")} == {""}
    release_range(other, other.numeric[0], ledger, epsilon=0.5)
    rows = ledger.statement(account.account, other.identity)
    assert [row["release"] for row in rows] == [OF_ANOTHER] * 2 + [f"Bounds of {other.numeric[0]}"]
    assert len(read_kept(ledger, other.identity).bounds) == 1
    mine = read_kept(ledger, table_of_frame(frame).identity)
    assert (len(mine.releases), len(mine.bounds)) == (1, 1)


def as_parquet(frame):
    file = io.BytesIO()
    frame.to_parquet(file)
    return read_table(file.getvalue(), "a.parquet")


@pytest.mark.parametrize(
    "read",
    [
        table_of_frame,
        as_parquet,
        lambda frame: read_table(frame.to_csv(index=False).encode(), "a.csv"),
        lambda frame: read_table(frame.to_csv(index=False, sep=";").encode(), "a.csv"),
        lambda frame: table_of_frame(frame.sample(frac=1, random_state=1)[["secret_pay", "secret_age"]]),
    ],
)
def test_the_same_file_finds_it_in_any_format_and_order(read, frame, ledger):
    table = read(frame)
    kept = read_kept(ledger, table.identity)
    assert (len(kept.releases), len(kept.bounds), kept.problems) == (1, 1, ())
    rows = ledger.statement(ledger.account_of(table.content), table.identity)
    assert [row["release"] for row in rows] == ["Functional release of secret_age, secret_pay", "Bounds of secret_pay"]


READERS = {
    "csv": lambda frame: read_table(frame.to_csv(index=False).encode(), "a.csv"),
    "parquet": as_parquet,
    "frame": table_of_frame,
}


@pytest.mark.slow
def test_the_names_of_all_columns_count_and_those_of_text_and_empty_ones_too(frame):
    with_others = frame.assign(word="x", nothing=np.nan)
    files = [frame, with_others, *(with_others.rename(columns={old: "other"}) for old in ("word", "nothing"))]
    found = {name: [read(file).identity for file in files] for name, read in READERS.items()}
    assert len({one.exact for one in found["csv"]}) == len(files)
    assert len({one.content for one in found["csv"]}) == 1
    for other in found.values():
        assert [one.exact for one in other] == [one.exact for one in found["csv"]]
    assert READERS["csv"](with_others[with_others.columns[::-1]]).identity.exact == found["csv"][1].exact


def test_a_file_with_another_column_of_text_sees_nothing(frame, ledger):
    other = READERS["csv"](frame.assign(person="x"))
    kept = read_kept(ledger, other.identity)
    assert (kept.releases, kept.bounds, kept.problems) == ((), (), (OTHERS,))
    assert "column of text are not compared" in OTHERS


class TestBefore:
    """What was kept before it was noted of which exact file it is."""

    @pytest.fixture
    def old(self, tmp_path, frame, monkeypatch):
        monkeypatch.setenv("DPGRAMS_LEDGER", str(tmp_path / "old.sqlite3"))
        ledger = Ledger(tmp_path / "old.sqlite3")
        account = ledger.account_of(table_of_frame(frame).content)
        ledger.open_account(account, cap_epsilon=3.0, cap_delta=1e-4)
        charge = ledger.charge(
            account, (), epsilon=0.5, delta=0.0, status="nominal", description="Bounds of secret_pay"
        )
        ledger.keep(charge, pack_bounds("secret_pay", 0.0, 64.0))
        frame.to_csv(tmp_path / "people.csv", index=False)
        return ledger

    def test_it_is_not_shown_and_counts(self, old, frame):
        identity = table_of_frame(frame).identity
        kept = read_kept(old, identity)
        assert (kept.bounds, kept.problems) == ((), (OLDER,))
        assert [row["release"] for row in old.statement(old.account_of(identity.content), identity)] == [OF_ANOTHER]
        ((_, bounds),) = read_kept(old, identity, older=True).bounds
        assert bounds.high == 64.0

    def test_the_command_shows_it_to_who_says_so(self, old, tmp_path, capsys):
        assert main(["kept", str(tmp_path / "people.csv")]) == 0
        said = capsys.readouterr().out
        assert "secret_pay" not in said
        assert "--older" in said
        assert main(["kept", str(tmp_path / "people.csv"), "--older"]) == 0
        said = capsys.readouterr().out
        assert "bounds of secret_pay: 0 to 64" in said
        assert said.count(MAY_BE_OF_ANOTHER) == 1
        assert main(["kept", str(tmp_path / "people.csv"), "--older", "--json"]) == 0
        assert [item["note"] for item in json.loads(capsys.readouterr().out)["bounds"]] == [MAY_BE_OF_ANOTHER]

    def test_each_that_is_older_says_that_it_may_be_of_another_file(self, old, frame, tmp_path, capsys):
        paid = release("functional", load_table(frame, columns=list(BOX), box=BOX), old, epsilon=0.5)
        account = old.account_of(table_of_frame(frame).content)
        charge = old.charge(account, (), epsilon=0.5, delta=0.0, status="nominal", description="before")
        ((_, content),) = old.kept(account, table_of_frame(frame).identity)
        old.keep(charge, content)
        assert main(["kept", str(tmp_path / "people.csv"), "--older"]) == 0
        said = capsys.readouterr().out.split("\n\n")
        assert len([part for part in said if MAY_BE_OF_ANOTHER in part]) == 2
        assert not any(MAY_BE_OF_ANOTHER in part for part in said if f"charge {paid.charge.id}" in part)


def test_the_command_shows_nothing_of_another_file(ledger, frame, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DPGRAMS_LEDGER", str(ledger.path))
    frame.rename(columns={"secret_age": "years", "secret_pay": "wages"}).to_csv(tmp_path / "other.csv", index=False)
    assert main(["kept", str(tmp_path / "other.csv"), "--older"]) == 0
    assert capsys.readouterr().out.strip() == OTHERS


NUMBERS = st.floats(width=64, allow_infinity=True) | st.just(-0.0)


@settings(max_examples=60)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12), st.data())
def test_any_other_double_in_any_place_is_another_file(rows, data):
    table = np.array(rows)
    other = table.copy()
    place = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, 1))
    other[place] = data.draw(NUMBERS)

    def exact(points, names="ab"):
        return identity_of(dict(zip(names, points.T, strict=True))).exact

    def sorted_rows(points):
        clean = np.where(np.isnan(points), np.nan, points + 0.0)
        return sorted(map(repr, clean.tolist()))

    assert (exact(table) == exact(other)) == (sorted_rows(table) == sorted_rows(other))
    assert exact(table[::-1]) == exact(table)
    assert exact(table, "ac") != exact(table)


def test_equal_rows_are_counted_and_missing_values_have_their_place():
    def exact(**columns):
        return identity_of({name: np.array(numbers, dtype=float) for name, numbers in columns.items()}).exact

    nan = np.nan
    tables = [
        exact(a=[1, 1], b=[2, 2]),
        exact(a=[1], b=[2]),
        exact(a=[1, nan], b=[2, nan]),
        exact(a=[1, nan], b=[nan, 2]),
        exact(a=[nan, 1], b=[2, nan]),
        exact(a=[1, 2], b=[nan, nan]),
    ]
    assert len(set(tables)) == 5
    assert tables[3] == tables[4]
