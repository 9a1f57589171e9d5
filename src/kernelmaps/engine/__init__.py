"""The engine: what a fitted map is (spec), its formulas (families) and how it runs (apply).

===============  ===================================================================
module           what it holds
===============  ===================================================================
spec             `Spec`: the arrays and numbers that alone determine a map; what those of each
                 family must hold, before any loop reads them
families         curves of the additive maps, in array-API form; formulas of the maps of rows
piecewise        specs that store a table
projections      matrices and fast transforms of rows
fourier          cosines behind them
landmarks        kernel values with landmarks
reference        readable application of a spec: the oracle, and the GPU path
tabulated        tables of specs, for the compiled loops: curves as polynomials
extent           ranges of rows, and what is said of values outside a domain
table            the tabulated form of every additive map: layout, locate, transform, …
simd             portable vectors for compiled loops: a numba type for LLVM's vectors
apply            `apply(spec, X)`: choose a path, run it
outputs          types and places of results, and which path made them
gpu              the same tables on a GPU, by Triton's kernels
encode           `encode(spec, X)`: one or two bytes per value instead of φ(X)
===============  ===================================================================

What is listed here is public. Other rooms of the package import the rest from its files.
"""

from . import (  # noqa: F401 - they register their families
    fourier,
    landmarks,
    piecewise,
    projections,
)
from .apply import apply
from .encode import code_spec, encode
from .outputs import record_paths
from .reference import evaluate
from .spec import FamilySchema, Spec, register_schema

__all__ = [
    "FamilySchema",
    "Spec",
    "apply",
    "code_spec",
    "encode",
    "evaluate",
    "record_paths",
    "register_schema",
]
