# SPDX-License-Identifier: Apache-2.0
"""Large work on the event loop in small pieces, one each time that the loop looks for what has come: what takes little never waits for more
than one piece, however many clients ask for much, and has most of the time."""

import asyncio
import collections
import time

# Seconds of pause for each second of large work; those that are owed before one is made, as timers are no finer than a millisecond; the
# time behind the last request in which there are pauses.
_PAUSE, _OWED, _BUSY = 4.0, 0.002, 0.1


class Turns:
    """Who has another piece to do awaits next() before it and tells spent() how long it took. Turns come in the order of asking."""

    def __init__(self):
        self._waiting, self._giving, self._owed, self._asked = collections.deque(), False, 0.0, 0.0

    def asked(self):
        """A request is there as a whole: others may follow it soon."""
        self._asked = time.monotonic()

    def next(self):
        """A future that is done when it is the caller's turn."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if not self._giving:
            self._giving = True
            loop.call_soon(self._give)
        return turn

    def spent(self, begin):
        """A piece is done that was begun at that time of time.monotonic()."""
        self._owed += _PAUSE * (time.monotonic() - begin)

    def _give(self):
        loop = asyncio.get_running_loop()
        if self._owed > _OWED:
            owed, self._owed = self._owed, 0.0
            if time.monotonic() - self._asked < _BUSY:
                loop.call_later(owed, self._give)
                return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # its client has gone
                turn.set_result(None)
                break
        self._giving = bool(self._waiting)
        if self._giving:
            loop.call_soon(self._give)
