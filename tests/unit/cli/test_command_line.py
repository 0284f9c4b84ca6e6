"""The command line: text for people, JSON for programs, and one sentence when a setting is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from dpgrams_core import METHODS, load_dataset, run, score
from dpgrams_core.cli.main import COMMANDS, main, number_or_name
from dpgrams_core.model.specs import settings_of

RUN = ["run", "four_corners", "dp_grams", "--n", "200", "--seed", "3"]


def test_run_prints_modes_score_and_guarantee(capsys):
    assert main(RUN) == 0
    out, err = capsys.readouterr()
    assert out.startswith("DP-GRAMS on four_corners, n = 200 (simulation, seed 3)")
    for word in ("modes", "score", "mse_per_true_mode", "guarantee: nominal", "epsilon 1, delta 1e-06", "replace-one"):
        assert word in out
    assert "not a proof" in out
    assert err == ""


def test_run_says_where_there_is_no_mode(capsys):
    assert main(["run", "four_corners", "functional", "--n", "50", "--epsilon", "0.01"]) == 0
    assert "modes\n  none\n" in capsys.readouterr().out


def test_run_prints_json_that_holds_the_same_numbers_as_the_library(capsys):
    assert main([*RUN, "--epsilon", "2", "--data-seed", "7", "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    data = load_dataset("four_corners", n=200, seed=7)
    release = run("dp_grams", data, epsilon=2, seed=3)
    assert np.array_equal(got["modes"], release.modes)
    assert got["score"] == score(release, data)
    assert got["noise_scale"] == release.noise_scale
    assert (got["dataset"], got["n"], got["method"], got["seed"], got["door"]) == (
        "four_corners",
        200,
        "dp_grams",
        3,
        "simulation",
    )
    assert got["guarantee"]["status"] == "nominal"
    assert got["spec"]["bandwidth"] == release.spec.bandwidth
    assert set(got) & {"points", "utilities", "labels", "diagnostics"} == set()


def test_infinity_is_null_in_json(capsys):
    assert main(["run", "four_corners", "mean_shift", "--n", "100", "--json"]) == 0
    text = capsys.readouterr().out
    assert json.loads(text)["guarantee"]["epsilon"] is None
    assert "Infinity" not in text


def test_a_baseline_ignores_a_budget(capsys):
    assert main(["run", "four_corners", "mean_shift", "--n", "100", "--epsilon", "1"]) == 0
    assert "no privacy" in capsys.readouterr().out


def test_every_setting_of_a_method_is_an_option(capsys):
    words = ["--calibration", "theorem", "--kernel", "gaussian4", "--bandwidth", "silverman", "--n-modes", "4"]
    assert main([*RUN, *words, "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert (got["spec"]["calibration"], got["spec"]["kernel"], len(got["modes"])) == ("theorem", "gaussian4", 4)
    assert any("silverman" in text for text in got["guarantee"]["caveats"])


def test_sweep_prints_a_table_and_counts_on_standard_error(capsys):
    words = ["sweep", "four_corners", "dp_grams", "mean_shift", "--n", "60", "--epsilon", "0.5", "2", "--runs", "2"]
    assert main([*words, "--executor", "serial"]) == 0
    out, err = capsys.readouterr()
    assert len(out.strip().splitlines()) == 1 + 3
    assert out.split()[:4] == ["method", "dataset", "n", "epsilon"]
    assert "3 of 3 cells" in err
    assert main([*words, "--executor", "serial", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["epsilon"] for row in rows] == [0.5, 2.0, None]


def test_a_sweep_that_is_interrupted_prints_what_it_has(capsys, monkeypatch):
    from dpgrams_core.cli import sweep as module

    right = module.stream_partial

    def interrupted(*args, **options):
        yield next(right(*args, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "stream_partial", interrupted)
    words = ["sweep", "four_corners", "dp_grams", "--n", "60", "--epsilon", "0.5", "2", "--runs", "1"]
    assert main([*words, "--executor", "serial"]) == 0
    out, err = capsys.readouterr()
    assert len(out.strip().splitlines()) == 2
    assert "stopped" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--epsilon", "-1"], "error: epsilon = -1 is not allowed: it must be above 0."),
        (["--epsilon", "nan"], "error: epsilon = nan is not allowed: it must be finite."),
        (["--epsilon", "1e-320"], "error: epsilon = 1e-320 is not allowed: it must lie between"),
        (["--delta", "2"], "error: delta = 2 is not allowed: it must lie strictly between 0 and 1."),
        (["--n", "10"], "error: n = 10 is not allowed: it must be a whole number of at least 50"),
        (["--bandwidth", "wide"], "error: bandwidth = 'wide' is not allowed: give a number above 0 or one of"),
        (["--kernel", "legendre4", "--calibration", "theorem"], "error: kernel = 'legendre4' is not allowed"),
        (["--init-bandwidth", "0.001"], "error: init_bandwidth = 0.001 is not allowed: the grid would have"),
        (["--seed", "-4"], "error: seed = -4 is not allowed"),
        (["--data-seed", "x"], "error: seed = 'x' is not allowed"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_exit_code_two(words, sentence, refused_in_a_sentence):
    refused_in_a_sentence([*RUN, *words], sentence)


def test_a_wrong_sweep_is_one_sentence_too(capsys):
    assert main(["sweep", "four_corners", "dp_grams", "--n", "60", "--epsilon", "0"]) == 2
    assert capsys.readouterr().err == "error: epsilon = 0 is not allowed: it must be above 0.\n"


@pytest.mark.parametrize("words", [["run", "nowhere", "dp_grams"], ["run", "four_corners", "magic"], ["fly"], []])
def test_an_unknown_name_lists_the_known_ones(words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "value"), [("3", 3), ("3.0", 3.0), ("1e3", 1000.0), ("rate", "rate"), ("", ""), ("0x1", "0x1"), ("-2", -2)]
)
def test_text_becomes_a_number_where_it_is_one(text, value):
    assert number_or_name(text) == value
    assert type(number_or_name(text)) is type(value)


@pytest.mark.slow
def test_the_module_runs_as_a_program_and_passes_its_exit_code_on():
    words = [sys.executable, "-m", "dpgrams_core", *RUN, "--epsilon", "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: epsilon = 0 is not allowed: it must be above 0.\n"


@pytest.mark.slow
@pytest.mark.parametrize("words", [RUN, ["--help"]], ids=["run", "help"])
def test_a_reader_who_has_had_enough_ends_it_without_a_word(words):
    command = [sys.executable, "-m", "dpgrams_core", *words]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as child:
        child.stdout.close()  # as head does
        assert child.stderr.read() == b""
    assert child.returncode == 128 + signal.SIGPIPE


def test_ctrl_c_ends_with_a_word_and_no_traceback(capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setitem(COMMANDS, "audit", interrupted)
    assert main(["audit", "functional"]) == 130
    assert capsys.readouterr().err == "stopped\n"


def test_every_setting_of_every_method_is_a_flag_with_its_words(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for method in METHODS.values():
        for name in settings_of(method.spec):
            assert (f"--{name.replace('_', '-')} " in shown) == (name != "candidates"), name
    words = " ".join(settings_of(METHODS["dp_grams"].spec)["delta"].words.split())
    assert words in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["four_corners", "dp_grams", "--design", "as printed"],
            "design = 'as printed' is not allowed: it must be 'as",
        ),
        (
            ["iris", "dp_grams_c", "--design", "as run"],
            "design = 'as run' is not allowed: it must be 'public columns' for iris, or left out",
        ),
        (
            ["four_corners", "dp_grams", "--calibration", "as_run", "--init-fraction", "1"],
            "init_fraction = 1 is not allowed: it must lie strictly between 0 and 1",
        ),
        (
            ["four_corners", "dp_grams", "--calibration", "as_run", "--n", "700", "--n-starts", "900"],
            "n_starts = 900 is not allowed: it must be between 1 and the number of candidates, ",
        ),
        (
            ["four_corners", "dp_grams", "--calibration", "tight", "--n-starts", "226"],
            "n_starts = 226 is not allowed: it must be between 1 and the number of candidates, 225, in the tight",
        ),
    ],
)
def test_what_the_papers_runs_cannot_have_is_refused_with_field_value_and_range(words, sentence, capsys):
    assert main(["run", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {sentence}")


def test_the_papers_runs_are_refused_on_a_private_file(tmp_path, capsys):
    file, ledger = tmp_path / "mine.csv", tmp_path / "ledger"
    file.write_text("a,b\n" + "".join(f"{0.01 * k},{1 - 0.01 * k}\n" for k in range(100)))
    words = ["--columns", "a,b", "--box", "a=0:1", "--box", "b=0:1", "--method", "dp_grams", "--ledger", str(ledger)]
    assert main(["release", str(file), *words, "--calibration", "as_run", "--accept-unproven"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: calibration = 'as_run' is not allowed: ")
    assert "for private data choose one of experiments, theorem, tight" in err
