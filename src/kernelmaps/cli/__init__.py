"""The command line: every command is one call into the library."""

# Each module adds its commands to the app.
from . import judging, modelling
from ._shared import app

__all__ = ["app", "judging", "modelling"]
