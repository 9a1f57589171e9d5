"""Maps from outside, by name: for comparing, choosing, the command line, files and graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .base import FeatureMap

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
