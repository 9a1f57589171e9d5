r"""The fitted terms with their standard errors, degrees of freedom and tests of "no effect".

Curves and pairs of numbers have Wald's test :math:`b^\top V^{-} b` with a pseudo-inverse of rank
about edf (Wood 2013a), a column together with all of its pairs. It has no power against the many
small coefficients of a category or of its pairs, whose test is that of a variance (Wood 2013b, *A
simple test for random effects in regression models*). With D the penalties of the coefficients b
and :math:`V = φ(M + D)^{-1}` their posterior covariance, b without an effect has the covariance
:math:`φ(M + D)^{-1} M (M + D)^{-1}`, hence

.. math:: b^\top M b / φ \sim \sum_i κ_i^2 χ^2_1, \qquad
          1 - κ = \operatorname{eig}(D^{1/2} (M + D)^{-1} D^{1/2}).

If all κ are equal (levels of as many rows), this is the F test of an unpenalised factor. M is the
Gram matrix of the term without what the penalised other terms explain of it. The κ sum to the edf
of the term, and the eigenvectors with :math:`κ ≥ ½` are the directions of Wald's test.

Where φ is estimated, F takes the place of χ², with n − edf residual degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import special
from scipy.linalg import solve_triangular

from ..._util.threads import cached_property
from ...data.table_reader import TableReader
from ..losses import Loss
from ..rows.basis import LevelBasis
from ..solvers.levels import BlockCovariance
from ..solvers.pirls import PenalisedFit
from ..solvers.reml import Penalties
from .fitting import FittedDesign, JointFit
from .levels import (
    LevelEffects,
    NewLevels,
    level_deviation,
    new_levels,
    separate_levels,
    variance_interval,
)
from .pairs import PAIRS
from .predictor import AdditivePredictor, FittedTerm, LevelPosterior, Posterior
from .purification import Projection, Slices, displayed_parts, pair_sides
from .score_tests import mixture_tail
from .terms import enforce_direction
from .training_rows import DesignTerm

# -- terms ----------------------------------------------------------------------------------------


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


NO_TEST = TermTest(0.0, 0.0, 1.0)  # of a term that nothing is left of
MAX_PRIOR = 1e6  # prior variances, in units of the posterior ones: infinite without a penalty
_SINGULAR = 1e-12  # posterior variances, in units of the prior ones, that are rounding errors


def build_predictor(
    model: FittedDesign, losses: Sequence[Loss], requested: Container[tuple[int, int]],
    location: float, reader: TableReader, loss_given: str | Loss, classes: np.ndarray | None,
) -> AdditivePredictor:  # fmt: skip
    """The fitted model, its terms at their codes; pairs that have vanished only if requested.

    Pairs that a search added and that the last fit left next to nothing of are dropped without
    another fit: the other terms stay as they are, and the degrees of freedom of the model (`edf_`)
    still count them. `location` is added to the intercepts.
    """
    n, books = model.design.total_weight, model.design.books
    slices = [
        (term.place_at_knots(), span, smoothing)
        for term, span, smoothing in model.design.slices()
        if term.pair is None
        or term.columns in requested
        or max(float(fit.edf[span].sum()) for fit in model.fits) >= PAIRS.min_edf
    ]
    outputs, penalties = [], Penalties.from_bases(model.design.bases)
    residual_df = np.inf
    fits, effects = separate_levels(model)
    if model.joint is not None:
        losses = [model.joint.loss] * len(fits)
    for k, (loss, all_coefficients) in enumerate(zip(losses, model.fits, strict=True)):
        df = max(n - float(all_coefficients.edf.sum()), 1.0)
        df = df if loss.estimates_dispersion else np.inf
        residual_df = min(residual_df, df)
        levels = effects[k] if effects else None
        penalty = penalties.diagonal(all_coefficients.rho)[: len(fits[k].beta)]
        outputs.append(_Output.from_fit(slices, fits[k], df, penalty, levels, not loss.has_times))
    unseen, deviations = [], []
    for term, span, smoothing in slices:
        is_category = [books[j].kind == "category" for j in term.columns]
        unseen.append(new_levels(term, is_category, fits, span, smoothing))
        deviations.append(level_deviation(term, is_category))
    joint = None if model.joint is None else _joint_output(model.joint, slices, effects)
    if model.joint is not None and joint is not None:  # scores are combinations of predictors
        deviations = [float(np.linalg.norm(model.joint.loss.coding[0])) * d for d in deviations]
    terms = tuple(
        _fitted_term(i, outputs, unseen[i], deviations[i], joint) for i in range(len(slices))
    )
    intercept = np.array([fit.beta[0] for fit in fits]) + location
    posterior = _posterior(slices, fits, effects, unseen, model.joint)
    return AdditivePredictor(
        reader, books, terms, intercept, posterior, loss_given, classes, residual_df=residual_df
    )


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
    levels : LevelEffects, optional
        Effects of the levels of a large factor.
    has_intercept : bool
        Whether the intercept is estimated, and its error a part of bands.
    """

    slices: Slices
    fit: PenalisedFit
    residual_df: float
    projections: dict[int, Projection]
    penalty: np.ndarray
    levels: LevelEffects | None
    has_intercept: bool

    @classmethod
    def from_fit(
        cls, slices: Slices, fit: PenalisedFit, residual_df: float, penalty: np.ndarray,
        levels: LevelEffects | None, has_intercept: bool,
    ) -> _Output:  # fmt: skip
        projections = {
            i: Projection.from_term(slices[i][0], sides, fit.beta[slices[i][1]])
            for i, sides in pair_sides(slices).items()
        }
        return cls(slices, fit, residual_df, projections, penalty, levels, has_intercept)

    @cached_property
    def _joint_terms(self) -> list[int]:
        """Terms of several columns."""
        return [k for k, (term, *_) in enumerate(self.slices) if len(term.columns) > 1]

    def edf(self, i: int) -> float:
        """Effective degrees of freedom of the displayed function of a term.

        A large factor has those of its own effects, without what moves to it.
        """
        edf = float(self.fit.edf[self.slices[i][1]].sum())
        for k, projection in self.projections.items():
            for axis, side in enumerate(projection.sides):
                if i in (k, side.term):
                    moved = projection.moved_edf(
                        axis, self.slices, self.slices[k][1], self.fit, self.penalty
                    )
                    edf += -moved if i == k else moved
        return edf

    def displayed_function(self, i: int) -> DisplayedFunction:
        """The displayed function of a term: the sum of its parts."""
        fit, term = self.fit, self.slices[i][0]
        parts, sampling = displayed_parts(i, self.slices, self.projections)
        none = np.zeros((term.counts.size, 0))
        combined, places = [none], [np.zeros(0, np.int64)]
        for functions, span in parts:
            positions = fit.active_in(span)
            combined.append(functions[:, fit.active[positions] - span.start])
            places.append(positions)
        index = np.concatenate(places)
        smoothing_deviations = fit.smoothing_deviations[index]
        return DisplayedFunction(
            np.hstack(combined), np.hstack([none, *sampling]),
            fit.covariance[np.ix_(index, index)] + smoothing_deviations @ smoothing_deviations.T,
            np.append(fit.covariance[0, 0], fit.covariance[0, index]), index,
        )  # fmt: skip

    def test(self, i: int) -> TermTest:
        """The test of a pair, or of a column together with its pairs.

        All functions of numbers have one test, each category and each pair with a category another:
        the smallest p-value counts, times their number (Bonferroni).
        """
        tested, columns = [i], self.slices[i][0].columns
        if len(columns) == 1:
            tested += [k for k in self._joint_terms if columns[0] in self.slices[k][0].columns]
        category_terms = [k for k in tested if _has_levels(self.slices[k][0])]
        number_terms = [k for k in tested if k not in category_terms]
        tests = [self._test(wald_test, number_terms)] if number_terms else []
        tests += [self._test(random_effects_test, [k]) for k in category_terms]
        smallest = min(tests, key=lambda test: test.p_value)
        return smallest._replace(p_value=min(len(tests) * smallest.p_value, 1.0))

    def level_sd(self, i: int, deviation: float) -> np.ndarray:
        """Standard deviation of the levels of a term, and the ends of its interval of 95 %.

        `deviation` is that for a smoothing parameter and a dispersion of one. A large factor has
        the quantiles of a χ² variable in the place of the likelihood.
        """
        (term, span, smoothing), fit = self.slices[i], self.fit
        sd = deviation * np.sqrt(fit.dispersion / np.exp(fit.rho[smoothing][0]))
        if isinstance(term.basis, LevelBasis):
            df = max(float(np.sum(fit.edf[span] ** 2)), 1.0)
            return sd * np.sqrt(
                [1.0, df / special.chdtri(df, 0.025), df / special.chdtri(df, 0.975)]
            )
        index = fit.active_in(span)
        if not len(index):
            return np.zeros(3)
        prior = fit.dispersion / self.penalty[fit.active[index]]
        ends = variance_interval(
            fit.beta[fit.active[index]], fit.posterior.block(index), prior, self.residual_df
        )
        return sd * np.sqrt([1.0, *ends])

    def _test(self, test: Callable[..., TermTest], terms: Sequence[int]) -> TermTest:
        """The test of the coefficients of some terms, those of the active set."""
        if isinstance(self.slices[terms[0]][0].basis, LevelBasis):
            assert self.levels is not None
            return mixture_test(self.levels.statistic, self.levels.null_weights, self.residual_df)
        index = np.concatenate([self.fit.active_in(self.slices[k][1]) for k in terms])
        beta, covariance = self.fit.beta[self.fit.active[index]], self.fit.posterior.block(index)
        if not beta.any():
            return NO_TEST
        prior = self.fit.dispersion / np.maximum(self.penalty[self.fit.active[index]], 1e-300)
        prior = np.minimum(prior, MAX_PRIOR * covariance.diagonal())
        return test(beta, covariance, prior, self.residual_df)


def _joint_output(
    joint: JointFit, slices: Slices, effects: Sequence[LevelEffects]
) -> _Output | None:
    """The fit of all outputs as one of which terms are tested; None if each has its own tests."""
    if not joint.loss.shares_smoothing:
        return None
    m = joint.loss.n_predictors
    scaled = [(term, slice(m * s.start, m * s.stop), smoothing) for term, s, smoothing in slices]
    levels = None
    if effects:  # outputs are independent: their statistics add up
        null_weights = np.concatenate([item.null_weights for item in effects])
        statistic = sum(item.statistic for item in effects)
        levels = replace(effects[0], statistic=statistic, null_weights=null_weights)
    return _Output(scaled, joint.fit, np.inf, {}, joint.penalty, levels, True)


def _has_levels(term: DesignTerm) -> bool:
    """Whether a term is a category, or a pair with one."""
    if term.pair is None:
        return term.kind == "category"
    return any(len(positions) == 0 for positions in term.pair.positions)


def _fitted_term(
    i: int, outputs: Sequence[_Output], unseen: NewLevels, deviation: float, joint: _Output | None
) -> FittedTerm:
    """A term of all outputs; its errors and edf are those of its displayed function."""
    term, span, smoothing = outputs[0].slices[i]
    pair, basis = term.pair, term.basis
    has_increments = len(term.columns) == 1 and term.kind != "category"
    values, errors, increments, tests = [], [], [], []
    for output in outputs:
        shown, fit = output.displayed_function(i), output.fit
        if isinstance(basis, LevelBasis):
            assert output.levels is not None
            values.append(output.levels.values)
            level_errors = output.levels.standard_errors(shown.functions, fit, shown.index)
            variances = level_errors**2 + _row_products(shown.deviations, shown.deviations)
            errors.append(np.sqrt(variances))
        else:
            values.append(basis.evaluate(fit.beta[span]))
            errors.append(shown.errors(with_intercept=pair is None and output.has_intercept))
        if joint is None:
            tests.append(output.test(i))
        if has_increments:
            increments.append(shown.increment_errors())
    tabulate_codes = np.stack(values, axis=-1)
    if term.shapes:
        tabulate_codes = enforce_direction(tabulate_codes, term.shapes)
    main_parts: tuple[np.ndarray, ...] = ()
    if pair is not None:
        tabulate_codes = tabulate_codes.reshape(*(side.size for side in pair.coarse), -1)
        main_parts = tuple(
            np.stack([o.projections[i].move(axis, o.fit.beta[span]) for o in outputs], axis=-1)
            for axis in (0, 1)
        )
    if joint is not None:
        tests = [joint.test(i)] * len(outputs)
    statistic, reference_df, p_value = np.array(tests).T
    return FittedTerm(
        term.name, term.kind, term.columns, tabulate_codes,
        np.sqrt(np.stack(errors, axis=-1) ** 2 + unseen.functions**2 @ unseen.variances.T)
        .reshape(tabulate_codes.shape),
        term.counts, np.array([output.edf(i) for output in outputs]), statistic, p_value,
        np.stack([np.exp(output.fit.rho[smoothing]) for output in outputs], axis=-1),
        reference_df, coarse=() if pair is None else tuple(side.of_code for side in pair.coarse),
        main_parts=main_parts,
        increment_errors=np.stack(increments, axis=-1) if has_increments else None,
        positions=pair.positions if pair else (term.surface.knots,) if term.surface else (),
        linear=() if pair is None else pair.linear,
        n_functions=basis.n_functions, extrapolation=term.extrapolation, period=term.period,
        level_sd=(
            np.stack([(joint or output).level_sd(i, deviation) for output in outputs], axis=-1)
            if deviation else None
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class DisplayedFunction:
    """A function that is shown: a linear combination of coefficients and deviations.

    The coefficients are those of the active set: functions outside of it have next to no variance.
    Deviations come from the sample of rows. They are independent, with a mean of zero and a
    variance of one.

    Attributes
    ----------
    functions, deviations : ndarray of shape (n_codes, n), (n_codes, n_deviations)
        The combinations at the codes of the term.
    covariance : ndarray of shape (n, n)
        Of the coefficients, with what the uncertainty of the smoothing parameters adds.
    intercept : ndarray of shape (1 + n,)
        Covariances of the intercept, its variance first.
    index : ndarray of int
        Positions of the coefficients in the active set.
    """

    functions: np.ndarray
    deviations: np.ndarray
    covariance: np.ndarray
    intercept: np.ndarray
    index: np.ndarray

    def errors(self, with_intercept: bool) -> np.ndarray:
        """Standard errors at the codes, of the function or of its sum with the intercept.

        Where a centred line crosses zero its own variance is zero, whatever it is a line through.
        Bands of the sum with the intercept cover what smoothing leaves out (Marra and Wood 2012).
        """
        variances = _row_products(self._covariances, self.functions)
        variances += _row_products(self.deviations, self.deviations)
        if with_intercept:
            variances += self.intercept[0] + 2 * self.functions @ self.intercept[1:]
        return np.sqrt(np.maximum(variances, 0.0))

    def increment_errors(self) -> np.ndarray:
        """Standard errors of the increments from bin to bin of a column of numbers."""
        covariances, functions, deviations = (
            np.diff(values[1:], axis=0)
            for values in (self._covariances, self.functions, self.deviations)
        )
        variances = _row_products(covariances, functions) + _row_products(deviations, deviations)
        return np.sqrt(np.maximum(variances, 0.0))

    @cached_property
    def _covariances(self) -> np.ndarray:
        """Of the function at the codes and the coefficients."""
        return self.functions @ self.covariance


def _row_products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Inner products of the rows of two matrices."""
    return np.einsum("ij,ij->i", left, right)


# -- tests ----------------------------------------------------------------------------------------


def wald_test(
    beta: np.ndarray, covariance: np.ndarray, prior: np.ndarray, residual_df: float = np.inf
) -> TermTest:
    """Wald's test in the directions that the data identify: those of at least half an edf.

    Penalties shrink the others. The directions of the largest posterior variances are no choice:
    where columns are missing in the same rows, the data do not tell the effects of their missing
    values apart, and the difference of these keeps the variance of its prior.
    """
    along, kappa = _project_identified(beta, covariance, prior)
    used = kappa >= min(0.5, kappa.max())
    rank, statistic = int(np.count_nonzero(used)), float(np.sum(along[used] ** 2))
    if residual_df == np.inf:
        return TermTest(statistic, float(rank), float(special.chdtrc(rank, statistic)))
    ratio = statistic / rank
    return TermTest(ratio, float(rank), float(special.fdtrc(rank, residual_df, ratio)))


def random_effects_test(
    beta: np.ndarray, covariance: np.ndarray, prior: np.ndarray, residual_df: float = np.inf
) -> TermTest:
    """The test of a variance, from a posterior and the variances of its prior, φ/D."""
    along, kappa = _project_identified(beta, covariance, prior)
    return mixture_test(float(np.sum(kappa * along**2)), kappa**2, residual_df)


def _project_identified(
    beta: np.ndarray, covariance: np.ndarray, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients along directions of the posterior variance 1, and κ, the edf of each direction.

    `prior` are the variances of independent coefficients. In units of their roots, the posterior
    variance of a direction is 1 − κ.
    """
    root = np.sqrt(prior)
    variances, directions = np.linalg.eigh(covariance / np.outer(root, root))
    variances = np.clip(variances, _SINGULAR, 1.0)
    return directions.T @ (beta / root) / np.sqrt(variances), 1 - variances


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


# -- the posterior --------------------------------------------------------------------------------

# Coefficients of all outputs together, up to which their common posterior is saved: 5 MB. Beyond,
# draws of outputs are independent of each other.
MAX_COMMON_COEFFICIENTS = 1500
VARIANCE_SHARE = 0.99  # of a term, which the coefficients that are kept have; errors: 0.995
# Of the variance of levels: what they have in common with the other terms beyond the directions
# that are kept. A covariance that is left out has the size of its root.
LEFT_OUT_SHARE = 1e-4
MAX_LOADINGS = 1 << 21  # numbers that are saved for them, by output: 8 MB
_NEW_LEVEL = -1  # in the place of a coefficient's index, of a coefficient that fits do not have
_JITTER = 1e-10  # of the mean variance: the covariance is positive definite up to rounding errors


def _posterior(
    slices: Slices, fits: Sequence[PenalisedFit], effects: Sequence[LevelEffects],
    new_levels: Sequence[NewLevels], joint: JointFit | None,
) -> Posterior:  # fmt: skip
    """The posterior of some terms, with the uncertainty of the smoothing parameters.

    `effects` are those of a large factor, by output, which the fits are without. `new_levels` are
    what the fits do not show of the levels of each term.
    """
    bases, indices, factor = [], [np.zeros(1, np.int64)], None
    variances = [np.zeros((len(fits), 1))]  # of new levels, by coefficient
    for t, ((term, span, _), new) in enumerate(zip(slices, new_levels, strict=True)):
        active = np.zeros(0, np.int64)
        functions = np.zeros((term.counts.size, 0))
        if isinstance(term.basis, LevelBasis):
            factor = t
        else:
            active = np.unique(np.concatenate([_with_most_variance(fit, span) for fit in fits]))
            functions = term.basis.values[:, active]
        dtype = np.float32 if term.pair is None else np.float16
        bases.append(np.hstack([functions, new.functions]).astype(dtype))
        indices += [span.start + active, np.full(new.functions.shape[1], _NEW_LEVEL)]
        variances += [np.zeros((len(fits), len(active))), new.variances]
    coefficients = np.concatenate(indices)
    factors, level_parts = [], []
    for k, (fit, new_variances) in enumerate(zip(fits, np.hstack(variances), strict=True)):
        lower_factor, index, active = _factor_of(fit, coefficients, new_variances)
        factors.append(lower_factor)
        if factor is not None:
            level_covariance = np.zeros((len(effects[k].values), len(coefficients)))
            level_covariance[:, index], level_variances = effects[k].joint(fit, active)
            level_parts.append(
                _level_deviations(level_covariance, level_variances, factors[k], effects[k].shares)
            )
    levels = None
    if factor is not None:
        loadings, directions, unshared = zip(*level_parts, strict=True)
        levels = LevelPosterior(factor, loadings, directions, np.stack(unshared))
    positions = np.flatnonzero(coefficients == _NEW_LEVEL).tolist()
    coding = None
    if (
        joint is not None
        and isinstance(joint.fit.posterior, BlockCovariance)  # outputs are correlated
        and joint.loss.n_predictors * len(coefficients) <= MAX_COMMON_COEFFICIENTS
    ):
        m, new_variances = joint.loss.n_predictors, np.hstack(variances)[0]
        all_coefficients = m * coefficients + np.arange(m)[:, None]  # one predictor after the other
        all_coefficients[:, positions] = _NEW_LEVEL
        factors = [_factor_of(joint.fit, all_coefficients.ravel(), np.tile(new_variances, m))[0]]
        coding = joint.loss.coding
    lower = np.tri(len(factors[0]), dtype=bool)
    packed = np.stack([lower_factor[lower] for lower_factor in factors])
    return Posterior(tuple(bases), packed, levels, tuple(positions), coding)


def _factor_of(
    fit: PenalisedFit, coefficients: np.ndarray, new_variances: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The Cholesky factor of the covariance of some coefficients; where some are, and in the fit.

    Those outside of the active set have no variance, but for new levels.
    """
    index = np.flatnonzero(np.isin(coefficients, fit.active))
    active = np.searchsorted(fit.active, coefficients[index])
    covariance, deviations = np.diag(new_variances), fit.smoothing_deviations[active]
    uncertainty = deviations @ deviations.T  # of smoothing parameters
    covariance[np.ix_(index, index)] += fit.covariance[np.ix_(active, active)] + uncertainty
    return _cholesky(covariance), index, active


def _level_deviations(
    covariance: np.ndarray, variances: np.ndarray, factor: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loadings, directions and variances of `LevelPosterior`, for one output.

    `covariance` is that of the levels and the coefficients, with the Cholesky factor `factor`.
    """
    factor = factor.astype(np.float64)
    factor.flat[:: len(factor) + 1] += factor.diagonal() == 0  # coefficients without a variance
    whitened = solve_triangular(factor, covariance.T, lower=True).T
    values, vectors = np.linalg.eigh(whitened.T @ (shares[:, None] * whitened))
    left_out = np.cumsum(np.maximum(values, 0.0))
    begin = int(np.searchsorted(left_out, LEFT_OUT_SHARE * float(shares @ variances)))
    begin = max(begin, len(values) - MAX_LOADINGS // len(shares))
    directions = vectors[:, begin:]
    loadings = whitened @ directions
    shared = np.sum(loadings**2, axis=1)  # at most the variance, but for rounding errors
    loadings *= np.sqrt(np.minimum(variances / np.maximum(shared, 1e-300), 1.0))[:, None]
    unshared = np.maximum(variances - shared, 0.0)
    return tuple(values.astype(np.float32) for values in (loadings, directions, unshared))


def _with_most_variance(fit: PenalisedFit, span: slice) -> np.ndarray:
    """Coefficients of a term with nearly all of its variance.

    Functions are orthonormal over the rows: the mean of a term's variance is the sum of those of
    its coefficients.
    """
    variances, deviations = np.zeros(len(fit.beta)), fit.smoothing_deviations
    dense = fit.active[: len(fit.covariance)]
    variances[dense] = (
        fit.covariance.diagonal() + _row_products(deviations, deviations)[: len(dense)]
    )
    variances = variances[span]
    order = np.argsort(-variances, kind="stable")
    cumulative = np.cumsum(variances[order])
    count = np.searchsorted(cumulative, VARIANCE_SHARE * cumulative[-1:].sum()) + 1
    return order[:count][variances[order[:count]] > 0]


def _cholesky(covariance: np.ndarray) -> np.ndarray:
    covariance = covariance.copy()
    covariance.flat[:: len(covariance) + 1] += (
        _JITTER * float(np.trace(covariance)) / len(covariance)
    )
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:  # nearly singular: the factor of the nearest matrix
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        factor = np.linalg.qr(root.T, mode="r").T
    return factor.astype(np.float32)
