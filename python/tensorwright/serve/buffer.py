# SPDX-License-Identifier: Apache-2.0
"""Bytes of a request, put together as they arrive."""

import concurrent.futures
import mmap
import time

# Bytes beyond which they lie in pages of their own.
_OWN = 1 << 20
_freeing = concurrent.futures.ThreadPoolExecutor(1, "freeing")


class Buffer:
    """add(), then view(), which gives all of it, then close(). To copy large ones as they grow and to give their memory back takes
    milliseconds under the interpreter's lock, in which nobody is answered. Pages are moved instead, and given back by a thread without it."""

    def __init__(self):
        self._data, self._size = bytearray(), 0

    def __len__(self):
        return self._size

    def add(self, piece):
        begin, end = self._size, self._size + len(piece)
        if end > _OWN:
            if isinstance(self._data, bytearray):
                own = mmap.mmap(-1, max(end, 4 * _OWN), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                own[:begin], self._data = self._data, own
            elif end > len(self._data):
                self._data.resize(max(end, 2 * len(self._data)))  # addresses; memory is what was written
            self._data[begin:end] = piece
        else:
            self._data += piece
        self._size = end

    def view(self):
        return memoryview(self._data)[: self._size]

    def close(self):
        data, self._data, self._size = self._data, bytearray(), 0
        if isinstance(data, mmap.mmap):
            _freeing.submit(_free, data)


def _free(pages):
    for _ in range(10):
        try:
            pages.close()
            return
        except BufferError:  # who is told what was wrong with a request still looks at it
            time.sleep(0.01)
