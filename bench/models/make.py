#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: make.py NAME...|all --out DIR [--list]

Writes DIR/NAME.onnx for each model: seeded random weights, batch 1, opset 13, the same bytes each time with the same
numpy and onnx. Prints size, multiplications and node counts. Needs numpy and onnx.
"""
import argparse
import collections
import os

import onnx

import bert
import densenet
import efficientnet
import gpt2
import graph
import inception
import mobilenet
import resnet
import unet
import vit
import yolo

MODELS = {
    "resnet18": resnet.resnet18,
    "resnet50": resnet.resnet50,
    "mobilenet_v2": mobilenet.mobilenet_v2,
    "efficientnet_b0": efficientnet.efficientnet_b0,
    "inception_v3": inception.inception_v3,
    "densenet121": densenet.densenet121,
    "unet": unet.unet,
    "yolov8n": yolo.yolov8n,
    "bert_base_s128": bert.bert_base_s128,
    "bert_large_s128": bert.bert_large_s128,
    "bert_large_s384": bert.bert_large_s384,
    "vit_b16": vit.vit_b16,
    "gpt2_s128": gpt2.gpt2_s128,
}


def write(name, folder):
    """Returns the path; the file appears whole or not at all."""
    model = MODELS[name]().model()
    count = graph.macs(model)
    onnx.helper.set_model_props(model, {**{p.key: p.value for p in model.metadata_props}, "macs": str(count)})
    path = os.path.join(folder, name + ".onnx")
    onnx.save_model(model, path + ".part")
    onnx.checker.check_model(path + ".part")
    os.replace(path + ".part", path)
    histogram = collections.Counter(n.op_type for n in model.graph.node).most_common()
    print(f"{name}: {os.path.getsize(path) / 1e6:.1f} MB, {count / 1e9:.2f} GMAC, "
          + ", ".join(f"{n} {op}" for op, n in histogram), flush=True)
    return path


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", default=".")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(MODELS))
        return
    names = list(MODELS) if options.names == ["all"] else options.names
    unknown = [n for n in names if n not in MODELS]
    if unknown or not names:
        parser.error(f"unknown model {unknown[0]!r}" if unknown else "no model named")
    os.makedirs(options.out, exist_ok=True)
    for name in names:
        write(name, options.out)


if __name__ == "__main__":
    main()
