"""Loads from many addresses: by an instruction where there is one, else one by one."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest

from kernelmaps.engine.simd import vectors
from kernelmaps.engine.simd.vectors import gather, gather_two, load, store


@pytest.mark.parametrize("instruction", [True, False])
def test_gather_takes_the_numbers_at_the_indices(instruction, monkeypatch, seed):
    if not (instruction and vectors._has_gather()):
        monkeypatch.setattr(vectors, "_has_gather", lambda: False)

    @nb.njit
    def taken(array, index, lanes, out):
        store(out, 0, gather(array, load(index, 0, lanes)))

    @nb.njit
    def both(array, index, lanes, left, right):
        found = gather_two(array, load(index, 0, lanes))
        store(left, 0, found[0])
        store(right, 0, found[1])

    rng = np.random.default_rng(seed)
    index, lanes = rng.integers(0, 98, 16).astype(np.int32), (0,) * 16
    for dtype in (np.float32, np.float64, np.int64, np.uint16):
        # 16 bits are read as the first half of 32, of which the second has to be left out.
        array = rng.integers(1, 2**16, 100).astype(dtype)
        out = np.zeros(16, np.int32 if dtype is np.uint16 else dtype)
        taken(array, index, lanes, out)
        np.testing.assert_array_equal(out, array[index])
    for dtype in (np.float32, np.float64):
        array, (left, right) = rng.random(100).astype(dtype), np.zeros((2, 16), dtype)
        both(array, index, lanes, left, right)
        np.testing.assert_array_equal([left, right], [array[index], array[index + 1]])
