# SPDX-License-Identifier: Apache-2.0
"""Files that torch and onnx write, where these are installed: every tensor as they read it themselves."""

import numpy as np
import pytest

from tilewright.files import open_tensors


@pytest.mark.parametrize("is_zip", [True, False])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_what_torch_saves(tmp_path, is_zip, protocol):
    torch = pytest.importorskip("torch")
    base = torch.arange(10 * 12 * 14, dtype=torch.float32).reshape(10, 12, 14)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    optimizer = torch.optim.AdamW(module.parameters())
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    views = {
        "permuted": base.permute(2, 0, 1),
        "strided": base[::3, 1::4, 2::5],
        "expanded": base[0, 0, :1].expand(7, 9),
        "unfolded": base.unfold(1, 4, 2),
        "diagonal": base[0].diagonal(),
        "channels_last": torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "empty": torch.zeros(0, 3),
    }
    others = {"epoch": 3, "size": torch.Size([1, 2]), "device": torch.device("cpu"), "kinds": {1, 2}, "raw": b"bytes"}
    saved = {"views": views, "model": module.state_dict(), "optimizer": optimizer.state_dict(), "others": others}
    options = {"_use_new_zipfile_serialization": is_zip, "pickle_protocol": protocol}
    torch.save(saved, tmp_path / "m.pt", **options)
    found = open_tensors(tmp_path / "m.pt")
    expected = {f"views.{key}": value for key, value in views.items()}
    expected |= {f"model.{key}": value for key, value in module.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        expected |= {f"optimizer.state.{number}.{key}": value for key, value in state.items()}
    assert set(found) == set(expected)
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key].read(), value.detach().numpy(), err_msg=key)


def test_what_onnx_saves(tmp_path):
    onnx = pytest.importorskip("onnx")
    numpy_helper = pytest.importorskip("onnx.numpy_helper")
    types = {name: kind for name, kind in onnx.TensorProto.DataType.items() if name not in ("UNDEFINED", "STRING")}
    tensors = []
    for name, kind in types.items():
        if "FLOAT6" in name:
            continue
        typed = onnx.helper.make_tensor(f"{name} typed", kind, (2, 3), [1, 0, 2, 3, 1, 0])
        tensors += [typed, numpy_helper.from_array(numpy_helper.to_array(typed), f"{name} raw")]
    graph = onnx.helper.make_graph([], "graph", [], [], initializer=tensors)
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    found = open_tensors(tmp_path / "m.onnx")
    assert list(found) == [each.name for each in tensors]
    for each in tensors:
        tensor = found[each.name]
        if tensor.format is not None:
            expected = numpy_helper.to_array(each).astype(np.float64)
            np.testing.assert_array_equal(tensor.read().astype(np.float64), expected, err_msg=each.name)
        else:
            assert tensor.raw.tobytes() == found[each.name.replace("typed", "raw")].raw.tobytes()
