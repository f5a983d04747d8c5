# SPDX-License-Identifier: Apache-2.0
"""The libraries behind the module tensorrt, its names, models as functions, compile() and load(), and texts by models, generate()."""

from tensorrt import *
from tensorrt import __all__ as _names
from tensorrt import __version__

from ._compile import compile
from ._model import Comparison, Model, Profile, load
from .generation import Generation, Generator, generate

__all__ = [*_names, "Comparison", "Generation", "Generator", "Model", "Profile", "compile", "generate", "load"]
