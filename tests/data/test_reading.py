"""Tables from files: the same rows whatever the format, and errors that name the place."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import normalize

from kernelmaps.data import open_source
from kernelmaps.data.reading import Rows
from kernelmaps.datasets import read_rows

X = np.array([[0.5, 1.0], [2.0, 0.0], [0.0, 3.25]])
Y = np.array([1, 0, 1])


def write_csv(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def csv(tmp_path):
    lines = ["a,b,label", *(f"{row[0]},{row[1]},{y}" for row, y in zip(X, Y))]
    return write_csv(tmp_path / "mine.csv", "\n".join(lines))


def test_csv_with_a_target_by_name(csv):
    rows = read_rows(csv, target="label")
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, Y)
    assert (rows.columns, rows.target) == (["a", "b"], "label")
    assert rows.y.dtype == np.int64


def test_columns_are_chosen_and_ordered_by_name(csv):
    rows = read_rows(csv, target="label", columns=["b"])
    np.testing.assert_array_equal(rows.X, X[:, [1]])
    np.testing.assert_array_equal(read_rows(csv, columns=["b", "a"]).X, X[:, ::-1])


def test_true_and_false_are_one_and_zero(tmp_path):
    """One-hot columns of `pandas.get_dummies` are written so; in Parquet they are booleans."""
    frame = pd.DataFrame({"a": [0.5, 1.0], "b": [True, False], "c": [False, False], "y": [1, 2]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    for name in ("rows.csv", "rows.parquet"):
        rows = read_rows(tmp_path / name, target="y")
        np.testing.assert_array_equal(rows.X, [[0.5, 1, 0], [1, 0, 0]])
    mixed = write_csv(tmp_path / "mixed.csv", "a,b,y\n1,true,1\n2,maybe,2\n")
    with pytest.raises(ValueError, match="column 'b'"):
        read_rows(mixed, target="y")


def test_every_format_gives_the_same_rows(tmp_path):
    np.save(tmp_path / "mine.npy", X)
    assert read_rows(tmp_path / "mine.npy").y is None
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y}).to_parquet(tmp_path / "mine.parquet")
    np.testing.assert_array_equal(read_rows(tmp_path / "mine.parquet").y, Y)
    for name in ("mine.npy", "mine.parquet"):
        np.testing.assert_array_equal(read_rows(tmp_path / name).X, X)


def test_a_dataset_by_name():
    rows = read_rows("digits")
    assert rows.X.shape == (900, 64)
    assert len(rows.y) == 900


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_norms_are_those_of_scikit_learn(norm):
    X = np.array([[3.0, -4.0], [0.0, 0.0], [0.5, 1e-3]])
    expected = normalize(X, norm=norm)
    np.testing.assert_array_equal(Rows("rows", X, None).normalized(norm).X, expected)


# ---- bad input ----------------------------------------------------------------------------------


def assert_refused(path, match, **options):
    with pytest.raises(ValueError, match=match):
        read_rows(path, **options)


def test_an_unknown_column_is_named_with_those_that_exist(csv):
    assert_refused(csv, r"no column 'c'; it has 'a', 'b', 'label'", columns=["a", "c"])
    assert_refused(csv, r"no target 'lable'; it has 'a', 'b', 'label'", target="lable")


def test_a_cell_that_is_no_number_is_named_by_line_and_column(tmp_path):
    path = write_csv(tmp_path / "bad.csv", "a,b\n1,2\n3,four\n")
    assert_refused(path, r"line 3, column 'b': the cell holds 'four'")
    path = write_csv(tmp_path / "bad.csv", "a,b\n1,2\n,4\n")
    assert_refused(path, r"line 3, column 'a': the cell is empty")


def test_numbers_of_models_of_numbers_are_written_as_those_of_tables(tmp_path):
    """Decimal commas, thousands and units, decided by the column, not by the block or the cell."""
    path = write_csv(tmp_path / "mine.csv", "a;b;y\n1,5;1.250 €;1,5\n2;1.000,5 €;2\n")
    rows = read_rows(path, target="y")
    np.testing.assert_array_equal(rows.X, [[1.5, 1250], [2, 1000.5]])
    np.testing.assert_array_equal(rows.y, [1.5, 2])
    (block,) = open_source(path).blocks(10)
    np.testing.assert_array_equal(block.X, rows.X)
    np.testing.assert_array_equal(block.y, rows.y)
    write_csv(path, "a;b\n" + "".join(f"{k},5;{k % 7}\n" for k in range(99)) + "k.A.;3\n")
    assert_refused(path, r"line 101, column 'a': the cell holds 'k\.A\.', not a finite number")


def test_a_missing_value_of_the_target_is_named(tmp_path):
    path = write_csv(tmp_path / "bad.csv", "a,y\n1,x\n2,\n3,\n")
    assert_refused(path, r"line 3: 'y' is missing \(rows without it: 2\)")


def test_a_table_without_rows_is_refused(tmp_path):
    assert_refused(write_csv(tmp_path / "bad.csv", "a,b\n"), "no rows")


def test_columns_that_are_no_features_are_dropped(tmp_path):
    path = write_csv(tmp_path / "mine.csv", "id,a,label\nr1,1,x\nr2,2,z\n")
    rows = read_rows(path, target="label", drop=["id"])
    np.testing.assert_array_equal(rows.X, [[1], [2]])
    assert rows.columns == ["a"]
    assert_refused(path, "line 2, column 'id': the cell holds 'r1'.*drop=", target="label")
    assert_refused(path, "no column 'ids'.*Did you mean 'id'", drop=["ids"])


def test_the_target_is_asked_for_before_cells_are_read(tmp_path):
    path = write_csv(tmp_path / "mine.csv", "a,label\n1,x\n2,z\n")
    assert_refused(path, "no target: .*target=.*'a', 'label'", need_target=True)


def test_rows_to_predict_need_no_target(tmp_path):
    path = write_csv(tmp_path / "new.csv", "a,label\n1,\n2,\n")
    rows = read_rows(path, target="label", with_target=False)
    assert rows.columns == ["a"]
    assert rows.y is None
    write_csv(path, "a\n1\n")
    assert read_rows(path, target="label", with_target=False).columns == ["a"]


@pytest.mark.parametrize("cell", ["nan", "inf"])
def test_cells_that_are_no_finite_numbers_are_named(tmp_path, cell):
    path = write_csv(tmp_path / "mine.csv", f"a,b\n1,2\n3,{cell}\n")
    assert_refused(path, "line 3, column 'b'")
    np.save(tmp_path / "mine.npy", np.array([[1.0, 2.0], [3.0, float(cell)]]))
    assert_refused(tmp_path / "mine.npy", "row 1 .*, column 1: the cell is empty or infinite")


def test_parquet_reads_only_the_columns_that_are_asked_for(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "mine.parquet"
    frame = pd.DataFrame({"id": ["r1", "r2"], "a": [1.0, 2.0], "b": [3, 4], "c": ["x", None]})
    frame.to_parquet(path)
    rows = read_rows(path, columns=["b", "a"])
    np.testing.assert_array_equal(rows.X, [[3, 1], [4, 2]])
    assert read_rows(path, drop=["id", "c"]).columns == ["a", "b"]
    assert_refused(path, "row 1 .*: 'c' is missing", target="c", drop=["id"])
    rows = read_rows(path, target="c", drop=["id"], with_target=False)
    assert (rows.columns, rows.y) == (["a", "b"], None)


def test_a_second_npy_holds_the_target(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "labels.npy", Y)
    rows = read_rows(tmp_path / "X.npy", target=str(tmp_path / "labels.npy"))
    np.testing.assert_array_equal(rows.y, Y)
    assert_refused(tmp_path / "X.npy", "no names of columns", drop=["a"])


# ---- text that is parsed exactly or refused -----------------------------------------------------


def targets(tmp_path, *cells):
    lines = ["a,y", *(f"{i},{cell}" for i, cell in enumerate(cells))]
    return write_csv(tmp_path / "targets.csv", "\n".join(lines))


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        (["9007199254740992", "9007199254740993"], np.int64),  # one number in float64
        (["9007199254740992.0", "9007199254740993."], np.int64),
        (["9223372036854775807", "-9223372036854775808"], np.int64),
        (["10000000000000000000", "20000000000000000000"], np.float64),  # exact there
        (["1e20", "3"], np.float64),
        (["3.0", "-4"], np.int64),
        (["1e15", "2.5"], np.float64),
    ],
)
def test_targets_are_the_numbers_in_the_text(tmp_path, cells, dtype):
    y = read_rows(targets(tmp_path, *cells)).y
    assert y.dtype == dtype
    assert [Fraction(value) for value in y.tolist()] == [Fraction(cell) for cell in cells]


@pytest.mark.parametrize("cell", ["9223372036854775809", "inf", "-Infinity", "1e999", "9" * 400])
def test_targets_that_no_type_holds_are_refused(tmp_path, cell):
    fault = "not a finite number" if len(cell) != 19 else "neither a 64-bit integer nor a float64"
    assert_refused(targets(tmp_path, "1", cell), f"line 3: the target 'y' holds .* {fault}")


def test_a_large_integer_between_fractions_is_refused(tmp_path):
    assert_refused(targets(tmp_path, "0.5", "9007199254740993"), "line 3: the target 'y' holds")


def test_labels_with_underscores_are_text(tmp_path):
    """Python reads 1_2 as 12: two classes would become one."""
    assert read_rows(targets(tmp_path, "1_2", "12")).y.tolist() == ["1_2", "12"]
    assert_refused(
        write_csv(tmp_path / "cells.csv", "a,y\n1_2,0\n12,1\n"), "column 'a': the cell holds '1_2'"
    )


# ---- damaged text and files ---------------------------------------------------------------------
