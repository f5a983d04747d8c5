# SPDX-License-Identifier: Apache-2.0
"""Polygraphy's command line, which speaks 8.5's Python API and the CUDA runtime's C API, beside ONNX Runtime: on a network of
the tests and on the models of TENSORWRIGHT_MODELS_DIR. TW_REPORT_DIR gets what passed."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import sysconfig

import pytest

from models import Resnet

if not (importlib.util.find_spec("polygraphy") and importlib.util.find_spec("onnxruntime")):
    pytest.skip("Polygraphy or ONNX Runtime is not installed (PyPI: polygraphy, onnxruntime)", allow_module_level=True)

MODELS = pathlib.Path(os.environ.get("TENSORWRIGHT_MODELS_DIR", "/nowhere"))

# Options of single models: shapes where extents of 1 are none that the network takes, values where random ones mean nothing.
# "refused": what the message says of a model that 8.5 refuses, too.
OPTIONS = {
    # On CPUs without VNNI the integer kernels of ONNX Runtime saturate at 16 bits: it is off by 1 from its own plain kernels there, whose
    # numbers are ours.
    "resnet2b_qdq": ["--int8", "--atol=1.5"],
    "silero_vad_16k_op15": ["--input-shapes", "input:[1,576]", "state:[2,1,128]", "sr:[]", "--val-range", "sr:[16000,16000]"],
    "vespa_enc": ["--input-shapes", "input_ids:[2,9]", "attention_mask:[2,9]", "--val-range", "input_ids:[0,20]", "[0,1]"],
}
REFUSED = {"kws_qdq": "zero point"}


def polygraphy(*arguments, folder):
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    command = [sys.executable, os.path.join(sysconfig.get_path("scripts"), "polygraphy"), *(str(a) for a in arguments)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=200)
    return run.returncode, run.stdout + run.stderr


# The same program without starting it for each of many runs, most of which would be imports.
MANY = """
import contextlib, io, json, sys
from polygraphy.tools import main
for line in sys.stdin:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            status = main(json.loads(line))
        except SystemExit as end:
            status = end.code
    print(json.dumps([status or 0, text.getvalue()]), flush=True)
"""


def many(lists, folder):
    """(status, text) of each; those behind a crash have its status."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    lines = "".join(json.dumps([str(a) for a in arguments]) + "\n" for arguments in lists)
    run = subprocess.run([sys.executable, "-c", MANY], input=lines, capture_output=True, text=True, cwd=folder, env=environment, timeout=600)
    answers = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("[")]
    return answers + [(run.returncode, run.stderr)] * (len(lists) - len(answers))


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    path = tmp_path_factory.mktemp("polygraphy") / "net.onnx"
    path.write_bytes(Resnet(size=16).model())
    return path


# In either order the stand-in is the CUDA runtime that Polygraphy opens, before others that the environment names.
@pytest.mark.parametrize("order", [("polygraphy", "tensorrt"), ("tensorrt", "polygraphy")])
def test_finds_the_stand_in(order, tmp_path):
    (tmp_path / "libcudart.so").touch()
    program = "import os, polygraphy.cuda as cuda; print(cuda.wrapper().handle._name, os.environ['LD_LIBRARY_PATH'])"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    command = [sys.executable, "-c", f"import {order[0]}, {order[1]}; {program}"]
    said = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.split()
    assert os.path.basename(os.path.dirname(said[0])) == "hostcuda" and said[1].endswith(f":{tmp_path}"), said


def test_other_programs_keep_their_environment():
    program = "import os, tensorrt; assert os.environ['LD_LIBRARY_PATH'] == '/nowhere'"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "LD_LIBRARY_PATH": "/nowhere"}, check=True)


@pytest.mark.parametrize("more", [[], ["--trt-outputs", "mark", "all", "--onnx-outputs", "mark", "all"], ["--fp16", "--atol=1e-2"], ["--refittable"]])
def test_run(network, more):
    status, text = polygraphy("run", network, "--trt", "--onnxrt", *more, folder=network.parent)
    assert status == 0 and "PASSED" in text, text[-3000:]


def test_open_shapes(tmp_path):
    path = tmp_path / "open.onnx"
    path.write_bytes(Resnet(size=16).model(dynamic_batch=True))
    shapes = []
    for which, batch in (("min", 1), ("opt", 2), ("max", 4)):
        shapes += [f"--trt-{which}-shapes", f"input:[{batch},3,16,16]"]
    status, text = polygraphy("run", path, "--trt", "--onnxrt", *shapes, "--input-shapes", "input:[3,3,16,16]", folder=tmp_path)
    assert status == 0 and "PASSED" in text, text[-3000:]


def test_engines_and_calibration(network):
    folder = network.parent
    status, text = polygraphy("convert", network, "-o", "net.plan", folder=folder)
    assert status == 0, text[-3000:]
    status, text = polygraphy("run", "net.plan", "--trt", "--model-type", "engine", folder=folder)
    assert status == 0, text[-3000:]
    status, text = polygraphy("inspect", "model", "net.plan", "--model-type", "engine", "--show", "layers", "attrs", folder=folder)
    assert status == 0 and "prob" in text, text[-3000:]
    status, text = polygraphy("convert", network, "--int8", "--calibration-cache", "c.cache", "-o", "int8.plan", folder=folder)
    assert status == 0 and (folder / "c.cache").read_text().startswith("TRT-8503"), text[-3000:]
    status, text = polygraphy("inspect", "model", network, "--display-as", "trt", "--show", "layers", folder=folder)
    assert status == 0 and "node_of_pool" in text, text[-3000:]


def models():
    return sorted(path.parent.name for path in MODELS.glob("*/model.onnx"))


def run_models(folder, *more):
    """Names of those that do as expected, and what is said of the others."""
    lists = [["run", MODELS / name / "model.onnx", "--trt", "--onnxrt", *OPTIONS.get(name, ["--atol=1e-3", "--rtol=1e-3"]), *more] for name in models()]
    passed, failures = [], {}
    for name, (status, text) in zip(models(), many(lists, folder)):
        good = status == 0 and "PASSED" in text
        if (not good and REFUSED[name] in text) if name in REFUSED else good:
            passed.append(name)
        else:
            failures[name] = text[-1500:]
    return passed, failures


@pytest.mark.skipif(not models(), reason="TENSORWRIGHT_MODELS_DIR names no folder of models")
def test_models(tmp_path):
    passed, failures = run_models(tmp_path)
    if "TW_REPORT_DIR" in os.environ:
        line = f"polygraphy run --trt --onnxrt: {len(passed)} of {len(models())} models as expected\n"
        pathlib.Path(os.environ["TW_REPORT_DIR"], "polygraphy.txt").write_text(line)
    assert not failures, json.dumps(failures, indent=1)[-6000:]
