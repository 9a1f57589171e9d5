"""``python -m kernelmaps``: the command line."""

from kernelmaps.cli import app

app(prog_name="kernelmaps")
