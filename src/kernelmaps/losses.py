"""Losses of additive models as objects with parameters, to be given in the place of their names."""

from .models.losses import Gamma, LogLoss, Poisson, Quantile, SquaredError

__all__ = ["Gamma", "LogLoss", "Poisson", "Quantile", "SquaredError"]
