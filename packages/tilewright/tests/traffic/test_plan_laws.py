# SPDX-License-Identifier: Apache-2.0
"""Laws of reshard plans on random specs: every byte once, from where it is to where it must be."""

import copy
import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright import Device, MemoryConfigError, Tensor, TensorSpec, height_sharded, reshard
from tilewright.memory import from_bytes, to_bytes
from tilewright.traffic.kernels import row_bytes
from tilewright.traffic.moves import page_moves

from ..cases import examples
from .strategies import pairs


def planned(pair, **options):
    """Return the plan of a pair, or None for what the runtime refuses."""
    try:
        return reshard(*pair, **options)
    except MemoryConfigError as problem:
        assert "block sharding in DRAM" in str(problem)  # noqa: PT017
        return None


def byte_map(source, source_address, target, target_address, nbytes):
    """Return where each byte goes: {(target, address): (source, address)}."""
    found = {}
    for one, at, other, to, size in zip(source, source_address, target, target_address, nbytes, strict=True):
        for byte in range(size):
            assert (other, to + byte) not in found
            found[other, to + byte] = (one, at + byte)
    return found


def map_of_moves(moves):
    names = ("source", "source_address", "target", "target_address", "nbytes")
    return byte_map(*[getattr(moves, name).tolist() for name in names])


def expected_map(source, target, plan):
    """Return the byte map from the two page tables, element by element of each row for rows."""
    moves = page_moves(source, target, plan.source_address, plan.target_address)
    return map_of_moves(moves)


@examples(150)
@given(pairs())
def test_transfers_move_every_byte_once(pair):
    plan = planned(pair)
    if plan is None or plan.is_empty:
        return
    source, target = pair
    expected = expected_map(source, target, plan)
    assert map_of_moves(plan.transfers.pieces()) == expected
    assert sum(plan.traffic.values()) == len(expected) == plan.total_bytes
    one_by_one = {}
    for transfer in plan.transfers:
        pair = (transfer.target, transfer.source)
        one_by_one[pair] = one_by_one.get(pair, 0) + transfer.nbytes * transfer.count
    assert one_by_one == plan.traffic


@examples(150)
@given(pairs())
def test_pages_go_where_the_page_tables_say(pair):
    source, target = pair
    plan = planned(pair)
    if plan is None or plan.is_empty or source.page_shape != target.page_shape:
        return
    if source.physical_shape != target.physical_shape:
        return
    before, after = source.pages(plan.source_address), target.pages(plan.target_address)
    pairs_of_pages = {}
    names = []
    for spec, table in ((source, before), (target, after)):
        is_l1 = spec.memory.buffer_type.is_l1
        names.append(
            [
                (x, y) if is_l1 else bank
                for x, y, bank in zip(table.core_x.tolist(), table.core_y.tolist(), table.bank.tolist(), strict=True)
            ]
        )
    for one, other in zip(*names, strict=True):
        pairs_of_pages[other, one] = pairs_of_pages.get((other, one), 0) + source.page_bytes
    assert plan.traffic == pairs_of_pages


def has_buffers(plan):
    """Return whether the step of a plan goes through buffers; if so, everything must be read, and be written once."""
    source, requests = plan.source, plan.steps[0].requests
    sizes = [int(requests.nbytes[requests.writes[requests.owner] == writes].sum()) for writes in (False, True)]
    data = source.nbytes if source.is_tiled else source.physical_shape[0] * row_bytes(source)
    if all(sizes):
        assert sizes[0] >= sizes[1] >= data
        return True
    own = requests.core[requests.owner] == requests.remote
    if plan.steps[0].operation == "InterleavedToShardedDeviceOperation" and sizes[0] > plan.total_bytes:
        return True  # shards of entire rows are read with their padding
    if sizes[0] <= plan.total_bytes or not own.any():
        return False
    assert sizes[0] >= data  # some of it through a scratch buffer
    return True


@examples(150)
@given(pairs())
def test_requests_of_a_single_step_move_the_same_bytes(pair):
    source, target = pair
    plan = planned(pair)
    if plan is None or len(plan.steps) != 1:
        return
    (step,) = plan.steps
    requests = step.requests
    assert step.num_reads + step.num_writes == len(requests)
    if has_buffers(plan):
        return
    assert int(requests.nbytes.sum()) == plan.total_bytes
    own, writes = requests.core[requests.owner], requests.writes[requests.owner]
    sides = [(own, requests.local_address), (requests.remote, requests.remote_address)]
    to = [np.where(writes, far, near) for near, far in zip(*sides, strict=True)]
    origin = [np.where(writes, near, far) for near, far in zip(*sides, strict=True)]
    found = byte_map(*[part.tolist() for part in (*origin, *to, requests.nbytes)])
    assert found == expected_map(source, target, plan)


@examples(100)
@given(pairs())
def test_running_a_plan_is_to_memory_config(pair):
    source, target = pair
    plan = planned(pair)
    if plan is None or not plan.fits:
        return
    device = Device(source.known_chip)
    values = (np.arange(source.shape.logical_volume()) % 97).reshape(source.shape.logical).astype(np.float32)
    pages = to_bytes(values, source, pad_value=0)
    before = Tensor.from_pages(pages, source.with_chip(None)).to_device(device)
    after = plan.run(before)
    spec, moved, found = after.spec, after.pages, after.numpy()
    if not plan.is_empty:
        after.deallocate()
    expected = before.to_memory_config(target.memory)
    assert spec == expected.spec
    assert np.array_equal(moved, expected.pages)
    assert np.array_equal(found, from_bytes(pages, source))
    assert np.array_equal(before.pages, pages)


@examples(100)
@given(pairs(), st.sampled_from(["read", "write", "copy"]), st.sampled_from(["2024", "current"]))
def test_operations_that_are_asked_for_move_the_same_bytes(pair, op, kernel):
    source, target = pair
    sharded = target if op == "read" else source
    if op != "copy" and not sharded.memory.is_sharded:
        return
    plan = planned(pair, op=op, kernel=kernel)
    if plan is None or plan.is_empty:
        return
    (step,) = plan.steps
    through_a_buffer = has_buffers(plan)
    if not through_a_buffer:
        assert int(step.requests.nbytes.sum()) == plan.total_bytes
    if op == "read":
        assert not step.num_writes
    if op == "write":
        assert not step.num_reads
    if sharded.memory.buffer_type.is_l1 and not through_a_buffer:
        assert step.traffic == plan.traffic


def test_a_plan_runs_on_each_device_of_a_mesh():
    spec = TensorSpec((64, 64), "float32", "tile", chip="wormhole_n150")
    plan = reshard(spec, spec.with_memory(height_sharded((2, 1))), devices=2)
    values = [np.full((64, 64), k, np.float32) for k in range(2)]
    tensors = [Tensor.from_array(each, spec).to_device(Device("wormhole_n150")) for each in values]
    for after, expected in zip(plan.run(tensors), values, strict=True):
        assert after.spec == plan.target
        assert np.array_equal(after.numpy(), expected)
    assert "on each of 2 devices" in plan.explain()


@examples(60)
@given(pairs())
def test_plans_are_values(pair):
    plan = planned(pair)
    if plan is None:
        return
    assert planned(pair) == plan
    text = plan.explain()
    for other in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan), planned(pair)):  # noqa: S301
        assert other == plan
        assert other.traffic == plan.traffic
        assert list(other.traffic) == list(plan.traffic)
        assert dict(other.reads) == dict(plan.reads)
        assert other.explain() == text
    assert len(repr(plan)) < 400


@examples(60)
@given(pairs())
def test_sums_are_those_of_the_traffic(pair):
    plan = planned(pair)
    if plan is None:
        return
    stays = sum(size for (reader, source), size in plan.traffic.items() if reader == source)
    assert (plan.local_bytes, plan.noc_bytes) == (stays, plan.total_bytes - stays)
    assert plan.local == (stays / plan.total_bytes if plan.total_bytes else 1)
    for end in {end for ends in plan.traffic for end in ends}:
        arrives = [size for (reader, source), size in plan.traffic.items() if reader == end != source]
        leaves = [size for (reader, source), size in plan.traffic.items() if source == end != reader]
        assert (plan.bytes_in.get(end, 0), plan.bytes_out.get(end, 0)) == (sum(arrives), sum(leaves))
