"""Mergeable statistics, and folding the rows of arrays, files, streams and Dask into them.

What is listed here is public. Other rooms of the package import the rest from its files.
"""

from ..data.sources import Source
from ..data.tables import open_source
from .folding import choose_block_rows, fold
from .moments import FoldMoments, KernelMoments, Moments
from .pair_tables import CodeSums

__all__ = [
    "CodeSums",
    "FoldMoments",
    "KernelMoments",
    "Moments",
    "Source",
    "choose_block_rows",
    "fold",
    "open_source",
]
