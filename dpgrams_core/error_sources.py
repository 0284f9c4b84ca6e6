"""Scripts that were exported before the rooms import this name; it stays."""

from dpgrams_core.studies.ablation import error_sources

__all__ = ["error_sources"]
