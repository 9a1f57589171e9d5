"""Portable vectors: a numba type for LLVM's vectors, and what can be done with them.

LLVM makes of them what the machine has; no instruction set is named. Importing it imports
numba, so import it lazily.

===========  ===============================================================
module       what it holds
===========  ===============================================================
vectors      the type; loads, stores, permutations, gathers
arithmetic   arithmetic, comparisons and choices, for numbers and for vectors
polynomials  polynomials of a table's rows
===========  ===============================================================
"""
