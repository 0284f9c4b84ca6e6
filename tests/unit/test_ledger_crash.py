"""kill -9 at every step of a release: the ledger is never below what was drawn, and what it keeps was drawn."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dpgrams_core.kept_releases import read_kept
from dpgrams_core.privacy.ledger import Ledger

ROOT = Path(__file__).parents[2]
EPSILON = 0.5

# Runs releases in child processes that are killed: at their k-th step, for every k, or after some time.  A step is
# every statement of the ledger's database and either side of its commit, and either side of a draw.  That noise is
# about to be drawn is written to a file of its own before it is, so that the file is never below what was drawn.
PROGRAM = """
import json, os, random, signal, sys, time
import numpy as np
from dpgrams_core import Dataset
from dpgrams_core import releasing
from dpgrams_core.privacy.ledger import Ledger
from dpgrams_core.privacy.noise import ReleaseNoise

path, drawn_path, order, seed, epsilon = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
data = Dataset(name="mine", kind="modes", points=np.linspace(-3, 3, 60)[:, None], box=[(-4, 4)], private=True)
account = releasing.open_budget(data, Ledger(path), cap_epsilon=1000.0, cap_delta=0.5).account
releasing.quote("functional", data, epsilon=epsilon)  # remembered, so that the children are quick
ReleaseNoise().independent_gaussian(np.zeros(3), 1.0)
steps, kill_at = 0, None


def step(*_):
    global steps
    steps += 1
    if steps == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)


real_connection, real_draw, real_charge, real_run = (
    Ledger._connection, ReleaseNoise.independent_gaussian, Ledger.charge, releasing.run)


def connection(self):
    made = real_connection(self)
    made.set_trace_callback(step)
    step()
    return made


def draw(self, exact, scale):
    step()
    file = os.open(drawn_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, b"x")
    os.fsync(file)
    os.close(file)
    step()
    noisy = real_draw(self, exact, scale)
    step()
    return noisy


def charge(self, *arguments, **named):
    if order == "late":  # what must be caught: the charge comes after the draw
        releasing.run = lambda *a, **k: (real_run(*a, **k), real_charge(self, *arguments, **named))[0]
        return None
    made = real_charge(self, *arguments, **named)
    step()
    return made


Ledger._connection, ReleaseNoise.independent_gaussian, Ledger.charge = connection, draw, charge


def child(number=None, delay=None):
    global kill_at
    pid = os.fork()
    if pid == 0:
        kill_at = number
        releasing.release("functional", data, Ledger(path), epsilon=epsilon)
        step()
        os._exit(0)
    if delay is not None:
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def state():
    Ledger._connection = real_connection
    charged = sum(row.epsilon for row in Ledger(path).charges(account))
    kept = sum(row.epsilon for row, _ in Ledger(path).kept(account))
    Ledger._connection = connection
    drawn = os.path.getsize(drawn_path) if os.path.exists(drawn_path) else 0
    return charged, drawn * epsilon, kept


found, killed = [], 0
number = 1
while True:  # every step in turn, until a release is over before it
    was_killed = child(number=number)
    found.append(state())
    if not was_killed or found[-1][0] < found[-1][1]:
        break
    killed += 1
    number += 1
begin = time.monotonic()
child()
whole = time.monotonic() - begin
chance = random.Random(seed)
for _ in range(15 if order == "right" else 0):
    killed += child(delay=chance.uniform(0, whole))
    found.append(state())
print(json.dumps({"found": found, "killed": killed, "steps": number - 1, "account": account}))
"""


def crashes(tmp_path, order, seed):
    path, drawn = tmp_path / "ledger.sqlite3", tmp_path / "drawn"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(drawn), order, str(seed), str(EPSILON)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), Ledger(path)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory, seed):
    return crashes(tmp_path_factory.mktemp("crash"), "right", seed)


def test_the_ledger_is_never_below_what_was_drawn(crashed):
    result, _ = crashed
    assert all(charged >= drawn >= kept for charged, drawn, kept in result["found"])


def test_the_crashes_came_before_between_and_after(crashed):
    result, _ = crashed
    assert result["steps"] >= 20
    assert result["killed"] >= 25
    found = result["found"][: result["steps"] + 1]
    pairs = list(zip([(0.0, 0.0, 0.0), *found[:-1]], found, strict=True))
    gains = {tuple(now - then for then, now in zip(before, after, strict=True)) for before, after in pairs}
    # Nothing yet; charged and not drawn; charged, drawn and lost; charged, drawn and kept.
    assert gains == {(0, 0, 0), (EPSILON, 0, 0), (EPSILON, EPSILON, 0), (EPSILON, EPSILON, EPSILON)}


def test_what_was_kept_comes_back_whole(crashed):
    result, ledger = crashed
    kept = read_kept(ledger, result["account"])
    assert kept.problems == ()
    assert EPSILON * len(kept.releases) == result["found"][-1][2]
    assert all(found.release.guarantee.epsilon == EPSILON for _, found in kept.releases)


def test_the_ledger_works_on_afterwards(crashed):
    result, ledger = crashed
    account = result["account"]
    before = ledger.totals(account).basic_epsilon
    assert before == result["found"][-1][0]
    ledger.charge(account, (), epsilon=1.0, delta=0.0, status="nominal", description="after the crashes")
    assert Ledger(ledger.path).totals(account).basic_epsilon == before + 1
    assert {row.drawn for row in ledger.charges(account)} == {True, False}


def test_a_ledger_that_is_charged_after_the_draw_would_be_caught(tmp_path, seed):
    result, _ = crashes(tmp_path, "late", seed)
    assert any(charged < drawn for charged, drawn, _ in result["found"])
