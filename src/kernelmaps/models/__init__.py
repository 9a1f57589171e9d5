"""Estimators on maps: additive models and streaming linear models."""
