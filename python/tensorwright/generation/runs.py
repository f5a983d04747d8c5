# SPDX-License-Identifier: Apache-2.0
"""Runs of a decoder's engine over the caches of several sequences. Three kinds do the same: one buffer in which each sequence has a row
(Slots), caches of each sequence that get longer (Growing), and models without caches, which read all tokens each time (Whole). The two last ones
also with what an encoder has read (encoder.py)."""

from __future__ import annotations

import math

import numpy as np
import tensorrt as trt

from .._model import Model
from .build import ROWS, SMALLEST, Plan
from .interface import Interface


class Buffer:
    """Memory of the device, full of zeros."""

    def __init__(self, memory, shape, dtype):
        self.memory, self.shape, self.dtype = memory, tuple(shape), np.dtype(dtype)
        self.nbytes = self.dtype.itemsize * math.prod(self.shape)
        try:
            self.address, self._held = memory.zeros(self.nbytes)
        except MemoryError:
            size = f"{self.nbytes / 2**30:.1f} GiB for a tensor of the shape {list(self.shape)}"
            raise RuntimeError(f"there is no memory of {size}; fewer slots, or a smaller capacity, take less") from None

    def write(self, array, at=0):
        """Puts an array there, `at` elements from the start."""
        self.memory.write(self.address + at * self.dtype.itemsize, np.ascontiguousarray(array, self.dtype))

    def row(self, index: int):
        """One of the first dimension."""
        size = self.nbytes // self.shape[0]
        return self.memory.at(self.address + index * size, size).view(self.dtype).reshape(self.shape[1:])

    def read(self, shape=None):
        shape = self.shape if shape is None else shape
        return self.memory.at(self.address, self.dtype.itemsize * math.prod(shape)).view(self.dtype).reshape(shape)


class Context:
    """An execution context for one profile, with memory for what goes in."""

    def __init__(self, model: Model, profile: int):
        self.model, self.memory, self._shapes, self._addresses, self._feeds = model, model._memory, {}, {}, {}
        self.rehearses = False  # runs make ready what these shapes need, and nothing is run
        self.context = model.engine.create_execution_context()
        if self.context is None or not self.context.set_optimization_profile_async(profile, 0):
            raise model._logger.failure("no execution context could be made")
        self._hosted = {n: None for n in model.inputs if model.engine.is_shape_inference_io(n)}

    def feed(self, name: str, array) -> None:
        """The content of an input."""
        dtype = self.model._dtypes[name]
        array = np.ascontiguousarray(array, dtype).reshape(np.shape(array))
        if name in self._hosted:
            self._hosted[name] = array
            self.bind(name, array.ctypes.data, array.shape)
            return
        held = self._feeds.get(name)
        if held is None or held.nbytes < array.nbytes:
            held = self._feeds[name] = Buffer(self.memory, (max(1, array.size),), dtype)
        if array.size:
            held.write(array)
        self.bind(name, held.address, array.shape)

    def bind(self, name: str, address: int, shape=None) -> None:
        """Where a tensor is; of inputs the shape, too."""
        if shape is not None and self._shapes.get(name) != tuple(shape):
            if not self.context.set_input_shape(name, tuple(shape)):
                raise self.model._logger.failure(f"input {name!r} cannot have the shape {list(shape)}")
            self._shapes[name] = tuple(shape)
        if self._addresses.get(name) != address or name in self._hosted:
            self.context.set_tensor_address(name, address)
            self._addresses[name] = address

    def run(self) -> None:
        self.model._logger.errors.clear()
        if self.rehearses:
            self.context.infer_shapes()
            return
        if not self.context.execute_async_v3(0):
            raise self.model._logger.failure("the run failed")
        self.memory.wait(0)


class Runs:
    """What the three kinds share. `logits` are those of step(), `first` are those of prefill()."""

    kind = ""  # what caches are called
    kept = True  # whether the beginning of a finished sequence may be used again
    shares = False  # and that of one that goes on

    def __init__(self, model: Model, found: Interface, plan: Plan):
        self.model, self.found, self.plan, self.memory = model, found, plan, model._memory
        dtype = model._dtypes[found.logits]
        self.logits = Buffer(self.memory, (plan.slots, found.vocabulary), dtype)
        self.first = Buffer(self.memory, (1, found.vocabulary), dtype)
        new = found.tensors[found.ids].shape[1]
        if new > 1:
            raise ValueError(f"input {found.ids!r} takes {new} tokens at a time; 1, or any number, is expected")
        self.chunk = 1 if new == 1 else min(plan.chunk, plan.capacity)

    def prefill(self, slot: int, tokens: list[int], at: int) -> None:
        """Reads tokens of a prompt, the first of which is the sequence's number `at`; the logits of the last are in `first`."""
        raise NotImplementedError

    def step(self, begin: int, tokens, lengths) -> None:
        """Reads a token for each row from `begin` on, whose sequences had so many before; -1 for rows that take no part, whose tokens stay. The
        logits of the first of them are the first of `logits`."""
        raise NotImplementedError

    def reorder(self, parents: list[int]) -> None:
        """Row i becomes what row parents[i] was."""
        raise NotImplementedError

    def rehearse(self, rows, tokens) -> None:
        """Makes ready steps of so many rows and pieces of so many tokens, each a list, so that none is new when it comes."""
        contexts = [c for c in vars(self).values() if isinstance(c, Context)]
        for context in contexts:
            context.rehearses = True
        try:
            for count in rows:
                self.step(0, [-1] * count, [0] * count)
            for count in tokens:
                self.prefill(0, [0] * count, 0)
        finally:
            for context in contexts:
                context.rehearses = False
            self.release(0)

    def fits(self, tokens: list[int]) -> bool:
        """Whether there is room for sequences that get so long at most."""
        return True

    def release(self, slot: int) -> bool:
        """Gives up what a row has; whether others can have it."""
        return False

    def share(self, slot: int, source: int, tokens: int) -> None:
        """A row gets the first tokens of another one, which keeps them. Only where `shares`."""
        raise NotImplementedError

    def clear(self, slot: int) -> None:
        """Forgets what a row has: numbers that are none in it would be in all that is masked, too."""

    def open(self, slot: int, source) -> None:
        """A row's sequence is about a source (encoder.py). Others have none."""
        raise ValueError("the model has no encoder")

    def _feed_source(self, context: Context, found: Interface, slot: int) -> None:
        """What the inputs from an encoder are."""

    def _feed(self, context: Context, ids, lengths, new: int, mask, idle=False, room=0, found=None, branch=1) -> None:
        """What all inputs but the caches are. lengths: tokens of each row before this run; mask: its array; idle: rows that take no part, whose
        new keys go behind the `room` that there is, so nowhere; no key counts for them where the model is told how many do; found, branch: of
        another engine than that of steps, or another half of it."""
        found, lengths = found or self.found, np.asarray(lengths, np.int32)
        index, counts = np.where(idle, room, lengths), np.where(idle, 0, lengths + new)
        context.feed(found.ids, ids)
        if found.mask:
            context.feed(found.mask, mask)
        for name, window in found.masks:
            context.feed(name, self._mask_of_each(found, name, window, lengths, new))
        if found.places:
            places = lengths[:, None] + np.arange(new, dtype=np.int32)  # of texts alike in all three: time, height, width
            context.feed(found.places, np.broadcast_to(places, (3, *places.shape)) if len(found.tensors[found.places].shape) == 3 else places)
        for name, value in ((found.index, index), (found.lengths, counts), (found.last, lengths + new - 1)):
            if name:
                context.feed(name, value.reshape(-1, *found.tensors[name].shape[1:]))
        if found.order:
            context.feed(found.order, lengths[0] + np.arange(new, dtype=np.int32))
        windows = ((name, found.window) for name in found.windows)
        counts = ((name, int(lengths.max())) for name in found.counts)
        for name, value in ((found.total, int(lengths.max()) + new), (found.branch, branch), *windows, *counts):
            if name:
                context.feed(name, np.full((1,)[: len(found.tensors[name].shape)], value))

    def _mask_of_each(self, found: Interface, name: str, window: int, lengths, new: int):
        """[rows, 1, new, columns]: what each new token sees; of numbers, 0 is what it sees."""
        columns, places = np.arange(found.tensors[name].shape[3]), (np.reshape(lengths, (-1, 1)) + np.arange(new))[:, :, None]
        seen = columns <= places
        if window:
            seen &= columns > places - window
        dtype = self.model._dtypes[name]
        return (np.where(seen, 0, np.finfo(dtype).min) if np.issubdtype(dtype, np.floating) else seen)[:, None]


class Slots(Runs):
    """One buffer for each cache, [slots, heads, tokens, head], in place. The tokens that it has room for double when they have to."""

    kind = "slots"

    def __init__(self, model, found, plan):
        super().__init__(model, found, plan)
        self._step, self._prompt = Context(model, 0), Context(model, 1)
        self._single = Context(model, 2) if model.engine.num_optimization_profiles > 2 else self._step
        fixed = found.caches[0].capacity
        self._deep = plan.deep if found.grafted else plan.most
        self.room = fixed if fixed > 0 else min(SMALLEST, self._deep)
        self.empty(self.room)

    def empty(self, room: int, slots: int = 0) -> None:
        """Caches with room for so many tokens, and nothing in them. slots: fewer than there are, from the first on."""
        self.room = room
        self._caches = [self._made(c, room, slots) for c in self.found.caches]

    def _made(self, cache, room, slots=0):
        return Buffer(self.memory, (slots or self.plan.slots, cache.heads, room, cache.head), self.model._dtypes[cache.past])

    def grow(self, tokens: int) -> None:
        """Makes room for so many tokens in each row."""
        if tokens <= self.room:
            return
        room = self.room
        while room < tokens:
            room *= 2
        # Beyond `deep` there is no room for a piece of a prompt behind them.
        room = min(room, self._deep if tokens <= self._deep else self.plan.most)
        caches = [self._made(cache, room) for cache in self.found.caches]  # all or none, where memory does not suffice
        for cache, old, new in zip(self.found.caches, self._caches, caches):
            size = cache.head * old.dtype.itemsize
            for row in range(self.plan.slots * cache.heads):
                self.memory.copy(new.address + row * room * size, old.address + row * self.room * size, self.room * size)
        self._caches, self.room = caches, room

    def _mask(self, lengths, new):
        """Ones at what a row has and at what is new. A grafted engine has the new tokens behind the cache, others in it."""
        columns = np.arange(self.room + new if self.found.grafted else self.room)
        if self.found.grafted:
            return (columns < np.reshape(lengths, (-1, 1))) | (columns >= self.room)
        return columns < np.reshape(lengths, (-1, 1)) + new

    def _run(self, context, slot, rows, lengths, ids, logits, idle=False):
        new = ids.shape[1]
        self._feed(context, ids, lengths, new, self._mask(lengths, new) if self.found.mask else None, idle, self.room)
        for cache, buffer in zip(self.found.caches, self._caches):
            address = buffer.address + slot * (buffer.nbytes // buffer.shape[0])
            context.bind(cache.past, address, (rows, *buffer.shape[1:]))
            context.bind(cache.present, address)
        context.bind(self.found.logits, logits)
        context.run()

    def prefill(self, slot, tokens, at):
        self.grow(at + len(tokens))
        if self.room <= self._deep or self.found.caches[0].capacity > 0:
            self._run(self._prompt, slot, 1, [at], np.array([tokens]), self.first.address)
            return
        for i, token in enumerate(tokens):
            self._run(self._single, slot, 1, [at + i], np.array([[token]]), self.first.address)

    def step(self, begin, tokens, lengths):
        self.grow(int(np.max(lengths)) + 1)
        # What rows without a part compute goes nowhere: it may be no number. A model without an index has it behind their tokens.
        idle = np.asarray(tokens) < 0
        ids = np.where(idle, np.max(tokens), tokens).reshape(-1, 1)
        context = self._single if len(tokens) == 1 else self._step
        self._run(context, begin, len(tokens), lengths, ids, self.logits.address, idle)

    def reorder(self, parents):
        if parents == list(range(len(parents))):
            return
        for i, cache in enumerate(self.found.caches):
            old, new = self._caches[i], self._made(cache, self.room)
            size = old.nbytes // self.plan.slots
            for row, parent in enumerate(parents):
                self.memory.copy(new.address + row * size, old.address + parent * size, size)
            self._caches[i] = new

    def clear(self, slot):
        for buffer in self._caches:
            size = buffer.nbytes // self.plan.slots
            self.memory.clear(buffer.address + slot * size, size)


class Growing(Runs):
    """Caches of each sequence by itself. A run's outputs are the inputs of the next one."""

    kind = "growing"
    kept = False

    def __init__(self, model, found, plan):
        super().__init__(model, found, plan)
        self._step, self._prompt = Context(model, 0), Context(model, 1)
        self._of = [None] * plan.slots  # (tokens, buffers)

    def _run(self, context, slot, tokens, at, logits, found=None):
        """found: of another engine than that of steps."""
        found, new = found or self.found, len(tokens)
        self._feed(context, np.array([tokens]), [at], new, np.ones((1, at + new)), found=found, branch=at > 0 or not self.found.crossed)
        self._feed_source(context, found, slot)
        before, after = self._of[slot] if at else None, []
        for i, cache in enumerate(self.found.caches):
            dtype = self.model._dtypes[cache.past]
            after.append(Buffer(self.memory, (1, cache.heads, at + new, cache.head), dtype))
            past = before[i] if at else after[-1]
            if cache.past in found.tensors:
                context.bind(cache.past, past.address, (1, cache.heads, at, cache.head))
            context.bind(cache.present, after[-1].address)
        context.bind(found.logits, logits)
        context.run()
        self._of[slot] = after

    def prefill(self, slot, tokens, at):
        if at <= self.plan.deep:
            self._run(self._prompt, slot, tokens, at, self.first.address)
            return
        for i, token in enumerate(tokens):
            self._run(self._step, slot, [token], at + i, self.first.address)

    def step(self, begin, tokens, lengths):
        size = self.logits.nbytes // self.plan.slots
        for row, (token, length) in enumerate(zip(tokens, lengths)):
            if token >= 0:
                self._run(self._step, begin + row, [int(token)], int(length), self.first.address)
                self.memory.copy(self.logits.address + row * size, self.first.address, size)

    def reorder(self, parents):
        rows = [self._of[p] for p in parents]
        self._of[: len(rows)] = rows


class Whole(Runs):
    """Models without caches."""

    kind = "whole"
    kept = False

    def __init__(self, model, found, plan):
        super().__init__(model, found, plan)
        if self.chunk == 1:
            raise ValueError("the model takes one token at a time and has no cache; it cannot know what came before")
        self._context = Context(model, 0)
        self._tokens = [[] for _ in range(plan.slots)]

    def _run(self, slot, tokens, at, logits):
        all_tokens = self._tokens[slot] = self._tokens[slot][:at] + [int(t) for t in tokens]
        self._feed(self._context, np.array([all_tokens]), [0], len(all_tokens), np.ones((1, len(all_tokens))))
        self._feed_source(self._context, self.found, slot)
        self._context.bind(self.found.logits, logits)
        self._context.run()

    def prefill(self, slot, tokens, at):
        self._run(slot, tokens, at, self.first.address)

    def step(self, begin, tokens, lengths):
        size = self.logits.nbytes // self.plan.slots
        for row, (token, length) in enumerate(zip(tokens, lengths)):
            if token >= 0:
                self._run(begin + row, [token], int(length), self.first.address)
                self.memory.copy(self.logits.address + row * size, self.first.address, size)

    def reorder(self, parents):
        rows = [self._tokens[p] for p in parents]
        self._tokens[: len(rows)] = [list(r) for r in rows]


def grows(model: Model, found: Interface, plan: Plan) -> bool:
    """Whether an engine's caches come out longer than they went in."""
    if found.grafted:
        return False
    context = Context(model, 1)
    past = found.caches[0].capacity if found.caches[0].capacity > 0 else min(SMALLEST, plan.deep)
    for name, shape in found.shapes(1, 1, past, False).items():
        if -1 in found.tensors[name].shape and not model.engine.is_shape_inference_io(name):
            context.context.set_input_shape(name, shape)
    return tuple(context.context.get_tensor_shape(found.caches[0].present))[2] != past


def least(model: Model, found: Interface) -> int:
    """The fewest tokens of a cache that an engine takes."""
    return model.engine.get_tensor_profile_shape(found.caches[0].past, 1)[0][2]


def logits_behind(runs: Runs, count: int, together: int) -> np.ndarray:
    """Behind so many tokens, the same each time, that are read so many at a time."""
    tokens = [int(t) for t in np.random.default_rng(0).integers(0, runs.found.vocabulary, count)]
    for at in range(0, count, together):
        runs.prefill(0, tokens[at : at + together], at)
    return runs.first.read().astype(np.float64)


def are_alike(results: list[np.ndarray]) -> bool:
    """Whether logits are the first ones, but for rounding."""
    scale = np.abs(results[0]).max() or 1.0
    return all(np.abs(r - results[0]).max() <= 0.02 * scale for r in results)


def masks_well(runs: Slots) -> bool:
    """Whether what is masked does not count: a model that takes positions from the size of its cache, or has a window over it, would be wrong
    here. Some tokens are read one by one in caches of several sizes, and together."""
    if runs.found.caches[0].capacity > 0:
        return True
    count, usual, results = min(5, runs.plan.most), runs.room, []
    for room, together in ((count, 1), (usual, 1), (usual, min(count, runs.chunk)), (runs.plan.most, 1)):
        runs.empty(room, 1)
        results.append(logits_behind(runs, count, together))
    runs.empty(usual)
    return are_alike(results)


def reads_well(runs: Runs) -> bool:
    """Whether tokens that are read one by one, and together, end in the same logits."""
    count = min(ROWS + 5, runs.plan.most)
    results = [logits_behind(runs, count, together) for together in (1, min(count, runs.chunk))]
    runs.release(0)
    return are_alike(results)
