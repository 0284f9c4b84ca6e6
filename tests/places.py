"""Where things are, for tests in any room."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
