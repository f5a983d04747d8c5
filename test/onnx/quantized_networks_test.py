#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random networks with Q/DQ pairs: built and run by trtexec, the outputs compared with ONNX Runtime's without optimizations. An
output agrees when its difference has at most 6 % of its norm: a number on the edge between two steps may fall on either side.
usage: quantized_networks_test.py TRTEXEC [--seed N] [--count N] [--steps N] [--zero-points] [--show] [--keep FOLDER]
skipped (77) where numpy, onnx or onnxruntime is missing"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from quantized_networks import Network, plain_session
except ImportError as error:
    print(f"skipped: {error}; `make bench-peers` makes a .venv with these packages")
    sys.exit(77)

LIMIT = 0.06


def text(shape):
    return "x".join(map(str, shape))


FORMATS = {"float32": "fp32:chw", "float16": "fp16:chw", "int8": "int8:chw"}


def formats(network, names):
    return ",".join(FORMATS[str(network.values[name].dtype)] for name in names)


def engine_outputs(tool, network, model, folder, seed):
    """Name to array; or the text of a failure. Every other engine is tuned by time, every third has kernels without vectors."""
    path, results = os.path.join(folder, "model.onnx"), os.path.join(folder, "outputs.json")
    onnx.save_model(model, path)
    command = [tool, "--device=cpu", "--onnx=" + path, "--exportOutput=" + results, "--warmUp=0", "--duration=0",
               "--iterations=1", "--inputIOFormats=" + formats(network, network.feed),
               "--outputIOFormats=" + formats(network, network.outputs)]
    command += ["--int8"] if network.has_integers() else []  # else every tensor would get a dummy range
    command += ["--heuristic"] if seed % 2 else []
    command += ["--fp16"] if network.float == np.float16 else []
    environment = dict(os.environ, **({"TENSORWRIGHT_CPU_ISA": "baseline"} if seed % 3 == 0 else {}))
    for name, array in network.feed.items():
        file = os.path.join(folder, name + ".bin")
        array.tofile(file)
        command.append(f"--loadInputs={name}:{file}")
        if name in network.ranges:
            command += [f"--{kind}Shapes={name}:{text(shape)}" for kind, shape in zip(("min", "opt", "max"), network.ranges[name])]
            command.append(f"--shapes={name}:{text(array.shape)}")
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, check=False,
                              env=environment)
    except subprocess.TimeoutExpired:
        return "no end within 240 s"
    if done.returncode != 0:
        lines = done.stdout.decode(errors="replace").splitlines()
        return "\n".join([line for line in lines if "[E]" in line] or lines[-20:])
    with open(results, encoding="utf-8") as file:
        tensors = json.load(file)
    return {t["name"]: np.array(t["values"], np.float64).reshape([int(d) for d in t["dimensions"].split("x") if d]) for t in tensors}


def difference(got, want):
    if got.shape != want.shape:
        return f"shape {text(got.shape)} for {text(want.shape)}"
    floor = 1e-3 * np.sqrt(max(want.size, 1))
    error = np.linalg.norm(got - want) / max(np.linalg.norm(want), floor)
    return "" if error <= LIMIT else f"relative difference {error:.4f}, got {got.ravel()[:4]}, want {want.ravel()[:4]}"


def check(tool, network, folder, seed):
    """The reason why not or nothing; whether an output varies."""
    model = network.model()
    onnx.checker.check_model(model)
    results = plain_session(model).run(None, network.feed)
    wanted = dict(zip(network.outputs, (r.astype(np.float64) for r in results)))
    varies = any(np.std(w) > 0.01 * np.abs(w).max() for w in wanted.values())
    got = engine_outputs(tool, network, model, folder, seed)
    if isinstance(got, str):
        return got, varies
    if set(got) != set(wanted):
        return f"outputs {sorted(got)} for {sorted(wanted)}", varies
    reasons = [f"{name}: {reason}" for name, want in wanted.items() if (reason := difference(got[name], want))]
    return "\n".join(reasons), varies


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("tool")
    parser.add_argument("--seed", type=int, default=1, help="of the first network; the next have those behind it")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--steps", type=int, help="layers of a network, to find the one that fails")
    parser.add_argument("--zero-points", action="store_true", help="pairs of UINT8 and INT8, whose zero points are anywhere")
    parser.add_argument("--show", action="store_true", help="print each network")
    parser.add_argument("--keep", help="folder for models that fail")
    options = parser.parse_args()
    failed, varying = 0, 0
    for seed in range(options.seed, options.seed + options.count):
        network = Network(seed, options.steps, options.zero_points)
        with tempfile.TemporaryDirectory() as folder:
            reason, varies = check(options.tool, network, folder, seed)
        varying += varies
        if options.show or reason:
            print(f"--- seed {seed}, opset {network.opset}, {network.float}, outputs {', '.join(network.outputs)}")
            print("\n".join(network.listing()))
        if reason:
            failed += 1
            print(f"failed: {reason}\nagain: {sys.argv[0]} {options.tool} --count 1 --seed {seed}", flush=True)
            if options.keep:
                os.makedirs(options.keep, exist_ok=True)
                onnx.save_model(network.model(), os.path.join(options.keep, f"{seed}.onnx"))
    if varying < 0.9 * options.count:
        failed += 1
        print(f"failed: only {varying} of {options.count} networks have outputs that vary")
    print(f"{options.count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
