"""The runs of the game: many trials in two worlds, in portions, on whatever runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice, pairwise
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np
from threadpoolctl import threadpool_limits

from dpgrams_core.auditing.pairs import NeighbourPair
from dpgrams_core.auditing.statistics import Statistics
from dpgrams_core.cells import derived_seed
from dpgrams_core.errors import DataError, SpecError
from dpgrams_core.executors import Lost, Processes, stream_tasks
from dpgrams_core.methods import Method
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.progress import checkpoint

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
    seed: int
    confidence: float

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
    """The statistics of a chunk, one row a trial, and the status that the releases claim."""

    names: tuple[str, ...]
    rows: Array
    status: str


def run_chunk(chunk: Chunk) -> ChunkResult:
    """All trials of a chunk. Each has a seed of its own, derived from what it is and not from who runs it."""
    game = chunk.game
    data = game.pair.first if chunk.world == "first" else game.pair.second
    statistics = Statistics(game.pair)
    play = game.method.bare or game.method.function
    names: tuple[str, ...] = ()
    rows, status = [], "none"
    # The matrices are small: more than one numerical thread would only wait for the others, and could
    # add up in another order than the workers of another executor do.
    with threadpool_limits(1):
        for number in range(chunk.start, chunk.stop):
            checkpoint()
            seed = derived_seed(game.seed, "audit", game.method.name, game.pair.name, data.n, chunk.world, number)
            release = play(data, game.spec, SimulationNoise(seed))
            found = statistics.of(release)
            names, status = tuple(found), data.qualified(release.guarantee, game.spec).words
            rows.append(list(found.values()))
    return ChunkResult(names, np.nan_to_num(np.array(rows)), status)


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
    """Results in the order of the chunks, so that every executor gives the same stream and the same first error."""
    known: dict[int, ChunkResult | SpecError | DataError | Lost] = {}
    wanted = 0
    outcomes = stream_tasks(_tried, enumerate(chunks), executor)
    try:
        for (place, _), outcome in outcomes:
            known[place] = outcome
            while wanted in known:
                found = known.pop(wanted)
                if isinstance(found, Lost):
                    raise DataError(f"A part of the audit could not be run, so it has no result. {found.sentence}")
                if not isinstance(found, ChunkResult):
                    raise found
                yield found
                wanted += 1
    finally:
        outcomes.close()  # type: ignore[attr-defined]


def _tried(task: tuple[int, Chunk]) -> ChunkResult | SpecError | DataError:
    """A setting that the method refuses only now is an answer too, with its sentence."""
    try:
        return run_chunk(task[1])
    except (SpecError, DataError) as error:
        return error


def _joined(pieces: Sequence[ChunkResult]) -> ChunkResult:
    return replace(pieces[-1], rows=np.concatenate([piece.rows for piece in pieces]))
