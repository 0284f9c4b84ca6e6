"""DP-GRAMS: private modes, and the guarantee that each result really has."""

from dpgrams_core.auditing import audit
from dpgrams_core.datasets import DATASETS, load_dataset
from dpgrams_core.datasets.upload import load_table
from dpgrams_core.errors import BudgetError, DataError, PrivacyLeakWarning, SpecError
from dpgrams_core.methods import METHODS, run
from dpgrams_core.metrics import score
from dpgrams_core.results import AuditResult, Dataset, Diagnostics, Guarantee, Release
from dpgrams_core.sweeps import sweep

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
