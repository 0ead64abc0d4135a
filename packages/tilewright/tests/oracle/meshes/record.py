# SPDX-License-Identifier: Apache-2.0
"""Record what the real ttnn answers to the questions about meshes, for the tests that run without it.

In a mock cluster of 8 x 8: python -m tests.oracle.meshes.record tests/golden/ttnn/meshes.json.xz
"""

import json
import lzma
import sys
from functools import cache
from pathlib import Path

import numpy as np
import ttnn

from tests.ttnn.mesh_questions import answer, make_questions


def main(path):
    """Ask all questions, and write questions and answers."""
    system = ttnn.open_mesh_device(ttnn.MeshShape(8, 8))

    @cache
    def submesh(*shape):
        return system.create_submesh(ttnn.MeshShape(*shape))

    def pages(tensor, at):
        return np.from_dlpack(tensor.host_buffer().get_shard(ttnn.MeshCoordinate(*at))).tobytes()

    records = [
        {"question": question, "answer": answer(ttnn, question, lambda shape: submesh(*shape), pages, (RuntimeError,))}
        for question in make_questions()
    ]
    Path(path).write_bytes(lzma.compress(json.dumps(records).encode()))


if __name__ == "__main__":
    main(sys.argv[1])
