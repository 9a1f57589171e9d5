"""One loader for the bundled digits and for a folder of ``.npz`` files.

A file holds plain arrays only (it is read without pickle): ``X_train, y_train, X_test, y_test``,
where a CSR matrix ``A`` is spelled ``A_data, A_indices, A_indptr, A_shape``. Several descriptors of
the same rows (``hog_train``, ``color_train``, …) are set side by side, and `Dataset.columns` says
which columns are whose. Data without a split (``X``) come back as training data alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import datasets as toy_datasets

import kernelmaps as km

_CSR_PARTS = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True)
class Dataset:
    """Rows and labels, split into training and test data.

    Attributes
    ----------
    name : str
    X_train, X_test : ndarray or csr_matrix
        `X_test` is None where the source has no split.
    y_train, y_test : ndarray or None
    columns : dict of str to slice
        Columns of each descriptor; one entry ``"X"`` unless there are several.
    extra : dict
        Everything else that the source holds: names, vocabulary, groups, further targets.
    """

    name: str
    X_train: Any
    y_train: np.ndarray | None
    X_test: Any = None
    y_test: np.ndarray | None = None
    columns: dict[str, slice] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.columns:
            object.__setattr__(self, "columns", {"X": slice(0, self.X_train.shape[1])})

    def __repr__(self) -> str:
        n_test = 0 if self.X_test is None else self.X_test.shape[0]
        rows, width = self.X_train.shape
        return f"Dataset({self.name!r}, {rows}+{n_test} rows, {width} columns)"


def load(name: str, folder: str | os.PathLike | None = None) -> Dataset:
    """The digits, or the ``.npz`` file of this name in a folder.

    The folder is by default the one that ``KERNELMAPS_DATA`` names.
    """
    if name == "digits":
        digits = km.datasets.load(name)
        return Dataset(name, digits.X_train, digits.y_train, digits.X_test, digits.y_test)
    where = folder if folder is not None else os.environ.get("KERNELMAPS_DATA")
    if not where:
        raise FileNotFoundError(
            f"dataset {name!r}: name the folder of {name}.npz by --data or by KERNELMAPS_DATA."
        )
    path = Path(where) / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}. Datasets: {', '.join(names(where))}.")
    return _assemble(name, read_npz(path))


def load_table(
    name: str, folder: str | os.PathLike, target: str = "target"
) -> tuple[Any, np.ndarray]:
    """Training rows as numbers, and a target; categories have a column for each level.

    The name is that of a toy dataset of scikit-learn, of a Parquet file of ``tables``, of a
    descriptor of CIFAR-10 (``cifar10_hog``), or of an ``.npz`` file.
    """
    if hasattr(toy_datasets, f"load_{name}"):
        return getattr(toy_datasets, f"load_{name}")(return_X_y=True)
    path = Path(folder) / "tables" / f"{name}.parquet"
    if path.is_file():
        import pandas as pd

        frame = pd.read_parquet(path).dropna()
        y = frame.pop(target).to_numpy()
        return pd.get_dummies(frame).to_numpy(float), y
    name, _, descriptor = name.partition("10_")
    data = load(f"{name}10_hist" if descriptor else name, folder)
    columns = data.columns[descriptor] if descriptor else slice(None)
    return data.X_train[:, columns], data.y_train


def names(folder: str | os.PathLike | None) -> list[str]:
    """Names of the datasets of a folder, the digits included."""
    stored = sorted(path.stem for path in Path(folder).glob("*.npz")) if folder else []
    return ["digits", *stored]


def read_npz(path: str | os.PathLike) -> dict[str, Any]:
    """The arrays of an ``.npz`` file without pickle; CSR matrices are put together."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    # The three arrays and the shape of every CSR matrix belong together.
    for key in [k for k in arrays if k.endswith("_indptr")]:
        base = key.removesuffix("_indptr")
        if all(f"{base}_{suffix}" in arrays for suffix in _CSR_PARTS):
            arrays[base] = _csr(*(arrays.pop(f"{base}_{suffix}") for suffix in _CSR_PARTS))
    return arrays


def _csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: np.ndarray) -> Any:
    # Files keep small unsigned indices; SciPy's routines want signed ones, as short as possible.
    matrix = sparse.csr_matrix(
        (data, indices.astype(np.int64), indptr.astype(np.int64)), shape=tuple(map(int, shape))
    )
    matrix.check_format(full_check=True)
    matrix.sort_indices()
    return matrix


def _assemble(name: str, arrays: dict[str, Any]) -> Dataset:
    """Sort the arrays of a file into a Dataset."""
    if "X" in arrays:
        return Dataset(name, arrays.pop("X"), arrays.pop("y", None), extra=arrays)
    descriptors = [
        key.removesuffix("_train") for key in arrays if key.endswith("_train") and key != "y_train"
    ]
    if not descriptors:
        raise ValueError(f"dataset {name!r} has neither X nor X_train: it has {list(arrays)}.")
    train = [arrays.pop(f"{d}_train") for d in descriptors]
    test = [arrays.pop(f"{d}_test", None) for d in descriptors]
    ends = np.cumsum([0, *(block.shape[1] for block in train)]).tolist()
    columns = {d: slice(*ends_of_block) for d, ends_of_block in zip(descriptors, pairwise(ends))}
    X_test = None if test[0] is None else _side_by_side(test)
    y_train, y_test = (arrays.pop(key, None) for key in ("y_train", "y_test"))
    return Dataset(name, _side_by_side(train), y_train, X_test, y_test, columns, arrays)


def _side_by_side(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(block) for block in parts):
        return sparse.hstack(parts, format="csr")
    return np.hstack(parts)
