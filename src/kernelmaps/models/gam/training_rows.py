"""Training rows of a GAM in memory: codes of all columns, and targets of all outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...stats.pair_tables import CodeSums, pair_table
from ..losses import Loss, LossTotals
from ..rows.basis import Basis
from ..rows.term_rows import TermRows
from .codebooks import Codebook
from .pairs import CoarseCodes, PairCodes, PairTerm, sums_by_pair

Pair = tuple[int, int]


@dataclass(frozen=True)
class DesignTerm:
    """A term of the model matrix: the columns that its codes come from, and its basis.

    A term with `fixed_effects`, values at its codes by output, has no functions: it is an offset.
    """

    name: str
    kind: str
    columns: tuple[int, ...]
    basis: Basis
    counts: np.ndarray
    pair: PairTerm | None = None
    shapes: tuple[str, ...] = ()
    extrapolation: str = "constant"
    fixed_effects: tuple[np.ndarray, ...] = ()

    def codes(self, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Codes of the term from those of the columns."""
        return codes[self.columns[0]] if self.pair is None else self.pair.codes(codes)


@dataclass(frozen=True)
class RowsInMemory:
    """Coded rows in memory, with the targets of one or more outputs.

    `stream.RowsFromStream` has the same methods for rows that are read anew for each call.
    `n_without_target` further rows were left out, as their target is missing. `numbers` are the
    values of columns of few rows whose codes do not stand for single values. `ranges` are the
    ends of columns of numbers, the lower ones negated, of rows from a stream.
    """

    books: tuple[Codebook, ...]
    codes: tuple[np.ndarray, ...]
    targets: tuple[np.ndarray, ...]
    weight: np.ndarray
    offset: np.ndarray
    n_jobs: int | None = None
    n_without_target: int = 0
    ranges: np.ndarray | None = None
    numbers: Mapping[int, np.ndarray] = field(default_factory=dict)

    @property
    def total_weight(self) -> float:
        return float(self.weight.sum())

    def with_relative_weights(self) -> RowsInMemory:
        """The rows with weights that sum to the effective number of rows."""
        # In units of the largest, equal weights of any size become exactly one.
        weight = self.weight / self.weight.max()
        return replace(self, weight=weight * relative_scale(weight.sum(), weight @ weight))

    def output_sums(self, losses: Sequence[Loss]) -> OutputSums:
        """Sums of weights and of negative gradients over the codes of columns, by output."""
        sums = OutputSums.empty(self, losses)
        sums.update(self)
        return sums

    def pair_counts(self, pairs: Sequence[Pair], coarse: Sequence[PairCodes]) -> list[np.ndarray]:
        """Sums of weights over the pairs of coarse codes of two columns."""
        return [
            pair_table(
                first.of_code[self.codes[j]], second.of_code[self.codes[k]], self.weight,
                (first.size, second.size),
            )
            for (j, k), (first, second) in zip(pairs, coarse, strict=True)
        ]  # fmt: skip

    def with_terms(
        self, terms: Sequence[DesignTerm], constraints: np.ndarray | None, output: int
    ) -> TermRows:
        """The rows with some terms, as a solver sees them."""
        offset, free = self.offset, [term for term in terms if not term.fixed_effects]
        for term in terms:
            if term.fixed_effects:
                offset = offset + term.fixed_effects[output][term.codes(self.codes)]
        codes, bases = [term.codes(self.codes) for term in free], [term.basis for term in free]
        y = self.targets[output]
        return TermRows(codes, bases, y, self.weight, offset, self.n_jobs, constraints)

    def derivative_tables(
        self, terms: Sequence[DesignTerm], beta: np.ndarray, loss: Loss, output: int,
        pairs: Sequence[Pair], coarse: dict[int, CoarseCodes], of: Sequence[str],
    ) -> np.ndarray:  # fmt: skip
        """Weighted sums of the losses' derivatives at β over the coarse codes of pairs.

        `of` names the derivatives: "curvature", "gradient", "squared_gradient". The shape is
        (n_pairs, n_derivatives, n_codes, n_codes); see `sums_by_pair`.
        """
        eta = self.with_terms(terms, None, output).scores(beta)
        gradient, curvature = loss.derivatives(self.targets[output], eta)
        by_name = {
            "curvature": curvature, "gradient": gradient, "squared_gradient": gradient**2,
        }  # fmt: skip
        values = [by_name[name] * self.weight for name in of]
        return sums_by_pair(pairs, coarse, self.codes, values, self.n_jobs)


NO_ROWS = LossTotals(0.0, 0.0, 0.0, 0.0)


def relative_scale(total: float, total_square: float) -> float:
    """The factor by which weights sum to the effective number of rows, (Σw)²/Σw² (Kish 1965)."""
    return float(total / total_square)


@dataclass
class OutputSums:
    """Sums over the codes of columns of each output's negative gradients at its intercept.

    For squared loss these are the residuals of the constant model. `totals` are sums over all
    rows, by output, `squared_weight` is Σw², and `n_without_target` counts rows that were left out.
    `ranges` are those of the rows, see `RowsInMemory`.
    """

    by_output: list[CodeSums]
    losses: tuple[Loss, ...]
    intercepts: tuple[float, ...]
    totals: list[LossTotals]
    squared_weight: float = 0.0
    n_without_target: int = 0
    ranges: np.ndarray | float = -np.inf

    @classmethod
    def empty(
        cls, rows: RowsInMemory, losses: Sequence[Loss], with_pairs: bool = False
    ) -> OutputSums:
        """Of no rows, with the intercepts of these; the first output may sum over pairs, too."""
        sizes = [book.n_codes for book in rows.books]
        sums = [CodeSums(sizes, with_pairs and k == 0) for k in range(len(losses))]
        intercepts = (
            loss.initial_intercept(y, rows.weight, rows.offset) if rows.weight.any() else 0.0
            for loss, y in zip(losses, rows.targets, strict=True)
        )
        return cls(sums, tuple(losses), tuple(intercepts), [NO_ROWS] * len(losses))

    def zero(self) -> OutputSums:
        by_output = [sums.zero() for sums in self.by_output]
        totals = [NO_ROWS] * len(by_output)
        return OutputSums(by_output, self.losses, self.intercepts, totals)

    def update(self, rows: RowsInMemory) -> None:
        self.squared_weight += float(rows.weight @ rows.weight)
        self.n_without_target += rows.n_without_target
        if rows.ranges is not None:
            self.ranges = np.maximum(self.ranges, rows.ranges)
        outputs = zip(self.by_output, self.losses, self.intercepts, rows.targets, strict=True)
        for sums, loss, intercept, y in outputs:
            gradient, _ = loss.derivatives(y, rows.offset + intercept)
            sums.update(rows.codes, -gradient, rows.weight, n_jobs=rows.n_jobs)
        constants = zip(self.losses, self.intercepts, rows.targets, strict=True)
        of_rows = [loss.totals(y, rows.weight, rows.offset, c) for loss, c, y in constants]
        self.totals = [a + b for a, b in zip(self.totals, of_rows, strict=True)]

    def merge(self, other: OutputSums) -> OutputSums:
        for sums, more in zip(self.by_output, other.by_output, strict=True):
            sums.merge(more)
        self.squared_weight += other.squared_weight
        self.n_without_target += other.n_without_target
        self.ranges = np.maximum(self.ranges, other.ranges)
        self.totals = [a + b for a, b in zip(self.totals, other.totals, strict=True)]
        return self

    @property
    def weight(self) -> float:
        """Σw."""
        return self.by_output[0].weight

    def scaled(self, factor: float) -> OutputSums:
        """The sums for weights that are multiplied by a factor."""
        by_output = [sums.scaled(factor) for sums in self.by_output]
        totals = [item.scaled(factor) for item in self.totals]
        square = factor**2 * self.squared_weight
        return replace(self, by_output=by_output, totals=totals, squared_weight=square)
