# SPDX-License-Identifier: Apache-2.0
"""The text of kernels, and several small ones gathered into one: the ragged edges of a plan in a single launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .dialect import Dialect
from .kernel import WIDEST, Kernel
from .text import indented, when


def kernel_text(kernel: Kernel, dialect: Dialect) -> str:
    """Return a kernel in C: what it does in a comment, its signature, its body.

    >>> from .dialect import dialect_of
    >>> print(kernel_text(Kernel("tw_none", "nothing", (), 1, 32), dialect_of("cuda")))
    // nothing
    KERNEL(32) tw_none(GLOBAL const u8 *RESTRICT source, GLOBAL u8 *RESTRICT target) {
        const u32 group = GROUP, thread = THREAD;
    }
    <BLANKLINE>
    """
    arguments = ["GLOBAL const u8 *RESTRICT source", "GLOBAL u8 *RESTRICT target"]
    start = shared_arrays(kernel, asked_for=not dialect.starts and bool(kernel.large_shared))
    if dialect.starts:
        arguments += ["const u64 source_start", "const u64 target_start"]
        start += ["source += source_start;", "target += target_start;"]
    for side, each in zip(("source", "target"), kernel.tables, strict=False):
        arguments.append(f"GLOBAL const {'i32' if each.dtype == np.int32 else 'i64'} *RESTRICT {side}_table")
    arguments += [f"const {kind} n{k}" for k, (kind, _) in enumerate(kernel.arguments)]
    start.append("const u32 group = GROUP, thread = THREAD;")
    head = f"KERNEL({kernel.threads}) {kernel.name}({', '.join(arguments)}) {{"
    notes = [f"// {line}" for line in kernel.note.splitlines()]
    return "\n".join([*notes, head, *indented([*start, *kernel.body]), "}", ""])


def shared_arrays(kernel: Kernel, asked_for: bool) -> list[str]:
    """Return the declarations of shared arrays, in one piece of memory where the launch asks for it.

    >>> shared_arrays(Kernel("tw_copy_0", "copy", (), 1, 32, shared=(("tile", 40),)), asked_for=False)
    ['SHARED v16 tile[3];']
    """
    vectors = [(name, -(-nbytes // WIDEST)) for name, nbytes in kernel.shared]
    if not asked_for:
        return [f"SHARED v16 {name}[{count}];" for name, count in vectors]
    lines, at = ["extern SHARED v16 asked_for[];"], 0
    for name, count in vectors:
        lines.append(f"LOCAL v16 *{name} = asked_for + {at};")
        at += count
    return lines


def gathered(kernels: Sequence[Kernel], limit: int, first: int = 0) -> list[Kernel]:
    """Return the kernels of a step with those of fewer than `limit` threads gathered: work-groups take turns at them.

    `first` is the number of kernels that the program has already. Kernels with barriers need all their threads, so only
    those with equally many go together.

    >>> small = [Kernel(f"tw_fill_{k}", "fill", ("...",), groups=2, threads=32) for k in range(3)]
    >>> [(kernel.name, kernel.groups) for kernel in gathered(small, 1000)]
    [('tw_edges_0', 6)]
    """
    found: list[Kernel] = []
    together: dict[int, list[Kernel]] = {}
    for kernel in kernels:
        if kernel.tables or kernel.arguments or kernel.groups * kernel.threads >= limit:
            found.append(kernel)
        else:
            together.setdefault(kernel.threads if kernel.shared else 0, []).append(kernel)
    for several in together.values():
        found.append(several[0] if len(several) == 1 else _gather(f"tw_edges_{first + len(found)}", several))
    return found


def _gather(name: str, several: Sequence[Kernel]) -> Kernel:
    threads = max(kernel.threads for kernel in several)
    shared: dict[str, int] = {}
    body: list[str] = []
    first = 0
    for kernel in several:
        for array, nbytes in kernel.shared:
            shared[array] = max(nbytes, shared.get(array, 0))
        own = when(f"thread < {kernel.threads}u" if kernel.threads < threads else "", kernel.body)
        renamed = [f"const u32 group = all - {first}u;", *own]
        first += kernel.groups
        # one chain of branches: compilers that cut a kernel at its barriers double their work for every separate one
        head = "if" if not body else "} else if"
        body += [f"{head} (all < {first}u) {{  // {kernel.note}", *indented(renamed)]
    note = f"{len(several)} nests in one launch"
    text = ("const u32 all = group;", *body, "}")
    return Kernel(name, note, text, first, threads, (), tuple(shared.items()), step=several[0].step)
