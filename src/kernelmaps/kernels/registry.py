"""Kernels by name: `get` and `register`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, cast

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
from .stationary import Cauchy, Gaussian, Laplacian, Matern

_ADDITIVE = chi2, intersection, hellinger, jensen_shannon
_STATIONARY = Gaussian, Laplacian, Cauchy, Matern
KNOWN: dict[str, Kernel | type[Kernel]] = {
    kernel.name: kernel for kernel in (*_ADDITIVE, *_STATIONARY, Polynomial)
}
KNOWN["exp_chi2"] = Exponential
_ALIASES = {
    "js": "jensen_shannon",
    "min": "intersection",
    "rbf": "gaussian",
    "bhattacharyya": "hellinger",
    "poly": "polynomial",
}


def register(kernel: type[Kernel], name: str | None = None) -> type[Kernel]:
    """Register a kernel by name, for `get`, the command line and model files.

    Parameters
    ----------
    kernel : class of kernels
        All its parameters have defaults. `register` may be used as a decorator.
    name : str, optional
        The name; by default the `name` of the class.

    Returns
    -------
    class
        The same class.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from kernelmaps import kernels
    >>> @kernels.register
    ... @dataclass(frozen=True)
    ... class Cosine(kernels.StationaryKernel):
    ...     scale: float = 1.0
    ...     name = "cosine"
    ...     def signature(self, delta):
    ...         return np.cos(delta / self.scale)
    ...     def frequencies(self, uniforms, d):
    ...         return np.where(uniforms < 0.5, -1, 1) / self.scale
    >>> kernels.get("cosine").with_parameter(2.0)
    Cosine(scale=2.0)
    """
    if not (isinstance(kernel, type) and issubclass(kernel, Kernel)):
        raise TypeError(f"register takes a class of kernels, got {kernel!r}.")
    name = kernel.name if name is None else name
    registered = KNOWN.get(name)
    if registered is not None and getattr(registered, "__qualname__", None) != kernel.__qualname__:
        raise ValueError(f"there is a kernel {name!r} already: give yours another name.")
    KNOWN[name] = kernel
    return kernel


def get(kernel: str | Kernel | Callable | list | tuple) -> Kernel:
    """Return the kernel of a name; kernels are returned unchanged.

    Parameters
    ----------
    kernel : str, Kernel, callable, or list of these
        A name; a kernel, or an object that samples its spectrum; or a function of two arrays, which
        becomes `Additive`. A list of additive kernels, one for each feature, becomes `PerFeature`.

    Returns
    -------
    Kernel
        The kernel.
    """
    if isinstance(kernel, Kernel) or (
        hasattr(kernel, "sample_frequencies") and not isinstance(kernel, type)
    ):
        return cast(Kernel, kernel)
    if isinstance(kernel, str):
        name = kernel.lower().replace("-", "_").replace(" ", "_")
        name = _ALIASES.get(name, name)
        if name in KNOWN:
            registered = KNOWN[name]
            return registered() if isinstance(registered, type) else registered
        raise ValueError(
            f"unknown kernel {kernel!r}. Known kernels: {', '.join(KNOWN)} "
            f"(also {', '.join(f'{a} = {b}' for a, b in _ALIASES.items())})."
        )
    if isinstance(kernel, list | tuple):
        return PerFeature(tuple(cast(AdditiveKernel, get(item)) for item in kernel))
    if callable(kernel) and not isinstance(kernel, type):
        return Additive(kernel)
    raise TypeError(
        f"a kernel is a name, a kernel object or a function of two arrays; got {kernel!r}."
    )


def kernel_text(kernel: Kernel) -> str:
    """A kernel that is known by its name, with its parameters, as text (JSON).

    Parameters
    ----------
    kernel : Kernel
        A kernel of the library, or of a class that was registered.

    Returns
    -------
    str
        What `kernel_of_text` reads.
    """
    return json.dumps(_describe_kernel(kernel), sort_keys=True)


def _describe_kernel(kernel: Any) -> dict[str, Any]:
    if isinstance(kernel, Exponential):
        return {"exponential": kernel.gamma, "base": _describe_kernel(kernel.base)}
    if isinstance(kernel, PerFeature):
        return {"per_feature": [_describe_kernel(item) for item in kernel.kernels]}
    name = getattr(kernel, "name", None)
    registered = KNOWN.get(name) if isinstance(name, str) else None
    if isinstance(kernel, HomogeneousKernel):
        if registered == kernel.replace(gamma=1.0, signed=False):
            return {"kernel": name, "gamma": kernel.gamma, "signed": kernel.signed}
    elif isinstance(registered, type) and type(kernel) is registered and is_dataclass(kernel):
        return {"kernel": name} | {item.name: getattr(kernel, item.name) for item in fields(kernel)}
    raise TypeError(
        f"{kernel!r} has no name that it could be found by: use a kernel of the library, or "
        "register its class (kernelmaps.kernels.register)."
    )


def kernel_of_text(text: str) -> Kernel:
    """The kernel of a text that `kernel_text` made; ValueError or TypeError if there is none.

    Parameters
    ----------
    text : str
        JSON.

    Returns
    -------
    Kernel
        The kernel.
    """
    return _from_description(json.loads(text))


def _from_description(entry: Any, depth: int = 0) -> Kernel:
    if not isinstance(entry, dict) or depth > 3:
        raise ValueError("a kernel is described by a name and its parameters")
    if set(entry) == {"exponential", "base"}:
        return Exponential(_from_description(entry["base"], depth + 1), entry["exponential"])
    if set(entry) == {"per_feature"} and isinstance(entry["per_feature"], list):
        parts = [_from_description(item, depth + 1) for item in entry["per_feature"]]
        return PerFeature(cast(tuple[AdditiveKernel, ...], tuple(parts)))
    name = entry.get("kernel")
    registered = KNOWN.get(name) if isinstance(name, str) else None
    if registered is None:
        raise ValueError(f"there is no kernel {name!r:.60}")
    parameters = {key: value for key, value in entry.items() if key != "kernel"}
    if isinstance(registered, HomogeneousKernel):
        if set(parameters) != {"gamma", "signed"} or not isinstance(parameters["signed"], bool):
            raise ValueError(f"the kernel {name!r} has the parameters gamma and signed")
        return registered.replace(**parameters)
    if any(isinstance(value, str | list | dict) for value in parameters.values()):
        raise ValueError(f"the parameters of the kernel {name!r} are numbers")
    return cast(type[Kernel], registered)(**parameters)
