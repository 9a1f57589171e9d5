"""Tables of tests, read as a model reads them."""

from kernelmaps.data.columns import RawTable
from kernelmaps.data.table_reader import TableReader


def columns_of(X, categorical=None):
    """All columns of a table; none is left out for what it holds."""
    terms = dict.fromkeys(RawTable.of(X, "Model").names, "auto")
    return TableReader.learn_and_read([X], "Model", categorical, terms)[1]
