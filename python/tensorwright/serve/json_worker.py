# SPDX-License-Identifier: Apache-2.0
"""A process that reads and writes large JSON for the server. A thread would not do: the parser holds the interpreter's lock from the
first byte to the last, and nobody else is answered meanwhile.

Run by its name. Each task on the standard input is a letter and a length, 8 bytes, then so many bytes: "r" the JSON of a request, which
is answered by the pickle of its Outline; "w" the pickle of an array, answered by that of its numbers' JSON; what is wrong with a request
by that of a RequestError. An answer is a number of parts, each with its length: the pickle, then the buffers that go beside it."""

import importlib
import os
import pickle
import resource
import struct
import sys
import types

_TASK = struct.Struct("<cQ")
_LENGTH = struct.Struct("<Q")
# Bytes of memory: of all that the process may ask for, and those beyond which it ends after an answer, as Python keeps what it had.
_ADDRESSES, _RESIDENT = 4 << 30, 256 << 20


def _modules():
    """requests.py and tensors.py in a package that is not tensorwright, whose import loads the engine."""
    package = types.ModuleType("tensorwright_json")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[package.__name__] = package
    return importlib.import_module("tensorwright_json.requests"), importlib.import_module("tensorwright_json.tensors")


def main():
    # Of the server's session, as niceness counts within one, but no process that Ctrl-C is for: the server answers what it took.
    os.setpgrp()
    os.nice(10)  # large JSON waits for runs, not runs for it
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints is no answer
    requests, tensors = _modules()
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    while len(head := source.read(_TASK.size)) == _TASK.size:
        kind, length = _TASK.unpack(head)
        data = source.read(length)
        try:
            result = requests.outline(data) if kind == b"r" else pickle.PickleBuffer(requests.numbers(pickle.loads(data)))
        except tensors.RequestError as error:
            result = error
        except MemoryError:
            result = tensors.RequestError("the request's JSON takes too much memory", 413)
        del data
        parts = []
        parts.insert(0, pickle.dumps(result, 5, buffer_callback=lambda buffer: parts.append(buffer.raw())))
        target.write(_LENGTH.pack(len(parts)))
        for part in parts:
            target.write(_LENGTH.pack(len(part)))
            target.write(part)
        target.flush()
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > _RESIDENT:
            return


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file, whose names are not the standard library's
    main()
