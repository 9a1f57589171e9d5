"""The command line: one file for each command, which is imported when it is called."""

import sys
from importlib import import_module
from typing import Any

from .application import app

__all__ = ["COMMANDS", "app", "load_commands", "run"]

# Commands that share a file with another one.
_FILES = {"choose": "compare", "demo": "compare", "merge": "edit"}
COMMANDS = (
    "demo", "compare", "choose", "fit", "predict", "evaluate", "export", "explain", "edit",
    "merge",
)  # fmt: skip


def load_commands(*names: str) -> Any:
    """The application with some commands, by default with all of them."""
    for name in names or COMMANDS:
        import_module(f".{_FILES.get(name, name)}", __name__)
    return app


def run() -> None:
    """Run the command line, in a process of its own."""
    named = sys.argv[1:2] if sys.argv[1:2] and sys.argv[1] in COMMANDS else []
    if named == ["predict"]:
        _keep_pandas_out_of_pyarrow()
    load_commands(*named)(prog_name="kernelmaps")


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
