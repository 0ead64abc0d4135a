# SPDX-License-Identifier: Apache-2.0
"""`match`: every way in which tensors are made of others is found and proven, and unrelated ones are not."""

import json
import time

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright.conversion import convert, match
from tilewright.conversion.signatures import Signature
from tilewright.files import Tensorbin, open_tensors, write_tensorbin
from tilewright.files.safetensors import write_safetensors

from .llamas import NAME, write_model
from .test_gguf_models import convert_to_gguf

BF16 = ml_dtypes.bfloat16


def random_matrix(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def in_pairs(rows, heads):
    height, *rest = rows.shape
    return rows.reshape(heads, 2, height // heads // 2, *rest).swapaxes(1, 2).reshape(height, *rest)


def in_halves(rows, heads):
    height, *rest = rows.shape
    return rows.reshape(heads, height // heads // 2, 2, *rest).swapaxes(1, 2).reshape(height, *rest)


def interleaved(parts, count):
    cut = [np.split(part, count) for part in parts]
    return np.concatenate([own[d] for d in range(count) for own in cut])


def test_signatures_add_up_and_do_not_depend_on_order_or_zeros():
    a, b = random_matrix(0, 40, 30), random_matrix(1, 7, 11, dtype=np.float64)
    both = np.concatenate([a.reshape(-1), np.zeros(9), -np.zeros(2), b.reshape(-1)]).astype(np.float64)
    np.random.default_rng(2).shuffle(both)
    found, added = Signature.of(both), Signature.of(a) + Signature.of(b)
    assert found.key == added.key
    assert np.allclose([found.total, found.squares], [added.total, added.squares], rtol=1e-4)
    assert Signature.of(a.astype(BF16)).key == Signature.of(a).key
    assert Signature.of(np.float32([1, np.nan])).key == Signature.of(-np.float32([np.nan, -1])).key
    changed = a.copy()
    changed[3, 4] += 1
    assert Signature.of(changed).key != Signature.of(a).key


A = {
    "blk.0.q": random_matrix(1, 128, 96),
    "blk.0.k": random_matrix(2, 64, 96),
    "blk.0.v": random_matrix(3, 64, 96),
    "blk.0.gate_up": random_matrix(4, 160, 96),
    "blk.0.experts": random_matrix(5, 3, 40, 96),
    "blk.0.norm": random_matrix(6, 96, dtype=BF16),
    "blk.0.bias_q": random_matrix(7, 64, dtype=BF16),
    "blk.0.bias_k": random_matrix(8, 32, dtype=BF16),
}
q, k, v, gate_up, experts, norm, bias_q, bias_k = A.values()
CASES = {
    "renamed": q,
    "turned": np.ascontiguousarray(q.T),
    "rounded": q.astype(BF16),
    "rounded twice": q.T.astype(np.float16),
    "in pairs": in_pairs(q, 4),
    "in halves": in_halves(q, 4).T,
    "joined": np.concatenate([q, k, v]),
    "joined and turned": np.concatenate([in_pairs(q, 4), in_pairs(k, 2), v]).T,
    "for devices": interleaved([in_pairs(q, 4), in_pairs(k, 2), v], 2).T[None, None],
    "side by side": np.concatenate([q.T, v.T], axis=1),
    "first part": gate_up[:80],
    "second part": gate_up[80:].T,
    "parts exchanged": np.concatenate([gate_up[80:], gate_up[:80]]),
    "padded": np.pad(q, [(0, 32), (0, 0)]),
    "padded twice": np.pad(k.T, [(0, 4), (0, 8)]),
    "zeros between": np.concatenate([k, np.zeros((5, 96), np.float32), v]),
    "an expert": experts[1],
    "a stack": np.stack([q[:64].T, k.T, v.T])[:, None],
    "experts turned": experts.transpose(0, 2, 1),
    "experts last": experts.transpose(1, 2, 0),
    "moved rows": q[np.random.default_rng(0).permutation(128)],
    "moved rows and columns": np.roll(q, (5, 7), (0, 1)),
    "blocks in another order": q.reshape(8, 16, 96).transpose(1, 0, 2),
    "every other row": q[::2],
    "in 8 bits": tw.cast(q.T, "float8_e4m3"),
    "rows of 32": norm.reshape(1, 1, 3, 32),
    "plus one": (norm + BF16(1)).reshape(3, 32),
    "copies": np.broadcast_to(np.concatenate([bias_q, bias_k]), (32, 96)),
    "vectors for devices": interleaved([in_pairs(bias_q, 2), bias_k], 2),
}


@pytest.mark.parametrize("name", [name for name in CASES if name != "moved rows and columns"])
def test_each_way_is_found(name):
    wanted = CASES[name]
    (found,) = match(A, {"blk.0.x": wanted}).matches
    assert found.value is not None, found
    assert found.exact
    assert found.value.shape == wanted.shape


def test_an_order_with_strides_is_one_transpose():
    (found,) = match(A, {"blk.0.x": CASES["blocks in another order"]}).matches
    assert found.text == "transpose(reshape(tensor('blk.0.q'), 8, 16, 96), (1, 0, 2))"
    (found,) = match(A, {"blk.0.x": CASES["moved rows"]}).matches
    assert str(found).endswith("... (in 127 parts)") or "... (in " in str(found)


def test_what_is_no_order_of_rows_or_columns_is_not_guessed():
    (found,) = match(A, {"blk.0.x": CASES["moved rows and columns"]}).matches
    assert found.value is None
    assert "no tensors of A" in str(found)


@pytest.mark.parametrize("dtype", ["bfloat8_b", "bfloat4_b"])
@pytest.mark.parametrize("name", ["turned", "for devices", "side by side", "second part", "padded", "joined"])
def test_formats_that_round_are_matched_by_what_they_round_to(name, dtype, tmp_path):
    wanted = np.ascontiguousarray(CASES[name])
    spec = tw.TensorSpec(wanted.shape, dtype, "tile")
    write_tensorbin(tmp_path / "blk.0.x.tensorbin", Tensorbin(spec, tw.to_bytes(wanted, spec)))
    (found,) = match(A, tmp_path).matches
    assert found.value is not None, found
    assert found.exact


def test_elements_within_a_step_are_said_to_be_near(tmp_path):
    spec = tw.TensorSpec(q.shape, "bfloat8_b", "tile")
    other = tw.from_bytes(tw.to_bytes(q, spec), spec)
    other[3, 5] += np.abs(other[3]).max() / 128  # as another rounding would
    write_tensorbin(tmp_path / "x.tensorbin", Tensorbin(spec, tw.to_bytes(other, spec)))
    (found,) = match({"q": q}, tmp_path).matches
    assert (found.sources, found.exact) == (["q"], False)
    assert "within one step" in str(found)


def test_unrelated_tensors_are_never_matched(tmp_path):
    others = {name: random_matrix(100 + n, *np.shape(values)) for n, (name, values) in enumerate(CASES.items())}
    others["a vector of common values"] = np.resize(norm[:7], 64)
    assert len(match(A, others).unmatched) == len(others)
    spec = tw.TensorSpec((96, 128), "bfloat4_b", "tile")
    write_tensorbin(tmp_path / "x.tensorbin", Tensorbin(spec, tw.to_bytes(random_matrix(99, 96, 128), spec)))
    assert match(A, tmp_path).unmatched == ["x"]


def test_integers_are_matched_exactly_and_never_rounded_to():
    whole = np.arange(600, dtype=np.int64).reshape(20, 30) * 100003
    found = match({"w": whole, "x": q[:20]}, {"t": whole.T.astype(np.int32), "y": q[:20].astype(np.int32)})
    assert found["t"].text == "transpose(tensor('w'))"
    assert found.unmatched == ["y"]
    changed = whole.copy()
    changed[3, 3] += 1  # lost in a smaller format
    assert match({"w": whole}, {"x": changed}).unmatched == ["x"]


def test_tensors_with_one_changed_element_are_not_matched():
    changed = np.concatenate([q, k])
    changed[77, 33] += 1
    assert match(A, {"x": changed}).unmatched == ["x"]


def test_equal_sources_are_listed_and_the_nearest_name_is_taken():
    same = np.ones(64, np.float32)
    a = {"l.0.norm1": same, "l.1.norm1": same, "l.1.norm2": same, "embed": q, "head": q.copy()}
    found = match(a, {"layers.1.norm2": same, "head": q.T})
    assert found["layers.1.norm2"].sources == ["l.1.norm2"]
    assert found["layers.1.norm2"].others == {"l.1.norm2": ("l.0.norm1", "l.1.norm1")}
    assert found["head"].others == {"head": ("embed",)}
    assert "head equals embed" in str(found)
    assert json.loads(json.dumps(found.to_json()))["matches"][1]["others"] == {"head": ["embed"]}


def test_what_cannot_be_matched_is_said():
    found = match(A | {"zero": np.zeros(5)}, {"zeros": np.zeros((4, 4)), "nothing": np.zeros((0, 3))})
    assert [each.problem for each in found.matches] == [
        "all its elements are zero, and A has no such tensor of its shape",
        "it has no elements",
    ]


def test_a_gguf_is_matched_with_the_checkpoint_that_it_was_made_from(tmp_path):
    model = write_model(tmp_path / NAME)
    path = convert_to_gguf(model, tmp_path / "x.gguf", "llama", paired=True)
    found = match(model, path)
    assert found["blk.1.attn_k.weight"].text == "paired(tensor('model.layers.1.self_attn.k_proj.weight'), 64)"
    assert found["blk.0.ffn_gate.weight"].sources == ["model.layers.0.mlp.gate_proj.weight"]
    assert found.unmatched == ["rope_freqs.weight"]


def test_zeros_are_those_of_a_tensor_of_the_same_shape():
    a = {"l.0.bias": np.zeros(8), "l.1.bias": np.zeros(8), "other": np.zeros(9)}
    (found,) = match(a, {"layers.1.b": np.zeros(8)}).matches
    assert (found.sources, found.others) == (["l.1.bias"], {"l.1.bias": ("l.0.bias",)})


def test_a_join_of_several_layers_is_found():
    a = {f"layers.{n}.w": random_matrix(n, 32, 48) for n in range(6)}
    found = match(a, {"all": np.concatenate([*a.values()]), "other": np.stack([each.T for each in a.values()])})
    assert not found.unmatched
    assert found["all"].sources == list(a)


def test_rules_make_the_tensors_of_b(tmp_path):
    write_safetensors(tmp_path / "a.safetensors", A, {})
    b = {f"blk.0.{name}[*]{{}}": np.ascontiguousarray(values) for name, values in CASES.items()}
    b = {name: values for name, values in b.items() if "and columns" not in name} | {"blk.0.q": k}
    found = match(tmp_path / "a.safetensors", b)
    (tmp_path / "rules.toml").write_text(found.rules(), encoding="utf-8")
    convert(tmp_path / "a.safetensors", tmp_path / "out.safetensors", rules=tmp_path / "rules.toml")
    made = open_tensors(tmp_path / "out.safetensors")
    assert set(made) == set(b)
    for name, values in b.items():
        assert made[name].dtype == values.dtype
        assert np.array_equal(made[name].read(), values), name


WAYS = {
    "same": lambda rng, a: a[0],
    "turned": lambda rng, a: a[0].T,
    "heads": lambda rng, a: in_pairs(a[0], len(a[0]) // 16),
    "joined": lambda rng, a: np.concatenate(a),
    "devices": lambda rng, a: interleaved(a, 4).T,
    "moved": lambda rng, a: a[0][rng.permutation(len(a[0]))],
    "padded": lambda rng, a: np.pad(a[0], [(0, int(rng.integers(0, 9))), (0, int(rng.integers(0, 9)))]),
    "sliced": lambda rng, a: a[0][8 : 8 + int(rng.integers(8, 24))],
    "stacked": lambda rng, a: np.stack([each[:16] for each in a]),
    "unrelated": lambda rng, a: rng.standard_normal(a[0].shape),
}


@given(seed=st.integers(0, 1 << 32), count=st.integers(3, 8), numbered=st.booleans())
@settings(deadline=None, max_examples=12)
def test_random_checkpoints_are_matched_whatever_their_names(seed, count, numbered):
    rng = np.random.default_rng(seed)
    width, dtype = 16 * int(rng.integers(2, 5)), rng.choice([np.float32, BF16, np.float16])
    a = {
        f"n.{n}.w" if numbered else f"n{n}": random_matrix([seed, n + 1], 16 * int(rng.integers(2, 5)), width)
        for n in range(count)
    }
    a = {name: values.astype(dtype) for name, values in a.items()}
    b, ways = {}, {}
    for name in map(str, rng.permutation(count + 4)):
        way = rng.choice(list(WAYS))
        chosen = [a[own] for own in rng.permutation(list(a))[: int(rng.integers(2, 4))]]
        values = np.ascontiguousarray(WAYS[way](rng, chosen)).astype(dtype)
        b[name], ways[name] = values.astype(rng.choice([dtype, BF16])), way
    found = match(a, b)
    assert found.unmatched == [name for name in b if ways[name] == "unrelated"], ways
    sources = open_tensors_of(a)
    for each in found.matches:
        if each.value is not None:
            made = tw.conversion.source.AssembledSource(each.value, {name: sources[name] for name in each.sources})
            whole = tw.Box((0,) * b[each.name].ndim, b[each.name].shape)
            assert np.array_equal(made.read(whole).astype(b[each.name].dtype), b[each.name]), each


def open_tensors_of(arrays):
    return tw.files.store_arrays(arrays)


def test_thousands_of_tensors_take_less_than_a_millisecond_each(tmp_path):
    rng, count = np.random.default_rng(0), 3000
    a = {f"model.{n}": rng.standard_normal((16, 16)).astype(np.float32) for n in range(count)}
    b = {f"b{n}": np.ascontiguousarray(a[f"model.{n}"].T if n % 2 else a[f"model.{n}"]) for n in rng.permutation(count)}
    b |= {f"other{n}": rng.standard_normal((16, 16)).astype(np.float32) for n in range(100)}
    for name, tensors in (("a", a), ("b", b)):
        write_safetensors(tmp_path / f"{name}.safetensors", tensors, {})
    start = time.process_time()
    found = match(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    took = time.process_time() - start
    assert sorted(found.unmatched) == sorted(name for name in b if name.startswith("other"))
    assert took < 1e-3 * len(b) * 5  # a slow machine
