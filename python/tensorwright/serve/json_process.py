# SPDX-License-Identifier: Apache-2.0
"""JSON off the event loop: a small one is read and written where it is, a large one by a process (json_worker.py)."""

import asyncio
import concurrent.futures
import contextlib
import fcntl
import io
import logging
import os
import pickle
import struct
import subprocess
import sys

import numpy as np

from . import requests
from .tensors import RequestError

log = logging.getLogger("tensorwright.serve")
_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "json_worker.py")
_TASK, _LENGTH = struct.Struct("<cQ"), struct.Struct("<Q")
# What takes about a millisecond here: bytes to read, numbers to write. What takes less than twenty of them has a process of its own: it
# would wait for seconds behind the largest.
_SMALL_TEXT, _SMALL_ARRAY, _LARGE = 16384, 2048, 16
_PIPE = 1 << 20  # bytes, the most that a user may ask for by default


class _Answers(pickle.Unpickler):
    """Of the worker, which knows requests.py and tensors.py by another package's name."""

    def find_class(self, module, name):
        package, _, rest = module.partition(".")
        return super().find_class(f"{__package__}.{rest}" if package == "tensorwright_json" else module, name)


class Json:
    """Reads requests' JSON and writes outputs'."""

    def __init__(self):
        self._processes = _Process(), _Process()

    async def outline(self, text):
        """The Outline of the JSON of a request, which is a memoryview."""
        if len(text) <= _SMALL_TEXT:
            return requests.outline(bytes(text))
        return await self._processes[len(text) > _LARGE * _SMALL_TEXT].ask(b"r", text)

    async def numbers(self, array):
        """The JSON of an output's numbers."""
        if array.size <= _SMALL_ARRAY:
            return requests.numbers(array)
        return await self._processes[array.size > _LARGE * _SMALL_ARRAY].ask(b"w", array)

    async def close(self):
        for process in self._processes:
            await process.close()


class _Process:
    """A process and the thread that speaks with it. It is started for the first task; one task at a time, in their order."""

    def __init__(self):
        self._process, self._thread = None, concurrent.futures.ThreadPoolExecutor(1, "json")

    async def ask(self, kind, data):
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, kind, data)

    def _work(self, kind, data):
        try:
            answer = self._exchange(kind, data)
        except (OSError, EOFError) as error:
            self._end()
            log.error("the process of JSON ended: %s", error)
            raise RequestError("the request's JSON could not be worked on; the server's log says more", 500) from None
        text, *buffers = answer
        result = _Answers(io.BytesIO(text), buffers=buffers).load()
        if isinstance(result, RequestError):
            raise result
        return result

    def _exchange(self, kind, data):
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                [sys.executable, _WORKER],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
        if kind == b"w":
            data = pickle.dumps(data, 5)
        for part in (_TASK.pack(kind, len(data)), data):
            view = memoryview(part)
            while view:
                view = view[self._process.stdin.write(view) :]
        (count,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return [self._exactly(*_LENGTH.unpack(self._exactly(_LENGTH.size))) for _ in range(count)]

    def _exactly(self, count):
        data = np.empty(count, np.uint8)  # which writes nothing under the interpreter's lock
        view = memoryview(data)
        while view:
            got = self._process.stdout.readinto(view)
            if not got:
                raise EOFError("its answer ends too early")
            view = view[got:]
        return data.data

    def _end(self):
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    async def close(self):
        await asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        self._thread.shutdown()
