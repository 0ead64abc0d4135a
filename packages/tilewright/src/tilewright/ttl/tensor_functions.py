# SPDX-License-Identifier: Apache-2.0
"""The functions that TTL has once per kind of tensor, generated; and the names with an element type in them.

`create_const_ext_tensor`, `create_empty_int_uchar_sub_tensor`, `const_ext_long_tensor_t` and the like follow one rule
each, in place of a thousand definitions.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from . import buffering, tensors
from .tensors import (
    SUB_TENSOR_OF,
    build_empty_sub_tensor,
    build_empty_tensor,
    build_sub_tensor,
    build_tensor,
    is_empty,
    require_internal,
    tensor_t,
)
from .values import TYPES, vector_type

__all__ = ["valid_int_tensor", "valid_tensors"]

_TYPED = f"(?:{'|'.join(['void', *TYPES])})_"
_SCHEMES = ("import_double", "export_double", "duplex", "simplex")
_TENSOR_CLASSES: dict[str, type[tensor_t]] = {
    tensor.__name__.removesuffix("_tensor_t"): tensor for tensor in SUB_TENSOR_OF
}


def _make_public_function(
    name: str, function: Callable[..., Any], summary: str, example: str, result: str
) -> Callable[..., Any]:
    """Return a function under a public name, with an example that runs."""

    def public(*arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    public.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # what help() shows
    public.__name__ = public.__qualname__ = name
    public.__doc__ = f"{summary}\n\n>>> from tilewright import ttl\n>>> {example}\n{result}\n"
    public.__module__ = __name__
    return public


def tensor_functions(prefix: str, tensor_class: type[tensor_t]) -> list[Callable[..., object]]:
    """Return the public functions of one kind of tensor, named with `prefix`.

    >>> [function.__name__ for function in tensor_functions("const_int", tensors.const_int_tensor_t)][:2]
    ['create_const_int_tensor', 'create_const_int_sub_tensor']
    """
    side = "internal" if tensor_class.internal else "external"
    one = f"a const {side} tensor" if tensor_class.const else f"an {side} tensor"
    part = one.replace("tensor", "sub tensor")
    forms = "elem_size, layout, (layout, elem_size) or (layout, offset, elem_size)"
    sub_forms = "(origin), (base, origin), (base, shape, layout, origin, sub_offset) or TTL's seven values"
    whole = f"ttl.create_{prefix}_tensor(bytearray(12), ttl.create_shape(4, 3), 1)"
    empty = f"ttl.create_empty_{prefix}_sub_tensor()"
    return [
        _make_public_function(
            f"create_{prefix}_tensor",
            partial(build_tensor, tensor_class),
            f"Return {one} at `base` with `shape`, or the shape of a `tile`. `arguments`: {forms}; by name `layout`,"
            " `int_layout` or `ext_layout`, `offset` and `elem_size`; `dtype` for typed reads.",
            f"{whole}.layout",
            "layout_t(row_spacing=4, plane_spacing=12)",
        ),
        _make_public_function(
            f"create_{prefix}_sub_tensor",
            partial(build_sub_tensor, tensor_class),
            f"Return {part}. `arguments`: {sub_forms}.",
            f"ttl.create_{prefix}_sub_tensor({whole}).origin.sub_offset",
            "offset_t(x=0, y=0, z=0)",
        ),
        _make_public_function(
            f"create_empty_{prefix}_tensor",
            partial(build_empty_tensor, tensor_class),
            f"Return {one} that holds nothing; `dtype` is the type of its elements.",
            f"ttl.create_empty_{prefix}_tensor().elem_size",
            "0",
        ),
        _make_public_function(
            f"create_empty_{prefix}_sub_tensor",
            partial(build_empty_sub_tensor, tensor_class),
            f"Return {part} that holds nothing; `dtype` is the type of its elements.",
            f"{empty}.elem_size",
            "0",
        ),
        _make_public_function(
            f"{prefix}_tensor_empty",
            is_empty,
            f"Return whether {one}, `tensor`, holds nothing.",
            f"ttl.{prefix}_tensor_empty({whole})",
            "False",
        ),
        _make_public_function(
            f"{prefix}_sub_tensor_empty",
            is_empty,
            f"Return whether {part}, `tensor`, holds nothing.",
            f"ttl.{prefix}_sub_tensor_empty({empty})",
            "True",
        ),
    ]


FUNCTIONS = {
    function.__name__: function
    for prefix, tensor_class in _TENSOR_CLASSES.items()
    for function in tensor_functions(prefix, tensor_class)
}


TYPED_NAMES = [
    name
    for element in ("void", *TYPES)
    for name in (
        f"io_{element}_tensor_t",
        *[f"{scheme}_const_{element}_tensor_buffering_t" for scheme in _SCHEMES],
        *[f"{prefix}_{element}_{sub}tensor_t" for prefix in _TENSOR_CLASSES for sub in ("", "sub_")],
        *[f"create_empty_{prefix}_{element}_{sub}tensor" for prefix in _TENSOR_CLASSES for sub in ("", "sub_")],
    )
]
"""The names with an element type in them that TTL declares; `typed_name` gives the meaning of each."""


def valid_int_tensor(tensor: Any) -> int:
    """Return 1 if an internal `tensor` holds something, else 0.

    >>> valid_int_tensor(build_empty_tensor(tensors.int_tensor_t))
    0
    """
    return int(not is_empty(require_internal(tensor, "tensor")))


def valid_tensors(io_tensors: buffering.io_tensors_t) -> bool:
    """Return whether `io_tensors` hold something: the opposite of `tensors_empty`, as in TTL's tutorial.

    >>> nothing = build_empty_sub_tensor(tensors.int_tensor_t)
    >>> valid_tensors(buffering.create_io_tensors(nothing, nothing))
    False
    """
    return not buffering.tensors_empty(io_tensors)


def typed_name(name: str) -> object:
    """Return the class or function of a name with an element type in it, or a vector type; None for any other name.

    >>> typed_name("const_ext_uchar_sub_tensor_t").__name__
    'const_ext_sub_tensor_t'
    >>> typed_name("create_empty_int_uint_tensor")().dtype
    dtype('uint32')
    """
    if re.fullmatch(rf"io_{_TYPED}tensor_t", name):
        return buffering.io_tensors_t
    match = re.fullmatch(rf"({'|'.join(_SCHEMES)})_const_{_TYPED}tensor_buffering_t", name)
    if match:
        return getattr(buffering, f"{match[1]}_buffering_t")
    match = re.fullmatch(rf"((?:const_)?(?:int|ext)_){_TYPED}((?:sub_)?tensor_t)", name)
    if match:
        return getattr(tensors, match[1] + match[2])
    match = re.fullmatch(rf"create_empty_((?:const_)?(?:int|ext))_({_TYPED})(sub_)?tensor", name)
    if match:
        element = TYPES.get(match[2][:-1])
        return partial(build_empty_sub_tensor if match[3] else build_empty_tensor, _TENSOR_CLASSES[match[1]], element)
    return vector_type(name)


def dump(value: object) -> None:
    """Print a `value` of TTL as a constructor call.

    >>> from tilewright import ttl
    >>> ttl.dump_shape(ttl.create_shape(4, 3))
    shape_t(width=4, height=3, depth=1)
    """
    print(repr(value))


_DUMPED = ("shape", "layout", "offset", "overlap", "augmentation", "tile", "tiler")
FUNCTIONS |= {f"dump_{name}": dump for name in (*_DUMPED, "int_tensor", "int_sub_tensor", "ext_tensor")}
