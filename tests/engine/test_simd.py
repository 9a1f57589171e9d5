"""Loads from many addresses."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest

from kernelmaps._util.static_int import StaticInt
from kernelmaps.engine.simd.vectors import gather_blocks, in_memory, load, store
from kernelmaps.engine.table.entry import OPTIONS, Entry


@Entry
@nb.njit(**{**OPTIONS, "cache": False})  # cheaper to compile than with numba's own
def taken(array, step, index, lanes, block, out):
    own = load(index, 0, lanes)
    stored = gather_blocks(array, step, index, 0, block, own)
    found = gather_blocks(array, step, in_memory(own), 0, block, own)
    for k in range(block):
        store(out, k * lanes, found[k])
        store(out, (block + k) * lanes, stored[k])


@pytest.mark.parametrize("lanes", [4, 16])
@pytest.mark.parametrize("length", [1, 2, 8])
def test_blocks_at_indices_are_loaded_and_transposed(lanes, length, seed):
    rng = np.random.default_rng(seed)
    index = rng.integers(0, 90, lanes).astype(np.int32)
    for dtype in (np.float32, np.float64, np.int32):
        array = rng.integers(1, 2**16, 1000).astype(dtype)
        for step in (1, length):
            out = np.zeros(2 * length * lanes, dtype)
            taken(array, step, index, StaticInt(lanes), StaticInt(length), out)
            expected = array[step * index + np.arange(length)[:, None]]
            np.testing.assert_array_equal(out.reshape(2, length, lanes), [expected] * 2)
