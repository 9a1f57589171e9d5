"""Datasets from OpenML; scikit-learn downloads them, keeps them in its cache and checks them.

Nothing is downloaded unless a ``fetch`` function is called. A folder named by ``KERNELMAPS_DATA``
is looked into first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .loader import Dataset, data_folder, load

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
