"""Export to C: a header without dependencies for additive maps and additive models.

What comes out is C99 (and C++), needs nothing but ``<math.h>``, allocates nothing, and has one
function ``void NAME(const double *x, double *out)``. Cosine maps are written as their formula, a
few numbers long; everything else as its table of local polynomials.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

import kernelmaps

from .engine import Spec, Table
from .engine.compile import Extent, compiled_table
from .engine.families import CURVES
from .engine.reference import table_of
from .engine.table import AFFINE, EDGES, LOG2

__all__ = ["to_c"]

_REACH = (2.0**-20, 2.0**20)  # values that tables of curves in log x cover


def to_c(
    what: Any,
    name: str = "kernel_map",
    *,
    feature_names: Sequence[str] | None = None,
    note: str = "",
) -> str:
    """The text of a C header for an additive map, a design, or an additive model.

    Parameters
    ----------
    what : fitted AdditiveMap, Design, Spec, AdditiveClassifier or AdditiveRegressor
        A design is a map of one feature.
    name : str
        Name of the function, and prefix of all other names.
    feature_names : sequence of str, optional
        Names of the values of `x`, for the macro ``NAME_FEATURE_NAMES``; by default those that the
        estimator was fitted with.
    note : str
        A sentence for the comment at the top.

    Returns
    -------
    str
        A header with ``static void NAME(const double *x, double *out)``: `x` has ``NAME_FEATURES``
        values, `out` room for ``NAME_COLUMNS`` (the scores of the classes, for a model). The macros
        ``NAME_FEATURE_NAMES`` and ``NAME_CLASS_NAMES``, initialisers of arrays of strings, say in
        which order.

    Examples
    --------
    >>> import kernelmaps as km
    >>> from kernelmaps.export_c import to_c
    >>> header = to_c(km.HomogeneousMap("chi2", n_components=5).fit([[0.2, 0.8]]), "chi2_map")
    >>> "static void chi2_map(const double *x, double *out)" in header
    True
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"to_c: name must be a C identifier, got {name!r}.")
    what = getattr(what, "estimator_", what)  # a search over C is its best model
    labels = _labels(name, what, feature_names)
    if hasattr(what, "shape_functions_"):
        from .models.additive.terms import terms_table

        table, offset = terms_table(what)
        return _header(name, what, labels + _summing(name, table, offset), note)
    spec, n_features = _spec_of(what)
    if spec.family in ("log_waves", "waves"):
        return _header(name, what, labels + _waves(name, spec, n_features), note)
    return _header(name, what, labels + _concatenating(name, _table(spec, n_features)), note)


def _labels(name: str, what: Any, feature_names: Sequence[str] | None) -> str:
    """Macros with the names of features and classes, which cost nothing where they are not used."""
    if feature_names is None:
        feature_names = getattr(what, "feature_names_in_", None)
    classes = getattr(what, "classes_", None)
    NAME, text = name.upper(), ""
    if feature_names is not None:
        text += f"#define {NAME}_FEATURE_NAMES {_strings(feature_names)}\n"
    if classes is not None:
        if len(classes) == 2:
            text += "/* One score: the second class where it is positive. */\n"
        text += f"#define {NAME}_CLASS_NAMES {_strings(classes)}\n"
    return text


def _strings(values: Sequence[Any]) -> str:
    """Initialiser of an array of C strings: UTF-8, bytes beyond plain ASCII in octal."""

    def quoted(value: Any) -> str:
        plain = "".join(
            chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
            for byte in str(value).encode()
        )
        return f'"{plain}"'

    return "{" + ", ".join(map(quoted, values)) + "}"


def _spec_of(what: Any) -> tuple[Spec, int]:
    if isinstance(what, Spec):
        return what, _stored_features(what)
    if hasattr(what, "make_spec"):
        return what.spec, 1
    spec = getattr(what, "spec_", None)
    additive = spec is not None and (spec.family in CURVES or spec.family == "piecewise")
    if not additive:
        raise TypeError(
            f"to_c exports fitted additive maps, designs and additive models, not "
            f"{type(what).__name__}. Fit it first, or use kernelmaps.onnx for joint maps and ridge "
            "models."
        )
    return spec, int(what.n_features_in_)


def _stored_features(spec: Spec) -> int:
    if spec.family == "piecewise":
        return table_of(spec).n_features
    sizes = [len(a) for key, a in spec.arrays.items() if key in ("shift", "lower")]
    return max(sizes, default=1)


def _table(spec: Spec, n_features: int) -> Table:
    if spec.family == "piecewise":
        return table_of(spec)
    low, high = _REACH
    linear = CURVES[spec.family].argument == "linear"
    if linear and "lower" in spec.arrays:
        low, high = float(spec.arrays["lower"].min()), float(spec.arrays["upper"].max())
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        table = compiled_table(spec, dtype, n_features, Extent(low, high, low))
        if table is not None:
            return table
    raise ValueError(f"to_c: the table of this {spec.family} map would be too large.")


# ---- C text -------------------------------------------------------------------------------------


def _header(name: str, what: Any, body: str, note: str = "") -> str:
    guard = f"{name.upper()}_H"
    words = re.sub(r"\s+", " ", f"{type(what).__name__}" if isinstance(what, Spec) else repr(what))
    words = words.replace("*/", "* /")[:300]
    said = f"\n * {note}" if note else ""
    return f"""/* {name}: {words}
 * Written by kernelmaps {kernelmaps.__version__}. C99, needs nothing but math.h.
 * x has {name.upper()}_FEATURES values, out takes {name.upper()}_COLUMNS: {name}(x, out).{said} */
#ifndef {guard}
#define {guard}
#include <math.h>

{body}
#endif
"""


def _array(name: str, values: Any, kind: str = "double") -> str:
    values = np.ravel(values)
    if kind == "double":
        items = [_real(value) for value in values]
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


def _real(value: float) -> str:
    if np.isposinf(value):
        return "HUGE_VAL"
    if np.isneginf(value):
        return "-HUGE_VAL"
    text = repr(float(value))
    return text if any(c in text for c in ".en") else f"{text}.0"


def _waves(name: str, spec: Spec, n_features: int) -> str:
    """φ_j(t) = a_j t^{γ/2} cos(ω_j log t + p_j) + o_j, or the same in t itself."""
    columns, log = len(spec.arrays["amplitude"]), spec.family == "log_waves"
    NAME = name.upper()
    offset = spec.arrays.get("offset", np.zeros(columns))
    parts = [
        f"#define {NAME}_FEATURES {n_features}\n#define {NAME}_COLUMNS {n_features * columns}\n",
        *(_array(f"{name}_{key}", spec.arrays[key]) for key in ("amplitude", "frequency", "phase")),
        _array(f"{name}_offset", offset),
    ]
    fit = []
    for key in ("lower", "upper", "shift", "scale"):
        if key in spec.arrays:
            parts.append(_array(f"{name}_{key}", np.broadcast_to(spec.arrays[key], n_features)))
    if "lower" in spec.arrays:
        fit.append(f"    if (t < {name}_lower[d]) t = {name}_lower[d];")
        fit.append(f"    if (t > {name}_upper[d]) t = {name}_upper[d];")
    if "shift" in spec.arrays:
        fit.append(f"    t = (t - {name}_shift[d]) * {name}_scale[d];")
    signed = bool(spec.numbers.get("signed", False))
    size = "fabs(x[d])" if signed else "x[d]"
    sign = "(x[d] < 0.0 ? -1.0 : 1.0)" if signed else "1.0"
    body = [f"    double t = {size}, size, argument;", "    int j;"]
    if log:
        zero = f"for (j = 0; j < {columns}; ++j) *out++ = 0.0; continue;"
        body.append(f"    if (!(t > 0.0)) {{ {zero} }}")
    body += fit
    if log:
        body.append(f"    size = {sign} * pow(t, {_real(spec.numbers['gamma'] / 2)});")
        body.append("    argument = log(t);")
    else:
        body.append(f"    size = {sign};\n    argument = t;")
    body.append(
        f"    for (j = 0; j < {columns}; ++j)\n"
        f"      *out++ = size * ({name}_amplitude[j]\n"
        f"        * cos({name}_frequency[j] * argument + {name}_phase[j]) + {name}_offset[j]);"
    )
    loop = "\n".join(body)
    return (
        "".join(parts)
        + f"\nstatic void {name}(const double *x, double *out)\n{{\n  int d;\n"
        + f"  for (d = 0; d < {NAME}_FEATURES; ++d) {{\n{loop}\n  }}\n}}\n"
    )


def _table_arrays(name: str, table: Table, with_width: bool = True) -> str:
    kinds = {
        "set_of": "int",
        "bins": "int",
        "width": "int",
        "band": "int",
        "first": "int",
        "first_start": "long",
        "coef_start": "long",
        "edge_start": "long",
    }
    if not with_width:  # unused in a model, and compilers warn
        kinds.pop("width")
    reals = ["lo", "scale", "low", "high", "coef"]
    if table.binning == EDGES:
        reals.append("edges")
    else:
        kinds.pop("edge_start")
    text = [_array(f"{name}_{key}", getattr(table, key), kind) for key, kind in kinds.items()]
    return "".join(text + [_array(f"{name}_{key}", getattr(table, key)) for key in reals])


def _locating(name: str, table: Table) -> str:
    """Statements that set the bin b and the position u of a value t of set s."""
    if table.binning == AFFINE:
        return f"""  t = (t - {name}_lo[s]) * {name}_scale[s];
  b = t > 0.0 ? (t < (double)({name}_bins[s] - 1) ? (int)t : {name}_bins[s] - 1) : 0;
  u = t - (double)b;
"""
    if table.binning == LOG2:
        return f"""  {{
    int octave, within, last = (1 << (int){name}_scale[s]) - 1;
    double part = (2.0 * frexp(t > 0.0 ? t : 1.0, &octave) - 1.0) * (double)(last + 1);
    within = (int)part < last ? (int)part : last;
    b = (octave - 1 - (int){name}_lo[s]) * (last + 1) + within;
    u = part - (double)within;
    if (b < 0) {{ b = 0; u = 0.0; }}
    if (b > {name}_bins[s] - 1) {{ b = {name}_bins[s] - 1; u = 1.0; }}
  }}
"""
    return f"""  {{
    const double *e = {name}_edges + {name}_edge_start[s];
    int above = {name}_bins[s];
    b = 0;
    while (above - b > 1) {{
      int middle = (b + above) / 2;
      if (e[middle] <= t) b = middle; else above = middle;
    }}
    u = (t - e[b]) / (e[b + 1] - e[b]);
  }}
"""


def _value_function(name: str, table: Table) -> str:
    """``NAME_add(d, x, out)``: adds the columns of one feature to `out`."""
    zero = "  if (x == 0.0) return;\n" if table.zero else ""
    powers = table.degree + 1
    size = "fabs(x)" if table.signed else "x"
    sign = "(x < 0.0 ? -1.0 : 1.0)" if table.signed else "1.0"
    return f"""
static void {name}_add(int d, double x, double *out)
{{
  const int s = {name}_set_of[d], band = {name}_band[s];
  const double *c;
  double t = {size}, u;
  int b, j, k;
{zero}  if (t < {name}_low[s]) t = {name}_low[s];
  if (t > {name}_high[s]) t = {name}_high[s];
{_locating(name, table)}  c = {name}_coef + {name}_coef_start[s] + (long)b * {powers} * band;
  out += {name}_first[{name}_first_start[s] + b];
  for (j = 0; j < band; ++j) {{
    double value = c[{table.degree} * band + j];
    for (k = {table.degree} - 1; k >= 0; --k) value = value * u + c[k * band + j];
    out[j] += {sign} * value;
  }}
}}
"""


def _concatenating(name: str, table: Table) -> str:
    NAME = name.upper()
    return (
        f"#define {NAME}_FEATURES {table.n_features}\n#define {NAME}_COLUMNS {table.n_columns}\n"
        + _table_arrays(name, table)
        + _value_function(name, table)
        + f"""
static void {name}(const double *x, double *out)
{{
  int d, j;
  for (d = 0; d < {NAME}_FEATURES; ++d) {{
    const int width = {name}_width[{name}_set_of[d]];
    for (j = 0; j < width; ++j) out[j] = 0.0;
    {name}_add(d, x[d], out);
    out += width;
  }}
}}
"""
    )


def _summing(name: str, table: Table, offset: np.ndarray) -> str:
    NAME = name.upper()
    arrays = _table_arrays(name, table, with_width=False)
    return (
        f"#define {NAME}_FEATURES {table.n_features}\n#define {NAME}_COLUMNS {len(offset)}\n"
        + arrays
        + _array(f"{name}_offset", offset)
        + _value_function(name, table)
        + f"""
static void {name}(const double *x, double *out)
{{
  int d;
  for (d = 0; d < {NAME}_COLUMNS; ++d) out[d] = {name}_offset[d];
  for (d = 0; d < {NAME}_FEATURES; ++d) {name}_add(d, x[d], out);
}}
"""
    )
