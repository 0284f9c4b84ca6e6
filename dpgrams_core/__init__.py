"""DP-GRAMS: private modes, and the guarantee that each result really has."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpgrams_core.auditing import audit as audit
    from dpgrams_core.datasets.registry import DATASETS as DATASETS
    from dpgrams_core.datasets.registry import load_dataset as load_dataset
    from dpgrams_core.methods.registry import METHODS as METHODS
    from dpgrams_core.methods.registry import run as run
    from dpgrams_core.model.errors import BudgetError as BudgetError
    from dpgrams_core.model.errors import DataError as DataError
    from dpgrams_core.model.errors import PrivacyLeakWarning as PrivacyLeakWarning
    from dpgrams_core.model.errors import SpecError as SpecError
    from dpgrams_core.model.measures import score as score
    from dpgrams_core.model.results import AuditResult as AuditResult
    from dpgrams_core.model.results import Dataset as Dataset
    from dpgrams_core.model.results import Diagnostics as Diagnostics
    from dpgrams_core.model.results import Guarantee as Guarantee
    from dpgrams_core.model.results import Release as Release
    from dpgrams_core.own_data.table import load_table as load_table
    from dpgrams_core.sweeps.run import sweep as sweep

# A name is loaded when it is first asked for: a process that only reads a file or prints its help needs few of them.
_PLACES = {
    "auditing": ("audit",),
    "datasets.registry": ("DATASETS", "load_dataset"),
    "methods.registry": ("METHODS", "run"),
    "model.errors": ("BudgetError", "DataError", "PrivacyLeakWarning", "SpecError"),
    "model.measures": ("score",),
    "model.results": ("AuditResult", "Dataset", "Diagnostics", "Guarantee", "Release"),
    "own_data.table": ("load_table",),
    "sweeps.run": ("sweep",),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = sorted(_PLACE_OF)


def __getattr__(name: str) -> Any:
    """A public name, from the room where it lives."""
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_module(f"{__name__}.{_PLACE_OF[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
