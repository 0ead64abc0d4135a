# SPDX-License-Identifier: Apache-2.0
"""TTL's three sample loops, line for line, with any kernel between import and export."""

import numpy as np

from tilewright import ttl


def scratch_tensor(tiler, dtype):
    """Return a buffer that holds the largest tile."""
    return np.zeros(max(1, int(np.prod(tiler.row_major.largest_tile))), dtype)


def double(ext_in, ext_out, tiler_in, tiler_out, compute, event, get_tile=ttl.get_tile, shipped=False):
    buffers = [scratch_tensor(tiler_in, ext_in.dtype) for _ in range(2)] + [
        scratch_tensor(tiler_out, ext_out.dtype) for _ in range(2)
    ]
    names = dict(zip(("in0", "in1", "out0", "out1"), buffers, strict=True))
    import_db_e = event()
    import_db = ttl.start_import_double_buffering(buffers[0], buffers[1], ext_in, import_db_e, get_tile(0, tiler_in))
    yield "start_import", None, names
    export_db_e = event()
    export_db = ttl.start_export_double_buffering(buffers[2], buffers[3], ext_out, export_db_e)
    yield "start_export", None, names
    for i in range(ttl.number_of_tiles(tiler_in)):
        tile_next_import = get_tile(i + 1, tiler_in)
        tile_current_export = get_tile(i, tiler_out)
        imported_to = ttl.step_buffering(import_db, tile_next_import)
        yield "step_import", i, names
        exported_from = ttl.step_buffering(export_db, tile_current_export)
        compute(imported_to, exported_from)
        yield "step_export", i, names
    ttl.finish_buffering(import_db)
    yield "finish_import", None, names
    ttl.finish_buffering(export_db)
    yield "finish_export", None, names


def duplex(ext_in, ext_out, tiler_in, tiler_out, compute, event, get_tile=ttl.get_tile, shipped=False):
    names = {"in": scratch_tensor(tiler_in, ext_in.dtype), "out": scratch_tensor(tiler_out, ext_out.dtype)}
    events = [event(), event()]
    scheme = ttl.start_duplex_buffering(
        ext_in, names["in"], ext_out, names["out"], events, get_tile(0, tiler_in), shipped
    )
    yield "start", None, names
    for i in range(ttl.number_of_tiles(tiler_in)):
        tensors = ttl.step_buffering(scheme, get_tile(i, tiler_in), get_tile(i, tiler_out))
        compute(tensors.imported_to, tensors.to_export_from)
        yield "step", i, names
    ttl.finish_buffering(scheme)
    yield "finish", None, names


def simplex(ext_in, ext_out, tiler_in, tiler_out, compute, event, get_tile=ttl.get_tile, shipped=False):
    names = {
        f"b{k}": bytearray(
            scratch_tensor(tiler_in, ext_in.dtype).nbytes + scratch_tensor(tiler_out, ext_out.dtype).nbytes
        )
        for k in range(3)
    }
    event_in, event_out = event(), event()
    scheme = ttl.start_simplex_buffering(
        *names.values(), ext_in, ext_out, event_in, event_out, get_tile(0, tiler_in), shipped
    )
    yield "start", None, names
    for i in range(ttl.number_of_tiles(tiler_in)):
        tensors = ttl.step_buffering(scheme, get_tile(i + 1, tiler_in), get_tile(i, tiler_out))
        compute(tensors.imported_to, tensors.to_export_from)
        yield "step", i, names
    ttl.finish_buffering(scheme)
    yield "finish", None, names


SCHEMES = {"double": double, "duplex": duplex, "simplex": simplex}


def as_halo(case):
    """Return the leading halo, (front, top, left): by how much a compute shifts its reads."""
    left, _, top, _, front, _ = case["augmentation"]
    return front, top, left


def kernel_of(case):
    """Return the compute of a case, on tensors, with the arithmetic of its type."""
    shift = as_halo(case)

    def at(tile, out, dz=0, dy=0, dx=0):
        steps = [s + d for s, d in zip(shift, (dz, dy, dx), strict=True)]
        return tile[tuple(slice(s, s + n) for s, n in zip(steps, out.shape, strict=True))]

    def copy(tile, out):
        out[...] = at(tile, out)

    def square(tile, out):
        np.multiply(at(tile, out), at(tile, out), out=out)

    def cross(tile, out):
        out[...] = at(tile, out)
        for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            np.add(out, at(tile, out, 0, dy, dx), out=out)

    chosen = {"copy": copy, "square": square, "cross": cross}[case["kernel"]]
    return lambda imported_to, to_export_from: chosen(imported_to.array(), to_export_from.array())
