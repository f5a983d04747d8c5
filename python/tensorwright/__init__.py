# SPDX-License-Identifier: Apache-2.0
"""The libraries behind the module tensorrt, its names, and models as functions: compile() and load()."""

from tensorrt import *
from tensorrt import __all__ as _names
from tensorrt import __version__

from ._compile import compile
from ._model import Comparison, Model, Profile, load

__all__ = [*_names, "Comparison", "Model", "Profile", "compile", "load"]
