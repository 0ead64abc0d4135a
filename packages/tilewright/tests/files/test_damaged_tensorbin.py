# SPDX-License-Identifier: Apache-2.0
"""Damaged files give a `FileFormatError`, or are read as what they have become; nothing else."""

import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import FileFormatError
from tilewright.files import parse_tensorbin, read_tensorbin
from tilewright.files.tensorbin import FlatNumber, FlatStruct, FlatTable, encode_flatbuffer

FILES = [
    path.read_bytes() for path in sorted((Path(__file__).parent.parent / "golden/ttnn/tensorbin").glob("*.tensorbin"))
]
WORDS = [0, 1, 2, 3, 4, 7, 8, 64, 255, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 1]


def read_or_refused(data):
    try:
        held = parse_tensorbin(data)
    except FileFormatError:
        return
    for device in held.shards:
        assert held.pages(device).nbytes == held.spec.nbytes <= len(data)
    if held.shards:
        held.array(next(iter(held.shards)))


@given(st.sampled_from(FILES), st.data())
def test_changed_words(data, draw):
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, min(len(data), 640) // 4 - 1)) * 4
        struct.pack_into("<I", damaged, at, draw.draw(st.sampled_from(WORDS) | st.integers(0, 2**32 - 1)))
    read_or_refused(bytes(damaged))


@given(st.sampled_from(FILES), st.data())
def test_changed_bytes(data, draw):
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 8))):
        damaged[draw.draw(st.integers(0, min(len(data), 640) - 1))] = draw.draw(st.integers(0, 255))
    read_or_refused(bytes(damaged))


@given(st.sampled_from(FILES), st.floats(0, 1))
def test_truncated(data, part):
    cut = data[: int(part * (len(data) - 1))]
    with pytest.raises(FileFormatError):
        parse_tensorbin(cut)


def test_truncated_at_any_byte():
    data = min(FILES, key=len)
    for size in {*range(min(len(data), 1000)), *range(max(0, len(data) - 100), len(data))}:
        with pytest.raises(FileFormatError):
            parse_tensorbin(data[:size])


@given(st.binary(max_size=200), st.integers(0, 200))
def test_noise(noise, size):
    read_or_refused(size.to_bytes(8, "little") + noise)


def test_a_damaged_file_is_named(tmp_path):
    for content in (b"", b"abc", bytes(8), bytes(64), b"\xff" * 64):
        (tmp_path / "x.tensorbin").write_bytes(content)
        with pytest.raises(FileFormatError, match=r"x\.tensorbin: "):
            read_tensorbin(tmp_path / "x.tensorbin")


# Headers that are sound flatbuffers and unsound descriptions.

ROWS = {0: FlatNumber("B", 1), 1: FlatNumber("B", 1), 2: {}, 3: {}, 4: [1]}
HERE = {0: [0, 0]}
CORE = {0: {0: FlatNumber("i", 0)}, 1: {0: FlatNumber("i", 0)}}


def shard(size=16, offset=0, kind=1, at=HERE):
    return {0: FlatNumber("B", kind), 1: FlatStruct("QQ", (offset, size)), 2: at}


def sound(layout=ROWS, shape=(2, 2), shards=None, mesh=(1, 1), **more):
    root = {0: {0: shape, 1: layout}, 1: {0: mesh}, 2: [shard()] if shards is None else shards}
    return root | {int(name[1:]): value for name, value in more.items()}


def file_of(root, data=bytes(16)):
    header = encode_flatbuffer(root)
    header += bytes(-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data


def topology(distribution=(1,), placements=None, coordinates=(HERE,)):
    return {0: {0: distribution}, 1: [{1: FlatNumber("i", -1)}] if placements is None else placements, 2: coordinates}


def sharded(**fields):
    memory = {0: FlatNumber("H", 2), 1: FlatNumber("H", 1), **{int(name[1:]): value for name, value in fields.items()}}
    return sound({**ROWS, 3: memory})


def matrix(cores, height=2, width=2):
    return {0: {0: cores}, 1: FlatNumber("I", height), 2: FlatNumber("I", width)}


UNSOUND = {
    "no spec": {1: {0: [1, 1]}},
    "no mesh": {0: sound()[0]},
    "data type": sound({**ROWS, 0: FlatNumber("B", 9)}),
    "page kind": sound({**ROWS, 1: FlatNumber("B", 0)}),
    "no memory": sound({**ROWS, 3: None}),
    "tile": sound({**ROWS, 1: FlatNumber("B", 2), 2: {0: {0: FlatNumber("I", 7), 1: FlatNumber("I", 32)}}}),
    "block float in rows": sound({**ROWS, 0: FlatNumber("B", 3)}),
    "memory layout": sound({**ROWS, 3: {0: FlatNumber("H", 1)}}),
    "buffer type": sound({**ROWS, 3: {1: FlatNumber("H", 9)}}),
    "rank": sound(shape=[1] * 33),
    "alignment": sound({**ROWS, 4: [0]}),
    "shard outside": sound(shards=[shard(offset=8)]),
    "shard far outside": sound(shards=[shard(offset=2**64 - 8)]),
    "shard size": sound(shards=[shard(size=12)]),
    "shard elsewhere": sound(shards=[shard(kind=2)]),
    "shard without place": sound(shards=[{0: FlatNumber("B", 1), 2: HERE}]),
    "shard without device": sound(shards=[{0: FlatNumber("B", 1), 1: FlatStruct("QQ", (0, 16))}]),
    "shard twice": sound(shards=[shard(), shard()]),
    "device outside": sound(shards=[shard(at={0: [0, 1]})]),
    "device of another rank": sound(shards=[shard(at={0: [0]})]),
    "empty": sound(shape=[0, 2**32 - 1, 2**32 - 1], shards=[shard(size=0)]),
    "huge shape": sound(shape=[2**32 - 1] * 8),
    "sharded without shards": sharded(),
    "no cores": sharded(_2=matrix([])),
    "no grid": sharded(_2={1: FlatNumber("I", 2), 2: FlatNumber("I", 2)}),
    "range without corner": sharded(_2=matrix([{0: CORE[0]}])),
    "core on no chip": sharded(_2=matrix([{0: CORE[0], 1: {0: FlatNumber("i", 2**31 - 1)}}])),
    "negative core": sharded(_2=matrix([{0: {0: FlatNumber("i", -1)}, 1: CORE[1]}])),
    "reversed range": sharded(_2=matrix([{0: {0: FlatNumber("i", 3)}, 1: CORE[1]}])),
    "overlapping ranges": sharded(_2=matrix([CORE, CORE])),
    "shard of nothing": sharded(_2=matrix([CORE], 0)),
    "orientation": sharded(_2={**matrix([CORE]), 3: FlatNumber("B", 2)}),
    "distribution": sharded(_3={0: [2, 2], 1: {0: [CORE]}, 3: FlatNumber("B", 3)}, _4=FlatNumber("B", 1)),
    "shard without extents": sharded(_3={1: {0: [CORE]}}, _4=FlatNumber("B", 1)),
    "interleaved with shards": sound({**ROWS, 3: {2: matrix([CORE])}}),
    "placements": sound(_3=topology(placements=[{}, {}])),
    "placement kind": sound(_3=topology(placements=[{0: FlatNumber("B", 2)}])),
    "coordinate twice": sound(_3=topology(coordinates=[HERE, HERE])),
    "coordinate outside": sound(_3=topology(coordinates=[{0: [0, 7]}])),
    "no distribution": sound(_3={}),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_unsound_descriptions(name):
    with pytest.raises(FileFormatError):
        parse_tensorbin(file_of(UNSOUND[name]))


def test_the_sound_ones_are_read():
    assert parse_tensorbin(file_of(sound())).array().shape == (2, 2)
    assert parse_tensorbin(file_of(sound(_3=topology()))).array().shape == (2, 2)
    assert parse_tensorbin(file_of(sharded(_2=matrix([CORE])))).spec.memory.is_sharded


def test_a_small_file_cannot_ask_for_much_memory():
    claims = [sound(shape=[2**31, 2**31]), sound(mesh=[2**32 - 1] * 32, shards=[shard(at={0: [5] * 32})] * 1000)]
    tracemalloc.start()
    for claim in claims:
        with pytest.raises(FileFormatError):
            parse_tensorbin(file_of(claim))
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_flatbuffers_check_every_access():
    good = encode_flatbuffer(
        {0: FlatNumber("I", 7), 1: [1, 2, 3], 2: {0: [1]}, 3: [{}, {}], 4: FlatStruct("QQ", (1, 2))}
    )
    table = FlatTable.root(good)
    assert [table.number(0, "I"), table.numbers(1), table.count(3), table.structure(4, "QQ")] == [
        7,
        (1, 2, 3),
        2,
        (1, 2),
    ]
    with pytest.raises(FileFormatError, match="entry 2 of field"):
        table.entry(3, 2)
    with pytest.raises(FileFormatError, match="more than 2"):
        table.numbers(1, max_count=2)
    for size in range(len(good) - 16):
        with pytest.raises(FileFormatError):
            FlatTable.root(good[:size]).structure(4, "QQ")
