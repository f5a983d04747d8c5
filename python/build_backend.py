# SPDX-License-Identifier: Apache-2.0
"""What pip calls to build a wheel: scikit-build-core, after a look at what is missing and before what makes the wheel stand alone
(bundle.py)."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bundle  # noqa: E402
from scikit_build_core import build as backend  # noqa: E402
from scikit_build_core.build import (  # noqa: E402, F401
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

for hook in ("prepare_metadata_for_build_wheel", "prepare_metadata_for_build_editable"):
    if hasattr(backend, hook):  # scikit-build-core leaves them out where metadata come from the build itself
        globals()[hook] = getattr(backend, hook)

# What the build includes or calls, and the Debian package that has it; one of several names is enough.
HEADERS = {
    "google/protobuf/message_lite.h": "libprotobuf-dev",
    "onnx/onnx-ml.proto onnx/onnx.proto": "libonnx-dev",
    "flatbuffers/flatbuffers.h": "libflatbuffers-dev",
    "xbyak/xbyak.h": "libxbyak-dev",
    "xxhash.h": "libxxhash-dev",
    "fmt/format-inl.h": "libfmt-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "zlib.h": "zlib1g-dev",
    "Python.h": "python3-dev",
}
PROGRAMS = {"protoc": "protobuf-compiler", "flatc": "flatbuffers-compiler"}


def missing_packages():
    """Debian's names of what the build would lack. The compiler says which headers there are."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    if not shutil.which(compiler[0]):
        return ["g++", *HEADERS.values(), *missing]
    prefixes = [p for p in os.environ.get("CMAKE_PREFIX_PATH", "").replace(";", ":").split(":") if p]
    folders = [sysconfig.get_path("include"), *(os.path.join(prefix, "include") for prefix in prefixes)]
    source = ""
    for names, package in HEADERS.items():
        found = " || ".join(f"__has_include(<{name}>)" for name in names.split())
        source += f"#if !({found})\nmissing {package}\n#endif\n"
    command = [*compiler, "-std=c++20", "-E", "-P", "-x", "c++", *(f"-I{folder}" for folder in folders), "-"]
    run = subprocess.run(command, input=source, capture_output=True, text=True)
    if run.returncode:  # a compiler of another kind: CMake will say what is wrong
        return missing
    return [line.split()[1] for line in run.stdout.splitlines() if line.startswith("missing ")] + missing


def prebuilt():
    """The folder of what `make` built of this tree by the compiler and the settings of a wheel, brought up to date; empty without one."""
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build", "release")
    try:
        with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as file:
            cache = dict(re.findall(r"^([A-Za-z_]+):\w+=(.*)$", file.read(), re.M))
    except OSError:
        return ""
    compiler = shutil.which(shlex.split(os.environ.get("CXX", "c++"))[0])
    same = (
        os.path.realpath(cache.get("CMAKE_HOME_DIRECTORY", "")) == os.path.realpath(os.path.dirname(os.path.dirname(folder)))
        and cache.get("CMAKE_BUILD_TYPE") == "Release"
        and not cache.get("TW_SANITIZE")
        and cache.get("CMAKE_CXX_FLAGS", "").split() == os.environ.get("CXXFLAGS", "").split()
        and compiler is not None
        and os.path.realpath(cache.get("CMAKE_CXX_COMPILER", "")) == os.path.realpath(compiler)
        and os.path.exists(os.path.join(folder, "lib", "libnvinfer.so.8"))
        and not os.environ.get("CMAKE_ARGS")
    )
    if not same:
        return ""
    print(f"tensorwright: libraries and programs come from {folder}", flush=True)
    targets = ["trtexec", *(f"hostcuda_cudart{major}" for major in (11, 12, 13))]
    subprocess.run([cache["CMAKE_COMMAND"], "--build", folder, "--target", *targets], check=True)
    return folder


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    missing = missing_packages()
    if missing:
        sys.exit(
            "tensorwright: these Debian 12 packages, or their like, are needed to build it and missing here: "
            + " ".join(missing)
            + f"\nAs root: apt-get install -y --no-install-recommends {' '.join(missing)}"
        )
    settings = dict(config_settings or {})
    folder = prebuilt()
    settings["cmake.define.TW_PREBUILT"] = folder
    if folder:
        settings["build.targets"] = "tensorrt_stub"
    name = backend.build_wheel(wheel_directory, settings, metadata_directory)
    return bundle.finish(os.path.join(wheel_directory, name))
