"""The command line: every command is one call into the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="kernelmaps",
    help="Explicit feature maps for kernels: kernel machines in linear time, with a known error.",
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
    """Explicit feature maps for kernels."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the picture and the figures (JSON).")
    ] = Path("demo_out"),
    json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON instead of a table.")
    ] = False,
) -> None:
    """Show every map on the bundled digits, beside plain linear and exact-kernel SVMs.

    Prints a table and writes a picture; takes some seconds.

    Example: `kernelmaps demo --out /tmp/demo`
    """
    from json import dumps

    from kernelmaps.evaluation.demo import run_demo

    result = run_demo()
    text = dumps(result.to_dict(), indent=1, ensure_ascii=False)
    out.mkdir(parents=True, exist_ok=True)
    (out / "demo.json").write_text(text + "\n", encoding="utf-8")
    try:
        picture = f"picture: {result.plot(out / 'demo.png')}"
    except ImportError:
        picture = "no picture: it needs matplotlib (pip install 'kernelmaps[plot]')"
    if json:
        typer.echo(text)
        return
    from rich.console import Console

    Console().print(result.table())
    typer.echo(picture)
