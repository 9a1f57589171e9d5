"""The application, and what its commands share: arguments, output, error handling."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from .._util.display import plain_console, printable
from .._util.storage import AnyPath

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


IMPOSSIBLE, BAD_INPUT, BAD_FILE, INTERRUPTED = 1, 2, 3, 130

# Control characters that json.dumps leaves as they are.
_JSON_CONTROLS = {code: f"\\u{code:04x}" for code in range(127, 160)}

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV (also .gz, .zst), Parquet or npy file, or a dataset by name: digits.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Column to predict; 'y' if there is one."),
]
Columns = Annotated[str | None, typer.Option(help="Features to use, by name, separated by commas.")]
Drop = Annotated[
    str | None,
    typer.Option(help="Instead: columns to exclude, such as an ID, separated by commas."),
]
Normalize = Annotated[
    str, typer.Option(help="Scale rows to norm 1 first: l1 (histograms), l2 or none.")
]
TaskOption = Annotated[
    str, typer.Option("--task", help="classification, regression, or auto: judge by the target.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of CSV text, such as latin-1.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A .kmap file made by fit.")]
Exposure = Annotated[
    str | None,
    typer.Option(help="Column of exposures, for --loss poisson and gamma; later: that of fit."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def command(function: Callable[..., None], *, fits: bool = True) -> Callable[..., None]:
    """Add a command to the application; expected errors become one line and an exit code.

    Messages of the library name the options of the command, see `named_as_options`. A command that
    fits nothing imports scikit-learn, which takes more than a second, only if it needs it.
    """
    prefix = f"{function.__name__}: "  # of messages, which the user of a command knows

    @functools.wraps(function)
    def guarded(*arguments: Any, **options: Any) -> None:
        from .._util.arguments import named_as_options
        from .._util.display import lines_to
        from ..exceptions import DesignError, FileFormatError, ToleranceError

        try:
            with (
                lines_to(note),
                _warnings_as_lines(prefix, fits),
                named_as_options(_options(function)),
            ):
                function(*arguments, **options)
        except FileFormatError as error:
            fail(str(error), BAD_FILE)
        except (ToleranceError, DesignError, MemoryError) as error:
            fail(str(error).removeprefix(prefix), IMPOSSIBLE)
        except (ValueError, TypeError, KeyError, FileNotFoundError, IsADirectoryError) as error:
            words = str(error.args[0]) if isinstance(error, KeyError) else str(error)
            fail(words.removeprefix(prefix), BAD_INPUT)
        except ImportError as error:
            fail(_missing(error), BAD_INPUT)
        except EOFError as error:
            fail(f"a file ends too early: {error}", BAD_INPUT)
        except OSError as error:
            if error.errno is None:  # of what is in a file (pyarrow's, say), not of the system
                fail(f"a file cannot be read: {error}", BAD_INPUT)
            fail(f"{error}. Files that existed before are as they were.", IMPOSSIBLE)
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)

    return app.command()(guarded)


@contextmanager
def _warnings_as_lines(prefix: str, fits: bool) -> Iterator[None]:
    """Warnings as lines on standard error, each once, without the place in the code or a prefix.

    Ours are shown wherever they come from; those of other libraries as far as Python's filters let
    them through.
    """
    from .. import exceptions

    classes = [getattr(exceptions, name) for name in exceptions.__all__]
    ours = [cls for cls in classes if issubclass(cls, Warning)]
    if fits:
        from sklearn.exceptions import ConvergenceWarning

        ours.append(ConvergenceWarning)
    shown: set[str] = set()

    def line(message: Any, category: Any, *place: Any, **more: Any) -> None:
        words = " ".join(str(message).split())  # other libraries break their lines
        if words not in shown:
            shown.add(words)
            note(f"warning: {words.removeprefix(prefix)}")

    with warnings.catch_warnings():
        for category in ours:
            warnings.simplefilter("always", category)
        warnings.showwarning = line
        yield


def _options(function: Callable[..., None]) -> dict[str, str]:
    """Options of a command, by the names of the library's arguments."""
    options: dict[str, str] = {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        option = next(iter(getattr(hint, "__metadata__", ())), None)
        if isinstance(option, typer.models.OptionInfo):
            # Inside of Annotated, typer keeps the first name in the place of the default.
            written = (option.default, *(option.param_decls or ()))
            declared = [text for text in written if isinstance(text, str) and text[:2] == "--"]
            flag = declared[0] if declared else f"--{name.replace('_', '-')}"
            options |= {name: flag, flag.lstrip("-").replace("-", "_"): flag}
    return options


def _missing(error: ImportError) -> str:
    """One hint for a missing package: the smallest extra that brings it."""
    from .._util.arguments import install_hint

    words = str(error)
    if "pip install" in words or not error.name:
        return words
    return install_hint(error.name.split(".")[0])


def note(line: str) -> None:
    """A line about the progress of a long work, on standard error."""
    plain_console(stderr=True).print(line, style="dim", soft_wrap=True, highlight=False)


def fail(message: str, code: int) -> None:
    """Say what is wrong and leave."""
    from rich.text import Text

    words = Text.assemble(("error:", "bold red"), " ", printable(message))
    plain_console(stderr=True).print(words, soft_wrap=True)
    raise typer.Exit(code)


def show(result: Any, as_json: bool, last: str = "", **options: Any) -> None:
    """Print a result: its table (made with options) and a last line, or JSON alone."""
    if as_json:
        show_json(result.to_dict())
        return
    show_table(result.table(**options))
    if last:
        say(last)


def show_table(table: Any) -> None:
    """Print a rich table."""
    plain_console().print(table)


def show_json(plain: dict[str, Any]) -> None:
    """Print JSON, and nothing else."""
    text = json.dumps(plain, indent=1, ensure_ascii=False, default=_for_json)
    typer.echo(text.translate(_JSON_CONTROLS))


def say(text: str) -> None:
    """A line on standard output."""
    plain_console().print(text, soft_wrap=True, highlight=False)


def read(
    data: str,
    target: str | None,
    columns: str | None = None,
    drop: str | None = None,
    normalize: str = "none",
    encoding: str = "utf-8",
) -> tuple[Any, list[str]]:
    """Rows of a file, as the options ask for them, and the columns that were left out.

    Columns that `fit` leaves out (IDs, one value) are left out, with a note, unless `columns`
    names the columns.
    """
    from ..data import read_rows
    from ..data.table_reader import uninformative_columns

    check_norm(normalize)
    rows = read_rows(
        data, target=target, columns=names(columns), drop=names(drop) or (), encoding=encoding
    )
    left_out: list[str] = []
    if columns is None and rows.columns and not hasattr(rows.X, "tocsr"):
        reasons = uninformative_columns(rows.columns, rows.X)
        used = [name for name in rows.columns if name not in reasons]
        if used and reasons:
            rows, left_out = rows.of_columns(used), list(reasons)
            for name, reason in reasons.items():
                note(f"{name} is left out: {reason}. --columns names the columns to use.")
    return rows.normalized(normalize), left_out


def reading_code(
    data: str, target: str | None, columns: str | None, drop: Sequence[str], normalize: str,
    encoding: str,
) -> str:  # fmt: skip
    """Two lines of Python that make X and y as `read` does, for the programs that are printed."""
    given = {"target": target, "columns": names(columns), "drop": list(drop)}
    given["encoding"] = None if encoding == "utf-8" else encoding
    options = [repr(data), *(f"{key}={value!r}" for key, value in given.items() if value)]
    scaled = "" if normalize == "none" else f".normalized({normalize!r})"
    return f"rows = km.datasets.read_rows({', '.join(options)}){scaled}\nX, y = rows.X, rows.y"


def check_norm(normalize: str) -> None:
    """Refuse other norms than those that exist."""
    if normalize not in ("none", "l1", "l2"):
        raise ValueError(f"--normalize must be l1, l2 or none, got {normalize!r}.")


def names(text: str | None) -> list[str] | None:
    """Items between commas."""
    return None if text is None else [item.strip() for item in text.split(",") if item.strip()]


def check_out(path: Path | None, what: str = "", suffixes: Sequence[str] = ()) -> None:
    """Refuse a file that cannot be written before hours of work, not after.

    With `suffixes`, those that `what` can be written as.
    """
    if path is not None and not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}. Make it first, "
            "or name another one."
        )
    if path is not None and suffixes:
        check_suffix(path, suffixes, what)


def check_suffix(path: AnyPath, allowed: Sequence[str], what: str) -> str:
    """The suffix of a file to write, in small letters; any other than those allowed is refused."""
    suffix = Path(path).suffix.lower()
    if suffix not in allowed:
        given = f"the suffix {Path(path).suffix!r}" if suffix else "no suffix"
        raise ValueError(
            f"cannot write {str(path)!r}: it has {given}, and {what} is written as "
            f"{', '.join(allowed)}."
        )
    return suffix


def parse_kernel(text: str) -> Any:
    """A kernel from its name; its width (or exponent) may follow: ``gaussian:2.5``."""
    from ..kernels import get

    name, _, width = text.partition(":")
    kernel = get(name)
    if not width:
        return kernel
    try:
        value = float(width)
    except ValueError:
        raise ValueError(f"the width {width!r} of the kernel {name!r} is not a number.") from None
    return kernel.with_parameter(value)


def parse_kernel_or_name(text: str) -> Any:
    """A kernel with the width that the text gives, or its name: the width then follows the data."""
    kernel = parse_kernel(text)
    return kernel if ":" in text else text


def _for_json(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
