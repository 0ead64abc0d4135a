# SPDX-License-Identifier: Apache-2.0
"""A package that stands in for ttnn where only the handling of programs is tested: it places tensors, or refuses.

What ttnn itself says is recorded in golden/rehearsals, and asked of the real one by `make oracle`.
"""

from pathlib import Path

SOURCE = """
import json, sys, types

class _Operation:
    def __init__(self, name, function):
        self.python_fully_qualified_name, self.function = name, function
    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

decorators = types.SimpleNamespace(FastOperation=_Operation, Operation=type("Other", (_Operation,), {}))
CONFIG = "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::L1)"

class Graph:
    nodes, top, mode = None, 1499136, None
    class RunMode:
        NORMAL, NO_DISPATCH = "NORMAL", "NO_DISPATCH"
    def is_graph_capture_active(self):
        return self.nodes is not None
    def begin_graph_capture(self, mode):
        self.nodes, self.mode = [], mode
    def add(self, kind, params=None, links=()):
        if self.nodes is not None:
            entry = {"node_type": kind, "params": params or {}, "connections": list(links)}
            self.nodes.append({"counter": len(self.nodes), **entry})
    def unwind_open_functions(self, text):
        pass
    def track_function_start(self, name):
        self.add("function_start", {"name": name})
    def track_function_end(self):
        self.add("function_end")
    def end_graph_capture_to_file(self, path):
        nodes, self.nodes = self.nodes, None
        with open(path, "w") as file:
            json.dump({"graph": nodes, "version": 1, "devices": []}, file)
        return json.dumps(nodes)
    def extract_resource_usage_per_core(self, nodes):
        size = 2048 * sum(node["node_type"] == "buffer_allocate" for node in nodes)
        empty = dict(peak_cb=0, peak_dataflow_buffer=0, peak_scratchpad=0)
        return types.SimpleNamespace(peak_l1=size, peak_total=size, **empty)

class Tensor:
    def to_list(self):
        return [0.0]

class MeshDevice:
    def load_sub_device_manager(self, number):
        raise SystemExit(139)

def _empty(shape, **kwargs):
    if shape[0] > 32:
        raise RuntimeError("TT_FATAL @ bank_manager.cpp:514: false\\ninfo:\\nOut of Memory: Not enough space to "
            "allocate 16777216 B L1 buffer across 64 banks, where each bank needs to store 262144 B, but bank size is "
            "1393312 B (allocated: 1310720 B, free: 82592 B, largest free block: 82592 B).\\n"
            "backtrace:\\n --- somewhere")
    graph = _ttnn.graph
    graph.top -= 2048
    address = graph.top if graph.mode == "NORMAL" else 0
    size = {"size": 2048, "address": address, "buffer_type": 1, "page_size": 2048, "num_cores": 0,
        "max_size_per_bank": 2048}
    count = len(graph.nodes or ())
    graph.add("buffer", {"size": 2048, "buffer_type": 1}, [count + 2])
    graph.add("buffer_allocate", size, [count])
    graph.add("tensor", {"tensor_id": count, "shape": "Shape([32, 32])", "dtype": "DataType::BFLOAT16",
        "layout": "Layout::TILE", "address": address, "buffer_type": 1, "memory_config": CONFIG})
    return Tensor()

_ttnn = types.SimpleNamespace(graph=Graph())
empty = _Operation("ttnn.empty", _empty)

def open_device(device_id=0):
    return MeshDevice()

def close_device(device):
    pass

def begin_trace_capture(device, cq_id=0):
    raise SystemExit(139)

device = types.SimpleNamespace(open_device=open_device, close_device=close_device)
distributed = types.SimpleNamespace()
"""


def install(folder: Path) -> None:
    """Put the package into a folder, with the record of a version."""
    for name, files in {
        "ttnn": {"__init__.py": SOURCE},
        "ttnn-0.0.0.dist-info": {"METADATA": "Metadata-Version: 2.1\nName: ttnn\nVersion: 0.0.0\n"},
    }.items():
        (folder / name).mkdir(parents=True)
        for file, text in files.items():
            (folder / name / file).write_text(text)
