# SPDX-License-Identifier: Apache-2.0
"""What this machine has: GPUs, and the CUDA runtime for machines without one."""

import ctypes
import importlib.abc
import os
import sys


def gpus():
    """How many GPUs the CUDA driver knows; 0 without a driver."""
    try:
        library, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    except OSError:
        return 0
    return 0 if library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count)) else count.value


def stand_in():
    """The file of the CUDA runtime for machines without a GPU."""
    package, here = os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.realpath(__file__))
    tried = []
    for folder in (
        os.path.join(package, "..", "tensorwright", "lib"),
        os.path.join(package, "..", "..", "lib"),
        os.path.join(here, "..", "..", "lib"),
    ):
        path = os.path.normpath(os.path.join(folder, "hostcuda", "libcudart.so.12"))
        if os.path.exists(path):
            return path
        tried.append(path)
    raise ImportError(
        "tensorrt.hostcuda: the CUDA runtime for machines without a GPU is not installed; it was looked for at " + ", ".join(tried)
    )


def _show_polygraphy():
    """Polygraphy opens the first CUDA runtime on LD_LIBRARY_PATH when it first needs one: the stand-in, where engines run on the CPU."""
    device = os.environ.get("TENSORWRIGHT_DEVICE")
    if device != "cpu" and (device or gpus()):
        return
    try:
        folder = os.path.dirname(stand_in())
    except ImportError:
        return
    folders = [name for name in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if name and name != folder]
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([folder, *folders])


class _WhenImported(importlib.abc.MetaPathFinder):
    """Finds nothing, and learns that Polygraphy is being imported."""

    def find_spec(self, fullname, path, target=None):
        if fullname == "polygraphy":
            _show_polygraphy()


def serve_polygraphy():
    """Polygraphy finds the stand-in, whichever is imported first. Processes without Polygraphy, and their children, keep LD_LIBRARY_PATH."""
    if "polygraphy" in sys.modules:
        _show_polygraphy()
    else:
        sys.meta_path.insert(0, _WhenImported())
