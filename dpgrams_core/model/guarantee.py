"""The guarantee of a result: how much, how sure, and against which change of the data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

Colour = Literal["green", "blue", "orange", "red", "gray"]


@dataclass(frozen=True)
class Status:
    """How sure a guarantee is: the colour of its badge, and what stands behind its word there and in a report.

    ``holds`` is the sentence on the methods that have it.  ``argued``: there is an argument, which may rest on a
    condition; a nominal figure has none.
    """

    colour: Colour
    badge: str
    report: str
    holds: str
    holds_given: str = ""  # the same with its condition, {1}
    argued: bool = False


# From the surest to the least sure.
STATUSES = {
    "proven": Status("green", "", "", "Proven for: {0}.", "Proven, {1}, for: {0}.", argued=True),
    "as published": Status(
        colour="blue",
        badge=": proof has a gap",
        report=": the paper states it, and its proof has a gap",
        holds="Stated, but with a gap in the proof: {0}.",
        holds_given="Stated, {1}, with a gap: {0}.",
        argued=True,
    ),
    "nominal": Status("orange", ": not a proof", ": a claim, not a proof", "Not proven for: {0}."),
    "none": Status("red", "", "", "Without any limit: {0}."),
}
RESPONSE_ONLY = "replace-one-response"
ADD_OR_REMOVE = "add-or-remove-one"
NEIGHBOURS = {
    "replace-one": "one record changed, n public",
    RESPONSE_ONLY: "one record's response changed, its predictor and n public",
    ADD_OR_REMOVE: "one record added or removed",
}
# A charge in the ledger has no word for its neighbours, so its status ends with this where they differ in a response.
FOR_RESPONSES = ", for responses only"
# What a guarantee rests on where the columns themselves were computed from the records (representation.py).
GIVEN_REPRESENTATION = "given the representation"
_SAYS_PROVEN = re.compile(r"(?<!not )\b([Pp])roven\b(?!, given)(?=(\W))")


def full_status(status: str, condition: str | None = None) -> str:
    """A status with what it rests on, as everything that is shown or exported has it."""
    return f"{status}, {condition}" if condition and status in STATUSES and STATUSES[status].argued else status


def bare_status(words: str) -> str:
    """The status in the words of ``full_status``."""
    return words.partition(",")[0]


def status_words(words: str) -> str:
    """A status with its condition (``Guarantee.words``) and what it means."""
    return status_in_a_line(words) + STATUSES[bare_status(words)].badge


def status_in_a_line(words: str) -> str:
    """A status with its condition where there is room for no more; ``none`` alone would say nothing.

    >>> status_in_a_line("none"), status_in_a_line("proven")
    ('no guarantee', 'proven')
    """
    return "no guarantee" if words == "none" else words


def status_colour(words: str) -> Colour:
    """The colour of a status with its condition: green is for a proof without an if."""
    return STATUSES[words].colour if words in STATUSES else "blue"


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The guarantee that a result really has; ``neighbours`` is a key of ``NEIGHBOURS``.

    ``condition`` is what it rests on besides public settings; the reason is among the caveats.  ``status`` alone is for
    programs: whatever people read takes ``words``, where "proven" never stands without its condition.
    """

    epsilon: float
    delta: float
    status: str
    statement: str
    neighbours: str = "replace-one"
    caveats: tuple[str, ...] = ()
    condition: str | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"unknown status {self.status!r}")
        if self.neighbours not in NEIGHBOURS:
            raise ValueError(f"unknown neighbours {self.neighbours!r}")

    @classmethod
    def no_privacy(cls, reader: str, caveats: tuple[str, ...] = ()) -> Guarantee:
        """That of a method without privacy, named as a sentence begins with it."""
        statement = f"{reader} reads the records directly and has no privacy."
        return cls(epsilon=math.inf, delta=1.0, status="none", statement=statement, caveats=caveats)

    @property
    def of_replacement(self) -> tuple[float, float]:
        """(ε, δ) when a record, or its response, is replaced: what is charged, and what words about risk speak of.

        To replace a record is to remove one and to add one, so a claim about either counts for two steps:
        P <= e^ε Q + δ and Q <= e^ε R + δ give P <= e^2ε R + (1 + e^ε) δ.

        >>> claim = Guarantee(epsilon=0.5, delta=1e-6, status="proven", statement="", neighbours="add-or-remove-one")
        >>> epsilon, delta = claim.of_replacement
        >>> epsilon, round(1e6 * delta, 3)
        (1.0, 2.649)
        """
        if self.neighbours != ADD_OR_REMOVE:
            return self.epsilon, self.delta
        return 2 * self.epsilon, min((1 + math.exp(min(self.epsilon, 700.0))) * self.delta, 1 - 1e-9)

    @property
    def words(self) -> str:
        """The status with its condition, as it is shown."""
        return full_status(self.status, self.condition)

    @property
    def ledger_status(self) -> str:
        """The status as a charge has it."""
        return self.words + (FOR_RESPONSES if self.neighbours == RESPONSE_ONLY else "")

    def without_public_bandwidth(self, rule: str) -> Guarantee:
        """The same result when its bandwidth was read off the records: no proof covers that, so ε is nominal."""
        caveat = (
            f"The bandwidth comes from the records ({rule}) and is not paid for: only for public or synthetic data."
        )
        return self._nominal("bandwidth", "read off", caveat)

    def with_picked(self, setting: str) -> Guarantee:
        """The same result when a setting was picked by looking at the records: a query that nobody paid for."""
        caveat = (
            f"The {setting} was picked on these records (the best of several tried) and is not paid for: only for "
            "public or synthetic data."
        )
        return self._nominal(setting, "picked on", caveat)

    def given(self, condition: str, reason: str) -> Guarantee:
        """The same guarantee resting on a condition, which then stands behind every "proven" in its sentences.

        >>> claim = Guarantee(epsilon=1.0, delta=0.0, status="proven", statement="Proven: by a theorem.")
        >>> claim = claim.given(GIVEN_REPRESENTATION, "It was fitted on the records.")
        >>> claim.words, claim.statement
        ('proven, given the representation', 'Proven, given the representation: by a theorem.')
        """
        statement, *caveats = (_conditioned(text, condition) for text in (self.statement, *self.caveats))
        return replace(self, condition=condition, statement=statement, caveats=(*caveats, reason))

    def _nominal(self, setting: str, was: str, caveat: str) -> Guarantee:
        statement = f"ε is nominal: its argument needs a public {setting}, and this one was {was} the records."
        kept = self.statement if self.status == "nominal" else statement
        return replace(self, status="nominal", statement=kept, caveats=(*self.caveats, caveat))


def guarantee_fields(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee for a file: its fields, and ``shown`` for readers who would take the status alone."""
    return {**asdict(guarantee), "shown": guarantee.words}


def read_guarantee(content: Mapping[str, Any]) -> Guarantee:
    """The inverse of ``guarantee_fields``; a file from before there were conditions has none."""
    known = {item.name for item in fields(Guarantee)}
    given = {name: value for name, value in content.items() if name != "shown"}
    if unknown := given.keys() - known:
        raise ValueError(f"a guarantee has no {sorted(unknown)[0]}")
    return Guarantee(**{**given, "caveats": tuple(given["caveats"])})


def _conditioned(text: str, condition: str) -> str:
    """A sentence in which "proven" never stands alone; a pair of commas where the sentence goes on."""

    def said(found: re.Match[str]) -> str:
        return f"{found[1]}roven, {condition}" + ("," if found[2].isspace() else "")

    return _SAYS_PROVEN.sub(said, text)
