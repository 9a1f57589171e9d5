"""What tests read in the library's files: each file is parsed once for all of them."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Function(NamedTuple):
    """A function of a file, methods and inner ones included."""

    name: str
    first: int
    last: int


class Facts(NamedTuple):
    """Imports as (level, module, names) and functions of a file, anywhere in it."""

    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    functions: tuple[Function, ...]


@cache
def facts_of(path: Path) -> Facts:
    """The facts of a file, which are kept: a tree would be half a megabyte."""
    return facts(path.read_text(encoding="utf-8"))


def facts(source: str) -> Facts:
    """The facts of some code."""
    imports, functions = [], []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            imports.append((node.level, node.module or "", names))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            last = node.end_lineno or node.lineno
            functions.append(Function(node.name, node.lineno, last))
    return Facts(tuple(imports), tuple(functions))
