"""Loads from many addresses."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest

from kernelmaps._util.compiling import static
from kernelmaps.engine.simd.vectors import gather_blocks, in_memory, item, load, store


@nb.njit
def taken(array, step, index, lanes, block, out):
    own = load(index, 0, lanes)
    stored = gather_blocks(array, step, index, 0, block, own)
    found = gather_blocks(array, step, in_memory(own), 0, block, own)
    for k in range(len(block)):
        store(out, k * len(lanes), found[k])
        store(out, (len(block) + k) * len(lanes), stored[k])


@pytest.mark.parametrize("lanes", [4, 16])
@pytest.mark.parametrize("length", [1, 2, 8])
def test_blocks_at_indices_are_loaded_and_transposed(lanes, length, seed):
    rng = np.random.default_rng(seed)
    index = rng.integers(0, 90, lanes).astype(np.int32)
    for dtype in (np.float32, np.float64, np.int32):
        array = rng.integers(1, 2**16, 1000).astype(dtype)
        for step in (1, length):
            out = np.zeros(2 * length * lanes, dtype)
            taken(array, step, index, static(lanes), static(length), out)
            expected = array[step * index + np.arange(length)[:, None]]
            np.testing.assert_array_equal(out.reshape(2, length, lanes), [expected] * 2)


def test_strides_are_refused_not_misread():
    first = nb.njit(lambda array: item(array, 0))
    assert first(np.arange(3.0)) == 0
    with pytest.raises(Exception, match="take contiguous arrays"):
        first(np.arange(6.0)[::2])
