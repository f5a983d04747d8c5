# SPDX-License-Identifier: Apache-2.0
"""Caches in blocks of 16 tokens for all sequences together: a sequence gets blocks as it grows, and those that begin alike have their beginning
once, until one of them writes to a block of it."""

from __future__ import annotations

import numpy as np

from .._model import Model
from .build import ROWS, Plan, blocks_of
from .interface import Interface
from .runs import Buffer, Context, Runs


class Blocks:
    """Which blocks are free, and how many sequences have each of the others."""

    def __init__(self, count: int):
        self.count, self.users = count, [0] * count
        self._free = list(range(count))[::-1]

    @property
    def used(self) -> int:
        return self.count - len(self._free)

    def take(self) -> int | None:
        """A block of nobody's; None: there is none."""
        if not self._free:
            return None
        block = self._free.pop()
        self.users[block] = 1
        return block

    def share(self, blocks) -> None:
        for block in blocks:
            self.users[block] += 1

    def drop(self, blocks) -> None:
        for block in blocks:
            self.users[block] -= 1
            if not self.users[block]:
                self._free.append(block)


class Paged(Runs):
    """One buffer for each cache, [blocks, heads, 16, head], in place."""

    kind = "paged"
    shares = True

    def __init__(self, model: Model, found: Interface, plan: Plan):
        super().__init__(model, found, plan)
        self._step, self._prompt = Context(model, 0), Context(model, 1)
        self._single = Context(model, 2) if model.engine.num_optimization_profiles > 2 else self._step
        self.blocks = Blocks(plan.blocks)
        # reclaim() gives up blocks that only the beginnings of sequences to come may want; False: there are none.
        self.reclaim = lambda: False
        self._tables = [[] for _ in range(plan.slots)]
        count = found.tensors[found.pages].shape[1]
        self._pages = np.full((plan.slots, count), -1, np.int32)  # the same for the engine
        shapes = [(plan.blocks, c.heads, ROWS, c.head) for c in found.caches]
        self._caches = [Buffer(self.memory, s, model._dtypes[c.past]) for c, s in zip(found.caches, shapes)]
        self._columns = np.arange(count * ROWS)

    # ---- whose blocks are whose

    def fits(self, tokens: list[int]) -> bool:
        return sum(blocks_of(n) for n in tokens) <= self.blocks.count

    def release(self, slot: int) -> bool:
        return self._keep(slot, 0)

    def share(self, slot: int, source: int, tokens: int) -> None:
        self.release(slot)
        self._set(slot, self._tables[source][: blocks_of(tokens)])
        self.blocks.share(self._tables[slot])

    def reorder(self, parents: list[int]) -> None:
        tables = [self._tables[p] for p in parents]
        for table in tables:
            self.blocks.share(table)
        for row, table in enumerate(tables):
            self.blocks.drop(self._tables[row])
            self._set(row, table)

    def _set(self, slot: int, table: list[int]) -> None:
        self._tables[slot] = list(table)
        self._pages[slot] = -1
        self._pages[slot, : len(table)] = table

    def _keep(self, slot: int, tokens: int) -> bool:
        """Gives up what a row has behind its first tokens; whether it had any."""
        count = blocks_of(tokens)
        rest = self._tables[slot][count:]
        if rest:
            self.blocks.drop(rest)
            self._set(slot, self._tables[slot][:count])
        return bool(rest)

    def _take(self) -> int:
        while (block := self.blocks.take()) is None:
            if not self.reclaim():
                raise RuntimeError(f"the {self.blocks.count} blocks of the caches are all in use")
        return block

    def _own(self, slot: int, at: int, count: int) -> None:
        """A row gets blocks for tokens from `at` on, which nobody else has."""
        table = self._tables[slot]
        for page in range(at // ROWS, blocks_of(at + count)):
            if page < len(table) and self.blocks.users[table[page]] == 1:
                continue
            block = self._take()
            if page < len(table):
                self._copy(block, table[page])
                self.blocks.drop([table[page]])
                table[page] = block
            else:
                table.append(block)
            self._pages[slot, page] = block

    def _copy(self, target: int, source: int) -> None:
        for buffer in self._caches:
            size = buffer.nbytes // self.blocks.count
            self.memory.copy(buffer.address + target * size, buffer.address + source * size, size)

    def _put(self, slot: int, rows: Buffer, buffer: Buffer) -> None:
        """The first tokens of a row, [1, heads, tokens, head], into its blocks of a cache."""
        _, heads, count, head = rows.shape
        size = head * rows.dtype.itemsize
        for page in range(blocks_of(count)):
            here = min(ROWS, count - page * ROWS)
            for h in range(heads):
                target = buffer.address + (self._tables[slot][page] * heads + h) * ROWS * size
                self.memory.copy(target, rows.address + (h * count + page * ROWS) * size, here * size)

    # ---- runs

    def _run(self, context, pages, lengths, ids, logits, idle=False, branch=1):
        new, found = ids.shape[1], self.found
        mask = self._columns < np.reshape(lengths, (-1, 1)) + new if found.mask else None
        self._feed(context, ids, lengths, new, mask, idle, branch=branch)
        context.feed(found.pages, pages)
        for cache, buffer in zip(found.caches, self._caches):
            context.bind(cache.past, buffer.address, buffer.shape)
            context.bind(cache.present, buffer.address)
        context.bind(found.logits, logits)
        context.run()

    def prefill(self, slot, tokens, at):
        self._keep(slot, at)
        self._own(slot, at, len(tokens))
        self._run(self._prompt, self._pages[slot : slot + 1], [at], np.array([tokens]), self.first.address)

    def step(self, begin, tokens, lengths):
        idle = np.asarray(tokens) < 0
        for row in np.flatnonzero(~idle):
            self._own(begin + int(row), int(lengths[row]), 1)
        pages = np.where(idle[:, None], -1, self._pages[begin : begin + len(tokens)])  # others write nowhere
        ids = np.where(idle, np.max(tokens), tokens).reshape(-1, 1)
        context = self._single if len(tokens) == 1 else self._step
        self._run(context, pages, lengths, ids, self.logits.address, idle)

