"""Rows of a table while it is fitted, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...stats.pair_tables import CodeSums, pair_table
from ..losses import Loss
from .bases import Basis
from .codebooks import Codebook
from .judging import Gain, held_out, mostly_different
from .newton import CodedRows
from .pairs import Coarse, PairTerm, residual_tables

Pair = tuple[int, int]
Scored = tuple[Sequence["Part"], Sequence[np.ndarray]]  # terms, and the weights of each output
Tables = list[tuple[np.ndarray, np.ndarray]]


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


def term_codes(parts: Sequence[Part], codes: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Codes of terms from those of the columns."""
    return [
        codes[part.columns[0]] if part.pair is None else part.pair.codes(codes) for part in parts
    ]


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

    def signal(self, loss: Loss, output: int, start: float) -> np.ndarray:
        """What the rows want changed at an intercept: residuals of squared loss, else slopes."""
        return -loss.derivatives(self.targets[output], self.offset + start)[0]

    def margins(self, losses: Sequence[Loss]) -> list[CodeSums]:
        """Sums of weights and signals over the codes of each column, by output."""
        sizes = [book.n_codes for book in self.books]
        found = []
        for k, loss in enumerate(losses):
            start = loss.start(self.targets[k], self.weight, self.offset)
            own = CodeSums(sizes, pairs=False)
            found.append(own.update(self.codes, self.signal(loss, k, start), self.weight))
        return found

    def pair_weights(self, pairs: Sequence[Pair]) -> list[np.ndarray]:
        """Weights of the pairs of codes of two columns."""
        sizes = [book.n_codes for book in self.books]
        return [
            pair_table(self.codes[j], self.codes[k], self.weight, (sizes[j], sizes[k]))
            for j, k in pairs
        ]

    def coded(self, parts: Sequence[Part], cone: np.ndarray | None, output: int) -> CodedRows:
        """The rows with some terms, as the solver sees them."""
        bases = [part.basis for part in parts]
        codes, y = term_codes(parts, self.codes), self.targets[output]
        return CodedRows(codes, bases, y, self.weight, self.offset, self.n_jobs, cone)

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
