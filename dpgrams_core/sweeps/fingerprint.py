"""Which engine made a number: results of two engines must not be mixed in one table."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STARTS = (f"{ROOT.name}.sweeps.cell", f"{ROOT.name}.own_data.twin")  # a run, and records drawn from a release
LIBRARIES = ("numpy", "scipy", "scikit-learn", "statsmodels", "diffprivlib", "dp-accounting")


@cache
def engine_fingerprint() -> str:
    """Ten letters that change with the code that a run can reach and with its libraries, and not with words.

    Since the second form of it ("2:" below) a docstring, a sentence, a type or another place of the same code gives
    the same letters: whoever keeps a file of results must not lose it to them.

    >>> len(engine_fingerprint())
    10
    """
    libraries = [f"{name}={version(name)}" for name in LIBRARIES]
    return fingerprint_of(reached(*STARTS).values(), libraries)


def fingerprint_of(trees: Iterable[ast.Module], libraries: Iterable[str] = ()) -> str:
    """The same for any code, which is used up: its statements in any files and order, less what changes no number.

    >>> one = fingerprint_of([ast.parse("def area(r): return 3 * r")])
    >>> one == fingerprint_of([ast.parse("import math"), ast.parse("def area(r: float): return 3 * r  # in words")])
    True
    >>> one == fingerprint_of([ast.parse("def area(r): return 4 * r")])
    False
    """
    said = sorted(ast.dump(node) for tree in trees for node in _WITHOUT_WORDS.visit(tree).body)
    return hashlib.sha256("\n".join(("2:", *said, *libraries)).encode()).hexdigest()[:10]


class _WithoutWords(ast.NodeTransformer):
    """Takes out imports, texts that stand alone (docstrings) and types, and makes every sentence the same."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit(self, node: ast.AST) -> Any:
        return None if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)) else super().visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("…") if isinstance(node.value, str) and " " in node.value else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        sentence = any(isinstance(part, ast.Constant) and " " in str(part.value) for part in node.values)
        return ast.Constant("…") if sentence else self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


_WITHOUT_WORDS = _WithoutWords()


def reached(*modules: str) -> dict[Path, ast.Module]:
    """The files of this package that some modules import, and those that they import, and so on."""
    found: dict[Path, ast.Module] = {}
    waiting = list(modules)
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
