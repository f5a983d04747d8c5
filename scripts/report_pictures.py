#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: report_pictures.py TRTEXEC FOLDER        (needs the packages tensorwright, onnx and Pillow, and Chromium)

Makes FOLDER/report.png and FOLDER/report-dark.png, the pictures of docs/python.md: `tensorwright report` of MobileNetV2 in INT8 and in FP32,
with random weights, beside FP32 by `trtexec --accuracyReport`."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

# Behind the page's own script: what a reader would press.
PRESSED = """<script>
const slowest = engine.layers.map((l, i) => [l.us, i]).sort((a, b) => b[0] - a[0])[0][1];
$("colour").value = "%s";
$("colour").dispatchEvent(new Event("change"));
choose(slowest);
fit();
</script></body>"""


def main():
    trtexec, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    here = pathlib.Path(__file__).resolve().parent
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        sys.exit("report_pictures: there is no Chromium here")
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        subprocess.run([sys.executable, here.parent / "bench/models/make.py", "mobilenet_v2", "--out", work], check=True)
        model, random = work / "mobilenet_v2.onnx", np.random.default_rng(1)
        batches = [random.standard_normal((1, 3, 224, 224)).astype(np.float32) for _ in range(4)]
        batches[0].tofile(work / "input.bin")
        import tensorwright

        engine = tensorwright.compile(model, precision="int8", calibration=batches, device="cpu", cache=False)
        engine.save(work / "mobilenet_v2-int8.plan")
        tensorwright.compile(model, device="cpu", cache=False).save(work / "mobilenet_v2-fp32.plan")
        command = [trtexec, f"--loadEngine={work / 'mobilenet_v2-int8.plan'}", f"--onnx={model}", "--device=cpu", "--warmUp=0"]
        command += [f"--loadInputs={engine.inputs[0]}:{work / 'input.bin'}", f"--accuracyReport={work / 'accuracy.json'}"]
        subprocess.run([*command, "--iterations=1", "--duration=0"], check=True, stdout=subprocess.DEVNULL)
        plans = [work / "mobilenet_v2-int8.plan", "--with", work / "mobilenet_v2-fp32.plan", "--accuracy", work / "accuracy.json"]
        report = [sys.executable, "-m", "tensorwright", "report", *plans, "-o", work / "report.html", "--device", "cpu"]
        subprocess.run(report, check=True)
        page = (work / "report.html").read_text()
        for picture, colour, dark in (("report.png", "type", False), ("report-dark.png", "fp32", True)):
            text = PRESSED % colour
            if dark:
                text = text.replace("choose(", "dark(true);\nchoose(", 1)
            (work / "page.html").write_text(page.replace("</body>", text))
            command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1400,1150"]
            command += [f"--user-data-dir={work}/profile", "--virtual-time-budget=3000", f"--screenshot={folder / picture}"]
            subprocess.run([*command, (work / "page.html").as_uri()], check=True, capture_output=True)
            # Two hundred colours are enough for its scales.
            Image.open(folder / picture).convert("RGB").quantize(200, dither=0).save(folder / picture, optimize=True)
            print(folder / picture)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
