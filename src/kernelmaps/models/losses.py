r"""Losses of additive models: all that their solvers know about a loss, one class each.

An example with target y (+1 or −1 for a class) and cost c adds c ℓ(y, f) to the objective.

Newton's method takes the value, the derivative and the curvature of rows (:class:`Loss`). The
curvature may be an upper bound of the second derivative (of a loss with a kink, which is
smoothed): the step then minimises a majorizer, and cannot raise the objective. Close to the minimum
the share of the bound shrinks, and steps become Newton's.

Additive SVMs are trained by dual coordinate descent, one example at a time, which takes the dual
rules of a loss (:class:`DualRules`). The dual variable α of an example is the coefficient of ψ(x)
in w, as in scikit-learn's ``dual_coef_``; LIBLINEAR's α of a class is yα here. The duality gap is
the sum over the examples of Fenchel's inequality,

.. math:: c\,ℓ(y, f) + (cℓ)^*(-α) + α f ≥ 0, \qquad \text{equal for } α = -c\,ℓ'(y, f).

A loss may have one parameter beside the mean, a field that is None where it is to be estimated:
after each step of the coefficients it is the most likely one for their scores
(:meth:`Loss.estimate_parameter`), and a fitted model has the loss with it.

A new loss is one more class, with its name in `LOSSES`: estimators, solvers, exports and messages
find it there. Users give a name or an object with parameters, :mod:`kernelmaps.losses`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np

from .._util.arguments import argument, argument_error, check_number, parameter
from .._util.lazy import scipy
from . import tweedie
from .decision import best_codes, class_probabilities, sigmoid, softmax
from .risk_sets import RiskSets
from .rows.normal_equations import NormalEquations

# Width, in units of the targets' interquartile range, over which absolute losses are smoothed: a
# tenth of the standard error of the median of 1,000 rows.
_SMOOTHED_WIDTH = 0.003
# The same of the model that a fit of an absolute loss starts from: that of a Huber loss, nearly.
# From a constant, the working weights of narrow losses are those of the few rows near it, which may
# show no effect at all: with 60 rows, 15 % of the fits stayed constant beside clear effects.
START_WIDTH = 1.0
_MAX_ETA = 30.0  # exp(±η) is not followed beyond: e³⁰ is 10¹³
# Coefficients of all predictors of a softmax up to which Newton steps take the whole Hessian.
MAX_JOINT_COEFFICIENTS = 4000
_SATURATING_STEPS = 20  # of Fisher's scoring, from the target itself, which is close
_POWERS = 1.01, 1.99  # of Tweedie distributions, as in mgcv: at the ends, densities have many modes
# Of a scale that is estimated, in units of the targets' standard deviation: σ is followed to 1/1100
# of it, since the likelihood of rows that are met exactly grows without end.
_LEAST_LOG_SCALE = -7.0
Array: TypeAlias = np.ndarray
_LEAST, _ROUNDING = 1e-300, 2.0**-53  # the least number whose logarithm is taken, and 1 minus one


_POSITIVE = "a positive number or None", lambda value: 0 < value < np.inf


class LossTotals(NamedTuple):
    """Sums over rows that a likelihood needs beside the losses of a model.

    Attributes
    ----------
    weight, saturated, null, base : float
        Sums of the weights w, and of w times the smallest possible loss, the loss of the best
        constant, and the part of −log-likelihood that no model changes.
    """

    weight: float
    saturated: float
    null: float
    base: float

    def scale(self, factor: float) -> LossTotals:
        return LossTotals(*(factor * item for item in self))

    def __add__(self, other: Any) -> LossTotals:
        return LossTotals(*(a + b for a, b in zip(self, other, strict=True)))


class Link(NamedTuple):
    """A link: its inverse, a function of η, and the derivative of that as a function of the mean.

    Attributes
    ----------
    function, inverse, slope : callable
        η of the mean, the mean of η, and dμ/dη of the mean.
    """

    function: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    slope: Callable[[Any], Any]


LINKS = {
    "identity": Link(lambda mean: mean, lambda eta: eta, np.ones_like),
    "log": Link(np.log, np.exp, lambda mean: mean),
    "logit": Link(
        lambda mean: scipy.special.logit(mean), lambda eta: scipy.special.expit(eta),
        lambda mean: mean * (1 - mean),
    ),
}  # fmt: skip
"""Links of losses whose predictions are numbers. Exports write the same functions."""


class DualRules(NamedTuple):
    """A loss as dual coordinate descent sees it: plain functions of numbers, which are compiled.

    Attributes
    ----------
    value : callable (y, f, epsilon)
        ℓ(y, f) as SVMs have it: `Loss.svm_factor` times `Loss.value`.
    conjugate : callable (y, alpha, c, epsilon)
        (cℓ)*(−α), for an α that `step` can give; of arrays, too.
    step : callable (y, f, alpha, q, c, epsilon)
        The α that minimises the dual along one coordinate, where q is the dual's diagonal Q_ii: the
        score becomes f + q (α_new − α). And, for an α that stays at a bound, the derivative of the
        minimised dual from the bound inwards: a positive one holds α there, and shrinking compares
        it with the violations of other examples. It has no meaning where α moves or is not at a
        bound.
    start : callable (share) or None
        The best constant score, from the share of the costs that positive labels have; None where
        0 is a good start.
    """

    value: Callable[..., float]
    conjugate: Callable[..., float]
    step: Callable[..., tuple[float, float]]
    start: Callable[..., np.ndarray] | None = None


@dataclass(frozen=True)
class Loss:
    """A loss ℓ(y, η). Classifiers have y = ±1, the others numbers.

    The fields of a class are what users choose, and what files hold.
    """

    dual_rules: ClassVar[DualRules | None] = None  # of additive SVMs; None for a loss of GAMs alone
    dispersion = cast("float | None", None)  # φ of exp(−ℓ/φ) where that is known; else estimated
    for_gam = True  # whether GAMs have it: exp(−ℓ/φ) is a likelihood, or nearly
    has_labels = False  # whether y is ±1
    has_times = False  # whether y says if the time of a row ended with an event
    has_kinks = False  # whether the derivative jumps: see `Hinges`
    svm_factor = 1.0  # the loss of SVMs is so many times ℓ: (y − f)², but ½(y − f)² of GAMs
    # Largest second derivative of ℓ. Of a loss with kinks, the jump of its derivative: a second
    # derivative is this over a length, see `svm.problem.max_curvature`.
    max_curvature = 1.0
    is_quadratic = False  # whether ℓ is ½(y − η)²: a fit is one least-squares problem
    gradient_is_smooth = True  # whether it is more than signs of residuals, of which curves jump
    family = ""  # distribution of the targets, in words
    has_distribution = True  # whether GAMs know the distribution of observations
    has_variance = True  # whether weights may be inverse variances
    output_names: ClassVar[tuple[str, ...]] = ("prediction",)  # of a regressor
    has_scale = True  # whether the likelihood has a scale beside the mean
    link = "identity"  # a name in `LINKS`, or what classifiers have in its place
    is_ordered = False  # whether classes have an order, and targets are their indices
    null_has_parameter = False  # whether a constant has a parameter of its own for the deviance
    valid_target = 1.0  # a target that is possible, whatever the others are
    counts_trials = False  # whether exposures are numbers of trials, each of which is a row
    parameter = ""  # the field that is estimated with the smoothing parameters where it is None
    # Share of an upper bound in the curvature; the remainder is the second derivative itself.
    majorizer_share = 0.0
    # What fields must be, in words and as a test of a number.
    bounds: ClassVar[tuple[tuple[str, str, Callable[[float], bool]], ...]] = ()

    def __post_init__(self) -> None:
        for name, requirement, holds in self.bounds:
            value = getattr(self, name)
            if value is not None or "None" not in requirement:
                check_number(type(self).__name__, name, value, requirement, holds)

    def adapt_to_targets(self, y: Array, weight: Array) -> Loss:
        """The loss in units of the targets of a fit."""
        return self

    # -- predictions ------------------------------------------------------------------------------

    def mean(self, eta: Array) -> Array:
        """The inverse of the link."""
        with np.errstate(over="ignore"):  # far beyond the training rows
            return LINKS[self.link].inverse(eta)

    @property
    def has_ratios(self) -> bool:
        """Whether exponentials of effects are ratios: of means, odds or hazards."""
        return self.link != "identity"

    @property
    def takes_exposure(self) -> bool:
        """Whether a row's mean may be a multiple of what it was exposed to."""
        return self.link == "log" or self.counts_trials

    def with_exposure(self, y: Array, weight: Array, exposure: Array) -> tuple[Array, Array, Array]:
        """Targets, weights and offsets of rows with an exposure."""
        return y, weight, np.log(exposure)

    def positive_codes(self, n_classes: int) -> list[float]:
        """The class (its index) that each output calls +1; none where targets are indices."""
        raise NotImplementedError

    def n_outputs(self, n_classes: int) -> int:
        """Number of scores of a row, for a classifier."""
        return max(len(self.positive_codes(n_classes)), 1)

    def probabilities(self, scores: Array) -> Array:
        """Probabilities of all classes from scores (n, n_outputs), for a classifier."""
        raise NotImplementedError

    def output_scores(self, scores: Array, output: int) -> Array:
        """The η of one output by itself, from the scores (n, n_outputs) of all."""
        return scores[:, output]

    def joint_loss(
        self, n_classes: int, n_functions: float, totals: LossTotals
    ) -> JointLoss | None:
        """The loss of all outputs together; None if each is fitted by itself.

        Each output has `n_functions`, and `totals` are the sums of its `marginal_loss`.
        """
        return None

    @property
    def marginal_loss(self) -> Loss:
        """The loss of a single output, by which terms are chosen."""
        return self

    @property
    def columns_of_predictors(self) -> dict[str, tuple[str | int, ...] | None]:
        """Columns whose terms each of several predictors has, by argument; None for all."""
        return {}

    def n_common_predictors(self, n_outputs: int) -> int:
        """Linear predictors that have one likelihood; 0 if each output has its own."""
        return int(n_outputs == 1)

    def loss_of_rows(self, scores: Array, dispersion: Any) -> tuple[Loss, Any]:
        """The loss and the dispersion of rows with these scores, for checks of the first output."""
        return self, dispersion

    def best_codes(self, scores: Array, n_classes: int) -> Array:
        """Indices of the most probable classes."""
        return np.argmax(self.probabilities(scores), axis=1)

    # -- an estimated parameter -------------------------------------------------------------------

    @property
    def is_free(self) -> bool:
        """Whether its parameter is to be estimated."""
        return bool(self.parameter) and getattr(self, self.parameter) is None

    @property
    def n_free(self) -> int:
        """Number of estimated parameters, a scale among them."""
        return (self.has_scale and self.dispersion is None) + self.is_free

    def estimate_parameter(self, y: Array, eta: Array, weight: Array, edf: float) -> Loss:
        """The loss with the most likely parameter for rows with these scores.

        `edf` are the degrees of freedom that the scores use: the likelihood is the restricted one.
        """
        raise NotImplementedError

    def parameter_distance(self, other: Any) -> float:
        """How far two parameters are apart: about the relative difference."""
        raise NotImplementedError

    def adopt_parameter(self, other: Loss) -> Loss:
        """With the estimate that another loss holds, if the own parameter is to be estimated."""
        if not self.is_free or type(other) is not type(self):
            return self
        return replace(self, **{self.parameter: getattr(other, self.parameter)})

    # -- rows of a fit ----------------------------------------------------------------------------

    def value(self, y: Array, eta: Array) -> Array:
        """ℓ(y, η)."""
        assert self.dual_rules is not None
        return self.dual_rules.value(y, eta, getattr(self, "epsilon", 0.0)) / self.svm_factor

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """First derivative by η, and the curvature."""
        raise NotImplementedError

    def squared_gradient(self, y: Array, eta: Array) -> Array:
        """Square of the first derivative; of a row of several trials, its mean over them."""
        return self.derivatives(y, eta)[0] ** 2

    def with_weights_over(self, unit: float) -> Loss:
        """The loss for weights that are divided by a unit: a known dispersion is, too."""
        return self

    def with_dispersion(self, dispersion: float) -> Loss:
        """The loss for `base_measure`, where that is a function of φ."""
        return self

    def start_loss(self) -> Loss:
        """The loss of a model to start from: this one, unless its curvature is that of few rows."""
        return self

    def initial_intercept(self, y: Array, weight: Array, offset: Array) -> float:
        """An intercept to start from."""
        return float(np.average(y - offset, weights=weight))

    def location(self, y: Array, weight: Array, offset: Array) -> float:
        """What GAMs subtract from targets before a fit, and add to its intercept: 0 for most.

        Of a loss of y − η alone whose fit needs several steps, the median: where steps end depends
        on the size of the scores, which would include any constant in y.
        """
        return 0.0

    def add_majorizer(self, is_full: bool) -> Loss:
        """With the majorizer's share for the next Newton step, after a full or a damped one."""
        return self

    def correct_curvature(self, total_weight: float, value: float) -> Loss:
        """With the curvature that gives the right standard errors, for n rows with this loss."""
        return self

    def known_dispersion(self, total_weight: float, curvature: float) -> float | None:
        """φ from the number of rows and the sum of their curvatures; None: estimated."""
        return None

    @property
    def estimates_dispersion(self) -> bool:
        """Whether φ is estimated from the residuals, so that tests are F tests."""
        return self.dispersion is None

    def variance_slopes(self, y: Array, eta: Array) -> Array:
        """V'(μ)(y − μ)/V(μ), of the variance function V: zero where the variance is constant.

        With their mean s, an estimate of φ by Pearson's statistic is divided by 1 + s (Fletcher
        2012): of rare events, that statistic is large or small with a few events of small means.
        """
        return np.zeros_like(eta)

    def observations(self, y: Array) -> Array:
        """Targets as the distribution of observations has them: labels ±1 as 0 and 1."""
        return y

    def observation_distribution(
        self, eta: Array, error: Array, dispersion: float, residual_df: float
    ) -> Any:
        """Distribution (of scipy.stats) of observations whose η was estimated with an error.

        Of losses with `has_distribution`; that of labels is of 0 and 1.
        """
        raise NotImplementedError

    def expected_curvature(self, y: Array, eta: Array, dispersion: float) -> Array:
        """The curvature that standard errors rest on."""
        return self.derivatives(y, eta)[1]

    def working_residuals(self, y: Array, eta: Array) -> Array:
        """Residuals on the scale of η: (y − μ) dη/dμ."""
        gradient, curvature = self.derivatives(y, eta)
        return -gradient / curvature

    def deviance_residuals(self, y: Array, eta: Array) -> Array:
        """√(2(ℓ(y, η) − min ℓ)), with the sign of y minus its prediction."""
        excess = np.maximum(self.value(y, eta) - self.saturated_value(y), 0.0)
        return -np.sign(self.derivatives(y, eta)[0]) * np.sqrt(2 * excess)

    def target_error(self, y: Array) -> str | None:
        """What is wrong with targets, as the end of a message."""
        return None

    def saturated_value(self, y: Array) -> Array:
        """The smallest loss that each target can have."""
        return np.zeros_like(y)

    def base_measure(self, y: Array) -> Array:
        """The part of −log-likelihood that no model changes."""
        return np.zeros_like(y)

    def totals(self, y: Array, weight: Array, offset: Array, constant: float) -> LossTotals:
        """Sums over rows, those of weight zero left out; `constant` is the best constant score."""
        rows = weight > 0
        y, weight, offset = y[rows], weight[rows], offset[rows]
        row_values = self.saturated_value(y), self.value(y, constant + offset), self.base_measure(y)
        return LossTotals(float(weight.sum()), *(float(weight @ item) for item in row_values))

    def couple_rows(self, problem: NormalEquations, point: Any) -> NormalEquations:
        """The working problem at a point, with the second derivatives by the scores of two rows."""
        return problem

    def deviance(self, value: float, totals: LossTotals) -> float:
        """The deviance of rows with a sum of losses."""
        return 2 * (value - totals.saturated)

    def log_likelihood(self, value: float, totals: LossTotals, dispersion: float) -> float:
        """Of all rows, from the sum of their losses; a scale is the most likely one."""
        return -value - totals.base

    def deviance_explained(self, y: Array, eta: Array, weight: Array, offset: Array) -> float:
        """Share of the deviance 2Σw(ℓ(y, η) − min ℓ) of the best constant that η explains."""
        constant = self.initial_intercept(y, weight, offset) + offset
        smallest = self.saturated_value(y)
        residual, null = (float(weight @ (self.value(y, f) - smallest)) for f in (eta, constant))
        return 1 - residual / null if null > 0 else float(residual <= 0)


def _squared_error(y, f, epsilon):
    return (y - f) * (y - f)


def _squared_error_conjugate(y, alpha, c, epsilon):
    return 0.25 * alpha * (alpha / c) - alpha * y


def _squared_error_step(y, f, alpha, q, c, epsilon):
    return alpha - (f - y + 0.5 * alpha / c) / (q + 0.5 / c), 0.0


def _limit_scores(eta: Array) -> Array:
    """η, whose exponential is not followed beyond e³⁰."""
    return np.clip(eta, -_MAX_ETA, _MAX_ETA)


def _exp(eta: Array) -> Array:
    return np.exp(_limit_scores(eta))


def _moments(y: Array, weight: Array) -> tuple[float, float]:
    """Mean and variance."""
    mean = np.average(y, weights=weight)
    return mean, np.average((y - mean) ** 2, weights=weight)


@dataclass(frozen=True)
class _Dispersed(Loss):
    """A loss whose dispersion users may know."""

    dispersion: float | None = None
    bounds = (("dispersion", *_POSITIVE),)

    def with_weights_over(self, unit):
        return self if self.dispersion is None else replace(self, dispersion=self.dispersion / unit)


@dataclass(frozen=True)
class SquaredError(_Dispersed):
    """Squared error, ½(y − f)², of numbers with the same variance around their mean.

    Parameters
    ----------
    dispersion : float, optional
        The variance of the targets around their means, or a multiple of it if `sample_weight` has
        inverse variances; None estimates it.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveRegressor(loss=km.losses.SquaredError(dispersion=4.0))
    """

    dual_rules = DualRules(_squared_error, _squared_error_conjugate, _squared_error_step)
    family = "normal"
    svm_factor = 2.0
    is_quadratic = True

    def derivatives(self, y, eta):
        return eta - y, np.ones_like(eta)

    def log_likelihood(self, value, totals, dispersion):
        n, variance = totals.weight, self.dispersion
        if variance is None:
            return -0.5 * n * (np.log(2 * np.pi * max(2 * value / n, 1e-300)) + 1)
        return -0.5 * n * np.log(2 * np.pi * variance) - value / variance

    def observation_distribution(self, eta, error, dispersion, residual_df):
        return scipy.stats.t(residual_df, loc=eta, scale=np.sqrt(dispersion + error**2))


def _log_loss(y, f, epsilon):
    margin = y * f
    return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)


def _log_loss_conjugate(y, alpha, c, epsilon):
    """Of a = yα in [0, c]: a log(a/c) + (c − a) log(1 − a/c)."""
    a = y * alpha
    # Where one of them is 0, its logarithm is finite, and the product 0.
    above_zero, below_one = np.maximum(a / c, _LEAST), np.minimum(a / c, 1 - _ROUNDING)
    return a * np.log(above_zero) + (c - a) * np.log1p(-below_one)


def _log_loss_step(y, f, alpha, q, c, epsilon):
    """Solve t + q (c σ(t) − a) + y f = 0 for the new a = c σ(t).

    The left side has a derivative between 1 and 1 + q c/4, and is convex left of 0 and concave
    right of it: Newton's method from 0 approaches the root from one side. From another start (the
    last solution) it stays in its bracket.
    """
    margin, a = y * f, y * alpha
    low, high = -margin - q * (c - a), -margin + q * a
    t = np.log(a / (c - a)) if 0.0 < a < c else 0.0
    t = min(max(t, low), high)
    for _ in range(100):
        s = 1.0 / (1.0 + np.exp(-t))
        value = t + q * (c * s - a) + margin
        if value > 0.0:
            high = t
        else:
            low = t
        move = value / (1.0 + q * c * s * (1.0 - s))
        t -= move
        if t < low or t > high:
            t = 0.5 * (low + high)
        if abs(move) < 1e-9 * (1.0 + abs(t)):
            break
    return y * c / (1.0 + np.exp(-t)), 0.0


def _log_odds(share: Array) -> Array:
    share = np.clip(share, 1e-12, 1 - 1e-12)
    return np.log(share / (1 - share))


def _constant_with_offset(share: float, weight: Array, offset: Array, start: float) -> float:
    """The constant c for which the mean of σ(c + offset) is the share of positive labels."""

    def excess(constant: float) -> float:
        return float(np.average(scipy.special.expit(constant + offset), weights=weight)) - share

    width = float(np.ptp(offset)) + 1.0
    return float(scipy.optimize.brentq(excess, start - width, start + width))


def _softplus(x: Array) -> Array:
    """log(1 + exp(x)), without overflow; a quarter of the time of `np.logaddexp`."""
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0.0)


@dataclass(frozen=True)
class LogLoss(Loss):
    """Log loss, log(1 + exp(−y f)) of labels y = ±1, as in logistic regression.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveClassifier(loss=km.losses.LogLoss())
    """

    dual_rules: ClassVar[DualRules | None] = DualRules(
        _log_loss, _log_loss_conjugate, _log_loss_step, _log_odds
    )
    family, link, dispersion = "binomial", "logit", 1.0
    has_labels, has_variance = True, False
    max_curvature = 0.25

    def value(self, y, eta):
        return _softplus(-y * eta)

    def derivatives(self, y, eta):
        p = scipy.special.expit(-y * eta)  # of the other label
        return -y * p, np.maximum(p * (1 - p), 1e-12)

    def observations(self, y):
        return (y > 0).astype(np.float64)

    def initial_intercept(self, y, weight, offset):
        # Clipped: where the curvature is next to nothing, Newton steps are useless.
        share = np.clip(np.average(self.observations(y), weights=weight), 1e-6, 1 - 1e-6)
        constant = float(_log_odds(share) - np.average(offset, weights=weight))
        if np.ptp(offset) > 0:
            constant = _constant_with_offset(float(share), weight, offset, constant)
        return constant

    def observation_distribution(self, eta, error, dispersion, residual_df):
        return scipy.stats.bernoulli(scipy.special.expit(eta))

    def positive_codes(self, n_classes):
        return [float(k) for k in range(n_classes)] if n_classes > 2 else [1.0]

    def probabilities(self, scores):
        return class_probabilities(sigmoid(scores))

    def adopt_parameter(self, other):
        return other if isinstance(other, Multinomial) else self

    def joint_loss(self, n_classes, n_functions, totals):
        return Multinomial().joint_loss(n_classes, n_functions, totals)

    def best_codes(self, scores, n_classes):
        return best_codes(scores, n_classes)


@dataclass(frozen=True)
class Multinomial(LogLoss):
    """−log p of a row's class with :math:`p_k \\propto \\exp(s_k)`, scores that sum to zero.

    It is what "log_loss" is for three classes and more. Of one class against the others, log-odds
    have the log loss.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveClassifier(loss=km.losses.Multinomial())
    """

    dual_rules = None
    family, link = "multinomial", "softmax"

    def probabilities(self, scores):
        return super().probabilities(scores) if scores.shape[1] == 1 else softmax(scores)

    def n_common_predictors(self, n_outputs):
        return max(n_outputs - 1, 1)

    def output_scores(self, scores, output):
        if scores.shape[1] == 1:
            return scores[:, output]
        other_scores = np.delete(scores, output, axis=1)
        return scores[:, output] - scipy.special.logsumexp(other_scores, axis=1)

    def joint_loss(self, n_classes, n_functions, totals):
        if n_classes <= 2:
            return None
        is_separate = (n_classes - 1) * n_functions > MAX_JOINT_COEFFICIENTS
        return Softmax(n_classes=n_classes, is_separate=is_separate)


@dataclass(frozen=True)
class JointLoss(Loss):
    """A loss of several linear predictors of a row: scores η have a column for each of them."""

    n_predictors = 1
    shares_smoothing = False  # whether a term has the same smoothing parameters in all of them
    base = 0.0  # the part of −log-likelihood of a row that no model changes

    @property
    def coding(self) -> Array:
        """Combinations of predictors that outputs are: (n_outputs, n_predictors)."""
        return np.eye(self.n_predictors)

    @property
    def shift(self) -> Array:
        """What is added to the outputs."""
        return np.zeros(len(self.coding))

    @property
    def fitted(self) -> Loss:
        """The loss of the fitted model."""
        raise NotImplementedError

    def hessian(self, y: Array, eta: Array) -> dict[tuple[int, int], Array]:
        """Second derivatives by pairs (a, b) of predictors, a ≤ b; those left out are zero."""
        raise NotImplementedError


@dataclass(frozen=True)
class Softmax(JointLoss):
    r"""The multinomial loss of K classes as a fit sees it; y has +1 for a row's class, else −1.

    The scores are combinations of K − 1 predictors with orthonormal columns, :math:`s = Cη`: with a
    penalty that is the same for all predictors, another order of the classes is a rotation of η,
    and changes nothing.

    With `is_separate` the predictors are the scores themselves, and Newton steps take of the
    Hessian :math:`\mathrm{diag}(p) - pp^\top` its diagonal alone: K matrices of one class each in
    the place of one that is K − 1 times as large.
    """

    n_classes: int = 3
    is_separate: bool = False
    dispersion, has_variance = 1.0, False
    has_labels = shares_smoothing = True

    @property
    def fitted(self):
        return Multinomial()

    @property
    def n_predictors(self):
        return self.n_classes - (not self.is_separate)

    @property
    def coding(self):
        n = self.n_classes
        if self.is_separate:
            return np.eye(n)
        rank = np.arange(1.0, n)  # Helmert's contrasts
        contrasts = np.triu(np.ones((n, n)))[:, :-1] / np.sqrt(rank * (rank + 1))
        contrasts[np.arange(1, n), np.arange(n - 1)] = -np.sqrt(rank / (rank + 1))
        return contrasts

    def value(self, y, eta):
        scores = eta @ self.coding.T
        class_score = np.sum(np.where(y > 0, scores, 0.0), axis=1)
        return scipy.special.logsumexp(scores, axis=1) - class_score

    def _probabilities(self, eta: Array) -> Array:
        return np.clip(softmax(eta @ self.coding.T), 1e-12, 1 - 1e-12)

    def derivatives(self, y, eta):
        p = self._probabilities(eta)
        return (p - (y > 0)) @ self.coding, p * (1 - p)

    def hessian(self, y, eta):
        p, coding = self._probabilities(eta), self.coding
        if self.is_separate:
            return {(k, k): p[:, k] * (1 - p[:, k]) for k in range(self.n_classes)}
        mean = p @ coding
        return {
            (a, b): p @ (coding[:, a] * coding[:, b]) - mean[:, a] * mean[:, b]
            for a in range(self.n_predictors)
            for b in range(a, self.n_predictors)
        }

    def initial_intercept(self, y, weight, offset):
        shares = np.clip(np.average(y > 0, axis=0, weights=weight), 1e-6, 1.0)
        return np.log(shares) @ self.coding


@dataclass(frozen=True)
class LocationScale(Loss):
    """A normal distribution whose mean and log standard deviation are GAMs.

    −log-likelihood, ½(y − μ)²/σ² + log σ. Both have the terms of the model, with smoothing
    parameters of their own: a term that one of them does not need vanishes from it.

    Parameters
    ----------
    scale_terms, mean_terms : list of str or int, optional
        Names or positions of the columns whose terms the log standard deviation, or the mean, has:
        a pair if both of its columns are there. None, the default, is all of them; ``[]`` is a
        constant.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveRegressor(loss=km.losses.LocationScale(scale_terms=["x"]))
    """

    scale_terms: Sequence[str | int] | None = None
    mean_terms: Sequence[str | int] | None = None
    family, dispersion, has_variance = "normal", 1.0, False
    output_names = "mean", "log standard deviation"

    def __post_init__(self) -> None:
        for name in ("scale_terms", "mean_terms"):
            columns = getattr(self, name)
            if not isinstance(columns, list | tuple | None):
                raise argument_error("LocationScale", name, columns, "a list of columns, or None")
            object.__setattr__(self, name, None if columns is None else tuple(columns))

    @property
    def columns_of_predictors(self):
        return {"mean_terms": self.mean_terms, "scale_terms": self.scale_terms}

    @property
    def marginal_loss(self):
        return SquaredError()

    def n_common_predictors(self, n_outputs):
        return n_outputs

    def joint_loss(self, n_classes, n_functions, totals):
        variance = 2 * totals.null / totals.weight
        if not variance > 0:
            raise ValueError(
                "AdditiveRegressor: loss='location_scale' needs targets that differ: with equal "
                "ones there is no standard deviation. Use loss='squared_error'."
            )
        return StandardisedLocationScale(self, float(np.sqrt(variance)))

    def loss_of_rows(self, scores, dispersion):
        return SquaredError(), np.exp(2 * scores[:, 1])

    def observation_distribution(self, eta, error, dispersion, residual_df):
        """Normal, with the variances of observations, of their mean and of the log scale."""
        variance = np.exp(2 * (eta[:, 1] + error[:, 1] ** 2)) + error[:, 0] ** 2
        return scipy.stats.norm(eta[:, 0], np.sqrt(variance))


@dataclass(frozen=True)
class StandardisedLocationScale(JointLoss):
    """`LocationScale` as a fit sees it: of targets in units of their standard deviation.

    The Hessian is the expected one, which has no entries between the mean and the log scale.
    """

    fitted: Loss = LocationScale()
    unit: float = 1.0
    n_predictors, dispersion = 2, 1.0

    @property
    def base(self):
        return 0.5 * float(np.log(2 * np.pi)) + float(np.log(self.unit))

    @property
    def coding(self):
        return np.diag([self.unit, 1.0])

    @property
    def shift(self):
        return np.array([0.0, np.log(self.unit)])

    def _residuals(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """Residuals and 1/σ, in units of the targets' standard deviation."""
        return y / self.unit - eta[:, 0], np.exp(-np.maximum(eta[:, 1], _LEAST_LOG_SCALE))

    def value(self, y, eta):
        residual, root = self._residuals(y, eta)
        return 0.5 * (residual * root) ** 2 + np.maximum(eta[:, 1], _LEAST_LOG_SCALE)

    def derivatives(self, y, eta):
        residual, root = self._residuals(y, eta)
        gradient = np.column_stack([-residual * root**2, 1 - (residual * root) ** 2])
        return gradient, np.ones_like(gradient)

    def hessian(self, y, eta):
        _, root = self._residuals(y, eta)
        return {(0, 0): root**2, (1, 1): np.full_like(root, 2.0)}

    def initial_intercept(self, y, weight, offset):
        mean, variance = _moments((y - offset) / self.unit, weight)
        return np.array([mean, 0.5 * np.log(max(variance, 1e-12))])

    def deviance(self, value, totals):
        """Rows times the squared geometric mean of σ: the sum of squares, if σ is constant."""
        n = totals.weight
        return n * self.unit**2 * float(np.exp(2 * value / n - 1))


@dataclass(frozen=True)
class Binomial(LogLoss):
    """Shares of successes among trials, log(1 + exp(f)) − y f, with a logit link.

    The numbers of trials are the exposures of rows, and y the numbers of successes; without an
    exposure, y are shares from 0 to 1. Each trial counts as an observation, and weights of rows
    count as repeated ones: log-likelihood and AIC are those of single trials, less the logarithms
    of binomial coefficients, which R's have.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveRegressor(loss=km.losses.Binomial())
    """

    dual_rules, has_labels, counts_trials = None, False, True
    trials = cast("Any", 1.0)  # of a row

    def with_exposure(self, y, weight, exposure):
        return y / exposure, weight * exposure, np.zeros(len(y))

    def value(self, y, eta):
        return self.trials * _softplus(eta) - y * eta

    def derivatives(self, y, eta):
        p = scipy.special.expit(eta)
        return self.trials * p - y, np.maximum(self.trials * p * (1 - p), 1e-12)

    def squared_gradient(self, y, eta):
        p = scipy.special.expit(eta)
        return p**2 + y * (1 - 2 * p)

    observations = Loss.observations

    def saturated_value(self, y):  # some rows of a classifier have no trials
        failures, xlogy = self.trials - y, scipy.special.xlogy
        return xlogy(self.trials, self.trials) - xlogy(y, y) - xlogy(failures, failures)

    def target_error(self, y):
        if not ((y >= 0) & (y <= 1)).all():
            return (
                f"{argument('loss', 'binomial')} needs shares 0 <= y <= 1, or numbers of successes "
                f"y and those of trials as {parameter('exposure')}, which are at least y"
            )
        return None


@dataclass(frozen=True)
class BinomialCounts(Binomial):
    """The loss of y successes in trials, for rows that are checked or predicted."""

    trials: Any = 1.0

    def observation_distribution(self, eta, error, dispersion, residual_df):
        return BinomialMixture(self.trials, eta, error)


class BinomialMixture(NamedTuple):
    """Binomial distributions whose log-odds have a normal error.

    The integral over it is that of Gauss and Hermite with three nodes, exact for its variance. The
    methods are those of distributions of scipy.stats.
    """

    trials: Any
    eta: Array
    error: Array

    def _mean(self, function: Callable[[Any, Any, Any], Array], y: Any) -> Array:
        nodes = ((0.0, 2 / 3), (-np.sqrt(3), 1 / 6), (np.sqrt(3), 1 / 6))
        p = (scipy.special.expit(self.eta + node * self.error) for node, _ in nodes)
        parts = (function(y, self.trials, item) for item in p)
        return sum(weight * part for (_, weight), part in zip(nodes, parts, strict=True))

    def pmf(self, y: Any) -> Array:
        """Probability of y successes."""
        return self._mean(scipy.stats.binom.pmf, y)

    def cdf(self, y: Any) -> Array:
        """Probability of at most y successes."""
        return self._mean(scipy.stats.binom.cdf, y)

    def ppf(self, q: float) -> Array:
        """Quantiles."""
        low, high = np.full(len(self.eta), -1.0), np.zeros(len(self.eta)) + self.trials
        while (high - low > 1).any():
            middle = np.floor((low + high) / 2)
            is_enough = self.cdf(middle) >= q
            low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
        return high


def _squared_hinge(y, f, epsilon):
    slack = np.maximum(1.0 - y * f, 0.0)
    return slack * slack


def _squared_hinge_conjugate(y, alpha, c, epsilon):
    a = y * alpha
    return 0.25 * a * (a / c) - a


def _squared_hinge_step(y, f, alpha, q, c, epsilon):
    gradient = y * f - 1.0 + 0.5 * y * alpha / c
    return y * max(y * alpha - gradient / (q + 0.5 / c), 0.0), gradient


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 − yη)²."""

    dual_rules = DualRules(_squared_hinge, _squared_hinge_conjugate, _squared_hinge_step)
    has_labels = True
    for_gam = False
    max_curvature = 2.0

    def derivatives(self, y, eta):
        slack = 1 - y * eta
        return -2 * y * np.maximum(slack, 0.0), np.where(slack > 0, 2.0, 0.0)


def _amounts_error(loss: str, y: Array) -> str | None:
    """What is wrong with counts or amounts of this loss, as the end of a message."""
    if y.min(initial=0.0) < 0:
        return f"{argument('loss', loss)} needs y >= 0"
    return None if y.any() else f"{argument('loss', loss)} needs some y > 0"


@dataclass(frozen=True)
class _PowerVariance(Loss):
    """A loss of targets whose variance is φμ^p, with a logarithmic link; p is its `power`.

    ℓ' = μ^(1−p) (μ − y). The curvature is the expected one, whose Pearson statistic estimates φ.
    """

    link, power = "log", cast("Any", 1.0)

    def _powers(self, eta: Array) -> tuple[Array, Array]:
        """μ^(1−p) and μ^(2−p)."""
        mean = np.exp(eta)
        target_power = mean ** (1 - self.power)  # NumPy is fast for the exponents 0 and -1
        return target_power, mean * target_power

    def derivatives(self, y, eta):
        target_power, mean_power = self._powers(_limit_scores(eta))
        return mean_power - y * target_power, np.maximum(mean_power, 1e-12)

    def initial_intercept(self, y, weight, offset):
        target_power, mean_power = self._powers(offset)
        rate = np.average(y * target_power, weights=weight) / np.average(mean_power, weights=weight)
        return float(np.log(max(rate, 1e-12)))

    def variance_slopes(self, y, eta):
        return self.power * (y * _exp(-eta) - 1)


@dataclass(frozen=True)
class Poisson(_PowerVariance, _Dispersed):
    """Counts, exp(f) − y f, with a logarithmic link.

    Real counts vary more than Poisson's, and smoothing parameters estimated as if they did not
    follow the noise: the dispersion is estimated by default (quasi-Poisson, for any numbers
    y >= 0), with a correction for rare events (Fletcher 2012). The likelihood is that of exact
    Poisson counts.

    Parameters
    ----------
    dispersion : float, optional
        The variance of the counts over their means: 1 for a Poisson distribution, and for rows of
        piecewise exponential survival models. None estimates it.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveRegressor(loss=km.losses.Poisson(dispersion=1))
    """

    family, has_scale = "Poisson", False

    def value(self, y, eta):
        return _exp(eta) - y * eta

    def saturated_value(self, y):
        return y - scipy.special.xlogy(y, y)

    def base_measure(self, y):
        return scipy.special.gammaln(y + 1)

    def observation_distribution(self, eta, error, dispersion, residual_df):
        """Negative binomial, with the variance of counts and of their mean."""
        mean = _exp(eta)
        excess = np.maximum((dispersion - 1) * mean + (mean * error) ** 2, 0.0)
        ratio = np.maximum(excess / mean, 1e-6)  # as good as Poisson's below
        return scipy.stats.nbinom(mean / ratio, 1 / (1 + ratio))

    def target_error(self, y):
        return _amounts_error("poisson", y)


@dataclass(frozen=True)
class Gamma(_PowerVariance, _Dispersed):
    """Positive amounts whose spread grows with their mean, y exp(−f) + f, logarithmic link.

    Parameters
    ----------
    dispersion : float, optional
        The squared coefficient of variation: 1 for an exponential distribution. None estimates it.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveRegressor(loss=km.losses.Gamma(dispersion=1))
    """

    family, power = "gamma", 2.0

    def value(self, y, eta):
        return y * _exp(-eta) + eta

    def saturated_value(self, y):
        return 1 + np.log(y)

    def log_likelihood(self, value, totals, dispersion):
        shape, n = 1 / dispersion, totals.weight
        target_sum = (shape - 1) * (totals.saturated - n)  # Σ log y
        constant = scipy.special.xlogy(shape, shape) - scipy.special.gammaln(shape)
        return target_sum - shape * value + n * constant

    def observation_distribution(self, eta, error, dispersion, residual_df):
        """Gamma, with the relative variance of observations and of their mean."""
        shape = 1 / (dispersion + error**2)
        return scipy.stats.gamma(shape, scale=_exp(eta) / shape)

    def target_error(self, y):
        return None if (y > 0).all() else f"{argument('loss', 'gamma')} needs y > 0"


def cdf_below(distribution: Any, y: Array, cdf: Array) -> Array:
    """Probabilities of less than y, where those of at most y are `cdf`."""
    if isinstance(distribution, _CensoredTimes):
        return -np.expm1(-distribution.hazard)
    if hasattr(distribution, "pmf"):  # of counts and classes
        return distribution.cdf(y - 1)
    return np.where(y > 0, cdf, 0.0) if hasattr(distribution, "zeros") else cdf


@dataclass(frozen=True)
class _WithParameter(Loss):
    """A loss of a likelihood with a known dispersion and one parameter beside the mean."""

    dispersion, has_variance = cast("float | None", 1.0), False
    parameter_range: ClassVar[tuple[float, float]]  # within which it is estimated

    def estimate_parameter(self, y, eta, weight, edf):
        start, bounds = self.free_numbers(y, eta, weight)
        minimum = scipy.optimize.minimize(
            lambda numbers: self.with_numbers(numbers).restricted_loss(y, eta, weight, edf),
            np.clip(start, *np.transpose(bounds)), method="L-BFGS-B", bounds=bounds,
            options={"gtol": 1e-6, "eps": 1e-5},
        )  # fmt: skip
        return self.with_numbers(minimum.x)

    def free_numbers(
        self, y: Array, eta: Array, weight: Array
    ) -> tuple[Any, Sequence[tuple[float, float]]]:
        """What a search for the parameter starts from, and its bounds: logarithms by default."""
        return [np.log(getattr(self, self.parameter))], [np.log(self.parameter_range)]

    def with_numbers(self, numbers: Array) -> Loss:
        """The loss of the numbers of such a search."""
        return replace(self, **{self.parameter: float(np.exp(numbers[0]))})

    def restricted_loss(self, y: Array, eta: Array, weight: Array, edf: float) -> float:
        """Mean of the rows' −log-likelihood, and of ½ log|H| that REML adds.

        The Hessian of the penalised losses is nearly a multiple of that for another parameter: by
        the mean curvature of the rows.
        """
        dispersion = self.dispersion or 1.0
        curvature = weight @ self.expected_curvature(y, eta, 1.0) / dispersion
        criterion = weight @ (self.value(y, eta) / dispersion + self.base_measure(y))
        criterion += 0.5 * edf * np.log(max(curvature, _LEAST))
        return float(criterion) / float(weight.sum())


@dataclass(frozen=True)
class NegativeBinomial(_WithParameter):
    """Counts that vary more than Poisson's, with variance μ + μ²/θ and a logarithmic link.

    Parameters
    ----------
    theta : float, optional
        θ: a Poisson distribution is its limit for large values. None estimates it with the
        smoothing parameters, by restricted maximum likelihood.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveRegressor(loss=km.losses.NegativeBinomial(theta=2.0))
    """

    theta: float | None = None
    family, link, parameter = "negative binomial", "log", "theta"
    bounds = (("theta", *_POSITIVE),)
    parameter_range = 1e-3, 1e6  # with the last, Poisson's for means up to 10⁴

    def adapt_to_targets(self, y, weight):
        mean, variance = _moments(y, weight)
        start = mean**2 / max(variance - mean, _LEAST)  # of a constant
        return self.adopt_parameter(NegativeBinomial(float(np.clip(start, 0.1, 100.0))))

    def parameter_distance(self, other):
        a, b = 1 / self.theta, 1 / other.theta
        return abs(a - b) / (max(a, b) + 1e-3)  # hardly any over-dispersion is none

    def value(self, y, eta):
        eta = _limit_scores(eta)
        return (y + self.theta) * np.log1p(np.exp(eta) / self.theta) - y * eta

    def derivatives(self, y, eta):
        mean = _exp(eta)
        share = self.theta / (self.theta + mean)
        return share * (mean - y), np.maximum(mean * share * share * (1 + y / self.theta), 1e-12)

    def expected_curvature(self, y, eta, dispersion):
        mean = _exp(eta)
        return np.maximum(mean * self.theta / (self.theta + mean), 1e-12)

    def initial_intercept(self, y, weight, offset):
        return Poisson().initial_intercept(y, weight, offset)

    def saturated_value(self, y):
        return (y + self.theta) * np.log1p(y / self.theta) - scipy.special.xlogy(y, y)

    def base_measure(self, y):
        gammaln, theta = scipy.special.gammaln, self.theta
        return gammaln(y + 1) + gammaln(theta) - gammaln(y + theta) + y * np.log(theta)

    def observation_distribution(self, eta, error, dispersion, residual_df):
        """With the variance of counts and of their mean."""
        mean = _exp(eta)
        theta = 1 / (1 / self.theta + error**2)
        return scipy.stats.nbinom(theta, theta / (theta + mean))

    def target_error(self, y):
        if y.min(initial=0.0) < 0 or (y % 1).any():
            return f"{argument('loss', 'negative_binomial')} needs counts: whole numbers y >= 0"
        return _amounts_error("negative_binomial", y)


@dataclass(frozen=True)
class Tweedie(_PowerVariance, _WithParameter):
    """Amounts with many zeros, such as claims: a sum of a Poisson number of gamma amounts.

    The variance is φμ^p, the link logarithmic. The power p is between those of Poisson (1) and of
    gamma (2) distributions.

    Parameters
    ----------
    power : float, optional
        p, between 1 and 2. None estimates it with the smoothing parameters, by restricted maximum
        likelihood (densities as in Dunn and Smyth 2005).
    dispersion : float, optional
        φ; None estimates it.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveRegressor(loss=km.losses.Tweedie(power=1.5))
    """

    power: float | None = None
    dispersion: float | None = None
    family, parameter = "Tweedie", "power"
    has_variance = False
    bounds = (
        ("power", "between 1 and 2, or None", lambda p: 1 < p < 2), ("dispersion", *_POSITIVE)
    )  # fmt: skip

    with_weights_over = _Dispersed.with_weights_over

    def adapt_to_targets(self, y, weight):
        return self.adopt_parameter(Tweedie(1.5))

    def with_dispersion(self, dispersion):
        return replace(self, dispersion=dispersion)

    def estimate_parameter(self, y, eta, weight, edf):
        return replace(super().estimate_parameter(y, eta, weight, edf), dispersion=self.dispersion)

    def free_numbers(self, y, eta, weight):
        """The power and the dispersion: Pearson's, or the known one."""
        gradient, curvature = self.derivatives(y, eta)
        pearson = float(weight @ (gradient**2 / curvature)) / float(weight.sum())
        log_phi, room = np.log(self.dispersion or pearson), 3.0 * (self.dispersion is None)
        low, high = _POWERS
        share = np.clip((self.power - low) / (high - low), 1e-6, 1 - 1e-6)
        start = scipy.special.logit(share), log_phi
        return start, [(-7.0, 7.0), (log_phi - room, log_phi + room)]

    def with_numbers(self, numbers):
        low, high = _POWERS
        power = low + (high - low) * scipy.special.expit(numbers[0])
        return replace(self, power=float(power), dispersion=float(np.exp(numbers[1])))

    def parameter_distance(self, other):
        return abs(self.power - other.power)

    def value(self, y, eta):
        target_power, mean_power = self._powers(_limit_scores(eta))
        return y * target_power / (self.power - 1) + mean_power / (2 - self.power)

    def saturated_value(self, y):
        return y ** (2 - self.power) / ((2 - self.power) * (self.power - 1))

    def base_measure(self, y):
        if self.dispersion is None:
            return np.zeros_like(y)
        return -tweedie.log_normalizer(y, self.dispersion, self.power)

    def log_likelihood(self, value, totals, dispersion):
        return -value / dispersion - totals.base

    def observation_distribution(self, eta, error, dispersion, residual_df):
        """With the variance of observations and of their mean."""
        mean = _exp(eta)
        dispersion = dispersion + mean ** (2 - self.power) * error**2
        return tweedie.TweedieDistribution(mean, dispersion, self.power)

    def target_error(self, y):
        return _amounts_error("tweedie", y)


@dataclass(frozen=True)
class Beta(_WithParameter):
    """Shares in (0, 1), with variance μ(1 − μ)/(1 + ν) and a logit link.

    Parameters
    ----------
    precision : float, optional
        ν. None estimates it with the smoothing parameters, by restricted maximum likelihood.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveRegressor(loss=km.losses.Beta(precision=10.0))
    """

    precision: float | None = None
    family, link, parameter = "beta", "logit", "precision"
    bounds = (("precision", *_POSITIVE),)
    parameter_range = 1e-2, 1e8
    valid_target = 0.5

    def adapt_to_targets(self, y, weight):
        mean, variance = _moments(y, weight)
        start = mean * (1 - mean) / max(variance, _LEAST) - 1  # of a constant
        return self.adopt_parameter(Beta(float(np.clip(start, 0.1, 1e4))))

    def parameter_distance(self, other):
        return abs(np.log(self.precision / other.precision))

    def _shapes(self, eta: Array) -> tuple[Array, Array]:
        """Both parameters of the beta distribution."""
        expit, eta = scipy.special.expit, _limit_scores(eta)
        return self.precision * expit(eta), self.precision * expit(-eta)

    def value(self, y, eta):
        a, b = self._shapes(eta)
        return (
            scipy.special.betaln(a, b)
            + scipy.special.gammaln(self.precision)
            - (a * np.log(y) + b * np.log1p(-y))
        )

    def derivatives(self, y, eta):
        """The curvature is the expected one: the observed one may be negative."""
        a, b = self._shapes(eta)
        slope, psi, trigamma = a * b / self.precision, scipy.special.psi, scipy.special.zeta
        gradient = slope * (psi(a) - psi(b) - scipy.special.logit(y))
        return gradient, np.maximum(slope**2 * (trigamma(2, a) + trigamma(2, b)), 1e-12)

    initial_intercept = LogLoss.initial_intercept

    def saturated_value(self, y):
        eta = scipy.special.logit(y)
        for _ in range(_SATURATING_STEPS):
            gradient, curvature = self.derivatives(y, eta)
            eta = eta - np.clip(gradient / curvature, -2.0, 2.0)
        return self.value(y, eta)

    def base_measure(self, y):
        return np.log(y) + np.log1p(-y) - scipy.special.gammaln(self.precision)

    def observation_distribution(self, eta, error, dispersion, residual_df):
        """With the variance of shares and of their mean."""
        mean = scipy.special.expit(eta)
        precision = 1 / (1 / (1 + self.precision) + mean * (1 - mean) * error**2) - 1
        precision = np.maximum(precision, 1e-2)
        return scipy.stats.beta(precision * mean, precision * (1 - mean))

    def target_error(self, y):
        if (y > 0).all() and (y < 1).all():
            return None
        return (
            f"{argument('loss', 'beta')} needs shares 0 < y < 1; those of trials, which may be 0 "
            f"or 1, are for {argument('loss', 'binomial')}"
        )


@dataclass(frozen=True)
class Ordinal(_WithParameter):
    """Ordered classes: the log-odds of a class above the k-th are f less a threshold.

    They are proportional odds, P(y > k) = σ(f − t_k), whose first threshold is zero. Two classes
    have the log loss.

    Parameters
    ----------
    thresholds : tuple of float, optional
        0 and the further thresholds, ascending, one less than classes. None estimates them with the
        smoothing parameters, by restricted maximum likelihood.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveClassifier(loss=km.losses.Ordinal())
    """

    thresholds: tuple[float, ...] | None = None
    family, link, parameter = "ordered categorical", "cumulative logit", "thresholds"
    has_labels = is_ordered = null_has_parameter = True

    def __post_init__(self) -> None:
        if self.thresholds is None:
            return
        try:
            values = np.array(self.thresholds, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.zeros(0)
        ascends = values.ndim == 1 and np.isfinite(values).all() and (np.diff(values) > 0).all()
        if not ascends or values[:1].tolist() != [0]:
            raise ValueError(
                "Ordinal: thresholds must be None, or 0 and ascending numbers, got "
                f"{self.thresholds!r}."
            )
        object.__setattr__(self, "thresholds", tuple(values.tolist()))

    def adapt_to_targets(self, y, weight):
        """From the frequencies of the classes, those of a constant."""
        shares = np.cumsum(np.bincount(y.astype(np.int64), weight))[:-1] / weight.sum()
        odds = _log_odds(shares)
        odds = np.maximum.accumulate(odds + 1e-6 * np.arange(len(odds)))  # of tiny classes, too
        return self.adopt_parameter(Ordinal(tuple(odds - odds[0])))

    def estimate_parameter(self, y, eta, weight, edf):
        return self if len(self.thresholds) < 2 else super().estimate_parameter(y, eta, weight, edf)

    def free_numbers(self, y, eta, weight):
        steps = np.log(np.diff(self.thresholds))
        return steps, [(-14.0, 4.0)] * len(steps)

    def with_numbers(self, numbers):
        return Ordinal((0.0, *np.cumsum(np.exp(numbers)).tolist()))

    def parameter_distance(self, other):
        return float(np.max(np.abs(np.subtract(self.thresholds, other.thresholds))))

    def n_outputs(self, n_classes):
        return int(self.thresholds is None or len(self.thresholds) == n_classes - 1)

    def positive_codes(self, n_classes):
        return []

    def _ends(self, y: Array) -> tuple[Array, Array]:
        """The thresholds below and above classes."""
        ends = np.concatenate([[-np.inf], np.array(self.thresholds), [np.inf]])
        code = y.astype(np.int64)
        return ends[code], ends[code + 1]

    def value(self, y, eta):
        below, above = self._ends(y)
        apart = np.log(-np.expm1(below - above))
        return _softplus(eta - above) + _softplus(below - eta) - apart

    def derivatives(self, y, eta):
        below, above = self._ends(y)
        p, q = scipy.special.expit(eta - above), scipy.special.expit(below - eta)
        return p - q, np.maximum(p * (1 - p) + q * (1 - q), 1e-12)

    def initial_intercept(self, y, weight, offset):
        return LogLoss().initial_intercept(np.where(y > 0, 1.0, -1.0), weight, offset)

    def probabilities(self, scores):
        above = scipy.special.expit(scores - np.array(self.thresholds))
        return -np.diff(above, axis=1, prepend=1.0, append=0.0)

    def observation_distribution(self, eta, error, dispersion, residual_df):
        return OrderedClasses(self.probabilities(eta[:, None]))


class OrderedClasses(NamedTuple):
    """The distribution of the indices of classes, with a row of probabilities for each."""

    probabilities: Array

    def pmf(self, y: Array) -> Array:
        """Probability of the class y."""
        return np.take_along_axis(self.probabilities, y.astype(np.int64)[:, None], axis=1)[:, 0]

    def cdf(self, y: Array) -> Array:
        """Probability of the classes up to y."""
        reached = np.cumsum(self.probabilities, axis=1)
        reached = np.hstack([np.zeros((len(y), 1)), reached])
        return np.take_along_axis(reached, y.astype(np.int64)[:, None] + 1, axis=1)[:, 0]


@dataclass(frozen=True)
class Quantile(Loss):
    """The pinball loss, whose predictions are quantiles; rounded off near zero.

    Parameters
    ----------
    quantile : float, default=0.5
        The share of the targets that lies below the prediction.

    Examples
    --------
    >>> import kernelmaps as km
    >>> model = km.AdditiveRegressor(loss=km.losses.Quantile(0.9))
    """

    quantile: float = 0.5
    family = "asymmetric Laplace"
    has_distribution = has_variance = False  # the likelihood is a working one
    gradient_is_smooth = False
    bounds = (("quantile", "between 0 and 1", lambda q: 0 < q < 1),)

    @property
    def estimates_dispersion(self):
        return False  # φ follows from the density of the residuals

    def adapt_to_targets(self, y, weight):
        spread = _spread(y, weight)
        return SmoothedQuantile(self.quantile, _SMOOTHED_WIDTH * spread, spread=spread)


@dataclass(frozen=True)
class SmoothedQuantile(Quantile):
    """s(½√(r² + ε²) + (q − ½)r) of r = y − η: the pinball loss, smoothed within ε of zero.

    The factor s, the spread of the targets, makes curvatures independent of their unit, as those of
    squares are: a smoothing parameter of λ then weighs as much as λ rows in any unit.

    The second derivative nearly vanishes for |r| > ε; ½s/√(r² + ε²) is an upper bound of it.

    Its estimates have the variance q(1 − q)/nf² for a density f of the residuals at zero, which
    the mean curvature estimates, if it is smoothed more widely (Powell 1991): so much that the
    estimate is as variable as the share of rows between the quantiles q ± h of the residuals. h is
    the bandwidth of Hall and Sheather (1988) for 95 % intervals, and the distance of the quantiles
    that of a normal variable with the same mean loss, σφ(z_q).

    Attributes
    ----------
    width : float
        ε.
    majorizer_share : float
        Share of the upper bound in the curvature; the rest is the second derivative itself.
    spread : float
        s.
    """

    width: float = 1.0
    majorizer_share: float = 1.0
    spread: float = 1.0

    def log_likelihood(self, value, totals, dispersion):
        n, q = totals.weight, self.quantile
        return n * (np.log(q * (1 - q)) - np.log(max(value / self.spread / n, 1e-300)) - 1)

    def start_loss(self):
        """That of the median: smoothing parameters of a wide loss of other quantiles overfit."""
        return replace(self, quantile=0.5, width=START_WIDTH * self.spread)

    def add_majorizer(self, is_full):
        share = self.majorizer_share / 10 if is_full else min(1.0, 100 * self.majorizer_share)
        return replace(self, majorizer_share=share)

    def correct_curvature(self, total_weight, value):
        q, n = self.quantile, max(total_weight, 1.0)
        z = float(scipy.special.ndtri(q))
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        h = (1.5 * (scipy.special.ndtri(0.975) * density) ** 2 / (2 * z**2 + 1) / n) ** (1 / 3)
        h = min(h, 0.5 * q, 0.5 * (1 - q))
        sigma = value / self.spread / n / density
        distance = float(scipy.special.ndtri(q + h) - scipy.special.ndtri(q - h)) * sigma
        # ∫K² of the curvature is 3π/32 over its width, that of a share is one over the distance.
        width = max(3 * np.pi / 32 * distance, self.width)
        return replace(self, majorizer_share=0.0, width=width)

    def known_dispersion(self, total_weight, curvature):
        return self._derivative_variance * total_weight / curvature

    @property
    def _derivative_variance(self):
        return self.quantile * (1 - self.quantile) * self.spread**2

    def working_residuals(self, y, eta):
        return y - eta

    def expected_curvature(self, y, eta, dispersion):
        return np.full_like(eta, self._derivative_variance / dispersion)

    def value(self, y, eta):
        r = y - eta
        return self.spread * (0.5 * np.hypot(r, self.width) + (self.quantile - 0.5) * r)

    def derivatives(self, y, eta):
        r = y - eta
        size = np.hypot(r, self.width)
        bound, share = 0.5 * self.spread / size, self.majorizer_share
        if share < 1.0:
            bound = bound * (share + (1 - share) * (self.width / size) ** 2)
        return -self.spread * (0.5 * r / size + self.quantile - 0.5), bound

    def initial_intercept(self, y, weight, offset):
        return float(_quantiles(y - offset, weight, self.quantile)[0])

    def location(self, y, weight, offset):
        return float(_quantiles(y - offset, weight, 0.5)[0])


@dataclass(frozen=True)
class Hinges(Loss):
    """Losses that are sums of hinges, max(0, m − sη) with a sign s and a margin m."""

    for_gam = False
    has_kinks = True

    def hinges(self, y: Array) -> tuple[Array, Array]:
        """Signs and margins, [hinge of a row][row]."""
        raise NotImplementedError


def _epsilon_insensitive(y, f, epsilon):
    return np.maximum(np.abs(y - f) - epsilon, 0.0)


def _epsilon_insensitive_conjugate(y, alpha, c, epsilon):
    return epsilon * abs(alpha) - alpha * y


def _epsilon_insensitive_step(y, f, alpha, q, c, epsilon):
    free = alpha - (f - y) / q
    new = np.copysign(min(max(abs(free) - epsilon / q, 0.0), c), free)
    gradient = epsilon - abs(f - y)  # by |α|: a positive one holds 0, a negative one ±c
    return new, gradient if new == 0.0 else -gradient


@dataclass(frozen=True)
class EpsilonInsensitive(Hinges):
    """max(0, |r| − e) of r = y − η: two hinges."""

    epsilon: float = 0.0
    dual_rules = DualRules(
        _epsilon_insensitive, _epsilon_insensitive_conjugate, _epsilon_insensitive_step
    )

    def hinges(self, y):
        sign = np.repeat([[1.0], [-1.0]], len(y), axis=1)
        return sign, sign * y - self.epsilon


def _hinge(y, f, epsilon):
    return np.maximum(1.0 - y * f, 0.0)


def _hinge_conjugate(y, alpha, c, epsilon):
    return -y * alpha


def _hinge_step(y, f, alpha, q, c, epsilon):
    gradient = y * f - 1.0
    new = min(max(y * alpha - gradient / q, 0.0), c)
    return y * new, gradient if new == 0.0 else -gradient


@dataclass(frozen=True)
class Hinge(Hinges):
    """max(0, 1 − yη)."""

    dual_rules = DualRules(_hinge, _hinge_conjugate, _hinge_step)
    has_labels = True

    def hinges(self, y):
        return y[None], np.ones((1, len(y)))


@dataclass(frozen=True, eq=False)
class CoxPartialLikelihood(Loss):
    """−log of Cox's partial likelihood, with Efron's ties, of y = 1 for rows with an event.

    It couples the rows that are at risk at the same time: a fit has one with the risk sets of all
    its rows. The intercept says nothing about it, and takes the place of the baseline hazard in the
    working problem: it stays at zero, with the variance of the logarithm of a mean hazard.
    """

    risk_sets: RiskSets | None = field(default=None, repr=False)
    family, dispersion, has_variance = "partial likelihood of log hazards", 1.0, False
    has_times = has_ratios = True
    output_names = ("log hazard",)

    def value(self, y, eta):
        return self.risk_sets.losses(eta)

    def derivatives(self, y, eta):
        risks = self.risk_sets.relative_risks(eta)
        return risks - y, np.maximum(risks, 1e-12)

    def initial_intercept(self, y, weight, offset):
        return 0.0

    def totals(self, y, weight, offset, constant):
        """The best fit gives all risk to the events of a time, in equal parts."""
        sets, null = self.risk_sets, float(weight @ self.value(y, offset))
        total = sets.mean_weight * sets.counts[sets.event_set]
        saturated = float(sets.mean_weight @ np.log((1 - sets.tie_share) * total))
        return LossTotals(float(weight.sum()), saturated, null, 0.0)

    def couple_rows(self, problem, point):
        gram, beta = problem.gram, point.beta
        means = self.risk_sets.gram_of_means(point.eta, point.rows.dense_matrix, len(beta))
        gram, rhs = gram - means, problem.rhs - means @ beta
        gram[0], gram[:, 0], rhs[0] = 0.0, 0.0, problem.working_weight * beta[0]
        gram[0, 0] = problem.working_weight
        return replace(problem, gram=gram, rhs=rhs)


class _CensoredTimes(NamedTuple):
    """Distributions of times by their cumulative hazards: all later ones are alike if censored."""

    hazard: Array

    def cdf(self, y: Array) -> Array:
        return np.where(y > 0, -np.expm1(-self.hazard), 1.0)


@dataclass(frozen=True)
class CumulativeHazard(Poisson):
    """The likelihood of y = 1 for rows with an event until their time, with μ the hazard up to it.

    It is Poisson's. Checks of a survival model take it: residuals y − μ are those of martingales.
    """

    dispersion: float | None = 1.0

    def observation_distribution(self, eta, error, dispersion, residual_df):
        return _CensoredTimes(_exp(eta))


LOSSES: dict[str, Loss] = {
    "squared_hinge": SquaredHinge(), "hinge": Hinge(), "log_loss": LogLoss(),
    "squared_error": SquaredError(), "epsilon_insensitive": EpsilonInsensitive(),
    "absolute_error": Quantile(0.5), "quantile": Quantile(), "poisson": Poisson(),
    "gamma": Gamma(), "negative_binomial": NegativeBinomial(), "tweedie": Tweedie(),
    "binomial": Binomial(), "beta": Beta(), "ordinal": Ordinal(),
    "cox": CoxPartialLikelihood(), "multinomial": Multinomial(),
    "location_scale": LocationScale(),
}  # fmt: skip
"""All losses by name; the place of one with dual rules is its code in compiled loops."""

GAM, SVM = "GAM", "SVM"
"""The two kinds of additive models."""

_LOSSES_OF: dict[str, Any] = {
    "AdditiveClassifier": (GAM, True), "AdditiveRegressor": (GAM, False),
    "AdditiveSurvival": (GAM, False, True), "AdditiveSVC": (SVM, True), "AdditiveSVR": (SVM, False),
}  # fmt: skip


def list_losses(kind: str, labels: bool, times: bool = False) -> tuple[str, ...]:
    """Names of the losses that GAMs or SVMs of labels, of numbers, or of times have."""
    return tuple(
        name
        for name, loss in LOSSES.items()
        if (loss.has_labels, loss.has_times) == (labels, times)
        and (loss.for_gam if kind == GAM else loss.dual_rules is not None)
    )


def find_loss(owner: str, loss: object, labels: bool, kind: str, times: bool = False) -> Loss:
    """The loss that a user names, or gives as an object to a GAM.

    Parameters
    ----------
    owner : str
        The estimator, for messages.
    loss : str or Loss
        What the user wrote.
    labels : bool
        Losses of labels, or of numbers.
    kind : {"GAM", "SVM"}
        Losses of generalised additive models, or of additive support vector machines.
    times : bool
        Losses of times that may end with an event.
    """
    names = list_losses(kind, labels, times)
    may_be_object = kind == GAM and not times  # that of times has the risk sets of a fit
    uses = may_be_object, True, labels, False
    if isinstance(loss, Loss) and (True, loss.for_gam, loss.has_labels, loss.has_times) == uses:
        return loss
    if isinstance(loss, str) and loss in names:
        return LOSSES[loss]
    owners = [
        name
        for name, options in _LOSSES_OF.items()
        if isinstance(loss, str) and loss in list_losses(*options)
    ]
    hint = f" {loss!r} is a loss of {' and '.join(owners)}." if owners else ""
    if isinstance(loss, type) and issubclass(loss, Loss):
        hint = f" Write {loss.__name__}(), an object."
    objects = " or an object of kernelmaps.losses" if may_be_object else ""
    raise ValueError(
        f"{owner}: {parameter('loss')} must be one of {', '.join(map(repr, names))}{objects}, got "
        f"{loss!r}.{hint}"
    )


def parse_loss(text: str) -> str | Loss:
    """A loss as a command has it: a name, or with its parameter, as in ``quantile:0.9``, or with
    the columns of its scale, ``location_scale:x,z``.
    """
    name, colon, value = text.partition(":")
    loss = LOSSES.get(name)
    if not colon or loss is None or not fields(loss):
        return text
    setting: Any = [item for item in value.split(",") if item]
    try:
        setting = setting if loss.columns_of_predictors else float(value)
    except ValueError:
        setting = value  # which the loss refuses
    try:
        return replace(loss, **{fields(loss)[0].name: setting})
    except ValueError as error:
        raise ValueError(f"{argument('loss', text)}: {error}") from None


def dual_rules_of(index: int) -> Any:
    """The dual rules of the loss with an index in `LOSSES`, by which compiled loops know it."""
    return list(LOSSES.values())[index].dual_rules


def svm_loss(name: str, epsilon: float = 0.0) -> Loss:
    """The loss of an additive SVM."""
    loss = LOSSES[name]
    return EpsilonInsensitive(epsilon) if isinstance(loss, EpsilonInsensitive) else loss


def _spread(y: Array, weight: Array) -> float:
    """Distance of the quartiles, else the mean distance from the median; next to none for a single
    value, so that it is predicted.
    """
    (low, middle, high), total = _quantiles(y, weight, np.array([0.25, 0.5, 0.75]))
    distance = weight @ np.abs(y - middle) / max(total, 1e-300)
    return float((high - low) or distance or 1e-6 * (abs(middle) or 1.0))


def _quantiles(y: Array, weight: Array, shares: Any) -> tuple[Any, float]:
    """Numbers that these shares of the weight lie below, or at, and the sum of the weights.

    Where two neighbours and all numbers between them would do, it is their mean: the quantiles of
    −y are then those of y with the other sign.
    """
    order = np.argsort(y, kind="stable")
    reached = np.cumsum(weight[order])
    rounding = 1e-12 * reached[-1]
    places = (np.searchsorted(reached, shares * reached[-1] + r) for r in (-rounding, rounding))
    below, above = (y[order[np.minimum(place, len(y) - 1)]] for place in places)
    return 0.5 * below + 0.5 * above, reached[-1]
