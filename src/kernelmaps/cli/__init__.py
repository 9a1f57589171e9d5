"""The command line: every command is one call into the library."""

import sys
from typing import Any

# Each module adds its commands to the app.
from . import judging, modelling
from ._shared import app

__all__ = ["app", "judging", "modelling", "run"]


def run() -> None:
    """Run the command line, in a process of its own."""
    if sys.argv[1:2] == ["predict"]:
        _keep_pandas_out_of_pyarrow()
    app(prog_name="kernelmaps")


def _keep_pandas_out_of_pyarrow() -> None:
    """Let pyarrow do without pandas, which its first conversion would import.

    The import takes as long as the predictions of many thousands of rows, which need no frames.
    pyarrow looks for pandas once; other libraries find it as ever.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow

    hidden = _Hidden("pandas")
    sys.meta_path.insert(0, hidden)
    try:
        pyarrow.scalar(0)
    finally:
        sys.meta_path.remove(hidden)


class _Hidden:
    """Lets the import of one package fail, as if it were not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
