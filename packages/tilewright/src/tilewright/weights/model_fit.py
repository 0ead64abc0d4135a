# SPDX-License-Identifier: Apache-2.0
"""`fit`: whether a checkpoint, a cache, a file or a plan fits the devices that hold it, or tensors fit a chip."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

from .. import memory
from ..conversion.conversion_plan import ConversionPlan
from ..errors import FormatError, LayoutError
from ..files import StoredTensor, Tensorbin, TensorFile, open_tensors
from ..files.mesh import Mesh
from ..files.source_file import FilePath
from ..memory import Fit, TensorSpec
from ..memory.chip import ChipLike
from ..memory.fit_report import CircularBuffers, FitRequest, check_fit
from .cache_preparation import plan_cache
from .recipe import DEFAULT_RECIPE, Recipe
from .weight_cache import Machine

_WEIGHTS_ONLY = "weights only: KV cache and activations are not counted"
Holdings: TypeAlias = "str | os.PathLike[str] | TensorFile | StoredTensor | Tensorbin | ConversionPlan"


@dataclass(frozen=True, slots=True)
class DeviceTensor:
    """What one device holds of a tensor: its name, the spec or its arguments, and the mesh that shares it.

    >>> DeviceTensor("w", TensorSpec((4, 4))).mesh is None
    True
    """

    name: str
    request: FitRequest
    mesh: Mesh | None = None


def list_device_tensors(source: Holdings, placement: Mapping[str, Any] | None = None) -> list[DeviceTensor]:
    """Return what a device holds of the tensors of a file, directory or plan.

    `placement` are arguments of a `TensorSpec` for tensors whose file does not place them, and override its format.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.save(f"{folder}/x.npy", numpy.zeros((4, 8), numpy.float32))
    ...     list_device_tensors(folder)[0].request["dtype"]
    format_of('float32')
    """
    if isinstance(source, Tensorbin):
        return [DeviceTensor("", source.spec, source.mesh)]
    if isinstance(source, ConversionPlan):
        return [DeviceTensor(item.name, item.spec, item.mesh) for item in source.items]
    opened = {source.name: source} if isinstance(source, StoredTensor) else source
    tensors = open_tensors(opened) if isinstance(opened, (str, os.PathLike)) else opened
    return [DeviceTensor(each.name, _place(each, placement or {}), each.mesh) for each in tensors.values()]


def _place(tensor: StoredTensor, placement: Mapping[str, Any]) -> FitRequest:
    if tensor.spec is not None:
        return tensor.spec
    if tensor.format is None and "dtype" not in placement:
        raise FormatError(
            f"{tensor.name} has elements of type {tensor.kind}, which has no number format in tilewright; give a dtype"
        )
    return {"dtype": tensor.format, **placement, "shape": tensor.shape}


def common_mesh(tensors: Iterable[DeviceTensor]) -> tuple[int, ...]:
    """Return the shape of the mesh that shares tensors, () if one device holds them; raise if there are several.

    >>> common_mesh([DeviceTensor("w", TensorSpec((4, 4)))])
    ()
    """
    shapes = {each.mesh.shape: each.name for each in tensors if each.mesh is not None and prod(each.mesh.shape) > 1}
    if len(shapes) > 1:
        (one, first), (other, second) = list(shapes.items())[:2]
        raise LayoutError(
            f"{first} is on a mesh of {list(one)}, and {second} on one of {list(other)}: they are not for one machine;"
            " check them one after the other"
        )
    return next(iter(shapes), ())


def fit(
    request: Any,  # specs, tensors of any kind, arguments of specs, or what `list_device_tensors` takes
    chip: ChipLike | None = None,
    circular_buffers: CircularBuffers = 0,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
    *,
    machine: str | None = None,
    **options: Any,
) -> Fit:
    """Return whether tensors fit a chip, or each device of a mesh, and what would fit if they do not.

    Args:
        request: a spec or a tensor, a dict of arguments of `TensorSpec`, or a list of these, allocated in order; or the
            path of a checkpoint, cache or file, what `open_tensors` or `read_tensorbin` returned for it, or the plan of
            a conversion. Of tensors that a mesh shares, each device holds its part. A tensor in memory with a layout is
            fitted as its storage, into one bank.
        chip: the chip; the default is that of the first tensor, or of the machine.
        circular_buffers: bytes per core: a number, several, or several by name.
        l1_small_size: bytes reserved at the top of L1.
        trace_region_size: bytes reserved in all DRAM.
        machine: the machine, such as "N300", whose weight cache of the checkpoint `request` is to fit.
        options: with a machine, those of `plan_cache`; otherwise arguments of `TensorSpec` for tensors in files that do
            not place them.

    >>> import tempfile, numpy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(f"{folder}/m.npz", w=numpy.zeros((2048, 2048), numpy.float32), b=numpy.zeros(2048))
    ...     print(fit(f"{folder}/m.npz", "n150", dtype="bfloat8_b", page_layout="tile", memory="l1"))
    fits wormhole_n150
    w: [2048, 2048] bfloat8_b in tiles of 32 x 32, interleaved in L1
      69632 bytes in each of 64 banks, at 1429504, padding 0 bytes (0 %)
    b: [1[32], 2048] bfloat8_b in tiles of 32 x 32, interleaved in L1
      1088 bytes in each of 64 banks, at 1428416, padding 67456 bytes (97 %, in pages)
    L1: 70720 of 1393312 bytes in each of 64 banks used, largest free block 1322592
      in all 4.32 MiB of 85 MiB, 80.7 MiB left
    """
    reserved = (l1_small_size, trace_region_size)
    if machine is not None:
        plan = plan_cache(request, None, machine, **options)
        return fit_plan(plan, machine, chip, circular_buffers, *reserved, **options)
    if not isinstance(request, (str, os.PathLike, TensorFile, StoredTensor, Tensorbin, ConversionPlan)):
        if options:
            raise FormatError(f"{', '.join(options)} cannot be given here: the specs say how tensors are placed")
        return memory.fit(request, chip, circular_buffers, *reserved)
    tensors = list_device_tensors(request, options)
    report = fit_device(tensors, common_mesh(tensors), chip, circular_buffers, *reserved)
    return _of_weights(report, request) if isinstance(request, ConversionPlan) and request.recipe else report


def fit_plan(
    plan: ConversionPlan,
    machine: str,
    chip: ChipLike | None = None,
    circular_buffers: CircularBuffers = 0,
    *reserved: int,
    recipe: FilePath | None = None,
    mesh: Sequence[int] | None = None,
    **options: Any,
) -> Fit:
    """Return whether the weight cache that a `plan` writes fits each device of its `machine`.

    The other arguments are those of `fit` and of `plan_cache`.
    """
    target = Machine.of(machine, Recipe.load(recipe or DEFAULT_RECIPE), mesh)
    shape = target.mesh if prod(target.mesh) > 1 else ()
    report = fit_device(list_device_tensors(plan), shape, chip or target.chip, circular_buffers, *reserved)
    return _of_weights(report, plan)


def _of_weights(report: Fit, plan: ConversionPlan) -> Fit:
    return replace(report, scope=_WEIGHTS_ONLY, notes=plan.notes)


def fit_device(
    tensors: Sequence[DeviceTensor],
    mesh: tuple[int, ...],
    chip: ChipLike | None,
    circular_buffers: CircularBuffers = 0,
    *reserved: int,
) -> Fit:
    """Return whether what one device holds fits it; `mesh` is the shape of the mesh of devices, () for one device.

    The other arguments are those of `fit`.
    """
    requests = [each.request for each in tensors]
    names = [each.name for each in tensors]
    return check_fit(requests, TensorSpec, chip, circular_buffers, *reserved, names=names, mesh=mesh)
