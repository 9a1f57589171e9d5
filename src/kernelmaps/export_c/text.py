"""Pieces of C: arrays, numbers and strings as initialisers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def c_array(name: str, values: Any, kind: str = "double") -> str:
    values = np.ravel(values)
    if kind == "double":
        items = [c_real(value) for value in values]
    else:
        items = [str(int(value)) for value in values]
    lines, line = [], ""
    for item in items or ["0"]:
        if len(line) + len(item) > 92:
            lines.append(line)
            line = ""
        line += f"{item}, "
    lines.append(line)
    text = "\n  ".join(part.rstrip() for part in lines).rstrip(",")
    return f"static const {kind} {name}[{max(1, len(items))}] = {{\n  {text}}};\n"


def c_real(value: float) -> str:
    if np.isposinf(value):
        return "HUGE_VAL"
    if np.isneginf(value):
        return "-HUGE_VAL"
    text = repr(float(value))
    return text if any(c in text for c in ".en") else f"{text}.0"


def c_strings(values: Sequence[Any]) -> str:
    """Initialiser of an array of C strings: UTF-8, bytes beyond plain ASCII in octal."""

    def quoted(value: Any) -> str:
        plain = "".join(
            chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
            for byte in str(value).encode()
        )
        return f'"{plain}"'

    return "{" + ", ".join(map(quoted, values)) + "}"
