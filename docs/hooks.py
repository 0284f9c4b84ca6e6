"""What the handbook takes from the project: the proof that the app shows, and the words of the command line.

Formulas become MathML, which browsers draw by themselves: nothing has to be loaded from elsewhere.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from griffe import Extension, Object
from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
TAKEN = {"icon.svg": "assets/icon.svg"}
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Take files of the project into the handbook as they stand."""
    proof = {f"proof/{path.name}": f"assets/proof/{path.name}" for path in (ROOT / "assets/proof").glob("*.md")}
    for name, source in {**TAKEN, **proof}.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, "colours.css", content=colours()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put what the engine says about itself in its places."""
    place = "{{ commands }}"
    return markdown.replace(place, commands()) if place in markdown else markdown


def on_page_content(content: str, **_: Any) -> str:
    """Formulas as MathML."""
    return FORMULA.sub(lambda found: mathml(html.unescape(found[3]), display=found[2] == "["), content)


class WordsAfterNames(Extension):
    """Our docstrings say what a parameter is behind its name; its type stands in the signature."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Put the words below the name, where they are not taken for a type."""
        if obj.docstring:
            below = re.sub(r"^(\*{0,2}\w+(?:, \w+)*) : (.*)$", r"\1\n    \2", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r":\w+:`", "`", below)


def mathml(formula: str, *, display: bool) -> str:
    """One formula, with its TeX for whoever cannot see it."""
    known = formula.replace("{aligned}", "{align*}").replace(r"\mathcal H", "ℋ")
    drawn = convert(known, display="block" if display else "inline")
    return drawn.replace("<math ", f'<math alttext="{html.escape(" ".join(formula.split()))}" ', 1)


def colours() -> str:
    """The accent of the dashboard's light and dark theme."""
    from dpgrams_core.figures.style import THEMES

    names = {"default": "light", "slate": "dark"}
    return "\n".join(
        f'[data-md-color-scheme="{theirs}"] {{ --md-primary-fg-color: {THEMES[ours].primary}; '
        f"--md-accent-fg-color: {THEMES[ours].primary}; }}"
        for theirs, ours in names.items()
    )


def commands() -> str:
    """What ``dpgrams COMMAND --help`` says, for every command."""
    from dpgrams_core.cli.main import COMMANDS, parser

    chapters = next(action.choices for action in parser()._actions if action.dest == "command")
    return "\n".join(
        f"## dpgrams {name}\n\n```text\n{chapter.format_help()}```\n"
        for name, chapter in chapters.items()
        if name in COMMANDS
    )
