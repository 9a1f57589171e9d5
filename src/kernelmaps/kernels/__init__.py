"""Exact kernels: the reference that every map is compared with.

A kernel is a small immutable object. ``k(X, Y)`` is its Gram matrix on dense or CSR rows;
``k.component(x, y)``, ``k.signature(λ)`` and ``k.spectrum(ω)`` are the functions that maps are
built from. :func:`get` is the only place where a string becomes a kernel.
"""

from .additive import Additive, AdditiveKernel, PerFeature
from .base import Kernel
from .homogeneous import (
    Exponential,
    HomogeneousKernel,
    Polynomial,
    chi2,
    hellinger,
    intersection,
    jensen_shannon,
)
from .registry import get, register
from .stationary import Cauchy, Gaussian, Laplacian, Matern, StationaryKernel

__all__ = [
    "Additive",
    "AdditiveKernel",
    "Cauchy",
    "Exponential",
    "Gaussian",
    "HomogeneousKernel",
    "Kernel",
    "Laplacian",
    "Matern",
    "PerFeature",
    "Polynomial",
    "StationaryKernel",
    "chi2",
    "get",
    "hellinger",
    "intersection",
    "jensen_shannon",
    "register",
]
