"""Sums over pairs of codes give the cross products of the rows that they stand for."""

import numpy as np
import pytest

from kernelmaps.stats import CodeSums, pair_tables
from kernelmaps.stats.pair_tables import (
    add_scores,
    cross_products,
    pair_table,
    right_sides,
    tables_of_pairs,
)


def coded_rows(seed, n, sizes, widths):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, n).astype(np.uint8) for size in sizes]
    bases = [rng.normal(size=(size, width)) for size, width in zip(sizes, widths)]
    return codes, bases, rng.random(n), rng.normal(size=n)


def dense(codes, bases):
    return np.hstack([np.ones((len(codes[0]), 1)), *(b[c] for b, c in zip(bases, codes))])


# More rows than cells: tables; fewer: rows of the basis are added up without one.
@pytest.mark.parametrize("n", [40, 5000])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cross_products_are_those_of_the_rows(seed, n, n_jobs):
    codes, bases, weight, y = coded_rows(seed, n, [7, 30, 12], [3, 5, 0])
    gram, right = cross_products(codes, bases, weight, weight * y, n_jobs)
    Z = dense(codes, bases)
    np.testing.assert_allclose(gram, Z.T @ (weight[:, None] * Z), atol=1e-11 * n)
    np.testing.assert_allclose(right, Z.T @ (weight * y), atol=1e-11 * n)
    alone = right_sides(codes, bases, weight * y, n_jobs)
    np.testing.assert_allclose(alone, Z.T @ (weight * y), atol=1e-11 * n)
    # Where the products of the first and the last term are cached, those of the other follow.
    before = gram.copy()
    before[1 + 3 : 1 + 3 + 5] = before[:, 1 + 3 : 1 + 3 + 5] = np.nan
    cached = before, [False, True, False]
    again = cross_products(codes, bases, weight, weight * y, n_jobs, cached=cached)
    for actual, expected in zip(again, (gram, right), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-11 * n)
    assert again[0] is before


def test_sums_and_scores_of_all_terms_together(seed, monkeypatch):
    """Whatever the blocks; the codes of a pair need more than a byte."""
    monkeypatch.setattr(pair_tables, "_STACKED_ROWS", 7)
    n = 501
    codes, bases, weight, y = coded_rows(seed, n, [7, 30, 12, 2000], [3, 5, 0, 2])
    codes[3] = codes[3].astype(np.uint16) + np.uint16(300)
    Z = dense(codes, bases)
    np.testing.assert_allclose(right_sides(codes, bases, y, 2), Z.T @ y, atol=1e-12 * n)
    gram, _ = cross_products(codes, bases, weight, y, 2)
    np.testing.assert_allclose(gram, Z.T @ (weight[:, None] * Z), atol=1e-12 * n)
    beta, out = np.arange(1.0, 12.0), np.ones(n)
    add_scores(codes, bases, beta, out, 2)
    np.testing.assert_allclose(out, 1.0 + Z[:, 1:] @ beta[1:], atol=1e-11)


def test_sums_do_not_depend_on_the_threads(seed):
    codes, bases, weight, y = coded_rows(seed, 9000, [7, 30, 12] * 4, [3, 6, 2] * 4)
    one, two = (cross_products(codes, bases, weight, y, n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_merged_sums_are_the_sums_of_all_rows(seed):
    codes, bases, weight, y = coded_rows(seed, 1000, [7, 30], [3, 5])
    parts = [slice(0, 300), slice(300, 1000)]
    sums = [
        CodeSums([7, 30]).update([c[part] for c in codes], y[part], weight[part]) for part in parts
    ]
    merged = sums[0].merge(sums[1])
    gram, right = merged.products(bases)
    expected = cross_products(codes, bases, weight, weight * y)
    np.testing.assert_allclose(gram, expected[0], rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(right, expected[1], rtol=1e-12, atol=1e-9)
    assert merged.square == pytest.approx(weight @ y**2, rel=1e-12)
    assert merged.count == 1000


@pytest.mark.parametrize("copied_codes", [1, 250, 1 << 18])
def test_tables_of_many_pairs_are_those_of_each(seed, copied_codes, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(pair_tables, "_COPIED_CODES", copied_codes)
    codes, values = rng.integers(0, 6, (5, 100)).astype(np.uint8), rng.normal(size=(2, 100))
    pairs = np.array([(0, 1), (3, 4), (1, 3), (0, 4)])
    tables = tables_of_pairs(codes, pairs, values, 6)
    assert tables.shape == (4, 2, 6, 6)
    for (j, k), of_pair in zip(pairs, tables, strict=True):
        for of_rows, table in zip(values, of_pair, strict=True):
            np.testing.assert_array_equal(table, pair_table(codes[j], codes[k], of_rows, (6, 6)))


def test_pair_table_counts_pairs():
    first, second = np.array([0, 1, 1], np.uint8), np.array([2, 0, 0], np.uint16)
    table = pair_table(first, second, np.array([1.0, 2.0, 3.0]), (2, 3))
    np.testing.assert_array_equal(table, [[0, 0, 1], [5, 0, 0]])


def test_products_of_some_columns_are_a_part_of_those_of_all(seed):
    codes, bases, weight, y = coded_rows(seed, 200, [7, 30, 12], [3, 5, 2])
    sums = CodeSums([len(basis) for basis in bases]).update(codes, y, weight)
    gram, right = sums.products(bases)
    start = np.cumsum([1, *(basis.shape[1] for basis in bases)])
    kept = np.r_[0, start[0] : start[1], start[2] : start[3]]
    some = sums.products([bases[0], bases[2]], [0, 2])
    np.testing.assert_allclose(some[0], gram[np.ix_(kept, kept)])
    np.testing.assert_allclose(some[1], right[kept])


def test_sums_without_pairs_have_the_rest(seed):
    codes, bases, weight, y = coded_rows(seed, 200, [7, 30, 12], [3, 5, 2])
    sizes = [len(basis) for basis in bases]
    alone = CodeSums(sizes, pairs=False).update(codes, y, weight)
    both = CodeSums(sizes).update(codes, y, weight)
    assert alone.pairs == {}
    assert alone.zero().with_pairs is False
    for a, b in zip(alone.singles + alone.targets, both.singles + both.targets, strict=True):
        np.testing.assert_array_equal(a, b)
