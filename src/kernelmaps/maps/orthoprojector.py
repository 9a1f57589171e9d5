r"""Random orthoprojectors: measurements of a vector that nearly keep its length.

The rows of P are orthonormal, times √(d/m) (compressive-rf section 2.2). P Pᵀ = (d/m) I, so that
‖Px‖² ≤ (d/m) ‖x‖², and for uniformly distributed rows the ratio r = ‖Px‖²/‖x‖² is (d/m) times a
Beta(m/2, (d − m)/2) variable:

.. math:: E\,r = 1, \qquad \operatorname{Var} r = \frac{2 (d - m)}{m (d + 2)},

less than the 2/m of independent Gaussian entries; for m = d, P is a rotation. Over all k-sparse x
at once, r stays within 1 ± δ with high probability for m of the order of (k/δ²) log(d/k): the
restricted isometry property (Theorem 3), see :func:`kernelmaps.required_features`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ..arguments import check_choice, check_count
from ..engine import Spec
from ..engine.linear import padded_length
from ..engine.outputs import output_dtype
from ..kernels.additive import Linear
from ..seeding import generator
from .base import JointMap
from .sampling import gram_schmidt

ENTRIES = ("gaussian", "bernoulli")
METHODS = ("dense", "hadamard", "dct")


@dataclass(eq=False, repr=False)
class RandomOrthoprojector(JointMap):
    """Projection on random orthonormal rows, scaled to keep lengths: ⟨Px, Py⟩ ≈ ⟨x, y⟩.

    Parameters
    ----------
    n_components : int, default=100
        Measurements m, at most the number of features d.
    entries : {"gaussian", "bernoulli"}, default="gaussian"
        Distribution of the entries before the rows are made orthonormal (method="dense").
    method : {"dense", "hadamard", "dct"}, default="dense"
        "dense" stores P and takes m·d products a row. The fast forms flip signs at random,
        transform, and keep m random coefficients: d log d operations, d signs and m indices
        to store. "dct" has exactly orthonormal rows for any d. "hadamard" is the fastest; it pads
        rows with zeros to the next power of two p, and its rows are orthonormal (times √(p/m)) in
        these p dimensions: lengths are kept on average, but ‖Px‖² ≤ (p/m)‖x‖² only.
    random_state : int, RandomState, Generator or None
        An int gives the same projection in every run.
    n_jobs : int, optional
        Threads; None means all that are available.

    Attributes
    ----------
    spec_ : Spec
        The matrix, or signs and indices.
    kernel_ : Kernel
        The inner product ⟨x, y⟩.

    Examples
    --------
    >>> import numpy as np, kernelmaps as km
    >>> X = np.random.default_rng(0).normal(size=(20, 500))
    >>> Y = km.RandomOrthoprojector(200, random_state=0).fit_transform(X)
    >>> ratios = (Y**2).sum(axis=1) / (X**2).sum(axis=1)
    >>> bool(abs(ratios - 1).max() < 6 * (2 * 300 / (200 * 502)) ** 0.5)
    True
    """

    n_components: int = 100
    entries: str = "gaussian"
    _: KW_ONLY
    method: str = "dense"
    random_state: Any = None
    n_jobs: int | None = None

    def _learn(self, X: Any) -> Spec:
        m = check_count(self, "n_components", self.n_components)
        if m > X.shape[1]:
            raise ValueError(
                f"RandomOrthoprojector: n_components={m} orthonormal rows do not exist in "
                f"{X.shape[1]} dimensions (the features of X). Use at most {X.shape[1]}."
            )
        self.kernel_ = Linear()
        how, dtype = (self.method, self.entries), output_dtype(X.dtype)
        return draw_orthoprojector(self, m, X.shape[1], how, generator(self.random_state), dtype)


def draw_orthoprojector(
    owner: Any,
    m: int,
    d: int,
    how: tuple[str, str],
    rng: np.random.Generator,
    dtype: Any,
    argument: str = "method",
) -> Spec:
    """Spec of a random orthoprojector from d to m ≤ d dimensions; `how`: its method and entries."""
    method, entries = how
    check_choice(owner, argument, method, METHODS)
    check_choice(owner, "entries", entries, ENTRIES)
    if method == "dense":
        matrix = np.sqrt(d / m) * orthonormal_columns(d, m, entries, rng)
        return Spec("projection", {"matrix": matrix.astype(dtype)}, {"operator": "matrix"})
    length = padded_length(d) if method == "hadamard" else d
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), size=length)
    # The DCT is orthonormal; the Hadamard matrix has entries ±1, and rows of length √p.
    gain = 1 / np.sqrt(m) if method == "hadamard" else np.sqrt(d / m)
    arrays = {
        "signs": signs[None, None, :] if method == "hadamard" else signs,
        "rows": np.sort(rng.permutation(length)[:m]),
        "gains": np.full(m, gain),
    }
    return Spec("projection", arrays, {"operator": method})


def orthonormal_columns(d: int, m: int, entries: str, rng: np.random.Generator) -> np.ndarray:
    """Gram-Schmidt of m random vectors in d dimensions, drawn again while they are dependent.

    Gaussian vectors never are; of ±1 vectors in few dimensions, two are often equal.
    """
    while True:
        if entries == "gaussian":
            vectors = rng.standard_normal((d, m))
        else:
            vectors = rng.choice([-1.0, 1.0], size=(d, m))
        columns, lengths = gram_schmidt(vectors)
        if lengths.min() > 1e-9 * np.sqrt(d):
            return columns
