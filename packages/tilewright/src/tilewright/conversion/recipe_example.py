# SPDX-License-Identifier: Apache-2.0
"""`infer_recipe`: a recipe from examples: checkpoints, and the caches that other software made of them.

`match` finds how each file is made. Files that differ only in the number of their layer become one output, and every
number becomes an expression of config.json's sizes that holds in all examples. What is written is tested on them.
"""

from __future__ import annotations

import ast
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, count, permutations, product, zip_longest
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._files import as_path
from .._integers import ceil_div
from .._text import NUMBER_IN_NAME, count_of, list_some
from ..errors import FileFormatError, FormatError, TilewrightError
from ..files import FilePath, open_tensors, read_tensorbin_tensor
from ..memory import Mesh, TensorSpec, interleaved, width_sharded
from .cache import Machine, read_config
from .cache_check import FileName
from .cache_folder import CacheFolder, prepare, suits_any_mesh
from .line_search import HELPERS, assemble
from .matching import match
from .recipe import Recipe, parse_signature
from .rules import evaluate

# `Numbers`: expressions of the sizes in config.json that have given values in all examples.

_SIZE = re.compile(r"size|heads|dim$|layers|experts|rank$|groups|channels")
_COUNTED = re.compile(r"heads|layers|experts|groups")  # in the names of numbers that are no extents
_HEAD_DIM = "config_size('head_dim', config_size('hidden_size') // config_size('num_attention_heads'))"
_FIRST = ("head_dim", "hidden_size", "intermediate_size", "vocab_size")  # sizes that are preferred
_UNITS = tuple([32 << k for k in range(7)])  # that sizes are padded to
_LITERAL = 16  # numbers below are taken as they are, unless they count devices or parts
_MAX_LISTED = 4  # expressions of the same value

Values = tuple[int, ...]  # one of each example


class Numbers:
    """The numbers of some examples: the sizes in their config.json, and `devices`.

    Args:
        configs: the contents of the examples' config.json.
        devices: the number of devices of their machine.

    >>> configs = [{"hidden_size": 256, "vocab_size": 1000}, {"hidden_size": 512, "vocab_size": 1000}]
    >>> numbers = Numbers(configs, devices=2)
    >>> numbers.explain((512, 1024))[0], numbers.explain((1024, 1024), padded=(1000, 1000))[0]
    ('2 * hidden_size', 'round_up(vocab_size, 32 * devices)')
    """

    def __init__(self, configs: Sequence[Mapping[str, Any]], devices: int) -> None:
        self.devices = devices
        common = [
            key for key in configs[0] if _SIZE.search(key) and all(_is_size(config.get(key)) for config in configs)
        ]
        self.texts = {key: f"config_size({key!r})" for key in common}
        if "head_dim" not in common and {"hidden_size", "num_attention_heads"} <= set(common):
            self.texts["head_dim"] = _HEAD_DIM
        self.sizes = {
            name: tuple([self._size(text, config) for config in configs]) for name, text in self.texts.items()
        }
        ordered = sorted(self.sizes, key=lambda name: (*_FIRST, name).index(name))
        self.sizes = {name: self.sizes[name] for name in ordered}
        rows = zip(*self.sizes.values(), strict=True)
        self.examples = [{**dict(zip(self.sizes, row, strict=True)), "devices": devices} for row in rows]

    @staticmethod
    def _size(text: str, config: Mapping[str, Any]) -> int:
        return int(evaluate(text, {"config_size": lambda key, default=None: config.get(key) or default}))

    def explain(
        self, values: Values, literal: bool = False, counts: bool = False, padded: Values | None = None
    ) -> list[str]:
        """Return expressions that have these values in the examples, the preferred one first.

        Args:
            values: the value in each example.
            literal: whether a plain number is preferred, as for the height of a tile.
            counts: whether it is a number of parts, such as heads or devices, and not an extent.
            padded: the extents that are padded to these values.
        """
        number = [str(values[0])] if len(set(values)) == 1 else []
        first = ["devices"] if counts and number == [str(self.devices)] else []
        if padded is not None:
            extents = [name for name, own in self.sizes.items() if own == padded and not _COUNTED.search(name)]
            first += self._pads(extents, values)
            literal = literal or not extents
        first += number if literal and not first else []
        expressions = self._count(values) if counts else self._measure(values)
        return list(dict.fromkeys([*first, *expressions, *number]))

    def _count(self, values: Values) -> Iterator[str]:
        """Yield numbers of parts that have these values: sizes, and quotients of two of a kind."""
        counted = [name for name in self.sizes if _COUNTED.search(name)]
        yield from self._holding(values, counted)
        extents = [name for name in self.sizes if name not in counted]
        for own in (counted, extents):
            yield from self._holding(values, [f"{a} // {b}" for a, b in permutations(own, 2) if "layers" not in a + b])

    def _measure(self, values: Values) -> Iterator[str]:
        """Yield extents that have these values: sizes, then their multiples, shares and paddings."""
        extents = [name for name in self.sizes if not _COUNTED.search(name)]
        counted = [name for name in self.sizes if name not in extents and "layers" not in name]
        yield from self._holding(values, extents)
        yield from self._holding(values, [f"{k} * {name}" for name, k in product(extents, (2, 3, 4))])
        yield from self._holding(values, [f"{name} // {parts}" for name, parts in product(extents, counted)])
        yield from self._holding(values, [f"{parts} * {name}" for name, parts in product(extents, counted)])
        sums = [f"({a} + {b}) * {name}" for name in extents for a, b in combinations(counted, 2)]
        sums += [f"({a} + 2 * {b}) * {name}" for name in extents for a, b in permutations(counted, 2)]
        yield from self._holding(values, sums)
        yield from self._pads(extents, values)

    def _pads(self, names: Sequence[str], values: Values) -> Iterator[str]:
        """Yield sizes, rounded up to tiles on all devices, or to larger units, that have these values."""
        others = [name for name in names if self.sizes[name] != values]
        yield from self._holding(values, [f"round_up({name}, {n} * devices)" for n, name in product(_UNITS, others)])

    def _holding(self, values: Values, texts: Sequence[str]) -> Iterator[str]:
        """Yield the expressions that have these values in the examples; quotients only if nothing is left."""
        for text in texts:
            rest = text.replace("//", "%")
            results = [
                [int(evaluate(expression, own)) for own in self.examples] for expression in dict.fromkeys([text, rest])
            ]
            if results[0] == list(values) and (rest == text or not any(results[1])):
                yield text

    @property
    def constant(self) -> dict[str, int]:
        """The sizes that are the same in all examples, but for the number of layers."""
        same = {name: own[0] for name, own in self.sizes.items() if len(set(own)) == 1}
        return {name: size for name, size in same.items() if "layers" not in name}

    def fingerprint(self, text: str) -> Values:
        """Return values that an expression has for other sizes, by which the same functions are told."""
        rng = np.random.default_rng(0)
        sizes = [{name: int(rng.integers(1 << 6, 1 << 20)) for name in self.sizes} for _ in range(3)]
        return tuple([int(evaluate(text, {**own, "devices": self.devices})) for own in sizes])

    def used_in(self, text: str) -> dict[str, str]:
        """Return the sizes that a text uses, and their expressions."""
        return {name: own for name, own in self.texts.items() if re.search(rf"\b{name}\b", text)}


def _is_size(value: object) -> bool:
    return type(value) is int and value > 0


# `Form`: an expression without its numbers.

_HOLES = {"slice": (1, 2), "pad": (1,), "paired": (1,), "halved": (1,), "interleave": (1,), "repeat": (1,)} | {
    "rows_of": (1,), "rest": (1,), "range": (0,), "reshape": tuple(range(1, 9)), "item": (1,)
}  # fmt: skip
_NAME_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
_PLACE = "number_{}"


class Hole(NamedTuple):
    """A number of an expression: its value, the function that takes it, and for a pad the padded extent."""

    value: int
    function: str
    padded: int | None = None


class _Former(ast.NodeTransformer):
    """Takes the numbers out of an expression, and lists of experts together; `extent_of` returns the extents of a part.

    The names of tensors have {layer} already, and get {expert}.
    """

    def __init__(self, extent_of: Callable[[str, int], int]) -> None:
        self.extent_of = extent_of
        self.holes: list[Hole] = []

    def add(self, value: int, function: str, padded: int | None = None) -> ast.Name:
        """Return a name in place of a number."""
        self.holes.append(Hole(value, function, padded))
        return ast.Name(_PLACE.format(len(self.holes) - 1))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        padded = None
        if name == "pad":
            axis = ast.literal_eval(node.args[2]) if len(node.args) > 2 else -1
            padded = self.extent_of(ast.unparse(node.args[0]), axis)
        arguments = [
            self.add(argument.value, name, padded)
            if k in _HOLES.get(name, ()) and isinstance(argument, ast.Constant) and type(argument.value) is int
            else self.visit(argument)
            for k, argument in enumerate(node.args)
        ]
        return ast.Call(node.func, arguments, [])

    def visit_List(self, node: ast.List) -> ast.AST:
        texts = [re.sub(rf"(?<=\.){k}(?=\.)", "{expert}", ast.unparse(element)) for k, element in enumerate(node.elts)]
        if len(texts) < 2 or len(set(texts)) > 1:
            return ast.List([self.visit(element) for element in node.elts], ast.Load())
        count = ast.Call(ast.Name("range"), [self.add(len(texts), "range")], [])
        element = self.visit(ast.parse(texts[0], mode="eval").body)
        return ast.ListComp(element, [ast.comprehension(ast.Name("expert"), count, [], 0)])


class Form(NamedTuple):
    """What the files of one kind have in common: name, expression and storage, with places for the numbers."""

    name: str
    text: str
    dtype: str
    layout: str
    memory: str
    mesh: str


class ExampleFile(NamedTuple):
    """A file of an example: its form, its layer, and the numbers of its name and of its expression."""

    form: Form
    layer: int | None
    named: tuple[int, ...]
    holes: tuple[Hole, ...]
    equal: frozenset[str]  # which sources have the contents of which others


class _Example:
    """A checkpoint, and the files that were made of it."""

    def __init__(self, checkpoint: FilePath, cache: FilePath) -> None:
        self.path, self.folder = checkpoint, CacheFolder(cache)
        config = read_config(checkpoint)
        if config is None:
            raise FileFormatError(f"{checkpoint} has no config.json; give the directory of a Hugging Face model")
        self.config = config
        self.tensors = open_tensors(checkpoint, follow_symlinks=True)
        parsed = {name: FileName.parse(name) for name in self.folder.names}
        optional = [name for name, parts in parsed.items() if parts is not None and parts.is_optional]
        self.names = [name for name in self.folder.names if name not in optional]  # without zeros for keys and values
        files = {name: read_tensorbin_tensor(self.folder.path / name, name) for name in self.names}
        self.files: dict[str, ExampleFile] = {}
        self.problems: dict[str, str] = {}
        for matched in match(self.tensors, files).matches:
            spec, mesh = self.folder.headers[matched.name]
            stored = (spec.dtype.name, spec.page_layout.name.lower(), _spell_memory(spec), _spell_mesh(mesh))
            named = parsed[matched.name]
            if matched.value is None:
                self.problems[matched.name] = matched.problem
            elif not matched.exact:
                self.problems[matched.name] = f"found only within one step of its format: {matched.text}"
            elif not stored[2]:
                self.problems[matched.name] = f"recipes have no such memory as {spec.memory}"
            elif named is None or (named.dtype, named.layout) != (stored[0].upper(), stored[1].upper()):
                self.problems[matched.name] = (
                    "its name does not end with _dtype_DTYPE_layout_LAYOUT, as its header says"
                )
            else:
                equal = [f"{name} equals {other}" for name, others in matched.others.items() for other in others]
                self.files[matched.name] = self._describe(named.name, matched.text, stored, equal)

    def _describe(self, name: str, text: str, stored: tuple[str, str, str, str], equal: Sequence[str]) -> ExampleFile:
        """Return a file by its name, its expression, its dtype, layout, memory and mesh, and its `equal` sources."""
        layer = NUMBER_IN_NAME.search(name)
        if layer is not None:
            name = NUMBER_IN_NAME.sub("{layer}", name, count=1)
            text = re.sub(rf"(tensor\('[^'0-9]*\.){layer[0]}(?=\.)", r"\1{layer}", text)
            equal = [re.sub(rf"(?<=\.){layer[0]}(?=\.)", "{layer}", line) for line in equal]
        named = tuple([int(number) for number in _NAME_NUMBER.findall(name)])
        counter = count()
        name = _NAME_NUMBER.sub(lambda _: f"{{{_PLACE.format(next(counter))}}}", name)
        former = _Former(lambda part, axis: self._extent(part, axis, "" if layer is None else layer[0]))
        tree = former.visit(ast.parse(text, mode="eval").body)
        form = Form(name, ast.unparse(tree), *stored)
        return ExampleFile(form, None if layer is None else int(layer[0]), named, tuple(former.holes), frozenset(equal))

    def _extent(self, text: str, axis: int, layer: str) -> int:
        return assemble(text.replace("{layer}", layer).replace("{expert}", "0"), self.tensors).shape[axis]


def _spell_memory(spec: TensorSpec) -> str:
    """Return the memory of a file as recipes have it, "" if they do not."""
    if spec.memory == interleaved("dram"):
        return "interleaved"
    if spec.memory.sharding is None or len(spec.shape.logical) < 2:
        return ""
    banks, (height, width) = spec.memory.sharding.grid.num_cores, spec.shape.logical[-2:]
    usual = width_sharded((banks, 1), (height, ceil_div(width, 32 * banks) * 32), buffer_type="dram")
    memory = TensorSpec(spec.shape, spec.dtype, spec.page_layout, memory=usual).memory
    return "dram_sharded" if memory == spec.memory else ""


def _spell_mesh(mesh: Mesh) -> str:
    """Return how the devices share a file, as recipes say it."""
    if suits_any_mesh(mesh):
        return "'replicated'"
    cuts = mesh.topology.placements
    return str(cuts[0]) if len(cuts) == 1 else f"({', '.join(map(str, cuts))})"


# `infer_recipe`.


@dataclass(frozen=True)
class NumberChoice:
    """A number of a recipe: where it is, its values in the examples, its expression, and others that fit as well.

    >>> choice = NumberChoice("wq: heads of", (64,), "head_dim", ("hidden_size // 4", "64"))
    >>> print(choice)
    wq: heads of 64: head_dim, or hidden_size // 4, or 64
    """

    where: str
    values: Values
    text: str
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        values = ", ".join(map(str, self.values))
        return f"{self.where} {values}: {', or '.join([self.text, *self.others])}"


@dataclass(frozen=True)
class RecipeByExample:
    """A recipe that was inferred from examples, and tested on them.

    `text` is the TOML that `prepare` runs with `recipe=`, for `machine`. `choices` are its numbers, with the
    expressions that the examples do not rule out; `equal` names tensors of the same contents in all
    examples, by the files that could be made of either; `unexplained` are files that no expression was found for, and
    `different` those that the recipe does not reproduce byte for byte.
    """

    text: str
    machine: str
    files: int
    choices: tuple[NumberChoice, ...]
    equal: tuple[str, ...] = ()
    unexplained: Mapping[str, str] = field(default_factory=dict, hash=False)
    different: tuple[str, ...] = ()

    @property
    def reproduced(self) -> bool:
        """Whether all files of all examples are reproduced."""
        return not self.unexplained and not self.different

    @property
    def ambiguous(self) -> list[NumberChoice]:
        """The numbers for which several expressions fit."""
        return [choice for choice in self.choices if choice.others]

    def save(self, path: FilePath) -> None:
        """Write the recipe to a `path`."""
        as_path(path).write_text(self.text, encoding="utf-8")

    def to_json(self) -> dict[str, Any]:
        """Return the recipe and the facts about it as plain data."""
        return {**asdict(self), "reproduced": self.reproduced}

    def __str__(self) -> str:
        good = self.files - len(self.different)
        every = count_of(self.files + len(self.unexplained), "file")
        lines = [f"a recipe for {self.machine}: {good} of {every} reproduced byte for byte"]
        lines += [f"not reproduced: {name}" for name in self.different]
        lines += [f"not explained: {name}: {problem}" for name, problem in self.unexplained.items()]
        return "\n".join([*lines, *[f"ambiguous: {line}" for line in (*self.equal, *self.ambiguous)]])


def infer_recipe(examples: Sequence[tuple[FilePath, FilePath]], machine: str | None = None) -> RecipeByExample:
    """Return the recipe by which caches were made of checkpoints, tested on these examples.

    Two examples of different sizes decide most of what one leaves open; all are of one machine, and of one family.

    Args:
        examples: pairs of a checkpoint with config.json and the folder of tensorbin files that was made of it.
        machine: the name of their machine, such as "N300"; by default the one whose mesh and memory the files have.

    >>> import tempfile
    >>> from tilewright.files import write_sample_llama
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_llama(f"{folder}/Llama-3.2-1B")
    ...     _ = prepare(f"{folder}/Llama-3.2-1B", f"{folder}/cache", "N300")
    ...     recipe = infer_recipe([(f"{folder}/Llama-3.2-1B", f"{folder}/cache")])
    >>> print(str(recipe).partition("\\n")[0])
    a recipe for N300: 22 of 22 files reproduced byte for byte
    """
    opened = [_Example(checkpoint, cache) for checkpoint, cache in examples]
    if not opened:
        raise FormatError("expected at least one example, a checkpoint and its cache, got none")
    return _Inference(opened, machine).result()


class _Output(NamedTuple):
    """A file of a recipe, or one for each layer: its form, and its numbers in each example."""

    form: Form
    files: tuple[str, ...]
    holes: tuple[tuple[Hole, ...], ...]
    named: tuple[Values, ...]
    only: Values | None  # the layers that have it, None for all


class _UnexplainedError(FormatError):
    """A number that is no expression of the sizes."""


class _Inference:
    """The inference of a recipe from examples."""

    def __init__(self, examples: Sequence[_Example], machine: str | None) -> None:
        self.examples = examples
        known = Recipe.load()
        self.machine = Machine.of(machine or self._find_machine(known), known).name
        self.table = known.devices[self.machine]
        self.numbers = Numbers([example.config for example in examples], prod(self.table.mesh))
        self.choices: dict[tuple[str, Values, str], NumberChoice] = {}
        self.problems = {name: text for example in examples for name, text in example.problems.items()}
        self.equal: list[str] = []
        self.unrelated: dict[str, str] = {}
        self.layered: list[str] = []  # outputs that not all layers have

    def _find_machine(self, known: Recipe) -> str:
        """Return the machine that has the mesh and the banks of the files."""
        specs = [spec for example in self.examples for spec, _ in example.folder.headers.values()]
        banks = {spec.memory.sharding.grid.num_cores for spec in specs if spec.memory.sharding is not None}
        meshes = {example.folder.mesh or (1, 1) for example in self.examples}
        same = [Machine.of(name, known) for name, table in known.devices.items() if meshes == {table.mesh}]
        names = [machine.name for machine in same if banks <= {machine.chip.banks("dram")}]
        if len(names) != 1:
            raise FormatError(
                f"the files are for a mesh of {' or '.join(map(str, sorted(meshes)))} and {sorted(banks)} banks, which"
                f" {list_some(names, 4) if names else 'no known machine'} has; name the machine, such as N300"
            )
        return names[0]

    def result(self) -> RecipeByExample:
        """Return the recipe, after a test."""
        outputs = list(self._outputs())
        text = self._spell(outputs)
        files = sum([name not in self.problems for example in self.examples for name in example.names])
        choices, different = tuple(self.choices.values()), self._test(text)
        result = RecipeByExample(text, self.machine, files, choices, tuple(self.equal), self.problems, different)
        comments = [
            f"# {line}"
            for line in [f"Inferred from {count_of(len(self.examples), 'example')}:", *str(result).split("\n")]
        ]
        return replace(result, text="\n".join([*comments, text]))

    def _outputs(self) -> Iterator[_Output]:
        """Yield the outputs; what does not have one form in all layers and examples becomes a problem."""
        forms: dict[Form, list[list[tuple[str, ExampleFile]]]] = defaultdict(lambda: [[] for _ in self.examples])
        for k, example in enumerate(self.examples):
            for name, file in example.files.items():
                forms[file.form][k].append((name, file))
        numbers = [
            [file.layer for file in example.files.values() if file.layer is not None] for example in self.examples
        ]
        self.layers = [1 + max(own, default=-1) for own in numbers]
        for form, groups in forms.items():
            units = [self._split(group) for group in groups]
            for parts in zip_longest(*units, fillvalue=[]):
                names = tuple([name for part in parts for name, _ in part])
                layers = [tuple(sorted([file.layer for _, file in part if file.layer is not None])) for part in parts]
                only = None if layers in ([(*range(n),) for n in self.layers], [()] * len(parts)) else layers[0]
                if not all(parts) or (only is not None and not len({*layers}) == len({*self.layers}) == 1):
                    problem = f"made as {form.text}, but not so in all layers and examples"
                    self.problems |= dict.fromkeys(names, problem)
                    continue
                equal = frozenset.intersection(*[file.equal for part in parts for _, file in part])
                self.equal += [f"{form.name}: {', '.join(sorted(equal))}"] if equal else []
                firsts = [part[0][1] for part in parts]
                holes, named = tuple([file.holes for file in firsts]), tuple([file.named for file in firsts])
                yield _Output(form, names, holes, named, only)

    @staticmethod
    def _split(group: Sequence[tuple[str, ExampleFile]]) -> list[list[tuple[str, ExampleFile]]]:
        """Return files of one form in groups that have the same numbers."""
        places: dict[tuple[Values, tuple[Hole, ...]], list[tuple[str, ExampleFile]]] = defaultdict(list)
        for name, file in group:
            places[file.named, file.holes].append((name, file))
        return [places[key] for key in sorted(places)]

    # The text of the recipe.

    def _choose(self, where: str, values: Values, function: str, prefer: str = "", **how: Any) -> str:
        """Return the expression of a number; others that fit are listed, unless they are the same function."""
        texts = sorted(self.numbers.explain(values, **how), key=lambda text: not (prefer and prefer in text))
        distinct: dict[tuple[int, ...], str] = {}
        for text in texts:
            distinct.setdefault(self.numbers.fingerprint(text), text)
        if not distinct:
            raise _UnexplainedError(
                f"no expression of the sizes in config.json has the values {list(values)} ({function})"
            )
        chosen, *others = distinct.values()
        if chosen.isdigit() and chosen != "0" and function in ("slice", "rest", "item", "pad", "reshape", "name"):
            is_word = function == "name" and how["literal"]  # such as the height of a tile, or the number of a mode
            self.unrelated |= {} if is_word else {where: f"{function} {chosen}"}
        choice = NumberChoice(f"{where}: {function}", values, chosen, tuple(others[:_MAX_LISTED]))
        return self.choices.setdefault((function, values, chosen), choice).text

    def _number(self, where: str, holes: Sequence[Hole]) -> str:
        function, values = holes[0].function, tuple([hole.value for hole in holes])
        padded = None if holes[0].padded is None else tuple([hole.padded or 0 for hole in holes])
        counts = function in ("interleave", "range", "item", "repeat")
        literal = function in ("rows_of", "repeat") or (
            max(values) < _LITERAL and function not in ("interleave", "range")
        )
        prefer = {"paired": "head_dim", "halved": "head_dim", "range": "experts"}.get(function, "")
        return self._choose(where, values, function, prefer, literal=literal, counts=counts, padded=padded)

    def _spell_output(self, output: _Output) -> tuple[str, str | None]:
        """Return an output in TOML, and a refusal of sizes for which its name may have other numbers."""
        form, where = output.form, re.sub(r"\{number_\d+\}", "N", output.form.name)
        columns = [*zip(*output.holes, strict=True)]
        texts = [self._number(where, holes) for holes in columns]
        same = {tuple([hole.value for hole in holes]): text for holes, text in zip(columns, texts, strict=True)}
        names, sizes = [], []
        for own in zip(*output.named, strict=True):
            literal = len(set(own)) == 1 and max(own) < _UNITS[1]
            known = None if literal else same.get(own)
            names.append(known or self._choose(where, own, "name", literal=literal))
            sizes += [] if names[-1].isdigit() else [(names[-1], max(own))]
        name, text = _fill(form.name, names), _fill(form.text, texts)
        loops = []
        if output.only is not None:
            name, text = (spelled.replace("{layer}", "{block}") for spelled in (name, text))
            loops = [f'each = {{ block = "{list(output.only)}" }}']
            self.layered.append(where)
        text = re.sub(r"tensor\('([^']*\{[^']*)'\)", r"tensor(f'\1')", text)
        lines = [
            "[[output]]",
            *loops,
            f"name = {json.dumps(name)}",
            f"value = {json.dumps(text)}",
            f'dtype = "{form.dtype}"',
            *([] if form.layout == "tile" else [f'layout = "{form.layout}"']),
            *([] if form.memory == "interleaved" else [f"memory = \"'{form.memory}'\""]),
            f'mesh = "{form.mesh}"',
        ]
        if not sizes or not any(text.isdigit() for text in names):
            return "\n".join(lines), None
        (size, most), *_ = sizes
        message = (
            f"f'the examples show {where} with numbers up to {most}, not {{{size}}}, of which there may be more parts'"
        )
        return "\n".join(lines), f"[[refuse]]\nwhen = {json.dumps(f'{size} > {most}')}\nmessage = {json.dumps(message)}"

    def _spell(self, outputs: Sequence[_Output]) -> str:
        """Return the recipe in TOML."""
        spelled = []
        for output in outputs:
            try:
                spelled.append(self._spell_output(output))
            except _UnexplainedError as problem:
                self.problems |= dict.fromkeys(output.files, str(problem))
        refusals = list(dict.fromkeys([refusal for _, refusal in spelled if refusal is not None]))
        body = "\n\n".join([*self._refuse_other_sizes(), *refusals, *[text for text, _ in spelled]])
        values = {}
        if any(self.layers):
            values["layers"] = self._choose("layers", tuple(self.layers), "count", "layers", counts=True)
        values = {**self.numbers.used_in(body + " " + values.get("layers", "")), **values}
        types = dict.fromkeys([str(example.config.get("model_type")) for example in self.examples])
        functions = {key: text for key, text in HELPERS.items() if f"{parse_signature(key)[0]}(" in body}
        chip, mesh, ring = self.table.chip, list(self.table.mesh), json.dumps(self.table.ring)
        head = [
            f"model_types = {json.dumps(list(types))}",
            'follows = "examples"',
            "",
            "[values]",
            *[f"{name} = {json.dumps(text)}" for name, text in values.items()],
            "",
            "[functions]",
            *[f"{json.dumps(name)} = {json.dumps(text)}" for name, text in functions.items()],
            "",
            "[devices]",
            f'{self.machine} = {{ chip = "{chip}", mesh = {mesh}, ring = {ring} }}',
        ]
        return "\n".join([*head, "", body, ""])

    def _refuse_other_sizes(self) -> Iterator[str]:
        """Yield a refusal of other sizes, as far as the examples share them, if some numbers are related to none."""
        if self.layered:
            message = f"'layers of the examples differ in {self.layered[0]}, and have {self.layers[0]} layers'"
            yield f"[[refuse]]\nwhen = {json.dumps(f'layers != {self.layers[0]}')}\nmessage = {json.dumps(message)}"
        constant = self.numbers.constant
        if not self.unrelated or not constant:
            return
        where, number = next(iter(self.unrelated.items()))
        message = (
            f"'the number of {where} ({number}) is no expression of the sizes in config.json, which the examples share:"
            f" {', '.join([f'{name} {size}' for name, size in constant.items()])}; infer the recipe from more examples'"
        )
        when = f"[{', '.join(constant)}] != {list(constant.values())}"
        yield f"[[refuse]]\nwhen = {json.dumps(when)}\nmessage = {json.dumps(message)}"

    def _test(self, text: str) -> tuple[str, ...]:
        """Return the files of the examples that the recipe does not make byte for byte."""
        different = []
        for example in self.examples:
            wanted = [name for name in example.names if name not in self.problems]
            with tempfile.TemporaryDirectory() as folder:
                recipe = Path(folder, "recipe.toml")
                recipe.write_text(text, encoding="utf-8")
                try:
                    prepare(example.path, f"{folder}/out", self.machine, recipe=recipe)
                except TilewrightError as problem:
                    different.append(f"{example.folder.path}: {problem}")
                    continue
                cache = CacheFolder(f"{folder}/out")
                good = [name for name in wanted if name in cache.names and _are_equal(cache, example.folder, name)]
                different += sorted({*wanted, *cache.names} - {*good})
        return tuple(different)


def _fill(text: str, numbers: Sequence[str]) -> str:
    """Return a text with expressions in the places of its numbers; in braces where these are."""

    def number(place: re.Match[str]) -> str:
        own = numbers[int(place[2])]
        return own if own.isdigit() or not place[1] else f"{{{own}}}"

    return re.sub(r"(\{?)number_(\d+)\}?", number, text)


def _are_equal(ours: CacheFolder, theirs: CacheFolder, name: str) -> bool:
    """Return whether a file has the same header and the same bytes of all devices in two folders."""
    a, b = ours.open(name), theirs.open(name)
    same = (a.spec, a.mesh) == (b.spec, b.mesh) and a.shards.keys() == b.shards.keys()
    return same and all(bytes(a.shards[at].data) == bytes(b.shards[at].data) for at in a.shards)
