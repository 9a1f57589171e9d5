"""Portable vectors: a numba type for LLVM's vectors, and what can be done with them.

LLVM makes of them what the machine has; no instruction set is named. This is the only place that
knows numba's internals. Importing it imports numba, so import it lazily.
"""
