"""The game: run a method thousands of times in two neighbouring worlds and try to tell them apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from dpgrams_core.auditing.bounds import both_tests
from dpgrams_core.auditing.pairs import DOORS, neighbour_pair, pairs_for
from dpgrams_core.auditing.statistics import FAILED
from dpgrams_core.auditing.trials import ChunkResult, Game, looks_of, run_looks
from dpgrams_core.checks import asked_epsilon, between, one_of, whole
from dpgrams_core.errors import SpecError
from dpgrams_core.executors import Processes
from dpgrams_core.methods import METHODS, Method
from dpgrams_core.methods.broken import BROKEN_METHODS
from dpgrams_core.results import AuditResult, Dataset
from dpgrams_core.sweeps import EXECUTORS

MIN_TRIALS, MAX_TRIALS = 40, 1_000_000
TRIALS = {"simulation": 2000, "release": 400}  # where nothing else is asked for; OpenDP's noise takes its time


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
    return Game(
        method=chosen,
        spec=chosen.spec(**{name: value for name, value in budget.items() if name in names}, **settings),
        pair=worlds,
        epsilon=float(epsilon),
        delta=float(delta),
        trials=whole("trials", TRIALS[door] if trials is None else trials, MIN_TRIALS, MAX_TRIALS),
        seed=None if door == "release" else whole("seed", 0 if seed is None else seed, 0),
        door=door,
        confidence=between("confidence", confidence, 0, 1),
    )


def stream_audit(
    method: str | Method, *, executor: str | Processes = "serial", **options: Any
) -> Iterator[AuditResult]:
    """As ``audit``, with an interim result after every tenth of the trials.

    Closing the iterator stops the workers; what came stays true: half of the allowed error is shared by
    the interim results and half is kept for the last, so all of them hold at once with ``confidence``.
    A wrong setting is refused here, before the first result is asked for.
    """
    return _stream(plan_game(method, **options), _known_executor(executor), interim=True)


def _known_executor(executor: str | Processes) -> str | Processes:
    return one_of("executor", executor, EXECUTORS) if isinstance(executor, str) else executor


def _stream(game: Game, executor: str | Processes, *, interim: bool) -> Iterator[AuditResult]:
    """The results of a game; without ``interim`` the last one only, which is the same."""
    parts: tuple[list[ChunkResult], list[ChunkResult]] = ([], [])
    error = 1 - game.confidence
    looks = looks_of(game)
    results = run_looks(looks, executor)
    try:
        for look, pieces in enumerate(results):
            for part, piece in zip(parts, pieces, strict=True):
                part.append(piece)
            known = next((piece for part in parts for piece in part if piece.names), None)
            if known is None:  # no run of either world has ended well
                assert pieces[0].reason is not None
                raise pieces[0].reason
            last = look == len(looks) - 1
            if not (last or interim):
                continue
            yield AuditResult(
                method=game.method.name,
                pair=game.pair.name,
                n=game.pair.first.n,
                epsilon_claimed=known.claim,
                delta=game.delta,
                claimed_status=known.status,
                confidence=game.confidence,
                trials=game.trials,
                trials_done=looks[look][0].stop,
                seed=game.seed,
                door=game.door,
                tests=both_tests(
                    np.concatenate([piece.table(known.names) for piece in parts[0]]),
                    np.concatenate([piece.table(known.names) for piece in parts[1]]),
                    [FAILED, *known.names],
                    delta=game.delta,
                    error=error / 2 if last else error / 2 / (len(looks) - 1),
                ),
            )
    finally:
        results.close()  # type: ignore[attr-defined]


def audit(
    method: str | Method,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    trials: int | None = None,
    seed: int | None = None,
    pair: str | tuple[Dataset, Dataset] | None = None,
    executor: str | Processes = "serial",
    n: int | None = None,
    confidence: float = 0.95,
    door: str = "simulation",
    **options: Any,
) -> AuditResult:
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
    wish: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "trials": trials, "seed": seed, "pair": pair, "n": n}
    game = plan_game(method, confidence=confidence, door=door, **wish, **options)
    return next(_stream(game, _known_executor(executor), interim=False))


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
    return "\n".join([*lines, result.verdict])
