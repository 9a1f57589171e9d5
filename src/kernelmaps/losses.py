"""Losses of additive models as objects with parameters, to be given in the place of their names."""

from .models.losses import (
    Beta,
    Binomial,
    Gamma,
    LocationScale,
    LogLoss,
    Multinomial,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Quantile,
    SquaredError,
    Tweedie,
)

__all__ = [
    "Beta",
    "Binomial",
    "Gamma",
    "LocationScale",
    "LogLoss",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "Quantile",
    "SquaredError",
    "Tweedie",
]
