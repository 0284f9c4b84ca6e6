"""The runs of the game: many trials in two worlds, in portions, on whatever runs them.

A run that fails is an outcome that can be seen, and counts as one: a mechanism that fails in one world and not in the
other tells them apart.  Only where every run of both worlds fails is there nothing to audit, and the reason is raised.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice, pairwise
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
from threadpoolctl import threadpool_limits

from dpgrams_core.auditing.pairs import NeighbourPair
from dpgrams_core.auditing.statistics import LARGEST, Statistics
from dpgrams_core.cells import derived_seed
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.executors import Lost, Processes, stream_tasks
from dpgrams_core.guarantees import ADD_OR_REMOVE
from dpgrams_core.methods import Method, _drawn
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.progress import checkpoint
from dpgrams_core.results import Guarantee, Release

Array = np.ndarray
LOOKS = 10  # how often a stream reports
PIECE_TRIALS = 50  # of a task: short enough to stop soon, long enough that sending it costs nothing
WORLDS = ("first", "second")


@dataclass(frozen=True, kw_only=True)
class Game:
    """An audit, checked and with every setting filled in; all that a worker needs."""

    method: Method
    spec: Any
    pair: NeighbourPair
    epsilon: float
    delta: float
    trials: int
    seed: int | None
    confidence: float
    door: str = "simulation"

    def play(self, world: str, number: int) -> Release:
        """One trial: seeded in a simulation; at the release door the very path that private data take."""
        data = self.pair.first if world == "first" else self.pair.second
        if self.door == "release":
            return _drawn(self.method, data, self.spec)
        assert self.seed is not None  # plan_game fills it
        seed = derived_seed(self.seed, "audit", self.method.name, self.pair.name, data.n, world, number)
        return (self.method.bare or self.method.function)(data, self.spec, SimulationNoise(seed))

    def statistics(self) -> Statistics:
        """The statistics of this game, which know the records as the method sees them."""
        if self.door == "simulation":
            return Statistics(self.pair)
        first, second = (self.method.admitted(data).points for data in (self.pair.first, self.pair.second))
        return Statistics(self.pair, (first, second))

    def claim_of(self, guarantee: Guarantee) -> float:
        """The ε that is tested: the one asked for, and twice that where it counts records added or removed."""
        return self.epsilon * (2 if guarantee.neighbours == ADD_OR_REMOVE else 1)

    def __reduce__(self) -> tuple[Any, ...]:
        # A method of one's own may stand in a script or a notebook, where no worker can import it: it is sent whole.
        return _unpacked, (cloudpickle.dumps({item.name: getattr(self, item.name) for item in fields(self)}),)


def _unpacked(packed: bytes) -> Game:
    return Game(**cloudpickle.loads(packed))


@dataclass(frozen=True)
class Chunk:
    """Trials ``start`` to ``stop`` of one world."""

    game: Game
    world: str
    start: int
    stop: int

    @property
    def pieces(self) -> list[Chunk]:
        """The same trials in tasks for workers."""
        starts = range(self.start, self.stop, PIECE_TRIALS)
        return [replace(self, start=start, stop=min(start + PIECE_TRIALS, self.stop)) for start in starts]


@dataclass(frozen=True)
class ChunkResult:
    """The statistics of a chunk, one row a trial, and the status and the ε that the releases claim.

    The row of a run that failed holds nothing but NaN.  Where all of them failed there are no names, and no columns;
    ``reason`` is why the last one failed.
    """

    names: tuple[str, ...]
    rows: Array
    status: str
    claim: float
    reason: SpecError | DataError | None = None

    @property
    def failed(self) -> Array:
        """Which runs failed (trials,)."""
        return np.asarray(np.isnan(self.rows).all(axis=1))

    def table(self, names: tuple[str, ...]) -> Array:
        """Finite numbers: whether the run failed, and the columns ``names``."""
        rows = self.rows if self.names else np.full((len(self.rows), len(names)), np.nan)
        return np.column_stack([self.failed, np.clip(np.nan_to_num(rows), -LARGEST, LARGEST)])


def run_chunk(chunk: Chunk) -> ChunkResult:
    """All trials of a chunk. In a simulation each has a seed derived from what it is and not from who runs it."""
    game = chunk.game
    statistics = game.statistics()
    found: list[dict[str, float] | None] = []
    status, claim, reason = "none", game.epsilon, None
    # The matrices are small: more than one numerical thread would only wait for the others, and could
    # add up in another order than the workers of another executor do.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the door says once more in every run what the status says
        for number in range(chunk.start, chunk.stop):
            checkpoint()
            try:
                release = game.play(chunk.world, number)
            except (SpecError, DataError) as error:
                found.append(None)
                reason = error
            except Exception as error:
                found.append(None)
                reason = DataError(
                    f"A part of the audit could not be run, so it has no result. {type(error).__name__}: {error}"
                )
            else:
                found.append(statistics.of(release))
                guarantee = game.pair.first.qualified(release.guarantee, game.spec)
                status, claim = guarantee.words, game.claim_of(guarantee)
    names = next((tuple(row) for row in found if row is not None), ())
    rows = [[math.nan] * len(names) if row is None else list(row.values()) for row in found]
    return ChunkResult(names, np.array(rows).reshape(len(rows), len(names)), status, claim, reason)


def looks_of(game: Game) -> list[tuple[Chunk, Chunk]]:
    """The trials of a game, in the portions after which it reports: a chunk of each world."""
    ends = [game.trials * look // LOOKS for look in range(LOOKS + 1)]
    return [(Chunk(game, WORLDS[0], *part), Chunk(game, WORLDS[1], *part)) for part in pairwise(ends)]


def run_looks(looks: list[tuple[Chunk, Chunk]], executor: str | Processes) -> Iterator[tuple[ChunkResult, ChunkResult]]:
    """Both worlds of each look, in order, whoever runs them."""
    results = _in_order([piece for look in looks for chunk in look for piece in chunk.pieces], executor)
    try:
        for first, second in looks:
            yield (
                _joined(list(islice(results, len(first.pieces)))),
                _joined(list(islice(results, len(second.pieces)))),
            )
    finally:
        results.close()  # type: ignore[attr-defined]


def _in_order(chunks: Sequence[Chunk], executor: str | Processes) -> Iterator[ChunkResult]:
    """Results in the order of the chunks, so that every executor gives the same stream."""
    known: dict[int, ChunkResult | Lost] = {}
    wanted = 0
    outcomes = stream_tasks(_numbered, enumerate(chunks), executor)
    try:
        for (place, _), outcome in outcomes:
            known[place] = outcome
            while wanted in known:
                found = known.pop(wanted)
                if isinstance(found, Lost):
                    raise DataError(f"A part of the audit could not be run, so it has no result. {found.sentence}")
                yield found
                wanted += 1
    finally:
        outcomes.close()  # type: ignore[attr-defined]


def _numbered(task: tuple[int, Chunk]) -> ChunkResult:
    return run_chunk(task[1])


def _joined(pieces: Sequence[ChunkResult]) -> ChunkResult:
    """Pieces of one world as one; a piece in which every run failed takes the names of the others."""
    known = next((piece for piece in pieces if piece.names), pieces[-1])
    nothing = len(known.names)
    rows = [piece.rows if piece.names else np.full((len(piece.rows), nothing), np.nan) for piece in pieces]
    reason = next((piece.reason for piece in pieces if piece.reason is not None), None)
    return replace(known, rows=np.concatenate(rows), reason=reason)
