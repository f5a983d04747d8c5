#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--accuracyReport, --maxLoss and TENSORWRIGHT_RECORD_TENSORS: on the demo's model and on small ones with Q/DQ pairs that are made here.
usage: accuracy_test.py TRTEXEC MODEL"""
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

MODEL = sys.argv.pop(2)
TOOL = sys.argv.pop(1)
QUICK = ["--warmUp=0", "--duration=0", "--iterations=1", "--device=cpu"]
FLOAT, INT8 = 1, 3 # ONNX element types


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


class Model:
    """An ONNX file of convolutions, written without the onnx package."""
    def __init__(self, channels=8, size=9):
        self.nodes = self.initializers = b""
        self.channels, self.size, self.random = channels, size, random.Random(17)

    def tensor(self, name, dims, data, kind=FLOAT):
        raw = struct.pack(f"<{len(data)}{'f' if kind == FLOAT else 'b'}", *data)
        self.initializers += message(5, b"".join(number(1, d) for d in dims) + number(2, kind) + message(8, name) + message(9, raw))
        return name

    def node(self, op, inputs, output, ints=()):
        body = b"".join(message(1, i) for i in inputs) + message(2, output) + message(3, f"node_{output}") + message(4, op)
        for name, values in ints:
            body += message(5, message(1, name) + b"".join(number(8, v) for v in values) + number(20, 7))
        self.nodes += message(1, body)
        return output

    def pair(self, x, scale):
        s, zero = self.tensor(f"{x}.s", [], [scale]), self.tensor(f"{x}.z", [], [0], INT8)
        return self.node("DequantizeLinear", [self.node("QuantizeLinear", [x, s, zero], f"{x}.q"), s, zero], f"{x}.dq")

    def conv(self, x, name, scale=None, factor=1.0):
        c = self.channels
        w = self.tensor(f"{name}.w", [c, c, 3, 3], [factor * self.random.uniform(-0.2, 0.2) for _ in range(9 * c * c)])
        if scale is not None:
            x, w = self.pair(x, scale), self.pair(w, factor * 0.2 / 127)
        return self.node("Conv", [x, w], name, [("pads", [1, 1, 1, 1]), ("kernel_shape", [3, 3])])

    def write(self, path, output):
        def value(name):
            dims = b"".join(message(1, number(1, d)) for d in (2, self.channels, self.size, self.size))
            return message(1, name) + message(2, message(1, number(1, FLOAT) + message(2, dims)))
        graph = self.nodes + message(2, "g") + self.initializers + message(11, value("x")) + message(12, value(output))
        path.write_bytes(number(1, 8) + message(7, graph) + message(8, message(1, "") + number(2, 13)))
        return path


class Accuracy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        values = random.Random(85)
        cls.image = cls.folder / "image.bin"
        cls.image.write_bytes(struct.pack("<128f", *(values.uniform(0, 1) for _ in range(128))))
        cls.x = cls.folder / "x.bin"
        count = 2 * 8 * 9 * 9
        cls.x.write_bytes(struct.pack(f"<{count}f", *(values.uniform(-1, 1) for _ in range(count))))
        # Four convolutions in Q/DQ; the third one's input has a scale that is far too coarse.
        m = Model()
        y = m.node("Relu", [m.conv("x", "conv1", 1 / 127)], "relu1")
        y = m.conv(y, "conv2", 0.02)
        y = m.node("Relu", [m.conv(y, "coarse", 0.6)], "relu3")
        cls.qdq = m.write(cls.folder / "qdq.onnx", m.conv(y, "conv4", 0.02))
        cls.digits = [f"--onnx={MODEL}", "--shapes=image:2x1x8x8", f"--loadInputs=image:{cls.image}", *QUICK]
        cls.pairs = [f"--onnx={cls.qdq}", "--int8", f"--loadInputs=x:{cls.x}", *QUICK]

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def tool(self, *arguments, code=0, **environment):
        result = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                timeout=600, env={**os.environ, **environment})
        self.assertEqual(result.returncode, code, result.stdout[-4000:] + result.stderr[-4000:])
        return result.stdout + result.stderr

    def report(self, *arguments):
        path = self.folder / "report.json"
        path.unlink(missing_ok=True)
        text = self.tool(*arguments, f"--accuracyReport={path}")
        return json.loads(path.read_text(encoding="utf-8")), text

    def test_fp32_is_itself(self):
        """Every tensor of an engine in FP32 that goes by a name of the network has the network's numbers."""
        for model in (self.digits, [f"--onnx={self.plain()}", f"--loadInputs=x:{self.x}", *QUICK]):
            for more in ([], ["--heuristic"]):
                report, text = self.report(*model, *more)
                self.assertGreater(len(report["Layers"]), 2)
                for layer in report["Layers"]:
                    self.assertTrue(layer["WithinTolerance"], layer)
                    self.assertEqual(layer["Type"], "FP32")
                    self.assertTrue(layer["SqnrDb"] is None or layer["SqnrDb"] > 90, layer)
                    self.assertTrue(layer["NetworkLayers"] or layer["Tactic"].startswith("reformat"), layer)
                self.assertIn(f"0 of {len(report['Layers'])} tensors of the engine are beyond the tolerance", text)

    def plain(self):
        m = Model()
        y = m.node("Relu", [m.conv("x", "conv1")], "relu1")
        a, b = m.conv(y, "branch1"), m.conv(y, "branch2")
        y = m.node("Add", [m.node("Sigmoid", [a], "sigmoid"), b], "sum")
        y = m.node("Transpose", [y], "moved", [("perm", [0, 1, 3, 2])])
        return m.write(self.folder / "plain.onnx", m.conv(y, "conv2"))

    def test_int8_by_ranges(self):
        report, text = self.report(*self.digits, "--int8", "--heuristic")
        integers = [layer for layer in report["Layers"] if layer["Type"] == "INT8"]
        self.assertTrue(integers)
        self.assertTrue(all(layer["MaxAbsolute"] > 0 for layer in integers), integers)
        self.assertIn("The first:", text)
        self.assertIn(f"(tensor '{next(layer for layer in report['Layers'] if not layer['WithinTolerance'])['Tensor']}', ", text)

    def test_pairs(self):
        """The coarse scale is seen where it stands: the tensor in front is within the step of its neighbours."""
        report, _ = self.report(*self.pairs)
        of = {layer["Tensor"]: layer for layer in report["Layers"]}
        self.assertEqual(of["conv2"]["Type"], "INT8")
        self.assertEqual(of["conv2"]["EngineTensor"], "conv2.q")
        self.assertGreater(of["relu1"]["SqnrDb"], 25)
        self.assertLess(of["conv2"]["SqnrDb"], 15)
        # A step of 0.6 rounds by 0.3 at most, and what comes before is not far from FP32.
        self.assertLess(of["conv2"]["MaxAbsolute"], 0.4)
        self.assertGreater(of["conv2"]["MaxAbsolute"], 0.2)
        self.assertEqual(of["conv4"]["Type"], "FP32")
        # Layers are the model's, also where the builder brings a tensor into another format, which has the tensor's name.
        rows = report["Layers"] + report["NotCompared"]
        self.assertTrue(all(name.startswith("node_") for row in rows for name in row["NetworkLayers"]), rows)
        self.assertFalse([row for row in rows if "Reformatting" not in row["Layer"] and not row["NetworkLayers"]])
        self.assertFalse([row for row in report["NotCompared"] if row["NetworkLayers"] and "network has no such" in row["Reason"]])
        for row in report["Layers"]:
            self.assertEqual("ClippedShare" in row, row["Type"] == "INT8", row)
        # The same of a plan that was saved, with the model beside it.
        plan = self.folder / "pairs.plan"
        self.tool(*self.pairs, f"--saveEngine={plan}", "--buildOnly")
        again, _ = self.report(f"--loadEngine={plan}", *self.pairs)
        # Another build may bring others of them into another format.
        self.assertEqual({layer["Tensor"] for layer in again["Layers"]}, {layer["Tensor"] for layer in report["Layers"]})

    def test_outputs_that_differ_name_layers(self):
        reference = self.folder / "reference.npz"
        self.npz(reference, "conv4", (2, 8, 9, 9))
        text = self.tool(*self.pairs, f"--compare={reference}", code=1)
        self.assertIn("tensors of the engine are beyond the tolerance", text)
        self.assertIn("(tensor 'conv2', INT8)", text)

    @staticmethod
    def npz(path, name, dims):
        import zipfile
        header = repr({"descr": "<f4", "fortran_order": False, "shape": dims}).encode() + b"\n"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(4 * math.prod(dims)))

    def search(self, arguments, largest, code=0):
        path = self.folder / "search.json"
        plan = self.folder / "search.plan"
        text = self.tool(*arguments, f"--maxLoss={largest}", f"--accuracyReport={path}", f"--saveEngine={plan}", code=code)
        return json.loads(path.read_text(encoding="utf-8")) if code == 0 else None, text

    def test_search_with_pairs(self):
        report, text = self.search(self.pairs, 10)
        self.assertEqual(len(report["Search"]["Trials"]), 1) # the first engine suffices
        self.assertEqual(report["Search"]["Trials"][0]["LayersInFP32"], [])
        loss = report["Search"]["Trials"][0]["Loss"]
        self.assertGreater(loss, 0.05)

        report, text = self.search(self.pairs, 0.05)
        search = report["Search"]
        chosen = search["Trials"][search["Chosen"]]
        self.assertLessEqual(chosen["Loss"], 0.05)
        self.assertIn("node_coarse", chosen["LayersInFP32"])
        # Of what suffices the fastest is taken, which in so small a network may be FP32; fewer layers suffice, too.
        enough = [trial for trial in search["Trials"] if trial["Loss"] <= 0.05]
        self.assertEqual(chosen["Milliseconds"], min(trial["Milliseconds"] for trial in enough))
        self.assertLess(min(len(trial["LayersInFP32"]) for trial in enough), 4)
        one = {trial["LayersInFP32"][0]: trial["Loss"] for trial in search["Trials"] if trial["Purpose"] == "one layer"}
        self.assertEqual(min(one, key=one.get), "node_coarse")
        full = next(trial for trial in search["Trials"] if trial["Purpose"] == "FP32")
        self.assertLess(full["Loss"], 1e-4)
        losses = [search["Trials"][i]["Loss"] for i in search["Curve"]]
        times = [search["Trials"][i]["Milliseconds"] for i in search["Curve"]]
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertEqual(times, sorted(times))
        self.assertIn("=== Time against loss ===", text)
        self.assertIn("FP32: node_coarse", text)
        # The saved engine is the chosen one.
        report, _ = self.report(f"--loadEngine={self.folder / 'search.plan'}", *self.pairs)
        output = next(layer for layer in report["Layers"] if layer["Tensor"] == "conv4")
        self.assertAlmostEqual(output["RelativeRms"], chosen["Loss"], delta=1e-3 * chosen["Loss"] + 1e-6)

    def test_search_by_precisions(self):
        arguments = [*self.digits, "--int8", "--heuristic"]
        loss = self.search(arguments, 1000)[0]["Search"]["Trials"][0]["Loss"]
        self.assertGreater(loss, 0)
        search = self.search([*arguments, "--streams=2"], loss / 2)[0]["Search"] # which wants two profiles
        chosen = search["Trials"][search["Chosen"]]
        self.assertLessEqual(chosen["Loss"], loss / 2)
        self.assertTrue(chosen["LayersInFP32"])

    def test_search_that_cannot_end_well(self):
        reference = self.folder / "zeros.npz"
        self.npz(reference, "conv4", (2, 8, 9, 9))
        _, text = self.search([*self.pairs, f"--compare={reference}"], 0.5, code=1)
        self.assertIn("layers that have a choice in FP32; state a larger one", text)
        _, text = self.search([f"--onnx={self.plain()}", f"--loadInputs=x:{self.x}", *QUICK, f"--compare={reference}"], 0.5, code=1)
        self.assertIn("no layer of the network has a choice of precisions", text)

    def test_records(self):
        folder = self.folder / "tensors"
        folder.mkdir()
        self.tool(*self.pairs, TENSORWRIGHT_RECORD_TENSORS=str(folder))
        rows = json.loads((folder / "tensors.json").read_text(encoding="utf-8"))["Tensors"]
        row = next(row for row in rows if row["Tensor"] == "conv2.q")
        self.assertAlmostEqual(row["Scale"], 0.6, places=6)
        data = (folder / row["File"]).read_bytes()
        self.assertEqual(data[:6], b"\x93NUMPY")
        header = struct.unpack("<H", data[8:10])[0] + 10
        self.assertEqual(header % 64, 0)
        self.assertIn("'descr': '|i1', 'fortran_order': False, 'shape': (2,8,9,9,)", data[:header].decode("latin-1"))
        self.assertEqual(len(data) - header, 2 * 8 * 9 * 9)
        text = self.tool(*self.pairs, code=1, TENSORWRIGHT_RECORD_TENSORS=str(self.folder / "not_there"))
        self.assertIn("tensors.json' cannot be written", text.replace("0.npy", "tensors.json"))
        text = self.tool(*self.pairs, "--profilingVerbosity=none", code=1, TENSORWRIGHT_RECORD_TENSORS=str(folder))
        self.assertIn("the engine keeps nothing of its layers", text)


if __name__ == "__main__":
    unittest.main()
