"""The spec of an additive map as bands of a basis; nothing here loads a compiler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._util.sparse import is_sparse
from ...engine.extent import extent_of, extent_of_rows
from ...engine.piecewise import table_of
from ...engine.spec import Spec
from ...engine.table import Table
from ...engine.tabulated import table_for


@dataclass(frozen=True)
class Bands:
    """An additive map as bands of a basis: ψ_j = R_s Φ, s the set of feature j.

    Attributes
    ----------
    table : Table
        Of Φ, in the engine's layout.
    transforms : ndarray (m, n, n) or None
        The different R's; None if there is only the identity.
    transform_of : int[sets]
        Which of them a set has.
    """

    table: Table
    transforms: np.ndarray | None
    transform_of: np.ndarray

    def band_weights(self, weights: np.ndarray) -> np.ndarray:
        """Weights w of ψ, [column][output], as weights Rᵀw of Φ: ⟨w, RΦ⟩ = ⟨Rᵀw, Φ⟩."""
        set_of = self.table.set_of
        ends = np.concatenate([[0], np.cumsum(self.widths)])
        out = np.zeros((len(set_of), int(self.table.width.max()), weights.shape[1]))
        for j, s in enumerate(set_of):
            local = weights[ends[j] : ends[j + 1]]
            if self.transforms is not None:
                local = self.transforms[self.transform_of[s]].T @ local
            out[j, : len(local)] = local
        return out

    @property
    def widths(self) -> np.ndarray:
        """Columns of each ψ_j."""
        return self.table.width[self.table.set_of]

    def select(self, features: np.ndarray) -> Bands:
        """The bands of some features alone."""
        sets = self.table.set_of[features]
        return replace(self, table=self.table.by_set(sets), transform_of=self.transform_of[sets])

    def join(self, table: Table) -> Bands:
        """The bands of these features, and those of others whose table is that of ψ itself."""
        transforms, index = self.transforms, 0
        if transforms is not None:
            identity = np.eye(transforms.shape[1])[None]
            transforms, index = np.concatenate([transforms, identity]), len(transforms)
        of_others = np.full(len(table.origin), index, np.int32)
        transform_of = np.concatenate([self.transform_of, of_others])
        return Bands(self.table.beside(table), transforms, transform_of)


def bands_of(spec: Spec, X: Any, dtype: np.dtype) -> Bands:
    """Bands of a spec: stored ones (splines), or the map's table as it is.

    Tables of curves cover the range of the rows X.
    """
    if "mix" in spec.arrays:
        full = table_of(spec)
        coef = spec.arrays["band_coef"]
        _, bins, powers, band = coef.shape
        sets = len(full.origin)
        first = np.tile(spec.arrays["band_first"], len(coef))
        of = spec.arrays["band_of"].astype(np.int64)
        table = replace(
            full,
            coef=coef.ravel(),
            coef_start=of * (bins * powers * band),
            first=first,
            first_start=of * bins,
            band=np.full(sets, band, np.int32),
        )
        transforms = spec.arrays["mix"]
        plain = len(transforms) == 1 and np.array_equal(transforms[0], np.eye(len(transforms[0])))
        return Bands(table, None if plain else transforms, spec.arrays["mix_of"])
    extent = extent_of(X.data[None, :]) if is_sparse(X) else extent_of_rows(X, 1)
    curves = table_for(spec, dtype, X.shape[1], extent)
    if curves is None:  # finer than a table is worth in this precision
        curves = table_for(spec, np.dtype(np.float32), X.shape[1], extent)
    if curves is None:
        raise ValueError(
            "the values reach so far beyond the ranges that the map was fitted to (or its features "
            "are of so different size) that no table holds its curves: use "
            "out_of_domain='clip' instead of 'extrapolate', or scale the features."
        )
    return Bands(curves.astype(np.float64), None, np.zeros(len(curves.origin), np.int32))
