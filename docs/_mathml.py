"""Formulas as MathML, which browsers draw by themselves: the pages work without a network."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml

# Docstrings write these as characters, which read better in a terminal.
COMMANDS = {
    "≥": "\\ge ", "≤": "\\le ", "≠": "\\ne ", "≈": "\\approx ", "∈": "\\in ", "∉": "\\notin ",
    "…": "\\ldots ", "⟨": "\\langle ", "⟩": "\\rangle ", "→": "\\to ", "⊤": "\\top ",
    "·": "\\cdot ", "×": "\\times ", "−": "-", "∞": "\\infty ", "∼": "\\sim ", "√": "\\surd ",
}  # fmt: skip


def convert(source: str, block: bool) -> str:
    """A formula in LaTeX as MathML."""
    # What docutils does not know: \\dots, and fractions of two digits without braces.
    source = source.translate(str.maketrans(COMMANDS)).replace("\\dots", "\\ldots")
    source = re.sub(r"\\([td]?frac)\s*(\d)(\d)", r"\\\1{\2}{\3}", source)
    if block and "\\\\" in source and "\\begin" not in source:
        source = f"\\begin{{aligned}}{source}\\end{{aligned}}"
    return tex2mathml(source, as_block=block)


def to_mathml(node, block: bool) -> str:
    try:
        return convert(node.astext(), block)
    except MathError as error:
        from sphinx.util import logging

        logger = logging.getLogger(__name__)
        logger.warning("formula not understood: %s in %s", error, node.astext(), location=node)
        return f"<code>{node.astext()}</code>"


def visit_inline(self, node) -> None:
    self.body.append(to_mathml(node, block=False))
    raise nodes.SkipNode


def visit_block(self, node) -> None:
    self.body.append(f'<div class="math-block">{to_mathml(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True}
