"""Datasets by name: bundled, synthetic, fetched, and files."""

from .data.datasets import (
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
from .data.files import open_table
from .data.reading import Rows, read_rows

__all__ = [
    "Dataset",
    "Rows",
    "data_folder",
    "fetch",
    "fetch_letter",
    "fetch_mnist",
    "fetch_spambase",
    "load",
    "make_bag_of_words",
    "make_histograms",
    "names",
    "open_table",
    "read_npz",
    "read_rows",
]
