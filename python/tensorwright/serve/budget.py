# SPDX-License-Identifier: Apache-2.0
"""What clients may hold of a server: bytes that have arrived, of both protocols together, and connections. What a client promises
counts nothing, and what it leaves unfinished is given up: after a time without progress, or when others need its place."""

import asyncio
import collections
import os
import socket
import time

from .tensors import RequestError

# Bytes that are progress. A client that sends less in the time it has is as one that sends nothing.
PROGRESS = 4096
# Bytes of a connection that are read before others have their turn; asyncio's own 256 KiB of many connections would be felt.
READ = 1 << 16
# Connections that wait to be taken, and that are taken before others have their turn.
_WAITING, _TAKEN = 1024, 1


async def listen(factory, host, port):
    """A server of asyncio's. A crowd that comes at once is let in by and by."""
    server = await asyncio.get_running_loop().create_server(factory, host, port, backlog=_TAKEN)
    for each in server.sockets:  # asyncio has one number for both
        with socket.socket(fileno=os.dup(each.fileno())) as same:
            same.listen(_WAITING)
    return server


class GivenUp(RequestError, asyncio.TimeoutError):
    """Why the server no longer waits for the rest of a request."""


class Budget:
    """Bytes of requests and answers that are held."""

    def __init__(self, limit):
        self.limit, self.held, self.ending = limit, 0, False
        self._arrivals = set()
        self._slow = collections.OrderedDict()  # those with bytes; the one that has been without progress for the longest is first

    def take(self, count, arrival=None):
        """Counts bytes that are there; gives up arrivals where there would be too many, else refuses. arrival: whose bytes they are."""
        while self.held + count > self.limit:
            slowest = next(iter(self._slow), None)
            if slowest in (None, arrival):
                raise RequestError(f"requests of {self.held} bytes are in work (limit: {self.limit})", 503)
            slowest.give_up(GivenUp("the request arrived slower than others, which needed its memory", 503))
        self.held += count

    def give_back(self, count):
        self.held -= count

    def end(self):
        """Gives up all that has not arrived as a whole, now and from now on."""
        self.ending = True
        for arrival in list(self._arrivals):
            arrival.give_up(_ended())


def _ended():
    return GivenUp("the server is ending", 503)


class Arrival:
    """A request on its way in: its bytes, and when it last made progress. failed(error) is called where it is given up."""

    def __init__(self, budget, failed):
        if budget.ending:
            raise _ended()
        self._budget, self._failed = budget, failed
        self.held, self._fresh, self.heard = 0, 0, time.monotonic()
        budget._arrivals.add(self)

    def add(self, count):
        """Bytes have arrived."""
        self._budget.take(count, self)
        self.held += count
        self._fresh += count
        slow = self._budget._slow
        if self._fresh >= PROGRESS:
            self._fresh, self.heard = 0, time.monotonic()
            slow.pop(self, None)
        slow.setdefault(self)

    def complete(self):
        """All of it is there; it is held until close()."""
        self._budget._arrivals.discard(self)
        self._budget._slow.pop(self, None)

    def give_up(self, error):
        self.close()
        self._failed(error)

    def close(self):
        """Its bytes are gone."""
        self.complete()
        self._budget.give_back(self.held)
        self.held = 0


class Connections:
    """The connections of a server, of both protocols. When there are too many, one goes that waits for its client: those that have asked
    nothing yet come first, then those that have been waiting for the longest."""

    def __init__(self, limit, stall_seconds):
        self.limit, self.stall_seconds = limit, stall_seconds
        self._open, self._sweeper = set(), None

    def __len__(self):
        return len(self._open)

    def start(self):
        self._sweeper = asyncio.ensure_future(self._sweep())

    def add(self, connection):
        """A connection has `waits_since`: when its client last did something, None while it waits for the server; `asked`: whether it has
        had an answer; check(now), which ends what stalls; finish(), which ends what has not fully arrived; and abort()."""
        if len(self._open) >= self.limit:
            waiting = [each for each in self._open if each.waits_since is not None]
            # Where all wait for the server, the new one goes.
            gone = min(waiting, key=lambda each: (each.asked, each.waits_since), default=connection)
            self._open.discard(gone)
            gone.abort()
            if gone is connection:
                return
        self._open.add(connection)

    def remove(self, connection):
        self._open.discard(connection)

    async def _sweep(self):
        period, before = min(1.0, self.stall_seconds / 4), time.monotonic()
        while True:
            await asyncio.sleep(period)
            now, late = time.monotonic(), time.monotonic() - before > 2 * period
            before = now
            if late:  # the loop had no time: what clients sent meanwhile has not been read yet
                continue
            for count, connection in enumerate(list(self._open)):
                if count % 32 == 31:  # for others' turns
                    await asyncio.sleep(0)
                if connection in self._open:
                    connection.check(now)

    def finish(self):
        for connection in list(self._open):
            connection.finish()

    def close(self):
        if self._sweeper:
            self._sweeper.cancel()
        for connection in list(self._open):
            connection.abort()
