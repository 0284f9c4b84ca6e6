"""The runs of an audit: whoever makes them and in whatever pieces, the stream is the same."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from dpgrams_core import DataError, SpecError
from dpgrams_core.auditing import audit, game, stream_audit
from dpgrams_core.sweeps.executors import Processes

SMALL = {"trials": 60, "n": 30}

# As in a script or a notebook: no worker can import it.
SCRIPT = """
from dataclasses import dataclass
from dpgrams_core.methods.registry import Method
from dpgrams_core.model.results import Guarantee, Release
from dpgrams_core.methods.dp_grams.spec import DPGramsSpec

@dataclass(frozen=True, kw_only=True)
class OwnSpec:
    epsilon: float = 1.0
    delta: float = 1e-6

def own(data, spec, noise):
    mean = noise.independent_gaussian(data.points.mean(axis=0, keepdims=True), 1.0)
    nothing = Guarantee(epsilon=spec.epsilon, delta=spec.delta, status="none", statement="An example.")
    return Release(method="own", modes=mean, spec=spec, events=(), guarantee=nothing)

def failing(data, spec, noise):
    raise KeyError("oops")

OWN = Method("own", "modes", "Own", OwnSpec, own)
FAILING = Method("failing", "modes", "Failing", OwnSpec, failing)
"""


@pytest.fixture(scope="module")
def script():
    names = {"__name__": "__main__"}
    exec(SCRIPT, names)
    return names


@pytest.fixture(scope="module")
def others():
    """Processes that other tests have left running, such as the workers of My data."""
    return set(psutil.Process().children())


@pytest.fixture(scope="module")
def pool(others):
    with Processes(1) as pool:
        yield pool


def test_the_size_of_the_pieces_changes_nothing(seed, monkeypatch):
    whole = list(stream_audit("functional", seed=seed, **SMALL))
    monkeypatch.setattr(game, "PIECE_TRIALS", 4)  # of the six of a look
    assert list(stream_audit("functional", seed=seed, **SMALL)) == whole


def test_the_chunks_are_all_trials_of_both_worlds_once_and_in_order():
    chunks = game.chunks_of(game.plan_game("functional", trials=1111, n=30))
    for world in game.WORLDS:
        mine = [chunk for chunk in chunks if chunk.world == world]
        assert [number for chunk in mine for number in range(chunk.start, chunk.stop)] == list(range(1111))
    assert max(chunk.stop - chunk.start for chunk in chunks) == game.PIECE_TRIALS


@pytest.mark.slow
def test_an_audit_goes_on_where_a_worker_was_killed_and_the_pool_stays(pool, others, seed):
    alone = list(stream_audit("dp_grams", seed=seed, **SMALL))
    stream = stream_audit("dp_grams", executor=pool, seed=seed, **SMALL)
    first = next(stream)
    (worker,) = set(psutil.Process().children()) - others
    os.kill(worker.pid, signal.SIGKILL)
    assert [first, *stream] == alone
    assert audit("dp_grams", executor=pool, seed=seed, **SMALL) == alone[-1]
    assert len(set(psutil.Process().children()) - others) == 1


@pytest.mark.slow
def test_a_method_of_a_script_can_be_audited_by_workers(pool, script, seed):
    found = audit(script["OWN"], executor=pool, seed=seed, **SMALL)
    assert found == audit(script["OWN"], seed=seed, **SMALL)
    assert found.method == "own"


@pytest.mark.slow
def test_a_setting_that_is_refused_only_while_running_is_the_same_sentence_everywhere(pool):
    for executor in ("serial", pool):
        with pytest.raises(SpecError, match="batch_size = 31") as caught:
            audit("broken_sum", executor=executor, batch_size=31, **SMALL)
        assert caught.value.field == "batch_size"


@pytest.mark.slow
def test_a_part_that_was_lost_is_one_sentence_and_no_result(pool, script):
    for executor in ("serial", pool):
        with pytest.raises(DataError, match=r"A part of the audit could not be run.*KeyError: 'oops'"):
            audit(script["FAILING"], executor=executor, **SMALL)
