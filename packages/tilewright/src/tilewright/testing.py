# SPDX-License-Identifier: Apache-2.0
"""For the tests of operations: which pages each core must hold, where, in which C++ header, and whether it does.
And for recipes, rules and layouts in files: whether they are right.

Tensors are given as specs, tensors of any dialect, or texts that ttnn printed. Nothing here needs pytest; failures are
plain `AssertionError`s.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._files import replace_file
from ._operation_check import OperationCheck, check_operation
from .checks import CheckedText, check_file
from .errors import FormatError, MemoryConfigError
from .memory import Chip, CoreCoord, MemoryConfig, PageTable, TensorSpec, as_spec, device_address
from .notation import parse_ttnn
from .traffic import reshard

__all__ = [
    "CheckedText",
    "CorePages",
    "OperationCheck",
    "assert_same_placement",
    "check_file",
    "check_operation",
    "expected_pages",
    "runtime_arguments",
    "write_accessor_header",
    "write_cpp_header",
]

ChipLike = Chip | str | None
_CPP_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MAX_HEADER_PAGES = 1 << 20  # a compiler takes minutes for more


@dataclass(frozen=True, slots=True, eq=False)
class CorePages:
    """The pages of one core or bank, and their addresses, as arrays in the order of the addresses.

    >>> pages = expected_pages(TensorSpec((32, 64), page_layout="tile", chip="wormhole_n150"))[1, 0]
    >>> pages.pages.tolist(), pages.addresses.tolist(), pages.bank
    ([1], [1048640], 1)
    """

    bank: int
    pages: NDArray[np.int64]
    addresses: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.pages)


def expected_pages(tensor: object, chip: ChipLike = None, base: int | None = None) -> dict[CoreCoord, CorePages]:
    """Return the pages that each core must hold, and their addresses; cores without pages are left out.

    Args:
        tensor: a spec, a tensor of any dialect, or a tensor spec that ttnn printed.
        chip: the chip, if the tensor has none.
        base: the address of the buffer; by default the tensor's, or the first one on an empty chip.

    Banks of DRAM count as cores (bank, 0).

    >>> from tilewright import block_sharded
    >>> spec = TensorSpec((128, 128), page_layout="tile", memory=block_sharded((2, 2)), chip="wormhole_n150")
    >>> expected_pages(spec)[1, 0].pages.tolist()
    [2, 3, 6, 7]
    >>> (expected_pages(spec, base=0x1000)[1, 0].addresses - 0x1000).tolist()
    [0, 2048, 4096, 6144]
    """
    spec = _as_placed(tensor, chip)
    return _group_by_core(spec.pages(_buffer_address(spec, tensor, base)))


def _group_by_core(table: PageTable) -> dict[CoreCoord, CorePages]:
    order = np.lexsort((table.address, table.core_x, table.core_y))
    x, y = table.core_x[order], table.core_y[order]
    edges = np.flatnonzero((np.diff(x) != 0) | (np.diff(y) != 0)) + 1
    groups = np.split(order, edges) if len(order) else []
    return {
        CoreCoord(int(table.core_x[group[0]]), int(table.core_y[group[0]])): CorePages(
            int(table.bank[group[0]]), group, table.address[group]
        )
        for group in groups
    }


def assert_same_placement(first: object, second: object, chip: ChipLike = None, absolute: bool = False) -> None:
    """Raise an `AssertionError` unless two tensors have the same pages in the same places.

    The error names the first page that differs, with both places. A memory config stands for the other tensor in that
    memory.

    Args:
        first: a spec, a tensor of any dialect, a memory config, or a text that ttnn printed.
        second: the same.
        chip: the chip, if neither has one.
        absolute: compare addresses, not only offsets from the start of the buffer, which depends on other buffers.

    >>> from tilewright import height_sharded
    >>> spec = TensorSpec((128, 64), page_layout="tile", memory=height_sharded((2, 1)), chip="wormhole_n150")
    >>> assert_same_placement(spec, spec)
    >>> try:
    ...     assert_same_placement(spec, spec.with_memory(height_sharded((1, 2))))
    ... except AssertionError as problem:
    ...     print(str(problem).partition(";")[0])
    page 4 of 8 is on core (1, 0) at offset 0 in the first tensor, on core (0, 1) at offset 0 in the second
    """
    __tracebackhide__ = True  # pytest then shows the caller
    specs = _as_pair(first, second, chip)
    difference = _difference(*specs) or _page_difference(specs, (first, second), absolute)
    if difference:
        raise AssertionError(f"{difference}\n  first:  {specs[0]!r}\n  second: {specs[1]!r}")


def _difference(first: TensorSpec, second: TensorSpec) -> str:
    """Return how the pages themselves differ, or nothing."""
    for name, values in (
        ("shape", (list(first.shape.logical), list(second.shape.logical))),
        ("dtype", (first.dtype.name, second.dtype.name)),
        ("page layout", (first.page_layout.name.lower(), second.page_layout.name.lower())),
        ("tile", (first.tile, second.tile)),
        ("chip", (first.known_chip, second.known_chip)),
        ("memory", (first.memory.buffer_type, second.memory.buffer_type)),
        ("padded shape", (list(first.padded_shape), list(second.padded_shape))),
        ("page size", (first.page_bytes, second.page_bytes)),
    ):
        if values[0] != values[1]:
            return f"the {name} is {values[0]} in the first tensor, {values[1]} in the second"
    return ""


def _page_difference(specs: tuple[TensorSpec, TensorSpec], values: tuple[Any, Any], absolute: bool) -> str:
    """Return the first page that is elsewhere, or nothing."""
    base = None if absolute else 0
    tables = [spec.pages(_buffer_address(spec, value, base)) for spec, value in zip(specs, values, strict=True)]
    parts = [(table.bank, table.core_x, table.core_y, table.address) for table in tables]
    differs = np.any([a != b for a, b in zip(*parts, strict=True)], axis=0)
    pages = np.flatnonzero(differs)
    if not len(pages):
        return ""
    page, total = int(pages[0]), len(differs)
    places = [_place_text(spec, table, page, absolute) for spec, table in zip(specs, tables, strict=True)]
    return (
        f"page {page} of {total} is {places[0]} in the first tensor, {places[1]} in the second;"
        f" {len(pages)} of {total} pages differ"
    )


def _place_text(spec: TensorSpec, table: PageTable, page: int, absolute: bool) -> str:
    core = CoreCoord(int(table.core_x[page]), int(table.core_y[page]))
    where = f"on core {core}" if spec.memory.buffer_type.is_l1 else f"in bank {int(table.bank[page])}"
    return f"{where} at {'address' if absolute else 'offset'} {int(table.address[page])}"


def _buffer_address(spec: TensorSpec, tensor: object, base: int | None) -> int:
    """Return the given address, the address of a tensor on a device, or the first one on an empty chip."""
    if base is None and not isinstance(tensor, str):
        base = device_address(tensor)
    return spec.address_on_empty_chip if base is None else base


def _as_placed(tensor: object, chip: ChipLike) -> TensorSpec:
    """Return the spec of a tensor on a chip."""
    value = _read_text(tensor)
    if isinstance(value, MemoryConfig):
        raise MemoryConfigError(f"{value} does not describe a tensor; pass a tensor spec or a tensor")
    spec = as_spec(value)
    return spec if spec.chip is not None or chip is None else spec.with_chip(chip)


def _read_text(tensor: object) -> Any:
    value = parse_ttnn(tensor).value if isinstance(tensor, str) else tensor
    plain = getattr(value, "plain", value)
    return plain if isinstance(plain, MemoryConfig) else value


def _as_pair(first: object, second: object, chip: ChipLike) -> tuple[TensorSpec, TensorSpec]:
    """Return two specs, each with the chip of the other if it has none, or its shape if it is only a memory config."""
    values = [_read_text(first), _read_text(second)]
    known = [as_spec(value) for value in values if not isinstance(value, MemoryConfig)]
    if not known:
        raise MemoryConfigError("two memory configs describe no tensor; one side must be a spec or a tensor")
    chips = [spec.chip for spec in known if spec.chip is not None]
    default = chips[0] if chips else chip
    specs = [known[0].with_memory(value) if isinstance(value, MemoryConfig) else as_spec(value) for value in values]
    placed = [spec if spec.chip is not None else spec.with_chip(default) for spec in specs]
    return placed[0], placed[1]


def runtime_arguments(
    source: object, target: object, chip: ChipLike = None, of: str = "target"
) -> dict[CoreCoord, NDArray[np.int64]]:
    """Return the table of runs that each core must transfer to move a tensor from one memory to another.

    A row is (x, y, address, stride, own address, own stride, bytes, count): the other core, and where the pieces are
    there and here. Banks of DRAM count as cores (bank, 0). If source and target are equal, there is nothing to do.

    Args:
        source: a spec, a tensor of any dialect, a memory config, or a text that ttnn printed.
        target: the same.
        chip: the chip, if neither has one.
        of: "target" for the cores that read, "source" for the cores that write.

    >>> from tilewright import height_sharded
    >>> spec = TensorSpec((128, 32), page_layout="tile", memory=height_sharded((2, 1)), chip="wormhole_n150")
    >>> table = runtime_arguments(spec, spec.with_memory(height_sharded((4, 1))))
    >>> table[3, 0][:, [0, 1, 6, 7]].tolist()
    [[1, 0, 2048, 1]]
    """
    if of not in ("source", "target"):
        raise FormatError(f'expected "source" or "target", got {of!r}')
    specs = _as_pair(source, target, chip)
    addresses = [None if isinstance(value, str) else device_address(value) for value in (source, target)]
    plan = reshard(*specs, source_address=addresses[0], target_address=addresses[1])
    runs = plan.transfers
    ends = {
        "source": (runs.source, runs.source_address, runs.source_stride),
        "target": (runs.target, runs.target_address, runs.target_stride),
    }
    (owner, own_address, own_stride), (other, address, stride) = ends.pop(of), *ends.values()
    endpoints = [point if isinstance(point, CoreCoord) else CoreCoord(point, 0) for point in plan.noc_map.endpoints]
    at = np.array(endpoints, dtype=np.int64)[other]
    rows = np.stack([at[:, 0], at[:, 1], address, stride, own_address, own_stride, runs.nbytes, runs.count], axis=1)
    order = np.argsort(owner, kind="stable")
    edges = np.flatnonzero(np.diff(owner[order])) + 1
    groups = np.split(order, edges) if len(order) else []
    return {endpoints[int(owner[group[0]])]: rows[group] for group in groups}


def write_cpp_header(
    tensor: object,
    path: str | os.PathLike[str],
    name: str = "expected_pages",
    chip: ChipLike = None,
    base: int | None = None,
) -> None:
    """Write a C++17 header with the place of every page, for the tests of a kernel.

    It has a namespace `name` with constants for the sizes, `pages` (page, bank, core, address), and `cores`, each with
    its range of `pages_by_core`.

    Args:
        tensor: a spec, a tensor of any dialect, or a tensor spec that ttnn printed.
        path: the file to write.
        name: the namespace.
        chip: the chip, if the tensor has none.
        base: the address of the buffer; by default the tensor's, or the first one on an empty chip.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "weights.h")
    ...     write_cpp_header(TensorSpec((32, 64), page_layout="tile", chip="wormhole_n150"), path, name="weights")
    ...     print([line for line in path.read_text().splitlines() if "num_pages =" in line][0])
    inline constexpr std::uint32_t num_pages = 2;
    """
    spec = _as_placed(tensor, chip)
    _require_few_pages(spec)
    lines = _page_lines(spec, _buffer_address(spec, tensor, base))
    _write_header(path, name, f"{spec}: where every page is expected", lines)


def write_accessor_header(
    tensor: object,
    path: str | os.PathLike[str],
    name: str = "accessor",
    chip: ChipLike = None,
    runtime: Iterable[str] = (),
) -> None:
    """Write a C++17 header with the words of a `TensorAccessor` and where it must find every page.

    It has a namespace `name` with the arrays `compile_time_args` and `common_runtime_args` (without the address), and
    `places`: for each page, the number of its bank in the accessor's list, the coordinates of that bank as the words
    have them, and the bytes from the start of the buffer. The banks of an interleaved tensor are the chip's banks.

    Args:
        tensor: a spec, a tensor of any dialect, or a tensor spec that ttnn printed.
        path: the file to write.
        name: the namespace.
        chip: the chip, if the tensor has none.
        runtime: the parts that are left to run time, as in `TensorSpec.accessor_arguments`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "weights.h")
    ...     write_accessor_header(TensorSpec((32, 64), page_layout="tile", chip="wormhole_n150"), path, name="weights")
    ...     print([line for line in path.read_text().splitlines() if "compile_time_args" in line][0])
    inline constexpr std::array<std::uint32_t, 2> compile_time_args{{
    """
    spec = _as_placed(tensor, chip)
    arguments = spec.accessor_arguments(runtime)
    _require_few_pages(spec)
    page_map, cores = arguments.page_map, arguments.cores
    at = [spec.known_chip.virtual_cores[core] for core in cores] if arguments.buffer_type.is_l1 else cores
    slots = page_map.slot_of_page(np.arange(spec.num_pages))
    banks, offsets = np.asarray(page_map.position_of_slot(slots)), np.asarray(page_map.offset_of_slot(slots))
    pairs = zip(banks.tolist(), offsets.tolist(), strict=True)
    places = [f"{{{bank}, {at[bank].x}, {at[bank].y}, {offset}}}" for bank, offset in pairs]
    lines = [
        f"inline constexpr std::uint32_t num_banks = {len(arguments.cores)};",
        _array_text("std::uint32_t", "compile_time_args", list(map(str, arguments.words))),
        _array_text("std::uint32_t", "common_runtime_args", list(map(str, arguments.runtime_words or ()))),
        "",
        "struct Place {",
        "    std::uint32_t bank, x, y;",
        "    std::uint64_t offset;",
        "};",
        _array_text("Place", "places", places),
    ]
    _write_header(path, name, f"{spec}: the words of its TensorAccessor", lines)


def _require_few_pages(spec: TensorSpec) -> None:
    """Raise if a spec has too many pages for a header."""
    if spec.num_pages > _MAX_HEADER_PAGES:
        raise MemoryConfigError(
            f"{spec} has {spec.num_pages} pages, too many for a header, which can have {_MAX_HEADER_PAGES}; use"
            " expected_pages, or a smaller tensor"
        )


def _write_header(path: str | os.PathLike[str], name: str, title: str, lines: list[str]) -> None:
    """Write a header of a namespace with these lines."""
    if not _CPP_NAME.fullmatch(name):
        raise FormatError(f"expected a name of C++ such as expected_pages, got {name!r}")
    head = [f"// {title}. Written by tilewright.testing.", "#pragma once", ""]
    head += ["#include <array>", "#include <cstdint>", "", f"namespace {name} {{", ""]
    with replace_file(path) as file:
        file.write("\n".join([*head, *lines, "", f"}}  // namespace {name}", ""]).encode())


def _page_lines(spec: TensorSpec, base: int) -> list[str]:
    table = spec.pages(base)
    cores = _group_by_core(table)
    pages = [f"{{{page}, {bank}, {x}, {y}, {address}}}" for page, bank, x, y, address in table.rows().tolist()]
    firsts = np.cumsum([0, *map(len, cores.values())]).tolist()
    ranges = [
        f"{{{core.x}, {core.y}, {part.bank}, {first}, {len(part)}}}"
        for (core, part), first in zip(cores.items(), firsts, strict=False)
    ]
    by_core = [str(page) for part in cores.values() for page in part.pages.tolist()]
    sizes = {"page_bytes": spec.page_bytes, "aligned_page_bytes": spec.aligned_page_bytes, "num_pages": spec.num_pages}
    return [
        *[f"inline constexpr std::uint32_t {key} = {value};" for key, value in sizes.items()],
        f"inline constexpr std::uint64_t buffer_address = {base};",
        "",
        "struct Page {",
        "    std::uint32_t page, bank, core_x, core_y;",
        "    std::uint64_t address;",
        "};",
        _array_text("Page", "pages", pages),
        "",
        "// The pages of a core, in the order of their addresses: count entries of pages_by_core, from first on.",
        "struct Core {",
        "    std::uint32_t x, y, bank, first, count;",
        "};",
        _array_text("Core", "cores", ranges),
        _array_text("std::uint32_t", "pages_by_core", by_core),
    ]


def _array_text(element: str, name: str, values: list[str]) -> str:
    rows = ["    " + ", ".join(values[k : k + _PER_LINE]) + "," for k in range(0, len(values), _PER_LINE)]
    content = "".join([f"{row}\n" for row in rows])
    return f"inline constexpr std::array<{element}, {len(values)}> {name}{{{{\n{content}}}}};"


_PER_LINE = 4
