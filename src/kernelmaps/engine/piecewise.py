"""The family ``piecewise``: specs that store a table, and their schema.

The schema makes sure that every index that a table's loops follow lies inside its target. The loops
read, for a value of feature j of set s in bin b, the coefficients from
``coef[coef_start[s] + (b·(degree + 1) + k)·band[s] + c]``, the first column from
``first[first_start[s] + b]``, for bins between edges ``edges[edge_start[s] + b]`` and the next one,
and write the columns ``column[j] + first + c`` for c below ``band[s]``. They rely on

* ``set_of[j]`` below the number of sets, and at least one bin in every set;
* blocks of `coef`, `first` and `edges` that lie one after the other and fill their arrays; sets
  may share a block, but not a part of one;
* ``first + band`` at most the width of the feature, which is at most bins × band;
* ``column`` the running sum of the widths: its last entry is the width of the result;
* edges that do not descend and are finite, and a positive, finite resolution of uniform bins, so
  that the arithmetic of finite values gives no NaN.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .._util.schema import Lengths, SchemaError, array, boolean, integer
from .spec import FamilySchema, Spec, check_together, register_schema
from .table import AFFINE, EDGES, LOG2, Table

_NUMBERS = ("binning", "degree", "signed", "zero_at_zero")


def table_of(spec: Spec) -> Table:
    """The table that a spec stores."""
    stored = {**spec.arrays, **{name: spec.numbers[name] for name in _NUMBERS}}
    return Table(**{name: stored[name] for name in Table.__dataclass_fields__})


@lru_cache(maxsize=64)
def stored_table(spec: Spec, dtype: np.dtype) -> Table:
    """The same with coefficients in `dtype`, kept for the next call."""
    return table_of(spec).astype(dtype)


def spec_of(table: Table) -> Spec:
    """A spec that stores a table."""
    fields = dict(zip(Table.__dataclass_fields__, table.values(), strict=True))
    numbers = {name: fields.pop(name) for name in _NUMBERS}
    return Spec("piecewise", fields, numbers)


# ---- schema -------------------------------------------------------------------------------------

_WHERE = "the spec of family 'piecewise'"
_MOST_EDGES = 2**16  # bins between edges: their codes take two bytes at most
_MOST_BITS = 20  # of the sub-bins of an octave
_LOCAL_BASIS = ("band_coef", "band_first", "band_of", "mix", "mix_of")


def _relations(spec: Any, lengths: Lengths) -> None:
    arrays, numbers = spec.arrays, spec.numbers
    _check(arrays["set_of"].max() < lengths["sets"], "'set_of' names a set that does not exist")
    low, high = arrays["clip_low"], arrays["clip_high"]
    _check(not np.any(low > high), "'clip_low' is above 'clip_high'")
    leaves_values = low.max() < np.inf and high.min() > -np.inf
    _check(leaves_values, "'clip_low' or 'clip_high' leaves no value")
    bins, band = arrays["bins"].astype(np.int64), arrays["band"].astype(np.int64)
    block = bins * (int(numbers["degree"]) + 1) * band
    _check_blocks("coef", arrays["coef_start"], block, arrays["coef"])
    _check_blocks("first", arrays["first_start"], bins, arrays["first"])
    _check_columns(arrays, bins, band)
    binning = numbers["binning"]
    _check(binning == EDGES or arrays["edges"].size == 0, "only bins between edges have 'edges'")
    if binning == AFFINE:
        _check((arrays["resolution"] > 0).all(), "'resolution' of uniform bins must be positive")
    elif binning == LOG2:
        _check_octaves(arrays)
    elif binning == EDGES:
        _check_edges(arrays, bins)
    if check_together(spec, _LOCAL_BASIS):
        _check_local_basis(arrays, numbers, bins, lengths)


def _check(holds: Any, problem: str) -> None:
    if not holds:
        raise SchemaError(f"{_WHERE}: {problem}")


def _check_blocks(name: str, start: np.ndarray, size: np.ndarray, target: np.ndarray) -> None:
    """Blocks of the sets lie one after the other in `target` and fill it."""
    starts, set_index, block_of = np.unique(start, return_index=True, return_inverse=True)
    unique = size[set_index]
    _check(np.array_equal(unique[block_of], size), f"sets share a block of {name!r} in part only")
    ends = np.cumsum(unique)
    fits = starts[0] == 0 and np.array_equal(starts[1:], ends[:-1]) and ends[-1] == target.size
    _check(fits, f"the blocks of {name!r} do not fill it ({target.size} entries)")


def _check_columns(arrays: Any, bins: np.ndarray, band: np.ndarray) -> None:
    """Stored columns lie within those of their feature."""
    starts, block_of = np.unique(arrays["first_start"], return_inverse=True)
    last = np.maximum.reduceat(arrays["first"], starts)[block_of].astype(np.int64)
    width = arrays["width"].astype(np.int64)
    _check((last + band <= width).all(), "'first' and 'band' reach beyond 'width'")
    _check((width <= bins * band).all(), "'width' is more than the columns that are stored")
    column = np.concatenate([[0], np.cumsum(width[arrays["set_of"]])])
    _check(np.array_equal(arrays["column"], column), "'column' is not the sum of the widths")


def _check_octaves(arrays: Any) -> None:
    origin, resolution = float(arrays["origin"][0]), float(arrays["resolution"][0])
    # Terms of a model differ between features (sets), the bins of their map do not.
    shared = all(np.ptp(arrays[name]) == 0 for name in ("origin", "resolution", "bins"))
    _check(shared, "bins of octaves are shared by all features")
    is_exponent = origin == int(origin) and abs(origin) <= 1100
    _check(is_exponent, "'origin' of octaves must be the exponent of the first")
    is_bits = resolution == int(resolution) and 0 <= resolution <= _MOST_BITS
    _check(is_bits, "'resolution' of octaves is a number of bits")


def _check_edges(arrays: Any, bins: np.ndarray) -> None:
    _check(bins.max() <= _MOST_EDGES, f"more than {_MOST_EDGES} bins between edges")
    edges, start = arrays["edges"], arrays["edge_start"]
    _check_blocks("edges", start, bins + 1, edges)
    down = np.flatnonzero(edges[1:] < edges[:-1]) + 1
    _check(np.isin(down, start).all(), "'edges' must ascend within a set")
    with np.errstate(over="ignore"):
        span = edges[start + bins] - edges[start]
    _check(np.isfinite(span).all(), "the 'edges' of a set are too far apart")


def _check_local_basis(arrays: Any, numbers: Any, bins: np.ndarray, lengths: Lengths) -> None:
    """The local basis Φ of splines, and R with Ψ = R Φ: the bins and powers of the table."""
    n, powers = lengths["bases"], int(numbers["degree"]) + 1
    _check((bins == lengths["band_bins"]).all(), "'band_coef' has other bins than the table")
    _check(arrays["band_coef"].shape[2] == powers, "'band_coef' has another degree than the table")
    _check((arrays["width"] == n).all(), "'mix' has another size than the features' columns")
    inside = int(arrays["band_first"].max()) + arrays["band_coef"].shape[3] <= n
    _check(inside, "'band_first' reaches beyond the last column")
    _check(arrays["band_of"].max() < len(arrays["band_coef"]), "'band_of' is out of range")
    _check(arrays["mix_of"].max() < len(arrays["mix"]), "'mix_of' is out of range")


def _takes(spec: Any, n_features: int) -> bool:
    return n_features == len(spec.arrays["set_of"])


register_schema(
    "piecewise",
    FamilySchema(
        arrays={
            "set_of": array("i4", "features", low=0),
            "origin": array("f8", "sets"),
            "resolution": array("f8", "sets"),
            "clip_low": array("f8", "sets", finite=False),
            "clip_high": array("f8", "sets", finite=False),
            "bins": array("i4", "sets", low=1),
            "width": array("i4", "sets", low=1),
            "band": array("i4", "sets", low=1),
            "edges": array("f8", "_"),
            "edge_start": array("i8", "sets", low=0),
            "first": array("i4", "firsts", low=0),
            "first_start": array("i8", "sets", low=0),
            "coef": array("f8 f4", "coefficients"),
            "coef_start": array("i8", "sets", low=0),
            "column": array("i8", "_", low=0),
        },
        optional_arrays={
            "band_coef": array("f8", "bands band_bins powers taps"),
            "band_first": array("i4", "band_bins", low=0),
            "band_of": array("i4", "sets", low=0),
            "mix": array("f8", "mixes bases bases"),
            "mix_of": array("i4", "sets", low=0),
        },
        numbers={
            "binning": integer(0, 3),
            "degree": integer(0, 2**15),
            "signed": boolean,
            "zero_at_zero": boolean,
        },
        relations=_relations,
        takes=_takes,
    ),
)
