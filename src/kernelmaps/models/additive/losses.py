r"""Losses of additive models on maps, one entry each: all that their solvers know about a loss.

An example with target y (+1 or −1 for a class) and cost c adds c ℓ(y, f) to the primal objective.
Its dual variable β is the coefficient of ψ(x) in w, and the duality gap is the sum over the
examples of Fenchel's inequality,

.. math:: c\,ℓ(y, f) + (cℓ)^*(-β) + β f ≥ 0, \qquad \text{equal for } β = -c\,ℓ'(y, f).

`value`, `conjugate` and `step` are plain functions of numbers, which :mod:`._loops` compiles for
the dual solver; `parts` takes arrays, for Newton's method in :mod:`.primal`. Those of losses
without corners are the formulas of :mod:`..tables.likelihoods`. A new loss is one
more :class:`Loss` in `LOSSES`: estimators, solvers and messages find it there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..tables.likelihoods import Likelihood, Logistic, Squared, SquaredHinge

Parts = tuple[np.ndarray, np.ndarray, np.ndarray]  # value, slope and curvature by f


def _ramp(s: np.ndarray, width: float) -> Parts:
    """max(0, s), rounded off by a parabola on [0, width]."""
    value = np.where(s > width, s - 0.5 * width, 0.5 * np.maximum(s, 0) ** 2 / width)
    return value, np.clip(s / width, 0, 1), ((s > 0) & (s < width)) / width


def _smooth_parts(loss: Likelihood, times: float = 1.0) -> Callable[..., Parts]:
    """Parts of a loss without corners, which models of tables have, too (there maybe halved)."""

    def parts(y: np.ndarray, f: np.ndarray, epsilon: float, width: float) -> Parts:
        slope, bend = loss.derivatives(y, f)
        return times * loss.value(y, f), times * slope, times * bend

    return parts


class Loss(NamedTuple):
    """What the solver has to know about one loss.

    Attributes
    ----------
    name : str
        As scikit-learn spells it.
    of_labels : bool
        Whether targets are labels (+1, −1) or numbers.
    value : callable (y, f, epsilon)
        ℓ(y, f).
    conjugate : callable (y, beta, c, epsilon)
        (cℓ)*(−β), for a β that `step` can give.
    step : callable (y, f, beta, q, c, epsilon)
        The best new β where q is the dual's diagonal, so that the score becomes
        f + q (β_new − β); and by how much a β that rests at a bound is kept there (shrinking),
        0 where nothing rests.
    parts : callable (y, f, epsilon, width)
        Value, slope and curvature by f; corners are rounded off by a parabola of that width.
    shape : {"parabola", "curve", "corners"}
        Of the same curvature everywhere; with a curvature that changes from row to row; or with
        corners, which Newton's method has to round off.
    start : callable (share) or None
        The best intercept of a model without weights, from the share of the costs that positive
        labels have; None where 0 is a good start.
    was : str
        An older spelling, accepted with a warning.
    """

    name: str
    of_labels: bool
    value: Callable[..., float]
    conjugate: Callable[..., float]
    step: Callable[..., tuple[float, float]]
    parts: Callable[..., Parts]
    shape: str
    start: Callable[..., np.ndarray] | None = None
    was: str = ""


# -- max(0, 1 − y f)² -------------------------------------------------------------------------


def _squared_hinge(y, f, epsilon):
    slack = max(1.0 - y * f, 0.0)
    return slack * slack


def _squared_hinge_conjugate(y, beta, c, epsilon):
    a = y * beta
    return 0.25 * a * (a / c) - a


def _squared_hinge_step(y, f, beta, q, c, epsilon):
    gradient = y * f - 1.0 + 0.5 * y * beta / c
    return y * max(y * beta - gradient / (q + 0.5 / c), 0.0), gradient


# -- max(0, 1 − y f) --------------------------------------------------------------------------


def _hinge(y, f, epsilon):
    return max(1.0 - y * f, 0.0)


def _hinge_conjugate(y, beta, c, epsilon):
    return -y * beta


def _hinge_step(y, f, beta, q, c, epsilon):
    gradient = y * f - 1.0
    new = min(max(y * beta - gradient / q, 0.0), c)
    return y * new, gradient if new == 0.0 else -gradient


def _hinge_parts(y, f, epsilon, width):
    value, slope, bend = _ramp(1 - y * f, width)
    return value, -y * slope, bend


# -- log(1 + exp(−y f)) -----------------------------------------------------------------------


def _log_loss(y, f, epsilon):
    margin = y * f
    return np.log1p(np.exp(-abs(margin))) + max(-margin, 0.0)


def _log_loss_conjugate(y, beta, c, epsilon):
    """Of a = yβ in [0, c]: a log(a/c) + (c − a) log(1 − a/c)."""
    a = y * beta
    entropy = 0.0
    if a > 0.0:
        entropy += a * np.log(a / c)
    if a < c:
        entropy += (c - a) * np.log1p(-a / c)
    return entropy


def _log_loss_step(y, f, beta, q, c, epsilon):
    """Solve t + q (c σ(t) − a) + y f = 0 for the new a = c σ(t).

    The left side grows with a slope between 1 and 1 + q c/4, and is convex left of 0 and concave
    right of it: Newton's method from 0 approaches the root from one side. Elsewhere (a start at
    the last solution) it is kept in its bracket.
    """
    margin, a = y * f, y * beta
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


def _log_odds(share: np.ndarray) -> np.ndarray:
    share = np.clip(share, 1e-12, 1 - 1e-12)
    return np.log(share / (1 - share))


# -- (y − f)² ---------------------------------------------------------------------------------


def _squared_error(y, f, epsilon):
    return (y - f) * (y - f)


def _squared_error_conjugate(y, beta, c, epsilon):
    return 0.25 * beta * (beta / c) - beta * y


def _squared_error_step(y, f, beta, q, c, epsilon):
    return beta - (f - y + 0.5 * beta / c) / (q + 0.5 / c), 0.0


# -- max(0, |y − f| − epsilon) ----------------------------------------------------------------


def _epsilon_insensitive(y, f, epsilon):
    return max(abs(y - f) - epsilon, 0.0)


def _epsilon_insensitive_conjugate(y, beta, c, epsilon):
    return epsilon * abs(beta) - beta * y


def _epsilon_insensitive_step(y, f, beta, q, c, epsilon):
    free = beta - (f - y) / q
    new = np.copysign(min(max(abs(free) - epsilon / q, 0.0), c), free)
    slack = epsilon - abs(f - y)
    return new, slack if new == 0.0 else -slack


def _epsilon_insensitive_parts(y, f, epsilon, width):
    above, below = _ramp(f - y - epsilon, width), _ramp(y - f - epsilon, width)
    return above[0] + below[0], above[1] - below[1], above[2] + below[2]


LOSSES = (
    Loss(
        "squared_hinge", True, _squared_hinge, _squared_hinge_conjugate, _squared_hinge_step,
        _smooth_parts(SquaredHinge()), "curve",
    ),
    Loss("hinge", True, _hinge, _hinge_conjugate, _hinge_step, _hinge_parts, "corners"),
    Loss(
        "log_loss", True, _log_loss, _log_loss_conjugate, _log_loss_step,
        _smooth_parts(Logistic()), "curve", _log_odds, "log",
    ),
    Loss(
        "squared_error", False, _squared_error, _squared_error_conjugate, _squared_error_step,
        _smooth_parts(Squared(), 2.0), "parabola", was="squared",
    ),
    Loss(
        "epsilon_insensitive", False, _epsilon_insensitive, _epsilon_insensitive_conjugate,
        _epsilon_insensitive_step, _epsilon_insensitive_parts, "corners",
    ),
)  # fmt: skip
"""All losses; the place of a loss here is its code in compiled loops."""


def names_of(of_labels: bool) -> tuple[str, ...]:
    """Names of the losses of labels, or of numbers."""
    return tuple(loss.name for loss in LOSSES if loss.of_labels == of_labels)


def find_loss(owner: str, name: object, of_labels: bool, others: tuple[str, ...] = ()) -> Loss:
    """The loss of that name, older spellings included; unknown ones are refused.

    Parameters
    ----------
    owner : str
        The estimator, for messages.
    name : str
        What the user wrote.
    of_labels : bool
        Losses of labels, or of numbers.
    others : tuple of str
        Names that the estimator knows beside these.
    """
    for loss in LOSSES:
        if loss.of_labels == of_labels and name in (loss.name, loss.was):
            return loss
    known = (*names_of(of_labels), *others)
    raise ValueError(f"{owner}: loss must be one of {known}, got {name!r}.")
