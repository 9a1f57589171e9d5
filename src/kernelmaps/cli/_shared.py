"""What commands share: arguments, output, and errors that end with a sentence and a number."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..printing import printable

IMPOSSIBLE, BAD_INPUT, BAD_FILE, INTERRUPTED = 1, 2, 3, 130

# Control characters that json.dumps leaves as they are.
_JSON_CONTROLS = {code: f"\\u{code:04x}" for code in range(127, 160)}

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV, Parquet, npz, npy, HDF5, Zarr or LIBSVM file, or a dataset by name: digits.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Column (or array) to predict; 'y' if there is one."),
]
Columns = Annotated[str | None, typer.Option(help="Features to use, by name, separated by commas.")]
Drop = Annotated[
    str | None,
    typer.Option(help="Instead: columns that are no features (an id), separated by commas."),
]
Normalize = Annotated[
    str, typer.Option(help="Scale rows to norm 1 first: l1 (histograms), l2 or none.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Turn expected errors into one line on standard error and an exit code."""

    @functools.wraps(function)
    def guarded(*arguments: Any, **options: Any) -> None:
        from ..exceptions import DesignError, FileFormatError, ToleranceError

        try:
            function(*arguments, **options)
        except FileFormatError as error:
            fail(str(error), BAD_FILE)
        except (ToleranceError, DesignError, MemoryError) as error:
            fail(str(error), IMPOSSIBLE)
        except (ValueError, TypeError, KeyError, FileNotFoundError, IsADirectoryError) as error:
            fail(str(error.args[0]) if isinstance(error, KeyError) else str(error), BAD_INPUT)
        except ImportError as error:
            fail(f"{error}. Install it with: pip install 'kernelmaps[all]'", BAD_INPUT)
        except OSError as error:
            fail(f"{error}. Files that existed before are as they were.", IMPOSSIBLE)
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)

    return guarded


def fail(message: str, code: int) -> None:
    """Say what is wrong and leave."""
    from rich.text import Text

    words = Text.assemble(("error:", "bold red"), " ", printable(message))
    console(stderr=True).print(words, soft_wrap=True)
    raise typer.Exit(code)


def show(result: Any, as_json: bool) -> None:
    """Print a result: its table, or its plain values as JSON and nothing else."""
    if as_json:
        text = json.dumps(result.to_dict(), indent=1, ensure_ascii=False, default=_plain)
        typer.echo(text.translate(_JSON_CONTROLS))
        return
    console().print(result.table())


def console(stderr: bool = False) -> Any:
    """Standard output or error, with colours where a person reads it.

    Names of columns and labels come from files. They are shown as they are: rich would otherwise
    read ``[/b]`` as markup, and the terminal would obey the escape sequences in them.
    """
    from rich.console import Console

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Any:
            return super().render_str(printable(text), **{**options, "markup": False})

    return PlainConsole(stderr=stderr, emoji=False)


def say(text: str) -> None:
    """A line on standard output."""
    console().print(text, soft_wrap=True, highlight=False)


def read(
    data: str,
    target: str | None,
    columns: str | None = None,
    drop: str | None = None,
    normalize: str = "none",
) -> Any:
    """Rows of a file, as the options ask for them."""
    from ..data import read_rows

    check_norm(normalize)
    rows = read_rows(data, target=target, columns=names(columns), drop=names(drop) or ())
    return rows.normalized(normalize)


def check_norm(normalize: str) -> None:
    """Refuse other norms than those that exist."""
    if normalize not in ("none", "l1", "l2"):
        raise ValueError(f"--normalize must be l1, l2 or none, got {normalize!r}.")


def names(text: str | None) -> list[str] | None:
    """Items between commas."""
    return None if text is None else [item.strip() for item in text.split(",") if item.strip()]


def check_folder(*paths: Path | None) -> None:
    """Refuse a file that cannot be written before hours of work, not after."""
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            raise FileNotFoundError(
                f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}. Make it "
                "first, or name another one."
            )


def kernel_named(text: str, X: Any = None) -> Any:
    """A kernel from its name; a width may follow: ``gaussian:2.5``; else it comes from the data."""
    from ..evaluation.candidates import fitted_to_data
    from ..kernels import get

    name, _, width = text.partition(":")
    if not width:
        return get(name) if X is None else fitted_to_data(name, X)
    kernel = get(name)
    try:
        value = float(width)
    except ValueError:
        raise ValueError(f"the width {width!r} of the kernel {name!r} is not a number.") from None
    return kernel.with_parameter(value)


def write_text(path: Path, text: str) -> None:
    """Write a text file so that an older one survives a failure."""
    from ..storage import write_file

    write_file(path, text.encode())


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
