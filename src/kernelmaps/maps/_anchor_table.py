"""Tables of anchor maps: bins between the points where the nearest anchors change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..design.square_root import Root
from ..engine.reference import evaluate_sets
from ..engine.table import AFFINE, EDGES, Table


def anchor_table(
    sets: list[np.ndarray], roots: list[Root], set_of: np.ndarray, k: int, linear: bool
) -> Table:
    """Table of an anchor map.

    Parameters
    ----------
    sets, roots : lists
        Anchors of each set, sorted, and their rows.
    set_of : ndarray
        Set of each feature.
    k : int
        Neighbours whose rows are averaged.
    linear : bool
        Interpolate between the two neighbours instead.
    """
    even = all(_is_even(anchors) for anchors in sets)
    coef, lo, scale, edges = [], [], [], []
    for anchors, root in zip(sets, roots, strict=True):
        step = (anchors[-1] - anchors[0]) / max(len(anchors) - 1, 1) or 1.0
        if linear and len(anchors) > 1:
            block = np.stack([root.rows[:-1], np.diff(root.rows, axis=0)], axis=1)
            cuts, start = anchors, anchors[0]
        else:
            near = min(k, len(anchors))
            block = _window_means(root.rows, near)[:, None, :]
            if linear:  # a constant feature among others that interpolate
                block = np.concatenate([block, np.zeros_like(block)], axis=1)
            middles = (anchors[:-near] + anchors[near:]) / 2
            cut = middles[0] if len(middles) else anchors[0] + step
            cuts = np.concatenate([[2 * anchors[0] - cut], middles, [anchors[-1] + step]])
            start = anchors[0] + (near / 2 - 1) * step
        coef.append(block)
        lo.append(start)
        scale.append(1 / step)
        edges.append(cuts)
    ends = {}
    if linear:
        ends = {"low": [a[0] for a in sets], "high": [a[-1] for a in sets]}
    table = Table.build(
        AFFINE if even else EDGES,
        int(linear),
        coef,
        set_of,
        lo=np.array(lo),
        scale=np.array(scale),
        edges=None if even else edges,
        **{name: np.array(end) for name, end in ends.items()},
    )
    return _mark_zero(table)


def _is_even(anchors: np.ndarray) -> bool:
    """Whether equal steps put every anchor where it is, up to rounding."""
    even = np.linspace(anchors[0], anchors[-1], len(anchors))
    return bool(np.allclose(anchors, even, rtol=1e-15, atol=1e-14 * np.ptp(anchors)))


def _window_means(rows: np.ndarray, k: int) -> np.ndarray:
    """Means of k consecutive rows."""
    if k == 1:
        return rows
    return np.lib.stride_tricks.sliding_window_view(rows, k, axis=0).mean(axis=-1)


def _mark_zero(table: Table) -> Table:
    """The table with `zero` set where it maps 0 to 0 in every feature."""
    at_zero = evaluate_sets(table, np.zeros(1))
    return replace(table, zero=not any(values.any() for values in at_zero))
