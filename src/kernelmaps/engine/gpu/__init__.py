"""Tables on a GPU: rows of CUDA tensors, by Triton kernels.

===========  ===============================================================================
module       what it holds
===========  ===============================================================================
kernels      Triton kernels: find the bin, evaluate the polynomial, write or add up
tables       the layout of :mod:`kernelmaps.engine.table`, packed for the kernels
dispatch     `apply(spec, X)` for rows on a GPU, and `usable_for(X)`; joint maps by matrix
             products, and cosines in place
===========  ===============================================================================

Needs torch with Triton (``pip install 'kernelmaps[gpu]'``). Without it, and for arrays of other
libraries, the readable form (:mod:`kernelmaps.engine.reference`) runs on the data's own device.
"""

from .dispatch import ANY, FINITE, NON_NEGATIVE, apply, encode, sums, usable_for

__all__ = ["ANY", "FINITE", "NON_NEGATIVE"]
__all__ += ["apply", "encode", "sums", "usable_for"]
