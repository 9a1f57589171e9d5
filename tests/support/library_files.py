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
    arguments: tuple[str, ...]


class Facts(NamedTuple):
    """Imports as (level, module, names), functions and strings of a file, anywhere in it."""

    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    functions: tuple[Function, ...]
    strings: tuple[str, ...]


@cache
def facts_of(path: Path) -> Facts:
    """The facts of a file, which are kept: a tree would be half a megabyte."""
    return facts(path.read_text(encoding="utf-8"))


def facts(source: str) -> Facts:
    """The facts of some code."""
    imports, functions, strings = [], [], []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            imports.append((node.level, node.module or "", names))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = tuple(item.arg for item in node.args.args)
            last = node.end_lineno or node.lineno
            functions.append(Function(node.name, node.lineno, last, arguments))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append(node.value)
    return Facts(tuple(imports), tuple(functions), tuple(strings))
