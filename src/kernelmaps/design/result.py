"""Designs of one feature: spec, summary and certificate.

Cache of designs on disk, keyed by the arguments of the request.

A key is the digest of everything that determines a design: the signature and the weight (sampled),
the domain, the size, the method, the seed and the version of the solver. Files are written to a
temporary name and moved into place, so that an interrupted design leaves nothing behind; a damaged
one is designed again. Next to the user's cache there is a read-only file of ready designs that is
shipped with the package (``tools/make_ready_designs.py`` makes it).
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .._util import storage
from .._util.threads import cached_property
from ..engine import Spec, evaluate
from ..engine.families import waves_arrays
from ..engine.piecewise import spec_of
from ..engine.table import AFFINE, EDGES, Table
from ..engine.tabulated import local_polynomials
from ..exceptions import FileFormatError
from .approximation import Cosines
from .certify import DesignCertificate, number_words
from .rank_tables import RankTable

_DEGREE = 5  # of the local polynomials of a designed table


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignedMapping(ABC):
    """What designs of one feature and of several coordinates have in common."""

    kernel: str
    method: str
    domain: Any
    n_columns: int
    max_error: float
    rms: float
    certificate: DesignCertificate
    frequencies: Any = None
    weights: Any = None

    @abstractmethod
    def make_spec(self) -> Spec:
        """Make the spec of the map."""

    @abstractmethod
    def __call__(self, x: Any) -> np.ndarray:
        """φ(x), not clipped."""

    @cached_property
    def spec(self) -> Spec:
        """The map, clipped to its domain."""
        return self.make_spec()

    def kernel_values(self, x: Any, y: Any) -> np.ndarray:
        """Compute the approximate kernel k̂(x_i, y_j) = ⟨φ(x_i), φ(y_j)⟩ of all pairs.

        Parameters
        ----------
        x, y : array-like
            Values of one feature, or rows of coordinates.

        Returns
        -------
        ndarray
            Matrix of approximate kernel values.
        """
        return self(x) @ self(y).T

    def _describe(self, head: str, facts: list[str]) -> str:
        """A summary: what it is, facts, what no map could do better, and what is proved."""
        c = self.certificate
        if c.lower_bound > 0:
            limit = number_words(c.lower_bound)
            facts.append(f"no map of {self.n_columns} columns of any kind is below {limit}")
            times = f"{c.ratio:.2f}" if c.ratio < 100 else f"{c.ratio:.3g}"
            facts.append(f"{times} times the limit")
        return f"{head}:\n  {'; '.join(facts)}.\n  {c.words}; rms {number_words(self.rms)}."


@dataclass(frozen=True, eq=False, kw_only=True)
class Design(DesignedMapping):
    """The best map found for a kernel, a domain and a size.

    Attributes
    ----------
    kernel : str
        Name of the kernel.
    method : str
        How it was designed.
    error : str
        "absolute", "relative", "signature" or "weighted".
    domain : tuple or ndarray or str
        (m, b), a set of values, or "universal".
    n_columns : int
        Columns of the map; at most what was asked for (an exact map may need fewer).
    frequencies, weights : ndarray or None
        ω and α of a cosine map.
    table : RankTable or None
        The curve of a table design.
    max_error : float
        Largest error on the domain, in units of the kernel (of a universal map: per unit of b).
    rms : float
        Root mean square error over all pairs of 256 even values of the domain (from 0 for
        homogeneous kernels), or over all pairs of a set.
    certificate : DesignCertificate
        What is proved about it.
    homogeneous : bool
        Whether the kernel is a homogeneous one (of values ≥ 0), not a stationary one.
    gamma : float
        Degree of a homogeneous kernel.
    """

    error: str
    table: RankTable | None = None
    homogeneous: bool = False
    gamma: float = 1.0

    @property
    def range(self) -> tuple[float, float] | None:
        """Smallest and largest value of the domain; None for universal maps."""
        if isinstance(self.domain, str):
            return None
        return float(self.domain[0]), float(self.domain[-1])

    def make_spec(
        self, n_features: int = 1, *, clip: bool = True, signed: bool = False, scale: float = 1.0
    ) -> Spec:
        """Make the spec of the map for `n_features` features, all with the same curve.

        Parameters
        ----------
        n_features : int
            Features of the rows.
        clip : bool
            Clip values to the domain; otherwise cosines continue beyond it (tables cannot). Values
            between zero and the smallest one of a homogeneous kernel's domain are never clipped:
            cosines continue, and tables go to zero along a straight line.
        signed : bool
            Odd extension to negative values.
        scale : float
            The data value that 1 in the design stands for: a map designed on (m, b) is used on
            (m·scale, b·scale).

        Returns
        -------
        Spec
            The fitted map as arrays.
        """
        if self.table is not None:
            return _table_spec(self, self.table, n_features, signed, scale)
        ends: dict[str, Any] = {}
        if clip and self.range is not None:
            low, high = self.range
            ends = {"lower": [0.0 if self.homogeneous else low], "upper": [high * scale]}
        # Cosines of log x − log y are the same in any unit, and so need no `scale`; stationary
        # kernels are designed in the unit of the data.
        gamma = self.gamma if self.homogeneous else 0.0
        return cosines_spec((self.frequencies, self.weights), gamma, signed, ends)

    def __call__(self, x: Any) -> np.ndarray:
        """φ(x) for values of one feature, shape (n, n_columns); not clipped."""
        x = np.atleast_1d(np.asarray(x, dtype=np.float64))
        if self.table is not None:
            out = np.zeros((x.size, self.n_columns))
            inside = x > 0 if self.homogeneous else np.ones(x.size, dtype=bool)
            out[inside] = self.table(x[inside])
            return out
        return evaluate(self.make_spec(clip=False), x[:, None])

    def summary(self) -> str:
        """Describe the design and its certificate in words.

        Returns
        -------
        str
            Several lines of text.
        """
        c, unit = self.certificate, " (per unit of b)" if self.range is None else ""
        kind = "cosine map" if self.table is None else "table"
        parts = [f"max error {number_words(self.max_error)}{unit}"]
        if kind == "cosine map":
            if c.alternations >= c.needed:
                evidence = f"equioscillates {c.alternations} times"
            else:
                evidence = "no first-order improvement exists"
            if c.locally_optimal:
                parts.append(f"no cosine map of {self.n_columns} columns found better ({evidence})")
        where = "all ratios" if self.range is None else "[{:g}, {:g}]".format(*self.range)
        head = (
            f"{kind} of the {self.kernel} kernel, {self.n_columns} columns, {self.error} error on "
            f"{where}, method {self.method!r}"
        )
        return self._describe(head, parts)

    def __repr__(self) -> str:
        return (
            f"Design({self.kernel}, {self.n_columns} columns, {self.method}, "
            f"max_error={self.max_error:.4g}, {self.certificate.ratio:.3g}x the limit)"
        )


def cosines_spec(
    cosines: Cosines, gamma: float, signed: bool = False, ends: dict[str, Any] | None = None
) -> Spec:
    """√α x^{γ/2} cos(ω log x), sin(ω log x), or √α cos(ωx), sin(ωx) for γ = 0."""
    arrays: dict[str, Any] = {**waves_arrays(*cosines), **(ends or {})}
    if gamma:
        return Spec("log_waves", arrays, {"gamma": gamma, "signed": signed})
    return Spec("waves", arrays, {"signed": signed})


def _table_spec(
    design: Design, table: RankTable, n_features: int, signed: bool, scale: float
) -> Spec:
    """Local polynomials: the table's own straight lines, or its curve tabulated to rounding."""
    homogeneous = design.homogeneous
    # homogeneity: φ(s x) = s^{γ/2} φ(x)
    root = scale ** (design.gamma / 2) if homogeneous else 1.0
    if table.kernel.rough:
        values = table.coefficients
        edges, coef = table.nodes, np.stack([values[:-1], np.diff(values, axis=0)], axis=1)
    else:
        edges, coef = _tabulate(table)
    if homogeneous:  # φ(0) = 0: a straight line from there to the domain
        line = np.zeros((1, *coef.shape[1:]))
        line[0, 1] = coef[0, 0]
        edges, coef = np.r_[0.0, edges], np.concatenate([line, coef])
    edges = edges * scale
    uniform = not (table.kernel.rough or homogeneous)
    built = Table.build(
        AFFINE if uniform else EDGES,
        coef.shape[1] - 1,
        [coef * root],
        origin=edges[:1] if uniform else np.zeros(1),
        resolution=(edges.size - 1) / (edges[-1:] - edges[:1]) if uniform else np.ones(1),
        edges=None if uniform else [edges],
        set_of=np.zeros(n_features, np.int32),
        clip_low=edges[:1],
        clip_high=edges[-1:],
        signed=signed,
        zero_at_zero=homogeneous,
    )
    return spec_of(built)


def _tabulate(table: RankTable) -> tuple[np.ndarray, np.ndarray]:
    """Bins along the (logarithmic) domain, and polynomials on them that are exact to rounding."""
    for bins in 2 ** np.arange(6, 13):
        edges = table.kernel.place(np.linspace(0, 1, bins + 1))
        coef, miss = local_polynomials(table, edges, _DEGREE)
        if miss <= 4e-13:
            break
    return edges, coef


READY = Path(__file__).with_name("ready.kmap")
_KIND = "design"
READY_KIND = "ready-designs"

Entry = tuple[dict[str, Any], dict[str, np.ndarray]]


def load_or_solve(key: str, solve: Callable[[], Entry], use: bool) -> Entry:
    """The design of a key, shipped or in the user's cache, or a new one, which is then stored.

    The cache is the folder ``KERNELMAPS_CACHE``, or one in the user's ``.cache``. Without `use`,
    the design is always new.
    """
    if not use:
        return solve()
    ready = load_ready().get(key)
    if ready is not None:
        return ready
    cache = os.environ.get("KERNELMAPS_CACHE") or Path.home() / ".cache" / "kernelmaps"
    path = Path(cache) / f"{key}.kmap"
    try:
        return storage.read(path, _KIND)
    except (OSError, FileFormatError):
        entry = solve()
    with suppress(OSError):  # a read-only home is no reason to fail
        path.parent.mkdir(parents=True, exist_ok=True)
        storage.write(path, _KIND, *entry)
    return entry


@lru_cache(maxsize=1)
def load_ready() -> dict[str, Entry]:
    """The shipped designs by key; none if the file is missing."""
    if not READY.exists():
        return {}
    header, arrays = storage.read(READY, READY_KIND)
    entries: dict[str, Entry] = {key: (design, {}) for key, design in header["designs"].items()}
    for path, values in arrays.items():
        key, _, name = path.partition("/")
        entries[key][1][name] = values
    return entries
