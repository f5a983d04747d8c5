# SPDX-License-Identifier: Apache-2.0
"""The program tensorwright: inspect, report and bench, as a user calls them. report_page_test.py has the report's page in a browser."""

import html
import json
import os
import re
import statistics
import subprocess
import sys

import numpy as np
import pytest
import tensorrt as trt
import tensorwright
from tensorwright import _bench, _inspect, _programs, _report

from models import Resnet
from report_facts import accuracy, synthetic
from small import convolution


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """A folder with plans: of fixed shapes, in FP16, with open shapes, with names only, and the model."""
    folder = tmp_path_factory.mktemp("plans")
    net = Resnet(size=16)
    (folder / "net.onnx").write_bytes(net.model())
    tensorwright.compile(folder / "net.onnx", cache=False).save(folder / "a.plan")
    tensorwright.compile(folder / "net.onnx", precision="fp16", cache=False).save(folder / "b.plan")
    rest = net.shape[1:]
    shapes = {"input": ((1, *rest), (2, *rest), (8, *rest))}
    tensorwright.compile(net.model(True), shapes, cache=False).save(folder / "open.plan")
    builder, network, config = convolution()
    for verbosity in ("LAYER_NAMES_ONLY", "NONE"):
        config.profiling_verbosity = getattr(trt.ProfilingVerbosity, verbosity)
        (folder / f"{verbosity}.plan").write_bytes(builder.build_serialized_network(network, config))
    (folder / "damaged.plan").write_bytes((folder / "a.plan").read_bytes()[:1000])
    return folder


def called(capfd, *arguments):
    """(status, output, errors) of the program."""
    status = _programs.main([str(a) for a in arguments])
    return status, *capfd.readouterr()


def test_inspect(plans, capfd):
    status, out, _ = called(capfd, "inspect", plans / "a.plan", "--layers", "--time")
    assert status == 0 and "input: FLOAT [1, 3, 16, 16]" in out and "prob: FLOAT [1, 10]" in out and "measured here" in out
    layers = [line for line in out.splitlines() if re.match(r" +\d+ +[\d.]+ us ", line)]
    engine = _inspect.facts(str(plans / "a.plan"))
    assert len(layers) == len(engine["layers"]) > 3
    status, out, _ = called(capfd, "inspect", plans / "open.plan")
    assert status == 0 and "profile 0: [1, 3, 16, 16] .. [8, 3, 16, 16], tuned for [2, 3, 16, 16]" in out and "at the build" in out
    status, out, _ = called(capfd, "inspect", plans / "a.plan", "--json")
    assert json.loads(out)["layers"][0]["Name"] == engine["layers"][0]["Name"]
    for name in ("LAYER_NAMES_ONLY", "NONE"):
        status, out, _ = called(capfd, "inspect", plans / f"{name}.plan", "--layers", "--time")
        assert status == 0 and "without ProfilingVerbosity.DETAILED" in out


def test_errors_are_lines(plans, capfd):
    for arguments, match in (
        (["inspect", plans / "damaged.plan"], "refused"),
        (["inspect", plans / "net.onnx"], "refused"),
        (["inspect", plans / "missing.plan"], "missing.plan"),
        (["inspect", plans], "directory"),
        (["inspect", plans / "a.plan", "--device", "tpu"], "'tpu'"),
        (["report", plans / "a.plan", "-o", plans / "no" / "folder.html"], "folder.html"),
        (["bench", plans / "damaged.plan"], "cannot be imported"),
        (["bench", plans / "net.onnx", "--shapes", "input"], "--shapes"),
        (["bench", plans / "net.onnx", "--shapes", "input:2x3x16x16"], "does not fit"),
        (["bench", plans / "net.onnx", "--peers", "magic"], "'magic'"),
        (["bench", plans / "net.onnx", "--peers", "torch"], "torch runs programs of torch.export.save()"),
        (["bench", plans / "net.onnx", "--rounds", "0"], "--rounds"),
        (["bench", plans / "net.onnx", "--threads", "0"], "--threads"),
        (["bench", plans / "net.onnx", "--turn", "nan"], "--turn"),
    ):
        status, _, errors = called(capfd, *arguments)
        lines = [line for line in errors.splitlines() if line.startswith("tensorwright ")]
        assert status == 1 and len(lines) == 1 and match in lines[0], (arguments, errors)
    for arguments in ([], ["nothing"], ["inspect"]):
        with pytest.raises(SystemExit) as ended:
            _programs.main(arguments)
        assert ended.value.code == 2
    with pytest.raises(SystemExit) as ended:
        _programs.main(["--version"])
    assert ended.value.code == 0 and "8.5.3.1" in capfd.readouterr().out


def test_facts_of_layers(plans):
    engine = _inspect.facts(str(plans / "a.plan"), timed=False)
    assert engine["detailed"] and not engine["measured"] and engine["total_us"] > 0 and engine["types"]["FP32"]["layers"]
    assert engine["total_us"] == pytest.approx(sum(layer["us"] for layer in engine["layers"]))
    assert len(engine["memory"]) == len(engine["layers"]) and max(engine["memory"]) > 3 * 16 * 16 * 4
    timed = _inspect.facts(str(plans / "open.plan"))
    assert timed["measured"] and any(layer["measured"] for layer in timed["layers"])
    assert all(n >= 0 for layer in timed["layers"] for t in layer["Outputs"] for n in t["Dimensions"])


def test_live_bytes():
    """By hand: x (16 bytes) -> a -> b; c = a + b; v only names c; y reads v and x."""

    def tensor(name, count=4, **other):
        return {"Name": name, "Dimensions": [count], "Format/Datatype": "Row major linear FP32", "Location": "Device", **other}

    def layer(inputs, output, kind="Kernel"):
        return {"Name": output["Name"], "LayerType": kind, "Inputs": inputs, "Outputs": [output]}

    x, a, b, c, v, y = (tensor(n) for n in "xabcvy")
    half = tensor("b", 2)
    layers = [layer([x], a), layer([a], half), layer([a, half], c), layer([c], v, "NoOp"), layer([v, x], y)]
    assert _inspect.live_bytes(layers) == [32, 40, 56, 32, 48]
    host = tensor("h", 100, Location="Host")
    assert _inspect.live_bytes([layer([x, host], a)]) == [32] and _inspect.live_bytes([]) == []
    assert _inspect.bytes_of(tensor("s", -1)) == 0 and _inspect.bytes_of({"Dimensions": [], "Format/Datatype": "FP16"}) == 2
    assert _inspect.type_of("Row major linear UInt8 format") == ("UInt8", 1)


def test_report(plans, tmp_path, capfd):
    out = tmp_path / "report.html"
    status, said, _ = called(capfd, "report", plans / "a.plan", "--with", plans / "b.plan", "-o", out)
    assert status == 0 and "report.html" in said
    page = out.read_text()
    # It asks for nothing: no address, no file but itself.
    assert not re.search(r"(src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org)", page.split('id="data"')[0])
    data = json.loads(html.unescape(re.search(r'id="data">(.*?)</script>', page, re.S).group(1)))
    assert [engine["file"] for engine in data] == ["a.plan", "b.plan"] and data[0]["measured"]
    for name in ("LAYER_NAMES_ONLY", "NONE"):
        assert called(capfd, "report", plans / f"{name}.plan", "-o", out)[0] == 0


def test_accuracy(plans, tmp_path, capfd):
    engine, path = synthetic(4), tmp_path / "accuracy.json"
    names = [layer["Name"] for layer in engine["layers"]]
    path.write_text(json.dumps(accuracy((names[0], 0.001), (names[2], None), (names[2], 0.5), (names[3], "an integer"))))
    _inspect.add_accuracy(engine, path)
    assert engine["accuracy"] == {"compared": 3, "not_compared": 1, "beyond": 2, "worst": names[2]}
    assert [len(layer.get("accuracy", [])) for layer in engine["layers"]] == [1, 0, 2, 1]
    path.write_text(json.dumps(accuracy(("none of this one", 0.1))))
    for arguments, match in (
        (["--accuracy", path], "of another engine: a.plan has no layer 'none of this one'"),
        (["--accuracy", path, "--accuracy", path], "given 2 times for 1 engine"),
        (["--accuracy", plans / "a.plan"], ""),
        (["--accuracy", tmp_path / "missing.json"], "missing.json"),
    ):
        status, _, errors = called(capfd, "report", plans / "a.plan", "--no-time", "-o", tmp_path / "x.html", *arguments)
        assert status == 1 and match in errors and not (tmp_path / "x.html").exists()
    for text in ("[]", '{"Layers": 3}', '{"Layers": [], "NotCompared": [1]}', "{"):
        path.write_text(text)
        with pytest.raises(ValueError, match="accuracy.json is no"):
            _inspect.add_accuracy(engine, path)
    first = _inspect.facts(str(plans / "a.plan"), timed=False)["layers"][0]["Name"]
    path.write_text(json.dumps(accuracy((first, 0.02))))
    status, _, errors = called(capfd, "report", plans / "a.plan", "--no-time", "-o", tmp_path / "x.html", "--accuracy", path)
    assert status == 0 and '"worst":' in (tmp_path / "x.html").read_text(), errors


def test_names_in_the_page_stay_names():
    page = _report.page([synthetic(3)])
    assert page.count("</script>") == 2 and "<img" not in page and "<i>" not in page


def test_bench(plans, tmp_path, capfd):
    files = {kind: tmp_path / f"bench.{kind}" for kind in ("json", "html")}
    status, out, errors = called(
        capfd, "bench", plans / "net.onnx", "--rounds", "7", "--turn", "0.01", "--json", files["json"], "--html", files["html"]
    )
    assert status == 0, out + errors
    result = json.loads(files["json"].read_text())
    ours = result["engines"]["tensorwright"]
    assert len(ours["times_s"]) == 7 and ours["interval_s"][0] <= ours["median_s"] == statistics.median(ours["times_s"])
    assert set(result["engines"]) == {"tensorwright", *_bench.installed()}
    for name in _bench.installed():
        assert ours["error_l2"] < 1e-4 and result["ratio_interval"][0] <= result["ratio"] <= result["ratio_interval"][1]
        assert name in out
    page = files["html"].read_text()
    assert page.count('class="dot"') == 7 * len(result["engines"]) and "tensorwright" in page


def test_bench_beside_torch(tmp_path, capfd):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.linear = torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(8, 5)

        def forward(self, x, y):
            h = torch.relu(self.conv(x)).mean((2, 3))
            return self.linear(h) + y, h

    path, file = tmp_path / "net.pt2", tmp_path / "bench.json"
    torch.export.save(torch.export.export(Net().eval(), (torch.randn(2, 3, 9, 9), torch.randn(2, 5))), path)
    status, out, errors = called(capfd, "bench", path, "--peers", "torch", "--rounds", "3", "--turn", "0.005", "--json", file)
    assert status == 0 and "not measured" not in out, out + errors
    result = json.loads(file.read_text())
    assert result["best_peer"] == "torch" and result["engines"]["tensorwright"]["error_l2"] < 1e-5
    assert result["shapes"] == {"x": [2, 3, 9, 9], "y": [2, 5]} and result["model"] == "net.pt2"
    path.write_bytes(b"no program")
    status, _, errors = called(capfd, "bench", path)
    assert status == 1 and "net.pt2 cannot be exported to ONNX" in errors
    status, _, errors = called(capfd, "bench", tmp_path / "missing.pt2")
    assert status == 1 and "there is no model" in errors


def test_bench_with_integers(tmp_path, capfd):
    """64-bit integers of the model are 32-bit ones here and 64-bit ones in peers."""
    from compile_test import two_inputs

    (tmp_path / "two.onnx").write_bytes(two_inputs(dynamic=True).SerializeToString())
    status, out, errors = called(
        capfd, "bench", tmp_path / "two.onnx", "--shapes", "a:3x4,b:3x4", "--rounds", "2", "--turn", "0.001"
    )
    assert status == 0 and "not measured" not in out, out + errors


def test_numbers_of_the_bench():
    assert _bench.shapes_of("a:1x3,b:c:2,s:") == {"a": (1, 3), "b:c": (2,), "s": ()}
    for wrong in ("a", "a:x", "a:1x-2", ":1", "a:1xx2"):
        with pytest.raises(ValueError, match="--shapes"):
            _bench.shapes_of(wrong)
    # 2 / 2^6 = 3 % lie outside of the extremes of six; below that there is no interval of 95 %. For 20 it is the 6th to the 15th.
    assert _bench.interval([3, 1, 2]) == (2, 1, 3) and _bench.interval([1]) == (1, 1, 1)
    assert _bench.interval(range(6)) == (2.5, 0, 5)
    assert _bench.interval(range(1, 21)) == (10.5, 6, 15)
    y = np.array([3.0, 4.0])
    assert _bench.error_l2(y, y) == 0 and _bench.error_l2(y + [0, 0.5], y) == pytest.approx(0.1)
    assert _bench.error_l2(y, y[:1]) == _bench.error_l2(y * np.nan, y) == np.inf


def test_as_a_module(plans):
    command = [sys.executable, "-m", "tensorwright", "inspect", str(plans / "a.plan"), "--layers"]
    assert "input" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Whoever reads may stop reading.
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert run.returncode == 0 and run.stderr == ""
