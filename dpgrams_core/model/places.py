"""Where the files are that come with the code: in a checkout beside the engine, in an installed package inside it."""

from __future__ import annotations

from pathlib import Path

ENGINE = Path(__file__).parents[1]
_INSTALLED = ENGINE / "_dashboard"  # where the wheel puts app.py, pages, assets and .streamlit (pyproject.toml)
DASHBOARD = _INSTALLED if _INSTALLED.is_dir() else ENGINE.parent
APP = DASHBOARD / "app.py"
ASSETS = DASHBOARD / "assets"


def place_of(path: Path) -> str | None:
    """A file of ours by its name from the top, as a log tells it; None for a file of anybody else's."""
    ours = path.is_relative_to(ENGINE) or path.is_relative_to(DASHBOARD)
    if not ours or ".venv" in path.relative_to(ENGINE.parent).parts:
        return None
    return path.relative_to(ENGINE.parent).as_posix()
