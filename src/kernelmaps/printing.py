"""Escaping of text from files before it is printed."""

from __future__ import annotations

# The control characters of ASCII and Latin-1, except line ends and tabs.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}


def printable(text: str) -> str:
    r"""Write control characters as ``\x1b``: a terminal would obey them, and no font has them."""
    return text.translate(_CONTROLS)
