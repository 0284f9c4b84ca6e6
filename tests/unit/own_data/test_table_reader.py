"""Bad files, each with its sentence and a way forward, and never a value of the data in it."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpgrams_core import DataError, SpecError, load_table
from dpgrams_core.model.environment import Settings
from dpgrams_core.model.progress import Stopped, stoppable
from dpgrams_core.model.units import scaled_by_box
from dpgrams_core.own_data.reading import csv as csv_reader
from dpgrams_core.own_data.reading import csv as csv_text
from dpgrams_core.own_data.reading import guarded
from dpgrams_core.own_data.reading.table import Limits, read_table
from dpgrams_core.own_data.table import LEAST_ROWS, named_box, picked_names, picked_rows, read_upload, table_of_frame

SECRET = "73164.8291"  # in every bad file, and in no sentence
SECRET_WORD = "Zaphod"
ROWS = "".join(f"{k},{2 * k}\n" for k in range(40, 80))


def csv(text, encoding="utf-8"):
    return text.encode(encoding)


def as_parquet(columns, **options):
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file, **options)
    return file.getvalue()


def good_parquet():
    return as_parquet({"a": np.arange(40.0), "b": np.append(np.arange(39.0), float(SECRET))})


def damaged(content, begin, end):
    return content[:begin] + bytes(255 - byte for byte in content[begin:end]) + content[end:]


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", f"a,b\n{SECRET},1\n")
    return file.getvalue()


def bomb():
    """Some kilobytes that stand for ten million rows."""
    return as_parquet({"a": pa.array(np.zeros(10_000_000)), "b": pa.array(np.full(10_000_000, float(SECRET)))})


# name of the file, its content, and words of its sentence; each is read with the limits of an upload.
UNREADABLE = {
    "an empty file": ("a.csv", b"", "is empty"),
    "blank lines only": ("a.csv", b"\n\r\n  \n", "is blank"),
    "a byte-order mark and nothing else": ("a.csv", b"\xef\xbb\xbf", "is blank"),
    "column names and no rows": ("a.csv", b"a,b\n", "no rows"),
    "names, blank lines, no rows": ("a.csv", b"a,b\n\n\n", "no rows"),
    "UTF-16 with its mark": ("a.csv", csv(f"a,b\n1,{SECRET}\n", "utf-16"), "UTF-16"),
    "UTF-16 without a mark": ("a.csv", csv(f"a,b\n1,{SECRET}\n", "utf-16-le"), "UTF-16"),
    "UTF-16, the other order": ("a.csv", csv(f"a,b\n1,{SECRET}\n", "utf-16-be"), "UTF-16"),
    "Latin-1": ("a.csv", csv(f"größe,b\n{SECRET},1\n", "latin-1"), "not UTF-8"),
    "Latin-1 far down": ("a.csv", csv("a,b\n" + ROWS * 9000 + f"{SECRET},é\n", "latin-1"), "not UTF-8"),
    "a letter cut in the middle": ("a.csv", csv(f"a,b\n{SECRET},é")[:-1], "not UTF-8"),
    "a binary file called .csv": ("a.csv", csv(f"a,b\n{SECRET}\0\1\2,3\n"), "binary"),
    "zero bytes at the end": ("a.csv", csv(f"a,b\n1,{SECRET}\n") + bytes(1000), "binary"),
    "a zip archive": ("a.csv", zipped(), "zip archive or an Excel"),
    "an Excel workbook": ("a.xlsx", zipped(), "zip archive or an Excel"),
    "an old Excel workbook": ("a.xls", b"\xd0\xcf\x11\xe0" + bytes(100), "old Excel"),
    "a gzip file": ("a.csv.gz", b"\x1f\x8b" + SECRET.encode(), "gzip"),
    "a zstandard file": ("a.csv", b"\x28\xb5\x2f\xfd" + SECRET.encode(), "zstandard"),
    "a PDF": ("a.csv", b"%PDF-1.7 " + SECRET.encode(), "PDF"),
    "a picture": ("a.csv", b"\x89PNG\r\n\x1a\n" + SECRET.encode(), "picture"),
    "a database": ("a.csv", b"SQLite format 3\0" + SECRET.encode(), "database"),
    "a Feather file": ("a.csv", b"ARROW1\0\0" + SECRET.encode(), "Arrow"),
    "one name twice": ("a.csv", csv(f"a,b,a\n1,2,{SECRET}\n"), "Columns 1 and 3 have the same name"),
    "one name twice, with blanks": ("a.csv", csv(f"a, a\n1,{SECRET}\n"), "same name"),
    "an empty name": ("a.csv", csv(f"a,,c\n1,2,{SECRET}\n"), "Column 2 has no name"),
    "an empty last name": ("a.csv", csv(f"a,b,\n1,2,{SECRET}\n"), "Column 3 has no name"),
    "no names, numbers first": ("a.csv", csv(f"{SECRET},2\n3,4\n"), "does not look like column names"),
    "no names, a word first": ("a.csv", csv(f"{SECRET_WORD},{SECRET}\n{SECRET_WORD},3\n"), "see column 2"),
    "no names, a date first": ("a.csv", csv(f"1998-05-06,x\n{SECRET},4\n"), "see column 1"),
    "no names, a currency first": ("a.csv", csv(f"x,${SECRET}\ny,4\n"), "see column 2"),
    "no names, an infinite value": ("a.csv", csv(f"x,inf\n{SECRET},4\n"), "see column 2"),
    "no names, a missing value": ("a.csv", csv(f"x,NA\n{SECRET},4\n"), "see column 2"),
    "an endless name": ("a.csv", csv("a,b" + "b" * 200 + f"\n1,{SECRET}\n"), "too long"),
    "a name with control characters": ("a.csv", csv(f"a,b\x07c\n1,{SECRET}\n"), "unprintable"),
    "an endless first line": ("a.csv", csv("a" * 2_000_000), "first line is too long"),
    "more columns than are taken": ("a.csv", csv(",".join(f"c{k}" for k in range(1001)) + "\n"), "1,001 columns"),
    "Excel's separator mark": ("a.csv", csv(f"sep=;\na;b\n1;{SECRET}\n"), "Excel's mark"),
    "a row too long": ("a.csv", csv(f"a,b\n{ROWS}1,2,{SECRET}\n"), "1 row has more or fewer"),
    "two rows too short": ("a.csv", csv(f"a,b\n{ROWS}1\n{SECRET}\n"), "2 rows have more or fewer"),
    "rows with another separator": ("a.csv", csv(f"a,b\n1;2\n3;{SECRET}\n"), "or the separator"),
    "separated by blanks": ("a.csv", csv(f"a b\n1 2\n3 {SECRET}\n"), "commas or blanks inside"),
    "words separated by colons": ("a.csv", csv(f"a:b\nx:{SECRET}\n"), "Only one column was found"),
    "a quotation mark never closed": ("a.csv", csv(f'a,b\n1,"2\n{SECRET},4\n'), "never closed"),
    "a quotation mark never closed in the names": ("a.csv", csv(f'a,"b\n1,{SECRET}\n'), "never closed"),
    "quotation marks in a mess": ("a.csv", csv(f'a,"b\n1,"{SECRET}\n'), "quotation marks"),
    "one cell as large as a file": ("a.csv", csv(f'a,b\n1,"{SECRET}' + "x" * 9_000_000 + '"\n'), "told apart"),
    "text in every column": ("a.csv", csv(f"a,b\nx,y\nz,{SECRET_WORD}\n"), "No column holds numbers"),
    "decimal commas": ("a.csv", csv("a;b\n1,5;2,5\n3,5;" + SECRET.replace(".", ",")), "commas or blanks inside"),
    "thousands separated": ("a.csv", csv('a\n"1,234,567.5"\n"73,164"\n'), "commas or blanks inside"),
    "currencies": ("a.csv", csv(f"a\n$1\n${SECRET}\n"), "signs beside"),
    "per cent": ("a.csv", csv(f"a\n1%\n{SECRET}%\n"), "signs beside"),
    "text among the numbers": ("a.csv", csv(f"a\n1\n{SECRET_WORD}\n{SECRET}\n"), "text among its numbers"),
    "all cells empty": ("a.csv", b"a,b\n,\n,\n,\n", "No column holds numbers"),
    "JSON": ("a.csv", csv(f'{{"a": [1, {SECRET}]}}\n'), "does not look like column names"),
    "a web page": ("a.csv", csv(f"<!doctype html>\n<p>{SECRET}</p>\n"), "does not look like column names"),
    "a file too large": ("a.csv", csv("a,b\n" + ROWS * 250_000), "at most 50 MB"),
    "too many rows": ("a.csv", csv("a\n" + "1\n" * 5_000_001), "more than 5,000,000 rows"),
    "Parquet called .csv": ("a.csv", good_parquet(), "holds Parquet"),
    "text called .parquet": ("a.parquet", csv(f"a,b\n1,{SECRET}\n"), "does not begin like one"),
    "Parquet cut short": ("a.parquet", good_parquet()[:300], "damaged or not complete"),
    "Parquet's name and nothing else": ("a.parquet", b"PAR1", "damaged or not complete"),
    "Parquet with broken pages": ("a.parquet", damaged(good_parquet(), 4, 60), "damaged or not complete"),
    "Parquet with a broken footer": ("a.parquet", damaged(good_parquet(), -60, -8), "damaged or not complete"),
    "a Parquet bomb": ("a.parquet", bomb(), "more than 5,000,000 rows"),
    "Parquet without rows": ("a.parquet", as_parquet({"a": pa.array([], pa.float64())}), "no rows"),
    "Parquet with lists only": ("a.parquet", as_parquet({"a": [[float(SECRET)], [1.0]]}), "No column holds numbers"),
    "Parquet with records only": ("a.parquet", as_parquet({"a": [{"b": float(SECRET)}]}), "No column holds numbers"),
    "Parquet with words only": ("a.parquet", as_parquet({"a": [SECRET_WORD]}), "No column holds numbers"),
    "Parquet with numbers as names": ("a.parquet", as_parquet({"0": [float(SECRET)]}), "does not look like column"),
    "Parquet with one name twice": (
        "a.parquet",
        as_parquet(pa.table([[1.0], [float(SECRET)]], names=["a", "a"])),
        "same name",
    ),
    "Parquet, all missing": ("a.parquet", as_parquet({"a": pa.array([None, None], pa.float64())}), "No column holds"),
}

SMALL = Limits(max_bytes=50_000_000)


def sentence_of(call):
    """The sentence of a refusal, checked: it is short, gives a way forward, and its error carries nothing else."""
    with pytest.raises((DataError, SpecError)) as caught:
        call()
    message = str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert SECRET not in message
    assert SECRET.split(".")[0] not in message.replace(",", "")
    assert SECRET_WORD not in message
    assert message.endswith(".")
    assert len(message) < 300
    return message


# Each starts a process, and a quick sibling says the same: of Parquet itself, and of a file without numbers.
DEAR = (
    *("Parquet, other types", "Parquet, another packing", "Parquet, all missing"),
    *("Parquet with records only", "Parquet with words only"),
)


def dear_ones_marked(names):
    return [pytest.param(name, marks=pytest.mark.slow) if name in DEAR else name for name in names]


def test_there_are_enough_bad_files():
    assert set(DEAR) <= {*UNREADABLE, *GOOD}
    assert len(UNREADABLE) >= 40


@pytest.mark.parametrize("what", dear_ones_marked(UNREADABLE))
def test_a_bad_file_gets_its_sentence(what, tmp_path):
    name, content, words = UNREADABLE[what]
    message = sentence_of(lambda: read_table(content, name, SMALL))
    assert words in message
    assert message.count(". ") >= 1 or ":" in message  # what is wrong, and a way forward
    if content.startswith(b"PAR1") and not what.endswith("bomb"):
        return  # each starts a process; one of them says that a path is read alike
    path = tmp_path / name
    path.write_bytes(content)
    assert sentence_of(lambda: read_table(path, limits=SMALL)) == message  # a local file is read no other way


GOOD = {
    "plain": b"a,b\n" + ROWS.encode(),
    "a byte-order mark": b"\xef\xbb\xbfa,b\n" + ROWS.encode(),
    "semicolons": b"a;b\n" + ROWS.replace(",", ";").encode(),
    "tabs": b"a\tb\n" + ROWS.replace(",", "\t").encode(),
    "vertical bars": b"a|b\n" + ROWS.replace(",", "|").encode(),
    "Windows lines": b"a,b\r\n" + ROWS.replace("\n", "\r\n").encode(),
    "old Macintosh lines": b"a,b\r" + ROWS.replace("\n", "\r").encode(),
    "no line end at the end": b"a,b\n" + ROWS.rstrip().encode(),
    "blank lines before and between": b"\n\na,b\n\n" + ROWS.replace("\n", "\n\n").encode(),
    "quoted cells and blanks": b'"a","b"\n' + ROWS.replace(",", " , ").encode(),
    "signs and exponents": b"a,b\n" + "".join(f"+{k}.0,{2 * k / 10}E1\n" for k in range(40, 80)).encode(),
    "Parquet": as_parquet({"a": np.arange(40, 80), "b": 2 * np.arange(40, 80)}),
    "Parquet, other types": as_parquet(
        {"b": pa.array(range(80, 160, 2), pa.decimal128(9, 2)), "a": pa.array(range(40, 80), pa.int16())}
    ),
    "Parquet, another packing": as_parquet(
        {"a": np.arange(40.0, 80), "b": np.arange(80.0, 160, 2)}, compression="gzip"
    ),
    "other order": b"b,a\n" + "".join(f"{2 * k},{k}\n" for k in range(79, 39, -1)).encode(),
    "other names": b"x,y\n" + ROWS.encode(),
    "with a text column": b"a,t,b\n" + "".join(f'{k},"w,\n{k}",{2 * k}\n' for k in range(40, 80)).encode(),
}


@pytest.mark.parametrize("what", dear_ones_marked(GOOD))
def test_a_good_file_is_read_and_known_again(what):
    table = read_table(GOOD[what], limits=SMALL)
    assert table.n_rows == 40
    found = sorted(sorted(column.tolist()) for column in table.values.values())
    assert found == [list(range(40, 80)), list(range(80, 160, 2))]
    assert table.content == read_table(GOOD["plain"]).content  # so its budget is the same
    assert table.content == table_of_frame(pd.DataFrame({"a": range(40, 80), "b": range(80, 160, 2)})).content


@pytest.mark.parametrize(
    "other",
    [
        b"a,b\n" + ROWS.encode() + b"1,2\n",
        b"a,b\n" + ROWS.replace("40,80", "40,81").encode(),
        b"a\n" + "".join(f"{k}\n" for k in range(40, 80)).encode(),
        b"a,b\n" + ROWS.replace("40,80\n41,82", "40,82\n41,80").encode(),
    ],
)
def test_another_content_is_another_data_set(other):
    assert read_table(other).content != read_table(GOOD["plain"]).content


def test_the_separator_is_said():
    assert read_table(GOOD["semicolons"]).notes == ("The columns are separated by semicolons.",)
    assert read_table(GOOD["plain"]).notes == ()


LINE_ENDS = pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["plain", "Windows", "old Macintosh"])


@LINE_ENDS
@pytest.mark.parametrize("piece", [7, 8, 9, 1000])
def test_a_blank_line_of_one_column_is_a_missing_value(line_end, piece, monkeypatch):
    monkeypatch.setattr(csv_reader, "PIECE", piece)  # so that line ends are cut in two
    monkeypatch.setattr(csv_text, "PIECE", piece)
    cells = ["", *map(str, range(10, 20)), "", "", *map(str, range(20, 30))]
    table = read_table(line_end.join(["a", *cells, "", "", ""]).encode())  # those at the end are nothing
    np.testing.assert_array_equal(table.values["a"], [float(cell) if cell else np.nan for cell in cells])
    assert table.notes == ()
    assert np.isnan(picked_rows(table, ["a"])).sum() == 3
    quoted = read_table(line_end.join(["a", *(cell or '""' for cell in cells)]).encode())  # as pandas writes it
    assert quoted.content == table.content


@LINE_ENDS
@pytest.mark.parametrize("piece", [23, 24, 25, 1000])
def test_blank_lines_between_several_columns_are_counted(line_end, piece, monkeypatch):
    monkeypatch.setattr(csv_reader, "PIECE", piece)
    monkeypatch.setattr(csv_text, "PIECE", piece)
    rows = [f'{k},"x\n\r\n{k}"' for k in range(10, 30)]  # a blank line in a cell is none
    lines = ["", "a,b", "", *rows[:9], "", "", *rows[9:], "", ""]
    table = read_table(line_end.join(lines).encode())
    assert (table.n_rows, table.numeric, table.notes) == (20, ("a",), ("4 blank lines were skipped.",))
    one = read_table(line_end.join(["a;b", "1;2", "", "3;4"]).encode())
    assert one.notes == ("The columns are separated by semicolons.", "1 blank line was skipped.")


@pytest.mark.slow
def test_a_million_rows_are_read(rng):
    numbers = rng.integers(0, 1000, 1_000_000)
    table = read_table(b"a,b\n" + b"".join(b"%d,%d\n" % (k, k + 1) for k in numbers.tolist()), "a.csv")
    assert table.n_rows == 1_000_000
    np.testing.assert_array_equal(table.values["a"], numbers)


def test_what_a_table_prints_is_public():
    table = read_table(csv(f"age,town\n{SECRET},{SECRET_WORD}\n" + ROWS), "people.csv")
    assert [column.name for column in table.columns] == ["age", "town"]
    for text in (repr(table), str(table), str(table.columns)):
        assert SECRET not in text
        assert SECRET_WORD not in text
        assert "content" not in text
    assert [column.kind for column in table.columns] == ["numeric", "mixed"]


def test_nested_columns_are_named_and_never_read():
    table = read_table(as_parquet({"a": np.arange(40.0), "b": [[float(SECRET)]] * 40, "c": [{"x": 1}] * 40}))
    assert [column.kind for column in table.columns] == ["numeric", "nested", "nested"]
    assert list(table.values) == ["a"]
    assert "lists or records" in sentence_of(lambda: picked_names(table, ["b"]))


def test_a_parquet_file_that_unpacks_to_too_much():
    content = as_parquet({"a": np.arange(100_000.0)})
    assert "more than 50,000 numbers" in sentence_of(lambda: read_table(content, limits=Limits(max_numbers=50_000)))


@pytest.mark.parametrize(
    "program",
    [
        "import os; os.abort()",  # as Arrow does on some damaged files
        f"import sys; print({SECRET!r}, file=sys.stderr); raise SystemError({SECRET!r})",
        "import time; time.sleep(60)",
        "bytearray(10**13)",
        f"print({SECRET!r})",
        "print('no answer')",
    ],
)
def test_a_parquet_file_that_ends_or_holds_up_its_process(program, tmp_path, monkeypatch):
    (tmp_path / "child.py").write_text(program)
    monkeypatch.setattr(guarded, "CHILD", tmp_path / "child.py")
    monkeypatch.setattr(guarded, "WAIT_SECONDS", 2.0)
    sentence_of(lambda: read_table(good_parquet(), "a.parquet"))


@pytest.mark.slow
def test_the_process_of_a_file_has_bounds(tmp_path):
    """Of memory; and it can write nothing to the disk, not even its own memory when it crashes."""
    program = f"""
import resource, runpy
runpy.run_path({str(guarded.CHILD)!r})["bind"](1_000_000, 1_000)
assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
kept = bytearray(500 * 2**20)
try:
    bytearray(2**30)
except MemoryError:
    print("no memory")
try:
    with open({str(tmp_path / "file")!r}, "w") as file:
        file.write("x")
except OSError:
    print("no file")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["no memory", "no file", ""]


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"a,b\n" + ROWS.encode(), good_parquet()], ids=["CSV", "Parquet"])
def test_an_upload_is_read_nowhere_but_in_the_guarded_process(content, tmp_path, monkeypatch):
    settings = Settings(ledger=Path("unused"))
    assert read_upload(content, "a", settings).content == read_table(content, "a").content
    (tmp_path / "child.py").write_text("import os; os.abort()")
    monkeypatch.setattr(guarded, "CHILD", tmp_path / "child.py")
    sentence_of(lambda: read_upload(content, "a", settings))


SLOW = {
    "that does not take the file": "import time; time.sleep(60)",
    "that says nothing": "import sys, time; sys.stdin.buffer.read(); time.sleep(60)",
    "that says half a line": "import sys, time; sys.stdin.buffer.read(); print('{', end='', flush=1); time.sleep(60)",
    "that sends no numbers": """import json, sys, time; sys.stdin.buffer.read()
print(json.dumps({"columns": [["a", "numeric"]], "rows": 20}), flush=True); time.sleep(60)""",
    "that does not end": """import json, sys, time; sys.stdin.buffer.read()
print(json.dumps({"columns": [], "rows": 0}), flush=True); sys.stdout.buffer.write(bytes(8)); sys.stdout.flush()
time.sleep(60)""",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", SLOW)
def test_a_slow_process_ends_with_the_visit_of_whoever_handed_the_file_in(what, tmp_path, monkeypatch):
    (tmp_path / "child.py").write_text(SLOW[what])
    monkeypatch.setattr(guarded, "CHILD", tmp_path / "child.py")
    started, begin = [], subprocess.Popen

    def noted(*words, **more):
        started.append(begin(*words, **more))
        return started[-1]

    monkeypatch.setattr(guarded.subprocess, "Popen", noted)
    left = time.monotonic() + 1.0

    def check() -> None:
        if time.monotonic() > left:
            raise Stopped

    content = b"a\n" + b"1\n" * 500_000  # more than a pipe holds
    with pytest.raises(Stopped), stoppable(check):
        read_upload(content, "a.csv", Settings(ledger=Path("unused")))
    (process,) = started
    assert process.poll() == -signal.SIGKILL
    assert process.stdout.closed


@pytest.mark.slow
def test_a_csv_upload_that_keeps_its_parser_busy_is_ended(monkeypatch):
    """Every row of the wrong length takes a call into Python; in this process nothing would end them."""
    monkeypatch.setattr(guarded, "WAIT_SECONDS", 1.5)
    content = b"a,b\n" + b"1\n" * 20_000_000
    assert "within the limits" in sentence_of(lambda: read_upload(content, "a.csv", Settings(ledger=Path("unused"))))


def test_an_upload_says_of_a_csv_file_what_a_local_one_does(tmp_path):
    content = b"a;b\n\n" + ROWS.replace(",", ";").encode()
    (tmp_path / "a.csv").write_bytes(content)
    held, local = read_upload(content, "a.csv", Settings(ledger=Path("unused"))), read_table(tmp_path / "a.csv")
    assert (held.columns, held.n_rows, held.notes) == (local.columns, local.n_rows, local.notes)
    assert held.content == local.content
    assert len(held.notes) == 2


@pytest.mark.slow
def test_the_numbers_of_an_upload_stay_within_its_room():
    content, settings = b"a,b\n" + ROWS.encode(), Settings(ledger=Path("unused"))
    assert read_upload(content, "a.csv", settings, room=lambda: 640).n_rows == 40
    for data in (content, as_parquet({"a": np.arange(40.0), "b": np.arange(40.0)})):
        assert "more than 79 numbers" in sentence_of(
            lambda data=data: read_upload(data, "a", settings, room=lambda: 639)
        )


def test_the_owner_reads_any_size(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n" + ROWS.encode() * 10)
    small = Limits(max_bytes=100, max_rows=5, max_numbers=5)
    assert "MB" in sentence_of(lambda: read_table(path, limits=small))
    assert read_table(path, limits=Limits.of_owner()).n_rows == 400


def test_a_path_that_is_not_there(tmp_path):
    assert "no such file" in sentence_of(lambda: read_table(tmp_path / "none.csv"))
    assert "no such file" in sentence_of(lambda: read_table(tmp_path))


COLUMN = "".join(f"{k}\n" for k in range(30))
BOX = {"a": (0, 100)}
# rows of one column named a, options, and words of the sentence.
UNUSABLE = {
    "one row": (f"{SECRET}\n", {}, "only 1 row in the file"),
    "nine rows": ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", {}, f"at least {LEAST_ROWS}"),
    "no such column": (COLUMN, {"columns": ["c"]}, "the numeric ones are a"),
    "no column": (COLUMN, {"columns": []}, "one to 6"),
    "one column twice": (COLUMN, {"columns": ["a", "a"]}, "every column once"),
    "a name in place of a list": (COLUMN, {"columns": "a"}, "list of column names"),
    "a response that is the predictor": (COLUMN, {"response": "a"}, "every column once"),
    "no box": (COLUMN, {"box": {}}, "lacks bounds for a"),
    "a box for another column": (COLUMN, {"box": {**BOX, "z": (0, 1)}}, "z is not among"),
    "an empty box": (COLUMN, {"box": {"a": (1, 1)}}, "box is empty"),
    "a box that is not finite": (COLUMN, {"box": {"a": (0, float("inf"))}}, "finite"),
    "a box of words": (COLUMN, {"box": {"a": ("x", "y")}}, "pair of numbers"),
    "a box without room": (COLUMN, {"box": {"a": (1e9, 1e9 + 0.5)}}, "too close together"),
    "a box too far out": (COLUMN, {"box": {"a": (0, 1e13)}}, "1e+12"),
    "another kind": (COLUMN, {"kind": "regression"}, "clusters, modes"),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_columns_that_cannot_be_used_get_a_sentence(what, tmp_path):
    rows, options, words = UNUSABLE[what]
    path = tmp_path / "a.csv"
    path.write_text("a\n" + rows)
    message = sentence_of(lambda: load_table(path, **{"columns": ["a"], "box": BOX, **options}))
    assert words in message


def test_seven_columns_are_too_many():
    frame = pd.DataFrame({f"c{k}": np.arange(20.0) for k in range(7)})
    assert "one to 6" in sentence_of(lambda: load_table(frame, columns=list(frame), box=[(0, 1)] * 7))
    assert load_table(frame, columns=list(frame)[:6], box=[(0, 20)] * 6).dimension == 6


class TestLoadTable:
    def frame(self):
        return pd.DataFrame({"age": np.linspace(10, 90, 50), "pay": np.linspace(0, 2e6, 50), "who": ["x"] * 50})

    def test_the_records_keep_their_units_and_methods_see_the_standard_box(self):
        data = load_table(self.frame(), columns=["age", "pay"], box={"age": (0, 100), "pay": (0, 4e6)})
        assert (data.private, data.kind, data.name) == (True, "modes", "own data")
        assert "that it can be read" in data.statements[0]  # a refusal says so
        assert "there are 50 rows" in data.statements[0]
        assert data.box.tolist() == [[0, 100], [0, 4e6]]
        np.testing.assert_array_equal(data.points, self.frame()[["age", "pay"]])
        seen = scaled_by_box(data)
        assert seen.box.tolist() == data.method_box.tolist() == [[-4, 4], [-4, 4]]
        assert seen.points[:, 0].min() == pytest.approx(-4 + 0.8)
        assert seen.points[:, 1].max() == pytest.approx(0)

    def test_values_outside_the_box_are_moved_to_its_edge(self):
        data = load_table(self.frame(), columns=["age", "pay"], box=[(40, 60), (1e6, 4e6)])
        np.testing.assert_array_equal(data.points, self.frame()[["age", "pay"]].clip([40, 1e6], [60, 4e6], axis=1))
        assert np.abs(scaled_by_box(data).points).max() == 4
        assert any("moved to its edge" in text for text in data.statements)

    def test_regression(self):
        data = load_table(self.frame(), columns=["age"], response="pay", box={"pay": (0, 2e6), "age": (0, 100)})
        assert (data.kind, data.columns) == ("regression", ("age", "pay"))
        assert data.box.tolist() == [[0, 100], [0, 2e6]]
        assert "exactly one predictor" in sentence_of(
            lambda: load_table(self.frame(), columns=["age", "who"], response="pay", box=[(0, 1)] * 3)
        )

    @pytest.mark.parametrize("asked", [{}, {"drop_rows_with_missing": True}, {"drop_rows_with_missing": False}])
    def test_no_row_is_dropped_and_nothing_said_of_how_many_miss_a_value(self, asked):
        whole, frame = self.frame(), self.frame()
        frame.loc[3, "age"], frame.loc[7, "pay"] = np.nan, np.inf
        box = [(0, 100), (0, 4e6)]
        data, other = (load_table(item, columns=["age", "pay"], box=box, **asked) for item in (frame, whole))
        assert data.n == other.n == 50
        assert data.statements == other.statements
        assert np.isnan(data.points[3]).tolist() == [True, False]
        assert data.points[7, 1] == 4e6
        assert len(data.usable_points) == 49
        again = load_table(frame, columns=["age"], box=[(0, 100)], **asked)
        assert again.content == data.content  # one table, one budget, whatever is picked from it

    @pytest.mark.parametrize(
        "values",
        [[5.0] * 30, [np.nan] * 29 + [5.0], [np.inf, -np.inf, np.nan] * 10, [1e308, -1.79e308, 5e-324] * 10],
        ids=["constant", "missing but for one", "infinite", "huge"],
    )
    def test_no_record_decides_whether_a_table_can_be_used(self, values):
        data = load_table(pd.DataFrame({"a": values}), columns=["a"], box=[(1e11, 1e11 + 1000)])
        seen = scaled_by_box(data).points
        assert data.n == 30
        assert np.abs(seen[~np.isnan(seen)]).max() <= 4
        assert data.statements == load_table(pd.DataFrame({"a": range(30)}), columns=["a"], box=[(0, 1)]).statements

    def test_missing_rows_matter_only_in_picked_columns(self):
        frame = self.frame()
        frame.loc[3, "age"] = np.nan
        assert load_table(frame, columns=["pay"], box=[(0, 4e6)]).n == 50

    def test_a_frame_with_odd_columns(self):
        frame = self.frame().assign(
            flag=True, z=1j, i=pd.array([None, *range(49)], dtype="Int64"), t=pd.Timestamp("2020-01-01")
        )
        table = table_of_frame(frame)
        assert table.numeric == ("age", "pay", "i")
        assert np.isnan(table.values["i"][0])
        for odd in (3, [1, 2], {"a": 1}):
            assert "DataFrame" in sentence_of(lambda odd=odd: table_of_frame(odd))
        for names in (["a", "a"], [0, 1]):
            bad = pd.DataFrame(np.ones((20, 2)), columns=names)
            assert "column" in sentence_of(lambda bad=bad: table_of_frame(bad)).lower()

    def test_the_frame_is_copied(self):
        frame = self.frame()
        table = table_of_frame(frame)
        frame.loc[0, "age"] = -1.0
        assert table.values["age"][0] == 10
        with pytest.raises(ValueError, match="read-only"):
            table.values["age"][0] = 3

    def test_nothing_of_the_records_is_printed(self):
        frame = self.frame()
        frame.loc[0, "age"] = float(SECRET)
        data = load_table(frame, columns=["age"], box=[(0, 1e5)])
        assert not re.search(r"73164|points|content", repr(data))
        assert "73164" not in " ".join(data.statements)

    def test_named_box_in_order(self):
        assert named_box(("p", "q"), [(0, 1), (2, 3)]).tolist() == [[0, 1], [2, 3]]
        assert "give 2 pairs" in sentence_of(lambda: named_box(("p", "q"), [(0, 1)]))

    def test_picked_rows_keep_their_order(self):
        table = table_of_frame(self.frame())
        np.testing.assert_array_equal(picked_rows(table, ("pay", "age")), self.frame()[["pay", "age"]])


def test_uploads_follow_the_settings():
    content = b"a,b\n" + ROWS.encode()
    on = Settings(ledger=Path("unused"))
    assert read_upload(content, "a.csv", on).n_rows == 40
    off = Settings(ledger=Path("unused"), uploads=False)
    assert "switched off" in sentence_of(lambda: read_upload(content, "a.csv", off))
    small = Settings(ledger=Path("unused"), max_upload_bytes=20)
    assert "MB" in sentence_of(lambda: read_upload(content, "a.csv", small))
