"""What a fitted map or model can be written as: `.kmap` files, ONNX graphs, C headers.

===========  ====================================================================
module       what it holds
===========  ====================================================================
files        `save` and `load`: JSON and plain arrays, without pickle
onnx         `to_onnx`: graphs, traced from the readable forms (`onnx_tracer`)
c            `to_c`: a header without dependencies (`c_layouts`)
===========  ====================================================================

None of them is imported before it is asked for.
"""
