# SPDX-License-Identifier: Apache-2.0
"""What `tilewright.testing` tells the authors of operations: expected pages, a C++ header, and equal placements."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright import ttnn
from tilewright.memory import MemoryConfig, NdShardSpec, ShardSpec
from tilewright.testing import (
    assert_same_placement,
    expected_pages,
    runtime_arguments,
    write_accessor_header,
    write_cpp_header,
)

CHIP = "wormhole_n150"
SPECS = [
    tw.TensorSpec((128, 96), "bfloat16", "tile", chip=CHIP),
    tw.TensorSpec((128, 96), "bfloat8_b", "tile", memory="l1", chip=CHIP),
    tw.TensorSpec((128, 128), "bfloat16", "tile", memory=tw.block_sharded((2, 2)), chip=CHIP),
    tw.TensorSpec((70, 60), "float32", memory=tw.height_sharded((3, 1)), chip="blackhole_p150"),
    tw.TensorSpec((96, 384), "bfloat16", "tile", memory=tw.width_sharded((12, 1), buffer_type="dram"), chip=CHIP),
    tw.TensorSpec((4, 64, 64), "bfloat16", "tile", memory=tw.nd_sharded((1, 64, 32), (3, 1)), chip=CHIP),
    tw.TensorSpec((0, 32), "bfloat16", "tile", chip=CHIP),
]


def test_expected_pages_are_those_of_the_page_table():
    for spec in SPECS:
        table = spec.pages()
        cores = expected_pages(spec)
        assert {core: part.pages.tolist() for core, part in cores.items()} == table.by_core()
        for core, part in cores.items():
            assert (table.address[part.pages] == part.addresses).all()
            assert set(table.bank[part.pages].tolist()) == {part.bank}
            assert (np.diff(part.addresses) > 0).all()
            assert {(int(table.core_x[page]), int(table.core_y[page])) for page in part.pages} == {tuple(core)}


def test_expected_pages_of_texts_and_tensors():
    spec = SPECS[2]
    text = repr(ttnn.TensorSpec.wrap(spec.with_chip(None)))
    assert expected_pages(text, chip=CHIP)[1, 0].pages.tolist() == [2, 3, 6, 7]
    assert expected_pages(ttnn.TensorSpec.wrap(spec))[1, 0].pages.tolist() == [2, 3, 6, 7]
    with pytest.raises(tw.MemoryConfigError, match="choose one"):
        expected_pages(text)
    with pytest.raises(tw.MemoryConfigError, match="does not describe a tensor"):
        expected_pages(repr(ttnn.DRAM_MEMORY_CONFIG), chip=CHIP)


def test_a_tensor_on_a_device_is_where_it_is():
    device = tw.Device(CHIP)
    values = np.zeros((64, 64), np.float32)
    first = tw.Tensor.of(values).to_device(device)
    second = tw.Tensor.of(values).to_device(device)
    assert_same_placement(first, second)
    with pytest.raises(AssertionError, match="page 0 of 64 is in bank 0 at address"):
        assert_same_placement(first, second, absolute=True)
    assert expected_pages(second)[0, 0].addresses[0] == second.storage.allocation.address


def test_equal_placements_are_equal():
    for spec in SPECS:
        assert_same_placement(spec, spec)
        text = repr(ttnn.TensorSpec.wrap(spec))
        assert_same_placement(spec, text)
        assert_same_placement(text, text, chip=spec.chip)
        assert_same_placement(spec, repr(ttnn.TensorSpec.wrap(spec).memory_config))
        assert_same_placement(spec.memory, spec)
    block = MemoryConfig("block_sharded", "l1", ShardSpec((2, 2), (64, 64)))
    general = MemoryConfig("nd_sharded", "l1", nd_shard_spec=NdShardSpec((64, 64), (2, 2)))
    assert_same_placement(SPECS[2].with_memory(block), SPECS[2].with_memory(general))


def test_the_first_page_elsewhere_is_named():
    spec = SPECS[2]
    turned = spec.with_memory(tw.block_sharded((2, 2), orientation="col_major"))
    with pytest.raises(AssertionError) as caught:
        assert_same_placement(spec, turned)
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        "page 2 of 16 is on core (1, 0) at offset 0 in the first tensor, on core (0, 1) at offset 0 in the second;"
        " 8 of 16 pages differ"
    )
    assert lines[1] == f"  first:  {spec!r}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shape": (128, 64)}, r"the shape is \[128, 96\] in the first tensor, \[128, 64\] in the second"),
        ({"dtype": "float32"}, "the dtype is bfloat16 .* float32"),
        ({"page_layout": "row_major"}, "the page layout is tile"),
        ({"tile": (16, 32)}, "the tile is 32 x 32 .* 16 x 32"),
        ({"chip": "blackhole_p150"}, "the chip is wormhole_n150"),
        ({"memory": "l1"}, "the memory is DRAM .* L1"),
    ],
)
def test_other_pages_are_a_difference(changes, words):
    with pytest.raises(AssertionError, match=words):
        assert_same_placement(SPECS[0], SPECS[0].replace(**changes))


def test_two_memory_configs_are_not_enough():
    with pytest.raises(tw.MemoryConfigError, match="one side must be"):
        assert_same_placement(MemoryConfig(), MemoryConfig())
    with pytest.raises(tw.FileFormatError, match="character 4"):
        assert_same_placement("no text of ttnn", SPECS[0])


def pieces(tables):
    """Return the pieces of runtime-argument tables: core, own address, other core, address there, bytes."""
    return {
        (*core, own + k * own_stride, x, y, address + k * stride, nbytes)
        for core, rows in tables.items()
        for x, y, address, stride, own, own_stride, nbytes, count in rows.tolist()
        for k in range(count)
    }


def test_runtime_arguments_transfer_every_page():
    pairs = [
        (SPECS[2], SPECS[2].with_memory(tw.height_sharded((4, 1)))),
        (SPECS[0], SPECS[0].with_memory("l1")),
        (SPECS[5], SPECS[5].with_memory("dram")),
    ]
    for source, target in pairs:
        tables = runtime_arguments(source, target)
        read = pieces(tables)
        expected = {page: core for core, part in expected_pages(target).items() for page in part.pages.tolist()}
        found = {core: sum(row[6] * row[7] for row in rows.tolist()) for core, rows in tables.items()}
        assert found == {core: source.page_bytes * list(expected.values()).count(core) for core in expected.values()}
        written = pieces(runtime_arguments(source, target, of="source"))
        assert {(*p[3:5], p[5], *p[:2], p[2], p[6]) for p in written} == read
    assert not runtime_arguments(SPECS[2], SPECS[2])
    text = repr(ttnn.TensorSpec.wrap(pairs[0][1]).memory_config)
    assert pieces(runtime_arguments(SPECS[2], text)) == pieces(runtime_arguments(*pairs[0]))
    with pytest.raises(tw.FormatError, match="got 'both'"):
        runtime_arguments(SPECS[0], SPECS[0], of="both")


def test_pytest_is_not_imported():
    code = "import sys, tilewright.testing; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_headers_are_refused_with_the_reason(tmp_path):
    with pytest.raises(tw.FormatError, match="got 'a b'"):
        write_cpp_header(SPECS[0], tmp_path / "a.h", name="a b")
    large = tw.TensorSpec((2048 * 32, 1024 * 32), page_layout="tile", chip=CHIP)
    with pytest.raises(tw.MemoryConfigError, match="2097152 pages, too many"):
        write_cpp_header(large, tmp_path / "a.h")
    assert not list(tmp_path.iterdir())


PROGRAM = """
#include <cstdio>
{includes}
template <class Pages, class Cores, class Order>
void print(const Pages &pages, const Cores &cores, const Order &order) {{
    for (const auto &p : pages)
        std::printf("%u %u %u %u %llu;", p.page, p.bank, p.core_x, p.core_y, (unsigned long long)p.address);
    std::printf("|");
    for (const auto &core : cores)
        for (std::uint32_t k = 0; k < core.count; ++k)
            std::printf("%u %u %u %u;", core.x, core.y, core.bank, order[core.first + k]);
    std::printf("\\n");
}}
int main() {{
{prints}
}}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_headers_compile_and_say_the_same(tmp_path):
    names = [f"spec{k}" for k in range(len(SPECS))]
    for name, spec in zip(names, SPECS, strict=True):
        write_cpp_header(spec, tmp_path / f"{name}.h", name=name)
    includes = "\n".join(f'#include "{name}.h"' for name in names)
    prints = "\n".join(f"    print({name}::pages, {name}::cores, {name}::pages_by_core);" for name in names)
    checks = "\n".join(
        f"static_assert({name}::page_bytes == {spec.page_bytes} && {name}::num_pages == {spec.num_pages}"
        f" && {name}::buffer_address == {spec.address_on_empty_chip});"
        for name, spec in zip(names, SPECS, strict=True)
    )
    source = tmp_path / "main.cpp"
    source.write_text(PROGRAM.format(includes=f"{includes}\n{checks}", prints=prints))
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(tmp_path / "main")]
    subprocess.run(command, check=True)
    printed = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True).stdout
    for line, spec in zip(printed.splitlines(), SPECS, strict=True):
        pages, cores = [[list(map(int, row.split())) for row in part.split(";") if row] for part in line.split("|")]
        assert pages == spec.pages().rows().tolist()
        assert cores == [[*c, part.bank, page] for c, part in expected_pages(spec).items() for page in part.pages]


# Decodes the words by the rule that tt-metal documents, without anything of ours: words at run time first come as they
# are needed, shapes are counted row by row, and two coordinates share a word.
DECODER = """
#include <cstdio>
#include <vector>
{includes}
template <class Words, class Late, class Places>
int count_wrong(const Words& words, const Late& late_words, const Places& places, unsigned num_banks) {{
    unsigned config = words[0], at = 1, late_at = 0, wrong = 0;
    auto next = [&](unsigned bit) -> unsigned {{ return config & bit ? late_words[late_at++] : words[at++]; }};
    auto list = [&](unsigned bit, unsigned count) {{
        std::vector<unsigned> found;
        for (unsigned k = 0; k < count; ++k) found.push_back(next(bit));
        return found;
    }};
    unsigned page_bytes = next(128), rank = config & 1 ? next(4) : 0, packed = config & 1 ? next(8) : num_banks;
    bool in_runs = packed >> 31;
    unsigned banks = packed & 0x7fffffff;
    auto tensor = list(16, rank), shard = list(32, rank), coordinates = list(64, config & 1 ? (banks + 1) / 2 : 0);
    std::size_t shards = 1, volume = 1;
    for (unsigned d = 0; d < rank; ++d) {{
        shards *= (tensor[d] + shard[d] - 1) / shard[d];
        volume *= shard[d];
    }}
    for (std::size_t page = 0; page < places.size(); ++page) {{
        std::size_t rest = page, number = config & 1 ? 0 : page, inside = 0, across = 1, within = 1;
        for (unsigned d = rank; d-- > 0;) {{
            std::size_t index = rest % tensor[d];
            rest /= tensor[d];
            number += index / shard[d] * across;
            inside += index % shard[d] * within;
            across *= (tensor[d] + shard[d] - 1) / shard[d];
            within *= shard[d];
        }}
        std::size_t each = in_runs ? shards / banks : 1;
        std::size_t bank = in_runs ? number / each : number % banks, local = in_runs ? number % each : number / banks;
        const auto& place = places[page];
        wrong += place.bank != bank || place.offset != (local * volume + inside) * page_bytes;
        if (config & 1) {{
            unsigned half = coordinates[bank / 2] >> (bank % 2 * 16);
            wrong += place.x != (half >> 8 & 0xff) || place.y != (half & 0xff);
        }}
    }}
    return wrong + (at != words.size()) + (late_at != late_words.size());
}}
int main() {{
    int wrong = 0;
{checks}
    std::printf("%d wrong", wrong);
    return wrong != 0;
}}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_words_in_headers_lead_to_the_places_beside_them(tmp_path):
    runs = tw.nd_sharded((1, 32, 32), (3, 2), "col_major", "contiguous_1d")
    specs = [*SPECS, SPECS[5].with_memory(runs).replace(shape=(3, 96, 128)), SPECS[0].replace(memory="l1")]
    late = [(), ("tensor_shape",), ("rank", "tensor_shape", "shard_shape", "banks", "coordinates")]
    pairs = [(spec, parts) for spec in specs for parts in (late if spec.memory.is_sharded else [(), ("page_size",)])]
    names = [f"accessor{k}" for k in range(len(pairs))]
    for name, (spec, parts) in zip(names, pairs, strict=True):
        write_accessor_header(spec, tmp_path / f"{name}.h", name, runtime=parts)
    includes = "\n".join(f'#include "{name}.h"' for name in names)
    checks = "\n".join(
        f"    wrong += count_wrong({name}::compile_time_args, {name}::common_runtime_args, {name}::places,"
        f" {name}::num_banks);"
        for name in names
    )
    source = tmp_path / "main.cpp"
    source.write_text(DECODER.format(includes=includes, checks=checks))
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(tmp_path / "main")]
    subprocess.run(command, check=True)
    printed = subprocess.run([str(tmp_path / "main")], check=False, capture_output=True, text=True).stdout
    assert printed == "0 wrong"
    assert "places{{\n    {0, 18, 18, 0}, {0, 18, 18, 2048}" in (tmp_path / "accessor4.h").read_text()
    with pytest.raises(tw.FormatError, match="got 'a b'"):
        write_accessor_header(SPECS[0], tmp_path / "a.h", name="a b")
