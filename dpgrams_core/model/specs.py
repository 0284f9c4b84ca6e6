"""Frozen descriptions of what to run, and what each of their settings declares of itself.

A spec stands beside its method.  Every field is a PUBLIC value and declares once, by ``setting``,
what is allowed, its words, the paper's symbol and its control.  Construction checks it, and the command line's flags
and the pages' controls are built from it: ``settings_of`` gives all that a spec declares.

>>> @dataclass(frozen=True, kw_only=True)
... class Toy(Spec):
...     width: float = setting(1.0, label="Width, w", words="How wide it is (w).", symbol="w", high=10.0)
>>> settings_of(Toy)["width"].label, Toy(width=2).width
('Width, w', 2)
>>> Toy(width=11)
Traceback (most recent call last):
dpgrams_core.model.errors.SpecError: width = 11 is not allowed: it must lie between 1e-12 and 10.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from dpgrams_core.model.checks import LARGEST, SMALLEST, finite, one_of, whole
from dpgrams_core.model.errors import SpecError


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a spec declares of one of its fields.

    What is allowed is one of these: a name of ``choices`` (with ``or_number`` also a number), a ``whole`` number,
    what ``check`` takes (it also gives the form that is kept), else a number.  A setting with the default None may be
    left out; then the method chooses.  Its control is a slider over ``steps``, a list of ``choices``, or a box for a
    number.
    """

    default: Any
    label: str  # this and the words are what people read at its control and its flag
    words: str
    symbol: str = ""  # the paper's letter
    low: float = SMALLEST
    high: float | None = LARGEST
    excluded: tuple[float, ...] = ()
    refusal: str | None = None  # where the general sentence would not do
    whole: bool = False
    choices: Collection[str] | None = None
    titles: dict[str, str] | None = None  # of the choices
    or_number: bool = False
    check: Callable[[str, Any], Any] | None = None
    steps: tuple[Any, ...] = ()
    step: float | None = None  # of a box for a number
    percent: bool = False  # shown times 100
    empty: str = "default"  # the word for what is left out
    only_if: Callable[[Any], bool] | None = None  # for which specs it is read at all
    place: str = ""  # where that is, in words

    @property
    def optional(self) -> bool:
        return self.default is None

    def title(self, choice: str) -> str:
        return (self.titles or {}).get(choice, choice)

    def checked(self, name: str, value: Any) -> Any:
        """The value in the form that a spec keeps, or a SpecError."""
        if value is None and self.optional:
            return None
        if self.check is not None:
            return self.check(name, value)
        if self.choices is not None and not self.or_number:
            return one_of(name, value, self.choices)
        if self.choices is not None and isinstance(value, str):
            if value not in self.choices:
                raise SpecError(name, value, "give a number above 0 or one of " + ", ".join(self.choices))
            return value
        if self.whole:
            return whole(name, value, int(self.low), None if self.high is None else int(self.high))
        number = finite(name, value)
        if self.refusal is None and number <= 0 < self.low:
            raise SpecError(name, value, "it must be above 0")
        above = self.high is not None and number > self.high
        if above or number < self.low or number in self.excluded:
            strictly = " strictly" if self.excluded else ""
            allowed = self.refusal or f"it must lie{strictly} between {self.low:g} and {self.high:g}"
            raise SpecError(name, value, allowed)
        return value


def setting(default: Any, **facts: Any) -> Any:
    """The field of a spec that declares these facts (those of ``Setting``)."""
    return field(default=default, metadata={"setting": Setting(default=default, **facts)})


def settings_of(spec: Any) -> dict[str, Setting]:
    """What a spec, or a type of specs, declares: each field's name with its ``Setting``, in their order.

    The spec of a script's own method may be a plain dataclass, whose fields declare nothing.
    """
    return {item.name: item.metadata["setting"] for item in fields(spec) if "setting" in item.metadata}


class Spec:
    """What all specs share: every field is checked by what it declares."""

    def __post_init__(self) -> None:
        for name, declared in settings_of(self).items():
            object.__setattr__(self, name, declared.checked(name, getattr(self, name)))
        for name, declared in settings_of(self).items():
            # A setting that nothing would read is refused: it would only seem to have an effect.
            value = getattr(self, name)
            if value is not None and declared.only_if is not None and not declared.only_if(self):
                raise SpecError(name, value, f"it belongs to {declared.place}; leave it out here")


Kind = TypeVar("Kind")


def make_spec(kind: type[Kind], options: dict[str, Any]) -> Kind:
    """Build a spec from keyword options; an unknown option is a SpecError that lists the known ones."""
    known = [item.name for item in fields(kind)]  # type: ignore[arg-type]  # a type of dataclasses
    for name, value in options.items():
        if name not in known:
            raise SpecError(name, value, "no such option; the options are " + ", ".join(known))
    return kind(**options)
