"""Run the code blocks of some pages while they are built, and show what they print and draw.

These are the tutorials, the first page, and pages of the guide. The sources stay
plain Markdown. Blocks of Python run in their order in one namespace, lines of shell blocks that
begin with ``kernelmaps`` run as commands, all in an empty folder. What a block prints is put below
it as a block of text, what it draws as a picture. A block that fails stops the build. A class of
the block says how many columns the text has, so that the style sheet can show whole lines on a
phone.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from math import ceil
from pathlib import Path

FENCE = re.compile(r"^```(python|sh)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
EXECUTED = ("index", "guide/inference", "guide/messy_files", "guide/recipes")
COLUMNS = "80"  # of the terminal that commands print to; a page is about that wide


def run_python(source: str, namespace: dict) -> str:
    """What a block of Python prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "<tutorial>", "exec"), namespace)
    return printed.getvalue()


def run_commands(source: str) -> str:
    """What the commands of a shell block print; each command is repeated above its output."""
    environment = os.environ | {"COLUMNS": COLUMNS, "NO_COLOR": "1"}
    output = []
    for line in source.splitlines():
        if line.startswith("kernelmaps "):
            command = line.split("#")[0].strip()
            arguments = [sys.executable, "-m", *command.split()]
            output += [f"$ {command}", output_of(arguments, environment)]
    return "\n".join(output)


def output_of(arguments: list[str], environment: dict[str, str]) -> str:
    """Output and messages of a command in the order in which they appear."""
    return subprocess.run(
        arguments, env=environment, text=True, check=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ).stdout  # fmt: skip


def wrap_lines(text: str) -> list[str]:
    """Lines of at most 100 characters, as wide as a page; what follows a break is indented."""
    options = {"width": 100, "subsequent_indent": 6 * " ", "replace_whitespace": False}
    return [part for line in text.splitlines() for part in textwrap.wrap(line, **options) or [""]]


def save_figures(folder: Path, name: str, begin: int) -> list[Path]:
    """Write the open figures of matplotlib as pictures and close them."""
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for k, number in enumerate(pyplot.get_fignums(), begin):
        paths.append(folder / f"{name}_{k}.png")
        pyplot.figure(number).savefig(paths[-1], dpi=120, bbox_inches="tight")
    pyplot.close("all")
    return paths


def execute(text: str, name: str, pictures: Path) -> str:
    """The page with the output below each block."""
    namespace: dict = {"__name__": "tutorial"}
    n_pictures = 0

    def with_output(match: re.Match) -> str:
        nonlocal n_pictures
        language, source = match.groups()
        printed = run_python(source, namespace) if language == "python" else run_commands(source)
        result = match.group()
        if printed.strip():
            lines = wrap_lines(printed.strip("\n").replace("```", "'''"))
            output = "\n".join(lines)
            columns = f"columns-{10 * ceil(max(map(len, lines)) / 10)}"
            result += f"\n```{{code-block}} text\n:class: output {columns}\n\n{output}\n```\n"
        figures = save_figures(pictures, name, n_pictures)
        n_pictures += len(figures)
        for path in figures:
            result += f"\n![What the block above draws](/{path.parent.name}/{path.name})\n"
        return result

    return FENCE.sub(with_output, text)


def read_source(app, docname: str, source: list[str]) -> None:
    """Add the output to the source of a page; a handler of Sphinx's event ``source-read``."""
    if docname not in EXECUTED and not docname.startswith("tutorials/"):
        return
    import matplotlib

    matplotlib.use("agg")
    pictures = Path(app.srcdir) / "tutorial_pictures"
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for path in (Path(app.srcdir) / "tutorials").glob("*.gz"):  # tables that pages read
            shutil.copy(path, folder)
        os.chdir(folder)
        try:
            source[0] = execute(source[0], docname.replace("/", "_"), pictures)
        finally:
            os.chdir(home)


def setup(app):
    app.connect("source-read", read_source)
    return {"parallel_read_safe": True}
