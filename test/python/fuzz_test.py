# SPDX-License-Identifier: Apache-2.0
"""Random calls with random arguments: exceptions are allowed, a crash is not. Each seed runs in a process of its own; a failure
names the seed and the last call.

    fuzz_test.py SEED SECONDS    runs one seed and prints each call
"""

import gc
import inspect
import os
import pathlib
import random
import subprocess
import sys
import time
import warnings

import numpy as np

# Calls whose numbers are addresses, which nobody can check, or that run what stands there.
ADDRESSES = {
    "execute",
    "execute_async",
    "execute_v2",
    "execute_async_v2",
    "execute_async_v3",
    "device_memory",
    "set_tensor_address",
    "attach_to_context",
    "set_input_consumed_event",
    "set_optimization_profile_async",
    "profile_stream",
    "init_libnvinfer_plugins",
    "input_consumed",
    "shutdown_protobuf_library",
    "data",
}


class Fuzz:
    def __init__(self, seed, shown):
        self.random = random.Random(seed)
        self.shown = shown
        self.start()

    def start(self):
        import tensorrt as trt
        from small import QUIET, convolution, engine_of

        self.trt = trt
        builder, network, config = convolution(QUIET)
        engine = engine_of(*convolution(QUIET, flags=[trt.BuilderFlag.REFIT]), logger=QUIET)
        context = engine.create_execution_context()
        self.objects = [
            builder,
            network,
            config,
            engine,
            context,
            trt.Runtime(QUIET),
            trt.OnnxParser(network, QUIET),
            trt.Refitter(engine, QUIET),
            engine.create_engine_inspector(),
            builder.create_optimization_profile(),
            network[0],
            network[1],
            network.get_input(0),
            network.get_output(0),
            trt.Dims((1, 2)),
            trt.Dims4((1, 2, 3, 4)),
            trt.DimsHW(2, 2),
            trt.Permutation((1, 0)),
            trt.Weights(np.ones(4, np.float32)),
            trt.PluginField("a", b"abc"),
            trt.PluginFieldCollection([trt.PluginField("b")]),
            trt.NodeIndices([1, 2]),
            trt.SubGraphCollection(),
            trt.get_plugin_registry(),
            config.create_timing_cache(b""),
            engine.serialize(),
            QUIET,
            trt.CaffeParser(),
            trt.UffParser(),
            network.add_loop(),
            network.add_if_conditional(),
        ]
        self.classes = [c for c in vars(trt).values() if inspect.isclass(c)]

    def value(self, depth=0):
        r = self.random
        kind = r.randrange(12)
        if kind == 0:
            return None
        if kind == 1:
            return r.choice([-1, 0, 1, 2, 3, 7, 100, 2**31 - 1, 2**31, -(2**31), 2**63, 2**64, True])
        if kind == 2:
            return r.choice([0.0, 1.5, -1e30, float("nan"), float("inf")])
        if kind == 3:
            return r.choice(
                ["", "x", "y", "conv", "a" * 5000, "\0", "\udc80", "ij,jk->ik", b"bytes", bytearray(100), memoryview(b"abc")]
            )
        if kind in (4, 5) and depth < 2:
            return r.choice([tuple, list])(
                self.value(depth + 1) if r.random() < 0.3 else r.choice([-1, 0, 1, 2, 3, 8]) for _ in range(r.randrange(10))
            )
        if kind == 6:
            return np.ones(
                [r.randrange(4) for _ in range(r.randrange(4))],
                r.choice([np.float32, np.float16, np.int32, np.int8, np.float64, np.bool_]),
            )
        if kind == 7:
            members = [c for c in self.classes if hasattr(c, "__members__")]
            return r.choice(list(r.choice(members).__members__.values()))
        return r.choice(self.objects)

    def fitting(self, name):
        """An argument that is often of the right kind."""
        r, trt = self.random, self.trt
        if r.random() < 0.5:
            return self.value()
        of = lambda *kinds: [o for o in self.objects if isinstance(o, kinds)]
        guesses = {
            "input": of(trt.ITensor),
            "tensor": of(trt.ITensor),
            "shape": [(1, 3, 8, 8), (2, 2), (-1, 3), ()],
            "kernel": [np.ones((4, 3, 3, 3), np.float32), np.ones(3, np.float32)],
            "index": [0, 1, -1, 5],
            "axis": [0, 1, -1, 9],
            "axes": [1, 2, 8, 0, 255],
            "name": ["x", "y", "conv", "other"],
            "kernel_shape": [(3, 3), (1, 1), (0, 0), (3, 3, 3)],
            "num_output_maps": [4, 1, 0, -1],
            "inputs": [of(trt.ITensor)[:2]],
            "logger": of(trt.Logger),
            "network": of(trt.INetworkDefinition),
            "config": of(trt.IBuilderConfig),
            "engine": of(trt.ICudaEngine),
            "window_size": [(2, 2), (9, 9), (0, 1)],
            "layer": of(trt.ILayer),
        }
        choices = guesses.get(name) or guesses.get(name.rstrip("012")) or [self.value()]
        return r.choice(choices)

    def arguments(self, function):
        signatures = getattr(function, "__nb_signature__", None)
        if not signatures:
            return [self.value() for _ in range(self.random.randrange(3))]
        text = self.random.choice(signatures)[0]
        inner = text[text.index("(") + 1 : text.index(")")].split(",")
        names = [part.split(":")[0].strip() for part in inner if part.strip() and not part.strip().startswith(("self", "/", "*"))]
        return [self.fitting(name) for name in names]

    def step(self):
        r = self.random
        thing = r.choice(self.objects)
        members = [
            n
            for n in dir(type(thing))
            if n not in ADDRESSES
            and (
                not n.startswith("_")
                or n
                in (
                    "__getitem__",
                    "__setitem__",
                    "__len__",
                    "__eq__",
                    "__iter__",
                    "__init__",
                    "__delitem__",
                    "__str__",
                    "__repr__",
                    "__enter__",
                    "__exit__",
                )
            )
        ]
        name = r.choice(members)
        member = inspect.getattr_static(type(thing), name)
        if isinstance(member, property):
            if member.fset and r.random() < 0.5:
                call, arguments = (lambda v: setattr(thing, name, v)), [self.fitting(name)]
            else:
                call, arguments = (lambda: getattr(thing, name)), []
        else:
            call = getattr(thing, name)
            if not callable(call):
                return
            arguments = self.arguments(member)
        if self.shown:
            print(type(thing).__name__, name, [repr(a)[:60].encode("ascii", "replace").decode() for a in arguments], flush=True)
        try:
            result = call(*arguments)
        except Exception:
            result = None
        if (
            type(result).__module__.startswith("tensorrt")
            and len(self.objects) < 120
            and not hasattr(type(result), "__members__")
        ):
            self.objects.append(result)
        if r.random() < 0.01 and len(self.objects) > 20:
            del self.objects[r.randrange(len(self.objects))], result
            gc.collect()
        if r.random() < 0.002:
            self.start()


def main(seed, seconds, shown):
    warnings.simplefilter("ignore")
    end = time.monotonic() + seconds
    fuzz, steps = Fuzz(seed, shown), 0
    while time.monotonic() < end:
        fuzz.step()
        steps += 1
    print(f"seed {seed}: {steps} calls")


def test_random_calls():
    seconds = float(os.environ.get("TW_FUZZ_SECONDS", "4"))
    for seed in range(int(os.environ.get("TW_FUZZ_FIRST", "0")), int(os.environ.get("TW_FUZZ_FIRST", "0")) + 4):
        result = subprocess.run(
            [sys.executable, __file__, str(seed), str(seconds)], capture_output=True, text=True, errors="replace"
        )
        assert result.returncode == 0 and f"seed {seed}:" in result.stdout, (
            f"{__file__} {seed} {seconds} ended with {result.returncode} after\n"
            + "\n".join(result.stdout.splitlines()[-3:])
            + "\n"
            + result.stderr[-2000:]
        )


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    main(int(sys.argv[1]), float(sys.argv[2]), True)
