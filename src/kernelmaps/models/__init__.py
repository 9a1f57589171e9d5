"""Estimators over maps: additive models, streaming linear models."""
