"""The game: run a method thousands of times in two neighbouring worlds and try to tell them apart.

A run that fails is an outcome that can be seen, and counts as one: a mechanism that fails in one world and not in the
other tells them apart.  Only where every run of both worlds fails is there nothing to audit, and the reason is raised.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np

from dpgrams_core.auditing.bounds import both_tests, gaussian_fit
from dpgrams_core.auditing.pairs import DOORS, NeighbourPair, neighbour_pair, pairs_for
from dpgrams_core.auditing.statistics import FAILED, LARGEST, Statistics
from dpgrams_core.methods.as_run import AS_RUN
from dpgrams_core.methods.dp_grams.broken import BROKEN_METHODS
from dpgrams_core.methods.registry import METHODS, Method, _drawn
from dpgrams_core.model.checks import asked_epsilon, between, one_of, whole
from dpgrams_core.model.errors import DataError, SpecError
from dpgrams_core.model.guarantee import ADD_OR_REMOVE
from dpgrams_core.model.progress import checkpoint
from dpgrams_core.model.results import AuditResult, Dataset, Release
from dpgrams_core.numerics.threads import one_thread
from dpgrams_core.privacy.noise import SimulationNoise
from dpgrams_core.sweeps.cell import derived_seed
from dpgrams_core.sweeps.executors import Lost, Processes, stream_tasks
from dpgrams_core.sweeps.run import EXECUTORS

Array = np.ndarray
MIN_TRIALS, MAX_TRIALS = 40, 1_000_000
TRIALS = {"simulation": 2000, "release": 400}  # where nothing else is asked for; OpenDP's noise takes its time
LOOKS = 10  # how often a stream reports
PIECE_TRIALS = 50  # of a task: short enough to stop soon, long enough that sending it costs nothing
WORLDS = ("first", "second")
NOT_RUN = "A part of the audit could not be run, so it has no result."


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
        """One trial: seeded in a simulation; at the release door the very path that private data take.

        In a simulation both worlds have the same noise in trials of the same number.  Every bound on one world holds
        as before, and the difference of the worlds shows without the noise (``gaussian_fit``).
        """
        data = self.pair.first if world == "first" else self.pair.second
        if self.door == "release":
            return _drawn(self.method, data, self.spec)
        assert self.seed is not None  # plan_game fills it
        seed = derived_seed(self.seed, "audit", self.method.name, self.pair.name, data.n, number)
        return (self.method.bare or self.method.function)(data, self.spec, SimulationNoise(seed))

    def __reduce__(self) -> tuple[Any, ...]:
        # A method of one's own may stand in a script or a notebook, where no worker can import it: it is sent whole.
        return _unpacked, (cloudpickle.dumps({item.name: getattr(self, item.name) for item in fields(self)}),)


def _unpacked(packed: bytes) -> Game:
    return Game(**cloudpickle.loads(packed))


def plan_game(
    method: str | Method,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    trials: int | None = None,
    seed: int | None = None,
    pair: str | tuple[Dataset, Dataset] | None = None,
    n: int | None = None,
    confidence: float = 0.95,
    door: str = "simulation",
    **options: Any,
) -> Game:
    """Check everything that an audit was asked for, before anything runs."""
    if isinstance(method, Method):
        chosen = method
    else:
        known = {**BROKEN_METHODS, **METHODS}
        chosen = known[one_of("method", method, known)]
    names = {item.name for item in fields(chosen.spec)}
    if "epsilon" not in names:
        raise SpecError("method", chosen.name, "it claims no privacy, so there is nothing to audit")
    if one_of("door", door, DOORS) == "release":
        if not chosen.private:
            raise SpecError("method", chosen.name, "the release door takes methods with privacy only")
        if seed is not None:
            raise SpecError("seed", seed, "the release door takes no seed, so that no audit there can be repeated")
    wish = pairs_for(chosen.kind)[0] if pair is None else pair
    worlds = neighbour_pair(wish, n, kind=chosen.kind, door=door)
    if worlds.first.kind != chosen.kind:
        raise SpecError("method", chosen.name, f"it works on {chosen.kind} data, and the pair is {worlds.first.kind}")
    for name, value in options.items():
        if name not in names:
            raise SpecError(name, value, "no such option; the options are " + ", ".join(sorted(names)))
    budget = {"epsilon": asked_epsilon("epsilon", epsilon), "delta": between("delta", delta, 0, 1)}
    settings = {name: value for name, value in worlds.settings.items() if name in names} | options
    if settings.get("calibration") == AS_RUN and "candidates" in settings:  # it wants no more starts than candidates
        settings.setdefault("n_starts", min(len(settings["candidates"]), worlds.first.n))
    return Game(
        method=chosen,
        spec=chosen.spec(**{name: value for name, value in budget.items() if name in names}, **settings),
        pair=replace(worlds, first=worlds.first.for_many_runs(), second=worlds.second.for_many_runs()),
        epsilon=float(epsilon),
        delta=float(delta),
        trials=whole("trials", TRIALS[door] if trials is None else trials, MIN_TRIALS, MAX_TRIALS),
        seed=None if door == "release" else whole("seed", 0 if seed is None else seed, 0),
        door=door,
        confidence=between("confidence", confidence, 0, 1),
    )


@dataclass(frozen=True)
class Chunk:
    """Trials ``start`` to ``stop`` of one world: a task for a worker."""

    game: Game
    world: str
    start: int
    stop: int


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
    reason: Exception | None = None

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
    worlds = (game.pair.first, game.pair.second)
    seen = worlds if game.door == "simulation" else [game.method.admitted(data) for data in worlds]
    statistics = Statistics(game.pair, [data.points for data in seen])
    found: list[dict[str, float] | None] = []
    status, claim, reason = "none", game.epsilon, None
    # The matrices are small: more than one numerical thread would only wait for the others, and could
    # add up in another order than the workers of another executor do.
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the door says once more in every run what the status says
        for number in range(chunk.start, chunk.stop):
            checkpoint()
            try:
                release = game.play(chunk.world, number)
            except Exception as error:
                found.append(None)
                known = isinstance(error, (SpecError, DataError))
                reason = error if known else DataError(f"{NOT_RUN} {type(error).__name__}: {error}")
            else:
                found.append(statistics.of(release))
                guarantee = worlds[0].qualified(release.guarantee, game.spec)
                # The ε that is tested: the one asked for, and twice that where it counts records added or removed.
                status, claim = guarantee.words, game.epsilon * (2 if guarantee.neighbours == ADD_OR_REMOVE else 1)
    names = next((tuple(row) for row in found if row is not None), ())
    rows = [[math.nan] * len(names) if row is None else list(row.values()) for row in found]
    return ChunkResult(names, np.array(rows).reshape(len(rows), len(names)), status, claim, reason)


def _looks(game: Game) -> list[int]:
    """After how many trials each result comes, and before them 0."""
    return [game.trials * look // LOOKS for look in range(LOOKS + 1)]


def chunks_of(game: Game) -> list[Chunk]:
    """The trials of a game in the order in which they count: look after look, in each of them both worlds."""
    return [
        Chunk(game, world, start, min(start + PIECE_TRIALS, stop))
        for first, stop in pairwise(_looks(game))
        for world in WORLDS
        for start in range(first, stop, PIECE_TRIALS)
    ]


def _in_order(chunks: Sequence[Chunk], executor: str | Processes) -> Iterator[tuple[Chunk, ChunkResult]]:
    """Results in the order of the chunks, so that every executor gives the same stream."""
    known: dict[tuple[str, int], ChunkResult | Lost] = {}
    with closing(stream_tasks(run_chunk, chunks, executor)) as outcomes:  # type: ignore[type-var]
        for chunk in chunks:
            while (chunk.world, chunk.start) not in known:
                done, outcome = next(outcomes)
                known[done.world, done.start] = outcome
            found = known.pop((chunk.world, chunk.start))
            if isinstance(found, Lost):
                raise DataError(f"{NOT_RUN} {found.sentence}")
            yield chunk, found


def _stream(game: Game, executor: str | Processes, interim: bool) -> Iterator[AuditResult]:
    parts: dict[str, list[ChunkResult]] = {world: [] for world in WORLDS}
    error = 1 - game.confidence
    with closing(_in_order(chunks_of(game), executor)) as results:  # type: ignore[type-var]
        for chunk, found in results:
            parts[chunk.world].append(found)
            if chunk.world == WORLDS[0] or chunk.stop not in _looks(game):
                continue  # in the middle of a look
            known = next((piece for world in WORLDS for piece in parts[world] if piece.names), None)
            if known is None:  # no run of either world has ended well
                raise next(piece.reason for piece in parts[WORLDS[0]] if piece.reason is not None)
            last = chunk.stop == game.trials
            if not (last or interim):
                continue
            first, second = (np.concatenate([piece.table(known.names) for piece in parts[world]]) for world in WORLDS)
            share = error / 2 if last else error / 2 / (LOOKS - 1)
            names, law = [FAILED, *known.names], {"delta": game.delta, "error": share}
            yield AuditResult(
                method=game.method.name,
                pair=game.pair.name,
                n=game.pair.first.n,
                epsilon_claimed=known.claim,
                delta=game.delta,
                claimed_status=known.status,
                confidence=game.confidence,
                trials=game.trials,
                trials_done=chunk.stop,
                seed=game.seed,
                door=game.door,
                tests=both_tests(first, second, names, **law),
                gaussian=gaussian_fit(first, second, names, **law, coupled=game.door == "simulation"),
            )


def stream_audit(
    method: str | Method, *, executor: str | Processes = "serial", interim: bool = True, **options: Any
) -> Iterator[AuditResult]:
    """As ``audit``, with an interim result after every tenth of the trials; without ``interim`` the last one only.

    Closing the iterator stops the workers; what came stays true: half of the allowed error is shared by
    the interim results and half is kept for the last, so all of them hold at once with ``confidence``.
    A wrong setting is refused here, before the first result is asked for.
    """
    if isinstance(executor, str):
        one_of("executor", executor, EXECUTORS)
    return _stream(plan_game(method, **options), executor, interim)


def audit(method: str | Method, *, executor: str | Processes = "serial", **wish: Any) -> AuditResult:
    """Play a distinguishing game against a method and bound its epsilon from below.

    Parameters
    ----------
    method : a key of ``METHODS`` or ``BROKEN_METHODS``, or a ``Method`` of your own.
    epsilon, delta : the claim that is tested.
    trials : runs in each of the two worlds; half choose the test, half are counted. By default 2,000, and 400 through
        the release door.
    seed : of a simulation, by default 0. The release door takes none, and an audit there cannot be repeated.
    pair : a key of ``PAIRS``, or two Datasets that differ in exactly one record. By default the first of the method's
        kind (``pairs_for``).
    executor : "serial", "processes" (all cores) or a pool of one's own; the result is the same.
    n : records of a built-in pair; small is fast, and a guarantee must hold for any n.
    confidence : with at most the remaining probability, a correct mechanism is called caught.
    door : "simulation", with seeded noise; or "release", the very path that private data take: every record is put into
        the box, and the noise is OpenDP's. It is slower, and takes pairs with extreme values.
    **options : fields of the method's spec; they replace the settings that come with the pair.

    Notes
    -----
    A lower bound below the claim proves nothing; only ``caught`` is a finding.  A run that fails, and a number that is
    none, are outcomes like any other: whoever sees them can tell the worlds apart by them.

    Examples
    --------
    >>> result = audit("broken_data_starts", epsilon=1.0, trials=200, n=50, n_starts=25)
    >>> result.caught
    True
    """
    return next(stream_audit(method, executor=executor, interim=False, **wish))


def audit_text(result: AuditResult) -> str:
    """An audit as lines for the command line.

    Examples
    --------
    >>> print(audit_text(audit("broken_sum", trials=100, n=50)).splitlines()[0])
    Audit of broken_sum on far_record (n = 50): claims ε = 1, δ = 1e-06
    """
    source = f"seed {result.seed}" if result.door == "simulation" else "through the release door, without a seed"
    done = f"{result.trials_done}" if result.complete else f"{result.trials_done} of {result.trials}"
    lines = [
        f"Audit of {result.method} on {result.pair} (n = {result.n}): "
        f"claims ε = {result.epsilon_claimed:g}, δ = {result.delta:g}",
        f"  {done} runs in each world, {source}; half chose the tests, half are counted",
    ]
    for test in result.tests:
        sign = ">" if test.above else "<="
        lines.append(f"  {'mirrored ' if test.swapped else ''}test: {test.statistic} {sign} {test.threshold:.4g}")
        for name, count, (low, high) in (
            ("true", test.true_positives, test.true_positive_interval),
            ("false", test.false_positives, test.false_positive_interval),
        ):
            lines.append(f"    {name} positives {count} of {test.trials}, rate between {low:.4f} and {high:.4f}")
        lines.append(f"    ε is at least {test.epsilon_lower:.3f}")
    return "\n".join([*lines, *filter(None, [result.fit_words]), result.verdict])
