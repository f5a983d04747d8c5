#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the stand-in alone, moves it, and builds the C client through find_package and through pkg-config. Nothing
may lie directly in include/ or lib/, where it could shadow a CUDA toolkit."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(client LANGUAGES C CXX)
find_package(hostcuda REQUIRED)
foreach(target hostcuda hostcuda_static)
    add_executable(client_${target} client.c)
    set_target_properties(client_${target} PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(client_${target} PRIVATE tw::${target} ${CMAKE_DL_LIBS})
endforeach()
"""
LIBRARIES = {"libcudart.so", "libcudart.so.12", "libcudart.so.13", "libcudart.so.11.0", "libcudart_static.a"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True, help="binary folder of src/hostcuda")
    parser.add_argument("--client", type=pathlib.Path, required=True)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--cxx", required=True)
    options = parser.parse_args()
    plain = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "CPATH", "LIBRARY_PATH", "CMAKE_PREFIX_PATH")}

    def run(*command, **more):
        return subprocess.run([str(part) for part in command], check=True, env={**plain, **more.pop("env", {})}, text=True, **more)

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        run("cmake", "--install", options.build, "--prefix", root / "first", stdout=subprocess.DEVNULL)
        prefix = (root / "first").rename(root / "moved")
        there = {path.name for path in (prefix / "lib/hostcuda").iterdir()}
        assert there == LIBRARIES, there
        assert {path.name for path in (prefix / "include").iterdir()} == {"hostcuda"}
        assert {path.name for path in (prefix / "lib").iterdir()} == {"hostcuda", "cmake", "pkgconfig"}

        project = root / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(PROJECT)
        shutil.copy(options.client, project / "client.c")
        run("cmake", "-S", project, "-B", root / "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_C_COMPILER={options.cc}", f"-DCMAKE_CXX_COMPILER={options.cxx}", stdout=subprocess.DEVNULL)  # fmt: skip
        run("cmake", "--build", root / "b", stdout=subprocess.DEVNULL)
        run(root / "b/client_hostcuda")
        run(root / "b/client_hostcuda_static")

        if shutil.which("pkg-config") is None:
            print("pkg-config is not installed: that half was not tried")
            return 0
        flags = run("pkg-config", "--cflags", "--libs", "hostcuda", env={"PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"}, capture_output=True).stdout.split()
        run(options.cc, "-std=c99", project / "client.c", *flags, "-ldl", "-o", root / "plain")
        run(root / "plain")
    return 0


sys.exit(main())
