"""C for models of tables: curves between the bins of numbers, levels, missing values and pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .text import c_array, c_strings

# Loops that do not depend on the model. A value that is not a number is a missing one.
_FUNCTIONS = """
static int {name}_above(const double *sorted, int n, double x)
{{
  int low = 0, high = n;
  while (low < high) {{
    int middle = (low + high) / 2;
    if (sorted[middle] <= x) low = middle + 1; else high = middle;
  }}
  return low;
}}

static int {name}_code(int column, double x)
{{
  const int n = {name}_sizes[column];
  if (x != x) return 0;
  if ({name}_is_level[column]) return x >= 0.0 && x < (double)n ? (int)x + 2 : 1;
  if (n == 0) return 0;
  return {name}_above({name}_edges + {name}_edge_start[column], n - 1, x) + 1;
}}

static void {name}_single(int column, double x, const double *values, int straight, double *out)
{{
  const int n = {name}_sizes[column];
  const double *nodes = {name}_nodes + {name}_node_start[column];
  const double given = x;
  int k, b;
  if ({name}_is_level[column] || x != x || n < 2) {{
    values += {name}_code(column, x) * {outputs};
    for (k = 0; k < {outputs}; ++k) out[k] += values[k];
    return;
  }}
  if (x < nodes[0]) x = nodes[0];
  if (x > nodes[n - 1]) x = nodes[n - 1];
  if (straight)
    for (k = 0; k < {outputs}; ++k)
      out[k] += (given - x) * ((values[n * {outputs} + k] - values[{outputs} + k])
        / (nodes[n - 1] - nodes[0]));
  b = {name}_above(nodes, n, x) - 1;
  if (b > n - 2) b = n - 2;
  values += (b + 1) * {outputs};
  for (k = 0; k < {outputs}; ++k) {{
    const double slope = (values[{outputs} + k] - values[k]) / (nodes[b + 1] - nodes[b]);
    out[k] += slope * (x - nodes[b]) + values[k];
  }}
}}

static void {name}_scores(const double *x, double *out)
{{
  int t, k;
  for (k = 0; k < {outputs}; ++k) out[k] = {name}_intercept[k];
  for (t = 0; t < {terms}; ++t) {{
    const int first = {name}_first[t], second = {name}_second[t];
    const double *values = {name}_values + {name}_value_start[t];
    if (second < 0) {{
      {name}_single(first, x[first], values, {name}_straight[t], out);
    }} else {{
      const unsigned char *coarse = {name}_coarse + {name}_coarse_start[t];
      const int row = coarse[{name}_code(first, x[first])];
      const int column = coarse[{name}_codes[first] + {name}_code(second, x[second])];
      values += (row * {name}_width[t] + column) * {outputs};
      for (k = 0; k < {outputs}; ++k) out[k] += values[k];
    }}
  }}
}}
"""
_LEVEL = """
/* The number of a level of a category: NaN for NULL and "", {name}_sizes[column] if unseen. */
static inline double {name}_level(int column, const char *text)
{{
  int k;
  if (text == 0 || *text == 0) return NAN;
  for (k = 0; k < {name}_sizes[column]; ++k) {{
    const char *a = {name}_level_names[{name}_level_start[column] + k], *b = text;
    while (*a != 0 && *a == *b) {{ ++a; ++b; }}
    if (*a == *b) break;
  }}
  return (double)k;
}}
"""


def table_model(name: str, model: Any) -> str:
    """The body of a header for a fitted model of a table."""
    table = model.table_
    outputs, terms = len(table.intercept), table.terms
    NAME = name.upper()
    text = f"#define {NAME}_FEATURES {len(table.books)}\n#define {NAME}_COLUMNS {outputs}\n"
    text += _books(name, table.books) + _terms(name, table)
    text += _FUNCTIONS.format(name=name, outputs=outputs, terms=len(terms))
    if any(book.kind == "category" for book in table.books):
        text += _LEVEL.format(name=name)
    exponential = f"  out[0] = exp(out[0]); /* {model.loss}: a logarithmic link */\n"
    link = exponential if model._link == "log" else ""
    text += f"""
static void {name}(const double *x, double *out)
{{
  {name}_scores(x, out);
{link}}}
"""
    return text + (_probabilities(name, model) if hasattr(model, "classes_") else "")


def _books(name: str, books: Any) -> str:
    """Bins of numbers and names of levels, column after column."""
    sizes = [len(book.nodes) + len(book.levels) for book in books]
    levels = [level for book in books for level in book.levels]
    text = c_array(f"{name}_sizes", sizes, "int")
    text += c_array(f"{name}_is_level", [book.kind == "category" for book in books], "int")
    text += c_array(f"{name}_codes", [book.n_codes for book in books], "int")
    for key, word in (("nodes", "node"), ("edges", "edge")):
        parts = [getattr(book, key) for book in books]
        text += c_array(f"{name}_{key}", np.concatenate(parts))
        text += c_array(f"{name}_{word}_start", _starts(parts), "int")
    if levels:
        text += c_array(f"{name}_level_start", _starts([book.levels for book in books]), "int")
        named = c_strings(levels)
        text += f"static const char *const {name}_level_names[{len(levels)}] = {named};\n"
    return text


def _terms(name: str, table: Any) -> str:
    """Columns and values of all terms; for pairs the coarse codes of both columns."""
    terms = table.terms
    coarse = [np.concatenate(term.coarse) if term.coarse else np.zeros(0) for term in terms]
    values = [np.ravel(term.values) for term in terms]
    second = [term.columns[1] if len(term.columns) == 2 else -1 for term in terms]
    width = [term.values.shape[1] if term.coarse else 0 for term in terms]
    text = c_array(f"{name}_intercept", table.intercept)
    text += c_array(f"{name}_first", [term.columns[0] for term in terms], "int")
    text += c_array(f"{name}_second", second, "int") + c_array(f"{name}_width", width, "int")
    text += c_array(f"{name}_straight", [term.kind == "linear" for term in terms], "int")
    text += c_array(f"{name}_value_start", _starts(values), "int")
    text += c_array(f"{name}_coarse_start", _starts(coarse), "int")
    text += c_array(f"{name}_values", np.concatenate([np.zeros(0), *values]))
    return text + c_array(f"{name}_coarse", np.concatenate([np.zeros(0), *coarse]), "unsigned char")


def _starts(parts: Any) -> np.ndarray:
    return np.cumsum([0, *(len(part) for part in parts)])[:-1]


def _probabilities(name: str, model: Any) -> str:
    """Sigmoids of the scores, scaled to sum to one."""
    outputs, classes = len(model._sigmoid), len(model.classes_)
    text = c_array(f"{name}_sigmoid", model._sigmoid)
    two = "  out[1] = p[0];\n  out[0] = 1.0 - p[0];\n"
    many = f"""  for (k = 0; k < {classes}; ++k) total += p[k];
  for (k = 0; k < {classes}; ++k) out[k] = total > 0.0 ? p[k] / total : {1 / classes!r};
"""
    declared = "" if outputs == 1 else "  double total = 0.0;\n"
    return (
        text
        + f"""
/* Probabilities of the {classes} classes. */
static inline void {name}_probabilities(const double *x, double *out)
{{
  double p[{outputs}];
{declared}  int k;
  {name}_scores(x, p);
  for (k = 0; k < {outputs}; ++k)
    p[k] = 1.0 / (1.0 + exp(-({name}_sigmoid[2 * k] * p[k] + {name}_sigmoid[2 * k + 1])));
{two if outputs == 1 else many}}}
"""
    )
