"""From columns and targets to a fitted model: codes, terms, pairs, strengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special

from ...data.frames import Column
from ...threads import limit_blas, map_in_threads
from ..losses import Loss, Squared
from .bases import Basis, eigen, side_of, spans_of
from .codebooks import Codebook, encode_columns, fit_codebook
from .constraints import cone_of, polished
from .extending import Start, approach, extend_rows
from .held import CodedRows, HeldRows, Memory, Pair, Part, Scored
from .marginal import signals_of
from .newton import PenalisedFit, fit_rows
from .pairs import Coarse, build_pair, coarse_for_ranking, promising
from .predictor import AdditivePredictor, FittedTerm
from .streamed import TableRows
from .terms import Term, term_basis
from .voting import LEVEL, SquaredSlopes, significance, suspects

_FEWEST_ROWS = 100  # below, pairs are not searched for
_FIRST, _LATER = 5, 10  # pairs of the first go, and of each after it
_GOES = 6  # at most; each ranks pairs by what the last one left
_FUNCTIONS = 48, 24  # that a pair of the first go, or of a later one, begins with
_CERTAIN = 1.5, 0.5  # standard deviations by which their gains must exceed chance
_FULL = 0.6  # edf of a pair, as a share of its functions, at which it gets twice as many
_MOST_WEIGHTS = 2000  # of all terms: a Newton step on the strengths costs its cube
_BACK = 2.0  # of the logarithm of a strength, beyond that of all rows: where a fit starts at most
_VANISHED = 0.3  # edf of a pair that is left out
_LIKELY = 0.5  # standard errors by which each new pair must help held-out rows
_SURE = 2.5, 0.0  # by which all pairs of the first go, and of a later one, must help together
_VOTES = 3  # rounds of score tests, each with the pairs of the one before in the model
Losses = Sequence[Loss]
Fits = Sequence[PenalisedFit]
Pairs = Sequence[Pair]
Known = tuple["Design", PenalisedFit]  # an earlier fit of an output, with some of the terms
Trial = tuple["Design", list[PenalisedFit]]


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
    max_iter : int
    n_jobs : int or None
    owner : str
        Estimator, for messages.
    """

    terms: dict[int, Term]
    pairs: list[Pair]
    search: int = 0
    strengths: dict[int, float] | float | None = None
    shapes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    max_iter: int = 100
    n_jobs: int | None = None
    owner: str = "AdditiveModel"


@dataclass(frozen=True)
class Design:
    """Coded rows and the terms on them."""

    rows: TableRows
    counts: tuple[np.ndarray, ...]
    parts: tuple[Part, ...]
    n_jobs: int | None = None

    @property
    def books(self) -> tuple[Codebook, ...]:
        return self.rows.books

    @property
    def bases(self) -> list[Basis]:
        return [part.basis for part in self.parts]

    @property
    def log_rows(self) -> float:
        """Logarithm of a strength that weighs as much as all rows of the table."""
        return float(np.log(max(float(self.counts[0].sum()), 1e-300)))

    def cone(self) -> np.ndarray | None:
        """Constraints on the weights of all terms, the intercept's included."""
        spans, blocks = spans_of(self.bases), []
        for part, own in zip(self.parts, spans, strict=True):
            if part.shapes:
                rows = cone_of(part.shapes, self.books[part.columns[0]], part.basis.values)
                blocks.append(np.zeros((len(rows), spans[-1].stop)))
                blocks[-1][:, own] = rows
        return np.concatenate(blocks) if blocks else None


def hold_rows(
    columns: Sequence[Column], targets: Sequence[np.ndarray], weight: np.ndarray,
    offset: np.ndarray, request: Request,
) -> HeldRows:  # fmt: skip
    """Codes of columns in memory."""
    with np.errstate(over="ignore"):
        books = tuple(fit_codebook(column, weight) for column in columns)
        _check_extents(books, request.owner)
    codes = encode_columns(books, columns, request.owner, request.n_jobs)
    return HeldRows(books, codes, tuple(targets), weight, offset, request.n_jobs)


def _check_extents(books: Sequence[Codebook], owner: str) -> None:
    """Refuse numbers whose difference is beyond all numbers."""
    for book in books:
        if len(book.nodes) and not np.isfinite(book.nodes[-1] - book.nodes[0]):
            raise ValueError(
                f"{owner}: the values of column {book.name!r}, {book.nodes[0]:g} to "
                f"{book.nodes[-1]:g}, are too far apart. Divide them by a constant."
            )


def design_of(rows: TableRows, losses: Losses, request: Request) -> Design:
    """The terms of single columns, and the pairs that were asked for."""
    sums = rows.margins(losses)
    books, counts, parts = rows.books, tuple(sums[0].singles), []
    _check_shapes(books, request)
    for j, term in request.terms.items():
        shapes = request.shapes.get(j, ())
        if {"convex", "concave"} & set(shapes) and term.knots == "auto":
            term = replace(term, knots="even")  # smooth on the axis on which it is convex
        signals = signals_of(sums, j)
        kind, basis = term_basis(
            term, books[j], counts[j], signals, request.owner, len(request.terms)
        )
        parts.append(Part(books[j].name, kind, (j,), basis, counts[j], shapes=shapes))
    return with_pairs(Design(rows, counts, tuple(parts), request.n_jobs), request.pairs, rows)


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


def with_pairs(
    design: Design, pairs: Pairs, rows: TableRows, functions: int | None = None
) -> Design:
    """The design with some pairs more, of at most so many functions each; these are of `rows`."""
    weights = rows.pair_weights(pairs)

    def part(at: int) -> Part:
        j, k = pairs[at]
        pair = build_pair((j, k), design.books, design.counts, weights[at])
        basis = pair.basis() if functions is None else pair.basis(functions)
        name = f"{design.books[j].name} × {design.books[k].name}"
        return Part(name, "pair", (j, k), basis, pair.counts, pair)

    return replace(design, parts=(*design.parts, *_built(part, range(len(pairs)), design.n_jobs)))


def _built(build: Callable[[Any], Part], items: Sequence[Any], n_jobs: int | None) -> list[Part]:
    """Terms of some pairs, several at a time: a basis is an eigenvalue problem."""
    with limit_blas(1):
        return map_in_threads(build, items, n_jobs)


def fit_terms(rows: TableRows, losses: Losses, request: Request) -> tuple[AdditivePredictor, Fits]:
    """Fit one model with an output for each of the losses and targets.

    Pairs are searched for with all outputs together.
    """
    # Matrices of single terms are small: more threads cost BLAS more than they bring.
    with limit_blas(1):
        design = design_of(rows, losses, request)
    if request.search:
        design, fits = _search(design, losses, request)
    else:
        fits = _fit_all(design, losses, request)
    with limit_blas(1):
        return assemble(design, fits, request.pairs), fits


def fit_design(
    design: Design, loss: Loss, output: int, request: Request,
    start: Known | None = None, memory: Memory | None = None,
) -> PenalisedFit:  # fmt: skip
    """Fit one output; `start` has strengths and weights of some terms.

    What a `memory` holds is about ZᵀWZ of these rows; it is so for squared loss.
    """
    rows = design.rows.coded(design.parts, design.cone(), output)
    rho, fixed = _strengths(design, request)
    beta = None
    if start:
        known = _from_known(design, start, rho)
        # Where nothing is left of a function, it would hardly come back by itself.
        rho = np.where(fixed, rho, np.minimum(known.rho, design.log_rows + _BACK))
        beta = known.beta
        gram = None if memory is None else memory.of(rows.bases)
        if gram is not None and not isinstance(loss, Squared):
            beta = approach(rows, loss, rho, beta, gram)
        elif gram is not None and isinstance(rows, CodedRows):
            rows = replace(rows, memory=memory)
    return fit_rows(rows, loss, rho, fixed, max_iter=request.max_iter, beta=beta)


def _extended(
    design: Design, loss: Loss, output: int, request: Request, before: Known, memory: Memory
) -> PenalisedFit:
    """A rough fit of one output, in which the strengths of known terms stay as they are."""
    rows = design.rows.coded(design.parts, design.cone(), output)
    if isinstance(rows, CodedRows):
        rows = replace(rows, memory=memory)
    rho, fixed = _strengths(design, request)
    start = _from_known(design, before, rho)
    rho = np.where(fixed, rho, start.rho)
    return extend_rows(rows, loss, replace(start, rho=rho, held=fixed | start.held))


def _from_known(design: Design, before: Known, rho: np.ndarray) -> Start:
    """Strengths and weights to start from; those of terms that are as they were are held."""
    old, fit = before
    known = {part.columns: (part.basis, own, group) for part, own, group in _places(old)}
    beta = np.zeros(1 + sum(basis.n_functions for basis in design.bases))
    rho, held, edf = rho.copy(), np.zeros(len(rho), bool), np.zeros(len(beta))
    beta[0], edf[0] = fit.weights[0], 1.0
    for part, own, group in _places(design):
        if part.columns not in known:
            continue
        basis, there, strengths = known[part.columns]
        rho[group], held[group] = fit.rho[strengths], basis is part.basis
        if basis is part.basis:
            beta[own], edf[own] = fit.weights[there], fit.edf[there]
        else:
            beta[own] = _carried(part, basis.values @ fit.weights[there])
    return Start(rho, held, beta, edf)


def _carried(part: Part, values: np.ndarray) -> np.ndarray:
    """Weights of a term's orthonormal functions that come closest to some values at its codes."""
    counts = part.counts.ravel()
    return part.basis.values.T @ (counts * values) / max(float(counts.sum()), 1e-300)


def _places(design: Design) -> list[tuple[Part, slice, slice]]:
    """The terms, and which weights and which strengths are theirs."""
    ends = np.cumsum([basis.n_strengths for basis in design.bases]).tolist()
    groups = [slice(end - b.n_strengths, end) for end, b in zip(ends, design.bases, strict=True)]
    return list(zip(design.parts, spans_of(design.bases), groups, strict=True))


def _strengths(design: Design, request: Request) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the strengths to start from, and which of them are fixed."""
    start = design.log_rows
    rho, fixed = [], []
    for part in design.parts:
        given, count = request.strengths, part.basis.n_strengths
        if isinstance(given, dict):
            given = given.get(part.columns[0]) if len(part.columns) == 1 else None
        rho += [start if given is None else np.log(max(given, 1e-300))] * count
        fixed += [given is not None] * count
    return np.array(rho, float), np.array(fixed, bool)


def _search(design: Design, losses: Losses, request: Request) -> Trial:
    """Add pairs in some goes, each ranked by the residuals of the model before.

    Pairs begin with few functions and get more where they use them all; those of which nothing is
    left, since others say the same, make room. Held-out rows judge each go (`_judged`), score
    tests on all rows add what these were too few to see (`_voted`), and the model is then fitted to
    all rows. Few rows can neither show pairs nor judge them.
    """
    if design.counts[0].sum() < _FEWEST_ROWS:
        return design, _fit_all(design, losses, request)
    rows, judges = design.rows.split()
    first = trial = replace(design, rows=rows)
    tried = {part.columns for part in design.parts if part.pair is not None}
    asked = len(tried)
    # In full: what single columns leave over would be taken for an effect of pairs.
    fits = _fit_all(trial, losses, request)
    memories = [Memory() for _ in losses]
    for _ in range(_GOES):
        larger = _refined(trial, fits, asked)
        left = request.search + asked - sum(part.pair is not None for part in larger.parts)
        if left > 0:
            go = min(left, _FIRST if trial is first else _LATER)
            certain = _CERTAIN[trial is not first]
            found = _next_pairs(trial, losses, fits, request, tried, certain)[:go]
            # The functions of pairs are those of all rows, as they will be fitted in the end.
            size = _FUNCTIONS[trial is not first]
            larger, added = _within_budget(larger, found, design.rows, size)
            tried |= set(added)
        if _sizes(larger) == _sizes(trial):
            break
        before = [replace(own) for own in memories]
        more = _fit_all(larger, losses, request, (trial, fits), memories, _extended)
        kept = _judged(judges, losses, (trial, fits), (larger, more), trial is first)
        if kept is None:
            pairs = zip(memories, before, strict=True)
            memories = [new if new.knows(trial.bases) else old for new, old in pairs]
            break
        trial, fits = kept
    trial, fits = _voted(design.rows, trial, losses, fits, request, asked, memories)
    design = replace(design, parts=trial.parts)
    if _sizes(trial) == _sizes(first):  # the model without pairs, as it would be
        return design, _fit_all(design, losses, request)
    memories = [
        _of_all_rows(design, (rows, judges), loss, k, memory)
        for k, (loss, memory) in enumerate(zip(losses, memories, strict=True))
    ]
    return design, _fit_all(design, losses, request, (trial, fits), memories)


def _of_all_rows(
    design: Design, halves: tuple[TableRows, TableRows], loss: Loss, output: int,
    memory: Memory,
) -> Memory:  # fmt: skip
    """Products of all rows by those of the rows that were fitted: exact for squared loss.

    For others about, since the curvature was another one.
    """
    bases, rows = design.bases, design.rows
    gram = memory.of(bases)
    judges = halves[1].coded(design.parts, None, output)
    if gram is None or not isinstance(rows, HeldRows) or not isinstance(judges, CodedRows):
        return Memory()
    if isinstance(loss, Squared):
        return Memory(rows.weight, bases, gram + judges.sums(judges.weight, judges.weight)[0])
    return Memory(None, bases, gram * (rows.total / max(halves[0].total, 1e-300)))


def _judged(
    judges: TableRows, losses: Losses, before: Trial, after: Trial, first: bool
) -> Trial | None:
    """The larger model without the new pairs that held-out rows do not want; None: not at all.

    The first pairs must prove that the table has any; where it has, less is asked of later ones.
    """
    design, fits = after
    old = {part.columns for part in before[0].parts}
    new = [part.columns for part in design.parts if part.columns not in old]
    others = [_scored(*before), *(_scored(*_without(design, fits, {pair})) for pair in new)]
    whole, *each = judges.gains(losses, others, _scored(design, fits))
    if first and not whole.certainty > 0:  # what is left after a choice by these rows proves little
        return None
    dropped = {pair for pair, gain in zip(new, each, strict=True) if not gain.certainty > _LIKELY}
    if dropped:
        design, fits = _without(design, fits, dropped)
        (whole,) = judges.gains(losses, others[:1], _scored(design, fits))
    return (design, fits) if whole.certainty > _SURE[not first] else None


def _voted(
    rows: TableRows, trial: Design, losses: Losses, fits: list[PenalisedFit],
    request: Request, asked: int, memories: Sequence[Memory],
) -> Trial:  # fmt: skip
    """The model with the pairs more that score tests on all rows want; see `voting`.

    It is fitted to the same rows as before, of which products of terms are known.
    """
    for _ in range(_VOTES):
        left = request.search + asked - sum(part.pair is not None for part in trial.parts)
        whole = replace(trial, rows=rows)
        wanted = _wanted(whole, losses, fits, request)[:left] if left > 0 else []
        larger, added = _within_budget(trial, wanted, rows, _FUNCTIONS[0])
        if not added:
            break
        fits = _fit_all(larger, losses, request, (trial, fits), memories, _extended)
        trial = larger
    return trial, fits


def _wanted(design: Design, losses: Losses, fits: Fits, request: Request) -> list[Pair]:
    """Pairs that a score test of any output wants, the most significant first.

    The level is divided by the number of tests (Bonferroni). Of pairs that share a column only the
    first is taken: the others may owe their evidence to it, and are tested again beside it.
    """
    taken = {part.columns for part in design.parts if part.pair is not None}
    untried, coarse = _open_pairs(design, request, taken)
    sides = {
        j: side_of(own.summed(design.counts[j]), design.books[j].kind == "category")
        for j, own in coarse.items()
    }
    found: dict[Pair, float] = {}
    for k, (loss, fit) in enumerate(zip(losses, fits, strict=True)):
        own = design.parts, fit.weights
        tables = dict(zip(untried, design.rows.residuals(*own, loss, k, untried, coarse)[0]))
        some = suspects(untried, [tables[pair] for pair in untried], sides, fit.dispersion)
        if not some:
            continue
        squares = design.rows.residuals(*own, SquaredSlopes(of=loss), k, some, coarse)[0]
        for pair, (square, _) in zip(some, squares, strict=True):
            p = significance(*tables[pair], square, sides[pair[0]], sides[pair[1]])
            found[pair] = min(found.get(pair, 1.0), p)
    level = LEVEL / max(len(losses) * (len(untried) + len(taken)), 1)
    used: set[int] = set()
    wanted = []
    for pair in sorted(found, key=lambda pair: found[pair]):
        if found[pair] < level and not used & set(pair):
            wanted.append(pair)
            used |= set(pair)
    return wanted


def _scored(design: Design, fits: Fits) -> Scored:
    """Terms, and their weights in all outputs."""
    return design.parts, [fit.weights for fit in fits]


def _without(design: Design, fits: Fits, dropped: set[tuple[int, ...]]) -> Trial:
    """The model without some terms, the weights of the others as they are."""
    kept = [place for place in _places(design) if place[0].columns not in dropped]
    parts = tuple(part for part, _, _ in kept)
    weights = np.r_[0, *(own for _, own, _ in kept)]
    groups = np.r_[*(group for _, _, group in kept)]
    found = [
        replace(fit, weights=fit.weights[weights], edf=fit.edf[weights], rho=fit.rho[groups])
        for fit in fits
    ]
    return replace(design, parts=parts), found


def _fit_all(
    design: Design, losses: Losses, request: Request,
    before: Trial | None = None, memories: Sequence[Memory] | None = None,
    fit: Callable[..., PenalisedFit] = fit_design,
) -> list[PenalisedFit]:  # fmt: skip
    """Fits of all outputs, from those of an earlier model; by `_extended`, rough ones."""
    known = [None] * len(losses) if before is None else [(before[0], own) for own in before[1]]
    memories = [Memory() for _ in losses] if memories is None else memories
    return [
        fit(design, loss, k, request, start, memory)
        for k, (loss, start, memory) in enumerate(zip(losses, known, memories, strict=True))
    ]


def _refined(design: Design, fits: Fits, asked: int) -> Design:
    """Drop pairs that have vanished; twice as many functions for those that use nearly all."""
    edf = {
        part.columns: max(float(fit.edf[own].sum()) for fit in fits)
        for part, own, _ in _places(design)
        if part.pair is not None
    }
    vanished = {pair for pair in list(edf)[asked:] if edf[pair] < _VANISHED}
    parts = tuple(part for part in design.parts if part.columns not in vanished)
    full = [p for p in parts if edf.get(p.columns, 0.0) > _FULL * p.basis.n_functions]
    finer = {part.columns: part for part in _built(_twice, full, design.n_jobs)}
    larger = replace(design, parts=tuple(finer.get(part.columns, part) for part in parts))
    small = sum(_sizes(larger).values()) <= _MOST_WEIGHTS
    return larger if small else replace(design, parts=parts)


def _twice(part: Part) -> Part:
    """A pair with twice as many functions."""
    assert part.pair is not None
    return replace(part, basis=part.pair.basis(2 * part.basis.n_functions))


def _sizes(design: Design) -> dict[tuple[int, ...], int]:
    """Numbers of functions, by the columns of the terms."""
    return {part.columns: part.basis.n_functions for part in design.parts}


def _open_pairs(
    design: Design, request: Request, tried: set[tuple[int, ...]]
) -> tuple[list[Pair], dict[int, Coarse]]:
    """Pairs that were not tried, and the codes of columns while pairs are ranked."""
    mains = [part.columns[0] for part in design.parts if part.pair is None]
    usable = [
        j for j in mains if np.count_nonzero(design.counts[j]) > 1 and j not in request.shapes
    ]
    untried = [pair for pair in combinations(usable, 2) if pair not in tried]
    return untried, coarse_for_ranking(design.books, design.counts, usable)


def _next_pairs(
    design: Design, losses: Losses, fits: Fits, request: Request,
    tried: set[tuple[int, ...]], certain: float,
) -> list[Pair]:  # fmt: skip
    """Pairs that the residuals of any output want, the most promising first."""
    untried, coarse = _open_pairs(design, request, tried)
    merged: dict[Pair, float] = {}
    for k, (loss, fit) in enumerate(zip(losses, fits, strict=True)):
        given = design.parts, fit.weights, loss, k, untried, coarse
        tables, bend, rows = design.rows.residuals(*given)
        for pair, excess in promising(untried, tables, bend / rows, fit.dispersion, certain):
            merged[pair] = max(merged.get(pair, 0.0), excess)
    return sorted(merged, key=lambda pair: -merged[pair])


def _within_budget(
    design: Design, pairs: Pairs, rows: TableRows, functions: int
) -> tuple[Design, list[Pair]]:
    """Add pairs while the model stays small enough to choose its strengths."""
    larger = with_pairs(design, pairs, rows, functions)
    alone = sum(part.basis.n_functions for part in larger.parts if part.pair is None)
    ends = [own.stop for own in spans_of(larger.bases)]
    room = int(np.searchsorted(ends, max(_MOST_WEIGHTS, alone)))
    added = list(pairs[: max(room - len(design.parts), 0)])
    return replace(larger, parts=larger.parts[: len(design.parts) + len(added)]), added


def assemble(design: Design, fits: Fits, asked: Pairs = ()) -> AdditivePredictor:
    """The fitted model, its terms at their codes; pairs that have vanished only if asked for."""
    terms = []
    for part, own, group in _places(design):
        found = [_term_of(part, fit, own) for fit in fits]
        values, errors, edf, statistic, p_value = (
            np.stack(item, axis=-1) for item in zip(*found, strict=True)
        )
        if part.shapes:
            values = polished(values, part.shapes)
        if part.pair is not None:
            shape = part.pair.first.size, part.pair.second.size
            values, errors = values.reshape(*shape, -1), errors.reshape(*shape, -1)
        strengths = np.stack([np.exp(fit.rho[group]) for fit in fits], axis=-1)
        coarse = () if part.pair is None else (part.pair.first.of, part.pair.second.of)
        term = FittedTerm(
            part.name, part.kind, part.columns, values, errors, part.counts, edf, statistic,
            p_value, strengths, coarse,
        )  # fmt: skip
        if part.pair is None or part.columns in asked or edf.max() >= _VANISHED:
            terms.append(term)
    intercept = np.array([fit.weights[0] for fit in fits])
    return AdditivePredictor(design.books, tuple(terms), intercept)


def _term_of(part: Part, fit: PenalisedFit, own: slice) -> tuple:
    """Values and standard errors at the codes, edf, Wald's statistic and its significance.

    Functions that were left out have weights of zero, and next to no variance.
    """
    used = own.start + np.flatnonzero(fit.weights[own])
    basis, weights = part.basis.values[:, used - own.start], fit.weights[used]
    block = np.ix_(used, used)
    covariance, edf = fit.covariance[block], float(fit.edf[own].sum())
    variance = np.sum((basis @ (covariance + fit.wider[block])) * basis, 1)
    if part.pair is None:
        # Where a centred line crosses zero it seems to be certain, whatever it is a line through.
        # Of the sum with the intercept, bands cover what smoothing leaves out (Marra and Wood
        # 2012).
        beside = fit.covariance[0, used]
        variance = variance + float(fit.covariance[0, 0]) + 2 * basis @ beside
    errors = np.sqrt(np.maximum(variance, 0.0))
    statistic, p_value = _wald(weights, covariance, edf)
    return basis @ weights, errors, edf, statistic, p_value


def _wald(weights: np.ndarray, covariance: np.ndarray, edf: float) -> tuple[float, float]:
    """β'V⁻β with the pseudo-inverse of rank about edf (Wood 2013), and its χ² tail."""
    if len(weights) == 0:
        return 0.0, 1.0
    values, vectors = eigen(covariance)
    rank = int(np.clip(np.round(edf), 1, len(weights)))
    largest = slice(len(values) - rank, None)  # what the data know is small, what matters large
    along = vectors[:, largest].T @ weights
    statistic = float(np.sum(along**2 / np.maximum(values[largest], 1e-300)))
    return statistic, float(special.chdtrc(rank, statistic))
