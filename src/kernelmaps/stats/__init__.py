"""Mergeable statistics, and folding the rows of arrays, files, streams and Dask into them."""

from ..data.opening import open_source
from ..data.sources import Source
from .blockwise import choose_block_rows, features_of
from .composite import FoldMoments, KernelMoments, load_stats
from .folding import fold, on_sample
from .moments import Moments
from .pair_tables import (
    CodeSums,
    LocalBasis,
    add_scores,
    cross_products,
    pair_table,
    right_sides,
)

__all__ = [
    "CodeSums",
    "FoldMoments",
    "KernelMoments",
    "LocalBasis",
    "Moments",
    "Source",
    "add_scores",
    "choose_block_rows",
    "cross_products",
    "features_of",
    "fold",
    "load_stats",
    "on_sample",
    "open_source",
    "pair_table",
    "right_sides",
]
