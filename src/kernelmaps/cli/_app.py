"""The application that the commands are added to."""

from __future__ import annotations

from typing import Annotated

import typer

EPILOG = (
    "Exit codes: 0 done, 1 not possible (no map has an error below the tolerance, disk full), "
    "2 bad input or usage, 3 a file that cannot be read as a model, 130 interrupted."
)

app = typer.Typer(
    name="kernelmaps",
    help="Explicit feature maps for kernels: kernel machines in linear time, with a known error.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)


def _version(shown: bool) -> None:
    if shown:
        from kernelmaps import __version__

        typer.echo(f"kernelmaps {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Explicit feature maps for kernels.

    First steps: `kernelmaps demo`, then `kernelmaps compare digits --report out.html`, then
    `kernelmaps fit mine.csv --target label --out model.kmap` and
    `kernelmaps predict model.kmap new.csv`.
    """
