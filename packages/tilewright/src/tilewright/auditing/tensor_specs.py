# SPDX-License-Identifier: Apache-2.0
"""The specs of tensors in a report: from the texts of shape, format, layout and memory config to `TensorSpec`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import FileFormatError, TilewrightError
from ..memory import HEIGHTS, WIDTHS, Chip, MemoryConfig, PageLayout, TensorSpec, placement_violations
from ..notation import parse_dtype, parse_memory_config, parse_shape, parse_ttnn

TILE_SHAPES = tuple([(height, width) for width in WIDTHS for height in HEIGHTS])  # wide ones are more common


@dataclass(frozen=True, slots=True)
class SpecText:
    """What a report says about a tensor: the texts of its `shape`, `dtype`, `layout` and `memory_config`.

    >>> SpecText.of({"shape": "Shape([32, 64])", "dtype": "DataType::BFLOAT16", "layout": "Layout::TILE"}).shape
    'Shape([32, 64])'
    """

    shape: str
    dtype: str
    layout: str
    memory_config: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SpecText:
        """Return the texts among the `values` of a tensor by name; what is missing is empty.

        >>> SpecText.of({}).dtype
        ''
        """
        texts = [values.get(name) for name in ("shape", "dtype", "layout", "memory_config")]
        return cls(*[text if isinstance(text, str) else "" for text in texts])


@dataclass(frozen=True, slots=True)
class ReadSpec:
    """The spec of a tensor, or the `problem` why it has none: a text that is not understood, or a rule it breaks.

    If the two forms of shards in its config contradict each other, `conflict` says how, and `other` is the spec with
    the form that does not decide.

    >>> ReadSpec(None, "the shape is missing").spec is None
    True
    """

    spec: TensorSpec | None
    problem: str = ""
    breaks_rule: bool = False
    conflict: str = ""
    other: TensorSpec | None = None


@dataclass
class SpecReader:
    """Reads specs for a chip; each text is parsed once.

    >>> config = "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1)"
    >>> texts = SpecText("Shape([48, 64])", "DataType::BFLOAT16", "Layout::TILE", config)
    >>> print(SpecReader(Chip.named("wormhole_n150")).read(texts).spec)
    [48[64], 64] bfloat16 in tiles of 32 x 32, interleaved in L1, wormhole_n150
    """

    chip: Chip
    known: dict[SpecText, ReadSpec] = field(default_factory=dict)

    def read(self, texts: SpecText) -> ReadSpec:
        """Return the spec that `texts` describe.

        >>> SpecReader(Chip.named("wormhole_n150")).read(SpecText("", "", "", "")).problem != ""
        True
        """
        if texts not in self.known:
            self.known[texts] = _read_spec(texts, self.chip)
        return self.known[texts]

    def with_other_tiles(self, spec: TensorSpec) -> list[TensorSpec]:
        """Return the specs of the same tensor in every other tile, which a report does not name.

        >>> len(SpecReader(Chip.named("n150")).with_other_tiles(TensorSpec((64, 64), page_layout="tile", chip="n150")))
        11
        """
        if spec.page_layout is not PageLayout.TILE:
            return []
        specs = []
        for tile in TILE_SHAPES:
            try:
                specs.append(spec.replace(tile=tile))
            except TilewrightError:  # its shards are not whole tiles
                continue
        return [other for other in specs if other.tile != spec.tile]


def _read_spec(texts: SpecText, chip: Chip) -> ReadSpec:
    try:
        shape, dtype = parse_shape(texts.shape).logical, parse_dtype(texts.dtype)
        config, layout = parse_memory_config(texts.memory_config), parse_ttnn(texts.layout).value
        if not isinstance(layout, PageLayout):
            raise FileFormatError(f"expected a layout such as Layout::TILE, got {texts.layout[:40]!r}")
    except TilewrightError as error:
        return ReadSpec(None, str(error))
    if config.is_sharded and config.sharding is None:
        return ReadSpec(None, f"a {config.memory_layout} config without shards has no placement")

    def build(memory: MemoryConfig) -> ReadSpec:
        tile = _tile_of_shards(memory) if layout is PageLayout.TILE else None
        try:
            spec = TensorSpec(shape, dtype, layout, tile, memory, chip)
            for violation in placement_violations(spec, any_size=True):
                return ReadSpec(None, str(violation), True)
            spec.bytes_per_bank  # noqa: B018  (the whole placement is computed here, or refused)
        except TilewrightError as error:
            return ReadSpec(None, str(error), True)
        return ReadSpec(spec)

    result = build(config)
    conflict = _find_conflict(config, result.spec)
    swapped = _swap_forms(config)
    if not conflict:
        return result
    return replace(result, conflict=conflict, other=None if swapped is None else build(swapped).spec)


def _swap_forms(config: MemoryConfig) -> MemoryConfig | None:
    """Return the config in which the form of shards decides that is only a label in this one, if there is one."""
    if config.shard_spec is None or config.nd_shard_spec is None:
        return None
    if config.made_with_nd:
        return MemoryConfig(config.memory_layout, config.buffer_type, config.shard_spec)
    return MemoryConfig(config.memory_layout, config.buffer_type, nd_shard_spec=config.nd_shard_spec)


def _tile_of_shards(config: MemoryConfig) -> tuple[int, int] | None:
    """Return the largest tile that the shards of a config are whole multiples of, or None for the usual one."""
    sharding = config.sharding
    if sharding is None:
        return None
    height = sharding.shape[-2] if len(sharding.shape) > 1 else 1
    width = sharding.shape[-1]
    if height % 32 == 0 and width % 32 == 0:
        return None
    fitting = [tile for tile in TILE_SHAPES if height % tile[0] == 0 and width % tile[1] == 0]
    return max(fitting, key=lambda tile: tile[0] * tile[1], default=None)


def _find_conflict(config: MemoryConfig, spec: TensorSpec | None) -> str:
    """Return how the two forms of shards in a printed config contradict each other, or nothing."""
    matrix, general = config.shard_spec, config.nd_shard_spec
    if config.made_with_nd and general is not None and spec is not None:
        derived, layout = spec.memory.shard_spec, spec.memory.memory_layout
        if (matrix, config.memory_layout) == (derived, layout):
            return ""
        printed = "no shard_spec" if matrix is None else f"shard_spec {list(matrix.shape)}"
        label = "none" if derived is None else f"{list(derived.shape)}"
        return (
            f"it says {config.memory_layout} and {printed}, but nd_shard_spec {list(general.shape)} amounts to {layout}"
            f" and {label}"
        )
    if matrix is None or general is None or config.made_with_nd:
        return ""
    # the general form of a vector has no height
    same = (general.grid, general.orientation) == (matrix.grid, matrix.orientation)
    if same and general.shape in (matrix.shape, matrix.shape[-1:]):
        return ""
    return (
        f"shard_spec says {list(matrix.shape)} on {matrix.grid}, but nd_shard_spec says {list(general.shape)} on"
        f" {general.grid}"
    )
