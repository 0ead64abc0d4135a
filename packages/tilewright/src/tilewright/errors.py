# SPDX-License-Identifier: Apache-2.0
"""The few exceptions of tilewright. Every message states the problem, with its numbers, and the remedy."""


class TilewrightError(Exception):
    """The root of every error that tilewright raises on purpose.

    >>> issubclass(LayoutError, TilewrightError)
    True
    """


class LayoutError(TilewrightError, ValueError):
    """A shape, stride or layout that breaks a rule of the algebra.

    >>> import tilewright as tw
    >>> try:
    ...     tw.Layout((4, 8), (1,))
    ... except tw.LayoutError as problem:
    ...     print(problem)
    stride (1,) does not match shape (4, 8): a tuple of 2 modes needs a tuple of 2 strides
    """


class CoordinateError(LayoutError, IndexError):
    """A coordinate outside the domain of a layout: a `LayoutError` that is also an `IndexError`.

    >>> import tilewright as tw
    >>> try:
    ...     tw.row_major(4, 8)(4, 0)
    ... except IndexError as problem:
    ...     print(problem)
    coordinate (4, 0) is outside shape (4, 8): mode 0 takes 0 to 3; L.extended(...) continues past the edge
    """


class FormatError(TilewrightError, ValueError):
    """A number format that is not known, or a value, size or option that a format cannot take.

    >>> from tilewright.formats import format_of
    >>> try:
    ...     format_of("mxfp8_e4m3").bytes_per_tile(100)
    ... except FormatError as problem:
    ...     print(problem)
    mxfp8_e4m3: 100 elements are not a whole number of blocks of 32; use 96 or 128
    """


class TransferError(TilewrightError, RuntimeError):
    """A copy that cannot be carried out: memory too small, shared or read-only, or no engine for it.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> try:
    ...     tw.tilize(np.zeros((2, 2)), engine="abacus")
    ... except tw.TransferError as problem:
    ...     print(problem)
    unknown engine 'abacus'; use one of auto, native, reference, opencl, cuda
    """


class UnreachableError(TransferError):
    """A file on a server that cannot be read: the server cannot be reached, or it stopped answering.

    >>> import tilewright as tw
    >>> try:
    ...     tw.open_tensors("http://localhost:9/model.safetensors")
    ... except UnreachableError as problem:
    ...     print(str(problem).partition(":9/")[0])
    http://localhost
    """


class DeviceError(TransferError):
    """A device that is missing, is out of memory, or failed: a `TransferError` that another device would not have.

    >>> from tilewright.copying import load_engine
    >>> try:
    ...     backend = load_engine("cuda").default_backend()
    ... except DeviceError as problem:
    ...     print("pip install 'tilewright[cuda]'" in str(problem))
    ... else:
    ...     print(backend.engine == "cuda")
    True
    """


class MemoryConfigError(TilewrightError, ValueError):
    """A tensor that cannot be laid out in memory as asked: the message names the values, the rule and a remedy.

    >>> import tilewright as tw
    >>> try:
    ...     tw.CoreRange((3, 0), (1, 0))
    ... except tw.MemoryConfigError as problem:
    ...     print(problem)
    a core range must not start after its end, got (3, 0) to (1, 0); use (1, 0) to (3, 0)
    """


class OutOfMemory(TilewrightError, MemoryError):  # noqa: N818  (the name users know)
    """A buffer that no free block of its memory can hold; the message states the requested, used and free bytes.

    >>> import tilewright as tw
    >>> issubclass(tw.OutOfMemory, MemoryError)
    True
    """


class FileFormatError(TilewrightError, ValueError):
    """A file that is damaged, or not of the format it is read as; nothing of it was used.

    >>> from tilewright.files.tensorbin import parse_tensorbin
    >>> try:
    ...     parse_tensorbin(b"short")
    ... except FileFormatError as problem:
    ...     print(problem)
    not a tensorbin file: 5 bytes are too few for the 8-byte header size
    """


class MissingPackage(TilewrightError, ImportError):  # noqa: N818  (it names the missing package)
    """A function that needs a package which is not installed.

    >>> issubclass(MissingPackage, ImportError)
    True
    """


class KernelError(TilewrightError, RuntimeError):
    """A kernel that the SIMT machine found to be wrong; `report` has all findings.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> def kernel(total):
    ...     total[0] = tw.simt.thread_idx.x
    >>> try:
    ...     tw.simt.launch(kernel, np.zeros(1), grid=1, block=2)
    ... except tw.KernelError as problem:
    ...     print(problem.report.errors[0].message)
    two threads write total[0] in global memory, with no barrier between
    """

    def __init__(self, message: str, report: object = None) -> None:
        super().__init__(message)
        self.report = report


class KernelBoundsError(KernelError, CoordinateError):
    """A thread of a kernel that left a tensor: a `KernelError` that is also a `CoordinateError`.

    >>> issubclass(KernelBoundsError, IndexError)
    True
    """
