"""A colour stands in one file: pictures, pages, style sheets, reports and Streamlit's own theme take it from there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dpgrams_core.figures import style
from dpgrams_core.model.places import ASSETS

ROOT = Path(__file__).parents[3]
COLOUR = re.compile(r"#[0-9A-Fa-f]{6}\b|#[0-9A-Fa-f]{3}\b(?=[\"';])|rgba?\(\s*\d|hsla?\(|\"white\"|\"black\"|: white\b")
SOURCES = [
    path
    for place, pattern in (
        ("dpgrams_core", "**/*.py"),
        ("pages", "**/*.py"),
        ("assets", "*.css"),
        ("assets/templates", "*.*"),
    )
    for path in (ROOT / place).glob(pattern)
    if path != Path(style.__file__)
]
STREAMLIT = {
    "primaryColor": "primary",
    "backgroundColor": "background",
    "secondaryBackgroundColor": "secondary_background",
    "textColor": "text",
}


def colours_in(text):
    """Every colour that a text names, without the examples in docstrings."""
    return COLOUR.findall("\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">>>")))


@pytest.mark.parametrize(
    "planted", ['x = "#E36C0A"', 'line = {"color": "white"}', "fill = 'rgba(1, 2, 3, 0.5)'", "b { color: white; }"]
)
def test_a_planted_colour_is_found(planted):
    assert colours_in(planted)


def test_no_other_file_names_a_colour():
    assert {str(path.relative_to(ROOT)): colours_in(path.read_text()) for path in SOURCES} == {
        str(path.relative_to(ROOT)): [] for path in SOURCES
    }


@pytest.mark.parametrize("name", list(style.THEMES))
def test_streamlit_has_the_same_theme(name):
    written = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"][name]
    assert written == {theirs: getattr(style.THEMES[name], ours) for theirs, ours in STREAMLIT.items()}


def test_the_style_sheet_uses_each_property_and_no_other():
    sheet = "".join(path.read_text() for path in ASSETS.glob("*.css"))
    used = set(re.findall(r"var\((--[\w-]+)\)", sheet))
    assert used == set(re.findall(r"(--[\w-]+):", style.css_properties()))


def test_the_icon_has_our_colours():
    drawn = set(re.findall(r"#[0-9A-Fa-f]{6}", (ASSETS / "icon.svg").read_text()))
    assert drawn == {style.NON_PRIVATE, style.PRIVATE}


def test_a_tint_is_the_colour_with_less_of_it():
    assert style.tint("#0072B2", 0.13) == "rgba(0,114,178,0.13)"
    assert style.tint(style.GREY, 1) == "rgba(128,134,145,1)"


def test_marks_that_coincide_are_told_apart():
    """A cross and a star reach beyond their size, to about 1.4 of it; the circle is seen around both."""
    private, truth, plain = (mark["size"] for mark in (style.PRIVATE_MARK, style.TRUTH_MARK, style.NON_PRIVATE_MARK))
    assert private > 1.5 * max(truth, plain)
