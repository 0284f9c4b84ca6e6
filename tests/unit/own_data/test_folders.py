"""A folder of files is one more source of the same table: same door, same sums, same identity, and one pass."""

from __future__ import annotations

import itertools
import json
import sqlite3
import tempfile
import tracemalloc
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgrams_core import METHODS, DataError, SpecError, load_table
from dpgrams_core.cli.main import main
from dpgrams_core.methods.functional import modes
from dpgrams_core.model.specs import make_spec
from dpgrams_core.model.units import scaled_by_box
from dpgrams_core.numerics.rounding import UNIT, summing_error, whitening_error
from dpgrams_core.numerics.surface import node_counts
from dpgrams_core.own_data import folder as folders
from dpgrams_core.own_data import release as releasing
from dpgrams_core.own_data.folder import add_up_folder, folder_identity, read_folder
from dpgrams_core.own_data.reading import csv
from dpgrams_core.own_data.reading import table as table_reader
from dpgrams_core.own_data.reading.table import Limits, look_at, part_numbers
from dpgrams_core.own_data.release import release
from dpgrams_core.own_data.table import table_of_frame
from dpgrams_core.privacy.ledger import digest as content
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.overlap import KeyedTraces
from dpgrams_core.privacy.noise import ReleaseNoise

SECRET = "918273.25"
METHOD_OF = {"modes": "functional", "regression": "functional_regression", "clusters": "functional_c"}


def write(path, frame):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


def write_parts(place, frame, cuts=(), ending=".csv"):
    """A folder with the rows of a frame, cut at these places."""
    place.mkdir(exist_ok=True)
    ends = sorted({0, len(frame), *cuts})
    for number, (begin, end) in enumerate(itertools.pairwise(ends)):
        write(place / f"part{number:03}{ending}", frame[begin:end])
    return place


def people(rng, n=60):
    return pd.DataFrame({"age": rng.normal(40, 10, n), "pay": rng.normal(30, 8, n), "town": "here"})


class NoNoise:
    """To look at sums; only a test has such a thing."""

    door = ReleaseNoise.door

    def independent_gaussian(self, values, scale):
        return values


def in_memory(method, frame, options, **more):
    data = load_table(frame, **more)
    chosen = METHODS[method]
    spec = make_spec(chosen.spec, options)
    return data, chosen.bare(chosen.admitted(scaled_by_box(data)), spec, NoNoise()).surface.coefficients


@settings(max_examples=25)
@given(
    kind=st.sampled_from(["modes", "regression", "clusters"]),
    d=st.integers(1, 4),
    cuts=st.sets(st.integers(1, 79), max_size=6),
    chunk=st.integers(1, 40),
    numbers=st.integers(0, 2**32),
)
def test_any_partition_adds_up_to_what_memory_holds(kind, d, cuts, chunk, numbers):
    """To the rounding that rounding.py allows for, with chunks of any size; missing and infinite values too."""
    d = 2 if kind == "regression" else d
    rng = np.random.default_rng(numbers)
    values = rng.normal(size=(80, d))
    values[rng.random((80, d)) < 0.1] = np.nan
    values[rng.random((80, d)) < 0.1] = np.inf
    values[[0, *cuts]] = 0.5  # a file without any number is refused by its name
    names = [f"c{number}" for number in range(d)]
    frame = pd.DataFrame(values, columns=names)
    more = {"columns": names, "box": [(-2.0, 3.0)] * d, "kind": "modes"}
    if kind == "regression":
        more |= {"columns": names[:1], "response": names[1]}
    elif kind == "clusters":
        more["kind"] = kind
    method, options = METHOD_OF[kind], {"epsilon": 0.7, "bandwidth": 0.6}
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        patch.setattr(modes, "GRID_CHUNK", chunk)
        patch.setattr(modes, "SKETCH_CHUNK", chunk)
        summed = add_up_folder(write_parts(Path(place, "a"), frame, cuts), method, **more, **options)
    held, exact = in_memory(method, frame, options, **more)
    box, h = np.array(summed.asked.box), summed.asked.bandwidth
    each = 16 * UNIT if summed.asked.blocks else sum(whitening_error(int(count)) for count in node_counts(box, h))
    assert np.linalg.norm(summed.sums - exact) <= 2 * (80 * each + summing_error(80, 80, 2))
    assert (summed.n, summed.kind, summed.columns) == (held.n, held.kind, held.columns)
    assert (summed.identity.content, summed.identity.exact) == (held.identity.content, held.identity.exact)


def test_a_longer_word_in_one_row_moves_no_other_row_to_another_chunk(rng, tmp_path, monkeypatch):
    """Pieces of CSV are cut by bytes; chunks that were cut so would differ in all later files and rows."""
    monkeypatch.setattr(csv, "PIECE", 256)
    monkeypatch.setattr(modes, "GRID_CHUNK", 11)
    frame = people(rng, 100).round(3)
    other = frame.copy()
    other.loc[4, "age"] = 1.2345678901234567e-300
    cut = []
    for number, world in enumerate((frame, other)):
        path = tmp_path / f"{number}.csv"
        write(path, world)
        facts = look_at(path, Limits.of_part())
        records = folders._Records(("age", "pay"), ((0, 1),) * 2, "functional", modes.KernelSums(((0, 1),) * 2, 1.0))
        lengths = [len(piece["age"]) for piece in part_numbers(facts, Limits.of_part())]
        chunks = [chunk.copy() for chunk in records.chunks(part_numbers(facts, Limits.of_part()))]
        cut.append((lengths, chunks))
    (lengths, chunks), (others, moved) = cut
    assert lengths != others  # the pieces did move
    assert [len(chunk) for chunk in chunks] == [11] * 9 + [1]
    assert [np.array_equal(*pair) for pair in zip(chunks, moved, strict=True)] == [False] + [True] * 9


@pytest.mark.parametrize("ending", [".csv", pytest.param(".parquet", marks=pytest.mark.slow)])
def test_the_same_rows_in_a_file_or_in_files_of_any_order_have_one_budget(ending, rng, tmp_path):
    frame = people(rng, 70)
    frame.loc[3, "age"] = np.nan
    whole = table_of_frame(frame).identity
    forth = folder_identity(read_folder(write_parts(tmp_path / "a", frame, (20, 33), ending)))
    back = folder_identity(read_folder(write_parts(tmp_path / "b", frame[::-1], (50,), ending)))
    for identity in (forth, back):
        assert (identity.content, identity.exact) == (whole.content, whole.exact)
    changed = frame.copy()
    changed.loc[9, "pay"] += 0.5
    other = folder_identity(read_folder(write_parts(tmp_path / "c", changed, (20, 33), ending)))
    assert other.content != whole.content


def test_the_traces_of_a_folder_are_those_of_its_table(rng, tmp_path, monkeypatch):
    frame = people(rng, 400)[["age", "pay"]]
    whole = table_of_frame(frame).identity.traces
    parts = folder_identity(read_folder(write_parts(tmp_path / "a", frame, (390, 395)))).traces
    for kind in ("value", "gaps", "shape"):
        for one, other in zip(whole.kinds[kind], parts.kinds[kind], strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(whole.rows, parts.rows, strict=True):
        np.testing.assert_array_equal(one, other)
    # Of a large table few values of a file are held to be sorted, and an edited one is still noticed.
    monkeypatch.setattr(folders, "MOST_SORTED", 100)
    monkeypatch.setattr(folders, "MOST_SORTED_OF_FILE", 50)
    edited = folder_identity(read_folder(write_parts(tmp_path / "b", frame.sample(frac=1)[3:], (100, 250)))).traces
    assert not any(map(len, edited.kinds["gaps"]))
    assert KeyedTraces(edited, b"key").alike(KeyedTraces(whole, b"key").text()).columns == ("age", "pay")


@pytest.fixture
def release_words(tmp_path, monkeypatch):
    """The words of a release of a folder, and a count of the charges in its ledger."""
    monkeypatch.delenv("DPGRAMS_DASK", raising=False)
    ledger = tmp_path / "ledger"

    def words(place, *more, method="functional", box=("age=0:100", "pay=0:60"), columns="age,pay"):
        boxes = [word for pair in box for word in ("--box", pair)]
        head = ["release", str(place), "--columns", columns, "--method", method, "--ledger", str(ledger)]
        return [*head, "--epsilon", "0.5", *boxes, *more]

    def charges():
        if not ledger.exists():
            return 0
        with closing(sqlite3.connect(ledger)) as book:
            return sum(book.execute(f"select count(*) from {name}").fetchone()[0] for name in ("charges", "accounts"))

    words.charges, words.ledger = charges, ledger
    return words


@pytest.mark.parametrize(("method", "more"), [("functional", ()), ("functional_c", ("--n-clusters", "2"))])
def test_a_folder_is_released_charged_and_kept_like_its_file(method, more, rng, tmp_path, release_words, capsys):
    frame = people(rng, 300)
    place = write_parts(tmp_path / "a", frame, (100, 101))
    assert main(release_words(place, "--json", *more, method=method)) == 0
    paid = json.loads(capsys.readouterr().out)
    assert paid["kept"]
    assert paid["ledger"]["epsilon"] == 0.5
    assert any("3 files" in sentence for sentence in paid["statements"])
    write(tmp_path / "all.csv", frame)
    for source in (place, tmp_path / "all.csv"):  # the same table, in a folder or not
        assert main(["kept", str(source), "--json", "--ledger", str(release_words.ledger)]) == 0
        again = json.loads(capsys.readouterr().out)["releases"]
        assert [item["modes"] for item in again] == [paid["modes"]]
    assert main(release_words(tmp_path / "all.csv", "--json", *more, method=method)) == 0  # and it has one budget
    assert json.loads(capsys.readouterr().out)["ledger"]["basic_epsilon"] == 1.0


def test_a_folder_of_regression_data_is_released(rng, tmp_path, release_words, capsys):
    place = write_parts(tmp_path / "a", people(rng, 300), (100,))
    words = release_words(place, "--json", "--response", "pay", method="functional_regression", columns="age")
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["columns"] == ["age", "pay"]


def test_what_is_drawn_is_the_sum_of_the_pass_with_the_noise_that_is_said(rng, tmp_path):
    """The noise is drawn once: with little of it the released numbers are near the sums, and not equal."""
    place = write_parts(tmp_path / "a", people(rng, 500), (100, 300))
    options = {"epsilon": 50.0, "bandwidth": 1.0}
    data = add_up_folder(place, "functional", columns=["age", "pay"], box=[(0, 100), (0, 60)], **options)
    ledger = Ledger(tmp_path / "ledger", cap_epsilon=100, cap_delta=1e-3)
    releasing.open_budget(data, ledger, cap_epsilon=100.0)
    paid = release("functional", data, ledger, **options)
    off = paid.release.surface.coefficients - data.sums
    assert 0.5 < off.std() / paid.release.noise_scale < 2
    assert paid.record.n == 500


# Each bad folder: what makes it of a good one with parts 0 and 1, the file that is named, and some of the words.
def lacks_a_column(place, ending):
    write(place / f"part001{ending}", pd.read_csv(place / "part001.csv").drop(columns="pay"))


def has_a_column_more(place, ending):
    write(place / f"part001{ending}", pd.read_csv(place / "part001.csv").assign(more=1))


def has_text(place, ending):
    write(place / f"part001{ending}", pd.read_csv(place / "part001.csv").assign(pay="secret"))


def is_of_another_kind(place, _):
    write(place / "part001.parquet", pd.read_csv(place / "part001.csv"))
    (place / "part001.csv").unlink()


BAD_CSV = {
    "lacks a column": (lacks_a_column, "part001.csv", "lacks the column pay"),
    "one more": (has_a_column_more, "part001.csv", "has the column more"),
    "text": (has_text, "part001.csv", "The column pay holds text, unlike in part000.csv"),
    "mixed": (is_of_another_kind, "part001.parquet", "It is Parquet, and part000.csv is CSV"),
    "empty": (lambda place, _: (place / "part001.csv").write_bytes(b""), "part001.csv", "The file is empty"),
    "no rows": (lambda place, _: (place / "part001.csv").write_text("age,pay,town\n"), "part001.csv", "no rows"),
    "a row too long": (
        lambda place, _: (place / "part001.csv").write_text(f"age,pay,town\n1,2,x\n1,2,{SECRET},x\n"),
        "part001.csv",
        "1 row has more or fewer cells",
    ),
    "binary": (lambda place, _: (place / "part001.csv").write_bytes(b"age\0\0\0"), "part001.csv", "binary"),
    "other": (lambda place, _: (place / "zz.pdf").write_bytes(b"%PDF"), "zz.pdf", "is a PDF document"),
    "a folder": (lambda place, _: (place / "b").mkdir(), "b", "It is a folder"),
    "unreadable": (lambda place, _: (place / "c.csv").symlink_to(place / "gone.csv"), "c.csv", "no such file"),
}


@pytest.mark.parametrize("bad", BAD_CSV)
def test_a_folder_with_a_bad_file_is_refused_by_its_name_and_charges_nothing(
    bad, rng, tmp_path, release_words, refused_in_words
):
    place = write_parts(tmp_path / "a", people(rng).assign(pay=float(SECRET)), (20,))
    (place / "_SUCCESS").touch()  # marks of other programs are left alone
    spoil, named, words = BAD_CSV[bad]
    spoil(place, ".csv")
    message = refused_in_words(release_words(place), f"{named}: ", words, "Nothing was charged")
    assert SECRET not in message
    assert release_words.charges() == 0


@pytest.fixture
def nothing_released(monkeypatch):
    """Noise at the release door is an error in this test; a price may be found by simulation."""

    def drawn(*_):
        raise AssertionError("noise was drawn at the release door")

    monkeypatch.setattr(ReleaseNoise, "independent_gaussian", drawn)


@pytest.fixture
def refused_in_words(capsys):
    """``refused_in_words(words, *said)``: exit code two and one line that says all of this."""

    def check(words, *said):
        assert main(words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.strip().splitlines()) == 1
        for word in said:
            assert word in err
        return err

    return check


@pytest.mark.parametrize("checksums", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_file_that_is_damaged_inside_is_noticed_in_the_pass_and_charges_nothing(
    checksums, rng, tmp_path, release_words, refused_in_words, nothing_released
):
    place = write_parts(tmp_path / "a", people(rng, 4_000), (2_000,), ".parquet")
    damaged = place / "part001.parquet"
    people(rng, 2_000).to_parquet(damaged, index=False, write_page_checksum=checksums, compression=None)
    whole = bytearray(damaged.read_bytes())
    place_of_damage = 4_000 if checksums else 4  # other numbers, which only a checksum tells, or no page at all
    whole[place_of_damage : place_of_damage + 100] = b"\xff" * 100
    damaged.write_bytes(whole)  # what the file says of itself, at its end, is whole
    assert read_folder(place).n_rows == 4_000
    refused_in_words(release_words(place), "part001.parquet: ", "damaged", "Nothing was charged")
    assert release_words.charges() == 0


def test_a_file_is_unpacked_within_a_bound_on_memory(rng, tmp_path, monkeypatch):
    """As small as here no library can be loaded; so the bound is there."""
    place = write_parts(tmp_path / "a", people(rng), (), ".parquet")
    assert read_folder(place).n_rows == 60
    monkeypatch.setattr(table_reader, "PART_MEMORY", 2**25)
    with pytest.raises(DataError, match=r"part000\.parquet: .* unpacks to too much"):
        read_folder(place)


def test_a_file_that_changes_between_its_look_and_the_pass_is_refused(rng, tmp_path):
    place = write_parts(tmp_path / "a", people(rng), (20,))
    folder = read_folder(place)
    with (place / "part001.csv").open("a") as file:
        file.write("40,30,here\n" * 3)
    shorter = (place / "part000.csv").read_text().splitlines()[:-1]
    (place / "part000.csv").write_text("\n".join(shorter))
    with pytest.raises(DataError, match=r"part000\.csv: The file was changed while it was read\. Nothing was charged"):
        add_up_folder(folder, "functional", columns=["age"], box=[(0, 100)])


def test_a_lost_worker_is_named_by_its_file_and_nothing_is_added_up(rng, tmp_path):
    folder = read_folder(write_parts(tmp_path / "a", people(rng), (20,)))

    class Lost:
        sentence = "The worker died on every try."

    def stream(function, tasks):
        first, second = tasks
        yield first, function(first)
        yield second, Lost()

    with pytest.raises(DataError, match=r"part001\.csv: The worker died on every try\. Nothing was charged"):
        add_up_folder(folder, "functional", columns=["age"], box=[(0, 100)], stream=stream)


def test_an_error_that_nobody_expected_quotes_no_cell(rng, tmp_path, monkeypatch, release_words, refused_in_words):
    def fails(*_):
        raise ValueError(f"could not convert {SECRET}")

    monkeypatch.setattr(folders._Records, "sum_of", fails)
    place = write_parts(tmp_path / "a", people(rng), (20,))
    message = refused_in_words(release_words(place), "part000.csv: It could not be added up (ValueError).", "charged")
    assert SECRET not in message


def test_what_a_folder_cannot_do_is_said_with_its_field(rng, tmp_path, release_words, refused_in_words):
    place = write_parts(tmp_path / "a", people(rng), (20,))
    refused_in_words(release_words(place, method="dp_grams"), "method = 'dp_grams'", "only sums", "functional_c")
    refused_in_words(release_words(place, box=("age=estimate", "pay=0:60")), "box = 'age=estimate'", "are stated")
    refused_in_words(release_words(place, "--bandwidth", "silverman"), "bandwidth = 'silverman'")
    refused_in_words(release_words(place, "--scheduler", "tcp://127.0.0.1:1"), "scheduler", "executor = 'dask'")
    refused_in_words(release_words(place, columns="age,town"), "The column town holds text")
    write(tmp_path / "one.csv", people(rng))
    refused_in_words(release_words(tmp_path / "one.csv", "--executor", "dask"), "executor", "a folder of files")
    (tmp_path / "none").mkdir()
    refused_in_words(release_words(tmp_path / "none"), "no files")
    few = write_parts(tmp_path / "few", people(rng, 5), (2,))
    refused_in_words(release_words(few), "only 5 rows")
    blank = write_parts(tmp_path / "blank", people(rng).assign(pay=np.nan), (20,))
    refused_in_words(release_words(blank), "The column pay has no value in any row")
    assert release_words.charges() == 0


def test_sums_serve_only_what_they_were_made_for(rng, tmp_path, nothing_released):
    place = write_parts(tmp_path / "a", people(rng), (20,))
    data = add_up_folder(place, "functional", columns=["age"], box=[(0, 100)], epsilon=0.5)
    ledger = Ledger(tmp_path / "ledger")
    for method, options in (("functional", {"epsilon": 0.6}), ("dp_grams", {"epsilon": 0.5})):
        with pytest.raises(SpecError, match="added up for functional"):
            release(method, data, ledger, **options)
    assert not ledger.is_open(ledger.account_of(data.content))


def test_a_column_may_be_empty_in_some_files(rng, tmp_path):
    frame = people(rng)[["age", "pay"]]
    frame.loc[:19, "pay"] = np.nan
    data = add_up_folder(write_parts(tmp_path / "a", frame, (20,)), "functional", columns=["pay"], box=[(0, 60)])
    held, exact = in_memory("functional", frame, {}, columns=["pay"], box=[(0, 60)])
    np.testing.assert_allclose(data.sums, exact, atol=1e-9)
    assert data.identity.exact == held.identity.exact


@pytest.mark.slow
def test_the_pass_takes_no_more_memory_where_there_are_more_rows(tmp_path, monkeypatch):
    """Eight times the rows in one file; held columns, or values to be sorted, would take eight times the memory."""
    monkeypatch.setattr(csv, "PIECE", 16_384)
    monkeypatch.setattr(content, "ROWS_AT_ONCE", 1_000)
    monkeypatch.setattr(modes, "GRID_CHUNK", 500)
    monkeypatch.setattr(folders, "MOST_SORTED", 2_000)
    monkeypatch.setattr(folders, "MOST_SORTED_OF_FILE", 2_000)
    peaks = []
    for factor in (1, 8):
        place = write_parts(tmp_path / str(factor), people(np.random.default_rng(0), factor * 10_000))
        tracemalloc.start()
        add_up_folder(place, "functional", columns=["age", "pay"], box=[(0, 100), (0, 60)], bandwidth=1.0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
