# SPDX-License-Identifier: Apache-2.0
"""INT8 without a calibrator, as sampleINT8API does it: ranges of tensors from a text file, precisions of layers by hand."""

import pathlib

import numpy as np
import tensorrt as trt

from small import LOUD, engine_of, run

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits"
MOVEMENTS = (trt.LayerType.CONSTANT, trt.LayerType.CONCATENATION, trt.LayerType.SHAPE)


def parsed():
    builder = trt.Builder(LOUD)
    network = builder.create_network(1)
    parser = trt.OnnxParser(network, LOUD)
    assert parser.parse((DIGITS / "digits.onnx").read_bytes()), parser.get_error(0).desc()
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    profile.set_shape("image", (1, 1, 8, 8), (360, 1, 8, 8), (360, 1, 8, 8))
    config.add_optimization_profile(profile)
    return builder, network, config, parser


def floats(network):
    """Tensors by name, inputs first."""
    tensors = [network.get_input(i) for i in range(network.num_inputs)]
    tensors += [layer.get_output(i) for layer in network for i in range(layer.num_outputs)]
    return {t.name: t for t in tensors if t.dtype == trt.float32 and t.is_execution_tensor}


def write_ranges(path, images):
    """name: largest magnitude, a line each, of what the network computes in FP32."""
    builder, network, config, _parser = parsed()
    outputs = {network.get_output(i).name for i in range(network.num_outputs)}
    for name, tensor in floats(network).items():
        if name not in outputs and not tensor.is_network_input:
            network.mark_output(tensor)
    values = run(engine_of(builder, network, config), image=images)
    values["image"] = images
    path.write_text("".join(f"{name}: {np.abs(v).max():.6f}\n" for name, v in values.items()))


def test_ranges_of_a_file(tmp_path):
    images = np.fromfile(DIGITS / "heldback_images.bin", np.uint8).astype(np.float32).reshape(-1, 1, 8, 8) / 16
    labels = np.fromfile(DIGITS / "heldback_labels.bin", np.uint8)
    builder, network, config, _parser = parsed()
    plain = run(engine_of(builder, network, config), image=images)
    name = network.get_output(0).name
    write_ranges(tmp_path / "ranges.txt", images[:40])

    ranges = dict(line.rsplit(": ", 1) for line in (tmp_path / "ranges.txt").read_text().splitlines())
    builder, network, config, _parser = parsed()
    for tensor, object in floats(network).items():
        assert object.set_dynamic_range(-float(ranges[tensor]), float(ranges[tensor]))
    for layer in network:
        if layer.type in MOVEMENTS or layer.precision == trt.int32:
            continue
        layer.precision = trt.int8
        for i in range(layer.num_outputs):
            output = layer.get_output(i)
            if output.is_execution_tensor and not output.is_network_output and output.dtype == trt.float32:
                layer.set_output_type(i, trt.int8)
    config.set_flag(trt.BuilderFlag.INT8)
    config.set_flag(trt.BuilderFlag.PREFER_PRECISION_CONSTRAINTS)  # not what the clock prefers
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    engine = engine_of(builder, network, config)
    assert "Int8" in engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    right = [(y[name].argmax(1) == labels).mean() for y in (plain, run(engine, image=images))]
    assert right[0] > 0.9 and right[1] >= right[0] - 0.01, right
