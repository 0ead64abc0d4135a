# SPDX-License-Identifier: Apache-2.0
"""`explain_difference`: the right reason for tensors that others made, and none for unrelated ones."""

import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import Tensor, TensorSpec, explain_difference
from tilewright.conversion import diff
from tilewright.conversion.orders import Values, find_order, flat_modes, offsets_of

from ..cases import examples

RANDOM = np.random.default_rng(7)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def bfloat16(values):
    return np.asarray(values, np.float32).astype(ml_dtypes.bfloat16)


def pairs_of(weight, heads):  # as converters to GGUF and Meta's order permute queries and keys
    rows = weight.shape[0]
    return weight.reshape(heads, 2, rows // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def halves_of(weight, heads):
    rows = weight.shape[0]
    return weight.reshape(heads, rows // heads // 2, 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def tiles_of(matrix, faces=True):
    rows, columns = matrix.shape
    if not faces:
        return matrix.reshape(rows // 32, 32, columns // 32, 32).swapaxes(1, 2).reshape(matrix.shape)
    cut = matrix.reshape(rows // 32, 2, 16, columns // 32, 2, 16)
    return cut.transpose(0, 3, 1, 4, 2, 5).reshape(matrix.shape)


def untiled(tiles):
    rows, columns = tiles.shape
    return tiles.reshape(rows // 32, columns // 32, 2, 2, 16, 16).transpose(0, 2, 4, 1, 3, 5).reshape(tiles.shape)


def grouped(weight):  # queries, keys and values of each group together, as Megatron has them
    q, k, v = weight[:128], weight[128:160], weight[160:]
    parts = [part for g in range(4) for part in (q[32 * g : 32 * g + 32], k[8 * g : 8 * g + 8], v[8 * g : 8 * g + 8])]
    return np.concatenate(parts)


W, NORM, EXPERTS, CODES = floats(192, 128), 1 + 0.1 * floats(512), floats(8, 48, 32), RANDOM.integers(0, 256, (64, 32))
BIG = floats(300, 280)
BYTES = CODES.astype(np.uint8)
ROUNDED = bfloat16(NORM).astype(np.float32)
CASES = [
    ("transposed", W, W.T, "order", "B is A transposed"),
    ("transposed buffer", W, W.T.reshape(W.shape), "order", "B is A transposed"),
    ("rope pairs", W, pairs_of(W, 6), "order", "the rows of 6 heads of 32 in pairs"),
    ("rope halves", W, halves_of(W, 3), "order", "the rows of 3 heads of 64 in halves"),
    ("rope of columns", W, pairs_of(W.T, 4).T, "order", "the columns of 4 heads of 32 in pairs"),
    ("rope of a bias", NORM, pairs_of(NORM, 8), "order", "the elements of 8 heads of 64 in pairs"),
    ("rope, rounded", W, bfloat16(pairs_of(W, 6)), "order", "6 heads of 32 in pairs, one of each half (rope: halves"),
    ("transposed rope", W, pairs_of(W, 6).T, "order", "transposed, with the columns of 6 heads of 32 in pairs"),
    ("not untilized", W, tiles_of(W), "order", "its elements in tiles with faces instead of row by row"),
    ("no faces", W, tiles_of(W, faces=False), "order", "in tiles without faces instead of row by row"),
    ("faces ignored", tiles_of(W, faces=False), tiles_of(W), "order", "tiles with faces instead of in tiles without"),
    ("untilized", tiles_of(W), W, "order", "row by row instead of in tiles with faces"),
    (
        "read with faces",
        W,
        untiled(tiles_of(W, faces=False)),
        "order",
        "A written in tiles without faces and read as if",
    ),
    ("padded tiles", W[:180, :100], tiles_of(np.pad(W[:180, :100], ((0, 12), (0, 28)))), "order", "0 to whole tiles"),
    (
        "from padded tiles",
        tiles_of(np.pad(W[:180, :100], ((0, 12), (0, 28)))),
        W[:180, :100],
        "order",
        "the padding of",
    ),
    (
        "any strides",
        W,
        W.reshape(4, 48, 8, 16).transpose(3, 1, 0, 2).reshape(W.shape),
        "order",
        "cut to 4 x 48 x 8 x 16 and transposed to (16, 48, 4, 8)",
    ),
    ("experts transposed", EXPERTS, EXPERTS.transpose(0, 2, 1), "order", "dimensions in the order (0, 2, 1)"),
    ("experts moved", EXPERTS, EXPERTS[[1, 0, *range(2, 8)]], "order", "dimension 0 in 3 other blocks: 1:2, 0:1, 2:8"),
    ("shards exchanged", W, np.roll(W, 96, 0), "order", "with the halves of its rows exchanged"),
    ("columns exchanged", W, np.roll(W, 64, 1), "order", "with the halves of its columns exchanged"),
    ("grouped heads", W, grouped(W), "order", "with its rows in 12 other blocks: 0:32, 128:136, 160:168, 32:64 and 8"),
    (
        "gate and up",
        W,
        W.reshape(2, 96, 128).swapaxes(0, 1).reshape(W.shape),
        "order",
        "its rows in pairs, one of each h",
    ),
    (
        "heads of q, k, v",
        W,
        W.reshape(3, 4, 16, 128).swapaxes(0, 1).reshape(W.shape),
        "order",
        "cut to 3 x 4 x 2048 and",
    ),
    ("nibbles exchanged", W, W.reshape(192, 64, 2)[:, :, ::-1].reshape(W.shape), "order", "each group of 2 in reverse"),
    ("mirrored", W, W[::-1], "order", "with its rows in reverse"),
    ("adapter", BIG, BIG + floats(300, 4) @ floats(4, 280), "rank", "B is A plus a matrix of rank 4"),
    (
        "adapter, rounded",
        bfloat16(BIG),
        bfloat16(BIG + floats(300, 8) @ floats(8, 280)),
        "rank",
        "of rank 8 (as of an ad",
    ),
    ("zero points", W, W + np.repeat(floats(192, 2), 64, 1), "constant", "plus a constant for each run of 64 in a row"),
    ("one more", NORM, NORM + 1, "constant", "B is A plus 1"),
    ("one less, rounded", bfloat16(NORM), bfloat16(ROUNDED - 1), "constant", "B is A minus 1"),
    ("twice", W, 2 * W, "factor", "B is A times 2"),
    ("scaled embedding", bfloat16(W), bfloat16(bfloat16(W).astype(np.float32) * 48), "factor", "B is A times 48"),
    ("scaled query", W, W / np.float32(8), "factor", "B is A times 0.125"),
    ("negated", W, -W, "factor", "B is A times -1"),
    ("scaled and transposed", W, 3 * W.T, "order", "B is A transposed, times 3"),
    ("scales of rows", W, W * (1 + np.abs(floats(192, 1))), "factor", "times a factor for each row"),
    ("scales of columns", W, W * (1 + np.abs(floats(1, 128))), "factor", "times a factor for each column"),
    (
        "scales of blocks",
        W,
        W * np.kron(1 + np.abs(floats(3, 2)), np.ones((64, 64), np.float32)),
        "factor",
        "64 x 64 b",
    ),
    ("rounded", W, bfloat16(W), "rounding", "B is A rounded to bfloat16"),
    ("rounded, stored wide", W, bfloat16(W).astype(np.float32), "rounding", "B is A rounded to bfloat16"),
    ("unrounded", bfloat16(W), W, "rounding", "B is A before it was rounded to bfloat16"),
    ("half", W, W.astype(np.float16), "rounding", "B is A rounded to float16"),
    ("eight bits", W, W.astype(ml_dtypes.float8_e4m3fn), "rounding", "B is A rounded to float8_e4m3"),
    ("endianness", W, W.byteswap(), "bits", "the bytes of every element in reverse"),
    ("another type", bfloat16(W), bfloat16(W).view(np.float16), "bits", "A, which are bfloat16, read as float16"),
    ("nibbles", BYTES, BYTES << 4 | BYTES >> 4, "bits", "the halves of every byte exchanged"),
    ("padded", W, np.pad(W, ((0, 64), (0, 0))), "padding", "B is A, padded with 0, to 256 x 128"),
    ("padded, transposed", W, np.pad(W.T, ((0, 0), (0, 8))), "padding", "A transposed, padded with 0, to 128 x 200"),
    ("cropped", W, W[:100], "part", "B is A without what is beyond 100 x 128"),
    ("rows", W, W[64:96], "part", "B is rows 64:96 of A"),
    ("columns", W, W[:, 32:96], "part", "B is columns 32:96 of A"),
    ("repeated", W, np.repeat(W.reshape(6, 1, 32, 128), 4, 1).reshape(-1, 128), "repeat", "4 times, each of 6 blocks"),
    ("twice over", W, np.tile(W, (2, 1)), "repeat", "B is A 2 times"),
    ("cyclic shift", W, np.roll(W.reshape(-1), 7).reshape(W.shape), "shift", "7 elements later, cyclically"),
    ("shift", W, np.append(np.zeros(3, np.float32), W)[: W.size].reshape(W.shape), "shift", "3 elements later"),
    ("early", W, np.append(W, np.zeros(3, np.float32))[3:].reshape(W.shape), "shift", "3 elements earlier"),
    ("placeholder", W, np.zeros_like(W), "constant", "B is all 0, and A is not"),
    ("some rows", W, np.where(np.arange(192)[:, None] // 3 == 4, W + 1, W), "close", "but for rows 12:15 (3 of 192)"),
    ("noise", W, W + 0.01 * floats(192, 128), "close", "for no reason that was found"),
    ("unrelated", W, floats(192, 128), "unrelated", "B is unrelated to A"),
    ("unrelated norms", bfloat16(NORM), bfloat16(1 + 0.1 * floats(512)), "unrelated", "B is unrelated to A"),
    ("shuffled", W, RANDOM.permutation(W.reshape(-1)).reshape(W.shape), "unrelated", "B is unrelated to A"),
]


@pytest.mark.parametrize(("a", "b", "kind", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_reasons(a, b, kind, words):
    [reason] = explain_difference(a, np.ascontiguousarray(b))
    assert reason.kind == kind, reason
    assert words in str(reason)
    assert reason.count >= b.size
    json.dumps(reason.to_json())


@pytest.mark.parametrize("name", ["bfloat8_b", "bfloat4_b"])
def test_blocks(name):
    for b, words in ((W, f"B is A rounded to {name}"), (np.ascontiguousarray(W.T), "B is A transposed, within the st")):
        [reason] = explain_difference(W, Tensor.from_array(b, TensorSpec(b.shape, name, "tile")))
        assert words in str(reason)


def test_experts_that_moved_are_found_in_blocks_too():
    matrix = EXPERTS.reshape(8, -1)
    b = np.ascontiguousarray(matrix[[2, 0, 1, 3, 4, 5, 6, 7]])
    [reason] = explain_difference(matrix, Tensor.from_array(b, TensorSpec(b.shape, "bfloat8_b", "tile")))
    assert "rows in 3 other blocks: 2:3, 0:2, 3:8" in str(reason)


def test_other_tensors():
    a = {f"layers.{layer}.{name}": floats(32, 32) for layer in (0, 1) for name in ("q", "k")}
    b = dict(a) | {"layers.0.q": a["layers.0.k"], "layers.0.k": a["layers.0.q"], "layers.1.q": a["layers.0.q"].T.copy()}
    assert {reason.name: (reason.source, reason.words) for reason in explain_difference(a, b)} == {
        "layers.0.q": ("layers.0.k", "B is layers.0.k of A, with which it is exchanged"),
        "layers.0.k": ("layers.0.q", "B is layers.0.q of A, with which it is exchanged"),
        "layers.1.q": ("layers.0.q", "B is layers.0.q of A, of another layer: A transposed"),
    }


def test_joined_tensors_of_other_names():
    a = {f"{number}.{name}": floats(rows, 64) for number in (0, 1) for name, rows in (("q", 64), ("k", 32), ("v", 32))}
    b = {f"h.{number}.qkv": np.concatenate([a[f"{number}.{name}"] for name in "qkv"]) for number in (0, 1)}
    b |= {"new": floats(48, 64), "0.q": np.concatenate([a["1.k"], a["1.v"]])}
    found = {reason.name: reason for reason in explain_difference(a, b)}
    assert found["h.1.qkv"].source == "1.q, 1.k, 1.v"
    assert "B is made of A: join([tensor('1.q'), tensor('1.k'), tensor('1.v')])" in str(found["h.1.qkv"])
    assert found["0.q"].source == "1.k, 1.v"
    assert found["new"].kind == "unrelated"
    assert "B alone has it" in str(found["new"])


def test_every_other_block_is_said_in_few_words():
    fused, gates = floats(384, 64), floats(128, 64)
    heads = fused.reshape(4, 3, 32, 64)
    b = {
        "q": heads[:, 0].reshape(128, 64),
        "kv": heads[:, 1:].transpose(1, 0, 2, 3).reshape(256, 64),
        "up": gates[1::2],
    }
    found = {reason.name: str(reason) for reason in explain_difference({"0.qkv": fused, "0.gate_up": gates}, b)}
    assert found == {
        "q": "B is made of A: every(tensor('0.qkv'), 32, 3, 0)",
        "kv": "B is made of A: join([every(tensor('0.qkv'), 32, 3, 1), every(tensor('0.qkv'), 32, 3, 2)])",
        "up": "B is made of A: every(tensor('0.gate_up'), 1, 2, 1)",
    }


def test_unrelated_tensors_have_no_reason():
    for number in range(40):
        shape = tuple((RANDOM.integers(1, 30, 2) * 8).tolist())
        a, b = floats(*shape), floats(*shape)
        if number % 2:
            a, b = bfloat16(a), bfloat16(b)
        [reason] = explain_difference(a, b)
        assert reason.kind == "unrelated", (shape, reason)


@examples(60)
@given(st.lists(st.integers(2, 6), min_size=2, max_size=5).flatmap(lambda n: st.tuples(st.just(n), st.permutations(n))))
def test_any_order_is_found(drawn):
    extents, _ = drawn
    order = np.random.default_rng(len(extents)).permutation(len(extents))
    a = np.random.default_rng(1).permutation(int(np.prod(extents))).astype(np.uint32)
    b = a.reshape(extents).transpose(order).reshape(-1)
    found = find_order(Values(a, b), "A", a.shape, b.shape)
    assert found is not None
    modes = flat_modes(found[1]) if len(found[1].parts) == 1 else None
    if modes is not None:
        assert np.array_equal(a[offsets_of(modes, np.arange(len(a)))], b)


def test_an_order_is_an_expression(tmp_path):
    [reason] = explain_difference({"w": W}, {"w": pairs_of(W, 6)})
    assert reason.order.text == "reshape(transpose(reshape(tensor('w'), 6, 2, 16, 128), (0, 2, 1, 3)), 192, 128)"


def test_dumps_say_where_the_error_jumps():
    a = {f"{number}.mlp": floats(16, 16) for number in range(12)}
    noise = [1e-3] * 9 + [0.5] * 3
    b = {name: value + scale * floats(16, 16) for (name, value), scale in zip(a.items(), noise, strict=True)}
    found = diff(a, b)
    before, jump = found.find_jump()
    assert (before.name, jump.name, found.to_json()["jump"]) == ("8.mlp", "9.mlp", "9.mlp")
    assert f"the error jumps at 9.mlp: PCC and largest error {before.pcc:.6f}" in found.text()
    assert diff(a, {name: value + 1e-3 for name, value in a.items()}).find_jump() is None
    assert diff(W, W + 1).find_jump() is None


def test_a_factor_of_unrelated_tensors_is_not_advised():
    found = diff(W, floats(192, 128)).tensors[0]
    assert not [finding for finding in found.findings if finding.kind == "factor"]
