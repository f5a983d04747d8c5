# SPDX-License-Identifier: Apache-2.0
"""Regions of POSIX shared memory that clients on the same machine register, to send and receive tensors in them.

Regions are read and written as files, not mapped: a client that shrinks its region makes a short read, which is an error, where
a mapping would end the process by SIGBUS."""

import os
import threading
from dataclasses import dataclass

from .tensors import RequestError, shown

_FOLDER = "/dev/shm"


@dataclass
class Region:
    """`byte_size` bytes from `offset` on of the shared memory `key`."""

    name: str
    key: str
    offset: int
    byte_size: int
    file: int

    def _place(self, offset, count):
        if offset < 0 or count < 0 or offset + count > self.byte_size:
            raise RequestError(
                f"shared memory region {shown(self.name)} has {self.byte_size} bytes; {count} at {offset} lie outside"
            )
        return self.offset + offset

    def read(self, offset, count):
        """A copy of these bytes."""
        at, data = self._place(offset, count), bytearray(count)
        view, done = memoryview(data), 0
        while done < count:
            got = os.preadv(self.file, [view[done:]], at + done)
            if not got:
                raise RequestError(f"shared memory region {shown(self.name)} was made smaller by its owner")
            done += got
        return data

    def write(self, offset, data):
        """Puts bytes there. The owner may shrink the region meanwhile, which then grows again."""
        view = memoryview(data).cast("B")
        at, done = self._place(offset, len(view)), 0
        if os.fstat(self.file).st_size < at + len(view):
            raise RequestError(f"shared memory region {shown(self.name)} was made smaller by its owner")
        while done < len(view):
            done += os.pwrite(self.file, view[done:], at + done)


class Regions:
    """The regions by name. `most` limits how many there are."""

    def __init__(self, enabled, most=1024):
        self._enabled, self._most = enabled, most
        self._regions, self._lock = {}, threading.Lock()

    def _check_enabled(self):
        if not self._enabled:
            raise RequestError("shared memory is off; start the server with --shared-memory", 403)

    def register(self, name, key, offset, byte_size):
        """Opens a client's shared memory."""
        self._check_enabled()
        for number in (offset, byte_size):
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**62:
                raise RequestError(f"shared memory region {shown(name)}: {shown(number)} is no offset or size")
        if not isinstance(key, str) or not name:
            raise RequestError("a shared memory region has a name and a key")
        plain = key[1:] if key.startswith("/") else key
        if not plain or "/" in plain or "\0" in plain or plain in (".", ".."):
            raise RequestError(f"{shown(key)} is no key of shared memory: it is a slash and a name without any")
        with self._lock:
            if name in self._regions:
                raise RequestError(f"shared memory region {shown(name)} is registered already")
            if len(self._regions) >= self._most:
                raise RequestError(f"{self._most} shared memory regions are registered, which is the limit", 503)
            try:
                # Not a terminal, nor a pipe to wait for: the folder may hold anything.
                file = os.open(os.path.join(_FOLDER, plain), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            except (OSError, ValueError) as error:
                raise RequestError(f"shared memory {shown(key)} cannot be opened: {getattr(error, 'strerror', error)}") from None
            status = os.fstat(file)
            if not os.path.stat.S_ISREG(status.st_mode) or status.st_size < offset + byte_size:
                os.close(file)
                raise RequestError(f"shared memory {shown(key)} has {status.st_size} bytes; {byte_size} at {offset} lie outside")
            self._regions[name] = Region(name, key, offset, byte_size, file)

    def unregister(self, name=None):
        """Closes a region, or all. An unknown name is none to close."""
        self._check_enabled()
        with self._lock:
            for each in [name] if name else list(self._regions):
                region = self._regions.pop(each, None)
                if region:
                    os.close(region.file)

    def status(self, name=None):
        """The regions, or the one of this name."""
        with self._lock:
            if name and name not in self._regions:
                raise RequestError(f"no shared memory region is called {shown(name)}")
            return [region for region in self._regions.values() if not name or region.name == name]

    def read(self, name, offset, count):
        """Bytes of a region, copied while nobody closes it."""
        return self._of(name, lambda region: region.read(offset, count))

    def write(self, name, offset, data):
        """Puts bytes into a region."""
        return self._of(name, lambda region: region.write(offset, data))

    def _of(self, name, use):
        self._check_enabled()
        with self._lock:
            region = self._regions.get(name) if isinstance(name, str) else None
            if region is None:
                raise RequestError(f"no shared memory region is called {shown(name)}")
            return use(region)
