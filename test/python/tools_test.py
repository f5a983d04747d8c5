# SPDX-License-Identifier: Apache-2.0
"""The program tensorwright: inspect, report and bench, as a user calls them; the report's page in a browser where there is one."""

import html
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

import numpy as np
import pytest
import tensorrt as trt
import tensorwright
from tensorwright import _bench, _inspect, _programs, _report

from models import Resnet
from small import convolution

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


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


def synthetic(count, name="synthetic", seed=1):
    """Facts of an engine of many layers with branches, and names that would be HTML if anybody let them."""
    random = np.random.default_rng(seed)

    def tensor(i):
        return {"Name": f"t{i}", "Dimensions": [1, 8, 14, 14], "Format/Datatype": "Row major linear FP32", "Location": "Device"}

    layers = []
    for i in range(count):
        inputs = [tensor(i - 1)] + ([tensor(int(random.integers(max(0, i - 9), i)))] if i and i % 3 == 0 else [])
        layers.append(
            {
                "Name": f"</script><img src=x onerror=alert(1)> layer {i} &amp; <!-- '\"",
                "LayerType": "Kernel",
                "Op": ["convolution", "elementwise", "pooling"][i % 3],
                "TacticName": f"tactic_{i % 7}",
                "Inputs": inputs,
                "Outputs": [tensor(i)],
                "TimeMicroseconds": float(random.exponential(20)),
                "LimitMicroseconds": 3.0,
                "NetworkLayers": [f"network layer {i // 2}"],
                "RunnersUp": [{"TacticName": "slow", "TimeMicroseconds": 99.0, "Reason": "slower <b>"}],
            }
        )
    for layer in layers:
        _inspect._add(layer, {})
    total = sum(layer["us"] for layer in layers)
    return {
        "file": name + " <i>.plan",
        "name": "",
        "device": "cpu",
        "plan_bytes": 12345678,
        "device_memory_bytes": 1 << 20,
        "refittable": False,
        "detailed": True,
        "not_measured": "",
        "measured": False,
        "tensors": [
            {"name": "x", "input": True, "type": "FLOAT", "shape": [-1, 3], "format": "", "profiles": [[[1, 3], [2, 3], [4, 3]]]}
        ],
        "profiles": 1,
        "layers": layers,
        "types": {"FP32": {"layers": count, "us": total}},
        "total_us": total,
        "limit_us": 3.0 * count,
        "memory": _inspect.live_bytes(layers),
        "without_fast_kernel": None,
    }


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


def accuracy(*rows):
    """A report of trtexec --accuracyReport: (layer, RelativeRms or the reason why it was not compared)."""
    report = {"Reference": "FP32", "Tolerance": {}, "Layers": [], "NotCompared": []}
    for name, value in rows:
        row = {"Layer": name, "NetworkLayers": [name], "Tactic": "t", "EngineTensor": name + ".y"}
        if isinstance(value, str):
            report["NotCompared"].append({**row, "Reason": value})
            continue
        within = value is not None and value < 0.01
        more = {"Tensor": name + ".y", "Type": "FP16", "Cosine": 0.5, "SqnrDb": None, "MaxAbsolute": 2.0, "RelativeRms": value}
        report["Layers"].append({**row, **more, "WithinTolerance": within})
    return report


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


# What a browser finds in the page: it runs behind the page's own script and leaves JSON in the title.
PROBE = """<script>
const press = (key, target = document.body, more = {}) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
const painted = (id) => { const c = $(id), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; const s = new Set(); for (let i = 0; i < d.length; i += 40) s.add(d[i] + 256 * d[i + 1]); return s.size; };
const result = {};
fit(); draw();
result.graph = painted("graph");
result.memory = painted("memory");
press("j"); press("j");
result.chosen = chosen;
result.details = $("details").textContent;
press("k");
result.back = chosen;
press("/");
result.focus = document.activeElement.id;
$("search").value = "LAYER 7"; search();
result.hits = hits.length;
press("Enter", $("search"));
result.first = chosen;
press("Escape", $("search"));
result.cleared = hits.length;
const before = document.documentElement.classList.contains("dark");
press("d");
result.dark = document.documentElement.classList.contains("dark") !== before;
const scale = view.scale;
press("+"); result.zoomed = view.scale > scale;
press("f"); result.fitted = view.scale;
result.rows = document.querySelectorAll("#rows .row").length;
document.querySelectorAll("#table .head button")[6].click();
const shown = [...document.querySelectorAll("#rows .row")].map((r) => engine.layers[+r.firstChild.textContent].us);
result.sorted = shown.every((us, i) => !i || us <= shown[i - 1]);
document.querySelectorAll("#table .head button")[9].click();
const gaps = [...document.querySelectorAll("#rows .row")].map((r) => toFp32(engine.layers[+r.firstChild.textContent]));
result.gaps = gaps.every((x, i) => !i || x <= gaps[i - 1]) && gaps[0] === Infinity && gaps[1] === 1;
result.cell = document.querySelector("#rows .row").lastChild.textContent;
$("colour").value = "fp32"; $("colour").dispatchEvent(new Event("change")); draw();
result.coloured = [colourOf(engine.layers[0], "fp32"), colourOf(engine.layers[1999], "fp32")];
result.legend = $("legend").textContent;
result.summary = $("summary").textContent;
const start = performance.now();
for (let i = 0; i < 20; ++i) { zoom(i % 2 ? 0.9 : 1.1); draw(); }
result.draw_ms = (performance.now() - start) / 20;
press("e"); result.engine = engine.file;
result.pairs = document.querySelectorAll("#pairs tr").length;
result.images = document.images.length;
document.title = "RESULT" + JSON.stringify(result);
</script></body>"""


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium here (Debian: chromium)")
def test_report_in_a_browser(tmp_path):
    engine, accurate = synthetic(2000), tmp_path / "accuracy.json"
    names = [layer["Name"] for layer in engine["layers"]]
    rows = [(name, 10.0 ** -(i % 7)) for i, name in enumerate(names[:1500])] + [(names[1], None), (names[1600], "an integer")]
    accurate.write_text(json.dumps(accuracy(*rows)))
    _inspect.add_accuracy(engine, accurate)
    page = _report.page([engine, synthetic(1500, "other", 2)])
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", PROBE))
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000", f"--user-data-dir={tmp_path}/profile"]
    run = subprocess.run([*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=200)
    found = re.search(r"<title>RESULT(.*?)</title>", run.stdout, re.S)
    assert found, run.stdout[-2000:] + run.stderr[-2000:]
    result = json.loads(html.unescape(found.group(1)))
    assert result["graph"] > 5 and result["memory"] > 2, result
    assert (result["chosen"], result["back"], result["focus"]) == (1, 0, "search")
    assert "tactic_1" in result["details"] and "slower <b>" in result["details"] and "network layer 0" in result["details"]
    expected = [i for i in range(2000) if "7" in f"{i} {i // 2}"]  # each word somewhere in a layer's text
    assert result["hits"] == len(expected) and result["first"] == expected[0] and result["cleared"] == 0
    assert result["dark"] and result["zoomed"] and 0 < result["fitted"] < 1 and result["sorted"]
    assert 10 < result["rows"] < 100  # those in sight
    assert "10.0 % off by root mean squares" in result["details"] and "not a number off" in result["details"]
    assert result["gaps"] and result["cell"] == "not a number" and result["coloured"] == ["hsl(10 70% 50%)", "#9aa3ab"]
    assert "not compared" in result["legend"] and "tensors beyond the tolerance" in result["summary"]
    assert result["engine"].startswith("other") and result["pairs"] > 100 and result["images"] == 0
    assert result["draw_ms"] < 150, "2000 layers are to stay smooth; a busy machine is slower by half"


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
