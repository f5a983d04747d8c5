# SPDX-License-Identifier: Apache-2.0
"""The libraries behind the module tensorrt, and its names."""

from tensorrt import *
from tensorrt import __all__, __version__
