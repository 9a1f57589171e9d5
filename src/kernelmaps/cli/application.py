"""The application, and what its commands share: arguments, output, error handling."""

from __future__ import annotations

import functools
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from .._util.display import plain_console, printable
from .._util.storage import AnyPath

EPILOG = (
    "Exit codes: 0 done, 1 not possible (no map has an error below the tolerance, disk full), "
    "2 bad input or usage, 3 a file that cannot be read as a model, 130 interrupted."
)

app = typer.Typer(
    name="kernelmaps",
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
    """Generalised additive models of tables, and explicit feature maps for kernels.

    A table: `kernelmaps fit mine.csv --target label --out model.kmap`, then `kernelmaps explain
    model.kmap --report report.html` and `kernelmaps predict model.kmap new.csv`.

    Kernel machines in linear time, with a known error: `kernelmaps demo`, then
    `kernelmaps compare digits --report out.html`.
    """


IMPOSSIBLE, BAD_INPUT, BAD_FILE, INTERRUPTED = 1, 2, 3, 130
NORMS = ("none", "l1", "l2")

# Control characters that json.dumps leaves as they are.
_JSON_CONTROLS = {code: f"\\u{code:04x}" for code in range(127, 160)}

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV (also .gz, .zst), Excel, Parquet or npy file, or a dataset by name: digits.",
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
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A .kmap file made by fit.")]
Exposure = Annotated[
    str | None,
    typer.Option(help="Column of exposures, for --loss poisson, gamma, …; later: that of fit."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@dataclass(frozen=True)
class FileOptions:
    """How a file of rows is read, as options of a command."""

    encoding: Annotated[str, typer.Option(help="Encoding of CSV text, such as cp1252.")] = "utf-8"
    bad_lines: Annotated[
        str,
        typer.Option(
            help="Lines of CSV text with more or fewer cells than the header: error, or skip."
        ),
    ] = "error"
    na_values: Annotated[
        list[str] | None,
        typer.Option(
            help="Cells that stand for a missing value, such as k.A., separated by commas."
        ),
    ] = None
    sheet: Annotated[str | None, typer.Option(help="Sheet of an Excel file; the first one.")] = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of `open_table` that differ from their defaults."""
        stated = {f.name: getattr(self, f.name) for f in fields(FileOptions)}
        tokens = [token for item in self.na_values or () for token in names(item) or ()]
        stated["na_values"] = tokens or None
        return {f.name: stated[f.name] for f in fields(FileOptions) if stated[f.name] != f.default}

    def open(self, path: AnyPath) -> Any:
        """The file with these options, if its columns have names."""
        from ..data.table_files import open_table

        return open_table(path, **self.arguments()) or path


def command(function: Callable[..., None], *, fits: bool = True) -> Callable[..., None]:
    """Add a command to the application; expected errors become one line and an exit code.

    Messages of the library name the options of the command, see `named_as_options`. A command that
    fits nothing imports scikit-learn, which takes more than a second, only if it needs it.
    """
    prefix = f"{function.__name__}: "  # of messages, which the user of a command knows

    @functools.wraps(function)
    def wrapper(*arguments: Any, **options: Any) -> None:
        from .._util.arguments import named_as_options
        from ..exceptions import DesignError, FileFormatError, ToleranceError

        try:
            with _warnings_as_lines(prefix, fits), named_as_options(_options(function)):
                function(*arguments, **options)
        except FileFormatError as error:
            fail(str(error), BAD_FILE)
        except (ToleranceError, DesignError, MemoryError) as error:
            fail(str(error).removeprefix(prefix), IMPOSSIBLE)
        except (ValueError, TypeError, KeyError, FileNotFoundError, IsADirectoryError) as error:
            words = str(error.args[0]) if isinstance(error, KeyError) else str(error)
            words = re.sub(r"^\[Errno \d+\] ", "", words)
            fail(words.removeprefix(prefix), BAD_INPUT)
        except ImportError as error:
            fail(_describe_missing(error), BAD_INPUT)
        except EOFError as error:
            fail(f"a file ends too early: {error}", BAD_INPUT)
        except OSError as error:
            if error.errno is None:  # of what is in a file (pyarrow's, say), not of the system
                fail(f"a file cannot be read: {error}", BAD_INPUT)
            fail(f"{error}. Files that existed before are as they were.", IMPOSSIBLE)
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)

    _name_values(function)
    return app.command()(wrapper)


def take_settings(cls: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of a dataclass as options; its first argument is an instance."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def call(**options: Any) -> None:
            settings = cls(**{name: options.pop(name) for name in signature(cls).parameters})
            function(settings, **options)

        hints = get_type_hints(function, include_extras=True)
        hints |= get_type_hints(cls, include_extras=True)
        _, *parameters = signature(function).parameters.values()
        parameters += signature(cls).parameters.values()
        parameters = [item.replace(annotation=hints[item.name]) for item in parameters]
        call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = hints
        return call

    return decorate


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


def _name_values(function: Callable[..., None]) -> None:
    """Say in the help what an option takes: a column, a file, a number; a flag takes nothing."""
    words = {bool: "", Path: "FILE", int: "INTEGER", float: "NUMBER"}
    for name, hint in get_type_hints(function, include_extras=True).items():
        option = next(iter(getattr(hint, "__metadata__", ())), None)
        if isinstance(option, typer.models.OptionInfo):
            kind = (*get_args(hint.__origin__), hint.__origin__)[0]
            takes_column = name in ("target", "event", "exposure", "sample_weight")
            option.metavar = "COLUMN" if takes_column else words.get(kind, "TEXT")


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


def _describe_missing(error: ImportError) -> str:
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


def show(result: Any, as_json: bool, last: str = "") -> None:
    """Print a result: its table and a last line, or JSON alone."""
    if as_json:
        show_json(result.to_dict())
        return
    plain_console().print(result.table())
    if last:
        say(last)


def show_json(plain: dict[str, Any]) -> None:
    """Print JSON, and nothing else."""

    def to_plain(value: Any) -> Any:
        return value.item() if hasattr(value, "item") else str(value)

    text = json.dumps(plain, indent=1, ensure_ascii=False, default=to_plain)
    typer.echo(text.translate(_JSON_CONTROLS))


def say(text: Any) -> None:
    """A line, or a rich table, on standard output."""
    plain_console().print(text, soft_wrap=isinstance(text, str), highlight=False)


def names(text: str | None) -> list[str] | None:
    """Items between commas."""
    return None if text is None else [item.strip() for item in text.split(",") if item.strip()]


def check_out(path: AnyPath | None, kind: str = "", suffixes: Sequence[str] = ()) -> str:
    """Refuse a file that cannot be written before hours of work, not after; its suffix.

    With `suffixes`, those that `kind` can be written as.
    """
    if path is None:
        return ""
    shown, suffix, folder = repr(os.fspath(path)), Path(path).suffix, Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"cannot write {shown}: there is no folder {str(folder)!r}. Make it first, or name "
            "another one."
        )
    if suffixes and suffix.lower() not in suffixes:
        end = f"the suffix {suffix!r}" if suffix else "no suffix"
        raise ValueError(
            f"cannot write {shown}: it has {end}, and {kind} is written as {', '.join(suffixes)}."
        )
    return suffix.lower()
