"""The glossary: one word for one thing. The handbook's table of words is held to it by a test."""

from __future__ import annotations

import re

MEANINGS = {
    "mode": "A place where more records lie than anywhere near it: a top of their density.",
    "branch": "A mode of the response at each x, followed over x.",
    "centre": "The one released point that stands for a cluster.",
    "cluster": "The records that are nearer to one centre than to any other.",
    "class": "The group that a record truly belongs to, known for evaluation only.",
    "record": "One row of the table; what is released may hardly depend on it.",
    "anchor": "A privately drawn place at which a noisy climb starts.",
    "density": "How many records lie near each place; where they are many it has a hill.",
    "release": "What may be published: modes, branches or centres, and all that is computed from them.",
}


def meanings_in(text: str) -> str | None:
    """What the words of the glossary in a text mean, for who points at it.

    >>> meanings_in("Several branches?")
    '**Branch**: A mode of the response at each x, followed over x.'
    >>> meanings_in("Nothing of it")
    """
    found = [word for word in MEANINGS if re.search(rf"\b{word}(e?s)?\b", text, re.IGNORECASE)]
    return "\n\n".join(f"**{word.capitalize()}**: {MEANINGS[word]}" for word in found) or None
