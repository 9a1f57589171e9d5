"""The only place where a string becomes a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from .additive import Additive
from .base import Kernel
from .exponential import Exponential
from .homogeneous import chi2, hellinger, intersection, jensen_shannon
from .stationary import Cauchy, Gaussian, Laplacian, Matern

__all__ = ["KNOWN", "get"]

KNOWN: dict[str, Callable[[], Kernel]] = {
    "chi2": lambda: chi2,
    "intersection": lambda: intersection,
    "hellinger": lambda: hellinger,
    "jensen_shannon": lambda: jensen_shannon,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "cauchy": Cauchy,
    "matern": Matern,
    "exp_chi2": Exponential,
}
_ALIASES = {
    "js": "jensen_shannon",
    "min": "intersection",
    "rbf": "gaussian",
    "bhattacharyya": "hellinger",
}


def get(kernel: str | Kernel | Callable) -> Kernel:
    """A kernel from its name; kernels pass through, a function of two arrays becomes `Additive`.

    An object that samples its spectrum is a kernel, too, and no function of two numbers.
    """
    if isinstance(kernel, Kernel) or (
        hasattr(kernel, "sample_frequencies") and not isinstance(kernel, type)
    ):
        return cast(Kernel, kernel)
    if isinstance(kernel, str):
        name = kernel.lower().replace("-", "_").replace(" ", "_")
        name = _ALIASES.get(name, name)
        if name in KNOWN:
            return KNOWN[name]()
        raise ValueError(
            f"unknown kernel {kernel!r}. Known kernels: {', '.join(KNOWN)} "
            f"(also {', '.join(f'{a} = {b}' for a, b in _ALIASES.items())})."
        )
    if callable(kernel) and not isinstance(kernel, type):
        return Additive(kernel)
    raise TypeError(
        f"a kernel is a name, a kernel object or a function of two arrays; got {kernel!r}."
    )
