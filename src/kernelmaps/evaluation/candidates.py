"""Candidate maps and sizes for a kernel, and the Python that makes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

import kernelmaps

from .. import kernels
from .._util.arguments import generator
from ..kernels import Kernel
from ..kernels.additive import AdditiveKernel, PerFeature
from ..kernels.homogeneous import Exponential, HomogeneousKernel, Polynomial
from ..kernels.registry import kernel_text
from ..kernels.stationary import StationaryKernel, fit_length
from ..maps.base import PLUGINS, Family, plugin_families


@dataclass(frozen=True)
class Candidate:
    """One map with its settings.

    Attributes
    ----------
    name : str
        Public name of the map's class.
    size : int
        Columns per feature (additive maps) or in all (joint maps) that it was asked for.
    settings : dict
        Arguments of the class.
    variant : str
        What tells it from others of its class and size.
    """

    name: str
    size: int
    settings: dict[str, Any] = field(default_factory=dict)
    variant: str = ""

    @property
    def family(self) -> str:
        """Name and variant."""
        return " ".join(filter(None, (self.name, self.variant)))

    @property
    def label(self) -> str:
        return f"{self.family} {self.size}"

    def make(self) -> Any:
        """The unfitted map."""
        return _class(self.name)(**self.settings)


def _class(name: str) -> Any:
    """A class of maps of this library, or a registered one."""
    return PLUGINS.get(name) or getattr(kernelmaps, name)


# Cosines beyond the largest value seen have an error in proportion; clipped values, a jump.
_COSINES = (
    Family("HomogeneousMap"),
    Family("DesignedMap", variants=(("", {"out_of_domain": "extrapolate"}),)),
)
_ANCHORS = (
    Family(
        "AnchorMap",
        "rank",
        variants=(
            ("", {"n_anchors": 100}),
            ("interpolated", {"n_anchors": 100, "n_neighbors": 2}),
            # Where rows leave the range of those before, what is clipped would be the error.
            ("extended", {"n_anchors": 350, "n_neighbors": 2, "out_of_domain": "extrapolate"}),
        ),
    ),
)
_SERIES = (Family("ChebyshevMap", takes_kernel=False), Family("SeriesMap", takes_kernel=False))
# Rows at random are chosen faster than centres, and need more columns for the same error.
_UNIFORM = (("uniform", {"landmarks": "uniform"}),)
_NYSTROEM = (Family("NystroemMap"), Family("NystroemMap", variants=_UNIFORM))
# As many landmarks as AnchorMap has anchors. Beyond the fitted range it does not clip.
_ADDITIVE_NYSTROEM = Family(
    "NystroemMap", variants=(("additive", {"additive": True, "n_landmarks": 100}),)
)
_DATA_DRIVEN = (
    Family("SplineMap", "n_bases", (("", {"degree": 1}),), takes_kernel=False),
    Family("TrigonometricMap", "n_bases", takes_kernel=False),
    Family("HermiteMap", "n_bases", takes_kernel=False),
)


def get_sort(kernel: Kernel) -> str:
    """ "additive", "stationary", "exponential" or "polynomial"."""
    for sort, cls in (
        ("additive", AdditiveKernel),
        ("stationary", StationaryKernel),
        ("exponential", Exponential),
        ("polynomial", Polynomial),
    ):
        if isinstance(kernel, cls):
            return sort
    raise ValueError(
        f"there are no maps for {kernel!r}: maps exist for additive, stationary and exponentiated "
        "kernels."
    )


def needs_scaler(kernel: Any) -> bool:
    """Whether columns are standardised in front of its maps: by name, a kernel with a width.

    A kernel object has a width, which is one of the rows as they are.
    """
    sorts = ("stationary", "polynomial")
    return isinstance(kernel, str) and get_sort(kernels.get(kernel)) in sorts


def list_families(kernel: Kernel | None) -> list[Family]:
    """Families of maps for a kernel (None: bases, which approximate no kernel)."""
    if kernel is None:
        families: tuple[Family, ...] = _DATA_DRIVEN
        sorts: tuple[str, ...] = ("basis",)
    elif isinstance(kernel, HomogeneousKernel):
        families = (*_COSINES, *_ANCHORS, *(_SERIES if kernel.name == "chi2" else ()))
        sorts = ("homogeneous", "additive")
    elif isinstance(kernel, AdditiveKernel):
        families = (*_ANCHORS, _ADDITIVE_NYSTROEM) if _has_name(kernel) else _ANCHORS
        sorts = ("additive",)
    elif isinstance(kernel, StationaryKernel):
        # Drawn in the ways that the kernel allows, the best first.
        ways = ("orthogonal", "iid") if kernel.isotropic else ("iid",)
        variants = tuple((way, {"sampling": way, "form": "paired"}) for way in ways)
        families = (Family("RandomFourierMap", variants=variants), *_NYSTROEM)
        sorts = ("stationary",)
    elif isinstance(kernel, Polynomial):  # scikit-learn's sketch is among the baselines
        families, sorts = _NYSTROEM, ("polynomial",)
    else:
        families = (Family("ExponentialMap", takes_kernel=False), *_NYSTROEM)
        sorts = ("exponential",)
    return [*families, *plugin_families(sorts)]


def _has_name(kernel: Kernel) -> bool:
    """Whether files can name it, which `NystroemMap` needs: functions have no name."""
    try:
        kernel_text(kernel)
    except TypeError:
        return False
    return True


def candidates(
    kernel: Kernel | None,
    sizes: tuple[int, ...],
    random_state: int | None = 0,
    *,
    all_variants: bool = True,
) -> list[Candidate]:
    """All candidates for a kernel in the given sizes (or the first variant of each family).

    Bases, which approximate no kernel, come with their default settings instead, where these are of
    a larger size: a spline of three functions is no match for one of ten.
    """
    made = []
    for family in list_families(kernel):
        kernel_settings = {"kernel": _name_or_kernel(kernel)} if family.takes_kernel else {}
        drawn = "random_state" in _class(family.name)._get_param_names()
        last: dict[str, Any] = {"random_state": random_state} if drawn else {}
        if isinstance(kernel, Exponential) and not family.takes_kernel:
            # The additive stage is the best that there is for the base: its error should not count.
            stage = {"kernel": _name_or_kernel(kernel.base), "n_components": 9}
            first_stage = Candidate("DesignedMap", 9, stage).make()
            last = {**last, "additive_map": first_stage, "gamma": kernel.gamma}
        usual = getattr(_class(family.name)(), family.size_name) if kernel is None else 0
        if usual > max(sizes):
            made.append(Candidate(family.name, usual, {family.size_name: usual, **last}))
            continue
        for variant, extra in family.variants if all_variants else family.variants[:1]:
            for size in sizes:
                settings = {**kernel_settings, family.size_name: size, **extra, **last}
                made.append(Candidate(family.name, size, settings, variant))
    return made


def _name_or_kernel(kernel: Kernel | None) -> Any:
    """A kernel's name where the name says all, else the kernel."""
    if isinstance(kernel, HomogeneousKernel) and kernel.gamma == 1 and not kernel.signed:
        return kernel.name if kernel.name in kernels.registry.KNOWN else kernel
    if isinstance(kernel, PerFeature):
        return [_name_or_kernel(base) for base in kernel.kernels]
    return kernel


def fit_kernel(name: Any, X: Any, random_state: Any = 0) -> Kernel:
    """A kernel by name, its width taken from the data.

    Stationary kernels get the length scale of `fit_length`'s rule "auto" (the median
    distance), the exponential ones γ = 1 / mean squared distance, polynomials c = ½ and
    γ = ½ / mean squared length, so that k(x, x) is about 1. A kernel object is taken as it is.
    """
    kernel = kernels.get(name)
    if isinstance(name, Kernel) or get_sort(kernel) == "additive":
        return kernel
    rng = generator(random_state)
    rows = X[np.sort(rng.permutation(X.shape[0])[:300])]
    if isinstance(kernel, Polynomial):
        mean = float(np.mean(row_norms(rows, squared=True)))
        return replace(kernel, gamma=_round(0.5 / mean if mean > 0 else 1.0), coef0=0.5)
    if isinstance(kernel, Exponential):
        squared = kernel.base.squared_distance(rows)
        mean = float(squared.sum() / max(1, len(squared) * (len(squared) - 1)))
        return kernels.Exponential(kernel.base, gamma=_round(1 / mean if mean > 0 else 1.0))
    assert isinstance(kernel, StationaryKernel)  # by get_sort
    fitted = fit_length("compare", kernel, "auto", rows, rng)
    return fitted.with_parameter(_round(fitted.length))


def _round(value: float) -> float:
    """Three digits: enough for a width, and short in tables."""
    return float(f"{value:.3g}")


def kernel_label(kernel: Kernel | None) -> str:
    """A short name for tables."""
    if kernel is None:
        return "basis"
    return f"exp_{kernel.base.name}" if isinstance(kernel, Exponential) else kernel.name


# ---- as Python -----------------------------------------------------------------------------------


def kernel_code(kernel: Kernel) -> str:
    """Python that makes a kernel."""
    if isinstance(kernel, Exponential):
        return f"km.kernels.Exponential({kernel_code(kernel.base)}, gamma={kernel.gamma!r})"
    if isinstance(kernel, PerFeature):
        return f"km.kernels.get({expression(_name_or_kernel(kernel))})"
    if not isinstance(kernel, HomogeneousKernel):
        return f"km.kernels.{kernel!r}"
    changes = [f"gamma={kernel.gamma:g}"] if kernel.gamma != 1 else []
    changes += ["signed=True"] if kernel.signed else []
    name = f"km.kernels.{kernel.name}"
    return f"{name}.replace({', '.join(changes)})" if changes else name


def expression(value: Any) -> str:
    """Python that makes a value; of estimators with the settings that are not the defaults."""
    if isinstance(value, Kernel):
        return kernel_code(value)
    if isinstance(value, list):
        return f"[{', '.join(map(expression, value))}]"
    if not hasattr(value, "get_params"):
        return repr(value)
    if hasattr(value, "steps"):
        return f"make_pipeline({', '.join(expression(step) for _, step in value.steps)})"
    prefix = "km." if _is_ours(value) else ""
    params, usual = value.get_params(deep=False), type(value)().get_params(deep=False)
    changed = [
        f"{key}={expression(params[key])}"
        for key in params
        if repr(params[key]) != repr(usual[key])
    ]
    return f"{prefix}{type(value).__name__}({', '.join(changed)})"


def import_lines(pipeline: Any) -> list[str]:
    """The imports that `expression` of a pipeline needs beside ``import kernelmaps as km``."""
    lines = {"from sklearn.pipeline import make_pipeline"}
    for _, step in pipeline.steps:
        if not _is_ours(step):
            module = type(step).__module__.split("._")[0]
            lines.add(f"from {module} import {type(step).__name__}")
    return sorted(lines)


def _is_ours(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "kernelmaps"
