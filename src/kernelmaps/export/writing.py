"""From objects to the nodes of a model file, and the arrays beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from .._util.sparse import is_sparse
from ..engine.spec import Spec
from .classes import NAMED_KERNELS, SPEC_ENTRIES, listed_class, state_of


def encode(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    """The node of a value; `where` is its path, for messages and for the names of arrays."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) and not isinstance(value, np.str_):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        return _encode_array(value, where, arrays)
    if is_sparse(value):
        return _encode_csr(value.tocsr(), where, arrays)
    if isinstance(value, list | tuple):
        items = [encode(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"$": "tuple", "items": items}
    if isinstance(value, slice):
        return {"$": "slice", "ends": [value.start, value.stop, value.step]}
    if isinstance(value, Mapping):
        return _encode_mapping(value, where, arrays)
    if type(value).__name__ in NAMED_KERNELS:
        return _encode_kernel(value)
    return _encode_object(value, where, arrays)


def _encode_array(value: np.ndarray, where: str, arrays: dict[str, np.ndarray]) -> Any:
    if value.dtype.kind in "biuf":
        arrays[where] = value
        return {"$": "array", "name": where}
    strings = value.ravel().tolist()
    if all(isinstance(item, str) for item in strings):
        form = "object" if value.dtype.kind == "O" else "str"
        return {"$": "strings", "items": strings, "shape": list(value.shape), "form": form}
    raise TypeError(f"{where} is an array of {value.dtype}, which a model file cannot hold.")


def _encode_csr(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    for name in ("data", "indices", "indptr"):
        arrays[f"{where}.{name}"] = getattr(value, name)
    return {"$": "csr", "name": where, "shape": list(value.shape)}


def _encode_mapping(value: Mapping, where: str, arrays: dict[str, np.ndarray]) -> Any:
    items = {k: encode(v, f"{where}[{k!r}]", arrays) for k, v in value.items()}
    if all(isinstance(key, str) and key != "$" for key in items):
        return items
    pairs = [[encode(k, f"{where} (key)", arrays), v] for k, v in items.items()]
    return {"$": "dict", "items": pairs}


def _encode_object(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    name = type(value).__name__
    if listed_class(name) is not type(value):
        raise TypeError(
            f"{where} is a {type(value).__module__}.{name}, which a model file cannot hold: it "
            "stores numbers, strings, arrays and the maps and models of kernelmaps. Use joblib "
            "for anything else."
        )
    node: dict[str, Any] = {"$": "object", "class": name}
    if isinstance(value, Spec):
        state = {item: getattr(value, item) for item in SPEC_ENTRIES}
    elif (stated := state_of(type(value))) is not None:
        node["version"] = stated.version
        saved = getattr(value, "_saved", None)
        state = stated.of(value) if saved is None else saved()
    else:  # a kernel: its parameters
        parameters = fields(value) if is_dataclass(value) else ()
        state = {item.name: getattr(value, item.name) for item in parameters}
    if hasattr(value, "get_params"):
        node["params"] = _entries(value.get_params(deep=False), where, arrays)
    return {**node, "state": _entries(state, where, arrays)}


def _entries(values: Mapping[str, Any], where: str, arrays: dict[str, np.ndarray]) -> Any:
    return {key: encode(item, f"{where}.{key}", arrays) for key, item in values.items()}


def _encode_kernel(kernel: Any) -> Any:
    node = {"$": "kernel", "name": kernel.name, "form": type(kernel).__name__}
    if node["form"] == "HomogeneousKernel":
        node |= {"gamma": kernel.gamma, "signed": kernel.signed}
    return node
