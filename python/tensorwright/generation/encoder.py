# SPDX-License-Identifier: Apache-2.0
"""Encoders, and decoders of what they have read. A source, a text's tokens or features of sound or pictures, is read once; of the states that come
out the decoder makes keys and values once, with the first of its tokens, and has them at all others."""

from __future__ import annotations

import math

import numpy as np

from .._model import Model
from .interface import Cache, Interface, interface_of, presents_of, source_of, tensors_of_engine
from .pages import Paged
from .runs import Buffer, Context, Growing, Whole


class Encoder:
    """An encoder's engine. shape: of features, else None; most: tokens that it takes; states: the fewest and the most that come out."""

    def __init__(self, model: Model):
        self.model, self.memory = model, model._memory
        self.source = source_of(tensors_of_engine(model.engine))
        self._context = Context(model, 0)
        shapes = model.engine.get_tensor_profile_shape(self.source.name, 0) if -1 in self.source.shape else [self.source.shape] * 3
        self.shape = (1, *shapes[2][1:]) if self.source.features else None
        self.most = 0 if self.source.features else shapes[2][1]
        self.states = tuple(self._given(np.zeros((1, *shapes[i][1:])))[1] for i in (0, 2))

    def any_source(self):
        """A source that can be read."""
        if self.shape:
            return np.random.default_rng(0).standard_normal(self.shape)
        return [int(t) for t in np.random.default_rng(0).integers(0, 2, min(5, self.most))]

    def _given(self, array) -> tuple[int, ...]:
        """Puts a source in; the shape of its states."""
        self._context.feed(self.source.name, array)
        if self.source.mask:
            self._context.feed(self.source.mask, np.ones(array.shape))
        found = tuple(self._context.context.get_tensor_shape(self.source.states))
        if len(found) != 3 or min(found) <= 0:
            raise ValueError(f"output {self.source.states!r} of the encoder has the shape {list(found)} for a source of {list(array.shape)}")
        return found

    def checked(self, source):
        """A source as the engine takes it: [1, tokens], or features of its shape."""
        if not self.source.features:
            return np.array([source], np.int64)
        array = np.asarray(source)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"prompt: features are numbers, not {array.dtype}")
        if array.shape == self.shape[1:]:
            array = array[None]
        if array.shape != self.shape:
            raise ValueError(f"prompt: features of the shape {list(array.shape)}, {list(self.shape[1:])} is expected")
        if not np.isfinite(array).all():
            raise ValueError("prompt: features have to be finite numbers")
        return array

    def read(self, source) -> Buffer:
        """States, [1, source, width]."""
        made = Buffer(self.memory, self._given(self.checked(source)), self.model._dtypes[self.source.states])
        self._context.bind(self.source.states, made.address)
        self._context.run()
        return made


class _Read:
    """What has been read for a sequence: states, and the keys and values that the decoder has made of them."""

    def __init__(self, states: Buffer, dtype):
        if dtype is not None and states.dtype != dtype:
            other = Buffer(states.memory, states.shape, dtype)
            other.write(states.read())
            states = other
        self.states, self.count, self.crosses = states, states.shape[1], None


class _Sourced:
    """What both kinds of runs share."""

    kept = False

    def __init__(self, model: Model, found: Interface, plan, encoder: Encoder):
        super().__init__(model, found, plan)
        self.encoder, self._read = encoder, [None] * plan.slots

    def open(self, slot, source):
        self._read[slot] = _Read(self.encoder.read(source), self._states_type())

    def _states_type(self):
        return self.model._dtypes[self.found.states] if self.found.states else None

    def _feed_source(self, context, found, slot):
        read = self._read[slot]
        if found.states:
            context.bind(found.states, read.states.address, read.states.shape)
        if found.states_mask:
            context.feed(found.states_mask, np.ones((1, read.count)))

    def reorder(self, parents):
        super().reorder(parents)
        self._read[: len(parents)] = [self._read[p] for p in parents]


class CrossedWhole(_Sourced, Whole):
    """Decoders without caches."""


class _Crosses(_Sourced):
    """Decoders with caches. first: the engine for tokens without a past, where that of steps cannot read them; config: as of interface_of()."""

    def __init__(self, model: Model, found: Interface, plan, encoder: Encoder, first: Model | None, config: dict):
        super().__init__(model, found, plan, encoder)
        self._first = Context(first, 0) if first else None
        self._first_found = interface_of(tensors_of_engine(first.engine), config) if first else None
        made = {n for n, t in (self._first_found or found).tensors.items() if not t.is_input}
        for cache in (*found.caches, *found.crosses):
            if not made.intersection(presents_of(cache.past)):
                raise ValueError(f"no output of the decoder for first tokens is what input {cache.past!r} begins with")

    @staticmethod
    def _cross_shape(cache: Cache, count: int) -> tuple[int, ...]:
        return (1, cache.heads, count, cache.head)

    def _states_type(self):
        if self._first:
            return self._first.model._dtypes[self._first_found.states]
        return super()._states_type()

    def _cross_outputs(self, made: bool, buffers: list[Buffer]):
        """Where keys and values of the source come out, of each cross. made: they are made by this run."""
        return buffers

    def _feed_source(self, context, found, slot):
        super()._feed_source(context, found, slot)
        read = self._read[slot]
        made = read.crosses is None
        if made:
            read.crosses = [
                Buffer(self.memory, self._cross_shape(c, read.count), self.model._dtypes[c.past]) for c in self.found.crosses
            ]
        outputs = self._cross_outputs(made, read.crosses)
        for cache, buffer, output in zip(self.found.crosses, read.crosses, outputs):
            if cache.past in found.tensors:
                context.bind(cache.past, buffer.address, buffer.shape)
            for present in (n for n in presents_of(cache.past) if n in found.tensors):
                context.bind(present, output.address)


class Crossed(_Crosses, Growing):
    """Caches that get longer."""

    def __init__(self, model, found, plan, encoder, first, config):
        super().__init__(model, found, plan, encoder, first, config)
        largest = [math.prod(self._cross_shape(c, plan.sources[1])) for c in found.crosses if c.present]
        # Where the engine of steps gives keys and values of the source again, or something in their place.
        self._nowhere = Buffer(self.memory, (max(largest),), np.float32) if largest else None

    def _cross_outputs(self, made, buffers):
        return buffers if made else [self._nowhere] * len(buffers)

    def _run(self, context, slot, tokens, at, logits, found=None):
        if not at and self._first:
            context, found = self._first, self._first_found
        super()._run(context, slot, tokens, at, logits, found)


class CrossedPages(_Crosses, Paged):
    """Caches in blocks. What the engine of steps gives of the source again is where it was."""

    def _run_one(self, context, slot, tokens, at, logits):
        """A run of one row, whose first tokens the other engine reads."""
        self._feed_source(context, self.found, slot)
        self._run(context, self._pages[slot : slot + 1], [at], np.array([tokens]), logits, branch=at > 0)

    def _read_first(self, slot, tokens):
        """The first tokens, by the engine that has no past; their keys and values go into blocks."""
        found, context, new = self._first_found, self._first, len(tokens)
        self._feed(context, np.array([tokens]), [0], new, np.ones((1, new)), found=found)
        self._feed_source(context, found, slot)
        made = []
        for cache in self.found.caches:
            made.append(Buffer(self.memory, (1, cache.heads, new, cache.head), self.model._dtypes[cache.past]))
            context.bind(next(n for n in presents_of(cache.past) if n in found.tensors), made[-1].address)
        context.bind(found.logits, self.first.address)
        context.run()
        for new_rows, buffer in zip(made, self._caches):
            self._put(slot, new_rows, buffer)

    def prefill(self, slot, tokens, at):
        self._keep(slot, at)
        self._own(slot, at, len(tokens))
        if not at and self._first:
            self._read_first(slot, tokens)
        else:
            self._run_one(self._prompt, slot, tokens, at, self.first.address)

    def step(self, begin, tokens, lengths):
        size = self.logits.nbytes // self.plan.slots
        for row, (token, length) in enumerate(zip(tokens, lengths)):
            if token >= 0:
                self._own(begin + row, int(length), 1)
                self._run_one(self._step, begin + row, [int(token)], int(length), self.logits.address + row * size)
