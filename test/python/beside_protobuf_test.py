# SPDX-License-Identifier: Apache-2.0
"""The parser in a process whose global scope has another protobuf, as TensorFlow brings one: neither calls the other."""

import pathlib
import subprocess
import sys

import callback_probe
import pytest

from models import Resnet

FOREIGN = pathlib.Path(callback_probe.__file__).with_name("libforeign_protobuf.so")
PROGRAM = """
import ctypes, sys
import numpy as np
model, *libraries = sys.argv[1:]
for name in libraries:
    try:
        ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
    except OSError:
        assert name.startswith("libprotobuf"), name
ctypes.CDLL(None)._ZN6google8protobuf11MessageLite14ParseFromArrayEPKvi
import tensorrt as trt
logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
builder = trt.Builder(logger)
for turn in range(2):
    network = builder.create_network(1)
    parser = trt.OnnxParser(network, logger)
    assert parser.parse_from_file(model) if turn else parser.parse(open(model, "rb").read())
    assert not parser.parse(b"no model")
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    x, y = np.ones((1, 3, 16, 16), np.float32), np.empty((1, 10), np.float32)
    assert engine.create_execution_context().execute_v2([x.ctypes.data, y.ctypes.data])
    assert abs(y.sum() - 1) < 1e-5
    caffe, network = trt.CaffeParser(), builder.create_network(0)
    text = b"layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: [1, 2, 3, 4] } } } layer { name: 'y' type: 'TanH' bottom: 'data' top: 'y' }"
    assert caffe.parse_buffer(text, b"", network, trt.float32).find("y").shape == (2, 3, 4)
    assert caffe.parse_buffer(b"layer {", b"", builder.create_network(0), trt.float32) is None
print("parsed", len(libraries))
"""


# One whose functions end the process, alone and before the system's.
@pytest.mark.parametrize("libraries", [[FOREIGN], [FOREIGN, "libprotobuf-lite.so.32"], ["libprotobuf.so.32"]])
def test_parse_and_run(libraries, tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(Resnet(size=16).model())
    command = [sys.executable, "-c", PROGRAM, path, *libraries]
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout == f"parsed {len(libraries)}\n", (run.returncode, run.stdout + run.stderr)
