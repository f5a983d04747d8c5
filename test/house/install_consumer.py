#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs into a temporary prefix and builds a C++11 client against it as users do: find_package, plain -lnvinfer and pkg-config.

    install_consumer.py --build build/release [--cxx g++]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

CLIENT = """
#include "NvInfer.h"
#include "cuda_runtime_api.h"
#include <cstdio>
#include <memory>

class Logger : public nvinfer1::ILogger
{
    void log(Severity severity, const char* text) noexcept override
    {
        if (severity <= Severity::kERROR)
            std::fprintf(stderr, "%s\\n", text);
    }
};

int main()
{
    Logger logger;
    std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
    std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
    if (!builder || !runtime || getInferLibVersion() != NV_TENSORRT_VERSION)
        return 1;
    void* memory = nullptr;
    if (cudaMalloc(&memory, 64) != cudaSuccess || cudaFree(memory) != cudaSuccess)
        return 2;
    std::printf("client of %d\\n", static_cast<int>(getInferLibVersion()));
    return 0;
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.18)
project(client LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 11)
set(TENSORWRIGHT_HOSTCUDA ON)
find_package(tensorwright 8.5 REQUIRED COMPONENTS nvinfer)
add_executable(client client.cpp)
target_link_libraries(client PRIVATE tensorwright::nvinfer tensorwright::cudart)
"""


def run(*command, **keywords):
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, stdin=subprocess.DEVNULL, **keywords)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", default="c++")
    options = parser.parse_args()
    # The paths of this machine's environment must not help the client to find anything.
    plain = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "CPATH", "LIBRARY_PATH", "CMAKE_PREFIX_PATH")}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        first, prefix = root / "first", root / "moved"
        run("cmake", "--install", options.build, "--prefix", first, stdout=subprocess.DEVNULL)
        first.rename(prefix)  # the package must not remember where it was installed
        for file, own in (("lib/libnvonnxparser.so.8", "libtw_proto-lite"), ("lib/libnvparsers.so.8", "libtw_texts"), ("bin/trtexec", "libtw_proto-lite")):
            found = subprocess.run(["ldd", prefix / file], env=plain, check=True, capture_output=True, text=True).stdout
            assert own in found and "libprotobuf" not in found and "not found" not in found, found
        (root / "client.cpp").write_text(CLIENT)
        (root / "CMakeLists.txt").write_text(PROJECT)

        run("cmake", "-S", root, "-B", root / "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={options.cxx}", env=plain, stdout=subprocess.DEVNULL)
        run("cmake", "--build", root / "b", env=plain)
        run(root / "b" / "client", env=plain)

        flags = [f"-I{prefix}/include", f"-I{prefix}/include/hostcuda"]
        flags += [f"-L{prefix}/lib", f"-L{prefix}/lib/hostcuda", "-lnvinfer", "-lcudart"]
        flags += [f"-Wl,-rpath,{prefix}/lib", f"-Wl,-rpath,{prefix}/lib/hostcuda"]
        run(options.cxx, "-std=c++11", root / "client.cpp", *flags, "-o", root / "plain", env=plain)
        run(root / "plain", env=plain)

        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "tensorwright", "hostcuda"],
            env={**plain, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        flags += [f"-Wl,-rpath,{prefix}/lib"]
        run(options.cxx, "-std=c++11", root / "client.cpp", *flags, "-o", root / "pkgconfig", env=plain)
        run(root / "pkgconfig", env=plain)
    return 0


sys.exit(main())
