"""The audits of one session: what is asked for, what is under way, and what was found.

The game runs in this session's own script, one look (a tenth of its runs) at a time, between two screens.
So there is no worker to leave behind: when nobody looks, nothing runs, and a look that is under way ends.  Measured on
two cores, worker processes save a fifth of the time of 2,000 runs and would be one pool for every pupil of a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpgrams_core import DataError, Dataset, SpecError
from dpgrams_core.auditing import DOORS, neighbour_pair, pairs_for, stream_audit
from dpgrams_core.auditing.pairs import BOX
from dpgrams_core.costs import audit_seconds
from dpgrams_core.methods import METHODS, Method
from dpgrams_core.methods.broken import BROKEN_METHODS
from dpgrams_core.results import AuditResult

MOST_KEPT = 40
OWN = "own"
OPENDP_SECONDS = 0.006  # a run's noise at the release door: some 250 numbers, 25 microseconds each
Place = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A method as the panel offers it."""

    method: str
    title: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def field_names(self) -> set[str]:
        """The settings that the method knows."""
        return set(self._known.spec.__dataclass_fields__)

    @property
    def doors(self) -> tuple[str, ...]:
        """The doors that it can be audited through."""
        return DOORS if self._known.private else DOORS[:1]

    def pairs(self, door: str) -> list[str]:
        """The pairs of worlds that it can be audited on, the default first."""
        own = [OWN] if self._known.kind == "modes" else []
        return [*pairs_for(self._known.kind, door), *own]

    @property
    def _known(self) -> Method:
        return {**METHODS, **BROKEN_METHODS}[self.method]


CHOICES = {
    "functional": Choice(method="functional", title="Functional release: proven"),
    "tight": Choice(method="dp_grams", title="DP-GRAMS, tight: proven", options=(("calibration", "tight"),)),
    "theorem": Choice(
        method="dp_grams", title="DP-GRAMS, theorem: as published", options=(("calibration", "theorem"),)
    ),
    "experiments": Choice(
        method="dp_grams", title="DP-GRAMS, experiments: nominal", options=(("calibration", "experiments"),)
    ),
    "functional_regression": Choice(method="functional_regression", title="Functional release for regression: proven"),
    "pms_tight": Choice(method="dp_pms", title="DP-PMS, tight: proven", options=(("calibration", "tight"),)),
    "broken_data_starts": Choice(method="broken_data_starts", title="Broken on purpose: starts at records"),
    "broken_sum": Choice(method="broken_sum", title="Broken on purpose: a sum, with the noise of a mean"),
}


@dataclass(frozen=True, kw_only=True)
class Wish:
    """One audit that somebody asked for."""

    choice: str
    pair: str | None = None
    epsilon: float = 1.0
    trials: int = 2_000
    seed: int = 0
    door: str = "simulation"
    old: Place | None = None
    new: Place | None = None
    n: int | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def seconds(self) -> float:
        """About what it costs; the broken methods are kinds of DP-GRAMS, and cost as much."""
        chosen = CHOICES[self.choice]
        method = chosen.method if chosen.method in METHODS else "dp_grams"
        named = chosen.pairs(self.door)[0] if self.pair in (None, OWN) else self.pair
        pair = neighbour_pair(named, self.n, door=self.door)
        drawing = 2 * self.trials * OPENDP_SECONDS if self.door == "release" else 0.0
        return drawing + audit_seconds(method, n=pair.first.n, box=pair.first.box, trials=self.trials)

    def stream(self) -> Iterator[AuditResult]:
        """The game; a wrong setting is refused here, before anything runs."""
        chosen = CHOICES[self.choice]
        options = dict(chosen.options) | dict(self.options)
        pair: Any = self.pair
        if self.pair == OWN:
            first, second, settings = own_pair(self.old or (0.0, 0.0), self.new or (0.0, 0.0), self.door)
            pair = (first, second)
            options |= {name: value for name, value in settings.items() if name in chosen.field_names}
        return stream_audit(
            chosen.method,
            pair=pair,
            epsilon=self.epsilon,
            trials=self.trials,
            seed=self.seed if self.door == "simulation" else None,
            n=self.n,
            door=self.door,
            **options,
        )


# Few records and half of them as starts (a public setting): what a class can wait for.
LESSON = (
    Wish(choice="broken_data_starts", trials=400, n=50, options=(("n_starts", 25),)),
    Wish(choice="broken_sum", trials=400, n=50),
)


def own_pair(old: Place, new: Place, door: str = "simulation") -> tuple[Dataset, Dataset, dict[str, Any]]:
    """The cluster of ``moved_record`` with a record at ``old`` or at ``new``, and the settings of that pair.

    >>> first, second, settings = own_pair((1.0, 0.0), (2.0, 0.0))
    >>> first.n, settings["candidates"]
    (200, ((1.0, 0.0), (2.0, 0.0)))
    """
    like = neighbour_pair("moved_record", door=door)
    first, second = (
        Dataset(
            name="own pair",
            kind="modes",
            points=np.concatenate([like.first.points[:-1], np.array([place], dtype=float)]),
            box=np.array(BOX),
        )
        for place in (old, new)
    )
    return first, second, like.settings | {"candidates": (tuple(old), tuple(new))}


@dataclass
class Record:
    """An audit that was begun, with its latest result."""

    wish: Wish
    result: AuditResult | None = None


@dataclass
class Desk:
    """All audits of a session.  Mutable, so that a look is kept even if the screen is left at that moment."""

    records: list[Record] = field(default_factory=list)
    waiting: list[Wish] = field(default_factory=list)
    stream: Iterator[AuditResult] | None = None
    controls: Any = None  # what the controls said when it was started
    problem: Exception | None = None  # why the last audit ended, if a setting could not be used
    drawn: bool = False  # whether the whole page was drawn since the last look

    @property
    def busy(self) -> bool:
        """Whether there is anything left to run."""
        return self.stream is not None or bool(self.waiting)

    @property
    def current(self) -> Record | None:
        """The audit under way."""
        return self.records[-1] if self.stream is not None else None

    @property
    def found(self) -> list[Record]:
        """Every audit that has something to show."""
        return [record for record in self.records if record.result is not None]

    def begin(self, wishes: tuple[Wish, ...], controls: Any = None) -> None:
        """Start these audits, one after the other; SpecError if any cannot be, and then nothing changes."""
        for wish in wishes:
            wish.stream()
        self.stop()
        self.waiting, self.controls, self.problem = list(wishes), controls, None
        self._next()

    def look(self) -> None:
        """One more tenth of the runs; a setting that a method refuses only now ends the audit with its sentence."""
        if self.stream is None:
            return
        try:
            result = next(self.stream)
        except (SpecError, DataError) as error:
            self.stop()
            self.problem = error
            return
        except BaseException:  # nobody looks any more: a game that was left in the middle cannot go on
            self.stop()
            raise
        self.records[-1].result = result
        if result.complete:
            self._close()
            self._next()

    def stop(self) -> None:
        """End what is under way and forget what was waiting; results stay."""
        self._close()
        self.waiting = []
        self.records, self.problem = self.found, None

    def clear(self) -> None:
        """Forget everything."""
        self.stop()
        self.records = []

    def _next(self) -> None:
        if self.waiting:
            wish = self.waiting.pop(0)
            self.records = [*self.records[-(MOST_KEPT - 1) :], Record(wish)]
            self.stream = wish.stream()

    def _close(self) -> None:
        if self.stream is not None:
            self.stream.close()  # type: ignore[attr-defined]
            self.stream = None
