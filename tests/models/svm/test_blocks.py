"""Additive models from blocks of rows: the same minimum as in memory, and one pass by chunks."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.stats import open_source

ONE = {"n_jobs": 1, "random_state": 0}


def data(seed, n=240):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    score = np.sin(7 * X[:, 0]) + 2 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    return X, score, np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))


def chunks(*arrays, rows=80):
    return lambda: (
        tuple(a[k : k + rows] for a in arrays) for k in range(0, arrays[0].shape[0], rows)
    )


@pytest.mark.parametrize("is_sorted", [False, True])
def test_blocks_reach_the_minimum_of_a_fit_in_memory(seed, is_sorted):
    """Both certify their gap: the objectives differ by at most tol times the objective.

    In blocks of one class only, Σα = 0 is reached across blocks.
    """
    X, score, _ = data(seed)
    y = score > np.median(score)
    if is_sorted:
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    settings = {"C": 0.1, "tol": 1e-4, "max_iter": 3000, **ONE}
    inside = km.AdditiveSVC(**settings).fit(X, y)
    outside = km.AdditiveSVC(**settings).fit(chunks(X, y))
    assert (outside.duality_gap_ <= 1e-4 * outside.objective_).all()
    np.testing.assert_allclose(outside.objective_, inside.objective_, rtol=1e-4)
    np.testing.assert_allclose(outside.dual_coef_.sum(axis=0), 0, atol=1e-9)
    # ½|w − w*|² is at most the gap, and |ψ − mean|² here below 30.
    bound = 2 * np.sqrt(2 * 1e-4 * inside.objective_.max() * 30)
    assert np.abs(outside.decision_function(X) - inside.decision_function(X)).max() < bound


def test_regression_from_a_file_with_weights(seed, tmp_path):
    X, score, _ = data(seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2, len(score))
    np.save(tmp_path / "X.npy", X)
    settings = {"C": 0.05, "tol": 1e-4, "max_iter": 3000, **ONE}
    outside = km.AdditiveSVR(**settings).fit(str(tmp_path / "X.npy"), score, weight)
    inside = km.AdditiveSVR(**settings).fit(X, score, weight)
    assert outside.objective_[0] == pytest.approx(inside.objective_[0], rel=1e-4)
    opened = km.AdditiveSVR(**settings).fit(open_source(X, score, weight))
    assert opened.objective_[0] == pytest.approx(inside.objective_[0], rel=1e-4)


def test_chunks_one_by_one(seed):
    """One pass comes close to the minimum of all, and nothing of a chunk is kept."""
    X, score, _ = data(seed, n=600)
    y = np.array(["low", "high"])[(score > np.median(score)).astype(int)]
    unit = km.SplineMap(domain=(0, 1))
    model = km.AdditiveSVC(unit, C=0.1, **ONE)
    for own in chunks(X, y, rows=200)():
        model.partial_fit(*own, classes=["low", "high"])
    assert model.n_samples_seen_ == 600
    whole = km.AdditiveSVC(unit, C=0.1, **ONE).fit(X, y)
    assert model.score(X, y) > whole.score(X, y) - 0.05
    regressor = km.AdditiveSVR(unit, C=1, **ONE)
    for own in chunks(X, score, rows=200)():
        regressor.partial_fit(*own)
    assert (
        regressor.score(X, score) > km.AdditiveSVR(unit, C=1).fit(X, score).score(X, score) - 0.05
    )
    terms = regressor.eval_terms(X).sum(axis=1) + regressor.intercept_
    np.testing.assert_allclose(terms, regressor.predict(X), atol=1e-8)
    model.fit(X, y)  # starts anew
    assert not hasattr(model, "n_samples_seen_")
    before = model.decision_function(X)
    with pytest.warns(UserWarning, match="belong to one class"):
        model.partial_fit(X[:1], y[:1])  # goes on from there: one row of 601 moves little
    assert model.n_samples_seen_ == 601
    assert np.corrcoef(before, model.decision_function(X))[0, 1] > 0.999


def test_blocks_of_rows_with_a_period_and_with_few_that_count(seed):
    rng = np.random.default_rng(seed)
    n = 40_000
    y = np.arange(n) % 2
    X = rng.random((n, 2))
    X[:, 0] = 0.6 * y + 0.4 * X[:, 0]
    model = km.AdditiveSVC(random_state=0).fit(chunks(X, y, rows=10_000))
    assert model.score(X, y) > 0.99
    weight = (np.arange(n) % 4096 == 1) * 1.0
    y = (X[:, 1] > 0.5).astype(int)

    def weighted():
        for own in range(0, n, 10_000):
            part = slice(own, own + 10_000)
            yield X[part], y[part], weight[part]

    model = km.AdditiveSVC(random_state=0).fit(weighted)
    assert len(model.machine_.sample) == weight.sum()


def test_chunks_without_a_class_or_without_weight(seed):
    X, score, _ = data(seed, n=600)
    y = (score > np.median(score)).astype(int)
    model = km.AdditiveSVC(km.SplineMap(domain=(0, 1)))
    for own in range(0, 600, 200):
        model.partial_fit(X[own : own + 200], y[own : own + 200], classes=[0, 1, 2])
    assert 2 not in model.predict(X)
    none = km.AdditiveSVC(km.SplineMap(domain=(0, 1)), class_weight={0: 0.0, 1: 1.0})
    with pytest.warns(UserWarning, match="belong to one class"):
        none.partial_fit(X, y, classes=[0, 1])
    with pytest.warns(UserWarning, match="belong to one class"):
        none.partial_fit(X[y == 0], y[y == 0])
    assert np.isfinite(none.decision_function(X)).all()


def test_block_training_takes_as_many_threads_as_it_may(monkeypatch):
    """Ten classes are two groups of lanes for one thread, which trains one after the other."""

    def stop(work, items, threads):
        raise KeyboardInterrupt(len(items), threads)

    monkeypatch.setattr("kernelmaps.models.svm.training.run_interruptibly", stop)
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 3)), np.arange(200) % 10
    with pytest.raises(KeyboardInterrupt) as stopped:
        km.AdditiveSVC(n_jobs=1).partial_fit(X, y, classes=np.arange(10))
    assert stopped.value.args == (2, 1)
