# SPDX-License-Identifier: Apache-2.0
"""A session with everything that the page in the browser asks: a script that prints its answers as JSON.

It runs with NumPy, with its stand-in, without what only POSIX has, and in Pyodide; the answers must be the same.
"""

import hashlib
import io
import json
import os
import struct
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

PACKAGES = ("click", "rich")
STAND_IN = Path(*Path(__file__).resolve().parts[:-5], "playground", "stand_in")  # in a checkout
POSIX_MODULES = ("fcntl", "resource", "mmap", "multiprocessing", "sqlite3")
POSIX_NAMES = ("fork", "sched_getaffinity", "sched_setaffinity", "sched_yield", "posix_fallocate", "getuid", "geteuid")


class Blocker:
    """A finder that finds some packages missing."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def block_packages():
    """Leave the playground's stand-in for NumPy, which the native library knows nothing of, and no other package."""
    sys.path.insert(0, str(STAND_IN))
    os.environ["TILEWRIGHT_NATIVE"] = "0"
    sys.meta_path.insert(0, Blocker(PACKAGES))


def block_posix():
    for name in POSIX_MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Blocker(POSIX_MODULES))
    import signal

    for module, names in ((os, POSIX_NAMES), (signal, ("setitimer", "pthread_sigmask"))):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)


def digest(text):
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]


def use_layouts():
    import tilewright as tw
    from tilewright import addr, bank

    tiled = tw.blocked_product(tw.row_major(4, 8), tw.row_major(4, 2))
    pages = tw.Layout((12, 10), (1 @ bank, 64 @ addr))
    swizzled = tw.compose(tw.Swizzle(3, 0, 3), tw.Layout((8, 8), (8, 1)))
    return {
        "tiled": [str(tiled), tiled(7, 5), tiled.offsets().tolist()],
        "pages": [str(pages(13)), {name: part.tolist() for name, part in pages.offsets()._parts.items()}],
        "swizzled": [str(swizzled), swizzled.offsets().tolist(), tw.is_bijective(swizzled)],
        "inverse": [str(tw.right_inverse(tw.Layout((4, 8), (8, 1)))), str(tw.left_inverse(tw.Layout((4, 8), (1, 5))))],
        "complement": str(tw.complement(tw.Layout((4, 8), (1, 8)), 64)),
        "divided": [str(tw.logical_divide(tw.row_major(8, 8), (tw.Layout(2), tw.Layout(4)))), tw.is_injective(tiled)],
        "composed": str(tw.compose(tw.row_major(6, 10), tw.Layout((5, 12), (12, 1)))),
        "padded": tw.pad(tw.row_major(3, 5), (4, 8)).offsets(fill=-1).tolist(),
        "linear": str(tw.Linear.of(swizzled)) if hasattr(tw.Linear, "of") else None,
    }


def use_notations():
    import tilewright as tw

    answers = {}
    for text in (
        "Sw<3,4,3> o (_8,_64):(_64,_1)",
        "bf16[8,128]{1,0:T(8,128)(2,1)}",
        "(4,8):(8,1)",
        "((2,4),8):((1,16),2)",
        "affine_map<(d0, d1) -> (d0 * 8 + d1)>",
        "nonsense (",
    ):
        try:
            parsed = tw.parse(text)
            layout = getattr(parsed, "layout", parsed)
            answers[text] = [str(layout), layout.size]
        except tw.TilewrightError as problem:
            answers[text] = str(problem)
    answers["written"] = [tw.write(tw.row_major(4, 8), name) for name in ("cute", "xla")]
    return answers


def use_memory():
    import tilewright as tw

    spec = tw.TensorSpec((1, 1, 256, 320), "bfloat8_b", "tile", chip="wormhole_n150")
    sharded = tw.TensorSpec(
        (1, 1, 256, 320), "bfloat16", "tile", memory=tw.height_sharded((8, 1), (32, 320)), chip="wormhole_n150"
    )
    table = sharded.pages(base=0)
    return {
        "where": [str(spec.where(0, 0, 33, 17)), str(sharded.where(0, 0, 200, 17))],
        "explain": [str(tw.explain(spec, (0, 0, 33, 17))), str(tw.explain(sharded, (0, 0, 200, 17)))],
        "fit": [str(spec.fit()), str(sharded.fit())],
        "pages": [table.bank.tolist(), table.address.tolist()],
        "bytes": [spec.nbytes, spec.page_bytes, spec.padding_bytes, sharded.allocated_bytes],
    }


def use_traffic():
    import tilewright as tw

    source = tw.TensorSpec((1, 1, 256, 256), "bfloat16", "tile", chip="wormhole_n150")
    target = tw.TensorSpec(
        (1, 1, 256, 256), "bfloat16", "tile", memory=tw.height_sharded((8, 1), (32, 256)), chip="wormhole_n150"
    )
    answers = {}
    for kernel in ("current", "2024"):
        plan = tw.reshard(source, target, kernel=kernel)
        time = plan.cycles
        answers[kernel] = [plan.total_bytes, plan.noc_bytes, round(time.cycles, 6), str(time.bound_by), str(plan)]
    back = tw.reshard(target, source)
    return {**answers, "back": [back.total_bytes, round(back.cycles.cycles, 6)]}


def use_analysis():
    import numpy as np

    import tilewright as tw
    from tilewright.analysis import bank_conflicts, coalescing, find_padding, find_swizzle

    rows, columns = tw.Layout((32, 1), (1, 0)), tw.Layout((32, 1), (32, 0))
    found = find_swizzle([rows, columns])
    tile = tw.compose(tw.Swizzle(3, 3, 3), tw.Layout((16, 64), (64, 1)))
    matrix = bank_conflicts(tile, tw.Layout(((16, 2),), ((1, 128),)), itemsize=2, instruction="ldmatrix.x4")
    return {
        "banks": [str(bank_conflicts(tw.Layout(32))), str(bank_conflicts(tw.Layout(32, 32))), matrix.wavefronts],
        "sectors": [str(coalescing(tw.Layout(32))), str(coalescing(tw.Layout(32, 32)))],
        "swizzle": [str(found), found.verify()],
        "padding": str(find_padding([np.arange(32) * 32], 32)),
        "atoms": sorted(map(str, tw.atoms))[:5] if hasattr(tw.atoms, "__iter__") else str(type(tw.atoms).__name__),
    }


def use_formats():
    import numpy as np

    import tilewright as tw

    values = (np.arange(1024, dtype=np.float32) - 500) / 37
    answers = {}
    for name in ("bfloat16", "float16", "float8_e4m3", "float8_e5m2", "uint8", "bfloat8_b", "bfloat4_b", "mxfp4"):
        number_format = tw.format_of(name)
        limits = number_format.limits
        packed = tw.pack(values, name) if number_format.has_blocks else tw.cast(values, name)
        answers[name] = [limits.lowest, limits.highest, limits.smallest, digest(packed.tobytes())]
    answers["error"] = round(tw.formats.quantization_error(values, "bfloat8_b").rms_error, 9)
    return answers


def use_tensors():
    import numpy as np

    import tilewright as tw

    tensor = tw.TileTensor(np.arange(48, dtype=np.float32), tw.row_major(6, 8))
    tile = tensor.tile[4, 4](1, 1)
    tiled = tw.tilize(np.arange(64 * 64, dtype=np.int32).reshape(64, 64))
    half = tw.TileTensor([0.1, 0.2, 3.0], tw.row_major(3), dtype="bfloat16")
    return {
        "tile": [str(tile), tile.mask().tolist()],
        "sum": (tensor * 2 + tensor).to_numpy().tolist(),
        "tilize": [digest(tiled.tobytes()), tw.untilize(tiled, (64, 64)).tolist()[33][:3]],
        "half": [str(half), (half + half).to_numpy().tolist()],
    }


def gguf_bytes():
    """Return a file with one tensor of 4 x 8 floats and one entry of metadata."""

    def text(value):
        return struct.pack("<Q", len(value)) + value

    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text(b"general.name") + struct.pack("<I", 8) + text(b"small")
    head += text(b"w") + struct.pack("<IQQIQ", 2, 8, 4, 0, 0)
    return head + bytes(-len(head) % 32) + struct.pack("<32f", *range(32))


def use_files():
    import ml_dtypes
    import numpy as np

    import tilewright as tw
    from tilewright.files import Tensorbin, write_safetensors

    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder, "w.safetensors")
        values = np.arange(24, dtype=np.float32).reshape(4, 6)
        write_safetensors(weights, {"a": values, "b": values.astype(ml_dtypes.bfloat16)}, {"made": "here"})
        Path(folder, "w.gguf").write_bytes(gguf_bytes())
        spec = tw.TensorSpec((64, 64), "bfloat16", "tile")
        square = np.arange(4096, dtype=np.float32).reshape(64, 64)
        tw.write_tensorbin(Path(folder, "w.tensorbin"), Tensorbin(spec, tw.to_bytes(square, spec)))
        for name in ("w.safetensors", "w.gguf", "w.tensorbin"):
            facts = tw.inspect(Path(folder, name))
            text = facts.text().replace(folder, "")
            opened = tw.open_tensors(Path(folder, name))
            sample = {key: np.asarray(each.read()).reshape(-1)[:5].tolist() for key, each in opened.items()}
            answers[name] = [text, sample, digest(Path(folder, name).read_bytes())]
        Path(folder, "bad.gguf").write_bytes(gguf_bytes()[:40])
        try:
            tw.inspect(Path(folder, "bad.gguf"))
        except tw.TilewrightError as problem:
            answers["bad"] = str(problem).replace(folder, "")
    return answers


def use_pictures():
    import tilewright as tw
    from tilewright.views import scene_of, to_html, to_json, to_svg

    spec = tw.TensorSpec((1, 1, 128, 96), "bfloat16", "tile", chip="wormhole_n150")
    things = {
        "layout": tw.row_major(6, 8),
        "swizzle": tw.compose(tw.Swizzle(3, 0, 3), tw.Layout((8, 8), (8, 1))),
        "spec": spec,
        "tensor": tw.TileTensor(list(range(24)), tw.row_major(4, 6)),
        "tiler": tw.Tiler((64, 96), (32, 32)),
    }
    answers = {}
    for name, thing in things.items():
        scene = scene_of(thing)
        answers[name] = [digest(to_svg(scene)), digest(to_json(scene)), digest(to_html(scene))]
    return answers


def use_explorer():
    from tilewright.explorer.answers import ANSWERS, PICTURES, render_for_page
    from tilewright_mojo.explorer.kernel_programs import list_kernel_choices, read_example
    from tilewright_mojo.explorer.kernel_tab import describe_kernel

    words = {"shape": "256x192", "chip": "n150", "dtype": "bfloat16", "at": "33,5", "core": "0,0", "bank": "0"}
    words |= {"to_memory": "height_sharded", "to_buffer": "l1", "to_grid": "4x1", "mesh": "1x2", "cut": "1"}
    words |= {"notation": "Sw<3,0,3> o (8,8):(8,1)", "scheme": "double", "machine": "T3K", "users": "8"}
    model = {"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8}
    words["config"] = json.dumps({**model, "intermediate_size": 512, "vocab_size": 1024})
    layouts = [
        {"notation": "(8,12):(12,1)", "op": "zipped_divide", "other": "<4,6>"},
        {"notation": "(32,32):(32,1)", "threads": "32:1"},
        {"notation": "((4,8),(2,2)):((32,1),(16,8))", "tile": "16x8"},
        {"notation": "(4,8):(8,1)", "op": "right_inverse"},
    ]
    answers = {"layouts": [digest(json.dumps(ANSWERS["layout"](each), sort_keys=True)) for each in layouts]}
    choices = list_kernel_choices()
    read = [read_example(example["name"]) for example in (*choices["kernels"], *choices["puzzles"])]
    programs = [{"source": each.get("solution", each["source"])} for each in read if each["language"] == "mojo"]
    answers["kernels"] = [digest(json.dumps(describe_kernel(each)["reports"], sort_keys=True)) for each in programs]
    for name, answer in [(name, answer) for name, answer in ANSWERS.items() if name != "kernel"]:
        answers[name] = digest(json.dumps(answer(words), sort_keys=True))
    for name, picture in PICTURES.items():
        answers[f"picture {name}"] = digest(json.dumps(render_for_page(picture(words)), sort_keys=True))
    return answers


MOJO = """
from std.gpu import thread_idx, barrier
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from layout import Layout, LayoutTensor

comptime size = 8
comptime layout = Layout.row_major(size)

def add(output: LayoutTensor[mut=True, DType.float32, layout, MutAnyOrigin],
        a: LayoutTensor[DType.float32, layout, MutAnyOrigin]):
    var shared = LayoutTensor[
        DType.float32, layout, MutAnyOrigin, address_space=AddressSpace.SHARED
    ].stack_allocation()
    var i = Int(thread_idx.x)
    shared[i] = a[i]
    barrier()
    output[i] = shared[i] + shared[(i + 1) % size]

def main() raises:
    with DeviceContext() as ctx:
        var out = ctx.enqueue_create_buffer[DType.float32](size)
        var a = ctx.enqueue_create_buffer[DType.float32](size)
        with a.map_to_host() as host:
            for i in range(size):
                host[i] = Float32(i) * 0.1
        var out_tensor = LayoutTensor[mut=True, DType.float32, layout](out)
        var a_tensor = LayoutTensor[DType.float32, layout](a)
        ctx.enqueue_function[add](out_tensor, a_tensor, grid_dim=1, block_dim=size)
        ctx.synchronize()
        with out.map_to_host() as host:
            for i in range(size):
                print(host[i])
    print(SIMD[DType.float32, 4](1, 2, 3, 4) * 0.1, UInt8(250) + UInt8(10), 7 // -2, Float64(0.1) + 0.2)
"""


def use_mojo():
    from tilewright import mojo
    from tilewright_mojo.simt import collect_reports

    printed = io.StringIO()
    with redirect_stdout(printed), collect_reports() as reports:
        mojo.run(MOJO, name="add.mojo")
    return [printed.getvalue(), [report.clean for report in reports], [str(report) for report in reports]]


def sum_block(out, a):
    from tilewright_mojo.simt import barrier, shared_array, thread_idx

    shared, i = shared_array(64), thread_idx.x
    shared[i] = a[i]
    barrier()
    stride = 32
    while stride > 0:
        if i < stride:
            shared[i] += shared[i + stride]
        barrier()
        stride //= 2
    if i == 0:
        out[0] = shared[0]


def sum_block_racing(out, a):
    from tilewright_mojo.simt import barrier, shared_array, thread_idx

    shared, i = shared_array(64), thread_idx.x
    shared[i] = a[i]
    stride = 32
    while stride > 0:
        if i < stride:
            shared[i] += shared[i + stride]
        barrier()
        stride //= 2
    if i == 0:
        out[0] = shared[0]


def transpose_tile(out, a):
    from tilewright_mojo.simt import barrier, shared_array, thread_idx

    tile, i = shared_array(1024), thread_idx.x
    for k in range(32):
        tile[k * 32 + i] = a[k * 32 + i]
    barrier()
    for k in range(32):
        out[k * 32 + i] = tile[i * 32 + k]


def use_simt():
    import numpy as np

    from tilewright_mojo.simt import launch

    answers = {}
    for kernel in (sum_block, sum_block_racing):
        out, a = np.zeros(1, dtype=np.float32), np.arange(64, dtype=np.float32) / 8
        report = launch(kernel, out, a, grid=1, block=64, check="report")
        answers[kernel.__name__] = [out.tolist(), report.clean, str(report)]
    out, a = np.zeros(1024, dtype=np.float32), np.arange(1024, dtype=np.float32)
    report = launch(transpose_tile, out, a, grid=1, block=32, check="report")
    answers["transpose"] = [out.tolist()[:34], report.clean, str(report)]
    return answers


PARTS = {
    "layouts": use_layouts,
    "notations": use_notations,
    "memory": use_memory,
    "traffic": use_traffic,
    "analysis": use_analysis,
    "formats": use_formats,
    "tensors": use_tensors,
    "files": use_files,
    "pictures": use_pictures,
    "explorer": use_explorer,
    "mojo": use_mojo,
    "simt": use_simt,
}


def main(arguments):
    if "--without-packages" in arguments:
        block_packages()
    if "--without-posix" in arguments:
        block_posix()
    answers = {name: part() for name, part in PARTS.items()}
    answers["imported"] = sorted({name.partition(".")[0] for name in sys.modules} & set(PACKAGES))
    answers["numpy"] = "stand-in" if "numpy.array_memory" in sys.modules else "numpy"
    return json.dumps(answers)


if __name__ == "__main__":
    print(main(sys.argv[1:]))
