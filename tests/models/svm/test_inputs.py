"""What additive SVMs do not take, and which estimator the message names."""

import numpy as np
import pytest
from scipy import sparse

import kernelmaps as km

BOTH = pytest.mark.parametrize("cls", [km.AdditiveSVC, km.AdditiveSVR])
GAMS = "AdditiveClassifier and AdditiveRegressor take text, categories and missing values"


def rows(n=30):
    return np.random.default_rng(0).random((n, 2)), np.arange(n) % 2


@BOTH
def test_arrays_with_gaps_or_text(cls):
    X, y = rows()
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match=rf"contains NaN \(row 3, column 1\).*{GAMS}"):
        cls().fit(bad, y)
    with pytest.raises(ValueError, match=f"NaN.*{GAMS}"):
        cls(km.HomogeneousMap()).fit(sparse.csr_matrix(bad), y)
    with pytest.raises(ValueError, match=f"NaN.*{GAMS}"):
        cls().fit(lambda: iter([(bad, y)]))
    words = r"column 0 of X holds the text .*AdditiveRegressor or AdditiveClassifier"
    with pytest.raises(ValueError, match=words):
        cls().fit(np.where(X > 0.5, "high", "low").astype(object), y)
    infinite = np.where(X > 0.9, np.inf, X)
    with pytest.raises(ValueError, match="infinity") as raised:
        cls().fit(infinite, y)
    assert "AdditiveClassifier" not in str(raised.value)  # GAMs do not take these either


@BOTH
def test_text_in_later_frames_is_named_by_its_column(cls):
    pandas = pytest.importorskip("pandas")
    X, y = rows()
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = cls().fit(frame, y)
    with pytest.raises(ValueError, match=rf"{cls.__name__}: column 'b' of X holds the text 'low'"):
        model.predict(frame.assign(b="low"))
    with pytest.raises(ValueError, match="column 'b' of X holds the text 'low'"):
        cls().fit([(frame, y), (frame.assign(b="low"), y)])


@BOTH
def test_frames_and_files_with_gaps_or_text(cls, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = rows()
    frame = pandas.DataFrame(X, columns=["a", "b"])
    high, begin = X[:, 0] > 0.5, f"{cls.__name__} takes complete numbers"
    for column in (np.where(high, "x", "y"), pandas.Categorical([1, 2] * (len(y) // 2))):
        with pytest.raises(ValueError, match=f"{begin}, and column 'c' holds text, .*{GAMS}"):
            cls().fit(frame.assign(c=column), y)
    with pytest.raises(ValueError, match=f"NaN.*{GAMS}"):
        cls().fit(frame.assign(c=np.where(high, np.nan, 1.0)), y)
    frame.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match=f"{begin} and does not read CSV files: pass.*{GAMS}"):
        cls().fit(tmp_path / "rows.csv", "y")
    frame.assign(y=y, c="x").to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=r"column 'c' holds text, not numbers.* or fit a GAM"):
        cls().fit(tmp_path / "rows.parquet", "y")
    model = cls().fit(frame, y)  # complete numbers
    assert model.term_names_ == ["a", "b"]


@BOTH
@pytest.mark.parametrize("dtype", ["bool", "boolean"])
def test_true_and_false_are_one_and_zero(cls, dtype):
    """One-hot columns of `pandas.get_dummies` are of this type."""
    pandas = pytest.importorskip("pandas")
    X, y = rows()
    frame = pandas.DataFrame(X, columns=["a", "b"]).assign(c=X[:, 0] > 0.5)
    predictions = [
        cls(random_state=0).fit(table, y).predict(table)
        for table in (frame.astype({"c": dtype}), frame.astype(float))
    ]
    np.testing.assert_array_equal(*predictions)


@BOTH
def test_rows_in_blocks_teach_the_names_of_columns(cls, tmp_path):
    """Columns of different scales: in another order they predict something else."""
    frame = pytest.importorskip("pandas").DataFrame(rows()[0] * [1, 100], columns=["a", "b"])
    table = frame.assign(y=rows()[1])
    table.to_parquet(tmp_path / "rows.parquet")
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(table)
    for data in (tmp_path / "rows.parquet", arrow, [(frame, table["y"])]):
        model = cls().fit(data, None if isinstance(data, list) else "y")
        assert model.feature_names_in_.tolist() == ["a", "b"]
        expected = model.predict(frame)
        for order in (frame[["b", "a"]], arrow.select(["b", "a"])):
            np.testing.assert_array_equal(model.predict(order), expected)


@pytest.mark.parametrize(("cls", "most"), [(km.AdditiveSVC, 13), (km.AdditiveSVR, 12)])
def test_estimators_are_composed(cls, most):
    """Few parameters, few classes to inherit from, and one object that predicts."""
    assert len(cls().get_params(deep=False)) == most
    ours = [base for base in cls.__mro__ if base.__module__.startswith("kernelmaps")]
    assert len(ours) <= 4
    X, y = rows()
    model = cls().fit(X, y)
    scores = model.predictor_.scores(X)[:, 0]
    expected = model.decision_function(X) if cls is km.AdditiveSVC else model.predict(X)
    np.testing.assert_array_equal(scores, expected)
