"""The fold on Dask: the same sums, on any scheduler, with workers that die."""

import multiprocessing
import os
import pickle
import signal
from contextlib import nullcontext
from unittest import mock

import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler

import kernelmaps as km
from kernelmaps.data import dask as dask_rows
from kernelmaps.stats import FoldMoments, KernelMoments, Moments, fold, folding, open_source

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")


PRELOADED = ["distributed", "sklearn.kernel_approximation", "kernelmaps.stats"]


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    multiprocessing.set_forkserver_preload(PRELOADED)
    options = {"distributed.scheduler.allowed-failures": 5, "distributed.admin.log-length": 0}
    if "forkserver" in multiprocessing.get_all_start_methods():
        options["distributed.worker.multiprocessing-method"] = "forkserver"
    with (
        dask.config.set(options),
        # Imported once, by the process that all workers are forks of.
        mock.patch.object(distributed.utils, "_forkserver_preload_set", True, create=True),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            protocol="tcp://",
        ) as cluster,
        distributed.Client(cluster.scheduler_address, set_as_default=False) as client,
    ):
        assert client.scheduler.address.startswith("tcp://")
        yield client


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 6)) + 3
    return X, rng.integers(0, 3, 2000), rng.uniform(0.5, 2, 2000)


MAP = RBFSampler(gamma=0.1, n_components=20, random_state=0).fit(np.zeros((1, 6)))


def assert_equal_sums(a, b):
    for x, y in zip(getattr(a, "parts", [a]), getattr(b, "parts", [b])):
        assert (x.n, x.tag) == (y.n, y.tag)
        for name in ("scatter", "cross") if x.V is not None else ("scatter",):
            left, right = getattr(x, name)(), getattr(y, name)()
            np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10 * np.abs(right).max())


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dask_array_without_a_cluster(rows, scheduler, dtype):
    X, y, w = rows
    X = X.astype(dtype)
    exact = fold(open_source(X, y, w), Moments("class"), MAP.transform, block_rows=250)
    with dask.config.set(scheduler=scheduler):
        source = open_source(da.from_array(X, (500, 2)), da.from_array(y, 300), w)
        actual = fold(source, Moments("class"), MAP.transform, block_rows=250)
    assert_equal_sums(actual, exact)


@pytest.mark.parametrize(
    "zero",
    [
        Moments("class"),
        FoldMoments.empty(Moments("class"), 3),
        KernelMoments([Moments(), Moments()], [5, 15]),
    ],
)
def test_all_statistics_fold_on_workers(rows, zero, client):
    X, y, w = rows
    exact = fold(open_source(X, y, w), zero.zero(), MAP.transform, block_rows=200)
    source = open_source(da.from_array(X, (400, 6)), y, w)
    with client.as_current():
        actual = fold(source, zero.zero(), MAP.transform, block_rows=200)
    assert_equal_sums(actual, exact)


def test_dask_dataframe(rows, client):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    X, y, w = rows
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=y, w=w)
    exact = fold(open_source(X, y, w), Moments("class"), block_rows=5000)
    for scheduler in (nullcontext(), client.as_current()):
        source = open_source(dd.from_pandas(frame, npartitions=4), "label", "w")
        with scheduler:
            assert_equal_sums(fold(source, Moments("class")), exact)


def kill_once(folder):
    """A map whose first call in a worker process kills that process."""

    def transform(X):
        try:
            os.close(os.open(f"{folder}/killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return MAP.transform(X)
        os.kill(os.getpid(), signal.SIGKILL)

    return transform


def test_a_worker_that_dies_is_retried(rows, client, tmp_path):
    X, y, _ = rows
    exact = fold(open_source(X, y), Moments("class"), MAP.transform, block_rows=200)
    before = set(client.scheduler_info(n_workers=-1)["workers"])
    source = open_source(da.from_array(X, (200, 6)), y)
    with client.as_current():
        actual = fold(source, Moments("class"), kill_once(str(tmp_path)), block_rows=200)
    assert (tmp_path / "killed").exists()
    assert_equal_sums(actual, exact)
    client.wait_for_workers(2, timeout=300)
    assert set(client.scheduler_info(n_workers=-1)["workers"]) != before  # one is new


def test_tasks_carry_specs_and_statistics_never_rows(rows, monkeypatch):
    """Sizes of what a task gets beside its partition, and of what comes out of it."""
    sizes, merged = [], []
    leaf, merge = folding._fold_partition, dask_rows._merge

    def weighed(number, partition, *arguments):
        result = leaf(number, partition, *arguments)
        sizes.append((len(pickle.dumps(arguments)), len(pickle.dumps(result))))
        return result

    monkeypatch.setattr(folding, "_fold_partition", weighed)
    monkeypatch.setattr(dask_rows, "_merge", lambda p: merged.append(len(p)) or merge(p))
    X, y, _ = rows
    with dask.config.set(scheduler="sync"):
        stats = fold(open_source(da.from_array(X, (100, 6)), y), Moments("class"), MAP.transform)
    assert stats.n == 2000
    assert len(sizes) == 20
    assert np.max(sizes) < 8_000  # the map: 6 × 20 weights; 20 × 20 sums
    assert sorted(merged) == [3, 4, 8, 8]  # 20 partitions → 3 nodes → 1


# ---- estimators: the same classes, no twins -----------------------------------------------------


@pytest.mark.parametrize("fitted", [True, False])
def test_estimators_on_a_cluster(rows, client, fitted):
    X, y, w = rows
    dX, dy, dw = da.from_array(X, (250, 6)), da.from_array(y, 250), da.from_array(w, 250)
    feature_map = MAP if fitted else RBFSampler(gamma=0.1, n_components=20, random_state=0)
    options = {"block_rows": 250}
    for make in (
        lambda: km.StreamingRidgeClassifier([0.1, 1.0], feature_map, n_components=8, **options),
        lambda: km.StreamingRidgeClassifier([0.1, 1.0], feature_map, validation="gcv", **options),
        lambda: km.StreamingRidgeClassifier(
            1.0, [(slice(3), RBFSampler(n_components=9, random_state=0), 5), (None, feature_map, 6)]
        ),
    ):
        exact = make().fit(X, y, w)
        with client.as_current():
            actual = make().fit(dX, dy, dw)
        assert actual.alpha_ == exact.alpha_
        np.testing.assert_allclose(actual.coef_, exact.coef_, rtol=1e-7, atol=1e-9)
        if exact.alpha != 1.0:
            errors = [m.cv_results_["mean_squared_error"] for m in (actual, exact)]
            np.testing.assert_allclose(errors[0], errors[1], rtol=1e-9)
    with client.as_current():
        pca = km.StreamingPCA(4, MAP).fit(dX)
    np.testing.assert_allclose(
        pca.components_, km.StreamingPCA(4, MAP).fit(X).components_, atol=1e-9
    )


# ---- refusals -----------------------------------------------------------------------------------


def test_bad_row_names_its_partition(rows):
    X = rows[0].copy()
    X[1234, 2] = np.nan
    message = (
        r"partition 2: input X contains NaN: chunk 2, row 34 \(row 1234 of the data\), column 2"
    )
    with dask.config.set(scheduler="sync"), pytest.raises(ValueError, match=message):
        fold(open_source(da.from_array(X, (500, 6))), Moments(), block_rows=100)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda X, y: open_source(da.from_array(X, (500, 6)), da.from_array(y[:-1])),
            "inconsistent",
        ),
        (lambda X, y: open_source(da.from_array(X, (500, 6)), y[:-1]), "inconsistent"),
        (lambda X, y: open_source(da.from_array(y, 500)), "two dimensions"),
        (lambda X, y: open_source(unknown(X), y), "unknown lengths"),
        (lambda X, y: open_source(unknown(X), da.from_array(y, 100)), "4 partitions, y has 20"),
    ],
)
def test_collections_that_do_not_fit_are_refused(rows, make, message):
    with pytest.raises(ValueError, match=message):
        make(*rows[:2])


def unknown(X):
    rows = da.from_array(X, (500, 6))
    return rows[rows[:, 0] > -1e9]


def test_partitions_of_unknown_length(rows):
    X, y, _ = rows
    exact = fold(open_source(X, y), Moments("class"), block_rows=500)
    labels = da.from_array(y, 500)
    with dask.config.set(scheduler="sync"):
        actual = fold(open_source(unknown(X), labels), Moments("class"), block_rows=500)
    assert_equal_sums(actual, exact)


def test_workers_with_a_device_of_their_own(client, rows):
    """As with one worker for each GPU: a worker maps and sums on the device that it sees.

    One block, since every worker that has one imports torch.
    """
    pytest.importorskip("torch")
    X, y, w = rows
    feature_map = km.RandomFourierMap("gaussian", 30, random_state=0).fit(X)
    here = km.StreamingRidge(1.0, feature_map=feature_map).fit(X, y, w)
    there = km.StreamingRidge(1.0, feature_map=feature_map, device="cpu")
    chunks = [da.from_array(values, chunks=values.shape) for values in (X, y, w)]
    with client.as_current():
        there.fit(*chunks)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=0, atol=1e-8)
