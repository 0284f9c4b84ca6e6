"""How a number, a share, a δ and a time are written, on every page, in every picture and in every report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def short(value: float) -> str:
    """A number with three digits, as people write it.

    >>> short(4.0), short(0.01234), short(1234.6), short(float("inf")), short(float("nan"))
    ('4', '0.0123', '1,230', '∞', '–')
    """
    if value != value:
        return "–"
    if value == float("inf"):
        return "∞"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}" if abs(value) < 1e7 else f"{value:.1e}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.2g}".replace("e-0", "e-")


def fixed(value: float, digits: int = 2) -> str:
    """A score from 0 to 1 or a place: as many digits after the point in each row, so that rows can be compared.

    >>> fixed(0.5), fixed(-1.23456, 3)
    ('0.50', '-1.235')
    """
    return f"{value:,.{digits}f}"


def sigmas(value: float) -> str:
    """A height in units of the noise.

    >>> sigmas(3.14159)
    '3.1 σ'
    """
    return f"{value:.1f} σ"


def give_or_take(value: float) -> str:
    """A standard error, of which two digits say enough.

    >>> give_or_take(0.02134), give_or_take(12.34)
    ('± 0.021', '± 12')
    """
    return f"± {short(float(f'{value:.2g}'))}"


def percent(share: float) -> str:
    """A probability in percent, with more digits near 0 and 100 so that nothing is rounded to certainty.

    >>> percent(0.731), percent(0.0268), percent(0.99995), percent(0.5)
    ('73%', '2.7%', '99.995%', '50%')
    """
    near = min(share, 1 - share)
    if near <= 0:
        return f"{100 * share:.0f}%"
    digits = 0 if near >= 0.095 else min(12, 1 - math.floor(math.log10(100 * near)))
    text = f"{100 * share:.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def whole_percent(share: float) -> str:
    """A share that is no chance, so nothing is said by the digits near 100%.

    >>> whole_percent(0.4667), whole_percent(0.9999999)
    ('47%', '100%')
    """
    return f"{100 * share:.0f}%"


def tiny(value: float) -> str:
    """A δ or another small number with two digits.

    >>> tiny(1e-4), tiny(1.3447e-7), tiny(0.001), tiny(0.0)
    ('1e-4', '1.3e-7', '0.001', '0')
    """
    text = f"{value:.1e}" if 0 < abs(value) < 0.001 else f"{value:.2g}"
    return text.replace("e-0", "e-").replace(".0e", "e")


def one_in(chance: float) -> str:
    """A small chance in words, rounded to the pessimistic side.

    >>> one_in(1.3447e-5), one_in(0.0), one_in(0.9)
    ('1 in 74,000', 'none', 'above one half')
    """
    if chance <= 0:
        return "none"
    if chance > 0.5:
        return "above one half"
    unit = 10 ** max(0, math.floor(math.log10(1 / chance)) - 1)
    number = math.floor(1 / chance / unit) * unit
    return f"1 in {number:,}" if number < 1e12 else f"1 in {number:.1e}"


def chance_words(chance: float) -> str:
    """A chance that is a union bound, which says nothing exact of the very small ones.

    >>> chance_words(0.034), chance_words(1e-9)
    ('3.4%', 'less than 1 in 10,000')
    """
    return percent(chance) if chance >= 1e-4 else "less than 1 in 10,000"


def written(value: Any) -> str:
    """A value that somebody chose, with all its digits.

    >>> written(5000), written(0.25), written(1e-6), written("auto")
    ('5,000', '0.25', '1e-6', 'auto')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return tiny(value) if 0 < value < 0.005 else f"{value:g}"


def time_words(seconds: float) -> str:
    """A length of time as people say it.

    >>> time_words(0.2), time_words(89), time_words(600), time_words(7200)
    ('1 second', '89 seconds', '10 minutes', '2.0 hours')
    """
    if seconds < 90:
        count = max(1, round(seconds))
        return f"{count} second{'s' if count > 1 else ''}"
    if seconds < 3600:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 2 * 86_400 else f"{seconds / 86_400:.1f} days"


def listed(parts: Sequence[str]) -> str:
    """Several as people say them.

    >>> listed(["age", "pay", "size"]), listed(["age"]), listed([])
    ('age, pay and size', 'age', '')
    """
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
