r"""Anchor maps: additive nearest-neighbour feature maps (Wang et al. 2015).

Cover the range of a feature by N anchors a_1 < … < a_N, take a square root Q of the kernel on the
anchors, K(a_i, a_j) = ⟨q_i, q_j⟩, and give every value the row of its nearest anchor (eq. 4),

.. math:: φ(x) = q_{n(x)}, \qquad n(x) = \arg\min_n |x - a_n|,

or a combination of the rows of its k nearest (eq. 5). For numbers in order this is a table:

* the k nearest anchors are consecutive, a_i … a_{i+k−1}, and i steps up where x passes the middle
  of a_i and a_{i+k}: with equal weights the map is *constant* on the bins between these points;
* linear interpolation between the two neighbours, q_i + u (q_{i+1} − q_i) with
  u = (x − a_i)/(a_{i+1} − a_i), is a polynomial of degree 1 on the bins between the anchors.

The first errs by O(h) in the distance h of the anchors for every k (averaging gains nothing); the
second by O(h²) at the same cost. Any Mercer kernel will do, since nothing but its values on the
anchors is asked for.

Tables of anchor maps, and their certificates.

The bins of a table lie between the points where the nearest anchors change.

**Certificates** (Wang et al. 2015, Theorem 1, for every pair of values). The theorem bounds the
*mean signed* error by O(ε²) for smooth kernels and offsets of mean zero; it says nothing of a
single pair, and its assumption fails for the intersection on the diagonal and for Jensen-Shannon
and Hellinger at 0, where the gradient is infinite. What holds for all pairs:

*Cover radius and gradient.* Both arguments move by at most ε to their anchors, so that

.. math:: |c(x, y) - ⟨φ(x), φ(y)⟩| \le ε \sup ‖∇c‖_1 + τ,

with τ = max_i c(a_i, a_i) − ‖q_i‖² for what the truncated square root leaves out (the rest is
positive semi-definite: its largest entry is on the diagonal).

*Cells.* The four named kernels grow in both arguments. On a cell [l, u] × [l', u'] they stay
between c(l, l') and c(u, u'), and a map that is constant (or linear) there stays between its
corners. The largest gap over all pairs of cells is a bound that needs no gradient, and is sharp for
look-ups. For interpolation the cells are divided until the bound is close to the error measured at
their corners.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .. import kernels
from .._util.arguments import argument_error, check_choice, check_count, check_number
from .._util.devices import is_foreign, namespace_of, numpy_dtype, to_host
from .._util.schema import array, many, number, record, saved
from .._util.threads import available_threads, evenly_spaced, limit_blas, row_blocks
from ..certificate import Certificate, rounding_error
from ..design.anchors import Root, column_values, cover_radius, kmeans, space_by_roots, square_root
from ..engine import Spec, apply, code_spec
from ..engine.encode import code_dtype, encode_within, fraction_bits
from ..engine.extent import DOMAIN, Extent
from ..engine.piecewise import spec_of, table_of
from ..engine.reference import evaluate_sets
from ..engine.table import AFFINE, EDGES, Table
from .base import AdditiveMap
from .codes import Codes

PLACEMENTS = ("auto", "uniform", "sqrt", "kmeans")
WEIGHTS = ("auto", "uniform", "linear")
MAX_ANCHORS = 4096  # whose kernel matrix is decomposed
_EXACT_VALUES = 10  # of a feature, whose map has all columns: about as many as others have
_MARGIN = 1.0  # ranges of the data for which anchors go on beyond it
_COLUMN_BYTES = 2**26  # of the columns whose values are sorted together
_SMALL_MATRIX = 500  # rows up to which threads of BLAS wait for one another rather than help


@dataclass(eq=False, repr=False)
class AnchorMap(AdditiveMap):
    """Nearest-anchor map of any additive Mercer kernel, with one-byte codes.

    Parameters
    ----------
    kernel : str, AdditiveKernel, callable, or list of these, default="chi2"
        "chi2", "intersection", "jensen_shannon", "hellinger", or any scalar Mercer kernel
        ``c(x, y)`` on arrays. A list has a kernel for each feature (eq. 1).
    n_anchors : int, default=40
        Anchors per feature, at most 4096. Codes take one byte up to 256, two beyond.
    anchors : str or array, default="auto"
        "auto" takes the distinct values of a feature that has at most `n_anchors` of them (each
        twice or more on average), where the map errs by what `energy` leaves out, and by nothing
        for up to ten values. Of other features it is "sqrt" for
        kernels of values >= 0, which change fastest next to 0, and "uniform" for others. "uniform"
        (the paper's) and "sqrt" divide the feature's range evenly in x and √x; "kmeans" is the
        exact optimum of eq. 3, which is the distinct values where they are few. An array holds the
        anchors for all features, or one row for each; a list of arrays may have rows of different
        lengths, as `anchors_` has. A constant feature has one anchor.
    n_neighbors : int, default=1
        k, the anchors that a value is mapped with; in a feature with fewer anchors, all of them.
    weights : {"auto", "uniform", "linear"}, default="auto"
        "uniform" averages the k rows, "linear" interpolates between two; "auto" is linear for
        k = 2.
    energy : float in (0, 1], default=0.99
        Share of the spectrum of the anchor kernel that is kept: the columns of a feature. All of it
        is kept where the anchors are the values of a feature of at most ten.
    rank : int, optional
        Columns per feature, instead of `energy`.
    feature_range : None or tuple (low, high), default=None
        Range of the spaced anchors: numbers or arrays (one per feature); None for either end takes
        it from the data, feature by feature. ``(0, None)`` puts an anchor at 0, which keeps CSR
        rows sparse. A range that is too wide is harmful: with even anchors on [0, 1], nearly all
        values of an L1-normalised histogram take the anchor 0.
    out_of_domain : {"clip", "raise", "extrapolate"}, default="clip"
        Values beyond the fitted range take the row of the end: with a warning, or not at all. With
        "extrapolate", spaced anchors go on for as far as the data reach (not below 0 if there are
        no values there); what is still beyond them takes the row of the end silently.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    anchors_ : list of ndarray
        The anchors of each feature (features with the same ones share the array and the table).
    ranks_ : ndarray of int
        Columns of each feature.
    domain_ : tuple of arrays
        Range of each feature.
    certificate_ : AnchorCertificate or None
        Bound on the error of one feature from cover radius and gradient (Theorem 1), computed when
        asked for; None for kernels that are not known to grow in both arguments. It holds for all
        values from 0 to the largest of the fitted range; `inner` is the smaller bound within that
        range where it begins above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).random((100, 3))
    >>> feature_map = km.AnchorMap("chi2", n_anchors=40, n_neighbors=2, energy=0.9999).fit(X)
    >>> bool(km.kernel_error(feature_map, X).max < 0.01)
    True
    >>> km.AnchorMap("chi2").fit(X).encode(X).nbytes
    300
    """

    kernel: Any = "chi2"
    n_anchors: int = 40
    _: KW_ONLY
    anchors: Any = "auto"
    n_neighbors: int = 1
    weights: str = "auto"
    energy: float = 0.99
    rank: int | None = None
    feature_range: tuple[Any, Any] | None = None
    out_of_domain: str = "clip"
    n_jobs: int | None = None

    _certificate: AnchorCertificate | None = field(init=False)

    _state = AdditiveMap._state.extended(
        required={
            "domain_": DOMAIN,
            "anchors_": many(array("f8", "_", increasing=True), "features", least=1),
            "ranks_": array("i8", "features", low=1),
            "left_out": array("f8", "sets", low=0, finite=False),
        },
        attributes={"certificate_": "_certificate", "left_out": "_left_out"},
    )

    def _check_state(self) -> None:
        super()._check_state()
        if not hasattr(self, "spec_"):
            return
        table = table_of(self.spec_)
        if not hasattr(self, "kernel_"):
            raise ValueError("'kernel_' is missing")
        if isinstance(self.kernel_, kernels.PerFeature):
            self.kernel_.check_width(self.n_features_in_, "AnchorMap")
        sets, n_sets = (len(np.unique(table.set_of)), len(self._left_out)), len(table.bins)
        if sets != (n_sets, n_sets):
            raise ValueError("'left_out' or 'set_of' is of another number of sets")
        for anchors, bins in zip(self.anchors_, table.bins[table.set_of], strict=True):
            # As many bins as there are groups of neighbouring anchors, in some order.
            if not 1 <= bins <= len(anchors):
                raise ValueError("'anchors_' must fit the bins of the map")

    def encode(self, X: Any) -> Codes:
        """Encode rows: one byte per value for up to 256 anchors, plus one for weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; codes of CSR rows are dense. Those of other array libraries stay on their device.

        Returns
        -------
        Codes
            ``decode(encode(X))`` equals ``transform(X)``, but for the rounding of weights to a
            byte where the map interpolates, and in float32 (float64 for codes of four bytes).
        """
        check_is_fitted(self)
        foreign = is_foreign(X)
        X = self._foreign_rows(X) if foreign else self._native_rows(X, reset=False)
        # One pass over the rows; a second one, to say what is wrong, only if something is.
        ends, blocks = self._domain_for(X.dtype), iter([X])
        if sparse.issparse(X):
            blocks = (X[rows].toarray() for rows in row_blocks(X.shape[0], 8 * X.shape[1]))
        coded = [encode_within(self.spec_, block, *ends, n_jobs=self.n_jobs) for block in blocks]
        if not all(inside for _, inside in coded):
            if foreign:
                self._check_foreign(X)
            else:
                self._check_rows(X, reset=False)
            self._check_domain(X)
        values = coded[0][0] if len(coded) == 1 else np.concatenate([codes for codes, _ in coded])
        return Codes(values, self.spec_.hash)

    def decode(self, codes: Any, *, out: np.ndarray | None = None) -> np.ndarray:
        """Compute φ from codes.

        Parameters
        ----------
        codes : Codes, or array of unsigned integers
            Codes of this map. `Codes` know their map; of plain arrays only the range is checked.
        out : ndarray, optional
            Where to write a dense result.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            As from `transform`.
        """
        values = self.check_codes(codes)
        return apply(code_spec(self.spec_), values, out=out, n_jobs=self.n_jobs)

    def check_codes(self, codes: Any) -> Any:
        """Check that codes belong to this map.

        Parameters
        ----------
        codes : Codes, or array of unsigned integers
            Codes to check.

        Returns
        -------
        ndarray
            The plain codes.
        """
        check_is_fitted(self)
        if isinstance(codes, Codes):
            if codes.map_hash != self.spec_.hash:
                raise ValueError(
                    f"AnchorMap: these are codes of another map ({codes.map_hash[:12]}, this one "
                    f"is {self.spec_.hash[:12]}). Encode the data with this map."
                )
            codes = codes.values
        foreign = is_foreign(codes)
        codes = codes if foreign else np.asarray(codes)
        table = table_of(self.spec_)
        unsigned = numpy_dtype(codes.dtype).kind == "u"
        if not unsigned or codes.ndim != 2 or codes.shape[1] != self.n_features_in_:
            words = f"unsigned integers of shape (n, {self.n_features_in_})"
            raise argument_error(self, "codes", (codes.dtype, tuple(codes.shape)), words)
        last = table.bins[table.set_of].astype(np.int64) << fraction_bits(table)
        last -= table.degree == 0
        largest = np.zeros_like(last)
        if foreign and codes.shape[0]:
            xp = namespace_of(codes)
            largest = to_host(xp.max(xp.astype(codes, xp.int64), axis=0))
        elif codes.shape[0]:
            largest = codes.max(axis=0)
        if (largest > last).any():
            column = int(np.argmax(largest > last))
            raise ValueError(
                f"AnchorMap: column {column} has the code {int(largest[column])}, but this "
                f"map's codes there end at {int(last[column])}. Are these codes of another map?"
            )
        return codes if foreign else codes.astype(code_dtype(table), copy=False)

    @property  # type: ignore[override]
    def certificate_(self) -> AnchorCertificate | None:
        """Bound on the error of one feature, or None if none is known; see the class."""
        check_is_fitted(self)
        if getattr(self, "_certificate", None) is None:
            table, (anchors, left_out, lower, upper) = table_of(self.spec_), self._group_by_set()
            set_features = np.unique(table.set_of, return_index=True)[1]
            kernels_of = [self.kernel_.feature(d) for d in set_features]
            # Values below the range take the row of its end, which the certificate has to cover.
            above = np.array([kernel.non_negative for kernel in kernels_of])
            zero = np.where(above, np.minimum(lower, 0.0), lower)
            certificate = certify(kernels_of, table, anchors, left_out, zero, upper)
            if certificate is not None and np.any(lower > zero):
                within = certify(kernels_of, table, anchors, left_out, lower, upper)
                certificate = replace(certificate, inner=within)
            self._certificate = certificate
        return self._certificate

    @certificate_.setter
    def certificate_(self, value: AnchorCertificate | None) -> None:
        self._certificate = value

    def _group_by_set(self) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
        """Anchors, what is left out and range (the widest of its features) of each set."""
        set_of = table_of(self.spec_).set_of
        anchors = [self.anchors_[d] for d in np.unique(set_of, return_index=True)[1]]
        lower, upper = np.full(len(anchors), np.inf), np.full(len(anchors), -np.inf)
        low, high = self._domain_for(np.dtype(np.float64))
        np.minimum.at(lower, set_of, low)
        np.maximum.at(upper, set_of, high)
        return anchors, self._left_out, lower, upper

    def _learn(self, X: Any) -> Spec:
        self._check_parameters()
        self.kernel_ = self._resolve_kernel()
        if isinstance(self.kernel_, kernels.PerFeature):
            self.kernel_.check_width(X.shape[1], "AnchorMap")
            self.kernel_._check_values(X, "X")
        features, (low, high), energies = self._place(X)
        for d, anchors in enumerate(features):
            self.kernel_.feature(d)._check_values(anchors, f"the anchors of column {d}")
        self.domain_ = (low, high)
        # Features with the same kernel and the same anchors share their table.
        index: dict[tuple[kernels.AdditiveKernel, bytes, float], int] = {}
        keys = [
            (self.kernel_.feature(d), anchors.tobytes(), energy)
            for d, (anchors, energy) in enumerate(zip(features, energies, strict=True))
        ]
        set_of = np.array([index.setdefault(key, len(index)) for key in keys])
        sets = [np.frombuffer(key) for _, key, _ in index]
        self.anchors_ = [sets[s] for s in set_of]
        small = max(map(len, sets)) <= _SMALL_MATRIX
        with limit_blas(1 if small else available_threads()):
            roots = [
                square_root(kernel.component, anchors, energy, self.rank)
                for (kernel, _, energy), anchors in zip(index, sets, strict=True)
            ]
        self._left_out = np.array([root.left_out for root in roots])
        table = anchor_table(sets, roots, set_of, self.n_neighbors, self._is_linear)
        spec = spec_of(table)
        self.ranks_ = np.diff(spec.arrays["column"])
        return spec

    @property
    def _is_linear(self) -> bool:
        return self.weights == "linear" or (self.weights == "auto" and self.n_neighbors == 2)

    def _check_rows(self, X: Any, *, reset: bool) -> tuple[Any, Extent]:
        X, extent = super()._check_rows(X, reset=reset)
        if not reset and isinstance(self.kernel_, kernels.PerFeature):
            self.kernel_._check_values(X, "X")
        return X, extent

    def _foreign_rows(self, X: Any) -> Any:
        X = super()._foreign_rows(X)
        if isinstance(self.kernel_, kernels.PerFeature):
            self.kernel_._check_values(X, "X")
        return X

    def _place(self, X: Any) -> tuple[list[np.ndarray], tuple[np.ndarray, ...], list[float]]:
        """Anchors of each feature, the range that they are for, and the energy to keep of each."""
        data_range = tuple(np.asarray(end, dtype=np.float64) for end in self._column_range(X))
        if not isinstance(self.anchors, str):
            features = self._read_anchors(X.shape[1])
            low = np.minimum(data_range[0], [a[0] for a in features])
            high = np.maximum(data_range[1], [a[-1] for a in features])
            return features, (low, high), [self.energy] * len(features)
        if self.anchors == "kmeans":
            columns = sparse.csc_matrix(X) if sparse.issparse(X) else X
            blocks = row_blocks(X.shape[1], 24 * X.shape[0], _COLUMN_BYTES)
            values = (pair for b in blocks for pair in zip(*column_values(columns[:, b])))
            features = [np.unique(kmeans(*pair, self.n_anchors)) for pair in values]
            return features, data_range, [self.energy] * len(features)
        low, high = data_range
        if self.out_of_domain == "extrapolate":
            margin = _MARGIN * (high - low)
            low, high = np.maximum(low - margin, np.minimum(low, 0)), high + margin
        low, high = self._range((low, high))
        few_values = self._few_values(X)
        features = [self._space(d, low[d], high[d], few_values.get(d)) for d in range(X.shape[1])]
        exact = {d for d, values in few_values.items() if len(values) <= _EXACT_VALUES}
        return features, (low, high), [1.0 if d in exact else self.energy for d in range(len(low))]

    def _few_values(self, X: Any) -> dict[int, np.ndarray]:
        """Features with few values, and these: the trivial cover of section 3.2."""
        if self.anchors != "auto" or not (self.n_neighbors == 1 or self._is_linear):
            return {}  # averages of several neighbours would not tell few values apart
        n, candidates = X.shape[0], np.arange(X.shape[1])
        for n_rows in (10 * self.n_anchors, 200 * self.n_anchors, n):  # most are ruled out by some
            sample = X[np.ix_(evenly_spaced(n, n_rows), candidates)]
            values = column_values(sparse.csc_matrix(sample) if sparse.issparse(X) else sample)[0]
            is_few = [len(v) <= min(self.n_anchors, n // 2) for v in values]
            candidates = candidates[is_few]
            if len(candidates) == 0:
                return {}
        return dict(zip(candidates.tolist(), compress(values, is_few), strict=True))

    def _space(self, d: int, low: float, high: float, values: np.ndarray | None) -> np.ndarray:
        """Anchors that divide the range of a feature, or are its few values."""
        if low == high:
            return np.array([low])
        if values is not None:
            return np.unique(np.concatenate([np.clip(values, low, high), [low, high]]))
        roots = self.anchors == "auto" and self.kernel_.feature(d).non_negative
        place = space_by_roots if roots or self.anchors == "sqrt" else np.linspace
        return np.unique(place(low, high, self.n_anchors))  # close ones may be equal

    def _read_anchors(self, n_features: int) -> list[np.ndarray]:
        lists = list(self.anchors) if np.iterable(self.anchors) else [self.anchors]
        shared = all(np.ndim(value) == 0 for value in lists)
        lists = [lists] if shared else lists
        try:
            rows = [np.sort(np.asarray(row, dtype=np.float64)) for row in lists]
        except (TypeError, ValueError):
            rows = []
        if not rows or any(r.ndim != 1 or not r.size or not np.isfinite(r).all() for r in rows):
            words = f"one of {PLACEMENTS}, or finite numbers of shape (N,) or (n_features, N)"
            raise argument_error(self, "anchors", self.anchors, words)
        if not shared and len(rows) != n_features:
            words = f"{n_features} rows, one for each feature of X"
            raise argument_error(self, "anchors", f"{len(rows)} rows", words)
        if any((np.diff(row) == 0).any() for row in rows):
            raise ValueError("AnchorMap: anchors must be distinct numbers, but some are repeated.")
        self._check_counts(max(len(row) for row in rows))
        return rows if len(rows) == n_features else rows * n_features

    def _range(self, data_range: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
        limits = (None, None) if self.feature_range is None else self.feature_range
        try:
            pairs = zip(data_range, limits, strict=True)
            ends = [f if w is None else np.asarray(w, float) for f, w in pairs]
            low, high = (np.array(np.broadcast_to(end, data_range[0].shape)) for end in ends)
            fits = np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()
        except (TypeError, ValueError):
            fits = False
        if not fits:
            words = "(low, high) with finite low <= high, each None, a number, or one for each of "
            words += f"the {len(data_range[0])} features of X"
            raise argument_error(self, "feature_range", self.feature_range, words)
        return low, high

    @property
    def _non_negative(self) -> bool:  # type: ignore[override]
        return bool(getattr(kernels.get(self.kernel), "non_negative", False))

    @property
    def _refuses_negative(self) -> bool | None:
        differ = isinstance(getattr(self, "kernel_", None), kernels.PerFeature)
        return None if differ and not self._non_negative else super()._refuses_negative

    def _resolve_kernel(self) -> kernels.AdditiveKernel:
        kernel = kernels.get(self.kernel)
        if not isinstance(kernel, kernels.AdditiveKernel):
            raise ValueError(
                f"AnchorMap needs an additive kernel (a sum over features of a scalar one); "
                f"{kernel!r} is not. Use chi2, intersection, jensen_shannon, hellinger or a "
                "function c(x, y); RandomFourierMap is for stationary kernels."
            )
        return kernel

    def _check_parameters(self) -> None:
        n = check_count(self, "n_anchors", self.n_anchors)
        k = check_count(self, "n_neighbors", self.n_neighbors)
        check_choice(self, "weights", self.weights, WEIGHTS)
        if isinstance(self.anchors, str):
            check_choice(self, "anchors", self.anchors, PLACEMENTS)
            self._check_counts(n)
        if self.weights == "linear" and k != 2:
            raise argument_error(self, "n_neighbors", k, "2 for weights='linear'")
        check_number(self, "energy", self.energy, "in (0, 1]", lambda energy: 0 < energy <= 1)
        if self.rank is not None:
            check_count(self, "rank", self.rank)

    def _check_counts(self, anchors: int) -> None:
        """Refuse more anchors than codes have, and fewer than neighbours."""
        if anchors > MAX_ANCHORS:
            raise argument_error(self, "n_anchors", anchors, f"at most {MAX_ANCHORS}")
        if anchors < self.n_neighbors:
            words = f"at most the number of anchors, {anchors}"
            raise argument_error(self, "n_neighbors", self.n_neighbors, words)


def anchor_table(
    sets: list[np.ndarray],
    roots: list[Root],
    set_of: np.ndarray,
    k: int,
    linear: bool,
) -> Table:
    """Table of an anchor map.

    Parameters
    ----------
    sets, roots : lists
        Anchors of each set, sorted, and their rows.
    set_of : ndarray
        Set of each feature.
    k : int
        Neighbours whose rows are averaged.
    linear : bool
        Interpolate between the two neighbours instead.
    """
    uniform = True  # equal steps put every anchor where it is, up to rounding
    for anchors in sets:
        even = np.linspace(anchors[0], anchors[-1], len(anchors))
        uniform &= np.allclose(anchors, even, rtol=1e-15, atol=1e-14 * np.ptp(anchors))
    coef, origin, resolution, edges = [], [], [], []
    for anchors, root in zip(sets, roots, strict=True):
        step = (anchors[-1] - anchors[0]) / max(len(anchors) - 1, 1) or 1.0
        if linear and len(anchors) > 1:
            block = np.stack([root.rows[:-1], np.diff(root.rows, axis=0)], axis=1)
            cuts, start = anchors, anchors[0]
        else:
            n_nearest = min(k, len(anchors))
            windows = np.lib.stride_tricks.sliding_window_view(root.rows, n_nearest, axis=0)
            block = windows.mean(axis=-1)[:, None, :]
            middles = (anchors[:-n_nearest] + anchors[n_nearest:]) / 2
            if linear:  # a constant feature among others that interpolate
                block = np.concatenate([block, np.zeros_like(block)], axis=1)
            cut = middles[0] if len(middles) else anchors[0] + step
            cuts = np.concatenate([[2 * anchors[0] - cut], middles, [anchors[-1] + step]])
            start = anchors[0] + (n_nearest / 2 - 1) * step
        coef.append(block)
        origin.append(start)
        resolution.append(1 / step)
        edges.append(cuts)
    table = Table.build(
        AFFINE if uniform else EDGES,
        int(linear),
        coef,
        set_of,
        origin=np.array(origin),
        resolution=np.array(resolution),
        edges=None if uniform else edges,
        clip_low=np.array([anchors[0] for anchors in sets]) if linear else None,
        clip_high=np.array([anchors[-1] for anchors in sets]) if linear else None,
    )
    at_zero = evaluate_sets(table, np.zeros(1))
    return replace(table, zero_at_zero=not any(values.any() for values in at_zero))


_POINTS = 600  # cells of one set that are compared with each other
_MAX_PAIRS = 1.0e8  # pairs of cells that are compared, over all sets

# ‖∇c(t, 1)‖₁. The gradients depend on the ratio t of the arguments alone and grow with its
# distance from 1, so that the largest over [low, high]² is at t = low / high.
_GRADIENTS: dict[kernels.HomogeneousKernel, Callable[[float], float]] = {
    kernels.chi2: lambda t: 2 * (1 + t * t) / (1 + t) ** 2,
    kernels.intersection: lambda t: 1.0,
    kernels.jensen_shannon: lambda t: float(np.log2((1 + t) / np.sqrt(t))) if t else np.inf,
    kernels.hellinger: lambda t: float((t**0.5 + t**-0.5) / 2) if t else np.inf,
}


@record
class AnchorCertificate(Certificate):
    """Certificate of an anchor map, with what it was made of (all of the feature with the bound).

    Attributes
    ----------
    cover_radius : float
        ε, the largest distance to the nearest anchor.
    gradient_bound : float
        sup ‖∇c‖₁ over the range; infinite for Jensen-Shannon and Hellinger at 0.
    truncation : float
        τ, what the square root leaves out.
    theorem_bound : float
        gradient_bound · (distance to the farthest anchor used, ε for one neighbour) + τ, and
        the rounding error.
    measured : float
        Largest error found: no bound can be lower.
    """

    cover_radius: float = saved(number(finite=False), default=0.0)
    gradient_bound: float = saved(number(finite=False), default=np.inf)
    truncation: float = saved(number(finite=False), default=0.0)
    theorem_bound: float = saved(number(finite=False), default=np.inf)
    measured: float = saved(number(finite=False), default=0.0)


def certify(
    kernels_of: list[kernels.AdditiveKernel],
    table: Table,
    anchors: list[np.ndarray],
    left_out: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> AnchorCertificate | None:
    """The worst bound of all features, or None if a kernel is not known to be monotone.

    Parameters
    ----------
    kernels_of : list of AdditiveKernel
        The kernel of each set of the table.
    table : Table
        Of the map.
    anchors, left_out, lower, upper : one for each set of the table
        Anchors, τ of their square root, and the range to certify.
    """
    if any(kernel not in _GRADIENTS for kernel in kernels_of):
        return None
    sets = _one_per_shape(kernels_of, anchors, lower, upper)
    share = _MAX_PAIRS / len(sets)
    certificates = []
    for s in sets:
        kernel, low, high = kernels_of[s], float(lower[s]), float(upper[s])
        assert isinstance(kernel, kernels.HomogeneousKernel)  # by _GRADIENTS
        cuts = np.clip(_borders(table, s), low, high)
        cuts[0], cuts[-1] = low, high  # the end bins reach as far as the range does
        bound, measured = _cell_bound(kernel, table, s, cuts, share)
        slope = _GRADIENTS[kernel](low / high if high else 1.0)
        reach = _reach(anchors[s], cuts)
        rounding = high * rounding_error(np.float64, int(table.width[s]))
        certificate = AnchorCertificate(
            bound + rounding,
            "absolute",
            f"one feature, here with {low:g} <= x, y <= {high:g}",
            f"cells of a monotone kernel; measured {measured:.3g}",
            cover_radius=cover_radius(anchors[s], low, high),
            gradient_bound=slope,
            truncation=float(left_out[s]),
            theorem_bound=slope * reach + float(left_out[s]) + rounding,
            measured=measured,
        )
        certificates.append(certificate)
    return max(certificates, key=lambda item: item.bound)


def _one_per_shape(
    kernels_of: list[kernels.AdditiveKernel],
    anchors: list[np.ndarray],
    lower: np.ndarray,
    upper: np.ndarray,
) -> list[int]:
    """Of sets that are multiples of each other, the largest: errors are homogeneous, too."""
    largest: dict[tuple[kernels.AdditiveKernel, bytes], int] = {}
    for s, points in enumerate(anchors):
        size = max(points[-1], upper[s]) or 1.0
        shape = np.round(np.concatenate([points, [lower[s], upper[s]]]) / size, 12)
        key = kernels_of[s], shape.tobytes()
        if key not in largest or upper[s] > upper[largest[key]]:
            largest[key] = s
    return list(largest.values())


def _borders(table: Table, s: int) -> np.ndarray:
    """Where the bins of set s begin and end."""
    bins = int(table.bins[s])
    if table.binning == AFFINE:
        return table.origin[s] + np.arange(bins + 1) / table.resolution[s]
    return table.edges[table.edge_start[s] : table.edge_start[s] + bins + 1]


def _reach(anchors: np.ndarray, cuts: np.ndarray) -> float:
    """Largest distance from a value to one of the anchors that it is mapped with."""
    n_nearest = len(anchors) - (len(cuts) - 1) + 1  # neighbours: bins are anchors − neighbours + 1
    lowest, highest = anchors[: len(cuts) - 1], anchors[n_nearest - 1 :]
    return float(max(np.max(cuts[1:] - lowest), np.max(highest - cuts[:-1]), 0.0))


def _cell_bound(
    kernel: kernels.HomogeneousKernel, table: Table, s: int, cuts: np.ndarray, work: float
) -> tuple[float, float]:
    """Bound over all pairs of (divided) bins, and the largest error at their corners."""
    bins = np.flatnonzero(np.diff(cuts) > 0)
    if len(bins) == 0:  # a constant feature
        inside = np.searchsorted(_borders(table, s), cuts[0], side="right") - 1
        bins = np.array([np.clip(inside, 0, len(cuts) - 2)])
    pieces = 1
    if table.degree > 0:
        pieces = max(1, int(min(_POINTS, np.sqrt(work)) // len(bins)))
    low, high, left, right = _cells(table, s, cuts, bins, pieces)
    bound = measured = 0.0
    for rows in row_blocks(len(low), 8 * 8 * len(low)):
        corners = [a[rows] @ b.T for a in (left, right) for b in (left, right)]
        lowest, highest = np.minimum.reduce(corners), np.maximum.reduce(corners)
        low_gram = kernel.component(low[rows, None], low[None, :])
        high_gram = kernel.component(high[rows, None], high[None, :])
        bound = max(bound, float(np.max(high_gram - lowest)), float(np.max(highest - low_gram)))
        errors = np.abs(corners[0] - low_gram), np.abs(corners[3] - high_gram)
        measured = max(measured, float(np.max(errors)))
    return bound, measured


def _cells(
    table: Table, s: int, cuts: np.ndarray, bins: np.ndarray, pieces: int
) -> tuple[np.ndarray, ...]:
    """Ends of the pieces of bins, and φ at both, taken from inside the bin."""
    places = np.linspace(0, 1, pieces + 1)
    low = cuts[bins, None] + places[:-1] * (cuts[bins + 1] - cuts[bins])[:, None]
    high = cuts[bins, None] + places[1:] * (cuts[bins + 1] - cuts[bins])[:, None]
    coef = table.polynomials(s)[bins]
    if table.degree == 0:
        phi = np.repeat(coef[:, 0], pieces, axis=0)
        return low.ravel(), high.ravel(), phi, phi
    borders = _borders(table, s)
    width = np.diff(borders)[bins, None]
    # Beyond the outermost anchors the map is constant: u is clipped.
    ends = [np.clip((x - borders[bins, None]) / width, 0, 1) for x in (low, high)]
    values = [(coef[:, None, 0] + u[..., None] * coef[:, None, 1]) for u in ends]
    left, right = (value.reshape(-1, coef.shape[2]) for value in values)
    return low.ravel(), high.ravel(), left, right
