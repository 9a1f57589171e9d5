"""Array namespace that records ONNX nodes while the formulas of the maps run.

Maps are written once, in array-API form (:mod:`kernelmaps.engine.reference`). Called with `Trace`
in the place of NumPy, the same code emits an ONNX graph instead of numbers, so that every map,
those of the future included, is exported without a line of its own.

Constants stay NumPy arrays until they meet a traced one. The first dimension, the number of rows,
is not known: it is `BATCH`, and shapes are tracked to know all the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

BATCH = -1
Emit = Callable[..., str]  # (operator, inputs, **attributes) -> name of the output


def _operator(op: str, result: Any = None) -> tuple[Any, Any]:
    """Methods of an operator with two operands: the array first, and the other one first."""

    def forward(self: Traced, other: Any) -> Traced:
        return self.trace.binary(op, self, other, result)

    def reverse(self: Traced, other: Any) -> Traced:
        return self.trace.binary(op, other, self, result)

    return forward, reverse


class Traced:
    """An array of which only shape and type are known."""

    device = None

    def __array_namespace__(self, api_version: Any = None) -> Trace:
        return self.trace

    def __init__(self, trace: Trace, name: str, shape: Sequence[int], dtype: Any) -> None:
        self.trace, self.name = trace, name
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, key: Any) -> Traced:
        return self.trace.index(self, key)

    __add__, __radd__ = _operator("Add")
    __sub__, __rsub__ = _operator("Sub")
    __mul__, __rmul__ = _operator("Mul")
    __truediv__, __rtruediv__ = _operator("Div")
    __pow__, __rpow__ = _operator("Pow")
    __and__, __rand__ = _operator("And", np.bool_)
    __or__, __ror__ = _operator("Or", np.bool_)
    __gt__, __lt__ = _operator("Greater", np.bool_)
    __ge__, __le__ = _operator("GreaterOrEqual", np.bool_)

    def __matmul__(self, other: Any) -> Traced:
        return self.trace.matmul(self, other)

    def __neg__(self) -> Traced:
        return self.trace.unary("Neg", self)

    def __eq__(self, other: Any) -> Traced:  # type: ignore[override]
        return self.trace.binary("Equal", self, other, np.bool_)

    def __ne__(self, other: Any) -> Traced:  # type: ignore[override]
        return self.trace.unary("Not", self == other)

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # NumPy hands operations with constants over to this class


class Trace:
    """The namespace: functions of the array API that the formulas use."""

    __name__ = __name__  # by which array libraries tell namespaces apart
    int64, float32, float64 = np.int64, np.float32, np.float64

    def __init__(self, emit: Emit, constant: Callable[[np.ndarray], str]) -> None:
        self._emit, self._constant = emit, constant
        self._known: dict[tuple[Any, ...], str] = {}
        self._rows: Traced | None = None

    # ---- building blocks ------------------------------------------------------------------------

    def input(self, name: str, n_features: int, dtype: Any) -> Traced:
        """The rows: an input of the graph."""
        self._rows = Traced(self, name, (BATCH, n_features), dtype)
        return self._rows

    def node(
        self, op: str, inputs: Sequence[Any], shape: Any, dtype: Any, **attributes: Any
    ) -> Traced:
        """Emit an operator and describe its result."""
        names = [self._name(item) for item in inputs]
        return Traced(self, self._emit(op, names, **attributes), shape, dtype)

    def _name(self, value: Any) -> str:
        if isinstance(value, Traced):
            return value.name
        array = np.asarray(value)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = self._constant(array)
        return self._known[key]

    def unary(self, op: str, x: Traced) -> Traced:
        return self.node(op, [x], x.shape, x.dtype)

    def binary(self, op: str, a: Any, b: Any, result: Any = None) -> Traced:
        dtype = next(item.dtype for item in (a, b) if isinstance(item, Traced))
        a, b = (i if isinstance(i, Traced) else np.asarray(i, dtype=dtype) for i in (a, b))
        return self.node(op, [a, b], _broadcast(a.shape, b.shape), result or dtype)

    def matmul(self, a: Traced, b: Any) -> Traced:
        if not isinstance(b, Traced):
            b = np.asarray(b, dtype=a.dtype)
        return self.node("MatMul", [a, b], (*a.shape[:-1], b.shape[-1]), a.dtype)

    def index(self, x: Traced, key: Any) -> Traced:
        """Integers, slices, None and an ellipsis."""
        key = key if isinstance(key, tuple) else (key,)
        used = sum(item is not None and item is not Ellipsis for item in key)
        fill = (slice(None),) * (x.ndim - used)
        position = next((i for i, item in enumerate(key) if item is Ellipsis), len(key))
        axis = 0
        for item in (*key[:position], *fill, *key[position + 1 :]):
            if item is None:
                shape = (*x.shape[:axis], 1, *x.shape[axis:])
                x = self.node("Unsqueeze", [x, np.array([axis])], shape, x.dtype)
                axis += 1
            elif isinstance(item, slice):
                if item != slice(None):
                    x = self.take(x, np.arange(x.shape[axis])[item], axis=axis)
                axis += 1
            else:
                shape = (*x.shape[:axis], *x.shape[axis + 1 :])
                x = self.node("Gather", [x, np.array(int(item))], shape, x.dtype, axis=axis)
        return x

    # ---- the array API --------------------------------------------------------------------------

    def asarray(self, values: Any, *, dtype: Any = None, device: Any = None) -> Any:
        return values if isinstance(values, Traced) else np.asarray(values, dtype=dtype)

    def astype(self, x: Any, dtype: Any) -> Any:
        if not isinstance(x, Traced):
            return np.asarray(x).astype(dtype)
        return self.node("Cast", [x], x.shape, dtype, to=onnx_type(dtype))

    def where(self, condition: Any, a: Any, b: Any) -> Traced:
        traced = next((item for item in (a, b) if isinstance(item, Traced)), None)
        dtype = np.asarray(a).dtype if traced is None else traced.dtype
        a, b = (i if isinstance(i, Traced) else np.asarray(i, dtype=dtype) for i in (a, b))
        shape = _broadcast(np.shape(condition), a.shape, b.shape)
        return self.node("Where", [condition, a, b], shape, dtype)

    def zeros_like(self, x: Any) -> Any:
        return np.zeros([1] * len(x.shape), dtype=x.dtype)  # broadcasts to the shape

    def ones_like(self, x: Any) -> Any:
        return np.ones([1] * len(x.shape), dtype=x.dtype)

    def zeros(self, shape: Sequence[int], *, dtype: Any = None, device: Any = None) -> Traced:
        """Zeros for as many rows as there are."""
        assert self._rows is not None
        count = self.node("Shape", [self._rows], (1,), np.int64, end=1)
        full_shape = self.node(
            "Concat", [count, np.array(shape[1:])], (len(shape),), np.int64, axis=0
        )
        return self.node(
            "Expand", [np.zeros([1] * len(shape), dtype=dtype), full_shape], shape, dtype
        )

    def reshape(self, x: Traced, shape: Sequence[int]) -> Traced:
        shape = tuple(shape)
        if shape.count(-1) > 1:  # (rows, the rest): both unknown, but the rest can be told
            inferred = int(np.prod(x.shape[1:])) // int(np.prod([s for s in shape if s != -1]))
            shape = (BATCH, *(inferred if size == -1 else size for size in shape[1:]))
        return self.node("Reshape", [x, np.array(shape)], shape, x.dtype)

    def take(self, x: Any, indices: Any, *, axis: int) -> Traced:
        before = np.shape(x)
        shape = (*before[:axis], *np.shape(indices), *before[axis + 1 :])
        return self.node("Gather", [x, indices], shape, x.dtype, axis=axis)

    def concat(self, arrays: Sequence[Any], *, axis: int) -> Traced:
        traced = next(item for item in arrays if isinstance(item, Traced))
        size = sum(item.shape[axis] for item in arrays)
        shape = (*traced.shape[:axis], size, *traced.shape[axis + 1 :])
        return self.node("Concat", list(arrays), shape, traced.dtype, axis=axis)

    def stack(self, arrays: Sequence[Any], *, axis: int) -> Traced:
        traced = next(item for item in arrays if isinstance(item, Traced))
        axis = axis % (traced.ndim + 1)
        key = (*(slice(None),) * axis, None)
        return self.concat([self.index(item, key) for item in arrays], axis=axis)

    def searchsorted(self, edges: Any, x: Traced, *, side: str = "left") -> Traced:
        """Count the edges that are not beyond x: there are few of them."""
        wide = self.index(x, (Ellipsis, None))
        below = wide >= edges if side == "right" else wide > edges
        ones = self.astype(below, np.int64)
        return self.sum(ones, axis=-1)

    def sum(self, x: Traced, *, axis: int) -> Traced:
        axis = axis % x.ndim
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        return self.node("ReduceSum", [x, np.array([axis])], shape, x.dtype, keepdims=0)

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        return self.minimum(self.maximum(x, low), high)

    def log1p(self, x: Traced) -> Traced:
        return self.unary("Log", x + 1.0)

    def log2(self, x: Traced) -> Traced:
        return self.unary("Log", x) * (1 / np.log(2))

    def cosh(self, x: Traced) -> Traced:
        """Written out, as runtimes have it for float32 only."""
        return (self.unary("Exp", x) + self.unary("Exp", -x)) * 0.5

    def __getattr__(self, name: str) -> Any:
        """Functions of one or two arrays that ONNX has, too."""
        if name not in _SAME:
            raise AttributeError(f"the ONNX export does not know xp.{name} yet")
        plain, op = getattr(np, name), _SAME[name]

        def function(x: Any, *other: Any) -> Any:
            if not any(isinstance(item, Traced) for item in (x, *other)):
                return plain(x, *other)
            if op == "Cos" and x.dtype == np.float64:
                # onnxruntime before 1.30 has no cosine of float64, but a sine.
                return self.unary("Sin", x + np.float64(np.pi / 2))
            return self.binary(op, x, *other) if other else self.unary(op, x)

        return function


_UNARY = ("abs", "cos", "exp", "floor", "log", "sign", "sin", "sqrt", "tan", "tanh")
_SAME = {"minimum": "Min", "maximum": "Max", **{name: name.capitalize() for name in _UNARY}}


def _broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Shape of a result; BATCH wins over 1."""
    size = max(map(len, shapes))
    aligned = ([1] * (size - len(shape)) + list(shape) for shape in shapes)
    return tuple(BATCH if BATCH in sizes else max(sizes) for sizes in zip(*aligned))


def onnx_type(dtype: Any) -> int:
    """The number that ONNX has for a type of NumPy."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
