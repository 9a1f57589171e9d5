"""C for models of tables: the sum of their terms, names of levels, links and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.text_cells import GAPS
from ..engine.table.stored import starts_of
from ..models.gam.functions import last_code
from .c_layouts import c_array, c_strings, table_add

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


def table_model(name: str, model: Any) -> str:
    """The body of a header for a fitted model of a table."""
    table = model.predictor_
    outputs = len(table.intercept)
    NAME = name.upper()
    text = f"#define {NAME}_FEATURES {len(table.books)}\n#define {NAME}_COLUMNS {outputs}\n"
    text += _terms(name, table) + _levels(name, table.books)
    exponential = f"  out[0] = exp(out[0]); /* {model.loss}: a logarithmic link */\n"
    link = exponential if model._link == "log" else ""
    text += f"""
static void {name}(const double *x, double *out)
{{
  {name}_scores(x, out);
{link}}}
"""
    return text + (_probabilities(name, model) if hasattr(model, "classes_") else "")


def _terms(name: str, table: Any) -> str:
    """The table of the terms, the cells of pairs, and their sum."""
    terms, functions = table.terms, table.functions
    cells = [np.ravel(term.values) if term.coarse else np.zeros(0) for term in terms]
    across = [term.values.shape[1] if term.coarse else 0 for term in terms]
    last = [last_code(t, axis) if t.coarse else 0 for t in terms for axis in range(len(t.columns))]
    text = c_array(f"{name}_intercept", table.intercept)
    text += c_array(f"{name}_last", last, "int")
    text += c_array(f"{name}_feature", starts_of([term.columns for term in terms]), "int")
    text += c_array(f"{name}_across", across, "int")
    text += c_array(f"{name}_cell_start", starts_of(cells), "int")
    text += c_array(f"{name}_cells", np.concatenate([np.zeros(0), *cells]))
    text += c_array(f"{name}_column", functions.columns, "int")
    text += table_add(name, functions.table, f"{name}_band[d]", functions.missing)
    return text + _SCORES.format(name=name, outputs=len(table.intercept), terms=len(terms))


def _levels(name: str, books: Any) -> str:
    """Names of the levels of categories, column after column."""
    if all(book.kind == "number" for book in books):
        return ""
    levels = [level for book in books for level in book.levels]
    text = c_array(f"{name}_levels", [len(book.levels) for book in books], "int")
    text += c_array(f"{name}_level_start", starts_of([book.levels for book in books]), "int")
    named = c_strings(levels or [""])
    text += f"static const char *const {name}_level_names[{len(levels) or 1}] = {named};\n"
    text += f"static const char *const {name}_gaps[{len(GAPS)}] = {c_strings(GAPS)};\n"
    return text + _LEVEL.format(name=name, n_missing=len(GAPS))


def _probabilities(name: str, model: Any) -> str:
    """Sigmoids of the scores, scaled to sum to one."""
    outputs, classes = len(model.intercept_), len(model.classes_)
    two = "  out[1] = p[0];\n  out[0] = 1.0 - p[0];\n"
    many = f"""  for (k = 0; k < {classes}; ++k) total += p[k];
  for (k = 0; k < {classes}; ++k) out[k] = total > 0.0 ? p[k] / total : {1 / classes!r};
"""
    declared = "" if outputs == 1 else "  double total = 0.0;\n"
    return f"""
/* Probabilities of the {classes} classes. */
static inline void {name}_probabilities(const double *x, double *out)
{{
  double p[{outputs}];
{declared}  int k;
  {name}_scores(x, p);
  for (k = 0; k < {outputs}; ++k)
    p[k] = 1.0 / (1.0 + exp(-p[k]));
{two if outputs == 1 else many}}}
"""
