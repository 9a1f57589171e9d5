"""What a joint design approximates: the signature of a kernel of several coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..kernels import StationaryKernel, get
from .boxes import lag_axes, product_grid
from .joint import along, gram_on
from .problem import NotPositiveDefiniteError, feature_kernel


@dataclass(frozen=True)
class Target:
    """The joint signature, one-dimensional ones along the axes, and whether it is their product."""

    name: str
    joint: Callable[[np.ndarray], np.ndarray]
    marginals: list[Callable]
    is_product: bool
    trusted: bool  # positive definite for sure


def signatures_of(kernel: Any, axes: int) -> Target:
    """What is to be approximated."""
    if isinstance(kernel, list | tuple):
        if len(kernel) != axes:
            raise ValueError(f"design_joint_map: {len(kernel)} kernels for {axes} axes.")
        parts = [feature_kernel(item) for item in kernel]

        def product_of(lag: np.ndarray) -> np.ndarray:
            values = [f(np.abs(lag[..., i])) for i, f in enumerate(single)]
            return np.prod(values, axis=0)

        single: list[Any] = [part.signature for part in parts]
        known = all(isinstance(item, str | StationaryKernel) for item in kernel)
        return Target(" x ".join(part.name for part in parts), product_of, single, True, known)
    if callable(kernel) and not hasattr(kernel, "signature"):
        joint, is_product, trusted = kernel, False, False
        name = getattr(kernel, "__name__", "signature")
    else:
        kernel = get(kernel)
        if not isinstance(kernel, StationaryKernel):
            raise ValueError(f"design_joint_map: {kernel!r} is not stationary.")
        name, is_product, trusted = kernel.name, not kernel.isotropic, True

        def joint(lag: np.ndarray) -> np.ndarray:
            if is_product:
                return np.prod(kernel.signature(lag), axis=-1)
            return kernel.signature(np.sqrt(np.sum(lag**2, axis=-1)))

    first = along(joint, 0, np.ones(axes)).signature
    if trusted:  # one and the same along every axis
        return Target(name, joint, [first] * axes, is_product, trusted)
    others = [along(joint, axis, np.ones(axes)).signature for axis in range(1, axes)]
    marginals = [first, *others]
    return Target(name, joint, marginals, is_product, trusted)


def reflects(signature: Callable, spans: np.ndarray) -> bool:
    """Whether k(±λ^1, …, ±λ^n) is the same for all signs, on a small grid."""
    lags = product_grid(lag_axes(spans, 6, "modulation"))
    values = signature(lags)
    if values.shape != lags.shape[:1] or not np.all(np.isfinite(values)):
        raise ValueError(
            "design_joint_map: a user's signature must map lags (..., n) to finite values of shape "
            f"(...,); it gave shape {np.shape(values)} for {lags.shape}."
        )
    flips = product((1.0, -1.0), repeat=spans.size - 1)
    worst = max(float(np.max(np.abs(signature(lags * (1.0, *f)) - values))) for f in flips)
    return worst <= 1e-9 * float(np.max(np.abs(values)))


def refuse_indefinite(target: Target, spans: np.ndarray, periods: tuple[float | None, ...]) -> None:
    """A user's signature must be positive definite: its Gram matrix on points of the domain is."""
    if target.trusted:
        return
    places = np.linspace(0, 1, 13 if spans.size == 2 else 6)
    values = np.linalg.eigvalsh(gram_on(target.joint, spans, periods, places))
    if values[0] < -1e-9 * np.max(np.abs(values)):
        raise NotPositiveDefiniteError(
            f"design_joint_map: the signature {target.name!r} is not positive definite: its Gram "
            f"matrix on {values.size} points of the domain has the eigenvalue {values[0]:.3g} "
            f"(largest {values[-1]:.3g}). No non-negative mixture of cosines fits it."
        )
