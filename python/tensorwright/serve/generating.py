# SPDX-License-Identifier: Apache-2.0
"""A Generator behind a server: a thread takes its steps, sequences come from the event loop and pieces go back there."""

from __future__ import annotations

import asyncio
import collections
import logging
import threading
import time

from ..generation import Generator, Piece, Settings
from ..generation.scheduler import Sequence
from .tensors import RequestError

log = logging.getLogger("tensorwright.serve")


class Job:
    """The sequences of one request. Pieces come by next(), each with its sequence's index; cancel() frees what they hold."""

    def __init__(self, engine: Engine, prompts: list[list[int]], settings: Settings, count: int, client: str):
        self.engine, self.settings, self.prompts = engine, settings, prompts
        self._loop, self._pieces = asyncio.get_running_loop(), asyncio.Queue()
        self.begin, self.first = time.monotonic(), None
        self.sequences = [
            Sequence(prompt, settings, self._emitter(i * count + n), client, number=i * count + n)
            for i, prompt in enumerate(prompts)
            for n in range(count)
        ]
        self._left = len(self.sequences)

    def _emitter(self, index: int):
        def emit(piece: Piece) -> None:  # in the engine's thread
            if piece.reason:
                self.engine.ended()
            try:
                self._loop.call_soon_threadsafe(self._pieces.put_nowait, (index, piece))
            except RuntimeError:  # the loop has ended, and who asked with it
                pass

        return emit

    async def next(self) -> list[tuple[int, Piece]]:
        """The pieces that have come, at least one; none when all sequences have ended."""
        if not self._left:
            return []
        pieces = [await self._pieces.get()]
        while not self._pieces.empty():
            pieces.append(self._pieces.get_nowait())
        if self.first is None:
            self.first = time.monotonic()
            self.engine.metrics.first.observe(self.first - self.begin)
        for _, piece in pieces:
            self._left -= piece.reason is not None
            self.engine.metrics.tokens.inc(piece.token is not None)
            if piece.reason == "error":
                log.error("model %s: %s", self.engine.name, piece.error)
                raise RequestError(f"model {self.engine.name!r}: {piece.error}", 500)
            if piece.reason == "cancelled":
                raise RequestError("the server is ending", 503)
        return pieces

    def cancel(self) -> None:
        if self._left:
            for sequence in self.sequences:
                sequence.cancel()
            self.engine.wake()


class Engine:
    """The thread of a Generator. queue: sequences that wait at most."""

    def __init__(self, name: str, generator: Generator, queue: int, metrics):
        self.name, self.generator, self.queue, self.metrics = name, generator, queue, metrics.generation_of(name)
        self.slots, self.created = generator.runs.plan.slots, int(time.time())
        self._inbox, self._open, self._lock = collections.deque(), 0, threading.Lock()
        self._work, self._closing = threading.Event(), False
        self.metrics.sequences.set_function(lambda: self._open)
        generator.rehearse()
        self._thread = threading.Thread(target=self._run, name=f"generate:{name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return max(0, self._open - self.slots)

    @property
    def open(self) -> int:
        """Sequences that have been taken and have not ended."""
        return self._open

    def check_queue(self, count: int = 1) -> None:
        """Refuses sequences for which there would be no place."""
        if count > self.queue + self.slots:
            raise RequestError(f"the request asks for {count} sequences (limit: {self.queue + self.slots})")
        if self._open + count > self.queue + self.slots:
            self.metrics.refused.inc()
            raise RequestError(f"the queue of model {self.name!r} is full ({self.waiting} sequences wait); try again later", 429)

    def submit(self, prompts: list[list[int]], settings: Settings, count: int, client: str) -> Job:
        """Takes the prompts, `count` sequences of each. Called by the event loop, which it never holds up."""
        if self._closing:
            raise RequestError("the server is ending", 503)
        job = Job(self, prompts, settings, count, client)
        with self._lock:
            self.check_queue(len(job.sequences))
            self._open += len(job.sequences)
        self.metrics.requests.inc()
        self.metrics.prompt_tokens.inc(sum(map(len, prompts)))
        self._inbox.extend(job.sequences)
        self.wake()
        return job

    def ended(self) -> None:
        with self._lock:
            self._open -= 1

    def wake(self) -> None:
        self._work.set()

    def _run(self) -> None:
        more = False
        while not self._closing:
            if not more:
                self._work.wait()
            self._work.clear()
            try:
                while self._inbox:
                    self.generator.submit(self._inbox.popleft())
                more = self.generator.scheduler_step()
            except Exception:  # the thread has to live
                log.exception("model %s", self.name)
                more = True
                time.sleep(0.1)

    def close(self) -> None:
        """Ends the thread; sequences that have not ended are cancelled."""
        self._closing = True
        self.wake()
        self._thread.join()
        self.generator.cancel_all()
        for sequence in self._inbox:
            sequence.emit(Piece(None, reason="cancelled"))
        self._inbox.clear()
