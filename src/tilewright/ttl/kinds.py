# SPDX-License-Identifier: Apache-2.0
"""The functions that TTL has once for each kind of tensor, made for all of them; and the names with a type in them.

`create_const_ext_tensor`, `create_empty_int_uchar_sub_tensor`, `const_ext_long_tensor_t` and their kin are one rule
each, not a thousand definitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from . import schemes, tensors
from .pointers import TYPES
from .tensors import SUB_OF, is_empty, make_empty, make_empty_sub, make_sub_tensor, make_tensor, tensor_t

_TYPED = f"(?:{'|'.join(['void', *TYPES])})_"
_KINDS: dict[str, type[tensor_t]] = {kind.__name__.removesuffix("_tensor_t"): kind for kind in SUB_OF}


def _named(name: str, function: Callable[..., Any], summary: str, example: str, result: str) -> Callable[..., Any]:
    """Return a function under a public name, with an example that runs."""

    def public(*given: Any) -> Any:
        return function(*given)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = f"{summary}\n\n>>> from tilewright import ttl\n>>> {example}\n{result}\n"
    public.__module__ = __name__
    return public


def functions_of(prefix: str, kind: type[tensor_t]) -> list[Callable[..., Any]]:
    """Return the public functions of one kind of tensor.

    >>> [made.__name__ for made in functions_of("const_int", tensors.const_int_tensor_t)][:2]
    ['create_const_int_tensor', 'create_const_int_sub_tensor']
    """
    place = "internal" if kind.internal else "external"
    one = f"a const {place} tensor" if kind.const else f"an {place} tensor"
    part = one.replace("tensor", "sub tensor")
    forms = "(base, shape or tile), then elem_size, layout, (layout, elem_size) or (layout, offset, elem_size)"
    sub_forms = "(origin), (base, origin), (base, shape, layout, origin, sub_offset) or TTL's seven values"
    whole = f"ttl.create_{prefix}_tensor(bytearray(12), ttl.create_shape(4, 3), 1)"
    empty = f"ttl.create_empty_{prefix}_sub_tensor()"
    return [
        _named(
            f"create_{prefix}_tensor",
            partial(make_tensor, kind),
            f"Return {one}, from {forms}.",
            f"{whole}.layout",
            "layout_t(row_spacing=4, plane_spacing=12)",
        ),
        _named(
            f"create_{prefix}_sub_tensor",
            partial(make_sub_tensor, kind),
            f"Return {part}, from {sub_forms}.",
            f"ttl.create_{prefix}_sub_tensor({whole}).origin.sub_offset",
            "offset_t(x=0, y=0, z=0)",
        ),
        _named(
            f"create_empty_{prefix}_tensor",
            partial(make_empty, kind),
            f"Return {one} that holds nothing.",
            f"ttl.create_empty_{prefix}_tensor().elem_size",
            "0",
        ),
        _named(
            f"create_empty_{prefix}_sub_tensor",
            partial(make_empty_sub, kind),
            f"Return {part} that holds nothing.",
            f"{empty}.elem_size",
            "0",
        ),
        _named(
            f"{prefix}_tensor_empty",
            is_empty,
            f"Return whether {one} holds nothing.",
            f"ttl.{prefix}_tensor_empty({whole})",
            "False",
        ),
        _named(
            f"{prefix}_sub_tensor_empty",
            is_empty,
            f"Return whether {part} holds nothing.",
            f"ttl.{prefix}_sub_tensor_empty({empty})",
            "True",
        ),
    ]


FUNCTIONS = {made.__name__: made for prefix, kind in _KINDS.items() for made in functions_of(prefix, kind)}


def valid_int_tensor(tensor: Any) -> bool:
    """Return whether an internal tensor holds something.

    >>> valid_int_tensor(make_empty(tensors.int_tensor_t))
    False
    """
    return not is_empty(tensor)


def valid_tensors(io_tensors: schemes.io_tensors_t) -> bool:
    """Return whether there is something to compute: the opposite of `tensors_empty`, as the tutorial writes it.

    >>> nothing = make_empty_sub(tensors.int_tensor_t)
    >>> valid_tensors(schemes.create_io_tensors(nothing, nothing))
    False
    """
    return not schemes.tensors_empty(io_tensors)


def typed_name(name: str) -> Any:
    """Return what a public name with a type in it stands for, or None if it is not such a name.

    >>> typed_name("const_ext_uchar_sub_tensor_t").__name__
    'const_ext_sub_tensor_t'
    >>> typed_name("create_empty_int_uint_tensor")().dtype
    dtype('uint32')
    """
    if re.fullmatch(rf"io_{_TYPED}tensor_t", name):
        return schemes.io_tensors_t
    found = re.fullmatch(rf"(import_double|export_double|duplex|simplex)_const_{_TYPED}tensor_buffering_t", name)
    if found:
        return getattr(schemes, f"{found[1]}_buffering_t")
    found = re.fullmatch(rf"((?:const_)?(?:int|ext)_){_TYPED}((?:sub_)?tensor_t)", name)
    if found:
        return getattr(tensors, found[1] + found[2])
    found = re.fullmatch(rf"create_empty_((?:const_)?(?:int|ext))_({_TYPED})(sub_)?tensor", name)
    if found:
        element = TYPES.get(found[2][:-1])
        return partial(make_empty_sub if found[3] else make_empty, _KINDS[found[1]], element)
    return None


def dump(value: Any) -> None:
    """Print a value of TTL as a constructor call.

    >>> from tilewright import ttl
    >>> ttl.dump_shape(ttl.create_shape(4, 3))
    shape_t(width=4, height=3, depth=1)
    """
    print(repr(value))
