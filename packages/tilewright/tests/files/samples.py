# SPDX-License-Identifier: Apache-2.0
"""Small files made by hand, and random arrays to put in them."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

KINDS = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "U16": np.uint16,
    "I16": np.int16,
    "U32": np.uint32,
    "I32": np.int32,
    "U64": np.uint64,
    "I64": np.int64,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F32": np.float32,
    "F64": np.float64,
}
ALL_KINDS = tuple(KINDS.values())
KIND_OF = {np.dtype(dtype): kind for kind, dtype in KINDS.items()}


def safetensors_bytes(arrays, metadata=None, header=None):
    """Return the bytes of a safetensors file; `header` changes what its header says before it is written."""
    listed, data = {}, b""
    for name, array in arrays.items():
        body = np.ascontiguousarray(array).tobytes()
        listed[name] = {
            "dtype": KIND_OF[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(body)],
        }
        data += body
    if metadata is not None:
        listed["__metadata__"] = metadata
    if header is not None:
        header(listed)
    text = json.dumps(listed).encode()
    return len(text).to_bytes(8, "little") + text + data


def write_safetensors(path, arrays, **given):
    Path(path).write_bytes(safetensors_bytes(arrays, **given))
    return path


def shapes(largest=9):
    return hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=largest)


@st.composite
def arrays(draw, dtypes=ALL_KINDS):
    """Return an array of any type: its bits are random, since a reader must keep all of them."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = draw(shapes())
    count = int(np.prod(shape))
    if dtype == np.bool_:
        return np.resize([True, False, True], shape)
    seed = draw(st.integers(0, 2**32 - 1))
    data = np.random.default_rng(seed).integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    return data.view(dtype).reshape(shape)


def same_bits(one, other):
    """Assert that two arrays are alike, NaNs included."""
    assert one.shape == other.shape
    assert one.dtype == other.dtype
    assert np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()
