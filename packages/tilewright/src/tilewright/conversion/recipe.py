# SPDX-License-Identifier: Apache-2.0
"""`Recipe`: the files of a weight cache as expressions over the tensors of a checkpoint, read from TOML.

A recipe is a folder: one file has the files of the cache, machines and number formats, and every other one the weights
of a family of models. A file of a user is a recipe of its own, or adds to one: a family, or more files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from .._files import as_path
from .._json import parse_toml
from .._text import find_nearest, suggest
from ..errors import FileFormatError, FormatError, MemoryConfigError, TilewrightError
from ..files import FilePath, read_json
from ..formats import format_of
from ..memory import Chip
from ..plugins import list_plugins, load_plugin
from .recipe_logic import Choices, RecipeLogic, TtTransformers
from .rules import ExpressionError, rule_sets, validate

# `RecipeFile`: one TOML file of a recipe, checked: its keys, its types, and the syntax of expressions.

Table: TypeAlias = Mapping[str, Any]  # of TOML: checked before it is used
Reader: TypeAlias = Callable[[Any, str], Any]  # of a value, and where it is
PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SIGNATURE = re.compile(r"([A-Za-z_]\w*)\(([\w, ]*)\)")
MODEL_DTYPE = "model_dtype"  # the dtype of an output that follows the option of that name

_LAYOUTS = ("tile", "row_major")


def parse_signature(text: str) -> tuple[str, list[str]]:
    """Return the name and the parameters of a function; raise unless the text is a signature.

    >>> parse_signature("rotary(weight, heads)")
    ('rotary', ['weight', 'heads'])
    """
    match = _SIGNATURE.fullmatch(text)
    if match is None:
        raise FileFormatError(f"expected a function such as 'rotary(weight, heads)', got {text!r}")
    return match[1], [name.strip() for name in match[2].split(",") if name.strip()]


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
    """A case that a recipe does not cover: the condition, and the message."""

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
        """Whether there is such a file for every layer."""
        return "{layer}" in self.name.text


OUTPUT_KEYS = OutputTable.__slots__


@dataclass(frozen=True, slots=True)
class MachineTable:
    """A machine: its chip, the shape of its mesh, whether the mesh is a ring, and its other names."""

    chip: str
    mesh: tuple[int, int]
    ring: bool = False
    also: tuple[str, ...] = ()


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
    recorded: bool | None = None
    required: tuple[str, ...] = ()
    unused: Mapping[str, str] = field(default_factory=dict)
    config: Table = field(default_factory=dict)
    weights: Mapping[str, Expression] = field(default_factory=dict)
    functions: Mapping[str, Expression] = field(default_factory=dict)
    values: Mapping[str, Expression] = field(default_factory=dict)
    refuse: tuple[Refusal, ...] = ()

    @classmethod
    def parse(cls, text: bytes, where: str) -> RecipeFile:
        """Return the content of the text of a file; `where` is its path, for messages."""
        table = parse_toml(text, where)
        keys = [name for name in cls.__slots__ if name != "where"]
        _refuse_unknown_keys(table, keys, where)
        return cls(where, **{key: _READERS[key](value, f"{where}: {key}") for key, value in table.items()})

    @property
    def is_family(self) -> bool:
        """Whether the file describes a family of models."""
        return bool(self.model_types or self.weights or self.extends)


def _refuse_unknown_keys(table: Table, keys: Collection[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise FileFormatError(f"{where}: unknown key {key!r}; {suggest(key, keys)}")


def _expect(what: str, value: object, where: str) -> NoReturn:
    raise FileFormatError(f"{where}: expected {what}, got {repr(value)[:60]}")


def _read_text(value: object, where: str) -> str:
    return value if isinstance(value, str) and value else _expect("a text", value, where)


def _read_flag(value: object, where: str) -> bool:
    return value if isinstance(value, bool) else _expect("true or false", value, where)


def _read_texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        _expect("a list of texts", value, where)
    return tuple(value)


def _read_layers(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(layer) is int and layer >= 0 for layer in value):
        _expect("a list of numbers of layers", value, where)
    return tuple(value)


def _read_table(value: object, where: str) -> Table:
    return value if isinstance(value, dict) else _expect("a table", value, where)


def _read_expression(value: object, where: str) -> Expression:
    if not isinstance(value, str):
        _expect('an expression in quotes, such as "transpose(weight)"', value, where)
    return Expression(value, where)


def _read_expressions(value: object, where: str) -> dict[str, Expression]:
    return {key: _read_expression(text, f"{where}: {key!r}") for key, text in _read_table(value, where).items()}


def _read_functions(value: object, where: str) -> dict[str, Expression]:
    functions = _read_expressions(value, where)
    for signature in functions:
        try:
            parse_signature(signature)
        except FileFormatError as problem:
            raise FileFormatError(f"{where}: {problem}") from None
    return functions


def _read_reasons(value: object, where: str) -> dict[str, str]:
    for pattern, reason in _read_table(value, where).items():
        _read_text(reason, f"{where}: {pattern!r}")
        try:
            re.compile(pattern)
        except re.error as problem:
            raise FileFormatError(f"{where}: expected a regular expression, got {pattern!r}: {problem}") from None
    return dict(_read_table(value, where))


def _read_record(build: Callable[..., Any], defaults: Table | None = None, **readers: Reader) -> Reader:
    """Return a reader of a table, whose keys have `readers`; keys without `defaults` are required."""
    usual = defaults or {}
    required = [key for key in readers if key not in usual]

    def read(value: object, where: str) -> Any:
        table = _read_table(value, where)
        _refuse_unknown_keys(table, readers, where)
        for key in required:
            if key not in table:
                raise FileFormatError(f"{where}: {key!r} is missing; it needs {', '.join(required)}")
        whole = {**usual, **table}
        return build(**{key: reader(whole[key], f"{where}: {key}") for key, reader in readers.items()})

    return read


def _read_list(read: Reader) -> Reader:
    """Return a reader of a list of tables."""

    def read_all(value: object, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            _expect(f"a list of tables, each under [[{where.rpartition(' ')[2]}]]", value, where)
        names = [repr(table["name"]) if isinstance(table.get("name"), str) else None for table in value]
        return tuple([read(table, f"{where} {names[k] or k + 1}") for k, table in enumerate(value)])

    return read_all


def _read_formats(value: object, where: str) -> dict[str, str]:
    formats = _read_table(value, where)
    for group, name in formats.items():
        _read_format(name, f"{where}: {group}")
    return dict(formats)


def _read_format(name: Any, where: str) -> str:
    try:
        return format_of(name).name
    except (TilewrightError, TypeError) as problem:
        raise FileFormatError(f"{where}: {problem}") from None


def _read_template(value: object, where: str) -> Expression:
    return Expression(f'f"""{_read_text(value, where)}"""', where)


def _read_output_dtype(value: object, where: str) -> str:
    dtype = _read_text(value, where)
    return dtype if dtype == MODEL_DTYPE or dtype.isupper() else _read_format(dtype, where)  # groups are in capitals


def _read_layout(value: object, where: str) -> str:
    return str(value) if value in _LAYOUTS else _expect(f"one of {', '.join(_LAYOUTS)}", value, where)


def _read_mesh(value: object, where: str) -> tuple[int, ...]:
    mesh = _read_layers(value, where)
    if len(mesh) != 2 or not all(mesh):
        _expect("the rows and columns of the mesh, such as [1, 2]", list(mesh), where)
    return mesh


def _read_chip(value: object, where: str) -> str:
    try:
        return Chip.named(_read_text(value, where)).name
    except MemoryConfigError as problem:
        raise FileFormatError(f"{where}: {problem}") from None


def _read_devices(value: object, where: str) -> dict[str, MachineTable]:
    fields: dict[str, Reader] = {"chip": _read_chip, "mesh": _read_mesh, "ring": _read_flag, "also": _read_texts}
    read = _read_record(MachineTable, {"ring": False, "also": []}, **fields)
    return {name: read(table, f"{where}: {name}") for name, table in _read_table(value, where).items()}


def _read_groups(value: object, where: str) -> dict[str, Table]:
    groups = _read_table(value, where)
    for name, table in groups.items():
        _refuse_unknown_keys(_read_table(table, f"{where}: {name}"), ("alias", "format"), f"{where}: {name}")
        if not name.isupper():
            _expect("a name in capitals", name, where)
        if "format" in table:
            _read_format(table["format"], f"{where}: {name}: format")
    return dict(groups)


_READERS: dict[str, Reader] = {
    "recipe": _read_text,
    "follows": _read_text,
    "directory": _read_expression,
    "marker": _read_flag,
    "devices": _read_devices,
    "groups": _read_groups,
    "precision": _read_list(_read_record(FormatRule, when=_read_expression, formats=_read_formats)),
    "model_precision": _read_list(
        _read_record(ModelFormats, models=_read_texts, modes=_read_texts, layers=_read_layers, formats=_read_formats)
    ),
    "shapes": _read_expressions,
    "output": _read_list(
        _read_record(
            OutputTable,
            {"layout": "tile", "memory": "'interleaved'", "when": "True", "each": {}},
            name=_read_template,
            value=_read_expression,
            dtype=_read_output_dtype,
            mesh=_read_expression,
            layout=_read_layout,
            memory=_read_expression,
            when=_read_expression,
            each=_read_expressions,
        )
    ),
    "model_types": _read_texts,
    "extends": _read_text,
    "without": _read_texts,
    "recorded": _read_flag,
    "required": _read_texts,
    "unused": _read_reasons,
    "config": _read_table,
    "weights": _read_expressions,
    "functions": _read_functions,
    "values": _read_expressions,
    "refuse": _read_list(_read_record(Refusal, when=_read_expression, message=_read_expression)),
}


DEFAULT_RECIPE = "tt_transformers"
GUIDE = "docs/guides/write-a-recipe.md"
RUN_FUNCTIONS = ("config", "config_size", "has_config", "tensor", "has_tensor", "weight", "has_weight", "environment")
"""The functions of recipes, in addition to the functions of all expressions."""

_MAX_BYTES = 1 << 20  # of a file


@dataclass(frozen=True)
class Family:
    """A family of models: its weights by key, and additions to the files, formats, values and functions of a recipe.

    All its models have the `required` weights, and of others those that their checkpoints have tensors for. `unused`
    are patterns of tensors that no file is made from, and why. `config` has what config.json may lack. A family is
    `recorded` if its files are compared with the files of the original; None if that is unknown.

    >>> Recipe.load("tt_transformers").families["qwen2"].model_types
    ('qwen2',)
    """

    name: str
    model_types: tuple[str, ...] = ()
    weights: Mapping[str, Expression] = field(default_factory=dict)
    functions: Mapping[str, Expression] = field(default_factory=dict)
    values: Mapping[str, Expression] = field(default_factory=dict)
    refuse: tuple[Refusal, ...] = ()
    precision: tuple[FormatRule, ...] = ()
    output: tuple[OutputTable, ...] = ()
    required: tuple[str, ...] = ()
    unused: Mapping[str, str] = field(default_factory=dict)
    recorded: bool | None = None
    config: Table = field(default_factory=dict)

    def extend(self, name: str, file: RecipeFile) -> Family:
        """Return the family of a file that extends this one."""
        for key in file.without:
            if key not in self.weights:
                raise FileFormatError(f"{file.where}: without: {self.name or 'no family'} has no weight {key!r}")
        weights = {key: value for key, value in self.weights.items() if key not in file.without}
        own = {**weights, **file.weights}
        required = tuple([key for key in (*self.required, *file.required) if key not in file.without])
        for key in required:
            if key not in own:
                raise FileFormatError(f"{file.where}: required: {name} has no weight {key!r}; {suggest(key, own)}")
        unused = {**self.unused, **file.unused}
        return Family(
            name,
            file.model_types,
            own,
            **_merge_shared(self, file),
            required=required,
            unused=unused,
            recorded=file.recorded,
            config={**self.config, **file.config},
        )


@dataclass(frozen=True)
class Recipe:
    """A recipe: the files of a cache, for which machines, and how families of models name their weights.

    >>> recipe = Recipe.load("tt_transformers")
    >>> recipe.families["llama"].model_types, len(recipe.devices), recipe.follows[:22]
    (('llama',), 11, 'models/tt_transformers')
    """

    name: str
    revision: str = ""  # the first digits of a hash of its files
    follows: str = ""
    directory: Expression | None = None
    marker: bool = False
    devices: Mapping[str, MachineTable] = field(default_factory=dict, repr=False, compare=False)
    groups: Mapping[str, Table] = field(default_factory=dict, repr=False, compare=False)
    precision: tuple[FormatRule, ...] = field(default=(), repr=False, compare=False)
    model_precision: tuple[ModelFormats, ...] = field(default=(), repr=False, compare=False)
    shapes: Mapping[str, Expression] = field(default_factory=dict, repr=False, compare=False)
    output: tuple[OutputTable, ...] = field(default=(), repr=False, compare=False)
    functions: Mapping[str, Expression] = field(default_factory=dict, repr=False, compare=False)
    values: Mapping[str, Expression] = field(default_factory=dict, repr=False, compare=False)
    refuse: tuple[Refusal, ...] = field(default=(), repr=False, compare=False)
    families: Mapping[str, Family] = field(default_factory=dict, repr=False, compare=False)
    logic: type[RecipeLogic] = field(default=RecipeLogic, repr=False, compare=False)

    @classmethod
    def load(cls, name: FilePath = DEFAULT_RECIPE) -> Recipe:
        """Return a recipe: the `name` of one that is known, or the path of a TOML file or of a folder.

        >>> Recipe.load().name
        'tt_transformers'
        """
        path = as_path(name)
        if str(name) in _built_in_names():
            return _load_built_in(str(name))
        added = load_plugin("recipes", str(name), Path)
        if isinstance(added, Path):
            return _load_path(added)
        if path.is_dir() or path.suffix == ".toml":
            return _load_path(path)
        raise FormatError(
            f"unknown recipe {str(name)!r}; tilewright has {', '.join(recipe_names())}; for one of your own, give its"
            f" .toml file or its folder ({GUIDE} shows how to write one)"
        )

    def family(self, model_type: str) -> Family:
        """Return the family of a `model_type`, as config.json has it; the one that was added last counts."""
        for family in reversed(list(self.families.values())):
            if model_type in family.model_types:
                return family
        model_types = sorted({name for family in self.families.values() for name in family.model_types})
        near = find_nearest(model_type, model_types)
        nearest = "" if near is None else f", to which {near!r} is the nearest"
        raise FormatError(
            f"recipe {self.name} has no family for model_type {model_type!r}{nearest}; it has {', '.join(model_types)};"
            f" {_other_way(model_type)}"
        )

    def complete(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the content of a config.json, completed from the family of the model, if there is one.

        >>> recipe = Recipe.load()
        >>> recipe.complete({"model_type": "qwen3", "head_dim": 64})
        {'num_key_value_heads': 32, 'head_dim': 64, 'model_type': 'qwen3'}
        """
        known = [family for family in self.families.values() if config.get("model_type") in family.model_types]
        return {**known[-1].config, **config} if known else config

    def outputs(self, family: Family) -> tuple[OutputTable, ...]:
        """Return the files of a `family`: the recipe's files, and its own.

        >>> recipe = Recipe.load()
        >>> len(recipe.outputs(recipe.families["llama"])) == len(recipe.output)
        True
        """
        return add_outputs(self.output, family.output)

    def to_json(self) -> dict[str, str]:
        """Return the identity of the recipe, as manifests record it.

        >>> sorted(Recipe.load().to_json())
        ['follows', 'name', 'revision']
        """
        return {"name": self.name, "revision": self.revision, "follows": self.follows}

    def _add(self, file: RecipeFile) -> Recipe:
        """Return the recipe with a file's additions to all families; the file's entries take precedence."""
        return replace(
            self,
            follows=file.follows or self.follows,
            directory=file.directory or self.directory,
            marker=self.marker if file.marker is None else file.marker,
            devices={**self.devices, **file.devices},
            groups={**self.groups, **file.groups},
            model_precision=(*file.model_precision, *self.model_precision),
            shapes={**self.shapes, **file.shapes},
            **({} if file.is_family else _merge_shared(self, file)),
        )

    def _validate(self) -> None:
        """Raise if an expression uses a name that does not exist."""
        for family in list(self.families.values()) or [Family("")]:
            functions, values = {**self.functions, **family.functions}, {**self.values, **family.values}
            names = {*Choices._fields, *RUN_FUNCTIONS, *self.logic.names(), *values}
            for signature in functions:
                names.add(parse_signature(signature)[0])
            for expression, own in self._expressions(family):
                expression.validate(names | set(own))
            for table in self.outputs(family):
                if table.dtype.isupper() and table.dtype not in self.groups:
                    raise FileFormatError(
                        f"{table.name.where}: dtype {table.dtype} is not a group of [groups], which has"
                        f" {', '.join(self.groups) or 'none'}"
                    )
                if table.per_layer and "layers" not in names:
                    raise FileFormatError(f"{table.name.where}: {{layer}} needs a value 'layers' in [values]")

    def _expressions(self, family: Family) -> Iterator[tuple[Expression, Collection[str]]]:
        """Yield all expressions that apply to a family, with the names that only they have."""
        if self.directory is not None:
            yield self.directory, ()
        for signature, expression in {**self.functions, **family.functions}.items():
            yield expression, parse_signature(signature)[1]
        for value in {**self.values, **family.values}.values():
            yield value, ()
        for rule in (*family.precision, *self.precision):
            yield rule.when, ()
        for refusal in (*self.refuse, *family.refuse):
            yield from ((refusal.when, ()), (refusal.message, ()))
        for key, expression in (*self.shapes.items(), *family.weights.items()):
            yield expression, PLACEHOLDER.findall(key)
        for table in self.outputs(family):
            yield from ((condition, ()) for condition in (table.when, *table.each.values()))
            own = (*table.each, "layer") if table.per_layer else (*table.each,)
            yield from ((template, own) for template in (table.name, table.value, table.memory, table.mesh))


def _other_way(model_type: str) -> str:
    """Return the remedy for a model without a family."""
    for name, model_types in rule_sets().items():
        if model_type in model_types:
            return f"convert --rules {name} cuts and tiles its weights instead"
    return f"if the model is built like one of them, a TOML file of a few lines adds it: {GUIDE} shows how"


def _merge_shared(base: Recipe | Family, file: RecipeFile) -> dict[str, Any]:
    """Return the parts common to recipes and families, with a file's additions; the file's formats come first."""
    return {
        "functions": {**base.functions, **file.functions},
        "values": {**base.values, **file.values},
        "refuse": (*base.refuse, *file.refuse),
        "precision": (*file.precision, *base.precision),
        "output": add_outputs(base.output, file.output),
    }


def add_outputs(tables: tuple[OutputTable, ...], more: tuple[OutputTable, ...]) -> tuple[OutputTable, ...]:
    """Return the files of two tables; files of the second replace files of the same name."""
    names = {table.name.text for table in more}
    return (*[table for table in tables if table.name.text not in names], *more)


def recipe_names() -> list[str]:
    """Return the names of the recipes that come with tilewright or with plug-ins.

    >>> recipe_names()
    ['tt_transformers']
    """
    return sorted({*_built_in_names(), *list_plugins("recipes")})


_FOLDER = Path(__file__).parent


def _built_in_names() -> list[str]:
    return [path.name for path in (_FOLDER / "recipes").iterdir() if path.is_dir()]


@lru_cache
def _load_built_in(name: str) -> Recipe:
    folder = _FOLDER / "recipes" / name
    texts = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(".toml")}
    source = _FOLDER / "recipe_logic.py"
    logic = hashlib.sha256(source.read_bytes() if source.is_file() else b"compiled").hexdigest()  # as in a browser
    return _build_recipe(name, "", texts, Recipe(name, logic, logic=TtTransformers))


def _load_path(path: Path) -> Recipe:
    """Return the recipe of a user's file or folder."""
    paths = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    if not paths:
        raise FileFormatError(f"{path} has no .toml files; a recipe is a folder of them, or one file")
    for file in paths:
        if file.stat().st_size > _MAX_BYTES:
            raise FileFormatError(f"{file} has {file.stat().st_size} bytes, more than {_MAX_BYTES}")
    folder = path if path.is_dir() else path.parent
    prefix = "" if folder == Path() else f"{folder}/"  # as the user wrote it
    return _build_recipe(path.resolve().stem, prefix, {file.name: file.read_bytes() for file in paths})


def _build_recipe(name: str, folder: str, texts: Mapping[str, bytes], start: Recipe | None = None) -> Recipe:
    """Return the recipe of some files, by name. It adds to `start`, or to another one unless it has all it needs."""
    parsed = {file.removesuffix(".toml"): RecipeFile.parse(texts[file], folder + file) for file in sorted(texts)}
    parents = [file.recipe for file in parsed.values() if file.recipe is not None]
    is_complete = any(file.devices for file in parsed.values()) and any(file.output for file in parsed.values())
    usual = Recipe(name) if is_complete and not parents else None
    recipe = start or usual or Recipe.load((*parents, DEFAULT_RECIPE)[0])
    digest = hashlib.sha256(recipe.revision.encode())
    for file, text in sorted(texts.items()):
        digest.update(file.encode() + b"\0" + text)
    for content in parsed.values():
        recipe = recipe._add(content)
    families = dict(recipe.families)
    for key in _order_families(parsed, families):
        base = parsed[key].extends
        families[key] = (Family("") if base is None else families[base]).extend(key, parsed[key])
    result = replace(recipe, name=name, revision=digest.hexdigest()[:12], families=families)
    if start is None:  # our own are validated by tests
        result._validate()
    return result


def _order_families(parsed: Mapping[str, RecipeFile], inherited: Mapping[str, Family]) -> Sequence[str]:
    """Return the names of the families of some files, each after the one that it extends."""
    ordered: list[str] = []
    pending = [name for name, file in parsed.items() if file.is_family]
    while pending:
        free = {None, *ordered, *inherited.keys() - set(pending)}
        ready = [name for name in pending if parsed[name].extends in free or parsed[name].extends == name in inherited]
        if not ready:
            file = parsed[pending[0]]
            families = ", ".join([*inherited, *ordered]) or "none"
            raise FileFormatError(f"{file.where}: extends: unknown family {file.extends!r}; expected one of {families}")
        ordered += ready
        pending = [name for name in pending if name not in ready]
    return ordered


# `Optimizations`: the number formats that a user chose: a mode of the recipe, a decoder config, or one for all
# layers.

MODES = ("performance", "accuracy")
_FORMATS = {"BFP4": "bfloat4_b", "BFP8": "bfloat8_b", "BF16": "bfloat16"}
_SETTING = re.compile(r"\s*(\w+)\s*[=:]\s*\{([^{}]*)\}\s*(?:,|$)")
_SETTINGS = ("precision_cfg", "fidelity_cfg")  # the second one changes how the card computes, not the weights
_MAX_CONFIG_BYTES = 1 << 22  # of a decoder config

Formats = Mapping[str, str]
"""Number formats by group of weights."""


@dataclass(frozen=True)
class Optimizations:
    """The number formats of groups of weights: the formats of a `mode`, with exceptions in `layers` or `all_layers`.

    A layer of `layers` may be None: it is listed, but has the formats of the mode.

    >>> Optimizations.of("accuracy", Recipe.load()).mode
    'accuracy'
    >>> Optimizations.of("precision_cfg = {ff1_3: bfp4, wqkv: bf16}", Recipe.load()).all_layers
    {'FF1_FF3': 'bfloat4_b', 'WQKV': 'bfloat16'}
    """

    mode: str = "performance"
    layers: Mapping[int, Formats | None] | None = None
    all_layers: Formats | None = None

    @classmethod
    def of(cls, text: FilePath | Optimizations, recipe: Recipe) -> Optimizations:
        """Return the number formats that a `text` names: a mode, a JSON file, or a setting for all layers.

        `recipe` is the one that names the groups of weights.
        """
        if isinstance(text, Optimizations):
            return text
        name = str(text)
        if name in MODES:
            return cls(name)
        if name.endswith(".json"):
            return cls(layers=_read_decoder_config(as_path(text), recipe))
        if (settings := _parse_settings(name)) is not None:
            pairs = [part.partition(":") for part in settings.get("precision_cfg", "").split(",") if part.strip()]
            aliases = {str(table.get("alias", group)).upper(): group for group, table in recipe.groups.items()}
            # "mixed" stands for the usual format of activations
            entries = [
                (key.strip().upper(), value.strip()) for key, _, value in pairs if value.strip().lower() != "mixed"
            ]
            _refuse_repeats([key for key, _ in entries], "precision_cfg")
            return cls(all_layers=_parse_formats(dict(entries), aliases, "precision_cfg"))
        raise FormatError(
            f"expected performance, accuracy, a decoder config that ends in .json, or 'precision_cfg = {{wqkv: bf16}}'"
            f" as optimizations, got {name!r}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data.

        >>> Optimizations("accuracy").to_json()
        {'mode': 'accuracy'}
        """
        chosen = {"mode": self.mode, "layers": self.layers, "all_layers": self.all_layers}
        return {key: value for key, value in chosen.items() if value is not None}

    @classmethod
    def from_json(cls, data: object) -> Optimizations:
        """Return the optimizations of plain data, or raise a `FileFormatError`.

        >>> Optimizations.from_json({"mode": "accuracy"})
        Optimizations(mode='accuracy', layers=None, all_layers=None)
        """
        if not isinstance(data, dict) or data.get("mode") not in MODES:
            raise FileFormatError(f"expected optimizations with a mode, got {repr(data)[:60]}")
        layers = data.get("layers")
        by_number = None if layers is None else {int(layer): formats for layer, formats in layers.items()}
        return cls(data["mode"], by_number, data.get("all_layers"))


def _parse_settings(text: str) -> dict[str, str] | None:
    """Return the settings of a text such as "precision_cfg = {...}, fidelity_cfg = {...}"; None for other texts."""
    matches = list(_SETTING.finditer(text))
    if not matches or sum([len(match[0]) for match in matches]) != len(text):
        return None
    names = [match[1] for match in matches]
    _refuse_unknown_settings(names, "optimizations")
    _refuse_repeats(names, "optimizations")
    return {match[1]: match[2] for match in matches}


def _refuse_unknown_settings(names: Iterable[str], where: str) -> None:
    for name in names:
        if name not in _SETTINGS:
            raise FileFormatError(f"{where}: unknown setting {name!r}; there are {' and '.join(_SETTINGS)}")


def _refuse_repeats(names: list[str], where: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise FileFormatError(f"{where}: {name} is set {names.count(name)} times; set it once")


def _read_decoder_config(path: Path, recipe: Recipe) -> dict[int, Formats | None]:
    """Return the number formats of the layers that a decoder config lists."""
    content = read_json(path, str(path), _MAX_CONFIG_BYTES)
    data = content if isinstance(content, dict) else {}
    decoders = data.get("decoders")
    if not isinstance(decoders, dict) or not decoders:
        raise FileFormatError(f'{path}: expected {{"decoders": {{"0": ...}}}}, with at least one layer')
    for key in data.keys() - {"decoders"}:
        raise FileFormatError(f"{path}: unknown key {key!r} beside 'decoders'; remove it")
    groups = {group: group for group in recipe.groups}
    layers: dict[int, Formats | None] = {}
    for layer, settings in decoders.items():
        if not layer.isdecimal() or not isinstance(settings, dict):
            raise FileFormatError(f"{path}: expected a number of a layer and its settings, got {layer!r}")
        _refuse_unknown_settings(settings, f"{path}: layer {layer}")
        chosen = settings.get("precision_cfg")
        if chosen is not None and not isinstance(chosen, dict):
            raise FileFormatError(f"{path}: layer {layer}: expected an object as precision_cfg, got {chosen!r}")
        where = f"{path}: layer {layer}"
        layers[int(layer)] = None if chosen is None else _parse_formats(chosen, groups, where)
    return layers


def _parse_formats(chosen: Mapping[str, Any], groups: Mapping[str, str], where: str) -> dict[str, str]:
    formats = {}
    for key, value in chosen.items():
        if key not in groups:
            raise FileFormatError(f"{where}: unknown group of weights {key!r}; {suggest(key, groups)}")
        if str(value).upper() not in _FORMATS:
            raise FileFormatError(f"{where}: expected one of {', '.join(_FORMATS)} for {key}, got {value!r}")
        formats[groups[key]] = _FORMATS[str(value).upper()]
    return formats
