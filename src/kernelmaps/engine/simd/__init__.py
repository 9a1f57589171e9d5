"""Portable vectors: a numba type for LLVM's vectors, and what can be done with them.

The only room that is about instruction sets. Importing it imports numba, so import it lazily.

===========  ===============================================================
module       what it holds
===========  ===============================================================
vectors      the type; loads, stores, permutations, gathers
arithmetic   arithmetic, comparisons and choices, for numbers and for vectors
===========  ===============================================================
"""

from ...announcing import announce_compiling
from .arithmetic import (
    as_floats,
    between,
    capped,
    code_of,
    filled_like,
    from_origin,
    lanes_of,
    magnitude,
    no_more,
    octave,
    octave_and_rest,
    outside,
    parameter,
    passed,
    plus,
    plus_distance,
    plus_share,
    plus_where_negative,
    reals,
    rounded,
    share,
    split,
    where_zero,
    words,
)
from .vectors import (
    Vector,
    add,
    fill,
    fold,
    gather,
    gather_blocks,
    gather_two,
    item,
    llvm,
    load,
    load_first,
    mask,
    multiply_add,
    prefetch,
    repeat,
    side_by_side,
    store,
    store_codes,
    tile,
    width,
    zeros,
)

__all__ = [
    "Vector",
    "add",
    "as_floats",
    "between",
    "capped",
    "code_of",
    "fill",
    "filled_like",
    "fold",
    "from_origin",
    "gather",
    "gather_blocks",
    "gather_two",
    "item",
    "lanes_of",
    "llvm",
    "load",
    "load_first",
    "magnitude",
    "mask",
    "multiply_add",
    "no_more",
    "octave",
    "octave_and_rest",
    "outside",
    "parameter",
    "passed",
    "plus",
    "plus_distance",
    "plus_share",
    "plus_where_negative",
    "prefetch",
    "reals",
    "repeat",
    "rounded",
    "share",
    "side_by_side",
    "split",
    "store",
    "store_codes",
    "tile",
    "where_zero",
    "width",
    "words",
    "zeros",
]

announce_compiling()  # every compiled loop over tables is built on this room
