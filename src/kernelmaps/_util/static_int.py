"""Whole numbers that compiled code knows when it is compiled.

numba compiles a function once for each combination of argument *types*. A :class:`StaticInt` has a
type of its own for every value, so that a number of lanes, the kind of a table's bins or a flag is
a constant to the compiler: only the variant in use is compiled, and numba's disk cache holds it.
(numba's own literal arguments are not kept in that cache.)

The numba type is in :mod:`.static_types`: importing this module does not import numba.
"""

from __future__ import annotations


class StaticInt(int):
    """A whole number or flag whose value is part of its numba type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"StaticInt({int(self)})"


#: In the place of a record of arrays that a compiled loop does without.
ABSENT = StaticInt(0)
