"""Additive models: a linear model on any additive map, trained without storing its features."""
