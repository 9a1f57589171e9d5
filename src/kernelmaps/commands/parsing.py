"""What a user types: maps and kernels, and what is asked of the terms of a GAM.

Nothing in such a text is executed.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import kernelmaps

from .._util.display import shortened
from ..kernels.registry import kernel_class
from ..maps.base import FeatureMap
from ..maps.registry import PLUGINS
from ..models.gam.terms import Term

_MOST_NESTED = 50  # levels of an expression for a map; none that makes sense has ten


def parse_map(text: str) -> FeatureMap:
    """A map from text such as ``HomogeneousMap(kernel=chi2, n_components=5)``.

    Settings without a name are the first ones of the map, as in Python: ``SplineMap(8)``. Only
    names of maps, names of kernels and literal values are understood; nothing is executed.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: too deep
        raise _not_a_map(text) from None
    if _depth(node) > _MOST_NESTED:
        raise ValueError(f"{_quoted(text)} is nested more than {_MOST_NESTED} levels deep.")
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    unnamed = [item for item in call.keywords if item.arg is None]  # **settings
    starred = any(isinstance(item, ast.Starred) for item in call.args)
    if not isinstance(call.func, ast.Name) or starred or unnamed:
        raise _not_a_map(text)
    settings = {str(item.arg): _literal(item.value, text) for item in call.keywords}
    return _map_of(call.func.id, [_literal(item, text) for item in call.args], settings)


def _not_a_map(text: str) -> ValueError:
    return ValueError(f"{_quoted(text)} is not a map: write Name or Name(setting=value, …).")


def _quoted(text: str) -> str:
    return repr(shortened(text, 201))


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
        words = f"{_quoted(ast.unparse(node))} in {_quoted(text)} is not a plain value."
        raise ValueError(words) from None


def _kernel_call(node: ast.Call) -> Any:
    """A kernel with its width: ``Gaussian(sigma=2)``."""
    name = node.func.id  # type: ignore[attr-defined]
    cls = kernel_class(name)
    if cls is None:
        raise ValueError(f"{name!r} is neither a map nor a kernel with a width.")
    settings = {str(item.arg): ast.literal_eval(item.value) for item in node.keywords}
    return cls(*map(ast.literal_eval, node.args), **settings)


def _map_of(name: str, unnamed: Sequence[Any], settings: dict[str, Any]) -> FeatureMap:
    modules = kernelmaps._MODULE_OF.items()
    public = [
        getattr(kernelmaps, public_name)
        for public_name, room in modules
        if room.startswith("kernelmaps.maps.")
    ]
    classes = {cls.__name__: cls for cls in public if issubclass(cls, FeatureMap)} | PLUGINS
    if name not in classes:
        raise ValueError(f"there is no map {name!r}; there are {', '.join(classes)}.")
    names: Sequence[str] = classes[name]._get_param_names()
    unknown = sorted(set(settings) - set(names))
    if unknown:
        raise ValueError(f"{name} has no setting {', '.join(unknown)}; it has {', '.join(names)}.")
    signature = inspect.signature(classes[name])
    try:
        signature.bind(*unnamed, **settings)
    except TypeError as error:
        raise ValueError(
            f"{name}: {error}. Write settings with their names, such as "
            f"{next(iter(signature.parameters))}=…; it has {', '.join(names)}."
        ) from None
    return classes[name](*unnamed, **settings)


@dataclass(frozen=True)
class TableOptions:
    """Options as text; None: not asked for.

    Attributes
    ----------
    terms : str
        ``"hour=periodic:24,load=linear,zip=category"``.
    interactions : str
        ``"auto"``, a number of pairs, or ``"hour:load,age:income"``.
    constraints : str
        ``"area=increasing+concave,age=convex"``.
    smoothing : str
        ``"auto"``, a number, or ``"area=100,age=10"``.
    """

    terms: str | None = None
    interactions: str | None = None
    constraints: str | None = None
    smoothing: str | None = None

    def parameters(self, columns: Sequence[str] | None = None) -> dict[str, Any]:
        """Parameters of a GAM; `columns` that were asked for by name are used in any case."""
        terms: dict[str, Any] = dict.fromkeys(columns or (), "auto")
        terms |= {name: _term(name, kind) for name, kind in _items(self.terms, "terms")}
        shapes = _items(self.constraints, "constraints")
        constraints = {name: tuple(shape.split("+")) for name, shape in shapes}
        return {
            "terms": terms or None,
            "interactions": self._interactions(),
            "constraints": constraints or None,
            "smoothing": self._smoothing(),
        }

    def _interactions(self) -> Any:
        text = self.interactions
        if text is None or text == "auto":
            return text
        if text.strip().isdecimal():
            return int(text)
        pairs = [tuple(map(str.strip, item.split(":"))) for item in text.split(",") if item.strip()]
        if not pairs or any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise ValueError(
                "--interactions must be auto, a number of pairs, or pairs of columns such as "
                f"hour:load,age:income; got {text!r}."
            )
        return pairs

    def _smoothing(self) -> Any:
        text = self.smoothing
        if text is None or text == "auto":
            return "auto"
        if "=" in text:
            return {name: _smoothing_parameter(value) for name, value in _items(text, "smoothing")}
        return _smoothing_parameter(text)


def _items(text: str | None, option: str) -> list[tuple[str, str]]:
    """Names and values between commas: ``a=b,c=d``."""
    items = []
    for item in (text or "").split(","):
        name, equals, value = (text_part.strip() for text_part in item.rpartition("="))
        if not item.strip():
            continue
        if not (equals and name and value):
            raise ValueError(f"--{option} must be COLUMN=VALUE with commas between; got {text!r}.")
        items.append((name, value))
    return items


def _term(name: str, text: str) -> Term | str | None:
    """``linear``, ``trend``, ``periodic:24``, or ``none`` to leave the column out."""
    kind, _, period = text.partition(":")
    if not period:
        return None if text == "none" else kind
    try:
        return Term(name, kind, period=float(period))
    except ValueError:
        raise ValueError(f"--terms: the period of {name!r} is not a number: {period!r}.") from None


def _smoothing_parameter(text: str) -> Any:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--smoothing must be auto or numbers, got {text!r}.") from None
