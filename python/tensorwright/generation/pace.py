# SPDX-License-Identifier: Apache-2.0
"""How much of prompts is read between two steps, so that no sequence waits long for its next token: as much as takes no longer than steps do, and less where
sequences have become used to less."""

from __future__ import annotations

# Steps' times that prompts may take between two of them.
_PATIENCE = 1.5
# The longest time between two tokens of a sequence, in times of what it is used to: prompts that come all at once are read little by little.
_WORST_GAP = 3.0
# Of what steps and gaps usually are, the share of the newest one: sequences remember some twenty gaps.
_NEWEST_STEP, _NEWEST_GAP = 0.3, 0.05
# What takes more times what is usual does so by chance, and counts as no more.
_SURPRISE = 2.0
# Tokens of the shortest piece that is worth a run, where there are more.
_LEAST = 16


class Pace:
    """What steps and pieces have taken. Pieces are of 16, 32, ... tokens, `chunk` at most: on GPUs long ones take as long as short ones, on CPUs
    twice the tokens take twice the time."""

    def __init__(self, chunk: int):
        self.sizes = [chunk]
        while self.sizes[0] > _LEAST:
            self.sizes.insert(0, max(_LEAST, self.sizes[0] // 2))
        self._seconds: dict[int, float] = {}
        self._step = 0.0

    def stepped(self, seconds: float) -> None:
        self._step = _moved(self._step, seconds, _NEWEST_STEP)

    def read(self, size: int, tokens: int, seconds: float) -> None:
        """A piece of that size has been read, which a prompt's end may have made shorter."""
        if tokens * 4 > size * 3:
            known = self._seconds.get(size, seconds)
            self._seconds[size] = min(seconds, 1.1 * known)  # what took long by chance is forgotten at once

    def room(self, gap: float = 0.0) -> float:
        """Seconds that prompts may take now. gap: the shortest time between tokens that a sequence is used to; 0: none is used to any."""
        room = _PATIENCE * self._step
        return min(room, max(0.0, _WORST_GAP * gap - self._step)) if gap else room

    def piece(self, left: float, growth: float = 2.0) -> int:
        """The longest piece for that many seconds; 0: none. growth: what nobody has tried takes so many times what half of it does."""
        fitting, seconds = 0, 0.0
        for size in self.sizes:
            seconds = self._seconds.get(size, growth * seconds)
            if seconds <= left:
                fitting = size
            elif size in self._seconds:
                self._seconds[size] *= 0.999  # it may be tried again, once
        return fitting

    def shortest(self) -> int:
        """A piece that is read whatever it takes: the longest that takes about as long as the shortest."""
        return self.piece(1.25 * self._seconds.get(self.sizes[0], 0.0), 1.25) or self.sizes[0]


def usual_gap(usual: float, newest: float) -> float:
    """What time between tokens a sequence is used to, after one more of them."""
    return _moved(usual, newest, _NEWEST_GAP)


def _moved(usual: float, newest: float, share: float) -> float:
    return usual + share * (min(newest, _SURPRISE * usual) - usual) if usual else newest
