# SPDX-License-Identifier: Apache-2.0
"""What the moves should give, said in plain NumPy, and arrays whose every bit matters."""

import os
from functools import partial
from math import prod

import numpy as np
import pytest

from tilewright.copying import Placement, native, plan_copy
from tilewright.errors import FormatError
from tilewright.formats import SCALAR_FORMATS, BlockFormat, cast, fit_values, format_of
from tilewright.layout import Layout

SCALARS = list(SCALAR_FORMATS)
ragged_plan = partial(plan_copy, crop=True, pad=True)  # between shapes of which either may reach further
POISON = 0xA5


def any_bits(rng, shape, element):
    """Return random elements: every bit pattern of a format can occur, so also NaN with payloads, -0, subnormals."""
    element = format_of(element)
    count = prod(shape)
    if element.kind == "bool":
        return rng.integers(0, 2, count).astype(bool).reshape(shape)
    flat = np.frombuffer(rng.bytes(count * element.itemsize), dtype=np.uint8).copy()
    return flat.view(element.dtype).reshape(shape)


def numbers(rng, shape, element="float32"):
    """Return ordinary numbers of many magnitudes."""
    wide = rng.standard_normal(shape) * 2.0 ** rng.integers(-6, 7, shape)
    return cast(np.asarray(wide, dtype=np.float32), element)


def assert_same_bits(got, wanted):
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(as_bytes(got), as_bytes(wanted))


def as_bytes(array):
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), dtype=np.uint8)


def poisoned(count, dtype):
    """Return an array full of a byte pattern that nobody asked for."""
    dtype = np.dtype(dtype)
    return np.full(count * dtype.itemsize, POISON, dtype=np.uint8).view(dtype)


def padded_shape(shape, tile):
    """Return the shape of an array of at least two dimensions in whole tiles."""
    outer, matrix = shape[:-2], shape[-2:]
    return (*outer, *[-(-n // size) * size for n, size in zip(matrix, tile, strict=True)])


def tilized(array, tile=(32, 32), face=(16, 16), transpose=False, pad=0):
    """Return the elements of an array in physical order: reshape to all levels at once, then one transpose."""
    array = np.atleast_2d(array)
    (height, width), (high, wide) = tile, tile if face is None else map(min, face, tile)
    *outer, rows, columns = padded_shape(array.shape, tile)
    padded = np.empty((*outer, rows, columns), dtype=array.dtype)
    padded[...] = pad
    padded[..., : array.shape[-2], : array.shape[-1]] = array
    levels = (rows // height, height // high, high, columns // width, width // wide, wide)
    inside = (5, 2, 6, 3) if transpose else (2, 5, 3, 6)
    return padded.reshape(prod(outer), *levels).transpose(0, 1, 4, *inside).reshape(-1)


def untilized(flat, shape, tile=(32, 32), face=(16, 16), transpose=False):
    """Return the array whose elements lie in physical order: number the elements, and sort by number."""
    lifted = (1,) * (2 - len(shape)) + tuple(shape)
    whole = padded_shape(lifted, tile)
    number = tilized(np.arange(prod(whole)).reshape(whole), tile, face, transpose)
    logical = np.empty_like(flat)
    logical[number] = flat
    return logical.reshape(whole)[..., : lifted[-2], : lifted[-1]].reshape(shape)


def fitting(value, element):
    """Return a pad value if it is a value of the format of the source, else 1, which always is."""
    try:
        fit_values(value, element)
    except FormatError:
        return 1
    return value


def padding(value, source, target):
    """Return a pad value as an element of the target: an element of the source first, then converted."""
    return cast(cast(np.asarray(value), source), target)


def require(engine, element):
    """Skip a test of a format that an engine does not claim to know."""
    element = format_of(element)
    name = engine["engine"]
    if name != "reference" and isinstance(element, BlockFormat):
        elements = Layout(element.block)
        plan = plan_copy(Placement(elements, "float32"), Placement(elements, element, tile_elements=element.block))
        if name == "native" and not native.can_run(plan):  # devices know all formats of the library
            pytest.skip(f"the {name} engine does not know {element}")


def opencl_step(fixtures, of=40):
    """Return of how many cases one is run: on OpenCL every case compiles a kernel, and `make test-opencl` runs all."""
    sampled = fixtures["engine"]["engine"] == "opencl" and os.environ.get("TILEWRIGHT_TEST_OPENCL") != "all"
    return of if sampled else 1


def golden_step(fixtures):
    """Return the same for recorded vectors."""
    return opencl_step(fixtures, of=20)
