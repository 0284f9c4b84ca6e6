"""The caps of the command ``release``: kept by a release that went through, and never passed over in silence."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

from dpgrams_core import BudgetError
from dpgrams_core.cli.main import main
from dpgrams_core.own_data import release as releasing_module
from dpgrams_core.own_data.reading.table import read_table
from dpgrams_core.privacy.ledger import book as ledger_module
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.mark import LedgerBusyError


@pytest.fixture
def release(tmp_path, rng, monkeypatch):
    """``release(*words)``: the exit code of a release of one and the same file."""
    for name in ("CAP_EPSILON", "CAP_DELTA"):
        monkeypatch.delenv(f"DPGRAMS_{name}", raising=False)
    path = tmp_path / "people.csv"
    pd.DataFrame({"age": rng.normal(40, 5, 80)}).to_csv(path, index=False)
    words = ["release", str(path), "--columns", "age", "--method", "functional", "--ledger", str(tmp_path / "ledger")]
    return lambda *more: main([*words, "--n-modes", "1", *([] if "--box" in more else ["--box", "age=0:100"]), *more])


def cap(tmp_path):
    """The cap that the file was opened with."""
    ledger = Ledger(tmp_path / "ledger")
    state = ledger.account(ledger.account_of(read_table(tmp_path / "people.csv").content))
    return state.cap_epsilon, state.cap_delta


@pytest.mark.parametrize(
    "more",
    [
        ("--epsilon", "0.5"),  # beyond the mistyped cap itself
        ("--epsilon", "0.1", "--delta", "0.9"),
        ("--epsilon", "0.1", "--bandwidth", "1e9"),
        ("--epsilon", "-1"),
        ("--epsilon", "0.01", "--box", "age=100:0"),
        ("--epsilon", "0.01", "--box", "age=estimate", "--box-epsilon", "0.01"),
        ("--epsilon", "0.01", "--method", "dp_grams"),
    ],
)
def test_a_refused_release_sets_no_cap(more, release, tmp_path, capsys):
    assert release("--cap-epsilon", "0.1", *more) == 2
    assert capsys.readouterr().err.startswith("error: ")
    if (tmp_path / "ledger").exists():
        with pytest.raises(BudgetError, match="no account"):
            cap(tmp_path)
    assert release("--epsilon", "0.5", "--json") == 0
    got = json.loads(capsys.readouterr().out)["ledger"]
    assert (got["cap_epsilon"], got["left_epsilon"]) == (3.0, 2.5)


def test_a_cap_that_has_no_effect_is_said_and_a_lower_one_has_it(release, tmp_path, capsys):
    assert release("--epsilon", "0.5", "--cap-epsilon", "1", "--cap-delta", "1e-5") == 0
    assert capsys.readouterr().err == ""
    assert release("--epsilon", "0.1", "--cap-epsilon", "1", "--cap-delta", "1e-5") == 0
    assert capsys.readouterr().err == ""
    assert release("--epsilon", "0.1", "--cap-epsilon", "5", "--cap-delta", "1e-3", "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["ledger"]["cap_epsilon"] == 1
    assert err == (
        "note: the data set was opened with a cap of 1 and keeps it; --cap-epsilon 5 has no effect.\n"
        "note: the data set was opened with a cap of 1e-05 and keeps it; --cap-delta 0.001 has no effect.\n"
    )
    assert release("--epsilon", "0.5", "--cap-epsilon", "5") == 2  # said before it is refused, too
    note, error = capsys.readouterr().err.splitlines()
    assert note.startswith("note: the data set was opened with a cap of 1 ")
    assert "of the cap of ε = 1 and" in error
    assert release("--epsilon", "0.1", "--cap-epsilon", "0.75") == 2
    assert "of the cap of ε = 0.75 and δ = 1e-05 there are ε = 0.05" in capsys.readouterr().err
    assert cap(tmp_path) == (1.0, 1e-5)


def test_a_lowered_setting_counts_for_a_file_that_was_released_before(release, tmp_path, monkeypatch, capsys):
    assert release("--epsilon", "0.5") == 0
    monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "0.75")
    assert release("--epsilon", "0.5") == 2
    assert "of the cap of ε = 0.75" in capsys.readouterr().err
    assert release("--epsilon", "0.25") == 0
    assert "Left of the cap (epsilon 0.75, delta 0.0001): epsilon 0," in capsys.readouterr().out
    monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "0.5")
    assert main(["kept", str(tmp_path / "people.csv"), "--ledger", str(tmp_path / "ledger")]) == 0
    assert capsys.readouterr().out.count("Left of the cap (epsilon 0.5, delta 0.0001): epsilon 0,") == 2


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_was_paid_for_is_printed_though_the_ledger_is_locked_by_then(more, release, tmp_path, monkeypatch, capsys):
    """Another program takes the ledger after the draw, so that neither keeping nor reading what is left succeeds."""
    monkeypatch.setattr(ledger_module, "WAIT_SECONDS", 0.05)
    drawn, held = releasing_module.draw, []

    def draw_and_lock(*words, **options):
        result = drawn(*words, **options)
        other = sqlite3.connect(tmp_path / "ledger", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        held.append(other)
        return result

    monkeypatch.setattr(releasing_module, "draw", draw_and_lock)
    assert release("--epsilon", "0.5", *more) == 0
    held[0].close()
    said = capsys.readouterr()
    assert "the ledger could not be read, so what is left is not shown" in said.out
    assert "nothing was charged" not in said.out + said.err
    if more:
        told = json.loads(said.out)
        assert len(told["modes"]) == 1
        assert (told["kept"], told["ledger"]["charge"], told["ledger"]["epsilon"]) == (False, 1, 0.5)
    else:
        assert "charge 1 of epsilon 0.5" in said.out
        assert "these numbers are all that there is of it" in said.out
    assert [charge.epsilon for charge in Ledger(tmp_path / "ledger").charges()] == [0.5]


def test_only_a_charge_says_that_nothing_was_charged(release, tmp_path, monkeypatch):
    assert release("--epsilon", "0.5") == 0
    ledger = Ledger(tmp_path / "ledger")
    (charge,) = ledger.charges()
    monkeypatch.setattr(ledger_module, "WAIT_SECONDS", 0.05)
    with closing(sqlite3.connect(tmp_path / "ledger", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for door in (lambda: ledger.account(charge.account), lambda: ledger.keep(charge, b"x")):
            with pytest.raises(LedgerBusyError) as refused:
                door()
            assert "charged" not in str(refused.value)
