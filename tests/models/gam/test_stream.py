"""GAMs from files, chunks and Dask: the same model as in memory."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import kernelmaps as km
from benchmarks import attack_streams
from kernelmaps.data import tables
from kernelmaps.data.sources import RowSample, sampled_rows
from kernelmaps.data.tables import open_source
from kernelmaps.exceptions import MissingTargetWarning
from kernelmaps.models.gam import codebooks, training_rows
from kernelmaps.models.rows import term_rows

pa = pytest.importorskip("pyarrow")
# The column "flat" has one value.
pytestmark = pytest.mark.filterwarnings("ignore::kernelmaps.exceptions.SuspectColumnWarning")


def table(seed, n=3000):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.gamma(3.0, 2.0, n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 60, n)),
            "shop": rng.choice(["north", "south", "east"], n),
            "flat": np.ones(n),
        }
    )
    X.loc[rng.random(n) < 0.05, "shop"] = None
    rate = 0.2 * X["size"] + np.where(X["shop"] == "east", 0.7, 0) + X["age"].isna() * 0.5
    return X, rate.to_numpy(), rng


def assert_same(model, other, X, tol=1e-7):
    a, b = model.eval_terms(X), other.eval_terms(X)
    assert model.term_names_ == other.term_names_
    np.testing.assert_allclose(a, b, atol=tol * np.abs(a).max())
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=tol)
    np.testing.assert_allclose(model.edf_, other.edf_, rtol=1e-5)
    for name in ("deviance_explained_", "log_likelihood_", "aic_", "reml_"):
        expected = getattr(model, name)
        np.testing.assert_allclose(getattr(other, name), expected, rtol=1e-5, atol=1e-5)


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 700 rows, so that a pass has several, also of small files."""
    monkeypatch.setattr(term_rows, "CHUNK_ROWS", 700)
    monkeypatch.setattr(tables, "IN_MEMORY_BYTES", 0)


def stored(folder, frame, kind):
    if kind == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return folder / "t.csv"
    if kind == "parquet":
        frame.to_parquet(folder / "t.parquet", row_group_size=900)
        return folder / "t.parquet"
    (folder / "parts.parquet").mkdir()
    for at, (a, b) in enumerate(((0, 100), (100, 2500), (2500, len(frame)))):
        frame.iloc[a:b].to_parquet(folder / "parts.parquet" / f"{at}.parquet")
    return folder / "parts.parquet"


@pytest.mark.parametrize("kind", ["parquet", "folder", "csv"])
def test_files_give_the_model_of_memory(tmp_path, seed, kind, small_chunks):
    X, rate, rng = table(seed)
    y = rate + 0.3 * rng.normal(size=len(X))
    path = stored(tmp_path, X.assign(price=y), kind)
    model = km.AdditiveRegressor().fit(path, "price")
    assert_same(km.AdditiveRegressor().fit(X, y), model, X)
    assert list(model.feature_names_in_) == list(X.columns)
    assert model._n_rows == len(X)


def test_squared_loss_takes_one_pass_after_the_sample(tmp_path, seed, monkeypatch):
    monkeypatch.setattr(tables, "IN_MEMORY_BYTES", 0)
    X, rate, rng = table(seed)
    path = stored(tmp_path, X.assign(y=rate * rng.gamma(20, 0.05, len(X))), "parquet")
    count = []
    plain = training_rows.fold_chunks
    monkeypatch.setattr(
        training_rows, "fold_chunks", lambda *args: (count.append(1), plain(*args))[1]
    )
    km.AdditiveRegressor().fit(path)
    assert len(count) == 2  # the sample, and the sums that all is computed from
    poisson = km.AdditiveRegressor(loss="poisson").fit(path)
    # The start, a pass a step, and one to see whether strong effects hide a curve.
    assert len(count) == 2 + 2 + 1 + poisson.n_iter_ + 1


@pytest.mark.parametrize("loss", ["poisson", "quantile"])
def test_other_losses_exposures_and_weights(tmp_path, seed, loss, small_chunks):
    X, rate, rng = table(seed)
    exposure = rng.uniform(0.5, 2.0, len(X)) if loss != "quantile" else None
    mean = np.exp(0.3 * rate) * (1.0 if exposure is None else exposure)
    y = rng.poisson(mean).astype(float) if loss == "poisson" else mean * rng.gamma(5, 0.2, len(X))
    w = rng.integers(0, 3, len(X)).astype(float)
    frame = X.assign(y=y, sample_weight=w)
    options = {"sample_weight": "sample_weight"} | (
        {} if exposure is None else {"exposure": "years"}
    )
    frame = frame if exposure is None else frame.assign(years=exposure)
    path = stored(tmp_path, frame, "parquet")
    ours = km.AdditiveRegressor(loss=loss).fit(path, **options)
    held = km.AdditiveRegressor(loss=loss).fit(X, y, w, exposure=exposure)
    assert_same(held, ours, X, tol=1e-4 if loss == "quantile" else 1e-6)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_classes_from_a_file(tmp_path, seed, class_weight, small_chunks):
    X, rate, rng = table(seed)
    y = np.where(rng.random(len(X)) < 1 / (1 + np.exp(1 - rate)), "yes", "no")
    path = stored(tmp_path, X.assign(bought=pd.Categorical(y)), "parquet")
    options = {"class_weight": class_weight}
    ours = km.AdditiveClassifier(**options).fit(path, "bought")
    held = km.AdditiveClassifier(**options).fit(X, y)
    assert_same(held, ours, X, tol=1e-6)
    assert ours.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(ours.predict_proba(X), held.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_pairs_and_constraints_from_a_file(tmp_path, seed, loss, small_chunks):
    X, rate, rng = table(seed)
    mean = np.exp(0.1 * rate + 0.08 * np.where(X["shop"] == "east", X["size"], 0))
    y = rng.poisson(mean).astype(float)
    path = stored(tmp_path, X.assign(y=y), "parquet")
    options = {"loss": loss, "interactions": "auto", "constraints": {"age": "increasing"}}
    ours = km.AdditiveRegressor(**options).fit(path)
    assert_same(km.AdditiveRegressor(**options).fit(X, y), ours, X, tol=1e-6)
    assert "size × shop" in ours.term_names_


def test_chunks_of_any_kind(seed, small_chunks):
    X, rate, rng = table(seed)
    y = rate + 0.3 * rng.normal(size=len(X))
    cuts = [0, 11, 1200, len(X)]
    chunks = [(X.iloc[a:b], y[a:b]) for a, b in pairwise(cuts)]
    held = km.AdditiveRegressor().fit(X, y)
    for given in (chunks, lambda: iter(chunks), iter(chunks)):
        assert_same(held, km.AdditiveRegressor().fit(given), X)
    targets = km.AdditiveRegressor().fit([c[0] for c in chunks], y)
    assert_same(held, targets, X)


@pytest.mark.parametrize(
    ("cls", "kind"), [(km.AdditiveRegressor, "chunks"), (km.AdditiveClassifier, "dask")]
)
def test_rows_without_a_target_are_left_out_of_a_stream(seed, cls, kind, small_chunks):
    """One warning has their number; the model is that of the other rows."""
    X, rate, _ = table(seed)
    y = pd.Series(rate if cls is km.AdditiveRegressor else np.where(rate > 1, "high", "low"))
    y[:700] = None  # all rows of the first partition
    y[2999] = None
    parts = [slice(0, 700), slice(700, 2000), slice(2000, 3000)]
    if kind == "dask":
        dd = pytest.importorskip("dask.dataframe")
        frame = X.assign(price=y)
        given = dd.concat([dd.from_pandas(frame[rows], npartitions=1) for rows in parts]), "price"
    else:
        given = [(X[rows], y[rows]) for rows in parts], None
    with pytest.warns(MissingTargetWarning, match=f"{cls.__name__}: 701 rows without 'y'") as said:
        ours = cls().fit(*given)
    assert [item.category for item in said].count(MissingTargetWarning) == 1
    assert_same(cls().fit(X[700:2999], y[700:2999]), ours, X, tol=1e-6)
    assert ours._n_rows == 2299
    with pytest.raises(ValueError, match="the rows of the stream list have no target"):
        cls().fit([(X[:700], np.full(700, np.nan))])


def test_dask_frames_of_uneven_partitions(seed):
    pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    import dask.dataframe as dd

    X, rate, rng = table(seed, 2000)
    y = rate + 0.3 * rng.normal(size=len(X))
    late = y > np.median(y)
    frame = X.assign(price=y, late=late)
    parts = [frame.iloc[a:b] for a, b in ((0, 5), (5, 1500), (1500, 2000))]
    dask_frame = dd.concat([dd.from_pandas(part, npartitions=1) for part in parts])
    with distributed.Client(n_workers=2, processes=False, dashboard_address=":0"):
        ours = km.AdditiveRegressor().fit(dask_frame.drop(columns="late"), "price")
        classes = km.AdditiveClassifier(loss="log_loss").fit(
            dask_frame.drop(columns="price"), "late"
        )
    assert_same(km.AdditiveRegressor().fit(X, y), ours, X)
    assert_same(km.AdditiveClassifier(loss="log_loss").fit(X, late), classes, X, tol=1e-6)


def test_codes_of_a_sample(tmp_path, seed, monkeypatch):
    """With fewer rows in the sample than in the file the bins, and little else, are others."""
    X, rate, rng = table(seed)
    y = rate + 0.3 * rng.normal(size=len(X))
    path = stored(tmp_path, X.assign(y=y), "parquet")
    held = km.AdditiveRegressor().fit(X, y)
    monkeypatch.setattr(training_rows, "SAMPLE_ROWS", 600)
    ours = km.AdditiveRegressor().fit(path)
    assert not ours.predictor_.books[0].exact
    assert ours._n_rows == len(X)  # all rows are counted
    # The noise of the fit is 0.3·sqrt(edf/n); other bins change less than that.
    noise = 0.3 * np.sqrt(ours.edf_[0] / len(X))
    assert np.sqrt(np.mean((held.predict(X) - ours.predict(X)) ** 2)) < noise


def test_samples_do_not_depend_on_how_rows_are_cut(seed, tmp_path):
    """Rows of all row groups and chunks, as many from each part, the same as in memory."""
    a = np.arange(1000.0)
    frame = pd.DataFrame({"a": a, "y": np.zeros(1000)})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=1000)
    cuts = np.sort(np.random.default_rng(seed).choice(1000, 9))
    chunks = [frame[a:b] for a, b in pairwise([0, *cuts, 1000])]
    expected = a[sampled_rows(1000, 160)]
    assert len(expected) == 160
    # As many as of a draw without replacement, within four standard deviations.
    counts, _ = np.histogram(expected, 4, (0, 1000))
    assert (np.abs(counts - 40) < 4 * np.sqrt(160 * 0.25 * 0.75)).all()
    for given in (tmp_path / "t.parquet", chunks):
        sample = RowSample(160)
        for block in open_source(given, "y", frames=True).blocks(70):
            sample.update(block)
        values = np.concatenate([np.asarray(block.X["a"]) for block in sample.shrink()])
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("kind", ["one group", "groups", "function", "generator", "dask"])
def test_sorted_rows_have_the_codes_of_rows_in_memory(kind, tmp_path, small_chunks, monkeypatch):
    """Codes of a sample of the first rows would clip all others."""
    for module in (codebooks, training_rows):
        monkeypatch.setattr(module, "SAMPLE_ROWS", 1000)
    t = np.linspace(0, 1, 4000)
    frame = pd.DataFrame({"t": t, "late": np.where(t > 0.99, "new", "old"), "y": np.sin(12 * t)})
    X, y = frame[["t", "late"]], frame["y"]
    parts = [frame[k : k + 500] for k in range(0, 4000, 500)]
    chunks = [(part[["t", "late"]], part["y"]) for part in parts]
    if kind == "dask":
        dd = pytest.importorskip("dask.dataframe")
        given = dd.concat([dd.from_pandas(part, npartitions=1) for part in parts])
    elif kind in ("one group", "groups"):
        given = tmp_path / "t.parquet"
        frame.to_parquet(given, row_group_size=4000 if kind == "one group" else 300)
    else:
        given = (lambda: iter(chunks)) if kind == "function" else iter(chunks)
    held, ours = km.AdditiveRegressor().fit(X, y), km.AdditiveRegressor().fit(given)
    if kind == "dask":  # rows of partitions of unknown length have other numbers
        assert np.sqrt(np.mean((ours.predict(X) - y) ** 2)) < 0.01
        assert ours.predictor_.books[1].levels == ("old", "new")
    else:
        assert ours.predictor_.books[0].nodes.tolist() == held.predictor_.books[0].nodes.tolist()
        assert_same(held, ours, X)


@pytest.mark.parametrize("kind", ["parquet", "dask"])
def test_the_range_of_a_stream_is_that_of_all_rows(kind, tmp_path, small_chunks, monkeypatch):
    """Not of the sample that codes come from; rows of weight zero do not count."""
    monkeypatch.setattr(training_rows, "SAMPLE_ROWS", 100)
    a = np.random.default_rng(0).random(3000)
    a[[700, 2900, 2950]] = -5.0, 9.0, 99.0
    w = np.where(a == 99.0, 0.0, 1.0)
    frame = pd.DataFrame({"a": a, "y": np.sin(a), "w": w, "c": np.where(a > 0.5, "u", "v")})
    given = tmp_path / "t.parquet"
    frame.to_parquet(given)
    if kind == "dask":
        given = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=4)
    held = km.AdditiveRegressor().fit(frame[["a", "c"]], frame["y"], frame["w"])
    ours = km.AdditiveRegressor().fit(given, "y", "w")
    for book, own in zip(held.predictor_.books, ours.predictor_.books, strict=True):
        assert own.training_range == book.training_range


@pytest.mark.parametrize("seed", range(8))
def test_files_with_late_surprises_give_the_model_of_memory(seed, tmp_path):
    """Eight of the attacks of ``python -m benchmarks.attack_streams``."""
    what, how = attack_streams.attack(seed, tmp_path)
    assert what in ("same", "refused alike"), how


@pytest.mark.parametrize(
    ("frame", "call", "message"),
    [
        ({"a": ["x", "z"], "y": [None, np.inf]}, {}, r"parquet, row 1 .* 'y' holds infinity"),
        ({"a": ["x", "z"], "b": [1.0, 2.0]}, {}, "has no target: name the column"),
        ({"a": ["x", "z"], "b": [1.0, 2.0]}, {"y": "c"}, "has no column 'c'"),
        ({"a": ["x", "z"], "y": [1.0, 2.0]}, {"sample_weight": [-1.0, 1.0]}, "sample_weight must"),
        (
            {"a": ["x", "z"], "y": [1.0, 2.0]},
            {"sample_weight": [0.0, 0.0]},
            r"weights are zero|non-zero",
        ),
        ({"a": ["x", "z"], "y": [1.0, 2.0]}, {"sample_weight": [1.0] * 3}, "2 and 3"),
        ({"a": ["x", "z"], "y": ["x", "z"]}, {}, "y must be numbers"),
        ({"a": ["x", "z"], "y": [1.0, 2.0]}, {"exposure": "a"}, "exposure is for"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, frame, call, message):
    pd.DataFrame(frame).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=message):
        km.AdditiveRegressor().fit(tmp_path / "t.parquet", **call)


@pytest.mark.parametrize(
    ("target", "loss", "message"),
    [
        (-1.0, "poisson", "needs y >= 0; found -1"),
        (np.inf, "poisson", "infinity"),
        ("word", "squared_error", "must be numbers"),
    ],
)
def test_a_bad_target_is_named_by_its_own_row(target, loss, message, tmp_path, small_chunks):
    X, rate, _ = table(0)
    X, y = X[["size"]], rate.astype(object)
    y[100], y[2500] = np.nan, target
    chunks = ((X[a : a + 400], y[a : a + 400]) for a in range(0, len(y), 400))
    with pytest.raises(ValueError, match=rf"{message}.*chunk 6, row 100 \(row 2500 of the data\)"):
        km.AdditiveRegressor(loss=loss).fit(chunks)
    if target == -1.0:
        path = stored(tmp_path, X.assign(y=y.astype(float)), "parquet")
        warns = pytest.warns(MissingTargetWarning, match="1 row without 'y'")
        with warns, pytest.raises(ValueError, match=rf"{message}.*row 2500 of the data"):
            km.AdditiveRegressor(loss=loss).fit(path)


def test_chunks_of_a_generator_are_kept_for_further_passes(seed, small_chunks):
    X, rate, _ = table(seed, 500)
    halves = [slice(0, 250), slice(250, 500)]
    for model, y in (
        (km.AdditiveRegressor(loss="poisson"), np.round(rate)),
        (km.AdditiveClassifier(), rate > 1),
    ):
        once = clone(model).fit((X[rows], y[rows]) for rows in halves)
        assert_same(clone(model).fit(X, y), once, X, tol=1e-6)


def test_a_list_of_labels_beside_a_file_holds_labels(tmp_path, seed):
    """They are strings, as names of columns are."""
    X, rate, _ = table(seed, 300)
    labels = np.where(rate > np.median(rate), "yes", "no")
    path = stored(tmp_path, X, "csv")
    options = {"smoothing": "auto"}
    expected = km.AdditiveClassifier(**options).fit(path, labels)
    assert_same(km.AdditiveClassifier(**options).fit(path, list(labels)), expected, X)


def test_a_class_that_the_sample_does_not_have_is_learned(seed, monkeypatch):
    """Rows sorted by label: the start knows of one class, the fit of both."""
    monkeypatch.setattr(training_rows, "SAMPLE_ROWS", 500)
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.random(3000), "b": rng.random(3000)})
    y = (np.arange(3000) >= 2400).astype(int)
    X["a"] **= np.where(y == 1, 0.5, 1)
    chunks = [(X[k : k + 600], y[k : k + 600]) for k in range(0, 3000, 600)]
    model = km.AdditiveClassifier(loss="log_loss").fit(chunks)
    whole = km.AdditiveClassifier(loss="log_loss").fit(X, y)
    p = model.predict_proba(X)[:, 1]
    assert p.mean() == pytest.approx(0.2, rel=0.01)
    np.testing.assert_allclose(p, whole.predict_proba(X)[:, 1], atol=0.05)


@pytest.mark.parametrize("memory", [1 << 28, 0])
def test_a_frame_and_its_parquet_file_are_one_model(memory, seed, tmp_path, monkeypatch):
    """pandas writes categories of numbers and dates, and periods, as numbers and dates."""
    monkeypatch.setattr(tables, "IN_MEMORY_BYTES", memory)
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 4, 400)
    days = pd.to_datetime(["2024-01-01", "2024-02-01", "2024-03-05", "2024-07-01"])
    frame = pd.DataFrame(
        {
            "whole": pd.Categorical(np.array([10, 20, 30, 5])[code]).set_categories([30, 5, 10]),
            "real": pd.Categorical(np.array([1.5, 2.5, 0.5, 7.0])[rng.permutation(code)]),
            "date": pd.Categorical(days[rng.permutation(code)]),
            "day": pd.Categorical([day.date() for day in days[rng.permutation(code)]]),
            "period": pd.period_range("2023-01-01", periods=400, freq="D"),
            "y": code + rng.normal(size=400),
        }
    )
    path = tmp_path / "frame.parquet"
    frame.to_parquet(path, row_group_size=150)
    features = frame.drop(columns="y")
    model = km.AdditiveRegressor().fit(features, frame["y"])
    of_file = km.AdditiveRegressor().fit(path, "y")
    books, of_books = model.predictor_.books, of_file.predictor_.books
    assert [book.kind for book in books[:4]] == ["category"] * 4
    assert any(book.name == "period (weekday)" for book in books)
    assert [(b.name, b.kind, sorted(b.levels)) for b in books] == [
        (b.name, b.kind, sorted(b.levels)) for b in of_books
    ]
    np.testing.assert_allclose(of_file.predict(path), model.predict(features), rtol=1e-6)
