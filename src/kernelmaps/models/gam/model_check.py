r"""Checks of a fitted model on rows: residuals, basis dimensions, concurvity, influential rows.

*Quantile residuals* (Dunn and Smyth 1996) are :math:`Φ^{-1}(F(y))` with F the distribution of an
observation in the model, and a random number between F(y − 1) and F(y) for counts and classes. If
the model is right they are standard normal, for every loss.

*Basis dimension* (Wood 2017, section 5.9): if a curve is too smooth, residuals of rows with
neighbouring values of its column are alike. The index is half the mean squared difference of
neighbours over the variance of the residuals, about 1 for a good fit; its p-value is the share of
permutations with a smaller one.

*Concurvity*: with C the covariance of all basis functions over the rows, the part of a term's
functions that those of the other terms cannot reproduce is :math:`S_j = ((C^{-1})_{jj})^{-1}`. Its
*estimate* is :math:`1 - \operatorname{tr} S_j / \operatorname{tr} C_{jj}`, and the *worst* case 1
minus the smallest eigenvalue of :math:`C_{jj}^{-1} S_j`.

*Influence*: the leverage :math:`h_i = w_i c_i s_i^2/φ`, with the curvature c of the loss and the
standard error s of the score, and Cook's distance :math:`r_i^2 h_i / (p (1 - h_i)^2)`, with the
squared Pearson residual over φ and p effective degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.special import ndtr, ndtri

from ..._util.arguments import argument
from ..._util.display import plain_number
from ...data.columns import Column
from ..losses import Loss, cdf_below
from .predictor import AdditivePredictor
from .summary import align_cells

_PERMUTATIONS = 400  # of the residuals: p-values are multiples of 1/401
_MAX_ROWS = 5000  # whose neighbours are compared, as in mgcv
_MAX_LEVERAGE = 1 - 1e-6  # residuals are divided by 1 less the leverage
_RIDGE = 1e-10  # of the correlations of the functions, whose inverse is needed
_SMALLEST_P = 1e-300  # whose normal quantile is still finite


@dataclass(frozen=True)
class CheckLimits:
    """What is reported as a finding."""

    basis_p_value: float = 0.01
    concurvity: float = 0.8  # of the estimate: 80 % of a term's functions are in the others
    cooks_distance: float = 0.5  # a row that moves all coefficients by half their errors
    leverage: float = 0.5  # a row that has a degree of freedom nearly for itself
    outlier_p_value: float = 0.01  # of the largest residual among all rows
    # A log link is advised for targets as skewed as this, if the residuals of the rows with the
    # largest fifth of the predictions are so many times those of the smallest: of such tables
    # (houses, diamonds) gamma models have smaller mean absolute errors.
    skewness: float = 0.75
    spread_ratio: float = 1.5
    skewed_rows: int = 100  # at least


LIMITS = CheckLimits()


@dataclass(frozen=True)
class GamCheck:
    """Result of `check`: print it, or draw it with `kernelmaps.inspection.CheckDisplay`.

    Attributes
    ----------
    name : str
        The estimator.
    fitted : ndarray of shape (n_samples,)
        Scores: predictions, their logarithms or log-odds.
    deviance_residuals : ndarray of shape (n_samples,)
        √ of the rows' deviances, with the sign of the target minus the prediction.
    quantile_residuals : ndarray of shape (n_samples,) or None
        Standard normal if the model is right; None for quantiles, which have no distribution.
    leverage, cooks_distance : ndarray of shape (n_samples,)
        How much each row decides its prediction, and moves all predictions.
    columns : dict of str to ndarray
        Columns with a term: numbers, or the names of levels.
    partial_residuals : dict of str to ndarray of shape (n_samples,)
        For each term of one column: its contributions plus the residuals on the scale of the score.
        They scatter around its function if that is right.
    basis : list of dict
        For each curve: ``term``, ``edf``, ``functions`` (basis functions), ``k_index`` and
        ``p_value``.
    concurvity : list of dict
        For each term: ``term``, ``worst`` and ``estimate``, the share of its functions that the
        other terms reproduce.
    findings : list of str
        What deserves a look, in sentences.
    """

    name: str
    fitted: np.ndarray
    deviance_residuals: np.ndarray
    quantile_residuals: np.ndarray | None
    leverage: np.ndarray
    cooks_distance: np.ndarray
    columns: dict[str, np.ndarray]
    partial_residuals: dict[str, np.ndarray]
    basis: list[dict[str, Any]]
    concurvity: list[dict[str, Any]]
    findings: list[str]

    def qq(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the points of a QQ plot.

        Returns
        -------
        theoretical, observed : ndarray of shape (n_samples,)
            Quantiles of the standard normal distribution, and the sorted quantile residuals (for
            quantile losses: deviance residuals, divided by their standard deviation).
        """
        residuals = self.quantile_residuals
        if residuals is None:
            residuals = self.deviance_residuals / max(float(self.deviance_residuals.std()), 1e-300)
        n = len(residuals)
        return ndtri((np.arange(n) + 0.5) / n), np.sort(residuals)

    def influential(self, n_rows: int = 5) -> np.ndarray:
        """Return the rows with the largest Cook's distances.

        Parameters
        ----------
        n_rows : int, default=5
            How many.

        Returns
        -------
        ndarray of int
            Positions of the rows, the most influential first.
        """
        return np.argsort(-self.cooks_distance, kind="stable")[:n_rows]

    def to_frame(self) -> Any:
        """Return the numbers of the rows as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Columns ``fitted``, ``deviance_residual``, ``quantile_residual``, ``leverage`` and
            ``cooks_distance``.
        """
        import pandas as pd

        quantile = self.quantile_residuals
        return pd.DataFrame(
            {
                "fitted": self.fitted,
                "deviance_residual": self.deviance_residuals,
                "quantile_residual": np.nan if quantile is None else quantile,
                "leverage": self.leverage,
                "cooks_distance": self.cooks_distance,
            }
        )

    def tables(self) -> dict[str, tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """Return the tables of the text form: heads and lines, by title.

        Returns
        -------
        dict
            Basis dimensions, concurvity, and the most influential rows.
        """
        basis = [
            (item["term"], f"{item['edf']:.1f}", str(item["functions"] or ""),
             f"{item['k_index']:.2f}", f"{item['p_value']:.2g}")
            for item in self.basis
        ]  # fmt: skip
        concurvity = [
            (item["term"], f"{item['worst']:.2f}", f"{item['estimate']:.2f}")
            for item in self.concurvity
        ]
        influential = [
            (str(k), f"{self.cooks_distance[k]:.2g}", f"{self.leverage[k]:.2g}",
             plain_number(self.deviance_residuals[k], 3))
            for k in self.influential().tolist()
        ]  # fmt: skip
        tables: dict[str, tuple[tuple[str, ...], list[tuple[str, ...]]]] = {
            "basis dimension": (("term", "edf", "functions", "k-index", "p"), [*basis]),
            "concurvity": (("term", "worst", "estimate"), [*concurvity]),
            "influential rows": (
                ("row", "Cook's distance", "leverage", "residual"),
                [*influential],
            ),
        }
        return {title: table for title, table in tables.items() if table[1]}

    def residual_facts(self) -> str:
        """Return the moments of the residuals as a sentence.

        Returns
        -------
        str
            Mean, standard deviation, skewness, and the share within ± 2.
        """
        r = self.quantile_residuals
        if r is None:
            below = float(np.mean(self.deviance_residuals < 0))
            return f"{100 * below:.1f} % of the targets are below their predictions"
        spread = max(float(r.std()), 1e-300)
        skewness = float(np.mean(((r - r.mean()) / spread) ** 3))
        within = 100 * float(np.mean(np.abs(r) < 2))
        return (
            f"quantile residuals: mean {r.mean():.2f} (0), standard deviation {r.std():.2f} (1), "
            f"skewness {skewness:.2f} (0), {within:.1f} % within ± 2 (95.4 %)"
        )

    def __str__(self) -> str:
        lines = [f"Check of {self.name} on {len(self.fitted):,} rows", f"  {self.residual_facts()}"]
        for title, (heads, rows) in self.tables().items():
            lines += ["", title, *(f"  {line}" for line in align_cells([heads, *rows], 1))]
        return "\n".join([*lines, "", *(self.findings or ["Nothing deserves a closer look."])])


@dataclass(frozen=True)
class FitToCheck:
    """One output of a fitted model and its dispersion, with rows and their targets.

    `weight` are the weights of the rows in units of the fit, `offset` is added to the scores. The
    dispersion is that of each row, if weights are precisions.
    """

    predictor: AdditivePredictor
    output: int
    loss: Loss
    dispersion: Any
    residual_df: float
    edf: float
    columns: Sequence[Column]
    y: np.ndarray
    weight: np.ndarray
    offset: np.ndarray

    def check(self, rng: np.random.Generator) -> GamCheck:
        """All checks."""
        k, y, model, columns = self.output, self.y, self.predictor, self.columns
        eta = model.fitted_loss.output_scores(model.scores(columns), k) + self.offset
        residuals = self.loss.deviance_residuals(y, eta)
        leverage, distance = self._influence(eta, model.score_errors(columns, as_fitted=True)[:, k])
        shown = {}
        for column in (columns[j] for j in sorted({j for t in model.terms for j in t.columns})):
            shown[column.name] = column.values
            if column.is_category:
                names = np.array([*column.levels, "missing"], dtype=object)
                shown[column.name] = names[column.codes]
        basis, concurvity = self._basis_checks(residuals, rng), self._concurvity()
        quantile = self._quantile_residuals(eta, rng)
        partial = model.contributions(columns)[:, :, k]
        partial += self.loss.working_residuals(y, eta)[:, None]
        partials = {
            term.name: partial[:, t] for t, term in enumerate(model.terms) if len(term.columns) == 1
        }
        return GamCheck(
            model.estimator, eta, residuals, quantile, leverage, distance, shown, partials, basis,
            concurvity, _findings(basis, concurvity, quantile, leverage, distance)
            + advise_log_link(model.fitted_loss, y, eta),
        )  # fmt: skip

    def _quantile_residuals(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
        if not self.loss.has_distribution:
            return None
        distribution = self.loss.observation_distribution(
            eta, np.zeros_like(eta), self.dispersion, self.residual_df
        )
        y = self.loss.observations(self.y)
        upper = distribution.cdf(y)
        lower = cdf_below(distribution, y, upper)
        upper = lower + rng.random(len(y)) * (upper - lower)
        return ndtri(np.clip(upper, _SMALLEST_P, 1 - 1e-16))

    def _influence(self, eta: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Leverages and Cook's distances."""
        curvature = self.loss.expected_curvature(self.y, eta, self.dispersion)
        gradient, _ = self.loss.derivatives(self.y, eta)
        leverage = self.weight * curvature * errors**2 / self.dispersion
        leverage = np.minimum(leverage, _MAX_LEVERAGE)
        squares = self.weight * gradient**2 / curvature / self.dispersion
        return leverage, squares * leverage / (self.edf * (1 - leverage) ** 2)

    def _basis_checks(
        self, residuals: np.ndarray, rng: np.random.Generator
    ) -> list[dict[str, Any]]:
        """Whether neighbouring residuals are alike, for each curve."""
        curves = [
            (term, self.columns[term.columns[0]].values)
            for term in self.predictor.terms
            if len(term.columns) == 1 and self.columns[term.columns[0]].values is not None
        ]
        if not curves or len(residuals) < 3 or not residuals.std() > 0:
            return []
        sample = rng.permutation(len(residuals))[:_MAX_ROWS]  # ties are then in random order
        residuals = residuals[sample]
        permuted = np.sort(
            [_neighbour_index(rng.permutation(residuals)) for _ in range(_PERMUTATIONS)]
        )
        checks = []
        for term, x in curves:
            index = _neighbour_index(residuals[np.argsort(x[sample], kind="stable")])
            smaller = int(np.searchsorted(permuted, index, side="right"))
            checks.append({
                "term": term.name, "edf": float(term.edf[self.output]),
                "functions": term.n_functions, "k_index": index,
                "p_value": (1 + smaller) / (1 + len(permuted)),
            })  # fmt: skip
        return checks

    def _concurvity(self) -> list[dict[str, Any]]:
        """Shares of the functions of each term that the functions of the others reproduce."""
        sizes = [basis.shape[1] for basis in self.predictor.posterior.bases]
        if sum(size > 0 for size in sizes) < 2:
            return []
        covariance = self.predictor.function_covariance(self.columns)
        variances = covariance.diagonal()
        # What does not vary over these rows (a level that they lack) has rounding errors alone.
        scale = np.sqrt(np.where(variances > _RIDGE**2 * variances.max(), variances, np.inf))
        correlation = covariance / np.outer(scale, scale)
        correlation.flat[:: len(correlation) + 1] = 1 + _RIDGE
        inverse = linalg.pinvh(correlation)
        ends = np.cumsum([0, *sizes])
        shares = []
        for term, begin, end in zip(self.predictor.terms, ends[:-1], ends[1:], strict=True):
            if begin == end:
                continue
            span = slice(begin, end)
            unique = linalg.pinvh(inverse[span, span])
            variance = np.where(np.isfinite(scale[span]), variances[span], 0.0)
            estimate = 1 - float(unique.diagonal() @ variance / max(variance.sum(), 1e-300))
            ratios = linalg.eigh(unique, correlation[span, span], eigvals_only=True)
            worst, estimate = np.clip([1 - float(ratios[0]), estimate], 0, 1).tolist()
            shares.append({"term": term.name, "worst": worst, "estimate": estimate})
        return shares


def _neighbour_index(residuals: np.ndarray) -> float:
    """Half the mean squared difference of neighbours, over the variance."""
    return float(0.5 * np.mean(np.diff(residuals) ** 2) / max(residuals.var(), 1e-300))


def advise_log_link(loss: Loss, y: np.ndarray, predicted: np.ndarray) -> list[str]:
    """What speaks for a log link in place of squared errors, as a sentence; none for most rows."""
    has_few_rows = len(y) < LIMITS.skewed_rows
    if has_few_rows or loss.family != "normal" or loss.columns_of_predictors or not y.min() >= 0:
        return []
    kind, better = "positive", "gamma"
    if y.min() == 0:
        kind, better = "never negative", "tweedie" if (y % 1).any() else "poisson"
    skewness = float(np.mean((y - y.mean()) ** 3)) / max(float(y.std()) ** 3, 1e-300)
    squares = (y - predicted)[np.argsort(predicted)] ** 2
    small, large = (np.sqrt(part.mean()) for part in np.array_split(squares, 5)[::4])
    if skewness < LIMITS.skewness or large < LIMITS.spread_ratio * small:
        return []
    negative = int(np.count_nonzero(predicted <= 0))
    impossible = f", and {negative:,} predictions are not positive" if negative else ""
    return [
        f"The target is {kind} and skewed (skewness {skewness:.1f}), and residuals of large "
        f"predictions are {large / max(small, 1e-300):.1f} times those of small ones{impossible}: "
        f"effects are factors rather than sums. Try {argument('loss', better)}, whose log link "
        "makes them factors, and predictions positive."
    ]


def _findings(
    basis: Sequence[dict[str, Any]], concurvity: Sequence[dict[str, Any]],
    quantile: np.ndarray | None, leverage: np.ndarray, distance: np.ndarray,
) -> list[str]:  # fmt: skip
    """What deserves a look, in sentences."""
    findings = [
        f"{item['term']}: residuals of neighbouring values are alike (k-index "
        f"{item['k_index']:.2f}, p {item['p_value']:.2g}): the curve may be too smooth. Raise "
        f"n_bases= of its Term, or add an interaction."
        for item in basis
        if item["p_value"] < LIMITS.basis_p_value
    ]
    findings += [
        f"{item['term']}: the other terms reproduce {100 * item['estimate']:.0f} % of it, so that "
        "its share of the effect is uncertain. Leave one of them out, or read them together."
        for item in concurvity
        if item["estimate"] > LIMITS.concurvity
    ]
    strong = np.flatnonzero((distance > LIMITS.cooks_distance) | (leverage > LIMITS.leverage))
    if len(strong):
        rows = ", ".join(str(k) for k in strong[np.argsort(-distance[strong])][:5])
        findings.append(
            f"Rows with a large influence: {len(strong)} (row {rows}). Look at their cells, and at "
            "the fit without them."
        )
    if quantile is not None:
        row = int(np.argmax(np.abs(quantile)))
        if 2 * ndtr(-abs(quantile[row])) * len(quantile) < LIMITS.outlier_p_value:
            findings.append(
                f"row {row} has a quantile residual of {quantile[row]:.1f}: its target, or the "
                "distribution of the loss, does not fit."
            )
    return findings
