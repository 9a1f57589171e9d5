"""Model files (``.kmap``): fitted maps and models as JSON and plain arrays, without pickle.

A model file is a container of :mod:`kernelmaps._util.storage` of kind ``"model"``. Its header holds
a tree of JSON values, the *nodes*; arrays are kept next to it and referred to by name. A node with
a ``"$"`` entry stands for something that JSON does not have:

=============  ====================================================================
``"$"``        what it stands for
=============  ====================================================================
``array``      a numeric array, by its name in the container
``strings``    an array of strings (class names, feature names)
``tuple``      a tuple; JSON has lists only
``dict``       a dictionary whose keys are not all strings
``slice``      a slice
``kernel``     a kernel that has a name
``object``     an instance of a known class: its name, parameters and stated entries
=============  ====================================================================

What an object saves is stated by its class (`_state`, see :class:`kernelmaps._util.schema.State`),
with a version of its own; attributes that are not stated stay in the process. Reading never imports
or calls what a file names: a class is looked up in the lists of :mod:`.classes`, its parameters are
those of its constructor, and its entries are checked, one by one and against each other, before
they are set. What is not listed is refused, when writing as when reading. Entries that a reader
does not know are ignored in the header and refused in nodes, so that a later version may say more
about a file, but never change its meaning unseen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelmaps

from .._util import storage
from .._util.storage import AnyPath
from ..engine.spec import Spec
from ..exceptions import FileFormatError
from .nodes import Reader, encode

__all__ = ["FORMAT_VERSION", "FileInfo", "load", "open_info", "save"]

FORMAT_VERSION = 2
"""Version of the nodes; raised only when older readers would misunderstand a file."""
_OTHER_FORMATS = (".onnx", ".h", ".sql", ".csv", ".xlsx")  # those of the command export


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
        What was stored next to the model: names of columns and target, say.
    """

    kind: str
    title: str
    version: str
    digest: str
    size: int
    arrays: dict[str, str]
    details: dict[str, Any]
    metadata: dict[str, Any]


def save(model: Any, path: AnyPath, *, metadata: Mapping[str, Any] | None = None) -> None:
    """Write a spec, a map or a fitted model to a ``.kmap`` file, atomically and without pickle.

    Parameters
    ----------
    model : Spec, map, model, or a scikit-learn pipeline of these
        Anything with a `spec` of its own (a `Design`) is stored as that spec.
    path : path
        The file; an existing one is replaced only when the new one is complete.
    metadata : mapping, optional
        Plain JSON values to keep next to the model; :func:`open_info` shows them.

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
    if os.path.splitext(path)[1].lower() in _OTHER_FORMATS:
        raise ValueError(
            f"save: {os.fspath(path)!r} would be a .kmap file in spite of its name; the command "
            "`kernelmaps export` writes other formats."
        )
    spec = model if type(model).__name__ == "Spec" else getattr(model, "spec", None)
    if spec is not None:
        spec.save(path)
        return
    arrays: dict[str, np.ndarray] = {}
    node = encode(model, type(model).__name__, arrays)
    header = {
        "format": FORMAT_VERSION,
        "kernelmaps": kernelmaps.__version__,
        "class": type(model).__name__,
        "model": node,
        "metadata": dict(metadata or {}),
    }
    storage.write(path, "model", header, arrays)


def load(path: AnyPath) -> Any:
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
    return load_with_metadata(path)[0]


def load_with_metadata(
    path: str | os.PathLike[str], *, to_predict: bool = False
) -> tuple[Any, dict[str, Any]]:
    """What a file holds, and what was stored next to it; the file is read once.

    With `to_predict`, a model may come without its estimator: it predicts the rows of tables, and
    scikit-learn is not imported.
    """
    header, arrays = storage.read(path)
    metadata = _dictionary(header.get("metadata"))
    if header["kind"] == "spec":
        return Spec._from_content(header, arrays), metadata
    _check_header(header, path)
    reader = Reader(arrays)
    try:
        read = reader.read_to_predict if to_predict else reader.read
        return read(header["model"]), metadata
    except FileFormatError as error:
        raise FileFormatError(f"{os.fspath(path)!r} cannot be used: {error}") from error


def open_info(path: AnyPath) -> FileInfo:
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
    version = header.get("format")
    if header["kind"] != "model":
        wrong = f"holds {header['kind']!r}, which is neither a model nor a spec."
    elif type(version) is not int or version < FORMAT_VERSION:
        wrong = "is of a format that no released version has written. Fit and save the model again."
    elif "model" not in header:
        wrong = "holds no model."
    elif version > FORMAT_VERSION:
        wrong = (
            f"is a model file of format {version}, written by kernelmaps "
            f"{header.get('kernelmaps', '?')}; this kernelmaps reads up to format "
            f"{FORMAT_VERSION}. Upgrade kernelmaps to read it."
        )
    else:
        return
    raise FileFormatError(f"{os.fspath(path)!r} {wrong}")


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
