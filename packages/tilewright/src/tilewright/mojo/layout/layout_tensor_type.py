# SPDX-License-Identifier: Apache-2.0
"""The types `LayoutTensor[dtype, layout, origin, ...]`: what is known at compile time of an older tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...errors import LayoutError
from ...layout.layout import make_layout
from ..brackets import Bracketed
from ..builtins import Origin
from ..kernel_memory import tensor_on_stack
from ..memory import AddressSpace
from ..simd import DType, SIMDType, scalar_format
from .int_layout import Layout, from_core, to_core
from .int_tuple import product
from .runtime_layout import RuntimeLayout


@dataclass(frozen=True, slots=True, repr=False)
class LayoutTensorType:
    """The type of a tensor, with None for what it leaves open. It makes tensors, and `isinstance` checks them.

    >>> from tilewright.mojo.layout import LayoutTensor
    >>> kind = LayoutTensor["float32", Layout.row_major(2, 3)]
    >>> kind.rank, kind.shape[0](), isinstance(kind.stack_allocation(), kind)
    (2, 2, True)
    """

    kind: Any
    dtype: DType | None = None
    layout: Any = None
    origin: Origin | None = None
    address_space: AddressSpace | None = None
    element_layout: Any = None
    masked: bool = False

    @classmethod
    def of_parameters(
        cls,
        kind: Any,
        dtype: Any = None,
        layout: Any = None,
        origin: Any = None,
        *,
        address_space: Any = None,
        element_layout: Any = None,
        masked: Any = False,
        **_: Any,
    ) -> LayoutTensorType:
        """Return `kind[dtype, layout, origin, address_space=...]`; alignment and the types of indices have no effect.

        >>> from tilewright.mojo.layout import LayoutTensor
        >>> LayoutTensorType.of_parameters(LayoutTensor, "float32").dtype
        DType.float32
        """
        return cls(
            kind,
            None if _is_open(dtype) else scalar_format(dtype),
            None if _is_open(layout) else layout,
            origin if isinstance(origin, Origin) else None,
            None if _is_open(address_space) else AddressSpace(address_space),
            None if _is_open(element_layout) else element_layout,
            bool(masked) if masked is not ... else False,
        )

    def with_parameters(self, *parameters: Any, **named: Any) -> LayoutTensorType:
        """Return the type with what it leaves open filled in."""
        return LayoutTensorType.of_parameters(self.kind, *parameters, **named)

    # It makes tensors.

    def __call__(self, storage: Any = None, runtime_layout: Any = None, *_: Any, ptr: Any = None, **__: Any) -> Any:
        """Return a tensor of this type over `storage`, with a layout at run time where this one leaves numbers open."""
        memory = ptr if storage is None else storage
        if isinstance(memory, self.kind):
            return memory
        if self.layout is None:
            tensor = self.kind(memory, runtime_layout)
        elif isinstance(runtime_layout, RuntimeLayout) and isinstance(self.layout, Layout):
            tensor = self._clip(memory, runtime_layout)
        else:
            tensor = self.kind(memory, self.layout)
        if self.dtype is not None and tensor.dtype != self.dtype:
            raise LayoutError(f"{self!r} cannot be a view of {tensor.dtype}; use LayoutTensor[{tensor.dtype!r}, ...]")
        if self.element_layout is not None and product(_legacy(self.element_layout).shape) > 1:
            tensor = _with_elements(tensor, _legacy(self.element_layout))
        if self.origin is not None and not self.origin.mut and tensor.mut:
            tensor = tensor.as_immut()
        return tensor

    def _clip(self, memory: Any, runtime: RuntimeLayout) -> Any:
        """Return the tensor with the numbers of run time; extents below the known ones clip it."""
        known, now = self.layout.shape, runtime.shape
        is_clipped = known.all_known() and known != now.int_tree
        if not is_clipped:
            return self.kind(memory, to_core(self.layout, runtime.shape, runtime.stride))
        steps = to_core(Layout(self.layout.shape, self.layout.stride), now, runtime.stride)
        return self.kind(memory, make_layout(now.int_tree, steps.stride))

    @property
    def stack_allocation(self) -> Bracketed[Any]:
        """Return a tensor over new memory: `LayoutTensor[...].stack_allocation[stack_alignment=16]()`."""
        return Bracketed(LayoutTensorType._allocate, self)

    def _allocate(self, parameters: tuple[Any, ...], *, address_space: Any = None, **_: Any) -> Any:
        if self.dtype is None or self.layout is None:
            raise LayoutError("a tensor on the stack needs a number type and a layout: LayoutTensor[dtype, layout]")
        layout = _legacy(self.layout)
        block = None if self.element_layout is None else _legacy(self.element_layout)
        count = layout.cosize() + (block.cosize() - 1 if block is not None else 0)
        space = AddressSpace(address_space) if address_space is not None else self.address_space
        kind = replace(self, origin=None)
        return tensor_on_stack(self.dtype, count, space or AddressSpace.GENERIC, kind, kind)

    # What is known at compile time.

    @property
    def rank(self) -> int:
        """Return the number of modes."""
        return _legacy(self.layout).rank()

    @property
    def element_size(self) -> int:
        """Return the number of scalars of an element."""
        return 1 if self.element_layout is None else product(_legacy(self.element_layout).shape)

    @property
    def element_type(self) -> Any:
        """Return the type of an element."""
        return None if self.dtype is None else SIMDType(self.dtype, self.element_size)

    ElementType = element_type

    @property
    def shape(self) -> Any:
        """Return the extents that are known, to be called: `T.shape[0]()`."""
        return _Numbers([product(part) for part in _legacy(self.layout).shape])

    @property
    def stride(self) -> Any:
        """Return the strides that are known, to be called: `T.stride[0]()`."""
        return _Numbers([part.value() if part.is_value() else part[0].value() for part in _legacy(self.layout).stride])

    @property
    def RuntimeLayoutType(self) -> Any:  # noqa: N802  (Mojo's name)
        """Return the type of the layout at run time."""
        return RuntimeLayout[_legacy(self.layout)]

    @property
    def device_type(self) -> LayoutTensorType:
        """Return the type in a kernel: the same."""
        return self

    def __instancecheck__(self, value: Any) -> bool:
        return (
            isinstance(value, self.kind)
            and self.dtype in (None, value.dtype)
            and (self.layout is None or value.layout == _legacy(self.layout))
            and self.address_space in (None, value.address_space)
        )

    def __repr__(self) -> str:
        dtype = "_" if self.dtype is None else repr(self.dtype)
        return f"{self.kind.__name__}[{dtype}, {'_' if self.layout is None else self.layout}]"


class _Numbers:
    """Numbers of the modes: `numbers[0]()`."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers

    def __getitem__(self, k: Any) -> Any:
        return lambda: self._numbers[int(k)]

    def with_parameters(self, *k: Any, idx: Any = None) -> Any:
        """Return the number of a mode, to be called."""
        return self[(*k, idx)[0]]


def _is_open(parameter: Any) -> bool:
    return parameter is None or parameter is ...


def _legacy(layout: Any) -> Layout:
    return layout if isinstance(layout, Layout) else from_core(layout)


def _with_elements(tensor: Any, block: Layout) -> Any:
    """Return the tensor whose elements are blocks of scalars; the layout has the first scalar of each."""
    pair = tensor._pair
    core = block.core()
    extents: list[Any]
    steps: list[Any]
    extents, steps = core.flat_modes()
    rank = len(pair.shape[0])
    if len(extents) != rank:  # in the last mode
        extents, steps = [1] * (rank - 1) + [tuple(extents)], [0] * (rank - 1) + [tuple(steps)]
    view = tensor._view(make_layout((pair.shape[0], tuple(extents)), (pair.stride[0], tuple(steps))), tensor._offset)
    view._check_bounds()
    return view
