"""The reader on thousands of broken files: a table or one sentence, never a traceback, never a value of the file."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import re

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from dpgrams_core import DataError
from dpgrams_core.own_data.reading.csv import SEPARATORS
from dpgrams_core.own_data.reading.parquet_child import read
from dpgrams_core.own_data.reading.table import Limits, read_table

SECRETS = ("73164.8291", "Zaphod")
LIMITS = Limits(max_bytes=1_000_000, max_rows=10_000, max_numbers=100_000, max_columns=50)
EFFORT = settings.default.max_examples  # of the profile: the quick one tries a quarter
CSV_CASES, PARQUET_CASES = 42 * EFFORT, 1_500
# What a mutation puts in: everything that means something to a parser.
PIECES = [
    b"",
    b",",
    b";",
    b"\t",
    b"|",
    b"\n",
    b"\r",
    b"\r\n",
    b'"',
    b'""',
    b"'",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xc3",
    b"NA",
    b"inf",
    b"nan",
    b"1e999",
    b"-",
    b"1,5",
    b"PAR1",
    b"\\",
    b"#",
    b"=",
    b" " * 50,
    b"9" * 400,
]


def valid_csv(rng):
    separator = rng.choice(list(SEPARATORS))
    names = [f"col{k}" for k in range(rng.integers(1, 6))]
    rows = [[f"{value:.3f}" for value in rng.normal(0, 100, len(names))] for _ in range(rng.integers(0, 20))]
    rows.insert(int(rng.integers(0, len(rows) + 1)), [*SECRETS, *["3"] * len(names)][: len(names)])
    return "\n".join(separator.join(row) for row in [names, *rows]).encode()


def valid_parquet():
    file = io.BytesIO()
    numbers = np.append(np.arange(99.0), float(SECRETS[0]))
    parquet.write_table(pa.table({"a": numbers, "word": [SECRETS[1]] * 100, "b": numbers[::-1].copy()}), file)
    return file.getvalue()


def mutated(content, rng):
    data = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        begin = int(rng.integers(0, len(data) + 1))
        end = min(len(data), begin + int(rng.integers(0, 4)))
        kind = rng.integers(0, 4)
        if kind == 0:
            data[begin:end] = PIECES[rng.integers(len(PIECES))]
        elif kind == 1:
            data[begin:end] = rng.bytes(end - begin)
        elif kind == 2:
            del data[begin : begin + int(rng.integers(0, 40))]
        else:
            data[begin:begin] = data[max(0, begin - 20) : begin]
    return bytes(data)


def outcome(content, name):
    """What is said about a file, checked; the kind of outcome, to see that the cases differ."""
    table, problem = None, None
    try:
        table = read_table(content, name, LIMITS)
    except DataError as error:  # anything else is a traceback, and fails here
        problem = error
    if table is None:
        said = str(problem)
        assert problem.__cause__ is None
        assert problem.__context__ is None or problem.__suppress_context__
        assert said.endswith(".")
        # Every number in a sentence is a position, a count or a limit.
        assert all(int(number.replace(",", "")) <= 100_000 for number in re.findall(r"\d[\d,]*", said))
        kind = re.sub(r"\d+", "#", said)
    else:
        names = " ".join(column.name for column in table.columns)
        assert names.isprintable()
        assert table.n_rows >= 1
        assert all(len(column) == table.n_rows for column in table.values.values())
        # A mutation may move a word into the row of names; it is then a name by the file's own statement.
        said = "" if any(secret in names for secret in SECRETS) else repr(table) + str(table.columns)
        kind = "read"
    assert not any(secret in said for secret in SECRETS)
    return kind


def test_mutated_csv(rng):
    kinds = {outcome(mutated(valid_csv(rng), rng), "a.csv") for _ in range(CSV_CASES)}
    assert "read" in kinds
    assert len(kinds) >= 10  # the cases reach most sentences
    assert not any("could not be read" in kind for kind in kinds)  # no error that nobody foresaw


def in_a_fork(contents):
    """What the reader's own process says of each file, as lines of JSON; they end early where a file ends the fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        for content in contents:
            said = {"problem": True}
            with contextlib.suppress(Exception):
                facts, pieces = read(io.BytesIO(content), LIMITS.max_rows, LIMITS.max_numbers, LIMITS.max_columns)
                lengths = [[len(column) for column in piece] for piece in pieces]
                said = facts | {"lengths": [sum(column) for column in zip(*lengths, strict=True)]}
            os.write(writing, json.dumps(said).encode() + b"\n")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().decode().splitlines()
    os.waitpid(child, 0)
    return lines


def contained(contents):
    """The same for all files: after one that ends the fork another one goes on; what each said, "" for such a file."""
    said = []
    while len(said) < len(contents):
        said += in_a_fork(contents[len(said) :])
        if len(said) < len(contents):
            said.append("")
    return said


def test_mutated_parquet_in_its_own_process(rng):
    content = valid_parquet()
    found = contained([content, *(mutated(content, rng) for _ in range(PARQUET_CASES))])
    assert not any(secret in line for line in found for secret in SECRETS)
    facts = [json.loads(line) for line in found if line]
    assert all(length == item["rows"] for item in facts for length in item.get("lengths", []))
    assert facts[0]["rows"] == 100
    assert sum("problem" in item for item in facts) > PARQUET_CASES / 10
    # Arrow aborts on one damaged file in a thousand or so, which is why it has a process of its own.
    assert found.count("") < PARQUET_CASES / 100


def test_mutated_parquet(rng):
    content = valid_parquet()
    assert outcome(content, "a.parquet") == "read"
    for _ in range(4):
        outcome(mutated(content, rng), "a.parquet")


@settings(max_examples=10 * EFFORT)
@given(st.binary(max_size=300))
def test_any_bytes(content):
    outcome(content, "a.csv")


@settings(max_examples=5 * EFFORT)
@given(st.text(alphabet=st.sampled_from('ab1.,;\t|"\n\r é-+eE%$'), max_size=120))
def test_any_text(text):
    outcome(text.encode(), "a.csv")


CELLS = st.sampled_from(["1", "-2.5", "3e4", "", "NA", "inf", "x", "1,5", "5%", '"', " 7 "])


@settings(max_examples=4 * EFFORT)
@given(st.lists(CELLS, min_size=1, max_size=30))
def test_a_column_is_numeric_exactly_when_its_cells_are(cells):
    text = "a\tb\n" + "".join(f"{cell}\t1\n" for cell in cells if cell != '"')
    if all(cell == '"' for cell in cells):
        return
    table = read_table(text.encode(), "a.csv", LIMITS)
    kept = [cell.strip() for cell in cells if cell != '"']
    numbers = [cell for cell in kept if cell not in ("", "NA")]
    plain = all(cell in ("1", "-2.5", "3e4", "inf", "7") for cell in numbers)
    usable = "numeric" if numbers else "empty"
    assert (table.columns[0].kind == usable) == plain
    if plain and numbers:
        expected = [np.nan if cell in ("", "NA") else float(cell) for cell in kept]
        np.testing.assert_array_equal(table.values["a"], expected)


def test_a_cut_file(rng):
    content = valid_csv(rng)
    for end in range(len(content)):
        outcome(content[:end], "a.csv")
    packed = valid_parquet()
    assert all("problem" in line for line in contained([packed[:end] for end in range(0, len(packed), 9)]))
