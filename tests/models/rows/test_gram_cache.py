"""Gram matrices that are kept while terms are added."""

from dataclasses import replace

import numpy as np
import pytest

from kernelmaps.models.rows import term_rows
from kernelmaps.models.rows.basis import TermBasis
from kernelmaps.models.rows.term_rows import GramCache, TermRows


def rows_of(seed, sizes, n=800):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 30, n).astype(np.uint8) for _ in sizes]
    bases = [TermBasis(rng.normal(size=(30, k)), np.ones(k), np.zeros(k, int)) for k in sizes]
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return TermRows(codes, bases, y, rng.random(n) + 0.1, np.zeros(n))


def with_terms(rows, terms):
    """The rows with some of the terms, their bases the same objects."""
    return TermRows(
        [rows.codes[j] for j in terms], [rows.bases[j] for j in terms], rows.y, rows.weight,
        rows.offset,
    )  # fmt: skip


@pytest.fixture
def computed(monkeypatch):
    """How many terms' products each call computes."""
    counts, plain = [], term_rows.cross_products

    def counted(*arguments):
        known = arguments[5]
        counts.append(len(arguments[0]) if known is None else sum(known[1]))
        return plain(*arguments)

    monkeypatch.setattr(term_rows, "cross_products", counted)
    return counts


def test_only_products_of_new_terms_are_computed(seed, computed):
    rows, cache = rows_of(seed, [4, 7, 3, 5]), GramCache()
    # Terms are added and dropped, and one changes its place.
    for terms, new in (([0, 1], 2), ([0, 1, 2], 1), ([1, 3, 2], 1), ([2, 1], 0)):
        subset, response = with_terms(rows, terms), rows.weight * rows.y
        computed.clear()
        cached = replace(subset, gram_cache=cache).gram_and_rhs(rows.weight, response)
        assert computed == [new]
        for ours, exact in zip(cached, subset.gram_and_rhs(rows.weight, response), strict=True):
            np.testing.assert_allclose(ours, exact, atol=1e-10 * np.abs(exact).max())
    computed.clear()
    cached_rows = replace(with_terms(rows, [2, 1]), gram_cache=cache)
    cached_rows.gram_and_rhs(rows.weight.copy(), rows.weight)
    assert computed == [2]  # other weights, even if they are equal


def test_the_gram_matrix_of_some_terms_is_returned_if_all_are_cached(seed):
    rows, cache = rows_of(seed, [4, 7, 3]), GramCache()
    gram = replace(rows, gram_cache=cache).gram_and_rhs(rows.weight, rows.weight)[0]
    place = np.r_[0, 12:15, 1:5]
    np.testing.assert_array_equal(
        cache.gram_of([rows.bases[2], rows.bases[0]]), gram[np.ix_(place, place)]
    )
    assert cache.has(rows.bases[1:])
    unknown = [rows.bases[0], rows_of(seed, [4]).bases[0]]
    assert not cache.has(unknown)
    assert cache.gram_of(unknown) is None
