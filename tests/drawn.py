"""What stands in a figure, for tests of pictures."""

from __future__ import annotations


def trace(figure, name):
    found = [item for item in figure.data if item.name == name]
    assert found, f"no trace called {name}"
    return found[0]
