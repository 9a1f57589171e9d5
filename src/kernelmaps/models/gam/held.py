"""Rows of a table while it is fitted, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from ...stats.pair_tables import (
    CodeSums,
    add_scores,
    cross_products,
    pair_table,
    right_sides,
)
from ..losses import Loss
from .bases import Basis, spans_of
from .codebooks import Codebook
from .judging import Gain, held_out, mostly_different
from .pairs import Coarse, PairTerm, residual_tables
from .reml import Sums

_NEAR = 0.2  # share of the weights of all rows by which those in use may differ from them
Pair = tuple[int, int]
Scored = tuple[Sequence["Part"], Sequence[np.ndarray]]  # terms, and the weights of each output
Tables = list[tuple[np.ndarray, np.ndarray]]


def some_functions(bases: Sequence[Basis], kept: np.ndarray) -> list[Basis]:
    """The functions of terms whose weights are kept; weight 0 is the intercept's."""
    start = np.cumsum([1, *(basis.n_functions for basis in bases)])
    ends = np.searchsorted(kept, start)
    return [
        basis.only(kept[a:b] - first)
        for basis, first, (a, b) in zip(bases, start[:-1], pairwise(ends), strict=True)
    ]


@dataclass
class Memory:
    """ZᵀWZ of some terms, kept while others join them.

    Between two goes of a search the weights of rows in ZᵀWZ stay, or hardly change: of a larger
    model only the products with its new terms are computed.

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
        self, rows: CodedRows, weight: np.ndarray, product: np.ndarray
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


@dataclass(frozen=True)
class CodedRows:
    """Rows in memory as codes of terms, with targets, weights and offsets, as the solver sees them.

    `cone` are the rows C of constraints Cβ ≥ 0. Squared loss asks a `memory` for the products of
    terms. `streamed.CodedStream` answers the same of rows that are read once for each call of `at`.
    """

    codes: Sequence[np.ndarray]
    bases: Sequence[Basis]
    y: np.ndarray
    weight: np.ndarray
    offset: np.ndarray
    n_jobs: int | None = None
    cone: np.ndarray | None = None
    memory: Memory | None = None

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    def at(self, loss: Loss, beta: np.ndarray) -> CodedPoint:
        """The losses of all rows for some weights."""
        eta = self.scores(beta)
        value = float(self.weight @ loss.value(self.y, eta))
        return CodedPoint(beta, value, self, loss, eta)

    def squared(self, middle: float | None = None) -> tuple[Sums, float]:
        """The sums of squared loss, and what was subtracted from the targets."""
        y = self.y - self.offset
        if middle is None:  # without one, yᵀWy − rᵀβ would cancel
            middle = float(np.average(y, weights=self.weight))
        product = self.weight * (y - middle)
        square = float(product @ (y - middle))
        products = self.sums if self.memory is None else partial(self.memory.sums, self)
        return Sums(*products(self.weight, product), square, self.total), middle

    def start(self, loss: Loss) -> float:
        """An intercept to start from."""
        return loss.start(self.y, self.weight, self.offset)

    def only(self, kept: np.ndarray) -> CodedRows:
        """The rows with some of the weights."""
        cone = None if self.cone is None else self.cone[:, kept]
        return replace(self, bases=some_functions(self.bases, kept), cone=cone, memory=None)

    def scores(self, beta: np.ndarray) -> np.ndarray:
        """The scores of all rows."""
        out = self.offset + beta[0]
        add_scores(self.codes, [basis.values for basis in self.bases], beta, out, self.n_jobs)
        return out

    def sums(
        self, weight: np.ndarray, product: np.ndarray,
        known: tuple[np.ndarray, Sequence[bool]] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """ZᵀWZ and Zᵀv; `known` holds what is known of ZᵀWZ, and which terms are new."""
        bases = [basis.values for basis in self.bases]
        local = [basis.local for basis in self.bases]
        return cross_products(self.codes, bases, weight, product, self.n_jobs, local, known)


@dataclass(frozen=True)
class CodedPoint:
    """Weights, and the scores and losses of rows in memory; `value` is without penalties."""

    beta: np.ndarray
    value: float
    rows: CodedRows
    loss: Loss
    eta: np.ndarray

    def sums(self, whole: CodedRows | None = None) -> Sums:
        """The working least-squares problem of a Newton step from here.

        With the `whole` rows, of whose weights these have some, that of all their terms, and with
        the curvature here or one near it whose products their memory has.
        """
        rows, products = self.rows, self.rows.sums
        slope, bend = self.loss.derivatives(rows.y, self.eta)
        weight = rows.weight * bend
        if whole is not None and whole.memory is not None:
            weight, products = whole.memory.nearly(weight), partial(whole.memory.sums, whole)
        product = weight * (self.eta - rows.offset) - rows.weight * slope
        seen = weight > 0
        square = float(np.sum(product[seen] ** 2 / weight[seen]))
        return Sums(*products(weight, product), square, rows.total)

    def gradient(self) -> np.ndarray:
        """Derivatives of the losses by the weights."""
        rows = self.rows
        slope = rows.weight * self.loss.derivatives(rows.y, self.eta)[0]
        return right_sides(rows.codes, [b.values for b in rows.bases], slope, rows.n_jobs)


@dataclass(frozen=True)
class Part:
    """A term while it is fitted: where its codes come from, and its basis."""

    name: str
    kind: str
    columns: tuple[int, ...]
    basis: Basis
    counts: np.ndarray
    pair: PairTerm | None = None
    shapes: tuple[str, ...] = ()

    def codes(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Codes of the term from those of the columns."""
        return codes[self.columns[0]] if self.pair is None else self.pair.codes(codes)


@dataclass(frozen=True)
class HeldRows:
    """Coded rows in memory, with one or more targets: what a fit asks of rows.

    `streamed.StreamedRows` answers the same of rows that are read anew for each question.
    """

    books: tuple[Codebook, ...]
    codes: tuple[np.ndarray, ...]
    targets: tuple[np.ndarray, ...]
    weight: np.ndarray
    offset: np.ndarray
    n_jobs: int | None = None

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum())

    def margins(self, losses: Sequence[Loss]) -> list[CodeSums]:
        """Sums of weights and signals over the codes of each column, by output."""
        tally = Tally.of(self, losses)
        tally.update(self)
        return tally.sums

    def pair_weights(self, pairs: Sequence[Pair]) -> list[np.ndarray]:
        """Weights of the pairs of codes of two columns."""
        sizes = [book.n_codes for book in self.books]
        return [
            pair_table(self.codes[j], self.codes[k], self.weight, (sizes[j], sizes[k]))
            for j, k in pairs
        ]

    def coded(self, parts: Sequence[Part], cone: np.ndarray | None, output: int) -> CodedRows:
        """The rows with some terms, as the solver sees them."""
        codes, bases = [part.codes(self.codes) for part in parts], [part.basis for part in parts]
        given = self.targets[output], self.weight, self.offset, self.n_jobs
        return CodedRows(codes, bases, *given, cone)

    def residuals(
        self, parts: Sequence[Part], beta: np.ndarray, loss: Loss, output: int,
        pairs: Sequence[Pair], coarse: dict[int, Coarse],
    ) -> tuple[Tables, float, int]:  # fmt: skip
        """`pairs.residual_tables` at some weights, the sum of all curvatures, and their number."""
        eta = self.coded(parts, None, output).scores(beta)
        slope, bend = loss.derivatives(self.targets[output], eta)
        slope, bend = slope * self.weight, bend * self.weight
        tables = residual_tables(pairs, coarse, self.codes, slope, bend, self.n_jobs)
        return tables, float(bend.sum()), len(bend)

    def part(self, fitted: bool, by_content: bool) -> HeldRows:
        """The rows that are held out, or those that are not."""
        out = held_out(self.codes, len(self.weight), by_content)
        taken = np.flatnonzero(out != fitted)
        codes, targets = (tuple(own[taken] for own in of) for of in (self.codes, self.targets))
        weight, offset = self.weight[taken], self.offset[taken]
        return replace(self, codes=codes, targets=targets, weight=weight, offset=offset)

    def split(self) -> tuple[HeldRows, HeldRows]:
        """Rows to fit, and rows that are held out."""
        by_content = mostly_different(self.codes, len(self.weight))
        return self.part(True, by_content), self.part(False, by_content)

    def gains(self, losses: Sequence[Loss], others: Sequence[Scored], model: Scored) -> list[Gain]:
        """How much lower losses are with some terms and weights than with each of others."""
        own, found = self._losses(losses, model), []
        for other in others:
            found.append(Gain())
            found[-1].add(self._losses(losses, other) - own, self.weight)
        return found

    def _losses(self, losses: Sequence[Loss], model: Scored) -> np.ndarray:
        """Losses of the rows, those of all outputs added up."""
        parts, weights = model
        out = np.zeros(len(self.weight))
        for k, loss in enumerate(losses):
            out += loss.value(self.targets[k], self.coded(parts, None, k).scores(weights[k]))
        return out


@dataclass
class Tally:
    """Sums over the codes of columns, of each output's signals at its intercept.

    Signals are what rows want changed there: residuals of squared loss, else slopes.
    """

    sums: list[CodeSums]
    losses: tuple[Loss, ...]
    starts: tuple[float, ...]

    @classmethod
    def of(cls, rows: HeldRows, losses: Sequence[Loss], pairs: bool = False) -> Tally:
        """Of no rows yet, with intercepts that suit these; the first output may have `pairs`."""
        sizes = [book.n_codes for book in rows.books]
        sums = [CodeSums(sizes, pairs and k == 0) for k in range(len(losses))]
        starts = (
            loss.start(y, rows.weight, rows.offset) if rows.weight.any() else 0.0
            for loss, y in zip(losses, rows.targets, strict=True)
        )
        return cls(sums, tuple(losses), tuple(starts))

    def zero(self) -> Tally:
        return replace(self, sums=[own.zero() for own in self.sums])

    def update(self, rows: HeldRows) -> None:
        each = zip(self.sums, self.losses, self.starts, rows.targets, strict=True)
        for own, loss, start, y in each:
            signal = -loss.derivatives(y, rows.offset + start)[0]
            own.update(rows.codes, signal, rows.weight, n_jobs=rows.n_jobs)

    def merge(self, other: Tally) -> Tally:
        for own, more in zip(self.sums, other.sums, strict=True):
            own.merge(more)
        return self
