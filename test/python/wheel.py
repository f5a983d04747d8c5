#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: wheel.py SOURCE [--wheel FILE]

Builds the wheel as `pip install .` does, unless it is given, unpacks it into an empty folder, and runs from there, without the
build tree: the module, the stand-in, trtexec, and a C++ program that is compiled against the headers and libraries inside.
"""

import argparse
import importlib.util
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
import bundle  # noqa: E402

LIMIT = 20 << 20  # bytes

PROGRAM = """#include <NvInfer.h>
#include <cuda_runtime_api.h>
#include <cstdio>
struct Logger : nvinfer1::ILogger { void log(Severity, char const*) noexcept override {} } logger;
int main()
{
    void* memory = nullptr;
    auto* builder = nvinfer1::createInferBuilder(logger);
    bool const is = builder && cudaMalloc(&memory, 16) == cudaSuccess;
    delete builder;
    std::puts(is ? "linked" : "failed");
    return is ? 0 : 1;
}
"""


# In one process with others that hold a protobuf: each reads a model and runs it or says what is in it.
BESIDE = """
import ctypes, glob, importlib, sys
path, *order = sys.argv[1:]
import numpy as np
for name in order:
    if name == "global":
        # The system's own, in the global scope: what would answer for the names that it has in common with others.
        for library in ("libz.so.1", "libprotobuf-lite.so.32", "libprotobuf.so.32"):
            try:
                ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
            except OSError:
                pass
    else:
        importlib.import_module(name)
x = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
for turn in range(2):
    answers = []
    for name in order:
        if name == "tensorwright":
            answers.append(sys.modules[name].compile(path, cache=False)(x))
        elif name == "onnxruntime":
            answers.append(sys.modules[name].InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"input": x})[0])
        elif name == "onnx":
            sys.modules[name].checker.check_model(sys.modules[name].load(path))
        elif name == "torch":
            sys.modules[name].ones(3).sum()
        elif name == "tensorflow":
            y = sys.modules[name].function(lambda x: x * 2.0 + 1.0)(x)
            example = sys.modules[name].train.Example
            assert example.FromString(example().SerializeToString()) == example()
            np.testing.assert_allclose(y.numpy(), x * 2 + 1, rtol=1e-6)
    for y in answers:
        np.testing.assert_allclose(y, answers[0], rtol=1e-4, atol=1e-5)
foreign = [l for l in open("/proc/self/maps") if "libprotobuf" in l]
assert "global" in order or not foreign, foreign
assert any("libtw_proto-lite" in l for l in open("/proc/self/maps"))
print("beside", *order)
"""


# Programs of 8.5 open libraries by any of their names; all of them are one library.
NAMES = """
import ctypes, pathlib, sys
lib = pathlib.Path(sys.argv[1])
for stem, versions, symbol in (("nvinfer", ("", ".8", ".8.5.3"), "getInferLibVersion"), ("nvonnxparser", ("", ".8", ".8.5.3"), "getNvOnnxParserVersion"),
                               ("nvinfer_plugin", ("", ".8", ".8.5.3"), "initLibNvInferPlugins"), ("nvparsers", ("", ".8", ".8.5.3"), "createNvCaffeParser_INTERNAL"),
                               ("hostcuda/libcudart", ("", ".12"), "cudaGetDeviceCount"), ("hostcuda/libcudart", (".11.0",), "cudaGetDeviceCount"),
                               ("hostcuda/libcudart", (".13",), "cudaGetDeviceCount")):
    path = stem if "/" in stem else "lib" + stem
    addresses = {ctypes.cast(getattr(ctypes.CDLL(str(lib / f"{path}.so{v}")), symbol), ctypes.c_void_p).value for v in versions}
    assert len(addresses) == 1, (stem, addresses)
first = sorted(lib.rglob("libcudart.so*"))[0]
ctypes.CDLL(str(first)).cudaGetDeviceCount
print("every name opens")
"""


def orders(names):
    """Orders in which tensorwright and these are imported: all where they are few; else each first once, forwards and backwards, and each
    alone before and after it, as torch and tensorflow take seconds."""
    names = ["tensorwright", *names]
    if len(names) <= 4:
        return list(itertools.permutations(names))
    both = [row[at:] + row[:at] for row in (names, names[::-1]) for at in range(len(names))]
    return both + [pair for name in names[1:] for pair in ((name, names[0]), (names[0], name))]


def run(*command, **extra):
    print("+", *command, flush=True)
    return subprocess.run([str(c) for c in command], check=True, text=True, **extra)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--wheel", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if not options.wheel:
            run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, options.source)
            (options.wheel,) = folder.glob("tensorwright-*.whl")
        assert f"-{bundle.TAG}.whl" in options.wheel.name, options.wheel.name
        size = options.wheel.stat().st_size
        print(f"{options.wheel.name}: {size / 2**20:.1f} MiB")
        assert size <= LIMIT, f"the limit is {LIMIT >> 20} MiB"
        site = folder / "site"
        run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", site, options.wheel)
        environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
        environment.update(PYTHONPATH=str(site), PYTHONDONTWRITEBYTECODE="1", TENSORWRIGHT_DEVICE="cpu")
        for name in ("onnx", "hostcuda"):
            run(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                HERE / f"{name}_test.py",
                env=environment,
                cwd=folder,
            )
        run(sys.executable, "-c", NAMES, site / "tensorwright" / "lib", env=environment, cwd=folder)
        # What imports of the package do not find: the messages of serving.
        assert {"kserve.desc", "kserve.proto", "rpc.py"} <= {path.name for path in (site / "tensorwright" / "serve").iterdir()}
        where = "import sys, tensorrt, tensorwright; assert tensorwright.Builder is tensorrt.Builder; print(tensorrt.__file__, tensorwright.__version__)"
        shown = run(sys.executable, "-c", where, env=environment, cwd=folder, capture_output=True).stdout
        assert shown.startswith(str(site)) and "8.5.3.1" in shown, shown
        (folder / "model.onnx").write_bytes(model())
        shown = run(
            site / "bin" / "trtexec",
            f"--onnx={folder / 'model.onnx'}",
            "--iterations=2",
            "--duration=0",
            "--warmUp=0",
            env=environment,
            capture_output=True,
        ).stdout
        assert "PASSED" in shown, shown
        shown = run(site / "bin" / "tensorwright", "--version", env=environment, capture_output=True).stdout
        assert shown == "tensorwright 8.5.3.1\n", shown
        root = site / "tensorwright"
        own = sorted(path.name.partition(".so")[0] for path in (root / "lib").glob("libt*"))
        assert own == ["libtensorwright-z", "libtw_proto-lite", "libtw_texts"], own
        assert bundle.too_new(site) == []
        for path in (path for path in site.rglob("*") if bundle.is_elf(path)):
            names = bundle.said_by("nm", "-D", path).split()
            foreign = [n for n in names if "google8protobuf" in n]
            assert not foreign, (path, foreign[:3])
        others = ("onnx", "onnxruntime", "torch", "tensorflow")
        beside = [name for name in others if importlib.util.find_spec(name)]
        for name in sorted(set(others) - set(beside)):
            print(f"beside {name}: left out, as {sys.executable} has none")
        # TensorFlow dies by itself where the system's protobuf is in the global scope.
        steady = [name for name in beside if name != "tensorflow"]
        rows = orders(["global", *steady]) + (orders(beside) if "tensorflow" in beside else [])
        for order in dict.fromkeys(map(tuple, rows + [(name, "tensorwright") for name in beside])):
            run(sys.executable, "-c", BESIDE, folder / "model.onnx", *order, env=environment, cwd=folder)
        (folder / "program.cpp").write_text(PROGRAM)
        run(
            "c++",
            "-std=c++17",
            "-w",
            folder / "program.cpp",
            "-o",
            folder / "program",
            f"-I{root}/include",
            f"-I{root}/include/hostcuda",
            f"-L{root}/lib",
            f"-L{root}/lib/hostcuda",
            "-lnvinfer",
            "-lcudart",
            f"-Wl,-rpath,{root}/lib:{root}/lib/hostcuda",
        )
        assert run(folder / "program", env=environment, capture_output=True).stdout == "linked\n"
        left = [str(p.relative_to(site)) for p in site.rglob("*") if p.is_symlink() or p.suffix == ".a"]
        assert not left, left
    print("the wheel stands alone")


def model():
    sys.path.insert(0, str(HERE))
    from models import Resnet

    return Resnet().model()


main()
