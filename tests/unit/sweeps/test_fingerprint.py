"""The engine's letters change with what changes a number, and with nothing else."""

import ast

import pytest

from dpgrams_core.sweeps.fingerprint import fingerprint_of

BEFORE = '''
"""About this file."""
from numbers import Real
import math

SHARE = 0.3
NAMES = ("tight", "theorem")

def one(n, *, seed=0):
    """In words."""
    if n < 1:
        raise ValueError(f"n = {n} is too small", "give more records")
    return derived(f"{n}/{seed}") * SHARE

class Two:
    """Other words."""
    size: int = 3
'''


def letters(*sources):
    return fingerprint_of(ast.parse(source) for source in sources)


def test_the_files_that_hold_the_code_change_nothing():
    first, second = BEFORE.split("class Two")
    assert letters("class Two" + second, first) == letters(BEFORE)


SILENT = [  # words, types and imports
    ('"""About this file."""', '"""Something else."""'),
    ('"""In words."""', "# a comment and no docstring"),
    ("is too small", "is far too small"),
    ("give more records", "give some more records"),
    ("from numbers import Real", "from typing import Any"),
    ("size: int = 3", "size: float = 3"),
    ("def one(n, *, seed=0):", "def one(n: int, *, seed: int = 0) -> float:"),
]
LOUD = [  # what changes a number
    ("SHARE = 0.3", "SHARE = 0.2"),
    ('"tight"', '"tighter"'),
    ("n < 1", "n <= 1"),
    ('f"{n}/{seed}"', 'f"{seed}/{n}"'),
    ('f"{n}/{seed}"', 'f"{n}-{seed}"'),
    ("seed=0", "seed=1"),
    ("size: int = 3", "size: int = 4"),
    ("* SHARE", "/ SHARE"),
]


@pytest.mark.parametrize(
    ("old", "new", "is_loud"), [*((*pair, False) for pair in SILENT), *((*pair, True) for pair in LOUD)]
)
def test_what_changes_a_number_changes_the_letters_and_nothing_else(old, new, is_loud):
    assert old in BEFORE
    assert (letters(BEFORE.replace(old, new)) != letters(BEFORE)) is is_loud
