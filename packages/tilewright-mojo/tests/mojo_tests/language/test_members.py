# SPDX-License-Identifier: Apache-2.0
"""A Mojo program reaches what Mojo gives it, and nothing of Python: by no member, bracket, call, text or import."""

from __future__ import annotations

import importlib
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright.mojo
from tilewright.errors import TilewrightError
from tilewright.mojo import run
from tilewright_mojo.exports import module_names
from tilewright_mojo.language.functions import UnknownParameter
from tilewright_mojo.language.members import MOJO_PRIVATE, NATIVE, is_exported, read_member, visible_members
from tilewright_mojo.language.modules import PACKAGES
from tilewright_mojo.language.structs import StructValue
from tilewright_mojo.language.tokens import MOJO_METHODS, words
from tilewright_mojo.prelude import PRELUDE

VALUES = """
from layout import Coord, Layout, LayoutTensor, TileTensor, row_major
from std.atomic import Atomic
from std.benchmark import BenchConfig
from std.collections import Counter, Deque
from std.gpu.host import DeviceContext
from std.sys import stdout

trait Named:
    def name(self) -> String:
        return "named"

struct Point(Copyable, Named):
    var x: Int
    comptime PI = 3
    def __init__(out self, x: Int):
        self.x = x
    def get(self) -> Int:
        return self.x

struct Box[n: Int]:
    var y: Int
    def __init__(out self):
        self.y = Self.n

struct Answering:
    var x: Int
    def __init__(out self):
        self.x = 1
    def __getattr__[name: StringLiteral](self) -> Int:
        return 7

def scale[n: Int](x: Int) -> Int:
    return n * x

def double(x: Int) -> Int:
    return 2 * x

def fail() raises -> AnyType:
    try:
        raise Error("no")
    except e:
        return e

def values() raises -> AnyType:
    var p = alloc[Float32](16)
    var t = TileTensor(p, row_major[4, 4]())
    var ctx = DeviceContext()
    var b = ctx.enqueue_create_buffer[DType.float32](4)
    return (
        p, t, ctx, b, fail(), Point(1), Box[2](), Answering(), Point, Box, Box[2], Named, scale, scale[2], double,
        lambda x: x, List(1, 2), {1: 2}, {1, 2}, (1, 2), 3, 1.5, True, "s", None, Float32(1),
        SIMD[DType.float32, 4](1), t.tile[2, 2](0, 0), t.layout, t.tile, t.load[2], t.ptr, t[0, 0], Point(1).get,
        Point.get, row_major[2, 2](), Coord(1, 2), iter([1]), range(3), zip([1], [2]), enumerate([1]),
        map(double, [1]), slice(1, 2), Deque[Int](1), Counter[String]("a"), Optional[Int](1), type_of(t),
        type_of(double), type_of(Point(1)), type_of(Point), type_of(row_major), p.store, b.unsafe_ptr(), DType.float32,
        print, String, Int, stdout, Atomic[DType.int32], BenchConfig(max_iters=1), Tuple[Int, Int],
        (x for x in range(3)), [x for x in range(3)],
    )
"""
FORBIDDEN = (types.CodeType, types.FrameType, types.TracebackType, types.MappingProxyType, types.CellType)
HARMLESS = {*(id(value) for value in PRELUDE.values()), *map(id, (bool, float, int, str))}
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
TIME = ("monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")


def is_harmless(value: Any) -> bool:
    """Return whether a value is data, a type or function of the dialect or the program, or a built-in Mojo has."""
    if isinstance(value, FORBIDDEN) or value is type or value is object:
        return False
    if type(value) is dict and "__builtins__" in value:
        return False
    if isinstance(value, types.ModuleType):
        return value.__name__.removeprefix("tilewright_mojo.").partition(".")[0] in PACKAGES
    if isinstance(value, partial):
        return is_harmless(value.func)
    if not isinstance(value, (type, *FUNCTIONS)) or id(value) in HARMLESS or is_ours(value.__module__):
        return True
    if isinstance(value, type):
        return issubclass(value, StructValue) or value.__module__ == "itertools"
    if value.__name__ in MOJO_METHODS:  # an operator of a class that the dialect builds on
        return str(value.__module__).partition(".")[0] in ("tilewright", "enum", "None")
    owner = getattr(value, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        return value.__module__ == "time" and value.__name__ in TIME
    return is_ours(type(owner).__module__) or any(isinstance(owner, cls) for cls in NATIVE)


def is_ours(module: str | None) -> bool:
    name = str(module)
    is_machinery = name.startswith(("tilewright_mojo.language.program", "tilewright_mojo.language.modules"))
    return name.startswith(("tilewright.mojo.", "tilewright_mojo.", "<mojo")) and not is_machinery


def list_roots() -> Iterator[tuple[str, Any]]:
    yield from PRELUDE.items()
    program = run(VALUES, main=False)
    yield "program", program
    for k, value in enumerate(program.values()):
        yield f"values()[{k}]", value
    yield from ((module.__name__, module) for module in list_modules())


def follow(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a program gets from a value: its members, also those that it computes, and its elements."""
    for name in [*visible_members(value), *[name for name in REACHING if read_member(value, name, None) is not None]]:
        try:
            yield f".{name}", getattr(value, name)
        except Exception:  # a member that needs a device, a thread, or parameters
            continue
    if type(value) in (list, tuple, dict):
        for entry in list(value.values() if type(value) is dict else value)[:50]:
            yield "[...]", entry


def test_no_chain_of_members_leaves_the_dialect():
    waiting = deque(list_roots())
    visits: dict[Any, int] = {}
    walked = 0
    while waiting:
        path, value = waiting.popleft()
        key = value if isinstance(value, (type, types.ModuleType)) else type(value)
        visits[key] = visits.get(key, 0) + 1
        assert is_harmless(value), f"{path} reaches {value!r}"
        walked += 1
        if visits[key] <= 3:  # members depend on the class
            waiting += [(path + step, found) for step, found in follow(value)]
    assert walked > 3000
    assert len(visits) > 150


def test_the_walk_notices_what_is_forbidden():
    from tilewright_mojo.language.program import load_program

    for value in (type, object, test_no_chain_of_members_leaves_the_dialect.__code__, types, open, eval, load_program):
        assert not is_harmless(value)
    assert not is_harmless({"__builtins__": None})


PYTHON_ONLY = words(
    "__globals__ __class__ __dict__ __code__ __closure__ __builtins__ __subclasses__ __bases__ __mro__ __base__ "
    "__self__ __func__ __wrapped__ __module__ __reduce__ __reduce_ex__ __getattribute__ __setattr__ __delattr__ "
    "__init_subclass__ __new__ __doc__ __annotations__ __defaults__ __kwdefaults__ __traceback__ __context__ "
    "__cause__ __loader__ __spec__ __import__ __weakref__ __slots__ __dir__ __format__ __sizeof__ __qualname__ "
    "__name__ __array__ __array_interface__ __getstate__ __setstate__ __instancecheck__ __class_getitem__"
)
REACHING = words(
    "mro gi_frame gi_code gi_yieldfrom cr_frame ag_frame f_globals f_back f_locals tb_frame tb_next func args keywords "
    "func_globals format_map with_traceback add_note tofile dump dumps ctypes base data buffer encode translate "
    "overloads factory _namespace _source _execute _loaded _function _owner template list_traits IMPLICIT make cls "
    "function given named first show to_numpy np os sys importlib import_module run"
)
NAMES = sorted(REACHING)
EXPRESSIONS = words(
    "print 3 1.5 'text' True None [1] {1:2} (1,2) double scale scale[2] Point Point(1) Point(1).get Box Box[2] "
    "Box[2]() Named Answering() List Int String DType DType.float32 tensor() tensor().tile tensor().load[2] "
    "tensor().layout iter([1]) range(3) zip([1],[2]) map(double,[1]) fail() type_of(double) type_of(tensor()) "
    "type_of(Point(1)) stdout layout row_major row_major[2,2]() Counter Deque[Int](1) Optional[Int](1) alloc "
    "alloc[Float32](4)"
)
PROBE = (
    VALUES + "\nimport layout\ndef tensor() -> AnyType:\n    return TileTensor(alloc[Float32](16), row_major[4, 4]())\n"
)
STEPS = st.one_of(
    st.sampled_from(sorted(PYTHON_ONLY | REACHING)).map(lambda name: f".{name}"),
    st.sampled_from(["[0]", "['__builtins__']", "()", "(1)", ".copy()", ".value", ".__iter__()", ".write"]),
)


def probe(expression: str) -> Any:
    """Return the value of an expression in a program, or None where it is refused."""
    return next(probe_all([expression]))


def probe_all(expressions: Iterable[str]) -> Iterator[Any]:
    """Yield the values of expressions in one program, None where one is refused."""
    functions = [f"def probe{k}() raises -> AnyType:\n    return {text}\n" for k, text in enumerate(expressions)]
    try:
        program = run(PROBE + "".join(functions), main=False)
    except TilewrightError:
        program = None
    for k in range(len(functions)):
        try:
            yield None if program is None else program[f"probe{k}"]()
        except (TilewrightError, AttributeError, TypeError, LookupError, ValueError, StopIteration):
            yield None


@given(st.sampled_from(sorted(EXPRESSIONS)), st.lists(STEPS, min_size=1, max_size=4))
def test_random_chains_reach_nothing_of_python(root, steps):
    assert is_harmless(probe(root + "".join(steps)))


@pytest.mark.parametrize("name", sorted(PYTHON_ONLY))
def test_names_of_python_are_no_names_of_mojo(name):
    for source in (
        f"def main():\n    var x = print.{name}",
        f"def main():\n    var {name} = 1",
        f"struct S:\n    var {name}: Int",
        f"struct S:\n    def {name}(self): pass",
        f"def main():\n    print(1, {name}=2)",
        f"from layout import {name}",
        f"import layout as {name}",
        f"def main():\n    var x = print.`{name}`",
    ):
        with pytest.raises(TilewrightError):
            run(source)


@pytest.mark.parametrize("root", sorted(EXPRESSIONS))
def test_members_of_python_objects_are_not_reached(root):
    for name, value in zip(NAMES, probe_all(f"{root}.{name}" for name in NAMES), strict=True):
        assert is_harmless(value), f"{root}.{name} reaches {value!r}"


ESCAPES = {
    "a function's globals": 'var g = print.__globals__\n    g["__builtins__"]["__import__"]("os").system("true")',
    "a name that only lowered code has": "var f = `mojo·subscript`",
    "a middle dot in a name": "var a·b = 1",
    "a format text": 'print("{0.__globals__}".format(print))',
    "a format text with an element": 'print("{0[__builtins__]}".format(print))',
    "a text's own members": 'print("{}".format_map({1: 2}))',
    "the type of a function": "var f = type_of(print)(1, 2)",
    "the type of a type": 'var t = type_of(type_of(print))("X", (1,), {1: 2})',
    "an assigned method": "print.write = 3",
    "an assigned library type": "List.append = print",
    "an assigned module": "layout.TileTensor = print",
    "private state of the library": "print(List(1)._memory)",
    "private state of a bracket": "print(alloc._function)",
    "an array's methods": 'SIMD[DType.float32, 4](1).array.tofile("x")',
    "a generator's frame": "var g = (x for x in range(3))\n    print(g.gi_frame)",
    "a partial's function": "print(TileTensor(alloc[Float32](4), row_major[2, 2]()).load[2].func)",
    "an iterator's state": "print(iter([1]).__reduce__())",
    "the type of a module": "var m = type_of(layout)('os')",
    "the type of an array": "var a = type_of(SIMD[DType.float32, 4](1).value)((4,), 'int64')",
    "a keyword of Python in a dictionary": "_ = BenchConfig(**{'__class__': Int})",
    "a keyword of Python in brackets": "_ = SIMD[**{'__class__': Int}]",
    "a class behind a type": "print(Atomic[DType.int32].mro())",
    "a vector's numbers": "var v = SIMD[DType.float32, 4](1)\n    v.value = 'x'",
    "a vector's type": "var v = SIMD[DType.float32, 4](1)\n    v.dtype = DType.int64",
    "a list's memory": "var v = [1, 2]\n    v.memory = ['x'].memory",
    "an error's parts": "var e = Error('a')\n    e.args = 3",
}


@pytest.mark.parametrize("body", ESCAPES.values(), ids=ESCAPES)
def test_an_escape_is_refused(body):
    imports = "import layout\nfrom layout import TileTensor, row_major\nfrom std.atomic import Atomic\n"
    source = f"{imports}from std.benchmark import BenchConfig\ndef main() raises:\n    {body}\n"
    with pytest.raises(TilewrightError):
        run(source)


class Taken:
    """A type of Python, which has members of its own."""


TAKING = """
struct Taker:
    var x: Int
    comptime PARAMETERS = ("NAME",)
    comptime FIELDS = ("NAME", "mro")
    def __init__(out self):
        self.x = 1
    def conforms(self, value: AnyType) -> Bool:
        return True
    def __getitem__(self, *first: AnyType, **named: AnyType) -> AnyType:
        return Int
comptime taker = Taker()
def by_position[found: AnyType](x: taker[found]) -> AnyType:
    return found
def by_name[found: AnyType](x: taker[NAME=found]) -> AnyType:
    return found
def taken(x: AnyType) raises -> AnyType:
    return CALL(x)
"""


@pytest.mark.parametrize("call", ["by_position", "by_name"])
@pytest.mark.parametrize("name", ["gi_frame", "f_globals", "func", "mro", "tofile", "__globals__"])
def test_a_type_in_brackets_reads_no_member_of_python(name, call):
    try:
        program = run(TAKING.replace("NAME", name).replace("CALL", call), main=False)
    except TilewrightError:
        return
    for value in ((x for x in "a"), test_an_error_has_no_traceback, partial(print), Taken, sys._getframe()):
        with suppress(TilewrightError):
            assert isinstance(program.taken(value), UnknownParameter)


@pytest.mark.parametrize("name", ["gi_frame", "gi_code", "gi_yieldfrom"])
def test_parameters_of_a_struct_are_inferred_from_its_values_only(name):
    source = f"struct B[{name}: AnyType]:\n    def __init__(out self): pass\n"
    source += "def f[g: AnyType](x: B[g]) -> AnyType:\n    return g\n"
    with pytest.raises(TilewrightError, match="parameter 'g' of f is not known"):
        run(f"{source}def main():\n    print(f((x for x in range(2))))\n")


def test_members_that_the_front_end_reads_have_names_that_no_program_spells(capsys):
    run("""
struct Box[template: Int, FIELDS: Int = 2]:
    var PARAMETERS: Int
    var TRAITS: Int
    comptime IMPLICIT = ("mro",)
    comptime list_traits = 4
    def __init__(out self):
        self.PARAMETERS, self.TRAITS = Self.template, Self.FIELDS
def main():
    var box = Box[3]()
    print(box.PARAMETERS, box.TRAITS, Box[3].IMPLICIT, Box[3].list_traits)
""")
    assert capsys.readouterr().out == "3 2 (mro) 4\n"
    with pytest.raises(TilewrightError, match="no member 'mro'"):
        run("struct S:\n    var __x: Int\n    var mro: Int\ndef main():\n    print(S.mro())")
    with pytest.raises(TilewrightError, match="no member 'mro'"):
        run('struct S:\n    comptime FIELDS = ("mro",)\ndef main():\n    print(S.mro())')


def test_memory_has_numbers_of_the_librarys_types_only(capsys):
    run("""
struct Format:
    var dtype: String
    var name: String
    def __init__(out self):
        self.dtype, self.name = "O", "object"
struct Element:
    comptime number_type = Format()
def main():
    print(alloc[Element](4)[0])
""")
    assert capsys.readouterr().out == "None\n"


@pytest.mark.parametrize(
    "exit_",
    [
        "@staticmethod\n    def __exit__(kind: AnyType, error: AnyType, trace: AnyType): pass",
        "comptime __exit__ = print",
        "var __exit__: AnyType",
    ],
)
def test_a_context_gets_no_traceback(exit_):
    source = f"struct S:\n    {exit_}\n    def __init__(out self): pass\n    def __enter__(self) -> Int: return 1\n"
    with pytest.raises(TilewrightError, match="__exit__ is a method of values"):
        run(f"{source}def main() raises:\n    with S():\n        raise Error('no')\n")


def test_the_type_of_another_program_runs_none(tmp_path):
    (tmp_path / "other.mojo").write_text("var x = 1\n")
    main = tmp_path / "main.mojo"
    main.write_text("import other\ndef main():\n    _ = type_of(other)(1, 2, 3)\n")
    with pytest.raises(TilewrightError, match="has no type"):
        run(main)


def test_an_error_has_no_traceback():
    with pytest.raises(TilewrightError, match="no name '__traceback__'"):
        run('def main():\n    try:\n        raise Error("a")\n    except e:\n        print(e.__traceback__)')
    with pytest.raises(TilewrightError, match="no member 'with_traceback'"):
        run('def main():\n    try:\n        raise Error("a")\n    except e:\n        print(e.with_traceback)')


@pytest.mark.parametrize("name", ["open", "eval", "exec", "__import__", "getattr", "vars", "compile", "globals"])
def test_a_variable_without_a_value_is_not_a_builtin_of_python(name):
    with pytest.raises(TilewrightError):
        run(f"var {name}: Int\ndef main():\n    print({name}('x'))\nmain()")
    with pytest.raises(TilewrightError):
        run(f"def main():\n    print({name})")


@pytest.mark.parametrize(
    "name", ["np", "import_module", "_store", "annotations", "Any", "Callable", "cmp_to_key", "sys"]
)
def test_a_module_exports_only_what_is_the_dialects(name):
    for module in ("layout.tile_tensor", "std.gpu", "std.math", "std.sys", "std.os", "std.memory", "layout"):
        with pytest.raises(TilewrightError):
            run(f"from {module} import {name}\ndef main():\n    print({name})")


def test_another_program_shows_what_it_declares(tmp_path):
    (tmp_path / "other.mojo").write_text("def area(x: Int) -> Int:\n    return x * x\n")
    main = tmp_path / "main.mojo"
    main.write_text("import other\nfrom other import area\ndef main():\n    print(other.area(3) + area(2))\n")
    run(main)
    for name in ("_namespace", "_source", "PRELUDE", "print", "`mojo·subscript`"):
        main.write_text(f"import other\ndef main():\n    print(other.{name})\n")
        with pytest.raises(TilewrightError):
            run(main)


def test_fields_and_methods_of_a_program_are_its_own(capsys):
    run("""
struct Account:
    var _balance: Int
    def __init__(out self):
        self._balance = 3
    def _add(mut self, amount: Int):
        self._balance += amount
def main():
    var account = Account()
    account._add(4)
    account._balance += 1
    print(account._balance)
""")
    assert capsys.readouterr().out == "8\n"
    with pytest.raises(TilewrightError, match="no member 'other'"):
        run("struct A:\n    var x: Int\n    def __init__(out self):\n        self.other = 1\ndef main():\n    _ = A()")


def test_a_method_cannot_be_lent_to_another_value():
    with pytest.raises(TilewrightError, match="no member 'gi_frame'"):
        run("""
struct Thief:
    var gi_frame: Int
    def __init__(out self):
        self.gi_frame = 1
    def take(self) -> AnyType:
        return self.gi_frame
def main():
    var g = (x for x in range(3))
    print(Thief.take(g))
""")


ASKED = """
struct Asked:
    var asked: List[String]
    def __init__(out self):
        self.asked = []
    def __getattr__[name: StringLiteral](self) -> AnyType:
        self.asked.append(name)
        return {"shape": (16,), "typestr": "|u1", "data": (64, False), "version": 3}
"""
"""A struct that would give NumPy an array of any memory."""


@pytest.mark.parametrize(
    "use",
    [
        "bitcast[DType.uint8, 1](asked)",
        "SIMD[DType.uint8, 16](asked)",
        "TileTensor(asked, row_major[16]())",
        "Span(asked)",
        "isclose(asked, asked)",
        "SIMD[DType.uint8, 16](1) + asked",
        "memory.copy_from(asked)",
        "memory.fill(asked)",
        "String(asked)",
    ],
)
def test_python_does_not_ask_a_program_for_members(use):
    imports = "from layout import TileTensor, row_major\nfrom std.memory import bitcast\nfrom std.math import isclose\n"
    body = f"var memory = TileTensor(alloc[UInt8](16), row_major[16]())\n    _ = {use}"
    program = run(f"{imports}{ASKED}def use(asked: Asked) raises:\n    {body}\n", main=False)
    asked = program.Asked()
    with suppress(TilewrightError, TypeError, ValueError):
        program.use(asked)
    assert list(asked.asked) == []


@pytest.mark.parametrize(
    "declaration",
    [
        "struct S[__getattr__: AnyType]:\n    def __init__(out self): pass\n",
        "struct S:\n    @staticmethod\n    def __getattr__(name: AnyType) -> AnyType:\n        return name\n",
        "struct S:\n    comptime __getattr__ = print\n",
    ],
)
def test_no_other_member_answers_for_python(declaration):
    with pytest.raises(TilewrightError, match="__getattr__ is a method of values"):
        run(declaration)


def test_a_member_is_checked_by_the_name_that_it_gets():
    with pytest.raises(TilewrightError, match="__getattr__ is a method of values"):
        run("""
def __getattr__(owner: AnyType, name: AnyType) -> AnyType:
    return {"shape": (16,), "typestr": "|u1", "data": (64, False), "version": 3}
struct S(Some[[__getattr__ for __getattr__ in [Copyable]][0]]):
    comptime __getattr__ = 3
    def __init__(out self): pass
def main() raises:
    _ = SIMD[DType.uint8, 16](S())
""")


@pytest.mark.parametrize("target", ["x.size", "x[0]", "print(1)", "(x, print(1).y)"])
def test_the_target_of_a_comprehension_is_a_name(target):
    with pytest.raises(TilewrightError, match="expected a name"):
        run(f"def main():\n    print([1 for {target} in [1]])\n")


@pytest.mark.parametrize("target", ["List", "layout", "print", "alloc", "SIMD[DType.float32, 4](1)", "[1]"])
def test_only_a_struct_assigns_all_its_fields(target):
    with pytest.raises(TilewrightError, match="it cannot become one of Patch"):
        run(f"""
import layout
struct Patch:
    var append: Int
    var value: Int
    def __init__(out self):
        self.append, self.value = 1, 2
def patch(self: AnyType):
    self = Patch()
def main():
    patch({target})
""")


def test_brackets_of_another_program_give_what_it_declares(tmp_path):
    (tmp_path / "other.mojo").write_text("def area(x: Int) -> Int:\n    return x * x\n")
    main = tmp_path / "main.mojo"
    for name in ("__builtins__", "mojo·add_member", "mojo·declare_struct", "print"):
        main.write_text(f"import other\ndef main():\n    print(other['{name}'])\n")
        with pytest.raises(TilewrightError, match="has no name"):
            run(main)
    assert run(tmp_path / "other.mojo")["area"](3) == 9


def test_a_module_is_named_by_names_only(tmp_path):
    (tmp_path / "secret.mojo").write_text("var x = 1\n")
    folder = tmp_path / "inner"
    folder.mkdir()
    main = folder / "main.mojo"
    for path in (f"{tmp_path}/secret", "../secret", "x/../../secret"):
        main.write_text(f"import `{path}` as s\ndef main():\n    print(s.x)\n")
        with pytest.raises(TilewrightError, match="is not the name of a module"):
            run(main)


def test_a_stream_is_one_of_two(capsys):
    with pytest.raises(TilewrightError):
        run("from std.sys import Stream")
    with pytest.raises(TilewrightError, match="is the library's own"):
        run("from std.sys import stdout\ndef main():\n    type_of(stdout)('__stdout__').write('a')\n")
    run("from std.sys import stderr\ndef main():\n    stderr.write('a')\n")
    assert capsys.readouterr() == ("", "a")


def list_modules() -> Iterator[types.ModuleType]:
    for name in module_names():
        yield importlib.import_module(f"tilewright_mojo.{name}")


def test_a_module_exports_what_it_lists_and_no_class_of_classes():
    for module in list_modules():
        for name, value in vars(module).items():
            if is_exported(module, name) and not isinstance(value, types.ModuleType):
                assert name in getattr(module, "__all__", ()) or name in MOJO_PRIVATE
                assert not (isinstance(value, type) and issubclass(value, type)), f"{module.__name__}.{name}"


LABELLED = "alloc[Float32](4).address_space_cast[AddressSpace.SHARED]().memory"


@pytest.mark.parametrize("value", ["alloc[Float32](4).memory", LABELLED, "Equatable", "Equatable & Copyable", "layout"])
def test_the_type_of_the_machinery_makes_nothing(value):
    with pytest.raises(TilewrightError, match=r"is the library's own|cannot be made from its type"):
        run(f"import layout\ndef main():\n    var value = {value}\n    _ = type_of(value)(1, 2, 3, 4)\n")


def test_errors_and_characters_have_types(capsys):
    run("def main():\n    print(type_of(Error('a'))('b'), type_of(Codepoint(97)) is Codepoint)\n")
    assert capsys.readouterr().out == "b True\n"


@pytest.mark.parametrize("owner", ["List[Int]", "TileTensor[DType.int8, row_major[2]()]", "Atomic[DType.int32]", "[1]"])
def test_a_name_in_a_text_is_no_member(owner):
    imports = "from layout import TileTensor, row_major\nfrom std.atomic import Atomic\n"
    with pytest.raises(TilewrightError, match="no member '__getattr__'"):
        run(f"{imports}def main():\n    print({owner}.__getattr__('rank'))\n")


FORGED = """
from layout import TileTensor, row_major
from std.gpu.host import DeviceContext
struct Forged:
    var size: Int
    var format: DType
    var data: AnyType
    var host: AnyType
    var origin: Int
    var readonly: Bool
    var memory: AnyType
    var offset: Int
    def __init__(out self):
        self.size, self.format, self.origin, self.readonly, self.offset = 1 << 30, DType.uint8, 0, False, 0
        self.data = SIMD[DType.uint8, 16](1).value
        self.host, self.memory = self.data, 0
    def reachable_array(self) -> AnyType:
        return self.data
struct Storage:
    var device_memory: AnyType
    var memory: AnyType
    var offset: Int
    def __init__(out self):
        self.device_memory, self.memory, self.offset = Forged(), Forged(), 0
def main() raises:
    USE
"""


@pytest.mark.parametrize(
    "use",
    [
        "_ = TileTensor(Storage(), row_major[4096, 4096]())",
        "_ = TileTensor(UnsafePointer(Forged(), 0), row_major[4096, 4096]())",
        "_ = Span(ptr=Storage(), length=100)",
        "_ = Span(Storage())",
        "_ = UnsafePointer(alloc[UInt8](4).memory, 1.5)",
        "DeviceContext().enqueue_copy(Storage(), Storage())",
    ],
)
def test_memory_of_a_program_is_not_taken_for_the_librarys(use):
    with pytest.raises(TilewrightError, match=r"is not memory|storage must be|integer|no member|has no len"):
        run(FORGED.replace("USE", use))


def test_a_kernel_does_not_name_what_makes_it_wait(capsys):
    run("""
from std.gpu import thread_idx, barrier
from std.gpu.host import DeviceContext
def spy(function: AnyType) -> AnyType:
    print("spied")
    return function
def helper(x: Int) -> Int:
    return x + 1
def kernel(p: UnsafePointer[Int32, MutAnyOrigin]):
    var __twin, __call, __awaitable, __result = spy, spy, spy, spy
    barrier()
    p[thread_idx.x] = Int32(helper(3))
def main() raises:
    var ctx = DeviceContext()
    var buffer = ctx.enqueue_create_buffer[DType.int32](2)
    ctx.enqueue_function[kernel](buffer, grid_dim=1, block_dim=2)
    print(buffer)
""")
    assert capsys.readouterr().out == "DeviceBuffer([4, 4])\n"


@pytest.mark.parametrize("name", ["_namespace", "_loaded", "_source", "_execute", "_import", "exported_names"])
def test_a_name_that_a_program_declares_is_none_of_ours(name, tmp_path, capsys):
    (tmp_path / "other.mojo").write_text(f"def {name}() -> Int:\n    return 3\n")
    main = tmp_path / "main.mojo"
    main.write_text(f"import other\nfrom other import {name}\ndef main():\n    print(other.{name}(), {name}())\n")
    run(main)
    main.write_text(f"from other import *\ndef main():\n    print({name}())\n")
    run(main)
    assert capsys.readouterr().out == "3 3\n3\n"


@pytest.mark.parametrize("rebinding", ["comptime Self = List", "comptime x = (Self := List)"])
@pytest.mark.parametrize("kind", ["struct", "trait"])
def test_members_go_to_the_struct_whatever_self_is(kind, rebinding, capsys):
    before = tilewright.mojo.List.append, dict(vars(tilewright.mojo.List))
    use = "struct S(T):\n    pass\n" if kind == "trait" else ""
    run(f"""
{kind} T:
    {rebinding}
    comptime added = 3
    def append(self, value: Int = 3):
        print("patched", value)
{use}
def main():
    var values = [1]
    values.append(2)
    print(values)
""")
    assert capsys.readouterr().out == "[1, 2]\n"
    assert before == (tilewright.mojo.List.append, dict(vars(tilewright.mojo.List)))


@pytest.mark.parametrize("member", ["List.append", "TileTensor.load", "TileTensor.raw_load", "UnsafePointer.memory"])
def test_a_type_of_the_library_lends_no_method(member):
    with pytest.raises(TilewrightError, match="no member"):
        run(f"from layout import TileTensor\nstruct S:\n    comptime lent = {member}\n")


FORGED_TENSOR = """
from layout import TileTensor, row_major, Layout, LayoutTensor
from layout._fillers import arange, random
from layout.math import outer_product_acc
struct Pair:
    var shape: AnyType
    def __init__(out self):
        self.shape = ((4096,), ())
struct Store:
    var host: AnyType
    var data: AnyType
    var format: DType
    var readonly: Bool
    var size: Int
    var is_on_host: Bool
    def __init__(out self):
        self.host = SIMD[DType.uint8, 16](1).value
        self.data, self.format, self.readonly, self.size = self.host, DType.uint8, False, 4096
        self.is_on_host = True
struct Tensor:
    var _mode_layout: AnyType
    var _native_layout: AnyType
    var shape: AnyType
    var layout: AnyType
    var dtype: DType
    var _pair: Pair
    var _store: Store
    var _offset: Int
    var readonly: Bool
    def __init__(out self):
        self._mode_layout = row_major[4096]()
        self._native_layout, self.layout = self._mode_layout, self._mode_layout
        self.shape, self.dtype, self._offset, self.readonly = (4096,), DType.uint8, 0, False
        self._pair, self._store = Pair(), Store()
    def to_numpy(self) -> AnyType:
        return self._store.host
def main() raises:
    USE
"""


@pytest.mark.parametrize(
    "use", ["arange(Tensor())", "random(Tensor())", "outer_product_acc(Tensor(), Tensor(), Tensor())"]
)
def test_a_tensor_of_a_program_is_not_taken_for_the_librarys(use):
    with pytest.raises(TilewrightError, match="expected a tensor, got Tensor"):
        run(FORGED_TENSOR.replace("USE", use))


LYING = """
struct Lying:
    def __init__(out self): pass
    def __ge__(self, other: Int) -> Bool: return True
    def __gt__(self, other: Int) -> Bool: return True
    def __le__(self, other: Int) -> Bool: return True
    def __lt__(self, other: Int) -> Bool: return True
    def __mul__(self, other: Int) -> Int: return 0
    def __int__(self) -> Int: return 1000
"""
LARGER = {
    "element_layout": "LayoutTensor[DType.int64, Layout.row_major(4), element_layout=Layout(1000, 1)](memory)",
    "tile": "TileTensor(memory, TileLayout(((2, 2), (2, 8)), ((32, 1), (4, 8)))).tile[Lying(), Lying()](0, 0)",
}


@pytest.mark.parametrize("tensor", LARGER.values(), ids=LARGER)
@pytest.mark.parametrize("use", ["print(tensor)", "tensor.fill(3)"])
def test_a_view_that_exceeds_its_memory_is_not_accessed(tensor, use):
    imports = (
        "from layout import Layout, LayoutTensor, TileTensor\nfrom layout.tile_layout import Layout as TileLayout\n"
    )
    body = f"var memory = alloc[Int64](128)\n    var tensor = {tensor}\n    {use}"
    with pytest.raises(TilewrightError, match=r"exceeds its storage|but the storage has|must be an integer"):
        run(f"{imports}{LYING}def main() raises:\n    {body}\n")


@pytest.mark.parametrize(
    "buffer", ["DeviceBuffer(ctx, DType.int64, 4, SIMD[DType.uint8, 4](1).value)", "HostBuffer(ctx, Forged(), 4)"]
)
def test_a_buffer_has_numbers_of_its_type(buffer):
    forged = "struct Forged:\n    var dtype: String\n    def __init__(out self):\n        self.dtype = 'O'\n"
    imports = "from std.gpu.host import DeviceBuffer, DeviceContext, HostBuffer\n"
    with pytest.raises(TilewrightError, match=r"has no scalars|unknown format|expected a format"):
        run(f"{imports}{forged}def main() raises:\n    var ctx = DeviceContext()\n    _ = {buffer}.unsafe_ptr()\n")


@pytest.mark.parametrize("device", ["opencl", "cuda"])
def test_a_program_opens_no_driver(device):
    with pytest.raises(TilewrightError, match="a Mojo program runs on the SIMT machine"):
        run(f"from std.gpu.host import DeviceContext\ndef main() raises:\n    _ = DeviceContext('{device}')\n")


def test_what_is_written_is_told_by_buffers_only(capsys):
    run("""
from layout import TileTensor, row_major
from std.gpu import thread_idx
from std.gpu.host import DeviceContext
struct Item:
    var number: Int
    def __init__(out self):
        self.number = 5
    def __radd__(self, other: AnyType) -> AnyType:
        return self
struct Forged:
    var array: AnyType
    var _written: AnyType
    def __init__(out self):
        self.array = SIMD[DType.uint8, 64](1).value
        self._written = SIMD[DType.int64, 64](1).value + Item()
def kernel(t: AnyType):
    t[thread_idx.x] = 3
def main() raises:
    var forged, ctx = Forged(), DeviceContext()
    ctx.enqueue_function[kernel](TileTensor(forged, row_major[64]()), grid_dim=1, block_dim=8)
    var buffer = ctx.enqueue_create_buffer[DType.uint8](64)
    ctx.enqueue_copy(buffer, forged)
    ctx.enqueue_function[kernel](buffer, grid_dim=1, block_dim=8)
    print(forged._written[0].number)
""")
    assert capsys.readouterr().out == "5\n"
    with pytest.raises(TilewrightError, match="no member"):
        run(
            "from std.gpu.host import DeviceContext\ndef main() raises:\n"
            "    print(DeviceContext().enqueue_create_buffer[DType.uint8](4)._written)\n"
        )


def test_a_program_opens_no_driver_later_or_by_another_name():
    program = run("""
from std.gpu.host import DeviceContext
struct Lying:
    var asked: Int
    var number: Int
    def __init__(out self):
        self.asked, self.number = 0, hash("opencl")
    def __eq__(self, other: AnyType) -> Bool:
        self.asked += 1
        return self.asked != 2
    def __ne__(self, other: AnyType) -> Bool:
        return False
    def __hash__(self) -> Int:
        return self.number
def later() raises:
    _ = DeviceContext("opencl")
def lie() raises:
    _ = DeviceContext(Lying())
""")
    with pytest.raises(TilewrightError, match="a Mojo program runs on the SIMT machine"):
        program.later()
    with pytest.raises(TilewrightError, match="unknown device"):
        program.lie()


def test_a_struct_is_asked_once_for_a_member():
    with pytest.raises(TilewrightError) as problem:
        run("""
trait First:
    def mro(self) -> Int:
        return 3
trait Second:
    def other(self) -> Int:
        return 3
struct Count:
    var n: Int
    def __init__(out self):
        self.n = 0
    def next(self) -> Int:
        self.n += 1
        return self.n
comptime count = Count()
def pick(n: Int) -> AnyType:
    return First if n == 1 else Second
struct S[n: Int = count.next()](Some[pick(n)]):
    def __init__(out self): pass
def main() raises:
    raise Error(S.mro())
""")
    assert "object" not in str(problem.value)


def test_a_struct_becomes_no_class():
    source = "struct S:\n    var x: Int\n    def __init__(out self):\n        self.x = 1\n"
    with pytest.raises(TilewrightError, match="it cannot become one of type"):
        run(f"{source}    def turn(mut self):\n        self = Self\ndef main():\n    S().turn()\n")
    with pytest.raises(TilewrightError, match="no member 'x'"):
        run(f"{source}def main():\n    print(S.x)\n")


def test_new_memory_has_nothing_of_other_memory(capsys):
    size = 36_000
    before = [np.full(size, 83, np.uint8) for _ in range(20)]
    del before  # for the program to find
    run(f"""
from std.gpu.host import DeviceContext
from std.memory import stack_allocation
def main() raises:
    var ctx = DeviceContext()
    var host = ctx.enqueue_create_host_buffer[DType.uint8]({size})
    for _ in range(20):
        ctx.enqueue_copy(host, ctx.enqueue_create_buffer[DType.uint8]({size}))
        var local = stack_allocation[{size}, DType.uint8]()
        for i in range(0, {size}, 999):
            if host[i] != 0 or local[i] != 0:
                print("found", host[i], local[i])
""")
    assert capsys.readouterr().out == ""


def test_the_type_of_an_atomic_lends_no_property():
    with pytest.raises(TilewrightError, match="no member 'value'"):
        run("from std.atomic import Atomic\ndef main():\n    print(Atomic[DType.int32].value)\n")


def test_random_numbers_of_a_program_are_its_own(capsys):
    draw = "from std.random import random_ui64, seed\ndef main():\n    print(random_ui64(0, 1 << 60))\n"
    run(draw)
    run(draw.replace("print(", "seed(7)\n    print(1 + "))
    run(draw)
    first, _, last = capsys.readouterr().out.split()
    assert first == last


def test_programs_hold_no_list_that_could_change_under_numpy():
    for expression in ("SIMD[DType.float32, 2](1.0, 2.0).tolist()", "alloc[Int](2).memory.data"):
        with pytest.raises(TilewrightError, match=r"no member '(tolist|data)'"):
            run(f"def main():\n    print({expression})\n")
    source = "from std.collections import Counter\ndef values() -> AnyType:\n    return "
    for expression in (
        "String('ab').codepoints()",
        "String('ab').codepoint_slices()",
        "Counter[Int](1).most_common(1)",
    ):
        found = run(f"{source}({expression}, 0)\n", main=False).values()[0]
        assert not isinstance(found, list), expression
