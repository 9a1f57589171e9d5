"""Portable vectors: a numba type for LLVM's vectors, and what can be done with them.

The only room that is about instruction sets. Importing it imports numba, so import it lazily.

===========  ===============================================================
module       what it holds
===========  ===============================================================
vectors      the type; loads, stores, permutations, gathers
arithmetic   arithmetic, comparisons and choices, for numbers and for vectors
===========  ===============================================================
"""
