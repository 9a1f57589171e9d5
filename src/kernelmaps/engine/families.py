r"""Formulas of the maps, written once in array-API form.

An additive family is a *curve* t ↦ (φ_1(t), …, φ_r(t)) that all features share after an affine
change of variable; everything else — dense and CSR rows, precision, threads, tables, other array
libraries — follows from it. To add one, write its curve, enter it in `CURVES`, and register the
schema of its specs.

``argument="log"``
    The curve lives on t > 0, has φ(0) = 0, and is smooth in log t (homogeneous kernels).
``argument="linear"``
    The curve is smooth in t = (x − shift)·scale, with `shift` and `scale` per feature or shared.

Common to all: arrays `lower` and `upper` (per feature or shared) bound the domain to which values
are clipped, and the number `signed` asks for the odd extension φ(−x) = −φ(x).

A *joint* family acts on whole rows: it is entered in `FAMILIES` with its number of columns, its
readable array-API formula, and its fast path for NumPy and CSR rows.

The family ``piecewise`` stores a :class:`~kernelmaps.engine.table.Table` itself: anchors, splines
and minimax tables are data.

O. Chum, Low dimensional explicit feature maps, ICCV 2015. F. Li, G. Lebanon and C. Sminchisescu,
Chebyshev approximations to the histogram χ² kernel, CVPR 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.schema import Check, Lengths, SchemaError, integer, number
from .._util.schema import array as floats
from .spec import (
    CLIPPED,
    SIGNED,
    FamilySchema,
    Spec,
    check_ends,
    check_together,
    register_schema,
)

Array = Any  # of any array-API namespace
CurveFunction = Callable[[Any, Spec, Array], Array]


@dataclass(frozen=True)
class CurveFamily:
    """A family of additive maps: `curve(xp, spec, t)` appends an axis of r columns to t."""

    curve: CurveFunction
    argument: str  # "log" | "linear"


def array(xp: Any, spec: Spec, name: str, like: Array) -> Array:
    """A spec's array in the namespace, precision and device of `like`."""
    copied = np.array(spec.arrays[name])  # a spec's arrays are read-only, which torch refuses
    return xp.asarray(copied, dtype=like.dtype, device=getattr(like, "device", None))


def log_waves(xp: Any, spec: Spec, t: Array) -> Array:
    r"""Cosines in log t: φ_j(t) = a_j t^{γ/2} \cos(ω_j \log t + p_j) (Chum 2015, eq. 14)."""
    phase = xp.log(t)[..., None] * array(xp, spec, "frequency", t) + array(xp, spec, "phase", t)
    envelope = t[..., None] ** (spec.numbers["gamma"] / 2)
    return envelope * array(xp, spec, "amplitude", t) * xp.cos(phase)


def waves(xp: Any, spec: Spec, t: Array) -> Array:
    r"""Cosines in t: φ_j(t) = a_j \cos(ω_j t + p_j) + o_j (Chum 2015, eq. 2)."""
    angle = t[..., None] * array(xp, spec, "frequency", t)
    wave = xp.cos(angle + array(xp, spec, "phase", t))
    sines = spec.arrays["phase"] == -math.pi / 2
    if sines.any():  # as sines they are exact next to zero
        is_sine = xp.asarray(sines, device=getattr(t, "device", None))
        wave = xp.where(is_sine, xp.sin(angle), wave)
    value = array(xp, spec, "amplitude", t) * wave
    return value + array(xp, spec, "offset", t) if "offset" in spec.arrays else value


def chebyshev(xp: Any, spec: Spec, t: Array) -> Array:
    r"""The Chebyshev series of χ² (Li et al. 2012, eq. 12), φ_k(t) = c_k(st)/\sqrt{s}.

    With L = \log(st) all terms share the factor \sqrt t, and c_0 = 2st/(st + 1) becomes
    sech(L/2): no step over- or underflows, and the recurrence, which oscillates once k > 2|L|/π
    and follows its growing solution before, does not amplify rounding.
    """
    L = xp.log(t) + math.log(spec.numbers["scale"])
    a = L * (2 / math.pi)
    terms = [1 / xp.cosh(L / 2)]
    terms.append(terms[0] * a * -math.sqrt(0.5))
    for k in range(2, spec.numbers["n_components"]):
        step = a if k % 2 == 0 else -a
        terms.append((step * terms[k - 1] + (k - 2) * terms[k - 2]) / k)
    return xp.stack(terms[: spec.numbers["n_components"]], axis=-1) * xp.sqrt(t)[..., None]


def series(xp: Any, spec: Spec, t: Array) -> Array:
    r"""The elementary series of χ² (Li et al. 2012, eqs. 15-16), φ_k(t) = \sqrt t\,sech(L/2)\,T^k.

    L = \log(st), T = (st − 1)/(st + 1) = \tanh(L/2), and 2st/(st + 1)/\sqrt s = \sqrt t sech(L/2).
    """
    L = xp.log(t) + math.log(spec.numbers["scale"])
    ratio = xp.tanh(L / 2)
    terms = [xp.sqrt(t) / xp.cosh(L / 2)]
    for _ in range(1, spec.numbers["n_components"]):
        terms.append(terms[-1] * ratio)
    return xp.stack(terms, axis=-1)


def waves_arrays(frequencies: Any, weights: Any) -> dict[str, list[float]]:
    """Amplitudes, frequencies and phases of Σ α_ω cos(ωλ): one column for ω = 0, else a pair.

    A sine is a cosine with phase −π/2.
    """
    amplitude, frequency, phase = [], [], []
    for omega, weight in zip(frequencies, weights, strict=True):
        shifts = (0.0,) if omega == 0 else (0.0, -math.pi / 2)
        for shift in shifts:
            amplitude.append(math.sqrt(weight))
            frequency.append(float(omega))
            phase.append(shift)
    return {"amplitude": amplitude, "frequency": frequency, "phase": phase}


CURVES: dict[str, CurveFamily] = {
    "log_waves": CurveFamily(log_waves, "log"),
    "waves": CurveFamily(waves, "linear"),
    "chebyshev": CurveFamily(chebyshev, "log"),
    "series": CurveFamily(series, "log"),
}


# ---- maps that act on whole rows -----------------------------------------------------------------


@dataclass(frozen=True)
class JointFamily:
    """Three readings of one spec: its width, its formula, its fast path."""

    n_columns: Callable[[Spec, int], int]
    formula: Callable[[Any, Spec, Any], Any]  # (xp, spec, X) -> φ(X)
    fast: Callable[[Spec, Any, np.ndarray], np.ndarray]  # (spec, X, out)


FAMILIES: dict[str, JointFamily] = {}


def joint_columns(spec: Spec, n_features: int) -> int:
    """Output columns of a joint spec."""
    return _family(spec).n_columns(spec, n_features)


def _family(spec: Spec) -> JointFamily:
    if spec.family not in FAMILIES:
        raise ValueError(
            f"unknown map family {spec.family!r}; was the spec made by a newer version?"
        )
    return FAMILIES[spec.family]


# ---- schemas ------------------------------------------------------------------------------------

# Within these ends every angle and every value is a number, for all lengths that maps accept.
_COLUMNS: dict[str, Check] = {
    name: floats("f8", "columns", low=-limit, high=limit)
    for name, limit in {"amplitude": 1e150, "frequency": 1e9, "phase": 1e3}.items()
}
_AFFINE: dict[str, Check] = {name: floats("f8", "features") for name in ("shift", "scale")}
_MOST_TERMS = 2**16  # of a series whose terms are computed one after the other


def _curve_relations(spec: Spec, lengths: Lengths) -> None:
    """Ranges and changes of variable are complete, and of one length: shared, or per feature."""
    check_ends(spec)
    if not check_together(spec, ("shift", "scale")):
        return
    shift, scale = spec.arrays["shift"], spec.arrays["scale"]
    if not np.all(scale > 0):
        raise SchemaError(f"the spec of family {spec.family!r}: 'scale' must be positive")
    with np.errstate(over="ignore"):
        far = np.abs(shift * scale).max() > 2.0**52  # where t = (x − shift)·scale has no digits
    if far:
        raise SchemaError(f"the spec of family {spec.family!r}: 'shift' is too far from zero")


def _curve_takes(spec: Spec, n_features: int) -> bool:
    lengths = {len(spec.arrays[name]) for name in (*_AFFINE, *CLIPPED) if name in spec.arrays}
    return n_features >= 1 and lengths <= {1, n_features}


register_schema(
    "log_waves",
    FamilySchema(
        arrays=_COLUMNS,
        optional_arrays=CLIPPED,
        numbers={"gamma": number(low=0, high=1e3)},
        optional_numbers=SIGNED,
        relations=_curve_relations,
        takes=_curve_takes,
    ),
)
register_schema(
    "waves",
    FamilySchema(
        arrays=_COLUMNS,
        optional_arrays={**CLIPPED, **_AFFINE, "offset": floats("f8", "columns")},
        optional_numbers=SIGNED,
        relations=_curve_relations,
        takes=_curve_takes,
    ),
)
for _name in ("chebyshev", "series"):
    register_schema(
        _name,
        FamilySchema(
            numbers={"n_components": integer(1, _MOST_TERMS), "scale": number(above=0)},
            optional_numbers=SIGNED,
        ),
    )
