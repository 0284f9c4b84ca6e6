"""Audits: a distinguishing game that can catch a false claim of privacy, and can never prove a true one."""

from dpgrams_core.auditing.game import audit, audit_text, stream_audit
from dpgrams_core.auditing.pairs import DOORS, PAIRS, NeighbourPair, neighbour_pair, pairs_for

__all__ = ["DOORS", "PAIRS", "NeighbourPair", "audit", "audit_text", "neighbour_pair", "pairs_for", "stream_audit"]
