#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One token's products of TinyLlama-1.1B by weights of 4 bits in blocks of 32, on the CPU, beside ONNX Runtime's MatMulNBits.

A model has all 155 products of a token (22 layers and the last one) by random weights, without what stands between them in the
network; with --shape products of one shape alone, as many as are larger than the caches. Engines are processes that take
turns, as in cpu_peers.py; outputs are compared first. Beside them: how fast the same threads read memory and copy it
(bench_nbit_product rates; a copy counts what is read and what is written). The floor is the weights' bytes at the rate of reading.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

import engines
import record

HIDDEN, INNER, KEYS, LAYERS, TOKENS = 2048, 5632, 256, 22, 32000
SHAPES = {"2048x2048": (2048, 2048), "2048x256": (2048, 256), "2048x5632": (2048, 5632), "5632x2048": (5632, 2048), "2048x32000": (2048, 32000)}
COLD = 200 << 20  # bytes
# Ours sums as FP32 does; ONNX Runtime rounds x to 8 bits with accuracy_level 4.
LARGEST_ERRORS = {0: 1e-4, 4: 0.2}


class Products:
    def __init__(self, block, level):
        self.rng = np.random.Generator(np.random.PCG64(1))
        self.block, self.level = block, level
        self.nodes, self.initializers, self.bytes = [], [], 0

    def tensor(self, kind, array):
        name = f"c{len(self.initializers)}"
        tensor = TensorProto(name=name, data_type=kind, dims=array.shape)
        tensor.raw_data = array.tobytes()
        self.initializers.append(tensor)
        return name

    def product(self, x, k, n, gain=1):
        """Numbers stay as large as they are."""
        blocks = -(-k // self.block)
        weights = np.frombuffer(self.rng.bytes(n * blocks * self.block // 2), np.uint8).reshape(n, blocks, self.block // 2)
        scales = np.full((n, blocks), gain / (4.64 * k ** 0.5), np.float32) * self.rng.uniform(0.9, 1.1, (n, blocks)).astype(np.float32)
        scales = scales.astype(np.float16).astype(np.float32)
        self.bytes += weights.nbytes + 2 * scales.size  # 16 bits say these scales
        y = f"y{len(self.nodes)}"
        inputs = [x, self.tensor(TensorProto.UINT8, weights), self.tensor(TensorProto.FLOAT, scales)]
        self.nodes.append(helper.make_node("MatMulNBits", inputs, [y], domain="com.microsoft", K=k, N=n, bits=4, block_size=self.block, accuracy_level=self.level))
        return y

    def node(self, op, *inputs):
        y = f"y{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [y]))
        return y

    def token(self):
        x = "x"
        for _ in range(LAYERS):
            q, k, v = self.product(x, HIDDEN, HIDDEN), self.product(x, HIDDEN, KEYS), self.product(x, HIDDEN, KEYS)
            self.keep = self.node("Add", k, v) if x == "x" else self.node("Add", self.keep, self.node("Add", k, v))
            x = self.product(q, HIDDEN, HIDDEN)
            x = self.product(self.node("Sub", self.product(x, HIDDEN, INNER), self.product(x, HIDDEN, INNER)), INNER, HIDDEN, 0.5 ** 0.5)
        return {"logits": (self.product(x, HIDDEN, TOKENS), TOKENS), "keys": (self.keep, KEYS)}

    def chain(self, k, n):
        outputs, total = {}, None
        while self.bytes < COLD:
            y = self.product("x", k, n)
            total = self.node("Add", total, y) if total else y
        outputs["sum"] = (total, n)
        return outputs

    def save(self, path, rows, k, outputs):
        nodes = self.nodes + [helper.make_node("Identity", [y], [name]) for name, (y, _) in outputs.items()]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, k])],
                                  [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, n]) for name, (_, n) in outputs.items()], self.initializers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=9), path)


def rates(options, threads):
    """Of reading and copying: bytes a second."""
    out = subprocess.run([os.path.join(options.bin_dir, "bench_nbit_product"), "rates", str(threads)], capture_output=True, text=True, check=True).stdout
    return [float(v) for v in out.split()]


def largest_error(folder, ours, peer):
    names, others = ours.ask(f"outputs {folder}/ours", "outputs").split(), peer.ask(f"outputs {folder}/peer", "outputs").split()
    worst = 0.0
    for i, name in enumerate(names):
        got, want = np.fromfile(f"{folder}/ours{i}", np.float32).astype(np.float64), np.fromfile(f"{folder}/peer{others.index(name)}", np.float32).astype(np.float64)
        if not np.isfinite(want).all() or not want.any():
            raise engines.EngineError("outputs prove nothing")
        worst = max(worst, float(np.linalg.norm(got - want) / np.linalg.norm(want)))
    return worst


def compare(shape, threads, options, folder):
    k, n = SHAPES.get(shape, (HIDDEN, TOKENS))
    models, bytes_read = {}, 0
    for level in (0, 4):
        made = Products(options.block, level)
        outputs = made.token() if shape == "token" else made.chain(k, n)
        models[level] = os.path.join(folder, f"level{level}.onnx")
        made.save(models[level], options.rows, k, outputs)
        bytes_read = made.bytes
    x = os.path.join(folder, "x.raw")
    np.random.Generator(np.random.PCG64(2)).standard_normal((options.rows, k)).astype(np.float32).tofile(x)
    plan, _ = engines.build_ours(options.bin_dir, models[0], {}, threads, folder, options.timeout, True)
    workers = [engines.start_ours(options.bin_dir, plan, threads, {"x": x}, options.timeout)]
    try:
        workers += [engines.start_peer("onnxruntime", models[level], threads, {"x": x}, {}, options.timeout) for level in (0, 4)]
        for worker in workers:
            worker.ready()
        errors = [largest_error(folder, workers[0], peer) for peer in workers[1:]]
        for level, error in zip((0, 4), errors):
            if error > LARGEST_ERRORS[level]:
                raise engines.EngineError(f"outputs differ from those of accuracy_level {level} by {error:.1e} (allowed: {LARGEST_ERRORS[level]:.0e})")
        rounds = []  # ours, accuracy_level 0, 4; bytes a second: others on the machine change all of them together
        for _ in range(options.rounds):
            times = [t[0] for t in engines.times_in_turns(workers, options.turn, 1, first=(1, 3), repeats=1)]
            rounds.append((*times, *rates(options, threads)))

        def median(of):
            return statistics.median(of(*r) for r in rounds)

        return {"shape": shape, "rows": options.rows, "block": options.block, "threads": threads, "weights_mb": bytes_read / 1e6,
                "read_gb_s": median(lambda o, a, b, read, copy: read / 1e9), "copy_gb_s": median(lambda o, a, b, read, copy: copy / 1e9),
                "ours_ms": median(lambda o, *_: o * 1e3), "ours_gb_s": median(lambda o, *_: bytes_read / o / 1e9),
                "over_read": median(lambda o, a, b, read, copy: o * read / bytes_read), "over_copy": median(lambda o, a, b, read, copy: o * copy / bytes_read),
                "ort0_ms": median(lambda o, a, *_: a * 1e3), "ort4_ms": median(lambda o, a, b, *_: b * 1e3),
                "ort0_over_ours": median(lambda o, a, *_: a / o), "ort4_over_ours": median(lambda o, a, b, *_: b / o),
                "error0": errors[0], "error4": errors[1], "rounds": options.rounds}
    finally:
        for worker in workers:
            worker.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="token," + ",".join(SHAPES))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turn", type=float, default=0.3, help="seconds of an engine's turn")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--bin-dir", default=os.path.join(engines.ROOT, "build", "release", "bin"))
    parser.add_argument("--note")
    parser.add_argument("--out", help="the record")
    options = parser.parse_args()
    import onnxruntime
    rows, failed = [], False
    for shape in options.shapes.split(","):
        for threads in options.threads.split(","):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    rows.append(compare(shape, int(threads), options, folder))
                    print(" ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{value}" for key, value in rows[-1].items()), flush=True)
                except engines.EngineError as error:
                    print(f"{shape} {threads}T: {error}", flush=True)
                    failed = True
    if options.out and rows:
        note = {"note": options.note} if options.note else {}
        record.write_record(options.out, {**record.header(record.cpu_name()), "onnxruntime": onnxruntime.__version__, **note, "rows": rows})
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
