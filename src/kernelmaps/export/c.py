"""Export to C: a header without dependencies for additive maps and additive models.

What comes out is C99 (and C++), needs nothing but ``<math.h>``, allocates nothing, and has one
function ``void NAME(const double *x, double *out)``. Curves (cosines, Chebyshev's and the
elementary series) are written as their formula, a few numbers long, which holds for every number;
everything else as its table of local polynomials, with the same tails, borders and clipping as
here. A NaN gives NaN, where Python refuses it; for a model of a table it is a missing value.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import kernelmaps

from ..data.text_cells import GAPS
from ..engine import Spec
from ..engine.families import CURVES
from ..engine.piecewise import table_of
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
from ..engine.table.stored import starts_of
from ..engine.tabulated import PER_FEATURE, count_curve_sets, n_columns
from ..maps.base import AdditiveMap
from ..models.gam.functions import exposure_note, input_names, last_code
from ..models.gam.predictor import AdditivePredictor
from ..models.shapes import predictor_of
from ..models.streaming.predictor import LinearPredictor
from ..models.svm.fitted import AdditiveMachine, sum_weighted

__all__ = ["to_c"]


def to_c(
    what: Any,
    name: str = "kernel_map",
    *,
    feature_names: Sequence[str] | None = None,
    note: str = "",
) -> str:
    """Write the C header of an additive map, a design or an additive model as text.

    Parameters
    ----------
    what : fitted AdditiveMap, Design, Spec, or a model or its predictor
        A design is a map of one feature. Models are GAMs, additive SVMs, and ridge or lasso models
        on an additive map.
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
        A header with ``static inline void NAME(const double *x, double *out)``: `x` has
        ``NAME_FEATURES`` values, `out` room for ``NAME_COLUMNS`` (the scores of the classes, for a
        model). The macros ``NAME_FEATURE_NAMES`` and ``NAME_CLASS_NAMES``, initialisers of arrays
        of strings, say in which order.

        A model of a table takes NaN for a missing value, and a category as the number of its level:
        ``NAME_level(column, text)`` finds it among the names of the levels, blanks of ASCII
        around the text aside, gives NaN for NULL, an empty text, and "NA" and such words, as
        `predict` does, and a number that stands for all unseen levels. Regressors give what
        `predict` gives; classifiers also have ``NAME_probabilities(x, out)``.

    Examples
    --------
    >>> import kernelmaps as km
    >>> from kernelmaps.export.c import to_c
    >>> header = to_c(km.HomogeneousMap("chi2", n_components=5).fit([[0.2, 0.8]]), "chi2_map")
    >>> "static inline void chi2_map(const double *x, double *out)" in header
    True
    """
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"to_c: name must be a C identifier, got {name!r}.")
    model = predictor_of(what)
    if getattr(model, "_pairwise", False):
        raise ValueError(
            "to_c: multi_class='ovo', whose votes have no form in C. Train it with 'ovr'."
        )
    labels = _labels(name, model, feature_names)
    if isinstance(model, AdditivePredictor | AdditiveMachine | LinearPredictor):
        return _header(name, what, labels + _model(name, model), note)
    spec, n_features = _spec_of(what)
    if spec.family in _FORMULAS:
        widths = np.full(n_features, n_columns(spec, 1))
        adding = _curve_add(name, spec, n_features)
    else:
        table = table_of(spec)
        widths, adding = np.diff(table.column), _table_add(name, table, f"{name}_width[d]")
    return _header(name, what, labels + _concatenating(name, adding, widths), note)


def _labels(name: str, what: Any, feature_names: Sequence[str] | None) -> str:
    """Macros with the names of features and classes, which cost nothing where they are not used."""
    if feature_names is None:
        feature_names = input_names(what)
    classes = getattr(what, "classes_", None)
    NAME, text = name.upper(), ""
    if feature_names is not None:
        text += f"#define {NAME}_FEATURE_NAMES {_strings(feature_names)}\n"
    if classes is not None:
        if len(classes) == 2:
            text += "/* One score: the second class where it is positive. */\n"
        text += f"#define {NAME}_CLASS_NAMES {_strings(classes)}\n"
    return text


def _model(name: str, model: AdditivePredictor | AdditiveMachine | LinearPredictor) -> str:
    if isinstance(model, AdditivePredictor):
        return _table_model(name, model)
    n_features, columns = model.n_features_in_, f"{name.upper()}_COLUMNS"
    terms = _weighted_map(model) if isinstance(model, LinearPredictor) else model.curve_terms()
    if terms is None:
        assert isinstance(model, AdditiveMachine)
        table, offset = model.terms_table()
        adding = _table_add(name, table, columns)
    else:
        spec, weights, offset = terms
        if spec.family in _FORMULAS:
            adding = _curve_add(name, spec, n_features, weights)
        else:
            adding = _table_add(name, sum_weighted(table_of(spec), weights), columns)
    NAME, parts = name.upper(), _array(f"{name}_intercept", offset) + adding
    body = f"""  int d;
  for (d = 0; d < {NAME}_COLUMNS; ++d) out[d] = {name}_intercept[d];
  for (d = 0; d < {NAME}_FEATURES; ++d) {name}_add(d, x[d], out);
"""
    return _function(name, n_features, len(offset), parts, body)


def _weighted_map(model: LinearPredictor) -> tuple[Spec, np.ndarray, np.ndarray]:
    """Spec, weights [feature][column][output] and intercepts of a model on an additive map."""
    part, (coef, intercept) = model.features.parts[0], model.weights
    is_plain = not model.features.several and part.columns is None and part.axes is None
    if not (is_plain and isinstance(part.map, AdditiveMap)):
        raise TypeError(
            f"to_c: {model.estimator} has a form in C on one additive map of all columns. Use "
            "kernelmaps.export.onnx for other maps."
        )
    widths = part.map._columns_per_feature()
    weights = np.zeros((len(widths), max(widths), len(coef)))
    for own, columns in zip(weights, np.split(coef.T, np.cumsum(widths)[:-1]), strict=True):
        own[: len(columns)] = columns
    return part.map.spec_, weights, intercept


def _spec_of(what: Any) -> tuple[Spec, int]:
    design = hasattr(what, "make_spec")
    spec = what.spec if design else what if isinstance(what, Spec) else getattr(what, "spec_", None)
    if spec is None or spec.family not in (*_FORMULAS, "piecewise"):
        raise TypeError(
            f"to_c exports fitted additive maps, designs and additive models, not "
            f"{type(what).__name__}. Use kernelmaps.export.onnx for joint maps."
        )
    if design:
        return spec, 1
    if spec is not what:
        return spec, int(what.n_features_in_)
    is_table = spec.family == "piecewise"
    return spec, table_of(spec).n_features if is_table else count_curve_sets(spec)


# ---- C text -------------------------------------------------------------------------------------


def _comment(text: str) -> str:
    """Text that stays within a comment."""
    return re.sub(r"\s+", " ", text).replace("*/", "* /")


def _header(name: str, what: Any, body: str, note: str = "") -> str:
    guard = f"{name.upper()}_H"
    edits = getattr(predictor_of(what), "edits", ())
    notes = [
        *filter(None, [note, exposure_note(what)]),
        *(f"Edited after the fit: {edit}." for edit in edits),
    ]
    kind = type(what).__name__ if isinstance(what, Spec) else getattr(what, "estimator", repr(what))
    words = _comment(kind)[:300]
    lines = "".join(f"\n * {_comment(line)}" for line in notes)
    return f"""/* {name}: {words}
 * Written by kernelmaps {kernelmaps.__version__}. C99, needs nothing but math.h.
 * x has {name.upper()}_FEATURES values, out takes {name.upper()}_COLUMNS: {name}(x, out).{lines} */
#ifndef {guard}
#define {guard}
#include <math.h>

{body}
#endif
"""


def _waves(name: str, spec: Spec) -> tuple[str, str]:
    """φ_j(t) = a_j t^{γ/2} cos(ω_j log t + p_j) + o_j, or the same in t itself."""
    columns, log = len(spec.arrays["amplitude"]), spec.family == "log_waves"
    offset = spec.arrays.get("offset", np.zeros(columns))
    arrays = [_array(f"{name}_{k}", spec.arrays[k]) for k in ("amplitude", "frequency", "phase")]
    argument = "log(t)" if log else "t"
    size = f"sign * pow(t, {_number(spec.numbers['gamma'] / 2)})" if log else "sign"
    formula = f"""  const double size = {size}, argument = {argument};
  for (j = 0; j < {columns}; ++j)
    phi[j] = size * ({name}_amplitude[j]
      * cos({name}_frequency[j] * argument + {name}_phase[j]) + {name}_offset[j]);
"""
    return "".join([*arrays, _array(f"{name}_offset", offset)]), formula


def _chebyshev(name: str, spec: Spec) -> tuple[str, str]:
    """The recurrence of the Chebyshev series (Li et al. 2012, eq. 12), in L = log(st)."""
    columns = int(spec.numbers["n_components"])
    second = f"  phi[1] = phi[0] * a * {_number(-math.sqrt(0.5))};\n" if columns > 1 else ""
    formula = f"""  const double L = log(t) + {_number(math.log(spec.numbers["scale"]))};
  const double a = L * {_number(2 / math.pi)};
  phi[0] = sign * sqrt(t) / cosh(L / 2.0);
{second}  for (j = 2; j < {columns}; ++j)
    phi[j] = ((j % 2 ? -a : a) * phi[j - 1] + (double)(j - 2) * phi[j - 2]) / (double)j;
"""
    return "", formula


def _series(name: str, spec: Spec) -> tuple[str, str]:
    """The elementary series (Li et al. 2012, eqs. 15-16), in T = tanh(L/2)."""
    formula = f"""  const double L = log(t) + {_number(math.log(spec.numbers["scale"]))};
  const double ratio = tanh(L / 2.0);
  phi[0] = sign * sqrt(t) / cosh(L / 2.0);
  for (j = 1; j < {int(spec.numbers["n_components"])}; ++j) phi[j] = phi[j - 1] * ratio;
"""
    return "", formula


# family -> (name, spec) -> arrays, statements that set phi[0 …] from t > 0 (or any t) and sign
_FORMULAS: dict[str, Callable[[str, Spec], tuple[str, str]]] = {
    "log_waves": _waves,
    "waves": _waves,
    "chebyshev": _chebyshev,
    "series": _series,
}


def _curve_add(name: str, spec: Spec, n_features: int, weights: np.ndarray | None = None) -> str:
    """``NAME_add(d, x, out)`` of curves; with weights [feature][column][output], of a model."""
    arrays, formula = _FORMULAS[spec.family](name, spec)
    columns, fit, weighted, term = n_columns(spec, 1), "", "", "out[j] += phi[j];"
    for key in PER_FEATURE:
        if key in spec.arrays:
            arrays += _array(f"{name}_{key}", np.broadcast_to(spec.arrays[key], n_features))
    if "lower" in spec.arrays:
        fit += f"  if (t < {name}_lower[d]) t = {name}_lower[d];\n"
        fit += f"  if (t > {name}_upper[d]) t = {name}_upper[d];\n"
    if "shift" in spec.arrays:
        fit += f"  t = (t - {name}_shift[d]) * {name}_scale[d];\n"
    if weights is not None:
        outputs = weights.shape[2]
        arrays += _array(f"{name}_weights", weights)
        start = f"{name}_weights + (long)d * {columns * outputs}"
        weighted = f"  const double *w = {start};\n  int k;\n"
        term = f"for (k = 0; k < {outputs}; ++k) out[k] += *w++ * phi[j];"
    signed = bool(spec.numbers.get("signed", False))
    sign = "x < 0.0 ? -1.0 : 1.0" if signed else "1.0"
    nothing = "!(t > 0.0)" if CURVES[spec.family].argument == "log" else "x != x"
    # C99 lets declarations follow statements; the formula stands in a block of its own.
    return f"""{arrays}
static void {name}_add(int d, double x, double *out)
{{
  const double sign = {sign};
  double phi[{columns}], t = {"fabs(x)" if signed else "x"};
{weighted}  int j;
  (void)d;
  if ({nothing}) {{
    for (j = 0; j < {columns}; ++j) phi[j] = x != x ? x : 0.0;
  }} else {{
{textwrap.indent(fit + formula, "  ")}  }}
  for (j = 0; j < {columns}; ++j) {term}
}}
"""


def _concatenating(name: str, adding: str, widths: np.ndarray) -> str:
    """A map: the columns of all features side by side."""
    body = f"""  int d, j;
  for (d = 0; d < {name.upper()}_FEATURES; ++d) {{
    for (j = 0; j < {name}_width[d]; ++j) out[j] = 0.0;
    {name}_add(d, x[d], out);
    out += {name}_width[d];
  }}
"""
    parts = _array(f"{name}_width", widths, "int") + adding
    return _function(name, len(widths), int(np.sum(widths)), parts, body)


def _function(name: str, n_features: int, n_columns: int, parts: str, body: str) -> str:
    """The function of the header behind what it is made of."""
    NAME = name.upper()
    return f"""#define {NAME}_FEATURES {n_features}
#define {NAME}_COLUMNS {n_columns}
{parts}
static inline void {name}(const double *x, double *out)
{{
{body}}}
"""


# ---- arrays and tables --------------------------------------------------------------------------


def _array(name: str, values: Any, kind: str = "double") -> str:
    """An array with its initialiser; one without values has a zero, as C knows no empty ones."""
    items = [_number(item) if kind == "double" else str(int(item)) for item in np.ravel(values)]
    lines = textwrap.wrap(", ".join(items or ["0"]), 93, break_on_hyphens=False)
    text = "\n  ".join(lines)
    return f"static const {kind} {name}[{max(1, len(items))}] = {{\n  {text}}};\n"


def _number(value: float) -> str:
    return repr(float(value)).replace("inf", "HUGE_VAL")


def _strings(values: Sequence[Any]) -> str:
    """Initialiser of an array of C strings: UTF-8, bytes beyond plain ASCII in octal."""

    def quote(value: Any) -> str:
        plain = "".join(
            chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
            for byte in str(value).encode()
        )
        return f'"{plain}"'

    return "{" + ", ".join(map(quote, values)) + "}"


def _table_add(name: str, table: Table, width: str, missing: np.ndarray | None = None) -> str:
    """``NAME_add(d, x, out)`` of a table: adds the columns of feature d to `out`.

    `width` is how many they are, in C. NaN adds NaN to all of them, or the numbers in `missing`.
    """
    layout, instead = layout_of(table.astype(np.float64)), "x"
    arrays = _table_arrays(name, layout)
    if missing is not None:
        arrays += _array(f"{name}_missing", missing)
        arrays += _array(f"{name}_start", layout.column[:-1], "int")
        instead = f"{name}_missing[{name}_start[d] + j]"
    return arrays + _value_function(name, layout, width, instead)


def _table_arrays(name: str, layout: Layout) -> str:
    """The arrays of a layout that its bins and polynomials need."""
    bins = layout.bins
    integers = {
        "first_piece": bins.integers[FIRST_PIECE],
        "top": bins.integers[TOP],
        "n_stored": layout.n_stored,
        "first": layout.values.first_column,
    }
    reals = {"coef": coefficients(layout)}
    if bins.binning == AFFINE:
        reals |= {"origin": bins.numbers[ORIGIN], "factor": bins.numbers[FACTOR]}
    if bins.binning == EDGES:
        integers["edge"] = bins.integers[EDGE]
        reals["edges"] = bins.edges
    if _clips(bins):
        reals |= {"low": bins.numbers[LOW], "high": bins.numbers[HIGH]}
    text = [_array(f"{name}_{key}", values, "int") for key, values in integers.items()]
    return "".join(text + [_array(f"{name}_{key}", values) for key, values in reals.items()])


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
        first_octave, count = octaves_of(bins)
        return f"""{clip}  {{
    int octave, within;
    double part = (2.0 * frexp(t > 0.0 ? t : 1.0, &octave) - 1.0) * {_number(count)};
    within = (int)part < {count - 1} ? (int)part : {count - 1};
    b = (octave - 1 - ({first_octave})) * {count} + within;
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
  for (j = 0; j < {name}_n_stored[d]; ++j) {{
    double value = c[{(powers - 1) * columns} + j];
    for (k = {powers - 2}; k >= 0; --k) value = value * u + c[k * {columns} + j];
    out[j] += value;
  }}
}}
"""


# ---- models of tables ---------------------------------------------------------------------------

# A term of one column has one feature of the table, a pair has two: places among the coarse codes
# of its columns, between whose cells it is interpolated. If it is linear in a column, the place is
# 0 at code 1 and 1 at the last code. Shares that are rounding errors, maybe of a cell that does not
# exist, are skipped.
_SCORES = """
static void {name}_scores(const double *x, double *out)
{{
  int t, k;
  for (k = 0; k < {outputs}; ++k) out[k] = {name}_intercept[k];
  for (t = 0; t < {terms}; ++t) {{
    const int d = {name}_feature[t];
    double place[2] = {{0.0, 0.0}};
    int corner, low[2], high[2];
    if ({name}_across[t] == 0) {{
      {name}_add(d, x[{name}_column[d]], out);
      continue;
    }}
    for (k = 0; k < 2; ++k) {{
      {name}_add(d + k, x[{name}_column[d + k]], place + k);
      high[k] = {name}_last[d + k];
      low[k] = high[k] ? 1 : (int)place[k];
      if (high[k] == 0) {{
        high[k] = low[k] + 1;
        place[k] -= low[k];
      }}
    }}
    for (corner = 0; corner < 4; ++corner) {{
      const int i = corner / 2, j = corner % 2;
      const double share = (i ? place[0] : 1.0 - place[0]) * (j ? place[1] : 1.0 - place[1]);
      const double *cell = {name}_cells + {name}_cell_start[t];
      if (share > -1e-12 && share < 1e-12) continue;
      cell += ((i ? high[0] : low[0]) * {name}_across[t] + (j ? high[1] : low[1])) * {outputs};
      for (k = 0; k < {outputs}; ++k) out[k] += share * cell[k];
    }}
  }}
}}
"""
_LEVEL = """
/* Whether a text is a word, blanks around it aside; with fold also capitals. */
static inline int {name}_is(const char *text, const char *word, int fold)
{{
  while (*text == ' ' || (*text >= 9 && *text <= 13)) ++text;
  for (; *word != 0; ++word, ++text)
    if (*text != *word && !(fold && *text >= 'A' && *text <= 'Z' && *text + 32 == *word)) return 0;
  while (*text == ' ' || (*text >= 9 && *text <= 13)) ++text;
  return *text == 0;
}}

/* The number of a level of a category, {name}_levels[column] if unseen; NaN if missing. */
static inline double {name}_level(int column, const char *text)
{{
  int k;
  if (text == 0) return NAN;
  for (k = 0; k < {n_missing}; ++k)
    if ({name}_is(text, {name}_gaps[k], 1)) return NAN;
  for (k = 0; k < {name}_levels[column]; ++k)
    if ({name}_is(text, {name}_level_names[{name}_level_start[column] + k], 0)) break;
  return (double)k;
}}
"""


_MEANS = {
    "identity": "",
    "log": "  out[0] = exp(out[0]); /* {}: a logarithmic link */\n",
    "logit": "  out[0] = 1.0 / (1.0 + exp(-out[0])); /* {}: a logit link */\n",
}


def _table_model(name: str, table: AdditivePredictor) -> str:
    """The body of a header for a fitted model of a table: terms, names of levels, probabilities."""
    for term in table.terms:
        if term.kind == "surface":
            raise ValueError(
                f"to_c: the surface {term.name!r} has no form in C: export it as .onnx."
            )
    body = f"  {name}_scores(x, out);\n"
    if table.classes is None:
        body += _MEANS[table._link].format(table.loss)
        if len(table.intercept) > 1:
            body += "  out[1] = exp(out[1]); /* the standard deviation */\n"
    parts = _terms(name, table) + _levels(name, table.books)
    text = _function(name, len(table.books), len(table.intercept), parts, body)
    return text if table.classes is None else text + _probabilities(name, table)


def _terms(name: str, table: Any) -> str:
    """The table of the terms, the cells of pairs, and their sum."""
    terms, functions = table.terms, table.functions
    cells = [np.ravel(term.values) if term.coarse else np.zeros(0) for term in terms]
    across = [term.values.shape[1] if term.coarse else 0 for term in terms]
    last = [last_code(t, axis) if t.coarse else 0 for t in terms for axis in range(len(t.columns))]
    text = _array(f"{name}_intercept", table.intercept)
    text += _array(f"{name}_last", last, "int")
    text += _array(f"{name}_feature", starts_of([term.columns for term in terms]), "int")
    text += _array(f"{name}_across", across, "int")
    text += _array(f"{name}_cell_start", starts_of(cells), "int")
    text += _array(f"{name}_cells", np.concatenate([np.zeros(0), *cells]))
    text += _array(f"{name}_column", functions.columns, "int")
    text += _table_add(name, functions.table, f"{name}_n_stored[d]", functions.missing)
    return text + _SCORES.format(name=name, outputs=len(table.intercept), terms=len(terms))


def _levels(name: str, books: Any) -> str:
    """Names of the levels of categories, column after column."""
    if all(book.kind == "number" for book in books):
        return ""
    levels = [level for book in books for level in book.levels]
    text = _array(f"{name}_levels", [len(book.levels) for book in books], "int")
    text += _array(f"{name}_level_start", starts_of([book.levels for book in books]), "int")
    named = _strings(levels or [""])
    text += f"static const char *const {name}_level_names[{len(levels) or 1}] = {named};\n"
    text += f"static const char *const {name}_gaps[{len(GAPS)}] = {_strings(GAPS)};\n"
    return text + _LEVEL.format(name=name, n_missing=len(GAPS))


def _probabilities(name: str, table: AdditivePredictor) -> str:
    """Sigmoids of the scores, scaled to sum to one; of a softmax link, their exponentials.

    Of ordered classes, differences of the sigmoids of the thresholds less the score.
    """
    outputs, classes, arrays = len(table.intercept), len(table.classes_), ""
    if table._link == "cumulative logit":
        arrays = _array(f"{name}_thresholds", table.fitted_loss.thresholds)
        body = f"""  double below = 0.0;
  int k;
  for (k = 0; k < {classes - 1}; ++k) {{
    const double reached = 1.0 / (1.0 + exp(p[0] - {name}_thresholds[k]));
    out[k] = reached - below;
    below = reached;
  }}
  out[{classes - 1}] = 1.0 - below;
"""
    elif outputs == 1:
        body = "  out[1] = 1.0 / (1.0 + exp(-p[0]));\n  out[0] = 1.0 - out[1];\n"
    else:
        largest, term = "", "1.0 / (1.0 + exp(-p[k]))"
        if table._link == "softmax":
            term, largest = (
                "exp(p[k] - most)",
                f"""  double most = p[0];
  for (k = 1; k < {outputs}; ++k) if (p[k] > most) most = p[k];
""",
            )
        body = f"""  double total = 0.0;
  int k;
{largest}  for (k = 0; k < {classes}; ++k) total += p[k] = {term};
  for (k = 0; k < {classes}; ++k) out[k] = total > 0.0 ? p[k] / total : {1 / classes!r};
"""
    return f"""{arrays}
/* Probabilities of the {classes} classes. */
static inline void {name}_probabilities(const double *x, double *out)
{{
  double p[{outputs}];
  {name}_scores(x, p);
{body}}}
"""
