"""JointDesignedMap: the best cosine map of two or three coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .. import kernels
from ..arguments import check_count
from ..design.joint import JointDesign
from ..design.multidim import design_joint_map
from ..engine import Spec
from ..schema import array, pair
from .base import JointMap, MapOfDomain


@dataclass(eq=False, repr=False)
class JointDesignedMap(MapOfDomain, JointMap):
    """The best cosine map of rows of two or three coordinates for a stationary kernel.

    For points of the plane or of space, colours, or the position and orientation of a patch, where
    a few designed cosines do what takes hundreds of random Fourier features. See
    :func:`kernelmaps.design.multidim.design_joint_map`.

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
    form : {"auto", "modulation", "projection"}, default="auto"
        Products of cosines, cosines of projections, or the better of both.
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
    form: str = "auto"
    out_of_domain: str = "clip"
    n_jobs: int | None = None

    _state = JointMap._state.extended({"domain_": pair(array("f8", "features", finite=False))})

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        self._check_out_of_domain()
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
        self.design_: JointDesign = design_joint_map(
            self.kernel, columns, domain, form=self.form, periods=periods
        )
        self.__dict__.pop("kernel_", None)
        if isinstance(self.kernel, str | kernels.Kernel):
            self.kernel_ = kernels.get(self.kernel)
        free = np.array([period is not None for period in periods])
        ends = np.array(domain, dtype=np.float64)
        self.domain_ = (
            np.where(free, -np.inf, ends[:, 0]),
            np.where(free, np.inf, ends[:, 1]),
        )
        where = " x ".join(f"[{low:g}, {high:g}]" for low, high in domain)
        self.certificate_ = self.design_.certificate.for_map("absolute", where)
        return self.design_.make_spec(clip=self.out_of_domain != "extrapolate")

    def _resolve_domain(
        self, X: Any, periods: tuple[float | None, ...]
    ) -> list[tuple[float, float]]:
        """Range of each coordinate; a whole period where there is one."""
        named = isinstance(self.domain, str)
        if self.domain != "data" if named else np.shape(self.domain) != (X.shape[1], 2):
            raise ValueError(
                "JointDesignedMap: domain must be 'data' or one pair (low, high) for each of "
                f"the {X.shape[1]} features, got {self.domain!r}."
            )
        if not named:
            return [(float(low), float(high)) for low, high in self.domain]
        found = []
        lower, upper = self._column_range(X)
        for column, period in enumerate(periods):
            low, span = float(lower[column]), float(upper[column]) - float(lower[column])
            if period is not None:
                found.append((0.0, float(period)))
                continue
            if not span > 0:
                raise ValueError(
                    f"JointDesignedMap: feature {column} has the one value {low:g}; drop it, or "
                    "name its range with domain=[(low, high), …]."
                )
            digit = 10.0 ** (np.floor(np.log10(span)) - 1)
            found.append((low, low + digit * float(np.ceil(span / digit - 1e-9))))
        return found
