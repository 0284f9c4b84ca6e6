"""A deck as one HTML file that plays from disk without a server: the pictures' handles move as on the pages.

The scripts, styles and frames of the pages stand in the file, under the report's content policy: nothing is fetched.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from dpgrams_core.exports.deck import Scene
from dpgrams_core.exports.report import FONT, TEMPLATES
from dpgrams_core.figures.style import THEMES, css_properties
from dpgrams_core.model.places import ASSETS

NOTHING_SHOWN = "Nothing was computed for this scene when the deck was saved; the dashboard shows it."
# What the ε handle of a picture is told, and its frames (figures/frames.py); or the first page and its arrays.
Handled = tuple[dict[str, Any], bytes]


@dataclass(frozen=True, eq=False)
class Slide:
    """What a projector showed of a scene: its line (our own HTML), and its pictures."""

    scene: Scene
    line: str
    pictures: Sequence[go.Figure | Handled]


def deck_html(slides: Sequence[Slide]) -> str:
    """All slides in one file."""
    said = [_content(slide) for slide in slides]
    needs_plotly = any("figure" in picture for scene in said for picture in scene["pictures"])
    names = {"handle": "handle", "start": "start", "bar": "presenter"}  # of the pages' components, and their files
    return TEMPLATES.get_template("deck.html").render(
        title=slides[0].scene.heading,
        style=Markup("\n".join([css_properties(), _theme(), _asset("presenter.css"), _asset("templates/deck.css")])),
        plotly=Markup(get_plotlyjs()) if needs_plotly else "",
        templates=[(name, Markup(_inside(file))) for name, file in names.items()],
        deck=Markup(json.dumps(said, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")),
        script=Markup("".join(_module(name, file) for name, file in names.items()) + _asset("components/player.js")),
    )


def _content(slide: Slide) -> dict[str, Any]:
    own = any(isinstance(one, tuple) for one in slide.pictures)  # a picture with a handle has a line of its own
    line = "" if own else slide.line or ("" if slide.pictures else NOTHING_SHOWN)
    pictures = [_picture(one) for one in slide.pictures]
    return {"title": slide.scene.heading, "notes": slide.scene.notes, "line": line, "pictures": pictures}


def _picture(shown: go.Figure | Handled) -> dict[str, Any]:
    if isinstance(shown, tuple):
        return {"state": shown[0], "pack": base64.b64encode(shown[1]).decode()}
    figure = go.Figure(shown.to_dict())  # as large as its place; player.js gives it the ground of its theme
    figure.update_layout(template="plotly_white", font_family=FONT, height=None, width=None)
    return {"figure": json.loads(figure.to_json())}


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _inside(name: str) -> str:
    return f"<style>{_asset(f'components/{name}.css')}</style>{_asset(f'components/{name}.html')}"


def _module(name: str, file: str) -> str:
    """A component's module as a constant: a file from disk may not import another."""
    begins, source = "export default function", _asset(f"components/{file}.js")
    assert source.count(begins) == 1
    return f"const {name} = (() => {{\n{source.replace(begins, 'function exported')}\nreturn exported;\n}})();\n"


def _theme() -> str:
    """What Streamlit gives a component of its theme."""

    def root(name: str) -> str:
        theme = THEMES[name]
        colours = {"text": theme.text, "background": theme.background, "primary": theme.primary}
        colours |= {"secondary-background": theme.secondary_background, "border": f"{theme.text}33"}
        return ":root { " + " ".join(f"--st-{key}-color: {colour};" for key, colour in colours.items()) + " }"

    dark = f"@media (prefers-color-scheme: dark) {{ {root('dark')} }}"
    return f":root {{ --st-font: {FONT}; color-scheme: light dark; }}\n{root('light')}\n{dark}"
