r"""Signs of Cauchy projections (Li, Samorodnitsky and Hopcroft): a baseline for χ² similarity.

.. math:: φ(x) = \tfrac{1}{\sqrt D}\,[\mathrm{sign}⟨r_1, x⟩, …, \mathrm{sign}⟨r_D, x⟩],
          \qquad r_j \text{ of iid standard Cauchy entries.}

⟨φ(x), φ(y)⟩ is one minus twice the share of signs that differ: an unbiased estimate of
k(x, y) = 1 − 2 P(signs differ), :class:`kernelmaps.kernels.signs.SignCauchy`, with variance
(1 − k²)/D. For histograms k is close to 1 − (2/π) arccos ρ, ρ the χ² similarity, so that
:meth:`SignCauchyMap.chi2_similarity` estimates ρ from the signs.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._util.arguments import check_count, generator
from ..certificate import Certificate
from ..engine import Spec
from ..engine.signs import sign_spec
from ..kernels.signs import SignCauchy
from .base import JointMap

_PROBABILITY = 0.99  # with which the certificate of a random map holds


@dataclass(eq=False, repr=False)
class SignCauchyMap(JointMap):
    """Signs of random Cauchy projections.

    Parameters
    ----------
    n_components : int, default=2000
        Projections, that is output columns (each ±1/√D).
    random_state : int, RandomState, Generator or None
        An int gives the same map in every run, on every machine.
    n_jobs : int, optional
        Threads of the products; None means all that are available.

    Attributes
    ----------
    kernel_ : SignCauchy
        The kernel that inner products estimate without bias.
    spec_ : Spec
        A seed and two sizes: the projection matrix is drawn from them, and drawn again for each
        call where it is larger than 64 MB.
    certificate_ : Certificate
        Hoeffding's bound for one pair of rows.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> X = np.random.default_rng(0).dirichlet(np.ones(20), 30)
    >>> signs = km.SignCauchyMap(n_components=4000, random_state=0).fit(X)
    >>> Z = signs.transform(X)
    >>> bool(abs(signs.chi2_similarity(Z) - km.kernels.chi2(X)).max() < 0.1)
    True
    """

    n_components: int = 2000
    random_state: Any = None
    _: KW_ONLY
    n_jobs: int | None = None

    def chi2_similarity(self, Z: Any, Z_other: Any = None) -> np.ndarray:
        """Estimate Σ 2xy/(x+y) of non-negative rows with sum 1 from their signs.

        The estimate is cos(π P), with P = (1 − ⟨φ(x), φ(y)⟩)/2 the share of signs that differ.

        Parameters
        ----------
        Z, Z_other : array-like
            Mapped rows; Z_other None means all pairs of Z.

        Returns
        -------
        ndarray
            Matrix of estimates.
        """
        check_is_fitted(self)
        Z = np.asarray(Z)
        inner = Z @ (Z if Z_other is None else np.asarray(Z_other)).T
        return np.cos(np.pi * (1 - inner) / 2)

    def _learn(self, X: Any) -> Spec:
        columns = check_count(self, "n_components", self.n_components)
        self.kernel_ = SignCauchy()
        miss = np.sqrt(2 * np.log(2 / (1 - _PROBABILITY)) / columns)
        self.certificate_ = Certificate(
            float(miss), "absolute", "one pair of rows", "Hoeffding's inequality", _PROBABILITY
        )
        seed = int(generator(self.random_state).integers(2**63))
        return sign_spec(X.shape[1], columns, seed)
