# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable
from typing import Any

from .tensorrt import *

__version__: str

def nptype(trt_type: DataType) -> type[Any]:
    """The NumPy type that goes with a tensorrt.DataType."""

def volume(iterable: Iterable[int]) -> int:
    """The product of numbers, such as the elements of a shape; 1 for none."""
