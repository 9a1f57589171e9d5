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
``object``     an instance of a class of the list below: its name and its attributes
=============  ====================================================================

Reading never imports or calls what a file names: a class is looked up in the two lists of this
module, and its attributes are set without running its code. What is not listed is refused, when
writing as when reading. Entries that a reader does not know are ignored in the header and refused
in nodes, so that a later version may say more about a file, but never change its meaning unseen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

import kernelmaps

from . import storage
from .exceptions import FileFormatError

__all__ = ["FORMAT_VERSION", "FileInfo", "load", "open_info", "save"]

FORMAT_VERSION = 1
"""Version of the nodes; raised only when older readers would misunderstand a file."""

# Short names that files use, and where the class is today: files outlive a move of the code.
_RECORDS = {
    "Spec": "kernelmaps.engine.spec",
    "Table": "kernelmaps.engine.table",
    "Certificate": "kernelmaps.certificate",
    "AnchorCertificate": "kernelmaps.maps._anchor_certificate",
    "Gaussian": "kernelmaps.kernels.stationary",
    "Laplacian": "kernelmaps.kernels.stationary",
    "Cauchy": "kernelmaps.kernels.stationary",
    "Matern": "kernelmaps.kernels.stationary",
    "Exponential": "kernelmaps.kernels.exponential",
    "MapKernel": "kernelmaps.maps.exponential",
    "SignCauchy": "kernelmaps.kernels.signs",
    "Linear": "kernelmaps.kernels.additive",
    "Design": "kernelmaps.design.result",
    "JointDesign": "kernelmaps.design.joint",
    "DesignCertificate": "kernelmaps.design.certify",
    "RankTable": "kernelmaps.design.tables",
    "Sparsity": "kernelmaps.design.sparsity",
    "Moments": "kernelmaps.stats.moments",
    "FoldMoments": "kernelmaps.stats.composite",
    "KernelMoments": "kernelmaps.stats.composite",
    "Features": "kernelmaps.models.streaming.feature_maps",
    "Part": "kernelmaps.models.streaming.feature_maps",
    "_Solution": "kernelmaps.models.streaming.projection",
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
    "RidgeClassifier": "sklearn.linear_model",
    "LogisticRegression": "sklearn.linear_model",
}
_ROOMS_OF_ESTIMATORS = ("kernelmaps.maps.", "kernelmaps.models.")


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

    Raises
    ------
    FileFormatError
        If the file is damaged, foreign, from a newer version, or holds a class that this version
        does not know.
    """
    header, arrays = storage.read(path)
    if header["kind"] == "spec":
        return _class("Spec")._from_content(header, arrays)
    _check_header(header, path)
    return _decode(header["model"], arrays)


def open_info(path: str | os.PathLike[str]) -> FileInfo:
    """What a ``.kmap`` file holds; its checksum is verified."""
    header, arrays = storage.read(path)
    kind = header["kind"]
    content = {name: value for name, value in header.items() if name != "kind"}
    if kind == "model":
        _check_header(header, path)
        title, details = header["class"], _readable(header["model"].get("params", {}))
    else:
        title, details = str(header.get("family", kind)), dict(header.get("numbers", {}))
    return FileInfo(
        kind=kind,
        title=title,
        version=str(header.get("kernelmaps", "")),
        digest=storage.digest(kind, content, arrays),
        size=os.path.getsize(path),
        arrays={name: f"{a.dtype} {list(a.shape)}" for name, a in arrays.items()},
        details=details,
        metadata=dict(header.get("metadata", {})),
    )


def _check_header(header: Mapping[str, Any], path: Any) -> None:
    if header["kind"] != "model":
        raise FileFormatError(
            f"{os.fspath(path)!r} holds {header['kind']!r}, which is neither a model nor a spec."
        )
    version = header.get("format")
    if not isinstance(version, int) or version > FORMAT_VERSION:
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
    if hasattr(value, "get_params"):
        params = value.get_params(deep=False)
        state = dict(value.__getstate__())
        state = {k: v for k, v in state.items() if k not in params and k != "_sklearn_version"}
        return {
            "$": "object",
            "class": name,
            "params": _entries(params, where, arrays),
            "state": _entries(state, where, arrays),
        }
    if is_dataclass(value):  # fields only: a cached property is no part of the content
        state = {item.name: getattr(value, item.name) for item in fields(value)}
    else:
        state = vars(value)
    return {"$": "object", "class": name, "state": _entries(state, where, arrays)}


def _entries(values: Mapping[str, Any], where: str, arrays: dict[str, np.ndarray]) -> Any:
    return {key: _encode(item, f"{where}.{key}", arrays) for key, item in values.items()}


def _is_named_kernel(value: Any) -> bool:
    return type(value).__name__ in ("HomogeneousKernel", "Additive")


def _encode_kernel(kernel: Any) -> Any:
    node = {"$": "kernel", "name": kernel.name, "form": type(kernel).__name__}
    if node["form"] == "HomogeneousKernel":
        node |= {"gamma": kernel.gamma, "signed": kernel.signed}
    return node


# ---- from nodes to objects ----------------------------------------------------------------------


def _decode(node: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(node, list):
        return [_decode(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    if "$" not in node:
        return {key: _decode(item, arrays) for key, item in node.items()}
    if node["$"] not in _READERS:
        raise FileFormatError(
            f"the file holds {node['$']!r} values, which this version of kernelmaps does not know."
        )
    try:
        return _READERS[node["$"]](node, arrays)
    except (KeyError, TypeError, IndexError) as error:
        raise FileFormatError(f"the file has a malformed {node['$']!r} entry: {error!r}") from error


def _read_array(node: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    array = arrays[node["name"]]
    return array[()] if array.ndim == 0 else array.copy()  # files give read-only views


def _read_strings(node: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    dtype = object if node["form"] == "object" else str
    return np.array([str(item) for item in node["items"]], dtype=dtype).reshape(node["shape"])


def _read_csr(node: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    parts = tuple(arrays[f"{node['name']}.{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_matrix(parts, shape=tuple(node["shape"]), copy=True)


def _read_kernel(node: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    from .kernels import Additive, HomogeneousKernel, get
    from .kernels.registry import KNOWN

    missing = _MissingFunction(node["name"])
    if node["form"] == "Additive":
        return Additive(missing, name=node["name"])
    changes = {"gamma": node["gamma"], "signed": node["signed"]}
    if node["name"] in KNOWN:
        return get(node["name"]).replace(**changes)
    return HomogeneousKernel(node["name"], missing, component_function=missing, **changes)


def _read_object(node: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    cls = _listed(node["class"])
    if cls is None:
        raise FileFormatError(
            f"the file holds a {node['class']!r}, which this version of kernelmaps does not know. "
            "Upgrade kernelmaps to read it."
        )
    state = {key: _decode(item, arrays) for key, item in node["state"].items()}
    if node["class"] == "Spec":
        return cls(**state)
    if "params" not in node:
        value = object.__new__(cls)
        vars(value).update(state)
        return value
    params = {key: _decode(item, arrays) for key, item in node["params"].items()}
    unknown = sorted(set(params) - set(cls._get_param_names()))
    if unknown:
        raise FileFormatError(
            f"the file's {node['class']} has the parameters {unknown}, which this version of "
            "kernelmaps does not know. Upgrade kernelmaps to read it."
        )
    value = cls(**params)  # parameters that came later keep their defaults
    vars(value).update(state)
    return value


_READERS = {
    "array": _read_array,
    "strings": _read_strings,
    "csr": _read_csr,
    "kernel": _read_kernel,
    "object": _read_object,
    "tuple": lambda node, arrays: tuple(_decode(node["items"], arrays)),
    "dict": lambda node, arrays: {_decode(k, arrays): _decode(v, arrays) for k, v in node["items"]},
    "slice": lambda node, arrays: slice(*node["ends"]),
}


class _MissingFunction:
    """Stands for a user's own kernel function, which is code and so not in the file."""

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
    module = kernelmaps._MODULE_OF.get(name, "")
    return getattr(kernelmaps, name, None) if module.startswith(_ROOMS_OF_ESTIMATORS) else None


def _class(name: str) -> type:
    return getattr(import_module({**_RECORDS, **_SKLEARN}[name]), name)


def _readable(node: Any) -> Any:
    """Parameters for the eye: nodes of objects become their names."""
    if isinstance(node, list):
        return [_readable(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("$") == "object":
        inner = {**node.get("params", {}), **({} if "params" in node else node["state"])}
        shown = ", ".join(f"{key}={_readable(item)!r}" for key, item in inner.items())
        return f"{node['class']}({shown})"
    if "$" in node:
        return node.get("name", _readable(node.get("items")))
    return {key: _readable(item) for key, item in node.items()}
