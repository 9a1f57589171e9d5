"""Results as tables of two columns: what, and its value."""

from ..display import two_columns

__all__ = ["two_columns"]
