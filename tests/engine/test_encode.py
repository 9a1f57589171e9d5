"""Codes of rows, whichever way they are found."""

import numpy as np
import pytest

from kernelmaps.engine import record_paths
from kernelmaps.engine.encode import encode_within
from kernelmaps.engine.piecewise import spec_of
from kernelmaps.engine.table import EDGES, Table


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_of_few_rows_are_those_of_many(dtype, seed):
    """Few values are searched by the formula, many by the compiled loop: bins do not differ."""
    rng = np.random.default_rng(seed)
    edges = [np.unique(rng.normal(size=300)), np.array([0.0, 1.0]), np.arange(5.0)]
    coef = [np.zeros((len(column) - 1, 1, 1)) for column in edges]
    zeros = np.zeros(len(edges))
    spec = spec_of(
        Table.build(EDGES, 0, coef, np.arange(3), origin=zeros, resolution=zeros + 1, edges=edges)
    )
    X = np.concatenate([np.resize(column, 500)[:, None] for column in edges], axis=1)
    X = np.concatenate([X, rng.normal(size=(30_000, 3))]).astype(dtype)
    with record_paths() as paths:
        many, inside = encode_within(spec, X, -np.inf, np.inf)
    assert inside
    assert paths == ["encode:dense"]
    with record_paths() as paths:
        few, inside = encode_within(spec, X[:1000], -np.inf, np.inf)
        X[7, 1] = np.nan
        assert not encode_within(spec, X[:1000], -np.inf, np.inf)[1]
    assert inside
    assert set(paths) == {"encode:reference"}
    np.testing.assert_array_equal(few, many[:1000])
    assert few.dtype == many.dtype
