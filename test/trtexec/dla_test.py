#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trtexec and a model of a DLA: --dlaModel, --useDLACore with and without --allowGPUFallback, loadables by --safe.
usage: dla_test.py TRTEXEC MODEL"""
import json
import pathlib
import os
import struct
import subprocess
import sys
import tempfile
import unittest

MODEL = sys.argv.pop(2)
TOOL = sys.argv.pop(1)
QUICK = ["--warmUp=0", "--duration=0", "--iterations=3"]
SHAPE = (1, 3, 2, 5)


def relus():
    """ONNX: y = Relu(Abs(x)) of SHAPE."""
    def number(field, value):
        return bytes([field << 3, value])

    def part(field, *parts):
        body = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
        return bytes([field << 3 | 2, len(body)]) + body

    def value(field, name):
        shape = part(2, *(part(1, number(1, d)) for d in SHAPE))
        return part(field, part(1, name), part(2, part(1, number(1, 1), shape)))

    nodes = part(1, part(1, "x"), part(2, "a"), part(4, "Abs")), part(1, part(1, "a"), part(2, "y"), part(4, "Relu"))
    return number(1, 8) + part(7, *nodes, part(2, "g"), value(11, "x"), value(12, "y")) + part(8, number(2, 17))


class Dla(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        cls.relus = cls.folder / "relus.onnx"
        cls.relus.write_bytes(relus())

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def tool(self, *arguments):
        environment = {k: v for k, v in os.environ.items() if k != "TENSORWRIGHT_DLA_MODEL"}
        result = subprocess.run([TOOL, *map(str, arguments), *QUICK], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, env=environment)
        return result.returncode, result.stdout + result.stderr

    def passes(self, *arguments):
        code, text = self.tool(*arguments)
        self.assertEqual(code, 0, text[-3000:])
        return text

    def fails(self, part, *arguments):
        code, text = self.tool(*arguments)
        self.assertNotEqual(code, 0)
        self.assertIn(part, text)

    def test_cores(self):
        for fallback in [], ["--allowGPUFallback"]:
            self.fails("--useDLACore=0: there are 0 DLA cores here; --dlaModel=orin", f"--onnx={MODEL}", "--useDLACore=0", *fallback)
        self.fails("--useDLACore=2: there are 2 DLA cores", f"--onnx={MODEL}", "--useDLACore=2", "--dlaModel=orin")
        self.fails("there is no model of 'thor' (known: orin, xavier)", f"--onnx={MODEL}", "--useDLACore=0", "--dlaModel=thor")

    def test_fallback(self):
        for model in "orin", "xavier":
            plan = self.folder / f"{model}.plan"
            text = self.passes(f"--onnx={MODEL}", "--useDLACore=1", "--allowGPUFallback", f"--dlaModel={model}", f"--saveEngine={plan}")
            self.assertIn(f"DLA: {model} (model, not the device)", text)
            self.assertIn(f"loadables for core 1 of {model} (model, not the device)", text)
            self.assertIn("[DlaLayer]", text)
            self.passes(f"--loadEngine={plan}", "--useDLACore=0", f"--dlaModel={model}")
            self.fails(f"TENSORWRIGHT_DLA_MODEL={model}", f"--loadEngine={plan}")
        self.fails("cannot run on DLA", f"--onnx={MODEL}", "--useDLACore=0", "--dlaModel=orin")

    def test_layers_and_pools(self):
        text = self.passes(f"--onnx={self.relus}", "--useDLACore=0", "--allowGPUFallback", "--dlaModel=orin", "--layerDeviceTypes=node_of_y:GPU")
        self.assertIn("[DlaLayer] {ForeignNode[node_of_a]}", text)
        self.assertIn("[GpuLayer] Activation: node_of_y", text)
        self.fails("powers of two of at least 4096 bytes", f"--onnx={self.relus}", "--useDLACore=0", "--allowGPUFallback", "--dlaModel=orin",
                   "--memPoolSize=dlaSRAM:0.3")

    def test_loadable(self):
        common = ["--useDLACore=0", "--dlaModel=orin", "--safe"]
        formats = ["--inputIOFormats=fp16:dla_linear", "--outputIOFormats=fp16:chw16"]
        loadable, inputs, outputs = (self.folder / name for name in ("relus.loadable", "x.bin", "y.json"))
        numbers = [(i * 7 % 19 - 9) / 4 for i in range(30)]
        rows = [numbers[i:i + 5] for i in range(0, 30, 5)]
        inputs.write_bytes(b"".join(struct.pack("<32e", *row, *[9.0] * 27) for row in rows))
        self.fails("DLA takes", f"--onnx={self.relus}", *common)  # FP32 in linear memory
        text = self.passes(f"--onnx={self.relus}", *common, *formats, f"--saveEngine={loadable}", "--buildOnly")
        self.assertIn("Skipped inference phase", text)
        for source in [f"--loadEngine={loadable}"], [f"--onnx={self.relus}", *formats]:
            text = self.passes(*source, *common, f"--loadInputs=x:{inputs}", f"--exportOutput={outputs}")
            self.assertIn("loaded through libcudla (model, not the device)", text)
            self.assertIn("Throughput:", text)
            y = json.loads(outputs.read_text())[0]
            self.assertEqual(y["name"], "y")
            self.assertEqual(y["values"], [abs(v) for v in numbers])
        self.fails("this is a DLA loadable", f"--loadEngine={loadable}", "--useDLACore=0", "--dlaModel=orin")
        self.fails("there are 0 DLA cores here", f"--loadEngine={loadable}", "--useDLACore=0", "--safe")
        self.fails("tells nothing of its layers", f"--loadEngine={loadable}", *common, "--dumpProfile")
        self.fails("has no input 'z'", f"--loadEngine={loadable}", *common, f"--loadInputs=z:{inputs}")
        damaged = bytearray(loadable.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        loadable.write_bytes(damaged)
        self.fails("cudlaModuleLoadFromMemory fails with cudlaStatus 7", f"--loadEngine={loadable}", *common)


if __name__ == "__main__":
    unittest.main()
