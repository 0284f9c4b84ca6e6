"""The guarantee of a result: how much, how sure, and against which change of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

STATUSES = ("proven", "as published", "nominal", "none")
RESPONSE_ONLY = "replace-one-response"
ADD_OR_REMOVE = "add-or-remove-one"
NEIGHBOURS = {
    "replace-one": "one record changed, n public",
    RESPONSE_ONLY: "one record's response changed, its predictor and n public",
    ADD_OR_REMOVE: "one record added or removed",
}
# A charge in the ledger has no word for its neighbours, so its status ends with this where they differ in a response.
FOR_RESPONSES = ", for responses only"


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The guarantee that a result really has; ``neighbours`` is a key of ``NEIGHBOURS``."""

    epsilon: float
    delta: float
    status: str
    statement: str
    neighbours: str = "replace-one"
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"unknown status {self.status!r}")
        if self.neighbours not in NEIGHBOURS:
            raise ValueError(f"unknown neighbours {self.neighbours!r}")

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
    def ledger_status(self) -> str:
        """The status as a charge has it."""
        return self.status + (FOR_RESPONSES if self.neighbours == RESPONSE_ONLY else "")

    def without_public_bandwidth(self, rule: str) -> Guarantee:
        """The same result when its bandwidth was read off the records: no proof covers that, so ε is nominal."""
        caveat = (
            f"The bandwidth comes from the records ({rule}) and is not paid for: only for public or synthetic data."
        )
        statement = self.statement
        if self.status != "nominal":
            statement = "ε is nominal: its argument needs a public bandwidth, and this one was read off the records."
        return replace(self, status="nominal", statement=statement, caveats=(*self.caveats, caveat))
