# SPDX-License-Identifier: Apache-2.0
"""The Python API of TensorRT 8.5, on CPUs and GPUs: networks and models become engines, and engines run."""
import warnings

from .tensorrt import *
__version__ = "8.5.3.1"

__all__ = [name for name in globals() if not name.startswith("_") and name not in ("warnings", "tensorrt")]
__all__ += ["nptype", "volume"]


def _enter(self):
    """Deprecated: gives the object itself."""
    warnings.warn("Context managers for TensorRT types are deprecated. Use the object itself: it is freed when nothing refers to it.", DeprecationWarning, stacklevel=2)
    return self


def _exit(self, exc_type, exc_value, traceback):
    """Deprecated: does nothing. The object is freed when nothing refers to it."""


for _type in (Builder, CaffeParser, IBuilderConfig, ICudaEngine, IExecutionContext, IHostMemory, ILogger, INetworkDefinition, OnnxParser, Refitter, Runtime, UffParser):
    _type.__enter__ = _enter
    _type.__exit__ = _exit
del _type

# Bytes of an element.
DataType.itemsize = property({DataType.FLOAT: 4, DataType.HALF: 2, DataType.INT8: 1, DataType.INT32: 4, DataType.BOOL: 1, DataType.UINT8: 1}.__getitem__, doc="Bytes of an element.")


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
