"""Datasets from OpenML, kept in a local folder and checked when they are read again.

Nothing is downloaded unless a ``fetch_*`` function is called. A folder named by
``KERNELMAPS_DATA`` is looked into first; then the cache, whose files carry a checksum; then OpenML.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._util import storage
from ..exceptions import FileFormatError
from .loader import Dataset, data_folder, load


@dataclass(frozen=True)
class Remote:
    """Where a dataset is on OpenML, and how many of its rows are for training."""

    data_id: int
    train_rows: int
    dtype: Any = np.float64


SOURCES = {
    "mnist": Remote(554, 60_000, np.uint8),
    "letter": Remote(6, 16_000, np.uint8),
    "spambase": Remote(44, 3_065),
    "pendigits": Remote(32, 7_494, np.uint8),
    "usps": Remote(41082, 7_291),
}


def fetch(
    name: str,
    *,
    download: Callable[[int], tuple[np.ndarray, np.ndarray]] | None = None,
    checksum: str | None = None,
) -> Dataset:
    """Fetch a dataset by name: from ``KERNELMAPS_DATA``, the cache, or OpenML.

    Parameters
    ----------
    name : str
        One of `SOURCES`.
    download : callable, optional
        From the number of a dataset to ``(X, y)``; by default scikit-learn's ``fetch_openml``.
    checksum : str, optional
        SHA-256 that the downloaded values must have; see the cache's ``.json`` file for the one of
        a copy that is known to be good.

    Returns
    -------
    Dataset
        Training and test rows.

    Raises
    ------
    FileFormatError
        If the copy in the cache is damaged, or the download is not what was expected.
    """
    if name not in SOURCES:
        raise ValueError(f"there is no remote dataset {name!r}; there are {', '.join(SOURCES)}.")
    local = data_folder()
    if local is not None and (local / f"{name}.npz").is_file():
        return load(name, folder=local)
    path = storage.cache_folder() / f"{name}.kmap"
    if not path.exists():
        _download(name, path, download or _from_openml, checksum)
    return _from_cache(name, path, checksum)


def _download(name: str, path: Path, download: Any, checksum: str | None) -> None:
    source = SOURCES[name]
    X, y = download(source.data_id)
    X = np.ascontiguousarray(X, dtype=source.dtype)
    classes, codes = np.unique(np.asarray(y).astype(str), return_inverse=True)
    digest = _digest(X, codes, classes)
    if checksum is not None and digest != checksum:
        raise FileFormatError(
            f"{name} from OpenML (number {source.data_id}) has the checksum {digest}, expected "
            f"{checksum}: it was changed there, or on its way. Nothing was kept."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {"name": name, "openml": source.data_id, "classes": classes.tolist(), "sha256": digest}
    storage.write(path, "dataset", header, {"X": X, "y": codes.astype(np.int32)})
    storage.write_file(path.with_suffix(".json"), json.dumps(header, indent=1).encode())


def _from_cache(name: str, path: Path, checksum: str | None) -> Dataset:
    header, arrays = storage.read(path, "dataset")  # its own checksum is verified here
    classes = np.array(header["classes"])
    digest = _digest(arrays["X"], arrays["y"], classes)
    if checksum not in (None, digest):
        raise FileFormatError(
            f"{path} has the checksum {digest}, expected {checksum}. Delete it to download again."
        )
    labels = classes[arrays["y"]]
    if all(item.lstrip("-").isdigit() for item in header["classes"]):
        labels = labels.astype(np.int64)
    n, X = SOURCES[name].train_rows, arrays["X"]
    return Dataset(name, X[:n], labels[:n], X[n:], labels[n:], extra={"sha256": digest})


def _digest(X: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> str:
    content = hashlib.sha256(np.ascontiguousarray(X).tobytes())
    content.update(np.asarray(codes, dtype=np.int32).tobytes())
    content.update("\n".join(classes.tolist()).encode())
    return content.hexdigest()


def _from_openml(data_id: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import fetch_openml

    try:
        return fetch_openml(data_id=data_id, as_frame=False, return_X_y=True, parser="liac-arff")
    except OSError as error:
        raise OSError(
            f"OpenML could not be reached for dataset {data_id} ({error}). Put the file into a "
            "folder named by KERNELMAPS_DATA, or try again later."
        ) from error


def fetch_mnist(**options: Any) -> Dataset:
    """Fetch MNIST: 60000 + 10000 digits of 28 × 28 pixels, uint8.

    Parameters
    ----------
    **options : dict
        Options of :func:`fetch`, such as the folder.

    Returns
    -------
    Dataset
        Training and test rows.
    """
    return fetch("mnist", **options)


def fetch_letter(**options: Any) -> Dataset:
    """Fetch letter recognition: 16000 + 4000 rows of 16 small integers, 26 classes.

    Parameters
    ----------
    **options : dict
        Options of :func:`fetch`, such as the folder.

    Returns
    -------
    Dataset
        Training and test rows.
    """
    return fetch("letter", **options)


def fetch_spambase(**options: Any) -> Dataset:
    """Fetch Spambase: 3065 + 1536 rows of 57 word frequencies, two classes.

    Parameters
    ----------
    **options : dict
        Options of :func:`fetch`, such as the folder.

    Returns
    -------
    Dataset
        Training and test rows.
    """
    return fetch("spambase", **options)
