# SPDX-License-Identifier: Apache-2.0
"""Errors of ttnn and tt-metal: recorded messages with their truth, the noise around them, and texts without any."""

import contextlib
import json
import random
import time
from pathlib import Path

import pytest

from tilewright import FileFormatError, LayoutError, TilewrightError
from tilewright.notation import explain_error, find_errors, parse
from tilewright.ttnn.error_families import compile_wording, load_families, load_meanings

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "errors" / "messages.json").read_text(encoding="utf-8"))
MESSAGES, CLEAN = GOLDEN["messages"], GOLDEN["clean"]


def only(text):
    (error,) = explain_error(text).errors
    return error


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case["id"])
def test_recorded_message(case):
    error = only(case["text"])
    assert (error.kind, error.numbers) == (case["kind"], case["numbers"])
    assert case["derived"].items() <= error.derived.items()
    assert error.remedies or error.unknown
    assert set(error.numbers) | set(error.derived) == set(error.meanings)
    assert max(map(len, error.explain().splitlines())) <= 80
    assert json.loads(json.dumps(explain_error(case["text"]).to_json()))["errors"][0]["numbers"] == case["numbers"]


@pytest.mark.parametrize("case", CLEAN, ids=lambda case: case["id"])
def test_text_without_an_error(case):
    assert not find_errors(case["text"]).errors
    with pytest.raises(FileFormatError, match=r"has no error of ttnn or tt-metal: known are .* paste the whole"):
        explain_error(case["text"])


def test_every_number_has_a_meaning():
    named = {
        name
        for group in ("families", "rules", "conditions")
        for family in load_families(group)
        for wording in family.wordings
        for name in compile_wording(wording).shapes
        if not name.startswith("_")
    }
    assert named <= set(load_meanings())


CLASH = (
    "Statically allocated circular buffers in program 7 clash with L1 buffers on core range [(x=0,y=0) - (x=7,y=7)]."
    " L1 buffer allocated at 600000 and static circular buffer region ends at 700000"
)


def wrap(text, width):
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "E       ",
        "> ",
        "ERROR 10-23 04:15:50 [engine.py:187] ",
        "(EngineCore_DP0 pid=292) ERROR 10-23 04:15:50 core.py:1035] ",
        "2025-10-14T04:33:23.9048735Z ",
        "[1,0]<stderr>: ",
        "\x1b[31m",
        "E ",
        "# ",
        "[rank0]: ",
        "[default0]:",
        "(RayWorkerWrapper pid=4242, ip=10.0.0.7) ",
        "Nov  9 04:33:23 host-1 python3[4242]: ",
        "2025-10-14T04:33:23.9048735Z ##[error]",
        "vllm  | (Worker_TP1 pid=77) ERROR 10-08 09:19:30 [v1/executor/multiproc_executor.py:671] ",
    ],
)
@pytest.mark.parametrize("width", [40, 80, 1000])
def test_noise_before_wrapped_lines(prefix, width):
    text = "\n".join([prefix + line for line in ["info:", *wrap(CLASH, width), "backtrace:"]])
    assert only(text).derived == {"overlap": 100000}
    assert only(text).line == 2


@pytest.mark.parametrize(
    "text",
    [
        CLASH.replace("circular", "dataflow"),
        CLASH.replace("[(x=0,y=0) - (x=7,y=7)]", "[0-0 - 7-7]"),
        f"`tt::exception E info: E {CLASH}`",
        f"num_coresE       info:E       {CLASH}",
        f"TT_FATAL @ /a/b.cpp:12: a < num_coresE       info:E\n{CLASH}",
        f"RuntimeError('TT_THROW @ /a/b.cpp:12: tt::exception\\ninfo:\\n{CLASH}\\nbacktrace:\\n --- x')",
        f"`{CLASH}`",
    ],
)
def test_other_spellings(text):
    assert only(text).numbers["core_range"] == [[0, 0], [7, 7]]


def test_text_that_was_never_filled():
    error = only(
        "Statically allocated circular buffers in program {} clash with L1 buffers on core range {}. L1 buffer"
        " allocated at {} and static circular buffer region ends at {}"
    )
    assert error.kind == "buffers_clash_with_l1"
    assert not error.numbers
    assert "the text has {} for them" in error.unknown


def envelope(message, condition="false", line=1):
    return f"TT_FATAL @ /project/a.cpp:{line}: {condition}\ninfo:\n{message}\nbacktrace:\n --- libtt_metal.so"


def test_one_event_is_reported_once_with_its_first_line_and_condition():
    logged = f"2026-05-14 01:00:31.755 | critical |          Always | TT_FATAL: {CLASH} (assert.hpp:104)"
    error = only(f"ok\n{logged}\nRuntimeError: {envelope(CLASH, 'a < b')}")
    assert (error.line, error.condition) == (2, "a < b")


def test_the_condition_names_the_numbers_of_older_versions():
    error = only(envelope("Error: incompatible values 1 and 3", "per_core_M % program_config.out_subblock_h == 0"))
    assert error.kind == "matmul_subblock_does_not_divide"
    assert error.numbers == {"per_core_M": 1, "out_subblock_h": 3}
    assert error.remedies == ("Use out_subblock_h=1, the next smaller divisor of 1.",)
    assert error.message == "3 does not divide 1: out_subblock_h and per_core_M."
    error = only("Error: incompatible values 1 and 3")
    assert (error.kind, error.message) == ("does_not_divide", "3 does not divide 1.")


@pytest.mark.parametrize(
    ("message", "kind", "numbers"),
    [
        ("B * Mt (12) must be divisible by per_core_M (5)", "matmul_per_core_does_not_divide", [12, 5]),
        ("K (48) must be divisible by tile width (32)", "not_a_tile_multiple", [48, 32]),
        ("Fold: logical H (7) must be divisible by stride_h (2).", "does_not_divide", [7, 2]),
        ("Error: K 16 must be divisible by in0_block_w 5.", "matmul_k_block_does_not_divide", [16, 5]),
        ("in0_block_w (4) must equal shard_shape[1] / in0_tile.get_width() (2)", "matmul_per_core_mismatch", [4, 2]),
        ("Inputs to SDPA must be tilized", "layout_must_be_tile", []),
        ("Cos tensor must be on device", "tensor_not_on_device", []),
        ("Input B must be interleaved", "memory_layout_required", []),
        ("Unsupported data type DataType::UINT8", "dtype_unsupported", ["UINT8"]),
    ],
)
def test_rules_that_operations_share(message, kind, numbers):
    error = only(envelope(message))
    assert (error.kind, [*error.numbers.values()]) == (kind, numbers)
    assert error.remedies


def test_message_that_is_in_no_table_is_shown_with_its_condition():
    error = only(envelope("The moon is in phase 4", "phase < 4"))
    assert error.kind == "unexplained"
    assert error.message == "ttnn stopped: The moon is in phase 4"
    assert error.condition == "phase < 4"


def test_unknown_message_is_shown_in_full():
    assert only(envelope("cannot use tt::moon in a phase")).message == "ttnn stopped: cannot use tt::moon in a phase"


def test_condition_that_explains_a_message_is_shown():
    error = only(envelope("The moon is wrong", "Mt % per_core_M == 0"))
    assert (error.kind, error.condition) == ("matmul_per_core_does_not_divide", "Mt % per_core_M == 0")


@pytest.mark.parametrize("condition", ["false", "tt::exception"])
def test_condition_that_is_none_is_in_no_sentence(condition):
    error = only(envelope("Batch sizes must match. Got K: 8, V: 4", condition))
    assert (error.condition, error.reason) == ("", "Q, K and V have the same head dimension.")


def test_condition_stays_with_its_message():
    log = f"{envelope('Input Tensor A is not allocated', 'a < b')}\nKt (16) must be divisible by in0_block_w (5)"
    assert [error.condition for error in find_errors(log).errors] == ["a < b", ""]


@pytest.mark.parametrize("start", ["TT_FATAL: ", "FATAL    | ", "FATAL    | TT_FATAL: ", ""])
def test_logged_message_is_one_error(start):
    assert (
        only(f"12:01 | critical |          Always | {start}Input Tensor A is not allocated (assert.hpp:104)").line == 1
    )


def test_error_right_before_another_is_not_lost():
    log = "TT_FATAL @ a.cpp:272: Mt % per_core_M == 0\nok\nTT_FATAL: Input Tensor A is not allocated"
    assert [error.kind for error in find_errors(log).errors] == [
        "matmul_per_core_does_not_divide",
        "tensor_not_allocated",
    ]


def test_alignment_of_the_rule_is_the_one_that_is_stated():
    error = only("Shard page size must be aligned to 64B for L1 Tensor")
    assert "a multiple of 64 bytes" in error.reason
    assert "a multiple of 32 elements" in error.remedy


def test_envelope_without_a_message():
    error = only("E  RuntimeError: TT_FATAL @ ../ttnn/cpp/matmul.cpp:272: Mt % per_core_M == 0\nfollowing 5 lines")
    assert (error.kind, error.condition) == ("matmul_per_core_does_not_divide", "Mt % per_core_M == 0")
    error = only("RuntimeError: TT_FATAL @ a.cpp:1: phase < 4\nfollowing 5 lines")
    assert (error.kind, error.text) == ("unexplained", "phase < 4")


def test_numbers_of_an_unknown_message_keep_its_words():
    error = only(envelope("Invalid phase (4): moons=2 and tides 7, at least 3 of them"))
    assert error.numbers == {"phase": 4, "moons": 2, "tides": 7}


@pytest.mark.parametrize(
    ("block", "subblock", "fitting"), [(8, 3, 2), (12, 5, 4), (7, 3, 1), (10**18, 999, 800), (5, 9, 5)]
)
def test_remedy_divides(block, subblock, fitting):
    error = only(f"out_block_w ({block}) must be divisible by out_subblock_w ({subblock})")
    assert error.remedies[0].startswith(f"Use out_subblock_w={fitting},")
    assert block % fitting == 0


@pytest.mark.parametrize(("width", "height", "limit"), [(4, 2, 4), (8, 8, 8), (3, 6, 8), (7, 3, 16)])
def test_sub_block_of_the_remedy_fits_and_still_divides(width, height, limit):
    error = only(f"out_subblock_w {width} times out_subblock_h {height} needs to be at most {limit} to fit in hardware")
    words = error.remedies[0].replace("=", " ").replace(",", "").replace(":", "").split()
    lower, narrower = int(words[words.index("out_subblock_h") + 1]), int(words[words.index("out_subblock_w") + 1])
    assert lower * narrower <= limit
    assert height % lower == width % narrower == 0


def test_fragmented_memory_is_not_told_to_shrink_first():
    text = "Out of Memory: Not enough space to allocate 1200 B DRAM buffer across 12 banks, where each bank needs to"
    text += " store 100 B, but bank size is 1000 B (allocated: 800 B, free: {} B, largest free block: {} B)"
    fragmented, full = only(text.format(200, 90)), only(text.format(90, 90))
    assert "ttnn.reallocate" in fragmented.remedies[0]
    assert full.remedies[0].startswith("Free at least 10 B per bank")


def test_parse_reads_an_error_and_refuses_other_sentences_at_once():
    parsed = parse(envelope(CLASH))
    assert (parsed.notation, parsed.value.errors[0].kind) == ("error", "buffers_clash_with_l1")
    assert parse(f"E       {CLASH}").notation == "error"
    with pytest.raises(LayoutError, match="which is not a layout"):
        _ = parsed.layout
    with pytest.raises(LayoutError, match="has no error of ttnn"):
        parse("the quick brown fox jumps over the lazy dog")


def test_long_log_takes_a_moment():
    lines = [f"2026-05-14 01:00:00.755 | info | Metal | step {k} took {k * 3} us on device 0" for k in range(100_000)]
    for k, case in enumerate(MESSAGES):
        lines.insert(1700 * k, case["text"])
    start = time.perf_counter()
    report = find_errors("\n".join(lines))
    assert time.perf_counter() - start < 20
    found = [(error.kind, error.numbers) for error in report.errors]
    assert all((case["kind"], case["numbers"]) in found for case in MESSAGES)
    assert len(found) == len(MESSAGES)


@pytest.mark.parametrize(
    "text",
    [
        "TT_FATAL @ a:1: " * 20000,
        "TT_FATAL @ a:1: b info: " * 10000,
        "TT_FATAL: " + "a b c " * 30000 + "must be divisible by",
        "Always | " * 30000,
        "Statically allocated circular buffers on core range " + "[" * 200000,
        "E   " * 50000,
        "TT_FATAL: Only " + "a, " * 50000,
    ],
    ids=range(7),
)
def test_hostile_text_takes_linear_time(text):
    start = time.perf_counter()
    find_errors(text, is_message=True)
    assert time.perf_counter() - start < 10


def test_mutated_messages_raise_our_errors_only():
    choose = random.Random(42)
    inserts = ["", "0", "9" * 30, "{}", "[", "(", "TT_FATAL: ", "\n", "=", "-1", "1,000"]
    for _ in range(1500):
        text = [*choose.choice(MESSAGES)["text"]]
        for _ in range(choose.randint(1, 8)):
            at = choose.randrange(len(text))
            text[at : at + choose.randint(0, 4)] = choose.choice(inserts)
        with contextlib.suppress(TilewrightError):
            explain_error("".join(text)).explain()


def test_an_old_message_on_the_line_of_its_envelope_is_no_condition():
    text = "RuntimeError: TT_THROW @ program.cpp:483: tt::exception Statically allocated circular buffers in program {}"
    (error,) = explain_error(f"{text} clash with L1 buffers on core range {{}}. L1 buffer allocated at {{}} and static"
                             " circular buffer region ends at {}").errors  # fmt: skip
    assert (error.kind, error.condition, error.numbers) == ("buffers_clash_with_l1", "", {})
    assert (
        error.unknown == "which tensor begins there, and which operation it is; the numbers: the text has {} for them"
    )


def test_an_unknown_message_is_shown_whole_and_without_the_next_line():
    log = "Always | FATAL | A thing broke. Width 64 is wrong, 32 was asked\n2026-01-01 10:00:00 - INFO - all fine 77\n"
    (error,) = find_errors(log).errors
    assert error.message == "ttnn stopped: A thing broke. Width 64 is wrong, 32 was asked"
    assert (error.numbers, error.meanings) == ({"Width": 64}, {})
    wrapped = "TT_FATAL @ a.cpp:1: a\ninfo:\n" + "word " * 15 + "\nand its end. Really\nbacktrace:\n --- x"
    assert find_errors(wrapped).errors[0].message.endswith("word and its end. Really")


def test_a_buffer_that_exceeds_its_tensor():
    log = "Always | FATAL | Cannot set to globally allocated buffer. Circular buffer size 28672 B exceeds allocated L1"
    (error,) = explain_error(f"{log} buffer size of 4096 B\n2024-11-27 19:50:40,392 - ERROR - test=out.ttnn").errors
    assert (error.kind, error.derived) == ("buffer_exceeds_its_tensor", {"short_by": 24576})
