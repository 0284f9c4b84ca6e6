"""DP-GRAMS: private modes, and the guarantee that each result really has."""

from dpgrams_core.auditing import audit
from dpgrams_core.datasets.registry import DATASETS, load_dataset
from dpgrams_core.methods.registry import METHODS, run
from dpgrams_core.model.errors import BudgetError, DataError, PrivacyLeakWarning, SpecError
from dpgrams_core.model.measures import score
from dpgrams_core.model.results import AuditResult, Dataset, Diagnostics, Guarantee, Release
from dpgrams_core.own_data.table import load_table
from dpgrams_core.sweeps.run import sweep

__all__ = [
    "DATASETS",
    "METHODS",
    "AuditResult",
    "BudgetError",
    "DataError",
    "Dataset",
    "Diagnostics",
    "Guarantee",
    "PrivacyLeakWarning",
    "Release",
    "SpecError",
    "audit",
    "load_dataset",
    "load_table",
    "run",
    "score",
    "sweep",
]
