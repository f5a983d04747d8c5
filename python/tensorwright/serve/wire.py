# SPDX-License-Identifier: Apache-2.0
"""Stands between gRPC's clients and grpcio's server, which tells nobody what of a message has arrived. Bytes pass as they are; the frames
of HTTP/2 around them are followed (RFC 9113, section 4.1, and the five bytes in front of each message), so that messages count in the
budget while they arrive, and streams that stall are reset."""

import asyncio
import collections
import logging
import time

from .budget import READ, Arrival, listen
from .tensors import RequestError

log = logging.getLogger("tensorwright.serve")
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # with which a client begins
_DATA, _HEADERS, _RESET, _CONTINUATION = 0, 1, 3, 9
_END_STREAM, _END_HEADERS, _PADDED = 1, 4, 8
# What clients make of a reset stream: UNAVAILABLE, CANCELLED.
_REFUSED, _CANCEL = 7, 8
# Streams of a connection that may be known at a time; grpcio refuses those beyond its own limit, which is lower.
_MOST_STREAMS = 1024
# Calls that grpcio has been given and has not looked at yet, of one connection and of all: it takes some tenths of a millisecond for each,
# one after the other. The seconds after which it will not look at one any more, and at one that its client has reset.
_UNSEEN_OF_ONE, _UNSEEN, _OVERLOOKED, _LEFT = 3, 6, 0.2, 0.02
# Calls of a connection whose first message has not come, from which on it begins one in so many seconds; and the seconds between the ends
# of the calls of a connection that is gone, where they are so many.
_MANY, _APART, _ENDS_APART = 8, 0.05, 0.01
# Bytes after which a client waits for another turn; asyncio reads up to twice as many.
_LARGE = READ // 2
# Times the seconds without progress that a client has: for reading an answer by HTTP/2's windows. Between the messages of one stream a
# long run looks like a client that does not read.
_UNREAD = 6


class _Messages:
    """Follows the messages of a stream in one direction."""

    def __init__(self):
        self._prefix, self._left = bytearray(), 0

    def feed(self, view):
        """(bytes up to the end of a message or of the view, whether one ended), for all bytes."""
        at, start = 0, 0
        while at < len(view):
            ended = False
            if self._left:
                step = min(self._left, len(view) - at)
                self._left -= step
                ended = not self._left
            else:
                step = min(5 - len(self._prefix), len(view) - at)
                self._prefix += view[at : at + step]
                if len(self._prefix) == 5:
                    self._left = int.from_bytes(self._prefix[1:], "big")
                    self._prefix.clear()
                    ended = not self._left
            at += step
            if ended:
                yield at - start, True
                start = at
        if at > start:
            yield at - start, False


class _Stream:
    """A call: the message that arrives, those that wait for their answers, and when the server last sent something of an answer."""

    def __init__(self):
        self.sent, self.answered = _Messages(), _Messages()
        self.arrival, self.taken, self.answering = None, collections.deque(), None
        self.new, self.empty, self.left = True, False, False  # empty: begun, and no message has come

    def close(self):
        if self.arrival:
            self.arrival.close()
        for arrival in self.taken:
            arrival.close()


_HELD = object()


class _Direction:
    """Frames on their way: handler.frame(kind, flags, stream) for each, which may give _HELD to keep what is behind the frame's head from
    going on until go_on(); handler.begun(stream) when headers have come as a whole; handler.data(stream, view) for what is in those of data."""

    def __init__(self, handler, skipped):
        self._handler, self._head, self._left = handler, bytearray(), skipped
        self._kind = self._stream = None
        self._block, self._feeding, self._waiting, self._rest = False, False, [], b""
        self.target, self.began = None, time.monotonic()

    def between(self):
        """Whether a frame may be put here."""
        return not (self._left or self._head or self._block)

    def put(self, frame):
        """Sends a frame of our own, between two of theirs."""
        if self._feeding or not self.between():
            self._waiting.append(frame)
        elif not self.target.is_closing():
            self.target.write(frame)

    def in_data(self):
        return bool(self._left) and self._kind == _DATA

    def go_on(self):
        """Feeds what was left where the handler held a frame back; whether all of it could go."""
        rest, self._rest = self._rest, b""
        self.feed(rest)
        return not self._rest

    def feed(self, data):
        view, at, sent, now = memoryview(data), 0, 0, time.monotonic()
        self._feeding = True
        while at < len(view):
            if self._left:
                step = min(self._left, len(view) - at)
                self._left -= step
                if self._kind == _DATA:
                    self._handler.data(self._stream, view[at : at + step])
                elif not self._left and self._kind in (_HEADERS, _CONTINUATION) and not self._block:
                    self._handler.begun(self._stream)
            else:
                if not self._head:
                    self.began = now
                step = min(9 - len(self._head), len(view) - at)
                self._head += view[at : at + step]
                if len(self._head) == 9 and not self._frame():
                    at += step
                    self._rest = bytes(view[at:])
                    view = view[:at]
                    break
            at += step
            if self._waiting and self.between():
                self.target.write(view[sent:at])
                self.target.writelines(self._waiting)
                self._waiting, sent = [], at
        self._feeding = False
        if not self.target.is_closing():
            self.target.write(view[sent:])

    def _frame(self):
        head = self._head
        self._left, self._kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        self._stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        head.clear()
        if self._kind in (_HEADERS, _CONTINUATION):
            self._block = not flags & _END_HEADERS
        return self._handler.frame(self._kind, flags, self._stream) is not _HELD


def _reset(number, code):
    """The frame that ends a stream."""
    return b"\0\0\4%c\0%s%s" % (_RESET, number.to_bytes(4, "big"), code.to_bytes(4, "big"))


class _Client(asyncio.Protocol):
    """A client's connection."""

    def __init__(self, wire):
        self.wire, self.budget, self.open = wire, wire.core.budget, wire.core.connections
        self.transport, self.server = None, _Server(self)
        self.frames, self.streams, self._last = _Direction(self, len(_PREFACE)), {}, 0
        self._heard, self._blocked, self.asked, self._early = time.monotonic(), None, False, b""
        self._holding, self._held_since = set(), 0.0  # why nothing is read, and since when
        self.empty, self.next = 0, 0.0  # calls without a message; when the next one may begin where they are many

    def connection_made(self, transport):
        transport.max_size = READ
        self.transport = self.server.frames.target = transport
        self.open.add(self)

    async def _connect(self):
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: self.server, self.wire.path)
        except OSError as error:
            log.error("gRPC: the server cannot be reached: %s", error)
            self.transport.abort()
            return
        if self.transport.is_closing():
            self.server.transport.abort()
        else:
            self.frames.target = self.server.transport
            early, self._early = self._early, None
            self.frames.feed(early)
            self.hold_back("connecting", False)

    def data_received(self, data):
        self._heard = time.monotonic()
        if self.frames.target is not None:
            if len(data) > _LARGE:
                self.hold_back("turns", True)
                self.wire.core.turns.next().add_done_callback(lambda _: self.hold_back("turns", False))
                self.frames.feed(data)
                self.wire.core.turns.spent(self._heard)
            else:
                self.frames.feed(data)
            return
        # Who does not speak HTTP/2 costs grpcio nothing.
        self._early += data
        begun = self._early[: len(_PREFACE)]
        if not _PREFACE.startswith(begun):
            self.abort()
        elif begun == _PREFACE:
            self.hold_back("connecting", True)
            self._connecting = asyncio.ensure_future(self._connect())

    def frame(self, kind, flags, number):
        if kind == _HEADERS and number > self._last:
            self._last, self.streams[number] = number, _Stream()
            if len(self.streams) > _MOST_STREAMS or not number % 2:  # even ones are the server's
                self.abort()
            elif self.wire.full(self):
                self.wire.wait(self)
                self.hold_back("calls", True)
                return _HELD
        elif kind == _RESET:
            self.wire.left(self.streams.get(number))
            self.end(number)
        elif kind == _DATA and flags & _PADDED:  # no client of gRPC pads, and messages could not be followed
            self.abort()
        return None

    def begun(self, number):
        stream = self.streams.get(number)
        if stream and stream.new:
            stream.new, stream.empty, now = False, True, time.monotonic()
            self.empty, self.next = self.empty + 1, now + _APART
            self.wire.unseen[stream] = self, now + _OVERLOOKED

    def filled(self, stream):
        """A stream has a message, or needs none any more."""
        self.empty -= stream.empty
        stream.empty = False

    def call(self):
        """There is room for the call that was held back."""
        if not self.transport.is_closing() and self.frames.go_on():
            self.hold_back("calls", False)

    def data(self, number, view):
        stream = self.streams.get(number)
        if stream is None:  # has ended; grpcio drops what comes
            return
        try:
            for count, ended in stream.sent.feed(view):
                if stream.arrival is None:
                    stream.arrival = Arrival(self.budget, lambda error: self.reset(number, error))
                stream.arrival.add(count)
                if ended:
                    self.filled(stream)
                    stream.arrival.complete()
                    stream.taken.append(stream.arrival)
                    stream.arrival = None
        except RequestError as error:
            self.reset(number, error)

    def answer(self, number, view):
        """Bytes of the server's answers; each message answers one that the client sent."""
        stream = self.streams.get(number)
        if stream is None:
            return
        stream.answering = time.monotonic()
        for _, ended in stream.answered.feed(view):
            if ended and stream.taken:
                stream.taken.popleft().close()

    def end(self, number):
        """The stream has ended."""
        stream = self.streams.pop(number, None)
        if stream:
            self.asked = True
            self.filled(stream)
            self.wire.seen(stream)
            stream.close()

    def reset(self, number, error, code=None):
        """Ends a stream, on both sides."""
        if number in self.streams:
            log.info("gRPC: a stream is reset: %s", error)
            self.end(number)
            code = code or (_REFUSED if getattr(error, "status", 503) == 503 else _CANCEL)
            frame = _reset(number, code)
            self.frames.put(frame)
            self.server.frames.put(frame)

    @property
    def waits_since(self):
        if self._blocked is not None:
            return self._blocked
        return None if any(stream.taken for stream in self.streams.values()) else self._heard

    def check(self, now):
        limit = self.open.stall_seconds
        if self._holding:  # the client is not what is waited for
            return
        begun = None if self.frames.between() else self._heard if self.frames.in_data() else self.frames.began
        for since in (begun, self._blocked):
            if since is not None and now - since > limit:
                self.abort()
                return
        ended = 0
        for number, stream in list(self.streams.items()):
            if ended == _MANY:  # the others are the next time's
                break
            # Behind messages that wait for their answers grpcio reads the next one when it has room.
            if stream.arrival and not stream.taken and now - max(stream.arrival.heard, stream.answering or 0.0) > limit:
                self.reset(number, "its message did not come in time", _CANCEL)
                ended += 1
            elif stream.taken and stream.answering is not None and now - stream.answering > _UNREAD * limit:
                self.reset(number, "its client does not read the answer", _CANCEL)
                ended += 1
        if self.budget.ending:
            self.end_arriving(now - 1)

    def end_arriving(self, before):
        """Resets the calls whose messages have been answered, those of before a time, and those that have not arrived."""
        for number, stream in list(self.streams.items()):
            if not stream.taken and (stream.answering or 0) < before:
                self.reset(number, "the server is ending")

    def finish(self):
        self.end_arriving(time.monotonic() - 1)
        if not self.streams:
            self.abort()

    def abort(self):
        self.transport.abort()

    def hold_back(self, reason, held):
        """Reads no more of the client while there is a reason. That time does not count against it."""
        now = time.monotonic()
        if held:
            self._held_since = self._held_since if self._holding else now
            self._holding.add(reason)
            self.transport.pause_reading()
            return
        if not self._holding:
            return
        self._holding.discard(reason)
        if self._holding:
            return
        self._heard = min(now, self._heard + now - self._held_since)
        for stream in self.streams.values():
            if stream.arrival:
                stream.arrival.heard = min(now, stream.arrival.heard + now - self._held_since)
        self.transport.resume_reading()

    def eof_received(self):
        return False

    def pause_writing(self):
        self._blocked = time.monotonic()
        if self.server.transport:
            self.server.transport.pause_reading()

    def resume_writing(self):
        self._blocked = None
        if self.server.transport:
            self.server.transport.resume_reading()

    def connection_lost(self, error):
        self.open.remove(self)
        numbers = list(self.streams)
        for number in numbers:
            self.end(number)
        if self.server.transport:
            if len(numbers) > _MANY and self.frames.between():
                self._leaving = asyncio.ensure_future(self._leave(numbers))
            else:
                self.server.transport.abort()

    async def _leave(self, numbers):
        """Tells grpcio by and by: while it ends hundreds of calls it answers nobody."""
        for number in numbers:
            if self.server.transport.is_closing():
                return
            self.server.transport.write(_reset(number, _CANCEL))
            await asyncio.sleep(_ENDS_APART)
        self.server.transport.abort()


class _Server(asyncio.Protocol):
    """The same connection between here and grpcio's server."""

    def __init__(self, client):
        self.client, self.transport, self.frames = client, None, _Direction(self, 0)

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.frames.feed(data)

    def frame(self, kind, flags, number):
        client = self.client
        if kind == _HEADERS and flags & _END_STREAM or kind == _RESET or kind == _DATA and flags & _END_STREAM:
            client.end(number)
        elif kind == _HEADERS and number in client.streams:
            client.streams[number].answering = time.monotonic()

    def begun(self, number):
        pass

    def data(self, number, view):
        self.client.answer(number, view)

    def pause_writing(self):
        self.client.hold_back("grpcio", True)

    def resume_writing(self):
        self.client.hold_back("grpcio", False)

    def connection_lost(self, error):
        self.client.transport.close()


class Wire:
    """The port that clients connect to, in front of the server at the socket `path`. Calls are given to grpcio as it looks at them, which it
    does in their order: a client that begins hundreds at a time has its own wait, not the others' behind them."""

    def __init__(self, core, path):
        self.core, self.path, self._listener = core, path, None
        # Streams in their order, with their clients and when they count no more; clients.
        self.unseen, self.waiting, self._turn, self._passing = {}, collections.deque(), None, False

    async def start(self, host, port):
        """The number of the port."""
        self._listener = await listen(lambda: _Client(self), host, port)
        return self._listener.sockets[0].getsockname()[1]

    def full(self, client):
        """Whether a client's next call has to wait."""
        if self._passing:
            return True
        now = time.monotonic()
        for stream in [stream for stream, (_, until) in self.unseen.items() if until < now]:
            del self.unseen[stream]
        if client.empty >= _MANY and now < client.next:
            return True
        return len(self.unseen) >= _UNSEEN or sum(of is client for of, _ in self.unseen.values()) >= _UNSEEN_OF_ONE

    def wait(self, client):
        self.waiting.append(client)
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_later(_LEFT, self._next)

    def left(self, stream):
        """A client has reset its stream. grpcio may look at it all the same."""
        if stream in self.unseen:
            client, _ = self.unseen[stream]
            self.unseen[stream], stream.left = (client, time.monotonic() + _LEFT), True

    def seen(self, stream=None):
        """grpcio looks at a call, which is the oldest, or a stream has ended."""
        if stream is None:
            stream = next(iter(self.unseen), None)
        elif stream.left:
            return
        if self.unseen.pop(stream, None) and self.waiting:
            if self._turn:
                self._turn.cancel()
            self._turn = asyncio.get_running_loop().call_soon(self._next)

    def _next(self):
        """Lets each client that waits begin a call where there is room."""
        self._turn, skipped = None, []
        # A client whose calls come with their messages is before those whose calls do not.
        waiting, self.waiting = sorted(self.waiting, key=lambda client: client.empty), collections.deque()
        for client in waiting:
            if self.full(client):
                skipped.append(client)
                continue
            self._passing = True  # one each
            client.call()
            self._passing = False
        self.waiting.extendleft(reversed(skipped))
        if self.waiting and self._turn is None:
            self._turn = asyncio.get_running_loop().call_later(_LEFT, self._next)

    def refuse(self):
        """Takes no more connections."""
        self._listener.close()
