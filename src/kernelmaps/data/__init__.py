"""Reading data: arrays, files, streams and Dask; the bundled dataset.

`open_source` gives rows block by block; `read_rows` of :mod:`.reading` reads a table of a user's
own whole, `load` of :mod:`.datasets` has the bundled digits.
"""

from .sources import Block, Source
from .tables import open_source

__all__ = ["Block", "Source", "open_source"]
