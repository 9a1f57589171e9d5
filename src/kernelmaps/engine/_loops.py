"""Bins between edges for the loops of prediction (see :mod:`.guide`)."""

import numba as nb
import numpy as np

from ..bits import float_bits


@nb.njit(cache=True, error_model="numpy")
def _locate_edges(
    size, sets, edges, edge_start, coef_start, stride,
    guide, guide_start, guide_scale, guide_key, guide_shift, bin_of, place, u,
):  # fmt: skip
    """Bins between edges: from the value's cell (see :mod:`.guide`), comparing what is left."""
    for d in range(size.size):
        s = sets[d]
        first = edge_start[s]
        beyond = max(np.float64(size[d]) - edges[first], 0.0)
        if guide_shift == 0:
            cell = np.int64(min(beyond * guide_scale[s], 4e9))
        else:
            cell = max((float_bits(beyond) >> guide_shift) - guide_key[s], 0)
        at = min(guide_start[s] + cell, guide_start[s + 1] - 2)
        below, above = np.int64(guide[at]), np.int64(guide[at + 1])
        while above - below > 4:
            middle = (below + above + 1) // 2
            if edges[first + middle] <= size[d]:
                below = middle
            else:
                above = middle - 1
        # One comparison is nearly always all that is left: without a branch to mispredict.
        below += (edges[first + below + 1] <= size[d]) & (below < above)
        while below < above and edges[first + below + 1] <= size[d]:
            below += 1
        left = edges[first + below]
        bin_of[d] = below
        place[d] = coef_start[s] + below * stride[s]
        u[d] = (size[d] - left) / (edges[first + below + 1] - left)
