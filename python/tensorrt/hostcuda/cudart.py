# SPDX-License-Identifier: Apache-2.0
"""The names of cuda-python's module cudart, which are those of tensorrt.hostcuda."""

from tensorrt.hostcuda import *
