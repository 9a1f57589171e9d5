"""The transformers, one file per family: `fit` builds `spec_`, the engine applies it."""

from .base import register

__all__ = ["register"]
