r"""Trained additive machines as one table, for prediction and export.

A model's term is :math:`g_d(x) = \sum_c w_{dc} Φ_{dc}(x)`, and every Φ is a local polynomial on
bins (:mod:`kernelmaps.engine.table`). On each bin the weighted sum is again a polynomial, with
coefficients Σ_c w_c coef[b, k, c]: the model is a table whose columns are its outputs, to be summed
over the features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...engine.table import Table

if TYPE_CHECKING:
    from .training_summary import Summary

_BEYOND = 16.0  # how far tables of curves reach beyond the values seen


def summed(bands: Table, weights: np.ndarray) -> Table:
    """The table of Σ_c w_c Φ_c: of weights [feature][basis][output], in float64."""
    weights = np.asarray(weights, dtype=np.float64)
    sets, n_outputs = bands.set_of, weights.shape[2]
    edges = None
    if len(bands.edges):
        ends = bands.edge_start + bands.bins + 1
        edges = [bands.edges[bands.edge_start[s] : ends[s]] for s in sets]
    return Table.build(
        bands.binning,
        bands.degree,
        _coefficients(bands, weights),
        np.arange(bands.n_features),
        origin=bands.origin[sets],
        resolution=bands.resolution[sets],
        edges=edges,
        clip_low=bands.clip_low[sets],
        clip_high=bands.clip_high[sets],
        width=np.full(bands.n_features, n_outputs),
        signed=bands.signed,
        zero_at_zero=bands.zero_at_zero,
    )


def _coefficients(bands: Table, weights: np.ndarray) -> list[np.ndarray]:
    """Coefficients (bins, degree + 1, outputs) of each feature.

    Features that share their polynomials are summed together: for uniform knots these are all.
    """
    shape = np.stack([bands.coef_start, bands.first_start, bands.bins, bands.band], axis=1)
    kinds, kind_of = np.unique(shape[bands.set_of], axis=0, return_inverse=True)
    out: list[Any] = [None] * bands.n_features
    for k, (start, begin, bins, band) in enumerate(kinds.tolist()):
        powers = bands.degree + 1
        coef = bands.coef[start : start + bins * powers * band].reshape(bins, powers, band)
        columns = bands.first[begin : begin + bins].astype(np.int64)[:, None] + np.arange(band)
        inside = columns < weights.shape[1]
        features = np.flatnonzero(np.ravel(kind_of) == k)
        local = weights[features][:, np.where(inside, columns, 0)] * inside[..., None]
        for d, sums in zip(features, np.matmul(coef, local), strict=True):
            out[d] = sums
    return out


def range_of_curves(summary: Summary) -> np.ndarray:
    """Rows that span more than the values seen, for tables of curves."""
    most = float(np.maximum(np.abs(summary.low), np.abs(summary.high)).max())
    least, most = (summary.least / _BEYOND, most * _BEYOND) if most > 0 else (1.0, 1.0)
    low = -most if summary.low.min() < 0 else least
    return np.tile(np.array([[low], [most], [least]]), (1, len(summary.low)))
