"""Products of terms that are kept while others join them."""

from dataclasses import replace

import numpy as np
import pytest

from kernelmaps.models.gam import held
from kernelmaps.models.gam.bases import Basis
from kernelmaps.models.gam.held import CodedRows, Memory
from kernelmaps.models.losses import make_loss


def rows_of(seed, sizes, n=800):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 30, n).astype(np.uint8) for _ in sizes]
    bases = [Basis(rng.normal(size=(30, k)), np.ones(k), np.zeros(k, int)) for k in sizes]
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return CodedRows(codes, bases, y, rng.random(n) + 0.1, np.zeros(n))


def some(rows, terms):
    """The rows with some of the terms, their bases the same objects."""
    return CodedRows(
        [rows.codes[j] for j in terms], [rows.bases[j] for j in terms], rows.y, rows.weight,
        rows.offset,
    )  # fmt: skip


@pytest.fixture
def computed(monkeypatch):
    """How many terms' products each call computes."""
    found, plain = [], held.cross_products

    def counted(*arguments):
        known = arguments[6]
        found.append(len(arguments[0]) if known is None else sum(known[1]))
        return plain(*arguments)

    monkeypatch.setattr(held, "cross_products", counted)
    return found


def test_products_are_those_of_the_rows_and_only_those_of_new_terms_are_computed(seed, computed):
    rows, memory = rows_of(seed, [4, 7, 3, 5]), Memory()
    # Terms join and leave, and one is where it was not before.
    for terms, new in (([0, 1], 2), ([0, 1, 2], 1), ([1, 3, 2], 1), ([2, 1], 0)):
        own, product = some(rows, terms), rows.weight * rows.y
        computed.clear()
        found = memory.sums(own, rows.weight, product)
        assert computed == [new]
        for ours, wanted in zip(found, own.sums(rows.weight, product), strict=True):
            np.testing.assert_allclose(ours, wanted, atol=1e-10 * np.abs(wanted).max())
    computed.clear()
    memory.sums(some(rows, [2, 1]), rows.weight.copy(), rows.weight)
    assert computed == [2]  # other weights, even if they are equal


def test_products_of_some_terms_are_told_where_all_are_known(seed):
    rows, memory = rows_of(seed, [4, 7, 3]), Memory()
    whole = memory.sums(rows, rows.weight, rows.weight)[0]
    kept = np.r_[0, 12:15, 1:5]
    np.testing.assert_array_equal(
        memory.of([rows.bases[2], rows.bases[0]]), whole[np.ix_(kept, kept)]
    )
    assert memory.knows(rows.bases[1:])
    strange = [rows.bases[0], rows_of(seed, [4]).bases[0]]
    assert not memory.knows(strange)
    assert memory.of(strange) is None


def test_a_curvature_nearby_is_used_again_with_exact_derivatives(seed, computed):
    """The minimum of the working problem is a step by ∇ and that curvature, whatever it is."""
    rows, memory, loss = rows_of(seed, [4, 7]), Memory(), make_loss("log_loss", np.ones(2))
    rng = np.random.default_rng(seed)
    first = 0.3 * rng.normal(size=12)
    far = first + 3 * rng.normal(size=12)
    whole = replace(rows, memory=memory)
    before = rows.at(loss, first).sums(whole)
    for beta, new in ((first + 0.01, 0), (far, 2)):
        computed.clear()
        here = rows.at(loss, beta)
        found = here.sums(whole)
        assert computed == [new]
        assert np.allclose(found.gram, before.gram, rtol=1e-12) == (new == 0)
        step = np.linalg.solve(found.gram, found.right) - beta
        wanted = -np.linalg.solve(found.gram, here.gradient())
        np.testing.assert_allclose(step, wanted, atol=1e-8 * max(1.0, np.abs(wanted).max()))
