"""Scripts that were exported before the rooms import these names; they stay."""

from dpgrams_core.studies.needed_budget import needed_epsilon, needed_n

__all__ = ["needed_epsilon", "needed_n"]
