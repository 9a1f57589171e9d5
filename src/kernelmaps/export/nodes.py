"""Nodes of a model file: from objects to nodes, and back, each entry checked before it is set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import numpy as np

from .._util.schema import boolean, check_entries, number
from ..engine.spec import Spec, spec_from_file
from ..exceptions import FileFormatError
from .classes import (
    NAMED_KERNELS,
    PREDICTORS,
    SKLEARN,
    SPEC_ENTRIES,
    check_sklearn,
    is_map,
    listed_class,
    state_of,
)

_WRONG = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)


def encode(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    """The node of a value; `where` is its path, for messages and for the names of arrays."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) and not isinstance(value, np.str_):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        return _encode_array(value, where, arrays)
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
            "stores arrays and the maps and models of kernelmaps. Use joblib for anything else."
        )
    node: dict[str, Any] = {"$": "object", "class": name}
    if isinstance(value, Spec):
        state = {item: getattr(value, item) for item in SPEC_ENTRIES}
    elif (stated := state_of(type(value))) is not None:
        node["version"] = stated.version
        saved = getattr(value, "_saved", None)
        state = stated.entries_of(value) if saved is None else saved()
    else:  # a kernel: its parameters
        parameters = fields(value) if is_dataclass(value) else ()
        state = {item.name: getattr(value, item.name) for item in parameters}
    if hasattr(value, "get_params"):
        params = value.get_params(deep=False)
        if isinstance(params.get("random_state"), np.random.Generator | np.random.RandomState):
            params["random_state"] = None  # what its numbers gave is in the fitted state
        node["params"] = _entries(params, where, arrays)
    return {**node, "state": _entries(state, where, arrays)}


def _entries(values: Mapping[str, Any], where: str, arrays: dict[str, np.ndarray]) -> Any:
    return {key: encode(item, f"{where}.{key}", arrays) for key, item in values.items()}


def _encode_kernel(kernel: Any) -> Any:
    node = {"$": "kernel", "name": kernel.name, "form": type(kernel).__name__}
    if node["form"] == "HomogeneousKernel":
        node |= {"gamma": kernel.gamma, "signed": kernel.signed}
    return node


class Reader:
    """Builds the objects of one file; raises FileFormatError and nothing else.

    Every array is used once: what two entries share in a file would be one array that two objects
    change, or as many copies as there are references.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.used: set[str] = set()
        self.to_predict = False

    def read(self, node: Any) -> Any:
        """The value of a node; the container has bounded how deep nodes are nested."""
        if isinstance(node, list):
            return [self.read(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$" not in node:
            return {key: self.read(item) for key, item in node.items()}
        kind = node["$"]
        if not isinstance(kind, str) or kind not in self._KINDS:
            raise FileFormatError(
                f"the file holds {kind!r:.60} values, which this kernelmaps does not know."
            )
        with _refuse_malformed(kind):
            return self._KINDS[kind](self, node)

    def read_to_predict(self, node: Any) -> Any:
        """The model of a node; without its estimator where its predictions need none.

        What cannot be read so is read with the estimator, which knows more, or refuses it.
        """
        is_fitted = isinstance(node, dict) and node.get("$") == "object" and node.get("state")
        name = node.get("class") if is_fitted else None
        entry = PREDICTORS.get(str(name))
        if entry is None:
            return self.read(node)
        self.to_predict = True
        try:
            with _refuse_malformed("object"):
                return self.read(node["state"].get(entry) or _predicting_node(entry, node))
        except FileFormatError:
            return Reader(self.arrays).read(node)

    def _array(self, node: Any) -> np.ndarray:
        key = node["name"]
        if key in self.used:
            raise ValueError(f"two entries refer to the array {key!r}")
        self.used.add(key)
        return self.arrays[key]

    def _read_array(self, node: Any) -> Any:
        array = self._array(node)
        return array[()] if array.ndim == 0 else array.copy()  # files give read-only views

    def _read_strings(self, node: Any) -> np.ndarray:
        items, shape = node["items"], node["shape"]
        if not all(isinstance(item, str) for item in items):
            raise TypeError("strings must be strings")
        if node["form"] == "object":
            return np.array(items, dtype=object).reshape(shape)
        # All strings of such an array take as much room as the longest.
        longest = max((len(item) for item in items), default=0)
        if len(items) * longest > 64 * sum(len(item) for item in items) + 2**20:
            raise ValueError("strings of very different lengths")
        return np.array(items, dtype=str).reshape(shape)

    def _read_kernel(self, node: Any) -> Any:
        from ..kernels import Additive, HomogeneousKernel, get
        from ..kernels.registry import KNOWN

        if not isinstance(node["name"], str) or node["form"] not in NAMED_KERNELS:
            raise TypeError("a kernel has a name and a known form")
        missing = _MissingFunction(node["name"])
        if node["form"] == "Additive":
            return Additive(missing, name=node["name"])
        changes = {"gamma": node["gamma"], "signed": node["signed"]}
        check_entries(changes, {"gamma": number(above=0), "signed": boolean}, {}, "kernel")
        builtin = get(node["name"]) if node["name"] in KNOWN else None
        if isinstance(builtin, HomogeneousKernel):
            return builtin.replace(**changes)
        return HomogeneousKernel(node["name"], missing, component_function=missing, **changes)

    def _read_slice(self, node: Any) -> slice:
        ends = node["ends"]
        if len(ends) != 3 or not all(end is None or type(end) is int for end in ends):
            raise TypeError("the ends of a slice must be whole numbers")
        return slice(*ends)

    def _read_object(self, node: Any) -> Any:
        name = node["class"]
        if self.to_predict and is_map(name):
            node = _predicting_node("SavedMap", node)
        cls: Any = listed_class(node["class"]) if isinstance(name, str) else None
        if cls is None:
            raise FileFormatError(
                f"the file holds a {name!r:.60}, which this version of kernelmaps does not know. "
                "Upgrade it, import the plug-in that registers it, or fit and save the model again."
            )
        if not isinstance(node["state"], dict):
            raise TypeError("the entries of an object must be a dictionary")
        if cls is Spec:
            return self._read_spec(node["state"])
        stated = state_of(cls)
        state = {key: self.read(item) for key, item in node["state"].items()}
        if stated is None:  # a kernel, which checks its parameters itself
            return cls(**state)
        version = node.get("version")
        if type(version) is not int or version > stated.version:
            raise FileFormatError(
                f"the file's {cls.__name__} has version {version!r:.20}; this kernelmaps reads up "
                f"to {stated.version}. Upgrade kernelmaps to read it."
            )
        value = self._new(cls, node)
        try:
            stated.restore(value, state)
            if cls.__name__ in SKLEARN:
                check_sklearn(value)
            elif hasattr(value, "_check_state"):
                value._check_state()
        except _WRONG as error:
            raise FileFormatError(
                f"the file's {node['class']} is not usable: {error}. Write the file again."
            ) from error
        return value

    def _read_spec(self, state: dict[str, Any]) -> Any:
        if set(state) != set(SPEC_ENTRIES):
            raise KeyError("the entries of a spec are family, arrays, numbers and parts")
        # Read-only views as they are: a spec neither changes its arrays nor copies such ones.
        arrays = {key: self._array(item) for key, item in state["arrays"].items()}
        numbers, parts = self.read(state["numbers"]), self.read(state["parts"])
        if not isinstance(parts, tuple) or not all(isinstance(item, Spec) for item in parts):
            raise TypeError("the parts of a spec must be specs")
        return spec_from_file(state["family"], arrays, numbers, parts)

    def _new(self, cls: Any, node: Any) -> Any:
        """An instance with the file's parameters and nothing else."""
        if not hasattr(cls, "_get_param_names"):
            return object.__new__(cls)
        params = {key: self.read(item) for key, item in node["params"].items()}
        unknown = sorted(set(params) - set(cls._get_param_names()))
        if unknown:
            raise FileFormatError(
                f"the file's {cls.__name__} has the parameters {unknown}, which this version of "
                "kernelmaps does not know. Upgrade it, or fit and save the model again."
            )
        return cls(**params)  # parameters that came later keep their defaults

    _KINDS: ClassVar[dict[str, Any]] = {
        "array": _read_array,
        "strings": _read_strings,
        "kernel": _read_kernel,
        "object": _read_object,
        "tuple": lambda self, node: tuple(self.read(node["items"])),
        "dict": lambda self, node: {self.read(k): self.read(v) for k, v in node["items"]},
        "slice": _read_slice,
    }


def _predicting_node(name: str, node: Any) -> dict[str, Any]:
    """The node of an estimator as that of what predicts in its place, from the same entries."""
    stated: Any = state_of(listed_class(name))
    entries = {**node["params"], **node["state"], "estimator": node["class"]}
    entries["_class_name"] = node["class"]
    entries["_parameters"] = {"$": "tuple", "items": list(node["params"])}
    state = {key: entries[key] for key in (*stated.required, *stated.allowed) if key in entries}
    return {"$": "object", "class": name, "version": node["version"], "state": state}


@contextmanager
def _refuse_malformed(kind: str) -> Iterator[None]:
    """Errors of a node that is not as it should be, as one kind."""
    try:
        yield
    except FileFormatError:
        raise
    except _WRONG as error:
        raise FileFormatError(f"the file has a malformed {kind!r} entry: {error!r}") from error


class _MissingFunction:
    """Placeholder for a user's kernel function, which is code and therefore not in the file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        raise ValueError(
            f"the function of the kernel {self.name!r} is code, and so not part of the model file. "
            "The map itself is complete; set `kernel` to the function again to fit or to measure."
        )
