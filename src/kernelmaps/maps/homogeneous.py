r"""The homogeneous kernel map of Vedaldi and Zisserman.

A homogeneous kernel is c(x, y) = (xy)^{γ/2} κ(log y − log x). Cut the signature κ to a window of
length Λ, continue it periodically, and keep the leading terms of its Fourier series:

.. math:: \hatκ(λ) = \sum_j α_j \cos(ω_j λ), \qquad
          α_j = \frac{2 - [ω_j = 0]}{Λ} \int_{-Λ/2}^{Λ/2} κ(λ) \cos(ω_j λ)\, dλ,

with ω_j = jL, L = 2π/Λ, for an odd number of columns (a constant and cosine-sine pairs) and
ω_j = (j − ½)L for an even number (pairs alone). Negative α_j are dropped, as a map needs them
non-negative. The columns are :math:`\sqrt{α_j x^γ}\,\{\cos, \sin\}(ω_j \log x)`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .. import kernels
from ..arguments import check_choice, check_count, check_positive
from ..certificate import Certificate
from ..engine import Spec
from ..engine.families import waves_arrays
from ..schema import array, number
from ..threads import limit_blas
from ._period import Cosines, best_series, misfit, pair_weights, ruled_period, series
from .base import AdditiveMap

_WINDOWS = ("rectangular", "uniform")
_MONOTONE = (kernels.chi2, kernels.intersection, kernels.jensen_shannon, kernels.hellinger)


@dataclass(eq=False, repr=False)
class HomogeneousMap(AdditiveMap):
    """Vedaldi-Zisserman map of a homogeneous kernel.

    Parameters
    ----------
    kernel : str or HomogeneousKernel, default="chi2"
        "chi2", "intersection", "jensen_shannon", "hellinger" or a kernel that you wrote.
    n_components : int, default=5
        Output columns per input feature. Odd numbers include the constant frequency, even ones
        do not.
    period : float, "auto" or "vlfeat", default="auto"
        Length Λ of the window in log-ratios. "auto" takes the period with the smallest
        worst error for the size and the data, measured on the pairs of a few rows (24 to 72); if
        a smaller size does better, it takes the series of that one, and the columns that remain
        are zero (`DesignedMap` gains from every column). "vlfeat" is the rule that VLFeat
        publishes, which uses the size alone.
    gamma : float, default=1.0
        Degree of homogeneity; if it is 1, that of a kernel object is used.
    window : {"rectangular", "uniform"}, default="rectangular"
        "rectangular" cuts the signature before continuing it periodically; "uniform" samples the
        kernel's spectrum, which amounts to adding up all shifted signatures.
    signed : bool, default=False
        Accept negative values by the odd extension φ(−x) = −φ(x); so does a signed kernel object.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    frequencies_, weights_ : ndarray
        The ω_j and α_j.
    period_ : float
        The period in use (irrelevant for the Hellinger kernel, which is exact).
    certificate_ : Certificate
        Absolute error over all pairs in (0, 1], for γ = 1.

    Examples
    --------
    >>> import kernelmaps as km
    >>> X = [[0.2, 0.8], [0.5, 0.5]]
    >>> Z = km.HomogeneousMap("chi2", n_components=7).fit_transform(X)
    >>> bool(abs(Z @ Z.T - km.kernels.chi2(X)).max() < 1e-3)
    True
    """

    kernel: Any = "chi2"
    n_components: int = 5
    _: KW_ONLY
    period: float | str = "auto"
    gamma: float = 1.0
    window: str = "rectangular"
    signed: bool = False
    n_jobs: int | None = None

    _state = AdditiveMap._state.extended(
        {
            "period_": number(above=0),
            "frequencies_": array("f8", "frequencies"),
            "weights_": array("f8", "frequencies", low=0),
        }
    )

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        kernel = self._resolved_kernel()
        check_choice(self, "window", self.window, _WINDOWS)
        self.kernel_ = kernel
        with limit_blas(1):  # matrices are small: threads of BLAS would only wait, and busily
            self.period_, found = self._fitted_series(X, kernel, columns)
            self.frequencies_, self.weights_ = found
            if kernel.gamma == 1 and kernel.replace(signed=False) in _MONOTONE:
                self.certificate_ = _certificate(kernel, *found)
        arrays = waves_arrays(self.frequencies_, self.weights_)
        missing = columns - len(arrays["amplitude"])
        padded = {name: [*values, *[0.0] * missing] for name, values in arrays.items()}
        return Spec("log_waves", padded, {"gamma": float(kernel.gamma), "signed": kernel.signed})

    def _resolved_kernel(self) -> kernels.HomogeneousKernel:
        kernel = kernels.get(self.kernel)
        if not isinstance(kernel, kernels.HomogeneousKernel):
            raise ValueError(
                f"HomogeneousMap needs a homogeneous kernel with a signature and a spectrum; "
                f"{kernel!r} has none. Use chi2, intersection, jensen_shannon or hellinger, "
                "AnchorMap for any additive kernel, RandomFourierMap for stationary ones."
            )
        check_positive(self, "gamma", self.gamma)
        if kernel.gamma != 1 and self.gamma not in (1, kernel.gamma):
            raise ValueError(
                f"HomogeneousMap: gamma={self.gamma!r} contradicts the gamma={kernel.gamma!r} of "
                "the kernel that was given; give one of them."
            )
        gamma = self.gamma if kernel.gamma == 1 else kernel.gamma
        return kernel.replace(gamma=float(gamma), signed=not self._non_negative)

    def _fitted_series(
        self, X: Any, kernel: kernels.HomogeneousKernel, columns: int
    ) -> tuple[float, Cosines]:
        """The period in use, and its series."""
        if self.period == "auto":
            pairs = pair_weights(X, kernel.gamma, self.n_jobs)
            return best_series(kernel, columns, self.window, pairs)
        if self.period == "vlfeat":
            period = ruled_period(kernel, columns, self.window)
        else:
            wanted = "a positive number, 'auto' or 'vlfeat'"
            check_positive(self, "period", self.period, wanted)
            period = float(self.period)
        return period, series(kernel, columns, period, self.window)

    def _larger(self, largest: float) -> float:
        return float(largest)  # the certificate is that of [0, 1], for γ = 1

    @property
    def _non_negative(self) -> bool:  # type: ignore[override]
        return not (self.signed or getattr(self.kernel, "signed", False))


def _certificate(
    kernel: kernels.HomogeneousKernel, frequencies: np.ndarray, weights: np.ndarray
) -> Certificate:
    """sup_λ e^{−λ/2} |κ̂ − κ| (low-dim-maps eq. 15) on a grid, the gaps bounded.

    e^{−λ/2} κ(λ) = c(e^{−λ}, 1) has slope |t ∂c(t, 1)/∂t| ≤ t at t = e^{−λ} for the kernels in
    _MONOTONE, and the weighted cosines have slope at most e^{−λ/2} Σ α_j (ω_j + ½). In the variable
    s = 1 − e^{−λ/2}, which runs from 0 to 1 over all ratios, both together move by no more than
    2 (1 + Σ α_j (ω_j + ½)) per unit, hence by half a step times that between grid points. In the
    last step, up to s = 1, the weighted error is at most (1 − s) (Σ α_j + κ(0)).
    """
    s = np.arange(20_000) / 20_000
    weighted = (1 - s) * np.abs(misfit(kernel, (frequencies, weights), -2 * np.log1p(-s)))
    slope = 2 * (1 + float(weights @ (frequencies + 0.5)))
    tail = (1 - s[-1]) * float(weights.sum() + kernel.signature(np.zeros(1))[0])
    return Certificate(
        max(float(weighted.max()) + 0.5 * slope * s[1], tail),
        "absolute",
        "0 <= x, y <= 1 (times b on [0, b])",
        "grid and slope bound",
    )
