"""The fold: threads, blocks and empty chunks."""

import time

import numpy as np
import pytest

from kernelmaps._util.threads import ordered_map
from kernelmaps.stats import Moments, choose_block_rows, fold, open_source


def rows(seed, n=500, d=5, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(dtype), rng.integers(0, 4, n)


def cosines(X):
    return np.cos(X @ np.linspace(-1, 1, X.shape[1] * 8).reshape(-1, 8).astype(X.dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_bitwise_the_same_for_any_number_of_threads(seed, dtype):
    X, y = rows(seed, 2000, dtype=dtype)
    one, two, five = (
        fold(open_source(X, y), Moments("class"), cosines, block_rows=64, n_jobs=n)
        for n in (1, 2, 5)
    )
    np.testing.assert_array_equal(one.H, two.H)
    np.testing.assert_array_equal(one.V, five.V)
    assert one.H.dtype == np.float64
    exact = Moments("class").update(cosines(X.astype(np.float64)), y)
    tolerance = 1e-13 if dtype == np.float64 else 2.0**-24 * 64
    np.testing.assert_allclose(one.scatter(), exact.scatter(), atol=tolerance * one.n)


def test_at_most_threads_plus_one_items_are_alive():
    started, alive = 0, []

    def items():
        nonlocal started
        for i in range(20):
            started += 1
            yield i

    for finished, _ in enumerate(ordered_map(lambda i: i, items(), 3)):
        alive.append(started - finished)
    assert max(alive) == 4


def test_results_come_in_order_even_if_the_first_is_slow():
    actual = list(ordered_map(lambda i: time.sleep(0.05 * (i == 0)) or i, range(6), 2))
    assert actual == [0, 1, 2, 3, 4, 5]


def test_own_threads_of_a_map_are_one_inside_the_fold():
    from kernelmaps._util.threads import resolve_threads

    seen = []
    X = np.ones((8, 2))
    fold(open_source(X), Moments(), lambda X: seen.append(resolve_threads(None)) or X, block_rows=2)
    assert set(seen[1:]) == {1}  # the first call finds the shift, before the threads start


def test_input_is_never_changed(seed):
    X, y = rows(seed)
    before = X.copy()
    fold(open_source(X, y), Moments("class"), lambda X: X, block_rows=100)
    fold(open_source(X, y), Moments("class"), None, block_rows=100)
    fold(open_source(X, y), Moments("class"), lambda X: X[:, 1:], block_rows=100)
    np.testing.assert_array_equal(X, before)


def test_block_rows_fill_about_64_mebibytes():
    assert choose_block_rows(784, 2000, 4) == 4096
    assert choose_block_rows(10, 20, 8) == 8192  # bounded: float32 products stay accurate
    assert choose_block_rows(784, 50_000, 4) == 2048


def test_empty_chunks_are_the_identity(seed):
    X, y = rows(seed)
    none = (np.empty((0, 5)), np.empty(0, dtype=int))
    chunks = [none, (X[:100], y[:100]), none, (X[100:], y[100:]), none]
    actual = fold(open_source(chunks), Moments("class"))
    exact = Moments("class").update(X, y)
    np.testing.assert_allclose(actual.scatter(), exact.scatter(), rtol=1e-12, atol=1e-12)
