"""``python -m kernelmaps``: the command line."""

from kernelmaps.cli import run

run()
