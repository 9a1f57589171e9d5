"""Display of the error of a map against its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._util.arguments import argument_error
from .._util.sparse import dense
from ..maps.base import AdditiveMap
from .shapes import drop_names


@dataclass(kw_only=True, eq=False, repr=False)
class KernelErrorDisplay:
    """Display of an additive kernel, its map, and their difference over pairs of values.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Values of one feature.
    exact, approximate : ndarray of shape (n, n)
        The kernel and the map's inner products at all pairs.
    title : str
        Name of the map.

    See Also
    --------
    KernelErrorDisplay.from_estimator : computes the arrays from a fitted map, and draws them.
    kernel_error_grid : computes them only.
    """

    x: np.ndarray
    exact: np.ndarray
    approximate: np.ndarray
    title: str = ""

    @property
    def error(self) -> np.ndarray:
        """Map minus kernel."""
        return self.approximate - self.exact

    @classmethod
    def from_estimator(
        cls, estimator: AdditiveMap, *, axes: Any = None, **options: Any
    ) -> KernelErrorDisplay:
        """Evaluate a fitted map and draw its error.

        Parameters
        ----------
        estimator : AdditiveMap
            A fitted map.
        axes : sequence of 4 matplotlib axes, optional
            Where to draw; a new figure by default.
        **options : dict
            Which values, and how many: see :func:`kernel_error_grid`.

        Returns
        -------
        KernelErrorDisplay
            Drawn, with `axes_` and `figure_`.
        """
        return kernel_error_grid(estimator, **options).plot(axes)

    def plot(self, axes: Any = None) -> KernelErrorDisplay:
        """Draw four panels: kernel, map, error, and error against the ratio.

        Parameters
        ----------
        axes : sequence of 4 matplotlib axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        self : KernelErrorDisplay
            The display, with `figure_` and `axes_`.
        """
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(1, 4, figsize=(15, 3.4), layout="constrained")
        self.axes_ = np.ravel(axes)
        if len(self.axes_) != 4:
            raise ValueError(f"KernelErrorDisplay.plot draws 4 panels; got {len(self.axes_)} axes.")
        self.figure_ = self.axes_[0].figure
        self._draw_matrices()
        self._draw_ratio(self.axes_[3])
        self.figure_.suptitle(
            f"{self.title}: largest error {np.abs(self.error).max():.3g}, "
            f"rms {np.sqrt(np.mean(self.error**2)):.3g}"
        )
        return self

    def _draw_matrices(self) -> None:
        extent = (self.x[0], self.x[-1], self.x[0], self.x[-1])
        shared = {"vmin": float(self.exact.min()), "vmax": float(self.exact.max())}
        worst = float(np.abs(self.error).max()) or 1.0
        panels = [
            ("exact kernel", self.exact, {"cmap": "viridis", **shared}),
            ("map", self.approximate, {"cmap": "viridis", **shared}),
            ("map − kernel", self.error, {"cmap": "RdBu_r", "vmin": -worst, "vmax": worst}),
        ]
        for ax, (name, matrix, style) in zip(self.axes_[:3], panels, strict=True):
            image = ax.imshow(matrix, origin="lower", extent=extent, aspect="auto", **style)
            ax.figure.colorbar(image, ax=ax)
            ax.set(title=name, xlabel="y")
        self.axes_[0].set_ylabel("x")

    def _draw_ratio(self, ax: Any) -> None:
        x, y = np.meshgrid(self.x, self.x, indexing="ij")
        inside = (x > 0) & (y >= x)
        ax.plot(x[inside] / y[inside], self.error[inside], ".", ms=1.5, alpha=0.4)
        ax.axhline(0, color="0.3", lw=0.8)
        ax.set(title="error against the ratio", xlabel="x / y", xscale="log", ylabel="map − kernel")


def kernel_error_grid(
    estimator: AdditiveMap,
    *,
    domain: tuple[float, float] | None = None,
    feature: int = 0,
    n_points: int = 128,
) -> KernelErrorDisplay:
    """Compute what `KernelErrorDisplay.from_estimator` draws, without matplotlib.

    Parameters
    ----------
    estimator : AdditiveMap
        A fitted map.
    domain : (low, high), optional
        Values to look at; by default the fitted domain, or (0, 1).
    feature : int
        Which feature.
    n_points : int
        Points on each axis.

    Returns
    -------
    KernelErrorDisplay
        The display, not drawn.
    """
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if not hasattr(estimator, "kernel_"):
        raise TypeError(f"KernelErrorDisplay: {name} has no kernel to compare with.")
    title = f"{name} ({getattr(estimator.kernel_, 'name', 'kernel')})"
    if not isinstance(estimator, AdditiveMap):
        raise TypeError(f"KernelErrorDisplay: {name} acts on whole rows; kernel_error has figures.")
    if not 0 <= feature < estimator.n_features_in_:
        words = f"one of the {estimator.n_features_in_} of {name}, from 0 on"
        raise argument_error("KernelErrorDisplay", "feature", feature, words)
    x = np.linspace(*(domain or _domain_of(estimator, feature)), n_points)
    phi = _features_of(estimator, feature, x)
    exact = estimator.kernel_.component(x[:, None], x[None, :])
    return KernelErrorDisplay(x=x, exact=exact, approximate=phi @ phi.T, title=title)


def _features_of(estimator: AdditiveMap, feature: int, x: np.ndarray) -> np.ndarray:
    """φ_feature(x); the other features are held where the map is defined."""
    held_values = max(x[0], 0.0) if estimator.domain_ is None else estimator.domain_[0]
    grid = np.tile(
        np.broadcast_to(held_values, estimator.n_features_in_).astype(float), (len(x), 1)
    )
    grid[:, feature] = x
    columns = np.concatenate([[0], np.cumsum(estimator._columns_per_feature())])
    return dense(drop_names(estimator).transform(grid))[:, columns[feature] : columns[feature + 1]]


def _domain_of(estimator: AdditiveMap, feature: int) -> tuple[float, float]:
    if estimator.domain_ is None:
        return 0.0, 1.0
    lower, upper = (np.ravel(end) for end in estimator.domain_)
    low, high = lower[min(feature, len(lower) - 1)], upper[min(feature, len(upper) - 1)]
    return float(low), float(high)
