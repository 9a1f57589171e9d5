"""Cross products of a model's terms, kept while others join them.

Between two goes of a search the weights of rows in ZᵀWZ stay, or hardly change: of a larger model
only the products with its new terms are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from .bases import Basis

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
        before = {id(basis): own for basis, own in zip(self.bases, _spans(self.bases))}
        new = [id(basis) not in before for basis in rows.bases]
        spans = _spans(rows.bases)
        gram = np.zeros((spans[-1].stop,) * 2 if spans else (1, 1))
        at = [0, *(i for own, other in zip(spans, new) if not other for i in _every(own))]
        there = [0, *(i for b in rows.bases for i in _every(before.get(id(b), slice(0, 0))))]
        gram[np.ix_(at, at)] = self.gram[np.ix_(there, there)]
        found = rows.sums(weight, product, (gram, new))
        self.weight, self.bases, self.gram = weight, tuple(rows.bases), gram
        return found

    def knows(self, bases: Sequence[Basis]) -> bool:
        """Whether these terms are all among those whose products are kept."""
        return {id(basis) for basis in bases} <= {id(basis) for basis in self.bases}

    def of(self, bases: Sequence[Basis]) -> np.ndarray | None:
        """ZᵀWZ of some of the terms; None where it is not known of all of them."""
        if not self.knows(bases):
            return None
        before = {id(basis): own for basis, own in zip(self.bases, _spans(self.bases))}
        there = [0, *(i for basis in bases for i in _every(before[id(basis)]))]
        return self.gram[np.ix_(there, there)]

    def working(self, rows: Any, here: Any) -> Any:
        """The working problem of a step from a point, with the curvature there or one near it.

        The point may be one of fewer weights than the rows have.
        """
        return here.working(self.nearly, lambda *given: self.sums(rows, *given))


def _spans(bases: Sequence[Basis]) -> list[slice]:
    """Which weights are those of each term, after that of the intercept."""
    ends = np.cumsum([1, *(basis.n_functions for basis in bases)]).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


def _every(own: slice) -> range:
    return range(own.start, own.stop)
