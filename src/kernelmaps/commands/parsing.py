"""Maps and kernels from the text that a user types; nothing in it is executed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import kernelmaps

from ..kernels.registry import kernel_class
from ..maps.base import FeatureMap
from ..maps.registry import PLUGINS

_MOST_NESTED = 50  # levels of an expression for a map; none that makes sense has ten


def parse_map(text: str) -> FeatureMap:
    """A map from text such as ``HomogeneousMap(kernel=chi2, n_components=5)``.

    Only names of maps, names of kernels and literal values are understood; nothing is executed.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: too deep
        raise _not_a_map(text) from None
    if _depth(node) > _MOST_NESTED:
        raise ValueError(f"{_short(text)} is nested more than {_MOST_NESTED} levels deep.")
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    unnamed = [item for item in call.keywords if item.arg is None]  # **settings
    if not isinstance(call.func, ast.Name) or call.args or unnamed:
        raise _not_a_map(text)
    settings = {str(item.arg): _literal(item.value, text) for item in call.keywords}
    return _map_class(call.func.id)(**_known(call.func.id, settings))


def _not_a_map(text: str) -> ValueError:
    return ValueError(f"{_short(text)} is not a map: write Name or Name(setting=value, …).")


def _short(text: str) -> str:
    """Text in quotes, its end left out where it is long."""
    return repr(text if len(text) <= 200 else f"{text[:200]}…")


def _depth(node: ast.AST) -> int:
    """Levels of an expression; counted without recursion, which deep ones would exhaust."""
    level, depth = [node], 0
    while level:
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
        depth += 1
    return depth


def _literal(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name):  # kernel=chi2
        return node.id
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id.endswith("Map"):
            return parse_map(ast.unparse(node))
        return _kernel_call(node)
    try:
        return ast.literal_eval(node)
    except ValueError:
        words = f"{_short(ast.unparse(node))} in {_short(text)} is not a plain value."
        raise ValueError(words) from None


def _kernel_call(node: ast.Call) -> Any:
    """A kernel with its width: ``Gaussian(sigma=2)``."""
    name = node.func.id  # type: ignore[attr-defined]
    cls = kernel_class(name)
    if cls is None:
        raise ValueError(f"{name!r} is neither a map nor a kernel with a width.")
    settings = {str(item.arg): ast.literal_eval(item.value) for item in node.keywords}
    return cls(*map(ast.literal_eval, node.args), **settings)


def _map_class(name: str) -> Any:
    known = [
        public
        for public, module in kernelmaps._MODULE_OF.items()
        if module.startswith("kernelmaps.maps.")
        and issubclass(getattr(kernelmaps, public), FeatureMap)
    ]
    if name in PLUGINS:
        return PLUGINS[name]
    if name not in known:
        raise ValueError(f"there is no map {name!r}; there are {', '.join([*known, *PLUGINS])}.")
    return getattr(kernelmaps, name)


def _known(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    names: Sequence[str] = _map_class(name)._get_param_names()
    unknown = sorted(set(settings) - set(names))
    if unknown:
        raise ValueError(f"{name} has no setting {', '.join(unknown)}; it has {', '.join(names)}.")
    return settings
