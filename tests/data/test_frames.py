"""Columns are read alike from every kind of frame, gaps and categories included."""

import numpy as np
import pandas as pd
import pytest

from kernelmaps.data.frames import is_frame, is_mixed, read_columns

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
    size, count, color, sold = read_columns(X, "Model", names=list(TABLE))
    assert [c.name for c in (size, count, color, sold)] == list(TABLE)
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
    assert is_mixed(FRAMES[kind]())
    assert not is_mixed(np.array([[1.0, np.nan]]))
    assert not is_mixed(pd.DataFrame({"a": [1.0, 2.0]}))
    assert is_mixed(pd.DataFrame({"a": [1.0, np.nan]}))


def test_dates_are_seconds():
    days = pd.to_datetime(["1970-01-02", None])
    expected = [86400.0, np.nan]
    for X in (pd.DataFrame({"d": days}), pa.table({"d": days})):
        np.testing.assert_array_equal(read_columns(X, "Model")[0].values, expected)
    zoned = pd.DataFrame({"d": days.tz_localize("UTC")})
    np.testing.assert_array_equal(read_columns(zoned, "Model")[0].values, expected)


@pytest.mark.parametrize("chosen", [["b"], [1], [-1], [False, True]])
def test_numbers_can_be_categories(chosen):
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 2.5]})
    a, b = read_columns(X, "Model", chosen)
    assert not a.is_category
    assert [b.levels[k] for k in b.codes] == ["3", "2.5"]


@pytest.mark.parametrize("chosen", [["nothing"], [7], "b", 3])
def test_unknown_categorical_columns_are_refused(chosen):
    with pytest.raises(ValueError, match="Model: categorical_features"):
        read_columns(np.zeros((2, 2)), "Model", chosen)


def test_infinity_is_refused_with_its_column():
    with pytest.raises(ValueError, match=r"column 'a' of input X contains infinity \(row 1\)"):
        read_columns(pd.DataFrame({"a": [0.0, np.inf]}), "Model")


def test_levels_of_one_name_are_one():
    column = read_columns(np.array([[1], [1.0], ["1"]], dtype=object), "Model", [0])[0]
    assert len(set(column.codes)) == 1


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "polars"])
def test_whole_numbers_beyond_the_floats_are_levels_of_their_own(kind):
    """2⁶⁰ + 1 and 2⁶⁰ + 2 are the same float64."""
    make = {"pandas": pd.DataFrame, "pyarrow": pa.table}.get(kind)
    make = make or pytest.importorskip("polars").DataFrame
    numbers = [2**60 + 1, 2**60 + 2, 2**60 + 3, 2**60 + 1]
    column = read_columns(make({"id": numbers}), "Model", ["id"])[0]
    assert [column.levels[k] for k in column.codes] == [str(number) for number in numbers]


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "polars"])
def test_levels_of_float32_have_the_name_that_they_print_as(kind):
    numbers = np.array([0.1, 2.5, 0.1], dtype=np.float32)
    make = {"pandas": pd.DataFrame, "pyarrow": pa.table}.get(kind)
    make = make or pytest.importorskip("polars").DataFrame
    column = read_columns(make({"a": numbers}), "Model", ["a"])[0]
    assert [column.levels[k] for k in column.codes] == ["0.1", "2.5", "0.1"]


def test_dictionaries_may_have_unsigned_indices():
    indices = pa.array([0, None, 1], type=pa.uint32())
    X = pa.table({"color": pa.DictionaryArray.from_arrays(indices, ["red", "blue"])})
    column = read_columns(X, "Model")[0]
    assert [column.levels[k] if k >= 0 else None for k in column.codes] == ["red", None, "blue"]


def test_categories_of_the_same_name_are_one_level():
    values = pd.Categorical(["1", 1, None, "2"], categories=["1", 1, "2"])
    (column,) = read_columns(pd.DataFrame({"a": values}), "Model")
    assert (column.codes.tolist(), column.levels) == ([0, 0, -1, 1], ["1", "2"])
