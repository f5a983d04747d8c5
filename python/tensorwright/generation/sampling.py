# SPDX-License-Identifier: Apache-2.0
"""The engine of GenerateSample over rows of sequences, which stay on the device."""

from __future__ import annotations

import numpy as np
import tensorrt as trt

from .. import _memory
from .._model import Model
from . import build
from .runs import Buffer, Context


class Rows:
    """The state of so many sequences: their tokens, how many there are (0: the row is not in use), and what each asks for."""

    def __init__(self, memory, rows: int, capacity: int):
        self.capacity = capacity
        shapes = {"sequences": (rows, capacity), "lengths": (rows,), "prompts": (rows,), "floats": (rows, 7), "ints": (rows, 10)}
        self.buffers = {n: Buffer(memory, s, np.float32 if n == "floats" else np.int32) for n, s in shapes.items()}
        self.results = {n: Buffer(memory, (rows,), np.float32 if n == "log" else np.int32) for n in ("token", "finished", "log")}

    def set(self, row: int, tokens: list[int], prompt: int, floats, ints) -> None:
        self.buffers["sequences"].write(np.array(tokens, np.int32), row * self.capacity)
        self.buffers["lengths"].write(np.array([len(tokens)], np.int32), row)
        self.buffers["prompts"].write(np.array([prompt], np.int32), row)
        self.buffers["floats"].write(floats, row * 7)
        self.buffers["ints"].write(ints, row * 10)

    def free(self, row: int) -> None:
        self.buffers["lengths"].write(np.zeros(1, np.int32), row)


def engine(vocabulary: int, kind, ends: int, plan: build.Plan, cache) -> Model:
    """The engine of GenerateSample for logits of that type."""
    inputs = {
        "logits": (kind, (-1, vocabulary)),
        "sequences": (trt.int32, (-1, plan.capacity)),
        "lengths": (trt.int32, (-1,)),
        "prompts": (trt.int32, (-1,)),
        "floats": (trt.float32, (-1, 7)),
        "ints": (trt.int32, (-1, 10)),
        "ends": (trt.int32, (ends,)),
    }
    outputs = ("token", "finished", "log", "new_sequences", "new_lengths")

    def make(logger):
        with _memory.chosen(plan.device):
            return build.of_plugin("GenerateSample", inputs, outputs, logger, plan.slots)

    return build.kept(
        b"GenerateSample", {"sampler": (vocabulary, str(kind), ends), "generation": vars(plan)}, plan, cache, False, make
    )


class Sampler:
    """Chooses tokens. ends: ids that end every sequence."""

    def __init__(self, model, ends: tuple[int, ...]):
        self._context, self._ends = Context(model, 0), np.array(ends or (-1,), np.int32)

    def choose(self, rows: Rows, count: int, logits: int):
        """(tokens, whether each is its sequence's last, log probabilities) of the first rows, for logits at that address."""
        context = self._context
        context.feed("ends", self._ends)
        context.bind("logits", logits, (count, self._context.model.engine.get_tensor_shape("logits")[1]))
        for name, buffer in rows.buffers.items():
            context.bind(name, buffer.address, (count, *buffer.shape[1:]))
        for name in ("sequences", "lengths"):
            context.bind(f"new_{name}", rows.buffers[name].address)
        for name, buffer in rows.results.items():
            context.bind(name, buffer.address)
        context.run()
        return tuple(rows.results[name].read((count,)) for name in ("token", "finished", "log"))
