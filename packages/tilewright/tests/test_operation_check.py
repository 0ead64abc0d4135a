# SPDX-License-Identifier: Apache-2.0
"""`check_operation`: right operations pass, and each way to break one is named with its first page and its place."""

import json

import numpy as np
import pytest

import tilewright as tw
from tilewright import MemoryConfigError, Tensor, ttnn
from tilewright.testing import OperationCheck, check_operation

CHIP = "wormhole_n150"
VALUES = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)
DRAM = tw.interleaved("dram")
BLOCKS = tw.block_sharded((2, 2))
HEIGHTS = tw.height_sharded((4, 1))
NO_TRACE = "NoC requests, without a trace"


def tensor(memory, values=VALUES, dtype="float32", layout="tile", chip=CHIP):
    return Tensor.of(values, dtype, page_layout=layout, memory=memory, chip=chip)


@pytest.fixture
def device():
    return tw.Device(CHIP, hybrid=True)


def move(memory, break_it=None):
    """Return an operation that moves a tensor, and then breaks it on its device."""

    def run(source):
        result = source.to_device(source.device, memory)
        if break_it is not None:
            break_it(result)
        return result

    return run


def bank_bytes(result, page, size):
    """Return the device, the place, the address and the bytes of a page."""
    table = result.storage.allocation.pages()
    place = (int(table.core_x[page]), int(table.core_y[page]))
    address = int(table.address[page])
    return result.device, place, address, result.device.read_bytes(place, address, size, result.memory.buffer_type)


def swap_pages(first, second):
    def swap(result):
        size, kind = result.spec.page_bytes, result.memory.buffer_type
        ends = [bank_bytes(result, page, size) for page in (first, second)]
        for (unit, place, address, _), (*_, data) in zip(ends, reversed(ends), strict=True):
            unit.write_bytes(place, address, data, kind)

    return swap


def flip_byte(page, byte):
    def flip(result):
        unit, place, address, data = bank_bytes(result, page, byte + 1)
        unit.write_bytes(place, address + byte, data[byte:] ^ 0xFF, result.memory.buffer_type)

    return flip


def failure(*arguments, **options):
    with pytest.raises(AssertionError) as caught:
        check_operation(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    "memory",
    [DRAM, "l1", BLOCKS, HEIGHTS, tw.width_sharded((2, 1)), tw.nd_sharded((32, 64), (3, 1)),
     tw.height_sharded((4, 1), buffer_type="dram")],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bfloat8_b", "bfloat4_b"])
def test_right_moves_pass(device, memory, dtype):
    source = tensor(DRAM, dtype=dtype).to_device(device)
    checked = check_operation(move(memory), source, tensor(memory, dtype=dtype))
    assert checked == OperationCheck(16, source.nbytes, 0, (NO_TRACE,))


@pytest.mark.parametrize(
    ("run", "values", "layout"),
    [
        (lambda x: x.to_layout("tile"), VALUES, "tile"),
        (lambda x: x[:32, 5:37], VALUES[:32, 5:37], "row_major"),
        (lambda x: Tensor.of(x.numpy().T, "float32").to_device(x.device), VALUES.T, "row_major"),
    ],
)
def test_other_operations_pass(device, run, values, layout):
    source = tensor(DRAM, layout="row_major").to_device(device)
    checked = check_operation(run, source, tensor(DRAM, np.ascontiguousarray(values), layout=layout))
    assert (checked.nbytes, checked.unchecked[0]) == (values.size * 4, NO_TRACE)


def test_shards_with_own_addresses_are_read_at_them(device):
    memory = tw.MemoryConfig("height_sharded", "l1", tw.ShardSpec((4, 1), (32, 128)), allocation="per_core")
    blocker = tw.MemoryConfig("height_sharded", "l1", tw.ShardSpec((1, 1), (32, 128)), allocation="per_core")
    held = tensor(blocker, VALUES[:32]).to_device(device)
    source = tensor(DRAM).to_device(device)
    assert check_operation(move(memory), source, tensor(memory)).pages == 16
    found = failure(move(memory, flip_byte(5, 2)), source, tensor(memory))
    assert "page 5 of 16, on core (1, 0) at offset 4096" in found
    assert held.is_allocated()


def test_a_swapped_page_is_named_with_the_one_it_holds(device):
    found = failure(move(BLOCKS, swap_pages(5, 10)), tensor(DRAM).to_device(device), tensor(BLOCKS))
    # page 5 is in the second row of tiles, second in it: core (0, 0), its fourth page of 4096 bytes
    assert "page 5 of 16, on core (0, 0) at offset 12288, has 8256.0 instead of 4128.0 at element (32, 32)" in found
    assert "holds what page 10 should; 2 of 16 pages differ" in found
    assert "block sharded in L1, shards of 64 x 64 on 4 cores, grid 2d row major: page 5 is page 3 of shard 0" in found


@pytest.mark.parametrize(
    ("memory", "where", "rule"),
    [
        (DRAM, "bank 9 at offset 0", "interleaved in DRAM: page 9 is in bank 9 modulo 12"),
        (HEIGHTS, "core (2, 0) at offset 4096", "round robin 1d row major: page 9 is page 1 of shard 2"),
        (BLOCKS, "core (0, 1) at offset 4096", "grid 2d row major: page 9 is page 1 of shard 2"),
        (tw.nd_sharded((32, 64), (3, 1)), "core (1, 0) at offset 12288", "page 9 is page 1 of shard 4"),
    ],
)
def test_a_flipped_byte_is_named_with_its_place_and_rule(device, memory, where, rule):
    source = tensor("l1" if memory == DRAM else DRAM).to_device(device)
    found = failure(move(memory, flip_byte(9, 4 * 3 + 1)), source, tensor(memory))
    assert f"page 9 of 16, on {where}, has " in found
    assert f"instead of {VALUES[64, 35]} at element (64, 35): page 9, byte 13" in found
    assert "; 1 of 16 pages differ" in found
    assert rule in found


def test_block_formats_are_compared_by_bytes(device):
    source, expected = tensor(DRAM, dtype="bfloat8_b").to_device(device), tensor(HEIGHTS, dtype="bfloat8_b")
    found = failure(move(HEIGHTS, flip_byte(4, 1)), source, expected)
    assert "page 4 of 16, on core (1, 0) at offset 0" in found
    assert "at the exponent of (33, 0) to (33, 15): page 4, byte 1" in found
    quarter = tensor(HEIGHTS, dtype="bfloat4_b")

    def flip_high_half(result):
        unit, place, address, data = bank_bytes(result, 4, 65)
        unit.write_bytes(place, address + 64, data[64:] ^ 0xF0, "l1")

    found = failure(move(HEIGHTS, flip_high_half), tensor(DRAM, dtype="bfloat4_b").to_device(device), quarter)
    assert "at element (32, 1): page 4, byte 64" in found


def test_a_wrong_core_order_is_a_wrong_place(device):
    def run(source):
        """Put the shards on the right cores, but in the order of their columns."""
        turned = source.to_device(source.device, tw.block_sharded((2, 2), orientation="col_major"))
        return {
            (x, y): turned.device.read_bytes((x, y), turned.storage.allocation.address, 16384, "l1")
            for x in (0, 1)
            for y in (0, 1)
        }

    found = failure(run, tensor(DRAM).to_device(device), tensor(BLOCKS))
    assert "page 2 of 16, on core (1, 0) at offset 0" in found
    assert "holds what page 8 should; 8 of 16 pages differ" in found


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        (tw.block_sharded((2, 2), orientation="col_major"), "the memory is MemoryConfig('block_sharded', 'l1'"),
        (HEIGHTS, "'height_sharded'"),
        ("l1", "MemoryConfig('interleaved', 'l1'), expected MemoryConfig('block_sharded'"),
        (tw.block_sharded((2, 2), buffer_type="dram"), "."),
    ],
)
def test_wrong_memories_are_named_first(device, memory, words):
    if words == ".":
        memory, words = tw.height_sharded((4, 1), buffer_type="dram"), "'dram'"
    assert words in failure(move(memory, flip_byte(0, 0)), tensor(DRAM).to_device(device), tensor(BLOCKS))


def test_an_operation_that_returns_its_input_is_found(device):
    found = failure(lambda x: x, tensor(DRAM).to_device(device), tensor(BLOCKS))
    assert found.startswith("the memory is MemoryConfig('interleaved', 'dram'), expected MemoryConfig('block_sharded'")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"values": VALUES[:64]}, "the shape is [64, 128], expected [128, 128]"),
        ({"dtype": "bfloat16"}, "the dtype is bfloat16, expected float32"),
        ({"layout": "row_major"}, "the page layout is ROW_MAJOR, expected TILE"),
    ],
)
def test_other_tensors_are_named_before_their_bytes(device, wrong, words):
    assert failure(lambda _: tensor(DRAM, **wrong).to_device(device), None, tensor(DRAM)) == words


def test_padding_is_compared(device):
    ragged = VALUES[:40, :40]
    expected = Tensor.of(ragged, "float32", page_layout="tile", memory=HEIGHTS, chip=CHIP)
    other = Tensor.of(ragged, "float32", 7, page_layout="tile", memory=HEIGHTS, chip=CHIP)
    found = failure(lambda _: other.to_device(device), None, expected)
    assert "page 1 of 4, on core (0, 0) at offset 4096, has 0x" in found
    assert "instead of 0x00 at padding, at the padded coordinate (0, 40)" in found


def dump(result, size):
    """Return what a card would dump of the cores or banks of a tensor."""
    block, buffer = result.storage.allocation, result.memory.buffer_type
    table = block.pages()
    places = {(int(x), int(y)) for x, y in zip(table.core_x, table.core_y, strict=True)}
    return {place: result.device.read_bytes(place, block.address, size, buffer).tobytes() for place in places}


def test_dumps_of_cores_and_banks(device):
    source = tensor(DRAM).to_device(device)
    longer = {place: data + b"more" for place, data in dump(source.to_device(device, BLOCKS), 16384).items()}
    assert check_operation(lambda _: longer, source, tensor(BLOCKS)).pages == 16
    banks = {bank: bytes_ for (bank, _), bytes_ in dump(source, 8192).items()}
    assert check_operation(lambda _: banks, source, tensor(DRAM)).unchecked == (NO_TRACE,)
    short = dump(source.to_device(device, BLOCKS), 12288)
    assert "page 5 of 16, on core (0, 0) at offset 12288, was not dumped; a core or bank holds 16384 bytes" in failure(
        lambda _: short, source, tensor(BLOCKS)
    )
    del banks[9]
    assert "page 9 of 16, on bank 9 at offset 0, was not dumped" in failure(lambda _: banks, source, tensor(DRAM))


def test_files_and_host_tensors(device, tmp_path):
    path = tmp_path / "result.tensorbin"

    def save(x):
        ttnn.dump_tensor(path, ttnn.Tensor.wrap(x).cpu())
        return path

    source = tensor(BLOCKS).to_device(device)
    checked = check_operation(save, source, tensor(BLOCKS))
    assert "places of pages" in checked.unchecked[1]
    assert "dtype" in failure(save, source, tensor(BLOCKS, dtype="bfloat16"))
    assert check_operation(lambda x: x.from_device(), source, tensor(BLOCKS)).unchecked == checked.unchecked
    arrays = check_operation(lambda x: x.numpy(), source, tensor(BLOCKS))
    assert (arrays.pages, len(arrays.unchecked)) == (16, 3)
    wrong = VALUES.copy()
    wrong[70, 3] = -1
    found = failure(lambda x: wrong, source, tensor(BLOCKS))
    assert f"has -1.0 instead of {VALUES[70, 3]} at element (70, 3)" in found
    assert "the shape is [128], expected [128, 128]" in failure(lambda x: wrong[0], source, tensor(BLOCKS))
    ours = ttnn.Tensor.wrap(tensor(BLOCKS))
    assert check_operation(lambda x: x.to(device), ours, tensor(BLOCKS)).pages == 16


def test_several_tensors(device):
    first, second = tensor(DRAM).to_device(device), tensor(BLOCKS).to_device(device)
    checked = check_operation(lambda a, b: [b, a], [first, second], [tensor(BLOCKS), tensor(DRAM)])
    assert (checked.pages, checked.nbytes) == (32, 2 * VALUES.nbytes)
    assert failure(lambda a, b: [b, b], [first, second], [tensor(BLOCKS), tensor(DRAM)]).startswith(
        "result 1: the memory"
    )
    assert "returned 2 results, expected 1" in failure(lambda a: (a, a), first, tensor(DRAM))
    assert "returned 1 result, expected 2" in failure(lambda a, b: a, [first, second], [tensor(DRAM)] * 2)


def test_an_operation_that_returns_nothing_is_told(device):
    before = tensor(DRAM).to_device(device)
    assert failure(lambda source: None, before, tensor(BLOCKS)) == "the operation returned 0 results, expected 1"


def test_what_is_expected_has_pages_and_a_chip(device):
    with pytest.raises(MemoryConfigError, match="expected a tensor, got ndarray"):
        check_operation(lambda x: x, VALUES, VALUES)
    loose = tensor(DRAM, chip=None)
    with pytest.raises(tw.TilewrightError, match="chip"):
        check_operation(lambda x: x.numpy() + 1, loose, loose)
    assert (
        check_operation(move(BLOCKS), tensor(DRAM, chip=None).to_device(device), tensor(BLOCKS, chip=None)).pages == 16
    )


def test_empty_tensors_pass(device):
    none = tensor(DRAM, np.zeros((0, 32), np.float32))
    assert check_operation(lambda x: x, none.to_device(device), none).nbytes == 0
    assert check_operation(lambda x: {}, none, none).pages == 0


def test_requests_are_those_of_the_plan(device, tmp_path):
    pytest.importorskip("tilewright_audit")
    source = tensor(DRAM, np.ones((32, 64), np.float32), "bfloat16")
    target = tensor(tw.height_sharded((1, 1)), np.ones((32, 64), np.float32), "bfloat16")
    event = {"proc": "NCRISC", "noc": "NOC_0", "sx": 1, "sy": 1, "num_bytes": 2048, "timestamp": 7, "type": "READ"}
    wrong = [event | {"dx": 0, "dy": 1}]
    run = move(target.memory)
    for trace in (wrong, tmp_path / "trace.json"):
        (tmp_path / "trace.json").write_text(json.dumps(wrong))
        found = failure(run, source.to_device(device), target, trace=trace)
        assert "the requests of the NoC are not the plan" in found
        assert found == failure(lambda x, trace=trace: (run(x), trace), source.to_device(device), target)
    with pytest.raises(MemoryConfigError, match="2 inputs and 1 result"):
        check_operation(lambda a, b: run(a), [source.to_device(device)] * 2, target, trace=wrong)


def test_a_missing_companion_is_named(device, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tilewright_audit", None)
    with pytest.raises(ImportError, match=r"pip install 'tilewright\[audit\]'"):
        check_operation(move(BLOCKS), tensor(DRAM).to_device(device), tensor(BLOCKS), trace=[])
