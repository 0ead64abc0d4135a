# SPDX-License-Identifier: Apache-2.0
"""Threads of a kernel: what they know of themselves, and functions that wait as coroutines."""

from __future__ import annotations

import ast
import builtins
import copy
import linecache
import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextvars import ContextVar
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from itertools import product
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, CoroutineType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, NoReturn, ParamSpec, Protocol, TypeAlias, TypeVar

import tilewright
from tilewright.errors import LayoutError, TransferError
from tilewright.layout import as_integer

Function: TypeAlias = Callable[..., Any]
Arguments = ParamSpec("Arguments")
Definition: TypeAlias = "ast.FunctionDef | ast.Lambda"

# Functions of the library and of this package have no twins.
_HOME = Path(__file__).parents[1]
PACKAGES = (f"{Path(tilewright.__file__).parent}{os.sep}", f"{_HOME}{os.sep}")
MACHINE = f"{_HOME / 'simt' / 'machine.py'}"
_NOT_PLAIN = CO_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR
_RESULT, _TWIN, _AWAITABLE, _CALL = "result·", "twin·", "awaitable·", "call·"  # which no program of Mojo spells


class Suspension:
    """The request of a waiting thread: awaiting it stops the thread, and the machine chooses the value to resume with.

    `kind` is the group that waits together (barrier, warp, block, poll), `value` the thread's contribution, `options`
    the options of the operation, and `name` the name of the called function.

    >>> Suspension("barrier").kind
    'barrier'
    """

    __slots__ = ("kind", "name", "options", "site", "value")

    def __init__(self, kind: str, value: Any = None, options: Any = None, site: int = -1, name: str = "") -> None:
        self.kind, self.value, self.options, self.name = kind, value, options, name or kind
        self.site = site  # the number of the site where the thread waits

    def __await__(self) -> Generator[Suspension, Any, Any]:
        return (yield self)


AWAITABLE = frozenset({CoroutineType, Suspension})


def suspends(function: Callable[Arguments, Any]) -> Callable[Arguments, Any]:
    """Mark a function as one that always waits, so that calls of it are awaited without a look at the result.

    >>> suspends(lambda: Suspension("barrier")).__suspends__
    True
    """
    function.__suspends__ = True  # type: ignore[attr-defined]
    return function


# Syntax trees: of files, and of what other front ends compile.

_registered: dict[str, ast.Module] = {}
_parsed: dict[str, tuple[list[str], ast.Module]] = {}


def register_syntax(filename: str, module: ast.Module) -> None:
    """Remember the syntax tree that was compiled under a file name; a later one of that name replaces it.

    >>> module = ast.parse("def f(x):\\n    return g(x)")
    >>> register_syntax("<example>", module)
    >>> names: dict = {"g": abs}
    >>> exec(compile(module, "<example>", "exec"), names)
    >>> find_definition(names["f"]).name
    'f'
    """
    _registered[filename] = module


def find_definition(function: FunctionType) -> Definition | None:
    """Return the syntax of a function or lambda; None if its source is not available.

    >>> find_definition(find_definition).name
    'find_definition'
    >>> find_definition(eval("lambda: 0")) is None
    True
    """
    code = function.__code__
    module = _registered.get(code.co_filename) or _parse_file(code.co_filename)
    if module is None:
        return None
    matches = [node for node in ast.walk(module) if _first_line(node) == code.co_firstlineno and _matches(node, code)]
    if len(matches) > 1:
        matches = [node for node in matches if _signature(node) == _code_signature(code)]
    return matches[0] if len(matches) == 1 else None  # type: ignore[return-value]


def _parse_file(filename: str) -> ast.Module | None:
    lines = linecache.getlines(filename)
    if not lines:
        return None
    cached = _parsed.get(filename)
    if cached is not None and cached[0] == lines:
        return cached[1]
    try:
        module = ast.parse("".join(lines))
    except SyntaxError:  # a cell with the commands of a notebook, or a file that changed
        return None
    _parsed[filename] = (lines, module)
    return module


def _first_line(node: ast.AST) -> int | None:
    decorators = getattr(node, "decorator_list", ())
    return decorators[0].lineno if decorators else getattr(node, "lineno", None)


def _matches(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name == code.co_name
    return isinstance(node, ast.Lambda) and code.co_name == "<lambda>"


def _signature(node: Any) -> tuple[Any, ...]:
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    body = node.body if isinstance(node, ast.Lambda) else node.body[-1]
    return tuple(names), body.end_lineno


def _code_signature(code: CodeType) -> tuple[Any, ...]:
    last = max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], last


# Twins.

_twin_codes: dict[int, tuple[CodeType, CodeType | None]] = {}  # by the id of a code, which is held here


def coroutine_twin(function: Any) -> Function:
    """Return the function to call instead of `function` inside a kernel: its twin, or itself if it cannot wait.

    >>> def pause():
    ...     return Suspension("pause")
    >>> coroutine_twin(print) is print
    True
    """
    kind = function.__class__
    if kind is FunctionType:
        known: Function | None = function.__dict__.get("__twin__")
        return known if known is not None else _make_twin(function)
    if kind is MethodType:
        inner = coroutine_twin(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if kind is partial:
        inner = coroutine_twin(function.func)
        return function if inner is function.func else partial(inner, *function.args, **function.keywords)
    if isinstance(function, type):
        return function
    choose = getattr(function, "suspending", None)
    if choose is not None:
        return choose()  # type: ignore[no-any-return]
    method = getattr(kind, "__call__", None)  # noqa: B004  (what it is, not whether)
    if method.__class__ is FunctionType and not method.__code__.co_filename.startswith(PACKAGES):
        return MethodType(coroutine_twin(method), function)
    return function  # type: ignore[no-any-return]


def _make_twin(function: FunctionType) -> Function:
    code = function.__code__
    known = _twin_codes.get(id(code))
    if known is None:
        known = _twin_codes[id(code)] = (code, _compile_twin(function))
    twin_code = known[1]
    twin: Function = function
    if twin_code is not None:
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        cells |= {_TWIN: CellType(coroutine_twin), _AWAITABLE: CellType(AWAITABLE), _CALL: CellType(_call)}
        closure = tuple([cells[name] for name in twin_code.co_freevars])
        twin = FunctionType(twin_code, function.__globals__, function.__name__, function.__defaults__, closure)
        twin.__kwdefaults__ = function.__kwdefaults__
        twin.__qualname__ = function.__qualname__
    function.__dict__["__twin__"] = twin
    return twin


async def _call(function: Any, *arguments: Any, **options: Any) -> Any:
    """Call a function and wait for its result, where an expression cannot be written in place."""
    result: Any = coroutine_twin(function)(*arguments, **options)
    waits = result.__class__ in AWAITABLE
    return await result if waits else result


def _compile_twin(function: FunctionType) -> CodeType | None:
    """Return the code of the twin of a function; None if it cannot wait, or its source is not available."""
    code = function.__code__
    if code.co_flags & _NOT_PLAIN or code.co_filename.startswith(PACKAGES):
        return None
    definition = find_definition(function)
    if definition is None:
        return None
    twin = suspend_calls(definition, lambda name: _resolve(function, name))
    if twin is None:
        return None
    names = (*code.co_freevars, _TWIN, _AWAITABLE, _CALL)
    parameters = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    # the factory is never called: it makes variables of enclosing functions free, and the twin's own name a global
    scope: list[ast.stmt] = [] if twin.name in names else [ast.Global([twin.name])]
    factory = ast.FunctionDef("__factory", parameters, [*scope, twin], [], None, lineno=1, col_offset=0)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    return _inner_code(_inner_code(compiled, "__factory"), twin.name)


def _inner_code(code: CodeType, name: str) -> CodeType:
    return next(value for value in code.co_consts if isinstance(value, CodeType) and value.co_name == name)


_UNKNOWN = object()


def _resolve(function: FunctionType, name: str) -> Any:
    """Return the object that a name means inside a function; `_UNKNOWN` for its variables."""
    code = function.__code__
    if name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
        return _UNKNOWN
    return function.__globals__.get(name, getattr(builtins, name, _UNKNOWN))


# The rewriting.


def suspend_calls(definition: Definition, resolve: Callable[[str], Any]) -> ast.AsyncFunctionDef | None:
    """Return the definition of the twin of a function; None if it contains no call that may wait.

    `resolve` returns the object that a name means in the function, or anything without meaning if that is not known.
    Functions and lambdas inside it stay as they are: they have twins of their own.

    >>> tree = ast.parse("def f(x): return g(x) + abs(x)").body[0]
    >>> names = {"abs": abs}
    >>> print(ast.unparse(suspend_calls(tree, names.get)))
    async def f(x):
        return (result· if (result· := twin·(g)(x)).__class__ not in awaitable· else await result·) + abs(x)
    """
    body: list[ast.stmt]
    if isinstance(definition, ast.Lambda):
        body, name = [ast.copy_location(ast.Return(copy.deepcopy(definition.body)), definition.body)], "lambda_twin"
    else:
        body, name = copy.deepcopy(definition.body), definition.name
    rewriting = _SuspendCalls(resolve)
    body = [rewriting.visit(statement) for statement in body]
    if not rewriting.awaits:
        return None
    twin = ast.AsyncFunctionDef(name, _without_expressions(definition.args), body, [], None)
    return ast.copy_location(twin, definition)


def _without_expressions(arguments: ast.arguments) -> ast.arguments:
    """Return parameters without annotations; defaults, of which only the number matters, are those of the function."""

    def plain(argument: ast.arg | None) -> Any:
        return None if argument is None else ast.copy_location(ast.arg(argument.arg), argument)

    return ast.arguments(
        [plain(argument) for argument in arguments.posonlyargs],
        [plain(argument) for argument in arguments.args],
        plain(arguments.vararg),
        [plain(argument) for argument in arguments.kwonlyargs],
        [None for _ in arguments.kwonlyargs],
        plain(arguments.kwarg),
        [],
    )


_Comprehension = TypeVar("_Comprehension", ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _SuspendCalls(ast.NodeTransformer):
    """Make calls wait for their results, as far as they may have to."""

    def __init__(self, resolve: Callable[[str], Any]) -> None:
        self.resolve = resolve
        self.awaits = 0
        self._in_iterable = False  # of a comprehension, where Python allows no assignment
        self._in_comprehension = False

    def visit_Call(self, node: ast.Call) -> ast.expr:
        callee = self._callee(node.func)
        if callee is not _UNKNOWN and _cannot_wait(callee):
            return self.generic_visit(node)  # type: ignore[return-value]
        self.generic_visit(node)
        self.awaits += 1
        if getattr(callee, "__suspends__", False):
            return ast.copy_location(ast.Await(node), node)
        if self._in_iterable:
            node.args.insert(0, node.func)
            node.func = ast.copy_location(ast.Name(_CALL, ast.Load()), node)
            return ast.copy_location(ast.Await(node), node)
        return _await_if_awaitable(node)

    def _callee(self, node: ast.expr) -> Any:
        """Return the object that is called, if it is a name or a member of a module."""
        if isinstance(node, ast.Name):
            value = self.resolve(node.id)
            return _UNKNOWN if value is None else value
        if isinstance(node, ast.Attribute):
            owner = self._callee(node.value)
            return getattr(owner, node.attr, _UNKNOWN) if isinstance(owner, ModuleType) else _UNKNOWN
        return _UNKNOWN

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        outer, self._in_iterable = self._in_iterable, True
        node.iter = self.visit(node.iter)
        self._in_iterable = outer
        node.ifs = [self.visit(condition) for condition in node.ifs]
        return node

    def _visit_comprehension_as_whole(self, node: _Comprehension) -> _Comprehension:
        if self._in_comprehension and sys.version_info < (3, 11):
            return node  # there a comprehension within another one cannot wait
        outer, self._in_comprehension = self._in_comprehension, True
        self.generic_visit(node)
        self._in_comprehension = outer
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = _visit_comprehension_as_whole  # noqa: N815

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        before = self.awaits
        self._visit_comprehension_as_whole(node)
        if self.awaits == before:
            return node
        # one that waits would be an asynchronous generator, which `sum` and the like do not take
        values = ast.copy_location(ast.ListComp(node.elt, node.generators), node)
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name("iter", ast.Load()), node), [values], []), node)

    def _leave(self, node: Any) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _leave  # noqa: N815


def _await_if_awaitable(node: ast.Call) -> ast.expr:
    def at(new: Any) -> Any:
        return ast.copy_location(new, node)

    node.func = at(ast.Call(at(ast.Name(_TWIN, ast.Load())), [node.func], []))
    result = at(ast.NamedExpr(at(ast.Name(_RESULT, ast.Store())), node))
    kind = at(ast.Attribute(result, "__class__", ast.Load()))
    test = at(ast.Compare(kind, [ast.NotIn()], [at(ast.Name(_AWAITABLE, ast.Load()))]))
    value = at(ast.Name(_RESULT, ast.Load()))
    return at(ast.IfExp(test, value, at(ast.Await(at(ast.Name(_RESULT, ast.Load()))))))  # type: ignore[no-any-return]


def _cannot_wait(callee: Any) -> bool:
    """Return whether a known callable is one of Python or of the library that never waits."""
    if isinstance(callee, (type, BuiltinFunctionType)):
        return True
    if isinstance(callee, FunctionType) and not getattr(callee, "__suspends__", False):
        return callee.__code__.co_filename.startswith(PACKAGES) and not callee.__code__.co_flags & CO_COROUTINE
    return False


class Dim(NamedTuple):
    """Up to three numbers of blocks, threads or coordinates, `x`, `y` and `z`: `x` varies fastest.

    >>> Dim(4).z
    1
    """

    x: int
    y: int = 1
    z: int = 1

    def __str__(self) -> str:
        return f"({self.x},{self.y},{self.z})"


def as_dim(value: Any, name: str) -> Dim:
    """Return one to three positive numbers as a `Dim`; `name` is for the error.

    >>> as_dim((4, 2), "block")
    Dim(x=4, y=2, z=1)
    """
    extents = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    numbers = [as_integer(extent, name) for extent in extents]
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1:
        raise LayoutError(f"{name} takes one to three numbers of at least 1, got {value!r}")
    return Dim(*numbers)


def positions(extents: Dim) -> Iterator[Dim]:
    """Yield all coordinates within extents, `x` fastest.

    >>> [tuple(position) for position in positions(Dim(2, 2))]
    [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]
    """
    for z, y, x in product(range(extents.z), range(extents.y), range(extents.x)):
        yield Dim(x, y, z)


class KernelThread:
    """A thread of a block: its coordinates, its coroutine while it runs, and how often it was synchronised.

    >>> KernelThread(35, Dim(3, 1, 0), warp=32).lane
    3
    """

    __slots__ = (
        "copies",
        "coroutine",
        "done",
        "epoch",
        "index",
        "lane",
        "left_at",
        "pending",
        "position",
        "request",
        "resume",
        "warp",
        "warp_epoch",
    )

    def __init__(self, index: int, position: Dim, warp: int) -> None:
        self.index, self.position = index, position
        self.warp, self.lane = divmod(index, warp)
        self.reset()

    def reset(self) -> None:
        """Prepare the thread for another block.

        >>> thread = KernelThread(0, Dim(0, 0, 0), 32)
        >>> thread.epoch = 4
        >>> thread.reset()
        >>> thread.epoch
        0
        """
        self.coroutine: Any = None
        self.done = False
        self.epoch = self.warp_epoch = 0  # barriers of the block, and of the warp, that it has passed
        self.request: Suspension | None = None  # the request it waits for
        self.pending: Suspension | None = None  # the request that it has not awaited yet
        self.copies: list[list[tuple[Any, Any]]] = [[]]  # groups of asynchronous copies, as (store, offsets)
        self.resume: Any = None  # the value that it resumes with
        self.left_at: int | None = None  # the site of its last synchronisation, if it has returned


class RunningMachine(Protocol):
    """The machine that runs a kernel, as the functions of the kernel see it.

    >>> RunningMachine.__name__
    'RunningMachine'
    """

    thread: KernelThread
    threads: list[KernelThread]
    warp: int
    block_index: Dim
    block_dim: Dim
    grid_dim: Dim
    block_state: dict[Any, Any]
    cluster_rank: int
    is_at_cluster_barrier: bool
    plan: Any  # these are of modules that import this one
    log: Any
    memory: Any

    def suspend(self, kind: str, name: str, value: Any, options: Any) -> Suspension:
        """Return what the running thread waits for."""
        ...

    def witness(self, action: str, site: int, thread: KernelThread) -> Any:
        """Return a thread at a site, for a report."""
        ...

    def add_defect(self, defect: Any) -> None:
        """Add a defect to the report."""
        ...

    def stop_block(self, defect: Any) -> NoReturn:
        """Add a defect that stops the block."""
        ...


_machine: ContextVar[RunningMachine | None] = ContextVar("machine", default=None)


def current_machine(name: str) -> RunningMachine:
    """Return the machine whose kernel runs; raise if none does. `name` is what only a kernel can ask for.

    >>> try:
    ...     current_machine("barrier()")
    ... except TransferError as problem:
    ...     print(problem)
    barrier() is known only inside a kernel; run it with tilewright.simt.launch(kernel, ..., grid=4, block=64)
    """
    machine = _machine.get()
    if machine is None:
        raise TransferError(
            f"{name} is known only inside a kernel; run it with tilewright.simt.launch(kernel, ..., grid=4, block=64)"
        )
    return machine


def is_inside_kernel() -> bool:
    """Return whether a kernel is running.

    >>> is_inside_kernel()
    False
    """
    return _machine.get() is not None


class ThreadValue:
    """A value of the thread that runs, such as `thread_idx.x`.

    >>> thread_idx
    thread_idx
    """

    __slots__ = ("_name", "_read")

    def __init__(self, name: str, read: Callable[[RunningMachine], Dim]) -> None:
        self._name, self._read = name, read

    def _value(self) -> Dim:
        machine = _machine.get()
        return self._read(current_machine(self._name) if machine is None else machine)

    @property
    def x(self) -> int:
        """The coordinate that varies fastest."""
        return self._value().x

    @property
    def y(self) -> int:
        """The second coordinate."""
        return self._value().y

    @property
    def z(self) -> int:
        """The third coordinate."""
        return self._value().z

    def __iter__(self) -> Iterator[int]:
        return iter(self._value())

    def __repr__(self) -> str:
        return self._name


def _global_index(machine: RunningMachine) -> Dim:
    block, size, thread = machine.block_index, machine.block_dim, machine.thread.position
    return Dim(block.x * size.x + thread.x, block.y * size.y + thread.y, block.z * size.z + thread.z)


thread_idx = ThreadValue("thread_idx", lambda machine: machine.thread.position)
block_idx = ThreadValue("block_idx", lambda machine: machine.block_index)
block_dim = ThreadValue("block_dim", lambda machine: machine.block_dim)
grid_dim = ThreadValue("grid_dim", lambda machine: machine.grid_dim)
global_idx = ThreadValue("global_idx", _global_index)


def lane_id() -> int:
    """Return the number of the thread within its warp.

    >>> from tilewright_mojo.simt import launch
    >>> launch(lambda: print(lane_id(), end=" "), grid=1, block=3).errors
    0 1 2 ()
    """
    return current_machine("lane_id()").thread.lane


def warp_id() -> int:
    """Return the number of the warp within its block.

    >>> from tilewright_mojo.simt import launch
    >>> launch(lambda: print(warp_id(), end=" "), grid=1, block=(2, 2), warp=2).errors
    0 0 1 1 ()
    """
    return current_machine("warp_id()").thread.warp
