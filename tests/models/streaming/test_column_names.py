"""Streaming models keep the names of columns, and take later rows by them."""

import numpy as np
import pandas as pd
import pytest

import kernelmaps as km

NAMES = ["height", "width", "depth", "mass"]


def table(seed, n=120):
    """Columns of different scales: in another order they predict something else."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 5.0, 20.0, 0.1] + [0.0, 3.0, 50.0, 1.0]
    frame = pd.DataFrame(X, columns=NAMES)
    return frame.assign(price=X @ [3.0, -1.0, 0.1, 20.0] + 0.01 * rng.normal(size=n))


def written(frame, folder, kind, name="rows"):
    """The frame as a source of this kind."""
    if kind == "parquet":
        frame.to_parquet(folder / f"{name}.parquet", row_group_size=50)
        return folder / f"{name}.parquet"
    if kind == "csv":
        frame.to_csv(folder / f"{name}.csv", index=False)
        return folder / f"{name}.csv"
    if kind == "arrow":
        return pytest.importorskip("pyarrow").Table.from_pandas(frame)
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)


KINDS = pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "dask"])
MODELS = {
    "StreamingRidge": {"alpha": 1e-6},
    "StreamingRidgeClassifier": {},
    "StreamingLasso": {"alpha": 1e-4},
    "StreamingLassoClassifier": {},
    "StreamingPCA": {"n_components": 2},
}


def output(model, X):
    return model.transform(X) if hasattr(model, "transform") else model.predict(X)


@pytest.mark.parametrize(("kind", "name"), [
    *((kind, "StreamingRidge") for kind in ("parquet", "csv", "arrow", "dask")),
    *(("parquet", name) for name in MODELS if name != "StreamingRidge"),
])  # fmt: skip
def test_columns_in_another_order_are_taken_by_name(seed, tmp_path, kind, name):
    frame = table(seed)
    if "Classifier" in name:
        frame["price"] = np.where(frame["price"] > frame["price"].median(), "high", "low")
    model, target = getattr(km, name)(**MODELS[name]), ["price"]
    if name == "StreamingPCA":
        frame, target = frame[NAMES], []
    model.fit(written(frame, tmp_path, kind), *target)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_features_in_ == 4
    expected = output(model, frame[NAMES])
    km.save(model, tmp_path / "model.kmap")
    for one in (model, km.load(tmp_path / "model.kmap")):
        for order in (NAMES, NAMES[::-1], NAMES[2:] + NAMES[:2]):
            found = output(one, written(frame[order], tmp_path, kind, "later"))
            if expected.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
            else:
                np.testing.assert_array_equal(found, expected)


@KINDS
def test_a_missing_column_is_named(seed, tmp_path, kind):
    frame = table(seed)
    model = km.StreamingRidge().fit(written(frame, tmp_path, kind), "price")
    later = written(frame.drop(columns=["width", "mass", "price"]), tmp_path, kind, "later")
    with pytest.raises(ValueError, match="has no column 'width', 'mass'; it has 'height', 'depth'"):
        model.predict(later)


@KINDS
def test_further_columns_are_ignored_with_one_warning(seed, tmp_path, kind):
    frame = table(seed)
    model = km.StreamingRidge().fit(written(frame, tmp_path, kind), "price")
    expected = model.predict(frame[NAMES])
    more = frame[NAMES[::-1]].assign(id=[f"row {k}" for k in range(len(frame))], age=1.0)
    with pytest.warns(UserWarning, match="ignored: 'id', 'age'$") as caught:
        found = model.predict(written(more, tmp_path, kind, "later"))
    assert len(caught) == 1
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["csv", "dask"])
def test_columns_of_frames_are_found_by_name_and_missing_ones_refused(seed, tmp_path, kind):
    frame = table(seed)
    model = km.StreamingRidge().fit(written(frame, tmp_path, kind), "price")
    expected = model.predict(frame[NAMES])
    np.testing.assert_array_equal(model.predict(frame[NAMES[::-1]]), expected)
    for further in (model.predict, lambda X: model.partial_fit(X, frame["price"])):
        with pytest.raises(ValueError, match=r"Feature names seen at fit time.*missing"):
            further(frame[NAMES[1:]])
    model.partial_fit(frame[NAMES[::-1]], frame["price"])
    np.testing.assert_allclose(model.predict(frame[NAMES]), expected, rtol=0.1)
    assert model.n_samples_seen_ == 2 * len(frame)
    model.fit(frame[NAMES].to_numpy(), frame["price"])
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("make", [list, iter], ids=["list", "iterator"])
def test_chunks_that_are_frames_must_agree(seed, make):
    frame = table(seed)
    parts = [frame[:50], frame[50:]]
    whole = km.StreamingRidge().fit(frame[NAMES], frame["price"])
    model = km.StreamingRidge().fit(make([(part[NAMES], part["price"]) for part in parts]))
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
    turned = [parts[0][NAMES], parts[1][NAMES[::-1]]]
    beside = [part["price"] for part in parts]
    with pytest.raises(ValueError, match=r"chunk 1 has its columns in another order.* 'height', "):
        km.StreamingRidge().fit(make(list(zip(turned, beside))))
    with pytest.raises(ValueError, match="chunk 0 has its columns in another order"):
        model.predict(make([turned[1]]))
    with pytest.raises(ValueError, match="chunk 0 has columns that are not expected: 'price'"):
        model.predict(make([frame]))
    with pytest.raises(ValueError, match="chunk 0 has no column 'mass'"):
        model.predict(make([frame[NAMES[:3]]]))


def test_unlabelled_rows_are_taken_by_name(seed, tmp_path):
    frame = table(seed)
    rows, turned = (written(frame[order], tmp_path, "parquet", order[0]) for order in (
        [*NAMES, "price"], NAMES[::-1]))  # fmt: skip
    same = written(frame[NAMES], tmp_path, "parquet", "same")
    a = km.StreamingRidge(n_components=2).fit(rows, "price", unlabeled=turned)
    b = km.StreamingRidge(n_components=2).fit(rows, "price", unlabeled=same)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)


def test_models_of_columns_in_another_order_do_not_merge(seed):
    frame = table(seed)
    a = km.StreamingRidge().fit(frame[NAMES], frame["price"])
    b = km.StreamingRidge().fit(frame[NAMES[::-1]], frame["price"])
    with pytest.raises(ValueError, match=r"StreamingRidge\.merge: the other model has its columns"):
        a.merge(b)
