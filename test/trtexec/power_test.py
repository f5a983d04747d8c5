#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--power and the memory summary of the whole tool, beside counters that the test moves and a GPU that is none.
usage: power_test.py TRTEXEC MODEL FAKE_GPU_FOLDER FAKE_NVML_FOLDER NVRTC_RECORDER"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

RECORDER = sys.argv.pop(5)
FAKE_NVML = sys.argv.pop(4)
FAKE_GPU = sys.argv.pop(3)
MODEL = sys.argv.pop(2)
TOOL = sys.argv.pop(1)
QUICK = ["--warmUp=20", "--duration=0.2"]
MEASURED = ["--warmUp=100", "--duration=1.5"]  # long enough for powers that are right
BATCH = 65536  # 16 MiB of inputs


class Powercap:
    """Two packages that draw half of `watts` each and run over every 7 joules; a new count takes the old one's place at once."""

    RANGE = 7_000_000

    def __init__(self, folder):
        self.folder, self.watts, self.joules, self.ended = folder, 0.0, 5.0, threading.Event()
        for domain, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:1", "package-1"), ("intel-rapl:2", "psys")):
            (folder / domain).mkdir()
            (folder / domain / "name").write_text(name + "\n")
            (folder / domain / "max_energy_range_uj").write_text(f"{self.RANGE}\n")
            (folder / domain / "energy_uj").write_text("0\n")
        self.write()
        self.thread = threading.Thread(target=self.move)
        self.thread.start()

    def write(self):
        for package in (0, 1):
            path = self.folder / f"intel-rapl:{package}" / "energy_uj"
            fresh = path.with_name("fresh")
            fresh.write_text(f"{round(self.joules * 1e6 / 2) % (self.RANGE + 1)}\n")
            fresh.rename(path)

    def move(self):
        last = time.monotonic()
        while not self.ended.wait(0.005):
            now = time.monotonic()
            self.joules += self.watts * (now - last)
            last = now
            self.write()

    def close(self):
        self.ended.set()
        self.thread.join()


class Power(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        cls.plan = cls.folder / "digits.plan"
        cls.build = cls.run_tool("--device=cpu", f"--onnx={MODEL}", f"--saveEngine={cls.plan}", "--buildOnly", "--minShapes=image:1x1x8x8",
                                 "--optShapes=image:1x1x8x8", f"--maxShapes=image:{BATCH}x1x8x8")
        if cls.build.returncode != 0:
            raise AssertionError(cls.build.stdout + cls.build.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    @staticmethod
    def run_tool(*arguments, **variables):
        return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
                              env={**os.environ, **variables})

    def passes(self, *arguments, **variables):
        result = self.run_tool(*arguments, **variables)
        self.assertEqual(result.returncode, 0, result.stdout[-3000:] + result.stderr)
        return result

    def fake_gpu(self, *arguments, nvml=FAKE_NVML, **variables):
        return self.passes(f"--loadEngine={self.plan}", *arguments, LD_LIBRARY_PATH=f"{FAKE_GPU}:{nvml}", TENSORWRIGHT_NVRTC=RECORDER, **variables)

    def number(self, label, text):
        match = re.search(r"\[I\] " + re.escape(label) + r"([-+.e\d]+)", text)
        self.assertTrue(match, f"{label} in {text[-3000:]}")
        return float(match[1])

    def check_power(self, text, file, idle, mean):
        """Lines and file agree with each other and with the summary; powers are those expected, about."""
        facts = json.loads(file.read_text())
        self.assertAlmostEqual(facts["idlePowerW"], idle, delta=0.25 * idle)
        self.assertAlmostEqual(facts["meanPowerW"], mean, delta=0.25 * mean)
        throughput = self.number("Throughput: ", text)
        self.assertAlmostEqual(facts["inferences"] / facts["seconds"], throughput, delta=0.01 * throughput)
        self.assertAlmostEqual(facts["energyPerInferenceJ"] * throughput, facts["meanPowerW"], delta=0.01 * mean)
        self.assertAlmostEqual(facts["energyPerInferenceJ"] * facts["inferencesPerJoule"], 1, delta=1e-6)
        above = (facts["meanPowerW"] - facts["idlePowerW"]) / throughput
        self.assertAlmostEqual(facts["energyAboveIdlePerInferenceJ"], above, delta=0.02 * facts["energyPerInferenceJ"])
        for label, key in (("Mean Power: ", "meanPowerW"), ("Idle Power: ", "idlePowerW"), ("Energy per Inference: ", "energyPerInferenceJ"),
                           ("Inferences per Joule: ", "inferencesPerJoule")):
            self.assertAlmostEqual(self.number(label, text), facts[key], delta=1e-4 * abs(facts[key]))
        self.assertIn("Energy Source: " + facts["source"], text)
        return facts["source"]

    def test_cpu(self):
        folder, file = self.folder / "powercap", self.folder / "cpu.json"
        folder.mkdir()
        counters = Powercap(folder)
        try:
            counters.watts = 20.0
            process = subprocess.Popen([TOOL, "--device=cpu", f"--loadEngine={self.plan}", *MEASURED, f"--exportPower={file}"], text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "TENSORWRIGHT_POWERCAP": str(folder)})
            text = ""
            for line in process.stdout:
                text += line
                if line.endswith("Starting inference\n"):
                    counters.watts = 60.0
            self.assertEqual(process.wait(timeout=60), 0, text[-3000:])
        finally:
            counters.close()
        self.assertEqual(self.check_power(text, file, 20, 60), "RAPL, 2 CPU packages")
        self.assertGreater(counters.joules, 3 * 7)  # they ran over

    def test_hidden_counters_are_a_line(self):
        missing, file = self.folder / "nowhere", self.folder / "hidden.json"
        result = self.passes("--device=cpu", f"--loadEngine={self.plan}", *QUICK, "--power", f"--exportPower={file}", TENSORWRIGHT_POWERCAP=str(missing))
        self.assertIn(f"Power is not readable here: '{missing}': No such file or directory", result.stdout)
        self.assertIn(str(missing), json.loads(file.read_text())["notReadable"])
        self.assertNotIn("Mean Power", result.stdout)
        self.assertNotIn("Power summary", self.passes("--device=cpu", f"--loadEngine={self.plan}", *QUICK).stdout)

    def test_gpu(self):
        file = self.folder / "gpu.json"
        for mode, source in (("energy", "NVML, the GPU's energy counter"), ("power", "NVML, the GPU's power, summed up")):
            result = self.fake_gpu(*MEASURED, "--power", f"--exportPower={file}", FAKE_NVML=mode, FAKE_NVML_WATTS="250")
            self.assertIn("Selected Device: fake", result.stdout)
            self.assertEqual(self.check_power(result.stdout, file, 250, 250), source)
        for mode, reason in (("nothing", "NVML: nvmlDeviceGetPowerUsage: Not Supported"), ("init", "NVML: nvmlInit_v2: Insufficient Permissions")):
            self.assertIn("Power is not readable here: " + reason, self.fake_gpu(*QUICK, "--power", FAKE_NVML=mode).stdout)

    def test_a_library_that_is_no_nvml(self):
        broken = self.folder / "broken"
        broken.mkdir()
        (broken / "libnvidia-ml.so.1").write_text("not a library")
        self.assertIn("Power is not readable here: NVML, which tells a GPU's energy, cannot be loaded: ", self.fake_gpu(*QUICK, "--power", nvml=broken).stdout)

    def test_where_no_power_can_be_measured(self):
        for arguments in (["--dumpProfile"], ["--timeDeserialize"], ["--buildOnly"]):
            result = self.run_tool("--device=cpu", f"--loadEngine={self.plan}", "--power", *QUICK, *arguments)
            self.assertIn("--power: the power of a run is not measured: ", result.stderr)
            self.assertNotIn("Power summary", result.stdout)
        result = self.passes("--device=cpu", f"--loadEngine={self.plan}", "--power", *QUICK, "--dumpProfile", "--separateProfileRun")
        self.assertIn("Power summary", result.stdout)
        result = self.run_tool(f"--loadEngine={self.plan}", "--exportPower=/nonexistent/power.json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write '/nonexistent/power.json'", result.stderr)

    def memory(self, label, text):
        match = re.search(label + r": host ([\d.]+) MiB \(([\d.]+) MiB more than before\), device ([\d.]+) MiB", text)
        self.assertTrue(match, text[-3000:])
        return tuple(map(float, match.groups()))

    def test_memory(self):
        host, rise, device = self.memory("Peak Build Memory", self.build.stdout)
        self.assertTrue(0 < rise < host and device == 0, self.build.stdout[-2000:])
        self.assertNotIn("Peak Run Memory", self.build.stdout)
        small = self.passes("--device=cpu", f"--loadEngine={self.plan}", *QUICK, "--shapes=image:1x1x8x8")
        large = self.passes("--device=cpu", f"--loadEngine={self.plan}", *QUICK, f"--shapes=image:{BATCH}x1x8x8")
        self.assertNotIn("Peak Build Memory", large.stdout)
        inputs = BATCH * 64 * 4 / 2**20
        self.assertGreater(self.memory("Peak Run Memory", large.stdout)[1], self.memory("Peak Run Memory", small.stdout)[1] + 2 * inputs)
        self.assertEqual(self.memory("Peak Run Memory", large.stdout)[2], 0)
        gpu = self.fake_gpu(*QUICK, f"--shapes=image:{BATCH}x1x8x8")
        self.assertGreater(self.memory("Peak Run Memory", gpu.stdout)[2], inputs)
        self.assertLess(self.memory("Peak Run Memory", gpu.stdout)[2], 1000)
        both = self.passes("--device=cpu", f"--onnx={MODEL}", *QUICK)
        for label in ("Peak Build Memory", "Peak Run Memory"):
            self.memory(label, both.stdout)


if __name__ == "__main__":
    unittest.main()
