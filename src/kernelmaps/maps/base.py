"""Base classes of maps: check rows, learn a spec, apply it, name the columns.

A new additive map is a small class: `__init__` stores parameters, `_learn(X)` returns the spec
(and may set `kernel_`, `domain_`, `certificate_`). Everything else is here or in the engine.

Range of each feature for spline, trigonometric and Hermite bases.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from .._util.arguments import (
    argument_error,
    check_choice,
    check_number,
    check_positive,
    generator,
)
from .._util.devices import (
    is_foreign,
    is_tensor,
    memory_named,
    namespace_of,
    refuse_container,
    refuse_gpu_array,
    to_host,
)
from .._util.schema import State, boolean, instance, names, optional, size
from .._util.sparse import check_sparse, dense, naming_text
from .._util.storage import all_or_nothing
from .._util.threads import resolve_threads, run_in_threads
from ..certificate import Certificate, rounding_error
from ..engine import Spec, apply, evaluate, gpu
from ..engine.apply import apply_array_api, stage_columns
from ..engine.extent import (
    DOMAIN,
    OUT_OF_DOMAIN,
    ColumnRange,
    Extent,
)
from ..engine.outputs import output_dtype
from ..engine.piecewise import table_of
from ..engine.reference import real_rows
from ..engine.saved_map import ValueChecks
from ..engine.table import CODE
from ..kernels import Kernel
from .codes import Codes

_NATIVE = (np.float32, np.float64, np.uint8, np.uint16)


class FeatureMap(ValueChecks, TransformerMixin, BaseEstimator, ABC):
    """A map φ whose inner products approximate a kernel.

    Attributes
    ----------
    spec_ : Spec
        The arrays and numbers that determine φ.
    kernel_ : Kernel
        The exact kernel that φ approximates.
    certificate_ : Certificate or None
        A bound on the error, where one is known.
    n_features_in_ : int
        Features seen in `fit`.
    """

    _state: ClassVar[State] = State(
        required={"spec_": instance((Spec,)), "n_features_in_": size("features")},
        allowed={
            "feature_names_in_": names,
            "kernel_": instance((Kernel,)),
            "certificate_": optional(instance((Certificate,))),
            "refuses_negative": optional(boolean),
        },
        attributes={"refuses_negative": "_fit_refuses_negative"},
    )

    spec_: Spec
    kernel_: Any
    certificate_: Certificate | None = None
    _class_name = property(lambda self: type(self).__name__)
    _parameters = property(lambda self: self.get_params())

    @property
    def _refuses_negative(self) -> bool | None:
        """Whether negative values are refused, for readers of files; None if columns differ."""
        return bool(self._non_negative)

    @abstractmethod
    def _learn(self, X: Any) -> Spec:
        """The spec, from checked rows (NumPy of a native dtype, or CSR)."""

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> FeatureMap:
        """Learn what the map needs to know about the data, usually only their range.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored

        Returns
        -------
        self
            The fitted map.
        """
        self._fit_rows(X)
        return self

    @all_or_nothing
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to rows and transform them, which are checked only once.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored

        Returns
        -------
        array or CSR matrix of shape (n_samples, n_features_out)
            As from `transform`.
        """
        X, extent = self._fit_rows(X)
        return self._apply(X, extent)

    def _fit_rows(self, X: Any) -> tuple[Any, Extent]:
        """Fit, and the checked rows."""
        if is_foreign(X):
            raise TypeError(
                f"{type(self).__name__}.fit runs on NumPy arrays and CSR matrices, not on "
                f"{type(X).__module__} arrays; fit on (a sample of) the data as NumPy, then "
                "transform on the device."
            )
        X, extent = self._check_rows(X, reset=True)
        self.certificate_ = None
        self._warned = False
        self.spec_ = self._learn(X)
        self._fit_refuses_negative = self._refuses_negative
        return X, extent

    def transform(self, X: Any, *, out: np.ndarray | None = None) -> Any:
        """Compute the mapped rows φ(X).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            float32, uint8 and uint16 give float32 results, all else float64. Arrays of other
            array-API libraries stay in their library and on their device.
        out : ndarray, optional
            Where to write a dense result. X is copied first if the two overlap.

        Returns
        -------
        array or CSR matrix of shape (n_samples, n_features_out)
            CSR for CSR input wherever φ(0) = 0.
        """
        check_is_fitted(self)
        if is_foreign(X):
            return self._transform_array_api(X, out)
        X, extent = self._check_rows(X, reset=False)
        return self._apply(X, extent, out)

    def _apply(self, X: Any, extent: Extent, out: np.ndarray | None = None) -> Any:
        """φ of checked rows."""
        self._check_domain(X, extent.columns)
        return apply(self.spec_, X, out=out, n_jobs=self.n_jobs, extent=extent)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the input columns; by default those seen in `fit`.

        Returns
        -------
        ndarray of str
            One name for each output column.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.asarray(self._names_out(names), dtype=object)

    @property
    def _n_features_out(self) -> int:
        return stage_columns(self.spec_, self.n_features_in_)

    def _names_out(self, names: np.ndarray) -> list[str]:
        prefix = type(self).__name__.lower()
        return [f"{prefix}{column}" for column in range(self._n_features_out)]

    def _check_rows(self, X: Any, *, reset: bool) -> tuple[Any, Extent]:
        """Rows as NumPy of a native dtype or CSR, with nothing that φ is not defined for."""
        X = self._native_rows(X, reset=reset)
        return X, self._check_values(X, fitting=reset)

    def _native_rows(self, X: Any, *, reset: bool) -> Any:
        """Rows as C-ordered NumPy of a native dtype or CSR; their values are not looked at."""
        if isinstance(X, Codes):
            raise TypeError(
                f"{type(self).__name__}: X holds codes of an AnchorMap, not values. That map's "
                "decode(X) gives their features."
            )
        name = type(self).__name__
        refuse_gpu_array(
            X,
            f"this call of {name}",
            "transform takes dense arrays where they are; pass others as NumPy or SciPy.",
        )
        check_sparse(X, name)
        with naming_text(name, X):
            X = validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False
            )
        if X.dtype not in _NATIVE:
            X = X.astype(np.float32 if X.dtype == np.float16 else np.float64)
        if not sparse.issparse(X):
            return np.ascontiguousarray(X)
        if not X.has_canonical_format:  # φ of a sum is not the sum of φ: entries stored twice
            X = X.copy()
            X.sum_duplicates()
        return X

    def _transform_array_api(self, X: Any, out: Any) -> Any:
        """φ of another library's arrays, on their device; on a GPU, one look at the values."""
        refuse_container(self, X)
        with memory_named(type(self).__name__, "Transform fewer rows at a time."):
            X = self._foreign_rows(X)
            if getattr(self, "out_of_domain", None) == "raise":
                self._check_domain(X)
            # Of float64 rows the sizes have to be looked at, too: see `_check_extent`.
            at_once = out is None and gpu.usable_for(X) and "64" not in str(X.dtype)
            if at_once:
                check = gpu.NON_NEGATIVE if self._non_negative else gpu.FINITE
                Z, refused = apply_array_api(self.spec_, X, check)
                if not refused:
                    return Z
            self._check_foreign(X)
            return evaluate(self.spec_, X) if at_once else apply(self.spec_, X, out=out)

    def _foreign_rows(self, X: Any) -> Any:
        """Rows of another library's arrays, of the fitted shape, as floats (or bytes)."""
        if is_tensor(X) and str(X.layout) != "torch.strided":
            raise TypeError(
                f"{type(self).__name__}: of tensors, dense ones are taken: X.to_dense(), for some "
                "rows at a time."
            )
        xp = namespace_of(X)
        if xp.isdtype(X.dtype, "complex floating"):
            raise ValueError(f"Complex data not supported by {type(self).__name__}: {X.dtype}.")
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has shape {tuple(X.shape)}, but {type(self).__name__} is expecting "
                f"(n, {self.n_features_in_})."
            )
        if xp.isdtype(X.dtype, "real floating") or (X.dtype == xp.uint8 and gpu.usable_for(X)):
            return X
        return real_rows(X, xp)

    def _check_foreign(self, X: Any) -> None:
        """Refuse what φ is not defined for."""
        xp = namespace_of(X)
        if not bool(xp.all(xp.isfinite(X))):
            raise ValueError(
                f"Input X contains NaN or infinity; {type(self).__name__} refuses both."
            )
        if X.shape[0]:
            ends = float(xp.min(X)), float(xp.max(X))
            self._check_extent(*ends, np.dtype(np.float64), False)

    def _check_state(self) -> None:
        """Raise ValueError or TypeError if entries that were loaded contradict each other."""
        resolve_threads(self.n_jobs)
        if not hasattr(self, "spec_"):
            return
        if getattr(self, "_fit_refuses_negative", None) not in (None, self._refuses_negative):
            raise ValueError("refuses_negative contradicts the kernel")
        stage_columns(self.spec_, self.n_features_in_)
        if self.spec_.family == "piecewise" and self.spec_.numbers["binning"] == CODE:
            raise ValueError("the spec maps codes, not values")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self._non_negative
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MapOfDomain(FeatureMap):
    """A map that knows the ranges of the columns, and what is done with values outside of them."""

    _policies = OUT_OF_DOMAIN

    def _fit_rows(self, X: Any) -> tuple[Any, Extent]:
        check_choice(self, "out_of_domain", self.out_of_domain, self._policies)
        return super()._fit_rows(X)

    def _check_state(self) -> None:
        super()._check_state()
        check_choice(self, "out_of_domain", self.out_of_domain, self._policies)

    def _column_range(self, X: Any) -> ColumnRange:
        if sparse.issparse(X):
            return min_max_axis(X, axis=0)
        if is_foreign(X):
            xp = namespace_of(X)
            ends = xp.min(X, axis=0), xp.max(X, axis=0)
            return tuple(to_host(xp.astype(end, xp.float64)) for end in ends)
        return super()._column_range(X)


class AdditiveMap(MapOfDomain):
    """A map that acts on each feature alone: φ(x) = [φ_1(x_1), …, φ_D(x_D)].

    Attributes
    ----------
    domain_ : tuple of arrays (lower, upper) or None
        Range of each feature (or of all, length 1) that the map was fitted for.
    """

    _state: ClassVar[State] = FeatureMap._state.extended(allowed={"domain_": optional(DOMAIN)})
    _homogeneous = False  # whether its kernel is one of values >= 0

    @property
    def _signed(self) -> bool:
        """Whether negative values have the odd extension: by its setting, or its kernel's."""
        owners = self, getattr(self, "kernel", None)
        return any(bool(getattr(owner, "signed", False)) for owner in owners)

    @property
    def _non_negative(self) -> bool:  # type: ignore[override]
        return self._homogeneous and not self._signed

    def _names_out(self, names: np.ndarray) -> list[str]:
        return additive_names(names, getattr(self, "kernel_", None), self._columns_per_feature())

    def _columns_per_feature(self) -> np.ndarray:
        if self.spec_.family == "piecewise":
            return np.diff(table_of(self.spec_).column)
        return np.full(self.n_features_in_, self._n_features_out // self.n_features_in_)

    def row_certificate(
        self,
        X: Any,
        *,
        probability: float = 0.99,
        largest: float | None = None,
        random_state: int = 0,
    ) -> Certificate:
        """Bound the error of whole rows with a given probability (Wang et al. 2015, Theorem 1(b)).

        The worst case of a row is the sum over its features, which grows like their number d.
        If features are independent, errors cancel, and their sum grows like √d.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows like those that the statement is about; at most 2000 pairs of them are measured.
        probability : float in (0, 1)
            Probability of the statement, over the rows that were measured and a new pair.
        largest : float, optional
            No value of any row is larger in size: 1 for histograms that sum to 1. None: the rows
            that are not measured (half of them, or more) tell how large values get, and a new pair
            exceeds the n values that they say with a probability of at most 2/(n + 1), which is
            taken from 1 − `probability`. ``out_of_domain="raise"`` limits values, too.
        random_state : int
            Seed of the pairs.

        Returns
        -------
        Certificate
            The bound, with its probability. It is infinite (`proved` is False) if there are too few
            rows, fewer than about 8/(1 − `probability`), to tell how large values get. Values
            beyond the fitted range are covered, with the part that is clipped.
        """
        check_is_fitted(self)
        refuse_gpu_array(
            X, f"{type(self).__name__}.row_certificate", "Pass a sample of rows as NumPy."
        )
        sure = self.certificate_
        component = getattr(getattr(self, "kernel_", None), "component", None)
        if sure is None or not sure.proved or sure.error != "absolute" or component is None:
            raise ValueError(
                f"{type(self).__name__}.row_certificate needs a proved absolute bound for each "
                "feature, and this map has none; kernelmaps.kernel_error measures rows."
            )
        check_number(self, "probability", probability, "between 0 and 1", lambda p: 0 < p < 1)
        X, extent = self._check_rows(X, reset=False)
        self._check_domain(X, extent.columns)
        limits, largest_seen = None, max(abs(extent.minimum), abs(extent.maximum))
        if largest is not None:
            check_positive(self, "largest", largest, "a positive number or None")
            if largest_seen > largest:
                raise ValueError(
                    f"{type(self).__name__}: largest={largest:g} says that no value is larger, but "
                    f"X has values of size {largest_seen:g}. Raise it, or leave it out."
                )
            limits = np.full(self.n_features_in_, float(largest))
        elif self.out_of_domain == "raise":
            limits = self._reach
        pairs = min(X.shape[0] // (4 if limits is None else 2), 2000)
        order = generator(random_state).permutation(X.shape[0])
        rows, exceeded = dense(X[order[: 2 * pairs]]), 0.0
        if limits is None:
            other_rows = X[order[2 * pairs :]]
            limits, exceeded = self._limits_of(other_rows), 2 / (other_rows.shape[0] + 1)
        errors = self._feature_errors(rows[:pairs], rows[pairs:])
        where = "rows like these, if their features are independent"
        largest_error = float(np.max(np.abs(errors.sum(axis=1)), initial=0.0))
        if exceeded > (1 - probability) / 2:
            reason = "too few rows to tell how large values get; say so with largest="
            return Certificate(np.inf, "absolute", where, reason, probability, found=largest_error)
        bound = self._feature_bound(limits)
        if output_dtype(X.dtype) == np.float32:
            columns = int(np.max(self._columns_per_feature()))
            size = float(np.max(self.kernel_.component(limits, limits)))
            bound += size * rounding_error(np.float32, columns)
        within = np.abs(rows) <= limits
        errors = np.where(within[:pairs] & within[pairs:], errors, 0.0)
        worst = bound * self.n_features_in_
        return Certificate(
            sum_bound(errors, bound, probability + exceeded),
            "absolute",
            f"{where} (at most {worst:.3g} for all with values up to {np.max(limits):.3g})",
            f"Bernstein's inequality, moments from {pairs} pairs of rows",
            probability,
            found=largest_error,
        )

    @property
    def _reach(self) -> np.ndarray | None:
        """Largest size of a value of each feature in the fitted domain, if there is one."""
        if self.domain_ is None:
            return None
        sizes = np.maximum(*(np.abs(end) for end in self._domain_for(np.dtype(np.float64))))
        return np.broadcast_to(sizes, self.n_features_in_)

    def _limits_of(self, X: Any) -> np.ndarray:
        """The smallest multiple of the fitted sizes (of 1) that holds all rows.

        One number for all features, so that a new row exceeds it with a probability of 1/(n + 1).
        """
        reach = np.ones(self.n_features_in_) if self._reach is None else self._reach
        unit = np.where(reach > 0, reach, np.max(reach) or 1.0)
        sizes = np.maximum(*(np.abs(dense(end).ravel()) for end in self._column_range(X)))
        return unit * float(np.max(sizes / unit, initial=0.0))

    def _feature_errors(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Errors of the kernel of each feature (columns) for pairs of rows."""
        if not X.shape[0]:
            return np.zeros(X.shape)
        starts = np.concatenate([[0], np.cumsum(self._columns_per_feature())[:-1]])
        Z, W = (apply(self.spec_, rows, n_jobs=self.n_jobs) for rows in (X, Y))
        products = np.asarray(Z, np.float64) * W
        return np.add.reduceat(products, starts, axis=1) - self.kernel_.component(X, Y)

    def _feature_bound(self, limits: np.ndarray) -> float:
        """Bound on the error of a feature whose values have at most these sizes.

        Here for maps that clip values beyond the fitted domain.
        """
        assert self.certificate_ is not None
        clipped = self.kernel_.clipping_bound(self._reach, limits)
        return self.certificate_.bound + float(np.max(clipped))


def additive_names(names: np.ndarray, kernel: Any, widths: np.ndarray) -> list[str]:
    """Names of the columns of each feature: the feature, its kernel and a number."""
    feature_kernel = getattr(kernel, "feature", lambda d: kernel)
    return [
        f"{name}_{getattr(feature_kernel(d), 'name', 'phi')}_{j}"
        for d, (name, width) in enumerate(zip(names, widths, strict=True))
        for j in range(width)
    ]


class JointMap(FeatureMap):
    """A map that acts on the whole row."""


def sum_bound(errors: np.ndarray, bound: float, probability: float) -> float:
    r"""A bound on |Σ_j e_j| for a fresh pair of rows, with that probability.

    The worst case of a row is the sum of the worst cases of its d features, d·B. Errors of both
    signs cancel: if features are independent, the sum of errors e_1, …, e_d with |e_j| ≤ B stays
    near its mean, and Bernstein's inequality says how near. With M₂ ≥ Σ E e_j², at most with
    probability δ

    .. math:: \Bigl|\sum_j e_j - E \sum_j e_j\Bigr| > \sqrt{2 M_2 \ln(2/δ)}
              + \tfrac{4}{3} B \ln(2/δ),

    which grows like √d. Theorem 1(b) of Wang et al. (2015) has σ² in place of M₂/d, and O(ε²) for
    the mean under its model of offsets; here both are measured on n pairs of rows, with a margin
    for what n pairs can miss: Hoeffding's for Σ e_j² ∈ [0, dB²] and Bernstein's for the mean. A
    third of 1 − p goes to each of the three statements.

    Parameters
    ----------
    errors : ndarray of shape (n_pairs, n_features)
        Errors of the features for independent pairs of rows.
    bound : float
        B: no error of a feature is larger.
    probability : float
        p, over the pairs that were measured and the fresh one.
    """
    n, d = errors.shape
    if n == 0:
        return d * bound
    chances = np.log(2 * 3 / (1 - probability))
    squares = float(np.mean(np.sum(errors**2, axis=1)))
    moment = min(squares + bound**2 * np.sqrt(d * chances / (2 * n)), d * bound**2)
    spread = np.sqrt(2 * moment * chances) + 4 / 3 * bound * chances
    mean = abs(float(np.mean(np.sum(errors, axis=1))))
    missed = np.sqrt(2 * moment * chances / n) + 4 / 3 * bound * chances / n
    return float(min(mean + missed + spread, d * bound))


_QUANTILE = 0.001  # of the positive values: the least value of a domain; smaller ones are rare
_SAMPLE = 1 << 15  # values that suggest where the quantile lies
_GRAIN = 1 << 16  # values of a block


def resolve_zero(owner: Any, X: Any) -> bool:
    """Whether Ψ(0) = 0 is required: "auto" says yes for CSR rows, whose zeros are not stored."""
    if owner.zero_at_zero == "auto":
        return bool(sparse.issparse(X))
    if not isinstance(owner.zero_at_zero, bool | np.bool_):
        raise argument_error(owner, "zero_at_zero", owner.zero_at_zero, "True, False or 'auto'")
    return bool(owner.zero_at_zero)


def feature_ranges(
    owner: AdditiveMap, X: Any, domain: Any, with_zero: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends, one per feature; a constant one gets a range of length 1 (a large one
    a longer range).

    ``domain="auto"`` takes the data's own range, but for unsigned integers the smallest
    [0, 2^k − 1] that holds it: features then share a handful of ranges, and their tables.
    """
    low, high = (np.asarray(end, dtype=np.float64) for end in owner._column_range(X))
    if not isinstance(domain, str) or domain not in ("auto", "data"):
        low, high = _read_domain(owner, domain, len(low))
    elif domain == "auto" and X.dtype.kind == "u":
        low = np.zeros_like(low)
        high = 2.0 ** np.ceil(np.log2(np.maximum(high, 1) + 1)) - 1
    if with_zero:
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    return low, np.where(differ(low, high), high, low + range_of_constant(low, high))


def differ(low: Any, high: Any) -> Any:
    """Whether the ends of a range differ by more than their last digits: else it is a constant."""
    # Halves first: the difference of the ends may be more than the largest number.
    size = np.maximum(np.abs(low), np.abs(high))
    return high / 2 - low / 2 > np.maximum(2.0**-45 * size, 1e-290)


def range_of_constant(low: Any, high: Any) -> Any:
    """A range for a constant: of length 1, or so long that its values have digits to differ in."""
    return np.maximum(1.0, 2.0**-20 * np.maximum(np.abs(low), np.abs(high)))


def _read_domain(owner: Any, domain: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """The ends of a domain that was given, unless it is an unknown name."""
    ends = () if isinstance(domain, str) else domain
    with suppress(TypeError, ValueError):
        low, high = (np.broadcast_to(np.float64(end), n_features) for end in ends)
        if np.isfinite([low, high]).all() and (low < high).all():
            return low.copy(), high.copy()
    words = "'auto', 'data' or a pair (low, high) of numbers or arrays with low < high"
    raise argument_error(owner, "domain", domain, words)


def positive_range(X: Any, n_jobs: int | None = None) -> tuple[float, float]:
    """A robust smallest non-zero magnitude and the largest: the 0.1 % quantile, and the maximum.

    With fewer than 1000 non-zero values the quantile is the smallest of them. Data without a
    non-zero value have the range (1/255, 1).

    The quantile is exact, so that the order of the rows does not matter, but only the smallest
    values are sorted: those up to a threshold that a sample of the values suggests.
    """
    values = (X.data if sparse.issparse(X) else X).ravel(order="K")
    sample = np.abs(values[:: max(1, values.size // _SAMPLE)].astype(np.float64))
    sample = np.sort(sample[sample > 0])
    threshold = np.inf
    if sample.size >= _SAMPLE // 8:  # most likely above the quantile, and below most values
        threshold = float(sample[int(4 * _QUANTILE * sample.size) + 8])

    def find_small(start: int, stop: int) -> tuple[np.ndarray, int, float]:
        """Non-zero magnitudes up to the threshold; how many are not zero; the largest."""
        small, count, largest = [np.empty(0)], 0, 0.0
        for begin in range(start, stop, _GRAIN):  # blocks that stay in the cache
            sizes = np.abs(values[begin : min(begin + _GRAIN, stop)].astype(np.float64))
            count += int(np.count_nonzero(sizes))
            largest = max(largest, float(sizes.max()))
            small.append(sizes[(sizes <= threshold) & (sizes > 0)])
        return np.concatenate(small), count, largest

    parts = run_in_threads(find_small, values.size, n_jobs, _GRAIN)
    small = np.concatenate([part[0] for part in parts]) if parts else np.empty(0)
    count, largest = sum(part[1] for part in parts), max((part[2] for part in parts), default=0.0)
    if count == 0:
        return 1 / 255, 1.0
    rank = int(_QUANTILE * (count - 1))
    if rank >= small.size:  # the sample misled: sort them all
        small = np.abs(values[values != 0].astype(np.float64))
    return float(np.partition(small, rank)[rank]), float(largest)


SORTS = ("homogeneous", "additive", "stationary", "exponential", "basis")
"""Kinds of kernels that a map may be for; "basis": a basis of functions, without a kernel."""


@dataclass(frozen=True)
class Family:
    """A class of maps for one kind of kernel: how a size becomes its arguments.

    Attributes
    ----------
    name : str
        Name of the class.
    size_name : str
        The argument that the size goes to.
    variants : tuple of (str, dict)
        Names and further arguments, each a family of its own.
    takes_kernel : bool
        Whether the class has an argument `kernel`.
    """

    name: str
    size_name: str = "n_components"
    variants: tuple[tuple[str, dict[str, Any]], ...] = (("", {}),)
    takes_kernel: bool = True


PLUGINS: dict[str, type[FeatureMap]] = {}
_FAMILIES: dict[str, tuple[tuple[str, ...], Family]] = {}


def register(
    cls: type[FeatureMap],
    sort: str | Sequence[str] = (),
    *,
    size_name: str = "n_components",
    variants: Sequence[tuple[str, dict[str, Any]]] = (("", {}),),
) -> type[FeatureMap]:
    """Register a map for `compare`, `choose`, the command line, files and ONNX.

    Parameters
    ----------
    cls : class of maps
        A subclass of `FeatureMap` (usually of `AdditiveMap` or `JointMap`). All its parameters
        have defaults. Its `_state` says what files hold; it inherits one.
    sort : str or sequence of str
        The kernels that it is for: "homogeneous", "additive" (every additive kernel, the
        homogeneous ones too), "stationary", "exponential", or "basis" for a basis of functions
        that approximates no kernel. Without one, it is no candidate of `compare` and `choose`.
    size_name : str
        The parameter that says how many columns it has (of each feature, for additive maps).
    variants : sequence of (str, dict)
        Settings that are worth a try, each with a short name.

    Returns
    -------
    class
        `cls` itself.

    Examples
    --------
    >>> import kernelmaps as km
    >>> from kernelmaps.maps import register
    >>> class Shorter(km.HomogeneousMap):
    ...     "A map that compare will try for χ², intersection and their like."
    >>> register(Shorter, "homogeneous").__name__
    'Shorter'
    """
    if not (isinstance(cls, type) and issubclass(cls, FeatureMap)):
        raise TypeError(f"register takes a class of maps, got {cls!r}.")
    sorts = (sort,) if isinstance(sort, str) else tuple(sort)
    if unknown := sorted(set(sorts) - set(SORTS)):
        raise ValueError(f"register: sort must be of {SORTS}, got {unknown}.")
    parameters = cls._get_param_names()
    if sorts and size_name not in parameters:
        raise ValueError(f"register: {cls.__name__} has no parameter {size_name!r}: {parameters}.")
    registered = PLUGINS.get(cls.__name__)
    if registered is not None and registered is not cls:
        raise ValueError(f"the name {cls.__name__!r} is taken by {registered.__module__}.")
    PLUGINS[cls.__name__] = cls
    family = Family(cls.__name__, size_name, tuple(variants), "kernel" in parameters)
    _FAMILIES[cls.__name__] = sorts, family
    return cls


def plugin_families(sorts: Sequence[str]) -> list[Family]:
    """Families that were registered for one of these kinds of kernels."""
    return [family for listed, family in _FAMILIES.values() if set(listed) & set(sorts)]
