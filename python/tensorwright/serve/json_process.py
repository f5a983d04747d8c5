# SPDX-License-Identifier: Apache-2.0
"""JSON off the event loop: a small one is read and written where it is, a large one by a process (json_worker.py)."""

import asyncio
import io
import logging
import os
import pickle
import struct
import sys

from . import requests
from .tensors import RequestError

log = logging.getLogger("tensorwright.serve")
_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "json_worker.py")
_TASK, _LENGTH = struct.Struct("<cQ"), struct.Struct("<Q")
# What takes about a millisecond here: bytes to read, numbers to write.
_SMALL_TEXT, _SMALL_ARRAY = 16384, 2048


class _Answers(pickle.Unpickler):
    """Of the worker, which knows requests.py and tensors.py by another package's name."""

    def find_class(self, module, name):
        package, _, rest = module.partition(".")
        return super().find_class(f"{__package__}.{rest}" if package == "tensorwright_json" else module, name)


class Json:
    """Reads requests' JSON and writes outputs'. The process is started for the first large one; one task at a time, in their order."""

    def __init__(self):
        self._process, self._turn = None, asyncio.Lock()

    async def outline(self, text):
        """The Outline of the JSON of a request."""
        return requests.outline(text) if len(text) <= _SMALL_TEXT else await self._ask(b"r", text)

    async def numbers(self, array):
        """The JSON of an output's numbers."""
        if array.size <= _SMALL_ARRAY:
            return requests.numbers(array)
        return await self._ask(b"w", pickle.dumps(array, 5))

    async def _ask(self, kind, data):
        async with self._turn:
            try:
                answer = await self._exchange(kind, data)
            except (OSError, asyncio.IncompleteReadError) as error:
                self._end()
                log.error("the process of JSON ended: %s", error)
                raise RequestError("the request's JSON could not be worked on; the server's log says more", 500) from None
            except BaseException:  # a task that was given up leaves an answer behind
                self._end()
                raise
        result = _Answers(io.BytesIO(answer)).load()
        if isinstance(result, RequestError):
            raise result
        return result

    async def _exchange(self, kind, data):
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                _WORKER,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=1 << 20,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,  # Ctrl-C is for the server, which answers what it took
            )
        process = self._process
        process.stdin.write(_TASK.pack(kind, len(data)))
        process.stdin.write(data)
        await process.stdin.drain()
        (length,) = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
        return await process.stdout.readexactly(length)

    def _end(self):
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        self._process = None

    async def close(self):
        process = self._process
        self._end()
        if process is not None:
            await process.wait()
