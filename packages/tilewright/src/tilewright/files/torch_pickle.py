# SPDX-License-Identifier: Apache-2.0
"""The pickles in PyTorch checkpoints, read as data: nothing is imported, and nothing is called.

An interpreter of the opcodes that torch writes. Containers become dictionaries, lists and tuples, tensors and storages
become descriptions. Every other opcode, and every name outside of a short list, is refused by name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import FileFormatError
from .range_reader import RangeReader
from .torch_objects import GlobalName, TensorRef, check_global, make_storage, rebuild, set_items

MAX_PICKLE_BYTES = 100_000_000
_MAX_OPCODES = 10_000_000
_MAX_INTEGER_BYTES = 64
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
        set_items(self._top(dict), [key, value])

    def set_items(self) -> None:
        items = self._pop_mark()
        set_items(self._top(dict), items)

    def make_dictionary(self) -> None:
        result: dict[Any, Any] = {}
        set_items(result, self._pop_mark())
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
        self._push(check_global(module, decode_text(self._source.take_line())))

    def push_stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(module, str) or not isinstance(name, str):
            raise FileFormatError("the pickle names a class by what is not text")
        self._push(check_global(module, name))

    def reduce(self) -> None:
        arguments, target = self._pop(), self._pop()
        if not isinstance(target, GlobalName) or not isinstance(arguments, tuple):
            raise FileFormatError(f"the pickle calls a {type(target).__name__}, which is not a function")
        self._push(rebuild(target, arguments))

    def build(self) -> None:
        self._pop()  # attributes, such as the versions of modules
        if not self._stack or not isinstance(self._stack[-1], (dict, TensorRef)):
            raise FileFormatError("the pickle sets attributes of what is neither a dictionary nor a tensor")

    def push_storage(self) -> None:
        self._push(make_storage(self._pop()))


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
