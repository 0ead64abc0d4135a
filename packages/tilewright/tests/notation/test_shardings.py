# SPDX-License-Identifier: Apache-2.0
"""Shardings of XLA, Shardy, JAX and DTensor: every device holds what the real system gave it, whatever the text."""

import random
import time
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import LayoutError, parse
from tilewright.errors import CoordinateError, TilewrightError
from tilewright.notation import Cut, DeviceSharding, parse_sharding

from .recorded_texts import recorded

RECORDED = recorded("notations/jax_shardings.json")["cases"]
MESH = "Mesh('x': 2, 'y': 4)"
SDY_MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>'
SDY_LINE = (
    f'{SDY_MESH} {{stablehlo.mesh = {{axes = [{{name = "x", size = 2 : i64}}, {{name = "y", size = 4 : i64}}]}}}}'
)


def bounds(windows):
    """Return windows as the bounds of each device's part."""
    return {device: [[s.start, s.stop] for s in part] for device, part in windows.items()}


def firsts(sharding, shape):
    """Return where the part of each device begins, in the order of the mesh."""
    return [tuple([s.start for s in part]) for part in sharding.windows(shape).values()]


def test_parts_are_those_of_jax():
    assert len(RECORDED) >= 150
    for case in RECORDED:
        sharding = parse_sharding(case["text"])
        assert bounds(sharding.windows(case["shape"])) == dict(case["parts"]), case["text"]


def test_any_text_is_recognised_as_a_sharding():
    for text in [case["text"] for case in RECORDED]:
        parsed = parse(text)
        assert parsed.notation == "sharding", text
        assert parsed.value == parse_sharding(text)


def test_boxes_layouts_and_explanations_agree_with_windows():
    strided = 0
    for case in RECORDED:
        text, shape = case["text"], tuple(case["shape"])
        sharding = parse_sharding(text).on(shape)
        windows, numbers = sharding.windows(), np.reshape(sharding.devices, sharding.mesh_shape or (1,))
        held = sharding.boxes()
        assert {int(numbers[at]): box.slices for box, places in held.items() for at in places} == windows, text
        if 0 in shape:
            continue
        last = tuple([n - 1 for n in shape])
        inside = {device: tuple([s.stop - s.start - 1 for s in part]) for device, part in windows.items()}
        holders = {device for device, part in windows.items() if [s.stop for s in part] == list(shape)}
        assert {(number, at) for number, _, at in sharding.explain_element(last).tiles} == {
            (device, inside[device]) for device in holders
        }
        try:
            found = sharding.layout()(*last)
        except LayoutError:  # of devices in an order that strides cannot express
            continue
        strided += 1
        for place in found if isinstance(found, frozenset) else [found]:
            part = [n + 1 for n in inside[place.device]]
            assert place.device in holders
            assert place.plain == np.prod(part) - 1, text
    assert strided > 50


TEXTS_OF_ONE = [
    "{devices=[4,2]<=[2,4]T(1,0)}",
    "{devices=[4,2]0,4,1,5,2,6,3,7}",
    '"{devices=[4,2]<=[2,4]T(1,0)}"',
    "{{devices=[4,2]<=[2,4]T(1,0)}}",
    "sharding={devices=[4,2]<=[2,4]T(1,0)}",
    'mhlo.sharding = "{devices=[4,2]<=[2,4]T(1,0)}"',
    "{devices=[4,2]<=[2,2,2]T(1,2,0)}",
    "{devices=[4,2,1]<=[2,4]T(1,0) last_tile_dim_replicate}",
    f'{SDY_MESH} #sdy.sharding<@mesh, [{{"y"}}, {{"x"}}]>',
    f'{SDY_LINE}\nsdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{"x"}}]>',
    f'#sdy.sharding<@mesh, [{{"y":(1)2, "y":(2)2}}, {{"x"}}]>\n{SDY_MESH}',
    '#sdy.sharding<mesh<["x"=2, "y"=4]>, [{"y"}, {"x"}]>',
    r"#sdy.sharding<mesh<[\"x\"=2, \"y\"=4]>, [{\"y\"}, {\"x\"}]>",
    '#sdy.sharding_per_value<[<mesh<["x"=2, "y"=4]>, [{"y"}, {"x"}]>]>',
    "{mesh['x'=2,'y'=4], [{'y'}, {'x'}]}",
    f"{MESH} P('y', 'x')",
    f"PartitionSpec('y', 'x'), {MESH}",
    f"{MESH}; jax.sharding.PartitionSpec(('y',), ('x',))",
    f"NamedSharding(mesh={MESH}, spec=P('y', 'x'))",
    f"jax.sharding.NamedSharding({MESH}, PartitionSpec('y', 'x',),)",
    "NamedSharding(Mesh(device_ids=array([[0, 1, 2, 3],\n [4, 5, 6, 7]]), axis_names=('x', 'y')), spec=P('y', 'x'))",
    "Mesh(axis_sizes=(2, 4), axis_names=('x', 'y')) P('y', 'x')",
    "jax.make_mesh((2, 4), ('x', 'y')) P('y', 'x')",
    "GSPMDSharding({devices=[4,2]<=[2,4]T(1,0)})",
    "DeviceMesh((2, 4), 'cpu', stride=(4, 1)) [Shard(1), Shard(0)]",
    "DeviceMesh((x=2, y=4), 'cuda') (Shard(dim=1), Shard(dim=0))",
    "DeviceMesh('cuda', [[0, 1, 2, 3], [4, 5, 6, 7]], mesh_dim_names=('x', 'y')) [Shard(dim=-1), Shard(dim=-2)]",
    "init_device_mesh('cuda', (2, 4), mesh_dim_names=('x', 'y')) S(1)S(0)",
    "DTensorSpec(mesh=DeviceMesh((2, 4)), placements=(Shard(dim=1), Shard(dim=0)))",
    "Spec(f32[8, 8](S(1)S(0))) @ mesh: (2, 4)",
]


@pytest.mark.parametrize("text", TEXTS_OF_ONE)
def test_every_system_spells_the_same_sharding(text):
    sharding = parse_sharding(text)
    assert parse(text).value == sharding
    assert [size for size in sharding.mesh_shape if size > 1] in ([2, 4], [4, 2], [2, 2, 2])
    assert firsts(sharding, (8, 8)) == [(2 * (d % 4), 4 * (d // 4)) for d in sharding.devices]


@pytest.mark.parametrize(
    ("text", "axes", "cuts", "numbers", "besides"),
    [
        ("{maximal device=3}", {}, [], (3,), []),
        ("{replicated}", {}, [], (), ["replicated"]),
        ("{manual}", {}, [], (), ["manual"]),
        ("{unknown}", {}, [], (), ["unknown"]),
        ("{unreduced}", {}, [], (), ["unreduced"]),
        ("{mesh['x'=2], replicated}", {"x": 2}, [], (0, 1), []),
        (
            "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
            {"axis_0": 2, "axis_1": 4},
            [(0, "axis_0", 2)],
            range(8),
            [],
        ),
        (
            "{devices=[1,2,2,2]<=[8] last_tile_dims={manual, replicated}}",
            {"axis_0": 2, "axis_1": 2, "axis_2": 2},
            [(1, "axis_0", 2)],
            range(8),
            ["manual along axis_1"],
        ),
        (
            "{devices=[2,2]<=[2,2]T(1,0) last_tile_dims={unreduced}}",
            {"axis_0": 2, "axis_1": 2},
            [(0, "axis_1", 2)],
            range(4),
            ["unreduced along axis_0"],
        ),
        ("{devices=[2]1,0}", {"axis_0": 2}, [(0, "axis_0", 2)], (1, 0), []),
        ("{devices=[2]<=[2] shard_as 7}", {"axis_0": 2}, [(0, "axis_0", 2)], (0, 1), ["shard_as 7"]),
        (
            '{devices=[2]<=[2] metadata={op_name="f(a, b)}"}}',
            {"axis_0": 2},
            [(0, "axis_0", 2)],
            (0, 1),
            ['metadata={op_name="f(a, b)}"}'],
        ),
        (
            '#sdy.sharding<mesh<["x"=2,"y"=4]>, [{"x", ?}p1, {"y":(2)2}], replicated={"y":(1)2}, unreduced={}>',
            {"x": 2, "y": 4},
            [(0, "x", 2), (1, "y", 2, 2)],
            range(8),
            ["dimension 0 is open", "dimension 0 has priority 1", 'replicated={"y":(1)2}', "unreduced={}"],
        ),
        ("#sdy.sharding<mesh<[], device_ids=[3]>, [{}]>", {}, [], (3,), []),
        ("#sdy.sharding<mesh<[]>, [{}]>", {}, [], (), ["replicated"]),
        ('#sdy.sharding<mesh<["x"=2], device_ids=[1,0]>, [{"x"}]>', {"x": 2}, [(0, "x", 2)], (1, 0), []),
        (
            "{mesh[x=4], device_ids=([2,2]T(1,0)), [{x}]}",
            {"x": 4},
            [(0, "x", 4)],
            (0, 2, 1, 3),
            [],
        ),
        (
            "NamedSharding(mesh=Mesh('x': 2, axis_types=(Auto,)), spec=P('x',), memory_kind=pinned_host)",
            {"x": 2},
            [(0, "x", 2)],
            None,
            ["axis_types=(Auto,)", "memory_kind=pinned_host"],
        ),
        (
            "NamedSharding(AbstractMesh('x': 2, 'y': 2), P(UNCONSTRAINED, ('y', 'x'), unreduced={'z'}))",
            {"x": 2, "y": 2},
            [(1, "y", 2), (1, "x", 2)],
            None,
            ["dimension 0 is unconstrained", "unreduced={'z'}"],
        ),
        (
            "Mesh('x': 2, device_kind=NVIDIA H100 80GB HBM3, num_cores=None) P('x')",
            {"x": 2},
            [(0, "x", 2)],
            None,
            ["device_kind=NVIDIA H100 80GB HBM3", "num_cores=None"],
        ),
        ("NamedSharding(mesh=Mesh(, axis_types=()), spec=P())", {}, [], None, ["axis_types=()"]),
        ("GSPMDSharding({replicated}, memory_kind=device)", {}, [], (), ["replicated", "memory_kind=device"]),
        (
            "DeviceMesh((dp=2, tp=4), 'cuda', stride=(1, 2)) [Shard(0), Partial(sum)]",
            {"dp": 2, "tp": 4},
            [(0, "dp", 2)],
            None,
            ["'cuda'", "stride=(1, 2)", "Partial(sum) along tp"],
        ),
        (
            "DeviceMesh((dp=2, tp=4)) [_StridedShard(dim=0, sf=4), Shard(dim=0)]",
            {"dp": 2, "tp": 4},
            [(0, "tp", 4), (0, "dp", 2)],
            None,
            [],
        ),
        ("DeviceMesh((2, 4)) Spec(S(0)P(sum) on (6, 4))", {"axis_0": 2, "axis_1": 4}, [(0, "axis_0", 2)], None, None),
        ("DeviceMesh((2, 4)) Spec(bf16[6, 4](S(0)[1]S(0)[0]))", {"axis_0": 2, "axis_1": 4}, None, None, ["bf16"]),
    ],
)
def test_what_a_text_states(text, axes, cuts, numbers, besides):
    sharding = parse_sharding(text)
    assert parse(text).value == sharding
    assert dict(sharding.axes) == axes
    assert sharding.numbers == (numbers if numbers is None else tuple(numbers))
    assert cuts is None or sharding.cuts == tuple([Cut(*cut) for cut in cuts])
    assert besides is None or sorted(sharding.besides) == sorted(besides)
    assert str(sharding) == text


def test_attributes_of_a_mesh_are_said():
    (attribute,) = parse_sharding(f'{SDY_LINE} #sdy.sharding<@mesh, [{{"x"}}]>').besides
    assert attribute.startswith("stablehlo.mesh = {axes = [{name = ")
    assert attribute.endswith("}]}")


def test_the_order_of_axes_that_cut_one_dimension_decides_who_is_next():
    strided = parse_sharding("DeviceMesh((2, 2)) [_StridedShard(dim=0, sf=2), Shard(dim=0)]")
    ordered = parse_sharding("DeviceMesh((2, 2)) Spec(f32[8](S(0)[1]S(0)[0]))")
    explicit = parse_sharding(
        "DTensorSpec(mesh=DeviceMesh((2, 2)), placements=(Shard(dim=0), Shard(dim=0)),"
        " shard_order=(ShardOrderEntry(tensor_dim=0, mesh_dims=(1, 0)),))"
    )
    default = parse_sharding("DeviceMesh((2, 2)) [Shard(0), Shard(0)]")
    assert firsts(default, (8,)) == [(0,), (2,), (4,), (6,)]
    for sharding in (strided, ordered, explicit):
        assert firsts(sharding, (8,)) == [(0,), (4,), (2,), (6,)]


def test_a_text_may_state_the_shape():
    spec = parse_sharding(
        "DTensorSpec(mesh=DeviceMesh('cpu', [0, 1]), placements=(Shard(dim=0),), tensor_meta=TensorMeta("
        "shape=torch.Size([5, 4]), stride=(4, 1), dtype=torch.float32))"
    )
    assert spec.shape == (5, 4)
    meta = "TensorMeta(shape=torch.Size([5, 4]), stride=(4, 1), dtype=torch.float32)"
    assert spec.besides == ("'cpu'", f"tensor_meta={meta}")
    assert bounds(spec.windows()) == {0: [[0, 3], [0, 4]], 1: [[3, 5], [0, 4]]}
    assert parse_sharding("DeviceMesh((2,)) Spec(unknown dtypeunknown shape(S(0)))").shape is None
    assert parse_sharding("DTensor(local_tensor=tensor([1, 2]), device_mesh=DeviceMesh((2,)), placements=(R,))").besides
    large = parse_sharding(f"DTensor(local_tensor=tensor({[0] * 99}), device_mesh=DeviceMesh((2,)), placements=(R,))")
    assert large.besides == ("local_tensor=...",)


def test_uneven_extents_leave_the_last_devices_less():
    assert firsts(parse_sharding("{devices=[4]<=[4]}"), (5,)) == [(0,), (2,), (4,), (5,)]
    at_once = parse_sharding(f"{MESH} P(('x', 'y'))").windows((10,))
    nested = parse_sharding("DeviceMesh((2, 4)) [Shard(0), Shard(0)]").windows((10,))
    assert [s.stop - s.start for (s,) in at_once.values()] == [2, 2, 2, 2, 2, 0, 0, 0]
    assert [s.stop - s.start for (s,) in nested.values()] == [2, 2, 1, 0, 2, 2, 1, 0]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 40), st.booleans(), st.randoms())
def test_parts_cover_every_element_once_for_each_copy(sizes, extent, is_nested, rng):
    """Law: whatever cuts a dimension, its parts are disjoint, and every element is held by as many devices."""
    axes = tuple([(f"a{k}", size) for k, size in enumerate(sizes)])
    own = rng.sample(axes, rng.randint(0, len(axes)))
    sharding = DeviceSharding(axes, tuple([Cut(0, *axis) for axis in own]), rank=1, is_nested=is_nested)
    held = np.zeros(extent, int)
    for (part,) in sharding.windows((extent,)).values():
        held[part] += 1
    copies = int(np.prod(sizes)) // int(np.prod([size for _, size in own], initial=1))
    assert (held == copies).all()
    assert sum(len(places) for box, places in sharding.boxes((extent,)).items() if not box.empty) <= int(np.prod(sizes))


def test_parts_of_an_axis_are_the_axes_that_they_would_be():
    """Law: "x":(1)2 and "x":(2)4 of x = 8 are the two axes of a mesh of 2 x 4."""
    rng = random.Random(1)
    for _ in range(50):
        factors = [rng.randint(2, 4) for _ in range(rng.randint(1, 3))]
        before = [int(np.prod(factors[:k])) for k in range(len(factors))]
        whole = (("x", int(np.prod(factors))),)
        split = tuple([(f"x{k}", size) for k, size in enumerate(factors)])
        chosen = rng.sample(range(len(factors)), rng.randint(0, len(factors)))
        dimensions = [rng.randint(0, 1) for _ in chosen]
        parts = [Cut(d, "x", factors[k], before[k]) for d, k in zip(dimensions, chosen, strict=True)]
        axes = [Cut(d, *split[k]) for d, k in zip(dimensions, chosen, strict=True)]
        shape = (rng.randint(1, 20), rng.randint(1, 20))
        assert DeviceSharding(whole, tuple(parts)).windows(shape) == DeviceSharding(split, tuple(axes)).windows(shape)


def test_a_layout_has_the_devices_and_the_element_on_each():
    layout = parse_sharding("{devices=[2,2,2]<=[8] last_tile_dim_replicate}").layout((4, 6))
    assert {(place.device, place.plain) for place in layout(3, 5)} == {(6, 5), (7, 5)}  # of 2 x 3 on each


def test_explanations_name_every_device_that_holds_an_element():
    sharding = parse_sharding("Mesh('x': 2, 'y': 2) P(None, 'y')").on((4, 5))
    explained = sharding.explain_element((3, 4))
    assert explained.tiles == ((1, (0, 1), (3, 1)), (3, (1, 1), (3, 1)))
    assert parse_sharding("{maximal device=3}").on(()).explain_element(()).tiles == ((3, (0,), ()),)
    with pytest.raises(CoordinateError, match=r"coordinate \(4, 0\) is outside shape \[4, 5\]"):
        sharding.explain_element((4, 0))


def test_a_mesh_may_be_given_apart():
    expected = parse_sharding(f"{MESH} P('x')").windows((4,))
    assert parse_sharding("P('x')", {"x": 2, "y": 4}).windows((4,)) == expected
    assert parse_sharding('#sdy.sharding<@m, [{"x"}]>', 'sdy.mesh @m = <["x"=2, "y"=4]>').windows((4,)) == expected
    assert parse_sharding("[Shard(0), R]", "DeviceMesh((2, 4), 'cpu')").windows((4,)) == expected


def test_devices_that_a_text_does_not_state_are_counted():
    assert parse_sharding(f"{MESH} P('x')").numbers is None
    assert parse_sharding(f"{MESH} P('x')").devices == range(8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"expected one sharding and its mesh, such as \{devices=\[2,4\]<=\[8\]\}.*, got 0 and 0"),
        (MESH, "got 0 and 1"),
        (f"{MESH} {MESH} P('x')", "got 1 and 2"),
        ('sdy.mesh @a = <["x"=4]> sdy.mesh @b = <["x"=2]> #sdy.sharding<@b, [{"x"}]>', "got 1 and 2"),
        ("hello", "expected a sharding or a mesh, such as .* at character 1, got 'hello'"),
        ("[1, 2]", r"expected a sharding or a mesh, such as .* at character 2, got '1, 2"),
        ("P('x')", r"does not state its mesh; put it before, as in Mesh\('x': 2"),
        ('#sdy.sharding<@m, [{"x"}]>', "does not state its mesh"),
        (f"{SDY_MESH} #sdy.sharding<@other, [{{}}]>", "expected the mesh of the sharding, got @mesh and @other"),
        ("[Shard(0), R]", "does not state its mesh"),
        (f"{MESH} {{devices=[2]<=[2]}}", "got 1 and 2"),
        (f"{MESH} P('z')", "the mesh has no axis 'z', only x, y"),
        (f"{MESH} P('x', 'x')", "axis 'x' of the mesh is used twice, but can cut one dimension once"),
        ("Mesh('x': 2, 'x': 4) P('x')", r"the axes of a mesh have different names, got \(\('x', 2\), \('x', 4\)\)"),
        ("Mesh('x': 0) P('x')", "a mesh has axes of at least 1 device, and at most 1048576 devices, got 0"),
        ("{devices=[1048577]<=[1048577]}", "at most 1048576 devices, got 1048577"),
        ("{devices=[2,4]<=[9]}", r"expected 8 devices in <=\[...\], .*, got \(9,\) and \(0,\)"),
        ("{devices=[2,4]<=[2,4]T(1,1)}", r"its positions in T\(...\), got \(2, 4\) and \(1, 1\)"),
        ("{devices=[3]0,1}", r"a mesh of \(3,\) has 3 devices, got 2"),
        ("{devices=[3]0,1,1}", "a device is in a mesh once, but this text names device 1 2 times"),
        ("{devices=[2]0,99999999999}", "expected '}' at character 14, got ',99999999999"),
        ("{devices=[2]<=[2] last_tile_dims={manual,manual}}", "2 last_tile_dims are more than the 1 of devices"),
        (
            "{devices=[2]<=[2] last_tile_dims={auto}}",
            "expected replicated, manual or unreduced at character 35, got 'auto",
        ),
        ("{{devices=[2]<=[2]}, {replicated}}", "got 2 and 1"),
        ('#sdy.sharding<mesh<["x"=6]>, [{"x":(4)2}]>', r"axis 'x' of 6 devices has no part \(4\)2"),
        ('#sdy.sharding<mesh<["x"=8]>, [{"x":(1)4, "x":(2)2}]>', "axis 'x' of the mesh is used twice"),
        ('#sdy.sharding<mesh<["x"=8]>, [{"x":2}]>', "expected ',' at character 35, got ':2"),
        ("sdy.mesh mesh = <[]>", "expected a symbol, such as @mesh at character 10"),
        ("Mesh('x': 2) P(3)", "expected the name of an axis at character 16"),
        ("Mesh((2, 4), ('x',)) P('x')", r"a mesh has a name for each axis, got sizes \[2, 4\] and names \['x'\]"),
        ("SingleDeviceSharding(device=CpuDevice(id=0))", "expected a sharding or a mesh"),
        ("NamedSharding(mesh=Mesh('x': 2))", "its mesh, such as .*, got 0 and 1"),
        ("DeviceMesh((2, 4)) [Shard(0)]", "one placement for each axis of the mesh; got 1 for 2 axes"),
        ("DeviceMesh((2, 4)) [Shard(0), Shard(-1)]", r"all count from the front, or all from the end, got \[-1, 0\]"),
        (
            "DeviceMesh((2, 4)) [_StridedShard(0, sf=3), Shard(0)]",
            r"_StridedShard\(0, sf=3\) cuts what .* cut into 3 parts, but they cut into \[1, 4\]",
        ),
        (
            "DeviceMesh((2, 4)) [Shard(0, 3), Shard(0)]",
            r"expected a sharding or a mesh, .* at character 21, got 'Shard\(0, 3\)",
        ),
        ("DeviceMesh('cpu', [[0, 1], [2]]) [R, R]", "expected rows of the same length in a mesh"),
        (f"DeviceMesh('cpu', {'[' * 999}", "expected at most 64 levels at character"),
        (
            (
                "DTensorSpec(mesh=DeviceMesh((2, 2)), placements=(_StridedShard(dim=0, sf=2), Shard(dim=0)),"
                " shard_order=(ShardOrderEntry(tensor_dim=0, mesh_dims=(0, 1)),))"
            ),
            r"a place for each Shard in shard_order, and no _StridedShard, got _StridedShard\(dim=0, sf=2\)",
        ),
        ("NamedSharding(" * 99, "expected at most 64 levels at character"),
        ("Spec(f32[8 4](S(0))) @ mesh: (2,)", r"expected a sharding or a mesh, .* at character 6, got 'f32\[8 4\]"),
        ('#sdy.sharding<mesh<["x"=8]>, [{"x":(1)0}]>', r"expected ',' at character 35, got ':\(1\)0"),
    ],
)
def test_errors_name_the_value_and_the_rule(text, message):
    with pytest.raises(TilewrightError, match=message):
        parse_sharding(text)


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("{devices=[2,4]<=[8]}", None, r"does not state the shape of its tensor; give it one, as in shape=\(8, 8\)"),
        ("{devices=[2,4]<=[8]}", (8,), r"has rank 2, got shape \[8\]"),
        (f"{MESH} P(None, 'x')", (8,), r"has rank 2 or more, got shape \[8\]"),
        ("DeviceMesh((2,)) [Shard(-3)]", (8, 8), r"has rank 3 or more, got shape \[8, 8\]"),
        ("{devices=[2,4]<=[8]}", (8, -1), r"an extent is at least 0, got shape \[8, -1\]"),
        ("{replicated}", (8,), r"no devices are named; put a mesh before \{replicated\}, as in Mesh"),
        ("{manual}", (8,), "no devices are named"),
    ],
)
def test_errors_about_shapes_and_devices(text, shape, message):
    sharding = parse_sharding(text)
    for verb in (sharding.windows, sharding.boxes, sharding.layout):
        with pytest.raises(LayoutError, match=message):
            verb(shape)


def test_errors_where_parts_differ():
    nested = parse_sharding("DeviceMesh((2, 2)) [Shard(0), Shard(0)]")
    with pytest.raises(LayoutError, match=r"no strides cut 5 into \(2, 2\) parts; use .windows\(shape\)"):
        nested.layout((5,))
    with pytest.raises(LayoutError, match=r"no strides have devices in the order \[0, 3, 1, 2\]; use .windows"):
        parse_sharding("{devices=[4]0,3,1,2}").layout((4,))


def test_meshes_may_have_more_axes_than_arrays():
    axes = ", ".join([f"'x{k}': {1 + (k % 35 == 0)}" for k in range(40)])
    sharding = parse_sharding(f"Mesh({axes}) P('x0', 'x35')").on((2, 4))
    assert sharding.windows()[3] == (slice(1, 2), slice(2, 4))
    assert [number for number, _, _ in sharding.explain_element((1, 0)).tiles] == [2]
    assert sharding.layout()(1, 3).device == 3


def test_mutated_texts_raise_only_our_errors():
    rng = random.Random(3)
    texts = [*TEXTS_OF_ONE, *[case["text"] for case in RECORDED[::5]]]
    for _ in range(4000):
        text = list(rng.choice(texts))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 3)] = rng.choice(
                ["", "(", ")", "[", "]", "{", "}", ",", "=", "'", '"', "9", "-", "x"]
            )
        with suppress(TilewrightError):
            parse_sharding("".join(text)).on((8, 8)).boxes()


@pytest.mark.parametrize(
    "text",
    [
        "{devices=[2" + ",1" * 50_000 + "]<=[2]}",
        "{devices=[16384]" + ",".join(map(str, range(16384))) + "}",
        "{devices=[16384]<=[16384]}",
        "(" * 100_000,
        "Mesh(" * 20_000,
        "NamedSharding(" * 7_000,
        "{" * 100_000,
        "[" * 100_000,
        "S(0)" * 25_000,
        "Mesh('x': 2, 'y': 4) P('x'" + ", None" * 20_000 + ")",
        "Mesh(" + ", ".join([f"'x{k}': 1" for k in range(10_000)]) + ") P('x1')",
        "sdy.mesh @m = <[" + ", ".join([f'"x{k}"=1' for k in range(10_000)]) + ']> #sdy.sharding<@m, [{"x1"}]>',
        "P(" + " " * 100_000,
        "\\" * 100_000,
        "sharding" * 12_500,
        "DeviceMesh('cpu', [" + "[0], " * 20_000 + "]) [R, R]",
        "{{replicated}" + ", {replicated}" * 8_000 + "}",
        'metadata={op_name="' + "x" * 100_000,
        "1." * 50_000,
        "<" * 100_000,
        "'" * 99_999,
    ],
    ids=range(21),
)
def test_long_texts_take_linear_time(text):
    start = time.perf_counter()
    for read in (parse_sharding, partial(parse, shape=(64,))):
        with suppress(TilewrightError):
            read(text)
    assert time.perf_counter() - start < 2
