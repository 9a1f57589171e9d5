"""Formulas as MathML, which browsers draw by themselves: the pages work without a network."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def to_mathml(node, block: bool) -> str:
    # What docutils does not know: \\dots, and fractions of two digits without braces.
    source = node.astext().replace("\\dots", "\\ldots")
    source = re.sub(r"\\([td]?frac)\s*(\d)(\d)", r"\\\1{\2}{\3}", source)
    if block and "\\\\" in source and "\\begin" not in source:
        source = f"\\begin{{aligned}}{source}\\end{{aligned}}"
    try:
        return tex2mathml(source, as_block=block)
    except MathError as error:
        logger.warning("formula not understood: %s in %s", error, source, location=node)
        return f"<code>{source}</code>"


def visit_inline(self, node) -> None:
    self.body.append(to_mathml(node, block=False))
    raise nodes.SkipNode


def visit_block(self, node) -> None:
    self.body.append(f'<div class="math-block">{to_mathml(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True}
