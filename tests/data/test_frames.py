"""Columns are read alike from every kind of frame, gaps and categories included."""

import numpy as np
import pandas as pd
import pytest
from table_columns import columns_of

from kernelmaps.data.columns import is_frame
from kernelmaps.data.tables import first_column_without_numbers

pa = pytest.importorskip("pyarrow")

TABLE = {
    "size": [1.5, None, 3.0, 2.0],
    "count": [1, 2, 3, 2],
    "color": ["red", None, "blue", "red"],
    "sold": [True, False, None, True],
}


def polars_frame():
    return pytest.importorskip("polars").DataFrame(TABLE)


FRAMES = {
    "pandas": lambda: pd.DataFrame(TABLE),
    "categorical": lambda: pd.DataFrame(TABLE).astype({"color": "category"}),
    "nullable": lambda: pd.DataFrame(TABLE).convert_dtypes(),
    "pyarrow": lambda: pa.table(TABLE),
    "dictionary": lambda: pa.table(TABLE).set_column(
        2, "color", pa.array(TABLE["color"]).dictionary_encode()
    ),
    "polars": polars_frame,
    "objects": lambda: np.array(list(zip(*TABLE.values())), dtype=object),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_gives_the_same_columns(kind):
    X = FRAMES[kind]()
    size, count, color, sold = columns_of(X)
    names = [c.name for c in (size, count, color, sold)]
    assert names == (["x0", "x1", "x2", "x3"] if kind == "objects" else list(TABLE))
    np.testing.assert_array_equal(size.values, [1.5, np.nan, 3.0, 2.0])
    np.testing.assert_array_equal(count.values, [1, 2, 3, 2])
    named = [color.levels[k] if k >= 0 else None for k in color.codes]
    assert named == TABLE["color"]
    assert [sold.levels[k] if k >= 0 else None for k in sold.codes] == [
        "True",
        "False",
        None,
        "True",
    ]


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "polars"])
def test_a_frame_of_other_things_than_numbers_is_mixed(kind):
    assert is_frame(FRAMES[kind]())
    assert first_column_without_numbers(FRAMES[kind]()) == ("size", "missing values")
    assert first_column_without_numbers(np.array([[1.0, np.nan]])) is None
    for numbers in ([1, 2], [True, False]):
        assert first_column_without_numbers(pd.DataFrame({"a": [1.0, 2.0], "b": numbers})) is None
    for cells in (["x", "y"], pd.Categorical([1, 2]), pd.date_range("2024", periods=2)):
        actual = first_column_without_numbers(pd.DataFrame({"a": [1.0, 2.0], "b": cells}))
        assert actual == ("b", "text, categories or dates")


@pytest.mark.parametrize("chosen", [["b"], [1], [-1], [False, True]])
def test_numbers_can_be_categories(chosen):
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 2.5]})
    a, b = columns_of(X, chosen)
    assert not a.is_category
    assert [b.levels[k] for k in b.codes] == ["3", "2.5"]


@pytest.mark.parametrize("chosen", [["nothing"], [7], "b", 3])
def test_unknown_categorical_columns_are_refused(chosen):
    with pytest.raises(ValueError, match="Model: categorical_features"):
        columns_of(np.zeros((2, 2)), chosen)


def test_infinity_is_refused_with_its_column():
    with pytest.raises(ValueError, match=r"column 'a' of input X contains infinity \(row 1\)"):
        columns_of(pd.DataFrame({"a": [0.0, np.inf]}))


def test_levels_of_one_name_are_one():
    column = columns_of(np.array([[1], [1.0], ["1"]], dtype=object), [0])[0]
    assert len(set(column.codes)) == 1


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "polars"])
def test_whole_numbers_beyond_the_floats_are_levels_of_their_own(kind):
    """2⁶⁰ + 1 and 2⁶⁰ + 2 are the same float64."""
    make = {"pandas": pd.DataFrame, "pyarrow": pa.table}.get(kind)
    make = make or pytest.importorskip("polars").DataFrame
    numbers = [2**60 + 1, 2**60 + 2, 2**60 + 3, 2**60 + 1]
    column = columns_of(make({"id": numbers}), ["id"])[0]
    assert [column.levels[k] for k in column.codes] == [str(number) for number in numbers]


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "polars"])
def test_levels_of_float32_have_the_name_that_they_print_as(kind):
    numbers = np.array([0.1, 2.5, 0.1], dtype=np.float32)
    make = {"pandas": pd.DataFrame, "pyarrow": pa.table}.get(kind)
    make = make or pytest.importorskip("polars").DataFrame
    column = columns_of(make({"a": numbers}), ["a"])[0]
    assert [column.levels[k] for k in column.codes] == ["0.1", "2.5", "0.1"]


def test_dictionaries_may_have_unsigned_indices():
    indices = pa.array([0, None, 1], type=pa.uint32())
    X = pa.table({"color": pa.DictionaryArray.from_arrays(indices, ["red", "blue"])})
    column = columns_of(X)[0]
    assert [column.levels[k] if k >= 0 else None for k in column.codes] == ["red", None, "blue"]


def test_categories_of_the_same_name_are_one_level():
    values = pd.Categorical(["1", 1, None, "2"], categories=["1", 1, "2"])
    (column,) = columns_of(pd.DataFrame({"a": values}))
    assert (column.codes.tolist(), column.levels) == ([0, 0, -1, 1], ["1", "2"])
