"""From columns and targets to a fitted model: codes, terms, pairs, strengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy import stats

from ...data.frames import Column
from .codebooks import Codebook, encode_columns, fit_codebook
from .constraints import cone_of, polished
from .held import HeldRows, Part, TableRows
from .likelihoods import Likelihood
from .model import FittedTerm, TableModel
from .newton import PenalisedFit, fit_rows
from .pairs import build_pair, coarse_for_ranking, rank_pairs, significant
from .terms import Term, term_basis

__all__ = ["Design", "Request", "design_of", "fit_design", "fit_table", "hold_rows"]

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
class Design:
    """Coded rows and the terms on them."""

    rows: TableRows
    counts: tuple[np.ndarray, ...]
    parts: tuple[Part, ...]

    @property
    def books(self) -> tuple[Codebook, ...]:
        return self.rows.books

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


def hold_rows(
    columns: Sequence[Column], targets: Sequence[np.ndarray], weight: np.ndarray,
    offset: np.ndarray, request: Request,
) -> HeldRows:  # fmt: skip
    """Codes of columns in memory."""
    books = tuple(fit_codebook(column, weight) for column in columns)
    codes = encode_columns(books, columns, request.owner, request.n_jobs)
    return HeldRows(books, codes, tuple(targets), weight, offset, request.n_jobs)


def design_of(rows: TableRows, request: Request) -> Design:
    """The terms of single columns, and the pairs that were asked for."""
    books, counts, parts = rows.books, tuple(rows.counts), []
    _check_shapes(books, request)
    for j, term in request.terms.items():
        shapes = request.shapes.get(j, ())
        if {"convex", "concave"} & set(shapes) and term.knots == "auto":
            term = replace(term, knots="even")  # smooth on the axis on which it is convex
        kind, basis = term_basis(term, books[j], counts[j], request.owner)
        parts.append(Part(books[j].name, kind, (j,), basis, counts[j], shapes=shapes))
    return with_pairs(Design(rows, counts, tuple(parts)), request.pairs)


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
    for (j, k), weights in zip(pairs, design.rows.pair_weights(pairs), strict=True):
        pair = build_pair((j, k), design.books, design.counts, weights)
        name = f"{design.books[j].name} × {design.books[k].name}"
        parts.append(Part(name, "pair", (j, k), pair.basis, pair.counts, pair))
    return replace(design, parts=tuple(parts))


def fit_table(
    rows: TableRows, losses: Sequence[Likelihood], request: Request
) -> tuple[TableModel, list[PenalisedFit]]:
    """Fit one model with an output for each of the losses and targets.

    Pairs are searched for with all outputs together.
    """
    design = design_of(rows, request)
    if request.search:
        design, fits = _search(design, losses, request)
    else:
        fits = [fit_design(design, loss, k, request) for k, loss in enumerate(losses)]
    return assemble(design, fits), fits


def fit_design(
    design: Design, loss: Likelihood, output: int, request: Request,
    start: PenalisedFit | None = None, rough: bool = False,
) -> PenalisedFit:  # fmt: skip
    """Fit one output; `start` is a fit of the first terms of the design."""
    rows = design.rows.coded(design.parts, design.cone(), output)
    rho, fixed = _strengths(design, request)
    if start is not None:
        free = ~fixed[: len(start.rho)]
        rho[: len(start.rho)][free] = start.rho[free]
    return fit_rows(rows, loss, rho, fixed, request.tol, request.max_iter, rough)


def _strengths(design: Design, request: Request) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the strengths to start from, and which of them are fixed."""
    level = np.log(max(design.rows.total, 1e-300))
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
    design: Design, losses: Sequence[Likelihood], request: Request
) -> tuple[Design, list[PenalisedFit]]:
    """Add pairs in some goes, each ranked by the residuals of the model before."""
    fits: list[PenalisedFit | None] = [None] * len(losses)

    def fit_all(rough: bool) -> list[PenalisedFit]:
        return [
            fit_design(design, loss, k, request, start, rough)
            for k, (loss, start) in enumerate(zip(losses, fits, strict=True))
        ]

    go, left = -(-request.search // _ROUNDS), request.search
    while left > 0:
        fits = fit_all(rough=True)
        found = _next_pairs(design, losses, fits, request)[: min(go, left)]
        design, added = _within_budget(design, found)
        if not added:
            break
        left -= len(added)
    return design, fit_all(rough=False)


def _next_pairs(
    design: Design, losses: Sequence[Likelihood], fits: Sequence[PenalisedFit], request: Request
) -> list[tuple[int, int]]:
    """Pairs that the residuals of any output want, the most promising first."""
    known = {part.columns for part in design.parts if part.pair is not None}
    mains = [part.columns[0] for part in design.parts if part.pair is None]
    usable = [
        j for j in mains if np.count_nonzero(design.counts[j]) > 1 and j not in request.shapes
    ]
    places = [pair for pair in combinations(usable, 2) if pair not in known]
    coarse = coarse_for_ranking(design.books, design.counts, usable)
    merged: dict[tuple[int, int], float] = {}
    for k, (loss, fit) in enumerate(zip(losses, fits, strict=True)):
        tables, bend = design.rows.residuals(design.parts, fit.weights, loss, k, places, coarse)
        ranked = rank_pairs(places, tables, bend)
        wanted = set(significant(ranked, fit.dispersion))
        for gain, _, pair in ranked:
            if pair in wanted:
                merged[pair] = max(merged.get(pair, 0.0), gain / fit.dispersion)
    return sorted(merged, key=lambda pair: -merged[pair])


def _within_budget(
    design: Design, pairs: Sequence[tuple[int, int]]
) -> tuple[Design, list[tuple[int, int]]]:
    """Add pairs while the model stays small enough to choose its strengths."""
    larger = with_pairs(design, pairs)
    alone = sum(part.basis.n_functions for part in larger.parts if part.pair is None)
    sizes = np.cumsum([part.basis.n_functions for part in larger.parts])
    room = int(np.searchsorted(sizes, max(_MOST_WEIGHTS, alone), side="right"))
    added = list(pairs[: max(room - len(design.parts), 0)])
    return replace(larger, parts=larger.parts[: len(design.parts) + len(added)]), added


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
