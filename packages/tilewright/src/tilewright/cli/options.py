# SPDX-License-Identifier: Apache-2.0
"""Types of command-line values, such as shapes `4x60x90` and sizes `256MiB`; and the options that place a tensor."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from .._lazy import late_function
from .._text import canonical_word, parse_extents, parse_size, suggest
from ..errors import FileFormatError, MemoryConfigError
from .console import check_input_path, shorten
from .program import SectionedOption, refuse_options

if TYPE_CHECKING:
    from ..files import PendingTensor, StoredTensor
    from ..memory import Chip, MemoryConfig, Sharding, TensorSpec

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:  # older releases of click have no brackets here
    ParamType = click.ParamType

_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)")


class WordChoice(click.Choice):  # type: ignore[type-arg]  # older releases of click have no brackets here
    """A choice of words; case, dashes and spaces do not matter, and "column_major" is "col_major".

    >>> WordChoice(["row_major", "col_major"]).convert("COLUMN-MAJOR", None, None)
    'col_major'
    """

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the choice that a text names."""
        return super().convert(canonical_word(value) if isinstance(value, str) else value, param, ctx)


class ParsedType(ParamType):
    """The type of values that a function parses: a `ValueError` of `parse` is an error of the option.

    `names` returns the names that a shell completes.
    """

    def __init__(self, name: str, parse: Callable[[str], Any], names: Callable[[], Iterable[str]] = lambda: ()) -> None:
        self.name, self._parse, self._names = name, parse, names

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value that a text gives; one that is parsed already is returned as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as problem:  # including our own errors
            self.fail(str(problem), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that complete a prefix."""
        names = [name for name in self._names() if name.lower().startswith(incomplete.lower())]
        return [CompletionItem(name) for name in names]


class NameType(ParsedType):
    """The type of options that take one of the `names` that a function returns, which a shell completes.

    >>> NameType("chip", lambda: ["n150", "p150"]).convert("n150", None, None)
    'n150'
    """

    def __init__(self, name: str, names: Callable[[], Iterable[str]]) -> None:
        super().__init__(name, self._choose, names)

    def _choose(self, text: str) -> str:
        names = list(self._names())
        if text not in names:
            raise ValueError(f"unknown {self.name} {text!r}; {suggest(text, names)}")
        return text


class TensorName(ParamType):
    """The type of names of tensors: completed from the header of the file that was named before.

    >>> TensorName().convert("layers.*", None, None)
    'layers.*'
    """

    name = "name"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that complete a prefix."""
        from ..files import open_tensors

        for value in (*ctx.params.values(), *ctx.args):  # the option that waits for its value ends the parsing
            if isinstance(value, str) and os.path.exists(value):
                with suppress(Exception):  # no messages during completion
                    return [CompletionItem(name) for name in open_tensors(value) if name.startswith(incomplete)]
        return []


def integer_list(what: str, example: str, count: int | None = None) -> ParsedType:
    """Return the type of integers as in 2,33,17; `what` and `example` are for messages, `count` is their number.

    >>> integer_list("coordinate", "2,33,17").convert("0x10, 5", None, None)
    (16, 5)
    """

    def parse(text: str) -> tuple[int, ...]:
        content = text.strip().strip("()[]")
        parts = [part.strip() for part in content.rstrip(",").split(",")] if content else []
        if not all(_NUMBER.fullmatch(part) for part in parts) or count not in (None, len(parts)):
            raise ValueError(f"{text!r} is not a {what}; write it as {example}")
        return tuple([int(part, 0) if "x" in part.lower() else int(part) for part in parts])

    return ParsedType(what.rsplit(maxsplit=1)[-1], parse)


def _parse_shape(text: str) -> tuple[int, ...]:
    """Return extents, as in 4x60x90; a single number is a vector, and () has no dimensions."""
    extents = parse_extents(text) if text.strip() else None
    if extents is None:
        raise ValueError(f"{shorten(text)!r} is not a shape; write extents as 4x60x90")
    return extents


def parse_shape(text: str) -> tuple[int, ...]:
    """Return the extents of a text that is neither the name of a file nor a layout.

    >>> parse_shape("4x60x90")
    (4, 60, 90)
    """
    try:
        return _parse_shape(text)
    except ValueError as problem:
        check_input_path(text)
        raise click.UsageError(f"{problem}, or name an existing file") from None


def _parse_byte_count(text: str) -> int:
    """Return bytes, as in 256MiB, 1.5GiB, 64KB or 4096."""
    size = parse_size(text)
    if size is None:
        raise ValueError(f"{text!r} is not a size; write it as 256MiB, 1.5GiB or a number of bytes")
    return size


def _parse_address(text: str) -> int:
    """Return a byte address, decimal or as 0x16e9d1."""
    digits = text.strip().replace("_", "")
    if not _NUMBER.fullmatch(digits) or digits.startswith("-"):
        raise ValueError(f"{text!r} is not an address; write it as 1498385 or 0x16dd11")
    return int(digits, 16) if "x" in digits.lower() else int(digits)


def _parse_device(text: str) -> int | tuple[int, ...]:
    """Return a device of a mesh: its coordinate, as in 1,0, or its number."""
    numbers = parse_extents(text)
    if not numbers:
        raise ValueError(f"{text!r} is not a device of a mesh; write its coordinate as 1,0, or its number")
    return numbers if len(numbers) > 1 else numbers[0]


def _parse_format(text: str) -> str:
    from ..formats import format_of

    return format_of(text).name


def _format_names() -> Iterable[str]:
    from ..formats import BLOCK_FORMATS, SCALAR_FORMATS

    return (*BLOCK_FORMATS, *SCALAR_FORMATS)


def _parse_chip(text: str) -> Chip | str:
    """Return a chip by name, or from the TOML file that describes one; "none" is itself."""
    from ..memory import Chip, chip_names

    if text == NO_CHIP:
        return text
    if text.endswith(".toml"):
        return Chip.read(text)
    try:
        return Chip.named(text)
    except MemoryConfigError as problem:
        if not str(problem).startswith("unknown chip"):
            raise
        otherwise = f"use one of {', '.join(chip_names())}, or the path of a .toml file that describes another"
        raise ValueError(f"unknown chip {text!r}; {suggest(text, chip_names(aliases=True), otherwise)}") from None


def _machine_names() -> Iterable[str]:
    from ..conversion import Recipe

    return [word for name, table in Recipe.load().devices.items() for word in (name, *table.also)]


SHAPE = ParsedType("shape", _parse_shape)
SIZE = ParsedType("size", _parse_byte_count)
ADDRESS = ParsedType("address", _parse_address)
GRID = ParsedType("grid", late_function("tilewright", "memory", "parse_grid"))
FORMAT = ParsedType("format", _parse_format, _format_names)
CHIP = ParsedType("chip", _parse_chip, partial(late_function("tilewright", "memory", "chip_names"), aliases=True))
MACHINE = ParsedType("machine", str, _machine_names)  # which recipes of users may add to
COORDINATE = integer_list("coordinate", "2,33,17")
DEVICE = ParsedType("device", _parse_device)
CORE = integer_list("core", "column,row, such as 0,5", 2)
DIMENSIONS = integer_list("list of dimensions", "0,1")


FILE, FOLDER = click.Path(dir_okay=False), click.Path(file_okay=False)  # that are written
tensors_option = click.option(
    "--tensor", "tensors", multiple=True, type=TensorName(), help="Only this tensor, or a pattern; may be repeated."
)
device_option = click.option(
    "--device", type=DEVICE, metavar="R,C", help="Only the part on this device of a mesh: coordinate or number."
)

DEFAULT_CHIP, NO_CHIP = "wormhole_n150", "none"
PRINTED_CONFIG = ("MemoryConfig(", "ttnn.", "tt::")  # how ttnn's memory configs begin
SHARDS = ("height", "width", "block", "nd", "dims")
CHIP_OPTIONS = frozenset(("chip", "dispatch", "harvested"))  # options that a file does not decide
FILE_OPTIONS = ("tensor", "device", "follow_links")  # options that need a file
LAYOUT_OPTIONS = frozenset(("layout", "tile", "transpose_tile"))  # any of which decides between rows and tiles


@dataclass(frozen=True, slots=True)
class SpecOptions:
    """How tensors are to be placed, as given on the command line.

    >>> SpecOptions(dtype="bfloat8_b", shard="block", grid=(8, 8)).build_spec((4, 60, 90)).where(2, 33, 17).core
    CoreCoord(x=0, y=5)
    """

    dtype: str = "bfloat16"
    layout: str | None = None
    tile: tuple[int, ...] | None = None
    transpose_tile: bool = False
    alignment: tuple[int, ...] | None = None
    shard: Any = None  # or the memory config that ttnn printed, in place of all options of memory
    grid: Any = None
    shard_shape: tuple[int, ...] | None = None
    shard_dims: tuple[int, ...] | None = None
    orientation: str | None = None
    distribution: str | None = None
    buffer: str | None = None
    chip: Any = None
    dispatch: str | None = None
    harvested: int | None = None

    def build_chip(self) -> Chip:
        """Return the chip, with the dispatch and harvesting that were asked for.

        >>> SpecOptions(chip="n150", dispatch="slow").build_chip().compute_grid
        CoreCoord(x=8, y=9)
        """
        from ..memory import Chip

        if self.chip == NO_CHIP:
            raise click.UsageError("this needs a chip; remove --chip none")
        chip = Chip.of(self.chip or DEFAULT_CHIP)
        changes: dict[str, Any] = {"dispatch": self.dispatch, "harvested": self.harvested}
        return replace(chip, **{name: value for name, value in changes.items() if value is not None})

    def find_chip(self) -> Chip | None:
        """Return the chip, or None without one: if so asked, or by default for a tile that no chip has.

        >>> SpecOptions(chip="none").find_chip(), SpecOptions(tile=(2, 2)).find_chip(), SpecOptions().find_chip().name
        (None, None, 'wormhole_n150')
        """
        from ..memory import Tile

        by_default = self.chip is None and self.tile is not None and not Tile(self.tile).is_on_chips
        if self.chip != NO_CHIP and not by_default:
            return self.build_chip()
        for name in ("dispatch", "harvested"):
            if getattr(self, name) is not None:
                raise click.UsageError(f"--{name} needs a chip; add --chip, or remove --{name}")
        return None

    def spec_arguments(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Return the arguments of the `TensorSpec` of a shape, which need not be legal.

        >>> SpecOptions(tile=(16, 32), layout="tile").spec_arguments((4, 4))["tile"]
        Tile((16, 32))
        """
        from ..memory import Tile

        tiled = self.tile is not None or self.transpose_tile
        return {
            "shape": shape,
            "dtype": self.dtype,
            "page_layout": self.layout or ("tile" if tiled else None),
            "tile": Tile(self.tile or (32, 32), self.transpose_tile) if tiled else None,
            "memory": self.memory(),
            "chip": self.find_chip(),
            "alignment": self.alignment,
        }

    def build_spec(self, shape: tuple[int, ...]) -> TensorSpec:
        """Return the spec of a tensor of this shape.

        >>> SpecOptions(layout="tile").build_spec((60, 90)).num_pages
        6
        """
        from ..memory import TensorSpec

        return TensorSpec(**self.spec_arguments(shape))

    def memory(self) -> MemoryConfig | Sharding:
        """Return the memory configuration that the options ask for.

        >>> SpecOptions(shard="height", grid=(2, 1)).memory().strategy
        ShardStrategy.HEIGHT
        """
        from .. import memory

        if isinstance(self.shard, memory.MemoryConfig):
            return self.shard
        if self.shard is None:
            for name in ("grid", "shard_shape", "shard_dims", "orientation", "distribution"):
                if getattr(self, name) is not None:
                    raise click.UsageError(f"--{name.replace('_', '-')} needs --shard, one of {', '.join(SHARDS)}")
            return memory.interleaved(self.buffer or "dram")
        for name, used in (("distribution", ("nd",)), ("shard_dims", ("dims",)), ("shard_shape", SHARDS[:-1])):
            if getattr(self, name) is not None and self.shard not in used:
                option = f"--{name.replace('_', '-')}"
                raise click.UsageError(f"{option} has no effect with --shard {self.shard}; remove {option}")
        orientation = self.orientation or "row_major"
        buffer = self.buffer or "l1"
        cores = tuple(self.build_chip().shard_grid(buffer)) if self.grid is None else self.grid
        if self.shard == "dims":
            if self.shard_dims is None:
                raise click.UsageError("--shard dims needs --shard-dims, such as 0,1")
            return memory.sharded_across_dims(list(self.shard_dims), cores, orientation, buffer)
        if self.shard == "nd":
            if self.shard_shape is None:
                raise click.UsageError("--shard nd needs --shard-shape, such as 1x64x32")
            distribution = self.distribution or "round_robin_1d"
            return memory.nd_sharded(self.shard_shape, cores, orientation, distribution, buffer)
        strategies = {"height": memory.height_sharded, "width": memory.width_sharded, "block": memory.block_sharded}
        return strategies[self.shard](cores, self.shard_shape, orientation, buffer)

    @staticmethod
    def setting_names(settings: str) -> frozenset[str]:
        """Return the names of the options that settings after a shape override.

        >>> sorted(SpecOptions.setting_names("dtype=float32:shard-shape=32x32"))
        ['dtype', 'shard_shape']
        """
        if settings.lstrip().startswith(PRINTED_CONFIG):
            return MEMORY_OPTIONS
        return frozenset(setting.partition("=")[0].replace("-", "_") for setting in settings.split(":") if setting)

    def with_settings(self, settings: str) -> SpecOptions:
        """Return the placement with settings as they follow a shape: `dtype=float32:shard=block:grid=8x8`.

        They may be a memory config as ttnn prints it.

        >>> SpecOptions().with_settings("dtype=float32:layout=tile").dtype
        'float32'
        """
        if settings.lstrip().startswith(PRINTED_CONFIG):
            from ..notation import parse_memory_config

            try:
                return replace(self, shard=parse_memory_config(settings))
            except FileFormatError as problem:
                raise click.UsageError(str(problem)) from None
        changes: dict[str, Any] = {}
        for setting in settings.split(":") if settings else ():
            name, equals, value = setting.partition("=")
            option = _BY_NAME.get(name.replace("-", "_"))
            if option is None or not (equals or option.is_flag):
                names = [option_name.replace("_", "-") for option_name in _BY_NAME]
                otherwise = f"write NAME=VALUE, with NAME one of {', '.join(names)}"
                hint = otherwise if option is not None else suggest(name, names, otherwise)
                raise click.UsageError(f"{setting!r} is not a setting of a tensor; {hint}")
            try:
                converted = option.type.convert(value if equals else True, option, None)
            except click.BadParameter as problem:
                problem.param_hint = f"'{name}' of a tensor"
                raise
            if option.name in changes:
                raise click.UsageError(f"{setting!r}: {name} is set twice for one tensor; set it once")
            changes[str(option.name)] = converted
        return replace(self, **changes)


PLACEMENT_OPTIONS = frozenset(field.name for field in fields(SpecOptions))
STATED_BY_TEXT = PLACEMENT_OPTIONS - CHIP_OPTIONS
"""The options whose place a printed tensor takes."""
MEMORY_OPTIONS = STATED_BY_TEXT - {"dtype", "layout", "tile", "transpose_tile", "alignment"}
"""The options whose place a printed memory config takes."""


def refuse_overridden(stated: Iterable[frozenset[str]]) -> None:
    """Raise if an option of placements was typed that every tensor states itself; `stated` are the options of each."""
    sets = list(stated)
    overridden = frozenset.intersection(*sets) if sets else frozenset()
    refuse_options(overridden, "where every tensor states it" if len(sets) > 1 else "on a tensor that states it")


def _option(*names: str, **settings: Any) -> SectionedOption:
    return SectionedOption(list(names), section="Placement", **settings)


_OPTIONS = (
    _option("--dtype", type=FORMAT, default="bfloat16", show_default=True, help="Number format."),
    _option("--layout", type=WordChoice(["row_major", "tile"]), help="Page layout. [tile for block formats]"),
    _option("--tile", type=SHAPE, metavar="HxW", help="Shape of a tile. [32x32]"),
    _option("--transpose-tile", is_flag=True, help="Store tiles column by column."),
    _option("--alignment", type=SHAPE, help="Pad the last dimensions to multiples of these."),
    _option("--shard", type=WordChoice(SHARDS), help="Cut into shards, one or more per core."),
    _option(
        "--grid", type=GRID, metavar="COLSxROWS", help="Cores, or ranges 0,0-3,1+5,0-5,1. [all cores, or DRAM banks]"
    ),
    _option("--shard-shape", type=SHAPE, help="Shape of a shard. [computed]"),
    _option("--shard-dims", type=DIMENSIONS, metavar="D,D", help="Dimensions to cut, with --shard dims."),
    _option("--orientation", type=WordChoice(["row_major", "col_major"]), help="Order of cores. [row_major]"),
    _option(
        "--distribution",
        type=WordChoice(["round_robin_1d", "grid_2d", "contiguous_1d"]),
        help="How --shard nd assigns shards to cores. [round_robin_1d]",
    ),
    _option("--buffer", type=WordChoice(["l1", "dram"]), help="Memory. [dram, or l1 for shards]"),
    _option(
        "--chip", type=CHIP, help=f"Chip, by name or a TOML file, or none. [{DEFAULT_CHIP}; none for tiles of no chip]"
    ),
    _option("--dispatch", type=WordChoice(["fast", "slow"]), help="Dispatch mode; fast reserves some cores. [fast]"),
    _option(
        "--harvested", type=click.IntRange(min=0), metavar="N", help="Number of disabled rows or columns of cores."
    ),
)
_BY_NAME = {str(option.name): option for option in _OPTIONS}


def spec_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a verb's function with the options of a placement, which it gets as the argument `options`.

    >>> @spec_options
    ... def show(options: SpecOptions) -> None: ...
    >>> len(show.__click_params__) == len(fields(SpecOptions))
    True
    """

    return group_options("options", SpecOptions, _OPTIONS)(function)


def group_options(
    argument: str, group: type, options: Sequence[click.Option]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a verb some `options` as one `argument`: an object of the class `group`.

    >>> @group_options("options", SpecOptions, _OPTIONS)
    ... def show(options: SpecOptions) -> None: ...
    >>> [option.name for option in show.__click_params__][:2]
    ['harvested', 'dispatch']
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_group(*args: Any, **values: Any) -> Any:
            own = {field.name: values.pop(field.name) for field in fields(group)}
            return function(*args, **{argument: group(**own)}, **values)

        params = getattr(function, "__click_params__", [])  # where click keeps them
        with_group.__click_params__ = [*params, *reversed(options)]  # type: ignore[attr-defined]
        return with_group

    return decorate


def stated_by_file(tensor: StoredTensor | PendingTensor, typed: frozenset[str]) -> frozenset[str]:
    """Return the options that a stored `tensor` overrides, except those that were `typed`."""
    if tensor.spec is None or typed - CHIP_OPTIONS:
        return frozenset(() if tensor.format is None else ("dtype",))
    return STATED_BY_TEXT | frozenset(() if tensor.spec.chip is None else ("chip",))


def list_assumptions(spec: TensorSpec, typed: Iterable[str]) -> dict[str, str]:
    """Return the assumptions about the placement of a `spec`: its dtype, page layout and chip.

    `typed` names the options that were typed, and those whose place a file or a printed text takes.

    >>> list_assumptions(SpecOptions().build_spec((4, 4)), {"chip"})
    {'dtype': 'bfloat16', 'page_layout': 'row_major'}
    """
    stated, assumed = frozenset(typed), {}
    if "dtype" not in stated:
        assumed["dtype"] = spec.dtype.name
    if not stated & LAYOUT_OPTIONS and not spec.dtype.has_blocks:  # which are in tiles
        assumed["page_layout"] = spec.page_layout.name.lower()
    if "chip" not in stated and spec.chip is not None:
        assumed["chip"] = spec.chip.name
    return assumed


def describe_assumptions(assumed: Mapping[str, str]) -> str:
    """Return the assumptions as a line, "" if there are none.

    >>> describe_assumptions({"dtype": "bfloat16", "page_layout": "row_major"})
    'bfloat16, row-major'
    """
    return ", ".join([value.replace("row_major", "row-major") for value in assumed.values()])


def typed_options(context: click.Context) -> frozenset[str]:
    """Return the names of the placement options that were typed, not left at their defaults.

    >>> typed_options(click.Context(click.Command("show")))
    frozenset()
    """
    typed = click.core.ParameterSource.COMMANDLINE
    return frozenset(name for name in PLACEMENT_OPTIONS if context.get_parameter_source(name) is typed)
