r"""Homogeneous kernels of histograms: χ², intersection, Hellinger, Jensen-Shannon.

A kernel with c(sx, sy) = s^γ c(x, y) is fixed by its *signature*, a function of the log-ratio:

.. math:: c(x, y) = (xy)^{γ/2}\, κ(\log y - \log x), \qquad κ(λ) = c(e^{-λ/2}, e^{λ/2})

(Chum 2015, eq. 14; Vedaldi and Zisserman). Its *spectrum* is the density of the signature,
:math:`κ(λ) = \int \hatκ(ω) \cos(ωλ)\,dω`, non-negative by Bochner's theorem. All are normalised to
c(x, x) = x at γ = 1.

=================  ==========================================  ====================  ==============
kernel             c(x, y)                                     κ(λ)                  spectrum
=================  ==========================================  ====================  ==============
χ²                 2xy/(x+y)                                   sech(λ/2)             sech(πω)
intersection       min(x, y)                                   e^{−|λ|/2}            2/π /(1+4ω²)
Hellinger          √(xy)                                       1                     point mass at 0
Jensen-Shannon     x/2 log₂((x+y)/x) + y/2 log₂((x+y)/y)       see below             2/log 4 ·
                                                                                     sech(πω)/(1+4ω²)
=================  ==========================================  ====================  ==============

Exponential kernels exp(−γ D²) are those of the distance D of a base kernel, χ² by default; the
polynomial kernel (γ⟨x, y⟩ + c)^p is for comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import log
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._util.arguments import check_count, check_number, check_positive
from .._util.devices import namespace_of
from .._util.sparse import dense
from .._util.threads import limit_threads
from .additive import AdditiveKernel, Component, compiled_sums
from .base import Kernel, Rows, UnitDiagonal

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, repr=False)
class HomogeneousKernel(AdditiveKernel):
    """Additive homogeneous kernel, given by its signature.

    Parameters
    ----------
    name : str
        For messages and column names.
    signature_function : callable
        κ(λ), even, with κ(0) = c(1, 1).
    spectrum_function : callable, optional
        Spectral density κ̂(ω); maps that sample it need it, designed and anchor maps do not.
    component_function : callable, optional
        c(x, y) at γ = 1 where a closed form is more accurate than the signature.
    gamma : float
        Degree of homogeneity; smaller values give small entries more weight.
    signed : bool
        Odd extension ``sign(x) sign(y) c(|x|, |y|)`` to negative values.
    point_mass : float
        Weight of an atom of the spectrum at ω = 0 (1 for Hellinger).
    code, distance_code : int, optional
        Numbers of the compiled formulas of the kernel and of its distance; internal.
    """

    name: str
    signature_function: Function
    spectrum_function: Function | None = field(default=None, compare=False)
    component_function: Component | None = field(default=None, compare=False)
    gamma: float = 1.0
    signed: bool = False
    point_mass: float = 0.0
    code: int | None = field(default=None, compare=False)
    distance_code: int | None = field(default=None, compare=False)
    parameter_name: ClassVar[str] = "gamma"

    def __post_init__(self) -> None:
        check_positive(self.name, "gamma", self.gamma)

    def replace(self, **changes: Any) -> HomogeneousKernel:
        """Return the kernel with some attributes changed, such as `gamma` or `signed`.

        Parameters
        ----------
        **changes : dict
            New values by name.

        Returns
        -------
        HomogeneousKernel
            The changed kernel.
        """
        return replace(self, **changes)

    def signature(self, lam: np.ndarray) -> np.ndarray:
        """Evaluate κ(λ) = c(e^{−λ/2}, e^{λ/2}), which does not depend on γ.

        Parameters
        ----------
        lam : array-like
            λ = log(y/x).

        Returns
        -------
        ndarray
            Values of the signature.
        """
        xp = namespace_of(lam)
        return self.signature_function(xp.asarray(lam, dtype=xp.float64))

    def spectrum(self, omega: np.ndarray) -> np.ndarray:
        """Evaluate the spectral density κ̂(ω), without an atom at zero (see `point_mass`).

        Parameters
        ----------
        omega : array-like
            Frequencies.

        Returns
        -------
        ndarray
            Values of the density.
        """
        if self.spectrum_function is None:
            raise ValueError(
                f"the kernel {self.name!r} has no spectrum. Give spectrum_function= to "
                "HomogeneousKernel, or use DesignedMap or AnchorMap, which need none."
            )
        return self.spectrum_function(np.asarray(omega, dtype=np.float64))

    def component(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        xp = namespace_of(x)
        x, y = (xp.asarray(values, dtype=xp.float64) for values in (x, y))
        a, b = (xp.abs(x), xp.abs(y)) if self.signed else (x, y)
        both = (a > 0) & (b > 0)
        positive = (xp.where(both, size, xp.ones_like(size)) for size in (a, b))
        value = self._evaluate_positive(*positive)
        value = xp.where(both, value, xp.zeros_like(value))
        return xp.sign(x) * xp.sign(y) * value if self.signed else value

    def _evaluate_positive(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """c(a, b) of values above zero."""
        xp = namespace_of(a)
        plain = self.component_function is not None and self.gamma == 1
        # not sqrt(a * b): the product may under- or overflow
        root = 1.0 if plain else xp.sqrt(a) * xp.sqrt(b)
        if self.component_function is not None:
            value = self.component_function(a, b)
        else:
            value = root * self.signature(xp.log(b) - xp.log(a))
        return value if self.gamma == 1 else value * root ** (self.gamma - 1)

    @property
    def grows(self) -> bool:
        """Whether c is known to grow in both arguments: the named kernels at γ = 1."""
        named = self.code is not None or self.point_mass == 1
        return named and self.gamma == 1 and not self.signed

    def clipping_bound(self, limit: np.ndarray, largest: np.ndarray) -> np.ndarray:
        r"""Bound what clipping at a limit changes: |c(x, y) − c(min(x, limit), min(y, limit))|.

        The named kernels at γ = 1 are concave, have the degree 1 and the gradient (½, ½) on the
        diagonal; ∂c/∂x at (x, y) is at most ½ where y ≤ x. So c grows by at most (x − limit)/2 in
        x, and as much in y. Of other kernels only |c(x, y)| ≤ κ(0) (xy)^{γ/2} is known.

        Parameters
        ----------
        limit, largest : ndarray
            Values above `limit` are clipped to it; none is larger than `largest`.

        Returns
        -------
        ndarray
            The bounds; 0 where nothing is clipped.
        """
        limit, largest = np.asarray(limit, np.float64), np.asarray(largest, np.float64)
        if self.replace(signed=False).grows:
            return np.maximum(largest - limit, 0.0)
        both = float(self.signature(np.zeros(1))[0]) * (largest**self.gamma + limit**self.gamma)
        return np.where(largest > limit, both, 0.0)

    @property
    def _code(self) -> int | None:  # type: ignore[override]
        return self.code if self.gamma == 1 and not self.signed else None

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        if self.point_mass == 1:  # rank one per feature: a matrix product of roots
            roots = [_signed_power(rows, self.gamma / 2) for rows in (X, Y) if rows is not None]
            return dense(roots[0] @ roots[-1].T)
        return super()._gram(X, Y, n_jobs)

    def _squared_distance(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        if self.distance_code is None or self.gamma != 1 or self.signed:
            return super()._squared_distance(X, Y, n_jobs)
        return compiled_sums(self.distance_code, 0.0, X, Y, n_jobs)

    @property
    def non_negative(self) -> bool:
        return not self.signed

    def _check_values(self, X: Any, name: str) -> None:
        values = X.data if sparse.issparse(X) else X
        if self.signed or not values.shape[0]:
            return
        worst = float(namespace_of(values).min(values))
        if worst < 0:
            raise ValueError(
                f"the {self.name} kernel needs non-negative values, but there is {worst:g} in "
                f"{name}. Shift or clip the data, or use kernel.replace(signed=True)."
            )

    def __repr__(self) -> str:
        extra = [f"gamma={self.gamma:g}"] * (self.gamma != 1) + ["signed=True"] * self.signed
        return f"HomogeneousKernel({', '.join([repr(self.name), *extra])})"


def _signed_power(X: Rows, exponent: float) -> Rows:
    """sign(x) |x|^exponent on dense or CSR rows."""
    if sparse.issparse(X):
        data = np.sign(X.data) * np.abs(X.data) ** exponent
        return sparse.csr_matrix((data, X.indices, X.indptr), shape=X.shape)
    return np.sign(X) * np.abs(X) ** exponent


def _sech(x: np.ndarray) -> np.ndarray:
    xp = namespace_of(x)
    decay = xp.exp(-xp.abs(x))  # 1/cosh without overflow
    return 2 * decay / (1 + decay * decay)


def _chi2_signature(lam: np.ndarray) -> np.ndarray:
    return _sech(lam / 2)


def _chi2_spectrum(omega: np.ndarray) -> np.ndarray:
    return _sech(np.pi * omega)


def _chi2_component(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 2 * x * (y / (x + y))


def _intersection_signature(lam: np.ndarray) -> np.ndarray:
    xp = namespace_of(lam)
    return xp.exp(-xp.abs(lam) / 2)


def _intersection_component(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return namespace_of(x).minimum(x, y)


def _intersection_spectrum(omega: np.ndarray) -> np.ndarray:
    return (2 / np.pi) / (1 + 4 * omega * omega)


def _hellinger_signature(lam: np.ndarray) -> np.ndarray:
    return namespace_of(lam).ones_like(lam)


def _hellinger_component(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    xp = namespace_of(x)
    return xp.sqrt(x) * xp.sqrt(y)


def _jensen_shannon_signature(lam: np.ndarray) -> np.ndarray:
    # e^{λ/2}/2 log2(1 + e^{−λ}) + e^{−λ/2}/2 log2(1 + e^{λ}), with λ → |λ| to stay in range
    xp = namespace_of(lam)
    size = xp.abs(lam)
    small = xp.log1p(xp.exp(-size))  # log(1 + e^{−|λ|}); log(1 + e^{|λ|}) = |λ| + small
    grow, decay = xp.exp(xp.clip(size, None, 700.0) / 2), xp.exp(-size / 2)
    return (grow * small + decay * (size + small)) / (2 * log(2))


def _jensen_shannon_spectrum(omega: np.ndarray) -> np.ndarray:
    return 2 / np.log(4) * _sech(np.pi * omega) / (1 + 4 * omega * omega)


def _jensen_shannon_component(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    # log(1 + large/small) as log(1 + r) − log r, r = small/large <= 1: no ratio overflows
    xp = namespace_of(x)
    small, large = xp.minimum(x, y), xp.maximum(x, y)
    ratio = small / large
    log1p_ratio = xp.log1p(ratio)
    has_ratio = ratio > float(np.finfo(np.float64).tiny)
    # A difference of logarithms has fewer digits: only where the ratio itself has none.
    safe = xp.where(has_ratio, ratio, xp.ones_like(ratio))
    logarithm = xp.where(has_ratio, xp.log(safe), xp.log(small) - xp.log(large))
    return (large * log1p_ratio + small * (log1p_ratio - logarithm)) / (2 * log(2))


# The integers are the scalar rules of the compiled loops (_loops.CHI2, …), written out because
# importing them would import numba.
chi2 = HomogeneousKernel(
    "chi2", _chi2_signature, _chi2_spectrum, _chi2_component, code=0, distance_code=5
)
intersection = HomogeneousKernel(
    "intersection",
    _intersection_signature,
    _intersection_spectrum,
    _intersection_component,
    code=1,
    distance_code=3,  # Σ |x − y|
)
jensen_shannon = HomogeneousKernel(
    "jensen_shannon",
    _jensen_shannon_signature,
    _jensen_shannon_spectrum,
    _jensen_shannon_component,
    code=2,
)
hellinger = HomogeneousKernel(
    "hellinger", _hellinger_signature, np.zeros_like, _hellinger_component, point_mass=1.0
)


@dataclass(frozen=True)
class Exponential(UnitDiagonal):
    """The kernel exp(−γ ‖φ(x) − φ(y)‖²), with φ the feature space of `base`.

    For χ² the squared distance is Σ (x − y)²/(x + y), without a factor ½ (Li et al. 2012, eq. 14
    and Algorithm 1), and every base kernel gives a positive-definite exponential (Schoenberg).

    Parameters
    ----------
    base : Kernel
        The kernel whose distance is used; χ² by default.
    gamma : float
        γ > 0, the inverse of a squared length scale.
    """

    base: Kernel = chi2
    gamma: float = 1.0
    name = "exponential"
    parameter_name = "gamma"

    def __post_init__(self) -> None:
        if not isinstance(self.base, Kernel):
            raise TypeError(f"Exponential: base must be a kernel, got {self.base!r}.")
        check_positive(self, "gamma", self.gamma)

    def _check_values(self, X: Any, name: str) -> None:
        self.base._check_values(X, name)

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        distance = self.base.squared_distance(X, Y, n_jobs=n_jobs)
        distance *= -self.gamma
        return np.exp(distance, out=distance)

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        return xp.exp(-self.gamma * self.base._distance_array_api(xp, X, Y))


@dataclass(frozen=True)
class Polynomial(Kernel):
    """Polynomial kernel (γ⟨x, y⟩ + c)^p, as scikit-learn's `polynomial_kernel`.

    Parameters
    ----------
    degree : int
        p >= 1.
    gamma : float
        γ > 0.
    coef0 : float
        c >= 0; a negative constant is not positive definite.
    """

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0
    name = "polynomial"
    parameter_name = "gamma"

    def __post_init__(self) -> None:
        check_count(self, "degree", self.degree)
        check_positive(self, "gamma", self.gamma)
        check_number(self, "coef0", self.coef0, ">= 0", lambda c: c >= 0)

    def _power(self, products: Any) -> Any:
        return (self.gamma * products + self.coef0) ** self.degree

    def _gram(self, X: Rows, Y: Rows | None, n_jobs: int | None) -> np.ndarray:
        left = X.astype(np.float64)
        right = left if Y is None else Y.astype(np.float64)
        with limit_threads(n_jobs):
            products = safe_sparse_dot(left, right.T, dense_output=True)
        if Y is None:
            products = (products + products.T) / 2
        return self._power(products).astype(X.dtype, copy=False)

    def _diag(self, X: Rows) -> np.ndarray:
        squares = row_norms(X.astype(np.float64), squared=True)
        return self._power(squares).astype(X.dtype, copy=False)

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        return self._power(X @ Y.T)
