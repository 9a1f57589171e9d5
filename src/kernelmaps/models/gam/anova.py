r"""Statistics of fitted GAMs as a whole, and the comparison of nested ones.

*REML score*: −log of the restricted likelihood in Laplace's approximation (Wood 2011), exact
for squared error. With H the Hessian of the losses, d the penalties and p coefficients (the
intercept and those of parametric terms) without one,

.. math:: -\ell(β) + \frac{1}{2φ} β^\top \mathrm{diag}(d) β
          + ½ \log\Big|\frac{H + \mathrm{diag}(d)}{φ}\Big| - ½ \sum_i \log\frac{d_i}{φ}
          - \frac{p}{2} \log 2π .

Where the dispersion φ is not 1, :math:`-\ell` is that of a normal distribution with half the
deviance in the place of squares (the extended quasi-likelihood).

*Analysis of deviance*: a model with deviance :math:`D_1` is compared with one
that has more terms, or more flexible ones, and the deviance :math:`D_2`. If these bring nothing,
:math:`(D_1 - D_2)/φ` is about a
:math:`χ^2` variable with k degrees of freedom, and with an estimated dispersion φ, that of the
largest model, :math:`(D_1 - D_2)/(kφ)` is about an F variable. k is the difference of the effective
degrees of freedom, with those that the estimation of the smoothing parameters uses (Wood 2017,
section 6.12), and at least those of a term without an effect for each that was added: functions
that are shrunk to next to nothing were chosen by the data all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special
from sklearn.utils.validation import check_is_fitted

from ..losses import Loss, LossTotals
from ..solvers.pirls import PenalisedFit
from ..solvers.reml import Penalties, is_penalised
from .fitting import FittedDesign
from .summary import FactsTable, format_p_value

# Models of the same rows have the same deviance of a constant, whose sums may be in another order.
_SAME_DEVIANCE = 1e-9
# Degrees of freedom of an added term, at least. A curve without an effect has a straight line, and
# a bend whose variance is estimated as zero in about half of the samples (Self and Liang 1987): a
# mixture of one and two. In simulations of 100 rows, 10 % of the p-values are below 0.05 with 1.
_DF_OF_CURVE = 1.5
_DF_OF_OTHER = 1.0


def fit_statistics(
    model: FittedDesign, losses: Sequence[Loss], n_free: int, unit: float, log_densities: float
) -> dict[str, float]:
    """Statistics of all outputs together, by attribute, without another pass over the rows.

    The losses have `n_free` estimated parameters, a scale among them. Deviances are multiplied by
    a unit; `log_densities` is a part of the log-likelihood.
    `_corrected_edf` are the degrees of freedom with those that the estimation of the smoothing
    parameters uses (`edf2` in mgcv).
    """
    penalties = Penalties.from_bases(model.design.bases)
    outputs: list[tuple[Loss, PenalisedFit, LossTotals, np.ndarray]] = [
        (loss, fit, totals, penalties.diagonal(fit.rho))
        for loss, fit, totals in zip(losses, model.fits, model.design.totals)
    ]
    if (joint := model.joint) is not None:
        outputs = [(joint.loss, joint.fit, joint.totals, joint.penalty)]
    residual = null = parameters = edf = 0.0
    log_likelihood, reml = log_densities, -log_densities
    for loss, fit, totals, penalty in outputs:
        value = fit.objective - 0.5 * float(penalty @ fit.beta**2)  # without penalties
        residual += loss.deviance(value, totals)
        null += loss.deviance(totals.null, totals)
        log_likelihood += loss.log_likelihood(value, totals, fit.dispersion)
        parameters += float(fit.edf.sum()) + n_free
        reml += _reml_score(loss, fit, totals, value, penalty)
        edf += float(fit.edf.sum()) + fit.smoothing_edf
    return {
        "deviance_": unit * float(residual), "null_deviance_": unit * float(null),
        "log_likelihood_": float(log_likelihood), "aic_": 2 * float(parameters - log_likelihood),
        "reml_": float(reml), "_corrected_edf": edf,
    }  # fmt: skip


def _reml_score(
    loss: Loss, fit: PenalisedFit, totals: LossTotals, value: float, penalty: np.ndarray
) -> float:
    logdet = fit.posterior.logdet()  # of the active coefficients
    active = penalty[fit.active]
    # Not the logarithm of the ratio: the dispersion of constant targets is next to nothing.
    penalised = is_penalised(active)
    prior = (np.log(active[penalised]) - np.log(fit.dispersion)).sum()
    if loss.has_distribution and loss.dispersion != 1:
        scale = 0.5 * totals.weight * np.log(2 * np.pi * fit.dispersion)
        minus_likelihood = (value - totals.saturated) / fit.dispersion + scale
    else:
        minus_likelihood = -loss.log_likelihood(value, totals, fit.dispersion)
    shrinkage = 0.5 * float(penalty @ fit.beta**2) / fit.dispersion
    flat = np.count_nonzero(~penalised) * np.log(2 * np.pi)
    return float(minus_likelihood + shrinkage - 0.5 * (logdet + prior + flat))


@dataclass(frozen=True)
class AnovaTable(FactsTable):
    """Nested models, each compared with the one before: print it, or show it in a notebook.

    Attributes
    ----------
    title : str
    facts : dict of str to str
        Terms of each model.
    columns : tuple of str
        Heads of the table; the last but one is what the differences of the deviances are tested by,
        "F" or "chi²".
    rows : list of tuple
        One for each model, as text.
    records : list of dict
        One for each model: ``model`` (1, 2, …), ``edf``, ``residual_df``, ``deviance``, ``aic``;
        and of the comparison with the model before, ``df``, ``deviance_difference``,
        ``statistic`` and ``p_value`` (NaN for the first).
    """


def anova(*models: Any) -> AnovaTable:
    """Compare nested generalised additive models by an analysis of deviance.

    Each model is compared with the one before: the test asks whether its further terms, or its more
    flexible ones, explain more than chance would. It is approximate, as `anova` in mgcv: in
    simulations without an effect, 3 to 8 % of the p-values are below 0.05. Models that are not
    nested are compared by `aic_`, and single terms are tested in `summary()`.

    Parameters
    ----------
    *models : AdditiveRegressor or AdditiveClassifier
        Fitted to the same rows with the same loss, the smallest first: each has the terms (columns,
        pairs and surfaces) of the one before. A surface is compared with curves by a model that has
        both.

    Returns
    -------
    AnovaTable
        Prints as text; notebooks show it as HTML; `to_frame` has the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelmaps as km
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=300)
    >>> small = km.AdditiveRegressor(terms=[0]).fit(X, y)
    >>> large = km.AdditiveRegressor().fit(X, y)
    >>> table = km.anova(small, large).to_frame()
    >>> bool(table["p_value"][1] < 1e-10)
    True
    """
    _check_models(models)
    largest = models[-1]
    n_rows, dispersion = largest._effective_rows, float(largest.dispersion_[0])
    estimated = largest.loss_.estimates_dispersion
    records: list[dict[str, Any]] = []
    for k, model in enumerate(models):
        edf = float(model.edf_.sum())
        record = {
            "model": k + 1, "edf": edf, "residual_df": n_rows - edf, "deviance": model.deviance_,
            "aic": model.aic_, "df": np.nan, "deviance_difference": np.nan, "statistic": np.nan,
            "p_value": np.nan,
        }  # fmt: skip
        if k:
            small, difference = models[k - 1], models[k - 1].deviance_ - model.deviance_
            if len(model.edf_) > 1:
                difference = 2 * (model.log_likelihood_ - small.log_likelihood_)
            df = max(model._corrected_edf - small._corrected_edf, _least_df(small, model), 1.0)
            ratio = max(difference / dispersion, 0.0) / (df if estimated else 1.0)
            p_value = (
                special.fdtrc(df, float(largest._residual_df[0]), ratio)
                if estimated
                else special.chdtrc(df, ratio)
            )
            record |= {
                "df": df, "deviance_difference": difference, "statistic": ratio,
                "p_value": float(p_value),
            }  # fmt: skip
        records.append(record)
    terms = {f"model {k}": ", ".join(model.term_names_) for k, model in enumerate(models, 1)}
    statistic = "F" if estimated else "chi²"
    heads = "model", "residual df", "deviance", "df", "difference", statistic, "p"
    rows = [
        (
            str(item["model"]), f"{item['residual_df']:.1f}", f"{item['deviance']:.6g}",
            *(["", "", "", ""] if np.isnan(item["p_value"]) else [
                f"{item['df']:.2f}", f"{item['deviance_difference']:.4g}",
                f"{item['statistic']:.4g}", format_p_value(item["p_value"]),
            ]),
        )
        for item in records
    ]  # fmt: skip
    return AnovaTable("Analysis of deviance", terms, heads, rows, records)


def _least_df(small: Any, large: Any) -> float:
    """Degrees of freedom of the terms that one model has beyond another, without any effect.

    A term has them for each linear predictor: K − 1 of K classes.
    """
    shared = {term.name for term in small.predictor_.terms}
    added = [term for term in large.predictor_.terms if term.name not in shared]
    # A column of two values has a line, and a single smoothing parameter.
    curves = [term.kind == "spline" and len(term.smoothing) > 1 for term in added]
    df = sum(_DF_OF_CURVE if curve else _DF_OF_OTHER for curve in curves)
    return df * large.loss_.n_common_predictors(len(large.edf_))


def _terms(model: Any) -> dict[tuple[frozenset[str], bool], str]:
    """Names of the terms, by their columns and whether they are surfaces."""
    books, terms = model.predictor_.books, model.predictor_.terms
    return {
        (frozenset(books[j].name for j in term.columns), term.kind == "surface"): term.name
        for term in terms
    }


def _check_models(models: Sequence[Any]) -> None:
    """Refuse models that cannot be compared: of other rows or losses, or that are not nested."""
    if len(models) < 2:
        raise ValueError(f"anova compares two models or more, got {len(models)}.")
    for model in models:
        if not hasattr(type(model), "_effective_rows"):
            raise TypeError(
                "anova takes fitted AdditiveRegressors or AdditiveClassifiers, got "
                f"{type(model).__name__}."
            )
        check_is_fitted(model)
        if not model.loss_.n_common_predictors(len(model.edf_)):
            raise ValueError(
                "anova: the classes of a model were fitted one against the rest, and have no "
                "common likelihood. Compare the models of one class against the others."
            )
    for k, (small, large) in enumerate(pairwise(models), 1):
        pair = f"anova: models {k} and {k + 1}"
        if small._loss != large._loss:
            raise ValueError(f"{pair} have different losses, {small.loss!r} and {large.loss!r}.")
        if small.loss_ != large.loss_:
            raise ValueError(
                f"{pair} have different estimates, {small.loss_!r} and {large.loss_!r}, and with "
                f"these different likelihoods. Fit all of them with loss={large.loss_!r}."
            )
        sums = [(m._n_rows, m._effective_rows, m.null_deviance_) for m in (small, large)]
        if not np.allclose(*sums, rtol=_SAME_DEVIANCE, atol=0):
            raise ValueError(
                f"{pair} were fitted to different rows, targets or weights ({small._n_rows} and "
                f"{large._n_rows} rows, deviances of a constant {small.null_deviance_:g} and "
                f"{large.null_deviance_:g}). Fit all of them to the same rows."
            )
        terms = _terms(large)
        for key, name in _terms(small).items():
            if key not in terms:
                term = f"{name!r} (a surface)" if key[1] else repr(name)
                raise ValueError(
                    f"{pair} are not nested: model {k + 1} has no term {term}. Pass the smallest "
                    "model first; models that are not nested are compared by aic_."
                )
