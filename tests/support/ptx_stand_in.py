"""The few PTX instructions that kernels contain, on NumPy arrays.

Every register is 32 bits of each number of a tile; halves are the two parts of one. Addresses have
64 bits: the number of an array that was asked for its address, and a place in it.
"""

import re

import numpy as np

_FLOAT = re.compile(r"0f([0-9A-F]{8})$")
_memory = []


def address(array):
    """Where an array of words lies."""
    _memory.append(array)
    return len(_memory) << 40


def _read(place, count):
    """So many words from an address on, of one array; none outside of it."""
    numbers, offset = place >> 40, place & (1 << 40) - 1
    array = _memory[int(numbers.flat[0]) - 1].view(np.uint32)
    assert (numbers == numbers.flat[0]).all()
    assert (offset % (4 * count) == 0).all()
    assert offset.max() // 4 + count <= len(array)
    return [array[offset // 4 + k] for k in range(count)]


def run(text, inputs, outputs):
    """Words ($0, $1, …) of a block of instructions, given those after them."""
    registers = {f"${outputs + k}": _bits(x) for k, x in enumerate(inputs)}
    shape = np.shape(inputs[0])
    for line in re.split(r"[;\n]", text.strip().strip("{}")):
        line = line.strip()
        if not line or line.startswith(".reg"):
            continue
        name, operands = line.split(None, 1)
        if name.startswith("ld."):
            *to, place = (
                part.strip() for part in re.split(r"[{},\[\]]+", operands) if part.strip()
            )
            registers |= dict(zip(to, _read(registers[place], len(to)), strict=True))
            continue
        if "{" in operands:  # a word taken apart
            low, high, source = (
                part.strip() for part in re.split(r"[{},]+", operands) if part.strip()
            )
            registers[low] = registers[source] & np.uint32(0xFFFF)
            registers[high] = registers[source] >> np.uint32(16)
            continue
        to, *sources = (part.strip() for part in operands.split(","))
        values = [_operand(source, registers, shape) for source in sources]
        registers[to] = _OPERATIONS[name](*values)
    return [registers[f"${k}"] for k in range(outputs)]


def _bits(x):
    return x if x.dtype == np.int64 else x.view(np.uint32)


def _operand(source, registers, shape):
    if source in registers:
        return registers[source]
    found = _FLOAT.match(source)
    number = int(found[1], 16) if found else int(source, 0)
    return np.full(shape, number, np.uint32)


def _floats(function):
    def on(*words):
        with np.errstate(all="ignore"):
            return np.asarray(function(*(w.view(np.float32) for w in words)), np.float32).view(
                np.uint32
            )

    return on


def _toward_zero(exact, kind):
    """A number rounded toward zero: the nearest one, or its neighbour if that is farther out."""
    with np.errstate(over="ignore"):
        near = exact.astype(kind)
    return np.where(
        np.abs(near.astype(np.float64)) > np.abs(exact), np.nextafter(near, kind(0)), near
    )


def _pair(rounded):
    def on(high, low):
        parts = [rounded(w.view(np.float32).astype(np.float64)) for w in (high, low)]
        high, low = (p.astype(np.float16).view(np.uint16).astype(np.uint32) for p in parts)
        return high << np.uint32(16) | low

    return on


def _permute(a, b, selector):
    both = b.astype(np.uint64) << np.uint64(32) | a
    out = np.zeros_like(a)
    for k in range(4):
        nibble = selector >> np.uint32(4 * k) & np.uint32(15)
        byte = both >> (8 * (nibble & np.uint32(7))).astype(np.uint64) & np.uint64(255)
        sign = np.where(byte & np.uint64(128), 255, 0)
        taken = np.where(nibble & np.uint32(8), sign, byte).astype(np.uint32)
        out |= taken << np.uint32(8 * k)
    return out


_OPERATIONS = {
    "mov.b32": lambda a: a,
    "max.u32": np.maximum,
    "add.f32": _floats(np.add),
    "add.sat.f32": _floats(lambda a, b: np.fmin(np.fmax(a + b, 0), 1)),
    "fma.rz.f32": _floats(
        lambda a, b, c: _toward_zero(
            a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64), np.float32
        )
    ),
    "mad.wide.u32": lambda a, b, c: a.astype(np.int64) * b.astype(np.int64) + c,
    "sub.f32": _floats(np.subtract),
    "mul.f32": _floats(np.multiply),
    "fma.rn.f32": _floats(
        lambda a, b, c: a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    ),
    "shr.u32": lambda a, by: a >> by,
    "cvt.f32.f16": lambda a: (
        a.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    ),
    "cvt.rz.f16x2.f32": _pair(lambda exact: _toward_zero(exact, np.float16)),
    "cvt.rn.f16x2.f32": _pair(lambda exact: exact.astype(np.float16)),
    "prmt.b32": _permute,
}
