"""Compiled looks at all values of a matrix: ranges, and whether they are finite."""

import numba as nb

from ..compiling import HELPER


@nb.njit(**HELPER)
def _bit_range(bits, magnitude):
    """Smallest and largest key, smallest magnitude but zero and largest magnitude, all as bits."""
    kind = bits.dtype.type
    shift = 8 * bits.itemsize - 1
    low, high, least, most = magnitude, kind(~magnitude), magnitude, kind(0)
    for d in range(bits.size):
        size = kind(bits[d] & magnitude)
        key = kind(bits[d] ^ kind(kind(bits[d] >> shift) & magnitude))
        low, high = min(low, key), max(high, key)
        least, most = min(least, size if size != 0 else magnitude), max(most, size)
    return low, high, least, most


@nb.njit(cache=True, nogil=True, error_model="numpy")
def scan(bits, magnitude, infinity, begin, end):
    """Extremes of rows begin..end of floats that are given as bits, as :func:`_bit_range` has
    them, and the first row with a value that is not finite (−1: none).

    Keys are integers in the order of the values (bits of negative ones are turned round), and
    magnitudes the bits without the sign. Minima and maxima of integers become vector code; those
    of floats do not, since they must mind NaN (nine times slower).
    """
    kind = bits.dtype.type
    lowest, highest, smallest, wrong = magnitude, kind(~magnitude), magnitude, -1
    for i in range(begin, end):
        low, high, least, most = _bit_range(bits[i], magnitude)
        if most >= infinity:
            wrong = i if wrong < 0 else wrong
            continue
        lowest, highest, smallest = min(lowest, low), max(highest, high), min(smallest, least)
    return lowest, highest, smallest, wrong
