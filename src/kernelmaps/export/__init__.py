"""What a fitted map or model can be written as: files, ONNX, C, SQL, tables of effects.

===========  ====================================================================
module       what it holds
===========  ====================================================================
files        `save` and `load`: JSON and plain arrays, without pickle
onnx         `to_onnx`: graphs, traced from the readable forms (`onnx_tracer`)
c            `to_c`: a header without dependencies
sql          `to_sql`: one SELECT with the predictions of a GAM
tables       `write_tables`: the effects of a GAM as CSV and Excel files
===========  ====================================================================

None of them is imported before it is asked for.
"""
