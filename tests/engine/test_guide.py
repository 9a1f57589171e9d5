"""The guide finds the bin that a full search finds, for edges of every kind."""

import numpy as np
import pytest

from kernelmaps.engine import Table, encode
from kernelmaps.engine.guide import build_guide
from kernelmaps.engine.reference import spec_of
from kernelmaps.engine.table import EDGES

KINDS = {
    "even": lambda rng: np.linspace(-1, 3, 41),
    "quadratic": lambda rng: np.linspace(0, 2, 65) ** 2,
    "geometric": lambda rng: np.append(0, np.geomspace(1e-9, 1e3, 200)),
    "far": lambda rng: 1e6 + np.sort(rng.random(30)),
    "crowded": lambda rng: np.unique(np.append(rng.random(500) * 1e-5, [1.0, 2.0])),
    "random": lambda rng: np.sort(rng.standard_normal(300)),
    "one bin": lambda rng: np.array([0.5, 1.5]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finds_what_a_full_search_finds(dtype, seed):
    rng = np.random.default_rng(seed)
    edges = [make(rng).astype(dtype).astype(float) for make in KINDS.values()]
    edges = [np.unique(e) for e in edges]
    d = len(edges)
    coef = [np.zeros((len(e) - 1, 1, 1)) for e in edges]
    table = Table.build(EDGES, 0, coef, np.arange(d), lo=np.zeros(d), scale=np.ones(d), edges=edges)
    X = np.column_stack([rng.uniform(e[0] - 0.1, e[-1] + 0.1, 2000) for e in edges]).astype(dtype)
    for j, e in enumerate(edges):  # the edges themselves, and their neighbours
        near = np.concatenate([e, np.nextafter(dtype(e), dtype(np.inf))])[:900]
        X[: len(near), j] = near
        X[1000:1500, j] = rng.choice(e, 500) + np.diff(e).min() * rng.random(500)
    found = encode(spec_of(table), X)
    for j, e in enumerate(edges):
        expected = np.clip(np.searchsorted(e, X[:, j], side="right") - 1, 0, len(e) - 2)
        assert (found[:, j] == expected).all(), list(KINDS)[j]


def test_kinds_of_cells():
    """Even cells for even edges, octaves for geometric ones; a few cells per edge."""
    for kind, shifted in (("even", False), ("quadratic", False), ("geometric", True)):
        edges = KINDS[kind](None)
        guide = build_guide(edges, np.zeros(1, np.int64), np.array([len(edges) - 1]))
        assert (guide.shift > 0) == shifted
        assert len(guide.guide) < 10 * len(edges)
        assert np.diff(guide.guide.astype(int)).max() <= 4
