r"""The fitted terms with their standard errors, degrees of freedom and tests of "no effect".

Curves and pairs have Wald's test :math:`b^\top V^{-} b` with a pseudo-inverse of rank about edf
(Wood 2013a). It has no power against the many small coefficients of a category, whose test is that
of a variance (Wood 2013b, *A simple test for random effects in regression models*). With D the
penalties of the coefficients b and :math:`V = φ(M + D)^{-1}` their posterior covariance, b without
an effect has the covariance :math:`φ(M + D)^{-1} M (M + D)^{-1}`, hence

.. math:: b^\top M b / φ \sim \sum_i κ_i^2 χ^2_1, \qquad
          1 - κ = \operatorname{eig}(D^{1/2} (M + D)^{-1} D^{1/2}).

If all κ are equal (levels of as many rows), this is the F test of an unpenalised factor. M is the
Gram matrix of the term without what the penalised other terms explain of it. The κ sum to the edf
of the term, and the eigenvectors with :math:`κ ≥ ½` are the directions of Wald's test.

Where φ is estimated, F takes the place of χ², with n − edf residual degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import special

from ..._util.threads import cached_property, limit_blas
from ..losses import Loss
from ..rows.basis import LevelBasis, TermBasis
from ..solvers.pirls import PenalisedFit
from .bases import eigh
from .fitting import FittedDesign
from .levels import LevelEffects, new_levels, without_levels
from .pairs import PAIRS
from .posterior import Posterior, posterior_of
from .predictor import AdditivePredictor, FittedTerm
from .purification import Deviations, DisplayedPart, Projection, Slices, displayed_parts, pair_sides
from .score_tests import mixture_tail
from .terms import Pair, enforce_direction
from .training_rows import DesignTerm


class TermTest(NamedTuple):
    """A test of a term against "no effect".

    Attributes
    ----------
    statistic : float
        F where the dispersion is estimated, else χ².
    reference_df : float
        Degrees of freedom that it is compared with.
    p_value : float
    """

    statistic: float
    reference_df: float
    p_value: float


# Entries of covariances up to which standard errors and tests wait until they are asked for: until
# then, a model holds these covariances, 8 MB of them (1000 coefficients of one output).
MAX_DEFERRED = 1 << 20
NO_TEST = TermTest(0.0, 0.0, 1.0)  # of a term that nothing is left of
MAX_PRIOR = 1e6  # prior variances, in units of the posterior ones: infinite without a penalty
_SINGULAR = 1e-10  # eigenvalues, in units of the largest, that are rounding errors


def build_predictor(
    model: FittedDesign, losses: Sequence[Loss], requested: Container[Pair] = (),
    location: float = 0.0,
) -> AdditivePredictor:  # fmt: skip
    """The fitted model, its terms at their codes; pairs that have vanished only if requested.

    Pairs that a search added and that the last fit left next to nothing of are dropped without
    another fit: the other terms stay as they are, and the degrees of freedom of the model (`edf_`)
    still count them. Standard errors and tests are computed when they are first asked for.
    `location` is added to the intercepts.
    """
    n = model.design.total_weight
    residual_df = [
        max(n - float(fit.edf.sum()), 1.0) if loss.estimates_dispersion else np.inf
        for loss, fit in zip(losses, model.fits, strict=True)
    ]
    slices = [
        (_without_rows(term), span, smoothing)
        for term, span, smoothing in model.design.slices()
        if term.pair is None
        or term.columns in requested
        or max(float(fit.edf[span].sum()) for fit in model.fits) >= PAIRS.min_edf
    ]
    fits, effects = without_levels(model)
    books = model.design.books
    functions = tuple(_function(term, span, fits, effects) for term, span, _ in slices)
    intercept = np.array([fit.beta[0] for fit in fits]) + location
    is_category = tuple(book.kind == "category" for book in books)
    infer = partial(_infer, functions, slices, fits, effects, residual_df, is_category)
    predictor = AdditivePredictor.deferred(books, functions, intercept, infer)
    n_entries = sum(len(fit.active) ** 2 for fit in fits)
    n_entries += sum(effect.covariance.size for effect in effects)
    return predictor if n_entries <= MAX_DEFERRED else replace(predictor)  # reads all fields


def _without_rows(term: DesignTerm) -> DesignTerm:
    """A term without the values of its functions at the training rows."""
    if isinstance(term.basis, LevelBasis) or term.basis.at_rows is None:
        return term
    return replace(term, basis=replace(term.basis, at_rows=None))


def _function(
    term: DesignTerm, span: slice, fits: Sequence[PenalisedFit], effects: Sequence[LevelEffects]
) -> FittedTerm:
    """A term as it predicts: without standard errors and tests."""
    if isinstance(term.basis, LevelBasis):
        values = np.stack([effect.values for effect in effects], axis=-1)
    else:
        values = np.stack([term.basis.evaluate(fit.beta[span]) for fit in fits], axis=-1)
    if term.shapes:
        values = enforce_direction(values, term.shapes)
    none, pair = np.zeros(0), term.pair
    if pair is not None:
        values = values.reshape(pair.first.size, pair.second.size, -1)
    return FittedTerm(
        term.name, term.kind, term.columns, values, none, term.counts, none, none, none, none,
        coarse=() if pair is None else (pair.first.of_code, pair.second.of_code),
        positions=() if pair is None else pair.positions,
        linear=() if pair is None else pair.linear,
        n_functions=term.basis.n_functions, extrapolation=term.extrapolation,
    )  # fmt: skip


def _infer(
    functions: Sequence[FittedTerm], slices: Slices, fits: Sequence[PenalisedFit],
    effects: Sequence[LevelEffects], residual_df: Sequence[float], is_category: Sequence[bool],
) -> tuple[tuple[FittedTerm, ...], Posterior]:  # fmt: skip
    """The terms with standard errors and tests, and the posterior."""
    with limit_blas(1):  # matrices of single terms are small
        outputs = [_Output.of(slices, fit, df) for fit, df in zip(fits, residual_df, strict=True)]
        unseen = [
            new_levels(term, [is_category[j] for j in term.columns], fits, span, smoothing)
            for term, span, smoothing in slices
        ]
        terms = []
        for i, function in enumerate(functions):
            if isinstance(slices[i][0].basis, LevelBasis):
                term = fitted_levels(i, function, outputs, effects)
            else:
                term = fitted_term(i, function, outputs)
            added = unseen[i].by_code().reshape(term.errors.shape)
            terms.append(replace(term, errors=np.sqrt(term.errors**2 + added)))
        return tuple(terms), posterior_of(slices, fits, effects, unseen)


@dataclass(frozen=True)
class _Output:
    """The fit of one output, and how its pairs are divided.

    Attributes
    ----------
    slices
        The terms, and where their coefficients and their smoothing parameters are.
    fit : PenalisedFit
        Without the levels of a large factor.
    residual_df : float
    projections : dict of int to Projection
        By the positions of pairs.
    penalty : ndarray
        Penalties of all coefficients.
    """

    slices: Slices
    fit: PenalisedFit
    residual_df: float
    projections: dict[int, Projection]
    penalty: np.ndarray

    @classmethod
    def of(cls, slices: Slices, fit: PenalisedFit, residual_df: float) -> _Output:
        projections = {
            i: Projection.of(slices[i][0], sides, fit.beta[slices[i][1]])
            for i, sides in pair_sides(slices).items()
        }
        penalty = np.zeros(len(fit.beta))
        for term, span, smoothing in slices:
            if isinstance(term.basis, TermBasis):
                smoothing_parameters = np.exp(fit.rho[smoothing])
                penalty[span] = (
                    term.basis.penalty * smoothing_parameters[term.basis.smoothing_index]
                )
        return cls(slices, fit, residual_df, projections, penalty)

    def edf(self, i: int) -> float:
        """Effective degrees of freedom of the displayed function of a term.

        A large factor has those of its own effects, without what moves to it.
        """
        edf = float(self.fit.edf[self.slices[i][1]].sum())
        for at, projection in self.projections.items():
            for axis, side in enumerate(projection.sides):
                if i in (at, side.term):
                    moved = projection.moved_edf(
                        axis, self.slices, self.slices[at][1], self.fit, self.penalty
                    )
                    edf += -moved if i == at else moved
        return edf

    def displayed(self, i: int) -> DisplayedFunction:
        """The displayed function of a term."""
        parts, deviations = displayed_parts(i, self.slices, self.projections)
        term = self.slices[i][0]
        in_basis = term.basis.n_functions if isinstance(term.basis, TermBasis) else 0
        shape = term.counts.size, in_basis
        return DisplayedFunction.of(parts, deviations, self.fit, self.penalty, shape)

    def smoothing(self, i: int) -> np.ndarray:
        """Smoothing parameters of a term."""
        return np.exp(self.fit.rho[self.slices[i][2]])


def fitted_levels(
    i: int, function: FittedTerm, outputs: Sequence[_Output], effects: Sequence[LevelEffects]
) -> FittedTerm:
    """A large factor of all outputs."""
    errors = [
        output.displayed(i).level_errors(effect, output.fit)
        for output, effect in zip(outputs, effects, strict=True)
    ]
    tests = [
        mixture_test(effect.statistic, effect.null_weights, output.residual_df)
        for output, effect in zip(outputs, effects, strict=True)
    ]
    statistic, reference_df, p_value = np.array(tests).T
    edf = np.array([output.edf(i) for output in outputs])
    parameters = np.stack([output.smoothing(i) for output in outputs], axis=-1)
    return replace(
        function, errors=np.stack(errors, axis=-1), edf=edf, statistic=statistic, p_value=p_value,
        smoothing=parameters, reference_df=reference_df,
    )  # fmt: skip


def fitted_term(i: int, function: FittedTerm, outputs: Sequence[_Output]) -> FittedTerm:
    """A term of all outputs; its errors, edf and tests are those of its displayed function."""
    term, span, _ = outputs[0].slices[i]
    edf = np.array([output.edf(i) for output in outputs])
    errors, increment_errors, tests = [], [], []
    has_increments = term.pair is None and term.kind != "category"
    for output in outputs:
        shown = output.displayed(i)
        errors.append(shown.errors(with_intercept=term.pair is None))
        if has_increments:
            increment_errors.append(shown.increment_errors())
        tests.append(shown.test(term.kind == "category", output.residual_df))
    statistic, reference_df, p_value = np.array(tests).T
    main_parts: tuple[np.ndarray, ...] = ()
    if term.pair is not None:
        main_parts = tuple(
            np.stack(
                [output.projections[i].moved(axis, output.fit.beta[span]) for output in outputs],
                axis=-1,
            )
            for axis in (0, 1)
        )
    return replace(
        function, errors=np.stack(errors, axis=-1).reshape(function.values.shape), edf=edf,
        statistic=statistic, p_value=p_value, reference_df=reference_df, main_parts=main_parts,
        smoothing=np.stack([output.smoothing(i) for output in outputs], axis=-1),
        increment_errors=np.stack(increment_errors, axis=-1) if has_increments else None,
    )  # fmt: skip


@dataclass(frozen=True)
class DisplayedFunction:
    """A function that is shown: a linear combination of coefficients and deviations.

    The coefficients are those of the active set: functions outside of it have next to no variance.
    Deviations come from the sample of rows. They are independent, with a mean of zero and a
    variance of one.

    Attributes
    ----------
    functions, in_basis : ndarray of shape (n_codes, n), (n_functions, n)
        The combinations of coefficients at the codes of the term, and in its basis.
    deviations : Deviations
        The combinations of deviations, in the same two forms.
    beta, prior_variance : ndarray of shape (n,)
        Of the coefficients.
    posterior, of_smoothing : ndarray of shape (n, n)
        Covariance of them, and what the uncertainty of the smoothing parameters adds to it.
    intercept : ndarray of shape (1 + n,)
        Covariances of the intercept, its variance first.
    at : ndarray of int
        Positions of the coefficients in the active set.
    """

    functions: np.ndarray
    in_basis: np.ndarray
    deviations: Deviations
    beta: np.ndarray
    prior_variance: np.ndarray
    posterior: np.ndarray
    of_smoothing: np.ndarray
    intercept: np.ndarray
    at: np.ndarray

    @classmethod
    def of(
        cls, parts: Sequence[DisplayedPart], sampling: Sequence[Deviations], fit: PenalisedFit,
        penalty: np.ndarray, shape: tuple[int, int],
    ) -> DisplayedFunction:  # fmt: skip
        """The sum of parts; `shape` is that of the term's basis."""
        functions, in_basis = [np.zeros((shape[0], 0))], [np.zeros((shape[1], 0))]
        at = [np.zeros(0, np.int64)]
        for part in parts:
            positions = fit.active_in(part.span)
            columns = fit.active[positions] - part.span.start
            functions.append(part.functions[:, columns])
            in_basis.append(part.in_basis[:, columns])
            at.append(positions)
        none = Deviations(*(np.zeros((size, 0)) for size in shape))
        deviations = Deviations(*map(np.hstack, zip(none, *sampling, strict=True)))
        places = np.concatenate(at)
        active, of_smoothing = fit.active[places], fit.smoothing_deviations[places]
        posterior = fit.covariance[np.ix_(places, places)]
        prior_variance = fit.dispersion / np.maximum(penalty[active], 1e-300)
        return cls(
            np.hstack(functions), np.hstack(in_basis), deviations, fit.beta[active],
            np.minimum(prior_variance, MAX_PRIOR * posterior.diagonal()), posterior,
            of_smoothing @ of_smoothing.T,
            np.append(fit.covariance[0, 0], fit.covariance[0, places]), places,
        )  # fmt: skip

    def errors(self, with_intercept: bool) -> np.ndarray:
        """Standard errors at the codes, of the function or of its sum with the intercept.

        Where a centred line crosses zero its own variance is zero, whatever it is a line through.
        Bands of the sum with the intercept cover what smoothing leaves out (Marra and Wood 2012).
        """
        variances = _row_products(self._covariances, self.functions)
        variances += _row_products(self.deviations.functions, self.deviations.functions)
        if with_intercept:
            variances += self.intercept[0] + 2 * self.functions @ self.intercept[1:]
        return np.sqrt(np.maximum(variances, 0.0))

    def increment_errors(self) -> np.ndarray:
        """Standard errors of the increments from bin to bin of a column of numbers."""
        covariances, functions, deviations = (
            np.diff(values[1:], axis=0)
            for values in (self._covariances, self.functions, self.deviations.functions)
        )
        variances = _row_products(covariances, functions) + _row_products(deviations, deviations)
        return np.sqrt(np.maximum(variances, 0.0))

    @cached_property
    def _covariances(self) -> np.ndarray:
        """Of the function at the codes and the coefficients, smoothing parameters uncertain."""
        return self.functions @ (self.posterior + self.of_smoothing)

    def level_errors(self, effects: LevelEffects, fit: PenalisedFit) -> np.ndarray:
        """Standard errors of the sum of the effects of a large factor and this function."""
        errors, deviations = effects.standard_errors(self.functions, fit, self.at), self.deviations
        return np.sqrt(errors**2 + _row_products(deviations.functions, deviations.functions))

    def test(self, category: bool, residual_df: float) -> TermTest:
        """The test against "no effect": that of a variance for a category, else Wald's."""
        used = self.in_basis.any(axis=1) | self.deviations.in_basis.any(axis=1)
        in_basis, of_sample = self.in_basis[used], self.deviations.in_basis[used]
        beta = in_basis @ self.beta
        if not beta.any():
            return NO_TEST
        sampling = of_sample @ of_sample.T
        covariance = in_basis @ self.posterior @ in_basis.T + sampling
        prior = (in_basis * self.prior_variance) @ in_basis.T + sampling
        test = random_effects_test if category else wald_test
        return test(beta, covariance, prior, residual_df)


def _row_products(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Inner products of the rows of two matrices."""
    return np.einsum("ij,ij->i", first, second)


def wald_test(
    beta: np.ndarray, covariance: np.ndarray, prior: np.ndarray, residual_df: float = np.inf
) -> TermTest:
    """Wald's test in the directions that the data identify: those of at least half an edf.

    Penalties shrink the others. The directions of the largest posterior variances are no choice:
    where columns are missing in the same rows, the data do not tell the effects of their missing
    values apart, and the difference of these keeps the variance of its prior.
    """
    along, kappa = _along_identified(beta, covariance, prior)
    used = kappa >= min(0.5, kappa.max())
    rank, statistic = int(np.count_nonzero(used)), float(np.sum(along[used] ** 2))
    if residual_df == np.inf:
        return TermTest(statistic, float(rank), float(special.chdtrc(rank, statistic)))
    ratio = statistic / rank
    return TermTest(ratio, float(rank), float(special.fdtrc(rank, residual_df, ratio)))


def random_effects_test(
    beta: np.ndarray, covariance: np.ndarray, prior: np.ndarray, residual_df: float = np.inf
) -> TermTest:
    """The test of a variance, from a posterior and the covariance of its prior, φ/D."""
    along, kappa = _along_identified(beta, covariance, prior)
    return mixture_test(float(np.sum(kappa * along**2)), kappa**2, residual_df)


def _along_identified(
    beta: np.ndarray, covariance: np.ndarray, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients along directions of the posterior variance 1, and κ, the edf of each direction.

    The prior variance of a direction is 1/(1 − κ).
    """
    scale = np.sqrt(np.maximum(covariance.diagonal(), 1e-300))
    variances, axes = eigh(covariance / np.outer(scale, scale))
    positive = variances > _SINGULAR * variances.max(initial=0.0)
    whitening = axes[:, positive] / np.sqrt(variances[positive]) / scale[:, None]
    prior_variances, directions = eigh(whitening.T @ prior @ whitening)
    kappa = 1 - 1 / np.maximum(prior_variances, 1.0)
    return directions.T @ (whitening.T @ beta), kappa


def mixture_test(statistic: float, weights: np.ndarray, residual_df: float) -> TermTest:
    """The test of a statistic that is a sum of χ² variables with these weights under "no effect".

    It is scaled to the mean of its degrees of freedom, those of a χ² variable with the same mean
    and variance (Satterthwaite).
    """
    if not weights.sum() > 0:
        return NO_TEST
    df = float(weights.sum() ** 2 / np.sum(weights**2))
    ratio = statistic / float(weights.sum())
    p_value = mixture_tail(statistic, weights, residual_df)
    return TermTest(ratio * df if residual_df == np.inf else ratio, df, p_value)
