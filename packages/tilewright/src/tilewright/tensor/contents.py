# SPDX-License-Identifier: Apache-2.0
"""The contents of a tensor, all scalars at once: fill, copy, compare, compute, and convert to arrays."""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..copying.engine import execute
from ..copying.plan import plan_copy
from ..errors import FormatError, LayoutError
from ..formats import fit_values
from .element_access import require_writable
from .scalars import SMALL, Scalars, assign, mask_extents, run_plan, valid_box
from .store import Array, Number
from .tile_views import Kind, check_order
from .view import View

Operand: TypeAlias = "View | ArrayLike"


def fill(tensor: Kind, value: ArrayLike) -> Kind:
    """Set every valid scalar to `value`, which must be a value of the tensor's format; return the tensor.

    >>> import tilewright as tw
    >>> tw.TileTensor([0] * 4, tw.row_major(2, 2)).fill(7).to_numpy().tolist()
    [[7, 7], [7, 7]]
    """
    require_writable(tensor)
    data, number = tensor._store.host, fit_values(value, tensor._store.format)
    scalars = Scalars.of(tensor)
    scalars.watch_write()
    view = scalars.view()
    if view is not None:
        view[...] = number
    else:
        table, mask = scalars.places()
        data[table[mask]] = number
    return tensor


def copy_from(tensor: Kind, source: View | ArrayLike, order: str | None = None, fill: Number | None = None) -> Kind:
    """Copy the elements of `source`, a tensor or an array, into this tensor; return it.

    The elements of a tensor are converted as by `formats.cast`; the numbers of an array must be values of this tensor's
    format, and only floats are rounded.

    With equal extents, elements are copied by coordinate. Another shape with the same number of scalars needs an
    `order`: "row" (last mode fastest) or "colex" (first mode fastest). Where the target is valid but the source is not,
    `fill` is written.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 4, tw.col_major(2, 2))
    >>> t.copy_from(tw.TileTensor([1, 2, 3, 4], tw.row_major(2, 2))).to_numpy().tolist()
    [[1, 2], [3, 4]]
    """
    require_writable(tensor)
    is_on_device = not tensor._store.is_on_host or (isinstance(source, View) and not source._store.is_on_host)
    target = Scalars.of(tensor)
    if is_on_device:
        return _copy_on_device(tensor, target, source)
    if not isinstance(source, View):
        values = np.asarray(source)
        fit_values(values, tensor._store.format)
        return _copy_array(
            tensor, target, np.broadcast_to(values, target.extents) if values.ndim == 0 else values, order
        )
    origin = Scalars.of(source)
    if origin.extents != target.extents:
        return _copy_array(tensor, target, origin.read(), order)
    if origin.is_whole or origin.valid == target.valid or fill is not None or _covers(origin, target):
        _copy_scalars(origin, target, fill)
        return tensor
    raise LayoutError(
        f"the source is valid in {origin.valid} of {origin.extents}, less than the {target.valid} of the target;"
        " give fill=x for the rest"
    )


def _copy_on_device(tensor: Kind, target: Scalars, source: View | ArrayLike) -> Kind:
    """Copy by a plan between tensors in the memory of a device: boxes of equal extents."""
    if not isinstance(source, View):
        raise tensor._store.data.access_error()
    origin = Scalars.of(source)
    ours = theirs = None
    if target.valid is not None and origin.valid == target.valid:
        ours = target.placement(target.valid, on_device=True)
        theirs = origin.placement(target.valid, on_device=True)
    if ours is None or theirs is None:
        raise LayoutError(
            f"a copy in device memory needs equal extents, here {target.valid or target.extents}; reshape the source,"
            " or copy whole buffers"
        )
    if target.valid and prod(target.valid):
        execute(plan_copy(theirs[0], ours[0]), theirs[1], ours[1])
    return tensor


def _covers(origin: Scalars, target: Scalars) -> bool:
    """Return whether every valid scalar of target is valid in origin."""
    if origin.valid is not None and target.valid is not None:
        return all(a >= b for a, b in zip(origin.valid, target.valid, strict=True))
    return bool((origin.places()[1] | ~target.places()[1]).all())


def _copy_scalars(origin: Scalars, target: Scalars, fill: Number | None) -> None:
    """Copy scalars of equal extents: by plan, by NumPy, or through a table of places."""
    if target.valid is not None and prod(target.valid) >= SMALL and origin.valid is not None and fill is None:
        ours, theirs = origin.placement(target.valid), target.placement(target.valid)
        if ours is not None and theirs is not None and run_plan(*ours, *theirs):
            origin.watch_read()
            target.watch_write()
            return
    if origin.valid == target.valid and origin.valid is not None:
        source, view = origin.view(), target.view()
        if source is not None and view is not None and source.shape == view.shape:
            origin.watch_read()
            target.watch_write()
            assign(source, view, target.tensor)
            return
        fill = None
    elif origin.is_whole and target.valid is not None:
        fill = None
    elif fill is None:
        fill = 0
    target.write(origin.read(fill))


def _copy_array(tensor: Kind, target: Scalars, values: Array, order: str | None) -> Kind:
    """Copy an array by coordinate, or in an order of all scalars."""
    if order is None:
        if values.shape not in (target.extents, target.valid):
            raise LayoutError(
                f"cannot copy shape {values.shape} into {target.extents}: the extents differ; order='row' or 'colex'"
                " copies all scalars in that order"
            )
        target.write(values)
        return tensor
    check_order(order)
    shape = target.extents if target.valid is None else target.valid
    if values.size != prod(shape):
        raise LayoutError(f"cannot copy {values.size} scalars into {prod(shape)}: the numbers must be equal")
    layout_order: Any = "C" if order == "row" else "F"
    target.write(values.reshape(-1, order=layout_order).reshape(shape, order=layout_order))
    return tensor


def to_numpy(tensor: View, fill: Number | None = None, copy: bool | None = True) -> Array:
    """Return the elements as an array: one dimension per mode, then those of a vector element.

    A ragged view returns its valid part, or with `fill` its full shape. `copy=False` returns a view of the storage or
    raises; `copy=None` copies only where strides do not allow a view.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(6)), tw.col_major(2, 3))
    >>> t.to_numpy().tolist(), t.to_numpy(copy=False).base is not None
    ([[0, 2, 4], [1, 3, 5]], True)
    """
    scalars = Scalars.of(tensor)
    vector = tensor._vector_extents
    if tensor.size == 0:
        fill = 0  # an empty shape has no ragged edge
    if vector and fill is None and scalars.valid is not None and 0 in scalars.valid:
        return np.empty((*[0] * tensor.rank, *[n for n in vector if n != 1]), dtype=tensor._store.format.dtype)
    if vector and fill is None and not _has_whole_vectors(scalars, tensor):
        raise LayoutError(
            f"elements at the ragged edge of {tensor.layout} have fewer than {tensor.element_size} valid scalars and do"
            " not fit into an array; give fill=x for the rest"
        )
    if not copy and (fill is None or scalars.is_whole):
        view = scalars.view()
        if view is not None and view.ndim == len(scalars.extents):
            scalars.watch_read()
            return _group_by_element(view, tensor)
    if copy is False:
        raise LayoutError(f"{tensor.layout} cannot become an array without a copy; do not pass copy=False")
    return _group_by_element(scalars.read(fill), tensor)


def _has_whole_vectors(scalars: Scalars, tensor: View) -> bool:
    """Return whether all valid elements are valid in all their scalars."""
    vector = tensor._vector_extents
    if scalars.valid is None:
        return False
    if len(vector) != tensor.rank:  # a slice dropped modes of the elements: those of the vectors follow the rest
        return scalars.valid[-len(vector) :] == scalars.extents[-len(vector) :]
    return all(n % width == 0 for n, width in zip(scalars.valid, vector, strict=True))


def _group_by_element(scalars: Array, tensor: View) -> Array:
    """Return an array of scalars, one dimension per mode, as one of elements, then vectors without extents 1."""
    vector, rank = tensor._vector_extents, len(tensor._pair.shape[0])
    if not vector:
        return scalars
    if scalars.ndim == rank:
        split: list[int] = []
        for n, width in zip(scalars.shape, vector, strict=True):
            split += [n // width, width]
        scalars = scalars.reshape(split).transpose([*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)])
    elements = scalars.shape[: scalars.ndim - len(vector)]
    return scalars.reshape((*elements, *[width for width in vector if width != 1]))


def write_elements(tensor: View, values: Array) -> None:
    """Write an array in the form of `to_numpy` over the elements.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 4, tw.row_major(2, 2)).vectorize[1, 2]()
    >>> write_elements(t, np.array([[1, 2], [3, 4]]).reshape(2, 1, 2))
    >>> t.to_numpy().tolist()
    [[[1, 2]], [[3, 4]]]
    """
    vector = tensor._vector_extents
    if not vector:
        Scalars.of(tensor).write(values)
        return
    rank = len(tensor._pair.shape[0])
    elements = values.shape[:rank]
    scalars = values.reshape((*elements, *vector))
    if len(vector) == rank:
        scalars = scalars.transpose([k for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for k in pair])
        scalars = scalars.reshape([n * width for n, width in zip(elements, vector, strict=True)])
    Scalars.of(tensor).write(scalars)


def mask(tensor: View) -> Array:
    """Return which elements of the full shape are valid, for vectors which scalars, as an array of bools.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(6), tw.row_major(2, 3)).tile[2, 2](0, 1).mask().tolist()
    [[True, False], [True, False]]
    """
    scalars = Scalars.of(tensor)
    return _group_by_element(np.array(scalars.places()[1]), tensor)


def valid_extents(tensor: View) -> tuple[int, ...] | None:
    """Return the extents of the box of elements that have a valid scalar; None if they are not a box.

    >>> import tilewright as tw
    >>> valid_extents(tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 4](1, 0).vectorize[1, 3]())
    (2, 2)
    """
    if tensor.element_size == 1:
        return valid_box(tensor._mode_layout, tensor.shape)
    valid = mask(tensor)
    return mask_extents(np.asarray(valid.any(axis=tuple(range(tensor.rank, valid.ndim)))))


def equals(tensor: View, other: View | ArrayLike) -> bool:
    """Return whether `other`, a tensor or array, has the same valid elements at the same coordinates.

    >>> import tilewright as tw
    >>> a = tw.TileTensor([1, 2, 3, 4], tw.row_major(2, 2))
    >>> a.equals([[1, 2], [3, 4]]), a.equals(a.transpose())
    (True, False)
    """
    ours = to_numpy(tensor, fill=0, copy=None)
    if isinstance(other, View):
        return np.array_equal(mask(tensor), mask(other)) and np.array_equal(ours, to_numpy(other, fill=0, copy=None))
    theirs = np.asarray(other)
    if ours.shape != theirs.shape and tensor.is_ragged:
        ours = to_numpy(tensor, copy=None)
    return np.array_equal(ours, theirs)


def _as_operand(value: Operand) -> Any:
    """Return a tensor as an array, anything else as it is."""
    return to_numpy(value, copy=None) if isinstance(value, View) else value


def _as_operand_in_place(value: Operand, target: View) -> Any:
    """Return an operand of an in-place operation: a tensor of rank 1 is broadcast along mode 0 of one of rank 2."""
    operand = _as_operand(value)
    if isinstance(value, View) and value is not target:
        shape = to_numpy(target, copy=None).shape
        if operand.ndim == 1 and len(shape) == 2 and operand.shape[0] == shape[0]:
            return operand[:, None]
        if operand.shape != shape:
            raise LayoutError(
                f"an in-place operation needs equal shapes, or a tensor of rank 1 along mode 0: got {operand.shape} for"
                f" {shape}; t.to_numpy() broadcasts as NumPy does"
            )
    return operand


def _compute(function: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    """Return the result of a NumPy function; a Python integer beyond the type of an operand is refused."""
    try:
        return function(*operands, **options)
    except OverflowError as problem:
        raise FormatError(f"{problem}; use a number of that type, or an array of a wider one") from None


class Arithmetic(View, np.lib.mixins.NDArrayOperatorsMixin):
    """The operators of a tensor. Results are new tensors in row-major order; comparisons return arrays of bools.

    `a + b` broadcasts as NumPy does. `a += b` needs equal shapes, or a tensor of rank 1 that is broadcast along mode 0
    of a tensor of rank 2; arrays and numbers broadcast as in NumPy.

    >>> import tilewright as tw
    >>> a = tw.TileTensor([1, 2, 3, 4], tw.row_major(2, 2))
    >>> (a * 10 + a).to_numpy().tolist(), (a == a.transpose()).tolist()
    ([[11, 22], [33, 44]], [[True, False], [False, True]])
    >>> a += tw.TileTensor([10, 20], tw.row_major(2))
    >>> a.to_numpy().tolist()
    [[11, 12], [23, 24]]
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Operand, out: tuple[Any, ...] | None = None, **options: Any
    ) -> Any:
        if out is None:
            result = _compute(getattr(ufunc, method), [_as_operand(value) for value in inputs], options)
            wrap = method == "__call__" and isinstance(result, np.ndarray) and result.ndim and result.dtype != bool
            return self._new_tensor(result) if wrap else result
        target = out[0]
        if method != "__call__" or not isinstance(target, Arithmetic):
            return NotImplemented
        result = _compute(ufunc, [_as_operand_in_place(value, target) for value in inputs], options)
        return target._assign(np.asarray(result))

    def _new_tensor(self, values: Array) -> View:
        raise NotImplementedError

    def _assign(self: Kind, values: Array) -> Kind:
        """Write an array of its shape over the tensor; return the tensor."""
        require_writable(self)
        dtype = self._store.format.dtype
        if values.dtype != dtype and not np.can_cast(values.dtype, dtype, "same_kind"):
            raise LayoutError(
                f"cannot store a result of {values.dtype} in a tensor of {dtype} without loss; use //= for integers, or"
                " compute out of place"
            )
        shape = to_numpy(self, copy=None).shape
        if values.shape != shape:
            raise LayoutError(f"a result of shape {values.shape} does not fit a tensor of shape {shape}")
        write_elements(self, fit_values(values, self._store.format))
        return self
