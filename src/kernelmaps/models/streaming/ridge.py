"""Ridge regression and classification on data larger than memory, from mergeable statistics.

Algorithms 3 and 4 of Li, Lebanon and Sminchisescu, *Chebyshev approximations to the histogram
χ² kernel*, section 6, with the corrections of the errata (2.17 to 2.24). The cost is
O(nD² + nDc + D³ + D²c) time for c targets (errata 2.24: the Hessian is not free) and O(D² + Dc)
memory, whatever n.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ...device import is_tensor, to_host
from ...sparse_rows import dense
from ...stats import Moments
from ...stats.products import as_columns
from ..solvers.quadratic import Spectrum, ridge_path, spectrum_of
from .classification import StreamingClassification
from .linear import ProjectedStats, StreamingRegression


class LeaveOneOut:
    """Σ w (y − f₋ᵢ(x))² for every size and every α, as statistics that can be folded.

    The fit without row i is never made: with the leverage of a weighted row

        h_i(α) = w_i (1/W + Σ_j p_ij² / (λ_j + α)),   p_i = axesᵀ (z_i − z̄),

    where 1/W is the intercept's share, y_i − f₋ᵢ(x_i) = (y_i − f(x_i)) / (1 − h_i). The PCA, which
    has not seen the targets, is held fixed. Leverages are not sums over rows, hence the second
    pass; all α and targets share it.

    Parameters
    ----------
    at : ProjectedStats
        Those in which `spectra` are.
    spectra : sequence of (columns, Spectrum)
        One for each size.
    alphas : ndarray
    """

    shift = ()  # nothing to be centred on: see `fold`

    def __init__(
        self, at: ProjectedStats, spectra: Sequence[tuple[np.ndarray, Spectrum]], alphas: np.ndarray
    ) -> None:
        stats, self.projection = at.total, at.projection
        self.tag, self.classes = stats.tag, stats.classes
        self.mean, self.y_mean, self.weight = stats.mean, stats.y_mean, stats.weight
        self.spectra, self.alphas = list(spectra), list(alphas)
        self.errors = np.zeros((len(self.spectra), len(self.alphas)))

    def zero(self) -> Self:
        """Return the same question without an answer."""
        out = copy.copy(self)
        out.errors = np.zeros_like(self.errors)
        return out

    def merge(self, other: Self) -> Self:
        """Add the errors of other rows."""
        self.errors += other.errors
        return self

    def on_host(self) -> Self:
        """Errors are numbers of the host already."""
        return self

    def partial(
        self, Z: Any, y: Any, w: Any = None, start: int = 0, *, overwrite: bool = False
    ) -> Self:
        """Errors of one block."""
        out, Z = self.zero(), to_host(Z) if is_tensor(Z) else Z
        kind = np.float32 if Z.dtype == np.float32 else np.float64
        w = np.ones(Z.shape[0]) if w is None else np.asarray(w, dtype=np.float64)
        C = dense(Z if self.projection is None else Z @ self.projection.astype(kind))
        C = C - self.mean.astype(kind)
        for s, (columns, spectrum) in enumerate(self.spectra):
            P = C[:, columns]
            P = P if spectrum.axes is None else P @ spectrum.axes.astype(kind)
            inverse = np.array([spectrum._inverse(alpha) for alpha in self.alphas])
            leverage = w[:, None] * (1 / self.weight + (P * P) @ inverse.T.astype(kind))
            for a in range(len(self.alphas)):
                fitted = P @ (spectrum.c * inverse[a]).T.astype(kind)
                residual = self._targets(y) - fitted
                # A row that alone determines its fit has h = 1 and says nothing about α.
                factor = w / np.maximum(1.0 - leverage[:, a], np.finfo(float).eps) ** 2
                out.errors[s, a] = float((factor[:, None] * residual**2).sum())
        return out

    def _targets(self, y: Any) -> np.ndarray:
        if self.classes is None:
            return as_columns(y) - self.y_mean
        return (np.asarray(y)[:, None] == self.classes) - self.y_mean


@dataclass(frozen=True)
class RidgeSolver:
    """Ridge regression on statistics: one factorisation serves all targets, or all α as well."""

    owner: str
    criteria: ClassVar[tuple[str, ...]] = ("loo", "gcv")

    def check(self) -> None:
        """Nothing but α, which all models have."""

    def check_features(self, kernel: np.ndarray, pca: bool) -> None:
        """Any features will do."""

    def weights(
        self, at: ProjectedStats, stats: Moments, columns: np.ndarray, alphas: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Solve the normal equations; one iteration, so to say."""
        return ridge_path(stats, columns, alphas, at.diagonal and stats is at.total), 1

    def errors(
        self, criterion: str, at: ProjectedStats, problems: list[Moments],
        candidates: list[np.ndarray], alphas: np.ndarray, second_pass: Any,
    ) -> np.ndarray:  # fmt: skip
        """Generalised cross-validation or leave-one-out for every size and α."""
        if criterion == "gcv":
            return np.array([_gcv(at, problems, columns, alphas) for columns in candidates])
        spectra = [(c, spectrum_of(at.total, c, at.diagonal)) for c in candidates]
        if second_pass is None:
            raise ValueError(
                f"{self.owner}: leave-one-out needs a second pass over the rows, which "
                "partial_fit, merge and refit do not have; use 'gcv' or a number of folds"
            )
        loo = second_pass(LeaveOneOut(at, spectra, alphas))
        return loo.errors / at.total.weight


def _gcv(
    at: ProjectedStats, problems: list[Moments], columns: np.ndarray, alphas: np.ndarray
) -> list[float]:
    """The criterion of every α on some columns, summed over the problems."""
    spectra = [spectrum_of(p, columns, at.diagonal and p is at.total) for p in problems]
    return [sum(spectrum.gcv(alpha) for spectrum in spectra) for alpha in alphas]


@dataclass(eq=False, repr=False)
class StreamingRidge(StreamingRegression):
    """Ridge regression on data larger than memory (Algorithm 3; Algorithm 4 for several kernels).

    Minimises Σ w (y − f(x))² + α ‖w‖² over f(x) = wᵀŪᵀ(φ(x) − z̄) + ȳ, where Ū holds the principal
    components if `n_components` is given and is the identity otherwise. As only ZᵀZ, Zᵀ1 and Zᵀy
    are needed, one pass gives the models of all α, all targets and all PCA sizes. The projection
    is folded into the weights, β = Ūw (errata 2.20), so that predicting is β ᵀφ(x) + intercept.

    Parameters
    ----------
    alpha : float or sequence of float
        α. Of several, the best is chosen by `validation`.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        φ. A fitted transformer is used as it is; an unfitted one is cloned and fitted on a sample
        of rows (4096, spread over the data where they can be sliced, else the first ones). A list
        makes a joint model of several kernels, each with a PCA of its own (Algorithm 4), for
        which the data are read twice; `columns` is a slice, integers, a mask, or None for all.
    n_components : int, float, sequence of int, or None
        PCA size, of each kernel if there are several; a fraction in (0, 1) of the variance; of a
        sequence, the best is chosen by `validation`; None for no PCA.
    validation : int, "gcv" or "loo"
        How to choose: by k folds of rows, whose sums are kept apart in the same pass and whose
        held-out errors follow from them exactly; by generalised cross-validation, which needs
        nothing more; or by exact leave-one-out, with a second pass over the rows. The criterion
        is the squared error. The PCA, which does not see targets, is made once, of all rows.
    n_jobs : int, optional
        Threads; None means all.
    block_rows : int, optional
        Rows per block; by default such that a block takes about 64 MiB.
    progress : bool, optional
        Whether to show a bar; by default if there is a terminal.
    device : str or torch.device, optional
        Where features are made, multiplied and decomposed: "cuda" or "cuda:1" for a card (needs
        torch and a `feature_map` of kernelmaps), "cpu" for torch on the processor. Rows come from
        wherever they are, block by block, and sums stay on the card in float64. Torch tensors on a
        card are folded there by default, and give tensors.
    precision : {"float64", "float32", "tf32"}, optional
        Precision of features and products on the device; by default that of the rows. "tf32"
        multiplies with 10 bits of each factor, at several times the speed: see
        `kernelmaps.stats.Moments` for what that does to the sums.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (n_targets, D)
        β, on the features.
    intercept_ : float or ndarray
        ȳ − βᵀz̄.
    alpha_ : float
        α in use.
    n_components_ : int, list of int (one per kernel), or None
        PCA size in use.
    cv_results_ : dict
        "alpha", "n_components" and "mean_squared_error" of shape (n_sizes, n_alphas).
    stats_ : Moments or FoldMoments
        The sums; they can be saved and merged.
    feature_map_ : transformer, list or None
        Fitted.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of the columns of X, and their names where X had any. Later files and Dask dataframes
        are read by them, in whatever order their columns are.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmaps import StreamingRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + 5
    >>> chunks = [(X[:400], y[:400]), (X[400:], y[400:])]
    >>> model = StreamingRidge(alpha=[1e-6, 1.0]).fit(chunks)
    >>> model.coef_.round(3), round(model.intercept_, 3), model.alpha_
    (array([1., 2., 3.]), 5.0, 1e-06)
    """

    _: KW_ONLY
    device: Any = None
    precision: str | None = None

    @property
    def _solver(self) -> RidgeSolver:
        return RidgeSolver(type(self).__name__)


@dataclass(eq=False, repr=False)
class StreamingRidgeClassifier(StreamingClassification):
    """Ridge classifier on data larger than memory: least squares on ±1 targets, one per class.

    With one-hot labels ZᵀY is a grouped sum of rows, so that n D additions serve any number of
    classes; after the eigendecomposition each class costs O(D²). Classes need not be known
    beforehand in `fit`: statistics of a new class are zero until it is met.

    Parameters
    ----------
    alpha : float or sequence of float
        α. Of several, the best is chosen by `validation`.
    feature_map : transformer, list of (columns, map[, n_components]), or None
        φ. A fitted transformer is used as it is; an unfitted one is cloned and fitted on a sample
        of rows (4096, spread over the data where they can be sliced, else the first ones). A list
        makes a joint model of several kernels, each with a PCA of its own (Algorithm 4), for
        which the data are read twice; `columns` is a slice, integers, a mask, or None for all.
    n_components : int, float, sequence of int, or None
        PCA size, of each kernel if there are several; a fraction in (0, 1) of the variance; of a
        sequence, the best is chosen by `validation`; None for no PCA.
    validation : int, "gcv" or "loo"
        How to choose: by k folds of rows, whose sums are kept apart in the same pass and whose
        held-out errors follow from them exactly; by generalised cross-validation, which needs
        nothing more; or by exact leave-one-out, with a second pass over the rows. The criterion
        is the squared error of the one-hot
        targets. The PCA, which does not see targets, is made once, of all rows.
    n_jobs : int, optional
        Threads; None means all.
    block_rows : int, optional
        Rows per block; by default such that a block takes about 64 MiB.
    progress : bool, optional
        Whether to show a bar; by default if there is a terminal.
    device : str or torch.device, optional
        Where features are made, multiplied and decomposed: "cuda" or "cuda:1" for a card (needs
        torch and a `feature_map` of kernelmaps), "cpu" for torch on the processor. Rows come from
        wherever they are, block by block, and sums stay on the card in float64. Torch tensors on a
        card are folded there by default, and give tensors.
    precision : {"float64", "float32", "tf32"}, optional
        Precision of features and products on the device; by default that of the rows. "tf32"
        multiplies with 10 bits of each factor, at several times the speed: see
        `kernelmaps.stats.Moments` for what that does to the sums.
    multi_class : {"ovr", "ovo"}, default="ovr"
        Many classes one against the rest, or one against one, in the same pass: ZᵀZ of every class
        is kept apart, and the sums of a pair are those of its two classes. Votes decide, as in
        scikit-learn's `OneVsOneClassifier`. It takes D² numbers for every class, and a
        factorisation for every pair; ``validation="loo"`` is not there for it.

    Attributes
    ----------
    classes_ : ndarray
        Sorted labels.
    coef_, intercept_ : ndarray of shape (c, D) and (c,); (1, D) and (1,) for two classes
        On the features, as scikit-learn's RidgeClassifier; one against one, of the pairs of classes
        (0, 1), (0, 2), …
    alpha_ : float
        α in use.
    n_components_ : int, list of int (one per kernel), or None
        PCA size in use.
    cv_results_ : dict
        "alpha", "n_components" and "mean_squared_error" of shape (n_sizes, n_alphas).
    stats_ : Moments or FoldMoments
        The sums; they can be saved and merged.
    feature_map_ : transformer, list or None
        Fitted.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of the columns of X, and their names where X had any. Later files and Dask dataframes
        are read by them, in whatever order their columns are.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmaps import StreamingRidgeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = StreamingRidgeClassifier()
    >>> for a in range(0, 600, 200):
    ...     model = model.partial_fit(X[a : a + 200], y[a : a + 200], classes=["left", "right"])
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    _: KW_ONLY
    device: Any = None
    precision: str | None = None

    @property
    def _solver(self) -> RidgeSolver:
        return RidgeSolver(type(self).__name__)
