"""Decks: states of pages that a speaker shows one after the other, as a link or as a small file.

A scene is a page with its link, a title and notes; it holds settings only, never data.  Whoever opens a deck did not
necessarily make it, so everything in it is bounded and checked, and the pages check the values of a link once more.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dpgrams_core.model.errors import DataError

FORMAT = "dpgrams-deck-1"
# The pages that a scene may show, with their names.  My data is none of them: a deck is passed on.
PAGES = {
    "start": "Start",
    "lessons": "Lessons",
    "attacker": "Be the attacker",
    "modes": "Modes",
    "regression": "Regression",
    "clusters": "Clusters",
    "tradeoff": "Tradeoff",
    "guarantee": "Guarantee",
    "paper": "Paper",
}
MOST_SCENES = 40
LONGEST = {"query": 2_000, "title": 120, "notes": 2_000}  # characters
LONGEST_LINK = 6_000  # characters of a deck in an address: proxies refuse much longer ones
LARGEST_FILE = 1_000_000  # bytes, also of what a link unpacks to
NO_DECK = "This is not a deck that was saved here, or it has been changed."
OWN_DATA = "My data is never part of a deck: a deck is passed on, and what you released is for you to pass on."


@dataclass(frozen=True)
class Scene:
    """A page with its settings as they stand after the ? of its address, under a title, with notes for the speaker."""

    page: str
    query: str = ""
    title: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        if self.page == "my_data":
            raise DataError(OWN_DATA)
        if self.page not in PAGES:
            raise DataError(f"A scene shows one of these pages: {', '.join(PAGES.values())}.")
        for name, most in LONGEST.items():
            if not isinstance(text := getattr(self, name), str) or len(text) > most:
                raise DataError(f"The {name} of a scene is a text of at most {most:,} characters.")

    @property
    def heading(self) -> str:
        """Its title, or else the name of its page."""
        return self.title or PAGES[self.page]


Deck = tuple[Scene, ...]
# What next and previous go through where nobody made a deck.
TOUR: Deck = tuple(map(Scene, ("modes", "regression", "clusters", "tradeoff", "guarantee", "paper")))


def deck_of(scenes: Sequence[Scene]) -> Deck:
    """Some scenes as a deck; too many are a DataError."""
    if not 1 <= len(scenes) <= MOST_SCENES:
        raise DataError(f"A deck has 1 to {MOST_SCENES} scenes.")
    return tuple(scenes)


def deck_text(deck: Deck) -> str:
    """A deck as one word for an address.

    >>> read_deck_text(deck_text((Scene("modes", "epsilon=2"),)))
    (Scene(page='modes', query='epsilon=2', title='', notes=''),)
    """
    said = [[scene.page, scene.query, scene.title, scene.notes] for scene in deck]
    packed = zlib.compress(json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode(), 9)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_deck_text(text: str) -> Deck:
    """The deck of an address; DataError with a sentence where it is none."""
    try:
        opener = zlib.decompressobj()
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        plain = opener.decompress(packed, LARGEST_FILE)
        if opener.unconsumed_tail or not opener.eof or opener.unused_data:
            raise ValueError
        return deck_of([Scene(*item) for item in _list(json.loads(plain)) if _list(item)])
    except DataError:
        raise
    except (ValueError, TypeError, RecursionError, zlib.error, binascii.Error):
        raise DataError(NO_DECK) from None


def deck_json(deck: Deck) -> str:
    """A deck as a file."""
    return json.dumps({"format": FORMAT, "scenes": [asdict(scene) for scene in deck]}, indent=2, ensure_ascii=False)


def read_deck_json(content: bytes) -> Deck:
    """The deck of a file; DataError with a sentence where it is none."""
    if len(content) > LARGEST_FILE:
        raise DataError("This file is too large for a deck that was saved here.")
    try:
        said = json.loads(content)
        if said["format"] != FORMAT:
            raise ValueError
        return deck_of([Scene(**item) for item in _list(said["scenes"])])
    except DataError:
        raise
    except (KeyError, ValueError, TypeError, RecursionError):
        raise DataError(NO_DECK) from None


def _list(found: Any) -> list[Any]:
    """It, if it is a list that a deck may hold."""
    if not isinstance(found, list) or not found:
        raise ValueError
    return found
