"""The monoid laws of the statistics, and their numbers against naive sums."""

import numpy as np
import pytest
import scipy.sparse as sp

import kernelmaps as km
from kernelmaps.stats import FoldMoments, KernelMoments, Moments
from kernelmaps.stats.moments import BLOCK_ROWS, fold_of_row

TARGETS = ["none", "real", "class"]
KINDS = [*TARGETS, "folds", "kernels"]
U32 = 2.0**-24


def data(seed, n=400, d=7, target="real"):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) * rng.uniform(0.1, 3, d) + rng.normal(size=d) * 5
    y = {
        "none": None,
        "real": rng.normal(size=(n, 3)) + 100,
        "class": np.array(["ant", "bee", "cat", "dog"])[rng.integers(0, 4, n)],
    }[target]
    return Z, y, rng.integers(0, 4, n)


def empty(kind):
    if kind == "folds":
        return FoldMoments.empty(Moments("class"), 3)
    if kind == "kernels":
        return KernelMoments([Moments("real"), Moments("real")], [3, 4])
    return Moments(kind)


def target_of(kind):
    return {"folds": "class", "kernels": "real"}.get(kind, kind)


def cut(y, rows):
    return None if y is None else y[rows]


def numbers(stats):
    """All sums of some statistics, about shift zero, so that they can be compared."""
    sums_of_parts = []
    for part in getattr(stats, "parts", [stats]):
        if part.H is None:
            continue
        about_zero = part.moved(np.zeros_like(part.shift), np.zeros_like(part.y_shift))
        fields = (about_zero.m, about_zero.H, about_zero.b, about_zero.yy, about_zero.V)
        sums = (f for f in fields if f is not None and f.size)
        sums_of_parts += [np.array([part.n, part.weight]), *sums]
    return sums_of_parts


def assert_same(a, b, rtol=1e-12):
    left, right = numbers(a), numbers(b)
    assert len(left) == len(right) > 0
    for x, y in zip(left, right):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * max(np.abs(y).max(), 1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_sums_are_the_naive_sums(seed, target, weighted):
    Z, y, w = data(seed, target=target)
    w = w if weighted else None
    stats = Moments(target).update(Z, y, w)
    v = np.ones(len(Z)) if w is None else w
    mean = (v @ Z) / v.sum()
    C = Z - mean
    np.testing.assert_allclose(stats.mean, mean, rtol=1e-13)
    np.testing.assert_allclose(stats.scatter(), (C * v[:, None]).T @ C, rtol=1e-11, atol=1e-10)
    assert stats.weight == v.sum()
    assert stats.n == np.count_nonzero(v)
    if target == "none":
        assert stats.V is None
        return
    Y = y if target == "real" else (y[:, None] == stats.classes).astype(float)
    y_mean = (v @ Y) / v.sum()
    np.testing.assert_allclose(stats.y_mean, y_mean, rtol=1e-13)
    np.testing.assert_allclose(stats.cross(), ((Y - y_mean) * v[:, None]).T @ C, atol=1e-9)
    np.testing.assert_allclose(stats.y_scatter(), v @ (Y - y_mean) ** 2, rtol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_zero_is_the_identity(seed, kind):
    Z, y, w = data(seed, target=target_of(kind))
    stats = empty(kind).update(Z, y, w)
    assert_same(empty(kind).merge(stats), stats)
    assert_same(stats.copy().merge(empty(kind)), stats)
    assert_same(stats.copy().merge(stats.zero()), stats)


@pytest.mark.parametrize("kind", KINDS)
def test_merge_is_associative_and_commutative(seed, kind):
    Z, y, w = data(seed, target=target_of(kind))
    rows = [slice(0, 50), slice(50, 51), slice(51, 400)]
    a, b, c = (empty(kind).update(Z[r], cut(y, r), w[r], r.start) for r in rows)
    left = a.copy().merge(b).merge(c)
    right = a.copy().merge(b.copy().merge(c))
    assert_same(left, right)
    assert_same(c.copy().merge(a).merge(b), left)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_do_not_matter(seed, kind):
    Z, y, w = data(seed, n=120, target=target_of(kind))
    whole = empty(kind).update(Z, y, w)
    for size in (1, 7, 119):
        parts = empty(kind)
        for a in range(0, len(Z), size):
            r = slice(a, a + size)
            parts.update(Z[r], cut(y, r), w[r], a)
        assert_same(parts, whole)


@pytest.mark.parametrize("target", TARGETS)
def test_order_of_rows_does_not_matter(seed, target):
    Z, y, w = data(seed, target=target)
    order = np.random.default_rng(seed).permutation(len(Z))
    assert_same(
        Moments(target).update(Z[order], cut(y, order), w[order]), Moments(target).update(Z, y, w)
    )


@pytest.mark.parametrize("target", TARGETS)
def test_weights_are_repetitions(seed, target):
    Z, y, w = data(seed, target=target)
    weighted = Moments(target).update(Z, y, w)
    rows = np.repeat(np.arange(len(Z)), w)
    repeated = Moments(target).update(Z[rows], cut(y, rows))
    weighted.n = repeated.n  # rows are counted, not weighed
    assert_same(weighted, repeated)


@pytest.mark.parametrize("kind", KINDS)
def test_save_and_load(seed, kind, tmp_path):
    Z, y, w = data(seed, target=target_of(kind))
    stats = empty(kind).update(Z, y, w)
    km.save(stats, tmp_path / "s.kmap")
    loaded = km.load(tmp_path / "s.kmap")
    assert type(loaded) is type(stats)
    for a, b in zip(numbers(loaded), numbers(stats)):
        np.testing.assert_array_equal(a, b)
    assert_same(loaded.update(Z, y, w), stats.copy().update(Z, y, w))
    km.save(empty(kind), tmp_path / "empty.kmap")
    assert_same(km.load(tmp_path / "empty.kmap").merge(stats), stats)


def test_minus_undoes_merge(seed):
    Z, y, _ = data(seed, target="class")
    a, b = Moments("class").update(Z[:100], y[:100]), Moments("class").update(Z[100:], y[100:])
    assert_same(a.copy().merge(b).minus(b), a, rtol=1e-10)


def test_folds_partition_the_rows_and_are_of_similar_size(seed):
    Z, y, _ = data(seed, n=3000, target="class")
    folds = FoldMoments.empty(Moments("class"), 5).update(Z, y)
    assert_same(folds.total(), Moments("class").update(Z, y))
    sizes = np.array([part.n for part in folds.parts])
    assert np.all(np.abs(sizes - 600) < 5 * np.sqrt(600))
    fold = fold_of_row(np.arange(3000), 5)
    assert_same(folds.parts[2], Moments("class").update(Z[fold == 2], y[fold == 2]))


def test_classes_may_appear_in_any_order(seed):
    Z, y, _ = data(seed, target="class")
    order = np.argsort(y, kind="stable")
    stats = Moments("class")
    for r in np.array_split(order[::-1], 9):
        stats.update(Z[r], y[r])
    assert stats.classes.tolist() == ["ant", "bee", "cat", "dog"]
    assert_same(stats, Moments("class").update(Z, y))


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_sparse_blocks_give_the_same_sums(seed, container):
    Z, y, w = data(seed)
    Z = Z * (np.random.default_rng(seed).uniform(size=Z.shape) < 0.2)
    dense = Moments("real").update(Z, y, w)
    assert_same(Moments("real").update(container(Z), y, w), dense)
    mixed = Moments("real").update(Z[:100], y[:100], w[:100])
    assert_same(mixed.update(container(Z[100:]), y[100:], w[100:]), dense)


def test_cancellation_is_bounded_for_sorted_rows(seed):
    # The first block holds a fraction p = 1/40 of rows that are sorted by value: the error of the
    # variance is at most about u64/p, not u64·(mean/spread)².
    x = np.sort(np.random.default_rng(seed).normal(size=4000))[:, None] + 1e6
    stats = Moments()
    for r in np.array_split(np.arange(4000), 40):
        stats.update(x[r])
    exact = ((x - x.mean()) ** 2).sum()
    assert abs(stats.scatter()[0, 0] / exact - 1) < 40 * 4000 * 2.0**-53


def test_float32_error_stays_within_the_bound_of_one_block(seed):
    rng = np.random.default_rng(seed)
    Z = (rng.uniform(size=(5 * BLOCK_ROWS, 12)) + 3).astype(np.float32)
    fast, exact = Moments().update(Z), Moments().update(Z.astype(np.float64))
    assert fast.H.dtype == fast.shift.dtype == np.float64
    scale = np.sqrt(np.outer(np.diag(exact.scatter()), np.diag(exact.scatter())))
    error = np.abs(fast.scatter() - exact.scatter()) / scale
    # Beside the product of B rows, rounding z − s costs one u per factor.
    assert error.max() < (BLOCK_ROWS + 2) * U32  # the theorem
    assert error.max() < np.sqrt(BLOCK_ROWS) * U32  # the random walk that one sees


def test_a_row_of_the_product_is_never_longer_than_the_bound(seed, monkeypatch):
    lengths = []
    partial = Moments.partial
    monkeypatch.setattr(
        Moments, "partial", lambda self, Z, *a, **k: lengths.append(len(Z)) or partial(self, Z, *a)
    )
    Moments().update(np.ones((2 * BLOCK_ROWS + 5, 1), dtype=np.float32))
    assert lengths == [BLOCK_ROWS, BLOCK_ROWS, 5]
