# SPDX-License-Identifier: Apache-2.0
"""What the pickles of PyTorch checkpoints describe: storages, tensors and containers, as data.

The names of classes and functions that may occur are listed here, with what a call of each describes; nothing is looked
up or called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import FileFormatError

_MAX_DIMENSIONS = 64

# The type of the elements of storages that name it in their class.
_STORAGE_TYPES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "ByteStorage": "uint8",
    "CharStorage": "int8",
    "ShortStorage": "int16",
    "IntStorage": "int32",
    "LongStorage": "int64",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}
UNTYPED = "untyped"
TORCH_TYPES = {
    **dict.fromkeys(("bool", "uint8", "int8"), 1),
    **dict.fromkeys(("uint16", "int16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("uint32", "int32", "float32", "complex32", "bcomplex32"), 4),
    **dict.fromkeys(("uint64", "int64", "float64", "complex64"), 8),
    "complex128": 16,
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
    "float4_e2m1fn_x2": 1,
}
"""Bytes of an element of torch's types."""

_BUILTINS = ("builtins", "__builtin__")  # the latter in protocol 2
_CONTAINERS = ("collections.OrderedDict", "collections.Counter", "collections.defaultdict")
_SETS = tuple([f"{module}.{name}" for module in _BUILTINS for name in ("set", "frozenset")])
_LEAVES = (
    *("torch.Size", "torch.device", "_codecs.encode"),
    *[f"{module}.{name}" for module in _BUILTINS for name in ("complex", "bytearray")],
)
_FACTORIES = tuple([f"{module}.{name}" for module in _BUILTINS for name in ("list", "dict", "int", "float")])
_TENSOR_CLASSES = ("torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter", "torch.nn.Parameter")


@dataclass(frozen=True, slots=True)
class StorageRef:
    """A storage that a pickle names: its `key`, the type of its elements, their `count`, and where a view starts.

    >>> StorageRef("0", "float32", 6).nbytes
    24
    """

    key: str
    kind: str
    count: int
    offset: int = 0

    @property
    def itemsize(self) -> int:
        """Return the bytes of an element; of an untyped storage, elements are bytes."""
        return TORCH_TYPES.get(self.kind, 1)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the storage."""
        return self.count * self.itemsize


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor that a pickle describes: elements of `kind` in a storage, from `offset` on, `strides` elements apart.

    >>> TensorRef(StorageRef("0", "float32", 6), "float32", 0, (2, 3), (3, 1)).end
    6
    """

    storage: StorageRef
    kind: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def end(self) -> int:
        """Return the index after the last element of the storage that the tensor uses."""
        if 0 in self.shape:
            return self.offset
        return self.offset + sum([(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]) + 1


@dataclass(frozen=True, slots=True)
class GlobalName:
    """A class or function that a pickle names; it is never looked up.

    >>> str(GlobalName("torch", "Size"))
    'torch.Size'
    """

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


def set_items(target: dict[Any, Any], items: list[Any]) -> None:
    """Set the entries of a dictionary: `items` are its keys and values in turn.

    >>> result = {}
    >>> set_items(result, ["a", 1])
    >>> result
    {'a': 1}
    """
    if len(items) % 2:
        raise FileFormatError("the pickle sets a key without a value")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, (str, int, float, type(None))):  # others could take forever to be hashed
            raise FileFormatError(f"expected text or a number as a dictionary's key, got a {type(key).__name__}")
        target[key] = value


def check_global(module: str, name: str) -> GlobalName:
    """Return a name if it is one of those that checkpoints need, otherwise raise.

    >>> str(check_global("collections", "OrderedDict"))
    'collections.OrderedDict'
    """
    result = GlobalName(module, name)
    is_storage = module in ("torch", "torch.cuda") and name in _STORAGE_TYPES
    is_type = module == "torch" and name in TORCH_TYPES
    known = (
        *_CONTAINERS,
        *_SETS,
        *_LEAVES,
        *_FACTORIES,
        *_TENSOR_CLASSES,
        *_REBUILDERS,
        "torch.storage.UntypedStorage",
    )
    if is_storage or is_type or str(result) in known:
        return result
    raise FileFormatError(
        f"the pickle names {str(result)[:100]!r}, which is not part of a checkpoint of plain tensors; nothing of it was"
        " executed. If you trust the file, load it with torch and save its state_dict() as safetensors"
    )


def make_storage(value: Any) -> StorageRef:
    """Return the storage of a persistent id: ("storage", class, key, location, count[, view]).

    >>> make_storage(("storage", GlobalName("torch", "FloatStorage"), "0", "cpu", 6))
    StorageRef(key='0', kind='float32', count=6, offset=0)
    """
    if not isinstance(value, tuple) or len(value) not in (5, 6) or value[0] != "storage":
        raise FileFormatError("the pickle refers to an object outside of it that is not a storage")
    _, kind, key, _, count = value[:5]
    if not isinstance(kind, GlobalName):
        raise FileFormatError("the pickle has a storage without a class")
    element = UNTYPED if kind.name == "UntypedStorage" else _STORAGE_TYPES.get(kind.name)
    if element is None or not isinstance(key, str):
        raise FileFormatError(f"the pickle has a storage of class {kind}, or without a key")
    view = value[5] if len(value) == 6 else None
    if view is None:
        return StorageRef(key, element, _expect_size(count, "the size of a storage"))
    if not isinstance(view, tuple) or len(view) != 3:
        raise FileFormatError("the pickle has a view of a storage without a key, an offset and a size")
    offset, size = _expect_size(view[1], "the offset of a view"), _expect_size(view[2], "the size of a view")
    if offset + size > _expect_size(count, "the size of a storage"):
        raise FileFormatError(f"the pickle has a view of elements {offset} to {offset + size} of a storage of {count}")
    return StorageRef(key, element, size, offset)


def _expect_size(value: Any, name: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise FileFormatError(f"expected an integer from 0 to 2^62 as {name}, got {_show(value)}")
    return value


def _expect_sizes(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)) or len(value) > _MAX_DIMENSIONS:
        raise FileFormatError(f"expected at most {_MAX_DIMENSIONS} integers as {name}, got {_show(value)}")
    return tuple([_expect_size(n, f"an entry of {name}") for n in value])


def _show(value: Any) -> str:
    """Return a short text of a value, which may be nested without end."""
    return repr(value)[:40] if isinstance(value, (int, float, str, bytes, type(None))) else f"a {type(value).__name__}"


def rebuild(target: GlobalName, arguments: tuple[Any, ...]) -> Any:
    """Return what a call of an allowed function, with a tuple of arguments, describes.

    >>> rebuild(GlobalName("torch", "Size"), ((2, 3),))
    (2, 3)
    """
    name = str(target)
    if name in _CONTAINERS:
        return _rebuild_container(name, arguments)
    if name in _SETS:  # items are not hashed
        return arguments[0] if arguments and isinstance(arguments[0], (list, tuple)) else []
    if name == "torch.Size" and len(arguments) == 1:
        return _expect_sizes(arguments[0], "a torch.Size")
    if name in _LEAVES:
        return None  # neither a tensor nor a container of tensors
    describe = _REBUILDERS.get(name)
    if describe is None:
        raise FileFormatError(f"the pickle calls {name}, which is not a function of a checkpoint")
    return describe(arguments)


def _rebuild_container(name: str, arguments: tuple[Any, ...]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    if name == "collections.defaultdict":
        return result  # the function that makes missing values does not matter
    if arguments and isinstance(arguments[0], dict):
        result.update(arguments[0])
    elif arguments and isinstance(arguments[0], list):
        for pair in arguments[0]:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise FileFormatError(f"expected pairs of keys and values for {name}, got {_show(pair)}")
            set_items(result, list(pair))
    elif arguments:
        raise FileFormatError(f"expected a dictionary or pairs for {name}, got {_show(arguments[0])}")
    return result


def _rebuild_tensor(arguments: tuple[Any, ...], kind: str | None = None, metadata: Any = None) -> TensorRef:
    storage = arguments[0] if arguments else None
    if not isinstance(storage, StorageRef) or len(arguments) < 4:
        raise FileFormatError("the pickle has a tensor without a storage, offset, size and stride")
    if isinstance(metadata, dict) and any(metadata.get(key) for key in ("conj", "neg")):
        raise FileFormatError("a tensor is conjugated or negated when it is read; save it with resolve_conj()")
    element = kind or ("uint8" if storage.kind == UNTYPED else storage.kind)
    offset = _expect_size(arguments[1], "the offset of a tensor")
    shape, strides = (_expect_sizes(n, name) for n, name in zip(arguments[2:4], ("a shape", "strides"), strict=True))
    if len(shape) != len(strides):
        raise FileFormatError(f"a tensor of shape {list(shape)} has {len(strides)} strides")
    result = TensorRef(storage, element, offset, shape, strides)
    if result.end * TORCH_TYPES[element] > storage.nbytes:
        raise FileFormatError(
            f"a tensor of shape {list(shape)} and strides {list(strides)} from element {offset} on needs"
            f" {result.end * TORCH_TYPES[element]} bytes, but its storage {storage.key[:40]!r} has {storage.nbytes}"
        )
    return result


def _rebuild_tensor_v2(arguments: tuple[Any, ...]) -> TensorRef:
    return _rebuild_tensor(arguments, metadata=arguments[6] if len(arguments) > 6 else None)


def _rebuild_tensor_v3(arguments: tuple[Any, ...]) -> TensorRef:
    kind = arguments[6] if len(arguments) > 6 else None
    if not isinstance(kind, GlobalName) or kind.name not in TORCH_TYPES:
        raise FileFormatError(f"expected a type as argument 7 of _rebuild_tensor_v3, got {_show(kind)}")
    return _rebuild_tensor(arguments, kind.name, arguments[7] if len(arguments) > 7 else None)


def _rebuild_parameter(arguments: tuple[Any, ...]) -> TensorRef:
    if not arguments or not isinstance(arguments[0], TensorRef):
        raise FileFormatError("the pickle has a parameter without a tensor")
    return arguments[0]


def _rebuild_from_type(arguments: tuple[Any, ...]) -> TensorRef:
    """Return a tensor that carries attributes, or is a Parameter: (function, class, arguments, attributes)."""
    if len(arguments) < 3 or not isinstance(arguments[0], GlobalName) or not isinstance(arguments[2], tuple):
        raise FileFormatError("the pickle has a tensor of a class without a function and its arguments")
    function, kind = arguments[:2]
    if not isinstance(kind, GlobalName) or str(kind) not in _TENSOR_CLASSES or function.module == "torch._tensor":
        raise FileFormatError(f"expected a torch.Tensor or Parameter that is made by a function, got {_show(kind)}")
    result = rebuild(function, arguments[2])
    if not isinstance(result, TensorRef):
        raise FileFormatError(f"the pickle makes a tensor with {function}, which makes none")
    return result


_REBUILDERS: dict[str, Callable[[tuple[Any, ...]], TensorRef]] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch._tensor._rebuild_from_type_v2": _rebuild_from_type,
}
