#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: bare_system.py SOURCE [--wheel FILE] [--suite bookworm] [--mirror URL]

What a user does from nothing: clones SOURCE, builds sdist and wheel with `python -m build` in environments of their own, installs the wheel
into a fresh venv, and into Debian 12 with nothing but Python (debootstrap into a folder, without a network), and runs models there.
Needs root, debootstrap, and a network for Debian's packages and PyPI's; prints SKIP and the reason where one of them is missing.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

# Runs the model behind `python -c`: input and expected output are beside it.
CHECK = """
import pathlib, sys
import numpy as np
folder = pathlib.Path(sys.argv[1])
import tensorrt as trt
import tensorwright
from tensorrt import hostcuda
assert tensorwright.Builder is trt.Builder and trt.__version__ == "8.5.3.1"
x, expected = np.load(folder / "x.npy"), np.load(folder / "expected.npy")
assert np.ptp(expected) > 0.01
model = tensorwright.compile(str(folder / "model.onnx"), cache=False)
np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-5)
model.save(folder / "model.plan")
np.testing.assert_allclose(tensorwright.load(folder / "model.plan")(x), expected, rtol=1e-4, atol=1e-5)
error, address = hostcuda.cudaMalloc(64)
assert int(error) == 0 and address
print("right answers from", tensorwright.__file__)
"""


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(0)


def run(*command, **extra):
    command = [str(c) for c in command]
    print("+", *(c if len(c) < 100 else c[:40] + "..." for c in command), flush=True)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **extra)
    if done.returncode:
        sys.exit(f"{done.stdout[-6000:]}\n{command[0]} ended with {done.returncode}")
    return done.stdout


def venv(folder):
    """The bin folder of a fresh one, of Debian's Python where there is one."""
    python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    run(python, "-m", "venv", folder)
    return folder / "bin"


def build(source, folder):
    """The wheel of a clean clone, by way of its sdist, as `python -m build` does both."""
    run("git", "clone", "-q", source, folder / "clone")
    programs = venv(folder / "builder")
    run(programs / "pip", "install", "-q", "build")
    run(programs / "python", "-m", "build", "--outdir", folder / "dist", folder / "clone")
    assert list((folder / "dist").glob("tensorwright-*.tar.gz")), "no sdist"
    (wheel,) = (folder / "dist").glob("tensorwright-*.whl")
    return wheel


def put_model(folder):
    """model.onnx, x.npy and expected.npy, which is by NumPy alone."""
    from models import Resnet

    folder.mkdir()
    network = Resnet()
    x = np.random.default_rng(3).standard_normal(network.shape).astype(np.float32)
    (folder / "model.onnx").write_bytes(network.model())
    np.save(folder / "x.npy", x)
    np.save(folder / "expected.npy", network.answer(x).astype(np.float32))


def use(programs, folder, call, **extra):
    """What a user tries first; `call` runs a command there."""
    shown = call(programs / "python", "-c", CHECK, folder, **extra)
    assert "right answers from" in shown, shown
    shown = call(programs / "trtexec", f"--onnx={folder}/model.onnx", "--iterations=2", "--duration=0", "--warmUp=0", **extra)
    assert "PASSED" in shown, shown
    assert call(programs / "tensorwright", "--version", **extra).strip() == "tensorwright 8.5.3.1"
    shown = call(programs / "tensorwright", "inspect", f"{folder}/model.plan", **extra)
    assert "prob" in shown, shown


def bare(root, wheels, suite, mirror):
    """Debian with nothing but Python, and the wheels in /wheels."""
    # The venv's own pip is all that pip is; nothing of what the wheel is built with comes with it.
    run("debootstrap", "--variant=minbase", "--include=python3,python3-venv", suite, root, mirror)
    installed = run("chroot", root, "dpkg-query", "-W", "-f", "${Package}\n").split()
    strangers = [p for p in installed if any(word in p for word in ("protobuf", "g++", "cuda", "python3-dev", "numpy"))]
    assert not strangers, strangers
    shutil.copytree(wheels, root / "wheels")
    put_model(root / "model")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--wheel", type=pathlib.Path)
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--mirror", default="http://deb.debian.org/debian")
    options = parser.parse_args()
    if os.geteuid():
        skip("a root folder is made by root alone")
    for program in ("debootstrap", "unshare", "git"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")}
    environment["TENSORWRIGHT_DEVICE"] = "cpu"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        wheels = folder / "wheels"
        wheels.mkdir()
        fresh = venv(folder / "fresh")
        # Also says whether there is a network.
        got = subprocess.run([fresh / "pip", "download", "-q", "--retries=1", "-d", wheels, "numpy"], capture_output=True, text=True)
        if got.returncode:
            skip(f"PyPI does not answer: {got.stderr.strip()[-200:]}")
        wheel = options.wheel or build(options.source, folder)
        print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MiB")
        shutil.copy(wheel, wheels)
        install = ("install", "-q", "--no-index", "--find-links")
        run(fresh / "pip", *install, wheels, "tensorwright")
        put_model(folder / "model")
        use(fresh, folder / "model", run, env=environment, cwd=folder)

        root = folder / "root"
        bare(root, wheels, options.suite, options.mirror)
        plain = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "TENSORWRIGHT_DEVICE": "cpu", "LANG": "C.UTF-8"}

        def inside(*command, **extra):  # in namespaces of its own: no network, no mounts that stay
            enter = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
            return run("unshare", "--mount", "--net", "sh", "-c", enter, root, *command, env=plain)

        inside("python3", "-m", "venv", "/venv")
        inside("/venv/bin/pip", *install, "/wheels", "tensorwright")
        use(pathlib.Path("/venv/bin"), pathlib.Path("/model"), inside)
    print("the wheel is built from a clean clone and runs on a bare system")


main()
