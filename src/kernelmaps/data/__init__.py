"""Reading data: arrays, files, streams and Dask; bundled and fetched datasets.

`open_source` gives rows block by block; `read_rows` of :mod:`.reading` reads a table of a user's
own whole, `load` and `fetch` of :mod:`.datasets` find datasets by name.
"""

from .sources import Block, Source
from .tables import open_source

__all__ = ["Block", "Source", "open_source"]
