"""Packages that are imported when something of them is used first: arrays of numbers need none."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["arrow_csv", "pa", "pc", "scipy"]


class _Module:
    """A module in the place of which this stands until it is used."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, item: str) -> Any:
        return getattr(import_module(self.name), item)


if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as arrow_csv
    import scipy
else:
    pa, pc, arrow_csv = map(_Module, ("pyarrow", "pyarrow.compute", "pyarrow.csv"))
    scipy = _Module("scipy")
