# SPDX-License-Identifier: Apache-2.0
"""`check_operation`: the bytes that an operation leaves on a device, page by page, against the expected ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ._dialect import unwrap
from ._lazy import companion_name
from ._text import count_of, format_bytes
from .copying import as_host_array
from .errors import MemoryConfigError
from .files import read_tensorbin
from .memory import TensorSpec, explain_address, from_bytes, to_bytes
from .tensor import Tensor

_PLACES = "the places of pages, which a tensor on the host does not have"
_TYPES = "dtype and padding, which an array does not have"
_REQUESTS = "NoC requests, without a trace"


@dataclass(frozen=True, slots=True)
class OperationCheck:
    """The extent of a check: `pages`, their bytes, NoC requests, and the parts that were not compared (`unchecked`).

    >>> checked = OperationCheck(pages=4, nbytes=8192, unchecked=("NoC requests, without a trace",))
    >>> print(checked)
    checked 4 pages (8 KiB), 0 NoC requests; not checked: NoC requests, without a trace
    """

    pages: int
    nbytes: int
    requests: int = 0
    unchecked: tuple[str, ...] = ()

    def __str__(self) -> str:
        done = f"{count_of(self.pages, 'page')} ({format_bytes(self.nbytes)}), {count_of(self.requests, 'NoC request')}"
        return f"checked {done}" + (f"; not checked: {'; '.join(self.unchecked)}" if self.unchecked else "")


def check_operation(
    run: Callable[..., Any],  # which may return anything
    inputs: object,
    expected: object,
    trace: object = None,
) -> OperationCheck:
    """Run an operation that moves data, and compare every byte of its results with the `expected` tensors.

    Args:
        run: the operation: called with the inputs, it returns the result, or a list of them; a single one may be in a
            pair with a trace.
        inputs: a tensor, or a list of them, of any kind; passed on as they are.
        expected: a tensor of tilewright or its dialects in the memory of the result, or a list of them.
        trace: what the operation requested of the NoC, if it moved a tensor from one memory to another: the path of a
            recorded trace, or its events. It is compared with the plan of `reshard`.

    A result is a tensor on a simulated device, whose banks are read; the bytes of each core or bank from the address of
    the buffer on, {core: bytes}; a tensorbin file; or a tensor on the host, or an array, whose places are unknown. The
    `AssertionError` of a wrong result names the first page that differs, its place, the values, and the rule.

    >>> from tilewright import Device, height_sharded
    >>> before = Tensor.of(np.ones((64, 32)), page_layout="tile").to_device(Device("wormhole_n150"))
    >>> after = Tensor.of(np.ones((64, 32)), page_layout="tile", memory=height_sharded((2, 1)))
    >>> print(check_operation(lambda tensor: tensor.to_device(tensor.device, after.memory), before, after))
    checked 2 pages (16 KiB), 0 NoC requests; not checked: NoC requests, without a trace
    """
    __tracebackhide__ = True  # pytest then shows the caller
    operands, wanted = _as_list(inputs), [unwrap(tensor) for tensor in _as_list(expected)]
    outcome = run(*operands)
    is_pair = isinstance(outcome, tuple) and len(outcome) == 2 and isinstance(outcome[1], (str, PathLike, list, dict))
    if is_pair and len(wanted) == 1:
        outcome, trace = outcome
    results = [] if outcome is None else _as_list(outcome)
    if len(results) != len(wanted):
        raise AssertionError(f"the operation returned {count_of(len(results), 'result')}, expected {len(wanted)}")
    known = [getattr(getattr(unwrap(tensor), "spec", None), "chip", None) for tensor in (*wanted, *results, *operands)]
    chip = next(filter(None, known), None)
    specs: list[TensorSpec] = []
    unchecked = {_REQUESTS: None} if trace is None else {}  # in order, once each
    for number, (result, tensor) in enumerate(zip(results, wanted, strict=True)):
        if not isinstance(tensor, Tensor):
            raise MemoryConfigError(f"expected a tensor, got {type(tensor).__name__}; make one with Tensor.of(...)")
        specs.append(tensor.spec.with_chip(tensor.spec.chip or chip))
        problem, *missing = _compare(result, tensor, specs[-1])
        if problem:
            raise AssertionError(f"result {number}: {problem}" if len(wanted) > 1 else problem)
        unchecked |= dict.fromkeys(missing)
    requests = 0 if trace is None else _check_requests(trace, operands, specs)
    pages, size = sum([spec.num_pages for spec in specs]), sum([spec.nbytes for spec in specs])
    return OperationCheck(pages, size, requests, tuple(unchecked))


def _as_list(values: Any) -> list[Any]:  # of anything
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _compare(result: Any, expected: Tensor, spec: TensorSpec) -> tuple[str, ...]:  # a result is anything
    """Return how a result differs from the expected tensor, or nothing; and then the parts that are not compared."""
    value = read_tensorbin(result).tensor() if isinstance(result, (str, PathLike)) else unwrap(result)
    if isinstance(value, Mapping):
        return (_compare_dumps(value, expected, spec),)
    if isinstance(value, Tensor):
        problem = _describe_change(value.spec.with_chip(spec.chip), spec)
        problem = problem or _describe_difference(value.pages, expected.pages, spec)
        return (problem,) if value.device else (problem, _PLACES)
    values, shape = as_host_array(value), spec.shape.logical
    if values.shape != shape:
        return (f"the shape is {list(values.shape)}, expected {list(shape)}",)
    return _describe_difference(to_bytes(values, spec), to_bytes(expected.numpy(), spec), spec), _PLACES, _TYPES


def _describe_change(found: TensorSpec, wanted: TensorSpec) -> str:
    """Return how the result is another tensor, or in another memory, or nothing."""
    sides = [
        (list(spec.shape.logical), spec.dtype, spec.page_layout, spec.tile, list(spec.padded_shape))
        for spec in (found, wanted)
    ]
    for name, here, there in zip(("shape", "dtype", "page layout", "tile", "padded shape"), *sides, strict=True):
        if here != there:
            return f"the {name} is {here}, expected {there}"
    if (found.memory.buffer_type, found.paging) != (wanted.memory.buffer_type, wanted.paging):
        return f"the memory is {found.memory!r}, expected {wanted.memory!r}"
    return ""


def _compare_dumps(dumps: Mapping[Any, Any], expected: Tensor, spec: TensorSpec) -> str:  # of a core, or of a bank
    """Return how the dumps of cores or banks differ, or nothing."""
    chip, buffer, size, table = spec.known_chip, spec.memory.buffer_type, spec.page_bytes, spec.pages(0)
    banks = [place if isinstance(place, int) else chip.bank_of(unwrap(place), buffer) for place in dumps]
    held = dict(zip(banks, [np.frombuffer(data, np.uint8) for data in dumps.values()], strict=True))
    pages = []
    for page, (bank, start) in enumerate(zip(table.bank.tolist(), table.address.tolist(), strict=True)):
        pages.append(held[bank][start : start + size] if bank in held else ())
        if len(pages[-1]) < size:
            return f"{_place(page, spec)} was not dumped; a core or bank holds {spec.bytes_per_bank} bytes"
    return _describe_difference(np.stack(pages), expected.pages, spec) if pages else ""


def _place(page: int, spec: TensorSpec) -> str:
    """Return a page with its place, from the start of the buffer."""
    table, is_l1 = spec.pages(0), spec.memory.buffer_type.is_l1
    where = f"core ({table.core_x[page]}, {table.core_y[page]})" if is_l1 else f"bank {table.bank[page]}"
    return f"page {page} of {len(table)}, on {where} at offset {table.address[page]},"


def _describe_difference(found: Any, wanted: Any, spec: TensorSpec) -> str:  # bytes, in any shape
    """Return the first page that differs, what should be there, and the rule that puts it there; or nothing."""
    here, there = (np.asarray(side).reshape(-1, max(1, spec.page_bytes)) for side in (found, wanted))
    pages = np.flatnonzero((here != there).any(axis=1)).tolist()
    if not pages:
        return ""
    page, table = pages[0], spec.pages(0)
    byte = int(np.argmax(here[page] != there[page]))
    changed = int(here[page, byte] ^ there[page, byte])
    bit = (changed & -changed).bit_length() - 1  # where elements are smaller than a byte
    content = explain_address(spec, int(table.bank[page]), int(table.address[page]) + byte, bit, base=0)
    values = [f"0x{side[page, byte]:02x}" for side in (here, there)]
    if content.kind == "data":
        values = [str(from_bytes(side.reshape(-1), spec)[content.coordinate]) for side in (here, there)]
    owners = np.flatnonzero((there == here[page]).all(axis=1)).tolist()
    swapped = f", and holds what page {owners[0]} should" if owners else ""
    rule = f"{spec.memory}: page {page} is in bank {page} modulo {len(spec.paging.cores)}"
    if spec.memory.sharding is not None:
        shard, inside = (int(part[page]) for part in spec.paging.shard_table())
        order = f"{spec.memory.sharding.distribution.name} {spec.memory.sharding.orientation.name}"
        rule = f"{spec.memory}, {order.lower().replace('_', ' ')}: page {page} is page {inside} of shard {shard}"
    return (
        f"{_place(page, spec)} has {values[0]} instead of {values[1]} at {content}{swapped};"
        f" {len(pages)} of {len(table)} pages differ\n  rule: {rule}"
    )


def _check_requests(trace: Any, given: list[Any], wanted: list[TensorSpec]) -> int:  # a path, or parsed JSON
    """Return how many requests of a trace were compared with the plan, or raise."""
    __tracebackhide__ = True
    if len(given) != 1 or len(wanted) != 1:
        count = f"{count_of(len(given), 'input')} and {count_of(len(wanted), 'result')}"
        raise MemoryConfigError(f"a trace is compared for a tensor that is moved, got {count}; leave the trace out")
    audit_noc_trace = companion_name("tilewright.testing.audit_noc_trace", "tilewright_audit", "audit")
    with TemporaryDirectory() as folder:
        path: Any = trace  # of a file, or made one
        if not isinstance(trace, (str, PathLike)):
            path = Path(folder, "trace.json")
            path.write_text(json.dumps(trace))
        report = audit_noc_trace(path, unwrap(given[0]).spec.with_chip(wanted[0].chip), wanted[0])
    if not report.clean:
        raise AssertionError(f"the requests of the NoC are not the plan's: {report.findings[0]}")
    return sum([report.counts.get(name, 0) for name in ("reads", "writes")])
