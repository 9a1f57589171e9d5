r"""Random Fourier features: cosines of linear projections.

.. math:: φ(x) = \sqrt{2/D}\,[\cos(ω_1^\top x + b_1), …, \cos(ω_D^\top x + b_D)]

(Chang et al. 2016, eq. 2, with a phase of its own for every feature), or, without phases,

.. math:: φ(x) = \sqrt{2/D}\,[\cos ω_1^\top x, …, \cos ω_{D/2}^\top x,
                              \sin ω_1^\top x, …, \sin ω_{D/2}^\top x].

The projections x ↦ Ωx are any operator of :mod:`.linear`; its `scale` is √(2/D) for D columns.
Designed cosines of several coordinates have `amplitudes` of their own for every column, and clip
rows to a box `lower` … `upper`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.schema import Lengths, SchemaError, boolean, number
from .._util.schema import array as floats
from .._util.sparse import is_sparse
from .families import FAMILIES, JointFamily, array
from .outputs import note_path
from .projections import (
    OPERATOR_ARRAYS,
    OPERATOR_NUMBERS,
    Write,
    check_operator,
    n_outputs,
    project,
    run_in_pieces,
    takes_rows,
)
from .spec import CLIPPED, FamilySchema, Spec, check_ends, register_schema


def fourier_spec(operator: Spec, phases: np.ndarray | None) -> Spec:
    """Spec of Fourier features behind a "projection" spec; phases None: the paired form."""
    paired = phases is None
    columns = n_outputs(operator) * (2 if paired else 1)
    numbers = {**operator.numbers, "paired": paired, "scale": float(np.sqrt(2 / columns))}
    arrays = dict(operator.arrays) if paired else {**operator.arrays, "phases": phases}
    return Spec("fourier", arrays, numbers)


def _n_columns(spec: Spec, n_features: int) -> int:
    return n_outputs(spec) * (2 if spec.numbers["paired"] else 1)


def _formula(xp: Any, spec: Spec, X: Any) -> Any:
    angles = project(xp, spec, _clip_rows(xp, spec, X))
    if spec.numbers["paired"]:
        values = xp.concat([xp.cos(angles), xp.sin(angles)], axis=1)
    else:
        values = xp.cos(angles + array(xp, spec, "phases", X))
    if "amplitudes" in spec.arrays:
        values = values * array(xp, spec, "amplitudes", X)
    return spec.numbers["scale"] * values


def _clip_rows(xp: Any, spec: Spec, X: Any) -> Any:
    """Rows within the box, where the spec has one."""
    if "lower" not in spec.arrays:
        return X
    if is_sparse(X):
        X = X.toarray()
    if isinstance(X, np.ndarray) and X.dtype.kind != "f":  # uint8, uint16
        X = X.astype(np.float32)
    lower, upper = array(xp, spec, "lower", X), array(xp, spec, "upper", X)
    return xp.minimum(xp.maximum(X, lower), upper)


def _fast(spec: Spec, X: Any, out: np.ndarray) -> np.ndarray:
    """Products straight into `out`, then cosines in place while the piece is in the cache."""
    from . import _joint_loops

    note_path(f"{spec.numbers['operator']}:{'csr' if is_sparse(X) else 'dense'}")
    X = _clip_rows(np, spec, X)
    wave = _joint_loops.wave(spec.numbers["scale"], out.dtype)
    paired, half = spec.numbers["paired"], n_outputs(spec)
    turns = None  # phases, reduced to [0, 1)
    if not paired:
        turns = np.mod(spec.arrays["phases"] / (2 * np.pi), 1.0).astype(out.dtype)
    amplitudes = spec.arrays.get("amplitudes")
    if amplitudes is not None:
        amplitudes = amplitudes.astype(out.dtype)

    def work(rows: slice, columns: slice, write: Write) -> None:
        write(rows, out, columns)
        piece = _joint_loops.Tile(rows.start, rows.stop, columns.start, columns.stop)
        if paired:
            beyond = _joint_loops.pairs(out, piece, half, wave)
        else:
            beyond = _joint_loops.cosines(out, piece, turns, wave)
        if beyond:  # once more, by functions that know their argument to the last digit
            write(rows, out, columns)
            _far_cosines(out[rows], columns, half if paired else 0, spec)
        if amplitudes is not None:
            for shift in (0, half) if paired else (0,):
                k = slice(columns.start + shift, columns.stop + shift)
                out[rows, k] *= amplitudes[k]

    run_in_pieces(spec, X, out.dtype, work)
    return out


def _far_cosines(out: np.ndarray, columns: slice, half: int, spec: Spec) -> None:
    """Cosines (and sines `half` columns on) of angles that are too large for the fast loops."""
    angles = out[:, columns].astype(np.float64)
    if not np.isfinite(angles).all():
        raise ValueError(
            f"the angles of random Fourier features overflow {out.dtype}: the data are too large "
            "for the kernel's length scale. Scale them down, or make the kernel wider."
        )
    scale = spec.numbers["scale"]
    if half:
        out[:, columns] = scale * np.cos(angles)
        out[:, columns.start + half : columns.stop + half] = scale * np.sin(angles)
    else:
        out[:, columns] = scale * np.cos(angles + spec.arrays["phases"][columns])


FAMILIES["fourier"] = JointFamily(_n_columns, _formula, _fast)


def _relations(spec: Spec, lengths: Lengths) -> None:
    """Phases unless cosines and sines come in pairs; amplitudes of all columns; ends of all rows.

    The loops write the columns of the operator, and for pairs as many behind them.
    """
    check_operator(spec, lengths)
    check_ends(spec)
    where, arrays = "the spec of family 'fourier'", spec.arrays
    if ("phases" in arrays) == bool(spec.numbers["paired"]):
        raise SchemaError(f"{where} has either 'phases' or pairs")
    expected = {"phases": n_outputs(spec), "amplitudes": _n_columns(spec, 0)}
    for name, length in expected.items():
        if name in arrays and len(arrays[name]) != length:
            raise SchemaError(f"{where}: {name!r} must have {length} entries")
    if "lower" in arrays and not takes_rows(spec, len(arrays["lower"])):
        raise SchemaError(f"{where}: 'lower' has the wrong number of features")


def _takes(spec: Spec, n_features: int) -> bool:
    ends = spec.arrays.get("lower")
    return takes_rows(spec, n_features) and (ends is None or len(ends) == n_features)


register_schema(
    "fourier",
    FamilySchema(
        optional_arrays={
            **OPERATOR_ARRAYS,
            **CLIPPED,
            "phases": floats("f8 f4", "_", low=-1e3, high=1e3),
            "amplitudes": floats("f8 f4", "_"),
        },
        numbers={**OPERATOR_NUMBERS, "paired": boolean, "scale": number()},
        relations=_relations,
        takes=_takes,
    ),
)
