# SPDX-License-Identifier: Apache-2.0
"""The pickles in PyTorch checkpoints, read as data: nothing is imported, and nothing is called.

An interpreter of the opcodes that torch writes. Containers become dictionaries, lists and tuples, tensors and storages
become descriptions. Every other opcode, and every name outside of a short list, is refused by name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from ..errors import FileFormatError
from .range_reader import RangeReader

MAX_PICKLE_BYTES = 100_000_000
_MAX_OPCODES = 10_000_000
_MAX_INTEGER_BYTES = 64
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
    **dict.fromkeys(("uint32", "int32", "float32", "complex32"), 4),
    **dict.fromkeys(("uint64", "int64", "float64", "complex64"), 8),
    "complex128": 16,
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
    "float4_e2m1fn_x2": 1,
}
"""Bytes of an element of torch's types."""

_CONTAINERS = ("collections.OrderedDict", "collections.Counter")
_LEAVES = ("torch.Size", "torch.device", "_codecs.encode", "builtins.complex", "__builtin__.complex")
_TENSOR_CLASSES = ("torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter", "torch.nn.Parameter")
_NAMES_OF_OPCODES = {
    ord("P"): "PERSID",
    ord("I"): "INT",
    ord("L"): "LONG",
    ord("F"): "FLOAT",
    ord("S"): "STRING",
    ord("V"): "UNICODE",
    ord("g"): "GET",
    ord("p"): "PUT",
    ord("i"): "INST",
    ord("o"): "OBJ",
    0x82: "EXT1",
    0x83: "EXT2",
    0x84: "EXT4",
    0x92: "NEWOBJ_EX",
    0x97: "NEXT_BUFFER",
    0x98: "READONLY_BUFFER",
}


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


def decode_text(data: bytes) -> str:
    """Return the text of UTF-8 bytes.

    >>> decode_text(b"weight")
    'weight'
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FileFormatError(f"the pickle has text that is not UTF-8: {data[:40]!r}") from None


def read_pickle(source: RangeReader) -> Any:
    """Return the value of the pickle at the position of `source`, which is moved behind it.

    >>> import tempfile
    >>> from tilewright.files.source_file import SourceFile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"\\x80\\x02}X\\x01\\x00\\x00\\x00aK\\x07s.")
    ...     file.flush()
    ...     read_pickle(RangeReader(SourceFile(file.name), 0, 13, "the pickle"))
    {'a': 7}
    """
    return _Interpreter(source).run()


class _Interpreter:
    """The stack and the memo of one pickle while it is read."""

    def __init__(self, source: RangeReader) -> None:
        self._source = source
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []  # the stacks below each mark
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        if self._source.take(1) != b"\x80":
            raise FileFormatError("expected a pickle of protocol 2 to 5, which starts with its protocol")
        if not 2 <= (protocol := self._source.take_integer(1)) <= 5:
            raise FileFormatError(f"expected a pickle of protocol 2 to 5, got {protocol}")
        begin = self._source.position
        for _ in range(_MAX_OPCODES):
            code = self._source.take_integer(1)
            if code == ord("."):
                return self._pop()
            if self._source.position - begin > MAX_PICKLE_BYTES:
                break
            action = _ACTIONS.get(code)
            if action is None:
                self._refuse_opcode(code)
            action(self)
        raise FileFormatError(f"the pickle has more than {_MAX_OPCODES} opcodes or {MAX_PICKLE_BYTES} bytes")

    def _refuse_opcode(self, code: int) -> NoReturn:
        name = _NAMES_OF_OPCODES.get(code, f"0x{code:02X}")
        raise FileFormatError(
            f"the pickle has opcode {name} at byte {self._source.position - 1}, which no PyTorch checkpoint needs; it"
            " is not executed"
        )

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack:
            raise FileFormatError("the pickle takes a value from an empty stack")
        return self._stack.pop()

    def _top(self, kind: type) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            raise FileFormatError(f"the pickle adds items to what is not a {kind.__name__}")
        return self._stack[-1]

    def _pop_mark(self) -> list[Any]:
        if not self._outer:
            raise FileFormatError("the pickle takes values from a mark that it has not set")
        items = self._stack
        self._stack = self._outer.pop()
        return items

    def skip_frame(self) -> None:
        self._source.take_integer(8)  # a frame only groups opcodes

    def mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._pop_mark()

    def pop_mark(self) -> None:
        self._pop_mark()

    def duplicate(self) -> None:
        value = self._pop()
        self._stack += [value, value]

    def append(self) -> None:
        value = self._pop()
        self._top(list).append(value)

    def append_items(self) -> None:
        items = self._pop_mark()
        self._top(list).extend(items)

    def make_list(self) -> None:
        self._push(self._pop_mark())

    def make_tuple(self) -> None:
        self._push(tuple(self._pop_mark()))

    def make_short_tuple(self, size: int) -> None:
        items = [self._pop() for _ in range(size)]
        self._push(tuple(items[::-1]))

    def set_item(self) -> None:
        value, key = self._pop(), self._pop()
        _set_items(self._top(dict), [key, value])

    def set_items(self) -> None:
        items = self._pop_mark()
        _set_items(self._top(dict), items)

    def make_dictionary(self) -> None:
        result: dict[Any, Any] = {}
        _set_items(result, self._pop_mark())
        self._push(result)

    def put(self, index_bytes: int) -> None:
        index = self._source.take_integer(index_bytes)
        self._memo[index] = self._peek()

    def memoize(self) -> None:
        self._memo[len(self._memo)] = self._peek()

    def _peek(self) -> Any:
        if not self._stack:
            raise FileFormatError("the pickle remembers a value of an empty stack")
        return self._stack[-1]

    def get(self, index_bytes: int) -> None:
        index = self._source.take_integer(index_bytes)
        if index not in self._memo:
            raise FileFormatError(f"the pickle uses value {index}, which it has not remembered")
        self._push(self._memo[index])

    def push_signed(self) -> None:
        self._push(int.from_bytes(self._source.take(4), "little", signed=True))

    def push_unsigned(self, size: int) -> None:
        self._push(self._source.take_integer(size))

    def push_long(self, size_bytes: int) -> None:
        size = self._source.take_integer(size_bytes)
        if size > _MAX_INTEGER_BYTES:
            raise FileFormatError(f"the pickle has an integer of {size} bytes, more than {_MAX_INTEGER_BYTES}")
        self._push(int.from_bytes(self._source.take(size), "little", signed=True))

    def push_float(self) -> None:
        self._push(struct.unpack(">d", self._source.take(8))[0])

    def push_text(self, size_bytes: int) -> None:
        self._push(decode_text(self._source.take(self._source.take_integer(size_bytes))))

    def push_bytes(self, size_bytes: int) -> None:
        self._push(self._source.take(self._source.take_integer(size_bytes)))

    def push_global(self) -> None:
        module = decode_text(self._source.take_line())
        self._push(_check_global(module, decode_text(self._source.take_line())))

    def push_stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(module, str) or not isinstance(name, str):
            raise FileFormatError("the pickle names a class by what is not text")
        self._push(_check_global(module, name))

    def reduce(self) -> None:
        arguments, target = self._pop(), self._pop()
        if not isinstance(target, GlobalName) or not isinstance(arguments, tuple):
            raise FileFormatError(f"the pickle calls a {type(target).__name__}, which is not a function")
        self._push(_rebuild(target, arguments))

    def build(self) -> None:
        self._pop()  # attributes, such as the versions of modules
        if not self._stack or not isinstance(self._stack[-1], (dict, TensorRef)):
            raise FileFormatError("the pickle sets attributes of what is neither a dictionary nor a tensor")

    def push_storage(self) -> None:
        self._push(_make_storage(self._pop()))


def _set_items(target: dict[Any, Any], items: list[Any]) -> None:
    if len(items) % 2:
        raise FileFormatError("the pickle sets a key without a value")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, (str, int, float, type(None))):  # others could take forever to be hashed
            raise FileFormatError(f"expected text or a number as a dictionary's key, got a {type(key).__name__}")
        target[key] = value


def _check_global(module: str, name: str) -> GlobalName:
    """Return a name if it is one of those that checkpoints need, otherwise raise."""
    result = GlobalName(module, name)
    is_storage = module in ("torch", "torch.cuda") and name in _STORAGE_TYPES
    is_type = module == "torch" and name in TORCH_TYPES
    known = (*_CONTAINERS, *_LEAVES, *_TENSOR_CLASSES, *_REBUILDERS, "torch.storage.UntypedStorage")
    if is_storage or is_type or str(result) in known:
        return result
    raise FileFormatError(
        f"the pickle names {str(result)[:100]!r}, which is not part of a checkpoint of plain tensors; nothing of it was"
        " executed. If you trust the file, load it with torch and save its state_dict() as safetensors"
    )


def _make_storage(value: Any) -> StorageRef:
    """Return the storage of a persistent id: ("storage", class, key, location, count[, view])."""
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


def _rebuild(target: GlobalName, arguments: tuple[Any, ...]) -> Any:
    """Return what a call of an allowed function describes."""
    name = str(target)
    if name in _CONTAINERS:
        return _rebuild_container(name, arguments)
    if name == "torch.Size" and len(arguments) == 1:
        return _expect_sizes(arguments[0], "a torch.Size")
    if name in _LEAVES:
        return None  # neither a tensor nor a container of tensors
    rebuild = _REBUILDERS.get(name)
    if rebuild is None:
        raise FileFormatError(f"the pickle calls {name}, which is not a function of a checkpoint")
    return rebuild(arguments)


def _rebuild_container(name: str, arguments: tuple[Any, ...]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    if arguments and isinstance(arguments[0], dict):
        result.update(arguments[0])
    elif arguments and isinstance(arguments[0], list):
        for pair in arguments[0]:
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise FileFormatError(f"expected pairs of keys and values for {name}, got {_show(pair)}")
            _set_items(result, list(pair))
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
    result = _rebuild(function, arguments[2])
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
_ACTIONS: dict[int, Callable[[_Interpreter], None]] = {
    0x95: _Interpreter.skip_frame,
    ord("("): _Interpreter.mark,
    ord("0"): _Interpreter.pop,
    ord("1"): _Interpreter.pop_mark,
    ord("2"): _Interpreter.duplicate,
    ord("N"): lambda self: self._push(None),
    0x88: lambda self: self._push(True),
    0x89: lambda self: self._push(False),
    ord("J"): _Interpreter.push_signed,
    ord("K"): lambda self: self.push_unsigned(1),
    ord("M"): lambda self: self.push_unsigned(2),
    0x8A: lambda self: self.push_long(1),
    0x8B: lambda self: self.push_long(4),
    ord("G"): _Interpreter.push_float,
    ord("X"): lambda self: self.push_text(4),
    0x8C: lambda self: self.push_text(1),
    0x8D: lambda self: self.push_text(8),
    ord("T"): lambda self: self.push_text(4),  # a str of Python 2
    ord("U"): lambda self: self.push_text(1),
    ord("B"): lambda self: self.push_bytes(4),
    ord("C"): lambda self: self.push_bytes(1),
    0x8E: lambda self: self.push_bytes(8),
    0x96: lambda self: self.push_bytes(8),
    ord("]"): lambda self: self._push([]),
    ord("a"): _Interpreter.append,
    ord("e"): _Interpreter.append_items,
    ord("l"): _Interpreter.make_list,
    ord(")"): lambda self: self._push(()),
    ord("t"): _Interpreter.make_tuple,
    0x85: lambda self: self.make_short_tuple(1),
    0x86: lambda self: self.make_short_tuple(2),
    0x87: lambda self: self.make_short_tuple(3),
    ord("}"): lambda self: self._push({}),
    ord("d"): _Interpreter.make_dictionary,
    ord("s"): _Interpreter.set_item,
    ord("u"): _Interpreter.set_items,
    0x8F: lambda self: self._push([]),  # a set: its items are not hashed
    0x90: _Interpreter.append_items,
    0x91: _Interpreter.make_list,
    ord("h"): lambda self: self.get(1),
    ord("j"): lambda self: self.get(4),
    ord("q"): lambda self: self.put(1),
    ord("r"): lambda self: self.put(4),
    0x94: _Interpreter.memoize,
    ord("c"): _Interpreter.push_global,
    0x93: _Interpreter.push_stack_global,
    ord("R"): _Interpreter.reduce,
    0x81: _Interpreter.reduce,  # NEWOBJ: the same of a class
    ord("b"): _Interpreter.build,
    ord("Q"): _Interpreter.push_storage,
}
