#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: wheel.py SOURCE [--wheel FILE]

Builds the wheel as `pip install .` does, unless it is given, unpacks it into an empty folder, and runs from there, without the
build tree: the module, the stand-in, trtexec, and a C++ program that is compiled against the headers and libraries inside.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
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
        root = site / "tensorwright"
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
