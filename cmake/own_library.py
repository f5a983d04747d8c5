#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: own_library.py LIBRARY FOLDER OLD=NEW...

Copies a shared library into FOLDER under names of its own: OLD becomes NEW, of the same length, wherever it stands, in soname, symbols
and names of types, so that the copy and the library itself know nothing of each other in a process. Prints the copy's name, which is its
soname. Does nothing where the copy is there already."""

import os
import pathlib
import struct
import sys

PT_LOAD, PT_DYNAMIC = 1, 2
DT_STRTAB, DT_SYMTAB, DT_SONAME, DT_GNU_HASH = 5, 6, 14, 0x6FFFFEF5


class Library:
    """An ELF file for x86-64, as the loader sees it."""

    def __init__(self, data):
        self.data = data
        if bytes(data[:6]) != b"\x7fELF\x02\x01":
            sys.exit("not a 64-bit little-endian ELF file")
        (headers,) = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", data, headers + i * size) for i in range(count)]
        dynamic = next(s for s in self.segments if s[0] == PT_DYNAMIC)
        self.dynamic = dict(struct.iter_unpack("<qQ", data[dynamic[2] : dynamic[2] + dynamic[5]]))
        if DT_GNU_HASH not in self.dynamic or DT_SONAME not in self.dynamic:
            sys.exit("no soname or no GNU hash table")

    def offset(self, tag):
        """Where in the file lies what an entry of the dynamic section points to."""
        address = self.dynamic[tag]
        return next(s[2] + address - s[3] for s in self.segments if s[0] == PT_LOAD and s[3] <= address < s[3] + s[5])

    def string(self, at):
        begin = self.offset(DT_STRTAB) + at
        return bytes(self.data[begin : self.data.index(0, begin)])

    def hash_again(self):
        """Writes the hash table anew. A bucket's symbols stand together, so that new hashes would need another order and all that refers
        to it: there is one bucket. The bloom filter says first what is not there; to look up all else costs a millisecond a process."""
        table, symbols = self.offset(DT_GNU_HASH), self.offset(DT_SYMTAB)
        buckets, first, words, shift = struct.unpack_from("<4I", self.data, table)
        bloom, bucket = table + 16, table + 16 + 8 * words
        # The last chain ends at the last symbol.
        chain, last = bucket + 4 * buckets, max(struct.unpack_from(f"<{buckets}I", self.data, bucket))
        while not struct.unpack_from("<I", self.data, chain + 4 * (last - first))[0] & 1:
            last += 1
        filter_words, hashes = [0] * words, []
        for i in range(first, last + 1):
            value = 5381
            for byte in self.string(struct.unpack_from("<I", self.data, symbols + 24 * i)[0]):
                value = (value * 33 + byte) & 0xFFFFFFFF
            hashes.append(value & ~1)
            filter_words[value // 64 % words] |= 1 << value % 64 | 1 << (value >> shift) % 64
        hashes[-1] |= 1  # ends the chain
        struct.pack_into("<I", self.data, table, 1)
        struct.pack_into(f"<{words}QI{len(hashes)}I", self.data, bloom, *filter_words, first, *hashes)


def main():
    source, folder, *names = sys.argv[1:]
    data = pathlib.Path(source).read_bytes()
    for name in names:
        old, _, new = name.encode().partition(b"=")
        if len(old) != len(new) or old not in data:
            sys.exit(f"{name}: not of the same length, or not in {source}")
        data = data.replace(old, new)
    library = Library(bytearray(data))
    library.hash_again()
    soname = library.string(library.dynamic[DT_SONAME]).decode()
    copy = pathlib.Path(folder, soname)
    if not copy.is_file() or copy.read_bytes() != library.data:
        copy.parent.mkdir(parents=True, exist_ok=True)
        part = copy.with_name(soname + ".part")  # programs may have the old one open
        part.write_bytes(library.data)
        os.replace(part, copy)
    print(soname)


main()
