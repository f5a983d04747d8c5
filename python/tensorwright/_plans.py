# SPDX-License-Identifier: Apache-2.0
"""Where plans are kept, and the names for all that they depend on."""

import glob
import hashlib
import os
import platform
import re

import numpy as np

from ._caffe import CaffeModel


def external_files(data):
    """The names of the files in which a model keeps weights: the string behind "location" in its external data."""
    names = set()
    for match in re.finditer(rb"\x0a\x08location\x12", data):
        at, length, shift = match.end(), 0, 0
        while at < len(data) and shift < 28:
            length |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                break
        names.add(data[at : at + length].decode(errors="replace"))
    return sorted(names)


def key(source, options):
    """A name for all that a plan depends on."""
    total = hashlib.sha256()

    def add(*parts):
        for part in parts:
            part = part if isinstance(part, bytes) else repr(part).encode()
            total.update(b"%d:" % len(part))
            total.update(part)

    def add_file(path):
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 22), b""):
                total.update(block)

    if isinstance(source, CaffeModel):
        for path in (source.path, source.weights):
            add(os.path.getsize(path))
            add_file(path)
        add(source.outputs)
    elif isinstance(source, str):
        with open(source, "rb") as file:
            data = file.read()
        add(data)
        for name in external_files(data):
            path = os.path.join(os.path.dirname(source), name)
            if os.path.isfile(path):
                add(name)
                add_file(path)
    else:
        add(source)
    for name in sorted(options):
        if name != "calibration":
            add(name, sorted(options[name].items()) if isinstance(options[name], dict) else options[name])
    calibration = options.get("calibration")
    if isinstance(calibration, list):
        for batch in calibration:
            for name, value in batch.items():
                array = np.ascontiguousarray(value)
                add(name, str(array.dtype), array.shape, array.tobytes())
    elif calibration is not None and os.path.isfile(calibration):
        add_file(calibration)
    add(sorted((k, v) for k, v in os.environ.items() if k.startswith("TENSORWRIGHT_") and k not in _NOT_OF_PLANS))
    add(os.environ.get("NVIDIA_TF32_OVERRIDE", ""), len(os.sched_getaffinity(0)), *_machine())
    for path in _libraries():
        add_file(path)
    return total.hexdigest()[:32]


# Variables that change no plan; the device has a field of its own.
_NOT_OF_PLANS = {"TENSORWRIGHT_CACHE_DIR", "TENSORWRIGHT_DEVICE", "TENSORWRIGHT_COPY_PLAN", "TENSORWRIGHT_STRICT_PLAN"}


def _machine():
    """What the processor is."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = file.read().split("\n\n")[0].splitlines()
        return [line for line in lines if line.startswith(("model name", "flags"))]
    except OSError:
        return [platform.processor()]


def _libraries():
    """The engine's library files, as this process has them."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return sorted({line.split(None, 5)[5].strip() for line in maps if re.search(r"/lib(nvinfer|nvonnxparser|nvparsers)\.so", line)})


def place(cache, name):
    """The file of a key."""
    if cache is True:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        cache = os.environ.get("TENSORWRIGHT_CACHE_DIR") or os.path.join(home, "tensorwright")
    return os.path.join(os.fspath(cache), f"{name}.plan")


def cached_plans(folder=True):
    """The files that hold kept plans."""
    return sorted(glob.glob(place(folder, "*")))
