# SPDX-License-Identifier: Apache-2.0
"""Weights in files beside the model: mapped where they lie, at any offset, in the types that they have."""

import os
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
import tensorrt as trt  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from small import QUIET, run  # noqa: E402

FLOAT, HALF, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


def external(name, kind, shape, location, **entries):
    tensor = TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), *entries.items()):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def written(path, weights):
    """y_i = w_i + 0 * x."""
    nodes, outputs = [], []
    for w in weights:
        nodes += [helper.make_node("Cast", ["x"], ["x_" + w.name], to=w.data_type),
                  helper.make_node("Mul", ["x_" + w.name, "x_" + w.name], ["square_" + w.name]),
                  helper.make_node("Add", [w.name, "square_" + w.name], ["y_" + w.name])]
        outputs.append(helper.make_tensor_value_info("y_" + w.name, w.data_type, list(w.dims)))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, [1])], outputs, weights)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString())


def parsed(path):
    builder = trt.Builder(QUIET)
    network = builder.create_network(1)
    parser = trt.OnnxParser(network, QUIET)
    return builder, network, parser, parser.parse_from_file(str(path))


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_one_file(seed, tmp_path):
    """Of random offsets, aligned or not, that may overlap; the file may go when the model is parsed."""
    r = np.random.default_rng(seed)
    content = r.integers(0, 60, 4096).astype(np.uint8).tobytes()  # no bytes of NaN
    (tmp_path / "w.bin").write_bytes(content)
    weights, wanted = [], {}
    for i in range(6):
        kind, dtype = [(FLOAT, np.float32), (HALF, np.float16), (INT64, np.int64)][int(r.integers(3))]
        shape = [int(n) for n in r.integers(1, 7, int(r.integers(1, 3)))]
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        offset = int(r.integers(0, len(content) - size))
        given = [{"length": size}, {}, {"length": 0}][int(r.integers(3))]  # 0: left out, as ONNX Runtime reads it
        weights.append(external(f"w{i}", kind, shape, "w.bin", offset=offset, **given))
        array = np.frombuffer(content[offset:offset + size], dtype).reshape(shape)
        wanted[f"y_w{i}"] = np.clip(array, -2**31, 2**31 - 1).astype(np.int32) if kind == INT64 else array
    written(tmp_path / "m.onnx", weights)
    builder, network, parser, ok = parsed(tmp_path / "m.onnx")
    assert ok, parser.get_error(0).desc()
    (tmp_path / "w.bin").unlink()
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    got = run(trt.Runtime(QUIET).deserialize_cuda_engine(plan), x=np.zeros(1, np.float32))
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype
        np.testing.assert_array_equal(got[name], array, err_msg=f"{seed} {name}")


def test_half_stays_half(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(64))
    written(tmp_path / "m.onnx", [external("w", HALF, [32], "w.bin")])
    _builder, network, _parser, ok = parsed(tmp_path / "m.onnx")
    assert ok
    constants = [network.get_layer(i) for i in range(network.num_layers) if network.get_layer(i).type == trt.LayerType.CONSTANT]
    assert [c.get_output(0).dtype for c in constants] == [trt.float16]


def test_no_elements_of_an_empty_file(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"")
    written(tmp_path / "m.onnx", [external("w", FLOAT, [0], "w.bin")])
    assert parsed(tmp_path / "m.onnx")[3]
    written(tmp_path / "m.onnx", [external("w", FLOAT, [1], "w.bin")])
    parser = parsed(tmp_path / "m.onnx")[2]
    assert "gives 0 bytes for 4" in parser.get_error(0).desc()


PEAK = """
import sys
import tensorrt as trt
logger = trt.Logger(trt.Logger.ERROR)
network = (builder := trt.Builder(logger)).create_network(1)
peak = lambda: int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
before = peak()
assert trt.OnnxParser(network, logger).parse_from_file(sys.argv[1])
print(peak() - before)
"""


def test_what_is_not_looked_at_is_not_read(tmp_path):
    """Two GB of weights, of which there are none on the disk."""
    count, each = 16, 1 << 25
    with open(tmp_path / "w.bin", "wb") as file:
        os.truncate(file.fileno(), count * each * 4)
    written(tmp_path / "m.onnx", [external(f"w{i}", FLOAT, [each], "w.bin", offset=i * each * 4) for i in range(count)])
    done = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path / "m.onnx")], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 64 << 10, f"{done.stdout} KB"
