# SPDX-License-Identifier: Apache-2.0
"""The page of `tensorwright report` in Chromium: what its keys do, and how it looks on a desk and on a phone."""

import html
import json
import re
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest
from tensorwright import _inspect, _report

from report_facts import accuracy, synthetic

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
if not CHROMIUM:
    pytest.skip("there is no Chromium here (scripts/setup.sh browser; Debian: chromium)", allow_module_level=True)


def chromium(folder, *arguments):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=200)


def found(path, folder, size="1400,1000"):
    """What a script in the page left in its title."""
    run = chromium(folder, f"--window-size={size}", "--dump-dom", path.as_uri())
    title = re.search(r"<title>RESULT(.*?)</title>", run.stdout, re.S)
    assert title, run.stdout[-2000:] + run.stderr[-2000:]
    return json.loads(html.unescape(title.group(1)))


# What a browser finds in the page: it runs behind the page's own script and leaves JSON in the title.
PROBE = """<script>
const press = (key, target = document.body, more = {}) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
const painted = (id) => { const c = $(id), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; const s = new Set(); for (let i = 0; i < d.length; i += 40) s.add(d[i] + 256 * d[i + 1]); return s.size; };
const result = {};
result.start = chosen === order()[0] && view.scale >= 0.45;
fit(); draw();
result.graph = painted("graph");
result.memory = painted("memory");
choose(0); press("j");
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
const head = (column) => document.querySelector(`#table .head [data-column=${column}]`);
const shown = [...document.querySelectorAll("#rows .row")].map((r) => engine.layers[+r.firstChild.textContent].us);
result.sorted = shown.every((us, i) => !i || us <= shown[i - 1]);
result.mark = head("us").getAttribute("aria-sort");
head("fp32").click();
const gaps = [...document.querySelectorAll("#rows .row")].map((r) => toFp32(engine.layers[+r.firstChild.textContent]));
result.gaps = gaps.every((x, i) => !i || x <= gaps[i - 1]) && gaps[0] === Infinity && gaps[1] === 1;
result.cell = document.querySelector("#rows .row").lastChild.textContent;
$("colour").value = "fp32"; $("colour").dispatchEvent(new Event("change")); draw();
result.coloured = [colourOf(engine.layers[0], "fp32"), colourOf(engine.layers[1999], "fp32")];
result.legend = $("legend").textContent;
result.summary = $("summary").textContent;
const began = performance.now();
for (let i = 0; i < 20; ++i) { zoom(i % 2 ? 0.9 : 1.1); draw(); }
result.draw_ms = (performance.now() - began) / 20;
press("e"); result.engine = engine.file;
result.pairs = document.querySelectorAll("#pairs tr").length;
result.images = document.images.length;
document.title = "RESULT" + JSON.stringify(result);
</script></body>"""


def test_report_in_a_browser(tmp_path):
    engine, accurate = synthetic(2000), tmp_path / "accuracy.json"
    names = [layer["Name"] for layer in engine["layers"]]
    rows = [(name, 10.0 ** -(i % 7)) for i, name in enumerate(names[:1500])] + [(names[1], None), (names[1600], "an integer")]
    accurate.write_text(json.dumps(accuracy(*rows)))
    _inspect.add_accuracy(engine, accurate)
    page = _report.page([engine, synthetic(1500, "other", 2)])
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", PROBE))
    result = found(path, tmp_path)
    assert result["graph"] > 5 and result["memory"] > 2, result
    assert result["start"] and result["mark"] == "descending"
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


def pixels(path):
    """Of a PNG file: [height, width, 3], 8 bits each."""
    data, at, rows, header = path.read_bytes(), 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        part = data[at + 8 : at + 8 + size]
        header = struct.unpack(">IIBBBBB", part) if kind == b"IHDR" else header
        rows += part if kind == b"IDAT" else b""
        at += 12 + size
    width, height, depth, colours, _, _, interlaced = header
    assert depth == 8 and colours in (2, 6) and not interlaced
    n = 3 if colours == 2 else 4
    lines = np.frombuffer(zlib.decompress(rows), np.uint8).reshape(height, 1 + n * width)
    out = np.zeros((height, width, n), np.int64)
    for y in range(height):
        kind, line, above = lines[y, 0], lines[y, 1:].reshape(width, n).astype(np.int64), out[y - 1] if y else np.zeros((width, n), np.int64)
        if kind == 0:
            out[y] = line
        elif kind == 1:
            out[y] = np.cumsum(line, axis=0) % 256
        elif kind == 2:
            out[y] = (line + above) % 256
        else:
            left, corner = np.zeros(n, np.int64), np.zeros(n, np.int64)
            for x in range(width):
                up = above[x]
                if kind == 3:
                    guess = (left + up) // 2
                else:
                    a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                    guess = np.where((a <= b) & (a <= c), left, np.where(b <= c, up, corner))
                left, corner = (line[x] + guess) % 256, up
                out[y, x] = left
    return out[..., :3]


# An engine of 30 layers: names of every length, paths and fused ones, and a change of type.
def various():
    engine = synthetic(30)
    for i, layer in enumerate(engine["layers"]):
        layer["Name"] = ["Conv_%d", "/model.22/cv3.1/conv/a.long.path/Conv_%d", "Conv_%d + BatchNormalization_1 + Relu_2", "W" * 80 + "%d"][i % 4] % i
        layer["NetworkLayers"] = layer["Name"].split(" + ")
    for tensor in (engine["layers"][3]["Outputs"][0], *(t for layer in engine["layers"][4:] for t in layer["Inputs"] if t["Name"] == "t3")):
        tensor["Format/Datatype"] = "Channel major Int8 format"
    for layer in engine["layers"]:
        _inspect._add(layer, {})
    engine["changes"] = _inspect.changes(engine["layers"])
    layers = [{"Name": "Conv_0", "Share": 0.25}, {"Name": "Conv_4", "Share": 0.125}]
    engine["without_fast_kernel"] = {"Share": 0.375, "Reasons": [{"Share": 0.375, "Layers": layers, "Reason": "takes " + "no strides " * 9}]}
    engine["copies"] = {"Share": 0.125, "Layers": layers[1:]}
    return engine


# In a frame as wide as a phone, since windows of Chromium are not so narrow: the page tells its frame's owner.
LOOK = """<script>
{
  const [g] = sized(canvas), result = { width: innerWidth, wide: document.documentElement.scrollWidth, boxes: [] };
  for (const s of [0.25, 0.45, 0.8, 1.2]) for (const layer of engine.layers) {
    const text = boxText(g, layer, s);
    if (!text) { result.boxes.push(null); continue; }
    const widths = text.names.map((line) => { g.font = `600 ${text.size}px system-ui, sans-serif`; return g.measureText(line).width; });
    if (text.below) { g.font = `${text.size}px system-ui, sans-serif`; widths.push(g.measureText(text.below).width); }
    result.boxes.push({ over: Math.max(...widths) - text.width, high: widths.length * 1.25 * text.size, names: text.names, below: text.below || "" });
  }
  draw();
  result.summary = $("summary").textContent;
  result.details = $("details").textContent;
  result.legend = $("legend").textContent;
  result.head = [...document.querySelectorAll("#table .head button")].map((b) => b.textContent);
  result.rows = [...document.querySelectorAll("#rows .row")].map((r) => [...r.children].map((c) => c.textContent));
  result.out = ["summary", "graph-box", "details", "legend"].filter((id) => $(id).getBoundingClientRect().right > innerWidth);
  (parent === window ? document : parent.document).title = "RESULT" + JSON.stringify(result);
}
</script></body>"""


@pytest.mark.parametrize("width", [1280, 390])
def test_how_the_page_looks(tmp_path, width):
    engine = various()
    page = _report.page([engine])
    frame, size = tmp_path / "frame.html", f"{max(width, 600)},1500"

    def framed(text):
        style = f"width:{width}px;height:1500px;border:0"
        frame.write_text(f'<title></title><body style="margin:0"><iframe srcdoc="{html.escape(text)}" style="{style}"></iframe></body>')

    framed(page.replace("</body>", LOOK))
    result = found(frame, tmp_path, size)
    # The page itself does not scroll to the side, and its parts stay within.
    assert result["width"] == width and result["wide"] <= width and result["out"] == [], result["out"]
    # What is written into a box fits into it; from a scale of 0.45 on there is a name, and time and share beside it.
    assert len(result["boxes"]) == 4 * len(engine["layers"])
    for k, box in enumerate(result["boxes"]):
        scale = (0.25, 0.45, 0.8, 1.2)[k // len(engine["layers"])]
        if box is None:
            assert scale < 0.45
            continue
        assert box["over"] <= 0.01 and box["high"] <= 56, box
        assert all(box["names"]) and (scale < 0.45 or re.search(r"\d %$", box["below"])), box
    large = result["boxes"][-len(engine["layers"]) :]
    assert large[0]["names"] == ["Conv_0"] and "FP32 → Int8" in large[3]["below"] and "".join(large[2]["names"]).startswith("Conv_2 +")
    # A CPU's engine is told of in its own words, and the table has the slowest first, with what its limit is made of.
    assert "Kernel" not in result["details"] and "GB/s" in result["details"] and "channels last" in json.dumps(result["rows"])
    slowest = max(range(30), key=lambda i: engine["layers"][i]["us"])
    rows = [dict(zip(result["head"], row)) for row in result["rows"]]
    assert rows[0]["#"] == str(slowest) and rows[0]["Bytes"] == "12.3 KiB" and rows[0]["Limit"] == "3.0 µs"
    by_number = {int(row["#"]): row for row in rows}
    changed = [i for i, row in by_number.items() if row["Change"]]
    assert all(engine["layers"][i]["change"] == by_number[i]["Change"] for i in by_number) and changed
    fused = [row for row in rows if row["Fused of"]]
    assert fused and all(row["Fused of"].startswith("3: Conv_") for row in fused)
    assert "Conv_0 and 1 more: takes no strides" in result["summary"] and "copies and changes of format: Conv_4" in result["summary"]
    assert "layers change the type of numbers" in result["summary"] and "share of the time0 %" in result["legend"]
    # The picture: not empty, and boxes of several colours of the scale.
    framed(page)
    shot = tmp_path / f"{width}.png"
    chromium(tmp_path, f"--window-size={size}", "--virtual-time-budget=5000", f"--screenshot={shot}", frame.as_uri())
    picture = pixels(shot)[:, :width]
    assert picture.shape[1] == width and picture.shape[0] > 1000
    spread = picture.max(axis=2) - picture.min(axis=2)
    assert 0.005 < np.mean(spread > 60) < 0.5, "the boxes' stripes and the memory's hills have strong colours"
    strong = picture[spread > 60]
    hues = {(int(r > 128), int(g > 128), int(b > 128)) for r, g, b in strong[:: max(1, len(strong) // 5000)]}
    assert len(hues) >= 3, hues
