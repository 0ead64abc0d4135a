# SPDX-License-Identifier: Apache-2.0
"""JAX and PyTorch as oracles of shardings: what random ones print is read, and every device holds the same part.

Neither fits in the environment of `make oracle`, whose ttnn wants an older NumPy. In an environment of your own with
jax, or torch, in packages/tilewright:

    XLA_FLAGS=--xla_force_host_platform_device_count=16 TT_METAL_MOCK_CLUSTER_DESC_PATH=none \\
        python -m pytest -q tests/oracle/test_shardings.py
    XLA_FLAGS=--xla_force_host_platform_device_count=8 python -m tests.oracle.test_shardings

The second records what JAX says about a few random ones, for tests/notation/test_shardings.py.
"""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from tilewright import LayoutError
from tilewright.notation import parse_sharding

CASES = 2000
RECORDED = 150
GOLDEN = Path(__file__).parents[1] / "golden" / "notations" / "jax_shardings.json"


def random_factors(rng, count):
    """Return extents of at least 2 whose product is `count`, in random order."""
    factors = []
    while count > 1:
        factors.append(rng.choice([n for n in range(2, count + 1) if count % n == 0]))
        count //= factors[-1]
    return tuple(factors)


def random_count(jax, rng):
    return rng.choice([n for n in (1, 2, 4, 6, 8, 12, 16) if n <= len(jax.devices())])


def plain(slices, shape):
    """Return slices as a list of bounds, without None."""
    return [[s.start or 0, extent if s.stop is None else s.stop] for s, extent in zip(slices, shape, strict=True)]


def random_named(jax, rng):
    """Return the texts of a random NamedSharding, the shape of a tensor, and the part of each device, by its number.

    The numbers are those in the order of the mesh, which all texts count in but those of JAX 0.4 with the devices' own.
    """
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

    sizes = random_factors(rng, random_count(jax, rng))
    names = tuple(rng.sample(["x", "y", "z", "w", "data", "model.0", "tp_1"], len(sizes)))
    devices = jax.devices()[: int(np.prod(sizes))]
    if rng.random() < 0.3:
        rng.shuffle(devices)
    kind = rng.choice([AxisType.Auto, AxisType.Explicit])
    mesh = Mesh(np.array(devices).reshape(sizes), names, axis_types=(kind,) * len(sizes))
    rank = rng.randint(0, 4)
    waiting = rng.sample(names, len(names))
    entries = []
    for _ in range(rng.randint(0, rank)):
        entry = rng.choice([None, 1, 1, 2, PartitionSpec.UNCONSTRAINED])
        if isinstance(entry, int):
            own = tuple([waiting.pop() for _ in range(min(entry, len(waiting)))])
            entry = own[0] if len(own) == 1 and rng.random() < 0.7 else own
        entries.append(entry)
    unreduced = set(waiting[:1]) if kind == AxisType.Explicit and rng.random() < 0.3 else set()
    if AxisType.Auto not in mesh.axis_types:
        entries = [None if entry is PartitionSpec.UNCONSTRAINED else entry for entry in entries]
    sharding = NamedSharding(mesh, PartitionSpec(*entries, unreduced=unreduced))
    shape = [rng.randint(0, 3) for _ in range(rank)]
    for k, entry in enumerate(entries):
        own = entry if isinstance(entry, tuple) else (entry,) if isinstance(entry, str) else ()
        shape[k] *= int(np.prod([mesh.shape[name] for name in own]))
    held = NamedSharding(mesh, PartitionSpec(*entries)).devices_indices_map(tuple(shape))  # which refuses unreduced
    order = {device: k for k, device in enumerate(devices)}
    parts = {order[device]: plain(slices, shape) for device, slices in held.items()}
    spelled = ", ".join([f'"{name}"={size}' for name, size in zip(names, sizes, strict=True)])
    with mlir.make_ir_context(), ir.Location.unknown():
        shardy = str(sharding._to_sdy_sharding(rank).build({}))
    texts = [repr(sharding), f"{mesh} {sharding.spec}", repr(NamedSharding(mesh.abstract_mesh, sharding.spec))]
    if not unreduced:
        texts.append(str(sharding._to_xla_hlo_sharding(rank)))
        spec = str(sharding.spec)
        texts.append(f"NamedSharding(mesh=Mesh(device_ids={mesh.device_ids!r}, axis_names={names!r}), spec={spec})")
    if shardy.startswith("#sdy.sharding<@"):
        texts.append(f"sdy.mesh @mesh = <[{spelled}]>\n{shardy}")
    elif sizes:  # a mesh without axes has no devices in Shardy
        texts.append(shardy)
    return texts, shape, parts, [device.id for device in devices]


def random_tiles(jax, rng):
    """Return the text of a random GSPMDSharding, the shape of a tensor, and the part of each device."""
    from jax._src.lib import xla_client
    from jax._src.sharding_impls import GSPMDSharding

    count = random_count(jax, rng)
    extents = random_factors(rng, count) or (1,)
    order = rng.sample(range(len(extents)), len(extents))
    tiles = list(random_factors(rng, count))
    for _ in range(rng.randint(0, 2)):
        tiles.insert(rng.randint(0, len(tiles)), 1)
    tiles = tiles or [1]
    kinds = [xla_client.OpSharding.Type.REPLICATED] * (rng.random() < 0.4)
    if rng.random() < 0.3:
        kinds.append(xla_client.OpSharding.Type.MANUAL)
    kinds = kinds[: len(tiles)]
    sharding = xla_client.HloSharding.iota_tile(tiles, extents, order, kinds)
    if rng.random() < 0.3 and not kinds and count > 1:
        numbers = ",".join(map(str, rng.sample(range(count), count)))
        sharding = xla_client.HloSharding.from_string(f"{{devices=[{','.join(map(str, tiles))}]{numbers}}}")
    if not sharding.is_tiled():
        return random_tiles(jax, rng)
    rank = len(tiles) - len(kinds)
    shape = [n * rng.randint(0, 3) for n in tiles[:rank]]
    devices = jax.devices()[:count]
    if xla_client.OpSharding.Type.MANUAL in kinds:
        indices = np.array(sharding.tile_assignment_devices()).reshape(tiles)  # which JAX maps no devices to
        parts = {}
        for at, device in np.ndenumerate(indices):
            whole = zip(at[:rank], shape, tiles[:rank], strict=True)
            parts[int(device)] = [[k * (n // size), (k + 1) * (n // size)] for k, n, size in whole]
    else:
        held = GSPMDSharding(tuple(devices), sharding).devices_indices_map(tuple(shape))
        parts = {device.id: plain(slices, shape) for device, slices in held.items()}
    return [str(sharding), repr(GSPMDSharding(tuple(devices), sharding))], shape, parts, list(range(count))


def random_parts(jax, rng):
    """Return the texts of a random sharding by parts of axes, the shape of a tensor, and the part of each device."""
    from jax._src.lib import xla_client
    from jax._src.sharding_impls import GSPMDSharding

    sizes = random_factors(rng, max(4, random_count(jax, rng)))
    count, rank = int(np.prod(sizes)), rng.randint(1, 3)
    pieces = []
    for name, size in zip("abcd", sizes, strict=False):
        before = 1
        for part in random_factors(rng, size):
            is_whole = part == size
            pieces.append((part, f"'{name}'" if is_whole else f"'{name}':({before}){part}"))
            before *= part
    dimensions = [[] for _ in range(rank)]
    shape = [rng.randint(0, 3) for _ in range(rank)]
    for part, text in rng.sample(pieces, rng.randint(0, len(pieces))):
        k = rng.randrange(rank)
        if not dimensions[k] or dimensions[k][-1][1] != text[1]:  # XLA ends the process where parts could be one
            dimensions[k].append(text)
            shape[k] *= part
    axes = ",".join([f"'{name}'={size}" for name, size in zip("abcd", sizes, strict=False)])
    ids = rng.sample(range(count), count) if rng.random() < 0.4 and count > 1 else list(range(count))
    shuffled = ids != list(range(count))
    spelled = ", ".join([f"{{{', '.join(own + ['?'] * (rng.random() < 0.2))}}}" for own in dimensions])
    listed = ",".join(map(str, ids))
    text = f"{{mesh[{axes}]{f', device_ids=({listed})' * shuffled}, [{spelled}]}}"
    sharding = xla_client.HloSharding.from_string(text)
    held = GSPMDSharding(tuple(jax.devices()[:count]), sharding.v3_to_v2_sharding()).devices_indices_map(tuple(shape))
    parts = {device.id: plain(slices, shape) for device, slices in held.items()}
    shardy = f"#sdy.sharding<mesh<[{axes}]{f', device_ids=[{listed}]' * shuffled}>, [{spelled}]>".replace("'", '"')
    return [text, str(sharding), str(sharding.v3_to_v2_sharding()), shardy], shape, parts, list(range(count))


def random_case(jax, rng):
    return rng.choice([random_named, random_named, random_tiles, random_parts])(jax, rng)


def known_mesh(text, count):
    """Return a text that states its devices: one that is replicated on `count` ones may not."""
    sharding = parse_sharding(text)
    is_unknown = sharding.numbers == () and "replicated" in sharding.besides
    return f"Mesh('x': {count}) {text}" if is_unknown else text


def held_by(text, parts, numbers):
    """Return the part of each device by the number that the text has for it."""
    return {numbers[k]: part for k, part in parts.items()} if "device_ids=array" in text else parts


def check(text, shape, parts, numbers):
    """Check the part of every device, and return the sharding and the parts."""
    sharding, expected = parse_sharding(known_mesh(text, len(parts))), held_by(text, parts, numbers)
    found = {device: plain(slices, shape) for device, slices in sharding.windows(shape).items()}
    assert found == expected, (text, shape)
    return sharding, expected


def check_layout(sharding, shape, parts):
    """Check one element of each device, if strides can express which device has which part."""
    try:
        layout = sharding.layout(shape)
    except LayoutError:
        return False
    for device, part in parts.items():
        if all(start < stop for start, stop in part):
            held = layout(*[stop - 1 for _, stop in part]) if part else layout()
            holders = (
                [place.device for place in held] if isinstance(held, (tuple, list, set, frozenset)) else [held.device]
            )
            assert device in holders, (str(sharding), shape, str(layout))
    return True


def test_jax_and_xla_agree():
    jax = pytest.importorskip("jax", reason="the jax package is not installed")
    rng = random.Random(42)
    count = layouts = 0
    for _ in range(CASES):
        texts, shape, parts, numbers = random_case(jax, rng)
        for text in texts:
            sharding, held = check(text, shape, parts, numbers)
            layouts += check_layout(sharding, shape, held)
            count += 1
    print(f"{count} texts, {layouts} layouts")
    assert layouts > count // 2


def test_dtensor_agrees():
    torch = pytest.importorskip("torch", reason="the torch package is not installed")
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
    from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset
    from torch.distributed.tensor.placement_types import _StridedShard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=16)
    rng = random.Random(42)
    for _ in range(CASES):
        sizes = random_factors(rng, rng.choice([2, 4, 6, 8, 12, 16]))
        names = tuple(rng.sample(["dp", "tp", "pp", "ep", "cp"], len(sizes))) if rng.random() < 0.5 else None
        ranks = torch.randperm(16, generator=torch.Generator().manual_seed(rng.randint(0, 9999)))
        ranks = ranks[: int(np.prod(sizes))] if rng.random() < 0.3 else torch.arange(int(np.prod(sizes)))
        mesh = DeviceMesh("cpu", ranks.reshape(sizes), mesh_dim_names=names, _init_backend=False)
        shape = tuple([rng.randint(0, 20) for _ in range(rng.randint(1, 3))])
        placements = []
        for _ in sizes:
            dimension = rng.randrange(len(shape))
            placements.append(rng.choice([Replicate(), Partial(), Shard(dimension), Shard(dimension)]))
        for k, placement in enumerate(placements):  # as FSDP over TP has it: later axes cut first
            later = [sizes[j] for j in range(k + 1, len(sizes)) if placements[j] == placement]
            if isinstance(placement, Shard) and later and rng.random() < 0.3:
                placements[k] = _StridedShard(placement.dim, split_factor=int(np.prod(later)))
                break
        parts = {}
        for at, rank in np.ndenumerate(mesh.mesh.numpy()):
            local, offset = _compute_local_shape_and_global_offset(shape, sizes, list(map(int, at)), placements)
            parts[int(rank)] = [[a, a + n] for a, n in zip(offset, local, strict=True)]
        meta = TensorMeta(torch.Size(shape), torch.empty(shape).stride(), torch.float32)
        spec = DTensorSpec(mesh, tuple(placements), tensor_meta=meta)
        known = f"DeviceMesh('cpu', {mesh.mesh.tolist()})"
        for text in (repr(spec), f"{spec} {known}", f"{known} {placements}", f"{mesh!r}, {tuple(placements)!r}"):
            if repr(mesh) in text and not torch.equal(ranks, torch.arange(len(ranks))):
                continue  # it prints strides, as if the ranks were in order
            sharding = parse_sharding(text)
            found = {rank: plain(slices, shape) for rank, slices in sharding.windows(shape).items()}
            for rank, part in parts.items():
                if all(a < b for a, b in part):
                    assert found[rank] == part, (text, shape, rank)
                else:  # torch puts an empty part at the end of the tensor
                    assert [b - a for a, b in found[rank]] == [b - a for a, b in part], (text, shape, rank)


def record(path):
    """Write random shardings as JAX prints them, a shape for each, and the part of each device."""
    import jax

    rng = random.Random(7)
    cases = []
    while len(cases) < RECORDED:
        texts, shape, parts, numbers = random_case(jax, rng)
        for text in texts:
            held = sorted(held_by(text, parts, numbers).items())
            case = {"text": known_mesh(text, len(parts)), "shape": shape, "parts": held}
            if len(parts) > 1 and case not in cases:
                cases.append(case)
    lines = ",\n  ".join([json.dumps(case, separators=(",", ":")) for case in cases])
    path.write_text(f'{{"jax": "{jax.__version__}", "cases": [\n  {lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    record(GOLDEN)
