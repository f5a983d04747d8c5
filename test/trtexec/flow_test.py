#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX -> build -> save -> load -> infer on the demo's model: labels, JSON keys, options that change the run, refusals.
usage: flow_test.py TRTEXEC MODEL"""
import io
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

MODEL = sys.argv.pop(2)
TOOL = sys.argv.pop(1)
QUICK = ["--warmUp=0", "--duration=0", "--iterations=3"]


def npy(values, shape):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(values)}f", *values)


def model_of(operator, element, *dims):
    """ONNX: y = operator(x [2, 3]), y of these dimensions and that type."""
    def number(field, value):
        return bytes([field << 3, value])

    def part(field, *parts):
        body = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
        return bytes([field << 3 | 2, len(body)]) + body

    def value(field, name, element, *dims):
        shape = part(2, *(part(1, number(1, d) if isinstance(d, int) else part(2, d)) for d in dims))
        return part(field, part(1, name), part(2, part(1, number(1, element), shape)))

    node = part(1, part(1, "x"), part(2, "y"), part(4, operator))
    graph = part(7, node, part(2, "g"), value(11, "x", 1, 2, 3), value(12, "y", element, *dims))
    return number(1, 8) + graph + part(8, number(2, 17))


def non_zero_model():
    """Data decides the size of its output."""
    return model_of("NonZero", 7, 2, "n")


class Flow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder_holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.folder_holder.name)
        cls.plan = cls.folder / "digits.plan"
        cls.build = cls.tool(f"--onnx={MODEL}", f"--saveEngine={cls.plan}", "--buildOnly",
                             "--minShapes=image:1x1x8x8", "--optShapes=image:2x1x8x8", "--maxShapes=image:4x1x8x8",
                             "--profilingVerbosity=detailed", f"--timingCacheFile={cls.folder / 'timing.cache'}")
        if cls.build.returncode != 0:
            raise AssertionError(cls.build.stdout + cls.build.stderr)
        random.seed(85)
        cls.input = cls.folder / "input.bin"
        cls.input.write_bytes(struct.pack("<128f", *(random.uniform(0, 1) for _ in range(128))))

    @classmethod
    def tearDownClass(cls):
        cls.folder_holder.cleanup()

    @staticmethod
    def tool(*arguments):
        return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=300)

    def passes(self, *arguments):
        result = self.tool(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout[-3000:] + result.stderr)
        self.assertRegex(result.stdout.splitlines()[-1], "^&&&& PASSED ")
        return result

    def test_plan_on_another_cpu(self):
        """A plan of one instruction set runs by the same algorithms in the variants of another one, the wider ones where
        the CPU has them; numbers agree. --strictPlan refuses it."""
        flags = next((line for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
                      if line.startswith("flags")), "")
        if "avx512dq" not in flags or "avx512vl" not in flags:
            self.skipTest("this CPU has no AVX-512, so no plan here is for another one")
        def run(limit, *arguments):
            result = subprocess.run([TOOL, *map(str, arguments), "--device=cpu", "--verbose"], capture_output=True, text=True,
                                    stdin=subprocess.DEVNULL, timeout=300, env={**os.environ, "TENSORWRIGHT_CPU_ISA": limit})
            return result.returncode, result.stdout + result.stderr
        tactics, outputs = {}, {}
        for built in ("avx2", "avx512"):
            plan = self.folder / f"{built}.plan"
            code, text = run(built, f"--onnx={MODEL}", "--shapes=image:2x1x8x8", f"--saveEngine={plan}", "--buildOnly",
                             "--profilingVerbosity=detailed")
            self.assertEqual(code, 0, text[-3000:])
            for limit in ("avx2", "avx512"):
                layers, values = self.folder / "layers.json", self.folder / "values.json"
                code, text = run(limit, f"--loadEngine={plan}", f"--loadInputs=image:{self.input}", f"--exportOutput={values}",
                                 f"--exportLayerInfo={layers}", *QUICK)
                self.assertEqual(code, 0, text[-3000:])
                names = [layer["TacticName"] for layer in json.loads(layers.read_text(encoding="utf-8"))["Layers"]]
                tactics[built, limit] = [name.rpartition("_")[2] for name in names if name.endswith(("_avx2", "_avx512"))]
                outputs[built, limit] = [v for o in json.loads(values.read_text(encoding="utf-8")) for v in o["values"]]
                self.assertEqual("kernels of the plan are for another CPU" in text, built != limit)
        self.assertGreater(len(tactics["avx512", "avx512"]), 1)
        self.assertEqual(set(tactics["avx2", "avx512"]), {"avx512"} | set(tactics["avx512", "avx512"]))
        self.assertEqual(set(tactics["avx512", "avx2"]), {"avx2"})
        for values in outputs.values():
            for got, want in zip(values, outputs["avx512", "avx512"], strict=True):
                self.assertAlmostEqual(got, want, delta=1e-4 * max(1, abs(want)))
        code, text = run("avx512", f"--loadEngine={self.folder / 'avx2.plan'}", "--strictPlan", *QUICK)
        self.assertNotEqual(code, 0)
        self.assertIn("the plan was generated on an incompatible device", text)
        code, text = run("sse9", f"--loadEngine={self.folder / 'avx2.plan'}", *QUICK)
        self.assertNotEqual(code, 0)
        self.assertIn("TENSORWRIGHT_CPU_ISA=sse9 must be baseline, avx2 or avx512", text)

    def test_persistent_cache(self):
        result = self.passes(f"--loadEngine={self.plan}", "--persistentCacheRatio=0.5", "--device=cpu", *QUICK)
        self.assertIn("Setting persistentCacheLimit to 0 bytes.", result.stdout)

    def fails(self, *arguments):
        result = self.tool(*arguments)
        self.assertEqual(result.returncode, 1, result.stdout[-3000:] + result.stderr)
        self.assertRegex(result.stdout.splitlines()[-1], "^&&&& FAILED ")
        self.assertRegex(result.stderr, r"\[E\] ")
        return result

    def test_a_failure_names_the_reason_of_the_library(self):
        errors = [line for line in self.fails(f"--loadEngine={self.plan}", "--shapes=image:9x1x8x8").stderr.splitlines() if "[E]" in line]
        self.assertEqual(len(errors), 2, errors)
        reason = errors[0].split("[TRT] ")[1]
        self.assertIn("shape 9x1x8x8 is not allowed for input 'image': " + reason, errors[1])
        plan = self.folder / "broken.plan"
        plan.write_bytes(self.plan.read_bytes()[:1000])
        errors = [line for line in self.fails(f"--loadEngine={plan}").stderr.splitlines() if "[E]" in line]
        self.assertIn("Deserializing the engine failed: " + errors[-2].split("[TRT] ")[1], errors[-1])

    def test_lines_about_memory(self):
        line = r"\[MemUsageChange\] %s: CPU [+-]\d+, GPU [+-]\d+, now: CPU \d+, GPU \d+ \(MiB\)\n"
        for what in ("Init CUDA", "TensorRT-managed allocation in building engine"):
            self.assertRegex(self.build.stdout, r"\[I\] \[TRT\] " + line % what)
        for key in ("Host Persistent", "Device Persistent", "Scratch", "Activation"):
            self.assertRegex(self.build.stdout, r"\[I\] \[TRT\] Total %s Memory: \d+\n" % key)
        log = self.passes(f"--loadEngine={self.plan}", *QUICK).stdout
        for what in ("Init CUDA", "TensorRT-managed allocation in engine deserialization",
                     "TensorRT-managed allocation in IExecutionContext creation"):
            self.assertRegex(log, r"\[I\] \[TRT\] " + line % what)

    def test_files_through_links_and_into_devices(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as holder:
            folder = pathlib.Path(holder)
            (folder / "target").mkdir()
            links = {flag: folder / flag for flag in ("saveEngine", "exportLayerInfo", "exportTimes", "exportOutput", "exportProfile", "timingCacheFile")}
            for flag, link in links.items():
                link.symlink_to(f"target/{flag}")
            flags = [f"--{flag}={link}" for flag, link in links.items()]
            self.passes(f"--onnx={MODEL}", *flags, *QUICK)
            for flag, link in links.items():
                self.assertTrue(link.is_symlink(), flag)
                self.assertGreater((folder / "target" / flag).stat().st_size, 0, flag)
            # Beside the targets, a lock; nothing temporary.
            self.assertEqual({p.name for p in (folder / "target").iterdir()}, {*links, "timingCacheFile.lock"})
            self.assertEqual({p.name for p in folder.iterdir()}, {*links, "target"})
            for link in links.values():
                link.unlink()
                link.symlink_to("/dev/null")
            self.passes(f"--onnx={MODEL}", *flags, *QUICK)
            self.assertTrue(all(os.readlink(link) == "/dev/null" for link in links.values()))
            self.assertTrue(pathlib.Path("/dev/null").is_char_device())
            self.assertEqual({p.name for p in folder.iterdir()}, {*links, "target"})
            self.assertFalse(pathlib.Path("/dev/null.lock").exists())

    def load(self, *arguments):
        given = {a.split("=")[0] for a in arguments}
        return self.passes(f"--loadEngine={self.plan}", *(q for q in QUICK if q.split("=")[0] not in given), *arguments)

    def in_order(self, text, labels):
        at = 0
        for label in labels:
            found = text.find(label, at)
            self.assertGreaterEqual(found, 0, f"'{label}' is missing or out of order in\n{text}")
            at = found + len(label)

    def test_switches_of_the_tuner(self):
        def built(*switches):
            layers = self.folder / "layers.json"
            log = self.passes(f"--onnx={MODEL}", "--shapes=image:2x1x8x8", "--buildOnly", "--verbose",
                              "--profilingVerbosity=detailed", f"--exportLayerInfo={layers}", *switches).stdout
            return log, layers.read_text()
        timed = re.compile(r" us, \d+ of (\d+) rounds")
        log, layers = built()
        self.assertIn("_f32_winograd", layers, "chosen or named among the losers")
        self.assertIn("TimeMicroseconds", layers)
        self.assertRegex(log, timed)
        log, layers = built("--noWinograd", "--avgTiming=20")
        self.assertNotIn("_f32_winograd", layers)
        self.assertGreaterEqual(max(map(int, timed.findall(log))), 20, "on a CPU each run is a round")
        log, layers = built("--heuristic")
        self.assertNotIn("TimeMicroseconds", layers)
        self.assertIn("EstimateMicroseconds", layers)
        self.assertNotRegex(log, timed)

    def test_half_inputs_and_outputs(self):
        wide, narrow = self.folder / "wide.json", self.folder / "half.json"
        shape = "--shapes=image:2x1x8x8"
        numbers = struct.unpack("<128f", self.input.read_bytes())
        halves = self.folder / "half.bin"
        halves.write_bytes(struct.pack("<128e", *numbers))
        self.passes(f"--onnx={MODEL}", shape, f"--loadInputs=image:{self.input}", f"--exportOutput={wide}", *QUICK)
        result = self.passes(f"--onnx={MODEL}", shape, "--fp16", "--inputIOFormats=fp16:chw",
                             "--outputIOFormats=fp16:chw", "--device=cpu", f"--loadInputs=image:{halves}",
                             f"--exportOutput={narrow}", *QUICK)
        self.assertEqual(result.stderr.count("FP16: this device computes in FP32; weights of products of few rows may be kept in FP16"), 1)
        for a, b in zip(json.loads(wide.read_text()), json.loads(narrow.read_text())):
            largest = max(map(abs, a["values"]))
            for u, v in zip(a["values"], b["values"]):
                self.assertLess(abs(u - v), 0.01 * largest)

    def test_build_only(self):
        self.in_order(self.build.stdout, [
            "=== Model Options ===", "=== Build Options ===", "=== System Options ===", "=== Inference Options ===",
            "=== Reporting Options ===", "=== Device Information ===", "Selected Device: ", "Compute Capability: ",
            "SMs: ", "Compute Clock Rate: ", "Device Global Memory: ", "Shared Memory per SM: ", "Memory Bus Width: ",
            "Memory Clock Rate: ", "TensorRT version: ", "Start parsing network model", "Finish parsing network model",
            "Engine built in ", "Skipped inference phase since --buildOnly is added."])
        self.assertEqual([p.name for p in self.folder.iterdir() if ".tmp" in p.name], [])
        self.assertNotIn("\r", self.build.stderr)  # no progress display in pipes

    def test_same_model_same_bytes(self):  # what was measured comes from the cache
        again = self.folder / "again.plan"
        self.passes(f"--onnx={MODEL}", f"--saveEngine={again}", "--buildOnly", "--minShapes=image:1x1x8x8",
                    "--optShapes=image:2x1x8x8", "--maxShapes=image:4x1x8x8", "--profilingVerbosity=detailed",
                    f"--timingCacheFile={self.folder / 'timing.cache'}")
        self.assertEqual(again.read_bytes(), self.plan.read_bytes())

    def test_report(self):
        result = self.load("--iterations=10", "--shapes=image:2x1x8x8")
        self.in_order(result.stdout, [
            "Engine loaded in ", "Engine deserialized in ", "Using random values for input image",
            "Created input binding for image with dimensions 2x1x8x8", "Using random values for output ",
            "Created output binding for ", "Starting inference", "Warmup completed 0 queries over 0 ms",
            "Timing trace has 10 queries over ", "=== Trace details ===", "Trace averages of 10 runs:",
            "Average on 10 runs - GPU latency: ", "=== Performance summary ===", "Throughput: ", "Latency: min = ",
            "Enqueue Time: min = ", "H2D Latency: min = ", "GPU Compute Time: min = ", "D2H Latency: min = ",
            "Total Host Walltime: ", "Total GPU Compute Time: ",
            "Explanations of the performance metrics are printed in the verbose logs."])

    def test_duration_and_warm_up(self):
        result = self.passes(f"--loadEngine={self.plan}", "--warmUp=50", "--duration=0.3", "--shapes=image:1x1x8x8")
        warm = re.search(r"Warmup completed (\d+) queries over 50 ms", result.stdout)
        trace = re.search(r"Timing trace has (\d+) queries over ([\d.e-]+) s", result.stdout)
        self.assertGreater(int(warm.group(1)), 0)
        self.assertGreater(int(trace.group(1)), 10)
        self.assertAlmostEqual(float(trace.group(2)), 0.3, delta=0.2)

    def test_json_files(self):
        names = {kind: self.folder / f"{kind}.json" for kind in ("times", "output", "profile", "layers")}
        self.load("--shapes=image:2x1x8x8", f"--exportTimes={names['times']}", f"--exportOutput={names['output']}",
                  f"--exportProfile={names['profile']}", f"--exportLayerInfo={names['layers']}", "--separateProfileRun")
        times = json.loads(names["times"].read_text())
        self.assertEqual(len(times), 3)
        for row in times:
            self.assertEqual(list(row), ["startEnqMs", "endEnqMs", "startH2dMs", "endH2dMs", "startComputeMs",
                                         "endComputeMs", "startD2hMs", "endD2hMs", "h2dMs", "computeMs", "d2hMs",
                                         "latencyMs"])
            self.assertLessEqual(row["startComputeMs"], row["endComputeMs"])
        output, = json.loads(names["output"].read_text())
        self.assertEqual(list(output), ["name", "dimensions", "values"])
        self.assertEqual(output["dimensions"], "2x10")
        self.assertEqual(len(output["values"]), 20)
        profile = json.loads(names["profile"].read_text())
        self.assertEqual(profile[0], {"count": 3})
        for row in profile[1:]:
            self.assertEqual(list(row), ["name", "timeMs", "averageMs", "medianMs", "percentage"])
        self.assertAlmostEqual(sum(row["percentage"] for row in profile[1:]), 100, delta=0.01)
        layers = json.loads(names["layers"].read_text())
        self.assertIn("Layers", layers)
        self.assertIn("image", layers["Bindings"])

    def test_slow_layers(self):
        layers = self.folder / "slow.json"
        # At the plan's making the builder says it, of a plan the summary: what the JSON says, once.
        heads = ("Layers without a fast kernel take ", "=== Layers without a fast kernel: ")
        for k, arguments in enumerate(([f"--onnx={MODEL}", "--shapes=image:2x1x8x8"], [f"--loadEngine={self.plan}"])):
            log = self.passes(*arguments, f"--exportLayerInfo={layers}", *QUICK).stdout
            engine = json.loads(layers.read_text())
            slow = engine.get("WithoutFastKernel")
            self.assertEqual(log.count(heads[k]), int(slow is not None))
            self.assertNotIn(heads[1 - k], log)
            self.assertEqual(log.count("Copies and changes of format"), int("Copies" in engine))
            for reason in (slow or {"Reasons": []})["Reasons"]:
                more = f" and {len(reason['Layers']) - 1} more" if len(reason["Layers"]) > 1 else ""
                self.assertIn(f"{reason['Layers'][0]['Name']}{more}: {100 * reason['Share']:.1f} %: {reason['Reason']}", log)
            if slow and k:
                self.in_order(log, ["=== Performance summary ===", heads[k]])

    def test_dumps(self):
        result = self.load("--shapes=image:1x1x8x8", "--dumpOutput", "--dumpProfile", "--dumpLayerInfo")
        self.in_order(result.stdout, ["Layer Information:", "Starting inference", "The e2e network timing is not reported",
                                      "--separateProfileRun", "Output Tensors:", ": (1x10)",
                                      "=== Profile (3 iterations ) ===",
                                      "Layer   Time (ms)   Avg. Time (ms)   Median Time (ms)   Time %", "Total"])
        self.assertNotIn("=== Performance summary ===", result.stdout)

    def output_values(self, *arguments):
        path = self.folder / "values.json"
        self.load(f"--exportOutput={path}", *arguments)
        return json.loads(path.read_text())[0]

    def test_inputs_from_a_file(self):
        given = [f"--loadInputs=image:{self.input}", "--shapes=image:2x1x8x8"]
        output = self.output_values(*given)
        self.assertGreater(max(output["values"]) - min(output["values"]), 1e-3)
        for more in (["--threads"], ["--noDataTransfers"], ["--cpuThreads=1"],
                     ["--useSpinWait", "--exposeDMA", "--useManagedMemory"]):
            self.assertEqual(self.output_values(*given, *more), output, more)
        short = self.folder / "short.bin"
        short.write_bytes(self.input.read_bytes()[:-4])
        self.assertIn("takes exactly 512", self.fails(f"--loadEngine={self.plan}", *QUICK, f"--loadInputs=image:{short}",
                                                     "--shapes=image:2x1x8x8").stderr)
        self.assertIn("no input 'pixels'", self.fails(f"--loadEngine={self.plan}", *QUICK,
                                                      f"--loadInputs=pixels:{self.input}").stderr)

    def test_io_formats(self):
        """The same picture, channels together (one channel: the same bytes) or in vectors of 32 (31 zeros behind each)."""
        given = ["--shapes=image:2x1x8x8"]
        ours = self.output_values(f"--loadInputs=image:{self.input}", *given)["values"]
        wide = self.folder / "wide.bin"
        wide.write_bytes(b"".join(self.input.read_bytes()[i:i + 4] + bytes(124) for i in range(0, 512, 4)))
        for formats, file in (("fp32:hwc", self.input), ("fp32:chw32", wide), ("fp32:chw32+hwc", None)):
            plan = self.folder / "formats.plan"
            built = self.passes(f"--onnx={MODEL}", f"--saveEngine={plan}", "--buildOnly", "--minShapes=image:1x1x8x8",
                                "--optShapes=image:2x1x8x8", "--maxShapes=image:4x1x8x8", f"--inputIOFormats={formats}",
                                f"--timingCacheFile={self.folder / 'timing.cache'}")
            self.assertIn(f"Input(s): {formats}", built.stdout)
            if file is None:
                self.passes(f"--loadEngine={plan}", *QUICK, *given)
                continue
            path = self.folder / "formats.json"
            self.passes(f"--loadEngine={plan}", *QUICK, *given, f"--loadInputs=image:{file}", f"--exportOutput={path}")
            theirs = json.loads(path.read_text())[0]["values"]
            self.assertEqual(len(theirs), len(ours))
            self.assertTrue(all(abs(a - b) < 1e-5 for a, b in zip(ours, theirs)), formats)
        refused = self.fails(f"--onnx={MODEL}", "--buildOnly", "--inputIOFormats=fp32:hwc8")
        self.assertIn("can be in none of its allowed formats (kHWC8)", refused.stderr + refused.stdout)
        direct = self.fails(f"--onnx={MODEL}", "--buildOnly", "--inputIOFormats=fp32:chw32", "--directIO")
        self.assertIn("kDIRECT_IO forbids a reformat", direct.stderr + direct.stdout)

    def test_compare(self):
        given = [f"--loadInputs=image:{self.input}", "--shapes=image:2x1x8x8"]
        output = self.output_values(*given)
        good = self.folder / "good.npz"
        bad = self.folder / "bad.npz"
        values = output["values"]
        for path, change in ((good, 0.0), (bad, 0.01 * max(map(abs, values)))):
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(output["name"] + ".npy", npy([values[0] + change, *values[1:]], (2, 10)))
        result = self.load(*given, f"--compare={good}")
        self.assertRegex(result.stdout, re.escape(output["name"]) + r": max absolute = \S+, max relative = \S+, cosine = 1")
        result = self.fails(f"--loadEngine={self.plan}", *QUICK, *given, f"--compare={bad}")
        self.assertIn("1 element(s) beyond the tolerance, first at index 0", result.stderr)
        self.load(*given, f"--compare={bad}", "--compareAtol=0.1", "--compareCosine=0.9")

    def test_streams(self):
        result = self.passes(f"--onnx={MODEL}", *QUICK, "--streams=2", "--shapes=image:1x1x8x8")
        self.assertIn("Timing trace has 6 queries", result.stdout)

    def test_an_output_that_data_sizes(self):
        model = self.folder / "non_zero.onnx"
        model.write_bytes(non_zero_model())
        x, y = self.folder / "x.bin", self.folder / "y.json"
        x.write_bytes(struct.pack("<6f", 0, 5, 0, 7, 0, 9))
        self.passes(f"--onnx={model}", f"--loadInputs=x:{x}", f"--exportOutput={y}", *QUICK)
        output = json.loads(y.read_text())[0]
        self.assertEqual((output["name"], output["dimensions"], output["values"]), ("y", "2x3", [0, 1, 1, 1, 0, 2]))

    def test_shapes_that_are_refused(self):
        load = [f"--loadEngine={self.plan}", *QUICK]
        self.assertIn("no input 'pixels'", self.fails(*load, "--shapes=pixels:1x1x8x8").stderr)
        self.fails(*load, "--shapes=image:5x1x8x8")   # above the profile's maximum
        self.fails(*load, "--shapes=image:1x1x9x8")
        self.fails(*load, "--shapes=image:1x64")
        self.assertIn("no input 'pixels'", self.fails(f"--onnx={MODEL}", "--shapes=pixels:1").stderr)
        self.fails(f"--onnx={MODEL}", "--minShapes=image:4x1x8x8", "--maxShapes=image:2x1x8x8")

    def test_dynamic_input_without_shape_warns(self):
        result = self.passes(f"--onnx={MODEL}", *QUICK)
        self.assertRegex(result.stderr, r"\[W\] Input 'image' is dynamic .*using 1x1x8x8")

    def test_precision_flags_warn_once(self):
        for flag in ("--fp16", "--int8", "--best"):
            result = self.passes(f"--onnx={MODEL}", "--buildOnly", "--shapes=image:1x1x8x8", flag)
            self.assertRegex(result.stderr, r"\[W\] \[TRT\] ", flag)

    def test_timing_cache_file(self):
        cache = self.folder / "timing.cache"
        arguments = [f"--onnx={MODEL}", "--buildOnly", "--shapes=image:1x1x8x8", f"--timingCacheFile={cache}"]
        self.assertRegex(self.passes(*arguments).stdout, r"Saved \d+ bytes of timing cache to ")
        self.assertRegex(self.passes(*arguments).stdout, r"Loaded \d+ bytes of timing cache from ")
        good = cache.read_bytes()
        for damaged in (good[:-1], good[:20], good[:30] + bytes([good[30] ^ 1]) + good[31:], b""):
            cache.write_bytes(damaged)
            result = self.passes(*arguments)
            self.assertEqual(result.stderr.count("cannot be used"), 1 if damaged else 0, result.stderr)
            self.assertLessEqual(result.stderr.count("timing cache: "), 1)  # not again behind the build
            self.assertRegex(result.stdout, r"Saved \d+ bytes of timing cache to ")
            self.assertRegex(self.passes(*arguments).stdout, r"Loaded \d+ bytes of timing cache from ")

    def test_timing_cache_file_that_is_none(self):
        """What is no cache, a model or notes by a slip of the name, is not written over."""
        path = self.folder / "precious.onnx"
        for content in (pathlib.Path(MODEL).read_bytes(), b"notes"):
            path.write_bytes(content)
            result = self.passes(f"--onnx={MODEL}", "--buildOnly", "--shapes=image:1x1x8x8", f"--timingCacheFile={path}")
            self.assertEqual(path.read_bytes(), content)
            self.assertEqual(result.stderr.count("holds no timing cache of this library"), 1, result.stderr)
            self.assertNotIn("Saved", result.stdout)

    def test_time_deserialize(self):
        result = self.tool(f"--loadEngine={self.plan}", "--timeDeserialize")
        self.in_order(result.stdout, [
            "Begin deserialization warmup...", "Begin deserialization engine timing...", "First deserialization time = ",
            "Free GPU memory = ", "Total deserialization time = ", "Deserialization Bandwidth = "])

    def test_damaged_plans(self):
        plan = self.plan.read_bytes()
        path = self.folder / "damaged.plan"
        for bad in (plan[:-1], plan[:100], plan[:8], b"x" * 1000, plan[:200] + bytes([plan[200] ^ 1]) + plan[201:]):
            path.write_bytes(bad)
            self.fails(f"--loadEngine={path}", *QUICK)

    def test_refit(self):
        onnx = [f"--onnx={MODEL}", "--shapes=image:1x1x8x8", *QUICK]
        result = self.tool(*onnx, "--refit", "--dumpRefit", "--timeRefit")
        self.in_order(result.stdout, ["Refit: Enabled", " Kernel", "Engine refitted in "])
        for flag in ("--dumpRefit", "--timeRefit"):
            self.fails(*onnx, flag) # the engine is not refittable

    def test_calibration_cache(self):
        onnx = [f"--onnx={MODEL}", "--buildOnly", "--shapes=image:1x1x8x8", "--int8"]
        cache = self.folder / "calibration.cache"
        for name in ("EntropyCalibration2", "MinMaxCalibration", "EntropyCalibration"):
            cache.write_text(f"TRT-8503-{name}\nimage: 3c010a14\n")
            result = self.passes(*onnx, f"--calib={cache}", "--minShapesCalib=image:1x1x8x8",
                                 "--optShapesCalib=image:2x1x8x8", "--maxShapesCalib=image:4x1x8x8")
            self.in_order(result.stdout, [f"Calibration: {cache}", "Input calibration shape: image=1x1x8x8+2x1x8x8+4x1x8x8",
                                          f"Reading Calibration Cache for calibrator: {name}"])
            self.assertRegex(result.stderr, r"Missing scale and zero-point for tensor [^\n]*\bconv1, ")
        for bad in ("image: 3c010a14\n", "TRT-8503-EntropyCalibration2\nimage: 3c010a1x\n", ""):
            cache.write_text(bad)
            self.fails(*onnx, f"--calib={cache}")
        self.fails(*onnx, f"--calib={self.folder / 'not_there.cache'}")
        # Without a cache every tensor has a range, for timing alone.
        result = self.passes(*onnx)
        self.in_order(result.stdout, ["Calibration: Dynamic", "every tensor gets a dummy dynamic range"])
        self.assertNotIn("Missing scale", result.stdout + result.stderr)

    def test_sparsity(self):
        """What the log says of weights that follow 2:4: none of the model's, all of those that are forced to."""
        onnx = [f"--onnx={MODEL}", "--buildOnly", "--shapes=image:1x1x8x8"]
        eligible, picked = "(Sparsity) Layers eligible for sparse math: ", "(Sparsity) TRT inference plan picked sparse implementation for layers: "
        for mode, found in (("disable", None), ("enable", False), ("force", True)):
            out = self.passes(*onnx, "--fp16", f"--sparsity={mode}").stdout
            lines = [line for line in out.splitlines() if "(Sparsity)" in line]
            if found is None:
                self.assertEqual(lines, [])
                continue
            self.assertEqual(len(lines), 2, lines)
            self.assertIn(eligible, lines[0])
            self.assertEqual(lines[0].endswith(eligible), not found, lines[0])
            self.assertTrue(lines[1].endswith(picked), lines[1]) # none on a CPU
        result = self.passes(*onnx, "--sparsity=enable")
        self.assertIn("sparse math is for FP16 and INT8", result.stdout + result.stderr)

    def test_safe(self):
        """A safety engine is built, checked, saved, and run by the safe runtime; --restricted keeps to the same limits."""
        relu = self.folder / "relu.onnx"
        relu.write_bytes(model_of("Relu", 1, 2, 3))
        plan, outputs = self.folder / "safe.plan", self.folder / "safe.json"
        inputs = self.folder / "relu.bin"
        inputs.write_bytes(struct.pack("<6f", -1, 2, -3, 4, -5, 0.5))
        built = self.passes(f"--onnx={relu}", "--fp16", "--safe", "--consistency", f"--saveEngine={plan}", f"--loadInputs=x:{inputs}",
                            f"--exportOutput={outputs}", *QUICK).stdout
        self.in_order(built, ["Safe mode: Enabled", "Start consistency checking.", "Consistency validation passed.", "SafeEngine deserialized in"])
        self.assertEqual(json.loads(outputs.read_text())[0]["values"], [0, 2, 0, 4, 0, 0.5])
        self.passes(f"--loadEngine={plan}", "--safe", "--streams=2", "--noDataTransfers", *QUICK)
        self.assertIn("load it with nvinfer1::safe::createInferRuntime()", self.fails(f"--loadEngine={plan}", *QUICK).stderr)
        standard = self.folder / "standard.plan"
        self.passes(f"--onnx={relu}", "--fp16", "--restricted", f"--saveEngine={standard}", *QUICK)
        self.passes(f"--loadEngine={standard}", *QUICK)
        checked = self.fails(f"--loadEngine={standard}", "--safe", "--consistency", *QUICK)
        self.assertIn("Consistency validation failed.", checked.stdout + checked.stderr)
        for flag in ("--safe", "--restricted"):  # FP32 alone
            self.assertIn("outside of safety restricted mode", self.fails(f"--onnx={relu}", flag, "--buildOnly").stderr)
        ignored = self.passes(f"--loadEngine={standard}", "--consistency", *QUICK)
        self.assertIn("--consistency is ignored without --safe", ignored.stdout + ignored.stderr)

    def test_caffe(self):
        """A network's text with its weights, or random ones; outputs are named; the batch is apart from the dimensions."""
        deploy, model = self.folder / "net.prototxt", self.folder / "net.caffemodel"
        deploy.write_text("""input: "data" input_shape { dim: 1 dim: 2 dim: 1 dim: 2 }
layer { name: "twice" type: "Scale" bottom: "data" top: "scaled" }
layer { name: "fc" type: "InnerProduct" bottom: "scaled" top: "fc" inner_product_param { num_output: 1 bias_term: false } }
""")

        def part(field, *parts):
            body = b"".join(parts)
            key = field << 3 | 2
            return bytes([key] if key < 128 else [key & 127 | 128, key >> 7]) + bytes([len(body)]) + body

        def layer(name, *values):
            return part(100, part(1, name), part(7, part(5, struct.pack(f"<{len(values)}f", *values))))

        model.write_bytes(layer(b"twice", 2, -3) + layer(b"fc", 1, 10, 100, 1000))
        caffe = [f"--deploy={deploy}", f"--model={model}"]
        inputs, outputs, plan = self.folder / "caffe.bin", self.folder / "caffe.json", self.folder / "caffe.plan"
        inputs.write_bytes(struct.pack("<8f", *range(8)))
        self.passes(*caffe, "--output=scaled,fc", "--batch=2", f"--saveEngine={plan}", "--buildOnly")
        self.passes(f"--loadEngine={plan}", "--batch=2", f"--loadInputs=data:{inputs}", f"--exportOutput={outputs}", *QUICK)
        rows = {row["name"]: row for row in json.loads(outputs.read_text())}
        self.assertEqual((rows["scaled"]["dimensions"], rows["scaled"]["values"]), ("2x2x1x2", [0, 2, -6, -9, 8, 10, -18, -21]))
        self.assertEqual((rows["fc"]["dimensions"], rows["fc"]["values"]), ("2x1x1x1", [-9580, -22692]))
        result = self.passes(caffe[0], "--output=fc", "--batch=2", *QUICK) # on random weights
        self.assertIn("Throughput", result.stdout)
        for arguments, words in ((caffe, "needs --output"), ([*caffe, "--output=none"], "no tensor 'none'"),
                                 ([f"--deploy={model}", "--output=fc"], "Could not parse deploy file"),
                                 ([f"--deploy={deploy}", f"--model={deploy}", "--output=fc"], "are no binary Caffe model"),
                                 ([f"--deploy={self.folder / 'none'}", "--output=fc"], "cannot be opened"),
                                 ([f"--model={model}", "--output=fc"], "needs --deploy")):
            result = self.tool("--buildOnly", *arguments)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
