"""C for arrays and strings, and for tables of the engine: the bin of a value, its columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.table import AFFINE, CODE, EDGES, LOG2, Table
from ..engine.table.layout import (
    EDGE,
    FACTOR,
    FIRST_PIECE,
    HIGH,
    LOW,
    ORIGIN,
    TOP,
    Bins,
    Layout,
    coefficients,
    layout_of,
    octaves_of,
)


def c_array(name: str, values: Any, kind: str = "double") -> str:
    """An array with its initialiser; one without values has a zero, as C knows no empty ones."""
    items = [c_real(item) if kind == "double" else str(int(item)) for item in np.ravel(values)]
    lines = textwrap.wrap(", ".join(items or ["0"]), 93, break_on_hyphens=False)
    text = "\n  ".join(lines)
    return f"static const {kind} {name}[{max(1, len(items))}] = {{\n  {text}}};\n"


def c_real(value: float) -> str:
    return repr(float(value)).replace("inf", "HUGE_VAL")


def c_strings(values: Sequence[Any]) -> str:
    """Initialiser of an array of C strings: UTF-8, bytes beyond plain ASCII in octal."""

    def quoted(value: Any) -> str:
        plain = "".join(
            chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
            for byte in str(value).encode()
        )
        return f'"{plain}"'

    return "{" + ", ".join(map(quoted, values)) + "}"


def table_add(name: str, table: Table, width: str, missing: np.ndarray | None = None) -> str:
    """``NAME_add(d, x, out)`` of a table: adds the columns of feature d to `out`.

    `width` is how many they are, in C. NaN adds NaN to all of them, or the numbers in `missing`.
    """
    layout, instead = layout_of(table.astype(np.float64)), "x"
    arrays = _table_arrays(name, layout)
    if missing is not None:
        arrays += c_array(f"{name}_missing", missing)
        arrays += c_array(f"{name}_start", layout.column[:-1], "int")
        instead = f"{name}_missing[{name}_start[d] + j]"
    return arrays + _value_function(name, layout, width, instead)


def _table_arrays(name: str, layout: Layout) -> str:
    """The arrays of a layout that its bins and polynomials need."""
    bins = layout.bins
    integers = {
        "first_piece": bins.integers[FIRST_PIECE],
        "top": bins.integers[TOP],
        "band": layout.band,
        "first": layout.values.first,
    }
    reals = {"coef": coefficients(layout)}
    if bins.binning == AFFINE:
        reals |= {"origin": bins.numbers[ORIGIN], "factor": bins.numbers[FACTOR]}
    if bins.binning == EDGES:
        integers["edge"] = bins.integers[EDGE]
        reals["edges"] = bins.edges
    if _clips(bins):
        reals |= {"low": bins.numbers[LOW], "high": bins.numbers[HIGH]}
    text = [c_array(f"{name}_{key}", values, "int") for key, values in integers.items()]
    return "".join(text + [c_array(f"{name}_{key}", values) for key, values in reals.items()])


def _clips(bins: Bins) -> bool:
    """Whether values are clipped."""
    return bins.binning != CODE and bool(np.isfinite(bins.numbers[[LOW, HIGH]]).any())


def _locating(name: str, layout: Layout) -> str:
    """Statements that set the bin b and the position u of a value t of feature d."""
    bins = layout.bins
    kind = bins.binning
    clip = f"""  if (t < {name}_low[d]) t = {name}_low[d];
  if (t > {name}_high[d]) t = {name}_high[d];
"""
    clip = clip if _clips(bins) else ""
    if kind == LOG2:
        first, count = octaves_of(bins)
        return f"""{clip}  {{
    int octave, within;
    double part = (2.0 * frexp(t > 0.0 ? t : 1.0, &octave) - 1.0) * {c_real(count)};
    within = (int)part < {count - 1} ? (int)part : {count - 1};
    b = (octave - 1 - ({first})) * {count} + within;
    u = part - (double)within;
  }}
"""
    if kind == EDGES:
        place = "(t - e[b]) / (e[b + 1] - e[b])" if bins.position else "0.0"
        return f"""{clip}  {{
    const double *e = {name}_edges + {name}_edge[d];
    int above = {name}_top[d] + 1;
    b = 0;
    while (above - b > 1) {{
      int middle = (b + above) / 2;
      if (e[middle] <= t) b = middle; else above = middle;
    }}
    u = {place};
  }}
"""
    change = f"  t = (t - {name}_origin[d]) * {name}_factor[d];\n" if kind == AFFINE else ""
    return f"""{clip}{change}  b = t > 0.0 ? (t < {name}_top[d] ? (int)t : {name}_top[d]) : 0;
  u = t - (double)b;
"""


def _value_function(name: str, layout: Layout, width: str, missing: str) -> str:
    bins = layout.bins
    _, powers, columns = coefficients(layout).shape
    other = f"  if (x < 0.0) piece += {bins.mirror};\n" if bins.signed else ""
    other += f"  if (x == 0.0) piece = {bins.zero_piece};\n" if bins.zero_at_zero else ""
    return f"""
static void {name}_add(int d, double x, double *out)
{{
  const double *c;
  double t = {"fabs(x)" if bins.signed else "x"}, u;
  int b, j, k, piece;
  if (x != x) {{
    for (j = 0; j < {width}; ++j) out[j] += {missing};
    return;
  }}
{_locating(name, layout)}  piece = {name}_first_piece[d] + b;
{other}  c = {name}_coef + (long)piece * {powers * columns};
  out += {name}_first[piece];
  for (j = 0; j < {name}_band[d]; ++j) {{
    double value = c[{(powers - 1) * columns} + j];
    for (k = {powers - 2}; k >= 0; --k) value = value * u + c[k * {columns} + j];
    out[j] += value;
  }}
}}
"""
