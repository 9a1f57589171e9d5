"""Tables of tests, read as a model reads them."""

from kernelmaps.data.columns import RawTable
from kernelmaps.data.table_reader import TableReader


def columns_of(X, categorical=None):
    """All columns of a table; none is left out for what it holds."""
    terms = dict.fromkeys(RawTable.from_data(X, "Model").names, "auto")
    return TableReader.learn_and_read([X], "Model", categorical, terms)[1]


def learn(X, owner="Model", categorical=None, terms=None):
    """How a table is read."""
    return TableReader.learn_and_read([X], owner, categorical, terms)[0]
