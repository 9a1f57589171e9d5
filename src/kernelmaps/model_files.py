"""Model files (``.kmap``): fitted maps and models as JSON and plain arrays, without pickle.

A model file is a container of :mod:`kernelmaps.storage` of kind ``"model"``. Its header holds a
tree of JSON values, the *nodes*; arrays are kept beside it and referred to by name. A node with a
``"$"`` entry stands for something that JSON does not have:

=============  ====================================================================
``"$"``        what it stands for
=============  ====================================================================
``array``      a numeric array, by its name in the container
``strings``    an array of strings (class names, feature names)
``csr``        a sparse matrix: its three arrays and its shape
``tuple``      a tuple; JSON has lists only
``dict``       a dictionary whose keys are not all strings
``slice``      a slice
``kernel``     a kernel that has a name
``object``     an instance of a known class: its name, parameters and stated entries
=============  ====================================================================

What an object saves is stated by its class (`_state`, see :class:`kernelmaps.schema.State`), with a
version of its own; attributes that are not stated stay in the process. Reading never imports or
calls what a file names: a class is looked up in the lists of this module, its parameters are those
of its constructor, and its entries are checked, one by one and against each other, before they are
set. What is not listed is refused, when writing as when reading. Entries that a reader does not
know are ignored in the header and refused in nodes, so that a later version may say more about a
file, but never change its meaning unseen.

Format 1 kept all attributes of an object, private ones included. Its maps and streaming models are
still read; its additive models, which held rows of the training data, are refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

import kernelmaps

from . import storage
from .engine.spec import Spec, spec_from_file
from .exceptions import FileFormatError
from .kernels.registry import kernel_class
from .maps.registry import PLUGINS as MAP_PLUGINS
from .schema import (
    Check,
    State,
    anything,
    array,
    boolean,
    check_entries,
    either,
    integer,
    labels,
    names,
    number,
    optional,
    text,
)
from .sparse_rows import check_sparse

__all__ = ["FORMAT_VERSION", "FileInfo", "load", "open_info", "register_class", "save"]

FORMAT_VERSION = 2
"""Version of the nodes; raised only when older readers would misunderstand a file."""

# Short names that files use, and where the class is today: files outlive a move of the code.
_RECORDS = {
    "Spec": "kernelmaps.engine.spec",
    "Certificate": "kernelmaps.certificate",
    "AnchorCertificate": "kernelmaps.maps._anchor_certificate",
    "Moments": "kernelmaps.stats.moments",
    "FoldMoments": "kernelmaps.stats.composite",
    "KernelMoments": "kernelmaps.stats.composite",
    "Features": "kernelmaps.models.streaming.feature_maps",
    "Part": "kernelmaps.models.streaming.feature_maps",
    "_Solution": "kernelmaps.models.streaming.projection",
    "Summary": "kernelmaps.models.additive.summary",
    "Progress": "kernelmaps.models.additive.summary",
    "Codebook": "kernelmaps.models.tables.codebooks",
    "FittedTerm": "kernelmaps.models.tables.model",
    "TableModel": "kernelmaps.models.tables.model",
    "Term": "kernelmaps.models.tables.terms",
    # Kernels without a name of their own; the others are those of `kernelmaps.kernels.register`.
    # They check their parameters when they are made.
    "MapKernel": "kernelmaps.maps.exponential",
    "SignCauchy": "kernelmaps.kernels.signs",
    "Linear": "kernelmaps.kernels.additive",
}
# Parts of scikit-learn that stand before our maps in a pipeline.
_SKLEARN = {
    "Pipeline": "sklearn.pipeline",
    "StandardScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "MaxAbsScaler": "sklearn.preprocessing",
    "Normalizer": "sklearn.preprocessing",
    "LinearSVC": "sklearn.svm",
    "Ridge": "sklearn.linear_model",
    "LogisticRegression": "sklearn.linear_model",
}
_ROOMS_OF_ESTIMATORS = ("kernelmaps.maps.", "kernelmaps.models.")
_PLUGINS: dict[str, type] = {}

_SCALED: dict[str, Check] = {
    "n_features_in_": integer(1),
    "n_samples_seen_": either((integer(), anything)),
}
_PER_FEATURE = array("f8 f4", "features", finite=False)
_LINEAR: dict[str, Check] = {
    "coef_": either((array("f8 f4", "outputs features"), array("f8 f4", "features"))),
    "intercept_": either((array("f8 f4", "outputs"), array("f8 f4", "1"), number())),
    "n_features_in_": integer(1),
}
_LINEAR_MORE: dict[str, Check] = {
    "feature_names_in_": names,
    "n_iter_": anything,
    "solver_": text(),
}
_OF_SKLEARN = {
    "Pipeline": State(),
    "Normalizer": State({"n_features_in_": integer(1)}, {"feature_names_in_": names}),
    "StandardScaler": State(
        {**_SCALED, **{name: optional(_PER_FEATURE) for name in ("mean_", "var_", "scale_")}},
        {"feature_names_in_": names},
    ),
    "MinMaxScaler": State(
        {
            **_SCALED,
            **dict.fromkeys(
                ("min_", "scale_", "data_min_", "data_max_", "data_range_"), _PER_FEATURE
            ),
        },
        {"feature_names_in_": names},
    ),
    "MaxAbsScaler": State(
        {**_SCALED, "max_abs_": _PER_FEATURE, "scale_": _PER_FEATURE}, {"feature_names_in_": names}
    ),
    "LinearSVC": State({**_LINEAR, "classes_": labels}, _LINEAR_MORE),
    "Ridge": State(_LINEAR, _LINEAR_MORE),
    "LogisticRegression": State({**_LINEAR, "classes_": labels}, _LINEAR_MORE),
}
"""What the parts of scikit-learn save: what their predictions need."""


def register_class(cls: type) -> None:
    """Let model files hold instances of a class from outside, such as a model of a plug-in.

    A map is made known by `kernelmaps.maps.register`, which does this, too.

    Parameters
    ----------
    cls : type
        An estimator with a `_state` that says what it saves (a subclass of `FeatureMap` inherits
        one, and extends it by what its own transform needs). Its name must be free.
    """
    if not isinstance(getattr(cls, "_state", None), State):
        raise TypeError(f"{cls.__name__} has no _state that says what it saves.")
    known = _listed(cls.__name__)
    if known is not None and known is not cls:
        raise ValueError(f"the name {cls.__name__!r} is taken by {known.__module__}.")
    _PLUGINS[cls.__name__] = cls


@dataclass(frozen=True)
class FileInfo:
    """What a file says about itself, without building what it holds.

    Attributes
    ----------
    kind : str
        "model" or "spec".
    title : str
        Class of the model, or family of the spec.
    version : str
        Version of kernelmaps that wrote it.
    digest : str
        SHA-256 of the content, which was checked.
    size : int
        Bytes.
    arrays : dict of str to str
        Type and shape of each array.
    details : dict
        Parameters of the model, or numbers of the spec.
    metadata : dict
        What was stored beside the model: names of columns and target, say.
    """

    kind: str
    title: str
    version: str
    digest: str
    size: int
    arrays: dict[str, str]
    details: dict[str, Any]
    metadata: dict[str, Any]


def save(
    model: Any, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write a spec, a map or a fitted model to a ``.kmap`` file, atomically and without pickle.

    Parameters
    ----------
    model : Spec, map, model, or a scikit-learn pipeline of these
        Anything with a `spec` of its own (a `Design`) is stored as that spec.
    path : path
        The file; an existing one is replaced only when the new one is complete.
    metadata : mapping, optional
        Plain JSON values to keep beside the model; :func:`open_info` shows them.

    Raises
    ------
    TypeError
        If the model holds something that plain arrays cannot say, with the name of the attribute.

    Examples
    --------
    >>> import kernelmaps as km, os, tempfile
    >>> chi2_map = km.HomogeneousMap().fit([[0.2, 0.8]])
    >>> path = os.path.join(tempfile.mkdtemp(), "chi2.kmap")
    >>> km.save(chi2_map, path)
    >>> km.load(path).spec_ == chi2_map.spec_
    True
    """
    spec = model if type(model).__name__ == "Spec" else getattr(model, "spec", None)
    if spec is not None:
        spec.save(path)
        return
    arrays: dict[str, np.ndarray] = {}
    node = _encode(model, type(model).__name__, arrays)
    header = {
        "format": FORMAT_VERSION,
        "kernelmaps": kernelmaps.__version__,
        "class": type(model).__name__,
        "model": node,
        "metadata": dict(metadata or {}),
    }
    storage.write(path, "model", header, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Read what :func:`save` wrote: a spec, a map or a model.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Spec, map or model
        The object, ready for use.

    Raises
    ------
    FileFormatError
        If the file is damaged, foreign, from a newer version, or holds a class that this version
        does not know.
    """
    header, arrays = storage.read(path)
    if header["kind"] == "spec":
        return Spec._from_content(header, arrays)
    _check_header(header, path)
    reader = _Reader(arrays, header["format"])
    try:
        return reader.read(header["model"])
    except FileFormatError as error:
        raise FileFormatError(f"{os.fspath(path)!r} cannot be used: {error}") from error


def open_info(path: str | os.PathLike[str]) -> FileInfo:
    """What a ``.kmap`` file holds; its checksum is verified."""
    header, arrays = storage.read(path)
    kind = header["kind"]
    content = {name: value for name, value in header.items() if name != "kind"}
    if kind == "model":
        _check_header(header, path)
        title, node = str(header.get("class", "")), header["model"]
        details = _readable(node.get("params", {})) if isinstance(node, dict) else {}
    else:
        title, details = str(header.get("family", kind)), header.get("numbers", {})
    return FileInfo(
        kind=kind,
        title=title,
        version=str(header.get("kernelmaps", "")),
        digest=storage.digest(kind, content, arrays),
        size=os.path.getsize(path),
        arrays={name: f"{a.dtype} {list(a.shape)}" for name, a in arrays.items()},
        details=details if isinstance(details, dict) else {},
        metadata=_dictionary(header.get("metadata")),
    )


def _check_header(header: Mapping[str, Any], path: Any) -> None:
    if header["kind"] != "model":
        raise FileFormatError(
            f"{os.fspath(path)!r} holds {header['kind']!r}, which is neither a model nor a spec."
        )
    version = header.get("format")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise FileFormatError(f"{os.fspath(path)!r} does not state the version of its format.")
    if "model" not in header:
        raise FileFormatError(f"{os.fspath(path)!r} holds no model.")
    if version > FORMAT_VERSION:
        raise FileFormatError(
            f"{os.fspath(path)!r} is a model file of format {version}, written by kernelmaps "
            f"{header.get('kernelmaps', '?')}; this kernelmaps reads up to format "
            f"{FORMAT_VERSION}. Upgrade kernelmaps to read it."
        )


# ---- from objects to nodes ----------------------------------------------------------------------


def _encode(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    """The node of a value; `where` is its path, for messages and for the names of arrays."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) and not isinstance(value, np.str_):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        return _encode_array(value, where, arrays)
    if sparse.issparse(value):
        return _encode_csr(value.tocsr(), where, arrays)
    if isinstance(value, list):
        return [_encode(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
    if isinstance(value, tuple):
        items = [_encode(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
        return {"$": "tuple", "items": items}
    if isinstance(value, slice):
        return {"$": "slice", "ends": [value.start, value.stop, value.step]}
    if isinstance(value, Mapping):
        return _encode_mapping(value, where, arrays)
    if _is_named_kernel(value):
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
    for part in ("data", "indices", "indptr"):
        arrays[f"{where}.{part}"] = getattr(value, part)
    return {"$": "csr", "name": where, "shape": list(value.shape)}


def _encode_mapping(value: Mapping, where: str, arrays: dict[str, np.ndarray]) -> Any:
    items = {k: _encode(v, f"{where}[{k!r}]", arrays) for k, v in value.items()}
    if all(isinstance(key, str) and key != "$" for key in items):
        return items
    pairs = [[_encode(k, f"{where} (key)", arrays), v] for k, v in items.items()]
    return {"$": "dict", "items": pairs}


def _encode_object(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    name = type(value).__name__
    if _listed(name) is not type(value):
        raise TypeError(
            f"{where} is a {type(value).__module__}.{name}, which a model file cannot hold: it "
            "stores numbers, strings, arrays and the maps and models of kernelmaps. Use joblib "
            "for anything else."
        )
    node: dict[str, Any] = {"$": "object", "class": name}
    if isinstance(value, Spec):
        state = {item: getattr(value, item) for item in _SPEC_ENTRIES}
    elif (stated := _state_of(type(value))) is not None:
        node["version"] = stated.version
        saved = getattr(value, "_saved", None)
        state = stated.of(value) if saved is None else saved()
    else:  # a kernel: its parameters
        state = {item.name: getattr(value, item.name) for item in _fields(type(value))}
    if hasattr(value, "get_params"):
        node["params"] = _entries(value.get_params(deep=False), where, arrays)
    return {**node, "state": _entries(state, where, arrays)}


def _entries(values: Mapping[str, Any], where: str, arrays: dict[str, np.ndarray]) -> Any:
    return {key: _encode(item, f"{where}.{key}", arrays) for key, item in values.items()}


_NAMED_KERNELS = ("HomogeneousKernel", "Additive")


def _is_named_kernel(value: Any) -> bool:
    return type(value).__name__ in _NAMED_KERNELS


def _encode_kernel(kernel: Any) -> Any:
    node = {"$": "kernel", "name": kernel.name, "form": type(kernel).__name__}
    if node["form"] == "HomogeneousKernel":
        node |= {"gamma": kernel.gamma, "signed": kernel.signed}
    return node


# ---- from nodes to objects ----------------------------------------------------------------------

_SPEC_ENTRIES = ("family", "arrays", "numbers", "parts")
_WRONG = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)


class _Reader:
    """Builds the objects of one file; raises FileFormatError and nothing else.

    Every array is used once: what two entries share in a file would be one array that two objects
    change, or as many copies as there are references.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], version: int) -> None:
        self.arrays, self.version = arrays, version
        self.used: set[str] = set()

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
                f"the file holds {kind!r:.60} values, which this version of kernelmaps does not "
                "know."
            )
        try:
            return self._KINDS[kind](self, node)
        except FileFormatError:
            raise
        except _WRONG as error:
            raise FileFormatError(f"the file has a malformed {kind!r} entry: {error!r}") from error

    def _array(self, node: Any, name: str = "name", end: str = "") -> np.ndarray:
        key = f"{node[name]}{end}"
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

    def _read_csr(self, node: Any) -> Any:
        parts = tuple(self._array(node, end=f".{part}") for part in ("data", "indices", "indptr"))
        rows, columns = node["shape"]
        if type(rows) is not int or type(columns) is not int:
            raise TypeError("the shape of a matrix must be whole numbers")
        matrix = sparse.csr_matrix(parts, shape=(rows, columns), copy=True)
        check_sparse(matrix, "the file", node["name"])
        return matrix

    def _read_kernel(self, node: Any) -> Any:
        from .kernels import Additive, HomogeneousKernel, get
        from .kernels.registry import KNOWN

        if not isinstance(node["name"], str) or node["form"] not in _NAMED_KERNELS:
            raise TypeError("a kernel has a name and a known form")
        missing = _MissingFunction(node["name"])
        if node["form"] == "Additive":
            return Additive(missing, name=node["name"])
        changes = {"gamma": node["gamma"], "signed": node["signed"]}
        check_entries(changes, {"gamma": number(above=0), "signed": boolean}, {}, "kernel")
        known = get(node["name"]) if node["name"] in KNOWN else None
        if isinstance(known, HomogeneousKernel):
            return known.replace(**changes)
        return HomogeneousKernel(node["name"], missing, component_function=missing, **changes)

    def _read_dict(self, node: Any) -> dict[Any, Any]:
        return {self.read(key): self.read(value) for key, value in node["items"]}

    def _read_slice(self, node: Any) -> slice:
        ends = node["ends"]
        if len(ends) != 3 or not all(end is None or type(end) is int for end in ends):
            raise TypeError("the ends of a slice must be whole numbers")
        return slice(*ends)

    def _read_object(self, node: Any) -> Any:
        name = node["class"]
        cls = _listed(name) if isinstance(name, str) else None
        if cls is None:
            raise FileFormatError(
                f"the file holds a {name!r:.60}, which this version of kernelmaps does not know. "
                "Upgrade kernelmaps, or import the plug-in that registers it, to read the file."
            )
        if not isinstance(node["state"], dict):
            raise TypeError("the entries of an object must be a dictionary")
        if cls is Spec:
            return self._read_spec(node["state"])
        state = {key: self.read(item) for key, item in node["state"].items()}
        stated = _state_of(cls)
        if stated is None:  # a kernel, which checks its parameters itself
            return cls(**state)
        state = self._current(cls, stated, node, state)
        value = self._new(cls, node)
        try:
            stated.restore(value, state)
            if name in _SKLEARN:
                _check_sklearn(value)
            elif hasattr(value, "_check_state"):
                value._check_state()
        except _WRONG as error:
            raise FileFormatError(
                f"the file's {name} is not usable: {error}. Restore it from a copy or write it "
                "again."
            ) from error
        return value

    def _read_spec(self, state: dict[str, Any]) -> Any:
        if set(state) != set(_SPEC_ENTRIES):
            raise KeyError("the entries of a spec are family, arrays, numbers and parts")
        # Read-only views as they are: a spec neither changes its arrays nor copies such ones.
        arrays = {key: self._array(item) for key, item in state["arrays"].items()}
        numbers, parts = self.read(state["numbers"]), self.read(state["parts"])
        if not isinstance(parts, tuple) or not all(isinstance(part, Spec) for part in parts):
            raise TypeError("the parts of a spec must be specs")
        return spec_from_file(state["family"], arrays, numbers, parts)

    def _current(self, cls: type, stated: State, node: Any, state: dict[str, Any]) -> Any:
        """Entries under today's names; refuses those of a later version."""
        if self.version == 1:
            return _from_format_1(cls, stated, state)
        version = node.get("version")
        if type(version) is not int or version > stated.version:
            raise FileFormatError(
                f"the file's {cls.__name__} has version {version!r:.20}; this kernelmaps reads up "
                f"to {stated.version}. Upgrade kernelmaps to read it."
            )
        return state

    def _new(self, cls: Any, node: Any) -> Any:
        """An instance with the file's parameters and nothing else."""
        if not hasattr(cls, "_get_param_names"):
            return object.__new__(cls)
        params = {key: self.read(item) for key, item in node["params"].items()}
        unknown = sorted(set(params) - set(cls._get_param_names()))
        if unknown:
            raise FileFormatError(
                f"the file's {cls.__name__} has the parameters {unknown}, which this version of "
                "kernelmaps does not know. Upgrade kernelmaps to read it."
            )
        return cls(**params)  # parameters that came later keep their defaults

    _KINDS: ClassVar[dict[str, Any]] = {
        "array": _read_array,
        "strings": _read_strings,
        "csr": _read_csr,
        "kernel": _read_kernel,
        "object": _read_object,
        "tuple": lambda self, node: tuple(self.read(node["items"])),
        "dict": _read_dict,
        "slice": _read_slice,
    }


def _from_format_1(cls: type, stated: State, state: dict[str, Any]) -> dict[str, Any]:
    """Stated entries among all attributes of an object, as format 1 kept them."""
    if "summary" in stated.required and state:
        raise FileFormatError(
            f"it was written by an earlier version, whose files of {cls.__name__} held rows of the "
            "training data. Fit the model again and save it with this version."
        )
    found = ((name, stated.attribute(name)) for name in (*stated.required, *stated.allowed))
    return {name: state[attribute] for name, attribute in found if attribute in state}


def _check_sklearn(value: Any) -> None:
    """Raise ValueError or TypeError if the parts of a scikit-learn estimator do not fit."""
    value._validate_params()  # as its own fit does
    if type(value).__name__ == "Pipeline":
        _check_steps(value.steps)
    if not hasattr(value, "n_features_in_") or type(value).__name__ == "Pipeline":
        return
    for asked, name in (("with_mean", "mean_"), ("with_std", "scale_")):
        if getattr(value, asked, False) and getattr(value, name) is None:
            raise ValueError(f"{name} is missing, but {asked} is true")
    for name in ("coef_", "mean_", "var_", "scale_", "min_", "max_abs_"):
        found = getattr(value, name, None)
        if found is None:
            continue
        if found.shape[-1] != value.n_features_in_:
            raise ValueError(f"{name} has another number of features than n_features_in_")
        sizes = np.abs(found[np.isfinite(found)])
        if (sizes > 1e150).any() or (name == "scale_" and (sizes < 1e-150).any()):
            raise ValueError(f"{name} reaches beyond the sizes 1e-150 to 1e+150")
    if hasattr(value, "classes_"):
        outputs = 1 if len(value.classes_) == 2 else len(value.classes_)
        if value.coef_.shape != (outputs, value.n_features_in_) or len(value.classes_) < 2:
            raise ValueError("coef_ does not fit the classes")


def _check_steps(steps: Any) -> None:
    """Steps are pairs of a name and an estimator, and each takes what the one before gives."""
    if not isinstance(steps, list) or not steps:
        raise TypeError("the steps of a pipeline must be a list")
    width = None
    for step in steps:
        if not isinstance(step, tuple) or len(step) != 2 or not isinstance(step[0], str):
            raise TypeError("a step of a pipeline must be a pair of a name and an estimator")
        if step[1] in ("passthrough", None) and isinstance(step[1], str | None):
            continue
        if not hasattr(step[1], "get_params"):
            raise TypeError("a step of a pipeline must be an estimator")
        taken = getattr(step[1], "n_features_in_", None)
        if None not in (width, taken) and width != taken:
            raise ValueError(f"a step takes {taken} features, but the one before gives {width}")
        width = getattr(step[1], "_n_features_out", taken) if taken is not None else None


class _MissingFunction:
    """Placeholder for a user's kernel function, which is code and therefore not in the file."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any) -> Any:
        raise ValueError(
            f"the function of the kernel {self.name!r} is code, and so not part of the model file. "
            "The map itself is complete; set `kernel` to the function again to fit or to measure."
        )


def _listed(name: str) -> type | None:
    """The class that a file may mean by `name`, or None."""
    if name in _RECORDS or name in _SKLEARN:
        return _class(name)
    if name in _PLUGINS or name in MAP_PLUGINS:
        return _PLUGINS.get(name) or MAP_PLUGINS[name]
    kernel = kernel_class(name)
    if kernel is not None:
        return kernel
    module = kernelmaps._MODULE_OF.get(name, "")
    found = getattr(kernelmaps, name, None) if module.startswith(_ROOMS_OF_ESTIMATORS) else None
    return found if hasattr(found, "_state") else None


def _class(name: str) -> type:
    return getattr(import_module({**_RECORDS, **_SKLEARN}[name]), name)


def _state_of(cls: Any) -> State | None:
    """What the instances of a class save; None for kernels, which are their parameters."""
    if cls.__name__ in _SKLEARN:
        return _OF_SKLEARN[cls.__name__]
    return getattr(cls, "_state", None)


def _fields(cls: Any) -> tuple[Any, ...]:
    return fields(cls) if is_dataclass(cls) else ()


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _readable(node: Any) -> Any:
    """Parameters for the eye: nodes of objects become their names."""
    if isinstance(node, list):
        return [_readable(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("$") == "object":
        inner = node.get("params", node.get("state"))
        shown = ", ".join(f"{k}={_readable(item)!r}" for k, item in _dictionary(inner).items())
        return f"{node.get('class')}({shown})"
    if "$" in node:
        return node.get("name", _readable(node.get("items")))
    return {key: _readable(item) for key, item in node.items()}
