# SPDX-License-Identifier: Apache-2.0
"""Rules: an ordered list of patterns with settings, where the last match wins; and the targets that they choose."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from .. import memory as placements
from .._files import as_path
from .._integers import ceil_div, round_up
from .._json import parse_toml
from .._text import NUMBER_IN_NAME, count_of, suggest
from ..copying import Assembly, join
from ..errors import FileFormatError, FormatError, LayoutError, MemoryConfigError, TilewrightError
from ..files import StoredTensor, dtype_code
from ..formats import Format, FormatLike, ScalarFormat, format_of, scalar_format_of
from ..memory import Chip, Mesh, PageLayout, TensorSpec, Tile, validate_placement
from .source import AssembledSource, stored_assembly

# Expressions over tensors and numbers, as recipes and rules write them: a small, safe part of Python.

_MAX_LENGTH = 1 << 16  # characters of an expression
_MAX_ITEMS = 1 << 20  # of a range


class ExpressionError(FormatError):
    """An expression that cannot be read or evaluated; the message quotes the innermost one.

    >>> try:
    ...     evaluate("1 // 0", {})
    ... except ExpressionError as problem:
    ...     print(problem)
    1 // 0: integer division or modulo by zero
    """


def _as_list(tensors: tuple[Any, ...]) -> Sequence[Assembly]:
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def _join(*tensors: Any, axis: int = 0) -> Assembly:
    return join(_as_list(tensors), axis)


def _stack(*tensors: Any) -> Assembly:
    return join([tensor.reshape(1, *tensor.shape) for tensor in _as_list(tensors)])


def rows_in_pairs(tensor: Assembly, heads: int = 1) -> Assembly:
    """Return the rows of every head in pairs, one of each half: from rotated halves to interleaved pairs.

    >>> rows_in_pairs(Assembly.of("w", (4,))).parts[0].modes
    (((2, 1), (2, 2)),)
    """
    rows, rest = tensor.shape[0], tensor.shape[1:]
    half = rows // heads // 2
    axes = range(3, 3 + len(rest))
    return tensor.reshape(heads, 2, half, *rest).transpose((0, 2, 1, *axes)).reshape(rows, *rest)


def match_start(pattern: str, text: str) -> str | None:
    """Return the first group of a regular expression that matches the start of a text, or None.

    >>> match_start("(.*)-8B", "Llama-3.1-8B-Instruct")
    'Llama-3.1'
    """
    match = re.match(pattern, text)
    return None if match is None else match[1]


def _range(*bounds: int) -> range:
    result = range(*bounds)
    if len(result) > _MAX_ITEMS:
        raise FormatError(f"range of {len(result)} items is longer than {_MAX_ITEMS}")
    return result


def _multiply(a: object, b: object) -> Any:
    if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):  # no text of any length
        raise FormatError(f"expected two numbers to multiply, got {a!r} and {b!r}")
    return a * b


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "join": _join,
    "stack": _stack,
    "transpose": Assembly.transpose,
    "reshape": Assembly.reshape,
    "slice": Assembly.slice,
    "chunk": Assembly.chunk,
    "pad": Assembly.pad,
    "repeat": Assembly.repeat,
    "pairs": rows_in_pairs,
    "shape": lambda tensor: tensor.shape,
    "range": _range,
    "integer": int,
    "len": len,
    "min": min,
    "max": max,
    "any": any,
    "all": all,
    "lower": str.lower,
    "starts": str.startswith,
    "match": match_start,
    "ceil_div": ceil_div,
    "round_up": round_up,
}
"""The functions of expressions; rules add `tensor(name)`, and recipes what `RecipeRun` defines."""

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, group: value in group,
    ast.NotIn: lambda value, group: value not in group,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression.

    Args:
        text: the expression, such as "transpose(tensor('w'))".
        names: the variables and further functions that it may use.

    >>> evaluate("round_up(vocabulary, 32 * devices)", {"vocabulary": 2003, "devices": 2})
    2048
    >>> evaluate("transpose(w)", {"w": Assembly.of("w", (4, 6))}).shape
    (6, 4)
    """
    tree = _parse(text)
    try:
        return _Evaluator({**FUNCTIONS, **names}).evaluate(tree)
    except ExpressionError:
        raise
    except TilewrightError as problem:
        raise ExpressionError(f"{text}: {problem}") from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as problem:
        raise ExpressionError(f"{text}: {problem}") from None


def validate(text: str, names: Collection[str]) -> None:
    """Raise unless an expression can be read and uses only known names.

    Args:
        text: the expression.
        names: the variables and further functions that it may use.

    >>> try:
    ...     validate("round_up(vocabulry, 32)", ["vocabulary"])
    ... except ExpressionError as problem:
    ...     print(problem)
    round_up(vocabulry, 32): unknown name 'vocabulry'; did you mean 'vocabulary'?
    """
    tree = _parse(text)
    bound = {child.id for child in ast.walk(tree) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)}
    allowed = {*FUNCTIONS, *names, *bound}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in allowed:
            raise ExpressionError(f"{text}: {_describe_unknown(node.id, allowed)}")


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    """Return the tree of an expression, whose nodes and operators are all allowed."""
    if len(text) > _MAX_LENGTH:
        raise ExpressionError(f"an expression of {len(text)} characters is longer than {_MAX_LENGTH}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        reason = f"{problem.msg} at column {problem.offset}" if isinstance(problem, SyntaxError) else str(problem)
        raise ExpressionError(f"cannot read the expression {text!r}: {reason}") from None
    for node in ast.walk(tree):
        is_known = hasattr(_Evaluator, f"_{type(node).__name__.lower()}")
        if isinstance(node, ast.expr) and not is_known and not isinstance(node, (ast.FormattedValue, ast.Starred)):
            raise ExpressionError(f"{text}: {type(node).__name__} is not allowed in an expression")
        if isinstance(node, ast.operator | ast.unaryop | ast.cmpop) and type(node) not in _OPERATORS:
            raise ExpressionError(f"{text}: the operator {type(node).__name__} is not allowed in an expression")
    return tree


def _describe_unknown(name: str, names: Collection[str]) -> str:
    return f"unknown name {name!r}; {suggest(name, sorted(names))}"


class _Evaluator:
    """Evaluates the nodes of an expression with some names."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = dict(names)

    def evaluate(self, node: ast.AST) -> Any:
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            raise FormatError(_describe_unknown(node.id, self.names))
        return self.names[node.id]

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._list(node))

    def _list(self, node: ast.List | ast.Tuple) -> list[Any]:
        return [value for element in node.elts for value in self._arguments(element)]

    def _dict(self, node: ast.Dict) -> Any:
        return {
            self.evaluate(key): self.evaluate(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }

    def _binop(self, node: ast.BinOp) -> Any:
        return _OPERATORS[type(node.op)](self.evaluate(node.left), self.evaluate(node.right))

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        return _OPERATORS[type(node.op)](self.evaluate(node.operand))

    def _boolop(self, node: ast.BoolOp) -> Any:
        is_or = isinstance(node.op, ast.Or)
        value: Any = None
        for operand in node.values:
            value = self.evaluate(operand)
            if bool(value) == is_or:
                return value
        return value

    def _compare(self, node: ast.Compare) -> bool:
        left = self.evaluate(node.left)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(comparator)
            if not _OPERATORS[type(op)](left, right):
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp) -> Any:
        return self.evaluate(node.body if self.evaluate(node.test) else node.orelse)

    def _subscript(self, node: ast.Subscript) -> Any:
        value, index = self.evaluate(node.value), self.evaluate(node.slice)
        return value[index]

    def _slice(self, node: ast.Slice) -> slice:
        return slice(*[None if end is None else self.evaluate(end) for end in (node.lower, node.upper, node.step)])

    def _joinedstr(self, node: ast.JoinedStr) -> str:
        parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        return "".join([str(self.evaluate(part)) for part in parts])

    def _call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name):
            raise FormatError("only functions can be called in an expression, by their name")
        arguments = [value for argument in node.args for value in self._arguments(argument)]
        keywords = {keyword.arg: self.evaluate(keyword.value) for keyword in node.keywords if keyword.arg is not None}
        if len(keywords) < len(node.keywords):
            raise FormatError("** is not allowed in an expression")
        return self._name(node.func)(*arguments, **keywords)

    def _arguments(self, node: ast.AST) -> Sequence[Any]:
        return tuple(self.evaluate(node.value)) if isinstance(node, ast.Starred) else (self.evaluate(node),)

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        return list(self._items(node.elt, node.generators))

    _generatorexp = _listcomp

    def _items(self, item: ast.AST, generators: list[ast.comprehension]) -> Iterator[Any]:
        if not generators:
            yield self.evaluate(item)
            return
        first, *others = generators
        for value in self.evaluate(first.iter):
            inner = _Evaluator({**self.names, **_bind(first.target, value)})
            if all(inner.evaluate(test) for test in first.ifs):
                yield from inner._items(item, others)


def _bind(target: ast.AST, value: Any) -> dict[str, Any]:
    """Return the names that a comprehension gives to a value."""
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple):
        return {
            name: item
            for name_node, part in zip(target.elts, value, strict=True)
            for name, item in _bind(name_node, part).items()
        }
    raise FormatError(f"{type(target).__name__} cannot be the variable of a comprehension")


_MAX_BYTES = 1 << 20
SHARD_KINDS = ("height", "width", "block", "nd", "dims")
_TYPES: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("transpose_tile", "skip", "like_ttnn"), (bool, "true or false")),
    **dict.fromkeys(("rename", "value"), (str, "a text")),
    "each": (Mapping, "names with lists of values"),
}
_FOREIGN_KEYS = {  # keys of other libraries, where the closest match would be wrong
    "memory_layout": "shard",
    "memory_config": "shard",
    "strategy": "shard",
    "buffer_type": "buffer",
    "core_grid": "grid",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a tensor is converted; None means not set.

    `dtype`, `layout`, `tile`, `transpose_tile` and `pad_value` describe the pages. `transpose` swaps the last two
    dimensions (true), or permutes all of them (a list). `shard` is "height", "width", "block", "nd" or "dims", over the
    cores of `grid`; `buffer` is "dram" or "l1"; `memory` is a memory config, in Python. `skip` leaves the tensor
    out, and `rename` gives it another name, in which {1} is the match of the first `*` of the pattern.

    `value` is an expression for the tensor, over `this` and `tensor(name)`; a line that matches no tensor makes a new
    one of that name with it, or several: `each` are lists of values for names in braces. `mesh` is the shape of a mesh
    of devices, and `cut` the dimension that each of its axes cuts, or one that all devices cut. `through` are formats
    that values are rounded to on the way; `like_ttnn` rounds where ttnn does: to bfloat16 before packing blocks for
    sharded memory.

    >>> Settings(dtype="bfloat8_b", tile=(16, 32)).with_defaults(Settings(dtype="float32", skip=True))
    Settings(dtype='bfloat8_b', tile=(16, 32), skip=True)
    """

    dtype: Any = None
    layout: Any = None
    tile: Any = None
    transpose_tile: bool | None = None
    transpose: Any = None
    pad_value: Any = None
    shard: str | None = None
    grid: Any = None
    shard_shape: Any = None
    shard_dims: Any = None
    orientation: Any = None
    distribution: Any = None
    buffer: Any = None
    memory: Any = None
    chip: Any = None
    skip: bool | None = None
    rename: str | None = None
    value: str | None = None
    each: Any = None
    mesh: Any = None
    cut: Any = None
    through: Any = None
    like_ttnn: bool | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any], where: str) -> Settings:
        """Return validated settings from `values`; raise for an unknown or invalid one, with `where` in the message.

        >>> try:
        ...     Settings.of({"dtyp": "bfloat16"}, "rule '*'")
        ... except FormatError as problem:
        ...     print(problem)
        unknown key 'dtyp' in rule '*'; did you mean 'dtype'?
        """
        keys = [field.name for field in fields(cls)]
        for key in values:
            if key not in keys:
                hint = f"did you mean {_FOREIGN_KEYS[key]!r}?" if key in _FOREIGN_KEYS else suggest(key, keys)
                raise FormatError(f"unknown key {key!r} in {where}; {hint}")
        result = cls(**values)
        try:
            result._validate()
        except (ValueError, TypeError) as problem:  # including our own errors
            raise FormatError(f"{where}: {problem}") from None
        return result

    def _validate(self) -> None:
        if self.dtype is not None:
            format_of(self.dtype)
        if self.layout is not None:
            PageLayout.of(self.layout)
        if self.tile is not None:
            Tile.of(tuple(self.tile) if isinstance(self.tile, list) else self.tile).require_on_chips()
        if self.chip is not None:
            Chip.of(self.chip)
        for name, (class_, expected) in _TYPES.items():
            if not isinstance(getattr(self, name), (class_, type(None))):
                raise FormatError(f"expected {expected} as {name}, got {getattr(self, name)!r}")
        if self.shard is not None and self.shard not in SHARD_KINDS:
            raise FormatError(f"expected one of {', '.join(SHARD_KINDS)} as shard, got {self.shard!r}")
        order = self.transpose if isinstance(self.transpose, (list, tuple)) else ()
        if not isinstance(self.transpose, (bool, list, tuple, type(None))) or any(type(n) is not int for n in order):
            raise FormatError(f"expected true, false or an order such as [1, 0] as transpose, got {self.transpose!r}")
        if self.each and self.value is None:
            raise FormatError(f"each = {self.each!r} needs a value, such as value = \"tensor(f'layers.{{k}}.w')\"")
        for stage in self.through or ():
            format_of(stage)
        if isinstance(self.pad_value, bool) or not isinstance(self.pad_value, (int, float, type(None))):
            raise FormatError(f"expected a number as pad_value, got {self.pad_value!r}")

    def with_defaults(self, others: Settings) -> Settings:
        """Return these settings, with `others` where they are not set.

        >>> Settings(layout="tile").with_defaults(Settings(layout="row_major", dtype="int32")).layout
        'tile'
        """
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return Settings(**{k: getattr(others, k) if value is None else value for k, value in own.items()})

    def __repr__(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return f"Settings({', '.join(f'{k}={value!r}' for k, value in values.items() if value is not None)})"


RuleLines: TypeAlias = "Rules | str | Path | Mapping[str, Mapping[str, Any]] | Iterable[tuple[str, Mapping[str, Any]]]"


@dataclass(frozen=True, slots=True)
class Rules:
    """Patterns with settings, in order, on top of the settings for all tensors.

    `name` is the name of a set that comes with tilewright. Its patterns are for many models, so patterns that match no
    tensor are reported only if the set makes no tensor at all.

    Patterns are shell patterns: `*`, `?` and `[...]` match any text (dots included), one character, and one of
    several. A dtype for all tensors applies to floating-point tensors only, and so does a float format in a line with
    such a pattern; integers and bools keep theirs unless a line has their exact name, or an integer format.

    >>> rules = Rules.of({"*norm*": {"dtype": "bfloat16"}, "*.bias": {"skip": True}}, dtype="bfloat8_b")
    >>> rules.settings("encoder.norm.bias")
    Settings(dtype='bfloat16', skip=True)
    """

    lines: tuple[tuple[str, Settings], ...] = ()
    for_all: Settings = Settings()
    name: str = ""

    @classmethod
    def of(cls, lines: RuleLines | None = None, **for_all: Any) -> Rules:
        """Return rules from `lines`, a set's name, a TOML file or patterns, and from settings `for_all` tensors.

        >>> Rules.of([("*", {"layout": "tile"})]).lines
        (('*', Settings(layout='tile')),)
        """
        if isinstance(lines, Rules):
            own = Settings.of(for_all, "the settings for all tensors").with_defaults(lines.for_all)
            return replace(lines, for_all=own)
        name = str(lines) if isinstance(lines, (str, Path)) and str(lines) in rule_sets() else ""
        if isinstance(lines, (str, Path)):
            parsed = _read_set(name)[1] if name else _read_toml(lines)
        else:
            parsed = list(lines.items() if isinstance(lines, Mapping) else lines or ())
        pairs = tuple([(pattern, Settings.of(settings, f"rule {pattern!r}")) for pattern, settings in parsed])
        return cls(pairs, Settings.of(for_all, "the settings for all tensors"), name)

    def settings(self, name: str, source: Format | None = None) -> Settings:
        """Return the settings of the patterns that match `name`, without those for all tensors.

        If `source` is a format of integers or bool, float formats of lines with wildcards are left out.

        >>> rules = Rules.of({"*": {"dtype": "float32"}, "a*": {"dtype": "bfloat16"}})
        >>> rules.settings("abc").dtype, rules.settings("abc", format_of("int64")).dtype
        ('bfloat16', None)
        """
        result = Settings()
        for pattern, settings in self.lines:
            if fnmatchcase(name, pattern):
                is_left = pattern != name and source is not None and _is_float(settings.dtype) and not _is_float(source)
                result = (replace(settings, dtype=None) if is_left else settings).with_defaults(result)
        return result

    def note_unused_lines(self, names: Iterable[str]) -> Iterator[str]:
        """Yield a note for each line that matches some of these names but has a setting that never counts.

        >>> list(Rules.of({"a*": {"dtype": "int8"}, "*": {"dtype": "int32"}}).note_unused_lines(["a", "b"]))
        ["the rule 'a*' has no effect: later ones replace what it sets"]
        """
        keys = [field.name for field in fields(Settings)]
        keys_of_line = [[key for key in keys if getattr(settings, key) is not None] for _, settings in self.lines]
        matched: set[int] = set()
        counting: set[int] = set()
        for name in names:
            own = [k for k, (pattern, _) in enumerate(self.lines) if fnmatchcase(name, pattern)]
            matched.update(own)
            counting.update({key: k for k in own for key in keys_of_line[k]}.values())
        for k, (pattern, settings) in enumerate(self.lines):
            others = [key for key in keys_of_line[k] if key != "skip"]
            if keys_of_line[k] and k in matched - counting:
                yield f"the rule {pattern!r} has no effect: later ones replace what it sets"
            elif settings.skip and others:
                yield f"the rule {pattern!r} skips tensors: {', '.join(others)} has no effect"

    def unmatched_patterns(self, names: Iterable[str]) -> list[str]:
        """Return the patterns that match none of these names.

        >>> Rules.of({"a*": {}, "*.wieght": {}}).unmatched_patterns(["a.weight", "b.weight"])
        ['*.wieght']
        """
        listed = list(names)
        unmatched = [
            pattern
            for pattern, settings in self.lines
            if (settings.value is None or settings.each)  # others make one tensor
            and not any(fnmatchcase(name, _PLACEHOLDER.sub("*", pattern)) for name in listed)
        ]
        computed = {pattern for pattern, settings in self.lines if settings.value is not None}
        return unmatched if not self.name or computed <= set(unmatched) else []


_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_SETS = "rule_sets"  # the folder of TOML files


@lru_cache
def rule_sets() -> Mapping[str, tuple[str, ...]]:
    """Return the names of the sets of rules that come with tilewright, and the types of models that each is for.

    >>> rule_sets()["gpt_oss"]
    ('gpt_oss',)
    """
    folder = files("tilewright.conversion") / _SETS
    names = sorted([file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")])
    return {name: _read_set(name)[0] for name in names}


@lru_cache
def _read_set(name: str) -> tuple[tuple[str, ...], list[tuple[str, Any]]]:
    """Return the types of models that a set of rules is for, and its lines."""
    table = parse_toml((files("tilewright.conversion") / _SETS / f"{name}.toml").read_bytes(), name)
    return tuple(table.pop("model_types")), list(table.items())


def _read_toml(path: str | Path) -> list[tuple[str, Any]]:
    path = as_path(path)
    if not path.suffix and not path.exists():
        raise FormatError(
            f"unknown rules {str(path)!r}; give the path of a TOML file, or the name of a set:"
            f" {suggest(path, rule_sets())}"
        )
    size = path.stat().st_size
    if size > _MAX_BYTES:
        raise FileFormatError(f"{path} has {size} bytes, more than {_MAX_BYTES} for rules")
    result = parse_toml(path.read_bytes(), str(path))
    for pattern, settings in result.items():
        if not isinstance(settings, dict):
            raise FileFormatError(
                f'{path}: expected settings for the pattern {pattern!r}, got {settings!r}; write "*norm*" = {{dtype = '
                f'"bfloat16"}}'
            )
    return list(result.items())


def _is_float(dtype: FormatLike | None) -> bool:
    if dtype is None:
        return False
    element = format_of(dtype)
    return element.has_blocks or element.kind == "float"


OUTPUT_TYPES = ("tensorbin", "safetensors", "banks", "npy")

# Replacements for formats that tensorbin files cannot store: the next format that holds all values, where there is
# one; values of 64-bit integers are checked during conversion.
_NEAREST_FORMAT = {
    "float64": "float32",
    "float16": "float32",
    "float8_e4m3": "bfloat16",
    "float8_e5m2": "bfloat16",
    "int16": "int32",
    "int64": "int32",
    "uint64": "uint32",
    "bool": "uint8",
}


_UNTILED_FORMATS = ("float8_e4m3",)
_WIDER_THAN_BFLOAT16 = ("float64", "float32", "float16")


@dataclass(frozen=True, slots=True)
class ConversionTarget:
    """The target of one tensor: its spec, padding value, the mesh that shares it, and a note for the user.

    `spec` describes each device's part if there is a `mesh`. How the values come from the source is for the manifest:
    `order` permutes the dimensions of one source, as `numpy.transpose` does (None leaves them as they are), and `value`
    is an expression over several sources.

    >>> ConversionTarget(TensorSpec((3, 2), "bfloat8_b"), order=(1, 0)).order
    (1, 0)
    """

    spec: TensorSpec
    pad_value: float = 0
    note: str | None = None
    order: tuple[int, ...] | None = None
    value: str | None = None
    mesh: Mesh | None = None


@dataclass(frozen=True)
class OutputTensor:
    """A tensor to write: its name, its sources, and its own settings.

    `asked` is the float format that a pattern with wildcards has for it if it holds integers, which keep their own.

    >>> [field for field in OutputTensor.__dataclass_fields__]
    ['name', 'source', 'own', 'asked']
    """

    name: str
    source: AssembledSource
    own: Settings
    asked: Any = None


def list_outputs(tensors: Mapping[str, StoredTensor], rules: Rules) -> Iterator[OutputTensor]:
    """Yield the tensors that the rules make of `tensors`: the tensors themselves, and new ones of lines with a `value`.

    Tensors that new ones are made from are left out, unless a line has `skip = false`.

    >>> import tempfile, numpy
    >>> from tilewright import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(f"{folder}/m.npz", q=numpy.zeros((4, 6)), k=numpy.zeros((2, 6)), v=numpy.zeros((2, 6)))
    ...     tensors = open_tensors(f"{folder}/m.npz")
    ...     rules = Rules.of({"qkv": {"value": "transpose(join(tensor('q'), tensor('k'), tensor('v')))"}})
    ...     [(output.name, output.source.value.shape) for output in list_outputs(tensors, rules)]
    [('qkv', (6, 8))]
    """
    functions = _functions_of(tensors)
    added = [
        output
        for pattern, settings in rules.lines
        for output in _new_outputs(pattern, settings, tensors, rules, functions)
    ]
    used = {name for output in added for name in output.source.tensors}
    for tensor in tensors.values():
        own = rules.settings(tensor.name, tensor.format)
        if tensor.name in used and own.skip is not False:
            continue
        source = AssembledSource.of(tensor)
        if own.value is not None:
            source = _evaluate_value(own.value, tensors, {**functions, "this": source.value})
        float_dtype = None if own.dtype is not None else rules.settings(tensor.name).dtype
        yield OutputTensor(_rename(tensor.name, rules), source, own, float_dtype)
    yield from added


def _new_outputs(
    pattern: str, settings: Settings, tensors: Mapping[str, StoredTensor], rules: Rules, functions: Mapping[str, Any]
) -> Iterator[OutputTensor]:
    """Yield the tensors that a line with a value makes, if it matches none that exists."""
    if settings.value is None or any(fnmatchcase(name, pattern) for name in tensors):
        return
    each = dict(settings.each or {})
    if not all(each.values()):
        raise FormatError(f"rule {pattern!r} makes no tensor: each = {each} has an empty list")
    for bound in _bindings(list(each.items()), dict(functions)):
        name = evaluate(f'f"""{pattern}"""', bound)
        source = _evaluate_value(settings.value, tensors, bound)
        own = settings.with_defaults(rules.settings(name, source.format))
        yield OutputTensor(name, source, own, None if own.dtype is not None else rules.settings(name).dtype)


def _bindings(loops: list[tuple[str, Any]], names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield `names` with the values that loops go through, of which later ones may use the names of earlier ones."""
    if not loops:
        yield names
        return
    (name, values), *others = loops
    for value in evaluate(values, names) if isinstance(values, str) else values:
        yield from _bindings(others, {**names, name: value})


def _functions_of(tensors: Mapping[str, StoredTensor]) -> dict[str, Callable[..., Any]]:
    """Return the functions of expressions over some tensors."""
    numbers_of: dict[str, set[int]] = {}

    def tensor(name: str) -> Assembly:
        if name not in tensors:
            otherwise = f"it has {count_of(len(tensors), 'other')}"
            raise FormatError(f"the source has no tensor {name!r}; {suggest(name, tensors, otherwise)}")
        return stored_assembly(tensors[name])

    def numbers(pattern: str) -> list[int]:
        if not numbers_of:
            for name in tensors:
                for match in NUMBER_IN_NAME.finditer(name):
                    numbers_of.setdefault(f"{name[: match.start()]}*{name[match.end() :]}", set()).add(int(match[0]))
        return sorted(numbers_of.get(pattern, ()))

    return {"tensor": tensor, "has_tensor": tensors.__contains__, "numbers": numbers}


def _evaluate_value(text: str, tensors: Mapping[str, StoredTensor], names: Mapping[str, Any]) -> AssembledSource:
    """Return the value of an expression over tensors."""
    value = evaluate(text, names)
    if not isinstance(value, Assembly):
        raise FormatError(f"{text} is not a tensor but {value!r}")
    return AssembledSource(value, {name: tensors[name] for name in value.sources})


def _rename(name: str, rules: Rules) -> str:
    """Return the name of a tensor after the last rule that renames it."""
    for pattern, settings in reversed(rules.lines):
        if settings.rename is not None and fnmatchcase(name, pattern):
            groups = re.fullmatch("(.*)".join([re.escape(piece) for piece in pattern.split("*")]), name, re.DOTALL)
            matched = groups.groups() if groups is not None else ()
            return _fill_in(settings.rename, matched)
    return name


def _fill_in(text: str, matched: tuple[str, ...]) -> str:
    """Return a text with the matches of a pattern's stars in place of {1}, {2} and so on."""

    def part(match: re.Match[str]) -> str:
        number = int(match[1])
        if not 1 <= number <= len(matched):
            raise FormatError(f"rename = {text!r} uses {{{number}}}, but its pattern has {len(matched)} *")
        return matched[number - 1]

    return re.sub(r"\{([0-9]+)\}", part, text)


def choose_target(output: OutputTensor, for_all: Settings, to: str) -> ConversionTarget | None:
    """Return the target of a tensor, for files of kind `to`; None if it is skipped.

    `for_all` are the settings for all tensors.

    >>> import tempfile, numpy
    >>> from tilewright import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((2, 3)))
    ...     rules = Rules.of({"x": {"transpose": True}}, dtype="bfloat8_b")
    ...     (output,) = list_outputs(open_tensors(folder), rules)
    ...     target = choose_target(output, rules.for_all, "tensorbin")
    >>> target.spec, target.order
    (TensorSpec((3, 2), 'bfloat8_b', 'tile'), (1, 0))
    """
    own, source = output.own, output.source
    both = own.with_defaults(for_all)
    if both.skip:
        return None
    element = source.format
    if element is None:
        reasons = [tensor.problem for tensor in source.tensors.values() if tensor.problem is not None]
        raise FormatError(f"{reasons[0]}; leave the tensor out with skip = true")
    float_dtype = output.asked if output.asked is not None else for_all.dtype
    dtype, note = _choose_format(element, own, float_dtype, to)
    order = dimension_order(len(source.value.shape), both.transpose)
    mesh = _choose_mesh(both, tuple([source.value.shape[d] for d in order]), to)
    shape = tuple([source.value.shape[d] for d in order]) if mesh is None else mesh.part_shape
    usual = "row_major" if to == "npy" or dtype.name in _UNTILED_FORMATS else "tile"
    layout = PageLayout.of(usual if both.layout is None or to == "npy" else both.layout)
    tile = None  # tile settings do not apply to row-major tensors
    if layout is PageLayout.TILE:
        tile = both.tile if isinstance(both.tile, Tile) else Tile(both.tile or (32, 32), bool(both.transpose_tile))
    chip = None if both.chip is None else Chip.of(both.chip)
    spec = TensorSpec(shape, dtype, layout, tile, _choose_memory(both, chip, to), chip)
    if to == "tensorbin" and not spec.nbytes:
        raise LayoutError("the tensor is empty, which tensorbin files cannot store; leave it out with skip = true")
    if to == "banks":
        _ = spec.known_chip
    if to != "npy":  # .npy files have no placement
        validate_placement(spec)
    unused = _unused_settings(both, spec, to)
    note = "; ".join([remark for remark in (note, unused) if remark]) or None
    permuted = None if order == tuple(range(len(order))) else order
    is_plain = list(source.tensors) == [output.name] and both.value is None
    text = None if is_plain else (source.value if permuted is None else source.value.transpose(order)).text
    return ConversionTarget(
        spec, 0 if both.pad_value is None else both.pad_value, note, permuted if is_plain else None, text, mesh
    )


_PLACEMENT = ("shard", "grid", "shard_shape", "shard_dims", "orientation", "distribution", "buffer", "memory")


def _unused_settings(settings: Settings, spec: TensorSpec, to: str) -> str | None:
    """Return which settings have no effect on a tensor, and why; None if all have."""
    tiles = [] if spec.is_tiled else [name for name in ("tile", "transpose_tile") if getattr(settings, name)]
    if settings.pad_value and not spec.is_tiled and spec.padded_shape == spec.shape.logical:
        tiles.append("pad_value")
    placement = [] if to != "npy" else [name for name in _PLACEMENT if getattr(settings, name) is not None]
    if to == "npy" and settings.layout is not None and PageLayout.of(settings.layout) is PageLayout.TILE:
        placement.append("layout")
    parts = [f"{', '.join(tiles)} has no effect on rows"] if tiles else []
    shards = [
        name
        for name, used in (("distribution", ("nd",)), ("shard_dims", ("dims",)), ("shard_shape", SHARD_KINDS[:-1]))
        if getattr(settings, name) is not None and settings.shard not in (None, *used) and to != "npy"
    ]
    parts += [f"{', '.join(shards)} has no effect with shard = {settings.shard!r}"] if shards else []
    if settings.like_ttnn and not (spec.dtype.has_blocks and spec.memory.is_sharded):
        parts.append("like_ttnn has an effect on blocks in sharded memory only")
    parts += [f"{', '.join(placement)} has no effect on .npy files"] if placement else []
    return "; ".join(parts) or None


def _choose_mesh(settings: Settings, shape: tuple[int, ...], to: str) -> Mesh | None:
    """Return how the devices of a mesh share a tensor of a shape."""
    if settings.mesh is None:
        if settings.cut is not None:
            raise MemoryConfigError(f"cut = {settings.cut!r} needs a mesh, such as mesh = [1, 2]")
        return None
    if to != "tensorbin":
        raise FormatError(f"a mesh needs tensorbin files, which hold the parts of all devices; got {to}")
    cuts = evaluate(settings.cut, {}) if isinstance(settings.cut, str) else settings.cut
    return Mesh.dividing(shape, tuple(settings.mesh), cuts)


def _choose_format(source: Format, own: Settings, float_dtype: FormatLike | None, to: str) -> tuple[Format, str | None]:
    """Return the format of a tensor, and a note if it is neither the requested one nor the source's.

    `float_dtype` is the format for floats, which integers and bools do not take.
    """
    requested = own.dtype if own.dtype is not None else float_dtype if _is_float(source) else None
    target = source if requested is None else format_of(requested)
    is_unchanged = requested is None and float_dtype is not None and format_of(float_dtype) != source
    behaviour = "bools stay bool" if source.name == "bool" else f"integers stay {source}"
    reason = f"{behaviour}; a rule with the tensor's own name changes them" if is_unchanged else None
    if to == "npy" and target.has_blocks:
        if requested is not None:
            raise FormatError(f".npy files cannot store {target} blocks; choose float32, or another output type")
        return format_of("float32"), f"{target} is unpacked to float32"
    if to != "tensorbin":
        return target, reason
    try:
        dtype_code(target)
    except FormatError:
        is_choice = own.dtype is not None or (float_dtype is not None and target != source)
        if is_choice or target.name not in _NEAREST_FORMAT:
            raise
        nearest = format_of(_NEAREST_FORMAT[target.name])
        skips = "; a rule with the tensor's own name chooses another format" if is_unchanged else ""
        return nearest, f"{target} becomes {nearest}, since tensorbin files cannot store {target}{skips}"
    return target, reason


def choose_rounding(settings: Settings, source: Format | None, spec: TensorSpec) -> tuple[ScalarFormat, ...]:
    """Return the formats that values of `source` are rounded to on their way to `spec`.

    >>> sharded = TensorSpec((32, 64), "bfloat8_b", memory=placements.width_sharded((2, 1), buffer_type="dram"))
    >>> choose_rounding(Settings(like_ttnn=True), format_of("float32"), sharded)
    (format_of('bfloat16'),)
    """
    stages = tuple([scalar_format_of(name) for name in settings.through or ()])
    last: Format | None = stages[-1] if stages else source
    is_wider = last is not None and last.name in _WIDER_THAN_BFLOAT16
    if settings.like_ttnn and spec.dtype.has_blocks and spec.memory.is_sharded and is_wider:
        return (*stages, scalar_format_of("bfloat16"))
    return stages


def needs_range_check(source: Format, target: Format) -> bool:
    """Return whether integers of one format may not fit the other, so that values have to be checked.

    >>> (
    ...     needs_range_check(format_of("int64"), format_of("int32")),
    ...     needs_range_check(format_of("uint8"), format_of("int32")),
    ... )
    (True, False)
    """
    if source.has_blocks or target.has_blocks or {"float", "bool"} & {source.kind, target.kind}:
        return False
    inner, outer = source.limits, target.limits
    return inner.lowest < outer.lowest or inner.highest > outer.highest


def dimension_order(rank: int, transpose: object) -> tuple[int, ...]:
    """Return the order of `rank` dimensions that the setting `transpose` means.

    >>> dimension_order(3, True), dimension_order(3, [2, 0, 1])
    ((0, 2, 1), (2, 0, 1))
    """
    unpermuted = tuple(range(rank))
    if not isinstance(transpose, (list, tuple)):
        return (*unpermuted[:-2], rank - 1, rank - 2) if transpose and rank > 1 else unpermuted
    order = tuple([d % rank if -rank <= d < rank else d for d in transpose])
    if sorted(order) != list(unpermuted):
        raise LayoutError(f"transpose = {list(transpose)} is not a permutation of the {rank} dimensions")
    return order


def _choose_memory(settings: Settings, chip: Chip | None, to: str) -> Any:
    """Return the memory config, or a sharding that becomes one when the shape is known."""
    if to == "npy":
        return None
    if settings.memory is not None:
        if settings.shard is not None:
            raise MemoryConfigError(f"memory and shard = {settings.shard!r} both place the tensor; remove one of them")
        return settings.memory
    names = ("grid", "shard_shape", "shard_dims", "orientation", "distribution")
    options = {name: getattr(settings, name) for name in names}
    if settings.shard is None:
        for name, value in options.items():
            if value is not None:
                raise MemoryConfigError(f"{name} = {value} needs shard, such as shard = 'height'")
        return placements.interleaved("dram" if settings.buffer is None else settings.buffer)
    cores, buffer = settings.grid, settings.buffer or "l1"
    if cores is None:
        if chip is None:
            example = "the row of DRAM banks such as [12, 1]" if buffer == "dram" else "a grid such as [8, 8]"
            raise MemoryConfigError(f"sharding in {buffer} needs cores; give {example}, or the chip that has them")
        cores = tuple(chip.shard_grid(buffer))
    cores = _as_tuples(cores)
    orientation = settings.orientation or "row_major"
    if settings.shard == "dims":
        if settings.shard_dims is None:
            raise MemoryConfigError("shard = 'dims' needs shard_dims, such as [0, 1]")
        return placements.sharded_across_dims(list(settings.shard_dims), cores, orientation, buffer)
    if settings.shard == "nd":
        if settings.shard_shape is None:
            raise MemoryConfigError("shard = 'nd' needs shard_shape, such as [1, 64, 32]")
        distribution = settings.distribution or "round_robin_1d"
        return placements.nd_sharded(settings.shard_shape, cores, orientation, distribution, buffer)
    makers = {"height": placements.height_sharded, "width": placements.width_sharded, "block": placements.block_sharded}
    return makers[settings.shard](cores, settings.shard_shape, orientation, buffer)


def _as_tuples(value: object) -> Any:
    return tuple([_as_tuples(item) for item in value]) if isinstance(value, list) else value
