"""Decks: what is written comes back, and what is not a deck is refused with a sentence."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgrams_core.exports.deck import (
    LARGEST_FILE,
    LONGEST,
    MOST_SCENES,
    NO_DECK,
    OWN_DATA,
    PAGES,
    Scene,
    deck_json,
    deck_of,
    deck_text,
    read_deck_json,
    read_deck_text,
)
from dpgrams_core.model.errors import DataError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
SCENES = st.builds(Scene, st.sampled_from(list(PAGES)), TEXTS, TEXTS, TEXTS)
DECKS = st.lists(SCENES, min_size=1, max_size=6).map(tuple)


def packed(said: object) -> str:
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(said).encode())).decode().rstrip("=")


@given(DECKS)
def test_a_deck_comes_back_from_its_link_and_from_its_file(deck):
    assert read_deck_text(deck_text(deck)) == deck
    assert read_deck_json(deck_json(deck).encode()) == deck
    assert set(deck_text(deck)) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


@given(st.text(max_size=200))
def test_no_text_is_more_than_refused(text):
    for read, given_text in ((read_deck_text, text), (read_deck_json, text.encode("utf-8", "replace"))):
        with pytest.raises(DataError):
            read(given_text)


@given(st.recursive(st.none() | st.integers() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_no_json_is_more_than_refused(said):
    with pytest.raises(DataError):
        read_deck_text(packed(said))
    with pytest.raises(DataError):
        read_deck_json(json.dumps({"format": "dpgrams-deck-1", "scenes": said}).encode())


def test_own_data_are_refused_wherever_a_deck_comes_from():
    ways = (
        lambda: Scene("my_data"),
        lambda: read_deck_text(packed([["my_data", "", "", ""]])),
        lambda: read_deck_json(b'{"format": "dpgrams-deck-1", "scenes": [{"page": "my_data"}]}'),
    )
    for way in ways:
        with pytest.raises(DataError, match="never part of a deck"):
            way()
    assert OWN_DATA.endswith(".")


def test_a_deck_is_bounded():
    with pytest.raises(DataError, match=f"1 to {MOST_SCENES} scenes"):
        deck_of([Scene("modes")] * (MOST_SCENES + 1))
    with pytest.raises(DataError, match="1 to"):
        deck_of([])
    for name, most in LONGEST.items():
        assert Scene("modes", **{name: "x" * most})
        with pytest.raises(DataError, match=name):
            Scene("modes", **{name: "x" * (most + 1)})
    with pytest.raises(DataError, match="too large"):
        read_deck_json(b" " * (LARGEST_FILE + 1))


def test_a_link_that_unpacks_to_very_much_is_not_unpacked():
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 50 * LARGEST_FILE)).decode().rstrip("=")
    assert len(bomb) < 100_000
    with pytest.raises(DataError, match="not a deck"):
        read_deck_text(bomb)


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_link_that_was_cut_is_refused(cut):
    with pytest.raises(DataError) as refused:
        read_deck_text(deck_text((Scene("modes", "epsilon=2", "A title"),))[:-cut])
    assert str(refused.value) == NO_DECK
