"""One loader for the bundled data and for a folder of ``.npz`` files.

A file holds plain arrays only (it is read without pickle): ``X_train, y_train, X_test, y_test``,
where a CSR matrix ``A`` is spelled ``A_data, A_indices, A_indptr, A_shape``. Several descriptors of
the same rows (``hog_train``, ``color_train``, …) are set side by side, and `Dataset.columns` says
which columns are whose. Data without a split (``X``) come back as training data alone.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._util.arguments import generator
from .._util.sparse import check_sparse
from ..exceptions import FileFormatError

VARIABLE = "KERNELMAPS_DATA"
BUNDLED = ("digits",)
_DAMAGED = (
    ValueError, OverflowError, EOFError, MemoryError, zipfile.BadZipFile, TypeError, AttributeError
)  # fmt: skip
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


def data_folder(folder: str | os.PathLike | None = None) -> Path | None:
    """Return the folder of datasets.

    Parameters
    ----------
    folder : path, optional
        The folder; by default the one that ``KERNELMAPS_DATA`` names.

    Returns
    -------
    Path or None
        None if neither is given.
    """
    named = folder if folder is not None else os.environ.get(VARIABLE)
    return Path(named) if named else None


def names(folder: str | os.PathLike | None = None) -> list[str]:
    """List the datasets that `load` can read.

    Parameters
    ----------
    folder : path, optional
        Folder of ``.npz`` files; by default the one that ``KERNELMAPS_DATA`` names.

    Returns
    -------
    list of str
        Names, the bundled digits included.
    """
    where = data_folder(folder)
    stored = sorted(path.stem for path in where.glob("*.npz")) if where else []
    return [*BUNDLED, *stored]


def load(
    name: str, *, target: str | None = None, folder: str | os.PathLike | None = None
) -> Dataset:
    """Load a dataset by name.

    Parameters
    ----------
    name : str
        ``"digits"`` (bundled with scikit-learn; every row an L1-normalised histogram; the first
        half is for training) or the name of an ``.npz`` file of the folder, without its ending.
    target : str, optional
        For sources with several targets ``y_<target>``: which one. Rows labelled −1 do not take
        part in a target and are left out.
    folder : path, optional
        Where the files lie; default: the environment variable ``KERNELMAPS_DATA``.

    Returns
    -------
    Dataset
        Training and test rows.
    """
    if name == "digits":
        return _digits()
    where = data_folder(folder)
    if where is None:
        raise FileNotFoundError(
            f"dataset {name!r} is not bundled (bundled: {', '.join(BUNDLED)}). Put {name}.npz in a "
            f"folder and name the folder by folder= or by the environment variable {VARIABLE}."
        )
    path = where / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no {path}. Datasets available here: {', '.join(names(where))}."
        )
    return _assemble(name, read_npz(path), target)


def read_npz(path: str | os.PathLike) -> dict[str, Any]:
    """Read the arrays of an ``.npz`` file without pickle; CSR matrices are put together.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    dict
        Arrays and CSR matrices by name.

    Raises
    ------
    FileFormatError
        If the file is not an ``.npz`` file, is damaged, or holds pickled objects.
    """
    try:
        # Opened here, so that it is closed even where NumPy gives up half-way.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        # The three arrays and the shape of every CSR matrix belong together.
        for key in [k for k in arrays if k.endswith("_indptr")]:
            base = key.removesuffix("_indptr")
            if all(f"{base}_{suffix}" in arrays for suffix in _CSR_PARTS):
                arrays[base] = _csr(*(arrays.pop(f"{base}_{suffix}") for suffix in _CSR_PARTS))
    except _DAMAGED as error:
        raise FileFormatError(f"{path} is not a readable .npz file: {error}") from error
    return arrays


def _csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: np.ndarray) -> Any:
    from scipy.sparse import csr_matrix

    for name, array in (("indices", indices), ("indptr", indptr), ("shape", shape)):
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise ValueError(
                f"{name} of a sparse matrix must be a vector of integers, found {array.dtype} "
                f"of shape {array.shape}"
            )
    # Files keep small unsigned indices; SciPy's routines want signed ones, as short as possible.
    matrix = csr_matrix(
        (data, indices.astype(np.int64), indptr.astype(np.int64)), shape=tuple(map(int, shape))
    )
    check_sparse(matrix, "the .npz file")
    matrix.sort_indices()
    return matrix


def _assemble(name: str, arrays: dict[str, Any], target: str | None) -> Dataset:
    """Sort the arrays of a file into a Dataset."""
    if target is not None:
        return _one_target(name, arrays, target)
    if "X" in arrays:
        return Dataset(name, arrays.pop("X"), arrays.pop("y", None), extra=arrays)
    descriptors = [
        key.removesuffix("_train") for key in arrays if key.endswith("_train") and key != "y_train"
    ]
    if not descriptors:
        raise FileFormatError(f"dataset {name!r} has neither X nor X_train: it has {list(arrays)}.")
    train = [arrays.pop(f"{d}_train") for d in descriptors]
    test = [arrays.pop(f"{d}_test", None) for d in descriptors]
    ends = np.cumsum([0, *(block.shape[1] for block in train)]).tolist()
    columns = {d: slice(*ends_of_block) for d, ends_of_block in zip(descriptors, pairwise(ends))}
    X_test = None if test[0] is None else _side_by_side(test)
    y_train, y_test = (arrays.pop(key, None) for key in ("y_train", "y_test"))
    return Dataset(name, _side_by_side(train), y_train, X_test, y_test, columns, arrays)


def _one_target(name: str, arrays: dict[str, Any], target: str) -> Dataset:
    """Rows of a source without a split that take part in one of its targets."""
    targets = sorted(k.removeprefix("y_") for k in arrays if k.startswith("y_"))
    if "X" not in arrays or target not in targets:
        raise ValueError(f"dataset {name!r} has no target {target!r}; it has {targets}.")
    labels = arrays[f"y_{target}"]
    rows = np.flatnonzero(labels != -1)
    extra = {}
    if f"group_{target}" in arrays:
        extra["groups"] = arrays[f"group_{target}"][rows]
    return Dataset(name, arrays["X"][rows], labels[rows], extra=extra)


def _side_by_side(parts: list[Any]) -> Any:
    from scipy import sparse

    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(block) for block in parts):
        return sparse.hstack(parts, format="csr")
    return np.hstack(parts)


def _digits() -> Dataset:
    """Scikit-learn's 8×8 digits; ink per cell, so that a row is a histogram of where ink is.

    Neighbouring rows are alike (a linear SVM gains three points where every fourth row is a test
    row), so that the second half of the rows is the more honest test.
    """
    from sklearn.datasets import load_digits

    counts, labels = load_digits(return_X_y=True)
    X = counts / counts.sum(axis=1, keepdims=True)
    n = 900
    return Dataset("digits", X[:n], labels[:n], X[n:], labels[n:])


REMOTE: dict[str, tuple[int, int, Any]] = {
    "mnist": (554, 60_000, np.uint8),
    "letter": (6, 16_000, np.uint8),
    "spambase": (44, 3_065, np.float64),
    "pendigits": (32, 7_494, np.uint8),
    "usps": (41082, 7_291, np.float64),
}
"""Number of each dataset at OpenML, training rows, and type."""


def fetch(name: str) -> Dataset:
    """Fetch a dataset by name: from ``KERNELMAPS_DATA``, or by scikit-learn's ``fetch_openml``.

    Parameters
    ----------
    name : str
        mnist, letter, spambase, pendigits or usps.

    Returns
    -------
    Dataset
        Training and test rows.
    """
    if name not in REMOTE:
        raise ValueError(f"there is no remote dataset {name!r}; there are {', '.join(REMOTE)}.")
    local = data_folder()
    if local is not None and (local / f"{name}.npz").is_file():
        return load(name, folder=local)
    from sklearn.datasets import fetch_openml

    data_id, n, dtype = REMOTE[name]
    try:
        X, y = fetch_openml(data_id=data_id, as_frame=False, return_X_y=True, parser="liac-arff")
    except OSError as error:
        raise OSError(
            f"OpenML could not be reached for dataset {data_id} ({error}). Put the file into a "
            "folder named by KERNELMAPS_DATA, or try again later."
        ) from error
    X, y = np.ascontiguousarray(X, dtype=dtype), np.asarray(y).astype(str)
    if np.char.isdigit(y).all():
        y = y.astype(np.int64)
    return Dataset(name, X[:n], y[:n], X[n:], y[n:])


def fetch_mnist() -> Dataset:
    """Fetch MNIST: 60000 + 10000 digits of 28 × 28 pixels, uint8.

    Returns
    -------
    Dataset
        Training and test rows.
    """
    return fetch("mnist")


def fetch_letter() -> Dataset:
    """Fetch letter recognition: 16000 + 4000 rows of 16 small integers, 26 classes.

    Returns
    -------
    Dataset
        Training and test rows.
    """
    return fetch("letter")


def fetch_spambase() -> Dataset:
    """Fetch Spambase: 3065 + 1536 rows of 57 word frequencies, two classes.

    Returns
    -------
    Dataset
        Training and test rows.
    """
    return fetch("spambase")


def make_histograms(
    n_samples: int = 1000,
    n_features: int = 64,
    n_classes: int = 4,
    *,
    n_counts: int = 200,
    concentration: float = 0.3,
    normalize: bool = True,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw dense histograms: one profile per class, counted `n_counts` times per row.

    The profile of a class is one draw of a symmetric Dirichlet distribution, and a row is a
    multinomial sample of it. The variance of a count is about its mean, which is the noise that
    χ² is made for: its distance weighs (x − y)² by 1/(x + y).

    Parameters
    ----------
    n_samples, n_features, n_classes : int
    n_counts : int
        Counts per row; fewer make the classes harder to tell apart.
    concentration : float
        Dirichlet parameter; small values give peaked profiles.
    normalize : bool
        Whether rows sum to 1 (otherwise to `n_counts`).
    random_state : int, RandomState, Generator or None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Histograms.
    y : ndarray of shape (n_samples,)
        Classes.
    """
    rng = generator(random_state)
    profiles = rng.dirichlet(np.full(n_features, concentration), size=n_classes)
    labels = rng.integers(n_classes, size=n_samples)
    counts = rng.multinomial(n_counts, profiles[labels]).astype(np.float64)
    return (counts / n_counts if normalize else counts), labels


def make_bag_of_words(
    n_samples: int = 1000,
    n_features: int = 5000,
    n_classes: int = 4,
    *,
    n_words: int = 100,
    random_state: Any = None,
):
    """Draw sparse word counts with Zipf's law: the k-th most frequent word has weight 1/k.

    Each class has its own order of the words beyond the most frequent hundredth, which all share
    (the "stop words").

    Parameters
    ----------
    n_samples, n_features, n_classes : int
    n_words : int
        Mean number of words of a row (Poisson).
    random_state : int, RandomState, Generator or None

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features)
        Counts of words, as float64.
    y : ndarray of shape (n_samples,)
        Classes.
    """
    from scipy.sparse import csr_matrix

    rng = generator(random_state)
    zipf = 1.0 / np.arange(1, n_features + 1)
    cumulative = np.cumsum(zipf / zipf.sum())
    shared = max(1, n_features // 100)
    order = np.tile(np.arange(n_features), (n_classes, 1))
    order[:, shared:] = rng.permuted(order[:, shared:], axis=1)

    labels = rng.integers(n_classes, size=n_samples)
    lengths = rng.poisson(n_words, size=n_samples)
    rows = np.repeat(np.arange(n_samples), lengths)
    # The last cumulative weight may round below 1: a word index must stay inside.
    ranks = np.searchsorted(cumulative, rng.random(rows.size)).clip(max=n_features - 1)
    words = order[labels[rows], ranks]
    X = csr_matrix((np.ones(rows.size), (rows, words)), shape=(n_samples, n_features))
    X.sum_duplicates()
    return X, labels
