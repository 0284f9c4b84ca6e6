"""kill -9 at every step of a purchase: the ledger is never below what was drawn, and what it keeps was drawn."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from dpgrams_core import Dataset
from dpgrams_core.own_data.kept import read_kept
from dpgrams_core.own_data.reading.table import read_table
from dpgrams_core.own_data.release import data_identity
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.restore import verify_ledger
from tests.places import ROOT

pytestmark = pytest.mark.slow

EPSILON = 0.5
# The records of the program below, once more.
DATA = Dataset(name="mine", kind="modes", points=np.linspace(-3, 3, 60)[:, None], box=[(-4, 4)], private=True)
TABLE = read_table(pd.DataFrame({"age": np.linspace(20, 60, 8_000)}).to_csv(index=False).encode(), "people.csv")
DRAWS = {"functional": 1, "dp_grams": 4, "bounds": 2}  # of one purchase: two starts and two steps; two rounds of counts

# Buys in child processes that are killed: at their k-th step, for every k, or after some time.  A step is every
# statement that may write the ledger's database and either side of its commit, every part of writing the high-water
# mark, half a line included, and either side of a draw.  That noise is about to
# be drawn is written to a file of its own before it is, with the child's number, so that the file is never below what
# was drawn.  The first draw of a purchase counts as its whole price.
PROGRAM = """
import json, os, random, signal, sys, time
from pathlib import Path
import numpy as np
import pandas as pd
from dpgrams_core import Dataset
from dpgrams_core.own_data import release as releasing
from dpgrams_core.own_data.reading.table import read_table
from dpgrams_core.privacy.ledger import mark as ledger_mark
from dpgrams_core.privacy.ledger.book import Ledger
from dpgrams_core.privacy.ledger.file import read_key
from dpgrams_core.privacy.ledger.restore import verify_ledger
from dpgrams_core.privacy.noise import ReleaseNoise

folder, seed, epsilon = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
data = Dataset(name="mine", kind="modes", points=np.linspace(-3, 3, 60)[:, None], box=[(-4, 4)], private=True)
table = read_table(pd.DataFrame({"age": np.linspace(20, 60, 8_000)}).to_csv(index=False).encode(), "people.csv")
few = {"epsilon": epsilon, "calibration": "tight", "n_starts": 2, "n_steps": 2}
purchases = {
    "functional": (data, lambda ledger: releasing.release("functional", data, ledger, epsilon=epsilon)),
    "dp_grams": (data, lambda ledger: releasing.release("dp_grams", data, ledger, **few)),
    "bounds": (table, lambda ledger: releasing.release_range(table, "age", ledger, epsilon=epsilon)),
}
releasing.quote("functional", data, epsilon=epsilon)  # remembered, so that the children are quick
releasing.quote("dp_grams", data, **few)
ReleaseNoise().independent_gaussian(np.zeros(3), 1.0)
steps, children, kill_at, order, drawn_path = 0, 0, None, "", None


def step(*_):
    global steps
    steps += 1
    if steps == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)


real_connection, real_charge, real_keep = Ledger._connection, Ledger.charge, Ledger.keep
real_write, real_sync = ledger_mark._write, os.fsync
late, left_by_the_crash = {}, set()


def statement(words):
    if words.split()[0].upper() not in ("SELECT", "PRAGMA"):
        step()


def write(handle, content, place):
    half = len(content) // 2
    step()
    real_write(handle, content[:half], place)
    step()
    real_write(handle, content[half:], place + half)
    step()


def sync(handle):
    real_sync(handle)
    step()


def connection(self):
    made = real_connection(self)
    made.set_trace_callback(statement)
    step()
    return made


def watched(real_draw):
    def draw(self, *arguments):
        step()
        file = os.open(drawn_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{children} ".encode())
        os.fsync(file)
        os.close(file)
        step()
        drawn = real_draw(self, *arguments)
        step()
        return drawn
    return draw


def charge(self, *arguments, **named):
    if order == "late":  # what must be caught: the charge comes after the draws
        late["charge"] = arguments, named
        return None
    made = real_charge(self, *arguments, **named)
    step()
    return made


def keep(self, made, content):
    if order == "late":
        arguments, named = late["charge"]
        made = real_charge(self, *arguments, **named)
    real_keep(self, made, content)


Ledger._connection, Ledger.charge, Ledger.keep = connection, charge, keep
ledger_mark._write, os.fsync = write, sync
for name in ("independent_gaussian", "gumbel_argmax"):
    setattr(ReleaseNoise, name, watched(getattr(ReleaseNoise, name)))


def child(buy, path, number=None, delay=None):
    global steps, kill_at, children
    children += 1
    pid = os.fork()
    if pid == 0:
        steps, kill_at = 0, number
        try:
            buy(Ledger(path))
            step()
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    if delay is not None:
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or status == 0, "a purchase failed"
    return os.WIFSIGNALED(status)


def state(path, account, records):
    Ledger._connection = real_connection
    mark = ledger_mark.HighWater(ledger_mark.marks_folder(), read_key(path)).path
    before = mark.read_bytes()
    report = verify_ledger(path)
    assert report.problems == (), report  # no way out is needed: it opens by itself
    charged = sum(row.epsilon for row in Ledger(path).charges(account))
    left_by_the_crash.add("nothing" if mark.read_bytes() == before else "a line" if before[-1:] == b"\\n" else "half")
    kept = sum(row.epsilon for row, _ in Ledger(path).kept(account, releasing.data_identity(records)))
    Ledger._connection = connection
    drawn = drawn_path.read_text().split() if drawn_path.exists() else []
    marked = [json.loads(line)[1] for line in before.split(b"\\n")[:-1]].count("charge")
    assert order == "late" or marked >= len(set(drawn)), "noise was drawn before the charge was in the mark"
    return (charged, epsilon * len(set(drawn)), kept), drawn.count(str(children))


def crashes(case):
    global drawn_path
    path, drawn_path = folder / f"{case}_{order}.sqlite3", folder / f"{case}_{order}_drawn"
    records, buy = purchases[case]
    account = releasing.open_budget(records, Ledger(path), cap_epsilon=1000.0, cap_delta=0.5).account
    found, draws, killed, number = [], [], 0, 0
    left_by_the_crash.clear()
    was_killed = True
    while was_killed:  # every step in turn, until a purchase is over before it
        number += 1
        was_killed = child(buy, path, number=number)
        killed += was_killed
        after, count = state(path, account, records)
        found.append(after)
        draws.append(count)
        if after[0] < after[1]:  # caught; nothing that comes now makes it good
            break
    if order == "right":
        begin = time.monotonic()
        child(buy, path)
        whole = time.monotonic() - begin
        for _ in range(10):
            killed += child(buy, path, delay=chance.uniform(0, whole))
            found.append(state(path, account, records)[0])
    return {
        "found": found,
        "draws": draws,
        "killed": killed,
        "steps": number - 1,
        "account": account,
        "mark": sorted(left_by_the_crash),
    }


chance, results = random.Random(seed), {}
for order in ("right", "late"):
    results[order] = {case: crashes(case) for case in purchases}
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def all_crashes(tmp_path_factory, seed):
    """What was found, and the folder with the ledgers; one process for all, since loading takes longest."""
    folder = tmp_path_factory.mktemp("crash")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(seed), str(EPSILON)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), folder


@pytest.fixture(params=list(DRAWS))
def crashed(request, all_crashes):
    """A purchase by its name, what was found, and its ledger."""
    results, folder = all_crashes
    return request.param, results["right"][request.param], Ledger(folder / f"{request.param}_right.sqlite3")


def test_the_ledger_is_never_below_what_was_drawn(crashed):
    _, result, _ = crashed
    assert all(charged >= drawn >= kept for charged, drawn, kept in result["found"])


def test_the_crashes_came_before_between_and_after(crashed):
    case, result, _ = crashed
    assert result["steps"] >= 20
    assert result["killed"] >= 25
    found = result["found"][: result["steps"] + 1]
    pairs = list(zip([(0.0, 0.0, 0.0), *found[:-1]], found, strict=True))
    gains = {tuple(now - then for then, now in zip(before, after, strict=True)) for before, after in pairs}
    # Nothing yet; charged and not drawn; charged, drawn and lost; charged, drawn and kept.
    assert gains == {(0, 0, 0), (EPSILON, 0, 0), (EPSILON, EPSILON, 0), (EPSILON, EPSILON, EPSILON)}
    assert set(result["draws"]) == set(range(DRAWS[case] + 1))  # also between the draws that one charge pays for


def test_the_mark_was_whole_behind_or_broken_and_the_ledger_opened_by_itself(crashed):
    """Each of these was met, and after each the ledger was sound (``state`` in the program above)."""
    assert crashed[1]["mark"] == ["a line", "half", "nothing"]
    assert verify_ledger(crashed[2].path).problems == ()


def test_what_was_kept_comes_back_whole(crashed):
    case, result, ledger = crashed
    kept = read_kept(ledger, TABLE.identity if case == "bounds" else data_identity(DATA))
    assert kept.problems == ()
    assert EPSILON * (len(kept.releases) + len(kept.bounds)) == result["found"][-1][2]
    assert not (kept.releases if case == "bounds" else kept.bounds)
    assert all(found.release.guarantee.epsilon == EPSILON for _, found in kept.releases)
    assert all(found.low < found.high for _, found in kept.bounds)


def test_the_ledger_works_on_afterwards(crashed):
    _, result, ledger = crashed
    account = result["account"]
    before = ledger.totals(account).basic_epsilon
    assert before == result["found"][-1][0]
    ledger.charge(account, (), epsilon=1.0, delta=0.0, status="nominal", description="after the crashes")
    assert Ledger(ledger.path).totals(account).basic_epsilon == before + 1
    assert {row.drawn for row in ledger.charges(account)} == {True, False}


@pytest.mark.parametrize("case", DRAWS)
def test_a_ledger_that_is_charged_after_the_draw_would_be_caught(all_crashes, case):
    found = all_crashes[0]["late"][case]["found"]
    assert any(charged < drawn for charged, drawn, _ in found)
