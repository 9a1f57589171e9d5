"""Designed maps: the best of their size for the range of one feature, or of two or three."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from .. import kernels
from .._util.arguments import argument_error, check_choice, check_count
from .._util.schema import number, optional, pair
from ..certificate import Certificate
from ..design.api import METHODS, Design, design_map
from ..design.joint import JointDesign, design_joint_map
from ..engine import Spec
from ..engine.extent import DOMAIN, OUT_OF_DOMAIN
from .base import AdditiveMap, JointMap, MapOfDomain, positive_range
from .homogeneous import check_columns

# Limits of the ratio of the ends of a range that is learnt from data. It is a power of two, or that
# of 8-bit histograms: similar data then share a design, and there are ready ones.
_SMALLEST_RATIO, _LARGEST_RATIO = 4.0, 2.0**20
_ONE_VALUE_RATIO = 1.001  # where all values that are not zero are the same, as in 0/1 columns
_BYTE_RATIO = 255.0
_MARGIN = 1.25  # above the largest value, for maps that end with their domain


@dataclass(eq=False, repr=False)
class DesignedMap(AdditiveMap):
    """The best map of `n_components` columns per feature for a kernel on a range.

    The map consists of cosines whose frequencies and weights minimise the worst-case error over the
    range, or with ``method="minimax"`` of the best table of that size. See
    :func:`kernelmaps.design_map`.

    Parameters
    ----------
    kernel : str, HomogeneousKernel, StationaryKernel or callable, default="chi2"
        A callable is the signature k(λ) of a stationary kernel.
    n_components : int or "auto", default="auto"
        Output columns per input feature. "auto" is 5, and 15 for a kernel whose signature has a
        kink (the intersection, the Laplacian): its error falls slowly.
    error : {"absolute", "relative", "signature"}, default="absolute"
        What is minimised.
    domain : "data", "universal" or (m, b), default="data"
        Range of values for which the error is minimised. "data" learns it: b is the largest value
        (a quarter more where values beyond b are clipped or refused), and m the 0.1 % quantile of
        the non-zero values, since the smallest one may be an outlier that would make the range,
        and with it the error, much larger than it needs to be. The ratio b/m is then rounded up
        to a power of two (4 to 2²⁰), so that similar data share a design; it is 1.001 where all
        values but zeros are the same. "universal" needs no
        range: the smallest absolute error over all ratios.
    method : {"refined", "minimax"}, default="refined"
        The best cosines, or the best table.
    out_of_domain : {"auto", "clip", "raise", "extrapolate"}, default="auto"
        What to do with values outside the domain: clip them with a warning, refuse them, or let
        the cosines continue. "auto" continues the cosines of homogeneous kernels, whose error
        stays in proportion to the values, and clips all else. Values between 0 and m need no such
        rule with homogeneous kernels: cosines continue to zero like √x, tables along a straight
        line, and `certificate_` covers both. Zero is mapped to zero exactly.
    signed : bool, default=False
        Accept negative values by the odd extension φ(−x) = −φ(x).
    random_state : int, RandomState, Generator or None, default=0
        Seed of the design's starts.
    n_jobs : int, optional
        Threads of `transform`; None means all that are available.

    Attributes
    ----------
    design_ : Design
        The design, with its certificate, in units of its own domain.
    domain_ : tuple of arrays or None
        Range that is accepted, per feature or shared; None if all values are.
    range_ : tuple (m, b) or None
        Range that the map was designed for. Cosines of a stationary kernel depend on differences
        of values: ``domain="data"`` designs them for (0, length of the longest range).
    certificate_ : Certificate
        Bound on the error of one feature. With a stationary kernel it holds for values in
        `domain_`; with the absolute error of a homogeneous kernel on all of [0, b], for values
        below m as well, and its `inner` is the smaller bound for values that are zero or in
        `range_`.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).dirichlet(np.ones(20), size=50)
    >>> Z = km.DesignedMap("chi2", n_components=5).fit_transform(X)
    >>> Z.shape
    (50, 100)
    >>> bool(abs(Z @ Z.T - km.kernels.chi2(X)).max() < 5e-3)
    True
    """

    kernel: Any = "chi2"
    n_components: int | str = "auto"
    _: KW_ONLY
    error: str = "absolute"
    domain: Any = "data"
    method: str = "refined"
    out_of_domain: str = "auto"
    signed: bool = False
    random_state: Any = 0
    n_jobs: int | None = None

    _state = AdditiveMap._state.extended({"range_": optional(pair(number()))})
    _policies = ("auto", *OUT_OF_DOMAIN)

    def _learn(self, X: Any) -> Spec:
        check_choice(self, "method", self.method, METHODS)
        if self.method == "minimax" and self.out_of_domain == "extrapolate":
            raise ValueError(
                f"DesignedMap: a table (method={self.method!r}) ends with its domain; use "
                "out_of_domain='clip' or 'raise', or method='refined'."
            )
        self._resolve_kernel()
        columns, homogeneous = check_columns(self, self._signature), self._homogeneous
        unit, domain = self._resolve_domain(X)
        self.design_: Design = design_map(
            getattr(self, "kernel_", self.kernel),
            columns,
            domain=domain,
            error=self.error,
            method=self.method,
            random_state=self.random_state,
        )
        self.certificate_ = self._certify(unit)
        beyond = self._extrapolates
        if homogeneous and beyond:
            self.domain_ = None
        spec = self.design_.make_spec(X.shape[1], clip=not beyond, signed=self._signed, scale=unit)
        if homogeneous or self.domain_ is None or "lower" not in spec.arrays:
            return spec
        # stationary: one design of the longest range serves each feature on its own
        ends = dict(zip(("lower", "upper"), self.domain_, strict=True))
        return Spec(spec.family, {**spec.arrays, **ends}, spec.numbers)

    @property
    def _extrapolates(self) -> bool:
        """Whether the cosines go on beyond the domain."""
        if self.out_of_domain == "auto":
            return self._homogeneous and self.method == "refined"
        return self.out_of_domain == "extrapolate"

    def _certify(self, unit: float) -> Certificate:
        """The design's certificate in units of the data, down to zero where that is known."""
        design, proof = self.design_, self.design_.certificate
        absolute = self._homogeneous and design.error == "absolute"
        inner = proof.summarise(design.error, self._describe_domain(absolute))
        if absolute and np.isfinite(proof.bound_to_zero):
            top = "1, in proportion for others" if self.range_ is None else f"{self.range_[1]:g}"
            to_zero = Certificate(
                proof.bound_to_zero, "absolute", f"0 <= x, y <= {top}", proof.bound_method
            )
            same_bound = proof.bound_to_zero <= (1 + 1e-9) * proof.bound  # nothing to tell apart
            inner = (
                replace(to_zero, found=proof.found) if same_bound else replace(to_zero, inner=inner)
            )
        scaled = inner.scaled(unit**design.gamma if absolute else 1.0)
        return scaled.with_rounding(self._size(absolute), design.n_columns, angle=self._angle)

    def _size(self, absolute: bool) -> float:
        """Largest √(k(x, x) k(y, y)) on the domain, in units of the error."""
        size = float(self._signature(np.zeros(1))[0])
        if self.range_ is None:
            return size
        low, high = self.range_
        if absolute:
            return size * high**self.design_.gamma
        if self.design_.error != "relative":
            return size
        span = np.log(high / low) if self._homogeneous else high - low
        return size / float(np.min(np.abs(self._signature(np.linspace(0.0, span, 257)))))

    @property
    def _signature(self) -> Any:
        return self.kernel_.signature if hasattr(self, "kernel_") else self.kernel

    @property
    def _angle(self) -> float:
        """Largest angle of the cosines of a stationary kernel: how φ multiplies rounding of x."""
        if self._homogeneous or self.domain_ is None:
            return 0.0
        if self.design_.table is None:
            slope = np.max(np.abs(self.design_.frequencies))
        else:
            x = np.linspace(self.design_.domain[0], self.design_.domain[-1], 1025)
            slope = np.linalg.norm(np.diff(self.design_(x), axis=0), axis=1).max() / (x[1] - x[0])
        return float(np.max(np.abs(self.domain_)) * slope)

    def _feature_bound(self, limits: np.ndarray) -> float:
        if self.domain_ is not None:
            return super()._feature_bound(limits)
        assert self.certificate_ is not None
        unit = 1.0 if self.range_ is None else self.range_[1]
        ratio = (float(np.max(limits)) / unit) ** self.kernel_.gamma
        return self.certificate_.bound * (ratio if self.range_ is None else max(ratio, 1.0))

    def _describe_domain(self, absolute: bool) -> str:
        """Where the design's own bound holds, in words."""
        if self.range_ is None:
            return "all values up to 1"
        low, high = self.range_
        if not self._homogeneous:
            lower, upper = self.domain_  # type: ignore[misc]
            if lower.size > 1:
                return "values of each feature in its fitted range"
            return f"values in [{lower[0]:.17g}, {upper[0]:.17g}]"
        if absolute or self.method == "minimax":
            return f"values that are zero or in [{low:g}, {high:g}]"
        up_to = "" if self._extrapolates else f" up to {high:g}"
        return f"values{up_to} that are zero or at most {high / low:g} times each other"

    @property
    def _homogeneous(self) -> bool:  # type: ignore[override]
        """Whether the kernel is a homogeneous one; what is no kernel is refused by fit."""
        try:
            return isinstance(kernels.get(self.kernel), kernels.HomogeneousKernel)
        except (TypeError, ValueError):
            return False

    def _resolve_kernel(self) -> None:
        """Set `kernel_` where the kernel is more than a function."""
        self.__dict__.pop("kernel_", None)  # of a fit before
        if callable(self.kernel) and not isinstance(self.kernel, kernels.Kernel | type):
            return
        kernel = kernels.get(self.kernel)
        if isinstance(kernel, kernels.HomogeneousKernel):
            kernel = kernel.replace(signed=self._signed)
        elif not isinstance(kernel, kernels.StationaryKernel):
            raise ValueError(
                f"DesignedMap needs a homogeneous or stationary kernel or a signature; {kernel!r} "
                "is neither. AnchorMap takes any additive kernel."
            )
        elif self._signed:
            raise ValueError(f"DesignedMap: signed=True is for homogeneous kernels: {kernel!r}.")
        self.kernel_ = kernel

    def _resolve_domain(self, X: Any) -> tuple[float, Any]:
        """The data value that 1 in the design stands for, and the domain to design for.

        Sets the ranges.
        """
        named, homogeneous = isinstance(self.domain, str), self._homogeneous
        is_valid = self.domain in ("data", "universal") if named else np.shape(self.domain) == (2,)
        if not is_valid:
            words = "'data', 'universal' or a pair (m, b) (JointDesignedMap takes several)"
            raise argument_error(self, "domain", self.domain, words)
        if named and self.domain == "universal":
            self.range_, self.domain_ = None, None
            return 1.0, "universal"
        if not named:
            low, high = (float(end) for end in self.domain)
            self.range_ = (low, high)
            bottom = (-high if self._signed else 0.0) if homogeneous else low
            self.domain_ = (np.array([bottom]), np.array([high]))
            return 1.0, (low, high)
        if not homogeneous:
            lower, upper = (np.asarray(end, dtype=float) for end in self._column_range(X))
            shortest, bottom = float(np.finfo(np.float32).eps), 0.0
            if self.method == "minimax":  # of values, not of differences: one range for all
                lower, upper = np.min(lower, keepdims=True), np.max(upper, keepdims=True)
                bottom = float(lower[0])
                shortest *= max(1.0, abs(bottom))
            top = bottom + max(float(np.max(upper - lower)), shortest)
            self.domain_, self.range_ = (lower, upper), (bottom, top)
            return 1.0, self.range_
        low, high = positive_range(X, self.n_jobs)
        if not self._extrapolates:
            high *= _MARGIN
        ratio = 2.0 ** np.ceil(np.log2(high / low))
        smallest = _ONE_VALUE_RATIO if high == low else _SMALLEST_RATIO
        ratio = float(np.clip(ratio, smallest, _LARGEST_RATIO))
        if 128 < high / low <= _BYTE_RATIO:
            ratio = _BYTE_RATIO
        self.range_ = (high / ratio, high)
        self.domain_ = (np.array([-high if self._signed else 0.0]), np.array([high]))
        return high / ratio, (1.0, ratio)


@dataclass(eq=False, repr=False)
class JointDesignedMap(MapOfDomain, JointMap):
    """The best cosine map of rows of two or three coordinates for a stationary kernel.

    For points of the plane or of space, colours, or the position and orientation of a patch, where
    a few designed cosines do what takes hundreds of random Fourier features. See
    :func:`kernelmaps.design.joint.design_joint_map`.

    Parameters
    ----------
    kernel : str, StationaryKernel, callable or sequence, default="gaussian"
        A stationary kernel of the whole row, a signature k(λ) of lag vectors (..., n), or one
        kernel or one-dimensional signature per coordinate, whose product is meant.
    n_components : int, default=15
        Largest number of output columns.
    domain : "data" or sequence of (low, high), default="data"
        Range of each coordinate. "data" learns it from the rows; its length is then rounded up to
        two digits, so that similar data share a design.
    periods : sequence of float or None, optional
        Period of each coordinate (2π for an angle), None where it has none.
    out_of_domain : {"clip", "raise", "extrapolate"}, default="clip"
        What to do with rows beyond the domain: clip them with a warning, refuse them, or let the
        cosines continue.
    n_jobs : int, optional
        Threads of `transform`; None means all that are available.

    Attributes
    ----------
    design_ : JointDesign
        The design, with its certificate.
    domain_ : tuple of arrays (lower, upper)
        Range of each coordinate; infinite for periodic ones.
    certificate_ : Certificate
        Bound on the error.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).uniform(0, 1, (50, 2))
    >>> feature_map = km.JointDesignedMap(km.kernels.Gaussian(1.0), 9, domain=[(0, 1), (0, 1)])
    >>> Z = feature_map.fit_transform(X)
    >>> Z.shape
    (50, 9)
    >>> worst = abs(Z @ Z.T - km.kernels.Gaussian(1.0)(X)).max()
    >>> bool(worst <= feature_map.certificate_.bound < 0.02)
    True
    """

    kernel: Any = "gaussian"
    n_components: int = 15
    _: KW_ONLY
    domain: Any = "data"
    periods: Sequence[float | None] | None = None
    out_of_domain: str = "clip"
    n_jobs: int | None = None

    _state = JointMap._state.extended({"domain_": DOMAIN})

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        n = X.shape[1]
        if n not in (2, 3):
            raise ValueError(
                f"JointDesignedMap maps rows of two or three coordinates, X has {n} features. Use "
                "DesignedMap for features on their own, RandomFourierMap for long rows."
            )
        periods = (None,) * n if self.periods is None else tuple(self.periods)
        if len(periods) != n:
            raise ValueError(f"JointDesignedMap: {len(periods)} periods for {n} features.")
        domain = self._resolve_domain(X, periods)
        self.design_: JointDesign = design_joint_map(self.kernel, columns, domain, periods=periods)
        self.__dict__.pop("kernel_", None)
        if isinstance(self.kernel, str | kernels.Kernel):
            self.kernel_ = kernels.get(self.kernel)
        self.domain_ = self.design_.ends
        where = " x ".join(f"[{low:g}, {high:g}]" for low, high in domain)
        angle = np.abs(self.design_.frequencies) @ np.abs(domain).max(axis=1)
        self.certificate_ = self.design_.certificate.summarise("absolute", where).with_rounding(
            float(self.design_.weights.sum()), self.design_.n_columns, angle=float(angle.max())
        )
        return self.design_.make_spec(clip=self.out_of_domain != "extrapolate")

    def _resolve_domain(
        self, X: Any, periods: tuple[float | None, ...]
    ) -> list[tuple[float, float]]:
        """Range of each coordinate; a whole period where there is one."""
        named = isinstance(self.domain, str)
        if self.domain != "data" if named else np.shape(self.domain) != (X.shape[1], 2):
            words = f"'data' or one pair (low, high) for each of the {X.shape[1]} features"
            raise argument_error(self, "domain", self.domain, words)
        if not named:
            return [(float(low), float(high)) for low, high in self.domain]
        domains = []
        lower, upper = self._column_range(X)
        for column, period in enumerate(periods):
            low, span = float(lower[column]), float(upper[column]) - float(lower[column])
            if period is not None:
                domains.append((0.0, float(period)))
                continue
            if not span > 0:
                raise ValueError(
                    f"JointDesignedMap: feature {column} has the one value {low:g}; drop it, or "
                    "name its range with domain=[(low, high), …]."
                )
            digit = 10.0 ** (np.floor(np.log10(span)) - 1)
            domains.append((low, low + digit * float(np.ceil(span / digit - 1e-9))))
        return domains
