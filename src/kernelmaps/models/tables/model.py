"""A fitted additive model of a table: codes, terms, and what they say about rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...data.frames import Column
from ...schema import SchemaError, anything, array, either, record, saved, text
from ..shapes import tabulated_importance
from .codebooks import Codebook

_BY_CODE = either((array("f8", "codes outputs"), array("f8", "codes second outputs")))


@record
class FittedTerm:
    """One function, as values at codes.

    Attributes
    ----------
    name : str
        Of the column, or ``"a × b"``.
    kind : {"spline", "linear", "category", "periodic", "pair"}
    columns : tuple of int
        One column, or two.
    values, errors : ndarray of shape (n_codes, n_outputs) or (n_first, n_second, n_outputs)
        The function at its codes, centred over the training rows, and its standard errors.
    counts : ndarray of shape (n_codes,) or (n_first, n_second)
        Weight of the training rows with these codes.
    edf, statistic, p_value : ndarray of shape (n_outputs,)
        Effective degrees of freedom; Wald's statistic against "no effect", and its approximate
        significance.
    strengths : ndarray of shape (n_strengths, n_outputs)
        Of the term's penalties: of its curvature (of many rows two, the second of its smoothest
        functions), and of its straight part.
    coarse : tuple of ndarray
        For pairs: the coarse code of each code, for both columns.
    """

    name: str = saved(text())
    kind: str = saved(text(("spline", "linear", "category", "periodic", "pair")))
    columns: tuple[int, ...] = saved(anything)
    values: np.ndarray = saved(_BY_CODE)
    errors: np.ndarray = saved(_BY_CODE)
    counts: np.ndarray = saved(either((array("f8", "codes"), array("f8", "codes second"))))
    edf: np.ndarray = saved(array("f8", "outputs"))
    statistic: np.ndarray = saved(array("f8", "outputs"))
    p_value: np.ndarray = saved(array("f8", "outputs", low=0, high=1))
    strengths: np.ndarray = saved(array("f8", "_ outputs", low=0, finite=False))
    coarse: tuple[np.ndarray, ...] = saved(anything, default=())

    def _check_state(self) -> None:
        n_columns = len(self.columns) if isinstance(self.columns, tuple) else 0
        pair = n_columns == 2
        whole = n_columns in (1, 2) and all(isinstance(j, int) and j >= 0 for j in self.columns)
        if not whole or (self.kind == "pair") != pair or self.values.ndim != 1 + n_columns:
            raise SchemaError(f"the term {self.name!r} has other columns than its values")
        if self.errors.shape != self.values.shape or self.counts.shape != self.values.shape[:-1]:
            raise SchemaError(f"the term {self.name!r} has counts or errors of other codes")
        if len(self.coarse) != (2 if pair else 0):
            raise SchemaError(f"the term {self.name!r} lacks its coarse codes")
        for axis, codes in enumerate(self.coarse):
            array("u1", "_", high=self.values.shape[axis] - 1)(codes, f"the term {self.name!r}", {})

    def slope(self, book: Codebook) -> np.ndarray:
        """Slope of a straight line, of all outputs."""
        extent = float(np.ptp(book.nodes)) if len(book.nodes) else 0.0
        return (self.values[-1] - self.values[1]) / extent if extent > 0 else 0 * self.values[0]

    @property
    def importance(self) -> float:
        """Standard deviation over the training rows, outputs averaged."""
        return tabulated_importance(self.values, self.counts)


@record
class TableModel:
    """Codebooks of all columns, the terms, and an intercept for each output."""

    books: tuple[Codebook, ...] = saved(anything)
    terms: tuple[FittedTerm, ...] = saved(anything)
    intercept: np.ndarray = saved(array("f8", "outputs"))

    def _check_state(self) -> None:
        for found, kind in ((self.books, Codebook), (self.terms, FittedTerm)):
            if not isinstance(found, tuple) or not all(isinstance(item, kind) for item in found):
                raise SchemaError(f"the table must hold a tuple of {kind.__name__}")
        for term in self.terms:
            if max(term.columns) >= len(self.books):
                raise SchemaError(f"the term {term.name!r} is of a column that is not there")
            sizes = [self.books[j].n_codes for j in term.columns]
            known = [len(c) for c in term.coarse] if term.coarse else [len(term.values)]
            if sizes != known or term.values.shape[-1] != len(self.intercept):
                raise SchemaError(f"the term {term.name!r} does not fit its column or the outputs")

    def contributions(self, columns: Sequence[Column], owner: str) -> np.ndarray:
        """Values of the terms for rows: shape (n_samples, n_terms, n_outputs)."""
        return np.stack(list(self._each(columns, owner)), axis=1) if self.terms else np.zeros(
            (len(columns[0]), 0, len(self.intercept))
        )  # fmt: skip

    def errors(self, columns: Sequence[Column], owner: str) -> np.ndarray:
        """Standard errors of the terms for rows, shaped as their contributions.

        Beyond the range of the training rows they are those at its end.
        """
        terms = tuple(
            replace(term, values=term.errors, kind=term.kind if term.coarse else "spline")
            for term in self.terms
        )
        return replace(self, terms=terms).contributions(columns, owner)

    def scores(self, columns: Sequence[Column], owner: str) -> np.ndarray:
        """Scores of rows: shape (n_samples, n_outputs)."""
        out = np.tile(self.intercept, (len(columns[0]), 1))
        for part in self._each(columns, owner):
            out += part
        return out

    def _each(self, columns: Sequence[Column], owner: str):
        codes: dict[int, np.ndarray] = {}
        for term in self.terms:
            if len(term.columns) == 1:
                j = term.columns[0]
                yield self._single(term, columns[j], self.books[j], owner)
                continue
            for j in term.columns:
                if j not in codes:
                    codes[j] = self.books[j].encode(columns[j], owner)
            first, second = (c[codes[j]] for c, j in zip(term.coarse, term.columns, strict=True))
            yield term.values[first, second]

    def _single(self, term: FittedTerm, column: Column, book: Codebook, owner: str) -> np.ndarray:
        """A column's function: looked up for categories, interpolated between bins of numbers.

        Beyond the bins it is constant; a straight line that was asked for goes on.
        """
        if book.kind == "category" or not len(book.nodes):
            return term.values[book.encode(column, owner)]
        book.check(column, owner)
        if column.is_category:  # nothing but gaps
            return np.tile(term.values[0], (len(column), 1))
        out = np.empty((len(column), term.values.shape[1]))
        for k in range(out.shape[1]):
            out[:, k] = np.interp(column.values, book.nodes, term.values[1:, k])
        if term.kind == "linear":
            beyond = column.values - np.clip(column.values, book.nodes[0], book.nodes[-1])
            out += beyond[:, None] * term.slope(book)
        out[np.isnan(column.values)] = term.values[0]
        return out
