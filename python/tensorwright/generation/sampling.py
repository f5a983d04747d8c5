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


class Banned:
    """Words that never come, and tokens that do not come first, as GenerateSample and BeamStep read them: [2, length], the ids of one word behind
    the other, and where each ends. room: for more than there are."""

    def __init__(self, words: list[tuple[int, ...]], first: tuple[int, ...] = (), room: int = 0):
        self.words, self.first = words, first
        self.length = max(room, sum(map(len, words)) + len(first))
        self.always, self.at_first = (self._array(w) for w in (words, [*words, *((t,) for t in first)]))

    def _array(self, words):
        result = np.full((2, self.length), -1, np.int32)
        ids = [t for w in words for t in w]
        result[0, : len(ids)] = ids
        result[1, : len(words)] = np.cumsum([len(w) for w in words])
        return result

    def with_more(self, words: list[tuple[int, ...]]) -> Banned:
        """These and others, with room for a power of two: engines are for so many."""
        count = self.length + sum(map(len, words))
        return Banned([*self.words, *words], self.first, 1 << (count - 1).bit_length()) if words else self

    def of(self, first: bool, rows: int):
        return np.repeat((self.at_first if first else self.always)[None], rows, 0)


def engine(vocabulary: int, kind, ends: int, banned: int, plan: build.Plan, cache) -> Model:
    """The engine of GenerateSample for logits of that type. banned: the length of a Banned."""
    inputs = {
        "logits": (kind, (-1, vocabulary)),
        "sequences": (trt.int32, (-1, plan.capacity)),
        "lengths": (trt.int32, (-1,)),
        "prompts": (trt.int32, (-1,)),
        "floats": (trt.float32, (-1, 7)),
        "ints": (trt.int32, (-1, 10)),
        "ends": (trt.int32, (ends,)),
        **({"banned": (trt.int32, (-1, 2, banned))} if banned else {}),
    }
    outputs = ("token", "finished", "log", "new_sequences", "new_lengths")

    def make(logger):
        with _memory.chosen(plan.device):
            return build.of_plugin("GenerateSample", inputs, outputs, logger, plan.slots)

    return build.kept(
        b"GenerateSample", {"sampler": (vocabulary, str(kind), ends, banned), "generation": vars(plan)}, plan, cache, False, make
    )


class Sampler:
    """Chooses tokens. ends: ids that end every sequence."""

    def __init__(self, model, ends: tuple[int, ...], banned: Banned):
        self._context, self._ends, self._banned = Context(model, 0), np.array(ends or (-1,), np.int32), banned

    def choose(self, rows: Rows, count: int, logits: int, first=False):
        """Lists of tokens, of whether each is its sequence's last, and of log probabilities, of the first rows, for logits at that address. first: they are the
        first ones behind their prompts."""
        context = self._context
        context.feed("ends", self._ends)
        if self._banned.length:
            context.feed("banned", self._banned.of(first, count))
        context.bind("logits", logits, (count, self._context.model.engine.get_tensor_shape("logits")[1]))
        for name, buffer in rows.buffers.items():
            context.bind(name, buffer.address, (count, *buffer.shape[1:]))
        for name in ("sequences", "lengths"):
            context.bind(f"new_{name}", rows.buffers[name].address)
        for name, buffer in rows.results.items():
            context.bind(name, buffer.address)
        context.run()
        return tuple(rows.results[name].read((count,)).tolist() for name in ("token", "finished", "log"))
