# SPDX-License-Identifier: Apache-2.0
"""`generate_program`: a copy plan as one program with a kernel for each loop nest; small kernels share a launch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.copying import MAX_BATCH, WIDEST, Plan
from tilewright.errors import FormatError
from tilewright.formats import BLOCK_FORMATS, Format, float32

from .block_kernels import make_pack_kernel, make_unpack_kernel
from .c_code import (
    CDialect,
    c_dialect,
    conditional,
    conversion_function,
    indent,
    needs_double,
    packing_functions,
    unpacking_functions,
)
from .copy_kernels import contiguous_axes, has_wide_vectors, make_copy_kernel, make_transpose_kernel, split_job
from .kernel import EDGE_THREADS, Kernel, KernelJob, Tunings, tuning_by_kernel
from .staged_kernels import make_staged_kernel

WIDE = 4  # bytes of an element from which on a transpose is a wide one


@dataclass(frozen=True, slots=True)
class Program:
    """The source text of a program, and its kernels in launch order.

    Kernels of the same stage of a plan may run in any order.

    >>> Program("...", ()).kernels
    ()
    """

    text: str
    kernels: tuple[Kernel, ...]


def generate_program(
    plan: Plan, dialect: str, aligned: tuple[int, int] = (16, 16), tuning: Tunings = None, batched: bool = False
) -> Program:
    """Return the program of a plan in the `dialect` "opencl" or "cuda".

    `aligned` is the alignment in bytes of source and target; `tuning` one tuning for all kernels, or one per family.
    A `batched` program of CUDA copies up to MAX_BATCH tensors in one launch.

    >>> from tilewright import row_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(64, 64), "float32"), Placement(row_major(64, 64), "float32"))
    >>> [(kernel.name, kernel.groups, kernel.threads) for kernel in generate_program(plan, "cuda").kernels]
    [('tw_copy_0', 4, 256)]
    """
    unknown = formats_without_code(plan)
    if unknown:
        raise FormatError(
            f"{unknown[0]} is not supported on devices, only scalar formats and {', '.join(BLOCK_FORMATS)};"
            " use engine='reference' on the host"
        )
    tunings = tuning_by_kernel(tuning)
    language = c_dialect(dialect, tunings["copy"].unroll)
    kernels: list[Kernel] = []
    definitions: set[str] = set()
    functions: dict[str, None] = {}  # an ordered set
    numbers = itertools.count()  # kernel names are unique in the program
    for number, stage in enumerate(plan.passes):
        of_stage: list[Kernel] = []
        for nest in stage.nests:
            name = f"tw_{nest.operation}_{next(numbers)}"
            alignment = _stage_alignment(plan, stage, aligned)
            for job in _split_operation(KernelJob(name, stage.source, stage.target, nest, language, alignment)):
                family, make = _kernel_family(job)
                kernel, needs = make(replace(job, tuning=tunings[family]))
                of_stage.append(replace(kernel, stage=number))
                definitions |= needs
        kernels += merge_small_kernels(of_stage, EDGE_THREADS, len(kernels))
        functions |= dict.fromkeys(_conversion_functions(stage.source.format, stage.target.format))
    text = language.prelude
    if needs_double(plan.source.format, plan.target.format):
        text += language.doubles
    if plan.source.format.has_blocks or plan.target.format.has_blocks:
        text += language.blocks
    if any("COPY_ASYNC" in line for kernel in kernels for line in kernel.body):
        text += language.async_copies
    text += "".join(f"\n{function}" for function in functions) + "\n" * bool(definitions) + "".join(sorted(definitions))
    if batched:
        text += f"typedef struct {{ const u8 *source[{MAX_BATCH}]; u8 *target[{MAX_BATCH}]; }} Batch;\n"
    return Program("\n".join([text, *(kernel_text(kernel, language, batched) for kernel in kernels)]), tuple(kernels))


def _stage_alignment(plan: Plan, stage: Plan, aligned: tuple[int, int]) -> tuple[int, int]:
    """Return the alignment of source and target of a stage; scratch memory has the widest."""
    if plan is stage:
        return aligned
    return (WIDEST, aligned[1]) if stage.packs else (aligned[0], WIDEST)


def formats_without_code(plan: Plan) -> list[str]:
    """Return the names of the formats of a plan that have no device code: of block formats that users define.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(32), "int8"), Placement(Layout(32), "mxfp4", tile_elements=32))
    >>> formats_without_code(plan)
    []
    """
    formats = (plan.source.format, plan.target.format)
    return [element.name for element in formats if element.has_blocks and BLOCK_FORMATS.get(element.name) != element]


def _split_operation(job: KernelJob) -> Iterator[KernelJob]:
    if job.nest.elements == 0 and job.nest.operation != "pack":
        return
    if job.nest.operation == "clear":
        job = replace(job, nest=replace(job.nest, operation="fill"))  # with zeros
    yield from split_job(job) if job.nest.operation in ("copy", "fill") else [job]


def _kernel_family(job: KernelJob) -> tuple[str, Callable[[KernelJob], tuple[Kernel, set[str]]]]:
    """Return the family of kernels for a job, and the function that makes it."""
    width = " narrow" if max(job.sizes) < WIDE else ""
    if job.nest.operation == "pack":
        return f"pack{width}", make_pack_kernel
    if job.nest.operation == "unpack":
        return f"unpack{width}", make_unpack_kernel
    axes = contiguous_axes(job)
    if axes is not None and not has_wide_vectors(job):
        return "staged", make_staged_kernel
    if axes is None or axes[0] == axes[1]:
        return "copy", make_copy_kernel
    return ("wide" if max(job.sizes) >= WIDE else "transpose"), make_transpose_kernel


def _conversion_functions(source: Format, target: Format) -> list[str]:
    """Return the C functions that convert elements: through float32 if one of the formats has blocks."""
    functions = []
    if target.has_blocks and not source.has_blocks:
        functions.append(packing_functions(target, source))
        target = float32
    elif source.has_blocks and not target.has_blocks:
        functions.append(unpacking_functions(source, target))
        source = float32
    if not source.has_blocks and not target.has_blocks and source != target:
        functions.append(conversion_function("converted", source, target))
    return functions


def kernel_text(kernel: Kernel, dialect: CDialect, batched: bool = False) -> str:
    """Return a kernel in C: a comment, its signature and its body.

    A `batched` kernel has the addresses of its tensors as one argument, and work-groups for each of them.

    >>> print(kernel_text(Kernel("tw_none", "nothing", (), 1, 32), c_dialect("cuda")))
    // nothing
    KERNEL(32) tw_none(GLOBAL const u8 *RESTRICT source, GLOBAL u8 *RESTRICT target) {
        const u32 group = GROUP, thread = THREAD;
    }
    <BLANKLINE>
    """
    arguments = ["GLOBAL const u8 *RESTRICT source", "GLOBAL u8 *RESTRICT target"]
    start = shared_arrays(kernel, dynamic=not dialect.starts and bool(kernel.large_shared))
    group = "GROUP"
    if batched:
        arguments = ["const Batch batch"]
        group = f"GROUP % {kernel.groups}u"
        start += [f"const u32 member = GROUP / {kernel.groups}u;"]
        start += ["const u8 *RESTRICT source = batch.source[member];", "u8 *RESTRICT target = batch.target[member];"]
    if dialect.starts:
        arguments += ["const u64 source_start", "const u64 target_start"]
        start += ["source += source_start;", "target += target_start;"]
    for side, table in zip(("source", "target"), kernel.tables, strict=False):
        arguments.append(f"GLOBAL const {'i32' if table.dtype == np.int32 else 'i64'} *RESTRICT {side}_table")
    start.append(f"const u32 group = {group}, thread = THREAD;")
    head = f"KERNEL({kernel.threads}) {kernel.name}({', '.join(arguments)}) {{"
    notes = [f"// {line}" for line in kernel.note.splitlines()]
    return "\n".join([*notes, head, *indent([*start, *kernel.body]), "}", ""])


def shared_arrays(kernel: Kernel, dynamic: bool) -> list[str]:
    """Return the declarations of shared arrays; if `dynamic`, as parts of one array that the launch allocates.

    >>> shared_arrays(Kernel("tw_copy_0", "copy", (), 1, 32, shared=(("tile", 40),)), dynamic=False)
    ['SHARED v16 tile[3];']
    """
    vectors = [(name, -(-nbytes // WIDEST)) for name, nbytes in kernel.shared]
    if not dynamic:
        return [f"SHARED v16 {name}[{count}];" for name, count in vectors]
    lines, start = ["extern SHARED v16 dynamic_shared[];"], 0
    for name, count in vectors:
        lines.append(f"LOCAL v16 *{name} = dynamic_shared + {start};")
        start += count
    return lines


def merge_small_kernels(kernels: Sequence[Kernel], limit: int, first: int = 0) -> list[Kernel]:
    """Return the kernels of a stage; kernels of fewer than `limit` threads are merged, one per work-group.

    `first` is the number of kernels that the program has already. Kernels with barriers need all their threads, so only
    those with the same number of threads are merged.

    >>> small = [Kernel(f"tw_fill_{k}", "fill", ("...",), groups=2, threads=32) for k in range(3)]
    >>> [(kernel.name, kernel.groups) for kernel in merge_small_kernels(small, 1000)]
    [('tw_edges_0', 6)]
    """
    merged: list[Kernel] = []
    together: dict[int, list[Kernel]] = {}
    for kernel in kernels:
        if kernel.tables or kernel.groups * kernel.threads >= limit:
            merged.append(kernel)
        else:
            together.setdefault(kernel.threads if kernel.shared else 0, []).append(kernel)
    for several in together.values():
        name = f"tw_edges_{first + len(merged)}"
        merged.append(several[0] if len(several) == 1 else _merge_kernels(name, several))
    return merged


def _merge_kernels(name: str, several: Sequence[Kernel]) -> Kernel:
    threads = max(kernel.threads for kernel in several)
    shared: dict[str, int] = {}
    body: list[str] = []
    first = 0
    for kernel in several:
        for array, nbytes in kernel.shared:
            shared[array] = max(nbytes, shared.get(array, 0))
        own = conditional(f"thread < {kernel.threads}u" if kernel.threads < threads else "", kernel.body)
        renamed = [f"const u32 group = all - {first}u;", *own]
        first += kernel.groups
        # one chain of branches: compilers that split a kernel at its barriers would double their work for each branch
        head = "if" if not body else "} else if"
        body += [f"{head} (all < {first}u) {{  // {kernel.note}", *indent(renamed)]
    note = f"{len(several)} kernels in one launch"
    text = ("const u32 all = group;", *body, "}")
    return Kernel(name, note, text, first, threads, (), tuple(shared.items()), stage=several[0].stage)
