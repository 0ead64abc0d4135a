# SPDX-License-Identifier: Apache-2.0
"""The words in the command that compiles a kernel, and the accessors that are found in them."""

import json
from collections import Counter
from pathlib import Path
from time import perf_counter

import pytest

import tilewright as tw
from tilewright import LayoutError, MemoryConfigError
from tilewright.notation import KernelArguments, parse

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/accessor/accessor_public.json").read_text(encoding="utf-8"))
SHARDED = "1,2048,2,4,4,6,2,3,319951378,320016915"
COMMAND = (
    "ccache riscv-tt-elf-g++ -std=c++17 -O2 -DNOC_INDEX=1"
    f' -DFULL_KERNEL_NAME="reader_unary/123/" -DKERNEL_COMPILE_TIME_ARGS=7,{SHARDED},0'
    ' -DKERNEL_COMPILE_TIME_ARG_MAP={"cb_in",0},{"cb_out",16} -I.. -c -o reader.o reader.cc'
)


@pytest.mark.parametrize("with_chip", [True, False])
def test_accessors_are_found_in_recorded_kernels(with_chip):
    found = Counter()
    for case in GOLDEN["operations"]:
        chip = tw.Chip.named(case["chip"], dispatch=case["dispatch"]) if with_chip else None
        for kernel in case["kernels"]:
            text = f"-DKERNEL_COMPILE_TIME_ARGS={','.join(map(str, kernel['words']))}"
            arguments = parse(text).value
            assert list(arguments.words) == kernel["words"]
            recorded = {(first, count) for _, first, count, _ in kernel["accessors"]}
            readings = [{(each.offset, len(each.words)) for each in run} for run in arguments.readings(chip)]
            assert any(recorded <= run for run in readings), text
            found["exactly" if readings == [recorded] else "with others" if len(readings) == 1 else "ambiguous"] += 1
            for first, count in recorded:
                assert len(arguments.accessors(chip, first)[0].words) == count
    assert found == {"exactly": 509, "with others": 10, "ambiguous": 8}


def test_a_command_is_searched_for_its_words():
    parsed = parse(COMMAND)
    assert parsed.notation == "tt-metal"
    assert parsed.value == parsed.subject
    assert parsed.value.name == "reader_unary/123/"
    assert parsed.value.named == (("cb_in", 0), ("cb_out", 16))
    (accessor,) = parsed.value.accessors("n150")
    assert (accessor.offset, accessor.num_pages) == (1, 24)
    assert parse(str(parsed)).value.words == parsed.value.words
    lines = parsed.explain().splitlines()
    assert lines[:3] == [
        "kernel reader_unary/123/: 12 compile-time words",
        "named words: cb_in 0, cb_out 16",
        "from word 0 on, 1 word of the kernel's own: 7",
    ]
    assert lines[-2] == "from word 11 on, 1 word of the kernel's own: 0"
    with pytest.raises(LayoutError, match="describes the words of a kernel, which is not a layout"):
        _ = parsed.layout


def test_the_source_of_a_kernel_decides():
    words = "KERNEL_COMPILE_TIME_ARGS=0,4096,4,2,4096"
    assert len(parse(words).value.readings()) == 2
    with pytest.raises(LayoutError, match=r"one place of 5 words, got 2 at 0, 3; give the offset"):
        parse(words).value.accessors()
    source = f"#define {words.replace('=', ' ')}\nconstexpr auto args = TensorAccessorArgs<3>();"
    assert [each.offset for each in parse(source).value.accessors()] == [3]
    assert "may also be" not in parse(source).explain()
    assert "may also be the kernel's own" in parse("KERNEL_COMPILE_TIME_ARGS=7,2,4096").explain()
    binding = f"{words} using src_t = TensorBindingToken<3u, 0u>;"
    assert [each.offset for each in parse(binding).value.accessors()] == [3]
    with pytest.raises(MemoryConfigError, match=r"got 4096 .* in word 1"):
        parse(words).value.accessors(offset=1)


def test_words_without_accessors_are_the_kernels_own():
    kernel = parse("KERNEL_COMPILE_TIME_ARGS=5,7,9").value
    assert kernel.readings() == []
    assert "no readings are possible" in kernel.explain()
    with pytest.raises(LayoutError, match="got none"):
        kernel.accessors()
    with pytest.raises(LayoutError, match="of one kernel, in decimal, got 2 lists"):
        parse("KERNEL_COMPILE_TIME_ARGS=5 KERNEL_COMPILE_TIME_ARGS=6")


@pytest.mark.parametrize("words", ["2,2048,1x", "2,2048,15x", "0x10,5", "2,12345678901", "2,page,4"])
def test_words_that_are_no_numbers_are_not_cut_off(words):
    with pytest.raises(LayoutError, match="in decimal, got 0 lists"):
        parse(f"KERNEL_COMPILE_TIME_ARGS={words}")


def test_long_lists_are_searched_in_linear_time():
    start = perf_counter()
    assert len(KernelArguments((0, 32) * 10_000).readings()) == 1
    assert len(KernelArguments((5, 0, 32) * 10_000).readings()) == 10_000
    assert KernelArguments((1, 48, 1, 1024, 1, 1) * 5_000).readings()
    assert perf_counter() - start < 60


def test_pictures_need_the_chip():
    from tilewright.views import scene_of

    scene = scene_of(parse(COMMAND), chip="n150")
    assert scene.panels[1].box_titles == ("Core (0,0)", "Core (1,0)", "Core (0,1)", "Core (1,1)")
    with pytest.raises(MemoryConfigError, match="depend on the chip"):
        scene_of(parse(COMMAND))
