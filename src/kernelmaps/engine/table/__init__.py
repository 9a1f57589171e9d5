"""The table: the tabulated form of every additive map and model, and its consumers.

=========  =====================================================================
module     what it holds
=========  =====================================================================
stored     `Table`: what a spec of the family ``piecewise`` stores, by sets
layout     `Layout`: the same by features, as the compiled loops take it
locate     the bin of a value and the position in it (compiled)
transform  φ of rows (compiled)
dot        sums of φ over the features: scores (compiled)
update     weights of columns: scores of a row, steps along it (compiled)
encode     bins as codes (compiled)
=========  =====================================================================
"""

from .stored import AFFINE, CODE, EDGES, LOG2, Table, code_table

__all__ = ["AFFINE", "CODE", "EDGES", "LOG2", "Table", "code_table"]
