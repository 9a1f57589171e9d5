"""What is looked at before anything is computed: rows, columns, targets, and the task."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

from .._util.arguments import check_choice
from .._util.devices import refuse_gpu_array
from .._util.sparse import check_sparse, naming_text
from ..data.columns import names_of
from .methods import TableEncoder

TASKS = ("auto", "classification", "regression")
_CLASSES_WITH_GAPS = 10  # values that are classes though they have gaps: 1, 2, 3, 4, 5, 7
_CLASSES_WITHOUT_GAPS = 30  # values without gaps that are classes, wherever they begin
_FEWEST_COUNTS = 6  # values from 0 on that may be counts; fewer (0 to 4) are grades
_RARE_COUNT = 0.05  # frequency of the largest counts, as a share of that of the most frequent one
_CLASSES_FROM_ZERO = 1000  # values without gaps, from 0 or 1 on, that are classes


def read_rows_of_numbers(
    X: Any, owner: str, *, select: bool = True, **options: Any
) -> tuple[Any, TableEncoder | None, list[str]]:
    """Rows in ordinary memory, the encoder that a frame needs, and remarks on its columns.

    Rows are an array or CSR; damaged ones and those on a GPU are refused. Of a frame, IDs and
    columns of one value are left out, if `select`; a frame of numbers that are all used needs no
    encoder.
    """
    refuse_gpu_array(X, f"kernelmaps.{owner}", "Pass a sample of the rows as NumPy.")
    check_sparse(X, owner)
    encoder, remarks, header = None, list[str](), names_of(X)
    if header and not hasattr(X, "sparse"):  # pandas' frames of sparse columns alone
        encoder = TableEncoder(None if select else header).fit(X)
        with warnings.catch_warnings(action="ignore"):  # they are among the remarks
            rows = encoder.transform(X)
        is_matrix = rows.shape == X.shape and np.asarray(X).dtype.kind in "biuf"
        left_out = [fmt for fmt in encoder.reader_.columns if fmt.kind == "left out"]
        remarks = [f"column {fmt.name!r} left out: {fmt.reason}." for fmt in left_out]
        remarks += [f"{remark}." for remark in encoder.reader_.notes.remarks]  # unreadable cells
        X, encoder = (X, None) if is_matrix else (rows, encoder)
    with naming_text(owner, X):
        options = {"dtype": "numeric"} | options
        X = check_array(X, accept_sparse="csr", input_name="X", estimator=owner, **options)
    return X, encoder, remarks


def check_targets(y: np.ndarray | None, task: str, owner: str) -> None:
    """Refuse targets with a single value: there is nothing to tell apart."""
    if y is None or len(y) == 0 or not (y == y[0]).all():
        return
    value = "the same class" if task == "classification" else "the same target"
    raise ValueError(
        f"{owner}: all {len(y)} rows have {value} {y[:1].tolist()[0]!r}, so that there is "
        "nothing to predict. Check the name of the target column."
    )


@dataclass(frozen=True)
class Task:
    """What is predicted, and why that was concluded.

    Attributes
    ----------
    name : str
        "classification", "regression" or "none" (no targets).
    reason : str
        What was seen, in words; empty if the task was given.
    """

    name: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})" if self.reason else self.name


def decide_task(y: Any, task: str = "auto", *, owner: str = "compare") -> Task:
    """Decide whether targets are classes or numbers.

    Text, truth values, and two values of any sort are classes; numbers with fractions are not.
    Whole numbers are classes if they are few (10 at most, each of them twice on average), or if
    they follow one another without gaps and are 30 at most, or if they are counted from 0 or 1
    and about equally frequent, as codes of many classes are. Everything else, prices, years, ages
    or counts, is a number to predict. A count shows itself, if it is not too small, by its
    frequencies: they fall on both sides of the most frequent value, down to rare ones.

    Parameters
    ----------
    y : array-like of shape (n,) or None
        Targets.
    task : {"auto", "classification", "regression"}
        Anything but "auto" is taken as it is.
    owner : str
        Who asks, for errors.

    Returns
    -------
    Task
        With the reason in words.

    Examples
    --------
    >>> from kernelmaps.evaluation.checks import decide_task
    >>> decide_task(["left", "right", "left"]).name
    'classification'
    >>> print(decide_task([326, 327, 334, 335, 336, 337, 339, 340, 345, 351, 353]))
    regression (11 different whole numbers in 11 rows: most have a value of their own)
    """
    check_choice(owner, "task", task, TASKS)
    if y is None:
        return Task("none")
    if task != "auto":
        return Task(task)
    y = np.asarray(y)
    if y.dtype.kind not in "iuf":
        return Task("classification", "the target is not a number")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        bad = int(np.argmin(np.isfinite(y)))
        raise ValueError(
            f"{owner}: the target is {y[bad]} in row {bad}; drop the rows without a target first."
        )
    values, counts = np.unique(y, return_counts=True)
    if len(values) <= 2:
        return Task("classification", f"the target has {len(values)} different values")
    if y.dtype.kind == "f" and (values != np.round(values)).any():
        return Task("regression", "the target has values with fractions")
    return _classify_whole_numbers(values, counts)


def _classify_whole_numbers(values: np.ndarray, counts: np.ndarray) -> Task:
    n, rows = len(values), int(counts.sum())
    summary = f"{n} different whole numbers in {rows} rows"
    if 2 * n > rows:
        return Task("regression", f"{summary}: most have a value of their own")
    if ((values[0] == 0 and n >= _FEWEST_COUNTS) or n > _CLASSES_WITH_GAPS) and _looks_like_count(
        values, counts
    ):
        often, high = values[np.argmax(counts)], values[-1]
        pattern = f"most often {often:g} and rarer towards {high:g}, as counts are"
        return Task("regression", f"{summary}, {pattern}")
    if n <= _CLASSES_WITH_GAPS:
        return Task("classification", summary)
    low, high = float(values[0]), float(values[-1])
    if high - low + 1 > 1.2 * n:
        return Task("regression", f"{summary}, from {low:g} to {high:g} with gaps")
    if n <= _CLASSES_WITHOUT_GAPS:
        return Task("classification", f"{summary}, without gaps")
    equal = counts.min() >= max(2.0, 0.2 * counts.mean())
    if low in (0, 1) and equal and n <= _CLASSES_FROM_ZERO:
        return Task("classification", f"{summary}, counted from {low:g}, about equally frequent")
    return Task("regression", f"{summary}, from {low:g} to {high:g}")


def _looks_like_count(values: np.ndarray, counts: np.ndarray) -> bool:
    """Whether the frequencies of 0, 1, 2, … rise to one value and fall to rare ones, noise aside.

    Classes are in no order: their frequencies go up and down, or are about equal. The last value
    may stand for all larger ones ("9 or more") and is not looked at.
    """
    size = counts[:-1].astype(np.float64)
    top = int(np.argmax(size))
    if size[-1] > _RARE_COUNT * size[top] or (np.diff(values[:_FEWEST_COUNTS]) != 1).any():
        return False
    steps, noise = np.diff(size), 3 * np.sqrt(size[1:] + size[:-1])
    return bool((steps[:top] >= -noise[:top]).all() and (steps[top:] <= noise[top:]).all())
