"""Files that were edited to get a budget of their own are noticed, unrelated ones are not, and their charges add up."""

from __future__ import annotations

import itertools
import multiprocessing

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets as public

from dpgrams_core.model.errors import BudgetError
from dpgrams_core.own_data.release import open_budget, overlap_words, release, release_range
from dpgrams_core.own_data.table import load_table, table_of_frame
from dpgrams_core.privacy.ledger import digest as content
from dpgrams_core.privacy.ledger import overlap
from dpgrams_core.privacy.ledger.book import BLIND_SPOT, TOGETHER, Ledger
from dpgrams_core.privacy.ledger.digest import identity_of
from dpgrams_core.privacy.ledger.overlap import KINDS, TRACES, KeyedTraces

KEY = b"k" * 32


def keyed(columns, key=KEY):
    columns = {name: np.asarray(numbers, dtype=float) for name, numbers in dict(columns).items()}
    return KeyedTraces(identity_of(columns).traces, key)


def overlaps(one, other):
    return bool(keyed(one).alike(keyed(other).text()))


def continuous(rng, n=400):
    return {"pay": rng.lognormal(10, 1, n), "weight": rng.normal(70, 10, n)}


def rounded(rng, n=400):
    return {"pay": np.round(rng.lognormal(10, 1, n)), "weight": np.round(rng.normal(70, 10, n), 1)}


def codes(rng, n=3_000):
    return {"age": np.round(np.clip(rng.normal(45, 18, n), 0, 99)), "sex": rng.integers(0, 2, n)}


def survey(rng, n=500):
    sizes = {"age": 80, "town": 300, "school": 7, "work": 60, "children": 5, "sex": 2}
    return {"id": np.arange(n), **{name: rng.integers(0, size, n) for name, size in sizes.items()}}


def each(change):
    return lambda rng, table: {name: change(numbers) for name, numbers in table.items()}


def shuffled(table, order):
    return {name: numbers[order] for name, numbers in table.items()}


def some(rng, table, share):
    n = len(next(iter(table.values())))
    return shuffled(table, rng.permutation(n)[: int(share * n)])


def replaced(rng, table):
    """Other values in a tenth of the rows."""
    places = rng.random(len(next(iter(table.values())))) < 0.1
    return {name: np.where(places, rng.permutation(numbers), numbers) for name, numbers in table.items()}


EDITS = {
    "a constant column": lambda rng, table: {**table, "one": np.ones(len(table[next(iter(table))]))},
    "a column of noise": lambda rng, table: {**table, "noise": rng.normal(size=len(table[next(iter(table))]))},
    "one more row": each(lambda numbers: np.append(numbers, numbers[0] + 1)),
    "one row less": each(lambda numbers: numbers[1:]),
    "times two": each(lambda numbers: 2 * numbers),
    "shifted": each(lambda numbers: numbers + 5),
    "other sign": each(lambda numbers: -numbers),
    "scaled, shifted and sorted": each(lambda numbers: np.sort(1.7 * numbers + 3)),
    "32 bits and one more row": each(lambda numbers: np.append(np.float32(numbers), 3.0)),
    "one column": lambda rng, table: {"renamed": next(iter(table.values()))},
    "columns in another order": lambda rng, table: (
        dict(reversed({**table, "one": 0 * table["pay"]}.items()))
        if "pay" in table
        else {**table, "one": 0 * table["age"]}
    ),
    "a tenth of the rows changed": replaced,
    "its logarithm": each(lambda numbers: np.log1p(numbers - min(0, numbers.min()))),
    "all at once": lambda rng, table: {
        **{f"new {name}": np.append(3 * numbers, 1.0)[1:] for name, numbers in table.items()},
        "one": np.ones(len(table[next(iter(table))])),
    },
}


@pytest.mark.parametrize("make", [continuous, rounded, codes])
@pytest.mark.parametrize("name", EDITS)
def test_an_edited_file_is_noticed(name, make, rng):
    table = make(rng)
    assert overlaps(EDITS[name](rng, table), table)


@pytest.mark.parametrize("share", [0.9, 0.5])
@pytest.mark.parametrize("make", [continuous, survey])
def test_some_of_the_rows_in_another_order_are_noticed(make, share, rng):
    table = make(rng, 2_000)
    assert overlaps(some(rng, table, share), table)
    more = {name: np.concatenate([numbers, other]) for (name, numbers), other in zip(
        table.items(), make(rng, 1_000).values(), strict=True)}  # fmt: skip
    assert overlaps(some(rng, more, 1.0), table)


def test_rows_of_codes_are_noticed_with_a_column_more_or_less(rng):
    table = survey(rng, 1_000)
    more = {**table, "extra": rng.integers(0, 40, 1_000)}
    fewer = {name: numbers for name, numbers in table.items() if name != "town"}
    for one, other in ((table, more), (more, table), (table, fewer), (fewer, table)):
        assert keyed(some(rng, one, 0.8)).alike(keyed(other).text()).rows


def test_noise_and_rounding_are_noticed_while_rows_keep_their_order(rng):
    table = continuous(rng, 2_000)
    assert overlaps(each(lambda numbers: numbers * (1 + 0.01 * rng.normal(size=len(numbers))))(rng, table), table)
    assert overlaps(each(lambda numbers: np.round(numbers / 500))(rng, {"pay": table["pay"]}), table)


def answers(rng, n=500):
    return {name: rng.integers(1, 6, n) for name in "abc"}


def yes_or_no(rng, n=500):
    return {name: rng.integers(0, 2, n) for name in "abc"}


@pytest.mark.parametrize("make", [answers, yes_or_no])
@pytest.mark.parametrize(
    "name", ["a constant column", "a column of noise", "one more row", "one row less", "times two"]
)
def test_a_table_of_few_codes_is_noticed_while_rows_keep_their_order(name, make, rng):
    table = make(rng)
    assert overlaps(EDITS[name](rng, table), table)
    assert not overlaps(EDITS[name](rng, make(rng)), table)


@pytest.mark.parametrize("make", [continuous, rounded])
def test_a_small_part_and_a_part_of_much_more_are_noticed(make, rng):
    table = make(rng, 4_000)
    part = some(rng, table, 0.1)
    assert overlaps(part, table)
    assert overlaps(table, part)
    padded = {name: np.append(numbers, 3 * more) for (name, numbers), more in zip(
        part.items(), make(rng, 3_600).values(), strict=True)}  # fmt: skip
    assert overlaps(some(rng, padded, 1.0), part)
    assert not overlaps(make(rng, 400), table)
    assert not overlaps(table, make(rng, 400))


def test_what_is_not_noticed_is_said(rng):
    table = answers(rng)
    assert not overlaps(EDITS["a constant column"](rng, some(rng, table, 1.0)), table)
    assert "a few codes, such as answers or whole years, and rows were put in another order" in BLIND_SPOT
    many = yes_or_no(rng, 4_000)
    assert not overlaps(EDITS["a constant column"](rng, many), many)
    assert "two codes and a thousand rows or more" in BLIND_SPOT
    table = continuous(rng, 20_000)
    assert not overlaps(some(rng, table, 0.002), table)
    assert "a twentieth of the rows or fewer, or more than twenty times as many others" in BLIND_SPOT
    assert not overlaps(each(lambda numbers: np.repeat(numbers, 2))(rng, table), table)
    assert "each row repeated" in BLIND_SPOT
    assert "from before overlaps were noted is noticed once its file was opened again" in BLIND_SPOT


def test_it_is_said_in_which_of_its_own_columns(rng):
    table = continuous(rng)
    other = {"wages": table["pay"] * 2, "height": rng.normal(170, 9, 400)}
    assert keyed(other).alike(keyed(table).text()).columns == ("wages",)


def unrelated(rng):
    """Tables of different people, many of them drawn alike."""
    for number, n in itertools.product(range(4), (100, 1_000, 5_000)):
        yield f"continuous {number} {n}", continuous(rng, n)
        yield f"rounded {number} {n}", rounded(rng, n)
        yield f"codes {number} {n}", codes(rng, n)
        yield f"survey {number} {n}", survey(rng, n)
        yield (
            f"series {number} {n}",
            {
                "time": np.arange(n) * 0.1,
                "walk": rng.normal(size=n).cumsum(),
                "zeros": np.where(rng.random(n) < 0.6, 0, rng.gamma(2, 1, n)),
                "ids": rng.permutation(n),
                "year": rng.integers(1950, 2020, n),
            },
        )
    for name in ("iris", "wine", "breast_cancer", "diabetes", "digits"):
        points = rng.permutation(getattr(public, f"load_{name}")().data)
        half = len(points) // 2
        for part, rows in enumerate((points[:half], points[half:])):  # other people of the same kind
            yield f"{name} {part}", {f"c{number}": column for number, column in enumerate(rows.T)}


@pytest.mark.slow
def test_unrelated_files_are_not_linked(rng):
    found = {name: keyed(table) for name, table in unrelated(rng)}
    texts = {name: item.text() for name, item in found.items()}
    wrong = [pair for pair in itertools.permutations(found, 2) if found[pair[0]].alike(texts[pair[1]])]
    assert wrong == []
    assert len(found) ** 2 > 4_000


@pytest.mark.parametrize(
    "column",
    [
        np.ones(500),
        np.arange(500),
        np.arange(500) * 0.1,
        np.tile([0, 1], 250),
        np.repeat(np.arange(10), 50),
        np.tile(np.arange(7), 72)[:500],
        np.linspace(0, 1, 500),
        np.full(500, np.nan),
        np.array([np.inf, -np.inf] * 250),
        np.array([1e308, -1e308, 5e-324, 0.0] * 125),
    ],
)
def test_what_every_file_may_have_links_nothing(column, rng):
    one, other = ({"same": column, "own": rng.normal(size=500)} for _ in range(2))
    assert not overlaps(one, other)


GRIDS = {
    "year and month": (10, 12),
    "month and year": (12, 10),
    "person and visit": (100, 4),
    "person and one of two": (200, 2),
    "two years and month": (2, 11),
    "week and day": (7, 7),
    "pixels": (28, 28),
}


@pytest.mark.parametrize("shape", GRIDS.values(), ids=list(GRIDS))
def test_how_a_table_is_laid_out_links_nothing(shape, rng):
    first, second = np.indices(shape).reshape(2, -1)

    def measured(rows):
        return {"first": first[rows], "second": second[rows] + 1, "own": rng.normal(size=len(rows))}

    whole = np.arange(first.size)
    nearly = np.flatnonzero(rng.random(first.size) > 0.02)  # some were not there
    for rows in (whole, whole[:-3], nearly):
        table = measured(rows)
        assert not overlaps(measured(rows), table)
        assert not overlaps(measured(whole), table)
        if len(rows) > 50:  # with fewer, nothing tells them from codes once they are mixed
            assert not overlaps(measured(rng.permutation(rows)), measured(rng.permutation(rows)))
        assert overlaps({**table, "own": 2 * table["own"]}, table)


class TestWhatIsWritten:
    def test_only_keyed_hashes_of_one_length(self, rng):
        table = continuous(rng)
        texts = [keyed(item).text() for item in (table, codes(rng), {"a": np.ones(50), "b": np.arange(50)})]
        assert len({len(text) for text in texts}) == 1  # whatever the numbers are
        traces = identity_of(table).traces
        stored = texts[0].encode()
        for found in (*(array for kind in KINDS for array in traces.kinds[kind]), *traces.rows):
            assert len(found) == TRACES
            assert not any(int(trace).to_bytes(8, "little") in stored for trace in found)

    def test_no_guess_can_be_held_against_it_without_the_key(self, rng):
        table = continuous(rng)
        assert keyed(table).alike(keyed(table).text()).columns == ("pay", "weight")
        assert not keyed(table, b"another key").alike(keyed(table).text())
        assert keyed(table, b"another key").text() != keyed(table).text()


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite3", cap_epsilon=3.0, cap_delta=1e-3)


def people(rng, n=2_000):
    return pd.DataFrame({"age": rng.normal(40, 5, n).round(4), "pay": rng.normal(4e4, 5e3, n).round(2)})


def edited(frame, number):
    """The copies of the attack: a constant column, one more row, a factor, or a shift, each a little different."""
    how, much = number % 4, 1 + number / 7
    if how == 0:
        return frame.assign(**{f"extra{number}": much})
    if how == 1:
        return pd.concat([frame, pd.DataFrame({"age": [much], "pay": [1e4 * much]})], ignore_index=True)
    return frame * much if how == 2 else frame + much


class TestTheLedger:
    @pytest.mark.slow
    def test_eighty_edited_copies_have_one_budget(self, rng, ledger, monkeypatch):
        monkeypatch.setenv("DPGRAMS_CAP_EPSILON", "3")
        frame, drawn, refused = people(rng), 0, []
        for number in range(80):
            data = load_table(edited(frame, number), columns=["age"], box=[(0, 100)])
            try:
                release("functional", data, ledger, epsilon=1.0, n_modes=1, keep=False)
                drawn += 1
            except BudgetError as error:
                refused.append(str(error))
        assert (drawn, len(refused)) == (3, 77)
        assert all(sentence.endswith(TOGETHER) for sentence in refused)
        assert sum(charge.epsilon for charge in ledger.charges()) == 3.0
        assert len({charge.account for charge in ledger.charges()}) == 3

    def test_the_lowest_cap_counts_and_what_was_spent_on_each(self, rng, ledger):
        frame, caps = people(rng), {"cap_delta": 1e-4}
        first = table_of_frame(frame)
        assert open_budget(first, ledger, cap_epsilon=1.0, **caps).others == 0
        assert overlap_words(first, ledger) == ""
        release_range(first, "age", ledger, epsilon=0.25)
        second = table_of_frame(frame.rename(columns={"age": "jahre"}) * 2)
        opened = open_budget(second, ledger, cap_epsilon=2.0, **caps)
        assert (opened.cap_epsilon, opened.left_epsilon, opened.others) == (1.0, 0.75, 1)
        assert opened.totals.basic_epsilon == 0.25
        release_range(second, "jahre", ledger, epsilon=0.5)
        assert open_budget(first, ledger).left_epsilon == 0.25
        third = table_of_frame(frame.iloc[5:] * 3)
        assert open_budget(third, ledger, cap_epsilon=2.0, **caps).left_epsilon == 0.25
        with pytest.raises(BudgetError, match="their charges count together"):
            release_range(third, "age", ledger, epsilon=0.5)
        words = overlap_words(second, ledger)
        assert words.startswith("This file shares a good part of the columns jahre and pay with one that was opened")
        assert "age" not in words
        other = table_of_frame(people(rng))
        assert open_budget(other, ledger).left_epsilon == 3.0

    def test_a_link_reaches_further(self, rng, ledger):
        one, two = people(rng), people(rng)
        both = table_of_frame(pd.concat([one, two], ignore_index=True))
        one, two = table_of_frame(one), table_of_frame(two)
        release_range(one, "age", ledger, epsilon=0.5)
        release_range(two, "age", ledger, epsilon=0.25)
        assert open_budget(two, ledger).left_epsilon == 2.75
        assert open_budget(both, ledger).left_epsilon == 2.25
        assert open_budget(two, ledger).left_epsilon == 2.25

    def test_room_is_looked_for_before_it_is_opened(self, rng, ledger):
        frame = people(rng)
        release_range(table_of_frame(frame), "age", ledger, epsilon=2.5)
        table = table_of_frame(frame + 1)
        account = ledger.account_of(table.content)
        ledger.check_room(account, epsilon=0.5, delta=0.0, identity=table.identity)
        with pytest.raises(BudgetError, match="count together"):
            ledger.check_room(account, epsilon=0.75, delta=0.0, identity=table.identity)
        assert not ledger.is_open(account)

    def test_an_account_of_before_is_linked_once_it_is_opened_again(self, rng, ledger):
        frame = people(rng)
        table, copy = table_of_frame(frame), table_of_frame(frame * 2)
        old = ledger.account_of(table.content)
        ledger.open_account(old, cap_epsilon=3.0, cap_delta=1e-3)  # as older versions did
        ledger.charge(old, (), epsilon=1.0, delta=0.0, status="nominal", description="before")
        assert open_budget(copy, ledger).left_epsilon == 3.0
        assert open_budget(table, ledger).left_epsilon == 2.0
        assert open_budget(copy, ledger).left_epsilon == 2.0

    @pytest.mark.slow
    def test_copies_that_are_opened_at_one_moment_are_linked(self, rng, ledger):
        frame = people(rng)
        with multiprocessing.get_context("fork").Pool(4) as pool:
            pool.map(open_copy, [(ledger.path, frame, number) for number in range(8)], chunksize=1)
        assert open_budget(table_of_frame(edited(frame, 0)), ledger).others == 7

    def test_nothing_that_is_written_tells_a_number_or_a_digest(self, rng, ledger):
        table = table_of_frame(people(rng))
        open_budget(table, ledger)
        content = b"".join(path.read_bytes() for path in ledger.path.parent.iterdir() if path.suffix != ".key")
        for secret in (table.content, table.identity.exact):
            assert secret not in content
            assert secret.hex().encode() not in content


def open_copy(work):
    path, frame, number = work
    return open_budget(table_of_frame(edited(frame, number)), Ledger(path)).account


@pytest.mark.parametrize("at_once", [50, 700])
def test_the_traces_of_pieces_are_those_of_the_whole(at_once, rng, monkeypatch):
    table = {**continuous(rng, 1_500), "codes": rng.integers(0, 50, 1_500).astype(float), "id": np.arange(1_500.0)}
    table["pay"][::7] = np.nan
    whole = identity_of(table)
    monkeypatch.setattr(content, "ROWS_AT_ONCE", at_once)
    pieces = identity_of(table)
    for kind in KINDS:
        for one, other in zip(whole.traces.kinds[kind], pieces.traces.kinds[kind], strict=True):
            np.testing.assert_array_equal(one, other)
    assert (whole.content, whole.exact) == (pieces.content, pieces.exact)
    assert KeyedTraces(whole.traces, KEY).text() == KeyedTraces(pieces.traces, KEY).text()


def test_gaps_are_the_same_however_many_are_looked_at_at_once(rng, monkeypatch):
    table = rounded(rng, 300)
    at_once = identity_of(table).traces
    monkeypatch.setattr(overlap, "_AT_ONCE", 7)
    for kind in ("gaps", "shape"):
        for one, other in zip(at_once.kinds[kind], identity_of(table).traces.kinds[kind], strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_column_too_long_to_be_sorted_is_still_known_by_its_values(rng, monkeypatch):
    """Ids that count up are told by their gaps, or, where there are too many, by the first rows."""
    table = {"id": np.arange(400.0), **continuous(rng)}
    edited = shuffled(table, rng.permutation(400)[:300])

    def traces(columns):
        digest = content.ContentDigest(most_sorted=60)
        digest.add(columns)
        return digest.finish(list(columns)).traces

    found = KeyedTraces(traces(edited), KEY).alike(KeyedTraces(traces(table), KEY).text())
    assert set(found.columns) == {"pay", "weight"}
    assert not any(map(len, traces(table).kinds["gaps"]))
