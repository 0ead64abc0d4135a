# SPDX-License-Identifier: Apache-2.0
"""`RecipeFile`: one TOML file of a recipe, checked: its keys, its types, and the syntax of expressions."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, TypeAlias

from ..conversion.expressions import ExpressionError, validate
from ..errors import FileFormatError, TilewrightError
from ..formats import format_of
from ..memory import Chip
from ..spelling import suggest_key

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table: TypeAlias = Mapping[str, Any]  # of TOML: checked before it is used
PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SIGNATURE = re.compile(r"([A-Za-z_]\w*)\(([\w, ]*)\)")
MODEL_DTYPE = "model_dtype"  # the dtype of an output that follows the option of that name

OUTPUT_KEYS = ("name", "value", "dtype", "mesh", "layout", "memory", "when", "each")
_LAYOUTS = ("tile", "row_major")


def parse_signature(text: str) -> tuple[str, list[str]]:
    """Return the name and the parameters of a function; raise unless the text is a signature.

    >>> parse_signature("rotary(weight, heads)")
    ('rotary', ['weight', 'heads'])
    """
    found = _SIGNATURE.fullmatch(text)
    if found is None:
        raise FileFormatError(f"expected a function such as 'rotary(weight, heads)', got {text!r}")
    return found[1], [each.strip() for each in found[2].split(",") if each.strip()]


class Expression(NamedTuple):
    """An expression of a recipe, and where it is written, for messages."""

    text: str
    where: str

    def validate(self, names: Collection[str]) -> None:
        """Raise unless the expression uses only functions of expressions and these names."""
        try:
            validate(self.text, names)
        except ExpressionError as problem:
            raise FileFormatError(f"{self.where}: {problem}") from None


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a recipe does not cover: the condition, and the message."""

    when: Expression
    message: Expression


@dataclass(frozen=True, slots=True)
class FormatRule:
    """Number formats of groups of weights, where a condition holds."""

    when: Expression
    formats: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ModelFormats:
    """Number formats of groups of weights in some layers of single models."""

    models: tuple[str, ...]
    modes: tuple[str, ...]
    layers: tuple[int, ...]
    formats: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OutputTable:
    """A kind of file of the cache: one per layer if its name has {layer}, and one for all values of `each`."""

    name: Expression
    value: Expression
    dtype: str
    layout: str
    memory: Expression
    mesh: Expression
    when: Expression
    each: Mapping[str, Expression]

    @property
    def per_layer(self) -> bool:
        """Return whether there is such a file for every layer."""
        return "{layer}" in self.name.text


@dataclass(frozen=True, slots=True)
class MachineTable:
    """A machine: its chip, the shape of its mesh, and whether the mesh is a ring."""

    chip: str
    mesh: tuple[int, int]
    ring: bool = False


@dataclass(frozen=True, slots=True)
class RecipeFile:
    """The content of a file of a recipe, as it is written.

    >>> file = RecipeFile.parse(b"model_types = ['olmo']\\nextends = 'llama'", "olmo.toml")
    >>> file.model_types, file.extends
    (('olmo',), 'llama')
    """

    where: str
    recipe: str | None = None
    follows: str | None = None
    directory: Expression | None = None
    marker: bool | None = None
    devices: Mapping[str, MachineTable] = field(default_factory=dict)
    groups: Mapping[str, Table] = field(default_factory=dict)
    precision: tuple[FormatRule, ...] = ()
    model_precision: tuple[ModelFormats, ...] = ()
    shapes: Mapping[str, Expression] = field(default_factory=dict)
    output: tuple[OutputTable, ...] = ()
    model_types: tuple[str, ...] = ()
    extends: str | None = None
    without: tuple[str, ...] = ()
    weights: Mapping[str, Expression] = field(default_factory=dict)
    functions: Mapping[str, Expression] = field(default_factory=dict)
    values: Mapping[str, Expression] = field(default_factory=dict)
    refuse: tuple[Refusal, ...] = ()

    @classmethod
    def parse(cls, text: bytes, where: str) -> RecipeFile:
        """Return the content of the text of a file; `where` is its path, for messages."""
        try:
            table = tomllib.loads(text.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise FileFormatError(f"{where} is not TOML: {problem}") from None
        known = [name for name in cls.__slots__ if name != "where"]
        _refuse_unknown_keys(table, known, where)
        return cls(where, **{key: _READERS[key](value, f"{where}: {key}") for key, value in table.items()})

    @property
    def is_family(self) -> bool:
        """Return whether the file describes a family of models."""
        return bool(self.model_types or self.weights or self.extends)


def _refuse_unknown_keys(table: Table, known: Collection[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise FileFormatError(f"{where}: unknown key {key!r}; {suggest_key(key, known)}")


def _expect(what: str, value: Any, where: str) -> NoReturn:
    raise FileFormatError(f"{where}: expected {what}, got {repr(value)[:60]}")


def _read_text(value: Any, where: str) -> str:
    return value if isinstance(value, str) and value else _expect("a text", value, where)


def _read_flag(value: Any, where: str) -> bool:
    return value if isinstance(value, bool) else _expect("true or false", value, where)


def _read_texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        _expect("a list of texts", value, where)
    return tuple(value)


def _read_layers(value: Any, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(each) is int and each >= 0 for each in value):
        _expect("a list of numbers of layers", value, where)
    return tuple(value)


def _read_table(value: Any, where: str) -> Table:
    return value if isinstance(value, dict) else _expect("a table", value, where)


def _read_expression(value: Any, where: str) -> Expression:
    if not isinstance(value, str):
        _expect('an expression in quotes, such as "transpose(weight)"', value, where)
    return Expression(value, where)


def _read_expressions(value: Any, where: str) -> dict[str, Expression]:
    return {key: _read_expression(text, f"{where}: {key!r}") for key, text in _read_table(value, where).items()}


def _read_functions(value: Any, where: str) -> dict[str, Expression]:
    functions = _read_expressions(value, where)
    for signature in functions:
        try:
            parse_signature(signature)
        except FileFormatError as problem:
            raise FileFormatError(f"{where}: {problem}") from None
    return functions


def _read_list(read: Callable[[Table, str], Any], required: str, known: Collection[str]) -> Callable[[Any, str], Any]:
    """Return a reader of a list of tables, each with the `required` keys."""

    def read_all(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            _expect(f"a list of tables, each under [[{where.rpartition(' ')[2]}]]", value, where)
        result = []
        for number, table in enumerate(value, 1):
            place = f"{where} {repr(table['name']) if isinstance(table.get('name'), str) else number}"
            _refuse_unknown_keys(table, known, place)
            for key in required.split():
                if key not in table:
                    raise FileFormatError(f"{place}: {key!r} is missing; it needs {', '.join(required.split())}")
            result.append(read(table, place))
        return tuple(result)

    return read_all


def _read_refusal(table: Table, where: str) -> Refusal:
    when, message = (_read_expression(table[key], f"{where}: {key}") for key in ("when", "message"))
    return Refusal(when, message)


def _read_formats(value: Any, where: str) -> dict[str, str]:
    for group, name in _read_table(value, where).items():
        _read_format(name, f"{where}: {group}")
    return dict(value)


def _read_format(name: Any, where: str) -> str:
    try:
        return format_of(name).name
    except (TilewrightError, TypeError) as problem:
        raise FileFormatError(f"{where}: {problem}") from None


def _read_rule(table: Table, where: str) -> FormatRule:
    return FormatRule(
        _read_expression(table["when"], f"{where}: when"), _read_formats(table["formats"], f"{where}: formats")
    )


def _read_model(table: Table, where: str) -> ModelFormats:
    return ModelFormats(
        _read_texts(table["models"], f"{where}: models"),
        _read_texts(table["modes"], f"{where}: modes"),
        _read_layers(table["layers"], f"{where}: layers"),
        _read_formats(table["formats"], f"{where}: formats"),
    )


def _read_output(table: Table, where: str) -> OutputTable:
    name = _read_text(table["name"], f"{where}: name")
    layout = table.get("layout", "tile")
    if layout not in _LAYOUTS:
        _expect(f"one of {', '.join(_LAYOUTS)}", layout, f"{where}: layout")
    dtype = _read_text(table["dtype"], f"{where}: dtype")
    if dtype != MODEL_DTYPE and not dtype.isupper():  # groups of weights are in capitals
        dtype = _read_format(dtype, f"{where}: dtype")
    return OutputTable(
        Expression(f'f"""{name}"""', f"{where}: name"),
        _read_expression(table["value"], f"{where}: value"),
        dtype,
        layout,
        _read_expression(table.get("memory", "'interleaved'"), f"{where}: memory"),
        _read_expression(table["mesh"], f"{where}: mesh"),
        _read_expression(table.get("when", "True"), f"{where}: when"),
        _read_expressions(table.get("each", {}), f"{where}: each"),
    )


def _read_devices(value: Any, where: str) -> dict[str, MachineTable]:
    return {name: _read_machine(table, f"{where}: {name}") for name, table in _read_table(value, where).items()}


def _read_machine(value: Any, where: str) -> MachineTable:
    table = _read_table(value, where)
    _refuse_unknown_keys(table, ("chip", "mesh", "ring"), where)
    mesh = _read_layers(table.get("mesh"), f"{where}: mesh")
    if len(mesh) != 2 or not all(mesh):
        _expect("the rows and columns of the mesh, such as [1, 2]", list(mesh), f"{where}: mesh")
    try:
        chip = Chip.named(_read_text(table.get("chip"), f"{where}: chip"))
    except TilewrightError as problem:
        raise FileFormatError(f"{where}: chip: {problem}") from None
    return MachineTable(chip.name, (mesh[0], mesh[1]), _read_flag(table.get("ring", False), f"{where}: ring"))


def _read_groups(value: Any, where: str) -> dict[str, Table]:
    groups = _read_table(value, where)
    for name, table in groups.items():
        _refuse_unknown_keys(_read_table(table, f"{where}: {name}"), ("alias", "format"), f"{where}: {name}")
        if not name.isupper():
            _expect("a name in capitals", name, where)
        if "format" in table:
            _read_format(table["format"], f"{where}: {name}: format")
    return dict(groups)


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "recipe": _read_text,
    "follows": _read_text,
    "directory": _read_expression,
    "marker": _read_flag,
    "devices": _read_devices,
    "groups": _read_groups,
    "precision": _read_list(_read_rule, "when formats", ("when", "formats")),
    "model_precision": _read_list(_read_model, "models modes layers formats", ("models", "modes", "layers", "formats")),
    "shapes": _read_expressions,
    "output": _read_list(_read_output, "name value dtype mesh", OUTPUT_KEYS),
    "model_types": _read_texts,
    "extends": _read_text,
    "without": _read_texts,
    "weights": _read_expressions,
    "functions": _read_functions,
    "values": _read_expressions,
    "refuse": _read_list(_read_refusal, "when message", ("when", "message")),
}
