"""What statistics and folds refuse, and what the messages say."""

import numpy as np
import pytest
import scipy.sparse as sp

from kernelmaps.exceptions import FileFormatError
from kernelmaps.stats import (
    CodeSums,
    FoldMoments,
    Moments,
    fold,
    open_source,
)

ONES = np.ones((100, 2))


def moments(width=2, targets=1, **options):
    """Sums of three rows."""
    return Moments("real", **options).update(np.ones((3, width)), np.ones((3, targets)))


def folded(X=ONES, function=None, *, kind="none", name="fold", **columns):
    return fold(open_source(X, **columns), Moments(kind), function, block_rows=10, name=name)


def changed(values, place, value):
    values = np.array(values, float)
    values[place] = value
    return values


def chunks(value, kind):
    """Thirty chunks of ten rows, one of which holds another value."""
    rows = changed(np.ones((300, 4)), (173, 2), value)
    return (kind(part) for part in np.split(rows, 30))


def mapped_to(value):
    """A fold whose map has another value in its second block."""
    return folded(changed(ONES, (13, 1), 7), lambda X: np.where(X == 7, value, X))


def picky(X):
    if X[0, 0] == 30:
        raise ValueError("thirty is not a good number")
    return X


def counted(*codes):
    return CodeSums([3]).update(list(codes), np.zeros(2))


BYTE, LABELS = np.array([0, 1], np.uint8), Moments("class", classes=[0, 1])
FEW, MANY = (FoldMoments.empty(Moments(), n) for n in (2, 3))
NAN = changed(np.ones(100), 57, np.nan)
CALLS = [
    (lambda _: moments(tag="a" * 64).merge(moments(tag="b" * 64)),
     "another feature map cannot be merged: fold both with the same fitted map"),
    (lambda _: moments().merge(Moments("class")), r"another target \('class'"),
    (lambda _: moments().merge(moments(5)), "5 features"),
    (lambda _: moments().merge(moments(2, 4)), "4 targets"),
    (lambda _: MANY.merge(FEW), "of 2 parts cannot be merged into FoldMoments of 3"),
    (lambda _: moments().update(np.ones((3, 3)), BYTE), "3 features, the blocks before"),
    (lambda _: moments().update(ONES, ONES), "2 targets, the blocks before"),
    (lambda _: LABELS.update(np.ones((2, 2)), [0, 7]), r"\[7\] are not among the 2 class"),
    # Rows of a fold.
    *((lambda _, value=value, kind=kind: folded(chunks(value, kind), name="ridge"),
       rf"ridge: input X contains .*{value}.*chunk 17, row 3 \(row 173 of the data\), column 2")
      for value in ("NaN", "inf") for kind in (np.asarray, sp.csr_array)),
    (lambda _: folded(kind="real", y=NAN), r"y contains NaN or inf: chunk 5, row 7 \(row 57"),
    (lambda _: folded(sample_weight=NAN), "_weight contains NaN or inf: chunk 5, row 7"),
    (lambda _: folded(sample_weight=changed(np.ones(100), 5, -1)),
     "sample_weight is negative in chunk 0, row 5"),
    *((lambda _, value=value: mapped_to(value),
       r"fold: chunk 1: features are NaN, inf or too large to square \(column 1\)")
      for value in (np.nan, np.inf, 1e200)),
    (lambda _: folded(np.arange(100.0)[:, None], picky), "fold: chunk 3: thirty is not"),
    # Codes, which would write elsewhere.
    (lambda _: counted(np.array([0, 5], np.uint8)), "below 3"),
    (lambda _: counted(np.array([0, 1])), "unsigned"),
    (lambda _: counted(BYTE[:1]), "1 codes for 2 rows"),
    (lambda _: counted(BYTE, BYTE), "expected 1"),
    (lambda _: CodeSums([3]).merge(CodeSums([4])), "same coding"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_bad_calls(call, message, tmp_path):
    with pytest.raises((ValueError, TypeError, FileFormatError), match=message):
        call(tmp_path)
