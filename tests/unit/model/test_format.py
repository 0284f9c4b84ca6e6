"""Numbers are written by one module: no page, picture or report has a format of its own."""

from __future__ import annotations

import ast
import re

import pytest

from tests.places import ROOT

PLACES = ("pages", "dpgrams_core/figures", "dpgrams_core/exports")
# What is no text on the screen: a colour, a style, an address, the name of a step within its own file.
NOT_SHOWN = {
    "dpgrams_core/figures/style.py": 1,
    "pages/_ui/layout.py": 1,
    "pages/_ui/state.py": 3,
    "pages/_ui/controls.py": 1,
    "pages/_ui/tradeoff/settings.py": 1,
    "pages/_ui/paper/words.py": 1,
}


def own_formats(source: str) -> list[str]:
    """Formats of f-strings and of str.format that round a number; whole numbers with commas have but one form."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            spec = ast.unparse(node.format_spec)
        elif isinstance(node, ast.Attribute) and node.attr == "format" and isinstance(node.value, ast.Constant):
            spec = str(node.value.value)
        else:
            continue
        if re.search(r"[efgEG%]\}?['\"]*$", spec) and not spec.endswith("%M'"):
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("place", PLACES)
def test_numbers_are_written_by_one_module(place):
    files = {path: own_formats(path.read_text()) for path in sorted((ROOT / place).rglob("*.py"))}
    assert len(files) > 5
    found = {str(path.relative_to(ROOT)): formats for path, formats in files.items() if formats}
    assert {name: formats for name, formats in found.items() if len(formats) > NOT_SHOWN.get(name, 0)} == {}


def test_a_format_of_ones_own_is_caught():
    caught = own_formats('a = f"{x:.3g} of {n:,}"; b = "{:g}".format; c = f"{100 * x:.0f} %"; d = "%{x:.2f}"')
    assert len(caught) == 3
