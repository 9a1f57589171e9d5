"""Targets of files: exact numbers or labels, and errors that name the place."""

import numpy as np
import pyarrow as pa
import pytest

from kernelmaps.data.targets import target_values
from kernelmaps.data.text_cells import Text
from kernelmaps.exceptions import SuspectColumnWarning


def values(*cells):
    return target_values(Text(pa.array(cells, pa.string())), "y", lambda row: f"row {row}")


@pytest.mark.parametrize(
    ("cells", "y", "dtype"),
    [
        (["1", "3.0", "-2"], [1, 3, -2], "i"),
        (["1.5", "2"], [1.5, 2.0], "f"),
        (["9007199254740993", "1"], [9007199254740993, 1], "i"),
        (["$1,200.50", "$3"], [1200.5, 3.0], "f"),
        (["1,5", "2"], [1.5, 2.0], "f"),
        (["yes ", "no"], ["yes", "no"], "U"),
        (["01", "02"], ["01", "02"], "U"),
        (["true", "FALSE"], [True, False], "b"),
        (["none", "some"], ["none", "some"], "U"),
    ],
)
def test_numbers_and_labels(cells, y, dtype):
    actual, there = values(*cells)
    assert actual.dtype.kind == dtype
    assert actual.tolist() == y
    assert there.all()


def test_rows_without_a_target_are_marked():
    y, there = values("1", "", "NA", "none", "-", "2")
    assert y.tolist() == [1, 2]
    assert there.tolist() == [True, False, False, False, False, True]
    y, there = values("a", "none", "", None, "b")
    assert y.tolist() == ["a", "none", "b"]
    assert there.tolist() == [True, True, False, False, True]


def test_typed_columns_are_those_of_text():
    y, there = target_values(np.array([1.0, np.nan, 3.0]), "y", str)
    assert (y.tolist(), y.dtype.kind, there.tolist()) == ([1, 3], "i", [True, False, True])
    y, _ = target_values(np.array([1, 2], np.int32), "y", str)
    assert y.dtype == np.int32
    with pytest.raises(ValueError, match="target 'y' holds dates"):
        target_values(np.array(["2024-01-01"], "M8[s]"), "y", str)
    with pytest.raises(ValueError, match=r"^2: the target 'y' holds infinity"):
        target_values(np.array([np.nan, 1.0, np.inf]), "y", str)


def test_a_doubt_about_a_column_names_no_line():
    """A block's first line is not where the doubtful cell is."""
    cells = Text(pa.array(["1.250", "3.500"]))
    with pytest.warns(SuspectColumnWarning, match="^None: the target 'y' holds cells such as"):
        target_values(cells, "y", str)


@pytest.mark.parametrize(
    ("cells", "match"),
    [
        (["1", "inf"], "row 1: the target 'y' holds 'inf', which is not a finite number"),
        (["0.5", "9007199254740993"], "row 1: .* neither a 64-bit integer nor a float64"),
        ([*map(str, range(50)), "free"], "row 50: the target 'y' holds numbers, and 'free' in 1 r"),
    ],
)
def test_targets_that_are_refused(cells, match):
    with pytest.raises(ValueError, match=match):
        values(*cells)
