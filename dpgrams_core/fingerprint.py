"""Which engine made a number: results of two engines must not be mixed in one table."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent
START = f"{ROOT.name}.cells"  # a run begins there
LIBRARIES = ("numpy", "scipy", "scikit-learn", "statsmodels", "diffprivlib", "dp-accounting")


@cache
def engine_fingerprint() -> str:
    """Ten letters that change with the code that a run can reach (not with its comments) and with its libraries.

    >>> len(engine_fingerprint())
    10
    """
    digest = hashlib.sha256()
    for path, tree in sorted(reached(START).items()):
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(ast.dump(tree).encode())
    for name in LIBRARIES:
        digest.update(f"{name}={version(name)}".encode())
    return digest.hexdigest()[:10]


def reached(module: str) -> dict[Path, ast.Module]:
    """The files of this package that a module imports, and those that they import, and so on."""
    found: dict[Path, ast.Module] = {}
    waiting = [module]
    while waiting:
        path = _file_of(waiting.pop())
        if path is not None and path not in found:
            found[path] = ast.parse(path.read_text(encoding="utf-8"))
            waiting += _imported(found[path])
    return found


def _file_of(module: str) -> Path | None:
    """The file of a module; not that of the package itself, which only gathers public names."""
    first, *rest = module.split(".")
    if first != ROOT.name or not rest:
        return None
    place = ROOT.joinpath(*rest)
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
