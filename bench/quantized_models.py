#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: quantized_models.py NAME_int8...|all --out DIR [--list]

Writes DIR/NAME_int8.onnx: a model of bench/models, quantized by ONNX Runtime's static quantizer to Q/DQ form: symmetric INT8
(zero points 0), weights per output channel, ranges as the largest magnitude over seeded normal inputs. Convolutions, products,
sums, pooling and joins are quantized, in transformers products alone. Needs numpy, onnx and onnxruntime.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

MAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", "make.py")
CONVOLUTIONAL = ("resnet50", "mobilenet_v2", "efficientnet_b0", "yolov8n", "unet")
TRANSFORMERS = ("bert_base_s128", "vit_b16")
OPERATORS = ["Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "MaxPool", "AveragePool", "GlobalAveragePool", "Concat", "Resize"]
BATCHES = 4


class Batches:
    """Inputs as cpu_peers.py makes them, from other seeds."""

    def __init__(self, model):
        rng = np.random.Generator(np.random.PCG64(11))
        metadata = {p.key: p.value for p in model.metadata_props}
        weights = {w.name for w in model.graph.initializer}
        self.batches = []
        for _ in range(BATCHES):
            batch = {}
            for value in model.graph.input:
                if value.name in weights:
                    continue
                shape = [max(d.dim_value, 1) for d in value.type.tensor_type.shape.dim]
                dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
                kind, *limits = metadata.get("input:" + value.name, "normal" if dtype.kind == "f" else "int 0 2").split()
                if kind == "normal":
                    values = rng.standard_normal(shape, np.float32)
                elif kind == "int":
                    values = rng.integers(int(limits[0]), int(limits[1]), shape, np.int64)
                else:  # prefix_ones COUNT
                    values = (np.arange(int(np.prod(shape))) < int(limits[0])).reshape(shape)
                batch[value.name] = values.astype(dtype)
            self.batches.append(batch)

    def get_next(self):
        return self.batches.pop() if self.batches else None


def write(name, folder):
    import onnxruntime  # not for --list
    from onnxruntime import quantization

    class Reader(Batches, quantization.CalibrationDataReader):
        pass

    base = name.removesuffix("_int8")
    source = os.path.join(folder, base + ".onnx")
    if not os.path.exists(source):
        subprocess.run([sys.executable, MAKE, base, "--out", folder], check=True)
    path = os.path.join(folder, name + ".onnx")
    with tempfile.TemporaryDirectory() as scratch:
        folded = os.path.join(scratch, "folded.onnx")  # batch normalization in the convolutions, as exporters do
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = folded
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        model = onnx.load(source)
        quantization.quantize_static(
            folded, path + ".part", Reader(model), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
            op_types_to_quantize=["MatMul", "Gemm"] if base in TRANSFORMERS else OPERATORS,
            activation_type=quantization.QuantType.QInt8, weight_type=quantization.QuantType.QInt8,
            calibrate_method=quantization.CalibrationMethod.MinMax,
            extra_options={"ActivationSymmetric": True, "WeightSymmetric": True})
    made = onnx.load(path + ".part")
    onnx.helper.set_model_props(made, {p.key: p.value for p in model.metadata_props})
    onnx.save_model(made, path)
    os.remove(path + ".part")
    print(f"{name}: {os.path.getsize(path) / 1e6:.1f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", default=".")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    names = [name + "_int8" for name in CONVOLUTIONAL + TRANSFORMERS]
    if options.list:
        print("\n".join(names))
        return
    os.makedirs(options.out, exist_ok=True)
    for name in names if options.names == ["all"] else options.names:
        if name not in names:
            parser.error(f"unknown model {name!r} (known: {', '.join(names)})")
        write(name, options.out)


if __name__ == "__main__":
    main()
