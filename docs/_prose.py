"""Let docstrings be written as one writes: ``|x|`` and ``mean_`` are not markup.

reStructuredText reads ``|x|`` as a substitution and ``mean_`` as a link. Our docstrings use
neither, so both are escaped before they are parsed, in prose only: literals, roles, directives and
tables are left as they are.
"""

import re

MARKED = re.compile(r"(`+[^`]*`+_{0,2})")  # literals, roles and links stay
BAR = re.compile(r"(?<!\\)\|")
TRAILING = re.compile(r"(?<=[A-Za-z0-9])_(?![A-Za-z0-9_])")


def escape(line: str) -> str:
    """Escape bars and trailing underscores outside of what backticks enclose."""
    pieces = MARKED.split(line)
    pieces[::2] = [TRAILING.sub(r"\\_", BAR.sub(r"\\|", piece)) for piece in pieces[::2]]
    return "".join(pieces)


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def escape_prose(lines: list[str]) -> list[str]:
    """Escape the lines that are prose."""
    result: list[str] = []
    inside: int | None = None  # indentation of the directive or literal block that we are in
    for line in lines:
        text = line.strip()
        if inside is not None and text and indent(line) <= inside:
            inside = None
        is_markup = text.startswith(("..", "+-", "+=", "| ", ">>>", ":"))
        result.append(line if inside is not None or is_markup else escape(line))
        if inside is None and (text.startswith("..") or text.endswith("::")):
            inside = indent(line)
    return result


def process(app, what, name, obj, options, lines):
    """Handle Sphinx's event, after numpydoc has done its part."""
    lines[:] = escape_prose(lines)
