"""One kind of name for one thing: no text of a page or a picture uses another word than the glossary's."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dpgrams_core.model.measures import MEASURES
from dpgrams_core.model.words import MEANINGS


@dataclass(frozen=True)
class Word:
    """A word, its meaning in a sentence, the kind of data it belongs to ("" for all), and what is not said instead."""

    word: str
    meaning: str
    kind: str
    never: tuple[str, ...]  # singular


ROOT = Path(__file__).parents[3]


def glossary():
    """The table of the handbook."""
    lines = (ROOT / "docs/reference/words.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return tuple(
        Word(word, meaning, "" if kind == "all" else kind, tuple(filter(None, never.split(", "))))
        for word, meaning, kind, never in rows[2:]
    )


GLOSSARY = glossary()
SOURCES = [
    path
    for pattern in (
        "pages/**/*.py",
        "dpgrams_core/figures/*.py",
        "dpgrams_core/exports/*.py",
        "dpgrams_core/**/ladder*.py",
    )
    for path in ROOT.glob(pattern)
]
CALLED = ("centroid MSE", "centroid_mse")  # the paper's name of an error
# What else is drawn on the pages of one kind of data must not be called by the word of another kind.
OF_ONE_KIND = {"modes": "modes", "clusters": "clusters"}


def texts_of(source):
    """What a reader may see: every text of a source but docstrings, keys and format marks."""
    tree = ast.parse(source)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [node.value for node in plain if id(node) not in told and not re.fullmatch(r"[a-z_.]+", node.value)]


def texts_in(said):
    """Every text in what a TOML file says."""
    if isinstance(said, str):
        return [said]
    return [text for item in (said.values() if isinstance(said, dict) else said) for text in texts_in(item)]


def other_words(texts, words=GLOSSARY):
    """Every text that calls a thing by another name."""
    never = "|".join(name for word in words for name in word.never)
    found = []
    for text in texts:
        left = text
        for name in CALLED:
            left = left.replace(name, "").replace(name[0].upper() + name[1:], "")
        if re.search(rf"\b({never})s?\b", left, re.IGNORECASE):
            found.append(text)
    return found


@pytest.mark.parametrize("planted", ['x = "2 peaks in age"', 'f"{n} ridges stand out"', 'title("Centroids")'])
def test_a_planted_synonym_is_found(planted):
    assert other_words(texts_of(planted))


def test_no_text_calls_a_thing_by_another_name():
    # Start says "peak" to those who do not know yet what a mode is; its first sentence tells that it is one.
    on_start = [word for word in GLOSSARY if word.word != "mode"]
    found = {
        path.name: other_words(texts_of(path.read_text()), on_start if path.name == "start.py" else GLOSSARY)
        for path in SOURCES
    }
    assert {name: texts for name, texts in found.items() if texts} == {}
    said = [text for measures in MEASURES.values() for item in measures.values() for text in (item.title, item.words)]
    said += texts_in(tomllib.loads((ROOT / "assets/paper_words.toml").read_text()))
    said += [path.read_text() for path in (ROOT / "assets/templates").glob("*.*")]
    assert other_words(said) == []


@pytest.mark.parametrize(("page", "kind"), OF_ONE_KIND.items())
def test_a_picture_of_one_kind_has_its_own_word_only(page, kind):
    own = {word.word for word in GLOSSARY if word.kind == kind}
    others = {word.word for word in GLOSSARY if word.kind not in ("", kind)} - {"class"} - own
    texts = texts_of((ROOT / f"dpgrams_core/figures/{page}.py").read_text())
    pattern = re.compile(rf"\b({'|'.join(others)})(e?s)?\b")
    assert [text for text in texts if pattern.search(text)] == []


def test_the_glossary_is_short_and_whole():
    assert len(GLOSSARY) == 9
    assert {word.word: word.meaning for word in GLOSSARY} == MEANINGS  # what a page says where one points at the word
    assert all(word.meaning.endswith(".") and word.kind in ("", *MEASURES) for word in GLOSSARY)
    assert {word.kind for word in GLOSSARY} == {"", *MEASURES}


@pytest.mark.parametrize(("question", "explained"), [("Look for modes?", True), ("What does it mean?", False)])
def test_the_question_of_a_page_explains_its_words_to_who_points_at_it(question, explained):
    def page(question):
        from pages._ui import layout  # a script of its own

        layout.open_page(question, "pages/modes.py")

    app = AppTest.from_function(page, kwargs={"question": question}).run()
    assert (MEANINGS["mode"] in app.title[0].proto.help) == explained
