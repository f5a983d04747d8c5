# SPDX-License-Identifier: Apache-2.0
"""Many sequences at a time: each has a slot, all slots with a sequence take a step together, and prompts are read a piece between steps."""

from __future__ import annotations

import collections
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .pace import Pace, usual_gap
from .rules import forced, rules_of
from .runs import Buffer, Runs
from .sampling import Rows, Sampler
from .settings import Settings
from .text import Growing, Stops, Tokenizer

# Tokens that a slot has to know of a prompt to be worth more than being near to others.
_WORTH = 16


@dataclass
class Piece:
    """A token that has been chosen, and the text that may be shown since. token None: text alone, at the end. reason: why it is the last
    one: "stop" (an end token or a stop string), "length", "cancelled", "error"; error: what a failed run said."""

    token: int | None
    text: str = ""
    logprob: float = 0.0
    top: list[tuple[int, float]] = field(default_factory=list)
    reason: str | None = None
    error: str | None = None


@dataclass(eq=False)
class Sequence:
    """A request for one sequence. emit(piece) is called for each piece, by who steps the scheduler. number: among those of its seed; source:
    what an encoder has to read, until it has."""

    prompt: list[int]
    settings: Settings
    emit: Callable[[Piece], None]
    client: str = ""
    number: int = 0
    source: object = None
    cancelled: bool = False
    arrived: float = field(default_factory=time.monotonic)

    def cancel(self) -> None:
        """Frees its slot before the next step."""
        self.cancelled = True


class _Waiting:
    """Sequences that wait, by client: each client has its turn."""

    def __init__(self):
        self._clients: collections.OrderedDict[str, collections.deque] = collections.OrderedDict()
        self.count = 0

    def __iter__(self):
        return (sequence for queue in self._clients.values() for sequence in queue)

    def add(self, sequence: Sequence) -> None:
        self._clients.setdefault(sequence.client, collections.deque()).append(sequence)
        self.count += 1

    def next(self, fits: Callable[[Sequence], bool]) -> Sequence | None:
        """The sequence whose turn it is. One that does not fit yet keeps its turn."""
        while self._clients:
            client, queue = next(iter(self._clients.items()))
            if not queue[0].cancelled and not fits(queue[0]):
                return None
            sequence = queue.popleft()
            self.count -= 1
            if queue:
                self._clients.move_to_end(client)
            else:
                del self._clients[client]
            if not sequence.cancelled:
                return sequence
            sequence.emit(Piece(None, reason="cancelled"))
        return None

    def drop_cancelled(self) -> None:
        for client in list(self._clients):
            queue = self._clients[client]
            kept = collections.deque()
            for sequence in queue:
                if sequence.cancelled:
                    self.count -= 1
                    sequence.emit(Piece(None, reason="cancelled"))
                else:
                    kept.append(sequence)
            if kept:
                self._clients[client] = kept
            else:
                del self._clients[client]


class _Slot:
    """A row of the caches. tokens: those of its sequence; read: how many of them the cache has, also when the sequence has ended."""

    def __init__(self, number: int):
        self.number, self.sequence, self.tokens, self.read, self.ready = number, None, [], 0, False
        self.text, self.stops, self.rows, self.rules, self.used = None, None, None, None, 0
        # Whether the sampler has to be told of its sequence, or that it has ended.
        self.fresh, self.left = False, False
        self.gap = 0.0  # seconds between tokens that its sequence is used to


class Scheduler:
    """step() moves everything on: it frees slots of those that are cancelled, gives free ones away, reads pieces of prompts, and
    chooses a token for each sequence whose prompt has been read. Whoever calls it does so alone."""

    def __init__(self, runs: Runs, sampler: Sampler, tokenizer: Tokenizer | None, ends: tuple[int, ...], reuse: bool = True):
        self.runs, self.sampler, self.tokenizer = runs, sampler, tokenizer
        self.ends, self.reuse = frozenset(ends), reuse and runs.kept
        self.capacity = runs.plan.capacity
        self._slots = [_Slot(i) for i in range(runs.plan.slots)]
        self._waiting, self._clock = _Waiting(), 0
        self._rows, self._one = Rows(runs.memory, runs.plan.slots, self.capacity), Rows(runs.memory, 1, self.capacity)
        self._pace = Pace(runs.chunk)
        if runs.shares:
            runs.reclaim = self._reclaim
        self._chosen: float | None = None  # when the step before has brought tokens
        self._base = 0  # the slot that the first of _rows is of
        self.reused = 0  # tokens of prompts that did not have to be read

    def submit(self, sequence: Sequence) -> None:
        self._waiting.add(sequence)

    @property
    def waiting(self) -> int:
        return self._waiting.count

    @property
    def running(self) -> int:
        return sum(s.sequence is not None for s in self._slots)

    def step(self) -> bool:
        """Whether there is more to do."""
        try:
            self._step()
        except Exception as error:  # an engine that fails ends those that were in it, and nobody else
            for slot in self._slots:
                if slot.sequence:
                    self._end(slot, Piece(None, reason="error", error=str(error)))
                self._forget(slot)
        return bool(self.running or self._waiting.count)

    def cancel_all(self) -> None:
        for sequence in [*self._waiting, *(s.sequence for s in self._slots if s.sequence)]:
            sequence.cancel()
        self.step()

    def rehearse(self) -> None:
        """Makes ready what steps and pieces of prompts need, for nobody to wait for it later. Nothing may run."""
        if self.runs.kept:
            slots = len(self._slots)
            self.runs.rehearse(sorted({min(_bucket(n), slots) for n in range(1, slots + 1)}), self._pace.sizes)

    def idle(self) -> None:
        """Steps until nothing is left, and forgets what caches hold."""
        while self.step():
            pass
        for slot in self._slots:
            self._forget(slot)

    def _step(self) -> None:
        for slot in self._slots:
            if slot.sequence and slot.sequence.cancelled:
                self._end(slot, Piece(None, reason="cancelled"))
        self._waiting.drop_cancelled()
        while any(s.sequence is None for s in self._slots):
            sequence = self._waiting.next(self._fits)
            if sequence is None:
                break
            self._begin(sequence)
        self._read_prompts()
        begin, before = time.perf_counter(), self._chosen
        self._chosen = None
        if self._choose():
            self._chosen = now = time.perf_counter()
            self._pace.stepped(now - begin)
            for slot in self._slots if before is not None else ():
                if slot.ready and len(slot.tokens) > len(slot.sequence.prompt) + 2:  # its first gap has no step before it
                    slot.gap = usual_gap(slot.gap, now - before)

    def _longest(self, sequence: Sequence) -> int:
        """Tokens that a sequence has at most."""
        return min(sequence.settings.limit(len(sequence.prompt)), self.capacity)

    def _fits(self, sequence: Sequence) -> bool:
        """Whether there is room for a sequence until its end, beside those that run: none has to give way to another."""
        return self.runs.fits([self._longest(s) for s in (sequence, *(s.sequence for s in self._slots if s.sequence))])

    def _reclaim(self) -> bool:
        """Gives up what is kept of the sequence that ended first of all; False: there is nothing."""
        for slot in sorted((s for s in self._slots if not s.sequence), key=lambda s: s.used):
            slot.tokens, slot.read = [], 0
            if self.runs.release(slot.number):
                return True
        return False

    def _begin(self, sequence: Sequence) -> None:
        """Gives a sequence a free slot: one that knows much of its prompt, else one near to those in use, as steps are for all rows between."""
        free = [s for s in self._slots if s.sequence is None]
        common = {s.number: _common(s.tokens, sequence.prompt, s.read) if self.reuse else 0 for s in free}
        slot = max(free, key=lambda s: common[s.number])
        if common[slot.number] < _WORTH:
            used = [s.number for s in self._slots if s.sequence]
            slot = min(free, key=lambda s: (_bucket(_span([*used, s.number])), s.read > 0, s.used, s.number))
        known = common[slot.number]
        if self.reuse and self.runs.shares:
            source, most = self._known_by_others(sequence.prompt)
            if most > known and most >= _WORTH:
                self.runs.share(slot.number, source, most)
                known = most
        slot.read = min(known, len(sequence.prompt) - 1)
        self.reused += slot.read
        slot.sequence, slot.tokens, slot.ready, slot.gap = sequence, list(sequence.prompt), False, 0.0
        slot.rows = sequence.settings.rows(len(sequence.prompt), self.capacity, sequence.number)
        slot.rules = rules_of(sequence.settings, sequence.prompt if sequence.source is None else sequence.source)
        self._clock += 1
        slot.used = self._clock
        slot.text = Growing(self.tokenizer) if self.tokenizer else None
        slot.stops = Stops(sequence.settings.stop)

    def _known_by_others(self, prompt: list[int]) -> tuple[int, int]:
        """The row of a sequence that goes on and knows most of a prompt, and how much."""
        known = {s.number: _common(s.tokens, prompt, s.read) for s in self._slots if s.sequence}
        return max(known.items(), key=lambda k: k[1], default=(0, 0))

    def _read_prompts(self) -> None:
        """Pieces of prompts, which take turns, so that a long one holds up no short one; one at least."""
        begin = now = time.perf_counter()
        held_up, size = any(s.ready for s in self._slots), 0
        gap = min((s.gap for s in self._slots if s.ready and s.gap), default=0.0)
        while reading := [s for s in self._slots if s.sequence and not s.ready]:
            if held_up:
                size = self._pace.piece(begin + self._pace.room(gap) - now) or (0 if size else self._pace.shortest())
            else:
                size = 0 if size else self.runs.chunk
            if not size:
                return
            count, before = self._read(min(reading, key=lambda s: s.used), size), now
            now = time.perf_counter()
            self._pace.read(size, count, now - before)

    def _read(self, slot: _Slot, most: int) -> int:
        """A piece of a prompt; how many tokens it had. Behind the last one comes the first token."""
        self._clock += 1
        slot.used = self._clock
        if slot.sequence.source is not None:
            self.runs.open(slot.number, slot.sequence.source)
            slot.sequence.source = None
            return 0
        tokens = slot.tokens[slot.read : slot.read + most]
        self.runs.prefill(slot.number, tokens, slot.read)
        slot.read += len(tokens)
        if slot.read < len(slot.tokens):
            return len(tokens)
        sequence = slot.sequence
        self._rule(slot, self.runs.first, 0)
        self._one.set(0, slot.tokens, len(sequence.prompt), *slot.rows)
        token, over, logprob = (x[0] for x in self.sampler.choose(self._one, 1, self.runs.first.address, True))
        logits = self.runs.first.read()[0] if sequence.settings.logprobs else None
        slot.ready = slot.fresh = True
        self._take(slot, token, over, logprob, logits)
        return len(tokens)

    def _choose(self) -> bool:
        """A token for each sequence that is ready; whether there is one."""
        ready = [s for s in self._slots if s.ready]
        if not ready:
            return False
        begin, count = self._range([s.number for s in ready])
        rows = self._slots[begin : begin + count]
        # A row that takes no part may be written to behind what it has; a full one has no such place, so it loses its last token.
        for slot in rows:
            slot.read = min(slot.read, self.capacity - 1)
        self.runs.step(begin, [s.tokens[s.read] if s.ready else -1 for s in rows], [s.read for s in rows])
        for row, slot in enumerate(rows):
            if slot.ready and (slot.fresh or begin != self._base):
                self._rows.set(row, slot.tokens, len(slot.sequence.prompt), *slot.rows)
                slot.fresh = False
            elif not slot.ready and (slot.left or begin != self._base):
                self._rows.free(row)
            slot.left = False
            if slot.ready:
                self._rule(slot, self.runs.logits, row)
        self._base = begin
        token, over, logprob = self.sampler.choose(self._rows, count, self.runs.logits.address)
        asked = any(s.sequence.settings.logprobs for s in ready)
        logits = self.runs.logits.read((count, self.runs.found.vocabulary)) if asked else [None] * count
        for row, slot in enumerate(rows):
            if slot.ready:
                slot.read += 1
                self._take(slot, token[row], over[row], logprob[row], logits[row])
        return True

    @staticmethod
    def _rule(slot: _Slot, logits: Buffer, row: int) -> None:
        """What rules that the sampler does not have make of a row of logits."""
        if slot.rules:
            logits.write(slot.rules.changed(logits.row(row), slot.tokens), row * logits.shape[1])

    def _range(self, numbers: list[int]) -> tuple[int, int]:
        """(first row, how many) of a step: all between, and as many as engines run at."""
        count = min(_bucket(_span(numbers)), len(self._slots))
        return min(numbers[0], len(self._slots) - count), count

    def _take(self, slot: _Slot, token: int, over: int, logprob: float, logits) -> None:
        """What becomes of a chosen token."""
        sequence, settings = slot.sequence, slot.sequence.settings
        last = forced(settings, len(sequence.prompt), len(slot.tokens))
        if last is not None:
            token, logprob = last, 0.0
        if not math.isfinite(logprob):  # no token may come: numbers that are none
            slot.ready = False  # as if nothing had been read
            self._end(slot, Piece(None, reason="error", error="the model gave no number for any token that may come"))
            return
        slot.tokens.append(token)
        ended = token in self.ends or token in settings.stop_token_ids
        text = slot.text.add(token) if slot.text and not ended else ""
        piece = Piece(token, slot.stops.add(text), logprob, _best(logits, settings.logprobs) if settings.logprobs else [])
        if ended or slot.stops.found:
            piece.reason = "stop"
        elif over or len(slot.tokens) >= self.capacity:
            piece.reason = "length"
        if not piece.reason:
            sequence.emit(piece)
            return
        if slot.text and not slot.stops.found:
            piece.text += slot.stops.add(slot.text.end())
            piece.reason = "stop" if slot.stops.found else piece.reason
            piece.text += slot.stops.end()
        self._end(slot, piece)

    def _end(self, slot: _Slot, piece: Piece) -> None:
        sequence = slot.sequence
        slot.sequence = slot.text = slot.stops = None
        slot.tokens = slot.tokens[: slot.read]
        slot.left = True
        if not slot.ready:  # no token has shown that what was read are numbers
            self.runs.clear(slot.number)
        if not self.reuse or not slot.ready:
            self._forget(slot)
        slot.ready = False
        sequence.emit(piece)

    def _forget(self, slot: _Slot) -> None:
        slot.tokens, slot.read = [], 0
        self.runs.release(slot.number)


def _span(numbers: list[int]) -> int:
    return max(numbers) - min(numbers) + 1


def _bucket(rows: int) -> int:
    """As many, or up to a fifth more: engines run at few sizes, 1 to 8, 10, 12, 14, 16, 20, ..."""
    unit = 1 << max(0, (rows - 1).bit_length() - 3)
    return -(-rows // unit) * unit


def _common(known: list[int], prompt: list[int], most: int) -> int:
    """Tokens that both begin with, of the first `most` that a slot has."""
    count = 0
    for a, b in zip(known[:most], prompt):
        if a != b:
            break
        count += 1
    return count


def _best(logits, count: int) -> list[tuple[int, float]]:
    """The tokens with the largest log probabilities."""
    x = logits.astype(np.float64)
    x = np.where(np.isnan(x), -np.inf, x)
    x = x - x.max() - np.log(np.exp(x - x.max()).sum())
    count = min(count, len(x))
    best = np.argpartition(-x, count - 1)[:count]
    return [(int(i), float(x[i])) for i in sorted(best, key=lambda i: (-x[i], i))]
