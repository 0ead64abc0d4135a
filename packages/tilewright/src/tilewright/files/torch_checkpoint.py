# SPDX-License-Identifier: Apache-2.0
"""PyTorch checkpoints: `.pt`, `.pth`, `.bin`, `.ckpt`, in the zip container and in the legacy one.

zip       NAME/data.pkl, a pickle that describes the tensors; NAME/data/KEY, the bytes of each storage;
          NAME/byteorder, "little" or "big"
legacy    pickles of a magic number, a version, the system, the tensors, and the keys of the storages; then, for each
          key, the number of elements (8 bytes) and the elements
"""

from __future__ import annotations

import pickletools
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn, TypeAlias

from .._text import count_of
from ..errors import FileFormatError
from ..formats import SCALAR_FORMATS, ScalarFormat
from .npy import ZIP_START, find_member_ranges, open_zip, reject_overlaps
from .source import RangeReader, SourceFile
from .stored_tensor import Content, StoredTensor

Span: TypeAlias = "tuple[int, int]"  # the start and end of bytes in the file

# The contents of PyTorch checkpoints' pickles: storages, tensors and containers, as data.

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
        """The bytes of an element; of an untyped storage, elements are bytes."""
        return TORCH_TYPES.get(self.kind, 1)

    @property
    def nbytes(self) -> int:
        """The bytes of the storage."""
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
        """The index after the last element of the storage that the tensor uses."""
        if 0 in self.shape:
            return self.offset
        return self.offset + sum([(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]) + 1


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
    """Return a name if checkpoints need it, otherwise raise.

    >>> str(check_global("collections", "OrderedDict"))
    'collections.OrderedDict'
    """
    result = GlobalName(module, name)
    is_storage = module in ("torch", "torch.cuda") and name in _STORAGE_TYPES
    is_type = module == "torch" and name in TORCH_TYPES
    allowed = (
        *_CONTAINERS,
        *_SETS,
        *_LEAVES,
        *_FACTORIES,
        *_TENSOR_CLASSES,
        *_REBUILDERS,
        "torch.storage.UntypedStorage",
    )
    if is_storage or is_type or str(result) in allowed:
        return result
    raise FileFormatError(
        f"the pickle names {str(result)[:100]!r}, which is not part of a checkpoint of plain tensors; nothing of it was"
        " executed. If you trust the file, load it with torch and save its state_dict() as safetensors"
    )


def make_storage(value: object) -> StorageRef:
    """Return the storage of a persistent id: ("storage", class, key, location, count[, view]).

    >>> make_storage(("storage", GlobalName("torch", "FloatStorage"), "0", "cpu", 6))
    StorageRef(key='0', kind='float32', count=6, offset=0)
    """
    if not isinstance(value, tuple) or len(value) not in (5, 6) or value[0] != "storage":
        raise FileFormatError("the pickle refers to an object outside of it that is not a storage")
    _, storage_class, key, _, count = value[:5]
    if not isinstance(storage_class, GlobalName):
        raise FileFormatError("the pickle has a storage without a class")
    element = UNTYPED if storage_class.name == "UntypedStorage" else _STORAGE_TYPES.get(storage_class.name)
    if element is None or not isinstance(key, str):
        raise FileFormatError(f"the pickle has a storage of class {storage_class}, or without a key")
    view = value[5] if len(value) == 6 else None
    if view is None:
        return StorageRef(key, element, _expect_size(count, "the size of a storage"))
    if not isinstance(view, tuple) or len(view) != 3:
        raise FileFormatError("the pickle has a view of a storage without a key, an offset and a size")
    offset, size = _expect_size(view[1], "the offset of a view"), _expect_size(view[2], "the size of a view")
    if offset + size > _expect_size(count, "the size of a storage"):
        raise FileFormatError(f"the pickle has a view of elements {offset} to {offset + size} of a storage of {count}")
    return StorageRef(key, element, size, offset)


def _expect_size(value: object, name: str) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise FileFormatError(f"expected an integer from 0 to 2^62 as {name}, got {_show(value)}")
    return value


def _expect_sizes(value: object, name: str) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)) or len(value) > _MAX_DIMENSIONS:
        raise FileFormatError(f"expected at most {_MAX_DIMENSIONS} integers as {name}, got {_show(value)}")
    return tuple([_expect_size(n, f"an entry of {name}") for n in value])


def _show(value: object) -> str:
    """Return a short text of a value, which may be nested without end."""
    return repr(value)[:40] if isinstance(value, (int, float, str, bytes, type(None))) else f"a {type(value).__name__}"


def rebuild(target: GlobalName, arguments: tuple[Any, ...]) -> object:
    """Return the description that a call of an allowed function, with a tuple of arguments, stands for.

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


def _rebuild_tensor(arguments: tuple[Any, ...], type_name: str | None = None, metadata: object = None) -> TensorRef:
    storage = arguments[0] if arguments else None
    if not isinstance(storage, StorageRef) or len(arguments) < 4:
        raise FileFormatError("the pickle has a tensor without a storage, offset, size and stride")
    if isinstance(metadata, dict) and any(metadata.get(key) for key in ("conj", "neg")):
        raise FileFormatError("conjugated or negated tensors are not supported; save it with resolve_conj()")
    element = type_name or ("uint8" if storage.kind == UNTYPED else storage.kind)
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
    torch_type = arguments[6] if len(arguments) > 6 else None
    if not isinstance(torch_type, GlobalName) or torch_type.name not in TORCH_TYPES:
        raise FileFormatError(f"expected a type as argument 7 of _rebuild_tensor_v3, got {_show(torch_type)}")
    return _rebuild_tensor(arguments, torch_type.name, arguments[7] if len(arguments) > 7 else None)


def _rebuild_parameter(arguments: tuple[Any, ...]) -> TensorRef:
    if not arguments or not isinstance(arguments[0], TensorRef):
        raise FileFormatError("the pickle has a parameter without a tensor")
    return arguments[0]


def _rebuild_from_type(arguments: tuple[Any, ...]) -> TensorRef:
    """Return a tensor that carries attributes, or is a Parameter: (function, class, arguments, attributes)."""
    if len(arguments) < 3 or not isinstance(arguments[0], GlobalName) or not isinstance(arguments[2], tuple):
        raise FileFormatError("the pickle has a tensor of a class without a function and its arguments")
    function, class_ = arguments[:2]
    if not isinstance(class_, GlobalName) or str(class_) not in _TENSOR_CLASSES or function.module == "torch._tensor":
        raise FileFormatError(f"expected a function that makes a torch.Tensor or Parameter, got {_show(class_)}")
    result = rebuild(function, arguments[2])
    if not isinstance(result, TensorRef):
        raise FileFormatError(f"{function} does not construct a tensor")
    return result


_REBUILDERS: dict[str, Callable[[tuple[Any, ...]], TensorRef]] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch._tensor._rebuild_from_type_v2": _rebuild_from_type,
}


# The pickles in PyTorch checkpoints, read as data: nothing is imported, and nothing is called.

MAX_PICKLE_BYTES = 100_000_000
_MAX_OPCODES = 10_000_000
_MAX_INTEGER_BYTES = 64


def decode_text(data: bytes) -> str:
    """Return the text of UTF-8 bytes.

    >>> decode_text(b"weight")
    'weight'
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise FileFormatError(f"the pickle has text that is not UTF-8: {data[:40]!r}") from None


def read_pickle(source: RangeReader) -> object:
    """Return the value of the pickle at the position of `source`, which is moved behind it.

    >>> import tempfile
    >>> from tilewright.files.source import SourceFile
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

    def run(self) -> object:
        if self._source.take(1) != b"\x80":
            raise FileFormatError("expected a pickle of protocol 2 to 5, which starts with its protocol")
        if not 2 <= (protocol := self._source.take_integer(1)) <= 5:
            raise FileFormatError(f"expected a pickle of protocol 2 to 5, got {protocol}")
        begin = self._source.position
        for _ in range(_MAX_OPCODES):
            code = self._source.take(1)
            if code == b".":
                return self._pop()
            if self._source.position - begin > MAX_PICKLE_BYTES:
                break
            opcode = _OPCODES.get(code)
            if opcode is None or opcode.name not in _ACTIONS:
                self._refuse_opcode(code, opcode)
            _ACTIONS[opcode.name](self, *self._read_argument(opcode))
        raise FileFormatError(f"the pickle has more than {_MAX_OPCODES} opcodes or {MAX_PICKLE_BYTES} bytes")

    def _refuse_opcode(self, code: bytes, opcode: pickletools.OpcodeInfo | None) -> NoReturn:
        name = f"0x{code.hex().upper()}" if opcode is None else opcode.name
        raise FileFormatError(
            f"the pickle has opcode {name} at byte {self._source.position - 1}, which no PyTorch checkpoint needs; it"
            " is not executed"
        )

    def _read_argument(self, opcode: pickletools.OpcodeInfo) -> tuple[Any, ...]:
        """Return the argument that follows an opcode, or nothing; it is decoded, and nothing is run."""
        if opcode.arg is None:
            return ()
        if opcode.name == "GLOBAL":  # whose names need not be ASCII
            return decode_text(self._source.take_line()), decode_text(self._source.take_line())
        decoder, size = opcode.arg.name.rstrip("1248"), opcode.arg.n
        if size < 0:  # it follows
            size = self._source.take_integer(_SIZE_BYTES[size])
        if decoder == "long" and size > _MAX_INTEGER_BYTES:
            raise FileFormatError(f"the pickle has an integer of {size} bytes, more than {_MAX_INTEGER_BYTES}")
        return (_DECODERS[decoder](self._source.take(size)),)

    def _push(self, value: object) -> None:
        self._stack.append(value)

    def _peek(self) -> Any:
        if not self._stack:
            raise FileFormatError("the pickle stores a value of an empty stack")
        return self._stack[-1]

    def _pop(self) -> Any:
        if not self._stack:
            raise FileFormatError("the pickle takes a value from an empty stack")
        return self._stack.pop()

    def _top(self, cls: type) -> Any:
        if not self._stack or not isinstance(self._stack[-1], cls):
            raise FileFormatError(f"the pickle adds items to an object that is not a {cls.__name__}")
        return self._stack[-1]

    def _pop_mark(self) -> list[Any]:
        if not self._outer:
            raise FileFormatError("the pickle takes values from a mark that it has not set")
        items = self._stack
        self._stack = self._outer.pop()
        return items

    def mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._pop_mark()

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
        set_items(self._top(dict), [key, value])

    def set_items(self) -> None:
        items = self._pop_mark()
        set_items(self._top(dict), items)

    def make_dictionary(self) -> None:
        result: dict[Any, Any] = {}
        set_items(result, self._pop_mark())
        self._push(result)

    def put(self, index: int) -> None:
        self._memo[index] = self._peek()

    def get(self, index: int) -> None:
        if index not in self._memo:
            raise FileFormatError(f"the pickle uses value {index}, which it has not stored")
        self._push(self._memo[index])

    def push_stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(module, str) or not isinstance(name, str):
            raise FileFormatError("the pickle names a class by a value that is not text")
        self._push(check_global(module, name))

    def reduce(self) -> None:
        arguments, target = self._pop(), self._pop()
        if not isinstance(target, GlobalName) or not isinstance(arguments, tuple):
            raise FileFormatError(f"the pickle calls a {type(target).__name__}, which is not a function")
        self._push(rebuild(target, arguments))

    def build(self) -> None:
        self._pop()  # attributes, such as the versions of modules
        if not self._stack or not isinstance(self._stack[-1], (dict, TensorRef)):
            raise FileFormatError("the pickle sets attributes of an object that is neither a dictionary nor a tensor")


_SIZE_BYTES = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}
_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "uint": lambda data: int.from_bytes(data, "little"),
    **dict.fromkeys(["int", "long"], lambda data: int.from_bytes(data, "little", signed=True)),
    "float": lambda data: struct.unpack(">d", data)[0],
    **dict.fromkeys(["unicodestring", "string"], decode_text),
    **dict.fromkeys(["bytes", "bytearray"], bytes),
}
_OPCODES = {opcode.code.encode("latin-1"): opcode for opcode in pickletools.opcodes}
_ACTIONS: dict[str, Callable[..., object]] = {
    "FRAME": lambda self, size: None,  # which only groups opcodes
    "MARK": _Interpreter.mark,
    "POP": _Interpreter.pop,
    "POP_MARK": _Interpreter._pop_mark,
    "DUP": lambda self: self._push(self._peek()),
    "NONE": lambda self: self._push(None),
    "NEWTRUE": lambda self: self._push(True),
    "NEWFALSE": lambda self: self._push(False),
    **dict.fromkeys(["BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"], _Interpreter._push),
    **dict.fromkeys(["BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"], _Interpreter._push),
    **dict.fromkeys(["BINSTRING", "SHORT_BINSTRING"], _Interpreter._push),  # a str of Python 2
    **dict.fromkeys(["BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"], _Interpreter._push),
    "EMPTY_LIST": lambda self: self._push([]),
    "APPEND": _Interpreter.append,
    "APPENDS": _Interpreter.append_items,
    "LIST": _Interpreter.make_list,
    "EMPTY_TUPLE": lambda self: self._push(()),
    "TUPLE": _Interpreter.make_tuple,
    "TUPLE1": lambda self: self.make_short_tuple(1),
    "TUPLE2": lambda self: self.make_short_tuple(2),
    "TUPLE3": lambda self: self.make_short_tuple(3),
    "EMPTY_DICT": lambda self: self._push({}),
    "DICT": _Interpreter.make_dictionary,
    "SETITEM": _Interpreter.set_item,
    "SETITEMS": _Interpreter.set_items,
    "EMPTY_SET": lambda self: self._push([]),  # whose items are not hashed
    "ADDITEMS": _Interpreter.append_items,
    "FROZENSET": _Interpreter.make_list,
    **dict.fromkeys(["BINGET", "LONG_BINGET"], _Interpreter.get),
    **dict.fromkeys(["BINPUT", "LONG_BINPUT"], _Interpreter.put),
    "MEMOIZE": lambda self: self.put(len(self._memo)),
    "GLOBAL": lambda self, module, name: self._push(check_global(module, name)),
    "STACK_GLOBAL": _Interpreter.push_stack_global,
    "REDUCE": _Interpreter.reduce,
    "NEWOBJ": _Interpreter.reduce,  # the same of a class
    "BUILD": _Interpreter.build,
    "BINPERSID": lambda self: self._push(make_storage(self._pop())),
}


LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_START = b"\x8a\x0a" + LEGACY_MAGIC.to_bytes(10, "little")
_LEGACY_VERSION = 1001
_MAX_DEPTH = 64  # of containers in containers
_MAX_VALUES = 2_000_000
_MAX_TENSORS = 200_000
_MAX_NAME_LENGTH = 4096
_MIN_EXPANSION_BYTES = 1 << 30  # tensors that repeat elements may always be this large,
_MAX_EXPANSION = 64  # and otherwise this many times as large as their file
_COUNT_BYTES = 8
_MAX_LEGACY_BYTES = 2 * MAX_PICKLE_BYTES  # of all pickles together
_FORMATS: dict[str, ScalarFormat | None] = {kind: SCALAR_FORMATS.get(kind) for kind in TORCH_TYPES}
_FORMATS["float8_e4m3fn"] = SCALAR_FORMATS["float8_e4m3"]


def is_legacy_checkpoint(start: bytes) -> bool:
    """Return whether a file that starts with these bytes is a PyTorch checkpoint in the legacy container.

    >>> is_legacy_checkpoint(b"\\x80\\x02\\x8a\\nl\\xfc\\x9cF\\xf9 j\\xa8P\\x19.")
    True
    """
    return start[:1] == b"\x80" and _LEGACY_START in start[:32]


def find_pickle(names: list[str]) -> str | None:
    """Return the name of the pickle among the members of a checkpoint in the zip container, None if there is none.

    >>> find_pickle(["model/version", "model/data.pkl", "model/data/0"])
    'model/data.pkl'
    """
    hits = [name for name in names if name == "data.pkl" or name.endswith("/data.pkl")]
    return min(hits, key=len, default=None)


def read_torch_checkpoint(file: SourceFile) -> Content:
    """Return the tensors of the PyTorch checkpoint in a `file`, and its other values; no pickle is executed.

    Names of nested containers are joined by dots, items of lists by their index.

    >>> import tempfile
    >>> header = b"\\x80\\x02}X\\x01\\x00\\x00\\x00wctorch._utils\\n_rebuild_tensor_v2\\n((X\\x07\\x00\\x00\\x00storage"
    >>> pickled = (
    ...     b"ctorch\\nCharStorage\\nX\\x01\\x00\\x00\\x000X\\x03\\x00\\x00\\x00cpuK\\x02tQK\\x00K\\x02\\x85K\\x01\\x85"
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(f"{folder}/x.pt", "w") as archive:
    ...         archive.writestr("x/data.pkl", header + pickled + b"\\x89}tRs.")
    ...         archive.writestr("x/data/0", b"\\x05\\x06")
    ...     [(tensor.name, tensor.read().tolist()) for tensor in read_torch_checkpoint(SourceFile(f"{folder}/x.pt"))[0]]
    [('w', [5, 6])]
    """
    start = file.read(0, min(file.size, 32))
    if start.startswith(ZIP_START):
        value, storages, is_little = _read_zip(file)
    elif is_legacy_checkpoint(start):
        value, storages, is_little = _read_legacy(file)
    else:
        raise FileFormatError(
            "not a PyTorch checkpoint: it is neither a zip file nor starts with torch's magic number; save it again"
            " with torch.save(model.state_dict(), path)"
        )
    swapped = is_little != (sys.byteorder == "little")
    others: dict[str, str] = {}
    return [_make_tensor(name, ref, file, storages, swapped) for name, ref in _name_tensors(value, others)], others


def _name_tensors(value: object, others: dict[str, str]) -> Iterator[tuple[str, TensorRef]]:
    """Yield the tensors in nested containers with their names, in the order of the file.

    Values other than tensors are added to `others`: at the top by name, in containers by the outermost one.
    """
    inside: dict[str, int] = {}
    if isinstance(value, TensorRef):
        yield "", value
        return
    open_containers = [_named_items("", value)]
    tensors = 0
    for _ in range(_MAX_VALUES):
        item = next(open_containers[-1], None)
        if item is None:
            open_containers.pop()
            if not open_containers:
                return
            continue
        name, inner = item
        if isinstance(inner, TensorRef):
            tensors += 1
            if tensors > _MAX_TENSORS:
                raise FileFormatError(f"the file has more than {_MAX_TENSORS} tensors")
            yield name, inner
        elif isinstance(inner, (dict, list, tuple)):
            if len(open_containers) == _MAX_DEPTH:
                raise FileFormatError(f"containers are nested more than {_MAX_DEPTH} deep, at {name[:80]!r}")
            open_containers.append(_named_items(f"{name}.", inner))
        elif len(open_containers) == 1:
            others[name] = f"a value of type {type(inner).__name__}"
        else:
            outermost = name.partition(".")[0]
            inside[outermost] = inside.get(outermost, 0) + 1
            others[outermost] = f"{count_of(inside[outermost], 'value')} beside tensors"
    raise FileFormatError(f"the containers have more than {_MAX_VALUES} values")


def _named_items(prefix: str, value: object) -> Iterator[tuple[str, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, inner in pairs:
        if isinstance(key, str) and len(prefix) + len(key) > _MAX_NAME_LENGTH:
            raise FileFormatError(f"the name {(prefix + key[:80])[:80]!r}... is longer than {_MAX_NAME_LENGTH}")
        yield f"{prefix}{key}", inner


def _make_tensor(
    name: str, ref: TensorRef, file: SourceFile, storages: Mapping[str, Span], swapped: bool
) -> StoredTensor:
    storage = storages.get(ref.storage.key)
    if storage is None:
        raise FileFormatError(f"the storage {ref.storage.key[:40]!r} of {name[:80]!r} is missing from the file")
    size, (start, end) = TORCH_TYPES[ref.kind], storage
    view = ref.storage.offset * ref.storage.itemsize
    if view + ref.storage.nbytes > end - start:
        raise FileFormatError(
            f"{name[:80]!r} needs a storage of {ref.storage.nbytes} bytes, but {ref.storage.key[:40]!r} has"
            f" {end - start}: the file is truncated"
        )
    expanded = prod([max(1, n) for n in ref.shape]) * size
    if expanded > max(_MIN_EXPANSION_BYTES, _MAX_EXPANSION * file.size):
        raise FileFormatError(
            f"{name[:80]!r} of shape {list(ref.shape)} repeats the elements of a file of {file.size} bytes to"
            f" {expanded}, which is implausible"
        )
    layout = (ref.shape, ref.strides, _FORMATS[ref.kind], size)
    return StoredTensor.strided(name, ref.kind, *layout, file, start + view + ref.offset * size, swapped and size > 1)


def _read_zip(file: SourceFile) -> tuple[object, dict[str, Span], bool]:
    """Return the value of the pickle, the storages by key, and whether they are little-endian."""
    with open_zip(file) as archive:
        listed = archive.infolist()
    members = {info.filename: info for info in listed}
    if len(members) < len(listed):
        raise FileFormatError("the zip file has two members of one name")
    pickle = find_pickle(list(members))
    if pickle is None:
        raise FileFormatError("the zip file is not a PyTorch checkpoint: it has no data.pkl; unpack it")
    prefix = pickle.removesuffix("data.pkl")
    if f"{prefix}constants.pkl" in members:
        raise FileFormatError("the file is a TorchScript program; save the state_dict() of torch.jit.load(path)")
    folder, order = f"{prefix}data/", f"{prefix}byteorder"
    needed = [info for name, info in members.items() if name in (pickle, order) or name.startswith(folder)]
    for info in needed:
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise FileFormatError(
                f"member {info.filename[:80]!r} is compressed or encrypted, so that parts of it cannot be read; save"
                " the file again with torch.save(torch.load(path, weights_only=True), path)"
            )
    ranges = dict(zip([info.filename for info in needed], find_member_ranges(needed, file), strict=True))
    reject_overlaps(list(ranges.values()))
    start, end = ranges[pickle]
    if end - start > MAX_PICKLE_BYTES:
        raise FileFormatError(f"{pickle[:80]!r} has {end - start} bytes, more than {MAX_PICKLE_BYTES}")
    storages = {name.removeprefix(folder): span for name, span in ranges.items() if name.startswith(folder)}
    return read_pickle(RangeReader(file, start, end, "the pickle")), storages, _is_little(file, ranges.get(order))


def _is_little(file: SourceFile, span: Span | None) -> bool:
    if span is None:
        return True
    text = file.read(span[0], min(span[1] - span[0], 16))
    if text not in (b"little", b"big"):
        raise FileFormatError(f"expected 'little' or 'big' as byteorder, got {text!r}")
    return text == b"little"


def _read_legacy(file: SourceFile) -> tuple[object, dict[str, Span], bool]:
    """Return the same of a file in the legacy container."""
    source = RangeReader(file, 0, min(file.size, _MAX_LEGACY_BYTES), "the pickle")
    if read_pickle(source) != LEGACY_MAGIC or read_pickle(source) != _LEGACY_VERSION:
        raise FileFormatError(f"expected torch's magic number and version {_LEGACY_VERSION} at the start, got others")
    system, value, keys = read_pickle(source), read_pickle(source), read_pickle(source)
    is_little = system.get("little_endian", True) if isinstance(system, dict) else True
    if not isinstance(is_little, bool) or not isinstance(keys, list):
        raise FileFormatError("expected the byte order and the list of storages after the pickles, got others")
    itemsizes = {ref.storage.key: ref.storage.itemsize for _, ref in _name_tensors(value, {})}
    storages: dict[str, Span] = {}
    at = source.position
    for key in keys:
        if not isinstance(key, str) or key in storages:
            raise FileFormatError("the list of storages has a key twice, or one that is not text")
        if key not in itemsizes:
            raise FileFormatError(f"the list of storages has {key[:40]!r}, whose type no tensor states")
        size = int.from_bytes(file.read(at, _COUNT_BYTES), "little") * itemsizes[key]
        at += _COUNT_BYTES
        if size > file.size - at:
            raise FileFormatError(
                f"storage {key[:40]!r} takes {size} bytes, but {file.size - at} follow: the file is truncated"
            )
        storages[key] = (at, at + size)
        at += size
    return value, storages, is_little
