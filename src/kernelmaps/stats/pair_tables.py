r"""Sums over codes and over pairs of codes, for models of binned columns.

With every column coded by at most some hundred integers, and :math:`B_j` the matrix of a basis at
the codes of column j, the cross products of a weighted least-squares problem are

.. math:: Z_j^\top W Z_k = B_j^\top T_{jk} B_k, \qquad
          T_{jk}[a, b] = \sum_{i:\, c_{ij} = a,\, c_{ik} = b} w_i,

so that a row costs one addition for each pair of columns, whatever the bases (Li and Wood 2020,
*Faster model matrix crossproducts for large generalized linear models with discretized
covariates*). The tables are sums over rows: they can be merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from .._util.threads import limit_blas, map_in_threads, run_in_threads

_THREAD_ADDITIONS = 1 << 16  # below which a thread does not pay
_MANY_CODES = 256  # of a term, beyond which those that no row has are left out
_STACKED_ROWS = 1 << 16  # whose scores stay in a cache
_COPIED_CODES = 1 << 18  # codes of pairs that are copied for one call
# What a pair of terms costs by itself, and what each row adds to it, in multiplications of a
# product of matrices (timings on two cores). With 57 terms and 3000 rows, products of rows take a
# tenth of the time of tables of pairs.
_BLOCK_COST, _ROW_COST = 800_000, 40
_DENSE_ROWS = 2048  # whose matrix Z is in memory at a time
_PARTS = 4  # of the rows, added up side by side: sums do not depend on the number of threads


def _loops() -> Any:
    """The compiled sums, by a late import: it imports numba."""
    from . import _pair_loops

    return _pair_loops


class CodeSums:
    """Mergeable sums of weights and of weighted targets over codes and pairs of codes.

    Parameters
    ----------
    sizes : sequence of int
        Number of codes of each column.
    pairs : bool, default=True
        Whether pairs are summed up, too.

    Attributes
    ----------
    weight, target, square : float
        Σ w, Σ w·y and Σ w·y².
    count : int
        Rows of positive weight.
    singles, targets : list of ndarray
        Σ w and Σ w·y by the codes of each column.
    pairs : dict of (j, k) to ndarray
        Σ w by pairs of codes, j < k.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmaps.stats import CodeSums
    >>> codes = [np.array([0, 1, 1], np.uint8), np.array([0, 0, 1], np.uint8)]
    >>> CodeSums([2, 2]).update(codes, np.array([1.0, 2.0, 3.0])).pairs[0, 1]
    array([[1., 0.],
           [1., 1.]])
    """

    def __init__(self, sizes: Sequence[int], pairs: bool = True) -> None:
        self.sizes = [int(size) for size in sizes]
        self.with_pairs = pairs
        self.weight = self.target = self.square = 0.0
        self.count = 0
        self.singles = [np.zeros(size) for size in self.sizes]
        self.targets = [np.zeros(size) for size in self.sizes]
        column_pairs = combinations(range(len(self.sizes)), 2) if pairs else ()
        self.pairs = {(j, k): np.zeros((self.sizes[j], self.sizes[k])) for j, k in column_pairs}

    def zero(self) -> CodeSums:
        """Return empty sums of the same coding.

        Returns
        -------
        CodeSums
            Sums of no rows.
        """
        return CodeSums(self.sizes, self.with_pairs)

    def update(
        self,
        codes: Sequence[np.ndarray],
        y: np.ndarray,
        weight: np.ndarray | None = None,
        *,
        n_jobs: int | None = None,
    ) -> CodeSums:
        """Add rows.

        Parameters
        ----------
        codes : sequence of unsigned integer arrays
            One per column.
        y : ndarray of shape (n_samples,)
            Targets.
        weight : ndarray of shape (n_samples,), optional
            Weights; 1 by default.
        n_jobs : int, optional
            Threads; None means all that are available.

        Returns
        -------
        CodeSums
            This object, changed.
        """
        self._check(codes, y)
        y = np.asarray(y, np.float64)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
        product = weight * y
        self.weight += float(weight.sum())
        self.target += float(product.sum())
        self.square += float(product @ y)
        self.count += int(np.count_nonzero(weight))
        for column, single, target in zip(codes, self.singles, self.targets, strict=True):
            _add_by_code(column, weight, single)
            _add_by_code(column, product, target)
        column_pairs = list(self.pairs)

        def work(begin: int, end: int) -> None:
            for j, k in column_pairs[begin:end]:
                add_to_pair_table(codes[j], codes[k], weight, self.pairs[j, k])

        run_in_threads(work, len(column_pairs), n_jobs, grain=_terms_for_a_thread(len(y)))
        return self

    def _check(self, codes: Sequence[np.ndarray], y: np.ndarray) -> None:
        if len(codes) != len(self.sizes):
            raise ValueError(f"CodeSums: {len(codes)} columns of codes, expected {len(self.sizes)}")
        for j, column in enumerate(codes):
            if len(column) != len(y):
                raise ValueError(f"CodeSums: column {j} has {len(column)} codes for {len(y)} rows")
            # The loops do not check their indices: a code out of range would write elsewhere.
            largest = int(column.max()) if column.size else None
            if column.dtype.kind != "u" or (largest is not None and largest >= self.sizes[j]):
                raise ValueError(
                    f"CodeSums: codes of column {j} must be unsigned integers below "
                    f"{self.sizes[j]}, got {column.dtype} up to {largest}"
                )

    def merge(self, other: CodeSums) -> CodeSums:
        """Add the sums of other rows.

        Parameters
        ----------
        other : CodeSums
            Sums of the same coding.

        Returns
        -------
        CodeSums
            This object, changed.
        """
        if other.sizes != self.sizes:
            raise ValueError(
                f"CodeSums: columns have {other.sizes} codes, expected {self.sizes}: merge sums "
                "of the same coding"
            )
        for name in ("weight", "target", "square", "count"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for sums, added in zip(self._tables, other._tables, strict=True):
            sums += added
        return self

    def scaled(self, factor: float) -> CodeSums:
        """Return the sums for weights that are multiplied by a factor.

        Parameters
        ----------
        factor : float
            Positive.

        Returns
        -------
        CodeSums
            New sums.
        """
        sums = self.zero().merge(self)
        for name in ("weight", "target", "square"):
            setattr(sums, name, factor * getattr(sums, name))
        for table in sums._tables:
            table *= factor
        return sums

    @property
    def _tables(self) -> list[np.ndarray]:
        return [*self.singles, *self.targets, *self.pairs.values()]

    def products(
        self, bases: Sequence[np.ndarray], columns: Sequence[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute ZᵀWZ and ZᵀWy for Z = [1, B_1, B_2, …] at the codes of the rows.

        Parameters
        ----------
        bases : sequence of ndarray of shape (n_codes, n_functions)
            Values of a column's functions at its codes.
        columns : sequence of int, optional
            The columns that the bases are of, in increasing order; by default all.

        Returns
        -------
        gram : ndarray
            ZᵀWZ.
        right : ndarray
            ZᵀWy.
        """
        columns = range(len(bases)) if columns is None else columns
        start = np.cumsum([1, *(basis.shape[1] for basis in bases)])
        gram, right = np.zeros((start[-1], start[-1])), np.zeros(start[-1])
        gram[0, 0], right[0] = self.weight, self.target
        for a, (j, basis) in enumerate(zip(columns, bases, strict=True)):
            span_a = slice(start[a], start[a + 1])
            gram[0, span_a] = gram[span_a, 0] = self.singles[j] @ basis
            gram[span_a, span_a] = basis.T @ (self.singles[j][:, None] * basis)
            right[span_a] = self.targets[j] @ basis
            for b in range(a):
                span_b = slice(start[b], start[b + 1])
                gram[span_b, span_a] = bases[b].T @ (self.pairs[columns[b], j] @ basis)
                gram[span_a, span_b] = gram[span_b, span_a].T
        return gram, right


def pair_table(
    rows: np.ndarray, columns: np.ndarray, weight: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Sums of weights over pairs of codes, as an array of the given shape."""
    out = np.zeros(shape)
    add_to_pair_table(rows, columns, weight, out)
    return out


def add_to_pair_table(
    rows: np.ndarray, columns: np.ndarray, weight: np.ndarray, out: np.ndarray
) -> None:
    """out[rows[i], columns[i]] += weight[i]."""
    _loops().add_pairs(rows[None], columns[None], weight[None], out[None, None])


def tables_of_pairs(
    codes: np.ndarray, pairs: np.ndarray, values: np.ndarray, size: int, n_jobs: int | None = None
) -> np.ndarray:
    """Sums of values of the rows over the pairs of codes of many pairs of columns.

    Parameters
    ----------
    codes : ndarray of shape (n_columns, n_samples)
        Unsigned integers below `size`.
    pairs : ndarray of int of shape (n_pairs, 2)
        Positions of two columns.
    values : ndarray of shape (n_values, n_samples)
        Each has a table for each pair.
    size : int
        Codes of a column.
    n_jobs : int, optional
        Threads; None means all that are available.

    Returns
    -------
    ndarray of shape (n_pairs, n_values, size, size)
    """
    out, n_rows = np.zeros((len(pairs), len(values), size, size)), max(codes.shape[1], 1)
    step = max(1, _COPIED_CODES // n_rows)

    def work(begin: int, end: int) -> None:
        for start in range(begin, end, step):
            batch = slice(start, min(start + step, end))
            rows, columns = codes[pairs[batch, 0]], codes[pairs[batch, 1]]
            _loops().add_pairs(rows, columns, values, out[batch])

    run_in_threads(work, len(pairs), n_jobs, grain=_terms_for_a_thread(n_rows))
    return out


def cross_products(
    codes: Sequence[np.ndarray],
    bases: Sequence[np.ndarray],
    weight: np.ndarray,
    product: np.ndarray | None,
    n_jobs: int | None = None,
    cached: tuple[np.ndarray, Sequence[bool]] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return G = ZᵀWZ and Zᵀv for Z = [1, B_1, B_2, …] at the codes of rows in memory.

    With v = Wy the same as ``CodeSums(...).update(...).products(bases)``, without storing the
    tables: blocks :math:`B_j^\top T_{jk} B_k` come from one table after the other or, for few rows
    and many small bases, from products of the matrix Z itself.

    Parameters
    ----------
    codes : sequence of unsigned integer arrays
        One per term; all below the number of rows of its basis.
    bases : sequence of ndarray of shape (n_codes, n_functions)
    weight, product : ndarray of shape (n_samples,)
        The diagonal of W, and v; None stands for zeros.
    n_jobs : int, optional
        Threads; None means all that are available.
    cached : tuple of (ndarray, sequence of bool), optional
        G with the blocks of some terms computed before, and for each term whether it is new: the
        rows and columns of new terms are filled in.
    """
    start = _columns(bases)
    columns = [slice(a, b) for a, b in pairwise(start)]
    gram, new = cached or (np.zeros((start[-1], start[-1])), [True] * len(bases))
    used = [_drop_unused_codes(*term) for term in zip(codes, bases, strict=True)]
    pairs = [(j, k) for k in range(len(bases)) for j in range(k + 1) if new[j] or new[k]]
    gram[0, 0] = weight.sum()
    is_new = np.repeat([True, *new], np.diff([0, *start]))
    if len(weight) * is_new.sum() * len(gram) < len(pairs) * (
        _BLOCK_COST + _ROW_COST * len(weight)
    ):
        gram[is_new] = _products_of_rows(used, weight, is_new, n_jobs)
        gram[:, is_new] = gram[is_new].T
        return gram, right_sides(codes, bases, product, n_jobs)

    def fill(begin: int, end: int) -> None:
        for j, k in pairs[begin:end]:
            (left_codes, left), (right_codes, right) = used[j], used[k]
            if j == k:
                sums = _sums_by_code(left_codes, weight, len(left))  # the diagonal of T_jj
                gram[0, columns[j]] = gram[columns[j], 0] = sums @ left
                gram[columns[j], columns[j]] = left.T @ (sums[:, None] * left)
                continue
            block = _block(left_codes, right_codes, weight, left, right)
            gram[columns[j], columns[k]], gram[columns[k], columns[j]] = block, block.T

    with limit_blas(1):
        run_in_threads(fill, len(pairs), n_jobs, grain=_terms_for_a_thread(len(weight)))
    return gram, right_sides(codes, bases, product, n_jobs)


def _products_of_rows(
    terms: Sequence[tuple[np.ndarray, np.ndarray]], weight: np.ndarray, is_new: np.ndarray,
    n_jobs: int | None,
) -> np.ndarray:  # fmt: skip
    """The rows of ZᵀWZ that are new, from Zᵀ√|W| of some rows at a time."""
    root, signs = np.sqrt(np.abs(weight)), np.sign(weight) if weight.min(initial=0.0) < 0 else None
    columns = [slice(*ends) for ends in pairwise(_columns([basis for _, basis in terms]))]
    functions = [
        (codes, np.ascontiguousarray(basis.T), where)
        for (codes, basis), where in zip(terms, columns, strict=True)
    ]

    def multiply(bounds: tuple[int, int]) -> np.ndarray:
        out = np.zeros((np.count_nonzero(is_new), len(is_new)))
        for begin in range(*bounds, _DENSE_ROWS):
            rows = slice(begin, min(begin + _DENSE_ROWS, bounds[1]))
            Z = np.empty((len(is_new), rows.stop - begin))
            Z[0] = 1.0
            for codes, table, place in functions:  # codes are below their number: no check
                np.take(table, codes[rows], axis=1, out=Z[place], mode="clip")
            Z *= root[rows]
            left = Z if is_new.all() else Z[is_new]  # Z @ Z.T takes half the time of A @ B.T
            out += (left if signs is None else left * signs[rows]) @ Z.T
        return out

    bounds = list(pairwise(len(weight) * k // _PARTS for k in range(_PARTS + 1)))
    with limit_blas(1):
        return np.sum(map_in_threads(multiply, bounds, n_jobs), axis=0)


def _drop_unused_codes(codes: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes and a basis without the codes that no row has, where there may be many of them."""
    if len(basis) <= _MANY_CODES:
        return codes, basis
    used = np.zeros(len(basis), bool)
    used[codes] = True
    return (np.cumsum(used) - 1).astype(codes.dtype)[codes], basis[used]


def _sums_by_code(codes: np.ndarray, weight: np.ndarray, size: int) -> np.ndarray:
    """Sums of weights over codes."""
    out = np.zeros(size)
    _add_by_code(codes, weight, out)
    return out


def _add_by_code(codes: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
    """out[codes[i]] += weight[i]."""
    _loops().add_codes(_two_bytes(codes)[None], weight, np.zeros(1, np.int64), out)


def _two_bytes(codes: np.ndarray) -> np.ndarray:
    """Codes of at least two bytes: loops are compiled for these alone, not for those of one."""
    return codes.astype(np.result_type(codes, np.uint16), copy=False)


def add_scores(
    codes: Sequence[np.ndarray], bases: Sequence[np.ndarray], beta: np.ndarray, out: np.ndarray,
    n_jobs: int | None = None,
) -> None:  # fmt: skip
    """Add Zβ to `out`, without the intercept ``beta[0]``."""
    columns = pairwise(_columns(bases))
    values = [basis @ beta[a:b] for basis, (a, b) in zip(bases, columns, strict=True)]

    def work(begin: int, end: int) -> None:
        for a in range(begin, end, _STACKED_ROWS):
            rows = slice(a, min(a + _STACKED_ROWS, end))
            for term_codes, term_values in zip(codes, values, strict=True):
                _loops().gather_codes(_two_bytes(term_codes[rows]), term_values, out[rows])

    run_in_threads(work, len(out), n_jobs, grain=_STACKED_ROWS)


def right_sides(
    codes: Sequence[np.ndarray], bases: Sequence[np.ndarray], product: np.ndarray | None,
    n_jobs: int | None = None,
) -> np.ndarray:  # fmt: skip
    """Return Zᵀv alone, as :func:`cross_products` does."""
    start = _columns(bases)
    out = np.zeros(start[-1])
    if product is None:
        return out
    out[0] = product.sum()

    def fill(begin: int, end: int) -> None:
        for j in range(begin, end):
            sums = _sums_by_code(codes[j], product, len(bases[j]))
            out[start[j] : start[j + 1]] = sums @ bases[j]

    run_in_threads(fill, len(bases), n_jobs, grain=_terms_for_a_thread(len(product)))
    return out


def products_by_level(
    levels: np.ndarray, n_levels: int, codes: Sequence[np.ndarray], bases: Sequence[np.ndarray],
    weight: np.ndarray, n_jobs: int | None = None,
) -> np.ndarray:  # fmt: skip
    """EᵀWZ for Z = [1, B_1, B_2, …] and the indicators E of many levels, one row for each level."""
    start = _columns(bases)
    out = np.zeros((n_levels, start[-1]))
    out[:, 0] = np.bincount(levels, weight, n_levels)

    def fill(begin: int, end: int) -> None:
        for j in range(begin, end):
            block = np.zeros((n_levels, bases[j].shape[1]))
            _loops().add_rows(levels, codes[j], weight, bases[j], block)
            out[:, start[j] : start[j + 1]] = block

    run_in_threads(fill, len(bases), n_jobs, grain=_terms_for_a_thread(len(weight)))
    return out


def _columns(bases: Sequence[np.ndarray]) -> list[int]:
    """Where the columns of each term begin in Z, and their end."""
    return np.cumsum([1, *(basis.shape[1] for basis in bases)]).tolist()


def _terms_for_a_thread(n_rows: int) -> int:
    return max(1, _THREAD_ADDITIONS // max(n_rows, 1))


def _block(
    rows: np.ndarray, columns: np.ndarray, weight: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """B_jᵀ T_jk B_k."""
    if left.shape[1] < right.shape[1]:  # the narrower basis is multiplied by the table
        return _block(columns, rows, weight, right, left).T
    if left.shape[0] * right.shape[0] <= len(weight):
        return left.T @ (pair_table(rows, columns, weight, (len(left), len(right))) @ right)
    out = np.zeros((left.shape[0], right.shape[1]))
    basis = np.ascontiguousarray(right)
    _loops().add_rows(_two_bytes(rows), _two_bytes(columns), weight, basis, out)
    return left.T @ out
