# SPDX-License-Identifier: Apache-2.0
"""The Python API of TensorRT 8.5, on CPUs and GPUs: networks and models become engines, and engines run."""

from . import _machine
from .tensorrt import *

__version__ = "8.5.3.1"

_machine.serve_polygraphy()

__all__ = [name for name in globals() if not name.startswith("_") and name != "tensorrt"]
__all__ += ["nptype", "volume"]


def nptype(trt_type):
    """The NumPy type that goes with a tensorrt.DataType."""
    import numpy as np

    types = {float32: np.float32, float16: np.float16, int8: np.int8, int32: np.int32, bool: np.bool_, uint8: np.uint8}
    if trt_type not in types:
        raise TypeError(f"no NumPy type goes with {trt_type!r}")
    return types[trt_type]


def volume(iterable):
    """The product of numbers, such as the elements of a shape; 1 for none."""
    result = 1
    for number in iterable:
        result *= number
    return result
