r"""exp(−γ D²) in two stages: an additive map, then random Fourier features on its output.

An additive map turns its kernel's squared distance into a Euclidean one,
D²(x, y) = k(x, x) + k(y, y) − 2k(x, y) ≈ ‖c(x) − c(y)‖², and the Gaussian kernel of c(x) is then
exp(−γ D²), whose random Fourier features are known (Sreekanth et al. 2010; chebyshev Algorithm 1):

.. math:: φ(x) = \sqrt{2/D}\,\cos(Ω^\top c(x) + b), \qquad Ω_{ij} \sim N(0, 2γ).

2γ is the *variance* of the frequencies, the factor √(2/D) is missing in the printed algorithm, and
for χ² the distance is Σ (x − y)²/(x + y), without a ½ (errata 2.14-2.16). Nothing binds the second
stage to χ²: every additive map has a distance.

The error has two parts (:func:`kernelmaps.kernel_error` tells them apart): that of c, which no
number of random features repairs, and that of the random features, which falls like 1/√D. Columns
that are spent on landmarks make it fall faster: see :mod:`kernelmaps.engine.landmarks`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from .._util.arguments import DefaultParts, check_count, check_positive, generator
from .._util.schema import instance, number
from .._util.sparse import dense
from ..engine import Spec, apply
from ..engine.extent import ColumnRange
from ..engine.landmarks import landmark_spec
from ..engine.outputs import output_dtype
from ..kernels import Exponential, Gaussian, Kernel
from ..kernels.bandwidth import warn_if_degenerate
from .base import AdditiveMap, JointMap
from .designed import DesignedMap
from .fourier import draw_fourier


def local_distance(distances: np.ndarray) -> float:
    """The 10 % quantile of squared distances, or half of their mean if that is larger.

    Neighbours, which decide a classification, are closer than the mean, most of all in few
    dimensions. Where rows repeat, the quantile may be next to nothing: half of the mean bounds γ.
    """
    return float(max(np.quantile(distances, 0.1), np.mean(distances) / 2))


_RULES = {"local": local_distance, "scale": np.mean}
_MAX_ROWS = 1000  # rows whose distances say what gamma="local" and "scale" are
_ROUNDING = 2e-14  # of k(x, x): distances below it say nothing


@dataclass(frozen=True)
class MapKernel(Kernel):
    """The kernel that an additive map has exactly: the inner product of its columns."""

    spec: Spec
    name = "map"

    def _gram(self, X: Any, Y: Any, n_jobs: int | None) -> np.ndarray:
        left = apply(self.spec, X, n_jobs=n_jobs)
        right = left if Y is None else apply(self.spec, Y, n_jobs=n_jobs)
        return dense(left @ right.T)

    def _diag(self, X: Any) -> np.ndarray:
        Z = apply(self.spec, X)
        squares = Z.multiply(Z) if hasattr(Z, "multiply") else Z * Z
        return np.asarray(squares.sum(axis=1)).ravel()

    def _gram_array_api(self, xp: Any, X: Any, Y: Any) -> Any:
        left = apply(self.spec, X)
        return left @ (left if Y is X else apply(self.spec, Y)).T

    def _diag_array_api(self, xp: Any, X: Any) -> Any:
        return xp.sum(apply(self.spec, X) ** 2, axis=1)


@dataclass(eq=False, repr=False)
class ExponentialMap(DefaultParts, JointMap):
    """Random Fourier features of exp(−γ D²) for the distance D of any additive map.

    Parameters
    ----------
    additive_map : AdditiveMap, optional
        First stage, whose kernel gives the distance; fitted here, on a copy. None means
        ``DesignedMap("chi2", 5, domain="universal")``: exp-χ², with half the columns of
        the paper's ``ChebyshevMap(10)`` and an error as small.
    n_components : int, default=5000
        Output columns D.
    gamma : float, "local" or "scale", default="local"
        γ. "scale" is 1/(mean squared distance) of the fitted rows (of at most 1000 of them), by
        the exact kernel; "local" is 1/(the 10 % quantile of the squared distances), but at most
        twice "scale".
    sampling : {"auto", "iid", "orthogonal", "structured"}, default="auto"
        How frequencies are drawn: see :mod:`kernelmaps.maps.fourier`. "orthogonal" has less
        error than "iid" (the paper's); "structured" has as little, stores no matrix and takes
        p log p operations for p > 32 columns of c, and is "orthogonal" for fewer. "auto" is
        "structured".
    form : {"auto", "paired", "cosine"}, default="auto"
        "paired": cosines and sines of D/2 frequencies; "cosine": cosines of D frequencies with
        random phases. The first has a smaller error, half the cost, and ‖φ(x)‖ = 1 exactly:
        "auto" is paired if D is even.
    n_landmarks : int, "auto" or None, default=None
        Columns that are spent on landmarks, rows chosen at random among the fitted ones. A pair
        with a landmark in it then has exactly the kernel value of c; all other pairs keep an
        unbiased estimate, with a smaller error the closer they are to landmarks. "auto" takes a
        quarter of the columns, or every fitted row if these are fewer. It costs one more product,
        of c(x) with the c of all landmarks, which are stored: files of such a map hold rows of the
        training data, mapped by c, which is why it has to be asked for. None: only random
        features.
    random_state : int, RandomState, Generator or None
        An int gives the same map in every run.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    additive_map_ : AdditiveMap
        The fitted first stage.
    gamma_ : float
        The γ in use.
    kernel_ : Exponential
        The exact kernel.
    stage_kernel_ : Exponential
        exp(−γ ‖c(x) − c(y)‖²): what the random features estimate.
    landmark_rows_ : array of int
        Fitted rows that serve as landmarks (empty without any).

    Notes
    -----
    Rows of zeros need no special case: c(0) = 0, and for χ² the exact kernel between such a row and
    y is exp(−γ Σ y).

    For a map without a named kernel (splines), the kernel is its inner product. Frequencies are
    kept in the precision of the fitted rows.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.random.default_rng(0).dirichlet(np.full(50, 0.3), size=40)
    >>> feature_map = km.ExponentialMap(n_components=4000, gamma="scale", random_state=0).fit(X)
    >>> bool(km.kernel_error(feature_map, X).rms < 2 / 4000**0.5)
    True
    """

    additive_map: AdditiveMap | None = None
    n_components: int = 5000
    _: KW_ONLY
    gamma: float | str = "local"
    sampling: str = "auto"
    form: str = "auto"
    n_landmarks: int | str | None = None
    random_state: Any = None
    n_jobs: int | None = None

    _state = JointMap._state.extended(
        {
            "additive_map_": instance((AdditiveMap,)),
            "gamma_": number(above=0),
            "stage_kernel_": instance((Exponential,)),
        }
    )

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        rng = generator(self.random_state)
        self.additive_map_ = clone(self._first_stage()).fit(X)
        first = self.additive_map_.spec_
        base = getattr(self.additive_map_, "kernel_", None) or MapKernel(first)
        self.gamma_ = self._resolved_gamma(base, X, rng)
        self.kernel_ = Exponential(base, self.gamma_)
        advice = "Let gamma follow the data: gamma='local'."
        warn_if_degenerate("ExponentialMap", self.kernel_, X, advice)
        self.stage_kernel_ = Exponential(MapKernel(first), self.gamma_)
        dtype = output_dtype(X.dtype)
        count = self._landmark_count(columns, X.shape[0])
        self.landmark_rows_ = (
            np.sort(rng.permutation(X.shape[0])[:count]) if count else np.array([], int)
        )
        if not count:
            return Spec("chain", parts=(first, self._random_stage(columns, rng, dtype)))
        points = dense(apply(first, X[self.landmark_rows_], n_jobs=self.n_jobs))
        whitening = _whitening(points, self.gamma_, even=self.form == "paired", columns=columns)
        random = self._random_stage(columns - whitening.shape[1], rng, dtype)
        return Spec("chain", parts=(first, landmark_spec(points, whitening, self.gamma_, random)))

    def _random_stage(self, columns: int, rng: np.random.Generator, dtype: np.dtype) -> Spec:
        """Fourier features of c, frequencies in the precision of the rows."""
        width = self.additive_map_._n_features_out
        gaussian = Gaussian(sigma=float(np.sqrt(0.5 / self.gamma_)))  # ω ~ N(0, 2γ)
        sampling = "structured" if self.sampling == "auto" else self.sampling
        return draw_fourier(self, gaussian, columns, width, rng, dtype, sampling)

    def _landmark_count(self, columns: int, n_rows: int) -> int:
        if self.n_landmarks is None:
            return 0
        if self.n_landmarks == "auto":
            count = min(columns // 4, n_rows)
            return count - (columns - count) % 2 if self.form == "paired" else count
        if isinstance(self.n_landmarks, str):
            raise ValueError(
                "ExponentialMap: n_landmarks must be an integer, 'auto' or None; "
                f"got {self.n_landmarks!r}."
            )
        count = check_count(self, "n_landmarks", self.n_landmarks)
        if count >= columns or count > n_rows:
            raise ValueError(
                f"ExponentialMap: n_landmarks={count} must be fewer than the n_components="
                f"{columns} columns, of which they are a part, and no more than the {n_rows} "
                "fitted rows. Use n_landmarks='auto'."
            )
        if self.form == "paired" and (columns - count) % 2:
            raise ValueError(
                "ExponentialMap: the paired form has a sine for every cosine, so an even number of "
                f"columns must be left beside the landmarks; got n_components={columns} and "
                f"n_landmarks={count}. Change one of them by 1, or use form='auto'."
            )
        return count

    def _default_part(self, name: str) -> Any:
        return self._first_stage() if name == "additive_map" else None

    def _first_stage(self) -> AdditiveMap:
        if self.additive_map is None:
            return DesignedMap("chi2", 5, domain="universal")
        if isinstance(self.additive_map, AdditiveMap):
            return self.additive_map
        raise TypeError(
            "ExponentialMap: additive_map must be an additive map, whose columns have the distance "
            "of a kernel (ChebyshevMap, DesignedMap, HomogeneousMap, AnchorMap, SplineMap, …); "
            f"the columns of {self.additive_map!r} do not. Put RandomFourierMap after other "
            "features in a Pipeline."
        )

    def _resolved_gamma(self, base: Kernel, X: Any, rng: np.random.Generator) -> float:
        if isinstance(self.gamma, str) and self.gamma in _RULES:
            distance = typical_distance(base, X, _RULES[self.gamma], rng)
            if distance > 0:
                return 1 / distance
            raise ValueError(
                f"ExponentialMap: gamma={self.gamma!r} is 1/(typical squared distance of rows), "
                "but that distance is 0: the rows are all alike (to rounding), or there is only "
                "one sample. Give gamma as a number."
            )
        check_positive(self, "gamma", self.gamma, "a positive number, 'local' or 'scale'")
        return float(self.gamma)

    def _check_domain(self, X: Any, columns: ColumnRange | None = None) -> None:
        self.additive_map_._check_domain(X, columns)

    @property
    def _non_negative(self) -> bool:  # type: ignore[override]
        if self.additive_map is None:
            return True
        # What is no map is said by fit; here it only must not get in the way of a repr.
        return isinstance(self.additive_map, AdditiveMap) and self.additive_map._non_negative


def typical_distance(base: Kernel, X: Any, rule: Any, rng: np.random.Generator) -> float:
    """Mean, median or another rule of the exact squared distances among (some of) the rows."""
    rows = np.sort(rng.permutation(X.shape[0])[:_MAX_ROWS])
    sample = X[rows].astype(np.float64)
    pairs = base.squared_distance(sample)[np.triu_indices(len(rows), 1)]
    typical = float(rule(pairs)) if pairs.size else 0.0
    # k(x, x) + k(y, y) − 2 k(x, y) of equal rows is not 0, but rounding.
    return typical if typical > _ROUNDING * float(np.mean(base.diag(sample))) else 0.0


def _whitening(points: np.ndarray, gamma: float, even: bool, columns: int) -> np.ndarray:
    """T with Tᵀ K T = I for the Gaussian Gram matrix K of the landmarks.

    Directions of K that are lost in rounding (eigenvalues below √ε; equal rows have 0) are left to
    the random features, and so is one more where an even number of columns must remain for them
    (which only such lost directions can make necessary).
    """
    away = points - points.mean(axis=0, dtype=np.float64)  # distances would be lost far from 0
    gram = away @ away.T
    squares = np.diagonal(gram)
    values, vectors = np.linalg.eigh(np.exp(gamma * (2 * gram - squares - squares[:, None])))
    rank = int(np.sum(values > np.sqrt(np.finfo(points.dtype).eps)))
    if even and (columns - rank) % 2:
        rank -= 1
    start = len(values) - rank
    return vectors[:, start:] / np.sqrt(values[start:])
