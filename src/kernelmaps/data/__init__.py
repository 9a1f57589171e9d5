"""Reading data: arrays, files, streams and Dask; bundled and fetched datasets.

`open_source` gives rows block by block, `read_rows` reads a table of a user's own whole, and `load`
and `fetch` find datasets by name.
"""

from .datasets import (
    Dataset,
    data_folder,
    fetch,
    fetch_letter,
    fetch_mnist,
    fetch_spambase,
    load,
    make_bag_of_words,
    make_histograms,
    names,
    read_npz,
)
from .reading import Rows, read_rows
from .sources import Block, Source
from .tables import open_source

__all__ = [
    "Block",
    "Dataset",
    "Rows",
    "Source",
    "data_folder",
    "fetch",
    "fetch_letter",
    "fetch_mnist",
    "fetch_spambase",
    "load",
    "make_bag_of_words",
    "make_histograms",
    "names",
    "open_source",
    "read_npz",
    "read_rows",
]
