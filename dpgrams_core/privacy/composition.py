"""What several releases cost together: added up (basic), and composed as what they are (tight)."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpgrams_core.model.guarantee import FOR_RESPONSES
from dpgrams_core.privacy.accountants import draw_shift
from dpgrams_core.privacy.calibration import exact_epsilon
from dpgrams_core.privacy.events import (
    Event,
    ExponentialDraws,
    GaussianRelease,
    GaussianRounds,
    SubsampledGaussianRounds,
)

_KINDS: dict[str, type] = {
    kind.__name__: kind for kind in (ExponentialDraws, GaussianRelease, GaussianRounds, SubsampledGaussianRounds)
}


def events_to_json(events: Iterable[Event]) -> str:
    """Events as text; they hold public facts only.

    >>> events_to_json([GaussianRelease(sensitivity=1.0, noise_scale=2.0)])
    '[{"kind": "GaussianRelease", "sensitivity": 1.0, "noise_scale": 2.0}]'
    """
    return json.dumps([{"kind": type(event).__name__, **dataclasses.asdict(event)} for event in events])


def events_from_json(text: str) -> tuple[Event, ...]:
    """The inverse of ``events_to_json``."""
    return tuple(_KINDS[item.pop("kind")](**item) for item in json.loads(text))


def exact_amount(value: float) -> Fraction:
    """A number as it is written: three times 0.1 is 0.3, and a cap of 0.3 is met, not passed.

    >>> 3 * exact_amount(0.1) == exact_amount(0.3)
    True
    """
    return Fraction(repr(float(value)))


@dataclass(frozen=True)
class Spent:
    """One release as the ledger has it: what was charged, how sure that is (``Guarantee.ledger_status``), what ran."""

    epsilon: float
    delta: float
    status: str
    events: tuple[Event, ...]

    @property
    def proven(self) -> bool:
        return self.status.removesuffix(FOR_RESPONSES) == "proven"


@dataclass(frozen=True)
class Totals:
    """ε of all releases together at the same δ, by two ways of counting."""

    basic_epsilon: float
    tight_epsilon: float
    delta: float
    releases: int
    unproven: int
    for_responses: int = 0

    @property
    def statement(self) -> str:
        """The two totals in a sentence or three."""
        text = (
            f"{self.releases} releases: ε = {self.basic_epsilon:.6g} added up, ε = {self.tight_epsilon:.6g} composed "
            f"tightly, both at δ = {self.delta:.3g}. The cap counts the sum, which holds even where a setting was "
            "chosen after seeing an earlier release; the tight figure takes the settings as fixed beforehand."
        )
        if self.unproven:
            text += f" {self.unproven} of them have no proof: their claimed ε is counted, and the totals are nominal."
        if self.for_responses:
            text += (
                f" {self.for_responses} of them take the predictors as public: these totals hold for a changed "
                "response, and nothing here bounds what is learnt of a predictor."
            )
        return text


def compose(charges: Sequence[Spent]) -> Totals:
    """Both totals of a list of releases.

    Basic: ε and δ add up.  Tight, at the same δ: Gaussian releases of multipliers z_i are exactly one release of
    multiplier (sum 1 / z_i^2)^(-1/2), priced by the exact curve at the sum of *their* δ; exponential draws add their
    ε, or count as the Gaussian releases that are no better than they are (accountants.py); whatever else there is
    (minibatches, claims without a proof) adds as it was charged.  A sequence of these is a basic composition of the
    groups, and the smallest of the totals is given.

    A changed response is one way to change a record, so what protects records protects responses as well.  With a
    release among them that protects responses only, the totals are about responses.

    >>> from dpgrams_core.privacy.calibration import gaussian_multiplier
    >>> event = GaussianRelease(sensitivity=1.0, noise_scale=gaussian_multiplier(0.5, 1e-6))
    >>> totals = compose([Spent(0.5, 1e-6, "proven", (event,))] * 4)
    >>> totals.basic_epsilon, round(totals.tight_epsilon, 2)
    (2.0, 0.97)
    """
    basic = sum((exact_amount(item.epsilon) for item in charges), Fraction(0))
    delta = sum((exact_amount(item.delta) for item in charges), Fraction(0))
    parts = [_composed(item) for item in charges]
    counted = [part for part in parts if part is not None]
    pairs = list(zip(charges, parts, strict=True))
    other = sum((exact_amount(item.epsilon) for item, part in pairs if part is None), Fraction(0))
    gaussian_delta = float(sum((exact_amount(item.delta) for item, part in pairs if part is not None), Fraction(0)))
    precision = sum(part[0] for part in counted)
    pure = sum((exact_amount(part[1]) for part in counted), Fraction(0))
    apart = float(other + pure) + _gaussian_epsilon(precision, gaussian_delta)
    together = float(other) + _gaussian_epsilon(precision + sum(part[2] for part in counted), gaussian_delta)
    return Totals(
        basic_epsilon=float(basic),
        tight_epsilon=min(float(basic), apart, together),
        delta=float(delta),
        releases=len(charges),
        unproven=sum(not item.proven for item in charges),
        for_responses=sum(item.status.endswith(FOR_RESPONSES) for item in charges),
    )


def _gaussian_epsilon(precision: float, delta: float) -> float:
    """ε of Gaussian releases whose 1 / z^2 add up to ``precision``."""
    if not precision:
        return 0.0
    return exact_epsilon(1 / math.sqrt(precision), delta) if delta else math.inf


def _composed(item: Spent) -> tuple[float, float, float] | None:
    """(sum of 1 / z^2, pure ε of draws, their 1 / z^2) of a release of proven full-batch parts; ``None`` otherwise."""
    if not item.proven or not item.events:
        return None
    precision, pure, drawn = 0.0, 0.0, 0.0
    for event in item.events:
        if isinstance(event, GaussianRelease):
            precision += (event.sensitivity / event.noise_scale) ** 2
        elif isinstance(event, GaussianRounds) and event.full_batch:
            precision += event.rounds / event.multiplier**2
        elif isinstance(event, ExponentialDraws):
            pure += event.count * event.epsilon_each
            drawn += event.count * draw_shift(event.epsilon_each) ** 2
        else:
            return None
    return precision, pure, drawn
