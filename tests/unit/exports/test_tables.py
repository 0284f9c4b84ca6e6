"""CSV files that spreadsheets read as numbers and text."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgrams_core.exports.csv import safe_text, table_csv

SIGNS = "=+-@＝＋－＠"
ATTACKS = [
    "=1+1",
    '=HYPERLINK("http://evil","x")',
    "+A1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "\ufeff=1",
    "＝1+1",
    "＠SUM(A1)",
    "-",
    "+",
    "-1e",
    "a;=1+1",
    "a\n=1+1",
    "a\t@x",
    "-inf()",
]


def rows(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize("text", ATTACKS)
def test_text_that_would_be_computed_is_quoted_in_cells_and_headers(text):
    head, cell = (line[1] for line in rows(table_csv(pd.DataFrame({"first": ["x"], text: [text]}))))
    for found in (head, cell):
        assert not found.startswith((*SIGNS, "\t", "\r", "\n"))
        assert found.replace("'", "") == text.replace("'", "")  # nothing but apostrophes was put in
        assert found != text


@given(st.text(alphabet=SIGNS + " \t\r\n;|'\"ab1.,e", max_size=8))
def test_no_part_of_a_cell_that_a_spreadsheet_splits_off_begins_with_a_sign(text):
    found = safe_text(text)
    if found == text and text.startswith(("+", "-")):
        float(text)  # only a written number may keep its sign
        return
    for part in [found, *found.replace("\r", ";").replace("\n", ";").replace("\t", ";").replace("|", ";").split(";")]:
        assert not part.strip().startswith(tuple(SIGNS))


def test_numbers_stay_numbers_to_the_last_digit(rng):
    values = np.concatenate([rng.normal(size=50) * 10.0 ** rng.integers(-12, 12, 50), [-1.5, 0.0, -0.0, np.nan]])
    frame = pd.DataFrame({"value": values, "count": np.arange(len(values)) - 20, "good": values > 0})
    back = pd.read_csv(io.BytesIO(table_csv(frame)))
    pd.testing.assert_frame_equal(back, frame)


def test_missing_values_are_empty_cells_and_no_index_is_written():
    frame = pd.DataFrame({"a": [None, "x", pd.NA, pd.NaT, float("nan")]}, index=list("pqrst"))
    assert rows(table_csv(frame)) == [["a"], [""], ["x"], [""], [""], [""]]


def test_greek_letters_quotes_and_line_breaks_survive():
    frame = pd.DataFrame({"ε, δ": ['say "x", y', "two\nlines", "naïve – ∞"]})
    content = table_csv(frame)
    assert content.startswith(b"\xef\xbb\xbf")
    assert rows(content) == [["ε, δ"], ['say "x", y'], ["two\nlines"], ["naïve – ∞"]]
