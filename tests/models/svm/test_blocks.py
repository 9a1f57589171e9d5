"""Additive models from blocks of rows: the same minimum as in memory."""

import numpy as np
import pytest

import kernelmaps as km
from kernelmaps.models.solvers import dual_blocks
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


def test_blocks_of_rows_with_a_period_and_with_few_that_count(seed):
    rng = np.random.default_rng(seed)
    n = 20_000
    y = np.arange(n) % 2
    X = rng.random((n, 2))
    X[:, 0] = 0.6 * y + 0.4 * X[:, 0]
    model = km.AdditiveSVC(random_state=0).fit(chunks(X, y, rows=5000))
    assert model.score(X, y) > 0.99
    weight = (np.arange(n) % 4096 == 1) * 1.0
    y = np.arange(n) // 4096 % 2

    def weighted():
        for own in range(0, n, 5000):
            part = slice(own, own + 5000)
            yield X[part], y[part], weight[part]

    model = km.AdditiveSVC(random_state=0).fit(weighted)
    counted, (low, high) = X[weight > 0], model.predictor_.summary.domain
    np.testing.assert_array_equal(low, counted.min(axis=0))
    np.testing.assert_array_equal(high, counted.max(axis=0))


def test_block_training_takes_as_many_threads_as_it_may(monkeypatch):
    """Ten classes are two groups of lanes for one thread, which trains one after the other."""

    def stop(work, items, threads):
        raise KeyboardInterrupt(len(items), threads)

    monkeypatch.setattr(dual_blocks, "run_interruptibly", stop)
    # What comes before would be compiled for these numbers of classes alone.
    for name in ("_add_rows", "_centred_norms"):
        monkeypatch.setattr(
            dual_blocks.BlockDescent, name, lambda self, *_: np.ones((2, self.problem.y.size))
        )
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 3)), np.arange(200) % 10
    with pytest.raises(KeyboardInterrupt) as stopped:
        km.AdditiveSVC(n_jobs=1).fit(chunks(X, y))
    assert stopped.value.args == (2, 1)
