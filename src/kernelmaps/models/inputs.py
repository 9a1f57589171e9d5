"""Checks of the rows, targets and weights that additive estimators are given."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from .._util.arguments import refuse_masked
from .._util.devices import refuse_gpu_array
from ..data.columns import is_missing, is_series, raw_column
from ..data.targets import number_values
from ..exceptions import SuspectColumnWarning

_MANY_CLASSES = 1000  # from which on a fit is long
# For a class, a row and five columns: AdditiveSVC takes 8 s for 100 classes of 3,000 rows,
# AdditiveClassifier 40 s for 300.
_SECONDS = 3e-5


def refuse_training_on_gpu(owner: Any, call: str, X: Any, y: Any, weights: Any = None) -> None:
    """Refuse arrays on a GPU: training runs on the processor, and nothing is copied silently."""
    method = f"{type(owner).__name__}.{call}"
    advice = (
        "Train on rows in ordinary memory (X.cpu().numpy() of a torch tensor); "
        "decision_function and predict take rows where they are."
    )
    refuse_gpu_array(X, method, advice)
    refuse_gpu_array(y, method, "Pass y.cpu().numpy() of a torch tensor.", "y")
    refuse_gpu_array(weights, method, "Pass them as NumPy.", "sample_weight")


def targets_of(owner: Any, y: Any, n: int) -> np.ndarray:
    """Targets of the rows of a table: one-dimensional, finite and of its length."""
    name = type(owner).__name__
    if y is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None: pass a value for each row."
        )
    if isinstance(y, str):
        raise ValueError(
            f"{name}: y={y!r} names a column, which is for files and frames. Pass the values, and "
            "X without that column."
        )
    refuse_masked(owner, "y", y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        try:
            assert_all_finite(y, input_name="y")
        except ValueError as error:
            row = int(np.argmin(np.isfinite(y)))
            raise ValueError(f"{name}: {error} (row {row}). Leave such rows out.") from None
    if len(y) != n:
        raise ValueError(
            f"{name}: found input variables with inconsistent numbers of samples: X has {n} rows, "
            f"y has {len(y)}."
        )
    return y


def numbers_in_text(owner: Any, y: Any) -> Any:
    """Targets as they are; those written as text ("$ 1,200") as numbers, as those of a file.

    Missing ones are NaN.
    """
    values = y if hasattr(y, "dtype") or is_series(y) else np.asarray(y)
    dtype = getattr(values, "dtype", None)
    if np.ndim(values) != 1 or (isinstance(dtype, np.dtype) and dtype.kind not in "OUS"):
        return y
    name, column = type(owner).__name__, str(getattr(y, "name", None) or "y")

    def locate_row(row: int | None) -> str:
        return name if row is None else f"{name}, row {row}"

    return number_values(raw_column(values, column, name), column, locate_row)


def missing_targets(y: Any) -> np.ndarray:
    """Which targets are missing."""
    values = np.asarray(y)
    if values.dtype.kind in "OUS":
        return np.fromiter(map(is_missing, values.tolist()), bool, len(values))
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)


def real_targets(
    y: np.ndarray, owner: str, place: Callable[[int], str] = "row {}".format
) -> np.ndarray:
    """Targets as finite numbers; others are refused by their places."""
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError) as error:
        row = next(k for k, item in enumerate(y.tolist()) if not _is_number(item))
        raise ValueError(
            f"{owner}: Unknown label type: y must be numbers ({error}): {place(row)}."
        ) from None
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(f"{owner}: y contains NaN or infinity: {place(row)}.")
    return numbers


def _is_number(item: Any) -> bool:
    try:
        return float(item) is not None
    except (TypeError, ValueError):
        return False


def coded_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Encode labels: the sorted classes, and the index of each row's class.

    Text in columns of objects is looked up by its hash: NumPy would sort the labels of all rows.
    """
    labels = y.tolist()
    if y.dtype == object and set(map(type, labels)) == {str}:
        classes = np.array(sorted(set(labels)), dtype=object)
        index = {label: k for k, label in enumerate(classes)}
        codes = np.fromiter(map(index.__getitem__, labels), np.int64, len(labels))
    else:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > _MANY_CLASSES:
        seconds = _SECONDS * len(classes) * len(y)
        warnings.warn(
            f"y has {len(classes)} classes, and each is a problem of its own: for {len(y)} rows "
            f"about {max(1, round(seconds / 60))} minutes or more. If y holds numbers to predict, "
            "use a regressor; StreamingRidgeClassifier solves all classes by one factorisation.",
            SuspectColumnWarning, stacklevel=2,
        )  # fmt: skip
    return classes, codes


def check_classes(owner: Any, classes: np.ndarray) -> None:
    """Raise ValueError if there is one class only."""
    if len(classes) < 2:
        raise ValueError(
            f"{type(owner).__name__} needs examples of at least 2 classes; y has only one class, "
            f"{classes[0]!s}."
        )


def weigh_classes(owner: Any, y: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Weights of rows times those of their classes, of which two or more must have some."""
    if owner.class_weight is not None:
        weight = weight * weights_by_class(owner, y)[codes]
    if np.count_nonzero(np.bincount(codes, weight)) < 2:
        raise ValueError(
            f"{type(owner).__name__}: rows of positive weight belong to only one class; check "
            "sample_weight and class_weight."
        )
    return weight


def weights_by_class(owner: Any, y: np.ndarray) -> np.ndarray:
    """Factors of the weights of the rows of each class, by `class_weight`."""
    name, class_weight, classes = type(owner).__name__, owner.class_weight, owner.classes_
    unknown = set(class_weight if isinstance(class_weight, Mapping) else ())
    unknown -= set(classes.tolist())
    if unknown:
        warnings.warn(
            f"{name}: class_weight has {next(iter(unknown))!r}, which is not a class in y, such as "
            f"{', '.join(map(repr, classes[:5].tolist()))}.",
            UserWarning,
            stacklevel=5,
        )
    factors = compute_class_weight(class_weight, classes=classes, y=y)
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ValueError(
            f"{name}: class_weight must hold finite numbers >= 0, got {class_weight!r}."
        )
    return factors


def weights_of(owner: Any, sample_weight: Any, n: int) -> np.ndarray:
    """Sample weights, checked; ones where none are given."""
    if sample_weight is None:
        return np.ones(n)
    refuse_masked(owner, "sample_weight", sample_weight)
    like = np.empty((n, 1))
    try:
        weight = _check_sample_weight(
            sample_weight, like, dtype=np.float64, ensure_non_negative=True
        )
    except (ValueError, TypeError) as error:
        raise type(error)(
            f"{type(owner).__name__}: sample_weight must hold {n} finite numbers >= 0, one for "
            f"each row: {error}"
        ) from None
    if not weight.any():
        raise ValueError(f"{type(owner).__name__}: all sample weights are zero.")
    return weight
