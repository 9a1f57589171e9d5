"""From columns and targets to a fitted model: codes, terms, pairs, strengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import stats

from ...data.frames import Column
from .bases import Basis
from .codebooks import Codebook, fit_codebook
from .constraints import cone_of, polished
from .likelihoods import Likelihood
from .model import FittedTerm, TableModel
from .newton import CodedRows, PenalisedFit, fit_rows
from .pairs import PairTerm, build_pair, rank_pairs, significant
from .terms import Term, term_basis

__all__ = ["Design", "Request", "design_of", "fit_design", "fit_table"]

_ROUNDS = 4  # pairs are added in so many goes, each ranked by what the last one left
_MOST_PAIRS = 20
_MOST_WEIGHTS = 1500  # of all terms: a Newton step on the strengths costs its cube
_VANISHED = 0.05  # edf of a pair that is left out


@dataclass(frozen=True)
class Request:
    """What is asked of a model.

    Attributes
    ----------
    terms : dict of int to Term
        By column.
    pairs : list of (int, int)
        Pairs to include.
    search : int
        Most pairs to look for beside these.
    strengths : dict of int to float, or float, or None
        Fixed strengths by column, or of all; None, and columns that are not listed: chosen.
    shapes : dict of int to tuple of str
        Constraints by column.
    tol : float
    max_iter : int
    n_jobs : int or None
    owner : str
        Estimator, for messages.
    """

    terms: dict[int, Term]
    pairs: list[tuple[int, int]]
    search: int = 0
    strengths: dict[int, float] | float | None = None
    shapes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    tol: float = 1e-7
    max_iter: int = 100
    n_jobs: int | None = None
    owner: str = "AdditiveModel"


@dataclass(frozen=True)
class Part:
    """A term while it is fitted: where its codes come from, and its basis."""

    name: str
    kind: str
    columns: tuple[int, ...]
    basis: Basis
    counts: np.ndarray
    pair: PairTerm | None = None
    shapes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Design:
    """Codes of rows and the terms on them."""

    books: tuple[Codebook, ...]
    codes: tuple[np.ndarray, ...]
    counts: tuple[np.ndarray, ...]
    parts: tuple[Part, ...]
    weight: np.ndarray

    def rows(self, y: np.ndarray, offset: np.ndarray, n_jobs: int | None) -> CodedRows:
        codes = [
            self.codes[part.columns[0]] if part.pair is None else part.pair.codes(self.codes)
            for part in self.parts
        ]
        bases = [part.basis for part in self.parts]
        return CodedRows(codes, bases, y, self.weight, offset, n_jobs, self.cone())

    def cone(self) -> np.ndarray | None:
        """Constraints on the weights of all terms, the intercept's included."""
        start = np.cumsum([1, *(part.basis.n_functions for part in self.parts)])
        blocks = []
        for at, part in enumerate(self.parts):
            if part.shapes:
                own = cone_of(part.shapes, self.books[part.columns[0]], part.basis.values)
                blocks.append(np.zeros((len(own), start[-1])))
                blocks[-1][:, start[at] : start[at + 1]] = own
        return np.concatenate(blocks) if blocks else None


def design_of(columns: Sequence[Column], weight: np.ndarray, request: Request) -> Design:
    """Codes of the columns, the terms of single columns, and the pairs that were asked for."""
    books = tuple(fit_codebook(column, weight) for column in columns)
    codes = tuple(b.encode(c, request.owner) for b, c in zip(books, columns, strict=True))
    counts = tuple(np.bincount(c, weight, b.n_codes) for c, b in zip(codes, books, strict=True))
    parts = []
    _check_shapes(books, request)
    for j, term in request.terms.items():
        shapes = request.shapes.get(j, ())
        if {"convex", "concave"} & set(shapes) and term.knots == "auto":
            term = replace(term, knots="even")  # smooth on the axis on which it is convex
        kind, basis = term_basis(term, books[j], counts[j], request.owner)
        parts.append(Part(books[j].name, kind, (j,), basis, counts[j], shapes=shapes))
    return with_pairs(Design(books, codes, counts, tuple(parts), weight), request.pairs)


def _check_shapes(books: Sequence[Codebook], request: Request) -> None:
    for j in request.shapes:
        name = books[j].name
        if j not in request.terms:
            raise ValueError(f"{request.owner}: constraints name {name!r}, which has no term.")
        if books[j].kind == "category":
            raise ValueError(
                f"{request.owner}: constraints name {name!r}, whose categories have no order. "
                "Recode it as numbers."
            )
        if any(j in pair for pair in request.pairs):
            raise ValueError(
                f"{request.owner}: {name!r} has a constraint, which a pair with another column "
                "would undo. Leave one of them out."
            )


def with_pairs(design: Design, pairs: Sequence[tuple[int, int]]) -> Design:
    """The design with some pairs more."""
    parts = list(design.parts)
    for j, k in pairs:
        pair = build_pair((j, k), design.books, design.codes, design.counts, design.weight)
        name = f"{design.books[j].name} × {design.books[k].name}"
        parts.append(Part(name, "pair", (j, k), pair.basis, pair.counts, pair))
    return replace(design, parts=tuple(parts))


def fit_table(
    columns: Sequence[Column],
    targets: Sequence[np.ndarray],
    losses: Sequence[Likelihood],
    weight: np.ndarray,
    offset: np.ndarray,
    request: Request,
) -> tuple[TableModel, list[PenalisedFit]]:
    """Fit one model with an output for each of the targets.

    Pairs are searched for with the first target only if there is one, else with all of them.
    """
    design = design_of(columns, weight, request)
    fits: list[PenalisedFit] | None = None
    if request.search:
        design, fits = _search(design, targets, losses, offset, request)
    if fits is None:
        fits = [
            fit_design(design, y, loss, offset, request)
            for y, loss in zip(targets, losses, strict=True)
        ]
    return assemble(design, fits), fits


def fit_design(
    design: Design, y: np.ndarray, loss: Likelihood, offset: np.ndarray, request: Request,
    start: PenalisedFit | None = None, rough: bool = False,
) -> PenalisedFit:  # fmt: skip
    """Fit one target; `start` is a fit of the first terms of the design."""
    rows = design.rows(y, offset, request.n_jobs)
    rho, fixed = _strengths(design, request)
    if start is not None:
        free = ~fixed[: len(start.rho)]
        rho[: len(start.rho)][free] = start.rho[free]
    return fit_rows(rows, loss, rho, fixed, request.tol, request.max_iter, rough)


def _strengths(design: Design, request: Request) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the strengths to start from, and which of them are fixed."""
    level = np.log(max(float(design.weight.sum()), 1e-300))
    rho, fixed = [], []
    for part in design.parts:
        count = int(part.basis.group.max(initial=-1)) + 1
        given = request.strengths
        if isinstance(given, dict):
            given = given.get(part.columns[0]) if len(part.columns) == 1 else None
        rho += [level if given is None else np.log(max(given, 1e-300))] * count
        fixed += [given is not None] * count
    return np.array(rho, float), np.array(fixed, bool)


def _search(
    design: Design, targets: Sequence[np.ndarray], losses: Sequence[Likelihood],
    offset: np.ndarray, request: Request,
) -> tuple[Design, list[PenalisedFit]]:  # fmt: skip
    """Add pairs in some goes, each ranked by the residuals of the model before."""
    fits: list[PenalisedFit | None] = [None] * len(targets)

    def fit_all(rough: bool) -> list[PenalisedFit]:
        return [
            fit_design(design, y, loss, offset, request, start, rough)
            for y, loss, start in zip(targets, losses, fits, strict=True)
        ]

    go, left = -(-request.search // _ROUNDS), request.search
    while left > 0:
        fits = fit_all(rough=True)
        found = _next_pairs(design, targets, losses, offset, fits, request)[: min(go, left)]
        design, added = _within_budget(design, found)
        if not added:
            break
        left -= len(added)
    return design, fit_all(rough=False)


def _next_pairs(
    design: Design, targets: Sequence[np.ndarray], losses: Sequence[Likelihood],
    offset: np.ndarray, fits: Sequence[PenalisedFit], request: Request,
) -> list[tuple[int, int]]:  # fmt: skip
    """Pairs that the residuals of any output want, the most promising first."""
    known = {part.columns for part in design.parts if part.pair is not None}
    mains = [part.columns[0] for part in design.parts if part.pair is None]
    usable = [
        j for j in mains if np.count_nonzero(design.counts[j]) > 1 and j not in request.shapes
    ]
    merged: dict[tuple[int, int], float] = {}
    for y, loss, fit in zip(targets, losses, fits, strict=True):
        eta = design.rows(y, offset, request.n_jobs).scores(fit.weights)
        slope, bend = loss.derivatives(y, eta)
        ranked = rank_pairs(
            design.books, design.codes, design.counts, slope * design.weight,
            bend * design.weight, usable, request.n_jobs,
        )  # fmt: skip
        wanted = set(significant(ranked, fit.dispersion)) - known
        for gain, _, pair in ranked:
            if pair in wanted:
                merged[pair] = max(merged.get(pair, 0.0), gain / fit.dispersion)
    return sorted(merged, key=lambda pair: -merged[pair])


def _within_budget(
    design: Design, pairs: Sequence[tuple[int, int]]
) -> tuple[Design, list[tuple[int, int]]]:
    """Add pairs while the model stays small enough to choose its strengths."""
    added = []
    for pair in pairs:
        larger = with_pairs(design, [pair])
        most = max(_MOST_WEIGHTS, sum(p.basis.n_functions for p in design.parts if p.pair is None))
        if sum(part.basis.n_functions for part in larger.parts) > most:
            break
        design = larger
        added.append(pair)
    return design, added


def assemble(design: Design, fits: Sequence[PenalisedFit]) -> TableModel:
    """The fitted model, its terms at their codes."""
    start = np.cumsum([1, *(part.basis.n_functions for part in design.parts)])
    groups = np.cumsum([0, *(int(p.basis.group.max(initial=-1)) + 1 for p in design.parts)])
    terms = []
    for at, part in enumerate(design.parts):
        own = slice(start[at], start[at + 1])
        found = [_term_of(part, fit, own) for fit in fits]
        values, errors, edf, statistic, p_value = (
            np.stack(item, axis=-1) for item in zip(*found, strict=True)
        )
        if part.shapes:
            values = polished(values, part.shapes)
        if part.pair is not None:
            shape = part.pair.first.size, part.pair.second.size
            values, errors = values.reshape(*shape, -1), errors.reshape(*shape, -1)
        strengths = np.stack(
            [np.exp(fit.rho[groups[at] : groups[at + 1]]) for fit in fits], axis=-1
        )
        coarse = () if part.pair is None else (part.pair.first.of, part.pair.second.of)
        term = FittedTerm(
            part.name, part.kind, part.columns, values, errors, part.counts, edf, statistic,
            p_value, strengths, coarse,
        )  # fmt: skip
        if part.pair is None or edf.max() >= _VANISHED:
            terms.append(term)
    intercept = np.array([fit.weights[0] for fit in fits])
    return TableModel(design.books, tuple(terms), intercept)


def _term_of(part: Part, fit: PenalisedFit, own: slice) -> tuple:
    """Values and standard errors at the codes, edf, Wald's statistic and its significance."""
    basis, weights, covariance = part.basis.values, fit.weights[own], fit.covariance[own, own]
    errors = np.sqrt(np.maximum(np.einsum("ca,ab,cb->c", basis, covariance, basis), 0.0))
    edf = float(fit.edf[own].sum())
    statistic, p_value = _wald(weights, covariance, edf)
    return basis @ weights, errors, edf, statistic, p_value


def _wald(weights: np.ndarray, covariance: np.ndarray, edf: float) -> tuple[float, float]:
    """β'V⁻β with the pseudo-inverse of rank about edf (Wood 2013), and its χ² tail."""
    if len(weights) == 0:
        return 0.0, 1.0
    values, vectors = np.linalg.eigh(covariance)
    rank = int(np.clip(np.round(edf), 1, len(weights)))
    largest = slice(len(values) - rank, None)  # what the data know is small, what matters large
    along = vectors[:, largest].T @ weights
    statistic = float(np.sum(along**2 / np.maximum(values[largest], 1e-300)))
    return statistic, float(stats.chi2.sf(statistic, rank))
