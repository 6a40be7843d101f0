# SPDX-License-Identifier: MIT
"""Numbers between Python and C: whatever holds numbers goes in, numpy arrays come out, or lists without numpy."""
from __future__ import annotations

import ctypes
from typing import Any, Sequence

try:
    import numpy
except ImportError:  # lists do as well
    numpy = None

Array = Any  #: a numpy array, or a list (of lists) where numpy is not installed


def pack(values: Sequence, columns: int, kind, what: str) -> tuple[Any, int, bool]:
    """Values of one row [columns] or of many [n][columns] as C numbers of this kind (c_float, c_double).

    Returns them for an argument that is a pointer, with the number of rows and whether it was a row alone.
    ValueError: they have another shape, and `what` says which values.
    """
    if numpy is not None:
        array = numpy.ascontiguousarray(values, dtype=numpy.dtype(kind))
        single = array.ndim == 1
        if array.ndim not in (1, 2) or array.shape[-1] != columns:
            raise ValueError(f"{what}: shape {array.shape} where ({columns},) or (n, {columns}) was expected")
        return array.ctypes.data_as(ctypes.POINTER(kind)), 1 if single else len(array), single
    if hasattr(values, "tolist"):
        values = values.tolist()
    single = not (len(values) and hasattr(values[0], "__len__"))
    rows = [values] if single else values
    for row in rows:
        if len(row) != columns:
            raise ValueError(f"{what}: a row of {len(row)} numbers where {columns} were expected")
    return (kind * (columns * len(rows)))(*(x for row in rows for x in row)), len(rows), single


def vector(numbers) -> Array:
    """A ctypes array as [n]. A numpy array shares its memory, so it must not be used again."""
    return numpy.ctypeslib.as_array(numbers) if numpy is not None and len(numbers) else as_list(numbers)


def table(numbers, columns: int) -> Array:
    """A ctypes array as [rows][columns]; as vector."""
    if numpy is not None:
        return numpy.frombuffer(numbers, dtype=numpy.dtype(numbers._type_)).reshape(-1, columns)
    return [list(numbers[i:i + columns]) for i in range(0, len(numbers), columns)]


def copied(pointer, count: int):
    """A ctypes array with a copy of the `count` numbers that a pointer of the library points at."""
    numbers = (pointer._type_ * count)()
    ctypes.memmove(numbers, pointer, ctypes.sizeof(numbers))
    return numbers


def as_list(numbers) -> Array:
    """An empty or small sequence as an array of doubles, or a list."""
    return numpy.array(numbers, dtype=float) if numpy is not None else list(numbers)
