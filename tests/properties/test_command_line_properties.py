"""The command line never ends in a traceback, whatever is typed."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dpgrams_core.cli.main import main

# Things that look like numbers to somebody; "１２" and "٣" are digits to Python's int.
ODD = ["nan", "inf", "-inf", "1e400", "-0", "0", "0.0", "5e-324", "1e308", "-1", "1_0", "0x10", "1e", "½", "１２", "٣"]
ODD += ["", " ", "--", "None", "True", "1,5", "1e-12", "1e12", "9" * 400, "1" + "0" * 5000, "10**3", "1/2"]
text = st.one_of(
    st.sampled_from(ODD),
    st.floats().map(repr),
    st.integers().map(str),
    st.text(max_size=8),
    st.tuples(st.sampled_from(["", "-"]), st.integers(-330, 330)).map(lambda pair: f"{pair[0]}1e{pair[1]}"),
)
OPTIONS = ["epsilon", "delta", "bandwidth", "bandwidth-scale", "beta", "clip-multiplier", "batch-size", "step-size"]
OPTIONS += ["init-fraction", "init-bandwidth", "suppression-radius", "n-modes", "n-steps", "seed", "data-seed"]
OPTIONS += ["kernel", "calibration"]


# Right, and slow: more of these says nothing new.
ENOUGH = {"n": 2_000, "runs": 5, "n-modes": 20, "n-steps": 200}


def outcome(words):
    try:
        return main(words)
    except SystemExit as end:  # argparse's own refusal
        return end.code


def is_slow(option, value):
    try:
        return ENOUGH.get(option, math.inf) < float(value) <= 1_000_000
    except ValueError:
        return False


@given(option=st.sampled_from(OPTIONS), value=text, method=st.sampled_from(["dp_grams", "mean_shift"]))
@example(option="epsilon", value="1" + "0" * 5000, method="dp_grams")
@example(option="epsilon", value="9" * 400, method="dp_grams")
@example(option="beta", value="x", method="mean_shift")
@example(option="bandwidth", value="1e-200", method="mean_shift")
@settings(max_examples=150)
def test_run_ends_with_a_result_or_one_sentence(option, value, method, capsys):
    assume(not is_slow(option, value))
    code = outcome(["run", "four_corners", method, "--n", "60", f"--{option}={value}"])
    out, err = capsys.readouterr()
    assert code in (0, 2)
    assert "Traceback" not in err
    assert (code == 0) == bool(out)
    if code == 2:
        assert "error: " in err


@given(value=text)
@settings(max_examples=40)
def test_n_too(value, capsys):
    assume(not is_slow("n", value))
    assert outcome(["run", "four_corners", "dp_grams", f"--n={value}"]) in (0, 2)
    capsys.readouterr()


@pytest.mark.parametrize("option", ["n", "epsilon", "runs", "seed", "clip-multiplier"])
@given(value=text)
@settings(max_examples=25)
def test_sweep_ends_with_a_table_or_one_sentence(option, value, capsys):
    assume(not is_slow(option, value))
    chosen = {"n": "60", "epsilon": "1", "runs": "1", "executor": "serial", option: value}
    code = outcome(["sweep", "four_corners", "dp_grams", *[f"--{name}={words}" for name, words in chosen.items()]])
    err = capsys.readouterr().err
    assert code in (0, 2)
    assert "Traceback" not in err
