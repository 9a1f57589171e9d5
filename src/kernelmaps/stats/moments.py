"""Mergeable second moments of features and targets: what every quadratic-loss learner needs.

For rows z_i ∈ R^D with weights w_i and targets y_i ∈ R^t, Algorithms 2–4 of the Chebyshev paper
need nothing but n, m = Zᵀ1, H = ZᵀZ, v = Zᵀy (errata 2.17: the labels *of the chunk*), 1ᵀy and
yᵀy. They are sums over rows, hence a commutative monoid: ``zero``, ``merge`` and, for one more
block, ``update`` = merge with the sums of that block. A model that is a function of these sums
is out-of-core, threaded and distributed at once.

**Centring.** H − m mᵀ/W cancels badly if the mean is large against the spread. Sums are therefore
kept about a shift s (and y₀ for the targets): the mean of the first block. With δ = z̄ − s

    Σ w (z − z̄)(z − z̄)ᵀ = H_s − m_s m_sᵀ / W,      m_s = W δ,

whose cancellation factor is 1 + δ²/σ². If the first block holds a fraction p of the weight, the
spread between it and the rest alone gives σ² ≥ δ² p/(1 − p), so the factor is at most 1/p, however
the rows are ordered. Sums about different shifts are merged exactly, by moving one of them:

    H_{s'} = H_s + m_s εᵀ + ε m_sᵀ + W ε εᵀ,   m_{s'} = m_s + W ε,   ε = s − s'.

**Precision.** A float32 block is multiplied in float32 (SSYRK) and added to float64 sums. The
error of a product over B rows is at most γ_B √(H_ii H_jj), γ_B = B u/(1 − B u), u = 2⁻²⁴
(about √B u in practice, 5e-6 for B = 8192, less with the blocked summation of BLAS), and does not
grow with n because B is bounded by `BLOCK_ROWS` and sums across blocks are float64. Features in
float32 carry an error u per entry of their own, so that float64 products would cost twice the time
and buy nothing.

**On a GPU.** Blocks of torch tensors are multiplied where they are, and H, m and V are tensors
there until `to_host` brings them back; shifts and the sums of targets alone stay on the host. The
algebra is the same. With products in TF32 (see :func:`kernelmaps._util.devices.precision`) the
factors are rounded to u = 2⁻¹¹ first: |ΔH_ij| ≤ 2u √(H_ii H_jj), and about u/√B of that for a block
of B rows, since the rounding of different rows is independent.

`Statistics` is the base: how blocks of any size are added. `kernelmaps.save` writes sums to files.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
import scipy.sparse as sp

from .._util import schema
from .._util.arguments import check_choice
from .._util.devices import cast_like, is_tensor, multiply, to_device, to_host
from .._util.sparse import check_sparse
from .._util.threads import mixed_bits

BLOCK_ROWS = 8192  # longest float32 product: see "Precision" in the docstring of `moments`


class Statistics(Protocol):
    """Sums over rows: `zero` and `merge` make them a monoid, `partial` are those of one block."""

    def zero(self) -> Self:
        """Return the neutral element that merges with this one; it shares the shift.

        Returns
        -------
        Self
            Sums of no rows.
        """

    def copy(self) -> Self:
        """Return an independent copy.

        Returns
        -------
        Self
            The same sums.
        """
        return self.zero().merge(self)

    def centre_on(self, Z: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Fix what the sums are taken about, from a first block.

        Parameters
        ----------
        Z : ndarray, tensor or sparse array of shape (B, D)
            Features; float32 is multiplied as float32.
        y : array-like of shape (B,) or (B, t), optional
            Targets.
        sample_weight : array-like of shape (B,), optional
            Weights; 1 by default.
        """

    def partial(self, Z: Any, y: Any = None, sample_weight: Any = None, start: int = 0) -> Self:
        """Return the sums of one block about the shift; nothing changes here (thread-safe).

        Parameters
        ----------
        Z : ndarray, tensor or sparse array of shape (B, D)
            Features; float32 is multiplied as float32.
        y : array-like of shape (B,) or (B, t), optional
            Targets.
        sample_weight : array-like of shape (B,), optional
            Weights; 1 by default.
        start : int
            Number of the block's first row in the whole (used where rows are split).

        Returns
        -------
        Self
            Sums of these rows alone.
        """

    def merge(self, other: Any) -> Self:
        """Add the sums of other rows to these.

        Parameters
        ----------
        other : Self
            Sums of the same kind; they stay as they are.

        Returns
        -------
        Self
            This object, changed.
        """

    def to_host(self) -> Self:
        """Bring sums that lie on a GPU back.

        Returns
        -------
        Self
            This object, changed.
        """

    def update(self, Z: Any, y: Any = None, sample_weight: Any = None, start: int = 0) -> Self:
        """Add a block of rows, in products of at most `BLOCK_ROWS` rows.

        Parameters
        ----------
        Z : ndarray, tensor or sparse array of shape (B, D)
            Features; float32 is multiplied as float32.
        y : array-like of shape (B,) or (B, t), optional
            Targets.
        sample_weight : array-like of shape (B,), optional
            Weights; 1 by default.
        start : int
            Number of the block's first row in the whole (used where rows are split).

        Returns
        -------
        Self
            This object, changed.
        """
        self.centre_on(Z, y, sample_weight)
        for a in range(0, Z.shape[0], BLOCK_ROWS):
            rows = slice(a, a + BLOCK_ROWS)
            y_part, w_part = (None if v is None else v[rows] for v in (y, sample_weight))
            self.merge(self.partial(Z[rows], y_part, w_part, start + a))
        return self


Target = Literal["none", "real", "class"]
_BY_TARGET = ("b", "yy", "V", "G")  # sums whose first axis is that of the targets
_SUMS = ("m", "H", *_BY_TARGET)
_OPTIONS = ("target", "tag", "by_class")
_SAME = {  # what merged sums have in common, and what sets it
    "target": ("target", "kind of targets"),
    "by_class": ("multi_class", "multi_class"),
    "tag": ("feature map", "fitted map"),
}


class Moments(Statistics):
    """Weighted sums of z, z zᵀ, z yᵀ, y and y² about a common shift.

    Parameters
    ----------
    target : {"none", "real", "class"}
        Whether there are no targets, real ones (t columns), or class labels. A label stands for
        its one-hot row; ZᵀY is then a grouped sum of n·D additions, whatever the number of
        classes. Classes need not be known beforehand: merging takes the union.
    classes : array-like, optional
        If given, labels outside of them are refused.
    tag : str
        Content hash of the map that made the features; sums of different maps do not merge.
    by_class : bool
        For labels: keep Σ w z zᵀ of every class apart, so that `pair` gives the sums of two
        classes alone.

    Attributes
    ----------
    n : int
        Rows of positive weight.
    weight : float
        W = Σ w.
    shift, m, H : ndarray of shape (D,), (D,), (D, D), or None before the first row
        s, Σ w (z − s), Σ w (z − s)(z − s)ᵀ. The shift may be known before any sums.
    y_shift, b, yy : ndarray of shape (t,)
        y₀, Σ w (y − y₀), Σ w (y − y₀)² (the diagonal of YᵀY: one value per target).
    V : ndarray of shape (t, D)
        Σ w (y − y₀)(z − s)ᵀ.
    classes : ndarray or None
        Sorted labels, one per row of V.
    G : ndarray of shape (t, D, D) or None
        The part of each class in H, if `by_class`; that in m is the row of V, that in W is b.
    """

    _state: ClassVar[schema.State] = schema.State(
        {
            "target": schema.text(("none", "real", "class")),
            "tag": schema.text(),
            "n": schema.integer(),
            "weight": schema.number(low=0),
            "closed": schema.boolean,
            "shift": schema.optional(schema.array("f8", "features")),
            "m": schema.optional(schema.array("f8", "features")),
            "H": schema.optional(schema.array("f8", "features features")),
            "V": schema.optional(schema.array("f8", "targets features", least=0)),
            "y_shift": schema.array("f8", "targets", least=0),
            "b": schema.array("f8", "targets", least=0),
            "yy": schema.array("f8", "targets", least=0),
            "classes": schema.optional(schema.labels),
        },
        allowed={
            "by_class": schema.boolean,
            "G": schema.optional(schema.array("f8", "targets features features", least=0)),
        },
    )
    by_class = False  # of files that do not say it
    G: Any = None

    def _check_state(self) -> None:
        """Raise SchemaError if entries that were loaded contradict each other."""
        has_sums = self.m is not None and self.shift is not None
        expected = {
            "m": has_sums, "H": has_sums, "V": has_sums and self.target != "none",
            "G": has_sums and self.by_class, "classes": self.target == "class",
        }  # fmt: skip
        for name, is_expected in expected.items():
            if (getattr(self, name) is not None) != is_expected:
                raise schema.SchemaError(
                    f"Moments: {name!r} is missing, or does not belong to the others"
                )
        if has_sums and self.classes is not None and len(self.V) != len(self.classes):
            raise schema.SchemaError("Moments: 'classes' and 'V' have different lengths")

    def __init__(
        self,
        target: Target = "none",
        *,
        classes: Any = None,
        tag: str = "",
        by_class: bool = False,
    ) -> None:
        check_choice(self, "target", target, ("none", "real", "class"))
        self.target, self.tag, self.by_class = target, tag, by_class
        self.n, self.weight = 0, 0.0
        # Arrays from the first row on; None before, so that an empty one is a few kB.
        self.shift: Any = None
        self.m: Any = None
        self.H: Any = None
        self.V: Any = None
        self.G = None
        self.closed = classes is not None
        labels = np.unique([] if classes is None else classes)
        self.classes: Any = labels if target == "class" else None
        self.y_shift, self.b, self.yy = np.zeros((3, len(labels)))

    # ---- the monoid -------------------------------------------------------------------------

    def zero(self) -> Self:
        closed = self.classes if self.closed else None
        out = self._empty(closed)
        out.shift = self.shift
        out.y_shift = self.y_shift if self.target == "real" else out.y_shift
        return out

    def centre_on(self, Z: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Fix the shift at the mean of a first block, if it is not fixed yet.

        Parameters
        ----------
        Z : ndarray, tensor or sparse array of shape (B, D)
            Features; float32 is multiplied as float32.
        y : array-like of shape (B,) or (B, t), optional
            Targets.
        sample_weight : array-like of shape (B,), optional
            Weights; 1 by default.

        Notes
        -----
        Sparse blocks keep s = 0, as subtracting would fill them. The shift is rounded to float32:
        float32 and float64 blocks then subtract the same number.
        """
        if self.shift is not None or Z.shape[0] == 0:
            return
        check_sparse(Z, type(self).__name__, "Z")
        w = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if w is not None and not w.sum() > 0:
            return  # only rows of weight zero: nothing is known yet
        # The 24 bits of float32, with the range of float64.
        fraction, power = np.frexp(block_mean(Z, w).astype(np.float64))
        self.shift = np.ldexp(np.rint(np.ldexp(fraction, 24)), power - 24)
        if self.target == "real":
            self.y_shift = np.average(to_columns(y), axis=0, weights=w)

    def partial(self, Z: Any, y: Any = None, sample_weight: Any = None, start: int = 0) -> Self:
        if Z.shape[0] == 0 or self.shift is None:
            return self.zero()
        check_sparse(Z, type(self).__name__, "Z")
        if Z.shape[1] != len(self.shift):
            raise ValueError(
                f"a block has {Z.shape[1]} features, the blocks before had {len(self.shift)}"
            )
        out = self._empty()
        w = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        out.n = Z.shape[0] if w is None else int(np.count_nonzero(w))
        out.weight = float(Z.shape[0] if w is None else w.sum())
        Z = self._shift_rows(Z)
        out.shift = np.zeros_like(self.shift) if sp.issparse(Z) else self.shift
        Y = self._targets(out, y, w)
        with np.errstate(over="ignore", invalid="ignore"):  # told below, with the column
            out.m, out.V, out.H = products(Z, Y, w)
            if self.by_class:
                out.G = class_grams(Z, np.asarray(y).ravel(), out.classes, w)
        if not is_tensor(Z):  # asking a GPU would wait for it: `to_host` looks at all at once
            out._check_finite()
        return out

    def merge(self, other: Moments) -> Self:
        self._check_mergeable(other)
        rows = slice(None)
        if self.classes is not None:
            self._extend_classes(other.classes)
            rows = np.searchsorted(self.classes, other.classes)
        if self.shift is None and other.shift is not None:
            self.shift = other.shift
            self.y_shift = other.y_shift if self.target == "real" else self.y_shift
        if other.H is None:  # no rows
            return self
        if self.H is None:
            self._allocate(other.H)
        elif is_tensor(self.H) != is_tensor(other.H):
            self.to_host()
            other = copy.copy(other).to_host()
        if not np.array_equal(other.shift, self.shift) or (
            self.target == "real" and not np.array_equal(other.y_shift, self.y_shift)
        ):
            other = other.moved(self.shift, self.y_shift[rows])
        self.n += other.n
        self.weight += other.weight
        for name in _SUMS:
            sums = getattr(self, name)
            if sums is not None:
                sums[rows if name in _BY_TARGET else ...] += getattr(other, name)
        return self

    def to_host(self) -> Self:
        for name in _SUMS:
            value = getattr(self, name)
            if is_tensor(value):
                setattr(self, name, to_host(value, np.float64))
        self._check_finite()
        return self

    def moved(self, shift: np.ndarray, y_shift: np.ndarray | None = None) -> Self:
        """Return the same sums about another shift (exact algebra: see the module's docstring).

        Parameters
        ----------
        shift : ndarray of shape (D,)
            The new shift of the features.
        y_shift : ndarray of shape (t,), optional
            The new shift of the targets; by default the present one.

        Returns
        -------
        Moments
            New sums; these stay as they are.
        """
        y_shift = self.y_shift if y_shift is None else y_shift
        out = copy.copy(self)
        eps, eps_y = self.shift - shift, self.y_shift - y_shift
        out.shift, out.y_shift = shift, y_shift
        out.m = self.m + self.weight * eps
        cross = np.outer(self.m + 0.5 * self.weight * eps, eps)
        out.H = self.H + (cross + cross.T)
        if self.V is not None:
            out.b = self.b + self.weight * eps_y
            out.yy = self.yy + eps_y * (2 * self.b + self.weight * eps_y)
            out.V = self.V + np.outer(self.b, eps) + np.outer(eps_y, out.m)
        if self.G is not None:
            cross = (self.V + 0.5 * np.outer(self.b, eps))[:, :, None] * eps
            out.G = self.G + cross + cross.transpose(0, 2, 1)
        return out

    def projected(self, U: np.ndarray) -> Self:
        """Return the sums of the rows Uᵀz, that is Uᵀ H U and so on, without the rows.

        Parameters
        ----------
        U : ndarray of shape (D, q)
            The projection.

        Returns
        -------
        Moments
            Sums of q features.
        """
        out = copy.copy(self)
        out.shift, out.m, out.H = self.shift @ U, self.m @ U, U.T @ (self.H @ U)
        out.V = None if self.V is None else self.V @ U
        out.G = None if self.G is None else U.T @ (self.G @ U)
        return out

    def features_only(self) -> Moments:
        """Return the same sums without targets: they merge with those of unlabelled rows.

        Returns
        -------
        Moments
            Sums with ``target="none"``.
        """
        out = Moments(tag=self.tag)
        out.n, out.weight = self.n, self.weight
        out.shift, out.m, out.H = self.shift, self.m.copy(), self.H.copy()
        return out

    def minus(self, other: Moments) -> Self:
        """Return the sums without some rows that were merged before (the training folds).

        Parameters
        ----------
        other : Moments
            Sums of these rows.

        Returns
        -------
        Moments
            Sums of all the others.
        """
        negative = copy.copy(other)
        for name in ("n", "weight", *_SUMS):
            value = getattr(other, name)
            setattr(negative, name, None if value is None else -value)
        return self.copy().merge(negative) if other.n else self.copy()

    def with_classes(self, classes: np.ndarray | None) -> Self:
        """Return the same sums with a row for each of these classes, too; None leaves them.

        Parameters
        ----------
        classes : ndarray or None
            Labels, which rows here may lack.

        Returns
        -------
        Moments
            Sums that share their arrays with these.
        """
        out = copy.copy(self)
        if classes is not None:
            out._extend_classes(classes)
        return out

    def pair(self, a: int, b: int) -> Moments:
        """Return the sums of two classes alone, with the target 1 for the second, else 0.

        Parameters
        ----------
        a, b : int
            Places of the two in `classes`; the sums are kept `by_class`.

        Returns
        -------
        Moments
            Sums with ``target="real"``.
        """
        out = Moments("real", tag=self.tag)
        out.n, out.weight = self.n, float(self.b[a] + self.b[b])
        out.shift, out.y_shift = self.shift, np.zeros(1)
        out.m, out.H, out.V = self.V[a] + self.V[b], self.G[a] + self.G[b], self.V[b : b + 1]
        out.b, out.yy = self.b[b : b + 1], self.yy[b : b + 1]
        return out

    # ---- what learners ask for --------------------------------------------------------------

    @property
    def mean(self) -> np.ndarray:
        """z̄, the weighted mean of the features."""
        return self.shift + self.m / self.weight

    @property
    def y_mean(self) -> np.ndarray:
        """ȳ, the weighted mean of the targets (the class frequencies for labels)."""
        return self.y_shift + self.b / self.weight

    def scatter(self) -> np.ndarray:
        """Compute H̃ = Σ w (z − z̄)(z − z̄)ᵀ, step 8 of Algorithm 2.

        Returns
        -------
        ndarray of shape (D, D)
            The scatter of the features about their mean.
        """
        return self.H - np.outer(self.m, self.m / self.weight)

    def cross(self) -> np.ndarray:
        """Compute Ṽ = Σ w (y − ȳ)(z − z̄)ᵀ, step 3 of Algorithm 3 before the projection.

        Returns
        -------
        ndarray of shape (t, D)
            The scatter of targets and features.
        """
        return self.V - np.outer(self.b, self.m / self.weight)

    def y_scatter(self) -> np.ndarray:
        """Compute Σ w (y − ȳ)².

        Returns
        -------
        ndarray of shape (t,)
            One value per target.
        """
        return self.yy - self.b**2 / self.weight

    # ---- parts ------------------------------------------------------------------------------

    def _allocate(self, like: Any) -> None:
        """Make room for sums where `like` lies; a zero without it is small enough to travel."""
        d, t = len(self.shift), len(self.y_shift)
        zeros = zeros_on(like.device) if is_tensor(like) else np.zeros
        self.m, self.H, self.b, self.yy = zeros(d), zeros((d, d)), np.zeros(t), np.zeros(t)
        self.V = None if self.target == "none" else zeros((t, d))
        self.G = zeros((t, d, d)) if self.by_class else None

    def _check_finite(self) -> None:
        """One bad feature shows in its own square."""
        good = np.isfinite(self.H.diagonal()) if self.H is not None else np.ones(1, bool)
        if not good.all():
            raise ValueError(
                f"features are NaN, inf or too large to square (column {int(np.argmin(good))})"
            )

    def _empty(self, classes: Any = None) -> Self:
        """Sums of no rows, about no shift yet."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        return type(self)(**options, classes=classes)

    def _shift_rows(self, Z: Any) -> Any:
        if is_tensor(Z):
            return Z - to_device(self.shift, Z.device).to(Z.dtype)
        if sp.issparse(Z):  # summed about 0: in float64, where float32 would cancel later
            return Z.tocsr().astype(np.float64, copy=False)
        # Sums of integers outgrow float32 quickly.
        dtype = np.float32 if Z.dtype == np.float32 else np.float64
        return np.subtract(Z, self.shift.astype(dtype), dtype=dtype)

    def _targets(self, out: Moments, y: Any, w: np.ndarray | None) -> Any:
        """Fill the sums of the targets alone into `out`; return the (t, B) factor of V."""
        if self.target == "none":
            return None
        if self.target == "real":
            Y = to_columns(y) - self.y_shift
            if Y.shape[1] != len(self.y_shift):
                raise ValueError(
                    f"a block has {Y.shape[1]} targets, the blocks before had {len(self.y_shift)}"
                )
            WY = Y if w is None else Y * w[:, None]
            out.y_shift, out.b, out.yy = self.y_shift, WY.sum(axis=0), (WY * Y).sum(axis=0)
            return WY.T
        y = np.asarray(y)
        if y.ndim != 1 and y.shape[1:] != (1,):
            raise ValueError(f"labels must be a vector, found shape {y.shape}")
        out.classes, codes = np.unique(y.ravel(), return_inverse=True)
        n = len(codes)
        shape = len(out.classes), n
        indicators = sp.csr_array((np.ones(n), (codes, np.arange(n))), shape=shape)
        unseen = np.setdiff1d(out.classes, self.classes if self.closed else out.classes)
        if len(unseen):
            raise ValueError(
                f"labels {unseen[:5].tolist()} are not among the {len(self.classes)} classes "
                f"{self.classes[:5].tolist()}… given by classes="
            )
        weighted = sp.csr_array(indicators if w is None else indicators * w)
        out.b = np.ravel(weighted.sum(axis=1))
        out.yy, out.y_shift = out.b.copy(), np.zeros(len(out.b))
        return weighted

    def _extend_classes(self, classes: np.ndarray) -> None:
        """Take the union with `classes`; new ones get rows of zeros (no row had that label)."""
        if np.isin(classes, self.classes).all():
            return
        union = np.union1d(self.classes, classes) if len(self.classes) else classes
        rows = np.searchsorted(union, self.classes) if len(self.classes) else []
        for name in ("y_shift", *_BY_TARGET):
            old = getattr(self, name)
            if old is not None:
                zeros = zeros_on(old.device) if is_tensor(old) else np.zeros
                new = zeros((len(union), *old.shape[1:]))
                new[rows] = old
                setattr(self, name, new)
        self.classes = union

    def _check_mergeable(self, other: Moments) -> None:
        for name, (kind, together) in _SAME.items():
            mine, theirs = getattr(self, name), getattr(other, name, None)
            if mine != theirs:
                values = "" if name == "tag" else f" ({theirs!r}, here {mine!r})"
                raise ValueError(
                    f"statistics of another {kind}{values} cannot be merged: fold both with the "
                    f"same {together}"
                )
        if self.shift is None or other.shift is None:
            return
        for name, kind in (("shift", "features"), ("y_shift", "targets")):
            mine, theirs = len(getattr(self, name)), len(getattr(other, name))
            if mine != theirs and (kind == "features" or self.target == "real"):
                raise ValueError(
                    f"statistics of {theirs} {kind} cannot be merged into statistics of {mine}"
                )


# ---- several moments at once --------------------------------------------------------------------
#
# Per group of columns (kernels) or of rows (folds). A tuple of monoids is a monoid, so these have
# the same methods as `Moments` and use the same fold and the same tree reduction.


class _Composite(Statistics):
    """Base of the tuples of moments: subclasses say how a block is split."""

    _state: ClassVar[schema.State] = schema.State(
        {"parts": schema.many(schema.instance((Moments,)), "parts", least=1)}
    )
    widths: Sequence[int] = ()  # of groups of columns, where these are what is split

    def _check_state(self) -> None:
        """Raise schema.SchemaError if the parts do not belong together."""
        if len({moments.target for moments in self.parts}) > 1:
            raise schema.SchemaError(f"{type(self).__name__}: parts have different targets")

    def __init__(self, parts: Sequence[Moments], widths: Sequence[int] = ()) -> None:
        self.parts, self.widths = list(parts), [int(width) for width in widths]

    def _split(self, Z: Any, y: Any, w: Any, start: int) -> list[tuple[Any, Any, Any]]:
        raise NotImplementedError

    @property
    def tag(self) -> str:
        """Content hash of the map that made the features."""
        return self.parts[0].tag

    @property
    def n(self) -> int:
        """Rows of positive weight."""
        return self.parts[0].n

    @property
    def shift(self) -> np.ndarray | None:
        """What the sums are about, a number for each feature; None before the first row."""
        return self.parts[0].shift

    def zero(self) -> Self:
        return type(self)([moments.zero() for moments in self.parts], self.widths)

    def centre_on(self, Z: Any, y: Any = None, sample_weight: Any = None) -> None:
        for moments, block in zip(self.parts, self._split(Z, y, sample_weight, 0)):
            moments.centre_on(*block)

    def partial(self, Z: Any, y: Any = None, sample_weight: Any = None, start: int = 0) -> Self:
        blocks = self._split(Z, y, sample_weight, start)
        parts = [moments.partial(*block) for moments, block in zip(self.parts, blocks)]
        return type(self)(parts, self.widths)

    def merge(self, other: Self) -> Self:
        if type(self) is not type(other) or len(self.parts) != len(other.parts):
            raise ValueError(
                f"{type(other).__name__} of {len(getattr(other, 'parts', []))} parts cannot be "
                f"merged into {type(self).__name__} of {len(self.parts)}"
            )
        for mine, theirs in zip(self.parts, other.parts):
            mine.merge(theirs)
        return self

    def to_host(self) -> Self:
        for moments in self.parts:
            moments.to_host()
        return self


class FoldMoments(_Composite):
    """Moments of k disjoint sets of rows, from one pass: exact k-fold cross-validation.

    Row number i belongs to fold h(i) mod k, with h a fixed mixing of the bits of i: the folds
    do not depend on the chunks, threads or workers, and a periodic or sorted file does not end up
    with unequal folds. Training sums of fold f are ``total().minus(parts[f])``.

    Parameters
    ----------
    parts : sequence of Moments
        One for each fold; `empty` makes those of no rows.
    widths : sequence of int
        Not used here.
    """

    @classmethod
    def empty(cls, zero: Moments, n_folds: int) -> Self:
        """Make empty folds.

        Parameters
        ----------
        zero : Moments
            What each fold is like.
        n_folds : int
            Number of folds, k.

        Returns
        -------
        FoldMoments
            k folds without rows.
        """
        return cls([zero.zero() for _ in range(n_folds)])

    @property
    def n(self) -> int:
        """Rows of positive weight, of all folds."""
        return sum(moments.n for moments in self.parts)

    def total(self) -> Moments:
        """Add all folds up.

        Returns
        -------
        Moments
            Sums over all rows.
        """
        return reduce(Moments.merge, self.parts, self.parts[0].zero())

    def centre_on(self, Z: Any, y: Any = None, sample_weight: Any = None) -> None:
        # One shift for all folds, so that their sums add without being moved.
        for moments in self.parts:
            moments.centre_on(Z, y, sample_weight)

    def _split(self, Z: Any, y: Any, w: Any, start: int) -> list[tuple[Any, Any, Any]]:
        fold = fold_of_row(np.arange(start, start + Z.shape[0]), len(self.parts))
        rows = (np.flatnonzero(fold == f) for f in range(len(self.parts)))
        return [(Z[part], *(v if v is None else v[part] for v in (y, w))) for part in rows]


class KernelMoments(_Composite):
    """Moments of several groups of columns, without the products between groups.

    For the first pass of Algorithm 4, which needs the PCA of each kernel alone: Σ D_k² numbers
    instead of (Σ D_k)².

    Parameters
    ----------
    parts : sequence of Moments
        One for each group.
    widths : sequence of int
        Columns of each group.
    """

    _state = _Composite._state.extended({"widths": schema.many(schema.integer(0), "parts")})

    def _split(self, Z: Any, y: Any, w: Any, start: int) -> list[tuple[Any, Any, Any]]:
        ends = np.cumsum(self.widths)
        return [(Z[:, end - width : end], y, w) for width, end in zip(self.widths, ends)]


def fold_of_row(rows: np.ndarray, n_folds: int) -> np.ndarray:
    """Fold of each row number: its mixed bits modulo the number of folds."""
    return (mixed_bits(rows) % np.uint64(n_folds)).astype(np.int64)


# ---- products of blocks: dense, sparse, and on a GPU ------------------------------------------


def block_mean(Z: Any, w: np.ndarray | None) -> np.ndarray:
    """Weighted mean of a block's rows, in float64; 0 for sparse ones."""
    if sp.issparse(Z):
        return np.zeros(Z.shape[1])
    if is_tensor(Z):
        weights = np.ones(Z.shape[0]) if w is None else w
        return to_host(to_device(weights / weights.sum(), Z.device) @ Z.double())
    return np.average(Z, axis=0, weights=w)


def products(Z: Any, Y: Any, w: np.ndarray | None) -> tuple[Any, Any, Any]:
    """wᵀZ, YZ (None without targets) and ZᵀWZ; of tensors where they are."""
    m = cast_like(np.ones(Z.shape[0]) if w is None else w, Z) @ Z
    V: Any = None
    if Y is not None and is_tensor(Z):
        V = multiply(cast_like(Y.toarray() if sp.issparse(Y) else Y, Z), Z).double()
    elif Y is not None:
        V = cast_like(Y, Z) @ Z
    m = m.double() if is_tensor(m) else np.asarray(m, dtype=np.float64)
    return m, V.toarray() if sp.issparse(V) else V, _gram(Z, w)


def class_grams(Z: Any, labels: np.ndarray, classes: np.ndarray, w: np.ndarray | None) -> Any:
    """ZᵀWZ of the rows of each class, of shape (t, D, D)."""
    parts = []
    for label in classes:
        rows = np.flatnonzero(labels == label)
        parts.append(_gram(Z[rows], None if w is None else w[rows]))
    if is_tensor(Z):
        import torch

        return torch.stack(parts).double()
    return np.stack(parts).astype(np.float64)


def zeros_on(device: Any) -> Any:
    """A function that makes tensors of zeros, in float64."""
    import torch

    return partial(torch.zeros, dtype=torch.float64, device=device)


def _gram(Z: Any, w: np.ndarray | None) -> Any:
    """ZᵀWZ: numpy sends a product with its own transpose to SYRK, half the flops of GEMM.

    It does so without holding the interpreter's lock, which SciPy's wrapper of SYRK keeps:
    two threads then do one thread's work. On a GPU, products are in the precision that is chosen.
    """
    if w is not None:
        root = cast_like(np.sqrt(w), Z)
        Z = sp.diags_array(root, dtype=root.dtype) @ Z if sp.issparse(Z) else Z * root[:, None]
    if is_tensor(Z):
        return multiply(Z.T, Z)
    return (Z.T @ Z).toarray() if sp.issparse(Z) else Z.T @ Z


def to_columns(y: Any) -> np.ndarray:
    y = np.asarray(y, dtype=np.float64)
    return y[:, None] if y.ndim == 1 else y
