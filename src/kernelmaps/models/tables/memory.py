"""Cross products of a model's terms, kept while others join them.

Between two goes of a search the weights of rows in ZᵀWZ stay, or hardly change: of a larger model
only the products with its new terms are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .bases import Basis, spans_of

_NEAR = 0.2  # share of the weights of all rows by which those in use may differ from them


@dataclass
class Memory:
    """ZᵀWZ of some terms.

    Attributes
    ----------
    weight : ndarray or None
        The diagonal of W.
    bases : sequence of Basis
        Of the terms.
    gram : ndarray
    """

    weight: np.ndarray | None = None
    bases: Sequence[Basis] = ()
    gram: np.ndarray = field(default_factory=lambda: np.zeros((1, 1)))

    def nearly(self, weight: np.ndarray) -> np.ndarray:
        """Weights for which products are known, if they are near these."""
        own = self.weight
        if own is None or np.abs(weight - own).sum() > _NEAR * weight.sum():
            return weight
        return own

    def sums(
        self, rows: Any, weight: np.ndarray, product: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """ZᵀWZ and Zᵀv, as ``rows.sums`` does; what is known of ZᵀWZ is not computed again."""
        if weight is not self.weight:
            self.bases, self.gram = (), self.gram[:1, :1]
        before, spans = self._spans(), spans_of(rows.bases)
        new = [id(basis) not in before for basis in rows.bases]
        gram = np.zeros((1 + sum(basis.n_functions for basis in rows.bases),) * 2)
        at = np.r_[0, *(own for own, other in zip(spans, new, strict=True) if not other)]
        there = np.r_[0, *(before[id(b)] for b in rows.bases if id(b) in before)]
        gram[np.ix_(at, at)] = self.gram[np.ix_(there, there)]
        found = rows.sums(weight, product, (gram, new))
        self.weight, self.bases, self.gram = weight, tuple(rows.bases), gram
        return found

    def _spans(self) -> dict[int, slice]:
        """Which weights are those of each term, by its basis."""
        return dict(zip(map(id, self.bases), spans_of(self.bases), strict=True))

    def knows(self, bases: Sequence[Basis]) -> bool:
        """Whether these terms are all among those whose products are kept."""
        return {id(basis) for basis in bases} <= {id(basis) for basis in self.bases}

    def of(self, bases: Sequence[Basis]) -> np.ndarray | None:
        """ZᵀWZ of some of the terms; None where it is not known of all of them."""
        if not self.knows(bases):
            return None
        before = self._spans()
        there = np.r_[0, *(before[id(basis)] for basis in bases)]
        return self.gram[np.ix_(there, there)]
