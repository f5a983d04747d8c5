#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run from Python costs above one from C++: PYTHONPATH=build/release/python:build/release/test/python .venv/bin/python
bench/python_calls.py [ROUNDS]. Interleaved rounds of 300 runs of a small engine, in the time of the calling thread; the median
of the differences."""
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "test" / "python"))
import callback_probe
import numpy as np
import tensorrt as trt
import tensorwright
from small import LOUD, engine_of

COUNT = 300


def main(rounds):
    builder = trt.Builder(LOUD)
    network = builder.create_network(1)
    layer = network.add_unary(network.add_input("x", trt.float32, (8,)), trt.UnaryOperation.NEG)
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    context = engine_of(builder, network, builder.create_builder_config()).create_execution_context()
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    context.set_tensor_address("x", x.ctypes.data)
    context.set_tensor_address("y", y.ctypes.data)
    model = tensorwright.load(context.engine.serialize(), "cpu")
    native, added, called = [], [], []
    for _ in range(rounds):
        here = callback_probe.enqueue_seconds(context, COUNT)
        start = time.thread_time()
        for _ in range(COUNT):
            context.execute_async_v3(0)
        native.append(here / COUNT * 1e6)
        prepared = time.thread_time() - start
        added.append((prepared - here) / COUNT * 1e6)
        start = time.thread_time()
        for _ in range(COUNT):
            model(x)
        called.append((time.thread_time() - start - prepared) / COUNT * 1e6)
    assert (y == -1).all()
    print(f"a run: {statistics.median(native):.2f} us in C++, {statistics.median(added):.2f} us more from Python (medians of {rounds} rounds)")
    print(f"tensorwright.Model: {statistics.median(called):.2f} us above that, {min(called):.2f} in the best round (goal: 15)")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
