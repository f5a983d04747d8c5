#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: gpu_fp32.py --bin FOLDER [--models FOLDER] [--json FILE] [--rows N...]

Transformers in FP32, with TF32 allowed and not: this engine (trtexec in FOLDER, its own CUDA graph, median GPU time) beside
PyTorch's modules of gpu_networks.py in a CUDA graph (eager kernels, median by events). Seeded random weights; the engine's
layers are compared with the reference when it is built. Needs torch, numpy, onnx and a GPU.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

import onnx
import torch

from record import header, write_record

HERE = os.path.dirname(os.path.abspath(__file__))


def torch_ms(module, inputs):
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                module(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            module(*inputs)
    times = []
    for _ in range(30):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def ours(trtexec, path, tf32):
    """Milliseconds, and seconds of the build."""
    flags = ["--useCudaGraph", "--iterations=20", "--duration=0.3", "--warmUp=50"] + ([] if tf32 else ["--noTF32"])
    text = subprocess.run([trtexec, "--onnx=" + path] + flags, check=True, capture_output=True, text=True).stdout
    return (float(re.search(r"GPU Compute Time: .*median = ([\d.]+) ms", text)[1]),
            float(re.search(r"Engine built in ([\d.]+) sec\.", text)[1]))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--models", default=os.path.join(HERE, "models"))
    parser.add_argument("--json")
    parser.add_argument("--rows", nargs="*", default=["bert_base_b1", "vit_b16_b1", "bert_base_b32"])
    args = parser.parse_args()
    sys.path[:0] = [args.models, HERE]
    import gpu_networks

    results = header(torch.cuda.get_device_name(), versions={"torch": torch.__version__}, rows=[])
    with tempfile.TemporaryDirectory() as folder:
        for network in (n for n in gpu_networks.rows() if n.row in args.rows):
            model = network.onnx_model()
            path = os.path.join(folder, network.row + ".onnx")
            onnx.save_model(model, path)
            module = network.module(model).cuda()
            inputs = [v.cuda() for v in network.inputs(torch.Generator().manual_seed(1)).values()]
            for tf32 in (True, False):
                torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
                theirs = torch_ms(module, inputs)
                ms, build = ours(os.path.join(args.bin, "trtexec"), path, tf32)
                results["rows"].append({"network": network.name, "batch": network.batch, "seq": network.seq, "tf32": tf32,
                                        "ours_ms": ms, "torch_graph_ms": round(theirs, 4), "build_s": build})
                print(f"{network.row:16} {'TF32' if tf32 else 'FP32'}  ours {ms:8.3f} ms  torch {theirs:8.3f} ms  "
                      f"build {build:5.1f} s", flush=True)
                if args.json:
                    write_record(args.json, results)
            os.remove(path)
            del module, inputs
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
