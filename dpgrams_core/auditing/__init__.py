"""Audits: a distinguishing game that can catch a false claim of privacy, and can never prove a true one."""

from dpgrams_core.auditing.game import audit, audit_text, stream_audit
from dpgrams_core.auditing.pairs import PAIRS, NeighbourPair, neighbour_pair

__all__ = ["PAIRS", "NeighbourPair", "audit", "audit_text", "neighbour_pair", "stream_audit"]
