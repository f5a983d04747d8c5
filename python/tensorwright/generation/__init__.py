# SPDX-License-Identifier: Apache-2.0
"""Texts by decoder models: generate() and Generator."""

from .generator import Generation, Generator, Stream, generate
from .scheduler import Piece
from .settings import Settings

__all__ = ["Generation", "Generator", "Piece", "Settings", "Stream", "generate"]
