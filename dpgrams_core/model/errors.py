"""The errors a user can meet, each a full sentence."""

from __future__ import annotations


def _shown(value: object) -> str:
    """The value as a user would write it, cut where it would fill the screen."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print a whole number of thousands of digits
        return "a number too long to print"
    return text if len(text) <= 300 else text[:300] + "…"


class SpecError(ValueError):
    """A public setting is not allowed: names the field, the value and what is allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        super().__init__(f"{field} = {_shown(value)} is not allowed: {allowed}.")

    def __reduce__(self) -> tuple[type[SpecError], tuple[str, object, str]]:
        # Sweeps send errors between processes; the default pickling would pass one argument.
        return type(self), (self.field, self.value, self.allowed)


class DataError(ValueError):
    """Data cannot be used as asked; the message never repeats a value of the data."""


class PrivacyLeakWarning(UserWarning):
    """Private data were run with settings that no proof covers, such as a bandwidth read off the records."""


class BudgetError(ValueError):
    """The privacy budget does not allow a release; nothing was drawn."""
